//! Samples whose times and stacks are known.

use super::*;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::ids::Idx as _;
use crate::profile::{Profile, StackEnd, StackId, Wait};
use crate::report::testing::ProfileBuilder;
use crate::run_state::RunState;
use crate::runtimes::Producer;

const MS: u64 = 1_000_000;

/// Numbers that look like chance, and are the same in each run.
struct Chance(u64);

impl Chance {
    /// SplitMix64.
    fn below(&mut self, share: f64) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 <= share
    }
}

/// A profile of samples: time, thread and stack, leaf first. Names in capitals are own ones.
fn profile(samples: &[(u64, &str, &str)]) -> Profile {
    let mut builder = ProfileBuilder::default();
    builder.unwound = true;
    for (_, thread, stack) in samples {
        builder.sample(thread, stack, 1);
    }
    let mut profile = builder.finish();
    for (entry, (time, ..)) in profile.entries.iter_mut().zip(samples) {
        entry.time = *time;
    }
    for symbol in &mut profile.symbols {
        if symbol.name.chars().all(|c| c.is_ascii_uppercase()) {
            symbol.name = format!("JS:*{} /w/a.js:1:1", symbol.name);
            symbol.producer = Some(Producer::V8);
        }
    }
    profile
}

fn over(profile: &Profile) -> (OverTime, Functions) {
    let functions = Functions::of(profile, &OwnRules::default());
    let over = OverTime::of(profile, &functions, EventId(0)).expect("there are times");
    (over, functions)
}

fn name(functions: &Functions, id: crate::functions::FunctionId) -> String {
    functions.get(id).identity.name.name.clone()
}

/// Twelve seconds of one sample a millisecond: short calls, and a stall of 200 ms every 1.5 s.
fn stalls() -> Vec<(u64, &'static str, &'static str)> {
    let mut chance = Chance(1);
    (1..12_000)
        .map(|ms| {
            let stack = match ms % 1500 {
                0..200 if ms >= 1500 => "sort;STALL;main",
                _ if chance.below(0.4) => "PARSE;main",
                _ => "RENDER;main",
            };
            (ms * MS, "node", stack)
        })
        .collect()
}

/// It is counted where few steps are long, and the same as of all steps in order.
#[test]
fn the_longest_break_of_a_spell_is_that_of_sorted_steps() {
    let mut limits = std::collections::BTreeSet::new();
    for count in 2..90 {
        for long in 0..count.min(7) {
            for step in [1_200_000, 1_260_000, 2_000_000, 20_000_000] {
                let mut time = 0;
                let moments = (0..count).map(|at| {
                    time += if at % 13 < long { step } else { MS };
                    timeline::Moment {
                        time,
                        period: MS,
                        thread: ThreadId(0),
                        path: timeline::PathId::from_usize(0),
                    }
                });
                let moments: Vec<timeline::Moment> = moments.collect();
                let sorted = spells::long_step(&moments).map_or(0, |step| 4 * step);
                let limit = spells::limit(&moments);
                assert_eq!(
                    limit,
                    sorted.clamp(5 * MS, 50 * MS),
                    "{count} {long} {step}"
                );
                limits.insert(limit);
            }
        }
    }
    assert_eq!(limits.len(), 4, "all ways are tried: {limits:?}");
}

#[test]
fn stalls_are_spells_of_the_own_function() {
    let (over, functions) = over(&profile(&stalls()));
    let [spell] = &over.spells[..] else {
        panic!("{:?}", over.spells);
    };
    assert_eq!(name(&functions, spell.function), "STALL");
    assert_eq!((spell.at.len(), spell.median), (7, 200 * MS));
    assert_eq!(spell.at[0], (1500 * MS, 1699 * MS));
    assert_eq!(spell.every, Some(1500 * MS));
    assert_eq!(over.threads.len(), 1);
    assert!(
        over.gaps.is_empty() && over.phases.is_empty(),
        "{:?}",
        over.phases
    );
}

