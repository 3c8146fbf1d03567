//! Sizes of frames by chains of frame pointers: what lies between a call's stack pointer and its function's frame pointer.
//!
//! In: copied stacks with code that keeps frame pointers, and of which no bytes are at hand. Out: sizes, which tell in a
//! method that was interrupted whether its own frame is there. Asked before stacks are walked.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::arch::Architecture;
use super::stack::Stack;
use super::x86_64::X86_64;
use super::{CodeLocation, CodeSpace, UserState};
use crate::address::Avma;
use crate::arch::Arch;
use crate::jit::{JitCode, JitCodeId};
use crate::runtimes::Habit;

/// Whether frames of code can be told by their size, and by nothing better.
pub(super) fn counts(code: JitCode<'_, '_>) -> bool {
    code.bytes().is_empty() && code.habit() == Habit::CallersKeepFrames
}

/// Frames that were met: their process, frame pointer and words, and the code that they return to if it is such code.
#[derive(Default)]
pub struct Met(FxHashMap<[u64; 4], Option<JitCodeId>>);

/// Hands out the frames in a sample's stack whose size is certain: those between two calls in code that keeps frame pointers, where
/// the callee's frame begins where the caller's stack pointer was.
pub fn frame_sizes<'a, S: CodeSpace<'a>>(
    arch: Arch,
    state: &UserState<'_>,
    (process, code): (u64, &S),
    met: &mut Met,
    mut found: impl FnMut(JitCodeId, u64),
) {
    /// Frames that are looked at: what repeats does so further out.
    const MOST: usize = 16;
    /// After so many frames that were met one after the other, those further out are the same as a rule.
    const ENOUGH: usize = 2;
    type A = X86_64;
    let regs = &state.regs;
    if arch != Arch::X86_64 || regs.abi != A::ABI {
        return;
    }
    let start = (A::register(regs, A::SP), A::register(regs, A::FP));
    let (Some(sp), Some(mut fp)) = start else {
        return;
    };
    let stack = Stack::new(sp, state.stack);
    let word_size = u64::from(A::WORD);
    // Whether the frame at `fp` is one of such code.
    let (mut is_known, mut old) = (false, 0);
    for _ in 0..MOST {
        let saved = stack.word::<A>(fp).filter(|outer| *outer > fp);
        let behind = fp.checked_add(word_size);
        let address = behind.and_then(|at| stack.word::<A>(at));
        let (Some(outer), Some(address)) = (saved, address) else {
            return;
        };
        let caller = match met.0.entry([process, fp, outer, address]) {
            Entry::Occupied(before) => {
                old += 1;
                *before.get()
            }
            Entry::Vacant(new) => {
                old = 0;
                *new.insert(match code.locate(Avma(address.wrapping_sub(1))) {
                    CodeLocation::Jit { id, code, .. } if counts(code) => Some(id),
                    _ => None,
                })
            }
        };
        let size = outer.checked_sub(fp.saturating_add(2 * word_size));
        if let (true, Some(id), Some(size)) = (is_known, caller, size) {
            found(id, size);
        }
        if old == ENOUGH {
            return;
        }
        is_known = caller.is_some();
        fp = outer;
    }
}
