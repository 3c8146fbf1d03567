//! What is said of arguments that mean nothing: `error:`, and `hint:` if there is something to type.
//!
//! clap finds the mistake. Its words are those of a library, and its hints name options that nobody meant, so that both are
//! put anew here.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::help;
use super::page;
use crate::near::near_words;
use crate::output::text::harmless;

/// What happened, and what to type instead.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) text: String,
    pub(super) hint: Option<String>,
}

impl Refusal {
    /// A message whose second line may be the hint: nothing in it is from a recording.
    fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        match text.split_once("\nhint: ") {
            Some((text, hint)) => Self::with(text, hint),
            None => Self { text, hint: None },
        }
    }

    fn with(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            hint: Some(hint.into()),
        }
    }

    /// The lines for stderr.
    pub(super) fn lines(&self) -> String {
        said("error", &self.text, self.hint.as_deref())
    }
}

/// A message, with what to type below it.
#[must_use]
pub fn said(level: &str, text: &str, hint: Option<&str>) -> String {
    let line = |head: &str, body: &str| format!("{head}: {}\n", harmless(&plain(body)));
    let mut lines = line(level, text);
    if let Some(hint) = hint {
        lines.push_str(&line("hint", hint));
    }
    lines
}

/// The system's words without its numbers.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some((before, rest)) = text.split_once(" (os error ") {
        let Some((number, after)) = rest.split_once(')') else {
            break;
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        text = format!("{before}{after}");
    }
    for (words, plainer) in [
        ("No such file or directory", "no such file or folder"),
        ("Permission denied", "permission denied"),
        ("Is a directory", "is a folder"),
        ("Not a directory", "not a folder"),
        ("No space left on device", "no space left on the device"),
        ("Too many levels of symbolic links", "too many links"),
    ] {
        text = text.replace(words, plainer);
    }
    text
}

/// The verb that is meant.
pub(super) fn verb_of(args: &[OsString]) -> Option<&str> {
    let word = args.get(1)?.to_str()?;
    help::verbs().any(|verb| verb == word).then_some(word)
}

/// What to say of a mistake.
pub(super) fn refusal(error: &clap::Error, args: &[OsString]) -> Refusal {
    let verb = verb_of(args);
    let program = verb.map_or_else(|| "pjit".to_owned(), |verb| format!("pjit {verb}"));
    let texts = |kind: ContextKind| -> Vec<String> {
        match error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    };
    let first = |kind: ContextKind| texts(kind).into_iter().next().unwrap_or_default();
    let option = bare(&first(ContextKind::InvalidArg));
    let value = first(ContextKind::InvalidValue);
    match error.kind() {
        _ if error.context().next().is_none() => in_own_words(error),
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            unknown_option(&program, verb, &option)
        }
        ErrorKind::UnknownArgument => Refusal::with(
            format!("{program} has no use for the word '{option}'"),
            format!("{program} -h"),
        ),
        ErrorKind::InvalidSubcommand => unknown_verb(&first(ContextKind::InvalidSubcommand)),
        ErrorKind::InvalidValue if value.is_empty() => {
            let choice = texts(ContextKind::ValidValue);
            let one_of = if choice.is_empty() {
                String::new()
            } else {
                format!(": one of {}", listed(&choice))
            };
            Refusal::new(format!("{option} needs a value{one_of}"))
        }
        ErrorKind::InvalidValue => {
            let choice = texts(ContextKind::ValidValue);
            Refusal::new(format!("{option} takes {}, not '{value}'", listed(&choice)))
        }
        ErrorKind::ValueValidation => Refusal::new(wrong_value(error, &option, &value)),
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<String> = texts(ContextKind::InvalidArg)
                .iter()
                .map(|name| bare(name))
                .collect();
            let text = format!("{program} needs {}", missing.join(" and "));
            // An option that is missing is in few examples, a word in all.
            let lacking = missing.iter().find(|name| name.starts_with("--"));
            let has = |example: &str| match lacking.map(String::as_str) {
                Some("--output") => example.contains(" -o "),
                Some(word) => example.contains(word),
                None => true,
            };
            let examples = verb.map_or(&[][..], |verb| page(verb).examples);
            match examples.iter().find(|(example, _)| has(example)) {
                Some((example, _)) => Refusal::with(text, *example),
                None => Refusal::new(text),
            }
        }
        ErrorKind::ArgumentConflict => {
            let prior: Vec<String> = texts(ContextKind::PriorArg)
                .iter()
                .map(|name| bare(name))
                .collect();
            match prior.first() {
                Some(prior) if *prior == option => Refusal::new(format!("{option} is given twice")),
                Some(prior) => Refusal::new(format!("{option} and {prior} exclude each other")),
                None => Refusal::new(format!("{option} excludes other options that were given")),
            }
        }
        ErrorKind::TooManyValues => Refusal::new(format!("{option} takes no value, not '{value}'")),
        ErrorKind::NoEquals => Refusal::new(format!(
            "{option} takes its value after =, as in {option}=1"
        )),
        ErrorKind::InvalidUtf8 => Refusal::new("an argument is not UTF-8"),
        _ => in_own_words(error),
    }
}

