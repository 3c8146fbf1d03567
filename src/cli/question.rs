//! What the verbs that answer questions share: what is own, how much is printed and in which format.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use regex::Regex;

use super::filters::{FilterArgs, TimeArgs, regexes};
use super::input::InputArgs;
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::verb::{answered, finish_unless_closed, wrong_usage};
use super::weight::WeightArgs;
use crate::ask::{Question, Request, forget_large};
use crate::diagnostics::Diagnostics;
use crate::functions::kinds::{Corrections, OwnRules};
use crate::load::LoadOptions;
use crate::output::answer::{self, Answer, Format};
use crate::questions::budget::Budget;

/// Which samples a question is about, what they weigh, and what is own.
#[derive(Debug, Clone, Default, Args)]
pub struct QuestionArgs {
    /// Only this event [default: a clock or cycles]
    #[arg(long = "event", value_name = "NAME")]
    pub event: Option<String>,

    /// Count idle processors too, as perf record -a samples them
    #[arg(long = "idle")]
    pub idle: bool,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    weight: WeightArgs,

    #[command(flatten)]
    own: OwnArgs,
}

impl QuestionArgs {
    /// What says which time is looked at.
    pub(super) const fn times(&self) -> &TimeArgs {
        self.filters.times()
    }

    /// The request for a view of what `load` names.
    ///
    /// # Errors
    /// When an expression or a list is none.
    pub fn request<Q>(
        &self,
        mut load: LoadOptions,
        input: &InputArgs,
        view: Q,
    ) -> Result<Request<Q>, String> {
        self.weight.apply(&mut load, input.force, false);
        // A question is about what was recorded: about bytes where allocators were.
        load.weight.infers = self.event.is_none() && !self.weight.is_given();
        let filters = self.filters.apply(&mut load)?;
        Ok(Request {
            event: self.event.clone(),
            keeps_idle: self.idle,
            filters,
            own: self.own.rules()?,
            ..Request::of(load, view)
        })
    }
}

/// What is own.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Own code")]
pub struct OwnArgs {
    /// Only matching functions and objects are mine
    #[arg(long = "own", value_name = "REGEX")]
    own: Vec<String>,

    /// Matching functions and objects are not mine
    #[arg(long = "not-own", value_name = "REGEX")]
    not_own: Vec<String>,

    /// Make a package of matching functions and files
    #[arg(long = "package", value_name = "NAME=REGEX")]
    packages: Vec<String>,

    /// Name what matching functions do
    #[arg(long = "activity", value_name = "NAME=REGEX")]
    activities: Vec<String>,
}

impl OwnArgs {
    /// The rules.
    ///
    /// # Errors
    /// When an expression is not one.
    pub fn rules(&self) -> Result<OwnRules, String> {
        Ok(OwnRules {
            own: regexes("--own", &self.own)?,
            not_own: regexes("--not-own", &self.not_own)?,
            corrections: Corrections {
                packages: named("--package", &self.packages)?,
                activities: named("--activity", &self.activities)?
                    .into_iter()
                    // Names of activities live as long as the program, as all but these do anyway.
                    .map(|(name, regex)| (&*name.leak(), regex))
                    .collect(),
            },
        })
    }
}

/// Names with what they stand for.
fn named(option: &str, texts: &[String]) -> Result<Vec<(String, Regex)>, String> {
    let one = |text: &String| {
        let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, pattern) =
            parts.ok_or_else(|| format!("{option} takes NAME=REGEX, not '{text}'"))?;
        regexes(option, &[pattern.to_owned()])?;
        let regex = Regex::new(pattern).map_err(|error| format!("{option}: {error}"))?;
        Ok((name.to_owned(), regex))
    };
    texts.iter().map(one).collect()
}

/// How much is printed, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct PrintArgs {
    /// Print text, markdown, json or csv
    #[arg(
        long = "format",
        value_enum,
        value_name = "FORMAT",
        default_value_t = Format::Text,
        hide_possible_values = true
    )]
    pub format: Format,

    /// Print at most N lines, or Nc characters [default: 45]
    #[arg(long = "budget", value_name = "N[c]", value_parser = parse_budget)]
    pub budget: Option<Budget>,

    /// Don't shorten names and paths
    #[arg(long = "full-names")]
    pub full_names: bool,

    /// Write to FILE
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub replace: ReplaceArgs,
}

impl PrintArgs {
    /// Asks, and writes the answer where it is wanted; `status` says what follows from it.
    pub(super) fn answer<Q: Question<Answer: Answer>>(
        &self,
        request: Result<Request<Q>, String>,
        diag: &Diagnostics,
        status: impl FnOnce(&Q::Answer) -> ExitCode,
    ) -> anyhow::Result<ExitCode> {
        let mut answer = answered(&request.map_err(wrong_usage)?, diag)?;
        answer.warn(diag.warnings());
        let mut out = Output::to(self.output.as_deref(), self.replace.force_output)?;
        let written = answer::write(&answer, self.format, self.budget, &mut out);
        finish_unless_closed(written, out)?;
        let status = status(&answer);
        forget_large(answer);
        Ok(status)
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Text, Self::Markdown, Self::Json, Self::Csv]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, help) = match self {
            Self::Text => ("text", "For people"),
            Self::Markdown => ("markdown", "For comments on pull requests"),
            Self::Json => ("json", "For programs; pjit guide schema explains it"),
            Self::Csv => ("csv", "One table, for spreadsheets"),
        };
        Some(PossibleValue::new(word).help(help))
    }
}

/// `60`, `60lines`, `8000c`, `8000chars`
///
/// # Errors
/// When it is none of these, or too few lines.
pub fn parse_budget(word: &str) -> Result<Budget, String> {
    let end = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let is_characters = match unit.to_ascii_lowercase().as_str() {
        "" | "l" | "line" | "lines" => Some(false),
        "c" | "char" | "chars" | "characters" => Some(true),
        _ => None,
    };
    let (Ok(number), Some(is_characters)) = (number.parse(), is_characters) else {
        return Err("takes a number of lines such as 60, or characters such as 8000c".to_owned());
    };
    if is_characters {
        Ok(Budget::Characters(number))
    } else if number < Budget::MIN_LINES {
        Err(format!("takes {} lines or more", Budget::MIN_LINES))
    } else {
        Ok(Budget::Lines(number.min(Budget::MAX_LINES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_lines_or_characters() {
        for lines in ["12", "12l", "12lines"] {
            assert_eq!(parse_budget(lines), Ok(Budget::Lines(12)));
        }
        for characters in ["8000c", "8000C", "8000chars"] {
            assert_eq!(parse_budget(characters), Ok(Budget::Characters(8000)));
        }
        for bad in [
            "",
            "c",
            "11",
            "-3",
            "1e3",
            "12 lines",
            "99999999999999999999999c",
        ] {
            assert!(parse_budget(bad).is_err(), "{bad}");
        }
    }
}
