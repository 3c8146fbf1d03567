//! All chains of a table in one radix tree, with the weight of everything below each node.
//!
//! In: chains as slices of dense frame numbers, each under a root (a context, or a row). Out: nodes in an arena.
//! Crediting callers and building call trees both read it, so that a prefix shared by thousands of
//! chains is looked at once. Built by [`super::rows`], read by [`super::tree`].

use std::ops::Range;

use rustc_hash::FxHashMap;

/// No node, no entry.
pub(crate) const NONE: u32 = u32::MAX;

/// A run of frames that all chains through it share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// First frame of the run in [`Trie::frames`].
    start: u32,
    /// Frames in the run; only roots have none.
    pub(crate) len: u32,
    /// Node above, [`NONE`] for roots.
    pub(crate) parent: u32,
    /// Frames above the run.
    pub(crate) depth: u32,
    /// Weight of the chains that end with the run.
    pub(crate) own: Weight,
    /// Weight of the chains that pass or end here.
    pub(crate) total: Weight,
    /// Earliest entry that passes or ends here.
    pub(crate) first: u32,
    /// Frames of the longest way further down, behind the run.
    pub(crate) height: u32,
    /// First node below.
    pub(crate) child: u32,
    /// Next node beside.
    pub(crate) sibling: u32,
    /// Latest entry that ends here, head of a list in [`Trie::next_ending`].
    pub(crate) ending: u32,
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
    pub(crate) nodes: Vec<Node>,
    /// Frames of all chains; runs point into it.
    frames: Vec<u32>,
    children: FxHashMap<u64, u32>,
    /// By entry: the next entry that ends at the same node.
    pub(crate) next_ending: Vec<u32>,
    /// By entry: the node its chain ends at.
    pub(crate) end_of: Vec<u32>,
}

impl Trie {
    /// An empty tree over so many frames of all chains, for entries below `entries`.
    pub(crate) fn new(frames: usize, entries: usize) -> Self {
        Self {
            frames: vec![0; frames],
            next_ending: vec![NONE; entries],
            end_of: vec![NONE; entries],
            nodes: Vec::new(),
            children: FxHashMap::default(),
        }
    }

    /// Gives the frames from a place on; those of a chain have to be there when it is inserted.
    pub(crate) fn set_frames(&mut self, place: usize, frames: impl Iterator<Item = u32>) {
        for (at, frame) in self.frames[place..].iter_mut().zip(frames) {
            *at = frame;
        }
    }

    /// Adds a root.
    pub(crate) fn add_root(&mut self) -> u32 {
        self.push(Node::run(0, 0, NONE, 0, NONE))
    }

    /// Frames of a node's run.
    pub(crate) fn run(&self, node: u32) -> &[u32] {
        let node = &self.nodes[node as usize];
        &self.frames[node.start as usize..(node.start + node.len) as usize]
    }

    /// Where a node's run is among the frames of all chains.
    pub(crate) fn places(&self, node: u32) -> Range<usize> {
        let node = &self.nodes[node as usize];
        node.start as usize..(node.start + node.len) as usize
    }

