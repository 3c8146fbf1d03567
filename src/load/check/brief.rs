//! Threads that end before their next sample.
//!
//! The kernel gives each thread a counter of its own, which begins with a whole period (`inherit_event`, `kernel/events/core.c`). So a
//! thread loses what it ran behind its last sample, and one that runs shorter than a period has none. Scripts that start
//! thousands of small programs lose most of their time so, and no record tells of it. How long threads lived is recorded.
//! What lived long and has no sample has slept: only short lives count. `pjit record` also writes down what CPU time a command used,
//! which is no guess.

use crate::ids::IndexVec;
use crate::input::Story;
use crate::perfdata::attr::flag;
use crate::perfdata::{Attr, Recording, Ring};
use crate::profile::{EventId, ThreadId};
use crate::session::{SampleRef, Samples, Session};
use crate::unit::Unit;

/// In periods, the longest life that is short.
const SHORT: u64 = 10;

/// Threads that began and ended soon while a recording was made, and what they may have run without a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Brief {
    /// Threads that lived shorter than some periods.
    pub threads: u64,
    /// Those of them without a sample.
    pub unsampled: u64,
    /// Nanoseconds that they may have run behind their last samples, at most.
    pub missing: u64,
    /// Nanoseconds that all samples stand for.
    pub sampled: u64,
    /// Nanoseconds that the command used by the kernel's own count, where that is known and the event is a clock of the same.
    pub used: Option<u64>,
}

impl Brief {
    /// Per cent of the time that is missing at most.
    pub(super) fn share(&self) -> f64 {
        super::percent(self.missing, self.missing.saturating_add(self.sampled))
    }
}

/// Time between samples of an event whose counter new threads inherit; nothing where there is no such time.
fn period(attr: &Attr) -> Option<u64> {
    let is_each_threads = attr.flag(flag::INHERIT) && !attr.is_tracepoint();
    match attr.sample_period {
        _ if !is_each_threads => None,
        hertz @ 1.. if attr.is_freq() => Some(1_000_000_000 / hertz),
        period if attr.unit() == Unit::Nanoseconds => Some(period),
        _ => None,
    }
}

/// What a command used of what an event counts.
fn used(attr: &Attr, story: &Story) -> Option<u64> {
    let [user, system] = story.used?;
    let counted = match attr.ring() {
        _ if attr.unit() != Unit::Nanoseconds => return None,
        Ring::All => user.checked_add(system)?,
        Ring::User => user,
        Ring::Kernel => return None,
    };
    u64::try_from(counted.as_nanos()).ok()
}

/// The words that perf was called with, without the command that it recorded.
pub(super) fn options<'r>(recording: &'r Recording<'_>) -> impl Iterator<Item = &'r str> {
    let words = recording.features.cmdline.iter().map(String::as_str);
    words.take_while(|word| *word != "--")
}

/// Whether counters belong to processors, so that they do not end with a thread. perf sets `inherit` for them, too: its command line
/// tells, or that the idle task has samples.
fn is_of_processors(recording: &Recording<'_>, session: &Session<'_>, samples: &Samples) -> bool {
    const WORDS: [&str; 6] = ["-a", "-ag", "-ga", "--all-cpus", "-C", "--cpu"];
    let is_asked =
        options(recording).any(|word| WORDS.contains(&word) || word.starts_with("--cpu="));
    let is_idle = |sample: &SampleRef| session.threads[sample.thread].is_idle();
    is_asked || samples.all.iter().any(is_idle)
}

/// What threads may have run without a sample of an event.
pub(super) fn gather(
    recording: &Recording<'_>,
    session: &Session<'_>,
    samples: &Samples,
    event: EventId,
    story: Option<&Story>,
) -> Brief {
    let attr = recording.events.get(event).map(|event| &event.attr);
    let Some((attr, period)) = attr.and_then(|attr| Some((attr, period(attr)?))) else {
        return Brief::default();
    };
    if is_of_processors(recording, session, samples) {
        return Brief::default();
    }
    let mut counts: IndexVec<ThreadId, u64> = session.threads.iter().map(|_| 0).collect();
    let mut brief = Brief {
        used: story.and_then(|story| used(attr, story)),
        ..Brief::default()
    };
    for sample in samples.all.iter().filter(|sample| sample.event == event) {
        brief.sampled = brief.sampled.saturating_add(period);
        if let Some(count) = counts.get_mut(sample.thread) {
            *count += 1;
        }
    }
    for &thread in &session.born {
        let (life, taken) = (&session.threads[thread], counts[thread]);
        let Some((from, to)) = life.start.zip(life.end) else {
            continue;
        };
        let lived = to.0.saturating_sub(from.0);
        if lived > period.saturating_mul(SHORT) {
            continue;
        }
        let behind = lived.saturating_sub(period.saturating_mul(taken));
        brief.threads += 1;
        brief.unsampled += u64::from(taken == 0);
        brief.missing = brief.missing.saturating_add(behind.min(period));
    }
    brief
}
