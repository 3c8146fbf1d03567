//! What a report shows and how: plain data, made by the command line, read by the view and the writers.

pub use super::call_graph::{
    BARE_CALL_GRAPH, CallGraph, CallGraphError, CallGraphMode, ChainKey, ChainOrder, ChainValue,
};
use super::spec::{FieldSpec, SortSpec};
use crate::metrics::Metric;
use crate::profile::{Entry, SampleFilter};

/// Everything that `pjit report` can be told about the view itself. Which samples come in (time, CPU) and
/// how they are resolved is settled before, when the profile is made.
#[derive(Debug, Clone, Default)]
pub struct ReportOptions {
    /// Which columns there are, and by which rows are told apart and ordered.
    pub columns: ColumnOptions,
    /// What rows are credited with, and which are shown.
    pub rows: RowOptions,
    /// How chains are looked at and printed.
    pub chains: ChainOptions,
    /// Which samples and rows are shown.
    pub filters: RowFilters,
    /// How it is printed.
    pub layout: LayoutOptions,
}

/// Which columns there are, and by which rows are told apart and ordered.
#[derive(Debug, Clone, Default)]
pub struct ColumnOptions {
    /// `--sort`; comm, dso and symbol when not given.
    pub sort: Option<SortSpec>,
    /// `--fields`.
    pub fields: Option<FieldSpec>,
    /// Keys used without `--sort` (`report.sort_order` of the configuration).
    pub default_sort: Option<SortSpec>,
    /// `--metrics`: rates as columns behind the counters.
    pub metrics: Vec<Metric>,
    /// `--metrics` without a list: those that the recording has events for.
    pub all_metrics: bool,
    /// Shares of latency beside those of the period.
    pub latency: Latency,
    /// `-n`: number of samples after the overhead.
    pub show_samples: bool,
    /// `--show-total-period`: period after the overhead.
    pub show_period: bool,
    /// `--show-cpu-utilization`: `sys` and `usr` after the overhead.
    pub show_cpu_utilization: bool,
    /// Columns with the weight and the number of what was weighed, where a weight was asked for.
    pub show_weight: bool,
}

/// What rows are credited with, and which are shown.
#[derive(Debug, Clone)]
pub struct RowOptions {
    /// What they are of.
    pub of: RowsOf,
    /// Credit callers too; has an effect only when the recording has call chains.
    pub children: bool,
    /// Rows below this share are hidden, in percent.
    pub percent_limit: f64,
    /// Percentages of what the filters leave, not of everything.
    pub relative: bool,
    /// `--hierarchy`.
    pub hierarchy: bool,
    /// `--group`.
    pub group: Grouping,
    /// `--group-sort-idx`: the member whose share orders a group's rows.
    pub group_sort_index: Option<usize>,
    /// `--no-skip-empty` clears it: events without samples are then listed too.
    pub skip_empty: bool,
    /// `--time-quantum`: steps of the time key in ns.
    pub time_quantum: u64,
}

impl RowOptions {
    /// The beginning of the step in which a sample was taken.
    pub(crate) fn step_of(&self, entry: &Entry) -> u64 {
        entry.time - entry.time % self.time_quantum.max(1)
    }
}

impl Default for RowOptions {
    fn default() -> Self {
        Self {
            of: RowsOf::AsRecorded,
            children: true,
            percent_limit: 0.0,
            relative: false,
            hierarchy: false,
            group: Grouping::AsRecorded,
            group_sort_index: None,
            skip_empty: true,
            time_quantum: 100_000_000,
        }
    }
}

/// How chains are looked at and printed.
#[derive(Debug, Clone)]
pub struct ChainOptions {
    /// How call graphs are printed.
    pub call_graph: CallGraph,
    /// `--max-stack`: frames of a chain that are looked at, inlined ones not counted.
    pub max_stack: usize,
    /// `-p`: what makes a frame the parent, for the `parent` key; `None` for perf's own pattern.
    pub parent: Option<regex::Regex>,
    /// `--ignore-callees`: frames that count as leaves.
    pub ignore_callees: Option<regex::Regex>,
    /// Call graphs were asked for by name, so a recording without chains is an error.
    pub requires_chains: bool,
}

impl Default for ChainOptions {
    fn default() -> Self {
        Self {
            call_graph: CallGraph::default(),
            max_stack: 127,
            parent: None,
            ignore_callees: None,
            requires_chains: false,
        }
    }
}

/// Which samples and rows are shown.
#[derive(Debug, Clone, Default)]
pub struct RowFilters {
    /// `-c`, `-d`, `-S`, `--pid`, `--tid`, `--socket-filter`: samples whose rows are not hidden.
    pub samples: SampleFilter,
    /// `--symbol-filter`: only rows whose symbol contains this.
    pub symbol_filter: Option<String>,
    /// `-U`: forget what has no symbol.
    pub hide_unresolved: bool,
    /// `-x`: only rows that have a parent.
    pub exclude_other: bool,
    /// `--parallelism`: only samples beside which so many threads ran.
    pub parallelism: Option<Vec<u32>>,
}

/// How it is printed.
#[derive(Debug, Clone)]
pub struct LayoutOptions {
    /// `-t`: what separates columns, instead of two spaces and padding.
    pub separator: Option<String>,
    /// `-w`: widths in column order.
    pub column_widths: Vec<usize>,
    /// `-q`: rows and nothing else.
    pub quiet: bool,
    /// `-v`, how often.
    pub verbose: u8,
    /// `--full-source-path`: source files with their folders.
    pub full_source_path: bool,
    /// `--ns`: times with nanoseconds.
    pub nanoseconds: bool,
    /// `--header`: the header block comes before the report.
    pub header: bool,
    /// The text of `--time`, for the title.
    pub time: Option<String>,
    /// Colour percentages.
    pub color: bool,
    /// `-T`: counters of tasks behind the report.
    pub show_threads: bool,
    /// Threads that may format rows; no influence on what they print.
    pub threads: usize,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self {
            separator: None,
            column_widths: Vec::new(),
            quiet: false,
            verbose: 0,
            full_source_path: false,
            nanoseconds: false,
            header: false,
            time: None,
            color: false,
            show_threads: false,
            threads: 1,
        }
    }
}

/// Whether there are shares of latency: of periods over the number of threads that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Latency {
    /// None but those that are named.
    #[default]
    Off,
    /// Behind those of periods.
    Beside,
    /// `--latency`: in front of them, and rows in their order.
    First,
}

/// What rows are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowsOf {
    /// Branches if perf's report shows those of such a recording, else samples.
    #[default]
    AsRecorded,
    /// `--no-branch-stack`: samples.
    Samples,
    /// `-b`: branches.
    Branches,
    /// `--mem-mode`: samples, which weigh what their access to memory cost.
    Accesses,
}

impl RowsOf {
    /// perf's keys when none are given.
    #[must_use]
    pub const fn default_keys(self) -> Option<&'static str> {
        match self {
            Self::AsRecorded | Self::Samples => None,
            Self::Branches => Some(SortSpec::BRANCHES),
            Self::Accesses => Some(SortSpec::ACCESSES),
        }
    }
}

/// Which events share a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grouping {
    /// `--no-group`: every event has its own.
    Separate,
    /// Groups of the recording have one.
    #[default]
    AsRecorded,
    /// `--group`: as recorded; when the recording has no group, all events form one.
    All,
}
