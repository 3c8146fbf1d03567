//! From entries to rows: who shares a row, and what it is credited with.
//!
//! In: the profile's entries, their chains and classes. Out: the [`Row`]s of each event, in the order perf would
//! visit them before its final sort. Follows `hist_iter_cumulative` and `hists__findnew_entry` of perf (`util/hist.c`): the leaf's row
//! gets the period, and each row that the chain passes gets it once as `children`.

mod context;
mod credit;
mod filter;
mod fine;
mod latency;

use rustc_hash::FxHashMap;

use super::apart::{Orders, SampleValues};
use super::chains::Chains;
use super::classes::{ClassId, Classes};
use super::options::ReportOptions;
use super::trie::{NodeId, Trie};
use crate::functions::Functions;
use crate::functions::payers::Paid;
use crate::ids::{Idx, IndexSlice, IndexVec, Spare, numbers};
use crate::profile::{
    CpuMode, Entry, EntryId, EventId, Facet, FrameId, Profile, SampleMatcher, ThreadId,
};

pub(crate) use self::context::{ContextId, Contexts, SharedContext};
pub(crate) use self::credit::ByRow;
use self::credit::Positions;
use self::filter::hidden_by_name;
use self::fine::Fine;
use super::LabelId;

numbers! {
    /// Index into [`Rows::rows`].
    pub(crate) struct RowId(Spare);
}

/// A line of the report.
#[derive(Debug, Clone)]
pub struct Row {
    /// What its samples are.
    pub(crate) context: ContextId,
    /// What its frame is.
    pub(crate) class: ClassId,
    /// Entry that the row was first made for, and the place of its frame: 0 is the sample's own ip, `n` the `n`-th
    /// frame of its chain.
    pub(crate) first: (EntryId, u32),
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
    /// Latency of samples at the row itself, in thousandths; nothing if no column looks at it.
    pub latency: u64,
    /// Latency of samples at or below it.
    pub children_latency: u64,
    /// Part of [`Self::self_period`] in kernel, user, guest kernel and guest user mode.
    pub by_mode: [u64; 4],
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.self_period = self.self_period.wrapping_add(other.self_period);
        self.children_period = self.children_period.wrapping_add(other.children_period);
        self.samples += other.samples;
        self.latency = self.latency.wrapping_add(other.latency);
        self.children_latency = self.children_latency.wrapping_add(other.children_latency);
        for (sum, part) in self.by_mode.iter_mut().zip(other.by_mode) {
            *sum = sum.wrapping_add(part);
        }
    }
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
    pub(crate) contexts: Contexts,
    pub(crate) rows: IndexVec<RowId, Row>,
    /// Row of each entry's leaf; nothing for dropped entries.
    pub(crate) of_entry: IndexVec<EntryId, Option<RowId>>,
    /// Totals by event.
    pub(crate) totals: IndexVec<EventId, Totals>,
    /// Where rows occur as callers.
    pub(crate) positions: Positions,
    /// By entry: the node in which its leaf's row first occurs in its own chain, if it does. Only when callers are
    /// credited.
    pub(crate) own_place: IndexVec<EntryId, Option<NodeId>>,
    /// The chains, when callers are credited (a root for each context) or trees are wanted (a root for each row).
    pub(crate) trie: Trie,
    /// By context: the root of its chains, when callers are credited.
    pub(crate) context_roots: IndexVec<ContextId, NodeId>,
    /// By row: the root of its chains, if it can have a tree, when callers are not credited.
    pub(crate) row_roots: IndexVec<RowId, Option<NodeId>>,
    /// Dense frame numbers used in the trie.
    pub(crate) fine: Fine,
}

/// What making rows needs to know.
pub(crate) struct Input<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) options: &'a ReportOptions,
    /// The keys that tell rows apart.
    pub(crate) orders: &'a Orders,
    pub(crate) classes: &'a Classes,
    pub(crate) chains: &'a Chains,
    pub(crate) functions: &'a Functions,
    pub(crate) paid: &'a Paid,
    /// Credit callers.
    pub(crate) children: bool,
    /// Trees will be printed.
    pub(crate) with_trees: bool,
    /// Rows are told apart or hidden by their parents.
    pub(crate) with_parent: bool,
    /// A column looks at latency.
    pub(crate) with_latency: bool,
    /// What trees tell apart, by frame; empty without trees and callers.
    pub(crate) labels: &'a IndexSlice<FrameId, [LabelId]>,
    /// By entry, what is counted in place of the period.
    pub(crate) weights: Option<&'a IndexSlice<EntryId, [u64]>>,
}

impl Input<'_> {
    /// What an entry weighs.
    fn weight(&self, entry: EntryId) -> u64 {
        match self.weights {
            Some(weights) => weights[entry],
            None => self.profile[entry].period,
        }
    }
}

/// Makes the rows of all events, with what they weigh by latency if a column looks at that.
pub(crate) fn rows(input: &Input<'_>) -> Rows {
    let mut rows = made(input);
    if input.with_latency {
        latency::add(&mut rows, input);
    }
    rows
}

