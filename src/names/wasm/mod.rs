//! WebAssembly: from the machine code of a module to its positions in the `.wasm`, and with them to DWARF.
//!
//! ```text
//! JIT code of a dump ─► matching ─┐
//!                                 ├─► .cwasm ─► address map ─► position ─► .wasm ─► DWARF, names
//! mapping of a .cwasm ────────────┘
//! ```
//!
//! In: the files that wasmtime compiled to and from (`find`), the JIT code of a session, the addresses that were hit. Out:
//! [`WasmCode`], which tells for an address in which core module it is and where in that module's DWARF. What stands
//! there is read by [`crate::symbolize`].
//!
//! A dump has neither lines nor a map, so both files are needed: the `.cwasm` with the map, and the `.wasm` with DWARF. Neither
//! is believed by its name: machine code has to be the same byte for byte (`matching`), and positions have to lie in the
//! functions they are of (`fit`). Where several files that differ pass, a name decides, and without one nothing is told: two
//! versions of a program in one folder gave the lines of the one that comes first in the alphabet.

pub mod addrmap;
pub mod compiled;
mod find;
mod fit;
mod leb;
mod matching;
pub mod module;

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::FileOffset;
use crate::collect::{Pc, PcId};
use crate::diagnostics::Diagnostics;
use crate::dso::DsoId;
use crate::find::{SearchPaths, map_of_module, path_of};
use crate::ids::{Idx, IndexSlice, IndexVec};
use crate::input::{Role, Store};
use crate::jit::{JitCodeId, JitObjectId};
use crate::runtimes::Producer;
use crate::session::{Session, Target};

use compiled::{Compiled, Function, WasmFunction};
use find::{Finder, WasmInput};
use fit::{Choice, Fit};
use matching::{Loaded, Matching};
use module::{CoreModule, FunctionIndex, WasmFile};

crate::ids::numbers! {
    /// Number of a core module with code in the recording.
    pub struct PartId(pub u32);
}

/// An address in the machine code of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WasmPlace {
    /// The module.
    pub part: PartId,
    /// Offset in the machine code; the index of a function where only functions are known.
    pub offset: u32,
}

/// Where a place is described in the DWARF of its module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DwarfAddress {
    /// The address.
    pub address: u64,
    /// Where code has no position of its own and `address` is that of a neighbour: that of the neighbour on its other side.
    pub other: Option<u64>,
}

/// A core module that has code in the recording.
#[derive(Debug)]
struct Part {
    /// The compiled file; none where only names tell functions.
    compiled: Option<usize>,
    /// Its number in that file.
    number: u32,
    /// File and module that it was compiled from, and by what positions are larger than there.
    source: Option<(usize, usize, i64)>,
    dwarf: DwarfKind,
}

/// What describes a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DwarfKind {
    /// Custom sections of the `.wasm`.
    Module,
    /// Sections of the `.cwasm`.
    Native,
    Nothing,
}

/// All WebAssembly of a run of which more is known than a dump tells.
#[derive(Default)]
pub struct WasmCode<'a> {
    store: Option<&'a Store>,
    diag: Option<&'a Diagnostics>,
    compiled: Vec<WasmInput<Compiled<'a>>>,
    files: Vec<WasmInput<WasmFile<'a>>>,
    parts: IndexVec<PartId, Part>,
    /// The part of each module of each compiled file.
    part_of: FxHashMap<(usize, u32), PartId>,
    codes: FxHashMap<JitCodeId, CodePlace>,
    /// Code that is that of another place just as well.
    rivals: Vec<(JitCodeId, CodePlace)>,
    dsos: FxHashMap<DsoId, usize>,
    /// Compiled files that are of other versions than ran.
    others: Vec<usize>,
    /// What was matched with what, for those who judge a recording.
    pub findings: Vec<Finding>,
}

/// File, module in it, and functions of that module by their names.
type Named = (usize, usize, Vec<(JitCodeId, FunctionIndex)>);

/// File and module that code was compiled from, and its position there.
type Origin = (Option<(usize, usize)>, Option<u64>);

