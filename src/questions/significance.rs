//! Whether functions weigh more in one group of runs than in another, or chance says so.
//!
//! In: samples of each function in each run. Out: a [`Tested`] each, and what all functions have grown by. Per function a t test
//! whose variance leans on what sampling alone would give (a prior of some degrees of freedom); Benjamini and Hochberg's rule over
//! all functions. Runs are measured by the functions that did not change, the steady ones most, before anything is compared:
//! what one function takes of a run is then neither noise nor change of the others, and what the runs scatter by is what the
//! groups may differ by.

use super::stats::{benjamini_hochberg, normal_two_sided, t_95, t_two_sided};

/// Degrees of freedom that the prior variance counts for.
const PRIOR_DEGREES: f64 = 4.0;
/// Noise of a function beyond sampling that the prior expects, as a share of its weight.
const PRIOR_NOISE: f64 = 0.03;
/// The same where there is nothing but the prior.
const SINGLE_NOISE: f64 = 0.15;
/// False discovery rate.
const RATE: f64 = 0.05;
/// How often runs are measured anew by the functions that were not flagged.
const ROUNDS: usize = 3;

/// What takes out that everything became faster or slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalize {
    /// Nothing: the machine's moods count as noise.
    None,
    /// The totals of the runs.
    Total,
    /// What the functions that did not change take in each run.
    #[default]
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

/// Samples of a function in each run of both groups.
pub(super) struct Samples {
    pub(super) base: Vec<f64>,
    pub(super) new: Vec<f64>,
}

impl Samples {
    /// As they would be in runs of length 1.
    fn over(&self, lengths: &Self) -> Self {
        let divide = |samples: &[f64], lengths: &[f64]| {
            let pairs = samples.iter().zip(lengths);
            pairs.map(|(x, length)| x / length).collect()
        };
        Self {
            base: divide(&self.base, &lengths.base),
            new: divide(&self.new, &lengths.new),
        }
    }

    fn times(&self, base: f64, new: f64) -> Self {
        Self {
            base: self.base.iter().map(|x| x * base).collect(),
            new: self.new.iter().map(|x| x * new).collect(),
        }
    }

    fn means(&self) -> (f64, f64) {
        (mean(&self.base), mean(&self.new))
    }

    /// What both groups have on average, both alike.
    fn middle(&self) -> f64 {
        f64::midpoint(mean(&self.base), mean(&self.new)).max(1.0)
    }

    /// Whether all are above nothing.
    fn is_positive(&self) -> bool {
        self.base.iter().chain(&self.new).all(|x| *x > 0.0)
    }
}

/// What the test of one function says.
pub(super) struct Tested {
    /// New to base.
    pub(super) ratio: Option<Interval>,
    pub(super) p: f64,
    pub(super) q: f64,
    /// In samples of a run.
    pub(super) difference: f64,
}

impl Tested {
    pub(super) fn is_flagged(&self) -> bool {
        self.q <= RATE
    }
}

/// Tests all functions; and what they have grown by together. `totals` are the samples of the runs; where runs were sampled more
/// often than those of the base, by `frequency`, that is no growth. A `sum` of others is tested, but does not tell how long runs are.
pub(super) fn test(
    all: &[Samples],
    sum: Option<usize>,
    totals: &Samples,
    frequency: f64,
    normalize: Normalize,
    is_paired: bool,
) -> (Vec<Tested>, f64) {
    let measured = match normalize {
        Normalize::None => None,
        _ if !totals.is_positive() => None,
        _ => normalized(all, sum, totals, normalize, is_paired),
    };
    if let Some((results, factor)) = measured {
        return (results, factor / frequency);
    }
    let root = frequency.sqrt();
    let equal = all.iter().map(|one| one.times(root, root.recip()));
    (results(&equal.collect::<Vec<_>>(), is_paired), 1.0)
}

/// Nothing if there are too few functions to tell what all have grown by from what one has.
fn normalized(
    all: &[Samples],
    sum: Option<usize>,
    totals: &Samples,
    normalize: Normalize,
    is_paired: bool,
) -> Option<(Vec<Tested>, f64)> {
    let (base, new) = totals.means();
    let middle = totals.middle();
    let shares: Vec<Samples> = all
        .iter()
        .map(|one| one.over(totals).times(middle, middle))
        .collect();
    if normalize == Normalize::Total {
        return Some((results(&shares, is_paired), new / base));
    }
    // One that grew makes the share of all others smaller: a first look, by what most functions have grown by.
    let factor = median_factor(shares.iter().enumerate().filter(|(at, _)| Some(*at) != sum))?;
    let root = factor.sqrt();
    let mut scaled: Vec<Samples> = shares
        .iter()
        .map(|one| one.times(root, root.recip()))
        .collect();
    let mut found = (results(&scaled, is_paired), factor * new / base);
    for _ in 0..ROUNDS {
        let Some(lengths) = lengths(all, sum, &scaled, &found.0) else {
            break;
        };
        scaled = all.iter().map(|one| one.over(&lengths)).collect();
        let better = results(&scaled, is_paired);
        let mut pairs = better.iter().zip(&found.0);
        let is_settled = pairs.all(|(a, b)| a.is_flagged() == b.is_flagged());
        let (base, new) = lengths.means();
        found = (better, new / base);
        if is_settled {
            break;
        }
    }
    Some(found)
}

