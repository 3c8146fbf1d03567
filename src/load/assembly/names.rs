//! What addresses in a file are called, as objdump names them: the nearest symbol that begins at or before the address.
//!
//! In: an ELF file and addresses. Out: names, each with the distance. The table is read through once for all addresses of a
//! file; of several symbols at one address functions, then objects, then global ones go first.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::address::Svma;
use crate::dso::NameStyle;
use crate::dso::demangle::demangle;
use crate::dso::elf::ElfFile;
use crate::dso::symtab::{NamedSymbol, SymbolTable, named_symbols};
use crate::parallel::in_parallel;

/// A name, and how far behind its beginning.
pub(super) type Named<'n> = (Cow<'n, str>, u64);

/// Symbols before the addresses that were asked for.
#[derive(Default)]
pub(super) struct Names {
    /// Ordered by address asked for: symbol's address and the number of its name.
    found: Vec<(u64, Option<(u64, usize)>)>,
    names: Vec<String>,
}

impl Names {
    /// Finds the names of addresses, which may be in any order and not distinct.
    pub(super) fn of<'a>(
        elf: &ElfFile<'a>,
        debug: Option<&ElfFile<'a>>,
        table: Option<&SymbolTable<'_>>,
        mut wanted: Vec<u64>,
        threads: usize,
    ) -> Self {
        wanted.sort_unstable();
        wanted.dedup();
        let mut best: Vec<Option<NamedSymbol<'a>>> = vec![None; wanted.len()];
        let mut firsts: Vec<Option<NamedSymbol<'a>>> = vec![None; wanted.len() + 1];
        for symbol in named_symbols(elf, debug) {
            // The symbol may be the nearest of the first address at or behind it, and of those up to the next symbol.
            let at = wanted.partition_point(|address| *address < symbol.value);
            let slot = &mut firsts[at];
            if slot.is_none_or(|known| symbol.goes_before(&known)) {
                *slot = Some(symbol);
            }
        }
        let mut last: Option<NamedSymbol<'a>> = None;
        for (at, slot) in best.iter_mut().enumerate() {
            if let Some(first) = firsts[at] {
                last = Some(first);
            }
            *slot = last;
        }
        let mut raw: Vec<(u64, Cow<'_, [u8]>)> = Vec::new();
        let mut number = |named: (u64, Cow<'a, [u8]>)| {
            let start = named.0;
            // Many addresses in a row are in one function.
            if raw.last() != Some(&named) {
                raw.push(named);
            }
            (start, raw.len() - 1)
        };
        let has_table = |file: &ElfFile<'_>| file.has_section(".symtab");
        let is_stripped = ![Some(elf), debug].into_iter().flatten().any(has_table);
        let found = wanted.iter().zip(best).map(|(&address, symbol)| {
            // Values of symbols that count from their section are no addresses.
            let symbol = symbol.filter(|_| !elf.is_relocatable());
            let own = symbol.map(|symbol| (symbol.value, Cow::Borrowed(symbol.name)));
            let nearest = match symbol {
                Some(_) if !is_stripped => Some(address),
                symbol => symbol.map(|symbol| symbol.value),
            };
            let known = table.and_then(|table| table_name(elf, table, address, nearest));
            let known = known.map(|(start, name)| (start, Cow::Owned(name)));
            (address, known.or(own).map(&mut number))
        });
        let found = found.collect();
        Self {
            found,
            names: readable(&raw, threads),
        }
    }

    /// The name of an address that was asked for.
    pub(super) fn at(&self, address: u64) -> Option<Named<'_>> {
        let at = self
            .found
            .binary_search_by_key(&address, |known| known.0)
            .ok()?;
        let (start, number) = self.found[at].1?;
        Some((Cow::Borrowed(&self.names[number]), address - start))
    }
}

