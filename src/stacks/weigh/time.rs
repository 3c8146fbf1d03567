//! Presets of time: `offcpu`, `blocked`, `runnable`, `oncpu`, `wall`.
//!
//! In: what [`super::waits`] paired. Out: a sample for each interval of waiting, at the time and with the stack of its
//! beginning, and the samples of the clock with each thread's time on a processor.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::events::{apart, is_clock, is_offcpu_time, is_tracepoint, which};
use super::fields::{have_chains, keep_chosen};
use super::made::{self, Labels, within};
use super::oncpu::{Ran, spread};
use super::read::Source;
use super::spec::Waits;
use super::timeline::{Story, tids};
use super::waits::{Evidence, Interval, Lives, SwitchFields, has_switches, pair};
use super::{Derived, Options, Pairs, WeighError, Weighed};
use crate::diagnostics::Diagnostics;
use crate::ids::{Idx, IndexSlice};
use crate::perfdata::{Event, EventId, Recording};
use crate::run_state::RunState;
use crate::session::{Filter, Label, SampleRef, Samples, Session};
use crate::unit::Unit;

/// The tracepoint.
const SWITCH: &str = "sched:sched_switch";
/// How long a thread ran, told when it goes and at times in between.
const RUNTIME: &str = "sched:sched_stat_runtime";

/// `--weight offcpu`, `blocked` and `runnable`.
pub(super) fn waits(
    source: Source<'_, '_>,
    samples: &mut Samples,
    waits: Waits,
    options: &Options,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let recording = source.recording;
    let is_switch = which(recording, |event| is_tracepoint(event, SWITCH));
    if !is_switch.contains(&true) {
        return from_bpf(recording, samples, waits, &options.text, filter);
    }
    let lives = paired(source, samples, &is_switch);
    refuse_bounds(source, samples, &lives, waits, &options.text)?;
    let mut labels = Labels::default();
    let chosen: Vec<Interval> = lives
        .intervals
        .iter()
        .filter(|interval| is_wanted(interval, waits) && !is_idle(source.session, interval))
        .copied()
        .collect();
    warn_of_bounds(source, &chosen, waits, &options.text);
    // Who waited all the time did not wait for a processor.
    if waits != Waits::Runnable {
        warn_of_silent(source, &lives, &options.text);
    }
    let quality = quality(&chosen);
    let waiting = samples_of(samples, &chosen, options, filter, &mut labels);
    let what = match waits {
        Waits::OffCpu => "offcpu (time between switch-out and switch-in)",
        Waits::Blocked => "blocked (time between switch-out in a wait and switch-in)",
        Waits::Runnable => "runnable (time between preemption and switch-in)",
    };
    let threads = threads_in(&waiting);
    let total: u64 = sum(&waiting);
    let lines = vec![format!(
        "Waits: {} in {} intervals of {threads} threads",
        Unit::Nanoseconds.human(total),
        waiting.len()
    )];
    samples.all = waiting.into();
    samples.labels = labels.texts;
    Ok(Weighed {
        event: Some(Derived {
            name: what.to_owned(),
            unit: Unit::Nanoseconds,
            counted: "intervals",
            lines,
            has_callchains: have_chains(recording, &is_switch),
        }),
        quality: vec![quality],
        ..Weighed::default()
    })
}

/// `--weight oncpu`.
pub(super) fn oncpu(
    source: Source<'_, '_>,
    samples: &mut Samples,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let recording = source.recording;
    let is_switch = which(recording, |event| is_tracepoint(event, SWITCH));
    let lives = paired(source, samples, &is_switch);
    let sampled = running_events(source, samples);
    let mut labels = Labels::default();
    let Some(running) = on_cpu(
        source,
        samples,
        &lives,
        (&sampled, filter, false),
        &mut labels,
    ) else {
        let text = "--weight oncpu: neither a clock event nor switches were recorded \
                    (pjit record --perf=--switch-events)";
        return Err(WeighError(text.to_owned()));
    };
    let line = on_cpu_line(&running, source.session, samples, filter);
    samples.all = running.into();
    samples.labels = labels.texts;
    Ok(Weighed {
        event: Some(Derived {
            name: "oncpu (time on a processor)".to_owned(),
            unit: Unit::Nanoseconds,
            counted: "samples",
            lines: vec![line],
            has_callchains: have_chains(recording, &sampled),
        }),
        ..Weighed::default()
    })
}