/// How long each run was by the functions that are not flagged, each as much as it is steady, if these are enough to tell.
fn lengths(
    all: &[Samples],
    sum: Option<usize>,
    scaled: &[Samples],
    results: &[Tested],
) -> Option<Samples> {
    let weight = |(at, (one, result)): (usize, (&Samples, &Tested))| {
        let middle = one.middle();
        let is_out = result.is_flagged() || Some(at) == sum;
        if is_out {
            0.0
        } else {
            middle * middle / variance(one)
        }
    };
    let each = scaled.iter().zip(results).enumerate();
    let weights: Vec<f64> = each.map(weight).collect();
    let kept = || scaled.iter().zip(&weights).filter(|(_, w)| **w > 0.0);
    let of_kept: f64 = kept().map(|(one, _)| one.middle()).sum();
    let parts = scaled.iter().enumerate().filter(|(at, _)| Some(*at) != sum);
    let of_all: f64 = parts.map(|(_, one)| one.middle()).sum();
    if kept().count() < 2 || of_kept < 0.3 * of_all {
        return None;
    }
    let total: f64 = weights.iter().sum();
    let zeros = |runs: &[f64]| vec![0.0; runs.len()];
    let mut lengths = Samples {
        base: zeros(&all.first()?.base),
        new: zeros(&all.first()?.new),
    };
    for ((raw, one), weight) in all.iter().zip(scaled).zip(&weights) {
        let part = weight / total / one.middle();
        let add = |lengths: &mut [f64], samples: &[f64]| {
            let pairs = lengths.iter_mut().zip(samples);
            pairs.for_each(|(length, x)| *length += part * x);
        };
        add(&mut lengths.base, &raw.base);
        add(&mut lengths.new, &raw.new);
    }
    lengths.is_positive().then_some(lengths)
}

fn results(all: &[Samples], is_paired: bool) -> Vec<Tested> {
    let mut results: Vec<Tested> = all.iter().map(|one| compare(one, is_paired)).collect();
    let p: Vec<f64> = results.iter().map(|result| result.p).collect();
    for (result, q) in results.iter_mut().zip(benjamini_hochberg(&p)) {
        result.q = q;
    }
    results
}

