//! Collects what the recording tells about JIT code, then reads the dumps and builds the index.
//!
//! Fed by the session builder while it walks the recording; [`JitBuilder::finish`] does all the work:
//! find each dump, relate its clock, give every load to a process, replay loads, moves, forks, execs
//! and mappings in order of time.

use std::collections::BTreeMap;
use std::sync::mpsc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::claims::FOREVER;
use super::clock::{self, Evidence, RecordingClock, Relation, Why};
use super::codes::CodeList;
use super::dumps::{Dump, Writer};
use super::early::{self, EarlyDumps, EarlyReader};
use super::files::Finder;
use super::load_map::LoadId;
use super::marker::{Change, Marker, MarkerId};
use super::memory::{Anonymous, Program, twins};
use super::owners::{Attribution, Lives, OwnedLoads, Owners, STALE};
use super::search::{absent, find_dumps};
use super::{Birth, Births, JitIndex, JitObjectId, ProcessId, perfmaps, replay};
use crate::address::{AvmaRange, Timestamp};
use crate::diagnostics::Diagnostics;
use crate::find::{JitSearch, MarkerName, file_name, marker_name};
use crate::ids::{IndexSlice, IndexVec};
use crate::input::Store;
use crate::perfdata::TimeConv;
use crate::runtimes::dump_names::numbers_of_dump;

/// So many generations of processes may have inherited code.
const MOST_ANCESTORS: usize = 8;
/// So many processes that map one dump are asked for its clock.
const ENOUGH_MARKERS: usize = 16;

/// Collects, then builds a [`JitIndex`].
pub struct JitBuilder<'a> {
    store: &'a Store,
    finder: Finder<'a>,
    early: Option<EarlyDumps<'a>>,
    clock: RecordingClock,
    conversion: Option<TimeConv>,
    markers: IndexVec<MarkerId, Marker>,
    /// What [`JitBuilder::markers`] has: the paths of each process.
    marked: FxHashMap<ProcessId, FxHashSet<Vec<u8>>>,
    changes: Vec<(Timestamp, Change)>,
    born: FxHashMap<ProcessId, Timestamp>,
    ended: FxHashMap<ProcessId, Timestamp>,
    /// Of the program that each process runs now, and of those that it ran before.
    anonymous: BTreeMap<ProcessId, Anonymous>,
    former: Vec<Program>,
    /// When the programs that run now began, but for the first of each process.
    began: FxHashMap<ProcessId, Timestamp>,
    maybe_kernels: FxHashSet<ProcessId>,
    end: Timestamp,
}

impl<'a> JitBuilder<'a> {
    /// A builder that will look for files where `search` says.
    #[must_use]
    pub fn new(store: &'a Store, search: JitSearch, clock: RecordingClock) -> Self {
        Self {
            store,
            finder: Finder::new(store, search),
            early: None,
            clock,
            conversion: None,
            markers: IndexVec::new(),
            marked: FxHashMap::default(),
            changes: Vec::new(),
            born: FxHashMap::default(),
            ended: FxHashMap::default(),
            anonymous: BTreeMap::new(),
            former: Vec::new(),
            began: FxHashMap::default(),
            maybe_kernels: FxHashSet::default(),
            end: Timestamp::START,
        }
    }

