//! Sums of counts: the question of `pjit stat`.

use std::io::{self, Write};

use super::problem::require;
use super::problem::tell_lost;
use super::{AskError, Question, Request, require_samples};
use crate::load::{Library, LoadError, LoadOptions};
use crate::metrics::is_clock;
use crate::needs::Needs;
use crate::output::stat;
use crate::profile::Profile;
use crate::questions::idle::{self, Idle};
use crate::totals::{Apart, Seen, Totals, sampled};
use crate::weigh::{self, Spec};

/// Sums of counts: those of `perf stat record`, or over the samples of `perf record`.
#[derive(Debug, Clone, Default)]
pub struct Stat {
    /// What counts are told apart by.
    pub apart: Option<Apart>,
}

/// Counts that can be written.
pub struct Counted {
    totals: Totals,
}

impl Question for Stat {
    type Answer = Counted;

    fn needs(&self) -> Needs {
        Needs::CHAINS
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Counted, AskError> {
        let load = request.load_options()?;
        let apart = request.view.apart;
        let counts = library
            .counts(&load.source, apart)
            .map_err(LoadError::from)?;
        if let Some(totals) = counts {
            return Ok(Counted { totals });
        }
        require(apart.is_none(), || {
            let name = load.source.name();
            format!("{name}: holds samples; perf stat record counts by processor")
        })?;
        let totals = of_samples(&load, request.keeps_idle, library)?;
        Ok(Counted { totals })
    }
}

impl Counted {
    /// Writes the counts.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        stat::write(&self.totals, out)
    }
}

/// Sums over the samples of `perf record`, and what weights make of them where there are any.
fn of_samples(
    load: &LoadOptions,
    keeps_idle: bool,
    library: &Library<'_>,
) -> Result<Totals, AskError> {
    let profile = library.load(load)?;
    tell_lost(&profile, library.diag());
    require_samples(&profile)?;
    let mut seen = Seen::default();
    if !profile.events.iter().any(|event| is_clock(&event.name)) {
        seen.on_cpu = weight(load, Spec::OnCpu).map(|p| total(&p).0);
    }
    if profile.events.iter().any(|event| event.is_tracepoint) {
        let blocks = weight(load, Spec::Heap(weigh::spec::Heap::AllocCount));
        let is_whole = profile.recording.lost == 0;
        seen.allocations = blocks.map(|weighed| (total(&weighed).1, !is_whole));
    }
    let mut totals = sampled(&profile, seen);
    if !keeps_idle {
        leave_out_idle(&mut totals, &profile);
    }
    Ok(totals)
}

/// A processor that runs the idle task is not utilized.
fn leave_out_idle(totals: &mut Totals, profile: &Profile) {
    let weights = idle::weights(profile);
    for (total, (event, count)) in totals.events.iter_mut().zip(weights.iter_enumerated()) {
        let event = &profile[event];
        // Counters of tasks tell nothing of it.
        let is_of_samples = total.count.value == event.period as f64;
        if event.is_cpu_time() && is_of_samples {
            total.idle = count.period as f64;
            let left = Idle {
                count: *count,
                cpus: profile.recording.idle_cpus,
                unit: event.unit,
            };
            totals.idle = totals.idle.take().or_else(|| left.line());
        }
    }
}

/// The same recording by a weight, if it has what that takes. What it warns of concerns its views.
fn weight(load: &LoadOptions, spec: Spec) -> Option<Profile> {
    let load = LoadOptions {
        weight: weigh::Options {
            spec,
            ..weigh::Options::default()
        },
        ..load.clone()
    };
    Library::aside(|library| library.load(&load)).ok()
}

/// Weight and number of all samples.
fn total(profile: &Profile) -> (u64, u64) {
    let events = profile.events.iter();
    events.fold((0, 0), |(period, samples), event| {
        (period + event.period, samples + event.samples)
    })
}
