//! The work of a run, spread over threads: symbols by DSO, then inlined functions by unit, then names.
//!
//! Every step takes pieces off a shared list, largest first, and puts its results where the piece says, so the
//! outcome does not depend on who did what.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::declared::{Body, Declared, normal};
use super::dwarf::{DebugInfo, Unit, UnitId};
use super::expanded::{Expanded, Expansion, NameNumber, NameOrigin, PathNumber, Spot, Wanted};
use super::go_lines;
use super::inlines::{self, NO_SIZE};
use super::lines::{LineAt, Lines};
use super::memo::Reading;
use super::origin::{SourceFile, Spelled};
use super::place;
use super::shown::ShownNames;
use super::source_map::WasmMap;
use super::split::SplitFiles;
use super::store::{DebugStore, Opened};
use super::{
    Author, InlinedFrame, NameStyle, Options, Origin, Others, Place, Query, QueryId, Request,
    Resolution, Resolved, Site, SourceLine, StringIndex, Symbol, SymbolIndex,
};
use crate::address::FileOffset;
use crate::dso::demangle::{demangle, is_of_cpp, mangled};
use crate::dso::go::GoTable;
use crate::dso::originals::{Originals, parameters};
use crate::dso::{DsoId, DsoKind, DsoTable};
use crate::ids::{Idx, IndexSlice, IndexVec, Part, Spare, index_vec, numbers};
use crate::input::SourceClaim;
use crate::needs::Needs;
use crate::parallel::in_parallel;
use crate::runtimes::names::{KERNEL, clean_object, native};
use crate::wasm::{PartId, WasmCode, WasmPlace};

/// Answers all queries.
#[must_use]
pub fn resolve<'a>(request: Request<'_>, dsos: &DsoTable<'a>, wasm: &WasmCode<'a>) -> Resolution {
    resolve_with(&DebugStore::default(), request, dsos, wasm)
}

/// The same with debug information that may have been opened before.
#[must_use]
pub fn resolve_with<'a: 'd, 'd>(
    known: &DebugStore<'d>,
    request: Request<'_>,
    dsos: &DsoTable<'a>,
    wasm: &WasmCode<'a>,
) -> Resolution {
    let queries = IndexSlice::new(request.queries);
    let (threads, kinds) = (request.threads, request.needs.contains(Needs::KINDS));
    let groups = by_place(queries);
    let from = (dsos, known);
    let objects = in_parallel(groups, threads, |group| match group.place {
        Site::Dso(dso) => Object::resolve(
            queries,
            dso,
            &group.queries,
            from,
            (request.needs, request.bare),
        ),
        Site::Wasm(part) => Object::of_wasm(queries, part, &group.queries, wasm, kinds),
    });
    let pieces: Vec<Piece<'_>> = objects
        .iter()
        .enumerate()
        .flat_map(|(number, object)| object.pieces(number))
        .collect();
    let owners = pieces.iter();
    let owners: Vec<_> = owners
        .map(|of| (of.object, objects[of.object].dso))
        .collect();
    let expanded = in_parallel(pieces, threads, |piece| {
        expand(&objects[piece.object], piece)
    });
    let builder = Builder {
        queries,
        objects: &objects,
        expanded: &expanded,
        owners: &owners,
        dsos,
        wasm,
        options: request.names,
        needs: request.needs,
        shown: known.shown.as_ref(),
    };
    builder.finish(threads)
}

numbers! {
    /// Index into [`Object::symbols`].
    struct HitId(Spare);
    /// Index into [`Shown::texts`].
    struct ShownId(u32);
}

type Queries = IndexSlice<QueryId, [Query]>;

/// The queries of one place, ordered by address.
struct Group {
    place: Site,
    queries: Vec<QueryId>,
}

/// Groups with the most queries first.
fn by_place(queries: &Queries) -> Vec<Group> {
    let mut of_place: FxHashMap<Site, usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    for (index, query) in queries.iter_enumerated() {
        let group = *of_place.entry(query.place).or_insert_with(|| {
            groups.push(Group {
                place: query.place,
                queries: Vec::new(),
            });
            groups.len() - 1
        });
        groups[group].queries.push(index);
    }
    for group in &mut groups {
        group.queries.sort_by_key(|&i| queries[i].address);
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.queries.len()), group.place));
    groups
}

/// What a DSO or a module says about its queries.
#[derive(Default)]
struct Object<'t, 'a, 'd> {
    dso: Option<DsoId>,
    is_kernel: bool,
    /// Whether it is asked whose code functions are.
    origins: bool,
    /// Which languages spell names in it.
    originals: Originals,
    /// Distinct symbols that were hit, by address.
    symbols: IndexVec<HitId, crate::dso::SymbolRef<'t>>,
    /// For each query of the group: which it is, and its symbol.
    answers: Vec<(QueryId, Option<HitId>)>,
    debug: Option<Opened<'d>>,
    split: Option<SplitFiles<'t, 'a>>,
    /// What a Go program without DWARF knows of its functions; its one unit is number 0.
    go: Option<GoTable<'a>>,
    /// Work for each unit: (unit, queries by stated address).
    units: Vec<(UnitId, Vec<Wanted>)>,
}

