//! Which event of a recording is shown, where one is: one rule for all verbs.
//!
//! A clock or cycles come first, of several the one with most samples, and without any the event with most samples. By number
//! alone, switches or page faults that were recorded beside a clock would hide it; by their place in the recording, a picture
//! showed 53 page faults of a program with 1 133 samples of CPU time. Time off the processors is the answer only where nothing
//! else was sampled. Views that keep events apart show all of them.

use super::problem::{AskError, require, require_samples};
use crate::diagnostics::Diagnostics;
use crate::ids::Idx;
use crate::metrics::position;
use crate::profile::{EventId, Profile};

/// The event of this name, as the recording or as headers have it, or the main one.
///
/// # Errors
/// When the recording has no samples, or none of that event.
pub(super) fn shown_event(profile: &Profile, wanted: Option<&str>) -> Result<EventId, AskError> {
    require_samples(profile)?;
    let Some(wanted) = wanted else {
        return Ok(profile.main_event());
    };
    let path = &profile.recording.path;
    let names = || profile.events.iter().map(|event| event.name.as_str());
    let found = position(names(), wanted).map(EventId::from_usize);
    let at = found.ok_or_else(|| no_event(path, wanted, names()))?;
    require(profile[at].samples > 0, || {
        format!("{path}: no samples of {wanted}")
    })?;
    Ok(at)
}

/// What is said where a recording lacks an event.
pub(super) fn no_event<'n>(
    path: &str,
    wanted: &str,
    names: impl Iterator<Item = &'n str>,
) -> AskError {
    let names = names.collect::<Vec<_>>().join(", ");
    AskError::Absent(format!("{path}: no event '{wanted}': it has {names}"))
}

/// Says that no sample of a clock is left where nobody asked for the event that is shown in its place: it answers another question.
pub(super) fn tell_other(
    profile: &Profile,
    (shown, wanted): (EventId, Option<&str>),
    diag: &Diagnostics,
) {
    let mut clocks = profile
        .events
        .iter()
        .filter(|event| event.is_cpu() && !event.is_off_cpu());
    let is_other = wanted.is_none() && !profile[shown].is_cpu() && profile[shown].samples > 0;
    if let Some(clock) = clocks.find(|event| event.samples == 0).filter(|_| is_other) {
        let (clock, shown) = (&clock.name, &profile[shown].name);
        diag.warn(format!(
            "no samples of {clock} here: {shown} is shown (--event)"
        ));
    }
}
