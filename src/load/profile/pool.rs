//! Several recordings as one profile.
//!
//! In: the profiles of recordings, one after the other. Out: one profile with the samples of all. Numbers of frames, stacks and
//! the like mean nothing outside of their profile, so everything is told by what it is: an object by its build ID, else by its
//! path, a symbol by its object, name and place, a frame by its symbol, a stack by its frames. A program that was recorded on
//! two hosts is one program. Code that runtimes made is one object, in which functions are known by their names: each run has it
//! in another file, at other addresses.
//!
//! Events are one if they have one name, unit and meaning, and on processors of several kinds if they count time: cycles of two
//! kinds do not add up. Threads of two recordings are never one. Where nobody asks for threads, those of one name and program
//! have one entry for each stack all the same, so that memory grows with stacks and not with recordings.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{
    CodeId, CommId, Entry, EntryId, EventId, EventQuality, EventSummary, Facet, FacetsPool,
    FieldKey, Frame, FrameId, Object, ObjectId, Profile, Sampling, SourceLine, StackId, Stacks,
    StringId, Symbol, SymbolId, Thread, ThreadId, Walked,
};
use crate::address::FileOffset;
use crate::build_id::BuildId;
use crate::collect::Squares;
use crate::ids::{Idx as _, IndexVec};
use crate::intern::{ItemIndex, SequenceIndex};
use crate::needs::Needs;
use crate::run_state::RunState;
use crate::symbolize::Place;
use crate::unit::Unit;

/// Profiles that become one.
#[derive(Debug, Default)]
pub struct Pool {
    all: Profile,
    /// What profiles were made for.
    needs: Needs,
    /// Whether all weigh the same.
    normalizes: bool,
    comms: FxHashMap<String, CommId>,
    strings: FxHashMap<String, StringId>,
    objects: FxHashMap<ObjectKey, ObjectId>,
    symbols: ItemIndex<SymbolId>,
    frames: FxHashMap<FrameKey, FrameId>,
    stacks: SequenceIndex<StackId>,
    facets: FacetsPool,
    entries: FxHashMap<EntryKey, EntryId>,
    threads: FxHashMap<ThreadKey, ThreadId>,
    /// Slices of recordings: which recording each began with, and when its slices were.
    series: FxHashMap<u64, Vec<Slices>>,
    /// Kinds of processors that events were counted on.
    arches: IndexVec<EventId, String>,
    /// Weighted sum of the shares of wrong stacks.
    errors: f64,
}

/// The object of code that runtimes made, where it is in several files.
const MADE: &str = "[jit]";

/// What objects are told by: a build ID, or a path and what lies there, or that their code was made.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ObjectKey {
    Made,
    Build(BuildId, String),
    Path(String, String, [bool; 4]),
}

/// What frames are told by.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FrameKey {
    object: Option<ObjectId>,
    symbol: Option<SymbolId>,
    /// Where addresses tell frames apart: in the object, which lies elsewhere in each process.
    address: Option<FileOffset>,
    mode: u8,
    line: Option<SourceLine>,
    code: Option<CodeId>,
}

/// What entries are told by.
type EntryKey = (
    EventId,
    RunState,
    CommId,
    ThreadId,
    FrameId,
    StackId,
    super::FacetsId,
    u64,
);

/// Slices of one recording, in time one after the other.
#[derive(Debug)]
struct Slices {
    /// The number of the first one.
    number: u32,
    /// From the first sample to the last of each.
    times: Vec<(u64, u64)>,
}

/// What threads that stand for others are told by: name, name of the program, its file, whether it is the first of its process, whether
/// it idles.
type ThreadKey = (CommId, CommId, Option<ObjectId>, bool, bool);

/// New numbers of a profile's parts.
struct Moved {
    events: IndexVec<EventId, EventId>,
    comms: IndexVec<CommId, CommId>,
    objects: IndexVec<ObjectId, ObjectId>,
    frames: IndexVec<FrameId, FrameId>,
}

