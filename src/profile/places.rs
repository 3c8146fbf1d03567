//! Which frames an address stands for: those of functions inlined there, and that of the function itself.
//!
//! In: the distinct addresses and what is known of them. Out: [`FramesOfPcs`], numbers that are equal for equal frames. They
//! depend on the order of the addresses, and with it on threads; [`super::build`] numbers frames
//! anew by the first sample. With numbers to go by it can do so in one pass over stacks that looks nothing up.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::jit_lines::JitLines;
use super::names::JitNames;
use super::{FrameNeeds, NONE, index};
use crate::address::FileOffset;
use crate::collect::{Collected, Pc, PcId};
use crate::dso::DsoId;
use crate::ids::IndexVec;
use crate::intern::ItemIndex;
use crate::perfdata::CpuMode;
use crate::runtimes::Producer;
use crate::session::jit::JitCodeId;
use crate::session::{Label, Session, Target};
use crate::symbolize::{
    Answers, InlinedFrame, Original, Resolution, Resolved, Site, SourceLine, SymbolIndex,
};

/// What makes a frame one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    /// Number of the symbol, see [`FramesOfPcs::symbol`], or [`NONE`].
    pub(super) symbol: u32,
    /// Number of the DSO, or [`NONE`].
    pub(super) dso: u32,
    /// 0 when frames of one symbol are one frame.
    address: u64,
    mode: CpuMode,
    /// Index into [`FramesOfPcs::details`], or [`NONE`].
    pub(super) detail: u32,
}

/// What is known of a frame besides its symbol, when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Detail {
    /// Its place in the sources.
    pub(super) line: Option<PlaceLine>,
    /// The version of JIT code.
    pub(super) code: Option<JitCodeId>,
}

/// A place in the sources: index into [`FramesOfPcs::files`], line and column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PlaceLine {
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) near: bool,
}

impl FrameKey {
    /// The DSO of labels, whose address is their number.
    const LABEL: u32 = NONE - 1;

    /// The label that it is, if it is one.
    pub(super) fn label(&self) -> Option<usize> {
        (self.dso == Self::LABEL).then(|| usize::try_from(self.address).unwrap_or(usize::MAX))
    }
}

/// What makes a symbol one symbol; inlined ones share the range of the function around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PlaceSymbol {
    /// Index of the name of JIT code.
    Jit(u32),
    /// Index into [`Resolution::symbols`].
    Function(u32),
    /// The function around it, and the index of its name in [`Resolution::strings`].
    Inlined(u32, u32),
    /// The name of the JIT code around it, and as above.
    InlinedInJit(u32, u32),
}

/// The frames of all addresses.
pub(super) struct FramesOfPcs {
    /// Distinct ones.
    pub(super) all: Vec<FrameKey>,
    pub(super) names: JitNames,
    /// Details of frames, when asked for.
    pub(super) details: Vec<Detail>,
    /// Distinct source files.
    pub(super) files: Vec<String>,
    /// By address: its frame without inlined ones, in the line of the address.
    leaf: IndexVec<PcId, u32>,
    /// By address, when inlined functions or lines are asked for: where its frames in chains are in `chained`.
    chains: IndexVec<PcId, (u32, u32)>,
    /// Inlined frames first, innermost first; the line of the last one is that of the outermost call.
    chained: Vec<u32>,
    functions: u32,
    /// Whether there are names with symbols in several DSOs.
    names_are_shared: bool,
    /// Symbols behind those of names and functions.
    others: Vec<PlaceSymbol>,
}

