//! What is counted of branches beside their rows.

use crate::ids::IndexVec;
use crate::perfdata::{Branch, EventId};

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
