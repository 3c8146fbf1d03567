//! Call trees of rows: which chains lead to (or from) a row, merged where they share frames.
//!
//! In: the trie of all chains and what [`super::rows`] noted about where a row occurs in it. Out: one [`CallTree`] for a
//! row, made when it is printed, with branches below the threshold left out. Equal to what perf builds chain by
//! chain (`append_chain`, `__sort_chain_graph_abs` in `util/callchain.c`): a node is a run of frames that ends where chains
//! part or one of them ends.
//!
//! With children, a sample gives its leaf's row the whole chain and each other row the part behind that row's first
//! frame. So a row's tree merges the subtrees at all places where the row occurs as caller, less
//! the samples of the row itself, with the whole chains of those samples.

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use smallvec::SmallVec;

use super::options::CallGraphMode;
use super::rows::Row;
use super::share::threshold;
use super::trie::{NONE, Trie, Weight};
use super::{Report, Table};
use crate::profile::FrameId;

/// The chains of one row.
#[derive(Debug, Default)]
pub struct CallTree {
    /// All nodes; parents come before their children.
    pub nodes: Vec<TreeNode>,
    /// The runs of frames that nodes refer to.
    pub frames: Vec<FrameId>,
    /// Lists of nodes that nodes refer to.
    lists: Vec<u32>,
    /// The outermost nodes in [`Self::lists`].
    top: Range<u32>,
    /// What all outermost branches add up to, shown or not.
    pub top_period: u64,
    /// The same in chains.
    pub top_count: u64,
}

/// A run of frames.
#[derive(Debug, Clone, Default)]
pub struct TreeNode {
    frames: Range<u32>,
    children: Range<u32>,
    /// Node above; `u32::MAX` for the outermost.
    pub parent: u32,
    /// Period of the chains that end here.
    pub own_period: u64,
    /// Chains that end here.
    pub own_count: u64,
    /// Period of the chains that go on, through branches shown or not.
    pub children_period: u64,
    /// Chains that go on.
    pub children_count: u64,
}

impl TreeNode {
    /// Period of all chains through the node.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.own_period.wrapping_add(self.children_period)
    }

    /// Number of all chains through the node.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.own_count + self.children_count
    }
}

impl CallTree {
    /// Frames of a node in the view's order.
    #[must_use]
    pub fn run(&self, node: u32) -> &[FrameId] {
        let Range { start, end } = self.nodes[node as usize].frames;
        &self.frames[start as usize..end as usize]
    }

    /// Branches of a node that reach the threshold, the largest first.
    #[must_use]
    pub fn children(&self, node: u32) -> &[u32] {
        self.list(&self.nodes[node as usize].children)
    }

    /// Outermost branches that reach the threshold, the largest first.
    #[must_use]
    pub fn top(&self) -> &[u32] {
        self.list(&self.top)
    }

    fn list(&self, range: &Range<u32>) -> &[u32] {
        &self.lists[range.start as usize..range.end as usize]
    }

    /// Nodes at which chains end, in the order of flat and folded output: by what ends there; ties
    /// as perf walks its tree, branches before what they branch from.
    #[must_use]
    pub fn ends(&self, threshold: u64) -> Vec<u32> {
        let mut ends = Vec::new();
        let mut open: Vec<(u32, bool)> =
            self.top().iter().rev().map(|node| (*node, false)).collect();
        while let Some((node, is_done)) = open.pop() {
            let own = self.nodes[node as usize].own_period;
            if is_done {
                if own > 0 && own >= threshold {
                    ends.push(node);
                }
                continue;
            }
            open.push((node, true));
            open.extend(
                self.children(node)
                    .iter()
                    .rev()
                    .map(|child| (*child, false)),
            );
        }
        ends.sort_by_key(|node| Reverse(self.nodes[*node as usize].own_period));
        ends
    }
}

/// A place in the trie on which some chains of the row stand.
#[derive(Debug, Clone, Copy)]
struct Item {
    node: u32,
    /// Frames of the node's run that are used up.
    offset: u32,
    /// Whether only the row's own samples count (their whole chains), or everyone's but theirs.
    own_samples: bool,
}

type Items = SmallVec<[Item; 2]>;

/// A branch that is yet to be looked into.
struct Group {
    label: u32,
    frame: u32,
    weight: Weight,
    items: Items,
}

/// What the row's own samples contribute at a node of the trie.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Weight of their whole chains that pass or end here, and that end here.
    whole: Weight,
    whole_end: Weight,
    /// Weight not to be counted from the row's first frame on, because the whole chain is.
    not_again: Weight,
    not_again_end: Weight,
    /// First marked node below, next marked node beside.
    child: u32,
    sibling: u32,
}

