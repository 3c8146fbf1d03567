//! speedscope's own format (`file-format-schema.json` of speedscope 1.x): a profile for each thread and event.
//!
//! In: a profile of samples, for profiles in the order of times, or of rows, for one entry a stack. Sums of weights are the
//! profile's end, as its reader demands. To that, what differs in file, line or column is another function: lines of frames
//! would take functions apart, so there is the place where a function begins or none.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde_json::json;

use super::columns::{hand_over, list, long_list, number, text};
use super::names::frame_name;
use super::text::harmless;
use crate::ids::{IndexVec, index_vec};
use crate::needs::Needs;
use crate::profile::{CommId, EventId, FrameId, ObjectId, Profile, StackId, SymbolId, ThreadId};
use crate::unit::Unit;

/// Larger files are not opened by browsers, whose strings end at 512 MB.
pub const LARGEST: usize = 400 << 20;

/// No number.
const NONE: u32 = u32::MAX;

/// A stack, with the leaf that stands for an empty one, and what it weighs; no stack where nothing ran.
type Weighed = (Option<(StackId, FrameId)>, u64);

/// One thread's samples of one event.
struct Lane {
    event: EventId,
    thread: ThreadId,
    comm: CommId,
    samples: Vec<Weighed>,
    total: u64,
}

impl Lane {
    fn add(&mut self, new: Weighed, functions: &mut Functions<'_>) {
        self.total = self.total.saturating_add(new.1);
        functions.enter(&new);
        match self.samples.last_mut() {
            Some(last) if functions.path(last).eq(functions.path(&new)) => {
                last.1 = last.1.saturating_add(new.1);
            }
            _ => self.samples.push(new),
        }
    }

    /// Nothing ran for a while.
    fn rest(&mut self, time: u64, functions: &mut Functions<'_>) {
        if time > 0 {
            self.add((None, time), functions);
        }
    }
}

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Profiles in it.
    pub profiles: usize,
    /// Whether it was written: nothing that is larger than [`LARGEST`] is.
    pub is_whole: bool,
}

/// What the file is made of; besides, [`Needs::SAMPLES`] keep their order in time. Whoever asks for kinds gets the scopes that names
/// of inlined functions lack.
pub const NEEDS: Needs = Needs::CHAINS
    .union(Needs::KINDS)
    .union(Needs::LINES)
    .union(Needs::FUNCTION_LINES)
    .union(Needs::ORIGINALS);

/// Whether samples tell how long threads ran, and when.
#[must_use]
pub fn knows_wall(profile: &Profile, event: EventId) -> bool {
    let have_times = || profile.samples.iter().all(|sample| sample.time.is_some());
    profile[event].is_cpu_time() && !profile.samples.is_empty() && have_times()
}

/// Writes the file; `wall` keeps times without a sample in their place, by samples of a clock.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(profile: &Profile, wall: bool, out: &mut dyn Write) -> io::Result<Written> {
    let mut functions = Functions::new(profile);
    let lanes = if wall {
        on_the_wall(profile, &mut functions)
    } else {
        lanes(profile, &mut functions)
    };
    let active = lanes.iter().enumerate().max_by_key(|(at, lane)| {
        // Of equal ones the first.
        (lane.total, std::cmp::Reverse(*at))
    });
    let written = Written {
        profiles: lanes.len(),
        is_whole: size(&functions, &lanes) <= LARGEST,
    };
    if !written.is_whole {
        return Ok(written);
    }
    let head = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": harmless(&profile.recording.path),
        "exporter": concat!("pjit ", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": active.map_or(0, |(at, _)| at),
    });
    let mut json = head.to_string();
    json.pop();
    json.push_str(",\"shared\":{\"frames\":");
    long_list(&mut json, &functions.all, out, |function, json| {
        functions.push(function, json)
    })?;
    json.push_str("},\"profiles\":[");
    for (at, lane) in lanes.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_lane(profile, &functions, lane, (&mut json, out))?;
    }
    json.push_str("]}");
    hand_over(&mut json, out)?;
    Ok(written)
}

