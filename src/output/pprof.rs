//! pprof's `profile.proto`, for `go tool pprof` and whatever else reads it.
//!
//! In: a profile whose frames are apart by address, with lines and mapped ranges. Out: the message, bit by bit, not yet compressed.
//! Fields and what consumers make of them: `proto/profile.proto` of google/pprof. Each event is a column of values beside
//! the number of samples. Names of columns are letters, digits and `_`: servers that keep profiles (Pyroscope, Parca) make selectors
//! of them, and refuse a file or never find it again otherwise. Labels are strings, since a number 0 without a unit vanishes.

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};

use super::caption::{Caption, lost_by_event, recorded};
use super::names::frame_name;
use super::strings::Strings;
use super::text::harmless;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::functions::payers::{Paid, PaidPart, Payer};
use crate::ids::{IndexVec, index_vec};
use crate::needs::Needs;
use crate::profile::{
    CommId, Entry, EventId, EventSummary, Facet, FacetsId, FrameId, ObjectId, Place, Profile,
    Sampling, StringId, Symbol, SymbolId, Thread, ThreadId,
};
use crate::tags::{Tag, Tags};
use crate::unit::Unit;

/// As the runtime or the file named a function, or with what tells it from others of its name, if there is more than the name.
fn system_name(symbol: &Symbol) -> Option<Cow<'_, str>> {
    if let Some(recorded) = &symbol.recorded {
        return Some(recorded.name.as_str().into());
    }
    let order = symbol.place.as_deref().map(Place::order);
    let more = symbol.parameters.clone().unwrap_or_default().into_string();
    let more = more + &order.unwrap_or_default();
    (!more.is_empty()).then(|| format!("{}{more}", symbol.name).into())
}

/// What is collected before it is written.
const LARGE: usize = 32 << 10;

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
    /// Who pays.
    Package,
    /// What is done.
    Activity,
}

impl Label {
    /// All, by their names in the file and on the command line.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("process", Self::Process),
        ("pid", Self::Pid),
        ("thread", Self::Thread),
        ("tid", Self::Tid),
        ("cpu", Self::Cpu),
        ("event", Self::Event),
        ("package", Self::Package),
        ("activity", Self::Activity),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, label)| *label == self);
        found.map_or("", |(name, _)| name)
    }

    /// Whether it tells of the stack, not of where it was taken.
    const fn part(self) -> Option<PaidPart> {
        match self {
            Self::Package => Some(PaidPart::Package),
            Self::Activity => Some(PaidPart::Activity),
            _ => None,
        }
    }
}

/// How to write it.
#[derive(Clone, Debug, Default)]
pub struct PprofOptions {
    /// Labels of samples.
    pub labels: Vec<Label>,
    /// Samples say which recording they are of, and on which host that was made.
    pub of_recordings: bool,
    /// Labels that all samples have besides.
    pub tags: Tags,
    /// Stacks kept at most; the lightest of the others are one stack `[rest]` for each thread.
    pub max_stacks: Option<usize>,
    /// Bytes of the message at most, not packed; fewer stacks are kept for that.
    pub max_bytes: Option<u64>,
}

impl PprofOptions {
    /// What the file is made of.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let of_frames = Needs::ADDRESSES | Needs::LINES | Needs::RANGES;
        let has_cpus = self.labels.contains(&Label::Cpu);
        let cpus = Facet::Cpu.needs().only_if(has_cpus);
        let recordings = Facet::Recording.needs() | Facet::Host.needs();
        Needs::CHAINS
            | Needs::ORIGINALS
            | Needs::THREADS
            | of_frames
            | cpus
            // What tells functions of one name apart.
            | Needs::KINDS
            | recordings.only_if(self.of_recordings)
    }

    fn has_parts(&self) -> bool {
        self.labels.iter().any(|label| label.part().is_some())
    }
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

/// Writes the profile as a message.
///
/// # Errors
/// When `out` cannot be written, or the message would be too large whatever is left out.
pub fn write(
    profile: &Profile,
    options: &PprofOptions,
    out: &mut dyn Write,
) -> io::Result<Written> {
    let most = match options.max_bytes {
        None => options.max_stacks,
        Some(bytes) => stacks_within(profile, options, bytes)?,
    };
    write_stacks(profile, options, most, out)
}