impl Pool {
    /// Dumps of several recordings that are named.
    const DUMPS: usize = 3;

    /// Nothing yet, of profiles that were made for such views; each of them weighs 1 if they are to weigh the same.
    #[must_use]
    pub fn new(needs: Needs, normalizes: bool) -> Self {
        Self {
            needs,
            normalizes,
            ..Self::default()
        }
    }

    /// Adds a profile's samples; the recording is called `name` from now on.
    pub fn add(&mut self, mut profile: Profile, name: &str) {
        if self.normalizes {
            profile.normalize();
        }
        let figures = profile.quality.figures(Some(profile.main_event()));
        let Walked {
            walked, complete, ..
        } = figures.walked();
        let whole = (walked > 0).then(|| complete as f64 / walked as f64);
        for part in &mut profile.recording.parts {
            part.whole = whole;
            name.clone_into(&mut part.name);
        }
        let host = profile.recording.parts.first();
        let host = host.map_or("", |part| &part.host).to_owned();
        let moved = self.moved(&profile);
        self.add_marks(&profile, &moved);
        let threads = self.add_threads(&profile, &moved);
        let stacks = self.add_stacks(&profile, &moved);
        let frame = |frame| {
            let at = FrameId::from_usize(usize::try_from(frame).unwrap_or(usize::MAX));
            moved.frames.get(at).map_or(frame, |frame| {
                u32::try_from(frame.index()).unwrap_or(u32::MAX)
            })
        };
        let labels = [(Facet::Recording, name), (Facet::Host, host.as_str())];
        let facets = self.facets.add(&profile.facets, &frame, labels);
        // Entries are in their order.
        let last = self.all.entries.last();
        let first = last.map_or(0, |entry| entry.first + 1);
        for entry in &profile.entries {
            let new = Entry {
                event: moved.events[entry.event],
                comm: moved.comms[entry.comm],
                thread: threads[entry.thread],
                leaf: moved.frames[entry.leaf],
                stack: stacks[entry.stack],
                facets: facets.get(entry.facets).copied().unwrap_or(entry.facets),
                first: first.saturating_add(entry.first),
                ..*entry
            };
            let squares = profile.squares_of(entry);
            self.add_entry(new, squares, profile.unequal.is_empty());
        }
        for sample in &profile.samples {
            self.all.samples.push(super::Sample {
                event: moved.events[sample.event],
                comm: moved.comms[sample.comm],
                thread: threads[sample.thread],
                leaf: moved.frames[sample.leaf],
                stack: stacks[sample.stack],
                facets: facets.get(sample.facets).copied().unwrap_or(sample.facets),
                ..*sample
            });
        }
        let waits = profile.waits.iter().map(|wait| super::Wait {
            thread: threads[wait.thread],
            ..*wait
        });
        self.all.waits.extend(waits);
        for program in &profile.past_programs {
            let program = moved.objects[*program];
            if !self.all.past_programs.contains(&program) {
                self.all.past_programs.push(program);
            }
        }
        for (whose, bytes) in &profile.optimised {
            let all = &mut self.all.optimised;
            match all.iter_mut().find(|(known, _)| known == whose) {
                Some((_, sum)) => *sum += bytes,
                None => all.push((whose.clone(), *bytes)),
            }
        }
        self.add_facts(profile, &moved);
        if self.are_apart() {
            // No other recording has any of them.
            self.entries.clear();
        }
    }

    /// Whether nothing of one recording is in one entry with anything of another.
    fn are_apart(&self) -> bool {
        let tells = Needs::THREADS | Facet::Recording.needs();
        self.needs.intersects(tells)
    }

    /// All samples.
    #[must_use]
    pub fn finish(self) -> Profile {
        let mut all = self.all;
        all.facets = self.facets.finish();
        all.optimised
            .sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let samples = all.quality.samples().max(1) as f64;
        all.quality.stitch_error = self.errors / samples;
        let dumps = &mut all.quality.dumps;
        if dumps.len() > Self::DUMPS && all.recording.parts.len() > 1 {
            let more = dumps.len() - Self::DUMPS;
            dumps.truncate(Self::DUMPS);
            dumps.push(format!("{more} more dumps"));
        }
        if let [_, .., _] = &all.recording.parts[..] {
            all.recording.path = format!("{} recordings", all.recording.parts.len());
        }
        all
    }