#[test]
fn an_own_function_stands_for_a_loop_of_its_runtime() {
    let mut samples = stalls();
    for (time, _, stack) in &mut samples {
        if *stack == "sort;STALL;main" {
            // The loop runs something else for a while, too.
            let is_own = *time / MS % 1500 < 130;
            *stack = if is_own {
                "sort;STALL;interpret;main"
            } else {
                "interpret;main"
            };
        }
    }
    let (over, functions) = over(&profile(&samples));
    let names = over.spells.iter().map(|of| name(&functions, of.function));
    assert_eq!(names.collect::<Vec<_>>(), ["STALL"]);
    assert_eq!(over.spells[0].median, 130 * MS);
}

/// Twelve seconds in which a function comes back each second for so many milliseconds.
fn mostly(long: u64, inner: &'static str) -> Vec<(u64, &'static str, &'static str)> {
    let mut chance = Chance(5);
    (1..12_000)
        .map(|ms| {
            let stack = match ms % 1000 {
                at if at >= long && chance.below(0.5) => "PARSE;main",
                at if at >= long => "main",
                _ if chance.below(0.5) => inner,
                _ => "STALL;main",
            };
            (ms * MS, "node", stack)
        })
        .collect()
}

#[test]
fn what_fills_most_of_a_thread_and_comes_back_has_spells() {
    let (over, functions) = over(&profile(&mostly(900, "sort;STALL;main")));
    let [spell] = &over.spells[..] else {
        panic!("{:?}", over.spells);
    };
    assert_eq!(name(&functions, spell.function), "STALL");
    assert_eq!((spell.at.len(), spell.median), (12, 900 * MS));
}

#[test]
fn what_is_in_it_says_more() {
    let mut samples = mostly(900, "RENDER;STALL;main");
    for (time, _, stack) in &mut samples {
        if (300..500).contains(&(*time / MS % 1000)) {
            *stack = "SORT;STALL;main";
        }
    }
    let (over, functions) = over(&profile(&samples));
    let names: Vec<String> = over
        .spells
        .iter()
        .map(|of| name(&functions, of.function))
        .collect();
    assert_eq!(names, ["SORT"]);
}

#[test]
fn a_program_between_its_start_and_its_end_is_no_spell() {
    // 50 ms of start and 20 ms of end.
    let samples = (1..1000).map(|ms| {
        let stack = match ms {
            ..50 => "START;main",
            980.. => "END;main",
            _ if ms * 7919 % 1009 < 500 => "A;RUN;main",
            _ => "B;RUN;main",
        };
        (ms * MS, "node", stack)
    });
    let mut samples: Vec<_> = samples.collect();
    // Times without a processor are no breaks.
    for (time, ..) in &mut samples {
        *time += *time / (300 * MS) * 100 * MS;
    }
    let (over, functions) = over(&profile(&samples));
    let names: Vec<String> = over
        .spells
        .iter()
        .map(|of| name(&functions, of.function))
        .collect();
    assert!(!names.contains(&"RUN".to_owned()), "{names:?}");
}

#[test]
fn cut_stacks_end_no_spell() {
    let samples = stalls();
    let mut profile = profile(&samples);
    // As if it were somewhere else, and nobody knows where that is.
    let elsewhere = profile.entries[10].stack;
    let cut: Vec<_> = profile.stacks.get(elsewhere).to_vec();
    let cut: StackId = profile.stacks.push(&cut, StackEnd::DumpTooShort);
    for entry in profile
        .entries
        .iter_mut()
        .filter(|of| of.time / MS % 1500 == 100)
    {
        entry.stack = cut;
    }
    let (over, _) = over(&profile);
    assert_eq!(over.spells.len(), 1);
    assert_eq!(over.spells[0].at.len(), 7);
}

