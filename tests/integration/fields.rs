//! Fields of tracepoints as sort keys against the perf of this machine: the same text, order included.
//!
//! Left out are events whose printed payload has no `NAME=VALUE` (system calls): perf then shows an empty column.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{perf, pjit, skip};

const KEYS: [&str; 9] = [
    "-s prev_comm,next_comm",
    "-s sched_switch.prev_state/raw,next_comm",
    "-s comm,sched:sched_switch.next_pid,sched_waking.target_cpu",
    "-s %2.pid,%1.next_comm",
    "-s trace_fields",
    "--raw-trace",
    "-s common_type,common_pid",
    "-s prev_comm -t, -w 0,4",
    "--hierarchy -s {prev_comm,comm},next_comm",
];

/// Lines without those that one of the two has alone, and blanks at their ends.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let own = |line: &&str| !line.starts_with("# Quality: ") && !line.starts_with("# (");
    let lines = text.lines().map(str::trim_end).filter(own);
    let lines = lines.filter(|line| !line.is_empty() && *line != "#");
    lines.map(str::to_owned).collect()
}

fn report(mut command: Command, keys: &str, folder: &Path) -> Vec<String> {
    let output = command
        .args(["report", "--stdio", "-i", "perf.data"])
        .args(keys.split(' '))
        .current_dir(folder)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .expect("it can be run");
    lines(&output.stdout)
}

/// Why it cannot run here.
fn record(folder: &Path) -> Result<(), String> {
    let run = |words: &[&str]| {
        let mut perf = perf();
        let output = perf.args(words).current_dir(folder).env("HOME", folder);
        let output = output.stdin(Stdio::null()).output();
        output.map_err(|error| error.to_string())
    };
    let version = String::from_utf8_lossy(&run(&["--version"])?.stdout).into_owned();
    if !version.starts_with("perf version 6.") {
        return Err(format!("it is {}", version.trim()));
    }
    let events = "sched:sched_switch,sched:sched_waking";
    let program = "for i in 1 2 3 4 5; do ls / >/dev/null; sleep 0.01; done";
    let words = [
        "record",
        "-q",
        "-N",
        "-o",
        "perf.data",
        "-e",
        events,
        "sh",
        "-c",
        program,
    ];
    let made = run(&words)?;
    if made.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&made.stderr).trim().to_owned())
    }
}

#[test]
fn fields_of_tracepoints_are_keys_as_in_perf() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Err(why) = record(folder.path()) {
        skip("perf", &why);
        return;
    }
    for keys in KEYS {
        let wanted = report(perf(), keys, folder.path());
        assert!(wanted.len() > 6, "perf says nothing: {keys} {wanted:#?}");
        assert_eq!(report(pjit(), keys, folder.path()), wanted, "{keys}");
    }
    for (keys, why) in [
        ("-s nonsense", "has a field 'nonsense'"),
        ("-s sched.prev_comm", "more than one event"),
        ("-s sched_stat.x", "no event of the recording"),
        ("-s next_comm/hex", "nothing but `raw`"),
        ("-s next_comm~2", "`next_comm` is no number"),
        ("-s next_prio~1", "behind the tilde"),
    ] {
        let output = pjit()
            .args(["report", "-i", "perf.data"])
            .args(keys.split(' '))
            .current_dir(folder.path())
            .output()
            .expect("it can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && said.contains(why),
            "{said}"
        );
    }
}

/// `-F period` names it for all events, as in perf. Lines of tracepoints were a column short.
#[test]
fn a_period_that_was_asked_for_is_on_every_line() {
    let lines_with_period = |fields: &[&str]| {
        let script = crate::support::stdout_of(&[&["script", "-G"], fields].concat(), "waits");
        let front = |line: &str| Some(line.split_once("sched:sched_switch:")?.0.to_owned());
        let fronts: Vec<String> = script.lines().filter_map(front).collect();
        let with = fronts
            .iter()
            .filter(|front| front.trim_end().ends_with(" 1"));
        (with.count(), fronts.len())
    };
    for fields in ["comm,event,period", "+period", "-time,+period"] {
        let (with, all) = lines_with_period(&["-F", fields]);
        assert!(with == all && all > 0, "{fields}: {with} of {all}");
    }
    assert_eq!(lines_with_period(&[]).0, 0);
}
