//! What is counted of branches beside their rows.

use super::PcId;
use super::space::SpaceAt;
use crate::address::Avma;
use crate::ids::{Idx as _, IndexSlice, IndexVec};
use crate::perfdata::{Branch, EventId};
use crate::unwind::Lifetime;

/// Branches of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branched {
    /// By event: samples that have some.
    pub samples: IndexVec<EventId, u64>,
    /// Entries of registers that were not yet filled. They are no branches, and have no rows.
    pub empty: u64,
    /// Branches by [`Branch::kind`].
    pub kinds: [u64; Branch::ALL_KINDS],
    /// Of conditional branches: those that led forward.
    pub forward: u64,
    /// Of all with a type: those that left 4 KiB, but not 2 MiB.
    pub left_small_page: u64,
    /// Those that left 2 MiB.
    pub left_large_page: u64,
}

impl Branched {
    /// Adds those of another recording, whose events have new numbers.
    pub fn add_all(&mut self, other: &Self, events: &IndexSlice<EventId, [EventId]>) {
        for (event, count) in other.samples.iter_enumerated() {
            let at = usize::from(events.get(event).copied().unwrap_or(event).0);
            if self.samples.len() <= at {
                self.samples.raw.resize(at + 1, 0);
            }
            self.samples.raw[at] += count;
        }
        for (sum, more) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += more;
        }
        self.empty += other.empty;
        self.forward += other.forward;
        self.left_small_page += other.left_small_page;
        self.left_large_page += other.left_large_page;
    }

    /// Counts a sample's branches, of which there are some, or only empty ones.
    pub(super) fn sample(&mut self, event: EventId, has_some: bool) {
        let event = usize::from(event.0);
        if self.samples.len() <= event {
            self.samples.raw.resize(event + 1, 0);
        }
        self.samples.raw[event] += u64::from(has_some);
    }

    /// Counts a branch.
    pub(super) fn add(&mut self, branch: &Branch) {
        let kind = branch.kind();
        self.kinds[kind] += 1;
        if kind == 0 {
            return;
        }
        let leaves = |size: u64| branch.from.0 & !(size - 1) != branch.to.0 & !(size - 1);
        self.forward += u64::from(kind == Branch::CONDITIONAL && branch.to > branch.from);
        if leaves(2 << 20) {
            self.left_large_page += 1;
        } else if leaves(4 << 10) {
            self.left_small_page += 1;
        }
    }

    /// Adds what another thread counted.
    pub(super) fn absorb(&mut self, other: &Self) {
        for (event, samples) in other.samples.iter_enumerated() {
            self.sample(event, false);
            self.samples[event] += samples;
        }
        for (kind, more) in self.kinds.iter_mut().zip(other.kinds) {
            *kind += more;
        }
        self.empty += other.empty;
        self.forward += other.forward;
        self.left_small_page += other.left_small_page;
        self.left_large_page += other.left_large_page;
    }

    /// How many have a type.
    #[must_use]
    pub fn typed(&self) -> u64 {
        self.kinds.iter().skip(1).sum()
    }
}

/// Where branches begin and end, of those that were met last. Direct mapped; a clash only costs the lookup.
#[derive(Default)]
pub(super) struct Ends(Vec<End>);

#[derive(Clone, Copy)]
struct End {
    at: Avma,
    /// See [`SpaceAt::state`].
    state: u64,
    life: Lifetime,
    place: PcId,
}

impl Ends {
    const BITS: u32 = 12;

    /// What was kept for an address.
    #[inline]
    pub(super) fn at(&self, space: &SpaceAt<'_, '_>, at: Avma) -> Option<PcId> {
        let end = self.0.get(Self::slot(at))?;
        let is_it = end.at == at && end.state == space.state() && end.life.contains(space.time());
        is_it.then_some(end.place)
    }

    /// Keeps it in place of another, if it holds for some time.
    pub(super) fn keep(&mut self, space: &SpaceAt<'_, '_>, at: Avma, place: PcId, life: Lifetime) {
        if !life.contains(space.time()) {
            return;
        }
        let end = End {
            at,
            state: space.state(),
            life,
            place,
        };
        if self.0.is_empty() {
            // No address was met yet.
            let life = Lifetime::NEVER;
            self.0 = vec![End { life, ..end }; 1 << Self::BITS];
        }
        self.0[Self::slot(at)] = end;
    }

    const fn slot(at: Avma) -> usize {
        (at.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - Self::BITS)) as usize
    }
}

/// By the address of branches: how many were mispredicted, and how many there were of which that is known.
#[derive(Debug, Default)]
pub(super) struct Predictions(IndexVec<PcId, (u64, u64)>);

impl Predictions {
    /// Counts a branch.
    pub(super) fn add(&mut self, place: PcId, is_predicted: bool) {
        if self.0.len() <= place.index() {
            self.0.resize(place.index() + 1, (0, 0));
        }
        let (missed, all) = &mut self.0[place];
        *missed += u64::from(!is_predicted);
        *all += 1;
    }

    /// Those of addresses that had some.
    pub(super) fn finish(self) -> Vec<(PcId, u64, u64)> {
        let all = self.0.iter_enumerated();
        let all = all.map(|(place, (missed, all))| (place, *missed, *all));
        all.filter(|(.., all)| *all > 0).collect()
    }
}
