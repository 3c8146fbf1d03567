//! Code without frames of its own, as PHP's JIT makes: the interpreter's loop `execute_ex` jumps to it and it jumps back, with the
//! stack pointer as it is in the loop. So the way to the caller is that of the loop's body.
//!
//! In: the files that a process maps, and whose frame it is. Out: the candidates for its JIT code. Asked by [`super::maker`], once
//! for each dump.

use object::elf::{SHT_DYNSYM, STT_FUNC};

use super::rules::{Candidate, Candidates, Check, Kind, Rule};
use super::{CodeLocation, CodeSpace, FrameOrigin};
use crate::address::Svma;
use crate::dso::elf::ElfFile;
use crate::dso::symtab::{RawSymbol, RawTable};
use crate::runtimes::HostLoop;

/// What JIT code may have on the stack below the loop's frame: nothing, the return address of a stub that
/// it calls, the padding of builds without a red zone (`HYBRID_SPAD` in `zend_jit_x86.dasc`).
const PUSHED: [i32; 3] = [0, 8, 16];

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

/// The ways out of JIT code, given the rule of the loop's body.
pub(super) fn candidates(body: &Rule) -> Candidates {
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
    PUSHED.into_iter().map(with).collect()
}

/// Address of a function in a file's `.dynsym`.
fn exported(file: &ElfFile<'_>, name: &[u8]) -> Option<Svma> {
    let table = RawTable::of(file, ".dynsym", SHT_DYNSYM)?;
    let is_wanted = |symbol: &RawSymbol| {
        symbol.kind() == STT_FUNC && symbol.is_defined() && table.name(*symbol) == name
    };
    let symbol = table.iter().find(is_wanted)?;
    Some(Svma(symbol.value))
}
