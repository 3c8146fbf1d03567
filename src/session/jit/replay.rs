//! Everything that happened to JIT code, in order of time.

use rustc_hash::FxHashMap;

use super::claims::{Claims, ClaimsBuilder};
use super::dumps::Dump;
use super::lasting::{Lasting, OfDumps, lasting};
use super::load_map::LoadId;
use super::marker::Change;
use super::owners::{MoveId, OwnedLoads, Owners};
use super::{JitCodeId, JitObjectId, ProcessId};
use crate::address::{AvmaRange, Timestamp};
use crate::ids::{Idx, IndexSlice, IndexVec, numbers};
use crate::runtimes::wasmtime_function;

numbers! {
    /// Something that the recording tells, in its order.
    pub(super) struct ChangeId(u32);
}

/// All that the recording tells.
pub(super) type Changes = IndexSlice<ChangeId, [(Timestamp, Change)]>;

/// Applies everything that happened in order of time: what a dump tells first, as perf's inject
/// writes it first, then mappings and execs, then forks.
pub(super) fn replay(
    dumps: &mut OfDumps<Dump<'_>>,
    owners: &OfDumps<Owners>,
    changes: &Changes,
) -> Claims {
    let mut happenings = changes_in_order(changes);
    let in_order = happenings
        .iter()
        .filter_map(|happening| match happening.what() {
            What::Change(change) | What::Fork(change) => Some(changes[change]),
            What::Load(..) | What::Move(..) => None,
        });
    let lasting_dumps = lasting(dumps, owners, in_order);
    let mut replay = Replay {
        claims: ClaimsBuilder::default(),
        first_codes: first_codes(dumps),
        bursts: FxHashMap::default(),
    };
    for ((dump, own), lasting) in owners.iter_enumerated().zip(&lasting_dumps) {
        match (lasting, &own.of_loads) {
            (Some(lasting), _) => {
                replay.claims.lasting(lasting.process, dump, lasting.first);
            }
            (None, OwnedLoads::All(process)) => {
                let loads = dumps[dump].codes.loads.len();
                replay.claims.reserve(*process, loads);
            }
            (None, OwnedLoads::Each(_)) => {}
        }
    }
    add_dumps(&mut happenings, dumps, owners, &lasting_dumps);
    for happening in &happenings {
        match happening.what() {
            What::Load(dump, load) => {
                replay.load(dumps, dump, load, owners[dump].of_loads.of(load));
            }
            What::Move(dump, number) => {
                replay.moved(dumps, dump, number, owners[dump].of_moves[number]);
            }
            What::Change(change) | What::Fork(change) => replay.change(dumps, changes[change]),
        }
    }
    drop(happenings);
    replay.claims.freeze()
}

/// What comes from the recording.
fn changes_in_order(changes: &Changes) -> Vec<Happening> {
    let changes = changes.iter_enumerated().map(|(number, (time, change))| {
        let what = match change {
            Change::Fork { .. } => What::Fork(number),
            Change::Exec(_) | Change::Mapped(..) | Change::Again(..) => What::Change(number),
        };
        Happening::new(*time, what)
    });
    let mut happenings: Vec<_> = changes.collect();
    happenings.sort_by_key(Happening::order);
    happenings
}

/// What happens at one time, in this order.
#[derive(Clone, Copy)]
enum What {
    Load(JitObjectId, LoadId),
    Move(JitObjectId, MoveId),
    Change(ChangeId),
    Fork(ChangeId),
}

/// There is one for each function, so they are kept small.
#[derive(Clone, Copy)]
struct Happening {
    time: Timestamp,
    /// Of the load, move or change.
    number: u32,
    /// Of the dump, with what it is in the top two bits.
    ranked_dump: u32,
}

impl Happening {
    const DUMP: u32 = u32::MAX >> 2;

    const fn new(time: Timestamp, what: What) -> Self {
        let (rank, dump, number) = match what {
            What::Load(dump, load) => (0, dump.0, load.0),
            What::Move(dump, number) => (1, dump.0, number.0),
            What::Change(change) => (2, 0, change.0),
            What::Fork(change) => (3, 0, change.0),
        };
        Self {
            time,
            number,
            ranked_dump: rank << 30 | dump & Self::DUMP,
        }
    }

