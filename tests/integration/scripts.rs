//! The scripts that record for weights: they leave no probe behind, and say first what they lack.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::live::{Lab, total};
use crate::probes;
use crate::support::skip;

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
    let status = Command::new("kill")
        .args(["-TERM", &number.to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    // The shell acts on it when the recorder is back.
    let children = format!("/proc/{number}/task/{number}/children");
    let recorder = fs::read_to_string(children).unwrap_or_default();
    for child in recorder.split_whitespace() {
        let _ = Command::new("kill").args(["-INT", child]).status();
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
