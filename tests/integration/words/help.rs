//! What help shows: it fits a screen, its groups are in order, its words are plain.

use std::collections::BTreeSet;

use super::prose::{Limits, Measure};
use super::root;
use crate::support::pjit;

/// All verbs, as `pjit -h` lists them.
pub(super) fn verbs() -> Vec<String> {
    let overview = printed(&["-h"], 100);
    let is_row = |line: &&str| line.starts_with("  ") && !line.trim_start().starts_with("pjit");
    let rows = overview.lines().filter(is_row);
    let verbs = rows.filter_map(|row| row.split_whitespace().next());
    let verbs: Vec<String> = verbs.map(str::to_owned).collect();
    assert!(verbs.len() >= 20, "{verbs:?}");
    verbs
}

/// The options of a verb's page, by their long names, with the headings they are under.
pub(super) fn headed(verb: &str) -> Vec<(String, String)> {
    let text = printed(&[verb, "--help"], 100);
    let mut found = Vec::new();
    let mut heading = "";
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if indent == 0 {
            heading = line;
        } else if line.trim_start().starts_with('-') && indent <= 6 {
            let mut words = line.split([' ', ',', '=', '[', '.']);
            let long = words.find(|word| word.starts_with("--"));
            // Of one option there is the letter alone.
            let name = long.unwrap_or_else(|| line.trim_start().split(' ').next().unwrap_or(""));
            found.push((name.to_owned(), heading.to_owned()));
        }
    }
    found
}

/// The options of a verb's page.
pub(super) fn options(verb: &str) -> Vec<String> {
    headed(verb).into_iter().map(|(option, _)| option).collect()
}

/// All that help prints, with what was typed.
pub(super) fn pages() -> Vec<(String, String)> {
    let mut typed: Vec<Vec<String>> = vec![vec!["--help".to_owned()], vec!["guide".to_owned()]];
    for verb in verbs() {
        typed.push(vec![verb.clone(), "--help".to_owned()]);
        typed.push(vec!["man".to_owned(), verb]);
    }
    for topic in ["keys", "weights", "fields", "formats", "status"] {
        typed.push(vec!["help".to_owned(), topic.to_owned()]);
    }
    let page = |words: Vec<String>| {
        let all: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = printed(&all, 100);
        (words.join(" "), text)
    };
    typed.into_iter().map(page).collect()
}

fn printed(words: &[&str], columns: usize) -> String {
    let output = pjit()
        .args(words)
        .env("COLUMNS", columns.to_string())
        .output()
        .expect("the binary can be run");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words:?}"
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn short_help_fits_a_screen() {
    let mut pages = vec![vec!["-h".to_owned()]];
    pages.extend(verbs().into_iter().map(|verb| vec![verb, "-h".to_owned()]));
    for page in pages {
        let words: Vec<&str> = page.iter().map(String::as_str).collect();
        for (columns, most) in [(100, 40), (80, 50)] {
            let text = printed(&words, columns);
            let lines = text.lines().count();
            assert!(
                lines <= most,
                "{words:?}: {lines} lines of {columns} columns\n{text}"
            );
            assert!(
                widest(&text) <= columns,
                "{words:?}: {} columns\n{text}",
                widest(&text)
            );
        }
    }
}

/// The groups of options, in the order in which all pages have them. Others are a verb's own, and come before.
const SHARED: [&str; 7] = [
    "Filters:",
    "Frames:",
    "Weight:",
    "Own code:",
    "Symbols and sources:",
    "Input:",
    "Output:",
];

/// Options with the group that they belong to wherever they are shared.
const GROUPS: [(&str, &str); 14] = [
    ("--focus", "Filters:"),
    ("--time", "Filters:"),
    ("--tagfocus", "Filters:"),
    ("--hide", "Frames:"),
    ("--stitch", "Frames:"),
    ("--no-inline", "Frames:"),
    ("--weight", "Weight:"),
    ("--own", "Own code:"),
    ("--symfs", "Symbols and sources:"),
    ("--vmlinux", "Symbols and sources:"),
    ("--cwasm", "Symbols and sources:"),
    ("--jitdump", "Input:"),
    ("--perf-map", "Input:"),
    ("--full-names", "Output:"),
];