/// `--weight wall`.
pub(super) fn wall(
    source: Source<'_, '_>,
    samples: &mut Samples,
    options: &Options,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let recording = source.recording;
    let is_switch = which(recording, |event| is_tracepoint(event, SWITCH));
    if !is_switch.contains(&true) {
        let text = "--weight wall needs samples of sched:sched_switch, and none were recorded (pjit record --offcpu)";
        return Err(WeighError(text.to_owned()));
    }
    let lives = paired(source, samples, &is_switch);
    refuse_bounds(source, samples, &lives, Waits::OffCpu, &options.text)?;
    let sampled = running_events(source, samples);
    let mut labels = Labels::default();
    let Some(running) = on_cpu(
        source,
        samples,
        &lives,
        (&sampled, filter, true),
        &mut labels,
    ) else {
        let text = "--weight wall: neither a clock event nor switches were recorded \
                    (pjit record --perf=--switch-events)";
        return Err(WeighError(text.to_owned()));
    };
    let chosen: Vec<Interval> = lives
        .intervals
        .iter()
        .filter(|interval| !is_idle(source.session, interval))
        .copied()
        .collect();
    warn_of_silent(source, &lives, &options.text);
    let quality = quality(&chosen);
    let waiting = samples_of(samples, &chosen, options, filter, &mut labels);
    let on = on_cpu_line(&running, source.session, samples, filter);
    let off = format!("Off CPU: {}", Unit::Nanoseconds.human(sum(&waiting)));
    let mut all = running;
    all.extend(waiting);
    all.sort_by_key(|sample| sample.time);
    samples.all = all.into();
    samples.labels = labels.texts;
    let chained: Vec<bool> = is_switch
        .iter()
        .zip(&sampled)
        .map(|(a, b)| *a || *b)
        .collect();
    Ok(Weighed {
        event: Some(Derived {
            name: "wall (time of threads, running or not)".to_owned(),
            unit: Unit::Nanoseconds,
            counted: "samples",
            lines: vec![on, off],
            has_callchains: have_chains(recording, &chained),
        }),
        quality: vec![quality],
        ..Weighed::default()
    })
}

/// The intervals of waiting of all threads but the idle ones. A wait for a processor is short: where its end is a bound, most of it
/// is time on one.
pub(super) fn intervals(source: Source<'_, '_>, samples: &Samples) -> Vec<Interval> {
    let is_switch = which(source.recording, |event| is_tracepoint(event, SWITCH));
    // Of threads that were made, too, nothing tells when they ran.
    if !is_switch.contains(&true) && !has_switches(&source.session.marks) {
        return Vec::new();
    }
    let mut lives = paired(source, samples, &is_switch);
    let is_running = |i: &Interval| i.evidence == Evidence::Bound && i.state == RunState::Runnable;
    lives
        .intervals
        .retain(|i| !is_idle(source.session, i) && !i.is_lost && !is_running(i) && i.to > i.from);
    lives.intervals
}

/// How well switches away belong to switches back.
pub(super) fn pairs(source: Source<'_, '_>, samples: &Samples) -> Option<Pairs> {
    let is_switch = which(source.recording, |event| is_tracepoint(event, SWITCH));
    if !is_switch.contains(&true) {
        return None;
    }
    // What is to be said of it is in other lines.
    let quiet = Diagnostics::new();
    let source = Source {
        diag: &quiet,
        ..source
    };
    let lives = paired(source, samples, &is_switch);
    let waits: Vec<Interval> = lives
        .intervals
        .iter()
        .filter(|interval| !is_idle(source.session, interval))
        .copied()
        .collect();
    let is_bound = |interval: &&Interval| {
        matches!(interval.evidence, Evidence::Bound | Evidence::Open)
            || interval.sample.is_none() && !interval.is_start
    };
    Some(Pairs {
        text: quality(&waits),
        all: waits.len() as u64,
        without: waits.iter().filter(is_bound).count() as u64,
        harms: false,
        is_blind: false,
    })
}

