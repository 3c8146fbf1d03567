//! From address stacks and resolved addresses to the [`Profile`].
//!
//! Everything is interned in the order of the rows, that is of the first sample in time, so that ids and
//! with them the output do not depend on threads or hashing.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::collect::{Collected, Pc, PcId};
use crate::dso::demangle::demangle;
use crate::dso::{DsoId, DsoKind};
use crate::intern::{ItemIndex, SequenceIndex};
use crate::parallel::in_parallel;
use crate::perfdata::CpuMode;
use crate::session::jit::JitCodeId;
use crate::session::{Session, Target};
use crate::symbolize::{NameStyle, Query, Resolution, Resolved, SourceLine};

use super::{
    Entry, Frame, FrameId, Object, ObjectId, Profile, StackEnd, StackId, StringId, Symbol,
    SymbolId, Thread,
};

/// What the view needs of frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameNeeds {
    /// Inlined frames in chains.
    pub inlines: bool,
    /// Frames kept apart by address.
    pub addresses: bool,
    /// Source lines of frames.
    pub srclines: bool,
}

/// The addresses that have to be resolved in DSOs, each once, sorted.
#[must_use]
pub fn queries(collected: &Collected, needs: FrameNeeds) -> Vec<Query> {
    let mut queries: Vec<Query> = collected
        .pcs
        .iter()
        .filter_map(|pc| match pc.target {
            Target::Dso(dso) => Some(Query {
                dso,
                address: pc.address,
                inlines: needs.inlines,
                lines: needs.srclines,
            }),
            _ => None,
        })
        .collect();
    queries.sort_unstable_by_key(place);
    queries.dedup();
    queries
}

fn place(query: &Query) -> (DsoId, u64) {
    (query.dso, query.address)
}

/// Builds the entries, frames, symbols and stacks of a profile.
#[must_use]
pub fn build(
    collected: &Collected,
    session: &Session<'_>,
    queries: &[Query],
    resolution: &Resolution,
    names: NameStyle,
    needs: FrameNeeds,
    threads: usize,
) -> Profile {
    let jit_texts = jit_texts(collected, session, names, threads);
    let pcs_if = |needed: bool| if needed { collected.pcs.len() } else { 0 };
    let mut builder = Builder {
        session,
        collected,
        queries,
        resolution,
        needs,
        profile: Profile::default(),
        objects: vec![None; session.dsos.len()],
        symbols: FxHashMap::default(),
        jit_names: JitNames::with_capacity(jit_texts.len()),
        jit_texts,
        frames: ItemIndex::default(),
        strings: FxHashMap::default(),
        stacks: SequenceIndex::default(),
        stack_frames: Vec::new(),
        raw_stacks: vec![None; collected.stacks.len()],
        chain_frames: vec![None; pcs_if(needs.inlines)],
        chain_frame_ids: Vec::new(),
        leaf_frames: vec![None; collected.pcs.len()],
        outer_frames: vec![None; pcs_if(needs.srclines)],
        texts: vec![None; collected.texts.len()],
        fiber: None,
    };
    builder.profile.comms.clone_from(&session.comms);
    builder.profile.threads = session
        .threads
        .iter()
        .map(|t| Thread {
            pid: t.pid,
            tid: t.tid,
            comm: t.comm,
        })
        .collect();
    builder.entries();
    builder.profile
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    symbol: Option<SymbolId>,
    object: Option<ObjectId>,
    /// 0 when frames of one symbol are one frame.
    address: u64,
    mode: CpuMode,
    srcline: Option<StringId>,
}

/// What makes a symbol one symbol; inlined ones share the range of the function around them.
#[derive(PartialEq, Eq, Hash)]
struct SymbolKey {
    object: ObjectId,
    start: u64,
    end: u64,
    inlined: Option<u32>,
}

