//! Waiting and running, against what the program that waits has measured itself.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::live::{Lab, below, total, truth, undisturbed};
use crate::recording::{Recording, Sample, Stacks};
use crate::support::{pjit, stdout_of};

const SITES: [&str; 6] = [
    "site_sleep",
    "site_lock",
    "site_read",
    "site_hold",
    "site_poll",
    "site_join",
];

/// A period of the clock, in seconds.
const PERIOD: f64 = 1.0 / 997.0;

/// What a switch and its records take at most, in seconds.
const SWITCH: f64 = 20e-6;

/// What perf prints of a thread: when it was first and last heard of, and how long it was away from its processor and on it.
#[derive(Debug, Default)]
struct Life {
    first: f64,
    last: f64,
    away: f64,
    on: f64,
    /// What passed between the samples of its switches away and their records.
    leaving: f64,
    /// When it was last sampled as it left.
    left: Option<f64>,
    /// Since when it has been on or off.
    since: Option<f64>,
    is_on: bool,
    switches: u64,
}

/// The lives of all threads by perf's print of births, ends and switches.
fn lives(lab: &Lab, data: &str) -> BTreeMap<u32, Life> {
    let printed = Command::new("perf")
        .current_dir(lab.path("."))
        .args(["script", "-i", data, "--ns", "-F", "tid,time,event"])
        .args(["--show-task-events", "--show-switch-events"])
        .output()
        .expect("perf recorded");
    let mut lives: BTreeMap<u32, Life> = BTreeMap::new();
    for line in String::from_utf8_lossy(&printed.stdout).lines() {
        let (head, what) = line
            .split_once(": ")
            .unwrap_or((line.trim_end_matches(':'), ""));
        let mut words = head.split_whitespace();
        let (Some(tid), Some(time)) = (words.next(), words.next()) else {
            continue;
        };
        let (tid, time): (u32, f64) = (tid.parse().expect("a tid"), time.parse().expect("a time"));
        // `PERF_RECORD_FORK(PID:TID):(PID:TID)`, of the new thread and of the one that made it.
        let born = what
            .strip_prefix("PERF_RECORD_FORK(")
            .and_then(|rest| rest.split_once(')'));
        if let Some((ids, _)) = born {
            let tid = ids.rsplit(':').next().and_then(|tid| tid.parse().ok());
            let life = lives.entry(tid.expect("a tid")).or_default();
            (life.first, life.since) = (time, Some(time));
            life.last = time;
            continue;
        }
        if tid == 0 {
            continue;
        }
        let life = lives.entry(tid).or_insert_with(|| Life {
            first: time,
            since: Some(time),
            is_on: true,
            ..Life::default()
        });
        life.last = time;
        let is_in = what.starts_with("PERF_RECORD_SWITCH IN");
        let is_out = what.starts_with("PERF_RECORD_SWITCH OUT");
        if what.trim_start().starts_with("sched:sched_switch") {
            life.left = Some(time);
        }
        if (is_in && !life.is_on) || (is_out && life.is_on) {
            let passed = time - life.since.unwrap_or(time);
            *(if is_in { &mut life.away } else { &mut life.on }) += passed;
            if let Some(left) = life.left.take().filter(|_| is_out) {
                life.leaving += time - left;
            }
            (life.since, life.is_on) = (Some(time), is_in);
            life.switches += 1;
        }
    }
    for life in lives.values_mut().filter(|life| life.is_on) {
        life.on += life.last - life.since.unwrap_or(life.last);
    }
    lives
}

/// What a thread weighs in stacks that begin with `comm/TID`.
fn of_thread(folded: &str, tid: u32) -> f64 {
    let end = format!("/{tid}");
    let is_own = |line: &&str| line.split(';').next().is_some_and(|c| c.ends_with(&end));
    seconds(total(
        &folded.lines().filter(is_own).collect::<Vec<_>>().join("\n"),
    ))
}

/// Seconds of folded nanoseconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Whether a time is within a share and 2 ms of the true one; busy machines are late to tell.
fn is_near(what: &str, found: f64, truth: f64, share: f64) -> Result<(), String> {
    is_late(what, found, truth, share, 0.0)
}

