//! Exports as files: the same sums in each, the same bytes from any number of threads.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::support::{SAMPLES, pjit, sample, stdout_of};

/// What `pjit export` wrote to standard output.
fn exported(format: &str, more: &[&str], name: &str) -> Vec<u8> {
    let output = pjit()
        .args(["export", "-o", "-", "--format", format])
        .args(more)
        .arg(sample(name, "perf.data"))
        .output()
        .expect("the binary can be run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {said}");
    output.stdout
}

/// Sum of the last column of the folded stacks.
fn total(name: &str) -> u64 {
    let folded = stdout_of(&["fold"], name);
    let weights = folded.lines().filter_map(|line| line.rsplit_once(' '));
    weights
        .filter_map(|(_, weight)| weight.parse::<u64>().ok())
        .sum()
}

#[test]
fn pprof_is_the_same_for_any_number_of_threads() {
    for name in SAMPLES {
        let one = exported("pprof", &["-j1"], name);
        assert!(one == exported("pprof", &["-j5"], name), "{name}");
    }
}

#[test]
fn speedscopes_weights_add_up() {
    for name in SAMPLES {
        for more in [&[][..], &["--merge"][..]] {
            let text = exported("speedscope", more, name);
            let file: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            let frames = file["shared"]["frames"].as_array().expect("frames").len();
            let mut sum = 0;
            for profile in file["profiles"].as_array().expect("profiles") {
                let weights = profile["weights"].as_array().expect("weights");
                let samples = profile["samples"].as_array().expect("samples");
                assert_eq!(weights.len(), samples.len());
                let own: u64 = weights.iter().filter_map(serde_json::Value::as_u64).sum();
                assert_eq!(profile["endValue"], own);
                let known = |stack: &serde_json::Value| {
                    let stack = stack.as_array().expect("a stack");
                    stack
                        .iter()
                        .all(|frame| frame.as_u64().is_some_and(|at| (at as usize) < frames))
                };
                assert!(samples.iter().all(known));
                sum += own;
            }
            assert_eq!(sum, total(name), "{name}");
        }
    }
}

/// Sum of a column's numbers in a list.
fn sum(list: &serde_json::Value) -> f64 {
    let numbers = list.as_array().expect("a list").iter();
    numbers.filter_map(serde_json::Value::as_f64).sum()
}

/// Bytes, times, blocks and what has no common unit, in each format by its own word for it, and the same sums everywhere.
#[test]
fn weights_keep_their_unit_in_every_format() {
    for (name, weight, csv, speedscope, firefox) in [
        ("heap", "alloc", "bytes", "bytes", "bytes"),
        ("heap", "live", "bytes", "bytes", "bytes"),
        ("heap", "live-count", "blocks", "none", "samples"),
        ("heap", "alloc-count", "blocks", "none", "samples"),
        ("heap", "lifetime", "KiB·ms", "none", "samples"),
        ("waits", "wall", "ns", "nanoseconds", "tracing-ms"),
        ("waits", "blocked", "ns", "nanoseconds", "tracing-ms"),
    ] {
        let case = format!("{name} {weight}");
        let options = ["--weight", weight];
        let folded = stdout_of(&["fold", "--weight", weight], name);
        let weights = folded.lines().filter_map(|line| line.rsplit_once(' '));
        let all: u64 = weights.filter_map(|(_, n)| n.parse::<u64>().ok()).sum();

        let table = String::from_utf8(exported("csv", &options, name)).expect("text");
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert!(!rows.is_empty(), "{case}");
        let unit = format!(",{csv},");
        assert!(
            rows.iter().all(|row| row.contains(&unit)),
            "{case}: {table}"
        );
        // Behind the unit stand pid, tid and comm.
        let number = |row: &&str| row.split_once(&unit)?.1.split(',').nth(3)?.parse().ok();
        let numbers: Vec<u64> = rows.iter().filter_map(number).collect();
        assert_eq!(
            (numbers.len(), numbers.iter().sum()),
            (rows.len(), all),
            "{case}"
        );

        let file = exported("speedscope", &options, name);
        let file: serde_json::Value = serde_json::from_slice(&file).expect("JSON");
        let profiles = file["profiles"].as_array().expect("profiles");
        assert!(profiles.iter().all(|of| of["unit"] == speedscope), "{case}");
        let own: f64 = profiles.iter().map(|of| sum(&of["weights"])).sum();
        assert_eq!(own as u64, all, "{case}");

        let file = exported("firefox", &options, name);
        let file: serde_json::Value = serde_json::from_slice(&file).expect("JSON");
        let threads = file["threads"].as_array().expect("threads").iter();
        let samples: Vec<&serde_json::Value> = threads.map(|thread| &thread["samples"]).collect();
        assert!(
            samples.iter().all(|of| of["weightType"] == firefox),
            "{case}"
        );
        let own = samples.iter().map(|of| {
            if of["weight"].is_null() {
                of["length"].as_f64().expect("a number")
            } else {
                sum(&of["weight"])
            }
        });
        let scale = if firefox == "tracing-ms" { 1e6 } else { 1.0 };
        let own = own.sum::<f64>() * scale;
        assert!((own - all as f64).abs() < 1.0, "{case}: {own} {all}");
    }
}

#[test]
fn many_recordings_are_one_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.csv.gz");
    let status = pjit()
        .args(["export", "-o"])
        .arg(&path)
        .args(SAMPLES.map(|name| sample(name, "perf.data")))
        .status()
        .expect("the binary can be run");
    assert!(status.success());
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(&path).expect("written"))
        .read_to_string(&mut text)
        .expect("gzip");
    let mut rows = text.lines();
    let heading =
        "recording,event,unit,pid,tid,comm,weight,samples,leaf,leaf_object,stack,package,activity";
    assert_eq!(rows.next(), Some(heading));
    for name in SAMPLES {
        let path = sample(name, "perf.data").display().to_string();
        let own = text.lines().filter(|row| row.starts_with(&path));
        // Neither a path nor an event nor a comm of the samples needs quotes.
        let weights = own.map(|row| row.split(',').nth(6).expect("a cell"));
        let sum: u64 = weights
            .map(|cell| cell.parse::<u64>().expect("a number"))
            .sum();
        assert_eq!(sum, total(name), "{name}");
    }
}
