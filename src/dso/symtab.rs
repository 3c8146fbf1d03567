//! The symbols of one DSO by perf's rules (`util/symbol-elf.c`, `util/symbol.c`).
//!
//! In: ELF symbol tables, or symbols that somebody else named. Out: the symbol that perf finds at an
//! address. Tables of 150 000 symbols are common, so an entry has 16 bytes, names are read on a
//! hit only, and of several symbols at one address the better one is chosen when somebody asks.

use std::cmp::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::demangle::{NameStyle, demangle};
use super::elf::{Bytes, ElfFile, SHF_ALLOC, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, string_at};
use super::entries::{
    DYNSYM, MADE, Origin, PartIndex, SYMTAB, SymbolEntry, extend, mark_overlapped, merge_last,
    sort_by_start,
};
use crate::address::{FileOffset, Svma};
use crate::ids::{Idx, IndexSlice, index_vec};
use crate::rbtree::{NIL, NodeId, RbTree};

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

/// An ELF symbol table with its strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawTable<'a> {
    symbols: Bytes<'a>,
    entry_size: usize,
    strings: &'a [u8],
}

/// One `Elf32_Sym`/`Elf64_Sym`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSymbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    pub(crate) value: u64,
    size: u64,
}

pub(crate) const STT_NOTYPE: u8 = 0;
pub(crate) const STT_OBJECT: u8 = 1;
pub(crate) const STT_FUNC: u8 = 2;
pub(crate) const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;
const STV_INTERNAL: u8 = 1;
const STV_HIDDEN: u8 = 2;
const SHN_LORESERVE: u16 = 0xff00;
/// The section index does not fit: it stands in a table of its own.
const SHN_XINDEX: u16 = 0xffff;

impl RawSymbol {
    pub(crate) fn kind(self) -> u8 {
        self.info & 0xf
    }

    fn binding(self) -> u8 {
        self.info >> 4
    }

    /// An `Elf64_Sym`.
    #[inline]
    fn of_64(raw: &[u8; 24], big_endian: bool) -> Self {
        let &[n0, n1, n2, n3, info, other, s0, s1, ref numbers @ ..] = raw;
        let (value, size) = numbers.split_at(8);
        let long = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let symbol = Self {
            name: u32::from_le_bytes([n0, n1, n2, n3]),
            info,
            other,
            section: u16::from_le_bytes([s0, s1]),
            value: long(value),
            size: long(size),
        };
        if !big_endian {
            return symbol;
        }
        Self {
            name: symbol.name.swap_bytes(),
            section: symbol.section.swap_bytes(),
            value: symbol.value.swap_bytes(),
            size: symbol.size.swap_bytes(),
            ..symbol
        }
    }

    fn is_function_or_object(self) -> bool {
        matches!(self.kind(), STT_FUNC | STT_GNU_IFUNC | STT_OBJECT)
    }

    fn is_label(self) -> bool {
        self.kind() == STT_NOTYPE && !matches!(self.other & 3, STV_HIDDEN | STV_INTERNAL)
    }
}

impl<'a> RawTable<'a> {
    /// The table in the first section of this name and type.
    pub(crate) fn of(elf: &ElfFile<'a>, name: &str, kind: u32) -> Option<Self> {
        let index = elf
            .section_headers()
            .iter()
            .position(|s| s.name == name.as_bytes())?;
        Self::at(elf, index).filter(|_| elf.section_headers()[index].kind == kind)
    }

    /// The table in the section with this index.
    pub(crate) fn at(elf: &ElfFile<'a>, index: usize) -> Option<Self> {
        let header = elf.section_headers().get(index)?;
        if !matches!(header.kind, SHT_SYMTAB | SHT_DYNSYM) {
            return None;
        }
        let entry_size = if elf.is_64() { 24 } else { 16 };
        let symbols = elf.reader().with(elf.section_at(index)?.data);
        let strings = elf
            .section_at(header.link as usize)
            .map_or(&[][..], |s| s.data);
        Some(Self {
            symbols,
            entry_size,
            strings,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.symbols.data.len() / self.entry_size
    }

    pub(crate) fn get(&self, index: usize) -> Option<RawSymbol> {
        let at = index.checked_mul(self.entry_size)?;
        self.read(
            self.symbols
                .data
                .get(at..at.checked_add(self.entry_size)?)?,
        )
    }

    /// All symbols in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RawSymbol> {
        let all = self.symbols.data.chunks_exact(self.entry_size);
        all.filter_map(|raw| self.read(raw))
    }

    /// One symbol from its bytes, `None` if they are fewer than it has.
    #[inline]
    fn read(&self, raw: &[u8]) -> Option<RawSymbol> {
        if let (true, Some(raw)) = (self.symbols.is_64, raw.first_chunk::<24>()) {
            return Some(RawSymbol::of_64(raw, self.symbols.big_endian));
        }
        let b = raw.get(..16)?;
        let raw = self.symbols.with(b);
        Some(RawSymbol {
            name: raw.u32(0)?,
            info: b[12],
            other: b[13],
            section: raw.u16(14)?,
            value: u64::from(raw.u32(4)?),
            size: u64::from(raw.u32(8)?),
        })
    }

    pub(crate) fn name(&self, symbol: RawSymbol) -> &'a [u8] {
        string_at(self.strings, symbol.name)
    }
}

