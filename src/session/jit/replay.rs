//! Everything that happened to JIT code, in order of time.

use super::builder::Change;
use super::claims::{Claims, ClaimsBuilder};
use super::dumps::Dump;
use super::owners::Owners;
use super::{JitCode, JitObjectId, ProcessId};
use crate::address::{AvmaRange, Timestamp};
use crate::jitdump::Producer;

/// Applies everything that happened in order of time: what a dump tells first, as perf's inject
/// writes it first, then mappings and execs, then forks.
pub(super) fn replay(
    dumps: &mut [Dump<'_>],
    owners: &[Owners],
    changes: &[(Timestamp, Change)],
) -> Claims {
    let mut happenings = happenings(dumps, owners);
    let other = (0_u32..).zip(changes).map(|(number, (time, change))| {
        let rank = if matches!(change, Change::Fork { .. }) {
            Rank::Fork
        } else {
            Rank::Change
        };
        Happening::new(*time, rank, 0, number)
    });
    happenings.extend(other);
    happenings.sort_by_key(|happening| (happening.time, happening.rank()));
    let mut replay = Replay {
        claims: ClaimsBuilder::default(),
        first_codes: first_codes(dumps),
    };
    for owners in owners {
        if let Some(process) = owners.of_loads.iter().flatten().next() {
            replay.claims.reserve(*process, owners.of_loads.len());
        }
    }
    for happening in &happenings {
        let dump = (happening.ranked_dump & Happening::DUMP) as usize;
        let number = happening.number as usize;
        match happening.rank() {
            Rank::Load => replay.load(dumps, dump, number, owners[dump].of_loads[number]),
            Rank::Move => replay.moved(dumps, dump, number, owners[dump].of_moves[number]),
            Rank::Change | Rank::Fork => replay.change(changes[number]),
        }
    }
    replay.claims.freeze()
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

    const fn rank(self) -> Rank {
        match self.ranked_dump >> 30 {
            0 => Rank::Load,
            1 => Rank::Move,
            2 => Rank::Change,
            _ => Rank::Fork,
        }
    }
}

/// Loads and moves that belong to a process, dump by dump in file order.
fn happenings(dumps: &[Dump<'_>], owners: &[Owners]) -> Vec<Happening> {
    let count = dumps.iter().map(|dump| dump.codes.len() + dump.moves.len());
    let mut happenings = Vec::with_capacity(count.sum());
    for ((dump_number, dump), owners) in (0_u32..).zip(dumps).zip(owners) {
        let of = |rank, number, time| Happening::new(time, rank, dump_number, number);
        let loads = (0_u32..)
            .zip(dump.codes.iter().zip(&owners.of_loads))
            .filter(|(_, (_, owner))| owner.is_some());
        happenings.extend(loads.map(|(number, (code, _))| of(Rank::Load, number, code.loaded)));
        let moves = (0_u32..)
            .zip(dump.moves.iter().zip(&owners.of_moves))
            .filter(|(_, (_, owner))| owner.is_some());
        happenings.extend(
            moves.map(|(number, (moved, _))| of(Rank::Move, number, Timestamp(moved.time))),
        );
    }
    happenings
}

/// The id of the first code of each dump.
fn first_codes(dumps: &mut [Dump<'_>]) -> Vec<u32> {
    let mut first = 0_u32;
    for (dump, object) in dumps.iter_mut().zip(0_u32..) {
        for code in &mut dump.codes {
            code.object = JitObjectId(object);
        }
    }
    dumps
        .iter()
        .map(|dump| {
            let own = first;
            first = first.saturating_add(u32::try_from(dump.codes.len()).unwrap_or(u32::MAX));
            own
        })
        .collect()
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
        let code = &dumps[dump].codes[number];
        let (range, time) = (code.range(), code.loaded);
        if let Some(old) = self.claims.at(process, range)
            && let Some((old_dump, old_number)) = self.position(old)
            && is_alias(&dumps[old_dump].codes[old_number], code)
        {
            let name = better_name(dumps[old_dump].codes[old_number].name, code.name);
            dumps[old_dump].codes[old_number].name = name;
            dumps[dump].aliases += 1;
            return;
        }
        let Ok(number) = u32::try_from(number) else {
            return;
        };
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
        if code_dump == dump
            && dumps[dump]
                .indexes
                .get(code_number)
                .is_some_and(|&index| index != moved.index)
        {
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
    fn position(&self, code: u32) -> Option<(usize, usize)> {
        let dump = self
            .first_codes
            .partition_point(|&first| first <= code)
            .checked_sub(1)?;
        Some((dump, (code - self.first_codes[dump]) as usize))
    }
}

/// Whether a load at the same place tells the same again: V8 registers its builtins for every
/// isolate, wasmtime every function once for each module of a component. The interpreter's trampolines of two
/// functions of V8 have the same bytes too, but other names.
fn is_alias(old: &JitCode<'_>, new: &JitCode<'_>) -> bool {
    let same_name = old.name == new.name;
    (same_name || new.producer == Producer::Wasmtime) && old.bytes == new.bytes
}

/// Of a component's names for one function only one is not made of numbers.
fn better_name<'a>(old: &'a [u8], new: &'a [u8]) -> &'a [u8] {
    if is_numbered(old) && !is_numbered(new) {
        new
    } else {
        old
    }
}

/// `wasm[0]::function[24]`, whatever follows.
fn is_numbered(name: &[u8]) -> bool {
    let number = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let Some(rest) = name.strip_prefix(b"wasm[") else {
        return false;
    };
    let Some(rest) = rest[number(rest)..].strip_prefix(b"]::function[") else {
        return false;
    };
    rest[number(rest)..].starts_with(b"]")
}