    /// Numbers of everything that stacks are made of, and of events.
    fn moved(&mut self, profile: &Profile) -> Moved {
        let events = self.add_events(profile);
        let comms = profile.comms.iter();
        let comms = comms
            .map(|comm| known(&mut self.comms, &mut self.all.comms, comm))
            .collect();
        let strings = profile.strings.iter();
        let strings: IndexVec<StringId, StringId> = strings
            .map(|text| known(&mut self.strings, &mut self.all.strings, text))
            .collect();
        let objects: IndexVec<ObjectId, ObjectId> = (profile.objects.iter())
            .map(|object| self.add_object(object))
            .collect();
        let symbols: IndexVec<SymbolId, SymbolId> = (profile.symbols.iter())
            .map(|symbol| self.add_symbol(symbol, objects[symbol.object]))
            .collect();
        let line = |line: SourceLine| SourceLine {
            file: strings[line.file],
            ..line
        };
        let code = profile.code.iter().map(|code| {
            let lines = code.lines.iter().map(|(at, of)| (*at, line(*of)));
            self.all.code.push(super::CodeVersion {
                symbol: symbols[code.symbol],
                object: objects[code.object],
                lines: lines.collect(),
                ..code.clone()
            })
        });
        let code: IndexVec<CodeId, CodeId> = code.collect();
        let frames = profile.frames.iter().map(|frame| {
            let frame = Frame {
                object: frame.object.map(|object| objects[object]),
                symbol: frame.symbol.map(|symbol| symbols[symbol]),
                line: frame.line.map(line),
                code: frame.code.map(|of| code[of]),
                ..*frame
            };
            self.add_frame(frame)
        });
        let frames = frames.collect();
        Moved {
            events,
            comms,
            objects,
            frames,
        }
    }

    fn add_events(&mut self, profile: &Profile) -> IndexVec<EventId, EventId> {
        let arch = profile.recording.parts.first();
        let arch = arch.map_or("", |part| &part.arch).to_owned();
        let mut moved: IndexVec<EventId, EventId> = IndexVec::new();
        let mut added = Vec::new();
        for (old, event) in profile.events.iter_enumerated() {
            // No two events of a recording are one.
            let is_free = |at: &EventId| !moved.raw.contains(at);
            let events = self.all.events.iter_enumerated();
            let same = events.filter(|(at, known)| {
                let is_anywhere =
                    self.normalizes || known.unit == Unit::Nanoseconds || known.is_tracepoint;
                is_same(known, event) && (is_anywhere || self.arches[*at] == arch)
            });
            let same = same.map(|(at, _)| at).find(is_free);
            let at = if let Some(at) = same {
                add_event(&mut self.all.events[at], event);
                at
            } else {
                added.push(old);
                self.arches.push(arch.clone());
                self.all.events.push(event.clone())
            };
            moved.push(at);
        }
        for old in added {
            let leader = moved.get(profile.events[old].leader).copied();
            self.all.events[moved[old]].leader = leader.unwrap_or(moved[old]);
        }
        for field in &profile.fields {
            let mut field: FieldKey = field.clone();
            field.event = moved.get(field.event).copied().unwrap_or(field.event);
            if !self.all.fields.contains(&field) {
                self.all.fields.push(field);
            }
        }
        moved
    }

