//! Walks through code of files.

use std::sync::Arc;

use gimli::Register;
use gimli::write::CallFrameInstruction::{
    self, Cfa, CfaExpression, CfaOffset, CfaRegister, NegateRaState, Offset, Undefined,
};
use gimli::write::Expression;
use proptest::prelude::*;

use super::support::*;
use crate::address::Avma;
use crate::input::Store;
use crate::stack_end::StackEnd;
use crate::unwind::FrameOrigin::{Cfi, FramePointer, Frameless, Ip, Signal};
use crate::unwind::{Arch, CfiTables, CodeLocation, CodeSpace, FrameOrigin, Unwinder};

const X86: u16 = 62;
const ARM: u16 = 183;
const BASE: u64 = 0x5555_0000_0000;
const SP: u64 = 0x7ffe_0000_1000;
const RSP: Register = Register(7);
const RBP: Register = Register(6);
const RBX: Register = Register(3);
const RIP: Register = Register(16);

/// Text of `len` bytes in which every return address follows a call.
fn text_of_calls(len: usize) -> Vec<u8> {
    std::iter::repeat_n([0xff, 0xd0], len / 2)
        .flatten()
        .collect()
}

/// `push rbp; mov rbp, rsp; …`
fn rbp_frame() -> Vec<(u32, CallFrameInstruction)> {
    vec![
        (1, CfaOffset(16)),
        (1, Offset(RBP, -16)),
        (4, CfaRegister(RBP)),
    ]
}

fn process<'a>(store: &'a Store, machine: u16, text: &[u8], parts: &[Part]) -> Process<'a> {
    Process::of(store, BASE, image(machine, text, parts), text.len() as u64)
}

/// A leaf, a function with rbp, one with a fixed frame, and the thread's start.
fn four_functions() -> Vec<Function> {
    vec![
        Function::new(0x000, 0x100, vec![]),
        Function::new(0x100, 0x100, rbp_frame()),
        Function::new(
            0x200,
            0x100,
            vec![
                (4, CfaOffset(32)),
                (4, Offset(RBP, -24)),
                (4, Offset(RBX, -16)),
            ],
        ),
        Function::new(0x300, 0x100, vec![(0, Undefined(RIP))]),
    ]
}

/// From the leaf to the thread's start.
fn four_frames() -> (Sample, Vec<(u64, FrameOrigin)>) {
    let stack = [
        BASE + 0x150, // leaf -> rbp frame
        1,
        2,            // its locals, to rbp = SP + 24
        0x77,         // saved rbp
        BASE + 0x250, // -> fixed frame
        3,
        0x88,
        4,            // local, saved rbp, saved rbx
        BASE + 0x350, // -> start
    ];
    let expected = vec![
        (BASE + 0x20, Ip),
        (BASE + 0x14f, Cfi),
        (BASE + 0x24f, Cfi),
        (BASE + 0x34f, Cfi),
    ];
    (Sample::x86(BASE + 0x20, SP, SP + 24, &stack), expected)
}

#[test]
fn follows_call_frame_information_to_the_undefined_return_address() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let (sample, expected) = four_frames();
    for part in [
        eh_frame(X86, &four_functions()),
        debug_frame(X86, &four_functions()),
    ] {
        let name = part.name;
        let process = process(&store, X86, &text, &[part]);
        assert_eq!(
            walk(Arch::X86_64, &process, &sample),
            (expected.clone(), StackEnd::Complete),
            "{name}"
        );
    }
}

/// `.eh_frame_hdr` for the FDEs of [`eh_frame`], with a chosen error in the FDE addresses.
fn search_table(functions: &[Function], eh_frame: &Part, error: i32) -> Part {
    const AT: u64 = 0x20_0000;
    let relative = |at: u64| i32::try_from(at.cast_signed() - AT.cast_signed()).expect("near");
    // Entries follow one another: length, then for FDEs the distance to their CIE (0 for CIEs).
    let (mut at, mut fdes) = (0, Vec::new());
    while let Some(head) = eh_frame.data.get(at..at + 8) {
        let word = |i: usize| u32::from_le_bytes(head[i..i + 4].try_into().expect("four bytes"));
        if word(0) != 0 && word(4) != 0 {
            fdes.push(eh_frame.svma + at as u64);
        }
        at += word(0) as usize + 4;
    }
    let mut data = vec![1, 0x1b, 0x03, 0x3b];
    data.extend_from_slice(&0i32.to_le_bytes());
    data.extend_from_slice(&u32::try_from(fdes.len()).expect("few").to_le_bytes());
    for (function, fde) in functions.iter().zip(fdes) {
        data.extend_from_slice(&relative(TEXT_SVMA + function.start).to_le_bytes());
        data.extend_from_slice(&(relative(fde) + error).to_le_bytes());
    }
    Part {
        name: ".eh_frame_hdr",
        svma: AT,
        data,
    }
}

#[test]
fn uses_the_search_table_when_it_is_sane() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let (sample, expected) = four_frames();
    let functions = four_functions();
    for error in [0, 4, -0x1000] {
        let eh = eh_frame(X86, &functions);
        let hdr = search_table(&functions, &eh, error);
        let process = process(&store, X86, &text, &[eh, hdr]);
        assert_eq!(
            walk(Arch::X86_64, &process, &sample),
            (expected.clone(), StackEnd::Complete),
            "{error}"
        );
    }
    // A table that belongs to an empty section names nothing.
    let eh = eh_frame(X86, &functions);
    let mut hdr = search_table(&functions, &eh, 0);
    hdr.data.truncate(20);
    let process = process(&store, X86, &text, &[eh, hdr]);
    assert_eq!(walk(Arch::X86_64, &process, &sample).0, expected);
}

#[test]
fn says_why_a_stack_ended() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let process = process(&store, X86, &text, &[eh_frame(X86, &four_functions())]);
    let (mut sample, expected) = four_frames();
    sample.stack.truncate(8 * 8);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!((&frames[..], end), (&expected[..3], StackEnd::DumpTooShort));

    let junk = Sample::x86(BASE + 0x20, SP, 0, &[0x1234]);
    assert_eq!(
        walk(Arch::X86_64, &process, &junk),
        (vec![(BASE + 0x20, Ip)], StackEnd::CheckFailed)
    );
    let zero = Sample::x86(BASE + 0x20, SP, 0, &[0]);
    assert_eq!(walk(Arch::X86_64, &process, &zero).1, StackEnd::Complete);

    let mut strange = Sample::x86(BASE + 0x20, SP, 0, &[0]);
    strange.abi = 3;
    assert_eq!(
        walk(Arch::X86_64, &process, &strange),
        (vec![(BASE + 0x20, Ip)], StackEnd::NoRegisters)
    );
    let nothing = Sample::new(&[(0, 1)], &[]);
    assert_eq!(
        walk(Arch::X86_64, &process, &nothing),
        (vec![], StackEnd::NoRegisters)
    );
}

