//! Crediting callers: chains go into a trie, and each row that a chain passes gets its period once.

use super::super::options::CallGraphMode;
use super::super::share::threshold;
use super::super::trie::{NONE, Trie, Weight};
use super::{Fine, Input, Row, RowMaker};
use crate::profile::FrameId;

/// Places in the trie by row: node, and frame of its run.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    places: Vec<(u32, u32)>,
    /// By row: where its places begin.
    starts: Vec<u32>,
}

impl Positions {
    /// Puts (row, node, frame) together by row, for rows that are worth it.
    fn of(all: Vec<(u32, u32, u32)>, is_worth: &[bool]) -> Self {
        let wanted = || all.iter().filter(|(row, ..)| is_worth[*row as usize]);
        let mut starts = vec![0_u32; is_worth.len() + 2];
        wanted().for_each(|(row, ..)| starts[*row as usize + 2] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut places = vec![(0, 0); starts[is_worth.len() + 1] as usize];
        for (row, node, offset) in wanted() {
            let at = &mut starts[*row as usize + 1];
            places[*at as usize] = (*node, *offset);
            *at += 1;
        }
        Self { places, starts }
    }

    /// Places of one row, in the order of the walk.
    pub(crate) fn of_row(&self, row: u32) -> &[(u32, u32)] {
        &self.places[self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize]
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
        let fine = Fine::of(labels, children.then_some(&classes.caller.raw));
        let is_worth = self.worth_a_tree();
        let mut trie = Trie::new(chains.frames.len(), profile.entries.len());
        self.out.roots = if children {
            (0..self.out.contexts.len())
                .map(|_| trie.add_root())
                .collect()
        } else {
            let roots = is_worth.iter();
            roots
                .map(|is_worth| if *is_worth { trie.add_root() } else { NONE })
                .collect()
        };
        for (i, entry) in profile.entries.iter().enumerate() {
            let row = self.out.of_entry[i];
            if row == NONE {
                continue;
            }
            let chain = chains.range(entry.stack);
            let depth = &mut self.out.rows[row as usize].max_depth;
            *depth = (*depth).max(chain.len() as u32);
            let root = if children { self.context_of[i] } else { row };
            let root = self.out.roots[root as usize];
            if root == NONE {
                continue;
            }
            let weight = Weight {
                period: self.input.weight(i),
                count: entry.samples,
            };
            let frames = chains.frames[chain.clone()].iter();
            let numbers = frames.map(|frame| fine.of_frame[*frame]);
            trie.set_frames(chain.start, numbers);
            trie.insert(root, chain, i as u32, weight);
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
        self.out.own_place = vec![NONE; self.input.profile.entries.len()];
        for context in 0..self.out.roots.len() as u32 {
            walk.known.clear();
            self.walk_context(context, &trie, &fine, &mut walk);
        }
        self.out.trie = trie;
        self.out.fine = fine;
        self.out.positions = Positions::of(walk.positions, &self.worth_a_tree());
    }

    /// By row: whether it can have branches above the threshold. What it counts has to be complete.
    fn worth_a_tree(&self) -> Vec<bool> {
        let options = self.input.options;
        let is_relative = options.chains.call_graph.mode == CallGraphMode::Fractal;
        let least: Vec<u64> = self
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

    fn walk_context(&mut self, context: u32, trie: &Trie, fine: &Fine, walk: &mut Walk) {
        walk.open.push((self.out.roots[context as usize], false));
        while let Some((node, is_done)) = walk.open.pop() {
            if is_done {
                for frame in trie.run(node) {
                    if let Some((count, _)) = walk.class(fine.class[*frame as usize]) {
                        *count -= 1;
                    }
                }
                continue;
            }
            walk.open.push((node, true));
            for (offset, frame) in trie.run(node).iter().enumerate() {
                let class = fine.class[*frame as usize];
                let Some((count, place)) = walk.class(class) else {
                    continue;
                };
                *count += 1;
                if *count == 1 {
                    *place = node;
                    self.credit_position(
                        context,
                        class,
                        trie,
                        node,
                        offset as u32,
                        fine.frame[*frame as usize],
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
        context: u32,
        class: u32,
        trie: &Trie,
        node: u32,
        offset: u32,
        frame: FrameId,
        walk: &mut Walk,
    ) {
        let at = &trie.nodes[node as usize];
        let first = (at.first, at.depth + offset + 1);
        let thread = self.input.profile.entries[at.first as usize].thread;
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
            walk.positions.push((row, node, offset));
        }
        let row = &mut self.out.rows[row as usize];
        row.counts.children_period = row.counts.children_period.wrapping_add(at.total.period);
        row.max_depth = row.max_depth.max(at.len - offset + at.height);
        if first < row.first {
            row.first = first;
            row.thread = thread;
            row.frame = frame;
            row.is_caller = true;
        }
    }

    /// A sample whose leaf is nowhere in its chain still counts for its own row.
    fn credit_ending(&mut self, trie: &Trie, node: u32, walk: &Walk) {
        let mut entry = trie.nodes[node as usize].ending;
        while entry != NONE {
            let row = &mut self.out.rows[self.out.of_entry[entry as usize] as usize];
            let (count, place) = walk.on_path[row.class as usize];
            if count > 0 {
                self.out.own_place[entry as usize] = place;
            } else {
                let period = self.input.weight(entry as usize);
                row.counts.children_period = row.counts.children_period.wrapping_add(period);
            }
            entry = trie.next_ending[entry as usize];
        }
    }
}

/// State of the walk through one context's chains.
struct Walk {
    /// By class: how often it occurs on the way from the root, and the node of its first occurrence.
    on_path: Vec<(u32, u32)>,
    open: Vec<(u32, bool)>,
    known: Known,
    /// Row, node and frame wherever a row is credited.
    positions: Vec<(u32, u32, u32)>,
}

impl Walk {
    /// What is known of a class on the way; nothing of [`NONE`], which has no row.
    fn class(&mut self, class: u32) -> Option<&mut (u32, u32)> {
        self.on_path.get_mut(class as usize)
    }

    fn new(classes: usize) -> Self {
        Self {
            on_path: vec![(0, NONE); classes],
            open: Vec::new(),
            known: Known::new(classes),
            positions: Vec::new(),
        }
    }
}

/// Rows by class within one context; forgets all at once.
struct Known {
    rows: Vec<(u32, u32)>,
    generation: u32,
}

impl Known {
    fn new(classes: usize) -> Self {
        Self {
            rows: vec![(0, 0); classes],
            generation: 0,
        }
    }

    fn clear(&mut self) {
        self.generation += 1;
    }

    fn get(&self, class: u32) -> Option<u32> {
        let (generation, row) = self.rows[class as usize];
        (generation == self.generation).then_some(row)
    }

    fn set(&mut self, class: u32, row: u32) {
        self.rows[class as usize] = (self.generation, row);
    }
}
