//! What rows weigh by latency: the period of each sample over the number of threads that ran beside it.
//!
//! Rows are made a second time with that in place of periods, so that views without latency pay nothing for it.

use rustc_hash::FxHashMap;

use super::{ClassId, ContextId, Counts, Input, Rows, made};
use crate::ids::IndexVec;
use crate::profile::{Entry, EntryId, Profile};

/// What perf multiplies periods by, so that little is lost when they are divided.
const SCALE: u64 = 1000;

/// By entry.
fn latencies(profile: &Profile) -> IndexVec<EntryId, u64> {
    let of = |entry: &Entry| {
        let running = profile.facets.parallelism(entry.facets).max(1);
        entry.period.saturating_mul(SCALE) / running
    };
    profile.entries.iter().map(of).collect()
}

/// Adds the latencies to the counts of rows and totals.
pub(super) fn add(rows: &mut Rows, input: &Input<'_>) {
    let weights = latencies(input.profile);
    let by_latency = made(&Input {
        with_trees: false,
        weights: Some(&weights),
        ..*input
    });
    let keyed = by_latency.rows.iter();
    let counts: FxHashMap<(ContextId, ClassId), Counts> = keyed
        .map(|row| ((row.context, row.class), row.counts))
        .collect();
    for row in &mut rows.rows {
        if let Some(other) = counts.get(&(row.context, row.class)) {
            take(&mut row.counts, other);
        }
    }
    for (totals, other) in rows.totals.iter_mut().zip(&by_latency.totals) {
        take(&mut totals.all, &other.all);
        take(&mut totals.sample_filtered, &other.sample_filtered);
        take(&mut totals.row_filtered, &other.row_filtered);
    }
}

fn take(counts: &mut Counts, by_latency: &Counts) {
    counts.latency = by_latency.self_period;
    counts.children_latency = by_latency.children_period;
}
