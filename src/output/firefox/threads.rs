//! The threads of the file, column by column.

use std::fmt::Write;
use std::io;

use rustc_hash::FxHashMap;

use super::super::columns::{number, text};
use super::super::text::harmless;
use super::FirefoxOptions;
use super::category::WAITING;
use super::shared::{Stack, column, end};
use super::tracks::{Hit, Marker, Owner, Track, What};
use crate::ids::{Idx, IndexVec, numbers};
use crate::profile::{Profile, Thread, ThreadId};
use crate::unit::Unit;

/// What samples weigh in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    /// One each: their periods are equal.
    One,
    /// Their period, called samples, which is the only word the profiler has for it.
    Period,
    /// Their period in ms.
    Time,
    /// Their period in bytes.
    Bytes,
}

/// What times and weights of the file count from and in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The time that is 0 in the file.
    pub(super) start: u64,
    pub(super) weight: Weight,
    /// Samples tell how long the CPU was used.
    pub(super) is_clock: bool,
}

impl Scale {
    pub(super) fn of(profile: &Profile, options: FirefoxOptions, tracks: &[Track]) -> Self {
        let event = &profile[options.event];
        let mut periods = tracks
            .iter()
            .flat_map(|track| &track.hits)
            .map(|hit| hit.period);
        let first = periods.next();
        let is_equal = first.is_none_or(|first| first > 0 && periods.all(|period| period == first));
        // What a sample weighs is not left out where it is what was asked for.
        let is_one = first.is_none_or(|first| event.counted.is_none() || first == 1);
        let weight = match event.unit {
            _ if is_equal && is_one => Weight::One,
            Unit::Nanoseconds => Weight::Time,
            Unit::Bytes => Weight::Bytes,
            _ => Weight::Period,
        };
        Self {
            start: profile.recording.time_range.map_or(0, |(begin, _)| begin),
            weight,
            is_clock: event.unit == Unit::Nanoseconds && event.counted.is_none(),
        }
    }

    /// Milliseconds since the start; what began before began with it.
    fn time(&self, time: u64, json: &mut String) {
        milliseconds(time.saturating_sub(self.start), json);
    }
}

/// Nanoseconds as milliseconds, exactly.
fn milliseconds(ns: u64, json: &mut String) {
    number(ns / 1_000_000, json);
    let fraction = ns % 1_000_000;
    if fraction > 0 {
        // The digit before keeps the zeros behind it.
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(1_000_000 + fraction).trim_end_matches('0');
        json.push('.');
        json.push_str(digits.get(1..).unwrap_or_default());
    }
}

/// Which life of its number a thread and its process are: the file tells them apart by text.
pub(super) struct Lives {
    /// By thread: how many had its pid and tid before, and how many processes its pid.
    of_thread: IndexVec<ThreadId, (u32, ProcessLife)>,
    /// By pid: the first threads of its processes.
    leaders: Leaders,
}

numbers! {
    /// A process among those of its pid.
    struct ProcessLife(u32);
}

type Leaders = FxHashMap<u32, IndexVec<ProcessLife, ThreadId>>;

impl Lives {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut leaders: Leaders = FxHashMap::default();
        for (id, thread) in profile.threads.iter_enumerated() {
            if thread.pid == thread.tid {
                leaders.entry(thread.pid).or_default().push(id);
            }
        }
        let mut seen: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let of_thread = profile.threads.iter().map(|thread| {
            let before = seen.entry((thread.pid, thread.tid)).or_default();
            let own = *before;
            *before += 1;
            (own, process(profile, thread, &leaders))
        });
        Self {
            of_thread: of_thread.collect(),
            leaders,
        }
    }

    fn numbers(&self, id: ThreadId) -> (u32, ProcessLife) {
        self.of_thread[id]
    }

    /// The first thread of a thread's process.
    fn leader(&self, profile: &Profile, id: ThreadId) -> Option<ThreadId> {
        let leaders = self.leaders.get(&profile[id].pid)?;
        leaders.get(self.numbers(id).1).copied()
    }
}