/// A symbol as objdump names addresses by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedSymbol<'a> {
    pub(crate) value: u64,
    pub(crate) name: &'a [u8],
    rank: (bool, bool, u8),
}

impl NamedSymbol<'_> {
    /// Whether objdump names addresses behind both by this one: the nearer; of equal ones functions, then objects, then by
    /// binding (global, weak, local), then by name (`objdump.c:compare_symbols`).
    pub(crate) fn goes_before(&self, other: &Self) -> bool {
        let key = |symbol: &Self| (std::cmp::Reverse(symbol.value), symbol.rank);
        (key(self), self.name) < (key(other), other.name)
    }
}

/// The symbols of a file that objdump knows: `.symtab`, else that of its separate debug file, else `.dynsym`.
pub(crate) fn named_symbols<'a>(
    elf: &ElfFile<'a>,
    debug: Option<&ElfFile<'a>>,
) -> impl Iterator<Item = NamedSymbol<'a>> {
    const STT_SECTION: u8 = 3;
    const STT_FILE: u8 = 4;
    const STT_TLS: u8 = 6;
    let own = |elf| RawTable::of(elf, ".symtab", SHT_SYMTAB).filter(|table| table.len() > 1);
    let table = own(elf)
        .or_else(|| debug.and_then(own))
        .or_else(|| RawTable::of(elf, ".dynsym", SHT_DYNSYM));
    let is_place = |symbol: &RawSymbol| {
        let is_named = !matches!(symbol.kind(), STT_SECTION | STT_FILE | STT_TLS);
        is_named
            && symbol.section != 0
            && (symbol.section < SHN_LORESERVE || symbol.section == SHN_XINDEX)
    };
    let symbols = table.into_iter().flat_map(move |table| {
        let raw = 0..table.len();
        raw.filter_map(move |at| Some((table, table.get(at)?)))
    });
    symbols
        .filter(move |(_, symbol)| is_place(symbol))
        .filter_map(|(table, symbol)| {
            let name = table.name(symbol);
            let is_function = matches!(symbol.kind(), STT_FUNC | STT_GNU_IFUNC);
            let binding = match symbol.binding() {
                STB_GLOBAL => 0,
                STB_WEAK => 1,
                _ => 2,
            };
            let rank = (!is_function, symbol.kind() != STT_OBJECT, binding);
            let value = symbol.value;
            (!name.is_empty() && !is_mapping_symbol(name)).then_some(NamedSymbol {
                value,
                name,
                rank,
            })
        })
}

/// What perf asks of a symbol's section.
#[derive(Clone, Copy)]
struct SectionFacts {
    allocated: bool,
    takes_labels: bool,
    /// `sh_offset - sh_addr`, for symbols outside of all segments.
    to_offset: u64,
}

/// Turns the symbols of one file into entries in file-offset space.
struct Collector<'e, 'a> {
    /// Holds the symbols: the file itself or its debug file.
    file: &'e ElfFile<'a>,
    /// Was mapped: its segments say where in the file an address is.
    runtime: &'e ElfFile<'a>,
    sections: Vec<SectionFacts>,
}

impl<'e, 'a> Collector<'e, 'a> {
    fn new(file: &'e ElfFile<'a>, runtime: &'e ElfFile<'a>) -> Self {
        let facts = |(index, own): (usize, &super::elf::SectionHeader<'a>)| {
            // In debug files the sections of the program have no bytes and no proper offsets.
            let placed = if own.kind == SHT_NOBITS {
                runtime.section_headers().get(index).unwrap_or(own)
            } else {
                own
            };
            SectionFacts {
                allocated: own.flags & SHF_ALLOC != 0,
                takes_labels: contains(placed.name, b"text") || contains(placed.name, b"data"),
                to_offset: placed.offset.wrapping_sub(placed.addr),
            }
        };
        Self {
            file,
            runtime,
            sections: file
                .section_headers()
                .iter()
                .enumerate()
                .map(facts)
                .collect(),
        }
    }

