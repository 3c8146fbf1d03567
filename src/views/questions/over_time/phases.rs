//! Phases: parts of the time in which the threads with own code do different things.
//!
//! Columns are functions, rows are bins of equally many samples, and a cut is where the means on both sides differ by more than the noise
//! of the bins explains. Bins count samples and not time: a stretch in which the program got no processor is no phase. The noise is
//! that of blocks of bins of all sizes, so that a loop with a rhythm does not look like phases.

use rustc_hash::{FxHashMap, FxHashSet};

use super::timeline::{ByFunction, Moment, PathCounts, PathId, Timeline};
use crate::functions::FunctionId;
use crate::functions::tally::Count;
use crate::ids::{IndexVec, index_vec};
use crate::questions::stats::normal_two_sided;

/// A part of the time.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Times of its first and its last sample.
    pub from: u64,
    /// See there.
    pub to: u64,
    /// All samples between these.
    pub count: Count,
    /// What it does more than the others: functions with their shares here and elsewhere.
    pub functions: Vec<(FunctionId, [f64; 2])>,
}

/// How often the noise a change has to be.
const TIMES_NOISE: f64 = 5.0;
/// A smaller change of a share is none.
const EFFECT: f64 = 0.05;
/// Bins at most.
const BINS: usize = 256;
/// Samples of a bin.
const PER_BIN: usize = 20;
/// Functions that are looked at: a bit for each in a word.
const FUNCTIONS: usize = 64;
/// Shares within which a function may tell phases apart.
const LOW: f64 = 0.02;
/// Bins of a phase.
const LEAST: usize = 6;
/// Phases at most.
const MOST: usize = 8;
/// How often cuts are found again between their neighbours.
const ROUNDS: usize = 3;
/// Standard errors by which an estimate of the noise is taken for smaller.
const SURE: f64 = 1.0;
/// What is left out of the largest differences of neighbours.
const TRIM: f64 = 0.1;

pub(super) fn find(timeline: &Timeline<'_>) -> Vec<Phase> {
    let moments = timeline.looked_at();
    let mut paths = PathCounts::new(timeline);
    let cuts = cuts(timeline, &moments, &mut paths);
    if cuts.is_empty() {
        return Vec::new();
    }
    let edges: Vec<usize> = [0].into_iter().chain(cuts).chain([moments.len()]).collect();
    let pieces: Vec<&[Moment]> = edges.windows(2).map(|of| &moments[of[0]..of[1]]).collect();
    let mut sums: ByFunction<usize> = ByFunction::new(timeline.functions);
    // In how many samples functions are.
    let mut inclusive = |stretch: &[Moment]| {
        sums.count(timeline, paths.of(stretch));
        sums.take()
    };
    let counts: Vec<_> = pieces.iter().map(|piece| inclusive(piece)).collect();
    let all: FxHashMap<FunctionId, usize> = inclusive(&moments).into_iter().collect();
    let phase = |(piece, in_piece): (&&[Moment], &Vec<(FunctionId, usize)>)| {
        let (here, rest) = (
            piece.len() as f64,
            (moments.len() - piece.len()).max(1) as f64,
        );
        let mut functions: Vec<(FunctionId, [f64; 2])> = in_piece
            .iter()
            .map(|(function, count)| {
                let elsewhere = all[function] - *count;
                (*function, [*count as f64 / here, elsewhere as f64 / rest])
            })
            .filter(|(_, [here, rest])| here - rest >= EFFECT)
            .collect();
        // Of functions with nearly the same difference an own one, then the one with most.
        functions.sort_by(|(a, of_a), (b, of_b)| {
            let class = |of: &[f64; 2]| (20.0 * (of[0] - of[1])).round();
            let own = |of: FunctionId| timeline.functions.is_own(of);
            let by_class = class(of_b).total_cmp(&class(of_a));
            let by_own = own(*b).cmp(&own(*a));
            by_class
                .then(by_own)
                .then(of_b[0].total_cmp(&of_a[0]))
                .then(a.cmp(b))
        });
        functions.truncate(2);
        let (from, to) = (piece[0].time, piece[piece.len() - 1].time);
        let mut count = Count::default();
        let start = timeline
            .moments
            .partition_point(|moment| moment.time < from);
        let inside = timeline.moments[start..]
            .iter()
            .take_while(|moment| moment.time <= to);
        inside.for_each(|moment| {
            count.add(Count {
                period: moment.period,
                samples: 1,
            });
        });
        Phase {
            from,
            to,
            count,
            functions,
        }
    };
    pieces.iter().zip(&counts).map(phase).collect()
}

/// Where phases begin, as places among samples.
fn cuts(timeline: &Timeline<'_>, moments: &[Moment], paths: &mut PathCounts) -> Vec<usize> {
    let columns = Columns::of(timeline, moments, paths);
    let bins = Bins::of(moments, &columns, paths);
    if bins.columns == 0 || bins.len() < 2 * LEAST {
        return Vec::new();
    }
    let mut cuts = bins.segment();
    while cuts.len() >= MOST {
        let weakest = bins.weakest(&cuts);
        cuts.remove(weakest);
    }
    cuts.into_iter().map(|cut| bins.edges[cut]).collect()
}

