//! From address stacks and resolved addresses to the [`Profile`].
//!
//! What is equal is found first, in parallel and in the order in which it lies in memory ([`super::places`] for frames,
//! [`equal_stacks`] for stacks). Then everything gets its id in the order of the rows, that is of the first sample in
//! time, so that ids and with them the output do not depend on threads or hashing. That pass is serial and touches little
//! but numbers; frames and symbols are filled in after it, where the processor can wait for many of them at once.

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::address::{Avma, CodeOffset, FileOffset, Timestamp};
use crate::collect::{AddressStackId, AddressStacks, Collected, PayloadId, PcId, Row, Rows};
use crate::dso::{DsoId, DsoKind};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec, numbers};
use crate::intern::ItemIndex;
use crate::parallel::in_parallel;
use crate::perfdata::attr::sample_type;
use crate::perfdata::{CpuMode, Event, EventId};
use crate::session::jit::{JitCode, JitCodeId};
use crate::session::maps::Mapping;
use crate::session::{Session, Target};
use crate::symbolize::{Answers, NameStyle, Query, Resolution, Site, StringIndex, SymbolIndex};
use crate::wasm::{WasmCode, WasmPlace};

use super::names::JitNames;
use super::places::{FileId, FrameKey, FramesOfPcs, PlaceId, PlaceLine, PlaceSymbol, SymbolNumber};
use super::{
    CodeId, CodeVersion, Entry, EntryId, Frame, FrameId, MappedRange, Object, ObjectId, Origin,
    Profile, Sample, SourceLine, StackEnd, StackId, Stacks, StringId, Symbol, SymbolId, Thread,
    ThreadId,
};

/// What the view needs of frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameNeeds {
    /// Inlined frames in chains.
    pub inlines: bool,
    /// Frames kept apart by address.
    pub addresses: bool,
    /// Source lines of frames.
    pub lines: bool,
    /// Where objects were mapped.
    pub ranges: bool,
    /// Where the kernel and its modules lie, too.
    pub kernel_ranges: bool,
    /// JIT functions apart by version, with the code of each.
    pub code: bool,
    /// Whether lines of WebAssembly are looked for, shown or not.
    pub wasm_lines: bool,
    /// A frame where others are missing, so that only whole stacks begin at the root.
    pub marks: bool,
}

/// The addresses that have to be resolved in DSOs and modules of WebAssembly, each once, sorted.
#[must_use]
pub fn queries(collected: &Collected, wasm: &WasmCode<'_>, needs: FrameNeeds) -> Vec<Query> {
    let query = |place, address| Query {
        place,
        address,
        inlines: needs.inlines,
        lines: needs.lines,
    };
    let of_wasm = |place: WasmPlace| Query {
        lines: needs.lines || needs.wasm_lines,
        ..query(Site::Wasm(place.part), place.offset.into())
    };
    let mut queries = Vec::with_capacity(collected.pcs.len());
    for pc in &collected.pcs {
        match pc.target {
            Target::Dso(dso) => {
                queries.push(query(Site::Dso(dso), pc.address));
                let place = wasm.place_of_dso(dso, FileOffset(pc.address));
                queries.extend(place.map(of_wasm));
            }
            Target::Jit(code, _) => {
                let place = wasm.place_of_jit(code, pc.address);
                queries.extend(place.map(of_wasm));
            }
            Target::Nowhere | Target::Label(_) => {}
        }
    }
    if needs.code && needs.lines {
        queries.extend(whole_functions(collected, wasm).map(of_wasm));
    }
    queries.sort_unstable_by_key(place);
    queries.dedup();
    queries
}

/// The places in code that was hit from which on another line may count.
fn whole_functions<'w>(
    collected: &Collected,
    wasm: &'w WasmCode<'_>,
) -> impl Iterator<Item = WasmPlace> + 'w {
    let hit = collected.pcs.iter().filter_map(|pc| match pc.target {
        Target::Jit(code, _) => Some(code),
        _ => None,
    });
    let mut hit: Vec<JitCodeId> = hit.collect();
    hit.sort_unstable();
    hit.dedup();
    let places = move |code: JitCodeId| {
        let offsets = wasm.offsets(code).into_iter();
        offsets.filter_map(move |offset| wasm.place_of_jit(code, offset))
    };
    hit.into_iter().flat_map(places)
}

