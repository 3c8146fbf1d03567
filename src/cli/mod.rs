//! The command line: clap arguments in, plain option structs out. Nothing else knows clap.

pub mod annotate;
mod browser;
mod bundle;
pub mod callgraph;
pub mod check;
mod completions;
#[cfg(feature = "dataset")]
mod dataset;
pub mod diff;
mod export;
pub mod fetch;
pub mod filters;
pub mod flamegraph;
pub mod fold;
pub mod gate;
pub mod guide;
mod help;
pub mod input;
pub mod jitdump;
mod labels;
mod lazy;
mod less;
pub mod list;
mod man;
mod named;
mod page;
mod parcel;
pub mod peek;
pub mod perf_only;
pub mod perfconfig;
mod picture;
pub mod question;
pub mod record;
mod refusal;
pub mod report;
pub mod script;
mod serve;
mod sides;
pub mod stat;
pub mod summary;
pub mod target;
pub mod terminal;
mod topics;
mod verb;
pub mod weight;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

pub use lazy::Lazy;
pub use refusal::said;
pub use verb::{Context, Verb, is_closed_pipe, run};

/// Show where CPU time goes in Linux programs, JIT code included
#[derive(Debug, Parser)]
#[command(
    name = "pjit",
    version = env!("PJIT_VERSION"),
    infer_long_args = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a program with perf, and show where the time goes
    Record(Lazy<record::RecordArgs>),
    /// Print a profile as perf report --stdio does
    Report(Lazy<report::ReportArgs>),
    /// Show a function instruction by instruction
    Annotate(Lazy<annotate::AnnotateArgs>),
    /// Print folded stacks for flame graph tools
    Fold(Lazy<fold::FoldArgs>),
    /// Write a file for Firefox Profiler, pprof, speedscope or SQL
    Export(Lazy<export::ExportArgs>),
    /// Pack a recording with its files, for another machine
    Bundle(Lazy<bundle::BundleArgs>),
    /// Fetch debug files from debuginfod servers
    Fetch(Lazy<fetch::FetchArgs>),
    /// Serve profiles of a process to go tool pprof and Parca
    Serve(Lazy<serve::ServeArgs>),
    /// Draw a flame graph, as a page or as SVG
    Flamegraph(Lazy<flamegraph::FlamegraphArgs>),
    /// Print samples with their stacks, as perf script does
    Script(Lazy<script::ScriptArgs>),
    /// Print totals of events, as perf stat report does
    Stat(Lazy<stat::StatArgs>),
    /// Describe and check JIT dumps, for authors of runtimes
    Jitdump(Lazy<jitdump::JitdumpArgs>),
    /// Show where CPU time goes, on one page
    Summary(Lazy<summary::SummaryArgs>),
    /// Show who calls a function, and what it calls
    Peek(Lazy<peek::PeekArgs>),
    /// Show which source lines of a function cost time
    List(Lazy<list::ListArgs>),
    /// Show what changed between recordings, and if it is noise
    Diff(Lazy<diff::DiffArgs>),
    /// Pass or fail new recordings by rules, for CI
    Gate(Lazy<gate::GateArgs>),
    /// Explain how to record, read and compare
    Guide(Lazy<guide::GuideArgs>),
    /// Show all options of a command, or a list such as keys
    Help(Lazy<topics::HelpArgs>),
    /// Tell if you can trust a recording, and how to mend it
    Check(Lazy<check::CheckArgs>),
    /// Print a completion script for a shell
    Completions(Lazy<completions::CompletionsArgs>),
    /// Print a man page
    Man(Lazy<man::ManArgs>),
}

