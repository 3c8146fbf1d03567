//! Walks through JIT code: each rule for code that no frame information describes.

use proptest::prelude::*;

use super::support::*;
use crate::address::{Avma, AvmaRange};
use crate::input::Store;
use crate::jit::{CodeList, JitCodeId, codes_of, map_of};
use crate::jitdump::testing::{self, DumpWriter};
use crate::runtimes::Producer;
use crate::stack_end::StackEnd;
use crate::unwind::FrameOrigin::{Cfi, FramePointer, Frameless, Ip, PastFrames, Prologue};
use crate::unwind::{Arch, CodeLocation, CodeSpace, FrameOrigin};

const SP: u64 = 0x7ffe_0000_1000;
/// Where the first piece of code lies; the others follow in steps.
const CODE: u64 = 0x7f00_0000_0000;
const STEP: u64 = 0x1000;

/// A process with JIT code at `CODE`, `CODE + STEP`, …, and anonymous executable memory.
struct Jitted<'a> {
    codes: Vec<CodeList<'a>>,
    anonymous: AvmaRange,
}

const ANONYMOUS: u64 = 0x7f10_0000_0000;

impl<'a> CodeSpace<'a> for Jitted<'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        let lists = self.codes.iter();
        let codes = lists.flat_map(CodeList::all);
        for (n, code) in (0..).zip(codes) {
            if code.range().contains(at) {
                return CodeLocation::Jit {
                    id: JitCodeId(n),
                    code,
                    offset: at.since(code.start()),
                };
            }
        }
        if self.anonymous.contains(at) {
            CodeLocation::Anonymous
        } else {
            CodeLocation::Nothing
        }
    }
}

/// What a test loads: name and bytes.
type Loads<'t> = &'t [(&'t str, &'t [u8])];

fn jitted<'a>(store: &'a Store, loads: Loads<'_>) -> Jitted<'a> {
    loaded(store, written(loads))
}

fn written(loads: Loads<'_>) -> DumpWriter {
    let mut writer = DumpWriter::new(1, 0);
    for (n, (name, code)) in (0u64..).zip(loads) {
        writer.load(1, 1, CODE + n * STEP, n, name.as_bytes(), code);
    }
    writer
}

fn loaded(store: &Store, writer: DumpWriter) -> Jitted<'_> {
    loaded_by(None, store, writer)
}

fn loaded_by(producer: Option<Producer>, store: &Store, writer: DumpWriter) -> Jitted<'_> {
    Jitted {
        codes: vec![codes_of(store.keep(writer.bytes), producer, store)],
        anonymous: AvmaRange::new(Avma(ANONYMOUS), 0x1000),
    }
}

/// `push rbp; mov rbp, rsp; sub rsp, 16; call; call; add rsp, 16; pop rbp; ret`, padded with calls.
const FRAMED: [u8; 32] = [
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x10,
    0x5d, 0xc3, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0,
];

/// The return address behind the first call of the `n`th `FRAMED` function.
const fn call_in(n: u64) -> u64 {
    CODE + n * STEP + 10
}

type Frames = Vec<(u64, FrameOrigin)>;

#[test]
fn translated_code_of_qemu_has_the_frame_that_leads_to_it() {
    let store = Store::new();
    let loads: Loads<'_> = &[("guest-0xfe05b", &FRAMED), ("main", &FRAMED)];
    let codes = loaded_by(Some(Producer::Qemu), &store, written(loads));
    let outer = SP + 152 * 8;
    let mut stack = vec![7; 150];
    stack.extend([outer, call_in(1), 0, 0]);
    // rbp holds the guest's state, wherever in the block the sample is.
    for offset in [0, 1, 4, 12, 17] {
        let sample = Sample::x86(CODE + offset, SP, 0x1234_5678, &stack);
        let (frames, _) = walk(Arch::X86_64, &codes, &sample);
        let expected = [(CODE + offset, Ip), (call_in(1) - 1, Prologue)];
        assert_eq!(frames[..2], expected, "{offset}");
    }
}

