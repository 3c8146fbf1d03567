//! A function is the same one in two recordings, whatever was edited, moved or compiled again between them: a sample and what
//! becomes of it when its dump says so, and a program that is built twice.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bundle::succeed;
use crate::flamegraph::is_unchanged;
use crate::inlines::{code, recording_of};
use crate::support::{pjit, program, sample, skip};

/// `pjit diff` of two recordings.
pub(crate) fn diff(base: &Path, new: &Path, more: &[&str]) -> Value {
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

/// Another folder, other tiers, and three lines more behind the ninth.
fn moved(mut dump: Vec<u8>) -> Vec<u8> {
    const SCRIPT: &[u8] = b" /tmp/pjit-sample/node/hot.js:";
    dump = replaced(&dump, b"JS:*", b"JS:+");
    let places: Vec<usize> = memchr::memmem::find_iter(&dump, SCRIPT).collect();
    for place in places {
        let line = place + SCRIPT.len();
        if let Ok(text) = std::str::from_utf8(&dump[line..line + 2])
            && let Ok(number) = text.parse::<u32>()
        {
            let later = (number + 3).to_string();
            dump[line..line + 2].copy_from_slice(later.as_bytes());
        }
    }
    replaced(
        &dump,
        b"/tmp/pjit-sample/node/hot.js",
        b"/srv/else-where/codes/hot.js",
    )
}

#[test]
fn scripts_that_moved_and_were_compiled_again_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    another_run(folder.path(), moved);
    let (base, new) = (sample("node", "perf.data"), folder.path().join("perf.data"));
    for by in ["credited", "self"] {
        let answer = diff(&base, &new, &["--symfs", &symfs("node"), "--by", by]);
        assert_eq!(matched(&answer), [1.0, 1.0], "{by}");
        let rows = answer["rows"].as_array().expect("rows");
        assert!(rows.len() >= 3 && rows.iter().all(|row| row["ratio"] == 1.0));
        let pids = [0, 1].map(|at| answer["recordings"][at]["pid"].as_u64());
        assert_eq!(pids, [PID, OTHER_PID].map(|pid| Some(pid.into())));
    }
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

/// Rust's names of functions, with the hash of a crate.
pub(crate) fn built(folder: &Path, program: &str, hash: &str) -> std::path::PathBuf {
    let names = ["first", "second", "third"].map(|name| {
        let length = name.len();
        format!("_ZN4prog{length}{name}17h{hash}E")
    });
    // Long enough for some samples at each sixteenth byte.
    let body = "sum += n;".repeat(200);
    let work = names.iter().map(|name| {
        format!("__attribute__((noinline)) int {name}(int n) {{ volatile int sum = n; {body} return sum; }}\n")
    });
    let calls: Vec<String> = names.iter().map(|name| format!("{name}(n)")).collect();
    let calls = calls.join(" + ");
    let text = format!(
        "{}int main(int n, char **v) {{ return {calls}; }}\n",
        work.collect::<String>()
    );
    fs::create_dir_all(folder).expect("made");
    fs::write(folder.join("prog.c"), text).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-o", program, "prog.c"])
        .current_dir(folder);
    succeed(&mut cc);
    folder.join(program)
}

/// A recording of a program that is built for it.
fn recorded(folder: &Path, program: &str, hash: &str) -> std::path::PathBuf {
    let program = built(folder, program, hash);
    let path = program.to_str().expect("a plain path").as_bytes();
    let code = code(&fs::read(&program).expect("built"));
    let data = program.with_extension("data");
    fs::write(&data, recording_of(path, &code)).expect("written");
    data
}

fn names_of(answer: &Value) -> Vec<&str> {
    let rows = answer["rows"].as_array().expect("rows").iter();
    rows.filter_map(|row| row["name"].as_str()).collect()
}

#[test]
fn another_build_elsewhere_is_the_same() {
    if program("cc").is_none() {
        return skip("c++", "it cannot be built");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let runs = [
        ("old", "0123456789abcdef"),
        ("new/place", "fedcba9876543210"),
    ]
    .map(|(place, hash)| recorded(&folder.path().join(place), "prog", hash));
    let answer = diff(&runs[0], &runs[1], &[]);
    assert_eq!(matched(&answer), [1.0, 1.0]);
    assert_eq!(answer["programs"], Value::Null);
    let names = names_of(&answer);
    assert!(names.contains(&"prog::first"), "{names:?}");
}

/// The program is the same though its file has another name, and every view says so.
#[test]
fn a_program_of_another_name_is_the_same() {
    if program("cc").is_none() {
        return skip("c++", "it cannot be built");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let runs = [
        ("app-old", "0123456789abcdef"),
        ("app-new", "fedcba9876543210"),
    ];
    let runs = runs.map(|(name, hash)| recorded(&folder.path().join(name), name, hash));
    let [base, new] = &runs;
    let answer = diff(base, new, &[]);
    assert_eq!(matched(&answer), [1.0, 1.0]);
    let programs = serde_json::json!({"base": "app-old", "new": "app-new"});
    assert_eq!(answer["programs"], programs);
    assert!(names_of(&answer).contains(&"prog::first"));
    let rows = answer["rows"].as_array().expect("rows");
    assert!(
        rows.iter()
            .all(|row| row["ratio"] == 1.0 && row["object"] == "app-new")
    );
    let told = "app-old (base) and app-new (new) are taken for one program";
    let files = [base, new].map(|path| path.to_str().expect("a plain path"));
    for (view, status) in [
        (&["diff"][..], 0),
        (&["diff", "--format", "markdown"], 0),
        (&["gate", "--max-growth", "5%"], 4),
        (&["flamegraph", "--format", "svg", "-o", "-"], 0),
    ] {
        let mut command = pjit();
        command.args(view);
        match view[0] {
            "flamegraph" => command.args(["--diff", files[0], files[1]]),
            _ => command.args(files),
        };
        let output = command.output().expect("the binary can be run");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{view:?}: {text}");
        assert!(text.contains(told), "{view:?}: {text}");
        assert!(!text.contains("\n\\#\n"), "{view:?}: {text}");
        assert!(view[0] != "flamegraph" || is_unchanged(&text), "{text}");
    }
}
