//! The samples, line by line: what pjit printed when somebody last looked, and how much of perf's output it equals.
//!
//! `PJIT_BLESS=1 cargo test --test integration golden` renews `samples/*/pjit.*`; read the difference before
//! committing it. `perf-*` files are perf's own and never renewed here.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{SAMPLES, agreement, flat_rows, folded, pjit, sample, stdout_of};

/// The views that are kept for every sample: file name and arguments.
const VIEWS: [(&str, &[&str]); 7] = [
    (
        "pjit.report.flat.txt",
        &["report", "--stdio", "--no-children", "-g", "none"],
    ),
    (
        "pjit.report.caller.txt",
        &[
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "graph,0.5,caller,function,percent",
        ],
    ),
    (
        "pjit.report.children.txt",
        &["report", "--stdio", "--children", "--percent-limit", "10"],
    ),
    ("pjit.summary.txt", &["summary"]),
    ("pjit.summary.json", &["summary", "--format", "json"]),
    ("pjit.folded", &["fold"]),
    (
        "pjit.noinline.folded",
        &["fold", "--no-inline", "--annotate-kernel", "--annotate-jit"],
    ),
];

/// Compares what pjit prints of a sample with the files in it.
///
/// # Panics
/// If a file of a view, each with its arguments, has something else.
pub(crate) fn check(name: &str, views: &[(&str, &[&str])]) {
    let bless = std::env::var_os("PJIT_BLESS").is_some();
    let mut wrong = Vec::new();
    for &(file, arguments) in views {
        let path = sample(name, file);
        let now = stdout_of(arguments, name);
        if bless {
            fs::write(&path, &now).expect("samples can be written");
            continue;
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        if before != now {
            let line = before
                .lines()
                .zip(now.lines())
                .position(|(a, b)| a != b)
                .unwrap_or(before.lines().count().min(now.lines().count()));
            wrong.push(format!(
                "samples/{name}/{file}, line {}:\n  was {:?}\n  is  {:?}",
                line + 1,
                before.lines().nth(line).unwrap_or("(end)"),
                now.lines().nth(line).unwrap_or("(end)")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n(PJIT_BLESS=1 renews them)",
        wrong.join("\n")
    );
}

#[test]
fn minijit_prints_what_it_did() {
    check("minijit", &VIEWS);
}

#[test]
fn native_prints_what_it_did() {
    check("native", &VIEWS);
}

#[test]
fn node_prints_what_it_did() {
    check("node", &VIEWS);
}

#[test]
fn wasmtime_prints_what_it_did() {
    check("wasmtime", &VIEWS);
}

/// Flat rows go by the sample's address, and perf is right about them.
#[test]
fn flat_reports_equal_perfs() {
    for name in SAMPLES {
        let perf = fs::read_to_string(sample(name, "perf-6.1.report.flat.txt"))
            .expect("the sample has perf's report");
        let ours = stdout_of(&["report", "--stdio", "--no-children", "-g", "none"], name);
        let (perf, ours) = (flat_rows(&perf), flat_rows(&ours));
        let share = agreement(&perf, &ours);
        let only: Vec<_> = perf
            .iter()
            .filter(|&(k, v)| ours.get(k) != Some(v))
            .collect();
        assert!(
            share >= 0.995,
            "{name}: {:.2}% agreement with perf, these differ: {only:#?}",
            100.0 * share
        );
    }
}

/// Without JIT code perf's stacks are right where they are complete.
#[test]
fn native_stacks_equal_perfs() {
    let perf = fs::read_to_string(sample("native", "perf-6.1.script.noinline.folded"))
        .expect("the sample has perf's stacks");
    let ours = folded(&stdout_of(&["fold", "--no-inline"], "native"));
    let complete: BTreeMap<_, _> = folded(&perf)
        .into_iter()
        .filter(|(stack, _)| ROOTS.contains(&stack.split(';').nth(1).unwrap_or("")))
        .collect();
    let share = agreement(&complete, &ours);
    let only: Vec<_> = complete
        .iter()
        .filter(|&(k, v)| ours.get(k) != Some(v))
        .take(5)
        .collect();
    assert!(
        share >= 0.99,
        "{:.2}% of perf's complete stacks, these differ: {only:#?}",
        100.0 * share
    );
}

/// What a complete stack begins with.
const ROOTS: [&str; 5] = [
    "_start",
    "clone3",
    "__clone3",
    "ret_from_fork_asm",
    "__clone",
];

/// Share of the weight in stacks whose root is one of ROOTS, or begins with `also`.
fn complete(name: &str, also: &str) -> f64 {
    let stacks = folded(&stdout_of(&["fold", "--no-inline"], name));
    let total: u64 = stacks.values().sum();
    let complete: u64 = stacks
        .iter()
        .filter(|(stack, _)| {
            let root = stack.split(';').nth(1).unwrap_or("");
            ROOTS.contains(&root) || (!also.is_empty() && root.contains(also))
        })
        .map(|(_, weight)| weight)
        .sum();
    complete as f64 / total as f64
}

#[test]
fn stacks_are_complete() {
    for (name, also, wanted) in [
        ("native", "", 0.999),
        ("node", "", 0.999),
        ("wasmtime", "[fiber]", 0.999),
        ("minijit", "", 0.999),
    ] {
        let share = complete(name, also);
        assert!(
            share >= wanted,
            "{name}: {:.2}% complete, {:.2}% were",
            100.0 * share,
            100.0 * wanted
        );
    }
}

/// The shares that minijit's program has by construction (see its NOTES.md).
#[test]
fn minijit_has_its_shares() {
    let stacks = folded(&stdout_of(&["fold", "--no-inline"], "minijit"));
    let total: u64 = stacks.values().sum();
    for (function, wanted) in [
        ("jit::spin_fp", 0.25),
        ("jit::spin_nofp <T>: x", 0.25),
        ("jit::reuse_A", 0.125),
        ("jit::reuse_B", 0.125),
        ("jit::mover", 0.25),
    ] {
        let weight: u64 = stacks
            .iter()
            .filter(|(stack, _)| stack.split(';').any(|f| f == function))
            .map(|(_, weight)| weight)
            .sum();
        let share = weight as f64 / total as f64;
        assert!(
            (share - wanted).abs() < 0.02,
            "{function}: {share:.3}, by construction {wanted}"
        );
    }
    let through_c = stacks
        .keys()
        .filter(|s| s.contains("jit::tramp_fp;c_middle;jit::spin_fp"))
        .count();
    assert!(through_c > 0, "C code below JIT code: {:#?}", stacks.keys());
}

/// What the README shows is what its first command prints.
#[test]
fn the_readme_shows_real_output() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"))
        .expect("there is a README");
    let command = readme
        .lines()
        .find_map(|l| l.trim().strip_prefix("cargo run -- "))
        .expect("a first command");
    let block = readme
        .split("```text\n")
        .nth(1)
        .and_then(|rest| rest.split("…\n").next())
        .expect("a block of output");
    let output = pjit()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(command.split_whitespace())
        .output();
    let output = String::from_utf8(output.expect("the binary can be run").stdout).expect("UTF-8");
    assert!(output.contains(block), "{command} prints\n{output}");
}