fn place(query: &Query) -> (Site, u64) {
    (query.place, query.address)
}

/// What a profile is made of.
pub enum Material<'c> {
    /// Somebody else looks at it, too.
    Lent(&'c Collected),
    /// Nobody needs stacks and rows behind those of the profile: they are given back, as both are large.
    Spent(&'c mut Collected),
}

impl Material<'_> {
    fn get(&self) -> &Collected {
        match self {
            Self::Lent(collected) => collected,
            Self::Spent(collected) => collected,
        }
    }

    fn forget_stacks(&mut self) {
        if let Self::Spent(collected) = self {
            collected.stacks = AddressStacks::default();
        }
    }

    fn forget_rows(&mut self) {
        if let Self::Spent(collected) = self {
            collected.rows = Vec::new();
            collected.addresses = Vec::new();
        }
    }
}

/// A profile, and where its frames are from.
pub struct Built {
    /// Its entries, frames, symbols and stacks.
    pub profile: Profile,
    /// By frame: an address that it was met at; nothing for one that is no function. Empty if nobody else looks.
    pub met: IndexVec<FrameId, Option<PcId>>,
}

/// Builds the entries, frames, symbols and stacks of a profile.
#[must_use]
pub fn build(
    mut material: Material<'_>,
    session: &Session<'_>,
    events: &IndexSlice<EventId, [Event]>,
    answers: Answers<'_>,
    names: NameStyle,
    needs: FrameNeeds,
    threads: usize,
) -> Built {
    let collected = material.get();
    let names = JitNames::of(collected, session, answers, (names, needs), threads);
    let places = FramesOfPcs::of(collected, session, answers, names, needs);
    let resolution = answers.resolution;
    let (same_stack, frames) = equal_stacks(&collected.stacks, &places, threads);
    let mut profile = Profile {
        comms: session.comms.clone(),
        values: collected.values.clone(),
        threads: threads_of(session),
        stacks: Stacks::with_capacity(frames),
        ..Profile::default()
    };
    let numberer = Numberer {
        collected,
        marks: needs.marks,
        places: &places,
        same_stack,
        stacks: index_vec![None; collected.stacks.len()],
        frames: index_vec![None; places.all.len()],
        stack_frames: Vec::new(),
        order: IndexVec::with_capacity(places.all.len() + 1),
        labels: IndexVec::new(),
        profile: &mut profile,
    };
    let Numbered {
        rows,
        order,
        labels,
    } = numberer.rows();
    material.forget_stacks();
    let collected = material.get();
    let mut tabler = Tabler {
        collected,
        numbers: &rows,
        cgroups: FxHashMap::default(),
        texts: index_vec![None; collected.texts.len()],
        profile: &mut profile,
    };
    match collected.kind {
        Rows::Merged => tabler.entries(),
        Rows::Samples => tabler.samples(events),
    }
    drop(rows);
    material.forget_rows();
    let collected = material.get();
    Filler {
        collected,
        session,
        answers,
        resolution,
        profile: &mut profile,
        objects: index_vec![None; session.dsos.len()],
        symbols: index_vec![None; places.symbols()],
        files: index_vec![None; places.files.len()],
        code_files: FxHashMap::default(),
        versions: FxHashMap::default(),
        ends: None,
        places,
        labels,
    }
    .fill(&order, needs);
    let met = match material {
        Material::Lent(_) => order.into_iter().map(Met::pc).collect(),
        Material::Spent(_) => IndexVec::new(),
    };
    Built { profile, met }
}

fn threads_of(session: &Session<'_>) -> IndexVec<ThreadId, Thread> {
    let threads = session.threads.iter();
    threads
        .map(|t| Thread {
            pid: t.pid,
            tid: t.tid,
            comm: t.comm,
            main: None,
            start: t.start.map(|time| time.0),
            end: t.end.map(|time| time.0),
            comms: t.comms.iter().map(|&(time, comm)| (time.0, comm)).collect(),
            cgroups: t.cgroups.iter().map(|&(time, of)| (time.0, of)).collect(),
        })
        .collect()
}

