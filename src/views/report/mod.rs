//! The report view: a profile and options in, ordered tables of rows out, call trees on demand.
//!
//! What a report means is settled here, after `perf report` (`util/hist.c`, `util/sort.c`, `util/callchain.c`
//! of perf): who shares a row, what it is credited with, the order of rows and branches, thresholds. How it
//! looks is the business of [`crate::output`]. Knows nothing of records and files.

mod apart;
mod call_graph;
mod chains;
mod classes;
pub mod columns;
mod ends;
mod hierarchy;
pub mod keys;
mod needs;
pub mod options;
mod order;
mod rates;
mod rows;
mod settle;
mod share;
mod sorted;
mod spec;
#[cfg(test)]
pub(crate) mod testing;
mod texts;
mod tree;
#[cfg(test)]
mod tree_tests;
mod trie;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Avma, FileOffset};
use crate::ids::{Idx, IndexVec, Spare, index_vec, numbers};

use self::chains::Chains;
use self::classes::{ClassId, Classes, is_jit};
pub use self::columns::Columns;
pub use self::hierarchy::{HierarchyNode, hierarchy, levels};
use self::keys::Key;
use self::options::{CallGraphMode, ChainOrder, Grouping, Latency, ReportOptions};
pub use self::rates::{Rate, Rates};
use self::rows::{ContextId, Input, RowId, Rows};
pub use self::rows::{Counts, Row, Totals};
pub use self::share::percent;
pub(crate) use self::share::threshold as tree_threshold;
use self::sorted::{Ordered, RowPlace, ordered};
pub use self::spec::{End, EndPart, Side};
pub(crate) use self::texts::known_srcline;
pub use self::tree::{CallTree, TreeMaker, TreeNode, TreeNodeId};
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::functions::payers::Paid;
use crate::metrics::Metric;
use crate::needs::Needs;
use crate::profile::{CpuMode, StackId};
use crate::profile::{
    Entry, EntryId, EventId, EventSummary, Facet, Frame, FrameId, ObjectId, Of, Profile, SymbolId,
};

numbers! {
    /// What frames share that a tree does not tell apart; counted in the order of the frames.
    pub(crate) struct LabelId(Spare);
}

/// Digits of an address as rows show it.
pub(crate) const ADDRESS_DIGITS: usize = 16;

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The recording, or what the filters on time and CPU left of it, is empty.
    #[error("{0}: no samples")]
    NoSamples(String),
    /// Call graphs were asked for by name.
    #[error("-g needs call chains, and this recording has none: was it made without --call-graph?")]
    NoChains,
    /// The `parent` key needs chains.
    #[error(
        "the key parent needs call chains, and this recording has none: was it made without --call-graph?"
    )]
    NoChainsForParent,
    /// Latency and parallelism need to know who ran.
    #[error("{0} needs to know which threads ran: record with pjit record --perf=--switch-events")]
    NoSwitches(&'static str),
    /// A key of branches, and rows are samples.
    #[error(
        "the key {0} needs branches, and rows are samples here: -b shows branches that perf record -b recorded"
    )]
    NotOfBranches(&'static str),
    /// A key of accesses to memory, and rows weigh something else.
    #[error(
        "the key {0} needs accesses to memory: --mem-mode shows those that perf mem record recorded"
    )]
    NotOfAccesses(&'static str),
    /// A metric needs events that are not there.
    #[error("--metrics: {0}")]
    NoEvent(String),
}

/// A report, ready to be printed.
#[derive(Debug)]
pub struct Report<'p> {
    /// What it is made of.
    pub profile: &'p Profile,
    /// How it was asked for.
    pub options: &'p ReportOptions,
    /// Columns and order.
    pub columns: Columns,
    /// Columns that are printed: without those that a filter leaves one value for.
    pub fields: Vec<Key>,
    /// The lines that stand for the columns left out: name and value.
    pub elided: Vec<(&'static str, String)>,
    /// One for each event or group, in file order.
    pub tables: Vec<Table>,
    /// Whether callers are credited.
    pub children: bool,
    /// Whether call trees are printed.
    pub has_trees: bool,
    /// Which end of the chains comes first.
    pub order: ChainOrder,
    /// What `--metrics` says of rows.
    pub rates: Rates,
    /// What kinds of code there are, if a key looks at it.
    functions: Functions,
    /// Who pays, if a key looks at it.
    paid: Paid,
    classes: Classes,
    chains: Chains,
    rows: Rows,
}

