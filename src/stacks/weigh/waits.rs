//! Pairs what took a thread off its processor with what shows that it was back.
//!
//! In: the steps of all threads and what the payloads of `sched:sched_switch` say. Out: [`Lives`], intervals of waiting
//! with the sample at which each began, and the time on a processor of each thread.
//!
//! An interval begins at the sample of the switch or, without one, at the record of it. It ends at the first evidence
//! that the thread runs: a switch to it (exact; by its record where there is one, which comes when the sample that told
//! of it has been written), anything else of it (late by a sampling period at most), its next
//! switch away (an upper bound), the end of the recording (open).

use rustc_hash::FxHashMap;

use crate::ids::{CommId, Idx, IndexSlice, ThreadId};
use crate::run_state::RunState;
use crate::session::marks::{Mark, Moment};
use crate::session::{SampleId, SampleRef};

use super::timeline::{Pids, Step, Story};

/// What a payload of `sched:sched_switch` or `sched:sched_stat_runtime` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SwitchFields {
    /// The thread that goes, as the payload calls it.
    pub(super) prev: u32,
    /// The thread that comes.
    pub(super) next: u32,
    /// Why it goes; `None` for threads that end.
    pub(super) state: Option<RunState>,
    /// How long the thread ran until the sample, in ns; of `sched:sched_stat_runtime`, which comes behind what it tells of.
    pub(super) ran: u64,
}

/// How an interval ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// By a switch to the thread.
    Exact,
    /// By something that only a running thread does.
    Late,
    /// By the thread's next switch away: it ran in between.
    Bound,
    /// Not before the recording did.
    Open,
}

/// A time in which a thread was not on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The sample at its beginning.
    pub sample: Option<SampleId>,
    /// Which thread.
    pub thread: ThreadId,
    /// Its comm at the beginning.
    pub comm: CommId,
    /// From when, in ns.
    pub from: u64,
    /// Until when, in ns.
    pub to: u64,
    /// Why.
    pub state: RunState,
    /// The thread had not run before.
    pub is_start: bool,
    /// Neither the sample nor the record of its beginning is there: it began when the thread was last seen, or later.
    pub is_lost: bool,
    /// What its end is known from.
    pub evidence: Evidence,
}

/// A time on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) thread: ThreadId,
    pub(super) from: u64,
    pub(super) to: u64,
    /// When the sample of the switch was taken that ended it, some microseconds before its end.
    pub(super) sampled: u64,
}

/// All threads' waiting and running.
#[derive(Debug, Default)]
pub(super) struct Lives {
    pub(super) intervals: Vec<Interval>,
    pub(super) stretches: Vec<Stretch>,
    /// The recording has records of switches.
    pub(super) has_switches: bool,
    /// It has all switches of its processors.
    pub(super) is_wide: bool,
    /// The payloads number threads as another namespace does.
    pub(super) is_foreign: bool,
    /// Threads that were there at the start, and of which nothing came.
    pub(super) silent: usize,
}

impl Lives {
    /// Whether the times on a processor are known.
    pub(super) fn knows_running(&self) -> bool {
        self.has_switches || self.is_wide
    }
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    from: u64,
    sample: Option<SampleId>,
    state: RunState,
    comm: CommId,
    is_start: bool,
    /// Nothing of the thread came after the sample.
    is_fresh: bool,
}

