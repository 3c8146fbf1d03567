//! Several recordings as one: the sums of each, whatever their order, and what is told of those that cannot be read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{bare, cells, folded, pjit, sample};

fn ask(arguments: &[&str], recordings: &[&Path]) -> Output {
    let mut command = pjit();
    command.args(arguments).args(recordings);
    command.output().expect("it runs")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

/// What a success prints.
fn told(arguments: &[&str], recordings: &[&Path]) -> String {
    let output = ask(arguments, recordings);
    let (text, error) = said(&output);
    assert!(output.status.success(), "{arguments:?}: {error}");
    text
}

fn sum(all: impl IntoIterator<Item = BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (stack, weight) in all.into_iter().flatten() {
        *sums.entry(stack).or_default() += weight;
    }
    sums
}

/// Periods by the keys of a report.
fn reported(keys: &str, recordings: &[&Path]) -> BTreeMap<String, u64> {
    let mut view = bare("period", keys);
    for recording in recordings {
        view.extend(["-i", recording.to_str().expect("UTF-8")].map(str::to_owned));
    }
    let words: Vec<&str> = view.iter().map(String::as_str).collect();
    let rows = cells(&told(&words, &[])).into_iter();
    // Columns are as wide as the longest, and rows of two processes may have one name.
    let words = |keys: &str| keys.split('|').map(str::trim).collect::<Vec<_>>().join(" ");
    sum(rows.map(|(period, [keys])| BTreeMap::from([(words(&keys), period)])))
}

#[test]
fn several_recordings_are_the_sum_of_each() {
    let paths = ["native", "node", "wasmtime"].map(|name| sample(name, "perf.data"));
    let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    for pair in [&all[..2], &all[1..], &all[..]] {
        let turned: Vec<&Path> = pair.iter().rev().copied().collect();
        let each = |view: &[&str]| sum(pair.iter().map(|one| folded(&told(view, &[one]))));
        for view in [
            &["fold"][..],
            &["fold", "--pid"],
            &["fold", "--by", "package,activity"],
        ] {
            let text = told(view, pair);
            assert_eq!(folded(&text), each(view), "{view:?}");
            assert_eq!(told(view, &turned), text, "{view:?}");
        }
        for keys in ["dso,sym", "comm", "pid,sym"] {
            let each = sum(pair.iter().map(|one| reported(keys, &[one])));
            assert_eq!(reported(keys, pair), each, "{keys}");
            assert_eq!(reported(keys, &turned), each, "{keys}");
        }
        let summary = |recordings: &[&Path]| -> Value {
            let view = ["summary", "--format", "json", "--budget", "1000000"];
            serde_json::from_str(&told(&view, recordings)).expect("JSON")
        };
        let weights = |answer: &Value, what: &str, key: &str| {
            let list = answer[what].as_array().expect("a list").iter();
            let rows = list.map(|row| {
                let name = format!("{} {}", row["name"], row["object"]);
                BTreeMap::from([(name, row[key].as_u64().expect("a weight"))])
            });
            sum(rows)
        };
        let (whole, parts) = (summary(pair), pair.iter().map(|one| summary(&[one])));
        let parts: Vec<Value> = parts.collect();
        for (what, key) in [
            ("functions", "self"),
            ("functions", "credited"),
            ("functions", "inclusive"),
        ] {
            let each = sum(parts.iter().map(|part| weights(part, what, key)));
            assert_eq!(weights(&whole, what, key), each, "{what} {key}");
        }
        let total: u64 = parts
            .iter()
            .filter_map(|part| part["event"]["total"].as_u64())
            .sum();
        assert_eq!(whole["event"]["total"], total);
        let named = whole["recordings"][0]["parts"]
            .as_array()
            .expect("parts")
            .len();
        assert_eq!(named, pair.len());
    }
}

#[test]
fn views_draw_and_export_several() {
    let paths = ["native", "node"].map(|name| sample(name, "perf.data"));
    let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let one = told(&["peek", "main"], &all);
    assert!(one.contains("hot-rust") && one.contains("hot-cpp"), "{one}");
    let picture = told(&["flamegraph", "-o", "-", "--format", "svg"], &all);
    for name in ["hot::phase", "fibonacci"] {
        assert!(picture.contains(name), "{name}");
    }
    let of_each = |tag: &str| {
        let view = ["fold", "--tagfocus", tag];
        folded(&told(&view, &all)).values().sum::<u64>()
    };
    let alone = |path: &Path| folded(&told(&["fold"], &[path])).values().sum::<u64>();
    assert_eq!(of_each("recording=^node$"), alone(all[1]));
    let host = reported("host", &all);
    assert_eq!(host.values().sum::<u64>(), alone(all[0]) + alone(all[1]));
    let recordings = reported("recording", &all);
    assert_eq!(
        recordings.get("native"),
        Some(&alone(all[0])),
        "{recordings:?}"
    );
    for (view, text) in [
        (&["summary", "--over-time"][..], "is of one recording"),
        (&["script"], "has no use for the word"),
        (
            &["export", "-o", "-", "--format", "firefox"],
            "takes one recording",
        ),
        (
            &["flamegraph", "--source", "--format", "html", "-o", "-"],
            "is for one recording",
        ),
    ] {
        let output = ask(view, &all);
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{view:?}: {error}");
        assert!(error.contains(text), "{view:?}: {error}");
    }
}

/// A recording of one function, of so many samples from a time on.
fn small(folder: &Path, name: &str, (time, count): (u64, u64)) -> PathBuf {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"prog");
    recording.map(7, 0x40_0000, 0x1000, 0, b"/bin/prog");
    for at in 0..count {
        recording.sample(&Sample {
            ip: 0x40_0010,
            pid: 7,
            tid: 7,
            time: time + at,
            period: 10,
            chain: &[CONTEXT_USER, 0x40_0010],
            user: None,
        });
    }
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(&path, recording.file()).expect("written");
    path
}

