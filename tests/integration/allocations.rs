//! `pjit record --alloc`: calls of an allocator are counted once, and no probe is left behind, whoever ends whom.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::live::{Lab, below, total};
use crate::probes::turn;
use crate::support::{give_interrupts, pjit, send, skip};

const EVENTS: [&str; 2] = [
    "/sys/kernel/tracing/uprobe_events",
    "/sys/kernel/debug/tracing/uprobe_events",
];

/// Probes of the pjit that is this process.
fn probes_of(process: u32) -> usize {
    let group = format!(":pjit_{process}/");
    let mut lists = EVENTS
        .iter()
        .filter_map(|list| fs::read_to_string(list).ok());
    let events = lists.next().unwrap_or_default();
    events.lines().filter(|line| line.contains(&group)).count()
}

fn record(lab: &Lab, words: &[&str]) -> Command {
    let mut command = pjit();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(lab.path(".")).arg("record").args(words);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Status, what it said, and its number.
fn ended(child: Child) -> (Option<i32>, String, u32) {
    let number = child.id();
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said, number)
}

fn done(command: &mut Command) -> (Option<i32>, String, u32) {
    ended(command.spawn().expect("it can be run"))
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_never_freed_is_counted_and_no_probe_is_left() {
    let Some(lab) = Lab::with("live-of-record", "alloc", &[]) else {
        return;
    };
    let Some(turn) = turn() else { return };
    let words = ["--live", "-o", "out", "--", "./alloc", "100"];
    let (status, said, number) = done(&mut record(&lab, &words));
    assert_eq!(probes_of(number), 0, "{said}");
    drop(turn);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("note: probes on malloc, calloc, "), "{said}");
    assert!(
        said.ends_with("next: pjit report --weight live out\n"),
        "{said}"
    );
    let live = lab.show(&["fold", "--weight", "live"], "out");
    assert_eq!(total(&live), 6_242_880, "{said}");
    // Once more, as it was.
    let again = record(&lab, &["--again", "out", "--dry-run"])
        .stdout(Stdio::piped())
        .output();
    let again = String::from_utf8_lossy(&again.expect("it can be run").stdout).into_owned();
    assert!(again.contains(":malloc_ret__return"), "{again}");
}

/// `posix_memalign` returns no address: what is live cannot be told, and is not what to type next.
#[test]
fn what_to_type_next_works() {
    let lab = Lab::empty("live-unknown");
    let source = "#include <stdlib.h>\nint main(void) { void *p; for (int i = 0; i < 100; i++) if (posix_memalign(&p, 64, 4096)) return 1; free(p); return 0; }";
    fs::write(lab.path("app.c"), source).expect("written");
    let built = Command::new("cc")
        .args(["-O1", "-o"])
        .args([lab.path("app"), lab.path("app.c")])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        skip("cc", "it cannot be run");
        return;
    }
    let Some(turn) = turn() else { return };
    let words = ["--live", "-o", "out", "--", "./app"];
    let (status, said, _) = done(&mut record(&lab, &words));
    drop(turn);
    assert_eq!(status, Some(0), "{said}");
    let next = "next: pjit report --weight alloc out\n";
    assert!(said.ends_with(next), "{said}");
}

/// `malloc` has a name, and is not what any view shows.
#[test]
fn names_are_judged_of_who_allocates() {
    let Some(lab) = Lab::with("alloc-stripped", "alloc", &["-s"]) else {
        return;
    };
    let Some(turn) = turn() else { return };
    let words = ["-q", "--alloc", "-o", "out", "--", "./alloc", "100"];
    let (status, said, _) = done(&mut record(&lab, &words));
    drop(turn);
    assert_eq!(status, Some(0), "{said}");
    let (status, table, _) = lab.pjit(&["check"], "out");
    assert_eq!(status, 3, "{table}");
    assert!(table.contains("FAIL  symbols "), "{table}");
    assert!(table.contains("have no symbol there: alloc"), "{table}");
}