    /// Nodes directly below.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.nodes[node as usize].child;
        std::iter::successors((first != NONE).then_some(first), |child| {
            let next = self.nodes[*child as usize].sibling;
            (next != NONE).then_some(next)
        })
    }

    /// Inserts the chain of an entry, given by its place among all frames, under a root. Entries come in ascending
    /// order.
    pub(crate) fn insert(&mut self, root: u32, chain: Range<usize>, entry: u32, weight: Weight) {
        let mut at = root;
        let mut rest = chain;
        self.touch(at, entry);
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
            rest.start += common;
        }
        let node = &mut self.nodes[at as usize];
        node.own.add(weight);
        self.next_ending[entry as usize] = node.ending;
        self.end_of[entry as usize] = at;
        node.ending = entry;
    }

    /// Sums weights and heights from the bottom up. Call once, after the last insertion.
    pub(crate) fn finish(&mut self) {
        self.children = FxHashMap::default();
        self.link();
        let mut order: Vec<u32> = (0..self.nodes.len() as u32)
            .filter(|id| self.is_root(*id))
            .collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            order.extend(self.children(node));
            next += 1;
        }
        for node in &mut self.nodes {
            node.total = node.own;
        }
        for id in order.into_iter().rev() {
            let node = self.nodes[id as usize];
            if node.parent != NONE {
                let parent = &mut self.nodes[node.parent as usize];
                parent.total.add(node.total);
                parent.height = parent.height.max(node.height + node.len);
            }
        }
    }

    /// Lists the children of each node, the earliest made first.
    fn link(&mut self) {
        for id in (0..self.nodes.len() as u32).rev() {
            let parent = self.nodes[id as usize].parent;
            if parent != NONE {
                self.nodes[id as usize].sibling = self.nodes[parent as usize].child;
                self.nodes[parent as usize].child = id;
            }
        }
    }

    fn is_root(&self, node: u32) -> bool {
        self.nodes[node as usize].parent == NONE
    }

    fn key(node: u32, frame: u32) -> u64 {
        u64::from(node) << 32 | u64::from(frame)
    }

    fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("at most two nodes for each entry")
    }

    fn touch(&mut self, node: u32, entry: u32) {
        let first = &mut self.nodes[node as usize].first;
        *first = (*first).min(entry);
    }

    fn add_leaf(&mut self, parent: u32, chain: Range<usize>, entry: u32) -> u32 {
        let start = u32::try_from(chain.start).expect("fewer than 4 G frames in all chains");
        let frame = self.frames[chain.start];
        let above = self.nodes[parent as usize];
        let id = self.push(Node::run(
            start,
            chain.len() as u32,
            parent,
            above.depth + above.len,
            entry,
        ));
        self.children.insert(Self::key(parent, frame), id);
        id
    }

    /// Cuts the run of `lower` behind its first `keep` frames; returns the new node that has those. The lower part
    /// keeps its number, so that what hangs below it stays right.
    fn split(&mut self, lower: u32, keep: u32) -> u32 {
        let old = self.nodes[lower as usize];
        let upper = self.push(Node {
            len: keep,
            own: Weight::default(),
            ending: NONE,
            ..old
        });
        let node = &mut self.nodes[lower as usize];
        node.start += keep;
        node.len -= keep;
        node.depth += keep;
        node.parent = upper;
        let (first, second) = (
            self.frames[old.start as usize],
            self.frames[(old.start + keep) as usize],
        );
        self.children.insert(Self::key(old.parent, first), upper);
        self.children.insert(Self::key(upper, second), lower);
        upper
    }
}

impl Node {
    fn run(start: u32, len: u32, parent: u32, depth: u32, first: u32) -> Self {
        Self {
            start,
            len,
            parent,
            depth,
            own: Weight::default(),
            total: Weight::default(),
            first,
            height: 0,
            child: NONE,
            sibling: NONE,
            ending: NONE,
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
        trie.set_frames(0, [1, 2, 3, 4, 1, 2, 5, 1, 2, 3].into_iter());
        let root = trie.add_root();
        for (entry, (chain, period)) in [(0..4, 10), (4..7, 20), (7..10, 40), (0..0, 80)]
            .into_iter()
            .enumerate()
        {
            trie.insert(root, chain, entry as u32, weight(period));
        }
        trie.finish();
        let top: Vec<u32> = trie.children(root).collect();
        assert_eq!(top.len(), 1);
        assert_eq!(trie.run(top[0]), [1, 2]);
        let node = trie.nodes[top[0] as usize];
        assert_eq!(
            (node.total.period, node.own.period, node.height, node.first),
            (70, 0, 2, 0)
        );
        let below: Vec<&[u32]> = trie.children(top[0]).map(|child| trie.run(child)).collect();
        assert_eq!(below, [&[5][..], &[3][..]]);
        assert_eq!(trie.nodes[trie.end_of[2] as usize].total.period, 50);
        assert_eq!(trie.nodes[root as usize].own.period, 80);
        assert_eq!(trie.nodes[root as usize].total.period, 150);
    }
}