/// The moderated test of one function; of single runs the prior alone.
fn compare(samples: &Samples, is_paired: bool) -> Tested {
    let (m_base, m_new) = samples.means();
    let (n, m) = (samples.base.len() as f64, samples.new.len() as f64);
    let difference = m_new - m_base;
    let (error, degrees) = if n < 2.0 || m < 2.0 {
        let b = samples.middle();
        let variance = b * (1.0 + SINGLE_NOISE * SINGLE_NOISE * b);
        ((variance * (1.0 / n + 1.0 / m)).sqrt(), None)
    } else {
        let (error, degrees) = moderated(prior(samples), &samples.base, &samples.new, is_paired);
        (error, Some(degrees))
    };
    let (p, wide) = match degrees {
        Some(degrees) => (t_two_sided(difference / error, degrees), t_95(degrees)),
        None => (normal_two_sided(difference / error), 1.959_964),
    };
    let at = |difference: f64| 1.0 + difference / m_base;
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

/// The variance that is expected of a function of this weight.
fn prior(samples: &Samples) -> f64 {
    let b = samples.middle();
    b + (PRIOR_NOISE * b).powi(2)
}

/// What runs of one group scatter by, leaning on the prior.
fn variance(samples: &Samples) -> f64 {
    let runs = samples.base.len() + samples.new.len();
    let degrees = PRIOR_DEGREES + runs as f64 - 2.0;
    (PRIOR_DEGREES * prior(samples) + squares(&samples.base) + squares(&samples.new)) / degrees
}

/// The weighted median of what functions have grown by, if there are three to tell.
fn median_factor<'s>(all: impl Iterator<Item = (usize, &'s Samples)>) -> Option<f64> {
    let means = all.map(|(_, one)| one.means());
    let mut ratios: Vec<(f64, f64)> = means
        .filter(|(a, b)| *a >= 5.0 && *b >= 5.0)
        .map(|(a, b)| (b / a, (a * b).powf(0.25)))
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

/// Standard error of the difference of means, and its degrees of freedom: `prior`, a variance, counts as much as
/// [`PRIOR_DEGREES`] further values.
pub(super) fn moderated(prior: f64, base: &[f64], new: &[f64], is_paired: bool) -> (f64, f64) {
    let (n, m) = (base.len() as f64, new.len() as f64);
    if is_paired {
        let differences: Vec<f64> = base.iter().zip(new).map(|(a, b)| b - a).collect();
        let degrees = PRIOR_DEGREES + n - 1.0;
        let variance = (2.0 * PRIOR_DEGREES * prior + squares(&differences)) / degrees;
        ((variance / n).sqrt(), degrees)
    } else {
        let degrees = PRIOR_DEGREES + n + m - 2.0;
        let variance = (PRIOR_DEGREES * prior + squares(base) + squares(new)) / degrees;
        ((variance * (1.0 / n + 1.0 / m)).sqrt(), degrees)
    }
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

    /// One function waits for memory that others use: it takes 30 to 50 % of the time of equal runs, and so the others' shares
    /// scatter against it. No split of such runs is a change.
    #[test]
    fn what_one_function_takes_of_a_run_is_no_change_of_the_others() {
        let memory = [
            380.0, 520.0, 400.0, 470.0, 610.0, 390.0, 560.0, 430.0, 590.0, 410.0,
        ];
        let steady = |weight: f64, noise: [f64; 5]| Samples {
            base: noise.iter().map(|n| weight + n).collect(),
            new: noise.iter().rev().map(|n| weight + 0.5 + n).collect(),
        };
        let all = [
            steady(420.0, [3.0, -2.0, 5.0, 0.0, -4.0]),
            steady(90.0, [-1.0, 2.0, 0.0, 3.0, -2.0]),
            steady(60.0, [1.0, 0.0, -2.0, 2.0, 1.0]),
            Samples {
                base: memory[..5].to_vec(),
                new: memory[5..].to_vec(),
            },
        ];
        let totals = |all: &[Samples]| Samples {
            base: (0..5)
                .map(|run| all.iter().map(|one| one.base[run]).sum())
                .collect(),
            new: (0..5)
                .map(|run| all.iter().map(|one| one.new[run]).sum())
                .collect(),
        };
        let (results, factor) = test(&all, None, &totals(&all), 1.0, Normalize::Median, false);
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
        let of = |base: &[f64], new: &[f64]| Samples {
            base: base.to_vec(),
            new: new.to_vec(),
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
            let found = compare(&samples, false);
            near(found.p, p);
            if let Some(ratio) = found.ratio {
                near(ratio.low, low);
                near(ratio.high, high);
            } else {
                assert!(low.is_nan(), "{p}");
            }
            if let Some(p) = of_pairs {
                near(compare(&samples, true).p, p);
            }
        }
    }

    /// Of two functions nobody can tell whether one grew or the other shrank and all grew: they are compared as they are.
    #[test]
    fn two_functions_do_not_tell_what_all_have_grown_by() {
        let of = |base: f64, new: f64| Samples {
            base: [0.0, 4.0, -3.0].iter().map(|n| base + n).collect(),
            new: [2.0, -2.0, 1.0].iter().map(|n| new + n).collect(),
        };
        let all = [of(300.0, 300.0), of(50.0, 150.0)];
        let totals = of(350.0, 450.0);
        let (results, factor) = test(&all, None, &totals, 1.0, Normalize::Median, false);
        let flagged: Vec<bool> = results.iter().map(Tested::is_flagged).collect();
        assert_eq!((flagged, factor), (vec![false, true], 1.0));
        assert!((results[0].ratio.expect("a ratio").value - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_others_did_not_shrink_when_one_grew() {
        let of = |weight: f64, times: f64| Samples {
            base: [0.0, 9.0, -7.0, 4.0].iter().map(|n| weight + n).collect(),
            new: [5.0, -6.0, 8.0, 0.0]
                .iter()
                .map(|n| times * weight + n)
                .collect(),
        };
        let all = [
            of(600.0, 2.0),
            of(300.0, 1.0),
            of(400.0, 1.0),
            of(350.0, 1.0),
        ];
        let totals = Samples {
            base: vec![1650.0; 4],
            new: vec![2250.0; 4],
        };
        let (results, factor) = test(&all, None, &totals, 1.0, Normalize::Median, false);
        let flagged: Vec<bool> = results.iter().map(Tested::is_flagged).collect();
        assert_eq!(flagged, [true, false, false, false]);
        assert!((factor - 1.0).abs() < 0.02, "{factor}");
        let (of_totals, factor) = test(&all, None, &totals, 1.0, Normalize::Total, false);
        assert!(of_totals.iter().all(Tested::is_flagged));
        assert!((factor - 2250.0 / 1650.0).abs() < 1e-9, "{factor}");
    }
}