impl<'t, 'a: 'd, 'd> Object<'t, 'a, 'd> {
    fn resolve(
        queries: &Queries,
        dso: DsoId,
        group: &[QueryId],
        (dsos, known): (&'t DsoTable<'a>, &DebugStore<'d>),
        (needs, bare): (Needs, &[String]),
    ) -> Self {
        let kind = dsos.get(dso).kind;
        let is_kernel = matches!(
            kind,
            DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol
        );
        let mut object = Self {
            dso: Some(dso),
            is_kernel,
            origins: needs.contains(Needs::KINDS),
            split: Some(SplitFiles::new(dsos, dso)),
            ..Self::default()
        };
        // By place of the symbol, that of a label too.
        let mut numbers: FxHashMap<(u64, u64), HitId> = FxHashMap::default();
        let listed = dsos.symbols(dso);
        let has_originals = needs.contains(Needs::ORIGINALS) && !is_kernel;
        for &index in group {
            let found = listed.and_then(|table| Some((table, table.find(queries[index].address)?)));
            let number = found.map(|(table, symbol)| {
                let place = (symbol.start, symbol.end);
                if let Some(earlier) = numbers.get(&place) {
                    return *earlier;
                }
                let label = has_originals.then(|| table.function_of_label(&symbol));
                let symbol = label.flatten().unwrap_or(symbol);
                let function = (symbol.start, symbol.end);
                let number = *numbers
                    .entry(function)
                    .or_insert_with(|| object.symbols.push(symbol));
                numbers.insert(place, number);
                number
            });
            object.answers.push((index, number));
        }
        let path = || String::from_utf8_lossy(&dsos.get(dso).long_name);
        let is_bare = |label: &String| {
            if is_kernel {
                label == KERNEL
            } else {
                label == clean_object(&path())
            }
        };
        if !bare.iter().any(is_bare) {
            object.find_units(queries, dso, (dsos, known));
        }
        object
    }

    /// A module, of which only lines and inlined functions are asked.
    fn of_wasm(
        queries: &Queries,
        part: PartId,
        group: &[QueryId],
        wasm: &WasmCode<'a>,
        origins: bool,
    ) -> Self {
        let mut object = Self {
            origins,
            ..Self::default()
        };
        let lines = origins || group.iter().any(|&at| queries[at].lines);
        let debug = DebugInfo::of_wasm(|name| wasm.debug_section(part, name), lines);
        let Some(debug) = debug else {
            return object;
        };
        let mut all = Vec::with_capacity(group.len());
        for &index in group {
            let query = &queries[index];
            let Some(at) = place_of(part, query).and_then(|place| wasm.address(place)) else {
                continue;
            };
            let wanted = Wanted {
                svma: at.address,
                query: index,
                // Of a function there is the file outside of what is inlined at its beginning.
                inlines: query.inlines || wasm.is_function_only(part),
                lines: query.lines,
            };
            all.push(wanted);
            all.extend(at.other.filter(|_| query.lines).map(|svma| Wanted {
                svma,
                query: beside(index, queries),
                inlines: true,
                lines: true,
            }));
        }
        let info = Arc::new(debug);
        object.ask(Some(Opened { info, memo: None }), all);
        object
    }

    /// Opens the DWARF if somebody asks for what is in it, and finds the units to read.
    fn find_units(
        &mut self,
        queries: &Queries,
        dso: DsoId,
        (dsos, known): (&DsoTable<'a>, &DebugStore<'d>),
    ) {
        // As in perf, addresses without a symbol have no inlined functions.
        let asks = |&(index, symbol): &(QueryId, Option<HitId>)| {
            let query = &queries[index];
            (query.lines || (query.inlines && symbol.is_some())).then_some((
                index,
                query,
                symbol.is_some(),
            ))
        };
        let asked: Vec<_> = self.answers.iter().filter_map(asks).collect();
        if asked.is_empty() {
            return;
        }
        let Some(addresses) = Addresses::of(dsos, dso) else {
            return;
        };
        let lines = self.origins || asked.iter().any(|(_, query, _)| query.lines);
        let debug = addresses.debug_info(lines, known);
        if debug.is_none() {
            self.go = addresses.go();
        }
        if debug.is_none() && self.go.is_none() {
            return;
        }
        let mut all = Vec::with_capacity(asked.len());
        for (index, query, has_symbol) in asked {
            let Some(svma) = addresses.svma(query.address) else {
                continue;
            };
            let wanted = Wanted {
                svma,
                query: index,
                inlines: query.inlines && has_symbol,
                lines: query.lines,
            };
            all.push(wanted);
        }
        self.ask(debug, all);
    }

    /// Finds the units that describe addresses.
    fn ask(&mut self, debug: Option<Opened<'d>>, mut all: Vec<Wanted>) {
        all.sort_unstable_by_key(|w| (w.svma, w.query));
        let Some(debug) = debug else {
            self.units = vec![(UnitId(0), all)];
            return;
        };
        let addresses: Vec<u64> = all.iter().map(|w| w.svma).collect();
        let mut units: FxHashMap<UnitId, Vec<Wanted>> = FxHashMap::default();
        debug.info.units_at(&addresses, |index, unit| {
            units.entry(unit).or_default().push(all[index]);
        });
        self.units = units.into_iter().collect();
        self.units.sort_unstable_by_key(|(unit, _)| {
            (std::cmp::Reverse(debug.info.unit_size(*unit)), *unit)
        });
        self.debug = Some(debug);
    }

    fn pieces(&self, object: usize) -> impl Iterator<Item = Piece<'_>> {
        self.units.iter().map(move |(unit, wanted)| Piece {
            object,
            unit: *unit,
            wanted,
        })
    }
}

/// The question about the neighbour on the other side of a query's code.
fn beside(query: QueryId, queries: &Queries) -> QueryId {
    QueryId::from_usize(query.index() + queries.len())
}

fn place_of(part: PartId, query: &Query) -> Option<WasmPlace> {
    let offset = u32::try_from(query.address).ok()?;
    Some(WasmPlace { part, offset })
}

/// From the addresses of queries to those of DWARF.
enum Addresses<'t, 'a> {
    File {
        dsos: &'t DsoTable<'a>,
        dso: DsoId,
    },
    /// The kernel, with what to add.
    Kernel {
        elf: &'t crate::dso::elf::ElfFile<'a>,
        bias: u64,
    },
}

