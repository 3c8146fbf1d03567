//! Which frames an address stands for: those of functions inlined there, and that of the function itself.
//!
//! In: the distinct addresses and what is known of them. Out: [`FramesOfPcs`], numbers that are equal for equal frames. They
//! depend on the order of the addresses, and with it on threads; [`super::build`] numbers frames
//! anew by the first sample. With numbers to go by it can do so in one pass over stacks that looks nothing up.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::jit_lines::JitLines;
use super::names::{JitNames, NameId};
use crate::address::FileOffset;
use crate::collect::{Collected, Pc, PcId};
use crate::dso::DsoId;
use crate::ids::{Idx, IndexVec, Part, Spare, index_vec, numbers};
use crate::intern::ItemIndex;
use crate::jit::JitCodeId;
use crate::needs::Needs;
use crate::perfdata::CpuMode;
use crate::runtimes::Producer;
use crate::session::{Label, Session, Target};
use crate::stack_end::StackEnd;
use crate::symbolize::{
    Answers, InlinedFrame, Original, Resolution, Resolved, Site, SourceLine, StringIndex,
    SymbolIndex,
};

numbers! {
    /// Index into [`FramesOfPcs::all`].
    pub(super) struct PlaceId(Spare);
    /// A symbol: names of JIT code come first, then functions, then others, see [`FramesOfPcs::symbol`].
    pub(super) struct SymbolNumber(Spare);
    /// Index into [`FramesOfPcs::others`].
    struct OtherId(u32);
    /// Index into [`FramesOfPcs::details`].
    pub(super) struct DetailId(Spare);
    /// Index into [`FramesOfPcs::files`].
    pub(super) struct FileId(u32);
}

/// What makes a frame one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    pub(super) symbol: Option<SymbolNumber>,
    pub(super) dso: Option<DsoId>,
    /// 0 when frames of one symbol are one frame; the number of a label.
    address: u64,
    mode: CpuMode,
    is_label: bool,
    pub(super) detail: Option<DetailId>,
}

/// What is known of a frame besides its symbol, when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Detail {
    /// Its place in the sources.
    pub(super) line: Option<PlaceLine>,
    /// The version of JIT code.
    pub(super) code: Option<JitCodeId>,
}

/// A place in the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PlaceLine {
    pub(super) file: FileId,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) near: bool,
}

impl FrameKey {
    /// The label that it is, if it is one.
    pub(super) fn label(&self) -> Option<usize> {
        (self.is_label).then(|| usize::try_from(self.address).unwrap_or(usize::MAX))
    }
}

/// What makes a symbol one symbol; inlined ones share the range of the function around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PlaceSymbol {
    /// JIT code.
    Jit(NameId),
    /// A function of a file.
    Function(SymbolIndex),
    /// The function around it, and its name.
    Inlined(SymbolIndex, StringIndex),
    /// The JIT code around it, and its name.
    InlinedInJit(SymbolNumber, StringIndex),
}

/// The frames of all addresses.
pub(super) struct FramesOfPcs {
    /// Distinct ones.
    pub(super) all: IndexVec<PlaceId, FrameKey>,
    pub(super) names: JitNames,
    /// Details of frames, when asked for.
    pub(super) details: IndexVec<DetailId, Detail>,
    /// Distinct source files.
    pub(super) files: IndexVec<FileId, String>,
    /// By address: its frame without inlined ones, in the line of the address.
    leaf: IndexVec<PcId, PlaceId>,
    /// By address, when inlined functions or lines are asked for: where its frames in chains are in `chained`.
    chains: IndexVec<PcId, Part<PlaceId>>,
    /// Inlined frames first, innermost first; the line of the last one is that of the outermost call.
    chained: Vec<PlaceId>,
    /// How many functions there are.
    functions: usize,
    /// Whether there are names with symbols in several DSOs.
    names_are_shared: bool,
    /// Symbols behind those of names and functions.
    others: IndexVec<OtherId, PlaceSymbol>,
    /// Those that stand where frames are missing, and why they are.
    gaps: Vec<(PlaceId, StackEnd)>,
}