/// What is known of a piece of JIT code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CodePlace {
    /// It is the code at this offset of a compiled file.
    Code(usize, u32),
    /// It is this function of a module.
    Function(PartId, FunctionIndex),
}

/// The places that a piece of JIT code may be, all equally likely.
#[derive(Default)]
struct Claim {
    /// Whether the user named the file, and how much of the piece around the code is the same.
    rank: (bool, u32),
    places: Vec<CodePlace>,
}

impl Claim {
    fn add(&mut self, rank: (bool, u32), place: CodePlace) {
        if rank > self.rank {
            self.rank = rank;
            self.places.clear();
        }
        // What is the same in hundreds of files is known by a few of them.
        if rank == self.rank && self.places.len() < 8 && !self.places.contains(&place) {
            self.places.push(place);
        }
    }
}

/// What is known of a module's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// It has debug information.
    WithDwarf,
    /// It was found, but without debug information.
    WithoutDwarf,
    /// It was not found.
    Missing,
}

/// How much of a compiled file was found in a dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The compiled file.
    pub path: PathBuf,
    /// wasmtime's version as it stands in it.
    pub version: String,
    /// Functions that are the same, and how many there would have to be.
    pub same: usize,
    /// See `same`.
    pub of: usize,
    /// Whether that was enough.
    pub is_used: bool,
    /// A function that ran otherwise than the file has it, where nearly all others are the same.
    pub other: Option<String>,
}

/// The source map that a module names.
pub(crate) struct ModuleMap<'w, 'a> {
    /// Owns the files.
    pub(crate) store: &'a Store,
    /// For what was looked for.
    pub(crate) diag: &'a Diagnostics,
    /// Where the module was found.
    pub(crate) module: &'w Path,
    /// What it says.
    pub(crate) url: &'a str,
}

impl ModuleMap<'_, '_> {
    /// Whether it is at hand.
    pub(crate) fn is_there(&self) -> bool {
        let door = || map_of_module(self.module, self.url);
        self.url.starts_with("data:") || door().is_some_and(|door| self.store.map(&door).is_ok())
    }
}

/// What the search needs to know.
pub struct Search<'s, 'a> {
    /// Owns the files.
    pub store: &'a Store,
    /// Where they may be.
    pub paths: &'s SearchPaths,
    /// What was recorded, word by word.
    pub command: &'s [String],
}

impl<'a> WasmCode<'a> {
    /// Finds the files for the WebAssembly among the addresses that were hit. Without any, nothing is opened.
    #[must_use]
    pub fn find(
        search: &Search<'_, 'a>,
        session: &Session<'a>,
        pcs: &IndexSlice<PcId, [Pc]>,
        diag: &'a Diagnostics,
    ) -> Self {
        let (objects, dsos) = hit(session, pcs);
        let mut found = Self {
            store: Some(search.store),
            diag: Some(diag),
            ..Self::default()
        };
        if objects.is_empty() && dsos.is_empty() {
            return found;
        }
        let finder = Finder {
            store: search.store,
            diag,
            search: search.paths,
            command: search.command,
        };
        if !objects.is_empty() {
            found.compiled = finder.compiled();
        }
        found.files = finder.modules();
        for (dso, path, compiled) in dsos {
            found.dsos.insert(dso, found.compiled.len());
            found.compiled.push(WasmInput {
                path,
                is_named: false,
                content: compiled,
            });
        }
        found.match_codes(session, &objects, diag);
        found.make_parts(diag);
        found.settle_rivals(diag);
        found.match_functions(session, &objects, diag);
        found.warn_of_unfit(diag);
        found.note_used(search.store);
        found
    }

    /// Warns of modules that the user named and that do not fit. Without a word their lines were missing as if nobody had named them.
    fn warn_of_unfit(&self, diag: &Diagnostics) {
        let used = self.parts.iter().filter_map(|part| part.source);
        let used: FxHashSet<usize> = used.map(|(file, ..)| file).collect();
        let files = self.files.iter().enumerate();
        for (_, file) in files.filter(|(number, file)| file.is_named && !used.contains(number)) {
            let mut compiled = self
                .parts
                .iter()
                .filter_map(|part| Some((&self.compiled[part.compiled?].content, part.number)))
                .peekable();
            let path = file.path.display();
            if compiled.peek().is_none() {
                diag.warn(format!(
                    "{path}: tells nothing of the code in the recording without the .cwasm that was made from it; not used"
                ));
                continue;
            }
            let modules = &file.content.modules;
            let fits = |(content, number)| modules.iter().any(|m| fit::may_be(content, number, m));
            // One that fits is the stripped twin of the one that is used.
            if !compiled.any(fits) {
                diag.warn(format!(
                    "{path}: none of the .cwasm files that were found was made from it; not used"
                ));
            }
        }
    }

