//! The idle task: what a processor runs when there is nothing to do is no CPU that anybody used.
//!
//! `perf record -a` samples it with clocks and cycles. For a fixed time of all processors what programs take and what is idle
//! add up to the same whatever happens: a program that takes twice as long showed no growth of the total.

use crate::functions::tally::Count;
use crate::ids::{IndexVec, index_vec};
use crate::profile::{EventId, Profile, ThreadId};
use crate::unit::Unit;

/// What was left out of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Idle {
    /// Weight of the idle task.
    pub count: Count,
    /// Processors that it ran on, 0 if the recording does not tell.
    pub cpus: usize,
    /// Of what.
    pub unit: Unit,
}

impl Idle {
    /// `idle: 12.3 s of 2 CPUs left out (--idle keeps it)`; nothing where nothing was.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        if self.count.samples == 0 {
            return None;
        }
        let cpus = match self.cpus {
            0 => String::new(),
            1 => " of 1 CPU".to_owned(),
            n => format!(" of {n} CPUs"),
        };
        let much = amount(self.unit, self.count.period);
        Some(format!("idle: {much}{cpus} left out (--idle keeps it)"))
    }
}

/// Seconds, or cycles.
#[must_use]
pub fn amount(unit: Unit, weight: u64) -> String {
    match unit {
        Unit::Nanoseconds => unit.human(weight),
        _ => format!("{weight} cycles"),
    }
}

/// Takes the samples of the idle task out of all events that stand for CPU, and out of their totals.
pub fn leave_out(profile: &mut Profile) -> IndexVec<EventId, Idle> {
    let counts = weights(profile);
    let is_idle: IndexVec<ThreadId, bool> = profile.threads.iter().map(|t| t.is_idle()).collect();
    let goes = |event: EventId, thread: ThreadId| counts[event].samples > 0 && is_idle[thread];
    if counts.iter().any(|count| count.samples > 0) {
        // What it runs nearly always has a name, and nobody looks at it: it is no evidence for the names of the rest.
        let mut nameless: IndexVec<EventId, u64> = index_vec![0; counts.len()];
        for of in profile.portions().filter(|of| goes(of.event, of.thread)) {
            nameless[of.event] += of.samples * u64::from(profile[of.leaf].symbol.is_none());
        }
        for (event, quality) in profile.quality.events.iter_mut_enumerated() {
            quality.samples = quality.samples.saturating_sub(counts[event].samples);
            quality.unresolved_samples = quality.unresolved_samples.saturating_sub(nameless[event]);
        }
        profile
            .entries
            .retain(|entry| !goes(entry.event, entry.thread));
        profile
            .samples
            .retain(|sample| !goes(sample.event, sample.thread));
    }
    let cpus = profile.recording.idle_cpus;
    let events = profile.events.iter_mut().zip(&counts);
    let left = events.map(|(event, count)| {
        event.samples = event.samples.saturating_sub(count.samples);
        event.period = event.period.saturating_sub(count.period);
        Idle {
            count: *count,
            cpus,
            unit: event.unit,
        }
    });
    left.collect()
}

/// What the idle task weighs in events that stand for CPU.
#[must_use]
pub fn weights(profile: &Profile) -> IndexVec<EventId, Count> {
    let mut counts: IndexVec<EventId, Count> = index_vec![Count::default(); profile.events.len()];
    for of in profile.portions() {
        if profile[of.thread].is_idle() && profile[of.event].is_cpu() {
            counts[of.event].add(Count {
                period: of.period,
                samples: of.samples,
            });
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::EventQuality;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn the_idle_task_is_no_cpu() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "work;main", 3_000_000_000);
        builder.sample("swapper", "cpu_idle", 5_000_000_000);
        let faults = builder.add_event("page-faults");
        builder.event = faults;
        builder.sample("swapper", "cpu_idle", 7);
        let mut profile = builder.finish();
        let clock = EventId(0);
        profile.events[clock].unit = Unit::Nanoseconds;
        profile.recording.idle_cpus = 2;
        profile.quality.events = index_vec![EventQuality::default(); 2];
        let quality = &mut profile.quality.events[clock];
        (quality.samples, quality.unresolved_samples) = (2, 1);
        let idle = profile.threads.last_idx();
        (profile.threads[idle].pid, profile.threads[idle].tid) = (0, 0);
        let left = leave_out(&mut profile);
        // What it runs has a name, which says nothing of the rest.
        let quality = &profile.quality.events[clock];
        assert_eq!((quality.samples, quality.unresolved_samples), (1, 1));
        assert_eq!(
            left[clock].line().as_deref(),
            Some("idle: 5.000 s of 2 CPUs left out (--idle keeps it)")
        );
        // Faults are what they are, whoever has them.
        assert_eq!(left[faults].line(), None);
        let event = &profile[clock];
        assert_eq!((event.samples, event.period), (1, 3_000_000_000));
        assert_eq!(profile.entries.len(), 2);
        // Weights that were asked for tell of other things than CPU.
        profile.entries[0].thread = idle;
        profile.events[clock].counted = Some("intervals");
        assert_eq!(leave_out(&mut profile)[clock].count, Count::default());
    }
}
