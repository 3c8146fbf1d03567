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
    assert!(status == Some(2) && said.contains("at least one"), "{said}");
    let (status, ..) = report("--latency --weight on-cpu", &data("perf.data"));
    assert_eq!(status, Some(2));
    let (status, ..) = report("--latency --focus work", &data("perf.data"));
    assert_eq!(status, Some(2));
}
