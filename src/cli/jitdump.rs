//! `pjit jitdump`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::output::jitdump::Lists;

/// Arguments of `pjit jitdump`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit jitdump jit-4711.dump
  pjit jitdump --functions jit-4711.dump | sort -k3 -n | tail    # the largest
  pjit jitdump --records jit-4711.dump | less
  pjit jitdump --strict *.dump                                   # in a runtime's own tests

Exit status: 0; 1 if a file cannot be read, or with --strict if there is an error among the lints; 2 for wrong usage.")]
pub struct JitdumpArgs {
    /// Dumps to read
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// List functions: code index, address, size, time, thread, what they have (L lines, U unwinding, u an empty table, c cut code), name
    #[arg(short = 's', long = "functions", visible_aliases = ["syms", "list"])]
    functions: bool,

    /// List all records
    #[arg(short = 'r', long = "records")]
    records: bool,

    /// List source lines of functions
    #[arg(short = 'l', long = "lines", visible_alias = "debug-info")]
    lines: bool,

    /// List unwinding information
    #[arg(short = 'u', long = "unwind")]
    unwind: bool,

    /// All lists
    #[arg(short = 'a', long = "all")]
    all: bool,

    /// Exit with status 1 when a lint is an error
    #[arg(long = "strict")]
    pub strict: bool,

    /// File to write instead of standard output; it appears when it is whole
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl JitdumpArgs {
    /// What to list.
    #[must_use]
    pub const fn lists(&self) -> Lists {
        Lists {
            functions: self.functions || self.all,
            records: self.records || self.all,
            lines: self.lines || self.all,
            unwinding: self.unwind || self.all,
        }
    }
}

/// The process id in `jit-PID.dump`.
#[must_use]
pub fn pid_in_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.as_bytes();
    let digits = name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
