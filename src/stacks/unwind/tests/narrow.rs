//! Stacks of 32-bit processes on 64-bit machines.

use std::ops::Range;

use super::support::{Part, Process, Sample, TEXT_OFFSET, TEXT_SVMA, addresses, image, walk};
use crate::address::{Avma, FileOffset};
use crate::dso::DsoId;
use crate::ids::Idx;
use crate::input::Store;
use crate::stack_end::StackEnd;
use crate::unwind::{Arch, CodeLocation, CodeSpace, FrameOrigin};

const BASE: u64 = 0x1_0000;
const SP: u64 = 0xff00_0000;
const ARM: u16 = 40;
const X86: u16 = 3;

/// A process whose functions have symbols, and with or without a vdso behind its file.
struct Symbols<'a> {
    process: Process<'a>,
    functions: Vec<Range<u64>>,
}

const VDSO: u64 = 0xf7c0_0000;

impl<'a> CodeSpace<'a> for Symbols<'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        if at.0.wrapping_sub(VDSO) < 0x1000 {
            return CodeLocation::File {
                dso: DsoId::from_usize(7),
                offset: FileOffset(at.0 - VDSO),
                binary: None,
                debug: None,
            };
        }
        self.process.locate(at)
    }

    fn function_bounds(&self, _: DsoId, at: FileOffset) -> Option<Range<FileOffset>> {
        let around = |range: &&Range<u64>| range.contains(&(at.0 - TEXT_OFFSET));
        let found = self.functions.iter().find(around)?;
        Some(FileOffset(TEXT_OFFSET + found.start)..FileOffset(TEXT_OFFSET + found.end))
    }

    fn is_vdso(&self, dso: DsoId) -> bool {
        dso == DsoId::from_usize(7)
    }
}

fn process<'a>(
    store: &'a Store,
    machine: u16,
    text: &[u8],
    parts: &[Part],
    functions: &[Range<u64>],
) -> Symbols<'a> {
    let file = image(machine, text, parts);
    Symbols {
        process: Process::of(store, BASE, file, text.len() as u64),
        functions: functions.to_vec(),
    }
}

/// A 32-bit process' sample: registers by number, and words of four bytes.
fn narrow(registers: &[(u32, u64)], stack: &[u32]) -> Sample {
    let mut sample = Sample::new(registers, &[]);
    sample.abi = 1;
    sample.stack = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    sample
}

/// r7, sp, lr and pc as an arm64 kernel gives them, at both places.
fn arm(pc: u64, sp: u64, r7: u64, lr: u64, stack: &[u32]) -> Sample {
    let twice = [(13, sp), (14, lr), (15, pc), (30, lr), (31, sp), (32, pc)];
    let mut registers = twice.to_vec();
    registers.push((7, r7));
    narrow(&registers, stack)
}

/// Thumb code of 0x200 bytes of `nop` with these pieces.
fn thumb(pieces: &[(usize, &[u16])]) -> Vec<u8> {
    let mut text = [0x00, 0xbf].repeat(0x100);
    for (at, halves) in pieces {
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        text[*at..*at + bytes.len()].copy_from_slice(&bytes);
    }
    text
}

/// An index whose functions begin at offsets into the text.
fn exidx(functions: &[(u64, u32)]) -> Part {
    const AT: u64 = 0x8000;
    let entries = (AT..).step_by(8).zip(functions);
    let words = entries.flat_map(|(place, (start, word))| {
        let distance = (TEXT_SVMA + start).wrapping_sub(place) & 0x7fff_ffff;
        [u32::try_from(distance).expect("31 bits"), *word]
    });
    Part {
        name: ".ARM.exidx",
        svma: AT,
        data: words.flat_map(u32::to_le_bytes).collect(),
    }
}

/// leaf (0x100, its code tells) <- middle (0x140, the index tells) <- outer (0x180, r7) <- a thread's start (0x1c0).
fn arm_text() -> Vec<u8> {
    thumb(&[
        (0x100, &[0xb5f0, 0xb082, 0xbf00, 0xb002, 0xbdf0]), // push {r4-r7, lr}; sub sp, #8; …; pop {r4-r7, pc}
        (0x150, &[0xf7ff, 0xffd6]),                         // bl leaf
        (0x190, &[0xf7ff, 0xffd6]),                         // bl middle
        (0x1c0, &[0xdf00, 0xbf00, 0x47e0]),                 // svc; nop; blx r12
    ])
}

const BEHIND_MIDDLE: u32 = 0x1_0000 + 0x154 + 1;
const BEHIND_OUTER: u32 = 0x1_0000 + 0x194 + 1;
const BEHIND_START: u32 = 0x1_0000 + 0x1c6 + 1;

fn arm_tables() -> Part {
    // middle: pop {r7, r14} above 8 bytes; outer: vsp = r7, pop {r7, r14}
    exidx(&[(0x140, 0x8001_8408), (0x180, 0x8097_8408), (0x1c0, 1)])
}

fn functions() -> [Range<u64>; 2] {
    [0x100..0x140, 0x1c0..0x200]
}

/// The words above the leaf's frame: middle's, outer's.
const OUTER: [u32; 8] = [
    0,
    0, // of middle
    0xff00_0048,
    BEHIND_OUTER, // r7, lr
    9,
    9, // of outer, up to where r7 points: `OUTER_R7` words above
    0,
    BEHIND_START,
];

/// r7 of outer, when the leaf has a frame of `below` words.
fn outer_r7(below: usize) -> u32 {
    u32::try_from(SP + 4 * (below as u64 + 6)).expect("32 bits")
}

