//! `pjit completions`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, CommandFactory};

use super::help;
use super::page::Page;
use super::terminal::Output;
use super::topics;
use super::{Cli, Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        (
            "pjit completions bash > ~/.local/share/bash-completion/completions/pjit",
            "",
        ),
        (
            "pjit completions zsh > ~/.zfunc/_pjit",
            "a folder of $fpath",
        ),
        (
            "pjit completions fish > ~/.config/fish/completions/pjit.fish",
            "",
        ),
    ],
    short: &[],
    notes: "",
};

/// Arguments of `pjit completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: clap_complete::Shell,
}

impl Verb for CompletionsArgs {
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        // clap panics where a reader has gone.
        let mut script = Vec::new();
        let mut whole = offering();
        clap_complete::generate(self.shell, &mut whole, "pjit", &mut script);
        if self.shell == clap_complete::Shell::Fish {
            script.extend_from_slice(for_fish(&whole).as_bytes());
        }
        let mut out = Output::open(None);
        out.write_all(&script)?;
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The command line, where options that take lists or words of their own offer these. What is parsed stays as it is.
fn offering() -> Command {
    let mut whole = Cli::command();
    whole.build();
    let verbs: Vec<String> = whole
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    for verb in verbs {
        whole = whole.mut_subcommand(&verb, |command| {
            command.mut_args(|arg| match words(&verb, &arg) {
                words if words.is_empty() => arg,
                words => arg.value_parser(PossibleValuesParser::new(words)),
            })
        });
    }
    whole
}

/// What clap leaves out of the script for fish: values that follow no option, as in `pjit man keys`.
fn for_fish(whole: &Command) -> String {
    let mut text = String::new();
    for verb in whole.get_subcommands() {
        let values = verb.get_positionals().flat_map(Arg::get_possible_values);
        let values: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        if !values.is_empty() {
            let (verb, values) = (verb.get_name(), values.join(" "));
            let _ = writeln!(
                text,
                "complete -c pjit -n \"__fish_pjit_using_subcommand {verb}\" -f -a \"{values}\""
            );
        }
    }
    text
}

/// What stands for a value of an option.
fn words(verb: &str, arg: &Arg) -> Vec<&'static str> {
    let of = |topic: &str| topics::topic(topic).map(|topic| topic.listed().collect());
    let list = match (verb, arg.get_long()) {
        ("report", Some("sort" | "fields")) => of("keys"),
        ("script", Some("fields")) => of("fields"),
        (_, Some("weight")) => of("weights"),
        ("report", Some("call-graph")) => Some(vec![
            "graph", "fractal", "flat", "folded", "none", "caller", "callee", "function",
            "address", "srcline", "percent", "period", "count",
        ]),
        ("record", Some("call-graph")) => Some(vec!["dwarf", "fp", "lbr"]),
        ("report", Some("metrics")) => Some(vec![
            "ipc",
            "branch-miss",
            "cache-miss",
            "l1d-miss",
            "llc-miss",
            "mpki",
            "stall",
            "ghz",
            "fault-rate",
        ]),
        ("annotate", Some("percent-type")) => Some(vec![
            "local-period",
            "local-hits",
            "global-period",
            "global-hits",
        ]),
        ("annotate", Some("disassembler-style")) => Some(vec!["att", "intel"]),
        ("help" | "man", None) if arg.is_positional() => {
            Some(help::verbs().chain(topics::words()).collect())
        }
        _ => None,
    };
    list.unwrap_or_default()
}