/// How many stacks may be kept so that the message has no more bytes than that: nearly as many as fit.
fn stacks_within(
    profile: &Profile,
    options: &PprofOptions,
    bytes: u64,
) -> io::Result<Option<usize>> {
    /// Messages that are made to find out.
    const TRIALS: usize = 10;
    let size = |most: Option<usize>| {
        let mut counter = Counter(0);
        write_stacks(profile, options, most, &mut counter)?;
        Ok::<u64, io::Error>(counter.0)
    };
    if size(options.max_stacks)? <= bytes {
        return Ok(options.max_stacks);
    }
    let least = size(Some(0))?;
    if least > bytes {
        return Err(io::Error::other(format!(
            "without any stack the profile has {least} bytes, more than --max-bytes {bytes}"
        )));
    }
    let all = profile.entries.len();
    let (mut fits, mut exceeds) = (0, options.max_stacks.map_or(all, |most| most.min(all)));
    for _ in 0..TRIALS {
        if exceeds - fits <= 1 + fits / 64 {
            break;
        }
        let middle = fits + (exceeds - fits) / 2;
        if size(Some(middle))? <= bytes {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    Ok(Some(fits))
}

/// Counts what is written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_stacks(
    profile: &Profile,
    options: &PprofOptions,
    most: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<Written> {
    let mut encoder = Encoder::new(profile, options);
    encoder.sample_types();
    encoder.main_program();
    let (kept, rest) = chosen(profile, most);
    let left_out = rest.len();
    let mut locations = Vec::new();
    for entry in kept {
        encoder.stack(entry, &mut locations);
        let parts = encoder.parts(entry);
        encoder.sample(entry, &locations, (entry.samples, entry.period), &parts);
        encoder.out.hand_over(LARGE, out)?;
    }
    encoder.rest(&rest);
    encoder.facts(left_out);
    let written = Written {
        stacks: profile.entries.len() - left_out,
        left_out,
        functions: encoder.functions as usize,
    };
    encoder.finish(out)?;
    Ok(written)
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

/// The number of a thread's recording, where several are one.
pub(super) fn recording_of(thread: &Thread) -> u32 {
    thread.lives.first().map_or(0, |(recording, ..)| *recording)
}

/// By recording and pid: the comm of its first thread.
pub(super) fn processes(profile: &Profile) -> FxHashMap<(u32, u32), String> {
    let leaders = profile.threads.iter().filter(|t| t.pid == t.tid);
    leaders
        .map(|thread| {
            let process = (recording_of(thread), thread.pid);
            (process, profile[thread.comm].clone())
        })
        .collect()
}

/// What the columns of events are called: two clocks are two columns, the first one is the CPU.
pub(super) fn columns(profile: &Profile) -> IndexVec<EventId, String> {
    let mut known = FxHashSet::default();
    let of_event = |event: &EventSummary| {
        let is_clock = event.is_cpu_time() && !event.is_off_cpu();
        let stem = if is_clock && !known.contains("cpu") {
            "cpu".to_owned()
        } else {
            column(&event.name)
        };
        let names = std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}_{n}")));
        let mut free = names.filter(|name| *name != "samples" && !known.contains(name));
        let name = free.next().unwrap_or_default();
        known.insert(name.clone());
        name
    };
    profile.events.iter().map(of_event).collect()
}

/// The column of an event by its name. Weights have theirs in front of what they are made of, and those of the heap are called as in
/// Go's profiles, which servers know.
fn column(event: &str) -> String {
    let Some((weight, _)) = event.split_once(" (") else {
        return word(event);
    };
    match weight {
        "alloc" => "alloc_space".to_owned(),
        "alloc-count" => "alloc_objects".to_owned(),
        "live" => "inuse_space".to_owned(),
        "live-count" => "inuse_objects".to_owned(),
        other => word(other),
    }
}

/// What columns are counted in.
pub(super) fn unit_word(unit: Unit) -> Cow<'static, str> {
    match unit {
        Unit::Nanoseconds => "nanoseconds".into(),
        Unit::Bytes => "bytes".into(),
        Unit::ByteSeconds | Unit::Pages | Unit::Blocks => word(unit.word()).into(),
        Unit::Count | Unit::Cycles => "count".into(),
    }
}

/// A text as a word of letters, digits and `_`.
fn word(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(plain).collect()
}

struct Encoder<'p> {
    profile: &'p Profile,
    options: &'p PprofOptions,
    /// Names of the events' columns.
    columns: IndexVec<EventId, String>,
    out: Message,
    /// Parts of messages under construction, kept for their memory.
    part: Message,
    line: Message,
    strings: Strings,
    mappings: FxHashMap<ObjectId, u64>,
    functions: u64,
    /// By symbol: its number and the file that it is in there, 0 if it has none yet.
    of_symbol: IndexVec<SymbolId, (u64, Option<StringId>)>,
    /// Other functions, and symbols in other files.
    others: FxHashMap<Function, u64>,
    locations: u64,
    /// By frame that has an address to itself; 0 for none yet.
    of_frame: IndexVec<FrameId, u64>,
    /// By first and last frame of what shares an address.
    of_run: FxHashMap<(FrameId, FrameId), u64>,
    /// By frame: whether it shares the address of the next one.
    is_inlined: IndexVec<FrameId, bool>,
    /// What labels make, encoded.
    labels: FxHashMap<Labelled, Message>,
    processes: FxHashMap<(u32, u32), String>,
    paid: Paid,
}

