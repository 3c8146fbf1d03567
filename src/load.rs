//! The reading half as one function: from the path of a recording to the [`Profile`] that views show.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::assembly::{self, Assembly};
use crate::bundle::{self, Plan};
use crate::check::{self, Evidence, Stages, Weights};
use crate::collect::{self, Again, Collected, MapCache, Needs, Payloads, Rows};
use crate::diagnostics::Diagnostics;
use crate::dso::elf::Machine;
use crate::dso::{self, DsoTable, KernelIdentity, SearchPaths};
use crate::input::{self, Ledger, Store, Window};
use crate::perfdata::attr::sample_type;
use crate::perfdata::{Delivered, Event, NoField, OpenError, Recording};
use crate::profile::{
    self, EventId, EventSummary, FrameId, FrameNeeds, Profile, Quality, RecordingSummary, Sampling,
    StackEnd, Wait,
};
use crate::session::jit::{JitBuilder, JitSearch, RecordingClock};
use crate::session::listing::{self, Listing};
use crate::session::marks::Asked;
use crate::session::{Filter, Session};
use crate::stitch::{self, Mended, Mending};
use crate::symbolize::{self, Answers, SourceMapSearch, SourceMaps};
use crate::time_spec::TimeSpec;
use crate::totals::{self, Totals};
use crate::unwind::CfiTables;
use crate::wasm::{self, WasmCode, WasmSearch};
use crate::weigh::{self, WeighError};

/// Where the recording comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or a pipe stream that was saved to one.
    File(PathBuf),
    /// A pipe stream on standard input.
    Stdin,
    /// As perf without `-i`: standard input when that is a FIFO, else `perf.data`. A FIFO that is closed
    /// without a byte (a caller that gives its children a pipe and nothing in it) counts as none.
    Default,
}

impl Source {
    /// As messages name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "-".to_owned(),
            Self::Default => DEFAULT_FILE.to_owned(),
        }
    }

    /// The folder in which companions of the recording are looked for.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        match self {
            Self::File(path) => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
            Self::Stdin | Self::Default => PathBuf::from("."),
        }
    }
}

/// Everything that decides what ends up in the profile.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The recording.
    pub source: Source,
    /// Where symbols are looked for; the recording's folder is filled in here.
    pub search: SearchPaths,
    /// Where dumps and perf maps are looked for besides the recorded paths.
    pub jitdumps: Vec<PathBuf>,
    /// Where perf maps are looked for besides `/tmp`.
    pub perf_maps: Vec<PathBuf>,
    /// Where compiled modules of WebAssembly and the modules themselves are looked for besides the recording's folder.
    pub wasm: WasmSearch,
    /// Folders with source maps of scripts; with any, names have original places.
    pub source_maps: Vec<PathBuf>,
    /// Samples to keep.
    pub filter: Filter,
    /// Ranges of time to keep besides, as shares of the recording perhaps.
    pub time: Option<TimeSpec>,
    /// What is computed for each sample.
    pub needs: Needs,
    /// What is computed for each frame.
    pub frames: FrameNeeds,
    /// What is done about stacks that were cut.
    pub mending: Mending,
    /// How names are shown.
    pub names: symbolize::Options,
    /// `-I`: the header block in full.
    pub full_header: bool,
    /// Instead of a profile, a listing of the recording.
    pub listing: Option<Listing>,
    /// Words of `--sort` that are fields of tracepoints.
    pub fields: Vec<String>,
    /// What samples weigh.
    pub weight: weigh::Options,
}

