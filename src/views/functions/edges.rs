//! Who calls whom, and how much of the weight goes that way.
//!
//! As in pprof each edge counts once per sample, however often a stack has it. Other than there a function that calls itself is
//! its own caller and callee, so that the edges of a recursive function may add up to more than it weighs.

use rustc_hash::FxHashMap;

use super::tally::{Count, Tally};
use super::{FunctionId, Functions};
use crate::ids::Idx;
use crate::profile::{Profile, StackEnd};

/// Edges between functions.
#[derive(Debug, Default)]
pub struct Edges {
    /// Caller, callee and weight; ordered by weight, then by ids.
    pub all: Vec<(FunctionId, FunctionId, Count)>,
    /// By function: weight of the samples whose stack begins with it (root), by the reason why it ended there.
    pub roots: FxHashMap<(FunctionId, StackEnd), Count>,
}

impl Edges {
    /// Those that have `focus` at one end; all without a focus.
    #[must_use]
    pub fn of(
        profile: &Profile,
        functions: &Functions,
        tally: &Tally,
        focus: Option<&[bool]>,
    ) -> Self {
        let is_wanted = |id: FunctionId| focus.is_none_or(|focus| focus[id.index()]);
        let mut edges: FxHashMap<(FunctionId, FunctionId), Count> = FxHashMap::default();
        let mut roots: FxHashMap<(FunctionId, StackEnd), Count> = FxHashMap::default();
        let mut pairs = Vec::new();
        for stack in &tally.stacks {
            let frames = stack.frames(profile);
            pairs.clear();
            for pair in frames.windows(2) {
                let (callee, caller) = (functions.of_frame(pair[0]), functions.of_frame(pair[1]));
                if is_wanted(callee) || is_wanted(caller) {
                    pairs.push((caller, callee));
                }
            }
            pairs.sort_unstable();
            pairs.dedup();
            for pair in &pairs {
                edges.entry(*pair).or_default().add(stack.count);
            }
            if let Some(root) = frames
                .last()
                .map(|root| functions.of_frame(*root))
                .filter(|root| is_wanted(*root))
            {
                let end = profile.stacks.end(stack.id());
                roots.entry((root, end)).or_default().add(stack.count);
            }
        }
        let mut all: Vec<_> = edges
            .into_iter()
            .map(|((caller, callee), count)| (caller, callee, count))
            .collect();
        all.sort_unstable_by_key(|(caller, callee, count)| {
            (std::cmp::Reverse(count.period), *caller, *callee)
        });
        Self { all, roots }
    }

    /// Callers of a function.
    pub fn callers(&self, of: FunctionId) -> impl Iterator<Item = (FunctionId, Count)> + '_ {
        let edges = self.all.iter().filter(move |(_, callee, _)| *callee == of);
        edges.map(|(caller, _, count)| (*caller, *count))
    }

    /// What a function calls.
    pub fn callees(&self, of: FunctionId) -> impl Iterator<Item = (FunctionId, Count)> + '_ {
        let edges = self.all.iter().filter(move |(caller, _, _)| *caller == of);
        edges.map(|(_, callee, count)| (*callee, *count))
    }
}
