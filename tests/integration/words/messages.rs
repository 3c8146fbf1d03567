//! What is said of wrong calls: one voice, and what to type instead. All of it is in `tests/data/messages.txt`, so that each is
//! read when it changes; `PJIT_BLESS=1` renews it.

use std::fmt::Write as _;
use std::path::Path;

use super::prose::{Limits, Measure};
use super::root;
use crate::support::pjit;

/// Calls that cannot be answered, from the project's folder. Words are parted by blanks; `~` is a blank within one.
const CALLS: &str = "

sumary
README.md
nonsense
summary --focsu x
summary --nonsense
summary --by foo
summary --by
summary --format xml
summary --budget abc
summary --budget 3
summary --own ( samples/node
summary --package foo samples/node
summary --tagfocus foo=x samples/node
summary --time nonsense samples/node
summary --pid abc
summary --weight foo samples/node
summary --event nosuch samples/node
summary --edges=1
summary -i a b
summary nosuch.data
summary src
summary README.md
summary --jitdump nosuch samples/node
summary --symfs README.md samples/node
summary --kallsyms nosuch samples/node
summary -o /nonexistent/x samples/node
peek
peek fibonacii samples/node
peek --depth 300 main
list nosuchfunction samples/node
annotate fibonacii -i samples/node
annotate --percent-type foo
annotate -M foo
annotate --tui -i samples/node
flamegraph samples/node -o x.pdf
flamegraph --shape both samples/node
flamegraph --source -o x.svg samples/node
flamegraph --hash -o x.html samples/node
flamegraph a b
report -b
report --branch-history
report -b --mem-mode
fold -b
summary --mem-mode
report -b --weight alloc
report --itrace=i
report --mem-mode
report -s nonsense samples/node
report -s mem samples/node
report -g nonsense samples/node
report --percent 5
report --percent-limit x
report --stats --tasks samples/node
report --children=5
report -C x samples/node
report --metrics foo
report -t . samples/node
fold --annotate-jitt
script -F nonsense samples/node
script -F ip,symoff samples/node
stat --stitch samples/node
stat samples/node --per-core --per-die
check --min-complete 200 samples/node
check --no-inline samples/node
diff samples/node
diff -i samples/node
diff samples/node nosuch
gate samples/node samples/node
gate samples/node samples/node --max-growth x
gate samples/node samples/node --max-share kind:foo=3%
export samples/node
export samples/node -o x.foo
export samples/node samples/wasm -o x.json.gz
export samples/node -o x.pb.gz --labels foo
bundle -o - -
fetch samples/node
fetch --max-size x samples/node
fetch --executables --sources main samples/node
fetch --stitch samples/node
jitdump
jitdump README.md
guide nonsense
help nonsense
man sumary
completions tcsh
record
record --duration x -a
record --call-graph dwarf,7 -- true
record --no-switch foo -- true
record -m 5X -- true
record --runs 0 -- true
record --fre
";

fn said(call: &str) -> (Option<i32>, String, String) {
    let words = call
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| word.replace('~', " "));
    let output = pjit()
        .current_dir(root())
        .args(words)
        .output()
        .expect("the binary can be run");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stderr),
        text(output.stdout),
    )
}

#[test]
fn wrong_calls_are_answered_in_one_voice() {
    let mut all = String::new();
    let mut wrong = Vec::new();
    for call in CALLS.lines().skip(2) {
        let (status, text, out) = said(call);
        let status = status.unwrap_or(-1);
        let _ = write!(all, "$ pjit {call}\n{text}[{status}]\n\n");
        let expected = if call.starts_with("record") {
            vec![125, 2]
        } else {
            vec![1, 2]
        };
        if !expected.contains(&status) || !out.is_empty() {
            wrong.push(format!("pjit {call}: status {status}: {out}"));
        }
        for line in text.lines() {
            let level = ["error: ", "warning: ", "note: ", "hint: "]
                .into_iter()
                .find(|level| line.starts_with(level));
            let rest = level.map_or("", |level| &line[level.len()..]);
            let is_long = line.chars().count() > 160;
            let is_of_a_library = [
                "os error",
                "invalid",
                "literal",
                "found in string",
                "clap",
                "Usage:",
            ]
            .iter()
            .any(|words| line.contains(words));
            if level.is_none()
                || rest.is_empty()
                || rest.ends_with(['.', '!']) && !rest.ends_with("...")
                || is_long
                || is_of_a_library
            {
                wrong.push(format!("pjit {call}: {line}"));
            }
            if line.contains("scripts/") {
                wrong.push(format!("pjit {call}: names what no package has: {line}"));
            }
        }
        if !text.starts_with("error: ") && !text.contains("\nerror: ") {
            wrong.push(format!("pjit {call}: no error: {text}"));
        }
    }
    let calls = all.matches("$ pjit ").count();
    assert!(calls >= 60, "{calls}");
    let prose: Vec<&str> = all
        .lines()
        .filter_map(|line| line.split_once(": ").map(|(_, text)| text))
        .collect();
    wrong.extend(Measure::of(&prose.join("\n\n"), true).above(Limits(10, 19, 40, 2.0)));
    let path = Path::new("tests/data/messages.txt");
    if std::env::var_os("PJIT_BLESS").is_some() {
        std::fs::write(root().join(path), &all).expect("written");
    }
    let expected = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    if expected != all {
        let differing = all
            .lines()
            .zip(expected.lines().chain(std::iter::repeat("")))
            .find(|(is, was)| is != was);
        wrong.push(format!(
            "{} differs (PJIT_BLESS=1 renews it): {differing:?}",
            path.display()
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_arguments_are_answered_by_the_overview() {
    let output = pjit().output().expect("the binary can be run");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Begin with these two:"));
}