/// Bytes of the file, heads and what has to be escaped aside.
fn size(functions: &Functions<'_>, lanes: &[Lane]) -> usize {
    let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
    let samples = lanes.iter().flat_map(|lane| &lane.samples);
    let of_sample = |sample: &Weighed| {
        let functions = functions.path(sample);
        let stack: usize = functions.map(|function| digits(function.into()) + 1).sum();
        stack + "[],".len() + digits(sample.1)
    };
    let of_function = |function: &Function| {
        let mut json = String::new();
        functions.push(function, &mut json);
        json.len() + 1
    };
    let names: usize = functions.all.iter().map(of_function).sum();
    samples.map(of_sample).sum::<usize>() + names
}

fn write_lane(
    profile: &Profile,
    functions: &Functions<'_>,
    lane: &Lane,
    (json, out): (&mut String, &mut dyn Write),
) -> io::Result<()> {
    let unit = match profile[lane.event].unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        _ => "none",
    };
    json.push_str("{\"type\":\"sampled\",\"name\":");
    text(&name(profile, lane), json);
    json.push_str(",\"unit\":");
    text(unit, json);
    json.push_str(",\"startValue\":0,\"endValue\":");
    number(lane.total, json);
    json.push_str(",\"samples\":");
    long_list(json, &lane.samples, out, |sample, json| {
        list(json, functions.path(sample), |function, json| {
            number(function.into(), json)
        });
    })?;
    json.push_str(",\"weights\":");
    long_list(json, &lane.samples, out, |(_, weight), json| {
        number(*weight, json)
    })?;
    json.push('}');
    Ok(())
}

fn name(profile: &Profile, lane: &Lane) -> String {
    let thread = &profile[lane.thread];
    let (pid, tid) = (thread.pid.cast_signed(), thread.tid.cast_signed());
    let mut name = format!("{} ({pid}/{tid})", harmless(&profile[lane.comm]));
    if profile.events.len() > 1 {
        name.push(' ');
        name.push_str(&harmless(&profile[lane.event].name));
    }
    name
}

/// Lanes that begin with the first sample of all and end with the last. A sample stands for the time before it, as far as its thread
/// had no other sample then; the rest of the time has an empty stack.
fn on_the_wall(profile: &Profile, functions: &mut Functions<'_>) -> Vec<Lane> {
    let times = || profile.samples.iter().filter_map(|sample| sample.time);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let mut lanes: Vec<(Lane, u64)> = Vec::new();
    let mut known: FxHashMap<ThreadId, usize> = FxHashMap::default();
    for sample in &profile.samples {
        let (thread, time) = (sample.thread, sample.time.unwrap_or(first));
        let at = *known.entry(thread).or_insert_with(|| {
            let lane = Lane {
                event: sample.event,
                thread,
                comm: sample.comm,
                samples: Vec::new(),
                total: 0,
            };
            lanes.push((lane, first));
            lanes.len() - 1
        });
        let (lane, end) = &mut lanes[at];
        lane.comm = sample.comm;
        let since = time.saturating_sub(*end);
        let ran = sample.period.min(since);
        lane.rest(since - ran, functions);
        lane.add((Some((sample.stack, sample.leaf)), ran), functions);
        *end = time.max(*end);
    }
    let close = |(mut lane, end): (Lane, u64)| {
        lane.rest(last.saturating_sub(end), functions);
        lane
    };
    lanes.into_iter().map(close).collect()
}

fn lanes(profile: &Profile, functions: &mut Functions<'_>) -> Vec<Lane> {
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
        lane.add((Some((stack, leaf)), period), functions);
    }
    lanes
}

/// A function of the file.
struct Function {
    name: String,
    /// File, line and column of its beginning, as far as they are known.
    place: Option<(String, u32, u32)>,
}

/// Functions of the file, each once.
struct Functions<'p> {
    profile: &'p Profile,
    all: Vec<Function>,
    /// By symbol.
    of_symbol: IndexVec<SymbolId, u32>,
    /// By object, for what has no symbol.
    of_object: FxHashMap<Option<ObjectId>, u32>,
    /// By frame.
    of_frame: IndexVec<FrameId, u32>,
}

