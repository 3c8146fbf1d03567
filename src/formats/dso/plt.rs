//! Names for the entries of procedure linkage tables (`util/symbol-elf.c:dso__synthesize_plt_symbols`, perf 7.2).
//!
//! In: the mapped file's `.plt`, `.plt.got`, `.plt.sec` and the relocations that fill their slots. Out:
//! symbols `.plt` (the header) and `NAME@plt`, added to the file's table.

use object::Endianness;
use object::elf::{
    R_X86_64_IRELATIVE, Rel32, Rel64, Rela32, Rela64, RelocationType, SHT_REL, SHT_RELA,
};
use object::pod::{Pod, slice_from_bytes};
use object::read::elf::Rela;

use super::elf::{ElfFile, SectionHeader};
use super::symtab::{RawTable, SymbolTable};
use crate::arch::Arch;

/// No file has more PLT entries; a larger number is damage.
const MAX_ENTRIES: u64 = 1 << 20;

struct Relocation {
    offset: u64,
    symbol: usize,
    kind: RelocationType,
    addend: u64,
}

/// The symbols of a file, those of its PLT among them; see [`SymbolTable::of_elf`].
pub(crate) fn symbols_of<'a>(
    symbols: &ElfFile<'a>,
    runtime: &ElfFile<'a>,
    extra_dynsym: bool,
) -> SymbolTable<'a> {
    let mut table = SymbolTable::of_elf(symbols, runtime, extra_dynsym);
    add_entries(&mut table, runtime);
    table
}

/// Adds the PLT's symbols to the table of the file.
fn add_entries(table: &mut SymbolTable<'_>, elf: &ElfFile<'_>) {
    let Some((_, plt)) = section(elf, ".plt") else {
        return;
    };
    let Some((header_size, entry_size)) = sizes(elf.arch(), plt) else {
        return;
    };
    if elf.is_placed() {
        return mark_tables(table, elf);
    }
    let plt = *plt;
    table.cut_at(plt.offset);
    let x86 = elf.arch().is_some_and(Arch::is_x86);
    let names = entry_names(elf, table, x86);
    let secondary = section(elf, ".plt.sec").filter(|_| x86).map(|(_, s)| *s);
    let count = names.as_ref().map_or(0, |names| names.len() as u64);
    // As many entries as relocations: then there is no header.
    let headless =
        secondary.is_none() && names.is_some() && count.checked_mul(entry_size) == Some(plt.size);
    if !headless {
        let header = if secondary.is_some() {
            plt.size
        } else {
            header_size
        };
        table.make(plt.offset, header, b".plt"[..].into());
    }
    if x86 {
        add_got_entries(table, elf);
    }
    let (mut at, size) = match secondary {
        Some(sec) => (
            sec.offset,
            sizes(elf.arch(), &sec).map_or(entry_size, |(_, size)| size),
        ),
        None => (
            plt.offset
                .wrapping_add(if headless { 0 } else { header_size }),
            entry_size,
        ),
    };
    for name in names.unwrap_or_default() {
        let name = name.unwrap_or_else(|| format!("offset_{at:#x}").into_bytes());
        table.make(at, size, with_suffix(name));
        at = at.wrapping_add(size);
    }
    table.finish_made();
}

/// Of a debug file alone it is known where the tables are, and not what their entries lead to.
fn mark_tables(table: &mut SymbolTable<'_>, elf: &ElfFile<'_>) {
    let tables = [".plt", ".plt.got", ".plt.sec"]
        .into_iter()
        .filter_map(|name| {
            let (_, own) = section(elf, name)?;
            Some((elf.symbol_offset(own.addr)?, own.size))
        });
    let tables: Vec<(u64, u64)> = tables.collect();
    for (start, _) in &tables {
        table.cut_at(*start);
    }
    for (start, size) in tables {
        table.make(start, size, b".plt"[..].into());
    }
    table.finish_made();
}

