//! Recording: what `pjit record` sets, starts and gathers.
//!
//! Two halves, and [`fetch`], which has debuginfod's client bring what a recording lacks. [`plan`] is pure: facts of the machine and a command in, an environment, perf's options and what cannot be had
//! out. `run` is the room of pjit that starts programs, besides the pager of the command line and that client: it tries, starts the command,
//! attaches perf, and puts what belongs to the recording into one folder.

pub mod fetch;
pub mod plan;
#[cfg(target_os = "linux")]
pub mod run;
