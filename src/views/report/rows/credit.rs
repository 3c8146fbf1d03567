//! Crediting callers: chains go into a trie, and each row that a chain passes gets its period once.

use super::super::options::CallGraphMode;
use super::super::share::threshold;
use super::super::trie::{NodeId, RunPlace, Trie, Weight};
use super::{ClassId, ContextId, Fine, Input, Row, RowId, RowMaker};
use crate::ids::{Idx, IndexVec, index_vec, numbers};
use crate::profile::{EventId, FrameId};

/// Places in the trie by row: node, and frame of its run.
pub(crate) type Positions = ByRow<(NodeId, RunPlace)>;

/// Items that belong to rows, put together by row.
#[derive(Debug)]
pub(crate) struct ByRow<T> {
    items: IndexVec<ItemPlace, T>,
    /// By row: where its items end.
    ends: IndexVec<RowId, ItemPlace>,
}

numbers! {
    /// Index into [`ByRow::items`].
    struct ItemPlace(u32);
}

impl<T> Default for ByRow<T> {
    fn default() -> Self {
        Self {
            items: IndexVec::new(),
            ends: IndexVec::new(),
        }
    }
}

impl<T: Copy> ByRow<T> {
    /// Puts together what is given with the row it belongs to.
    pub(crate) fn of<I: Iterator<Item = (RowId, T)>>(rows: usize, all: impl Fn() -> I) -> Self {
        // Its number of items, then where the next of them belongs.
        let mut ends: IndexVec<RowId, ItemPlace> = index_vec![ItemPlace(0); rows];
        all().for_each(|(row, _)| ends[row].0 += 1);
        let mut so_far = 0;
        for end in &mut ends {
            so_far += std::mem::replace(&mut end.0, so_far);
        }
        // Any item will do to begin with.
        let mut items: IndexVec<ItemPlace, T> = all().map(|(_, item)| item).collect();
        for (row, item) in all() {
            let at = &mut ends[row];
            items[*at] = item;
            at.0 += 1;
        }
        Self { items, ends }
    }

    /// Items of one row, in the order in which they were given.
    pub(crate) fn of_row(&self, row: RowId) -> &[T] {
        let before = row.index().checked_sub(1);
        let start = before.map_or(ItemPlace(0), |before| self.ends[before]);
        &self.items[start..self.ends[row]].raw
    }
}