/// `perf record --off-cpu`: its periods are the times already.
fn from_bpf(
    recording: &Recording<'_>,
    samples: &mut Samples,
    waits: Waits,
    text: &str,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let chosen = which(recording, is_offcpu_time);
    if !chosen.contains(&true) {
        return Err(WeighError(format!(
            "--weight {text}: neither sched:sched_switch nor offcpu-time (pjit record --offcpu)"
        )));
    }
    if waits != Waits::OffCpu {
        return Err(WeighError(format!(
            "--weight {text}: offcpu-time does not tell why threads waited (--weight offcpu)"
        )));
    }
    let has_callchains = have_chains(recording, &chosen);
    keep_chosen(samples, &chosen);
    samples.all.retain(|s| filter.keeps_at(s.time.0, cpu_of(s)));
    Ok(Weighed {
        event: Some(Derived {
            name: "offcpu (offcpu-time)".to_owned(),
            unit: Unit::Nanoseconds,
            counted: "samples",
            lines: Vec::new(),
            has_callchains,
        }),
        ..Weighed::default()
    })
}

fn cpu_of(sample: &SampleRef) -> Option<u32> {
    u32::try_from(sample.cpu).ok()
}

/// Reads the payloads of switches and pairs them.
fn paired(source: Source<'_, '_>, samples: &Samples, is_switch: &[bool]) -> Lives {
    let recording = source.recording;
    let tracepoints = &recording.tracepoints;
    let states: Mutex<FxHashMap<i128, Option<RunState>>> = Mutex::default();
    let tells = |event: &Event| is_tracepoint(event, SWITCH) || is_tracepoint(event, RUNTIME);
    let is_read = which(recording, tells);
    let fields = source.read(samples.all.as_raw_slice(), &is_read, |event, sample| {
        let (id, raw) = (event.attr.config, sample.raw?);
        let number = |name: &str| tracepoints.field(id, name)?.number(raw);
        if is_tracepoint(event, RUNTIME) {
            let ran = u64::try_from(number("runtime")?).ok()?;
            return Some(SwitchFields {
                ran,
                ..SwitchFields::default()
            });
        }
        let state = number("prev_state")?;
        let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
        let state = *states.entry(state).or_insert_with(|| {
            let text = tracepoints.field_text(id, "prev_state", raw, &|_| None);
            state_of(&text.unwrap_or_default())
        });
        let pid = |name: &str| number(name).and_then(|pid| u32::try_from(pid).ok());
        Some(SwitchFields {
            prev: pid("prev_pid")?,
            next: pid("next_pid")?,
            state,
            ran: 0,
        })
    });
    let tids = tids(source.session);
    let lives = pair(
        Story::of(source.session, samples, &tids),
        is_switch,
        IndexSlice::new(&fields),
    );
    if lives.is_foreign {
        source.diag.note(
            "the pids in sched:sched_switch are those of another pid namespace; \
             threads were told by those that were switched away from"
                .to_owned(),
        );
    }
    warn_of_frequency(source, is_switch);
    lives
}

/// A thread that waits all the time leaves no record of that. Of a whole machine there are hundreds, which nobody asked about.
fn warn_of_silent(source: Source<'_, '_>, lives: &Lives, text: &str) {
    let count = lives.silent;
    if count == 0 || lives.is_wide {
        return;
    }
    let threads = if count == 1 { "thread" } else { "threads" };
    source.diag.warn(format!(
        "--weight {text}: {count} {threads} never ran while it was recorded, and waited all the time: not in these figures"
    ));
}

/// What letters of the kernel mean; `None` for threads that end.
fn state_of(letters: &str) -> Option<RunState> {
    let first = letters.split('|').next().unwrap_or_default();
    match first.trim_end_matches('+') {
        "R" => Some(RunState::Runnable),
        "X" | "Z" => None,
        "D" => Some(RunState::BlockedIo),
        _ => Some(RunState::Blocked),
    }
}

