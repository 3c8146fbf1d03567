//! Whether functions weigh more in one group of runs than in another, or chance says so.
//!
//! In: what each function weighs in each run. Out: a [`Tested`] each, and what all functions have grown by. Per function a t test
//! whose variance leans on what is expected of such a function (a prior of some degrees of freedom); Benjamini and Hochberg's rule over
//! all functions. Runs are measured by the functions that did not change, the steady ones most, before anything is compared:
//! what one function takes of a run is then neither noise nor change of the others, and what the runs scatter by is what the
//! groups may differ by. Which did not change nobody says: those are taken for it whose growth the machine may explain, as far as
//! runs of one group scatter. Else the larger part of a program that grew would make the rest look faster.

use super::stats::{
    benjamini_hochberg, digamma, inverse_trigamma, normal_two_sided, t_95, t_two_sided, trigamma,
};

/// Degrees of freedom that the prior variance counts for at most.
const PRIOR_DEGREES: f64 = 4.0;
/// Noise of a function beyond sampling that the prior expects, as a share of its weight.
const PRIOR_NOISE: f64 = 0.03;
/// The same where there is nothing but the prior.
const SINGLE_NOISE: f64 = 0.15;
/// Highest q value of what is flagged.
pub(super) const RATE: f64 = 0.05;
/// Standard deviation of total CPU that the prior expects.
pub(super) const TOTAL_NOISE: f64 = 0.10;
/// Part of the total that a function needs to be tested.
pub(super) const LARGE: f64 = 0.005;
/// By what part a function has to grow to be told of, and what part of the total that has to be.
pub(super) const LEAST_GROWTH: f64 = 0.05;
pub(super) const LEAST_PART: f64 = 0.002;
/// How often runs are measured anew by the functions that were not flagged.
const ROUNDS: usize = 3;
/// Part of the weight that functions need to be what runs are measured by.
const LEAST: f64 = 0.1;
/// Fewest functions that can tell how much such functions scatter.
const ENOUGH: usize = 5;

/// What takes out that everything became faster or slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalize {
    /// Nothing: the machine's moods count as noise.
    None,
    /// The totals of the runs.
    Total,
    /// What the functions that did not change take in each run.
    Median,
}

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a function weighs in each run of both groups.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    pub(super) base: Vec<f64>,
    pub(super) new: Vec<f64>,
    /// What one of its samples weighs: by chance alone its weight scatters by the root of the weight times this. Nothing where
    /// chance has no part.
    pub(super) grain: f64,
}

impl Weights {
    /// As they would be in runs of length 1.
    fn over(&self, lengths: &Self) -> Self {
        let divide = |weights: &[f64], divisors: &[f64]| {
            let pairs = weights.iter().zip(divisors);
            pairs.map(|(x, length)| x / length).collect()
        };
        Self {
            base: divide(&self.base, &lengths.base),
            new: divide(&self.new, &lengths.new),
            grain: self.grain,
        }
    }

    fn times(&self, base: f64, new: f64) -> Self {
        Self {
            base: self.base.iter().map(|x| x * base).collect(),
            new: self.new.iter().map(|x| x * new).collect(),
            grain: self.grain,
        }
    }

    fn means(&self) -> (f64, f64) {
        (mean(&self.base), mean(&self.new))
    }

    /// What both groups have on average, both alike.
    fn middle(&self) -> f64 {
        f64::midpoint(mean(&self.base), mean(&self.new)).max(f64::MIN_POSITIVE)
    }

    /// Whether all are above nothing.
    fn is_positive(&self) -> bool {
        self.base.iter().chain(&self.new).all(|x| *x > 0.0)
    }

    /// Whether both groups have so much that the ratio is not mere chance: five samples.
    fn has_ratio(&self) -> bool {
        let (base, new) = self.means();
        let least = 5.0 * self.grain;
        base > 0.0 && new > 0.0 && base >= least && new >= least
    }

    /// By what the logarithm of the mean grew.
    fn growth(&self) -> f64 {
        let (base, new) = self.means();
        (new / base).ln()
    }
}

