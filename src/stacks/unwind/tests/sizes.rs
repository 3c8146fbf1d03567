//! Methods of which names and places are known and no bytes, in code that keeps frame pointers: whether the frame of the one that
//! was interrupted is there, by the sizes of frames.

use super::support::*;
use crate::address::Avma;
use crate::input::Store;
use crate::jit::{CodeList, JitCodeId, map_with_frames_of};
use crate::session::frame_sizes::FrameSizes;
use crate::stack_end::StackEnd;
use crate::unwind::FrameOrigin::{FramePointer, Frameless, Ip, PastFrames};
use crate::unwind::{Arch, CodeLocation, CodeSpace, FrameOrigin, Met, frame_sizes};

const CODE: u64 = 0x7f00_0000_0000;
const SP: u64 = 0x7ffe_0000_1000;

/// The code of the process, in this order.
const NAMES: [&str; 6] = [
    "int A.leaf(int)",
    "int A.middle(int)",
    "int A.main(int)",
    "Interpreter",
    "vtable chunks",
    "InlineCacheBuffer",
];
const LEAF: usize = 0;
const MIDDLE: usize = 1;
const MAIN: usize = 2;
const INTERPRETER: usize = 3;
const STUBS: [usize; 2] = [4, 5];

/// In the midst of a piece of code.
const fn inside(number: usize) -> u64 {
    CODE + number as u64 * 0x1000 + 0x40
}

struct Java<'a> {
    codes: CodeList<'a>,
    sizes: FrameSizes,
}

impl<'a> CodeSpace<'a> for Java<'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        let found = (0..).zip(self.codes.all());
        let mut found = found.filter(|(_, code)| code.range().contains(at));
        found
            .next()
            .map_or(CodeLocation::Nothing, |(n, code)| CodeLocation::Jit {
                id: JitCodeId(n),
                code,
                offset: at.since(code.start()),
            })
    }

    fn frame_size(&self, code: JitCodeId) -> Option<u64> {
        self.sizes.of(code)
    }
}

fn java<'a>(store: &'a Store, sizes: &[(usize, u64)]) -> Java<'a> {
    let lines = (0..).zip(NAMES);
    let lines = lines.map(|(n, name)| format!("{:x} 1000 {name}\n", CODE + n * 0x1000));
    let map: String = lines.collect();
    let mut known = FrameSizes::default();
    for &(n, size) in sizes {
        known.add(code(n), size);
    }
    Java {
        codes: map_with_frames_of(store.keep(map.into_bytes())),
        sizes: known,
    }
}

fn code(number: usize) -> JitCodeId {
    JitCodeId(u32::try_from(number).expect("few"))
}

/// Frame pointers of the three methods, and where the leaf's return address is.
const FRAMES: [u64; 3] = [SP + 16, SP + 80, SP + 128];
const RETURN: u64 = SP + 24;
/// The sizes that the frames of [`stack`] have.
const SIZES: [(usize, u64); 3] = [(LEAF, 16), (MIDDLE, 48), (MAIN, 32)];

/// The leaf in its body, called by `caller`, that by main. `left` is left over in the leaf's frame.
fn stack(caller: usize, left: u64) -> Vec<u64> {
    let mut stack = vec![left, 7, FRAMES[1], inside(caller)];
    stack.extend([7; 6]);
    stack.extend([FRAMES[2], inside(MAIN)]);
    stack.extend([7; 4]);
    stack.extend([0, 0]);
    stack
}

/// The callers of an ip, as they were found, with the stack of [`stack`] from `sp` on.
fn callers(
    java: &Java<'_>,
    ip: u64,
    (sp, fp): (u64, u64),
    stack: &[u64],
) -> (Vec<(usize, FrameOrigin)>, StackEnd) {
    let words = usize::try_from((sp - SP) / 8).expect("small");
    let sample = Sample::x86(ip, sp, fp, &stack[words..]);
    let (frames, end) = walk(Arch::X86_64, java, &sample);
    assert_eq!(frames[0], (ip, Ip));
    let number = |at: u64| usize::try_from((at - CODE) / 0x1000).expect("few");
    let callers = frames[1..].iter();
    let callers = callers.map(|(at, origin)| (number(*at), *origin));
    (callers.collect(), end)
}

/// Where a method is interrupted: before its first push and behind its last pop, between `push rbp` and `mov rbp, rsp`, in its
/// body, and before that pop.
const BARE: (u64, u64) = (RETURN, FRAMES[1]);
const SAVED: (u64, u64) = (FRAMES[0], FRAMES[1]);
const BODY: (u64, u64) = (SP, FRAMES[0]);
const CLOSED: (u64, u64) = (FRAMES[0], FRAMES[0]);