    /// Notes the files that something was found in.
    fn note_used(&self, store: &Store) {
        let mapped: FxHashSet<usize> = self.dsos.values().copied().collect();
        let compiled = self.parts.iter().filter_map(|part| part.compiled);
        let compiled = compiled.filter(|at| !mapped.contains(at));
        let compiled = compiled.map(|at| &self.compiled[at].path);
        let sources = self.parts.iter().filter_map(|part| part.source);
        let sources = sources.map(|(file, ..)| &self.files[file].path);
        for path in compiled.chain(sources) {
            let name = path.file_name().unwrap_or_default();
            store.used(Path::new(name), path, Role::Jit);
        }
    }

    /// One compiled file, as if it had been mapped as the first DSO, with the one module that may be its source.
    #[must_use]
    pub fn of_files(store: &'a Store, compiled: &'a [u8], module: &'a [u8]) -> Option<Self> {
        fn found<T>(content: T, name: &str) -> WasmInput<T> {
            WasmInput {
                path: PathBuf::from(name),
                is_named: true,
                content,
            }
        }
        let compiled = Compiled::parse(compiled)?;
        let mut code = Self {
            store: Some(store),
            compiled: vec![found(compiled, "app.cwasm")],
            dsos: FxHashMap::from_iter([(DsoId::from_usize(0), 0)]),
            ..Self::default()
        };
        let module = WasmFile::parse(module);
        code.files = module.map(|m| found(m, "app.wasm")).into_iter().collect();
        code.make_parts(&Diagnostics::new());
        Some(code)
    }

    /// The first places of all functions of the first compiled file.
    pub fn starts(&self) -> impl Iterator<Item = WasmPlace> {
        let functions = self.compiled.first().map(|file| &file.content.functions);
        let functions = functions.into_iter().flatten();
        functions.filter_map(|function| self.place(0, function.offset))
    }

    /// Where an offset in JIT code is.
    #[must_use]
    pub fn place_of_jit(&self, code: JitCodeId, offset: u64) -> Option<WasmPlace> {
        match *self.codes.get(&code)? {
            CodePlace::Function(part, index) => Some(WasmPlace {
                part,
                offset: index.0,
            }),
            CodePlace::Code(compiled, start) => {
                let at = u32::try_from(offset).ok()?.checked_add(start)?;
                self.place(compiled, at)
            }
        }
    }

    /// Offsets in JIT code from which on it may come from elsewhere.
    #[must_use]
    pub fn offsets(&self, code: JitCodeId) -> Vec<u64> {
        let Some(&CodePlace::Code(compiled, start)) = self.codes.get(&code) else {
            return Vec::new();
        };
        let changes = self.compiled[compiled].content.changes(start).into_iter();
        changes.map(|at| u64::from(at - start)).collect()
    }

    /// Where an offset in a mapped file is.
    #[must_use]
    pub fn place_of_dso(&self, dso: DsoId, at: FileOffset) -> Option<WasmPlace> {
        let compiled = *self.dsos.get(&dso)?;
        let text = self.compiled[compiled].content.text_offset;
        self.place(compiled, u32::try_from(at.0.checked_sub(text)?).ok()?)
    }

    fn place(&self, compiled: usize, offset: u32) -> Option<WasmPlace> {
        let function = self.compiled[compiled].content.function_at(offset)?;
        let part = *self.part_of.get(&(compiled, function.wasm?.module))?;
        Some(WasmPlace { part, offset })
    }

