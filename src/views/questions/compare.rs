//! What changed between two groups of recordings, and whether it is noise.
//!
//! In: [`Run`]s of both sides. Out: a [`Comparison`]: functions that are the same one in a row each, what `significance`
//! says of them, total CPU apart. One recording each tells differences, never changes.

use std::collections::{BTreeMap, BTreeSet};

use super::aliases::{Folded, by_name};
use super::facts::Made;
use super::runs::{By, Part, Run, Weight, are_times, by_one_name, same_program};
pub use super::significance::{Interval, Normalize, expected_difference};
use super::significance::{
    LARGE, LEAST_GROWTH, LEAST_PART, Outcome, Scatter, TOTAL_NOISE, Tested, Weights, Yardstick,
    mean, of_totals, test,
};
use super::stats::benjamini_hochberg;
use crate::functions::matching::{
    Listed, Pair, SameCode, by_base_names, is_index, is_numbered, pairs, pairs_of_times, stem,
};
pub use crate::functions::programs::SameProgram;
use crate::functions::{Called, Identity, called};
use crate::runtimes::tails::same_files;

/// As [`TOTAL_NOISE`], of what a slower machine does not make more: bytes, or how often something happened.
const COUNT_NOISE: f64 = 0.03;

/// How to compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct Method {
    /// By what.
    pub by: By,
    /// What is taken out of all; without one, a machine's speed out of time, and nothing out of amounts, which no machine changes.
    pub normalize: Option<Normalize>,
    /// Runs as pairs; `None` decides by their times.
    pub paired: Option<bool>,
    /// Times of one recording are compared, of which one is longer: usually their shares.
    pub are_times: bool,
}

/// What can be said of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It takes more.
    Slower,
    /// It takes less.
    Faster,
    /// It takes time only in the new side.
    New,
    /// It takes time only in the base.
    Gone,
    /// With three runs each it would count as a change.
    Unsure,
    /// One run each differ more than is usual.
    Large,
}

impl Verdict {
    /// As it is printed of time and of samples, or of amounts: bytes are not slower.
    #[must_use]
    pub const fn word(self, is_amount: bool) -> &'static str {
        match self {
            Self::Slower if is_amount => "more",
            Self::Faster if is_amount => "less",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unsure => "unsure",
            Self::Large => "large",
        }
    }

    /// Whether it says that something changed.
    #[must_use]
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::Unsure | Self::Large)
    }
}

/// A function of both sides.
#[derive(Debug, Clone)]
pub struct Row {
    /// In the new side, or else in the base.
    pub identity: Identity,
    /// What it is called beside the others.
    pub called: Called,
    /// Weight in each run of the base.
    pub base: Vec<u64>,
    /// Weight in each new run.
    pub new: Vec<u64>,
    /// Mean weights.
    pub means: (f64, f64),
    /// New to base after the common factor; nothing where the base has none.
    pub ratio: Option<Interval>,
    /// Probability of such a difference by chance, if it was tested.
    pub p: Option<f64>,
    /// The smallest false discovery rate at which it counts.
    pub q: Option<f64>,
    /// What can be said.
    pub verdict: Option<Verdict>,
    /// On which sides it has samples.
    pub sides: (bool, bool),
    /// Whether both sides have the function, with samples or without.
    pub is_matched: bool,
    /// Whether it may be another row, as more functions of its name were met than its object has.
    pub is_unclear: bool,
    /// Whether it is several functions, which nothing tells apart: one may grow as another one shrinks.
    pub is_several: bool,
    /// Another function whose code is the same on some side: its time may be that one's. Of packages, others that may have to pay.
    pub folded: Option<String>,
    /// Whether it may be two functions, as the numbers in its names are others on each side.
    pub is_unsure: bool,
    /// Whether the identity is that of the base, as the new side has no samples of the function.
    pub is_of_base: bool,
    /// A function that may be the same one by another name.
    pub renamed: Option<Called>,
    /// Whether the function is own in some run.
    pub is_own: bool,
    /// Samples of equal weight that it is worth per run, of the side with more; without end where chance has no part.
    pub samples: f64,
    /// What one of its samples weighs.
    grain: f64,
    /// New to base as it is, without a common factor.
    pub in_seconds: Option<Interval>,
    /// Its q value.
    pub seconds_q: f64,
}

impl Row {
    /// Difference of the means.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.means.1 - self.means.0
    }

    /// Whether it is several functions, or may be, or has no partner though it may be one of its name on the other side, or a number in its name
    /// may have shifted.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let is_alone = !self.is_matched;
        self.is_several
            || self.is_unsure
            || is_alone && (self.is_unclear || is_numbered(&self.identity))
    }
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Functions, changed ones first, then by difference.
    pub rows: Vec<Row>,
    /// Functions that are too small to be tested.
    pub small: usize,
    /// Their mean weights per run, together.
    pub small_means: (f64, f64),
    /// Own functions among them that only the new side has.
    pub small_new: Vec<Row>,
    /// Functions tested.
    pub tested: usize,
    /// Mean total weights per run.
    pub totals: (f64, f64),
    /// Their ratio.
    pub total_ratio: Interval,
    /// Probability that totals grow so much by chance, one-sided.
    pub total_p: f64,
    /// Common factor.
    pub factor: f64,
    /// The common factors that the machine explains, as far as runs of one side scatter.
    pub explained: (f64, f64),
    /// Whether too few functions kept their seconds to be what runs are measured by.
    pub is_guess: bool,
    /// Share of the compared weight in functions that the other side has, too, of base and of new.
    pub matched: (f64, f64),
    /// Whether runs were compared as pairs.
    pub is_paired: bool,
    /// Runs of base and of new.
    pub runs: (usize, usize),
    /// The program, if it has another name on each side.
    pub program: Option<SameProgram>,
    /// Whether shares of two times are compared.
    pub are_times: bool,
    /// By what runs were measured, for what is tested besides.
    measure: Measure,
}

/// By what runs were measured.
#[derive(Debug, Clone)]
struct Measure {
    yardstick: Yardstick,
    scatter: Scatter,
    order: Order,
    made: Made,
}

/// Which runs are tested first: those of a pair stand at the same place in both groups.
#[derive(Debug, Clone)]
struct Order {
    base: Vec<usize>,
    new: Vec<usize>,
}

impl Order {
    fn of(base: &[&Run], new: &[&Run], is_paired: bool) -> Self {
        let order = |runs: &[&Run]| {
            let mut order: Vec<usize> = (0..runs.len()).collect();
            if is_paired {
                order.sort_by_key(|at| runs[*at].facts.start_ns);
            }
            order
        };
        Self {
            base: order(base),
            new: order(new),
        }
    }

    fn weights(&self, base: &[u64], new: &[u64], grain: f64) -> Weights {
        let of = |order: &[usize], weights: &[u64]| -> Vec<f64> {
            order.iter().map(|at| weights[*at] as f64).collect()
        };
        Weights {
            base: of(&self.base, base),
            new: of(&self.new, new),
            grain,
        }
    }
}

/// What a sample of a function weighs, by the weights of both sides and the mean squares of their samples.
fn grain(made: Made, base: (&[u64], f64), new: (&[u64], f64)) -> f64 {
    let weight = mean_of(base.0) + mean_of(new.0);
    match made {
        Made::Whole => 0.0,
        _ if weight > 0.0 => (base.1 + new.1) / weight,
        _ => 1.0,
    }
}

fn made(runs: &[&Run]) -> Made {
    runs.first().map_or(Made::Sampled, |run| run.facts.made)
}

/// What is said of a few functions together.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    /// Mean weights of base and of new.
    pub means: (f64, f64),
    /// New to base after the common factor, nothing where the base has none; and the probability of it by chance.
    pub after: (Option<Interval>, f64),
    /// The same as it is.
    pub in_seconds: (Option<Interval>, f64),
}

impl Comparison {
    /// Whether the machine may explain the common factor.
    #[must_use]
    pub fn is_explained(&self) -> bool {
        (self.explained.0..=self.explained.1).contains(&self.factor)
    }

