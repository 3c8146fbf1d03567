//! Frames, symbols, objects and code of what got an id.
//!
//! Behind the numbering, so that the processor can wait for many of them at once.

use rustc_hash::FxHashMap;

use super::numbering::{FIBER, LabelId, Met};
use super::places::{FileId, FrameKey, FramesOfPcs, PlaceLine, PlaceSymbol, SymbolNumber};
use super::{
    CodeId, CodeVersion, Frame, FrameId, MappedRange, Object, ObjectId, Origin, Profile, Recorded,
    SourceLine, StringId, Symbol, SymbolId,
};
use crate::address::{Avma, CodeOffset, FileOffset, Timestamp};
use crate::collect::{Collected, PcId};
use crate::dso::{DsoId, DsoKind};
use crate::ids::{Idx, IndexSlice, IndexVec};
use crate::jit::{JitCode, JitCodeId, ProcessId};
use crate::needs::Needs;
use crate::perfdata::CpuMode;
use crate::session::maps::Mapping;
use crate::session::{Session, Target};
use crate::symbolize::{Answers, Author, Resolution, StringIndex, SymbolIndex};

/// Makes frames, symbols and objects of what got an id.
pub(super) struct Filler<'b, 'a> {
    pub(super) collected: &'b Collected,
    pub(super) session: &'b Session<'a>,
    pub(super) labels_of_samples: &'b [String],
    pub(super) answers: Answers<'b>,
    pub(super) resolution: &'b Resolution,
    pub(super) places: FramesOfPcs,
    pub(super) profile: &'b mut Profile,
    pub(super) objects: IndexVec<DsoId, Option<ObjectId>>,
    pub(super) symbols: IndexVec<SymbolNumber, Option<SymbolId>>,
    pub(super) files: IndexVec<FileId, Option<StringId>>,
    /// Source files that JIT code names.
    pub(super) code_files: FxHashMap<std::borrow::Cow<'a, [u8]>, StringId>,
    pub(super) versions: FxHashMap<JitCodeId, CodeId>,
    /// When JIT code was gone, once somebody asks.
    pub(super) ends: Option<FxHashMap<JitCodeId, Timestamp>>,
    pub(super) labels: IndexVec<LabelId, (&'static str, FrameId)>,
}

impl Filler<'_, '_> {
    pub(super) fn fill(
        mut self,
        order: &IndexSlice<FrameId, [Met]>,
        mapped: &[(ProcessId, Mapping)],
        needs: Needs,
    ) {
        let most = order.len().min(self.symbols.len() + 1);
        self.profile.frames.raw.reserve_exact(order.len());
        self.profile.symbols.raw.reserve_exact(most);
        for &met in order {
            let frame = match met {
                Met::Label(label) => self.label(self.labels[label].0),
                Met::At(place, pc) => {
                    let place = self.places.all[place];
                    match place.label() {
                        Some(label) => self.label(&self.labels_of_samples[label]),
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
        let past = self.session.past_programs();
        let past = past.filter_map(|dso| self.objects[dso]);
        self.profile.past_programs.extend(past);
        self.profile.past_programs.sort_unstable();
        for (process, mapping) in mapped {
            self.range(self.session.pid_of(*process), mapping);
        }
        if needs.contains(Needs::KERNEL_RANGES) {
            let session = self.session;
            session
                .kernel_mappings()
                .for_each(|mapping| self.range(0, mapping));
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
            (Target::Dso(dso), None) => {
                let start = self
                    .session
                    .dsos
                    .module_start(dso)
                    .map_or(0, |start| start.0);
                FileOffset(pc.address.wrapping_sub(start))
            }
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
                recorded: self.places.names.recorded.get(name).cloned().flatten(),
                name: self.places.take_name(name),
                ..self.jit_code(target, object)
            },
            PlaceSymbol::InlinedInJit(_, name) => Symbol {
                name: self.resolution.strings[name].clone(),
                inlined: true,
                origin: self.author(name).origin,
                package: self.author(name).package,
                ..self.jit_code(target, object)
            },
            PlaceSymbol::Inlined(function, name) => Symbol {
                name: self.resolution.strings[name].clone(),
                is_data: false,
                is_cpp: false,
                inlined: true,
                others: None,
                recorded: None,
                origin: self.author(name).origin,
                package: self.author(name).package,
                parameters: self.resolution.parameters.get(name).cloned().flatten(),
                place: self.resolution.places.get(name).cloned().flatten(),
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
            is_cpp: false,
            inlined: false,
            producer: code.map(JitCode::producer),
            origin: Origin::Unknown,
            package: None,
            parameters: None,
            place: None,
            is_described: false,
            others: None,
            recorded: None,
        }
    }

    /// Whose code an inlined function is.
    fn author(&self, name: StringIndex) -> Author {
        let authors = &self.resolution.authors;
        authors.get(name).cloned().unwrap_or_default()
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
        let lines = code.true_lines().into_iter().map(|line| {
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
            is_cpp: found.is_cpp,
            inlined: false,
            producer: None,
            origin: found.origin,
            package: found.package.clone(),
            parameters: found.parameters.clone(),
            place: found.place.clone(),
            is_described: found.is_described,
            others: found.others.clone(),
            recorded: found.raw.as_ref().map(|raw| {
                Box::new(Recorded {
                    name: raw.to_string(),
                    is_word: false,
                })
            }),
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
            build_id: self.session.dsos.build_id(dso),
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
            is_cpp: false,
            inlined: false,
            producer: None,
            origin: Origin::Unknown,
            package: None,
            parameters: None,
            place: None,
            is_described: false,
            others: None,
            recorded: None,
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