/// By stack of addresses: one that stands for the same frames and ended for the same reason. And how many frames all that
/// differ have.
fn equal_stacks(
    stacks: &AddressStacks,
    places: &FramesOfPcs,
    threads: usize,
) -> (IndexVec<AddressStackId, AddressStackId>, usize) {
    const PIECE: usize = 1024;
    let all: IndexVec<AddressStackId, AddressStackId> = stacks.ids().collect();
    let frames = |stack: AddressStackId| {
        let addresses = stacks.get(stack).iter();
        addresses.flat_map(|pc| places.chain(*pc)).copied()
    };
    let length = |stack: AddressStackId| -> usize {
        let addresses = stacks.get(stack).iter();
        addresses.map(|pc| places.chain(*pc).len()).sum()
    };
    let hash = |stack: &AddressStackId| {
        let mut state = FxBuildHasher.build_hasher();
        frames(*stack).for_each(|frame| frame.hash(&mut state));
        state.write_u8(stacks.tag(*stack) as u8);
        state.finish()
    };
    let hashes = in_parallel(all.raw.chunks(PIECE).collect(), threads, |piece| {
        piece.iter().map(hash).collect::<Vec<_>>()
    });
    let hashes: IndexVec<AddressStackId, u64> = hashes.into_iter().flatten().collect();
    let is = |a: AddressStackId, b: AddressStackId| {
        hashes[a] == hashes[b] && stacks.tag(a) == stacks.tag(b) && frames(a).eq(frames(b))
    };
    // Each thread compares those that its part of the hashes has.
    let parts = threads.clamp(1, 64) as u64;
    let found = in_parallel((0..parts).collect(), threads, |part| {
        let own = |stack: &AddressStackId| (hashes[*stack] >> 32) % parts == part;
        let mut known = ItemIndex::with_capacity(stacks.len() / parts as usize);
        let (mut found, mut frames_of_new) = (Vec::new(), 0);
        for stack in all.iter().copied().filter(own) {
            let hash_of = |stack: AddressStackId| hashes[stack];
            match known.find_or_add(hash_of(stack), stack, |at| is(at, stack), hash_of) {
                Some(same) => found.push((stack, same)),
                // And what may be put below them.
                None => frames_of_new += length(stack) + 1,
            }
        }
        (found, frames_of_new)
    });
    let frames = found.iter().map(|(_, frames)| frames).sum();
    let mut same_stack = all;
    for (stack, same) in found.into_iter().flat_map(|(found, _)| found) {
        same_stack[stack] = same;
    }
    (same_stack, frames)
}

numbers! {
    /// A frame that is no function: index into [`Numberer::labels`].
    struct LabelId(u32);
}

/// What a frame was first met as.
#[derive(Clone, Copy)]
enum Met {
    /// A place, at this address.
    At(PlaceId, PcId),
    /// No function.
    Label(LabelId),
}

impl Met {
    fn pc(self) -> Option<PcId> {
        match self {
            Self::At(_, pc) => Some(pc),
            Self::Label(_) => None,
        }
    }
}

/// Gives out ids in the order of the rows.
struct Numberer<'b> {
    collected: &'b Collected,
    marks: bool,
    places: &'b FramesOfPcs,
    /// By stack of addresses: one that is equal.
    same_stack: IndexVec<AddressStackId, AddressStackId>,
    /// By stack that stands for equal ones: its id.
    stacks: IndexVec<AddressStackId, Option<StackId>>,
    /// By place: the id of its frame.
    frames: IndexVec<PlaceId, Option<FrameId>>,
    /// Buffer for the stack under construction.
    stack_frames: Vec<FrameId>,
    order: IndexVec<FrameId, Met>,
    /// Frames that are no functions.
    labels: IndexVec<LabelId, (&'static str, FrameId)>,
    profile: &'b mut Profile,
}

/// What got a number.
struct Numbered {
    /// Leaf and stack of each row.
    rows: Vec<(FrameId, StackId)>,
    /// See [`Numberer::order`].
    order: IndexVec<FrameId, Met>,
    labels: IndexVec<LabelId, (&'static str, FrameId)>,
}

/// Makes entries, or samples, of rows.
struct Tabler<'b> {
    collected: &'b Collected,
    /// Leaf and stack of each row.
    numbers: &'b [(FrameId, StackId)],
    cgroups: FxHashMap<u64, StringId>,
    /// By payload's text; payloads have ids of their own, whatever other string is equal.
    texts: IndexVec<PayloadId, Option<StringId>>,
    profile: &'b mut Profile,
}