#[test]
fn frame_pointers_and_their_exact_ends() {
    let store = Store::new();
    let loads: Loads<'_> = &[("fib", &FRAMED), ("main", &FRAMED)];
    let process = jitted(&store, loads);
    let caller = call_in(1) - 1;
    // (ip offset, words from sp, rbp): the caller's frame is at SP + 0x40, its return address 0.
    let outer = SP + 0x40;
    let cases: &[(u64, &[u64], u64, FrameOrigin)] = &[
        (0, &[call_in(1)], outer, Frameless),
        (1, &[outer, call_in(1)], outer, Frameless),
        (4, &[outer, call_in(1)], SP, FramePointer),
        (8, &[7, 7, outer, call_in(1)], SP + 16, FramePointer),
        (12, &[7, 7, outer, call_in(1)], SP + 16, Frameless),
        (16, &[outer, call_in(1)], SP, Frameless),
        (17, &[call_in(1)], outer, Frameless),
    ];
    for (offset, words, bp, origin) in cases {
        let mut stack = words.to_vec();
        stack.resize(8, 7);
        stack.extend([0, 0]);
        let sample = Sample::x86(CODE + offset, SP, *bp, &stack);
        let expected: Frames = vec![(CODE + offset, Ip), (caller, *origin)];
        assert_eq!(
            walk(Arch::X86_64, &process, &sample),
            (expected, StackEnd::Complete),
            "at {offset}"
        );
    }
}

/// Code that leaves the frame pointer alone: nothing but calls.
const BARE: [u8; 32] = [
    0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0,
    0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0,
];

#[test]
fn a_frame_pointer_that_leads_past_other_functions_is_told() {
    let store = Store::new();
    let loads: Loads<'_> = &[("fib", &BARE), ("a", &BARE), ("b", &BARE), ("c", &BARE)];
    let process = jitted(&store, loads);
    let of = |process: &Jitted<'_>, between: [u64; 4]| {
        let stack = [&[7][..], &between, &[0, call_in(3), 0, 0]].concat();
        // rbp is that of whatever called `c`.
        let sample = Sample::x86(CODE + 4, SP, SP + 40, &stack);
        let (frames, _) = walk(Arch::X86_64, process, &sample);
        assert_eq!(frames[1].0, call_in(3) - 1, "{between:x?}");
        frames[1].1
    };
    let own = CODE + 10;
    assert_eq!(of(&process, [call_in(1), own, 7, call_in(2)]), PastFrames);
    for left_over in [
        // One function proves nothing, nor does the function itself.
        [call_in(1), call_in(1), 7, 7],
        [call_in(1), own, own, 7],
        // What does not follow a call returns to nowhere; a start was not returned to.
        [call_in(1), call_in(2) + 1, 7, 7],
        [call_in(1), CODE + 2 * STEP, 7, 7],
    ] {
        assert_eq!(of(&process, left_over), FramePointer, "{left_over:x?}");
    }
    // Code that sets up a frame, and code of those who always do.
    let framed = jitted(&store, &[("fib", &FRAMED), loads[1], loads[2], loads[3]]);
    let found = of(&framed, [call_in(1), own, 7, call_in(2)]);
    assert_eq!(found, FramePointer);
    let writer = written(&[("JS:*fib /a.js:1:1", &BARE), loads[1], loads[2], loads[3]]);
    let of_v8 = loaded_by(Some(Producer::V8), &store, writer);
    let found = of(&of_v8, [call_in(1), own, 7, call_in(2)]);
    assert_eq!(found, FramePointer);
}

#[test]
fn junk_behind_a_frame_pointer_is_refused() {
    let store = Store::new();
    let process = jitted(&store, &[("a", &FRAMED)]);
    // Not executable; executable but not behind a call; the chain does not go up.
    for (fp, ra) in [
        (SP + 64, 0x1234),
        (SP + 64, CODE + 4),
        (SP - 64, call_in(0)),
    ] {
        let sample = Sample::x86(
            CODE + 9,
            SP,
            if fp > SP { SP + 16 } else { fp },
            &[0, 0, fp, ra, 0, 0],
        );
        assert_eq!(
            walk(Arch::X86_64, &process, &sample),
            (vec![(CODE + 9, Ip)], StackEnd::CheckFailed)
        );
    }
    // The chain leaves what was copied of the stack.
    let deep = Sample::x86(CODE + 9, SP, SP + 0x4000, &[0, 0]);
    assert_eq!(
        walk(Arch::X86_64, &process, &deep).1,
        StackEnd::DumpTooShort
    );
}