impl<'t, 'a> Addresses<'t, 'a> {
    fn of(dsos: &'t DsoTable<'a>, dso: DsoId) -> Option<Self> {
        match dsos.get(dso).kind {
            DsoKind::File | DsoKind::Vdso => Some(Self::File { dsos, dso }),
            DsoKind::Kernel => dsos.vmlinux().map(|(elf, bias)| Self::Kernel { elf, bias }),
            _ => None,
        }
    }

    fn debug_info<'d>(&self, lines: bool, known: &DebugStore<'d>) -> Option<Opened<'d>>
    where
        'a: 'd,
    {
        match self {
            Self::File { dsos, dso } => {
                let elf = dsos.debug(*dso)?;
                let shared = elf
                    .has_section(".gnu_debugaltlink")
                    .then(|| dsos.supplementary(*dso))
                    .flatten();
                known.get(elf, shared, lines, || dsos.roots())
            }
            Self::Kernel { elf, .. } => known.get(elf, None, lines, Vec::new),
        }
    }

    /// What a Go program knows of its functions.
    fn go(&self) -> Option<GoTable<'a>> {
        match self {
            Self::File { dsos, dso } => GoTable::of(dsos.binary(*dso)?),
            Self::Kernel { .. } => None,
        }
    }

    fn svma(&self, address: u64) -> Option<u64> {
        match self {
            Self::File { dsos, dso } => {
                let file = dsos.binary(*dso).or_else(|| dsos.debug(*dso))?;
                file.svma_of(FileOffset(address)).map(|svma| svma.0)
            }
            Self::Kernel { bias, .. } => Some(address.wrapping_add(*bias)),
        }
    }
}

/// One unit of one DSO to be read.
struct Piece<'p> {
    object: usize,
    unit: UnitId,
    wanted: &'p [Wanted],
}

fn expand<'a: 'd, 'd>(object: &Object<'_, 'a, 'd>, piece: Piece<'_>) -> Expanded<'d> {
    if let Some(go) = &object.go {
        return go_lines::expand(go, piece.wanted, object.origins);
    }
    let Some(debug) = &object.debug else {
        return Expanded::default();
    };
    let is_simple = |wanted: &Wanted| wanted.inlines && !wanted.lines;
    let Opened { info, memo } = debug;
    match memo {
        Some(memo) if piece.wanted.iter().all(is_simple) => {
            let key = (piece.unit, object.origins);
            memo.of_unit(key, piece.wanted, |wanted, reading| {
                read(object, info, Piece { wanted, ..piece }, reading);
            })
        }
        _ => {
            let mut reading = Reading::default();
            read(object, info, piece, &mut reading);
            reading.out
        }
    }
}

/// Reads the unit, as far as it is about these addresses.
fn read<'a: 'd, 'd>(
    object: &Object<'_, 'a, 'd>,
    debug: &Arc<DebugInfo<'d>>,
    piece: Piece<'_>,
    reading: &mut Reading<'d>,
) {
    let Reading { unit, names, out } = reading;
    let unit = unit.get_or_insert_with(|| debug.unit(piece.unit));
    let Some(unit) = unit.as_ref() else {
        return;
    };
    let mut addresses: Vec<u64> = piece.wanted.iter().map(|w| w.svma).collect();
    addresses.dedup();
    let split = object.split.as_ref();
    let split = split.and_then(|split| split.of(debug, unit));
    let (functions, entries) = match &split {
        Some(split) => (&split.info, &split.unit),
        None => (debug.as_ref(), unit),
    };
    // As perf shows them, names are plain; where functions are counted, they are one under one name.
    names.qualifies = object.origins;
    let found = inlines::find(functions, entries, &addresses);
    let any_lines = piece.wanted.iter().any(|w| w.lines);
    let lines = any_lines.then(|| Lines::of(debug, unit)).flatten();
    let places = lines
        .as_ref()
        .map(|lines| lines.find(&addresses, debug.is_wasm));
    out.directory = lines.as_ref().map_or_else(String::new, Lines::directory);
    let mut paths = Paths {
        debug,
        unit,
        lines: lines.as_ref(),
        known: FxHashMap::default(),
    };
    let bodies = Bodies {
        debug,
        unit,
        // gcc numbers the files of a `.dwo` there. LLVM does not, and leaves it to the program's own table.
        has_other_files: object.origins
            && (split.as_ref()).is_some_and(|split| Lines::of(&split.info, &split.unit).is_some()),
        addresses: &addresses,
        lines: OnceCell::new(),
        files: RefCell::default(),
        found: &found,
        rows: OnceCell::new(),
        firsts: OnceCell::new(),
        first_lines: RefCell::default(),
    };
    for wanted in piece.wanted {
        let Ok(at) = addresses.binary_search(&wanted.svma) else {
            continue;
        };
        let found = &found[at];
        let place = places.as_ref().and_then(|places| places[at]);
        let place = place.filter(|_| wanted.lines);
        if !found.is_inside_function() && place.is_none() {
            continue;
        }
        let mut place = place.and_then(|line| paths.place(out, line));
        let start = out.calls.len();
        if wanted.inlines {
            for (inner, call) in found.calls.iter().rev().enumerate() {
                let name = names.of_call(functions, entries, call, &mut out.names);
                if object.origins && out.origins.len() < out.names.len() {
                    let (author, declared) = names.definition_of_call(functions, entries, call);
                    // Line tables alone do not tell where functions are declared: in the file of their code.
                    let by_body = || bodies.author(at, found, inner);
                    out.origins.push(NameOrigin {
                        author: author.or_else(by_body),
                        declared,
                        body: None,
                    });
                }
                if object.origins
                    && let Some(name) = name
                    && out.origins[name].declared.is_none()
                    && let Some((path, line)) = bodies.place(at, found, inner)
                {
                    Body::meet(&mut out.origins[name].body, &path, line);
                }
                out.calls.extend(name.map(|name| (name, place)));
                let caller = wanted.lines.then(|| paths.place(out, call.site));
                place = caller.flatten();
            }
        }
        let (author, declared) = if object.origins && wanted.inlines {
            let (author, mut declared) = names.definition_of_function(functions, entries, found);
            if let Some(declared) = declared.as_mut().filter(|declared| declared.line == 0) {
                declared.line = bodies.first_line(found, &declared.path);
            }
            let body = || bodies.author(at, found, found.calls.len());
            (author.or_else(body), declared)
        } else {
            <_>::default()
        };
        out.answers.push(Expansion {
            query: wanted.query,
            size: found.function_size(),
            calls: start..out.calls.len(),
            line: place,
            author,
            declared,
        });
    }
}

