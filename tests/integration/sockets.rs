//! No view talks to a network: recordings are read, and what is in them stays here.

use std::fs;
use std::process::Command;

use crate::support::{sample, skip};

/// What people do with a recording, by the words behind `pjit`; `@` is a recording, `OUT` a file or folder to write.
const VIEWS: [&[&str]; 22] = [
    &["report", "@"],
    &["report", "--header-only", "@"],
    &["summary", "@"],
    &["summary", "--over-time", "@"],
    &["peek", ".", "@"],
    &["list", "fibonacci", "@"],
    &["annotate", "-i", "@", "fibonacci"],
    &["flamegraph", "-o", "OUT.svg", "@"],
    &["flamegraph", "-o", "OUT.html", "@"],
    &["fold", "@"],
    &["script", "@"],
    &["check", "@"],
    &["diff", "@", "@"],
    &["gate", "@", "--to", "@", "--max-growth", "50%"],
    &["export", "-o", "OUT.json.gz", "@"],
    &["export", "-o", "OUT.pb.gz", "@"],
    &["export", "-o", "OUT.speedscope.json", "@"],
    &["export", "-o", "OUT.csv", "@"],
    &["export", "--format", "parquet", "-o", "OUT", "@"],
    &["bundle", "-o", "OUT.tar.gz", "@"],
    &["fetch", "--dry-run", "@"],
    &["jitdump", "@"],
];

#[test]
fn no_view_opens_a_socket() {
    let works = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    if !works.is_ok_and(|status| status.success()) {
        return skip("strace", "it cannot trace");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let calls = |program: &str, words: &[String]| {
        let trace = folder.path().join("trace");
        let output = Command::new("strace")
            .args([
                "-f",
                "-qq",
                "-e",
                "trace=socket,socketpair,connect,bind,listen,sendto",
                "-o",
            ])
            .arg(&trace)
            .arg(program)
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder.path())
            .output()
            .expect("strace can be run");
        // At a process's end strace may let a thread go within a call that it does not know yet.
        let trace = fs::read_to_string(trace).expect("a trace");
        let lines = trace.lines().filter(|line| !line.contains(" ???("));
        (lines.collect::<Vec<_>>().join("\n"), output)
    };
    let pjit = env!("CARGO_BIN_EXE_pjit");
    let recording = sample("node", "perf.data").display().to_string();
    let dump = sample("node", "jit-17065.dump").display().to_string();
    for (number, view) in VIEWS.iter().enumerate() {
        let made = folder
            .path()
            .join(format!("made{number}"))
            .display()
            .to_string();
        let recording = if view[0] == "jitdump" {
            &dump
        } else {
            &recording
        };
        let words = view
            .iter()
            .map(|word| word.replace('@', recording).replace("OUT", &made));
        let words: Vec<String> = words.collect();
        let (trace, output) = calls(pjit, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // The whole way was gone: an answer, be it that a recording is not fit, or that this pjit has no dataset.
        let is_answer = match output.status.code() {
            Some(0 | 3 | 4) => true,
            Some(2) => said.contains("--features dataset"),
            _ => false,
        };
        assert!(is_answer, "{view:?}: {:?} {said}", output.status);
        assert!(trace.trim().is_empty(), "{view:?}: {trace}");
    }
    // What opens one is seen.
    let program = "import socket; socket.socket()";
    let words = ["-c", program].map(str::to_owned);
    let (trace, output) = calls("python3", &words);
    if output.status.success() {
        assert!(trace.contains("socket("), "{trace}");
    }
}
