//! From the symbols of a file to entries in file offsets, by perf's rules which of them count.

use super::raw::{RawTable, is_mapping_symbol};
use crate::arch::Arch;
use crate::dso::elf::ElfFile;
use crate::dso::entries::{Origin, SymbolEntry};
use object::elf::{SHF_ALLOC, SHN_LORESERVE, SHN_XINDEX, SHT_NOBITS, STT_FUNC, SymbolSection};

/// What perf asks of a symbol's section.
#[derive(Clone, Copy)]
pub(super) struct SectionFacts {
    pub(super) allocated: bool,
    pub(super) takes_labels: bool,
    /// `sh_offset - sh_addr`, for symbols outside of all segments.
    to_offset: u64,
}

/// Turns the symbols of one file into entries in file-offset space.
pub(super) struct Collector<'e, 'a> {
    /// Holds the symbols: the file itself or its debug file.
    file: &'e ElfFile<'a>,
    /// Was mapped: its segments say where in the file an address is.
    runtime: &'e ElfFile<'a>,
    sections: Vec<SectionFacts>,
}

impl<'e, 'a> Collector<'e, 'a> {
    pub(super) fn new(file: &'e ElfFile<'a>, runtime: &'e ElfFile<'a>) -> Self {
        let facts = |(index, own): (usize, &crate::dso::elf::SectionHeader<'a>)| {
            // In debug files the sections of the program have no bytes and no proper offsets.
            let same = runtime.section_headers().get(index);
            let same = same.filter(|s| s.addr == own.addr && s.name == own.name);
            let placed = same.filter(|_| own.kind == SHT_NOBITS).unwrap_or(own);
            SectionFacts {
                allocated: own.flags.contains(SHF_ALLOC),
                takes_labels: contains(own.name, b"text") || contains(own.name, b"data"),
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

    pub(super) fn collect(
        &self,
        table: &RawTable<'a>,
        origin: u32,
        entries: &mut Vec<SymbolEntry>,
    ) {
        let has_marks = self.file.arch().is_some_and(Arch::marks_code);
        let thumb = self.file.arch() == Some(Arch::Arm);
        let mut segment = (1, 0, 0);
        for (index, mut symbol) in table.iter().enumerate() {
            let label = symbol.is_label();
            if symbol.name == 0
                || !symbol.is_defined()
                || !(label || symbol.is_function_or_object())
            {
                continue;
            }
            let Some(facts) = self.section(symbol.section) else {
                continue;
            };
            if !facts.allocated || label && !facts.takes_labels {
                continue;
            }
            if has_marks && is_mapping_symbol(table.name(symbol)) {
                continue;
            }
            if thumb && symbol.kind() == STT_FUNC {
                symbol.value &= !1;
            }
            let Some(origin) = Origin::new(origin, index) else {
                return;
            };
            let Some(bias) = self.bias(symbol.value, facts, &mut segment) else {
                continue;
            };
            let start = symbol.value.wrapping_add(bias);
            entries.push(SymbolEntry::new(start, origin, symbol.size));
        }
    }

    pub(super) fn section(&self, index: SymbolSection) -> Option<SectionFacts> {
        if index == SHN_XINDEX {
            return Some(SectionFacts {
                allocated: true,
                takes_labels: false,
                to_offset: 0,
            });
        }
        self.sections
            .get(usize::from(index.0))
            .filter(|_| index.0 < SHN_LORESERVE)
            .copied()
    }

    /// What to add to a stated address to get its file offset; `segment` remembers the last answer as
    /// (first address, last address, bias). Nothing where only the code has known positions.
    fn bias(&self, value: u64, facts: SectionFacts, segment: &mut (u64, u64, u64)) -> Option<u64> {
        if (segment.0..=segment.1).contains(&value) {
            return Some(segment.2);
        }
        let load = self.runtime.segments().iter().find(|s| {
            let size = s.mem_size.max(s.file_size);
            value >= s.svma.0 && value - s.svma.0 < size
        });
        match load {
            Some(s) => {
                let last = s.svma.0.saturating_add(s.mem_size.max(s.file_size) - 1);
                *segment = (s.svma.0, last, s.file_offset.0.wrapping_sub(s.svma.0));
                Some(segment.2)
            }
            None => (!self.runtime.is_placed()).then_some(facts.to_offset),
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}