    fn add_object(&mut self, object: &Object) -> ObjectId {
        let key = match object.build_id {
            _ if object.is_jit => ObjectKey::Made,
            Some(id) => ObjectKey::Build(id, object.short_name.clone()),
            None => ObjectKey::Path(
                object.long_name.clone(),
                object.short_name.clone(),
                [
                    object.is_kernel,
                    object.is_jit,
                    object.identity,
                    object.is_label(),
                ],
            ),
        };
        let all = &mut self.all.objects;
        let at = *self.objects.entry(key).or_insert_with(|| {
            let rank = if object.is_label() {
                u32::MAX
            } else {
                u32::try_from(all.len()).unwrap_or(u32::MAX - 1)
            };
            all.push(Object {
                rank,
                ranges: Vec::new(),
                ..object.clone()
            })
        });
        if object.is_jit && all[at].long_name != object.long_name {
            all[at].short_name = MADE.to_owned();
            all[at].long_name = MADE.to_owned();
        }
        for range in &object.ranges {
            if !all[at].ranges.contains(range) {
                all[at].ranges.push(*range);
            }
        }
        at
    }

    fn add_symbol(&mut self, symbol: &Symbol, object: ObjectId) -> SymbolId {
        let is_made = self.all.objects[object].is_jit;
        let all = &mut self.all.symbols;
        let is = |known: &Symbol| {
            known.object == object
                && known.name == symbol.name
                && (is_made || (known.start, known.end) == (symbol.start, symbol.end))
                && (known.inlined, known.is_data) == (symbol.inlined, symbol.is_data)
                && known.producer == symbol.producer
                && known.parameters == symbol.parameters
                && known.place == symbol.place
                && known.recorded == symbol.recorded
        };
        let objects = &self.all.objects;
        let hash = |each: &Symbol, owner: ObjectId| {
            let place: Option<&Place> = each.place.as_deref();
            let start = Some(each.start).filter(|_| !objects[owner].is_jit);
            let key = (owner, &each.name, start, each.inlined, place);
            FxBuildHasher.hash_one(key)
        };
        let new = all.next_idx();
        let found = self.symbols.find_or_add(
            hash(symbol, object),
            new,
            |at| is(&all[at]),
            |at| hash(&all[at], all[at].object),
        );
        found.unwrap_or_else(|| {
            all.push(Symbol {
                object,
                ..symbol.clone()
            })
        })
    }

    fn add_frame(&mut self, frame: Frame) -> FrameId {
        let is_apart = frame.symbol.is_none() || self.needs.contains(Needs::ADDRESSES);
        let key = FrameKey {
            object: frame.object,
            symbol: frame.symbol,
            address: is_apart.then_some(match frame.object {
                Some(_) => frame.object_address,
                None => FileOffset(frame.address.0),
            }),
            mode: frame.mode as u8,
            line: frame.line,
            code: frame.code,
        };
        let all = &mut self.all.frames;
        *self.frames.entry(key).or_insert_with(|| all.push(frame))
    }

    fn add_marks(&mut self, profile: &Profile, moved: &Moved) {
        for (mark, of) in self.all.marks.0.iter_mut().zip(&profile.marks.0) {
            *mark = mark.or_else(|| of.map(|frame| moved.frames[frame]));
        }
    }

    /// Threads that entries have: each its own where somebody asks for threads.
    fn add_threads(&mut self, profile: &Profile, moved: &Moved) -> IndexVec<ThreadId, ThreadId> {
        let number = self.number(profile);
        let is_apart = self.needs.contains(Needs::THREADS);
        let mut has_samples = IndexVec::from_vec(vec![false; profile.threads.len()]);
        let entries = profile.entries.iter().map(|entry| entry.thread);
        let samples = profile.samples.iter().map(|sample| sample.thread);
        for thread in entries.chain(samples) {
            has_samples[thread] = true;
        }
        let mut threads = IndexVec::new();
        for (old, thread) in profile.threads.iter_enumerated() {
            let comms = thread.comms.iter();
            let new = Thread {
                comm: moved.comms[thread.comm],
                program: moved.comms[thread.program],
                main: thread.main.map(|object| moved.objects[object]),
                comms: comms
                    .map(|(time, comm)| (*time, moved.comms[*comm]))
                    .collect(),
                cgroups: thread.cgroups.clone(),
                lives: Vec::new(),
                ..*thread
            };
            let is_first = new.pid == new.tid;
            let key = (new.comm, new.program, new.main, is_first, new.is_idle());
            let all = &mut self.all.threads;
            let at = if is_apart {
                all.push(new)
            } else {
                *self.threads.entry(key).or_insert_with(|| all.push(new))
            };
            if has_samples[old] || is_apart {
                all[at].lives.push((number, thread.pid, thread.tid));
            }
            threads.push(at);
        }
        threads
    }

