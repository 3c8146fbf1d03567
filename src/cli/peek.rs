//! `pjit peek`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::input::InputArgs;
use super::question::{Asked, Format, PrintArgs, QuestionArgs, narrow, verdict};
use super::terminal::{Output, with_progress};
use super::verb::{Context, Verb, leave, wrong_usage};
use crate::check::Limits;
use crate::ids::Idx;
use crate::load;
use crate::near::{Candidate, near};
use crate::output::json::{self, Common};
use crate::output::peek::{self, Peek};
use crate::output::{answer, csv, stdio};
use crate::questions;
use crate::questions::facts::Facts;
use crate::questions::functions::Functions;
use crate::questions::peek::{Block, block, matches};
use crate::questions::summary::labels;
use crate::questions::tally::Tally;

/// Arguments of `pjit peek`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "The first percentage is of the function's inclusive weight, the second of the total. An edge
counts once per sample; a function that calls itself is its own caller and callee, and then
edges overlap.

Examples:
  pjit peek malloc
  pjit peek '^core::fmt::' server/perf.data --budget 40
  pjit peek parse --depth 3
  pjit peek f:3c9a12e0 --format json"
)]
pub struct PeekArgs {
    /// Function: its name, its id in JSON, or an expression that finds it
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// Recording to read (default: perf.data)
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// Levels of callers and callees
    #[arg(long = "depth", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    depth: u16,

    #[command(flatten)]
    question: QuestionArgs,

    #[command(flatten)]
    print: PrintArgs,
}

/// Functions for which callers and callees are looked up at most.
const MOST: usize = 200;

impl Verb for PeekArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let mut load =
            self.input
                .load_options(self.file.as_ref(), context.environment, questions::NEEDS);
        let (filters, rules) = match self.question.apply(&mut load, &self.input) {
            Ok(asked) => asked,
            Err(text) => return wrong_usage(&text),
        };
        let diag = context.diag;
        let (mut profile, evidence) = with_progress(diag, || load::load_examined(&load, diag))?;
        let wanted = (self.question.event.as_deref(), self.question.idle);
        let Asked {
            event,
            idle,
            filter,
        } = narrow(&mut profile, wanted, (&filters, &rules))?;
        let functions = Functions::of(&profile, &rules);
        let tally = Tally::of(&profile, &functions, event);
        let labels = labels(&functions, self.print.full_names);
        let found = match matches(&profile, &functions, &tally, &labels, &self.function) {
            Ok(found) => found,
            Err(text) => return wrong_usage(&text),
        };
        let path = &profile.recording.path;
        if found.is_empty() {
            let names = functions.all.indices().map(|id| {
                let weight = tally.of_function(id).inclusive.period;
                Candidate {
                    name: &functions.get(id).identity.name.name,
                    shown: &labels[id.index()],
                    weight,
                }
            });
            let near = near(&self.function, names.filter(|one| one.weight > 0));
            let near = match near.as_slice() {
                [] => String::new(),
                near => format!("; nearest: {}", near.join(", ")),
            };
            anyhow::bail!("{path}: no function '{}'{near}", self.function);
        }
        let depth = usize::from(self.depth);
        let blocks: Vec<Block> = found
            .iter()
            .take(MOST)
            .map(|id| block(&profile, (&functions, &labels), &tally, *id, depth))
            .collect();
        if found.len() > MOST {
            diag.warn(format!(
                "{} functions match; the {MOST} heaviest are shown",
                found.len()
            ));
        }
        let verdict = verdict(&evidence, &profile[event], Limits::default());
        let facts = Facts {
            idle,
            ..Facts::of(&profile, &tally, Some(&verdict))
        };
        let quality = stdio::quality_line(&profile);
        let answer = Peek {
            facts: &facts,
            functions: &functions,
            labels: &labels,
            tally: &tally,
            blocks: &blocks,
            more: found.get(MOST..).map_or_else(Default::default, |more| {
                let most = more.first().map(|id| tally.of_function(*id).inclusive);
                (more.len(), most.unwrap_or_default())
            }),
            quality: &quality,
            filter,
            full_names: self.print.full_names,
        };
        let common = Common {
            quality: Some(json::quality(&profile)),
            filters: filters.texts(),
            warnings: diag.warnings(),
            ..Common::default()
        };
        self.write(&answer, &common)?;
        leave(profile);
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl PeekArgs {
    fn write(&self, peek: &Peek<'_>, common: &Common) -> anyhow::Result<()> {
        let mut out = Output::to(
            self.print.output.as_deref(),
            self.print.replace.force_output,
        )
        .context("output")?;
        let page = |lines: usize| peek::page(peek, lines);
        let budget = self.print.budget.unwrap_or_default();
        match self.print.format {
            Format::Text => answer::write_text(&page, budget, &mut out)?,
            Format::Markdown => answer::write_markdown(&page, budget, &mut out)?,
            Format::Csv => csv::write(&peek::csv_rows(peek), self.print.budget, &mut out)?,
            Format::Json => json::write(
                &|rows| peek::to_json(peek, common, rows),
                self.print.budget,
                &mut out,
            )?,
        }
        out.finish().context("output")
    }
}