fn total(text: &str) -> u64 {
    folded(text).values().sum()
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = small(folder.path(), "runs/a/perf.data", (1000, 3));
    let other = small(folder.path(), "runs/b/perf.data", (5000, 4));
    let bad = folder.path().join("runs/c.data");
    fs::write(&bad, "no recording").expect("written");
    let output = ask(&["fold"], &[&one, &bad, &other]);
    let (text, error) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(total(&text), 70);
    assert!(
        error.contains("c.data") && error.contains("3 recordings, 1 failed"),
        "{error}"
    );
    let output = ask(&["fold"], &[&bad, &bad.with_file_name("none")]);
    let (text, error) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        text.is_empty() && error.contains("c.data"),
        "{text} {error}"
    );
    // A folder, a list, and the words of a command are three ways to name the same.
    fs::remove_file(&bad).expect("removed");
    assert_eq!(total(&told(&["fold"], &[&folder.path().join("runs")])), 70);
    let list = folder.path().join("list");
    fs::write(&list, "# two\nruns/b/perf.data\n\n  runs/a/perf.data\n").expect("written");
    let list = list.to_str().expect("UTF-8");
    assert_eq!(total(&told(&["fold", "--from", list], &[])), 70);
    let twice = ["fold", "-i", one.to_str().expect("UTF-8"), "-i"];
    assert_eq!(total(&told(&twice, &[&other])), 70);
}

#[test]
fn a_recording_counts_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = small(folder.path(), "a.data", (1000, 3));
    let copy = small(folder.path(), "copy.data", (1000, 3));
    let other = small(folder.path(), "b.data", (5000, 3));
    assert_eq!(total(&told(&["fold"], &[&one, &one, &other])), 60);
    let output = ask(&["fold"], &[&one, &copy, &other]);
    let (text, error) = said(&output);
    assert!(output.status.success(), "{error}");
    assert_eq!(total(&text), 60);
    assert!(
        error.contains("are one recording, which counts once"),
        "{error}"
    );
    // In a report the second word is perf's filter.
    let report = ask(&["report", "--stdio"], &[&one, &other]);
    let (text, error) = said(&report);
    assert!(
        !text.contains("6  of event") && error.contains("filter"),
        "{text}{error}"
    );
    // Rows of CSV tell which recording they are of.
    let bad = folder.path().join("bad.data");
    fs::write(&bad, "no recording").expect("written");
    let csv = ask(
        &["export", "--format", "csv", "-o", "-"],
        &[&one, &bad, &other],
    );
    let (text, error) = said(&csv);
    assert_eq!(csv.status.code(), Some(1), "{error}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(error.contains("3 recordings, 1 failed"), "{error}");
    let mixed = ask(&["summary", "-i", one.to_str().expect("UTF-8")], &[&other]);
    assert_eq!(mixed.status.code(), Some(2));
}

