//! From samples to stacks: what samples weigh, who called whom, equal stacks counted once, and cut ones completed.

pub mod collect;
pub mod stitch;
pub mod unwind;
pub mod weigh;
