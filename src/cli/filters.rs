//! Filters that all views of a profile share: those of samples with perf's names, those of stacks with pprof's.

use clap::Args;
use regex::{Regex, RegexSet};

use crate::functions::filter::{Filters, Parent, Patterns, Tag};
use crate::load::{LoadOptions, SwitchNames};
use crate::profile::SampleFilter;
use crate::span_spec::{Pair, Slowest, Spans};
use crate::time_spec::{TimeSpec, parse_cpus, parse_phases};

/// Which samples are looked at, by perf's options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct SampleFilterArgs {
    /// Only threads with these names
    #[arg(short = 'c', long = "comms", value_name = "COMM,...")]
    comms: Option<String>,

    /// Only these programs and libraries, by name or path
    #[arg(short = 'd', long = "dsos", value_name = "DSO,...")]
    dsos: Option<String>,

    /// Only these symbols, by name or address
    #[arg(short = 'S', long = "symbols", value_name = "SYMBOL,...")]
    symbols: Option<String>,

    /// Only these CPUs, such as 0-2,5
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    cpu: Option<String>,

    /// Only the CPUs of this socket
    #[arg(long = "socket-filter", value_name = "N")]
    socket: Option<i32>,

    #[command(flatten)]
    pub(super) when: WhenArgs,
}

/// When samples that are looked at were taken.
#[derive(Debug, Clone, Default, Args)]
pub struct WhenArgs {
    #[command(flatten)]
    pub(super) times: TimeArgs,

    #[command(flatten)]
    spans: SpanArgs,
}

impl WhenArgs {
    /// These filters with phases and spans. Other times are left out of what is read.
    ///
    /// # Errors
    /// When an option means nothing.
    pub(super) fn apply(
        &self,
        load: &mut LoadOptions,
        filters: Filters,
    ) -> Result<Filters, String> {
        Ok(Filters {
            phases: self.times.apply(load)?,
            spans: self.spans.spans()?,
            ..filters
        })
    }
}

/// Which spans of threads are looked at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct SpanArgs {
    /// Only from event A to event B of a thread: 'A..B' or 'A..B by FIELD'
    #[arg(long = "between", value_name = "A..B", conflicts_with = "within")]
    between: Option<String>,

    /// The same, but only the spans that --slowest says
    #[arg(long = "within", value_name = "A..B", requires = "slowest")]
    within: Option<String>,

    /// With --within: 1%, a number of spans, or >30ms
    #[arg(long = "slowest", value_name = "HOW", requires = "within")]
    slowest: Option<String>,
}

impl SpanArgs {
    /// The spans, if not everything is looked at.
    ///
    /// # Errors
    /// When an option means nothing.
    fn spans(&self) -> Result<Option<Spans>, String> {
        let within = self.within.as_ref().map(|text| ("--within", text));
        let between = self.between.as_ref().map(|text| ("--between", text));
        let Some((option, text)) = within.or(between) else {
            return Ok(None);
        };
        let slowest = self.slowest.as_ref().map(|given| {
            let slowest = Slowest::parse(given)?;
            Ok::<_, String>((slowest, given.clone()))
        });
        Ok(Some(Spans {
            pair: Pair::parse(text).map_err(|error| format!("{option}: {error}"))?,
            text: text.clone(),
            slowest: slowest.transpose()?,
        }))
    }
}

/// Which time is looked at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
#[group(id = "when", multiple = false)]
pub struct TimeArgs {
    /// Only this time: START,STOP; +1,+2 from the start; 10%-20%
    #[arg(long = "time", value_name = "RANGE", allow_hyphen_values = true)]
    time: Option<String>,

    /// Only these phases of summary --over-time
    #[arg(long = "phase", value_name = "N,...")]
    phase: Option<String>,
}

impl TimeArgs {
    /// What `--time` says.
    pub(super) fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// Which time is read; the phases, since only who has read a recording knows their times.
    ///
    /// # Errors
    /// When a range or a phase is none.
    fn apply(&self, load: &mut LoadOptions) -> Result<Vec<usize>, String> {
        let time = self.time.as_deref().map(TimeSpec::parse).transpose();
        load.time = time.map_err(|error| error.to_string())?;
        let phases = self.phase.as_deref().map(parse_phases).transpose()?;
        Ok(phases.unwrap_or_default())
    }
}

