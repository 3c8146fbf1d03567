//! Allocators other than glibc's and other witnesses: what `pjit record --alloc` finds in programs whose numbers are known, and
//! what DHAT and heaptrack say of the same program.

use std::process::Command;

use crate::live::{Lab, below, total};
use crate::probes::{Probes, again, turn};
use crate::support::{pjit, skip};

/// Bytes and blocks of each site of `alloc 2000`.
const SITES: [(&str, u64, u64); 6] = [
    ("site_small", 48_000, 2000),
    ("site_big", 20 << 20, 20),
    ("site_calloc", 2_000_000, 2000),
    ("site_realloc", 1_635_200, 1800),
    ("site_posix", 102_400, 200),
    ("site_aligned", 51_200, 200),
];

/// Runs a program in the lab: what it prints and what it says; `None`, and why, where it is not here or fails.
fn run(lab: &Lab, oracle: &str, command: &mut Command) -> Option<(String, String)> {
    let Ok(output) = command.current_dir(lab.path(".")).output() else {
        skip(oracle, "it cannot be run");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        skip(oracle, &text(&output.stderr));
        return None;
    }
    Some((text(&output.stdout), text(&output.stderr)))
}

/// Records allocations of a command, in turn with all others that have probes.
fn record(lab: &Lab, options: &[&str], command: &[&str], preload: Option<&str>) -> Option<()> {
    let _turn = turn()?;
    let recorded = again(|| {
        let _ = std::fs::remove_dir_all(lab.path("s.data"));
        let mut recorder = pjit();
        recorder.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        recorder.args(["record", "-q", "--alloc"]).args(options);
        recorder.args(["-o", "s.data", "--"]).args(command);
        if let Some(library) = preload {
            recorder.env("LD_PRELOAD", library);
        }
        let output = recorder.current_dir(lab.path(".")).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(said)
    });
    recorded.map_err(|why| skip("probe", &why)).ok()
}

/// Bytes and blocks of a site.
fn assert_site(lab: &Lab, (site, bytes, blocks): (&str, u64, u64)) {
    let folded = |weight| lab.show(&["fold", "--weight", weight], "s.data");
    assert_eq!(below(&folded("alloc"), site), bytes, "{site}");
    assert_eq!(below(&folded("alloc-count"), site), blocks, "{site}");
}

/// What a function allocates without what it calls: the garbage collector may begin in any allocation of Go.
fn in_itself(folded: &str, function: &str) -> u64 {
    let stacks = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let own = stacks.filter(|(stack, _)| stack.rsplit(';').next() == Some(function));
    own.map(|(_, weight)| weight.parse::<u64>().expect("a weight"))
        .sum()
}

