//! What addresses in a file are called, as objdump names them: the nearest symbol that begins at or before the address.
//!
//! In: an ELF file and addresses. Out: names, each with the distance. The table is read through once for all addresses of a
//! file; of several symbols at one address functions, then objects, then global ones go first.

use std::fmt::Write as _;

use crate::address::Svma;
use crate::dso::NameStyle;
use crate::dso::demangle::demangle;
use crate::dso::elf::ElfFile;
use crate::dso::symtab::{NamedSymbol, SymbolTable, named_symbols};

/// Symbols before the addresses that were asked for.
#[derive(Default)]
pub(super) struct Names {
    /// Ordered by address asked for: symbol's address and name.
    found: Vec<(u64, Option<(u64, String)>)>,
}

impl Names {
    /// Finds the names of addresses, which may be in any order and not distinct.
    pub(super) fn of<'a>(
        elf: &ElfFile<'a>,
        debug: Option<&ElfFile<'a>>,
        plt: Option<&SymbolTable<'_>>,
        mut wanted: Vec<u64>,
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
        let stub = |address: u64| stub_name(elf, plt?, address);
        let found = wanted.iter().zip(best).map(|(&address, symbol)| {
            let named = stub(address).or_else(|| {
                let symbol = symbol?;
                let name = demangle(symbol.name, NameStyle::Full);
                Some((symbol.value, name.into_owned()))
            });
            (address, named)
        });
        Self {
            found: found.collect(),
        }
    }

    /// `name` or `name+0x10`.
    pub(super) fn at(&self, address: u64) -> Option<String> {
        let at = self
            .found
            .binary_search_by_key(&address, |known| known.0)
            .ok()?;
        let (start, name) = self.found[at].1.as_ref()?;
        Some(with_offset(name, address - start))
    }
}

pub(super) fn with_offset(name: &str, offset: u64) -> String {
    let mut text = name.to_owned();
    if offset != 0 {
        let _ = write!(text, "+{offset:#x}");
    }
    text
}

/// Entries of the PLT have no symbols; perf's rules make them.
fn stub_name(elf: &ElfFile<'_>, symbols: &SymbolTable<'_>, address: u64) -> Option<(u64, String)> {
    if !section_of(elf, address)?.starts_with(".plt") {
        return None;
    }
    let offset = elf.file_offset_of(Svma(address))?;
    let symbol = symbols.find(offset.0)?;
    let start = address - (offset.0 - symbol.start);
    Some((start, String::from_utf8_lossy(symbol.name).into_owned()))
}

/// The name of the section of code or data that contains an address.
pub(super) fn section_of(elf: &ElfFile<'_>, address: u64) -> Option<String> {
    const SHF_ALLOC: u64 = 2;
    let contains = |start: u64, size: u64| address >= start && address - start < size;
    let headers = elf.section_headers().iter();
    let mut found = headers
        .filter(|header| header.flags & SHF_ALLOC != 0 && contains(header.addr, header.size));
    found
        .next()
        .map(|header| String::from_utf8_lossy(header.name).into_owned())
}