/// The names as people write them.
fn readable(raw: &[(u64, Cow<'_, [u8]>)], threads: usize) -> Vec<String> {
    const PIECE: usize = 256;
    let pieces = in_parallel(raw.chunks(PIECE).collect(), threads, |piece| {
        let names = piece.iter();
        let names = names.map(|(_, name)| with_version(name));
        names.collect::<Vec<_>>()
    });
    pieces.concat()
}

/// A name in full; behind an `@` stands which version of a library has it, or that it is an entry of the PLT.
fn with_version(name: &[u8]) -> String {
    let at = memchr::memchr(b'@', name).unwrap_or(name.len());
    let shown = demangle(&name[..at], NameStyle::Full);
    shown.into_owned() + &String::from_utf8_lossy(&name[at..])
}

/// Adds `name` or `name+0x10`.
pub(super) fn push_name((name, offset): &Named<'_>, text: &mut String) {
    text.push_str(name);
    if *offset != 0 {
        let _ = write!(text, "+{offset:#x}");
    }
}

/// What the table of a file's symbols knows beyond the file's own tables. Entries of the PLT have no symbols; perf's rules make them.
/// What lies before the first entry has none of them: objdump names it after the nearest symbol, such as `_init+0x20`.
/// Stripped files may have packed functions (`.gnu_debugdata`), or Go's table of them.
fn table_name(
    elf: &ElfFile<'_>,
    table: &SymbolTable<'_>,
    address: u64,
    nearest: Option<u64>,
) -> Option<(u64, Vec<u8>)> {
    let is_stub = section_of(elf, address).is_some_and(|name| name.starts_with(b".plt"));
    let offset = elf.file_offset_of(Svma(address))?;
    let symbol = table.find(offset.0)?;
    let start = address - (offset.0 - symbol.start);
    let counts = if is_stub {
        *symbol.name != *b".plt"
    } else {
        nearest.is_none_or(|nearest| nearest < start)
    };
    counts.then(|| (start, symbol.name.to_vec()))
}

/// The name of the section of code or data that contains an address; where sections have none, an offset in the file.
pub(super) fn section_of<'e>(elf: &'e ElfFile<'_>, address: u64) -> Option<&'e [u8]> {
    let contains = |start: u64, size: u64| address >= start && address - start < size;
    let headers = elf.section_headers().iter();
    let mut found = headers.filter(|header| {
        let start = if elf.is_relocatable() {
            header.offset
        } else {
            header.addr
        };
        header.flags.contains(object::elf::SHF_ALLOC) && contains(start, header.size)
    });
    found.next().map(|header| header.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::dso::build_elf::{ElfBuilder, FUNC, LOCAL_FUNC, PROGBITS, xz};
    use crate::dso::{DsoKind, DsoTable};
    use crate::find::SearchPaths;
    use crate::input::Store;

    #[test]
    fn stripped_files_have_the_names_that_they_packed() {
        let mut inner = ElfBuilder::new(0x100);
        inner.symbols(".symtab", &[("packed", 0x2010, 0x20, LOCAL_FUNC, 1)]);
        let mut outer = ElfBuilder::new(0x100);
        let exported = [
            ("first", 0x2000, 0x10, FUNC, 1),
            ("last", 0x2040, 0x20, FUNC, 1),
        ];
        outer.symbols(".dynsym", &exported);
        outer.section(".gnu_debugdata", PROGBITS, xz(&[&inner.build()]));
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("prog");
        std::fs::write(&path, outer.build()).expect("written");
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
        let dso = dsos.intern(
            path.as_os_str().as_encoded_bytes(),
            DsoKind::File,
            None,
            None,
        );
        let elf = dsos.binary(dso).expect("it is there");
        let wanted = [0x2008, 0x2010, 0x2018, 0x2048, 0x2070];
        let names = Names::of(elf, None, dsos.symbols(dso), wanted.to_vec(), 1);
        let named = |address| {
            names
                .at(address)
                .map(|(name, behind)| (name.into_owned(), behind))
        };
        let expected = [
            ("first", 8),
            ("packed", 0),
            ("packed", 8),
            ("last", 8),
            ("last", 0x30),
        ];
        for (address, (name, behind)) in wanted.into_iter().zip(expected) {
            assert_eq!(named(address), Some((name.to_owned(), behind)));
        }
    }

    #[test]
    fn names_are_shown_in_full_whatever_stands_behind_them() {
        for (name, shown) in [
            ("_ZdlPvm@plt", "operator delete(void*, unsigned long)@plt"),
            ("_ZSt4cout@GLIBCXX_3.4", "std::cout@GLIBCXX_3.4"),
            ("memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"),
            ("*ABS*+0x9c6a0@plt", "*ABS*+0x9c6a0@plt"),
            ("_ZZN1a1fIiEEvT_E1x", "a::f<int>(int)::x"),
            ("main", "main"),
        ] {
            assert_eq!(with_version(name.as_bytes()), shown);
        }
    }
}
