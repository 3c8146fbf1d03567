//! `pjit man`: manual pages, of pjit, its commands and its topics.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Command as Syntax, CommandFactory};
use clap_mangen::Man;

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
            None => overview()?,
            Some(word) => match (topics::topic(word), help::sorted(word)) {
                (Some(topic), _) => of_topic(topic)?,
                (None, Some(command)) => of_verb(word, command)?,
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
        "folders of pjit record; the newest is read if there is no perf.data",
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
    ("NO_COLOR", "if set, no colours"),
    ("BROWSER", "the program that flamegraph --open starts"),
    ("COLUMNS", "the width of help"),
    ("TMPDIR", "folder of the temporary file for large streams"),
    ("HOME", "where .perfconfig and .debug are"),
];

fn of_verb(verb: &str, command: Syntax) -> io::Result<Vec<u8>> {
    let page = super::page(verb);
    let man = manual(command.name(format!("pjit-{verb}")));
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    if !page.notes.is_empty() {
        section(&mut out, "DESCRIPTION");
        for paragraph in page.notes.split("\n\n") {
            line(&mut out, ".PP");
            text(&mut out, paragraph);
        }
    }
    if !page.examples.is_empty() {
        section(&mut out, "EXAMPLES");
        for (command, what) in page.examples {
            if !what.is_empty() {
                line(&mut out, ".PP");
                text(&mut out, &format!("{what}:"));
            }
            unfilled(&mut out, &format!("    {command}"));
        }
    }
    man.render_options_section(&mut out)?;
    if !page.notes.contains("Exit status") {
        section(&mut out, "EXIT STATUS");
        text(&mut out, "0 done, 1 error, 2 wrong arguments.");
    }
    ending(&mut out, &["pjit(1)", "perf(1)"]);
    Ok(out)
}

fn overview() -> io::Result<Vec<u8>> {
    let mut whole = Cli::command();
    whole.build();
    let man = manual(whole.clone());
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    section(&mut out, "SYNOPSIS");
    text(&mut out, "pjit COMMAND [OPTIONS]");
    section(&mut out, "EXAMPLES");
    for example in [
        "pjit record -- ./app",
        "pjit check",
        "pjit summary",
        "pjit flamegraph --open",
    ] {
        unfilled(&mut out, &format!("    {example}"));
    }
    section(&mut out, "COMMANDS");
    for (group, verbs) in GROUPS {
        line(&mut out, &format!(".SS {group}"));
        for verb in verbs {
            let about = whole.find_subcommand(verb).and_then(Syntax::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
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
    Ok(out)
}

fn of_topic(topic: &Topic) -> io::Result<Vec<u8>> {
    let command = Syntax::new(format!("pjit-{}", topic.word)).about(topic.about);
    let man = manual(command.disable_help_flag(true));
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    section(&mut out, "DESCRIPTION");
    unfilled(&mut out, &topic.text());
    section(&mut out, "SEE ALSO");
    text(&mut out, "pjit(1)");
    Ok(out)
}

/// The date is that of the commit, so that the same source makes the same page.
fn manual(command: Syntax) -> Man {
    let version = env!("PJIT_VERSION");
    let date = version
        .rsplit([' ', '('])
        .next()
        .unwrap_or_default()
        .trim_end_matches(')');
    let date = if date.matches('-').count() == 2 {
        date
    } else {
        ""
    };
    let source = format!("pjit {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.version(env!("CARGO_PKG_VERSION")))
        .date(date)
        .source(source)
        .manual("pjit")
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