    /// The test of some weight of each run that is asked for by name, beside all functions: its own p counts.
    #[must_use]
    pub fn of_named(&self, base: &[Run], new: &[Run], weight: impl Fn(&Run) -> Weight) -> Together {
        let Measure {
            yardstick,
            scatter,
            order,
            made,
        } = &self.measure;
        let of = |runs: &[Run]| -> Vec<Weight> { runs.iter().map(&weight).collect() };
        let (base, new) = (of(base), of(new));
        let periods = |side: &[Weight]| side.iter().map(|w| w.count.period).collect::<Vec<_>>();
        let squares = |side: &[Weight]| mean(&side.iter().map(|w| w.squares).collect::<Vec<_>>());
        let grain = grain(
            *made,
            (&periods(&base), squares(&base)),
            (&periods(&new), squares(&new)),
        );
        let one = order.weights(&periods(&base), &periods(&new), grain);
        let (after, in_seconds) = (yardstick.test(&one), yardstick.in_seconds(&one, *scatter));
        Together {
            means: (mean(&one.base), mean(&one.new)),
            after: (after.ratio, after.p),
            in_seconds: (in_seconds.ratio, in_seconds.p),
        }
    }
}

/// Whether runs of both sides were recorded by turns.
#[must_use]
pub fn alternate(base: &[Run], new: &[Run]) -> bool {
    let start = |run: &Run, side: bool| run.facts.start_ns.map(|ns| (ns, side));
    let starts = base
        .iter()
        .map(|run| start(run, false))
        .chain(new.iter().map(|run| start(run, true)));
    let Some(mut starts) = starts.collect::<Option<Vec<_>>>() else {
        return false;
    };
    starts.sort_unstable();
    base.len() == new.len()
        && base.len() > 1
        && starts.windows(2).all(|pair| pair[0].1 != pair[1].1)
}

/// Compares two groups of runs, neither of them empty.
#[must_use]
pub fn compare(base: &[Run], new: &[Run], method: Method) -> Comparison {
    let is_paired =
        method.paired.unwrap_or_else(|| alternate(base, new)) && base.len() == new.len();
    let program = same_program(base, new);
    let (base, _) = by_one_name(base, new, program.as_ref());
    let (base, new): (Vec<&Run>, Vec<&Run>) = (base.iter().collect(), new.iter().collect());
    let (made, order) = (made(&new), Order::of(&base, &new, is_paired));
    let (mut rows, matched) = join(&base, &new, method.by, made);
    let totals = (mean(&total_weights(&base)), mean(&total_weights(&new)));
    let periods = |runs: &[&Run]| -> Vec<u64> { runs.iter().map(|run| run.total.period).collect() };
    let (of_base, of_new) = (periods(&base), periods(&new));
    let logs =
        |runs: &[u64]| -> Vec<f64> { runs.iter().map(|x| (*x.max(&1) as f64).ln()).collect() };
    let all = order.weights(&of_base, &of_new, 0.0);
    let is_speed = made == Made::Sampled || new.iter().any(|run| run.facts.is_time());
    let noise = if is_speed { TOTAL_NOISE } else { COUNT_NOISE };
    let (total_ratio, total_p, scatter) = of_totals(
        &Weights {
            base: order.base.iter().map(|at| logs(&of_base)[*at]).collect(),
            new: order.new.iter().map(|at| logs(&of_new)[*at]).collect(),
            grain: 0.0,
        },
        noise,
        is_paired,
    );
    let tested: Vec<usize> = (0..rows.len())
        .filter(|at| is_large_enough(&rows[*at], totals, made))
        .collect();
    doubt_numbers(&mut rows, &tested, totals);
    let each: Vec<Weights> = tested
        .iter()
        .map(|at| order.weights(&rows[*at].base, &rows[*at].new, rows[*at].grain))
        .collect();
    let usual = match (is_speed, method.are_times) {
        (true, true) => Normalize::Total,
        (true, false) => Normalize::Median,
        (false, _) => Normalize::None,
    };
    let normalize = method.normalize.unwrap_or(usual);
    let outcome = test(&each, &all, scatter, normalize, is_paired);
    let runs = base.len().min(new.len());
    judge(
        &mut rows,
        &tested,
        &each,
        &outcome,
        scatter,
        (runs, f64::midpoint(totals.0, totals.1)),
    );
    let partners = renamed(&rows, &base, &new);
    if let Some(program) = &program {
        rows.iter_mut()
            .for_each(|row| name_as_in_base(row, program));
    }
    let identities: Vec<&Identity> = rows.iter().map(|row| &row.identity).collect();
    let names = called(&identities);
    for (row, other) in rows.iter_mut().zip(partners) {
        row.renamed = other.map(|other| names[other].clone());
    }
    for (row, name) in rows.iter_mut().zip(names) {
        row.called = name;
    }
    let is_tested: BTreeSet<usize> = tested.into_iter().collect();
    let (large, small): (Vec<_>, Vec<_>) = std::mem::take(&mut rows)
        .into_iter()
        .enumerate()
        .partition(|(at, _)| is_tested.contains(at));
    let mut judged: Vec<Row> = large.into_iter().map(|(_, row)| row).collect();
    let small: Vec<Row> = small.into_iter().map(|(_, row)| row).collect();
    judged.sort_by(|a, b| {
        let key = |row: &Row| {
            (
                row.verdict.is_none(),
                row.verdict.is_some_and(|v| !v.is_change()),
            )
        };
        let by_size = b.difference().abs().total_cmp(&a.difference().abs());
        key(a)
            .cmp(&key(b))
            .then(by_size)
            .then_with(|| a.identity.cmp(&b.identity))
    });
    Comparison {
        tested: judged.len(),
        rows: judged,
        small: small.len(),
        small_means: small.iter().fold((0.0, 0.0), |(before, after), row| {
            (before + row.means.0, after + row.means.1)
        }),
        small_new: small
            .into_iter()
            .filter(|row| row.sides == (false, true) && row.is_own)
            .collect(),
        totals,
        total_ratio,
        total_p,
        factor: outcome.factor,
        explained: ((-scatter.wide).exp(), scatter.wide.exp()),
        is_guess: outcome.is_guess,
        are_times: method.are_times && normalize == Normalize::Total,
        matched,
        is_paired,
        runs: (base.len(), new.len()),
        program,
        measure: Measure {
            yardstick: outcome.yardstick,
            scatter,
            order,
            made,
        },
    }
}

/// Functions of WebAssembly without names are those of their numbers, unless the module is another one: then there are large ones
/// without a partner, and no number says anything.
fn doubt_numbers(rows: &mut [Row], tested: &[usize], totals: (f64, f64)) {
    /// Of the weight of a side; and samples, of which the other side would have had some by chance.
    const LARGE: f64 = 0.01;
    const SAMPLES: f64 = 20.0;
    let is_large = |row: &Row| {
        let share = (row.means.0 / totals.0.max(1.0)).max(row.means.1 / totals.1.max(1.0));
        share >= LARGE && row.samples >= SAMPLES
    };
    let lone = tested.iter().map(|at| &rows[*at]);
    let lone = lone.filter(|row| !row.is_matched && is_index(&row.identity) && is_large(row));
    let objects: BTreeSet<String> = lone.map(|row| row.identity.object.clone()).collect();
    for row in rows.iter_mut().filter(|row| is_index(&row.identity)) {
        if objects.contains(&row.identity.object) {
            row.is_unsure |= row.is_matched;
            row.is_unclear |= !row.is_matched;
        }
    }
}

/// What only the base has is called as it is there.
fn name_as_in_base(row: &mut Row, program: &SameProgram) {
    if row.sides == (true, false) {
        row.identity = program.as_base(row.identity.clone());
    }
}

fn total_weights(runs: &[&Run]) -> Vec<f64> {
    runs.iter().map(|run| run.total.period as f64).collect()
}

