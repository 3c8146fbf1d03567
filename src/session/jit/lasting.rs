//! Which dumps need no replay, because nothing that they tell ever ended.
//!
//! In: dumps with the owners of their loads, and what else happened to processes. Out: for each dump the process that
//! has it to the end ([`Lasting`]). Most dumps of wasm modules are so: one process, no address used twice. What their
//! loads claim is then told by the loads themselves ([`super::places`]), and only the rest goes through
//! [`super::replay`].
//!
//! That is so where no two loads share an address, no later exec or mapping ends one, the process has inherited
//! nothing that its loads might end, and nobody who inherited them changes his version or passes it on. Whatever is
//! not surely so is replayed.

use rustc_hash::FxHashMap;

use super::dumps::Dump;
use super::load_map::{LoadMap, Loads};
use super::marker::Change;
use super::owners::{OwnedLoads, Owners};
use super::{JitObjectId, ProcessId};
use crate::address::{AvmaRange, Timestamp};
use crate::ids::{IndexSlice, IndexVec, index_vec};

/// What there is one of for each dump.
pub(super) type OfDumps<T> = IndexSlice<JitObjectId, [T]>;

/// A process that has all loads of a dump from their time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lasting {
    pub(super) process: ProcessId,
    /// When the first came.
    pub(super) first: Timestamp,
}

/// For each dump whether it is one. `changes` come in order of time.
pub(super) fn lasting(
    dumps: &OfDumps<Dump<'_>>,
    all_owners: &OfDumps<Owners>,
    changes: impl Iterator<Item = (Timestamp, Change)>,
) -> IndexVec<JitObjectId, Option<Lasting>> {
    let begun = begun(dumps, all_owners);
    let candidates = dumps.iter_enumerated().zip(all_owners);
    let candidates = candidates
        .filter_map(|((number, dump), owners)| Candidate::of(number, dump, owners, &begun));
    let mut check = Check {
        candidates: candidates.collect(),
        begun: &begun,
        heirs: FxHashMap::default(),
    };
    if !check.candidates.is_empty() {
        changes.for_each(|(time, change)| check.take(time, change));
        check.end();
    }
    let mut found = index_vec![None; dumps.len()];
    for (process, candidate) in check.candidates {
        let first = candidate.first;
        found[candidate.dump] = Some(Lasting { process, first });
    }
    found
}

/// What a process has in dumps.
#[derive(Clone, Copy)]
struct Begun {
    /// Its first load or move.
    first: Timestamp,
    dump: JitObjectId,
    /// Whether it has nothing in other dumps.
    only_there: bool,
}

/// Of every process that has loads or moves.
fn begun(dumps: &OfDumps<Dump<'_>>, all_owners: &OfDumps<Owners>) -> FxHashMap<ProcessId, Begun> {
    let mut begun = FxHashMap::default();
    let mut add = |dump, process, first: Timestamp| {
        let known = begun.entry(process).or_insert(Begun {
            first,
            dump,
            only_there: true,
        });
        known.first = known.first.min(first);
        known.only_there &= known.dump == dump;
    };
    for ((number, dump), owners) in dumps.iter_enumerated().zip(all_owners) {
        let loads = &dump.codes.loads;
        match &owners.of_loads {
            OwnedLoads::All(process) => {
                let first = loads.iter().map(|load| load.time).min();
                first
                    .into_iter()
                    .for_each(|time| add(number, *process, time));
            }
            OwnedLoads::Each(owners) => {
                for (owner, load) in owners.iter().zip(loads) {
                    owner
                        .iter()
                        .for_each(|&process| add(number, process, load.time));
                }
            }
        }
        for (owner, moved) in owners.of_moves.iter().zip(&dump.moves) {
            let time = Timestamp(moved.time);
            owner.iter().for_each(|&process| add(number, process, time));
        }
    }
    begun
}

/// A dump that is lasting as far as one sees.
struct Candidate<'d> {
    dump: JitObjectId,
    loads: &'d Loads,
    places: &'d LoadMap,
    /// When its first load with code came.
    first: Timestamp,
    /// So many loads may still be looked at: files may be mapped to their addresses again and again.
    looks: usize,
}