/// A message of pjit's own, which is one already.
fn in_own_words(error: &clap::Error) -> Refusal {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ").trim_end();
    Refusal::new(text.split("\n\n").next().unwrap_or_default())
}

/// `--by <WHAT>` is `--by`, `<FUNCTION>...` is FUNCTION.
fn bare(name: &str) -> String {
    let end = |text: &str| text.find([' ', '=', '[']).unwrap_or(text.len());
    match name.strip_prefix(['<', '[']) {
        Some(name) => {
            let close = name.find(['>', ']']).unwrap_or(name.len());
            name[..close].to_owned()
        }
        None => name[..end(name)].to_owned(),
    }
}

/// `a, b or c`
fn listed(words: &[String]) -> String {
    match words {
        [] => "another value".to_owned(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

fn unknown_option(program: &str, verb: Option<&str>, option: &str) -> Refusal {
    let text = format!("{program} has no option {option}");
    // Rows that are no samples are the report's alone.
    if matches!(
        option,
        "-b" | "--branch-stack" | "--no-branch-stack" | "--mem-mode"
    ) {
        return Refusal::with(text, format!("pjit report {option}"));
    }
    let command = verb.and_then(help::sorted);
    let longs: Vec<String> = command
        .iter()
        .flat_map(clap::Command::get_arguments)
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long().map(str::to_owned))
        .collect();
    let longs = longs.iter().map(String::as_str);
    let found = near_words(option.trim_start_matches('-'), longs);
    if found.is_empty() {
        Refusal::with(text, format!("{program} --help"))
    } else {
        Refusal::with(text, format!("similar: --{}", found.join(", --")))
    }
}

fn unknown_verb(word: &str) -> Refusal {
    let text = format!("pjit has no command '{word}'");
    if Path::new(word).exists() {
        return Refusal::with(text, format!("pjit summary {word}"));
    }
    match near_words(word, help::verbs()).first() {
        Some(verb) => Refusal::with(text, format!("pjit {verb}")),
        None => Refusal::with(text, "pjit -h"),
    }
}

/// What an option takes, in place of what a library says of a value.
fn wrong_value(error: &clap::Error, option: &str, value: &str) -> String {
    let Some(source) = error.source() else {
        return format!("{option} does not take '{value}'");
    };
    if source.is::<ParseIntError>() {
        return format!("{option} takes a whole number, not '{value}'");
    }
    if source.is::<ParseFloatError>() {
        return format!("{option} takes a number, not '{value}'");
    }
    let text = source.to_string();
    if source.is::<regex::Error>() {
        let last = text.lines().last().unwrap_or_default();
        let reason = last.trim_start_matches("error: ");
        return format!("{option}: '{value}' is not a regular expression: {reason}");
    }
    if let Some((_, range)) = text.split_once(" is not in ")
        && let Some((from, to)) = range.split_once("..=")
    {
        return format!("{option} takes {from} to {to}, not '{value}'");
    }
    if text.starts_with("takes ") {
        format!("{option} {text}, not '{value}'")
    } else if text.starts_with("has ") {
        format!("{option} {text}")
    } else {
        format!("{option}: {text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_speaks_plainly() {
        let told = said("error", "x: No such file or directory (os error 2)", None);
        assert_eq!(told, "error: x: no such file or folder\n");
        assert_eq!(
            plain("a (os error x) b (os error 5)"),
            "a (os error x) b (os error 5)"
        );
        assert_eq!(plain("a (os error 5): b (os error 13)"), "a: b");
        let told = said("warning", "a\nb", Some("c"));
        assert!(
            told.starts_with("warning: a") && told.ends_with("b\nhint: c\n"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 2);
    }

    #[test]
    fn names_of_arguments_are_bare() {
        assert_eq!(bare("--by <WHAT>"), "--by");
        assert_eq!(bare("--color[=<WHEN>]"), "--color");
        assert_eq!(bare("<FUNCTION>"), "FUNCTION");
        assert_eq!(bare("[FILE]..."), "FILE");
        assert_eq!(listed(&["a".to_owned(), "b".to_owned()]), "a or b");
    }
}
