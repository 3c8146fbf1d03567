//! Latency and parallelism, against what perf 7.2 printed of the same recording; and what has no switches.

use std::path::{Path, PathBuf};

use crate::support::{pjit, sample};

fn data(file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/latency");
    folder.join(file)
}

/// The lines that both programs print.
fn lines(text: &str) -> Vec<&str> {
    let own = |line: &&str| {
        let is_extra = ["# To display", "# Quality", "# (Tip"]
            .iter()
            .any(|start| line.starts_with(start));
        !is_extra && !line.is_empty() && *line != "#"
    };
    text.lines().filter(own).collect()
}

fn report(options: &str, file: &Path) -> (Option<i32>, String, String) {
    let output = pjit()
        .args(["report", "--stdio", "-i"])
        .arg(file)
        .args(options.split(' '))
        .output()
        .expect("the binary can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn latency_is_what_perf_prints() {
    let stored = std::fs::read_to_string(data("perf-7.2.txt")).expect("it is there");
    let mut compared = 0;
    for case in stored.split("=== ").skip(1) {
        let (options, expected) = case.split_once('\n').expect("lines follow");
        let (_, printed, said) = report(options, &data("perf.data"));
        assert_eq!(lines(&printed), lines(expected), "{options}: {said}");
        compared += 1;
    }
    assert!(compared > 30, "{compared} were compared");
}

#[test]
fn what_a_newer_perf_says_in_the_header_is_skipped_with_a_word() {
    let (status, _, said) = report("-v -g none", &data("perf.data"));
    assert_eq!(status, Some(0), "{said}");
    let expected = "features of a newer perf in the header were skipped: 33, 34";
    assert!(said.contains(expected), "{said}");
    let (_, _, said) = report("-g none", &data("perf.data"));
    assert!(!said.contains("newer perf"), "{said}");
}

/// perf counts a caller here once for each of its frames' samples, and gets more than everything.
#[test]
fn callers_are_credited_once_however_many_ran() {
    let (_, printed, _) = report(
        "-g none -t, -F overhead_children,parallelism,sym -s sym,parallelism",
        &data("perf.data"),
    );
    let shares = printed.lines().filter_map(|line| {
        let (share, rest) = line.split_once('%')?;
        let is_start = rest.ends_with("_start");
        is_start.then(|| share.trim().parse::<f64>().ok()).flatten()
    });
    let shares: Vec<f64> = shares.collect();
    assert_eq!(shares.len(), 2, "{printed}");
    assert!(
        (shares.iter().sum::<f64>() - 100.0).abs() < 0.02,
        "{shares:?}"
    );
}

#[test]
fn without_switches_nobody_knows_who_ran() {
    for options in [
        "--latency",
        "--parallelism 2",
        "-s parallelism,sym",
        "-F latency,sym",
    ] {
        let (status, printed, said) = report(options, &sample("native", "perf.data"));
        assert_eq!((status, printed.as_str()), (Some(1), ""), "{options}");
        assert!(said.contains("--switch-events"), "{options}: {said}");
    }
    let (status, _, said) = report("--parallelism 0", &data("perf.data"));
    assert!(status == Some(2) && said.contains("from 1 on"), "{said}");
    let (status, ..) = report("--latency --focus work", &data("perf.data"));
    assert_eq!(status, Some(2));
}

/// Shares in per cent by key, in front of which each line has them.
fn shares(options: &str) -> Vec<(String, String)> {
    let (_, printed, said) = report(&format!("-g none -t, {options}"), &data("perf.data"));
    let rows = printed.lines().filter(|line| !line.starts_with('#'));
    let shares: Vec<(String, String)> = rows
        .filter_map(|line| {
            let (share, rest) = line.split_once('%')?;
            Some((
                share.trim().to_owned(),
                rest.trim_start_matches([' ', ',']).trim().to_owned(),
            ))
        })
        .collect();
    assert!(!shares.is_empty(), "{options}: {said}");
    shares
}

/// The sum of the shares of a level, which stands behind the last comma.
fn of_level(rows: &[(String, String)], level: &str) -> f64 {
    let own = rows
        .iter()
        .filter(|(_, rest)| rest.rsplit(',').next().is_some_and(|l| l.trim() == level));
    own.map(|(share, _)| share.parse::<f64>().expect("a number"))
        .sum()
}

#[test]
fn steps_of_time_do_not_merge_what_other_keys_tell_apart() {
    let alone = shares("-F overhead,parallelism -s parallelism");
    for quantum in ["", " --time-quantum 1ms", " --time-quantum 10s"] {
        let by_time = shares(&format!(
            "-F overhead,time,parallelism -s time,parallelism{quantum}"
        ));
        for level in ["1", "2"] {
            let (one, other) = (of_level(&alone, level), of_level(&by_time, level));
            // Each row is rounded.
            let error = 0.005 * by_time.len() as f64 + 0.01;
            assert!(
                (one - other).abs() < error,
                "{quantum} {level}: {one} {other}"
            );
        }
        let only = shares(&format!(
            "-F overhead,time -s time --parallelism 1{quantum}"
        ));
        let sum: f64 = only
            .iter()
            .map(|(share, _)| share.parse::<f64>().expect("a number"))
            .sum();
        assert!(
            (sum - of_level(&alone, "1")).abs() < 0.005 * only.len() as f64 + 0.01,
            "{quantum}: {sum}"
        );
    }
    let times = |quantum: &str| {
        shares(&format!(
            "-F overhead,time -s time --parallelism 1-2 --time-quantum {quantum}"
        ))
    };
    assert!(
        times("1s")
            .iter()
            .all(|(_, time)| time.ends_with(".000000"))
    );
    assert!(times("1s").len() < times("1ms").len());
}

/// As many as the filter leaves, whether or not a column shows their latency.
#[test]
fn levels_filter_samples_not_rows() {
    let by_level = shares("-F overhead,parallelism,sample -s parallelism");
    let of = |level: &str| {
        let row = by_level
            .iter()
            .find(|(_, rest)| rest.split(',').next().is_some_and(|l| l.trim() == level));
        row.and_then(|(_, rest)| rest.rsplit(',').next()?.trim().parse::<u64>().ok())
    };
    for level in ["1", "2"] {
        let rows = shares(&format!(
            "-F overhead,sample,sym -s sym --parallelism {level}"
        ));
        let samples = rows
            .iter()
            .filter_map(|(_, rest)| rest.split(',').next()?.trim().parse::<u64>().ok());
        assert_eq!(Some(samples.sum()), of(level), "{rows:?}");
    }
}

#[test]
fn weights_have_no_latency() {
    for options in [
        "--latency",
        "--parallelism 1",
        "-s parallelism",
        "-F latency,sym",
        "-F overhead,ipc,sym",
        "--metrics",
    ] {
        let (status, printed, said) =
            report(&format!("{options} --weight wall"), &data("perf.data"));
        assert_eq!((status, printed.as_str()), (Some(2), ""), "{options}");
        assert!(said.contains("--weight has no "), "{options}: {said}");
    }
}
