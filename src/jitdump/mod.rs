//! jitdump files and perf maps: bytes in, code entries out.
//!
//! Parses one `jit-PID.dump` ([`dump`]) or one `perf-PID.map` ([`perfmap`]) without copying, and
//! survives what runtimes really write: cut records, foreign headers in the middle, both byte
//! orders, garbage names. Which process and time an entry belongs to is decided in
//! [`crate::session`].

pub mod dump;
pub mod perfmap;
