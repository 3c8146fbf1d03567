//! From entries to rows: who shares a row, what it is credited with, in which order rows stand.
//!
//! In: the profile's entries, their chains and classes. Out: the [`Row`]s of each event, in the order perf would
//! visit them before its final sort. Follows `hist_iter_cumulative` and `hists__findnew_entry` of perf (`util/hist.c`): the leaf's row
//! gets the period, and each row that the chain passes gets it once as `children`.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::chains::Chains;
use super::classes::{Class, Classes, SymbolPart, SymbolRank, ranks};
use super::columns::Columns;
use super::keys::Key;
use super::options::{CallGraphMode, ChainOrder, ReportOptions};
use super::order::red_black_order;
use super::tree::threshold;
use super::trie::{NONE, Trie, Weight};
use crate::intern::{ItemIndex, byte_ranks};
use crate::profile::CpuMode;
use crate::profile::{Entry, Frame, FrameId, Profile, SymbolId, ThreadId};
use crate::run_state::RunState;

/// A line of the report.
#[derive(Debug, Clone)]
pub struct Row {
    /// Index into [`Rows::contexts`].
    pub(crate) context: u32,
    /// Index into [`Classes::all`].
    pub(crate) class: u32,
    /// Entry that the row was first made for, and the place of its frame: 0 is the sample's own ip, `n` the `n`-th
    /// frame of its chain.
    pub(crate) first: (u32, u32),
    /// Thread of that entry.
    pub thread: ThreadId,
    /// Frame whose name, address and mode are printed.
    pub frame: FrameId,
    /// Whether that frame was a caller; its address is then printed as it is.
    pub is_caller: bool,
    /// Whether a filter hides the row.
    pub(crate) filtered: bool,
    /// Frames of the longest chain credited to the row.
    pub(crate) max_depth: u32,
    /// What was counted.
    pub counts: Counts,
}

/// What is counted for a row, a group member or a whole event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Period of samples at the row itself.
    pub self_period: u64,
    /// Period of samples at or below it.
    pub children_period: u64,
    /// Samples at the row itself.
    pub samples: u64,
    /// Part of [`Self::self_period`] in kernel, user, guest kernel and guest user mode.
    pub by_mode: [u64; 4],
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.self_period = self.self_period.wrapping_add(other.self_period);
        self.children_period = self.children_period.wrapping_add(other.children_period);
        self.samples += other.samples;
        for (sum, part) in self.by_mode.iter_mut().zip(other.by_mode) {
            *sum = sum.wrapping_add(part);
        }
    }
}

/// The parts of a row's identity that do not come from a frame; unused parts are constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    pub(crate) event: u16,
    pub(crate) filtered: bool,
    /// The rest, equal for equal values; compared between events of a group.
    pub(crate) keys: ContextKeys,
}

/// See [`Context`]. Ranks are in byte order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ContextKeys {
    pub(crate) comm: u32,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: i32,
    pub(crate) socket: i32,
    pub(crate) time: u64,
    pub(crate) cgroup: u32,
    pub(crate) trace: u32,
    pub(crate) state: RunState,
    /// Rank of the parent's name, [`NONE`] if there is none.
    pub(crate) parent: u32,
}

/// Totals of one event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Sum of all rows' own counts.
    pub all: Counts,
    /// The same for what the filters on samples leave.
    pub sample_filtered: Counts,
    /// The same for rows that are shown.
    pub row_filtered: Counts,
}

impl Totals {
    /// Those of samples that are not in the table any more.
    fn with_filtered(self_period: u64, samples: u64) -> Self {
        let all = Counts {
            self_period,
            samples,
            ..Counts::default()
        };
        Self {
            all,
            ..Self::default()
        }
    }
}

/// Rows of all events, not yet ordered.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) contexts: Vec<Context>,
    pub(crate) rows: Vec<Row>,
    /// Row of each entry's leaf; [`NONE`] for dropped entries.
    pub(crate) of_entry: Vec<u32>,
    /// Totals by event.
    pub(crate) totals: Vec<Totals>,
    /// Where rows occur as callers.
    pub(crate) positions: Positions,
    /// By entry: the node in which its leaf's row first occurs in its own chain; [`NONE`] if it does not. Only when
    /// callers are credited.
    pub(crate) own_place: Vec<u32>,
    /// The chains, when callers are credited (a root for each context) or trees are wanted (a root for each row).
    pub(crate) trie: Trie,
    /// By root order: its node; [`NONE`] for rows without a tree.
    pub(crate) roots: Vec<u32>,
    /// Dense frame numbers used in the trie.
    pub(crate) fine: Fine,
}

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