/// The same of a time that may be too long by `late` seconds, but not too short.
fn is_late(what: &str, found: f64, truth: f64, share: f64, late: f64) -> Result<(), String> {
    let most = (truth * share).max(0.002);
    let is_right = (-most..=most + late).contains(&(found - truth));
    is_right.then_some(()).ok_or_else(|| {
        format!("{what}: {found:.4} s, but {truth:.4} s are true, and {late:.4} s may be late")
    })
}

/// Asserts that a time is what perf's records add up to.
fn assert_same(what: &str, found: f64, records: f64) {
    let is_same = (found - records).abs() < 1e-6;
    assert!(
        is_same,
        "{what}: {found:.9} s, but {records:.9} s by the records"
    );
}

/// Each interval that a sample ended is too long by a period at most, and none is too short.
fn blocked_sites(lab: &Lab, data: &str, truth: &BTreeMap<String, f64>) -> Result<(), String> {
    let folded = lab.show(&["fold", "--weight", "blocked"], data);
    let report = lab.show(&["report", "--weight", "blocked", "-g", "none"], data);
    let late = PERIOD * told(&report, "ended by a sample");
    SITES.iter().try_for_each(|site| {
        let found = seconds(below(&folded, site));
        is_late(site, found, truth[*site], 0.01, late)
    })
}

#[test]
fn waits_and_work_are_what_the_program_measured() {
    let Some(lab) = Lab::with("waits", "off", &[]) else {
        return;
    };
    let options = switches(&[
        "-e",
        "cpu-clock/freq=997/",
        "--switch-events",
        "--call-graph",
        "dwarf,4096",
    ]);
    undisturbed(|| {
        let Some(printed) = lab.record("off.data", &options, &["./off"]) else {
            return Ok(());
        };
        let lives = lives(&lab, "off.data");
        assert!(lives.len() >= 10, "{lives:?}");
        wall_is_all_of_every_life(&lab, &lives);
        work_is_all_that_is_recorded(&lab, &lives);

        let truth = truth(&printed);
        blocked_sites(&lab, "off.data", &truth)?;
        let burnt = |weight: &str| {
            let folded = lab.show(&["fold", "--weight", weight], "off.data");
            seconds(below(&folded, "site_burn"))
        };
        is_near("burners", burnt("runnable"), truth["burn_runnable"], 0.03)?;
        is_near("work", burnt("oncpu"), truth["burn_cpu"], 0.02)?;
        work_is_what_each_thread_measured(&lab, &lives, &truth)
    });
}

/// The time on a processor, by the records of switches.
fn work_is_all_that_is_recorded(lab: &Lab, lives: &BTreeMap<u32, Life>) {
    let folded = lab.show(&["fold", "--tid", "--weight", "oncpu"], "off.data");
    for (&tid, life) in lives {
        assert_same(&format!("on, {tid}"), of_thread(&folded, tid), life.on);
    }
}

/// The time on a processor, by what each thread's own clock said when it ended.
fn work_is_what_each_thread_measured(
    lab: &Lab,
    lives: &BTreeMap<u32, Life>,
    truth: &BTreeMap<String, f64>,
) -> Result<(), String> {
    let folded = lab.show(&["fold", "--tid", "--weight", "oncpu"], "off.data");
    let clocks = truth
        .iter()
        .filter_map(|(name, cpu)| Some((name.strip_prefix("cpu_")?, *cpu)));
    for (tid, cpu) in clocks {
        let tid = tid.parse().expect("a tid");
        // The thread's clock stands still while the kernel writes the record of a switch.
        let late = lives[&tid].switches as f64 * SWITCH;
        let found = of_thread(&folded, tid);
        is_late(&format!("thread {tid}"), found, cpu, 0.01, late)?;
    }
    Ok(())
}

