//! What the file says of the recording, and how its markers are shown.

use serde_json::{Value, json};

use super::super::caption::{Caption, lost_by_event, recorded};
use super::super::text::harmless;
use super::FirefoxOptions;
use super::threads::{Scale, Weight};
use super::tracks::{Owner, Track};
use crate::profile::{EventSummary, Profile, Sampling};
use crate::unit::Unit;

/// Threads that are shown at first.
const VISIBLE: usize = 20;

pub(super) fn meta(
    profile: &Profile,
    options: FirefoxOptions,
    tracks: &[Track],
    scale: &Scale,
    categories: Value,
) -> Value {
    let mut heaviest = heaviest(tracks);
    let selected = heaviest.first().copied().into_iter().collect::<Vec<_>>();
    let when = tracks.iter().position(|track| track.owner == Owner::When);
    heaviest.extend(when.filter(|at| !heaviest.contains(at)));
    json!({
        "version": 24,
        "preprocessedProfileVersion": 66,
        "interval": interval(profile, options, tracks),
        "startTime": start_time(profile, scale),
        "profilingStartTime": 0,
        "profilingEndTime": end_time(tracks, scale),
        "processType": 0,
        "product": recorded(profile),
        "importedFrom": concat!("Linux perf, by pjit ", env!("CARGO_PKG_VERSION")),
        "oscpu": oscpu(profile),
        "stackwalk": 1,
        "debug": false,
        "symbolicated": true,
        "sourceCodeIsNotOnSearchfox": true,
        "categories": categories,
        "markerSchema": schemas(),
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
        "initialSelectedThreads": selected,
        "initialVisibleThreads": heaviest,
        "keepProfileThreadOrder": options.per_cpu,
        "extra": [{ "label": "Recording", "entries": facts(profile, options, scale) }],
    })
}

/// The heaviest tracks, the heaviest first.
fn heaviest(tracks: &[Track]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tracks.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(tracks[*at].weight), *at));
    order.truncate(VISIBLE);
    order
}

/// Milliseconds between two samples of what runs all the time.
fn interval(profile: &Profile, options: FirefoxOptions, tracks: &[Track]) -> f64 {
    let event = &profile[options.event];
    match event.sampling {
        Sampling::PerSecond(hertz) if hertz > 0 => 1000.0 / hertz as f64,
        Sampling::Every(period) if event.unit == Unit::Nanoseconds => period as f64 / 1e6,
        _ => mean_interval(tracks),
    }
}

/// The mean of the track with most samples.
fn mean_interval(tracks: &[Track]) -> f64 {
    let longest = tracks
        .iter()
        .map(|track| &track.hits)
        .max_by_key(|hits| hits.len());
    let ends = longest.and_then(|hits| Some((hits.first()?, hits.last()?, hits.len())));
    match ends {
        Some((first, last, count)) if last.time > first.time => {
            (last.time - first.time) as f64 / 1e6 / (count - 1) as f64
        }
        _ => 1.0,
    }
}

/// The file's time 0 in ms since 1970; 0 where the recording does not tell.
fn start_time(profile: &Profile, scale: &Scale) -> f64 {
    let Some((wall, clock)) = profile.recording.wall_clock else {
        return 0.0;
    };
    let start = i128::from(wall) + i128::from(scale.start) - i128::from(clock);
    start.max(0) as f64 / 1e6
}

/// The end of the last thing that happened in ms, and never 0, which would be none.
fn end_time(tracks: &[Track], scale: &Scale) -> f64 {
    let hits = tracks.iter().flat_map(|track| &track.hits);
    let markers = tracks.iter().flat_map(|track| &track.markers);
    let ends = markers.map(|marker| marker.to.unwrap_or(marker.from));
    let end = ends.chain(hits.map(|hit| hit.time)).max();
    let ns = end.unwrap_or(0).saturating_sub(scale.start) + 1_000_000;
    ns as f64 / 1e6
}

fn oscpu(profile: &Profile) -> String {
    let parts = ["os release", "arch"].map(|key| profile.recording.told(key));
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    harmless(&format!("Linux {}", parts.join(" "))).into_owned()
}

fn facts(profile: &Profile, options: FirefoxOptions, scale: &Scale) -> Value {
    let caption = Caption::of(profile, options.event);
    let event = &profile[options.event];
    let mut facts = vec![
        ("Samples", caption.shown),
        ("Weight of a sample", weight(event, scale).to_owned()),
        ("Quality", caption.quality),
    ];
    if !caption.others.is_empty() {
        facts.push(("Events shown as markers", caption.others.join(", ")));
    }
    let lost = lost_by_event(profile).into_iter();
    facts.extend(lost.map(|(_, words)| ("Lost", words)));
    let notes = event.notes.iter().map(|note| harmless(note).into_owned());
    facts.extend(notes.map(|note| ("Note", note)));
    let fact = |(label, value)| json!({ "label": label, "format": "string", "value": value });
    facts.into_iter().map(fact).collect()
}

fn weight(event: &EventSummary, scale: &Scale) -> &'static str {
    match (scale.weight, event.unit) {
        (Weight::One, Unit::Blocks) => "1: each is a block",
        (Weight::One, _) => "1: all periods are equal",
        (Weight::Time, _) => "its period in ms",
        (Weight::Bytes, _) => "its period in bytes",
        (Weight::Period, Unit::Cycles) => "its period in cycles (called samples)",
        (Weight::Period, Unit::Blocks) => "its blocks (called samples)",
        (Weight::Period, Unit::Pages) => "its pages (called samples)",
        (Weight::Period, Unit::ByteSeconds) => {
            "its bytes times their time in KiB ms (called samples)"
        }
        (Weight::Period, _) => "its period (called samples)",
    }
}

/// How markers are shown; fields are those of `threads::push_data`.
fn schemas() -> Value {
    let display = ["marker-chart", "marker-table"];
    let payload = json!({ "key": "payload", "label": "Payload", "format": "string" });
    json!([
        {
            "name": "event",
            "tooltipLabel": "{marker.name}",
            "tableLabel": "{marker.data.payload}",
            "chartLabel": "{marker.name}",
            "display": display,
            "fields": [{ "key": "period", "label": "Period", "format": "integer" }, payload],
            "description": "A sample of an event that is not the one whose samples are shown",
        },
        {
            "name": "offcpu",
            "tooltipLabel": "Off CPU: {marker.data.state}",
            "tableLabel": "{marker.data.state} {marker.data.note} {marker.data.payload}",
            "chartLabel": "{marker.data.state}",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "fields": [
                { "key": "state", "label": "State", "format": "string" },
                { "key": "note", "label": "Until", "format": "string" },
                payload,
            ],
            "description": "The thread was not on a processor, from the switch away to the switch back",
        },
        {
            "name": "renamed",
            "tooltipLabel": "Renamed to {marker.data.comm}",
            "tableLabel": "to {marker.data.comm}",
            "chartLabel": "{marker.data.comm}",
            "display": display,
            "fields": [{ "key": "comm", "label": "Name", "format": "string" }],
        },
        {
            "name": "when",
            "tooltipLabel": "{marker.name}: {marker.data.function}",
            "tableLabel": "{marker.data.function} {marker.data.thread}",
            "chartLabel": "{marker.data.function}",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "fields": [
                { "key": "function", "label": "Function", "format": "string" },
                { "key": "thread", "label": "Thread", "format": "string" },
            ],
            "description": "What pjit summary --over-time says: phases, long times of a thread in one function, and times without a sample",
        },
    ])
}
