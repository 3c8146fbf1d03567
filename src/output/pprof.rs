//! pprof's `profile.proto`, for `go tool pprof` and whatever else reads it.
//!
//! In: a profile whose frames are apart by address, with lines and mapped ranges. Out: the message, not yet compressed.
//! Fields and what consumers make of them: `proto/profile.proto` of google/pprof. Each event is a column of values beside
//! the number of samples. Labels are strings, since a number 0 without a unit vanishes.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::caption::{Caption, recorded};
use super::names::frame_name;
use super::strings::Strings;
use super::text::harmless;
use crate::profile::{
    Entry, EventSummary, FrameId, ObjectId, Profile, Sampling, SymbolId, ThreadId,
};
use crate::unit::Unit;

/// A label of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label {
    /// Comm of the process' first thread.
    Process,
    /// Process id.
    Pid,
    /// Comm at the time of the sample.
    Thread,
    /// Thread id.
    Tid,
    /// CPU.
    Cpu,
    /// Event.
    Event,
}

impl Label {
    /// All, by their names in the file and on the command line.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("process", Self::Process),
        ("pid", Self::Pid),
        ("thread", Self::Thread),
        ("tid", Self::Tid),
        ("cpu", Self::Cpu),
        ("event", Self::Event),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, label)| *label == self);
        found.map_or("", |(name, _)| name)
    }
}

/// How to write it.
#[derive(Clone, Debug)]
pub struct PprofOptions {
    /// Labels of samples.
    pub labels: Vec<Label>,
    /// Stacks kept at most; the lightest of the others are one stack `[rest]` for each thread.
    pub max_stacks: Option<usize>,
}

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Stacks with their labels.
    pub stacks: usize,
    /// Stacks that went into `[rest]`.
    pub left_out: usize,
    /// Functions.
    pub functions: usize,
}

/// The profile as a message.
#[must_use]
pub fn encode(profile: &Profile, options: &PprofOptions) -> (Vec<u8>, Written) {
    let mut encoder = Encoder {
        profile,
        out: Message::default(),
        strings: Strings::default(),
        mappings: FxHashMap::default(),
        functions: FxHashMap::default(),
        locations: FxHashMap::default(),
        processes: processes(profile),
    };
    encoder.sample_types();
    encoder.main_program();
    let (kept, rest) = chosen(profile, options.max_stacks);
    let left_out = rest.len();
    for entry in kept {
        let locations = encoder.stack(entry);
        encoder.sample(entry, &locations, (entry.samples, entry.period), options);
    }
    encoder.rest(&rest, options);
    encoder.facts(left_out);
    let functions = encoder.functions.len();
    let stacks = profile.entries.len() - left_out;
    let written = Written {
        stacks,
        left_out,
        functions,
    };
    (encoder.finish(), written)
}

/// The heaviest entries in their order, and the others.
fn chosen(profile: &Profile, most: Option<usize>) -> (Vec<&Entry>, Vec<&Entry>) {
    let all: Vec<&Entry> = profile.entries.iter().collect();
    let Some(most) = most.filter(|most| *most < all.len()) else {
        return (all, Vec::new());
    };
    // Weights of different events do not compare; shares of their events do.
    let share = |entry: &Entry| {
        let total = profile[entry.event].period.max(1);
        u128::from(entry.period) * 1_000_000_000_000 / u128::from(total)
    };
    let mut by_share: Vec<usize> = (0..all.len()).collect();
    by_share.sort_by_key(|&at| (std::cmp::Reverse(share(all[at])), at));
    let mut kept = vec![false; all.len()];
    by_share[..most].iter().for_each(|&at| kept[at] = true);
    let (kept, rest): (Vec<_>, Vec<_>) = all.into_iter().zip(kept).partition(|(_, kept)| *kept);
    let entries = |list: Vec<(_, bool)>| list.into_iter().map(|(entry, _)| entry).collect();
    (entries(kept), entries(rest))
}

/// By pid: the comm of its first thread.
fn processes(profile: &Profile) -> FxHashMap<u32, String> {
    let leaders = profile.threads.iter().filter(|t| t.pid == t.tid);
    leaders
        .map(|thread| (thread.pid, profile[thread.comm].clone()))
        .collect()
}

struct Encoder<'p> {
    profile: &'p Profile,
    out: Message,
    strings: Strings,
    mappings: FxHashMap<ObjectId, u64>,
    functions: FxHashMap<Function, u64>,
    /// By first and last frame of what shares an address.
    locations: FxHashMap<(FrameId, FrameId), u64>,
    processes: FxHashMap<u32, String>,
}

/// What makes a function one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    Symbol(SymbolId, Option<crate::profile::StringId>),
    Unknown(Option<ObjectId>),
    Rest,
}

