//! `pjit diff`.

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::input::InputArgs;
use super::page::Page;
use super::question::PrintArgs;
use super::sides::RunArgs;
use super::verb::{Context, Verb};
use crate::ask::{Comparing, ToTime};
use crate::questions::compare::{Method, Normalize};
use crate::questions::runs::By;
use crate::time_spec::{TimeError, TimeSpec};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit diff old.data new.data", ""),
        ("pjit diff base/ --to new/", "several runs, in folders"),
        (
            "pjit diff perf.data --time +1,+2 --to-time rest",
            "one time against the rest",
        ),
        (
            "pjit diff base-*.data --to new-*.data --by self --format json",
            "",
        ),
    ],
    short: &[
        "to",
        "to-time",
        "by",
        "normalize",
        "paired",
        "own",
        "weight",
        "event",
        "format",
        "budget",
    ],
    notes: "Functions are matched by clean name and object, whatever their folder, process, address or tier. Seconds are means of a run. The ratio is new to base after the common factor: by how much everything became slower or faster.\n\nVerdicts are slower, faster, new and gone, or more and less for bytes. They come from a t test (q at most 0.05). Two runs of each give unsure, one run gives large. Record at least three runs of each, in turns. To see 20 %, record ten.",
};

/// Arguments of `pjit diff`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("input", |arg| arg.hide(true)),
    override_usage = "pjit diff [OPTIONS] BASE NEW
       pjit diff [OPTIONS] BASE... --to NEW...")]
pub struct DiffArgs {
    #[command(flatten)]
    runs: RunArgs,

    /// Compare this time of NEW, or of BASE where it stands alone, with --time of BASE; 'rest' is all but that
    #[arg(
        long = "to-time",
        value_name = "RANGE",
        requires = "when",
        allow_hyphen_values = true
    )]
    to_time: Option<String>,

    #[command(flatten)]
    method: MethodArgs,

    #[command(flatten)]
    print: PrintArgs,
}

/// How to compare.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Comparison")]
pub struct MethodArgs {
    /// Compare credited, self, package or activity
    #[arg(
        long = "by",
        value_enum,
        value_name = "WHAT",
        default_value_t = By::Credited,
        hide_possible_values = true
    )]
    by: By,

    /// Take out that whole runs were slower: none, total, median [default: median; total with --to-time; of bytes and other amounts none]
    #[arg(
        long = "normalize",
        value_enum,
        value_name = "HOW",
        hide_possible_values = true
    )]
    normalize: Option<Normalize>,

    /// Pair runs in the order of time (default if they alternate)
    #[arg(long = "paired", overrides_with = "no_paired")]
    paired: bool,

    /// Don't pair runs
    #[arg(long = "no-paired")]
    no_paired: bool,
}

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Credited => "Own functions by what is credited to them",
            Self::Own => "All functions by self",
            Self::Package => "Packages by what they pay for",
            Self::Activity => "What is done: GC, parsing, locks",
        };
        Some(PossibleValue::new(self.word()).help(help))
    }
}

impl ValueEnum for Normalize {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::None, Self::Total, Self::Median]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, help) = match self {
            Self::None => ("none", "Nothing: the machine's moods count as noise"),
            Self::Total => ("total", "The totals of the runs"),
            Self::Median => (
                "median",
                "What the functions that did not change take in each run",
            ),
        };
        Some(PossibleValue::new(word).help(help))
    }
}

impl MethodArgs {
    /// As the comparison takes it.
    #[must_use]
    pub fn method(&self) -> Method {
        Method {
            by: self.by,
            normalize: self.normalize,
            paired: match (self.paired, self.no_paired) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            ..Method::default()
        }
    }
}

impl DiffArgs {
    /// What of new recordings is looked at, and how that is said.
    fn to_time(&self) -> Result<Option<(ToTime, String)>, String> {
        let Some(to) = &self.to_time else {
            return Ok(None);
        };
        let time = if to == "rest" {
            ToTime::Rest
        } else {
            let time = TimeSpec::parse(to);
            let wrong = |error: TimeError| error.to_string().replacen("--time", "--to-time", 1);
            ToTime::Another(time.map_err(wrong)?)
        };
        // Filters say of phases themselves.
        let of = self.runs.times().time();
        let of = of.map_or_else(String::new, |of| format!("--time {of} "));
        Ok(Some((time, format!("{of}--to-time {to}"))))
    }
}

impl Verb for DiffArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let paths = self.runs.paths(true, self.to_time.is_some());
        let request = paths.and_then(|(base, new)| {
            let view = Comparing {
                base,
                new,
                to_time: self.to_time()?,
                method: self.method.method(),
                full_names: self.print.full_names,
            };
            self.runs.request(context.environment, view)
        });
        let status = |_: &_| ExitCode::SUCCESS;
        self.print.answer(request, context.diag, status)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.runs.input)
    }
}
