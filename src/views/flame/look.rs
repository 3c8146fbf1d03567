//! What makes a tree readable: clean names, what is around packages as one frame, runs of the same few frames as another; and of
//! each node, whose it is and what runs there.
//!
//! In: call paths with what their frames are. Out: shorter paths. Weights stay: a frame that is left out is never the innermost.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Flame, FunctionId, NodeId, Weights};
use crate::functions::Functions;
use crate::ids::{Idx, IndexVec, index_vec};

/// How paths and names are shown.
#[derive(Clone, Copy, Debug)]
pub struct Look<'l> {
    /// What is one function.
    pub functions: &'l Functions,
    /// Names of functions; nothing for those that the recording has, which tell tiers apart.
    pub labels: Option<&'l [String]>,
    /// Frames of no package, two and more one behind the other outside of who pays, are one.
    pub folds_runtime: bool,
    /// Frames that recur are one.
    pub folds_runs: bool,
}

/// What colours tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColorBy {
    /// Who pays.
    Package,
    /// What is done.
    Activity,
    /// What kind of code it is.
    Kind,
}

impl ColorBy {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Activity => "activity",
            Self::Kind => "kind",
        }
    }
}

impl Flame {
    /// What colours tell where nothing is asked for: packages if there are several.
    #[must_use]
    pub fn usual_colors(&self) -> ColorBy {
        if self.packages.len() > 2 {
            ColorBy::Package
        } else {
            ColorBy::Kind
        }
    }

    /// How a node is called.
    #[must_use]
    pub fn label(&self, node: NodeId) -> Option<Cow<'_, str>> {
        let name = &self.function(node)?.name;
        let folded = self.natures.get(node).map_or(0, |nature| nature.folded);
        Some(match folded {
            1.. if name == MORE => {
                let ending = if folded == 1 { "" } else { "s" };
                Cow::Owned(format!("{MORE} {folded} frame{ending}"))
            }
            _ => Cow::Borrowed(name),
        })
    }

    /// How many nodes stand one above the other, of those that weigh enough.
    #[must_use]
    pub fn depth(&self, weights: &Weights, least: u64) -> usize {
        let mut depths: IndexVec<NodeId, usize> = index_vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            depths[at] = depths[node.parent] + 1;
        }
        let kept = depths.iter().zip(&weights.total);
        let kept = kept.filter(|(_, weight)| **weight >= least);
        kept.map(|(depth, _)| *depth).max().unwrap_or(0)
    }
}

/// The name of the frame that stands for what is around packages.
pub const RUNTIME: &str = "runtime";
/// The name of the frame that stands for frames that recur.
pub const MORE: &str = "…";
/// What frames outside of all packages are called.
pub const NO_PACKAGE: &str = "no package";

/// Whose a node is, and what runs there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nature {
    /// Index into [`Flame::packages`].
    pub package: u16,
    /// Index into [`Flame::activities`].
    pub activity: u16,
    /// The most frames that it stands for, of one that stands for several.
    pub folded: u16,
}

/// A frame of a path.
pub(super) type Place = (FunctionId, Nature);

/// Puts one frame in place of each run of frames of no package. `is_own` tells, leaf first as the path is, which belong to one.
pub(super) fn fold_runtime(path: &mut Vec<Place>, is_own: &[bool], runtime: FunctionId) {
    let Some(payer) = is_own.iter().position(|own| *own) else {
        return;
    };
    let mut kept = payer + 1;
    let mut at = payer + 1;
    while at < is_own.len() {
        let run = is_own[at..].iter().take_while(|own| !**own).count();
        if run < 2 {
            path[kept] = path[at];
            (kept, at) = (kept + 1, at + 1);
            continue;
        }
        let nature = path[at + run - 1].1;
        path[kept] = (
            runtime,
            Nature {
                folded: clipped(run),
                ..nature
            },
        );
        (kept, at) = (kept + 1, at + run);
    }
    // What is behind them tells why the stack ends.
    path.drain(kept..is_own.len());
}

/// Functions that recur so often in a path are worth folding.
const RECURS: usize = 4;

/// The functions that some path has many times.
pub(super) fn recurring<'p>(paths: impl Iterator<Item = &'p [Place]>) -> FxHashSet<FunctionId> {
    let mut found = FxHashSet::default();
    let mut counts: FxHashMap<FunctionId, usize> = FxHashMap::default();
    for path in paths.filter(|path| path.len() >= RECURS) {
        counts.clear();
        for (function, _) in path {
            let count = counts.entry(*function).or_default();
            *count += 1;
            if *count == RECURS {
                found.insert(*function);
            }
        }
    }
    found
}

/// Puts one frame in place of several that were there before, root first. The last of each run stays: it calls what is new.
pub(super) fn fold_runs(
    path: &[Place],
    recurring: &FxHashSet<FunctionId>,
    more: FunctionId,
    out: &mut Vec<Place>,
) {
    out.clear();
    let mut met: FxHashSet<FunctionId> = FxHashSet::default();
    let mut at = 0;
    while at < path.len() {
        let is_old = |place: &&Place| recurring.contains(&place.0) && met.contains(&place.0);
        let run = path[at..].iter().take_while(is_old).count();
        // One alone is as short as what would stand for it.
        if run > 2 {
            let nature = Nature {
                folded: clipped(run - 1),
                ..path[at].1
            };
            out.push((more, nature));
            at += run - 1;
        }
        met.insert(path[at].0);
        out.push(path[at]);
        at += 1;
    }
}

