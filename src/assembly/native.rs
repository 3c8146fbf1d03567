//! Listings of functions: bytes, instructions, names and lines put together.
//!
//! Three rounds: all functions are decoded in parallel, then all addresses they name and all their lines are looked up at once, then
//! names go behind the text.

use std::cell::Cell;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::data::{GAP, Piece, Pieces, Sweep};
use super::functions::{Function, Origin, said_of};
use super::names::{Named, Names, push_name, section_of};
use super::{
    Assembly, Code, Listing, MOST_BYTES, Material, Missing, Request, Row, SourcePlace, TextId, jit,
    options,
};
use crate::address::{FileOffset, Svma};
use crate::collect::MapCache;
use crate::disasm::{Architecture, for_architecture};
use crate::dso::elf::{ElfFile, Machine};
use crate::dso::{DsoId, DsoKind, FileTrouble};
use crate::ids::IndexVec;
use crate::parallel::{in_parallel, sort_in_parallel};
use crate::session::jit::JitCodeId;
use crate::symbolize::{self, Query, Resolution, Site};

/// The bytes of a function, decoded.
pub(super) struct Decoded<'a> {
    pub(super) function: usize,
    pub(super) file: String,
    pub(super) start: u64,
    pub(super) bytes: &'a [u8],
    pub(super) architecture: Architecture,
    pub(super) pieces: Pieces,
    pub(super) kind: Kind,
}

/// What kind of file it comes from.
pub(super) enum Kind {
    /// An ELF file: what its lines and symbols are asked by, and what to add to an address for that.
    File { dso: DsoId, to_query: u64 },
    /// A dump.
    Jit(JitCodeId),
}

/// Makes a listing of each chosen function.
pub(super) fn list(
    material: &Material<'_, '_>,
    request: &Request,
    chosen: &[usize],
    assembly: &mut Assembly,
) {
    let all = &assembly.functions.all;
    let decoded = in_parallel(chosen.to_vec(), material.threads, |number| {
        let function = &all[number];
        let hits: Vec<u64> = offsets(function);
        match function.origin {
            Origin::Jit(id) => jit::decode(material, request.syntax, number, function, id, &hits),
            Origin::Symbol { dso, start, end } => file_code(material, dso, start, end)
                .map(|code| decode_file(request, number, code, &hits)),
        }
        .map_err(|(blame, reason)| Missing {
            function: number,
            blame,
            reason,
        })
    });
    let names = file_names(material, decoded.iter().flatten());
    let lines = request
        .lines
        .then(|| Lines::of(material, decoded.iter().flatten()));
    let mut places = LineTexts::default();
    let cache = MapCache::default();
    let listings: Vec<_> = decoded
        .into_iter()
        .map(|decoded| {
            let decoded = decoded?;
            let function = &all[decoded.function];
            Ok(match decoded.kind {
                Kind::Jit(_) => jit::finish(
                    material,
                    request,
                    function,
                    decoded,
                    &cache,
                    (lines.as_ref(), &mut places),
                ),
                Kind::File { dso, to_query } => {
                    let place = |address: u64| {
                        let lines = lines.as_ref()?;
                        lines.at(
                            Site::Dso(dso),
                            address.wrapping_add(to_query),
                            &function.name,
                            &mut places,
                        )
                    };
                    finish(material, &names[&dso], dso, decoded, place)
                }
            })
        })
        .collect();
    assembly.listings = listings;
    assembly.texts = places.texts;
}