struct Builder<'b, 'a> {
    session: &'b Session<'a>,
    collected: &'b Collected,
    queries: &'b [Query],
    resolution: &'b Resolution,
    needs: FrameNeeds,
    profile: Profile,
    objects: Vec<Option<ObjectId>>,
    symbols: FxHashMap<SymbolKey, SymbolId>,
    jit_names: JitNames,
    jit_texts: JitTexts,
    frames: ItemIndex,
    strings: FxHashMap<String, StringId>,
    stacks: SequenceIndex,
    /// Buffer for the stack under construction.
    stack_frames: Vec<FrameId>,
    raw_stacks: Vec<Option<StackId>>,
    /// Range in `chain_frame_ids` of the frames that an address stands for in a chain.
    chain_frames: Vec<Option<(u32, u32)>>,
    chain_frame_ids: Vec<FrameId>,
    leaf_frames: Vec<Option<FrameId>>,
    /// The same in chains, where the line is that of the outermost call.
    outer_frames: Vec<Option<FrameId>>,
    /// By payload's text; payloads have ids of their own, whatever other string is equal.
    texts: Vec<Option<StringId>>,
    /// The frame that labels the base of fibers, once there is one.
    fiber: Option<FrameId>,
}

impl<'b> Builder<'b, '_> {
    fn entries(&mut self) {
        let rows = self.collected.rows.len();
        let mut merged: FxHashMap<Entry, usize> =
            FxHashMap::with_capacity_and_hasher(rows, FxBuildHasher);
        let mut entries: Vec<Entry> = Vec::with_capacity(self.collected.rows.len());
        for row in &self.collected.rows {
            let cgroup =
                (row.key.cgroup != 0).then(|| self.string(format!("{:#x}", row.key.cgroup)));
            let trace = self.payload(row.key.trace);
            let key = Entry {
                event: row.key.event,
                cpu: row.key.cpu,
                comm: row.key.comm,
                thread: row.key.thread,
                leaf: self.leaf(row.key.leaf),
                stack: self.stack(row.key.stack),
                time: row.key.time,
                cgroup,
                trace,
                period: 0,
                samples: 0,
                first: 0,
            };
            let entry = Entry {
                period: row.period,
                samples: row.samples,
                first: row.first,
                ..key
            };
            if self.collected.every_sample && self.needs.addresses && row.key.time != 0 {
                entries.push(entry);
                continue;
            }
            match merged.entry(key) {
                std::collections::hash_map::Entry::Occupied(at) => {
                    let old = &mut entries[*at.get()];
                    old.period = old.period.wrapping_add(entry.period);
                    old.samples += entry.samples;
                }
                std::collections::hash_map::Entry::Vacant(at) => {
                    at.insert(entries.len());
                    entries.push(entry);
                }
            }
        }
        self.profile.entries = entries;
    }

    fn payload(&mut self, text: u32) -> Option<StringId> {
        let known = self.texts.get_mut(text as usize)?;
        if known.is_none() {
            let text = self.collected.texts[text as usize].to_string();
            let id = push(&mut self.profile.strings, StringId, text);
            *known = Some(id);
        }
        *known
    }

    fn stack(&mut self, raw: u32) -> StackId {
        if let Some(id) = self.raw_stacks[raw as usize] {
            return id;
        }
        let collected = self.collected;
        let mut frames = std::mem::take(&mut self.stack_frames);
        frames.clear();
        for &pc in collected.stacks.get(raw) {
            if self.needs.inlines {
                let (from, to) = self.chain(pc);
                frames.extend_from_slice(&self.chain_frame_ids[from as usize..to as usize]);
            } else {
                frames.push(self.outer(pc));
            }
        }
        if collected.stacks.tag(raw) == StackEnd::FiberBase {
            let base = self.fiber_base();
            frames.push(base);
        }
        let id = self
            .profile
            .stacks
            .intern(&mut self.stacks, &frames, collected.stacks.tag(raw));
        self.stack_frames = frames;
        self.raw_stacks[raw as usize] = Some(id);
        id
    }

    /// The label below the base of a fiber's stack: what called the fiber is on another stack, which
    /// the sample does not hold.
    fn fiber_base(&mut self) -> FrameId {
        if let Some(frame) = self.fiber {
            return frame;
        }
        let label = "[fiber]".to_owned();
        let object = Object {
            short_name: label.clone(),
            long_name: label.clone(),
            rank: u32::MAX,
            identity: true,
            is_kernel: false,
            is_jit: false,
            origin: '!',
        };
        let object = push(&mut self.profile.objects, ObjectId, object);
        let symbol = Symbol {
            object,
            name: label,
            start: 0,
            end: 0,
            is_data: false,
            inlined: false,
        };
        let symbol = push(&mut self.profile.symbols, SymbolId, symbol);
        let frame = Frame {
            object: Some(object),
            symbol: Some(symbol),
            address: 0,
            object_address: 0,
            mode: CpuMode::User,
            srcline: None,
        };
        let frame = push(&mut self.profile.frames, FrameId, frame);
        self.fiber = Some(frame);
        frame
    }

    /// The frames that an address stands for in a chain: inlined ones first, innermost first.
    fn chain(&mut self, pc: PcId) -> (u32, u32) {
        if let Some(range) = self.chain_frames[pc.0 as usize] {
            return range;
        }
        let from = index(self.chain_frame_ids.len());
        self.push_inlined(pc);
        let outer = self.outer(pc);
        self.chain_frame_ids.push(outer);
        let range = (from, index(self.chain_frame_ids.len()));
        self.chain_frames[pc.0 as usize] = Some(range);
        range
    }

    fn push_inlined(&mut self, id: PcId) {
        let pc = self.collected.pcs[id.0 as usize];
        let Target::Dso(dso) = pc.target else { return };
        let resolution = self.resolution;
        let Some(resolved) = self.resolved(dso, pc.address) else {
            return;
        };
        let Some(function) = resolved.symbol.map(|s| &resolution.symbols[s.0 as usize]) else {
            return;
        };
        let object = self.object(dso);
        for inlined in resolved.inlined(resolution) {
            let key = SymbolKey {
                object,
                start: function.start,
                end: function.end,
                inlined: Some(inlined.name.0),
            };
            let profile = &mut self.profile;
            let symbol = *self.symbols.entry(key).or_insert_with(|| {
                push(
                    &mut profile.symbols,
                    SymbolId,
                    Symbol {
                        object,
                        name: resolution.strings[inlined.name.0 as usize].clone(),
                        start: function.start,
                        end: function.end,
                        is_data: false,
                        inlined: true,
                    },
                )
            });
            let srcline = self.srcline(inlined.line);
            let frame = self.frame(pc, Some(object), Some(symbol), srcline, pc.address);
            self.chain_frame_ids.push(frame);
        }
    }

    /// The frame of an address itself, without inlined ones, in the line of the address.
    fn leaf(&mut self, id: PcId) -> FrameId {
        if let Some(frame) = self.leaf_frames[id.0 as usize] {
            return frame;
        }
        let pc = self.collected.pcs[id.0 as usize];
        let frame = match pc.target {
            Target::Nowhere => self.frame(pc, None, None, None, pc.address),
            Target::Jit(code, dso) => self.jit_frame(pc, code, dso),
            Target::Dso(dso) => self.dso_frame(pc, dso, true),
        };
        self.leaf_frames[id.0 as usize] = Some(frame);
        frame
    }

    /// The frame of an address behind those that are inlined there, in the line of the outermost call.
    fn outer(&mut self, id: PcId) -> FrameId {
        let pc = self.collected.pcs[id.0 as usize];
        let (Target::Dso(dso), true) = (pc.target, self.needs.srclines) else {
            return self.leaf(id);
        };
        if let Some(frame) = self.outer_frames[id.0 as usize] {
            return frame;
        }
        let frame = self.dso_frame(pc, dso, false);
        self.outer_frames[id.0 as usize] = Some(frame);
        frame
    }

    fn dso_frame(&mut self, pc: Pc, dso: DsoId, innermost: bool) -> FrameId {
        let object = self.object(dso);
        let resolution = self.resolution;
        let Some(resolved) = self.resolved(dso, pc.address) else {
            return self.frame(pc, Some(object), None, None, pc.address);
        };
        let symbol = resolved.symbol.map(|s| {
            let found = &resolution.symbols[s.0 as usize];
            let key = SymbolKey {
                object,
                start: found.start,
                end: found.end,
                inlined: None,
            };
            let profile = &mut self.profile;
            *self.symbols.entry(key).or_insert_with(|| {
                push(
                    &mut profile.symbols,
                    SymbolId,
                    Symbol {
                        object,
                        name: found.name.clone(),
                        start: found.start,
                        end: found.end,
                        is_data: found.is_data,
                        inlined: false,
                    },
                )
            })
        });
        let line = match resolved.inlined(resolution).first() {
            Some(inlined) if innermost => inlined.line,
            _ => resolved.line,
        };
        let srcline = self.srcline(line);
        self.frame(pc, Some(object), symbol, srcline, pc.address)
    }

    fn jit_frame(&mut self, pc: Pc, id: JitCodeId, dso: DsoId) -> FrameId {
        let object = self.object(dso);
        let symbol = self.jit_symbol(id, object);
        let code = self.session.jit.code(id);
        let line = if self.needs.srclines {
            code.line_at(pc.address)
        } else {
            None
        };
        let srcline = line.map(|(file, line, _)| {
            self.string(format!("{}:{line}", String::from_utf8_lossy(file)))
        });
        // Where the function would be if it had been compiled once, so that the offset in it is right.
        let address = self.profile.symbols[symbol.0 as usize]
            .start
            .wrapping_add(pc.address);
        self.frame(pc, Some(object), Some(symbol), srcline, address)
    }

    /// The symbol of JIT code. A function of a dump that was compiled again has its name and is the same
    /// function; entries of a perf map are kept apart by address, as perf keeps them.
    fn jit_symbol(&mut self, id: JitCodeId, object: ObjectId) -> SymbolId {
        let known = &mut self.jit_texts.of_code[id.0 as usize];
        let text = match *known {
            JitText::Symbol(symbol) => return symbol,
            JitText::Text(at) => {
                let at = at as usize;
                std::mem::take(
                    &mut self.jit_texts.texts[at / JitTexts::PIECE][at % JitTexts::PIECE],
                )
            }
            JitText::NotHit => Shown::default(),
        };
        let code = self.session.jit.code(id);
        let symbols = &mut self.profile.symbols;
        let start = code.start.0;
        let symbol = (self.jit_names).intern(symbols, object, start, text, |name| Symbol {
            object,
            name,
            start,
            end: code.start.0.saturating_add(code.size),
            is_data: false,
            inlined: false,
        });
        *known = JitText::Symbol(symbol);
        symbol
    }

    fn frame(
        &mut self,
        pc: Pc,
        object: Option<ObjectId>,
        symbol: Option<SymbolId>,
        srcline: Option<StringId>,
        object_address: u64,
    ) -> FrameId {
        let frame = Frame {
            object,
            symbol,
            address: pc.at.0,
            object_address,
            mode: pc.mode,
            srcline,
        };
        let (profile, apart) = (&self.profile, self.needs.addresses || self.needs.srclines);
        let key = |frame: &Frame| frame_key(profile, frame, apart);
        let own = key(&frame);
        let of = |id: u32| key(&profile.frames[id as usize]);
        let known = self.frames.find_or_add(
            FxBuildHasher.hash_one(own),
            index(profile.frames.len()),
            |id| of(id) == own,
            |id| FxBuildHasher.hash_one(of(id)),
        );
        match known {
            Some(id) => FrameId(id),
            None => push(&mut self.profile.frames, FrameId, frame),
        }
    }

    fn resolved(&self, dso: DsoId, address: u64) -> Option<&'b Resolved> {
        let at = self
            .queries
            .binary_search_by_key(&(dso, address), place)
            .ok()?;
        self.resolution.answers.get(at)
    }

    fn object(&mut self, dso: DsoId) -> ObjectId {
        if let Some(id) = self.objects[dso.0 as usize] {
            return id;
        }
        let known = self.session.dsos.get(dso);
        let object = Object {
            short_name: known.short_name.clone(),
            long_name: String::from_utf8_lossy(&known.long_name).into_owned(),
            rank: dso.0,
            identity: known.kind.is_identity(),
            is_kernel: matches!(
                known.kind,
                DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol
            ),
            is_jit: matches!(known.kind, DsoKind::JitDump | DsoKind::Anonymous),
            origin: self.session.dsos.symbol_origin(dso),
        };
        let id = push(&mut self.profile.objects, ObjectId, object);
        self.objects[dso.0 as usize] = Some(id);
        id
    }

    fn srcline(&mut self, line: Option<SourceLine>) -> Option<StringId> {
        if !self.needs.srclines {
            return None;
        }
        let line = line?;
        let file = &self.resolution.strings[line.file.0 as usize];
        Some(self.string(format!("{file}:{}", line.line)))
    }

    fn string(&mut self, text: String) -> StringId {
        let profile = &mut self.profile;
        *self
            .strings
            .entry(text)
            .or_insert_with_key(|text| push(&mut profile.strings, StringId, text.clone()))
    }
}