/// Rows of all functions with weight, and the share of the weight that has a partner.
fn join(base: &[&Run], new: &[&Run], by: By, made: Made) -> (Vec<Row>, (f64, f64)) {
    let (old_side, new_side) = (Side::of(base), Side::of(new));
    let (olds, news) = (&old_side.all, &new_side.all);
    let mut rows = Vec::new();
    let mut matched = [0.0, 0.0];
    let mut sums = [0.0, 0.0];
    let mut pairs = old_side.pairs(&new_side);
    let are_times = old_side.are_times(&new_side);
    if !are_times {
        reunite(&mut pairs, (olds, base), (news, new));
    }
    let folded = Folded::of(base.iter().chain(new).flat_map(|run| &run.others));
    let unclear = Unclear::of(&pairs, [&old_side, &new_side], [base, new]);
    for &Pair {
        base: old,
        new: newer,
        is_doubtful,
    } in &pairs
    {
        let (in_base, in_new) = (old_side.parts(old), new_side.parts(newer));
        let (old, newer) = (old.map(|at| olds[at]), newer.map(|at| news[at]));
        let weights = |parts: &[Part]| -> Vec<u64> {
            parts.iter().map(|part| part.count(by).period).collect()
        };
        let squares = |parts: &[Part]| -> f64 {
            let all: Vec<f64> = parts.iter().map(|part| part.squares(by)).collect();
            mean(&all)
        };
        let worth = |parts: &[Part]| -> f64 {
            let all = parts.iter().map(|part| part.samples(by));
            mean(&all.collect::<Vec<f64>>())
        };
        let is_own = in_base.iter().chain(&in_new).any(|part| part.is_own);
        let samples = match made {
            Made::Whole => f64::INFINITY,
            _ => worth(&in_base).max(worth(&in_new)),
        };
        let squares = (squares(&in_base), squares(&in_new));
        let (in_base, in_new) = (weights(&in_base), weights(&in_new));
        let sides = (is_any(&in_base), is_any(&in_new));
        let Some(identity) = newer.or(old).filter(|_| sides != (false, false)).cloned() else {
            continue;
        };
        let is_unclear = !are_times && unclear.has(&identity, usize::from(newer.is_some()));
        let knows = |runs: &[&Run]| !is_unclear && is_known(runs, &identity) == Some(true);
        let is_in_both = (old.is_some() || knows(base)) && (newer.is_some() || knows(new));
        let is_matched = is_in_both || are_times;
        let means = (mean_of(&in_base), mean_of(&in_new));
        sums[0] += means.0;
        sums[1] += means.1;
        if is_matched {
            matched[0] += means.0;
            matched[1] += means.1;
        }
        rows.push(Row {
            means,
            ratio: None,
            p: None,
            q: None,
            verdict: None,
            sides,
            is_matched,
            is_unclear: is_unclear && !is_matched,
            is_several: is_several(base, old) || is_several(new, newer),
            folded: if by.is_of_functions() {
                let both = [old, newer].into_iter().flatten();
                both.filter_map(|one| folded.other(one))
                    .next()
                    .map(str::to_owned)
            } else {
                let moved = (means.1 - means.0).abs();
                let mut runs = base.iter().chain(new);
                runs.find_map(|run| {
                    let (weight, other) = run.folded.get(&identity.name.name)?;
                    (*weight as f64 >= moved).then(|| other.clone())
                })
            },
            is_unsure: is_doubtful,
            is_of_base: newer.is_none(),
            renamed: None,
            is_own,
            samples,
            grain: grain(made, (&in_base, squares.0), (&in_new, squares.1)),
            in_seconds: None,
            seconds_q: 1.0,
            identity,
            called: Called::default(),
            base: in_base,
            new: in_new,
        });
    }
    let share = |at: usize| {
        if sums[at] > 0.0 {
            matched[at] / sums[at]
        } else {
            1.0
        }
    };
    (rows, (share(0), share(1)))
}

fn is_any(weights: &[u64]) -> bool {
    weights.iter().any(|weight| *weight > 0)
}

/// The functions of all runs of one side: those of one name in one file are one, though the files lie elsewhere.
struct Side<'r> {
    /// Ordered; as the first run has them that has them.
    all: Vec<&'r Identity>,
    /// By function, what it has in each run.
    parts: Vec<Vec<Part>>,
    /// What functions are called in runs that call them otherwise, and which they are.
    others: Vec<(&'r Identity, usize)>,
    /// Functions of the other side that its files have.
    known: Vec<&'r Identity>,
    /// Files that its runs have, with samples or without.
    files: Vec<&'r str>,
    runs: Vec<&'r Run>,
}

impl<'r> Side<'r> {
    fn of(runs: &[&'r Run]) -> Self {
        let functions = runs.iter().flat_map(|run| run.functions.keys());
        let mut all: Vec<&Identity> = functions.collect();
        // Those of each run are in order: this merges them.
        all.sort();
        all.dedup();
        let (first, others) = Self::same(&all, runs);
        let mut places = vec![0; all.len()];
        let mut left = Vec::new();
        for (at, identity) in all.iter().enumerate() {
            if first[at] == at {
                places[at] = left.len();
                left.push(*identity);
            }
        }
        let place = |at: usize| places[first[at]];
        let mut parts = vec![vec![Part::default(); runs.len()]; left.len()];
        for (number, run) in runs.iter().enumerate() {
            // Both are in order.
            let mut at = 0;
            for (identity, part) in &run.functions {
                while all[at] != identity {
                    at += 1;
                }
                parts[place(at)][number] = *part;
            }
        }
        Self {
            others: others.into_iter().map(|at| (all[at], place(at))).collect(),
            all: left,
            parts,
            known: runs
                .iter()
                .flat_map(|run| run.known.iter().flatten())
                .collect(),
            files: runs
                .iter()
                .flat_map(|run| run.files.iter().map(String::as_str))
                .collect(),
            runs: runs.to_vec(),
        }
    }

    /// Whether both are times of the same recordings.
    fn are_times(&self, new: &Self) -> bool {
        are_times(self.runs.iter().copied(), new.runs.iter().copied())
    }

    /// All that its functions are known by.
    fn identities(&self) -> Vec<(&'r Identity, usize)> {
        let all = self.all.iter().copied().zip(0..);
        all.chain(self.others.iter().copied()).collect()
    }

    fn listed(&self) -> Listed<'_, 'r> {
        Listed {
            functions: &self.all,
            known: &self.known,
            files: &self.files,
        }
    }

    /// The pairs of a base and a new side.
    fn pairs(&self, new: &Self) -> Vec<Pair> {
        if self.are_times(new) {
            let counts = [self.all.len(), new.all.len()];
            return pairs_of_times([&self.identities(), &new.identities()], counts);
        }
        pairs(self.listed(), new.listed())
    }

    /// By identity: the first one that is the same function; and those that are not the first.
    fn same(all: &[&'r Identity], runs: &[&'r Run]) -> (Vec<usize>, Vec<usize>) {
        let mut first: Vec<usize> = (0..all.len()).collect();
        let mut others = Vec::new();
        let mut known = SameCode::default();
        let mut is_known = vec![false; all.len()];
        for run in runs {
            let own = run
                .functions
                .keys()
                .filter_map(|identity| all.binary_search(&identity).ok());
            let own: Vec<(usize, &Identity)> = own.map(|at| (at, all[at])).collect();
            if own.iter().all(|(at, _)| is_known[*at]) {
                continue;
            }
            let partners = known.add(&own);
            for ((at, _), same) in own.into_iter().zip(partners) {
                if let Some(same) = same.filter(|_| !is_known[at]) {
                    first[at] = first[same];
                    others.push(at);
                }
                is_known[at] = true;
            }
        }
        (first, others)
    }

    fn parts(&self, at: Option<usize>) -> Vec<Part> {
        let runs = self.parts.first().map_or(0, Vec::len);
        at.map_or_else(|| vec![Part::default(); runs], |at| self.parts[at].clone())
    }
}

/// A function that one side alone has samples of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lone {
    /// As its side knows it.
    pub function: Identity,
    /// The same by its other names.
    pub aliases: Vec<Identity>,
}

impl Lone {
    fn of(function: &Identity, runs: &[&Run], named: impl Fn(Identity) -> Identity) -> Self {
        let others = runs.iter().filter_map(|run| run.others.get(function));
        let names: BTreeSet<&String> = others.flat_map(|of| &of.names).collect();
        let aliases = names.into_iter().map(|name| named(by_name(function, name)));
        Self {
            aliases: aliases.collect(),
            function: named(function.clone()),
        }
    }
}

