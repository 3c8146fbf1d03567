//! Totals, against what perf prints of the same recording.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::live::Lab;
use crate::support::skip;

/// `perf stat record` of the program; whether that can be had.
fn count(lab: &Lab, name: &str, options: &[&str]) -> bool {
    let recorded = Command::new("perf")
        .current_dir(lab.path("."))
        .args(["stat", "record", "-o", name])
        .args(options)
        .args(["--", "./grp", "300", "10", "50"])
        .output();
    let Ok(recorded) = recorded else {
        skip("perf", "it cannot be run");
        return false;
    };
    if !recorded.status.success() {
        skip("perf", &String::from_utf8_lossy(&recorded.stderr));
    }
    recorded.status.success()
}

/// What perf prints of it, lines without blanks at their ends.
fn by_perf(folder: &Path, name: &str) -> String {
    let output = Command::new("perf")
        .current_dir(folder)
        .args(["stat", "report", "-i", name])
        .output()
        .expect("perf recorded");
    trimmed(&String::from_utf8(output.stderr).expect("names are text"))
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

fn by_pjit(lab: &Lab, name: &str) -> String {
    trimmed(&lab.show(&["stat"], name))
}

const SOFTWARE: &str = "task-clock,page-faults,context-switches,cpu-migrations";

#[test]
fn totals_are_those_that_perf_prints() {
    let Some(lab) = Lab::with("stat", "grp", &[]) else {
        return;
    };
    let folder = lab.path(".");
    if !count(&lab, "s.data", &["-e", SOFTWARE]) {
        return;
    }
    let theirs = by_perf(&folder, "s.data");
    assert!(theirs.contains(" CPUs utilized"), "{theirs}");
    assert_eq!(by_pjit(&lab, "s.data"), theirs);

    // Counters that ran for half of their time: the counts are scaled, and say so.
    let mut bytes = fs::read(lab.path("s.data")).expect("it was recorded");
    let header = [76_u32.to_le_bytes(), (48_u32 << 16).to_le_bytes()].concat();
    let mut halved = 0;
    for at in 0..bytes.len() - 48 {
        if bytes[at..at + 8] == header {
            let enabled: [u8; 8] = bytes[at + 32..at + 40].try_into().expect("eight");
            let half = u64::from_le_bytes(enabled) / 2;
            bytes[at + 40..at + 48].copy_from_slice(&half.to_le_bytes());
            halved += 1;
        }
    }
    assert_eq!(halved, 4);
    fs::write(lab.path("half.data"), bytes).expect("it can be written");
    let theirs = by_perf(&folder, "half.data");
    assert!(theirs.contains("(50.00%)"), "{theirs}");
    assert_eq!(by_pjit(&lab, "half.data"), theirs);

    // By socket, of which counts of tasks know nothing: the totals are there all the same.
    let mut bytes = fs::read(lab.path("s.data")).expect("it was recorded");
    // The number of pairs has to fit the size: six bytes alone are met elsewhere, too.
    let is_config = |at: &usize| {
        let (head, pairs) = bytes[*at..*at + 16].split_at(8);
        let size = u64::from(u16::from_le_bytes([head[6], head[7]]));
        let pairs = u64::from_le_bytes(pairs.try_into().expect("eight bytes"));
        head[..6] == [75, 0, 0, 0, 0, 0] && pairs.checked_mul(16) == size.checked_sub(16)
    };
    let config = (0..bytes.len() - 64)
        .find(is_config)
        .expect("a STAT_CONFIG");
    let size = usize::from(bytes[config + 6]);
    let pairs = (config + 16..config + size).step_by(16);
    for pair in pairs
        .filter(|at| bytes[*at..*at + 8] == [0; 8])
        .collect::<Vec<_>>()
    {
        bytes[pair + 8..pair + 16].copy_from_slice(&2_u64.to_le_bytes());
    }
    fs::write(lab.path("socket.data"), bytes).expect("it can be written");
    let (status, out, said) = lab.pjit(&["stat"], "socket.data");
    assert_eq!((status, trimmed(&out)), (0, by_pjit(&lab, "s.data")));
    assert!(
        said.contains("does not say where CPU -1 is; totals only"),
        "{said}"
    );
    let (status, ..) = lab.pjit(&["stat", "--per-socket"], "socket.data");
    assert_eq!(status, 1);

    let (status, out, said) = lab.pjit(&["report"], "s.data");
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(
        said.contains("s.data: totals, not samples: pjit stat"),
        "{said}"
    );
}

#[test]
fn intervals_and_processors_are_lines_of_their_own() {
    let Some(lab) = Lab::with("stat-parts", "grp", &[]) else {
        return;
    };
    let folder = lab.path(".");
    if !count(
        &lab,
        "i.data",
        &["-I", "10", "-e", "task-clock,page-faults"],
    ) {
        return;
    }
    // perf's rates within intervals are off: it divides by the mean of all intervals so far.
    let counts = |text: &str| -> Vec<String> {
        let is_interval = |line: &&str| line.trim_start().starts_with("0.");
        let lines = text.lines().filter(is_interval);
        lines
            .map(|line| {
                line.split('#')
                    .next()
                    .unwrap_or_default()
                    .trim_end()
                    .to_owned()
            })
            .collect()
    };
    let theirs = counts(&by_perf(&folder, "i.data"));
    let ours = lab.show(&["stat"], "i.data");
    let (rounds, total) = ours
        .split_once("Performance counter stats")
        .expect("the total behind");
    assert!(theirs.len() >= 4, "{theirs:?}");
    assert_eq!(counts(rounds), theirs);
    // An ordinary user counts outside of the kernel only, and perf says so in the name.
    let name = |line: &String| {
        let last = line.split_whitespace().last()?;
        last.starts_with("page-faults").then(|| last.to_owned())
    };
    let counted = theirs.iter().find_map(name).expect("faults were counted");
    let faults = |line: &&String| line.ends_with(&format!(" {counted}"));
    // Before the program begins nothing is counted.
    let faults = theirs.iter().filter(faults).map(|line| {
        let count = line.split_whitespace().nth(1).expect("a count");
        count.parse().unwrap_or(0)
    });
    let faults: u64 = faults.sum();
    assert!(
        total.contains(&format!("{faults:>18}      {counted} ")),
        "{total}"
    );

    if count(
        &lab,
        "a.data",
        &["-a", "-A", "-e", "task-clock,page-faults"],
    ) {
        let of_cpus = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.starts_with("CPU"));
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        let theirs = of_cpus(&by_perf(&folder, "a.data"));
        assert!(!theirs.is_empty());
        assert_eq!(of_cpus(&lab.show(&["stat"], "a.data")), theirs);
        assert_eq!(of_cpus(&lab.show(&["stat", "-A"], "a.data")), theirs);
        for option in ["--per-core", "--per-die", "--per-socket", "--per-node"] {
            let theirs = Command::new("perf")
                .current_dir(&folder)
                .args(["stat", "report", "-i", "a.data", option])
                .output()
                .expect("perf recorded");
            let is_part = |line: &&str| line.starts_with('S') || line.starts_with('N');
            let parts = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(is_part);
                lines.map(|line| line.trim_end().to_owned()).collect()
            };
            let theirs = parts(&String::from_utf8_lossy(&theirs.stderr));
            assert!(!theirs.is_empty(), "{option}");
            assert_eq!(
                parts(&lab.show(&["stat", option], "a.data")),
                theirs,
                "{option}"
            );
        }
        let (status, _, said) = lab.pjit(&["stat", "--per-core"], "i.data");
        assert_eq!(status, 1);
        assert!(
            said.contains("counts are of threads, not of processors"),
            "{said}"
        );
    }
}

