//! What a picture says of itself: it travels without the recording and the command that made it.

use crate::flame::shown;
use crate::profile::{EventId, EventSummary, Profile};
use crate::unit::Unit;

use super::stdio::{quality_figures, quality_line};

/// The lines of a picture's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// What was recorded: the command line, or the recording's name.
    pub recorded: String,
    /// The program, of one recording.
    pub program: Option<String>,
    /// Event, samples and total.
    pub shown: String,
    /// What is worth knowing of that.
    pub said: Vec<String>,
    /// Events that are in the recording and not in the picture.
    pub others: Vec<String>,
    /// How far it can be trusted.
    pub quality: String,
    /// Why the two runs of a difference may not be comparable.
    pub differences: Vec<String>,
}

impl Caption {
    /// The caption of a picture of one event.
    #[must_use]
    pub fn of(profile: &Profile, event: EventId) -> Self {
        let summary = &profile[event];
        let total = amount(
            summary,
            summary.period.saturating_sub(summary.filtered_period),
        );
        let others = profile.events.iter_enumerated();
        let others = others.filter(|(at, other)| *at != event && other.samples > 0);
        Self {
            recorded: recorded(profile),
            program: None,
            shown: format!("{}, {total}{}", counted(summary), filtered(summary)),
            said: Vec::new(),
            others: others
                .map(|(_, other)| shown(&other.name).into_owned())
                .collect(),
            quality: shown(&quality_line(profile, Some(event))).into_owned(),
            differences: Vec::new(),
        }
    }

    /// The title of a picture.
    #[must_use]
    pub fn title(&self, most: usize) -> String {
        let subject = self.program.as_ref().unwrap_or(&self.recorded);
        format!("Flame graph: {}", shortened(subject, most))
    }

    /// The command that was recorded, if it is not the title.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        self.program.as_ref().map(|_| self.recorded.as_str())
    }

    /// Says which program it is of.
    pub fn of_program(&mut self, program: &str) {
        self.program = Some(shown(program).into_owned());
    }

    /// Says that it is a difference of these runs.
    pub fn compare(&mut self, new: &str, base: &str) {
        self.recorded = format!("{} compared with {}", shown(new), shown(base));
    }

    /// Says what a run of the new side and of the base has. Of several that is the mean: the first run's figures were taken for it.
    pub fn tell_sides(&mut self, event: &EventSummary, new: &[Left], base: &[Left]) {
        let side = |runs: &[Left]| {
            let mean = Left::mean(runs);
            let what = event.counted.unwrap_or("samples");
            let samples = grouped(mean.samples);
            format!("{samples} {what}, {}", amount(event, mean.weight))
        };
        self.shown = format!("{}{} (before: {})", side(new), filtered(event), side(base));
        let runs = |runs: &[Left]| plural(runs.len() as u64, "run");
        match (new.len(), base.len()) {
            (1, 1) => {}
            (a, b) if a == b => self.say(&format!("means of {} each", runs(new))),
            _ => self.say(&format!("means of {}, before of {}", runs(new), runs(base))),
        }
    }

    /// Says how far both sides can be trusted, each by its worst run.
    pub fn tell_quality(&mut self, new: &Worst, base: &Worst) {
        let several = |runs: usize| match runs {
            0 | 1 => String::new(),
            runs => format!(" (the worst of {runs} runs)"),
        };
        self.quality = format!(
            "{}{}; before: {}{}",
            shown(&new.line),
            several(new.runs),
            shown(&base.figures),
            several(base.runs),
        );
    }

    /// Says why two runs may not be comparable.
    pub fn tell_differences(&mut self, after: &Profile, before: &Profile) {
        let keys = [
            ("kernel", "os release"),
            ("processor", "cpudesc"),
            ("architecture", "arch"),
        ];
        for (what, key) in keys {
            let (now, then) = (after.recording.told(key), before.recording.told(key));
            if let (Some(now), Some(then)) = (now, then)
                && now != then
            {
                let (now, then) = (shown(now), shown(then));
                self.differences.push(format!(
                    "the runs differ in {what}: {then} before, {now} after"
                ));
            }
        }
    }

    /// Adds something worth knowing to what is shown.
    pub fn say(&mut self, text: &str) {
        self.said.push(shown(text).into_owned());
    }

    /// What is shown, and what is worth knowing of it.
    #[must_use]
    pub fn whole(&self) -> String {
        let said = self.said.iter().map(|text| format!("; {text}"));
        format!("{}{}", self.shown, said.collect::<String>())
    }
}

/// How much each of several events lost, in per cent and in words, where the kernel told of which events the lost samples were.
#[must_use]
pub fn lost_by_event(profile: &Profile) -> Vec<(f64, String)> {
    let events = &profile.events;
    let known = events
        .iter()
        .fold(0_u64, |sum, of| sum.saturating_add(of.lost));
    if events.len() < 2 || known != profile.recording.lost {
        return Vec::new();
    }
    let words = |of: &EventSummary| {
        let share = 100.0 * of.lost as f64 / of.lost.saturating_add(of.samples) as f64;
        (
            share,
            format!("{} of {} ({share:.1}%)", of.lost, shown(&of.name)),
        )
    };
    events.iter().filter(|of| of.lost > 0).map(words).collect()
}

