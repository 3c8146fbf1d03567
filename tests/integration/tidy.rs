//! The rules of the source tree that the compiler does not check: who may use what, and that every file says what it is.

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below `folder`, relative to the project.
fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut todo = vec![root.join(folder)];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path.strip_prefix(root).expect("it is below").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("it can be read")
}

/// The lines of a file that run in production: without comments, and without the unit tests at its end.
fn code(path: &Path) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    for (number, line) in read(path).lines().enumerate() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let line = line.split("//").next().unwrap_or("");
        if !line.trim().is_empty() {
            lines.push((number + 1, line.to_owned()));
        }
    }
    lines
}

/// Lines of files that are not below one of `allowed` and contain one of `words`.
fn offenders(words: &[&str], allowed: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files("src") {
        let is_test =
            path.to_string_lossy().ends_with("tests.rs") || path.iter().any(|part| part == "tests");
        if is_test || allowed.iter().any(|a| path.starts_with(a)) {
            continue;
        }
        for (number, line) in code(&path) {
            if words.iter().any(|w| line.contains(w)) {
                found.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    found
}

fn none(found: Vec<String>, rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = ["src", "tests", "benches"]
        .into_iter()
        .filter(|f| Path::new(env!("CARGO_MANIFEST_DIR")).join(f).is_dir())
        .flat_map(files)
        .filter(|p| !read(p).starts_with("//!"))
        .map(|p| p.display().to_string())
        .collect();
    none(silent, "these do not begin with //!");
}

#[test]
fn only_the_command_line_knows_clap() {
    none(
        offenders(
            &["clap::", "clap_complete::", "clap_mangen::"],
            &["src/cli", "src/main.rs"],
        ),
        "clap outside src/cli",
    );
}

/// What a recording or a user names is opened by `src/input` alone. The rest are fixed places of the running system.
#[test]
fn only_input_touches_the_file_system() {
    let words = [
        "std::fs",
        "File::open",
        "File::create",
        "OpenOptions",
        "read_dir(",
        ".is_file()",
        ".exists()",
        ".canonicalize(",
    ];
    let system = [
        // The running kernel's identity.
        "/sys/kernel/notes",
        "/proc/sys/kernel/osrelease",
        // Its vdso.
        "/proc/self/maps",
        "/proc/self/mem",
        // Whether a stream waits.
        "/dev/stdin",
        // Links are followed by hand, so that none leads out of --symfs.
        "read_link(",
        // Only asked whether it is there; opened by src/input.
        "filter(|path| path.is_file())",
        "Path::new(\"perf.data\").exists()",
    ];
    let found = offenders(&words, &["src/input", "src/cli", "src/main.rs"]);
    let found = found
        .into_iter()
        .filter(|l| !system.iter().any(|s| l.contains(s)));
    none(found.collect(), "file system outside src/input");
}

#[test]
fn nothing_but_main_prints_or_exits() {
    let words = [
        "println!",
        "eprintln!",
        "process::exit",
        "std::io::stdout",
        "std::io::stderr",
    ];
    none(
        offenders(&words, &["src/main.rs", "src/cli"]),
        "printing outside main",
    );
}

#[test]
fn views_see_only_the_profile() {
    let words = [
        "perfdata::Recording",
        "perfdata::Record",
        "crate::jitdump",
        "crate::dso::",
        "crate::session",
        "crate::unwind",
        "crate::symbolize",
        "crate::input",
        "object::",
        "gimli::",
        "addr2line::",
    ];
    let found = offenders(&words, &[]);
    let views: Vec<_> = found
        .into_iter()
        .filter(|l| l.starts_with("src/report/") || l.starts_with("src/output/"))
        // Prints no profile but a dump.
        .filter(|l| !l.starts_with("src/output/jitdump.rs"))
        .collect();
    none(views, "a view that reads");
}

#[test]
fn readers_do_not_know_the_views() {
    let found = offenders(
        &["crate::report", "crate::output", "crate::cli"],
        &["src/cli", "src/main.rs", "src/report", "src/output"],
    );
    let readers = [
        "src/perfdata/",
        "src/jitdump/",
        "src/dso/",
        "src/input/",
        "src/session/",
        "src/unwind/",
    ];
    none(
        found
            .into_iter()
            .filter(|l| readers.iter().any(|r| l.starts_with(r)))
            .collect(),
        "a reader that knows a view",
    );
}

#[test]
fn each_format_has_one_home() {
    none(
        offenders(&["memmap2::"], &["src/input"]),
        "mapping files outside src/input",
    );
    none(
        offenders(
            &["linux_perf_data::", "linux_perf_event_reader::"],
            &["src/perfdata"],
        ),
        "perf.data crates outside src/perfdata",
    );
    none(
        offenders(
            &["rustc_demangle::", "cpp_demangle::"],
            &["src/symbolize", "src/dso"],
        ),
        "demangling outside src/symbolize",
    );
}