    fn collect(&self, table: &RawTable<'a>, origin: u32, entries: &mut Vec<SymbolEntry>) {
        let arm = matches!(
            self.file.machine(),
            super::elf::Machine::Arm | super::elf::Machine::Aarch64
        );
        let thumb = self.file.machine() == super::elf::Machine::Arm;
        let mut segment = (1, 0, 0);
        for (index, mut symbol) in table.iter().enumerate() {
            let label = symbol.is_label();
            if symbol.name == 0 || symbol.section == 0 || !(label || symbol.is_function_or_object())
            {
                continue;
            }
            let Some(facts) = self.section(symbol.section) else {
                continue;
            };
            if !facts.allocated || label && !facts.takes_labels {
                continue;
            }
            if arm && is_mapping_symbol(table.name(symbol)) {
                continue;
            }
            if thumb && symbol.kind() == STT_FUNC {
                symbol.value &= !1;
            }
            let Some(origin) = Origin::new(origin, index) else {
                return;
            };
            let start = symbol
                .value
                .wrapping_add(self.bias(symbol.value, facts, &mut segment));
            entries.push(SymbolEntry::new(start, origin, symbol.size));
        }
    }

    fn section(&self, index: u16) -> Option<SectionFacts> {
        if index == SHN_XINDEX {
            return Some(SectionFacts {
                allocated: true,
                takes_labels: false,
                to_offset: 0,
            });
        }
        self.sections
            .get(usize::from(index))
            .filter(|_| index < SHN_LORESERVE)
            .copied()
    }

