//! Programs that run already: what they tell when they are asked, and what they would have to be started with.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::runtimes::{classes, program_of};
use super::{Ended, built, children, done, lab, lay, names, record, samples_of, wait_for};
use crate::live::Lab;
use crate::support::{map_of, program, send, skip};

#[test]
fn running_processes_are_recorded_for_a_while() {
    let Some(lab) = built("attach", "server") else {
        return;
    };
    let mut server = Ended::start(&lab, "./server");
    wait_for("the server is ready", || lab.path("ready").exists());
    let pid = server.0.id().to_string();
    let words = ["-q", "-p", &pid, "--duration", "0.5", "-o", "pid"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let words = ["-q", "-p", &pid, "-o", "watch", "--", "sleep", "0.5"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    assert!(
        server.0.try_wait().expect("asked").is_none(),
        "it was not touched"
    );
    send(Signal::TERM, server.0.id());
    assert_eq!(server.0.wait().expect("it ends").code(), Some(42));
    for out in ["pid", "watch"] {
        let count = samples_of(&lab, out, "serve");
        assert!((20..2000).contains(&count), "{out}: {count}");
    }
    // One that ends meanwhile ends the recording.
    let mut sleeper = Command::new("sleep")
        .arg("4")
        .spawn()
        .expect("there is sleep");
    let pid = sleeper.id().to_string();
    let began = std::time::Instant::now();
    let (code, _, err) = done(&mut record(
        &lab,
        &["-q", "-p", &pid, "--duration", "60", "-o", "end"],
    ));
    assert_eq!(code, Some(0), "{err}");
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    let _ = sleeper.wait();
}

/// What V8 was not told at its start it never tells.
#[test]
fn a_running_node_is_started_again_for_its_names() {
    let Some(lab) = lab("restart") else { return };
    if program("node").is_none() {
        return skip("node", "it is not on PATH");
    }
    lay(&lab, "spin.js");
    let there = lab.path("else where");
    fs::create_dir(&there).expect("made");
    fs::rename(lab.path("spin.js"), there.join("spin.js")).expect("moved");
    let node = Command::new("node")
        .arg("spin.js")
        .current_dir(&there)
        .env_remove("NODE_OPTIONS")
        .spawn();
    let node = Ended(node.expect("there is node"));
    let pid = node.0.id().to_string();
    let words = ["-p", &pid, "--duration", "1", "-o", "out"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let command = format!("cd '{}' && pjit record -- node spin.js", there.display());
    assert!(err.contains("started without its switch"), "{err}");
    assert!(err.contains(&format!("next: {command}\n")), "{err}");
}

/// How the server is started: its code may be inlined into the library's, of which alone a map tells.
const WARM: [&str; 5] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,Server*::*",
    "-cp",
    ".",
    "Server",
];

/// Attaches to the server, and looks at what was gathered of it. None where it is too old to be asked.
fn asked_for_its_names(lab: &Lab, java: u32) -> Option<()> {
    let pid = java.to_string();
    let words = ["-p", &pid, "--duration", "3", "-o", "out"];
    let (code, _, err) = done(&mut record(lab, &words));
    assert_eq!(code, Some(0), "{err}");
    if err.contains("only releases from 17 on") {
        skip("java", "an old release");
        return None;
    }
    assert!(err.contains("is a JVM: "), "{err}");
    let made = format!("jit-{pid}.dump");
    assert!(names(&lab.path("out")).contains(&made), "{err}");
    assert!(samples_of(lab, "out", "Server.") > 50, "{err}");
    let (complete, named) = super::runtimes::quality(lab, "out");
    assert!(complete > 90.0 && named > 97.0, "{complete} {named}: {err}");
    Some(())
}

#[test]
fn a_running_jvm_is_asked_for_its_names_and_keeps_no_map() {
    let Some(lab) = lab("jvm") else { return };
    if !classes(&lab, "Server.java") || program("jcmd").is_none() {
        return skip("java", "there is no JDK");
    }
    let server = Command::new("java")
        .args(WARM)
        .current_dir(lab.path("."))
        .stdout(Stdio::null())
        .spawn();
    let server = Ended(server.expect("there is java"));
    wait_for("the server is warm", || lab.path("ready").exists());
    asked_for_its_names(&lab, server.0.id());
    let map = map_of(server.0.id());
    assert!(!map.exists(), "{}", map.display());
}

/// What makes a namespace of mounts and one of processes: as root, and as somebody who is root there alone.
const NAMESPACES: [&[&str]; 2] = [&["-m", "-p", "-f"], &["-U", "-r", "-m", "-p", "-f"]];

/// The options of `unshare` that work here.
pub(super) fn namespaces() -> Option<&'static [&'static str]> {
    let works = |options: &&&[&str]| {
        let mount = Command::new("unshare")
            .args(**options)
            .args(["mount", "-t", "tmpfs", "t", "/tmp"])
            .stderr(Stdio::null())
            .status();
        mount.is_ok_and(|status| status.success())
    };
    let found = NAMESPACES.iter().find(works).copied();
    if found.is_none() {
        skip("unshare", "no namespace can be made");
    }
    found
}

/// Below a process, the first that runs such a program.
fn descendant(of: &Child, begins: &str) -> Option<u32> {
    let mut todo = vec![of.id()];
    while let Some(pid) = todo.pop() {
        let below = children(pid, "");
        if let Some(found) = below
            .iter()
            .find(|&&pid| program_of(pid).starts_with(begins))
        {
            return Some(*found);
        }
        todo.extend(below);
    }
    None
}

/// There it is number 1 or 2, and its `/tmp` is nobody else's.
#[test]
fn a_jvm_in_a_container_is_asked_by_the_number_that_it_has_outside() {
    let Some(lab) = lab("jvm-inside") else { return };
    if !classes(&lab, "Server.java") || program("jcmd").is_none() {
        return skip("java", "there is no JDK");
    }
    let Some(options) = namespaces() else { return };
    // The folder itself may be below `/tmp`.
    let script = "mount --bind . /mnt && mount -t tmpfs t /tmp && cd /mnt && java \"$@\"; :";
    let outside = Command::new("unshare")
        .args(options)
        .args(["--kill-child", "sh", "-c", script, "sh"])
        .args(WARM)
        .current_dir(lab.path("."))
        .stdout(Stdio::null())
        .spawn();
    let outside = Ended(outside.expect("there is unshare"));
    wait_for("the server is warm", || lab.path("ready").exists());
    let java = descendant(&outside.0, "java").expect("it runs");
    let status = fs::read_to_string(format!("/proc/{java}/status")).expect("it runs");
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let numbers: Vec<&str> = numbers.expect("told").split_whitespace().collect();
    assert_eq!(
        numbers.first(),
        Some(&java.to_string().as_str()),
        "{status}"
    );
    assert_ne!(numbers.first(), numbers.last(), "{status}");
    let inside = format!(
        "/proc/{java}/root/tmp/perf-{}.map",
        numbers[numbers.len() - 1]
    );
    let is_asked = asked_for_its_names(&lab, java);
    let left = Path::new(&inside).exists() || map_of(java).exists();
    assert!(is_asked.is_none() || !left, "{inside}");
}
