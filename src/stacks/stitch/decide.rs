//! Which cut stacks go on like others of their thread.
//!
//! In: the index. Out: for each cut stack, how it goes on, or why nobody can tell. What identifies an activation lies in the part that is
//! missing, so no rule on one donor is safe; the whole thread has to agree, at all times, on both sides, and what
//! can be tried of it in the recording has to come out right.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::gate::{Gate, Stacks};
use super::index::{CutStack, Donor, Index, KeyId, Summary};
use crate::collect::{NodeId, PcId};
use crate::session::SampleId;
use crate::unwind::KeptRegisters;

/// A cut stack is completed if at most so many of 100 like it would be wrong.
const MOST_WRONG: f64 = 0.05;

/// Why a stack stays cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Refusal {
    /// It ends at the sample's own frame or one that a signal interrupted: nothing is known of where that lies.
    Leaf,
    /// No other sample has the frame at which it ends, and what lies outside of it.
    NoDonor,
    /// Others have, but with another frame pointer.
    Mismatch,
    /// Others go on in several ways.
    Ambiguous,
    /// Others are all earlier, or all later.
    OneSided,
    /// What can be tried comes out wrong too often.
    Unsure,
}

/// A cut stack that was completed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Completed {
    pub(super) rank: SampleId,
    /// Addresses outside of its border, innermost first.
    pub(super) outside: Vec<PcId>,
    /// Whether they end at the base of a fiber.
    pub(super) is_fiber: bool,
    /// The probable share of wrong ones among those like it.
    pub(super) estimate: f64,
}

/// Decides all, those that end furthest out first.
pub(super) fn decide(
    index: &mut Index,
    gate: &mut Gate<'_>,
    judge: &Judge<'_>,
) -> (Vec<Completed>, Vec<(SampleId, Refusal)>) {
    let (mut completed, mut refused) = (Vec::new(), Vec::new());
    for cut in index.cuts.clone() {
        match judge.judge(index, gate, &cut) {
            Err(why) => refused.push((cut.rank, why)),
            Ok((donors, estimate)) => {
                let (outside, is_fiber) = index.outside(donors.first.node);
                index.complete(&cut, &donors.first);
                completed.push(Completed {
                    rank: cut.rank,
                    outside,
                    is_fiber,
                    estimate,
                });
            }
        }
    }
    (completed, refused)
}

/// What is asked of donors.
pub(super) struct Judge<'s> {
    stacks: &'s dyn Stacks,
    /// By sample and key.
    registers: RefCell<FxHashMap<(SampleId, KeyId), Option<KeptRegisters>>>,
}

impl<'s> Judge<'s> {
    pub(super) fn new(stacks: &'s dyn Stacks) -> Self {
        Self {
            stacks,
            registers: RefCell::default(),
        }
    }

    /// The donors of a cut stack, if it goes on like them, and how probable it is that it does not.
    fn judge(
        &self,
        index: &Index,
        gate: &mut Gate<'_>,
        cut: &CutStack,
    ) -> Result<(Summary, f64), Refusal> {
        let key = cut.key.ok_or(Refusal::Leaf)?;
        let donors = index.donors(key);
        if donors.len() == 0 {
            return Err(Refusal::NoDonor);
        }
        let fitting = donors.fitting(index.frame(cut.border).fp);
        let fitting = fitting.ok_or(Refusal::Mismatch)?;
        if fitting.shape.is_none() {
            return Err(Refusal::Ambiguous);
        }
        if fitting.first.rank > cut.rank || fitting.last.rank < cut.rank {
            return Err(Refusal::OneSided);
        }
        let estimate = gate.estimate(index, cut, key);
        if estimate > MOST_WRONG {
            return Err(Refusal::Unsure);
        }
        self.refute(index, cut, key)?;
        Ok((fitting, estimate))
    }

    /// Looks for donors with equal registers on both sides.
    fn refute(&self, index: &Index, cut: &CutStack, key: KeyId) -> Result<(), Refusal> {
        /// Donors on either side whose registers are looked at.
        const TRIED: usize = 16;
        let fp = index.frame(cut.border).fp;
        let fits = |donor: &Donor| fp.fits(index.frame(donor.node).fp);
        let (before, after) = index.donors_around(key, cut.rank);
        let (before, after) = (before.filter(fits), after.filter(fits));
        let (mut before, mut after) = (before.take(TRIED), after.take(TRIED));
        let own = self.registers(index, cut.rank, cut.node, cut.border, key);
        let is_equal = |donor: Donor| {
            let other = self.registers(index, donor.rank, donor.leaf, donor.node, key);
            own.zip(other).is_none_or(|(a, b)| are_equal(&a, &b))
        };
        if before.any(is_equal) && after.any(is_equal) {
            Ok(())
        } else {
            Err(Refusal::Mismatch)
        }
    }

    /// The registers of a sample in its frame at a key.
    fn registers(
        &self,
        index: &Index,
        rank: SampleId,
        leaf: NodeId,
        node: NodeId,
        key: KeyId,
    ) -> Option<KeptRegisters> {
        let mut known = self.registers.borrow_mut();
        *known.entry((rank, key)).or_insert_with(|| {
            let inner = index.outwards(leaf).take_while(|inner| *inner != node);
            self.stacks.registers(rank, inner.count())
        })
    }
}

/// Whether two samples may be in one activation, as far as registers are known.
fn are_equal(a: &KeptRegisters, b: &KeptRegisters) -> bool {
    let known = a.iter().zip(b).filter_map(|(a, b)| a.zip(*b));
    known.into_iter().all(|(one, other)| one == other)
}