/// Numbers that are equal for frames that neither a tree nor a row tells apart.
#[derive(Debug, Default)]
pub(crate) struct Fine {
    /// By frame.
    of_frame: Vec<u32>,
    /// By number: what a tree tells apart.
    pub(crate) label: Vec<u32>,
    /// By number: what rows tell apart, as callers.
    pub(crate) class: Vec<u32>,
    /// By number: a frame that has it.
    pub(crate) frame: Vec<FrameId>,
    /// Whether several numbers share a label, so that branches of a node may have to be merged.
    pub(crate) is_finer_than_labels: bool,
}

impl Fine {
    /// `labels` count from 0 in the order of the frames; `classes` is empty when callers have no rows.
    pub(crate) fn of(labels: &[u32], classes: &[u32]) -> Self {
        let mut fine = Self::default();
        if classes.is_empty() {
            for (frame, &label) in (0..).zip(labels) {
                if label as usize == fine.frame.len() {
                    fine.label.push(label);
                    fine.frame.push(FrameId(frame));
                }
            }
            fine.class = vec![0; fine.label.len()];
            fine.of_frame = labels.to_vec();
            return fine;
        }
        fine.of_frame.reserve_exact(labels.len());
        let mut ids = ItemIndex::with_capacity(labels.len());
        let mut seen_labels = vec![NONE; labels.len()];
        for (frame, (&label, &class)) in (0..).zip(labels.iter().zip(classes)) {
            let new = fine.label.len() as u32;
            let of = |id: u32| (fine.label[id as usize], fine.class[id as usize]);
            let hash = |of: (u32, u32)| FxBuildHasher.hash_one(of);
            let own = (label, class);
            let known = ids.find_or_add(hash(own), new, |id| of(id) == own, |id| hash(of(id)));
            if known.is_none() {
                fine.label.push(label);
                fine.class.push(class);
                fine.frame.push(FrameId(frame));
            }
            let id = known.unwrap_or(new);
            let seen = &mut seen_labels[label as usize];
            if *seen == NONE {
                *seen = id;
            }
            fine.is_finer_than_labels |= *seen != id;
            fine.of_frame.push(id);
        }
        fine
    }
}

/// What making rows needs to know.
pub(crate) struct Input<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) options: &'a ReportOptions,
    pub(crate) columns: &'a Columns,
    pub(crate) classes: &'a Classes,
    pub(crate) chains: &'a Chains,
    /// Credit callers.
    pub(crate) children: bool,
    /// Trees will be printed.
    pub(crate) with_trees: bool,
    /// What trees tell apart, by frame; empty without trees and callers.
    pub(crate) labels: &'a [u32],
}

/// Makes the rows of all events.
pub(crate) fn rows(input: &Input<'_>) -> Rows {
    let mut maker = Maker::new(input);
    for (i, entry) in input.profile.entries.iter().enumerate() {
        maker.add_entry(i as u32, entry);
    }
    if input.children || input.with_trees {
        maker.plant();
    }
    if input.children {
        maker.credit_callers();
    }
    maker.finish()
}

struct Maker<'a> {
    input: &'a Input<'a>,
    comm_ranks: Vec<u32>,
    symbol_ranks: Vec<u32>,
    /// Of all strings, for payloads; empty when they are not shown.
    text_ranks: Vec<u32>,
    filter: Filter<'a>,
    context_ids: FxHashMap<Context, u32>,
    /// By entry.
    context_of: Vec<u32>,
    row_ids: FxHashMap<u64, u32>,
    out: Rows,
}