/// Whose code functions are by the files of their code, for units that do not say where they are declared.
struct Bodies<'p, 'a> {
    debug: &'p DebugInfo<'a>,
    unit: &'p Unit<'a>,
    /// Files are numbered elsewhere.
    has_other_files: bool,
    addresses: &'p [u64],
    /// The line program, and the rows of the addresses, read when they are first needed.
    lines: OnceCell<Option<Lines<'a>>>,
    rows: OnceCell<Vec<Option<LineAt>>>,
    files: RefCell<FxHashMap<u64, Option<SourceFile>>>,
    /// What is known of the addresses.
    found: &'p [inlines::UnitAnswer],
    /// By address: the row where a function begins.
    firsts: OnceCell<FxHashMap<u64, LineAt>>,
    /// By address: the line of the function that begins there.
    first_lines: RefCell<FxHashMap<u64, u32>>,
}

impl<'a> Bodies<'_, 'a> {
    fn lines(&self) -> Option<&Lines<'a>> {
        if self.has_other_files {
            return None;
        }
        let lines = || Lines::of(self.debug, self.unit);
        self.lines.get_or_init(lines).as_ref()
    }

    /// The line in which a function of a file begins, 0 where that is not told: for units that tell the file alone, as Go's do.
    fn first_line(&self, of: &inlines::UnitAnswer, path: &str) -> u32 {
        let Some(lines) = self.lines() else {
            return 0;
        };
        let firsts = self.firsts.get_or_init(|| {
            let starts = self.found.iter().filter(|found| found.is_inside_function());
            let mut starts: Vec<u64> = starts.map(inlines::UnitAnswer::function_start).collect();
            starts.sort_unstable();
            starts.dedup();
            let rows = lines.find(&starts, self.debug.is_wasm);
            let rows = starts.into_iter().zip(rows);
            rows.filter_map(|(start, row)| Some((start, row?)))
                .collect()
        });
        let start = of.function_start();
        let mut memo = self.first_lines.borrow_mut();
        *memo.entry(start).or_insert_with(|| {
            let is_there = |row: &&LineAt| {
                let known = lines.path(self.debug, self.unit, row.file);
                known.is_some_and(|known| normal(&known) == path)
            };
            let row = firsts.get(&start).filter(is_there);
            row.map_or(0, |row| row.line)
        })
    }

    /// Whose the code is of the function with so many inlined calls inside it, at an address.
    fn author(&self, at: usize, found: &inlines::UnitAnswer, inner: usize) -> Option<Author> {
        let row = self.row(at, found, inner)?;
        Some(self.file(row.file)?.author)
    }

    /// The place of that code: path and line.
    fn place(
        &self,
        at: usize,
        found: &inlines::UnitAnswer,
        inner: usize,
    ) -> Option<(Arc<str>, u32)> {
        let row = self.row(at, found, inner).filter(|row| row.line > 0)?;
        Some((self.file(row.file)?.path, row.line))
    }

    /// A call stands in the file of its caller, code in its own.
    fn row(&self, at: usize, found: &inlines::UnitAnswer, inner: usize) -> Option<LineAt> {
        let lines = self.lines()?;
        let find = || lines.find(self.addresses, self.debug.is_wasm);
        match inner.checked_sub(1) {
            None => self.rows.get_or_init(find)[at],
            Some(last) => Some(found.calls.iter().rev().nth(last)?.site),
        }
    }

    fn file(&self, number: u64) -> Option<SourceFile> {
        let lines = self.lines()?;
        let mut files = self.files.borrow_mut();
        let file = files.entry(number).or_insert_with(|| {
            let path = lines.path(self.debug, self.unit, number)?;
            Some(SourceFile::of(&path))
        });
        file.clone()
    }
}

/// Paths of a unit's files, each made once.
struct Paths<'p, 'a> {
    debug: &'p DebugInfo<'a>,
    unit: &'p Unit<'a>,
    lines: Option<&'p Lines<'a>>,
    known: FxHashMap<u64, Option<PathNumber>>,
}

impl Paths<'_, '_> {
    fn place(&mut self, out: &mut Expanded<'_>, line: LineAt) -> Option<Spot> {
        let index = *self.known.entry(line.file).or_insert_with(|| {
            let lines = self.lines?;
            let path = lines.path(self.debug, self.unit, line.file)?;
            out.checksums.push(lines.checksum(line.file));
            Some(out.paths.push(path))
        });
        index.map(|index| (index, line.line, line.column))
    }
}

/// Puts the answers together in the order of the queries.
struct Builder<'b, 't, 'a, 'd> {
    queries: &'b Queries,
    objects: &'b [Object<'t, 'a, 'd>],
    expanded: &'b [Expanded<'d>],
    /// By piece: the number of its object, and its file.
    owners: &'b [place::Owner],
    dsos: &'b DsoTable<'a>,
    wasm: &'b WasmCode<'a>,
    options: Options,
    needs: Needs,
    shown: Option<&'b ShownNames>,
}