/// What the test of one function says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tested {
    /// New to base.
    pub(super) ratio: Option<Interval>,
    pub(super) p: f64,
    pub(super) q: f64,
    pub(super) difference: f64,
}

impl Tested {
    pub(super) fn is_flagged(&self) -> bool {
        self.q <= RATE
    }
}

/// What the totals of runs scatter by within their groups, as variance of their logarithms, and how far the groups may
/// differ for that: the half width of the 95 % interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scatter {
    pub(super) variance: f64,
    pub(super) wide: f64,
}

/// By what weights are measured: how long each run was, and what is expected of functions.
#[derive(Debug, Clone)]
pub(super) struct Yardstick {
    lengths: Weights,
    prior: Prior,
    is_paired: bool,
}

impl Yardstick {
    /// The test of a function that is not among those that were tested together; its q is its p.
    pub(super) fn test(&self, one: &Weights) -> Tested {
        let one = one.over(&self.lengths);
        self.prior.alone(&one, self.is_paired)
    }

    /// The test of what a function weighs as it is; what runs scatter by altogether is in its error, beside what functions do.
    pub(super) fn in_seconds(&self, one: &Weights, scatter: Scatter) -> Tested {
        let moods = Prior {
            shared: scatter.variance,
            ..self.prior
        };
        moods.alone(one, self.is_paired)
    }
}

/// What a comparison comes to.
pub(super) struct Outcome {
    pub(super) results: Vec<Tested>,
    /// What all have grown by.
    pub(super) factor: f64,
    /// Whether too few functions kept their seconds, so that runs are measured by what most have grown by.
    pub(super) is_guess: bool,
    pub(super) yardstick: Yardstick,
}

/// Tests all functions; and what they have grown by together.
pub(super) fn test(
    all: &[Weights],
    totals: &Weights,
    scatter: Scatter,
    normalize: Normalize,
    is_paired: bool,
) -> Outcome {
    let of = |lengths: Weights, is_guess: bool| {
        let scaled: Vec<Weights> = all.iter().map(|one| one.over(&lengths)).collect();
        let (results, prior) = results(&scaled, is_paired);
        let (base, new) = lengths.means();
        Outcome {
            results,
            factor: new / base,
            is_guess,
            yardstick: Yardstick {
                lengths,
                prior,
                is_paired,
            },
        }
    };
    let ones = |runs: &[f64]| vec![1.0; runs.len()];
    let as_they_are = || Weights {
        base: ones(&totals.base),
        new: ones(&totals.new),
        grain: 0.0,
    };
    if normalize == Normalize::None || !totals.is_positive() {
        return of(as_they_are(), false);
    }
    let middle = totals.middle();
    let by_totals = totals.times(middle.recip(), middle.recip());
    if normalize == Normalize::Total {
        return of(by_totals, false);
    }
    // One that grew makes the share of all others smaller: a first look, by what those have grown by that the machine may
    // have made slower.
    let Some((factor, is_guess)) = first_look(all, &by_totals, scatter) else {
        return of(as_they_are(), false);
    };
    let root = factor.sqrt();
    let mut found = of(by_totals.times(root.recip(), root), is_guess);
    for _ in 0..ROUNDS {
        let Some(lengths) = lengths(all, &found) else {
            break;
        };
        let better = of(lengths, is_guess);
        let mut pairs = better.results.iter().zip(&found.results);
        let is_settled = pairs.all(|(a, b)| a.is_flagged() == b.is_flagged());
        found = better;
        if is_settled {
            break;
        }
    }
    found
}

