//! Weights of small recordings that were written byte by byte, of which all is known (`tests/data/weights`).

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::support::{folded, pjit};

/// The recordings, unpacked.
struct Recordings(tempfile::TempDir);

impl Recordings {
    fn of(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/weights");
        for name in names {
            let packed = std::fs::File::open(stored.join(format!("{name}.data.gz")));
            let mut data = Vec::new();
            flate2::read::GzDecoder::new(packed.expect("it is there"))
                .read_to_end(&mut data)
                .expect("it can be unpacked");
            std::fs::write(folder.path().join(format!("{name}.data")), data).expect("written");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}.data"))
    }

    /// Standard output and standard error.
    fn run(&self, words: &str, name: &str) -> (String, String) {
        let output = pjit()
            .args(words.split(' '))
            .arg(self.path(name))
            .output()
            .expect("the binary can be run");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr))
    }

    /// The sum over all stacks.
    fn total(&self, options: &str, name: &str) -> u64 {
        let (out, said) = self.run(format!("fold {options}").trim(), name);
        let stacks = folded(&out);
        assert!(!stacks.is_empty(), "{name} {options}: {said}");
        stacks.values().sum()
    }
}

/// Five processes, one after the other, each with ten blocks of a million bytes; one with a KiB for a second.
#[test]
fn the_end_of_a_process_ends_its_heap() {
    let of = Recordings::of(&["processes", "lifetime"]);
    assert_eq!(of.total("--weight peak", "processes"), 10_000_000);
    assert_eq!(of.total("--weight live", "processes"), 50_000_000);
    let (report, said) = of.run("report --weight live -g none", "processes");
    assert!(
        report.contains(
            "# Not freed before their processes ended: 50000000 of these bytes in 50 blocks"
        ),
        "{report}{said}"
    );
    // 1 KiB for one second; the other process has just begun.
    assert_eq!(of.total("--weight lifetime", "lifetime"), 1000);
}

/// Twenty calls of mmap, of which the fourth failed, and all was unmapped.
#[test]
fn what_is_unmapped_is_not_live() {
    let of = Recordings::of(&["mmap"]);
    assert_eq!(of.total("--weight alloc", "mmap"), 19_000_000);
    assert_eq!(of.total("--weight peak", "mmap"), 1_000_000);
    let (out, said) = of.run("fold --weight live", "mmap");
    assert!(out.is_empty() && said.contains("no samples"), "{out}{said}");
    let (report, said) = of.run("report --weight alloc -g none", "mmap");
    assert!(
        report.contains("heap: 19 blocks, 1 failed"),
        "{report}{said}"
    );
}

/// A function that calls itself to a depth of ten: a call or a return each millisecond, 19 ms in all.
#[test]
fn durations_of_calls_in_calls_are_the_time_that_passed() {
    let of = Recordings::of(&["fact"]);
    assert_eq!(of.total("--weight duration", "fact"), 19_000_000);
    let (report, said) = of.run("report --weight duration -g none", "fact");
    let line = "# Durations: 19.000 ms of 1 thread";
    assert!(
        report.contains("# Durations: 19") && report.contains("of 1 thread"),
        "{line}: {report}{said}"
    );
    let part = "report --weight duration -g none --time 1.001,1.004 -F sample,sym -q";
    let (report, said) = of.run(part, "fact");
    let calls = report
        .split_whitespace()
        .find_map(|word| word.parse::<u64>().ok());
    assert!(calls.is_some_and(|calls| calls < 10), "{report}{said}");
    assert_eq!(
        of.total("--weight duration --time 1.001,1.004", "fact"),
        3_000_000
    );
}