/// Offsets of samples, in order.
fn offsets(function: &Function) -> Vec<u64> {
    let mut offsets: Vec<u64> = function.hits.iter().map(|hit| hit.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// What a file holds of a function.
struct FileCode<'a> {
    dso: DsoId,
    file: String,
    architecture: Architecture,
    start: u64,
    to_query: u64,
    bytes: &'a [u8],
}

/// The bytes of a symbol. `Err`: what is to blame, and what to do.
fn file_code<'a>(
    material: &Material<'_, 'a>,
    dso: DsoId,
    start: u64,
    end: u64,
) -> Result<FileCode<'a>, (String, String)> {
    let dsos = &material.session.dsos;
    let known = dsos.get(dso);
    let path = String::from_utf8_lossy(&known.long_name).into_owned();
    let no = |reason: &str| Err((path.clone(), reason.to_owned()));
    let (elf, svma) = match known.kind {
        DsoKind::File | DsoKind::Vdso => {
            let Some(elf) = dsos.binary(dso) else {
                return no(said_of(dsos.trouble(dso).unwrap_or(FileTrouble::Missing)));
            };
            (elf, elf.svma_of(FileOffset(start)).map(|svma| svma.0))
        }
        DsoKind::Kernel => match dsos.vmlinux() {
            Some((elf, bias)) => (elf, Some(start.wrapping_add(bias))),
            None => {
                return no(
                    "has no code at hand: give the recorded kernel's vmlinux with -k FILE (kallsyms has names only)",
                );
            }
        },
        DsoKind::Module => return no("is a kernel module; code of modules is not shown"),
        DsoKind::KernelSymbol => return no("is made by the kernel, its code was not recorded"),
        DsoKind::Anonymous | DsoKind::JitDump | DsoKind::Special => {
            return no("has no code that was recorded");
        }
    };
    let Some(architecture) = architecture_of(elf.machine()) else {
        return no("is for a processor whose code is not known here (x86-64 and aarch64 are)");
    };
    let offset = svma.and_then(|svma| elf.file_offset_of(Svma(svma)));
    let (Some(svma), Some(offset)) = (svma, offset) else {
        return no("has no bytes for this function: it lies outside of what the file holds");
    };
    let len = end.saturating_sub(start).min(MOST_BYTES);
    let bytes = elf.bytes_from(offset, usize::try_from(len).unwrap_or(0));
    if bytes.is_empty() {
        return no("has no bytes for this function: it lies outside of what the file holds");
    }
    let file = match known.kind {
        DsoKind::Kernel => dsos.vmlinux_path().unwrap_or("vmlinux").to_owned(),
        _ => path,
    };
    Ok(FileCode {
        dso,
        file,
        architecture,
        start: svma,
        to_query: start.wrapping_sub(svma),
        bytes,
    })
}

pub(super) fn architecture_of(machine: Machine) -> Option<Architecture> {
    match machine {
        Machine::X86_64 => Some(Architecture::X86_64),
        Machine::X86 => Some(Architecture::X86),
        Machine::Aarch64 => Some(Architecture::Aarch64),
        Machine::Arm | Machine::Other(_) => None,
    }
}

fn decode_file<'a>(
    request: &Request,
    function: usize,
    code: FileCode<'a>,
    hits: &[u64],
) -> Decoded<'a> {
    let mut disassembler = for_architecture(code.architecture, request.syntax);
    let sweep = Sweep {
        bytes: code.bytes,
        start: code.start,
        hits,
        architecture: code.architecture,
    };
    Decoded {
        function,
        file: code.file,
        start: code.start,
        bytes: code.bytes,
        architecture: code.architecture,
        pieces: sweep.native(&mut *disassembler),
        kind: Kind::File {
            dso: code.dso,
            to_query: code.to_query,
        },
    }
}

/// The file whose symbols name addresses of a DSO.
fn file_of<'s, 'a>(material: &Material<'s, 'a>, dso: DsoId) -> Option<&'s ElfFile<'a>> {
    match material.session.dsos.get(dso).kind {
        DsoKind::Kernel => material.session.dsos.vmlinux().map(|(elf, _)| elf),
        _ => material.session.dsos.binary(dso),
    }
}

