//! What the verbs that answer questions share: what is own, how much is printed and in which format.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::filters::{FilterArgs, filter, regexes};
use super::input::InputArgs;
use super::target::ReplaceArgs;
use super::weight::WeightArgs;
use crate::check::{Evidence, Limits, Verdict, judge_for};
use crate::ids::IndexVec;
use crate::load::LoadOptions;
use crate::profile::{EventId, EventSummary, Profile};
use crate::questions::budget::Budget;
use crate::questions::filter::Filters;
use crate::questions::idle::{Idle, leave_out};
use crate::questions::kinds::OwnRules;
use crate::questions::tally::main_event;

/// Which samples a question is about, what they weigh, and what is own.
#[derive(Debug, Clone, Default, Args)]
pub struct QuestionArgs {
    /// Only this event (default: the one with most samples)
    #[arg(long = "event", value_name = "NAME")]
    pub event: Option<String>,

    /// Count the idle task, too, which `perf record -a` samples where processors have nothing to do
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
    /// What is left out and what is own, with all that the answer needs among what is read.
    ///
    /// # Errors
    /// When one of them means nothing.
    pub fn apply(
        &self,
        load: &mut LoadOptions,
        input: &InputArgs,
    ) -> Result<(Filters, OwnRules), String> {
        self.weight.apply(load, input.force, false);
        Ok((self.filters.apply(load)?, self.own.rules()?))
    }
}

/// What is own.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Own code")]
pub struct OwnArgs {
    /// What is mine: functions or objects that match, and nothing else (repeatable)
    #[arg(long = "own", value_name = "REGEX")]
    own: Vec<String>,

    /// What is not mine, though it would be (repeatable)
    #[arg(long = "not-own", value_name = "REGEX")]
    not_own: Vec<String>,
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
        })
    }
}

/// How much is printed, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct PrintArgs {
    /// Format of the answer
    #[arg(long = "format", value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,

    /// How much may be printed: N lines, or Nc characters (default: 60 lines); the rest becomes one row
    #[arg(long = "budget", value_name = "N[c]", value_parser = parse_budget)]
    pub budget: Option<Budget>,

    /// Names and paths whole
    #[arg(long = "full-names")]
    pub full_names: bool,

    /// File to write instead of standard output; it appears when it is whole
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub replace: ReplaceArgs,
}

/// Formats of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For comments on pull requests
    Markdown,
    /// For programs; docs/schema describes it
    Json,
    /// One table, for spreadsheets
    Csv,
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
        return Err("a number of lines, or of characters with c or chars behind".to_owned());
    };
    if is_characters {
        Ok(Budget::Characters(number))
    } else if number < Budget::MIN_LINES {
        Err(format!("at least {} lines", Budget::MIN_LINES))
    } else {
        Ok(Budget::Lines(number.min(Budget::MAX_LINES)))
    }
}

/// The event to answer for: that of the name, else the one with most samples.
///
/// # Errors
/// When there are no samples of that event.
fn event_of(profile: &Profile, wanted: Option<&str>) -> anyhow::Result<EventId> {
    let Some(wanted) = wanted else {
        return Ok(main_event(profile));
    };
    let found = profile.events.position(|event| event.name == wanted);
    let names = || {
        profile
            .events
            .iter()
            .map(|e| e.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let path = &profile.recording.path;
    let at = found
        .ok_or_else(|| anyhow::anyhow!("no event '{wanted}' in {path}; it has {}", names()))?;
    anyhow::ensure!(profile[at].samples > 0, "{path}: no samples of {wanted}");
    Ok(at)
}

/// What a question is answered for.
pub struct Asked {
    /// The event.
    pub event: EventId,
    /// What of it was left out.
    pub idle: Idle,
    /// The line about filters, if there are any.
    pub filter: Option<String>,
}

/// Finds the event, and leaves out what is not to be looked at: first the idle task, then what filters do.
///
/// # Errors
/// When no sample is left.
pub fn narrow(
    profile: &mut Profile,
    (event, keeps_idle): (Option<&str>, bool),
    (filters, rules): (&Filters, &OwnRules),
) -> anyhow::Result<Asked> {
    super::verb::require_samples(profile)?;
    let mut left = IndexVec::new();
    if !keeps_idle {
        left = leave_out(profile);
        anyhow::ensure!(
            profile.events.iter().any(|event| event.samples > 0),
            "{}: all samples are of the idle task (--idle keeps them)",
            profile.recording.path
        );
    }
    let event = event_of(profile, event)?;
    let mut lines = filter(profile, filters, rules)?;
    let summary = &profile[event];
    anyhow::ensure!(
        summary.samples > summary.filtered_samples,
        "{}: no sample of {} is left by {}",
        profile.recording.path,
        summary.name,
        filters.texts().join(" ")
    );
    Ok(Asked {
        event,
        idle: left.get(event).copied().unwrap_or_default(),
        filter: lines.get_mut(event).map(std::mem::take),
    })
}

/// What `check` says of a recording for an answer about one event.
#[must_use]
pub fn verdict(evidence: &Evidence, event: &EventSummary, limits: Limits) -> Verdict {
    let about = event
        .is_sampled()
        .then(|| (event.name.clone(), event.samples));
    judge_for(evidence, about, limits)
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
