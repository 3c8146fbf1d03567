//! `pjit summary --over-time`: what is told of a recording whose times are known, and the ranges that it gives other verbs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bundle::succeed;
use crate::page::Browser;
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

/// Address in the code of a name.
const fn at(number: u64) -> u64 {
    CODE + SIZE * number + 0x10
}

/// Nine seconds: a stall of 200 ms every 1.5 s, and half a second without a sample.
fn recording(folder: &Path) -> PathBuf {
    recorded(folder, |ms| {
        if (6300..6800).contains(&ms) {
            return Vec::new();
        }
        let is_stall = ms >= 1500 && ms % 1500 < 200;
        match (is_stall, is_in_main(ms)) {
            (true, _) => vec![CONTEXT_USER, at(3), at(2), at(0)],
            (false, true) => vec![CONTEXT_USER, at(0)],
            (false, false) => vec![CONTEXT_USER, at(1), at(0)],
        }
    })
}

/// Nine seconds: for three `handle` runs, then for three `rebuild`, then `handle` again.
fn phases(folder: &Path) -> PathBuf {
    recorded(folder, |ms| {
        let works = if (3000..6000).contains(&ms) { 2 } else { 1 };
        if is_in_main(ms) {
            vec![CONTEXT_USER, at(0)]
        } else {
            vec![CONTEXT_USER, at(works), at(0)]
        }
    })
}

/// Short calls, in no rhythm.
const fn is_in_main(ms: u64) -> bool {
    (ms * 7919) % 1009 < 500
}

/// Nine seconds of samples whose chains are told by their milliseconds.
fn recorded(folder: &Path, chain: impl Fn(u64) -> Vec<u64>) -> PathBuf {
    recorded_for(folder, (9000, 1), chain)
}

/// The same for so many milliseconds, with a sample in each so many.
fn recorded_for(
    folder: &Path,
    (length, every): (u64, usize),
    chain: impl Fn(u64) -> Vec<u64>,
) -> PathBuf {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"node");
    recording.map(7, CODE, 0x10_0000, 0, b"//anon");
    let map: String = (0..)
        .zip(NAMES)
        .map(|(at, name)| format!("{:x} {SIZE:x} {name}\n", CODE + SIZE * at))
        .collect();
    for ms in (0..length).step_by(every) {
        let chain = chain(ms);
        if chain.is_empty() {
            continue;
        }
        recording.sample(&Sample {
            ip: chain[1],
            pid: 7,
            tid: 7,
            time: BEGIN + ms * MS,
            period: every as u64 * MS,
            chain: &chain,
            user: None,
        });
    }
    fs::write(folder.join("perf-7.map"), map).expect("written");
    let path = folder.join("perf.data");
    fs::write(&path, recording.file()).expect("written");
    path
}

/// The page.
fn page(data: &Path) -> PathBuf {
    let path = data.with_extension("html");
    let path_text = path.to_str().expect("text");
    said(&["flamegraph", "-o", path_text], data);
    path
}

/// Its heat map, at what is pixel `x` of its width: the rows, from below, that are marked.
fn marked(seen: &Value, x: usize) -> Vec<u64> {
    let rows = seen["heat"]["marked"][x].as_array().expect("rows");
    rows.iter().filter_map(Value::as_u64).collect()
}