/// The same counts of other events: what no machine without counters has.
#[test]
fn metrics_are_quotients_of_counts() {
    let Some(lab) = Lab::with("stat-metrics", "grp", &[]) else {
        return;
    };
    if !count(&lab, "soft.data", &["-e", "page-faults,minor-faults"]) {
        return;
    }
    let mut bytes = fs::read(lab.path("soft.data")).expect("it was recorded");
    let mut changed = 0;
    for at in 0..bytes.len() - 16 {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        if word(at) != 1 || !(64..=256).contains(&word(at + 4)) {
            continue;
        }
        // page-faults are instructions, minor-faults cycles.
        let new: u64 = match word(at + 8) {
            2 => 1,
            5 => 0,
            _ => continue,
        };
        bytes[at..at + 4].fill(0);
        bytes[at + 8..at + 16].copy_from_slice(&new.to_le_bytes());
        changed += 1;
    }
    assert!(changed >= 2);
    for (old, new) in [("page-faults", "instructions"), ("minor-faults", "cycles")] {
        // An ordinary user counts outside of the kernel only, and perf says so in the name.
        for modifier in ["", ":u"] {
            let old = format!("{old}{modifier}\0");
            let new = format!("{new}{modifier}\0");
            let is_old = |window: &[u8]| window == old.as_bytes();
            if let Some(at) = bytes.windows(old.len()).rposition(is_old) {
                bytes[at..at + old.len()].fill(0);
                bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
            }
        }
    }
    fs::write(lab.path("hard.data"), bytes).expect("it can be written");
    let theirs = by_perf(&lab.path("."), "hard.data");
    assert!(theirs.contains("#    1.00  insn per cycle"), "{theirs}");
    assert_eq!(by_pjit(&lab, "hard.data"), theirs);
}

#[test]
fn sums_over_samples_are_estimates_unless_all_were_recorded() {
    let Some(lab) = Lab::with("stat-samples", "grp", &[]) else {
        return;
    };
    let options = [
        "-e",
        "task-clock/period=250000/",
        "-e",
        "page-faults/period=1/",
        "--switch-events",
        "-m",
        "4M",
    ];
    // What a busy machine lost is estimated, too: once of three times nothing is.
    let mut text = String::new();
    for _ in 0..3 {
        let command = ["./grp", "300", "10", "50"];
        if lab.record("r.data", &options, &command).is_none() {
            return;
        }
        text = lab.show(&["stat"], "r.data");
        let line = text.lines().find(|line| line.contains("page-faults"));
        if line.is_some_and(|line| !line.trim_start().starts_with('~')) {
            break;
        }
    }
    assert!(text.contains(" Sampled counts for '"), "{text}");
    let count = |name: &str| {
        let line = text.lines().skip(2).find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {text}"));
        line.split_whitespace().next().expect("a count").to_owned()
    };
    assert!(count("task-clock").starts_with('~'), "{text}");
    let faults: u64 = count("page-faults").parse().expect("it is exact");
    assert!((3000..3300).contains(&faults), "{text}");
    assert!(count(" context-switches").parse::<u64>().is_ok(), "{text}");
    assert!(text.contains("~ is estimated from samples"), "{text}");
}