#[test]
fn a_wait_outside_ends_a_spell_and_a_want_of_processors_does_not() {
    let mut samples: Vec<_> = stalls();
    // 100 ms in the midst of each stall in which there is no sample.
    samples.retain(|(time, ..)| !(50..150).contains(&(time / MS % 1500)) || *time < 1500 * MS);
    let (without, _) = over(&profile(&samples));
    assert!(without.spells.iter().all(|spell| spell.median < 60 * MS));
    let mut waiting = samples.clone();
    waiting.push((100 * MS, "node", "schedule;RENDER;main"));
    let mut known = profile(&waiting);
    let switch = known.events.push(known.events[EventId(0)].clone());
    let last = known.entries.last_mut().expect("the wait");
    last.event = switch;
    let thread = last.thread;
    let wait = Wait {
        thread,
        from: 100 * MS,
        to: Some(101 * MS),
        is_bound: false,
        state: RunState::Blocked,
    };
    known.waits.push(wait);
    let (with, _) = over(&known);
    assert!(with.knows_waits);
    assert_eq!(with.spells.len(), 1, "{:?}", with.spells);
    assert_eq!(with.spells[0].median, 200 * MS);
    // A thread ran somewhere in a wait whose end is a bound.
    known.waits[0].is_bound = true;
    assert!(!over(&known).0.knows_waits);
}

/// The same samples with a rate.
fn sampled(samples: &[(u64, &str, &str)], rate: u64) -> (Profile, Functions) {
    let mut profile = profile(samples);
    profile.events[EventId(0)].sampling = crate::profile::Sampling::PerSecond(rate);
    let functions = Functions::of(&profile, &OwnRules::default());
    (profile, functions)
}

#[test]
fn a_glance_misses_no_long_spell_and_chance_has_none() {
    let may_last = |samples: &[(u64, &str, &str)], rate, least| {
        let (profile, functions) = sampled(samples, rate);
        !glance::suspects(&profile, &functions, EventId(0), least).is_empty()
    };
    let long = stalls();
    for rate in [999, 2000, 4000] {
        assert!(may_last(&long, rate, 190 * MS), "{rate}");
    }
    for seed in 0..20 {
        let mut chance = Chance(seed);
        let short = (1..20_000).map(|at| {
            let stack = if chance.below(0.3) {
                "A;MAIN"
            } else {
                "B;MAIN"
            };
            (at * MS, "1", stack)
        });
        let short: Vec<_> = short.collect();
        assert!(!may_last(&short, 1000, 100 * MS), "{seed}");
        // Without a rate nobody knows what is left out.
        assert!(may_last(&short, 100, 100 * MS));
        // One spell of a function, anywhere.
        let mut with = short.clone();
        let from = 1000 + 700 * seed as usize;
        for sample in &mut with[from..from + 230] {
            sample.2 = "C;MAIN";
        }
        assert!(may_last(&with, 1000, 200 * MS), "{seed}");
    }
}

#[test]
fn a_thread_that_sleeps_between_short_calls_has_no_spell() {
    // Each 20 ms a call of a millisecond, or in place of each tenth one of 25 ms: by a clock with 2 kHz.
    let mut samples = Vec::new();
    for call in 0..200 {
        let (stack, count) = match call % 10 {
            9 => ("GC;MAIN", 50),
            _ => ("BG;MAIN", 2),
        };
        let times = (0..count).map(|at| (call * 30 + 1) * MS + at * MS / 2);
        samples.extend(times.map(|time| (time, "1", stack)));
    }
    let mut profile = profile(&samples);
    profile.events[EventId(0)].unit = crate::unit::Unit::Nanoseconds;
    for entry in profile.entries.iter_mut() {
        entry.period = MS / 2;
    }
    let (over, functions) = over(&profile);
    let found: Vec<String> = over
        .spells
        .iter()
        .map(|spell| name(&functions, spell.function))
        .collect();
    assert_eq!(found, ["GC"]);
}

#[test]
fn times_without_a_sample_are_gaps() {
    let wanted = [2000..2200, 5000..5300, 9000..9250];
    let mut samples = stalls();
    samples.retain(|(time, ..)| !wanted.iter().any(|gap| gap.contains(&(time / MS))));
    // Of threads without own code nothing is said.
    samples.extend((1..60).map(|at| (at * 200 * MS, "compiler", "compile;start_thread")));
    samples.sort_by_key(|(time, ..)| *time);
    let (over, functions) = over(&profile(&samples));
    let [gaps] = &over.gaps[..] else {
        panic!("{:?}", over.gaps);
    };
    let lengths: Vec<u64> = gaps.all.iter().map(|gap| gap.length() / MS).collect();
    assert_eq!(lengths, [201, 301, 251]);
    assert_eq!(gaps.longest().map(|gap| gap.from), Some(4999 * MS));
    assert_eq!(over.threads.len(), 1);
    assert_eq!(
        over.threads.values().next().map(|of| of.comm.as_str()),
        Some("node")
    );
    assert!(!name(&functions, gaps.all[0].before).is_empty());
}