impl FramesOfPcs {
    /// Looks at all addresses.
    pub(super) fn of(
        collected: &Collected,
        session: &Session<'_>,
        answers: Answers<'_>,
        names: JitNames,
        needs: Needs,
    ) -> Self {
        let pcs = &collected.pcs;
        let mut maker = PcFramesMaker {
            session,
            answers,
            resolution: answers.resolution,
            needs,
            dso_of_name: index_vec![None; names.texts.len()],
            known_functions: same_functions(answers.resolution),
            other_numbers: FxHashMap::default(),
            detail_numbers: FxHashMap::default(),
            file_numbers: FxHashMap::default(),
            jit_lines: JitLines::of(pcs, session, needs),
            numbers: ItemIndex::with_capacity(names.texts.len() + answers.resolution.symbols.len()),
            out: Self {
                all: IndexVec::with_capacity(names.texts.len() + answers.resolution.symbols.len()),
                names,
                details: IndexVec::new(),
                files: IndexVec::new(),
                leaf: IndexVec::with_capacity(pcs.len()),
                chains: IndexVec::new(),
                chained: Vec::new(),
                functions: answers.resolution.symbols.len(),
                names_are_shared: false,
                others: IndexVec::new(),
                gaps: Vec::new(),
            },
        };
        for pc in pcs.iter_enumerated() {
            maker.add(pc);
        }
        maker.out
    }

    /// The frame of a sample's own address.
    #[inline]
    pub(super) fn leaf(&self, pc: PcId) -> PlaceId {
        self.leaf[pc]
    }

    /// All addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = PcId> + use<> {
        self.leaf.indices()
    }

    /// The frames of an address in a chain.
    #[inline]
    pub(super) fn chain(&self, pc: PcId) -> &[PlaceId] {
        match self.chains.get(pc) {
            Some(part) => part.of(&self.chained),
            None => std::slice::from_ref(&self.leaf[pc]),
        }
    }

    /// Why frames are missing, if that is what a place stands for.
    #[inline]
    pub(super) fn gap(&self, place: PlaceId) -> Option<StackEnd> {
        let mut gaps = self.gaps.iter();
        gaps.find(|(gap, _)| *gap == place).map(|(_, end)| *end)
    }

    /// The text of a name, for the last time if one symbol at most can have it.
    pub(super) fn take_name(&mut self, name: NameId) -> String {
        let text = &mut self.names.texts[name];
        if self.names_are_shared {
            text.to_string()
        } else {
            std::mem::take(text).into()
        }
    }

    /// Number of numbers that symbols may have.
    pub(super) fn symbols(&self) -> usize {
        self.names.texts.len() + self.functions + self.others.len()
    }

    /// What a symbol's number stands for.
    pub(super) fn symbol(&self, number: SymbolNumber) -> PlaceSymbol {
        let (number, names) = (number.index(), self.names.texts.len());
        if number < names {
            PlaceSymbol::Jit(NameId::from_usize(number))
        } else if number - names < self.functions {
            PlaceSymbol::Function(SymbolIndex::from_usize(number - names))
        } else {
            self.others[OtherId::from_usize(number - names - self.functions)]
        }
    }

    fn number_of_function(&self, function: SymbolIndex) -> SymbolNumber {
        SymbolNumber::from_usize(self.names.texts.len() + function.index())
    }
}

#[cfg(test)]
impl FramesOfPcs {
    /// Addresses that stand for these frames in chains.
    pub(super) fn of_chains(chains: &[Vec<PlaceId>]) -> Self {
        let mut out = Self {
            all: IndexVec::new(),
            names: JitNames {
                of_code: IndexVec::new(),
                texts: IndexVec::new(),
                recorded: IndexVec::new(),
                tells_place: IndexVec::new(),
            },
            details: IndexVec::new(),
            files: IndexVec::new(),
            leaf: IndexVec::new(),
            chains: IndexVec::new(),
            chained: Vec::new(),
            functions: 0,
            names_are_shared: false,
            others: IndexVec::new(),
            gaps: Vec::new(),
        };
        for chain in chains {
            let from = out.chained.len();
            out.chained.extend_from_slice(chain);
            out.chains.push(Part::new(from..out.chained.len()));
            out.leaf.extend(chain.last());
        }
        out
    }
}

