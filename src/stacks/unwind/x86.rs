//! 32-bit x86: register numbers and what leads to the caller in code without call frame information.
//!
//! Sources: System V ABI for i386 (register numbering), `arch/x86/include/uapi/asm/perf_regs.h` (sampled registers; of a 32-bit
//! process on a 64-bit kernel the same numbers hold).

use smallvec::smallvec;

use super::FrameOrigin;
use super::arch::{Architecture, REGISTERS, RegisterFile};
use super::flow::Flow;
use super::jit::CodeView;
use super::rules::{Candidate, Candidates, Check, IN_REGISTER, Rule};
use super::x86_64::X86_64;
use crate::perfdata::Registers;

/// The instruction set.
pub(super) struct X86;

const EBX: u8 = 3;
const ESP: u8 = 4;
const EBP: u8 = 5;
const ESI: u8 = 6;
const EDI: u8 = 7;
const EIP: u8 = 8;

impl Architecture for X86 {
    const SP: u8 = ESP;
    const FP: u8 = EBP;
    const RA: u8 = EIP;
    const LINK_REGISTER: bool = false;
    const CALL_BYTES: usize = 8;
    const WORD: u8 = 4;
    const HANDLERS_RETURN_TO_VDSO: bool = true;

    #[inline]
    fn register(regs: &Registers<'_>, dwarf: u8) -> Option<u64> {
        /// `PERF_REG_X86_*` of eax, ecx, edx, ebx, esp, ebp, esi, edi, eip.
        const NUMBERS: [u32; 9] = [0, 2, 3, 1, 7, 6, 4, 5, 8];
        regs.get(*NUMBERS.get(usize::from(dwarf))?)
    }

    #[inline]
    fn ip(regs: &Registers<'_>) -> Option<u64> {
        Self::register(regs, EIP)
    }

    fn is_callee_saved(dwarf: u8) -> bool {
        matches!(dwarf, EBX | EBP | ESI | EDI)
    }

    #[inline]
    fn strip(address: u64) -> u64 {
        address
    }

    fn ends_with_saved_frame_pointer(before: &[u8]) -> bool {
        // `push rbp`
        before.ends_with(&[0x55])
    }

    fn ends_with_call(before: &[u8]) -> bool {
        X86_64::ends_with_call(before)
    }

    fn call_target(before: &[u8]) -> Option<i64> {
        X86_64::call_target(before)
    }

    fn sigreturn_len(code: &[u8]) -> Option<usize> {
        // pop eax; mov eax, __NR_sigreturn; int 0x80, and mov eax, __NR_rt_sigreturn; int 0x80
        let ways: [&[u8]; 2] = [
            &[0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80],
            &[0xb8, 173, 0, 0, 0, 0xcd, 0x80],
        ];
        let way = ways.iter().find(|way| code.starts_with(way));
        way.map(|way| way.len())
    }

    /// Where they are depends on which of the two it is, and on whether the signal's number was popped: the segments tell.
    fn signal_registers(
        sp: u64,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(RegisterFile, u64)> {
        /// Registers by DWARF number in `struct sigcontext_32`, from edi on.
        const ORDER: [u8; 8] = [EDI, ESI, EBP, ESP, EBX, 2, 1, 0];
        /// `uc_mcontext` in `struct ucontext`.
        const CONTEXT: u64 = 20;
        let by_pointer = sp.checked_add(8).and_then(&mut *read);
        let places = [
            Some(sp),
            sp.checked_add(4),
            by_pointer.and_then(|context| context.checked_add(CONTEXT)),
        ];
        let mut segment = |at: u64, n: u64| Some(read(at.checked_add(n * 4)?)? & 0xffff);
        let is_one = |at: &u64| {
            let (cs, ss) = (segment(*at, 15), segment(*at, 18));
            matches!(
                (cs, ss),
                (Some(0x23), Some(0x2b)) | (Some(0x73), Some(0x7b))
            )
        };
        let at = places.into_iter().flatten().find(is_one)?;
        let mut file: RegisterFile = [None; REGISTERS];
        for (slot, register) in (4u64..).zip(ORDER) {
            file[usize::from(register)] = read(at + slot * 4);
        }
        let ip = read(at + 14 * 4)?;
        file[usize::from(EIP)] = Some(ip);
        Some((file, ip))
    }

    fn guess(code: &CodeView<'_>, _: Option<&Flow>, out: &mut Candidates) {
        out.extend(Self::certain_exit(code.rest()).filter(|_| code.leaf));
        out.push(Candidate::new(
            Rule::frame(EBP, 8, -1, -2),
            FrameOrigin::FramePointer,
            Check::Call,
        ));
    }

    fn certain_exit(code: &[u8]) -> Option<Candidate> {
        matches!(code.first(), Some(0xc3 | 0xc2)).then(|| top_of_stack(IN_REGISTER))
    }

    /// The kernel returns to behind the pushes of ecx, edx and ebp.
    fn vdso() -> Candidates {
        let rule = Rule::frame(ESP, 16, -1, -4);
        smallvec![Candidate::new(rule, FrameOrigin::Prologue, Check::Call)]
    }

    fn stub() -> Candidates {
        smallvec![top_of_stack(IN_REGISTER)]
    }
}

/// The return address is the last word that was pushed.
fn top_of_stack(fp_slot: i16) -> Candidate {
    Candidate::new(
        Rule::frame(ESP, 4, -1, fp_slot),
        FrameOrigin::Frameless,
        Check::NotRefuted,
    )
}