/// Ten waits of 100 ms and 5 ms of work before each, of which one switch away is missing.
#[test]
fn a_lost_switch_is_no_time_on_a_processor() {
    let of = Recordings::of(&["lost-out"]);
    let on = of.total("--weight oncpu", "lost-out");
    assert!((45_000_000..=56_000_000).contains(&on), "{on}");
    let (out, _) = of.run("fold --weight offcpu", "lost-out");
    let lost: u64 = folded(&out)
        .iter()
        .filter(|(stack, _)| stack.contains("[lost switch]"))
        .map(|(_, weight)| weight)
        .sum();
    assert!((95_000_000..=106_000_000).contains(&lost), "{out}");
    let (check, _) = of.run("check", "lost-out");
    let line = check.lines().find(|line| line.contains("weights.pairs"));
    assert!(
        line.is_some_and(
            |line| line.contains("1 with a lost switch-out") && line.contains("(10.00% unpaired)")
        ),
        "{check}"
    );
}

/// 100 page faults, of which 90 were counted by a second event, too; half a second by two clocks.
#[test]
fn what_two_events_count_is_counted_once() {
    let of = Recordings::of(&["faults", "clocks", "ipc"]);
    assert_eq!(of.total("--weight faults", "faults"), 100);
    let on = of.total("--weight oncpu", "clocks");
    assert!((450_000_000..=510_000_000).contains(&on), "{on}");
    let (stat, said) = of.run("stat", "ipc");
    assert!(stat.contains("2.00  insn per cycle"), "{stat}{said}");
    let (report, said) = of.run("report --metrics ipc -g none", "ipc");
    assert!(
        report.contains("cycles:u is left out: another event counts it, too"),
        "{report}{said}"
    );
}

/// 300 page faults, which come first, and 40 samples of a clock: what shows one event shows the clock.
#[test]
fn all_verbs_show_the_same_event() {
    let of = Recordings::of(&["faults-and-clock"]);
    assert_eq!(of.total("", "faults-and-clock"), 40_000_000);
    for words in [
        "summary",
        "summary --format json",
        "peek .",
        "flamegraph --format svg -o -",
        "flamegraph --format html -o -",
        "export --format firefox -o -",
    ] {
        let (out, said) = of.run(words, "faults-and-clock");
        let shown = if words.ends_with("json") {
            r#""event":{"name":"cpu-clock""#
        } else if words.starts_with("export") {
            "40 samples, 40.0 ms of cpu-clock"
        } else {
            "cpu-clock"
        };
        assert!(out.contains(shown), "{words}: {out}{said}");
        // Of what is not shown it is said how much there is.
        let shown = out.replace("with 300 samples", "");
        assert!(!shown.contains("300 samples"), "{words}: {out}");
    }
    let path = of.path("faults-and-clock");
    let copy = path.with_file_name("copy.data");
    std::fs::copy(&path, &copy).expect("copied");
    let gate = format!("gate --max-growth 5% --format json {}", copy.display());
    let (out, said) = of.run(&gate, "faults-and-clock");
    assert!(
        out.contains(r#""event":{"name":"cpu-clock""#),
        "{out}{said}"
    );
    // A sample that weighs one is no nanosecond.
    let weighed = "summary --weight samples --format json";
    let (out, said) = of.run(weighed, "faults-and-clock");
    assert!(out.contains(r#""unit":"count""#), "{out}{said}");
    let (named, said) = of.run("fold --event page-faults", "faults-and-clock");
    assert_eq!(folded(&named).values().sum::<u64>(), 300, "{said}");
}

/// Samples of 0.1 s, and sums that have numbers in place of times.
#[test]
fn shares_of_time_are_of_times() {
    let of = Recordings::of(&["off-cpu"]);
    for time in ["50%-100%", "+0.05,", "0%-100%"] {
        let (page, said) = of.run(&format!("summary --time {time}"), "off-cpu");
        assert!(page.contains("samples"), "{time}: {said}");
    }
    let (page, said) = of.run("summary --time +7,+8", "off-cpu");
    assert!(
        page.is_empty() && said.contains("no samples within --time: the recording lasts from "),
        "{said}"
    );
}
