//! Allocations, against what the program that allocates has counted itself.
//!
//! Needs root for probes on glibc; each test has probes of its own name and removes them.

use crate::live::{Lab, below, total, truth};
use crate::probes::Probes;
use crate::support::perf;

const ENTRIES: [&str; 5] = [
    "malloc=malloc size=%di",
    "calloc=__libc_calloc nmemb=%di size=%si",
    "realloc=__libc_realloc ptr=%di size=%si",
    "aligned=aligned_alloc align=%di size=%si",
    "posix=posix_memalign align=%si size=%dx",
];

const RETURNS: [&str; 6] = [
    "malloc_ret=malloc%return ptr=$retval",
    "calloc_ret=__libc_calloc%return ptr=$retval",
    "realloc_ret=__libc_realloc%return ptr=$retval",
    "aligned_ret=aligned_alloc%return ptr=$retval",
    "posix_ret=posix_memalign%return failed=$retval",
    "free=free ptr=%di",
];

fn all() -> Vec<&'static str> {
    [&ENTRIES[..], &RETURNS[..]].concat()
}

/// What the sites of `alloc 2000` ask for, and in how many blocks.
const SITES: [(&str, u64, u64); 6] = [
    ("site_small", 2000 * 24, 2000),
    ("site_big", 20 << 20, 20),
    ("site_calloc", 2000 * 1000, 2000),
    (
        "site_realloc",
        200 * (16 + 32 + 64 + 128 + 256 + 512 + 1024 + 2048 + 4096),
        1800,
    ),
    ("site_posix", 200 * 512, 200),
    ("site_aligned", 200 * 256, 200),
];

/// Rows of a flat report by symbol: bytes.
fn assert_sites(lab: &Lab, data: &str) {
    let options = [
        "report",
        "--weight",
        "alloc",
        "--no-children",
        "-g",
        "none",
        "-s",
        "sym",
        "-F",
        "period,sample,sym",
        "-t,",
        "-q",
    ];
    let report = lab.show(&options, data);
    for (site, bytes, blocks) in SITES {
        let row = report
            .lines()
            .find(|line| line.ends_with(&format!(" {site}")));
        let row = row.unwrap_or_else(|| panic!("{data}: no row for {site} in\n{report}"));
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        assert_eq!(cells[0], bytes.to_string(), "{data}: {row}");
        assert_eq!(cells[1], blocks.to_string(), "{data}: {row}");
    }
}

#[test]
fn allocations_are_what_the_program_counted() {
    let Some(lab) = Lab::with("heap", "alloc", &[]) else {
        return;
    };
    let Some(probes) = Probes::add("heap", &all()) else {
        return;
    };
    let recordings = [("dwarf,1024", "dwarf.data"), ("fp", "fp.data")];
    let record = |(graph, data): &(&str, &str)| {
        let options = [
            "-k",
            "mono",
            "-e",
            &probes.event("*"),
            "--call-graph",
            graph,
            "-m",
            "32M",
        ];
        probes.record(&lab, data, &options, &["./alloc", "2000"])
    };
    let Some(printed) = recordings.iter().map(record).collect::<Option<Vec<_>>>() else {
        return;
    };
    drop(probes);
    for ((graph, data), printed) in recordings.into_iter().zip(printed) {
        let truth = truth(&printed);
        let sum = |weight: &str| total(&lab.show(&["fold", "--weight", weight], data)) as f64;
        assert_eq!(sum("alloc"), truth["bytes"], "{graph}");
        assert_eq!(sum("alloc-count"), truth["blocks"], "{graph}");
        assert_eq!(sum("live"), truth["live_bytes"], "{graph}");
        assert_eq!(sum("live-count"), truth["live_blocks"], "{graph}");
        assert_eq!(sum("peak"), f64::from(6 << 20), "{graph}");
        assert_sites(&lab, data);
        let live = lab.show(&["fold", "--weight", "live"], data);
        assert_eq!(below(&live, "site_big"), 5 << 20);
        assert_eq!(below(&live, "site_calloc"), 1_000_000);
        let report = lab.show(
            &["report", "--weight", "live", "-g", "none", "-s", "sym"],
            data,
        );
        // Each free but those of the program's own blocks is one of a block that nobody saw.
        let unpaired =
            frees(&lab, data) - (truth["blocks"] - truth["live_blocks"] - 1600.0 - 200.0);
        let heap = format!(
            "; heap: 6220 blocks, 200 nested left out, 200 without address, {unpaired} unpaired frees"
        );
        assert!(report.contains(&heap), "{heap}\n{report}");
        assert!(
            (200.0..203.0).contains(&unpaired),
            "{unpaired} of blocks of aligned_alloc, and few of others"
        );
        assert!(
            report.contains(
                "# Live at end: 6242880 bytes (5.95 MiB) in 1005 blocks; peak 6291456 at "
            ),
            "{report}"
        );
        assert!(
            report.contains("         Bytes        Blocks  Symbol"),
            "{report}"
        );
        let allocator = lab.show(&["fold", "--weight", "alloc", "--no-trim"], data);
        assert!(
            allocator
                .lines()
                .any(|line| line.contains("site_small;") && line.contains("malloc")),
            "{allocator}"
        );
        views_agree(&lab, data);
        let lifetime = sum("lifetime");
        assert!(
            lifetime > 0.0 && lifetime < 60.0 * 1000.0 * 6.0 * 1024.0,
            "{lifetime}"
        );
    }
}

