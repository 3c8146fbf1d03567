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

use smallvec::SmallVec;

use super::options::CallGraphMode;
use super::rows::{ByRow, Row, RowId};
use super::share::threshold;
use super::trie::{FineId, NodeId, RunPlace, Trie, Weight};
use super::{LabelId, Report, Table};
use crate::ids::{IndexVec, Part, Spare, index_vec, numbers};
use crate::profile::{EntryId, FrameId};

numbers! {
    /// Index into [`CallTree::nodes`].
    pub struct TreeNodeId(Spare);
    /// Index into [`TreeMaker::marks`].
    struct MarkId(Spare);
}

/// The chains of one row.
#[derive(Debug, Default)]
pub struct CallTree {
    /// All nodes; parents come before their children.
    pub nodes: IndexVec<TreeNodeId, TreeNode>,
    /// The runs of frames that nodes refer to.
    pub frames: Vec<FrameId>,
    /// Lists of nodes that nodes refer to.
    lists: Vec<TreeNodeId>,
    /// The outermost nodes in [`Self::lists`].
    top: Part<TreeNodeId>,
    /// What all outermost branches add up to, shown or not.
    pub top_period: u64,
    /// The same in chains.
    pub top_count: u64,
}

/// A run of frames.
#[derive(Debug, Clone, Default)]
pub struct TreeNode {
    frames: Part<FrameId>,
    children: Part<TreeNodeId>,
    /// Node above, if it is not one of the outermost.
    pub parent: Option<TreeNodeId>,
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
    pub fn run(&self, node: TreeNodeId) -> &[FrameId] {
        self.nodes[node].frames.of(&self.frames)
    }

    /// Branches of a node that reach the threshold, the largest first.
    #[must_use]
    pub fn children(&self, node: TreeNodeId) -> &[TreeNodeId] {
        self.nodes[node].children.of(&self.lists)
    }

    /// Outermost branches that reach the threshold, the largest first.
    #[must_use]
    pub fn top(&self) -> &[TreeNodeId] {
        self.top.of(&self.lists)
    }

    /// Nodes at which chains end, in the order of flat and folded output: by what ends there; ties
    /// as perf walks its tree, branches before what they branch from.
    #[must_use]
    pub fn ends(&self, threshold: u64) -> Vec<TreeNodeId> {
        let mut ends = Vec::new();
        let mut open: Vec<(TreeNodeId, bool)> =
            self.top().iter().rev().map(|node| (*node, false)).collect();
        while let Some((node, is_done)) = open.pop() {
            let own = self.nodes[node].own_period;
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
        ends.sort_by_key(|node| Reverse(self.nodes[*node].own_period));
        ends
    }
}

/// A place in the trie on which some chains of the row stand.
#[derive(Debug, Clone, Copy)]
struct Item {
    node: NodeId,
    /// The next frame of the node's run: those before are used up.
    next: RunPlace,
    /// Whether only the row's own samples count (their whole chains), or everyone's but theirs.
    own_samples: bool,
}

type Items = SmallVec<[Item; 2]>;

/// A branch that is yet to be looked into.
struct Group {
    label: LabelId,
    frame: FineId,
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
    child: Option<NodeId>,
    sibling: Option<NodeId>,
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
    child: None,
    sibling: None,
};

/// Makes call trees; keeps its working memory between rows.
#[derive(Debug)]
pub struct TreeMaker<'r, 'p> {
    report: &'r Report<'p>,
    /// Entries by the row of their leaf.
    entries: ByRow<EntryId>,
    /// By node of the trie: its mark, valid if that is of the present row.
    mark_of: IndexVec<NodeId, Option<MarkId>>,
    marks: IndexVec<MarkId, (NodeId, Mark)>,
}

impl<'r, 'p> TreeMaker<'r, 'p> {
    /// A maker for the rows of a report.
    #[must_use]
    pub fn new(report: &'r Report<'p>) -> Self {
        let rows = &report.rows;
        let (entries, nodes) = if report.children {
            let of_entry = || rows.of_entry.iter_enumerated();
            let entries = ByRow::of(rows.rows.len(), || {
                of_entry().filter_map(|(entry, row)| Some(((*row)?, entry)))
            });
            (entries, rows.trie.nodes.len())
        } else {
            (ByRow::default(), 0)
        };
        Self {
            report,
            entries,
            mark_of: index_vec![None; nodes],
            marks: IndexVec::new(),
        }
    }

