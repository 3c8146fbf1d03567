//! Recorded for real: builds of one program that come and go, folders that are copied, commands that fail, sources that are edited.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::live::Lab;
use crate::record::{done, lab, record};
use crate::support::skip;

const LOOP: &str = "volatile long sum;\nint main(void) { FUNCTION(300000000); return 0; }\n";

/// Builds C in the folder; `false` where nobody can.
fn built(lab: &Lab, source: &str, name: &str, options: &[&str]) -> bool {
    fs::write(lab.path("made.c"), source).expect("written");
    let mut command = Command::new("cc");
    command.args(options).args(["-o", name, "made.c"]);
    let status = command.current_dir(lab.path(".")).status();
    let is_built = status.is_ok_and(|status| status.success());
    if !is_built {
        skip("cc", "it cannot be run");
    }
    is_built
}

/// A function of this name that takes some tenths of a second, so many lines below the top of its file.
fn program(function: &str, lines: usize) -> String {
    let above = "\n".repeat(lines);
    // Each product waits for the one before, on every machine; sums in memory do not on some.
    let body = "(long n) { unsigned long x = sum; for (long i = 0; i < n; i++) x = x * 6364136223846793005ul + 1; sum = x; }";
    let declared = format!("__attribute__((noinline)) void {function}(long n);\n");
    let loops = LOOP.replace("FUNCTION", function);
    format!("{declared}{loops}{above}__attribute__((noinline)) void {function}{body}\n")
}

fn told(lab: &Lab, words: &[&str], folder: &str) -> String {
    let (_, text, said) = lab.pjit(words, folder);
    format!("{text}{said}")
}

#[test]
fn both_builds_of_one_path_are_kept_and_told_apart() {
    let Some(lab) = lab("two-builds") else { return };
    let options = ["-g", "-O1"];
    if !built(&lab, &program("work", 0), "one", &options)
        || !built(&lab, &program("work", 7), "two", &options)
    {
        return;
    }
    // What lies in a folder for temporary files is held while it runs.
    let folder = tempfile::tempdir().expect("a folder");
    let prog = folder.path().join("prog");
    let prog = prog.to_str().expect("plain");
    let script = format!("for i in one two; do cp $i {prog}; {prog}; rm {prog}; done");
    let words = ["-q", "-o", "out", "--", "sh", "-c", &script];
    let (status, _, said) = done(&mut record(&lab, &words));
    assert_eq!(status, Some(0), "{said}");
    let table = told(&lab, &["check"], "out");
    assert!(!table.contains("changed since"), "{table}");
    let listed = told(&lab, &["list", "work"], "out");
    let builds = listed.lines().filter(|line| line.contains(" (build "));
    assert_eq!(builds.count(), 2, "{listed}");
}

/// What was copied without its times is younger than the recording, and no other file for that.
#[test]
fn a_folder_may_be_copied_without_its_times() {
    let Some(lab) = lab("copied") else { return };
    let options = ["-g", "-O1", "-Wl,--build-id=none"];
    if !built(&lab, &program("work", 0), "prog", &options) {
        return;
    }
    let words = ["-q", "--files", "-o", "out", "--", "./prog"];
    let (status, _, said) = done(&mut record(&lab, &words));
    assert_eq!(status, Some(0), "{said}");
    fs::remove_file(lab.path("prog")).expect("removed");
    copy_without_times(&lab.path("out"), &lab.path("copy"));
    fs::remove_dir_all(lab.path("out")).expect("removed");
    let folded = told(&lab, &["fold"], "copy");
    assert!(folded.contains(";work "), "{folded}");
}

fn copy_without_times(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_without_times(&from, &to);
        } else {
            fs::copy(&from, &to).expect("copied");
        }
    }
}