/// Calls of `free` in a recording, as perf lists them. Few more than the program's are met: a probe whose step is interrupted
/// is seen twice.
fn frees(lab: &Lab, data: &str) -> f64 {
    let output = perf()
        .args(["script", "-F", "event", "-i"])
        .arg(lab.path(data))
        .output();
    let events = String::from_utf8(output.expect("perf has recorded").stdout).expect("text");
    let frees = events
        .lines()
        .filter(|line| line.trim().ends_with(":free:"));
    frees.count() as f64
}

/// The other views have the same weights, and `check` tells what they are made of.
fn views_agree(lab: &Lab, data: &str) {
    let peek = ["peek", "site_big", "--weight", "alloc", "--format", "json"];
    let peek = lab.show(&peek, data);
    assert!(peek.contains("20971520"), "{peek}");
    let same = lab.pjit(&["diff", "--weight", "alloc", data], data);
    assert!(same.1.contains("ratio 1.00"), "{same:?}");
    let budget = [
        "gate",
        "--weight",
        "alloc",
        "--max-share",
        "^site_small$=50%",
        "--to",
    ];
    let gate = lab.pjit(&budget, data);
    assert_eq!(gate.0, 0, "{gate:?}");
    let check = lab.show(&["check"], data);
    let line = check.lines().find(|line| line.contains("weights.pairs"));
    assert!(
        line.is_some_and(|l| l.starts_with("ok ") && l.contains(" (0.00% unpaired)")),
        "{check}"
    );
    // Calls of allocators within allocators have a probe between them and who called.
    let folded = lab.show(&["fold", "--weight", "samples"], data);
    let whole = below(&folded, "main") as f64 / total(&folded) as f64;
    assert!(data != "dwarf.data" || whole > 0.999, "{whole}");
}

#[test]
fn threads_have_calls_of_their_own() {
    let Some(lab) = Lab::with("heap-threads", "alloc", &[]) else {
        return;
    };
    let Some(probes) = Probes::add("threads", &all()) else {
        return;
    };
    let options = [
        "-k",
        "mono",
        "-e",
        &probes.event("*"),
        "--call-graph",
        "fp",
        "-m",
        "32M",
    ];
    let Some(printed) = probes.record(&lab, "t.data", &options, &["./alloc", "1000", "3"]) else {
        return;
    };
    drop(probes);
    let folded = lab.show(&["fold", "--weight", "alloc"], "t.data");
    assert_eq!(below(&folded, "site_small"), 4 * 1000 * 24);
    // What glibc allocates for the threads themselves.
    let own = total(&folded) as f64 - truth(&printed)["bytes"];
    assert!((0.0..4096.0).contains(&own), "{own}");
    assert_eq!(
        total(&lab.show(&["fold", "--weight", "live-count"], "t.data")),
        1005 + 3
    );
}