/// What comes back stands in the same rows of each column, and two clicks choose a time.
#[test]
fn the_heat_map_shows_what_comes_back_and_chooses_times() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(&recording(folder.path()));
    // Columns of 1.5 s, rows of 37.5 ms: what lasts 200 ms is in six of these.
    let steps = [
        "see",
        "heat:21,0",
        "see",
        "heat:21,5",
        "see",
        "key:ArrowRight",
        "key:ArrowDown",
        "key:Enter",
        "see",
        "key:ArrowLeft",
        "key:Enter",
        "see",
        "key:0",
        "key:/",
        "type:handle",
        "see",
        "hash:",
        "dark",
        "size:700x800",
        "see",
        "size:1280x480",
        "see",
    ];
    let seen = browser.drive(&page, &steps);
    let heat = &seen[0]["heat"];
    assert_eq!(
        (&heat["wide"], &heat["high"], &heat["note"]),
        (
            &84.into(),
            &120.into(),
            &"Columns of 1.5 s, from below".into()
        )
    );
    let middle = |column: usize| 14 * column + 7;
    assert!(marked(&seen[0], middle(0)).is_empty());
    for column in 1..6 {
        assert_eq!(marked(&seen[0], middle(column)), [0, 1, 2, 3, 4, 5]);
    }
    let chosen = |at: usize| {
        let text = seen[at]["panel"]["chosen"].as_str().expect("text");
        text.split(',').next().expect("a range").to_owned()
    };
    assert_eq!(chosen(1), "1.500 to 1.538 s: 38 ms");
    assert_eq!(seen[1]["heat"]["note"], "from 1.5 s: choose its end");
    assert_eq!(chosen(2), "1.500 to 1.725 s: 225 ms");
    // What is outside of it is pale.
    assert_eq!(marked(&seen[2], middle(1)), [0, 1, 2, 3, 4, 5]);
    assert!(marked(&seen[2], middle(2)).is_empty());
    // Keys do the same, in either order: a column on, a row down.
    assert_eq!(chosen(3), "3.150 to 3.188 s: 38 ms");
    assert_eq!(chosen(4), "1.650 to 3.188 s: 1538 ms");
    assert_eq!(seen[4]["hash"], "#r=1650-3188");
    // A search marks what it finds: all but stalls, and but half a second without a sample.
    let found = marked(&seen[5], middle(1));
    assert!(
        found.iter().all(|row| *row > 4) && found.len() > 30,
        "{found:?}"
    );
    // Lanes have the rest of the width, and are drawn for it.
    let narrow = &seen[6];
    assert_eq!(
        (&narrow["wide"], &narrow["heat"]["wide"]),
        (&700.into(), &84.into())
    );
    assert_eq!(marked(narrow, middle(3)), [0, 1, 2, 3, 4, 5]);
    for seen in &seen {
        assert_eq!(seen["panel"]["stretched"], 1);
    }
    assert!(seen[7]["heat"].is_null(), "a low window has no room");
}

/// Without spells a column is a second, and a short recording has none.
#[test]
fn long_recordings_have_a_heat_map_and_short_ones_none() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let steady = |ms: u64| {
        if is_in_main(ms) {
            vec![CONTEXT_USER, at(0)]
        } else {
            vec![CONTEXT_USER, at(1), at(0)]
        }
    };
    for (length, columns) in [
        (59_000, None),
        (61_000, Some(("1 s", 61))),
        (895_000, Some(("10 s", 90))),
    ] {
        let data = recorded_for(folder.path(), (length, 10), steady);
        let heat = &browser.drive(&page(&data), &["size:1400x800", "see"])[0]["heat"];
        let Some((every, columns)) = columns else {
            assert!(heat.is_null(), "{heat}");
            continue;
        };
        assert_eq!(heat["note"], format!("Columns of {every}, from below"));
        let wide = heat["wide"].as_u64().expect("pixels");
        assert!(wide <= 260 && wide.is_multiple_of(columns), "{wide}");
    }
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

/// The plain page says in one line that there is something to say, and nothing else.
#[test]
fn the_plain_page_leads_to_spells() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |data: &Path, options: &[&str]| {
        let page = said(&[&["summary"], options].concat(), data);
        let lines = page.lines().map(|line| line.trim_start_matches(['#', ' ']));
        let mut lines = lines.skip_while(|line| !line.starts_with("over time:"));
        let mut text = lines.next().unwrap_or_default().to_owned();
        while !text.is_empty() && !text.ends_with("--over-time") {
            text = format!("{text} {}", lines.next().expect("the rest"));
        }
        text
    };
    let data = recording(folder.path());
    let told = "over time: 5 spells of ~200 ms, every 1.50 s, in rebuild a.js:3: --over-time";
    assert_eq!(line(&data, &[]), told);
    for others in [
        &["--by", "package"][..],
        &["--over-time"],
        &["--comm", "nobody"],
    ] {
        let output = pjit()
            .arg("summary")
            .args(others)
            .arg("-i")
            .arg(&data)
            .output();
        let page = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
        assert!(!page.contains("over time:"), "{others:?}: {page}");
    }
    // Too short for a line.
    let short = recorded(folder.path(), |ms| match ms % 1500 {
        1450.. => vec![CONTEXT_USER, at(2), at(0)],
        _ => vec![CONTEXT_USER, at(0)],
    });
    assert_eq!(line(&short, &[]), "");
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

