//! `pjit summary`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::input::InputArgs;
use super::question::{PrintArgs, QuestionArgs};
use super::verb::{Context, Verb};
use crate::ask::Summary;
use crate::output::answer::Format;
use crate::output::summary::By;

/// Arguments of `pjit summary`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Own code is what the program's authors wrote: for compiled programs the main executable without its
standard library, for runtimes the guest's functions without its library and packages. Credited is
what a function pays for: samples in which it is the innermost own frame, wherever they were taken.
What is credited and what has no own frame add up to the total.

Examples:
  pjit summary
  pjit summary --own '^myapp::' --budget 100
  pjit summary server/perf.data --format json | jq '.functions[0]'
  pjit summary --format csv --table own > own.csv"
)]
pub struct SummaryArgs {
    /// Recording to read (default: perf.data)
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    question: QuestionArgs,

    #[command(flatten)]
    print: PrintArgs,

    /// One table alone, with all of its rows that there is room for: package, activity, own, process, cgroup or line
    #[arg(long = "by", value_enum, value_name = "WHAT")]
    by: Option<By>,

    /// Table to print as CSV: self, own, foreign, packages or activities (default: own, or what --by says)
    #[arg(
        long = "table",
        value_name = "TABLE",
        value_parser = ["self", "own", "foreign", "packages", "activities"],
        conflicts_with = "by"
    )]
    table: Option<String>,

    /// All edges between functions, too, in JSON
    #[arg(long = "edges")]
    edges: bool,
}

impl Verb for SummaryArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let view = Summary {
            full_names: self.print.full_names,
            small: matches!(self.print.format, Format::Json | Format::Csv),
            edges: self.edges,
            by: self.by,
            table: self.table.clone().unwrap_or_else(|| {
                let table = match self.by {
                    Some(By::Package) => "packages",
                    Some(By::Activity) => "activities",
                    Some(By::Process) => "processes",
                    Some(By::Cgroup) => "cgroups",
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
}

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Package,
            Self::Activity,
            Self::Own,
            Self::Process,
            Self::Cgroup,
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
            Self::Line => "line",
        }))
    }
}