    /// What reads dumps as soon as their markers are met, if it is run in a thread.
    pub fn early_reader(&mut self) -> EarlyReader<'a> {
        let (wanted, to_read) = mpsc::channel();
        let (done, read) = mpsc::channel();
        self.early = Some(EarlyDumps {
            wanted,
            read,
            asked: 0,
        });
        EarlyReader {
            store: self.store,
            wanted: to_read,
            read: done,
        }
    }

    /// A user mapping, of whatever kind. Whether its name is that of a dump or of a file that
    /// `perf inject --jit` put in its place; such mappings hold no code of their own, and
    /// [`JitBuilder::exec_file_mapping`] is not to be told of them.
    pub fn marker(&mut self, process: ProcessId, pid: u32, path: &[u8], time: Timestamp) -> bool {
        let Some(name) = marker_name(path) else {
            return false;
        };
        let dump_path = name.dump_path();
        if self
            .marked
            .entry(process)
            .or_default()
            .insert(dump_path.clone())
        {
            let is_new = || self.markers.iter().all(|marker| marker.path != dump_path);
            if let Some(early) = &mut self.early
                && early.asked < early::MOST
                && is_new()
            {
                early.ask(self.finder.places.dump_candidates(&dump_path, pid));
            }
            let MarkerName {
                number, injected, ..
            } = name;
            // A runtime that writes several numbers in another order is not in a namespace for that.
            let own = numbers_of_dump(file_name(&dump_path)).is_some_and(|all| all.contains(&pid));
            let number = if own { pid } else { number };
            let time = if injected { Timestamp::START } else { time };
            self.markers.push(Marker {
                process,
                pid,
                path: dump_path,
                number,
                injected,
                inode: None,
                time,
            });
        }
        true
    }

    /// The inode of the file of the process' marker that was told of just now.
    pub fn marked_file(&mut self, process: ProcessId, inode: u64) {
        let last = self.markers.raw.last_mut();
        if let Some(marker) = last.filter(|marker| marker.process == process && inode > 0) {
            marker.inode.get_or_insert(inode);
        }
    }

    /// Whether the process has mapped a dump by now.
    #[must_use]
    pub fn is_marked(&self, process: ProcessId) -> bool {
        self.marked.contains_key(&process)
    }

    /// A process was born with its parent's memory.
    pub fn fork(&mut self, parent: ProcessId, child: ProcessId, time: Timestamp) {
        self.born.insert(child, time);
        self.change(time, Change::Fork { parent, child });
    }

    /// The last thread of a process ended.
    pub fn ended(&mut self, process: ProcessId, time: Timestamp) {
        self.ended.insert(process, time);
    }

    /// A process that ran before the recording and may be a thread of the kernel: kthreadd, or a child of it. In a pid namespace
    /// others have that number; those have code.
    pub fn may_be_kernels(&mut self, process: ProcessId) {
        self.maybe_kernels.insert(process);
    }

    /// Those of which no code was mapped.
    fn kernel_threads(&self, pids: &IndexSlice<ProcessId, [u32]>) -> FxHashSet<u32> {
        let mut threads = self.maybe_kernels.clone();
        for (_, change) in &self.changes {
            if let Change::Mapped(process, _) = change {
                threads.remove(process);
            }
        }
        threads.retain(|process| !self.anonymous.contains_key(process));
        let pids = threads.iter().filter_map(|&process| pids.get(process));
        pids.copied().collect()
    }

    /// A process runs another program.
    pub fn exec(&mut self, process: ProcessId, time: Timestamp) {
        self.change(time, Change::Exec(process));
        let from = self.began.insert(process, time).unwrap_or_default();
        if let Some(memory) = self.anonymous.remove(&process) {
            self.former.push(Program {
                process,
                from,
                until: time,
                memory,
            });
        }
    }

    /// A file was mapped executable: the memory is no longer JIT code.
    pub fn exec_file_mapping(&mut self, process: ProcessId, range: AvmaRange, time: Timestamp) {
        self.change(time, Change::Mapped(process, range));
    }

    /// Executable memory without a file (`//anon`, `[anon:…]`, `[heap]`, `/memfd:…`, `/dev/zero`, …):
    /// where JIT code may be. The same memory again ends no code, as most runtimes change the protection all the time; other
    /// memory does. `backing` tells one from the other: the inode of a file that has no path.
    pub fn anonymous(
        &mut self,
        (process, pid): (ProcessId, u32),
        range: AvmaRange,
        backing: u64,
        time: Timestamp,
    ) {
        self.seen_until(time);
        let anonymous = self.anonymous.entry(process).or_default();
        anonymous.pid = pid;
        if let Some(again) = anonymous.add(range, backing, time) {
            self.change(time, Change::Again(process, range, again));
        }
    }

    /// TIME_CONV: how the processor's counter relates to the kernel's clock.
    pub fn time_conversion(&mut self, conversion: TimeConv) {
        self.conversion = Some(conversion).filter(|conversion| conversion.cap_user_time_zero);
    }

    /// The recording goes on at least until then; tell of the last sample.
    pub fn seen_until(&mut self, time: Timestamp) {
        self.end = self.end.max(time);
    }

    /// Reads what was found and builds the index. `pids` has the process id of every [`ProcessId`].
    #[must_use]
    pub fn finish(
        mut self,
        pids: &IndexSlice<ProcessId, [u32]>,
        diag: &Diagnostics,
    ) -> JitIndex<'a> {
        let (born, kernels) = (&self.born, self.kernel_threads(pids));
        let lives = Lives::new(pids, (born, &self.ended), kernels);
        let early = self.early.take().into_iter().flat_map(EarlyDumps::finish);
        early.for_each(|dump| self.finder.add_early(dump));
        let finder = &mut self.finder;
        let (dumps, missing) = find_dumps(&self.markers, finder, &lives, diag);
        let mut dumps = IndexVec::from(dumps);
        for dump in &mut dumps {
            let markers = dump.markers.iter().map(|&id| &self.markers[id]);
            let writers: Vec<u32> = markers
                .flat_map(|marker| [marker.pid, marker.number])
                .collect();
            dump.look_for_writers(writers.into_iter());
        }
        self.relate_clocks(&mut dumps.raw, diag);
        let mut index = JitIndex::default();
        let births = self.births();
        let owners: IndexVec<JitObjectId, _> = dumps
            .iter_mut()
            .map(|dump| self.give_to_processes(dump, (&lives, &births)))
            .collect();
        for (dump, owner) in dumps.iter().zip(&owners) {
            let marker = dump.markers.first().map(|&id| &self.markers[id]);
            dump.report(owner, diag);
            index.objects.push(dump.object(marker, owner));
        }
        leave_out_protections(&mut self.changes, &births, &dumps, &owners);
        index.claims = replay::replay(&mut dumps, &owners, IndexSlice::new(&self.changes));
        for (object, dump) in index.objects.iter_mut().zip(&dumps) {
            object.stats.repeated = dump.aliases;
            object.stats.replaced = dump.replaced;
            object.stats.clock_fit = dump.relation.fit(&self.clock);
        }
        let markers = dumps.iter().flat_map(|dump| &dump.markers);
        index.merged = markers.map(|&id| self.markers[id].process).collect();
        for dump in dumps {
            index.codes.push(CodeList::Dump(dump.codes));
        }
        index.twins = self
            .anonymous
            .iter()
            .map(|(&process, anonymous)| (process, twins(&index, process, anonymous)))
            .filter(|(_, twins)| !twins.is_empty())
            .collect();
        index.files = self.file_mappings(&index);
        let inner = self.inner_pids();
        let former = std::mem::take(&mut self.former);
        let anonymous = std::mem::take(&mut self.anonymous);
        let mut programs = programs(former, anonymous, &self.began);
        let mut maps = perfmaps::Maps {
            finder: &mut self.finder,
            clock: &self.clock,
            lives: &lives,
            diag,
            used: Vec::new(),
            refused: Vec::new(),
        };
        maps.find_heirs(&mut programs, &births, (pids, &inner));
        maps.add(&mut index, programs, &inner);
        if !index.perf_maps.is_empty() {
            index.births = births;
        }
        index.absent.extend(absent(missing, &index.perf_maps, diag));
        index
    }

    /// Files that were mapped into processes with code of dumps.
    fn file_mappings(&self, index: &JitIndex<'_>) -> Vec<(ProcessId, Timestamp, AvmaRange)> {
        let files = self
            .changes
            .iter()
            .filter_map(|&(time, change)| match change {
                Change::Mapped(process, range) => Some((process, time, range)),
                Change::Fork { .. } | Change::Exec(_) | Change::Again(..) => None,
            });
        let mut files: Vec<_> = files
            .filter(|&(process, _, _)| index.claims.has_any(process))
            .collect();
        files.sort_unstable_by_key(|&(process, time, range)| (process, time, range.start));
        files
    }

    fn births(&self) -> Births {
        let mut births: FxHashMap<ProcessId, Birth> = FxHashMap::default();
        for &(at, change) in &self.changes {
            match change {
                Change::Fork { parent, child } if parent != child => {
                    births.entry(child).or_insert(Birth {
                        parent,
                        at,
                        until: FOREVER,
                    });
                }
                Change::Exec(process) => {
                    if let Some(birth) = births.get_mut(&process) {
                        birth.until = birth.until.min(at);
                    }
                }
                Change::Fork { .. } | Change::Mapped(..) | Change::Again(..) => {}
            }
        }
        births
    }

    fn change(&mut self, time: Timestamp, change: Change) {
        self.seen_until(time);
        self.changes.push((time, change));
    }

    fn relate_clocks(&self, dumps: &mut [Dump<'a>], diag: &Diagnostics) {
        let evidence: Vec<_> = dumps.iter().map(|dump| self.evidence(dump)).collect();
        let relations = clock::relate(&self.clock, self.conversion.as_ref(), &evidence);
        for (dump, relation) in dumps.iter_mut().zip(relations) {
            dump.relation = relation;
            let text = relation.describe();
            match relation {
                Relation::Same => {}
                Relation::Wall { .. } | Relation::Counter { .. } => {
                    diag.note(format!("{}: {text}", dump.file.path.display()))
                }
                Relation::Shifted { .. } => diag.warn(format!(
                    "{}: {text}, because the recording has another clock (record with -k mono)",
                    dump.file.path.display()
                )),
                Relation::Unknown(_) if self.is_stale(dump) => {}
                Relation::Unknown(_) => diag.warn(format!(
                    "{}: {text}; code that shares addresses with later code may be misnamed",
                    dump.file.path.display()
                )),
            }
        }
    }

    fn evidence(&self, dump: &Dump<'a>) -> Evidence {
        let markers = dump.markers.iter().map(|&id| &self.markers[id]);
        let end = (self.end > Timestamp::START).then_some(self.end);
        let is_asked = clock::differs(&self.clock, dump.header.arch_timestamps);
        let memory = markers
            .take(if is_asked { ENOUGH_MARKERS } else { 0 })
            .filter_map(|marker| self.anonymous.get(&marker.process));
        dump.evidence(self.mapped(dump), end, !is_asked, memory)
    }

    /// When a dump was mapped first, if that is recorded.
    fn mapped(&self, dump: &Dump<'a>) -> Option<Timestamp> {
        let markers = dump.markers.iter().map(|&id| &self.markers[id]);
        let times = markers.map(|marker| marker.time);
        times.filter(|&time| time > Timestamp::START).min()
    }

    /// Whether the clocks are the same and all of a dump is older than the process that maps it: an earlier
    /// process with its id left it behind. One that was asked for is taken all the same.
    fn is_stale(&self, dump: &Dump<'a>) -> bool {
        if dump.relation != Relation::Unknown(Why::NoOverlap)
            || !self.clock.is_monotonic()
            || dump.header.arch_timestamps
            || self.finder.places.was_asked_for(&dump.file.path)
        {
            return false;
        }
        let is_older = |marker: Timestamp| dump.last.saturating_add(STALE) < marker.0;
        !dump.codes.loads.is_empty() && self.mapped(dump).is_some_and(is_older)
    }

    /// Finds the process of every load and move, and puts their times on the recording's clock.
    fn give_to_processes(&self, dump: &mut Dump<'a>, (lives, births): (&Lives, &Births)) -> Owners {
        let markers = dump.markers.iter().map(|&id| &self.markers[id]);
        let attribution = Attribution::new(markers, dump.header.pid, lives);
        let relation = dump.relation;
        let is_stale = self.is_stale(dump);
        let place = |writer: Writer, raw| {
            let time = relation.apply(raw, self.conversion.as_ref());
            let owner = attribution.owner(writer.pid, time);
            let owner = owner.map(|owner| forked(owner, writer, time, (lives, births)));
            let owner = owner.filter(|_| !is_stale);
            (owner, time.unwrap_or_else(|| attribution.blind_time(owner)))
        };
        let only = match dump.writers.as_slice() {
            [(LoadId(0), Writer { pid, .. }), rest @ ..] if !is_stale => {
                let is_plain = |(_, of): &(_, Writer)| of.pid == *pid && !may_be_forked(*of, lives);
                let are_plain = dump.writers[..1].iter().chain(rest).all(is_plain);
                let only = are_plain.then(|| attribution.only_owner(*pid));
                only.flatten()
            }
            _ => None,
        };
        let is_plain = |&(_, since): &(_, Timestamp)| {
            relation == Relation::Same && Timestamp(dump.earliest) >= since
        };
        let of_loads = match only.filter(is_plain) {
            Some((process, _)) => OwnedLoads::All(process),
            None => owned_loads(dump, place),
        };
        let of_moves = dump.moves.iter_mut().map(|moved| {
            let (pid, tid) = (moved.pid, moved.tid);
            let (owner, time) = place(Writer { pid, tid }, moved.time);
            moved.time = time.0;
            owner
        });
        Owners {
            of_moves: of_moves.collect(),
            of_loads,
        }
    }

    /// What processes in a pid namespace call themselves, by the names of their dumps.
    fn inner_pids(&self) -> FxHashMap<ProcessId, u32> {
        let pids = self.markers.iter();
        pids.map(|marker| (marker.process, marker.number)).collect()
    }
}