impl Command {
    /// The subcommand as something to run.
    #[must_use]
    pub fn verb(&self) -> &dyn Verb {
        match self {
            Self::Record(args) => &**args,
            Self::Report(args) => &**args,
            Self::Annotate(args) => &**args,
            Self::Fold(args) => &**args,
            Self::Export(args) => &**args,
            Self::Bundle(args) => &**args,
            Self::Fetch(args) => &**args,
            Self::Serve(args) => &**args,
            Self::Flamegraph(args) => &**args,
            Self::Script(args) => &**args,
            Self::Stat(args) => &**args,
            Self::Jitdump(args) => &**args,
            Self::Summary(args) => &**args,
            Self::Peek(args) => &**args,
            Self::List(args) => &**args,
            Self::Diff(args) => &**args,
            Self::Gate(args) => &**args,
            Self::Guide(args) => &**args,
            Self::Help(args) => &**args,
            Self::Check(args) => &**args,
            Self::Completions(args) => &**args,
            Self::Man(args) => &**args,
        }
    }
}

/// What is known of a verb besides its options.
fn page(verb: &str) -> &'static page::Page {
    const NOTHING: page::Page = page::Page {
        examples: &[],
        short: &[],
        notes: "",
    };
    match verb {
        "record" => &record::PAGE,
        "summary" => &summary::PAGE,
        "peek" => &peek::PAGE,
        "list" => &list::PAGE,
        "annotate" => &annotate::PAGE,
        "flamegraph" => &flamegraph::PAGE,
        "report" => &report::PAGE,
        "script" => &script::PAGE,
        "stat" => &stat::PAGE,
        "fold" => &fold::PAGE,
        "check" => &check::PAGE,
        "diff" => &diff::PAGE,
        "gate" => &gate::PAGE,
        "export" => &export::PAGE,
        "bundle" => &bundle::PAGE,
        "fetch" => &fetch::PAGE,
        "serve" => &serve::PAGE,
        "guide" => &guide::PAGE,
        "help" => &topics::PAGE,
        "jitdump" => &jitdump::PAGE,
        "completions" => &completions::PAGE,
        "man" => &man::PAGE,
        _ => &NOTHING,
    }
}

/// Parses the command line.
///
/// # Errors
/// When the arguments mean nothing; of an option that is cut too short, what it could be.
pub fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(args).map_err(|error| {
        let plainer = ambiguous(&error, args).or_else(|| named_twice(&error));
        plainer.unwrap_or(error)
    })
}

/// Prints why the arguments mean nothing, or the help that was asked for.
#[must_use]
pub fn refuse(args: &[OsString], error: &clap::Error) -> ExitCode {
    let verb = refusal::verb_of(args);
    let is_long = args
        .iter()
        .skip(2)
        .any(|word| word.to_string_lossy().starts_with("--h"));
    let page = || match verb {
        Some(verb) => help::of_verb(verb, is_long).unwrap_or_default(),
        None => help::overview(),
    };
    // Nobody may be there to read it.
    match error.kind() {
        ErrorKind::DisplayHelp => {
            let _ = std::io::stdout().write_all(page().as_bytes());
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = std::io::stderr().write_all(page().as_bytes());
        }
        _ => {
            let lines = refusal::refusal(error, args).lines();
            let _ = std::io::stderr().write_all(lines.as_bytes());
        }
    }
    // Other numbers are those of what is recorded.
    ExitCode::from(if verb == Some("record") {
        record::CANNOT
    } else {
        2
    })
}

/// The same of a recording that is named with `-i` and without.
fn named_twice(error: &clap::Error) -> Option<clap::Error> {
    let is_input = |value: &ContextValue| match value {
        ContextValue::String(word) => word.starts_with("--input"),
        ContextValue::Strings(words) => words.iter().any(|word| word.starts_with("--input")),
        _ => false,
    };
    let is_conflict = error.kind() == ErrorKind::ArgumentConflict;
    let names = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let mut values = names.into_iter().filter_map(|kind| error.get(kind));
    let text = "the recording is named twice, with -i and without\n";
    (is_conflict && values.any(is_input))
        .then(|| clap::Error::raw(ErrorKind::ArgumentConflict, text))
}