#[test]
fn a_call_that_never_returns_is_looked_up_in_its_caller() {
    // The return address is the first byte of the next function.
    let store = Store::new();
    let text = text_of_calls(0x400);
    let process = process(&store, X86, &text, &[eh_frame(X86, &four_functions())]);
    let sample = Sample::x86(BASE + 0x20, SP, SP + 8, &[BASE + 0x200, 0, BASE + 0x350]);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!(
        (addresses(&frames), end),
        (
            vec![BASE + 0x20, BASE + 0x1ff, BASE + 0x34f],
            StackEnd::Complete
        )
    );
}

#[test]
fn finds_the_cfa_in_other_registers() {
    // The caller keeps its CFA in rbx, which the leaf saved and changed.
    let store = Store::new();
    let text = text_of_calls(0x400);
    let functions = [
        Function::new(
            0x000,
            0x100,
            vec![(1, CfaOffset(16)), (1, Offset(RBX, -16))],
        ),
        Function::new(0x100, 0x100, vec![(4, Cfa(RBX, 8))]),
        Function::new(0x300, 0x100, vec![(0, Undefined(RIP))]),
    ];
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let stack = [SP + 40, BASE + 0x150, 1, 2, 3, BASE + 0x350];
    let mut sample = Sample::x86(BASE + 0x20, SP, 0, &stack);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!(
        (addresses(&frames), end),
        (
            vec![BASE + 0x20, BASE + 0x14f, BASE + 0x34f],
            StackEnd::Complete
        )
    );
    // An interrupted function that has not pushed rbx yet.
    sample = Sample::new(&[(8, BASE + 0x150), (7, SP), (6, 0), (1, SP + 40)], &stack);
    assert_eq!(
        addresses(&walk(Arch::X86_64, &process, &sample).0),
        [BASE + 0x150, BASE + 0x34f]
    );
}

#[test]
fn a_volatile_register_keeps_its_value_through_functions_that_leave_it_alone() {
    // As in OpenSSL's AES-GCM: the CFA counts from rax, below one leaf.
    const RAX: u32 = 0;
    let store = Store::new();
    let mut text = text_of_calls(0x400);
    text[0x250..0x25c].fill(0x90);
    let functions = |leaf: Vec<_>| {
        [
            Function::new(0x000, 0x100, leaf),
            Function::new(0x100, 0x100, vec![(4, Cfa(Register(0), 8))]),
            Function::new(0x300, 0x100, vec![(0, Undefined(RIP))]),
        ]
    };
    let stack = [BASE + 0x150, 1, 2, 3, BASE + 0x350, BASE + 0x258];
    let ends = |leaf: Vec<_>, rax: u64| {
        let process = process(&store, X86, &text, &[eh_frame(X86, &functions(leaf))]);
        let registers = [(8, BASE + 0x20), (7, SP), (6, 0), (RAX, rax)];
        let (frames, end) = walk(Arch::X86_64, &process, &Sample::new(&registers, &stack));
        (addresses(&frames), end)
    };
    let whole = vec![BASE + 0x20, BASE + 0x14f, BASE + 0x34f];
    let short = vec![BASE + 0x20, BASE + 0x14f];
    assert_eq!(ends(vec![], SP + 32), (whole, StackEnd::Complete));
    // The leaf is known to change it, a word that follows no call, nothing on the stack, nothing at all.
    let changed = vec![(1, Undefined(Register(0)))];
    for (leaf, rax) in [
        (changed, SP + 32),
        (vec![], SP + 40),
        (vec![], SP + 8),
        (vec![], SP + 36),
        (vec![], 7),
        (vec![], u64::MAX),
    ] {
        assert_eq!(ends(leaf, rax), (short.clone(), StackEnd::LostRegister));
    }
}

#[test]
fn a_popped_frame_pointer_is_the_callers() {
    // LLVM's epilogue row still says that rbp is saved in the slot it was popped from.
    let store = Store::new();
    let text = text_of_calls(0x400);
    let mut functions = four_functions();
    functions[0].rows = rbp_frame();
    functions[0].rows.push((0x20, Cfa(RSP, 8)));
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let (sample, expected) = four_frames();
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (expected, StackEnd::Complete)
    );
}

#[test]
fn a_landing_pad_is_looked_up_where_it_is() {
    // What libgcc jumps to with the stack pointer that it has in rcx: behind the end of the same function's other way out.
    const RCX: u32 = 2;
    let store = Store::new();
    let mut text = text_of_calls(0x400);
    text[0x170..0x180].fill(0x90);
    let functions = [
        Function::new(0x000, 0x100, vec![(4, Cfa(Register(2), 8))]),
        Function::new(0x100, 0x100, vec![(0x80, CfaOffset(32))]),
        Function::new(0x300, 0x100, vec![(0, Undefined(RIP))]),
    ];
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    for (pad, lookup) in [(0x180, 0x180), (0x190, 0x18f)] {
        let stack = [1, BASE + pad, 2, 3, 4, BASE + 0x350, 5];
        let registers = [(8, BASE + 0x20), (7, SP), (6, 0), (RCX, SP + 8)];
        let (frames, end) = walk(Arch::X86_64, &process, &Sample::new(&registers, &stack));
        assert_eq!(
            (addresses(&frames), end),
            (
                [0x20, lookup, 0x34f].map(|at| BASE + at).to_vec(),
                StackEnd::Complete
            )
        );
    }
}