#[test]
fn long_help_has_its_groups_in_order() {
    for verb in verbs() {
        let text = printed(&[&verb, "--help"], 100);
        assert!(widest(&text) <= 100, "{verb}: {text}");
        let is_group = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
        let groups: Vec<&str> = text.lines().filter(is_group).collect();
        assert!(groups.first() == Some(&"Examples:"), "{verb}: {groups:?}");
        let rank = |group: &&str| {
            SHARED
                .iter()
                .position(|shared| shared == group)
                .map_or(0, |at| at + 1)
        };
        assert!(groups.is_sorted_by_key(rank), "{verb}: {groups:?}");
        let distinct: BTreeSet<&str> = groups.iter().copied().collect();
        assert_eq!(distinct.len(), groups.len(), "{verb}: {groups:?}");
        // An option that follows a flattened group is not in that group.
        let mut group = "";
        for line in text.lines() {
            if is_group(&line) {
                group = line;
            }
            let long = line.split_whitespace().find(|word| word.starts_with("--"));
            let is_option = line.trim_start().starts_with('-');
            let Some(long) = long.filter(|_| is_option && verb != "record" && verb != "jitdump")
            else {
                continue;
            };
            let long = long.split(['=', '[', '.']).next().unwrap_or(long);
            if let Some((_, expected)) = GROUPS.iter().find(|(option, _)| *option == long) {
                assert_eq!(group, *expected, "{verb} {long}");
            }
        }
    }
}

/// What the short page names is there, and the long page has all that it counts.
#[test]
fn short_help_counts_what_long_help_shows() {
    for verb in verbs() {
        let (short, long) = (
            printed(&[&verb, "-h"], 100),
            printed(&[&verb, "--help"], 100),
        );
        let indent = |line: &str| line.len() - line.trim_start().len();
        let is_option =
            |line: &&str| line.trim_start().starts_with('-') && (2..=6).contains(&indent(line));
        let count = long.lines().filter(is_option).count();
        if let Some(said) = short.lines().find_map(|line| line.strip_prefix("All ")) {
            assert_eq!(said, format!("{count} options: pjit {verb} --help"));
        }
        let name = |line: &str| {
            let mut words = line.split([' ', ',']);
            words
                .find(|word| word.starts_with("--") && !word.ends_with(']'))
                .map(str::to_owned)
        };
        let known: BTreeSet<String> = long.lines().filter(is_option).filter_map(name).collect();
        for option in short.lines().filter(is_option).filter_map(name) {
            assert!(known.contains(&option), "{verb}: {option}");
        }
        assert_eq!(printed(&["help", &verb], 100), long);
    }
}

