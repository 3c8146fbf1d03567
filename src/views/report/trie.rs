//! All chains of a table in one radix tree, with the weight of everything below each node.
//!
//! In: chains as slices of dense frame numbers, each under a root (a context, or a row). Out: nodes in an arena.
//! Crediting callers and building call trees both read it, so that a prefix shared by thousands of
//! chains is looked at once. Built by [`super::rows`], read by [`super::tree`].

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::chains::ChainPlace;
use crate::ids::{Idx, IndexSlice, IndexVec, Spare, index_vec, numbers};
use crate::profile::EntryId;

numbers! {
    /// Index into [`Trie::nodes`].
    pub(crate) struct NodeId(Spare);

    /// A frame as far as trees and rows tell frames apart: what chains are made of.
    pub(crate) struct FineId(pub(crate) u32);

    /// A frame of a node's run.
    pub(crate) struct RunPlace(pub(crate) u32);
}

impl RunPlace {
    /// The first frame of a run.
    pub(crate) const FIRST: Self = Self(0);

    /// The frame behind it.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A run of frames that all chains through it share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// First frame of the run in [`Trie::frames`].
    start: ChainPlace,
    /// Frames in the run; only roots have none.
    pub(crate) len: u32,
    /// Node above; roots have none.
    pub(crate) parent: Option<NodeId>,
    /// Frames above the run.
    pub(crate) depth: u32,
    /// Weight of the chains that end with the run.
    pub(crate) own: Weight,
    /// Weight of the chains that pass or end here.
    pub(crate) total: Weight,
    /// Earliest entry that passes or ends here; not kept for roots.
    pub(crate) first: EntryId,
    /// Frames of the longest way further down, behind the run.
    pub(crate) height: u32,
    /// First node below.
    pub(crate) child: Option<NodeId>,
    /// Next node beside.
    pub(crate) sibling: Option<NodeId>,
    /// Latest entry that ends here, head of a list in [`Trie::next_ending`].
    pub(crate) ending: Option<EntryId>,
}

/// Period and number of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Sum of periods.
    pub(crate) period: u64,
    /// Number of samples.
    pub(crate) count: u64,
}

impl Weight {
    pub(crate) fn add(&mut self, other: Self) {
        self.period = self.period.wrapping_add(other.period);
        self.count += other.count;
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            period: self.period.wrapping_sub(other.period),
            count: self.count - other.count,
        }
    }
}

/// The tree.
#[derive(Debug, Default)]
pub(crate) struct Trie {
    /// Parents come before children, except where a run was split.
    pub(crate) nodes: IndexVec<NodeId, Node>,
    /// Frames of all chains; runs point into it.
    frames: IndexVec<ChainPlace, FineId>,
    children: FxHashMap<u64, NodeId>,
    /// By entry: the next entry that ends at the same node.
    pub(crate) next_ending: IndexVec<EntryId, Option<EntryId>>,
    /// By entry: the node its chain ends at, if it is in.
    pub(crate) end_of: IndexVec<EntryId, Option<NodeId>>,
}

impl Trie {
    /// An empty tree over so many frames of all chains, for entries below `entries`.
    pub(crate) fn new(frames: usize, entries: usize) -> Self {
        Self {
            frames: index_vec![FineId(0); frames],
            next_ending: index_vec![None; entries],
            end_of: index_vec![None; entries],
            nodes: IndexVec::new(),
            children: FxHashMap::default(),
        }
    }

    /// Gives the frames from a place on; those of a chain have to be there when it is inserted.
    pub(crate) fn set_frames(&mut self, place: ChainPlace, frames: impl Iterator<Item = FineId>) {
        for (at, frame) in self.frames[place..].iter_mut().zip(frames) {
            *at = frame;
        }
    }

    /// Adds a root.
    pub(crate) fn add_root(&mut self) -> NodeId {
        let (no_place, no_entry) = (ChainPlace::default(), EntryId::from_usize(0));
        self.nodes.push(Node::run(no_place, 0, None, 0, no_entry))
    }

    /// Frames of a node's run.
    #[inline]
    pub(crate) fn run(&self, node: NodeId) -> &IndexSlice<RunPlace, [FineId]> {
        IndexSlice::new(&self.frames[self.places(node)].raw)
    }

    /// Where a node's run is among the frames of all chains.
    #[inline]
    pub(crate) fn places(&self, node: NodeId) -> Range<ChainPlace> {
        let node = &self.nodes[node];
        node.start..node.start.plus(node.len)
    }

    /// Where a frame of a node's run is.
    #[inline]
    pub(crate) fn place(&self, node: NodeId, frame: RunPlace) -> ChainPlace {
        self.nodes[node].start.plus(frame.0)
    }

