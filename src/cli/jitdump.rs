//! `pjit jitdump`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::input::{Door, Store};
use crate::jitdump::lint::{Grade, lint};
use crate::jitdump::survey::survey;
use crate::output::jitdump::{Lists, write_lists, write_summary};
use crate::runtimes::dump_names::numbers_of_dump;

use super::page::Page;
use super::refusal::said;
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::{Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit jitdump jit-4711.dump", ""),
        (
            "pjit jitdump --functions jit-4711.dump | sort -k3 -n | tail",
            "the largest",
        ),
        ("pjit jitdump --records jit-4711.dump | less", ""),
        ("pjit jitdump --strict *.dump", "in a runtime's own tests"),
    ],
    short: &[],
    notes: "pjit prints a summary of each file, then lints. An error loses or misreads something. A warning leaves the format. A note is good to know. [0x...] is the offset of the first record that the lint is about. Known habits of a runtime are marked as usual.\n\nExit status: 0 done, 1 unreadable file or lint errors with --strict, 2 wrong arguments.",
};

/// Arguments of `pjit jitdump`.
#[derive(Debug, Clone, Args)]
pub struct JitdumpArgs {
    /// Dumps to read
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// List functions; marks are L lines, U unwinding, u empty table, c cut code
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

    /// Exit with status 1 if a lint is an error
    #[arg(long = "strict")]
    pub strict: bool,

    /// Write to FILE
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    replace: ReplaceArgs,
}

impl Verb for JitdumpArgs {
    /// Describes dumps one after the other; one that cannot be read does not keep the others from being.
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let mut out = Output::to(self.output.as_deref(), self.replace.force_output)?;
        let (mut failed, mut described) = (false, false);
        for (number, path) in self.files.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            match jitdump(path, self.lists(), &mut out)? {
                Ok(worst) => {
                    described = true;
                    failed |= self.strict && worst == Some(Grade::Error);
                }
                Err(problem) => {
                    out.flush()?;
                    let lines = said("error", &problem, None);
                    let _ = std::io::stderr().write_all(lines.as_bytes());
                    failed = true;
                }
            }
        }
        // What is in the file stays when there is nothing to put there.
        if described || self.output.is_none() {
            out.finish()?;
        }
        Ok(if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
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

/// The process id in the name of a dump, `jit-PID.dump` or `jit-TID-PID.dump`, that fits its header best: `header_pid`
/// if that is among the numbers.
fn pid_in_name(path: &Path, header_pid: u32) -> Option<u32> {
    let numbers = numbers_of_dump(path.file_name()?.as_encoded_bytes())?;
    let own = numbers.iter().find(|&&number| number == header_pid);
    own.or(numbers.last()).copied()
}

/// Describes one dump; the worst of its lints, or why it cannot be read.
fn jitdump(
    path: &Path,
    lists: Lists,
    out: &mut Output,
) -> std::io::Result<Result<Option<Grade>, String>> {
    let store = Store::new();
    let bytes = match store.map(&Door::named(path)) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let survey = match survey(bytes) {
        Ok(survey) => survey,
        Err(error) => return Ok(Err(format!("{}: {error}", path.display()))),
    };
    let findings = lint(&survey, pid_in_name(path, survey.header.pid));
    write_summary(path.as_os_str().as_encoded_bytes(), &survey, &findings, out)?;
    write_lists(bytes, &survey, lists, out)?;
    Ok(Ok(findings.iter().map(|finding| finding.grade).max()))
}