/// What each view of phases counts, by what it prints.
fn counts(data: &Path, when: &[&str]) -> Vec<(&'static str, u64)> {
    let read = |verb: &[&str]| said(&[verb, when].concat(), data);
    let json = |verb: &[&str], pointer: &str| -> u64 {
        let document: Value = serde_json::from_str(&read(verb)).expect("JSON");
        let found = document.pointer(pointer).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{document}"))
    };
    let behind = |text: &str, word: &str| -> u64 {
        let found = text.split_once(word).expect(word).1.trim_start();
        let end = found.find(|c: char| !c.is_ascii_digit() && c != ',');
        let number = found[..end.unwrap_or(found.len())].replace(',', "");
        number.parse().expect("a number")
    };
    let last_numbers = |text: &str| -> u64 {
        let last = |line: &str| line.rsplit([' ', ',']).next()?.parse::<u64>().ok();
        text.lines().filter_map(last).sum()
    };
    let fold = ["fold", "--weight", "samples"];
    let svg = ["flamegraph", "--format", "svg"];
    let csv = ["export", "--format", "csv", "--samples", "-o", "-"];
    vec![
        (
            "summary",
            json(&["summary", "--format", "json"], "/event/samples"),
        ),
        (
            "peek",
            json(&["peek", "--format", "json", "main"], "/event/samples"),
        ),
        (
            "report",
            behind(&read(&["report", "--stdio"]), "# Event count (approx.):") / MS,
        ),
        ("fold", last_numbers(&read(&fold))),
        (
            "script",
            read(&["script", "-G", "-F", "time"]).lines().count() as u64,
        ),
        ("flamegraph", behind(&read(&svg), "all (") / 1000),
        ("export", read(&csv).lines().count() as u64 - 1),
    ]
}

#[test]
fn a_phase_is_one_range_in_all_views() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = phases(folder.path());
    let document = said(&["summary", "--over-time", "--format", "json"], &data);
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let found = document["over_time"]["phases"].as_array().expect("phases");
    assert_eq!(found.len(), 3, "{found:?}");
    let ends = |phase: &Value| ["from", "to"].map(|end| phase[end].as_f64().expect("seconds"));
    for (phase, number) in found.iter().zip(["1", "2", "3"]) {
        // One sample a millisecond, so that its ends say how many there are.
        let [from, to] = ends(phase);
        let expected = ((to - from) * 1000.0).round() as u64 + 1;
        let time = format!("+{from},+{to}");
        for when in [["--phase", number], ["--time", &time]] {
            let counts = counts(&data, &when);
            assert!(
                counts.iter().all(|(_, count)| *count == expected),
                "{when:?} {expected} {counts:?}"
            );
        }
    }
    let [from, to] = ends(&found[1]);
    assert!((from - 3.0).abs() < 0.1 && (to - 6.0).abs() < 0.1);
    // Which time it was the header says; all that is left is in other phases.
    let words = format!("Phase 2: +{from:.3} to +{to:.3} s");
    for verb in [
        &["summary"][..],
        &["report", "--stdio"],
        &["peek", "main"],
        &["flamegraph", "--format", "svg"],
    ] {
        let page = said(&[verb, &["--phase", "2", "--no-config"]].concat(), &data);
        assert!(page.contains(&words), "{page}");
    }
    let both = said(&["fold", "--phase", "1,3"], &data);
    assert!(
        both.contains("handle") && !both.contains("rebuild"),
        "{both}"
    );
    let output = pjit()
        .args(["diff", "--phase", "2", "--to-time", "rest"])
        .arg(&data)
        .output();
    let page = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
    assert!(
        page.contains(&format!("base: {words}")) && page.contains("new: all but Phase 2"),
        "{page}"
    );
}

#[test]
fn phases_that_are_not_there_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = phases(folder.path());
    let told = |arguments: &[&str]| {
        let output = pjit()
            .args(arguments)
            .arg("-i")
            .arg(&data)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (status, said) = told(&["report", "--phase", "4"]);
    assert!(
        status == Some(1) && said.contains("no phase 4: it has 3"),
        "{said}"
    );
    let (status, said) = told(&["report", "--phase", "0"]);
    assert!(
        status == Some(2) && said.contains("--phase takes numbers"),
        "{said}"
    );
    let (status, said) = told(&["report", "--phase", "1", "--time", "+1,+2"]);
    assert!(status == Some(2) && said.contains("--phase"), "{said}");
    // A steady program has none.
    let steady = recorded(folder.path(), |_| vec![CONTEXT_USER, at(0)]);
    let output = pjit()
        .args(["report", "--phase", "1", "-i"])
        .arg(steady)
        .output();
    let said = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
    assert!(
        said.contains("no phases: nothing changes for long"),
        "{said}"
    );
}

/// The file that `export` writes.
fn exported(data: &Path, options: &[&str]) -> String {
    said(&[&["export", "-o", "-"], options].concat(), data)
}

