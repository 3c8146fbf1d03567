//! The code of functions that samples hit, as text with names and source lines.
//!
//! In: what the stages before made of a recording. Out: [`Functions`] with their samples by address, and for those that a view
//! chose a [`Listing`]: instructions, what their targets are called, and the lines they were made from. Bytes come from the
//! mapped files and the dumps in memory. Nothing here knows percentages or how lines are laid out (`crate::code`).

mod data;
mod decoded;
mod functions;
mod jit;
mod listings;
mod names;
mod native;
mod sources;

use rustc_hash::FxHashSet;

use crate::collect::{Collected, PcId};
use crate::diagnostics::Diagnostics;
use crate::disasm::Syntax;
use crate::find::SourcePaths;
use crate::ids::{IndexSlice, IndexVec, Spare, numbers};
use crate::input::Kept;
use crate::needs::Needs;
use crate::profile::{FrameId, Profile};
use crate::session::{Samples, Session};
use crate::symbolize::{self, Answers, NameStyle};
use crate::wasm::WasmCode;

pub use functions::{Function, Functions, Hit, Unnamed, Version, tier};
pub use sources::{Source, Sources};

use functions::Weighed;

/// What listings of code are made of. Filters need [`Needs::ADDRESSES`] besides, to count each instruction by itself.
pub const NEEDS: Needs = Needs::CODE
    .union(Needs::MARKS)
    .union(Needs::ORIGINALS)
    .union(Needs::ALIASES);

/// What the stages before made of a recording.
#[derive(Clone, Copy)]
pub struct Material<'s, 'a> {
    /// Its history.
    pub session: &'s Session<'a>,
    /// Its samples, one by one.
    pub samples: &'s Samples,
    /// The same, added up.
    pub collected: &'s Collected,
    /// An address of each frame of its profile.
    pub met: &'s IndexSlice<FrameId, [Option<PcId>]>,
    /// What its symbols answered.
    pub answers: Answers<'s>,
    /// Where code of WebAssembly is.
    pub wasm: &'s WasmCode<'a>,
    /// What is told of what was looked for.
    pub diag: &'s Diagnostics,
    /// How names are shown.
    pub names: NameStyle,
    /// Worker threads.
    pub threads: usize,
}

/// What is wanted of listings.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// How operands are written.
    pub syntax: Syntax,
    /// Whether each instruction's source line is wanted.
    pub lines: bool,
    /// Whether the files of those lines are looked for.
    pub sources: bool,
    /// Whether of the code nothing is wanted but which sources it names.
    pub only_files: bool,
    /// Whether their text is wanted.
    pub keeps_sources: bool,
    /// Where sources are looked for.
    pub paths: SourcePaths,
}

numbers! {
    /// Index into [`Assembly::texts`].
    pub struct TextId(Spare);
}

/// What was made of a recording for a view.
#[derive(Debug, Default)]
pub struct Assembly {
    /// All functions with samples of their own.
    pub functions: Functions,
    /// What was chosen, in the order of the choice.
    pub listings: Vec<Result<Listing, Missing>>,
    /// Files and functions that [`SourcePlace`]s name.
    pub texts: IndexVec<TextId, String>,
    /// Sources by their names, in order; those that were not found are not there.
    pub sources: Vec<(TextId, Source)>,
    /// Where they were found, by the names that debug information has for them.
    pub found: Vec<(String, Kept)>,
    /// Sources that were not found.
    pub not_found: Vec<String>,
    /// What to say about sources.
    pub warnings: Vec<String>,
}

/// Why there is no listing of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Index in [`Functions::all`].
    pub function: usize,
    /// The file, or what else is to blame: said once for each.
    pub blame: String,
    /// What to do about it.
    pub reason: String,
}

/// The code of a function.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Index in [`Functions::all`].
    pub function: usize,
    /// The file that the code comes from, as recorded.
    pub file: String,
    /// The first address.
    pub start: u64,
    /// All bytes.
    pub bytes: Vec<u8>,
    /// Whether instructions are words of four bytes, as on aarch64.
    pub has_words: bool,
    /// Texts and instructions in order.
    pub rows: Vec<Row>,
    /// The texts of all instructions.
    texts: String,
}

impl Listing {
    /// What objdump would print behind the address of an instruction.
    #[must_use]
    pub fn text(&self, code: &Code) -> &str {
        &self.texts[code.text.0..code.text.1]
    }

    /// Leaves one row for each source that the code names.
    fn keep_files(&mut self) {
        let mut files = FxHashSet::default();
        self.rows.retain(|row| match row {
            Row::Code(code) => {
                let file = code.place.and_then(|place| place.file);
                file.is_some_and(|file| files.insert(file))
            }
            Row::Text(_) => false,
        });
        self.rows.shrink_to_fit();
        self.bytes = Vec::new();
        self.texts = String::new();
    }
}

/// A line of a listing.
#[derive(Debug, Clone)]
pub enum Row {
    /// Where a section or a symbol begins.
    Text(String),
    /// An instruction, or bytes that are none.
    Code(Code),
}

/// An instruction, or bytes that are none.
#[derive(Debug, Clone)]
pub struct Code {
    /// Bytes from the start of the function.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
    /// Where in the listing's texts its own begins and ends.
    text: (usize, usize),
    /// What it was made from.
    pub place: Option<SourcePlace>,
}

/// A place in the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePlace {
    /// The innermost function.
    pub function: Option<TextId>,
    /// The file.
    pub file: Option<TextId>,
    /// The line, 0 if it is not known, [`SourcePlace::NO_LINE`] where the file is one of positions alone.
    pub line: u32,
    /// Whether it is the line of the code before, because this code has none of its own (WebAssembly).
    pub is_near: bool,
}

impl SourcePlace {
    /// `file` tells the place alone (`app.wasm+0xb24`).
    pub const NO_LINE: u32 = symbolize::SourceLine::NO_LINE;

    /// The line, if there is one.
    #[must_use]
    pub fn number(self) -> Option<u32> {
        (self.line > 0 && self.line != Self::NO_LINE).then_some(self.line)
    }
}

/// Bytes of a function that are read at most.
const MOST_BYTES: u64 = 4 << 20;
/// Instructions of a function that are decoded at most: one takes some 250 bytes here, however short it is.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Finds all functions, lets `choose` leave out some and name others, and makes listings of those it names.
///
/// With a profile that was filtered: those with samples that are left, of which frames that were removed gave theirs to callers.
pub fn list(
    material: &Material<'_, '_>,
    filtered: Option<&Profile>,
    request: &Request,
    choose: impl FnOnce(&mut Functions) -> Vec<usize>,
) -> Assembly {
    let collected = material.collected;
    let mut functions = match filtered {
        Some(profile) => functions::find(material, Weighed::left(profile, material.met, collected)),
        None => functions::find(material, Weighed::all(collected)),
    };
    let chosen = choose(&mut functions);
    let mut assembly = Assembly {
        functions,
        ..Assembly::default()
    };
    let claims = listings::list(material, request, &chosen, &mut assembly);
    if request.sources {
        let maps = material.answers.maps;
        sources::read(request, &claims, maps, material.diag, &mut assembly);
    }
    assembly
}

/// How names in the text of instructions are shown: in full, as objdump does.
fn options() -> symbolize::Options {
    symbolize::Options {
        names: NameStyle::Full,
        demangle_kernel: false,
    }
}