/// What labels tell of a sample.
type Labelled = (ThreadId, CommId, FacetsId, u16);

/// What makes a function one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    Symbol(SymbolId, Option<StringId>),
    Unknown(Option<ObjectId>),
}

impl<'p> Encoder<'p> {
    fn new(profile: &'p Profile, options: &'p PprofOptions) -> Self {
        Self {
            profile,
            options,
            columns: columns(profile),
            out: Message::default(),
            part: Message::default(),
            line: Message::default(),
            strings: Strings::default(),
            mappings: FxHashMap::default(),
            functions: 0,
            of_symbol: index_vec![(0, None); profile.symbols.len()],
            others: FxHashMap::default(),
            locations: 0,
            of_frame: index_vec![0; profile.frames.len()],
            of_run: FxHashMap::default(),
            is_inlined: profile
                .frames
                .indices()
                .map(|frame| profile.is_inlined(frame))
                .collect(),
            labels: FxHashMap::default(),
            processes: processes(profile),
            paid: if options.has_parts() {
                Paid::of(profile, &Functions::of(profile, &OwnRules::default()))
            } else {
                Paid::default()
            },
        }
    }

    fn sample_types(&mut self) {
        let samples = self.value_type("samples", "count");
        self.out.message(1, &samples);
        for event in self.profile.events.indices() {
            let value_type = self.type_of(event);
            self.out.message(1, &value_type);
        }
    }