    /// The number of a recording whose processes are told by their ids: slices of one have one.
    fn number(&mut self, profile: &Profile) -> u32 {
        let new = u32::try_from(self.all.recording.parts.len()).unwrap_or(u32::MAX);
        let recording = &profile.recording;
        let (Some(series), Some(time)) = (recording.series, recording.time_range) else {
            return new;
        };
        let all = self.series.entry(series).or_default();
        // Two boots of one machine may count alike: their times are no slices of one then.
        let is_apart = |other: &(u64, u64)| time.1 <= other.0 || other.1 <= time.0;
        let mut fitting = all.iter_mut();
        if let Some(slices) = fitting.find(|slices| slices.times.iter().all(is_apart)) {
            slices.times.push(time);
            return slices.number;
        }
        all.push(Slices {
            number: new,
            times: vec![time],
        });
        new
    }

    fn add_stacks(&mut self, profile: &Profile, moved: &Moved) -> IndexVec<StackId, StackId> {
        let mut stacks = IndexVec::with_capacity(profile.stacks.len());
        let mut frames = Vec::new();
        for at in 0..profile.stacks.len() {
            let of = StackId::from_usize(at);
            frames.clear();
            frames.extend(
                profile
                    .stacks
                    .get(of)
                    .iter()
                    .map(|frame| moved.frames[*frame]),
            );
            let Stacks(all) = &mut self.all.stacks;
            stacks.push(self.stacks.intern(all, &frames, profile.stacks.end(of)));
        }
        stacks
    }

    /// Adds an entry, whose squares of periods are told.
    fn add_entry(&mut self, new: Entry, squares: f64, are_equal: bool) {
        let key = (
            new.event, new.state, new.comm, new.thread, new.leaf, new.stack, new.facets, new.time,
        );
        let all = &mut self.all.entries;
        let unequal: &mut Squares = &mut self.all.unequal;
        let Some(&at) = self.entries.get(&key) else {
            if !are_equal {
                unequal.insert((new.first, new.event), squares);
            }
            self.entries.insert(key, all.push(new));
            return;
        };
        let entry = &mut all[at];
        let place = (entry.first, entry.event);
        let before = unequal.get(&place).copied();
        let before = before.unwrap_or_else(|| entry.equal_squares());
        entry.period = entry.period.wrapping_add(new.period);
        entry.samples += new.samples;
        let sum = before + squares;
        if self.needs.contains(Needs::SQUARES) && sum > entry.equal_squares() * (1.0 + 1e-9) {
            unequal.insert(place, sum);
        }
    }

