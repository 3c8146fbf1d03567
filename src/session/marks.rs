//! Moments in the lives of threads: switches, births, programs, ends.
//!
//! Kept only when a weight pairs events ([`crate::weigh`]), in delivery order, with their place among the samples.

use super::{Filter, SampleId};
use crate::address::Timestamp;
use crate::ids::{CommId, ThreadId};
use crate::jit::ProcessId;

/// What the session is to keep.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Which samples.
    pub filter: Filter,
    /// Moments in the lives of threads.
    pub marks: bool,
    /// How many threads ran at each sample.
    pub parallelism: bool,
}

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// So many samples were delivered before it.
    pub before: SampleId,
    /// Whose life.
    pub thread: ThreadId,
    /// The thread's comm at that time.
    pub comm: CommId,
    /// When.
    pub time: Timestamp,
    /// What happened.
    pub what: Moment,
}

/// What happened to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It got a processor.
    In,
    /// It lost its processor.
    Out {
        /// It could have run on.
        preempted: bool,
    },
    /// It was made.
    Born {
        /// By a thread of this process.
        parent: ProcessId,
        /// It is the first of this process, which has a copy of its parent's memory.
        child: ProcessId,
    },
    /// Its process began a new program.
    Exec(ProcessId),
    /// It ended.
    Exit,
    /// It did something that only who runs can do.
    Ran,
}