impl Encoder<'_> {
    fn sample_types(&mut self) {
        let samples = self.value_type("samples", "count");
        self.out.message(1, &samples);
        for event in &self.profile.events {
            let value_type = self.type_of(event);
            self.out.message(1, &value_type);
        }
    }

    /// What an event's column is called and counted in.
    fn type_of(&mut self, event: &EventSummary) -> Message {
        let unit = match event.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            _ => "count",
        };
        let name = self.column(event);
        self.value_type(&name, unit)
    }

    /// Two clocks are two columns, one is the CPU.
    fn column<'e>(&self, event: &'e EventSummary) -> Cow<'e, str> {
        let is_clock = event.unit == Unit::Nanoseconds && event.counted.is_none();
        match is_clock && self.profile.events.len() == 1 {
            true => "cpu".into(),
            false => harmless(&event.name),
        }
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.strings.id(name).into());
        message.number(2, self.strings.id(unit).into());
        message
    }

    /// The first mapping heads every report.
    fn main_program(&mut self) {
        let heaviest = self.profile.entries.iter().max_by_key(|entry| entry.period);
        let main = heaviest.and_then(|entry| self.profile[entry.thread].main);
        if let Some(object) = main {
            self.mapping(object);
        }
    }

    fn mapping(&mut self, id: ObjectId) -> u64 {
        if let Some(&known) = self.mappings.get(&id) {
            return known;
        }
        let number = self.mappings.len() as u64 + 1;
        let object = &self.profile[id];
        let mut message = Message::default();
        message.number(1, number);
        if let Some(first) = object.ranges.first() {
            message.number(2, first.range.start.0);
            message.number(3, first.range.end.0);
            message.number(4, first.offset.0);
        }
        let path = match object.is_jit {
            true => &object.short_name,
            false => &object.long_name,
        };
        message.number(5, self.strings.id(&harmless(path)).into());
        if let Some(build_id) = object.build_id {
            let hex: String = build_id
                .as_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            message.number(6, self.strings.id(&hex).into());
        }
        // Functions, files, lines and inlined functions are known: otherwise pprof looks for files of this machine.
        (7..=10).for_each(|field| message.number(field, 1));
        self.out.message(3, &message);
        self.mappings.insert(id, number);
        number
    }

    fn add_function(&mut self, function: Function, name: &str, file: &str) -> u64 {
        let number = self.functions.len() as u64 + 1;
        let mut message = Message::default();
        message.number(1, number);
        message.number(2, self.strings.id(name).into());
        message.number(4, self.strings.id(file).into());
        self.out.message(5, &message);
        self.functions.insert(function, number);
        number
    }

    fn function_of(&mut self, id: FrameId) -> u64 {
        let profile = self.profile;
        let frame = &profile[id];
        let file = frame.line.filter(|_| frame.symbol.is_some());
        let file = file.map(|line| line.file);
        let function = match frame.symbol {
            Some(symbol) => Function::Symbol(symbol, file),
            None => Function::Unknown(frame.object),
        };
        if let Some(&known) = self.functions.get(&function) {
            return known;
        }
        let file = file.map_or("".into(), |file| harmless(&profile[file]));
        self.add_function(function, &frame_name(profile, id), &file)
    }

    /// The locations of an entry, leaf first.
    fn stack(&mut self, entry: &Entry) -> Vec<u64> {
        let profile = self.profile;
        let frames = profile.stacks.get(entry.stack);
        if frames.is_empty() {
            return vec![self.location(&[entry.leaf])];
        }
        let is_inlined = |frame: &FrameId| {
            let symbol = profile[*frame].symbol;
            symbol.is_some_and(|symbol| profile[symbol].inlined)
        };
        let mut locations = Vec::with_capacity(frames.len());
        let mut from = 0;
        for (at, frame) in frames.iter().enumerate() {
            // Inlined functions share the address of the function around them.
            if !is_inlined(frame) || at + 1 == frames.len() {
                locations.push(self.location(&frames[from..=at]));
                from = at + 1;
            }
        }
        locations
    }

    fn location(&mut self, frames: &[FrameId]) -> u64 {
        let (Some(&first), Some(&last)) = (frames.first(), frames.last()) else {
            return 0;
        };
        if let Some(&known) = self.locations.get(&(first, last)) {
            return known;
        }
        let number = self.locations.len() as u64 + 1;
        let mut message = Message::default();
        message.number(1, number);
        let frame = &self.profile[last];
        if let Some(object) = frame.object {
            let mapping = self.mapping(object);
            message.number(2, mapping);
        }
        message.number(3, frame.address.0);
        for &frame in frames {
            let function = self.function_of(frame);
            let mut line = Message::default();
            line.number(1, function);
            line.number(
                2,
                self.profile[frame].line.map_or(0, |line| line.line.into()),
            );
            message.message(4, &line);
        }
        self.out.message(4, &message);
        self.locations.insert((first, last), number);
        number
    }

    fn sample(
        &mut self,
        entry: &Entry,
        locations: &[u64],
        (samples, period): (u64, u64),
        options: &PprofOptions,
    ) {
        let mut message = Message::default();
        message.packed(1, locations);
        let mut values = vec![0; self.profile.events.len() + 1];
        values[0] = samples;
        values[usize::from(entry.event.0) + 1] = period;
        message.packed(2, &values);
        for &label in &options.labels {
            let Some(text) = self.label(label, entry) else {
                continue;
            };
            let mut pair = Message::default();
            pair.number(1, self.strings.id(label.name()).into());
            pair.number(2, self.strings.id(&harmless(&text)).into());
            message.message(3, &pair);
        }
        self.out.message(2, &message);
    }

    fn label(&self, label: Label, entry: &Entry) -> Option<String> {
        let thread = &self.profile[entry.thread];
        Some(match label {
            Label::Process => match self.processes.get(&thread.pid) {
                Some(name) => name.clone(),
                None => self.profile[thread.comm].clone(),
            },
            Label::Pid => thread.pid.cast_signed().to_string(),
            Label::Thread => self.profile[entry.comm].clone(),
            Label::Tid => thread.tid.cast_signed().to_string(),
            Label::Cpu => u32::try_from(entry.cpu).ok()?.to_string(),
            Label::Event => self.profile[entry.event].name.clone(),
        })
    }

    /// What was left out: one stack for each thread and event.
    fn rest(&mut self, rest: &[&Entry], options: &PprofOptions) {
        let mut sums: Vec<(&Entry, u64, u64)> = Vec::new();
        let mut known: FxHashMap<(u16, ThreadId), usize> = FxHashMap::default();
        for &entry in rest {
            let at = *known
                .entry((entry.event.0, entry.thread))
                .or_insert_with(|| {
                    sums.push((entry, 0, 0));
                    sums.len() - 1
                });
            sums[at].1 += entry.samples;
            sums[at].2 = sums[at].2.wrapping_add(entry.period);
        }
        if sums.is_empty() {
            return;
        }
        let function = self.add_function(Function::Rest, "[rest]", "");
        let number = self.locations.len() as u64 + 1;
        let mut line = Message::default();
        line.number(1, function);
        let mut location = Message::default();
        location.number(1, number);
        location.message(4, &line);
        self.out.message(4, &location);
        for (entry, samples, period) in sums {
            self.sample(entry, &[number], (samples, period), options);
        }
    }

    /// The first event with samples is shown where nobody says which; its period is the profile's.
    fn main_event(&mut self) -> u16 {
        let profile = self.profile;
        let mut events = (0_u16..).zip(&profile.events);
        let Some((at, event)) = events.find(|(_, event)| event.samples > 0) else {
            return 0;
        };
        let period = match (event.sampling, event.unit) {
            (Sampling::Every(period), _) => period,
            (Sampling::PerSecond(hertz), Unit::Nanoseconds) => 1_000_000_000 / hertz.max(1),
            _ => 0,
        };
        if period > 0 {
            let value_type = self.type_of(event);
            self.out.message(11, &value_type);
            self.out.number(12, period);
        }
        let column = self.column(event);
        let column = self.strings.id(&column);
        self.out.number(14, column.into());
        at
    }

    /// Times, and what the recording is.
    fn facts(&mut self, left_out: usize) {
        let profile = self.profile;
        if let Some((first, last)) = profile.recording.time_range {
            if let Some((wall, clock)) = profile.recording.wall_clock {
                self.out
                    .number(9, wall.wrapping_add(first).wrapping_sub(clock));
            }
            self.out.number(10, last.saturating_sub(first));
        }
        let event = self.main_event();
        let mut comments = vec![
            format!("pjit {}", env!("CARGO_PKG_VERSION")),
            recorded(profile),
            Caption::of(profile, event).quality,
        ];
        if left_out > 0 {
            comments.push(format!(
                "{left_out} of the lightest stacks are in [rest] (--max-stacks)"
            ));
        }
        let ids: Vec<u64> = comments.iter().map(|c| self.strings.id(c).into()).collect();
        self.out.packed(13, &ids);
    }

    fn finish(mut self) -> Vec<u8> {
        for text in self.strings.all() {
            self.out.bytes(6, text.as_bytes());
        }
        self.out.0
    }
}

/// A message of protocol buffers under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is what a missing one means.
    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u64, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.message(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn numbers_are_as_protocol_buffers_have_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.packed(4, &[3, 270, 86942]);
        assert_eq!(
            message.0,
            [
                0x08, 0x96, 0x01, 0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05
            ]
        );
    }

    #[test]
    fn what_is_left_out_is_still_counted() {
        let mut builder = ProfileBuilder::default();
        for (stack, weight) in [("main;a", 5), ("main;b", 3), ("main;c", 1)] {
            builder.sample("x", stack, weight);
        }
        let profile = builder.finish();
        let options = |max_stacks| PprofOptions {
            labels: vec![Label::Thread],
            max_stacks,
        };
        let (_, all) = encode(&profile, &options(None));
        assert_eq!((all.stacks, all.left_out), (3, 0));
        let (bytes, cut) = encode(&profile, &options(Some(1)));
        assert_eq!((cut.stacks, cut.left_out), (1, 2));
        assert!(bytes.windows(6).any(|part| part == b"[rest]"));
    }
}