    /// What is told of recordings besides rows.
    fn add_facts(&mut self, profile: Profile, moved: &Moved) {
        let is_first = self.all.recording.parts.is_empty();
        let all = &mut self.all;
        self.errors += profile.quality.stitch_error * profile.quality.samples() as f64;
        let (quality, other) = (&mut all.quality, profile.quality);
        quality
            .events
            .resize(all.events.len(), EventQuality::default());
        for (event, more) in other.events.iter_enumerated() {
            quality.events[moved.events[event]].add(more);
        }
        for text in other.dumps {
            if !quality.dumps.contains(&text) {
                quality.dumps.push(text);
            }
        }
        for text in other.weights {
            if !quality.weights.contains(&text) {
                quality.weights.push(text);
            }
        }
        if is_first {
            quality.kernel = other.kernel;
        } else if quality.kernel != other.kernel {
            "of each recording".clone_into(&mut quality.kernel);
        }
        if let Some(accesses) = profile.accesses {
            *all.accesses.get_or_insert(0) += accesses;
        }
        if let Some(more) = profile.branches {
            let branches = all.branches.get_or_insert_default();
            branches.add_all(&more, &moved.events);
        }
        let (sums, more) = (&mut all.predictions, profile.predictions);
        (sums.missed, sums.all) = (sums.missed + more.missed, sums.all + more.all);
        // Which function is the worst of all, the worst of each do not tell.
        sums.worst = if is_first { more.worst } else { None };
        let recording = profile.recording;
        if is_first {
            all.recording = recording;
            return;
        }
        let sum = &mut all.recording;
        sum.lost_samples += recording.lost_samples;
        sum.lost += recording.lost;
        sum.idle_cpus += recording.idle_cpus;
        sum.lost_chunks += recording.lost_chunks;
        sum.records += recording.records;
        // Lines that both have are true of both; clocks of two hosts have nothing in common.
        let lines: Vec<String> = std::mem::take(&mut sum.header);
        let is_common = |line: &String| recording.header.contains(line);
        sum.header = lines.into_iter().filter(is_common).collect();
        (sum.time_range, sum.begin, sum.wall_clock) = (None, None, None);
        (sum.chosen, sum.chosen_ns) = (None, None);
        sum.lost_at.clear();
        if sum.sockets != recording.sockets {
            sum.sockets.clear();
        }
        let counters = recording
            .counters
            .into_iter()
            .filter_map(|(pid, tid, event, count)| {
                let event = moved.events.get(EventId(u16::try_from(event).ok()?))?;
                Some((pid, tid, usize::from(event.0), count))
            });
        sum.counters.extend(counters);
        if sum.command != recording.command {
            sum.command.clear();
        }
        if sum.asked != recording.asked {
            sum.asked.clear();
        }
        sum.is_unfinished |= recording.is_unfinished;
        sum.status = sum.status.max(recording.status);
        let used = sum.used.zip(recording.used);
        sum.used = used.map(|([user, system], [added, also])| {
            [user.saturating_add(added), system.saturating_add(also)]
        });
        sum.switches += recording.switches;
        sum.tells_switches |= recording.tells_switches;
        sum.holds_totals |= recording.holds_totals;
        sum.trace = sum.trace.or(recording.trace);
        sum.has_branches |= recording.has_branches;
        sum.parts.extend(recording.parts);
    }
}

/// The number of a text.
fn known<I: crate::ids::Idx>(
    numbers: &mut FxHashMap<String, I>,
    all: &mut IndexVec<I, String>,
    text: &str,
) -> I {
    if let Some(known) = numbers.get(text) {
        return *known;
    }
    let new = all.push(text.to_owned());
    numbers.insert(text.to_owned(), new);
    new
}

/// Whether two recordings count the same.
fn is_same(one: &EventSummary, other: &EventSummary) -> bool {
    (what(one), one.unit, one.counted) == (what(other), other.unit, other.counted)
        && one.is_tracepoint == other.is_tracepoint
}

/// What an event counts: its name, with one name for what is one function in the C library.
fn what(event: &EventSummary) -> Cow<'_, str> {
    let name = &event.name;
    if event.counted.is_some() {
        let words = name.split(' ');
        let words = words.map(|word| match word {
            "memalign" => "aligned_alloc",
            "memalign," => "aligned_alloc,",
            word => word,
        });
        return words.collect::<Vec<&str>>().join(" ").into();
    }
    if event.is_tracepoint {
        return name.into();
    }
    counted_by(name)
}

/// What an event of this name counts: for clocks without what is said of their rate and precision.
pub(crate) fn counted_by(name: &str) -> Cow<'_, str> {
    let mut clocks = ["cpu-clock", "task-clock"].into_iter();
    let found = clocks.find_map(|clock| Some((clock, name.strip_prefix(clock)?)));
    let Some((clock, rest)) = found else {
        return name.into();
    };
    let (terms, modifiers) = match rest.strip_prefix('/').and_then(|rest| rest.split_once('/')) {
        Some(parts) => parts,
        None => ("", rest.strip_prefix(':').unwrap_or(rest)),
    };
    let is_how = |term: &&str| {
        let how = ["freq=", "period=", "call-graph=", "stack-size="];
        !term.is_empty() && !how.iter().any(|how| term.starts_with(how))
    };
    let terms: Vec<&str> = terms.split(',').filter(is_how).collect();
    let modifiers = modifiers.replace(['p', 'P', ':'], "");
    format!("{clock} {} {modifiers}", terms.join(",")).into()
}