#[test]
fn a_program_begins_at_its_start_whatever_call_frame_information_says() {
    let store = Store::new();
    let mut functions = four_functions();
    functions[3].rows = Vec::new();
    let text = text_of_calls(0x400);
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let stack = [BASE + 0x350, 1, 2];
    for (rbp, expected) in [(0, StackEnd::Complete), (5, StackEnd::CheckFailed)] {
        let sample = Sample::x86(BASE + 0x20, SP, rbp, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        assert_eq!(addresses(&frames), [0x20, 0x34f].map(|at| BASE + at));
        assert_eq!(end, expected, "{rbp}");
    }
}

#[test]
fn a_frame_is_left_by_the_stack_pointer_where_rbp_was_overwritten() {
    // What libgcc does to the saved registers before it jumps to a landing pad.
    let store = Store::new();
    let mut text = text_of_calls(0x400);
    // push rbp; mov rbp, rsp; sub rsp, 16
    text[0x100..0x108].copy_from_slice(&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10]);
    let mut functions = four_functions();
    functions[0].rows = vec![(4, CfaOffset(16)), (4, Offset(RBP, -16))];
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    for overwritten in [3, 0, SP - 0x1000, SP] {
        let stack = [
            overwritten, // saved rbp
            BASE + 0x150,
            1,
            2,            // locals
            0x77,         // the rbp of the caller
            BASE + 0x250, // -> fixed frame
            3,
            0x88,
            4,
            BASE + 0x350, // -> start
        ];
        let sample = Sample::x86(BASE + 0x20, SP, 5, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        let expected = [0x20, 0x14f, 0x24f, 0x34f].map(|at| BASE + at);
        assert_eq!(
            (addresses(&frames), end),
            (expected.to_vec(), StackEnd::Complete),
            "{overwritten:#x}"
        );
    }
}

#[test]
fn go_is_unwound_by_its_stack_heights_up_to_where_goroutines_begin() {
    let store = Store::new();
    // `goexit` begins with a NOP, and the address behind it is what goroutines return to.
    let mut text = text_of_calls(0x40);
    text.extend([0x90; 0x10]);
    let part = Part {
        name: ".gopclntab",
        svma: 0x30_0000,
        data: crate::dso::go::tests::table_for(TEXT_SVMA, "runtime.goexit"),
    };
    let process = process(&store, X86, &text, &[part]);
    let goexit = BASE + 0x40;
    let whole = |ip| (vec![ip, goexit], StackEnd::Complete);
    let walked = |ip, stack: &[u64]| {
        let (frames, end) = walk(Arch::X86_64, &process, &Sample::x86(ip, SP, 0, stack));
        (addresses(&frames), end)
    };
    // Without a frame, in one of 24 bytes, and after it was left.
    assert_eq!(walked(BASE, &[goexit + 1]), whole(BASE));
    let framed = [BASE + 2, BASE + 4, 0, goexit + 1];
    assert_eq!(walked(BASE + 0x10, &framed), whole(BASE + 0x10));
    assert_eq!(walked(BASE + 0x3e, &[goexit + 1]), whole(BASE + 0x3e));
    // A recursion: the caller's frame has its height, too.
    let twice = [0, 0, 0, BASE + 0x20, 0, 0, 0, goexit + 1];
    let expected = (vec![BASE + 0x10, BASE + 0x1f, goexit], StackEnd::Complete);
    assert_eq!(walked(BASE + 0x10, &twice), expected);
}

#[test]
fn go_that_was_called_on_another_stack_has_callers_that_are_not_recorded() {
    let store = Store::new();
    let ends = |name: &str| {
        let part = Part {
            name: ".gopclntab",
            svma: 0x30_0000,
            data: crate::dso::go::tests::table_for(TEXT_SVMA, name),
        };
        let process = process(&store, X86, &text_of_calls(0x50), &[part]);
        let sample = Sample::x86(BASE, SP, 0, &[BASE + 0x48]);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        assert_eq!(addresses(&frames), [BASE, BASE + 0x47], "{name}");
        end
    };
    for name in ["runtime.systemstack.abi0", "runtime.asmcgocall"] {
        assert_eq!(ends(name), StackEnd::OtherStack, "{name}");
    }
    // The scheduler does not go back to the goroutine that it left.
    assert_eq!(ends("runtime.mcall"), StackEnd::Complete);
}

#[test]
fn ret_is_exact_even_where_call_frame_information_is_not() {
    let store = Store::new();
    let mut text = text_of_calls(0x400);
    text[0x20] = 0xc3;
    let mut functions = four_functions();
    // Cranelift writes no rows for its epilogues.
    functions[0].rows = rbp_frame();
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let (sample, expected) = four_frames();
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!(
        (addresses(&frames), end),
        (addresses(&expected), StackEnd::Complete)
    );
    assert_eq!(frames[1].1, Frameless);
}

#[test]
fn stubs_and_their_expression() {
    // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
    let expression = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let store = Store::new();
    let text = text_of_calls(0x400);
    let mut functions = four_functions();
    functions[0].rows = vec![(0, CfaExpression(Expression::raw(expression.to_vec())))];
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let (sample, expected) = four_frames();
    assert_eq!(
        addresses(&walk(Arch::X86_64, &process, &sample).0),
        addresses(&expected)
    );
    let mut stack = vec![7];
    stack.extend(
        sample
            .stack
            .as_chunks::<8>()
            .0
            .iter()
            .map(|w| u64::from_le_bytes(*w)),
    );
    let pushed = Sample::x86(BASE + 0x2b, SP - 8, SP + 24, &stack);
    assert_eq!(
        addresses(&walk(Arch::X86_64, &process, &pushed).0)[1..],
        addresses(&expected)[1..]
    );
}

#[test]
fn stubs_without_frame_information() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let plt = Part {
        name: ".plt.sec",
        svma: TEXT_SVMA,
        data: vec![0; 0x100],
    };
    let functions: Vec<_> = four_functions().into_iter().skip(1).collect();
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions), plt]);
    let (sample, expected) = four_frames();
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!(
        (addresses(&frames), end),
        (addresses(&expected), StackEnd::Complete)
    );
}

/// Three functions of a file that says nothing of them, at 0x100, 0x200 and 0x300: the first with a frame of 24 bytes and a
/// jump through a table, the second with one of 8 that calls the first, the third that calls the second by a pointer and ends
/// by a jump to the first.
fn undescribed() -> Vec<u8> {
    let mut text = vec![0xcc; 0x400];
    let mut put = |at: usize, code: &[u8]| text[at..at + code.len()].copy_from_slice(code);
    let call = |from: i32, to: i32| [&[0xe8][..], &(to - from - 5).to_le_bytes()].concat();
    // push rbp; sub rsp, 16; xor ebp, ebp; jmp rax; (by the table:) call rdx; add rsp, 16; pop rbp; ret
    put(
        0x100,
        &[0x55, 0x48, 0x83, 0xec, 0x10, 0x31, 0xed, 0xff, 0xe0],
    );
    put(0x109, &[0xff, 0xd2, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3]);
    // push rbx; call 0x100; pop rbx; ret
    put(0x200, &[0x53]);
    put(0x201, &call(0x201, 0x100));
    put(0x206, &[0x5b, 0xc3]);
    // sub rsp, 24; lea rax, [rip+0x200]; call rax; call 0x300; add rsp, 24; jmp 0x100
    put(0x300, &[0x48, 0x83, 0xec, 0x18, 0x48, 0x8d, 0x05]);
    put(0x307, &(0x200i32 - 0x30b).to_le_bytes());
    put(0x30b, &[0xff, 0xd0]);
    put(0x30d, &call(0x30d, 0x300));
    put(0x312, &[0x48, 0x83, 0xc4, 0x18, 0xe9]);
    put(0x317, &(0x100i32 - 0x31b).to_le_bytes());
    text
}