impl<'b, 'd> Builder<'b, '_, '_, 'd> {
    fn finish(&self, threads: usize) -> Resolution {
        let mut out = Resolution {
            answers: index_vec![Resolved::default(); self.queries.len()],
            ..Resolution::default()
        };
        let raw = self.add_symbols(&mut out, threads);
        let mut names = self.demangled_names(threads);
        let ids = self.expanded.iter().map(|expanded| {
            let ids = expanded.names.iter().map(|name| names.known[*name]);
            ids.collect()
        });
        let ids: Vec<IndexVec<NameNumber, ShownId>> = ids.collect();
        let chosen = self.chosen();
        let mut places = Vec::new();
        if self.needs.contains(Needs::KINDS) {
            let all = self.needs.contains(Needs::PLACES);
            let (numbers, of_inlined) = tell_apart(&mut out.symbols.raw, &raw, &mut names, all);
            let number = |each: &IndexVec<NameNumber, ShownId>| {
                each.iter().map(|id| of_inlined[*id]).collect()
            };
            let inlined: Vec<_> = ids.iter().map(number).collect();
            let declarations = declared(&out, &chosen);
            for ((symbol, name), declared) in out.symbols.iter_mut().zip(&raw).zip(&declarations) {
                let path = declared.map(|declared| &*declared.path);
                symbol.package = Spelled::of(&symbol.name).package(name, path, None);
            }
            places = self.places((&mut out, &raw), &declarations, (&numbers, &inlined), all);
        }
        let mut strings = Strings::new(self.expanded, &ids, &names, &places);
        for (index, query) in self.queries.iter_enumerated() {
            let Some((piece, expansion)) = chosen[index] else {
                continue;
            };
            let start = out.inlined.len();
            let calls = &self.expanded[piece].calls[expansion.calls.clone()];
            let is_whole =
                matches!(query.place, Site::Wasm(part) if self.wasm.is_function_only(part));
            for &(name, place) in calls.iter().filter(|_| !is_whole) {
                let name = strings.name(piece, name);
                let line = strings.place(piece, place);
                out.inlined.push(InlinedFrame { name, line });
            }
            let answer = &mut out.answers[index];
            answer.inlined = Part::new(start..out.inlined.len());
            // The function's first line has a file, but is no place of what ran.
            let line = if is_whole {
                expansion.line.map(|(file, ..)| (file, 0, 0))
            } else {
                expansion.line
            };
            answer.line = strings.place(piece, line);
            if let Some(symbol) = answer.symbol {
                let symbol = &mut out.symbols[symbol];
                symbol.is_described |= expansion.size != NO_SIZE;
                let author = &expansion.author;
                if author.origin > symbol.origin {
                    symbol.origin = author.origin;
                    let folder = author.package.as_ref();
                    let by_folder = || Spelled::of(&symbol.name).package(&[], None, folder);
                    symbol.package = symbol.package.take().or_else(by_folder);
                }
            }
            if let Some(Some((other, behind))) = chosen.get(beside(index, self.queries)) {
                answer.doubtful =
                    self.innermost(piece, expansion) != self.innermost(*other, behind);
            }
        }
        if self.needs.contains(Needs::CLAIMS) {
            out.claims = self.claims();
        }
        out.strings = strings.texts;
        out.authors = strings.authors;
        out.parameters = strings.parameters;
        out.places = strings.places;
        self.add_bare_places(&mut out);
        out
    }

    /// Gives functions their places, where others of their file have the same name.
    fn places(
        &self,
        (out, raw): (&mut Resolution, &[&[u8]]),
        declared: &IndexSlice<SymbolIndex, [Option<&Declared>]>,
        (numbers, inlined): (&[u32], &[IndexVec<NameNumber, u32>]),
        all: bool,
    ) -> Vec<IndexVec<NameNumber, Option<Box<Place>>>> {
        let functions = place::Functions {
            raw,
            numbers,
            declared,
            expanded: self.expanded,
            objects: self.owners,
            inlined,
            are_plain: self.options.names == NameStyle::Plain,
        };
        place::find(&mut out.symbols, &functions, all, |dso| {
            self.dsos.symbols(dso)
        })
    }