/// Each of glibc's rarer functions, and what each gives.
const RARE: &str = r"
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
static void *volatile sink;
__attribute__((noinline)) void site_valloc(void) { sink = valloc(1000); }
__attribute__((noinline)) void site_pvalloc(void) { sink = pvalloc(3000); }
__attribute__((noinline)) void site_memalign(void) { sink = memalign(64, 700); }
__attribute__((noinline)) void site_aligned(void) { sink = aligned_alloc(64, 640); }
__attribute__((noinline)) void site_array(void) { sink = reallocarray(0, 10, 50); }
int main(void) { for (int i = 0; i < 10; i++) { site_valloc(); site_pvalloc(); site_memalign(); site_aligned(); site_array(); } return 0; }
";

#[test]
fn rare_functions_count_once() {
    let lab = Lab::empty("rare");
    fs::write(lab.path("rare.c"), RARE).expect("written");
    let built = Command::new("cc")
        .args([
            "-O1",
            "-g",
            "-fno-optimize-sibling-calls",
            "-o",
            "rare",
            "rare.c",
        ])
        .current_dir(lab.path("."))
        .status();
    if !built.is_ok_and(|built| built.success()) {
        skip("cc", "it cannot be run");
        return;
    }
    let Some(turn) = turn() else { return };
    let (status, said, _) = done(&mut record(
        &lab,
        &["-q", "--alloc", "-o", "out", "--", "./rare"],
    ));
    drop(turn);
    assert_eq!(status, Some(0), "{said}");
    let folded = lab.show(&["fold", "--weight", "alloc"], "out");
    for (site, bytes) in [
        ("site_valloc", 10_000),
        ("site_pvalloc", 30_000),
        ("site_memalign", 7000),
        ("site_aligned", 6400),
        ("site_array", 5000),
    ] {
        assert_eq!(below(&folded, site), bytes, "{site}: {folded}");
    }
}

/// Starts a recording of something that takes long, and waits until it is under way.
fn recording(lab: &Lab, out: &str) -> Child {
    give_interrupts();
    let words = ["-q", "--live", "-o", out, "--", "sleep", "60"];
    let child = record(lab, &words).spawn().expect("it can be run");
    wait_for("probes are added", || probes_of(child.id()) >= 12);
    wait_for("the command runs", || {
        child_of(child.id(), "sleep").is_some()
    });
    child
}

/// A child of a process by its name.
fn child_of(process: u32, name: &str) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let lists = tasks.flatten().map(|task| task.path().join("children"));
    let lists: Vec<String> = lists
        .filter_map(|list| fs::read_to_string(list).ok())
        .collect();
    let mut pids = lists.iter().flat_map(|list| list.split_whitespace());
    let is_it = |pid: &&str| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm.starts_with(name)
    };
    pids.find(is_it)?.parse().ok()
}

#[test]
fn probes_go_at_every_end() {
    let lab = Lab::empty("ends");
    let Some(turn) = turn() else { return };
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let child = recording(&lab, &format!("{status}"));
        send(signal, child.id());
        let (ended, said, number) = ended(child);
        assert_eq!(ended, Some(status), "{said}");
        assert_eq!(probes_of(number), 0, "{said}");
    }
    // perf is killed: the command goes on, and all else as ever.
    let child = recording(&lab, "perf");
    send(
        Signal::KILL,
        child_of(child.id(), "perf").expect("it records"),
    );
    send(Signal::TERM, child.id());
    let (status, said, number) = ended(child);
    assert_eq!((status, probes_of(number)), (Some(143), 0), "{said}");
    // pjit is killed: the next one clears up behind it.
    let mut child = recording(&lab, "killed");
    let perf = child_of(child.id(), "perf").expect("it records");
    send(Signal::KILL, child.id());
    let dead = child.id();
    child.wait().expect("it ends");
    wait_for("perf has ended", || {
        !Path::new(&format!("/proc/{perf}")).exists()
    });
    assert!(probes_of(dead) > 0, "nothing to clear up");
    let (status, said, number) = done(&mut record(
        &lab,
        &["-q", "--alloc", "-o", "next", "--", "true"],
    ));
    assert_eq!(status, Some(0), "{said}");
    assert_eq!((probes_of(dead), probes_of(number)), (0, 0), "{said}");
    // perf that cannot record.
    let folder = lab.path("no-perf");
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("perf"), "#!/bin/sh\necho cannot >&2\nexit 1\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.join("perf"), mode).expect("allowed");
    let mut command = record(&lab, &["--alloc", "-o", "none", "--", "/bin/true"]);
    let (status, said, number) = done(command.env("PATH", &folder));
    assert_eq!((status, probes_of(number)), (Some(125), 0), "{said}");
    assert!(said.contains("perf cannot record here: cannot"), "{said}");
    let (status, said, number) = done(&mut record(&lab, &["--alloc", "--", "./nothing"]));
    assert_eq!((status, probes_of(number)), (Some(127), 0), "{said}");
    drop(turn);
}

