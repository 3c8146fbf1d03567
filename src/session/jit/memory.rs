//! Executable memory without a file: what each mapping added, and which mapping is a copy of another.

use std::collections::BTreeMap;

use super::{JitIndex, ProcessId, Twin};
use crate::address::{Avma, AvmaRange, Timestamp};

/// So many mappings of anonymous memory are remembered for each process.
const MAX_ANONYMOUS: usize = 1 << 16;

/// Executable anonymous memory of a process.
#[derive(Default)]
pub(super) struct Anonymous {
    pub(super) pid: u32,
    /// Everything so far, by start; no two touch.
    pub(super) all: BTreeMap<u64, u64>,
    /// What all of it is now, by start: end, backing, and when it was mapped. No two share an address.
    backings: BTreeMap<u64, (u64, u64, Timestamp)>,
    /// What was mapped again, with the first time of that, and all of it by start.
    pub(super) again: Vec<(AvmaRange, Timestamp)>,
    all_again: BTreeMap<u64, u64>,
    /// What each mapping added, with its time.
    pub(super) fresh: Vec<(AvmaRange, Timestamp)>,
    /// Start and end of whole mappings, with the time of the first record of each.
    pub(super) mappings: BTreeMap<(Avma, Avma), Timestamp>,
}

/// Memory that is mapped where there was some before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    /// Whether that had another backing.
    pub(super) is_other: bool,
    /// When the last of it had been mapped.
    pub(super) before: Timestamp,
}

/// A program that a process ran, with the executable memory that it made.
pub(super) struct Program {
    pub(super) process: ProcessId,
    /// When it began and when another took its place.
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) memory: Anonymous,
}

impl Anonymous {
    /// What a process has from others, whose mappings are not its own.
    pub(super) fn inherited(pid: u32, all: BTreeMap<u64, u64>) -> Self {
        Self {
            pid,
            all,
            ..Self::default()
        }
    }

    /// Notes a mapping. Where there was some of the memory before, says what that was.
    pub(super) fn add(&mut self, range: AvmaRange, backing: u64, time: Timestamp) -> Option<Again> {
        if range.is_empty() || self.mappings.len() >= MAX_ANONYMOUS {
            return None;
        }
        let before = self.back(range, backing, time);
        self.mappings
            .entry((range.start, range.end))
            .or_insert(time);
        let added = not_yet(&self.all, range);
        for &(old, ..) in &before {
            let first = not_yet(&self.all_again, old).into_iter();
            self.again.extend(first.map(|part| (part, time)));
            unite(&mut self.all_again, old);
        }
        if time > Timestamp::START {
            self.fresh.extend(added.iter().map(|&added| (added, time)));
        }
        unite(&mut self.all, range);
        Some(Again {
            is_other: before.iter().any(|(_, other, _)| *other != backing),
            before: before.iter().map(|(.., earlier)| *earlier).max()?,
        })
    }

    /// The range has this backing from now on. What was there before, each part with its backing and time.
    fn back(
        &mut self,
        range: AvmaRange,
        backing: u64,
        time: Timestamp,
    ) -> Vec<(AvmaRange, u64, Timestamp)> {
        let (start, end) = (range.start.0, range.end.0);
        let mut before = Vec::new();
        while let Some((&old, &(old_end, other, mapped))) = self.backings.range(..end).next_back()
            && old_end > start
        {
            let part = AvmaRange {
                start: Avma(old.max(start)),
                end: Avma(old_end.min(end)),
            };
            before.push((part, other, mapped));
            self.backings.remove(&old);
            if old_end > end {
                self.backings.insert(end, (old_end, other, mapped));
            }
            if old < start {
                self.backings.insert(old, (start, other, mapped));
            }
        }
        self.backings.insert(start, (end, backing, time));
        before
    }

    pub(super) fn covers(&self, at: u64) -> bool {
        self.all
            .range(..=at)
            .next_back()
            .is_some_and(|(_, &end)| at < end)
    }

    /// For each stretch of fresh memory the first load in it.
    pub(super) fn first_loads(
        &self,
        loads: impl Iterator<Item = (AvmaRange, u64)>,
    ) -> Vec<(Timestamp, u64)> {
        let mut fresh: Vec<_> = self
            .fresh
            .iter()
            .map(|&(range, time)| (range, time, None::<u64>))
            .collect();
        fresh.sort_unstable_by_key(|(range, time, _)| (range.start, *time));
        for (range, time) in loads {
            let next = fresh.partition_point(|(stretch, _, _)| stretch.start <= range.start);
            let Some((stretch, _, first)) = next.checked_sub(1).map(|at| &mut fresh[at]) else {
                continue;
            };
            if stretch.contains(range.start) {
                *first = Some(first.map_or(time, |first| first.min(time)));
            }
        }
        fresh
            .into_iter()
            .filter_map(|(_, time, first)| Some((time, first?)))
            .collect()
    }
}