/// Each run of a script has its functions at other addresses, and in a map of another name.
#[test]
fn code_that_was_made_is_known_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, pid: u32, code: u64, time: u64| {
        let mut recording = Recording::new(Stacks::Callchain);
        recording.comm(pid, pid, b"node");
        recording.map(pid, code, 0x10_0000, 0, b"//anon");
        for at in 0..4 {
            let ip = code + 0x10 + at % 2 * 0x1000;
            recording.sample(&Sample {
                ip,
                pid,
                tid: pid,
                time: time + at,
                period: 5,
                chain: &[CONTEXT_USER, ip, code + 0x2010],
                user: None,
            });
        }
        let folder = folder.path().join(name);
        fs::create_dir_all(&folder).expect("made");
        let names = ["JS:*f a.js:1:1", "JS:*g a.js:5:1", "JS:~main a.js:9:1"];
        let map = (0..)
            .zip(names)
            .map(|(at, name)| format!("{:x} 1000 {name}\n", code + 0x1000 * at));
        let map: String = map.collect();
        fs::write(folder.join(format!("perf-{pid}.map")), map).expect("written");
        let path = folder.join("perf.data");
        fs::write(&path, recording.file()).expect("written");
        path
    };
    let one = run("a", 7, 0x40_0000, 1000);
    let other = run("b", 9, 0x80_0000, 5000);
    let folded = folded(&told(&["fold"], &[&one, &other]));
    let expected = [("f", 20), ("g", 20)];
    let expected = expected.map(|(name, weight)| {
        let line = if name == "f" { 1 } else { 5 };
        (
            format!("node;JS:~main a.js:9:1;JS:*{name} a.js:{line}:1"),
            weight,
        )
    });
    assert_eq!(folded, BTreeMap::from(expected));
    let rows = reported("dso,sym", &[&one, &other]);
    let names = ["[jit] [.] JS:*f a.js:1:1", "[jit] [.] JS:*g a.js:5:1"];
    assert_eq!(
        rows,
        BTreeMap::from(names.map(|name| (name.to_owned(), 20)))
    );
}

/// A recording of two functions on a host, the first of which has so many of a hundred samples.
fn on_host(folder: &Path, (host, run): (&str, u64), first: u64) -> PathBuf {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.text_feature(3, host.as_bytes());
    recording.comm(7, 7, b"node");
    recording.map(7, 0x40_0000, 0x10_0000, 0, b"//anon");
    for at in 0..300 {
        let place = match at % 100 {
            at if at < first => 0,
            at => 1 + at % 4,
        };
        let ip = 0x40_0010 + 0x1000 * place;
        recording.sample(&Sample {
            ip,
            pid: 7,
            tid: 7,
            time: 1000 * run + at,
            period: 10,
            chain: &[CONTEXT_USER, ip],
            user: None,
        });
    }
    let folder = folder.join(format!("{host}-{run}"));
    fs::create_dir_all(&folder).expect("made");
    let map = (0..5).map(|at| format!("{:x} 1000 f{at}\n", 0x40_0000 + 0x1000 * at));
    fs::write(folder.join("perf-7.map"), map.collect::<String>()).expect("written");
    let path = folder.join("perf.data");
    fs::write(&path, recording.file()).expect("written");
    path
}