/// What the functions that may not have changed have grown by in runs that are equally long; whether none may be such, so that it
/// is of all. Nothing if there are too few functions to tell what all have grown by from what one has.
fn first_look(all: &[Weights], by_totals: &Weights, scatter: Scatter) -> Option<(f64, bool)> {
    let shares: Vec<Weights> = all.iter().map(|one| one.over(by_totals)).collect();
    let is_near = |one: &Weights| one.has_ratio() && one.growth().abs() <= scatter.wide;
    // Where the machine may explain two readings, the one that asks less of it counts more.
    let chance = |one: &Weights| (-(1.96 * one.growth() / scatter.wide).powi(2) / 2.0).exp();
    let pairs = all.iter().zip(&shares);
    let near: Vec<(&Weights, f64)> = pairs
        .filter(|(raw, _)| is_near(raw))
        .map(|(raw, share)| (share, chance(raw)))
        .collect();
    let of_all = median_factor(shares.iter().map(|one| (one, 1.0)))?;
    let weight: f64 = near.iter().map(|(one, _)| one.middle()).sum();
    let whole: f64 = shares.iter().map(Weights::middle).sum();
    if near.len() < 2 || weight < LEAST * whole {
        return Some((of_all, true));
    }
    let factor = median_factor(near.iter().copied()).unwrap_or_else(|| {
        let sums = near.iter().map(|(one, _)| one.means());
        let (base, new) = sums.fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        new / base
    });
    Some((factor, false))
}

/// How long each run was by the functions that are not flagged, each as much as it is steady, if these are enough to tell.
fn lengths(all: &[Weights], found: &Outcome) -> Option<Weights> {
    let prior = Prior::default();
    let scaled: Vec<Weights> = all
        .iter()
        .map(|one| one.over(&found.yardstick.lengths))
        .collect();
    let weight_of = |(one, result): (&Weights, &Tested)| {
        if result.is_flagged() {
            0.0
        } else {
            one.middle().powi(2) / prior.variance(one)
        }
    };
    let weights: Vec<f64> = scaled.iter().zip(&found.results).map(weight_of).collect();
    let kept = || scaled.iter().zip(&weights).filter(|(_, w)| **w > 0.0);
    let of_kept: f64 = kept().map(|(one, _)| one.middle()).sum();
    let of_all: f64 = scaled.iter().map(Weights::middle).sum();
    if kept().count() < 2 || of_kept < LEAST * of_all {
        return None;
    }
    let total: f64 = weights.iter().sum();
    let zeros = |runs: &[f64]| vec![0.0; runs.len()];
    let mut lengths = Weights {
        base: zeros(&all.first()?.base),
        new: zeros(&all.first()?.new),
        grain: 0.0,
    };
    for ((raw, one), weight) in all.iter().zip(&scaled).zip(&weights) {
        let part = weight / total / one.middle();
        let add = |sums: &mut [f64], values: &[f64]| {
            let pairs = sums.iter_mut().zip(values);
            pairs.for_each(|(length, x)| *length += part * x);
        };
        add(&mut lengths.base, &raw.base);
        add(&mut lengths.new, &raw.new);
    }
    lengths.is_positive().then_some(lengths)
}

fn results(all: &[Weights], is_paired: bool) -> (Vec<Tested>, Prior) {
    let prior = Prior::of(all, is_paired);
    let wide = all.first().map_or(0.0, |one| prior.wide(one, is_paired));
    let mut results: Vec<Tested> = all
        .iter()
        .map(|one| prior.compare(one, is_paired, wide))
        .collect();
    let p: Vec<f64> = results.iter().map(|result| result.p).collect();
    for (result, q) in results.iter_mut().zip(benjamini_hochberg(&p)) {
        result.q = q;
    }
    (results, prior)
}

/// What functions are expected to scatter by before their runs are looked at.
#[derive(Debug, Clone, Copy)]
struct Prior {
    /// For how many values that counts.
    degrees: f64,
    /// By how much the functions of this comparison scatter more than usual.
    scale: f64,
    /// Noise beyond sampling, as a share of the weight.
    noise: f64,
    /// Variance that a function has from its runs, not of its own, as a share of the weight's square.
    shared: f64,
}

impl Default for Prior {
    fn default() -> Self {
        Self {
            degrees: PRIOR_DEGREES,
            scale: 1.0,
            noise: PRIOR_NOISE,
            shared: 0.0,
        }
    }
}

