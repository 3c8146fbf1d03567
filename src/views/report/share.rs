//! Parts of a whole.

/// Share of a total in percent; nothing of nothing is 0.
#[must_use]
pub fn percent(part: u64, total: u64) -> f64 {
    if total == 0 {
        0.0
    } else {
        part as f64 * 100.0 / total as f64
    }
}

/// perf's integer threshold of an event.
pub(crate) fn threshold(total: u64, percent: f64) -> u64 {
    (total as f64 * (percent / 100.0)) as u64
}
