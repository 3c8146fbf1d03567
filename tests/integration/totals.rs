//! Conservation: whatever the view, a recording has the same number of samples and the same sum of periods.

use crate::corrupt::limited;
use crate::recording::{Recording, Sample, Stacks};
use crate::support::{SAMPLES, event_count, folded, pjit, stdout_of};

#[test]
fn every_view_has_the_same_total() {
    for name in SAMPLES {
        let flat = stdout_of(&["report", "--stdio", "--no-children", "-g", "none"], name);
        let total = event_count(&flat);
        assert!(total > 0, "{name}");
        for options in [
            &["--no-children"][..],
            &["--children"],
            &["--no-children", "-G"],
            &["--no-inline"],
        ] {
            let report = stdout_of(&[&["report", "--stdio"], options].concat(), name);
            assert_eq!(event_count(&report), total, "{name} {options:?}");
        }
        for options in [&[][..], &["--no-inline"], &["--all"]] {
            let sum: u64 = folded(&stdout_of(&[&["fold"], options].concat(), name))
                .values()
                .sum();
            assert_eq!(sum, total, "{name} fold {options:?}");
        }
    }
}

#[test]
fn flat_rows_add_up_to_the_total() {
    for name in SAMPLES {
        let report = stdout_of(
            &[
                "report",
                "--stdio",
                "--no-children",
                "-g",
                "none",
                "--show-total-period",
                "-n",
            ],
            name,
        );
        let (mut samples, mut period) = (0, 0);
        for line in report
            .lines()
            .filter(|l| !l.starts_with('#') && !l.trim().is_empty())
        {
            let mut words = line.split_whitespace().skip(1);
            samples += words
                .next()
                .and_then(|w| w.parse::<u64>().ok())
                .unwrap_or_else(|| panic!("{line:?}"));
            period += words
                .next()
                .and_then(|w| w.parse::<u64>().ok())
                .unwrap_or_else(|| panic!("{line:?}"));
        }
        assert_eq!(period, event_count(&report), "{name}");
        let counted: u64 = folded(&stdout_of(&["fold", "--weight", "samples"], name))
            .values()
            .sum();
        assert_eq!(samples, counted, "{name}");
    }
}

#[test]
fn every_sample_record_is_counted() {
    for name in SAMPLES {
        let data = std::fs::read(crate::support::sample(name, "perf.data"))
            .expect("the sample has a recording");
        let records = crate::corrupt::records(&data);
        let wanted = records.iter().filter(|r| r.is_sample).count() as u64;
        let counted: u64 = folded(&stdout_of(&["fold", "--weight", "samples"], name))
            .values()
            .sum();
        assert_eq!(counted, wanted, "{name}");
    }
}

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    for name in SAMPLES {
        for view in [&["fold"][..], &["report", "--stdio", "--no-children"]] {
            let one = stdout_of(&[view, &["--jobs", "1"]].concat(), name);
            for threads in ["2", "7"] {
                let many = stdout_of(&[view, &["--jobs", threads]].concat(), name);
                assert!(
                    one == many,
                    "{name} {view:?} differs with {threads} threads"
                );
            }
        }
    }
}

/// As in perf, what guests took is a part of all there was, though it is in no row; and that is said.
#[test]
fn samples_of_guests_count_in_totals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    let of = |modes: &[u16]| {
        let mut recording = Recording::new(Stacks::None);
        recording.comm(77, 77, b"prog");
        recording.map(77, 0x20_0000, 0x1000, 0, b"/none/prog");
        for (mode, time) in modes.iter().zip(10..) {
            let sample = Sample {
                ip: 0x20_0010,
                pid: 77,
                tid: 77,
                time,
                period: 100,
                chain: &[],
                user: None,
            };
            recording.sample_in(*mode, &sample);
        }
        std::fs::write(&path, recording.file()).expect("written");
    };
    // One of a program, one of a guest's kernel, two of its programs.
    of(&[2, 4, 5, 5]);
    let report = ["report", "--no-children", "-g", "none", "-n", "-i"];
    let report = limited(pjit().args(report).arg(&path));
    assert_eq!(event_count(&report.stdout), 400);
    let row = report.stdout.lines().find(|line| line.contains(" prog "));
    assert!(
        row.is_some_and(|row| row.trim().starts_with("25.00%")),
        "{}",
        report.stdout
    );
    for verb in ["report", "fold", "summary", "script"] {
        let ended = limited(pjit().arg(verb).arg(&path));
        assert!(
            ended.stderr.contains("3 of 4 samples are of guests"),
            "{verb}: {}",
            ended.stderr
        );
    }
    let check = limited(pjit().arg("check").arg(&path)).stdout;
    assert!(
        check.contains("warn  samples.guests") && check.contains("75.00% ran in guests"),
        "{check}"
    );
    of(&[4, 5]);
    let ended = limited(pjit().arg("summary").arg(&path));
    assert!(ended.stderr.contains("are of guests"), "{}", ended.stderr);
}
