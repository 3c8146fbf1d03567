//! Which events of a recording something is about.

use super::WeighError;
use super::read::Source;
use crate::metrics::{Modes, disjoint};
use crate::perfdata::attr::flag;
use crate::perfdata::{Event, Recording};

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;

/// Software events that are clocks: cpu-clock and task-clock.
pub(super) fn is_clock(event: &Event) -> bool {
    event.attr.type_ == SOFTWARE && event.attr.config <= 1
}

/// Software events that are page faults: all, or those without and with input.
pub(super) fn is_fault(event: &Event) -> bool {
    event.attr.type_ == SOFTWARE && event.attr.config == 2
}

/// One kind of page faults only.
pub(super) fn is_some_fault(event: &Event) -> bool {
    event.attr.type_ == SOFTWARE && matches!(event.attr.config, 5 | 6)
}

/// `perf record --off-cpu`.
pub(super) fn is_offcpu_time(event: &Event) -> bool {
    event.attr.type_ == SOFTWARE && plain_name(event) == "offcpu-time"
}

/// A tracepoint of this name.
pub(super) fn is_tracepoint(event: &Event, name: &str) -> bool {
    event.attr.is_tracepoint() && plain_name(event) == name
}

/// The name without modifiers.
pub(super) fn plain_name(event: &Event) -> &str {
    let name = event.name.as_str();
    let is_modifier = |c: char| c.is_ascii_lowercase() || c.is_ascii_uppercase();
    match name.rsplit_once(':') {
        // The name of a tracepoint has a colon of its own.
        Some((front, end))
            if end.len() <= 3
                && end.chars().all(is_modifier)
                && (!event.attr.is_tracepoint() || front.contains(':')) =>
        {
            front
        }
        _ => name.split('/').next().unwrap_or(name),
    }
}

/// By event: whether it is one.
pub(super) fn which(recording: &Recording<'_>, is: impl Fn(&Event) -> bool) -> Vec<bool> {
    recording.events.iter().map(is).collect()
}

/// The chosen events without those that count again what another one counts: `page-faults:u` beside `page-faults`. What
/// `what` tells apart adds up.
pub(super) fn apart<K: PartialEq>(
    source: Source<'_, '_>,
    chosen: Vec<bool>,
    what: impl Fn(&Event) -> K,
) -> Vec<bool> {
    let events = &source.recording.events;
    let of = (0..events.len()).filter(|index| chosen[*index]);
    let of = of.map(|index| {
        let attr = &events[index].attr;
        let is_without = (
            attr.flag(flag::EXCLUDE_USER),
            attr.flag(flag::EXCLUDE_KERNEL),
            attr.flag(flag::EXCLUDE_HV),
        );
        (index, what(&events[index]), Modes::without(is_without))
    });
    let kept = disjoint(of.collect());
    for index in (0..events.len()).filter(|index| chosen[*index] && !kept.contains(index)) {
        let name = &events[index].name;
        source
            .diag
            .note(format!("{name} is left out: other events count it, too"));
    }
    (0..events.len())
        .map(|index| kept.contains(&index))
        .collect()
}

/// The event that a user names: in full, by a part of its name that no other has, or by `%N` counted from 1.
pub(super) fn named(recording: &Recording<'_>, text: &str) -> Result<usize, WeighError> {
    let events = &recording.events;
    if let Some(number) = text.strip_prefix('%').and_then(|n| n.parse().ok()) {
        let index = usize::checked_sub(number, 1).filter(|index| *index < events.len());
        return index.ok_or_else(|| {
            let count = events.len();
            WeighError(format!("no event {text}: there are {count}"))
        });
    }
    let is_named = |event: &Event| event.name == text || plain_name(event) == text;
    if let Some(index) = events.iter().position(is_named) {
        return Ok(index);
    }
    let with: Vec<usize> = (0..events.len())
        .filter(|index| events[*index].name.contains(text))
        .collect();
    match with[..] {
        [index] => Ok(index),
        [] => Err(WeighError(format!(
            "no event `{text}` (there is {})",
            names(events.iter())
        ))),
        _ => Err(WeighError(format!(
            "`{text}` could be {}",
            names(with.iter().map(|index| &events[*index]))
        ))),
    }
}

/// Names in a row.
pub(super) fn names<'e>(events: impl Iterator<Item = &'e Event>) -> String {
    let names: Vec<&str> = events.map(|event| event.name.as_str()).collect();
    names.join(", ")
}