/// The functions that weigh something in one side and of which the samples of the other know nothing, or nothing but the base name
/// of their file: of the new side, of the base.
/// Their objects are called as on the other side.
#[must_use]
pub fn without_partner(base: &[Run], new: &[Run], by: By) -> (Vec<Lone>, Vec<Lone>) {
    // Both have the same files.
    if are_times(base, new) {
        return (Vec::new(), Vec::new());
    }
    let program = same_program(base, new);
    let (base, _) = by_one_name(base, new, program.as_ref());
    let (base, new): (Vec<&Run>, Vec<&Run>) = (base.iter().collect(), new.iter().collect());
    let (base, new) = (Side::of(&base), Side::of(&new));
    let weighs = |side: &Side<'_>, at: usize| {
        let mut parts = side.parts[at].iter();
        parts.any(|part| part.count(by).period > 0)
    };
    let (mut of_new, mut of_base) = (Vec::new(), Vec::new());
    let by_base = by_base_names(&base.all, &new.all);
    for pair in base.pairs(&new) {
        let is_sure = pair.base.is_some() && pair.new.is_some();
        let old = pair.base.filter(|at| !is_sure || by_base.0.contains(at));
        if let Some(at) = old.filter(|at| weighs(&base, *at)) {
            of_base.push(Lone::of(base.all[at], &base.runs, |one| one));
        }
        let at = pair.new.filter(|at| !is_sure || by_base.1.contains(at));
        if let Some(at) = at.filter(|at| weighs(&new, *at)) {
            of_new.push(Lone::of(new.all[at], &new.runs, |one| match &program {
                Some(program) => program.as_base(one),
                None => one,
            }));
        }
    }
    (of_new, of_base)
}

/// How functions of the base and of the new side are called beside each other, where that is not as they are: as their partners in
/// the first new run that has them, or by a name that no partner has, for a function may have moved to where one without a partner
/// was. The program has its new name already.
#[must_use]
pub fn names_in_new(base: &[Run], new: &[Run]) -> [BTreeMap<Identity, Identity>; 2] {
    let program = same_program(base, new);
    let by_program = |one: &Identity| match &program {
        Some(program) => program.as_new(one.clone()),
        None => one.clone(),
    };
    let olds = base.iter().flat_map(|run| run.functions.keys());
    let olds: BTreeSet<Identity> = olds.map(by_program).collect();
    let (base, aliases) = by_one_name(base, new, program.as_ref());
    let (base, new): (Vec<&Run>, Vec<&Run>) = (base.iter().collect(), new.iter().collect());
    let (base, new) = (Side::of(&base), Side::of(&new));
    let mut names: Vec<Option<Identity>> = vec![None; base.all.len()];
    for pair in base.pairs(&new) {
        let Some(old) = pair.base else {
            continue;
        };
        names[old] = match pair.new {
            Some(newer) => Some(new.all[newer].clone()),
            None if new.all.binary_search(&base.all[old]).is_ok() => {
                let mut apart = base.all[old].clone();
                apart.name.name.push_str(" (before)");
                Some(apart)
            }
            None => None,
        };
    }
    let of_base = base.identities().into_iter();
    let of_base = of_base.filter_map(|(old, at)| {
        let name = names[at].as_ref().unwrap_or(base.all[at]);
        (name != old).then(|| (old.clone(), name.clone()))
    });
    let mut of_base: BTreeMap<Identity, Identity> = of_base.collect();
    for old in olds {
        let by_alias = aliases.as_new(old.clone());
        if by_alias != old {
            let name = of_base.get(&by_alias).cloned().unwrap_or(by_alias);
            of_base.insert(old, name);
        }
    }
    let of_new = new.others.iter();
    let of_new = of_new.map(|(one, at)| ((*one).clone(), new.all[*at].clone()));
    [of_base, of_new.collect()]
}

/// Half a per cent of the total on one side, and ten samples a run where chance chose what was sampled: five waits that were
/// all recorded are as many as there are.
fn is_large_enough(row: &Row, totals: (f64, f64), made: Made) -> bool {
    let is_large = |weight: f64, total: f64| weight > 0.0 && weight >= LARGE * total;
    let has_samples = made != Made::Sampled || row.samples >= 10.0;
    (is_large(row.means.0, totals.0) || is_large(row.means.1, totals.1)) && has_samples
}

/// Says of all tested rows what can be said.
fn judge(
    rows: &mut [Row],
    tested: &[usize],
    each: &[Weights],
    outcome: &Outcome,
    scatter: Scatter,
    (runs, total): (usize, f64),
) {
    let in_seconds: Vec<Tested> = each
        .iter()
        .map(|one| outcome.yardstick.in_seconds(one, scatter))
        .collect();
    let p: Vec<f64> = in_seconds.iter().map(|result| result.p).collect();
    let rates = benjamini_hochberg(&p);
    let of_seconds = in_seconds.iter().zip(rates);
    for ((at, result), (seconds, q)) in tested.iter().zip(&outcome.results).zip(of_seconds) {
        let row = &mut rows[*at];
        row.ratio = result.ratio;
        row.p = Some(result.p);
        row.q = Some(result.q);
        row.verdict = verdict(row, result, runs, total);
        (row.in_seconds, row.seconds_q) = (seconds.ratio, q);
    }
}

fn verdict(row: &Row, result: &Tested, runs: usize, total: f64) -> Option<Verdict> {
    if !result.is_flagged() {
        return None;
    }
    let is_relevant = result
        .ratio
        .is_none_or(|ratio| (ratio.value - 1.0).abs() >= LEAST_GROWTH)
        && result.difference.abs() >= LEAST_PART * total;
    match (runs, row.sides) {
        (1, _) => Some(Verdict::Large),
        _ if !is_relevant => None,
        (2, _) => Some(Verdict::Unsure),
        (_, (false, _)) => Some(Verdict::New),
        (_, (_, false)) => Some(Verdict::Gone),
        _ if result.difference > 0.0 => Some(Verdict::Slower),
        // What takes as long as before, while all else grew, is not faster.
        _ if row.difference() < 0.0 => Some(Verdict::Faster),
        _ => None,
    }
}

/// Whether a caller may have been renamed itself, with the namespace that it is in.
fn may_be_renamed(one: &Identity, other: &Identity) -> bool {
    one.object == other.object && likeness(one, other).is_some()
}

/// How alike the names of two functions are, from the last part on: a namespace that was renamed changes the first parts alone.
fn likeness(one: &Identity, other: &Identity) -> Option<usize> {
    let is_like = last_part(&one.name.name) == last_part(&other.name.name);
    is_like.then(|| usize::from(one.beside.parameters == other.beside.parameters))
}