#[test]
fn functions_that_nothing_describes_are_followed_where_the_calls_prove_it() {
    let store = Store::new();
    let text = undescribed();
    let part = |name, svma, data| Part { name, svma, data };
    let parts = [part(".text", TEXT_SVMA, text.clone())];
    let file = process(&store, X86, &text, &parts);
    let at = |offset: u64| BASE + offset;
    // rbp is of no use: the functions keep other things there.
    let walked = |ip, stack: &[u64]| {
        let (frames, end) = walk(Arch::X86_64, &file, &Sample::x86(ip, SP, SP + 8, stack));
        (addresses(&frames), end)
    };
    let (first, second, third) = (at(0x10b), at(0x206), at(0x30d));
    // In the code behind the jump table, called by the second, which the third called by a pointer.
    let stack = [1, 2, 3, second, 4, third, 5, 6, 7, at(0x312), 8, 9, 10];
    let (frames, end) = walked(first, &stack);
    assert_eq!(frames[..4], [first, second - 1, third - 1, at(0x312) - 1]);
    assert_eq!(
        end,
        StackEnd::DumpTooShort,
        "what the code says leads behind the copy"
    );
    // The third function does end by a jump to the first, so that its call may have led there.
    let (frames, _) = walked(first, &[1, 2, 3, at(0x312), 8, 9, 10, 11]);
    assert_eq!(frames[..2], [first, at(0x312) - 1]);
    // A call of something else is no proof.
    let (frames, _) = walked(at(0x201), &[1, second, 3, 4]);
    assert_ne!(frames.get(1), Some(&(second - 1)));
}

/// A function to which nothing but a jump leads is not found, and seems to be the end of the one before it.
#[test]
fn a_call_into_the_midst_of_a_found_function_refutes_its_frame() {
    let store = Store::new();
    let mut text = undescribed();
    text[0x380] = 0xe8;
    text[0x381..0x385].copy_from_slice(&(0x304i32 - 0x385).to_le_bytes());
    let parts = [Part {
        name: ".text",
        svma: TEXT_SVMA,
        data: text.clone(),
    }];
    let file = process(&store, X86, &text, &parts);
    let at = |offset: u64| BASE + offset;
    let ends = |last: u64| {
        let stack = [1, 2, 3, at(0x312), 8, last, 10];
        walk(Arch::X86_64, &file, &Sample::x86(at(0x10b), SP, 0, &stack)).1
    };
    // Calls of another function are from what was done before.
    assert_eq!(ends(at(0x206)), StackEnd::DumpTooShort);
    assert_eq!(ends(at(0x385)), StackEnd::NoRule);
}

/// A program that keeps no frame pointers may hold any address of the stack in rbp.
#[test]
fn a_register_that_points_behind_the_copy_is_no_proof_of_a_larger_stack() {
    let store = Store::new();
    let mut text = vec![0x90; 0x400];
    text[0x1fb..0x200].copy_from_slice(&[0xe8, 0, 0, 0, 0]);
    let parts = [Part {
        name: ".text",
        svma: TEXT_SVMA,
        data: text.clone(),
    }];
    let file = process(&store, X86, &text, &parts);
    let returns = BASE + 0x200;
    let ends = |stack: &[u64]| {
        let sample = Sample::x86(BASE + 0x100, SP, SP + 0x4000, stack);
        walk(Arch::X86_64, &file, &sample).1
    };
    assert_eq!(ends(&[returns, 1, returns, 2]), StackEnd::NoRule);
    assert_eq!(ends(&[returns, 1, 2, 3]), StackEnd::DumpTooShort);
}

/// The first frames of a leaf in code that nothing describes. At 0x200 something calls 0x100, to come back to 0x209.
fn in_undescribed(code: &[(usize, &[u8])], ip: u64, stack: &[u64]) -> Vec<u64> {
    let mut text = vec![0xcc; 0x400];
    let mut put = |at: usize, code: &[u8]| text[at..at + code.len()].copy_from_slice(code);
    // sub rsp, 8; call 0x100; add rsp, 8; ret
    put(0x200, &[0x48, 0x83, 0xec, 0x08, 0xe8]);
    put(0x205, &(0x100i32 - 0x209).to_le_bytes());
    put(0x209, &[0x48, 0x83, 0xc4, 0x08, 0xc3]);
    put(0x300, &[0xe8]);
    put(0x301, &(0x200i32 - 0x305).to_le_bytes());
    code.iter().for_each(|(at, code)| put(*at, code));
    let store = Store::new();
    let part = Part {
        name: ".text",
        svma: TEXT_SVMA,
        data: text.clone(),
    };
    let file = process(&store, X86, &text, &[part]);
    let (frames, _) = walk(Arch::X86_64, &file, &Sample::x86(BASE + ip, SP, 1, stack));
    addresses(&frames)
}

#[test]
fn where_more_is_taken_off_the_stack_than_was_put_there_no_function_begins() {
    let to_80 = (0x80i32 - 0x10c).to_le_bytes();
    let to_10c = (0x10ci32 - 0x387).to_le_bytes();
    let code: [(usize, &[u8]); 6] = [
        // push rbx; sub rsp, 16; call rdx; call 0x80
        (0x100, &[0x53, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd2, 0xe8]),
        (0x108, &to_80),
        // call rdx; test eax, eax; jne +2; jmp 0x10c; add rsp, 16; pop rbx; ret
        (0x10c, &[0xff, 0xd2, 0x85, 0xc0, 0x75, 0x02, 0xeb, 0xf8]),
        (0x114, &[0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3]),
        // lea rax, [rip+…]: to behind the call of 0x80, as if that did not come back.
        (0x380, &[0x48, 0x8d, 0x05]),
        (0x383, &to_10c),
    ];
    let stack = [1, 2, 3, BASE + 0x209, 4];
    let frames = in_undescribed(&code, 0x10e, &stack);
    assert_eq!(frames[..2], [BASE + 0x10e, BASE + 0x208]);
}

#[test]
fn padding_may_stand_before_a_loop_to_which_only_a_table_leads() {
    let code: [(usize, &[u8]); 2] = [
        // push rbp; sub rsp, 16; xor ebp, ebp; test eax, eax; jmp rax
        (0x100, &[0x55, 0x48, 0x83, 0xec, 0x10, 0x31, 0xed]),
        // (padding; by the table:) call rdx; jmp 0x107
        (
            0x107,
            &[0x85, 0xc0, 0xff, 0xe0, 0x90, 0xff, 0xd2, 0xeb, 0xf7],
        ),
    ];
    let stack = [1, 2, 3, BASE + 0x209, 4];
    let frames = in_undescribed(&code, 0x10e, &stack);
    assert_eq!(frames[..2], [BASE + 0x10e, BASE + 0x208]);
}

