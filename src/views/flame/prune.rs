//! Which nodes a picture has room for.

use super::{Flame, NodeId, Weights};
use crate::ids::{IndexSlice, IndexVec, index_vec};

/// How much is left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limit {
    /// Nodes below this share of everything are left out.
    pub percent: f64,
    /// The share is raised until no more than so many are left, counting one for each node that has lost callees.
    pub frames: Option<usize>,
}

/// What is left of a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pruned {
    /// The least weight of a node that is kept.
    pub least: u64,
    /// The same in per cent of everything.
    pub percent: f64,
    /// Nodes that are kept, without the root.
    pub kept: usize,
    /// Nodes that are left out.
    pub left_out: usize,
    /// Kept nodes that have lost callees.
    pub cut: usize,
}

impl Pruned {
    /// Frames to draw, what is left out included.
    #[must_use]
    pub const fn drawn(&self) -> usize {
        self.kept + self.cut
    }
}

/// Finds the weight below which nodes are left out. A callee never weighs more than its caller, so what is kept is a tree.
#[must_use]
pub fn prune(flame: &Flame, weights: &Weights, limit: Limit) -> Pruned {
    let all = weights.total.first().copied().unwrap_or(0);
    let asked = least_of(limit.percent, all);
    let callees = least_callees(flame, weights);
    let asked_for = count(weights, &callees, asked);
    let Some(most) = limit.frames.filter(|most| asked_for.drawn() > *most) else {
        return Pruned {
            percent: limit.percent,
            ..asked_for
        };
    };
    count(weights, &callees, least_for(weights, &callees, asked, most))
}

/// The least weight above `asked` at which no more than `most` frames are drawn; the largest there is if none is enough.
fn least_for(
    weights: &Weights,
    callees: &IndexSlice<NodeId, [u64]>,
    asked: u64,
    most: usize,
) -> u64 {
    let mut sizes = weights.total.raw.clone();
    // What is as light as one that there is no room for is not kept either, so that only few are counted again and again.
    let light = match sizes.len().checked_sub(most + 2) {
        Some(at) => *sizes.select_nth_unstable(at).1,
        None => 0,
    };
    let bound = light.max(asked);
    let largest = sizes.iter().max().copied().unwrap_or(0).max(asked);
    sizes.retain(|size| *size > bound);
    sizes.sort_unstable();
    sizes.dedup();
    let both = weights.total.iter().zip(callees);
    let heavy: Vec<_> = both.filter(|(own, _)| **own > bound).collect();
    // The more is left out, the fewer are drawn, but for a few marks of what is. The root is none.
    let fits = |least: &u64| {
        let kept = heavy.iter().filter(|(own, _)| *own >= least);
        let drawn = kept.map(|(_, callee)| 1 + usize::from(*callee < least));
        drawn.sum::<usize>() <= most + 1
    };
    let first = sizes.partition_point(|least| !fits(least));
    sizes.get(first).copied().unwrap_or(largest)
}

fn least_of(percent: f64, all: u64) -> u64 {
    // Nothing of no weight is drawn.
    ((percent / 100.0 * all as f64).ceil() as u64).max(1)
}

/// By node: the weight of the lightest callee that has one.
fn least_callees(flame: &Flame, weights: &Weights) -> IndexVec<NodeId, u64> {
    let mut least = index_vec![u64::MAX; flame.nodes.len()];
    for (node, weight) in flame.nodes.iter().zip(&weights.total).skip(1) {
        if *weight > 0 {
            least[node.parent] = *weight.min(&least[node.parent]);
        }
    }
    least
}

/// What is left above a weight; `callees` is what [`least_callees`] found.
fn count(weights: &Weights, callees: &IndexSlice<NodeId, [u64]>, least: u64) -> Pruned {
    let all = weights.total.first().copied().unwrap_or(0);
    let is_kept = |weight: &u64| *weight >= least;
    let kept = weights.total.iter().skip(1).filter(|w| is_kept(w)).count();
    let both = weights.total.iter().zip(callees);
    let cut = both.filter(|(own, callee)| is_kept(own) & !is_kept(callee));
    let cut = cut.count();
    Pruned {
        least,
        percent: 100.0 * least as f64 / all.max(1) as f64,
        kept,
        left_out: weights.total.len().saturating_sub(1 + kept),
        cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::{Options, build};
    use crate::report::testing::ProfileBuilder;

    fn tree() -> Flame {
        let mut builder = ProfileBuilder::default();
        for (stack, period) in [
            ("b;a;main", 60),
            ("c;a;main", 30),
            ("d;a;main", 6),
            ("e;d;a;main", 2),
            ("main", 2),
        ] {
            builder.sample("x", stack, period);
        }
        build(&builder.finish(), &Options::default())
    }

    #[test]
    fn a_share_decides_what_is_kept() {
        let tree = tree();
        let weights = tree.weights(|cell| cell.period);
        let percent = |percent| {
            let frames = None;
            let pruned = prune(&tree, &weights, Limit { percent, frames });
            (pruned.kept, pruned.left_out, pruned.cut)
        };
        assert_eq!(percent(0.0), (7, 0, 0));
        assert_eq!(percent(2.0), (7, 0, 0));
        assert_eq!(percent(2.1), (6, 1, 1));
        assert_eq!(percent(50.0), (4, 3, 1));
    }

    #[test]
    fn the_share_is_raised_until_the_frames_fit() {
        let tree = tree();
        let weights = tree.weights(|cell| cell.period);
        for most in 0..10 {
            let limit = Limit {
                percent: 0.01,
                frames: Some(most),
            };
            let pruned = prune(&tree, &weights, limit);
            // What weighs as much as everything stays, with a mark for what it has lost.
            assert!(pruned.drawn() <= most.max(3), "{most}: {pruned:?}");
            assert_eq!(pruned.kept + pruned.left_out, 7);
            // No smaller weight would do.
            let callees = least_callees(&tree, &weights);
            let fits = |least| count(&weights, &callees, least).drawn() <= most;
            let first = (1..=100).find(|least| weights.total.contains(least) && fits(*least));
            assert_eq!(
                pruned.least,
                first.filter(|_| most < 7).unwrap_or(pruned.least)
            );
        }
    }
}
