//! What somebody typed is used or refused: paths that are not there, options without effect, times that hit nothing.

use std::path::Path;

use crate::recording::{Recording, Sample, Stacks};
use crate::support::{folded, pjit, sample};

/// Verbs that read recordings, and the words that they cannot do without. A `@` is the recording.
const VERBS: [(&str, &[&str]); 13] = [
    ("report", &["@"]),
    ("annotate", &["-i", "@"]),
    ("fold", &["@"]),
    ("export", &["-o", "-", "--format", "csv", "@"]),
    ("bundle", &["-o", "-", "@"]),
    ("flamegraph", &["-o", "-", "--format", "svg", "@"]),
    ("script", &["@"]),
    ("stat", &["@"]),
    ("summary", &["@"]),
    ("peek", &["main", "@"]),
    ("diff", &["@", "@"]),
    ("gate", &["--max-share", "main=100%", "--to", "@"]),
    ("check", &["@"]),
];

/// Options that name something to read, of whatever verb.
const PATHS: [&str; 10] = [
    "--jitdump",
    "--perf-map",
    "--vmlinux",
    "--kallsyms",
    "--symfs",
    "--buildid-dir",
    "--cwasm",
    "--wasm",
    "--source-map",
    "--source-root",
];

struct Ended {
    status: Option<i32>,
    out: String,
    said: String,
}

fn run(verb: &str, words: &[&str], more: &[&str], data: &Path) -> Ended {
    let mut command = pjit();
    command.arg(verb);
    for word in words {
        match *word {
            "@" => command.arg(data),
            word => command.arg(word),
        };
    }
    let output = command.args(more).output().expect("the binary can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended {
        status: output.status.code(),
        out: text(output.stdout),
        said: text(output.stderr),
    }
}

/// The options that the help of a verb shows, with the name of their value.
fn shown_options(verb: &str) -> Vec<(String, String)> {
    let help = run(verb, &["--help"], &[], Path::new("")).out;
    let option = |line: &str| {
        let at = line.find("--")?;
        let is_alone = line[..at].trim().is_empty();
        let has_short = line[..at].trim_start().starts_with('-');
        let mut words = line[at..].split_whitespace();
        let name = words.next()?.split(['=', '[']).next()?.to_owned();
        let value = words.next().unwrap_or("").to_owned();
        (is_alone || has_short).then_some((name, value))
    };
    help.lines().filter_map(option).collect()
}

#[test]
fn a_path_that_is_not_there_is_an_error_in_every_verb() {
    let data = sample("minijit", "perf.data");
    for (verb, words) in VERBS {
        let shown = shown_options(verb);
        // What reads and is not in the list above would be missed.
        for (option, value) in &shown {
            let is_path = ["<FILE>", "<DIR>", "<FILE_OR_DIR>"].contains(&value.as_str());
            let is_other = ["--input", "--output", "--palette-map", "--prefix", "--diff"];
            assert!(
                !is_path || PATHS.contains(&option.as_str()) || is_other.contains(&option.as_str()),
                "{verb} {option}"
            );
        }
        for option in PATHS {
            let nowhere = "/nonexistent/somewhere";
            let ended = run(verb, words, &[option, nowhere], &data);
            let is_shown = shown.iter().any(|(shown, _)| shown == option);
            let expected = if is_shown { Some(1) } else { Some(2) };
            assert_eq!(ended.status, expected, "{verb} {option}: {}", ended.said);
            assert!(ended.out.is_empty(), "{verb} {option}");
            if is_shown {
                let told = format!("error: {option}: {nowhere}: ");
                assert!(ended.said.contains(&told), "{verb}: {}", ended.said);
            }
        }
    }
}

#[test]
fn a_folder_without_what_it_is_named_for_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().to_str().expect("a plain path");
    let data = sample("minijit", "perf.data");
    for (option, what) in [
        ("--jitdump", "jit-PID.dump"),
        ("--perf-map", "perf-PID.map"),
        ("--cwasm", ".cwasm file"),
        ("--wasm", ".wasm file"),
        ("--source-map", ".map file"),
        ("--symfs", "file"),
        ("--buildid-dir", "file"),
    ] {
        let ended = run("fold", &["@"], &[option, empty], &data);
        assert_eq!(ended.status, Some(0), "{option}: {}", ended.said);
        let told = format!("warning: {option}: {empty}: no {what} in this folder");
        assert!(ended.said.contains(&told), "{}", ended.said);
    }
}