/// The programs with executable memory of their own, those of a process in order.
fn programs(
    former: Vec<Program>,
    last: BTreeMap<ProcessId, Anonymous>,
    began: &FxHashMap<ProcessId, Timestamp>,
) -> BTreeMap<ProcessId, Vec<Program>> {
    let last = last.into_iter().map(|(process, memory)| Program {
        process,
        from: began.get(&process).copied().unwrap_or_default(),
        until: FOREVER,
        memory,
    });
    let mut programs: BTreeMap<ProcessId, Vec<Program>> = BTreeMap::new();
    for program in former.into_iter().chain(last) {
        programs.entry(program.process).or_default().push(program);
    }
    programs
}

/// Whether a thread that wrote a record leads another process than that which the record names.
fn may_be_forked(writer: Writer, lives: &Lives) -> bool {
    writer.tid != writer.pid && lives.knows(writer.tid)
}

/// Whose a record is that names `owner`: that of the thread that wrote it, if that leads a process which came of `owner` by forks. Both
/// write to the file that the parent had opened, and wasmtime asks for its process once.
fn forked(
    owner: ProcessId,
    writer: Writer,
    time: Option<Timestamp>,
    (lives, births): (&Lives, &Births),
) -> ProcessId {
    if !may_be_forked(writer, lives) {
        return owner;
    }
    let child = lives.at(writer.tid, time);
    let is_owners =
        |candidate: &ProcessId| line_of(*candidate, births).any(|process| process == owner);
    child.filter(is_owners).unwrap_or(owner)
}

