//! Perf maps of the recorded processes: found, judged, added to the index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::clock::RecordingClock;
use super::codes::{CodeList, MapCodes, filled};
use super::files::Finder;
use super::found::FoundFile;
use super::memory::{Anonymous, Program, not_yet, unite};
use super::owners::{Lives, STALE};
use super::{
    Absence, Birth, Births, JitAbsent, JitIndex, JitObject, JitObjectId, JitObjectKind, JitStats,
    OwnMap, ProcessId, has, lineage,
};
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::diagnostics::Diagnostics;
use crate::find::{Kind, Look, Place, perf_map_name, perf_map_path};
use crate::ids::IndexSlice;
use crate::input::{Door, InputError};
use crate::jitdump::perfmap::{self, MapEntry, PerfMap};
use crate::runtimes::Producer;

/// Why a map is of another process.
const NOT_HERE: &str = "nothing in it lies in executable memory of the process";

/// Some ten million functions.
const MAX_SIZE: usize = 1 << 30;

/// What a map must be to be a process' own; the surest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// It was named for it, or lies where only its own lies.
    Sure,
    /// Something in it lies in the memory of the process: it was named, and has the number of another one. In a container a process has
    /// another number, which may be that of one without such code here.
    Fits,
    /// That, and it was written while the process lived: it lies where any process may have left it.
    Fresh,
}

/// What is needed to find the perf maps of a recording and to judge them.
pub(super) struct Maps<'m, 'a> {
    pub(super) finder: &'m mut Finder<'a>,
    pub(super) clock: &'m RecordingClock,
    pub(super) lives: &'m Lives,
    pub(super) diag: &'m Diagnostics,
    /// Files that are used.
    pub(super) used: Vec<PathBuf>,
    /// Files of which was said that they are not used.
    pub(super) refused: Vec<PathBuf>,
}

