//! `pjit summary --over-time`: what is told of a recording whose times are known, and the ranges that it gives other verbs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bundle::succeed;
use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::pjit;

const CODE: u64 = 0x40_0000;
const SIZE: u64 = 0x1000;
const NAMES: [&str; 4] = [
    "JS:*main /w/a.js:1:1",
    "JS:*handle /w/a.js:2:1",
    "JS:*rebuild /w/a.js:3:1",
    "Builtin:ArraySort",
];
const MS: u64 = 1_000_000;
/// Time of the first sample.
const BEGIN: u64 = 5_000 * MS;

/// Nine seconds: a stall of 200 ms every 1.5 s, and half a second without a sample.
fn recording(folder: &Path) -> PathBuf {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"node");
    recording.map(7, CODE, 0x10_0000, 0, b"//anon");
    let map: String = (0..)
        .zip(NAMES)
        .map(|(at, name)| format!("{:x} {SIZE:x} {name}\n", CODE + SIZE * at))
        .collect();
    let at = |number: u64| CODE + SIZE * number + 0x10;
    for ms in 0..9000 {
        if (6300..6800).contains(&ms) {
            continue;
        }
        let is_stall = ms >= 1500 && ms % 1500 < 200;
        // Short calls, in no rhythm.
        let is_idle = (ms * 7919) % 1009 < 500;
        let chain: Vec<u64> = match (is_stall, is_idle) {
            (true, _) => vec![CONTEXT_USER, at(3), at(2), at(0)],
            (false, true) => vec![CONTEXT_USER, at(0)],
            (false, false) => vec![CONTEXT_USER, at(1), at(0)],
        };
        recording.sample(&Sample {
            ip: chain[1],
            pid: 7,
            tid: 7,
            time: BEGIN + ms * MS,
            period: MS,
            chain: &chain,
            user: None,
        });
    }
    fs::write(folder.join("perf-7.map"), map).expect("written");
    let path = folder.join("perf.data");
    fs::write(&path, recording.file()).expect("written");
    path
}

fn said(arguments: &[&str], data: &Path) -> String {
    let output = succeed(pjit().args(arguments).arg("-i").arg(data));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn stalls_and_times_without_cpu_are_told_and_their_ranges_can_be_pasted() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = recording(folder.path());
    let page = said(&["summary", "--over-time"], &data);
    let lines: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines[0].starts_with("Long spells"), "{page}");
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(
        words,
        [
            "5", "x", "200", "ms", "200", "ms", "1.50", "s", "node/7", "rebuild", "a.js:3"
        ],
        "{page}"
    );
    assert!(page.contains("1 x  501 ms"), "{page}");
    assert!(page.lines().count() <= 45 && page.lines().all(|line| line.chars().count() <= 80));
    // What it says to type shows the longest of them, and nothing else.
    let range = lines[2].trim().strip_prefix("--time ").expect("a range");
    let stacks = said(&["fold", "--weight", "samples", "--time", range], &data);
    let folded: Vec<&str> = stacks.lines().collect();
    assert_eq!(folded.len(), 1, "{stacks}");
    assert!(folded[0].ends_with("Builtin:ArraySort 200"), "{stacks}");
    // The same second, though the rest of the recording is left out.
    let part = said(&["summary", "--over-time", "--time", "+2,+9"], &data);
    assert!(part.contains("--time +3.000,+3.199"), "{part}");
}

#[test]
fn documents_and_tables_have_each_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = recording(folder.path());
    let document = said(&["summary", "--over-time", "--format", "json"], &data);
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let over = &document["over_time"];
    assert_eq!(over["begin_ns"], BEGIN);
    let spell = &over["spells"][0];
    assert_eq!(
        (&spell["count"], &spell["thread"]["tid"]),
        (&5.into(), &7.into())
    );
    let begins = spell["at"].as_array().expect("ranges").iter();
    let begins: Vec<f64> = begins.filter_map(|range| range[0].as_f64()).collect();
    assert_eq!(begins, [1.5, 3.0, 4.5, 6.0, 7.5]);
    assert_eq!(over["gaps"][0]["at"], serde_json::json!([[6.299, 6.8]]));
    let table = said(&["summary", "--over-time", "--format", "csv"], &data);
    let spells = table.lines().filter(|line| line.starts_with("spell,1,"));
    assert_eq!(spells.count(), 5, "{table}");
    assert!(
        table.contains("gap,1,6.299000,6.800000,7,7,node,"),
        "{table}"
    );
}

#[test]
fn a_time_and_the_rest_are_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = recording(folder.path());
    let json = |arguments: &[&str]| -> Value {
        let output = succeed(pjit().args(arguments).arg(&data).args(["--format", "json"]));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let whole = json(&["summary"]);
    let whole: BTreeMap<String, u64> = whole["functions"]
        .as_array()
        .expect("functions")
        .iter()
        .map(|of| {
            (
                of["id"].to_string(),
                of["credited"].as_u64().expect("a weight"),
            )
        })
        .filter(|(_, weight)| *weight > 0)
        .collect();
    let parts = json(&["diff", "--time", "+3,+3.199", "--to-time", "rest"]);
    let sums: BTreeMap<String, u64> = parts["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            let weight = |side: &str| row[side][0].as_u64().expect("a weight");
            (row["id"].to_string(), weight("base") + weight("new"))
        })
        .collect();
    assert_eq!(sums, whole);
    assert_eq!(
        parts["filters"],
        serde_json::json!(["--time +3,+3.199 --to-time rest"])
    );
    let total = |side: &str| parts["run_totals"][side][0].as_u64().expect("a total");
    assert_eq!((total("base"), total("new")), (200 * MS, 8300 * MS));
}

#[test]
fn a_recording_without_times_has_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"node");
    recording.sample(&Sample {
        ip: CODE,
        pid: 7,
        tid: 7,
        time: 0,
        period: 1,
        chain: &[CONTEXT_USER, CODE],
        user: None,
    });
    let path = folder.path().join("perf.data");
    fs::write(&path, recording.file()).expect("written");
    let output = pjit()
        .args(["summary", "--over-time", "-i"])
        .arg(&path)
        .output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no sample has a time"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