impl Prior {
    /// Learned from all functions: collectors of garbage and tiers of a compiler make them scatter by ten times what is usual,
    /// and three runs of one function alone do not show that. The moments of the logarithms of their variances tell by how much,
    /// and how alike they are.
    fn of(all: &[Weights], is_paired: bool) -> Self {
        let usual = Self::default();
        let own = all.first().map_or(0.0, |one| own_degrees(one, is_paired));
        if all.len() < ENOUGH || own < 1.0 {
            return usual;
        }
        let log = |one: &Weights| {
            let found = deviations(one, is_paired) / own / usual.expected(one);
            found.max(0.01).ln() - digamma(own / 2.0) + (own / 2.0).ln()
        };
        let logs: Vec<f64> = all.iter().map(log).collect();
        let spread = squares(&logs) / (logs.len() - 1) as f64 - trigamma(own / 2.0);
        let (mut degrees, mut scale) = (PRIOR_DEGREES, mean(&logs).exp());
        if spread > 0.0 {
            degrees = PRIOR_DEGREES.min(2.0 * inverse_trigamma(spread));
            let half = degrees.max(1.0) / 2.0;
            scale *= (digamma(half) - half.ln()).exp();
        }
        Self {
            degrees,
            scale: scale.max(1.0),
            ..usual
        }
    }

    /// The variance that is expected of a function of this weight.
    fn expected(&self, one: &Weights) -> f64 {
        let middle = one.middle();
        let own = self.scale * (one.grain * middle + (self.noise * middle).powi(2));
        own + self.shared * middle.powi(2)
    }

    /// What runs of one group scatter by, leaning on what is expected.
    fn variance(&self, one: &Weights) -> f64 {
        let runs = (one.base.len() + one.new.len()) as f64;
        let found = squares(&one.base) + squares(&one.new);
        (self.degrees * self.expected(one) + found) / (self.degrees + runs - 2.0)
    }

    /// The value of t that chance keeps below in 95 % of all cases.
    fn wide(&self, one: &Weights, is_paired: bool) -> f64 {
        if is_single(one) {
            1.959_964
        } else {
            t_95(self.degrees + own_degrees(one, is_paired))
        }
    }

    fn alone(&self, one: &Weights, is_paired: bool) -> Tested {
        let found = self.compare(one, is_paired, self.wide(one, is_paired));
        Tested {
            q: found.p,
            ..found
        }
    }

    /// The moderated test of one function; of single runs the prior alone.
    fn compare(&self, one: &Weights, is_paired: bool, wide: f64) -> Tested {
        let (m_base, m_new) = one.means();
        let (n, m) = (one.base.len() as f64, one.new.len() as f64);
        let difference = m_new - m_base;
        let (error, p) = if is_single(one) {
            let single = Self {
                noise: SINGLE_NOISE,
                ..Self::default()
            };
            let error = (single.expected(one) * (1.0 / n + 1.0 / m)).sqrt();
            (error, normal_two_sided(difference / error))
        } else {
            let expected = (self.expected(one), self.degrees);
            let (error, degrees) = moderated(expected, one, is_paired);
            (error, t_two_sided(difference / error, degrees))
        };
        let at = |shift: f64| 1.0 + shift / m_base;
        let ratio = (m_base > 0.0).then(|| Interval {
            value: at(difference),
            low: at(difference - wide * error).max(0.0),
            high: at(difference + wide * error),
        });
        Tested {
            ratio,
            p,
            q: 1.0,
            difference,
        }
    }
}

/// Whether a group has no runs to scatter.
fn is_single(one: &Weights) -> bool {
    one.base.len().min(one.new.len()) < 2
}

