//! What the walk must know about an instruction set. One implementation per architecture.

use super::discover::Functions;
use super::flow::{Flow, Pointers};
use super::jit::CodeView;
use super::rules::{Candidate, Candidates};
use crate::address::FileOffset;
use crate::dso::elf::ElfFile;
use crate::perfdata::Registers;

/// Number of registers that DWARF numbers for the two architectures and that unwinding can need:
/// x0–x30 and sp, or the sixteen of x86-64 and the return address column.
pub(super) const REGISTERS: usize = 33;

/// Values of all registers in one frame, by DWARF number; `None` = not known.
pub(super) type RegisterFile = [Option<u64>; REGISTERS];

/// What the longest way back out of a signal handler has.
pub(super) const SIGRETURN_BYTES: usize = 9;

/// One instruction set.
pub(super) trait Architecture {
    /// DWARF number of the stack pointer.
    const SP: u8;
    /// DWARF number of the frame pointer.
    const FP: u8;
    /// DWARF number of the return address column.
    const RA: u8;
    /// Both, for what knows no architecture.
    const POINTERS: Pointers = Pointers {
        sp: Self::SP,
        fp: Self::FP,
    };
    /// Whether leaf functions may keep their return address in a register (then `RA` is that one).
    const LINK_REGISTER: bool;
    /// Bytes before a return address that can belong to the call instruction.
    const CALL_BYTES: usize;
    /// Bytes of an address and of a register on the stack.
    const WORD: u8 = 8;
    /// `PERF_SAMPLE_REGS_ABI_*` of the register set that is understood.
    const ABI: u64 = if Self::WORD == 4 { 1 } else { 2 };

    /// Value of a sampled register by its DWARF number.
    fn register(regs: &Registers<'_>, dwarf: u8) -> Option<u64>;

    /// The sampled instruction pointer.
    fn ip(regs: &Registers<'_>) -> Option<u64>;

    /// Whether functions keep the register for their callers (DWARF numbers).
    fn is_callee_saved(dwarf: u8) -> bool;

    /// A return address without signature bits.
    fn strip(address: u64) -> u64;

    /// Whether the instruction that ends there puts the frame pointer on the stack.
    fn ends_with_saved_frame_pointer(_before: &[u8]) -> bool {
        false
    }

    /// Whether the bytes before a return address (up to `CALL_BYTES` of them) end with a call.
    fn ends_with_call(before: &[u8]) -> bool;

    /// Distance from the return address to the target of a direct call that ends there.
    fn call_target(before: &[u8]) -> Option<i64>;

    /// If code is the kernel's way back out of a signal handler: how many bytes that has, up to `SIGRETURN_BYTES`.
    fn sigreturn_len(code: &[u8]) -> Option<usize>;

    /// The registers that the kernel saved for the handler, when the handler has returned to
    /// the trampoline with stack pointer `sp`; `None` as a whole when the frame is not readable.
    fn signal_registers(
        sp: u64,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(RegisterFile, u64)>;

    /// Whether [`flow`](Self::flow) may have an answer, without a look at the code.
    fn may_follow(code: &CodeView<'_>) -> bool {
        let _ = code;
        false
    }

    /// Follows a function's code, if that can tell more than its first instructions.
    fn flow(code: &CodeView<'_>) -> Option<Flow> {
        let _ = code;
        None
    }

    /// What may lead to the caller in code without call frame information, best first.
    fn guess(code: &CodeView<'_>, flow: Option<&Flow>, out: &mut Candidates);

    /// Follows a function that call frame information unwinds by its frame pointer, for
    /// [`Flow::by_stack_pointer`].
    fn full_flow(code: &[u8]) -> Option<Flow> {
        let _ = code;
        None
    }

    /// The way out of a function that is certain whatever its call frame information says, if
    /// the ip (of a leaf) is at such a place: x86's `ret`.
    fn certain_exit(code: &[u8]) -> Option<Candidate>;

    /// The same for JIT code, of which more is known than the bytes at the ip.
    fn certain_jit_exit(code: &CodeView<'_>) -> Option<Candidate> {
        Self::certain_exit(code.rest())
    }

    /// Whether a return address in code that nothing describes is the base of a thread's stack.
    fn is_base(image: &ElfFile<'_>, at: FileOffset) -> bool {
        let _ = (image, at);
        false
    }

    /// Whether nothing returns to the vdso but signal handlers.
    const HANDLERS_RETURN_TO_VDSO: bool = false;

    /// The ways out of a system call or a function of the vdso that was interrupted, of which no file is at hand.
    fn vdso() -> Candidates {
        Candidates::new()
    }

    /// Where functions of a file begin that says nothing of them.
    fn functions(image: &ElfFile<'_>) -> Option<Functions> {
        let _ = image;
        None
    }

    /// Whether code jumps to what a pointer in memory leads to, as linkage stubs do.
    fn is_stub(code: &[u8]) -> bool {
        let _ = code;
        false
    }

    /// The ways out of a linkage stub (`.plt`), best first.
    fn stub() -> Candidates;
}
