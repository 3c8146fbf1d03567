//! `pjit record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::page::Page;
use super::verb::{Context, Verb};
use crate::record::plan::environment;
use crate::record::plan::options::{Asked, CallGraph};
use crate::record::plan::probes::Alloc;

/// The status where pjit cannot record, as `timeout` and `env` have it.
pub const CANNOT: u8 = 125;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit record -- npm run build", ""),
        ("pjit record -p 4711 --duration 10", "a process that runs"),
        ("pjit record -o before -- node bench.js", "into this folder"),
        (
            "pjit record --runs 5 --base 'node old.js' -- node new.js",
            "and compare",
        ),
        ("sudo pjit record -a -- sleep 10", "the whole machine"),
        ("pjit record --doctor", "what works here"),
    ],
    short: &[
        "pid",
        "all-cpus",
        "duration",
        "output",
        "again",
        "runs",
        "base",
        "offcpu",
        "alloc",
        "live",
        "load",
        "doctor",
        "dry-run",
        "call-graph",
        "event",
        "freq",
    ],
    notes: "pjit records whole stacks, and the names of JIT code. Variables of the environment turn these on for Node.js, Deno, Bun, CPython, Java, PHP, Erlang, Mono, .NET and QEMU, also below npm, make, cargo or pytest. Everything is put into one folder, which all other commands read.\n\nOptions with perf's names have perf's meaning.\n\nExit status: the command's, or 125 if pjit cannot record. The command was not started then.",
};

/// Arguments of `pjit record`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "pjit record [OPTIONS] [--] COMMAND...
       pjit record [OPTIONS] -p PID[,PID] [-- sleep 10]
       pjit record [OPTIONS] -a [-- sleep 10]")]
