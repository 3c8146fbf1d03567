//! A function is the same one in two recordings: a sample, what becomes of it when its dump names a function otherwise, and two
//! halves of it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bundle::succeed;
use crate::support::{pjit, sample};

/// `pjit diff` of two recordings.
fn diff(base: &Path, new: &Path, more: &[&str]) -> Value {
    let view = ["diff", "--format", "json", "--budget", "1000000"];
    let mut command = pjit();
    command.args(view).args(more).args([base, new]);
    serde_json::from_slice(&succeed(&mut command).stdout).expect("JSON")
}

/// The share of base and of new in functions that both sides have.
fn matched(answer: &Value) -> [f64; 2] {
    ["base", "new"].map(|side| answer["matched"][side].as_f64().expect("a share"))
}

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(
        old.len(),
        new.len(),
        "places in the file stay what they are"
    );
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = memchr::memmem::find_iter(&bytes, old).collect();
    assert!(!places.is_empty(), "{}", String::from_utf8_lossy(old));
    for place in places {
        bytes[place..place + old.len()].copy_from_slice(new);
    }
    bytes
}

const PID: u32 = 17065;
const OTHER_PID: u32 = 27065;

/// The sample of Node.js as another process would have written it, with a dump that `edit` has changed.
fn another_run(folder: &Path, edit: impl Fn(Vec<u8>) -> Vec<u8>) {
    let file = |name: &str| fs::read(sample("node", name)).expect("the sample is there");
    let other_process = |bytes: &[u8]| {
        let bytes = replaced(bytes, &PID.to_le_bytes(), &OTHER_PID.to_le_bytes());
        replaced(&bytes, b"17065", b"27065")
    };
    let data = other_process(&file("perf.data"));
    fs::write(folder.join("perf.data"), data).expect("written");
    let dump = file("jit-17065.dump");
    let dump = replaced(&dump, &PID.to_le_bytes(), &OTHER_PID.to_le_bytes());
    fs::write(folder.join("jit-27065.dump"), edit(dump)).expect("written");
    fs::write(folder.join("kallsyms.gz"), file("kallsyms.gz")).expect("written");
}

fn symfs(name: &str) -> String {
    sample(name, "symfs")
        .to_str()
        .expect("a plain path")
        .to_owned()
}

#[test]
fn a_renamed_function_is_one_pair() {
    let folder = tempfile::tempdir().expect("a folder");
    another_run(folder.path(), |dump| {
        replaced(&dump, b"matMul ", b"matTwo ")
    });
    let (base, new) = (sample("node", "perf.data"), folder.path().join("perf.data"));
    let answer = diff(&base, &new, &["--symfs", &symfs("node")]);
    let rows = answer["rows"].as_array().expect("rows");
    let renamed: Vec<(&Value, &Value)> = rows
        .iter()
        .filter(|row| !row["renamed"].is_null())
        .map(|row| (&row["name"], &row["matched"]))
        .collect();
    let id = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        &row.expect("a row")["id"]
    };
    let partner = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        &row.expect("a row")["renamed"]
    };
    assert_eq!(renamed.len(), 2, "{renamed:?}");
    assert!(renamed.iter().all(|(_, matched)| **matched == false));
    assert_eq!(
        (partner("matMul"), partner("matTwo")),
        (id("matTwo"), id("matMul"))
    );
    assert!(
        matched(&answer)
            .iter()
            .all(|share| (0.8..0.9).contains(share))
    );
}

/// Leaves every other sample out: what it was is no record that anybody knows.
fn half(recording: &[u8], part: usize) -> Vec<u8> {
    const SAMPLE: u32 = 9;
    const UNKNOWN: u32 = 82;
    let u64_at = |at: usize| {
        let bytes = recording[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) as usize
    };
    let (mut at, mut samples) = (u64_at(40), 0);
    let end = at + u64_at(48);
    let mut half = recording.to_vec();
    while at < end {
        let kind = u32::from_le_bytes(recording[at..at + 4].try_into().expect("four bytes"));
        let length = u16::from_le_bytes([recording[at + 6], recording[at + 7]]);
        if kind == SAMPLE {
            samples += 1;
            if samples % 2 == part {
                half[at..at + 4].copy_from_slice(&UNKNOWN.to_le_bytes());
            }
        }
        at += usize::from(length);
    }
    half
}

/// What one run was sampled in and the other was not is in its dump and in the program all the same.
#[test]
fn functions_without_samples_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["jit-17065.dump", "kallsyms.gz"] {
        fs::copy(sample("node", name), folder.path().join(name)).expect("copied");
    }
    let recording = fs::read(sample("node", "perf.data")).expect("the sample is there");
    let halves = [0, 1].map(|part| {
        let path = folder.path().join(format!("{part}.data"));
        fs::write(&path, half(&recording, part)).expect("written");
        path
    });
    let of = |by: &str| {
        let more = ["--symfs", &symfs("node"), "--by", by];
        matched(&diff(&halves[0], &halves[1], &more))
    };
    assert_eq!(of("credited"), [1.0, 1.0]);
    // The kernel's functions are not looked up.
    assert!(
        of("self").iter().all(|share| *share > 0.9),
        "{:?}",
        of("self")
    );
}
