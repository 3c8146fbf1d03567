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
use super::rbtree::{NIL, RbTree};
use crate::address::{FileOffset, Svma};

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

/// A symbol: where it lies and where its name is to be found. Order is (start, origin), which is
/// the order of perf's tree: equal starts in order of insertion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) origin: Origin,
    pub(crate) len: u32,
}

impl Entry {
    pub(crate) fn new(start: u64, origin: Origin, len: u64) -> Self {
        Self {
            start,
            origin,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        }
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.len))
    }
}

/// Which table (top two bits) and which place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Origin(u32);

const TABLE_SHIFT: u32 = 30;
/// `.symtab`
const SYMTAB: u32 = 0;
/// `.dynsym`
const DYNSYM: u32 = 1;
/// Made by us: PLT entries, symbols of records.
const MADE: u32 = 2;

impl Origin {
    fn new(table: u32, index: usize) -> Option<Self> {
        let index = u32::try_from(index)
            .ok()
            .filter(|&i| i < 1 << TABLE_SHIFT)?;
        Some(Self(table << TABLE_SHIFT | index))
    }

    /// For tables of other kinds than ELF: see [`Names::Kallsyms`].
    pub(crate) fn raw(value: u32) -> Self {
        Self(value)
    }

    fn table(self) -> u32 {
        self.0 >> TABLE_SHIFT
    }

