//! One `.cwasm`: what wasmtime compiled a module to, with the map back.
//!
//! In: the bytes of an ELF file that `wasmtime compile` or `Module::serialize` made. Out: its functions, their machine
//! code, its [`AddressMap`], and, of one with native DWARF, the sections with their relocations applied.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::module::FunctionIndex;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SymbolKind};

use super::addrmap::{AddressMap, Origin};
use crate::arch::Arch;
use crate::disasm::{Syntax, for_arch};
use crate::runtimes::wasmtime_function;

/// A compiled module or component.
#[derive(Debug)]
pub struct Compiled<'a> {
    file: ElfFile64<'a>,
    text_section: object::SectionIndex,
    /// Where the machine code lies in the file.
    pub text_offset: u64,
    /// The machine code.
    pub text: &'a [u8],
    /// By rising offset.
    pub functions: Vec<Function<'a>>,
    /// Where jumps of each of them lead, as soon as somebody asks.
    targets: Vec<OnceLock<Vec<u32>>>,
    /// Where the code comes from; empty if the file does not tell.
    pub map: AddressMap,
    /// Whether there is a map in the file that could not be read.
    pub map_is_unreadable: bool,
    /// `48` or `36.0.0`
    pub version: &'a str,
}

/// A function of the machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function<'a> {
    /// From the start of the machine code.
    pub offset: u32,
    /// Length in bytes.
    pub size: u32,
    /// Symbol.
    pub name: &'a [u8],
    /// Which function of which module it is; none for trampolines and builtins.
    pub wasm: Option<WasmFunction>,
}

/// A function of WebAssembly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WasmFunction {
    /// Number of the module in its file.
    pub module: u32,
    /// Index of the function in the module, imports counted.
    pub index: FunctionIndex,
}

impl Function<'_> {
    /// Where it lies in the machine code.
    #[must_use]
    pub const fn range(&self) -> std::ops::Range<u32> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

/// Takes a symbol's name apart: `wasm[0]::function[12]`, and `::name` if the module has names.
#[must_use]
pub fn wasm_function(name: &[u8]) -> Option<(WasmFunction, Option<&[u8]>)> {
    let (module, index, name) = wasmtime_function(name)?;
    let index = FunctionIndex(index);
    Some((WasmFunction { module, index }, name))
}

impl<'a> Compiled<'a> {
    /// Reads a file; `None` if wasmtime did not make it.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let file = ElfFile64::parse(bytes).ok()?;
        let engine = file.section_by_name_bytes(b".wasmtime.engine")?;
        let version = version(engine.data().ok()?);
        let text = file.section_by_name_bytes(b".text")?;
        let (text_offset, _) = text.file_range()?;
        let section = file.section_by_name_bytes(b".wasmtime.addrmap");
        let section = section.and_then(|section| section.data().ok());
        let map = section.map(|section| AddressMap::parse(section, major(version)));
        let functions = functions(&file, text.index());
        Some(Self {
            text_section: text.index(),
            text_offset,
            text: text.data().ok()?,
            targets: vec![OnceLock::new(); functions.len()],
            functions,
            map_is_unreadable: matches!(map, Some(None)),
            map: map.flatten().unwrap_or_default(),
            version,
            file,
        })
    }

    /// The function around an offset.
    #[must_use]
    pub fn function_at(&self, offset: u32) -> Option<&Function<'a>> {
        Some(&self.functions[self.number_at(offset)?])
    }

    fn number_at(&self, offset: u32) -> Option<usize> {
        let next = self.functions.partition_point(|f| f.offset <= offset);
        let number = next.checked_sub(1)?;
        let range = self.functions[number].range();
        range.contains(&offset).then_some(number)
    }

    /// Where the code at an offset comes from.
    #[must_use]
    pub fn origin(&self, offset: u32) -> Option<Origin> {
        let number = self.number_at(offset)?;
        let is_entered = |range: RangeInclusive<u32>| {
            let targets = self.targets(number);
            let next = targets.partition_point(|target| target < range.start());
            targets
                .get(next)
                .is_some_and(|target| range.contains(target))
        };
        let range = self.functions[number].range();
        self.map.origin(offset, range, is_entered)
    }

    /// Offsets in the function around one from which on code may come from elsewhere.
    #[must_use]
    pub fn changes(&self, offset: u32) -> Vec<u32> {
        let Some(number) = self.number_at(offset) else {
            return Vec::new();
        };
        let changes = self.map.changes(self.functions[number].range());
        let mut all: Vec<u32> = changes.map(|(at, _)| at).collect();
        all.extend(self.targets(number));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Where jumps in a function lead in it.
    fn targets(&self, number: usize) -> &[u32] {
        let find = || {
            let start = self.functions[number].offset;
            let next = self.functions.get(number + 1).map(|next| next.offset);
            let code = self.code(&self.functions[number]).unwrap_or_default();
            let code = &code[..code
                .len()
                .min(next.map_or(usize::MAX, |next| (next - start) as usize))];
            let arch = Arch::from_elf(self.file.elf_header().e_machine.get(self.file.endian()).0);
            let mut targets = Vec::new();
            let Some(mut disassembler) = arch.and_then(|arch| for_arch(arch, Syntax::Att)) else {
                return targets;
            };
            let (mut at, mut text) = (0, String::new());
            while at < code.len() {
                let address = u64::from(start) + at as u64;
                let found = disassembler.decode(&code[at..], address, &mut text);
                targets.extend(found.target.and_then(|target| u32::try_from(target).ok()));
                at += usize::from(found.len).max(1);
            }
            targets.retain(|target| (start..start + code.len() as u32).contains(target));
            targets.sort_unstable();
            targets
        };
        self.targets[number].get_or_init(find)
    }

    /// The machine code of a function.
    #[must_use]
    pub fn code(&self, function: &Function<'a>) -> Option<&'a [u8]> {
        let range = function.range();
        self.text.get(range.start as usize..range.end as usize)
    }

    /// Functions of WebAssembly, trampolines aside.
    pub fn wasm_functions(&self) -> impl Iterator<Item = (&Function<'a>, WasmFunction)> {
        self.functions
            .iter()
            .filter_map(|function| Some((function, function.wasm?)))
    }

    /// Whether it has native DWARF (`-D debug-info=y`).
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        self.file.section_by_name_bytes(b".debug_info").is_some()
    }

    /// A section of DWARF with its relocations applied: addresses in it are offsets in the file, as no code begins at 0
    /// then. `None` if there is none.
    #[must_use]
    pub fn debug_section(&self, name: &str) -> Option<Vec<u8>> {
        let section = self.file.section_by_name(name)?;
        let mut data = section.data().ok()?.to_owned();
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                continue;
            };
            let Ok(symbol) = self.file.symbol_by_index(symbol) else {
                continue;
            };
            // Other symbols are sections of DWARF, to which offsets refer.
            let is_code = symbol.section_index() == Some(self.text_section);
            let base = if is_code { self.text_offset } else { 0 };
            let value = symbol.address().wrapping_add(base);
            let value = value.wrapping_add_signed(relocation.addend());
            apply(&mut data, at, value, relocation.size());
        }
        Some(data)
    }
}