impl SampleFilterArgs {
    /// Which samples are wanted, and leaves the others on time and CPU out of what is read.
    ///
    /// # Errors
    /// When a list of CPUs or a range of time is none.
    pub fn apply(&self, load: &mut LoadOptions) -> Result<SampleFilter, String> {
        if let Some(list) = &self.cpu {
            load.filter.cpus = parse_cpus(list)?;
        }
        let socket = self.socket.filter(|socket| *socket >= 0);
        Ok(SampleFilter {
            comms: names(self.comms.as_deref()),
            dsos: names(self.dsos.as_deref()),
            symbols: names(self.symbols.as_deref()),
            socket,
            ..SampleFilter::default()
        })
    }
}

/// The distinct names of a comma list.
fn names(list: Option<&str>) -> Option<Vec<String>> {
    let mut names: Vec<String> = list?
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// Events between which samples are looked at, by perf's options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct SwitchArgs {
    /// Only samples behind this event, of any thread
    #[arg(long = "switch-on", value_name = "EVENT")]
    on: Option<String>,

    /// Only samples before this event, until --switch-on comes again
    #[arg(long = "switch-off", value_name = "EVENT")]
    off: Option<String>,

    /// Show the events of --switch-on and --switch-off too
    #[arg(long = "show-on-off-events")]
    shows: bool,
}

impl SwitchArgs {
    /// Leaves other samples out of what is read; `of_any_cpu` is whether events on other CPUs count.
    pub(super) fn apply(&self, load: &mut LoadOptions, of_any_cpu: bool) {
        load.switch = SwitchNames {
            on: self.on.clone(),
            off: self.off.clone(),
            shows: self.shows,
            of_any_cpu,
        };
    }
}

/// Which tasks are looked at, by perf's options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct TaskFilterArgs {
    /// Only these processes
    #[arg(long = "pid", value_name = "PID,...", value_delimiter = ',')]
    pub(super) pids: Option<Vec<u32>>,

    /// Only these threads
    #[arg(long = "tid", value_name = "TID,...", value_delimiter = ',')]
    pub(super) tids: Option<Vec<u32>>,
}

/// The other filters of perf's report. Its `--parallelism` is not among them: it asks each sample, and other views merge them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
struct NameFilterArgs {
    /// Only samples whose symbol contains this text
    #[arg(long = "symbol-filter", value_name = "TEXT")]
    symbol_filter: Option<String>,

    /// Only samples with a parent frame: ^sys_, ^do_page_fault or --parent
    #[arg(short = 'x', long = "exclude-other")]
    exclude_other: bool,

    /// Frames that count as parents for --exclude-other
    #[arg(
        short = 'p',
        long = "parent",
        value_name = "REGEX",
        requires = "exclude_other"
    )]
    parent: Option<Regex>,

    /// Leave out samples and frames without a symbol
    #[arg(short = 'U', long = "hide-unresolved")]
    hide_unresolved: bool,
}

impl NameFilterArgs {
    fn apply(&self, samples: SampleFilter) -> SampleFilter {
        SampleFilter {
            symbol_part: self.symbol_filter.clone(),
            resolved: self.hide_unresolved,
            ..samples
        }
    }

    fn with_parent(&self, filters: Filters) -> Filters {
        let parent = self.parent.clone().map_or(Parent::Usual, Parent::Matching);
        Filters {
            parent: self.exclude_other.then_some(parent),
            ..filters
        }
    }
}

/// All filters.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArgs {
    #[command(flatten)]
    samples: SampleFilterArgs,

    #[command(flatten)]
    names: NameFilterArgs,

    #[command(flatten)]
    tasks: TaskFilterArgs,

    #[command(flatten)]
    stacks: StackFilterArgs,
}

/// All filters, where `--pid` and `--tid` without a list say how stacks begin.
#[derive(Debug, Clone, Default, Args)]
pub struct MarkedFilterArgs {
    #[command(flatten)]
    samples: SampleFilterArgs,

    #[command(flatten)]
    names: NameFilterArgs,

    #[command(flatten)]
    tasks: MarkedTaskArgs,

    #[command(flatten)]
    stacks: StackFilterArgs,
}

