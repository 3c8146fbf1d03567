//! What the recording says about how well donors tell the truth: each donor's continuation is predicted from the others.
//!
//! In: the donors of a key that were recorded whole, and the bytes of stacks. Out: an estimate of the error. It is no upper bound: donors come in bunches
//! of one activation, which predict each other well. That is why all donors have to agree besides (`super::decide`).

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::index::{CutStack, Donor, Index, KeyId};
use crate::address::Avma;
use crate::collect::{Again, Owner};
use crate::session::SampleId;
use crate::unwind::KeptRegisters;

/// Donors on either side of a cut stack that are tried.
const NEAREST: usize = 8;
/// Tries after which a thread is known well enough.
const ENOUGH: u32 = 2000;
/// The thread's error weighs as much as so many tries.
const PRIOR: f64 = 4.0;
/// Frames of which the bytes are compared.
const COMPARED: usize = 8;
/// Steps in which the end of what was copied is told apart.
const STEP: u64 = 512;

/// Predictions that were tried, and those that were wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tries {
    pub(super) wrong: u32,
    pub(super) all: u32,
}

/// Where bytes of stacks come from.
pub(super) trait Stacks {
    /// Where a sample's stack was copied from, and the bytes.
    fn stack(&self, rank: SampleId) -> Option<(Avma, &[u8])>;
    /// What a sample's registers held so many frames outside of its own.
    fn registers(&self, rank: SampleId, depth: usize) -> Option<KeptRegisters>;
}

impl Stacks for Again<'_, '_> {
    fn stack(&self, rank: SampleId) -> Option<(Avma, &[u8])> {
        Self::stack(self, rank)
    }

    fn registers(&self, rank: SampleId, depth: usize) -> Option<KeptRegisters> {
        Self::registers(self, rank, depth)
    }
}

/// Estimates errors.
pub(super) struct Gate<'s> {
    stacks: &'s dyn Stacks,
    /// By thread: the share of predictions that are wrong.
    errors: BTreeMap<Owner, f64>,
    /// By key, place of the cut stack among the donors, and end of the copy.
    known: FxHashMap<(KeyId, usize, u64), Tries>,
}

impl<'s> Gate<'s> {
    pub(super) fn new(index: &Index, stacks: &'s dyn Stacks) -> Self {
        let mut gate = Self {
            stacks,
            errors: BTreeMap::new(),
            known: FxHashMap::default(),
        };
        gate.pool(index);
        gate
    }

    /// Tries every key of each thread once.
    fn pool(&mut self, index: &Index) {
        let mut tries: BTreeMap<Owner, Tries> = BTreeMap::new();
        let mut is_done: FxHashSet<KeyId> = FxHashSet::default();
        for cut in &index.cuts {
            let of_thread = tries.entry(index.owner(cut.node)).or_default();
            let Some(key) = cut.key else { continue };
            if !is_done.insert(key) || of_thread.all >= ENOUGH {
                continue;
            }
            let place = index.whole_before(key, cut.rank);
            let more = self.try_key(index, key, place, self.copied_to(cut.rank));
            of_thread.all += more.all;
            of_thread.wrong += more.wrong;
        }
        let error = |tally: Tries| f64::from(tally.wrong + 1) / f64::from(tally.all + 2);
        let errors = tries
            .into_iter()
            .map(|(owner, tries)| (owner, error(tries)));
        self.errors = errors.collect();
    }

    /// The probable share of wrong completions among those like this one.
    pub(super) fn estimate(&mut self, index: &Index, cut: &CutStack, key: KeyId) -> f64 {
        let error = self.errors.get(&index.owner(cut.node)).copied();
        let error = error.unwrap_or(0.5);
        let place = index.whole_before(key, cut.rank);
        let end = self.copied_to(cut.rank);
        let tries = match self.known.get(&(key, place, end.0 / STEP)) {
            Some(tries) => *tries,
            None => {
                let tries = self.try_key(index, key, place, end);
                self.known.insert((key, place, end.0 / STEP), tries);
                tries
            }
        };
        (f64::from(tries.wrong) + PRIOR * error) / (f64::from(tries.all) + PRIOR)
    }

