//! `--switch-on` and `--switch-off`: the events that they name.

use std::borrow::Cow;

use super::LoadError;
use super::options::{LoadOptions, SwitchNames};
use crate::ids::Idx;
use crate::perfdata::{EventId, OpenError, Recording};
use crate::session::Switch;
use crate::weigh::WeighError;

/// The options with the numbers of these events, which the recording tells.
///
/// # Errors
/// When it has no event of a name, or weights are made of events that would be left out.
pub(super) fn switched<'o>(
    recording: &Recording<'_>,
    options: &'o LoadOptions,
) -> Result<Cow<'o, LoadOptions>, LoadError> {
    let SwitchNames { on, off, .. } = &options.switch;
    if on.is_none() && off.is_none() {
        return Ok(Cow::Borrowed(options));
    }
    if !options.weight.spec.is_default() {
        let text =
            "--switch-on and --switch-off choose samples as they were recorded: not with --weight";
        return Err(WeighError(text.to_owned()).into());
    }
    let find = |option: &'static str, name: &Option<String>| {
        let Some(name) = name else { return Ok(None) };
        let mut events = recording.events.iter();
        let place = events.position(|event| event.name == *name);
        let number = place.map(EventId::from_usize);
        let problem = || OpenError::NoEvent {
            path: options.source.path().to_owned(),
            option,
            event: name.clone(),
        };
        number.ok_or_else(problem).map(Some)
    };
    let mut switched = options.clone();
    switched.filter.switch = Switch {
        on: find("--switch-on", on)?,
        off: find("--switch-off", off)?,
        shows: options.switch.shows,
        of_any_cpu: options.switch.of_any_cpu,
    };
    Ok(Cow::Owned(switched))
}