pub struct RecordArgs {
    /// Record running processes
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',')]
    pids: Vec<u32>,

    /// Record the whole machine
    #[arg(short = 'a', long = "all-cpus", conflicts_with = "pids")]
    machine: bool,

    /// How long -p and -a record [default: until ^C, or the end of the command]
    #[arg(long = "duration", value_name = "SECONDS", value_parser = parse_seconds)]
    duration: Option<Duration>,

    /// Record until all processes that the command started have ended
    #[arg(long = "until-exit")]
    until_exit: bool,

    /// Folder for the recording [default: pjit-NAME-DATE-TIME]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    output: Option<PathBuf>,

    /// Record the command of this folder again, as pjit check advises
    #[arg(long = "again", value_name = "DIR", conflicts_with_all = ["command", "pids", "machine", "doctor"])]
    again: Option<PathBuf>,

    /// Record N runs, each in a folder, after one that is thrown away
    #[arg(long = "runs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99),
        conflicts_with_all = ["pids", "machine", "again"])]
    runs: Option<u32>,

    /// Command of the version to compare with, run in turns by sh
    #[arg(long = "base", value_name = "COMMAND", requires = "command", conflicts_with_all = ["pids", "machine"])]
    base: Option<String>,

    /// Also record where threads wait (needs root; see pjit report --weight wall)
    #[arg(long = "offcpu")]
    off_cpu: bool,

    /// Record who allocates: each call with its stack (needs root; see pjit report --weight alloc)
    #[arg(long = "alloc", conflicts_with_all = ["off_cpu", "metrics", "frequency", "period"])]
    alloc: bool,

    /// Also record what is freed, for --weight live, peak and lifetime
    #[arg(long = "live", conflicts_with_all = ["off_cpu", "metrics", "frequency", "period"])]
    live: bool,

    /// Record only allocations of at least this size
    #[arg(long = "min", value_name = "BYTES", value_parser = parse_bytes)]
    min: Option<u64>,

    /// The allocator: a library, a program or a .cwasm [default: the one that the program uses]
    #[arg(long = "lib", value_name = "FILE")]
    library: Option<PathBuf>,

    /// Count cycles and instructions for pjit report --metrics (needs hardware counters)
    #[arg(long = "metrics", conflicts_with_all = ["off_cpu", "frequency", "period"])]
    metrics: bool,

    /// Command that sends load to the recorded server, run by sh; then the server gets SIGTERM
    #[arg(long = "load", value_name = "COMMAND", conflicts_with_all = ["pids", "machine", "runs", "base"])]
    load: Option<String>,

    /// Copy programs and debug files too, to read the folder on another machine
    #[arg(long = "files")]
    files: bool,

    /// Collect the files of a recording whose pjit was killed
    #[arg(long = "finish", value_name = "DIR", conflicts_with_all = ["command", "pids", "machine", "doctor", "again"])]
    finish: Option<PathBuf>,

    /// Tell what this machine can record, and how to enable the rest
    #[arg(long = "doctor", conflicts_with = "command")]
    doctor: bool,

    /// Print the commands that would record, and stop
    #[arg(long = "dry-run")]
    dry_run: bool,

    /// Don't turn on node, deno, python, ..., or all
    #[arg(long = "no-switch", value_name = "RUNTIME", value_delimiter = ',', value_parser = parse_runtime)]
    no_switch: Vec<String>,

    /// Load perf's agent (libperf-jvmti.so) into JVMs: dumps of code instead of a map
    #[arg(long = "java-agent", value_name = "FILE", conflicts_with_all = ["pids", "machine"])]
    java_agent: Option<PathBuf>,

    /// Print only errors
    #[arg(short = 'q', long = "quiet")]
    quiet: bool,

    /// List the collected files, and where they were
    #[arg(short = 'v', long = "verbose")]
    verbose: bool,

    #[command(flatten)]
    perf: PerfArgs,

    /// Command to record; with -p or -a, the command that ends it
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What perf is told.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "As in perf record")]
struct PerfArgs {
    /// Samples in a second [default: 999, or less]
    #[arg(
        short = 'F',
        long = "freq",
        value_name = "HZ",
        conflicts_with = "period"
    )]
    frequency: Option<u64>,

    /// Sample every N events instead
    #[arg(
        short = 'c',
        long = "count",
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    period: Option<u64>,

    /// Event to record (repeatable) [default: cycles, or the CPU clock]
    #[arg(short = 'e', long = "event", value_name = "EVENT")]
    events: Vec<String>,

    /// How to record stacks: dwarf[,BYTES], fp or lbr [default: dwarf,65528]
    #[arg(long = "call-graph", value_name = "HOW", value_parser = parse_call_graph)]
    call_graph: Option<CallGraph>,

    /// Follow frame pointers: --call-graph fp
    #[arg(short = 'g', conflicts_with = "call_graph")]
    frame_pointers: bool,

    /// Size of the ring of each processor [default: 16M, or less]
    #[arg(short = 'm', long = "mmap-pages", value_name = "SIZE", value_parser = parse_ring)]
    ring: Option<u64>,

    /// Don't compress the recording
    #[arg(long = "no-z")]
    uncompressed: bool,

    /// Any option of perf record, such as --perf=--switch-events (repeatable)
    #[arg(long = "perf", value_name = "OPTION", allow_hyphen_values = true, value_parser = parse_perfs)]
    more: Vec<String>,
}

impl RecordArgs {
    fn asked(&self) -> Asked {
        let perf = &self.perf;
        let frame_pointers = || {
            perf.frame_pointers
                .then(|| CallGraph::Other("fp".to_owned()))
        };
        Asked {
            events: perf.events.clone(),
            frequency: perf.frequency,
            period: perf.period,
            call_graph: perf.call_graph.clone().or_else(frame_pointers),
            ring: perf.ring,
            uncompressed: perf.uncompressed,
            off_cpu: self.off_cpu,
            alloc: (self.alloc || self.live).then(|| Alloc {
                live: self.live,
                least: self.min,
                library: self.library.clone(),
            }),
            metrics: self.metrics,
            more: perf.more.clone(),
        }
    }
}