    /// The tree of a row, given by its place in the table.
    pub fn tree(&mut self, table: &Table, index: usize) -> CallTree {
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
        let Some(id) = table.places[index]
            .1
            .filter(|_| is_relative || value >= threshold)
        else {
            return CallTree::default();
        };
        let start = self.start(id, row);
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
    fn start(&mut self, id: RowId, row: &Row) -> Vec<(FineId, Item, Weight)> {
        let rows = &self.report.rows;
        let trie = &rows.trie;
        if !self.report.children {
            let children = rows.row_roots[id].into_iter();
            let children = children.flat_map(|root| trie.children(root));
            return children.map(|node| self.entering(node, false)).collect();
        }
        self.mark(id);
        let root = rows.context_roots[row.context];
        let mut start = Vec::new();
        let mut next = self.get(root).child;
        while let Some(node) = next {
            start.push(self.entering(node, true));
            next = self.get(node).sibling;
        }
        for &(node, place) in rows.positions.of_row(id) {
            let weight = trie.nodes[node].total.without(self.get(node).not_again);
            start.push((
                trie.run(node)[place],
                Item {
                    node,
                    next: place.next(),
                    own_samples: false,
                },
                weight,
            ));
        }
        start
    }

    fn entering(&self, node: NodeId, own_samples: bool) -> (FineId, Item, Weight) {
        let item = Item {
            node,
            next: RunPlace::FIRST.next(),
            own_samples,
        };
        let first = self.report.rows.trie.run(node)[RunPlace::FIRST];
        (first, item, self.weight(item))
    }

    fn get(&self, node: NodeId) -> Mark {
        let at = self.mark_of.get(node).copied().flatten();
        let mark = at.and_then(|at| self.marks.get(at));
        let mark = mark.filter(|(of, _)| *of == node);
        mark.map_or(UNMARKED, |(_, mark)| *mark)
    }

    fn weight(&self, item: Item) -> Weight {
        let mark = self.get(item.node);
        if item.own_samples {
            return mark.whole;
        }
        self.report.rows.trie.nodes[item.node]
            .total
            .without(mark.not_again)
    }

    fn ending(&self, item: Item) -> Weight {
        let mark = self.get(item.node);
        if item.own_samples {
            return mark.whole_end;
        }
        self.report.rows.trie.nodes[item.node]
            .own
            .without(mark.not_again_end)
    }

    /// Notes along the chains of the row's own samples what they weigh.
    fn mark(&mut self, row: RowId) {
        self.marks.clear();
        let report = self.report;
        let trie = &report.rows.trie;
        for i in 0..self.entries.of_row(row).len() {
            let id = self.entries.of_row(row)[i];
            let Some(end) = trie.end_of[id] else {
                continue;
            };
            let entry = &report.profile[id];
            let weight = Weight {
                period: entry.period,
                count: entry.samples,
            };
            self.mark_whole(trie, end, weight);
            if let Some(first) = report.rows.own_place[id] {
                self.mark_not_again(trie, end, first, weight);
            }
        }
    }

    fn mark_whole(&mut self, trie: &Trie, end: NodeId, weight: Weight) {
        let mut node = end;
        while let Some(parent) = trie.nodes[node].parent {
            let mark = self.mark_mut(trie, node);
            mark.whole.add(weight);
            if node == end {
                mark.whole_end.add(weight);
            }
            node = parent;
        }
    }

    fn mark_not_again(&mut self, trie: &Trie, end: NodeId, first: NodeId, weight: Weight) {
        let mut next = Some(end);
        while let Some(node) = next {
            let mark = self.mark_mut(trie, node);
            mark.not_again.add(weight);
            if node == end {
                mark.not_again_end.add(weight);
            }
            if node == first {
                break;
            }
            next = trie.nodes[node].parent;
        }
    }

    /// The mark of a node; a new one is put on its parent's list.
    fn mark_mut(&mut self, trie: &Trie, node: NodeId) -> &mut Mark {
        let is_its = |at: &MarkId| self.marks.get(*at).is_some_and(|(of, _)| *of == node);
        if let Some(at) = self.mark_of[node].filter(is_its) {
            return &mut self.marks[at].1;
        }
        let parent = trie.nodes[node].parent;
        let sibling = parent.and_then(|parent| self.mark_mut(trie, parent).child.replace(node));
        let at = self.marks.push((
            node,
            Mark {
                sibling,
                ..UNMARKED
            },
        ));
        self.mark_of[node] = Some(at);
        &mut self.marks[at].1
    }
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
    fn build(&mut self, start: Vec<(FineId, Item, Weight)>) {
        let mut open: Vec<(TreeNodeId, Group)> = Vec::new();
        let (groups, sum) = self.group(start);
        (self.tree.top_period, self.tree.top_count) = (sum.period, sum.count);
        self.tree.top = self.add_nodes(None, groups, sum, &mut open);
        while let Some((node, group)) = open.pop() {
            let first = self.tree.frames.len();
            let (own, next) = self.follow(group);
            let (below, total) = self.group(next);
            let children = self.add_nodes(Some(node), below, total, &mut open);
            let node = &mut self.tree.nodes[node];
            node.frames = Part::new(first..self.tree.frames.len());
            node.children = children;
            (node.own_period, node.own_count) = (own.period, own.count);
            (node.children_period, node.children_count) = (total.period, total.count);
        }
    }

    /// Makes a node of each group that reaches the limit, in order.
    fn add_nodes(
        &mut self,
        parent: Option<TreeNodeId>,
        groups: Vec<Group>,
        sum: Weight,
        open: &mut Vec<(TreeNodeId, Group)>,
    ) -> Part<TreeNodeId> {
        let least = match self.limit {
            Limit::Absolute(period) => period,
            Limit::Relative(share) => (sum.period as f64 * share).ceil() as u64,
        };
        let mut kept: Vec<Group> = groups
            .into_iter()
            .filter(|group| group.weight.period >= least)
            .collect();
        kept.sort_by(|a, b| self.compare(a, b));
        let start = self.tree.lists.len();
        for group in kept {
            let node = self.tree.nodes.push(TreeNode {
                parent,
                ..TreeNode::default()
            });
            self.tree.lists.push(node);
            open.push((node, group));
        }
        Part::new(start..self.tree.lists.len())
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
    fn by_place(&self, a: FineId, b: FineId) -> Ordering {
        let report = self.maker.report;
        let place = |fine: FineId| {
            let frame = &report.profile[report.rows.fine.frame[fine]];
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
    fn follow(&mut self, group: Group) -> (Weight, Vec<(FineId, Item, Weight)>) {
        let report = self.maker.report;
        let (trie, fine) = (&report.rows.trie, &report.rows.fine);
        let mut items = group.items;
        self.tree.frames.push(self.first_frame(&items));
        loop {
            if let [item] = items.as_mut_slice() {
                let rest = trie.place(item.node, item.next)..trie.places(item.node).end;
                let rest = &report.chains.frames[rest].raw;
                self.tree.frames.extend_from_slice(rest);
                item.next = RunPlace(trie.nodes[item.node].len);
            }
            let (own, next) = self.step(&items);
            let Some(&(frame, ..)) = next.first() else {
                return (own, next);
            };
            let label = fine.label[frame];
            if own.count > 0 || next.iter().any(|(other, ..)| fine.label[*other] != label) {
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
            .min_by_key(|item| (trie.nodes[item.node].first, item.node))
            .expect("a group has items");
        report.chains.frames[trie.place(earliest.node, earliest.next).minus(1)]
    }

    /// What ends at the items, and the items one frame further on.
    fn step(&self, items: &[Item]) -> (Weight, Vec<(FineId, Item, Weight)>) {
        let maker = self.maker;
        let trie = &maker.report.rows.trie;
        let (mut own, mut next) = (Weight::default(), Vec::new());
        for &item in items {
            let run = trie.run(item.node);
            if let Some(frame) = run.get(item.next) {
                next.push((
                    *frame,
                    Item {
                        next: item.next.next(),
                        ..item
                    },
                    maker.weight(item),
                ));
                continue;
            }
            own.add(maker.ending(item));
            if item.own_samples {
                let mut below = maker.get(item.node).child;
                while let Some(child) = below {
                    next.push(maker.entering(child, true));
                    below = maker.get(child).sibling;
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
    fn group(&self, mut next: Vec<(FineId, Item, Weight)>) -> (Vec<Group>, Weight) {
        let fine = &self.maker.report.rows.fine;
        next.retain(|(.., weight)| weight.count > 0);
        next.sort_by_key(|(frame, ..)| (fine.label[*frame], *frame));
        let (mut groups, mut sum) = (Vec::<Group>::with_capacity(next.len()), Weight::default());
        for (frame, item, weight) in next {
            sum.add(weight);
            let label = fine.label[frame];
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