#[test]
fn an_option_that_does_nothing_is_refused() {
    let data = sample("minijit", "perf.data");
    for (verb, words, options) in [
        (
            "stat",
            &["@"][..],
            "--no-cut-marks --cut-marks --stitch --no-stitch --no-root --no-inline --inline --no-demangle --demangle \
             --demangle-kernel --modules --ignore-vmlinux --force",
        ),
        (
            "check",
            &["@"],
            "--no-inline --inline --no-demangle --demangle --demangle-kernel --force",
        ),
        (
            "bundle",
            &["-o", "-", "@"],
            "--no-inline --inline --no-demangle --demangle --demangle-kernel --no-cut-marks --cut-marks --no-root --stitch \
             --no-stitch --force",
        ),
    ] {
        let shown = shown_options(verb);
        for option in options.split_whitespace() {
            let ended = run(verb, words, &[option], &data);
            assert_eq!(ended.status, Some(2), "{verb} {option}: {}", ended.said);
            let told = format!("{option} has no effect: {verb} ");
            assert!(ended.said.contains(&told), "{verb}: {}", ended.said);
            assert!(!shown.iter().any(|(shown, _)| shown == option), "{option}");
        }
    }
}

const START: u64 = 5_000_000_000_000;

/// Ten samples, one each millisecond.
fn ten() -> Recording {
    let mut recording = Recording::new(Stacks::None);
    recording.comm(7, 7, b"it");
    for number in 0..10 {
        recording.sample(&Sample {
            ip: 0x1000 + number,
            pid: 7,
            tid: 7,
            time: START + number * 1_000_000,
            period: 1,
            chain: &[],
            user: None,
        });
    }
    recording
}

/// Of a file, of a stream that was saved, and of a slice whose header has zeros for times.
#[test]
fn times_count_from_the_first_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    let mut slice = ten();
    slice.sample_times(0, 0);
    for bytes in [ten().file(), ten().stream(), slice.file()] {
        std::fs::write(&data, bytes).expect("written");
        for (time, expected) in [
            ("+0.002,+0.004", 3),
            ("+0.0075,", 2),
            (",+0.001", 2),
            ("5000.002,5000.004", 3),
            ("0%-50%", 5),
            ("10%/2", 1),
        ] {
            let ended = run("fold", &["@"], &["--time", time], &data);
            let sum: u64 = folded(&ended.out).values().sum();
            assert_eq!(sum, expected, "{time}: {}", ended.said);
        }
        for (verb, words) in VERBS {
            if !shown_options(verb)
                .iter()
                .any(|(option, _)| option == "--time")
            {
                continue;
            }
            let ended = run(verb, words, &["--time", "+1,+2"], &data);
            assert_eq!(ended.status, Some(1), "{verb}: {}", ended.said);
            let told = "no samples within --time: the recording lasts from 5000.000000 to 5000.009000 (0.01 s)";
            assert!(ended.said.contains(told), "{verb}: {}", ended.said);
        }
    }
    let ended = run("fold", &["@"], &["--time", "+1,2"], &data);
    assert_eq!(ended.status, Some(2), "{}", ended.said);
    assert!(ended.said.contains("+1,+2 from the first sample"));
}

#[test]
fn a_file_that_perf_is_writing_is_told_from_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    std::fs::write(&data, [0; 4096]).expect("written");
    let ended = run("report", &["@"], &[], &data);
    assert_eq!(ended.status, Some(1));
    assert!(
        ended.said.contains("perf is still writing it"),
        "{}",
        ended.said
    );
    std::fs::write(&data, b"something else altogether").expect("written");
    let ended = run("report", &["@"], &[], &data);
    assert!(
        ended.said.contains("not a recording of perf"),
        "{}",
        ended.said
    );
}

#[test]
fn a_second_recording_is_no_filter_without_a_word() {
    let (one, two) = (
        sample("minijit", "perf.data"),
        sample("wasmtime", "perf.data"),
    );
    let two = two.to_str().expect("a plain path");
    let ended = run("report", &["-i", "@"], &[two], &one);
    assert_eq!(ended.status, Some(0), "an empty table, as perf prints it");
    assert!(
        ended.said.contains("is taken for a part of symbols' names"),
        "{}",
        ended.said
    );
}
