//! Symbol tables as they lie in ELF files, and what objdump makes of them.

use crate::address::{FileOffset, Svma};
use crate::dso::elf::{Bytes, ElfFile, SHT_DYNSYM, SHT_SYMTAB, string_at};

/// An ELF symbol table with its strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawTable<'a> {
    pub(super) symbols: Bytes<'a>,
    pub(super) entry_size: usize,
    pub(super) strings: &'a [u8],
}

/// One `Elf32_Sym`/`Elf64_Sym`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSymbol {
    pub(super) name: u32,
    pub(super) info: u8,
    pub(super) other: u8,
    pub(super) section: u16,
    pub(crate) value: u64,
    pub(super) size: u64,
}

pub(crate) const STT_NOTYPE: u8 = 0;
pub(crate) const STT_OBJECT: u8 = 1;
pub(crate) const STT_FUNC: u8 = 2;
pub(crate) const STT_GNU_IFUNC: u8 = 10;
pub(super) const STT_FILE: u8 = 4;
pub(super) const STB_LOCAL: u8 = 0;
pub(super) const STB_GLOBAL: u8 = 1;
pub(super) const STB_WEAK: u8 = 2;
pub(super) const STV_INTERNAL: u8 = 1;
pub(super) const STV_HIDDEN: u8 = 2;
pub(super) const SHN_LORESERVE: u16 = 0xff00;
/// The section index does not fit: it stands in a table of its own.
pub(super) const SHN_XINDEX: u16 = 0xffff;

impl RawSymbol {
    pub(crate) fn kind(self) -> u8 {
        self.info & 0xf
    }

    pub(super) fn binding(self) -> u8 {
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

    pub(super) fn is_function_or_object(self) -> bool {
        matches!(self.kind(), STT_FUNC | STT_GNU_IFUNC | STT_OBJECT)
    }

    pub(super) fn is_label(self) -> bool {
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

/// A function that is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name, without a version.
    pub name: &'a [u8],
    /// Where it begins in the file.
    pub offset: FileOffset,
    /// Its bytes, as the symbol says.
    pub size: u64,
    /// Whether others may take it for theirs.
    pub is_global: bool,
}

/// The functions that both symbol tables of a file name, for who puts probes on them. Modules that wasmtime compiled have no segments:
/// their symbols count from the section that they are in.
pub fn functions<'a>(elf: &ElfFile<'a>) -> Vec<Function<'a>> {
    let tables = [(".symtab", SHT_SYMTAB), (".dynsym", SHT_DYNSYM)];
    let tables = tables.map(|(name, kind)| RawTable::of(elf, name, kind));
    let mut found = Vec::new();
    for table in tables.into_iter().flatten() {
        for symbol in table.iter() {
            if symbol.kind() != STT_FUNC || symbol.section == 0 {
                continue;
            }
            let of_section = || {
                let section = elf.section_headers().get(usize::from(symbol.section))?;
                let in_section = symbol.value.checked_sub(section.addr)?;
                in_section.checked_add(section.offset).map(FileOffset)
            };
            let offset = if elf.segments().is_empty() {
                of_section()
            } else {
                elf.file_offset_of(Svma(symbol.value))
            };
            let name = table.name(symbol);
            let version = name.iter().position(|&b| b == b'@');
            let name = &name[..version.unwrap_or(name.len())];
            if let (Some(offset), false) = (offset, name.is_empty()) {
                found.push(Function {
                    name,
                    offset,
                    size: symbol.size,
                    is_global: matches!(symbol.binding(), STB_GLOBAL | STB_WEAK),
                });
            }
        }
    }
    found
}

/// `$x`, `$d`, `$x.foo`: marks of the ARM ABI between code and data.
pub(super) fn is_mapping_symbol(name: &[u8]) -> bool {
    matches!(
        name,
        [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..]
    )
}