    /// What to add to a stated address to get its file offset; `segment` remembers the last answer as
    /// (first address, last address, bias).
    fn bias(&self, value: u64, facts: SectionFacts, segment: &mut (u64, u64, u64)) -> u64 {
        if (segment.0..=segment.1).contains(&value) {
            return segment.2;
        }
        let load = self.runtime.segments().iter().find(|s| {
            let size = s.mem_size.max(s.file_size);
            value >= s.svma.0 && value - s.svma.0 < size
        });
        match load {
            Some(s) => {
                let last = s.svma.0.saturating_add(s.mem_size.max(s.file_size) - 1);
                *segment = (s.svma.0, last, s.file_offset.0.wrapping_sub(s.svma.0));
                segment.2
            }
            None => facts.to_offset,
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}

/// `$x`, `$d`, `$x.foo`: marks of the ARM ABI between code and data.
fn is_mapping_symbol(name: &[u8]) -> bool {
    matches!(
        name,
        [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..]
    )
}

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
            if symbol.name == 0 || symbol.section == 0 || !(label || symbol.is_function_or_object())
            {
                continue;
            }
            let fits = collector
                .section(symbol.section)
                .is_some_and(|s| s.allocated && (!label || s.takes_labels));
            if !fits || !wanted(symbol.section) || is_mapping_symbol(symtab.name(symbol)) {
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

    fn is_made(&self, index: usize) -> bool {
        matches!(self.names, Names::Elf { .. }) && self.entries[index].origin.table() == MADE
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

    fn find_in_tree(&self, at: u64) -> Option<usize> {
        let tree = self.tree.get_or_init(|| self.build_tree());
        let mut found = None;
        tree.search(|node| {
            if at < self.entries[node.index()].start {
                return Ordering::Less;
            }
            let group = self.group_of(node.index());
            // Which one the node stands for need not be known where all or none of them contain the address.
            let ends = || group.clone().map(|i| self.entries[i].end());
            if ends().all(|end| end <= at) {
                return Ordering::Greater;
            }
            let entry = self.best_of(group);
            if at < self.entries[entry].end() {
                found = Some(entry);
                return Ordering::Equal;
            }
            Ordering::Greater
        });
        found
    }

    /// The entries that a node of the tree stands for: the best of them is what perf keeps.
    fn group_of(&self, node: usize) -> std::ops::Range<usize> {
        if self.entries[node].origin.table() == MADE {
            return node..node + 1;
        }
        let start = self.entries[node].start;
        let same = |entry: &SymbolEntry| entry.start == start && entry.origin.table() != MADE;
        let behind = &self.entries[node..];
        let near = behind.iter().take(NEAR).take_while(|e| same(e)).count();
        let count = if near < NEAR {
            near
        } else {
            behind.partition_point(same)
        };
        self.first_of_start(node)..node + count
    }

    fn best_of(&self, group: std::ops::Range<usize>) -> usize {
        if group.len() == 1 {
            group.start
        } else {
            self.remembered_best(group)
        }
    }

    /// Does what perf does with its tree, in the same order: insert one table as it is in the file, drop
    /// the losers among equal starts from low to high addresses, then the next table.
    fn build_tree(&self) -> RbTree {
        let mut tree = RbTree::new(self.entries.len());
        let mut present = index_vec![false; self.entries.len()];
        let mut neighbours = index_vec![[NIL; 2]; self.entries.len()];
        for table in [SYMTAB, DYNSYM, MADE] {
            let new = self.in_order_of_insertion(table);
            if new.is_empty() {
                continue;
            }
            insert_all(&mut tree, &new, &mut present, &mut neighbours);
            if table != MADE {
                self.drop_duplicates(&mut tree, &mut present);
            }
        }
        tree
    }

    /// The entries of a table as they are in the file.
    fn in_order_of_insertion(&self, table: u32) -> Vec<NodeId> {
        let of_table = || {
            let all = (0..).map(NodeId).zip(&self.entries);
            all.filter(move |(_, entry)| entry.origin.table() == table)
        };
        let (mut count, mut places) = (0, 0);
        for (_, entry) in of_table() {
            count += 1;
            places = places.max(entry.origin.index() + 1);
        }
        // In a text places are far apart.
        if places / 8 > count {
            let mut new: Vec<_> = of_table().map(|(i, entry)| (entry.origin, i)).collect();
            new.sort_unstable();
            return new.into_iter().map(|(_, i)| i).collect();
        }
        let mut by_place = vec![NIL; places];
        for (i, entry) in of_table() {
            by_place[entry.origin.index()] = i;
        }
        by_place.retain(|&i| i != NIL);
        by_place
    }

    /// Leaves one node of each start. Which of two is dropped often makes no difference to the tree; then the second
    /// is, and which symbol the first stands for is decided when somebody asks ([`group_of`](Self::group_of)): to decide may
    /// mean demangling.
    fn drop_duplicates(&self, tree: &mut RbTree, present: &mut Present) {
        // The first entry of the current start, the node of it, and the best so far if that had to be known.
        let mut first = 0;
        let mut current: Option<(NodeId, Option<Contest>)> = None;
        for next in 0..self.entries.len() {
            if self.entries[next].start != self.entries[first].start {
                (first, current) = (next, None);
            }
            let new = NodeId::from_usize(next);
            if !present[new] {
                continue;
            }
            let Some((node, contest)) = &mut current else {
                current = Some((new, None));
                continue;
            };
            let mut dropped = new;
            if !tree.are_exchangeable(*node, new) {
                let contest = contest.get_or_insert_with(|| Contest::new(first));
                contest.go_on(self, next + 1);
                if contest.best == next {
                    dropped = std::mem::replace(node, new);
                }
            }
            tree.remove(dropped);
            present[dropped] = false;
        }
    }
}

/// Finds the best of the symbols at one address, as far as somebody wants to know.
struct Contest {
    best: usize,
    /// Behind those that took part.
    behind: usize,
    /// What counts of the best one's name, if it had to be found.
    shown: Option<(NameStyle, Shown)>,
}

impl Contest {
    fn new(first: usize) -> Self {
        Self {
            best: first,
            behind: first + 1,
            shown: None,
        }
    }

    /// Lets the entries before some other take part.
    fn go_on(&mut self, table: &SymbolTable<'_>, behind: usize) {
        for other in self.behind..behind {
            if self.is_beaten(table, other) {
                self.best = other;
            }
        }
        self.behind = self.behind.max(behind);
    }

    /// `choose_best_symbol`: whether a later symbol replaces the best so far.
    fn is_beaten(&mut self, table: &SymbolTable<'_>, later: usize) -> bool {
        let (a, b) = (table.facts(self.best), table.facts(later));
        let rank = |f: &Facts| {
            (
                f.sized,
                f.kind != STT_NOTYPE,
                f.binding != STB_WEAK,
                f.binding == STB_GLOBAL,
            )
        };
        match rank(&a).cmp(&rank(&b)) {
            Ordering::Greater => false,
            Ordering::Less => {
                self.shown = None;
                true
            }
            Ordering::Equal => self.has_worse_name(table, later),
        }
    }

    fn has_worse_name(&mut self, table: &SymbolTable<'_>, later: usize) -> bool {
        // A file's `.symtab` repeats its `.dynsym`: the better of the names was found there already.
        let repeated = table.symtab_is_complete
            && table.entries[later].origin.table() == DYNSYM
            && table.entries[self.best].origin.table() == SYMTAB;
        if repeated {
            return false;
        }
        let (a, b) = (table.name(self.best), table.name(later));
        if same_when_demangled(a, b) {
            return false;
        }
        // perf demangles before it compares. Longer names are only made to cost time.
        let style = if a.len().max(b.len()) <= MAX_COMPARED {
            NameStyle::Short
        } else {
            NameStyle::Raw
        };
        let known = self.shown.filter(|&(of, _)| of == style);
        let a = known.map_or_else(|| Shown::of(a, style), |(_, shown)| shown);
        let b = Shown::of(b, style);
        let beaten = a.is_worse_than(b);
        self.shown = Some((style, if beaten { b } else { a }));
        beaten
    }
}

/// What counts of a name as it is shown.
#[derive(Clone, Copy)]
struct Shown {
    underscores: usize,
    len: usize,
    is_system_call: bool,
}

impl Shown {
    fn of(name: &[u8], style: NameStyle) -> Self {
        let text = demangle(name, style);
        Self {
            underscores: text.bytes().take_while(|&c| c == b'_').count(),
            len: text.len(),
            is_system_call: text.starts_with("SyS") || text.starts_with("compat_SyS"),
        }
    }

    fn is_worse_than(self, later: Self) -> bool {
        let less_shown = (self.underscores, later.len).cmp(&(later.underscores, self.len));
        match less_shown {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => self.is_system_call,
        }
    }
}

/// Inserts entries in the order given. Between which neighbours each goes, the one before it and the one behind, is found
/// backwards: take them out of the full list from the last to the first. Walking down from the root costs ten times as
/// much.
fn insert_all(
    tree: &mut RbTree,
    new: &[NodeId],
    present: &mut Present,
    neighbours: &mut IndexSlice<NodeId, [[NodeId; 2]]>,
) {
    for &i in new {
        present[i] = true;
    }
    let mut last = NIL;
    for (i, _) in (0..)
        .map(NodeId)
        .zip(&*present)
        .filter(|&(_, &present)| present)
    {
        neighbours[i] = [last, NIL];
        if last != NIL {
            neighbours[last][1] = i;
        }
        last = i;
    }
    for &i in new.iter().rev() {
        let [before, behind] = neighbours[i];
        if before != NIL {
            neighbours[before][1] = behind;
        }
        if behind != NIL {
            neighbours[behind][0] = before;
        }
    }
    for &i in new {
        let [before, behind] = neighbours[i];
        tree.insert_between(i, before, behind);
    }
}

/// Which entries are in the tree; its nodes are numbered as the entries.
type Present = IndexSlice<NodeId, [bool]>;

/// So many entries are looked at one by one for the ends of a run of equal ones.
const NEAR: usize = 8;

/// Longest name that is demangled for a comparison of aliases.
const MAX_COMPARED: usize = 2048;

/// Cheap answers to most comparisons: the same symbol in both tables, and the variants of a C++ constructor or
/// destructor (`C1`, `C2`, `D0`, …), whose names differ in one digit.
fn same_when_demangled(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut different = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y);
    let Some((at, (x, y))) = different.next() else {
        return true;
    };
    // Rust: instances of one function that the linker folded differ in their hash, `17h…E` at the end.
    let hash = a.len().saturating_sub(20);
    if at >= hash + 3 && a.starts_with(b"_ZN") && a.ends_with(b"E") && a[hash..].starts_with(b"17h")
    {
        return true;
    }
    let variant = a.starts_with(b"_Z") && at > 2 && matches!(a[at - 1], b'C' | b'D');
    variant && x.is_ascii_digit() && y.is_ascii_digit() && different.next().is_none()
}

struct Facts {
    sized: bool,
    kind: u8,
    binding: u8,
}

impl ElfFile<'_> {
    /// The file position of a stated address of this file, for symbols.
    pub(crate) fn symbol_offset(&self, at: u64) -> Option<u64> {
        self.file_offset_of(Svma(at))
            .map(|FileOffset(offset)| offset)
    }
}

#[cfg(test)]
#[path = "symtab_tests.rs"]
mod tests;
