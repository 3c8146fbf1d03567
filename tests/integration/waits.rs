//! Waiting and running, against what the program that waits has measured itself.

use crate::live::{Lab, below, total, truth};
use crate::recording::{Recording, Sample, Stacks};
use crate::support::pjit;

const SITES: [&str; 6] = [
    "site_sleep",
    "site_lock",
    "site_read",
    "site_hold",
    "site_poll",
    "site_join",
];

/// Seconds of folded nanoseconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Whether a time is within 1 % and 2 ms of the true one; busy machines are late to tell.
fn assert_near(what: &str, found: f64, truth: f64, share: f64) {
    let most = (truth * share).max(0.002);
    assert!(
        (found - truth).abs() <= most,
        "{what}: {found:.4} s, but {truth:.4} s are true"
    );
}

fn assert_blocked_sites(lab: &Lab, data: &str, printed: &str) {
    let folded = lab.show(&["fold", "--weight", "blocked"], data);
    let truth = truth(printed);
    for site in SITES {
        assert_near(site, seconds(below(&folded, site)), truth[site], 0.01);
    }
}

#[test]
fn waits_and_work_are_what_the_program_measured() {
    let Some(lab) = Lab::with("waits", "off", &[]) else {
        return;
    };
    let options = [
        "-k",
        "mono",
        "-e",
        "sched:sched_switch",
        "-e",
        "cpu-clock/freq=997/",
        "--switch-events",
        "--call-graph",
        "dwarf,4096",
        "-m",
        "16M",
    ];
    let Some(printed) = lab.record("off.data", &options, &["./off"]) else {
        return;
    };
    assert_blocked_sites(&lab, "off.data", &printed);
    let truth = truth(&printed);

    let folded = lab.show(&["fold", "--weight", "runnable"], "off.data");
    let runnable = seconds(below(&folded, "site_burn"));
    assert_near("burners", runnable, truth["burn_runnable"], 0.03);

    let folded = lab.show(&["fold", "--weight", "oncpu"], "off.data");
    let on = seconds(below(&folded, "site_burn"));
    assert_near("work", on, truth["burn_cpu"], 0.02);

    wall_is_all_of_every_life(&lab);
}

/// Waiting and running add up to the time between a thread's first and last event.
fn wall_is_all_of_every_life(lab: &Lab) {
    let folded = lab.show(&["fold", "--tid", "--weight", "wall"], "off.data");
    let off = lab.show(&["fold", "--tid", "--weight", "offcpu"], "off.data");
    let lives = lab.show(&["script", "-G", "--ns", "-F", "tid,time"], "off.data");
    let mut spans: std::collections::BTreeMap<&str, (f64, f64)> = Default::default();
    for line in lives.lines() {
        let mut words = line.split_whitespace();
        let (Some(tid), Some(time)) = (words.next(), words.next()) else {
            panic!("{line}");
        };
        let time: f64 = time.trim_end_matches(':').parse().expect("a time");
        let span = spans.entry(tid).or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
    }
    let total = |folded: &str, tid: &str| -> u64 {
        let end = format!("/{tid}");
        let is_own = |line: &&str| line.split(';').next().is_some_and(|c| c.ends_with(&end));
        total(&folded.lines().filter(is_own).collect::<Vec<_>>().join("\n"))
    };
    assert!(spans.len() >= 10);
    for (tid, (first, last)) in spans {
        let wall = seconds(total(&folded, tid));
        // Before a thread's first sample it was made and waited for its turn; behind its last one it may run a little.
        assert!(
            wall >= last - first - 0.001,
            "{tid}: {wall} of {}",
            last - first
        );
        let waited = seconds(total(&off, tid));
        assert!(wall >= waited, "{tid}: {wall} with {waited} of waiting");
    }
    assert!(folded.contains(";[blocked] ") && folded.contains(";[runnable] "));
    let mut waiting = folded.lines().filter(|line| line.contains(";[blocked] "));
    assert!(!waiting.any(|line| line.contains(";__schedule;")));
}

#[test]
fn without_records_of_switches_other_evidence_is_used_and_told() {
    let Some(lab) = Lab::with("waits-bare", "off", &[]) else {
        return;
    };
    let options = [
        "-k",
        "mono",
        "-e",
        "sched:sched_switch",
        "-e",
        "cpu-clock/freq=997/",
        "--call-graph",
        "fp",
        "-m",
        "16M",
    ];
    let Some(printed) = lab.record("off.data", &options, &["./off", "100"]) else {
        return;
    };
    let report = lab.show(&["report", "--weight", "blocked", "-g", "none"], "off.data");
    assert!(
        report.contains("; waits: ") && report.contains(" ended by a sample"),
        "{report}"
    );
    assert!(report.contains(" Intervals  Command"), "{report}");
    let folded = lab.show(&["fold", "--weight", "blocked"], "off.data");
    // The frame that calls the system is there, who calls it may not be: it is glibc's without frame pointers.
    let truth = truth(&printed);
    for site in ["site_poll", "site_join"] {
        let (found, most) = (seconds(below(&folded, site)), truth[site]);
        assert!(found <= most * 1.05 + 0.002, "{site}: {found} of {most}");
    }
}

#[test]
fn a_frequency_for_everything_is_warned_of_and_no_time_is_lost() {
    let Some(lab) = Lab::with("waits-sampled", "off", &[]) else {
        return;
    };
    let options = [
        "-k",
        "mono",
        "-F",
        "997",
        "-e",
        "sched:sched_switch",
        "--switch-events",
        "--call-graph",
        "fp",
        "-m",
        "16M",
    ];
    if lab.record("off.data", &options, &["./off", "30"]).is_none() {
        return;
    }
    let (status, folded, said) = lab.pjit(&["fold", "--weight", "offcpu"], "off.data");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("sched:sched_switch was sampled"), "{said}");
    assert!(folded.contains("[no switch stack] "), "{folded}");
}

