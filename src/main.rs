//! `pjit`: arguments in, exit status out. 0: done, 1: error, 2: wrong usage, 3: not fit (`pjit check`).

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use pjit::cli::check::CheckArgs;
use pjit::cli::input::Environment;
use pjit::cli::jitdump::{JitdumpArgs, pid_in_name};
use pjit::cli::report::ReportArgs;
use pjit::cli::script::ScriptArgs;
use pjit::cli::terminal::{Output, colored, with_progress};
use pjit::cli::{Cli, Command};
use pjit::diagnostics::{Diagnostics, Level};
use pjit::input::Store;
use pjit::jitdump::lint::{Grade, lint};
use pjit::jitdump::survey::survey;
use pjit::output::folded::FoldOptions;
use pjit::output::jitdump::{Lists, write_lists, write_summary};
use pjit::output::text::harmless;
use pjit::profile::Profile;

fn main() -> ExitCode {
    let cli = Cli::parse_from(pjit::cli::with_thread_counts(std::env::args_os()));
    let diag = Diagnostics::new();
    let result = run(&cli, &diag);
    let failed = cli.strict() && diag.has_warnings();
    say(&diag, cli.verbose());
    match result {
        Ok(_) if failed => ExitCode::FAILURE,
        Ok(status) => status,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "pjit: {}",
                harmless(&in_one_line(&error))
            );
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli, diag: &Diagnostics) -> anyhow::Result<ExitCode> {
    let environment = Environment::of_process();
    match &cli.command {
        Command::Fold(args) => {
            let (load, fold) = args.resolve(&environment);
            let mut out = Output::to(args.output.as_deref()).context("output")?;
            let profile = with_progress(diag, || pjit::load::load(&load, diag))?;
            check_events(&profile, &fold, diag)?;
            pjit::output::folded::write(&profile, &fold, &mut out)?;
            out.finish().context("output")?;
            leave(profile);
        }
        Command::Report(args) => return report(args, &environment, diag),
        Command::Script(args) => return script(args, &environment, diag),
        Command::Jitdump(args) => return jitdumps(args),
        Command::Check(args) => return check(args, &environment, diag),
        Command::Completions { shell } => {
            let mut out = Output::open(None);
            pjit::cli::write_completions(*shell, &mut out);
            out.finish()?;
        }
        Command::Man { command } => {
            let mut out = Output::open(None);
            pjit::cli::write_man_page(command.as_deref(), &mut out)?;
            out.finish()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes dumps one after the other; one that cannot be read does not keep the others from being.
fn jitdumps(args: &JitdumpArgs) -> anyhow::Result<ExitCode> {
    let mut out = Output::to(args.output.as_deref()).context("output")?;
    let (mut failed, mut described) = (false, false);
    for (number, path) in args.files.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        match jitdump(path, args.lists(), &mut out)? {
            Ok(worst) => {
                described = true;
                failed |= args.strict && worst == Some(Grade::Error);
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
    if described || args.output.is_none() {
        out.finish().context("output")?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Describes one dump; the worst of its lints, or why it cannot be read.
fn jitdump(
    path: &Path,
    lists: Lists,
    out: &mut Output,
) -> std::io::Result<Result<Option<Grade>, String>> {
    let store = Store::new();
    let bytes = match store.map(path) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let survey = match survey(bytes) {
        Ok(survey) => survey,
        Err(error) => return Ok(Err(format!("{}: {error}", path.display()))),
    };
    let findings = lint(&survey, pid_in_name(path));
    write_summary(path.as_os_str().as_encoded_bytes(), &survey, &findings, out)?;
    write_lists(bytes, survey.producer, lists, out)?;
    Ok(Ok(findings.iter().map(|finding| finding.grade).max()))
}

/// Exit status of `pjit check` for a recording that falls short of the limits.
const NOT_FIT: u8 = 3;

fn check(
    args: &CheckArgs,
    environment: &Environment,
    diag: &Diagnostics,
) -> anyhow::Result<ExitCode> {
    let (load, limits) = args.resolve(environment);
    let evidence = with_progress(diag, || pjit::load::examine(&load, diag))?;
    let verdict = pjit::check::judge(&evidence, limits);
    let color = colored(args.color(), no_color());
    let mut out = Output::open(None);
    pjit::output::check::write(&verdict, args.input.strict, color, &mut out)?;
    out.finish().context("output")?;
    Ok(if verdict.is_fit(args.input.strict) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_FIT)
    })
}

fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
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

/// A recording without samples is an error: whoever reads the output of a success would take it for a result.
fn require_samples(profile: &Profile) -> anyhow::Result<()> {
    anyhow::ensure!(
        profile.events.iter().any(|event| event.samples > 0),
        "{}: no samples",
        profile.recording.path
    );
    Ok(())
}

fn check_events(profile: &Profile, fold: &FoldOptions, diag: &Diagnostics) -> anyhow::Result<()> {
    require_samples(profile)?;
    if let Some(wanted) = &fold.event {
        let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
        anyhow::ensure!(
            names.contains(&wanted.as_str()),
            "no event '{wanted}' in {}; it has {}",
            profile.recording.path,
            names.join(", ")
        );
    }
    let mixed = pjit::output::folded::mixed_events(profile, fold);
    if !mixed.is_empty() {
        diag.warn(format!(
            "adds up samples of several events ({}); --event NAME takes one",
            mixed.join(", ")
        ));
    }
    Ok(())
}

fn script(
    args: &ScriptArgs,
    environment: &Environment,
    diag: &Diagnostics,
) -> anyhow::Result<ExitCode> {
    let mut command = match args.resolve(environment) {
        Ok(command) => command,
        Err(text) => return wrong_usage(&text),
    };
    let mut out = Output::to(args.output.as_deref()).context("output")?;
    if command.header_only {
        let lines = pjit::load::header(&command.load.source, false, diag)?;
        write_lines(&lines, &mut out)?;
        out.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(time) = &command.time {
        let (first, last) = pjit::load::sample_times(&command.load.source, diag)?;
        command.load.filter.times = time.resolve(first, last);
    }
    let profile = with_progress(diag, || pjit::load::load(&command.load, diag))?;
    require_samples(&profile)?;
    if let Some(event) = command.view.event_without_cpu(&profile) {
        anyhow::bail!("-F cpu: the event {event} was recorded without CPU numbers");
    }
    let count = pjit::output::script::write(&profile, &command.view, &mut out)?;
    out.finish().context("output")?;
    leave(profile);
    anyhow::ensure!(count > 0, "no sample is left: the filters hide all of them");
    Ok(ExitCode::SUCCESS)
}

fn wrong_usage(text: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stderr(), "pjit: {}", harmless(text))?;
    Ok(ExitCode::from(2))
}

fn report(
    args: &ReportArgs,
    environment: &Environment,
    diag: &Diagnostics,
) -> anyhow::Result<ExitCode> {
    let mut command = match args.resolve(environment) {
        Ok(command) => command,
        Err(text) => return wrong_usage(&text),
    };
    command.warnings.drain(..).for_each(|line| diag.warn(line));
    let pager = (!command.no_pager).then_some(environment.pager.as_str());
    let mut out = Output::open(pager);
    command.view.color = colored(command.color, no_color());
    if command.header_only {
        let lines = pjit::load::header(&command.load.source, command.load.full_header, diag)?;
        write_lines(&lines, &mut out)?;
        out.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(time) = &command.time {
        let (first, last) = pjit::load::sample_times(&command.load.source, diag)?;
        command.load.filter.times = time.resolve(first, last);
    }
    let profile = with_progress(diag, || pjit::load::load(&command.load, diag))?;
    let mut is_empty = false;
    if command.load.listing.is_some() {
        write_lines(&profile.recording.dump, &mut out)?;
    } else {
        require_samples(&profile)?;
        command.view.settle(&profile);
        let report = pjit::report::build(&profile, &command.view)?;
        pjit::output::stdio::write(&report, &mut out)?;
        is_empty = report.is_empty();
        leave(report);
    }
    out.finish()?;
    leave(profile);
    anyhow::ensure!(
        !is_empty,
        "no row is left: the filters or --percent-limit hide all of them"
    );
    Ok(ExitCode::SUCCESS)
}

/// Leaves large things to the end of the process, which is near, and frees their hundred thousand pieces at once.
fn leave<T>(large: T) {
    std::mem::forget(large);
}

fn write_lines(lines: &[String], out: &mut Output) -> std::io::Result<()> {
    for line in lines {
        writeln!(out, "{}", harmless(line))?;
    }
    Ok(())
}

/// Prints what was collected to stderr, a line each.
fn say(diag: &Diagnostics, verbose: bool) {
    let mut err = std::io::stderr().lock();
    for (level, line) in diag.take() {
        let line = harmless(&line);
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
