//! From markers to dumps that were read: the best file for each, and dumps that no marker leads to.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::dumps::Dump;
use super::files::Finder;
use super::marker::{Marker, MarkerId};
use super::owners::Lives;
use super::{JitAbsent, JitObjectId, ProcessId};
use crate::diagnostics::Diagnostics;
use crate::dso::path_of;
use crate::ids::IndexSlice;

/// So many missing dumps are named one by one.
const MAX_NAMED: usize = 20;

/// What a marker led to.
enum FoundDump<'a> {
    /// A dump that another marker led to as well.
    Known(usize),
    New(Box<Dump<'a>>),
}

/// Opens and reads the dump of every marker, then those without a marker whose process is known. With it the markers that lead
/// nowhere.
pub(super) fn find_dumps<'a, 'm>(
    markers: &'m IndexSlice<MarkerId, [Marker]>,
    finder: &mut Finder<'a>,
    lives: &Lives,
    diag: &Diagnostics,
) -> (Vec<Dump<'a>>, Vec<&'m Marker>) {
    let mut dumps: Vec<Dump<'a>> = Vec::new();
    let mut missing = Vec::new();
    for (id, marker) in markers.iter_enumerated() {
        match dump_of(marker, finder, &dumps) {
            None => missing.push(marker),
            Some(FoundDump::Known(at)) => {
                finder.note_used(path_of(&marker.path), &dumps[at].file.path);
                dumps[at].markers.push(id);
            }
            Some(FoundDump::New(dump)) => {
                finder.note_used(path_of(&marker.path), &dump.file.path);
                dumps.push(Dump {
                    markers: vec![id],
                    ..*dump
                });
            }
        }
    }
    for path in finder.other_dumps() {
        if let Some(dump) = other_dump(&path, finder, &dumps, lives, diag) {
            finder.note_used(Path::new(path.file_name().unwrap_or_default()), &path);
            dumps.push(dump);
        }
    }
    (dumps, missing)
}

/// What is missing for good, with a warning: not of processes whose code a perf map names.
pub(super) fn absent(
    missing: Vec<&Marker>,
    perf_maps: &FxHashMap<ProcessId, JitObjectId>,
    diag: &Diagnostics,
) -> Vec<JitAbsent> {
    let is_named = |marker: &&Marker| perf_maps.contains_key(&marker.process);
    let (named, missing): (Vec<_>, Vec<_>) = missing.into_iter().partition(is_named);
    for marker in named {
        let path = String::from_utf8_lossy(&marker.path);
        diag.note(format!(
            "{path}: not found; the perf map of process {} names its code",
            marker.pid
        ));
    }
    report_missing(&missing, diag);
    let absent = missing.into_iter().map(|marker| JitAbsent {
        path: marker.path.clone(),
        pid: marker.pid,
        problem: None,
    });
    absent.collect()
}

/// The best file for a marker: one whose records may be of that process, else any dump.
fn dump_of<'a>(
    marker: &Marker,
    finder: &mut Finder<'a>,
    known: &[Dump<'a>],
) -> Option<FoundDump<'a>> {
    let mut second_best = None;
    for path in finder.dump_candidates(&marker.path, marker.pid) {
        let Some(file) = finder.open(&path) else {
            continue;
        };
        if let Some(at) = known.iter().position(|dump| dump.file.is(&file)) {
            return Some(FoundDump::Known(at));
        }
        let Some(dump) = finder.read(file) else {
            continue;
        };
        if finder.was_asked_for(&path) || dump.may_be_of(marker) {
            return Some(FoundDump::New(Box::new(dump)));
        }
        second_best = second_best.or(Some(dump));
    }
    second_best.map(|dump| FoundDump::New(Box::new(dump)))
}

/// A dump that no marker led to, if a process of the recording wrote it.
fn other_dump<'a>(
    path: &Path,
    finder: &mut Finder<'a>,
    known: &[Dump<'a>],
    lives: &Lives,
    diag: &Diagnostics,
) -> Option<Dump<'a>> {
    let asked_for = finder.was_asked_for(path);
    // What lies beside the recording may be a copy of what was found or asked for.
    let same_name = |dump: &Dump<'_>| dump.file.path.file_name() == path.file_name();
    if !asked_for && known.iter().any(same_name) {
        return None;
    }
    let file = finder.open(path)?;
    if known.iter().any(|dump| dump.file.is(&file)) {
        return None;
    }
    let dump = finder.read(file);
    let problem = match &dump {
        Some(dump) if dump.writers.iter().any(|&(_, pid)| lives.knows(pid)) => None,
        Some(_) => Some("written by no process of this recording"),
        None => Some("not a jitdump"),
    };
    if let Some(problem) = problem.filter(|_| finder.was_named(path)) {
        diag.warn(format!("{}: {problem}; not used", path.display()));
    }
    dump.filter(|_| problem.is_none())
}

fn report_missing(missing: &[&Marker], diag: &Diagnostics) {
    for marker in missing.iter().take(MAX_NAMED) {
        diag.warn(not_found(marker));
    }
    if missing.len() > MAX_NAMED {
        diag.warn(format!(
            "{} more dumps were not found",
            missing.len() - MAX_NAMED
        ));
    }
}

fn not_found(marker: &Marker) -> String {
    let path = String::from_utf8_lossy(&marker.path);
    let pid = marker.pid;
    if marker.injected {
        return format!(
            "{path}: the dump of process {pid} was not found; only what perf inject made of it is used \
             (--jitdump FILE_OR_DIR)"
        );
    }
    format!(
        "{path}: dump of process {pid} not found there, beside the recording or in the current directory; \
         its JIT code has no names (--jitdump FILE_OR_DIR)"
    )
}