impl<'a> Maker<'a> {
    fn new(input: &'a Input<'a>) -> Self {
        let profile = input.profile;
        let comms: Vec<&str> = profile.comms.iter().map(String::as_str).collect();
        let symbol_ranks = if input.columns.has_key(Key::Parent) || input.options.exclude_other {
            ranks(
                &profile
                    .symbols
                    .iter()
                    .map(|symbol| symbol.name.as_str())
                    .collect::<Vec<_>>(),
            )
        } else {
            Vec::new()
        };
        let text_ranks = if input.columns.has_key(Key::Trace) {
            let texts: Vec<&str> = profile.strings.iter().map(String::as_str).collect();
            ranks(&texts)
        } else {
            Vec::new()
        };
        // Shares are those of everything, also where filters took samples away.
        let events = profile.events.iter();
        let totals = events
            .map(|event| Totals::with_filtered(event.filtered_period, event.filtered_samples));
        let totals = totals.collect();
        Self {
            input,
            comm_ranks: ranks(&comms),
            symbol_ranks,
            text_ranks,
            filter: Filter::new(profile, input.options),
            context_ids: FxHashMap::default(),
            context_of: Vec::with_capacity(profile.entries.len()),
            row_ids: FxHashMap::default(),
            out: Rows {
                totals,
                ..Rows::default()
            },
        }
    }

    fn add_entry(&mut self, index: u32, entry: &Entry) {
        let Input {
            profile,
            options,
            chains,
            classes,
            ..
        } = *self.input;
        let is_dropped = options.hide_unresolved && profile[entry.leaf].symbol.is_none();
        if is_dropped {
            self.out.of_entry.push(NONE);
            self.context_of.push(NONE);
            return;
        }
        let instead = if self.has_chains() {
            chains.leaf(entry.stack)
        } else {
            None
        };
        let leaf = instead.unwrap_or(entry.leaf);
        let context = self.context(entry, leaf);
        let filtered = self.out.contexts[context as usize].filtered;
        let class = classes.leaf[leaf.0 as usize];
        let row = self.row(context, class, (index, 0), entry.thread, leaf);
        let counts = Counts {
            self_period: entry.period,
            children_period: 0,
            samples: entry.samples,
            by_mode: by_mode(profile[entry.leaf].mode, entry.period),
        };
        self.out.rows[row as usize].counts.add(&counts);
        let totals = &mut self.out.totals[usize::from(entry.event.0)];
        totals.all.add(&counts);
        if !filtered {
            totals.sample_filtered.add(&counts);
        }
        self.out.of_entry.push(row);
        self.context_of.push(context);
    }

    fn has_chains(&self) -> bool {
        self.input.children || self.input.with_trees || !self.symbol_ranks.is_empty()
    }

    fn context(&mut self, entry: &Entry, leaf: FrameId) -> u32 {
        let keys = self.context_keys(entry);
        let is_other = self.input.options.exclude_other && keys.parent == NONE;
        let filtered = is_other || self.filter.hides(entry, leaf);
        let context = Context {
            event: entry.event.0,
            filtered,
            keys,
        };
        *self.context_ids.entry(context).or_insert_with(|| {
            self.out.contexts.push(context);
            (self.out.contexts.len() - 1) as u32
        })
    }

    fn context_keys(&self, entry: &Entry) -> ContextKeys {
        let Input {
            profile,
            columns,
            chains,
            ..
        } = *self.input;
        let thread = &profile[entry.thread];
        let mut keys = ContextKeys::default();
        for key in &columns.order {
            match key {
                Key::Comm => keys.comm = self.comm_ranks[entry.comm.0 as usize],
                Key::Pid | Key::Tid => keys.tid = thread.tid,
                Key::Tgid => keys.pid = thread.pid,
                Key::Cpu => keys.cpu = entry.cpu,
                Key::Socket => keys.socket = profile.recording.socket(entry.cpu),
                Key::Time => keys.time = entry.time,
                Key::State => keys.state = entry.state,
                Key::Cgroup => keys.cgroup = entry.cgroup.map_or(NONE, |name| name.0),
                Key::Trace => {
                    keys.trace = entry
                        .trace
                        .map_or(NONE, |text| self.text_ranks[text.0 as usize]);
                }
                _ => {}
            }
        }
        if !self.symbol_ranks.is_empty() {
            let symbol = chains
                .parent(entry.stack)
                .and_then(|frame| profile[frame].symbol);
            keys.parent = symbol.map_or(NONE, |symbol| self.symbol_ranks[symbol.0 as usize]);
        }
        keys
    }

