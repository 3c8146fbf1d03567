//! In which functions the recordings of one host are unlike those of the others.
//!
//! In: a profile of several recordings. Out: a row for each function that weighs more or less on a host than elsewhere. What is
//! counted is recordings, not samples: samples of one recording have its moods in common, and how far recordings lie apart depends
//! on the program. So what those of each side scatter by is what they may differ by, and of a host with few nothing is said.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::facts::Made;
use super::significance::{
    Interval, LARGE, LEAST_GROWTH, LEAST_PART, Normalize, RATE, TOTAL_NOISE, Tested, Weights, mean,
    of_totals, test,
};
use super::stats::benjamini_hochberg;
use crate::functions::payers::{Group, UNKNOWN_HOST};
use crate::functions::tally::{Tally, of_event};
use crate::functions::{FunctionId, Functions};
use crate::needs::Needs;
use crate::profile::{Entry, Facet, Profile};

/// Fewest recordings of a host that tell how far they lie apart.
pub const LEAST: usize = 3;
/// Samples that a function needs in a recording to be tested.
const SAMPLES: f64 = 10.0;

/// What tells hosts apart.
pub const NEEDS: Needs = Facet::Recording.needs().union(Facet::Host.needs());

/// A function that weighs more or less on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Unlike {
    /// The host.
    pub host: String,
    /// The function, as the innermost frame.
    pub function: FunctionId,
    /// Its mean share of the recordings of this host.
    pub here: f64,
    /// The same of all others.
    pub elsewhere: f64,
    /// What it weighs here to what it weighs elsewhere; nothing where it has no samples there.
    pub ratio: Option<Interval>,
    /// The smallest false discovery rate at which it counts, among all functions of all hosts.
    pub q: f64,
}

/// What is said of hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hosts {
    /// How many recordings each has; those that do not tell their host are of one without a name.
    pub recordings: BTreeMap<String, usize>,
    /// How many were compared with the others.
    pub compared: usize,
    /// What they are unlike in, the largest difference of shares first.
    pub unlike: Vec<Unlike>,
}

/// A recording: its host, its weight, and what functions weigh, with the squares of their samples.
#[derive(Default)]
struct Unit<'p> {
    host: &'p str,
    total: u64,
    functions: FxHashMap<FunctionId, (u64, f64)>,
}

impl Hosts {
    /// Compares each host with the others.
    #[must_use]
    pub fn of(profile: &Profile, functions: &Functions, tally: &Tally, made: Made) -> Self {
        let units = units(profile, functions, tally);
        let mut recordings: BTreeMap<String, usize> = BTreeMap::new();
        for unit in &units {
            *recordings.entry(unit.host.to_owned()).or_default() += 1;
        }
        let is_told = |host: &str, count: usize| {
            !host.is_empty() && count >= LEAST && units.len() - count >= LEAST
        };
        let mut hosts: Vec<&str> = (recordings.iter())
            .filter(|(host, count)| is_told(host, **count))
            .map(|(host, _)| host.as_str())
            .collect();
        // Of two the second is as much unlike the first.
        if recordings.len() == 2 {
            hosts.truncate(1);
        }
        let sides: Vec<Sides<'_>> = hosts
            .iter()
            .map(|host| Sides::of(&units, host, made))
            .collect();
        Self {
            compared: hosts.len(),
            unlike: unlike(&sides),
            recordings,
        }
    }

    /// How many recordings a group is of, if that is of a host.
    #[must_use]
    pub fn recordings_of(&self, group: &Group) -> usize {
        let host = match group.name.as_str() {
            UNKNOWN_HOST => "",
            host => host,
        };
        self.recordings.get(host).copied().unwrap_or_default()
    }
}

