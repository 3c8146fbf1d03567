//! What the fuzz targets share: a folder in memory, recordings around the fuzzed bytes, the whole program in-process.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/integration/recording.rs"]
mod recording;

pub mod custom;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Parser;
use pjit::ask::{Arena, AskError, Library, Question, Report, Request, Script, Summary};
use pjit::cli::input::Environment;
use pjit::cli::{Cli, Command};
use pjit::diagnostics::Diagnostics;
use pjit::dso::{DsoKind, DsoTable};
use pjit::find::SearchPaths;
use pjit::input::Store;
use pjit::load::{LoadOptions, Source};
use pjit::needs::Needs;
use pjit::output::answer::{self, Format};
use pjit::output::folded::{self, FoldOptions};
use pjit::output::stdio;
use pjit::output::stat;
use pjit::report::options::ReportOptions;
use pjit::symbolize::{self, Query, Site};
use pjit::totals::Apart;
use pjit::wasm::WasmCode;

use recording::{CONTEXT_USER, Recording, Sample, Stacks, User};

/// Where the mapped file and the JIT code of the recordings made here lie.
pub const FILE_START: u64 = 0x40_0000;
/// Length of that mapping.
pub const FILE_LENGTH: u64 = 0x20_0000;
/// Where JIT code may lie.
pub const JIT_START: u64 = 0x7000_0000;
/// Length of that mapping.
pub const JIT_LENGTH: u64 = 0x10_0000;
/// Top of the recorded stacks.
const STACK: u64 = 0x7ffe_0000_0000;
/// The one process.
pub const PID: u32 = 77;

/// A folder in memory, one for each process, emptied by nobody: targets overwrite their files.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let parent = if Path::new("/dev/shm").is_dir() {
            "/dev/shm"
        } else {
            "/tmp"
        };
        let folder = PathBuf::from(format!("{parent}/pjit-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("symfs")).expect("it can be made");
        folder
    })
}

/// Writes a file into the folder and returns its path.
pub fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("it can be written");
    path
}

/// Where files are looked for: in the folder and nowhere else.
pub fn search() -> SearchPaths {
    SearchPaths {
        symfs: Some(folder().join("symfs")),
        ..SearchPaths::default()
    }
}

/// The whole program on a recording (`perf.data` of the folder): everything is read, unwound, symbolised and printed.
pub fn run(recording: &[u8]) {
    write("perf.data", recording);
    let diag = Diagnostics::new();
    let (load, fold) = options();
    if let Ok(profile) = pjit::load::load(load, &diag) {
        folded::write(&profile, fold, &mut io::sink()).expect("a sink takes everything");
        let options = ReportOptions::default();
        if let Ok(report) = pjit::report::build(&profile, &options) {
            stdio::write(&report, &mut io::sink()).expect("a sink takes everything");
        }
    }
}

fn asked<Q: Question>(request: &Request<Q>) -> Result<Q::Answer, AskError> {
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    request.ask(&Library::of_one_question(&arena, &diag))
}

/// `pjit fold` of a recording with more options, on so many threads.
pub fn folded_with(recording: &[u8], arguments: &[&str], threads: usize) -> String {
    write("perf.data", recording);
    let Command::Fold(arguments) = parsed("fold", arguments) else {
        unreachable!("it says fold")
    };
    let request = arguments.request(&Environment::default());
    let mut request = request.expect("known filters");
    request.load.reading.threads = threads;
    let mut text = Vec::new();
    if let Ok(folded) = asked(&request) {
        folded.write(&mut text).expect("a vector takes everything");
    }
    String::from_utf8(text).expect("names are text")
}

/// `pjit script` of a recording, with all its columns. Those that not all samples have are refused, so that there are several
/// requests.
pub fn run_script(recording: &[u8]) {
    const FIELDS: [&str; 4] = [
        "+srcline,+cpu",
        "+srcline",
        "tid,ip,sym,symoff,dso,addr,data_src,weight,brstacksym",
        "ip,dso,brstackoff",
    ];
    static REQUESTS: OnceLock<Vec<Request<Script>>> = OnceLock::new();
    write("perf.data", recording);
    let requests = REQUESTS.get_or_init(|| {
        let request = |fields: &&str| match parsed("script", &["-F", fields]) {
            Command::Script(arguments) => arguments
                .request(&Environment::default())
                .expect("these fields go together"),
            _ => unreachable!("it says script"),
        };
        FIELDS.iter().map(request).collect()
    });
    for request in requests {
        if let Ok(samples) = asked(request) {
            samples.write(&mut io::sink()).expect("a sink takes everything");
        }
    }
}

