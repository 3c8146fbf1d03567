//! What `-o` writes: it takes the place of nothing that was read, follows no link, and is for nobody who may not read what it
//! was made from.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::bundle::succeed;
use crate::jitdump::{Dump, HEAD};
use crate::recording::{Recording, Sample, Stacks};
use crate::support::pjit;

const PID: u32 = 77;

/// A recording, and the perf map that names its code.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording = Recording::new(Stacks::None);
    recording.comm(PID, PID, b"it");
    recording.map(PID, 0x1000, 0x1000, 0, b"//anon");
    // As many as a comparison wants.
    for time in 1..=40 {
        recording.sample(&Sample {
            ip: 0x1010,
            pid: PID,
            tid: PID,
            time,
            period: 1,
            chain: &[],
            user: None,
        });
    }
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes);
    write("perf.data", &recording.file()).expect("written");
    write("perf-77.map", b"1000 100 named\n").expect("written");
    write("jit-77.dump", &Dump::new(&HEAD).0).expect("written");
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("there")
        .permissions()
        .mode()
        & 0o777
}

/// Runs it in a folder, by a shell with the usual mask.
fn run(folder: &Path, line: &str) -> Output {
    let program = pjit().get_program().to_owned();
    let mut shell = Command::new("sh");
    shell
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("PJIT", program);
    shell
        .current_dir(folder)
        .args(["-c", &format!("umask 022; {line}")])
        .stdin(Stdio::null());
    shell.output().expect("a shell")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nothing_that_was_read_is_replaced() {
    let folder = files();
    let dir = folder.path();
    fs::hard_link(dir.join("perf.data"), dir.join("same")).expect("made");
    fs::copy(dir.join("perf.data"), dir.join("other")).expect("made");
    fs::copy(pjit().get_program(), dir.join("program")).expect("made");
    fs::write(dir.join("stacks"), "a;b 1\n").expect("written");
    let lines = [
        "fold -o perf.data",
        "fold -o same",
        "fold -o other",
        "fold -o perf-77.map",
        "fold -o jit-77.dump",
        "fold -o program",
        "fold -i - -o perf.data < perf.data",
        "script -o perf.data",
        "script --header-only -o perf.data",
        "export --format firefox -o perf.data",
        "export --format csv -o perf-77.map",
        "export --format speedscope -o perf.data",
        "export --format pprof -o perf.data",
        "flamegraph --format svg -o perf.data",
        "flamegraph --format html -o perf-77.map",
        "flamegraph --format svg --diff stacks -o stacks",
        "summary -o perf.data",
        "peek . -o perf.data",
        "diff perf.data --to other -o other",
        "gate --max-growth 5% perf.data --to other -o other",
        "jitdump jit-77.dump -o jit-77.dump",
    ];
    let before = contents(dir);
    for line in lines {
        let output = run(dir, &format!("\"$PJIT\" {line}"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("nothing is written"), "{line}: {said}");
        assert!(contents(dir) == before, "{line}");
    }
    succeed(
        pjit()
            .current_dir(dir)
            .args(["fold", "--force-output", "-o", "other"]),
    );
    assert_eq!(
        fs::read(dir.join("other")).expect("there"),
        b"it;named 40\n"
    );
    for _ in 0..2 {
        succeed(pjit().current_dir(dir).args(["fold", "-o", "stacks"]));
    }
    assert_eq!(
        fs::read(dir.join("stacks")).expect("there"),
        b"it;named 40\n"
    );
}

/// Names and bytes of all files.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("listed");
    let paths = entries.map(|entry| entry.expect("listed").path());
    let mut all: Vec<_> = paths
        .map(|path| (path.clone(), fs::read(path).expect("read")))
        .collect();
    all.sort();
    all
}

#[test]
fn what_came_to_the_place_meanwhile_is_not_replaced() {
    let folder = files();
    let dir = folder.path();
    // The recording comes through a pipe, so that it can be waited for that the output was begun.
    let line = "mkfifo in; \"$PJIT\" fold -i in -o out & exec 3> in; cat perf.data >&3; cp perf.data out; exec 3>&-; wait $!";
    let output = run(dir, line);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        fs::read(dir.join("out"))
            .expect("there")
            .starts_with(b"PERFILE2")
    );
}