    /// Nodes directly below.
    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.nodes[node].child, |child| self.nodes[*child].sibling)
    }

    /// Inserts the chain of an entry, given by its place among all frames, under a root. Entries come in ascending
    /// order.
    pub(crate) fn insert(
        &mut self,
        root: NodeId,
        chain: Range<ChainPlace>,
        entry: EntryId,
        weight: Weight,
    ) {
        let mut at = root;
        let mut rest = chain;
        while let Some(&frame) = self.frames[rest.clone()].first() {
            let Some(&child) = self.children.get(&Self::key(at, frame)) else {
                at = self.add_leaf(at, rest, entry);
                break;
            };
            let run = self.run(child);
            let common = run
                .iter()
                .zip(&self.frames[rest.clone()])
                .take_while(|(a, b)| a == b)
                .count();
            at = if common == run.len() {
                child
            } else {
                self.split(child, common as u32)
            };
            rest.start = rest.start.plus(common as u32);
        }
        let node = &mut self.nodes[at];
        node.own.add(weight);
        self.next_ending[entry] = node.ending;
        self.end_of[entry] = Some(at);
        node.ending = Some(entry);
    }

    /// Sums weights and heights from the bottom up. Call once, after the last insertion.
    pub(crate) fn finish(&mut self) {
        self.children = FxHashMap::default();
        self.link();
        let is_root = |id: &NodeId| self.nodes[*id].parent.is_none();
        let mut order: Vec<NodeId> = self.nodes.indices().filter(is_root).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            order.extend(self.children(node));
            next += 1;
        }
        for node in &mut self.nodes {
            node.total = node.own;
        }
        for id in order.into_iter().rev() {
            let node = self.nodes[id];
            if let Some(parent) = node.parent {
                let parent = &mut self.nodes[parent];
                parent.total.add(node.total);
                parent.height = parent.height.max(node.height + node.len);
            }
        }
    }

    /// Lists the children of each node, the earliest made first.
    fn link(&mut self) {
        for id in self.nodes.indices().rev() {
            if let Some(parent) = self.nodes[id].parent {
                self.nodes[id].sibling = self.nodes[parent].child;
                self.nodes[parent].child = Some(id);
            }
        }
    }

    fn key(node: NodeId, frame: FineId) -> u64 {
        (node.index() as u64) << 32 | u64::from(frame.0)
    }

    fn add_leaf(&mut self, parent: NodeId, chain: Range<ChainPlace>, entry: EntryId) -> NodeId {
        let frame = self.frames[chain.start];
        let above = self.nodes[parent];
        let id = self.nodes.push(Node::run(
            chain.start,
            (chain.end.index() - chain.start.index()) as u32,
            Some(parent),
            above.depth + above.len,
            entry,
        ));
        self.children.insert(Self::key(parent, frame), id);
        id
    }

    /// Cuts the run of `lower` behind its first `keep` frames; returns the new node that has those. The lower part
    /// keeps its number, so that what hangs below it stays right.
    fn split(&mut self, lower: NodeId, keep: u32) -> NodeId {
        let old = self.nodes[lower];
        let upper = self.nodes.push(Node {
            len: keep,
            own: Weight::default(),
            ending: None,
            ..old
        });
        let node = &mut self.nodes[lower];
        node.start = node.start.plus(keep);
        node.len -= keep;
        node.depth += keep;
        node.parent = Some(upper);
        let first_of = |id| self.run(id)[RunPlace::FIRST];
        let (first, second) = (first_of(upper), first_of(lower));
        if let Some(parent) = old.parent {
            self.children.insert(Self::key(parent, first), upper);
        }
        self.children.insert(Self::key(upper, second), lower);
        upper
    }
}

impl Node {
    fn run(
        start: ChainPlace,
        len: u32,
        parent: Option<NodeId>,
        depth: u32,
        first: EntryId,
    ) -> Self {
        Self {
            start,
            len,
            parent,
            depth,
            own: Weight::default(),
            total: Weight::default(),
            first,
            height: 0,
            child: None,
            sibling: None,
            ending: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(period: u64) -> Weight {
        Weight { period, count: 1 }
    }

    #[test]
    fn runs_are_shared_split_and_summed() {
        let mut trie = Trie::new(10, 4);
        let place = ChainPlace::from_usize;
        trie.set_frames(
            place(0),
            [1, 2, 3, 4, 1, 2, 5, 1, 2, 3].map(FineId).into_iter(),
        );
        let root = trie.add_root();
        for (entry, (chain, period)) in [(0..4, 10), (4..7, 20), (7..10, 40), (0..0, 80)]
            .into_iter()
            .enumerate()
        {
            let chain = place(chain.start)..place(chain.end);
            trie.insert(root, chain, EntryId::from_usize(entry), weight(period));
        }
        trie.finish();
        let top: Vec<NodeId> = trie.children(root).collect();
        assert_eq!(top.len(), 1);
        assert_eq!(trie.run(top[0]).raw, [1, 2].map(FineId));
        let node = trie.nodes[top[0]];
        assert_eq!(
            (node.total.period, node.own.period, node.height, node.first),
            (70, 0, 2, EntryId::from_usize(0))
        );
        let below: Vec<&[FineId]> = trie
            .children(top[0])
            .map(|child| &trie.run(child).raw)
            .collect();
        assert_eq!(below, [&[FineId(5)][..], &[FineId(3)][..]]);
        let end = trie.end_of[EntryId::from_usize(2)].expect("it is in");
        assert_eq!(trie.nodes[end].total.period, 50);
        assert_eq!(trie.nodes[root].own.period, 80);
        assert_eq!(trie.nodes[root].total.period, 150);
    }
}