/// `push rbx; sub rsp, 32; test; jne; call; add rsp, 32; pop rbx; ret`, as LLVM makes it.
const FRAMELESS: [u8; 20] = [
    0x53, 0x48, 0x83, 0xec, 0x20, 0x85, 0xff, 0x75, 0x05, 0xff, 0xd0, 0x90, 0x90, 0x90, 0x48, 0x83,
    0xc4, 0x20, 0x5b, 0xc3,
];

#[test]
fn frameless_code_by_its_stack_height() {
    let store = Store::new();
    let process = jitted(&store, &[("evalexpr_0_0", &FRAMELESS), ("main", &FRAMED)]);
    let ra = call_in(1);
    let cases: &[(u64, usize)] = &[(0, 0), (1, 1), (5, 5), (9, 5), (14, 5), (18, 1), (19, 0)];
    for &(offset, above) in cases {
        let mut stack = vec![7; above];
        stack.push(ra);
        let sample = Sample::x86(CODE + offset, SP, 0, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        assert_eq!(
            (addresses(&frames), end),
            (vec![CODE + offset, ra - 1], StackEnd::CheckFailed),
            "at {offset}"
        );
    }
    // As a caller: behind its call, five words up.
    let mut stack = vec![CODE + 11, 7, 7, 7, 7, 7, ra];
    stack.extend([0; 4]);
    let sample = Sample::x86(CODE + STEP, SP, 0, &stack);
    let expected: Frames = vec![
        (CODE + STEP, Ip),
        (CODE + 10, Frameless),
        (ra - 1, Prologue),
    ];
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (expected, StackEnd::CheckFailed)
    );
}

#[test]
fn hotspot_frames_and_returns_into_the_interpreter() {
    // mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20; call; add rsp, 0x20; pop rbp; ret
    let method = [
        0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd0, 0x48,
        0x83, 0xc4, 0x20, 0x5d, 0xc3,
    ];
    let store = Store::new();
    // The interpreter pushes the address of a return entry and jumps: no call stands before it.
    let loads = written(&[
        ("LHot;fib(I)I", &method),
        ("Interpreter", &[0x90; 64]),
        ("stub", &FRAMED),
    ]);
    let process = loaded_by(Some(Producer::HotSpot), &store, loads);
    let interpreter = CODE + STEP + 0x20;
    // fib -> fib -> interpreter frame -> stub
    let stack = [
        7,
        7,
        7,
        7,
        SP + 0x68,
        CODE + 14, // leaf: 32 bytes, rbp, return into fib
        7,
        7,
        7,
        7,
        SP + 0x68,
        interpreter, // fib: its saved rbp is the interpreter's
        7,
        0,
        call_in(2), // the interpreter's frame at SP + 0x68
    ];
    let sample = Sample::x86(CODE + 12, SP, SP + 0x68, &stack);
    let expected: Frames = vec![
        (CODE + 12, Ip),
        (CODE + 13, Prologue),
        (interpreter - 1, Prologue),
        (call_in(2) - 1, FramePointer),
    ];
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (expected, StackEnd::Complete)
    );
}

/// A word of ones lies between the frame of the entry barrier and its return address.
#[test]
fn hotspots_entry_barrier_leads_to_the_method_that_called_it() {
    let store = Store::new();
    let loads = written(&[
        ("StubRoutines (final stubs)", &FRAMED),
        ("LHot;fib(I)I", &FRAMED),
    ]);
    let process = loaded_by(Some(Producer::HotSpot), &store, loads);
    let ip = CODE + 10;
    let of = |word: u64| {
        // The barrier's frame at SP + 0x10, fib's at SP + 0x30.
        let stack = [7, 7, SP + 0x30, word, call_in(1), 7, 0, 0];
        walk(
            Arch::X86_64,
            &process,
            &Sample::x86(ip, SP, SP + 0x10, &stack),
        )
    };
    let expected: Frames = vec![(ip, Ip), (call_in(1) - 1, FramePointer)];
    assert_eq!(of(u64::MAX), (expected, StackEnd::Complete));
    assert_eq!(of(7).1, StackEnd::CheckFailed);
}