/// Waiting and running add up to the time between the first and the last that is heard of a thread.
fn wall_is_all_of_every_life(lab: &Lab, lives: &BTreeMap<u32, Life>) {
    let folded = lab.show(&["fold", "--tid", "--weight", "wall"], "off.data");
    let off = lab.show(&["fold", "--tid", "--weight", "offcpu"], "off.data");
    for (&tid, life) in lives {
        let wall = of_thread(&folded, tid);
        let span = life.last - life.first;
        assert!((wall - span).abs() <= PERIOD, "{tid}: {wall} of {span}");
        let waited = of_thread(&off, tid);
        // It leaves with the sample, which has the stack.
        assert_same(&format!("off, {tid}"), waited, life.away + life.leaving);
    }
    assert!(folded.contains(";[blocked] ") && folded.contains(";[runnable] "));
    let mut waiting = folded.lines().filter(|line| line.contains(";[blocked] "));
    assert!(!waiting.any(|line| line.contains(";__schedule;")));
}

/// How many intervals the quality line says of.
fn told(report: &str, what: &str) -> f64 {
    let waits = report.split("; waits: ").nth(1).expect("a line of quality");
    let waits = waits.lines().next().unwrap_or_default();
    let mut parts = waits.split([',', ';']).map(str::trim);
    let part = parts.find(|part| part.ends_with(what));
    part.map_or(0.0, |part| {
        let number = part.split(' ').next().expect("a number");
        number.parse().expect("a number")
    })
}

#[test]
fn without_records_of_switches_other_evidence_is_used_and_told() {
    let Some(lab) = Lab::with("waits-bare", "off", &[]) else {
        return;
    };
    let options = switches(&["-e", "cpu-clock/freq=997/", "--call-graph", "dwarf,4096"]);
    undisturbed(|| {
        let Some(printed) = lab.record("off.data", &options, &["./off", "100"]) else {
            return Ok(());
        };
        let show = |view: &[&str]| lab.show(view, "off.data");
        let report = show(&["report", "--weight", "blocked", "-g", "none"]);
        assert!(told(&report, "ended by a sample") > 0.0, "{report}");
        assert!(report.contains(" Intervals  Command"), "{report}");
        let truth = truth(&printed);
        blocked_sites(&lab, "off.data", &truth)?;

        let report = show(&["report", "--weight", "runnable", "-g", "none"]);
        let folded = show(&["fold", "--weight", "runnable"]);
        let runnable = seconds(below(&folded, "site_burn"));
        let late = PERIOD * told(&report, "ended by a sample");
        is_late("burners", runnable, truth["burn_runnable"], 0.03, late)
    });
}

/// Options of perf that record switches, in buffers that lose none.
fn switches<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [
        &["-k", "mono", "-e", "sched:sched_switch", "-m", "16M"][..],
        more,
    ]
    .concat()
}

/// A line of `sched:sched_switch`: who goes and why, and who comes.
fn switch(line: &str) -> (u32, bool, u32) {
    let field = |name: &str| {
        let value = line.split(name).nth(1).expect("the field is printed");
        value.split_whitespace().next().expect("it has a value")
    };
    let pid = |name: &str| field(name).parse().expect("a pid");
    (
        pid("prev_pid="),
        field("prev_state=").starts_with('R'),
        pid("next_pid="),
    )
}

