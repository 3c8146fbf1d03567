//! What return probes tell of stacks: they replace return addresses by a trampoline, and say in the end what was there.
//!
//! In: payloads of probes on functions and on their returns. Out: [`Returns`], for the unwinder. Nothing is read where a
//! recording has no such events.

use rustc_hash::FxHashSet;

use super::read::Source;
use crate::address::Avma;
use crate::ids::Idx;
use crate::perfdata::FieldAt;
use crate::session::Samples;
use crate::session::returns::Returns;

/// Where the addresses are in payloads of a probe.
#[derive(Clone, Copy)]
enum Probe {
    /// Function.
    Entry(FieldAt),
    /// Function, and where it returns to.
    Return(FieldAt, FieldAt),
}

/// What return probes tell, if there are any.
#[must_use]
pub fn returns(source: Source<'_, '_>, samples: &Samples) -> Returns {
    let probes = probes(source);
    let has_returns = |probe: &Option<Probe>| matches!(probe, Some(Probe::Return(..)));
    if !probes.iter().any(has_returns) {
        return Returns::default();
    }
    let is_probe: Vec<bool> = probes.iter().map(Option::is_some).collect();
    let said = source.read(samples.all.as_raw_slice(), &is_probe, |event, sample| {
        let (payload, index) = (sample.raw?, source.index(event)?);
        let number = |at: FieldAt| u64::try_from(at.number(payload)?).ok();
        Some(match probes[index]? {
            Probe::Entry(function) => (number(function)?, 0),
            Probe::Return(function, back) => (number(function)?, number(back)?),
        })
    });
    let mut probed = FxHashSet::default();
    for (sample, (function, _)) in samples.all.iter().zip(&said) {
        if has_returns(&probes[sample.event.index()]) {
            probed.insert(*function);
        }
    }
    let mut found = Returns::default();
    for (sample, (function, back)) in samples.all.iter().zip(&said) {
        match probes[sample.event.index()] {
            Some(Probe::Entry(_)) if probed.contains(function) => {
                found.enter(sample.thread, sample.time, *function);
            }
            Some(Probe::Return(..)) => {
                found.leave(sample.thread, sample.time, *function, Avma(*back));
            }
            _ => {}
        }
    }
    found
}

fn probes(source: Source<'_, '_>) -> Vec<Option<Probe>> {
    let recording = source.recording;
    let probe = |event: &crate::perfdata::Event| {
        if !event.attr.is_tracepoint() {
            return None;
        }
        let field = |name| recording.tracepoints.field(event.attr.config, name);
        match field("__probe_ip") {
            Some(function) => Some(Probe::Entry(function)),
            None => Some(Probe::Return(
                field("__probe_func")?,
                field("__probe_ret_ip")?,
            )),
        }
    };
    recording.events.iter().map(probe).collect()
}
