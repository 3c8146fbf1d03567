//! `pjit jitdump`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::input::{Door, Store};
use crate::jitdump::lint::{Grade, lint};
use crate::jitdump::survey::survey;
use crate::output::jitdump::{Lists, write_lists, write_summary};
use crate::output::text::harmless;
use crate::runtimes::dump_names::numbers_of_dump;

use super::target::ReplaceArgs;
use super::terminal::Output;
use super::{Context, Verb};

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

    #[command(flatten)]
    replace: ReplaceArgs,
}

impl Verb for JitdumpArgs {
    /// Describes dumps one after the other; one that cannot be read does not keep the others from being.
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let mut out =
            Output::to(self.output.as_deref(), self.replace.force_output).context("output")?;
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
                    let line = harmless(&problem).into_owned();
                    let _ = writeln!(std::io::stderr(), "pjit: {line}");
                    failed = true;
                }
            }
        }
        // What is in the file stays when there is nothing to put there.
        if described || self.output.is_none() {
            out.finish().context("output")?;
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
    write_lists(bytes, survey.producer, lists, out)?;
    Ok(Ok(findings.iter().map(|finding| finding.grade).max()))
}