/// All that `summary --over-time` says of a recording: what it is, when it begins and ends in ns, and a function.
fn all_of(data: &Path) -> Vec<(String, u64, u64, String)> {
    let table = said(&["summary", "--over-time", "--format", "csv"], data);
    let ns = |text: &str| (text.parse::<f64>().expect("seconds") * 1e9).round() as u64;
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let (what, number) = (cells[0], cells[1]);
        let name = match what {
            "phase" => format!("Phase {number}"),
            "spell" => "Spell".to_owned(),
            _ => "Without CPU".to_owned(),
        };
        (name, ns(cells[2]), ns(cells[3]), cells[7].to_owned())
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn firefox_has_a_track_of_what_is_told_of_the_time() {
    let folder = tempfile::tempdir().expect("a folder");
    for data in [recording(folder.path()), phases(folder.path())] {
        let file: Value =
            serde_json::from_str(&exported(&data, &["--format", "firefox"])).expect("JSON");
        let threads = file["threads"].as_array().expect("threads");
        let at = threads
            .iter()
            .position(|thread| thread["name"] == "Over time");
        let at = at.expect("a track");
        let visible = file["meta"]["initialVisibleThreads"]
            .as_array()
            .expect("numbers");
        assert!(visible.contains(&at.into()) && threads[at]["samples"]["length"] == 0);
        let markers = &threads[at]["markers"];
        let count = markers["length"].as_u64().expect("a number") as usize;
        let mut told: Vec<(String, u64, u64)> = (0..count)
            .map(|at| {
                let name = markers["name"][at].as_u64().expect("a number") as usize;
                let ns = |of: &str| (markers[of][at].as_f64().expect("ms") * 1e6).round() as u64;
                let name = file["shared"]["stringArray"][name]
                    .as_str()
                    .expect("a name");
                (name.to_owned(), ns("startTime"), ns("endTime"))
            })
            .collect();
        let expected = all_of(&data)
            .into_iter()
            .map(|(name, from, to, _)| (name, from, to));
        let mut expected: Vec<(String, u64, u64)> = expected.collect();
        told.sort();
        expected.sort();
        assert!(!expected.is_empty());
        assert_eq!(told, expected);
        // A part of it tells nothing of the whole.
        let part = exported(&data, &["--format", "firefox", "--time", "+1,+2"]);
        assert!(!part.contains("Over time"));
    }
}

#[test]
fn rows_of_samples_say_their_phase_whatever_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = phases(folder.path());
    let counted = |options: &[&str]| {
        let rows = exported(
            &data,
            &[&["--format", "csv", "--samples"], options].concat(),
        );
        let mut lines = rows.lines();
        let head = lines
            .next()
            .expect("a heading")
            .split(',')
            .collect::<Vec<_>>();
        let at = head
            .iter()
            .position(|cell| *cell == "phase")
            .expect("a column");
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for line in lines {
            *counts
                .entry(line.split(',').nth(at).expect("a cell").to_owned())
                .or_default() += 1;
        }
        counts
    };
    let all = counted(&[]);
    for number in ["1", "2", "3"] {
        let stacks = said(&["fold", "--weight", "samples", "--phase", number], &data);
        let count = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
        let expected: u64 = stacks.lines().filter_map(count).sum();
        assert_eq!(all[number], expected, "{all:?}");
        assert_eq!(
            counted(&["--phase", number]),
            BTreeMap::from([(number.to_owned(), expected)])
        );
    }
    assert!(all.values().sum::<u64>() == 9000 && all.get("").is_none_or(|between| *between < 10));
    // Without the samples of other phases they are not phases any more, but they were.
    let half = counted(&["--time", "50%-100%"]);
    assert!(!half.contains_key("1") && half["3"] == all["3"], "{half:?}");
}

#[test]
fn speedscope_keeps_waiting_in_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = recording(folder.path());
    let read = |options: &[&str]| -> Value {
        let options = [&["--format", "speedscope"], options].concat();
        serde_json::from_str(&exported(&data, &options)).expect("JSON")
    };
    let lane = |file: &Value| {
        let lane = &file["profiles"][0];
        let samples = lane["samples"].as_array().expect("stacks").iter();
        let weights = lane["weights"].as_array().expect("weights").iter();
        let weights = weights.map(|weight| weight.as_u64().expect("a number"));
        let is_empty = |stack: &Value| stack.as_array().is_some_and(Vec::is_empty);
        samples.map(is_empty).zip(weights).collect::<Vec<_>>()
    };
    // 8500 samples of a millisecond, the first of which has no time before it, and half a second without one.
    let file = read(&["--wall"]);
    let waits: Vec<u64> = lane(&file)
        .iter()
        .filter(|(is_empty, _)| *is_empty)
        .map(|(_, ns)| *ns)
        .collect();
    assert_eq!(waits, [500 * MS]);
    assert_eq!(file["profiles"][0]["endValue"], 8999 * MS);
    let without = read(&[]);
    assert!(lane(&without).iter().all(|(is_empty, _)| !is_empty));
    assert_eq!(without["profiles"][0]["endValue"], 8500 * MS);
}