impl Tabler<'_> {
    fn entries(&mut self) {
        let collected = self.collected;
        let mut known = ItemIndex::with_capacity(collected.rows.len());
        let mut entries: IndexVec<EntryId, Entry> = IndexVec::with_capacity(collected.rows.len());
        for (row, numbers) in collected.rows.iter().zip(self.numbers) {
            let entry = self.entry(row, *numbers);
            let is = |at: EntryId| is_same_row(&entries[at], &entry);
            let new = entries.next_idx();
            let hash_of = |at: EntryId| row_hash(&entries[at]);
            match known.find_or_add(row_hash(&entry), new, is, hash_of) {
                Some(at) => {
                    let old = &mut entries[at];
                    old.period = old.period.wrapping_add(entry.period);
                    old.samples += entry.samples;
                }
                None => {
                    entries.push(entry);
                }
            }
        }
        self.profile.entries = entries;
    }

    fn samples(&mut self, events: &IndexSlice<EventId, [Event]>) {
        let collected = self.collected;
        let has = |event: EventId, field| events[event].attr.has(field);
        let mut addresses = collected.addresses.iter().peekable();
        self.profile.samples.reserve_exact(collected.rows.len());
        for (row, numbers) in collected.rows.iter().zip(self.numbers) {
            let entry = self.entry(row, *numbers);
            let own = (row.first, row.key.event);
            while addresses.next_if(|a| (a.0, a.1) < own).is_some() {}
            let address = addresses.peek().filter(|a| (a.0, a.1) == own);
            self.profile.samples.push(Sample {
                time: has(entry.event, sample_type::TIME).then_some(entry.time),
                cpu: u32::try_from(entry.cpu).ok(),
                event: entry.event,
                comm: entry.comm,
                thread: entry.thread,
                leaf: entry.leaf,
                stack: entry.stack,
                period: entry.period,
                address: address.map(|a| a.2),
                cgroup: entry.cgroup,
                trace: entry.trace,
            });
        }
    }

    fn entry(&mut self, row: &Row, (leaf, stack): (FrameId, StackId)) -> Entry {
        Entry {
            event: EventId(row.key.event),
            cpu: row.key.cpu,
            comm: row.key.comm,
            thread: row.key.thread,
            leaf,
            stack,
            time: row.key.time,
            cgroup: self.cgroup(row.key.cgroup),
            trace: row.key.trace.map(|text| self.payload(text)),
            values: row.key.fields,
            state: row.key.state,
            period: row.period,
            samples: row.samples,
            first: row.first,
        }
    }

    fn cgroup(&mut self, id: u64) -> Option<StringId> {
        let strings = &mut self.profile.strings;
        (id != 0).then(|| {
            let known = self.cgroups.entry(id);
            *known.or_insert_with(|| strings.push(format!("{id:#x}")))
        })
    }

    fn payload(&mut self, payload: PayloadId) -> StringId {
        let (texts, strings) = (&self.collected.texts, &mut self.profile.strings);
        let new = || strings.push(texts[payload].to_string());
        *self.texts[payload].get_or_insert_with(new)
    }
}

