//! `pjit man`: manual pages, of pjit, its commands and its topics.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Arg, Args, Command as Syntax, CommandFactory};

use super::help::{self, GROUPS};
use super::page::Page;
use super::terminal::Output;
use super::topics::{self, Topic};
use super::verb::wrong_usage;
use super::{Cli, Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit man summary | man -l -", "read a page"),
        ("pjit man > pjit.1", ""),
    ],
    short: &[],
    notes: "",
};

/// Arguments of `pjit man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Command or topic to describe (default: pjit)
    #[arg(value_name = "COMMAND|TOPIC")]
    command: Option<String>,
}

impl Verb for ManArgs {
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let page = match self.command.as_deref() {
            None => overview(),
            Some(word) => match (topics::topic(word), help::sorted(word)) {
                (Some(topic), _) => of_topic(topic),
                (None, Some(command)) => of_verb(word, command),
                (None, None) => return Err(wrong_usage(topics::unknown(word))),
            },
        };
        let mut out = Output::open(None);
        out.write_all(&page)?;
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The folders and files that pjit looks at without being told.
const FILES: &[(&str, &str)] = &[
    ("perf.data", "the recording, if none is named"),
    (
        "pjit-*/",
        "folders of pjit record; the newest is read if no perf.data is newer",
    ),
    ("jit-PID.dump", "JIT code with names, as runtimes write it"),
    ("/tmp/perf-PID.map", "names of JIT code"),
    (
        "symfs/",
        "files of the recorded machine, next to the recording",
    ),
    (
        "kallsyms, kallsyms.gz",
        "symbols of the recorded kernel, next to the recording",
    ),
    ("~/.debug", "the build-ID cache of perf; it is only read"),
    (
        "~/.perfconfig",
        "report.*, call-graph.* and buildid.dir; not with --no-config",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("PERF_PAGER, PAGER", "the pager for a terminal"),
    ("PERF_CONFIG", "a file instead of ~/.perfconfig"),
    (
        "DEBUGINFOD_CACHE_PATH",
        "the cache of debuginfod-find, instead of ~/.cache/debuginfod_client",
    ),
    (
        "DEBUGINFOD_URLS",
        "the servers that fetch has debuginfod-find ask",
    ),
    (
        "DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME",
        "seconds that debuginfod-find may wait, and take for a file: 90 and 300 in fetch",
    ),
    ("NO_COLOR", "if set, no colours"),
    ("BROWSER", "the program that flamegraph --open starts"),
    ("COLUMNS", "the width of help"),
    ("TMPDIR", "folder of the temporary file for large streams"),
    ("HOME", "where .perfconfig and .debug are"),
];

fn of_verb(verb: &str, mut command: Syntax) -> Vec<u8> {
    let page = super::page(verb);
    let about = command.get_about().map(ToString::to_string);
    let mut out = titled(&format!("pjit-{verb}"), &about.unwrap_or_default());
    section(&mut out, "SYNOPSIS");
    let usage = command.render_usage().to_string();
    unfilled(&mut out, usage.trim_start_matches("Usage:").trim());
    if !page.notes.is_empty() {
        section(&mut out, "DESCRIPTION");
        for (number, paragraph) in page.notes.split("\n\n").enumerate() {
            if number > 0 {
                line(&mut out, ".PP");
            }
            text(&mut out, paragraph);
        }
    }
    section(&mut out, "EXAMPLES");
    for (number, (example, what)) in page.examples.iter().enumerate() {
        if number > 0 {
            line(&mut out, ".PP");
        }
        if !what.is_empty() {
            text(&mut out, &format!("{what}:"));
        }
        unfilled(&mut out, &format!("    {example}"));
    }
    options(&mut out, &command);
    if !page.notes.contains("Exit status") {
        section(&mut out, "EXIT STATUS");
        text(&mut out, "0 done, 1 error, 2 wrong arguments.");
    }
    ending(&mut out, &["pjit(1)", "perf(1)"]);
    out
}

/// Words and options, in their groups.
fn options(out: &mut Vec<u8>, command: &Syntax) {
    section(out, "OPTIONS");
    let mut group = None;
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        if let Some(heading) = arg
            .get_help_heading()
            .filter(|heading| group != Some(*heading))
        {
            line(out, &format!(".SS {heading}"));
            group = Some(heading);
        }
        let short = arg.get_short().filter(|_| arg.get_long().is_some());
        let short = short.map_or_else(String::new, |short| format!("-{short}, "));
        tagged(out, &format!("{short}{arg}"), &described(arg));
    }
}

/// An option's text, with its values.
fn described(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let listed = |values: Vec<String>| values.join(", ");
    let default = arg.get_default_values().iter();
    let default = listed(
        default
            .map(|value| value.to_string_lossy().into_owned())
            .collect(),
    );
    let takes_value = arg.get_action().takes_values();
    if takes_value && !default.is_empty() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(" [default: {default}]"));
    }
    let values = arg.get_possible_values().into_iter();
    let values = listed(values.map(|value| value.get_name().to_owned()).collect());
    if takes_value && !values.is_empty() && !arg.is_hide_possible_values_set() {
        text.push_str(&format!(" [possible values: {values}]"));
    }
    text
}