fn made(input: &Input<'_>) -> Rows {
    let mut maker = RowMaker::new(input);
    for (id, entry) in input.profile.entries.iter_enumerated() {
        maker.add_entry(id, entry);
    }
    if input.children || input.with_trees {
        maker.plant();
    }
    if input.children {
        maker.credit_callers();
    }
    maker.finish()
}

struct RowMaker<'a> {
    input: &'a Input<'a>,
    values: SampleValues<'a>,
    filter: SampleMatcher<'a>,
    /// By entry; nothing for dropped entries.
    context_of: IndexVec<EntryId, Option<ContextId>>,
    row_ids: FxHashMap<u64, RowId>,
    out: Rows,
}

impl<'a> RowMaker<'a> {
    fn new(input: &'a Input<'a>) -> Self {
        let profile = input.profile;
        // Shares are those of everything, also where filters took samples away.
        let events = profile.events.iter();
        let totals = events
            .map(|event| Totals::with_filtered(event.filtered_period, event.filtered_samples));
        let totals = totals.collect();
        Self {
            input,
            values: SampleValues::new(
                profile,
                input.options,
                input.chains,
                (input.functions, input.paid),
            ),
            filter: SampleMatcher::new(profile, &input.options.filters.samples),
            context_of: IndexVec::with_capacity(profile.entries.len()),
            row_ids: FxHashMap::default(),
            out: Rows {
                totals,
                contexts: Contexts::of(input.orders),
                ..Rows::default()
            },
        }
    }

    fn add_entry(&mut self, id: EntryId, entry: &Entry) {
        let Input {
            profile,
            options,
            chains,
            classes,
            ..
        } = *self.input;
        let source = profile.frame_of(entry.facets, Facet::Source);
        let has_symbol = |frame: FrameId| profile[frame].symbol.is_some();
        let is_dropped = options.filters.hide_unresolved
            && !has_symbol(entry.leaf)
            && !source.is_some_and(has_symbol);
        if is_dropped {
            self.out.of_entry.push(None);
            self.context_of.push(None);
            return;
        }
        let instead = if self.has_chains() {
            chains.leaf(entry.stack)
        } else {
            None
        };
        let leaf = instead.unwrap_or(entry.leaf);
        let context = self.context(
            entry,
            &Vec::from_iter([Some(leaf), source].into_iter().flatten()),
        );
        let filtered = self.out.contexts.is_filtered(context);
        let class = classes.leaf[leaf].expect("classes are made of all leaves");
        let row = self.row(context, class, (id, 0), entry.thread, leaf);
        let period = self.input.weight(id);
        let counts = Counts {
            self_period: period,
            samples: entry.samples,
            by_mode: by_mode(profile[entry.leaf].mode, period),
            ..Counts::default()
        };
        self.out.rows[row].counts.add(&counts);
        let totals = &mut self.out.totals[entry.event];
        totals.all.add(&counts);
        if !filtered {
            totals.sample_filtered.add(&counts);
        }
        self.out.of_entry.push(Some(row));
        self.context_of.push(Some(context));
    }

    fn has_chains(&self) -> bool {
        let Input {
            children,
            with_trees,
            with_parent,
            ..
        } = *self.input;
        children || with_trees || with_parent
    }

    /// `own`: the sample's own frame, or both ends of a branch.
    fn context(&mut self, entry: &Entry, own: &[FrameId]) -> ContextId {
        let is_other = self.input.options.filters.exclude_other
            && self.input.chains.parent(entry.stack).is_none();
        let facets = &self.input.profile.facets;
        let level = || facets.parallelism(entry.facets);
        let is_other = is_other
            || (self.input.options.filters.parallelism.as_ref())
                .is_some_and(|wanted| !wanted.iter().any(|wanted| u64::from(*wanted) == level()));
        let cpu = facets.cpu(entry.facets);
        let filtered = is_other || self.filter.hides(entry.comm, entry.thread, cpu, own);
        self.out.contexts.add(&self.values, entry, filtered)
    }

    fn row(
        &mut self,
        context: ContextId,
        class: ClassId,
        first: (EntryId, u32),
        thread: ThreadId,
        frame: FrameId,
    ) -> RowId {
        let key = u64::from(context.0) << 32 | class.index() as u64;
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
            })
        })
    }

    fn finish(mut self) -> Rows {
        let Input {
            profile,
            options,
            chains,
            ..
        } = *self.input;
        for row in &mut self.out.rows {
            if row.is_caller {
                // The frame of the entry that came first, not just one that falls into the same row.
                let entry = &profile[row.first.0];
                let place = chains.range(entry.stack).start.plus(row.first.1 - 1);
                row.frame = chains.frames[place];
            }
            row.filtered =
                self.out.contexts.is_filtered(row.context) || hidden_by_name(profile, options, row);
            if !row.filtered {
                self.out.totals[self.out.contexts.event(row.context)]
                    .row_filtered
                    .add(&row.counts);
            }
        }
        self.out
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
