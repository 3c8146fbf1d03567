//! The ground, which knows no stage: addresses and numbers, what is kept once, messages, units, and what is known of the runtimes
//! that make code.

pub mod address;
pub mod arch;
pub mod build_id;
pub mod diagnostics;
pub mod disasm;
pub mod ids;
pub mod intern;
pub mod metrics;
pub mod near;
pub mod needs;
pub(crate) mod parallel;
pub(crate) mod rbtree;
pub mod run_state;
pub mod runtimes;
pub mod span_spec;
pub mod stack_end;
pub mod tags;
pub mod time_spec;
pub mod unit;
pub(crate) mod unseen;
pub(crate) mod zstd;