const UNMARKED: Mark = Mark {
    whole: Weight {
        period: 0,
        count: 0,
    },
    whole_end: Weight {
        period: 0,
        count: 0,
    },
    not_again: Weight {
        period: 0,
        count: 0,
    },
    not_again_end: Weight {
        period: 0,
        count: 0,
    },
    child: NONE,
    sibling: NONE,
};

/// Makes call trees; keeps its working memory between rows.
#[derive(Debug)]
pub struct TreeMaker<'r, 'p> {
    report: &'r Report<'p>,
    /// Entries by the row of their leaf, and where each row's begin.
    entries: Vec<u32>,
    starts: Vec<u32>,
    /// By node of the trie: index into `marks`, valid if the mark belongs to the present row.
    mark_of: Vec<u32>,
    marks: Vec<(u32, Mark)>,
}

impl<'r, 'p> TreeMaker<'r, 'p> {
    /// A maker for the rows of a report.
    #[must_use]
    pub fn new(report: &'r Report<'p>) -> Self {
        let (entries, starts, nodes) = if report.children {
            let (entries, starts) = by_row(&report.rows.of_entry, report.rows.rows.len());
            (entries, starts, report.rows.trie.nodes.len())
        } else {
            (Vec::new(), Vec::new(), 0)
        };
        Self {
            report,
            entries,
            starts,
            mark_of: vec![NONE; nodes],
            marks: Vec::new(),
        }
    }

    /// The tree of a row, given by its place in the table.
    pub fn tree(&mut self, table: &Table, index: usize) -> CallTree {
        let number = table.places[index].1;
        let options = &self.report.options.chains.call_graph;
        let threshold = threshold(table.threshold_total, options.threshold);
        let row = &table.rows[index];
        let value = if self.report.children {
            row.counts.children_period
        } else {
            row.counts.self_period
        };
        let is_relative = options.mode == CallGraphMode::Fractal;
        // No branch can be larger than the row.
        if number == NONE || (!is_relative && value < threshold) {
            return CallTree::default();
        }
        let start = self.start(number, row);
        let mut builder = Builder {
            maker: self,
            tree: CallTree::default(),
            limit: if is_relative {
                Limit::Relative(options.threshold / 100.0)
            } else {
                Limit::Absolute(threshold)
            },
            by_size: matches!(options.mode, CallGraphMode::Graph | CallGraphMode::Fractal),
        };
        builder.build(start);
        builder.tree
    }

    /// The branches at the outer end, not yet grouped.
    fn start(&mut self, number: u32, row: &Row) -> Vec<(u32, Item, Weight)> {
        let rows = &self.report.rows;
        let trie = &rows.trie;
        if !self.report.children {
            let root = rows.roots[number as usize];
            if root == NONE {
                return Vec::new();
            }
            return trie
                .children(root)
                .map(|node| self.entering(node, false))
                .collect();
        }
        self.mark(number);
        let root = rows.roots[row.context as usize];
        let mut start = Vec::new();
        let mut node = self.get(root).child;
        while node != NONE {
            start.push(self.entering(node, true));
            node = self.get(node).sibling;
        }
        for &(node, offset) in rows.positions.of_row(number) {
            let weight = trie.nodes[node as usize]
                .total
                .without(self.get(node).not_again);
            start.push((
                trie.run(node)[offset as usize],
                Item {
                    node,
                    offset: offset + 1,
                    own_samples: false,
                },
                weight,
            ));
        }
        start
    }

    fn entering(&self, node: u32, own_samples: bool) -> (u32, Item, Weight) {
        let item = Item {
            node,
            offset: 1,
            own_samples,
        };
        (self.report.rows.trie.run(node)[0], item, self.weight(item))
    }

    fn get(&self, node: u32) -> Mark {
        let at = self.mark_of.get(node as usize).copied().unwrap_or(NONE);
        self.marks.get(at as usize).map_or(
            UNMARKED,
            |(of, mark)| if *of == node { *mark } else { UNMARKED },
        )
    }

    fn weight(&self, item: Item) -> Weight {
        let mark = self.get(item.node);
        if item.own_samples {
            return mark.whole;
        }
        self.report.rows.trie.nodes[item.node as usize]
            .total
            .without(mark.not_again)
    }

    fn ending(&self, item: Item) -> Weight {
        let mark = self.get(item.node);
        if item.own_samples {
            return mark.whole_end;
        }
        self.report.rows.trie.nodes[item.node as usize]
            .own
            .without(mark.not_again_end)
    }