/// What a C library without frame information has at a thread's base: a function with a frame of 24 bytes at 0x100, and at 0x200
/// the system call's child, which calls it with an empty rbp; at 0x300 the function that calls main, to which the program's start
/// jumps by ways of its own.
fn undescribed_library() -> Vec<u8> {
    let mut text = vec![0xcc; 0x400];
    let mut put = |at: usize, code: &[u8]| text[at..at + code.len()].copy_from_slice(code);
    // push rbp; push rbx; sub rsp, 8; mov ebp, 1; call [rbx]; …; ret
    put(
        0x100,
        &[0x55, 0x53, 0x48, 0x83, 0xec, 0x08, 0xbd, 1, 0, 0, 0],
    );
    put(
        0x10b,
        &[0xff, 0x13, 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3],
    );
    // syscall; test eax, eax; jne +6; xor ebp, ebp; pop rdi; call r9; hlt; ret
    put(0x200, &[0x0f, 0x05, 0x85, 0xc0, 0x75, 0x07, 0x31, 0xed]);
    put(0x208, &[0x5f, 0x41, 0xff, 0xd1, 0xf4, 0xc3]);
    // push rbx; call rax; …; call 0x200; lea rax, [rip+0x100]
    put(0x300, &[0x53, 0xff, 0xd0, 0x5b, 0xe8]);
    put(0x305, &(0x200i32 - 0x309).to_le_bytes());
    put(0x309, &[0x48, 0x8d, 0x05]);
    put(0x30c, &(0x100i32 - 0x310).to_le_bytes());
    put(0x310, &[0x48, 0x8d, 0x05]);
    put(0x313, &(0x300i32 - 0x317).to_le_bytes());
    text
}

#[test]
fn a_call_may_lead_on_through_a_table_of_jumps_to_functions() {
    let mut text = vec![0xcc; 0x400];
    let mut put = |at: usize, code: &[u8]| text[at..at + code.len()].copy_from_slice(code);
    let to =
        |opcode: u8, from: i32, to: i32| [&[opcode][..], &(to - from - 5).to_le_bytes()].concat();
    // sub rsp, 24; call rdx; add rsp, 24; ret
    put(0x100, &[0x48, 0x83, 0xec, 0x18, 0xff, 0xd2]);
    put(0x106, &[0x48, 0x83, 0xc4, 0x18, 0xc3]);
    // jmp rax; (by the table:) jmp 0x300
    put(0x200, &[0xff, 0xe0]);
    put(0x202, &to(0xe9, 0x202, 0x300));
    // mov eax, 1; jmp 0x100
    put(0x300, &[0xb8, 1, 0, 0, 0]);
    put(0x305, &to(0xe9, 0x305, 0x100));
    // sub rsp, 8; call 0x200; call 0x100; call 0x300
    put(0x380, &[0x48, 0x83, 0xec, 0x08]);
    put(0x384, &to(0xe8, 0x384, 0x200));
    put(0x389, &to(0xe8, 0x389, 0x100));
    put(0x38e, &to(0xe8, 0x38e, 0x300));
    let store = Store::new();
    let part = Part {
        name: ".text",
        svma: TEXT_SVMA,
        data: text.clone(),
    };
    let file = process(&store, X86, &text, &[part]);
    let (leaf, caller) = (BASE + 0x106, BASE + 0x389);
    let walked = |stack: &[u64]| {
        let (frames, _) = walk(Arch::X86_64, &file, &Sample::x86(leaf, SP, 1, stack));
        addresses(&frames)
    };
    assert_eq!(walked(&[1, 2, 3, caller, 4, 5, 6])[..2], [leaf, caller - 1]);
    // What calls 0x300 leads there too, and what calls nothing of these does not.
    assert_eq!(walked(&[1, 2, 3, BASE + 0x393, 4])[1], BASE + 0x392);
    assert_ne!(
        walked(&[1, 2, 3, BASE + 0x380, 4]).get(1),
        Some(&(BASE + 0x37f))
    );
}

#[test]
fn threads_begin_where_rbp_is_cleared_and_not_saved() {
    let store = Store::new();
    let text = undescribed_library();
    let text_part = Part {
        name: ".text",
        svma: TEXT_SVMA,
        data: text.clone(),
    };
    let file = process(&store, X86, &text, &[text_part]);
    let at = |offset: u64| BASE + offset;
    let ends = |ip, stack: &[u64]| {
        let (frames, end) = walk(Arch::X86_64, &file, &Sample::x86(ip, SP, 1, stack));
        (addresses(&frames), end)
    };
    // The register is 1 in the function, and 0 where that was called.
    let (in_thread, behind_call) = (at(0x10b), at(0x20c));
    let base = [in_thread, behind_call - 1].to_vec();
    let stack = [1, 2, 0, behind_call, 3];
    assert_eq!(ends(in_thread, &stack), (base.clone(), StackEnd::Complete));
    let other_fp = [1, 2, 7, behind_call, 3];
    assert_eq!(ends(in_thread, &other_fp), (base, StackEnd::CheckFailed));
    // A call that is not known to lead here, unless it is the program's first.
    let (_, end) = ends(at(0x301), &[1, at(0x309), 0, 0]);
    assert_ne!(end, StackEnd::Complete);
}

#[test]
fn a_stack_that_was_left_is_not_told_to_be_too_large() {
    // As in OCaml 5's runtime: the CFA stands in memory that another register points to.
    const R14: u32 = 22;
    let store = Store::new();
    let text = text_of_calls(0x400);
    let mut expression = Expression::new();
    expression.op_breg(Register(14), 8);
    expression.op_deref();
    let functions = [Function::new(
        0,
        0x100,
        vec![(0, CfaExpression(expression))],
    )];
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let ends = |r14| {
        let registers = [(8, BASE + 0x20), (7, SP), (6, 0), (R14, r14)];
        walk(Arch::X86_64, &process, &Sample::new(&registers, &[1, 2])).1
    };
    assert_eq!(ends(0x5555_7000_0000), StackEnd::OtherStack);
    assert_eq!(ends(SP + 0x100), StackEnd::DumpTooShort);
}

#[test]
fn the_fibers_base_ends_a_stack() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let process = |cfa: &[u8], signal| {
        let mut functions = four_functions();
        functions[3].signal = signal;
        functions[3].rows = vec![(0, CfaExpression(Expression::raw(cfa.to_vec())))];
        process(&store, X86, &text, &[eh_frame(X86, &functions)])
    };
    let (_, expected) = four_frames();
    let stack = [
        BASE + 0x150,
        1,
        2,
        0x77,
        BASE + 0x250,
        3,
        SP + 72,
        4,
        BASE + 0x350,
        0x7fff_1234_5678,
        9,
        9,
    ];
    let sample = Sample::x86(BASE + 0x20, SP, SP + 24, &stack);
    let walked = |cfa, signal| walk(Arch::X86_64, &process(cfa, signal), &sample);
    // All of them point into another stack. wasmtime_fiber_start: DW_OP_reg7; deref; plus_uconst 0x38
    let base = (expected.clone(), StackEnd::FiberBase);
    assert_eq!(walked(&[0x57, 0x06, 0x23, 0x38], false), base);
    // corosensei's stack_init_trampoline, told to be interrupted: DW_OP_breg6 0; deref; plus_uconst 24
    assert_eq!(walked(&[0x76, 0, 0x06, 0x23, 24], true).1, base.1);
    // A realigned stack's, as gcc writes them.
    let (frames, end) = walked(&[0x76, 0x78, 0x06], false);
    assert_eq!(frames, expected);
    assert_ne!(end, StackEnd::FiberBase);
}

