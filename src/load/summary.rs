//! Totals, header facts and the quality of the data: what is told of a recording besides its rows.

use std::hash::BuildHasher as _;

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::options::LoadOptions;
use crate::collect::Collected;
use crate::diagnostics::Diagnostics;
use crate::ids::{IndexVec, index_vec};
use crate::jit::JitIndex;
use crate::perfdata::attr::sample_type;
use crate::perfdata::{Damage, Event, Recording};
use crate::profile::{
    EventId, EventQuality, EventSummary, Holds, Part, Profile, Quality, RecordingSummary, Sampling,
    StackEnd, ThreadId,
};
use crate::run_state::RunState;
use crate::session::{SampleRef, Samples, Session};

/// The events of the recording, with what counts in totals but has no row.
pub(super) fn events_of(
    recording: &Recording<'_>,
    (session, sampled): (&Session<'_>, &Samples),
) -> IndexVec<EventId, EventSummary> {
    let events = recording.events.iter_enumerated().zip(&sampled.rowless);
    events
        .map(|((id, event), &(samples, period))| EventSummary {
            name: event.name.clone(),
            samples,
            lost: session.stats.lost_of(|of| of == id),
            period,
            // They have no rows either, and shares are those of everything.
            filtered_samples: samples,
            filtered_period: period,
            leader: event.leader,
            group_name: event.group_name.clone(),
            has_callchains: event.attr.has_callchains(),
            is_tracepoint: event.attr.is_tracepoint(),
            ring: event.attr.ring(),
            is_hardware: event.attr.is_hardware(),
            is_whole: is_whole(event, session),
            unit: event.attr.unit(),
            counted: None,
            notes: Vec::new(),
            sampling: match event.attr.sample_period {
                0 => Sampling::Unknown,
                hertz if event.attr.is_freq() => Sampling::PerSecond(hertz),
                every => Sampling::Every(every),
            },
            holds: holds(event),
        })
        .collect()
}

fn holds(event: &Event) -> Holds {
    let attr = &event.attr;
    let latency = attr.has(sample_type::WEIGHT_STRUCT);
    Holds {
        cpu: attr.has(sample_type::CPU),
        address: attr.has(sample_type::ADDR),
        data_source: attr.has(sample_type::DATA_SRC),
        cost: latency || attr.has(sample_type::WEIGHT),
        instruction_latency: latency,
        branches: attr.has(sample_type::BRANCH_STACK),
        is_raw: attr.is_raw(),
    }
}

/// Whether each time that the event happened is a sample.
fn is_whole(event: &Event, session: &Session<'_>) -> bool {
    let attr = &event.attr;
    // With the period in samples the kernel records every hit of a tracepoint.
    let is_each = !attr.is_freq()
        && (attr.sample_period == 1 || attr.is_tracepoint() && attr.has(sample_type::PERIOD));
    is_each && session.stats.lost() == 0
}

/// How well the samples of each event are known. What names have is added with the profile.
pub(super) fn quality_of_events(
    recording: &Recording<'_>,
    collected: &Collected,
    jit: &JitIndex<'_>,
) -> IndexVec<EventId, EventQuality> {
    let mut all = index_vec![EventQuality::default(); recording.events.len()];
    for row in &collected.rows {
        let end = collected.stacks.tag(row.key.stack);
        let quality = &mut all[row.key.event];
        quality.periods[end] = quality.periods[end].saturating_add(row.period);
        quality.ends[end] = quality.ends[end].saturating_add(row.samples);
    }
    collected.doubtful(jit, |row, is_own| {
        if is_own {
            all[row.key.event].doubtful_samples += row.samples;
        }
    });
    all
}

/// Fills in totals and header facts.
pub(super) fn summarise(
    profile: &mut Profile,
    recording: &Recording<'_>,
    (session, samples): (&Session<'_>, &Samples),
    mut known: IndexVec<EventId, EventQuality>,
    options: &LoadOptions,
) {
    let mut quality = Quality {
        dumps: session.jit.summary(),
        kernel: session.dsos.kernel_source().unwrap_or_default().to_owned(),
        ..Quality::default()
    };
    let mut events = std::mem::take(&mut profile.events);
    known.resize(events.len(), EventQuality::default());
    for portion in profile.portions() {
        let event = &mut events[portion.event];
        event.samples += portion.samples;
        event.period = event.period.wrapping_add(portion.period);
        let known = &mut known[portion.event];
        known.samples += portion.samples;
        if profile[portion.leaf].symbol.is_none() {
            known.unresolved_samples += portion.samples;
        }
    }
    profile.events = events;
    quality.events = known;
    profile.quality = quality;
    profile.recording = RecordingSummary {
        path: options.source.name(),
        parts: vec![Part {
            path: options.source.name(),
            name: options.source.name(),
            host: recording.features.hostname.clone().unwrap_or_default(),
            arch: recording.features.arch.clone().unwrap_or_default(),
            samples: profile.quality.samples(),
            whole: None,
        }],
        lost_samples: session.stats.lost_samples_total(),
        lost: session.stats.lost(),
        idle_cpus: idle_cpus(session, samples),
        lost_chunks: session.stats.lost_chunks,
        lost_at: {
            let mut times: Vec<u64> = session.lost_at.iter().map(|time| time.0).collect();
            times.sort_unstable();
            times
        },
        records: session.stats.records,
        header: recording.header_lines(options.full_header),
        time_range: time_range(samples, &options.filter.times),
        chosen_ns: chosen(session, &options.filter.times),
        // Where no times were recorded all are 0.
        begin: session
            .seen
            .and_then(|(first, last)| (last > 0).then_some(first)),
        chosen: None,
        wall_clock: recording
            .features
            .clock_data
            .map(|data| (data.wall_ns, data.clock_ns)),
        sockets: recording
            .features
            .cpu_topology
            .iter()
            .flat_map(|topology| topology.cpus.iter().map(|place| place.socket))
            .collect(),
        counters: session
            .counters
            .iter()
            .filter(|counter| usize::from(counter.event.0) < profile.events.len())
            .map(|c| (c.pid, c.tid, usize::from(c.event.0), c.value))
            .collect(),
        command: recording.features.cmdline.clone(),
        switches: session.switches,
        tells_switches: recording
            .events
            .iter()
            .any(|event| event.attr.is_context_switch()),
        holds_totals: session.stats.holds_counts(),
        trace: session.stats.trace,
        has_branches: recording.has_branches(),
        series: series(recording),
        is_unfinished: session.stats.damage == Some(Damage::Unfinished),
        status: None,
        used: None,
        asked: Vec::new(),
        digest: None,
    };
}

/// What slices of one recording have in common and nothing else has.
fn series(recording: &Recording<'_>) -> Option<u64> {
    let ids = || recording.events.iter().map(|event| &event.ids);
    if ids().all(Vec::is_empty) {
        return None;
    }
    let features = &recording.features;
    let whose = (&features.hostname, &features.cmdline);
    Some(FxBuildHasher.hash_one((whose, ids().collect::<Vec<_>>())))
}

/// Processors that the idle task was met on.
fn idle_cpus(session: &Session<'_>, samples: &Samples) -> usize {
    let threads = session.threads.iter();
    let is_idle: IndexVec<ThreadId, bool> = threads.map(|thread| thread.is_idle()).collect();
    if !is_idle.raw.contains(&true) {
        return 0;
    }
    let idle = samples
        .all
        .iter()
        .filter(|sample| is_idle[sample.thread] && sample.cpu >= 0);
    let cpus: FxHashSet<i32> = idle.map(|sample| sample.cpu).collect();
    cpus.len()
}

/// From the first sample to the last, or to the end of the last wait, within the chosen times: samples of waits are where these
/// begin, and those of threads may stand one thread behind the other. What `perf record --off-cpu` adds up until the end has numbers
/// in place of times.
fn time_range(samples: &Samples, chosen: &[(u64, u64)]) -> Option<(u64, u64)> {
    let timed = || samples.all.iter().filter(|sample| sample.time.is_time());
    let has_waits = timed().next()?.state != RunState::Unknown;
    let end = |sample: &SampleRef| match sample.state.frame() {
        Some(_) if has_waits => sample.time.0.saturating_add(sample.period),
        _ => sample.time.0,
    };
    let (first, last) = timed().fold((u64::MAX, 0), |(first, last), sample| {
        (first.min(sample.time.0), last.max(end(sample)))
    });
    let from = chosen.iter().map(|(from, _)| *from).min();
    let to = chosen.iter().map(|(_, to)| *to).max();
    let (first, last) = (
        first.max(from.unwrap_or(0)),
        last.min(to.unwrap_or(u64::MAX)),
    );
    // Where no times were recorded all are 0.
    (last > 0).then_some((first, last))
}

/// How long the chosen times are together, as far as there are samples; nothing where nobody chose.
fn chosen(session: &Session<'_>, times: &[(u64, u64)]) -> Option<u64> {
    let (first, last) = session.seen?;
    let length = |&(from, to): &(u64, u64)| to.min(last).saturating_sub(from.max(first));
    (!times.is_empty()).then(|| times.iter().map(length).fold(0, u64::saturating_add))
}

/// Says how many stacks were completed from others. Tables and exports do not show which.
pub(super) fn warn_of_inference(quality: &Quality, diag: &Diagnostics) {
    let figures = quality.figures(None);
    if figures.stitched() > 0 {
        let share = 100.0 * figures.stitched() as f64 / figures.stack_ends.total() as f64;
        let error = 100.0 * quality.stitch_error;
        diag.warn(format!(
            "{share:.2}% of the weight has stacks that were completed from other samples (--stitch), an inference \
             with an estimated error of {error:.1}%"
        ));
    }
}

/// Says why stacks ended early, and what to record differently where that would help.
pub(super) fn report_quality(quality: &Quality, diag: &Diagnostics) {
    let figures = quality.figures(None);
    /// Per cent of the weight from which a warning is worth a line.
    const WORTH_SAYING: f64 = 1.0;
    let ends: Vec<String> = figures
        .ends()
        .map(|(end, share)| format!("{} {share:.2}%", end.label()))
        .collect();
    diag.note(format!("stacks: {}", ends.join(", ")));
    let cut = figures
        .ends()
        .filter(|(end, _)| end.recorded() == StackEnd::DumpTooShort);
    let share: f64 = cut.map(|(_, share)| share).sum();
    if share >= WORTH_SAYING {
        diag.warn(format!(
            "{share:.1}% of the weight has stacks larger than what was recorded of them; \
             pjit check tells how to record them"
        ));
    }
}