#[test]
fn hosts_are_unlike_in_what_their_recordings_agree_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = |host: &str, first: [u64; 3]| {
        let runs = (1..).zip(first);
        runs.map(|(run, first)| on_host(folder.path(), (host, run), first))
            .collect::<Vec<_>>()
    };
    let all = [
        runs("a", [20, 21, 19]),
        runs("b", [20, 19, 21]),
        runs("c", [40, 41, 39]),
    ]
    .concat();
    let unlike = |recordings: &[PathBuf]| -> Vec<(String, String)> {
        let recordings: Vec<&Path> = recordings.iter().map(PathBuf::as_path).collect();
        let text = told(
            &["summary", "--by", "host", "--format", "json"],
            &recordings,
        );
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let rows = answer["unlike"].as_array().expect("rows").iter();
        rows.map(|row| {
            let [host, name] = ["host", "name"].map(|key| row[key].as_str().expect("a text"));
            (host.to_owned(), name.to_owned())
        })
        .collect()
    };
    let found = unlike(&all);
    assert!(
        found.contains(&("c".to_owned(), "f0".to_owned())),
        "{found:?}"
    );
    assert!(found.iter().all(|(_, name)| name == "f0"), "{found:?}");
    assert_eq!(unlike(&all[..6]), []);
    // Two recordings do not tell how far they lie apart.
    assert_eq!(unlike(&all[..8]), []);
    let paths: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
    let page = told(&["summary", "--by", "host"], &paths);
    assert!(page.contains("c (3 recordings)"), "{page}");
    assert!(page.contains("Unlike the others"), "{page}");
    let rows = told(&["summary", "--by", "host", "--format", "csv"], &paths);
    let expected = "weight,samples,share,host,recordings\n9000,900,0.333333,a,3\n";
    assert!(rows.starts_with(expected), "{rows}");
}

/// Numbers of processes of two recordings have nothing in common.
#[test]
fn processes_of_one_number_are_two_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = |program: &str, samples: u64| {
        let mut recording = Recording::new(Stacks::Callchain);
        for tid in [7, 8] {
            let comm = if tid == 7 { program } else { "worker" };
            recording.comm(7, tid, comm.as_bytes());
            for at in 0..samples {
                recording.sample(&Sample {
                    ip: 0x40_0010,
                    pid: 7,
                    tid,
                    time: 1000 + at,
                    period: 10,
                    chain: &[CONTEXT_USER, 0x40_0010],
                    user: None,
                });
            }
        }
        let path = folder.path().join(format!("{program}.data"));
        fs::write(&path, recording.file()).expect("written");
        path
    };
    let paths = [recorded("one", 20), recorded("two", 30)];
    let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let turned: Vec<&Path> = all.iter().rev().copied().collect();
    for recordings in [all, turned] {
        for by in [&["--by", "process"][..], &[], &["--by", "cgroup"]] {
            let text = told(
                &[&["summary", "--format", "json"], by].concat(),
                &recordings,
            );
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            let rows = answer["processes"].as_array().expect("rows").iter();
            let rows: Vec<String> = rows
                .map(|row| format!("{} {} {}", row["name"], row["processes"], row["samples"]))
                .collect();
            let expected = if by.contains(&"cgroup") {
                vec!["\"no cgroup\" 2 100"]
            } else {
                vec!["\"two\" 1 60", "\"one\" 1 40"]
            };
            assert_eq!(rows, expected, "{by:?}");
        }
        let page = told(&["summary"], &recordings);
        assert!(page.contains("two and other processes"), "{page}");
    }
}

/// A short recording counts as much as a long one, to the last billionth.
#[test]
fn recordings_can_weigh_the_same() {
    const ONE: u64 = 1_000_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let short = small(folder.path(), "short.data", (1000, 7));
    let long = on_host(folder.path(), ("a", 1), 20);
    let text = told(&["fold", "--normalize"], &[&short, &long]);
    let of = |program: &str| {
        let stacks = folded(&text).into_iter();
        let of = stacks.filter(|(stack, _)| stack.starts_with(program));
        of.map(|(_, weight)| weight).sum::<u64>()
    };
    assert_eq!((of("prog"), of("node")), (ONE, ONE), "{text}");
    assert_eq!(folded(&text)["node;f0"], ONE / 5);
    assert_eq!(told(&["fold", "--normalize"], &[&long, &short]), text);
    // What filters take away is part of the whole.
    let filtered = told(
        &["fold", "--normalize", "--comms", "node"],
        &[&short, &long],
    );
    assert_eq!(total(&filtered), ONE);
    let page = told(&["summary", "--normalize"], &[&short, &long]);
    assert!(page.contains("each recording weighs 1"), "{page}");
    for (view, recordings) in [
        (&["fold", "--normalize"][..], &[&*short][..]),
        (
            &["export", "--normalize", "--format", "csv", "-o", "-"],
            &[&short, &long],
        ),
    ] {
        let output = ask(view, recordings);
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{view:?}: {error}");
    }
}
