//! What a report shows and how: plain data, made by the command line, read by the view and the writers.

use super::keys::{FieldSpec, SortSpec};
use crate::metrics::Metric;
use crate::profile::{Profile, SampleFilter};

/// Everything that `pjit report` can be told about the view itself. Which samples come in (time, CPU) and
/// how they are resolved is settled before, when the profile is made.
#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// Threads that may format rows; no influence on what they print.
    pub threads: usize,
    /// `--sort`; comm, dso and symbol when not given.
    pub sort: Option<SortSpec>,
    /// `--fields`.
    pub fields: Option<FieldSpec>,
    /// Keys used without `--sort` (`report.sort_order` of the configuration).
    pub default_sort: Option<SortSpec>,
    /// Credit callers too; has an effect only when the recording has call chains.
    pub children: bool,
    /// How call graphs are printed.
    pub call_graph: CallGraph,
    /// Rows below this share are hidden, in percent.
    pub percent_limit: f64,
    /// Percentages of what the filters leave, not of everything.
    pub relative: bool,
    /// `-n`: number of samples after the overhead.
    pub show_samples: bool,
    /// `--show-total-period`: period after the overhead.
    pub show_period: bool,
    /// `--show-cpu-utilization`: `sys` and `usr` after the overhead.
    pub show_cpu_utilization: bool,
    /// `-t`: what separates columns, instead of two spaces and padding.
    pub separator: Option<String>,
    /// `-w`: widths in column order.
    pub column_widths: Vec<usize>,
    /// `-c`, `-d`, `-S`, `--pid`, `--tid`, `--socket-filter`: samples whose rows are not hidden.
    pub filter: SampleFilter,
    /// `--symbol-filter`: only rows whose symbol contains this.
    pub symbol_filter: Option<String>,
    /// `-U`: forget what has no symbol.
    pub hide_unresolved: bool,
    /// `-x`: only rows that have a parent.
    pub exclude_other: bool,
    /// `-p`: what makes a frame the parent, for the `parent` key; `None` for perf's own pattern.
    pub parent: Option<regex::Regex>,
    /// `--ignore-callees`: frames that count as leaves.
    pub ignore_callees: Option<regex::Regex>,
    /// `-T`: counters of tasks behind the report.
    pub show_threads: bool,
    /// `--max-stack`: frames of a chain that are looked at, inlined ones not counted.
    pub max_stack: usize,
    /// `--group`.
    pub group: Grouping,
    /// `--group-sort-idx`: the member whose share orders a group's rows.
    pub group_sort_index: Option<usize>,
    /// `--metrics`: rates as columns behind the counters.
    pub metrics: Vec<Metric>,
    /// `--metrics` without a list: those that the recording has events for.
    pub all_metrics: bool,
    /// Columns with the weight and the number of what was weighed, where a weight was asked for.
    pub show_weight: bool,
    /// `--hierarchy`.
    pub hierarchy: bool,
    /// `-q`: rows and nothing else.
    pub quiet: bool,
    /// `-v`, how often.
    pub verbose: u8,
    /// `--full-source-path`: source files with their folders.
    pub full_source_path: bool,
    /// `--ns`: times with nanoseconds.
    pub nanoseconds: bool,
    /// Shares of latency beside those of the period.
    pub latency: Latency,
    /// `--parallelism`: only samples beside which so many threads ran.
    pub parallelism: Option<Vec<u32>>,
    /// `--header`: the header block comes before the report.
    pub header: bool,
    /// `--no-skip-empty` clears it: events without samples are then listed too.
    pub skip_empty: bool,
    /// Call graphs were asked for by name, so a recording without chains is an error.
    pub requires_chains: bool,
    /// The text of `--time`, for the title.
    pub time: Option<String>,
    /// Colour percentages.
    pub color: bool,
}