impl<'p> Functions<'p> {
    fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            all: Vec::new(),
            of_symbol: index_vec![NONE; profile.symbols.len()],
            of_object: FxHashMap::default(),
            of_frame: index_vec![NONE; profile.frames.len()],
        }
    }

    /// Numbers the functions of a stack.
    fn enter(&mut self, sample: &Weighed) {
        for &frame in self.frames(sample) {
            if self.of_frame[frame] == NONE {
                self.of_frame[frame] = self.number(frame);
            }
        }
        let leaf = sample.0.map(|(_, leaf)| leaf);
        if let Some(leaf) = leaf.filter(|leaf| self.of_frame[*leaf] == NONE) {
            self.of_frame[leaf] = self.number(leaf);
        }
    }

    fn frames(&self, sample: &Weighed) -> &'p [FrameId] {
        let stack = sample.0.map(|(stack, _)| self.profile.stacks.get(stack));
        stack.unwrap_or_default()
    }

    /// Numbers of a stack's functions that were entered, root first.
    fn path(&self, sample: &Weighed) -> impl Iterator<Item = u32> {
        let frames = self.frames(sample);
        let own = sample.0.filter(|_| frames.is_empty()).map(|(_, leaf)| leaf);
        let all = own.into_iter().chain(frames.iter().rev().copied());
        all.map(|frame| self.of_frame[frame])
    }

    fn number(&mut self, id: FrameId) -> u32 {
        let profile = self.profile;
        let frame = &profile[id];
        let new = u32::try_from(self.all.len()).unwrap_or(NONE);
        let known = match (frame.symbol, frame.object) {
            (Some(symbol), _) => &mut self.of_symbol[symbol],
            (None, object) => self.of_object.entry(object).or_insert(NONE),
        };
        if *known != NONE {
            return *known;
        }
        *known = new;
        let file = frame.line.map(|line| profile[line.file].as_str());
        let function = Function {
            name: frame_name(profile, id).into_owned(),
            place: frame.symbol.and_then(|symbol| place(profile, symbol, file)),
        };
        self.all.push(function);
        new
    }

    fn push(&self, function: &Function, json: &mut String) {
        json.push_str("{\"name\":");
        text(&function.name, json);
        if let Some((file, line, column)) = &function.place {
            json.push_str(",\"file\":");
            text(file, json);
            for (key, value) in [(",\"line\":", *line), (",\"col\":", *column)] {
                if value > 0 {
                    json.push_str(key);
                    number(value.into(), json);
                }
            }
        }
        json.push('}');
    }
}

/// Functions of scripts tell by their name where they begin. Of others the file may be known, and the line of those that share a name.
fn place(profile: &Profile, symbol: SymbolId, file: Option<&str>) -> Option<(String, u32, u32)> {
    let symbol = &profile[symbol];
    let in_name = symbol
        .producer
        .and_then(|producer| (producer.row().place)(symbol.name.as_bytes()));
    let in_name = in_name.and_then(|place| {
        let written = symbol.name.get(place.file)?;
        Some((harmless(written).into_owned(), place.line, place.column))
    });
    let defined = symbol.place.as_deref().filter(|place| place.line > 0);
    let of_file = |path: &str| {
        let line = defined.filter(|place| path.ends_with(&place.file));
        (
            harmless(path).into_owned(),
            line.map_or(0, |place| place.line),
            0,
        )
    };
    in_name.or_else(|| file.map(of_file))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn weights_add_up_to_the_end_of_each_profile() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "main;a", 5);
        builder.sample("x", "main;b", 3);
        builder.sample("y", "main", 2);
        let profile = builder.finish();
        let mut bytes = Vec::new();
        let written = write(&profile, false, &mut bytes).expect("a vector takes everything");
        let out = String::from_utf8(bytes).expect("UTF-8");
        assert_eq!(written.profiles, 2);
        let read: Value = serde_json::from_str(&out).expect("JSON");
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
