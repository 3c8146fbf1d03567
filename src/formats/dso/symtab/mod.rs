//! The symbols of one DSO by perf's rules (`util/symbol-elf.c`, `util/symbol.c`).
//!
//! In: ELF symbol tables, or symbols that somebody else named. Out: the symbol that perf finds at an
//! address. Tables of 150 000 symbols are common, so an entry has 16 bytes, names are read on a
//! hit only, and of several symbols at one address the better one is chosen when somebody asks.

use std::sync::{Mutex, OnceLock, PoisonError};

use object::elf::{
    SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT,
};
use rustc_hash::FxHashMap;

mod aliases;
mod better;
mod collector;
mod namesakes;
mod raw;
mod tree;

use better::{Contest, Facts};
use collector::Collector;
pub use namesakes::Namesake;
use raw::is_mapping_symbol;
pub use raw::{Function, functions};
pub(crate) use raw::{NamedSymbol, RawSymbol, RawTable, named_symbols};

use super::elf::ElfFile;
use super::entries::{
    DYNSYM, MADE, Origin, PartIndex, SYMTAB, SymbolEntry, extend, mark_overlapped, merge_last,
    sort_by_start,
};
use crate::address::{FileOffset, Svma};
use crate::rbtree::RbTree;

/// A symbol that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolRef<'s> {
    /// Start, in file offsets for files, in addresses for identity DSOs.
    pub start: u64,
    /// End, exclusive.
    pub end: u64,
    /// The name as the file has it; entries of a PLT are `NAME@plt`.
    pub name: &'s [u8],
    /// `STT_OBJECT`: rows print `name+0xOFF`.
    pub is_data: bool,
}

/// So many entries are looked at one by one for the ends of a run of equal ones.
const NEAR: usize = 8;

/// Where the names of entries are.
enum Names<'a> {
    /// By table of the origin: `.symtab`, `.dynsym`, made ones.
    Elf {
        symtab: Option<RawTable<'a>>,
        dynsym: Option<RawTable<'a>>,
        made: Vec<Box<[u8]>>,
    },
    /// The origin is a position in a text in kallsyms format; its top bit marks data.
    Kallsyms(&'a [u8]),
}

/// Marks a data symbol in the origin of a kallsyms entry.
pub(crate) const KALLSYMS_DATA: u32 = 1 << 31;

/// All symbols of one DSO.
pub struct SymbolTable<'a> {
    /// Sorted, each table's in order.
    entries: Vec<SymbolEntry>,
    /// Where to look for an address.
    places: PartIndex,
    /// For the first entry of each start that lower ones reach over: how far they reach. Where they
    /// contain an address, the tree has to decide.
    overlapped: Vec<(u32, u64)>,
    names: Names<'a>,
    /// Added to an address before it is looked up, and subtracted from what is found.
    bias: u64,
    /// Whether `.dynsym` holds nothing that `.symtab` lacks.
    symtab_is_complete: bool,
    /// The best of those at one address, by the first of them.
    chosen: Mutex<FxHashMap<usize, usize>>,
    tree: OnceLock<RbTree>,
}

impl<'a> SymbolTable<'a> {
    /// The symbols of a file, without those of its procedure linkage table: `symbols` is the file that has the table (perf's `syms_ss`), `runtime` the
    /// one that was mapped. `extra_dynsym` adds the mapped file's `.dynsym`, as perf does beside `.gnu_debugdata`.
    pub(crate) fn of_elf(symbols: &ElfFile<'a>, runtime: &ElfFile<'a>, extra_dynsym: bool) -> Self {
        let symtab = RawTable::of(symbols, ".symtab", SHT_SYMTAB);
        let dynsym_file = if extra_dynsym { runtime } else { symbols };
        let dynsym = RawTable::of(dynsym_file, ".dynsym", SHT_DYNSYM);
        let most = [&symtab, &dynsym].into_iter().flatten().map(RawTable::len);
        let mut entries = Vec::with_capacity(most.sum::<usize>().min(1 << 24));
        if let Some(table) = &symtab {
            Collector::new(symbols, runtime).collect(table, SYMTAB, &mut entries);
        }
        if let Some(table) = &dynsym {
            Collector::new(dynsym_file, runtime).collect(table, DYNSYM, &mut entries);
        }
        sort_by_start(&mut entries);
        extend(&mut entries);
        let mut table = Self::new(
            entries,
            Names::Elf {
                symtab,
                dynsym,
                made: Vec::new(),
            },
        );
        table.symtab_is_complete = symtab.is_some() && !extra_dynsym;
        table
    }