/// Which of the processes of its pid a thread belongs to: the last that was there when it began.
fn process(profile: &Profile, thread: &Thread, leaders: &Leaders) -> ProcessLife {
    let Some(leaders) = leaders.get(&thread.pid) else {
        return ProcessLife(0);
    };
    let start = thread.start.unwrap_or(0);
    let began = leaders
        .iter()
        .filter(|id| profile[**id].start.unwrap_or(0) <= start);
    ProcessLife::from_usize(began.count().saturating_sub(1))
}

/// `12`, and `12.2` for the second life of the number.
fn life(id: u32, before: u32) -> String {
    let id = id.cast_signed();
    match before {
        0 => id.to_string(),
        before => format!("{id}.{}", before + 1),
    }
}

/// One thread; its end stays in `json`.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn write(
    profile: &Profile,
    track: &Track,
    (lives, scale): (&Lives, &Scale),
    json: &mut String,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    json.push_str("{\"processType\":\"default\",\"pausedRanges\":[],");
    match track.owner {
        Owner::Thread(id) => push_thread(profile, id, lives, scale, json),
        Owner::Cpu(cpu) => {
            let name = cpu.map_or("CPU unknown".to_owned(), |cpu| format!("CPU {cpu}"));
            let tid = cpu.map_or("-1".to_owned(), |cpu| cpu.to_string());
            push_made((&name, &tid), ("CPUs", "CPU"), json);
        }
        Owner::When => push_made(("Over time", "\"when\""), ("Over time", "when"), json),
    }
    write_samples(&track.hits, scale, json, out)?;
    json.push(',');
    write_markers(&track.markers, scale, json, out)?;
    json.push('}');
    Ok(())
}

fn push_thread(profile: &Profile, id: ThreadId, lives: &Lives, scale: &Scale, json: &mut String) {
    let thread = &profile[id];
    let (own, ProcessLife(process)) = lives.numbers(id);
    let leader = lives.leader(profile, id).map_or(thread, |id| &profile[id]);
    let name = |of: &Thread| harmless(&profile[of.comm]).into_owned();
    for (key, value) in [
        ("name", name(thread)),
        ("processName", name(leader)),
        ("pid", life(thread.pid, process)),
    ] {
        text(key, json);
        json.push(':');
        text(&value, json);
        json.push(',');
    }
    json.push_str("\"tid\":");
    match own {
        0 => json.push_str(&life(thread.tid, 0)),
        own => text(&life(thread.tid, own), json),
    }
    let _ = write!(json, ",\"isMainThread\":{}", thread.pid == thread.tid);
    for (key, time) in [
        ("processStartupTime", leader.start.or(Some(0))),
        ("processShutdownTime", leader.end),
        ("registerTime", thread.start.or(Some(0))),
        ("unregisterTime", thread.end),
    ] {
        let _ = write!(json, ",\"{key}\":");
        match time {
            Some(time) => scale.time(time, json),
            None => json.push_str("null"),
        }
    }
    json.push(',');
}

/// What is no thread, of what is no process. The number is JSON.
fn push_made((name, tid): (&str, &str), (process, pid): (&str, &str), json: &mut String) {
    let _ = write!(
        json,
        "\"name\":\"{name}\",\"processName\":\"{process}\",\"pid\":\"{pid}\",\"tid\":{tid},\"isMainThread\":false,\
         \"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
    );
}

