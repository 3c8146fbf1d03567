//! Page faults and durations, against programs that make a known number of them.

use crate::live::{Lab, below, truth};

#[test]
fn every_page_is_counted_where_it_was_touched() {
    let Some(lab) = Lab::with("faults", "pf", &[]) else {
        return;
    };
    let options = ["-e", "page-faults", "-c", "1", "-d", "-g"];
    let Some(printed) = lab.record("pf.data", &options, &["./pf"]) else {
        return;
    };
    let truth = truth(&printed);
    let folded = lab.show(&["fold", "--weight", "faults"], "pf.data");
    // Code and stacks of the sites themselves may be touched for the first time, too.
    for (site, pages) in [
        ("site_write", truth["written"]),
        ("site_read", truth["read"]),
    ] {
        let found = below(&folded, site) as f64;
        assert!(
            (pages..pages + 8.0).contains(&found),
            "{site}: {found} of {pages}"
        );
    }
    let report = lab.show(&["report", "--weight", "faults", "-g", "none"], "pf.data");
    assert!(
        report.contains("\n# Page faults: ") && report.contains(" at 4 KiB a page\n"),
        "{report}"
    );
    assert!(report.contains(" Pages       Samples  Command"), "{report}");
}

#[test]
fn calls_take_the_time_between_their_two_events() {
    let Some(lab) = Lab::with("durations", "pf", &[]) else {
        return;
    };
    let (enter, exit) = (
        "syscalls:sys_enter_clock_nanosleep",
        "syscalls:sys_exit_clock_nanosleep",
    );
    let options = ["-k", "mono", "-e", enter, "-e", exit, "-g"];
    if lab.record("nap.data", &options, &["./pf"]).is_none() {
        return;
    }
    let pair = format!("{enter}..{exit}");
    for weight in ["duration", pair.as_str()] {
        let report = lab.show(
            &[
                "report",
                "--weight",
                weight,
                "-g",
                "none",
                "--no-children",
                "-F",
                "period,sample,comm",
                "-t,",
                "-q",
            ],
            "nap.data",
        );
        let cells: Vec<&str> = report.trim().split(',').map(str::trim).collect();
        let ns: u64 = cells[0].parse().expect("a time");
        // Twenty naps of five milliseconds; busy machines wake late.
        assert!((100_000_000..2_000_000_000).contains(&ns), "{report}");
        assert_eq!(cells[1..], ["20", "pf"], "{report}");
    }
    let told = lab.show(
        &["report", "--weight", "duration", "-g", "none"],
        "nap.data",
    );
    assert!(told.contains("; durations: 20 pairs"), "{told}");
    let (status, _, said) = lab.pjit(&["fold", "--weight", "nothing..else"], "nap.data");
    assert_eq!(status, 1);
    assert!(
        said.contains("no event `nothing` (there is syscalls:sys_enter_clock_nanosleep"),
        "{said}"
    );
}
