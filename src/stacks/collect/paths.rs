//! The stacks of samples with their places in memory, one tree for each thread and kind of end, from the root inwards.
//!
//! In: each walk's frames with stack and frame pointers. Out: [`Paths`], in which the outer frames that a stack has in common with the
//! last one of its tree are kept once: most of them stay where they are, and to look for the others in all stacks of the thread costs more
//! than it saves. By it `crate::stitch` finds the samples that passed the frame at which a cut stack ends. Only collected for those who ask.

use rustc_hash::FxHashMap;

use crate::address::Avma;
use crate::session::SampleId;
use crate::unwind::Activation;

use super::PcId;
use super::roots::Owner;
use crate::ids::{Idx, IndexVec, numbers};

numbers! {
    /// A node of the trees.
    pub struct NodeId(pub u32);
    /// A worker's tree.
    struct TreeId(u32);
}

/// The trees.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Parents come before children. Equal ones may be there more than once.
    pub nodes: IndexVec<NodeId, PathNode>,
    /// Roots, which stand outside the outermost frames.
    pub roots: Vec<PathRoot>,
    /// Samples with complete or cut stacks.
    pub samples: Vec<PathSample>,
    known_roots: FxHashMap<(Owner, PathEnd), TreeId>,
    /// The last stack of each tree.
    last: IndexVec<TreeId, LastStack>,
}

/// The nodes of the last stack that was added to a tree.
#[derive(Clone, Debug)]
struct LastStack {
    root: NodeId,
    /// Outermost first.
    frames: Vec<NodeId>,
}

/// A frame under all that is outside of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathNode {
    /// The frame outside of it, or a root; of roots, they themselves.
    pub parent: NodeId,
    /// The address; anything for roots.
    pub pc: PcId,
    /// Where it lay on the stack.
    pub spot: Spot,
    /// The frame pointer when its callee returns to it.
    pub fp: FramePointer,
}

/// A stack pointer, and whether the frame was reached by a return, which makes that certain. There are hundreds of thousands of
/// them, so they share a word; no stack is in the upper half of the addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot(u64);

/// A frame pointer that may be unknown, in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FramePointer(u64);

/// Whose stacks hang below a node, and how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRoot {
    /// The node.
    pub node: NodeId,
    /// Whose stacks.
    pub owner: Owner,
    /// How they ended.
    pub end: PathEnd,
}

/// How stacks of a tree ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PathEnd {
    /// At the thread's start.
    Start,
    /// At the base of a fiber.
    Fiber,
    /// Where the copy of the stack ended.
    Cut,
}

/// A sample's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathSample {
    /// Its place in time order.
    pub rank: SampleId,
    /// Its innermost frame.
    pub node: NodeId,
}

impl Spot {
    const fn of(activation: Activation) -> Self {
        Self(activation.sp.0 << 1 | activation.is_exact as u64)
    }

    /// The stack pointer when its callee returns to it.
    #[must_use]
    pub const fn sp(self) -> Avma {
        Avma(self.0 >> 1)
    }

    /// Whether it was reached by a return, with a stack pointer that is certain.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.0 & 1 == 1
    }
}

impl FramePointer {
    /// Of which nothing is known.
    pub const UNKNOWN: Self = Self(u64::MAX);

    fn of(activation: Activation) -> Self {
        // The highest address is as good as its neighbour: neither is one of a frame.
        activation
            .fp
            .map_or(Self::UNKNOWN, |fp| Self(fp.min(u64::MAX - 1)))
    }

    /// Whether what is known of two does not speak against their being equal.
    #[must_use]
    pub fn fits(self, other: Self) -> bool {
        self == other || self == Self::UNKNOWN || other == Self::UNKNOWN
    }
}

impl PathNode {
    /// What stands outside the outermost frames, as that node.
    const fn root(node: NodeId) -> Self {
        Self {
            parent: node,
            pc: PcId(0),
            spot: Spot(0),
            fp: FramePointer::UNKNOWN,
        }
    }
}