fn clipped(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Which of several numbers weighs most, as far as one has more than half.
#[derive(Clone, Copy, Default)]
struct Vote {
    number: u16,
    weight: u64,
}

impl Vote {
    fn add(&mut self, number: u16, weight: u64) {
        if self.number == number {
            self.weight = self.weight.saturating_add(weight);
        } else if weight > self.weight {
            (self.number, self.weight) = (number, weight - self.weight);
        } else {
            self.weight -= weight;
        }
    }
}

/// What nodes are by the paths that lead through them.
#[derive(Default)]
pub(super) struct Votes {
    packages: IndexVec<NodeId, Vote>,
    activities: IndexVec<NodeId, Vote>,
    folded: IndexVec<NodeId, u16>,
}

impl Votes {
    /// Counts a path; nodes come in the order of their numbers.
    pub(super) fn add(&mut self, nodes: &[NodeId], natures: &[Nature], samples: u64) {
        for (node, nature) in nodes.iter().zip(natures) {
            if node.index() >= self.packages.len() {
                let until = node.index() + 1;
                self.packages.raw.resize(until, Vote::default());
                self.activities.raw.resize(until, Vote::default());
                self.folded.raw.resize(until, 0);
            }
            self.packages[*node].add(nature.package, samples);
            self.activities[*node].add(nature.activity, samples);
            let folded = &mut self.folded[*node];
            *folded = nature.folded.max(*folded);
        }
    }

    /// Settles what the nodes are, and numbers packages and activities by weight. The first package is none.
    pub(super) fn settle(self, flame: &mut Flame, [packages, activities]: [Vec<String>; 2]) {
        let count = flame.nodes.len();
        let of = |votes: &IndexVec<NodeId, Vote>, node: usize| {
            votes.raw.get(node).map_or(0, |vote| vote.number)
        };
        let natures = (0..count).map(|node| Nature {
            package: of(&self.packages, node),
            activity: of(&self.activities, node),
            folded: self.folded.raw.get(node).copied().unwrap_or(0),
        });
        flame.natures = natures.collect();
        let weights = |part: fn(&Nature) -> u16, names: usize| {
            let mut weights = vec![0_u64; names];
            for cell in &flame.cells {
                let at = usize::from(part(&flame.natures[cell.node]));
                if let Some(weight) = weights.get_mut(at) {
                    *weight = weight.saturating_add(cell.samples);
                }
            }
            weights
        };
        let mut of_packages = weights(|nature| nature.package, packages.len());
        let of_activities = weights(|nature| nature.activity, activities.len());
        // Behind all others, however much it is.
        if let Some(none) = of_packages.first_mut() {
            *none = 0;
        }
        let (names, packages) = in_order(packages, &of_packages, 1);
        flame.packages = names;
        let (activity_names, activities) = in_order(activities, &of_activities, 0);
        flame.activities = activity_names;
        let new = |places: &[u16], old: u16| places.get(usize::from(old)).copied().unwrap_or(0);
        for nature in &mut flame.natures {
            nature.package = new(&packages, nature.package);
            nature.activity = new(&activities, nature.activity);
        }
    }
}

/// Names by falling weight, the first ones last; and the new number of each.
fn in_order(names: Vec<String>, weights: &[u64], last: usize) -> (Vec<String>, Vec<u16>) {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|at| {
        (
            *at < last,
            std::cmp::Reverse(weights[*at]),
            names[*at].clone(),
        )
    });
    let mut places = vec![0; names.len()];
    for (new, old) in order.iter().enumerate() {
        places[*old] = clipped(new);
    }
    (
        order.into_iter().map(|at| names[at].clone()).collect(),
        places,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &str) -> Vec<Place> {
        let place = |name: char| (FunctionId(u32::from(name)), Nature::default());
        names.chars().map(place).collect()
    }

    fn text(path: &[Place]) -> String {
        let name = |place: &Place| {
            let name = char::from_u32(place.0.0).expect("a letter");
            match place.1.folded {
                0 => name.to_string(),
                folded => format!("{name}{folded}"),
            }
        };
        path.iter().map(name).collect()
    }

    #[test]
    fn what_is_around_packages_is_one_frame() {
        // Leaf first: capital letters are of a package, the last one is a mark.
        for (names, expected) in [
            ("abCd", "abCd"),
            ("abCde", "abCr2"),
            ("aCbDcdE", "aCbDr2E"),
            ("abc", "abc"),
            ("Cabc[", "Cr3["),
        ] {
            let mut path = path(names);
            let frames = names.trim_end_matches('[');
            let own: Vec<bool> = frames.chars().map(char::is_uppercase).collect();
            fold_runtime(&mut path, &own, FunctionId(u32::from('r')));
            assert_eq!(text(&path), expected, "{names}");
        }
    }

    #[test]
    fn runs_of_the_same_frames_are_one() {
        let folded = |names: &str| {
            let (path, mut out) = (path(names), Vec::new());
            let recurring = recurring([path.as_slice()].into_iter());
            fold_runs(&path, &recurring, FunctionId(u32::from('.')), &mut out);
            text(&out)
        };
        assert_eq!(folded("mabab"), "mabab", "too few");
        assert_eq!(folded("mababababx"), "mab.5bx");
        assert_eq!(folded("maaaaxaaay"), "ma.2ax.2ay");
        assert_eq!(folded("abcabcabcabcdabcabce"), "abc.8cd.5ce");
    }
}