/// A frequency on the command line makes perf sample switches, too.
fn warn_of_frequency(source: Source<'_, '_>, is_switch: &[bool]) {
    let events = source.recording.events.iter().zip(is_switch);
    let mut switches = events.filter(|(_, is_marked)| **is_marked);
    let is_sampled = switches.any(|(e, _)| e.attr.is_freq() || e.attr.sample_period != 1);
    if is_sampled {
        source.diag.warn(
            "sched:sched_switch was sampled, not recorded each time: waits without a stack are in [no switch stack] \
             (give the other event its own frequency: -e cpu-clock/freq=997/, and no -F)"
                .to_owned(),
        );
    }
}

/// Whether samples of anything besides switches could have ended a wait.
fn has_other_samples(samples: &Samples, recording: &Recording<'_>) -> bool {
    let is_switch = which(recording, |event| is_tracepoint(event, SWITCH));
    let mut samples = samples.all.iter();
    samples.any(|sample| !is_switch[sample.event.index()])
}

/// Waits for a processor are short: what only bounds them from above is mostly running time.
fn refuse_bounds(
    source: Source<'_, '_>,
    samples: &Samples,
    lives: &Lives,
    waits: Waits,
    text: &str,
) -> Result<(), WeighError> {
    let is_known = lives.knows_running() || has_other_samples(samples, source.recording);
    if is_known || waits == Waits::Blocked {
        return Ok(());
    }
    Err(WeighError(format!(
        "--weight {text}: switch-in was not recorded (--switch-events); --weight blocked can be had"
    )))
}

fn warn_of_bounds(source: Source<'_, '_>, chosen: &[Interval], waits: Waits, text: &str) {
    let bounds = chosen
        .iter()
        .filter(|i| i.evidence == Evidence::Bound)
        .count();
    if bounds > 0 && waits == Waits::Blocked {
        source.diag.warn(format!(
            "--weight {text}: {bounds} of {} intervals are upper bounds: switch-in was not recorded (--switch-events)",
            chosen.len()
        ));
    }
}

fn is_wanted(interval: &Interval, waits: Waits) -> bool {
    let is_runnable = interval.state == RunState::Runnable;
    match waits {
        Waits::OffCpu => true,
        Waits::Blocked => !is_runnable && !interval.is_lost,
        Waits::Runnable => is_runnable,
    }
}

/// Nobody waits when the idle task does not run.
fn is_idle(session: &Session<'_>, interval: &Interval) -> bool {
    session.threads[interval.thread].tid == 0
}

/// `waits: 899 intervals, 8 without switch-out, 3 ended by a sample, 2 open`.
fn quality(intervals: &[Interval]) -> String {
    let by = |evidence| intervals.iter().filter(|i| i.evidence == evidence).count();
    let without = intervals
        .iter()
        .filter(|i| i.sample.is_none() && !i.is_start && !i.is_lost);
    let lost = intervals.iter().filter(|i| i.is_lost);
    let parts = [
        (without.count(), "without switch-out"),
        (lost.count(), "with a lost switch-out"),
        (by(Evidence::Late), "ended by a sample"),
        (by(Evidence::Bound), "upper bounds"),
        (by(Evidence::Open), "open"),
    ];
    let mut text = format!("waits: {} intervals", intervals.len());
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    text
}

/// A sample for each interval, as far as it is within the chosen times.
fn samples_of(
    recorded: &Samples,
    intervals: &[Interval],
    options: &Options,
    filter: &Filter,
    labels: &mut Labels,
) -> Vec<SampleRef> {
    let mut out = Vec::with_capacity(intervals.len());
    for interval in intervals {
        let period = within(filter, interval.from, interval.to);
        if period == 0 {
            continue;
        }
        let state = interval.state;
        let frame = state.frame().filter(|_| options.shows_states);
        let sample = match interval.sample {
            Some(number) => SampleRef {
                period,
                state,
                thread: interval.thread,
                comm: interval.comm,
                event: EventId(0),
                label: frame.map_or(Label::NONE, |frame| labels.of(frame)),
                ..recorded.all[number]
            },
            None => {
                let name = match interval {
                    Interval { is_start: true, .. } => "[start]",
                    Interval { is_lost: true, .. } => "[lost switch]",
                    _ => "[no switch stack]",
                };
                let label = labels.of(name);
                let task = (interval.thread, interval.comm);
                made::sample(task, interval.from, period, state, label)
            }
        };
        let cpus = &filter.cpus;
        if cpus.is_empty() || cpu_of(&sample).is_some_and(|cpu| cpus.contains(&cpu)) {
            out.push(sample);
        }
    }
    out
}