#[track_caller]
fn walks_to_the_start(pc: u64, lr: u64, below: &[u32]) {
    let store = Store::new();
    let process = process(&store, ARM, &arm_text(), &[arm_tables()], &functions());
    let mut stack = below.to_vec();
    stack.extend(OUTER);
    stack[below.len() + 2] = outer_r7(below.len());
    let sample = arm(BASE + pc, SP, 0x1234, lr, &stack);
    let (frames, end) = walk(Arch::Aarch64, &process, &sample);
    let callers = [BEHIND_MIDDLE, BEHIND_OUTER, BEHIND_START].map(|at| u64::from(at) - 2);
    let expected = [&[BASE + pc][..], &callers].concat();
    assert_eq!((addresses(&frames), end), (expected, StackEnd::Complete));
}

#[test]
fn arm_stacks_from_prologue_body_and_epilogue() {
    let lr = u64::from(BEHIND_MIDDLE);
    walks_to_the_start(0x100, lr, &[]);
    let saved = [4, 5, 6, 7, BEHIND_MIDDLE];
    walks_to_the_start(0x102, 0x7777, &saved);
    let body = [&[1, 2][..], &saved].concat();
    walks_to_the_start(0x104, 0x7777, &body);
    walks_to_the_start(0x106, 0x7777, &body);
    walks_to_the_start(0x108, 0x7777, &saved);
}

#[test]
fn an_arm_leaf_takes_no_caller_that_did_not_call() {
    let store = Store::new();
    let process = process(&store, ARM, &arm_text(), &[arm_tables()], &functions());
    // Behind no call; data; nothing.
    for lr in [BASE + 0x181, 0x7f4a_7c14, 0] {
        let (frames, end) = walk(
            Arch::Aarch64,
            &process,
            &arm(BASE + 0x100, SP, 0, lr, &OUTER),
        );
        assert_eq!(
            (addresses(&frames), end),
            (vec![BASE + 0x100], StackEnd::CheckFailed)
        );
    }
}

#[test]
fn the_vdso_of_an_arm_process_keeps_the_link_register() {
    let store = Store::new();
    let process = process(&store, ARM, &arm_text(), &[arm_tables()], &functions());
    let of = |lr: u64| {
        walk(
            Arch::Aarch64,
            &process,
            &arm(VDSO + 0x616, SP, 0, lr, &OUTER),
        )
    };
    let (frames, end) = of(u64::from(BEHIND_MIDDLE));
    let caller = u64::from(BEHIND_MIDDLE) - 2;
    assert_eq!(addresses(&frames), [VDSO + 0x616, caller]);
    assert_eq!(end, StackEnd::NoRule, "how much it pushed is not known");
    for elsewhere in [VDSO + 0x401, BASE + 0x181, 0] {
        let (frames, end) = of(elsewhere);
        assert_eq!(
            (frames.len(), end),
            (1, StackEnd::MissingFile),
            "{elsewhere:x}"
        );
    }
}

#[test]
fn a_signal_handler_of_an_arm_process() {
    let store = Store::new();
    let mut text = arm_text();
    // mov.w r7, #173; svc #0
    text[0x20..0x26].copy_from_slice(&[0x4f, 0xf0, 0xad, 0x07, 0, 0xdf]);
    let process = process(&store, ARM, &text, &[arm_tables()], &functions());
    let mut stack = vec![0; 40 + 17 + 16];
    // The handler is a leaf at 0x100, with the trampoline in lr; outer was interrupted behind its call.
    let below = stack.len();
    stack.extend([0, BEHIND_START]);
    let regs = 40;
    stack[regs + 7] = u32::try_from(SP + 4 * below as u64).expect("32 bits");
    stack[regs + 13] = stack[regs + 7] - 8;
    stack[regs + 15] = 0x1_0000 + 0x198;
    let sample = arm(BASE + 0x100, SP, 0, BASE + 0x21, &stack);
    let (frames, end) = walk(Arch::Aarch64, &process, &sample);
    let expected = [
        BASE + 0x100,
        BASE + 0x20,
        BASE + 0x198,
        u64::from(BEHIND_START) - 2,
    ];
    assert_eq!(
        (addresses(&frames), end),
        (expected.to_vec(), StackEnd::Complete)
    );
}

#[test]
fn frame_pointers_and_the_vdso_of_an_x86_process() {
    let store = Store::new();
    let mut text = vec![0x90; 0x200];
    // call, at 0x40 and 0x60; ret at 0x100
    text[0x40] = 0xe8;
    text[0x60] = 0xe8;
    text[0x100] = 0xc3;
    let process = process(&store, X86, &text, &[], &[]);
    let x86 = |ip: u64, bp: u64, stack: &[u32]| narrow(&[(6, bp), (7, SP), (8, ip)], stack);
    let (inner, outer) = (0x1_0045, 0x1_0065);
    let bp = u32::try_from(SP + 16).expect("32 bits");
    // The way into the kernel: ebp, edx, ecx and the return address.
    let stack = [bp, 2, 1, inner, 0, outer];
    let (frames, _) = walk(Arch::X86_64, &process, &x86(VDSO + 0x549, 0, &stack));
    let expected = [VDSO + 0x549, u64::from(inner) - 1, u64::from(outer) - 1];
    assert_eq!(addresses(&frames), expected);
    assert_eq!(frames[1].1, FrameOrigin::Prologue);
    // A return, then a frame by ebp.
    let stack = [inner, 9, 9, 9, 0, outer];
    let (frames, _) = walk(
        Arch::X86_64,
        &process,
        &x86(BASE + 0x100, bp.into(), &stack),
    );
    let expected = [BASE + 0x100, u64::from(inner) - 1, u64::from(outer) - 1];
    assert_eq!(addresses(&frames), expected);
}