fn write_samples(
    hits: &[Hit],
    scale: &Scale,
    json: &mut String,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    json.push_str("\"samples\":{");
    column("stack", hits, json, out, |hit, json| {
        number(hit.stack.index() as u64, json)
    })?;
    let mut last = scale.start;
    column("timeDeltas", hits, json, out, |hit, json| {
        milliseconds(hit.time.saturating_sub(last), json);
        last = last.max(hit.time);
    })?;
    let word = match scale.weight {
        Weight::One | Weight::Period => "samples",
        Weight::Time => "tracing-ms",
        Weight::Bytes => "bytes",
    };
    let _ = write!(json, "\"weightType\":\"{word}\",");
    match scale.weight {
        Weight::One => json.push_str("\"weight\":null,"),
        Weight::Time => column("weight", hits, json, out, |hit, json| {
            milliseconds(hit.period, json)
        })?,
        _ => column("weight", hits, json, out, |hit, json| {
            number(hit.period, json)
        })?,
    }
    if scale.is_clock {
        column("threadCPUDelta", hits, json, out, |hit, json| {
            number(if hit.is_idle { 0 } else { hit.period }, json);
        })?;
    }
    end(hits.len(), json);
    Ok(())
}

fn write_markers(
    markers: &[Marker],
    scale: &Scale,
    json: &mut String,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    json.push_str("\"markers\":{");
    column("name", markers, json, out, |marker, json| {
        number(marker.name.0.into(), json)
    })?;
    column("startTime", markers, json, out, |marker, json| {
        scale.time(marker.from, json)
    })?;
    column("endTime", markers, json, out, |marker, json| {
        match marker.to {
            Some(to) => scale.time(to, json),
            None => json.push_str("null"),
        }
    })?;
    // Instants and intervals.
    column("phase", markers, json, out, |marker, json| {
        json.push(if marker.to.is_some() { '1' } else { '0' });
    })?;
    column(
        "category",
        markers,
        json,
        out,
        |marker, json| match marker.what {
            What::OffCpu { .. } => number(WAITING.into(), json),
            _ => json.push('0'),
        },
    )?;
    column("data", markers, json, out, |marker, json| {
        push_data(marker, scale, json)
    })?;
    end(markers.len(), json);
    Ok(())
}

/// What is told of a marker, by the schemas in [`super::meta`].
fn push_data(marker: &Marker, scale: &Scale, json: &mut String) {
    match &marker.what {
        What::Event {
            period,
            payload,
            stack,
        } => {
            let _ = write!(json, "{{\"type\":\"event\",\"period\":{period}");
            push_payload(payload.as_deref(), json);
            push_cause(marker, Some(*stack), scale, json);
        }
        What::OffCpu {
            state,
            payload,
            stack,
            until,
        } => {
            json.push_str("{\"type\":\"offcpu\",\"state\":");
            text(state, json);
            if let Some(until) = until {
                json.push_str(",\"note\":");
                text(until, json);
            }
            push_payload(payload.as_deref(), json);
            push_cause(marker, *stack, scale, json);
        }
        What::Renamed(comm) => {
            json.push_str("{\"type\":\"renamed\",\"comm\":");
            text(comm, json);
        }
        What::When { thread, function } => {
            json.push_str("{\"type\":\"when\",\"thread\":");
            text(thread, json);
            json.push_str(",\"function\":");
            text(function, json);
        }
    }
    json.push('}');
}

fn push_payload(payload: Option<&str>, json: &mut String) {
    if let Some(payload) = payload {
        json.push_str(",\"payload\":");
        text(payload, json);
    }
}

fn push_cause(marker: &Marker, stack: Option<Stack>, scale: &Scale, json: &mut String) {
    if let Some(stack) = stack {
        json.push_str(",\"cause\":{\"time\":");
        scale.time(marker.from, json);
        json.push_str(",\"stack\":");
        number(stack.index() as u64, json);
        json.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact() {
        let shown = |ns| {
            let mut json = String::new();
            milliseconds(ns, &mut json);
            json
        };
        let all = [0, 1, 1_000_000, 1_500_000, 10_000_000_001].map(shown);
        assert_eq!(all, ["0", "0.000001", "1", "1.5", "10000.000001"]);
    }
}