impl Numberer<'_> {
    fn rows(mut self) -> Numbered {
        let rows = self.collected.rows.iter();
        let rows = rows.map(|row| {
            let leaf = self.frame(self.places.leaf(row.key.leaf), row.key.leaf);
            (leaf, self.stack(row.key.stack))
        });
        Numbered {
            rows: rows.collect(),
            order: self.order,
            labels: self.labels,
        }
    }

    fn stack(&mut self, raw: AddressStackId) -> StackId {
        let same = self.same_stack[raw];
        if let Some(known) = self.stacks[same] {
            return known;
        }
        let (collected, places) = (self.collected, self.places);
        let mut frames = std::mem::take(&mut self.stack_frames);
        frames.clear();
        let end = collected.stacks.tag(raw);
        let mark = self.mark(end);
        for pc in collected.stacks.get(raw) {
            if Some(*pc) == collected.gap {
                frames.extend(mark);
                continue;
            }
            for &place in places.chain(*pc) {
                frames.push(self.frame(place, *pc));
            }
        }
        if matches!(end, StackEnd::FiberBase | StackEnd::StitchedFiber) {
            frames.push(self.label(FIBER));
        } else if end != StackEnd::Rooted && !frames.is_empty() {
            frames.extend(mark);
        }
        let id = self.profile.stacks.push(&frames, end);
        self.stack_frames = frames;
        self.stacks[same] = Some(id);
        id
    }

    fn frame(&mut self, place: PlaceId, pc: PcId) -> FrameId {
        let id = &mut self.frames[place];
        *id.get_or_insert_with(|| self.order.push(Met::At(place, pc)))
    }

    /// The frame that stands where frames are missing.
    fn mark(&mut self, end: StackEnd) -> Option<FrameId> {
        let word = end.mark().filter(|_| self.marks)?;
        let mark = self.label(word);
        self.profile.marks[end] = Some(mark);
        Some(mark)
    }

    /// The frame of a label.
    fn label(&mut self, text: &'static str) -> FrameId {
        if let Some((_, frame)) = self.labels.iter().find(|(known, _)| *known == text) {
            return *frame;
        }
        let frame = self.order.push(Met::Label(self.labels.next_idx()));
        self.labels.push((text, frame));
        frame
    }
}

/// The label below the base of a fiber's stack: what called the fiber is on another stack, which the sample does not hold.
const FIBER: &str = "[fiber]";

/// Whether two entries are equal in all that rows are told apart by.
fn is_same_row(a: &Entry, b: &Entry) -> bool {
    let key = |e: &Entry| {
        let rest = (e.event, e.cpu, e.comm, e.thread, e.time, e.cgroup);
        let rest = (rest, e.trace, e.values, e.state);
        (e.stack, e.leaf, rest)
    };
    key(a) == key(b)
}

fn row_hash(entry: &Entry) -> u64 {
    let ids = (
        entry.stack,
        entry.leaf,
        entry.thread,
        entry.comm,
        entry.trace,
    );
    let rest = (
        entry.event,
        entry.cpu,
        entry.time,
        entry.cgroup,
        entry.values,
        entry.state,
    );
    FxBuildHasher.hash_one((ids, rest))
}

/// Makes frames, symbols and objects of what got an id.
struct Filler<'b, 'a> {
    collected: &'b Collected,
    session: &'b Session<'a>,
    answers: Answers<'b>,
    resolution: &'b Resolution,
    places: FramesOfPcs,
    profile: &'b mut Profile,
    objects: IndexVec<DsoId, Option<ObjectId>>,
    symbols: IndexVec<SymbolNumber, Option<SymbolId>>,
    files: IndexVec<FileId, Option<StringId>>,
    /// Source files that JIT code names.
    code_files: FxHashMap<std::borrow::Cow<'a, [u8]>, StringId>,
    versions: FxHashMap<JitCodeId, CodeId>,
    /// When JIT code was gone, once somebody asks.
    ends: Option<FxHashMap<JitCodeId, Timestamp>>,
    labels: IndexVec<LabelId, (&'static str, FrameId)>,
}

impl Filler<'_, '_> {
    fn fill(mut self, order: &IndexSlice<FrameId, [Met]>, needs: FrameNeeds) {
        let most = order.len().min(self.symbols.len() + 1);
        self.profile.frames.raw.reserve_exact(order.len());
        self.profile.symbols.raw.reserve_exact(most);
        for &met in order {
            let frame = match met {
                Met::Label(label) => self.label(self.labels[label].0),
                Met::At(place, pc) => {
                    let place = self.places.all[place];
                    match place.label() {
                        Some(label) => self.label(&self.session.labels[label]),
                        None => self.frame(place, pc),
                    }
                }
            };
            self.profile.frames.push(frame);
        }
        let lives = self.profile.threads.iter_mut().zip(&self.session.threads);
        for (thread, life) in lives {
            let main = self.session.main_program(life.process);
            thread.main = main.and_then(|dso| self.objects[dso]);
        }
        if needs.ranges {
            self.ranges();
        }
        if needs.kernel_ranges {
            let session = self.session;
            session
                .kernel_mappings()
                .for_each(|mapping| self.range(0, mapping));
        }
    }