#[derive(Debug, Clone, Default, Args)]
struct MarkedTaskArgs {
    /// Add the process id to the thread's name; with =PID,... only these processes
    #[arg(long, value_name = "PID,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pid: Option<Vec<u32>>,

    /// Add both ids to the thread's name; with =TID,... only these threads
    #[arg(long, value_name = "TID,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    tid: Option<Vec<u32>>,
}

impl MarkedFilterArgs {
    /// Whether the process id is put behind the comm.
    #[must_use]
    pub fn marks_pid(&self) -> bool {
        self.tasks.pid.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether process and thread id are put behind the comm.
    #[must_use]
    pub fn marks_tid(&self) -> bool {
        self.tasks.tid.as_ref().is_some_and(Vec::is_empty)
    }

    /// As [`FilterArgs::apply`].
    ///
    /// # Errors
    /// When one of them means nothing.
    pub fn apply(&self, load: &mut LoadOptions) -> Result<Filters, String> {
        let chosen = |list: &Option<Vec<u32>>| list.clone().filter(|list| !list.is_empty());
        let samples = SampleFilter {
            pids: chosen(&self.tasks.pid),
            tids: chosen(&self.tasks.tid),
            ..self.samples.apply(load)?
        };
        let filters = self.stacks.filters(self.names.apply(samples))?;
        let filters = self.samples.when.apply(load, filters)?;
        Ok(self.names.with_parent(filters))
    }
}

impl TaskFilterArgs {
    /// The samples of these tasks.
    #[must_use]
    pub fn filter(&self) -> SampleFilter {
        SampleFilter {
            pids: self.pids.clone(),
            tids: self.tids.clone(),
            ..SampleFilter::default()
        }
    }
}

impl FilterArgs {
    /// What says which time is looked at.
    pub(super) const fn times(&self) -> &TimeArgs {
        &self.samples.when.times
    }

    /// The filters; what they ask of CPU and time is left out when the recording is read.
    ///
    /// # Errors
    /// When one of them means nothing.
    pub fn apply(&self, load: &mut LoadOptions) -> Result<Filters, String> {
        let SampleFilter { pids, tids, .. } = self.tasks.filter();
        let samples = SampleFilter {
            pids,
            tids,
            ..self.samples.apply(load)?
        };
        let filters = self.stacks.filters(self.names.apply(samples))?;
        let filters = self.samples.when.apply(load, filters)?;
        Ok(self.names.with_parent(filters))
    }
}

/// Which samples are looked at, and which of their frames.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Samples and frames")]
pub struct StackFilterArgs {
    /// Only samples with a matching function, object or source file
    #[arg(long = "focus", value_name = "REGEX")]
    focus: Vec<String>,

    /// Drop samples with a matching frame
    #[arg(long = "ignore", value_name = "REGEX")]
    ignore: Vec<String>,

    /// Remove matching frames; their weight goes to their callers
    #[arg(long = "hide", value_name = "REGEX")]
    hide: Vec<String>,

    /// Keep only matching frames, or package=REGEX
    #[arg(long = "show", value_name = "REGEX")]
    show: Vec<String>,

    /// Begin stacks at the outermost matching frame; drop samples without one
    #[arg(long = "show-from", value_name = "REGEX")]
    show_from: Vec<String>,

    /// Only samples with this tag; KEY is comm, pid, tid, cpu, event, kind, package, activity, recording or host
    #[arg(long = "tagfocus", value_name = "KEY=REGEX")]
    tag_focus: Vec<String>,

