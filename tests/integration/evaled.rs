//! Code that `eval` made in node: names tell no file of it, but lines do, where its text has a `sourceURL`.

use std::fs;
use std::path::Path;

use crate::bundle::succeed;
use crate::jitdump::{Dump, HEAD, Head};
use crate::recording::{CONTEXT_USER, Map, Recording, Sample, Stacks};
use crate::support::pjit;

const PID: u32 = 77;
const NOW: u64 = 9_000_000_000_000;
const CODE: u64 = 0x7f12_0000_4000;
const SIZE: u64 = 0x40;

const CLONE: usize = 0;
const HOT: usize = 1;
const TEMPLATE: usize = 2;
const MAIN: usize = 3;

fn at(function: usize) -> u64 {
    CODE + SIZE * function as u64
}

/// A process that runs code of webpack's eval, of a server that evaluates what it made of `hot.ts`, and of a template.
fn dump(hot: &str) -> Vec<u8> {
    let lodash = "webpack:///../node_modules/lodash/lodash.js?";
    let functions = [
        ("JS:*clone :8:13", Some(lodash)),
        ("JS:*hot :8:13", Some(hot)),
        ("JS:* :7:32", Some("lodash.templateSources[0]")),
        ("JS:*main /w/main.js:3:14", None),
    ];
    let mut dump = Dump::new(&Head {
        pid: PID,
        time: NOW + 3,
        ..HEAD
    });
    for (number, (name, file)) in functions.into_iter().enumerate() {
        let start = at(number);
        if let Some(file) = file {
            // V8 counts from the text's place in a file of its own.
            let line = |offset, place| (start + 0x40 + offset, place, file.as_bytes());
            dump.debug_at(start, &[line(0, [8, 13]), line(8, [11, 3])]);
        }
        let code = [0x90; SIZE as usize];
        let index = number as u64;
        dump.load_of(PID, NOW + 4, start, index, name.as_bytes(), &code);
    }
    dump.0
}

/// The recording, with its dump beside it.
fn record(folder: &Path, hot: &str) {
    let stacks: [(&[usize], usize); 5] = [
        (&[CLONE, MAIN], 40),
        (&[HOT, MAIN], 30),
        (&[TEMPLATE, MAIN], 10),
        (&[MAIN], 5),
        (&[TEMPLATE], 15),
    ];
    let mut recording = Recording::new(Stacks::Callchain);
    recording.fork(PID, 1, NOW);
    recording.exec(PID, b"node", NOW + 1);
    let mut map = |start, file: &[u8]| {
        recording.map_at(&Map::page(NOW + 2, PID, start, file));
    };
    map(0x30_0000, b"/nonexistent/jit-77.dump");
    map(CODE & !0xfff, b"//anon");
    let mut time = NOW + 1_000_000;
    for (functions, samples) in stacks {
        let frames = functions.iter().map(|function| at(*function) + 12);
        let chain: Vec<u64> = std::iter::once(CONTEXT_USER).chain(frames).collect();
        for _ in 0..samples {
            time += 1000;
            recording.sample(&Sample {
                ip: chain[1],
                pid: PID,
                tid: PID,
                time,
                period: 1,
                chain: &chain,
                user: None,
            });
        }
    }
    fs::write(folder.join("perf.data"), recording.file()).expect("written");
    fs::write(folder.join("jit-77.dump"), dump(hot)).expect("written");
}

/// What a view says of it, and with which warnings.
fn view(folder: &Path, options: &[&str]) -> (String, String) {
    let output = succeed(pjit().args(options).arg("-i").arg(folder.join("perf.data")));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Rows of a report, without spaces around.
fn rows(folder: &Path, options: &[&str]) -> Vec<String> {
    let mut all = vec!["report", "--stdio", "--no-children", "-g", "none"];
    all.extend(options);
    let text = view(folder, &all).0;
    let rows = text.lines().map(str::trim);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("pjit").tempdir();
    folder.expect("a folder")
}

#[test]
fn lines_tell_the_file_which_tells_the_package() {
    let folder = folder();
    let folder = folder.path();
    record(folder, "/w/src/hot.ts?t=1");
    let packages = [
        "40.00% lodash",
        "30.00% hot.ts (own)",
        "15.00% main.js (own)",
        "15.00% nobody: code made by eval",
    ];
    assert_eq!(rows(folder, &["-s", "package"]), packages);
    let focused = ["--focus", "lodash", "-s", "sym"];
    let name = "40.00% [.] JS:*clone webpack:///../node_modules/lodash/lodash.js:8:13";
    assert_eq!(rows(folder, &focused), [name]);
    // perf prints names as they are.
    let names = rows(folder, &["-s", "sym"]);
    assert!(
        names.contains(&"40.00% [.] JS:*clone :8:13".to_owned()),
        "{names:?}"
    );
    let page = view(folder, &["summary"]).0;
    for part in [
        "lodash",
        "hot.ts (own)",
        "hot hot.ts:8",
        "nobody: code made by eval",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn lines_of_another_text_are_not_shown() {
    let folder = folder();
    let folder = folder.path();
    let source = folder.join("hot.ts");
    let text = "// one\nfunction hot(n) {\n}\n".to_owned() + &"innocent();\n".repeat(20);
    fs::write(&source, text).expect("written");
    record(folder, &source.display().to_string());
    let (listed, said) = view(folder, &["list", "^hot"]);
    assert!(listed.contains("not shown: another text ran"), "{listed}");
    assert!(!listed.contains("innocent"), "{listed}");
    assert!(said.contains("hot.ts: not the"), "{said}");
}
