//! Recording: what `pjit record` sets, starts and gathers.
//!
//! Two halves. [`plan`] is pure: facts of the machine and a command in, an environment, perf's options and what cannot be had
//! out. `run` is the only room of pjit that starts programs, besides the pager of the command line: it tries, starts the command,
//! attaches perf, and puts what belongs to the recording into one folder.

pub mod plan;
#[cfg(target_os = "linux")]
pub mod run;
