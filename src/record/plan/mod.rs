//! What will be done, before anything is.
//!
//! In: what was asked for and facts of the machine. Out: variables for runtimes, options of perf, notes on what cannot be had
//! and the command that mends it. Opens nothing, starts nothing: the same facts make the same plan.

pub mod command;
pub mod environment;
pub mod options;
pub mod probes;
pub mod trouble;
pub mod typed;

use std::ffi::OsString;
use std::path::PathBuf;

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A command, with all that it starts.
    Command(Vec<OsString>),
    /// Running processes.
    Processes(Vec<u32>),
    /// The whole machine.
    Machine,
}

impl Target {
    /// What folders of it are called.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Command(words) => command::name(words),
            Self::Processes(pids) => format!("pid{}", pids.first().copied().unwrap_or_default()),
            Self::Machine => "machine".to_owned(),
        }
    }
}

/// What the machine lets us do, as far as settings tell.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// `perf_event_paranoid`.
    pub paranoid: Option<i64>,
    /// Kilobytes of ring for each processor that an ordinary user may have, `perf_event_mlock_kb`.
    pub mlock_kb: Option<u64>,
    /// Bytes that this process may lock; none for no limit.
    pub memlock: Option<u64>,
    /// Processors.
    pub cpus: u64,
    /// Samples a second that the kernel takes at most.
    pub max_rate: Option<u64>,
    /// Whether names of kernel functions are hidden.
    pub hides_kernel: bool,
    /// `kptr_restrict`.
    pub kptr_restrict: Option<i64>,
    /// Whether this is root, be it of a container alone.
    pub is_root: bool,
    /// Whether the size of rings is not limited: `CAP_IPC_LOCK`, of the machine and not of a namespace.
    pub locks_freely: bool,
    /// Whether the kernel may be recorded whatever the settings say: `CAP_PERFMON` or `CAP_SYS_ADMIN` of the machine.
    pub sees_kernel: bool,
    /// Whether the folder in which the command stands can be written.
    pub here_is_writable: bool,
    /// The same of `/tmp`.
    pub temporary_is_writable: bool,
    /// Whether the Erlang on PATH tells perf of its code; none without one.
    pub erlang_tells: Option<bool>,
    /// The folder in which the command stands.
    pub here: PathBuf,
}

/// Something to know, and the command that mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What is so.
    pub text: String,
    /// What changes it, if anything does.
    pub remedy: Option<String>,
    /// Whether that is the command to type next.
    pub is_next: bool,
    /// Whether it matters only where samples were lost.
    pub is_of_loss: bool,
}

impl Note {
    /// Something that nothing mends.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            remedy: None,
            is_next: false,
            is_of_loss: false,
        }
    }

    /// The same with what mends it.
    #[must_use]
    pub fn mended_by(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// The same with the command that mends it, to be typed next.
    #[must_use]
    pub fn mended_next_by(self, command: impl Into<String>) -> Self {
        Self {
            is_next: true,
            ..self.mended_by(command)
        }
    }
}