impl Verb for RecordArgs {
    #[cfg(target_os = "linux")]
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        Ok(recording::run(self, context))
    }

    #[cfg(not(target_os = "linux"))]
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let _ = self.asked();
        anyhow::bail!("record: only Linux has perf; recordings from there are read here")
    }
}

#[cfg(target_os = "linux")]
mod recording {
    use std::ffi::OsString;
    use std::io::Write;
    use std::path::Path;
    use std::process::ExitCode;

    use super::super::verb::{Context, asked};
    use super::{CANNOT, RecordArgs};
    use crate::ask::{AskError, Check, Comparing, Fold, Request, Summary};
    use crate::check::{Limits, Numbers};
    use crate::cli::input::Environment;
    use crate::cli::refusal::said;
    use crate::diagnostics::Diagnostics;
    use crate::load::{LoadOptions, Source};
    use crate::output::answer::{self, Format};
    use crate::output::text::harmless;
    use crate::questions::budget::Budget;
    use crate::questions::compare::Method;
    use crate::record::plan::environment::{Choice, answered};
    use crate::record::plan::options::{Asked, CallGraph, FREQUENCY};
    use crate::record::plan::{Note, Target, typed};
    use crate::record::run::{self, Failure, Prepared, Recorded};
    use crate::weigh::Spec;
    use crate::weigh::spec::Heap;

    /// Lines of the page in the end.
    const PAGE: usize = 25;

    pub(super) fn run(args: &RecordArgs, context: &Context<'_>) -> ExitCode {
        let environment = context.environment;
        let done = if args.doctor {
            doctor(args)
        } else if let Some(folder) = &args.finish {
            finish(args, folder)
        } else if let Some(folder) = &args.again {
            again(args, folder, environment)
        } else if args.runs.is_some() || args.base.is_some() {
            several(args, environment)
        } else {
            record(args, environment)
        };
        done.unwrap_or_else(|failure| {
            let mut text = said("error", &failure.text, None);
            for remedy in &failure.remedies {
                text.push_str(&said("hint", remedy, None));
            }
            say(&text);
            ExitCode::from(failure.status)
        })
    }