#[test]
fn times_in_which_samples_were_lost_are_no_gaps() {
    let wanted = [2000..2200, 5000..5300];
    let mut samples = stalls();
    samples.retain(|(time, ..)| !wanted.iter().any(|gap| gap.contains(&(time / MS))));
    let mut profile = profile(&samples);
    // The kernel tells of it when there is room again.
    profile.recording.lost_at = vec![1000 * MS, 5299 * MS];
    let (over, _) = over(&profile);
    let gaps = over.gaps.iter().flat_map(|gaps| &gaps.all);
    let from: Vec<u64> = gaps.map(|gap| gap.from / MS).collect();
    assert_eq!((from, over.lost_gaps), (vec![1999], 1));
}

/// Samples of two functions, of which the first has so large a share before and behind the middle.
fn shift(count: u64, seed: u64, shares: [f64; 2]) -> Profile {
    let mut chance = Chance(seed);
    let samples: Vec<_> = (1..=count)
        .map(|at| {
            let share = shares[usize::from(at > count / 2)];
            let stack = if chance.below(share) {
                "A;main"
            } else {
                "B;main"
            };
            (at * MS, "node", stack)
        })
        .collect();
    profile(&samples)
}

#[test]
fn what_changes_for_long_is_a_phase_and_chance_is_none() {
    let mut near = 0;
    for seed in 1..40 {
        let (over, functions) = over(&shift(5000, seed * 1000, [0.4, 0.6]));
        assert_eq!(over.phases.len(), 2, "{seed}");
        let [first, second] = [&over.phases[0], &over.phases[1]];
        near += u32::from(first.to.abs_diff(2500 * MS) < 150 * MS);
        assert_eq!(name(&functions, first.functions[0].0), "B");
        assert_eq!(name(&functions, second.functions[0].0), "A");
        assert_eq!(first.count.samples + second.count.samples, 5000);
    }
    // Where it is chance has a say in.
    assert!(near >= 32, "{near} of 39 are near");
    let none = (1..40).filter(|seed| {
        let (over, _) = over(&shift(5000, *seed * 1000, [0.5, 0.5]));
        over.phases.is_empty()
    });
    assert_eq!(none.count(), 39);
}

#[test]
fn what_an_interrupt_does_is_no_phase() {
    let mut chance = Chance(3);
    let samples: Vec<_> = (1..4000_u64)
        .map(|at| {
            // A neighbour takes half of the time behind the middle.
            let stack = match chance.below(0.5) {
                true if at > 2000 => "asm_sysvec_x@[kernel];A;main",
                true => "A;main",
                false => "B;main",
            };
            (at * MS, "node", stack)
        })
        .collect();
    let mut profile = profile(&samples);
    for frame in &mut profile.frames {
        let name = frame.symbol.map(|id| profile.symbols[id].name.as_str());
        if name.is_some_and(|name| name.starts_with("asm_")) {
            frame.mode = crate::profile::CpuMode::Kernel;
        }
    }
    assert!(over(&profile).0.phases.is_empty());
}

#[test]
fn functions_that_come_and_go_are_told() {
    let (over, functions) = over(&profile(&stalls()));
    let names: Vec<String> = over
        .series
        .iter()
        .map(|of| name(&functions, of.function))
        .collect();
    assert_eq!(names[0], "STALL");
    let columns = &over.series[0].columns;
    assert_eq!(columns.len(), COLUMNS);
    assert!(columns.iter().flatten().any(|share| *share > 0.5));
    assert!(columns.iter().flatten().any(|share| *share == 0.0));
}

#[test]
fn without_times_there_is_no_answer() {
    let mut profile = profile(&[(0, "node", "A;main")]);
    profile.entries[0].time = 0;
    let functions = Functions::of(&profile, &OwnRules::default());
    assert!(OverTime::of(&profile, &functions, EventId(0)).is_none());
}
