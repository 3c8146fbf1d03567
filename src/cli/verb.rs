//! What a subcommand is, and what several of them do alike.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::ask::{Arena, AskError, Library, Question, Request};
use crate::diagnostics::Diagnostics;
use crate::input::is_recording_at;
use crate::load::{self, LoadOptions};
use crate::output::text::harmless;

use super::input::{Environment, InputArgs};
use super::named::{self, Named};
use super::refusal::said;
use super::terminal::{Output, with_progress};

/// What a verb works with.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The process' environment.
    pub environment: &'c Environment,
    /// Warnings and notes, which `main` prints in the end.
    pub diag: &'c Diagnostics,
}

/// A subcommand: its arguments know how to run it. Each is one file beside this one.
pub trait Verb {
    /// Does the work; the status is 0 unless the verb says what others mean.
    ///
    /// # Errors
    /// What ends the process with status 1 and a line on stderr.
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode>;

    /// The options that all readers of recordings share.
    fn input(&self) -> Option<&InputArgs> {
        None
    }

    /// Whether it adds up several recordings, or takes them apart by itself.
    fn takes_several(&self) -> bool {
        false
    }

    /// Paths that options name, which have to be there.
    fn named(&self) -> Vec<Named<'_>> {
        self.input().map(InputArgs::named).unwrap_or_default()
    }

    /// Whether a warning makes the run a failure.
    fn strict(&self) -> bool {
        self.input().is_some_and(|input| input.strict)
    }

    /// Whether notes are wanted.
    fn verbose(&self) -> bool {
        self.input().is_some_and(|input| input.verbose > 0)
    }
}

/// Runs a verb when all paths that it was given are there. Wrong usage is told, and is status 2.
///
/// # Errors
/// When one is not, and those of the verb.
pub fn run(verb: &dyn Verb, context: &Context<'_>) -> anyhow::Result<ExitCode> {
    named::require(&verb.named(), context.diag)?;
    let one = verb.input().filter(|_| !verb.takes_several());
    let done = match one.and_then(|input| input.input.get(1)) {
        Some(second) => {
            let second = second.display();
            Err(wrong_usage(format!(
                "one recording can be read, not '{second}' too"
            )))
        }
        None => verb.run(context),
    };
    done.or_else(|error| {
        let told: Option<&AskError> = error.downcast_ref();
        let Some(request) = told.filter(|told| told.is_request()) else {
            return Err(error);
        };
        let lines = said("error", &request.to_string(), request.hint());
        std::io::stderr().write_all(lines.as_bytes())?;
        Ok(ExitCode::from(2))
    })
}

/// The arguments make no sense; [`run`] says so, with status 2.
pub(super) fn wrong_usage(text: impl Into<String>) -> anyhow::Error {
    let text: String = text.into();
    // What is said of arguments has nothing in it that a recording holds.
    match text.split_once("\nhint: ") {
        Some((text, hint)) => AskError::Request(text.to_owned()).with_hint(hint).into(),
        None => AskError::Request(text).into(),
    }
}

/// Asks that what stands for a function is one: where nothing else names the recording, a path of one there is a slip.
///
/// # Errors
/// When it is one; says what to type.
pub(super) fn require_function(
    verb: &str,
    function: &str,
    is_recording_named: bool,
) -> anyhow::Result<()> {
    // A dot is an expression for all functions.
    let is_word = function.contains(char::is_alphanumeric);
    if is_recording_named || !is_word || !is_recording_at(Path::new(function)) {
        return Ok(());
    }
    Err(wrong_usage(format!(
        "'{function}' is a recording, not a function\nhint: pjit {verb} FUNCTION {function}"
    )))
}

/// The answer to the only question of a run.
pub(super) fn asked<Q: Question>(
    request: &Request<Q>,
    diag: &Diagnostics,
) -> Result<Q::Answer, AskError> {
    let arena = Arena::new();
    request.ask(&Library::of_one_question(&arena, diag))
}

/// The same with progress while it is made.
pub(super) fn answered<Q: Question>(
    request: &Request<Q>,
    diag: &Diagnostics,
) -> Result<Q::Answer, AskError> {
    with_progress(diag, || asked(request, diag))
}

/// `--header-only`: what was recorded, and nothing else.
pub(super) fn write_header(
    load: &LoadOptions,
    mut out: Output,
    diag: &Diagnostics,
) -> anyhow::Result<ExitCode> {
    let lines = load::header(&load.source, load.full_header, diag)?;
    write_lines(&lines, &mut out)?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the environment asks for text without colours.
pub(super) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

/// Lines of a listing, with names that a recording holds made harmless.
fn write_lines(lines: &[String], out: &mut Output) -> std::io::Result<()> {
    for line in lines {
        writeln!(out, "{}", harmless(line))?;
    }
    Ok(())
}

/// True if nobody reads what is written any more, as with `| head`.
#[must_use]
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|failure| failure.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Ends the output of a verb whose status follows from what was found: a gate that fails does so also where nobody reads on.
///
/// # Errors
/// When it could not be written, but for a pipe that was closed.
pub(super) fn finish_unless_closed(written: io::Result<()>, out: Output) -> anyhow::Result<()> {
    let finished = written.map_err(anyhow::Error::from);
    match finished.and_then(|()| out.finish()) {
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => Ok(()),
    }
}

/// That `--max-stack` left out callers: of how many per cent of the samples, how many frames are shown, and how many the longest has.
pub(super) fn left_out(share: f64, most: usize, longest: usize) -> String {
    format!(
        "{share:.2}% of the samples have more than {most} frames, and their outer callers are left out: --max-stack {longest}"
    )
}