/// The functions, anywhere in the stack or as the innermost, that come nearest to half of the samples; of equal columns one.
struct Columns {
    number: usize,
    /// By path: a bit for each column that its samples count in.
    of_path: IndexVec<PathId, u64>,
}

impl Columns {
    fn of(timeline: &Timeline<'_>, moments: &[Moment], path_counts: &mut PathCounts) -> Self {
        let mut all_paths: Vec<(PathId, u32)> = path_counts.of(moments).collect();
        all_paths.sort_unstable();
        // Anywhere, and as the innermost.
        let mut counts = [
            ByFunction::new(timeline.functions),
            ByFunction::new(timeline.functions),
        ];
        counts[0].count(timeline, all_paths.iter().copied());
        for (path, count) in &all_paths {
            let leaf = timeline.paths[*path].leaf;
            *counts[1].get_or_add(leaf, || 0) += *count as usize;
        }
        let n = moments.len();
        let within = |count: usize| (LOW..=1.0 - LOW).contains(&(count as f64 / n.max(1) as f64));
        let counts = counts.map(|mut of| of.take());
        let counts = counts.into_iter().zip([false, true]);
        let keyed = counts.flat_map(|(of, is_leaf)| {
            of.into_iter()
                .map(move |(of, count)| (count, (is_leaf, of)))
        });
        let mut wanted: Vec<_> = keyed.filter(|(count, _)| within(*count)).collect();
        wanted.sort_unstable_by_key(|(count, key)| (std::cmp::Reverse(count * (n - count)), *key));
        let mut paths_of: [ByFunction<Vec<PathId>>; 2] = [
            ByFunction::new(timeline.functions),
            ByFunction::new(timeline.functions),
        ];
        for (_, (is_leaf, function)) in &wanted {
            paths_of[usize::from(*is_leaf)].get_or_add(*function, Vec::new);
        }
        for (path, _) in all_paths {
            for function in timeline.functions_of(path) {
                if let Some(paths) = paths_of[0].get(*function) {
                    paths.push(path);
                }
            }
            if let Some(paths) = paths_of[1].get(timeline.paths[path].leaf) {
                paths.push(path);
            }
        }
        let mut columns = Self {
            number: 0,
            of_path: index_vec![0; timeline.paths.len()],
        };
        let mut seen: FxHashSet<Vec<PathId>> = FxHashSet::default();
        for (_, (is_leaf, function)) in wanted {
            let paths = paths_of[usize::from(is_leaf)].get(function);
            let paths = paths.map(std::mem::take).unwrap_or_default();
            if columns.number == FUNCTIONS || seen.contains(&paths) {
                continue;
            }
            for path in &paths {
                columns.of_path[*path] |= 1 << columns.number;
            }
            columns.number += 1;
            seen.insert(paths);
        }
        columns
    }
}

/// Shares of functions in bins of equally many samples.
struct Bins {
    /// By bin, then by column.
    shares: Vec<f64>,
    columns: usize,
    /// Places of samples between which bins lie.
    edges: Vec<usize>,
    /// Samples of a bin.
    samples: f64,
}

/// Where a piece is cut, and by how much more than the noise.
#[derive(Clone, Copy)]
struct Cut {
    times: f64,
    at: usize,
}

impl Bins {
    fn of(moments: &[Moment], columns: &Columns, paths: &mut PathCounts) -> Self {
        let bins = (moments.len() / PER_BIN).clamp(1, BINS);
        let edges: Vec<usize> = (0..=bins).map(|at| at * moments.len() / bins).collect();
        let mut shares = vec![0.0; bins * columns.number];
        for (bin, edge) in edges.windows(2).enumerate() {
            let row = &mut shares[bin * columns.number..][..columns.number];
            for (path, count) in paths.of(&moments[edge[0]..edge[1]]) {
                let mut rest = columns.of_path[path];
                while rest > 0 {
                    row[rest.trailing_zeros() as usize] += f64::from(count);
                    rest &= rest - 1;
                }
            }
            let samples = (edge[1] - edge[0]).max(1) as f64;
            row.iter_mut().for_each(|sum| *sum /= samples);
        }
        Self {
            shares,
            columns: columns.number,
            samples: moments.len() as f64 / bins as f64,
            edges,
        }
    }

    fn len(&self) -> usize {
        self.edges.len() - 1
    }

    fn column(&self, column: usize, from: usize, to: usize) -> Vec<f64> {
        (from..to)
            .map(|bin| self.shares[bin * self.columns + column])
            .collect()
    }

