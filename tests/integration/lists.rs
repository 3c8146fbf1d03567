//! `pjit list`: lines with what they weigh, line by line what `go tool pprof -list` (Debian: golang-go) says of the same samples.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::live::Lab;
use crate::support::{SAMPLES, folded, run, skip, stdout_of};

fn asked(function: &str, name: &str) -> Value {
    let view = ["list", function, "--format", "json", "--budget", "1000000"];
    serde_json::from_str(&stdout_of(&view, name)).expect("JSON")
}

/// The same of a function of V8 in any tier.
fn asked_by_tier(function: &str, name: &str) -> Value {
    let tiers = ["~", "^", "+", "*"].into_iter();
    let mut names = tiers.map(|tier| function.replacen("JS:~", &format!("JS:{tier}"), 1));
    let view = |function: &str| run(&["list", function, "--format", "json"], name);
    let known = names.find(|function| view(function).status.success());
    asked(&known.unwrap_or_else(|| function.to_owned()), name)
}

fn rows(value: &Value) -> &Vec<Value> {
    value.as_array().expect("an array")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Own weight and that with callees by file and line.
type Lines = BTreeMap<(String, u64), (u64, u64)>;

/// A path as pprof prints it, which is given no folder to begin with.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        let is_up = part == ".." && parts.last().is_some_and(|last| *last != "..");
        if is_up {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

fn lines_of(function: &Value) -> Lines {
    let files = rows(&function["files"]).iter();
    let lines = files.flat_map(|file| {
        let path = plain(text(&file["file"]));
        rows(&file["lines"]).iter().map(move |line| {
            let weights = (number(&line["self"]), number(&line["inclusive"]));
            ((path.clone(), number(&line["line"])), weights)
        })
    });
    lines.collect()
}

fn added(all: impl Iterator<Item = Lines>) -> Lines {
    let mut sum = Lines::new();
    for (line, (own, whole)) in all.flatten() {
        let known = sum.entry(line).or_default();
        *known = (known.0 + own, known.1 + whole);
    }
    sum
}

/// A profile in which V8's names have no tier: pprof takes functions of different names for different functions.
fn export_without_tiers(name: &str, folder: &Path) -> std::path::PathBuf {
    let file = folder.join("x.pb.gz");
    let output = run(&["export", "-o", file.to_str().expect("UTF-8")], name);
    assert!(output.status.success(), "{name}");
    let mut bytes = Vec::new();
    let packed = fs::read(&file).expect("it was written");
    let read = flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes);
    read.expect("it is whole");
    let mut at = 0;
    while let Some(next) = memchr::memmem::find(&bytes[at..], b"JS:") {
        at += next + 3;
        if matches!(bytes.get(at), Some(b'^' | b'+' | b'*')) {
            bytes[at] = b'~';
        }
    }
    fs::write(&file, bytes).expect("written");
    file
}

/// What `-list .` says: lines by function.
fn listed_by_pprof(file: &Path, folder: &Path) -> BTreeMap<String, Lines> {
    let sources = folder.join("sources");
    let ask = || {
        let mut go = Command::new("go");
        go.args(["tool", "pprof", "-unit=ns", "-nodefraction=0"]);
        go.args(["-edgefraction=0", "-trim_path=/", "-list=."]);
        go.arg(format!("-source_path={}", sources.display()));
        go.arg(file).env("PPROF_TMPDIR", folder).env("HOME", folder);
        let output = go.output().expect("go can be run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // It shows lines of files that there are, whatever is in them.
    for line in ask().lines() {
        let Some((_, rest)) = line.split_once("could not find file ") else {
            continue;
        };
        let path = rest.rsplit_once(" on path").expect("the folders").0;
        let path = sources.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, "\n".repeat(20_000)).expect("written");
    }
    let ns = |cell: &str| match cell {
        "." => 0,
        cell => cell.trim_end_matches("ns").parse().expect("nanoseconds"),
    };
    let mut functions: BTreeMap<String, Lines> = BTreeMap::new();
    let mut at = (String::new(), String::new());
    for line in ask().lines() {
        if let Some(head) = line.strip_prefix("ROUTINE ======================== ") {
            let (name, file) = head.rsplit_once(" in ").expect("a file");
            at = (name.to_owned(), file.to_owned());
            functions.entry(at.0.clone()).or_default();
            continue;
        }
        let mut cells = line.split_whitespace();
        let (Some(own), Some(whole), Some(place)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let Some(place) = place.split(':').next().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if (own, whole) != (".", ".") && place > 0 {
            let lines = functions.get_mut(&at.0).expect("below its head");
            lines.insert((at.1.clone(), place), (ns(own), ns(whole)));
        }
    }
    functions
}

/// Every function that pprof lists has the same lines with the same weights here.
#[test]
fn lines_are_those_of_pprof() {
    let version = Command::new("go").arg("version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return skip("go", "it cannot be run");
    }
    // Of interpreted functions and of those of V8's baseline compiler no lines are known.
    for (name, least) in [("native", 15), ("wasm", 3), ("typescript", 3), ("node", 13)] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = export_without_tiers(name, folder.path());
        let theirs = listed_by_pprof(&file, folder.path());
        // By what is one function here, or several of one name: the names that pprof has for it.
        let mut names: BTreeMap<String, (Value, Vec<&Lines>)> = BTreeMap::new();
        for (function, lines) in theirs.iter().filter(|(_, lines)| !lines.is_empty()) {
            let told = asked_by_tier(function, name);
            let ids = rows(&told["functions"]).iter();
            let ids: Vec<&str> = ids.map(|found| text(&found["id"])).collect();
            assert!(!ids.is_empty(), "{name}: {function}");
            let known = names
                .entry(ids.join(" "))
                .or_insert_with(|| (told.clone(), Vec::new()));
            known.1.push(lines);
        }
        let mut equal = 0;
        for (ours, theirs) in names.values() {
            let functions = rows(&ours["functions"]);
            let ours = added(functions.iter().map(lines_of));
            let is_one = functions.len() == 1 && theirs.len() == 1;
            let theirs = added(theirs.iter().map(|lines| (*lines).clone()));
            let name = format!("{name}: {}", functions[0]["full"]);
            if is_one {
                assert_eq!(ours, theirs, "{name}");
            }
            equal += usize::from(ours == theirs);
            // A stack may have several of the names.
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for (line, (own, whole)) in &ours {
                let (their_own, most) = theirs[line];
                assert!(*own == their_own && *whole <= most, "{name}: {line:?}");
            }
        }
        let all = names.len();
        let _ = writeln!(
            std::io::stderr(),
            "{name}: {equal} of {all} functions equal"
        );
        assert!(equal >= least, "{name}: {equal} of {all}");
    }
}

/// The same by other means: every stack of `fold` has a line for each frame.
#[test]
fn lines_of_a_function_add_up() {
    for name in SAMPLES.into_iter().chain(["wasm", "typescript"]) {
        let told = asked(".", name);
        let functions = rows(&told["functions"]);
        assert!(!functions.is_empty(), "{name}");
        for function in functions {
            let lines = lines_of(function);
            let unplaced = &function["unplaced"];
            let own: u64 = lines.values().map(|(own, _)| own).sum();
            let whole = number(&function["inclusive"]);
            assert_eq!(
                own + number(&unplaced["self"]),
                number(&function["self"]),
                "{name}: {function}"
            );
            let most: u64 = lines.values().map(|(_, whole)| whole).sum();
            assert!(most + number(&unplaced["inclusive"]) >= whole, "{name}");
            let of_lines = lines
                .values()
                .all(|(own, line)| own <= line && *line <= whole);
            assert!(of_lines, "{name}: {function}");
        }
        let total: u64 = folded(&stdout_of(&["fold"], name)).values().sum();
        assert_eq!(number(&told["event"]["total"]), total, "{name}");
    }
}

/// The kernel records where calls return to, often the next line: what a call costs stands at the call all the same.
#[test]
fn calls_are_at_the_lines_that_make_them() {
    let Some(lab) = Lab::with("calls", "calls", &["-O0"]) else {
        return;
    };
    let options = ["-e", "cpu-clock:u", "-F", "997", "-g"];
    if lab.record("c.data", &options, &["./calls"]).is_none() {
        return;
    }
    let view = ["list", "caller", "--format", "json", "-i"];
    let told: Value = serde_json::from_str(&lab.show(&view, "c.data")).expect("JSON");
    let function = &rows(&told["functions"])[0];
    let lines = lines_of(function);
    let of = |wanted: u64| -> f64 {
        let line = lines.iter().find(|((_, line), _)| *line == wanted);
        line.map_or(0.0, |(_, (_, whole))| *whole as f64)
    };
    let all = number(&function["inclusive"]) as f64;
    let shares = [11, 12, 13].map(|line| of(line) / all);
    assert!(
        (shares[0] - 0.8).abs() < 0.1 && (shares[1] - 0.2).abs() < 0.1 && shares[2] < 0.02,
        "{shares:?} {told}"
    );
}

/// A recorded chain has where calls return to: behind one that never returns begins another function.
#[test]
fn callers_are_the_functions_that_call() {
    let flags = ["-fno-align-functions", "-fno-toplevel-reorder"];
    let Some(lab) = Lab::with("noreturn", "noreturn", &flags) else {
        return;
    };
    let options = ["-e", "cpu-clock:u", "-F", "997", "-g"];
    if lab.record("n.data", &options, &["./noreturn"]).is_none() {
        return;
    }
    let folded = lab.show(&["fold", "-i"], "n.data");
    let of = |stack: &str| folded.lines().filter(|line| line.contains(stack)).count();
    assert_eq!(of(";main;ends;stops;burn "), 1, "{folded}");
    assert_eq!(of("neighbour"), 0, "{folded}");
    // perf names what lies behind the call, and so does the view that is read beside perf's.
    let script = ["script", "-F", "ip,sym", "--no-inline", "-i"];
    let script = lab.show(&script, "n.data");
    assert!(script.contains(" neighbour\n"), "{script}");
    // What signals return to was not called.
    let interrupted = script
        .split("\n\n")
        .find(|stack| stack.contains(" handler\n"));
    let interrupted = interrupted.expect("the handler was sampled");
    if interrupted.contains(" __restore_rt\n") {
        assert_eq!(of(";__restore_rt;handler;burn "), 1, "{folded}");
    }
}

/// Lines of a bundle are those of its sources, with their texts.
#[test]
fn the_page_shows_sources() {
    let page = stdout_of(&["list", "countPrimes primes.ts:2"], "typescript");
    let line = page
        .lines()
        .find(|line| line.contains("  11  "))
        .expect("line 11");
    assert!(page.contains("/src/primes.ts\n"), "{page}");
    assert!(line.contains("0.035 s"), "{line}");
    assert!(!page.contains("no source at hand"), "{page}");
    // Without the source there are the numbers.
    let page = stdout_of(&["list", "fibonacci"], "native");
    assert!(page.contains("hot.rs  (no source at hand"), "{page}");
    let with = [
        "list",
        "fibonacci",
        "--source-root",
        "samples/native/source",
    ];
    let with = stdout_of(&with, "native");
    assert!(with.contains("fibonacci(n - 1)"), "{with}");
}

#[test]
fn budgets_leave_the_heaviest_lines() {
    let lines = |budget: &str| {
        let page = stdout_of(&["list", ".", "--budget", budget], "native");
        assert!(page.lines().count() <= budget.parse().expect("a number"));
        page
    };
    let (small, large) = (lines("12"), lines("200"));
    assert!(small.contains("functions match (--budget)"), "{small}");
    assert!(large.lines().count() > small.lines().count());
}
