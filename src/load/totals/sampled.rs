//! Totals of `perf record`: sums over samples, and the counters of tasks where they were recorded.

use std::collections::BTreeMap;

use super::{Count, Total, Totals};
use crate::ids::Idx as _;
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

/// By event, pid and tid: what a task counted (`perf record -s`), if it told, and what was sampled of it.
type Tasks = BTreeMap<(usize, u32, u32), (Option<u64>, u64)>;

fn tasks(profile: &Profile) -> Tasks {
    let mut tasks = Tasks::new();
    for &(pid, tid, event, count) in &profile.recording.counters {
        let (told, _) = tasks.entry((event, pid, tid)).or_default();
        *told = Some(told.unwrap_or(0).saturating_add(count));
    }
    if !tasks.is_empty() {
        for entry in &profile.entries {
            let thread = &profile[entry.thread];
            let key = (entry.event.index(), thread.pid, thread.tid);
            let (_, sampled) = tasks.entry(key).or_default();
            *sampled = sampled.saturating_add(entry.period);
        }
    }
    tasks
}

/// What all tasks had of an event; nothing if none told it, or not what was sampled. What a task counted to its end is exact, also where
/// only some of it was sampled. The kernel writes it for tasks that ended, and not for the first one: of others there are the samples.
fn of_tasks(tasks: &Tasks, event: usize, is_cut: bool) -> Option<Count> {
    let of_event = tasks.range((event, 0, 0)..=(event, u32::MAX, u32::MAX));
    let (mut told, mut same, mut rest): (Option<u64>, u64, Option<u64>) = (None, 0, None);
    for (_, &(counted, sampled)) in of_event {
        match counted {
            Some(count) => {
                told = Some(told.unwrap_or(0).saturating_add(count));
                same = same.saturating_add(sampled);
            }
            None => rest = Some(rest.unwrap_or(0).saturating_add(sampled)),
        }
    }
    let told = told?;
    // Counters that tasks handed on to each other may hold anything: 27 million page faults, of which 59 were sampled.
    let is_other = same > 0 && !is_cut && (told / 2 > same || same / 2 > told);
    (!is_other).then(|| Count {
        is_estimate: rest.is_some(),
        ..Count::exact(told.saturating_add(rest.unwrap_or(0)) as f64)
    })
}

/// The totals of a profile.
#[must_use]
pub fn sampled(profile: &Profile, seen: Seen) -> Totals {
    let recording = &profile.recording;
    let tasks = tasks(profile);
    let is_cut = recording.lost > 0;
    let mut events: Vec<Total> = Vec::new();
    for (index, event) in profile.events.iter().enumerate() {
        let count = of_tasks(&tasks, index, is_cut).unwrap_or_else(|| Count {
            is_estimate: !event.is_whole,
            ..Count::exact(event.period as f64)
        });
        let is_time = event.unit == Unit::Nanoseconds;
        events.push(Total {
            name: event.name.clone(),
            unit: if is_time { "msec" } else { "" }.to_owned(),
            scale: if is_time { 1e-6 } else { 1.0 },
            count,
            idle: 0.0,
            ring: event.ring,
            is_missing: false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn counters_of_tasks_are_no_total_where_a_task_has_none() {
        for (counters, value, is_estimate) in [
            (&[][..], 400.0, true),
            (&[(100, 105), (101, 290)], 395.0, false),
            // As the kernel writes them: for threads, and not for the first.
            (&[(101, 290)], 390.0, true),
            // It also hands on what was never counted.
            (&[(101, 27_790_394)], 400.0, true),
            // Another task than those that were sampled.
            (&[(100, 105), (101, 290), (102, 7)], 402.0, false),
        ] {
            let mut builder = ProfileBuilder::default();
            builder.sample("first", "a;main", 100);
            builder.sample("second", "b;main", 300);
            let mut profile = builder.finish();
            let counters = counters.iter().map(|&(task, count)| (task, task, 0, count));
            profile.recording.counters.extend(counters);
            let count = sampled(&profile, Seen::default()).events[0].count;
            let told = (count.value, count.is_estimate);
            assert_eq!(
                told,
                (value, is_estimate),
                "{:?}",
                profile.recording.counters
            );
        }
    }
}
