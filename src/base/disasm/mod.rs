//! Machine code as text: one instruction at a time, in the words of GNU objdump.
//!
//! In: bytes and their address. Out: length, text, and what the instruction refers to. Nothing here knows recordings,
//! files or symbols; who knows names puts them behind the text (`crate::code`).
//!
//! iced-x86 and yaxpeax-arm decode. What they write otherwise than objdump is mended by tables of rules with an example each
//! (`x86`, `aarch64`). `scripts/compare-disassembly` measures how much is left over.

mod aarch64;
mod x86;

use crate::arch::Arch;

/// How operands of x86 instructions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Syntax {
    /// As GNU's assembler: source first, registers with `%`.
    #[default]
    Att,
    /// As Intel's manuals.
    Intel,
}

/// What comes after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Flow {
    /// The next one.
    #[default]
    Next,
    /// The next one or another: a conditional jump, a call.
    Branch,
    /// Never the next one: a jump, a return, a trap.
    Leaves,
}

/// What is known of one instruction besides its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Instruction {
    /// Bytes, at least one.
    pub len: u8,
    /// What comes after it.
    pub flow: Flow,
    /// Where a direct jump or call goes; the text ends with it, in hex without `0x`.
    pub target: Option<u64>,
    /// The place in memory it names relative to itself.
    pub memory: Option<u64>,
    /// A number of address size that it loads.
    pub immediate: Option<u64>,
    /// Other names of a branch's condition, which follow the name of the target; empty for most.
    pub comment: &'static str,
    /// Whether the bytes are no instruction.
    pub is_bad: bool,
}

/// Decodes instructions of one kind of processor.
pub trait Disassembler {
    /// Replaces `text` by the first instruction of `bytes`, which are not empty and lie at `address`. Blanks as in
    /// objdump's output, from the mnemonic on; a TAB stands for the blanks up to the next eighth column.
    fn decode(&mut self, bytes: &[u8], address: u64, text: &mut String) -> Instruction;
}

/// The disassembler for an architecture, if there is one. That of 64-bit ARM lacks the scalable vectors of SVE.
#[must_use]
pub fn for_arch(arch: Arch, syntax: Syntax) -> Option<Box<dyn Disassembler>> {
    Some(match arch {
        Arch::X86_64 => Box::new(x86::X86::new(64, syntax)),
        Arch::X86 => Box::new(x86::X86::new(32, syntax)),
        Arch::Aarch64 => Box::new(aarch64::Aarch64::default()),
        Arch::Arm => return None,
    })
}
