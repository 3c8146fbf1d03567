//! Gaps: times in which a thread had no CPU. Whether it waited or was not let run switches tell, where they were recorded, and samples
//! do not.

use std::cmp::Reverse;

use super::spells::{long_step, median, usual_period};
use super::timeline::{OfThread, Timeline};
use crate::functions::FunctionId;
use crate::profile::{ThreadId, Wait};
use crate::run_state::RunState;

/// The gaps of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// The thread.
    pub thread: ThreadId,
    /// In order of time.
    pub all: Vec<Gap>,
}

/// A time without a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Time of the sample before it.
    pub from: u64,
    /// Time of the sample behind it.
    pub to: u64,
    /// The innermost function before it.
    pub before: FunctionId,
    /// The innermost function behind it.
    pub behind: FunctionId,
    /// What the thread did for more than half of it, if switches tell.
    pub state: Option<RunState>,
}

impl Gap {
    /// How long it is.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.to - self.from
    }
}

impl Gaps {
    /// How long they are together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.all
            .iter()
            .fold(0, |sum, gap| sum.saturating_add(gap.length()))
    }

    /// The median of their lengths.
    #[must_use]
    pub fn median(&self) -> u64 {
        median(self.all.iter().map(Gap::length).collect())
    }

    /// The longest, of equals the first.
    #[must_use]
    pub fn longest(&self) -> Option<&Gap> {
        self.all.iter().rev().max_by_key(|gap| gap.length())
    }
}

/// Shorter ones are none, in ns.
const SHORTEST: u64 = 50_000_000;

/// The gaps of all threads, and how many times without a sample are none for certain, since samples were lost in them.
pub(super) fn find(
    timeline: &Timeline<'_>,
    threads: &[OfThread<'_>],
    lost_at: &[u64],
) -> (Vec<Gaps>, usize) {
    let mut all: Vec<Gaps> = threads
        .iter()
        .map(|of| Gaps {
            thread: of.thread,
            all: of_thread(timeline, of),
        })
        .collect();
    let is_certain = |gap: &Gap| {
        let next = lost_at.partition_point(|time| *time < gap.from);
        lost_at.get(next).is_none_or(|time| *time > gap.to)
    };
    let count = |lists: &[Gaps]| -> usize { lists.iter().map(|gaps| gaps.all.len()).sum() };
    let found = count(&all);
    all.iter_mut().for_each(|gaps| gaps.all.retain(is_certain));
    let lost = found - count(&all);
    all.retain(|gaps| !gaps.all.is_empty());
    all.sort_by_key(|gaps| (Reverse(gaps.total()), gaps.thread));
    (all, lost)
}

fn of_thread(timeline: &Timeline<'_>, of: &OfThread<'_>) -> Vec<Gap> {
    let moments = &of.moments;
    let usual = long_step(moments).unwrap_or(0);
    let period = usual_period(timeline, moments);
    let least = SHORTEST
        .max(period.saturating_mul(20))
        .max(usual.saturating_mul(3));
    let pairs = moments.windows(2);
    let pairs = pairs.filter(|pair| pair[1].time - pair[0].time > least);
    pairs
        .map(|pair| Gap {
            from: pair[0].time,
            to: pair[1].time,
            before: timeline.paths[pair[0].path].leaf,
            behind: timeline.paths[pair[1].path].leaf,
            state: state(&of.away, (pair[0].time, pair[1].time)),
        })
        .collect()
}

/// What a thread did for more than half of a time, by its waits in order.
fn state(waits: &[Wait], (from, to): (u64, u64)) -> Option<RunState> {
    let mut sums = [RunState::Blocked, RunState::BlockedIo, RunState::Runnable].map(|of| (0, of));
    let end = |wait: &Wait| wait.to.unwrap_or(u64::MAX);
    let first = waits.partition_point(|wait| end(wait) <= from);
    for wait in waits[first..].iter().take_while(|wait| wait.from < to) {
        let inside = end(wait).min(to).saturating_sub(wait.from.max(from));
        let sum = sums.iter_mut().find(|(_, state)| *state == wait.state);
        if let Some((sum, _)) = sum {
            *sum += inside;
        }
    }
    let most = sums.into_iter().max_by_key(|(sum, _)| *sum);
    most.filter(|(sum, _)| 2 * sum > to - from)
        .map(|(_, state)| state)
}
