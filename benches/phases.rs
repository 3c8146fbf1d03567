//! How often `summary --over-time` tells of phases where there are none, and what it finds where it is known what changed.
//!
//! `benches/statistics/phases` makes the recordings and runs this: `cargo bench --bench phases -- STEADY... MIX=NS,NS...`. Samples of a
//! steady program are looked at in a random order, as windows in their own, and with the share of one function changed from a random
//! place on. A recording with times is of a program that told when it changed, on the clock of the samples.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use pjit::diagnostics::Diagnostics;
use pjit::functions::Functions;
use pjit::functions::kinds::OwnRules;
use pjit::ids::IndexVec;
use pjit::load::{LoadOptions, Source};
use pjit::profile::{Entry, EntryId, EventId, Profile};
use pjit::questions;
use pjit::questions::over_time::{self, OverTime};
use pjit::stitch::Mending;

/// How often each is tried with a recording.
const SHUFFLES: usize = 100;
const WINDOWS: usize = 60;
const SHIFTS: usize = 100;
/// Samples of a window.
const WINDOW: (usize, usize) = (800, 6000);
/// What of a recording is left out where it begins and ends.
const WARM: f64 = 0.25;
const END: f64 = 0.98;
/// Functions up to this share are counted apart from larger ones: the more a share spreads by chance, the less a change stands out.
const PART: f64 = 0.3;
/// Functions with a larger share cannot have much more.
const MOSTLY: f64 = 0.6;
/// Nanoseconds between two samples that are put in an order.
const STEP: u64 = 1_000_000;

fn main() {
    let words = std::env::args().skip(1);
    let words: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
    let (known, steady): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.contains('='));
    let mut chance = Chance(7);
    println!(
        "| steady | samples | spells | shuffled: phases of {SHUFFLES} | windows: phases of {WINDOWS} |"
    );
    println!("|---|---|---|---|---|");
    let mut all: Vec<Recording> = steady.iter().map(|file| Recording::load(file)).collect();
    for of in &mut all {
        println!("{}", of.false_phases(&mut chance));
    }
    println!("\nOne phase more, and one that begins within 3 %:\n");
    println!("| samples | points | functions up to 30 % | 30 to 60 % |");
    println!("|---|---|---|---|");
    for samples in [1000, 2000, 5000, 10_000] {
        for points in [0.05, 0.1, 0.2] {
            let mut found = <[Found; 2]>::default();
            for of in all.iter_mut().filter(|of| of.steady().len() >= samples) {
                of.shifts((samples, points), &mut chance, &mut found);
            }
            let [small, large] = found.map(|of| of.rates());
            let points = 100.0 * points;
            println!("| {samples} | {points:.0} | {small} | {large} |");
        }
    }
    for word in known {
        let (file, times) = word.split_once('=').expect("it has one");
        let times = times.split(',').map(|ns| ns.parse().expect("nanoseconds"));
        println!(
            "\n{file}: {}",
            Recording::load(file).off(&times.collect::<Vec<u64>>())
        );
    }
}

/// Numbers that look like chance, and are the same in each run: SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn between(&mut self, (low, high): (usize, usize)) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The first so many of a random order.
    fn shuffle<T>(&mut self, of: &mut [T], count: usize) {
        for at in 0..count.min(of.len()) {
            let other = at + self.below(of.len() - at);
            of.swap(at, other);
        }
    }
}

/// What was found of changes that are known.
#[derive(Default)]
struct Found {
    tried: usize,
    /// With one change and no other.
    single: usize,
    /// With one near its place.
    near: usize,
}

impl Found {
    fn rates(&self) -> String {
        let share = |count: usize| match self.tried {
            0 => "–".to_owned(),
            tried => format!("{:.0} %", 100.0 * count as f64 / tried as f64),
        };
        format!("{}, {}", share(self.single), share(self.near))
    }
}

/// A recording, as the view takes it.
struct Recording {
    name: String,
    profile: Profile,
    functions: Functions,
    event: EventId,
    /// Its samples in order.
    samples: Vec<Entry>,
}

impl Recording {
    fn load(file: &str) -> Self {
        let options = LoadOptions {
            needs: questions::NEEDS | over_time::NEEDS,
            mending: Mending {
                graft: true,
                stitch: false,
            },
            ..LoadOptions::of(Source::File(file.into()))
        };
        let profile = pjit::load::load(&options, &Diagnostics::new());
        let mut profile = profile.expect("the recording can be read");
        let clocks = profile.events.iter_enumerated();
        let clocks = clocks.filter(|(_, event)| event.is_cpu());
        let event = clocks.max_by_key(|(_, event)| event.samples);
        let event = event.map_or(EventId::default(), |(at, _)| at);
        // Each sample as an entry, with a time that can be changed.
        let entries: Vec<Entry> = profile.entries.iter().copied().collect();
        let taken = profile.moments().filter_map(|moment| {
            let entry = entries
                .get(moment.portion)
                .filter(|entry| entry.event == event)?;
            Some(Entry {
                time: moment.time,
                period: moment.period,
                samples: moment.samples,
                ..*entry
            })
        });
        let mut samples: Vec<Entry> = taken.collect();
        samples.sort_by_key(|sample| sample.time);
        profile.times.clear();
        Self {
            name: file.to_owned(),
            functions: Functions::of(&profile, &OwnRules::default()),
            profile,
            event,
            samples,
        }
    }