fn with_suffix(mut name: Vec<u8>) -> Box<[u8]> {
    name.extend_from_slice(b"@plt");
    name.into_boxed_slice()
}

fn section<'e, 'a>(elf: &'e ElfFile<'a>, name: &str) -> Option<(usize, &'e SectionHeader<'a>)> {
    elf.section_headers()
        .iter()
        .enumerate()
        .find(|(_, s)| s.name == name.as_bytes())
}

/// Sizes of the header and of an entry.
fn sizes(arch: Option<Arch>, plt: &SectionHeader<'_>) -> Option<(u64, u64)> {
    match arch {
        Some(arch) => Some(arch.plt().unwrap_or_else(|| {
            let by_alignment = if plt.addralign == 8 { 8 } else { 16 };
            let size = if matches!(plt.entsize, 8 | 16) {
                plt.entsize
            } else {
                by_alignment
            };
            (size, size)
        })),
        None => (plt.entsize != 0).then_some((plt.entsize, plt.entsize)),
    }
}

/// The targets of the entries in PLT order; `None` inside where no name is known. `None` when there are
/// no usable relocations.
fn entry_names(
    elf: &ElfFile<'_>,
    table: &SymbolTable<'_>,
    sort: bool,
) -> Option<Vec<Option<Vec<u8>>>> {
    let (index, header) = section(elf, ".rela.plt").or_else(|| section(elf, ".rel.plt"))?;
    let symbols = RawTable::at(elf, header.link as usize)?;
    let mut relocations = relocations(elf, index, header)?;
    if sort {
        // IFUNC relocations are not in the order of the PLT.
        relocations.sort_by_key(|r| r.offset);
    }
    let name = |r: &Relocation| {
        let name = symbols
            .get(r.symbol)
            .map_or(&[][..], |symbol| symbols.name(symbol));
        if !name.is_empty() {
            return Some(name.to_vec());
        }
        let ifunc = elf.arch() == Some(Arch::X86_64) && r.kind == R_X86_64_IRELATIVE;
        let target = elf.symbol_offset(r.addend).filter(|_| ifunc)?;
        table.ifunc_at(target).map(<[u8]>::to_vec)
    };
    Some(relocations.iter().map(name).collect())
}

fn relocations(
    elf: &ElfFile<'_>,
    index: usize,
    header: &SectionHeader<'_>,
) -> Option<Vec<Relocation>> {
    let data = elf.section_at(index)?.data;
    let endian = elf.layout().endian;
    match (header.kind, elf.layout().is_64) {
        (SHT_RELA, true) => read::<Rela64<_>, Rela64<_>>(data, endian),
        (SHT_RELA, false) => read::<Rela32<_>, Rela32<_>>(data, endian),
        (SHT_REL, true) => read::<Rel64<_>, Rela64<_>>(data, endian),
        (SHT_REL, false) => read::<Rel32<_>, Rela32<_>>(data, endian),
        _ => None,
    }
}

/// Entries of a kind that can be made one with an addend. Nothing where there are too many.
fn read<E: Pod, R: Rela<Endian = Endianness> + From<E>>(
    data: &[u8],
    endian: Endianness,
) -> Option<Vec<Relocation>> {
    let count = data.len() / size_of::<E>();
    let (entries, _) = slice_from_bytes::<E>(data, count).ok()?;
    let all = entries.iter().map(|entry| {
        let entry = R::from(*entry);
        Relocation {
            offset: entry.r_offset(endian).into(),
            symbol: entry.r_sym(endian, false) as usize,
            kind: entry.r_type(endian, false),
            addend: entry.r_addend(endian).into().cast_unsigned(),
        }
    });
    (count as u64 <= MAX_ENTRIES).then(|| all.collect())
}