impl FramesOfPcs {
    /// Looks at all addresses.
    pub(super) fn of(
        collected: &Collected,
        session: &Session<'_>,
        answers: Answers<'_>,
        names: JitNames,
        needs: FrameNeeds,
    ) -> Self {
        let pcs = &collected.pcs;
        let mut maker = PcFramesMaker {
            session,
            answers,
            resolution: answers.resolution,
            needs,
            dso_of_name: vec![NONE; names.texts.len()],
            known_functions: same_functions(answers.resolution),
            other_numbers: FxHashMap::default(),
            detail_numbers: FxHashMap::default(),
            file_numbers: FxHashMap::default(),
            jit_lines: JitLines::of(pcs, session, needs),
            numbers: ItemIndex::with_capacity(names.texts.len() + answers.resolution.symbols.len()),
            out: Self {
                all: Vec::with_capacity(names.texts.len() + answers.resolution.symbols.len()),
                names,
                details: Vec::new(),
                files: Vec::new(),
                leaf: IndexVec::with_capacity(pcs.len()),
                chains: IndexVec::new(),
                chained: Vec::new(),
                functions: index(answers.resolution.symbols.len()),
                names_are_shared: false,
                others: Vec::new(),
            },
        };
        for pc in pcs.iter_enumerated() {
            maker.add(pc);
        }
        maker.out
    }

    /// The frame of a sample's own address.
    pub(super) fn leaf(&self, pc: PcId) -> u32 {
        self.leaf[pc]
    }

    /// The frames of an address in a chain.
    pub(super) fn chain(&self, pc: PcId) -> &[u32] {
        match self.chains.get(pc) {
            Some(&(from, to)) => &self.chained[from as usize..to as usize],
            None => std::slice::from_ref(&self.leaf[pc]),
        }
    }

    /// The text of a name, for the last time if one symbol at most can have it.
    pub(super) fn take_name(&mut self, name: u32) -> String {
        let text = &mut self.names.texts[name as usize];
        if self.names_are_shared {
            text.to_string()
        } else {
            std::mem::take(text).into()
        }
    }

    /// Number of numbers that symbols may have.
    pub(super) fn symbols(&self) -> usize {
        self.names.texts.len() + self.functions as usize + self.others.len()
    }

    /// What a symbol's number stands for.
    pub(super) fn symbol(&self, number: u32) -> PlaceSymbol {
        let names = index(self.names.texts.len());
        if number < names {
            PlaceSymbol::Jit(number)
        } else if number - names < self.functions {
            PlaceSymbol::Function(number - names)
        } else {
            self.others[(number - names - self.functions) as usize]
        }
    }
}

/// By function: the first one of the same DSO and range.
fn same_functions(resolution: &Resolution) -> IndexVec<SymbolIndex, u32> {
    let mut known = FxHashMap::default();
    let functions = (0..).zip(&resolution.symbols);
    functions
        .map(|(number, f)| *known.entry((f.dso, f.start, f.end)).or_insert(number))
        .collect()
}

struct PcFramesMaker<'b, 'a> {
    session: &'b Session<'a>,
    answers: Answers<'b>,
    resolution: &'b Resolution,
    needs: FrameNeeds,
    /// By name: the DSO under which it was first shown.
    dso_of_name: Vec<u32>,
    known_functions: IndexVec<SymbolIndex, u32>,
    other_numbers: FxHashMap<(PlaceSymbol, DsoId), u32>,
    detail_numbers: FxHashMap<Detail, u32>,
    file_numbers: FxHashMap<String, u32>,
    jit_lines: JitLines<'b>,
    numbers: ItemIndex,
    out: FramesOfPcs,
}