    fn row(
        &mut self,
        context: u32,
        class: u32,
        first: (u32, u32),
        thread: ThreadId,
        frame: FrameId,
    ) -> u32 {
        let key = u64::from(context) << 32 | u64::from(class);
        *self.row_ids.entry(key).or_insert_with(|| {
            self.out.rows.push(Row {
                context,
                class,
                first,
                thread,
                frame,
                is_caller: first.1 > 0,
                filtered: false,
                max_depth: 0,
                counts: Counts::default(),
            });
            (self.out.rows.len() - 1) as u32
        })
    }

    /// Puts chains into the trie: all of them under a root for each context when callers are credited, because a caller's
    /// tree is made of parts of all its context's chains; else under a root for each row, and only those of rows that can
    /// have branches to be shown.
    fn plant(&mut self) {
        let Input {
            profile,
            chains,
            classes,
            labels,
            children,
            ..
        } = *self.input;
        let fine = Fine::of(labels, if children { &classes.caller } else { &[] });
        let is_worth = self.worth_a_tree();
        let mut trie = Trie::new(chains.frames.len(), profile.entries.len());
        self.out.roots = if children {
            self.out.contexts.iter().map(|_| trie.add_root()).collect()
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
                period: entry.period,
                count: entry.samples,
            };
            let frames = chains.frames[chain.clone()].iter();
            let numbers = frames.map(|frame| fine.of_frame[frame.0 as usize]);
            trie.set_frames(chain.start, numbers);
            trie.insert(root, chain, i as u32, weight);
        }
        trie.finish();
        self.out.fine = fine;
        self.out.trie = trie;
    }

    /// Credits each row once with every chain that passes it.
    fn credit_callers(&mut self) {
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
        let is_relative = options.call_graph.mode == CallGraphMode::Fractal;
        let least: Vec<u64> = self
            .out
            .totals
            .iter()
            .map(|totals| {
                let base = if options.relative {
                    &totals.sample_filtered
                } else {
                    &totals.all
                };
                threshold(base.self_period, options.call_graph.threshold)
            })
            .collect();
        let event = |row: &Row| usize::from(self.out.contexts[row.context as usize].event);
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
                let period = self.input.profile.entries[entry as usize].period;
                row.counts.children_period = row.counts.children_period.wrapping_add(period);
            }
            entry = trie.next_ending[entry as usize];
        }
    }

    fn finish(mut self) -> Rows {
        let Input {
            profile,
            options,
            chains,
            ..
        } = *self.input;
        for row in &mut self.out.rows {
            let context = &self.out.contexts[row.context as usize];
            if row.is_caller {
                // The frame of the entry that came first, not just one that falls into the same row.
                let entry = &profile.entries[row.first.0 as usize];
                row.frame =
                    chains.frames[chains.range(entry.stack).start + row.first.1 as usize - 1];
            }
            row.filtered =
                context.filtered || hidden_by_name(profile, options, &profile[row.frame]);
            if !row.filtered {
                self.out.totals[context.event as usize]
                    .row_filtered
                    .add(&row.counts);
            }
        }
        self.out
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

fn by_mode(mode: CpuMode, period: u64) -> [u64; 4] {
    let mut parts = [0; 4];
    match mode {
        CpuMode::Kernel => parts[0] = period,
        CpuMode::User => parts[1] = period,
        CpuMode::GuestKernel => parts[2] = period,
        CpuMode::GuestUser => parts[3] = period,
        CpuMode::Unknown | CpuMode::Hypervisor => {}
    }
    parts
}

/// `--symbol-filter` looks at rows, not at samples.
fn hidden_by_name(profile: &Profile, options: &ReportOptions, frame: &Frame) -> bool {
    let Some(part) = &options.symbol_filter else {
        return false;
    };
    !frame
        .symbol
        .is_some_and(|symbol| profile[symbol].name.contains(part.as_str()))
}

/// The filters that look at a sample's leaf and thread.
struct Filter<'a> {
    profile: &'a Profile,
    options: &'a ReportOptions,
    comms: Option<Vec<bool>>,
    objects: Option<Vec<bool>>,
}

impl<'a> Filter<'a> {
    fn new(profile: &'a Profile, options: &'a ReportOptions) -> Self {
        let comms = options
            .comms
            .as_ref()
            .map(|list| profile.comms.iter().map(|c| list.contains(c)).collect());
        let objects = options.dsos.as_ref().map(|list| {
            profile
                .objects
                .iter()
                .map(|o| list.contains(&o.short_name) || list.contains(&o.long_name))
                .collect()
        });
        Self {
            profile,
            options,
            comms,
            objects,
        }
    }

