//! `pjit -h`, `pjit VERB -h`, `pjit VERB --help`: groups of verbs, examples first, few options on the short page.
//!
//! clap knows the options and wraps their texts. What it knows is laid out anew here, as its groups come in the order in
//! which structs happen to have them, and its long page has three lines for each option.

use std::fmt::Write as _;

use clap::{Arg, Command as Syntax, CommandFactory};

use super::{Cli, page};

/// The verbs, in the groups in which `pjit -h` lists them.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    ("Record", &["record"]),
    (
        "Look",
        &["summary", "peek", "list", "annotate", "flamegraph"],
    ),
    ("Like perf", &["report", "script", "stat", "fold"]),
    ("Decide", &["check", "diff", "gate"]),
    ("Share", &["export", "bundle", "serve", "fetch"]),
    ("More", &["guide", "help", "jitdump", "completions", "man"]),
];

/// All verbs.
pub(super) fn verbs() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied())
}

/// Options that the short pages have in common.
const COMMON: [&str; 8] = [
    "input", "symfs", "jitdump", "kallsyms", "focus", "pid", "time", "output",
];
const COMMON_HEADING: &str = "Common options";

/// Groups of options that verbs share, in their order.
const SHARED: [&str; 7] = [
    "Filters",
    "Frames",
    "Weight",
    "Own code",
    "Symbols and sources",
    "Input",
    "Output",
];

/// The group of an option that verbs share.
fn shared(long: &str) -> Option<&'static str> {
    Some(match long {
        "comms" | "dsos" | "symbols" | "cpu" | "socket-filter" | "time" | "symbol-filter"
        | "exclude-other" | "parent" | "hide-unresolved" | "pid" | "tid" | "focus" | "ignore"
        | "tagfocus" | "tagignore" | "event" | "idle" | "parallelism" | "phase" | "between"
        | "within" | "slowest" | "switch-on" | "switch-off" | "show-on-off-events" => "Filters",
        "hide" | "show" | "show-from" | "no-cut-marks" | "cut-marks" | "stitch" | "no-stitch"
        | "no-root" | "no-inline" | "inline" => "Frames",
        "weight" | "no-trim" => "Weight",
        "own" | "not-own" | "package" | "activity" => "Own code",
        "vmlinux" | "kallsyms" | "ignore-vmlinux" | "modules" | "symfs" | "buildid-dir"
        | "no-demangle" | "demangle" | "demangle-kernel" | "cwasm" | "wasm" | "source-map"
        | "source-root" | "prefix" | "prefix-strip" => "Symbols and sources",
        "input" | "from" | "jitdump" | "perf-map" | "force" | "no-config" | "strict" | "jobs"
        | "verbose" => "Input",
        "format" | "budget" | "full-names" | "output" | "force-output" | "color" | "no-pager" => {
            "Output"
        }
        _ => return None,
    })
}

/// The verb's options in their groups, those of its own first.
pub(super) fn sorted(verb: &str) -> Option<Syntax> {
    let mut whole = Cli::command();
    whole.build();
    let found = whole.find_subcommand(verb)?;
    let mut all: Vec<Arg> = found.get_arguments().cloned().map(in_its_group).collect();
    let mut own: Vec<String> = Vec::new();
    for heading in all.iter().filter_map(Arg::get_help_heading) {
        if !SHARED.contains(&heading) && !own.iter().any(|own| own == heading) {
            own.push(heading.to_owned());
        }
    }
    let rank = |arg: &Arg| match arg.get_help_heading() {
        None => 0,
        Some(heading) => {
            let shared = SHARED.iter().position(|shared| *shared == heading);
            let of_its_own = own.iter().position(|own| own == heading);
            1 + of_its_own.unwrap_or(own.len() + shared.unwrap_or(0))
        }
    };
    all.sort_by_key(rank);
    let name = format!("pjit {verb}");
    let usage = found.get_overridden_usage().cloned();
    let mut sorted = Syntax::new(name.clone())
        .bin_name(name)
        .disable_help_flag(true)
        .about(found.get_about().cloned().unwrap_or_default());
    if let Some(usage) = usage {
        sorted = sorted.override_usage(usage);
    }
    Some(sorted.groups(found.get_groups().cloned()).args(all))
}