#[test]
fn links_are_named_and_not_followed() {
    let folder = files();
    let dir = folder.path();
    fs::write(dir.join("text"), "mine").expect("written");
    symlink("text", dir.join("link")).expect("made");
    symlink("nothing", dir.join("dangling")).expect("made");
    for name in ["link", "dangling"] {
        let output = run(dir, &format!("\"$PJIT\" fold -o {name}"));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("is a link to"), "{}", said(&output));
        assert!(dir.join(name).is_symlink());
    }
    assert_eq!(fs::read(dir.join("text")).expect("there"), b"mine");
    succeed(
        pjit()
            .current_dir(dir)
            .args(["fold", "--force-output", "-o", "link"]),
    );
    assert!(dir.join("link").is_symlink());
    assert_eq!(fs::read(dir.join("text")).expect("there"), b"it;named 40\n");
}

#[test]
fn what_is_no_file_is_written_as_it_is() {
    let folder = files();
    for line in [
        "\"$PJIT\" fold -o /dev/stdout > out; cat out",
        "\"$PJIT\" fold -o /dev/stdout | cat",
        "(\"$PJIT\" fold -o /dev/stdout; echo more) > both; head -1 both",
        "mkfifo fifo; cat fifo & \"$PJIT\" fold -o fifo; wait",
        "\"$PJIT\" fold -o /dev/null && echo 'it;named 40'",
    ] {
        let output = run(folder.path(), line);
        assert_eq!(output.stdout, b"it;named 40\n", "{line}: {}", said(&output));
    }
    assert_eq!(
        fs::read(folder.path().join("both")).expect("there"),
        b"it;named 40\nmore\n"
    );
}

#[test]
fn outputs_are_for_nobody_else_than_the_recording() {
    for (recording, map, before, expected) in [
        (0o644, 0o644, None, 0o644),
        (0o600, 0o644, None, 0o600),
        (0o640, 0o644, None, 0o640),
        (0o644, 0o600, None, 0o600),
        (0o666, 0o644, None, 0o644),
        (0o644, 0o644, Some(0o600), 0o600),
        (0o600, 0o644, Some(0o644), 0o600),
    ] {
        let folder = files();
        let dir = folder.path();
        set_mode(&dir.join("perf.data"), recording);
        set_mode(&dir.join("perf-77.map"), map);
        for verb in [
            "fold",
            "script",
            "summary",
            "export --format csv",
            "flamegraph --format html",
        ] {
            let out = dir.join("out");
            let _ = fs::remove_file(&out);
            if let Some(mode) = before {
                fs::write(&out, "before").expect("written");
                set_mode(&out, mode);
            }
            let output = run(dir, &format!("\"$PJIT\" {verb} -o out"));
            assert!(output.status.success(), "{verb}: {}", said(&output));
            assert_eq!(
                mode(&out),
                expected,
                "{verb}: {recording:o} {map:o} {before:?}"
            );
        }
    }
}

#[test]
fn bundles_are_for_nobody_else_than_what_is_in_them() {
    for (recording, map, folder_mode, file_mode) in [
        (0o644, 0o644, 0o755, 0o644),
        (0o600, 0o644, 0o700, 0o600),
        (0o644, 0o600, 0o700, 0o600),
    ] {
        let folder = files();
        let dir = folder.path();
        set_mode(&dir.join("perf.data"), recording);
        set_mode(&dir.join("perf-77.map"), map);
        for target in ["b", "b.tar.gz"] {
            let output = run(dir, &format!("\"$PJIT\" bundle -o {target}"));
            assert!(output.status.success(), "{}", said(&output));
        }
        assert_eq!(mode(&dir.join("b")), folder_mode);
        assert_eq!(mode(&dir.join("b.tar.gz")), file_mode);
        let unpacked = run(dir, "mkdir u; tar xpzf b.tar.gz -C u");
        assert!(unpacked.status.success(), "{}", said(&unpacked));
        for place in ["b", "u/b"] {
            let place = dir.join(place);
            assert_eq!(mode(&place.join("perf.data")), recording);
            assert_eq!(mode(&place.join("bundle.txt")), recording);
            assert_eq!(mode(&place.join("symfs/tmp/perf-77.map")), map);
        }
    }
}