fn overview() -> Vec<u8> {
    let mut whole = Cli::command();
    whole.build();
    let about_of = |command: &Syntax| {
        command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let mut out = titled("pjit", &about_of(&whole));
    section(&mut out, "SYNOPSIS");
    text(&mut out, "pjit COMMAND [OPTIONS]");
    section(&mut out, "EXAMPLES");
    unfilled(
        &mut out,
        "    pjit record -- ./app\n    pjit check\n    pjit summary\n    pjit flamegraph --open",
    );
    section(&mut out, "COMMANDS");
    for (group, verbs) in GROUPS {
        line(&mut out, &format!(".SS {group}"));
        for verb in verbs {
            let about = whole
                .find_subcommand(verb)
                .map(about_of)
                .unwrap_or_default();
            tagged(&mut out, &format!("pjit-{verb}(1)"), &about);
        }
    }
    section(&mut out, "TOPICS");
    for word in topics::words() {
        let about = topics::topic(word).map_or("", |topic| topic.about);
        tagged(&mut out, &format!("pjit-{word}(1)"), about);
    }
    section(&mut out, "EXIT STATUS");
    if let Some(topic) = topics::topic("status") {
        unfilled(&mut out, &topic.text());
    }
    ending(&mut out, &["perf(1)", "perf-record(1)"]);
    out
}

fn of_topic(topic: &Topic) -> Vec<u8> {
    let mut out = titled(&format!("pjit-{}", topic.word), topic.about);
    section(&mut out, "DESCRIPTION");
    unfilled(&mut out, &topic.text());
    section(&mut out, "SEE ALSO");
    text(&mut out, "pjit(1)");
    out
}

/// The first lines. The date is the commit's, so that the same source makes the same page.
fn titled(name: &str, about: &str) -> Vec<u8> {
    let version = env!("PJIT_VERSION");
    let last = version.rsplit([' ', '(']).next().unwrap_or_default();
    let date = last.trim_end_matches(')');
    let date = if date.matches('-').count() == 2 {
        date
    } else {
        ""
    };
    let number = env!("CARGO_PKG_VERSION");
    let mut out = Vec::new();
    line(
        &mut out,
        &format!(".TH {name} 1 \"{date}\" \"pjit {number}\" pjit"),
    );
    section(&mut out, "NAME");
    text(&mut out, &format!("{name} - {about}"));
    out
}

fn ending(out: &mut Vec<u8>, others: &[&str]) {
    section(out, "FILES");
    for (file, what) in FILES {
        tagged(out, file, what);
    }
    section(out, "ENVIRONMENT");
    for (variable, what) in ENVIRONMENT {
        tagged(out, variable, what);
    }
    section(out, "SEE ALSO");
    text(out, &others.join(", "));
}

fn section(out: &mut Vec<u8>, name: &str) {
    line(out, &format!(".SH {name}"));
}

fn tagged(out: &mut Vec<u8>, tag: &str, what: &str) {
    line(out, ".TP");
    text(out, tag);
    text(out, what);
}

/// Lines that are not to be filled, as commands are not.
fn unfilled(out: &mut Vec<u8>, lines: &str) {
    line(out, ".nf");
    for one in lines.trim_end().lines() {
        text(out, one);
    }
    line(out, ".fi");
}

/// A line in which nothing is for roff.
fn text(out: &mut Vec<u8>, words: &str) {
    let words = words.replace('\\', "\\e").replace('-', "\\-");
    let words = words
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('~', "\\(ti");
    let words = words.replace('^', "\\(ha");
    line(
        out,
        &if words.starts_with('.') {
            format!("\\&{words}")
        } else {
            words
        },
    );
}

fn line(out: &mut Vec<u8>, words: &str) {
    out.extend_from_slice(words.as_bytes());
    out.push(b'\n');
}