    /// The best cut of a piece, if there is a change.
    fn best(&self, from: usize, to: usize) -> Option<Cut> {
        // A bin that holds a cut is a mixture: the first and the last of a piece tell nothing.
        let (from, to) = (
            from + usize::from(from > 0),
            to.saturating_sub(usize::from(to < self.len())),
        );
        let n = to.saturating_sub(from);
        if n < 2 * LEAST {
            return None;
        }
        // Few blocks: the estimate of the noise is itself noisy.
        let needed = TIMES_NOISE * (1.0 + 6.0 / n as f64);
        let corrections: Vec<f64> = sizes(n).map(|size| untrimmed(n / size - 1)).collect();
        let mut best: Option<Cut> = None;
        for column in 0..self.columns {
            let values = self.column(column, from, to);
            let noise = noise(&values, self.samples, &corrections);
            let sum: f64 = values.iter().sum();
            let mut left = 0.0;
            for (k, value) in (1..n).zip(&values) {
                left += value;
                if k < LEAST || n - k < LEAST {
                    continue;
                }
                let (k, rest) = (k as f64, (n - k) as f64);
                let change = ((sum - left) / rest - left / k).abs();
                let times = change / (noise * (1.0 / k + 1.0 / rest)).sqrt();
                let is_better = best.is_none_or(|best| times > best.times);
                if change >= EFFECT && times > needed && is_better {
                    let at = from + k as usize;
                    best = Some(Cut { times, at });
                }
            }
        }
        best
    }

    fn segment(&self) -> Vec<usize> {
        let mut cuts = Vec::new();
        let mut todo = vec![(0, self.len())];
        while let Some((from, to)) = todo.pop() {
            if let Some(cut) = self.best(from, to) {
                cuts.push(cut.at);
                todo.extend([(from, cut.at), (cut.at, to)]);
            }
        }
        cuts.sort_unstable();
        // Each once more between its neighbours: at its best place, or gone if it is no longer proved.
        for _ in 0..ROUNDS {
            let mut kept: Vec<usize> = Vec::new();
            for place in 0..cuts.len() {
                let from = kept.last().copied().unwrap_or(0);
                let to = cuts.get(place + 1).copied().unwrap_or(self.len());
                kept.extend(self.best(from, to).map(|cut| cut.at));
            }
            let is_settled = kept == cuts;
            cuts = kept;
            if is_settled {
                break;
            }
        }
        cuts
    }

    /// The cut with the smallest change, weighed by how long the shorter piece is.
    fn weakest(&self, cuts: &[usize]) -> usize {
        let edges: Vec<usize> = [0]
            .iter()
            .chain(cuts)
            .copied()
            .chain([self.len()])
            .collect();
        let mean = |column: usize, from: usize, to: usize| {
            self.column(column, from, to).iter().sum::<f64>() / (to - from) as f64
        };
        let strength = |at: usize| {
            let (a, b, c) = (edges[at], edges[at + 1], edges[at + 2]);
            let changes = (0..self.columns).map(|of| (mean(of, a, b) - mean(of, b, c)).abs());
            let change = changes.fold(0.0, f64::max);
            change * (1.0 / (1.0 / (b - a) as f64 + 1.0 / (c - b) as f64)).sqrt()
        };
        let all = (0..cuts.len()).min_by(|a, b| strength(*a).total_cmp(&strength(*b)));
        all.unwrap_or(0)
    }
}

/// The variance of a bin: the largest, over sizes of blocks, of what neighbours differ by, without the largest of these; never less
/// than samples that do not depend on each other have.
fn noise(values: &[f64], samples: f64, corrections: &[f64]) -> f64 {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let mut noise = (mean * (1.0 - mean) / samples).max(1e-9);
    for (size, correction) in sizes(n).zip(corrections) {
        let blocks: Vec<f64> = values
            .chunks_exact(size)
            .map(|block| block.iter().sum::<f64>() / size as f64)
            .collect();
        let pairs = blocks.windows(2);
        let mut squares: Vec<f64> = pairs.map(|pair| (pair[1] - pair[0]).powi(2)).collect();
        squares.sort_by(f64::total_cmp);
        let kept = kept(squares.len());
        let kept_mean = squares[..kept].iter().sum::<f64>() / kept as f64;
        // The largest of several estimates is too large by chance: each counts as far as it is sure.
        let spread = (3.0 / squares.len() as f64).sqrt();
        let sure = (1.0 - SURE * spread).max(0.0);
        noise = noise.max(size as f64 * kept_mean / 2.0 * correction * sure);
    }
    noise
}

/// Sizes of blocks of so many bins, of which there are enough.
fn sizes(bins: usize) -> impl Iterator<Item = usize> {
    let doubled = std::iter::successors(Some(1), |size: &usize| Some(size * 2));
    doubled.take_while(move |size| bins / size >= 12)
}

/// How many of so many differences are not left out.
fn kept(all: usize) -> usize {
    (all as f64 * (1.0 - TRIM)).ceil() as usize
}

/// By what the mean of those of so many squares of normal numbers that are kept is multiplied to be that of all.
fn untrimmed(all: usize) -> f64 {
    let share = kept(all) as f64 / all as f64;
    let (mut low, mut high) = (0.0_f64, 5.0_f64);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if 1.0 - normal_two_sided(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    let density = 2.0 * low * (-low * low / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    share / (share - density)
}