impl ReportOptions {
    /// Leaves out shares of latency where they would be those of periods, unless they were named
    /// (`ui/hist.c:perf_hpp__cancel_latency`).
    fn settle_latency(&mut self, profile: &Profile) {
        /// Per cent of the samples.
        const NEARLY_ALL: u64 = 99;
        let is_named = (self.sort.as_ref()).is_some_and(|sort| sort.mentions("latency"));
        if self.latency != Latency::Beside || is_named {
            return;
        }
        let (mut all, mut alone) = (0_u64, 0_u64);
        for entry in &profile.entries {
            all += entry.samples;
            if profile.parallelism.at(entry.first) == 1 {
                alone += entry.samples;
            }
        }
        if all > 0 && alone * 100 / all >= NEARLY_ALL {
            self.latency = Latency::Off;
        }
    }

    /// Fills in what depends on the recording: where all events are tracepoints, rows are told apart by their
    /// payloads (`util/sort.c:get_default_sort_order`).
    pub fn settle(&mut self, profile: &Profile) {
        if self.all_metrics {
            let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
            self.metrics = Metric::available(&names);
        }
        self.settle_latency(profile);
        self.show_weight = profile.events.iter().any(|event| event.counted.is_some());
        if profile.events.iter().all(|event| event.is_tracepoint) {
            let default = match profile.fields.is_empty() || self.sort.is_some() {
                true => SortSpec::TRACEPOINTS,
                // With --raw-trace.
                false => SortSpec::TRACE_FIELDS,
            };
            let default = SortSpec::parse(default, "").ok();
            self.default_sort = default.map(|sort| sort.with_fields(&profile.fields));
            let sort = self.sort.as_ref();
            self.sort = sort.map(|sort| sort.with_default(SortSpec::TRACEPOINTS));
        }
        let sort = self.sort.as_ref();
        self.sort = sort.map(|sort| sort.with_fields(&profile.fields));
    }
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            show_threads: false,
            sort: None,
            fields: None,
            default_sort: None,
            children: true,
            call_graph: CallGraph::default(),
            percent_limit: 0.0,
            relative: false,
            show_samples: false,
            show_period: false,
            metrics: Vec::new(),
            all_metrics: false,
            show_weight: false,
            show_cpu_utilization: false,
            separator: None,
            column_widths: Vec::new(),
            filter: SampleFilter::default(),
            symbol_filter: None,
            hide_unresolved: false,
            exclude_other: false,
            parent: None,
            ignore_callees: None,
            max_stack: 127,
            group: Grouping::AsRecorded,
            group_sort_index: None,
            hierarchy: false,
            quiet: false,
            verbose: 0,
            full_source_path: false,
            nanoseconds: false,
            latency: Latency::Off,
            parallelism: None,
            header: false,
            skip_empty: true,
            requires_chains: false,
            time: None,
            color: false,
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

/// The argument of `--call-graph` and what `-G` adds.
#[derive(Debug, Clone, PartialEq)]
pub struct CallGraph {
    /// Style.
    pub mode: CallGraphMode,
    /// Which end comes first; `None` as perf chooses: callers first with children, else callees.
    pub order: Option<ChainOrder>,
    /// What makes two frames the same.
    pub key: ChainKey,
    /// What branches are labelled with.
    pub value: ChainValue,
    /// Branches below this share are not shown, in percent.
    pub threshold: f64,
    /// Branches for each node; 0 is no limit.
    pub print_limit: u32,
}

impl Default for CallGraph {
    fn default() -> Self {
        Self {
            mode: CallGraphMode::Graph,
            order: None,
            key: ChainKey::Function,
            value: ChainValue::Percent,
            threshold: 0.5,
            print_limit: 0,
        }
    }
}

/// How chains below a row are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraphMode {
    /// Not at all.
    None,
    /// A tree, shares of the whole event.
    Graph,
    /// A tree, shares of the parent.
    Fractal,
    /// Chain after chain.
    Flat,
    /// One line for each chain.
    Folded,
}