    /// Symbols from a text in kallsyms format; `entries` are sorted and have their ends.
    pub(crate) fn of_kallsyms(entries: Vec<SymbolEntry>, text: &'a [u8], bias: u64) -> Self {
        Self {
            bias,
            ..Self::new(entries, Names::Kallsyms(text))
        }
    }

    /// An ELF file's symbols at their stated addresses, moved by `bias`: for the kernel.
    pub(crate) fn of_vmlinux(elf: &ElfFile<'a>, bias: u64) -> Option<Self> {
        Self::of_kernel_file(elf, bias, |_| true)
    }

    /// A module file's functions; the kernel put its `.text` at `start`. Where other sections went the
    /// recording does not say.
    pub(crate) fn of_module(elf: &ElfFile<'a>, start: u64) -> Option<Self> {
        let text = elf
            .section_headers()
            .iter()
            .position(|s| s.name == b".text")?;
        let bias = 0u64.wrapping_sub(start);
        Self::of_kernel_file(elf, bias, |section| usize::from(section) == text)
    }

    fn of_kernel_file(elf: &ElfFile<'a>, bias: u64, wanted: impl Fn(u16) -> bool) -> Option<Self> {
        let symtab = RawTable::of(elf, ".symtab", SHT_SYMTAB)?;
        let mut entries = Vec::new();
        let collector = Collector::new(elf, elf);
        for (index, symbol) in symtab.iter().enumerate() {
            let label = symbol.is_label();
            if symbol.name == 0
                || !symbol.is_defined()
                || !(label || symbol.is_function_or_object())
            {
                continue;
            }
            let fits = collector
                .section(symbol.section)
                .is_some_and(|s| s.allocated && (!label || s.takes_labels));
            if !fits || !wanted(symbol.section.0) || is_mapping_symbol(symtab.name(symbol)) {
                continue;
            }
            let Some(origin) = Origin::new(SYMTAB, index) else {
                break;
            };
            entries.push(SymbolEntry::new(symbol.value, origin, symbol.size));
        }
        sort_by_start(&mut entries);
        extend(&mut entries);
        let names = Names::Elf {
            symtab: Some(symtab),
            dynsym: None,
            made: Vec::new(),
        };
        Some(Self {
            bias,
            ..Self::new(entries, names)
        })
    }

    /// Symbols that records name: (start, length, name).
    pub(crate) fn of_records(symbols: impl IntoIterator<Item = (u64, u64, Box<[u8]>)>) -> Self {
        let mut table = Self::new(
            Vec::new(),
            Names::Elf {
                symtab: None,
                dynsym: None,
                made: Vec::new(),
            },
        );
        for (start, len, name) in symbols {
            table.make(start, len, name);
        }
        table.finish_made();
        table
    }

    fn new(entries: Vec<SymbolEntry>, names: Names<'a>) -> Self {
        let overlapped = mark_overlapped(&entries);
        Self {
            places: PartIndex::of(&entries),
            entries,
            overlapped,
            names,
            bias: 0,
            symtab_is_complete: false,
            chosen: Mutex::default(),
            tree: OnceLock::new(),
        }
    }

