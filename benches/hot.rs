//! Micro-benchmarks of the hot parts, one for each stage: `cargo bench`, `cargo bench -- unwind`.
//!
//! They run on the samples. `PJIT_BENCH=FILE` names a larger recording (see `scripts/big-recordings`).

use std::io;
use std::path::PathBuf;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use pjit::collect::{self, Collected, Learned};
use pjit::diagnostics::Diagnostics;
use pjit::dso::{DsoKind, DsoTable, NameStyle, demangle::demangle};
use pjit::find::SearchPaths;
use pjit::input::{Store, Window};
use pjit::jit::{JitBuilder, RecordingClock};
use pjit::load::{LoadOptions, Source};
use pjit::needs::Needs;
use pjit::output::folded::{self, FoldOptions, Weight};
use pjit::perfdata::{Delivered, Recording};
use pjit::profile;
use pjit::report::options::{ReportOptions, RowOptions};
use pjit::session::marks::Asked;
use pjit::session::{Samples, Session};
use pjit::symbolize::{self, Answers, Query, SourceMaps};
use pjit::wasm::WasmCode;

fn main() {
    divan::main();
}

/// A folder with a recording and what belongs to it.
const SAMPLES: [&str; 3] = ["native", "node", "wasmtime"];

fn path(sample: &str) -> PathBuf {
    std::env::var_os("PJIT_BENCH").map_or_else(
        || {
            PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("samples")
                .join(sample)
                .join("perf.data")
        },
        PathBuf::from,
    )
}

/// Everything that stages borrow. Leaked: a benchmark ends with its process.
struct Opened {
    store: &'static Store,
    diag: &'static Diagnostics,
    recording: Recording<'static>,
    path: PathBuf,
}

fn open(sample: &str) -> Opened {
    let (store, diag): (&Store, &Diagnostics) =
        (Box::leak(Box::default()), Box::leak(Box::default()));
    let path = path(sample);
    let recording = Recording::open(&path, store, diag).expect("the recording is there");
    Opened {
        store,
        diag,
        recording,
        path,
    }
}

impl Opened {
    fn search(&self) -> SearchPaths {
        SearchPaths {
            recording_dir: self.path.parent().map(PathBuf::from),
            ..SearchPaths::default()
        }
    }

    fn index(&self) -> (Session<'static>, Samples) {
        let dsos = DsoTable::new(self.store, self.search(), self.diag);
        let search = self.search().of_jit(None);
        let jit = JitBuilder::new(self.store, search, RecordingClock::of(&self.recording));
        Session::index(
            &self.recording,
            &Window::new(self.store, self.recording.region(), Window::BEHIND_FIRST).shared_by(1),
            dsos,
            jit,
            &Asked::default(),
            self.diag,
            &mut || {},
        )
    }

    fn collect(&self, (session, samples): &(Session<'static>, Samples)) -> Collected {
        collect::collect(
            &self.recording,
            self.store,
            (session, samples),
            &Learned::default(),
            (NEEDS, options()),
            &[],
            self.diag,
        )
    }
}

/// One thread: what a thread does is measured, not how many there are.
fn options() -> collect::Options {
    collect::Options {
        threads: 1,
        ..collect::Options::default()
    }
}

fn request(queries: &[Query]) -> symbolize::Request<'_> {
    symbolize::Request {
        queries,
        names: symbolize::Options::default(),
        needs: NEEDS,
        bare: &[],
        threads: 1,
    }
}

const NEEDS: Needs = Needs::STACKS.union(Needs::MARKS);

/// The walk over all records, in order.
#[divan::bench(args = SAMPLES)]
fn record_walk(bencher: Bencher<'_, '_>, sample: &str) {
    let opened = open(sample);
    bencher
        .counter(BytesCount::new(opened.recording.region().len()))
        .bench_local(|| {
            let mut samples = 0u64;
            opened
                .recording
                .deliver(opened.diag, &mut |_| {}, &mut |delivered| {
                    samples += u64::from(matches!(delivered, Delivered::Sample(_)));
                });
            samples
        });
}

/// Every sample parsed in full.
#[divan::bench(args = SAMPLES)]
fn sample_parse(bencher: Bencher<'_, '_>, sample: &str) {
    let opened = open(sample);
    let mut heads = Vec::new();
    opened
        .recording
        .deliver(opened.diag, &mut |_| {}, &mut |delivered| {
            if let Delivered::Sample(head) = delivered {
                heads.extend(
                    opened
                        .recording
                        .record_bytes(head.pos)
                        .map(|bytes| (head.event, bytes)),
                );
            }
        });
    bencher
        .counter(ItemsCount::new(heads.len()))
        .bench_local(|| {
            let events = &opened.recording.events;
            heads
                .iter()
                .filter(|(event, bytes)| {
                    events[usize::from(event.0)]
                        .parse_sample(black_box(bytes))
                        .is_ok()
                })
                .count()
        });
}

/// Records to history: processes, mappings, JIT code.
#[divan::bench(args = SAMPLES)]
fn index(bencher: Bencher<'_, '_>, sample: &str) {
    let opened = open(sample);
    bencher.bench_local(|| opened.index());
}

/// Unwinding and counting stacks, rules and files met for the first time.
#[divan::bench(args = SAMPLES)]
fn unwind(bencher: Bencher<'_, '_>, sample: &str) {
    let opened = open(sample);
    let history = opened.index();
    bencher.bench_local(|| opened.collect(&history));
}