#[test]
fn sizes_tell_whether_the_frame_of_a_method_is_there() {
    let store = Store::new();
    let known = java(&store, &SIZES);
    let whole = |first| {
        let callers = vec![(MIDDLE, first), (MAIN, FramePointer)];
        (callers, StackEnd::Complete)
    };
    let stack = stack(MIDDLE, inside(MAIN));
    let of = |java, registers| callers(java, inside(LEAF), registers, &stack);
    assert_eq!(of(&known, BARE), whole(Frameless));
    assert_eq!(of(&known, SAVED), whole(Frameless));
    // What is left over at the top of the stack is no caller.
    assert_eq!(of(&known, BODY), whole(FramePointer));
    assert_eq!(of(&known, CLOSED), whole(FramePointer));
    // The size of the caller is enough where its return address is the first word.
    let callers_alone = java(&store, &SIZES[1..]);
    assert_eq!(of(&callers_alone, BARE), whole(Frameless));
}

#[test]
fn what_sizes_do_not_prove_is_marked_as_before() {
    let store = Store::new();
    let stack = stack(MIDDLE, inside(MAIN));
    let marked = (vec![(MAIN, PastFrames)], StackEnd::Complete);
    let of = |sizes: &[(usize, u64)], registers| {
        callers(&java(&store, sizes), inside(LEAF), registers, &stack)
    };
    for registers in [BARE, SAVED] {
        assert_eq!(of(&[], registers), marked);
        assert_eq!(of(&[(LEAF, 16), (MAIN, 32)], registers), marked);
        // Another size was seen, or this one and another.
        assert_eq!(of(&[(LEAF, 16), (MIDDLE, 64)], registers), marked);
        let twice = [(LEAF, 16), (MIDDLE, 48), (MIDDLE, 64)];
        assert_eq!(of(&twice, registers), marked);
    }
    // A method of unknown size may have both words from earlier calls.
    assert_eq!(of(&SIZES[1..], SAVED), marked);
    // It would be in its body, too.
    assert_eq!(of(&[(LEAF, 64), (MIDDLE, 48)], SAVED), marked);
    let body = (
        vec![(MIDDLE, PastFrames), (MAIN, FramePointer)],
        StackEnd::Complete,
    );
    assert_eq!(of(&[], BODY), body);
}

#[test]
fn a_method_that_calls_itself_has_itself_for_a_caller() {
    let store = Store::new();
    let known = java(&store, &SIZES);
    let stack = stack(MIDDLE, 7);
    for registers in [BARE, SAVED] {
        assert_eq!(
            callers(&known, inside(MIDDLE), registers, &stack).0,
            [(MIDDLE, Frameless), (MAIN, FramePointer)]
        );
    }
}

#[test]
fn stubs_that_jump_on_have_their_caller_on_the_top_of_the_stack() {
    let store = Store::new();
    let unknown = java(&store, &[]);
    for stub in STUBS {
        let found = callers(&unknown, inside(stub), BARE, &stack(MIDDLE, 7));
        let expected = vec![(MIDDLE, Frameless), (MAIN, FramePointer)];
        assert_eq!(found, (expected, StackEnd::Complete));
    }
}

#[test]
fn a_frame_that_begins_behind_the_copy_is_looked_for_nowhere_else() {
    let store = Store::new();
    let known = java(&store, &SIZES);
    let cut = &stack(MIDDLE, inside(INTERPRETER))[..2];
    let sample = Sample::x86(inside(LEAF), SP, FRAMES[0], cut);
    let (frames, end) = walk(Arch::X86_64, &known, &sample);
    assert_eq!((frames.len(), end), (1, StackEnd::DumpTooShort));
}

#[test]
fn sizes_are_those_of_frames_between_calls_of_such_code() {
    let store = Store::new();
    let space = java(&store, &[]);
    let found = |caller, (sp, fp): (u64, u64)| {
        let words = usize::try_from((sp - SP) / 8).expect("small");
        let sample = Sample::x86(inside(LEAF), sp, fp, &stack(caller, 7)[words..]);
        let mut found = Vec::new();
        let state = sample.state();
        let of = (0, &space);
        frame_sizes(
            Arch::X86_64,
            &state,
            of,
            &mut Met::default(),
            |code, size| {
                found.push((code, size));
            },
        );
        found
    };
    // Whose frame the first one is, nobody knows.
    assert_eq!(found(MIDDLE, BODY), [(code(MAIN), 32)]);
    assert_eq!(found(MIDDLE, BARE), []);
    // The interpreter puts other things between its caller's stack and its frame.
    assert_eq!(found(INTERPRETER, BODY), []);
}