#[test]
fn what_cannot_be_had_of_an_allocator_is_told() {
    let lab = Lab::empty("no-allocator");
    let Some(turn) = turn() else { return };
    fs::write(lab.path("text"), "no program").expect("written");
    let cases: [(&[&str], &str); 6] = [
        (&["--alloc", "-a", "--duration", "1"], "which allocator?"),
        (&["--alloc", "--lib", "text", "--", "true"], "text: "),
        (
            &["--alloc", "--lib", "/bin/true", "--", "true"],
            "no allocator that is known",
        ),
        (&["--min", "1K", "--", "true"], "--min and --lib are for"),
        (&["--alloc", "-F", "99", "--", "true"], "exclude each other"),
        (&["--alloc", "-p", "4194999"], "process 4194999 has ended"),
    ];
    for (words, told) in cases {
        let (status, said, number) = done(&mut record(&lab, words));
        assert_eq!(
            (status, probes_of(number)),
            (Some(125), 0),
            "{words:?}: {said}"
        );
        assert!(said.contains(told), "{words:?}: {said}");
    }
    drop(turn);
    // Counters that are not there are refused by name, and nothing is recorded instead.
    let has_counters = fs::read_dir("/sys/bus/event_source/devices/cpu/events").is_ok();
    if !has_counters && cfg!(target_arch = "x86_64") {
        let (status, said, _) = done(&mut record(&lab, &["--metrics", "--", "true"]));
        assert_eq!(status, Some(125), "{said}");
        assert!(
            said.contains("no hardware counters here for cycles and instructions"),
            "{said}"
        );
    }
    let inside: Vec<_> = fs::read_dir(lab.path("."))
        .expect("there")
        .flatten()
        .collect();
    assert_eq!(inside.len(), 1, "{inside:?}");
}

/// The probes are in the C library of the shell; a static program below it has one of its own.
#[test]
fn programs_of_another_allocator_are_named() {
    let lab = Lab::empty("static");
    fs::write(lab.path("rare.c"), RARE).expect("written");
    let mut build = Command::new("cc");
    build.args(["-O1", "-static", "-o", "allocates", "rare.c"]);
    let built = build.current_dir(lab.path(".")).output();
    if !built.is_ok_and(|built| built.status.success()) {
        return skip("cc", "no static program can be built");
    }
    let Some(turn) = turn() else { return };
    let words = ["--alloc", "-o", "out", "--", "sh", "-c", "./allocates; :"];
    let (status, said, _) = done(&mut record(&lab, &words));
    drop(turn);
    assert_eq!(status, Some(0), "{said}");
    let check = pjit().arg("check").arg(lab.path("out")).output();
    let text = String::from_utf8_lossy(&check.expect("it runs").stdout).into_owned();
    let line = text.lines().find(|line| line.contains("weights.allocator"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("recorded of allocates: it"), "{line}");
}

/// Who may not add probes is told who may.
#[test]
fn without_rights_allocations_are_refused() {
    if !rustix::process::geteuid().is_root() {
        skip("setpriv", "only root can become somebody else");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("pjit");
    fs::copy(env!("CARGO_BIN_EXE_pjit"), &binary).expect("copied");
    let open = |path: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(path, mode).expect("allowed");
    };
    open(folder.path());
    open(&binary);
    for preset in ["--alloc", "--offcpu"] {
        let done = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&binary)
            .args(["record", preset, "--", "/bin/true"])
            .current_dir(folder.path())
            .output();
        let Ok(done) = done else {
            skip("setpriv", "there is none");
            return;
        };
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if said.contains("no perf on PATH") {
            skip("perf", &said);
            return;
        }
        assert_eq!(done.status.code(), Some(125), "{preset}: {said}");
        let remedy = format!("hint: sudo pjit record {preset} ");
        let is_told = said.contains(&remedy) || said.contains("hint: sudo mount -t tracefs");
        assert!(is_told, "{preset}: {said}");
    }
}
