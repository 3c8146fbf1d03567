//! Functions that were decoded, and what listings of files and of JIT code have in common: the lines of instructions, and
//! names behind their text.

use std::cell::Cell;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::data::{Piece, Pieces};
use super::names::{Named, push_name};
use super::{Material, Row, SourcePlace, TextId, options};
use crate::address::FileOffset;
use crate::arch::Arch;
use crate::dso::DsoId;
use crate::ids::IndexVec;
use crate::input::SourceClaim;
use crate::jit::JitCodeId;
use crate::needs::Needs;
use crate::parallel::sort_in_parallel;
use crate::symbolize::{self, Query, Resolution, Site};

/// Why code is not listed whose architecture has no disassembler.
pub(super) const NOT_KNOWN: &str =
    "is for a processor whose code is not known here (x86-64 and aarch64 are)";

/// The bytes of a function, decoded.
pub(super) struct Decoded<'a> {
    pub(super) function: usize,
    pub(super) file: String,
    pub(super) start: u64,
    pub(super) bytes: &'a [u8],
    /// Whether the function has more of them.
    pub(super) is_cut: bool,
    pub(super) arch: Arch,
    pub(super) pieces: Pieces,
    pub(super) kind: Kind,
}

impl Decoded<'_> {
    /// What the listing ends with.
    pub(super) fn end(&self) -> Option<Row> {
        let text = "... (the function goes on; this is too long to be shown)";
        self.is_cut.then(|| Row::Text(text.to_owned()))
    }
}

/// What kind of file it comes from.
pub(super) enum Kind {
    /// An ELF file: what its lines and symbols are asked by, and what to add to an address for that.
    File { dso: DsoId, to_query: u64 },
    /// A dump.
    Jit(JitCodeId),
}

/// Adds the text of an instruction, and behind it the names of what it refers to.
pub(super) fn push_text<'n>(
    piece: &Piece,
    text: &str,
    mut name_of: impl FnMut(u64) -> Option<Named<'n>>,
    texts: &mut String,
) {
    let found = piece.found;
    texts.push_str(text);
    let push = |name: Option<Named<'n>>, into: &mut String| {
        if let Some(name) = name {
            into.push_str(" <");
            push_name(&name, into);
            into.push('>');
        }
    };
    push(found.target.and_then(&mut name_of), texts);
    if let Some(memory) = found.memory {
        // On aarch64 the address is an operand already.
        let has_address = texts.ends_with(&format!("{memory:x}"));
        if !has_address {
            let _ = write!(texts, "        # {memory:x}");
        }
        push(name_of(memory), texts);
    }
    texts.push_str(found.comment);
}

/// What the line of an address in a file is asked by: of what wasmtime compiled, the module knows it.
pub(super) fn site_of(material: &Material<'_, '_>, dso: DsoId, address: u64) -> (Site, u64) {
    match material.wasm.place_of_dso(dso, FileOffset(address)) {
        Some(place) => (Site::Wasm(place.part), place.offset.into()),
        None => (Site::Dso(dso), address),
    }
}

/// The lines of all instructions.
pub(super) struct Lines {
    queries: Vec<Query>,
    resolution: Resolution,
    /// Behind the last query that was asked for: functions are gone through from their beginning.
    next: Cell<usize>,
}

impl Lines {
    /// What is recorded of source files, by their paths.
    pub(super) fn into_claims(self) -> FxHashMap<String, SourceClaim> {
        self.resolution.claims
    }

    pub(super) fn of<'d>(
        material: &Material<'_, '_>,
        all: impl Iterator<Item = &'d Decoded<'d>>,
    ) -> Self {
        let mut queries = Vec::new();
        for decoded in all {
            let sites = decoded
                .pieces
                .iter()
                .filter_map(|piece| match decoded.kind {
                    Kind::File { dso, to_query } => {
                        let address = decoded.start.wrapping_add(to_query);
                        let address = address.wrapping_add(piece.offset.into());
                        Some(site_of(material, dso, address))
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
        let request = symbolize::Request {
            queries: &queries,
            names: options(),
            needs: Needs::CLAIMS,
            bare: &[],
            threads: material.threads,
        };
        let resolution = symbolize::resolve(request, dsos, wasm);
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
    pub(super) texts: IndexVec<TextId, String>,
    known: FxHashMap<String, TextId>,
    /// The same by numbers of the resolution, which are quicker to find than texts.
    strings: FxHashMap<symbolize::StringIndex, TextId>,
    symbols: FxHashMap<symbolize::SymbolIndex, TextId>,
}

impl LineTexts {
    /// Another resolution, with numbers of its own, is asked from now on.
    pub(super) fn begin(&mut self) {
        self.strings.clear();
        self.symbols.clear();
    }

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
