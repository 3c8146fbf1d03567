//! The stacks of samples with their places in memory, one tree for each thread and kind of end, from the root inwards.
//!
//! In: each walk's frames with stack and frame pointers. Out: [`Paths`], in which equal outer parts are kept once. By it
//! `crate::stitch` finds the samples that passed the frame at which a cut stack ends. Only collected for those who ask.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::address::Avma;
use crate::intern::ItemIndex;
use crate::unwind::Activation;

use super::PcId;
use super::roots::Owner;

/// No node.
pub const NO_NODE: u32 = u32::MAX;

/// The trees.
#[derive(Debug, Default)]
pub struct Paths {
    /// Parents come before children. Those of several workers are equal by content only.
    pub nodes: Vec<PathNode>,
    /// Roots, which stand outside the outermost frames.
    pub roots: Vec<PathRoot>,
    /// Samples with complete or cut stacks.
    pub samples: Vec<PathSample>,
    known_roots: FxHashMap<(Owner, PathEnd), u32>,
    index: ItemIndex,
    /// The last path of each thread, outermost first: the next one begins like it.
    last: FxHashMap<(Owner, PathEnd), Vec<u32>>,
}

/// A frame under all that is outside of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathNode {
    /// The frame outside of it, or a root.
    pub parent: u32,
    /// The address; anything for roots.
    pub pc: PcId,
    /// The stack pointer when its callee returns to it.
    pub sp: Avma,
    /// The frame pointer then.
    pub fp: Option<u64>,
    /// Whether it was reached by a return, with a stack pointer that is certain.
    pub is_exact: bool,
}

/// Whose stacks hang below a node, and how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRoot {
    /// The node.
    pub node: u32,
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
    pub rank: u32,
    /// Its innermost frame.
    pub node: u32,
}

impl Paths {
    /// Adds a sample's stack, given from the outermost frame inwards.
    pub(crate) fn add(
        &mut self,
        rank: u64,
        owner: Owner,
        end: PathEnd,
        frames: impl Iterator<Item = (PcId, Activation)>,
    ) {
        let mut path = self.last.remove(&(owner, end)).unwrap_or_default();
        let mut parent = self.root(owner, end);
        let mut depth = 0;
        for (pc, activation) in frames {
            let node = PathNode {
                parent,
                pc,
                sp: activation.sp,
                fp: activation.fp,
                is_exact: activation.is_exact,
            };
            let last = path.get(depth).copied();
            parent = match last.filter(|last| self.nodes[*last as usize] == node) {
                Some(same) => same,
                None => {
                    path.truncate(depth);
                    let id = self.intern(node);
                    path.push(id);
                    id
                }
            };
            depth += 1;
        }
        path.truncate(depth);
        self.last.insert((owner, end), path);
        let rank = u32::try_from(rank).expect("fewer than 4 G samples");
        self.samples.push(PathSample { rank, node: parent });
    }

    fn root(&mut self, owner: Owner, end: PathEnd) -> u32 {
        let Self {
            nodes,
            roots,
            known_roots,
            ..
        } = self;
        *known_roots.entry((owner, end)).or_insert_with(|| {
            let node = number(nodes.len());
            nodes.push(PathNode {
                parent: NO_NODE,
                pc: PcId(node),
                sp: Avma(0),
                fp: None,
                is_exact: false,
            });
            roots.push(PathRoot { node, owner, end });
            node
        })
    }

    fn intern(&mut self, node: PathNode) -> u32 {
        let new = number(self.nodes.len());
        let nodes = &self.nodes;
        let hash = |node: &PathNode| FxBuildHasher.hash_one(node);
        let is = |id: u32| nodes[id as usize] == node;
        let known = (self.index).find_or_add(hash(&node), new, is, |id| hash(&nodes[id as usize]));
        known.unwrap_or_else(|| {
            self.nodes.push(node);
            new
        })
    }

    /// Takes another worker's, whose addresses have numbers that are by `pcs` larger here.
    pub(super) fn absorb(&mut self, other: Self, pcs: u32) {
        let nodes = number(self.nodes.len());
        number(self.nodes.len() + other.nodes.len());
        self.nodes
            .extend(other.nodes.into_iter().map(|node| PathNode {
                parent: match node.parent {
                    NO_NODE => NO_NODE,
                    parent => parent + nodes,
                },
                pc: PcId(node.pc.0.wrapping_add(pcs)),
                ..node
            }));
        self.roots
            .extend(other.roots.into_iter().map(|root| PathRoot {
                node: root.node + nodes,
                ..root
            }));
        self.samples
            .extend(other.samples.into_iter().map(|sample| PathSample {
                node: sample.node + nodes,
                ..sample
            }));
    }
}

fn number(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 4 G frames")
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

    fn add(paths: &mut Paths, rank: u64, thread: u32, frames: &[(u32, u64)]) {
        let frames = frames.iter().map(|&(pc, sp)| {
            let activation = Activation {
                sp: Avma(sp),
                fp: None,
                is_exact: true,
            };
            (PcId(pc), activation)
        });
        paths.add(rank, owner(thread), PathEnd::Start, frames);
    }

    #[test]
    fn outer_parts_are_kept_once_and_threads_apart() {
        let mut paths = Paths::default();
        add(&mut paths, 0, 1, &[(1, 90), (2, 80), (3, 70)]);
        add(&mut paths, 1, 1, &[(1, 90), (2, 80)]);
        add(&mut paths, 2, 1, &[(1, 90), (2, 80), (4, 70)]);
        add(&mut paths, 3, 1, &[(1, 90), (2, 80), (3, 70)]);
        add(&mut paths, 4, 2, &[(1, 90), (2, 80), (3, 70)]);
        // Two roots, and four and three frames.
        assert_eq!(paths.nodes.len(), 2 + 4 + 3);
        let node = |rank: usize| paths.samples[rank].node;
        assert_eq!(node(0), node(3));
        assert_eq!(paths.nodes[node(0) as usize].parent, node(1));
        assert_ne!(node(0), node(4));
    }

    #[test]
    fn a_workers_trees_keep_their_shape_in_anothers() {
        let (mut one, mut two) = (Paths::default(), Paths::default());
        add(&mut one, 0, 1, &[(1, 90)]);
        add(&mut two, 1, 1, &[(0, 90), (1, 80)]);
        one.absorb(two, 10);
        let inner = one.nodes[one.samples[1].node as usize];
        let outer = one.nodes[inner.parent as usize];
        assert_eq!((inner.pc, outer.pc), (PcId(11), PcId(10)));
        assert_eq!(outer.parent, one.roots[1].node);
        assert_eq!(one.nodes[outer.parent as usize].parent, NO_NODE);
    }
}
