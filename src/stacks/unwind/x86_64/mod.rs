//! x86-64: register numbers, call instructions, signal frames, and how to leave code that has no
//! call frame information.
//!
//! Sources: System V ABI for AMD64 (register numbering), `arch/x86/include/uapi/asm/perf_regs.h` (sampled
//! registers), `arch/x86/include/uapi/asm/sigcontext.h` and `ucontext.h` (signal frame).

mod decode;
pub(super) mod flow;

use std::ops::RangeInclusive;

use smallvec::smallvec;

use self::decode::{Effect, decode};
use super::FrameOrigin;
use super::arch::{Architecture, REGISTERS, RegisterFile};
use super::discover::Functions;
use super::flow::Flow;
use super::jit::{CodeView, Habit};
use super::rules::{Blind, Candidate, Candidates, Check, IN_REGISTER, Kind, LOST, Rule};
use crate::arch::Arch;
use crate::dso::elf::ElfFile;
use crate::perfdata::Registers;

/// The instruction set.
pub(super) struct X86_64;

const RBX: u8 = 3;
const RBP: u8 = 6;
const RSP: u8 = 7;
/// Number of rbp in instructions, as against that in DWARF.
const RBP_IN_CODE: u8 = 5;

impl Architecture for X86_64 {
    const SP: u8 = RSP;
    const FP: u8 = RBP;
    const RA: u8 = 16;
    const LINK_REGISTER: bool = false;
    const CALL_BYTES: usize = 8;

    #[inline]
    fn register(regs: &Registers<'_>, dwarf: u8) -> Option<u64> {
        /// `PERF_REG_X86_*` of rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp.
        const LEGACY: [u32; 8] = [0, 3, 2, 1, 4, 5, 6, 7];
        match dwarf {
            0..=7 => regs.get(LEGACY[usize::from(dwarf)]),
            8..=15 => regs.get(16 + u32::from(dwarf) - 8),
            16 => Self::ip(regs),
            _ => None,
        }
    }

    #[inline]
    fn ip(regs: &Registers<'_>) -> Option<u64> {
        regs.get(8)
    }

    fn is_callee_saved(dwarf: u8) -> bool {
        matches!(dwarf, RBX | RBP | 12..=15)
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
        direct_call(before).is_some() || ends_with_indirect_call(before)
    }

    fn call_target(before: &[u8]) -> Option<i64> {
        direct_call(before).map(i64::from)
    }

    fn sigreturn_len(code: &[u8]) -> Option<usize> {
        // mov rax, __NR_rt_sigreturn; syscall (or the shorter mov eax of musl)
        match *code {
            [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05, ..] => Some(9),
            [0xb8, 15, 0, 0, 0, 0x0f, 0x05, ..] => Some(7),
            _ => None,
        }
    }

