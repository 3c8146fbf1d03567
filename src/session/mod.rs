//! The history: who ran, what was mapped or jitted, when.
//!
//! Built once from the delivered records, immutable afterwards and shared by all workers.

pub mod jit;
