//! The command line: clap arguments in, plain option structs out. Nothing else knows clap.

pub mod callgraph;
pub mod check;
pub mod fold;
pub mod input;
pub mod jitdump;
pub mod perf_only;
pub mod perfconfig;
pub mod report;
pub mod script;
pub mod terminal;
pub mod time;

use std::ffi::OsString;
use std::io;

use clap::{CommandFactory, Parser, Subcommand};

/// Post-processor of Linux perf recordings
#[derive(Debug, Parser)]
#[command(
    name = "pjit",
    version,
    about = "Reads Linux perf recordings, merges jitdumps in memory, unwinds and symbolises, and prints perf-style reports and folded stacks",
    infer_long_args = true,
    after_help = "Examples:
  pjit report perf.data --percent-limit 0.5
  pjit fold | inferno-flamegraph > flame.svg
  pjit report -i perf.data --stdio --no-children -g none --percent-limit 0.5 | head -n 100"
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print a profile as perf report --stdio does
    Report(Box<report::ReportArgs>),
    /// Print folded stacks, for inferno-flamegraph, flamegraph.pl, speedscope
    Fold(fold::FoldArgs),
    /// Print samples with their stacks as perf script does
    Script(script::ScriptArgs),
    /// Describe and check jitdump files, for the authors of JIT runtimes
    ///
    /// Prints a summary of each file (header, clocks, records by kind, code, addresses used twice, line
    /// tables, unwinding information, which runtime it looks like) and lints. Errors are where
    /// readers lose or misread something, warnings where the dump leaves the format, notes are only good
    /// to know; [0x...] is the offset of the first record concerned. What the runtime is known for is marked as usual.
    Jitdump(jitdump::JitdumpArgs),
    /// Tell whether a recording is fit for conclusions, and what would make it fit
    Check(check::CheckArgs),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print a man page: of pjit, or of one of its commands
    Man {
        /// Command to describe
        command: Option<String>,
    },
}

impl Cli {
    /// Whether a warning makes the run a failure.
    #[must_use]
    pub fn strict(&self) -> bool {
        match &self.command {
            Command::Report(args) => args.input.strict,
            Command::Fold(args) => args.input.strict,
            Command::Script(args) => args.input.strict,
            _ => false,
        }
    }

    /// Whether notes are wanted.
    #[must_use]
    pub fn verbose(&self) -> bool {
        match &self.command {
            Command::Report(args) => args.input.verbose > 0,
            Command::Fold(args) => args.input.verbose > 0,
            Command::Script(args) => args.input.verbose > 0,
            Command::Check(args) => args.input.verbose > 0,
            _ => false,
        }
    }
}

/// The arguments with `--threads N` as `--jobs=N`: perf has a flag of that name without a number
/// (`-T`), which keeps its meaning where no number follows.
pub fn with_thread_counts(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_count = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut args = args.peekable();
    let mut out = Vec::new();
    while let Some(arg) = args.next() {
        let attached = arg
            .to_str()
            .and_then(|word| word.strip_prefix("--threads="));
        if let Some(count) = attached.filter(|count| is_count(count)) {
            out.push(format!("--jobs={count}").into());
            continue;
        }
        if arg == "--threads"
            && let Some(count) = args.next_if(|next| next.to_str().is_some_and(is_count))
        {
            let mut jobs = OsString::from("--jobs=");
            jobs.push(count);
            out.push(jobs);
            continue;
        }
        out.push(arg);
    }
    out
}

/// Writes the completion script of a shell.
pub fn write_completions(shell: clap_complete::Shell, out: &mut dyn io::Write) {
    clap_complete::generate(shell, &mut Cli::command(), "pjit", &mut LentWriter(out));
}

/// Writes the man page of pjit or of one of its commands.
///
/// # Errors
/// When there is no such command, or `out` cannot be written.
pub fn write_man_page(command: Option<&str>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut whole = Cli::command();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            let unknown =
                || io::Error::new(io::ErrorKind::InvalidInput, format!("no command '{name}'"));
            found.ok_or_else(unknown)?.name(format!("pjit-{name}"))
        }
    };
    clap_mangen::Man::new(page).render(&mut LentWriter(out))
}

/// clap's generators want a sized writer.
struct LentWriter<'w>(&'w mut dyn io::Write);

impl io::Write for LentWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_count_is_told_from_perfs_flag() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let rewritten = |line: &str| with_thread_counts(words(line).into_iter());
        assert_eq!(
            rewritten("pjit fold --threads 3 x"),
            words("pjit fold --jobs=3 x")
        );
        assert_eq!(
            rewritten("pjit fold --threads=3"),
            words("pjit fold --jobs=3")
        );
        assert_eq!(
            rewritten("pjit report --threads x"),
            words("pjit report --threads x")
        );
        assert_eq!(
            rewritten("pjit report --threads"),
            words("pjit report --threads")
        );
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
