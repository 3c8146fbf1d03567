//! The donors of one key, and what they say together.
//!
//! Samples are known by their number in time order; those that were completed come in between while others are decided.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{LinkId, NearId, Shape};
use crate::collect::{FramePointer, NodeId};
use crate::session::SampleId;

/// A sample that has a frame at a key, and frames outside of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::stacks::stitch) struct Donor {
    pub(in crate::stacks::stitch) rank: SampleId,
    /// Its frame there.
    pub(in crate::stacks::stitch) node: NodeId,
    /// Its innermost frame.
    pub(in crate::stacks::stitch) leaf: NodeId,
    /// The number of its frame there among those with keys.
    pub(super) link: LinkId,
}

/// The donors of one key.
#[derive(Debug, Default)]
pub(in crate::stacks::stitch) struct Donors {
    /// Samples that are complete of themselves, in order.
    own: Vec<NearId>,
    /// Samples that were completed: in the order of their borders, which is not that of time.
    completed: BTreeSet<NearId>,
    by_fp: FxHashMap<FramePointer, Summary>,
    /// Of all.
    total: Option<Summary>,
}

/// What some donors of a key say.
#[derive(Clone, Copy, Debug)]
pub(in crate::stacks::stitch) struct Summary {
    /// The earliest.
    pub(in crate::stacks::stitch) first: Donor,
    /// The latest.
    pub(in crate::stacks::stitch) last: Donor,
    /// How all of them go on; `None` if they disagree.
    pub(in crate::stacks::stitch) shape: Option<Shape>,
}

impl Summary {
    fn join(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            shape: self.shape.filter(|shape| Some(*shape) == other.shape),
        }
    }
}

impl Donors {
    /// Adds the next sample, if it is not the last one again.
    pub(super) fn add_own(&mut self, sample: NearId) {
        if self.own.last() != Some(&sample) {
            self.own.push(sample);
        }
    }

    /// Adds a sample that was cut.
    pub(super) fn add_completed(&mut self, sample: NearId) {
        self.completed.insert(sample);
    }

    /// Takes in what some of them say, all of which have one frame pointer.
    pub(super) fn join(&mut self, fp: FramePointer, new: Summary) {
        let known = self.by_fp.entry(fp).or_insert(new);
        *known = known.join(new);
        self.total = Some(self.total.map_or(new, |total| total.join(new)));
    }

    /// How many there are.
    pub(in crate::stacks::stitch) fn len(&self) -> usize {
        self.own.len() + self.completed.len()
    }

    /// How many of those that are complete of themselves are before a sample.
    pub(super) fn own_before(&self, sample: NearId) -> usize {
        self.own.partition_point(|donor| *donor < sample)
    }

    /// Those that are complete of themselves, in order.
    pub(super) fn own(&self) -> &[NearId] {
        &self.own
    }

    /// Those before a sample and those from it on, the nearest first.
    pub(super) fn around(
        &self,
        sample: NearId,
    ) -> (
        impl Iterator<Item = NearId> + Clone + '_,
        impl Iterator<Item = NearId> + Clone + '_,
    ) {
        let (before, after) = self.own.split_at(self.own_before(sample));
        (
            merged(
                before.iter().rev(),
                self.completed.range(..sample).rev(),
                |a, b| a > b,
            ),
            merged(after.iter(), self.completed.range(sample..), |a, b| a < b),
        )
    }

    /// What the donors say whose frame pointer is that one, as far as both are known.
    pub(in crate::stacks::stitch) fn fitting(&self, fp: FramePointer) -> Option<Summary> {
        if fp == FramePointer::UNKNOWN {
            return self.total;
        }
        let of = |pointer: FramePointer| self.by_fp.get(&pointer).copied();
        match (of(fp), of(FramePointer::UNKNOWN)) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Two sequences in order as one.
fn merged<'d>(
    one: impl Iterator<Item = &'d NearId> + Clone,
    other: impl Iterator<Item = &'d NearId> + Clone,
    goes_first: impl Fn(NearId, NearId) -> bool + Clone,
) -> impl Iterator<Item = NearId> + Clone {
    let (mut one, mut other) = (one.copied().peekable(), other.copied().peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if goes_first(*b, *a) => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}
