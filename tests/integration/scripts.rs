//! The scripts that record: they leave no probe behind, say first what they lack, and put together what they promise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::live::{Lab, total};
use crate::probes;
use crate::support::{send, skip};

const EVENTS: &str = "/sys/kernel/tracing/uprobe_events";

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scripts")
        .join(name)
}

/// Probes of the script that is this process.
fn probes_of(process: u32) -> usize {
    let group = format!(":pjit_{process}/");
    let events = fs::read_to_string(EVENTS).unwrap_or_default();
    events.lines().filter(|line| line.contains(&group)).count()
}

/// Waits until it is so, for a while.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn allocations_are_recorded_and_probes_are_removed_also_when_interrupted() {
    let Some(lab) = Lab::with("scripts", "alloc", &[]) else {
        return;
    };
    // Its turn, and whether probes can be had at all.
    let Some(turn) = probes::turn() else {
        return;
    };
    let record = |command: &[&str]| {
        let mut recording = Command::new("bash");
        recording.arg(script("record-allocations"));
        recording
            .args(["--live", "-o", "s.data", "--"])
            .args(command);
        recording.current_dir(lab.path(".")).stdout(Stdio::null());
        recording.stderr(Stdio::piped());
        recording
    };
    let child = record(&["./alloc", "100"]).spawn().expect("there is bash");
    let number = child.id();
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        skip("probe", &said);
        return;
    }
    assert!(
        said.contains("next: pjit report --weight live s.data"),
        "{said}"
    );
    assert_eq!(probes_of(number), 0, "{said}");
    let live = lab.show(&["fold", "--weight", "live"], "s.data");
    assert_eq!(total(&live), 6_242_880, "{said}");

    let mut child = record(&["sleep", "60"]).spawn().expect("there is bash");
    let number = child.id();
    wait_for("probes are added", || probes_of(number) >= 11);
    send(Signal::TERM, number);
    // The shell acts on it when the recorder is back.
    let children = format!("/proc/{number}/task/{number}/children");
    let recorder = fs::read_to_string(children).unwrap_or_default();
    for child in recorder.split_whitespace() {
        let child = child.parse().ok().and_then(Pid::from_raw);
        // It may have ended meanwhile.
        let _ = child.map(|child| kill_process(child, Signal::INT));
    }
    let _ = child.wait();
    wait_for("probes are removed", || probes_of(number) == 0);
    drop(turn);
}

#[test]
fn without_rights_the_scripts_say_what_to_change() {
    let as_nobody = |name: &str| {
        let text = fs::read(script(name)).expect("the script is there");
        let mut child = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["bash", "-s", "--", "-o", "/dev/null", "--", "true"])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut input = child.stdin.take()?;
        // It may be gone before it has read all of it.
        let _ = std::io::Write::write_all(&mut input, &text);
        drop(input);
        let done = child.wait_with_output().ok()?;
        Some((
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        ))
    };
    for name in ["record-allocations", "record-offcpu"] {
        match as_nobody(name) {
            // Who is not root cannot become somebody else either.
            None => return,
            Some((_, said)) if said.contains("setpriv:") => return,
            Some((_, said)) if said.contains("there is no perf") => {
                skip("perf", &said);
                return;
            }
            Some((status, said)) => {
                assert_eq!(status, Some(1), "{name}: {said}");
                let is_told =
                    said.contains("run as root") || said.contains("perf_event_paranoid=-1");
                assert!(is_told, "{name}: {said}");
            }
        }
    }
}

/// `scripts/profile-benchmark OPTIONS…` in a folder: status, what it said, the folder with what it made.
fn benchmark(lab: &Lab, options: &[&str]) -> (Option<i32>, String, PathBuf) {
    let out = lab.path("profile");
    let done = Command::new("sh")
        .arg(script("profile-benchmark"))
        .args(["--fp", "-n", "1", "-F", "999", "-o", "profile"])
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

/// All that the index names is there and says something; the summary, or what else it shows.
fn index_of(out: &Path, wanted: &[&str]) -> String {
    let index = fs::read_to_string(out.join("index.md")).expect("an index");
    for file in wanted {
        let is_there = fs::metadata(out.join(file)).is_ok_and(|file| file.len() > 0);
        assert!(
            is_there && index.contains(&format!("- [{file}]({file})\n")),
            "{file}: {index}"
        );
    }
    index
}

const ALWAYS: [&str; 5] = [
    "check.txt",
    "summary.txt",
    "summary.json",
    "stacks.folded",
    "flame.svg",
];

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
    let base = base.to_str().expect("a plain path");
    let (status, said, out) = benchmark(&new, &["--base-bin", base, "--", "./load", "100", "50"]);
    assert_eq!(status, Some(0), "{said}");
    let index = index_of(&out, &ALWAYS);
    index_of(&out, &["diff.txt", "machine.txt"]);
    // 50 ms against 400 ms; one run each says no more than that this is much.
    let row = index.lines().find(|line| line.contains(" more "));
    assert!(row.is_some_and(|row| row.contains("large")), "{index}");
    assert!(index.contains("1 run of each"), "{index}");
    let told = "load-before (base) and load (new) are taken for one program";
    assert!(index.contains(told), "{index}");
    assert!(out.join("base/01/perf.data").exists() && out.join("new/01/perf.data").exists());
    let stacks = fs::read_to_string(out.join("stacks.folded")).expect("stacks");
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
    let load = ["--wait", "0.1", "--load", "sleep 1; echo loaded"];
    let (status, said, out) = benchmark(&lab, &[&load[..], &["--", "./load", "0"]].concat());
    assert_eq!(status, Some(0), "{said}");
    let index = index_of(&out, &ALWAYS);
    assert!(index.contains("# Profile of: ./load 0\n"), "{index}");
    let text = |name: &str| fs::read_to_string(out.join(name)).expect("it is there");
    assert_eq!(text("new/01/load.txt"), "loaded\n");
    // The recorder was not ended: its file is whole.
    assert!(!text("messages.txt").contains("never completed"));
    let stacks = text("stacks.folded");
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
    let (status, said, out) = benchmark(&lab, &["-d", "1", "-p", &number]);
    program.kill().expect("it can be ended");
    assert_eq!(status, Some(0), "{said}");
    let index = index_of(&out, &ALWAYS);
    assert!(
        index.contains(&format!("# Profile of: process {number}\n")),
        "{index}"
    );
    // It has ended, and nobody has asked yet how.
    fs::remove_dir_all(&out).expect("removed");
    let wanted = format!("nothing was recorded: process {number} has ended");
    wait_for("the process ends", || {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.contains(") Z ")
    });
    let (status, said, _) = benchmark(&lab, &["-d", "1", "-p", &number]);
    assert!(
        status == Some(2) && said.contains(&wanted),
        "{status:?}: {said}"
    );
    let _ = program.wait();
    let (status, said, _) = benchmark(&lab, &["-d", "1", "-p", &number]);
    assert!(
        status == Some(2) && said.contains(&format!("-p {number}: no such process")),
        "{status:?}: {said}"
    );
}
