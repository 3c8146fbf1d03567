//! The programs that show how the library is used.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{skip, stdout_of};

/// What an example prints of a sample, which stands for each argument.
fn printed(example: &str, arguments: usize) -> Option<String> {
    let binaries = Path::new(env!("CARGO_BIN_EXE_pjit")).parent();
    let program = binaries.expect("a folder").join("examples").join(example);
    if !program.exists() {
        skip("example", "it is built by `cargo test` without `--test`");
        return None;
    }
    let output = Command::new(program)
        .args(vec![recording(); arguments])
        .output()
        .expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/wasmtime/perf.data")
}

/// Without the path of the recording, which differs.
fn pathless(text: &str) -> String {
    let absolute = recording().display().to_string();
    text.replace(&absolute, "perf.data")
}

/// It sees the same functions as the report does, with the same shares.
#[test]
fn the_ten_hottest_functions_are_those_of_the_report() {
    let Some(text) = printed("hottest", 1) else {
        return;
    };
    let report = ["report", "--no-children", "-g", "none", "-s", "dso,sym"];
    let report = stdout_of(&report, "wasmtime");
    let rows = report.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(text.lines().count(), 10);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [share, dso, name] = words[..] else {
            panic!("{line}");
        };
        let is = |row: &Vec<&str>| row.first() == Some(&share) && row[1] == dso && row[3] == name;
        assert!(rows.iter().any(is), "{line}\n{report}");
    }
}

#[test]
fn summaries_and_comparisons_are_those_of_the_verbs() {
    let path = recording().display().to_string();
    let verbs = [
        ("summary", vec!["summary", "--format", "markdown", &path]),
        ("stacks", vec!["fold", &path]),
        (
            "compare",
            vec!["diff", "--format", "json", &path, "--to", &path],
        ),
    ];
    for (example, verb) in verbs {
        let Some(text) = printed(example, verb.iter().filter(|word| **word == path).count()) else {
            return;
        };
        let expected = Command::new(env!("CARGO_BIN_EXE_pjit"))
            .args(&verb)
            .output()
            .expect("it can be run");
        let expected = String::from_utf8(expected.stdout).expect("text");
        assert!(!expected.is_empty());
        assert_eq!(pathless(&text), pathless(&expected), "{example}");
    }
}
