//! Functions that change most over time: the share of each in columns of equal length.

use super::timeline::{ByFunction, PathCounts, Timeline};
use crate::functions::FunctionId;

/// Into how many columns the time is divided.
pub const COLUMNS: usize = 48;
/// Rows that are told.
const MOST: usize = 8;
/// Functions with less of all samples change nothing.
const LEAST: f64 = 0.02;
/// Part of a function's samples that has to be elsewhere for it to be there evenly; with less it does not change.
const EVEN: f64 = 0.25;
/// So many times what chance puts elsewhere.
const CHANCE: f64 = 1.5;

/// A function over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The function.
    pub function: FunctionId,
    /// Its share of all samples.
    pub share: f64,
    /// Its share of the samples of each column; nothing where there are none.
    pub columns: Vec<Option<f64>>,
}

/// Numbers of samples by column.
type Counts = [u32; COLUMNS];

pub(super) fn find(timeline: &Timeline<'_>) -> Vec<Series> {
    let (first, last) = timeline.range();
    let length = (last - first).max(1);
    let column = |time: u64| -> usize {
        let share = u128::from(time - first) * COLUMNS as u128 / u128::from(length);
        (share as usize).min(COLUMNS - 1)
    };
    let n = timeline.moments.len() as f64;
    let mut counts = PathCounts::new(timeline);
    let mut totals: ByFunction<usize> = ByFunction::new(timeline.functions);
    totals.count(timeline, counts.of(&timeline.moments));
    let mut rows: ByFunction<Counts> = ByFunction::new(timeline.functions);
    for (function, total) in totals.take() {
        if total as f64 > LEAST * n {
            rows.get_or_add(function, || [0; COLUMNS]);
        }
    }
    let mut all: Counts = [0; COLUMNS];
    let mut rest = timeline.moments.as_slice();
    for (at, sum) in all.iter_mut().enumerate() {
        let (moments, behind) = rest.split_at(rest.partition_point(|of| column(of.time) <= at));
        rest = behind;
        *sum = moments.len() as u32;
        for (path, count) in counts.of(moments) {
            for function in timeline.functions_of(path) {
                if let Some(row) = rows.get(*function) {
                    row[at] += count;
                }
            }
        }
    }
    let sum = |row: &Counts| row.iter().map(|count| f64::from(*count)).sum::<f64>();
    let mut found: Vec<(FunctionId, Counts, f64)> = rows
        .take()
        .into_iter()
        .map(|(function, row)| {
            let share = sum(&row) / n;
            let pairs = row.iter().zip(&all);
            let apart = pairs.map(|(of, whole)| (f64::from(*of) - f64::from(*whole) * share).abs());
            (function, row, apart.sum::<f64>() / n)
        })
        .filter(|(_, row, apart)| {
            let share = sum(row) / n;
            // The mean of what a binomial number differs by.
            let spread = |whole: &u32| (f64::from(*whole) * share * (1.0 - share)).sqrt();
            let chance =
                all.iter().map(spread).sum::<f64>() * (2.0 / std::f64::consts::PI).sqrt() / n;
            *apart >= (EVEN * share).max(CHANCE * chance)
        })
        .collect();
    // Own functions stand for others that are always where they are.
    let is_own = |function: FunctionId| timeline.functions.is_own(function);
    found.sort_by(|a, b| {
        let by_change = b.2.total_cmp(&a.2);
        by_change
            .then(is_own(b.0).cmp(&is_own(a.0)))
            .then(a.0.cmp(&b.0))
    });
    let mut shown: Vec<(FunctionId, Counts)> = Vec::new();
    for (function, row, _) in found {
        let is_same = |known: &Counts| {
            let pairs = known.iter().zip(&row);
            let apart: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            (apart as f64) < 0.25 * sum(&row)
        };
        match shown.iter().position(|(_, known)| is_same(known)) {
            Some(at) if is_own(function) && !is_own(shown[at].0) => shown[at].0 = function,
            Some(_) => {}
            None if shown.len() < MOST => shown.push((function, row)),
            None => break,
        }
    }
    let series = shown.into_iter().map(|(function, row)| Series {
        function,
        share: sum(&row) / n,
        columns: row
            .iter()
            .zip(&all)
            .map(|(of, all)| (*all > 0).then(|| f64::from(*of) / f64::from(*all)))
            .collect(),
    });
    series.collect()
}