    /// What is left when it is warm.
    fn steady(&self) -> &[Entry] {
        let at = |share: f64| (share * self.samples.len() as f64) as usize;
        &self.samples[at(WARM)..at(END)]
    }

    /// Where phases begin, but the first, with these samples.
    fn begins(&mut self, samples: Vec<Entry>) -> Vec<u64> {
        self.profile.entries = samples.into_iter().collect::<IndexVec<EntryId, Entry>>();
        let phases = OverTime::phases(&self.profile, &self.functions, self.event);
        phases.iter().skip(1).map(|(from, _)| *from).collect()
    }

    fn false_phases(&mut self, chance: &mut Chance) -> String {
        let all = self.steady().to_vec();
        let mut shuffled = 0;
        for _ in 0..SHUFFLES {
            let count = chance.between((500, all.len()));
            let some = random(&all, count, chance);
            shuffled += usize::from(!self.begins(some).is_empty());
        }
        let mut windows = 0;
        for _ in 0..WINDOWS {
            let count = chance.between((WINDOW.0, WINDOW.1.min(all.len())));
            let from = chance.below(all.len() - count + 1);
            windows += usize::from(!self.begins(all[from..from + count].to_vec()).is_empty());
        }
        self.begins(all.clone());
        let over = OverTime::of(&self.profile, &self.functions, self.event);
        let spells = over.map_or(0, |over| over.spells.len());
        let (name, count) = (&self.name, all.len());
        format!("| {name} | {count} | {spells} | {shuffled} | {windows} |")
    }

    /// Samples in a random order, of which from a random place on so many more are of one function.
    fn shifts(
        &mut self,
        (samples, points): (usize, f64),
        chance: &mut Chance,
        found: &mut [Found; 2],
    ) {
        let all = self.steady().to_vec();
        for _ in 0..SHIFTS {
            let mut some = random(&all, samples, chance);
            let place = chance.between((samples / 5, samples * 4 / 5));
            let one = some[chance.below(samples)];
            let function = |of: &Entry| self.profile[of.leaf].symbol;
            let is_one = |of: &Entry| function(of) == function(&one);
            let share = some.iter().filter(|of| is_one(of)).count() as f64 / samples as f64;
            if share > MOSTLY {
                continue;
            }
            let wanted = points / (1.0 - share);
            for of in &mut some[place..] {
                if !is_one(of) && chance.share() < wanted {
                    (of.stack, of.leaf) = (one.stack, one.leaf);
                }
            }
            let begins = self.begins(some);
            let near = |begin: &&u64| {
                let sample = (*begin / STEP) as f64;
                (sample - place as f64).abs() <= 0.03 * samples as f64
            };
            let found = &mut found[usize::from(share > PART)];
            found.tried += 1;
            found.single += usize::from(begins.len() == 1);
            found.near += usize::from(begins.iter().any(|begin| near(&begin)));
        }
    }

    /// By how much the nearest begin of a phase is off each time, and how many phases there are.
    fn off(&mut self, times: &[u64]) -> String {
        let all = self.samples.clone();
        let last = all.last().map_or(0, |sample| sample.time);
        let long = last.saturating_sub(all.first().map_or(0, |sample| sample.time));
        let begins = self.begins(all);
        let nearest = |time: &u64| begins.iter().map(|begin| begin.abs_diff(*time)).min();
        let off = times.iter().map(|time| match nearest(time) {
            Some(ns) => format!("{:.0} ms", ns as f64 * 1e-6),
            None => "not found".to_owned(),
        });
        let off: Vec<String> = off.collect();
        let phases = begins.len() + 1;
        let seconds = long as f64 * 1e-9;
        format!("{} of {seconds:.1} s off; {phases} phases", off.join(", "))
    }
}

/// So many of the samples in a random order, with times a step apart.
fn random(all: &[Entry], count: usize, chance: &mut Chance) -> Vec<Entry> {
    let mut some = all.to_vec();
    chance.shuffle(&mut some, count);
    some.truncate(count);
    for (time, sample) in (1..).zip(&mut some) {
        sample.time = time * STEP;
    }
    some
}
