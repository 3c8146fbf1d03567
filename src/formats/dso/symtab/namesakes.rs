//! Symbols that share their name with others of the file: which of them one is, and of which source file.

use rustc_hash::{FxHashMap, FxHashSet};

use super::raw::RawTable;
use super::{Names, SymbolTable};
use crate::dso::entries::SYMTAB;
use crate::dso::nim;
use object::elf::{STB_LOCAL, STT_FILE, STT_FUNC, STT_GNU_IFUNC};

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
    /// What functions of one name have in common: the name without the number that a linker gave to tell them apart, and of a
    /// closure of Rust without its hash.
    #[must_use]
    pub fn stem(name: &[u8]) -> &[u8] {
        closure(unlinked(name)).map_or_else(|| unlinked(name), |(stem, _)| stem)
    }

    /// Whether two names of one text are those of two functions, and not of one and a copy of it.
    #[must_use]
    pub fn differ(one: &[u8], other: &[u8]) -> bool {
        let are_of_nim = match (of_nim(one), of_nim(other)) {
            (Some((one, _)), Some((other, _))) => one != other,
            _ => false,
        };
        are_of_nim || Self::stem(one) == Self::stem(other)
    }

    /// What tells closures of one function of Rust apart: the beginning of the compiler's hash. Of one build and the next it is the
    /// same, though others come and go.
    #[must_use]
    pub fn hash(name: &[u8]) -> Option<u32> {
        let (_, digits) = closure(unlinked(name))?;
        u32::from_str_radix(std::str::from_utf8(&digits[..6]).ok()?, 16).ok()
    }
}

/// A name of Nim without what compilers append to clones, and what its author has. Elsewhere names may look like that.
fn of_nim(name: &[u8]) -> Option<(&[u8], String)> {
    let text = nim::decode(name)?;
    Some((name.split(|byte| *byte == b'.').next()?, text))
}

fn unlinked(name: &[u8]) -> &[u8] {
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

/// Of the name of a closure of Rust in the older mangling (`28_$u7b$$u7b$closure$u7d$$u7d$17h4c86a0d00329443dE`) what is in front
/// of its hash, and the hash. Instances of generic functions have such hashes too and are one function: closures alone are told by it.
fn closure(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let (front, digits) = name.strip_suffix(b"E")?.split_last_chunk::<16>()?;
    let stem = front.strip_suffix(b"17h")?;
    let is_closure = stem.ends_with(b"$u7b$$u7b$closure$u7d$$u7d$") && stem.starts_with(b"_ZN");
    (is_closure && digits.iter().all(u8::is_ascii_hexdigit)).then_some((stem, digits))
}

/// Where a symbol starts, and its source file.
type Start<'s> = (u64, Option<&'s [u8]>);

/// By stem and start.
pub(crate) type Namesakes<'s> = FxHashMap<(&'s [u8], u64), Namesake<'s>>;

