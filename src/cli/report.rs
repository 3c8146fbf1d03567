//! `pjit report`: perf report's options in, plain structs out.
//!
//! Spelling, short forms and abbreviations are perf's. What comes out is a [`Request`] for a [`Report`].

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::callgraph::CallGraphArgs;
use super::filters::{SampleFilterArgs, StackFilterArgs, SwitchArgs, TaskFilterArgs};
use super::input::{Environment, InputArgs, SeveralArgs};
use super::page::Page;
use super::perf_only::PerfOnlyArgs;
use super::terminal::{Output, colored};
use super::verb::{answered, left_out, no_color, write_header, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};
use crate::ask::{Report, Request, forget_large};
use crate::load;
use crate::metrics::Metric;
use crate::output::stdio;
use crate::output::text::harmless;
use crate::profile::{Facet, SampleFilter};
use crate::report::keys::{FieldSpec, Key, SortSpec};
use crate::report::options::{Grouping, Latency, ReportOptions, RowsOf};
use crate::session::listing::Listing;
use crate::time_spec::{parse_cpus, parse_quantum};
use crate::weigh::Spec;

/// No column is wider, whatever is asked for: a row is one piece of memory.
const WIDEST: usize = 1 << 16;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit report", "with callers, as perf report"),
        (
            "pjit report --no-children -g none | head -n 40",
            "flat: where time is spent",
        ),
        (
            "pjit report --no-children -g caller",
            "which calls lead there",
        ),
        (
            "pjit report perf.data --percent-limit 0.5",
            "without small rows",
        ),
        (
            "pjit report --no-children -s dso,sym -t,",
            "for a spreadsheet",
        ),
        (
            "pjit report -s comm -F overhead,sample,comm",
            "exactly these columns",
        ),
        ("pjit report --header-only", "what was recorded, and where"),
    ],
    short: &[
        "sort",
        "fields",
        "children",
        "no-children",
        "call-graph",
        "percent-limit",
        "show-nr-samples",
        "hierarchy",
        "comms",
        "dsos",
        "symbols",
        "header",
    ],
    notes: "Keys of --sort and --fields: pjit help keys. Weights: pjit help weights.",
};

/// Arguments of `pjit report`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct ReportArgs {
    /// Recording [default: perf.data]; a second word filters symbols
    #[arg(value_name = "FILE", num_args = 0..=2)]
    words: Vec<OsString>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    #[command(flatten)]
    several: SeveralArgs,

    #[command(flatten)]
    rows: RowArgs,

    #[command(flatten)]
    weight: WeightArgs,

    #[command(flatten)]
    call_graph: CallGraphArgs,

    #[command(flatten)]
    chains: ChainArgs,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    stacks: StackFilterArgs,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    other: OtherArgs,

    #[command(flatten)]
    perf_only: PerfOnlyArgs,
}

/// What rows are and in which order.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rows")]
struct RowArgs {
    /// Keys of rows, such as dso,sym; +KEY adds one (pjit help keys)
    #[arg(short = 's', long = "sort", value_name = "KEYS")]
    sort: Option<String>,

    /// Columns, such as overhead,sym; +KEY adds one
    #[arg(short = 'F', long = "fields", value_name = "KEYS")]
    fields: Option<String>,

    /// Add the time of callees to callers (default)
    #[arg(long = "children", overrides_with = "no_children")]
    children: bool,

    /// Count only the function that was running
    #[arg(long = "no-children", overrides_with = "children")]
    no_children: bool,

    /// Show branches (default for perf record -b)
    #[arg(short = 'b', long = "branch-stack", overrides_with = "no_branch_stack")]
    branch_stack: bool,

    /// Show samples, also of perf record -b
    #[arg(long = "no-branch-stack", overrides_with = "branch_stack")]
    no_branch_stack: bool,

    /// Weigh samples by what their memory access cost (perf mem record)
    #[arg(long = "mem-mode")]
    mem_mode: bool,

    /// Percentages of the filtered samples, or of all
    #[arg(long = "percentage", value_name = "KIND", value_enum)]
    percentage: Option<Percentage>,