/// What a payload that told of a thread's turn has ended and begun.
#[derive(Debug, Clone, Copy)]
struct Coming {
    /// The number of the interval that was ended, if there was one.
    interval: Option<usize>,
    at: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Life {
    waiting: Option<Waiting>,
    running: Option<u64>,
    /// Its turn was told of by a switch to it, not seen from what it did. With records, by its own.
    is_turn_told: bool,
    /// The sample of the switch that is to come.
    leaving: Option<u64>,
    /// The sample of a switch told that it comes; the record of that is still to come. With what it waited for.
    coming: Option<Coming>,
    is_seen: bool,
    is_over: bool,
    last: u64,
    comm: CommId,
}

/// Whether there are records of switches.
pub(super) fn has_switches(marks: &[Mark]) -> bool {
    let is_switched = |mark: &Mark| matches!(mark.what, Moment::In | Moment::Out { .. });
    marks.iter().any(is_switched)
}

/// Pairs everything. `is_switch` tells which events are `sched:sched_switch`; `fields` has their payloads by sample.
pub(super) fn pair(
    story: Story<'_>,
    is_switch: &[bool],
    fields: &IndexSlice<SampleId, [SwitchFields]>,
) -> Lives {
    let out = Lives {
        has_switches: has_switches(story.marks),
        is_wide: has_all_switches(story, is_switch, fields),
        ..Lives::default()
    };
    let mut pairing = Pairing {
        tids: story.tids,
        lives: vec![Life::default(); story.tids.len()],
        pids: Pids::default(),
        end: 0,
        has_begun: false,
        out,
    };
    let mut is_met = vec![false; story.tids.len()];
    for step in story.steps() {
        let (thread, comm) = match step {
            Step::Mark(mark) => (mark.thread, mark.comm),
            Step::Sample(_, sample) => (sample.thread, sample.comm),
        };
        pairing.life(thread).comm = comm;
        is_met[thread.index()] = true;
        match step {
            Step::Mark(mark) => pairing.mark(mark),
            Step::Sample(number, sample) if is_switch[sample.event.index()] => {
                pairing.switch(number, sample, fields[number]);
            }
            Step::Sample(number, sample) => {
                let time = sample.time.0;
                pairing.runs(sample.thread, time, time.saturating_sub(fields[number].ran));
            }
        }
    }
    let threads = story.tids.iter().zip(&is_met);
    let silent = threads.filter(|(tid, was_met)| !**was_met && !matches!(**tid, 0 | NOBODY));
    pairing.out.silent = silent.count();
    pairing.finish()
}

/// Whether all switches of the recorded processors are there: who comes is who goes next, or the idle task is among them.
fn has_all_switches(
    story: Story<'_>,
    is_switch: &[bool],
    fields: &IndexSlice<SampleId, [SwitchFields]>,
) -> bool {
    /// Less than this could be chance.
    const ENOUGH: u64 = 8;
    let mut coming: FxHashMap<i32, u32> = FxHashMap::default();
    let (mut links, mut closed) = (0_u64, 0_u64);
    let samples = story.samples.iter().zip(fields);
    for (sample, switch) in samples.filter(|(s, _)| is_switch[s.event.index()]) {
        if story.tids[sample.thread.index()] == 0 {
            return true;
        }
        if let Some(came) = coming.insert(sample.cpu, switch.next) {
            links += 1;
            closed += u64::from(came == switch.prev);
        }
    }
    links >= ENOUGH && closed * 20 >= links * 19
}

/// The number of all threads that are dying.
const NOBODY: u32 = u32::MAX;

struct Pairing<'s> {
    tids: &'s [u32],
    lives: Vec<Life>,
    pids: Pids,
    end: u64,
    /// Whether any switch was told of yet: other records begin earlier.
    has_begun: bool,
    out: Lives,
}

