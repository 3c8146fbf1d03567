//! Weights that each sample has in itself: values of expressions over payloads, page faults.

use super::events::{self, apart, is_fault, is_some_fault, is_tracepoint, names, which};
use super::expr::Bound;
use super::read::Source;
use super::spec::Term;
use super::{Derived, Options, WeighError, Weighed};
use crate::ids::Idx;
use crate::perfdata::{EventId, Recording};
use crate::session::Samples;
use crate::unit::Unit;

/// Makes all samples of the chosen events samples of one event, and drops the others.
pub(super) fn keep_chosen(samples: &mut Samples, chosen: &[bool]) {
    samples.all.retain(|sample| chosen[sample.event.index()]);
    for sample in &mut samples.all {
        sample.event = EventId(0);
    }
}

/// Whether samples of any of the chosen events have chains.
pub(super) fn have_chains(recording: &Recording<'_>, chosen: &[bool]) -> bool {
    let events = recording.events.iter().zip(chosen);
    events
        .filter(|(_, is_chosen)| **is_chosen)
        .any(|(event, _)| event.attr.has_callchains())
}

/// `--weight faults`.
pub(super) fn faults(source: Source<'_, '_>, samples: &mut Samples) -> Result<Weighed, WeighError> {
    let recording = source.recording;
    let of_exceptions = |event: &_| {
        is_tracepoint(event, "exceptions:page_fault_user")
            || is_tracepoint(event, "exceptions:page_fault_kernel")
    };
    let choices = [
        which(recording, is_fault),
        which(recording, is_some_fault),
        which(recording, of_exceptions),
    ];
    let chosen = choices
        .into_iter()
        .find(|chosen| chosen.contains(&true))
        .ok_or_else(|| {
            let text = "--weight faults: neither page-faults nor exceptions:page_fault_* \
                        (pjit record -g -e page-faults -c 1 --perf=-d)";
            WeighError(text.to_owned())
        })?;
    let chosen = apart(source, chosen, |event| event.attr.config);
    let has_callchains = have_chains(recording, &chosen);
    let of = recording.events.iter().zip(&chosen);
    let of = names(
        of.filter(|(_, is_chosen)| **is_chosen)
            .map(|(event, _)| event),
    );
    keep_chosen(samples, &chosen);
    let pages = samples
        .all
        .iter()
        .fold(0_u64, |sum, sample| sum.saturating_add(sample.period));
    let bytes = Unit::Bytes.human(pages.saturating_mul(4096));
    Ok(Weighed {
        event: Some(Derived {
            name: format!("faults ({of})"),
            unit: Unit::Pages,
            counted: "samples",
            lines: vec![format!("Page faults: {pages}, {bytes} at 4 KiB a page")],
            has_callchains,
        }),
        ..Weighed::default()
    })
}

/// `--weight 'nmemb*size'`.
pub(super) fn expressions(
    source: Source<'_, '_>,
    samples: &mut Samples,
    terms: &[Term],
    options: &Options,
) -> Result<Weighed, WeighError> {
    let bound = bind(source, terms)?;
    let chosen: Vec<bool> = bound.iter().map(Option::is_some).collect();
    let values = source.read(samples.all.as_raw_slice(), &chosen, |event, sample| {
        let index = source.index(event)?;
        bound[index].as_ref()?.value(sample.raw?).map(Some)
    });
    let has_callchains = have_chains(source.recording, &chosen);
    let (mut negative, mut without) = (0_u64, 0_u64);
    let mut values = values.into_iter();
    samples.all.raw.retain_mut(|sample| {
        let value = values.next().flatten();
        if !chosen[sample.event.index()] {
            return false;
        }
        let Some(value) = value else {
            without += 1;
            return false;
        };
        negative += u64::from(value < 0);
        let weight = value.saturating_mul(i128::from(sample.period));
        sample.period = u64::try_from(weight.max(0)).unwrap_or(u64::MAX);
        sample.event = EventId(0);
        value >= 0
    });
    let of = source.recording.events.iter().zip(&chosen);
    let of = names(
        of.filter(|(_, is_chosen)| **is_chosen)
            .map(|(event, _)| event),
    );
    let mut left_out = Vec::new();
    if negative > 0 {
        left_out.push(format!("{negative} samples of negative weight left out"));
    }
    if without > 0 {
        left_out.push(format!("{without} samples without the field left out"));
    }
    Ok(Weighed {
        event: Some(Derived {
            name: format!("{} ({of})", options.text),
            unit: Unit::Count,
            counted: "samples",
            lines: Vec::new(),
            has_callchains,
        }),
        left_out,
        ..Weighed::default()
    })
}