    fn signal_registers(
        sp: u64,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(RegisterFile, u64)> {
        /// `uc_mcontext` in `struct ucontext`; registers by DWARF number in `struct sigcontext`
        /// (r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip).
        const CONTEXT: u64 = 40;
        const ORDER: [u8; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
        let mut file: RegisterFile = [None; REGISTERS];
        for (slot, &dwarf) in (0u64..).zip(&ORDER) {
            file[usize::from(dwarf)] = read(sp.checked_add(CONTEXT + slot * 8)?);
        }
        let ip = file[16]?;
        Some((file, ip))
    }

    fn may_follow(code: &CodeView<'_>) -> bool {
        match code.habit {
            Habit::Blob | Habit::Jumps | Habit::ErlangBase | Habit::Translated => false,
            Habit::FramePointers | Habit::V8Pieces => code.leaf,
            // A function's calls but the first are made with its frame there; most frames of a program in its first seconds are these.
            Habit::Sparkplug => code.leaf || !is_behind_first_call(code),
            Habit::Unknown | Habit::CallersKeepFrames | Habit::PyTrampoline | Habit::OfFile => true,
        }
    }

    /// Not for code that builds its frame first: a look at its start does.
    fn flow(code: &CodeView<'_>) -> Option<Flow> {
        if code.habit == Habit::OfFile {
            return Some(flow::follow_found(code.code));
        }
        let complete = code.size == Some(code.code.len() as u64) && !code.code.is_empty();
        let regular = match code.habit {
            Habit::Blob | Habit::Jumps | Habit::ErlangBase | Habit::Translated => true,
            Habit::FramePointers => !code.leaf || set_up(code).is_some_and(|at| at < 32),
            Habit::V8Pieces => !code.leaf,
            Habit::Unknown | Habit::CallersKeepFrames => {
                set_up(code).is_some_and(|at| at <= ENDBR64.len())
            }
            Habit::Sparkplug | Habit::PyTrampoline | Habit::OfFile => false,
        };
        (complete && !regular).then(|| flow::follow(code.code, code.habit == Habit::Sparkplug))
    }

    fn full_flow(code: &[u8]) -> Option<Flow> {
        Some(flow::follow(code, false))
    }

    fn guess(code: &CodeView<'_>, flow: Option<&Flow>, out: &mut Candidates) {
        if code.habit == Habit::Translated {
            return out.push(translated());
        }
        if code.habit == Habit::Jumps && code.leaf {
            out.push(top_of_stack(0, Check::NotRefuted));
        }
        if code.leaf {
            out.extend(dropping_arguments(code));
            out.extend(follow_to_return(code));
        }
        out.extend(flow.and_then(|flow| flow.candidate(code.at, Self::POINTERS)));
        if code.code.is_empty() {
            without_bytes(code, out);
        } else if code.knows_start() && !matches!(code.habit, Habit::Blob | Habit::Jumps) {
            known_function(code, out);
        } else {
            somewhere(code, out);
        }
        let reach = code.reach();
        for candidate in out.iter_mut() {
            candidate.set_reach(reach);
        }
    }

    fn certain_exit(code: &[u8]) -> Option<Candidate> {
        matches!(code.first(), Some(0xc3 | 0xc2)).then(|| top_of_stack(0, Check::NotRefuted))
    }

    /// V8's unwinding records do not know of arguments that are dropped.
    fn certain_jit_exit(code: &CodeView<'_>) -> Option<Candidate> {
        Self::certain_exit(code.rest()).or_else(|| dropping_arguments(code))
    }

    fn functions(image: &ElfFile<'_>) -> Option<Functions> {
        (image.arch() == Some(Arch::X86_64)).then(|| Functions::of(image))?
    }

    fn is_stub(code: &[u8]) -> bool {
        let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
        let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
        code.starts_with(&[0xff, 0x25])
    }

    /// On its way to the resolver a stub pushes its number, and the common part one word more.
    fn stub() -> Candidates {
        smallvec![
            top_of_stack(0, Check::Call),
            top_of_stack(8, Check::Call),
            top_of_stack(16, Check::Call),
            top_of_stack(0, Check::NotRefuted),
        ]
    }
}

/// Distance of a direct call at the end of `before`, from the return address.
fn direct_call(before: &[u8]) -> Option<i32> {
    let [.., 0xe8, a, b, c, d] = *before else {
        return None;
    };
    Some(i32::from_le_bytes([a, b, c, d]))
}

/// `ff /2` with every form of operand.
fn ends_with_indirect_call(before: &[u8]) -> bool {
    let at = |back: usize| before.len().checked_sub(back).map(|i| before[i]);
    let modrm_is = |back: usize, mask: u8, value: u8| {
        at(back) == Some(0xff) && at(back - 1).is_some_and(|modrm| modrm & mask == value)
    };
    modrm_is(2, 0xf8, 0xd0) // call reg
        || modrm_is(2, 0xf8, 0x10) // call [reg]
        || modrm_is(3, 0xff, 0x14) // call [reg+reg]
        || modrm_is(3, 0xf8, 0x50) // call [reg+disp8]
        || modrm_is(4, 0xff, 0x54) // call [reg+reg+disp8]
        || modrm_is(6, 0xff, 0x15) // call [rip+disp32]
        || modrm_is(6, 0xf8, 0x90) // call [reg+disp32]
        || modrm_is(7, 0xff, 0x94) // call [reg+reg+disp32]
        || modrm_is(7, 0xff, 0x14) // call [reg*8+disp32]
}

/// The return address lies `above` bytes above the stack pointer; rbp is still the caller's.
fn top_of_stack(above: i32, check: Check) -> Candidate {
    Candidate::new(
        Rule::frame(RSP, above + 8, -1, IN_REGISTER),
        FrameOrigin::Frameless,
        check,
    )
}

/// A frame of `push rbp; mov rbp, rsp`.
fn frame_pointer(check: Check) -> Candidate {
    Candidate::new(
        Rule::frame(RBP, 16, -1, -2),
        FrameOrigin::FramePointer,
        check,
    )
}

/// The same where nothing tells that the code builds such a frame.
fn blind_frame_pointer(code: &CodeView<'_>) -> Candidate {
    Candidate {
        blind: match code.habit {
            // What is returned to at its start has its frame there.
            Habit::V8Pieces if code.leaf && code.at > 0 && leaves_frame_pointer(code) => {
                Some(Blind::Callers)
            }
            Habit::Unknown => Some(Blind::Everywhere),
            Habit::CallersKeepFrames if code.leaf => Some(Blind::AtItsEnds),
            _ => None,
        },
        ..frame_pointer(Check::NotRefuted)
    }
}

/// Whether nothing from the function's start to the place writes or saves the frame pointer, as far as the instructions can be read one
/// after the other. Of assembly that realigns its stack nothing tells how large its frame is, and the register leads past its caller.
fn leaves_frame_pointer(code: &CodeView<'_>) -> bool {
    /// Instructions that are looked at; what has built no frame by then is a loop.
    const MOST: usize = 4096;
    let mut at = 0;
    for _ in 0..MOST {
        if at >= code.at {
            return true;
        }
        let Some(instruction) = code.code.get(at..).and_then(decode) else {
            return false;
        };
        at += instruction.len;
        match instruction.effect {
            Effect::Push(Some(RBP_IN_CODE))
            | Effect::Pop(Some(RBP_IN_CODE))
            | Effect::SetFp
            | Effect::SpFromFp(_)
            | Effect::StoreFp(_)
            | Effect::LoadFp(_)
            | Effect::LoadFpFromFrame(_)
            | Effect::ClearFp
            | Effect::WriteFp
            | Effect::Leave => return false,
            _ => {}
        }
    }
    false
}

/// The frame of QEMU's translated code (`tcg_target_qemu_prologue`): the return address, rbp and five more registers, 128 bytes
/// for arguments and 128 words for values that did not find a register, to 16 bytes. rbp holds the guest's state.
fn translated() -> Candidate {
    const FRAME: i32 = (56 + 128 + 1024 + 15) & !15;
    Candidate::new(
        Rule::frame(RSP, FRAME, -1, -2),
        FrameOrigin::Prologue,
        Check::Call,
    )
}

/// V8 takes arguments off the stack behind the frame: `pop R; lea rsp, [rsp+N*8]; push R; ret`, perhaps with other
/// pushes between, or with a jump. From the first to the last of these the return address is in R alone.
fn dropping_arguments(code: &CodeView<'_>) -> Option<Candidate> {
    /// `pop`, `lea` and some pushes.
    const MOST: usize = 16;
    let register = (1..=code.at.min(MOST)).find_map(|back| {
        let (register, between) = argument_drop(code.code.get(code.at - back..)?)?;
        between.contains(&back).then_some(register)
    })?;
    let rule = Rule {
        // Where the caller's stack pointer is depends on the number of arguments.
        kind: Kind::Record,
        ..Rule::frame(RSP, 0, IN_REGISTER, IN_REGISTER)
    };
    Some(Candidate {
        link: Some(dwarf_number(register)),
        ..Candidate::new(rule, FrameOrigin::Frameless, Check::Call)
    })
}

/// Which register holds the return address in such a piece of code, and at which offsets.
fn argument_drop(code: &[u8]) -> Option<(u8, RangeInclusive<usize>)> {
    // Asked at every offset of every leaf of JIT code: two bytes tell nearly all of them apart.
    let (register, popped) = match *code {
        [0x41, pop @ 0x58..=0x5f, ..] => (pop & 7 | 8, 2),
        [pop @ 0x58..=0x5f, ..] => (pop & 7, 1),
        _ => return None,
    };
    let [0x48 | 0x4a, 0x8d, 0x24 | 0x64 | 0xa4, sib, ..] = *code.get(popped..)? else {
        return None;
    };
    // Eight times the index, and rsp as the base.
    if sib & 0xc7 != 0xc4 {
        return None;
    }
    let mut at = popped + decode(&code[popped..])?.len;
    loop {
        let push = decode(code.get(at..)?)?;
        match push.effect {
            Effect::Push(Some(pushed)) if pushed == register => {
                let end = decode(code.get(at + push.len..)?)?.effect;
                let leaves = matches!(end, Effect::Return | Effect::Jump(_));
                return leaves.then_some((register, popped..=at));
            }
            Effect::Push(Some(_)) => at += push.len,
            _ => return None,
        }
    }
}

/// From the number of a register in instructions to that in DWARF.
fn dwarf_number(in_code: u8) -> u8 {
    const LEGACY: [u8; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    LEGACY.get(usize::from(in_code)).copied().unwrap_or(in_code)
}

/// Follows straight code from an ip to the `ret` (or the jump of a tail call behind an epilogue): what the
/// stack pointer passes on the way is the frame. Exact wherever it succeeds.
fn follow_to_return(code: &CodeView<'_>) -> Option<Candidate> {
    let mut at = code.at;
    let mut way = WayOut::default();
    for _ in 0..24 {
        let instruction = decode(code.code.get(at..)?)?;
        at += instruction.len;
        match instruction.effect {
            Effect::Return => return way.candidate(),
            Effect::Jump(distance) => match distance.and_then(|d| inside(code, at, d)) {
                Some(target) => at = target,
                None if way.torn_down => return way.candidate(),
                None => return None,
            },
            effect => way.pass(effect)?,
        }
    }
    None
}

/// The target of a direct jump, if it lies in the function.
fn inside(code: &CodeView<'_>, from: usize, distance: i32) -> Option<usize> {
    let target = from.checked_add_signed(isize::try_from(distance).ok()?)?;
    (target < code.code.len()).then_some(target)
}

/// What happens to the stack on the way out of a function.
struct WayOut {
    /// The stack pointer is this far above `base`.
    height: i32,
    /// rsp or rbp at the start of the way.
    base: u8,
    /// Where the caller's rbp was taken from, likewise.
    fp_at: Option<i32>,
    /// Something was taken off the stack.
    torn_down: bool,
    /// rbp holds something else than before.
    fp_written: bool,
}

impl Default for WayOut {
    fn default() -> Self {
        Self {
            height: 0,
            base: RSP,
            fp_at: None,
            torn_down: false,
            fp_written: false,
        }
    }
}

impl WayOut {
    fn pass(&mut self, effect: Effect) -> Option<()> {
        match effect {
            Effect::Other | Effect::Branch(_) | Effect::StoreFp(_) => {}
            Effect::Push(_) => self.height = self.height.checked_sub(8)?,
            Effect::Pop(register) => {
                if register == Some(RBP_IN_CODE) {
                    self.fp_at = Some(self.height);
                }
                self.height = self.height.checked_add(8)?;
                self.torn_down = true;
            }
            Effect::AddSp(bytes) => {
                self.height = self.height.checked_add(bytes)?;
                self.torn_down |= bytes > 0;
            }
            Effect::LoadFp(offset) => self.fp_at = Some(self.height.checked_add(offset)?),
            Effect::WriteFp | Effect::ClearFp => (self.fp_written, self.fp_at) = (true, None),
            Effect::SpFromFp(offset) if self.fp_at.is_none() && !self.fp_written => {
                (self.base, self.height, self.torn_down) = (RBP, offset, true);
            }
            Effect::Leave if self.fp_at.is_none() && !self.fp_written => {
                *self = Self {
                    base: RBP,
                    height: 8,
                    fp_at: Some(0),
                    torn_down: true,
                    fp_written: false,
                };
            }
            _ => return None,
        }
        Some(())
    }

    fn candidate(&self) -> Option<Candidate> {
        if self.height < 0 || self.base == RBP && self.fp_at.is_none() {
            return None;
        }
        let cfa = self.height.checked_add(8)?;
        let fp_slot = match self.fp_at {
            None if self.fp_written => LOST,
            None => IN_REGISTER,
            Some(at) => i16::try_from((at - cfa) / 8).ok()?,
        };
        let rule = Rule::frame(self.base, cfa, -1, fp_slot);
        Some(Candidate::new(
            rule,
            FrameOrigin::Frameless,
            Check::NotRefuted,
        ))
    }
}

/// Code of which only name and position are known.
fn without_bytes(code: &CodeView<'_>, out: &mut Candidates) {
    let entry = code.leaf && code.at == 0 && code.knows_start();
    match code.habit {
        _ if entry => out.push(top_of_stack(0, Check::NotRefuted)),
        // sub rsp, 8; call rcx; add rsp, 8; ret (with endbr64 in front in some builds)
        Habit::PyTrampoline => {
            if code.leaf && code.at < 4 {
                out.push(top_of_stack(0, Check::Call));
            }
            out.push(top_of_stack(8, Check::NotRefuted));
        }
        Habit::FramePointers | Habit::Blob | Habit::Jumps => {}
        _ if code.leaf => out.push(top_of_stack(0, Check::Call)),
        _ => {}
    }
    out.push(blind_frame_pointer(code));
    if code.leaf {
        out.push(top_of_stack(0, Check::Call));
    }
}

/// Code whose function is not known: what stands at the ip itself, then the frame pointer.
fn somewhere(code: &CodeView<'_>, out: &mut Candidates) {
    if code.leaf {
        if at_entry(code.rest()) {
            out.push(top_of_stack(0, Check::NotRefuted));
        } else if behind_push(code) {
            out.push(pushed_frame());
        }
        out.push(top_of_stack(0, Check::CallsHere));
    }
    out.push(blind_frame_pointer(code));
    if code.leaf {
        out.push(top_of_stack(0, Check::Call));
    }
}

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Whether an ip stands before the first instruction of a function.
fn at_entry(rest: &[u8]) -> bool {
    rest.starts_with(&ENDBR64) || set_up_at(rest)
}

/// Where the function sets up its frame pointer first, by its bytes.
fn set_up(code: &CodeView<'_>) -> Option<usize> {
    /// Whoever has not built a frame by then never does.
    const FAR: usize = 1 << 14;
    let start = &code.code[..code.code.len().min(FAR)];
    memchr::memchr_iter(0x55, start).find(|at| set_up_at(&start[*at..]))
}

/// Whether `push rbp; mov rbp, rsp` stands here, in either encoding.
fn set_up_at(code: &[u8]) -> bool {
    code.starts_with(&[0x55, 0x48, 0x89, 0xe5]) || code.starts_with(&[0x55, 0x48, 0x8b, 0xec])
}

/// Whether the ip stands between `push rbp` and `mov rbp, rsp`.
fn behind_push(code: &CodeView<'_>) -> bool {
    code.at
        .checked_sub(1)
        .and_then(|at| code.code.get(at..))
        .is_some_and(set_up_at)
}

/// Between `push rbp` and `mov rbp, rsp`.
fn pushed_frame() -> Candidate {
    Candidate::new(
        Rule::frame(RSP, 16, -1, -2),
        FrameOrigin::Frameless,
        Check::NotRefuted,
    )
}

/// Code whose first byte is known.
fn known_function(code: &CodeView<'_>, out: &mut Candidates) {
    if code.habit == Habit::Sparkplug {
        return sparkplug(code, out);
    }
    if code.habit == Habit::FramePointers && !code.leaf {
        // No need to look at its bytes.
        return out.push(frame_pointer(Check::NotRefuted));
    }
    let set_up = set_up(code);
    match set_up {
        Some(push_at) if code.leaf && code.at <= push_at => {
            out.extend(Prologue::scan(code).before_frame());
            let first = push_at <= ENDBR64.len();
            let check = if first {
                Check::NotRefuted
            } else {
                Check::Call
            };
            out.push(top_of_stack(0, check));
        }
        Some(push_at) if code.leaf && code.at == push_at + 1 => out.push(pushed_frame()),
        // The frame of a piece lies around its calls only.
        set_up if code.leaf && code.habit == Habit::V8Pieces => {
            if set_up.is_none_or(|at| at > 16) {
                out.push(top_of_stack(0, Check::Call));
            }
        }
        Some(_) => {}
        None if code.habit == Habit::FramePointers => {
            if code.leaf {
                out.push(top_of_stack(0, Check::Call));
            }
        }
        None => out.extend(Prologue::scan(code).candidate(code)),
    }
    out.push(match set_up {
        Some(_) => frame_pointer(Check::NotRefuted),
        None => blind_frame_pointer(code),
    });
    if code.leaf {
        out.push(top_of_stack(0, Check::Call));
    }
}

/// Whether a place lies behind the first call that the code makes, if that is one of its first instructions.
fn is_behind_first_call(code: &CodeView<'_>) -> bool {
    let mut at = 0;
    for _ in 0..32 {
        let Some(instruction) = code.code.get(at..).and_then(decode) else {
            return false;
        };
        at += instruction.len;
        match instruction.effect {
            Effect::Call => return code.at >= at,
            Effect::Jump(_) | Effect::Return | Effect::Stop => return false,
            _ => {}
        }
    }
    false
}

/// Baseline code of V8 calls `BaselineOutOfLinePrologue` first, which builds the frame.
fn sparkplug(code: &CodeView<'_>, out: &mut Candidates) {
    let first_call = code.code.iter().take(64).position(|&b| b == 0xe8);
    let is_behind = || !code.leaf && is_behind_first_call(code);
    if first_call.is_some_and(|call| code.at < call + 5) && !is_behind() {
        out.push(top_of_stack(0, Check::Call));
    }
    out.push(frame_pointer(Check::NotRefuted));
}

/// HotSpot puts a jump on the first bytes of code that is not to be entered any more, for instance because it rested on what
/// is no longer so. Whoever is in it goes on. What is left of the instruction under the jump (`mov [rsp-0x14000], eax`), and
/// `push rbp` behind it.
const BEHIND_PATCH: [u8; 3] = [0xfe, 0xff, 0x55];

/// What a function's first instructions do to the stack, up to the place.
#[derive(Clone, Copy, Debug, Default)]
struct Prologue {
    /// Bytes between the return address and the stack pointer.
    height: i32,
    /// Height at which the caller's rbp was saved (the slot ends there).
    fp_saved: Option<i32>,
    /// The code does something to rsp that cannot be followed.
    lost: bool,
}

impl Prologue {
    /// Follows the code from its start to the place, or to the first thing that ends a prologue.
    fn scan(code: &CodeView<'_>) -> Self {
        let mut this = Self::default();
        let mut rest = code.code;
        let mut at = 0;
        for _ in 0..64 {
            let Some(instruction) = decode(rest) else {
                break;
            };
            if at >= code.at {
                break;
            }
            at += instruction.len;
            rest = rest.get(instruction.len..).unwrap_or_default();
            let is_jump = matches!(instruction.effect, Effect::Jump(_));
            if is_jump && let Some(frame) = rest.strip_prefix(&BEHIND_PATCH) {
                at += BEHIND_PATCH.len();
                rest = frame;
                this.apply(Effect::Push(Some(RBP_IN_CODE)));
                continue;
            }
            if !this.apply(instruction.effect) {
                break;
            }
        }
        this
    }

    /// Follows one instruction; `false` at the end of the prologue.
    fn apply(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Push(register) => {
                self.height += 8;
                if register == Some(RBP_IN_CODE) && self.fp_saved.is_none() {
                    self.fp_saved = Some(self.height);
                }
            }
            Effect::AddSp(bytes) if bytes < 0 && bytes > -(1 << 24) => self.height -= bytes,
            Effect::StoreFp(offset) if self.fp_saved.is_none() => {
                self.fp_saved = Some(self.height - offset);
            }
            Effect::Other
            | Effect::Branch(_)
            | Effect::StoreFp(_)
            | Effect::SetFp
            | Effect::ClearFp
            | Effect::WriteFp
            | Effect::LoadFpFromFrame(_) => {}
            Effect::Stop => {
                self.lost = true;
                return false;
            }
            // Calls, jumps, returns and pops: the body has begun.
            _ => return false,
        }
        true
    }

    fn candidate(&self, code: &CodeView<'_>) -> Option<Candidate> {
        if self.lost || self.height == 0 && !code.leaf {
            return None;
        }
        let fp_slot = match self.fp_saved {
            None => IN_REGISTER,
            Some(height) => i16::try_from(-height / 8 - 1).ok()?,
        };
        let rule = Rule::frame(RSP, self.height.checked_add(8)?, -1, fp_slot);
        Some(Candidate::new(rule, FrameOrigin::Prologue, Check::Call))
    }

    /// Something was pushed before the frame is set up.
    fn before_frame(&self) -> Option<Candidate> {
        if self.lost || self.height == 0 {
            return None;
        }
        Some(top_of_stack(self.height, Check::Call))
    }
}