    /// The name of a function that the dump calls by its number only.
    #[must_use]
    pub fn name_of(&self, code: JitCodeId, in_dump: &[u8]) -> Option<&'a [u8]> {
        let (_, None) = compiled::wasm_function(in_dump)? else {
            return None;
        };
        let place = self.place_of_jit(code, 0)?;
        let part = self.part(place.part);
        let index = match part.compiled {
            Some(_) => self.function(place)?.1.index,
            None => FunctionIndex(place.offset),
        };
        self.module(part)?.function_name(index).map(str::as_bytes)
    }

    /// Where a place is described.
    #[must_use]
    pub fn address(&self, place: WasmPlace) -> Option<DwarfAddress> {
        let part = self.part(place.part);
        if part.dwarf == DwarfKind::Native {
            let text = self.compiled[part.compiled?].content.text_offset;
            return Some(DwarfAddress {
                address: text + u64::from(place.offset),
                other: None,
            });
        }
        let code = i64::try_from(self.module(part)?.code_start).ok()?;
        let (position, other) = self.positions(place)?;
        let shift = part.source?.2;
        let address = |at: u64| {
            let at = i64::try_from(at).ok()?;
            u64::try_from(at - shift - code).ok()
        };
        Some(DwarfAddress {
            address: address(position)?,
            other: other.and_then(address),
        })
    }

    /// Positions in the file that was compiled.
    fn positions(&self, place: WasmPlace) -> Option<(u64, Option<u64>)> {
        let part = self.part(place.part);
        let Some(compiled) = part.compiled else {
            return Some((
                self.module(part)?
                    .first_operator(FunctionIndex(place.offset))?,
                None,
            ));
        };
        let origin = self.compiled[compiled].content.origin(place.offset)?;
        Some((origin.position.into(), origin.other.map(u64::from)))
    }

    /// What is known of the module that a part was compiled from.
    #[must_use]
    pub fn source(&self, part: PartId) -> Source {
        let part = self.part(part);
        match (part.dwarf, part.source) {
            (DwarfKind::Module | DwarfKind::Native, _) => Source::WithDwarf,
            (DwarfKind::Nothing, Some(_)) => Source::WithoutDwarf,
            (DwarfKind::Nothing, None) => Source::Missing,
        }
    }

    /// Whether only the function of a place is known, and not where in it.
    #[must_use]
    pub fn is_function_only(&self, part: PartId) -> bool {
        self.part(part).compiled.is_none()
    }

    /// A section of the DWARF that describes a module.
    #[must_use]
    pub fn debug_section(&self, part: PartId, name: &str) -> Option<&'a [u8]> {
        let part = self.part(part);
        match part.dwarf {
            DwarfKind::Module => self.module(part)?.custom(name),
            DwarfKind::Native => {
                let compiled = &self.compiled[part.compiled?].content;
                Some(self.store?.keep(compiled.debug_section(name)?))
            }
            DwarfKind::Nothing => None,
        }
    }

    /// Position of a place in the module's file.
    #[must_use]
    pub fn position(&self, place: WasmPlace) -> Option<u64> {
        let (position, _) = self.positions(place)?;
        let shift = self.part(place.part).source.map_or(0, |source| source.2);
        u64::try_from(i64::try_from(position).ok()? - shift).ok()
    }

    /// The module's file, and where it says its source map is; with the owner of files, and who is told of them.
    pub(crate) fn source_map(&self, part: PartId) -> Option<ModuleMap<'_, 'a>> {
        let part = self.part(part);
        let (file, ..) = part.source?;
        Some(ModuleMap {
            store: self.store?,
            diag: self.diag?,
            module: &self.files[file].path,
            url: self.module(part)?.source_map_url()?,
        })
    }

    /// Whether the code of a place has a position of its own, and not only its neighbours.
    #[must_use]
    pub fn is_exact(&self, place: WasmPlace) -> bool {
        let part = self.part(place.part);
        let Some(compiled) = part.compiled else {
            return false;
        };
        let own = || self.compiled[compiled].content.origin(place.offset);
        part.dwarf == DwarfKind::Native || own().is_some_and(|own| own.is_exact)
    }

    /// The file that lines of a module come from; none where there are none.
    #[must_use]
    pub fn source_name(&self, id: PartId) -> Option<String> {
        let part = self.part(id);
        match part.dwarf {
            DwarfKind::Native => Some(file_name(&self.compiled[part.compiled?].path)),
            DwarfKind::Module => Some(file_name(&self.files[part.source?.0].path)),
            DwarfKind::Nothing => {
                self.source_map(id).filter(ModuleMap::is_there)?;
                Some(file_name(&self.files[part.source?.0].path))
            }
        }
    }

    /// What stands for file and line where nothing describes the code: `app.wasm+0xb24`.
    #[must_use]
    pub fn bare_place(&self, place: WasmPlace) -> Option<String> {
        let part = self.part(place.part);
        let position = self.position(place)?;
        let name = match part.source {
            Some((file, ..)) => file_name(&self.files[file].path),
            None => format!("wasm[{}]", part.number),
        };
        Some(format!("{name}+{position:#x}"))
    }

    fn part(&self, id: PartId) -> &Part {
        &self.parts[id]
    }

    fn module(&self, part: &Part) -> Option<&CoreModule<'a>> {
        let (file, module, _) = part.source?;
        self.files.get(file)?.content.modules.get(module)
    }

    fn function(&self, place: WasmPlace) -> Option<(&Function<'a>, WasmFunction)> {
        let compiled = self.part(place.part).compiled?;
        let function = self.compiled[compiled].content.function_at(place.offset)?;
        Some((function, function.wasm?))
    }

    fn match_codes(&mut self, session: &Session<'a>, objects: &[JitObjectId], diag: &Diagnostics) {
        let mapped: FxHashSet<usize> = self.dsos.values().copied().collect();
        let compiled = self.compiled.iter().enumerate();
        let mut unmapped = compiled
            .filter(|(number, _)| !mapped.contains(number))
            .peekable();
        // A dump may have hundreds of thousands of functions.
        if unmapped.peek().is_none() {
            return;
        }
        let loaded: Vec<Loaded> = objects.iter().map(|id| load(session, *id)).collect();
        let mut claims: FxHashMap<JitCodeId, Claim> = FxHashMap::default();
        for (number, file) in unmapped {
            let matchings: Vec<Matching> = loaded.iter().map(|l| l.find(&file.content)).collect();
            let by_object = objects.iter().zip(&matchings);
            let other =
                by_object.flat_map(|(object, m)| m.pieces.iter().map(move |text| (*object, *text)));
            let other = other.filter_map(|(object, text)| {
                let by_name = session.jit.object(object).is_perf_map();
                let codes = codes_of(session, object).map(|(_, code)| code);
                matching::differing(&file.content, codes, text, by_name)
            });
            let other = other.min();
            let best = matchings
                .iter()
                .max_by_key(|m| (!m.codes.is_empty(), m.same));
            let finding = Finding {
                path: file.path.clone(),
                version: file.content.version.to_owned(),
                same: best.map_or(0, |m| m.same),
                of: best.map_or(0, |m| m.of),
                is_used: best.is_some_and(|m| !m.codes.is_empty()) && other.is_none(),
                other,
            };
            if finding.is_used {
                for &(code, offset, share) in matchings.iter().flat_map(|m| &m.codes) {
                    let place = CodePlace::Code(number, offset);
                    let rank = (file.is_named, share);
                    let claim = claims.entry(code).or_default();
                    claim.add(rank, place);
                }
            } else if finding.same * 2 > finding.of {
                self.others.push(number);
            }
            finding.report(file.is_named, diag);
            self.findings.push(finding);
        }
        for (code, claim) in claims {
            let mut places = claim.places.into_iter();
            self.codes.extend(places.next().map(|place| (code, place)));
            self.rivals.extend(places.map(|place| (code, place)));
        }
        self.rivals.sort_unstable_by_key(|(code, _)| *code);
    }

    /// Leaves out code of which several compiled files tell different things: it is the same in all of them.
    fn settle_rivals(&mut self, diag: &Diagnostics) {
        let (mut told, mut native) = (FxHashSet::default(), FxHashMap::default());
        for (code, rival) in std::mem::take(&mut self.rivals) {
            let Some(&place) = self.codes.get(&code) else {
                continue;
            };
            let (CodePlace::Code(one, _), CodePlace::Code(other, _)) = (place, rival) else {
                continue;
            };
            let lines = |at: usize| self.compiled[at].content.debug_section(".debug_line");
            let mut has_same_dwarf = || {
                *native
                    .entry((one, other))
                    .or_insert_with(|| lines(one) == lines(other))
            };
            if self.origin(place) == self.origin(rival) && has_same_dwarf() {
                continue;
            }
            self.codes.remove(&code);
            if told.insert((one, other)) {
                let [one, other] = [one, other].map(|at| self.compiled[at].path.display());
                diag.warn(format!(
                    "{one} and {other} have the same code from different sources; it is shown without lines (--cwasm FILE \
                     says which one ran)"
                ));
            }
        }
    }

    /// The file and module that tell of a piece of code, and its position in that.
    fn origin(&self, code: CodePlace) -> Option<Origin> {
        let CodePlace::Code(compiled, offset) = code else {
            return None;
        };
        let place = self.place(compiled, offset)?;
        let part = self.part(place.part);
        let source = part.source.map(|(file, module, _)| (file, module));
        Some((source, self.position(place)))
    }

    /// Looks for the source of each module whose code was found.
    fn make_parts(&mut self, diag: &Diagnostics) {
        let rivals = self.rivals.iter().map(|(_, place)| place);
        let used = self.codes.values().chain(rivals);
        let used = used.filter_map(|place| match place {
            CodePlace::Code(compiled, _) => Some(*compiled),
            CodePlace::Function(..) => None,
        });
        let mut used: Vec<usize> = used.chain(self.dsos.values().copied()).collect();
        used.sort_unstable();
        used.dedup();
        let candidates: Vec<(usize, usize)> = candidates(&self.files);
        let stems = used.iter().map(|at| self.compiled[*at].path.file_stem());
        let stems: FxHashSet<_> = stems.collect();
        for &compiled in &used {
            let file = &self.compiled[compiled];
            let stem = file.path.file_stem();
            let modules = candidates.iter().map(|&(source, module)| {
                let source = &self.files[source];
                let is_of_name = source.path.file_stem() == stem;
                // A module that was named is not that of a compiled file when another one has its name.
                let is_of_other = !is_of_name && stems.contains(&source.path.file_stem());
                let is_named = source.is_named && !is_of_other;
                fit::Candidate {
                    module: &source.content.modules[module],
                    rank: 2 * u8::from(is_named) + u8::from(is_of_name),
                }
            });
            let modules: Vec<fit::Candidate<'_, 'a>> = modules.collect();
            let functions = file.content.wasm_functions();
            let mut numbers: Vec<u32> = functions.map(|(_, wasm)| wasm.module).collect();
            numbers.sort_unstable();
            numbers.dedup();
            for number in numbers {
                let fit = match fit::choose(&file.content, number, &modules) {
                    Choice::Nothing => None,
                    Choice::One(fit) => Some(fit),
                    Choice::Several(several) => {
                        let paths = several.iter().map(|at| &self.files[candidates[*at].0].path);
                        let paths: Vec<String> = paths
                            .take(3)
                            .map(|path| path.display().to_string())
                            .collect();
                        diag.warn(format!(
                            "{}: may be made from each of {}, which differ; its code is shown without lines (--wasm FILE says \
                             which)",
                            file.path.display(),
                            paths.join(", ")
                        ));
                        None
                    }
                };
                let part = Part::new(compiled, number, &file.content, fit, &candidates, &modules);
                diag.note(self.describe(&part));
                let id = PartId(u32::try_from(self.parts.len()).unwrap_or(u32::MAX));
                self.part_of.insert((compiled, number), id);
                self.parts.push(part);
            }
        }
    }

    fn describe(&self, part: &Part) -> String {
        let compiled = part.compiled.map(|at| self.compiled[at].path.display());
        let compiled = compiled.map(|path| path.to_string()).unwrap_or_default();
        let source = part.source.map(|(file, ..)| &self.files[file].path);
        let from = match (source, part.dwarf) {
            (_, DwarfKind::Native) => "lines from its own DWARF".to_owned(),
            (Some(path), DwarfKind::Module) => format!("lines from {}", path.display()),
            (Some(path), DwarfKind::Nothing) => format!("{} has no DWARF", path.display()),
            (None, _) => "no .wasm that it could be made from".to_owned(),
        };
        format!("{compiled}: wasm[{}], {from}", part.number)
    }

    /// Where no compiled file tells more, functions are told by their names.
    fn match_functions(
        &mut self,
        session: &Session<'a>,
        objects: &[JitObjectId],
        diag: &Diagnostics,
    ) {
        if self.described().next().is_none() {
            return;
        }
        for object in objects {
            let codes: Vec<_> = codes_of(session, *object).collect();
            if codes.iter().any(|(id, _)| self.codes.contains_key(id)) {
                continue;
            }
            let names: Vec<(JitCodeId, &[u8])> =
                codes.iter().map(|(id, code)| (*id, code.name())).collect();
            let Some((file, module, indices)) = self.by_names(&names, diag) else {
                continue;
            };
            diag.note(format!(
                "{}: functions only: there is no .cwasm for their code",
                self.files[file].path.display()
            ));
            let id = PartId(u32::try_from(self.parts.len()).unwrap_or(u32::MAX));
            self.parts.push(Part {
                compiled: None,
                number: 0,
                source: Some((file, module, 0)),
                dwarf: DwarfKind::Module,
            });
            let places = indices.into_iter();
            self.codes
                .extend(places.map(|(code, index)| (code, CodePlace::Function(id, index))));
        }
    }

    /// All modules with DWARF that may be what ran: file, and number in it.
    fn described(&self) -> impl Iterator<Item = (usize, usize)> {
        let may_be = |&(file, module): &(usize, usize)| {
            let module = &self.files[file].content.modules[module];
            module.has_dwarf() && !self.is_of_other(module)
        };
        candidates(&self.files).into_iter().filter(may_be)
    }

    /// Whether a module is what a compiled file was made from that is of another version than ran.
    fn is_of_other(&self, module: &CoreModule<'_>) -> bool {
        self.others.iter().any(|other| {
            let content = &self.compiled[*other].content;
            let mut numbers: Vec<u32> = content
                .wasm_functions()
                .map(|(_, wasm)| wasm.module)
                .collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
                .into_iter()
                .any(|number| fit::may_be(content, number, module))
        })
    }

    /// The module with DWARF that has nearly all of the names, and the functions of that name.
    fn by_names(&self, names: &[(JitCodeId, &[u8])], diag: &Diagnostics) -> Option<Named> {
        let matched = self.described().map(|at| {
            let known = self.files[at.0].content.modules[at.1].indices_by_name();
            let index = |name: &[u8]| match compiled::wasm_function(name) {
                Some((function, None)) => Some(function.index),
                _ => known.get(&module::shown(name)).copied(),
            };
            let found = names
                .iter()
                .filter_map(|&(id, name)| Some((id, index(name)?)));
            (at.0, at.1, found.collect::<Vec<_>>())
        });
        let mut matched: Vec<Named> = matched.collect();
        let is_named = |named: &Named| self.files[named.0].is_named;
        let rank = |named: &Named| (named.2.len(), is_named(named));
        let highest = matched.iter().map(rank).max()?;
        matched.retain(|named| rank(named) == highest);
        let module = |named: &Named| &self.files[named.0].content.modules[named.1];
        let best = matched.first()?;
        let of_wasm = names.iter().filter(|(_, name)| !is_trampoline(name));
        if best.2.len() * 100 < of_wasm.count() * 90 || best.2.is_empty() {
            return None;
        }
        let is_same = |named: &Named| {
            module(named).code == module(best).code && module(named).tells_the_same(module(best))
        };
        if let Some(other) = matched.iter().find(|named| !is_same(named)) {
            let [one, other] = [best, other].map(|named| self.files[named.0].path.display());
            diag.warn(format!(
                "{one} and {other} have functions of the same names; there is no .cwasm that says which one ran, and no lines are \
                 shown (--wasm FILE says which)"
            ));
            return None;
        }
        matched.into_iter().next()
    }
}

