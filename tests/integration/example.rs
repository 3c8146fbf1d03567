//! The program that shows how the library is used.

use std::path::Path;
use std::process::Command;

use crate::support::{skip, stdout_of};

/// It sees the same functions as the report does, with the same shares.
#[test]
fn the_ten_hottest_functions_are_those_of_the_report() {
    let binaries = Path::new(env!("CARGO_BIN_EXE_pjit")).parent();
    let program = binaries.expect("a folder").join("examples/hottest");
    if !program.exists() {
        skip("example", "it is built by `cargo test` without `--test`");
        return;
    }
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/wasmtime/perf.data");
    let output = Command::new(program)
        .arg(recording)
        .output()
        .expect("it can be run");
    let text = String::from_utf8(output.stdout).expect("text");
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