/// An option under the heading of its group. One that follows a flattened group has that one's heading, by clap's way.
fn in_its_group(arg: Arg) -> Arg {
    let Some(heading) = arg.get_help_heading().map(str::to_owned) else {
        return arg;
    };
    let shared = arg.get_long().and_then(shared);
    match shared {
        Some(shared) => arg.help_heading(shared),
        None if LEAKING.contains(&&*heading) => arg.help_heading(None::<&str>),
        None => arg,
    }
}

/// Headings of structs that verbs share.
const LEAKING: [&str; 8] = [
    "Input",
    "Symbols",
    "Incomplete stacks",
    "Filters",
    "Samples and frames",
    "Weight",
    "Own code",
    "Output",
];

/// The page of a verb.
pub(super) fn of_verb(verb: &str, is_long: bool) -> Option<String> {
    const TEMPLATE: &str =
        "{about}\n\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}\n";
    let page = page(verb);
    let sorted = sorted(verb)?.help_template(TEMPLATE);
    let shown = |arg: &Arg| !arg.is_hide_set() && !arg.is_positional();
    let count = sorted.get_arguments().filter(|arg| shown(arg)).count();
    let few = if is_long { page.examples.len() } else { 2 };
    let examples = examples(page.examples.iter().take(few));
    let mut command = if examples.is_empty() {
        sorted
    } else {
        sorted.before_help(examples)
    };
    if is_long {
        if !page.notes.is_empty() {
            command = command.after_help(page.notes);
        }
    } else {
        command = shortened(command, page.short);
        if count > 1 {
            command = command.after_help(format!("All {count} options: pjit {verb} --help"));
        }
    }
    let text = command.render_help().to_string();
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    Some(lines.join("\n") + "\n")
}

/// Only the options that are named, and after them those that all short pages have.
fn shortened(command: Syntax, short: &'static [&'static str]) -> Syntax {
    command.mut_args(|arg| {
        if arg.is_positional() {
            return arg;
        }
        let long = arg.get_long().unwrap_or_default().to_owned();
        let is_own = arg
            .get_help_heading()
            .is_none_or(|own| !SHARED.contains(&own));
        let place = short.iter().position(|name| *name == long);
        let common = COMMON.iter().position(|name| *name == long);
        match (place, common) {
            (Some(at), _) => arg.help_heading(None::<&str>).display_order(at),
            (None, Some(at)) if !arg.is_hide_set() => {
                arg.help_heading(COMMON_HEADING).display_order(100 + at)
            }
            _ if short.is_empty() && is_own => arg,
            _ => arg.hide(true),
        }
    })
}

/// Commands with what they are for, in two columns.
fn examples<'e>(all: impl Iterator<Item = &'e (&'static str, &'static str)> + Clone) -> String {
    let with_words = all.clone().filter(|(_, what)| !what.is_empty());
    let width = with_words
        .map(|(command, _)| command.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (command, what) in all {
        if text.is_empty() {
            text.push_str("Examples:");
        }
        let line = format!("\n  {command:width$}  {what}");
        text.push_str(line.trim_end());
    }
    text
}

/// `pjit -h`.
pub(super) fn overview() -> String {
    let whole = Cli::command();
    let about = |verb: &str| {
        let found = whole.find_subcommand(verb);
        found.and_then(Syntax::get_about).map(ToString::to_string)
    };
    let mut text = format!(
        "{}\nUsage: pjit COMMAND [OPTIONS]; pjit COMMAND -h; pjit -V\n",
        whole
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    );
    for (group, verbs) in GROUPS {
        let _ = write!(text, "\n{group}:\n");
        for verb in verbs {
            let _ = writeln!(text, "  {verb:11}  {}", about(verb).unwrap_or_default());
        }
    }
    text.push_str(
        "
Begin with these two:
  pjit record -- ./app    record a program, and see where the time went
  pjit check              tell if you can trust the recording
",
    );
    text
}
