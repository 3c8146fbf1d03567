//! The part of a row's identity that does not come from a frame.

use crate::run_state::RunState;

/// The parts of a row's identity that do not come from a frame; unused parts are constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    pub(crate) event: u16,
    pub(crate) filtered: bool,
    /// The rest, equal for equal values; compared between events of a group.
    pub(crate) keys: ContextKeys,
}

/// See [`Context`]. Ranks are in byte order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ContextKeys {
    pub(crate) comm: u32,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: i32,
    pub(crate) socket: i32,
    pub(crate) time: u64,
    pub(crate) cgroup: u32,
    pub(crate) trace: u32,
    pub(crate) state: RunState,
    /// Rank of the parent's name, [`NONE`] if there is none.
    pub(crate) parent: u32,
}