/// The weighted median of what functions have grown by, each with how much it counts beside, if there are three to tell.
fn median_factor<'s>(all: impl Iterator<Item = (&'s Weights, f64)>) -> Option<f64> {
    let mut ratios: Vec<(f64, f64)> = all
        .filter(|(one, _)| one.has_ratio())
        .map(|(one, chance)| {
            let (a, b) = one.means();
            let weight = (a * b).powf(0.25) / one.grain.max(1.0).sqrt();
            (b / a, chance * weight)
        })
        .collect();
    if ratios.len() < 3 {
        return None;
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    for (ratio, weight) in &ratios {
        sum += weight;
        if sum >= half {
            return Some(*ratio);
        }
    }
    None
}

/// What the runs of both groups alone say about their variance: so many values.
fn own_degrees(one: &Weights, is_paired: bool) -> f64 {
    let (n, m) = (one.base.len() as f64, one.new.len() as f64);
    if is_paired { n - 1.0 } else { n + m - 2.0 }
}

/// Sum of squared deviations of single runs, from those of a group or of pairs.
fn deviations(one: &Weights, is_paired: bool) -> f64 {
    if is_paired {
        let pairs = one.base.iter().zip(&one.new);
        let differences: Vec<f64> = pairs.map(|(a, b)| b - a).collect();
        squares(&differences) / 2.0
    } else {
        squares(&one.base) + squares(&one.new)
    }
}

/// Standard error of the difference of means, and its degrees of freedom: what is expected, a variance, counts as much as so many
/// further values.
fn moderated((expected, weight): (f64, f64), one: &Weights, is_paired: bool) -> (f64, f64) {
    let (n, m) = (one.base.len() as f64, one.new.len() as f64);
    let degrees = weight + own_degrees(one, is_paired);
    let variance = (weight * expected + deviations(one, is_paired)) / degrees;
    ((variance * (1.0 / n + 1.0 / m)).sqrt(), degrees)
}

/// What runs of both groups grew by, by their totals: of logarithms, as they are. Their machines are expected to be of one speed but
/// for so much.
pub(super) fn of_totals(logs: &Weights, noise: f64, is_paired: bool) -> (Interval, f64, Scatter) {
    let (base, new) = logs.means();
    let difference = new - base;
    let (error, degrees) = moderated((noise * noise, PRIOR_DEGREES), logs, is_paired);
    let wide = t_95(degrees) * error;
    let interval = Interval {
        value: difference.exp(),
        low: (difference - wide).exp(),
        high: (difference + wide).exp(),
    };
    let two_sided = t_two_sided(difference / error, degrees);
    let p = if difference > 0.0 {
        two_sided / 2.0
    } else {
        1.0 - two_sided / 2.0
    };
    let runs = 1.0 / logs.base.len() as f64 + 1.0 / logs.new.len() as f64;
    let variance = error * error / runs;
    (interval, p, Scatter { variance, wide })
}

/// Sum of squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How far two single runs of a function with so many samples may differ by chance, in per cent.
#[must_use]
pub fn expected_difference(samples: f64) -> f64 {
    196.0 * (2.0 * (1.0 / samples.max(1.0) + SINGLE_NOISE * SINGLE_NOISE)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(all: &[Weights], totals: &Weights, normalize: Normalize) -> Outcome {
        let logs = |totals: &[f64]| totals.iter().map(|total| total.ln()).collect();
        let logs = Weights {
            base: logs(&totals.base),
            new: logs(&totals.new),
            grain: 0.0,
        };
        let (_, _, scatter) = of_totals(&logs, 0.1, false);
        test(all, totals, scatter, normalize, false)
    }

    /// Runs of functions by weight and what they take in the new ones; none scatters but by a sample or two.
    fn made(functions: &[(f64, f64)]) -> (Vec<Weights>, Weights) {
        let noise = [[0.0, 3.0, -2.0, 1.0], [2.0, -1.0, 0.0, -3.0]];
        let side =
            |at: usize, weight: f64| -> Vec<f64> { noise[at].iter().map(|n| weight + n).collect() };
        let all: Vec<Weights> = functions
            .iter()
            .map(|(weight, times)| Weights {
                base: side(0, *weight),
                new: side(1, weight * times),
                grain: 1.0,
            })
            .collect();
        let sum = |of: fn(&Weights) -> &[f64]| {
            (0..4)
                .map(|run| all.iter().map(|one| of(one)[run]).sum())
                .collect()
        };
        let totals = Weights {
            base: sum(|one| &one.base),
            new: sum(|one| &one.new),
            grain: 0.0,
        };
        (all, totals)
    }

    /// The larger part of a program takes three times as long: that is what grew, and not the rest that shrank.
    #[test]
    fn what_kept_its_seconds_is_what_runs_are_measured_by() {
        let flagged = |outcome: &Outcome| -> Vec<bool> {
            outcome.results.iter().map(Tested::is_flagged).collect()
        };
        let (all, totals) = made(&[(2400.0, 3.0), (800.0, 1.0), (800.0, 1.0)]);
        let found = tested(&all, &totals, Normalize::Median);
        assert_eq!(flagged(&found), [true, false, false]);
        assert!((found.factor - 1.0).abs() < 0.02, "{}", found.factor);
        assert!(!found.is_guess);
        // Thirteen of twenty take half as much again.
        let most: Vec<(f64, f64)> = (0..20)
            .map(|at| (400.0, if at < 13 { 1.5 } else { 1.0 }))
            .collect();
        let (all, totals) = made(&most);
        let found = tested(&all, &totals, Normalize::Median);
        let wanted: Vec<bool> = (0..20).map(|at| at < 13).collect();
        assert_eq!(flagged(&found), wanted);
        // All do: that is in the factor.
        let all_grew: Vec<(f64, f64)> = (0..20).map(|_| (400.0, 1.5)).collect();
        let (all, totals) = made(&all_grew);
        let found = tested(&all, &totals, Normalize::Median);
        assert!(!flagged(&found).contains(&true) && found.is_guess);
        assert!((found.factor - 1.5).abs() < 0.02, "{}", found.factor);
    }

    /// Thirteen of twenty functions take an eighth more, on a machine that happens to be a little faster: in seconds all of them changed
    /// by less than runs may differ. That the seven kept their time asks less of the machine than that most did.
    #[test]
    fn of_two_readings_the_likelier_one_counts() {
        let functions: Vec<(f64, f64)> = (0..20)
            .map(|at| (4000.0, if at < 13 { 1.09 } else { 0.97 }))
            .collect();
        let (all, totals) = made(&functions);
        let found = tested(&all, &totals, Normalize::Median);
        let grew: Vec<bool> = found
            .results
            .iter()
            .map(|result| result.is_flagged() && result.difference > 0.0)
            .collect();
        let wanted: Vec<bool> = (0..20).map(|at| at < 13).collect();
        assert_eq!(grew, wanted);
        assert!((found.factor - 0.97).abs() < 0.01, "{}", found.factor);
        assert!(!found.is_guess);
    }

    /// Functions that scatter by a third between equal runs, as collectors of garbage make them: three runs each of which happen to
    /// differ are no change.
    #[test]
    fn functions_teach_what_they_scatter_by() {
        let runs = [
            [0.79, 0.62, 0.70, 0.95, 0.45, 1.88],
            [0.96, 1.18, 0.98, 1.26, 0.90, 1.23],
            [1.23, 1.18, 0.86, 1.43, 1.04, 1.12],
            [1.12, 1.43, 0.69, 1.37, 1.11, 0.75],
            [1.48, 1.33, 1.01, 0.74, 0.87, 0.81],
            [1.63, 0.75, 1.21, 0.49, 1.04, 1.45],
        ];
        let of = |runs: [f64; 6]| Weights {
            base: runs[..3].iter().map(|x| x * 1000.0).collect(),
            new: runs[3..].iter().map(|x| x * 1000.0).collect(),
            grain: 1.0,
        };
        let all: Vec<Weights> = runs.into_iter().map(of).collect();
        let learned = Prior::of(&all, false);
        assert!(learned.scale > 10.0, "{learned:?}");
        let (with, _) = results(&all, false);
        assert!(!with.iter().any(Tested::is_flagged));
        // The fifth differs by chance; what is usual would call that a change.
        let usual = Prior::default().alone(&all[4], false);
        assert!(usual.p * 6.0 < 0.05, "{}", usual.p);
        // In plain seconds it is no change, either, though what runs scatter by is in the error as well.
        let in_seconds = |prior: Prior| -> f64 {
            let yardstick = Yardstick {
                lengths: all[0].times(0.0, 0.0),
                prior,
                is_paired: false,
            };
            let scatter = Scatter {
                variance: 0.015,
                wide: 0.2,
            };
            let tested = all.iter().map(|one| yardstick.in_seconds(one, scatter).p);
            let q = benjamini_hochberg(&tested.collect::<Vec<_>>());
            q.into_iter().fold(1.0, f64::min)
        };
        let (usual, learned) = (in_seconds(Prior::default()), in_seconds(learned));
        assert!(usual < RATE && learned > 0.1, "{usual} {learned}");
        // Quiet functions, and few, are taken as usual.
        let (quiet, _) = made(&[(400.0, 1.0); 6]);
        assert_eq!(Prior::of(&quiet, false).scale, 1.0);
        assert_eq!(Prior::of(&all[..4], false).scale, 1.0);
    }

    /// Bytes that are the same in all runs are known to the byte: a twentieth more of them is more.
    #[test]
    fn what_was_not_sampled_does_not_scatter_as_if_it_were() {
        let of = |base: f64, new: f64, grain: f64| Weights {
            base: vec![base; 3],
            new: vec![new; 3],
            grain,
        };
        let p = |grain: f64| Prior::default().alone(&of(1e6, 1.2e6, grain), false).p;
        assert!(p(0.0) < 0.01 && p(1e5) > 0.1, "{} {}", p(0.0), p(1e5));
    }

    /// One function waits for memory that others use: it takes 30 to 50 % of the time of equal runs, and so the others' shares
    /// scatter against it. No split of such runs is a change.
    #[test]
    fn what_one_function_takes_of_a_run_is_no_change_of_the_others() {
        let memory = [
            380.0, 520.0, 400.0, 470.0, 610.0, 390.0, 560.0, 430.0, 590.0, 410.0,
        ];
        let steady = |weight: f64, noise: [f64; 5]| Weights {
            base: noise.iter().map(|n| weight + n).collect(),
            new: noise.iter().rev().map(|n| weight + 0.5 + n).collect(),
            grain: 1.0,
        };
        let all = [
            steady(420.0, [3.0, -2.0, 5.0, 0.0, -4.0]),
            steady(90.0, [-1.0, 2.0, 0.0, 3.0, -2.0]),
            steady(60.0, [1.0, 0.0, -2.0, 2.0, 1.0]),
            Weights {
                base: memory[..5].to_vec(),
                new: memory[5..].to_vec(),
                grain: 1.0,
            },
        ];
        let totals = |all: &[Weights]| Weights {
            base: (0..5)
                .map(|run| all.iter().map(|one| one.base[run]).sum())
                .collect(),
            new: (0..5)
                .map(|run| all.iter().map(|one| one.new[run]).sum())
                .collect(),
            grain: 1.0,
        };
        let Outcome {
            results, factor, ..
        } = tested(&all, &totals(&all), Normalize::Median);
        assert!(results.iter().all(|result| !result.is_flagged()));
        assert!((factor - 1.0).abs() < 0.02, "{factor}");
        // The steady ones say how long runs are, not the noisy one.
        let interval = results[0].ratio.expect("a ratio");
        assert!(interval.high - interval.low < 0.2, "{interval:?}");
    }

    /// The method's formula in numpy, with `t.sf` and `t.ppf` of scipy 1.17: p, the ends of the interval, p of pairs. Without its prior
    /// the formula gave there what `ttest_ind` gives.
    #[test]
    fn p_values_are_those_of_scipy() {
        let none = (f64::NAN, f64::NAN);
        let of = |base: &[f64], new: &[f64]| Weights {
            base: base.to_vec(),
            new: new.to_vec(),
            grain: 1.0,
        };
        let many = of(
            &[
                1210.0, 980.0, 1100.0, 1340.0, 1050.0, 1150.0, 990.0, 1230.0, 1080.0, 1010.0,
            ],
            &[
                1250.0, 1190.0, 1160.0, 1480.0, 1120.0, 1300.0, 1130.0, 1260.0, 1210.0, 1090.0,
            ],
        );
        let five = of(
            &[412.0, 398.0, 405.0, 420.0, 391.0],
            &[494.0, 480.0, 505.0, 490.0, 511.0],
        );
        let unequal = of(
            &[30.0, 41.0, 25.0, 38.0],
            &[29.0, 33.0, 52.0, 40.0, 31.0, 44.0],
        );
        for (samples, p, (low, high), of_pairs) in [
            (
                of(&[412.0, 398.0, 405.0], &[431.0, 440.0, 452.0]),
                0.041_867_587_036_893,
                (1.004_177_797_654_9, 1.173_599_980_122_9),
                Some(0.076_689_195_820_810),
            ),
            (
                five,
                2.819_342_717_550_9e-6,
                (1.164_742_057_674_9, 1.283_431_683_687_4),
                Some(1.047_185_499_016_76e-4),
            ),
            (
                unequal,
                0.362_458_536_819_017,
                (0.818_704_248_523_7, 1.459_902_716_650_4),
                None,
            ),
            (
                many,
                0.038_510_420_603_586,
                (1.005_452_194_649_9, 1.183_057_679_676_8),
                Some(1.191_928_910_513_08e-4),
            ),
            (
                of(&[0.0, 0.0, 0.0], &[18.0, 22.0, 15.0]),
                4.030_810_908_132_41e-5,
                none,
                Some(2.286_895_368_104_50e-4),
            ),
            (
                of(&[55.0; 3], &[55.0; 3]),
                1.0,
                (0.816_088_311_745_8, 1.183_911_688_254_2),
                Some(1.0),
            ),
        ] {
            let near = |found: f64, wanted: f64| {
                assert!(
                    (found / wanted - 1.0).abs() < 1e-6,
                    "{found} is not {wanted}"
                );
            };
            let found = Prior::default().alone(&samples, false);
            near(found.p, p);
            if let Some(ratio) = found.ratio {
                near(ratio.low, low);
                near(ratio.high, high);
            } else {
                assert!(low.is_nan(), "{p}");
            }
            if let Some(p) = of_pairs {
                near(Prior::default().alone(&samples, true).p, p);
            }
        }
    }

    /// Of two functions nobody can tell whether one grew or the other shrank and all grew: they are compared as they are.
    #[test]
    fn two_functions_do_not_tell_what_all_have_grown_by() {
        let of = |base: f64, new: f64| Weights {
            base: [0.0, 4.0, -3.0].iter().map(|n| base + n).collect(),
            new: [2.0, -2.0, 1.0].iter().map(|n| new + n).collect(),
            grain: 1.0,
        };
        let all = [of(300.0, 300.0), of(50.0, 150.0)];
        let totals = of(350.0, 450.0);
        let Outcome {
            results, factor, ..
        } = tested(&all, &totals, Normalize::Median);
        let flagged: Vec<bool> = results.iter().map(Tested::is_flagged).collect();
        assert_eq!((flagged, factor), (vec![false, true], 1.0));
        assert!((results[0].ratio.expect("a ratio").value - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_others_did_not_shrink_when_one_grew() {
        let of = |weight: f64, times: f64| Weights {
            base: [0.0, 9.0, -7.0, 4.0].iter().map(|n| weight + n).collect(),
            new: [5.0, -6.0, 8.0, 0.0]
                .iter()
                .map(|n| times * weight + n)
                .collect(),
            grain: 1.0,
        };
        let all = [
            of(600.0, 2.0),
            of(300.0, 1.0),
            of(400.0, 1.0),
            of(350.0, 1.0),
        ];
        let totals = Weights {
            base: vec![1650.0; 4],
            new: vec![2250.0; 4],
            grain: 1.0,
        };
        let Outcome {
            results, factor, ..
        } = tested(&all, &totals, Normalize::Median);
        let flagged: Vec<bool> = results.iter().map(Tested::is_flagged).collect();
        assert_eq!(flagged, [true, false, false, false]);
        assert!((factor - 1.0).abs() < 0.02, "{factor}");
        let Outcome {
            results: of_totals,
            factor,
            ..
        } = tested(&all, &totals, Normalize::Total);
        assert!(of_totals.iter().all(Tested::is_flagged));
        assert!((factor - 2250.0 / 1650.0).abs() < 1e-9, "{factor}");
    }
}
