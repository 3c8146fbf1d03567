//! What `perf report --stats`, `--tasks` and `--mmaps` list instead of a profile.
//!
//! In: the counts of a delivery, the session. Out: lines in perf's layout (`util/session.c`, `builtin-report.c`).

use rustc_hash::FxHashMap;

use super::{Session, maps::Mapping};
use crate::ids::{Idx, IndexSlice, ThreadId};
use crate::perfdata::{DeliverStats, Event, EventId};

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Numbers of records by type and of samples by event.
    Stats,
    /// Threads below their parents.
    Tasks,
    /// Threads with the mappings of their processes.
    Mmaps,
}

/// Names of record types as perf prints them (`util/event.c`).
const TYPES: [(u32, &str); 41] = [
    (1, "MMAP"),
    (2, "LOST"),
    (3, "COMM"),
    (4, "EXIT"),
    (5, "THROTTLE"),
    (6, "UNTHROTTLE"),
    (7, "FORK"),
    (8, "READ"),
    (9, "SAMPLE"),
    (10, "MMAP2"),
    (11, "AUX"),
    (12, "ITRACE_START"),
    (13, "LOST_SAMPLES"),
    (14, "SWITCH"),
    (15, "SWITCH_CPU_WIDE"),
    (16, "NAMESPACES"),
    (17, "KSYMBOL"),
    (18, "BPF_EVENT"),
    (19, "CGROUP"),
    (20, "TEXT_POKE"),
    (21, "AUX_OUTPUT_HW_ID"),
    (22, "CALLCHAIN_DEFERRED"),
    (64, "ATTR"),
    (65, "EVENT_TYPE"),
    (66, "TRACING_DATA"),
    (67, "BUILD_ID"),
    (68, "FINISHED_ROUND"),
    (69, "ID_INDEX"),
    (70, "AUXTRACE_INFO"),
    (71, "AUXTRACE"),
    (72, "AUXTRACE_ERROR"),
    (73, "THREAD_MAP"),
    (74, "CPU_MAP"),
    (75, "STAT_CONFIG"),
    (76, "STAT"),
    (77, "STAT_ROUND"),
    (78, "EVENT_UPDATE"),
    (79, "TIME_CONV"),
    (80, "FEATURE"),
    (81, "COMPRESSED"),
    (82, "FINISHED_INIT"),
];

/// Numbers of records by type, then of samples by event (`samples`, in the order of events).
#[must_use]
pub fn stats(
    stats: &DeliverStats,
    events: &IndexSlice<EventId, [Event]>,
    samples: &IndexSlice<EventId, [u64]>,
) -> Vec<String> {
    let total: u64 = stats.by_type.values().sum();
    let mut lines = vec![
        String::new(),
        "Aggregated stats:".to_owned(),
        format!("{:>16} events: {total:10}", "TOTAL"),
    ];
    for (type_, count) in &stats.by_type {
        let known = TYPES.iter().find(|(number, _)| number == type_);
        let name = known.map_or_else(|| format!("type {type_}"), |(_, name)| (*name).to_owned());
        let share = 100.0 * *count as f64 / total as f64;
        lines.push(format!("{name:>16} events: {count:10}  ({share:4.1}%)"));
    }
    for (event, count) in events.iter().zip(samples).filter(|(_, count)| **count > 0) {
        lines.push(format!("{} stats:", event.name));
        lines.push(format!("{:>16} events: {count:10}", "SAMPLE"));
    }
    lines
}

/// Hands out all threads, each below the one that made it; with `maps` also the mappings at the end of the recording. Line by
/// line: processes that fork have each all the mappings of the one before.
///
/// # Errors
/// What `line` says.
pub fn tasks<E>(
    session: &Session<'_>,
    maps: bool,
    line: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    /// perf indents children without end; a chain of thousands of processes would be mostly blanks.
    const DEEPEST: usize = 256;
    line(&format!(
        "# {:>8} {:>8} {:>8}  {}",
        "pid", "tid", "ppid", "comm"
    ))?;
    let mut by_tid: FxHashMap<u32, usize> = FxHashMap::default();
    for (i, life) in session.threads.iter().enumerate() {
        by_tid.insert(life.tid, i);
    }
    let mut children: FxHashMap<Option<usize>, Vec<usize>> = FxHashMap::default();
    for (i, life) in session.threads.iter().enumerate() {
        let parent = life.parent.and_then(|tid| by_tid.get(&tid).copied());
        children
            .entry(parent.filter(|p| *p != i))
            .or_default()
            .push(i);
    }
    // perf goes through its hash table of threads: 256 buckets by tid, each sorted.
    for siblings in children.values_mut() {
        siblings.sort_by_key(|i| (session.threads[*i].tid % 256, session.threads[*i].tid));
    }
    let mut pending: Vec<(usize, usize)> = Vec::new();
    let push = |waiting: &mut Vec<(usize, usize)>, of: Option<usize>, level: usize| {
        let below = children.get(&of).map(Vec::as_slice).unwrap_or_default();
        waiting.extend(below.iter().rev().map(|i| (*i, level.min(DEEPEST))));
    };
    push(&mut pending, None, 0);
    while let Some((i, level)) = pending.pop() {
        let life = &session.threads[i];
        let id = |id: u32| i64::from(id.cast_signed());
        let comm = &session.comms[life.comm];
        line(&format!(
            "  {:8} {:8} {:8} |{:level$}{comm}",
            id(life.pid),
            id(life.tid),
            life.parent.map_or(-1, id),
            "",
        ))?;
        if maps {
            for mapping in session.final_mappings(ThreadId::from_usize(i)) {
                line(&mapping_line(session, mapping, level))?;
            }
        }
        push(&mut pending, Some(i), level + 1);
    }
    Ok(())
}

fn mapping_line(session: &Session<'_>, mapping: &Mapping, level: usize) -> String {
    let right = |bit: u8, c: char| if mapping.rights & bit != 0 { c } else { '-' };
    format!(
        "{:indent$}{:x}-{:x} {}{}{}{} {:08x} {} {}",
        "",
        mapping.range.start.0,
        mapping.range.end.0,
        right(1, 'r'),
        right(2, 'w'),
        right(4, 'x'),
        if mapping.shared { 's' } else { 'p' },
        mapping.offset.0.wrapping_add(mapping.recorded),
        mapping.inode,
        String::from_utf8_lossy(&session.dsos.get(mapping.dso).long_name),
        indent = 32 + level,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_have_perfs_columns() {
        let counts = DeliverStats {
            by_type: [(3, 1), (9, 2), (99, 1)].into(),
            ..DeliverStats::default()
        };
        assert_eq!(
            stats(
                &counts,
                &crate::ids::IndexVec::new(),
                &crate::ids::IndexVec::new()
            ),
            [
                "",
                "Aggregated stats:",
                "           TOTAL events:          4",
                "            COMM events:          1  (25.0%)",
                "          SAMPLE events:          2  (50.0%)",
                "         type 99 events:          1  (25.0%)",
            ]
        );
    }
}