/// By event: its expression. Those that were given with the event's name go before those without.
fn bind(source: Source<'_, '_>, terms: &[Term]) -> Result<Vec<Option<Bound>>, WeighError> {
    let recording = source.recording;
    let mut bound: Vec<Option<Bound>> = vec![None; recording.events.len()];
    for term in terms {
        let Some(name) = &term.event else { continue };
        let index = events::named(recording, name)?;
        let id = recording.events[index].attr.config;
        let place = |field: &str| recording.tracepoints.field(id, field);
        let expr = term.expr.bind(place);
        bound[index] = Some(expr.map_err(|field| unknown(recording, field, &[index]))?);
    }
    for term in terms.iter().filter(|term| term.event.is_none()) {
        let mut applies = false;
        for (slot, event) in bound.iter_mut().zip(&recording.events) {
            if !event.attr.is_tracepoint() {
                continue;
            }
            let place = |field: &str| recording.tracepoints.field(event.attr.config, field);
            match term.expr.bind(place) {
                Ok(expr) => {
                    slot.get_or_insert(expr);
                    applies = true;
                }
                Err(_) => source.diag.note(format!(
                    "--weight: {} is left out: it lacks a field",
                    event.name
                )),
            }
        }
        if !applies {
            return Err(nowhere(recording, term));
        }
    }
    Ok(bound)
}

/// Why an expression applies to no event.
fn nowhere(recording: &Recording<'_>, term: &Term) -> WeighError {
    let tracepoints: Vec<usize> = (0..recording.events.len())
        .filter(|index| recording.events[*index].attr.is_tracepoint())
        .collect();
    if tracepoints.is_empty() {
        return WeighError("--weight names no weight, and no event of this recording has fields: pjit help weights".to_owned());
    }
    let has = |field: &str| {
        let mut events = recording.events.iter();
        events.any(|e| recording.tracepoints.field(e.attr.config, field).is_some())
    };
    let missing = term.expr.fields().find(|field| !has(field));
    match missing {
        Some(field) => unknown(recording, field, &tracepoints),
        None => WeighError("--weight: no event has all fields of the expression".to_owned()),
    }
}

/// ``unknown field `siz` (probe_libc:malloc has size)``.
fn unknown(recording: &Recording<'_>, field: &str, events: &[usize]) -> WeighError {
    /// Events that are listed.
    const MOST: usize = 4;
    let fields = |index: &usize| {
        let event = &recording.events[*index];
        let names = recording.tracepoints.field_names(event.attr.config);
        let names: Vec<&str> = names.filter(|name| !name.starts_with("__probe")).collect();
        let names = if names.is_empty() {
            "no fields".to_owned()
        } else {
            names.join(", ")
        };
        format!("{} has {names}", event.name)
    };
    let mut have: Vec<String> = events.iter().take(MOST).map(fields).collect();
    if events.len() > MOST {
        have.push("…".to_owned());
    }
    let is_there = |index: &usize| {
        let id = recording.events[*index].attr.config;
        recording
            .tracepoints
            .field_names(id)
            .any(|name| name == field)
    };
    let problem = if events.iter().any(is_there) {
        format!("field `{field}` is no number")
    } else {
        format!("unknown field `{field}`")
    };
    WeighError(format!("{problem} ({})", have.join("; ")))
}
