//! From markers to dumps that were read: the best file for each, and dumps that no marker leads to.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::dumps::Dump;
use super::files::Finder;
use super::marker::{Marker, MarkerId};
use super::owners::Lives;
use super::{Absence, JitAbsent, OwnMap, ProcessId};
use crate::diagnostics::Diagnostics;
use crate::find::{Kind, Look, file_name, outer_name, path_of};
use crate::ids::IndexSlice;
use crate::input::Door;

/// So many missing dumps are named one by one.
const MAX_NAMED: usize = 20;

/// A marker that led to no dump.
pub(super) struct Lost<'m> {
    marker: &'m Marker,
    /// The file without a byte that is there in its place.
    empty: Option<PathBuf>,
}

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
) -> (Vec<Dump<'a>>, Vec<Lost<'m>>) {
    let mut dumps: Vec<Dump<'a>> = Vec::new();
    let mut missing = Vec::new();
    let rivals = rivals(markers);
    for (id, marker) in markers.iter_enumerated() {
        let rivals = rivals.get(marker.path.as_slice());
        let rivals = rivals.map_or(&[][..], Vec::as_slice);
        match dump_of(marker, rivals, finder, &dumps, diag) {
            Err(empty) => missing.push(Lost { marker, empty }),
            Ok(FoundDump::Known(at)) => {
                let path = &dumps[at].file.path;
                finder.note_used(&place_of(marker, rivals, path), path);
                dumps[at].markers.push(id);
            }
            Ok(FoundDump::New(dump)) => {
                let path = &dump.file.path;
                finder.note_used(&place_of(marker, rivals, path), path);
                dumps.push(Dump {
                    markers: vec![id],
                    ..*dump
                });
            }
        }
    }
    for door in finder.places.other_dumps() {
        if let Some(dump) = other_dump(&door, finder, &dumps, lives, diag) {
            let path = door.path();
            finder.note_used(Path::new(path.file_name().unwrap_or_default()), path);
            dumps.push(dump);
        }
    }
    (dumps, missing)
}

/// What is missing for good, with a warning: not of processes whose code a perf map names.
pub(super) fn absent(
    missing: Vec<Lost<'_>>,
    perf_maps: &FxHashMap<ProcessId, OwnMap>,
    diag: &Diagnostics,
) -> Vec<JitAbsent> {
    let is_named = |lost: &Lost<'_>| perf_maps.contains_key(&lost.marker.process);
    let (named, missing): (Vec<_>, Vec<_>) = missing.into_iter().partition(is_named);
    for Lost { marker, empty } in named {
        let path = String::from_utf8_lossy(&marker.path);
        let why = empty.map_or("not found", |_| "empty");
        diag.note(format!(
            "{path}: {why}; the perf map of process {} names its code",
            marker.pid
        ));
    }
    report_missing(&missing, diag);
    let absent = missing.into_iter().map(|lost| JitAbsent {
        path: lost.marker.path.clone(),
        pid: lost.marker.pid,
        process: lost.marker.process,
        why: match lost.empty {
            Some(_) => Absence::Empty,
            None => Absence::Missing,
        },
    });
    absent.collect()
}

/// Markers with one path that were different files, as the namesakes of several mount namespaces are.
fn rivals(markers: &IndexSlice<MarkerId, [Marker]>) -> FxHashMap<&[u8], Vec<&Marker>> {
    let mut all: FxHashMap<&[u8], Vec<&Marker>> = FxHashMap::default();
    for marker in markers.iter().filter(|marker| marker.inode.is_some()) {
        all.entry(&marker.path).or_default().push(marker);
    }
    all.retain(|_, same| same.iter().any(|marker| marker.inode != same[0].inode));
    all
}

/// Where the recording expects a file: under the recorded path, or beside it under the process' id where others have that
/// path, too.
fn place_of(marker: &Marker, rivals: &[&Marker], path: &Path) -> PathBuf {
    let name = outer_name(file_name(&marker.path), marker.pid);
    let is_outer = |outer: &String| path.file_name().is_some_and(|own| own == outer.as_str());
    match name.filter(|name| !rivals.is_empty() || is_outer(name)) {
        Some(name) => PathBuf::from(name),
        None => path_of(&marker.path).to_owned(),
    }
}

/// Whether a dump may be the file of a marker rather than that of a namesake: it has the inode, or none has it and its
/// first record came behind this mapping and before the next.
fn is_own(dump: &Dump<'_>, marker: &Marker, rivals: &[&Marker]) -> bool {
    if rivals.is_empty() || marker.inode.is_none() {
        return true;
    }
    let inode = Some(dump.file.identity.1);
    if rivals.iter().any(|rival| rival.inode == inode) {
        return marker.inode == inode;
    }
    let first = dump.first.unwrap_or(dump.header.timestamp);
    let before = rivals.iter().filter(|rival| rival.time.0 <= first);
    let nearest = before.max_by_key(|rival| rival.time);
    nearest.is_none_or(|nearest| nearest.inode == marker.inode)
}

