//! speedscope's own format (`file-format-schema.json` of speedscope 1.x): a profile for each thread and event.
//!
//! In: a profile of samples, for profiles in the order of times, or of rows, for one entry a stack. Sums of weights are the
//! profile's end, as its reader demands.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::text::harmless;
use crate::profile::{CommId, EventId, FrameId, Profile, StackId, ThreadId};
use crate::unit::Unit;

/// Larger files are not opened by browsers, whose strings end at 512 MB.
pub const LARGEST: usize = 400 << 20;

/// Frames, root first, and the weight.
type Weighed = (Vec<u32>, u64);

/// One thread's samples of one event.
struct Lane {
    event: EventId,
    thread: ThreadId,
    comm: CommId,
    samples: Vec<Weighed>,
    total: u64,
}

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Profiles in it.
    pub profiles: usize,
    /// Bytes of it.
    pub bytes: usize,
}

/// Writes the file; nothing is written that is larger than [`LARGEST`].
///
/// # Errors
/// When `out` cannot be written.
pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<Written> {
    let mut frames = Frames::new(profile);
    let lanes = lanes(profile, &mut frames);
    let active = lanes.iter().enumerate().max_by_key(|(at, lane)| {
        // Of equal ones the first.
        (lane.total, std::cmp::Reverse(*at))
    });
    let active = active.map_or(0, |(at, _)| at);
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": harmless(&profile.recording.path),
        "exporter": concat!("pjit ", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": active,
        "shared": { "frames": frames.all },
        "profiles": lanes.iter().map(|lane| lane_value(profile, lane)).collect::<Vec<_>>(),
    });
    let text = serde_json::to_vec(&document).map_err(io::Error::other)?;
    let written = Written {
        profiles: lanes.len(),
        bytes: text.len(),
    };
    if text.len() <= LARGEST {
        out.write_all(&text)?;
    }
    Ok(written)
}

fn lane_value(profile: &Profile, lane: &Lane) -> Value {
    let event = &profile[lane.event];
    let thread = &profile[lane.thread];
    let unit = match event.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        _ => "none",
    };
    let mut name = format!(
        "{} ({}/{})",
        harmless(&profile[lane.comm]),
        thread.pid.cast_signed(),
        thread.tid.cast_signed()
    );
    if profile.events.len() > 1 {
        name.push(' ');
        name.push_str(&harmless(&event.name));
    }
    json!({
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": lane.total,
        "samples": lane.samples.iter().map(|(stack, _)| stack).collect::<Vec<_>>(),
        "weights": lane.samples.iter().map(|(_, weight)| weight).collect::<Vec<_>>(),
    })
}

fn lanes(profile: &Profile, frames: &mut Frames<'_>) -> Vec<Lane> {
    let samples = profile.samples.iter();
    let samples = samples.map(|s| (s.event, s.thread, s.comm, s.stack, s.leaf, s.period));
    let entries = profile.entries.iter();
    let entries = entries.map(|e| (e.event, e.thread, e.comm, e.stack, e.leaf, e.period));
    let mut lanes: Vec<Lane> = Vec::new();
    let mut known: FxHashMap<(u16, ThreadId), usize> = FxHashMap::default();
    for (event, thread, comm, stack, leaf, period) in samples.chain(entries) {
        let at = *known.entry((event.0, thread)).or_insert_with(|| {
            lanes.push(Lane {
                event,
                thread,
                comm,
                samples: Vec::new(),
                total: 0,
            });
            lanes.len() - 1
        });
        let lane = &mut lanes[at];
        lane.comm = comm;
        lane.total = lane.total.saturating_add(period);
        let stack = frames.stack(stack, leaf);
        match lane.samples.last_mut() {
            Some((last, weight)) if *last == stack => *weight = weight.saturating_add(period),
            _ => lane.samples.push((stack, period)),
        }
    }
    lanes
}

/// Frames of the file, each once.
struct Frames<'p> {
    profile: &'p Profile,
    all: Vec<Value>,
    known: FxHashMap<FrameId, u32>,
}

impl<'p> Frames<'p> {
    fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            all: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// Root first.
    fn stack(&mut self, stack: StackId, leaf: FrameId) -> Vec<u32> {
        let frames = self.profile.stacks.get(stack);
        if frames.is_empty() {
            return vec![self.number(leaf)];
        }
        frames.iter().rev().map(|id| self.number(*id)).collect()
    }

    fn number(&mut self, id: FrameId) -> u32 {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        let profile = self.profile;
        let frame = &profile[id];
        let name = match (frame.symbol, frame.object) {
            (Some(symbol), _) => harmless(&profile[symbol].name).into_owned(),
            (None, Some(object)) => format!("[{}]", harmless(&profile[object].short_name)),
            (None, None) => "[unknown]".to_owned(),
        };
        let mut value = json!({ "name": name });
        if let Some(line) = frame.line {
            value["file"] = json!(harmless(&profile[line.file]));
            if line.line > 0 {
                value["line"] = json!(line.line);
            }
            if line.column > 0 {
                value["col"] = json!(line.column);
            }
        }
        self.all.push(value);
        let number = u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX);
        self.known.insert(id, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn weights_add_up_to_the_end_of_each_profile() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "main;a", 5);
        builder.sample("x", "main;b", 3);
        builder.sample("y", "main", 2);
        let profile = builder.finish();
        let mut out = Vec::new();
        let written = write(&profile, &mut out).expect("a vector takes everything");
        assert_eq!(written.profiles, 2);
        let read: Value = serde_json::from_slice(&out).expect("JSON");
        let mut sum = 0;
        for lane in read["profiles"].as_array().expect("a list") {
            let weights = lane["weights"].as_array().expect("a list");
            let of_lane: u64 = weights.iter().filter_map(Value::as_u64).sum();
            assert_eq!(lane["endValue"], of_lane);
            sum += of_lane;
        }
        assert_eq!(sum, 10);
        assert_eq!(read["activeProfileIndex"], 0);
    }
}