impl<'d> Candidate<'d> {
    /// With its process, if that has all of the dump and nothing else, and the dump tells of nothing that ends.
    fn of(
        dump: JitObjectId,
        read: &'d Dump<'_>,
        owners: &Owners,
        begun: &FxHashMap<ProcessId, Begun>,
    ) -> Option<(ProcessId, Self)> {
        let OwnedLoads::All(process) = owners.of_loads else {
            return None;
        };
        let places = read.codes.places.as_ref()?;
        if !read.moves.is_empty() || !begun.get(&process)?.only_there {
            return None;
        }
        let loads = &read.codes.loads;
        let with_code = loads.iter().filter(|load| !load.range().is_empty());
        let first = with_code.clone().map(|load| load.time).min()?;
        let last = with_code.map(|load| load.time).max()?;
        let candidate = Self {
            dump,
            loads,
            places,
            first,
            looks: loads.len(),
        };
        // What comes at the end of time holds for no time.
        (last < Timestamp(u64::MAX)).then_some((process, candidate))
    }

    /// Whether a mapping ends a load, or it would take too long to say.
    fn is_ended_by(&mut self, range: AvmaRange, time: Timestamp) -> bool {
        if time < self.first {
            return false;
        }
        let mut touched = self.places.touching(self.loads, range);
        let ended = touched.by_ref().find(|&load| {
            self.looks = self.looks.saturating_sub(1);
            self.looks == 0 || self.loads[load].time <= time
        });
        ended.is_some()
    }
}

struct Check<'d> {
    candidates: FxHashMap<ProcessId, Candidate<'d>>,
    begun: &'d FxHashMap<ProcessId, Begun>,
    /// Processes that may have inherited code; and from which candidate, if it was one.
    heirs: FxHashMap<ProcessId, Option<ProcessId>>,
}

impl Check<'_> {
    fn take(&mut self, time: Timestamp, change: Change) {
        match change {
            Change::Fork { parent, child } if parent != child => self.fork(parent, child, time),
            Change::Fork { .. } => {}
            Change::Exec(process) => self.exec(process, time),
            Change::Mapped(process, range) | Change::Again(process, range, _) => {
                self.mapped(process, range, time);
            }
        }
    }

    fn fork(&mut self, parent: ProcessId, child: ProcessId, time: Timestamp) {
        self.refuse_inherited(parent);
        let begun = self.begun.get(&parent);
        let from = if begun.is_some_and(|begun| begun.first <= time) {
            Some(Some(parent).filter(|parent| self.candidates.contains_key(parent)))
        } else {
            self.heirs.get(&parent).map(|_| None)
        };
        if self.heirs.contains_key(&child) {
            // It was born before.
            self.refuse_inherited(child);
            self.candidates.remove(&child);
        }
        if let Some(from) = from {
            self.heirs.insert(child, from);
        }
    }

    fn exec(&mut self, process: ProcessId, time: Timestamp) {
        self.settle(process, Some(time));
        let candidate = self.candidates.get(&process);
        if candidate.is_some_and(|candidate| candidate.first <= time) {
            self.candidates.remove(&process);
        }
    }

    fn mapped(&mut self, process: ProcessId, range: AvmaRange, time: Timestamp) {
        self.refuse_inherited(process);
        let candidate = self.candidates.get_mut(&process);
        if candidate.is_some_and(|candidate| candidate.is_ended_by(range, time)) {
            self.candidates.remove(&process);
        }
    }

    /// A process has what it inherited until `time`, or to the end. Before, it must not come by code of its own.
    fn settle(&mut self, heir: ProcessId, time: Option<Timestamp>) {
        let begun = self.begun.get(&heir);
        let has_own = begun.is_some_and(|begun| time.is_none_or(|time| begun.first <= time));
        if has_own && self.heirs.contains_key(&heir) {
            self.refuse_inherited(heir);
            self.candidates.remove(&heir);
        }
        self.heirs.remove(&heir);
    }

    /// The process does with what it inherited what only a replay can follow.
    fn refuse_inherited(&mut self, heir: ProcessId) {
        if let Some(Some(from)) = self.heirs.get(&heir) {
            self.candidates.remove(from);
        }
    }

    fn end(&mut self) {
        let heirs: Vec<_> = self.heirs.keys().copied().collect();
        heirs.into_iter().for_each(|heir| self.settle(heir, None));
    }
}

#[cfg(test)]
#[path = "lasting_tests.rs"]
mod tests;
