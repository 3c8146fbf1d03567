//! `pjit check`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::ask::{Check, Request};
use crate::check::Limits;
use crate::output::answer::{self, Format};
use crate::questions::budget::Budget;

use super::input::InputArgs;
use super::less::{Less, OfCheck};
use super::page::Page;
use super::question::parse_budget;
use super::report::When;
use super::terminal::{Output, colored};
use super::verb::{answered, finish_unless_closed, no_color};
use super::{Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit check", ""),
        (
            "pjit check --min-complete 99 --max-lost 0 && pjit report",
            "report only if it is good",
        ),
        (
            "pjit check server/perf.data --symfs server/root --kallsyms server/kallsyms",
            "",
        ),
        ("pjit check --strict | grep -v '^ok'", "only what is not ok"),
    ],
    short: &[
        "min-complete",
        "min-resolved",
        "max-lost",
        "min-samples",
        "strict",
        "event",
        "format",
        "color",
    ],
    notes: "Each line begins with ok, note, warn or FAIL, and the name of what was checked. A fix follows in an indented line. The recording is not fit if a line says FAIL: too few complete stacks, samples or names, or lost records.\n\nExit status: 0 fit, 3 not fit, 1 error, 2 wrong arguments.",
};

/// Arguments of `pjit check`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("strict", |arg| arg.help("Warnings make the recording unfit too (status 3)")))]
pub struct CheckArgs {
    /// Recording to read [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: Less<OfCheck>,

    #[command(flatten)]
    limits: LimitArgs,

    /// Judge the samples of this event [default: a clock or cycles]
    #[arg(long = "event", value_name = "NAME")]
    event: Option<String>,

    /// Print text, markdown, json or csv
    #[arg(
        long = "format",
        value_enum,
        value_name = "FORMAT",
        default_value_t = Format::Text,
        hide_possible_values = true
    )]
    format: Format,

    /// Print at most N lines, or Nc characters, as markdown, JSON or CSV
    #[arg(long = "budget", value_name = "N[c]", value_parser = parse_budget)]
    budget: Option<Budget>,

    /// Colours: auto, always or never
    #[arg(long = "color", value_name = "WHEN", value_enum, num_args = 0..=1, default_missing_value = "always")]
    color: Option<When>,
}

/// From where on a recording is not fit for conclusions.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// Demand this share of complete stacks, of frame-pointer chains too [default: 90, without these]
    #[arg(long = "min-complete", value_name = "PERCENT", value_parser = parse_percent)]
    min_complete: Option<f64>,

    /// Demand this share of samples with a name
    #[arg(long = "min-resolved", value_name = "PERCENT", value_parser = parse_percent, default_value = "90")]
    min_resolved: f64,

    /// Allow this share of lost samples or bytes
    #[arg(long = "max-lost", value_name = "PERCENT", value_parser = parse_percent, default_value = "5")]
    max_lost: f64,

    /// Demand this number of samples
    #[arg(long = "min-samples", value_name = "N", default_value_t = 30)]
    min_samples: u64,
}

impl LimitArgs {
    /// As `check` takes them.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        Limits {
            min_complete: self.min_complete,
            min_resolved: self.min_resolved,
            max_lost: self.max_lost,
            min_samples: self.min_samples,
        }
    }
}

/// Exit status for a recording that falls short of the limits.
const NOT_FIT: u8 = 3;

impl Verb for CheckArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let request = Request {
            limits: self.limits.limits(),
            event: self.event.clone(),
            ..Request::of(
                load,
                Check {
                    strict: self.input.strict,
                },
            )
        };
        let checked = answered(&request, context.diag)?;
        let mut out = Output::open(None);
        let written = if self.format == Format::Text {
            let color = self.color.and_then(When::choice);
            checked.write_text(colored(color, no_color()), &mut out)
        } else {
            answer::write(&checked, self.format, self.budget, &mut out)
        };
        finish_unless_closed(written, out)?;
        Ok(if checked.is_fit() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NOT_FIT)
        })
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    /// Here `--strict` is about the verdict.
    fn strict(&self) -> bool {
        false
    }
}

fn parse_percent(word: &str) -> Result<f64, String> {
    let number = word.strip_suffix('%').unwrap_or(word).parse::<f64>();
    match number {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number),
        _ => Err("takes a number from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_cent() {
        assert_eq!(parse_percent("99.5"), Ok(99.5));
        assert_eq!(parse_percent("0%"), Ok(0.0));
        for bad in ["", "%", "-1", "100.1", "NaN", "inf", "x"] {
            assert!(parse_percent(bad).is_err(), "{bad}");
        }
    }
}