/// Names for all addresses, tables already read.
#[divan::bench(args = SAMPLES)]
fn symbols(bencher: Bencher<'_, '_>, sample: &str) {
    resolve(bencher, sample, false);
}

/// Names and inlined functions for all addresses.
#[divan::bench(args = SAMPLES)]
fn inlines(bencher: Bencher<'_, '_>, sample: &str) {
    resolve(bencher, sample, true);
}

fn resolve(bencher: Bencher<'_, '_>, sample: &str, inlines: bool) {
    let opened = open(sample);
    let history = opened.index();
    let wasm = WasmCode::default();
    let queries: Vec<Query> = profile::queries(
        &opened.collect(&history),
        &wasm,
        NEEDS | Needs::INLINED.only_if(inlines),
    );
    bencher
        .counter(ItemsCount::new(queries.len()))
        .bench_local(|| symbolize::resolve(request(&queries), &history.0.dsos, &wasm));
}

/// Addresses and names to the profile.
#[divan::bench(args = SAMPLES)]
fn aggregation(bencher: Bencher<'_, '_>, sample: &str) {
    let opened = open(sample);
    let history = opened.index();
    let collected = opened.collect(&history);
    let wasm = WasmCode::default();
    let queries = profile::queries(&collected, &wasm, NEEDS | Needs::INLINED);
    let resolution = symbolize::resolve(request(&queries), &history.0.dsos, &wasm);
    let answers = Answers {
        queries: &queries,
        resolution: &resolution,
        wasm: &wasm,
        maps: &SourceMaps::default(),
    };
    bencher.bench_local(|| {
        profile::build(
            profile::Material::Lent(&collected),
            (&history.0, &history.1),
            &opened.recording.events,
            answers,
            NameStyle::Short,
            NEEDS | Needs::INLINED,
            1,
        )
    });
}

fn load(sample: &str) -> profile::Profile {
    let options = LoadOptions {
        needs: NEEDS | Needs::INLINED,
        reading: options(),
        mending: pjit::stitch::Mending {
            graft: true,
            ..Default::default()
        },
        ..LoadOptions::of(Source::File(path(sample)))
    };
    pjit::load::load(&options, &Diagnostics::new()).expect("the recording is there")
}

/// From the file to the profile.
#[divan::bench(args = SAMPLES)]
fn whole(bencher: Bencher<'_, '_>, sample: &str) {
    bencher.bench_local(|| load(sample));
}

/// The caller report of a profile.
#[divan::bench(args = SAMPLES)]
fn print_report(bencher: Bencher<'_, '_>, sample: &str) {
    let profile = load(sample);
    let options = ReportOptions {
        rows: RowOptions {
            children: false,
            ..RowOptions::default()
        },
        ..ReportOptions::default()
    };
    bencher.bench_local(|| {
        let report = pjit::report::build(&profile, &options).expect("there are samples");
        pjit::output::stdio::write(&report, &mut io::sink()).expect("a sink takes everything");
    });
}

/// Folded stacks of a profile.
#[divan::bench(args = SAMPLES)]
fn print_folded(bencher: Bencher<'_, '_>, sample: &str) {
    let profile = load(sample);
    let options = FoldOptions {
        pid: false,
        tid: false,
        annotate_kernel: false,
        annotate_jit: false,
        weight: Weight::Period,
        events: Vec::new(),
        threads: 1,
        ..FoldOptions::default()
    };
    bencher.bench_local(|| folded::write(&profile, &options, &mut io::sink()));
}

/// A dump of 2 000 functions.
#[divan::bench]
fn jitdump(bencher: Bencher<'_, '_>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/node");
    let dump = std::fs::read_dir(folder)
        .expect("the sample is there")
        .map(|entry| entry.expect("it can be listed").path())
        .find(|path| path.extension().is_some_and(|e| e == "dump"))
        .expect("it has a dump");
    let bytes = std::fs::read(dump).expect("it can be read");
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            let mut reader = pjit::jitdump::dump::Reader::new(black_box(&bytes)).ok()?;
            while reader.step().is_some() {}
            Some(reader.counts().loads)
        });
}

/// The kernel's symbols of this machine (none where they are hidden).
#[divan::bench]
fn kallsyms(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let search = SearchPaths {
            kallsyms: Some(PathBuf::from("/proc/kallsyms")),
            ..SearchPaths::default()
        };
        let mut dsos = DsoTable::new(&store, search, &diag);
        let kernel = dsos.intern(b"[kernel.kallsyms]", DsoKind::Kernel, None, None);
        dsos.symbols(kernel).map(|table| table.len())
    });
}

/// Names of three languages.
#[divan::bench]
fn demangling(bencher: Bencher<'_, '_>) {
    let names: [&[u8]; 3] = [
        b"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
        b"_RNvMNtCs4fqI2P2rA04_4core3fmtNtB2_9Formatter9write_str",
        b"_ZNSt6vectorIjSaIjEE17_M_realloc_insertIJRKjEEEvN9__gnu_cxx17__normal_iteratorIPjS1_EEDpOT_",
    ];
    bencher
        .counter(ItemsCount::new(names.len()))
        .bench_local(|| {
            names
                .iter()
                .map(|name| demangle(black_box(name), NameStyle::Short).len())
                .sum::<usize>()
        });
}