    /// What is recorded of the files of DWARF, by their paths. Of units that disagree, the first counts.
    fn claims(&self) -> FxHashMap<String, SourceClaim> {
        let mut claims: FxHashMap<String, SourceClaim> = FxHashMap::default();
        let mut times: FxHashMap<DsoId, Option<SystemTime>> = FxHashMap::default();
        for (expanded, (_, dso)) in self.expanded.iter().zip(self.owners) {
            let build = dso.and_then(|dso| self.dsos.build_id(dso));
            let mut time = |id| *times.entry(id).or_insert_with(|| self.dsos.written(id));
            let built = dso.and_then(&mut time);
            for (path, md5) in expanded.paths.iter().zip(&expanded.checksums) {
                let directory = &expanded.directory;
                let claim = || SourceClaim {
                    md5: *md5,
                    directory: (!directory.is_empty()).then(|| directory.clone()),
                    build,
                    built,
                };
                let known = claims.entry(path.clone()).or_insert_with(claim);
                known.built = match (known.built, built) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (known, _) => known,
                };
            }
        }
        claims
    }

    /// The place in the innermost function.
    fn innermost(&self, piece: usize, expansion: &Expansion) -> Option<(&'b str, u32)> {
        let expanded = &self.expanded[piece];
        let call = expanded.calls[expansion.calls.clone()].first();
        let (path, line, _) = call.map_or(expansion.line, |(_, place)| *place)?;
        Some((&expanded.paths[path], line))
    }

    /// What stands for the line of WebAssembly that nothing describes.
    fn add_bare_places(&self, out: &mut Resolution) {
        let mut known: FxHashMap<String, StringIndex> = FxHashMap::default();
        let mut maps: FxHashMap<PartId, Option<WasmMap>> = FxHashMap::default();
        for (query, answer) in self.queries.iter().zip(&mut out.answers) {
            let Site::Wasm(part) = query.place else {
                continue;
            };
            if !query.lines || answer.line.is_some() {
                continue;
            }
            let Some(place) = place_of(part, query) else {
                continue;
            };
            let map = maps
                .entry(part)
                .or_insert_with(|| WasmMap::read(&self.wasm.source_map(part)?));
            let mapped = map.as_ref().zip(self.wasm.position(place));
            let mapped = mapped.and_then(|(source, position)| source.find(position));
            let bare = || Some((self.wasm.bare_place(place)?, SourceLine::NO_LINE, 0));
            let Some((text, line, column)) = mapped.or_else(bare) else {
                continue;
            };
            let file = known.entry(text);
            let file = *file.or_insert_with_key(|path| out.strings.push(path.clone()));
            answer.line = Some(SourceLine { file, line, column });
        }
    }

    /// For each query the piece and the expansion that count: those of the smallest function.
    /// Behind those of the queries, those of the code behind it, if any was asked for.
    fn chosen(&self) -> IndexVec<QueryId, Option<(usize, &'b Expansion)>> {
        let is_wasm = |query: &Query| matches!(query.place, Site::Wasm(_));
        let times = 1 + usize::from(self.queries.iter().any(is_wasm));
        let mut chosen: IndexVec<QueryId, Option<(usize, &Expansion)>> =
            index_vec![None; self.queries.len() * times];
        for (piece, expanded) in self.expanded.iter().enumerate() {
            for answer in &expanded.answers {
                let slot = &mut chosen[answer.query];
                if slot.is_none_or(|(_, known)| answer.size < known.size) {
                    *slot = Some((piece, answer));
                }
            }
        }
        chosen
    }

    /// Demangles every symbol that was hit, and numbers them by DSO and address; the answer is what files call them.
    fn add_symbols(&self, out: &mut Resolution, threads: usize) -> Vec<&'b [u8]> {
        let mut order: Vec<(DsoId, u64, usize, HitId)> = Vec::new();
        for (number, object) in self.objects.iter().enumerate() {
            let Some(dso) = object.dso else { continue };
            let symbols = object.symbols.iter_enumerated();
            order.extend(symbols.map(|(hit, symbol)| (dso, symbol.start, number, hit)));
        }
        order.sort_unstable();
        let name = |&(_, _, object, i): &(_, _, usize, HitId)| self.objects[object].symbols[i].name;
        let names = affordable(order.iter().map(name));
        let all: Vec<_> = order.iter().zip(names).collect();
        let symbols = in_parallel(all.chunks(512).collect(), threads, |chunk| {
            chunk
                .iter()
                .map(|&(&(dso, _, object, i), text)| self.symbol(dso, object, i, text))
                .collect::<Vec<_>>()
        });
        out.symbols = symbols.into_iter().flatten().collect();
        let mut numbers: Vec<IndexVec<HitId, SymbolIndex>> = self
            .objects
            .iter()
            .map(|o| index_vec![SymbolIndex(0); o.symbols.len()])
            .collect();
        for (number, &(_, _, object, i)) in out.symbols.indices().zip(&order) {
            numbers[object][i] = number;
        }
        for (object, of_object) in self.objects.iter().zip(&numbers) {
            for &(query, symbol) in &object.answers {
                out.answers[query].symbol = symbol.map(|hit| of_object[hit]);
            }
        }
        order.iter().map(name).collect()
    }

    /// The name of a function as its author has it, where views show original names.
    fn original(&self, object: &Object<'_, '_, '_>, name: &[u8]) -> Option<String> {
        let is_asked = self.needs.contains(Needs::ORIGINALS) && !object.is_kernel;
        let dso = object
            .dso
            .filter(|_| is_asked && self.options.names != NameStyle::Raw)?;
        let files = || [self.dsos.binary(dso), self.dsos.debug(dso)];
        object.originals.of(name, files)
    }

    fn symbol(&self, dso: DsoId, object: usize, hit: HitId, name: &[u8]) -> Symbol {
        let object = &self.objects[object];
        let symbol = &object.symbols[hit];
        let style = if object.is_kernel && !self.options.demangle_kernel {
            NameStyle::Raw
        } else {
            self.options.names
        };
        let original = self.original(object, name);
        let raw = original
            .as_ref()
            .map(|_| String::from_utf8_lossy(name).into());
        Symbol {
            dso,
            start: symbol.start,
            end: symbol.end,
            name: original.unwrap_or_else(|| self.show(name, style)),
            raw,
            is_data: symbol.is_data,
            is_cpp: is_of_cpp(name),
            package: None,
            origin: Origin::Unknown,
            parameters: None,
            place: None,
            is_described: false,
            others: self.others(dso, symbol, (name, style)).map(Box::new),
        }
    }

    /// What else the code of a symbol is called.
    fn others(
        &self,
        dso: DsoId,
        symbol: &crate::dso::SymbolRef<'_>,
        (raw, style): (&[u8], NameStyle),
    ) -> Option<Others> {
        let is_asked = self.needs.contains(Needs::ALIASES) && !symbol.is_data;
        let table = self.dsos.symbols(dso).filter(|_| is_asked)?;
        let all = table.functions_at(symbol.start);
        let is_other = |name: &[u8]| name != raw;
        if !all.iter().any(|name| is_other(name)) {
            return None;
        }
        let shown = self.show(raw, style);
        let names = all.iter().filter(|name| is_other(name));
        let names: BTreeSet<String> = names.map(|name| self.show(name, style)).collect();
        let functions = all.iter().filter_map(|name| mangled(name));
        let functions: BTreeSet<String> = functions.map(|name| self.show(name, style)).collect();
        let folded = functions.iter().find(|name| **name != shown);
        let others = Others {
            folded: folded.filter(|_| functions.len() > 1).cloned(),
            names: names.into_iter().filter(|name| *name != shown).collect(),
        };
        (!others.names.is_empty()).then_some(others)
    }

    fn show(&self, name: &[u8], style: NameStyle) -> String {
        match self.shown {
            Some(shown) => shown.of(name, style),
            None => demangle(name, style).into_owned(),
        }
    }

    /// The names of all inlined functions, as shown.
    fn demangled_names(&self, threads: usize) -> Shown<'d> {
        let mut known: FxHashMap<&'d [u8], ShownId> = FxHashMap::default();
        let mut distinct: IndexVec<ShownId, &'d [u8]> = IndexVec::new();
        let mut objects = Vec::new();
        for (expanded, (object, _)) in self.expanded.iter().zip(self.owners) {
            for &name in &expanded.names {
                known.entry(name).or_insert_with(|| {
                    objects.push(*object);
                    distinct.push(name)
                });
            }
        }
        let style = self.options.names;
        let affordable = affordable(distinct.iter().copied());
        let all: Vec<_> = affordable.into_iter().zip(objects).collect();
        let texts = in_parallel(all.chunks(128).collect(), threads, |chunk| {
            let shown = |&(name, object): &(&'d [u8], usize)| {
                let original = self.original(&self.objects[object], name);
                original.unwrap_or_else(|| self.show(name, style))
            };
            chunk.iter().map(shown).collect::<Vec<_>>()
        });
        Shown {
            known,
            texts: texts.into_iter().flatten().collect(),
            parameters: IndexVec::new(),
        }
    }
}