#[test]
fn hotspots_interpreter_keeps_where_its_compiled_callers_stack_ended() {
    // As above; and with the jump over the first bytes of a method that is not to be entered any more.
    let method = |first: [u8; 7]| {
        let rest = [
            0x55, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3,
        ];
        [&first[..], &rest].concat()
    };
    let whole = method([0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff]);
    let patched = method([0xe9, 0x3b, 0x52, 0x51, 0x07, 0xfe, 0xff]);
    for fib in [whole, patched] {
        let store = Store::new();
        let loads = written(&[
            ("LHot;fib(I)I", &fib),
            ("Interpreter", &[0x90; 64]),
            ("stub", &FRAMED),
        ]);
        let process = loaded_by(Some(Producer::HotSpot), &store, loads);
        // The interpreter's frame at SP + 0x10, room for locals, fib's frame from SP + 0x40 on, the stub's at SP + 0x70.
        let mut stack = vec![7, SP + 0x40, SP + 0x70, CODE + 14, 7, 7, 7, 7];
        stack.extend([7, 7, 7, 7, SP + 0x70, call_in(2), 0, 0]);
        let ip = CODE + STEP + 0x20;
        let sample = Sample::x86(ip, SP, SP + 0x10, &stack);
        let expected: Frames = vec![
            (ip, Ip),
            (CODE + 13, FramePointer),
            (call_in(2) - 1, Prologue),
        ];
        assert_eq!(
            walk(Arch::X86_64, &process, &sample),
            (expected, StackEnd::Complete)
        );
    }
}

#[test]
fn python_trampolines_of_a_perf_map() {
    let store = Store::new();
    let mut process = jitted(&store, &[("", &[]), ("", &[]), ("main", &FRAMED)]);
    let map = format!("{CODE:x} b py::f:/x.py\n{:x} b py::g:/x.py\n", CODE + STEP);
    process.codes.push(map_of(store.keep(map.into_bytes())));
    // main -> g -> f -> … a leaf in main
    let stack = [CODE + 6, 7, CODE + STEP + 6, 7, call_in(2)];
    let sample = Sample::x86(CODE + 2 * STEP, SP, 0, &stack);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    let expected = vec![CODE + 2 * STEP, CODE + 5, CODE + STEP + 5, call_in(2) - 1];
    assert_eq!((addresses(&frames), end), (expected, StackEnd::CheckFailed));
}

/// A bytecode handler: no frame; then one around a call, taken down again; then the next handler.
const HANDLER: [u8; 28] = [
    0x48, 0x85, 0xc0, // test rax, rax
    0x74, 0x13, // je dispatch
    0x55, 0x48, 0x89, 0xe5, // push rbp; mov rbp, rsp
    0x6a, 0x22, // push frame type
    0x48, 0x83, 0xec, 0x08, // sub rsp, 8
    0xff, 0xd0, // call rax
    0x48, 0x8b, 0x6d, 0x00, // mov rbp, [rbp]
    0x48, 0x83, 0xc4, 0x18, // add rsp, 24
    0x90, // dispatch:
    0xff, 0xe1, // jmp rcx
];

#[test]
fn bytecode_handlers_run_on_the_frame_of_the_running_function() {
    let store = Store::new();
    let loads: Loads<'_> = &[
        ("BytecodeHandler:Add", &HANDLER),
        ("JS:~f /a.js:1:1", &FRAMED),
        ("JS:~g /a.js:2:1", &FRAMED),
    ];
    let process = jitted(&store, loads);
    let frame = SP + 0x40;
    let (f, g) = (call_in(1) - 1, call_in(2) - 1);
    // rbp is f's: following it alone would lose f, the function that runs.
    let cases: &[(u64, &[u64], u64)] = &[
        (0, &[call_in(1)], frame),
        (3, &[call_in(1)], frame),
        (6, &[frame, call_in(1)], frame),
        (9, &[frame, call_in(1)], SP),
        (15, &[7, 0x22, frame, call_in(1)], SP + 16),
        (21, &[7, 0x22, frame, call_in(1)], frame),
        (25, &[call_in(1)], frame),
        (26, &[call_in(1)], frame),
    ];
    for (offset, words, bp) in cases {
        let mut stack = words.to_vec();
        stack.resize(8, 7);
        stack.extend([0, call_in(2)]);
        let sample = Sample::x86(CODE + offset, SP, *bp, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        assert_eq!(
            (addresses(&frames), end),
            (vec![CODE + offset, f, g], StackEnd::Complete),
            "at {offset}"
        );
    }
}

