//! What an answer is about: the event, and the samples of it that are left by the idle task and filters.

use super::event::shown_event;
use super::problem::{AskError, require, require_samples};
use crate::functions::filter::{Filters, Kept, apply};
use crate::functions::kinds::OwnRules;
use crate::ids::IndexVec;
use crate::profile::{EventId, Profile};
use crate::questions::idle::{Idle, leave_out};

/// What a question is answered for.
pub(super) struct Narrowed {
    /// The event.
    pub(super) event: EventId,
    /// What of it was left out.
    pub(super) idle: Idle,
    /// The line about filters, if there are any.
    pub(super) filter: Option<String>,
}

/// Finds the event, and leaves out what is not to be looked at: first the idle task, then what filters do.
///
/// # Errors
/// When no sample is left.
pub(super) fn narrow(
    profile: &mut Profile,
    (event, keeps_idle): (Option<&str>, bool),
    (filters, own): (&Filters, &OwnRules),
) -> Result<Narrowed, AskError> {
    require_samples(profile)?;
    let mut left = IndexVec::new();
    if !keeps_idle {
        left = leave_out(profile);
        let has_samples = profile.events.iter().any(|each| each.samples > 0);
        require(has_samples, || {
            let path = &profile.recording.path;
            format!("{path}: all samples are of idle processors: --idle keeps them")
        })?;
    }
    let event = shown_event(profile, event)?;
    let mut lines = filter(profile, filters, own)?;
    let summary = &profile[event];
    require(summary.samples > summary.filtered_samples, || {
        let (path, name) = (&profile.recording.path, &summary.name);
        match filters.texts().join(" ") {
            given if given.is_empty() => format!("{path}: all samples of {name} are of guests"),
            given => format!("{path}: {given} leaves no sample of {name}"),
        }
    })?;
    Ok(Narrowed {
        event,
        idle: left.get(event).copied().unwrap_or_default(),
        filter: match (&profile.recording.chosen, lines.get_mut(event)) {
            (Some(chosen), Some(line)) => Some(format!("{chosen}; {line}")),
            (chosen, line) => line.map(std::mem::take).or_else(|| chosen.clone()),
        },
    })
}

/// Filters a profile; by event, a line for headers if there was anything to filter.
///
/// # Errors
/// When no sample is left.
pub(super) fn filter(
    profile: &mut Profile,
    filters: &Filters,
    own: &OwnRules,
) -> Result<IndexVec<EventId, String>, AskError> {
    if filters.is_empty() {
        return Ok(IndexVec::new());
    }
    let (kept, several) = apply(profile, filters, own);
    let options = filters.texts().join(" ");
    let is_any_left = kept.iter().any(|kept| kept.after.samples > 0);
    require(is_any_left, || {
        let path = &profile.recording.path;
        format!("{path}: {options} leaves no sample")
    })?;
    let words = |(text, count): (&String, &usize)| format!("; '{text}' is {count} functions");
    let several: String = several.iter().map(words).collect();
    let line = |Kept { before, after }: &Kept| {
        let share = 100.0 * after.period as f64 / before.period.max(1) as f64;
        format!(
            "Filter: {options}: {} of {} samples ({share:.1}%){several}",
            after.samples, before.samples
        )
    };
    let lines: IndexVec<EventId, String> = kept.iter().map(line).collect();
    for (event, note) in profile.events.iter_mut().zip(&lines) {
        event.notes.push(note.clone());
    }
    Ok(lines)
}