/// The parts of a range that are not among disjoint ranges, which have their ends by start.
pub(super) fn not_yet(all: &BTreeMap<u64, u64>, range: AvmaRange) -> Vec<AvmaRange> {
    let mut parts = Vec::new();
    let mut at = range.start.0;
    let before = all.range(..=at).next_back();
    for (&start, &end) in before
        .into_iter()
        .chain(all.range(at + 1..range.end.0.max(at + 1)))
    {
        if start > at {
            parts.push(AvmaRange::new(Avma(at), start - at));
        }
        at = at.max(end);
    }
    if at < range.end.0 {
        parts.push(AvmaRange::new(Avma(at), range.end.0 - at));
    }
    parts
}

/// Adds a range to ranges that do not touch.
pub(super) fn unite(all: &mut BTreeMap<u64, u64>, range: AvmaRange) {
    let (mut start, mut end) = (range.start.0, range.end.0);
    while let Some((&old_start, &old_end)) = all
        .range(..=end)
        .next_back()
        .filter(|&(_, &old_end)| old_end >= start)
    {
        all.remove(&old_start);
        (start, end) = (start.min(old_start), end.max(old_end));
    }
    all.insert(start, end);
}

/// So many nanoseconds after a module its copy is mapped, at most: it is made as soon as the module is about to run, when the dump
/// has been told of all its functions. wasmtime 49 took 1 ms for a page, and 32 ms for 1.5 MB with 6000 functions. Another engine
/// that compiles a module as large takes longer.
fn soon(length: u64) -> u64 {
    const LEAST: u64 = 3_000_000;
    const MOST: u64 = 100_000_000;
    length.saturating_mul(40).saturating_add(LEAST).min(MOST)
}

/// wasmtime's guest debugging runs a copy of the code that it reports: what may be one, by the mappings alone. That is an
/// anonymous mapping without loads that came right after the only other one of its length, which has some.
/// [`super::twins`] asks the samples for proof.
pub(super) fn twins(index: &JitIndex<'_>, process: ProcessId, anonymous: &Anonymous) -> Vec<Twin> {
    let mut by_length: BTreeMap<u64, Vec<(AvmaRange, Timestamp)>> = BTreeMap::new();
    for (&(start, end), &time) in &anonymous.mappings {
        let same_length = by_length.entry(end.since(start)).or_default();
        same_length.push((AvmaRange { start, end }, time));
    }
    let pairs = by_length.into_values();
    let twin = |pair: Vec<_>| match pair.as_slice() {
        &[one, two] => {
            twin_of(index, process, one, two).or_else(|| twin_of(index, process, two, one))
        }
        _ => None,
    };
    pairs.filter_map(twin).collect()
}

/// The one mapping as what the other may be copied from.
fn twin_of(
    index: &JitIndex<'_>,
    process: ProcessId,
    (original, made): (AvmaRange, Timestamp),
    (copy, copied): (AvmaRange, Timestamp),
) -> Option<Twin> {
    let code = |range| index.claims.touching(&index.codes, process, range);
    let runs_copies = index.code(code(original)?).producer().row().runs_copies;
    let length = original.end.since(original.start);
    let follows = made > Timestamp::START
        && made <= copied
        && copied.0.saturating_sub(made.0) <= soon(length);
    (runs_copies && follows && code(copy).is_none()).then_some(Twin {
        copy,
        original: original.start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_is_what_was_not_there_before() {
        let mut anonymous = Anonymous::default();
        let range = |start: u64, end: u64| AvmaRange {
            start: Avma(start),
            end: Avma(end),
        };
        anonymous.add(range(100, 200), 0, Timestamp(1));
        anonymous.add(range(50, 300), 0, Timestamp(2));
        anonymous.add(range(60, 70), 0, Timestamp(3));
        anonymous.add(range(300, 310), 0, Timestamp(4));
        anonymous.add(range(400, 400), 0, Timestamp(5));
        let fresh: Vec<_> = anonymous
            .fresh
            .iter()
            .map(|(r, t)| (r.start.0, r.end.0, t.0))
            .collect();
        assert_eq!(
            fresh,
            [(100, 200, 1), (50, 100, 2), (200, 300, 2), (300, 310, 4)]
        );
        assert_eq!(anonymous.all, BTreeMap::from([(50, 310)]));
        let again = anonymous.again.iter();
        let again: Vec<_> = again.map(|(r, t)| (r.start.0, r.end.0, t.0)).collect();
        assert_eq!(again, [(100, 200, 2), (60, 70, 3)]);
        assert!(anonymous.covers(50) && anonymous.covers(309) && !anonymous.covers(310));
        let loads = [
            (range(120, 130), 7_u64),
            (range(110, 120), 9),
            (range(250, 260), 8),
            (range(900, 901), 1),
        ];
        assert_eq!(
            anonymous.first_loads(loads.into_iter()),
            [(Timestamp(1), 7), (Timestamp(2), 8)]
        );
        let other = [
            (0, 100, 7),
            (20, 30, 7),
            (10, 25, 8),
            (25, 40, 7),
            (99, 101, 8),
        ];
        let mut mixed = Anonymous::default();
        let found = [1, 2, 3, 4, 5].map(|time| {
            let (start, end, backing) = other[time as usize - 1];
            let again = mixed.add(range(start, end), backing, Timestamp(time));
            again.map(|again| (again.is_other, again.before.0))
        });
        let again = [(false, 1), (true, 2), (false, 2), (true, 1)];
        assert_eq!(found[1..], again.map(Some));
        assert_eq!(found[0], None);
    }
}
