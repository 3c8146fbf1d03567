//! Totals of `perf stat record`.
//!
//! Counts are read from the beginning on, by processor or thread; those of counters that had to share the processor's
//! stand for all of the time, as `perf stat report` has it.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{Apart, Count, Total, Totals};
use crate::diagnostics::Diagnostics;
use crate::perfdata::{
    Delivered, EventUpdate, Record, Recording, Stat, StatConfig, mapped_threads,
};

/// What a count is of: event, processor, thread.
type Place = (usize, i32, u32);

/// The counts of a recording, told apart as they were recorded or as it is asked for; nothing if it has none.
///
/// # Errors
/// When the recording does not tell them apart so.
pub fn counted(
    recording: &Recording<'_>,
    apart: Option<Apart>,
    diag: &Diagnostics,
) -> Result<Option<Totals>, String> {
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
    if counting.last.is_empty() {
        return Ok(None);
    }
    counting.finish(recording, apart).map(Some)
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

    /// As it was recorded. Cores and nodes have numbers that depend on perf's version, so they are only told when asked for.
    fn recorded_apart(&self) -> Option<Apart> {
        match self.config.aggregation {
            0 => Some(Apart::Cpu),
            2 => Some(Apart::Socket),
            3 => Some(Apart::Die),
            _ => None,
        }
    }

    fn finish(mut self, recording: &Recording<'_>, apart: Option<Apart>) -> Result<Totals, String> {
        if apart.is_some() && self.last.keys().any(|(_, cpu, _)| *cpu < 0) {
            return Err(
                "counts are of threads, not of processors (perf stat record -a)".to_owned(),
            );
        }
        let is_asked = apart.is_some();
        let apart = apart.or(self.recorded_apart());
        let mut parts: BTreeMap<Part, (BTreeSet<i32>, Vec<Count>)> = BTreeMap::new();
        for (&(event, cpu, thread), stat) in &self.last {
            let count = self.scaled(*stat);
            self.totals[event].count.add(count);
            let part = match apart {
                Some(apart) => part(recording, apart, cpu)?,
                None => [thread.cast_signed(), 0, 0],
            };
            let (cpus, counts) = parts
                .entry(part)
                .or_insert_with(|| (BTreeSet::new(), vec![Count::default(); self.totals.len()]));
            counts[event].add(count);
            cpus.insert(cpu);
        }
        let threads = &self.threads;
        let name = |part: Part, cpus: usize| match apart {
            Some(apart) => part_name(apart, part, cpus),
            None => {
                let known = threads.get(part[0] as usize).cloned();
                known.unwrap_or_else(|| format!("thread {}", part[0]))
            }
        };
        let by_cpu = apart.is_none_or(|apart| apart == Apart::Cpu);
        let is_apart = parts.len() > 1 || is_asked || !by_cpu;
        let parts = parts.into_iter();
        let parts = parts.map(|(part, (cpus, counts))| (name(part, cpus.len()), counts));
        Ok(Totals {
            command: recording.features.cmdline.clone(),
            elapsed: self.elapsed,
            on_cpu: None,
            is_sampled: false,
            parts: if is_apart {
                parts.collect()
            } else {
                Vec::new()
            },
            is_by_part: !by_cpu,
            events: self.totals,
            rounds: self.rounds,
        })
    }
}

/// What a processor is a part of: numbers in the order in which parts are shown.
type Part = [i32; 3];

fn part(recording: &Recording<'_>, apart: Apart, cpu: i32) -> Result<Part, String> {
    let features = &recording.features;
    let unknown = || format!("the recording does not say where CPU {cpu} is");
    let place = || {
        let all = features.cpu_topology.iter().flat_map(|known| &known.cpus);
        let index = usize::try_from(cpu).ok();
        index
            .and_then(|index| all.into_iter().nth(index))
            .ok_or_else(unknown)
    };
    Ok(match apart {
        Apart::Cpu => [cpu, 0, 0],
        Apart::Socket => [place()?.socket, 0, 0],
        Apart::Die => [place()?.socket, place()?.die, 0],
        Apart::Core => [place()?.socket, place()?.die, place()?.core],
        Apart::Node => {
            let mut nodes = features.numa_nodes.iter();
            let node = nodes
                .find(|node| has_cpu(&node.cpus, cpu))
                .ok_or_else(unknown)?;
            [node.node.cast_signed(), 0, 0]
        }
    })
}

/// Whether a list as in sysfs has a processor: `0-3,8`.
fn has_cpu(list: &str, cpu: i32) -> bool {
    list.split(',').any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<i32>().ok();
        match (number(from), number(to)) {
            (Some(from), Some(to)) => (from..=to).contains(&cpu),
            _ => false,
        }
    })
}

/// A part and how many processors it has, in perf's columns (`aggr_printout`).
fn part_name(apart: Apart, part: Part, cpus: usize) -> String {
    let [first, die, core] = part;
    match apart {
        Apart::Cpu => format!("CPU{first}"),
        Apart::Socket => format!("S{first:<5} {cpus:>4}"),
        Apart::Node => format!("N{first:<5} {cpus:>4}"),
        Apart::Die => format!("S{first}-D{die:<8} {cpus:>4}"),
        Apart::Core => format!("S{first}-D{die}-C{core:<8} {cpus:>4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_those_of_sysfs() {
        for (cpu, is_in) in [(0, true), (3, true), (4, false), (8, true), (-1, false)] {
            assert_eq!(has_cpu("0-3,8", cpu), is_in, "{cpu}");
        }
        assert!(!has_cpu("", 0) && !has_cpu("x-y", 0));
    }

    #[test]
    fn parts_stand_in_perfs_columns() {
        assert_eq!(part_name(Apart::Socket, [0, 0, 0], 2), "S0        2");
        assert_eq!(part_name(Apart::Die, [0, 1, 0], 2), "S0-D1           2");
        assert_eq!(
            part_name(Apart::Core, [0, 0, 11], 2),
            "S0-D0-C11          2"
        );
    }
}
