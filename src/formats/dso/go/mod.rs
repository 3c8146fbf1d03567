//! Go's table of functions, `.gopclntab`, which every Go program needs to run and keeps when it is stripped.
//!
//! In: a file with that section. Out: its functions by stated address, with names, file and line, inlined calls and the
//! height of the stack at each instruction. Formats: those of Go 1.2, 1.16, 1.18 and 1.20 (`debug/gosym/pclntab.go`,
//! `runtime/symtab.go`), which reach to Go 1.27. Nothing of the table is believed: what does not fit together ends the
//! answer, and long tables have a budget.

mod inline;
mod layout;
mod memory;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use self::inline::Shape;
use self::layout::Layout;
#[cfg(test)]
use self::layout::Version;
use self::memory::Memory;
use super::elf::ElfFile;
use super::symtab::SymbolTable;
use crate::address::Svma;

/// The functions of one Go program.
pub struct GoTable<'a> {
    layout: Layout<'a>,
    memory: Memory<'a>,
    /// How inlined calls are stored, found out when somebody asks.
    shape: OnceLock<Option<Shape>>,
    /// Steps through long tables that may still be taken.
    left: AtomicU64,
}

/// A function of a [`GoTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoFunction<'a> {
    /// Where it lies.
    pub start: Svma,
    /// Behind its last byte, up to the next function.
    pub end: Svma,
    /// Its name, `main.(*T).method`.
    pub name: &'a [u8],
    /// Of its description.
    at: usize,
}

/// A function at an address: the one that the machine runs, or one that is inlined there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoFrame<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Source file, empty if it is not told.
    pub file: &'a [u8],
    /// Line in it, 0 if it is not told.
    pub line: u32,
}

/// Functions in which goroutines and threads begin, and `mcall`, below which the scheduler does not return to the goroutine that
/// it left.
const BEGINNINGS: [&[u8]; 12] = [
    b"runtime.goexit",
    b"runtime.mstart",
    b"runtime.mstart0",
    b"runtime.rt0_go",
    b"runtime.mcall",
    b"runtime.rt0_libc_go",
    b"_rt0_amd64",
    b"_rt0_amd64_linux",
    b"_rt0_amd64_lib",
    b"_rt0_arm64_linux",
    b"runtime.clone",
    b"runtime._rt0_amd64",
];

/// Functions that call others on another stack and return to their own: garbage collection, larger stacks, C from Go and Go from
/// C. Their callers are not on the recorded stack.
const SWITCHES: [&[u8]; 4] = [
    b"runtime.systemstack",
    b"runtime.morestack",
    b"runtime.asmcgocall",
    b"runtime.cgocallback",
];

/// What a function is to the stack that gets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoBase {
    /// All of its frames are known.
    Beginning,
    /// Its callers are on another stack.
    Switch,
}

/// Steps of one look-up that cost nothing of [`GoTable::left`]; compilers' functions have some hundreds.
const SHORT: u64 = 4096;
/// [`GoTable::left`]: some seconds.
const LONG: u64 = 1 << 30;
/// Deepest inlining that is followed.
const MAX_INLINED: usize = 64;

impl<'a> GoTable<'a> {
    /// The table of a file; `None` if it has none that can be used.
    #[must_use]
    pub fn of(elf: &ElfFile<'a>) -> Option<Self> {
        if elf.is_big_endian() || !elf.is_64() {
            return None;
        }
        let names = [".gopclntab", ".data.rel.ro.gopclntab"];
        let section = names.iter().find_map(|name| elf.section(name))?;
        let memory = Memory::of(elf);
        let text = elf.section(".text").map_or(0..u64::MAX, |text| {
            text.svma.0..text.svma.0.saturating_add(text.data.len() as u64)
        });
        Self::of_bytes(section.data, section.svma.0, text, memory)
    }

    /// The table in `data`, which lies at the stated address `at` of a program whose code is `text`.
    fn of_bytes(data: &'a [u8], at: u64, text: Range<u64>, memory: Memory<'a>) -> Option<Self> {
        let layout = Layout::of(data, at, &text, &memory)?;
        Some(Self {
            layout,
            memory,
            shape: OnceLock::new(),
            left: AtomicU64::new(LONG),
        })
    }