/// The rows of one event, or of a group of events.
#[derive(Debug)]
pub struct Table {
    /// The events, the leader first.
    pub events: Vec<EventId>,
    /// Names as the title shows them.
    pub title: String,
    /// Whether the title says `events`.
    pub is_plural: bool,
    /// Samples of the title.
    pub samples: u64,
    /// Event count of the title.
    pub period: u64,
    /// Rows in print order, without filtered ones, with those below the limit.
    pub rows: Vec<Row>,
    /// By event of the group: what percentages of rows refer to.
    pub totals: Vec<u64>,
    /// The same for those of latency.
    pub latency_totals: Vec<u64>,
    /// What percentages of branches refer to.
    pub chain_total: u64,
    /// What the threshold of branches refers to.
    pub threshold_total: u64,
    /// Counts of the members behind the leader, row by row.
    members: Vec<Counts>,
    /// Where each row was before they were put into order, as its members still are, and which of [`Rows::rows`] it is; none
    /// for one that only a member of the group has.
    places: Vec<(RowPlace, Option<RowId>)>,
}

/// Makes the report of a profile.
///
/// # Errors
///
/// When there are no samples, or chains are needed and the recording has none.
pub fn build<'p>(
    profile: &'p Profile,
    options: &'p ReportOptions,
) -> Result<Report<'p>, ReportError> {
    if profile.entries.is_empty() {
        return Err(ReportError::NoSamples(profile.recording.path.clone()));
    }
    let has_chains = profile.events.iter().any(|event| event.has_callchains);
    let has_trees = has_chains && options.chains.call_graph.mode != CallGraphMode::None;
    // perf 6.1 credits no callers with --hierarchy; 7.2 does, with columns that do not fit.
    let wants_children = options.rows.children && !options.rows.hierarchy;
    let columns = Columns::resolve(options, wants_children, has_chains);
    check_chains(options, &columns, has_chains)?;
    check_switches(profile, options, &columns)?;
    check_rows(profile, &columns)?;
    let children = wants_children && has_chains;
    let order = chain_order(options, options.rows.children && has_chains);
    let with_parent = columns.has_key(Key::Parent) || options.filters.exclude_other;
    let chains = if children || has_trees || with_parent || options.chains.ignore_callees.is_some()
    {
        Chains::of(profile, options, order, with_parent)
    } else {
        Chains::default()
    };
    let orders = columns.orders();
    let functions = if columns.needs().contains(Needs::KINDS) {
        Functions::of(profile, &OwnRules::default())
    } else {
        Functions::default()
    };
    let paid = if columns.has_key(Key::Package) || columns.has_key(Key::Activity) {
        Paid::of(profile, &functions)
    } else {
        Paid::default()
    };
    let classes = Classes::of(profile, options, &orders, &functions, children);
    let labels = if children || has_trees {
        tree_labels(profile, options)
    } else {
        IndexVec::new()
    };
    let rows = rows::rows(&Input {
        profile,
        options,
        orders: &orders,
        classes: &classes,
        chains: &chains,
        functions: &functions,
        paid: &paid,
        children,
        with_trees: has_trees,
        with_parent,
        with_latency: columns.shows_latency(),
        labels: &labels,
        weights: None,
    });
    let rates = rates::Input {
        profile,
        chains: &chains,
        classes: &classes,
        rows: &rows,
        children,
    };
    let rates = Rates::of(&columns.metrics, &rates).map_err(ReportError::NoEvent)?;
    let (fields, elided) = elide(options, &columns);
    let mut report = Report {
        profile,
        options,
        columns,
        fields,
        elided,
        tables: Vec::new(),
        children,
        has_trees,
        order,
        rates,
        functions,
        paid,
        classes,
        chains,
        rows,
    };
    report.tables = groups(profile, options)
        .into_iter()
        .map(|events| report.table(events))
        .collect();
    Ok(report)
}

