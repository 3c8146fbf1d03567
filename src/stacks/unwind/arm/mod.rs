//! 32-bit ARM: register numbers, call instructions of both instruction sets, signal frames, and how to leave code that no
//! table describes.
//!
//! Sources: AADWARF32 (register numbering), AAPCS32, `arch/arm64/kernel/perf_regs.c` (registers of a 32-bit process on a 64-bit
//! kernel: r0 to r15 have their own numbers), `arch/arm64/kernel/signal32.c` and `arch/arm/kernel/signal.c` (signal frames).

pub(super) mod exidx;
mod flow;
mod instruction;

use smallvec::smallvec;

use self::flow::Link;
use super::FrameOrigin;
use super::arch::{Architecture, REGISTERS, RegisterFile};
use super::flow::Flow;
use super::jit::CodeView;
use super::rules::{Candidate, Candidates, Check, IN_REGISTER, Kind, LOST, Rule};
use crate::address::FileOffset;
use crate::dso::elf::ElfFile;
use crate::perfdata::Registers;

/// The instruction sets.
pub(super) struct Arm;

/// For the fuzz target: the tables and the code of 32-bit ARM in any bytes, asked for everything. The first four bytes tell how
/// long the two tables are.
pub(super) fn probe(data: &[u8]) {
    let Some(([a, b, c, d], rest)) = data.split_first_chunk() else {
        return;
    };
    let (index, rest) = rest.split_at(rest.len().min(u16::from_le_bytes([*a, *b]).into()));
    let (entries, code) = rest.split_at(rest.len().min(u16::from_le_bytes([*c, *d]).into()));
    if let Some(tables) = exidx::ExceptionTables::new(index, 0x2000, entries, 0x1000) {
        let frames = (0..0x3000).step_by(4).map(|at| tables.frame(at));
        assert!(frames.flatten().all(|frame| frame.register < 16));
    }
    let known = (0..code.len().min(64)).map(|at| flow::state(code, at));
    let heights = known.flatten().filter_map(|state| state.height);
    assert!(heights.min().is_none_or(|height| height >= 0));
}

/// The frame pointer of Thumb code, which is most; that of ARM code is r11.
const R7: u8 = 7;
const SP: u8 = 13;
const LR: u8 = 14;
const PC: u8 = 15;

impl Architecture for Arm {
    const SP: u8 = SP;
    const FP: u8 = R7;
    const RA: u8 = LR;
    const LINK_REGISTER: bool = true;
    const CALL_BYTES: usize = 8;
    const WORD: u8 = 4;

    #[inline]
    fn register(regs: &Registers<'_>, dwarf: u8) -> Option<u64> {
        (dwarf <= PC).then(|| regs.get(u32::from(dwarf)))?
    }

    #[inline]
    fn ip(regs: &Registers<'_>) -> Option<u64> {
        regs.get(u32::from(PC))
    }

    fn is_callee_saved(dwarf: u8) -> bool {
        matches!(dwarf, 4..=11)
    }

    /// Without the bit that tells Thumb code.
    #[inline]
    fn strip(address: u64) -> u64 {
        address & 0xffff_fffe
    }

    fn ends_with_call(before: &[u8]) -> bool {
        instruction::ends_with_call(before)
    }

    /// Which of the two instruction sets it is would have to be known.
    fn call_target(_: &[u8]) -> Option<i64> {
        None
    }

    fn sigreturn_len(code: &[u8]) -> Option<usize> {
        // mov r7, #__NR_rt_sigreturn or #__NR_sigreturn; svc #0. In ARM, in Thumb with a wide move and with a narrow one.
        let ways: [&[u8]; 6] = [
            &[0xad, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef],
            &[0x77, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef],
            &[0x4f, 0xf0, 0xad, 0x07, 0, 0xdf],
            &[0x4f, 0xf0, 0x77, 0x07, 0, 0xdf],
            &[0xad, 0x27, 0, 0xdf],
            &[0x77, 0x27, 0, 0xdf],
        ];
        let way = ways.iter().find(|way| code.starts_with(way));
        way.map(|way| way.len())
    }

    fn signal_registers(
        sp: u64,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(RegisterFile, u64)> {
        /// What the kernel writes as flags where no `siginfo` goes before.
        const SHORT: u64 = 0x5ac3_c35a;
        const SIGINFO: u64 = 128;
        /// r0 in `struct ucontext`: behind flags, link, stack, and three words of `struct sigcontext`.
        const REGS: u64 = 32;
        let info = if read(sp)? == SHORT { 0 } else { SIGINFO };
        let mut file: RegisterFile = [None; REGISTERS];
        for (slot, value) in (0u64..).zip(file.iter_mut().take(16)) {
            *value = read(sp.checked_add(info + REGS + slot * 4)?);
        }
        let pc = file[usize::from(PC)]?;
        Some((file, pc))
    }

    /// Only what the function's code shows: a link register whose save was not looked for is often left over from
    /// a call that the callee made.
    fn guess(code: &CodeView<'_>, _: Option<&Flow>, out: &mut Candidates) {
        if !code.knows_start() {
            return;
        }
        let Some(state) = flow::state(code.code, code.at) else {
            return;
        };
        let ra_slot = match state.link {
            Link::Register if code.leaf => IN_REGISTER,
            Link::Slot(height) => -height,
            Link::Register | Link::Lost => return,
        };
        let fp_slot = match state.saved(R7) {
            Some(height) => -height,
            None if state.keeps(R7) => IN_REGISTER,
            None => LOST,
        };
        let (register, height) = match (state.height, state.frame) {
            (Some(height), _) => (SP, height),
            (None, Some((register, height))) => (register, height),
            _ => return,
        };
        let rule = Rule::frame(register, i32::from(height) * 4, ra_slot, fp_slot);
        let (origin, check) = match ra_slot {
            IN_REGISTER => (FrameOrigin::Frameless, Check::NotRefuted),
            _ => (FrameOrigin::Prologue, Check::Call),
        };
        out.push(Candidate::new(rule, origin, check));
    }

    fn certain_exit(_: &[u8]) -> Option<Candidate> {
        None
    }

    /// A program's entry, or code that makes a thread: the system call, and in the child a call of its function.
    fn is_base(image: &ElfFile<'_>, at: FileOffset) -> bool {
        const START: u64 = 256;
        let svma = image.svma_of(at);
        if svma.is_some_and(|svma| svma.0.wrapping_sub(image.entry().0 & !1) < START) {
            return true;
        }
        let before = FileOffset(at.0.saturating_sub(32));
        let before = image.bytes_at(before, 32).unwrap_or_default();
        let mut halves = before.as_chunks::<2>().0.iter();
        instruction::ends_with_register_call(before) && halves.any(|half| *half == [0, 0xdf])
    }

    /// The vdso calls nobody but itself, so a register that leads elsewhere, behind a call, is still the caller's. What was pushed since is
    /// not known.
    fn vdso() -> Candidates {
        let rule = Rule {
            kind: Kind::Record,
            ..Rule::frame(SP, 0, IN_REGISTER, LOST)
        };
        smallvec![Candidate {
            not_self: true,
            reach: (4096, 4096),
            ..Candidate::new(rule, FrameOrigin::Frameless, Check::Call)
        }]
    }

    fn stub() -> Candidates {
        let rule = Rule::frame(SP, 0, IN_REGISTER, IN_REGISTER);
        smallvec![Candidate::new(
            rule,
            FrameOrigin::Frameless,
            Check::NotRefuted
        )]
    }
}