#[test]
fn the_return_address_is_in_a_register_while_v8_drops_arguments() {
    // push rbp; mov rbp, rsp; call rax; pop rbp; pop r10; lea rsp, [rsp+rcx*8]; push r10; ret
    let plain = [
        0x55, 0x48, 0x89, 0xe5, 0xff, 0xd0, 0x5d, 0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x52,
        0xc3,
    ];
    // The same with an argument that is pushed again, rcx as the register, and a tail call.
    let jump = [
        0x55, 0x48, 0x89, 0xe5, 0xff, 0xd0, 0x5d, 0x59, 0x48, 0x8d, 0x64, 0xc4, 0x08, 0x52, 0x51,
        0xff, 0xe0,
    ];
    let store = Store::new();
    let loads: Loads<'_> = &[
        ("Builtin:ArgumentsDropped", &plain),
        ("Builtin:ArgumentsMoved", &jump),
        ("JS:*caller /a.js:1:1", &FRAMED),
    ];
    let process = jitted(&store, loads);
    // The caller's frame, which returns to 0; below it are arguments that look like return addresses.
    let bp = SP + 32;
    let stack = [call_in(0), call_in(0), 5, 6, 0, 0];
    let (r10, rcx) = (18, 2);
    let caller = call_in(2);
    for (code, at, register) in [
        (0, 9, r10),
        (0, 13, r10),
        (1, 8, rcx),
        (1, 13, rcx),
        (1, 14, rcx),
    ] {
        let ip = CODE + code * STEP + at;
        let walked = |value| {
            let registers = [(8, ip), (7, SP), (6, bp), (register, value)];
            walk(Arch::X86_64, &process, &Sample::new(&registers, &stack))
        };
        let expected: Frames = vec![(ip, Ip), (caller - 1, Frameless)];
        assert_eq!(
            walked(caller),
            (expected, StackEnd::Complete),
            "{code} {at}"
        );
        // What is in the register must follow a call.
        assert_ne!(
            addresses(&walked(caller + 1).0).get(1),
            Some(&caller),
            "{code} {at}"
        );
    }
}

#[test]
fn v8s_unwinding_records_do_not_hide_that_arguments_are_dropped() {
    // pop rbp; pop r10; lea rsp, [rsp+rcx*8]; push r10; ret. The record says CFA = rsp + 8 all the way.
    let code = [
        0x5d, 0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x52, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90,
        0x90,
    ];
    let store = Store::new();
    let mut writer = DumpWriter::new(1, 0);
    let mut data = testing::eh_frame(16, 16);
    data.extend(testing::eh_frame_header(1));
    let name = b"JS:*f /a.js:1:1";
    writer
        .unwinding(20, 0, &data)
        .load(1, 1, CODE, 0, name, &code);
    writer.load(1, 1, CODE + STEP, 1, b"JS:~g /a.js:1:1", &FRAMED);
    let process = loaded(&store, writer);
    let (caller, bp) = (call_in(1), SP + 16);
    let stack = [5, 6, 0, 0];
    for at in [3, 7] {
        let registers = [(8, CODE + at), (7, SP), (6, bp), (18, caller)];
        let sample = Sample::new(&registers, &stack);
        let expected: Frames = vec![(CODE + at, Ip), (caller - 1, Frameless)];
        assert_eq!(
            walk(Arch::X86_64, &process, &sample),
            (expected, StackEnd::Complete),
            "{at}"
        );
    }
}

