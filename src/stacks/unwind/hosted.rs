//! Code without frames of its own, as PHP's JIT makes: the interpreter's loop `execute_ex` jumps to it and it jumps back, with the
//! stack pointer as it is in the loop. So the way to the caller is that of the loop's body.
//!
//! In: the files that a process maps, and whose frame it is. Out: the candidates for its JIT code. Asked by [`super::maker`], once
//! for each dump.

use super::rules::{Candidate, Candidates, Check, Kind, Rule};
use super::{CodeLocation, CodeSpace, FrameOrigin};
use crate::address::Svma;
use crate::dso::elf::ElfFile;
use crate::runtimes::HostLoop;

/// What JIT code may have on the stack below the loop's frame: nothing, the return address of a stub that
/// it calls, the padding of builds without a red zone (`HYBRID_SPAD` in `zend_jit_x86.dasc`).
const PUSHED: [i32; 3] = [0, 8, 16];

/// What is there besides where a trace is left: the number of the exit and 31 registers (`zend_jit_trace_exit`), and that padding.
const SAVED: [i32; 2] = [256, 272];

/// The file that has the interpreter, a program or a web server's module, and where its loop is.
pub(super) fn interpreter<'s, 'a, S: CodeSpace<'a>>(
    host: &HostLoop,
    space: &'s S,
) -> Option<(CodeLocation<'s, 'a>, Svma)> {
    space.mapped_files(host.file).into_iter().find_map(|place| {
        let CodeLocation::File { binary, .. } = place else {
            return None;
        };
        Some((place, exported(binary?, host.function)?))
    })
}

/// The ways out of JIT code, given the rule of the loop's body, and whether the code may have put all registers on the stack.
pub(super) fn candidates(body: &Rule, saves_all: bool) -> Candidates {
    if body.kind != Kind::Frame {
        return Candidates::new();
    }
    let with = |pushed: i32| {
        let cfa_offset = body.cfa_offset.saturating_add(pushed);
        let rule = Rule {
            cfa_offset,
            ..*body
        };
        Candidate::new(rule, FrameOrigin::Cfi, Check::Call)
    };
    let saved = SAVED.iter().filter(|_| saves_all);
    PUSHED.iter().chain(saved).copied().map(with).collect()
}

/// Address of a function in a 64-bit file's `.dynsym`.
fn exported(file: &ElfFile<'_>, name: &[u8]) -> Option<Svma> {
    const STT_FUNC: u8 = 2;
    let symbols = file.section(".dynsym")?.data.as_chunks::<24>().0;
    let names = file.section(".dynstr")?.data;
    let is_wanted = |symbol: &&[u8; 24]| {
        let at = u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]) as usize;
        let found = names.get(at..).and_then(|tail| tail.strip_prefix(name));
        let defined = symbol[6..8] != [0, 0];
        defined && symbol[4] & 0xf == STT_FUNC && found.is_some_and(|rest| rest.first() == Some(&0))
    };
    let symbol = symbols.iter().find(is_wanted)?;
    let value = symbol.last_chunk::<16>()?.first_chunk::<8>()?;
    Some(Svma(u64::from_le_bytes(*value)))
}