/// JIT functions by object, name and, where that matters, address. The texts are those of the symbols: a module has a
/// hundred thousand names, and copies of them as keys cost more than anything else here.
struct JitNames {
    /// By hash of name and address: the newest symbol with it.
    newest: FxHashMap<u64, SymbolId>,
    /// The next older one with the same hash; seldom there is one.
    older: FxHashMap<SymbolId, SymbolId>,
}

impl JitNames {
    fn with_capacity(names: usize) -> Self {
        Self {
            newest: FxHashMap::with_capacity_and_hasher(names, FxBuildHasher),
            older: FxHashMap::default(),
        }
    }

    fn intern(
        &mut self,
        symbols: &mut Vec<Symbol>,
        object: ObjectId,
        start: u64,
        text: Shown,
        make: impl FnOnce(String) -> Symbol,
    ) -> SymbolId {
        let Shown { name, hash, apart } = text;
        let newest = self.newest.get(&hash).copied();
        let mut at = newest;
        while let Some(id) = at {
            let known = &symbols[id.0 as usize];
            let same_place = !apart || known.start == start;
            if known.object == object && same_place && *known.name == *name {
                return id;
            }
            at = self.older.get(&id).copied();
        }
        let id = push(symbols, SymbolId, make(name.into()));
        self.newest.insert(hash, id);
        newest.and_then(|newest| self.older.insert(id, newest));
        id
    }
}