    const fn order(&self) -> (Timestamp, u32) {
        (self.time, self.ranked_dump >> 30)
    }

    const fn what(self) -> What {
        let dump = JitObjectId(self.ranked_dump & Self::DUMP);
        match self.ranked_dump >> 30 {
            0 => What::Load(dump, LoadId(self.number)),
            1 => What::Move(dump, MoveId(self.number)),
            2 => What::Change(ChangeId(self.number)),
            _ => What::Fork(ChangeId(self.number)),
        }
    }
}

/// Puts loads and moves that belong to a process to what happened, dump by dump in file order; those that
/// last need no replay.
fn add_dumps(
    happenings: &mut Vec<Happening>,
    dumps: &OfDumps<Dump<'_>>,
    owners: &OfDumps<Owners>,
    lasting: &OfDumps<Option<Lasting>>,
) {
    let replayed = || {
        let dumps = dumps.iter_enumerated();
        dumps.filter(|&(number, _)| lasting[number].is_none())
    };
    let count = replayed().map(|(_, dump)| dump.codes.loads.len() + dump.moves.len());
    match count.sum() {
        0 => return,
        count => happenings.reserve_exact(count),
    }
    for (number, dump) in replayed() {
        let owners = &owners[number];
        let loads = dump.codes.loads.iter_enumerated();
        let loads = loads.filter(|&(load, _)| owners.of_loads.of(load).is_some());
        happenings.extend(
            loads.map(|(load, found)| Happening::new(found.time, What::Load(number, load))),
        );
        let moves = dump.moves.iter_enumerated();
        let moves = moves.filter(|&(moved, _)| owners.of_moves[moved].is_some());
        happenings.extend(moves.map(|(moved, found)| {
            Happening::new(Timestamp(found.time), What::Move(number, moved))
        }));
    }
    happenings.sort_by_key(Happening::order);
}

/// The first code of each dump.
fn first_codes(dumps: &mut OfDumps<Dump<'_>>) -> IndexVec<JitObjectId, JitCodeId> {
    let mut first = JitCodeId::default();
    let firsts = dumps.iter_mut_enumerated().map(|(object, dump)| {
        dump.codes.object = object;
        let own = first;
        first = dump.codes.next_number().code(first);
        own
    });
    firsts.collect()
}

struct Replay {
    claims: ClaimsBuilder,
    first_codes: IndexVec<JitObjectId, JitCodeId>,
    /// The loads of dumps behind which the runtime had something else to do before; of those that were asked for.
    bursts: FxHashMap<JitObjectId, Vec<LoadId>>,
}

/// The loads of one module follow each other sooner.
const PAUSE: u64 = 10_000_000;

impl Replay {
    fn load(
        &mut self,
        dumps: &mut OfDumps<Dump<'_>>,
        dump: JitObjectId,
        number: LoadId,
        owner: Option<ProcessId>,
    ) {
        let Some(process) = owner else { return };
        let load = &dumps[dump].codes.loads[number];
        let (range, time) = (load.range(), load.time);
        if let Some(old) = self.claims.at(process, range)
            && let Some((old_dump, old_number)) = position(&self.first_codes, old)
            && self.is_alias(dumps, (old_dump, old_number), (dump, number))
        {
            let old_name = dumps[old_dump].codes.name(old_number);
            let name = dumps[dump].codes.name(number);
            if is_better_name(old_name, name) {
                dumps[old_dump].codes.rename(old_number, name);
            }
            dumps[dump].aliases += 1;
            return;
        }
        let code = number.code(self.first_codes[dump]);
        let ended = self.claims.load(process, range, code, time);
        dumps[dump].replaced += u64::from(ended);
    }

