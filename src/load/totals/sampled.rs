//! Totals of `perf record`: sums over samples, and the counters of tasks where they were recorded.

use super::{Count, Total, Totals};
use crate::profile::Profile;
use crate::unit::Unit;

/// What is known of a recording besides its profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// ns on a processor.
    pub on_cpu: Option<u64>,
    /// Blocks that were allocated, and whether some may be missing.
    pub allocations: Option<(u64, bool)>,
}

/// The totals of a profile.
#[must_use]
pub fn sampled(profile: &Profile, seen: Seen) -> Totals {
    let recording = &profile.recording;
    let counted = |event: usize| {
        let counters = recording.counters.iter().filter(move |c| c.2 == event);
        counters.fold(None, |sum: Option<u64>, c| {
            Some(sum.unwrap_or(0).saturating_add(c.3))
        })
    };
    let mut events: Vec<Total> = Vec::new();
    for (index, event) in profile.events.iter().enumerate() {
        // What tasks counted to their end is exact, also where only some of it was sampled.
        let count = match counted(index) {
            Some(count) => Count::exact(count as f64),
            None => Count {
                is_estimate: !event.is_whole,
                ..Count::exact(event.period as f64)
            },
        };
        let is_time = event.unit == Unit::Nanoseconds;
        events.push(Total {
            name: event.name.clone(),
            unit: if is_time { "msec" } else { "" }.to_owned(),
            scale: if is_time { 1e-6 } else { 1.0 },
            count,
            idle: 0.0,
            ring: event.ring,
        });
    }
    let plain = |total: &Total| crate::metrics::plain_name(&total.name).to_owned();
    let has_switches = events
        .iter()
        .any(|total| plain(total) == "context-switches");
    let mut add = |name: &str, count: Count| {
        events.push(Total {
            name: name.to_owned(),
            scale: 1.0,
            count,
            ..Total::default()
        });
    };
    if recording.switches > 0 && !has_switches {
        add("context-switches", Count::exact(recording.switches as f64));
    }
    if let Some((blocks, is_estimate)) = seen.allocations {
        let count = Count {
            is_estimate,
            ..Count::exact(blocks as f64)
        };
        add("allocations", count);
    }
    Totals {
        command: recording.command.clone(),
        elapsed: recording
            .time_range
            .map(|(first, last)| last.saturating_sub(first)),
        on_cpu: seen.on_cpu,
        is_sampled: true,
        events,
        ..Totals::default()
    }
}