/// By symbol: where debug information says that it is defined.
fn declared<'e>(
    out: &Resolution,
    chosen: &IndexVec<QueryId, Option<(usize, &'e Expansion)>>,
) -> IndexVec<SymbolIndex, Option<&'e Declared>> {
    let mut declared = index_vec![None; out.symbols.len()];
    for (answer, choice) in out.answers.iter().zip(chosen) {
        if let (Some(symbol), Some((_, expansion))) = (answer.symbol, choice) {
            declared[symbol] = declared[symbol].or(expansion.declared.as_ref());
        }
    }
    declared
}

/// Gives functions that share their name with another one their parameters, inlined ones too; `all` in comparisons. The answer are
/// numbers of names, of symbols and of inlined functions: copies that compilers make have one.
fn tell_apart(
    symbols: &mut [Symbol],
    written: &[&[u8]],
    inlined: &mut Shown<'_>,
    all: bool,
) -> (Vec<u32>, IndexVec<ShownId, u32>) {
    let texts = &inlined.texts;
    let of_symbols = symbols.iter().map(|symbol| symbol.name.as_str());
    let of_symbols = of_symbols.zip(written.iter().copied());
    let of_inlined = inlined.known.iter();
    let of_inlined = of_inlined.map(|(raw, id)| (texts[*id].as_str(), *raw));
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    // By number: what a file calls one of them, and whether that is how all are called.
    let mut names: Vec<(&[u8], bool)> = Vec::new();
    let numbers = of_symbols.chain(of_inlined).map(|(text, raw)| {
        let number = *known.entry(native(text)).or_insert_with(|| {
            names.push((raw, !all));
            names.len() as u32 - 1
        });
        let (first, is_only) = &mut names[number as usize];
        *is_only = *is_only && *first == raw;
        number
    });
    let mut by_symbol: Vec<u32> = numbers.collect();
    let rest = by_symbol.split_off(written.len());
    let mut by_id: IndexVec<ShownId, u32> = index_vec![0; texts.len()];
    for (id, number) in inlined.known.values().zip(rest) {
        by_id[*id] = number;
    }
    let told = |number: u32, raw: &[u8]| {
        let (_, is_only) = names[number as usize];
        let parameters = (!is_only).then(|| parameters(raw)).flatten();
        parameters.map(String::into_boxed_str)
    };
    let mut parameters: IndexVec<ShownId, Option<Box<str>>> = index_vec![None; texts.len()];
    for (raw, id) in &inlined.known {
        parameters[*id] = told(by_id[*id], raw);
    }
    let of_symbol = by_symbol.iter().zip(written);
    let of_symbol: Vec<_> = of_symbol.map(|(number, raw)| told(*number, raw)).collect();
    for (symbol, own) in symbols.iter_mut().zip(of_symbol) {
        symbol.parameters = own;
    }
    inlined.parameters = parameters;
    (by_symbol, by_id)
}

/// Distinct names and their texts.
struct Shown<'a> {
    known: FxHashMap<&'a [u8], ShownId>,
    texts: IndexVec<ShownId, String>,
    /// Of functions that share their text with another one; empty where nobody asks.
    parameters: IndexVec<ShownId, Option<Box<str>>>,
}

/// A text and what tells it from others of the same letters: whose code it is, parameters, and where it is defined.
type Text<'s> = (&'s str, Author, Option<&'s str>, Option<&'s Place>);
/// A name, and its number once it was used.
type NameOf<'s> = (Text<'s>, Option<StringIndex>);

/// Interns texts in order of first use.
struct Strings<'s> {
    texts: IndexVec<StringIndex, String>,
    /// Whose code each is; functions of one name that are not of the same are two texts.
    authors: IndexVec<StringIndex, Author>,
    /// The same of functions that differ in their parameters.
    parameters: IndexVec<StringIndex, Option<Box<str>>>,
    /// The same of functions that are defined in different places.
    places: IndexVec<StringIndex, Option<Box<Place>>>,
    known: FxHashMap<Text<'s>, StringIndex>,
    /// By piece: the texts of its names and paths, and their numbers once they were used.
    names: Vec<IndexVec<NameNumber, NameOf<'s>>>,
    paths: Vec<IndexVec<PathNumber, (&'s str, Option<StringIndex>)>>,
}

