//! 64-bit ARM: register numbers, call instructions, signed return addresses, signal frames, and how to
//! leave code that has no call frame information.
//!
//! Sources: AADWARF64 (register numbering), `arch/arm64/include/uapi/asm/perf_regs.h` and `sigcontext.h`,
//! `arch/arm64/kernel/signal.c` (signal frame), AAPCS64 (frame records), the ARM ARM (encodings).

use smallvec::smallvec;

use super::FrameOrigin;
use super::arch::{Architecture, REGISTERS, RegisterFile};
use super::flow::Flow;
use super::jit::{CodeView, Habit};
use super::rules::{Candidate, Candidates, Check, IN_REGISTER, Rule};
use crate::perfdata::Registers;

/// The instruction set.
pub(super) struct Aarch64;

const X29: u8 = 29;
const X30: u8 = 30;
const SP: u8 = 31;

impl Architecture for Aarch64 {
    const SP: u8 = SP;
    const FP: u8 = X29;
    const RA: u8 = X30;
    const LINK_REGISTER: bool = true;
    const CALL_BYTES: usize = 4;

    #[inline]
    fn register(regs: &Registers<'_>, dwarf: u8) -> Option<u64> {
        // The sampled registers have their DWARF numbers; what lies behind pc (SVE's VG) is never asked for.
        if dwarf <= SP {
            regs.get(u32::from(dwarf))
        } else {
            None
        }
    }

    #[inline]
    fn ip(regs: &Registers<'_>) -> Option<u64> {
        regs.get(32)
    }

    fn is_callee_saved(dwarf: u8) -> bool {
        matches!(dwarf, 19..=29)
    }

    /// Clears the signature and the tag: bits 63 to 48, with the usual 48-bit address space. Bit 55
    /// would select the kernel's half, where no user code is.
    #[inline]
    fn strip(address: u64) -> u64 {
        address & 0x0000_ffff_ffff_ffff
    }

    fn ends_with_call(before: &[u8]) -> bool {
        let Some(word) = last_word(before) else {
            return false;
        };
        // bl; blr; blraa, blrab, blraaz, blrabz
        word & 0xfc00_0000 == 0x9400_0000 || word & 0xfeff_f000 == 0xd63f_0000
    }

    fn call_target(before: &[u8]) -> Option<i64> {
        let word = last_word(before)?;
        // Counted from the call, which lies 4 bytes before the return address.
        let distance = (word << 6).cast_signed() >> 4;
        (word & 0xfc00_0000 == 0x9400_0000).then_some(i64::from(distance) - 4)
    }

    fn sigreturn_len(code: &[u8]) -> Option<usize> {
        // mov x8, #__NR_rt_sigreturn; svc #0
        code.starts_with(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4])
            .then_some(8)
    }

    /// The kernel's own call frame information leads to the interrupted link register, not to the
    /// interrupted pc, so the registers are read from the signal frame.
    fn signal_registers(
        sp: u64,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(RegisterFile, u64)> {
        /// `regs` in `struct sigcontext` in `struct rt_sigframe`: siginfo (128), then in the ucontext flags, link,
        /// stack, 128 bytes of signal mask, aligned to 16, fault address.
        const REGS: u64 = 128 + 176 + 8;
        let mut file: RegisterFile = [None; REGISTERS];
        for (slot, value) in (0u64..).zip(file.iter_mut().take(32)) {
            *value = read(sp.checked_add(REGS + slot * 8)?);
        }
        let pc = read(sp.checked_add(REGS + 32 * 8)?)?;
        Some((file, pc))
    }

    fn guess(code: &CodeView<'_>, _: Option<&Flow>, out: &mut Candidates) {
        let before_save = code.knows_start()
            && !matches!(code.habit, Habit::Blob | Habit::Jumps)
            && save_of_link_register(code.code).is_none_or(|at| code.at <= at)
            && !code.code.is_empty();
        if code.leaf && before_save {
            out.push(link_register(Check::NotRefuted, false));
        } else if code.leaf {
            let check = if code.code.is_empty() {
                Check::Call
            } else {
                Check::NotRefuted
            };
            out.push(link_register(check, true));
        }
        out.push(frame_pointer());
        let reach = code.reach();
        for candidate in out.iter_mut() {
            candidate.set_reach(reach);
        }
    }

    fn certain_exit(code: &[u8]) -> Option<Candidate> {
        // ret; retaa, retab
        let word = first_word(code)?;
        (word == 0xd65f_03c0 || word | 0x400 == 0xd65f_0fff)
            .then(|| link_register(Check::NotRefuted, false))
    }

    fn stub() -> Candidates {
        smallvec![link_register(Check::NotRefuted, false)]
    }
}

