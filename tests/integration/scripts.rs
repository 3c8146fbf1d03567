//! The script that profiles a benchmark puts together what it promises, and the others are calls of `pjit record`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::live::Lab;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scripts")
        .join(name)
}

/// Waits until it is so, for a while.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `scripts/profile-benchmark profile OPTIONS…` in a folder: status, what it said, the folder with what it made.
fn benchmark(lab: &Lab, options: &[&str]) -> (Option<i32>, String, PathBuf) {
    let out = lab.path("profile");
    let done = Command::new("sh")
        .arg(script("profile-benchmark"))
        .args(["profile", "-g", "-F", "999"])
        .args(options)
        .env("PJIT", env!("CARGO_BIN_EXE_pjit"))
        .current_dir(lab.path("."))
        .output()
        .expect("there is sh");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said, out)
}

/// Whether the machine lets this be recorded.
fn can_record(lab: &Lab) -> bool {
    lab.record("try.data", &["-e", "cpu-clock:u"], &["true"])
        .is_some()
}

/// What a file says that has to be there.
fn text(out: &Path, name: &str) -> String {
    let text = fs::read_to_string(out.join(name)).expect(name);
    assert!(!text.is_empty(), "{name}");
    text
}

/// All views say something; their stacks.
fn stacks_of(out: &Path) -> String {
    for name in ["check.txt", "summary.txt", "summary.json", "flame.svg"] {
        text(out, name);
    }
    text(out, "stacks.folded")
}

#[test]
fn two_versions_are_profiled_by_turns() {
    let (Some(old), Some(new)) = (
        Lab::with("benchmark-old", "load", &[]),
        Lab::with("benchmark-new", "load", &["-DMORE=8"]),
    ) else {
        return;
    };
    if !can_record(&new) {
        return;
    }
    // Another name than the new one's.
    let base = old.path("load-before");
    fs::copy(old.path("load"), &base).expect("copied");
    let base = format!("{} 100 50", base.to_str().expect("a plain path"));
    let options = ["--runs", "1", "--base", &base, "--", "./load", "100", "50"];
    let (status, said, out) = benchmark(&new, &options);
    assert_eq!(status, Some(0), "{said}");
    let stacks = stacks_of(&out);
    let diff = text(&out, "diff.txt");
    // 50 ms against 400 ms; one run each says no more than that this is much.
    let row = diff.lines().find(|line| line.contains(" more "));
    assert!(row.is_some_and(|row| row.contains("large")), "{diff}");
    assert!(diff.contains("1 run of base, 1 of new"), "{diff}");
    let told = "load-before (base) and load (new) are taken for one program";
    assert!(diff.contains(told), "{diff}");
    assert!(out.join("base/01/perf.data").exists() && out.join("new/01/perf.data").exists());
    assert!(crate::live::below(&stacks, "more") > crate::live::below(&stacks, "work"));
}

#[test]
fn servers_are_profiled_under_load_and_ended() {
    let Some(lab) = Lab::with("benchmark-load", "load", &[]) else {
        return;
    };
    if !can_record(&lab) {
        return;
    }
    // The load is what decides how long it takes.
    let load = ["--load", "sleep 1; echo loaded >loaded"];
    let (status, said, out) = benchmark(&lab, &[&load[..], &["--", "./load", "0"]].concat());
    // It is ended by SIGTERM.
    assert_eq!(status, Some(143), "{said}");
    assert!(lab.path("loaded").exists());
    // The recorder was not ended: its file is whole.
    let stacks = stacks_of(&out);
    let messages = fs::read_to_string(out.join("messages.txt")).expect("it is there");
    assert!(!messages.contains("never completed"), "{messages}");
    assert!(
        stacks.contains("work") && stacks.contains("more"),
        "{stacks}"
    );
}

#[test]
fn running_processes_are_profiled_and_ended_ones_are_told() {
    let Some(lab) = Lab::with("benchmark-attach", "load", &[]) else {
        return;
    };
    if !can_record(&lab) {
        return;
    }
    let mut program = Command::new(lab.path("load"))
        .arg("0")
        .spawn()
        .expect("it runs");
    let number = program.id().to_string();
    let (status, said, out) = benchmark(&lab, &["--duration", "1", "-p", &number]);
    program.kill().expect("it can be ended");
    assert_eq!(status, Some(0), "{said}");
    assert!(stacks_of(&out).contains("work"));
    // It has ended, and nobody has asked yet how.
    fs::remove_dir_all(&out).expect("removed");
    let wanted = format!("process {number} has ended");
    wait_for("the process ends", || {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.contains(") Z ")
    });
    let (status, said, _) = benchmark(&lab, &["--duration", "1", "-p", &number]);
    assert!(
        status == Some(125) && said.contains(&wanted),
        "{status:?}: {said}"
    );
    let _ = program.wait();
    let (status, said, _) = benchmark(&lab, &["--duration", "1", "-p", &number]);
    assert!(
        status == Some(125) && said.contains(&wanted),
        "{status:?}: {said}"
    );
}

/// What the others are: examples, which take the options of `pjit record` and hand its status on.
#[test]
fn the_scripts_that_record_are_calls_of_pjit() {
    let lab = Lab::empty("calls");
    for name in [
        "record-node",
        "record-wasmtime",
        "record-offcpu",
        "record-allocations",
    ] {
        let done = Command::new("sh")
            .arg(script(name))
            .args(["--no-such-option", "--", "true"])
            .env("PJIT", env!("CARGO_BIN_EXE_pjit"))
            .current_dir(lab.path("."))
            .output()
            .expect("there is sh");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(125), "{name}: {said}");
        assert!(said.contains("has no option"), "{name}: {said}");
    }
}