/// The run of a side that is known worst: of whose event the largest part was lost, or has no whole stack.
#[derive(Clone, Default, Debug)]
pub struct Worst {
    runs: usize,
    missing: f64,
    line: String,
    figures: String,
}

impl Worst {
    /// Looks at one more run.
    pub fn see(&mut self, profile: &Profile, event: EventId) {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let lost = profile.lost_of(event);
        let stacks = profile.quality.figures(Some(event)).walked();
        let missing = share(lost, lost.saturating_add(profile[event].samples))
            + share(stacks.walked.saturating_sub(stacks.complete), stacks.walked);
        if self.runs == 0 || missing > self.missing {
            self.missing = missing;
            self.line = quality_line(profile, Some(event));
            self.figures = quality_figures(profile, Some(event));
        }
        self.runs += 1;
    }
}

/// What filters left of an event.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Left {
    samples: u64,
    weight: u64,
}

impl Left {
    /// Of one run.
    #[must_use]
    pub fn of(event: &EventSummary) -> Self {
        Self {
            samples: event.samples.saturating_sub(event.filtered_samples),
            weight: event.period.saturating_sub(event.filtered_period),
        }
    }

    fn mean(runs: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> u64| {
            let sum: u128 = runs.iter().map(|run| u128::from(of(run))).sum();
            let count = runs.len().max(1) as u128;
            u64::try_from((sum + count / 2) / count).unwrap_or(u64::MAX)
        };
        Self {
            samples: mean(|run| run.samples),
            weight: mean(|run| run.weight),
        }
    }
}

/// `343 samples`, `280 blocks`: those that filters left.
fn counted(event: &EventSummary) -> String {
    let what = event.counted.unwrap_or("samples");
    let left = event.samples.saturating_sub(event.filtered_samples);
    format!("{} {what}", grouped(left))
}

/// What phases and filters did, if there were any: ` (--focus main: 15 of 177 samples (8.5%))`.
fn filtered(event: &EventSummary) -> String {
    let told = event.notes.iter().filter_map(|note| {
        let is_chosen = note.starts_with("Phase ") || note.starts_with("Spans: ");
        note.strip_prefix("Filter: ")
            .or_else(|| is_chosen.then_some(note.as_str()))
    });
    let told: Vec<&str> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    format!(" ({})", shown(&told.join("; ")))
}

/// The recorded command line, or the recording's name where it is not known.
#[must_use]
pub fn recorded(profile: &Profile) -> String {
    let command = profile.recording.command();
    shown(command.as_ref().unwrap_or(&profile.recording.path)).into_owned()
}

/// A weight in the event's unit: `9.14 s of cpu-clock`, `12.3 G cycles`.
#[must_use]
pub fn amount(event: &EventSummary, weight: u64) -> String {
    let name = shown(&event.name);
    match event.unit {
        Unit::Nanoseconds => {
            let time = scaled(weight, 1000.0, &["ns", "µs", "ms", "s"]);
            format!("{time} of {name}")
        }
        Unit::Bytes | Unit::ByteSeconds => format!("{} of {name}", event.unit.human(weight)),
        Unit::Count | Unit::Cycles | Unit::Pages | Unit::Blocks => {
            let number = scaled(weight, 1000.0, &["", "K", "M", "G", "T", "P", "E"]);
            format!("{} {name}", number.trim_end())
        }
    }
}

/// Three digits and the unit that fits.
fn scaled(value: u64, step: f64, units: &[&str]) -> String {
    let mut number = value as f64;
    let mut unit = 0;
    while number >= step && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    let digits = match number {
        _ if unit == 0 => 0,
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {}", units[unit])
}

/// A number with separators: 36,559.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 thread`, `1,200 threads`.
#[must_use]
pub fn plural(number: impl TryInto<u64>, one: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {one}{ending}", grouped(number))
}

/// A text of so many characters at most, with its middle left out.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most || text.chars().count() <= most {
        return text.to_owned();
    }
    let tail = most / 4;
    let head = most.saturating_sub(tail + 1);
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    let rest = text.char_indices().rev().nth(tail.saturating_sub(1));
    short.push_str(rest.map_or("", |(at, _)| &text[at..]));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> EventSummary {
        EventSummary {
            name: name.to_owned(),
            unit: if name.contains("clock") {
                Unit::Nanoseconds
            } else {
                Unit::Count
            },
            ..EventSummary::default()
        }
    }

    #[test]
    fn amounts_have_the_unit_of_the_event() {
        let clock = event("cpu-clock:u");
        assert_eq!(amount(&clock, 9_139_750_000), "9.14 s of cpu-clock:u");
        assert_eq!(amount(&clock, 312), "312 ns of cpu-clock:u");
        assert_eq!(amount(&clock, 4_000_000_000_000), "4000 s of cpu-clock:u");
        assert_eq!(amount(&event("cycles"), 12_340_000_000), "12.3 G cycles");
        assert_eq!(amount(&event("page-faults"), 12), "12 page-faults");
    }

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijk", 8), "abcde…jk");
        assert_eq!(shortened("ääääääääääää", 8).chars().count(), 8);
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