/// By function: the first one of the same DSO and range.
fn same_functions(resolution: &Resolution) -> IndexVec<SymbolIndex, SymbolIndex> {
    let mut known = FxHashMap::default();
    let functions = resolution.symbols.iter_enumerated();
    functions
        .map(|(number, f)| *known.entry((f.dso, f.start, f.end)).or_insert(number))
        .collect()
}

struct PcFramesMaker<'b, 'a> {
    session: &'b Session<'a>,
    answers: Answers<'b>,
    resolution: &'b Resolution,
    needs: Needs,
    /// By name: the DSO under which it was first shown.
    dso_of_name: IndexVec<NameId, Option<DsoId>>,
    known_functions: IndexVec<SymbolIndex, SymbolIndex>,
    other_numbers: FxHashMap<(PlaceSymbol, DsoId), SymbolNumber>,
    detail_numbers: FxHashMap<Detail, DetailId>,
    file_numbers: FxHashMap<String, FileId>,
    jit_lines: JitLines<'b>,
    numbers: ItemIndex<PlaceId>,
    out: FramesOfPcs,
}

impl<'b> PcFramesMaker<'b, '_> {
    fn add(&mut self, (pc_id, pc): (PcId, &Pc)) {
        let is_chained = self.needs.contains(Needs::INLINED) || self.needs.contains(Needs::LINES);
        let from = self.out.chained.len();
        let (leaf, outer) = match pc.target {
            Target::Nowhere => {
                let frame = self.frame(pc, None, None, None);
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
            let part = Part::new(from..self.out.chained.len());
            self.out.chains.push(part);
        }
    }

    /// As [`Self::dso_frames`].
    fn jit_frames(
        &mut self,
        (pc_id, pc): (PcId, &Pc),
        id: JitCodeId,
        dso: DsoId,
    ) -> (PlaceId, PlaceId) {
        let name = self.out.names.of_code[id].expect("names are made of all code that was hit");
        let symbol = if *self.dso_of_name[name].get_or_insert(dso) == dso {
            SymbolNumber::from_usize(name.index())
        } else {
            // Code of a perf map is shown under the mapping around it, and processes may map differently.
            self.out.names_are_shared = true;
            self.other(PlaceSymbol::Jit(name), dso)
        };
        let wasm = self.answers.wasm.place_of_jit(id, pc.address);
        if let Some(resolved) = self.answers.of_wasm(wasm) {
            let around = |inlined| PlaceSymbol::InlinedInJit(symbol, inlined);
            let code = self.needs.contains(Needs::CODE).then_some(id);
            let own = (Some((symbol, false)), code);
            return self.frames_of(pc, dso, own, resolved, Some(around));
        }
        let detail = Detail {
            line: self.jit_line(pc_id, id),
            code: self.needs.contains(Needs::CODE).then_some(id),
        };
        let detail = self.detail(detail);
        let frame = self.frame(pc, Some(dso), Some((symbol, false)), detail);
        (frame, frame)
    }

    /// Appends inlined frames to the chains; returns the frame itself in the line of the address and that of
    /// the outermost call.
    fn dso_frames(&mut self, pc: &Pc, dso: DsoId) -> (PlaceId, PlaceId) {
        let Some(resolved) = self.answers.get(Site::Dso(dso), pc.address) else {
            let frame = self.frame(pc, Some(dso), None, None);
            return (frame, frame);
        };
        let function = resolved.symbol.map(|symbol| self.known_functions[symbol]);
        let symbol = function.map(|function| {
            let is_data = self.resolution.symbols[function].is_data;
            (self.out.number_of_function(function), is_data)
        });
        let wasm = self.answers.wasm.place_of_dso(dso, FileOffset(pc.address));
        let resolved = self.answers.of_wasm(wasm).unwrap_or(resolved);
        let around = function.map(|function| move |name| PlaceSymbol::Inlined(function, name));
        self.frames_of(pc, dso, (symbol, None), resolved, around)
    }

    /// The frames of a symbol, and of what is inlined in it if there is one.
    fn frames_of(
        &mut self,
        pc: &Pc,
        dso: DsoId,
        (symbol, code): (Option<(SymbolNumber, bool)>, Option<JitCodeId>),
        resolved: &Resolved,
        around: Option<impl Fn(StringIndex) -> PlaceSymbol>,
    ) -> (PlaceId, PlaceId) {
        let inlined = resolved.inlined(self.resolution);
        // Only the place of the address itself may be that of its neighbour.
        let is_near = |frame: &InlinedFrame| {
            resolved.doubtful
                && inlined
                    .first()
                    .is_some_and(|first| std::ptr::eq(first, frame))
        };
        if let Some(around) = around.filter(|_| self.needs.contains(Needs::INLINED)) {
            for inner in inlined {
                let number = self.other(around(inner.name), dso);
                let detail = self.dwarf_line(inner.line, is_near(inner), code);
                let frame = self.frame(pc, Some(dso), Some((number, false)), detail);
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

    fn other(&mut self, symbol: PlaceSymbol, dso: DsoId) -> SymbolNumber {
        let out = &mut self.out;
        let new = SymbolNumber::from_usize(out.symbols());
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
        symbol: Option<(SymbolNumber, bool)>,
        detail: Option<DetailId>,
    ) -> PlaceId {
        let is_apart = self.needs.contains(Needs::ADDRESSES) || self.needs.contains(Needs::LINES);
        let is_apart = is_apart || symbol.is_none_or(|(_, is_data)| is_data);
        self.number(FrameKey {
            symbol: symbol.map(|(symbol, _)| symbol),
            dso,
            address: if is_apart { pc.at.0 } else { 0 },
            mode: pc.mode,
            is_label: false,
            detail,
        })
    }

    fn label_frame(&mut self, label: Label) -> PlaceId {
        let place = self.number(FrameKey {
            symbol: None,
            dso: None,
            address: u64::from(label.0),
            mode: CpuMode::User,
            is_label: true,
            detail: None,
        });
        if let Some(end) = label.gap()
            && self.out.gap(place).is_none()
        {
            self.out.gaps.push((place, end));
        }
        place
    }

    fn number(&mut self, place: FrameKey) -> PlaceId {
        let all = &mut self.out.all;
        let new = all.next_idx();
        let hash = FxBuildHasher.hash_one(place);
        let is = |at: PlaceId| all[at] == place;
        let hash_of = |at: PlaceId| FxBuildHasher.hash_one(all[at]);
        let known = self.numbers.find_or_add(hash, new, is, hash_of);
        known.unwrap_or_else(|| all.push(place))
    }

    /// The number of what is known of the line of an address, in DWARF.
    fn dwarf_line(
        &mut self,
        line: Option<SourceLine>,
        near: bool,
        code: Option<JitCodeId>,
    ) -> Option<DetailId> {
        let line = line
            .filter(|_| self.needs.contains(Needs::LINES))
            .map(|line| {
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
        if !self.needs.contains(Needs::LINES) {
            return None;
        }
        let code = self.session.jit.code(id);
        let of_function = self.needs.contains(Needs::FUNCTION_LINES);
        let (file, line, column) = match self.jit_lines.next(pc) {
            Some(line) => (String::from_utf8_lossy(line.file), line.line, line.column),
            None if !of_function || !self.out.names.tells_place[id] => return None,
            None => {
                let name = self.session.jit.name_with_file(id);
                let place = (code.producer().row().place)(&name)?;
                let file = String::from_utf8_lossy(&name[place.file]).into_owned();
                (file.into(), place.line, place.column)
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

    fn file(&mut self, name: &str) -> FileId {
        if let Some(&known) = self.file_numbers.get(name) {
            return known;
        }
        let number = self.out.files.push(name.to_owned());
        self.file_numbers.insert(name.to_owned(), number);
        number
    }

    fn detail(&mut self, detail: Detail) -> Option<DetailId> {
        if detail.line.is_none() && detail.code.is_none() {
            return None;
        }
        let details = &mut self.out.details;
        let known = self.detail_numbers.entry(detail);
        Some(*known.or_insert_with(|| details.push(detail)))
    }
}