impl RowMaker<'_> {
    /// Puts chains into the trie: all of them under a root for each context when callers are credited, because a caller's
    /// tree is made of parts of all its context's chains; else under a root for each row, and only those of rows that can
    /// have branches to be shown.
    pub(super) fn plant(&mut self) {
        let Input {
            profile,
            chains,
            classes,
            labels,
            children,
            ..
        } = *self.input;
        let fine = Fine::of(labels, children.then_some(&classes.caller));
        let is_worth = self.worth_a_tree();
        let mut trie = Trie::new(chains.frames.len(), profile.entries.len());
        if children {
            let contexts = self.out.contexts.all();
            self.out.context_roots = contexts.map(|_| trie.add_root()).collect();
        } else {
            let mut root = |has_tree: &bool| has_tree.then(|| trie.add_root());
            self.out.row_roots = is_worth.iter().map(&mut root).collect();
        }
        for (id, entry) in profile.entries.iter_enumerated() {
            let Some(row) = self.out.of_entry[id] else {
                continue;
            };
            let chain = chains.range(entry.stack);
            let depth = &mut self.out.rows[row].max_depth;
            let frames = chains.of_stack(entry.stack);
            *depth = (*depth).max(frames.len() as u32);
            let root = if children {
                self.context_of[id].map(|context| self.out.context_roots[context])
            } else {
                self.out.row_roots[row]
            };
            let Some(root) = root else {
                continue;
            };
            let weight = Weight {
                period: self.input.weight(id),
                count: entry.samples,
            };
            let numbers = frames.iter().map(|frame| fine.of_frame[*frame]);
            trie.set_frames(chain.start, numbers);
            trie.insert(root, chain, id, weight);
        }
        trie.finish();
        self.out.fine = fine;
        self.out.trie = trie;
    }

    /// Credits each row once with every chain that passes it.
    pub(super) fn credit_callers(&mut self) {
        let trie = std::mem::take(&mut self.out.trie);
        let fine = std::mem::take(&mut self.out.fine);
        let mut walk = Walk::new(self.input.classes.all.len());
        self.out.own_place = index_vec![None; self.input.profile.entries.len()];
        for context in self.out.context_roots.indices() {
            walk.known.clear();
            self.walk_context(context, &trie, &fine, &mut walk);
        }
        self.out.trie = trie;
        self.out.fine = fine;
        let is_worth = self.worth_a_tree();
        self.out.positions = Positions::of(is_worth.len(), || {
            let all = walk.positions.iter().copied();
            all.filter(|(row, _)| is_worth[*row])
        });
    }

    /// By row: whether it can have branches above the threshold. What it counts has to be complete.
    fn worth_a_tree(&self) -> IndexVec<RowId, bool> {
        let options = self.input.options;
        let is_relative = options.chains.call_graph.mode == CallGraphMode::Fractal;
        let least: IndexVec<EventId, u64> = self
            .out
            .totals
            .iter()
            .map(|totals| {
                let base = if options.rows.relative {
                    &totals.sample_filtered
                } else {
                    &totals.all
                };
                threshold(base.self_period, options.chains.call_graph.threshold)
            })
            .collect();
        let event = |row: &Row| self.out.contexts.event(row.context);
        let value = |row: &Row| {
            if self.input.children {
                row.counts.children_period
            } else {
                row.counts.self_period
            }
        };
        let is_worth = |row: &Row| is_relative || value(row) >= least[event(row)];
        self.out.rows.iter().map(is_worth).collect()
    }

    fn walk_context(&mut self, context: ContextId, trie: &Trie, fine: &Fine, walk: &mut Walk) {
        walk.open.push((self.out.context_roots[context], false));
        while let Some((node, is_done)) = walk.open.pop() {
            if is_done {
                for frame in trie.run(node) {
                    if let Some(class) = fine.class[*frame] {
                        walk.on_path[class].0 -= 1;
                    }
                }
                continue;
            }
            walk.open.push((node, true));
            for (offset, frame) in (0..).map(RunPlace).zip(trie.run(node)) {
                let Some(class) = fine.class[*frame] else {
                    continue;
                };
                let (count, place) = &mut walk.on_path[class];
                *count += 1;
                if *count == 1 {
                    *place = Some(node);
                    self.credit_position(
                        context,
                        class,
                        trie,
                        node,
                        offset,
                        fine.frame[*frame],
                        walk,
                    );
                }
            }
            self.credit_ending(trie, node, walk);
            walk.open
                .extend(trie.children(node).map(|child| (child, false)));
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one place in the walk, split off to keep the walk readable"
    )]
    fn credit_position(
        &mut self,
        context: ContextId,
        class: ClassId,
        trie: &Trie,
        node: NodeId,
        offset: RunPlace,
        frame: FrameId,
        walk: &mut Walk,
    ) {
        let at = &trie.nodes[node];
        let first = (at.first, at.depth + offset.0 + 1);
        let thread = self.input.profile[at.first].thread;
        let row = match walk.known.get(class) {
            Some(row) => row,
            None => {
                let row = self.row(context, class, first, thread, frame);
                walk.known.set(class, row);
                row
            }
        };
        let is_shared = self.input.with_trees;
        if is_shared {
            walk.positions.push((row, (node, offset)));
        }
        let row = &mut self.out.rows[row];
        row.counts.children_period = row.counts.children_period.wrapping_add(at.total.period);
        row.max_depth = row.max_depth.max(at.len - offset.0 + at.height);
        if first < row.first {
            row.first = first;
            row.thread = thread;
            row.frame = frame;
            row.is_caller = true;
        }
    }

    /// A sample whose leaf is nowhere in its chain still counts for its own row.
    fn credit_ending(&mut self, trie: &Trie, node: NodeId, walk: &Walk) {
        let mut next = trie.nodes[node].ending;
        while let Some(entry) = next {
            next = trie.next_ending[entry];
            let Some(row) = self.out.of_entry[entry] else {
                continue;
            };
            let row = &mut self.out.rows[row];
            let (count, place) = walk.on_path[row.class];
            if count > 0 {
                self.out.own_place[entry] = place;
            } else {
                let period = self.input.weight(entry);
                row.counts.children_period = row.counts.children_period.wrapping_add(period);
            }
        }
    }
}

/// State of the walk through one context's chains.
struct Walk {
    /// By class: how often it occurs on the way from the root, and the node of its first occurrence.
    on_path: IndexVec<ClassId, (u32, Option<NodeId>)>,
    open: Vec<(NodeId, bool)>,
    known: Known,
    /// Row, node and frame wherever a row is credited.
    positions: Vec<(RowId, (NodeId, RunPlace))>,
}

impl Walk {
    fn new(classes: usize) -> Self {
        Self {
            on_path: index_vec![(0, None); classes],
            open: Vec::new(),
            known: Known::new(classes),
            positions: Vec::new(),
        }
    }
}

/// Rows by class within one context; forgets all at once.
struct Known {
    /// By class: the generation in which it was told, and the row.
    rows: IndexVec<ClassId, (u32, Option<RowId>)>,
    generation: u32,
}

impl Known {
    fn new(classes: usize) -> Self {
        Self {
            rows: index_vec![(0, None); classes],
            generation: 0,
        }
    }

    fn clear(&mut self) {
        self.generation += 1;
    }

    fn get(&self, class: ClassId) -> Option<RowId> {
        let (generation, row) = self.rows[class];
        row.filter(|_| generation == self.generation)
    }

    fn set(&mut self, class: ClassId, row: RowId) {
        self.rows[class] = (self.generation, Some(row));
    }
}
