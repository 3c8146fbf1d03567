//! What files say, without what it means: recordings, dumps of JIT code, programs with their symbols.

pub mod dso;
pub mod jitdump;
pub mod perfdata;