impl LoadOptions {
    /// The whole recording with merged stacks, without inlined functions, and what belongs to it where perf would look.
    #[must_use]
    pub fn of(source: Source) -> Self {
        Self {
            source,
            search: SearchPaths::default(),
            jitdumps: Vec::new(),
            perf_maps: Vec::new(),
            wasm: WasmSearch::default(),
            source_maps: Vec::new(),
            filter: Filter::default(),
            time: None,
            needs: Needs::default(),
            frames: FrameNeeds::default(),
            mending: Mending::default(),
            names: symbolize::Options::default(),
            full_header: false,
            listing: None,
            fields: Vec::new(),
            weight: weigh::Options::default(),
        }
    }
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The recording, or what was named with it, cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no field of a name that was given.
    #[error(transparent)]
    Field(#[from] NoField),
    /// It does not have what the weights take.
    #[error(transparent)]
    Weight(#[from] WeighError),
}

/// Reads a recording and everything that belongs to it.
///
/// # Errors
/// When the recording, or a kernel symbol file that was named, cannot be opened at all; damage and missing companions are warnings in `diag`.
pub fn load(options: &LoadOptions, diag: &Diagnostics) -> Result<Profile, LoadError> {
    let (profile, ()) = read(options, diag, |_| ())?;
    report_quality(&profile.quality, diag);
    Ok(profile)
}

/// The same for `pjit check`: what the recording says about its own quality.
///
/// # Errors
/// As [`load`].
pub fn examine(options: &LoadOptions, diag: &Diagnostics) -> Result<Evidence, LoadError> {
    let gather = |stages: &Stages<'_, '_>| check::gather(options.source.name(), stages);
    Ok(read(options, diag, gather)?.1)
}

/// Both: the profile, and what the recording says about its own quality.
///
/// # Errors
/// As [`load`].
pub fn load_examined(
    options: &LoadOptions,
    diag: &Diagnostics,
) -> Result<(Profile, Evidence), LoadError> {
    let gather = |stages: &Stages<'_, '_>| check::gather(options.source.name(), stages);
    read(options, diag, gather)
}

/// The same for `pjit annotate`: the code of the functions that `choose` takes of those with samples.
///
/// # Errors
/// As [`load`].
pub fn annotate(
    options: &LoadOptions,
    request: &assembly::Request,
    diag: &Diagnostics,
    choose: impl FnOnce(&mut assembly::Functions) -> Vec<usize>,
) -> Result<(Profile, Assembly), LoadError> {
    read(options, diag, |stages| {
        assembly::list(&material(stages, options), request, choose)
    })
}

/// What listings of code are made of.
fn material<'s, 'a>(stages: &Stages<'s, 'a>, options: &LoadOptions) -> assembly::Material<'s, 'a> {
    assembly::Material {
        session: stages.session,
        collected: stages.collected,
        answers: stages.answers,
        wasm: stages.wasm,
        names: options.names.names,
        threads: options.needs.threads,
    }
}

/// The same for `pjit bundle`: everything that a view of the recording could ask for, and the files that it was found in.
///
/// # Errors
/// As [`load`].
pub fn bundle(
    options: &LoadOptions,
    request: &assembly::Request,
    wanted: bundle::Wanted,
    diag: &Diagnostics,
) -> Result<(Profile, Plan), LoadError> {
    let ledger = Arc::new(Ledger::default());
    let store = Store::with_ledger(Arc::clone(&ledger));
    read_from(store, options, diag, |stages| {
        let assembly = assembly::list(&material(stages, options), request, |functions| {
            (0..functions.all.len()).collect()
        });
        bundle::plan(stages, &assembly, &ledger, wanted)
    })
}

/// Goes through all stages, and lets `look` see what they made before only the profile is left.
fn read<T: Default>(
    options: &LoadOptions,
    diag: &Diagnostics,
    look: impl FnOnce(&Stages<'_, '_>) -> T,
) -> Result<(Profile, T), LoadError> {
    read_from(Store::new(), options, diag, look)
}

/// The same with a store that is there.
fn read_from<T: Default>(
    store: Store,
    options: &LoadOptions,
    diag: &Diagnostics,
    look: impl FnOnce(&Stages<'_, '_>) -> T,
) -> Result<(Profile, T), LoadError> {
    // As in perf, a file that was asked for and cannot be read is no reason to take another.
    for path in [&options.search.vmlinux, &options.search.kallsyms]
        .into_iter()
        .flatten()
    {
        Store::open(path).map_err(OpenError::from)?;
    }
    if let Some(path) = &options.search.kallsyms
        && let Some(problem) = dso::kallsyms_problem(path)
    {
        let (path, problem) = (path.clone(), problem.to_owned());
        return Err(OpenError::Unfit { path, problem }.into());
    }
    let resolved;
    let options = match &options.time {
        Some(time) => {
            resolved = LoadOptions {
                filter: in_time(time, options, diag)?,
                ..options.clone()
            };
            &resolved
        }
        None => options,
    };
    let mut clock = StageClock::start();
    let recording = open(&options.source, &store, diag)?;
    check_cpus(&recording, options)?;
    let (points, events) = (&recording.tracepoints, &recording.events);
    let raw = options.needs.raw_trace;
    let is_default = raw && options.needs.trace == Payloads::IfNothingElse;
    let fields = if is_default && events.iter().all(|event| event.attr.is_tracepoint()) {
        points.field_keys(&["trace_fields".to_owned()], events, raw)?
    } else {
        points.field_keys(&options.fields, events, raw)?
    };
    let (mut dsos, mut jit) = companions(&recording, &store, options, diag);
    let kernel = dsos.kernel_loader();
    let made = std::thread::scope(|scope| {
        if options.listing.is_none() {
            // What the recording leads to is read while the rest of it is.
            let (dumps, symbols) = (jit.early_reader(), dsos.preloader());
            scope.spawn(|| dumps.run());
            scope.spawn(|| symbols.run());
        }
        // Kernel symbols take longer to read than a small recording: on their way as soon as one is needed.
        let mut start = Some(|| scope.spawn(|| kernel.load()));
        let needs = Needs {
            fields: !fields.is_empty(),
            ..settled(options, &recording)
        };
        let is_weighed = !options.weight.spec.is_default() && options.listing.is_none();
        let kept = if (needs.reads_records() || is_weighed) && options.listing.is_none() {
            Window::BEHIND_FIRST
        } else {
            recording.read_once();
            Window::BEHIND
        };
        let pairs = is_weighed && options.weight.spec.pairs();
        let asked = Asked {
            filter: if pairs {
                Filter::default()
            } else {
                options.filter.clone()
            },
            marks: pairs || needs.waits || options.weight.tells_pairs,
            parallelism: needs.parallelism,
        };
        let mut session = Session::index(
            &recording,
            &Window::new(&store, recording.region(), kept).shared_by(needs.threads),
            dsos,
            jit,
            &asked,
            diag,
            &mut || {
                if let Some(start) = start.take() {
                    start();
                }
            },
        );
        clock.lap("reading");
        if let Some(listing) = options.listing {
            let mut profile = Profile::default();
            profile.recording.path = options.source.name();
            profile.recording.dump = list(listing, &recording, &session);
            return Ok((profile, T::default()));
        }
        let source = weigh::Source {
            recording: &recording,
            store: &store,
            threads: needs.threads,
            diag,
        };
        let waits = match needs.waits {
            true => weigh::waits(source, &session),
            false => Vec::new(),
        };
        if needs.stacks && session.has_return_probes {
            weigh::returns(source, &mut session);
        }
        let mut weights = Weights::of(&recording, &session);
        if options.weight.tells_pairs {
            weights.pairs = weigh::found_pairs(source, &session);
        }
        let weighed = weigh::weigh(source, &mut session, &options.weight, &options.filter)?;
        if is_weighed {
            clock.lap("weights");
        }
        let tables = Arc::new(CfiTables::new());
        let mut collected =
            collect::collect(&recording, &store, &session, &tables, needs, &fields, diag);
        let mended = mend(
            &mut collected,
            &recording,
            &session,
            tables,
            needs,
            options,
            diag,
        );
        clock.lap("stacks");
        let maps = source_maps(&store, options, diag);
        let wasm = wasm_code(&session, &collected, &recording, &store, options, diag);
        let queries = profile::queries(&collected, &wasm, options.frames);
        let resolution = symbolize::resolve(
            &queries,
            &session.dsos,
            &wasm,
            options.names,
            options.needs.threads,
        );
        clock.lap("symbols");
        let answers = Answers {
            queries: &queries,
            resolution: &resolution,
            wasm: &wasm,
            maps: &maps,
        };
        let mut profile = profile::build(
            &collected,
            &session,
            &recording.events,
            answers,
            options.names.names,
            options.frames,
            needs.threads,
        );
        if let Some(trim) = weighed.trim {
            profile.trim(trim);
        }
        let events = weighed.event.clone();
        let events = events.map_or_else(
            || events_of(&recording, &session),
            |event| vec![event.into()],
        );
        profile.events = events;
        profile.parallelism = session.parallelism.clone();
        profile.waits = waits.into_iter().map(Wait::from).collect();
        profile.fields = fields;
        summarise(&mut profile, &collected, &recording, &session, options);
        profile.quality.weights = weighed.quality;
        profile.quality.stitch_error = mended.error;
        let seen = look(&Stages {
            recording: &recording,
            session: &session,
            collected: &collected,
            mended: &mended,
            answers,
            weights: &weights,
            wasm: &wasm,
        });
        clock.lap("table");
        diag.note(clock.summary());
        Ok((profile, seen))
    });
    drop((kernel, recording));
    unmap(store);
    made
}

/// What the recording and the weights make of what is needed.
fn settled(options: &LoadOptions, recording: &Recording<'_>) -> Needs {
    let weight = &options.weight;
    let mut needs = options.needs;
    // Without stacks it would not be known where the program begins.
    needs.stacks |= weight.trims && weight.spec.trims();
    let mending = options.mending;
    needs.roots = needs.stacks && (mending.graft || mending.stitch);
    needs.paths = needs.stacks && mending.stitch;
    needs.trace = match needs.trace {
        Payloads::IfNothingElse if !weight.spec.keeps_events() => Payloads::No,
        trace => trace.settled(recording),
    };
    needs
}

/// Where scripts come from, if lines or original names are asked for.
fn source_maps<'a>(
    store: &'a Store,
    options: &LoadOptions,
    diag: &'a Diagnostics,
) -> SourceMaps<'a> {
    let frames = &options.frames;
    if !frames.lines && !frames.code && options.source_maps.is_empty() {
        return SourceMaps::default();
    }
    let search = options.search.beside(&options.source.folder());
    SourceMaps::new(SourceMapSearch {
        store,
        diag,
        folders: options.source_maps.clone(),
        roots: search.roots(),
    })
}