/// The events whose samples show where threads run: clocks, else the first that is no tracepoint. Of clocks those that count
/// nothing twice.
fn running_events(source: Source<'_, '_>, samples: &Samples) -> Vec<bool> {
    let events = &source.recording.events;
    let mut has_samples = vec![false; events.len()];
    for sample in &samples.all {
        has_samples[sample.event.index()] = true;
    }
    let clocks = which(source.recording, is_clock);
    if clocks.contains(&true) {
        let sampled: Vec<bool> = clocks
            .iter()
            .zip(&has_samples)
            .map(|(a, b)| *a && *b)
            .collect();
        let clocks = if sampled.contains(&true) {
            sampled
        } else {
            clocks
        };
        return apart(source, clocks, |_| ());
    }
    let first = (0..events.len()).find(|i| has_samples[*i] && !events[*i].attr.is_tracepoint());
    (0..events.len()).map(|i| Some(i) == first).collect()
}

/// The samples of running threads with their time, if that is known. With `whole_lives` a thread runs until the sample of
/// a switch, where it begins to wait; else until the switch.
fn on_cpu(
    source: Source<'_, '_>,
    recorded: &Samples,
    lives: &Lives,
    (sampled, filter, whole_lives): (&[bool], &Filter, bool),
    labels: &mut Labels,
) -> Option<Vec<SampleRef>> {
    let session = source.session;
    let is_idle = |sample: &SampleRef| session.threads[sample.thread].tid == 0;
    let kept = recorded.all.iter().filter(|sample| {
        sampled[sample.event.index()]
            && !is_idle(sample)
            && filter.keeps_at(sample.time.0, cpu_of(sample))
    });
    let mut samples: Vec<SampleRef> = kept.copied().collect();
    for sample in &mut samples {
        sample.event = EventId(0);
        sample.state = RunState::OnCpu;
    }
    if !lives.knows_running() || !filter.cpus.is_empty() {
        let clocks = which(source.recording, is_clock);
        return clocks.contains(&true).then_some(samples);
    }
    let mut ran = vec![Ran::default(); session.threads.len()];
    for stretch in &lives.stretches {
        let ran = &mut ran[stretch.thread.index()];
        let to = if whole_lives {
            stretch.sampled
        } else {
            stretch.to
        };
        if ran.time == 0 {
            ran.from = stretch.from;
        }
        ran.time = ran.time.saturating_add(within(filter, stretch.from, to));
    }
    ran[0] = Ran::default();
    Some(spread(session, samples, &ran, labels))
}

fn sum(samples: &[SampleRef]) -> u64 {
    let periods = samples.iter().map(|sample| sample.period);
    periods.fold(0, u64::saturating_add)
}

fn threads_in(samples: &[SampleRef]) -> usize {
    let mut threads: Vec<_> = samples.iter().map(|sample| sample.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    threads.len()
}

/// `On CPU: 0.901 s in 9 threads over 2.74 s (0.33 CPUs)`.
fn on_cpu_line(
    running: &[SampleRef],
    session: &Session<'_>,
    samples: &Samples,
    filter: &Filter,
) -> String {
    let times = samples.all.iter().map(|sample| sample.time.0);
    let times = times.chain(session.marks.iter().map(|mark| mark.time.0));
    let (first, last) = times.fold((u64::MAX, 0), |(first, last), time| {
        (first.min(time), last.max(time))
    });
    let span = within(filter, first, last);
    let total = sum(running);
    let seconds = |ns| Unit::Nanoseconds.human(ns);
    let (on, threads) = (seconds(total), threads_in(running));
    let mut line = format!("On CPU: {on} in {threads} threads over {}", seconds(span));
    if span > 0 {
        line.push_str(&format!(" ({:.2} CPUs)", total as f64 / span as f64));
    }
    line
}