    /// Add rates with their error: ipc, branch-miss, cache-miss, mpki, ghz, EVENT/EVENT, ... [default: all]
    #[arg(
        long = "metrics",
        value_name = "LIST",
        num_args = 0..=1,
        default_missing_value = "",
        value_parser = metric_list,
        conflicts_with = "hierarchy"
    )]
    metrics: Option<MetricList>,

    /// Show shares of latency first: periods divided by the threads that ran
    #[arg(long = "latency")]
    latency: bool,

    /// Show fields of tracepoints by type, not as events print them
    #[arg(long = "raw-trace")]
    raw_trace: bool,

    /// Show a tree of the keys
    #[arg(long = "hierarchy")]
    hierarchy: bool,

    /// Show one table for a group of events, or for all
    #[arg(long = "group", overrides_with = "no_group")]
    group: bool,

    /// Show a table for each event
    #[arg(long = "no-group", overrides_with = "group")]
    no_group: bool,

    /// Order rows by this member of a group
    #[arg(long = "group-sort-idx", value_name = "N")]
    group_sort_index: Option<usize>,

    /// Steps of the key time, such as 10ms
    #[arg(long = "time-quantum", value_name = "TIME", value_parser = parse_quantum)]
    time_quantum: Option<u64>,

    /// Leave out events without samples (default)
    #[arg(long = "skip-empty", overrides_with = "no_skip_empty")]
    skip_empty: bool,

    /// List events without samples too
    #[arg(long = "no-skip-empty", overrides_with = "skip_empty", hide = true)]
    no_skip_empty: bool,
}

/// What `--metrics` asks for; nothing named is all.
#[derive(Debug, Clone)]
struct MetricList(Vec<Metric>);

fn metric_list(text: &str) -> Result<MetricList, String> {
    Metric::parse_list(text).map(MetricList)
}

/// What `--parallelism` asks for.
#[derive(Debug, Clone)]
struct Levels(Vec<u32>);

fn levels(text: &str) -> Result<Levels, String> {
    let none = |_| "takes numbers of threads such as 1-2,8".to_owned();
    let levels = parse_cpus(text).map_err(none)?;
    if levels.contains(&0) {
        Err("takes numbers of threads from 1 on".to_owned())
    } else {
        Ok(Levels(levels))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Percentage {
    Relative,
    Absolute,
}

/// What happens to chains before they are looked at.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Call graphs")]
struct ChainArgs {
    /// Use at most N frames of a chain, without inlined ones [default: 127]
    #[arg(long = "max-stack", value_name = "N")]
    max_stack: Option<usize>,

    /// Frames that count as parents, for the key parent
    #[arg(short = 'p', long = "parent", value_name = "REGEX")]
    parent: Option<regex::Regex>,

    /// Only samples with a parent frame
    #[arg(short = 'x', long = "exclude-other")]
    exclude_other: bool,

    /// Treat matching functions as leaves
    #[arg(long = "ignore-callees", value_name = "REGEX")]
    ignore_callees: Option<regex::Regex>,
}

/// Which samples are looked at.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Filters")]
struct FilterArgs {
    #[command(flatten)]
    samples: SampleFilterArgs,

    #[command(flatten)]
    switch: SwitchArgs,

    #[command(flatten)]
    tasks: TaskFilterArgs,

    /// Only rows whose symbol contains this text
    #[arg(long = "symbol-filter", value_name = "TEXT")]
    symbol_filter: Option<String>,

    /// Only samples while this number of threads ran, such as 1-2,8
    #[arg(long = "parallelism", value_name = "LIST", value_parser = levels)]
    parallelism: Option<Levels>,

    /// Leave out rows without a symbol
    #[arg(short = 'U', long = "hide-unresolved")]
    hide_unresolved: bool,
}

/// How it looks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Layout")]
struct LayoutArgs {
    /// Add a column with the number of samples
    #[arg(short = 'n', long = "show-nr-samples")]
    show_samples: bool,

    /// Add a column with the period
    #[arg(long = "show-total-period")]
    show_period: bool,

    /// Add columns with the share of kernel and user mode
    #[arg(long = "show-cpu-utilization")]
    show_cpu_utilization: bool,

    /// Separate columns with this text
    #[arg(short = 't', long = "field-separator", value_name = "TEXT")]
    separator: Option<String>,

    /// Widths of columns, in order
    #[arg(
        short = 'w',
        long = "column-widths",
        value_name = "N,...",
        value_delimiter = ','
    )]
    column_widths: Vec<usize>,

    /// Show times with nanoseconds
    #[arg(long = "ns")]
    nanoseconds: bool,

    /// Print whole paths of source files
    #[arg(long = "full-source-path")]
    full_source_path: bool,

    /// Print only rows
    #[arg(short = 'q', long = "quiet")]
    quiet: bool,

    /// Colours: auto, always or never
    #[arg(long = "color", visible_alias = "stdio-color", value_name = "WHEN", value_enum, num_args = 0..=1,
          default_missing_value = "always")]
    color: Option<When>,

    /// Print text, as pjit always does
    #[arg(long = "stdio")]
    stdio: bool,

    /// Don't use a pager
    #[arg(long = "no-pager")]
    no_pager: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum When {
    Auto,
    Always,
    Never,
}