impl<'a> Maps<'_, 'a> {
    /// Adds the map of every process with executable memory of its own. `inner` has the process ids
    /// that differ inside a pid namespace.
    pub(super) fn add(
        mut self,
        index: &mut JitIndex<'a>,
        programs: BTreeMap<ProcessId, Vec<Program>>,
        inner: &FxHashMap<ProcessId, u32>,
    ) {
        let named = self.finder.places.named_perf_maps();
        let is_alone = programs.len() == 1;
        let mut nameless = Vec::new();
        for (process, own) in programs {
            let Some(pid) = own.first().map(|program| program.memory.pid) else {
                continue;
            };
            let inner = inner.get(&process).copied().unwrap_or(pid);
            let mut candidates = Vec::new();
            if is_alone {
                candidates.extend(named.iter().map(|(door, number)| {
                    let is_others = number.is_some_and(|number| ![pid, inner].contains(&number));
                    let claim = if is_others { Claim::Fits } else { Claim::Sure };
                    (Place::from(door.clone()), claim)
                }));
                candidates.sort_by_key(|(_, claim)| *claim);
            }
            let others = self.finder.places.perf_map_candidates(pid, inner);
            candidates.extend(others.into_iter().map(|(place, anybodys)| {
                let claim = if anybodys { Claim::Fresh } else { Claim::Sure };
                (place, claim)
            }));
            let has_dump = index.merged.contains(&process);
            let what = perf_map_path(pid);
            let look = look(self.diag, &what);
            let found = candidates.into_iter().find_map(|(place, claim)| {
                let door = look.doors([place]).next()?;
                let path = door.path();
                let (file, map) = self.map(&door, &look)?;
                let program = self.program_of(&file, &own)?;
                let problem = match claim {
                    Claim::Sure => None,
                    Claim::Fits => (!fits(&map, program)).then_some(NOT_HERE),
                    Claim::Fresh => self.why_stale(&map, &file, program),
                };
                if let Some(problem) = problem {
                    look.missed(path, problem);
                    // Of what the user named is told once all processes are known.
                    if claim == Claim::Fits {
                        return None;
                    }
                    self.refuse(path, problem, has_dump);
                    // Where a dump tells of the code, nothing is missing.
                    if !has_dump {
                        index.absent.push(JitAbsent {
                            path: path.as_os_str().as_encoded_bytes().to_vec(),
                            pid,
                            process,
                            why: Absence::Stale(problem),
                        });
                    }
                    return None;
                }
                look.took(path);
                Some((path.to_owned(), map, program))
            });
            match found {
                Some((path, map, program)) => self.use_map(index, program, &path, map),
                None if has_dump => {}
                None => nameless.extend({ own }.pop()),
            }
        }
        self.adopt(index, &nameless);
        self.report_unused(named);
    }

    /// Finds the processes with a map of their own that tells of memory which they inherited: workers that were forked compile into what
    /// their parent had mapped. They have that memory then, too.
    pub(super) fn find_heirs(
        &mut self,
        programs: &mut BTreeMap<ProcessId, Vec<Program>>,
        births: &Births,
        (pids, inner): (&IndexSlice<ProcessId, [u32]>, &FxHashMap<ProcessId, u32>),
    ) {
        let mut children: Vec<ProcessId> = births.keys().copied().collect();
        children.sort_unstable();
        for child in children {
            let (birth, pid) = (births[&child], pids[child]);
            let mut before = lineage(births, birth.parent, birth.at);
            if !before.any(|(owner, _)| programs.contains_key(&owner)) {
                continue;
            }
            let what = perf_map_path(pid);
            let look = look(self.diag, &what);
            let inner = inner.get(&child).copied().unwrap_or(pid);
            let candidates = self.finder.places.perf_map_candidates(pid, inner);
            let found = candidates.into_iter().find_map(|(place, _)| {
                let door = look.doors([place]).next()?;
                self.map(&door, &look)
            });
            let Some((file, map)) = found else { continue };
            let heir = Program {
                process: child,
                from: birth.at,
                until: birth.until,
                memory: Anonymous::inherited(pid, inherited(programs, births, birth)),
            };
            if self.why_stale(&map, &file, &heir).is_some() {
                continue;
            }
            let own = programs.entry(child).or_default();
            match own.first_mut().filter(|own| own.from <= birth.at) {
                Some(own) => {
                    for (start, end) in heir.memory.all {
                        let (start, end) = (Avma(start), Avma(end));
                        unite(&mut own.memory.all, AvmaRange { start, end });
                    }
                }
                None => own.insert(0, heir),
            }
        }
    }

    /// Says which files that the user named are of no use.
    fn report_unused(&mut self, named: Vec<(Door, Option<u32>)>) {
        for (door, _) in named {
            let path = door.path();
            if is_in(&self.used, path) || is_in(&self.refused, path) {
                continue;
            }
            let look = look(self.diag, path);
            let problem = if self.map(&door, &look).is_some() {
                "of no process of this recording with code that was made at run time"
            } else if is_in(&self.refused, path) {
                continue;
            } else {
                "not a perf map"
            };
            self.diag
                .warn(format!("{}: {problem}; not used", path.display()));
        }
    }

    fn use_map(
        &mut self,
        index: &mut JitIndex<'a>,
        program: &Program,
        path: &Path,
        map: PerfMap<'a>,
    ) {
        let (pid, entries) = (program.memory.pid, map.entries.len());
        self.used.push(path.to_owned());
        if fits(&map, program) {
            self.finder.note_used(&perf_map_path(pid), path);
        }
        let story = self.finder.story_beside(path);
        let keeps_frames = story.is_some_and(|story| story.keeps_frames);
        let unsure = add_perf_map(index, program, path, map, keeps_frames);
        let path = path.display();
        self.diag
            .note(format!("{path}: {entries} entries used for process {pid}"));
        if unsure > 0 {
            self.diag.warn(format!(
                "{path}: {unsure} of {entries} functions have no name: their memory had other code, too, and a map tells no \
                 times. A dump does (wasmtime --profile=jitdump)"
            ));
        }
    }

    /// Gives maps under ids that the recording does not know, those of pid namespaces, to the processes without one: each to
    /// the only one in whose memory it lies.
    fn adopt(&mut self, index: &mut JitIndex<'a>, nameless: &[Program]) {
        if nameless.is_empty() {
            return;
        }
        let lives = self.lives;
        for (door, anybodys) in self.finder.places.other_perf_maps(|pid| lives.knows(pid)) {
            let path = door.path();
            let look = look(self.diag, path);
            let Some((file, map)) = self.map(&door, &look) else {
                continue;
            };
            look.missed(path, "of no process without one");
            // What lies where anybody may leave files is looked at only if it was written since.
            let is_new = |program: &&Program| {
                let born = self.lives.born(program.process).unwrap_or(program.from);
                let modified = self.modified(&file);
                let is_newer = modified.is_some_and(|modified| modified >= i128::from(born.0));
                !anybodys || is_newer && !self.is_of_later(&file, program)
            };
            let mut fitting = nameless.iter().filter(is_new).peekable();
            if fitting.peek().is_none() {
                continue;
            }
            let mut fitting = fitting.filter(|program| lies_in(&map, program));
            if let (Some(program), None) = (fitting.next(), fitting.next())
                && !index.perf_maps.contains_key(&program.process)
            {
                look.took(path);
                self.use_map(index, program, path, map);
            }
        }
    }

    /// The map behind a door, if there is one: any text is a map without entries.
    fn map(&mut self, door: &Door, look: &Look<'_>) -> Option<(FoundFile<'a>, PerfMap<'a>)> {
        let path = door.path();
        let note = |error: InputError| look.missed(path, &error);
        let file = self.finder.open(door).map_err(note).ok()?;
        if file.bytes.len() > MAX_SIZE {
            look.missed(path, "too large");
            self.refused.push(path.to_owned());
            let path = path.display();
            self.diag
                .warn(format!("{path}: too large for a perf map; not used"));
            return None;
        }
        let map = perfmap::parse(file.bytes);
        if map.entries.is_empty() {
            look.missed(path, "not a perf map");
            return None;
        }
        Some((file, map))
    }

    /// The program of a process that a map tells of: the last that began before the file was changed last, or the last
    /// of all.
    fn program_of<'p>(&self, file: &FoundFile<'_>, programs: &'p [Program]) -> Option<&'p Program> {
        let modified = self.modified(file);
        let began_before = |program: &&Program| {
            modified.is_some_and(|modified| i128::from(program.from.0) <= modified)
        };
        let before = programs.iter().rev().find(began_before);
        before.or(programs.last())
    }

    /// When a file was changed last, on the recording's clock.
    fn modified(&self, file: &FoundFile<'_>) -> Option<i128> {
        file.modified.and_then(|wall| self.clock.of_wall(wall))
    }

    fn refuse(&mut self, path: &Path, problem: &str, has_dump: bool) {
        if is_in(&self.refused, path) {
            return;
        }
        self.refused.push(path.to_owned());
        let path = path.display();
        let text = format!("{path}: {problem}; not used (--perf-map uses it)");
        if has_dump {
            self.diag.note(text);
        } else {
            self.diag.warn(text);
        }
    }

    /// Whether a file was written after all threads of a process had ended: its number may have been given again.
    fn is_of_later(&self, file: &FoundFile<'_>, program: &Program) -> bool {
        let ended = self.lives.ended(program.process);
        let latest = ended.map(|ended| i128::from(ended.0) + i128::from(STALE));
        self.modified(file)
            .zip(latest)
            .is_some_and(|(modified, latest)| modified > latest)
    }

    /// Why a map under a name that any process may use is not of this process.
    fn why_stale(
        &self,
        map: &PerfMap<'_>,
        file: &FoundFile<'_>,
        program: &Program,
    ) -> Option<&'static str> {
        // A program that perf itself started was not forked in the recording: it began with its own exec.
        let born = self.lives.born(program.process).unwrap_or(program.from);
        if let Some(modified) = self.modified(file).filter(|_| born > Timestamp::START)
            && modified < i128::from(born.0) - i128::from(STALE)
        {
            return Some("older than the process");
        }
        if self.is_of_later(file, program) {
            return Some("written after the process had ended");
        }
        (!fits(map, program)).then_some(NOT_HERE)
    }
}