/// Which end of a chain comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainOrder {
    /// Outermost first.
    Caller,
    /// Leaf first.
    Callee,
}

/// What makes two frames the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainKey {
    /// The function.
    Function,
    /// The address.
    Address,
    /// The source line.
    Srcline,
}

/// What branches are labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainValue {
    /// Share.
    Percent,
    /// Sum of periods.
    Period,
    /// Number of chains.
    Count,
}

/// A part of `--call-graph`'s argument that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallGraphError {
    /// Means nothing in perf either.
    #[error(
        "--call-graph: `{0}` is no type (graph, flat, fractal, folded, none), order (caller, callee), key (function, \
         address, srcline), value (percent, period, count) or number"
    )]
    Unknown(String),
    /// Branches of last-branch records in call graphs.
    #[error(
        "--call-graph: perf report has `branch`, pjit does not: it does not show branch records"
    )]
    Branch,
}

/// perf's meaning of a bare `-g`.
pub const BARE_CALL_GRAPH: &str = "graph,0.5,caller,function,percent";

impl CallGraph {
    /// Applies one `--call-graph` argument on top of what is set already, as perf does when the option
    /// is repeated. Returns whether it set the threshold.
    ///
    /// # Errors
    ///
    /// When a part is neither a word that perf knows nor a number, or asks for branches.
    pub fn apply(&mut self, argument: &str) -> Result<bool, CallGraphError> {
        let mut has_threshold = false;
        if self.mode == CallGraphMode::None && !argument.is_empty() {
            self.mode = CallGraphMode::Graph;
        }
        for word in argument.split(',').filter(|word| !word.is_empty()) {
            if "none".starts_with(word) {
                self.mode = CallGraphMode::None;
                return Ok(has_threshold);
            }
            if self.apply_word(word) {
                continue;
            }
            if "branch".starts_with(word) {
                return Err(CallGraphError::Branch);
            }
            let unknown = || CallGraphError::Unknown(word.to_owned());
            if has_threshold {
                self.print_limit = leading_number(word).ok_or_else(unknown)? as u32;
            } else {
                self.threshold = leading_number(word).ok_or_else(unknown)?;
                has_threshold = true;
            }
        }
        Ok(has_threshold)
    }

    fn apply_word(&mut self, word: &str) -> bool {
        let is = |name: &str| name.starts_with(word);
        match () {
            () if is("graph") => self.mode = CallGraphMode::Graph,
            () if is("flat") => self.mode = CallGraphMode::Flat,
            () if is("fractal") => self.mode = CallGraphMode::Fractal,
            () if is("folded") => self.mode = CallGraphMode::Folded,
            () if is("caller") => self.order = Some(ChainOrder::Caller),
            () if is("callee") => self.order = Some(ChainOrder::Callee),
            () if is("function") => self.key = ChainKey::Function,
            () if is("address") => self.key = ChainKey::Address,
            () if is("srcline") => self.key = ChainKey::Srcline,
            () if is("percent") => self.value = ChainValue::Percent,
            () if is("period") => self.value = ChainValue::Period,
            () if is("count") => self.value = ChainValue::Count,
            () => return false,
        }
        true
    }
}

/// The number at the start of a word, as `strtod` reads it.
fn leading_number(word: &str) -> Option<f64> {
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    word[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_graph_parts_come_in_any_order_and_may_be_cut() {
        let mut graph = CallGraph::default();
        assert_eq!(graph.apply("callee,fr,3,2,cou"), Ok(true));
        let expected = CallGraph {
            mode: CallGraphMode::Fractal,
            order: Some(ChainOrder::Callee),
            value: ChainValue::Count,
            threshold: 3.0,
            print_limit: 2,
            ..CallGraph::default()
        };
        assert_eq!(graph, expected);
        assert_eq!(graph.apply("none"), Ok(false));
        assert_eq!(graph.mode, CallGraphMode::None);
        assert_eq!(graph.apply("branch"), Err(CallGraphError::Branch));
    }
}