/// `parse<a::B>` of `x::Parser::parse<a::B>`.
fn last_part(name: &str) -> &str {
    let (mut depth, mut start) = (0_usize, 0);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b':' | b'.' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

/// By row: the gone function that a new one may be, and the other way round, as they weigh about the same and have the same caller.
/// Those of one last name come first.
fn renamed(rows: &[Row], base: &[&Run], new: &[&Run]) -> Vec<Option<usize>> {
    let mut partners = vec![None; rows.len()];
    let caller = |runs: &[&Run], identity: &Identity| -> Option<Identity> {
        runs.iter()
            .find_map(|run| run.callers.get(identity))
            .cloned()
    };
    let gone: Vec<usize> = (0..rows.len())
        .filter(|at| rows[*at].sides == (true, false) && !rows[*at].is_matched)
        .collect();
    let mut taken = vec![false; rows.len()];
    let mut come: Vec<usize> = (0..rows.len())
        .filter(|at| rows[*at].sides == (false, true) && !rows[*at].is_matched)
        .collect();
    come.sort_by(|a, b| rows[*b].means.1.total_cmp(&rows[*a].means.1));
    for least in [Some(1), Some(0), None] {
        for at in come.iter().copied() {
            if partners[at].is_some() {
                continue;
            }
            let Some(of) = caller(new, &rows[at].identity) else {
                continue;
            };
            let weight = rows[at].means.1;
            let is_like = |old: &usize| {
                let row = &rows[*old];
                let near = (row.means.0 - weight).abs() <= 0.3 * row.means.0.max(weight);
                let same_caller = || {
                    let known = caller(base, &row.identity);
                    known.is_some_and(|known| is_same(&known, &of) || may_be_renamed(&known, &of))
                };
                !taken[*old]
                    && near
                    && likeness(&row.identity, &rows[at].identity) >= least
                    && row.identity.object == rows[at].identity.object
                    && same_caller()
            };
            if let Some(old) = gone.iter().copied().find(is_like) {
                taken[old] = true;
                (partners[at], partners[old]) = (Some(old), Some(at));
            }
        }
    }
    partners
}

fn is_several(runs: &[&Run], one: Option<&Identity>) -> bool {
    one.is_some_and(|one| runs.iter().any(|run| run.several.contains(one)))
}

/// Whether files of some runs know a function; nothing if nobody has looked.
fn is_known(runs: &[&Run], one: &Identity) -> Option<bool> {
    let mut looked = runs.iter().filter_map(|run| run.known.as_ref());
    let first = looked.next()?;
    Some(first.contains(one) || looked.any(|known| known.contains(one)))
}

/// Pairs what is left of one name where each side has one function of it: with other parameters, and the files of neither side know
/// the other's.
fn reunite(
    pairs: &mut Vec<Pair>,
    (olds, base): (&[&Identity], &[&Run]),
    (news, new): (&[&Identity], &[&Run]),
) {
    let mut of_name: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (number, pair) in pairs.iter().enumerate() {
        let either = pair.base.map(|at| olds[at]).or(pair.new.map(|at| news[at]));
        let native = either.filter(|one| one.name.file.is_empty() && one.name.line == 0);
        if let Some(one) = native {
            let key = (one.object.as_str(), one.name.name.as_str());
            of_name.entry(key).or_default().push(number);
        }
    }
    let mut united = Vec::new();
    for group in of_name.into_values() {
        let [first, other] = group[..] else { continue };
        // What their lines did not join, their names do not.
        let is_lined = |one: &Identity| {
            let place = one.beside.place.as_deref();
            is_numbered(one) && place.is_some_and(|place| place.line > 0)
        };
        if pairs[first].base.is_some_and(|at| is_lined(olds[at])) {
            continue;
        }
        let of = |at: usize| (pairs[at].base, pairs[at].new);
        let ((Some(old), None), (None, Some(newer))) = (of(first), of(other)) else {
            continue;
        };
        let parameters = |one: &Identity| one.beside.parameters.is_some();
        let are_told = parameters(olds[old]) && parameters(news[newer]);
        let known = (is_known(new, olds[old]), is_known(base, news[newer]));
        if are_told && known == (Some(false), Some(false)) {
            united.push((first, other));
        }
    }
    for (one, other) in &united {
        pairs[*one].new = pairs[*other].new;
    }
    let gone: BTreeSet<usize> = united.into_iter().map(|(_, other)| other).collect();
    let mut at = 0..;
    pairs.retain(|_| !at.next().is_some_and(|at| gone.contains(&at)));
}

/// Functions of which nothing tells whether they are others of their name on the other side.
struct Unclear<'i> {
    /// Object, name and file, and the place that the name tells.
    all: BTreeSet<(&'i str, &'i str, &'i str, (u32, u32))>,
    /// By file of the base: what it is called in the new side.
    files: BTreeMap<&'i str, &'i str>,
}

impl<'i> Unclear<'i> {
    fn of(pairs: &[Pair], sides: [&Side<'i>; 2], runs: [&[&Run]; 2]) -> Self {
        let paths = sides.map(|side| {
            let sources = side.all.iter().map(|of| of.name.file.as_str());
            let paths: BTreeSet<&str> = sources.chain(side.files.iter().copied()).collect();
            paths.into_iter().collect::<Vec<_>>()
        });
        let sides = sides.map(|side| side.all.as_slice());
        let partners = same_files(&paths[0], &paths[1]);
        let files = paths[0].iter().zip(partners);
        let mut unclear = Self {
            all: BTreeSet::new(),
            files: files
                .filter_map(|(path, same)| Some((*path, paths[1][same?.at])))
                .collect(),
        };
        unclear.too_many(pairs, sides);
        unclear.left(pairs, sides, runs);
        if runs.iter().copied().flatten().any(|run| run.is_plain) {
            unclear.of_plain(pairs, sides);
        }
        unclear
    }

    /// Native functions of a name that both sides have left: cut names are shared, and debug information of one side alone tells them
    /// apart there.
    fn of_plain(&mut self, pairs: &[Pair], [olds, news]: [&[&'i Identity]; 2]) {
        let key = |one: &'i Identity| (one.object.as_str(), one.name.name.as_str());
        let is_native = |one: &&Identity| one.name.file.is_empty();
        let left = |one: Option<usize>, other: Option<usize>| one.filter(|_| other.is_none());
        let old = pairs.iter().filter_map(|pair| left(pair.base, pair.new));
        let old = old.map(|at| olds[at]).filter(is_native);
        let old: BTreeSet<(&str, &str)> = old.map(key).collect();
        let new = pairs.iter().filter_map(|pair| left(pair.new, pair.base));
        let new = new.map(|at| news[at]).filter(is_native);
        let both = new.map(key).filter(|name| old.contains(name));
        self.all
            .extend(both.map(|(object, name)| (object, name, "", (0, 0))));
    }

    /// By side: 0 is the base.
    fn file<'p>(&self, path: &'p str, side: usize) -> &'p str
    where
        'i: 'p,
    {
        let known = self.files.get(path).filter(|_| side == 0);
        known.copied().unwrap_or(path)
    }

    fn has(&self, one: &Identity, side: usize) -> bool {
        let file = self.file(&one.name.file, side);
        let place = (one.name.line, one.name.column);
        self.all
            .contains(&(one.object.as_str(), one.name.name.as_str(), file, place))
    }

    /// Native functions of which there are more than each side's object has: some are one that is told otherwise there, as of a
    /// file that was renamed, or without debug information. That the other side's files know the name is no evidence for them.
    fn too_many(&mut self, pairs: &[Pair], [olds, news]: [&[&'i Identity]; 2]) {
        let mut count: BTreeMap<_, (u32, u32)> = BTreeMap::new();
        for pair in pairs {
            let sides = [pair.base.map(|at| olds[at]), pair.new.map(|at| news[at])];
            let of = |one: &Identity| Some(one.beside.place.as_ref()?.of).filter(|of| *of > 0);
            let placed = sides.into_iter().flatten();
            let placed: Vec<_> = placed.filter_map(|one| Some((one, of(one)?))).collect();
            if let [(one, _), ..] = placed[..] {
                let key = (one.object.as_str(), one.name.name.as_str(), "", (0, 0));
                let (met, most) = count.entry(key).or_default();
                *met += 1;
                *most = placed
                    .iter()
                    .map(|(_, number)| *number)
                    .fold(*most, u32::max);
            }
        }
        let unclear = count.into_iter().filter(|(_, (met, most))| met > most);
        self.all.extend(unclear.map(|(key, _)| key));
    }

    /// Functions of one name and file, or closures and lambdas, that are left on both sides: one may be another one's of the other
    /// side, as the last function without a name in a file where the other side has one more. Not where each stands in the other
    /// side's files at its place, and was but not sampled there.
    fn left(
        &mut self,
        pairs: &[Pair],
        [olds, news]: [&[&'i Identity]; 2],
        [base, new]: [&[&Run]; 2],
    ) {
        #[derive(Default)]
        struct Left<'i> {
            /// By side.
            of: [Vec<(&'i Identity, bool)>; 2],
        }
        let mut left: BTreeMap<(&str, String, &'i str), Left<'i>> = BTreeMap::new();
        for pair in pairs {
            let (side, one, others) = match (pair.base, pair.new) {
                (Some(at), None) => (0, olds[at], new),
                (None, Some(at)) => (1, news[at], base),
                _ => continue,
            };
            let file = self.file(&one.name.file, side);
            // A minifier's word says nothing.
            let word = one.name.name.as_str();
            let word = if one.beside.is_word { "" } else { word };
            let of_file = || (one.name.line > 0).then(|| word.to_owned());
            // Closures of Rust have one name.
            let of_closure = || word.contains("{{closure}}").then(|| word.to_owned());
            let name = stem(one).or_else(of_file).or_else(of_closure);
            if let Some(name) = name {
                let left = left.entry((&one.object, name, file)).or_default();
                let is_known = is_known(others, one) == Some(true);
                left.of[side].push((one, is_known));
            }
        }
        for ((object, _, file), group) in left {
            let [of_base, of_new] = &group.of;
            if of_base.is_empty() || of_new.is_empty() {
                continue;
            }
            let place = |one: &Identity| (one.name.line, one.name.column);
            let places = |of: &[(&Identity, bool)]| -> BTreeSet<_> {
                of.iter().map(|(one, _)| place(one)).collect()
            };
            let opposite = [places(of_new), places(of_base)];
            for (of, others) in group.of.iter().zip(opposite) {
                let of = of.iter();
                let unclear =
                    of.filter(|(one, is_known)| !is_known || others.contains(&place(one)));
                self.all.extend(
                    unclear.map(|(one, _)| (object, one.name.name.as_str(), file, place(one))),
                );
            }
        }
    }
}

/// The same function, whatever line it is in.
fn is_same(a: &Identity, b: &Identity) -> bool {
    a.object == b.object && a.name.name == b.name.name && a.name.file_name() == b.name.file_name()
}

fn mean_of(values: &[u64]) -> f64 {
    mean(&values.iter().map(|value| *value as f64).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::programs::Programs;
    use crate::functions::tally::Count;
    use crate::runtimes::CleanName;
    use crate::unit::Unit;

    fn run(start: u64, functions: &[(&str, u64)]) -> Run {
        let mut run = Run::default();
        run.facts.start_ns = Some(start);
        for (name, samples) in functions {
            let count = Count {
                period: samples * 1_000_000,
                samples: *samples,
            };
            let name = CleanName {
                name: (*name).to_owned(),
                ..CleanName::default()
            };
            let part = Part {
                own: count,
                inclusive: count,
                credited: count,
                is_own: true,
                squares: [*samples as f64 * 1e12; 2],
            };
            run.functions.insert(
                Identity {
                    object: "x".to_owned(),
                    name,
                    ..Identity::default()
                },
                part,
            );
            run.total.add(count);
        }
        run.squares = run.total.samples as f64 * 1e12;
        run
    }

    /// In two times of one recording nothing has moved: what is elsewhere is another function.
    #[test]
    fn times_of_one_recording_have_the_same_functions() {
        let of = |path: &str, places: &[(&str, u32, u32)]| {
            let mut run = run(0, &[]);
            path.clone_into(&mut run.facts.path);
            for (name, line, column) in places {
                let count = Count {
                    period: 100_000_000,
                    samples: 100,
                };
                let name = CleanName {
                    name: (*name).to_owned(),
                    file: "/a/x.js".to_owned(),
                    line: *line,
                    column: *column,
                };
                let identity = Identity {
                    object: "[jit]".to_owned(),
                    name,
                    ..Identity::default()
                };
                let part = Part {
                    own: count,
                    inclusive: count,
                    credited: count,
                    is_own: true,
                    squares: [1e14; 2],
                };
                run.functions.insert(identity, part);
                run.total.add(count);
            }
            run
        };
        let anonymous = "(anonymous)";
        let base = [(anonymous, 3, 11), ("run", 5, 1)];
        let new = [(anonymous, 3, 11), (anonymous, 3, 40), ("run", 9, 1)];
        let rows = |path: &str| {
            let (base, new) = (of("/r/perf.data", &base), of(path, &new));
            compare(&[base], &[new], Method::default()).rows
        };
        let times = rows("/r/perf.data");
        let of_both = |rows: &[Row]| -> Vec<(u32, u32)> {
            let both = rows.iter().filter(|row| row.sides == (true, true));
            both.map(|row| (row.identity.name.line, row.identity.name.column))
                .collect()
        };
        assert_eq!(of_both(&times), [(3, 11)]);
        assert_eq!(times.len(), 4);
        assert!(
            times
                .iter()
                .all(|row| row.is_matched && !row.is_doubtful() && row.renamed.is_none()),
            "{times:?}"
        );
        // Of another one it is another file.
        assert_eq!(of_both(&rows("/s/perf.data")), [(9, 1)]);
    }

    /// The only function of its name on both sides is one though its parameters changed, where both files tell that there is no other.
    #[test]
    fn other_parameters_are_another_function_where_files_have_both() {
        let side = |parameters: &str| {
            let mut run = run(0, &[("parse", 100)]);
            let (mut identity, part) = run.functions.pop_first().expect("one");
            identity.beside.parameters = Some(parameters.into());
            run.functions.insert(identity.clone(), part);
            (run, identity)
        };
        let ((base, old), (new, newer)) = (side("(int)"), side("(long)"));
        let rows = |of_base: Option<&[Identity]>, of_new: Option<&[Identity]>| {
            let with = |run: &Run, known: Option<&[Identity]>| Run {
                known: known.map(|known| known.iter().cloned().collect()),
                ..run.clone()
            };
            let (base, new) = (with(&base, of_base), with(&new, of_new));
            compare(&[base], &[new], Method::default()).rows.len()
        };
        assert_eq!(rows(Some(&[]), Some(&[])), 1);
        assert_eq!(rows(Some(&[newer]), Some(&[old])), 2);
        for (of_base, of_new) in [(None, None), (Some(&[][..]), None), (None, Some(&[][..]))] {
            assert_eq!(rows(of_base, of_new), 2, "nobody has looked");
        }
    }

    fn verdicts(comparison: &Comparison) -> Vec<(String, Option<&'static str>)> {
        let rows = comparison.rows.iter();
        rows.map(|row| {
            (
                row.identity.name.name.clone(),
                row.verdict.map(|verdict| verdict.word(false)),
            )
        })
        .collect()
    }

    fn side(start: u64, runs: usize, factor: f64) -> Vec<Run> {
        let noise = [0, 13, 7, 21, 3, 17];
        let of = |at: usize| {
            let n = noise[at % 6];
            run(
                start + 10 * at as u64,
                &[
                    ("a", 400 + n),
                    ("b", 300 + 2 * n),
                    ("c", 300 - n),
                    ("d", (500.0 * factor) as u64 + n),
                ],
            )
        };
        (0..runs).map(of).collect()
    }

    #[test]
    fn a_changed_function_is_found_and_no_other() {
        let (base, new) = (side(0, 5, 1.0), side(5, 5, 1.5));
        assert!(alternate(&base, &new));
        for paired in [false, true] {
            let found = compare(
                &base,
                &new,
                Method {
                    paired: Some(paired),
                    ..Method::default()
                },
            );
            let expected = [("d", Some("slower"))];
            let changed: Vec<_> = verdicts(&found)
                .into_iter()
                .filter(|v| v.1.is_some())
                .collect();
            assert_eq!(
                changed,
                expected.map(|(n, v)| (n.to_owned(), v)),
                "{found:?}"
            );
            assert!((found.factor - 1.0).abs() < 0.02, "{}", found.factor);
            assert!((found.rows[0].ratio.expect("a ratio").value - 1.5).abs() < 0.03);
        }
    }

    /// The larger part of a program grows: the rest is as before, not faster, and the head can say so.
    #[test]
    fn what_kept_its_seconds_is_not_faster() {
        let of = |start: u64, times: u64| -> Vec<Run> {
            let n = [0, 4, 9, 2];
            let one = |at: usize| {
                let functions = [
                    ("a", 900 * times + n[at]),
                    ("b", 300 - n[at]),
                    ("c", 300 + n[at]),
                ];
                run(start + at as u64, &functions)
            };
            (0..4).map(one).collect()
        };
        let found = compare(&of(0, 1), &of(10, 3), Method::default());
        let changed: Vec<_> = verdicts(&found)
            .into_iter()
            .filter(|v| v.1.is_some())
            .collect();
        assert_eq!(changed, [("a".to_owned(), Some("slower"))]);
        assert!(
            found.is_explained(),
            "{:?}",
            (found.factor, found.explained)
        );
        // Where a third of nothing kept its time, the factor is more than the machine explains.
        let all = |start: u64, times: u64| -> Vec<Run> {
            let names = ["a", "b", "c", "d"];
            let of = |at: u64| names.map(|name| (name, 400 * times + 3 * at));
            (0..4).map(|at| run(start + at, &of(at))).collect()
        };
        let found = compare(&all(0, 2), &all(10, 3), Method::default());
        assert!(!found.is_explained() && found.is_guess, "{found:?}");
        let rows = &found.rows;
        assert!(
            rows.iter()
                .all(|row| row.verdict.is_none() && row.seconds_q < 0.05)
        );
    }

    /// No machine makes bytes more: what one function leaks is not taken out of the others.
    #[test]
    fn amounts_have_no_common_factor() {
        let of = |start: u64, leaked: u64| -> Vec<Run> {
            let one = |at: u64| {
                let mut run = run(start + at, &[("leak", leaked), ("kept", 30), ("held", 40)]);
                run.facts.made = Made::Whole;
                run.facts.weighed = Some((Unit::Bytes, "blocks"));
                run
            };
            (0..3).map(one).collect()
        };
        let found = compare(&of(0, 1000), &of(10, 3000), Method::default());
        assert!((found.factor - 1.0).abs() < 1e-9, "{}", found.factor);
        let expected = [
            ("leak", Some("slower"), 3.0),
            ("kept", None, 1.0),
            ("held", None, 1.0),
        ];
        for (name, verdict, ratio) in expected {
            let mut rows = found.rows.iter();
            let row = rows.find(|row| row.identity.name.name == name);
            let row = row.expect("a row of each");
            assert_eq!(
                row.verdict.map(|verdict| verdict.word(false)),
                verdict,
                "{name}"
            );
            let told = row.ratio.expect("a ratio").value;
            assert!((told / ratio - 1.0).abs() < 0.01, "{name}: {told}");
        }
    }

    /// Blocks and waits that were all recorded are no samples: five large ones are as many as there are.
    #[test]
    fn few_large_things_are_seen_where_each_was_recorded() {
        let of = |start: u64, big: u64, made: Made| -> Vec<Run> {
            let one = |at: u64| {
                let mut run = run(start + at, &[("big", 5), ("small", 1000 + at)]);
                let part = run.functions.values_mut().next().expect("two functions");
                let count = Count {
                    period: 5 * big,
                    samples: 5,
                };
                *part = Part {
                    own: count,
                    credited: count,
                    squares: [5.0 * (big as f64).powi(2); 2],
                    ..*part
                };
                run.total.period += count.period;
                run.facts.made = made;
                run
            };
            (0..3).map(one).collect()
        };
        for (made, wanted) in [
            (Made::Sampled, None),
            (Made::Each, Some(Verdict::Slower)),
            (Made::Whole, Some(Verdict::Slower)),
        ] {
            let (base, new) = (of(0, 1_000_000_000, made), of(10, 4_000_000_000, made));
            let found = compare(&base, &new, Method::default());
            let big = found
                .rows
                .iter()
                .find(|row| row.identity.name.name == "big");
            assert_eq!(big.and_then(|row| row.verdict), wanted, "{made:?}");
        }
    }

    /// A row's weights stand in the order in which the recordings were given, as their totals do.
    #[test]
    fn pairs_are_told_in_the_order_given() {
        let of = |start: u64, weight: u64| run(start, &[("a", weight), ("b", 500)]);
        let base = [of(5, 300), of(1, 100), of(3, 200)];
        let new = [of(2, 110), of(6, 310), of(4, 210)];
        let found = compare(&base, &new, Method::default());
        assert!(found.is_paired);
        let row = found
            .rows
            .iter()
            .find(|row| row.identity.name.name == "a")
            .expect("a row");
        let of_a = |runs: &[Run]| -> Vec<u64> {
            runs.iter()
                .map(|run| run.total.period - 500_000_000)
                .collect()
        };
        assert_eq!((&row.base, &row.new), (&of_a(&base), &of_a(&new)));
        assert!(
            (row.ratio.expect("a ratio").value - 1.05).abs() < 0.03,
            "{row:?}"
        );
    }

    #[test]
    fn the_same_runs_are_the_same() {
        let base = side(0, 3, 1.0);
        let found = compare(&base, &base, Method::default());
        assert!(
            found
                .rows
                .iter()
                .all(|row| row.verdict.is_none() && row.ratio.is_some_and(|r| r.value == 1.0))
        );
        assert_eq!(
            (found.factor, found.matched, found.total_ratio.value),
            (1.0, (1.0, 1.0), 1.0)
        );
    }

    #[test]
    fn few_runs_never_say_changed() {
        for (runs, word) in [(1, "large"), (2, "unsure")] {
            let found = compare(&side(0, runs, 1.0), &side(5, runs, 4.0), Method::default());
            assert_eq!(found.rows[0].verdict.map(|v| v.word(false)), Some(word));
            assert!(
                found
                    .rows
                    .iter()
                    .all(|row| row.verdict.is_none_or(|v| !v.is_change()))
            );
        }
    }

    #[test]
    fn new_and_gone_functions_are_told_and_paired_by_their_caller() {
        let with = |name: &str, start: u64| -> Vec<Run> {
            let runs = side(start, 3, 1.0).into_iter().map(|mut run| {
                let of = |name: &str| Identity {
                    object: "x".to_owned(),
                    name: CleanName {
                        name: name.to_owned(),
                        ..CleanName::default()
                    },
                    ..Identity::default()
                };
                let part = run.functions[&of("b")];
                run.functions.insert(of(name), part);
                run.callers.insert(of(name), of("main"));
                run
            });
            runs.collect()
        };
        let found = compare(&with("old", 0), &with("fresh", 5), Method::default());
        let words = verdicts(&found);
        assert!(
            words.contains(&("old".to_owned(), Some("gone")))
                && words.contains(&("fresh".to_owned(), Some("new")))
        );
        let fresh = found
            .rows
            .iter()
            .find(|row| row.identity.name.name == "fresh")
            .expect("a row");
        assert_eq!(
            fresh.renamed.as_ref().map(|other| other.label.as_str()),
            Some("old")
        );
    }

    /// Of functions that weigh the same, one in a namespace that was renamed is the one of its last name.
    #[test]
    fn what_kept_its_last_name_is_proposed_first() {
        let named = |name: &str| Identity {
            object: "x".to_owned(),
            name: CleanName {
                name: name.to_owned(),
                ..CleanName::default()
            },
            ..Identity::default()
        };
        let side = |space: &str, order: [&str; 3], start: u64| -> Vec<Run> {
            let one = |number: u64| {
                let names = order.map(|name| format!("{space}::{name}"));
                let weights = [1000, 1010, 990];
                let rows: Vec<(&str, u64)> =
                    names.iter().map(String::as_str).zip(weights).collect();
                let mut run = run(start + number, &rows);
                let callers = names.iter().map(|name| (named(name), named("main")));
                run.callers = callers.collect();
                run
            };
            (0..5).map(one).collect()
        };
        let base = side("app", ["parse", "emit<a::B>", "P::run"], 0);
        let new = side("core", ["emit<a::B>", "P::run", "parse"], 10);
        let found = compare(&base, &new, Method::default());
        let mut proposed = 0;
        for row in &found.rows {
            let Some(other) = &row.renamed else { continue };
            assert_eq!(last_part(&other.label), last_part(&row.identity.name.name));
            proposed += 1;
        }
        assert_eq!(proposed, 6, "{:?}", verdicts(&found));
        assert_eq!(last_part("<x::A as y::B<z::C>>::f"), "f");
    }

    /// One more function in front gives all others of a module of WebAssembly other numbers.
    #[test]
    fn numbers_of_functions_say_nothing_where_the_module_is_another_one() {
        let of = |start: u64, numbers: std::ops::Range<u64>| -> Vec<Run> {
            let names: Vec<(String, u64)> = numbers
                .map(|at| (format!("wasm-function[{at}]"), 1000))
                .chain([("main".to_owned(), 500)])
                .collect();
            let names: Vec<(&str, u64)> = names.iter().map(|(n, w)| (n.as_str(), *w)).collect();
            (0..3).map(|at| run(start + at, &names)).collect()
        };
        for (new, doubtful) in [(0..3, 0), (1..4, 4)] {
            let found = compare(&of(0, 0..3), &of(5, new), Method::default());
            let rows = found.rows.iter().filter(|row| row.is_doubtful());
            assert_eq!(rows.count(), doubtful);
        }
    }

    /// The last functions without a name in a file: none stands below, and the new side has one more.
    #[test]
    fn what_is_left_of_a_name_on_both_sides_is_doubtful() {
        let of = |places: &[(&str, u32, u32)]| -> Vec<Run> {
            let one = |(name, line, column): &(&str, u32, u32)| Identity {
                object: "[jit]".to_owned(),
                name: CleanName {
                    name: (*name).to_owned(),
                    file: "/a/x.js".to_owned(),
                    line: *line,
                    column: *column,
                },
                ..Identity::default()
            };
            let runs = side(0, 3, 1.0).into_iter().map(|mut run| {
                let (_, part) = run.functions.pop_first().expect("a function");
                run.functions = places.iter().map(|place| (one(place), part)).collect();
                run
            });
            runs.collect()
        };
        let (spin, first) = (("spin", 1, 9), ("(anonymous)", 2, 84));
        let (base, new) = (
            of(&[spin, first]),
            of(&[spin, first, ("(anonymous)", 2, 162)]),
        );
        let found = compare(&base, &new, Method::default());
        let left = found.rows.iter().filter(|row| !row.is_matched);
        let left: Vec<_> = left
            .map(|row| (row.sides, row.is_unclear && row.is_doubtful()))
            .collect();
        assert!(left.iter().all(|(_, is_doubtful)| *is_doubtful), "{left:?}");
        assert_eq!(left.len(), 3, "{left:?}");
        // What the new side alone has is new.
        let found = compare(&of(&[spin]), &new, Method::default());
        assert!(found.rows.iter().all(|row| !row.is_unclear));
    }

    /// Four times the samples of a quarter of the weight each are no change.
    #[test]
    fn runs_that_were_sampled_more_often_are_not_slower() {
        let often = |run: &Run| {
            let mut run = run.clone();
            run.squares /= 4.0;
            for part in run.functions.values_mut() {
                part.squares = part.squares.map(|squares| squares / 4.0);
            }
            run
        };
        let (base, new) = (side(0, 4, 1.0), side(5, 4, 1.0));
        let new: Vec<Run> = new.iter().map(often).collect();
        for normalize in [Normalize::None, Normalize::Total, Normalize::Median] {
            let method = Method {
                normalize: Some(normalize),
                ..Method::default()
            };
            let found = compare(&base, &new, method);
            assert!(
                (found.factor - 1.0).abs() < 0.02,
                "{normalize:?}: {found:?}"
            );
            let ratios = found.rows.iter().map(|row| row.ratio.expect("a ratio"));
            assert!(
                ratios
                    .into_iter()
                    .all(|ratio| (ratio.value - 1.0).abs() < 0.02)
            );
            assert!(found.rows.iter().all(|row| row.verdict.is_none()));
        }
    }

    /// The rows of base and new runs whose program is called so.
    fn by_program(object: &str, runs: Vec<Run>) -> Vec<Run> {
        let named = |identity: &Identity| Identity {
            object: object.to_owned(),
            name: identity.name.clone(),
            ..Identity::default()
        };
        let renamed = |mut run: Run| {
            run.functions = run
                .functions
                .iter()
                .map(|(of, part)| (named(of), *part))
                .collect();
            run.programs = Programs::for_tests(object, run.total.period);
            run
        };
        runs.into_iter().map(renamed).collect()
    }

    #[test]
    fn a_program_by_another_name_is_the_same() {
        let numbers = |found: &Comparison| -> Vec<_> {
            let rows = found.rows.iter();
            rows.map(|row| {
                (
                    row.identity.name.name.clone(),
                    row.means,
                    row.verdict,
                    row.is_matched,
                )
            })
            .collect()
        };
        let (base, new) = (side(0, 4, 1.0), side(5, 4, 1.5));
        let wanted = compare(&base, &new, Method::default());
        let (base, new) = (by_program("app-old", base), by_program("app-new", new));
        let found = compare(&base, &new, Method::default());
        assert_eq!(numbers(&found), numbers(&wanted));
        assert_eq!((found.totals, found.matched), (wanted.totals, (1.0, 1.0)));
        assert!(
            found
                .rows
                .iter()
                .all(|row| row.identity.object == "app-new")
        );
        let program = found.program.expect("told");
        assert_eq!(
            (program.base.as_str(), program.new.as_str()),
            ("app-old", "app-new")
        );
    }

    #[test]
    fn what_only_the_base_has_is_called_as_it_is_there() {
        let base = by_program("app-old", vec![run(0, &[("a", 100), ("gone", 300)])]);
        let new = by_program("app-new", vec![run(5, &[("a", 100), ("come", 300)])]);
        let objects: BTreeMap<String, String> = compare(&base, &new, Method::default())
            .rows
            .into_iter()
            .map(|row| (row.identity.name.name, row.identity.object))
            .collect();
        let wanted = [("a", "app-new"), ("come", "app-new"), ("gone", "app-old")];
        assert_eq!(
            objects,
            wanted.map(|(a, b)| (a.to_owned(), b.to_owned())).into()
        );
        // What the files of the other side are asked for has the names that it has there.
        let (of_new, of_base) = without_partner(&base, &new, By::Credited);
        let told = |found: &[Lone]| {
            let found = found.iter();
            found
                .map(|of| of.function.object.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (told(&of_new), told(&of_base)),
            (vec!["app-old".to_owned()], vec!["app-new".to_owned()])
        );
    }

    proptest::proptest! {
        /// Whatever is taken for one, nothing is lost of either side and nothing counted twice.
        #[test]
        fn joined_rows_add_up_to_both_sides(
            base in proptest::collection::btree_map("[a-f]", 20_u64..900, 1..6),
            new in proptest::collection::btree_map("[a-f]", 20_u64..900, 1..6),
            names in ("[xy]", "[xy]"),
        ) {
            let side = |of: &BTreeMap<String, u64>, name: &str| {
                let of: Vec<(&str, u64)> = of.iter().map(|(name, n)| (name.as_str(), *n)).collect();
                by_program(name, vec![run(0, &of)])
            };
            let (base, new) = (side(&base, &names.0), side(&new, &names.1));
            let found = compare(&base, &new, Method::default());
            proptest::prop_assert_eq!(found.program.is_some(), names.0 != names.1);
            proptest::prop_assert_eq!(found.small, 0);
            let sum = |of: fn(&Row) -> &Vec<u64>| found.rows.iter().map(|row| of(row)[0]).sum::<u64>();
            proptest::prop_assert_eq!(sum(|row| &row.base), base[0].total.period);
            proptest::prop_assert_eq!(sum(|row| &row.new), new[0].total.period);
            let (olds, news) = (&base[0].functions, &new[0].functions);
            let both = olds.keys().filter(|of| news.keys().any(|new| new.name == of.name));
            proptest::prop_assert_eq!(found.rows.len(), olds.len() + news.len() - both.count());
        }
    }

    #[test]
    fn a_uniform_change_is_in_the_factor() {
        let slower: Vec<Run> = side(5, 4, 1.0)
            .into_iter()
            .map(|r| {
                run(
                    r.facts.start_ns.unwrap_or(0),
                    &[("a", 800), ("b", 600), ("c", 580), ("d", 1000)],
                )
            })
            .collect();
        let found = compare(
            &side(0, 4, 1.0),
            &slower,
            Method {
                paired: Some(false),
                ..Method::default()
            },
        );
        assert!(
            found.rows.iter().all(|row| row.verdict.is_none()),
            "{:?}",
            verdicts(&found)
        );
        assert!((found.factor - 1.94).abs() < 0.1, "{}", found.factor);
    }
}