#[test]
fn with_switches_away_alone_only_siblings_tell_who_is_back() {
    let Some(lab) = Lab::with("waits-alone", "off", &[]) else {
        return;
    };
    let options = switches(&["--call-graph", "fp"]);
    if lab.record("off.data", &options, &["./off", "30"]).is_none() {
        return;
    }
    // A thread that was switched to before it was switched away again is back for certain.
    let printed = lab.show(&["script", "-F", "tid,time,trace"], "off.data");
    let mut away: BTreeMap<u32, bool> = BTreeMap::new();
    let (mut blocked, mut runnable) = (0, 0);
    for line in printed.lines().filter(|line| line.contains("prev_pid=")) {
        let (prev, is_runnable, next) = switch(line);
        match away.remove(&next) {
            Some(true) => runnable += 1,
            Some(false) => blocked += 1,
            None => {}
        }
        away.insert(prev, is_runnable);
    }
    let report = lab.show(&["report", "--weight", "blocked", "-g", "none"], "off.data");
    let not_exact = ["ended by a sample", "upper bounds", "open"].map(|what| told(&report, what));
    let exact = told(&report, "intervals") - not_exact.iter().sum::<f64>();
    assert_eq!(exact, f64::from(blocked), "{report}");
    assert!(not_exact[1] > 0.0 && runnable > 0, "{report}");
    // The Firefox Profiler shows the same waits.
    lab.show(&["export", "-o", "off.json"], "off.data");
    let file = fs::read_to_string(lab.path("off.json")).expect("written");
    let bounds = file.matches("\"note\":\"at most until its next switch\"");
    assert_eq!(bounds.count() as f64, not_exact[1], "{report}");
    for weight in ["runnable", "offcpu", "wall"] {
        let (status, _, said) = lab.pjit(&["fold", "--weight", weight], "off.data");
        assert_eq!(status, 1, "{weight}");
        assert!(
            said.contains("switch-in was not recorded (--switch-events)"),
            "{said}"
        );
    }
}

#[test]
fn a_frequency_for_everything_is_warned_of_and_no_time_is_lost() {
    let Some(lab) = Lab::with("waits-sampled", "off", &[]) else {
        return;
    };
    let options = switches(&["-F", "997", "--switch-events", "--call-graph", "fp"]);
    if lab.record("off.data", &options, &["./off", "30"]).is_none() {
        return;
    }
    let (status, folded, said) = lab.pjit(&["fold", "--weight", "offcpu"], "off.data");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("sched:sched_switch was sampled"), "{said}");
    assert!(folded.contains("[no switch stack] "), "{folded}");
    // With and without a stack, it is all the time between switches away and back.
    let away: f64 = lives(&lab, "off.data").values().map(|life| life.away).sum();
    let found = seconds(total(&folded));
    assert!((found - away).abs() <= 0.01 * away, "{found} of {away}");
}

#[test]
fn system_wide_recordings_need_no_records_of_switches() {
    let Some(lab) = Lab::with("waits-wide", "off", &[]) else {
        return;
    };
    let options = switches(&["-a", "--call-graph", "fp"]);
    let mut is_recorded = false;
    undisturbed(|| {
        let Some(printed) = lab.record("off.data", &options, &["./off", "50"]) else {
            return Ok(());
        };
        is_recorded = true;
        let truth = truth(&printed);
        // Others may run the same program.
        let pid = format!("--pid={}", truth["pid"]);
        let folded = lab.show(&["fold", "--weight", "blocked", &pid], "off.data");
        SITES.iter().try_for_each(|site| {
            // Where glibc joins threads it uses the frame pointer for something else.
            let frame = match *site {
                "site_join" => "__futex_abstimed_wait_common",
                site => site,
            };
            is_near(site, seconds(below(&folded, frame)), truth[*site], 0.01)
        })
    });
    if !is_recorded {
        return;
    }
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
/// Answers are of the time that was chosen, whatever samples weigh and in whichever order threads stand.
#[test]
fn the_length_of_an_answer_is_that_of_the_chosen_time() {
    let whole = ["oncpu", "wall", "blocked", "samples"].map(|weight| {
        let json = stdout_of(
            &["summary", "--format", "json", "--weight", weight],
            "waits",
        );
        seconds_of(&json)
    });
    assert!(whole.iter().all(|seconds| *seconds > 0.09), "{whole:?}");
    for weight in ["oncpu", "wall", "blocked", "samples"] {
        for (time, long) in [("+0.02,+0.07", 0.05), ("10%-20%,80%-90%", 0.2 * whole[3])] {
            let options = [
                "summary", "--format", "json", "--weight", weight, "--time", time,
            ];
            let seconds = seconds_of(&stdout_of(&options, "waits"));
            assert!((seconds - long).abs() < 0.002, "{weight} {time}: {seconds}");
        }
    }
}

fn seconds_of(json: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let seconds = json["recordings"][0]["seconds"].as_f64();
    seconds.expect("a number")
}

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
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("perf.data");
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
