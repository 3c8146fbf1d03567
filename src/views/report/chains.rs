//! Chains as a view looks at them: in its order, cut to `--max-stack`, without what `-U` and `--ignore-callees` drop.
//!
//! In: the profile's stacks (leaf first). Out: [`Chains`], one for each stack, in collection order (callers or
//! callees first). Follows `thread__resolve_callchain` and `add_callchain_ip` of perf (`util/machine.c`).

use std::ops::Range;

use super::options::{ChainOrder, ReportOptions};
use crate::ids::{Idx, IndexSlice, IndexVec, numbers};
use crate::profile::{CpuMode, SymbolId};
use crate::profile::{Frame, FrameId, Profile, StackEnd, StackId};
use crate::profile::{matching_functions, parents};

numbers! {
    /// A place among the frames of all chains.
    #[derive(Default)]
    pub(crate) struct ChainPlace(u32);
}

impl ChainPlace {
    /// So many frames further on.
    #[inline]
    pub(crate) const fn plus(self, frames: u32) -> Self {
        Self(self.0 + frames)
    }

    /// So many frames before.
    #[inline]
    pub(crate) const fn minus(self, frames: u32) -> Self {
        Self(self.0 - frames)
    }
}

/// The chains of all stacks.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// Frames of all chains.
    pub(crate) frames: IndexVec<ChainPlace, FrameId>,
    ends: IndexVec<StackId, ChainPlace>,
    /// The frame that counts as leaf instead of the sample's own, by stack; empty without `--ignore-callees`.
    leaves: IndexVec<StackId, Option<FrameId>>,
    /// The frame that matches `--parent`, by stack; empty unless asked for.
    parents: IndexVec<StackId, Option<FrameId>>,
    /// Stacks that `--max-stack` shortened.
    pub(crate) shortened: Vec<StackId>,
}

impl Chains {
    /// Prepares all stacks of the profile.
    pub(crate) fn of(
        profile: &Profile,
        options: &ReportOptions,
        order: ChainOrder,
        with_parent: bool,
    ) -> Self {
        let stacks = &profile.stacks;
        let maker = ChainMaker {
            profile,
            options,
            order,
            parent: with_parent.then(|| parents(profile, options.chains.parent.as_ref())),
            ignored: options
                .chains
                .ignore_callees
                .as_ref()
                .map(|regex| matching_functions(profile, regex)),
        };
        let mut chains = Self {
            ends: IndexVec::with_capacity(stacks.len()),
            ..Self::default()
        };
        for id in 0..stacks.len() {
            maker.add(StackId::from_usize(id), &mut chains);
        }
        chains
    }

    /// Where the chain of a stack lies in [`Self::frames`].
    pub(crate) fn range(&self, id: StackId) -> Range<ChainPlace> {
        let before = id.index().checked_sub(1);
        let start = before.map_or(ChainPlace(0), |before| self.ends[before]);
        start..self.ends[id]
    }

    /// The chain of a stack.
    pub(crate) fn of_stack(&self, id: StackId) -> &[FrameId] {
        &self.frames[self.range(id)].raw
    }

    /// The first frames of a stack's chain.
    pub(crate) fn first(&self, id: StackId, frames: u32) -> &[FrameId] {
        let start = self.range(id).start;
        &self.frames[start..start.plus(frames)].raw
    }

    /// The frame that counts as leaf when a caller's callees are ignored.
    pub(crate) fn leaf(&self, id: StackId) -> Option<FrameId> {
        self.leaves.get(id).copied().flatten()
    }

    /// The frame that matches `--parent`.
    pub(crate) fn parent(&self, id: StackId) -> Option<FrameId> {
        self.parents.get(id).copied().flatten()
    }
}

struct ChainMaker<'p> {
    profile: &'p Profile,
    options: &'p ReportOptions,
    order: ChainOrder,
    parent: Option<IndexVec<SymbolId, bool>>,
    ignored: Option<IndexVec<SymbolId, bool>>,
}

