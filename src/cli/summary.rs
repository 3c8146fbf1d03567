//! `pjit summary`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::input::{InputArgs, SeveralArgs};
use super::page::Page;
use super::question::{PrintArgs, QuestionArgs};
use super::verb::{Context, Verb, wrong_usage};
use crate::ask::Summary;
use crate::output::answer::Format;
use crate::output::summary::By;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit summary", ""),
        ("pjit summary server/perf.data --by package", "who pays"),
        (
            "pjit summary --own '^myapp::' --budget 100",
            "my code, 100 lines",
        ),
        ("pjit summary --over-time", "when it stalls"),
        ("pjit summary --format json | jq '.functions[0]'", ""),
        ("pjit summary --format csv --table own > own.csv", ""),
    ],
    short: &[
        "by",
        "over-time",
        "own",
        "not-own",
        "package",
        "weight",
        "event",
        "format",
        "budget",
    ],
    notes: "Own code is written by the program's authors. In compiled programs it is the executable without its standard library. In runtimes it is the code they run, without libraries and packages.\n\nA function is credited with the samples in which it is the innermost own frame. It pays for libraries and the kernel below. Credited time and time without an own frame add up to the total.",
};

/// Arguments of `pjit summary`.
#[derive(Debug, Clone, Args)]
pub struct SummaryArgs {
    /// Recordings to read, added up [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    several: SeveralArgs,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    question: QuestionArgs,

    #[command(flatten)]
    print: PrintArgs,

    /// Show one table: package, activity, own, process, cgroup, host, line
    #[arg(
        long = "by",
        value_enum,
        value_name = "WHAT",
        hide_possible_values = true
    )]
    by: Option<By>,

    /// Show when: long spells in one function, phases, times without CPU
    #[arg(long = "over-time", conflicts_with_all = ["by", "table"])]
    over_time: bool,

    /// Table to print as CSV [default: own, or the one of --by]
    #[arg(
        long = "table",
        value_name = "TABLE",
        value_parser = ["self", "own", "foreign", "packages", "activities"],
        conflicts_with = "by"
    )]
    table: Option<String>,

    /// In JSON, add all edges between functions
    #[arg(long = "edges")]
    edges: bool,
}

impl Verb for SummaryArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let load = self
            .several
            .load_options(&self.files, &self.input, context.environment)
            .map_err(wrong_usage)?;
        let view = Summary {
            full_names: self.print.full_names,
            small: matches!(self.print.format, Format::Json | Format::Csv),
            edges: self.edges,
            by: self.by,
            over_time: self.over_time,
            is_part: false,
            table: self.table.clone().unwrap_or_else(|| {
                let table = match self.by {
                    Some(By::Package) => "packages",
                    Some(By::Activity) => "activities",
                    Some(By::Process) => "processes",
                    Some(By::Cgroup) => "cgroups",
                    Some(By::Host) => "hosts",
                    Some(By::Line) => "lines",
                    Some(By::Own) | None => "own",
                };
                table.to_owned()
            }),
        };
        let request = self.question.request(load, &self.input, view);
        let status = |_: &_| ExitCode::SUCCESS;
        self.print.answer(request, context.diag, status)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    fn takes_several(&self) -> bool {
        true
    }
}

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Package,
            Self::Activity,
            Self::Own,
            Self::Process,
            Self::Cgroup,
            Self::Host,
            Self::Line,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Package => "package",
            Self::Activity => "activity",
            Self::Own => "own",
            Self::Process => "process",
            Self::Cgroup => "cgroup",
            Self::Host => "host",
            Self::Line => "line",
        }))
    }
}
