//! Names for addresses: unique (DSO, address) pairs in, symbols and inline chains out, in parallel.
//!
//! Called once per run with everything that samples and stacks hit. Symbols follow perf's tables
//! ([`crate::dso::symtab`]), inlined functions and lines come from DWARF. Names of JIT code are not looked up here: they
//! are in the dump. Of WebAssembly, which has DWARF although it is JIT code, [`crate::wasm`] tells where that is.

mod abbreviations;
mod declared;
mod dwarf;
mod expanded;
mod go_lines;
mod inlines;
mod line_rows;
mod lines;
mod memo;
mod origin;
mod place;
mod ran;
mod run;
mod scopes;
mod shown;
mod source_map;
mod split;
mod store;
#[cfg(test)]
mod tests;
mod unpacked;
mod utf16;
mod written_name;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::dso::DsoId;
use crate::ids::{IndexVec, Part};
use crate::input::SourceClaim;
use crate::needs::Needs;
use crate::wasm::{PartId, WasmCode, WasmPlace};

pub use crate::dso::NameStyle;
pub use declared::Mark;
pub use origin::{Author, Origin};
pub use place::Place;
pub use ran::{Ran, RanFunctions};
pub use run::{resolve, resolve_with};
pub use source_map::{
    Original, OriginalFunction, OriginalName, RanTexts, Search as SourceMapSearch, SourceMaps,
};
pub use split::missing_split_file;
pub use store::DebugStore;
pub use written_name::written_name;

/// What an address is looked up in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Site {
    /// A DSO. Addresses are file offsets for files, and absolute ([`Avma`](crate::address::Avma)) for identity DSOs
    /// (kernel, modules, KSYMBOL ranges).
    Dso(DsoId),
    /// A module of WebAssembly, of which only lines and inlined functions are told. Addresses are those of
    /// [`WasmPlace`].
    Wasm(PartId),
}

/// One address to resolve.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Query {
    /// Where it lies.
    pub place: Site,
    /// Where in there.
    pub address: u64,
    /// Whether the functions inlined at the address are wanted.
    pub inlines: bool,
    /// Whether source file and line are wanted.
    pub lines: bool,
}

/// What is asked of all addresses together.
#[derive(Clone, Copy, Debug)]
pub struct Request<'q> {
    /// The addresses.
    pub queries: &'q [Query],
    /// How names are shown.
    pub names: Options,
    /// [`Needs::KINDS`] of functions, where inlined ones are wanted too, and [`Needs::CLAIMS`] of source files.
    pub needs: Needs,
    /// Objects whose debug information is not read, by the names that tables show.
    pub bare: &'q [String],
    /// Worker threads; the answer does not depend on their number.
    pub threads: usize,
}

/// Choices of the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How names are shown.
    pub names: NameStyle,
    /// `--demangle-kernel`
    pub demangle_kernel: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            names: NameStyle::Short,
            demangle_kernel: false,
        }
    }
}

crate::ids::numbers! {
    /// Index into [`Resolution::symbols`].
    pub struct SymbolIndex(pub u32);
    /// Index into [`Resolution::strings`].
    pub struct StringIndex(pub u32);
    /// Index into the queries, and into [`Resolution::answers`].
    pub struct QueryId(pub u32);
}

/// All answers of a run.
#[derive(Debug, Default)]
pub struct Resolution {
    /// Distinct ELF and kernel symbols, ordered by DSO and address.
    pub symbols: IndexVec<SymbolIndex, Symbol>,
    /// Names of inlined functions and source files.
    pub strings: IndexVec<StringIndex, String>,
    /// Whose code each of [`Resolution::strings`] is that is a function.
    pub authors: IndexVec<StringIndex, Author>,
    /// By string: the parameters of inlined functions that share a name with others that were hit.
    pub parameters: IndexVec<StringIndex, Option<Box<str>>>,
    /// By string: where inlined functions are defined, of which others with this name were hit.
    pub places: IndexVec<StringIndex, Option<Box<Place>>>,
    /// What is recorded of source files, by their paths, where that was asked.
    pub claims: FxHashMap<String, SourceClaim>,
    /// Inlined frames of all answers, each answer's run innermost first.
    pub inlined: Vec<InlinedFrame>,
    /// One for each query, in the order asked.
    pub answers: IndexVec<QueryId, Resolved>,
}

