//! Spreads the time that threads were on a processor over their samples.
//!
//! In: how long each thread ran, known from switches, and the samples of a clock. Out: the samples with their share of
//! that time, in proportion to their periods, which add up to it exactly.

use super::made::{Labels, sample};
use crate::ids::{Idx, ThreadId};
use crate::run_state::RunState;
use crate::session::{SampleRef, Session};

/// How long a thread ran, and when it began to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ran {
    pub(super) time: u64,
    pub(super) from: u64,
}

/// Gives each thread's time to its samples; who has none gets one without a stack.
pub(super) fn spread(
    session: &Session<'_>,
    samples: Vec<SampleRef>,
    ran: &[Ran],
    labels: &mut Labels,
) -> Vec<SampleRef> {
    let mut periods = vec![0_u128; ran.len()];
    for sample in &samples {
        periods[sample.thread.index()] += u128::from(sample.period);
    }
    // What was given out of a thread's time for what of its periods: rounding never adds up.
    let mut passed = vec![(0_u128, 0_u64); ran.len()];
    let mut out = Vec::with_capacity(samples.len());
    for mut sample in samples {
        let thread = sample.thread.index();
        let (period, given) = &mut passed[thread];
        *period += u128::from(sample.period);
        let all = periods[thread].max(1);
        let due = u128::from(ran[thread].time) * *period / all;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        sample.period = due.saturating_sub(*given);
        sample.state = RunState::OnCpu;
        *given = due;
        out.push(sample);
    }
    for (number, own) in ran.iter().enumerate() {
        if own.time > 0 && periods[number] == 0 {
            let thread = ThreadId::from_usize(number);
            let comm = session.threads[number].comm;
            let label = labels.of("[no sample]");
            out.push(sample(
                (thread, comm),
                own.from,
                own.time,
                RunState::OnCpu,
                label,
            ));
        }
    }
    out
}