/// The same of an option that several begin with, as perf says it.
fn ambiguous(error: &clap::Error, args: &[OsString]) -> Option<clap::Error> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let start = word.strip_prefix("--").filter(|start| !start.is_empty())?;
    let mut all = Cli::command();
    all.build();
    let mut words = args.iter().skip(1);
    let command = words.find_map(|verb| all.find_subcommand(verb))?;
    let names = command.get_arguments().filter_map(|arg| arg.get_long());
    let mut names: Vec<&str> = names.filter(|name| name.starts_with(start)).collect();
    names.sort_unstable();
    let last = names.pop().filter(|_| !names.is_empty())?;
    let text = format!(
        "ambiguous option: --{start} (could be --{} or --{last})\n",
        names.join(", --")
    );
    Some(clap::Error::raw(ErrorKind::UnknownArgument, text))
}

/// The arguments with numbers attached to options that mean something else without: `--threads N` as `--jobs=N`, for perf has a flag
/// of that name (`-T`), and `--pid N` as `--pid=N`, for stackcollapse has one.
pub fn with_attached_numbers(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const OPTIONS: [(&str, &str); 3] = [
        ("--threads", "--jobs"),
        ("--pid", "--pid"),
        ("--tid", "--tid"),
    ];
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let are_numbers = |option: &str, word: &str| {
        is_digits(word) || option != "--threads" && word.split(',').all(is_digits)
    };
    let mut args = args.peekable();
    let mut out: Vec<OsString> = Vec::new();
    // What is recorded has arguments of its own.
    out.extend(args.next());
    if args.peek().is_some_and(|verb| verb == "record") {
        out.extend(args);
        return out;
    }
    while let Some(arg) = args.next() {
        let word = arg.to_str().unwrap_or_default();
        let (option, attached) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        let Some((_, meant)) = OPTIONS.iter().find(|(known, _)| *known == option) else {
            out.push(arg);
            continue;
        };
        let is_number = |value: &str| are_numbers(option, value);
        let value = match attached {
            Some(value) => is_number(value).then(|| value.to_owned()),
            None => {
                let next = args.next_if(|next| next.to_str().is_some_and(is_number));
                next.and_then(|next| next.into_string().ok())
            }
        };
        match value {
            Some(value) => out.push(format!("{meant}={value}").into()),
            None => out.push(arg),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_flags() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let rewritten = |line: &str| with_attached_numbers(words(line).into_iter());
        for (typed, meant) in [
            ("pjit fold --pid 7 x", "pjit fold --pid=7 x"),
            ("pjit fold --tid 7,8", "pjit fold --tid=7,8"),
            ("pjit fold --pid x", "pjit fold --pid x"),
            ("pjit report --threads 7,8", "pjit report --threads 7,8"),
            ("pjit record --pid 7", "pjit record --pid 7"),
        ] {
            assert_eq!(rewritten(typed), words(meant));
        }
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
    fn an_option_that_is_cut_too_short_is_told_what_it_could_be() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            parse(&words).map_err(|error| error.to_string()).err()
        };
        let told = said("pjit report --percent 5").expect("two begin so");
        assert!(
            told.contains("ambiguous option: --percent (could be --percent-limit, --percent-type or --percentage)"),
            "{told}"
        );
        assert!(said("pjit report --nonsense").is_some_and(|told| !told.contains("ambiguous")));
        assert_eq!(said("pjit report --hier"), None);
        // Whole, though others begin so too.
        let told = said("pjit report --group=5").expect("a flag");
        assert!(
            told.contains("unexpected value '5' for '--group'"),
            "{told}"
        );
    }

    #[test]
    fn a_recording_is_named_once() {
        for line in [
            "summary -i a b",
            "check -i a b",
            "stat -i a b",
            "script -i a b",
            "fold -i a b",
            "flamegraph -i a b",
            "bundle -i a b",
            "export -o x.csv -i a b",
            "peek main -i a b",
            "list main -i a b",
        ] {
            let words = format!("pjit {line}");
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let error = parse(&words).expect_err(line);
            let text = error.to_string();
            assert!(
                text.contains("the recording is named twice, with -i and without"),
                "{line}: {text}"
            );
            assert_eq!(error.exit_code(), 2, "{line}");
        }
        let words = ["pjit", "report", "-i", "a", "b"].map(OsString::from);
        assert!(parse(&words).is_ok());
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
