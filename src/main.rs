//! `pjit`: arguments in, exit status out. 0: done, 1: error, 2: wrong usage.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use pjit::cli::input::Environment;
use pjit::cli::report::ReportArgs;
use pjit::cli::terminal::{Output, colored, with_progress};
use pjit::cli::{Cli, Command};
use pjit::diagnostics::{Diagnostics, Level};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let diag = Diagnostics::new();
    let result = run(&cli, &diag);
    say(&diag, cli.verbose());
    match result {
        Ok(status) => status,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "pjit: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli, diag: &Diagnostics) -> anyhow::Result<ExitCode> {
    let environment = Environment::of_process();
    let mut out = Output::open(None);
    match &cli.command {
        Command::Fold(args) => {
            let (load, fold) = args.resolve(&environment);
            let profile = with_progress(diag, || pjit::load::load(&load, diag))?;
            pjit::output::folded::write(&profile, &fold, &mut out)?;
        }
        Command::Report(args) => return report(args, &environment, diag),
        Command::Script(args) => {
            let (load, script) = args.resolve(&environment);
            let profile = with_progress(diag, || pjit::load::load(&load, diag))?;
            pjit::output::script::write(&profile, &script, &mut out)?;
        }
        Command::Completions { shell } => pjit::cli::write_completions(*shell, &mut out),
        Command::Man { command } => pjit::cli::write_man_page(command.as_deref(), &mut out)?,
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn report(
    args: &ReportArgs,
    environment: &Environment,
    diag: &Diagnostics,
) -> anyhow::Result<ExitCode> {
    let mut command = match args.resolve(environment) {
        Ok(command) => command,
        Err(text) => {
            writeln!(std::io::stderr(), "pjit: {text}")?;
            return Ok(ExitCode::from(2));
        }
    };
    command.warnings.drain(..).for_each(|line| diag.warn(line));
    let mut out = Output::open(None);
    command.view.color = colored(
        command.color,
        std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()),
    );
    let profile = with_progress(diag, || pjit::load::load(&command.load, diag))?;
    if command.header_only {
        pjit::output::stdio::write_header(&profile, &mut out)?;
    } else {
        let report = pjit::report::build(&profile, &command.view)?;
        pjit::output::stdio::write(&report, &mut out)?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what was collected to stderr, a line each.
fn say(diag: &Diagnostics, verbose: bool) {
    let mut err = std::io::stderr().lock();
    for (level, line) in diag.take() {
        if level == Level::Warning {
            let _ = writeln!(err, "pjit: warning: {line}");
        } else if verbose {
            let _ = writeln!(err, "pjit: {line}");
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
