//! `pjit diff`.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::input::InputArgs;
use super::question::{Format, PrintArgs};
use super::runs::{Refused, RunArgs, Sides, require_comparable};
use super::terminal::{Output, with_progress};
use super::verb::{Context, Verb, wrong_usage};
use crate::check::Limits;
use crate::diagnostics::Diagnostics;
use crate::output::diff::{self, Diff};
use crate::output::json::{self, Common};
use crate::output::{answer, csv};
use crate::questions::compare::{Comparison, Method, Normalize, compare};
use crate::questions::runs::By;

/// Arguments of `pjit diff`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("input", |arg| arg.hide(true)),
    override_usage = "pjit diff [OPTIONS] BASE NEW
       pjit diff [OPTIONS] BASE... --to NEW...",
    after_help = "Functions are the same by their cleaned name and object, whatever directory, process, address or tier
they have. Seconds are means per run. The ratio is new to base after the common factor: what
everything became slower or faster by. slower, faster (of bytes more, less), new and gone are
changes by a t test (q at most 0.05); two runs of each give unsure, one run each gives large.
Record base and new by turns: three runs of each at least, ten to see 20 %.

Examples:
  pjit diff old.data new.data
  pjit diff base/ --to new/
  pjit diff base-*.data --to new-*.data --by self --format json"
)]
pub struct DiffArgs {
    #[command(flatten)]
    runs: RunArgs,

    #[command(flatten)]
    method: MethodArgs,

    #[command(flatten)]
    print: PrintArgs,
}

/// How to compare.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Comparison")]
pub struct MethodArgs {
    /// Compare what own functions pay for, or what all functions take themselves
    #[arg(long = "by", value_enum, value_name = "WHAT", default_value_t = ByArg::Credited)]
    by: ByArg,

    /// What takes out that a run, or all of them, were slower or faster
    #[arg(long = "normalize", value_enum, value_name = "HOW", default_value_t = NormalizeArg::Median)]
    normalize: NormalizeArg,

    /// Runs are pairs in the order of time (default: if they alternate)
    #[arg(long = "paired", overrides_with = "no_paired")]
    paired: bool,

    /// Runs are no pairs
    #[arg(long = "no-paired")]
    no_paired: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByArg {
    /// Own functions by what is credited to them
    Credited,
    /// All functions by self
    #[value(name = "self")]
    Own,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum NormalizeArg {
    /// Nothing: the machine's moods count as noise
    None,
    /// The totals of the runs
    Total,
    /// What the functions that did not change take in each run
    Median,
}

impl MethodArgs {
    /// As the comparison takes it.
    #[must_use]
    pub fn method(&self) -> Method {
        Method {
            by: match self.by {
                ByArg::Credited => By::Credited,
                ByArg::Own => By::Own,
            },
            normalize: match self.normalize {
                NormalizeArg::None => Normalize::None,
                NormalizeArg::Total => Normalize::Total,
                NormalizeArg::Median => Normalize::Median,
            },
            paired: match (self.paired, self.no_paired) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
        }
    }
}

impl Verb for DiffArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let paths = self.runs.paths(true);
        let reading = self
            .runs
            .reading(context.environment, Limits::default(), Vec::new());
        let ((base, new), reading) = match (paths, reading) {
            (Ok(paths), Ok(reading)) => (paths, reading),
            (Err(text), _) | (_, Err(text)) => return wrong_usage(&text),
        };
        let diag = context.diag;
        let mut sides = match with_progress(diag, || reading.read(&base, &new, diag)) {
            Ok(sides) => sides,
            Err(Refused::Usage(text)) => return wrong_usage(&text),
            Err(Refused::Error(error)) => return Err(error),
        };
        let method = self.method.method();
        if method.paired == Some(true) && sides.base.len() != sides.new.len() {
            return wrong_usage("--paired: as many new recordings as of the base");
        }
        require_comparable(&sides, diag)?;
        reading.look_up(&mut sides, method.by);
        let comparison = compare(&sides.base, &sides.new, method);
        warn(&sides, &comparison, diag);
        require_rows(&comparison, method.by)?;
        let answer = Diff {
            base: &sides.base,
            new: &sides.new,
            by: method.by,
            comparison: &comparison,
            filters: reading.filter_texts(),
            full_names: self.print.full_names,
        };
        self.write(&answer, diag)?;
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.runs.input)
    }
}

impl DiffArgs {
    fn write(&self, diff: &Diff<'_>, diag: &Diagnostics) -> anyhow::Result<()> {
        let mut out = Output::to(
            self.print.output.as_deref(),
            self.print.replace.force_output,
        )
        .context("output")?;
        let budget = self.print.budget.unwrap_or_default();
        let page = |lines: usize| diff::page(diff, lines);
        match self.print.format {
            Format::Text => answer::write_text(&page, budget, &mut out)?,
            Format::Markdown => answer::write_markdown(&page, budget, &mut out)?,
            Format::Csv => csv::write(&diff::csv_rows(diff), self.print.budget, &mut out)?,
            Format::Json => {
                let common = Common {
                    filters: diff.filters.clone(),
                    warnings: diag.warnings(),
                    ..Common::default()
                };
                json::write(
                    &|rows| diff::to_json(diff, &common, rows),
                    self.print.budget,
                    &mut out,
                )?;
            }
        }
        out.finish().context("output")
    }
}

/// What makes the comparison doubtful.
pub(super) fn warn(sides: &Sides, comparison: &Comparison, diag: &Diagnostics) {
    let (base, new) = comparison.matched;
    let low = [("base", base), ("new", new)]
        .map(|(side, share)| (share < 0.9).then(|| format!("{:.0}% of {side}", 100.0 * share)));
    let low: Vec<String> = low.into_iter().flatten().collect();
    if !low.is_empty() {
        diag.warn(format!(
            "only {} are in functions of both: other names, other programs?",
            low.join(" and ")
        ));
    }
    if let Some(path) = &sides.shared {
        diag.warn(format!(
            "{} is on both sides: it says nothing",
            path.display()
        ));
    }
    for run in sides
        .base
        .iter()
        .chain(&sides.new)
        .filter(|run| !run.facts.is_fit)
    {
        diag.warn(format!(
            "{}: not fit for conclusions (pjit check)",
            run.facts.path
        ));
    }
}

/// An empty table would look like "nothing changed".
pub(super) fn require_rows(comparison: &Comparison, by: By) -> anyhow::Result<()> {
    let hint = match by {
        By::Credited => "; --by self compares all functions, --own says what is mine",
        By::Own => "",
    };
    anyhow::ensure!(
        comparison.tested > 0,
        "no function is large enough to be compared (half a per cent, ten samples a run){hint}"
    );
    Ok(())
}