/// Names of all addresses that the functions of a file mention, by file.
fn file_names<'d>(
    material: &Material<'_, '_>,
    decoded: impl Iterator<Item = &'d Decoded<'d>>,
) -> FxHashMap<DsoId, Names> {
    let mut wanted: FxHashMap<DsoId, Vec<u64>> = FxHashMap::default();
    for decoded in decoded {
        let Kind::File { dso, .. } = decoded.kind else {
            continue;
        };
        let mentioned = decoded
            .pieces
            .iter()
            .flat_map(|piece| [piece.found.target, piece.found.memory]);
        let wanted = wanted.entry(dso).or_default();
        wanted.push(decoded.start);
        wanted.extend(mentioned.flatten());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let found = in_parallel(wanted, material.threads, |(dso, wanted)| {
        let plt = material.session.dsos.symbols(dso);
        let is_file = matches!(material.session.dsos.get(dso).kind, DsoKind::File);
        let debug = material.session.dsos.debug(dso).filter(|_| is_file);
        let names = file_of(material, dso).map(|elf| {
            Names::of(
                elf,
                debug,
                plt.filter(|_| is_file),
                wanted,
                material.threads,
            )
        });

        (dso, names.unwrap_or_default())
    });
    found.into_iter().collect()
}

/// The listing of a function of a file.
fn finish(
    material: &Material<'_, '_>,
    names: &Names,
    dso: DsoId,
    decoded: Decoded<'_>,
    mut place: impl FnMut(u64) -> Option<SourcePlace>,
) -> Listing {
    let section = file_of(material, dso).and_then(|elf| section_of(elf, decoded.start));
    let mut symbol = String::new();
    if let Some(name) = names.at(decoded.start) {
        push_name(&name, &mut symbol);
    }
    let mut rows = vec![
        Row::Text(format!(
            "Disassembly of section {}:",
            String::from_utf8_lossy(section.unwrap_or_default())
        )),
        Row::Text(format!("{:016x} <{symbol}>:", decoded.start)),
    ];
    let mut texts = String::new();
    for piece in decoded.pieces.iter() {
        let text = decoded.pieces.text(piece);
        if text == GAP {
            rows.push(Row::Text(GAP.to_owned()));
            continue;
        }
        let address = decoded.start.wrapping_add(piece.offset.into());
        let start = texts.len();
        push_text(piece, text, |target| names.at(target), &mut texts);
        rows.push(Row::Code(Code {
            offset: piece.offset,
            len: piece.len,
            text: (start, texts.len()),
            place: place(address),
        }));
    }
    Listing {
        function: decoded.function,
        file: decoded.file,
        start: decoded.start,
        bytes: decoded.bytes.to_vec(),
        has_words: decoded.architecture.has_words(),
        rows,
        texts,
    }
}

/// Adds the text of an instruction, and behind it the names of what it refers to.
pub(super) fn push_text<'n>(
    piece: &Piece,
    text: &str,
    mut name: impl FnMut(u64) -> Option<Named<'n>>,
    texts: &mut String,
) {
    let found = piece.found;
    texts.push_str(text);
    let push = |name: Option<Named<'n>>, texts: &mut String| {
        if let Some(name) = name {
            texts.push_str(" <");
            push_name(&name, texts);
            texts.push('>');
        }
    };
    push(found.target.and_then(&mut name), texts);
    if let Some(memory) = found.memory {
        // On aarch64 the address is an operand already.
        let has_address = texts.ends_with(&format!("{memory:x}"));
        if !has_address {
            let _ = write!(texts, "        # {memory:x}");
        }
        push(name(memory), texts);
    }
    texts.push_str(found.comment);
}

/// The lines of all instructions.
pub(super) struct Lines {
    queries: Vec<Query>,
    resolution: Resolution,
    /// Behind the last query that was asked for: functions are gone through from their beginning.
    next: Cell<usize>,
}