impl SymbolTable<'_> {
    /// The namesakes of the local symbols that are found at these places: global ones have none, but those of Nim.
    #[must_use]
    pub(crate) fn namesakes(&self, wanted: &[u64]) -> Namesakes<'_> {
        let mut namesakes = self.local_namesakes(wanted);
        self.add_namesakes_of_nim(&mut namesakes, wanted);
        namesakes
    }

    /// Nim's compiler gives functions of one name numbers, which are others in the next build. One that is in several files is one.
    fn add_namesakes_of_nim<'s>(&'s self, namesakes: &mut Namesakes<'s>, wanted: &[u64]) {
        let indices = wanted
            .iter()
            .filter_map(|at| self.find_index(at.wrapping_add(self.bias)));
        let texts: FxHashSet<String> = indices
            .filter_map(|at| nim::decode(self.name(at)))
            .collect();
        if texts.is_empty() || !self.names().any(|name| name == nim::MAIN) {
            return;
        }
        let mut found: FxHashMap<String, Vec<_>> = FxHashMap::default();
        for (index, entry) in self.entries.iter().enumerate() {
            let name = self.name(index);
            if let Some((linked, text)) = of_nim(name).filter(|(_, text)| texts.contains(text)) {
                let all = found.entry(text).or_default();
                all.push((linked, name, entry.start));
            }
        }
        for all in found.into_values() {
            let mut numbers: FxHashMap<&[u8], u32> = FxHashMap::default();
            for (linked, ..) in &all {
                let next = numbers.len() as u32 + 1;
                numbers.entry(linked).or_insert(next);
            }
            let of = numbers.len() as u32;
            for (linked, name, start) in all {
                let namesake = Namesake {
                    file: None,
                    nth: numbers[linked],
                    of,
                    like: of,
                };
                let key = (Namesake::stem(name), start.wrapping_sub(self.bias));
                namesakes.insert(key, namesake);
            }
        }
    }

    fn local_namesakes(&self, wanted: &[u64]) -> Namesakes<'_> {
        let is_elf = self.is_of_elf();
        let indices = wanted
            .iter()
            .filter_map(|at| self.find_index(at.wrapping_add(self.bias)));
        let locals = indices.filter(|index| !is_elf || self.is_local(*index));
        let stems: FxHashSet<&[u8]> = locals.map(|at| Namesake::stem(self.name(at))).collect();
        if stems.is_empty() {
            return Namesakes::default();
        }
        let mut found: FxHashMap<&[u8], Vec<Start<'_>>> = FxHashMap::default();
        let mut meet = |stem, start: u64, file| {
            let all = found.entry(stem).or_default();
            if all.last().is_none_or(|(last, _)| *last != start) {
                all.push((start, file));
            }
        };
        if let Names::Elf { symtab, .. } = &self.names {
            let files = symtab.as_ref().map(|table| local(table, &stems));
            let files = files.unwrap_or_default();
            let places = self
                .entries
                .iter()
                .filter(|entry| entry.origin.table() == SYMTAB);
            for entry in places {
                if let Some((stem, file)) = files.get(&entry.origin.index()) {
                    meet(*stem, entry.start, *file);
                }
            }
        } else {
            for (index, entry) in self.entries.iter().enumerate() {
                let stem = Namesake::stem(self.name(index));
                if let Some(stem) = stems.get(stem) {
                    meet(*stem, entry.start, None);
                }
            }
        }
        let mut namesakes = Namesakes::default();
        for (stem, all) in found {
            let mut counts: FxHashMap<Option<&[u8]>, u32> = FxHashMap::default();
            for (_, file) in &all {
                *counts.entry(*file).or_default() += 1;
            }
            for ((start, file), nth) in all.iter().zip(1..) {
                let namesake = Namesake {
                    file: *file,
                    nth,
                    of: all.len() as u32,
                    like: counts[file],
                };
                namesakes.insert((stem, start.wrapping_sub(self.bias)), namesake);
            }
        }
        namesakes
    }

    fn is_local(&self, index: usize) -> bool {
        let Names::Elf { symtab, .. } = &self.names else {
            return false;
        };
        let origin = self.entries[index].origin;
        let table = symtab.as_ref().filter(|_| origin.table() == SYMTAB);
        let raw = table.and_then(|table| table.get(origin.index()));
        raw.is_some_and(|raw| raw.binding() == STB_LOCAL)
    }
}

/// By place in a table: the local functions with some stems, each with its stem and the source file that is named before it.
fn local<'a>(
    table: &RawTable<'a>,
    stems: &FxHashSet<&[u8]>,
) -> FxHashMap<usize, (&'a [u8], Option<&'a [u8]>)> {
    let mut found = FxHashMap::default();
    let mut file = None;
    for (at, symbol) in table.iter().enumerate() {
        if symbol.binding() != STB_LOCAL {
            continue;
        }
        match symbol.kind() {
            STT_FILE => file = Some(symbol.name),
            STT_FUNC | STT_GNU_IFUNC => {
                let stem = Namesake::stem(table.name(symbol));
                if stems.contains(stem) {
                    found.insert(at, (stem, file.and_then(|name| named(table, name))));
                }
            }
            _ => {}
        }
    }
    found
}

/// The name of a source file without folders, if it is one: what compilers put together has names that change with each build.
fn named<'a>(table: &RawTable<'a>, name: u32) -> Option<&'a [u8]> {
    let name = super::super::elf::string_at(table.strings, name);
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let has = |part: &[u8]| memchr::memmem::find(name, part).is_some();
    let is_made = name.starts_with(b"<") || has(b".ltrans") || has(b"-cgu.");
    (!name.is_empty() && !is_made).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_nim_are_told_apart_by_their_order() {
        let of = |names: &[&str]| -> Vec<Option<(u32, u32)>> {
            let starts = (0..names.len() as u64).map(|at| at * 16);
            let symbols = starts.clone().zip(names);
            let symbols = symbols.map(|(start, name)| (start, 16, name.as_bytes().into()));
            let table = SymbolTable::of_records(symbols);
            let found = table.namesakes(&starts.clone().collect::<Vec<_>>());
            let of = |(start, name): (u64, &&str)| {
                let namesake = found.get(&(Namesake::stem(name.as_bytes()), start))?;
                Some((namesake.nth, namesake.like))
            };
            starts.zip(names).map(of).collect()
        };
        let names = [
            "over__n_26",
            "over__n_14",
            "over__n_26.part.0",
            "over__libZn_3",
            "main__n_119",
            "NimMain",
        ];
        let told = [(1, 3), (2, 3), (1, 3), (3, 3), (1, 1)].map(Some);
        assert_eq!(of(&names)[..5], told);
        // Names of C may look like that.
        assert_eq!(of(&names[..5]), [None; 5]);
        let differ = |one: &str, other: &str| Namesake::differ(one.as_bytes(), other.as_bytes());
        assert!(differ("over__n_26", "over__n_14") && differ("over__n_26", "over__libZn_3"));
        assert!(!differ("over__n_26", "over__n_26.part.0"));
    }
}
