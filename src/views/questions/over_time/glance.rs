//! Which functions of which threads may have long spells at all: a glance at a part of the samples.
//!
//! In: the samples of a clock. Out: [`Suspects`]: threads that may have a spell of some length, and functions that may have any there, for
//! which of these is told depends on the others. Of each thread some two hundred samples a second are looked at, and four times as many for
//! what those leave. Between two of them that lack a function, at most all that was left out may be in it, so that more are suspected than
//! all samples would tell. What most samples are in is mostly the program itself, with one spell that is none: for what is suspected still,
//! all are looked at. It costs a tenth of telling spells: most recordings have no long one, and of the others only what is suspected is
//! looked into.

use super::spells::{MOSTLY, SHARES, SHORTEST, longest_by_chance};
use super::timeline::{ByFunction, FEWEST, Suspects, Usual};
use crate::functions::Functions;
use crate::ids::IndexVec;
use crate::profile::{
    EventId, EventSummary, FrameId, Portion, Profile, Sampling, StackId, ThreadId,
};

/// Samples a second that are looked at, and for what these leave.
const LOOKS: [u64; 2] = [200, 800];
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
    /// Runs that may be spells, and those that may last.
    any: Runs,
    lasting: Runs,
    /// Looks of the two longest of all runs.
    stays: [usize; 2],
}

/// Runs of one function.
#[derive(Clone, Copy, Default)]
struct Runs {
    /// Looks of the longest, and of all.
    longest: usize,
    all: usize,
}

impl Runs {
    fn add(&mut self, length: usize) {
        self.longest = self.longest.max(length);
        self.all += length + 1;
    }

    /// Whether one is longer than by chance, and most of so many looks are in them.
    fn may_be_spells(self, (chance, stride): (f64, usize), count: usize) -> bool {
        let longest = ((self.longest + 1) * stride) as f64;
        self.longest > 0
            && longest >= DOUBT * 2.0 * chance
            && 2.0 * self.all as f64 >= DOUBT * count as f64
    }
}

/// A sample that is looked at.
#[derive(Clone, Copy)]
struct Look {
    time: u64,
    stack: StackId,
    leaf: FrameId,
}

/// What may be without a break in the samples of a thread, in threads where something may for so many nanoseconds.
pub(super) fn suspects(
    profile: &Profile,
    functions: &Functions,
    event: EventId,
    least: u64,
) -> Suspects {
    let mut so_far = Suspects::new(profile, functions, true);
    let [first, stride] = LOOKS.map(|looks| samples_for_one(&profile[event], looks));
    if first < 2 || profile.waits.iter().any(|wait| !wait.is_bound) {
        return so_far;
    }
    let stride = stride.max(1);
    let mut strides = vec![first / stride * stride, stride, 1];
    strides.dedup();
    let usual = Usual::of(profile, functions, event);
    let is_whole = |of: &Portion| of.event == event && usual.has(profile, functions, of);
    let whole = |of: Portion| is_whole(&of).then_some((of.thread, of.stack, of.leaf));
    let portions: Vec<Option<_>> = profile.portions().map(whole).collect();
    let mut runs: ByFunction<Run> = ByFunction::new(functions);
    for step in strides {
        let mut threads: IndexVec<ThreadId, (usize, Vec<Look>)> =
            so_far.threads.iter().map(|_| (0, Vec::new())).collect();
        let mut last = 0;
        for moment in profile.moments() {
            let of = portions[moment.portion].filter(|(thread, ..)| so_far.threads[*thread]);
            let Some((thread, stack, leaf)) = of else {
                continue;
            };
            if moment.time < last {
                return so_far;
            }
            last = moment.time;
            let (count, looks) = &mut threads[thread];
            if count.is_multiple_of(step) {
                looks.push(Look {
                    time: moment.time,
                    stack,
                    leaf,
                });
            }
            *count += 1;
        }
        let mut left = Suspects::new(profile, functions, false);
        for (thread, (count, looks)) in threads.iter_enumerated() {
            if *count >= FEWEST {
                let looks = (thread, looks.as_slice(), step);
                let found = (&mut runs, &mut left);
                suspect((profile, functions), looks, (least, &so_far), found);
            }
        }
        so_far = left;
        if so_far.is_empty() {
            break;
        }
    }
    so_far
}

/// How many samples stand for one, if so many a second are looked at.
fn samples_for_one(event: &EventSummary, looks: u64) -> usize {
    let rate = match event.sampling {
        Sampling::PerSecond(rate) => rate,
        Sampling::Every(ns) if event.is_cpu_time() && ns > 0 => 1_000_000_000 / ns,
        Sampling::Every(_) | Sampling::Unknown => 0,
    };
    usize::try_from(rate / looks).unwrap_or(0)
}

/// Adds those of one thread, of functions that are suspected so far.
fn suspect(
    (profile, functions): (&Profile, &Functions),
    (thread, looks, stride): (ThreadId, &[Look], usize),
    (least, so_far): (u64, &Suspects),
    (runs, suspects): (&mut ByFunction<Run>, &mut Suspects),
) {
    let end = looks.last().map_or(0, |look| look.time);
    let ends = |run: &mut Run, behind: u64| {
        let length = behind.saturating_sub(run.before);
        let [longest, second] = run.stays;
        run.stays = [longest.max(run.length), second.max(longest.min(run.length))];
        if length >= SHORTEST {
            run.any.add(run.length);
        }
        if length >= least {
            run.lasting.add(run.length);
        }
        run.length = 0;
    };
    for (at, look) in (1..).zip(looks) {
        for frame in profile.frames_of(look.stack, &look.leaf) {
            let function = functions.of_frame(*frame);
            if !so_far.functions[function] {
                continue;
            }
            let run = runs.get_or_add(function, Run::default);
            if run.last == at {
                continue;
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
    for (function, mut run) in runs.take() {
        let run = &mut run;
        let behind = looks.get(run.last).map_or(end, |look| look.time);
        ends(run, behind);
        let share = run.count as f64 / n;
        let parts = SHARES[0] / 2.0..=(1.0 + SHARES[1]) / 2.0;
        let chance = longest_by_chance(n * stride as f64, share.min(SHARES[1]));
        let is_part = parts.contains(&share);
        // All samples tell whether what most of them are in ever comes back.
        let comes_back =
            stride > 1 || share <= MOSTLY || run.stays[1] as f64 >= DOUBT * 2.0 * chance;
        let is_part = is_part && comes_back;
        let may_be = |found: Runs| is_part && found.may_be_spells((chance, stride), run.count);
        suspects.functions[function] |= may_be(run.any);
        suspects.threads[thread] |= may_be(run.lasting);
    }
}