    /// Notes along the chains of the row's own samples what they weigh.
    fn mark(&mut self, number: u32) {
        self.marks.clear();
        let report = self.report;
        let trie = &report.rows.trie;
        let own = self.starts[number as usize] as usize..self.starts[number as usize + 1] as usize;
        for i in own {
            let index = self.entries[i];
            let entry = &report.profile.entries[index as usize];
            let weight = Weight {
                period: entry.period,
                count: entry.samples,
            };
            let end = trie.end_of[index as usize];
            self.mark_whole(trie, end, weight);
            let first = report.rows.own_place[index as usize];
            if first != NONE {
                self.mark_not_again(trie, end, first, weight);
            }
        }
    }

    fn mark_whole(&mut self, trie: &Trie, end: u32, weight: Weight) {
        let mut node = end;
        while trie.nodes[node as usize].parent != NONE {
            let mark = self.mark_mut(trie, node);
            mark.whole.add(weight);
            if node == end {
                mark.whole_end.add(weight);
            }
            node = trie.nodes[node as usize].parent;
        }
    }

    fn mark_not_again(&mut self, trie: &Trie, end: u32, first: u32, weight: Weight) {
        let mut node = end;
        loop {
            let mark = self.mark_mut(trie, node);
            mark.not_again.add(weight);
            if node == end {
                mark.not_again_end.add(weight);
            }
            if node == first {
                break;
            }
            node = trie.nodes[node as usize].parent;
        }
    }

    /// The mark of a node; a new one is put on its parent's list.
    fn mark_mut(&mut self, trie: &Trie, node: u32) -> &mut Mark {
        let at = self.mark_of[node as usize] as usize;
        if self.marks.get(at).is_some_and(|(of, _)| *of == node) {
            return &mut self.marks[at].1;
        }
        let parent = trie.nodes[node as usize].parent;
        let sibling = if parent == NONE {
            NONE
        } else {
            std::mem::replace(&mut self.mark_mut(trie, parent).child, node)
        };
        let at = self.marks.len();
        self.mark_of[node as usize] = at as u32;
        self.marks.push((
            node,
            Mark {
                sibling,
                ..UNMARKED
            },
        ));
        &mut self.marks[at].1
    }
}

/// Entries by row, and where each row's begin.
fn by_row(of_entry: &[u32], rows: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; rows + 2];
    for row in of_entry.iter().filter(|row| **row != NONE) {
        starts[*row as usize + 2] += 1;
    }
    for i in 2..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut entries = vec![0; starts[rows + 1] as usize];
    for (entry, row) in of_entry.iter().enumerate().filter(|(_, row)| **row != NONE) {
        let at = &mut starts[*row as usize + 1];
        entries[*at as usize] = entry as u32;
        *at += 1;
    }
    (entries, starts)
}

enum Limit {
    /// Period.
    Absolute(u64),
    /// Share of what goes on behind the parent.
    Relative(f64),
}

struct Builder<'m, 'r, 'p> {
    maker: &'m TreeMaker<'r, 'p>,
    tree: CallTree,
    limit: Limit,
    /// Siblings by size, then by place; else by place alone.
    by_size: bool,
}