/// `pjit report` of a recording's branches and accesses to memory, with all keys of them.
pub fn run_report(recording: &[u8]) {
    const ROWS: [&[&str]; 4] = [
        &["-b"],
        &[
            "-b",
            "-s",
            "dso_to,symbol_from,addr_from,addr_to,srcline_from,srcline_to,mispredict,in_tx,abort,weight,dso,sym",
            "-S",
            "main,0x400000",
        ],
        &["--mem-mode"],
        &["--mem-mode", "-s", "dcacheline,weight,ins_lat,p_stage_cyc,local_p_stage_cyc,srcline", "-v"],
    ];
    static REQUESTS: OnceLock<Vec<Request<Report>>> = OnceLock::new();
    write("perf.data", recording);
    let requests = REQUESTS.get_or_init(|| {
        let request = |rows: &&[&str]| match parsed("report", rows) {
            Command::Report(arguments) => {
                let command = arguments.resolve(&Environment::default());
                command.expect("these keys go together").request
            }
            _ => unreachable!("it says report"),
        };
        ROWS.iter().map(request).collect()
    });
    for request in requests {
        let Ok(reported) = asked(request) else {
            continue;
        };
        if let Ok(report) = reported.build() {
            stdio::write(&report, &mut io::sink()).expect("a sink takes everything");
        }
    }
}

/// `pjit summary` of a recording, with what it says of branches.
pub fn run_summary(recording: &[u8]) {
    static REQUEST: OnceLock<Request<Summary>> = OnceLock::new();
    write("perf.data", recording);
    let request = REQUEST.get_or_init(|| Request::of(options().0.clone(), Summary::default()));
    if let Ok(summarised) = asked(request) {
        for format in [Format::Text, Format::Json] {
            answer::write(&summarised, format, None, &mut io::sink()).expect("a sink takes everything");
        }
    }
}

/// `pjit stat` of a recording of `perf stat`.
pub fn run_stat(recording: &[u8]) {
    let source = Source::File(write("perf.data", recording));
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    let library = Library::of_one_question(&arena, &diag);
    for apart in [None, Some(Apart::Cpu), Some(Apart::Core), Some(Apart::Node)] {
        if let Ok(Some(totals)) = library.counts(&source, apart) {
            stat::write(&totals, &mut io::sink()).expect("a sink takes everything");
        }
    }
}

/// `pjit report --header-only -I`, then [`run`].
pub fn run_header(recording: &[u8]) {
    let source = Source::File(write("perf.data", recording));
    let _ = pjit::load::header(&source, true, &Diagnostics::new());
    run(recording);
}

/// Symbols, inlined functions and lines at many addresses of `symfs/fuzzed`.
pub fn resolve_all() {
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, search(), &diag);
    let dso = dsos.intern(b"/fuzzed", DsoKind::File, None, None);
    let queries: Vec<_> = (0..0x4000)
        .step_by(0x80)
        .map(|address| Query {
            place: Site::Dso(dso),
            address,
            inlines: true,
            lines: true,
        })
        .collect();
    let wasm = WasmCode::default();
    let _ = symbolize::resolve(request(&queries), &dsos, &wasm);
}

fn request(queries: &[Query]) -> symbolize::Request<'_> {
    symbolize::Request {
        queries,
        names: symbolize::Options::default(),
        needs: Needs::empty(),
        bare: &[],
        threads: 1,
    }
}

/// Inlined functions and lines of WebAssembly.
pub fn resolve_wasm(queries: &[Query], wasm: &WasmCode<'_>) {
    let (store, diag) = (Store::new(), Diagnostics::new());
    let dsos = DsoTable::new(&store, search(), &diag);
    let _ = symbolize::resolve(request(queries), &dsos, wasm);
}

/// `pjit fold` with everything that makes work.
fn options() -> &'static (LoadOptions, FoldOptions) {
    static OPTIONS: OnceLock<(LoadOptions, FoldOptions)> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let Command::Fold(arguments) = parsed("fold", &["--tid", "--all"]) else {
            unreachable!("it says fold")
        };
        let request = arguments.request(&Environment::default());
        let Request { mut load, view, .. } = request.expect("known filters");
        load.needs = folded::NEEDS | Needs::LINES | Needs::CODE | Needs::RANGES;
        (load, view.options)
    })
}