    /// To standard error; that of a terminal that is gone takes nothing, and that is all right.
    fn say(text: &str) {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn usage(text: &str, hint: &str) -> Failure {
        Failure {
            status: CANNOT,
            text: text.to_owned(),
            remedies: vec![hint.to_owned()],
        }
    }

    fn doctor(args: &RecordArgs) -> Result<ExitCode, Failure> {
        let (options, notes) = run::doctor(&args.asked())?;
        let mut text = format!("works: perf record {}\n", options.words().join(" "));
        text.push_str(&noted(&notes));
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    }

    fn finish(args: &RecordArgs, folder: &Path) -> Result<ExitCode, Failure> {
        let (moved, notes) = run::finish(folder)?;
        if !args.quiet {
            let files = if moved.len() == 1 { "file" } else { "files" };
            let text = format!(
                "{} {files} gathered\nnext: pjit summary {}\n",
                moved.len(),
                shown(folder)
            );
            say(&(noted(&notes) + &text));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn request(args: &RecordArgs, environment: &Environment) -> Result<run::Request, Failure> {
        let (target, stop_watch) = match (&args.pids[..], args.machine, &args.command[..]) {
            ([], false, []) => {
                return Err(usage(
                    "nothing to record",
                    "pjit record -- COMMAND, or -p PID, or -a; pjit record --help shows all",
                ));
            }
            ([], false, command) => (Target::Command(command.to_vec()), Vec::new()),
            ([], true, watch) => (Target::Machine, watch.to_vec()),
            (pids, _, watch) => (Target::Processes(pids.to_vec()), watch.to_vec()),
        };
        if matches!(target, Target::Command(_)) && args.duration.is_some() {
            return Err(usage(
                "--duration is for -p and -a: a command is recorded to its end",
                "pjit record -- timeout -s INT SECONDS COMMAND",
            ));
        }
        if !(args.alloc || args.live) && (args.min.is_some() || args.library.is_some()) {
            return Err(usage(
                "--min and --lib are for --alloc and --live",
                "pjit record --alloc --min BYTES -- COMMAND",
            ));
        }
        let leaves_java = args
            .no_switch
            .iter()
            .any(|off| off == "java" || off == "all");
        if args.java_agent.is_some() && leaves_java {
            return Err(usage(
                "--java-agent, or --no-switch java: not both",
                "leave one out",
            ));
        }
        if args.duration.is_some() && !stop_watch.is_empty() {
            return Err(usage(
                "--duration, or a command that ends it: not both",
                "leave one out",
            ));
        }
        let mut without = args.no_switch.clone();
        without.extend(answered(&args.command).map(str::to_owned));
        Ok(run::Request {
            target,
            stop_watch,
            duration: args.duration,
            until_exit: args.until_exit,
            load: args.load.clone(),
            asked: args.asked(),
            files: args.files,
            search: environment.search(),
            choice: Choice {
                without,
                java_agent: args.java_agent.clone(),
            },
            folder: args.output.clone(),
        })
    }

    fn record(args: &RecordArgs, environment: &Environment) -> Result<ExitCode, Failure> {
        let (recorded, _) = match recorded(args, request(args, environment)?, environment)? {
            Some(recorded) => recorded,
            None => return Ok(ExitCode::SUCCESS),
        };
        Ok(ExitCode::from(recorded.status))
    }

    /// What `check` says of a recording.
    fn numbers(folder: &Path, environment: &Environment) -> Result<Numbers, Failure> {
        let load = environment.load_options(Source::File(folder.join("perf.data")));
        let checked = asked(&Request::of(load, Check::default()), &Diagnostics::brief());
        checked
            .map(|checked| checked.verdict.numbers)
            .map_err(|error| usage(&error.to_string(), "--again takes a folder of pjit record"))
    }

    /// Records once more what is in a folder.
    fn again(
        args: &RecordArgs,
        folder: &Path,
        environment: &Environment,
    ) -> Result<ExitCode, Failure> {
        let run::Again {
            mut request,
            here,
            frequency,
        } = run::again(folder)?;
        let before = numbers(folder, environment)?;
        let asked = learned(std::mem::take(&mut request.asked), before, frequency);
        request.asked = asked.with(args.asked());
        request.files |= args.files;
        request.search = environment.search();
        request.until_exit |= args.until_exit;
        request.duration = args.duration.or(request.duration);
        request.load = args.load.clone().or(request.load);
        request
            .choice
            .without
            .extend(args.no_switch.iter().cloned());
        let agent = &mut request.choice.java_agent;
        *agent = args.java_agent.clone().or(agent.take());
        let start = std::env::current_dir().unwrap_or_default();
        request.folder = args.output.as_ref().map(|output| start.join(output));
        if request.folder.is_none() {
            let label = request.target.label();
            let fresh = run::fresh_folder(&start, &label);
            request.folder = Some(fresh);
        }
        std::env::set_current_dir(&here).map_err(|error| {
            usage(
                &format!("{}: {error}", here.display()),
                "it was recorded in that folder",
            )
        })?;
        let Some((recorded, now)) = recorded(args, request, environment)? else {
            return Ok(ExitCode::SUCCESS);
        };
        if let (Some(now), false) = (now, args.quiet) {
            say(&format!(
                "before: {}\nnow:    {}\n",
                words(before),
                words(now)
            ));
        }
        Ok(ExitCode::from(recorded.status))
    }

    /// What was asked for, with what `check` advises. `frequency` is that of the recording.
    fn learned(mut asked: Asked, before: Numbers, frequency: Option<u64>) -> Asked {
        let size = before.advised_stack_size;
        if let Some(size) = size.and_then(|size| u32::try_from(size).ok()) {
            asked.call_graph = Some(CallGraph::Dwarf(size));
        } else if before.advises_copies {
            asked.call_graph = None;
        }
        asked.uncompressed |= before.advises_no_z;
        if before.lost * 100 > before.samples && asked.period.is_none() {
            let hertz = frequency.or(asked.frequency).unwrap_or(FREQUENCY);
            asked.frequency = Some((hertz / 2).max(1));
        }
        asked
    }

    /// The numbers of a verdict on a line.
    fn words(numbers: Numbers) -> String {
        let share = |share: Option<f64>| {
            share.map_or("-".to_owned(), |share| format!("{:.1}%", 100.0 * share))
        };
        format!(
            "{} complete, {} named, {} of {} samples lost",
            share(numbers.complete),
            share(numbers.named),
            numbers.lost,
            numbers.samples + numbers.lost
        )
    }

    /// Several runs, by turns with those of a base if there is one.
    fn several(args: &RecordArgs, environment: &Environment) -> Result<ExitCode, Failure> {
        let request = request(args, environment)?;
        let mut prepared = run::prepare(request, args.dry_run)?;
        let new = prepared.request.target.clone();
        let base = args
            .base
            .as_ref()
            .map(|line| Target::Command(["sh", "-c", line].map(OsString::from).to_vec()));
        let sides: Vec<(&str, Target)> = base
            .map(|base| ("base", base))
            .into_iter()
            .chain([("new", new)])
            .collect();
        let runs = args.runs.unwrap_or(3);
        if args.dry_run {
            for (side, target) in &sides {
                let one = prepared.run_in(target.clone(), &Path::new(side).join("01"));
                let lines = typed(&one).join("\n");
                let _ = writeln!(
                    std::io::stdout(),
                    "# {side}, {runs} times by turns\n{lines}"
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
        if !args.quiet {
            say(&noted(&prepared.notes));
        }
        let names: Vec<&str> = sides.iter().map(|(side, _)| *side).collect();
        prepared.make_folders(&names)?;
        let mut worst = 0;
        for (_, target) in &sides {
            worst = worst.max(prepared.run_in(target.clone(), Path::new("")).warm_up()?);
        }
        let mut failed = vec![(0, 0); sides.len()];
        for number in 1..=runs {
            for ((side, target), tally) in sides.iter().zip(&mut failed) {
                let folder = Path::new(side).join(format!("{number:02}"));
                let recorded = run::record(prepared.run_in(target.clone(), &folder))?;
                worst = worst.max(recorded.status);
                if recorded.status != 0 {
                    *tally = (tally.0 + 1, recorded.status);
                }
            }
        }
        // What ends half-way takes less time than what does its work.
        for ((side, _), (count, status)) in sides.iter().zip(failed) {
            if count > 0 {
                say(&format!(
                    "warning: {count} of {runs} runs of {side} failed (status {status})\n"
                ));
            }
        }
        let folder = &prepared.folder;
        if !args.quiet {
            let text = if sides.len() > 1 {
                compared(folder, environment)
            } else {
                let first = folder.join("new/01");
                page(&first, environment).map(|(text, _)| text)
            };
            say(&text.unwrap_or_else(|error| format!("note: {}\n", harmless(&error.to_string()))));
            let folder = shown(folder);
            say(&match sides.len() {
                1 => format!("next: pjit flamegraph {folder}/new/01\n"),
                _ => format!("next: pjit diff {folder}/base --to {folder}/new --full-names\n"),
            });
        }
        Ok(ExitCode::from(worst))
    }

    /// What changed between the two sides of a folder.
    fn compared(folder: &Path, environment: &Environment) -> Result<String, AskError> {
        let comparing = Comparing {
            to_time: None,
            base: vec![folder.join("base")],
            new: vec![folder.join("new")],
            method: Method {
                paired: Some(true),
                ..Method::default()
            },
            full_names: false,
        };
        let load = environment.load_options(Source::Default);
        let compared = asked(&Request::of(load, comparing), &Diagnostics::brief())?;
        let mut text = Vec::new();
        let _ = answer::write(
            &compared,
            Format::Text,
            Some(Budget::Lines(PAGE)),
            &mut text,
        );
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Records, and says so; nothing with `--dry-run`. With what `check` counts.
    fn recorded(
        args: &RecordArgs,
        request: run::Request,
        environment: &Environment,
    ) -> Result<Option<(Recorded, Option<Numbers>)>, Failure> {
        let prepared = run::prepare(request, args.dry_run)?;
        if args.dry_run {
            let lines = typed(&prepared).join("\n");
            let _ = writeln!(std::io::stdout(), "{lines}");
            return Ok(None);
        }
        if !args.quiet && !matches!(prepared.request.target, Target::Command(_)) {
            let until = match (prepared.request.duration, &prepared.request.stop_watch[..]) {
                (None, []) => "; ^C ends it",
                _ => "",
            };
            say(&format!("note: recording{until}\n"));
        }
        let asked = prepared.request.asked.clone();
        let who = if prepared.is_root() { "" } else { "sudo " };
        let waits = match &prepared.request.target {
            Target::Command(words) => {
                format!("{who}pjit record --offcpu -- {}", typed::line(words))
            }
            _ => String::new(),
        };
        let recorded = run::record(prepared)?;
        let mut counted = None;
        if !args.quiet && !recorded.is_alone {
            let (text, numbers) = ending(&recorded, &asked, &waits, args.verbose, environment);
            say(&text);
            counted = numbers;
        }
        Ok(Some((recorded, counted)))
    }

    fn typed(prepared: &Prepared) -> Vec<String> {
        let request = &prepared.request;
        let lines = typed::lines(
            &prepared.environment,
            &prepared.options,
            &request.target,
            &prepared.folder,
            &request.stop_watch,
        );
        let notes = prepared.notes.iter().filter(|note| note.is_of_loss);
        let notes = notes.map(|note| format!("# {}", note.text));
        notes.chain(lines).collect()
    }

    fn noted<'n>(notes: impl IntoIterator<Item = &'n Note>) -> String {
        let mut text = String::new();
        for note in notes {
            text.push_str(&said("note", &note.text, note.remedy.as_deref()));
        }
        text
    }

    /// What was recorded, on a page. `waits` is how a command's waits are recorded.
    fn ending(
        recorded: &Recorded,
        asked: &Asked,
        waits: &str,
        is_verbose: bool,
        environment: &Environment,
    ) -> (String, Option<Numbers>) {
        let paged = page(&recorded.folder, environment);
        // What might have made samples get lost is of no interest where none were.
        let is_whole = paged
            .as_ref()
            .map_or(true, |(_, numbers)| numbers.lost == 0);
        let notes = recorded.notes.iter();
        let mut text = noted(notes.filter(|note| !(note.is_of_loss && is_whole)));
        if is_verbose {
            for moved in &recorded.moved {
                let how = if moved.copied { "copied" } else { "moved" };
                let from = moved.from.display().to_string();
                text.push_str(&format!("{how}: {} from {}\n", moved.name, harmless(&from)));
            }
        }
        let mut counted = None;
        match paged {
            Ok((page, numbers)) => {
                text.push_str(&page);
                counted = Some(numbers);
            }
            Err(error) => text.push_str(&format!("note: {}\n", harmless(&error.to_string()))),
        }
        let folder = shown(&recorded.folder);
        // Few samples tell nothing of what is missing.
        let is_cut = |numbers: &Numbers| {
            numbers.samples > 30 && numbers.complete.is_some_and(|share| share < 0.97)
        };
        let again = counted.filter(is_cut).and_then(|numbers| {
            let size = numbers.advised_stack_size;
            size.map(|size| format!("with {size} bytes of stack"))
                .or(numbers.advises_copies.then(|| "without -g".to_owned()))
        });
        // What the last frees freed looks leaked then, whatever was recorded.
        let lacks_end = counted.is_some_and(|numbers| numbers.advises_no_z);
        // Without names a picture shows nothing; `check` knows what has them.
        let least = Limits::default().min_resolved / 100.0;
        let is_nameless = counted.is_some_and(|numbers| {
            numbers.samples > 30 && numbers.named.is_some_and(|share| share < least)
        });
        let is_broken = counted.is_some_and(|numbers| {
            let limit = Limits::MIN_COMPLETE / 100.0;
            numbers.samples > 30 && numbers.complete.is_some_and(|share| share < limit)
        });
        let mut restarts = recorded.notes.iter().filter(|note| note.is_next);
        let restart = restarts.find_map(|note| note.remedy.as_deref());
        let is_idle = recorded.has_waited && counted.is_none_or(|numbers| numbers.samples <= 30);
        let next = match again {
            _ if lacks_end => format!("pjit record --again {folder}   # without -z"),
            _ if asked.alloc.as_ref().is_some_and(|alloc| alloc.live)
                && knows_live(&recorded.folder, environment) =>
            {
                format!("pjit report --weight live {folder}")
            }
            _ if asked.alloc.is_some() => format!("pjit report --weight alloc {folder}"),
            _ if asked.metrics => format!("pjit report --metrics {folder}"),
            _ if recorded.has_switches() => {
                format!("pjit report --weight wall -s comm,state,sym {folder}")
            }
            Some(how) => format!("pjit record --again {folder}   # {how}"),
            None if counted.is_some_and(|numbers| numbers.samples == 0) && !recorded.has_waited => {
                format!("pjit check {folder}   # says why there are no samples")
            }
            None if is_idle => format!("{}   # says where it waits", harmless(waits)),
            None if is_nameless => restart.map_or_else(
                || format!("pjit check {folder}   # says where names are"),
                |command| harmless(command).into_owned(),
            ),
            None if is_broken => format!("pjit check {folder}   # says why stacks end early"),
            None => format!("pjit flamegraph {folder}"),
        };
        text.push_str(&format!("next: {next}\n"));
        (text, counted)
    }

    /// The folder as one types it from here.
    fn shown(folder: &Path) -> String {
        let here = std::env::current_dir().unwrap_or_default();
        let near = folder.strip_prefix(&here).unwrap_or(folder);
        typed::quoted(near.as_os_str())
    }

    fn load_options(folder: &Path, environment: &Environment) -> LoadOptions {
        let here = std::env::current_dir().unwrap_or_default();
        let near = folder.strip_prefix(&here).unwrap_or(folder);
        environment.load_options(Source::File(near.join("perf.data")))
    }

    /// Whether `--weight live` answers: it refuses where too much is not known to be freed.
    fn knows_live(folder: &Path, environment: &Environment) -> bool {
        let mut load = load_options(folder, environment);
        load.weight.spec = Spec::Heap(Heap::Live);
        asked(&Request::of(load, Fold::default()), &Diagnostics::brief()).is_ok()
    }

    fn page(folder: &Path, environment: &Environment) -> Result<(String, Numbers), AskError> {
        let mut load = load_options(folder, environment);
        // About bytes where allocators were recorded, as pjit summary has it.
        load.weight.infers = true;
        load.weight.trims = true;
        let view = Summary {
            is_part: true,
            ..Summary::default()
        };
        let summary = asked(&Request::of(load, view), &Diagnostics::brief())?;
        let mut text = Vec::new();
        // A page of this size can be written into memory.
        let _ = answer::write(&summary, Format::Text, Some(Budget::Lines(PAGE)), &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((text, summary.numbers()))
    }
}

/// `1024`, `64K`, `1M`
pub(super) fn parse_bytes(word: &str) -> Result<u64, String> {
    let end = word.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = word.split_at(end.unwrap_or(word.len()));
    let factor = match unit {
        "" | "B" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => 0,
    };
    let bytes = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "takes a number of bytes, such as 4096, 64K or 4M".to_owned())
}

/// `10`, `0.5`
fn parse_seconds(word: &str) -> Result<Duration, String> {
    let seconds: f64 = word.parse().map_err(|_| "takes a number of seconds")?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "takes a number of seconds".to_owned())
}

/// A word of the table of switches, wasmtime or all.
fn parse_runtime(word: &str) -> Result<String, String> {
    let words = environment::words();
    if words.contains(&word) || matches!(word, "wasmtime" | "all") {
        return Ok(word.to_owned());
    }
    Err(format!("takes {}, wasmtime or all", words.join(", ")))
}

/// `dwarf,8192`, `fp`; a number as the kernel takes it.
fn parse_call_graph(word: &str) -> Result<CallGraph, String> {
    let Some(size) = word.strip_prefix("dwarf,") else {
        return Ok(CallGraph::Other(word.to_owned()));
    };
    let bytes = size.parse::<u32>().ok();
    let bytes = bytes.filter(|bytes| (8..=65_528).contains(bytes) && bytes.is_multiple_of(8));
    let bytes = bytes.ok_or("takes 8 to 65528 bytes of stack, in multiples of 8")?;
    Ok(CallGraph::Dwarf(bytes))
}

/// `16M`, `512K`, `8388608B`, or pages as perf counts them.
fn parse_ring(word: &str) -> Result<u64, String> {
    const PAGE: u64 = 4096;
    let wrong = || "takes a power of two of pages, or bytes such as 16M".to_owned();
    let end = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let factor = match unit {
        "" => PAGE,
        "B" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(factor).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(wrong)
}

/// An option for perf, but for those that pjit gives it: of two the last would count, and nobody would say so.
fn parse_perfs(word: &str) -> Result<String, String> {
    const DELAY: &str =
        "samples begin with the program; --time of the other verbs leaves out how it begins";
    const OWN: [(&str, &str, &str); 4] = [
        ("-D", "--delay", DELAY),
        ("-o", "--output", "-o of pjit record names the folder"),
        ("-p", "--pid", "-p of pjit record does that"),
        ("", "--control", "pjit tells perf when to begin and to end"),
    ];
    let is = |short: &str, long: &str| {
        let is_short = !short.is_empty() && word.starts_with(short);
        is_short || word.split('=').next() == Some(long)
    };
    let own = OWN.iter().find(|(short, long, _)| is(short, long));
    own.map_or(Ok(word.to_owned()), |(_, _, why)| Err((*why).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pjit_tells_perf_is_not_told_twice() {
        for word in ["-D500", "--delay=500", "-oother", "--pid", "--control=fd:3"] {
            assert!(parse_perfs(word).is_err(), "{word}");
        }
        for word in ["--switch-events", "--phys-data", "-d", "--per-thread"] {
            assert_eq!(parse_perfs(word).as_deref(), Ok(word));
        }
    }

    #[test]
    fn words_of_options() {
        assert_eq!(parse_ring("16M"), Ok(16 << 20));
        assert_eq!(parse_ring("128"), Ok(512 << 10));
        assert_eq!(parse_ring("64K"), Ok(64 << 10));
        for bad in ["", "M", "0", "5X", "-1"] {
            assert!(parse_ring(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_call_graph("dwarf,8192"), Ok(CallGraph::Dwarf(8192)));
        assert_eq!(
            parse_call_graph("dwarf"),
            Ok(CallGraph::Other("dwarf".to_owned()))
        );
        for bad in ["dwarf,", "dwarf,7", "dwarf,65536", "dwarf,12"] {
            assert!(parse_call_graph(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "x", "inf", "NaN"] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_bytes("1000"), Ok(1000));
        assert_eq!(parse_bytes("4K"), Ok(4096));
        for bad in ["", "0", "K", "1T", "-1", "99999999999G"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert!(parse_runtime("node").is_ok() && parse_runtime("all").is_ok());
        assert!(parse_runtime("nodejs").is_err());
    }
}