impl Part {
    fn new(
        compiled: usize,
        number: u32,
        content: &Compiled<'_>,
        fit: Option<Fit>,
        candidates: &[(usize, usize)],
        modules: &[fit::Candidate<'_, '_>],
    ) -> Self {
        let has_dwarf = fit.is_some_and(|fit| modules[fit.candidate].module.has_dwarf());
        Self {
            compiled: Some(compiled),
            number,
            source: fit.map(|fit| {
                let (file, module) = candidates[fit.candidate];
                (file, module, fit.shift)
            }),
            dwarf: match (has_dwarf, content.has_dwarf()) {
                (true, _) => DwarfKind::Module,
                (false, true) => DwarfKind::Native,
                (false, false) => DwarfKind::Nothing,
            },
        }
    }
}

impl Finding {
    fn report(&self, is_named: bool, diag: &Diagnostics) {
        let path = self.path.display();
        let (same, of, version) = (self.same, self.of, &self.version);
        if self.is_used {
            diag.note(format!("{path}: {same} of {of} functions are the same"));
        } else if let Some(other) = &self.other {
            diag.warn(format!(
                "{path}: another version of the module than ran: {other} has other code ({same} of {of} functions are the same); \
                 not used. Build that version again, or compile the .wasm that ran"
            ));
        } else if is_named {
            diag.warn(format!(
                "{path}: {same} of {of} functions are the same as in the recording; made with other flags, by another \
                 version (this one by wasmtime {version}) or of another module, and not used"
            ));
        }
    }
}

