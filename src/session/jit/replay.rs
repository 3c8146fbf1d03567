//! Everything that happened to JIT code, in order of time.

use super::claims::{Claims, ClaimsBuilder};
use super::codes::DumpCodes;
use super::dumps::Dump;
use super::lasting::{Lasting, lasting};
use super::marker::Change;
use super::owners::{OwnedLoads, Owners};
use super::{JitObjectId, ProcessId};
use crate::address::{AvmaRange, Timestamp};
use crate::runtimes::wasmtime_function;

/// Applies everything that happened in order of time: what a dump tells first, as perf's inject
/// writes it first, then mappings and execs, then forks.
pub(super) fn replay(
    dumps: &mut [Dump<'_>],
    owners: &[Owners],
    changes: &[(Timestamp, Change)],
) -> Claims {
    let mut happenings = changes_in_order(changes);
    let in_order = happenings.iter().map(|change| change.number as usize);
    let lasting = lasting(dumps, owners, in_order.map(|number| changes[number]));
    let mut replay = Replay {
        claims: ClaimsBuilder::default(),
        first_codes: first_codes(dumps),
    };
    for ((dump, owners), lasting) in (0_u32..).zip(owners).zip(&lasting) {
        match (lasting, &owners.of_loads) {
            (Some(lasting), _) => {
                replay
                    .claims
                    .lasting(lasting.process, JitObjectId(dump), lasting.first);
            }
            (None, OwnedLoads::All(process)) => {
                let loads = dumps[dump as usize].codes.loads.len();
                replay.claims.reserve(*process, loads);
            }
            (None, OwnedLoads::Each(_)) => {}
        }
    }
    add_dumps(&mut happenings, dumps, owners, &lasting);
    for happening in &happenings {
        let dump = (happening.ranked_dump & Happening::DUMP) as usize;
        let number = happening.number as usize;
        match happening.rank() {
            Rank::Load => replay.load(dumps, dump, number, owners[dump].of_loads.of(number)),
            Rank::Move => replay.moved(dumps, dump, number, owners[dump].of_moves[number]),
            Rank::Change | Rank::Fork => replay.change(changes[number]),
        }
    }
    drop(happenings);
    replay.claims.freeze()
}

/// What comes from the recording.
fn changes_in_order(changes: &[(Timestamp, Change)]) -> Vec<Happening> {
    let changes = (0_u32..).zip(changes).map(|(number, (time, change))| {
        let rank = if matches!(change, Change::Fork { .. }) {
            Rank::Fork
        } else {
            Rank::Change
        };
        Happening::new(*time, rank, 0, number)
    });
    let mut happenings: Vec<_> = changes.collect();
    happenings.sort_by_key(Happening::order);
    happenings
}

/// What happens at one time, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
enum Rank {
    Load,
    Move,
    Change,
    Fork,
}

/// There is one for each function, so they are kept small.
#[derive(Clone, Copy)]
struct Happening {
    time: Timestamp,
    number: u32,
    /// Of the dump, with the rank in the top two bits.
    ranked_dump: u32,
}

impl Happening {
    const DUMP: u32 = u32::MAX >> 2;

    fn new(time: Timestamp, rank: Rank, dump: u32, number: u32) -> Self {
        Self {
            time,
            number,
            ranked_dump: (rank as u32) << 30 | dump & Self::DUMP,
        }
    }

    const fn order(&self) -> (Timestamp, Rank) {
        (self.time, self.rank())
    }

    const fn rank(self) -> Rank {
        match self.ranked_dump >> 30 {
            0 => Rank::Load,
            1 => Rank::Move,
            2 => Rank::Change,
            _ => Rank::Fork,
        }
    }
}

/// Puts loads and moves that belong to a process to what happened, dump by dump in file order; those that
/// last need no replay.
fn add_dumps(
    happenings: &mut Vec<Happening>,
    dumps: &[Dump<'_>],
    owners: &[Owners],
    lasting: &[Option<Lasting>],
) {
    let replayed = || {
        let dumps = (0_u32..).zip(dumps.iter().zip(owners)).zip(lasting);
        dumps.filter(|(_, lasting)| lasting.is_none())
    };
    let count = replayed().map(|((_, (dump, _)), _)| dump.codes.loads.len() + dump.moves.len());
    match count.sum() {
        0 => return,
        count => happenings.reserve_exact(count),
    }
    for ((dump_number, (dump, owners)), _) in replayed() {
        let of = |rank, number, time| Happening::new(time, rank, dump_number, number);
        let loads = (0_u32..).zip(&dump.codes.loads);
        let loads = loads.filter(|(number, _)| owners.of_loads.of(*number as usize).is_some());
        happenings.extend(loads.map(|(number, load)| of(Rank::Load, number, load.time)));
        let moves = (0_u32..).zip(dump.moves.iter().zip(&owners.of_moves));
        let moves = moves.filter(|(_, (_, owner))| owner.is_some());
        happenings.extend(
            moves.map(|(number, (moved, _))| of(Rank::Move, number, Timestamp(moved.time))),
        );
    }
    happenings.sort_by_key(Happening::order);
}

/// The id of the first code of each dump.
fn first_codes(dumps: &mut [Dump<'_>]) -> Vec<u32> {
    let mut first = 0_u32;
    let numbered = dumps.iter_mut().zip(0_u32..);
    let firsts = numbered.map(|(dump, object)| {
        dump.codes.object = JitObjectId(object);
        let own = first;
        first = first.saturating_add(dump.codes.next_number());
        own
    });
    firsts.collect()
}

struct Replay {
    claims: ClaimsBuilder,
    first_codes: Vec<u32>,
}

impl Replay {
    fn load(
        &mut self,
        dumps: &mut [Dump<'_>],
        dump: usize,
        number: usize,
        owner: Option<ProcessId>,
    ) {
        let Some(process) = owner else { return };
        let load = &dumps[dump].codes.loads[number];
        let (range, time) = (load.range(), load.time);
        let Ok(number) = u32::try_from(number) else {
            return;
        };
        if let Some(old) = self.claims.at(process, range)
            && let Some((old_dump, old_number)) = self.position(old)
            && is_alias(
                (&dumps[old_dump].codes, old_number),
                (&dumps[dump].codes, number),
            )
        {
            let old_name = dumps[old_dump].codes.name(old_number);
            let name = dumps[dump].codes.name(number);
            if is_better_name(old_name, name) {
                dumps[old_dump].codes.rename(old_number, name);
            }
            dumps[dump].aliases += 1;
            return;
        }
        let code = self.first_codes[dump].saturating_add(number);
        let ended = self.claims.load(process, range, code, time);
        dumps[dump].replaced += u64::from(ended);
    }

    /// The code that moves is the one in force at the old address with the index of the move.
    fn moved(&mut self, dumps: &[Dump<'_>], dump: usize, number: usize, owner: Option<ProcessId>) {
        let Some(process) = owner else { return };
        let moved = dumps[dump].moves[number];
        let Some((code, range)) = self.claims.starting_at(process, moved.from) else {
            return;
        };
        let Some((code_dump, code_number)) = self.position(code) else {
            return;
        };
        let index = || dumps[dump].codes.index(code_number);
        if code_dump == dump && index().is_some_and(|index| index != moved.index) {
            return;
        }
        let to = AvmaRange::new(
            moved.to,
            range.len().min(if moved.size == 0 {
                u64::MAX
            } else {
                moved.size
            }),
        );
        self.claims
            .moved(process, moved.from, to, code, Timestamp(moved.time));
    }

    fn change(&mut self, (time, change): (Timestamp, Change)) {
        match change {
            Change::Fork { parent, child } => self.claims.fork(parent, child, time),
            Change::Exec(process) => self.claims.exec(process, time),
            Change::Mapped(process, range) => self.claims.mapped(process, range, time),
        }
    }

    /// Dump and number of a code.
    fn position(&self, code: u32) -> Option<(usize, u32)> {
        let dump = self
            .first_codes
            .partition_point(|&first| first <= code)
            .checked_sub(1)?;
        Some((dump, code - self.first_codes[dump]))
    }
}

/// Whether a load at the same place tells the same again: V8 registers its builtins for every
/// isolate, wasmtime every function once for each module of a component. The interpreter's trampolines of two
/// functions of V8 have the same bytes too, but other names.
fn is_alias((dump, old): (&DumpCodes<'_>, u32), (new_dump, new): (&DumpCodes<'_>, u32)) -> bool {
    let same_name = || dump.name(old) == new_dump.name(new);
    (new_dump.producer.row().renames_repeats || same_name())
        && dump.bytes(old) == new_dump.bytes(new)
}

/// Of a component's names for one function only one is not made of numbers.
fn is_better_name(old: &[u8], new: &[u8]) -> bool {
    wasmtime_function(old).is_some() && wasmtime_function(new).is_none()
}