/// Writes an absolute address of so many bits.
fn apply(data: &mut [u8], at: u64, value: u64, bits: u8) {
    let size = usize::from(bits / 8).min(8);
    let place = usize::try_from(at)
        .ok()
        .and_then(|at| data.get_mut(at..at.checked_add(size)?));
    if let Some(place) = place {
        place.copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

fn functions<'a>(file: &ElfFile64<'a>, text: object::SectionIndex) -> Vec<Function<'a>> {
    let in_text = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.section_index() == Some(text));
    let mut functions: Vec<_> = in_text
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok()?;
            Some(Function {
                offset: u32::try_from(symbol.address()).ok()?,
                size: u32::try_from(symbol.size()).ok()?,
                name,
                wasm: wasm_function(name).map(|(function, _)| function),
            })
        })
        .collect();
    functions.sort_by_key(|function| function.offset);
    functions
}

/// The version stands behind a 0 and its length.
fn version(engine: &[u8]) -> &str {
    let text = engine
        .split_first_chunk()
        .and_then(|(&[_, length], rest)| rest.get(..usize::from(length)));
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    text.filter(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        .unwrap_or("")
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_name_functions_of_modules() {
        let of = |module, index| WasmFunction {
            module,
            index: FunctionIndex(index),
        };
        assert_eq!(
            wasm_function(b"wasm[0]::function[12]"),
            Some((of(0, 12), None))
        );
        assert_eq!(
            wasm_function(b"wasm[2]::function[7]::a::b"),
            Some((of(2, 7), Some(&b"a::b"[..])))
        );
        for other in [
            &b"wasm[0]::array_to_wasm_trampoline[3]"[..],
            b"signatures[1]::wasm_to_array_trampoline",
            b"wasm[0]::function[12]x",
            b"wasm[-1]::function[1]",
            b"wasm[0",
        ] {
            assert_eq!(wasm_function(other), None);
        }
    }

    #[test]
    fn code_that_jumps_lead_to_takes_the_position_behind_it() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/wasm/hot.cwasm");
        let bytes = std::fs::read(path).expect("a sample");
        let compiled = Compiled::parse(&bytes).expect("wasmtime's");
        let of = |offset| compiled.origin(offset).map(|it| (it.position, it.other));
        assert_eq!(of(0xcd), Some((280, Some(291))));
        // An inner loop is left to here, also by a jump over the code before.
        assert_eq!(of(0xce), Some((291, Some(280))));
        assert!(compiled.changes(0).contains(&0xce));
    }

    #[test]
    fn versions_long_and_short() {
        assert_eq!(version(b"\0\x0627.0.0\x18x86_64"), "27.0.0");
        assert_eq!(version(b"\0\x0248\x18x86_64"), "48");
        assert_eq!(version(b"\0\x40short"), "");
        assert_eq!(major("27.0.0"), Some(27));
        assert_eq!(major(""), None);
    }
}
