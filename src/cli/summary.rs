//! `pjit summary`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::input::InputArgs;
use super::question::{Asked, Format, PrintArgs, QuestionArgs, narrow, verdict};
use super::terminal::{Output, with_progress};
use super::verb::{Context, Verb, leave, wrong_usage};
use crate::check::Limits;
use crate::load::{self, LoadOptions};
use crate::output::json::{self, Common};
use crate::output::page::Page;
use crate::output::summary::{self, PageOptions};
use crate::output::{answer, stdio};
use crate::questions;
use crate::questions::edges::Edges;
use crate::questions::facts::Facts;
use crate::questions::filter::Filters;
use crate::questions::functions::Functions;
use crate::questions::kinds::OwnRules;
use crate::questions::summary::{Summary, Wanted};
use crate::questions::tally::Tally;

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

    /// Table to print as CSV: self, own or foreign
    #[arg(long = "table", value_name = "TABLE", default_value = "own", value_parser = ["self", "own", "foreign"])]
    table: String,

    /// All edges between functions, too, in JSON
    #[arg(long = "edges")]
    edges: bool,
}

/// The answer, and what the page says besides.
struct Answer {
    summary: Summary,
    quality: String,
    filter: Option<String>,
    json: Common,
}

impl Verb for SummaryArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let mut load =
            self.input
                .load_options(self.file.as_ref(), context.environment, questions::NEEDS);
        let (filters, rules) = match self.question.apply(&mut load, &self.input) {
            Ok(asked) => asked,
            Err(text) => return wrong_usage(&text),
        };
        let Answer {
            summary,
            quality,
            filter,
            mut json,
        } = self.answer(context, &load, &rules, &filters)?;
        json.warnings = context.diag.warnings();
        let options = |lines: usize| PageOptions {
            lines,
            full_names: self.print.full_names,
            quality: quality.clone(),
            filters: filter.clone(),
        };
        let page = |lines: usize| -> Page { summary::page(&summary, &options(lines)) };
        let mut out = Output::to(
            self.print.output.as_deref(),
            self.print.replace.force_output,
        )
        .context("output")?;
        let budget = self.print.budget.unwrap_or_default();
        match self.print.format {
            Format::Text => answer::write_text(&page, budget, &mut out)?,
            Format::Markdown => answer::write_markdown(&page, budget, &mut out)?,
            Format::Csv => summary::write_csv(&summary, &self.table, self.print.budget, &mut out)?,
            Format::Json => json::write(
                &|rows| json::summary(&summary, &json, rows),
                self.print.budget,
                &mut out,
            )?,
        }
        out.finish().context("output")?;
        leave(summary);
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl SummaryArgs {
    fn answer(
        &self,
        context: &Context<'_>,
        load: &LoadOptions,
        rules: &OwnRules,
        filters: &Filters,
    ) -> anyhow::Result<Answer> {
        let diag = context.diag;
        let (mut profile, evidence) = with_progress(diag, || load::load_examined(load, diag))?;
        let wanted = (self.question.event.as_deref(), self.question.idle);
        let Asked {
            event,
            idle,
            filter,
        } = narrow(&mut profile, wanted, (filters, rules))?;
        let verdict = verdict(&evidence, &profile[event], Limits::default());
        let functions = Functions::of(&profile, rules);
        let tally = Tally::of(&profile, &functions, event);
        if let (Some(own), true) = (&rules.own, tally.no_own == tally.total) {
            let what = own.patterns().join(", ");
            diag.warn(format!("--own {what}: no function with samples matches"));
        }
        let facts = Facts {
            idle,
            ..Facts::of(&profile, &tally, Some(&verdict))
        };
        let quality = stdio::quality_line(&profile);
        let edges = self
            .edges
            .then(|| Edges::of(&profile, &functions, &tally, None));
        let json = Common {
            quality: Some(json::quality(&profile)),
            edges: edges.map(|edges| edges.all),
            filters: filters.texts(),
            ..Common::default()
        };
        let wanted = Wanted {
            full_names: self.print.full_names,
            small: matches!(self.print.format, Format::Json | Format::Csv),
        };
        let summary = Summary::of(&profile, functions, tally, facts, wanted);
        leave(profile);
        Ok(Answer {
            summary,
            quality,
            filter,
            json,
        })
    }
}