    /// Drop samples with this tag
    #[arg(long = "tagignore", value_name = "KEY=REGEX")]
    tag_ignore: Vec<String>,
}

impl StackFilterArgs {
    /// The filters, with those of samples.
    ///
    /// # Errors
    /// When an expression is not one, or a tag is not known.
    pub fn filters(&self, samples: SampleFilter) -> Result<Filters, String> {
        let [(focus, tag_focus), (ignore, tag_ignore)] = [
            (&self.focus, &self.tag_focus),
            (&self.ignore, &self.tag_ignore),
        ]
        .map(|(names, tagged)| {
            let (mut tags, names): (Vec<String>, Vec<String>) =
                names.iter().cloned().partition(|text| is_paid(text));
            tags.splice(0..0, tagged.iter().cloned());
            (names, tags)
        });
        let (show_packages, show): (Vec<&String>, Vec<&String>) = self
            .show
            .iter()
            .partition(|text| text.starts_with("package="));
        let show: Vec<String> = show.into_iter().cloned().collect();
        let show_packages = show_packages
            .iter()
            .filter_map(|text| text.strip_prefix("package="));
        let show_packages: Vec<String> = show_packages.map(str::to_owned).collect();
        Ok(Filters {
            samples,
            parent: None,
            phases: Vec::new(),
            spans: None,
            focus: patterns(&focus),
            ignore: patterns(&ignore),
            hide: patterns(&self.hide),
            show: patterns(&show),
            show_packages: regexes("--show package", &show_packages)?,
            show_from: patterns(&self.show_from),
            tag_focus: tags("--tagfocus", &tag_focus)?,
            tag_ignore: tags("--tagignore", &tag_ignore)?,
        })
    }
}

/// Whether an expression is about a sample's payer or activity, not about names of frames.
fn is_paid(text: &str) -> bool {
    ["package=", "activity="]
        .iter()
        .any(|key| text.starts_with(key))
}

/// What names are searched for; nothing if the option was not given.
fn patterns(texts: &[String]) -> Option<Patterns> {
    (!texts.is_empty()).then(|| Patterns::of(texts))
}

/// Compiled expressions of an option; nothing if it was not given.
///
/// # Errors
/// When one is no expression; the text names the option.
pub fn regexes(option: &str, texts: &[String]) -> Result<Option<RegexSet>, String> {
    if texts.is_empty() {
        return Ok(None);
    }
    let problem = |error: regex::Error| {
        let text = error.to_string();
        let reason = text
            .lines()
            .last()
            .unwrap_or("")
            .trim_start_matches("error: ")
            .to_owned();
        format!("{option}: not a regular expression: {reason}")
    };
    RegexSet::new(texts).map(Some).map_err(problem)
}

fn tags(option: &str, texts: &[String]) -> Result<Vec<(Tag, Regex)>, String> {
    let tag = |text: &String| {
        let names = || Tag::ALL.map(|(name, _)| name).join(", ");
        let (key, pattern) = text
            .split_once('=')
            .ok_or_else(|| format!("{option} takes KEY=REGEX, not '{text}'"))?;
        let known = Tag::ALL.iter().find(|(name, _)| *name == key);
        let (_, tag) =
            known.ok_or_else(|| format!("{option} has no key '{key}': one of {}", names()))?;
        // Told by the same words as of the others.
        regexes(option, &[pattern.to_owned()])?;
        let regex = Regex::new(pattern).map_err(|error| format!("{option}: {error}"))?;
        Ok((*tag, regex))
    };
    texts.iter().map(tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_known_keys() {
        let ok = tags("--tagfocus", &["comm=^node$".to_owned()]).expect("a tag");
        assert_eq!(ok[0].0, Tag::Comm);
        for bad in ["comm", "x=y", "pid=("] {
            assert!(tags("--tagfocus", &[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_expression_is_told_in_one_line() {
        let told = regexes("--own", &["(".to_owned()]).expect_err("no expression");
        assert!(
            told.starts_with("--own: not a regular expression: ") && !told.contains('\n'),
            "{told}"
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

        /// Whatever is given: expressions, or one line that says why not, in memory and time that the library bounds.
        #[test]
        fn all_texts_are_expressions_or_told(
            texts in proptest::collection::vec(
                proptest::prop_oneof![
                    ".{0,24}",
                    r"[()\[\]{}*+?|\\^$.a-c0-9,:&<=!P-]{0,24}",
                    r"(\(\?i\)|\\p\{L\}|\\d\{999\}|\{1000\}|\(|\)|a|\\x\{110000\}|\[\^|\(\?P<n>){0,12}",
                ],
                0..3,
            ),
        ) {
            let told = regexes("--focus", &texts);
            proptest::prop_assert_eq!(texts.is_empty(), matches!(told, Ok(None)));
            if let Err(told) = told {
                proptest::prop_assert!(told.starts_with("--focus: not a regular expression: "));
                proptest::prop_assert!(told.lines().count() == 1, "{:?}", told);
            }
            let tag = |text: &String| format!("comm={text}");
            let tagged: Vec<String> = texts.iter().map(tag).collect();
            let _ = tags("--tagfocus", &tagged);
        }
    }
}