/// The names of all JIT code that was hit.
struct JitTexts {
    /// By code.
    of_code: Vec<JitText>,
    /// In pieces of [`PIECE`](Self::PIECE), as they were made.
    texts: Vec<Vec<Shown>>,
}

impl JitTexts {
    const PIECE: usize = 1024;

    fn len(&self) -> usize {
        self.texts.iter().map(Vec::len).sum()
    }
}

/// What is known of the name of a piece of code.
#[derive(Clone, Copy)]
enum JitText {
    NotHit,
    /// Index of its text.
    Text(u32),
    Symbol(SymbolId),
}

/// A name as shown, whether the address keeps it apart from others, and a hash of what does.
#[derive(Default)]
struct Shown {
    name: Box<str>,
    hash: u64,
    apart: bool,
}

/// Makes the names of all code that was hit, in parallel and in the order of the dump: to read them is to wait for
/// memory.
fn jit_texts(
    collected: &Collected,
    session: &Session<'_>,
    names: NameStyle,
    threads: usize,
) -> JitTexts {
    let mut of_code = vec![JitText::NotHit; session.jit.code_count()];
    for pc in &collected.pcs {
        if let Target::Jit(id, _) = pc.target {
            of_code[id.0 as usize] = JitText::Text(0);
        }
    }
    let mut hit: Vec<JitCodeId> = Vec::new();
    for (id, text) in (0..).zip(&mut of_code) {
        if let JitText::Text(at) = text {
            *at = index(hit.len());
            hit.push(JitCodeId(id));
        }
    }
    let chunks: Vec<&[JitCodeId]> = hit.chunks(JitTexts::PIECE).collect();
    let texts = in_parallel(chunks, threads, |chunk| {
        let shown = |id: &JitCodeId| shown(session, *id, names);
        chunk.iter().map(shown).collect::<Vec<_>>()
    });
    JitTexts { of_code, texts }
}

fn shown(session: &Session<'_>, id: JitCodeId, names: NameStyle) -> Shown {
    let code = session.jit.code(id);
    let of_map = session.jit.object(code.object).is_perf_map();
    let name = if of_map {
        String::from_utf8_lossy(code.name)
    } else {
        demangle(code.name, names)
    };
    let start = of_map.then_some(code.start);
    Shown {
        hash: FxBuildHasher.hash_one((&*name, start)),
        name: name.into(),
        apart: of_map,
    }
}

/// What makes a frame one frame; `apart`: its address does.
fn frame_key(profile: &Profile, frame: &Frame, apart: bool) -> FrameKey {
    let is_data = |symbol: SymbolId| profile.symbols[symbol.0 as usize].is_data;
    let apart = apart || frame.symbol.is_none_or(is_data);
    FrameKey {
        symbol: frame.symbol,
        object: frame.object,
        address: if apart { frame.address } else { 0 },
        mode: frame.mode,
        srcline: frame.srcline,
    }
}

fn push<T, I>(list: &mut Vec<T>, id: impl Fn(u32) -> I, item: T) -> I {
    list.push(item);
    id(index(list.len() - 1))
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 4 G of anything interned")
}