/// A command line, with all files in the folder.
fn parsed(view: &str, arguments: &[&str]) -> Command {
    let start = ["pjit", view, "--jobs", "1"]
        .into_iter()
        .chain(arguments.iter().copied());
    let places = [
        ("--symfs", "symfs"),
        ("--kallsyms", "kallsyms"),
        ("-i", "perf.data"),
    ];
    write("kallsyms", b"ffffffff81000000 T _stext\n");
    let places = places
        .into_iter()
        .flat_map(|(option, file)| [PathBuf::from(option), folder().join(file)]);
    Cli::try_parse_from(start.map(PathBuf::from).chain(places))
        .expect("known options")
        .command
}

/// A recording of one process that has `/fuzzed` mapped, a dump, and JIT memory: each of `user` is a sample.
pub fn recording_of(users: &[(u64, [u64; 20], &[u8])]) -> Vec<u8> {
    let mut recording = Recording::new(Stacks::Dwarf);
    recording.comm(PID, PID, b"fuzzed");
    recording.map(PID, FILE_START, FILE_LENGTH, 0, b"/fuzzed");
    recording.map(PID, JIT_START, JIT_LENGTH, 0, b"//anon");
    recording.map(
        PID,
        0x1000,
        0x1000,
        0,
        format!("/tmp/jit-{PID}.dump").as_bytes(),
    );
    for (i, (ip, registers, stack)) in users.iter().enumerate() {
        let chain = [CONTEXT_USER, *ip];
        recording.sample(&Sample {
            ip: *ip,
            pid: PID,
            tid: PID,
            time: 1_000_000 + 1_000 * i as u64,
            period: 1,
            chain: &chain,
            user: Some(User { registers, stack }),
        });
    }
    recording.file()
}

/// Registers of a sample at `ip` whose stack copy is `stack` bytes long; all others point into the stack and the code.
pub fn registers(ip: u64, stack: usize) -> [u64; 20] {
    let mut registers = [ip; 20];
    let low = STACK - stack as u64;
    (registers[6], registers[7], registers[8]) = (low + stack as u64 / 2 / 16 * 16, low, ip);
    registers[1] = low + 64;
    registers
}

/// A stack that is full of addresses: words of `bytes`, made to point into the file, the JIT code or the stack.
pub fn stack(bytes: &[u8]) -> Vec<u8> {
    let low = STACK - (bytes.len() / 4 * 8) as u64;
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for word in bytes.chunks_exact(4) {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let value = u64::from(word >> 2);
        let word = match word & 3 {
            0 => FILE_START + value % FILE_LENGTH,
            1 => JIT_START + value % 0x1000,
            2 => low + value % (bytes.len() as u64 * 2 + 1),
            _ => value,
        };
        out.extend(word.to_le_bytes());
    }
    out
}

/// A pipe stream: its header, then `bytes` as records.
pub fn stream_of(bytes: &[u8]) -> Vec<u8> {
    [&b"PERFILE2\x10\0\0\0\0\0\0\0"[..], bytes].concat()
}

/// A small pipe stream's records, to which compressed ones can be added.
pub fn stream_head() -> Vec<u8> {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(PID, PID, b"fuzzed");
    recording.stream()
}

/// The dump with its code moved into the JIT mapping of [`recording_of`], as that process' own: whatever its records say of
/// process, time and address is made to fit, the rest stays as it is.
pub fn adopted(dump: &[u8]) -> Vec<u8> {
    let mut dump = dump.to_vec();
    let u32_at = |dump: &[u8], at: usize| {
        dump.get(at..at + 4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    let put = |dump: &mut [u8], at: usize, bytes: &[u8]| {
        if let Some(place) = dump.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(&mut dump, 20, &PID.to_le_bytes());
    put(&mut dump, 24, &1_000u64.to_le_bytes());
    let mut at = u32_at(&dump, 8).unwrap_or(40) as usize;
    let mut next = JIT_START;
    while let (Some(kind), Some(size)) = (u32_at(&dump, at), u32_at(&dump, at.saturating_add(4))) {
        put(
            &mut dump,
            at + 8,
            &(2_000 + (at as u64 & 0xfff)).to_le_bytes(),
        );
        if kind == 0 {
            put(&mut dump, at + 16, &PID.to_le_bytes());
            put(&mut dump, at + 24, &next.to_le_bytes());
            put(&mut dump, at + 32, &next.to_le_bytes());
            next += u64::from(u32_at(&dump, at + 40).unwrap_or(0)) % 0x400;
        }
        at = at.saturating_add(size.max(16) as usize);
    }
    dump
}