/// Executable memory that a process has from those before it.
fn inherited(
    programs: &BTreeMap<ProcessId, Vec<Program>>,
    births: &Births,
    birth: Birth,
) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    for (owner, now) in lineage(births, birth.parent, birth.at) {
        let programs = programs.get(&owner).into_iter().flatten();
        for program in programs.filter(|program| program.from <= now && now < program.until) {
            let mappings = program.memory.mappings.iter();
            for (&(start, end), _) in mappings.filter(|(_, time)| **time <= now) {
                unite(&mut all, AvmaRange { start, end });
            }
        }
    }
    all
}

/// What is noted of the search for a map.
fn look<'l>(diag: &'l Diagnostics, path: &'l Path) -> Look<'l> {
    Look::new(diag, Kind::PerfMap, path.as_os_str().as_encoded_bytes())
}

fn is_in(files: &[PathBuf], path: &Path) -> bool {
    files.iter().any(|file| file == path)
}

/// Whether something in a map lies in memory that a program made executable.
fn fits(map: &PerfMap<'_>, program: &Program) -> bool {
    let mut entries = map.entries.iter();
    entries.any(|entry| program.memory.covers(entry.start.0))
}

/// Whether so much of a map lies in the memory that a program made executable that it is no chance. An earlier process may
/// have left its own entries in it.
fn lies_in(map: &PerfMap<'_>, program: &Program) -> bool {
    const FEWEST: usize = 8;
    let starts = map.entries.iter().map(|entry| entry.start.0);
    let inside = starts.filter(|&start| program.memory.covers(start)).count();
    inside >= FEWEST && inside >= map.entries.len() / 4
}

