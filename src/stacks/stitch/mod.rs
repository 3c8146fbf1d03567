//! Completing stacks that are larger than what was copied of them.
//!
//! In: rows of address stacks, and what complete stacks of the same threads have shown ([`crate::collect`]). Out: the same rows,
//! some with longer stacks. `--call-graph dwarf` copies so many bytes above the stack pointer; what was walked of a deeper stack
//! is right, but it ends somewhere inside, at its *border*. Between collecting and naming, so that nothing here
//! depends on names and all views get the same.
//!
//! ```text
//! index ─► decide ◄─ gate     the whole missing part, as other samples have it    only if asked for
//! graft                       the root that all complete stacks of the thread share, with a gap
//! ```
//!
//! Decided by thread, time order, addresses and bytes alone, so that it never depends on the number of workers.

mod decide;
mod gate;
mod graft;
mod index;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::collect::{AddressStackId, Again, Collected, PcId, Row};
use crate::session::{SampleId, Session};
use crate::stack_end::StackEnd;
use decide::{Completed, Judge, Refusal};
use gate::{Gate, Stacks};
use index::Index;

/// What to complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mending {
    /// Put the thread's root under cut stacks.
    pub graft: bool,
    /// Take the missing part from other samples of the thread.
    pub stitch: bool,
}

/// What was completed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mended {
    /// Samples whose stacks were completed from others.
    pub stitched: u64,
    /// Probable share of wrong ones among them.
    pub error: f64,
    /// Why others were not, with their numbers.
    pub refused: Vec<(&'static str, u64)>,
}

/// Completes what can be completed.
pub fn mend(
    collected: &mut Collected,
    session: &Session<'_>,
    again: &Again<'_, '_>,
    what: Mending,
) -> Mended {
    let mut mended = Mended::default();
    if what.stitch && !collected.roots.cuts.is_empty() {
        mended = stitch(collected, again);
    }
    collected.paths = crate::collect::Paths::default();
    if what.graft && !collected.roots.cuts.is_empty() {
        graft::graft(collected, session);
    }
    mended
}

/// Takes missing parts from other samples.
fn stitch(collected: &mut Collected, stacks: &dyn Stacks) -> Mended {
    let paths = std::mem::take(&mut collected.paths);
    let mut index = Index::new(paths, &collected.pcs);
    let mut gate = Gate::new(&index, stacks);
    let judge = Judge::new(stacks);
    let (mut completed, refused) = decide::decide(&mut index, &mut gate, &judge);
    completed.sort_unstable_by_key(|one| one.rank);
    let mended = Mended::of(&completed, &refused);
    lengthen(collected, &completed);
    mended
}

/// Gives completed samples their stacks.
fn lengthen(collected: &mut Collected, completed: &[Completed]) {
    let mut made: FxHashMap<(AddressStackId, &[PcId]), AddressStackId> = FxHashMap::default();
    let mut rows = collected.rows.iter_mut();
    for one in completed {
        let is_it = |row: &&mut Row| row.first == u64::from(one.rank.0);
        let Some(row) = rows.find(is_it) else { return };
        let stacks = &mut collected.stacks;
        if stacks.tag(row.key.stack) != StackEnd::DumpTooShort {
            continue;
        }
        let stack = made
            .entry((row.key.stack, &one.outside))
            .or_insert_with(|| {
                let mut frames = stacks.get(row.key.stack).to_vec();
                frames.extend(&one.outside);
                let end = if one.is_fiber {
                    StackEnd::StitchedFiber
                } else {
                    StackEnd::Stitched
                };
                stacks.push(&frames, end)
            });
        row.key.stack = *stack;
    }
}

impl Mended {
    fn of(completed: &[Completed], refused: &[(SampleId, Refusal)]) -> Self {
        let errors: f64 = completed.iter().map(|one| one.estimate).sum();
        let mut reasons: BTreeMap<Refusal, u64> = BTreeMap::new();
        for (_, why) in refused {
            *reasons.entry(*why).or_default() += 1;
        }
        let reasons = reasons.into_iter().map(|(why, count)| (why.label(), count));
        Self {
            stitched: completed.len() as u64,
            error: errors / completed.len().max(1) as f64,
            refused: reasons.collect(),
        }
    }
}

impl Refusal {
    const fn label(self) -> &'static str {
        match self {
            Self::Leaf => "cut at their own frame",
            Self::NoDonor => "nobody else was there",
            Self::Mismatch => "others had other registers",
            Self::Ambiguous => "others go on in several ways",
            Self::OneSided => "others are all earlier or all later",
            Self::Unsure => "others predict each other badly",
        }
    }
}