/// `.plt.got` has entries for functions whose address is taken too: `jmp *slot(%rip)`, the slot being filled by
/// a relocation in `.rela.dyn` (`.rel.dyn` in 32-bit files, whose entries are `jmp *slot` or `jmp *offset(%ebx)`).
fn add_got_entries(table: &mut SymbolTable<'_>, elf: &ElfFile<'_>) {
    let Some((index, &got)) = section(elf, ".plt.got") else {
        return;
    };
    let Some(data) = elf.section_at(index).map(|s| s.data) else {
        return;
    };
    let size = data.len() as u64;
    if got.entsize == 0 || size / got.entsize > MAX_ENTRIES {
        return;
    }
    let slots = dynamic_slots(elf);
    let table_of_slots = offset_table(elf);
    let mut at = 0;
    while at < size {
        let code = data
            .get(usize::try_from(at).unwrap_or(usize::MAX)..)
            .unwrap_or_default();
        let place = got.offset.wrapping_add(at);
        let name = slots.as_ref().and_then(|slots| {
            // perf adds the displacement to the file offset; the address is what counts.
            let entry = got.addr.wrapping_add(at);
            slots.name(match elf.arch() {
                Some(Arch::X86_64) => entry.wrapping_add(jump_displacement(code)?),
                _ => narrow_slot(code, table_of_slots)?,
            })
        });
        let name = name.unwrap_or_else(|| format!("offset_{place:#x}").into_bytes());
        table.make(place, got.entsize, with_suffix(name));
        at = at.saturating_add(got.entsize);
    }
}

struct Slots<'a> {
    /// (slot address, symbol), ordered.
    relocations: Vec<(u64, usize)>,
    symbols: RawTable<'a>,
}

impl Slots<'_> {
    fn name(&self, slot: u64) -> Option<Vec<u8>> {
        let found = self
            .relocations
            .binary_search_by_key(&slot, |&(offset, _)| offset)
            .ok()?;
        let name = self
            .symbols
            .name(self.symbols.get(self.relocations[found].1)?);
        (!name.is_empty()).then(|| name.to_vec())
    }
}

fn dynamic_slots<'a>(elf: &ElfFile<'a>) -> Option<Slots<'a>> {
    let (index, header) = section(elf, ".rela.dyn").or_else(|| section(elf, ".rel.dyn"))?;
    let symbols = RawTable::at(elf, header.link as usize)?;
    let named = relocations(elf, index, header)?.into_iter();
    let named = named.filter(|relocation| relocation.symbol != 0);
    let mut slots: Vec<(u64, usize)> = named.map(|r| (r.offset, r.symbol)).collect();
    slots.sort_unstable();
    Some(Slots {
        relocations: slots,
        symbols,
    })
}

/// Where `%ebx` points to in 32-bit code: the global offset table, `.got.plt` where there is one.
fn offset_table(elf: &ElfFile<'_>) -> Option<u64> {
    let table = section(elf, ".got.plt").or_else(|| section(elf, ".got"));
    table.map(|(_, header)| header.addr)
}

/// The slot of a PLT entry of 32 bits: `[endbr32] jmp *slot`, or `jmp *offset(%ebx)`.
fn narrow_slot(code: &[u8], table: Option<u64>) -> Option<u64> {
    let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfb]).unwrap_or(code);
    let [0xff, how, a, b, c, d, ..] = *rest else {
        return None;
    };
    let at = u32::from_le_bytes([a, b, c, d]);
    match how {
        0x25 => Some(u64::from(at)),
        // Addresses have 32 bits.
        0xa3 => Some(u64::from(at.wrapping_add(u32::try_from(table?).ok()?))),
        _ => None,
    }
}

/// How far behind the start of a PLT entry its slot lies: `[endbr64] [bnd] jmp *disp32(%rip)`.
fn jump_displacement(code: &[u8]) -> Option<u64> {
    let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let [0xff, 0x25, a, b, c, d, ..] = *rest else {
        return None;
    };
    let behind = (code.len() - rest.len() + 6) as u64;
    Some(behind.wrapping_add(u64::from(u32::from_le_bytes([a, b, c, d]))))
}