impl Paths {
    /// Adds a sample's stack, given from the outermost frame inwards.
    pub(crate) fn add(
        &mut self,
        rank: SampleId,
        owner: Owner,
        end: PathEnd,
        frames: impl Iterator<Item = (PcId, Activation)>,
    ) {
        let tree = self.tree(owner, end);
        let Self { nodes, last, .. } = self;
        let LastStack { root, frames: last } = &mut last[tree];
        let mut innermost = *root;
        let mut depth = 0;
        for (pc, activation) in frames {
            let node = PathNode {
                parent: innermost,
                pc,
                spot: Spot::of(activation),
                fp: FramePointer::of(activation),
            };
            // Inside of a frame that is another one all have other parents.
            innermost = match last.get(depth) {
                Some(&known) if nodes[known] == node => known,
                _ => {
                    let new = nodes.push(node);
                    last.truncate(depth);
                    last.push(new);
                    new
                }
            };
            depth += 1;
        }
        last.truncate(depth);
        self.samples.push(PathSample {
            rank,
            node: innermost,
        });
    }

    /// The number of a tree.
    fn tree(&mut self, owner: Owner, end: PathEnd) -> TreeId {
        let Self {
            nodes,
            roots,
            known_roots,
            last,
            ..
        } = self;
        *known_roots.entry((owner, end)).or_insert_with(|| {
            let root = nodes.push(PathNode::root(nodes.next_idx()));
            roots.push(PathRoot {
                node: root,
                owner,
                end,
            });
            let frames = Vec::new();
            last.push(LastStack { root, frames })
        })
    }

    /// Gives back what only serves to add more.
    pub(super) fn finish(self) -> Self {
        Self {
            nodes: self.nodes,
            roots: self.roots,
            samples: self.samples,
            ..Self::default()
        }
    }

    /// Takes another worker's, whose addresses have numbers that are by `pcs` larger here.
    pub(crate) fn absorb(&mut self, other: Self, pcs: u32) {
        let nodes = self.nodes.len();
        let moved = |node: NodeId| NodeId::from_usize(nodes + node.index());
        self.nodes
            .extend(other.nodes.into_iter().map(|node| PathNode {
                parent: moved(node.parent),
                pc: PcId(node.pc.0 + pcs),
                ..node
            }));
        self.roots
            .extend(other.roots.into_iter().map(|root| PathRoot {
                node: moved(root.node),
                ..root
            }));
        self.samples
            .extend(other.samples.into_iter().map(|sample| PathSample {
                node: moved(sample.node),
                ..sample
            }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadId;

    fn owner(thread: u32) -> Owner {
        Owner {
            thread: ThreadId(thread),
            program: 0,
        }
    }

    fn add(paths: &mut Paths, rank: u32, thread: u32, frames: &[(u32, u64)]) {
        let frames = frames.iter().map(|&(pc, sp)| {
            let activation = Activation {
                sp: Avma(sp),
                fp: None,
                is_exact: true,
            };
            (PcId(pc), activation)
        });
        paths.add(SampleId(rank), owner(thread), PathEnd::Start, frames);
    }

    #[test]
    fn what_stacks_share_with_the_last_one_is_kept_once_and_threads_are_apart() {
        let mut paths = Paths::default();
        add(&mut paths, 0, 1, &[(1, 90), (2, 80), (3, 70)]);
        add(&mut paths, 1, 1, &[(1, 90), (2, 80)]);
        add(&mut paths, 2, 1, &[(1, 90), (2, 80), (4, 70)]);
        add(&mut paths, 3, 2, &[(1, 90), (2, 80), (3, 70)]);
        add(&mut paths, 4, 1, &[(1, 90), (2, 80), (4, 70)]);
        add(&mut paths, 5, 1, &[(1, 90), (2, 88), (4, 70)]);
        // Two roots, and frames of six stacks.
        assert_eq!(paths.nodes.len(), 2 + 3 + 1 + 3 + 2);
        let node = |rank: usize| paths.samples[rank].node;
        let parent = |rank: usize| paths.nodes[node(rank)].parent;
        assert_eq!((parent(0), parent(2)), (node(1), node(1)));
        assert_eq!(node(4), node(2));
        assert_ne!(node(3), node(0));
        assert_ne!(parent(5), node(1));
    }

    #[test]
    fn a_workers_trees_keep_their_shape_in_anothers() {
        let (mut one, mut two) = (Paths::default(), Paths::default());
        add(&mut one, 0, 1, &[(1, 90)]);
        add(&mut two, 1, 1, &[(0, 90), (1, 80)]);
        one.absorb(two, 10);
        let inner = one.nodes[one.samples[1].node];
        let outer = one.nodes[inner.parent];
        assert_eq!((inner.pc, outer.pc), (PcId(11), PcId(10)));
        assert_eq!(outer.parent, one.roots[1].node);
        assert_eq!(one.nodes[outer.parent].parent, outer.parent);
    }
}