#[test]
fn a_stack_ends_where_a_function_begins_that_nobody_called() {
    let store = Store::new();
    // The last function is behind padding, and begins at the address to which the one before returns.
    let mut text = text_of_calls(0x400);
    let mut functions = four_functions();
    functions[2].len = 0xf0;
    let returned = |text: &[u8], behind: u64| {
        let process = process(&store, X86, text, &[eh_frame(X86, &functions)]);
        let stack = [
            BASE + 0x150,
            1,
            2,
            0x77,
            BASE + 0x250,
            3,
            0x88,
            4,
            BASE + behind,
            1,
        ];
        let sample = Sample::x86(BASE + 0x20, SP, SP + 24, &stack);
        let (frames, end) = walk(Arch::X86_64, &process, &sample);
        (addresses(&frames), end)
    };
    // A call that never returns is the last instruction of the function before.
    assert_ne!(returned(&text, 0x300).1, StackEnd::Complete);
    text[0x2f0..0x300].fill(0x90);
    let (frames, end) = returned(&text, 0x300);
    assert_eq!(end, StackEnd::Complete);
    assert_eq!(frames.last(), Some(&(BASE + 0x2ff)));
    assert_eq!(frames.len(), 4);
    // Padding behind which nothing begins.
    assert_ne!(returned(&text, 0x2fa).1, StackEnd::Complete);
}

/// The kernel's signal frame on x86-64, from the `ucontext` on, with the interrupted rip, rsp and rbp.
fn x86_signal_frame(ip: u64, sp: u64, bp: u64) -> Vec<u64> {
    let mut words = vec![0; 60];
    words[5 + 10] = bp;
    words[5 + 15] = sp;
    words[5 + 16] = ip;
    words
}

#[test]
fn crosses_signal_handlers() {
    let store = Store::new();
    let mut text = text_of_calls(0x500);
    // __restore_rt
    text[0x400..0x409].copy_from_slice(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]);
    let process = process(&store, X86, &text, &[eh_frame(X86, &four_functions())]);
    // handler (leaf) -> __restore_rt -> interrupted at the first byte of the rbp function -> …
    let interrupted_sp = SP + 8 + 60 * 8;
    let mut stack = vec![BASE + 0x400];
    stack.extend(x86_signal_frame(BASE + 0x100, interrupted_sp, 0x77));
    stack.extend([BASE + 0x250, 3, 0x88, 4, BASE + 0x350]);
    let sample = Sample::x86(BASE + 0x20, SP, 1, &stack);
    let expected = vec![
        (BASE + 0x20, Ip),
        (BASE + 0x400, Cfi),
        (BASE + 0x100, Signal),
        (BASE + 0x24f, Cfi),
        (BASE + 0x34f, Cfi),
    ];
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (expected, StackEnd::Complete)
    );
}

#[test]
fn returning_from_a_handler_is_the_handlers_frame() {
    // Sampled in the kernel, which is to go on where the program was interrupted: the ip is behind the system call.
    let store = Store::new();
    let mut text = text_of_calls(0x500);
    text[0x400..0x409].copy_from_slice(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]);
    let process = process(&store, X86, &text, &[eh_frame(X86, &four_functions())]);
    let mut stack = x86_signal_frame(BASE + 0x100, SP + 60 * 8, 0x77);
    stack.extend([BASE + 0x250, 3, 0x88, 4, BASE + 0x350]);
    let by_ip = |ip| walk(Arch::X86_64, &process, &Sample::x86(ip, SP, 1, &stack));
    let interrupted = [
        (BASE + 0x100, Signal),
        (BASE + 0x24f, Cfi),
        (BASE + 0x34f, Cfi),
    ];
    for ip in [BASE + 0x400, BASE + 0x407, BASE + 0x409] {
        let (frames, end) = by_ip(ip);
        assert_eq!((&frames[1..], end), (&interrupted[..], StackEnd::Complete));
    }
    assert_ne!(by_ip(BASE + 0x40a).0.get(1), interrupted.first());
}

#[test]
fn crosses_signal_handlers_by_call_frame_information() {
    // As glibc describes __restore_rt: every register by an expression, 'S' in the augmentation, and
    // the entry starts one byte early. The code itself is not recognisable here.
    let store = Store::new();
    let text = text_of_calls(0x500);
    let at = |offset: u8| Expression::raw(vec![0x77, offset & 0x7f | 0x80, 1]);
    let mut functions = four_functions();
    functions.push(Function {
        signal: true,
        rows: vec![
            (
                0,
                CfaExpression(Expression::raw(vec![0x77, 0xa0, 0x01, 0x06])),
            ),
            (0, CallFrameInstruction::Expression(RIP, at(0xa8))),
            (
                0,
                CallFrameInstruction::Expression(RBP, Expression::raw(vec![0x77, 0xf8, 0x00])),
            ),
            (0, CallFrameInstruction::Expression(RSP, at(0xa0))),
        ],
        ..Function::new(0x3ff, 0x20, vec![])
    });
    functions[3].len = 0xff;
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let mut stack = vec![BASE + 0x400];
    stack.extend(x86_signal_frame(BASE + 0x100, SP + 8 + 60 * 8, 0x77));
    stack.extend([BASE + 0x250, 3, 0x88, 4, BASE + 0x350]);
    let sample = Sample::x86(BASE + 0x20, SP, 1, &stack);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    let expected = vec![
        BASE + 0x20,
        BASE + 0x3ff,
        BASE + 0x100,
        BASE + 0x24f,
        BASE + 0x34f,
    ];
    assert_eq!((addresses(&frames), end), (expected, StackEnd::Complete));
}

#[test]
fn frame_pointers_carry_through_code_without_information() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let functions = [Function::new(0x300, 0x100, vec![(0, Undefined(RIP))])];
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let stack = [
        1,
        2,
        SP + 40,
        BASE + 0x150,
        3,
        SP + 56,
        BASE + 0x250,
        SP + 72,
        BASE + 0x350,
        0,
    ];
    let sample = Sample::x86(BASE + 0x21, SP, SP + 16, &stack);
    let expected = vec![
        (BASE + 0x21, Ip),
        (BASE + 0x14f, FramePointer),
        (BASE + 0x24f, FramePointer),
        (BASE + 0x34f, FramePointer),
    ];
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (expected, StackEnd::Complete)
    );
}

