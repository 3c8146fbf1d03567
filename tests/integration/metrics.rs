//! Rates of events for each row, against the counts that they are made of.

use std::collections::BTreeMap;
use std::fs;

use crate::live::{Lab, truth};

/// Rounds, pages in each, microseconds of work in each.
const GRP: [&str; 4] = ["./grp", "3000", "10", "50"];
const APART: [&str; 8] = [
    "-e",
    "task-clock/period=250000/",
    "-e",
    "page-faults/period=1/",
    "--call-graph",
    "fp",
    "-m",
    "4M",
];

/// Rows of a report without chains: the cells of each symbol, by event in order.
fn tables(lab: &Lab, data: &str, options: &[&str]) -> Vec<BTreeMap<String, Vec<String>>> {
    let mut all = vec!["report", "--no-children", "-g", "none", "-t,", "-q"];
    all.extend(options);
    let report = lab.show(&all, data);
    let rows = |table: &str| {
        let cells = |line: &str| line.split(',').map(|c| c.trim().to_owned()).collect();
        let rows = table.lines().filter(|line| !line.is_empty());
        let rows = rows.map(|line| -> Vec<String> { cells(line) });
        rows.filter_map(|mut row| Some((row.pop()?, row))).collect()
    };
    report
        .split("\n\n")
        .map(rows)
        .filter(|rows: &BTreeMap<_, _>| !rows.is_empty())
        .collect()
}

#[test]
fn events_that_were_sampled_apart_tell_functions_apart() {
    let Some(lab) = Lab::with("metrics", "grp", &[]) else {
        return;
    };
    let Some(printed) = lab.record("apart.data", &APART, &GRP) else {
        return;
    };
    let fields = ["-s", "sym", "-F", "period,sample,fault-rate,sym"];
    let tables = tables(&lab, "apart.data", &fields);
    let (clock, faults) = (&tables[0], &tables[1]);
    let of_faulter: f64 = faults["[.] faulter"][0].parse().expect("a period");
    let all: f64 = faults
        .values()
        .map(|row| row[0].parse::<f64>().expect("a period"))
        .sum();
    assert!(
        of_faulter >= 0.998 * truth(&printed)["faults"],
        "{faults:?}"
    );
    assert!(of_faulter >= 0.99 * all, "{faults:?}");
    // It makes no faults, so that there is no rate.
    assert_eq!(clock["[.] burner"][2], "");
    assert!(clock["[.] burner"][1].parse::<u64>().expect("samples") > 100);

    // As members of a group both have the faults of both, and their rates say so.
    let options = [
        "-e",
        "{task-clock,page-faults}:S",
        "-c",
        "250000",
        "--call-graph",
        "fp",
        "-m",
        "4M",
    ];
    if lab.record("group.data", &options, &GRP).is_none() {
        return;
    }
    let report = lab.show(
        &[
            "report",
            "--metrics",
            "fault-rate",
            "--no-children",
            "-g",
            "none",
            "-s",
            "sym",
        ],
        "group.data",
    );
    let burner = report
        .lines()
        .find(|line| line.ends_with("[.] burner"))
        .expect("a row");
    assert!(burner.contains("~ ±"), "{burner}");
    assert!(
        report.contains("# ~: group samples cannot resolve functions that run shorter than "),
        "{report}"
    );
    let whole = lab.show(
        &[
            "report",
            "--metrics=fault-rate",
            "--no-children",
            "-g",
            "none",
            "-s",
            "comm",
            "--group",
        ],
        "group.data",
    );
    assert!(!whole.contains('~') && whole.contains(" ±"), "{whole}");
    let total = |table: &str| -> f64 {
        let sums = lab.show(
            &[
                "report",
                "-g",
                "none",
                "--no-children",
                "--no-group",
                "-s",
                "comm",
            ],
            table,
        );
        let line = sums
            .lines()
            .filter(|l| l.starts_with("# Event count"))
            .nth(1)
            .expect("two events");
        line.rsplit_once(' ')
            .and_then(|(_, n)| n.parse().ok())
            .expect("a number")
    };
    let (apart, group) = (total("apart.data"), total("group.data"));
    assert!((apart - group).abs() <= 0.01 * apart, "{apart} and {group}");
}

/// The same recording with other events: what no machine without counters has.
fn as_if_of_hardware(lab: &Lab, from: &str, to: &str) {
    let mut bytes = fs::read(lab.path(from)).expect("it was recorded");
    // `struct perf_event_attr`: type, size, config. Software's task-clock and page-faults become cycles and instructions.
    for (config, new) in [(1_u64, 0_u64), (2, 1)] {
        for at in 0..bytes.len() - 16 {
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
            let is_attr = word(at) == 1 && (64..=256).contains(&word(at + 4));
            if is_attr && bytes[at + 8..at + 16] == config.to_le_bytes() {
                bytes[at..at + 4].copy_from_slice(&0_u32.to_le_bytes());
                bytes[at + 8..at + 16].copy_from_slice(&new.to_le_bytes());
            }
        }
    }
    for (old, new) in [
        ("task-clock/period=", "cycles"),
        ("page-faults/period=", "instructions"),
    ] {
        let at = bytes
            .windows(old.len())
            .rposition(|window| window == old.as_bytes());
        let at = at.expect("the name of the event");
        let end = at
            + bytes[at..]
                .iter()
                .position(|byte| *byte == 0)
                .expect("an end");
        bytes[at..end].fill(0);
        bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    }
    fs::write(lab.path(to), bytes).expect("it can be written");
}

#[test]
fn instructions_per_cycle_are_the_quotient_of_both_tables() {
    let Some(lab) = Lab::with("metrics-ipc", "grp", &[]) else {
        return;
    };
    if lab.record("soft.data", &APART, &GRP).is_none() {
        return;
    }
    as_if_of_hardware(&lab, "soft.data", "hard.data");
    let fields = ["-s", "dso", "-F", "period,sample,instructions/cycles,dso"];
    let tables = tables(&lab, "hard.data", &fields);
    assert_eq!(tables.len(), 2);
    let (cycles, instructions) = (&tables[0], &tables[1]);
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let mut compared = 0;
    for (dso, row) in cycles {
        let Some(other) = instructions.get(dso) else {
            assert_eq!(row[2], "", "{dso}");
            continue;
        };
        if row[2].is_empty() {
            assert!(number(&row[1]).min(number(&other[1])) < 30.0, "{dso}");
            continue;
        }
        // Periods are all alike, so that n samples are off by their root.
        let ipc = number(&other[0]) / number(&row[0]);
        let error = 1.96 * ipc * (1.0 / number(&row[1]) + 1.0 / number(&other[1])).sqrt();
        let (shown, off) = row[2].split_once(" ±").expect("a rate with its error");
        let is_near = |shown: &str, is: f64| (number(shown) / is - 1.0).abs() < 0.01;
        assert!(
            is_near(shown, ipc) && is_near(off, error),
            "{dso}: {} for {ipc} ± {error}",
            row[2]
        );
        compared += 1;
    }
    let named = lab.show(&["report", "--metrics", "-g", "none"], "hard.data");
    assert!(named.contains("             IPC  "), "{named}");
    assert!(compared > 0, "{cycles:?} {instructions:?}");
    let (status, _, said) = lab.pjit(&["report", "--metrics", "branch-miss"], "hard.data");
    assert_eq!(status, 1);
    assert!(
        said.contains("--metrics: Br-miss%: no event branch-misses"),
        "{said}"
    );
    assert_eq!(lab.pjit(&["report", "--metrics=ip"], "hard.data").0, 2);
}