#[test]
fn v8_goes_on_at_the_start_of_builtins_behind_a_deoptimisation() {
    let notify = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd0, 0x5d, 0xc3];
    let store = Store::new();
    let entry = [0x90, 0xc3, 0xff, 0xd0];
    let loads: Loads<'_> = &[
        ("Builtin:DeoptimizationEntry_Lazy", &entry),
        ("Builtin:NotifyDeoptimized", &notify),
        ("JS:~f /a.js:1:1", &FRAMED),
        ("Builtin:ArrayMap", &notify),
    ];
    let process = jitted(&store, loads);
    let bp = SP + 32;
    let at = |code: u64| CODE + code * STEP;
    let walked = |continues_at| {
        let stack = [continues_at, call_in(2), 5, 6, 0, 0];
        addresses(
            &walk(
                Arch::X86_64,
                &process,
                &Sample::x86(at(0) + 1, SP, bp, &stack),
            )
            .0,
        )
    };
    assert_eq!(walked(at(1)), [at(0) + 1, at(1), call_in(2) - 1]);
    // Other builtins are not returned to at their start.
    assert_ne!(walked(at(3)).get(1), Some(&at(3)));
}

#[test]
fn sparkplug_gets_its_frame_from_its_first_call() {
    // mov rcx, rdi; call BaselineOutOfLinePrologue; call rax
    let code = [
        0x48, 0x89, 0xf9, 0xe8, 0, 0, 0, 0, 0xff, 0xd0, 0xff, 0xd0, 0xff, 0xd0,
    ];
    let store = Store::new();
    let process = jitted(
        &store,
        &[("JS:^f /a.js:1:1", &code), ("JS:~g /a.js:2:1", &FRAMED)],
    );
    let outer = SP + 0x40;
    for (offset, words, bp) in [
        (3, vec![call_in(1)], outer),
        (10, vec![7, outer, call_in(1)], SP + 8),
    ] {
        let mut stack = words;
        stack.resize(8, 7);
        stack.extend([0, 0]);
        let sample = Sample::x86(CODE + offset, SP, bp, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        assert_eq!(
            (addresses(&frames), end),
            (vec![CODE + offset, call_in(1) - 1], StackEnd::Complete)
        );
    }
}

#[test]
fn unwinding_records_come_first() {
    // The record says CFA = rsp + 8 all the way, whatever the code looks like.
    let store = Store::new();
    let mut writer = DumpWriter::new(1, 0);
    let code = [0x90; 16];
    let mut data = testing::eh_frame(16, 16);
    data.extend(testing::eh_frame_header(1));
    writer
        .unwinding(20, 0, &data)
        .load(1, 1, CODE, 0, b"py::f:/x.py", &code);
    // An empty one asks for frame pointers.
    writer.unwinding(20, 0, &testing::eh_frame_header(0)).load(
        1,
        1,
        CODE + STEP,
        1,
        b"JS:*g",
        &FRAMED,
    );
    let process = loaded(&store, writer);
    let stack = [call_in(1), 7, 0, 0];
    let sample = Sample::x86(CODE + 4, SP, SP + 16, &stack);
    let expected: Frames = vec![(CODE + 4, Ip), (call_in(1) - 1, Cfi)];
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (expected, StackEnd::Complete)
    );
}