    /// Adds a symbol of our own; to be followed by [`finish_made`](Self::finish_made).
    pub(crate) fn make(&mut self, start: u64, len: u64, name: Box<[u8]>) {
        let Names::Elf { made, .. } = &mut self.names else {
            return;
        };
        let Some(origin) = Origin::new(MADE, made.len()) else {
            return;
        };
        made.push(name);
        self.entries.push(SymbolEntry::new(start, origin, len));
    }

    pub(crate) fn finish_made(&mut self) {
        let made = |entry: &&SymbolEntry| entry.origin.table() == MADE;
        let made = self.entries.iter().rev().take_while(made).count();
        merge_last(&mut self.entries, made);
        // Places have changed.
        self.chosen = Mutex::default();
        self.overlapped = mark_overlapped(&self.entries);
        self.places = PartIndex::of(&self.entries);
    }

    /// Whether there are no symbols.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of symbols, aliases included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The names of all symbols, by address.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.entries.len()).map(|index| self.name(index))
    }

    /// The symbol that perf finds at an address (`util/symbol.c:symbols__find`).
    #[must_use]
    pub fn find(&self, at: u64) -> Option<SymbolRef<'_>> {
        let index = self.find_index(at.wrapping_add(self.bias))?;
        Some(self.symbol(index))
    }

    /// The function that a label of the assembler lies in (`.L413`), if the symbol is one. An object file keeps them only by accident, as
    /// glibc's for i386 do, and to perf each is a function of its own.
    pub(crate) fn function_of_label(&self, symbol: &SymbolRef<'_>) -> Option<SymbolRef<'_>> {
        /// Labels of one function that are looked at.
        const MOST: usize = 1024;
        let is_label = |name: &[u8]| name.starts_with(b".L");
        if !is_label(symbol.name) {
            return None;
        }
        let at = symbol.start.wrapping_add(self.bias);
        let behind = self.places.behind(&self.entries, at);
        let others = (0..behind).rev().take(MOST);
        let mut others = others.filter(|&index| !is_label(self.name(index)));
        let last = others.next()?;
        let function = self.best_of(self.first_of_start(last)..last + 1);
        let is_around =
            self.facts(function).kind != STT_NOTYPE && at < self.entries[function].end();
        (is_around && !is_label(self.name(function))).then(|| self.symbol(function))
    }

    /// Cuts the symbol that reaches over `at` from below (`dso__synthesize_plt_symbols` does so before
    /// it names the PLT).
    pub(crate) fn cut_at(&mut self, at: u64) {
        if let Some(index) = self.find_index(at) {
            let entry = &mut self.entries[index];
            if entry.start < at {
                entry.len = u32::try_from(at - entry.start).unwrap_or(u32::MAX);
            }
        }
        self.tree = OnceLock::new();
    }

    /// Name of the symbol that starts exactly at a place and may be an IFUNC.
    pub(crate) fn ifunc_at(&self, at: u64) -> Option<&[u8]> {
        let index = self.find_index(at)?;
        let start = self.entries[index].start;
        let group = self.group(self.places.behind(&self.entries, at));
        let ifunc = group
            .into_iter()
            .any(|i| self.facts(i).kind == STT_GNU_IFUNC);
        (start == at && ifunc).then(|| self.name(index))
    }

    fn find_index(&self, at: u64) -> Option<usize> {
        let group = self.group(self.places.behind(&self.entries, at));
        let first = group.start;
        if group.is_empty() {
            return None;
        }
        let made_too = group.len() > 1 && self.is_made(group.end - 1);
        if made_too || self.reach_over(first) > at {
            return self.find_in_tree(at);
        }
        let best = self.best_of(group);
        (at < self.entries[best].end()).then_some(best)
    }

    /// How far symbols with lower starts reach, if they reach over this entry, the first of its start.
    fn reach_over(&self, first: usize) -> u64 {
        let found = (self.overlapped).binary_search_by_key(&first, |&(index, _)| index as usize);
        found.map_or(0, |i| self.overlapped[i].1)
    }

    /// The entries with the same start that end before `behind`.
    fn group(&self, behind: usize) -> std::ops::Range<usize> {
        match behind.checked_sub(1) {
            Some(last) => self.first_of_start(last)..behind,
            None => 0..0,
        }
    }

    /// The first entry with the same start.
    fn first_of_start(&self, index: usize) -> usize {
        let start = self.entries[index].start;
        let before = &self.entries[..index];
        let near = before.iter().rev().take(NEAR);
        let near = near.take_while(|entry| entry.start == start).count();
        if near < NEAR {
            return index - near;
        }
        before.partition_point(|entry| entry.start < start)
    }

    /// Which of the symbols at one address perf keeps: pairwise, in order (`symbols__fixup_duplicate`).
    fn best(&self, group: std::ops::Range<usize>) -> usize {
        let mut contest = Contest::new(group.start);
        contest.go_on(self, group.end);
        contest.best
    }

    /// Choosing may mean demangling many names; the same functions are asked for again and again.
    fn remembered_best(&self, group: std::ops::Range<usize>) -> usize {
        let first = group.start;
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        *chosen.entry(first).or_insert_with(|| self.best(group))
    }

    fn is_of_elf(&self) -> bool {
        matches!(self.names, Names::Elf { .. })
    }

    fn is_made(&self, index: usize) -> bool {
        self.is_of_elf() && self.entries[index].origin.table() == MADE
    }

    fn facts(&self, index: usize) -> Facts {
        let entry = &self.entries[index];
        let sized = entry.len != 0;
        match &self.names {
            Names::Elf { symtab, dynsym, .. } => {
                let table = match entry.origin.table() {
                    SYMTAB => symtab,
                    DYNSYM => dynsym,
                    _ => &None,
                };
                let raw = table.as_ref().and_then(|t| t.get(entry.origin.index()));
                Facts {
                    sized,
                    kind: raw.map_or(STT_FUNC, RawSymbol::kind),
                    binding: raw.map_or(STB_GLOBAL, RawSymbol::binding),
                }
            }
            Names::Kallsyms(_) => {
                let data = entry.origin.value() & KALLSYMS_DATA != 0;
                Facts {
                    sized,
                    kind: if data { STT_OBJECT } else { STT_FUNC },
                    binding: STB_GLOBAL,
                }
            }
        }
    }

    fn name(&self, index: usize) -> &[u8] {
        let origin = self.entries[index].origin;
        match &self.names {
            Names::Elf {
                symtab,
                dynsym,
                made,
            } => match origin.table() {
                MADE => made.get(origin.index()).map_or(&[], |name| name),
                table => {
                    let table = if table == SYMTAB { symtab } else { dynsym };
                    let found = table
                        .as_ref()
                        .and_then(|t| Some(t.name(t.get(origin.index())?)));
                    found.unwrap_or_default()
                }
            },
            Names::Kallsyms(text) => {
                let tail = text
                    .get((origin.value() & !KALLSYMS_DATA) as usize..)
                    .unwrap_or_default();
                let end = tail
                    .iter()
                    .position(|&b| matches!(b, b'\t' | b'\n' | b' ' | b'\r'));
                &tail[..end.unwrap_or(tail.len())]
            }
        }
    }

    fn symbol(&self, index: usize) -> SymbolRef<'_> {
        let entry = &self.entries[index];
        SymbolRef {
            start: entry.start.wrapping_sub(self.bias),
            end: entry.end().wrapping_sub(self.bias),
            name: self.name(index),
            is_data: self.facts(index).kind == STT_OBJECT,
        }
    }
}

impl ElfFile<'_> {
    /// The file position of a stated address of this file, for symbols.
    pub(crate) fn symbol_offset(&self, at: u64) -> Option<u64> {
        self.file_offset_of(Svma(at))
            .map(|FileOffset(offset)| offset)
    }
}

#[cfg(test)]
mod tests;
