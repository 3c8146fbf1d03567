//! `pjit peek`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::{InputArgs, SeveralArgs};
use super::page::Page;
use super::question::{PrintArgs, QuestionArgs};
use super::verb::{Context, Verb, require_function, wrong_usage};
use crate::ask::Peek;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit peek malloc", ""),
        ("pjit peek parse --depth 3", "three levels of callers"),
        ("pjit peek '^core::fmt::' server/perf.data --budget 40", ""),
        ("pjit peek f:3c9a12e0 --format json", "by its id in JSON"),
    ],
    short: &["depth", "weight", "event", "format", "budget"],
    notes: "The first percentage is of the function's inclusive weight, the second of the total. An edge counts once for each sample. A recursive function is its own caller and callee, and then edges overlap.",
};

/// Arguments of `pjit peek`.
#[derive(Debug, Clone, Args)]
pub struct PeekArgs {
    /// Name of a function, its id in JSON, or a regular expression
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// Recordings to read, added up [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    several: SeveralArgs,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// Show N levels of callers and callees
    #[arg(long = "depth", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    depth: u16,

    #[command(flatten)]
    question: QuestionArgs,

    #[command(flatten)]
    print: PrintArgs,
}

impl Verb for PeekArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let is_named = !self.files.is_empty() || !self.input.input.is_empty();
        require_function("peek", &self.function, is_named)?;
        let load = self
            .several
            .load_options(&self.files, &self.input, context.environment)
            .map_err(wrong_usage)?;
        let view = Peek {
            function: self.function.clone(),
            depth: usize::from(self.depth),
            full_names: self.print.full_names,
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
