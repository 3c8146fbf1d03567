//! What belongs to a recording, and where each is looked for: files with symbols, dumps, modules, source maps.

use std::time::{Duration, UNIX_EPOCH};

use super::options::LoadOptions;
use crate::address::Timestamp;
use crate::arch::Arch;
use crate::collect::Collected;
use crate::diagnostics::{Diagnostics, OfFiles};
use crate::dso::{self, DsoTable, KernelIdentity, Span};
use crate::find::SearchPaths;
use crate::input::{BUNDLE_ROOT, Refusal, Store, Story, is_link, this_machine};
use crate::jit::{JitBuilder, JitCodeId, RecordingClock};
use crate::needs::Needs;
use crate::perfdata::{BuildIdEntry, CpuMode, OpenError, Recording};
use crate::session::Session;
use crate::symbolize::{RanFunctions, RanTexts, SourceMapSearch, SourceMaps};
use crate::wasm::{self, WasmCode};

/// As in perf, a file that was asked for and cannot be read is no reason to take another.
pub(super) fn refuse_unfit(search: &SearchPaths, store: &Store) -> Result<(), OpenError> {
    if let Some(door) = search.named_vmlinux() {
        store.map(&door)?;
    }
    match search.named_kallsyms() {
        Some(door) => match dso::kallsyms_problem(store.map(&door)?) {
            Some(problem) => Err(OpenError::Unfit {
                path: door.path().to_owned(),
                problem: problem.to_owned(),
            }),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

static OUTSIDE: OfFiles = OfFiles {
    one: "a link leads out of the folder in which this was looked for; not opened",
    several: "were not opened, because links lead out of the folder in which they were looked for",
    advice: "Name what is meant by its option (--perf-map, --jitdump, --kallsyms, --wasm, --source-map)",
};
static OUTSIDE_ROOT: OfFiles = OfFiles {
    one: "a link and no folder; nothing is looked for in it",
    several: "are links and no folders; nothing is looked for in them",
    advice: "Name the folder with --symfs",
};
static KERNELS: OfFiles = OfFiles {
    one: "a file that the kernel makes (proc, sysfs, tracefs); not opened, because only the recording names it",
    several: "that the kernel makes (proc, sysfs, tracefs) were not opened, because only the recording names them",
    advice: "Copies of them can be given with --symfs",
};

/// Says which files were there and not opened.
pub(super) fn tell_refused(store: &Store, diag: &Diagnostics) {
    for (why, path) in store.take_refused() {
        let path = path.display().to_string();
        match why {
            Refusal::Outside => diag.warn_of_file(&OUTSIDE, path),
            Refusal::Kernel => diag.warn_of_file(&KERNELS, path),
            Refusal::Changed => {}
        }
    }
}

/// The tables of DSOs and JIT code, empty but knowing where to look.
pub(super) fn companions<'a>(
    recording: &Recording<'a>,
    store: &'a Store,
    options: &LoadOptions,
    diag: &'a Diagnostics,
) -> (DsoTable<'a>, JitBuilder<'a>) {
    let folder = options.source.folder();
    let story = story(recording, store, options);
    let search = options.search.beside(&folder);
    let beside = folder.join(BUNDLE_ROOT);
    if search.symfs.is_none() && is_link(&beside) {
        diag.warn_of_file(&OUTSIDE_ROOT, beside.display().to_string());
    }
    let jit_search = search.of_jit(made_at(recording, story.as_ref()).map(|span| span.end));
    let mut dsos = DsoTable::new(store, search, diag);
    // A recording that does not tell is taken for one of this machine.
    if let Some(arch) = recording.features.arch.as_deref() {
        dsos.set_arch(Arch::from_uname(arch));
    }
    if let Some(when) = made_here(recording, story.as_ref()) {
        dsos.set_made_here(when, began(recording));
    }
    let recorded = recording.features.build_ids.iter();
    dsos.set_build_ids(recorded.map(|entry| (entry.name.clone(), entry.build_id)));
    dsos.set_kernel_identity(kernel_identity(recording));
    let clock = RecordingClock::of(recording);
    (dsos, JitBuilder::new(store, jit_search, clock))
}

/// Times of the first and of the last sample, where the header has them. Recordings of probes alone have zeros there, and those of
/// commands that perf did not start.
fn sample_time(recording: &Recording<'_>) -> Option<(u64, u64)> {
    let told = recording.features.sample_time;
    told.filter(|(first, last)| 0 < *first && first <= last)
}

/// When [`made_at`] begins, by the recording's clock.
fn began(recording: &Recording<'_>) -> Option<Timestamp> {
    let first = sample_time(recording).map(|(first, _)| first);
    let clock = || Some(recording.features.clock_data?.clock_ns);
    first.or_else(clock).map(Timestamp)
}

/// When a recording was made, if that was on this machine with this kernel.
fn made_here(recording: &Recording<'_>, story: Option<&Story>) -> Option<Span> {
    let features = &recording.features;
    let own = (features.hostname.clone()?, features.os_release.clone()?);
    made_at(recording, story).filter(|_| this_machine() == Some(own))
}

/// What `pjit record` says of a recording.
pub(super) fn story(
    recording: &Recording<'_>,
    store: &Store,
    options: &LoadOptions,
) -> Option<Story> {
    let began = recording.features.clock_data?.wall_ns;
    Story::of(&options.source.folder(), store).filter(|story| story.is_of(began))
}

/// When a recording was made, by the clock of files. A copy of a recording is younger than the recording, so its clock counts
/// where it tells the time, and what `pjit record` says.
fn made_at(recording: &Recording<'_>, story: Option<&Story>) -> Option<Span> {
    /// perf writes the end of the file some time after the last sample.
    const WRITING: u64 = 1_000_000_000;
    let features = &recording.features;
    let written = features.captured?;
    let written = story.map_or(written, |story| written.min(story.ended));
    let Some((first, last)) = sample_time(recording) else {
        let began = features.clock_data.map_or(0, |data| data.wall_ns);
        let began = UNIX_EPOCH.checked_add(Duration::from_nanos(began))?;
        return Some(began.min(written)..written);
    };
    let length = Duration::from_nanos(last - first);
    let of_file = written.checked_sub(length).unwrap_or(UNIX_EPOCH)..written;
    let by_clock = features.clock_data.and_then(|data| {
        let at = |time: u64| {
            let wall = data.wall_ns.checked_add(time)?.checked_sub(data.clock_ns)?;
            UNIX_EPOCH.checked_add(Duration::from_nanos(wall))
        };
        Some(at(first)?..at(last.checked_add(WRITING)?)?.min(written))
    });
    Some(by_clock.unwrap_or(of_file))
}

fn kernel_identity(recording: &Recording<'_>) -> KernelIdentity {
    let build_id = recording
        .features
        .build_ids
        .iter()
        .find(|entry| is_kernel(entry))
        .map(|entry| entry.build_id);
    KernelIdentity {
        os_release: recording.features.os_release.clone(),
        build_id,
    }
}

/// Whether it is of the kernel itself, which has its file's path where the recorder knew that.
fn is_kernel(entry: &BuildIdEntry) -> bool {
    let base = entry.name.rsplit(|&byte| byte == b'/').next();
    let is_file = base.is_some_and(|base| base.starts_with(b"vmlinux"));
    entry.name.starts_with(b"[kernel.kallsyms]") || entry.cpumode == CpuMode::Kernel && is_file
}

/// Where scripts come from, if lines or original names are asked for.
pub(super) fn source_maps<'a>(
    (recording, session): (&Recording<'_>, &'a Session<'_>),
    store: &'a Store,
    (options, needs): (&LoadOptions, Needs),
    diag: &'a Diagnostics,
) -> SourceMaps<'a> {
    let is_asked = needs.contains(Needs::ORIGINALS) || !options.search.source_maps.is_empty();
    let renames = is_asked && !options.refused.contains(Needs::ORIGINALS);
    if !needs.intersects(Needs::LINES | Needs::CODE) && !renames {
        return SourceMaps::default();
    }
    let search = options.search.beside(&options.source.folder());
    let story = story(recording, store, options);
    let ended = made_at(recording, story.as_ref()).map(|span| span.end);
    SourceMaps::new(SourceMapSearch {
        store,
        diag,
        places: search.of_scripts(),
        sources: options.sources(&[]),
        renames,
        ran: RanTexts::new(|| functions_of_scripts(session), ended),
    })
}

/// Where functions of scripts begin, as the names of all recorded code tell, and lines the files of what `eval` made.
fn functions_of_scripts(session: &Session<'_>) -> RanFunctions {
    let mut functions = RanFunctions::default();
    for id in (0..).take(session.jit.code_count()).map(JitCodeId) {
        let code = session.jit.code(id);
        let row = code.producer().row();
        let name = session.jit.name_with_file(id);
        let place = row.has_source_maps.then(|| (row.place)(&name)).flatten();
        let Some(place) = place else { continue };
        let script = String::from_utf8_lossy(&name[place.file]);
        let word = String::from_utf8_lossy(&name[place.word]);
        functions.add(&script, (place.line, place.column), &word);
        if session.jit.evaled_file(id).is_some() {
            functions.add_evaled(&script);
        }
    }
    functions
}

/// What is known of WebAssembly besides the dump, if lines or inlined functions are asked for.
pub(super) fn wasm_code<'a>(
    session: &Session<'a>,
    collected: &Collected,
    recording: &Recording<'a>,
    store: &'a Store,
    (options, needs): (&LoadOptions, Needs),
    diag: &'a Diagnostics,
) -> WasmCode<'a> {
    let of_dwarf = Needs::INLINED | Needs::LINES | Needs::CODE | Needs::WASM_LINES;
    if !needs.intersects(of_dwarf) {
        return WasmCode::default();
    }
    let search = wasm::Search {
        store,
        paths: &options.search.beside(&options.source.folder()),
        command: &recording.features.cmdline,
    };
    WasmCode::find(&search, session, &collected.pcs, diag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dso::BuildId;

    #[test]
    fn the_kernel_is_known_by_its_file_too() {
        let is = |name: &str, cpumode: CpuMode| {
            is_kernel(&BuildIdEntry {
                pid: -1,
                build_id: BuildId::new(&[7; 20]).expect("not zero"),
                name: name.into(),
                cpumode,
            })
        };
        assert!(is("[kernel.kallsyms]", CpuMode::Kernel));
        assert!(is("/usr/lib/debug/boot/vmlinux-6.1", CpuMode::Kernel));
        assert!(
            !is("/home/me/vmlinux", CpuMode::User),
            "a program may have that name"
        );
        assert!(!is("/lib/modules/6.1/kernel/net/nf.ko", CpuMode::Kernel));
        assert!(!is("[vdso]", CpuMode::User));
    }
}
