//! jitdump files and perf maps: bytes in, code entries out.
//!
//! Parses one `jit-PID.dump` ([`dump`], with [`debug_info`] and [`unwinding`] for what comes with a
//! load) or one `perf-PID.map` ([`perfmap`]) without copying, and survives what runtimes really
//! write: cut records, foreign headers in the middle, both byte orders, garbage names. Which process
//! and time an entry belongs to is decided in [`crate::session`]. [`survey`] and [`lint`] describe and judge a
//! dump for the authors of runtimes.

mod bytes;
pub mod debug_info;
pub mod dump;
pub mod lint;
pub mod overlap;
pub mod perfmap;
pub mod survey;
#[cfg(test)]
mod survey_tests;
#[cfg(test)]
pub(crate) mod testing;
pub mod unwinding;

pub(crate) use bytes::ByteOrder;
