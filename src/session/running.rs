//! How many threads of the recording ran at the same time, by records of switches.
//!
//! Counts as perf 7 does (`machine__process_switch_event`): one thread runs when recording begins, a switch in adds one, a
//! switch out or an end takes one away: threads that end write no switch. Recordings of whole CPUs, where perf counts the
//! idle task too and so always the same, count the other tasks, those that ran from the beginning included; there the CPU of
//! a thread that ends switches to another.

use rustc_hash::FxHashSet;

use super::SampleId;

/// Counts switches while records are delivered.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// How many more have come than gone.
    switched: i64,
    /// How many have ended.
    ended: i64,
    /// Tasks of CPU-wide records that were met.
    known: FxHashSet<u32>,
    /// Those whose first switch took them off a CPU.
    from_start: i64,
    is_wide: bool,
    /// From which sample on how many more had come than gone, and how many had ended.
    steps: Vec<(u64, i64, i64)>,
}

impl Running {
    /// A thread ended.
    pub(super) fn exit(&mut self) {
        self.ended += 1;
    }

    /// A record of a switch.
    pub(super) fn switch(
        &mut self,
        out: bool,
        other: Option<(u32, u32)>,
        task: Option<(u32, u32)>,
    ) {
        if other.is_some() {
            self.is_wide = true;
            let Some((_, tid @ 1..)) = task else { return };
            let is_new = self.known.insert(tid);
            self.from_start += i64::from(is_new && out);
        }
        self.switched += if out { -1 } else { 1 };
    }

    /// The sample of this number is next.
    pub(super) fn sample(&mut self, number: usize) {
        let last = self.steps.last();
        let last = last.map_or((0, 0), |&(_, switched, ended)| (switched, ended));
        if (self.switched, self.ended) != last {
            let number = number as u64;
            self.steps.push((number, self.switched, self.ended));
        }
    }

    /// What was counted, where there are so many CPUs.
    pub(super) fn finish(self, cpus: u32) -> Parallelism {
        let base = if self.is_wide { self.from_start } else { 1 };
        let most = i64::from(cpus.max(1));
        let level = |change: i64| {
            let level = base.saturating_add(change).clamp(1, most);
            u32::try_from(level).unwrap_or(1)
        };
        let steps = self.steps.into_iter();
        Parallelism {
            first: level(0),
            steps: steps
                .map(|(from, switched, ended)| {
                    let ended = if self.is_wide { 0 } else { ended };
                    (from, level(switched - ended))
                })
                .collect(),
        }
    }
}

/// How many threads ran at each sample: at least one, and no more than there are CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parallelism {
    first: u32,
    /// From which sample on, by its place in the order of time, how many.
    steps: Vec<(u64, u32)>,
}

impl Default for Parallelism {
    fn default() -> Self {
        Self {
            first: 1,
            steps: Vec::new(),
        }
    }
}

impl Parallelism {
    /// How many ran at the sample of this place in the order of time.
    #[must_use]
    pub fn at(&self, sample: u64) -> u32 {
        let before = self.steps.partition_point(|(from, _)| *from <= sample);
        let last = before.checked_sub(1).and_then(|at| self.steps.get(at));
        last.map_or(self.first, |(_, level)| *level)
    }

    /// The same of samples that were kept.
    #[must_use]
    pub fn only(&self, kept: &[SampleId]) -> Self {
        let mut only = Self::default();
        let (mut last, mut steps) = (self.first, self.steps.iter().peekable());
        for (place, sample) in (0..).zip(kept) {
            while let Some((_, level)) = steps.next_if(|(from, _)| *from <= u64::from(sample.0)) {
                last = *level;
            }
            if only.at(place) != last {
                only.steps.push((place, last));
            }
        }
        only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_are_kept_keep_their_levels() {
        let all = Parallelism {
            first: 1,
            steps: vec![(2, 3), (5, 2), (6, 4)],
        };
        for kept in [
            vec![0, 1, 2, 3, 4, 5, 6],
            vec![1, 4, 6],
            vec![2, 3],
            vec![5],
            vec![],
        ] {
            let kept: Vec<SampleId> = kept.into_iter().map(SampleId).collect();
            let only = all.only(&kept);
            for (place, sample) in (0..).zip(&kept) {
                assert_eq!(only.at(place), all.at(sample.0.into()), "{kept:?}");
            }
        }
    }

    const IN: bool = false;
    const OUT: bool = true;

    /// The levels at samples, `None` in the list, between switches.
    fn levels(cpus: u32, wide: bool, events: &[Option<(bool, u32)>]) -> Vec<u32> {
        let mut running = Running::default();
        let mut samples = 0;
        for event in events {
            match event {
                Some((OUT, 0)) if !wide => running.exit(),
                Some((out, tid)) => {
                    running.switch(*out, wide.then_some((0, 0)), Some((*tid, *tid)));
                }
                None => {
                    running.sample(samples);
                    samples += 1;
                }
            }
        }
        let found = running.finish(cpus);
        (0..samples as u64).map(|sample| found.at(sample)).collect()
    }

    #[test]
    fn one_thread_runs_from_the_beginning() {
        let events = [
            None,
            Some((IN, 2)),
            None,
            None,
            Some((OUT, 1)),
            None,
            Some((OUT, 2)),
            None,
            Some((IN, 3)),
            Some((IN, 4)),
            None,
            // The end of one of them.
            Some((OUT, 0)),
            None,
        ];
        assert_eq!(levels(4, false, &events), [1, 2, 2, 1, 1, 2, 1]);
    }

    #[test]
    fn ends_before_the_first_switch_of_a_whole_processor_take_nobody_away() {
        let mut running = Running::default();
        running.exit();
        running.sample(0);
        running.switch(OUT, Some((0, 0)), Some((5, 5)));
        running.switch(IN, Some((0, 0)), Some((6, 6)));
        running.switch(IN, Some((0, 0)), Some((7, 7)));
        running.sample(1);
        let found = running.finish(8);
        assert_eq!([found.at(0), found.at(1)], [1, 2]);
    }

    #[test]
    fn no_more_run_than_there_are_processors() {
        let events = [Some((IN, 2)), Some((IN, 3)), None, Some((OUT, 3)), None];
        assert_eq!(levels(2, false, &events), [2, 2]);
        assert_eq!(levels(8, false, &events), [3, 2]);
    }

    #[test]
    fn idle_processors_run_nothing() {
        // 5 and 6 run when recording begins, 7 does not.
        let events = [
            None,
            Some((OUT, 5)),
            Some((IN, 0)),
            None,
            Some((OUT, 6)),
            Some((IN, 7)),
            None,
            Some((OUT, 0)),
            Some((IN, 5)),
            None,
        ];
        assert_eq!(levels(4, true, &events), [2, 1, 1, 2]);
    }
}
