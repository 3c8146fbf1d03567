//! Totals of `perf stat record`.
//!
//! Counts are read from the beginning on, by processor or thread; those of counters that had to share the processor's
//! stand for all of the time, as `perf stat report` has it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use super::{Apart, Count, Counts, Total, Totals};
use crate::diagnostics::Diagnostics;
use crate::perfdata::{
    Delivered, EventUpdate, Record, Recording, Stat, StatConfig, mapped_threads,
};

/// What a count is of: event, processor, thread.
type CountKey = (usize, i32, u32);

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
    counting.finish(recording, apart, diag).map(Some)
}

struct Counting {
    /// By counter.
    events: FxHashMap<u64, usize>,
    /// The only event, if there is one: counters without a number are of it.
    only: Option<usize>,
    totals: Vec<Total>,
    config: StatConfig,
    /// The latest counts.
    last: BTreeMap<CountKey, Stat>,
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
        let since = |now: u64, then: Option<u64>| now.saturating_sub(then.unwrap_or(0));
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

    fn finish(
        mut self,
        recording: &Recording<'_>,
        apart: Option<Apart>,
        diag: &Diagnostics,
    ) -> Result<Totals, String> {
        if apart.is_some() && self.last.keys().any(|(_, cpu, _)| *cpu < 0) {
            return Err(
                "counts are of threads, not of processors (perf stat record -a)".to_owned(),
            );
        }
        let is_asked = apart.is_some();
        let apart = apart.or(self.recorded_apart());
        let parts = match self.parts(recording, apart) {
            Ok(parts) => parts,
            Err(text) if !is_asked => {
                let path = recording.path().display();
                diag.warn(format!("{path}: {text}; totals only"));
                BTreeMap::new()
            }
            Err(text) => return Err(text),
        };
        for (&(event, ..), stat) in &self.last {
            let count = self.scaled(*stat);
            self.totals[event].count.add(count);
        }
        // Keys are in the order of events.
        let mut told: Vec<usize> = self.last.keys().map(|(event, ..)| *event).collect();
        told.dedup();
        for (event, total) in self.totals.iter_mut().enumerate() {
            total.is_missing = told.binary_search(&event).is_err();
            if total.is_missing {
                // Intervals have a line for each event, too.
                for (_, counts) in &mut self.rounds {
                    counts.push((event, Count::default()));
                }
            }
        }
        for (_, counts) in &mut self.rounds {
            counts.sort_by_key(|(event, _)| *event);
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
            idle: None,
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

    /// The counts by what they are told apart by, each with its processors.
    fn parts(
        &self,
        recording: &Recording<'_>,
        apart: Option<Apart>,
    ) -> Result<BTreeMap<Part, (BTreeSet<i32>, Counts)>, String> {
        let cpus = self.last.keys().map(|(_, cpu, _)| *cpu).collect();
        let places = match apart {
            Some(apart) => places(recording, apart, cpus)?,
            None => FxHashMap::default(),
        };
        let mut parts: BTreeMap<Part, (BTreeSet<i32>, Counts)> = BTreeMap::new();
        for (&(event, cpu, thread), stat) in &self.last {
            let of_thread = [thread.cast_signed(), 0, 0];
            let part = places.get(&cpu).copied().unwrap_or(of_thread);
            let (processors, counts) = parts.entry(part).or_default();
            counts.entry(event).or_default().add(self.scaled(*stat));
            processors.insert(cpu);
        }
        Ok(parts)
    }
}

/// What a processor is a part of: numbers in the order in which parts are shown.
type Part = [i32; 3];

/// What each of some processors is a part of.
fn places(
    recording: &Recording<'_>,
    apart: Apart,
    cpus: BTreeSet<i32>,
) -> Result<FxHashMap<i32, Part>, String> {
    let unknown = |cpu: i32| format!("the recording does not say where CPU {cpu} is");
    let features = &recording.features;
    if apart == Apart::Node {
        let nodes = features.numa_nodes.iter();
        let nodes = nodes.map(|node| (node.node.cast_signed(), node.cpus.as_str()));
        return nodes_of(nodes, cpus).map_err(unknown);
    }
    let known = features.cpu_topology.iter().flat_map(|known| &known.cpus);
    let known: Vec<_> = known.collect();
    let place = |cpu: i32| {
        if apart == Apart::Cpu {
            return Ok((cpu, [cpu, 0, 0]));
        }
        let place = usize::try_from(cpu).ok().and_then(|cpu| known.get(cpu));
        let place = place.ok_or_else(|| unknown(cpu))?;
        let part = match apart {
            Apart::Core => [place.socket, place.die, place.core],
            Apart::Die => [place.socket, place.die, 0],
            Apart::Cpu | Apart::Socket | Apart::Node => [place.socket, 0, 0],
        };
        Ok((cpu, part))
    };
    cpus.into_iter().map(place).collect()
}

/// The first node of each of some processors, by nodes with their lists; a processor that is in none is an error.
fn nodes_of<'l>(
    nodes: impl Iterator<Item = (i32, &'l str)>,
    mut cpus: BTreeSet<i32>,
) -> Result<FxHashMap<i32, Part>, i32> {
    let mut found = FxHashMap::default();
    for (node, list) in nodes {
        for range in ranges(list) {
            while let Some(&cpu) = cpus.range(range.clone()).next() {
                cpus.remove(&cpu);
                found.insert(cpu, [node, 0, 0]);
            }
        }
    }
    cpus.first().map_or(Ok(found), |cpu| Err(*cpu))
}

/// The processors of a list as in sysfs: `0-3,8`.
fn ranges(list: &str) -> impl Iterator<Item = RangeInclusive<i32>> {
    list.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<i32>().ok();
        let range = number(from)?..=number(to)?;
        (!range.is_empty()).then_some(range)
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
        let all = |list| ranges(list).flatten().collect::<Vec<i32>>();
        assert_eq!(all("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(all(" 5 ,3-1"), [5]);
        assert!(all("").is_empty() && all("x-y").is_empty());
    }

    #[test]
    fn processors_are_in_the_first_node_that_has_them() {
        let nodes = || [(0, "0-1,2000000000-2147483647"), (7, "1-3")].into_iter();
        let of = |cpus: &[i32]| nodes_of(nodes(), cpus.iter().copied().collect());
        let found = of(&[1, 2, i32::MAX]).expect("all are there");
        let expected = [(1, [0, 0, 0]), (2, [7, 0, 0]), (i32::MAX, [0, 0, 0])];
        assert_eq!(found, FxHashMap::from_iter(expected));
        assert_eq!(of(&[0, 4, 5]), Err(4));
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