/// Dumps of wasmtime that addresses hit, and mapped files that it compiled.
fn hit<'a>(
    session: &Session<'a>,
    pcs: &IndexSlice<PcId, [Pc]>,
) -> (Vec<JitObjectId>, Vec<(DsoId, PathBuf, Compiled<'a>)>) {
    let (mut objects, mut dsos) = (FxHashSet::default(), FxHashSet::default());
    for pc in pcs {
        match pc.target {
            Target::Jit(code, _) => {
                objects.insert(session.jit.code(code).object());
            }
            Target::Dso(dso) => {
                dsos.insert(dso);
            }
            Target::Nowhere | Target::Label(_) => {}
        }
    }
    let of_modules = |id: &JitObjectId| session.jit.object(*id).producer.row().compiles_wasm;
    let mut objects: Vec<_> = objects.into_iter().filter(of_modules).collect();
    objects.sort_unstable();
    let mut dsos: Vec<_> = dsos.into_iter().collect();
    dsos.sort_unstable();
    let compiled = dsos.into_iter().filter_map(|dso| {
        let elf = session.dsos.binary(dso)?;
        let compiled = elf
            .is_compiled_wasm()
            .then(|| Compiled::parse(elf.bytes()))
            .flatten()?;
        let path = path_of(&session.dsos.get(dso).long_name);
        Some((dso, path.to_owned(), compiled))
    });
    (objects, compiled.collect())
}

fn codes_of<'s, 'a>(
    session: &'s Session<'a>,
    object: JitObjectId,
) -> impl Iterator<Item = (JitCodeId, crate::jit::JitCode<'s, 'a>)> {
    let count = u32::try_from(session.jit.code_count()).unwrap_or(u32::MAX);
    let all = (0..count).map(JitCodeId);
    all.map(|id| (id, session.jit.code(id)))
        .filter(move |(_, code)| code.object() == object)
}

fn load(session: &Session<'_>, object: JitObjectId) -> Loaded {
    let by_name = session.jit.object(object).is_perf_map();
    Loaded::new(codes_of(session, object), by_name)
}

/// All modules of all files.
fn candidates(files: &[WasmInput<WasmFile<'_>>]) -> Vec<(usize, usize)> {
    let modules = files.iter().enumerate().flat_map(|(number, file)| {
        let modules = 0..file.content.modules.len();
        modules.map(move |module| (number, module))
    });
    modules.collect()
}

/// Whether a name is that of code which wasmtime adds to the functions of a module.
#[must_use]
pub fn is_trampoline(name: &[u8]) -> bool {
    Producer::of_prefix(name).row().compiles_wasm && compiled::wasm_function(name).is_none()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
