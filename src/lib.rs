//! pjit reads a Linux `perf` recording and everything that belongs to it, and prints profiles.
//!
//! ```text
//! perfdata ─┐
//! jitdump ──┼─► session ─► unwind ─► symbolize ─► profile ─► report ─► output
//! dso ──────┘   (history)  (parallel) (unique pcs) (one table) (views)
//! ```

pub mod address;
pub mod cli;
pub mod collect;
pub mod diagnostics;
pub mod dso;
pub mod input;
pub mod intern;
pub mod jitdump;
pub mod load;
pub mod output;
pub mod perfdata;
pub mod profile;
pub mod report;
pub mod session;
pub mod symbolize;
pub mod unwind;