#[test]
fn words_of_help_are_plain() {
    let mut pages: Vec<Vec<String>> = verbs()
        .into_iter()
        .map(|verb| vec![verb, "--help".to_owned()])
        .collect();
    for topic in ["keys", "weights", "fields", "formats", "status"] {
        pages.push(vec!["help".to_owned(), topic.to_owned()]);
    }
    let mut all = String::new();
    let mut wrong = Vec::new();
    for page in pages {
        let words: Vec<&str> = page.iter().map(String::as_str).collect();
        let text = printed(&words, 100);
        assert!(widest(&text) <= 100, "{words:?}: {} columns", widest(&text));
        let is_topic = words[0] == "help";
        // Rows of a list are no sentences.
        let text: Vec<&str> = text
            .lines()
            .filter(|line| !is_topic || !line.starts_with("  "))
            .collect();
        let text = text.join("\n");
        let above = Measure::of(&text, false).above(Limits(10, 20, 40, 5.0));
        wrong.extend(above.into_iter().map(|what| format!("{words:?}: {what}")));
        // No help names what a package does not have.
        assert!(!text.contains("scripts/"), "{words:?}");
        all.push_str(&text);
        all.push_str("\n\n");
    }
    wrong.extend(Measure::of(&all, false).above(Limits(10, 20, 40, 2.0)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_is_given_on_topics_and_refused_on_others() {
    let keys = printed(&["help", "keys"], 100);
    assert!(
        keys.contains("  srcline             source file and line\n"),
        "{keys}"
    );
    assert!(printed(&["help"], 100).contains("pjit help weights"));
    let output = pjit().args(["help", "sumary"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "error: no command and no topic 'sumary'; similar: summary\n"
    );
}

#[test]
fn man_pages_have_their_sections_and_whole_commands() {
    let mut pages: Vec<Vec<String>> = verbs()
        .into_iter()
        .map(|verb| vec!["man".to_owned(), verb])
        .collect();
    pages.push(vec!["man".to_owned()]);
    for page in pages {
        let words: Vec<&str> = page.iter().map(String::as_str).collect();
        let text = printed(&words, 100);
        let sections: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        for wanted in ["NAME", "SYNOPSIS", "EXAMPLES", "FILES", "ENVIRONMENT"] {
            assert!(sections.contains(&wanted), "{words:?}: {sections:?}");
        }
        assert!(
            text.contains(".SH \"SEE ALSO\"") || sections.contains(&"SEE ALSO"),
            "{words:?}"
        );
        assert!(!text.contains("EXTRA"), "{words:?}");
        // A command is in lines that are not filled.
        let mut is_filled = true;
        for line in text.lines() {
            is_filled = match line {
                ".nf" => false,
                ".fi" => true,
                _ => is_filled,
            };
            assert!(
                !line.starts_with("    pjit ") || !is_filled,
                "{words:?}: {line}"
            );
        }
    }
    assert!(printed(&["man", "keys"], 100).contains("comm_nodigit"));
}

/// Beginnings of lines, and what shells offer for the last word.
const OFFERS: [(&str, &str); 20] = [
    ("pjit su", "summary"),
    ("pjit report -s comm", "comm comm_nodigit"),
    ("pjit report --sort srcl", "srcline srcline_from srcline_to"),
    (
        "pjit report -F overhead_g",
        "overhead_guest_sys overhead_guest_us",
    ),
    ("pjit report -g ca", "callee caller"),
    ("pjit report --metrics i", "ipc"),
    ("pjit summary --weight a", "alloc alloc-count"),
    ("pjit peek --weight w", "wall"),
    ("pjit script -F sym", "sym symoff"),
    ("pjit summary --format m", "markdown"),
    ("pjit summary --by pr", "process"),
    ("pjit man k", "keys"),
    ("pjit help w", "weights"),
    ("pjit guide a", "assistants"),
    ("pjit completions z", "zsh"),
    ("pjit record --call-graph d", "dwarf"),
    ("pjit annotate -M i", "intel"),
    ("pjit diff --normalize m", "median"),
    ("pjit export --format s", "speedscope"),
    ("pjit gate --max-g", "--max-growth"),
];

/// A shell's script reads lines, and prints what is offered for each.
fn offers(shell: &str, arguments: &[&str]) {
    if crate::support::program(shell).is_none() {
        return crate::support::skip(shell, "it is not there");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let lines: Vec<&str> = OFFERS.iter().map(|(line, _)| *line).collect();
    let mut child = std::process::Command::new(shell)
        .args(arguments)
        .env("PJIT", env!("CARGO_BIN_EXE_pjit"))
        .env("HOME", folder.path())
        // Names of files are offered, too.
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it can be run");
    let input = lines.join("\n") + "\n";
    let stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut &stdin, input.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let output = String::from_utf8(output.stdout).expect("UTF-8");
    let sorted = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.sort_unstable();
        words.join(" ")
    };
    let offered: Vec<String> = output.lines().map(sorted).collect();
    let expected: Vec<&str> = OFFERS.iter().map(|(_, words)| *words).collect();
    assert_eq!(offered, expected);
}

#[test]
fn bash_offers_words() {
    let script = "
        source <(\"$PJIT\" completions bash)
        offers() {
            COMP_WORDS=(\"$@\") COMPREPLY=()
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _pjit pjit \"${COMP_WORDS[$COMP_CWORD]}\" \"${COMP_WORDS[$((COMP_CWORD - 1))]}\"
            echo \"${COMPREPLY[*]}\"
        }
        while read -r line; do offers $line; done";
    offers("bash", &["-c", script]);
}

#[test]
fn zsh_offers_words() {
    let script = root().join("tests/programs/complete.zsh");
    offers("zsh", &["-f", script.to_str().expect("UTF-8")]);
}

#[test]
fn fish_offers_words() {
    let script = "
        $PJIT completions fish | source
        while read -l line; echo (complete -C $line | string split -f1 \\t); end";
    offers("fish", &["--no-config", "-c", script]);
}

/// The number, and of what is given away the commit.
#[test]
fn the_version_is_a_number_and_perhaps_a_commit() {
    let text = printed(&["--version"], 100);
    let number = concat!("pjit ", env!("CARGO_PKG_VERSION"));
    let rest = text.strip_prefix(number).map(str::trim_end);
    let is_commit = |rest: &str| rest.starts_with(" (") && rest.ends_with(')');
    assert!(
        rest.is_some_and(|rest| rest.is_empty() || is_commit(rest)),
        "{text}"
    );
}

/// What shells offer, as their scripts have it.
#[test]
fn completions_offer_keys_weights_formats_and_pages() {
    for (shell, lines) in [
        (
            "bash",
            &[
                "comm_nodigit",
                "alloc-count",
                "markdown",
                "symoff",
                "fractal",
                "local-hits",
                "weights",
                "dwarf",
                "firefox",
                "package",
            ][..],
        ),
        (
            "zsh",
            &[
                "comm_nodigit",
                "alloc-count",
                "markdown",
                "symoff",
                "fractal",
                "local-hits",
            ],
        ),
        (
            "fish",
            &["comm_nodigit", "alloc-count", "markdown", "symoff"],
        ),
    ] {
        let script = printed(&["completions", shell], 100);
        for word in lines {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}