impl ChainMaker<'_> {
    fn add(&self, id: StackId, chains: &mut Chains) {
        let all = self.profile.stacks.get(id);
        let (kernel, user) = self.limited(all, self.profile.stacks.end(id));
        if kernel.len() + user.len() < all.len() {
            chains.shortened.push(id);
        }
        let start = chains.frames.next_idx();
        chains.frames.raw.extend_from_slice(kernel);
        chains.frames.raw.extend_from_slice(user);
        if let Some(parent) = &self.parent {
            let kept = &chains.frames[start..].raw;
            let hit = |frame: &&FrameId| self.symbol_in(**frame, parent);
            chains.parents.push(match self.order {
                ChainOrder::Callee => kept.iter().find(hit).copied(),
                ChainOrder::Caller => kept.iter().rev().find(hit).copied(),
            });
        }
        if let Some(ignored) = &self.ignored {
            let kept = &chains.frames[start..].raw;
            let last = kept
                .iter()
                .rposition(|frame| self.symbol_in(*frame, ignored));
            chains.leaves.push(last.map(|at| kept[at]));
            let start = start.index();
            let dropped = start..start + last.unwrap_or(0);
            chains.frames.raw.drain(dropped);
        }
        if self.options.filters.hide_unresolved {
            let start = start.index();
            let mut kept = start;
            for i in start..chains.frames.len() {
                if self.frame(chains.frames[i]).symbol.is_some() {
                    chains.frames[kept] = chains.frames[i];
                    kept += 1;
                }
            }
            chains.frames.truncate(kept);
        }
        if self.order == ChainOrder::Caller {
            chains.frames[start..].reverse();
        }
        chains.ends.push(chains.frames.next_idx());
    }

    fn frame(&self, id: FrameId) -> &Frame {
        &self.profile[id]
    }

    fn symbol_in(&self, id: FrameId, set: &IndexSlice<SymbolId, [bool]>) -> bool {
        self.frame(id).symbol.is_some_and(|symbol| set[symbol])
    }

    /// What `--max-stack` leaves of a stack. perf cuts a recorded chain in the view's order, so with callers
    /// first the innermost frames go; an unwound part always keeps its innermost frames.
    fn limited<'s>(&self, all: &'s [FrameId], end: StackEnd) -> (&'s [FrameId], &'s [FrameId]) {
        let max = self.options.chains.max_stack;
        // A mark for missing callers is no frame.
        let has_mark = all.last().is_some_and(|frame| self.profile.is_mark(*frame));
        if all.len() - usize::from(has_mark) <= max {
            return (all, &[]);
        }
        if end.is_recorded() {
            return (self.in_order(all, max), &[]);
        }
        let kernel = all
            .iter()
            .take_while(|frame| self.frame(**frame).mode == CpuMode::Kernel)
            .count();
        let (kernel, user) = all.split_at(kernel);
        (self.in_order(kernel, max), self.innermost(user, max))
    }

    fn in_order<'s>(&self, frames: &'s [FrameId], max: usize) -> &'s [FrameId] {
        match self.order {
            ChainOrder::Callee => self.innermost(frames, max),
            ChainOrder::Caller => self.outermost(frames, max),
        }
    }

    /// The first `max` real frames, each with the inlined ones in it, which come before it.
    fn innermost<'s>(&self, frames: &'s [FrameId], max: usize) -> &'s [FrameId] {
        let real = (0..frames.len()).filter(|i| !self.profile.is_inlined(frames[*i]));
        &frames[..real.take(max).last().map_or(0, |at| at + 1)]
    }

    /// The last `max` real frames, each with the inlined ones in it.
    fn outermost<'s>(&self, frames: &'s [FrameId], max: usize) -> &'s [FrameId] {
        let mut dropped = (0..frames.len())
            .rev()
            .filter(|i| !self.profile.is_inlined(frames[*i]))
            .skip(max);
        &frames[dropped.next().map_or(0, |at| at + 1)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::options::ChainOptions;
    use crate::report::testing::ProfileBuilder;

    fn names(profile: &Profile, chains: &Chains) -> Vec<String> {
        chains
            .of_stack(StackId::from_usize(0))
            .iter()
            .map(|frame| profile.frame_name(*frame).to_owned())
            .collect()
    }

    fn chain(options: &ReportOptions, order: ChainOrder, unwound: bool) -> Vec<String> {
        let mut builder = ProfileBuilder::default();
        builder.unwound = unwound;
        builder.sample("a", "leaf;in_mid(inlined);mid;top;main", 1);
        let profile = builder.finish();
        names(&profile, &Chains::of(&profile, options, order, false))
    }

    #[test]
    fn the_limit_counts_real_frames_and_cuts_in_the_views_order() {
        let two = ReportOptions {
            chains: ChainOptions {
                max_stack: 2,
                ..ChainOptions::default()
            },
            ..ReportOptions::default()
        };
        assert_eq!(
            chain(&two, ChainOrder::Callee, false),
            ["leaf", "in_mid", "mid"]
        );
        assert_eq!(chain(&two, ChainOrder::Caller, false), ["main", "top"]);
        assert_eq!(
            chain(&two, ChainOrder::Caller, true),
            ["mid", "in_mid", "leaf"]
        );
        let three = ReportOptions {
            chains: ChainOptions {
                max_stack: 3,
                ..ChainOptions::default()
            },
            ..ReportOptions::default()
        };
        assert_eq!(
            chain(&three, ChainOrder::Caller, false),
            ["main", "top", "mid", "in_mid"]
        );
    }

    #[test]
    fn ignored_callees_are_forgotten_in_either_order() {
        let regex = regex::Regex::new("^t.p$").expect("valid pattern");
        let options = ReportOptions {
            chains: ChainOptions {
                ignore_callees: Some(regex),
                ..ChainOptions::default()
            },
            ..ReportOptions::default()
        };
        assert_eq!(chain(&options, ChainOrder::Callee, false), ["top", "main"]);
        assert_eq!(chain(&options, ChainOrder::Caller, false), ["main", "top"]);
    }
}