    /// The code that moves is the one in force at the old address with the index of the move.
    fn moved(
        &mut self,
        dumps: &OfDumps<Dump<'_>>,
        dump: JitObjectId,
        number: MoveId,
        owner: Option<ProcessId>,
    ) {
        let Some(process) = owner else { return };
        let moved = dumps[dump].moves[number];
        let Some(code) = self.claims.starting_at(process, moved.from) else {
            return;
        };
        let Some((code_dump, code_number)) = position(&self.first_codes, code) else {
            return;
        };
        let index = || dumps[dump].codes.index(code_number);
        if code_dump == dump && index().is_some_and(|index| index != moved.index) {
            return;
        }
        let size = u64::from(dumps[code_dump].codes.loads[code_number].size);
        let from = AvmaRange::new(moved.from, size);
        let told = if moved.size == 0 { size } else { moved.size };
        let to = AvmaRange::new(moved.to, size.min(told));
        self.claims
            .moved(process, from, to, code, Timestamp(moved.time));
    }

    /// Whether a load at the same place tells the same again: V8 registers its builtins for every
    /// isolate, wasmtime every function once for each module of a component, one right after the other. The interpreter's
    /// trampolines of two functions of V8 have the same bytes too, but other names; and so have functions of two modules
    /// that wasmtime loads in turn.
    fn is_alias(
        &mut self,
        dumps: &OfDumps<Dump<'_>>,
        (old_dump, old): (JitObjectId, LoadId),
        (new_dump, new): (JitObjectId, LoadId),
    ) -> bool {
        let (old_codes, new_codes) = (&dumps[old_dump].codes, &dumps[new_dump].codes);
        let (old_name, new_name) = (old_codes.name(old), new_codes.name(new));
        let is_renamed = || {
            new_codes.producer.row().renames_repeats
                && may_be_one(old_name, new_name)
                && old_dump == new_dump
        };
        if old_name != new_name && !is_renamed() || old_codes.bytes(old) != new_codes.bytes(new) {
            return false;
        }
        old_name == new_name || {
            let starts = self
                .bursts
                .entry(new_dump)
                .or_insert_with(|| new_codes.loads_behind_pauses(PAUSE));
            let burst = |load| starts.partition_point(|&start| start <= load);
            burst(old) == burst(new)
        }
    }

    fn change(&mut self, dumps: &OfDumps<Dump<'_>>, (time, change): (Timestamp, Change)) {
        match change {
            Change::Fork { parent, child } => self.claims.fork(parent, child, time),
            Change::Exec(process) => self.claims.exec(process, time),
            Change::Mapped(process, range) => self.claims.mapped(process, range, time),
            Change::Again(process, range, again) => {
                let first_codes = &self.first_codes;
                let maps_once = |code| {
                    position(first_codes, code)
                        .is_some_and(|(dump, _)| dumps[dump].codes.producer.row().maps_once)
                };
                self.claims
                    .mapped_again(process, (range, again), time, maps_once);
            }
        }
    }
}

/// Dump and number of a code.
fn position(
    first_codes: &IndexSlice<JitObjectId, [JitCodeId]>,
    code: JitCodeId,
) -> Option<(JitObjectId, LoadId)> {
    let next = first_codes.raw.partition_point(|&first| first <= code);
    let dump = JitObjectId::from_usize(next.checked_sub(1)?);
    Some((dump, LoadId::of(code, first_codes[dump])))
}

/// Of a component's names for one function only one is not made of numbers.
fn is_better_name(old: &[u8], new: &[u8]) -> bool {
    wasmtime_function(old).is_some() && wasmtime_function(new).is_none()
}

/// Whether wasmtime may have both names for one function: they differ in the number of the module, or one is the function's
/// own.
fn may_be_one(old: &[u8], new: &[u8]) -> bool {
    let in_module = |name| {
        let (_, number, own) = wasmtime_function(name)?;
        Some((number, own))
    };
    match (in_module(old), in_module(new)) {
        (Some(old), Some(new)) => old == new,
        (None, None) => {
            let behind = |name: &'_ [u8]| {
                let rest = name.strip_prefix(b"wasm[")?;
                memchr::memchr(b']', rest)
            };
            match (behind(old), behind(new)) {
                (Some(a), Some(b)) => old[a + 5..] == new[b + 5..],
                _ => false,
            }
        }
        _ => true,
    }
}
