//! Totals of `perf stat record`.
//!
//! Counts are read from the beginning on, by processor or thread; those of counters that had to share the processor's
//! stand for all of the time, as `perf stat report` has it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Count, Total, Totals};
use crate::diagnostics::Diagnostics;
use crate::perfdata::{
    Delivered, EventUpdate, Record, Recording, Stat, StatConfig, mapped_threads,
};

/// What a count is of: event, processor, thread.
type Place = (usize, i32, u32);

/// The counts of a recording; nothing if it has none.
#[must_use]
pub fn counted(recording: &Recording<'_>, diag: &Diagnostics) -> Option<Totals> {
    let mut counting = Counting::of(recording);
    recording.deliver(diag, &mut |_| {}, &mut |delivered| {
        if let Delivered::Record { record, .. } = delivered {
            counting.take(&record);
        }
    });
    if counting.unknown > 0 {
        diag.warn(format!(
            "{}: {} counts are of events that the recording does not describe",
            recording.path().display(),
            counting.unknown
        ));
    }
    (!counting.last.is_empty()).then(|| counting.finish(recording))
}

struct Counting {
    /// By counter.
    events: FxHashMap<u64, usize>,
    /// The only event, if there is one: counters without a number are of it.
    only: Option<usize>,
    totals: Vec<Total>,
    config: StatConfig,
    /// The latest counts.
    last: BTreeMap<Place, Stat>,
    /// What was counted since the round before.
    fresh: BTreeMap<usize, Count>,
    rounds: Vec<(u64, Vec<(usize, Count)>)>,
    threads: Vec<String>,
    elapsed: Option<u64>,
    unknown: u64,
}

impl Counting {
    fn of(recording: &Recording<'_>) -> Self {
        let mut events = FxHashMap::default();
        for (index, event) in recording.events.iter().enumerate() {
            for id in &event.ids {
                events.entry(*id).or_insert(index);
            }
        }
        let total = |event: &crate::perfdata::Event| Total {
            name: event.name.clone(),
            scale: 1.0,
            ..Total::default()
        };
        Self {
            events,
            only: (recording.events.len() == 1).then_some(0),
            totals: recording.events.iter().map(total).collect(),
            config: StatConfig {
                aggregation: 1,
                interval: 0,
                scales: true,
            },
            last: BTreeMap::new(),
            fresh: BTreeMap::new(),
            rounds: Vec::new(),
            threads: Vec::new(),
            elapsed: None,
            unknown: 0,
        }
    }

    fn take(&mut self, record: &Record<'_>) {
        match record {
            Record::Stat(stat) => self.stat(*stat),
            Record::StatRound(round) => {
                self.elapsed = Some(round.time);
                let fresh = std::mem::take(&mut self.fresh);
                if self.config.interval > 0 && !fresh.is_empty() {
                    self.rounds.push((round.time, fresh.into_iter().collect()));
                }
            }
            Record::StatConfig(config) => self.config = *config,
            Record::EventUpdate(id, update) => self.update(*id, *update),
            Record::ThreadMap(body) => {
                let threads = mapped_threads(body).into_iter().flatten();
                let name = |thread: crate::perfdata::MappedThread<'_>| {
                    let comm = String::from_utf8_lossy(thread.comm).into_owned();
                    format!("{comm}-{}", thread.tid)
                };
                self.threads = threads.map(name).collect();
            }
            _ => {}
        }
    }

    fn event(&self, id: u64) -> Option<usize> {
        self.events.get(&id).copied().or(self.only)
    }

    fn update(&mut self, id: u64, update: EventUpdate<'_>) {
        let Some(event) = self.event(id) else {
            return;
        };
        let total = &mut self.totals[event];
        match update {
            EventUpdate::Unit(unit) => total.unit = String::from_utf8_lossy(unit).into_owned(),
            EventUpdate::Scale(scale) if scale.is_finite() && scale > 0.0 => total.scale = scale,
            _ => {}
        }
    }

    fn stat(&mut self, stat: Stat) {
        let Some(event) = self.event(stat.id) else {
            self.unknown += 1;
            return;
        };
        let place = (event, stat.cpu, stat.thread);
        let before = self.last.insert(place, stat);
        let since = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        let fresh = Stat {
            value: since(stat.value, before.map(|b| b.value)),
            enabled: since(stat.enabled, before.map(|b| b.enabled)),
            running: since(stat.running, before.map(|b| b.running)),
            ..stat
        };
        let scaled = self.scaled(fresh);
        self.fresh.entry(event).or_default().add(scaled);
    }

    /// What a count stands for (`perf_counts_values__scale`).
    fn scaled(&self, stat: Stat) -> Count {
        let value = if stat.running == 0 {
            0.0
        } else if self.config.scales && stat.running < stat.enabled {
            let share = stat.enabled as f64 / stat.running as f64;
            (stat.value as f64 * share).floor()
        } else {
            stat.value as f64
        };
        Count {
            value,
            enabled: stat.enabled,
            running: stat.running,
            is_estimate: false,
        }
    }

    fn finish(mut self, recording: &Recording<'_>) -> Totals {
        let by_cpu = self.config.aggregation == 0;
        let mut parts: BTreeMap<(i32, u32), Vec<Count>> = BTreeMap::new();
        for (&(event, cpu, thread), stat) in &self.last {
            let count = self.scaled(*stat);
            self.totals[event].count.add(count);
            let part = if by_cpu { (cpu, 0) } else { (0, thread) };
            let part = parts
                .entry(part)
                .or_insert_with(|| vec![Count::default(); self.totals.len()]);
            part[event].add(count);
        }
        let threads = &self.threads;
        let name = |(cpu, thread): (i32, u32)| {
            if by_cpu {
                return format!("CPU{cpu}");
            }
            let known = threads.get(thread as usize).cloned();
            known.unwrap_or_else(|| format!("thread {thread}"))
        };
        let is_apart = parts.len() > 1;
        let parts = parts.into_iter().map(|(part, counts)| (name(part), counts));
        Totals {
            command: recording.features.cmdline.clone(),
            elapsed: self.elapsed,
            on_cpu: None,
            is_sampled: false,
            parts: if is_apart {
                parts.collect()
            } else {
                Vec::new()
            },
            events: self.totals,
            rounds: self.rounds,
        }
    }
}