    fn hides(&self, entry: &Entry, leaf: FrameId) -> bool {
        let thread = &self.profile[entry.thread];
        let frame = &self.profile[leaf];
        let is_out = |list: &Option<Vec<u32>>, id: u32| {
            list.as_ref().is_some_and(|list| !list.contains(&id))
        };
        let socket = self.options.socket;
        socket.is_some_and(|wanted| self.profile.recording.socket(entry.cpu) != wanted)
            || self
                .comms
                .as_ref()
                .is_some_and(|comms| !comms[entry.comm.0 as usize])
            || is_out(&self.options.pids, thread.pid)
            || is_out(&self.options.tids, thread.tid)
            || self.objects.as_ref().is_some_and(|objects| {
                !frame
                    .object
                    .is_some_and(|object| objects[object.0 as usize])
            })
            || self
                .options
                .symbols
                .as_ref()
                .is_some_and(|list| !self.is_listed(list, frame))
    }

    /// `-S` takes names, and addresses of a symbol's start or of a sample.
    fn is_listed(&self, list: &[String], frame: &Frame) -> bool {
        let bias = frame.address.wrapping_sub(frame.object_address);
        let symbol = frame.symbol.map(|symbol| &self.profile[symbol]);
        let is_at = |word: &String, address: u64| {
            let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
            digits.is_some_and(|digits| u64::from_str_radix(digits, 16) == Ok(address))
        };
        list.iter().any(|word| {
            symbol.is_some_and(|s| s.name == *word || is_at(word, s.start.wrapping_add(bias)))
                || is_at(word, frame.address)
        })
    }
}

/// Puts rows into perf's order. `members` gives the counts of a row's group members behind the leader.
pub(crate) fn ordered<'r>(
    rows: &[Row],
    view: &Ordered<'_>,
    members: impl Fn(u32) -> &'r [Counts],
) -> Vec<u32> {
    let is_tree = view.children && view.has_trees;
    let symbols = if is_tree || view.columns.has_key(Key::SymbolSize) {
        SymbolNumbers::of(rows, view)
    } else {
        SymbolNumbers::default()
    };
    let numbers = Numbers::for_print(rows, view, &symbols, &members);
    if !is_tree {
        return numbers.order(rows, view);
    }
    let by_key = Numbers::for_samples(rows, view, &symbols).order(rows, view);
    let order = if numbers.children_at == Some(0) {
        let fronts = Front::of_rows(&by_key, rows, &numbers, view);
        red_black_order(by_key.len(), |a, b| {
            fronts[a as usize].cmp(&fronts[b as usize]) == Ordering::Less
        })
    } else {
        red_black_order(by_key.len(), |a, b| {
            let (a, b) = (by_key[a as usize], by_key[b as usize]);
            numbers.compare(a, b, rows, view) == Ordering::Less
        })
    };
    order.into_iter().map(|i| by_key[i as usize]).collect()
}

/// What decides between rows when callers are credited and come first among the columns; small, as rows are compared
/// with some twenty others from all over the table.
struct Front {
    children: u64,
    thread: u32,
    /// The order of depths, whichever end of the chains comes first.
    depth: u32,
    /// Rank by the other columns.
    rest: u32,
}

impl Front {
    /// Those of the rows that `order` lists.
    fn of_rows(order: &[u32], rows: &[Row], numbers: &Numbers, view: &Ordered<'_>) -> Vec<Self> {
        let ranks = numbers.ranks_of_rest();
        let of = |number: &u32| {
            let row = &rows[*number as usize];
            Self {
                children: !row.counts.children_period,
                thread: row.thread.0,
                depth: match view.order {
                    ChainOrder::Caller => !row.max_depth,
                    ChainOrder::Callee => row.max_depth,
                },
                rest: ranks[*number as usize],
            }
        };
        order.iter().map(of).collect()
    }

    /// By depth only within a thread, see [`Ordered::by_depth`].
    fn cmp(&self, other: &Self) -> Ordering {
        let by_depth = || {
            if self.thread == other.thread {
                self.depth.cmp(&other.depth)
            } else {
                Ordering::Equal
            }
        };
        (self.children.cmp(&other.children))
            .then_with(by_depth)
            .then(self.rest.cmp(&other.rest))
    }
}

