//! Which nodes a picture has room for.

use super::{Flame, Weights};
use crate::ids::Idx;

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
    let asked_for = count(flame, weights, asked);
    let Some(most) = limit.frames.filter(|most| asked_for.drawn() > *most) else {
        return Pruned {
            percent: limit.percent,
            ..asked_for
        };
    };
    let mut sizes = weights.total.raw.clone();
    sizes.retain(|size| *size > asked);
    sizes.sort_unstable();
    sizes.dedup();
    // The more is left out, the fewer are drawn, but for a few marks of what is.
    let fits = |least: &u64| count(flame, weights, *least).drawn() <= most;
    let first = sizes.partition_point(|least| !fits(least));
    let least = sizes.get(first).or(sizes.last()).copied().unwrap_or(asked);
    count(flame, weights, least)
}

fn least_of(percent: f64, all: u64) -> u64 {
    // Nothing of no weight is drawn.
    ((percent / 100.0 * all as f64).ceil() as u64).max(1)
}

fn count(flame: &Flame, weights: &Weights, least: u64) -> Pruned {
    let all = weights.total.first().copied().unwrap_or(0);
    let (mut kept, mut cut) = (0, 0);
    // Parents come before their children, so one mark for the last cut one is not enough.
    let mut is_cut = vec![false; flame.nodes.len()];
    for (at, node) in flame.nodes.iter().enumerate().skip(1) {
        let parent = node.parent.index();
        if weights.total[at] >= least {
            kept += 1;
        } else if weights.total[at] > 0 && weights.total[parent] >= least && !is_cut[parent] {
            is_cut[parent] = true;
            cut += 1;
        }
    }
    Pruned {
        least,
        percent: 100.0 * least as f64 / all.max(1) as f64,
        kept,
        left_out: flame.nodes.len().saturating_sub(1 + kept),
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
        }
    }
}