fn add_event(sum: &mut EventSummary, more: &EventSummary) {
    sum.samples += more.samples;
    sum.period = sum.period.wrapping_add(more.period);
    sum.lost += more.lost;
    sum.filtered_samples += more.filtered_samples;
    sum.filtered_period = sum.filtered_period.wrapping_add(more.filtered_period);
    sum.has_callchains |= more.has_callchains;
    // One that lost samples makes an estimate of the sum.
    sum.is_whole &= more.is_whole;
    for note in &more.notes {
        if !sum.notes.contains(note) {
            sum.notes.push(note.clone());
        }
    }
    if sum.sampling != more.sampling {
        sum.sampling = Sampling::Unknown;
    }
    let (holds, other) = (&mut sum.holds, more.holds);
    holds.cpu &= other.cpu;
    holds.address &= other.address;
    holds.data_source &= other.data_source;
    holds.cost &= other.cost;
    holds.instruction_latency &= other.instruction_latency;
    holds.branches &= other.branches;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_one_recording_have_one_number() {
        let mut pool = Pool::default();
        let mut number = |series, time_range| {
            let mut profile = Profile::default();
            profile.recording.series = series;
            profile.recording.time_range = time_range;
            let number = pool.number(&profile);
            pool.all
                .recording
                .parts
                .push(crate::profile::Part::default());
            number
        };
        assert_eq!(number(Some(7), Some((20, 30))), 0);
        assert_eq!(number(Some(7), Some((0, 20))), 0);
        // Another command, another boot, and what cannot be told.
        assert_eq!(number(Some(8), Some((30, 40))), 2);
        assert_eq!(number(Some(7), Some((25, 28))), 3);
        assert_eq!(number(None, Some((30, 40))), 4);
        assert_eq!(number(Some(7), Some((28, 29))), 3);
        assert_eq!(number(Some(7), Some((40, 50))), 0);
    }

    #[test]
    fn a_recording_that_lost_samples_counts_the_same_event() {
        let event = |samples, is_whole| EventSummary {
            name: "page-faults".to_owned(),
            samples,
            period: samples,
            is_whole,
            ..EventSummary::default()
        };
        let mut whole = event(30, true);
        let lossy = event(9, false);
        assert!(is_same(&whole, &lossy));
        add_event(&mut whole, &lossy);
        assert_eq!((whole.period, whole.is_whole), (39, false));
    }

    #[test]
    fn clocks_are_one_however_often_and_precisely_they_tick() {
        let event = |name: &str, counted| EventSummary {
            name: name.to_owned(),
            counted,
            ..EventSummary::default()
        };
        let same = |a: &str, b: &str, counted| {
            assert_eq!(what(&event(a, counted)), what(&event(b, counted)));
        };
        let other = |a: &str, b: &str| {
            assert_ne!(what(&event(a, None)), what(&event(b, None)));
        };
        same("cpu-clock", "cpu-clock:ppp", None);
        same("cpu-clock:u", "cpu-clock/freq=1999/u", None);
        same("task-clock/period=1000,call-graph=fp/", "task-clock", None);
        other("cpu-clock", "cpu-clock:u");
        other("cpu-clock", "task-clock");
        other("cycles", "cycles:ppp");
        let (a, b) = (
            "live (bytes of malloc, memalign not freed)",
            "live (bytes of malloc, aligned_alloc not freed)",
        );
        same(a, b, Some("blocks"));
        assert_ne!(
            what(&event("alloc (bytes of malloc)", Some("blocks"))),
            what(&event(a, Some("blocks")))
        );
    }
}
