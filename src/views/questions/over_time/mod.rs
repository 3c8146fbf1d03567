//! When: long spells in one function, times without CPU, phases in which a program does different things.
//!
//! In: a profile that knows when its samples were taken, and its functions. Out: an [`OverTime`]. The three answer three questions: what changed
//! for long is a phase, what one thread did without a break a spell, and where a thread had no CPU a gap. A stall is a spell: it is
//! too short for a phase, and is the same kind of code as everything else.
//!
//! Which samples count matters more than any test of them. Looked at are the threads that run own code, where any does: of compilers and
//! collectors phases would be their own. What an interrupt put on top of a stack is cut off: a neighbour's load is no phase of the
//! program. And cut stacks prove nothing about what was running, so that spells leave them out.

mod gaps;
mod glance;
mod phases;
mod series;
mod spells;
mod timeline;

#[cfg(test)]
mod tests;

pub use gaps::{Gap, Gaps};
pub use phases::Phase;
pub use series::{COLUMNS, Series};
pub use spells::Spell;

use std::collections::BTreeMap;

use crate::functions::Functions;
use crate::functions::tally::Count;
use crate::needs::Needs;
use crate::profile::{EventId, Profile, ThreadId};
use timeline::Timeline;

/// What it looks at.
pub const NEEDS: Needs = Needs::TIMES.union(Needs::WAITS);

/// What a recording says about when.
#[derive(Debug, Default)]
pub struct OverTime {
    /// Time of the recording's first sample, from which all is counted that is told.
    pub begin: u64,
    /// Times of the first and the last sample that were looked at, in ns.
    pub range: (u64, u64),
    /// All samples that have a time.
    pub total: Count,
    /// Threads with own code, or all where none has.
    pub threads: BTreeMap<ThreadId, Thread>,
    /// Whether they have own code.
    pub are_own: bool,
    /// Whether samples stand for CPU, so that spells and gaps can be told.
    pub is_cpu: bool,
    /// Whether switches were recorded with stacks, so that waits are known.
    pub knows_waits: bool,
    /// Phases in order; one or none where nothing changed for long.
    pub phases: Vec<Phase>,
    /// Long spells, those first that take most time together.
    pub spells: Vec<Spell>,
    /// Times without CPU by thread, the longest together first.
    pub gaps: Vec<Gaps>,
    /// Times of a thread without a sample in which samples were lost: whether it ran nothing tells.
    pub lost_gaps: usize,
    /// Functions that change most over time.
    pub series: Vec<Series>,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name at the end.
    pub comm: String,
}

impl OverTime {
    /// Times of the phases alone.
    #[must_use]
    pub fn phases(profile: &Profile, functions: &Functions, event: EventId) -> Vec<(u64, u64)> {
        let timeline = Timeline::of(profile, functions, event);
        let phases = timeline.map(|timeline| phases::find(&timeline));
        let phases = phases.unwrap_or_default();
        phases.iter().map(|phase| (phase.from, phase.to)).collect()
    }

    /// Looks at the samples of an event; nothing where none has a time.
    #[must_use]
    pub fn of(profile: &Profile, functions: &Functions, event: EventId) -> Option<Self> {
        let timeline = Timeline::of(profile, functions, event)?;
        let is_cpu = is_cpu(profile, event);
        let (spells, (gaps, lost_gaps)) = if is_cpu {
            let threads = timeline.by_thread();
            (
                spells::find(&timeline, &threads),
                gaps::find(&timeline, &threads, &profile.recording.lost_at),
            )
        } else {
            Default::default()
        };
        Some(Self {
            begin: profile.recording.begin.unwrap_or(timeline.range().0),
            range: timeline.range(),
            total: timeline.total(),
            phases: phases::find(&timeline),
            spells,
            gaps,
            lost_gaps,
            is_cpu,
            series: series::find(&timeline),
            knows_waits: timeline.knows_waits(),
            are_own: timeline.are_own,
            threads: timeline
                .threads
                .iter()
                .map(|id| (*id, thread(profile, *id)))
                .collect(),
        })
    }
}

/// Spells that are all shorter than this, in ns, are worth no line.
const WORTH: u64 = 100_000_000;

/// The spells of an event that are worth a line beside the answer to another question: those that come back, else those that take
/// most time together. That is a tenth of what a cheap answer costs, so there is a glance first, and then a look at what that leaves; phases
/// would cost as much again.
#[must_use]
pub fn worth_a_line(profile: &Profile, functions: &Functions, event: EventId) -> Option<Spell> {
    if !is_cpu(profile, event) {
        return None;
    }
    let suspects = glance::suspects(profile, functions, event, WORTH);
    if suspects.is_empty() {
        return None;
    }
    let timeline = Timeline::of_suspects(profile, functions, event, &suspects)?;
    let mut spells = spells::find(&timeline, &timeline.by_thread());
    spells.retain(|spell| spell.lengths[spell.longest] >= WORTH);
    let comes_back = spells.iter().position(|spell| spell.every.is_some());
    (!spells.is_empty()).then(|| spells.swap_remove(comes_back.unwrap_or(0)))
}

/// Whether samples stand for CPU. Other events happen for reasons of their own: without one of them a thread may have run.
fn is_cpu(profile: &Profile, event: EventId) -> bool {
    profile.events[event].is_cpu() && !profile.events[event].is_off_cpu()
}

fn thread(profile: &Profile, id: ThreadId) -> Thread {
    let thread = &profile[id];
    Thread {
        pid: thread.pid,
        tid: thread.tid,
        comm: profile[thread.comm].clone(),
    }
}
