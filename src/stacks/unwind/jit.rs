//! Code without call frame information of its own: JIT code, and the odd function of a file.
//!
//! In: what is known about such code (its bytes, its bounds, who generated it). Out: the
//! [`CodeView`] from which an architecture makes its candidates, and the rules of unwinding
//! records that came with a dump. The facts about runtimes are those of their
//! releases of 2023 to 2026 (V8 11.3 and 13.6, wasmtime 48, OpenJDK 17, CPython 3.12 to 3.14, LLVM 14 and 21).

use crate::jit::JitCode;
pub(super) use crate::runtimes::Habit;

/// Code around a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeView<'c> {
    /// Bytes of the function, or of some code around the place if the function's bounds are not known.
    /// Empty when there are none.
    pub(super) code: &'c [u8],
    /// The place, counted from the first byte of `code`; behind the end if its bytes are missing.
    pub(super) at: usize,
    /// Length of the function, when its start is the start of `code`.
    pub(super) size: Option<u64>,
    /// Whether the place is an ip and not inside a call instruction.
    pub(super) leaf: bool,
    /// What its generator is known to do.
    pub(super) habit: Habit,
}

impl<'c> CodeView<'c> {
    /// The view of a place in JIT code.
    pub(super) fn of_jit(code: JitCode<'_, 'c>, offset: u64, leaf: bool) -> Self {
        Self {
            code: code.bytes(),
            at: usize::try_from(offset).unwrap_or(usize::MAX),
            size: Some(code.size()),
            leaf,
            habit: code.habit(),
        }
    }

    /// Bytes from the place on.
    pub(super) fn rest(&self) -> &'c [u8] {
        self.code.get(self.at..).unwrap_or_default()
    }

    /// Whether the function's first byte is known.
    pub(super) fn knows_start(&self) -> bool {
        self.size.is_some()
    }

    /// Distances from the place to the function's start and end, for [`super::rules::Candidate::reach`].
    pub(super) fn reach(&self) -> (u32, u32) {
        let clip = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        match self.size {
            Some(size) => (
                clip(self.at as u64),
                clip(size.saturating_sub(self.at as u64)),
            ),
            None => UNKNOWN_REACH,
        }
    }
}

/// Reach of a function whose bounds are not known.
const UNKNOWN_REACH: (u32, u32) = (4096, 4096);

/// Whether a runtime puts the code's start on the stack as a return address: the base of an Erlang process, and
/// what V8 lets optimised code that it gives up go on with.
pub(super) fn is_entered_by_return(code: JitCode<'_, '_>) -> bool {
    (code.producer().row().is_entered_by_return)(code.name())
}

/// A template interpreter, one large piece of code.
pub(super) fn is_interpreter(code: JitCode<'_, '_>) -> bool {
    let interpreter = code.producer().row().interpreter;
    interpreter.is_some_and(|name| code.name() == name)
}
