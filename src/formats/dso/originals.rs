//! Names as their authors have them, of languages whose compilers spell them in ways that perf does not read back.
//!
//! In: a name as a file has it, and the file. Out: the author's, if it decodes to the last letter. GHC's and Nim's could be C's, so
//! the runtime of the language has to be in the file.

use std::sync::OnceLock;

use super::elf::ElfFile;
use super::{d_names, demangle, haskell, nim};

/// Which languages are in a file; found out when a name looks like that.
#[derive(Debug, Default)]
pub(crate) struct Originals {
    haskell: OnceLock<bool>,
    nim: OnceLock<bool>,
}

impl Originals {
    /// The name as its author has it. `files` are the program and its debug file.
    pub(crate) fn of<'f, 'a: 'f>(
        &self,
        name: &[u8],
        files: impl Fn() -> [Option<&'f ElfFile<'a>>; 2],
    ) -> Option<String> {
        if let Some(original) = d_names::decode(name) {
            return Some(original);
        }
        let is_of = |known: &OnceLock<bool>, runtime| *known.get_or_init(|| has(files(), runtime));
        if let Some(original) = haskell::decode(name) {
            return is_of(&self.haskell, haskell::OF_RUNTIME).then_some(original);
        }
        let original = nim::decode(name)?;
        is_of(&self.nim, nim::OF_RUNTIME).then_some(original)
    }
}

/// What a name of C++ or D says behind the function's own: `(int)` of `_D2d34overFiZm`.
#[must_use]
pub(crate) fn parameters(name: &[u8]) -> Option<String> {
    if name.starts_with(b"_D") {
        d_names::parameters(name)
    } else {
        demangle::parameters(name)
    }
}

/// Whether one of these files has code of GHC's runtime.
pub(crate) fn is_of_haskell<'f, 'a: 'f>(files: [Option<&'f ElfFile<'a>>; 2]) -> bool {
    has(files, haskell::OF_RUNTIME)
}

/// Whether one of these files has a name, with zeroes around it.
fn has<'f, 'a: 'f>(files: [Option<&'f ElfFile<'a>>; 2], name: &[u8]) -> bool {
    let files = files.into_iter().flatten();
    let mut tables = files.flat_map(|file| [".strtab", ".dynstr"].map(|table| file.section(table)));
    tables.any(|table| table.is_some_and(|table| memchr::memmem::find(table.data, name).is_some()))
}