#[test]
fn guesses_must_return_behind_a_call() {
    let store = Store::new();
    let mut text = text_of_calls(0x400);
    text[0x140..0x150].fill(0x90);
    let process = process(&store, X86, &text, &[]);
    let stack = [1, 2, SP + 40, BASE + 0x150, 3, 0, BASE + 0x250];
    let sample = Sample::x86(BASE + 0x21, SP, SP + 16, &stack);
    assert_eq!(
        walk(Arch::X86_64, &process, &sample),
        (vec![(BASE + 0x21, Ip)], StackEnd::CheckFailed)
    );
    // Behind a program's start, a frame pointer of 0 marks the base of a thread at the end of a chain of frame
    // pointers only.
    let value = Sample::x86(BASE + 0x21, SP, 0, &stack);
    assert_eq!(
        walk(Arch::X86_64, &process, &value),
        (vec![(BASE + 0x21, Ip)], StackEnd::CheckFailed)
    );
    let mut chain = stack;
    chain[2..4].copy_from_slice(&[0, BASE + 0x250]);
    let based = Sample::x86(BASE + 0x21, SP, SP + 16, &chain);
    assert_eq!(
        walk(Arch::X86_64, &process, &based),
        (
            vec![(BASE + 0x21, Ip), (BASE + 0x24f, FramePointer)],
            StackEnd::Complete
        )
    );
    // A chain that goes down is not followed.
    let down = Sample::x86(BASE + 0x21, SP, SP - 64, &stack);
    assert_eq!(
        walk(Arch::X86_64, &process, &down),
        (vec![(BASE + 0x21, Ip)], StackEnd::CheckFailed)
    );
}

#[test]
fn entries_of_functions_without_information_are_exact() {
    let store = Store::new();
    let mut text = text_of_calls(0x400);
    text[0x20..0x24].copy_from_slice(&[0x55, 0x48, 0x89, 0xe5]);
    let functions: Vec<_> = four_functions().into_iter().skip(1).collect();
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let (sample, expected) = four_frames();
    assert_eq!(
        addresses(&walk(Arch::X86_64, &process, &sample).0),
        addresses(&expected),
        "at the push"
    );
    let mut stack = vec![SP + 24];
    stack.extend(
        sample
            .stack
            .as_chunks::<8>()
            .0
            .iter()
            .map(|w| u64::from_le_bytes(*w)),
    );
    let pushed = Sample::x86(BASE + 0x21, SP - 8, SP + 24, &stack);
    assert_eq!(
        addresses(&walk(Arch::X86_64, &process, &pushed).0)[1..],
        addresses(&expected)[1..],
        "behind it"
    );
}

#[test]
fn unmapped_leaf_returns_by_the_top_of_the_stack() {
    // A call through a null pointer.
    let store = Store::new();
    let text = text_of_calls(0x400);
    let process = process(&store, X86, &text, &[eh_frame(X86, &four_functions())]);
    let (sample, expected) = four_frames();
    let words: Vec<u64> = sample
        .stack
        .as_chunks::<8>()
        .0
        .iter()
        .map(|w| u64::from_le_bytes(*w))
        .collect();
    let null = Sample::x86(0, SP, SP + 24, &words);
    let (frames, end) = walk(Arch::X86_64, &process, &null);
    assert_eq!(
        (&addresses(&frames)[1..], end),
        (&addresses(&expected)[1..], StackEnd::Complete)
    );
}

#[test]
fn depth_is_bounded() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let process = process(
        &store,
        X86,
        &text,
        &[eh_frame(X86, &[Function::new(0, 0x400, vec![])])],
    );
    let sample = Sample::x86(BASE + 0x20, SP, 0, &[BASE + 0x20; 100]);
    let (frames, end) = walk(Arch::X86_64, &process, &sample);
    assert_eq!((frames.len(), end), (64, StackEnd::TooDeep));
}

const X29: Register = Register(29);
const X30: Register = Register(30);
/// `stp x29, x30, [sp, #-32]!; mov x29, sp`
fn arm_frame() -> Vec<(u32, CallFrameInstruction)> {
    vec![
        (4, CfaOffset(32)),
        (4, Offset(X29, -32)),
        (4, Offset(X30, -24)),
    ]
}

/// `bl` everywhere.
fn text_of_bl(len: usize) -> Vec<u8> {
    0x9400_0010u32.to_le_bytes().repeat(len / 4)
}

fn arm_functions() -> Vec<Function> {
    vec![
        Function::new(0x000, 0x100, vec![]),
        Function::new(0x100, 0x100, arm_frame()),
        Function::new(0x200, 0x100, arm_frame()),
        Function::new(0x300, 0x100, vec![(0, Undefined(X30))]),
    ]
}

#[test]
fn arm_leaf_returns_by_its_link_register() {
    let store = Store::new();
    let process = process(
        &store,
        ARM,
        &text_of_bl(0x400),
        &[eh_frame(ARM, &arm_functions())],
    );
    // The signature is in bits 54 to 48, bit 55 clear.
    let signed = |address: u64| address | 0x0062 << 48;
    let stack = [
        SP + 32,
        signed(BASE + 0x250),
        0,
        0,
        0,
        signed(BASE + 0x350),
        0,
        0,
    ];
    let sample = Sample::arm(BASE + 0x20, SP, SP, signed(BASE + 0x150), &stack);
    let expected = vec![
        (BASE + 0x20, Ip),
        (BASE + 0x14f, Cfi),
        (BASE + 0x24f, Cfi),
        (BASE + 0x34f, Cfi),
    ];
    assert_eq!(
        walk(Arch::Aarch64, &process, &sample),
        (expected, StackEnd::Complete)
    );
    // A caller that has not saved its return address cannot be: no endless loop.
    let stuck = Sample::arm(BASE + 0x20, SP, SP, BASE + 0x50, &stack);
    assert_eq!(
        walk(Arch::Aarch64, &process, &stuck).1,
        StackEnd::CheckFailed
    );
}

#[test]
fn arm_signed_return_addresses_have_their_instruction() {
    let store = Store::new();
    let mut functions = arm_functions();
    functions[1].rows.insert(0, (0, NegateRaState));
    functions[2].rows.push((8, NegateRaState));
    let process = process(
        &store,
        ARM,
        &text_of_bl(0x400),
        &[eh_frame(ARM, &functions)],
    );
    let stack = [SP + 32, BASE + 0x250, 0, 0, 0, BASE + 0x350, 0, 0];
    let sample = Sample::arm(BASE + 0x20, SP, SP, BASE + 0x150, &stack);
    let (frames, end) = walk(Arch::Aarch64, &process, &sample);
    assert_eq!((frames.len(), end), (4, StackEnd::Complete));
}