/// What decides the order of rows, as numbers side by side: following rows to their frames, symbols and names for each of a
/// million comparisons costs several times as much.
struct Numbers {
    all: Vec<u64>,
    /// Numbers of one row.
    width: usize,
    /// The one that holds what callers are credited with: rows of one thread that are equal so far go by depth.
    children_at: Option<usize>,
}

impl Numbers {
    /// Ascending, as perf compares samples: see [`Ordered::by_key`].
    fn for_samples(rows: &[Row], view: &Ordered<'_>, symbols: &SymbolNumbers) -> Self {
        let mut all = Vec::with_capacity(rows.len() * view.columns.order.len());
        for (number, row) in rows.iter().enumerate() {
            let keys = view.columns.order.iter();
            all.extend(keys.map(|key| view.number(*key, row, symbols.of_row(number))));
        }
        Self {
            all,
            width: view.columns.order.len(),
            children_at: None,
        }
    }

    /// In the order of printing: counters descending, in groups the leader's and then the members' in turn, symbols by
    /// name.
    fn for_print<'r>(
        rows: &[Row],
        view: &Ordered<'_>,
        symbols: &SymbolNumbers,
        members: &impl Fn(u32) -> &'r [Counts],
    ) -> Self {
        let order = &view.columns.order;
        let names = if order.contains(&Key::Symbol) {
            name_ranks(rows, view)
        } else {
            Vec::new()
        };
        let mut numbers = Self {
            all: Vec::new(),
            width: 0,
            children_at: None,
        };
        for (number, row) in (0..).zip(rows) {
            for key in order {
                let all = &mut numbers.all;
                match *key {
                    Key::OverheadChildren => {
                        if number == 0 {
                            numbers.children_at = Some(all.len());
                        }
                        all.push(!row.counts.children_period);
                    }
                    key if key.is_counter() => {
                        let members = members(number);
                        let first = view.sort_index.and_then(|i| members.get(i.checked_sub(1)?));
                        let first = first.unwrap_or(&row.counts);
                        let counts = std::iter::once(first).chain(members);
                        all.extend(counts.map(|counts| !counter(key, counts)));
                    }
                    Key::Symbol => all.push(names[number as usize].into()),
                    key => all.push(view.number(key, row, symbols.of_row(number as usize))),
                }
            }
            if number == 0 {
                numbers.width = numbers.all.len();
                numbers.all.reserve_exact(numbers.width * (rows.len() - 1));
            }
        }
        numbers
    }

    fn of(&self, row: u32) -> &[u64] {
        &self.all[row as usize * self.width..][..self.width]
    }

    /// The rows in the order of their numbers; those with equal ones as perf compares samples, and then by number.
    fn order(&self, rows: &[Row], view: &Ordered<'_>) -> Vec<u32> {
        let as_samples = |a: &u32, b: &u32| {
            let (x, y) = (&rows[*a as usize], &rows[*b as usize]);
            view.as_samples(x, y).then(a.cmp(b))
        };
        let Some((mut packed, bits)) = self.packed(rows.len()) else {
            let mut order: Vec<u32> = (0..rows.len() as u32).collect();
            order.sort_unstable_by(|a, b| {
                (self.of(*a).cmp(self.of(*b))).then_with(|| as_samples(a, b))
            });
            return order;
        };
        packed.sort_unstable();
        let number = |packed: &u128| (packed & ((1 << bits) - 1)) as u32;
        let mut order: Vec<u32> = packed.iter().map(number).collect();
        let mut start = 0;
        for same in packed.chunk_by(|a, b| a >> bits == b >> bits) {
            if same.len() > 1 {
                order[start..start + same.len()].sort_unstable_by(as_samples);
            }
            start += same.len();
        }
        order
    }

    /// All numbers of each row in one, with the row's own in the last bits, and how many bits those are. There is room in
    /// it for those of most tables, and one comparison then takes the place of many.
    fn packed(&self, rows: usize) -> Option<(Vec<u128>, u32)> {
        let bits_of = |most: u64| u64::BITS - most.leading_zeros();
        let mut ranges = vec![(u64::MAX, 0); self.width];
        for numbers in self.all.chunks_exact(self.width.max(1)) {
            for ((least, most), number) in ranges.iter_mut().zip(numbers) {
                (*least, *most) = ((*least).min(*number), (*most).max(*number));
            }
        }
        let places: Vec<(u64, u32)> = ranges
            .iter()
            .map(|(least, most)| (*least, bits_of(most.saturating_sub(*least))))
            .collect();
        let bits = bits_of(rows as u64);
        if places.iter().map(|(_, bits)| bits).sum::<u32>() + bits > u128::BITS {
            return None;
        }
        let pack = |row: usize| {
            let numbers = self.of(row as u32).iter().zip(&places);
            let packed = numbers.fold(0_u128, |so_far, (number, (least, bits))| {
                so_far << bits | u128::from(number - least)
            });
            packed << bits | row as u128
        };
        Some(((0..rows).map(pack).collect(), bits))
    }

    /// Rank of each row by all numbers but the first; equal rows have one rank.
    fn ranks_of_rest(&self) -> Vec<u32> {
        let rest = |row: u32| &self.of(row)[1..];
        let rows = self.all.len() / self.width.max(1);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_unstable_by(|a, b| rest(*a).cmp(rest(*b)));
        let mut ranks = vec![0; rows];
        let mut rank = 0;
        for (i, row) in order.iter().enumerate() {
            rank += u32::from(i > 0 && rest(order[i - 1]) != rest(*row));
            ranks[*row as usize] = rank;
        }
        ranks
    }

    fn compare(&self, a: u32, b: u32, rows: &[Row], view: &Ordered<'_>) -> Ordering {
        let (x, y) = (self.of(a), self.of(b));
        let Some(at) = self.children_at else {
            return x.cmp(y);
        };
        let depth = || view.by_depth(&rows[a as usize], &rows[b as usize]);
        let so_far = x[..=at].cmp(&y[..=at]).then_with(depth);
        so_far.then_with(|| x[at + 1..].cmp(&y[at + 1..]))
    }
}

