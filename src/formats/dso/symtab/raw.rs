//! Symbol tables as they lie in ELF files, and what objdump makes of them.

use object::Endianness;
use object::elf::{
    SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FILE,
    STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION, STT_TLS, STV_HIDDEN,
    STV_INTERNAL, SectionType, Sym32, Sym64, SymbolBind, SymbolInfo, SymbolOther, SymbolSection,
    SymbolType,
};
use object::pod::slice_from_bytes;
use object::read::elf::Sym;

use crate::address::{FileOffset, Svma};
use crate::dso::elf::{ElfFile, string_at};

/// An ELF symbol table with its strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawTable<'a> {
    pub(super) symbols: Symbols<'a>,
    pub(super) endian: Endianness,
    pub(super) strings: &'a [u8],
}

/// The symbols of a table, of either class.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbols<'a> {
    Narrow(&'a [Sym32<Endianness>]),
    Wide(&'a [Sym64<Endianness>]),
}

/// One symbol, normalised to 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSymbol {
    pub(super) name: u32,
    info: SymbolInfo,
    other: SymbolOther,
    pub(super) section: SymbolSection,
    pub(crate) value: u64,
    pub(super) size: u64,
}

impl RawSymbol {
    /// One branch on the byte order for all numbers: programs have hundreds of thousands of symbols.
    #[inline]
    fn read<S: Sym<Endian = Endianness>>(raw: &S, endian: Endianness) -> Self {
        match endian {
            Endianness::Little => Self::new(raw, Endianness::Little),
            Endianness::Big => Self::new(raw, Endianness::Big),
        }
    }

    #[inline]
    fn new<S: Sym>(raw: &S, endian: S::Endian) -> Self {
        Self {
            name: raw.st_name(endian),
            info: raw.st_info(),
            other: raw.st_other(),
            section: raw.st_shndx(endian),
            value: raw.st_value(endian).into(),
            size: raw.st_size(endian).into(),
        }
    }

    pub(crate) fn kind(self) -> SymbolType {
        self.info.st_type()
    }

    pub(super) fn binding(self) -> SymbolBind {
        self.info.st_bind()
    }

    pub(crate) fn is_defined(self) -> bool {
        self.section != SHN_UNDEF
    }

    pub(super) fn is_function_or_object(self) -> bool {
        matches!(self.kind(), STT_FUNC | STT_GNU_IFUNC | STT_OBJECT)
    }

    pub(super) fn is_label(self) -> bool {
        self.kind() == STT_NOTYPE && !matches!(self.other.visibility(), STV_HIDDEN | STV_INTERNAL)
    }
}

impl<'a> RawTable<'a> {
    /// The table in the first section of this name and type.
    pub(crate) fn of(elf: &ElfFile<'a>, name: &str, kind: SectionType) -> Option<Self> {
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
        let layout = elf.layout();
        let data = elf.section_at(index)?.data;
        let symbols = if layout.is_64 {
            Symbols::Wide(whole(data))
        } else {
            Symbols::Narrow(whole(data))
        };
        let strings = elf.section_at(header.link as usize);
        Some(Self {
            symbols,
            endian: layout.endian,
            strings: strings.map_or(&[], |s| s.data),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self.symbols {
            Symbols::Narrow(symbols) => symbols.len(),
            Symbols::Wide(symbols) => symbols.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<RawSymbol> {
        Some(match self.symbols {
            Symbols::Narrow(symbols) => RawSymbol::read(symbols.get(index)?, self.endian),
            Symbols::Wide(symbols) => RawSymbol::read(symbols.get(index)?, self.endian),
        })
    }

    /// All symbols in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RawSymbol> {
        let (narrow, wide): (&[_], &[_]) = match self.symbols {
            Symbols::Narrow(symbols) => (symbols, &[]),
            Symbols::Wide(symbols) => (&[], symbols),
        };
        let narrow = narrow.iter().map(|raw| RawSymbol::read(raw, self.endian));
        let wide = wide.iter().map(|raw| RawSymbol::read(raw, self.endian));
        narrow.chain(wide)
    }

    pub(crate) fn name(&self, symbol: RawSymbol) -> &'a [u8] {
        string_at(self.strings, symbol.name)
    }
}

/// The entries of a table; what is left behind the last whole one belongs to none.
fn whole<T: object::pod::Pod>(data: &[u8]) -> &[T] {
    slice_from_bytes(data, data.len() / size_of::<T>()).map_or(&[], |(entries, _)| entries)
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
    let own = |file| RawTable::of(file, ".symtab", SHT_SYMTAB).filter(|table| table.len() > 1);
    let found = own(elf)
        .or_else(|| debug.and_then(own))
        .or_else(|| RawTable::of(elf, ".dynsym", SHT_DYNSYM));
    let is_place = |symbol: &RawSymbol| {
        let is_named = !matches!(symbol.kind(), STT_SECTION | STT_FILE | STT_TLS);
        is_named
            && symbol.is_defined()
            && (symbol.section.0 < SHN_LORESERVE || symbol.section == SHN_XINDEX)
    };
    let symbols = found.into_iter().flat_map(move |table| {
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
            if symbol.kind() != STT_FUNC || !symbol.is_defined() {
                continue;
            }
            let of_section = || {
                let section = elf.section_headers().get(usize::from(symbol.section.0))?;
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