impl When {
    /// `None` leaves it to the terminal.
    pub(super) const fn choice(self) -> Option<bool> {
        match self {
            Self::Auto => None,
            Self::Always => Some(true),
            Self::Never => Some(false),
        }
    }
}

/// Other things to print.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "About the recording")]
struct OtherArgs {
    /// Print the header before the report
    #[arg(long = "header")]
    header: bool,

    /// Print the header and no report
    #[arg(long = "header-only")]
    header_only: bool,

    /// Print the whole header
    #[arg(short = 'I', long = "show-info")]
    show_info: bool,

    /// Print numbers of records and samples
    #[arg(long = "stats")]
    stats: bool,

    /// Print processes and threads
    #[arg(long = "tasks")]
    tasks: bool,

    /// Print processes and their mappings
    #[arg(long = "mmaps")]
    mmaps: bool,

    /// Print counters of threads (perf record -s)
    #[arg(short = 'T', long = "threads")]
    threads: bool,

    #[arg(long = "pretty", value_name = "STYLE", value_parser = pretty, hide = true)]
    pretty: Option<()>,

    #[arg(long = "tui", hide = true)]
    tui: bool,

    #[arg(long = "gtk", hide = true)]
    gtk: bool,

    #[arg(long = "objdump", value_name = "PATH", hide = true)]
    objdump: Option<PathBuf>,

    #[arg(long = "addr2line", value_name = "PATH", hide = true)]
    addr2line: Option<PathBuf>,

    #[command(flatten)]
    annotation: AnnotationArgs,
}

/// Options of perf report that only its other displays look at.
#[derive(Debug, Clone, Args)]
struct AnnotationArgs {
    #[arg(short = 'M', long = "disassembler-style", hide = true)]
    disassembler_style: Option<String>,

    #[arg(long = "asm-raw", overrides_with = "no_asm_raw", hide = true)]
    asm_raw: bool,

    #[arg(long = "no-asm-raw", overrides_with = "asm_raw", hide = true)]
    no_asm_raw: bool,

    #[arg(long = "source", overrides_with = "no_source", hide = true)]
    source: bool,

    #[arg(long = "no-source", overrides_with = "source", hide = true)]
    no_source: bool,

    #[arg(long = "percent-type", hide = true)]
    percent_type: Option<String>,

    #[arg(long = "prefix", hide = true)]
    prefix: Option<String>,

    #[arg(long = "prefix-strip", hide = true)]
    prefix_strip: Option<String>,

    #[arg(long = "samples", hide = true)]
    samples: Option<u32>,
}

