//! The index of JIT code of all processes, by address and time.
//!
//! In: the dumps and perf maps that the recording's markers lead to. Out: what JIT code lay at an
//! address of a process at a time. Built once by the session builder, immutable and shared by all
//! threads afterwards.

use crate::address::{Avma, Timestamp};
use crate::jitdump::Producer;

/// One life of a process: from fork (or first sight) to exit. A pid that is used again gets a new
/// one; exec does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId(pub u32);

/// One piece of JIT code of the run: a load of a dump or an entry of a perf map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JitCodeId(pub u32);

/// One dump or perf map of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JitObjectId(pub u32);

/// A piece of JIT code.
#[derive(Debug)]
pub struct JitCode<'a> {
    /// Name as the runtime wrote it, arbitrary bytes.
    pub name: &'a [u8],
    /// Where it was loaded. Code that was moved keeps this address: everything about it is
    /// relative to it, and a [`JitHit::offset`] counts from it.
    pub start: Avma,
    /// Length in bytes; may be more than [`JitCode::bytes`] holds.
    pub size: u64,
    /// The machine code as it was dumped, from `start`; shorter than `size` where the dump was cut,
    /// empty for perf maps.
    pub bytes: &'a [u8],
    /// When it was loaded, on the recording's clock.
    pub loaded: Timestamp,
    /// The dump or perf map it comes from.
    pub object: JitObjectId,
    /// Who generated it.
    pub producer: Producer,
    companions: Option<Box<Companions<'a>>>,
}

#[derive(Debug)]
struct Companions<'a> {
    unwinding: Option<JitUnwinding<'a>>,
}

/// What a dump says about unwinding a piece of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitUnwinding<'a> {
    /// Call frame information that fits the code.
    EhFrame {
        /// The contents of `.eh_frame`, in the byte order of the recording.
        eh_frame: &'a [u8],
        /// The address of its first byte, to which pc-relative pointers refer. Counts with
        /// [`JitCode::start`] as the address of the code, also when the code was moved.
        base: Avma,
    },
    /// An empty table: the runtime asks for frame-pointer unwinding (V8 does for most code).
    FramePointer,
}

/// Where a sampled address lies in JIT code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JitHit {
    /// The code.
    pub code: JitCodeId,
    /// Bytes from its start.
    pub offset: u64,
    /// How sure that is.
    pub how: JitMatch,
}

/// How a [`JitHit`] was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum JitMatch {
    /// A load that was active at the sample's time.
    Active,
    /// The first load there after the sample's time: the runtime wrote its record late.
    Late,
    /// The copy of a loaded module (wasmtime's guest debugging).
    Twin,
    /// A perf map, which knows no times.
    PerfMap,
}

/// All JIT code of the run.
#[derive(Debug, Default)]
pub struct JitIndex<'a> {
    codes: Vec<JitCode<'a>>,
}

impl<'a> JitCode<'a> {
    /// Unwinding information that the dump holds for this code.
    #[must_use]
    pub fn unwinding(&self) -> Option<JitUnwinding<'a>> {
        self.companions.as_ref()?.unwinding
    }

    /// Source line of the code at `offset`: file as the runtime wrote it, line from 1, column (0: not told).
    #[must_use]
    pub fn line_at(&self, offset: u64) -> Option<(&'a [u8], u32, u32)> {
        let _ = offset;
        None
    }
}

impl<'a> JitIndex<'a> {
    /// The code of an id that this index gave out.
    #[must_use]
    pub fn code(&self, id: JitCodeId) -> &JitCode<'a> {
        &self.codes[id.0 as usize]
    }

    /// The code whose load is active at `time` at address `at` of `process`. Goes before file mappings.
    #[must_use]
    pub fn lookup(&self, process: ProcessId, at: Avma, time: Timestamp) -> Option<JitHit> {
        let _ = (process, at, time);
        None
    }

    /// What to try where neither [`JitIndex::lookup`] nor a file mapping knows the address: a record
    /// written late, the copy of a loaded module, the perf map, in this order.
    #[must_use]
    pub fn lookup_unmapped(&self, process: ProcessId, at: Avma, time: Timestamp) -> Option<JitHit> {
        let _ = (process, at, time);
        None
    }
}