/// Recordings in the order of their names.
fn units<'p>(profile: &'p Profile, functions: &Functions, tally: &Tally) -> Vec<Unit<'p>> {
    let mut units: BTreeMap<&str, Unit<'_>> = BTreeMap::new();
    let words = |entry: &Entry, facet| profile.facets.words(entry.facets, facet);
    for entry in of_event(profile, tally.event) {
        let name = words(entry, Facet::Recording).unwrap_or_default();
        let unit = units.entry(name).or_default();
        unit.host = words(entry, Facet::Host).unwrap_or_default();
        unit.total = unit.total.saturating_add(entry.period);
        let frames = profile.stacks.get(entry.stack);
        let leaf = frames.first().copied().unwrap_or(entry.leaf);
        let (weight, squares) = unit.functions.entry(functions.of_frame(leaf)).or_default();
        *weight = weight.saturating_add(entry.period);
        *squares += profile.squares_of(entry);
    }
    let mut units: Vec<Unit<'_>> = units.into_values().collect();
    units.retain(|unit| unit.total > 0);
    units
}

/// A host and the others, with what functions weigh in their recordings.
struct Sides<'h> {
    host: &'h str,
    totals: Weights,
    functions: Vec<(FunctionId, Weights)>,
}

impl<'h> Sides<'h> {
    fn of(units: &[Unit<'_>], host: &'h str, made: Made) -> Self {
        let (new, base): (Vec<&Unit<'_>>, Vec<&Unit<'_>>) =
            units.iter().partition(|unit| unit.host == host);
        let totals = |side: &[&Unit<'_>]| side.iter().map(|unit| unit.total as f64).collect();
        let totals = Weights {
            base: totals(&base),
            new: totals(&new),
            grain: 0.0,
        };
        let all = units.iter().flat_map(|unit| unit.functions.keys());
        let mut all: Vec<FunctionId> = all.copied().collect();
        all.sort_unstable();
        all.dedup();
        let part = |side: &[&Unit<'_>], id: FunctionId| -> Vec<(f64, f64)> {
            let of = |unit: &&Unit<'_>| unit.functions.get(&id).copied().unwrap_or_default();
            let parts = side.iter().map(of);
            parts
                .map(|(weight, squares)| (weight as f64, squares))
                .collect()
        };
        let functions = all.into_iter().filter_map(|id| {
            let weights = weights((&part(&base, id), &part(&new, id)), &totals, made)?;
            Some((id, weights))
        });
        Self {
            host,
            functions: functions.collect(),
            totals,
        }
    }

    /// Tests all functions, with what both sides weigh on average.
    fn tested(&self) -> (Vec<Tested>, f64) {
        let logs = |totals: &[f64]| totals.iter().map(|total| total.ln()).collect();
        let logs = Weights {
            base: logs(&self.totals.base),
            new: logs(&self.totals.new),
            grain: 0.0,
        };
        let (_, _, scatter) = of_totals(&logs, TOTAL_NOISE, false);
        let each: Vec<Weights> = self.functions.iter().map(|(_, of)| of.clone()).collect();
        let outcome = test(&each, &self.totals, scatter, Normalize::Median, false);
        let middle = f64::midpoint(mean(&self.totals.base), mean(&self.totals.new));
        (outcome.results, middle)
    }

    /// Mean shares of a function: here and elsewhere.
    fn shares(&self, of: &Weights) -> (f64, f64) {
        let share = |weights: &[f64], totals: &[f64]| {
            let shares = weights
                .iter()
                .zip(totals)
                .map(|(weight, total)| weight / total);
            mean(&shares.collect::<Vec<f64>>())
        };
        (
            share(&of.new, &self.totals.new),
            share(&of.base, &self.totals.base),
        )
    }
}

/// What a function weighs in a recording, with the squares of its samples.
type Spent = (f64, f64);

/// What a function weighs in the recordings of both sides, if that is enough to be tested.
fn weights((base, new): (&[Spent], &[Spent]), totals: &Weights, made: Made) -> Option<Weights> {
    let of = |part: &[(f64, f64)]| part.iter().map(|(weight, _)| *weight).collect::<Vec<f64>>();
    let squares =
        |part: &[(f64, f64)]| mean(&part.iter().map(|spent| spent.1).collect::<Vec<f64>>());
    let (base_weights, new_weights) = (of(base), of(new));
    let (m_base, m_new) = (mean(&base_weights), mean(&new_weights));
    let is_large = m_base >= LARGE * mean(&totals.base) || m_new >= LARGE * mean(&totals.new);
    let grain = match made {
        Made::Whole => 0.0,
        _ => (squares(base) + squares(new)) / (m_base + m_new),
    };
    let has_samples = made != Made::Sampled || m_base.max(m_new) >= SAMPLES * grain;
    (is_large && has_samples).then_some(Weights {
        base: base_weights,
        new: new_weights,
        grain,
    })
}

fn unlike(sides: &[Sides<'_>]) -> Vec<Unlike> {
    let mut all = Vec::new();
    let mut probabilities = Vec::new();
    for side in sides {
        let (results, middle) = side.tested();
        for ((function, of), result) in side.functions.iter().zip(results) {
            let (here, elsewhere) = side.shares(of);
            let is_relevant = result
                .ratio
                .is_none_or(|ratio| (ratio.value - 1.0).abs() >= LEAST_GROWTH)
                && result.difference.abs() >= LEAST_PART * middle;
            // What weighs as much as elsewhere, while all else weighs more, is like the others.
            let is_told = is_relevant && (here > elsewhere) == (result.difference > 0.0);
            probabilities.push(result.p);
            all.push((
                is_told,
                Unlike {
                    host: side.host.to_owned(),
                    function: *function,
                    here,
                    elsewhere,
                    ratio: result.ratio,
                    q: 1.0,
                },
            ));
        }
    }
    let rates = benjamini_hochberg(&probabilities);
    let rows = all.into_iter().zip(rates);
    let rows = rows.filter(|((is_told, _), q)| *is_told && *q <= RATE);
    let mut rows: Vec<Unlike> = rows.map(|((_, row), q)| Unlike { q, ..row }).collect();
    rows.sort_by(|a, b| {
        let by_difference = |row: &Unlike| (row.here - row.elsewhere).abs();
        let order = by_difference(b).total_cmp(&by_difference(a));
        order.then_with(|| (&a.host, a.function).cmp(&(&b.host, b.function)))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recordings of hosts, each with the weights of functions, whose samples weigh one.
    fn compared(recordings: &[(&str, [u64; 5])]) -> Vec<(String, u32)> {
        let units: Vec<Unit<'_>> = (recordings.iter())
            .map(|(host, weights)| Unit {
                host,
                total: weights.iter().sum(),
                functions: (0..)
                    .zip(weights)
                    .map(|(id, weight)| (FunctionId(id), (*weight, *weight as f64)))
                    .collect(),
            })
            .collect();
        let mut hosts: Vec<&str> = recordings.iter().map(|(host, _)| *host).collect();
        hosts.dedup();
        let sides: Vec<Sides<'_>> = (hosts.iter())
            .map(|host| Sides::of(&units, host, Made::Sampled))
            .collect();
        let rows = unlike(&sides).into_iter();
        rows.map(|row| (row.host, row.function.0)).collect()
    }

    #[test]
    fn a_host_is_unlike_where_its_recordings_agree() {
        let usual = [
            [2000, 1010, 990, 3000, 500],
            [2040, 980, 1020, 2950, 520],
            [1970, 1000, 1000, 3040, 490],
        ];
        let alike = ["a", "b", "c"]
            .iter()
            .flat_map(|host| usual.map(|of| (*host, of)));
        let mut all: Vec<(&str, [u64; 5])> = alike.collect();
        assert_eq!(compared(&all), []);
        // A longer recording is no other host.
        all[2].1 = all[2].1.map(|weight| weight * 3);
        assert_eq!(compared(&all), []);
        for (_, weights) in &mut all[3..6] {
            weights[1] *= 2;
        }
        assert_eq!(compared(&all)[0], ("b".to_owned(), 1));
        // One recording that is unlike all others says nothing of its host.
        for (_, weights) in &mut all[4..6] {
            weights[1] /= 2;
        }
        assert_eq!(compared(&all), []);
    }
}