impl<'b> PcFramesMaker<'b, '_> {
    fn add(&mut self, (pc_id, pc): (PcId, &Pc)) {
        let is_chained = self.needs.inlines || self.needs.lines;
        let from = index(self.out.chained.len());
        let (leaf, outer) = match pc.target {
            Target::Nowhere => {
                let frame = self.frame(pc, None, None, NONE);
                (frame, frame)
            }
            Target::Jit(code, dso) => self.jit_frames((pc_id, pc), code, dso),
            Target::Dso(dso) => self.dso_frames(pc, dso),
            Target::Label(label) => {
                let frame = self.label_frame(label);
                (frame, frame)
            }
        };
        self.out.leaf.push(leaf);
        if is_chained {
            self.out.chained.push(outer);
            let range = (from, index(self.out.chained.len()));
            self.out.chains.push(range);
        }
    }

    /// As [`Self::dso_frames`].
    fn jit_frames(&mut self, (pc_id, pc): (PcId, &Pc), id: JitCodeId, dso: DsoId) -> (u32, u32) {
        let name = self.out.names.of_code[id];
        let known = &mut self.dso_of_name[name as usize];
        let symbol = match *known {
            NONE => {
                *known = dso.0;
                name
            }
            known if known == dso.0 => name,
            // Code of a perf map is shown under the mapping around it, and processes may map differently.
            _ => {
                self.out.names_are_shared = true;
                self.other(PlaceSymbol::Jit(name), dso)
            }
        };
        let wasm = self.answers.wasm.place_of_jit(id, pc.address);
        if let Some(resolved) = self.answers.of_wasm(wasm) {
            let around = |name: u32| PlaceSymbol::InlinedInJit(symbol, name);
            let code = self.needs.code.then_some(id);
            return self.frames_of(pc, dso, (Some((symbol, false)), code), resolved, around);
        }
        let detail = Detail {
            line: self.jit_line(pc_id, id),
            code: self.needs.code.then_some(id),
        };
        let detail = self.detail(detail);
        let frame = self.frame(pc, Some(dso), Some((symbol, false)), detail);
        (frame, frame)
    }

    /// Appends inlined frames to the chains; returns the frame itself in the line of the address and that of
    /// the outermost call.
    fn dso_frames(&mut self, pc: &Pc, dso: DsoId) -> (u32, u32) {
        let Some(resolved) = self.answers.get(Site::Dso(dso), pc.address) else {
            let frame = self.frame(pc, Some(dso), None, NONE);
            return (frame, frame);
        };
        let names = index(self.out.names.texts.len());
        let function = resolved.symbol.map(|symbol| self.known_functions[symbol]);
        let symbol = function.map(|function| {
            let is_data = self.resolution.symbols[function as usize].is_data;
            (names + function, is_data)
        });
        let wasm = self.answers.wasm.place_of_dso(dso, FileOffset(pc.address));
        let resolved = self.answers.of_wasm(wasm).unwrap_or(resolved);
        let around = |name: u32| PlaceSymbol::Inlined(function.unwrap_or(NONE), name);
        self.frames_of(pc, dso, (symbol, None), resolved, around)
    }

    /// The frames of a symbol, and of what is inlined in it if there is one.
    fn frames_of(
        &mut self,
        pc: &Pc,
        dso: DsoId,
        (symbol, code): (Option<(u32, bool)>, Option<JitCodeId>),
        resolved: &Resolved,
        around: impl Fn(u32) -> PlaceSymbol,
    ) -> (u32, u32) {
        let inlined = resolved.inlined(self.resolution);
        // Only the place of the address itself may be that of its neighbour.
        let is_near = |frame: &InlinedFrame| {
            resolved.doubtful
                && inlined
                    .first()
                    .is_some_and(|first| std::ptr::eq(first, frame))
        };
        if symbol.is_some() && self.needs.inlines {
            for inlined in inlined {
                let symbol = self.other(around(inlined.name.0), dso);
                let detail = self.dwarf_line(inlined.line, is_near(inlined), code);
                let frame = self.frame(pc, Some(dso), Some((symbol, false)), detail);
                self.out.chained.push(frame);
            }
        }
        let own = inlined.first().map_or(resolved.line, |first| first.line);
        let own = self.dwarf_line(own, resolved.doubtful, code);
        let near = resolved.doubtful && inlined.is_empty();
        let outermost = self.dwarf_line(resolved.line, near, code);
        let leaf = self.frame(pc, Some(dso), symbol, own);
        if own == outermost {
            return (leaf, leaf);
        }
        (leaf, self.frame(pc, Some(dso), symbol, outermost))
    }

    fn other(&mut self, symbol: PlaceSymbol, dso: DsoId) -> u32 {
        let out = &mut self.out;
        let new = index(out.names.texts.len() + out.functions as usize + out.others.len());
        *self.other_numbers.entry((symbol, dso)).or_insert_with(|| {
            out.others.push(symbol);
            new
        })
    }

    /// The number of a frame; of the symbol it has to be known whether it is one of data.
    fn frame(
        &mut self,
        pc: &Pc,
        dso: Option<DsoId>,
        symbol: Option<(u32, bool)>,
        detail: u32,
    ) -> u32 {
        let is_apart = self.needs.addresses || self.needs.lines;
        let is_apart = is_apart || symbol.is_none_or(|(_, is_data)| is_data);
        self.number(FrameKey {
            symbol: symbol.map_or(NONE, |(symbol, _)| symbol),
            dso: dso.map_or(NONE, |dso| dso.0),
            address: if is_apart { pc.at.0 } else { 0 },
            mode: pc.mode,
            detail,
        })
    }

    fn label_frame(&mut self, label: Label) -> u32 {
        self.number(FrameKey {
            symbol: NONE,
            dso: FrameKey::LABEL,
            address: u64::from(label.0),
            mode: CpuMode::User,
            detail: NONE,
        })
    }

    fn number(&mut self, place: FrameKey) -> u32 {
        let all = &mut self.out.all;
        let new = index(all.len());
        let hash = FxBuildHasher.hash_one(place);
        let is = |at: u32| all[at as usize] == place;
        let hash_of = |at: u32| FxBuildHasher.hash_one(all[at as usize]);
        let known = self.numbers.find_or_add(hash, new, is, hash_of);
        known.unwrap_or_else(|| {
            all.push(place);
            new
        })
    }

    /// The number of what is known of the line of an address, in DWARF.
    fn dwarf_line(&mut self, line: Option<SourceLine>, near: bool, code: Option<JitCodeId>) -> u32 {
        let line = line.filter(|_| self.needs.lines).map(|line| {
            let file = &self.resolution.strings[line.file];
            PlaceLine {
                file: self.file(file),
                line: line.line,
                column: line.column,
                near,
            }
        });
        self.detail(Detail { line, code })
    }

    /// The line of an address in JIT code: what the dump says of it, or of the whole function by its name.
    fn jit_line(&mut self, pc: PcId, id: JitCodeId) -> Option<PlaceLine> {
        if !self.needs.lines {
            return None;
        }
        let code = self.session.jit.code(id);
        let (file, line, column) = match self.jit_lines.next(pc) {
            Some(line) => (String::from_utf8_lossy(line.file), line.line, line.column),
            None if !self.out.names.tells_place[id] => return None,
            None => {
                let place = (code.producer().row().place)(code.name())?;
                let file = String::from_utf8_lossy(&code.name()[place.file]);
                (file, place.line, place.column)
            }
        };
        let original = self.original(code.producer(), &file, line, column);
        if let Some(original) = original {
            return Some(PlaceLine {
                file: self.file(&original.file),
                line: original.line,
                column: original.column,
                near: false,
            });
        }
        Some(PlaceLine {
            file: self.file(&file),
            line,
            column,
            near: false,
        })
    }

    /// What a compiler or bundler made a place of a script from.
    fn original(&self, producer: Producer, file: &str, line: u32, column: u32) -> Option<Original> {
        let maps = (producer.row().has_source_maps).then_some(self.answers.maps)?;
        maps.original(file, line, column)
    }

    fn file(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.file_numbers.get(name) {
            return known;
        }
        let files = &mut self.out.files;
        files.push(name.to_owned());
        let number = index(files.len() - 1);
        self.file_numbers.insert(name.to_owned(), number);
        number
    }

    fn detail(&mut self, detail: Detail) -> u32 {
        if detail.line.is_none() && detail.code.is_none() {
            return NONE;
        }
        let details = &mut self.out.details;
        *self.detail_numbers.entry(detail).or_insert_with(|| {
            details.push(detail);
            index(details.len() - 1)
        })
    }
}