/// The best file for a marker: one whose records may be of that process, else any dump. Without one, the file without a byte that
/// is in its place.
fn dump_of<'a>(
    marker: &Marker,
    rivals: &[&Marker],
    finder: &mut Finder<'a>,
    known: &[Dump<'a>],
    diag: &Diagnostics,
) -> Result<FoundDump<'a>, Option<PathBuf>> {
    const OTHERS: &str = "the dump of another process";
    let mut second_best: Option<Dump<'_>> = None;
    let mut empty = None;
    let look = Look::new(diag, Kind::Dump, &marker.path);
    for door in look.doors(finder.places.dump_candidates(&marker.path, marker.pid)) {
        let path = door.path();
        let file = match finder.open(&door) {
            Ok(file) => file,
            Err(error) => {
                look.missed(path, &error);
                continue;
            }
        };
        let has_its_name = path.file_name() == path_of(file_name(&marker.path)).file_name();
        let rivals = if has_its_name { rivals } else { &[] };
        if let Some(at) = known.iter().position(|dump| dump.file.is(&file)) {
            if is_own(&known[at], marker, rivals) {
                look.took(path);
                return Ok(FoundDump::Known(at));
            }
            look.missed(path, OTHERS);
            continue;
        }
        if file.bytes.is_empty() {
            look.missed(path, Absence::Empty.word());
            empty.get_or_insert_with(|| path.to_owned());
            continue;
        }
        let Some(dump) = finder.read(file) else {
            look.missed(path, "not a jitdump");
            continue;
        };
        if !is_own(&dump, marker, rivals) {
            look.missed(path, OTHERS);
            finder.put_back(dump);
            continue;
        }
        if finder.places.was_asked_for(path) || dump.may_be_of(marker) {
            look.took(path);
            return Ok(FoundDump::New(Box::new(dump)));
        }
        look.missed(path, "its code may be of another process");
        second_best = second_best.or(Some(dump));
    }
    let dump = second_best.ok_or(empty)?;
    look.took(&dump.file.path);
    Ok(FoundDump::New(Box::new(dump)))
}

/// A dump that no marker led to, if a process of the recording wrote it.
fn other_dump<'a>(
    door: &Door,
    finder: &mut Finder<'a>,
    known: &[Dump<'a>],
    lives: &Lives,
    diag: &Diagnostics,
) -> Option<Dump<'a>> {
    let path = door.path();
    let asked_for = finder.places.was_asked_for(path);
    // What lies beside the recording may be a copy of what was found or asked for.
    let same_name = |dump: &Dump<'_>| dump.file.path.file_name() == path.file_name();
    if !asked_for && known.iter().any(same_name) {
        return None;
    }
    let look = Look::new(diag, Kind::Dump, path.as_os_str().as_encoded_bytes());
    let opened = finder.open(door);
    let file = opened.map_err(|error| look.missed(path, &error)).ok()?;
    if known.iter().any(|dump| dump.file.is(&file)) {
        look.took(path);
        return None;
    }
    let dump = finder.read(file);
    let may_write = |pid| lives.knows(pid) && !lives.is_kernels(pid);
    let problem = match &dump {
        Some(dump) if dump.writers.iter().any(|(_, of)| may_write(of.pid)) => None,
        Some(_) => Some("written by no process of this recording"),
        None => Some("not a jitdump"),
    };
    if let Some(problem) = problem.filter(|_| finder.places.was_named(path)) {
        diag.warn(format!("{}: {problem}; not used", path.display()));
    }
    match problem {
        Some(problem) => look.missed(path, problem),
        None => look.took(path),
    }
    dump.filter(|_| problem.is_none())
}

fn report_missing(missing: &[Lost<'_>], diag: &Diagnostics) {
    for lost in missing.iter().take(MAX_NAMED) {
        diag.warn(lost.told());
    }
    if missing.len() > MAX_NAMED {
        diag.warn(format!(
            "{} more dumps were not found",
            missing.len() - MAX_NAMED
        ));
    }
}

impl Lost<'_> {
    /// What to say of it.
    fn told(&self) -> String {
        let path = String::from_utf8_lossy(&self.marker.path);
        let pid = self.marker.pid;
        if let Some(empty) = &self.empty {
            return format!(
                "{}: empty: process {pid} ended without writing its dump, and its JIT code has no names",
                empty.display()
            );
        }
        if self.marker.injected {
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
}