#[test]
fn system_wide_recordings_need_no_records_of_switches() {
    let Some(lab) = Lab::with("waits-wide", "off", &[]) else {
        return;
    };
    let options = [
        "-a",
        "-k",
        "mono",
        "-e",
        "sched:sched_switch",
        "--call-graph",
        "dwarf,4096",
        "-m",
        "16M",
    ];
    let Some(printed) = lab.record("off.data", &options, &["./off", "50"]) else {
        return;
    };
    assert_blocked_sites(&lab, "off.data", &printed);
    let folded = lab.show(&["fold", "--weight", "oncpu"], "off.data");
    assert!(folded.contains("[no sample]"), "{folded}");
    assert!(!folded.contains("swapper"), "{folded}");
}

#[test]
fn what_a_recording_cannot_tell_is_refused() {
    let Some(lab) = Lab::with("waits-refused", "off", &[]) else {
        return;
    };
    let options = ["-e", "sched:sched_switch"];
    if lab.record("bare.data", &options, &["./off", "1"]).is_none() {
        return;
    }
    let refused = |weight: &str, data: &str| {
        let (status, out, said) = lab.pjit(&["report", "--weight", weight], data);
        assert_eq!((status, out.as_str()), (1, ""), "{weight}");
        said
    };
    assert!(
        refused("runnable", "bare.data").contains("switch-in was not recorded (--switch-events)")
    );
    assert!(refused("wall", "bare.data").contains("switch-in was not recorded"));
    let unknown = refused("siz", "bare.data");
    assert!(
        unknown.contains("unknown field `siz` (sched:sched_switch has prev_comm, prev_pid"),
        "{unknown}"
    );
    let usage = lab.pjit(&["report", "--weight", "prev_pid+"], "bare.data");
    assert_eq!(usage.0, 2, "{}", usage.2);
    if lab
        .record("clock.data", &["-e", "cpu-clock"], &["./off", "1"])
        .is_some()
    {
        let said = refused("offcpu", "clock.data");
        assert!(
            said.contains("neither sched:sched_switch nor offcpu-time"),
            "{said}"
        );
    }
}

#[test]
fn expressions_add_up_fields() {
    let Some(lab) = Lab::with("waits-fields", "off", &[]) else {
        return;
    };
    if lab
        .record("bare.data", &["-e", "sched:sched_switch"], &["./off", "1"])
        .is_none()
    {
        return;
    }
    let payloads = lab.show(&["script", "-F", "tid,trace"], "bare.data");
    let field = |line: &str, name: &str| -> i64 {
        let (_, value) = line
            .split_once(&format!(" {name}="))
            .expect("the field is printed");
        let value = value.split_whitespace().next().expect("it has a value");
        value.parse().expect("a number")
    };
    let truth: i64 = payloads
        .lines()
        .map(|line| field(line, "prev_prio") + 1)
        .sum();
    let sum = |weight: &str| {
        let folded = lab.show(&["fold", "--weight", weight], "bare.data");
        i64::try_from(total(&folded)).expect("a small number")
    };
    assert_eq!(sum("prev_prio+1"), truth);
    assert_eq!(sum("sched:sched_switch=(prev_prio>0)*prev_prio+1"), truth);
    assert_eq!(sum("samples"), payloads.lines().count() as i64);
    let (_, _, said) = lab.pjit(
        &["report", "--weight", "next_prio-1000", "-s", "sym"],
        "bare.data",
    );
    assert!(said.contains("no samples"), "{said}");
}

/// As perf writes it where it has BPF: what was added up until the end has numbers in place of times.
#[test]
fn times_off_the_processor_that_the_kernel_added_up_are_taken_as_they_are() {
    const NUMBERS: u64 = 0xffff_ffff_0000_0000;
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"sleeper");
    for (time, period) in [
        (1_000_000_000, 600_000_000),
        (3_500_000_000, 700_000_000),
        (NUMBERS, 40_000_000),
        (NUMBERS + 1, 2_345),
    ] {
        recording.sample(&Sample {
            ip: 0x1000,
            pid: 7,
            tid: 7,
            time,
            period,
            chain: &[0x1000],
            user: None,
        });
    }
    recording.name_event(b"offcpu-time");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("offcpu-time");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join("perf.data");
    std::fs::write(&file, recording.file()).expect("it can be written");
    let show = |options: &[&str]| -> (bool, String, String) {
        let output = pjit().args(options).arg(&file).output();
        let output = output.expect("the binary can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (_, folded, said) = show(&["fold", "--weight", "offcpu"]);
    assert_eq!(total(&folded), 1_340_002_345, "{folded}{said}");
    let (_, report, _) = show(&["report", "--weight", "offcpu", "-g", "none", "-s", "comm"]);
    assert!(
        report.contains("# Time: 1340002345 ns (1.340 s) in 4 samples"),
        "{report}"
    );
    let (_, stat, _) = show(&["stat"]);
    assert!(
        stat.contains("       2.500000000 seconds from the first to the last sample"),
        "{stat}"
    );
    let within = [
        "report", "--weight", "offcpu", "-g", "none", "-s", "comm", "--time", "0,10",
    ];
    let (_, report, said) = show(&within);
    assert!(
        report.contains("# Time: 1300000000 ns (1.300 s) in 2 samples"),
        "{report}{said}"
    );
    let (is_shown, _, said) = show(&["fold", "--weight", "blocked"]);
    assert!(
        !is_shown && said.contains("does not tell why threads waited"),
        "{said}"
    );
}