/// By row: its place in the order of symbols ([`Ordered::by_key`]).
#[derive(Default)]
struct SymbolNumbers(Vec<u32>);

impl SymbolNumbers {
    fn of(rows: &[Row], view: &Ordered<'_>) -> Self {
        let symbol = |row: &Row| symbol_order(&view.classes.all[row.class as usize]);
        let mut order: Vec<(_, u32)> = rows.iter().map(symbol).zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; rows.len()];
        let mut rank = 0;
        for (i, (symbol, row)) in order.iter().enumerate() {
            rank += u32::from(i > 0 && order[i - 1].0 != *symbol);
            ranks[*row as usize] = rank;
        }
        Self(ranks)
    }

    fn of_row(&self, row: usize) -> u32 {
        self.0.get(row).copied().unwrap_or(0)
    }
}

/// Unresolved symbols last, by address; others by DSO before all else.
fn symbol_order(class: &Class) -> (bool, u32, SymbolRank) {
    let unresolved = matches!(class.symbol, SymbolPart::Address(_));
    let dso = if unresolved { 0 } else { class.dso };
    (unresolved, dso, class.symbol.rank())
}

/// By row: rank of its symbol's name in byte order; equal names have one rank, and rows without symbol are last.
fn name_ranks(rows: &[Row], view: &Ordered<'_>) -> Vec<u32> {
    let profile = view.profile;
    let symbol = |row: &Row| profile[row.frame].symbol;
    let named: Vec<(usize, SymbolId)> = rows
        .iter()
        .enumerate()
        .filter_map(|(number, row)| Some((number, symbol(row)?)))
        .collect();
    let name = |&(_, symbol): &(_, SymbolId)| profile[symbol].name.as_bytes();
    let names: Vec<&[u8]> = named.iter().map(name).collect();
    let mut ranks = vec![u32::MAX; rows.len()];
    for ((row, _), rank) in named.iter().zip(byte_ranks(&names, view.threads)) {
        ranks[*row] = rank;
    }
    ranks
}

/// What ordering rows needs to know.
pub(crate) struct Ordered<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) columns: &'a Columns,
    pub(crate) classes: &'a Classes,
    pub(crate) contexts: &'a [Context],
    pub(crate) children: bool,
    pub(crate) has_trees: bool,
    pub(crate) order: ChainOrder,
    pub(crate) sort_index: Option<usize>,
    pub(crate) threads: usize,
}