/// What is known of WebAssembly besides the dump, if lines or inlined functions are asked for.
fn wasm_code<'a>(
    session: &Session<'a>,
    collected: &Collected,
    recording: &Recording<'a>,
    store: &'a Store,
    options: &LoadOptions,
    diag: &Diagnostics,
) -> WasmCode<'a> {
    let frames = options.frames;
    if !frames.inlines && !frames.lines && !frames.code && !frames.wasm_lines {
        return WasmCode::default();
    }
    let folder = options.source.folder();
    let search = options.search.beside(&folder);
    let search = wasm::Search {
        store,
        named: &options.wasm,
        folder: &folder,
        roots: &search.roots(),
        command: &recording.features.cmdline,
    };
    WasmCode::find(&search, session, &collected.pcs, diag)
}

/// Completes cut stacks as far as the view wants it.
fn mend<'a>(
    collected: &mut Collected,
    recording: &Recording<'a>,
    session: &Session<'a>,
    tables: Arc<CfiTables<'a>>,
    needs: Needs,
    options: &LoadOptions,
    diag: &Diagnostics,
) -> Mended {
    let cache = MapCache::default();
    let again = Again::new(recording, session, &cache, tables, needs.dump_limit);
    let mut what = options.mending;
    if what.stitch && !again.is_possible() {
        what.stitch = false;
        diag.warn(
            "stacks are not completed from others (--stitch): streams and compressed recordings \
             cannot be read at any place; save or decompress the recording first"
                .to_owned(),
        );
    }
    let mended = stitch::mend(collected, session, &again, what);
    if what.stitch && needs.stacks {
        let refused = mended.refused.iter();
        let refused: Vec<String> = refused
            .map(|(why, count)| format!(", {count} not ({why})"))
            .collect();
        let done = format!("{} stacks completed from others", mended.stitched);
        diag.note(format!("{done}{}", refused.concat()));
    }
    mended
}