/// A function that has not saved the link register, or has not called anything since. After a call of its
/// own the register points into the function itself.
fn link_register(check: Check, not_self: bool) -> Candidate {
    let rule = Rule::frame(SP, 0, IN_REGISTER, IN_REGISTER);
    Candidate {
        not_self,
        ..Candidate::new(rule, FrameOrigin::Frameless, check)
    }
}

/// The frame record at x29. Where the caller's stack pointer was is not known.
fn frame_pointer() -> Candidate {
    Candidate::new(
        Rule::record(X29),
        FrameOrigin::FramePointer,
        Check::NotRefuted,
    )
}

fn last_word(bytes: &[u8]) -> Option<u32> {
    bytes.last_chunk().map(|word| u32::from_le_bytes(*word))
}

fn first_word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// Offset of the first instruction that stores x30 on the stack: `stp x29, x30, [sp, …]` in its three
/// forms, `stp xN, x30`, `str x30, [sp, …]`.
fn save_of_link_register(code: &[u8]) -> Option<usize> {
    let stores = |word: u32| {
        let on_stack = word >> 5 & 31 == 31;
        let pair = word & 0xfe40_0000 == 0xa800_0000 && (word >> 10 & 31 == 30 || word & 31 == 30);
        let single = (word & 0xffe0_0000 == 0xf800_0000 || word & 0xffc0_0000 == 0xf900_0000)
            && word & 31 == 30;
        on_stack && (pair || single)
    };
    code.as_chunks::<4>()
        .0
        .iter()
        .position(|word| stores(u32::from_le_bytes(*word)))
        .map(|index| index * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_targets() {
        assert!(Aarch64::ends_with_call(&0x9400_0010u32.to_le_bytes()), "bl");
        assert!(
            Aarch64::ends_with_call(&0xd63f_0100u32.to_le_bytes()),
            "blr x8"
        );
        assert!(
            Aarch64::ends_with_call(&0xd73f_0909u32.to_le_bytes()),
            "blraa x8, x9"
        );
        assert!(
            !Aarch64::ends_with_call(&0xd61f_0100u32.to_le_bytes()),
            "br x8"
        );
        assert!(
            !Aarch64::ends_with_call(&0xd65f_03c0u32.to_le_bytes()),
            "ret"
        );
        assert_eq!(
            Aarch64::call_target(&0x9400_0010u32.to_le_bytes()),
            Some(0x40 - 4)
        );
        assert_eq!(
            Aarch64::call_target(&0x97ff_fffeu32.to_le_bytes()),
            Some(-8 - 4)
        );
    }

    #[test]
    fn finds_where_the_link_register_is_saved() {
        let code = |words: &[u32]| {
            words
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            save_of_link_register(&code(&[0xd503_201f, 0xa9bf_7bfd, 0x9100_03fd])),
            Some(4),
            "stp x29, x30, [sp, #-16]!"
        );
        assert_eq!(
            save_of_link_register(&code(&[0xd100_83ff, 0xa901_7bfd])),
            Some(4),
            "stp x29, x30, [sp, #16]"
        );
        assert_eq!(
            save_of_link_register(&code(&[0xf81f_0ffe])),
            Some(0),
            "str x30, [sp, #-16]!"
        );
        assert_eq!(
            save_of_link_register(&code(&[0xa9bf_53f3, 0xd65f_03c0])),
            None,
            "stp x19, x20"
        );
    }

    #[test]
    fn strips_signatures() {
        assert_eq!(Aarch64::strip(0x0060_ffff_a87e_b8b3), 0xffff_a87e_b8b3);
    }
}
