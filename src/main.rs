//! `pjit`: arguments in, exit status out. 0: done, 1: error, 2: wrong usage, 3: not fit (`pjit check`) or a rule is broken
//! (`pjit gate`), 4: undecided (`pjit gate`), 125: not recorded (`pjit record`, whose other statuses are the command's).

use std::io::Write;
use std::process::ExitCode;

use pjit::ask::AskError;
use pjit::cli::Context;
use pjit::cli::input::Environment;
use pjit::cli::target::Refused;
use pjit::diagnostics::{Diagnostics, Level};

/// musl's own allocator has one lock and gives memory back at once; half of a report's time went there (`docs/decisions.md`).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    let args = pjit::cli::with_attached_numbers(std::env::args_os());
    let cli = match pjit::cli::parse(&args) {
        Ok(cli) => cli,
        Err(error) => return pjit::cli::refuse(&args, &error),
    };
    let environment = Environment::of_process();
    let verb = cli.command.verb();
    let diag = if verb.verbose() {
        Diagnostics::new()
    } else {
        Diagnostics::brief()
    };
    let context = Context {
        environment: &environment,
        diag: &diag,
    };
    let result = pjit::cli::run(verb, &context);
    let failed = verb.strict() && diag.has_warnings() || diag.has_failed();
    say(&diag);
    match result {
        Ok(_) if failed => ExitCode::FAILURE,
        Ok(status) => status,
        Err(error) if pjit::cli::is_closed_pipe(&error) => ExitCode::from(u8::from(failed)),
        Err(error) => {
            let mut causes = error.chain();
            let hint = causes.find_map(|cause| cause.downcast_ref::<AskError>()?.hint());
            let lines = pjit::cli::said("error", &in_one_line(&error), hint);
            let _ = std::io::stderr().write_all(lines.as_bytes());
            // What is refused was asked for wrongly.
            ExitCode::from(if error.is::<Refused>() { 2 } else { 1 })
        }
    }
}

/// The error and its causes, without those that its own text repeats.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Prints what was collected to stderr, a line each.
fn say(diag: &Diagnostics) {
    let mut err = std::io::stderr().lock();
    for (level, line) in diag.take() {
        let level = match level {
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let _ = err.write_all(pjit::cli::said(level, &line, None).as_bytes());
    }
}
