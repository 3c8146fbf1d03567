//! Walks through PHP's JIT code, which runs in the frame of the interpreter's loop.

use gimli::Register;
use gimli::write::CallFrameInstruction::{CfaOffset, Offset, Undefined};

use super::support::*;
use crate::address::Avma;
use crate::input::Store;
use crate::jit::{CodeList, JitCodeId, codes_of};
use crate::jitdump::testing::DumpWriter;
use crate::stack_end::StackEnd;
use crate::unwind::{Arch, CodeLocation, CodeSpace};

const X86: u16 = 62;
const BASE: u64 = 0x5555_0000_0000;
const CODE: u64 = 0x7f00_0000_0000;
const SP: u64 = 0x7ffe_0000_1000;

/// A process that maps one file with PHP in its name, and has one trace.
struct Php<'a> {
    files: Process<'a>,
    codes: CodeList<'a>,
}

impl<'a> CodeSpace<'a> for Php<'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        let code = self.codes.all().next().expect("one trace");
        if code.range().contains(at) {
            return CodeLocation::Jit {
                id: JitCodeId(0),
                code,
                offset: at.since(code.start()),
            };
        }
        self.files.locate(at)
    }

    fn mapped_files(&self, part: &[u8]) -> Vec<CodeLocation<'_, 'a>> {
        assert_eq!(part, b"php");
        let place = self.locate(Avma(BASE));
        assert!(
            matches!(place, CodeLocation::File { .. }),
            "the file is mapped"
        );
        vec![place]
    }
}

/// `.dynsym` and `.dynstr` with an import and a function, both of the given name.
fn exports(name: &str, svma: u64) -> [Part; 2] {
    let symbol = |section: u8, value: u64| {
        let mut symbol = vec![1, 0, 0, 0, 0x12, 0, section, 0];
        symbol.extend(value.to_le_bytes());
        symbol.extend(0x100u64.to_le_bytes());
        symbol
    };
    let part = |name, svma, data| Part { name, svma, data };
    let symbols = [vec![0; 24], symbol(0, 0), symbol(1, svma)].concat();
    let names = format!("\0{name}\0");
    [
        part(".dynsym", 0x30_0000, symbols),
        part(".dynstr", 0x31_0000, names.into_bytes()),
    ]
}

#[test]
fn traces_leave_by_the_frame_of_the_interpreters_loop() {
    let store = Store::new();
    let text: Vec<u8> = [0xff, 0xd0].repeat(0x200);
    // execute_ex with a frame of 48 bytes, and the thread's start.
    let functions = [
        Function::new(
            0x100,
            0x100,
            vec![
                (1, CfaOffset(16)),
                (1, Offset(Register(6), -16)),
                (5, CfaOffset(48)),
            ],
        ),
        Function::new(0x300, 0x100, vec![(0, Undefined(Register(16)))]),
    ];
    let dump = |code: &str| {
        let mut dump = DumpWriter::new(1, 0);
        dump.load(1, 1, CODE, 0, code.as_bytes(), &[0x90; 64]);
        store.keep(dump.bytes)
    };
    let (trace, exit) = ("TRACE-1$fib$3", "JIT$$trace_exit");
    // As it is, below a stub's return address, and below padding; with all registers where a trace is left.
    let few = [vec![], vec![CODE + 8], vec![1, 2]];
    let all = [vec![CODE + 8; 32], vec![CODE + 8; 34]];
    for (name, code, ways, end) in [
        ("execute_ex", trace, &few[..], StackEnd::Complete),
        ("execute", trace, &few, StackEnd::CheckFailed),
        ("execute_ex", exit, &all, StackEnd::Complete),
        ("execute_ex", trace, &all, StackEnd::CheckFailed),
    ] {
        let [symbols, names] = exports(name, TEXT_SVMA + 0x100);
        let parts = [eh_frame(X86, &functions), symbols, names];
        let file = image(X86, &text, &parts);
        let process = Php {
            files: Process::of(&store, BASE, file, text.len() as u64),
            codes: codes_of(dump(code), None, &store),
        };
        for pushed in ways {
            let mut stack = pushed.clone();
            stack.extend([3, 4, 5, 6, 7, BASE + 0x350]);
            let sample = Sample::x86(CODE + 20, SP, 9, &stack);
            let (frames, found) = walk(Arch::X86_64, &process, &sample);
            assert_eq!(found, end, "{name}");
            let expected = [CODE + 20, BASE + 0x34f];
            let frames = addresses(&frames);
            assert_eq!(frames == expected, end == StackEnd::Complete, "{frames:x?}");
        }
    }
}