/// A symbol that some address hit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Where it lives.
    pub dso: DsoId,
    /// First address, as [`Site::Dso`] counts them.
    pub start: u64,
    /// End, exclusive as perf counts it.
    pub end: u64,
    /// Name as shown.
    pub name: String,
    /// As its file has it, where the one that is shown is the author's.
    pub raw: Option<Box<str>>,
    /// `STT_OBJECT`
    pub is_data: bool,
    /// Whether its file spells it as compilers of C++ do: it is no function of C, and of no crate.
    pub is_cpp: bool,
    /// The crate or module that has it, where its name leaves that open ([`Author::package`]); told if it is wanted whose code functions are.
    pub package: Option<Arc<str>>,
    /// Whose code it is.
    pub origin: Origin,
    /// Parameters, of C++ functions that share a name with others that were hit, if it is wanted whose code functions are.
    pub parameters: Option<Box<str>>,
    /// Where it is defined, of functions that share a name with others, in the same case.
    pub place: Option<Box<Place>>,
    /// Whether debug information tells of it, if inlined functions or lines were asked for: what is inlined into it is known then.
    pub is_described: bool,
    /// What else its code is called, if [`Needs::ALIASES`] asks for it.
    pub others: Option<Box<Others>>,
}

/// What code is called besides, by functions that begin at its address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Others {
    /// The names as shown, each once, in order, without the one that is shown.
    pub names: Vec<String>,
    /// The first of those that are other functions, which the linker or the compiler made one with it: nothing tells which of them ran.
    pub folded: Option<String>,
}

/// A function inlined at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlinedFrame {
    /// Linkage name, shown in the chosen style.
    pub name: StringIndex,
    /// Position of the code in this function.
    pub line: Option<SourceLine>,
}

/// A place in the sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// Path as the compiler knew it, made absolute by its directory.
    pub file: StringIndex,
    /// Line, 0 when the compiler gave none, [`SourceLine::NO_LINE`] for what has no lines.
    pub line: u32,
    /// Column, 0 when the compiler gave none.
    pub column: u32,
}

impl SourceLine {
    /// `file` tells the place alone (`app.wasm+0xb24`).
    pub const NO_LINE: u32 = u32::MAX;
}

/// The answer to one [`Query`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolved {
    /// The ELF or kernel symbol: the outermost function at the address.
    pub symbol: Option<SymbolIndex>,
    /// Part of [`Resolution::inlined`]; empty when nothing is inlined here or it was not asked for.
    inlined: Part<InlinedFrame>,
    /// Line of the outermost function: the call site when something is inlined, else the address itself.
    pub line: Option<SourceLine>,
    /// The code itself belongs to no line, that before it and that behind it to different ones, and told is the one
    /// before (WebAssembly).
    pub doubtful: bool,
}

/// Questions with their answers.
#[derive(Clone, Copy)]
pub struct Answers<'r> {
    /// What was asked, sorted by place and address.
    pub queries: &'r [Query],
    /// What was answered.
    pub resolution: &'r Resolution,
    /// Where code of WebAssembly is.
    pub wasm: &'r WasmCode<'r>,
    /// Where scripts come from.
    pub maps: &'r SourceMaps<'r>,
}

impl<'r> Answers<'r> {
    /// The answer for an address, if it was asked for.
    #[must_use]
    pub fn get(&self, place: Site, address: u64) -> Option<&'r Resolved> {
        let key = |query: &Query| (query.place, query.address);
        let found = self.queries.binary_search_by_key(&(place, address), key);
        self.resolution.answers.get(found.ok()?)
    }

    /// The answer for an address of WebAssembly.
    #[must_use]
    pub fn of_wasm(&self, place: Option<WasmPlace>) -> Option<&'r Resolved> {
        let place = place?;
        self.get(Site::Wasm(place.part), place.offset.into())
    }
}

impl Resolved {
    /// Whether the address itself has a line, and not only a place ([`SourceLine::NO_LINE`]).
    #[must_use]
    pub fn has_line(&self, resolution: &Resolution) -> bool {
        self.own_line(resolution)
            .is_some_and(|line| line.line != SourceLine::NO_LINE)
    }

    /// The line of the address itself, in the innermost function.
    #[must_use]
    pub fn own_line(&self, resolution: &Resolution) -> Option<SourceLine> {
        let innermost = self.inlined(resolution).first();
        innermost.map_or(self.line, |own| own.line)
    }

    /// The inlined frames, innermost first.
    #[must_use]
    pub fn inlined<'r>(&self, resolution: &'r Resolution) -> &'r [InlinedFrame] {
        self.inlined.of(&resolution.inlined)
    }
}