impl Lines {
    fn of<'d>(material: &Material<'_, '_>, decoded: impl Iterator<Item = &'d Decoded<'d>>) -> Self {
        let mut queries = Vec::new();
        for decoded in decoded {
            let sites = decoded
                .pieces
                .iter()
                .filter_map(|piece| match decoded.kind {
                    Kind::File { dso, to_query } => {
                        let address = decoded.start.wrapping_add(to_query);
                        Some((Site::Dso(dso), address.wrapping_add(piece.offset.into())))
                    }
                    Kind::Jit(id) => {
                        let place = material.wasm.place_of_jit(id, piece.offset.into())?;
                        Some((Site::Wasm(place.part), place.offset.into()))
                    }
                });
            queries.extend(sites.map(|(place, address)| Query {
                place,
                address,
                inlines: true,
                lines: true,
            }));
        }
        let key = |query: &Query| (query.place, query.address);
        sort_in_parallel(&mut queries, material.threads, |a, b| key(a).cmp(&key(b)));
        queries.dedup_by_key(|query| (query.place, query.address));
        let dsos = &material.session.dsos;
        let wasm = material.wasm;
        let resolution = symbolize::resolve(&queries, dsos, wasm, options(), material.threads);
        Self {
            queries,
            resolution,
            next: Cell::new(0),
        }
    }

    /// The place of an address; `own` names the function around it where nothing else does.
    pub(super) fn at(
        &self,
        site: Site,
        address: u64,
        own: &str,
        places: &mut LineTexts,
    ) -> Option<SourcePlace> {
        let key = |query: &Query| (query.place, query.address);
        let wanted = (site, address);
        let is_next = |at: usize| self.queries.get(at).is_some_and(|next| key(next) == wanted);
        let at = match self.next.get() {
            next if is_next(next) => next,
            _ => self.queries.binary_search_by_key(&wanted, key).ok()?,
        };
        self.next.set(at + 1);
        let answer = self.resolution.answers.get(at)?;
        let (function, line) = match answer.inlined(&self.resolution).first() {
            Some(innermost) => {
                let name = places.of_string(innermost.name, &self.resolution);
                (name, innermost.line)
            }
            None => {
                let name = match answer.symbol {
                    Some(symbol) => places.of_symbol(symbol, &self.resolution),
                    None => places.number(own),
                };
                (name, answer.line)
            }
        };
        Some(SourcePlace {
            function: Some(function),
            file: line.map(|line| places.of_string(line.file, &self.resolution)),
            line: line.map_or(0, |line| line.line),
            is_near: answer.doubtful,
        })
    }
}

/// Texts of places, each once.
#[derive(Default)]
pub(super) struct LineTexts {
    texts: IndexVec<TextId, String>,
    known: FxHashMap<String, TextId>,
    /// The same by numbers of the resolution, which are quicker to find than texts.
    strings: FxHashMap<symbolize::StringIndex, TextId>,
    symbols: FxHashMap<symbolize::SymbolIndex, TextId>,
}

impl LineTexts {
    fn of_string(&mut self, string: symbolize::StringIndex, resolution: &Resolution) -> TextId {
        if let Some(number) = self.strings.get(&string) {
            return *number;
        }
        let number = self.number(&resolution.strings[string]);
        self.strings.insert(string, number);
        number
    }

    fn of_symbol(&mut self, symbol: symbolize::SymbolIndex, resolution: &Resolution) -> TextId {
        if let Some(number) = self.symbols.get(&symbol) {
            return *number;
        }
        let number = self.number(&resolution.symbols[symbol].name);
        self.symbols.insert(symbol, number);
        number
    }

    pub(super) fn number(&mut self, text: &str) -> TextId {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let number = self.texts.push(text.to_owned());
        self.known.insert(text.to_owned(), number);
        number
    }
}

/// The name of a symbol of a mapped file, for code that is not in it.
pub(super) fn file_name_at<'s>(
    material: &Material<'s, '_>,
    dso: DsoId,
    address: u64,
) -> Option<Named<'s>> {
    let symbol = material.session.dsos.symbols(dso)?.find(address)?;
    let name = crate::dso::demangle::demangle(symbol.name, material.names);
    Some((name, address - symbol.start))
}