    /// What an event's column is called and counted in.
    fn type_of(&mut self, event: EventId) -> Message {
        let unit = unit_word(self.profile[event].unit);
        let name = self.columns[event].clone();
        self.value_type(&name, &unit)
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.strings.id(name).0.into());
        message.number(2, self.strings.id(unit).0.into());
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
        let path = if object.is_jit {
            &object.short_name
        } else {
            &object.long_name
        };
        message.number(5, self.strings.id(&harmless(path)).0.into());
        if let Some(build_id) = object.build_id {
            let hex: String = build_id
                .as_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            message.number(6, self.strings.id(&hex).0.into());
        }
        // Functions, files, lines and inlined functions are known: otherwise pprof looks for files of this machine.
        (7..=10).for_each(|field| message.number(field, 1));
        self.out.message(3, &message);
        self.mappings.insert(id, number);
        number
    }

    fn add_function(&mut self, name: &str, system: &str, (file, line): (&str, u32)) -> u64 {
        self.functions += 1;
        let message = self.part.cleared();
        message.number(1, self.functions);
        message.number(2, self.strings.id(name).0.into());
        if !system.is_empty() {
            message.number(3, self.strings.id(system).0.into());
        }
        message.number(4, self.strings.id(file).0.into());
        message.number(5, line.into());
        self.out.message(5, message);
        self.functions
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
        let first = frame.symbol.map(|symbol| self.of_symbol[symbol]);
        let known = match first {
            Some((number, of)) if number == 0 || of == file => number,
            _ => self.others.get(&function).copied().unwrap_or(0),
        };
        if known != 0 {
            return known;
        }
        let symbol = frame.symbol.map(|symbol| &profile[symbol]);
        let place = symbol.and_then(|symbol| symbol.place.as_deref());
        let (defined, line) = place.map_or(("", 0), |place| (place.file.as_str(), place.line));
        let text = file.map_or(defined, |file| profile[file].as_str());
        let system = symbol.and_then(system_name).unwrap_or_default();
        let name = frame_name(profile, id);
        let number = self.add_function(&name, &harmless(&system), (&harmless(text), line));
        match (frame.symbol, first) {
            (Some(own), Some((0, _))) => self.of_symbol[own] = (number, file),
            _ => drop(self.others.insert(function, number)),
        }
        number
    }

    /// The locations of an entry, leaf first.
    fn stack(&mut self, entry: &Entry, locations: &mut Vec<u64>) {
        locations.clear();
        let frames = self.profile.stacks.get(entry.stack);
        if frames.is_empty() {
            locations.push(self.location(&[entry.leaf]));
        }
        let mut from = 0;
        for (at, frame) in frames.iter().enumerate() {
            // Inlined functions share the address of the function around them.
            if !self.is_inlined[*frame] || at + 1 == frames.len() {
                locations.push(self.location(&frames[from..=at]));
                from = at + 1;
            }
        }
    }

    fn location(&mut self, frames: &[FrameId]) -> u64 {
        let (known, last) = match frames {
            [] => return 0,
            [only] => (self.of_frame[*only], *only),
            [first, .., last] => {
                let known = self.of_run.get(&(*first, *last));
                (known.copied().unwrap_or(0), *last)
            }
        };
        if known != 0 {
            return known;
        }
        let number = self.add_location(frames, last);
        match frames {
            [only] => self.of_frame[*only] = number,
            _ => drop(self.of_run.insert((frames[0], last), number)),
        }
        number
    }

    /// A location has the address of the function that others are inlined in.
    fn add_location(&mut self, frames: &[FrameId], last: FrameId) -> u64 {
        self.locations += 1;
        let number = self.locations;
        let frame = &self.profile[last];
        let mapping = frame.object.map_or(0, |object| self.mapping(object));
        // What is asked for here may write messages of its own.
        let mut message = Message::default();
        message.number(1, number);
        message.number(2, mapping);
        message.number(3, frame.address.0);
        for &each in frames {
            let function = self.function_of(each);
            let line = self.profile[each].line;
            self.line.cleared().number(1, function);
            self.line.number(2, line.map_or(0, |line| line.line.into()));
            message.message(4, &self.line);
        }
        self.out.message(4, &message);
        number
    }

    fn sample(
        &mut self,
        entry: &Entry,
        locations: &[u64],
        (samples, period): (u64, u64),
        parts: &Message,
    ) {
        let key = self.labelled(entry);
        let message = self.part.cleared();
        message.packed(1, locations.iter().copied());
        let events = 0..self.profile.events.len();
        let of_event = |event| {
            if event == usize::from(entry.event.0) {
                period
            } else {
                0
            }
        };
        message.packed(2, std::iter::once(samples).chain(events.map(of_event)));
        if let Some(labels) = self.labels.get(&key) {
            message.0.extend_from_slice(&labels.0);
        }
        message.0.extend_from_slice(&parts.0);
        self.out.message(2, message);
    }

    /// Where the labels of an entry are kept.
    fn labelled(&mut self, entry: &Entry) -> Labelled {
        let key = (entry.thread, entry.comm, entry.facets, entry.event.0);
        if !self.labels.contains_key(&key) {
            let labels = self.encoded_labels(entry);
            self.labels.insert(key, labels);
        }
        key
    }

    fn encoded_labels(&mut self, entry: &Entry) -> Message {
        let mut message = Message::default();
        for &label in &self.options.labels {
            if let Some(text) = self.label(label, entry) {
                self.add_label(label.name(), &text, &mut message);
            }
        }
        let options = self.options;
        let facets = &self.profile.facets;
        for facet in [Facet::Recording, Facet::Host] {
            let name = facet.row().name;
            let text = facets.words(entry.facets, facet);
            let text = text.filter(|_| options.tags.get(name).is_none());
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                self.add_label(name, text, &mut message);
            }
        }
        for Tag { key, value } in options.tags.iter() {
            self.add_label(key, value, &mut message);
        }
        message
    }

    fn add_label(&mut self, name: &str, text: &str, message: &mut Message) {
        let pair = self.part.cleared();
        pair.number(1, self.strings.id(name).0.into());
        pair.number(2, self.strings.id(&harmless(text)).0.into());
        message.message(3, pair);
    }

    /// Labels of the entry's stack.
    fn parts(&mut self, entry: &Entry) -> Message {
        let mut message = Message::default();
        for &label in &self.options.labels {
            let Some(part) = label.part() else { continue };
            let text = match part {
                PaidPart::Package => {
                    let payer = self.paid.payer(entry.stack, entry.leaf);
                    payer.map(Payer::label)
                }
                PaidPart::Activity => {
                    let activity = self.paid.activity(entry.stack, entry.leaf, entry.state);
                    activity.map(str::to_owned)
                }
            };
            if let Some(text) = text {
                self.add_label(label.name(), &text, &mut message);
            }
        }
        message
    }

    fn label(&self, label: Label, entry: &Entry) -> Option<String> {
        let thread = &self.profile[entry.thread];
        Some(match label {
            Label::Process => match self.processes.get(&(recording_of(thread), thread.pid)) {
                Some(name) => name.clone(),
                None => self.profile[thread.comm].clone(),
            },
            Label::Pid => thread.pid.cast_signed().to_string(),
            Label::Thread => self.profile[entry.comm].clone(),
            Label::Tid => thread.tid.cast_signed().to_string(),
            Label::Cpu => {
                let cpu = self.profile.facets.number(entry.facets, Facet::Cpu)?;
                cpu.to_string()
            }
            Label::Event => self.profile[entry.event].name.clone(),
            Label::Package | Label::Activity => return None,
        })
    }

    /// What was left out: one stack for each thread and event, and for each of the names and labels that a thread has in turn.
    fn rest(&mut self, rest: &[&Entry]) {
        let mut sums: Vec<(&Entry, u64, u64)> = Vec::new();
        let mut known: FxHashMap<(u16, ThreadId, Vec<u8>), usize> = FxHashMap::default();
        for &entry in rest {
            let labels = self.labelled(entry);
            let labels = self.labels.get(&labels).map(|labels| labels.0.clone());
            let key = (entry.event.0, entry.thread, labels.unwrap_or_default());
            let at = *known.entry(key).or_insert_with(|| {
                sums.push((entry, 0, 0));
                sums.len() - 1
            });
            sums[at].1 += entry.samples;
            sums[at].2 = sums[at].2.wrapping_add(entry.period);
        }
        if sums.is_empty() {
            return;
        }
        let function = self.add_function("[rest]", "", ("", 0));
        self.locations += 1;
        let number = self.locations;
        self.line.cleared().number(1, function);
        let location = self.part.cleared();
        location.number(1, number);
        location.message(4, &self.line);
        self.out.message(4, location);
        for (entry, samples, period) in sums {
            // What was left out has many payers.
            let none = Message::default();
            self.sample(entry, &[number], (samples, period), &none);
        }
    }

    /// The event that other views show is shown where nobody says which; its period is the profile's.
    fn main_event(&mut self) -> EventId {
        let profile = self.profile;
        let at = profile.main_event();
        let Some(event) = profile.events.get(at).filter(|event| event.samples > 0) else {
            return EventId::default();
        };
        let period = match (event.sampling, event.unit) {
            (Sampling::Every(period), _) => period,
            (Sampling::PerSecond(hertz), Unit::Nanoseconds) => 1_000_000_000 / hertz.max(1),
            _ => 0,
        };
        if period > 0 {
            let value_type = self.type_of(at);
            self.out.message(11, &value_type);
            self.out.number(12, period);
        }
        let column = self.strings.id(&self.columns[at]);
        self.out.number(14, column.0.into());
        at
    }

    /// Times, and what the recording is.
    fn facts(&mut self, left_out: usize) {
        let profile = self.profile;
        if let Some((first, _)) = profile.recording.time_range {
            if let Some((wall, clock)) = profile.recording.wall_clock {
                self.out
                    .number(9, wall.wrapping_add(first).wrapping_sub(clock));
            }
            self.out.number(10, profile.recording.length().unwrap_or(0));
        }
        let event = self.main_event();
        let mut comments = vec![
            format!("pjit {}", env!("CARGO_PKG_VERSION")),
            recorded(profile),
            Caption::of(profile, event).quality,
        ];
        // What a column counts.
        let events = self.profile.events.iter().zip(&self.columns);
        let called = events.map(|(each, column)| format!("{column}: {}", harmless(&each.name)));
        comments.extend(called);
        let lost = lost_by_event(profile).into_iter();
        comments.extend(lost.map(|(_, words)| format!("Lost: {words}")));
        let notes = profile[event].notes.iter();
        comments.extend(notes.filter(|note| note.starts_with("Filter: ")).cloned());
        if left_out > 0 {
            comments.push(format!(
                "{left_out} of the lightest stacks are in [rest] (--max-stacks, --max-bytes)"
            ));
        }
        let ids: Vec<u64> = comments
            .iter()
            .map(|c| self.strings.id(c).0.into())
            .collect();
        self.out.packed(13, ids.iter().copied());
    }

    fn finish(mut self, out: &mut dyn Write) -> io::Result<()> {
        for text in self.strings.all() {
            self.out.bytes(6, text.as_bytes());
            self.out.hand_over(LARGE, out)?;
        }
        self.out.hand_over(0, out)
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

    fn packed(&mut self, field: u64, values: impl Iterator<Item = u64> + Clone) {
        let size = |value: u64| u64::from(64 - (value | 1).leading_zeros()).div_ceil(7);
        self.varint(field << 3 | 2);
        self.varint(values.clone().map(size).sum());
        values.for_each(|value| self.varint(value));
    }

    /// The same without what is in it.
    fn cleared(&mut self) -> &mut Self {
        self.0.clear();
        self
    }

    /// Writes what there is, if it is more than so much.
    fn hand_over(&mut self, most: usize, out: &mut dyn Write) -> io::Result<()> {
        if self.0.len() > most {
            out.write_all(&self.0)?;
            self.0.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Facets;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn numbers_are_as_protocol_buffers_have_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.packed(4, [3, 270, 86942].into_iter());
        assert_eq!(
            message.0,
            [
                0x08, 0x96, 0x01, 0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05
            ]
        );
    }

    /// Labels are texts: readers drop a number 0 that has no unit.
    #[test]
    fn the_first_cpu_is_told() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "main;a", 5);
        let mut profile = builder.finish();
        (profile.facets, profile.entries[0].facets) = Facets::of_number(Facet::Cpu, 0);
        let options = PprofOptions {
            labels: vec![Label::Cpu],
            ..PprofOptions::default()
        };
        let mut encoder = Encoder::new(&profile, &options);
        let label = encoder.encoded_labels(&profile.entries[0]);
        let texts: Vec<&str> = encoder.strings.all().collect();
        assert_eq!(texts, ["", "cpu", "0"]);
        // Field 3: key 1, text 2.
        assert_eq!(label.0, [0x1a, 4, 0x08, 1, 0x10, 2]);
    }

    #[test]
    fn columns_have_names_that_servers_take() {
        let event = |name: &str, unit| EventSummary {
            name: name.to_owned(),
            unit,
            ..EventSummary::default()
        };
        let columns = |events: &[(&str, Unit)]| -> Vec<String> {
            let events = events.iter().map(|(name, unit)| event(name, *unit));
            let profile = Profile {
                events: events.collect(),
                ..Profile::default()
            };
            columns(&profile).into_iter().collect()
        };
        let time = Unit::Nanoseconds;
        assert_eq!(columns(&[("task-clock:u", time)]), ["cpu"]);
        assert_eq!(
            columns(&[
                ("cpu-clock", time),
                ("page-faults", Unit::Count),
                ("cpu-clock", time),
                ("page:faults", Unit::Count),
                ("samples", Unit::Count),
            ]),
            [
                "cpu",
                "page_faults",
                "cpu_clock",
                "page_faults_2",
                "samples_2"
            ]
        );
        let weights = [
            ("live (bytes of malloc, calloc not freed)", Unit::Bytes),
            ("alloc-count (calls of malloc)", Unit::Blocks),
            (
                "lifetime (bytes of malloc times their time)",
                Unit::ByteSeconds,
            ),
        ];
        let expected = ["inuse_space", "alloc_objects", "lifetime"];
        assert_eq!(columns(&weights), expected);
        // Time without a CPU is no clock of one.
        let waits = [("offcpu-time", time), ("cpu-clock", time)];
        assert_eq!(columns(&waits), ["offcpu_time", "cpu"]);
        assert_eq!(unit_word(Unit::ByteSeconds), "KiB_ms");
    }

    /// As statics of two files without debug information, and overloads.
    #[test]
    fn functions_of_one_name_are_several() {
        let mut builder = ProfileBuilder::default();
        for stack in ["main;a", "main;b", "main;c", "main;d"] {
            builder.sample("x", stack, 5);
        }
        let mut profile = builder.finish();
        let place = |file: &str, line| {
            Some(Box::new(Place {
                file: file.to_owned(),
                line,
                ..Place::default()
            }))
        };
        let found = [
            (None, place("a.c", 0)),
            (None, place("b.c", 0)),
            (Some("(int)".into()), place("c.cc", 7)),
            (Some("(long)".into()), place("c.cc", 9)),
        ];
        let symbols = profile.symbols.iter_mut();
        let symbols = symbols.filter(|symbol| symbol.name != "main");
        for (symbol, (parameters, place)) in symbols.zip(found) {
            symbol.name = "work".to_owned();
            (symbol.parameters, symbol.place) = (parameters, place);
        }
        let options = PprofOptions::default();
        let mut encoder = Encoder::new(&profile, &options);
        for frame in profile.frames.indices() {
            encoder.function_of(frame);
        }
        let texts: Vec<&str> = encoder.strings.all().collect();
        let number = |text: &str| {
            let at = texts.iter().position(|of| *of == text);
            u8::try_from(at.expect("it is told")).expect("there are few")
        };
        for function in [
            vec![0x10, number("work"), 0x20, number("a.c")],
            vec![0x10, number("work"), 0x20, number("b.c")],
            vec![
                0x10,
                number("work"),
                0x18,
                number("work(int)"),
                0x20,
                number("c.cc"),
                0x28,
                7,
            ],
            vec![
                0x10,
                number("work"),
                0x18,
                number("work(long)"),
                0x20,
                number("c.cc"),
                0x28,
                9,
            ],
        ] {
            let mut parts = encoder.out.0.windows(function.len());
            assert!(parts.any(|part| part == function), "{function:?} {texts:?}");
        }
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
            of_recordings: false,
            tags: Tags::of(vec!["host=a".parse().expect("a label")]).expect("one"),
            max_stacks,
            max_bytes: None,
        };
        let encode = |options| {
            let mut bytes = Vec::new();
            let written = write(&profile, &options, &mut bytes);
            (written.expect("a vector takes everything"), bytes)
        };
        let (all, _) = encode(options(None));
        assert_eq!((all.stacks, all.left_out), (3, 0));
        let (cut, bytes) = encode(options(Some(1)));
        assert_eq!((cut.stacks, cut.left_out), (1, 2));
        assert!(bytes.windows(6).any(|part| part == b"[rest]"));
    }
}