    fn index(self) -> usize {
        (self.0 & ((1 << TABLE_SHIFT) - 1)) as usize
    }
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
        let raw = self.symbols.with(
            self.symbols
                .data
                .get(at..at.checked_add(self.entry_size)?)?,
        );
        let b = raw.data;
        Some(if self.symbols.is_64 {
            RawSymbol {
                name: raw.u32(0)?,
                info: b[4],
                other: b[5],
                section: raw.u16(6)?,
                value: raw.u64(8)?,
                size: raw.u64(16)?,
            }
        } else {
            RawSymbol {
                name: raw.u32(0)?,
                info: b[12],
                other: b[13],
                section: raw.u16(14)?,
                value: u64::from(raw.u32(4)?),
                size: u64::from(raw.u32(8)?),
            }
        })
    }

    pub(crate) fn name(&self, symbol: RawSymbol) -> &'a [u8] {
        string_at(self.strings, symbol.name)
    }
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

    fn collect(&self, table: &RawTable<'a>, origin: u32, entries: &mut Vec<Entry>) {
        entries.reserve(table.len().min(1 << 24));
        let arm = matches!(
            self.file.machine(),
            super::elf::Machine::Arm | super::elf::Machine::Aarch64
        );
        let thumb = self.file.machine() == super::elf::Machine::Arm;
        let mut segment = (1, 0, 0);
        for index in 0..table.len() {
            let Some(mut symbol) = table.get(index) else {
                return;
            };
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
            entries.push(Entry {
                start,
                origin,
                len: u32::try_from(symbol.size).unwrap_or(u32::MAX),
            });
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
    entries: Vec<Entry>,
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
    /// The symbols of a file: `symbols` is the file that has the table (perf's `syms_ss`), `runtime` the
    /// one that was mapped. `extra_dynsym` adds the mapped file's `.dynsym`, as perf does beside `.gnu_debugdata`.
    pub(crate) fn of_elf(symbols: &ElfFile<'a>, runtime: &ElfFile<'a>, extra_dynsym: bool) -> Self {
        let symtab = RawTable::of(symbols, ".symtab", SHT_SYMTAB);
        let dynsym_file = if extra_dynsym { runtime } else { symbols };
        let dynsym = RawTable::of(dynsym_file, ".dynsym", SHT_DYNSYM);
        let mut entries = Vec::new();
        if let Some(table) = &symtab {
            Collector::new(symbols, runtime).collect(table, SYMTAB, &mut entries);
            sort_and_extend(&mut entries);
        }
        if let Some(table) = &dynsym {
            let before = entries.len();
            Collector::new(dynsym_file, runtime).collect(table, DYNSYM, &mut entries);
            if entries.len() > before {
                // Two sorted runs: the stable sort only merges them.
                entries[before..].sort_unstable();
                entries.sort();
                extend(&mut entries);
            }
        }
        let mut table = Self::new(
            entries,
            Names::Elf {
                symtab,
                dynsym,
                made: Vec::new(),
            },
        );
        table.symtab_is_complete = symtab.is_some() && !extra_dynsym;
        super::plt::add_entries(&mut table, runtime);
        table
    }

    /// Symbols from a text in kallsyms format; `entries` are sorted and have their ends.
    pub(crate) fn of_kallsyms(entries: Vec<Entry>, text: &'a [u8], bias: u64) -> Self {
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
        for index in 0..symtab.len() {
            let Some(symbol) = symtab.get(index) else {
                break;
            };
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
            let len = u32::try_from(symbol.size).unwrap_or(u32::MAX);
            entries.push(Entry {
                start: symbol.value,
                origin,
                len,
            });
        }
        sort_and_extend(&mut entries);
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

    fn new(entries: Vec<Entry>, names: Names<'a>) -> Self {
        let overlapped = mark_overlapped(&entries);
        Self {
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
        self.entries.push(Entry {
            start,
            origin,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        });
    }

    pub(crate) fn finish_made(&mut self) {
        // Two sorted runs: the stable sort only merges them.
        self.entries.sort();
        // Places have changed.
        self.chosen = Mutex::default();
        self.overlapped = mark_overlapped(&self.entries);
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
        let group = self.group(self.entries.partition_point(|e| e.start <= at));
        let ifunc = group
            .into_iter()
            .any(|i| self.facts(i).kind == STT_GNU_IFUNC);
        (start == at && ifunc).then(|| self.name(index))
    }

    fn find_index(&self, at: u64) -> Option<usize> {
        let group = self.group(self.entries.partition_point(|e| e.start <= at));
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
        let Some(last) = behind.checked_sub(1) else {
            return 0..0;
        };
        let start = self.entries[last].start;
        if last == 0 || self.entries[last - 1].start != start {
            return last..behind;
        }
        self.entries[..last].partition_point(|e| e.start < start)..behind
    }

    /// Which of the symbols at one address perf keeps: pairwise, in order (`symbols__fixup_duplicate`).
    fn best(&self, group: std::ops::Range<usize>) -> usize {
        self.best_from(group.start, group.start + 1..group.end)
    }

    /// The same when the best of those before `others` is known.
    fn best_from(&self, best: usize, others: std::ops::Range<usize>) -> usize {
        others.fold(best, |best, other| {
            if self.is_better(other, best) {
                other
            } else {
                best
            }
        })
    }

    /// Choosing may mean demangling many names; the same functions are asked for again and again.
    fn remembered_best(&self, group: std::ops::Range<usize>) -> usize {
        let first = group.start;
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        *chosen.entry(first).or_insert_with(|| self.best(group))
    }

    /// `choose_best_symbol`: whether the later symbol replaces the earlier one.
    fn is_better(&self, later: usize, earlier: usize) -> bool {
        let (a, b) = (self.facts(earlier), self.facts(later));
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
            Ordering::Less => true,
            Ordering::Equal => self.has_better_name(later, earlier),
        }
    }

    fn has_better_name(&self, later: usize, earlier: usize) -> bool {
        // A file's `.symtab` repeats its `.dynsym`: the better of the names was found there already.
        let repeated = self.symtab_is_complete
            && self.entries[later].origin.table() == DYNSYM
            && self.entries[earlier].origin.table() == SYMTAB;
        if repeated {
            return false;
        }
        let (a, b) = (self.name(earlier), self.name(later));
        if same_when_demangled(a, b) {
            return false;
        }
        // perf demangles before it compares. Longer names are only made to cost time.
        let short = a.len().max(b.len()) <= MAX_COMPARED;
        let style = if short {
            NameStyle::Short
        } else {
            NameStyle::Raw
        };
        let (a, b) = (demangle(a, style), demangle(b, style));
        let underscores = |name: &str| name.bytes().take_while(|&c| c == b'_').count();
        match underscores(&a)
            .cmp(&underscores(&b))
            .then(b.len().cmp(&a.len()))
        {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => a.starts_with("SyS") || a.starts_with("compat_SyS"),
        }
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
                let data = entry.origin.0 & KALLSYMS_DATA != 0;
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
                    .get((origin.0 & !KALLSYMS_DATA) as usize..)
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
        tree.search(at, |node| {
            let group = self.group_of(node as usize);
            // Which one the node stands for need not be known where all or none of them contain the address.
            let ends = || group.clone().map(|i| self.entries[i].end());
            if ends().all(|end| end <= at) {
                return false;
            }
            let entry = self.best_of(group);
            let contains = at < self.entries[entry].end();
            found = contains.then_some(entry);
            contains
        });
        found
    }

    /// The entries that a node of the tree stands for: the best of them is what perf keeps.
    fn group_of(&self, node: usize) -> std::ops::Range<usize> {
        if self.entries[node].origin.table() == MADE {
            return node..node + 1;
        }
        let start = self.entries[node].start;
        let same = |entry: &Entry| entry.start == start && entry.origin.table() != MADE;
        // Most stand alone.
        let first = match node.checked_sub(1) {
            Some(previous) if same(&self.entries[previous]) => {
                self.entries[..node].partition_point(|entry| entry.start < start)
            }
            _ => node,
        };
        let behind = match self.entries.get(node + 1) {
            Some(next) if same(next) => node + self.entries[node..].partition_point(same),
            _ => node + 1,
        };
        first..behind
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
        let mut by_origin: Vec<(Origin, u32)> = (self.entries.iter().zip(0..))
            .map(|(entry, i)| (entry.origin, i))
            .collect();
        by_origin.sort_unstable();
        let mut present = vec![false; self.entries.len()];
        for table in by_origin.chunk_by(|(a, _), (b, _)| a.table() == b.table()) {
            self.insert_all(&mut tree, table, &mut present);
            if table[0].0.table() != MADE {
                self.drop_duplicates(&mut tree, &mut present);
            }
        }
        tree
    }

    /// Inserts entries in the order given. Between which neighbours each goes is found backwards: take them out of the
    /// full list from the last to the first. Walking down from the root costs ten times as much.
    fn insert_all(&self, tree: &mut RbTree, new: &[(Origin, u32)], present: &mut [bool]) {
        for &(_, i) in new {
            present[i as usize] = true;
        }
        let mut neighbours = vec![(NIL, NIL); self.entries.len()];
        let mut last = NIL;
        for (i, _) in (0..).zip(&*present).filter(|&(_, &present)| present) {
            neighbours[i as usize].0 = last;
            if last != NIL {
                neighbours[last as usize].1 = i;
            }
            last = i;
        }
        for &(_, i) in new.iter().rev() {
            let (before, behind) = neighbours[i as usize];
            if before != NIL {
                neighbours[before as usize].1 = behind;
            }
            if behind != NIL {
                neighbours[behind as usize].0 = before;
            }
        }
        for &(_, i) in new {
            let (before, behind) = neighbours[i as usize];
            tree.insert_between(i, self.entries[i as usize].start, before, behind);
        }
    }

    /// Leaves one node of each start. Which of two is dropped often makes no difference to the tree; then the second
    /// is, and which symbol the first stands for is decided when somebody asks ([`group_of`](Self::group_of)): to decide may
    /// mean demangling.
    fn drop_duplicates(&self, tree: &mut RbTree, present: &mut [bool]) {
        /// The best entry before some entry.
        type Best = (usize, usize);
        let number = |i: usize| u32::try_from(i).expect("nodes are numbered by u32");
        // The node of the current start, where that begins, and the best before some entry if it is known.
        let mut current: Option<(usize, usize, Option<Best>)> = None;
        for next in 0..self.entries.len() {
            if !present[next] {
                continue;
            }
            let same = |&(node, ..): &(usize, usize, _)| {
                self.entries[node].start == self.entries[next].start
            };
            let Some((node, first, known)) = current.filter(same) else {
                let first = self.first_of_start(next);
                current = Some((next, first, None));
                continue;
            };
            let mut dropped = next;
            let mut kept = (node, first, known);
            if !tree.are_exchangeable(number(node), number(next)) {
                let (best, until) = known.unwrap_or((first, first + 1));
                let best = self.best_from(best, until..next);
                let wins = self.is_better(next, best);
                kept.2 = Some((if wins { next } else { best }, next + 1));
                if wins {
                    (kept.0, dropped) = (next, node);
                }
            }
            tree.remove(number(dropped));
            present[dropped] = false;
            current = Some(kept);
        }
    }

    /// The first entry with the same start.
    fn first_of_start(&self, index: usize) -> usize {
        let start = self.entries[index].start;
        self.entries[..index].partition_point(|entry| entry.start < start)
    }
}

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

fn sort_and_extend(entries: &mut [Entry]) {
    entries.sort_unstable();
    extend(entries);
}

/// Gives symbols without a size the room up to the next one (`symbols__fixup_end`): only the last of several at one
/// address gets it; the very last symbol ends behind the next page.
fn extend(entries: &mut [Entry]) {
    for i in 0..entries.len() {
        if entries[i].len != 0 {
            continue;
        }
        let start = entries[i].start;
        let end = match entries.get(i + 1) {
            Some(next) => next.start,
            None => end_of_last(start),
        };
        entries[i].len = u32::try_from(end - start).unwrap_or(u32::MAX);
    }
}

/// Where the last symbol without a size ends: rounded up to 4 KiB, and one page more.
pub(crate) fn end_of_last(start: u64) -> u64 {
    start
        .checked_next_multiple_of(4096)
        .and_then(|end| end.checked_add(4096))
        .unwrap_or(u64::MAX)
}

/// The first entry of each start that lower starts reach over, and how far they do.
fn mark_overlapped(entries: &[Entry]) -> Vec<(u32, u64)> {
    let mut marks = Vec::new();
    // The highest end so far.
    let (mut reach, mut start) = (0, None);
    for (i, entry) in (0..).zip(entries) {
        if start != Some(entry.start) {
            start = Some(entry.start);
            if reach > entry.start {
                marks.push((i, reach));
            }
        }
        reach = reach.max(entry.end());
    }
    marks
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