    /// Where the objects of the profile were mapped.
    fn ranges(&mut self) {
        for (process, mapping) in self.session.executable_mappings() {
            self.range(self.session.pid_of(process), &mapping);
        }
    }

    fn range(&mut self, pid: u32, mapping: &Mapping) {
        if let Some(object) = self.objects[mapping.dso] {
            let object = &mut self.profile.objects[object];
            object.ranges.push(MappedRange {
                pid,
                range: mapping.range,
                offset: mapping.offset,
            });
        }
    }

    fn frame(&mut self, place: FrameKey, pc: PcId) -> Frame {
        let pc = &self.collected.pcs[pc];
        let object = place.dso.map(|dso| self.object(dso));
        let symbol = object
            .zip(place.symbol)
            .map(|(object, symbol)| self.symbol(symbol, object, pc.target));
        let object_address = match (pc.target, symbol) {
            // Where the function would be if it had been compiled once, so that the offset in it is right.
            (Target::Jit(..), Some(symbol)) => self.profile[symbol].start.plus(pc.address),
            _ => FileOffset(pc.address),
        };
        let detail = place.detail.map(|detail| self.places.details[detail]);
        let line = detail.and_then(|detail| detail.line);
        let code = detail.and_then(|detail| detail.code);
        Frame {
            object,
            symbol,
            address: pc.at,
            object_address,
            mode: pc.mode,
            line: line.map(|line| self.line(line)),
            code: code.and_then(|code| Some(self.version(code, symbol?, object?))),
        }
    }

    /// The symbol of a number that first occurs in `target`.
    fn symbol(&mut self, number: SymbolNumber, object: ObjectId, target: Target) -> SymbolId {
        if let Some(id) = self.symbols[number] {
            return id;
        }
        let symbol = match self.places.symbol(number) {
            PlaceSymbol::Jit(name) => Symbol {
                name: self.places.take_name(name),
                ..self.jit_code(target, object)
            },
            PlaceSymbol::InlinedInJit(_, name) => Symbol {
                name: self.resolution.strings[name].clone(),
                inlined: true,
                origin: self.origin(name),
                ..self.jit_code(target, object)
            },
            PlaceSymbol::Inlined(function, name) => Symbol {
                name: self.resolution.strings[name].clone(),
                is_data: false,
                inlined: true,
                origin: self.origin(name),
                ..self.function(function, object)
            },
            PlaceSymbol::Function(function) => self.function(function, object),
        };
        let id = self.profile.symbols.push(symbol);
        self.symbols[number] = Some(id);
        id
    }

    /// The symbol of JIT code, without a name.
    fn jit_code(&self, target: Target, object: ObjectId) -> Symbol {
        let code = match target {
            Target::Jit(code, _) => Some(self.session.jit.code(code)),
            _ => None,
        };
        let range = code.map(JitCode::range);
        Symbol {
            object,
            name: String::new(),
            start: FileOffset(range.map_or(0, |range| range.start.0)),
            end: FileOffset(range.map_or(0, |range| range.end.0)),
            is_data: false,
            inlined: false,
            producer: code.map(JitCode::producer),
            origin: Origin::Unknown,
        }
    }

    /// Whose code an inlined function is.
    fn origin(&self, name: StringIndex) -> Origin {
        let origins = &self.resolution.origins;
        origins.get(name).copied().unwrap_or_default()
    }

    fn line(&mut self, line: PlaceLine) -> SourceLine {
        let known = &mut self.files[line.file];
        let strings = &mut self.profile.strings;
        let text = &mut self.places.files[line.file];
        SourceLine {
            file: *known.get_or_insert_with(|| strings.push(std::mem::take(text))),
            line: line.line,
            column: line.column,
            near: line.near,
        }
    }