impl<'s> Strings<'s> {
    /// `defined` has the places of functions, by piece.
    fn new(
        expanded: &'s [Expanded<'_>],
        ids: &[IndexVec<NameNumber, ShownId>],
        shown: &'s Shown<'_>,
        defined: &'s [IndexVec<NameNumber, Option<Box<Place>>>],
    ) -> Self {
        let has_origins = expanded.iter().any(|e| !e.origins.is_empty());
        let texts = shown.texts.iter().filter(|_| has_origins);
        let spelled: IndexVec<ShownId, _> = texts.map(|text| Spelled::of(text)).collect();
        let names = |(piece, e): (usize, &'s Expanded<'_>)| {
            let text = |(at, id): (NameNumber, &ShownId)| -> NameOf<'s> {
                let id = *id;
                let parameters = shown.parameters.get(id).and_then(Option::as_deref);
                let author = e.origins.get(at).map_or_else(Author::default, |of| {
                    let path = of.declared.as_ref().map(|declared| &*declared.path);
                    let by_folder = of.author.package.as_ref();
                    Author {
                        origin: of.author.origin,
                        package: spelled[id].package(e.names[at], path, by_folder),
                    }
                });
                let place = defined.get(piece).and_then(|of| of.get(at)?.as_deref());
                ((&shown.texts[id], author, parameters, place), None)
            };
            ids[piece].iter_enumerated().map(text).collect()
        };
        let paths = |e: &'s Expanded<'_>| e.paths.iter().map(|p| (p.as_str(), None)).collect();
        Self {
            texts: IndexVec::new(),
            authors: IndexVec::new(),
            parameters: IndexVec::new(),
            places: IndexVec::new(),
            known: FxHashMap::default(),
            names: expanded.iter().enumerate().map(names).collect(),
            paths: expanded.iter().map(paths).collect(),
        }
    }

    fn name(&mut self, piece: usize, name: NameNumber) -> StringIndex {
        let (text, known) = &self.names[piece][name];
        if let Some(number) = *known {
            return number;
        }
        let number = self.add(text.clone());
        self.names[piece][name].1 = Some(number);
        number
    }

    fn place(&mut self, piece: usize, place: Option<Spot>) -> Option<SourceLine> {
        let (path, line, column) = place?;
        let (text, number) = self.paths[piece][path];
        let file = number.unwrap_or_else(|| self.add((text, Author::default(), None, None)));
        self.paths[piece][path].1 = Some(file);
        Some(SourceLine { file, line, column })
    }

    fn add(&mut self, text: Text<'s>) -> StringIndex {
        *self.known.entry(text.clone()).or_insert_with(|| {
            let (text, author, parameters, place) = text;
            self.places.push(place.cloned().map(Box::new));
            self.authors.push(author);
            self.parameters.push(parameters.map(Box::from));
            self.texts.push(text.to_owned())
        })
    }
}

/// The names as they are, until there are too many bytes of them, and the beginnings of the others: a thousand symbols
/// may share one name of a megabyte, each beginning at another letter.
pub(super) fn affordable<'n>(names: impl Iterator<Item = &'n [u8]>) -> Vec<&'n [u8]> {
    const IN_FULL: usize = 32 << 20;
    const BEGINNING: usize = 256;
    let mut left = IN_FULL;
    let cut = |name: &'n [u8]| match left.checked_sub(name.len()) {
        Some(rest) => {
            left = rest;
            name
        }
        None => &name[..name.len().min(BEGINNING)],
    };
    names.map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_tell_functions_of_one_name_apart_inlined_or_not() {
        let symbol = |name: &str| Symbol {
            dso: DsoId::from_usize(0),
            start: 0,
            end: 1,
            name: name.to_owned(),
            raw: None,
            is_data: false,
            is_cpp: false,
            package: None,
            origin: Origin::Unknown,
            parameters: None,
            place: None,
            is_described: false,
            others: None,
        };
        let told = |symbols: &[&'static str], inlined: &[&'static str]| -> Vec<Option<String>> {
            let raw: Vec<&[u8]> = symbols.iter().map(|name| name.as_bytes()).collect();
            let text = |name: &&str| demangle(name.as_bytes(), NameStyle::Short).into_owned();
            let mut symbols: Vec<Symbol> = symbols.iter().map(|n| symbol(&text(n))).collect();
            let names = inlined.iter().enumerate();
            let mut inlined = Shown {
                known: names
                    .map(|(at, name)| (name.as_bytes(), ShownId::from_usize(at)))
                    .collect(),
                texts: inlined.iter().map(text).collect(),
                parameters: IndexVec::new(),
            };
            tell_apart(&mut symbols, &raw, &mut inlined, false);
            let all = symbols.into_iter().map(|symbol| symbol.parameters);
            all.chain(inlined.parameters)
                .map(|parameters| parameters.map(String::from))
                .collect()
        };
        let [int, double] = ["(int)", "(double)"].map(|text| Some(text.to_owned()));
        let both = [int, double];
        assert_eq!(told(&["_Z4worki", "_Z4workd"], &[]), both);
        assert_eq!(told(&["_Z4worki"], &["_Z4workd"]), both);
        assert_eq!(told(&[], &["_Z4worki", "_Z4workd"]), both);
        // One function, also where it was inlined.
        assert_eq!(told(&["_Z4worki"], &["_Z4worki"]), [None, None]);
        assert_eq!(told(&["_Z4worki"], &["_Z5otheri"]), [None, None]);
    }
}
