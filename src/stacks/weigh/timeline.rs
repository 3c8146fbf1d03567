//! What happened to each thread, one thing after the other: samples and marks in the order of their delivery.

use rustc_hash::FxHashMap;

use crate::ids::{IndexSlice, ThreadId};
use crate::session::marks::Mark;
use crate::session::{SampleId, SampleRef, Samples, Session};

/// Everything that happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Story<'s> {
    pub(super) samples: &'s IndexSlice<SampleId, [SampleRef]>,
    pub(super) marks: &'s [Mark],
    /// The number of each thread.
    pub(super) tids: &'s [u32],
}

/// One thing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    /// A sample with its number.
    Sample(SampleId, &'s SampleRef),
    /// Something else.
    Mark(&'s Mark),
}

impl<'s> Story<'s> {
    /// What a session tells.
    pub(super) fn of(session: &'s Session<'_>, samples: &'s Samples, tids: &'s [u32]) -> Self {
        Self {
            samples: &samples.all,
            marks: &session.marks,
            tids,
        }
    }

    /// All steps in order.
    pub(super) fn steps(self) -> impl Iterator<Item = Step<'s>> {
        let mut marks = self.marks.iter().peekable();
        let mut samples = self.samples.iter_enumerated().peekable();
        std::iter::from_fn(move || {
            let next = samples.peek().map(|(number, _)| *number);
            let comes_now = |mark: &&Mark| next.is_none_or(|next| mark.before <= next);
            if let Some(mark) = marks.next_if(comes_now) {
                return Some(Step::Mark(mark));
            }
            let (number, sample) = samples.next()?;
            Some(Step::Sample(number, sample))
        })
    }
}

/// The numbers of a session's threads.
pub(super) fn tids(session: &Session<'_>) -> Vec<u32> {
    session.threads.iter().map(|thread| thread.tid).collect()
}

/// Which thread a number in a payload means. Payloads have those of the initial pid namespace, samples those of the
/// recorder's: what belongs together is learned from the threads that are switched away from.
#[derive(Debug, Default)]
pub(super) struct Pids {
    by_field: FxHashMap<u32, ThreadId>,
    by_tid: FxHashMap<u32, ThreadId>,
    equal: u64,
    unequal: u64,
}

impl Pids {
    /// A thread of this number is alive.
    pub(super) fn seen(&mut self, tid: u32, thread: ThreadId) {
        self.by_tid.insert(tid, thread);
    }

    /// A payload calls a thread so.
    pub(super) fn called(&mut self, field: u32, tid: u32, thread: ThreadId) {
        self.by_field.insert(field, thread);
        if field == tid {
            self.equal += 1;
        } else {
            self.unequal += 1;
        }
    }

    /// Whether payloads have numbers of another namespace.
    pub(super) fn are_foreign(&self) -> bool {
        self.unequal > self.equal
    }

    /// The thread that a payload calls so.
    pub(super) fn find(&self, field: u32) -> Option<ThreadId> {
        let own = self.by_tid.get(&field).filter(|_| !self.are_foreign());
        own.or_else(|| self.by_field.get(&field)).copied()
    }
}