    /// The version of a function that a piece of JIT code is.
    fn version(&mut self, id: JitCodeId, symbol: SymbolId, object: ObjectId) -> CodeId {
        if let Some(&known) = self.versions.get(&id) {
            return known;
        }
        let jit = &self.session.jit;
        let code = jit.code(id);
        let ends = self.ends.get_or_insert_with(|| jit.ends());
        let (files, strings) = (&mut self.code_files, &mut self.profile.strings);
        let of_wasm = self.answers.wasm.offsets(id).into_iter();
        let of_wasm = of_wasm.filter_map(|offset| {
            let place = self.answers.wasm.place_of_jit(id, offset);
            let answer = self.answers.of_wasm(place)?;
            let line = answer.own_line(self.resolution)?;
            let text = &self.resolution.strings[line.file];
            let file = files.entry(text.clone().into_bytes().into());
            let at = SourceLine {
                file: *file.or_insert_with(|| strings.push(text.clone())),
                line: line.line,
                column: line.column,
                near: answer.doubtful,
            };
            Some((CodeOffset::clipped(offset), at))
        });
        let of_wasm: Vec<_> = of_wasm.collect();
        let lines = code.lines().into_iter().map(|line| {
            let text = String::from_utf8_lossy(line.file);
            let maps = code.producer().row().has_source_maps;
            let maps = maps.then_some(self.answers.maps);
            let original = maps.and_then(|m| m.original(&text, line.line, line.column));
            let (text, number, column) = match original {
                Some(original) => (original.file, original.line, original.column),
                None => (text.into_owned(), line.line, line.column),
            };
            let file = files.entry(text.clone().into_bytes().into());
            let at = SourceLine {
                file: *file.or_insert_with(|| strings.push(text)),
                line: number,
                column,
                near: false,
            };
            (CodeOffset::clipped(line.offset), at)
        });
        let version = CodeVersion {
            symbol,
            object,
            pid: jit.object(code.object()).pid,
            start: code.start(),
            size: code.size(),
            bytes: code.bytes().into(),
            lines: if of_wasm.is_empty() {
                lines.collect()
            } else {
                of_wasm
            },
            from: code.loaded().0,
            to: ends.get(&id).map(|time| time.0),
        };
        let version = self.profile.code.push(version);
        self.versions.insert(id, version);
        version
    }

    fn function(&self, function: SymbolIndex, object: ObjectId) -> Symbol {
        let found = &self.resolution.symbols[function];
        Symbol {
            object,
            name: found.name.clone(),
            start: FileOffset(found.start),
            end: FileOffset(found.end),
            is_data: found.is_data,
            inlined: false,
            producer: None,
            origin: found.origin,
        }
    }

    fn object(&mut self, dso: DsoId) -> ObjectId {
        if let Some(id) = self.objects[dso] {
            return id;
        }
        let known = self.session.dsos.get(dso);
        let object = Object {
            short_name: known.short_name.clone(),
            long_name: String::from_utf8_lossy(&known.long_name).into_owned(),
            rank: dso.index() as u32,
            identity: known.kind.is_identity(),
            is_kernel: matches!(
                known.kind,
                DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol
            ),
            is_jit: matches!(known.kind, DsoKind::JitDump | DsoKind::Anonymous),
            origin: self.session.dsos.symbol_origin(dso),
            build_id: known.build_id,
            ranges: Vec::new(),
        };
        let id = self.profile.objects.push(object);
        self.objects[dso] = Some(id);
        id
    }

    /// A frame that is no function but tells something about the stack.
    fn label(&mut self, text: &str) -> Frame {
        let label = text.to_owned();
        let object = Object {
            short_name: label.clone(),
            long_name: label.clone(),
            rank: u32::MAX,
            identity: true,
            is_kernel: false,
            is_jit: false,
            origin: '!',
            build_id: None,
            ranges: Vec::new(),
        };
        let object = self.profile.objects.push(object);
        let symbol = Symbol {
            object,
            name: label,
            start: FileOffset(0),
            end: FileOffset(0),
            is_data: false,
            inlined: false,
            producer: None,
            origin: Origin::Unknown,
        };
        let symbol = self.profile.symbols.push(symbol);
        Frame {
            object: Some(object),
            symbol: Some(symbol),
            address: if text == FIBER {
                Avma(0)
            } else {
                Avma(u64::MAX)
            },
            object_address: FileOffset(0),
            mode: CpuMode::User,
            line: None,
            code: None,
        }
    }
}