impl Ordered<'_> {
    /// As perf compares samples, by all keys that [`number`](Self::number) knows.
    fn as_samples(&self, a: &Row, b: &Row) -> Ordering {
        let keys = self.columns.order.iter().filter(|key| **key != Key::Socket);
        keys.fold(Ordering::Equal, |so_far, key| {
            so_far.then_with(|| self.by_key(*key, a, b))
        })
    }

    /// [`by_key`](Self::by_key) as numbers; `symbol` is the one of the symbol.
    fn number(&self, key: Key, row: &Row, symbol: u32) -> u64 {
        let keys = &self.contexts[row.context as usize].keys;
        let class = &self.classes.all[row.class as usize];
        let ascending = |n: i32| u64::from(n.cast_unsigned() ^ 1 << 31);
        match key {
            Key::Comm => keys.comm.into(),
            Key::Pid | Key::Tid => keys.tid.into(),
            Key::Tgid => keys.pid.into(),
            Key::Cpu => ascending(keys.cpu),
            Key::Time => keys.time,
            Key::State => keys.state as u64,
            Key::Cgroup => keys.cgroup.into(),
            Key::Trace => keys.trace.into(),
            Key::Parent => keys.parent.into(),
            Key::Dso => class.dso.into(),
            Key::Srcline => class.srcline.into(),
            Key::Srcfile => class.srcfile.into(),
            Key::Symbol | Key::SymbolSize => symbol.into(),
            _ => 0,
        }
    }

    /// Ascending, as perf compares samples.
    pub(crate) fn by_key(&self, key: Key, a: &Row, b: &Row) -> Ordering {
        let (left, right) = (
            &self.contexts[a.context as usize].keys,
            &self.contexts[b.context as usize].keys,
        );
        let (x, y) = (
            &self.classes.all[a.class as usize],
            &self.classes.all[b.class as usize],
        );
        match key {
            Key::Comm => left.comm.cmp(&right.comm),
            Key::Pid | Key::Tid => left.tid.cmp(&right.tid),
            Key::Tgid => left.pid.cmp(&right.pid),
            Key::Cpu => left.cpu.cmp(&right.cpu),
            Key::Socket => left.socket.cmp(&right.socket),
            Key::Time => left.time.cmp(&right.time),
            Key::State => left.state.cmp(&right.state),
            Key::Cgroup => left.cgroup.cmp(&right.cgroup),
            Key::Trace => left.trace.cmp(&right.trace),
            Key::Parent => left.parent.cmp(&right.parent),
            Key::Dso => x.dso.cmp(&y.dso),
            Key::Srcline => x.srcline.cmp(&y.srcline),
            Key::Srcfile => x.srcfile.cmp(&y.srcfile),
            Key::Symbol | Key::SymbolSize => {
                let resolved = |part: &SymbolPart| !matches!(part, SymbolPart::Address(_));
                let by_dso = if resolved(&x.symbol) && resolved(&y.symbol) {
                    x.dso.cmp(&y.dso)
                } else {
                    Ordering::Equal
                };
                by_dso.then_with(|| x.symbol.cmp_as_perf(&y.symbol))
            }
            _ => Ordering::Equal,
        }
    }

    /// Rows of one thread and equal share: those with deeper chains first when callers come first.
    fn by_depth(&self, a: &Row, b: &Row) -> Ordering {
        if a.thread != b.thread || !self.has_trees {
            return Ordering::Equal;
        }
        match self.order {
            ChainOrder::Caller => b.max_depth.cmp(&a.max_depth),
            ChainOrder::Callee => a.max_depth.cmp(&b.max_depth),
        }
    }
}

/// The number a counter column shows or compares.
#[must_use]
pub fn counter(key: Key, counts: &Counts) -> u64 {
    match key {
        Key::OverheadChildren => counts.children_period,
        Key::OverheadSys => counts.by_mode[0],
        Key::OverheadUs => counts.by_mode[1],
        Key::OverheadGuestSys => counts.by_mode[2],
        Key::OverheadGuestUs => counts.by_mode[3],
        Key::Sample => counts.samples,
        _ => counts.self_period,
    }
}