    /// Number of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout.count == 0
    }

    /// All functions, by address.
    pub fn functions(&self) -> impl Iterator<Item = GoFunction<'a>> {
        (0..self.layout.count).filter_map(|index| self.function(index))
    }

    /// The function at an address.
    #[must_use]
    pub fn find(&self, at: Svma) -> Option<GoFunction<'a>> {
        let index = self.layout.index_of(at.0)?;
        self.function(index).filter(|f| at < f.end)
    }

    fn function(&self, index: usize) -> Option<GoFunction<'a>> {
        let layout = &self.layout;
        let (start, end) = (layout.start(index)?, layout.start(index + 1)?);
        let at = layout.description(index)?;
        let name = layout.name(layout.field(at, layout.name_at())?)?;
        Some(GoFunction {
            start: Svma(start),
            end: Svma(end),
            name,
            at,
        })
    }

    /// Bytes between the stack pointer and the return address before the instruction at `at`.
    #[must_use]
    pub fn stack_height(&self, function: &GoFunction<'a>, at: Svma) -> Option<u32> {
        let table = self.layout.field(function.at, self.layout.height_at())?;
        let height = self.value(table, function, at.0)?;
        u32::try_from(height).ok().filter(|height| height % 8 == 0)
    }

    /// The functions at an address, innermost first: those inlined there, then the function itself, each with the
    /// place in it.
    #[must_use]
    pub fn frames(&self, function: &GoFunction<'a>, at: Svma) -> SmallVec<[GoFrame<'a>; 4]> {
        let mut frames = SmallVec::new();
        let mut pc = at.0;
        let tree = self.shape().and_then(|shape| shape.tree(self, function));
        while let Some(call) = tree
            .as_ref()
            .and_then(|tree| tree.call_at(self, function, pc))
            && frames.len() < MAX_INLINED
        {
            frames.push(self.frame(call.name, function, pc));
            pc = call.caller;
        }
        frames.push(self.frame(function.name, function, pc));
        frames
    }

    fn frame(&self, name: &'a [u8], function: &GoFunction<'a>, pc: u64) -> GoFrame<'a> {
        let layout = &self.layout;
        let value = |at| self.value(layout.field(function.at, at)?, function, pc);
        let file = value(layout.file_at()).and_then(|number| layout.file(function.at, number));
        let line = value(layout.line_at()).and_then(|line| u32::try_from(line).ok());
        GoFrame {
            name,
            file: file.unwrap_or_default(),
            line: line.unwrap_or(0),
        }
    }

    fn shape(&self) -> Option<Shape> {
        *self.shape.get_or_init(|| Shape::find(self))
    }

    /// The value at an address in a table of values by address, which begins at `table` of [`Layout::values`].
    fn value(&self, table: u32, function: &GoFunction<'a>, at: u64) -> Option<i32> {
        if table == 0 {
            return None;
        }
        let mut rest = self.layout.values.get(table as usize..)?;
        let (mut pc, mut value) = (function.start.0, -1i32);
        let most = function.end.0.saturating_sub(pc).saturating_add(1);
        let mut steps = 0;
        while steps < most {
            steps += 1;
            if steps > SHORT && !self.spend() {
                return None;
            }
            let delta = uvarint(&mut rest)?;
            if delta == 0 && steps > 1 {
                return None;
            }
            let signed = (delta >> 1).cast_signed() ^ -(delta & 1).cast_signed();
            value = value.wrapping_add(signed);
            let ahead = u64::from(uvarint(&mut rest)?).checked_mul(self.layout.quantum)?;
            pc = pc.checked_add(ahead)?;
            if at < pc {
                return Some(value);
            }
        }
        None
    }

    /// Takes a step of the budget; updates that two threads lose only stretch it.
    fn spend(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }
}

impl GoFunction<'_> {
    /// Whether it moves the stack pointer where its table does not tell: to another stack, as for the vdso.
    #[must_use]
    pub fn moves_stack(&self, table: &GoTable<'_>) -> bool {
        const SP_WRITE: u8 = 2;
        table
            .layout
            .flags(self.at)
            .is_some_and(|flags| flags & SP_WRITE != 0)
    }

    /// What it is to a stack that gets here, if that ends here.
    #[must_use]
    pub fn base(&self) -> Option<GoBase> {
        let name = self.name.strip_suffix(b".abi0").unwrap_or(self.name);
        if BEGINNINGS.contains(&name) {
            return Some(GoBase::Beginning);
        }
        SWITCHES.contains(&name).then_some(GoBase::Switch)
    }
}

/// Names the functions of a program without `.symtab`.
pub(super) fn add_symbols(table: &mut SymbolTable<'_>, go: &GoTable<'_>, runtime: &ElfFile<'_>) {
    for function in go.functions() {
        if let Some(start) = runtime.file_offset_of(function.start) {
            let size = function.end.0 - function.start.0;
            table.make(start.0, size, function.name.into());
        }
    }
    table.finish_made();
}

/// A number of 7 bits to a byte, least first; takes it off the front.
fn uvarint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests;

/// For the fuzz target: asks everything of a table of any bytes that a program at address 0 might hold.
#[doc(hidden)]
pub fn probe(data: &[u8]) {
    let memory = Memory::of_bytes(data);
    let Some(table) = GoTable::of_bytes(data, 0, 0..u64::MAX, memory) else {
        return;
    };
    for function in table.functions().take(256) {
        for at in [function.start.0, function.start.0.midpoint(function.end.0)] {
            if let Some(found) = table.find(Svma(at)) {
                let _ = (
                    table.stack_height(&found, Svma(at)),
                    table.frames(&found, Svma(at)),
                );
            }
        }
    }
}