#[test]
fn the_base_of_an_erlang_process_ends_its_stack() {
    let store = Store::new();
    let process = jitted(
        &store,
        &[
            ("hot:fib/1", &FRAMED),
            ("erts_beamasm:normal_exit/0", &FRAMED),
        ],
    );
    // Behind a call in it, or what the runtime put on the stack: its first instruction.
    for (address, lookup) in [(call_in(1), call_in(1) - 1), (CODE + STEP, CODE + STEP)] {
        let stack = [7, 7, 0x1234_5678, address];
        let sample = Sample::x86(CODE + 9, SP, SP + 16, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        assert_eq!(
            (addresses(&frames), end),
            (vec![CODE + 9, lookup], StackEnd::Complete)
        );
    }
}

#[test]
fn unknown_code_returns_by_the_top_of_the_stack() {
    // V8's jump tables for wasm: a page of jumps that nobody reports.
    let store = Store::new();
    let process = jitted(&store, &[("JS:f-0-turbofan", &FRAMED)]);
    let outer = SP + 0x20;
    let stack = [call_in(0), 7, 7, 7, 0, 0];
    let sample = Sample::x86(ANONYMOUS + 0x10, SP, outer, &stack);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!(
        (addresses(&frames), end),
        (vec![ANONYMOUS + 0x10, call_in(0) - 1], StackEnd::Complete)
    );
    // A frame pointer where the top of the stack holds no return address.
    let stack = [7, 7, 7, 7, 0, call_in(0)];
    let framed = Sample::x86(ANONYMOUS + 0x10, SP, outer, &stack);
    let (frames, end) = walk(Arch::X86_64, &process, &framed);
    assert_eq!(
        (addresses(&frames), end),
        (vec![ANONYMOUS + 0x10, call_in(0) - 1], StackEnd::Complete)
    );
}

/// `nop; stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; nop; ldp x29, x30, [sp], #16; ret`
fn arm_framed() -> Vec<u8> {
    let words: [u32; 7] = [
        0xd503_201f,
        0xa9bf_7bfd,
        0x9100_03fd,
        0xd63f_0000,
        0xd503_201f,
        0xa8c1_7bfd,
        0xd65f_03c0,
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn arm_code_returns_by_link_register_or_frame_record() {
    let store = Store::new();
    let code = arm_framed();
    let process = jitted(
        &store,
        &[("JS:~f /a.js:1:1", &code), ("JS:~g /a.js:2:1", &code)],
    );
    let call = |n: u64| CODE + n * STEP + 16;
    let outer = SP + 0x40;
    // Before the record is stored (also in a recursive call), after it, after a call, at the end.
    let cases: &[(u64, u64, u64)] = &[
        (0, outer, call(1)),
        (4, outer, call(0)),
        (8, outer, call(1)),
        (12, SP, call(1)),
        (16, SP, call(0)),
        (24, outer, call(1)),
    ];
    for &(offset, fp, lr) in cases {
        let mut stack = vec![outer, call(1)];
        stack.resize(8, 7);
        stack.extend([0, 0]);
        let sample = Sample::arm(CODE + offset, SP, fp, lr, &stack);
        let (frames, end) = walk(Arch::Aarch64, &process, &sample);
        let caller = if offset == 4 { call(0) } else { call(1) };
        assert_eq!(
            (addresses(&frames), end),
            (vec![CODE + offset, caller - 1], StackEnd::Complete),
            "at {offset}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any bytes as code, any registers and stack: no panic, no hang, and no frame outside of code.
    #[test]
    fn hostile_code_ends_the_walk(
        code in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            // Instructions that matter, in any order.
            proptest::collection::vec(
                prop::sample::select(vec![
                    &[0x55][..], &[0x5d], &[0xc9], &[0xc3], &[0x48, 0x89, 0xe5], &[0x48, 0x89, 0xec], &[0x75, 0xf0],
                    &[0xeb, 0x10], &[0xeb, 0xf0], &[0x48, 0x83, 0xec, 0x18], &[0x48, 0x83, 0xc4, 0x18],
                    &[0x48, 0x81, 0xec, 0, 0, 0, 0x80], &[0xff, 0xd0], &[0xff, 0xe1], &[0xe8, 0, 0, 0, 0],
                    &[0x48, 0x8b, 0x6d, 0], &[0x48, 0x89, 0x6c, 0x24, 0x10], &[0x48, 0x8d, 0x65, 0xd8],
                ]),
                0..60,
            )
            .prop_map(|parts| parts.concat()),
        ],
        name in prop::sample::select(vec![
            "f", "JS:~f /a.js:1:1", "JS:^f /a.js:1:1", "Builtin:X", "BytecodeHandler:Y", "py::f:/x", "Interpreter",
            "wasm[0]::function[1]", "La;b()V", "RegExp:x",
        ]),
        words in proptest::collection::vec(
            prop_oneof![any::<u64>(), CODE..CODE + 0x1100, SP..SP + 0x200, Just(0)], 0..64),
        ip in CODE..CODE + 200,
        fp in prop_oneof![any::<u64>(), SP..SP + 0x200, Just(0)],
        arm in any::<bool>(),
    ) {
        let store = Store::new();
        let process = jitted(&store, &[(name, &code), ("main", &FRAMED)]);
        let (arch, sample) = if arm {
            (Arch::Aarch64, Sample::arm(ip, SP, fp, call_in(1), &words))
        } else {
            (Arch::X86_64, Sample::x86(ip, SP, fp, &words))
        };
        let (frames, _) = walk(arch, &process, &sample);
        prop_assert!(!frames.is_empty() && frames.len() <= 64);
        prop_assert!(frames[1..].iter().all(|f| !matches!(process.locate(Avma(f.0)), CodeLocation::Nothing)));
    }
}