#[test]
fn arm_signal_frames_give_the_interrupted_pc() {
    let store = Store::new();
    let mut text = text_of_bl(0x500);
    text[0x400..0x408].copy_from_slice(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4]);
    let process = process(&store, ARM, &text, &[eh_frame(ARM, &arm_functions())]);
    // The handler (leaf) returns to the trampoline with sp at the signal frame.
    let mut stack = vec![0u64; 80];
    let interrupted_sp = SP + 80 * 8;
    stack[39 + 29] = interrupted_sp;
    stack[39 + 30] = BASE + 0x150;
    stack[39 + 31] = interrupted_sp;
    stack[39 + 32] = BASE + 0x40;
    stack.extend([interrupted_sp + 32, BASE + 0x350, 0, 0]);
    let sample = Sample::arm(BASE + 0x20, SP, SP, BASE + 0x400, &stack);
    let expected = vec![
        (BASE + 0x20, Ip),
        (BASE + 0x400, Cfi),
        (BASE + 0x40, Signal),
        (BASE + 0x14f, Cfi),
        (BASE + 0x34f, Cfi),
    ];
    assert_eq!(
        walk(Arch::Aarch64, &process, &sample),
        (expected, StackEnd::Complete)
    );
    // In the kernel, behind the system call.
    let sample = Sample::arm(BASE + 0x408, SP, SP, BASE + 0x400, &stack);
    let (frames, end) = walk(Arch::Aarch64, &process, &sample);
    let expected = [BASE + 0x408, BASE + 0x40, BASE + 0x14f, BASE + 0x34f];
    assert_eq!(
        (addresses(&frames), end),
        (expected.to_vec(), StackEnd::Complete)
    );
}

#[test]
fn arm_frame_records_lead_back_into_call_frame_information() {
    // Code without information, then a function whose CFA counts from a stack pointer that a frame record
    // does not give: its saved x29 is found at x29.
    let store = Store::new();
    let functions: Vec<_> = arm_functions().into_iter().skip(1).collect();
    let process = process(
        &store,
        ARM,
        &text_of_bl(0x400),
        &[eh_frame(ARM, &functions)],
    );
    let stack = [
        0,
        0,
        SP + 64,
        BASE + 0x150,
        1,
        1,
        1,
        1,
        SP + 96,
        BASE + 0x350,
        2,
        2,
    ];
    // The link register points into the function itself: it has called something.
    let sample = Sample::arm(BASE + 0x20, SP, SP + 16, BASE + 0x30, &stack);
    let expected = vec![
        (BASE + 0x20, Ip),
        (BASE + 0x14f, FramePointer),
        (BASE + 0x34f, Cfi),
    ];
    assert_eq!(
        walk(Arch::Aarch64, &process, &sample),
        (expected, StackEnd::Complete)
    );
}

#[test]
fn arm_leaf_caller_by_link_register() {
    let store = Store::new();
    let process = process(
        &store,
        ARM,
        &text_of_bl(0x400),
        &[eh_frame(ARM, &arm_functions())],
    );
    let tables = std::sync::Arc::new(crate::unwind::CfiTables::new());
    let mut unwinder = crate::unwind::Unwinder::new(Some(Arch::Aarch64), tables);
    let sample = Sample::new(&[(30, BASE + 0x150)], &[]);
    let state = sample.state();
    let mut caller = |ip: u64| {
        unwinder
            .leaf_caller(crate::address::Avma(ip), &state.regs, None, &process)
            .map(|a| a.0)
    };
    assert_eq!(caller(BASE + 0x20), Some(BASE + 0x14f), "a leaf");
    assert_eq!(
        caller(BASE + 0x100),
        Some(BASE + 0x14f),
        "before the frame is built"
    );
    assert_eq!(caller(BASE + 0x104), None, "saved on the stack");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Damaged frame information, registers and stacks: no panic, no hang.
    #[test]
    fn hostile_bytes_end_the_walk(
        noise in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        words in proptest::collection::vec(prop_oneof![any::<u64>(), BASE..BASE + 0x400, SP..SP + 0x200], 0..64),
        ip in BASE..BASE + 0x400,
        fp in prop_oneof![any::<u64>(), SP..SP + 0x200],
        arm in any::<bool>(),
    ) {
        let (machine, arch, functions) =
            if arm { (ARM, Arch::Aarch64, arm_functions()) } else { (X86, Arch::X86_64, four_functions()) };
        let mut eh = eh_frame(machine, &functions);
        let mut hdr = search_table(&functions, &eh, 0);
        for (at, byte) in &noise {
            let data = if *byte < 32 { &mut hdr.data } else { &mut eh.data };
            let len = data.len();
            data[at.index(len)] = *byte;
        }
        let store = Store::new();
        let process = process(&store, machine, &text_of_calls(0x400), &[eh, hdr]);
        let sample = if arm { Sample::arm(ip, SP, fp, BASE + 0x150, &words) } else { Sample::x86(ip, SP, fp, &words) };
        let (frames, _) = walk(arch, &process, &sample);
        prop_assert!(!frames.is_empty() && frames.len() <= 64);
        prop_assert!(frames[1..].iter().all(|f| !matches!(process.locate(crate::address::Avma(f.0)), CodeLocation::Nothing)));
    }
}

#[test]
fn functions_without_a_frame_are_known_by_their_frame_information() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let pushed = vec![(1, CfaOffset(16)), (1, Offset(RBP, -16)), (9, CfaOffset(8))];
    let mut functions = four_functions();
    functions.push(Function::new(0x380, 0x80, pushed));
    functions[3].len = 0x80;
    let process = process(&store, X86, &text, &[eh_frame(X86, &functions)]);
    let mut unwinder = Unwinder::new(Some(Arch::X86_64), Arc::new(CfiTables::new()));
    use crate::unwind::FramePointer::{Callers, Other, Own};
    let cases = [
        // Never a frame; before and behind the set-up of one; the register saved, and no frame.
        (0x20, Callers),
        (0x100, Callers),
        (0x110, Own),
        (0x202, Callers),
        (0x210, Other),
        // Saved, and then restored.
        (0x384, Other),
        (0x38a, Callers),
        // The outermost function has no caller.
        (0x320, Own),
    ];
    for (at, expected) in cases {
        let found = unwinder.frame_pointer(Avma(BASE + at), &process);
        assert_eq!(found, expected, "{at:x}");
    }
}

#[test]
fn haskells_stack_is_another_one() {
    let store = Store::new();
    let text = text_of_calls(0x400);
    let end = |names: &[u8]| {
        let names = Part {
            name: ".strtab",
            data: names.to_vec(),
            ..eh_frame(X86, &[])
        };
        let process = process(&store, X86, &text, &[names]);
        // rbp is the pointer to Haskell's stack.
        let sample = Sample::x86(BASE + 0x20, SP, 0x42_0000_1000, &[1, 2, 3, 4]);
        walk(Arch::X86_64, &process, &sample).1
    };
    assert_eq!(end(b"\0main\0stg_upd_frame_info\0"), StackEnd::OtherStack);
    assert_eq!(
        end(b"\0main\0stg_upd_frame_info_of_c\0"),
        StackEnd::CheckFailed
    );
}