#[test]
fn entries_alone_tell_the_volume_and_no_more() {
    let Some(lab) = Lab::with("heap-entries", "alloc", &[]) else {
        return;
    };
    let Some(probes) = Probes::add("entries", &ENTRIES) else {
        return;
    };
    let events = probes.event("*");
    let options = [
        "-k",
        "mono",
        "-e",
        &events,
        "--call-graph",
        "dwarf,1024",
        "-m",
        "32M",
    ];
    let Some(printed) = probes.record(&lab, "e.data", &options, &["./alloc", "2000"]) else {
        return;
    };
    let Some(few) = record_few(&lab, &probes, &events) else {
        return;
    };
    let options = [
        "-c",
        "100",
        "--no-period",
        "-e",
        &events,
        "--call-graph",
        "fp",
    ];
    if probes
        .record(&lab, "c.data", &options, &["./alloc", "20000"])
        .is_none()
    {
        return;
    }
    drop(probes);
    assert_sites(&lab, "e.data");
    assert_eq!(
        total(&lab.show(&["fold", "--weight", "alloc"], "e.data")) as f64,
        truth(&printed)["bytes"]
    );
    let (status, out, said) = lab.pjit(&["fold", "--weight", "live"], "e.data");
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(
        said.contains("--weight live: frees were not recorded"),
        "{said}"
    );

    lost_calls_are_counted(&lab, &few);

    let (status, folded, said) = lab.pjit(&["fold", "--no-trim", "--weight", "alloc"], "c.data");
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("counted 1 in 100: rare large blocks may be missing"),
        "{said}"
    );
    // 480 000 bytes in 200 samples; where the kernel walks from an entry, the caller is missing.
    let small = below(&folded, "malloc") as f64;
    let error = 3.0 * (200.0_f64).sqrt() * 2400.0;
    assert!((small % 1_048_576.0 - 480_000.0).abs() < error, "{small}");
}

/// Records into a buffer that is too small: what the program printed.
fn record_few(lab: &Lab, probes: &Probes, events: &str) -> Option<String> {
    // The kernel counts all records of an event that found no room: those of mappings and the exit belong to the first event.
    let options = [
        "-k",
        "mono",
        "-e",
        "dummy",
        "-e",
        events,
        "--call-graph",
        "dwarf,16384",
        "-m",
        "16",
    ];
    probes.record(lab, "few.data", &options, &["./alloc", "2000"])
}

/// What was recorded and what was lost are what perf says, and all calls, 200 of them within others. The kernel counts up to three
/// too many as lost in one recording of eight, where counters of the same probes are right.
fn lost_calls_are_counted(lab: &Lab, printed: &str) {
    let (_, check, _) = lab.pjit(&["check"], "few.data");
    let line = check.lines().find(|line| line.contains("weights.lost"));
    let line = line.unwrap_or_else(|| panic!("{check}"));
    let numbers = line
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    let calls = truth(printed)["blocks"] as u64 + 200;
    let seen: u64 = numbers.iter().sum();
    assert_eq!(seen, perf_counts(lab), "{line}");
    assert!((calls..=calls + 3).contains(&seen), "{calls}: {line}");
}

/// Samples of probes that were recorded or lost, as `perf report --stats` counts them.
fn perf_counts(lab: &Lab) -> u64 {
    let output = perf()
        .args(["report", "--stats", "-i"])
        .arg(lab.path("few.data"))
        .output();
    let stats = String::from_utf8(output.expect("perf has recorded").stdout).expect("text");
    let mut of_probes = false;
    let mut sum = 0;
    for line in stats.lines() {
        if let Some(event) = line.strip_suffix(" stats:") {
            of_probes = event.contains(':');
        }
        let mut words = line.split_whitespace();
        let is_count = matches!(words.next(), Some("SAMPLE" | "LOST_SAMPLES"));
        let count = words.nth(1).and_then(|word| word.parse::<u64>().ok());
        sum += count.filter(|_| of_probes && is_count).unwrap_or(0);
    }
    sum
}

#[test]
fn what_was_lost_is_told_and_blocks_are_refused() {
    let Some(lab) = Lab::with("heap-lost", "alloc", &[]) else {
        return;
    };
    let Some(probes) = Probes::add("lost", &all()) else {
        return;
    };
    let options = [
        "-k",
        "mono",
        "-e",
        &probes.event("*"),
        "--call-graph",
        "dwarf,16384",
        "-m",
        "16",
    ];
    if probes
        .record(&lab, "l.data", &options, &["./alloc", "2000"])
        .is_none()
    {
        return;
    }
    drop(probes);
    let (status, out, said) = lab.pjit(&["fold", "--weight", "live"], "l.data");
    assert_eq!((status, out.as_str()), (1, ""), "{said}");
    assert!(
        said.contains(" % of the events were lost: live bytes would be wrong (--force)"),
        "{said}"
    );
    let (status, _, said) = lab.pjit(&["fold", "--force", "--weight", "live"], "l.data");
    // There may be nothing left that was not freed.
    assert!(status == 0 || said.contains("no samples"), "{said}");
    assert!(
        said.contains(" events were lost (") && !said.contains("--force"),
        "{said}"
    );
    let folded = lab.show(&["fold", "--weight", "alloc"], "l.data");
    assert!(total(&folded) <= 25_240_320);
    let (status, _, said) = lab.pjit(&["fold", "--weight", "alloc"], "../nowhere.data");
    assert_eq!(status, 1, "{said}");
}
