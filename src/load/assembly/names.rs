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
        plt: Option<&SymbolTable<'_>>,
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
        let stub = |address: u64| stub_name(elf, plt?, address);
        let found = wanted.iter().zip(best).map(|(&address, symbol)| {
            let stub = stub(address).map(|(start, name)| (start, Cow::Owned(name)));
            let named =
                stub.or_else(|| symbol.map(|symbol| (symbol.value, Cow::Borrowed(symbol.name))));
            (address, named.map(&mut number))
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

/// Entries of the PLT have no symbols; perf's rules make them. What lies before the first entry has none of them: objdump
/// names it after the nearest symbol, such as `_init+0x20`.
fn stub_name(elf: &ElfFile<'_>, symbols: &SymbolTable<'_>, address: u64) -> Option<(u64, Vec<u8>)> {
    if !section_of(elf, address)?.starts_with(b".plt") {
        return None;
    }
    let offset = elf.file_offset_of(Svma(address))?;
    let symbol = symbols
        .find(offset.0)
        .filter(|symbol| *symbol.name != *b".plt")?;
    let start = address - (offset.0 - symbol.start);
    Some((start, symbol.name.to_vec()))
}

/// The name of the section of code or data that contains an address.
pub(super) fn section_of<'e>(elf: &'e ElfFile<'_>, address: u64) -> Option<&'e [u8]> {
    let contains = |start: u64, size: u64| address >= start && address - start < size;
    let headers = elf.section_headers().iter();
    let mut found = headers.filter(|header| {
        header.flags.contains(object::elf::SHF_ALLOC) && contains(header.addr, header.size)
    });
    found.next().map(|header| header.name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