#[test]
fn runs_that_failed_are_told_of() {
    let Some(lab) = lab("failed") else { return };
    if !built(&lab, &program("work", 0), "prog", &["-g", "-O1"]) {
        return;
    }
    let words = ["-q", "--runs", "2", "-o", "out", "--base", "./prog"];
    let half = ["--", "sh", "-c", "./prog; exit 3"];
    let (status, _, said) = done(&mut record(&lab, &[&words[..], &half].concat()));
    assert_eq!(status, Some(3), "{said}");
    let text = "2 of 2 runs of new failed (status 3)";
    assert!(said.contains(text), "{said}");
    let sides = ["out/base", "--to"];
    let compared = told(&lab, &[&["diff"], &sides[..]].concat(), "out/new");
    assert!(compared.contains(text), "{compared}");
    let rule = ["--max-share", "work=100%"];
    let judged = told(&lab, &[&["gate"], &rule[..], &sides].concat(), "out/new");
    let line = judged.lines().find(|line| line.ends_with(text));
    assert!(
        line.is_some_and(|line| line.starts_with("warn ")),
        "{judged}"
    );
    let table = told(&lab, &["check"], "out/new/01");
    assert!(table.contains("ended with status 3"), "{table}");
    let table = told(&lab, &["check"], "out/base/01");
    assert!(!table.contains("status"), "{table}");
}

#[test]
fn a_source_that_is_newer_than_the_program_is_said_to_be() {
    let Some(lab) = lab("edited") else { return };
    if !built(
        &lab,
        &program("work", 0),
        "prog",
        &["-g", "-O1", "-gdwarf-4"],
    ) {
        return;
    }
    let written = fs::metadata(lab.path("prog")).and_then(|meta| meta.modified());
    let written = written.expect("it has a time");
    let touch = |name: &str, at: SystemTime| {
        let file = File::options().append(true).open(lab.path(name));
        file.and_then(|file| file.set_modified(at))
            .expect("touched");
    };
    let hour = Duration::from_secs(3600);
    touch("prog", written - 2 * hour);
    touch("made.c", written - hour);
    let (status, _, said) = done(&mut record(&lab, &["-q", "-o", "out", "--", "./prog"]));
    assert_eq!(status, Some(0), "{said}");
    let text = "changed after the program was built";
    let listed = told(&lab, &["list", "work"], "out");
    assert!(
        listed.contains(text),
        "{listed}\n{}",
        told(&lab, &["list", "work", "-v"], "out")
    );
    touch("made.c", written - 3 * hour);
    let listed = told(&lab, &["list", "work"], "out");
    assert!(!listed.contains(text), "{listed}");
}

/// Functions of the C library keep no frame pointers: a chain that breaks in one of them begins nowhere.
#[test]
fn a_chain_that_breaks_in_the_c_library_begins_nothing() {
    let Some(lab) = lab("broken-chain") else {
        return;
    };
    let source = "#include <stdio.h>\nint main(void) { char text[64]; for (int i = 0; i < 3000000; i++) \
                  snprintf(text, sizeof text, \"%d %g\", i, i / 3.0); return text[0] == 0; }\n";
    if !built(&lab, source, "prog", &["-O2", "-fomit-frame-pointer"]) {
        return;
    }
    let (status, _, said) = done(&mut record(
        &lab,
        &["-q", "-g", "-o", "out", "--", "./prog"],
    ));
    assert_eq!(status, Some(0), "{said}");
    let folded = lab.show(&["fold"], "out");
    let all = crate::live::total(&folded);
    let with_main = folded.lines().filter(|line| line.contains(";main;"));
    let with_main = crate::live::total(&with_main.collect::<Vec<_>>().join("\n"));
    let table = told(&lab, &["check"], "out");
    let line = table.lines().find(|line| line.contains("reach main"));
    let line = line.unwrap_or_else(|| panic!("{table}"));
    let share = line
        .split(": ")
        .nth(1)
        .and_then(|rest| rest.split('%').next());
    let share: f64 = share.and_then(|share| share.parse().ok()).expect("a share");
    // perf's own frames before the program begins reach their start.
    let true_share = 100.0 * with_main as f64 / all as f64;
    assert!(share < true_share + 10.0, "{true_share}: {table}");
}
