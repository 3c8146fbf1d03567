//! What a recording tells of a process' JIT code: which dumps it mapped, and what happened to its code otherwise.

use super::ProcessId;
use super::memory::Again;
use crate::address::{AvmaRange, Timestamp};
use crate::ids::numbers;

numbers! {
    /// A marker among those that were met.
    pub(super) struct MarkerId(u32);
}

/// A process' first mapping of a dump.
pub(super) struct Marker {
    pub(super) process: ProcessId,
    pub(super) pid: u32,
    /// As recorded, or as it must have been before `perf inject --jit`.
    pub(super) path: Vec<u8>,
    /// The process id in the name, as the writer saw it.
    pub(super) number: u32,
    pub(super) injected: bool,
    /// The file's inode, where it is told.
    pub(super) inode: Option<u64>,
    /// [`Timestamp::START`] if the record was synthesised.
    pub(super) time: Timestamp,
}

/// What happens to a process' code other than through a dump.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Fork {
        parent: ProcessId,
        child: ProcessId,
    },
    Exec(ProcessId),
    Mapped(ProcessId, AvmaRange),
    /// Executable memory without a file where there was some before. Another file of memory (`memfd`) than before ends all code.
    Again(ProcessId, AvmaRange, Again),
}