impl Builder<'_, '_, '_> {
    fn build(&mut self, start: Vec<(u32, Item, Weight)>) {
        let mut open: Vec<(u32, Group)> = Vec::new();
        let (groups, sum) = self.group(start);
        (self.tree.top_period, self.tree.top_count) = (sum.period, sum.count);
        self.tree.top = self.add_nodes(NONE, groups, sum, &mut open);
        while let Some((node, group)) = open.pop() {
            let (own, next) = self.follow(node, group);
            let (groups, sum) = self.group(next);
            let children = self.add_nodes(node, groups, sum, &mut open);
            let end = self.tree.frames.len() as u32;
            let node = &mut self.tree.nodes[node as usize];
            node.frames.end = end;
            node.children = children;
            (node.own_period, node.own_count) = (own.period, own.count);
            (node.children_period, node.children_count) = (sum.period, sum.count);
        }
    }

    /// Makes a node of each group that reaches the limit, in order.
    fn add_nodes(
        &mut self,
        parent: u32,
        groups: Vec<Group>,
        sum: Weight,
        open: &mut Vec<(u32, Group)>,
    ) -> Range<u32> {
        let least = match self.limit {
            Limit::Absolute(period) => period,
            Limit::Relative(share) => (sum.period as f64 * share).ceil() as u64,
        };
        let mut kept: Vec<Group> = groups
            .into_iter()
            .filter(|group| group.weight.period >= least)
            .collect();
        kept.sort_by(|a, b| self.compare(a, b));
        let start = self.tree.lists.len() as u32;
        let first = self.tree.nodes.len() as u32;
        for i in 0..kept.len() as u32 {
            self.tree.lists.push(first + i);
            self.tree.nodes.push(TreeNode {
                parent,
                ..TreeNode::default()
            });
        }
        open.extend(
            kept.into_iter()
                .enumerate()
                .map(|(i, group)| (first + i as u32, group)),
        );
        start..self.tree.lists.len() as u32
    }

    fn compare(&self, a: &Group, b: &Group) -> Ordering {
        let by_size = if self.by_size {
            b.weight.period.cmp(&a.weight.period)
        } else {
            Ordering::Equal
        };
        by_size.then_with(|| self.by_place(a.frame, b.frame))
    }

    /// perf's order of equal siblings: later objects first, higher addresses first, unmapped last. perf compares
    /// where objects lie in its own memory; the order in which they were first seen stands for that.
    fn by_place(&self, a: u32, b: u32) -> Ordering {
        let report = self.maker.report;
        let place = |fine: u32| {
            let frame = &report.profile[report.rows.fine.frame[fine as usize]];
            let symbol = frame.symbol.map(|symbol| &report.profile[symbol]);
            let inlined = symbol
                .filter(|symbol| symbol.inlined)
                .map(|symbol| symbol.name.as_bytes());
            (
                inlined,
                frame.object.map(|object| report.profile[object].rank),
                symbol.map_or(frame.object_address, |symbol| symbol.start),
                frame.address,
            )
        };
        place(b).cmp(&place(a))
    }

    /// Appends the frames of a run to the tree until chains part or one ends. Returns what ends there and what
    /// goes on.
    fn follow(&mut self, node: u32, group: Group) -> (Weight, Vec<(u32, Item, Weight)>) {
        let report = self.maker.report;
        let (trie, fine) = (&report.rows.trie, &report.rows.fine);
        let start = self.tree.frames.len() as u32;
        self.tree.nodes[node as usize].frames = start..start;
        let mut items = group.items;
        self.tree.frames.push(self.first_frame(&items));
        loop {
            if let [item] = items.as_mut_slice() {
                let rest = &report.chains.frames[trie.places(item.node)][item.offset as usize..];
                self.tree.frames.extend_from_slice(rest);
                item.offset = trie.nodes[item.node as usize].len;
            }
            let (own, next) = self.step(&items);
            let Some(&(frame, ..)) = next.first() else {
                return (own, next);
            };
            let label = fine.label[frame as usize];
            if own.count > 0
                || next
                    .iter()
                    .any(|(other, ..)| fine.label[*other as usize] != label)
            {
                return (own, next);
            }
            items = next.into_iter().map(|(_, item, _)| item).collect();
            self.tree.frames.push(self.first_frame(&items));
        }
    }

    /// The frame that the items have just entered; of several that are equal here, that of the earliest chain.
    fn first_frame(&self, items: &[Item]) -> FrameId {
        let report = self.maker.report;
        let trie = &report.rows.trie;
        let earliest = items
            .iter()
            .min_by_key(|item| (trie.nodes[item.node as usize].first, item.node))
            .expect("a group has items");
        report.chains.frames[trie.places(earliest.node)][earliest.offset as usize - 1]
    }

    /// What ends at the items, and the items one frame further on.
    fn step(&self, items: &[Item]) -> (Weight, Vec<(u32, Item, Weight)>) {
        let maker = self.maker;
        let trie = &maker.report.rows.trie;
        let (mut own, mut next) = (Weight::default(), Vec::new());
        for &item in items {
            let run = trie.run(item.node);
            if let Some(frame) = run.get(item.offset as usize) {
                next.push((
                    *frame,
                    Item {
                        offset: item.offset + 1,
                        ..item
                    },
                    maker.weight(item),
                ));
                continue;
            }
            own.add(maker.ending(item));
            if item.own_samples {
                let mut child = maker.get(item.node).child;
                while child != NONE {
                    next.push(maker.entering(child, true));
                    child = maker.get(child).sibling;
                }
            } else {
                next.extend(
                    trie.children(item.node)
                        .map(|child| maker.entering(child, false)),
                );
            }
        }
        next.retain(|(.., weight)| weight.count > 0);
        (own, next)
    }

    /// Puts together what begins with the same frame; also the sum.
    fn group(&self, mut next: Vec<(u32, Item, Weight)>) -> (Vec<Group>, Weight) {
        let fine = &self.maker.report.rows.fine;
        next.retain(|(.., weight)| weight.count > 0);
        next.sort_by_key(|(frame, ..)| (fine.label[*frame as usize], *frame));
        let (mut groups, mut sum) = (Vec::<Group>::with_capacity(next.len()), Weight::default());
        for (frame, item, weight) in next {
            sum.add(weight);
            let label = fine.label[frame as usize];
            match groups.last_mut() {
                Some(group) if group.label == label => {
                    group.weight.add(weight);
                    group.items.push(item);
                }
                _ => groups.push(Group {
                    label,
                    frame,
                    weight,
                    items: Items::from_slice(&[item]),
                }),
            }
        }
        (groups, sum)
    }
}