fn check_chains(
    options: &ReportOptions,
    columns: &Columns,
    has_chains: bool,
) -> Result<(), ReportError> {
    if has_chains {
        return Ok(());
    }
    if columns.has_key(Key::Parent) {
        return Err(ReportError::NoChainsForParent);
    }
    if options.chains.requires_chains {
        Err(ReportError::NoChains)
    } else {
        Ok(())
    }
}

fn check_switches(
    profile: &Profile,
    options: &ReportOptions,
    columns: &Columns,
) -> Result<(), ReportError> {
    if profile.recording.tells_switches {
        return Ok(());
    }
    let asked = [
        (options.filters.parallelism.is_some(), "--parallelism"),
        (options.columns.latency == Latency::First, "--latency"),
        (
            columns.has_key(Key::Facet(Facet::Parallelism)),
            "the key `parallelism`",
        ),
        (columns.shows_latency(), "the key `latency`"),
    ];
    let asked = asked.into_iter().find(|(is_asked, _)| *is_asked);
    asked.map_or(Ok(()), |(_, what)| Err(ReportError::NoSwitches(what)))
}

/// Keys of what rows are not of would have nothing to show.
fn check_rows(profile: &Profile, columns: &Columns) -> Result<(), ReportError> {
    let keys = columns.fields.iter().chain(&columns.order);
    for key in keys {
        match key.of() {
            Some(Of::Branch) if profile.branches.is_none() => {
                return Err(ReportError::NotOfBranches(key.name()));
            }
            Some(Of::Access) if profile.accesses.is_none() => {
                return Err(ReportError::NotOfAccesses(key.name()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// perf's default: callers first when callers are credited, or would be without `--hierarchy`.
fn chain_order(options: &ReportOptions, children: bool) -> ChainOrder {
    let default = if children {
        ChainOrder::Caller
    } else {
        ChainOrder::Callee
    };
    options.chains.call_graph.order.unwrap_or(default)
}

/// Numbers that are equal for frames that a tree does not tell apart.
fn tree_labels(profile: &Profile, options: &ReportOptions) -> IndexVec<FrameId, LabelId> {
    use self::options::ChainKey;

    #[derive(PartialEq, Eq, Hash)]
    enum Label<'p> {
        Function(ObjectId, FileOffset),
        Inlined(&'p str),
        /// JIT code: what was made later at the same place is another function.
        Jit(SymbolId),
        Address(Option<ObjectId>, Avma, Option<SymbolId>),
        Line(String),
    }
    let label = |frame: &Frame| {
        let symbol = frame.symbol.map(|symbol| (symbol, &profile[symbol]));
        let line = known_srcline(profile, options, frame);
        let inlined = frame.symbol.filter(|id| profile[*id].inlined);
        match (options.chains.call_graph.key, line, symbol) {
            (ChainKey::Srcline, Some(line), _) => Label::Line(line),
            (ChainKey::Address, ..) | (_, _, None) => {
                Label::Address(frame.object, frame.address, inlined)
            }
            (_, _, Some((_, symbol))) if symbol.inlined => Label::Inlined(&symbol.name),
            (_, _, Some((id, symbol))) if is_jit(profile, symbol) => Label::Jit(id),
            (_, _, Some((_, symbol))) => Label::Function(symbol.object, symbol.start),
        }
    };
    // JIT code, of which there may be very much, has a number for each symbol anyway.
    let mut of_jit: IndexVec<SymbolId, Option<LabelId>> = index_vec![None; profile.symbols.len()];
    let mut ids: FxHashMap<Label<'_>, Option<LabelId>> = FxHashMap::default();
    let mut count = 0;
    let mut number = |frame| {
        let known = match label(frame) {
            Label::Jit(symbol) => &mut of_jit[symbol],
            label => ids.entry(label).or_default(),
        };
        *known.get_or_insert_with(|| {
            count += 1;
            LabelId::from_usize(count - 1)
        })
    };
    profile.frames.iter().map(&mut number).collect()
}

/// Columns without those that a filter with a single entry makes constant, unless nothing would be left. Levels of a tree all stay.
fn elide(options: &ReportOptions, columns: &Columns) -> (Vec<Key>, Vec<(&'static str, String)>) {
    let only = |key: Key| {
        let list = key.descriptor().filter?(options).as_ref();
        let list = list.filter(|list| list.len() == 1)?;
        Some((key.name(), list[0].clone()))
    };
    let elided: Vec<(&str, String)> = columns.fields.iter().filter_map(|key| only(*key)).collect();
    let is_left = |key: &Key| only(*key).is_none() || options.rows.hierarchy;
    let has_left = columns
        .fields
        .iter()
        .any(|key| !key.is_counter() && is_left(key));
    let fields = columns
        .fields
        .iter()
        .copied()
        .filter(|key| !has_left || is_left(key))
        .collect();
    (fields, elided)
}

/// Which events share a table. Events without samples are left out, as perf 7.2 does within groups too.
fn groups(profile: &Profile, options: &ReportOptions) -> Vec<Vec<EventId>> {
    let events = &profile.events;
    let is_recorded = events.iter_enumerated().any(|(i, event)| event.leader != i);
    let leader_of = |i: EventId| match options.rows.group {
        Grouping::Separate => i,
        Grouping::All if !is_recorded => EventId::default(),
        Grouping::AsRecorded | Grouping::All => events[i].leader,
    };
    let mut groups: Vec<(EventId, Vec<EventId>)> = Vec::new();
    for i in events
        .indices()
        .filter(|i| events[*i].samples > 0 || !options.rows.skip_empty)
    {
        let leader = leader_of(i);
        match groups.iter_mut().find(|(of, _)| *of == leader) {
            Some((_, members)) => members.push(i),
            None => groups.push((leader, vec![i])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Rows of several events, which of [`Rows::rows`] they are, and the counts of the members.
type Joined = (
    IndexVec<RowPlace, Row>,
    IndexVec<RowPlace, Option<RowId>>,
    Vec<Counts>,
);

impl<'p> Report<'p> {
    /// Samples whose chains `--max-stack` shortened, in per cent, and the frames of the longest.
    #[must_use]
    pub fn shortened(&self) -> Option<(f64, usize)> {
        let (stacks, shortened) = (&self.profile.stacks, &self.chains.shortened);
        let longest = shortened.iter().map(|id| stacks.get(*id).len()).max()?;
        let shortened: FxHashSet<StackId> = shortened.iter().copied().collect();
        let (mut some, mut all) = (0, 0);
        for entry in &self.profile.entries {
            all += entry.samples;
            some += entry.samples * u64::from(shortened.contains(&entry.stack));
        }
        (some > 0).then(|| (100.0 * some as f64 / all as f64, longest))
    }

    /// The entry that a row was first made for.
    #[must_use]
    pub fn entry(&self, row: &Row) -> &'p Entry {
        &self.profile[row.first.0]
    }

    /// The text of a key that is told by a row's frame.
    pub(crate) fn frame_text(&self, row: &Row, key: Key) -> &str {
        self.classes.text(row.class, key)
    }

    /// The number of a key that is told by a row's frame.
    pub(crate) fn frame_number(&self, row: &Row, key: Key) -> u64 {
        self.classes.number(row.class, key)
    }

    /// The event of a table, or the first one of its group.
    #[must_use]
    pub fn leader(&self, table: &Table) -> &'p EventSummary {
        &self.profile[table.events[0]]
    }

    /// The metric of a column, if it is one of those.
    #[must_use]
    pub fn metric(&self, key: Key) -> Option<&Metric> {
        let Key::Metric(number) = key else {
            return None;
        };
        self.rates.metrics.get(usize::from(number))
    }

    /// What a metric's column says of a row.
    #[must_use]
    pub fn rate(&self, row: &Row, key: Key) -> Option<Rate> {
        let Key::Metric(number) = key else {
            return None;
        };
        self.rates.cell(row, usize::from(number))
    }

    /// Whether nothing is left to show: filters hid every row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables
            .iter()
            .all(|table| !table.rows.iter().any(|row| self.is_shown(table, row)))
    }

    /// Whether a row reaches the percent limit.
    #[must_use]
    pub fn is_shown(&self, table: &Table, row: &Row) -> bool {
        let counts = &row.counts;
        let period = if self.children {
            counts.children_period
        } else {
            counts.self_period
        };
        // perf compares single-precision numbers.
        percent(period, table.totals[0]) as f32 >= self.options.rows.percent_limit as f32
    }

    /// The address that a row without symbol shows.
    #[must_use]
    pub fn shown_address(&self, row: &Row) -> u64 {
        let frame = &self.profile[row.frame];
        // Of branches, keys that say which end they mean show the object's address.
        if row.is_caller || self.profile.branches.is_some() {
            frame.address.0
        } else {
            frame.object_address.0
        }
    }

    /// Mode of a row as perf marks it: `k`, `.` and so on.
    #[must_use]
    pub fn level(&self, row: &Row) -> char {
        let profile = self.profile;
        let (entry, place) = (&profile[row.first.0], row.first.1);
        if place > 0 {
            // A caller without mapping is marked like the frame before it.
            let before = self.chains.first(entry.stack, place).iter().rev();
            let mapped = before
                .map(|id| &profile[*id])
                .find(|frame| frame.object.is_some());
            if let Some(frame) = mapped {
                return if frame.mode == CpuMode::Unknown {
                    '.'
                } else {
                    level_char(frame.mode)
                };
            }
        }
        level_char(profile[entry.leaf].mode)
    }

    /// The name of a row's parent, if it has one.
    #[must_use]
    pub fn parent(&self, row: &Row) -> Option<&str> {
        let stack = self.profile[row.first.0].stack;
        self.chains
            .parent(stack)
            .map(|frame| self.profile.frame_name(frame))
    }

    fn table(&self, events: Vec<EventId>) -> Table {
        let all = &self.rows;
        let counts_of = |event: &EventId| {
            let totals = &all.totals[*event];
            if self.options.rows.relative {
                totals.row_filtered
            } else {
                totals.all
            }
        };
        let total_of = |event: &EventId| counts_of(event).self_period;
        let samples_of = |event: &EventId| {
            let totals = &all.totals[*event];
            let counts = if self.options.rows.relative {
                &totals.sample_filtered
            } else {
                &totals.all
            };
            counts.samples
        };
        let leader = &all.totals[events[0]];
        let threshold = if self.options.rows.relative {
            &leader.sample_filtered
        } else {
            &leader.all
        };
        let mut table = Table {
            title: title(self.profile, self.options, &events),
            is_plural: is_plural(self.profile, self.options, &events),
            samples: match &self.profile.branches {
                Some(branches) => {
                    let of = |event: &EventId| branches.samples.get(*event).copied();
                    events.iter().filter_map(of).sum()
                }
                None => events.iter().map(samples_of).sum(),
            },
            period: events.iter().map(total_of).fold(0, u64::wrapping_add),
            rows: Vec::new(),
            totals: events.iter().map(total_of).collect(),
            latency_totals: events.iter().map(|e| counts_of(e).latency).collect(),
            chain_total: leader.all.self_period,
            threshold_total: threshold.self_period,
            members: Vec::new(),
            places: Vec::new(),
            events,
        };
        self.fill(&mut table);
        table
    }

    /// Puts the rows of the table's events together and in order.
    fn fill(&self, table: &mut Table) {
        let (mut rows, numbers, members) = self.joined(&table.events);
        let behind = table.events.len() - 1;
        let view = self.ordering();
        let members_of = |row: RowPlace| &members[row.index() * behind..][..behind];
        let order = ordered(&rows, &view, members_of);
        let shown = order.into_iter().filter(|i| !rows[*i].filtered);
        let shown: Vec<RowPlace> = shown.collect();
        table.places = shown.iter().map(|i| (*i, numbers[*i])).collect();
        table.rows = shown
            .iter()
            .map(|i| std::mem::replace(&mut rows[*i], Row::empty()))
            .collect();
        table.members = members;
    }

    fn ordering(&self) -> Ordered<'_> {
        Ordered::of(self)
    }

    /// The leader's rows, and those that only members have, with nothing counted for the leader; the numbers
    /// of the rows; the members' counts.
    fn joined(&self, events: &[EventId]) -> Joined {
        let behind = events.len() - 1;
        let (mut rows, mut numbers) = (IndexVec::new(), IndexVec::new());
        let mut members = Vec::new();
        let identities = self.rows.contexts.identities();
        let mut ids = FxHashMap::default();
        for (member, event) in events.iter().enumerate() {
            for (number, row) in self.rows.rows.iter_enumerated() {
                let contexts = &self.rows.contexts;
                if contexts.event(row.context) != *event {
                    continue;
                }
                let new: RowPlace = rows.next_idx();
                let at = match behind {
                    0 => new,
                    _ => *ids
                        .entry((identities[row.context], row.class))
                        .or_insert(new),
                };
                if at == new {
                    let counts = if member == 0 {
                        row.counts
                    } else {
                        Counts::default()
                    };
                    rows.push(Row {
                        counts,
                        ..row.clone()
                    });
                    // What only a member has is a row without chains.
                    numbers.push((member == 0).then_some(number));
                    members.resize(members.len() + behind, Counts::default());
                }
                if member > 0 {
                    members[at.index() * behind + member - 1] = row.counts;
                }
            }
        }
        (rows, numbers, members)
    }
}

impl Table {
    /// Counts of a row for each event of the group, the leader first.
    pub fn counts(&self, row: usize) -> impl Iterator<Item = &Counts> {
        let behind = self.events.len() - 1;
        let at = self.places[row].0.index() * behind;
        std::iter::once(&self.rows[row].counts).chain(&self.members[at..at + behind])
    }
}

impl Row {
    fn empty() -> Self {
        use crate::profile::ThreadId;
        Self {
            context: ContextId::from_usize(0),
            class: ClassId::from_usize(0),
            first: (EntryId::from_usize(0), 0),
            thread: ThreadId(0),
            frame: FrameId::from_usize(0),
            is_caller: false,
            filtered: true,
            max_depth: 0,
            counts: Counts::default(),
        }
    }
}

const fn level_char(mode: CpuMode) -> char {
    match mode {
        CpuMode::Kernel => 'k',
        CpuMode::User => '.',
        CpuMode::GuestKernel => 'g',
        CpuMode::GuestUser => 'u',
        CpuMode::Hypervisor | CpuMode::Unknown => 'H',
    }
}

fn is_plural(profile: &Profile, options: &ReportOptions, events: &[EventId]) -> bool {
    let leader = events[0];
    let of = |i: EventId| profile[i].leader;
    let is_recorded = profile.events.indices().any(|i| of(i) != i);
    let is_first = leader == EventId::default();
    let leads = |i: EventId| i != leader && (of(i) == leader || (!is_recorded && is_first));
    match options.rows.group {
        // perf keeps the plural of a leader whose group, recorded or made by the option, is taken apart.
        Grouping::Separate => profile.events.indices().any(leads),
        Grouping::AsRecorded | Grouping::All => events.len() > 1,
    }
}

fn title(profile: &Profile, options: &ReportOptions, events: &[EventId]) -> String {
    let names: Vec<&str> = events.iter().map(|i| profile[*i].name.as_str()).collect();
    let names = names.join(", ");
    if events.len() < 2 {
        return names;
    }
    let was_forced = options.rows.group == Grouping::All
        && profile.events.iter_enumerated().all(|(i, e)| e.leader == i);
    match &profile[events[0]].group_name {
        _ if was_forced => names,
        Some(group) => format!("{group} {{ {names} }}"),
        None => format!("anon group {{ {names} }}"),
    }
}

impl Profile {
    /// Name of a frame's symbol; empty if it has none.
    #[must_use]
    pub fn frame_name(&self, frame: FrameId) -> &str {
        let symbol = self.frames[frame].symbol;
        symbol.map_or("", |symbol| self.symbols[symbol].name.as_str())
    }
}
