//! What is counted of branches beside their rows.

use super::PcId;
use super::addresses::{Addresses, slot};
use super::space::SpaceAt;
use crate::address::Avma;
use crate::ids::{Idx as _, IndexSlice, IndexVec};
use crate::perfdata::{Branch, BranchStack, EventId};

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

/// By the address of branches: how many were mispredicted, and how many there were of which that is known.
#[derive(Default)]
pub(super) struct Predictions {
    places: IndexVec<PcId, Known>,
    /// What is not yet among `places`, of addresses that were met last. Direct mapped.
    recent: Option<Box<[Recent; 1 << Self::BITS]>>,
    samples: u64,
}

/// Those that were mispredicted, and all.
type Known = [u64; 2];

#[derive(Clone, Copy)]
struct Recent {
    at: Avma,
    /// In which samples the address means the same.
    scope: u64,
    known: Known,
    place: PcId,
}

impl Predictions {
    const BITS: u32 = 10;
    /// By the two lowest bits of an entry's flags: mispredicted, predicted.
    const KNOWN: [Known; 4] = [[0, 0], [1, 1], [0, 1], [0, 1]];
    /// Of no sample.
    const NOT_MET: Recent = Recent {
        at: Avma(0),
        scope: u64::MAX,
        known: [0, 0],
        place: PcId(0),
    };

    /// Counts the branches of a sample, of which each costs little: there are more of them than of anything else.
    pub(super) fn add(
        &mut self,
        stack: &BranchStack<'_>,
        space: &SpaceAt<'_, '_>,
        addresses: &mut Addresses,
    ) {
        self.samples += 1;
        let scope = match space.state() {
            _ if !space.is_lasting() => 1 << 63 | self.samples,
            state => state,
        };
        let recent =
            (self.recent).get_or_insert_with(|| Box::new([Self::NOT_MET; 1 << Self::BITS]));
        for branch in stack.iter() {
            let known = Self::KNOWN[(branch.flags & 3) as usize];
            let met = &mut recent[slot(branch.from, Self::BITS)];
            if met.at != branch.from || met.scope != scope {
                if known[1] == 0 || branch.is_empty() {
                    continue;
                }
                let place = addresses.branch_end(space, branch.from);
                // Empty entries have the address 0, too.
                if branch.from.0 == 0 {
                    add_to(&mut self.places, place, known);
                    continue;
                }
                let new = Recent {
                    at: branch.from,
                    scope,
                    known: [0, 0],
                    place,
                };
                let old = std::mem::replace(met, new);
                add_to(&mut self.places, old.place, old.known);
            }
            met.known[0] += known[0];
            met.known[1] += known[1];
        }
    }

    /// Those of addresses that had some.
    pub(super) fn finish(mut self) -> Vec<(PcId, u64, u64)> {
        for met in self.recent.iter().flat_map(|recent| recent.iter()) {
            add_to(&mut self.places, met.place, met.known);
        }
        let all = self.places.iter_enumerated();
        let all = all.map(|(place, &[missed, all])| (place, missed, all));
        all.filter(|(.., all)| *all > 0).collect()
    }
}

fn add_to(places: &mut IndexVec<PcId, Known>, place: PcId, [missed, all]: Known) {
    if places.len() <= place.index() {
        places.resize(place.index() + 1, [0, 0]);
    }
    places[place][0] += missed;
    places[place][1] += all;
}