/// A process, who made it, who made that, and so on.
fn line_of(process: ProcessId, births: &Births) -> impl Iterator<Item = ProcessId> {
    let parent = |child: &ProcessId| births.get(child).map(|birth| birth.parent);
    std::iter::successors(Some(process), parent).take(MOST_ANCESTORS)
}

/// Asks `place` for the process and the time of every load.
fn owned_loads(
    dump: &mut Dump<'_>,
    place: impl Fn(Writer, u64) -> (Option<ProcessId>, Timestamp),
) -> OwnedLoads {
    let mut writers = dump.writers.iter().peekable();
    let pid = dump.header.pid;
    let mut writer = Writer { pid, tid: pid };
    let loads = dump.codes.loads.iter_mut_enumerated();
    let owners: IndexVec<LoadId, _> = loads
        .map(|(number, load)| {
            if let Some(&(_, next)) = writers.next_if(|&&(from, _)| from <= number) {
                writer = next;
            }
            let (owner, time) = place(writer, load.time.0);
            load.time = time;
            owner
        })
        .collect();
    match owners.first() {
        Some(&Some(first)) if owners.iter().all(|&owner| owner == Some(first)) => {
            OwnedLoads::All(first)
        }
        _ => OwnedLoads::Each(owners),
    }
}

/// Drops what may be a change of the protection and no more: all but other memory, and mappings of processes with code
/// of runtimes that map once. V8 writes thousands.
fn leave_out_protections(
    changes: &mut Vec<(Timestamp, Change)>,
    births: &Births,
    dumps: &IndexSlice<JitObjectId, [Dump<'_>]>,
    all_owners: &IndexSlice<JitObjectId, [Owners]>,
) {
    let mut once = FxHashSet::default();
    for (dump, owners) in dumps.iter().zip(all_owners) {
        if dump.codes.producer.row().maps_once {
            match &owners.of_loads {
                OwnedLoads::All(process) => once.extend([*process]),
                OwnedLoads::Each(all) => once.extend(all.iter().flatten()),
            }
        }
    }
    let has_once =
        |process: &ProcessId| line_of(*process, births).any(|process| once.contains(&process));
    changes.retain(|(_, change)| match change {
        Change::Again(process, _, again) => again.is_other || has_once(process),
        _ => true,
    });
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