#[test]
fn dhat_and_heaptrack_count_the_same() {
    let Some(lab) = Lab::with("witnesses", "alloc", &[]) else {
        return;
    };
    if record(
        &lab,
        &["--live", "--call-graph", "dwarf,1024"],
        &["./alloc", "2000"],
        None,
    )
    .is_none()
    {
        return;
    }
    let sum = |weight| total(&lab.show(&["fold", "--weight", weight], "s.data"));
    let live = lab.show(&["fold", "--weight", "live"], "s.data");

    let mut dhat = Command::new("valgrind");
    dhat.args(["--tool=dhat", "--dhat-out-file=d.out", "./alloc", "2000"]);
    let Some((_, said)) = run(&lab, "valgrind", &mut dhat) else {
        return;
    };
    let numbers = |what: &str| -> Vec<u64> {
        let line = said.lines().find(|line| line.contains(what));
        let line = line
            .unwrap_or_else(|| panic!("{what}: {said}"))
            .replace(',', "");
        let words = line.split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    assert_eq!([sum("alloc"), sum("alloc-count")], *numbers("Total:"));
    assert_eq!(sum("peak"), numbers("At t-gmax:")[0]);
    assert_eq!([sum("live"), sum("live-count")], *numbers("At t-end:"));

    let mut heaptrack = Command::new("heaptrack");
    heaptrack.args(["-o", "h", "./alloc", "2000"]);
    if run(&lab, "heaptrack", &mut heaptrack).is_none() {
        return;
    }
    // The program ends without telling heaptrack, which misses its last frees and knows all that is left before.
    for (kind, site, expected) in [
        ("leaked", "site_big", below(&live, "site_big")),
        ("leaked", "site_calloc", below(&live, "site_calloc")),
        ("peak", "site_big", sum("peak")),
    ] {
        let cost = format!("--flamegraph-cost-type={kind}");
        let mut print = Command::new("heaptrack_print");
        print.args(["-f", "h.zst", "-F", "h.folded", &cost]);
        if run(&lab, "heaptrack", &mut print).is_none() {
            return;
        }
        let folded = std::fs::read_to_string(lab.path("h.folded")).expect("it was printed");
        // `main (alloc.c);site_big (alloc.c); 5242880`
        let is_it = |line: &&str| line.contains(&format!(";{site} (alloc.c);"));
        let numbers = folded
            .lines()
            .filter(is_it)
            .filter_map(|l| l.rsplit_once(' '));
        let theirs: u64 = numbers.filter_map(|(_, n)| n.parse::<u64>().ok()).sum();
        assert_eq!(theirs, expected, "{kind} {site}: {folded}");
    }
}

#[test]
fn allocators_in_place_of_glibcs_are_found_and_counted() {
    let Some(lab) = Lab::with("preloaded", "alloc", &[]) else {
        return;
    };
    for library in ["libjemalloc.so.2", "libmimalloc.so.2.0"] {
        let path = format!("/usr/lib/x86_64-linux-gnu/{library}");
        if !std::path::Path::new(&path).exists() {
            skip(
                library.split('.').next().unwrap_or_default(),
                "it is not installed",
            );
            continue;
        }
        let options = ["--live", "--call-graph", "dwarf,1024"];
        if record(&lab, &options, &["./alloc", "2000"], Some(&path)).is_none() {
            return;
        }
        for site in SITES {
            assert_site(&lab, site);
        }
        let live = lab.show(&["fold", "--weight", "live"], "s.data");
        assert_eq!(below(&live, "main"), 6_242_880, "{library}: {live}");
        assert_eq!(below(&live, "site_big"), 5 << 20, "{library}: {live}");
    }
}

#[test]
fn sites_of_rust_are_exact_behind_its_own_functions() {
    let lab = Lab::empty("rust-sites");
    let mut rustc = Command::new("rustc");
    rustc.args(["-Copt-level=1", "-g", "-o", "sites"]);
    if run(&lab, "rustc", rustc.arg(Lab::program("sites.rs"))).is_none() {
        return;
    }
    let options = ["--live", "--call-graph", "dwarf,2048"];
    if record(&lab, &options, &["./sites"], None).is_none() {
        return;
    }
    for (site, bytes, blocks) in [
        ("sites::site_vec", 500_000, 500),
        ("sites::site_zeroed", 150_000, 500),
        ("sites::site_box", 32_000, 500),
        ("sites::site_push", 500 * (32 + 64 + 128 + 256), 2000),
        ("sites::site_string", 8500, 500),
    ] {
        assert_site(&lab, (site, bytes, blocks));
    }
    let live = lab.show(&["fold", "--weight", "live"], "s.data");
    assert_eq!(below(&live, "sites::main"), 0, "{live}");
    // Rows are functions of the program, not `RawVec` and its kin.
    let rows = [
        "report",
        "--weight",
        "alloc",
        "--no-children",
        "-g",
        "none",
        "-s",
        "sym",
    ];
    let report = lab.show(&rows, "s.data");
    assert!(report.contains("[.] sites::site_push"), "{report}");
    assert!(!report.contains("raw_vec"), "{report}");
}

#[test]
fn sites_of_go_are_exact() {
    let lab = Lab::empty("go-sites");
    let mut go = Command::new("go");
    go.env("GOCACHE", lab.path("cache"))
        .args(["build", "-o", "sites"]);
    if run(&lab, "go", go.arg(Lab::program("sites.go"))).is_none() {
        return;
    }
    // Preempted at the entry, a goroutine enters once more: that must not count.
    if record(&lab, &[], &["./sites"], None).is_none() {
        return;
    }
    let folded = |weight| lab.show(&["fold", "--weight", weight], "s.data");
    for (site, bytes, blocks) in [
        ("main.siteA", 10_000_000, 10_000),
        ("main.siteB", 5_000_000, 1000),
    ] {
        assert_eq!(in_itself(&folded("alloc"), site), bytes, "{site}");
        assert_eq!(in_itself(&folded("alloc-count"), site), blocks, "{site}");
    }
    let (status, _, said) = lab.pjit(&["fold", "--weight", "live"], "s.data");
    assert_eq!(status, 1);
    assert!(said.contains("frees were not recorded"), "{said}");
}

#[test]
fn sites_of_a_guest_of_wasmtime_are_exact_and_their_stacks_whole() {
    let lab = Lab::empty("guest-sites");
    let packages = concat!(env!("CARGO_MANIFEST_DIR"), "/target/python");
    let python = |arguments: &[&str]| {
        let mut python = Command::new("python3");
        python.arg(Lab::program("guest.py")).args(arguments);
        python.env("PYTHONPATH", packages);
        python
    };
    let (wat, guest) = (Lab::program("guest.wat"), Lab::program("guest.py"));
    let (wat, guest) = (wat.to_string_lossy(), guest.to_string_lossy());
    if run(&lab, "wasmtime", &mut python(&[&wat, "guest.cwasm"])).is_none() {
        return;
    }
    let options = [
        "--live",
        "--lib",
        "guest.cwasm",
        "--call-graph",
        "dwarf,8192",
    ];
    let path = format!("PYTHONPATH={packages}");
    let command = ["env", &path, "python3", &guest, "guest.cwasm"];
    if record(&lab, &options, &command, None).is_none() {
        return;
    }
    for (site, bytes, blocks, live) in [
        ("wasm[0]::function[2]::site_a", 200_000, 2000, 100_000),
        ("wasm[0]::function[3]::site_b", 800_000, 200, 800_000),
    ] {
        assert_site(&lab, (site, bytes, blocks));
        let folded = lab.show(&["fold", "--weight", "live"], "s.data");
        assert_eq!(below(&folded, site), live, "{site}: {folded}");
    }
    let count = |weight| total(&lab.show(&["fold", "--weight", weight], "s.data"));
    assert_eq!([count("alloc"), count("alloc-count")], [1_000_000, 2200]);
    assert_eq!([count("live"), count("live-count")], [900_000, 1200]);
    let stacks = lab.show(&["fold", "--weight", "samples"], "s.data");
    let check = lab.show(&["check"], "s.data");
    assert!(
        check.contains(" 100.00% complete (2200 of 2200)"),
        "{check}"
    );
    // One event is shown: where an allocator returns.
    assert_eq!(below(&stacks, "wasm[0]::function[4]::guest_run"), 2200);
}

#[test]
fn probes_of_a_name_are_removed_and_no_others() {
    let Some(probes) = Probes::add("named", &["malloc=malloc size=%di"]) else {
        return;
    };
    let events =
        || std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    let group = probes.event("malloc").replace(":malloc", "/malloc");
    assert!(events().contains(&group), "{group}");
    drop(probes);
    assert!(!events().contains(&group), "{group}");
}