    /// Predicts each of the donors nearest to a place from the others of them, by the bytes below an end.
    fn try_key(&self, index: &Index, key: KeyId, place: usize, end: Avma) -> Tries {
        let near = index.whole_around(key, place, NEAREST);
        let mut tries = Tries::default();
        for (at, donor) in near.iter().enumerate() {
            let others = near[..at].iter().chain(&near[at + 1..]);
            let fitting = others.filter(|other| fits(index, donor, other));
            if let Some(best) = self.predict(index, donor, fitting, end) {
                tries.all += 1;
                let is_right = index.continuation(&best) == index.continuation(donor);
                tries.wrong += u32::from(!is_right);
            }
        }
        tries
    }

    /// The donor that is taken for another one: the one whose stack differs least, of these the nearest.
    fn predict<'d>(
        &self,
        index: &Index,
        donor: &Donor,
        others: impl Iterator<Item = &'d Donor> + Clone,
        end: Avma,
    ) -> Option<Donor> {
        let mut shapes = others.clone().map(|other| index.continuation(other));
        let first = shapes.next()?;
        if shapes.all(|shape| shape == first) {
            return others.copied().next();
        }
        let ranked = others.map(|other| {
            let (differing, words) = self.distance(index, donor, other, end);
            let share = (differing + 1) as f64 / (words + 2) as f64;
            (share, donor.rank.0.abs_diff(other.rank.0), *other)
        });
        let best = ranked.min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        best.map(|(_, _, nearest)| nearest)
    }

    /// Words that differ in the frames nearest to the key that two stacks share, and how many there are.
    fn distance(&self, index: &Index, a: &Donor, b: &Donor, end: Avma) -> (u64, u64) {
        let (Some(one), Some(other)) = (self.stacks.stack(a.rank), self.stacks.stack(b.rank))
        else {
            return (0, 0);
        };
        let from = shared_from(index, a, b);
        let to = |(sp, bytes): (Avma, &[u8])| sp.0.saturating_add(bytes.len() as u64);
        let to = to(one).min(to(other)).min(end.0);
        let words = |(sp, bytes): (Avma, &'s [u8])| -> &'s [u8] {
            let start = usize::try_from(from.0.saturating_sub(sp.0)).unwrap_or(usize::MAX);
            let len = usize::try_from(to.saturating_sub(from.0)).unwrap_or(0);
            let rest = bytes.get(start..).unwrap_or_default();
            &rest[..rest.len().min(len)]
        };
        let pairs = words(one).chunks_exact(8).zip(words(other).chunks_exact(8));
        pairs.fold((0, 0), |(differing, all), (left, right)| {
            (differing + u64::from(left != right), all + 1)
        })
    }

    /// Where the copy of a cut stack ends.
    fn copied_to(&self, rank: SampleId) -> Avma {
        let stack = self.stacks.stack(rank);
        stack.map_or(Avma(0), |(sp, bytes)| {
            Avma(sp.0.saturating_add(bytes.len() as u64))
        })
    }
}

/// Whether what is known of the frame pointers speaks against two samples being in one activation.
fn fits(index: &Index, a: &Donor, b: &Donor) -> bool {
    index.frame(a.node).fp.fits(index.frame(b.node).fp)
}

/// The stack pointer of the innermost of the frames nearest to the key that two stacks share.
fn shared_from(index: &Index, a: &Donor, b: &Donor) -> Avma {
    let (one, other) = (index.inside(a, COMPARED - 1), index.inside(b, COMPARED - 1));
    let shared = one
        .iter()
        .zip(&other)
        .take_while(|(left, right)| left == right);
    let innermost = shared.last().map(|((_, sp), _)| *sp);
    innermost.unwrap_or(index.frame(a.node).spot.sp())
}
