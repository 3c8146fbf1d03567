//! Whether a recording may have long spells at all: a glance at a part of its samples.
//!
//! In: the samples of a clock. Out: false only where no function can have a spell of some length. Of each thread some two hundred samples
//! a second are looked at. Between two of them that lack a function, at most all that was left out may be in it, so that this says
//! yes at least as often as all samples would. It costs a twentieth of that, and most recordings have no long spell.

use super::spells::{SHARES, longest_by_chance};
use super::timeline::{FEWEST, Usual};
use crate::functions::{FunctionId, Functions};
use crate::ids::{IndexVec, index_vec};
use crate::profile::{EventId, EventSummary, FrameId, Profile, Sampling, StackId, ThreadId};

/// Samples a second that are looked at.
const LOOKS: u64 = 200;
/// What a share of a part of the samples may be wrong by.
const DOUBT: f64 = 0.9;

/// A function of a thread.
#[derive(Clone, Copy, Default)]
struct Run {
    /// How often it was met.
    count: usize,
    /// Which look it was met in last, counted from 1.
    last: usize,
    /// Looks of the run that this belongs to.
    length: usize,
    /// Time of the look before the run.
    before: u64,
    /// The longest such run, and looks in runs that last.
    longest: usize,
    in_runs: usize,
}

/// A sample that is looked at.
struct Look {
    time: u64,
    stack: StackId,
    leaf: FrameId,
}

/// Whether a function may be without a break in the samples of a thread for so many nanoseconds.
pub(super) fn may_last(
    profile: &Profile,
    functions: &Functions,
    event: EventId,
    least: u64,
) -> bool {
    let stride = stride(&profile[event]);
    if stride < 2 || !profile.waits.is_empty() {
        return true;
    }
    let mut threads: IndexVec<ThreadId, (usize, Vec<Look>)> =
        profile.threads.iter().map(|_| (0, Vec::new())).collect();
    let portions: Vec<_> = profile.portions().collect();
    let usual = Usual::of(profile, functions, event);
    let mut is_ordered = true;
    let mut last = 0;
    for moment in profile.moments() {
        let of = &portions[moment.portion];
        if of.event != event || !usual.has(profile, functions, of) {
            continue;
        }
        is_ordered &= moment.time >= last;
        last = moment.time;
        let (count, looks) = &mut threads[of.thread];
        if count.is_multiple_of(stride) {
            looks.push(Look {
                time: moment.time,
                stack: of.stack,
                leaf: of.leaf,
            });
        }
        *count += 1;
    }
    let mut runs: IndexVec<FunctionId, Run> = index_vec![Run::default(); functions.all.len()];
    !is_ordered
        || threads.iter().any(|(count, looks)| {
            *count >= FEWEST && lasts((profile, functions), (looks, stride, least), &mut runs)
        })
}

/// How many samples stand for one that is looked at.
fn stride(event: &EventSummary) -> usize {
    let rate = match event.sampling {
        Sampling::PerSecond(rate) => rate,
        Sampling::Every(ns) if event.is_cpu_time() && ns > 0 => 1_000_000_000 / ns,
        Sampling::Every(_) | Sampling::Unknown => 0,
    };
    usize::try_from(rate / LOOKS).unwrap_or(0)
}

/// The same of one thread.
fn lasts(
    (profile, functions): (&Profile, &Functions),
    (looks, stride, least): (&[Look], usize, u64),
    runs: &mut IndexVec<FunctionId, Run>,
) -> bool {
    let mut met: Vec<FunctionId> = Vec::new();
    let end = looks.last().map_or(0, |look| look.time);
    let ends = |run: &mut Run, behind: u64| {
        if behind.saturating_sub(run.before) >= least {
            run.longest = run.longest.max(run.length);
            run.in_runs += run.length + 1;
        }
        run.length = 0;
    };
    for (at, look) in (1..).zip(looks) {
        for frame in profile.frames_of(look.stack, &look.leaf) {
            let function = functions.of_frame(*frame);
            let run = &mut runs[function];
            if run.last == at {
                continue;
            }
            if run.count == 0 {
                met.push(function);
            }
            if run.last + 1 < at {
                if run.length > 0 {
                    ends(run, looks[run.last].time);
                }
                // Before the first look nothing is known of the first.
                run.before = at
                    .checked_sub(2)
                    .map_or(look.time, |before| looks[before].time);
            } else if at == 1 {
                run.before = look.time;
            }
            run.count += 1;
            run.length += 1;
            run.last = at;
        }
    }
    let n = looks.len() as f64;
    let mut may = false;
    for function in met {
        let run = &mut runs[function];
        let behind = looks.get(run.last).map_or(end, |look| look.time);
        ends(run, behind);
        let share = run.count as f64 / n;
        let parts = SHARES[0] / 2.0..=(1.0 + SHARES[1]) / 2.0;
        let chance = longest_by_chance(n * stride as f64, share.min(SHARES[1]));
        let longest = ((run.longest + 1) * stride) as f64;
        let is_most_of_it = 2.0 * run.in_runs as f64 >= DOUBT * run.count as f64;
        may |= parts.contains(&share)
            && run.longest > 0
            && longest >= DOUBT * 2.0 * chance
            && is_most_of_it;
        *run = Run::default();
    }
    may
}