impl Pairing<'_> {
    fn life(&mut self, thread: ThreadId) -> &mut Life {
        &mut self.lives[thread.index()]
    }

    fn see(&mut self, thread: ThreadId, time: u64) {
        self.end = self.end.max(time);
        let life = &mut self.lives[thread.index()];
        life.last = life.last.max(time);
        if !life.is_seen {
            life.is_seen = true;
            let tid = self.tids[thread.index()];
            self.pids.seen(tid, thread);
        }
    }

    /// Who goes. The kernel has no numbers of a dying thread for perf any more; that of the payload is still its own.
    fn goer(&self, sample: &SampleRef, fields: SwitchFields) -> ThreadId {
        if self.tids[sample.thread.index()] == NOBODY {
            self.pids.find(fields.prev).unwrap_or(sample.thread)
        } else {
            sample.thread
        }
    }

    /// A sample of `sched:sched_switch`: the thread goes, and the payload tells who comes.
    fn switch(&mut self, number: SampleId, sample: &SampleRef, fields: SwitchFields) {
        let (thread, time) = (self.goer(sample, fields), sample.time.0);
        self.has_begun = true;
        self.see(thread, time);
        self.life(thread).coming = None;
        let tid = self.tids[thread.index()];
        if tid != NOBODY {
            self.pids.called(fields.prev, tid, thread);
        }
        self.end_waiting(thread, time, Evidence::Bound);
        if self.out.has_switches {
            self.life(thread).leaving = Some(time);
        } else {
            self.end_running(thread, time);
        }
        match fields.state.filter(|_| tid != NOBODY) {
            None => self.life(thread).is_over = true,
            Some(state) => {
                let is_known = thread == sample.thread;
                let comm = if is_known {
                    sample.comm
                } else {
                    self.life(thread).comm
                };
                self.life(thread).waiting = Some(Waiting {
                    from: time,
                    sample: Some(number),
                    state,
                    comm,
                    is_start: false,
                    is_fresh: true,
                });
            }
        }
        if let Some(next) = self.pids.find(fields.next) {
            if !self.out.has_switches {
                self.end_lost_turn(next, time);
            }
            let interval = self.out.intervals.len();
            self.comes(next, time);
            self.life(next).is_turn_told |= !self.out.has_switches;
            let has_ended = self.out.intervals.len() > interval;
            self.life(next).coming = Some(Coming {
                interval: has_ended.then_some(interval),
                at: time,
            });
        }
    }

    /// The record of a thread's turn comes some microseconds after the sample that told of it, whose stack was being
    /// written meanwhile: the thread waits until then.
    fn comes_at_last(&mut self, thread: ThreadId, time: u64) {
        let life = &mut self.lives[thread.index()];
        let Some(coming) = life.coming.take() else {
            return;
        };
        if life.running != Some(coming.at) {
            return;
        }
        life.running = Some(time.max(coming.at));
        if let Some(interval) = coming.interval.and_then(|n| self.out.intervals.get_mut(n)) {
            interval.to = interval.to.max(time);
        }
    }

    fn mark(&mut self, mark: &Mark) {
        let (thread, time) = (mark.thread, mark.time.0);
        self.has_begun |= matches!(mark.what, Moment::In | Moment::Out { .. });
        match mark.what {
            Moment::In => {
                self.end_lost_turn(thread, time);
                self.see(thread, time);
                self.comes_at_last(thread, time);
                self.comes(thread, time);
                self.life(thread).is_turn_told = true;
            }
            Moment::Out { preempted } => self.goes(mark, preempted),
            Moment::Born { .. } => self.born(mark),
            Moment::Ran | Moment::Exec(_) => self.runs(thread, time, time),
            Moment::Exit => {
                self.runs(thread, time, time);
                self.life(thread).is_over = true;
            }
        }
    }

    /// A thread that comes again without having gone: it went when it was last seen, or later. Until when it ran is not
    /// known, so the rest is no time on a processor.
    fn end_lost_turn(&mut self, thread: ThreadId, time: u64) {
        let life = self.life(thread);
        if life.running.is_none() || !life.is_turn_told {
            return;
        }
        // The sample of the switch may be there without its record.
        let is_known = life.waiting.is_some();
        let from = life.leaving.unwrap_or(life.last);
        let comm = life.comm;
        self.end_running(thread, from);
        if !is_known && time > from {
            self.out.intervals.push(Interval {
                sample: None,
                thread,
                comm,
                from,
                to: time,
                state: RunState::Unknown,
                is_start: false,
                is_lost: true,
                evidence: Evidence::Exact,
            });
        }
    }

    /// A thread is on a processor from now on.
    fn comes(&mut self, thread: ThreadId, time: u64) {
        self.end_waiting(thread, time, Evidence::Exact);
        self.life(thread).running.get_or_insert(time);
    }

    /// A thread does something: it is on a processor, as it was since a time that may be told.
    fn runs(&mut self, thread: ThreadId, time: u64, since: u64) {
        self.see(thread, time);
        self.life(thread).coming = None;
        self.end_waiting(thread, since, Evidence::Late);
        if !self.life(thread).is_over {
            self.life(thread).running.get_or_insert(since);
        }
    }

    /// The record of a switch away. The sample of it came before, if there was one.
    fn goes(&mut self, mark: &Mark, preempted: bool) {
        let (thread, time) = (mark.thread, mark.time.0);
        self.see(thread, time);
        self.life(thread).coming = None;
        self.end_running(thread, time);
        let life = self.life(thread);
        if life.is_over {
            return;
        }
        if let Some(waiting) = life.waiting.as_mut().filter(|waiting| waiting.is_fresh) {
            waiting.is_fresh = false;
            return;
        }
        self.end_waiting(thread, time, Evidence::Bound);
        let state = if preempted {
            RunState::Runnable
        } else {
            RunState::Blocked
        };
        self.life(thread).waiting = Some(Waiting {
            from: time,
            sample: None,
            state,
            comm: mark.comm,
            is_start: false,
            is_fresh: false,
        });
    }

    /// A thread that was made waits for its first turn, if it is told when that comes. One that was made before switches were told of
    /// may have run and gone to sleep since.
    fn born(&mut self, mark: &Mark) {
        self.see(mark.thread, mark.time.0);
        let may_have_run = self.out.is_wide && !self.has_begun;
        if self.out.knows_running() && !may_have_run {
            self.life(mark.thread).waiting = Some(Waiting {
                from: mark.time.0,
                sample: None,
                state: RunState::Runnable,
                comm: mark.comm,
                is_start: true,
                is_fresh: false,
            });
        }
    }

    fn end_waiting(&mut self, thread: ThreadId, time: u64, evidence: Evidence) {
        let Some(waiting) = self.life(thread).waiting.take() else {
            return;
        };
        self.out.intervals.push(Interval {
            sample: waiting.sample,
            thread,
            comm: waiting.comm,
            from: waiting.from,
            to: time.max(waiting.from),
            state: waiting.state,
            is_start: waiting.is_start,
            is_lost: false,
            evidence,
        });
    }

    fn end_running(&mut self, thread: ThreadId, time: u64) {
        let life = self.life(thread);
        let sampled = life.leaving.take().unwrap_or(time);
        life.is_turn_told = false;
        if let Some(from) = life.running.take() {
            self.out.stretches.push(Stretch {
                thread,
                from,
                to: time.max(from),
                sampled: sampled.max(from),
            });
        }
    }

    /// The recording is at its end. Who waits then is taken to wait until then, who runs to have run while it was seen.
    fn finish(mut self) -> Lives {
        for number in 0..self.lives.len() {
            let thread = ThreadId::from_usize(number);
            let (end, last) = (self.end, self.lives[number].last);
            self.end_waiting(thread, end, Evidence::Open);
            self.end_running(thread, last);
        }
        self.out.is_foreign = self.pids.are_foreign();
        // In the order in which they began; what began at once, in that of the threads.
        let place = |i: &Interval| (i.from, i.sample, i.thread);
        self.out.intervals.sort_by_key(place);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Avma, Timestamp};
    use crate::ids::IndexVec;
    use crate::perfdata::{CpuMode, EventId, RecordPos};
    use crate::session::{Label, SpaceId};

    const SWITCH: u16 = 0;
    const CLOCK: u16 = 1;

    /// Threads 1 and 2 are called 11 and 12; thread 0 is the idle one.
    #[derive(Default)]
    struct Tale {
        samples: IndexVec<SampleId, SampleRef>,
        fields: IndexVec<SampleId, SwitchFields>,
        marks: Vec<Mark>,
    }

    impl Tale {
        fn sample(&mut self, event: u16, thread: u32, time: u64, fields: SwitchFields) {
            self.samples.push(SampleRef {
                pos: RecordPos(0),
                time: Timestamp(time),
                ip: Avma(0),
                period: 1,
                thread: ThreadId(thread),
                comm: CommId(0),
                space: SpaceId(0),
                cpu: 0,
                event: EventId(event),
                layout: EventId(event),
                mode: CpuMode::Kernel,
                state: RunState::Unknown,
                label: Label::NONE,
            });
            self.fields.push(fields);
        }

        fn switch(&mut self, thread: u32, time: u64, state: Option<RunState>, next: u32) {
            let fields = SwitchFields {
                prev: if thread == 0 { 0 } else { 10 + thread },
                next,
                state,
                ran: 0,
            };
            self.sample(SWITCH, thread, time, fields);
        }

        fn mark(&mut self, thread: u32, time: u64, what: Moment) {
            self.marks.push(Mark {
                before: self.samples.next_idx(),
                thread: ThreadId(thread),
                comm: CommId(0),
                time: Timestamp(time),
                what,
            });
        }

        fn pair(&self) -> Lives {
            let story = Story {
                samples: &self.samples,
                marks: &self.marks,
                tids: &[0, 11, 12, NOBODY],
            };
            pair(story, &[true, false], &self.fields)
        }
    }

    #[test]
    fn threads_of_which_nothing_came_are_counted() {
        let mut tale = Tale::default();
        tale.mark(1, 5, Moment::In);
        tale.switch(1, 10, Some(RunState::Blocked), 0);
        assert_eq!(tale.pair().silent, 1);
        tale.mark(2, 20, Moment::In);
        assert_eq!(tale.pair().silent, 0);
    }

    /// (thread, from, to, evidence) of each interval.
    fn told(lives: &Lives) -> Vec<(u32, u64, u64, Evidence)> {
        let told = lives.intervals.iter();
        told.map(|i| (i.thread.0, i.from, i.to, i.evidence))
            .collect()
    }

    const BLOCKED: Option<RunState> = Some(RunState::Blocked);

    #[test]
    fn how_long_a_thread_ran_tells_when_it_began() {
        let mut tale = Tale::default();
        tale.switch(1, 10, BLOCKED, 0);
        let ran = |ran| SwitchFields {
            ran,
            ..SwitchFields::default()
        };
        tale.sample(CLOCK, 1, 50, ran(20));
        tale.switch(1, 60, BLOCKED, 0);
        // Longer than since it went: it had not come back before it went.
        tale.sample(CLOCK, 1, 70, ran(100));
        let (late, lives) = (Evidence::Late, tale.pair());
        assert_eq!(told(&lives), [(1, 10, 30, late), (1, 60, 60, late)]);
    }

    #[test]
    fn a_turn_begins_at_its_record_and_not_where_it_was_announced() {
        let mut tale = Tale::default();
        tale.mark(1, 5, Moment::In);
        tale.mark(2, 6, Moment::In);
        tale.switch(2, 10, BLOCKED, 0);
        tale.mark(2, 12, Moment::Out { preempted: false });
        tale.switch(1, 20, BLOCKED, 12);
        tale.mark(1, 23, Moment::Out { preempted: false });
        tale.mark(2, 24, Moment::In);
        tale.mark(2, 30, Moment::Out { preempted: true });
        let lives = tale.pair();
        assert_eq!(told(&lives)[0], (2, 10, 24, Evidence::Exact));
        let last = lives.stretches.last().expect("it ran");
        assert_eq!((last.thread.0, last.from, last.to), (2, 24, 30));
    }

    #[test]
    fn what_a_thread_does_is_better_evidence_than_a_record_that_comes_later() {
        let mut tale = Tale::default();
        tale.mark(2, 6, Moment::In);
        tale.switch(2, 10, BLOCKED, 0);
        tale.mark(2, 12, Moment::Out { preempted: false });
        tale.switch(1, 20, BLOCKED, 12);
        tale.sample(CLOCK, 2, 22, SwitchFields::default());
        tale.mark(2, 24, Moment::In);
        let lives = tale.pair();
        assert_eq!(told(&lives)[0], (2, 10, 20, Evidence::Exact));
    }

    #[test]
    fn a_wait_ends_with_the_switch_to_its_thread() {
        let mut tale = Tale::default();
        tale.mark(1, 5, Moment::In);
        tale.switch(1, 10, BLOCKED, 0);
        tale.mark(1, 12, Moment::Out { preempted: false });
        tale.mark(1, 30, Moment::In);
        tale.switch(1, 40, None, 0);
        tale.mark(1, 41, Moment::Out { preempted: false });
        let lives = tale.pair();
        assert_eq!(told(&lives), [(1, 10, 30, Evidence::Exact)]);
        let ran: Vec<_> = lives
            .stretches
            .iter()
            .map(|s| (s.from, s.sampled, s.to))
            .collect();
        assert_eq!(ran, [(5, 10, 12), (30, 40, 41)]);
    }

    #[test]
    fn without_records_of_switches_other_evidence_ends_a_wait() {
        let mut tale = Tale::default();
        tale.switch(1, 10, BLOCKED, 12);
        tale.switch(2, 20, BLOCKED, 11);
        tale.switch(1, 30, BLOCKED, 77);
        tale.sample(CLOCK, 1, 44, SwitchFields::default());
        tale.switch(1, 50, Some(RunState::Runnable), 77);
        tale.switch(1, 60, BLOCKED, 77);
        tale.mark(1, 70, Moment::Exit);
        assert_eq!(
            told(&tale.pair()),
            [
                (1, 10, 20, Evidence::Exact),
                (2, 20, 70, Evidence::Open),
                (1, 30, 44, Evidence::Late),
                (1, 50, 60, Evidence::Bound),
                (1, 60, 70, Evidence::Late),
            ]
        );
    }

    #[test]
    fn a_switch_without_its_sample_is_an_interval_without_a_stack() {
        let mut tale = Tale::default();
        tale.switch(1, 10, BLOCKED, 0);
        tale.sample(CLOCK, 1, 11, SwitchFields::default());
        tale.mark(1, 12, Moment::Out { preempted: true });
        tale.mark(1, 30, Moment::In);
        let lives = tale.pair();
        assert_eq!(
            told(&lives),
            [(1, 10, 11, Evidence::Late), (1, 12, 30, Evidence::Exact)]
        );
        assert_eq!(lives.intervals[1].sample, None);
        assert_eq!(lives.intervals[1].state, RunState::Runnable);
    }

    #[test]
    fn a_lost_switch_away_is_no_time_on_a_processor() {
        for has_records in [true, false] {
            let mut tale = Tale::default();
            let turn = |tale: &mut Tale, time| {
                if has_records {
                    tale.mark(1, time, Moment::In)
                } else {
                    tale.switch(2, time, BLOCKED, 11)
                }
            };
            tale.sample(CLOCK, 2, 1, SwitchFields::default());
            tale.sample(CLOCK, 1, 1, SwitchFields::default());
            if !has_records {
                // That all switches are there is seen from these.
                for time in 2..20 {
                    tale.switch(0, time, BLOCKED, 0);
                }
            }
            turn(&mut tale, 100);
            tale.sample(CLOCK, 1, 105, SwitchFields::default());
            turn(&mut tale, 200);
            tale.sample(CLOCK, 1, 205, SwitchFields::default());
            let lives = tale.pair();
            let lost: Vec<_> = lives.intervals.iter().filter(|i| i.is_lost).collect();
            assert_eq!(lost.len(), 1, "{has_records}: {lives:?}");
            assert_eq!((lost[0].from, lost[0].to), (105, 200));
            assert_eq!((lost[0].sample, lost[0].state), (None, RunState::Unknown));
            let of_it = lives.stretches.iter().filter(|s| s.thread.0 == 1);
            let ran: u64 = of_it.map(|s| s.to - s.from).sum();
            assert!(ran <= 5 + 5 + 104, "{ran}");
        }
    }

    #[test]
    fn a_record_that_was_lost_behind_its_sample_ends_the_turn_at_the_sample() {
        let mut tale = Tale::default();
        tale.mark(1, 5, Moment::In);
        tale.switch(1, 10, BLOCKED, 0);
        tale.mark(1, 30, Moment::In);
        tale.mark(1, 40, Moment::Out { preempted: false });
        let lives = tale.pair();
        assert_eq!(told(&lives)[0], (1, 10, 30, Evidence::Exact));
        let ran: Vec<_> = lives.stretches.iter().map(|s| (s.from, s.to)).collect();
        assert_eq!(ran, [(5, 10), (30, 40)]);
    }

    #[test]
    fn a_thread_waits_for_its_first_turn() {
        use crate::jit::ProcessId;
        let mut tale = Tale::default();
        let process = ProcessId(0);
        let born = Moment::Born {
            parent: process,
            child: process,
        };
        tale.mark(2, 10, born);
        tale.mark(2, 15, Moment::In);
        let lives = tale.pair();
        assert_eq!(told(&lives), [(2, 10, 15, Evidence::Exact)]);
        assert!(lives.intervals[0].is_start);
        // Where all switches of a processor are told of from some time on, it may have run and slept before.
        let mut wide = Tale::default();
        wide.mark(1, 1, born);
        wide.switch(0, 5, Some(RunState::Runnable), 11);
        wide.mark(2, 6, born);
        wide.switch(1, 9, Some(RunState::Blocked), 12);
        wide.switch(2, 11, None, 0);
        let waited = told(&wide.pair());
        let of = |thread| waited.iter().find(|wait| wait.0 == thread);
        assert_eq!(of(2), Some(&(2, 6, 9, Evidence::Exact)));
        assert!(of(1).is_none_or(|wait| wait.1 >= 9), "{waited:?}");
    }

    /// A thread that is preempted while it dies has no number any more, and goes on to die.
    #[test]
    fn dying_threads_are_known_by_the_payload() {
        let mut tale = Tale::default();
        tale.switch(0, 1, Some(RunState::Runnable), 11);
        tale.switch(1, 5, Some(RunState::Blocked), 0);
        tale.switch(0, 6, Some(RunState::Runnable), 11);
        let dying = |prev, state| SwitchFields {
            prev,
            next: 0,
            state,
            ran: 0,
        };
        tale.sample(SWITCH, 3, 8, dying(11, Some(RunState::Runnable)));
        tale.switch(0, 9, Some(RunState::Runnable), 11);
        tale.sample(SWITCH, 3, 10, dying(11, None));
        // One that was never seen.
        tale.sample(SWITCH, 3, 12, dying(77, Some(RunState::Runnable)));
        tale.switch(0, 90, Some(RunState::Runnable), 0);
        let waited = told(&tale.pair());
        let of = |thread| waited.iter().filter(move |wait| wait.0 == thread);
        let times: Vec<_> = of(1).map(|wait| (wait.1, wait.2)).collect();
        assert_eq!(times, [(5, 6), (8, 9)]);
        assert_eq!(of(3).count(), 0, "{waited:?}");
    }
}