/// Gives the mapped files back beside what comes next; that takes a tenth of the time a view needs. If there is no
/// thread to be had, it is done at once.
fn unmap(store: Store) {
    let _ = std::thread::Builder::new().spawn(move || drop(store));
}

/// Without CPU numbers no sample is of a chosen CPU.
fn check_cpus(recording: &Recording<'_>, options: &LoadOptions) -> Result<(), OpenError> {
    let without = |event: &&Event| !event.attr.has(sample_type::CPU);
    let is_asked = !options.filter.cpus.is_empty();
    match recording.events.iter().find(without) {
        Some(event) if is_asked => Err(OpenError::NoCpus {
            path: PathBuf::from(options.source.name()),
            event: event.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// The lines of a listing.
fn list(listing: Listing, recording: &Recording<'_>, session: &Session<'_>) -> Vec<String> {
    match listing {
        Listing::Stats => {
            let mut samples: Vec<u64> = session
                .rowless
                .iter()
                .map(|(samples, _)| *samples)
                .collect();
            for sample in &session.samples {
                samples[usize::from(sample.event.0)] += 1;
            }
            listing::stats(&session.stats, &recording.events, &samples)
        }
        Listing::Tasks => listing::tasks(session, false),
        Listing::Mmaps => listing::tasks(session, true),
    }
}

/// The lines of `--header-only`, in full with `-I`; no record is read for them.
///
/// # Errors
/// When the recording cannot be opened.
pub fn header(source: &Source, full: bool, diag: &Diagnostics) -> Result<Vec<String>, OpenError> {
    let store = Store::new();
    Ok(open(source, &store, diag)?.header_lines(full))
}

/// The counts of `perf stat record`; nothing if the recording has samples instead.
///
/// # Errors
/// When the recording cannot be opened, or is a stream of samples, which could not be read again.
pub fn counts(source: &Source, diag: &Diagnostics) -> Result<Option<Totals>, OpenError> {
    /// `HEADER_STAT`
    const COUNTS: u32 = 19;
    let store = Store::new();
    let recording = open(source, &store, diag)?;
    let features = &recording.features;
    let is_described = features.present.iter().any(|word| *word != 0);
    if is_described && !features.has(COUNTS) {
        return Ok(None);
    }
    let is_stream = matches!(source, Source::Stdin)
        || matches!(source, Source::Default) && input::stdin_is_fifo();
    // What trouble there is with samples is told when they are read.
    let quiet = Diagnostics::new();
    let is_certain = features.has(COUNTS) || is_stream;
    match totals::counted(&recording, if is_certain { diag } else { &quiet }) {
        None if is_stream => Err(OpenError::Damaged {
            path: PathBuf::from(source.name()),
            problem: "a stream without counts; save it to a file first".to_owned(),
        }),
        found => Ok(found),
    }
}

/// The samples to keep, once the times of the recording are known.
fn in_time(
    time: &TimeSpec,
    options: &LoadOptions,
    diag: &Diagnostics,
) -> Result<Filter, OpenError> {
    let times = match time.absolute() {
        Some(times) => times,
        None => {
            let (first, last) = sample_times(&options.source, diag)?;
            time.resolve(first, last)
        }
    };
    Ok(Filter {
        times,
        ..options.filter.clone()
    })
}

/// Times of the first and the last sample in ns, for options that speak of shares of a recording.
///
/// # Errors
/// When the recording cannot be opened, is a stream (which can be read only once), or has no sample with a time.
fn sample_times(source: &Source, diag: &Diagnostics) -> Result<(u64, u64), OpenError> {
    let store = Store::new();
    let damaged = |problem: &str| OpenError::Damaged {
        path: PathBuf::from(source.name()),
        problem: problem.to_owned(),
    };
    let stream = matches!(source, Source::Stdin)
        || matches!(source, Source::Default) && input::stdin_is_fifo();
    if stream {
        return Err(damaged(
            "shares of its time are not known of a stream; save it to a file first",
        ));
    }
    let recording = open(source, &store, diag)?;
    if let Some(times) = recording.features.sample_time {
        return Ok(times);
    }
    let mut times: Option<(u64, u64)> = None;
    let diag = Diagnostics::new();
    recording.deliver(&diag, &mut |_| {}, &mut |delivered| {
        if let Delivered::Sample(head) = delivered {
            let t = head.time.0;
            let (first, last) = times.unwrap_or((t, t));
            times = Some((first.min(t), last.max(t)));
        }
    });
    times.ok_or_else(|| damaged("no sample has a time"))
}

/// The tables of DSOs and JIT code, empty but knowing where to look.
fn companions<'a>(
    recording: &Recording<'a>,
    store: &'a Store,
    options: &LoadOptions,
    diag: &'a Diagnostics,
) -> (DsoTable<'a>, JitBuilder<'a>) {
    let folder = options.source.folder();
    let search = options.search.beside(&folder);
    let jit_search = JitSearch {
        jitdumps: options.jitdumps.clone(),
        perf_maps: options.perf_maps.clone(),
        recording_dir: folder,
        cwd: PathBuf::from("."),
        symfs: search.symfs.clone(),
    };
    let mut dsos = DsoTable::new(store, search, diag);
    if let Some(machine) = recording
        .features
        .arch
        .as_deref()
        .and_then(Machine::from_uname)
    {
        dsos.set_machine(machine);
    }
    let recorded = recording.features.build_ids.iter();
    dsos.set_build_ids(recorded.map(|entry| (entry.name.clone(), entry.build_id)));
    dsos.set_kernel_identity(kernel_identity(recording));
    let clock = RecordingClock::of(recording);
    (dsos, JitBuilder::new(store, jit_search, clock))
}

fn kernel_identity(recording: &Recording<'_>) -> KernelIdentity {
    let build_id = recording
        .features
        .build_ids
        .iter()
        .find(|entry| entry.name.starts_with(b"[kernel.kallsyms]"))
        .map(|entry| entry.build_id);
    KernelIdentity {
        os_release: recording.features.os_release.clone(),
        build_id,
    }
}

/// The events of the recording, with what counts in totals but has no row.
fn events_of(recording: &Recording<'_>, session: &Session<'_>) -> Vec<EventSummary> {
    let events = recording.events.iter().zip(&session.rowless);
    events
        .map(|(event, &(samples, period))| EventSummary {
            name: event.name.clone(),
            samples,
            period,
            filtered_samples: 0,
            filtered_period: 0,
            leader: usize::from(event.leader.0),
            group_name: event.group_name.clone(),
            has_callchains: event.attr.has_callchains(),
            is_tracepoint: event.attr.is_tracepoint(),
            is_hardware: event.attr.is_hardware(),
            is_whole: is_whole(event, session),
            unit: event.attr.unit(),
            counted: None,
            notes: Vec::new(),
            sampling: match event.attr.sample_period {
                0 => Sampling::Unknown,
                hertz if event.attr.is_freq() => Sampling::PerSecond(hertz),
                period => Sampling::Every(period),
            },
        })
        .collect()
}

/// Whether each time that the event happened is a sample.
fn is_whole(event: &Event, session: &Session<'_>) -> bool {
    let attr = &event.attr;
    // With the period in samples the kernel records every hit of a tracepoint.
    let is_each = !attr.is_freq()
        && (attr.sample_period == 1 || attr.is_tracepoint() && attr.has(sample_type::PERIOD));
    is_each && session.stats.lost_events == 0 && session.stats.lost_samples_total() == 0
}

/// Fills in totals, header facts and the quality of the data.
fn summarise(
    profile: &mut Profile,
    collected: &Collected,
    recording: &Recording<'_>,
    session: &Session<'_>,
    options: &LoadOptions,
) {
    let mut quality = Quality {
        dumps: session.jit.summary(),
        kernel: session.dsos.kernel_source().unwrap_or_default().to_owned(),
        ..Quality::default()
    };
    for row in &collected.rows {
        let end = collected.stacks.tag(row.key.stack);
        let sum = &mut quality.stack_ends[end as usize];
        *sum = sum.saturating_add(row.period);
    }
    for (event, leaf, samples, period) in counted(profile, collected.kind) {
        let event = &mut profile.events[usize::from(event.0)];
        event.samples += samples;
        event.period = event.period.wrapping_add(period);
        quality.samples += samples;
        if profile[leaf].symbol.is_none() {
            quality.unresolved_samples += samples;
        }
    }
    profile.quality = quality;
    profile.recording = RecordingSummary {
        path: options.source.name(),
        lost_samples: session.stats.lost_samples_total(),
        lost_chunks: session.stats.lost_chunks,
        records: session.stats.records,
        header: recording.header_lines(options.full_header),
        time_range: time_range(session),
        wall_clock: recording
            .features
            .clock_data
            .map(|data| (data.wall_ns, data.clock_ns)),
        sockets: recording
            .features
            .cpu_topology
            .iter()
            .flat_map(|topology| topology.cpus.iter().map(|place| place.socket))
            .collect(),
        counters: session
            .counters
            .iter()
            .filter(|counter| usize::from(counter.event.0) < profile.events.len())
            .map(|c| (c.pid, c.tid, usize::from(c.event.0), c.value))
            .collect(),
        dump: Vec::new(),
        command: recording.features.cmdline.clone(),
        switches: session.switches,
        tells_switches: recording
            .events
            .iter()
            .any(|event| event.attr.is_context_switch()),
        holds_totals: session.stats.by_type.contains_key(&STAT_RECORD),
    };
}

/// Times of the first and the last sample. What `perf record --off-cpu` adds up until the end has numbers in place of times.
fn time_range(session: &Session<'_>) -> Option<(u64, u64)> {
    /// `OFF_CPU_TIMESTAMP`
    const NUMBERS: u64 = 0xffff_ffff_0000_0000;
    let mut times = session.samples.iter().map(|sample| sample.time.0);
    let first = times.next()?;
    let last = times.rev().find(|time| *time < NUMBERS);
    Some((first, last.unwrap_or(first)))
}

/// Number of the records that hold counts of `perf stat record`.
const STAT_RECORD: u32 = 76;

/// Event, leaf, number and period of samples.
fn counted(profile: &Profile, kind: Rows) -> Vec<(EventId, FrameId, u64, u64)> {
    let entries = profile.entries.iter();
    let samples = profile.samples.iter();
    match kind {
        Rows::Merged => entries
            .map(|entry| (entry.event, entry.leaf, entry.samples, entry.period))
            .collect(),
        Rows::Samples => samples
            .map(|sample| (sample.event, sample.leaf, 1, sample.period))
            .collect(),
    }
}

/// Says why stacks ended early, and what to record differently where that would help.
fn report_quality(quality: &Quality, diag: &Diagnostics) {
    /// Per cent of the weight from which a warning is worth a line.
    const WORTH_SAYING: f64 = 1.0;
    let ends: Vec<String> = quality
        .ends()
        .map(|(end, share)| format!("{} {share:.2}%", end.label()))
        .collect();
    diag.note(format!("stacks: {}", ends.join(", ")));
    let cut = quality
        .ends()
        .filter(|(end, _)| end.recorded() == StackEnd::DumpTooShort);
    let share: f64 = cut.map(|(_, share)| share).sum();
    if share >= WORTH_SAYING {
        diag.warn(format!(
            "{share:.1}% of the weight has stacks larger than what was recorded of them; \
             record more with --call-graph dwarf,65528 (pjit check tells how much is enough)"
        ));
    }
}

/// What perf reads when no recording is named.
const DEFAULT_FILE: &str = "perf.data";

fn open<'a>(
    source: &Source,
    store: &'a Store,
    diag: &Diagnostics,
) -> Result<Recording<'a>, OpenError> {
    let default = Path::new(DEFAULT_FILE);
    match source {
        Source::File(path) => Recording::open(path, store, diag),
        Source::Stdin => Recording::open(Path::new("-"), store, diag),
        Source::Default if input::stdin_is_fifo() => {
            match Recording::open(Path::new("-"), store, diag) {
                Err(OpenError::Empty { .. }) => Recording::open(default, store, diag),
                opened => opened,
            }
        }
        Source::Default => Recording::open(default, store, diag),
    }
}

/// How long each stage took, for `-v`.
struct StageClock {
    last: Instant,
    laps: Vec<String>,
}

impl StageClock {
    fn start() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, stage: &str) {
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        self.laps.push(format!("{stage} {seconds:.3} s"));
        self.last = now;
    }

    fn summary(&self) -> String {
        format!("time: {}", self.laps.join(", "))
    }
}