/// All that `pjit report` was told.
#[derive(Debug, Clone)]
pub struct ReportCommand {
    /// What is asked for.
    pub request: Request<Report>,
    /// Only the header block.
    pub header_only: bool,
    /// Instead of a profile, a listing of the recording.
    pub listing: Option<Listing>,
    /// Colours, if the command line decides.
    pub color: Option<bool>,
    /// Never a pager.
    pub no_pager: bool,
    /// What was accepted and has no effect, or was not understood: one line each for stderr.
    pub warnings: Vec<String>,
}

impl Verb for ReportArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let (environment, diag) = (context.environment, context.diag);
        let mut command = self.resolve(environment).map_err(wrong_usage)?;
        command.warnings.drain(..).for_each(|line| diag.warn(line));
        let pager = (!command.no_pager).then_some(environment.pager.as_str());
        let mut out = Output::open(pager);
        let request = &mut command.request;
        request.view.options.layout.color = colored(command.color, no_color());
        if command.header_only {
            return write_header(&request.load, out, diag);
        }
        if let Some(listing) = command.listing {
            let mut line = |text: &str| writeln!(out, "{}", harmless(text));
            load::list(listing, &request.load, diag, &mut line)??;
            out.finish()?;
            return Ok(ExitCode::SUCCESS);
        }
        let reported = answered(request, diag)?;
        let report = reported.build()?;
        stdio::write(&report, &mut out)?;
        let shortened = report
            .shortened()
            .filter(|_| self.chains.max_stack.is_none());
        if let Some((share, longest)) = shortened {
            let most = request.view.options.chains.max_stack;
            diag.warn(left_out(share, most, longest));
        }
        let is_empty = report.is_empty();
        forget_large(report);
        out.finish()?;
        forget_large(reported);
        if is_empty {
            let filters = &request.view.options.filters;
            let word = filters.symbol_filter.as_deref().unwrap_or("");
            let hint = if Path::new(word).is_file() {
                format!(" ('{word}' is taken for a part of symbols' names: name one recording)")
            } else {
                String::new()
            };
            diag.warn(format!(
                "no row is left: the filters or --percent-limit hide all of them{hint}"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    fn takes_several(&self) -> bool {
        true
    }
}

impl ReportArgs {
    /// What to load and what to show.
    ///
    /// # Errors
    ///
    /// When an argument means nothing; the text says which and what would.
    pub fn resolve(&self, environment: &Environment) -> Result<ReportCommand, String> {
        let config = environment.config(self.input.no_config);
        let mut warnings = Vec::new();
        let mut view = ReportOptions::default();
        warnings.extend(config.apply(&mut view));
        self.apply(&mut view)?;
        let words = &self.words;
        let (file, filter) = match self.input.input.is_empty() && !self.several.is_named() {
            false if words.len() > 1 => {
                let second = words[1].to_string_lossy();
                return Err(format!(
                    "report takes one symbol filter, not '{second}' too"
                ));
            }
            false => (None, words.first()),
            true => (words.first().map(PathBuf::from), words.get(1)),
        };
        if let Some(filter) = filter {
            view.filters.symbol_filter = Some(filter.to_string_lossy().into_owned());
        }
        let files: Vec<PathBuf> = file.into_iter().collect();
        let mut load = self
            .several
            .load_options(&files, &self.input, environment)?;
        view.layout.show_threads = self.other.threads;
        view.layout.threads = load.reading.threads;
        self.weight.apply(&mut load, self.input.force, false);
        if load.weight.spec != Spec::Period {
            keeps_periods(&view)?;
        }
        let filters = self.stacks.filters(SampleFilter::default())?;
        let filters = self.filters.samples.when.apply(&mut load, filters)?;
        let others = [
            (load.weight.spec != Spec::Period, "--weight"),
            (!filters.is_empty(), "filters such as --focus"),
            (view.columns.latency != Latency::Off, "--latency"),
        ];
        view.rows.of = self.compatible(view.rows.of, &others)?;
        let sort = view.columns.sort.as_ref();
        if let Some(word) = sort.and_then(|sort| sort.named.first())
            && !load.weight.spec.keeps_events()
        {
            return Err(format!(
                "--sort has no key '{word}': fields of tracepoints are no keys with --weight\nhint: pjit help keys"
            ));
        }
        self.filters.switch.apply(&mut load, true);
        load.full_header = self.other.show_info;
        view.filters.samples = SampleFilter {
            pids: self.filters.tasks.pids.clone(),
            tids: self.filters.tasks.tids.clone(),
            ..self.filters.samples.apply(&mut load)?
        };
        if view.columns.latency != Latency::Off && !filters.is_empty() {
            return Err("--latency and filters such as --focus exclude each other".to_owned());
        }
        warnings.extend(self.without_effect());
        let view = Report {
            options: view,
            raw_trace: self.rows.raw_trace,
        };
        Ok(ReportCommand {
            request: Request {
                filters,
                ..Request::of(load, view)
            },
            header_only: self.other.header_only,
            listing: self.listing()?,
            color: self.layout.color.and_then(When::choice),
            no_pager: self.layout.no_pager,
            warnings,
        })
    }

    /// What looks at periods or chains of samples needs samples.
    fn compatible(&self, of: RowsOf, others: &[(bool, &str)]) -> Result<RowsOf, String> {
        let Some((_, other)) = others.iter().find(|(is_given, _)| *is_given) else {
            return Ok(of);
        };
        match of {
            RowsOf::AsRecorded | RowsOf::Samples => Ok(RowsOf::Samples),
            RowsOf::Branches => Err(format!("-b and {other} exclude each other")),
            RowsOf::Accesses => Err(format!("--mem-mode and {other} exclude each other")),
        }
    }

    fn apply(&self, view: &mut ReportOptions) -> Result<(), String> {
        let (rows, chains, layout) = (&self.rows, &self.chains, &self.layout);
        view.chains.requires_chains = self.call_graph.apply(view);
        view.rows.of = self.rows_of()?;
        let default = view.rows.of.default_keys();
        if let Some(default) = default {
            view.columns.default_sort = SortSpec::parse(default, "").ok();
        }
        if let Some(keys) = &rows.sort {
            view.columns.sort = Some(
                SortSpec::parse(keys, default.unwrap_or(SortSpec::default_keys()))
                    .map_err(|error| error.to_string())?,
            );
        }
        if rows.hierarchy && rows.fields.is_some() {
            return Err("--hierarchy and --fields exclude each other".to_owned());
        }
        if let Some(keys) = &rows.fields {
            view.columns.fields = Some(FieldSpec::parse(keys).map_err(|error| error.to_string())?);
        }
        if let Some(MetricList(metrics)) = &rows.metrics {
            view.columns.metrics.clone_from(metrics);
            view.columns.all_metrics = metrics.is_empty();
        }
        if rows.children || rows.no_children {
            view.rows.children = rows.children;
        }
        // Callers are not credited with what accesses cost.
        view.rows.children &= view.rows.of != RowsOf::Accesses;
        view.rows.relative = matches!(rows.percentage, Some(Percentage::Relative));
        view.rows.hierarchy = rows.hierarchy;
        if rows.group {
            view.rows.group = Grouping::All;
        } else if rows.no_group {
            view.rows.group = Grouping::Separate;
        }
        view.rows.group_sort_index = rows.group_sort_index;
        if rows.skip_empty || rows.no_skip_empty {
            view.rows.skip_empty = rows.skip_empty;
        }
        if let Some(quantum) = rows.time_quantum {
            view.rows.time_quantum = quantum;
        }
        if let Some(most) = chains.max_stack {
            view.chains.max_stack = most;
        }
        view.chains.parent.clone_from(&chains.parent);
        view.filters.exclude_other = chains.exclude_other;
        view.chains
            .ignore_callees
            .clone_from(&chains.ignore_callees);
        view.columns.show_samples = layout.show_samples;
        view.columns.show_period = layout.show_period;
        view.columns.show_cpu_utilization = layout.show_cpu_utilization;
        let widths = layout.column_widths.iter();
        view.layout.column_widths = widths.map(|width| *width.min(&WIDEST)).collect();
        view.layout.separator = separator(layout.separator.as_deref())?;
        view.layout.nanoseconds = layout.nanoseconds;
        view.layout.full_source_path = layout.full_source_path;
        view.layout.quiet = layout.quiet;
        view.layout.verbose = self.input.verbose;
        view.layout.header = self.other.header;
        self.apply_filters(view);
        Ok(())
    }

    fn rows_of(&self) -> Result<RowsOf, String> {
        let rows = &self.rows;
        match (rows.branch_stack, rows.mem_mode) {
            (true, true) => Err("--mem-mode and -b exclude each other".to_owned()),
            (true, false) => Ok(RowsOf::Branches),
            (false, true) => Ok(RowsOf::Accesses),
            (false, false) if rows.no_branch_stack => Ok(RowsOf::Samples),
            (false, false) => Ok(RowsOf::AsRecorded),
        }
    }

    fn apply_filters(&self, view: &mut ReportOptions) {
        let filters = &self.filters;
        view.filters
            .symbol_filter
            .clone_from(&filters.symbol_filter);
        view.filters.hide_unresolved = filters.hide_unresolved;
        let levels = filters.parallelism.as_ref();
        view.filters.parallelism = levels.map(|Levels(levels)| levels.clone());
        view.columns.latency = self.latency(view);
        view.layout.time = filters.samples.when.times.time().map(str::to_owned);
    }

    /// As perf 7, where something is asked for that its older versions do not have; else as those.
    fn latency(&self, view: &ReportOptions) -> Latency {
        const KEYS: [Key; 3] = [
            Key::Latency,
            Key::LatencyChildren,
            Key::Facet(Facet::Parallelism),
        ];
        let (sort, fields) = (view.columns.sort.as_ref(), view.columns.fields.as_ref());
        let is_named = |key: &Key| {
            sort.is_some_and(|sort| sort.has(*key))
                || fields.is_some_and(|fields| fields.keys.contains(key))
        };
        match () {
            () if self.rows.latency => Latency::First,
            () if view.filters.parallelism.is_some() || KEYS.iter().any(is_named) => {
                Latency::Beside
            }
            () => Latency::Off,
        }
    }

    fn listing(&self) -> Result<Option<Listing>, String> {
        let other = &self.other;
        let asked = [
            (other.stats, Listing::Stats),
            (other.tasks, Listing::Tasks),
            (other.mmaps, Listing::Mmaps),
        ];
        let mut asked = asked
            .into_iter()
            .filter(|(is_asked, _)| *is_asked)
            .map(|(_, listing)| listing);
        match (asked.next(), asked.next()) {
            // perf's --mmaps lists tasks too.
            (Some(Listing::Tasks), Some(Listing::Mmaps)) => Ok(Some(Listing::Mmaps)),
            (_, Some(_)) => Err("--stats, --tasks and --mmaps exclude each other".to_owned()),
            (listing, None) => Ok(listing),
        }
    }

    /// One warning about options that scripts pass and that change nothing here.
    fn without_effect(&self) -> Option<String> {
        let other = &self.other;
        let given = [
            (other.tui, "--tui"),
            (other.gtk, "--gtk"),
            (other.objdump.is_some(), "--objdump"),
            (other.addr2line.is_some(), "--addr2line"),
            (
                other.annotation.disassembler_style.is_some(),
                "--disassembler-style",
            ),
            (
                other.annotation.asm_raw || other.annotation.no_asm_raw,
                "--asm-raw",
            ),
            (
                other.annotation.source || other.annotation.no_source,
                "--source",
            ),
            (other.annotation.percent_type.is_some(), "--percent-type"),
            (other.annotation.prefix.is_some(), "--prefix"),
            (other.annotation.prefix_strip.is_some(), "--prefix-strip"),
            (other.annotation.samples.is_some(), "--samples"),
        ];
        let given: Vec<&str> = given
            .iter()
            .filter(|(is_given, _)| *is_given)
            .map(|(_, name)| *name)
            .collect();
        (!given.is_empty()).then(|| {
            format!(
                "no effect here: {} (pjit prints text without annotation and needs no helper programs)",
                given.join(", ")
            )
        })
    }
}

/// What is made of the periods and the moments of samples, which weights take the place of.
fn keeps_periods(view: &ReportOptions) -> Result<(), String> {
    let fields = view.columns.fields.as_ref();
    let has_rates = view.columns.all_metrics
        || !view.columns.metrics.is_empty()
        || fields.is_some_and(|fields| !fields.metrics.is_empty());
    let what = match () {
        () if view.needs().contains(Facet::Parallelism.needs()) => "latency and parallelism",
        () if has_rates => "rates of events",
        () => return Ok(()),
    };
    Err(format!("--weight has no {what}"))
}

/// The style of `-T`'s list; pjit has perf's usual one.
fn pretty(style: &str) -> Result<(), String> {
    match style {
        "normal" => Ok(()),
        "raw" => Err("takes normal; pjit has no style raw".to_owned()),
        _ => Err("takes normal".to_owned()),
    }
}

fn separator(text: Option<&str>) -> Result<Option<String>, String> {
    match text {
        None => Ok(None),
        Some(text) if text.starts_with('.') => {
            Err("-t takes no dot: it replaces the separator inside names".to_owned())
        }
        Some("") => Ok(None),
        Some(text) => Ok(Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::ask::Question as _;
    use crate::load::Source;
    use crate::needs::Needs;
    use crate::report::options::{CallGraphMode, ChainOrder};

    #[derive(Debug, Parser)]
    #[command(infer_long_args = true)]
    struct Cli {
        #[command(flatten)]
        report: ReportArgs,
    }

    fn resolve(line: &str) -> Result<ReportCommand, String> {
        let words = std::iter::once("report").chain(line.split_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        cli.report.resolve(&Environment::default())
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_next_word_belongs_to_call_graph_unless_it_is_an_option() {
        let bare = resolve("-i x -g --no-children").expect("valid");
        assert_eq!(
            bare.request.view.options.chains.call_graph.order,
            Some(ChainOrder::Caller)
        );
        assert!(
            bare.request.view.options.filters.symbol_filter.is_none()
                && !bare.request.view.options.rows.children
        );
        let spec = resolve("-g callee,2 x").expect("valid");
        assert_eq!(
            (
                spec.request.view.options.chains.call_graph.order,
                spec.request.view.options.chains.call_graph.threshold
            ),
            (Some(ChainOrder::Callee), 2.0)
        );
        assert_eq!(spec.request.load.source, Source::File("x".into()));
        assert_eq!(
            resolve("-ng")
                .expect("valid")
                .request
                .view
                .options
                .chains
                .call_graph
                .order,
            Some(ChainOrder::Caller)
        );
        assert_eq!(
            resolve("-gnone")
                .expect("valid")
                .request
                .view
                .options
                .chains
                .call_graph
                .mode,
            CallGraphMode::None
        );
        assert!(resolve("-g perf.data").is_err());
    }

    #[test]
    fn the_later_threshold_wins() {
        let graph_last = resolve("--percent-limit 3 -g caller,2").expect("valid");
        assert_eq!(
            (
                graph_last.request.view.options.rows.percent_limit,
                graph_last.request.view.options.chains.call_graph.threshold
            ),
            (3.0, 2.0)
        );
        let limit_last = resolve("-g caller,2 --percent-limit=3").expect("valid");
        assert_eq!(
            limit_last.request.view.options.chains.call_graph.threshold,
            3.0
        );
    }

    #[test]
    fn words_are_a_file_and_a_filter() {
        let both = resolve("other.data malloc").expect("valid");
        assert_eq!(both.request.load.source, Source::File("other.data".into()));
        assert_eq!(
            both.request.view.options.filters.symbol_filter.as_deref(),
            Some("malloc")
        );
        assert_eq!(
            resolve("-i x malloc")
                .expect("valid")
                .request
                .view
                .options
                .filters
                .symbol_filter
                .as_deref(),
            Some("malloc")
        );
        assert!(resolve("-i x a b").is_err());
    }

    #[test]
    fn long_options_may_be_cut_where_that_is_unique() {
        assert!(
            !resolve("--no-ch")
                .expect("unique")
                .request
                .view
                .options
                .rows
                .children
        );
        assert!(
            resolve("--hier")
                .expect("unique")
                .request
                .view
                .options
                .rows
                .hierarchy
        );
        assert!(resolve("--sym x").is_err(), "symbols, symfs, symbol-filter");
        assert!(
            resolve("-n -n --children --no-children --no-children").is_ok(),
            "repetition is no error"
        );
    }

    #[test]
    fn options_of_perf_alone_are_named() {
        let error = resolve("--branch-history").expect_err("perf only");
        assert!(error.contains("pjit has no --branch-history"), "{error}");
        assert!(resolve("--total-cycles").is_err() && resolve("--itrace").is_err());
        assert_eq!(
            resolve("--tui --objdump /bin/objdump -M intel --samples 3")
                .expect("accepted")
                .warnings
                .len(),
            1
        );
    }

    #[test]
    fn only_what_is_shown_is_asked_for() {
        let flat = resolve("--no-children -g none").expect("valid").request;
        let chains = Needs::STACKS | Needs::INLINED | Facet::Cpu.needs();
        assert!(!flat.view.needs().intersects(chains));
        let full = resolve("-s sym,cpu,time,srcline --time-quantum 1ms")
            .expect("valid")
            .request;
        let wanted = Needs::STACKS | Facet::Cpu.needs() | Needs::LINES | Needs::TIME;
        assert!(full.view.needs().contains(wanted));
        assert_eq!(full.view.options.rows.time_quantum, 1_000_000);
        let shares = resolve("--time 10%/2").expect("valid");
        assert!(shares.request.load.time.is_some());
        assert!(resolve("--time 2,1").is_err());
    }

    #[test]
    fn lists_lose_what_is_said_twice_and_separators_are_checked() {
        let command = resolve("-d b,a,b -t \\t").expect("valid");
        // As perf, which knows no escapes here.
        assert_eq!(
            command.request.view.options.filters.samples.dsos,
            Some(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(
            command.request.view.options.layout.separator.as_deref(),
            Some("\\t")
        );
        assert!(
            resolve("-t .").is_err()
                && resolve("-C x").is_err()
                && resolve("-s phys_daddr").is_err()
        );
    }

    #[test]
    fn rows_are_samples_branches_or_accesses() {
        let of = |words: &str| resolve(words).map(|command| command.request.view.options.rows.of);
        assert_eq!(of(""), Ok(RowsOf::AsRecorded));
        assert_eq!(of("-b"), Ok(RowsOf::Branches));
        assert_eq!(of("-b --no-branch-stack"), Ok(RowsOf::Samples));
        assert_eq!(of("--no-branch-stack --branch-stack"), Ok(RowsOf::Branches));
        assert_eq!(of("--mem-mode --no-branch-stack"), Ok(RowsOf::Accesses));
        // Where chains or periods of samples are looked at, these are shown.
        for other in ["--focus x", "--weight samples", "--latency"] {
            assert_eq!(of(other), Ok(RowsOf::Samples), "{other}");
            for rows in ["-b", "--mem-mode"] {
                let error = of(&format!("{rows} {other}")).expect_err("no samples");
                assert!(error.contains("exclude each other"), "{error}");
            }
        }
        assert!(of("-b --mem-mode").is_err());
    }

    #[test]
    fn what_branches_are_asked_for_is_in_no_other_view() {
        let needs = |words: &str| {
            let request = resolve(words).expect("valid").request;
            request.view.needs()
        };
        let of_branches = Needs::BRANCHES | Needs::BRANCHES_AS_RECORDED | Facet::of_branches();
        assert!(!needs("--no-branch-stack").intersects(of_branches));
        assert!(!needs("--mem-mode").intersects(of_branches));
        assert!(needs("").contains(Needs::BRANCHES_AS_RECORDED | Facet::Cycles.needs()));
        assert!(needs("-b -s mispredict").contains(Facet::Mispredict.needs()));
        assert!(
            !needs("-b -s mispredict").intersects(Facet::Source.needs() | Facet::Cycles.needs())
        );
    }
}
