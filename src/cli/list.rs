//! `pjit list`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::annotate::{SourceArgs, source_roots};
use super::input::InputArgs;
use super::named::Named;
use super::page::Page;
use super::question::{PrintArgs, QuestionArgs};
use super::verb::{Context, Verb, require_function};
use crate::ask::List;
use crate::output::answer::Format;
use crate::questions::budget::Budget;

/// Lines of a page, if nothing else is said: a function that was asked for is wanted whole.
const LINES: usize = 400;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit list parse", ""),
        (
            "pjit list compress server/perf.data --source-root ~/src/server",
            "",
        ),
        ("pjit list '^core::fmt::' --budget 60", ""),
        ("pjit list f:3c9a12e0 --format json", "by its id in JSON"),
    ],
    short: &["source-root", "weight", "event", "format", "budget"],
    notes: "self was sampled in the line itself. With callees adds what the line calls. A sample counts once for a line. An inlined function has its own lines, and the line of its call in the function around it.",
};

/// Arguments of `pjit list`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("budget", |arg| arg.help("Print at most N lines, or Nc characters [default: 400]")))]
pub struct ListArgs {
    /// Name of a function, its id in JSON, or a regular expression
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// Recording to read [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    question: QuestionArgs,

    /// Where sources are.
    #[command(flatten)]
    sources: SourceArgs,

    #[command(flatten)]
    print: PrintArgs,
}

impl Verb for ListArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let is_named = self.file.is_some() || !self.input.input.is_empty();
        require_function("list", &self.function, is_named)?;
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let view = List {
            function: self.function.clone(),
            sources: self.sources.paths(&load),
            full_names: self.print.full_names,
        };
        let is_table = self.print.format == Format::Csv;
        let usual = (!is_table).then_some(Budget::Lines(LINES));
        let print = PrintArgs {
            budget: self.print.budget.or(usual),
            ..self.print.clone()
        };
        let request = self.question.request(load, &self.input, view);
        print.answer(request, context.diag, |_| ExitCode::SUCCESS)
    }

    fn named(&self) -> Vec<Named<'_>> {
        let roots = source_roots(self.sources.roots());
        self.input.named().into_iter().chain(roots).collect()
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}