/// As [`super::codes::filled`] says; the entries are in order.
fn fill_gaps(entries: &mut [MapEntry<'_>]) {
    for at in 1..entries.len() {
        let next = entries[at].start;
        let entry = &mut entries[at - 1];
        if let Ok(size) = u32::try_from(entry.size) {
            entry.size = filled(entry.start, size, next).into();
        }
    }
}

/// Says how many functions it is not sure of.
fn add_perf_map<'a>(
    index: &mut JitIndex<'a>,
    program: &Program,
    path: &Path,
    mut map: PerfMap<'a>,
    keeps_frames: bool,
) -> usize {
    let pid = program.memory.pid;
    let Ok(object) = u32::try_from(index.objects.len()).map(JitObjectId) else {
        return 0;
    };
    let functions = map.entries.len();
    let name = perf_map_name(pid);
    let retold = std::mem::take(&mut map.retold);
    let mut codes = MapCodes::new(object, map);
    let producer = codes.producer;
    // Of memory that a later line tells of again, nobody knows which line is of which time.
    let mut unsure = Vec::new();
    if producer.row().maps_once {
        let retold = retold.iter().map(|range| (range.start.0, range.end.0));
        let retold: BTreeMap<u64, u64> = retold.collect();
        let again = program.memory.again.iter();
        unsure.extend(again.flat_map(|&(range, _)| not_yet(&retold, range)));
        unsure.sort_unstable_by_key(|range| range.start);
    }
    codes.keeps_frames =
        producer.row().keeps_frames || keeps_frames && producer == Producer::HotSpot;
    if codes.keeps_frames {
        index.keeping.insert(program.process);
    }
    if producer.row().tells_part_of_sizes {
        fill_gaps(&mut codes.entries.raw);
    }
    let starts = codes.entries.iter().map(|entry| entry.start);
    let of_unsure = starts.filter(|start| has(&unsure, *start)).count();
    index.codes.push(CodeList::PerfMap(codes));
    let mut fresh = program.memory.fresh.clone();
    fresh.sort_unstable_by_key(|(range, _)| range.start);
    let own = OwnMap {
        object,
        from: program.from,
        until: program.until,
        fresh,
        unsure,
    };
    index.perf_maps.insert(program.process, own);
    index.objects.push(JitObject {
        path: path.as_os_str().as_encoded_bytes().to_vec(),
        kind: JitObjectKind::PerfMap,
        pid,
        producer,
        functions: functions as u64,
        summary: format!("{name}: {functions} entries"),
        stats: JitStats {
            found_at: path.to_owned(),
            ..JitStats::default()
        },
    });
    of_unsure
}
