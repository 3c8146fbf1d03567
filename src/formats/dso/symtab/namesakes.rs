//! Symbols that share their name with others of the file: which of them one is, and of which source file.

use rustc_hash::{FxHashMap, FxHashSet};

use super::raw::{RawTable, STT_FILE};
use super::{Names, SymbolTable};
use crate::dso::entries::SYMTAB;

/// One of the symbols of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Namesake<'s> {
    /// The source file that the table names before a local symbol, without folders.
    pub file: Option<&'s [u8]>,
    /// Which of them it is, by address, from 1.
    pub nth: u32,
    /// How many they are.
    pub of: u32,
    /// How many of them are of a source file of this name, or of none.
    pub like: u32,
}

impl Namesake<'_> {
    /// What functions of one name have in common: the name without the number that a linker gave to tell them apart.
    #[must_use]
    pub fn stem(name: &[u8]) -> &[u8] {
        // Most names have no dot.
        if memchr::memchr(b'.', name).is_none_or(|at| at == 0) {
            return name;
        }
        let marks = [&b".lto_priv."[..], b".llvm."];
        let found = marks
            .iter()
            .find_map(|mark| memchr::memmem::find(name, mark));
        found.map_or(name, |at| &name[..at])
    }
}

/// By stem and start.
pub(crate) type Namesakes<'s> = FxHashMap<(&'s [u8], u64), Namesake<'s>>;

impl SymbolTable<'_> {
    /// The namesakes of the local symbols that are found at these places: global ones have none.
    #[must_use]
    pub(crate) fn namesakes(&self, wanted: &[u64]) -> Namesakes<'_> {
        let is_elf = matches!(self.names, Names::Elf { .. });
        let indices = wanted
            .iter()
            .filter_map(|at| self.find_index(at.wrapping_add(self.bias)));
        let locals = indices.filter(|index| !is_elf || self.local(*index).is_some());
        let stems: FxHashSet<&[u8]> = locals.map(|at| Namesake::stem(self.name(at))).collect();
        let mut found: FxHashMap<&[u8], Vec<(u64, usize)>> = FxHashMap::default();
        if stems.is_empty() {
            return Namesakes::default();
        }
        for (index, entry) in self.entries.iter().enumerate() {
            if is_elf && self.local(index).is_none() {
                continue;
            }
            let stem = Namesake::stem(self.name(index));
            if stems.contains(stem) {
                found.entry(stem).or_default().push((entry.start, index));
            }
        }
        let mut locals: Vec<usize> = Vec::new();
        for all in found.values_mut() {
            all.dedup_by_key(|(start, _)| *start);
            locals.extend(all.iter().filter_map(|(_, index)| self.local(*index)));
        }
        let files = self.source_files(locals);
        let mut namesakes = Namesakes::default();
        for (stem, all) in found {
            let file = |index: usize| self.local(index).and_then(|at| files.get(&at).copied());
            let mut counts: FxHashMap<Option<&[u8]>, u32> = FxHashMap::default();
            for (_, index) in &all {
                *counts.entry(file(*index)).or_default() += 1;
            }
            for ((start, index), nth) in all.iter().zip(1..) {
                let file = file(*index);
                let namesake = Namesake {
                    file,
                    nth,
                    of: all.len() as u32,
                    like: counts[&file],
                };
                namesakes.insert((stem, start.wrapping_sub(self.bias)), namesake);
            }
        }
        namesakes
    }

    /// The place of a local symbol in `.symtab`.
    fn local(&self, index: usize) -> Option<usize> {
        let Names::Elf { symtab, .. } = &self.names else {
            return None;
        };
        let origin = self.entries[index].origin;
        let raw = symtab
            .filter(|_| origin.table() == SYMTAB)?
            .get(origin.index())?;
        (raw.binding() == 0).then_some(origin.index())
    }

    /// The source files of local symbols: each name of one stands before them.
    fn source_files(&self, mut locals: Vec<usize>) -> FxHashMap<usize, &[u8]> {
        let mut files = FxHashMap::default();
        let Names::Elf {
            symtab: Some(table),
            ..
        } = &self.names
        else {
            return files;
        };
        locals.sort_unstable();
        let mut wanted = locals.into_iter().peekable();
        let mut file: Option<&[u8]> = None;
        for (at, symbol) in table.iter().enumerate() {
            if symbol.kind() == STT_FILE {
                file = named(table, symbol.name);
            }
            if wanted.peek() == Some(&at) {
                wanted.next();
                files.extend(file.map(|file| (at, file)));
                if wanted.peek().is_none() {
                    break;
                }
            }
        }
        files
    }
}

/// The name of a source file without folders, if it is one: what compilers put together has names that change with each build.
fn named<'a>(table: &RawTable<'a>, name: u32) -> Option<&'a [u8]> {
    let name = super::super::elf::string_at(table.strings, name);
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let has = |part: &[u8]| memchr::memmem::find(name, part).is_some();
    let is_made = name.starts_with(b"<") || has(b".ltrans") || has(b"-cgu.");
    (!name.is_empty() && !is_made).then_some(name)
}
