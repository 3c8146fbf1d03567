//! `-v` tells which places were tried for each kind of file, and what became of them; without it nothing of that is said.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::recording::{CONTEXT_USER, Map, Recording, Sample, Stacks};
use crate::support::{pjit, sample};

const PID: u32 = 7;

/// A recording of files that are missing, of another build, behind a link that leads out, and at hand; and of a dump.
fn record(folder: &Path) {
    let symfs = folder.join("symfs");
    fs::create_dir_all(&symfs).expect("made");
    let program = sample("native", "symfs/tmp/pjit-sample/native/hot-cpp");
    for name in ["other", "here"] {
        fs::copy(&program, symfs.join(name)).expect("copied");
    }
    let bytes = fs::read(&program).expect("read");
    let note = memchr::memmem::find(&bytes, b"\x14\0\0\0\x03\0\0\0GNU\0").expect("a note");
    let own: [u8; 20] = bytes[note + 12..note + 32].try_into().expect("twenty");
    fs::write(folder.join("jit-8.dump"), b"no dump").expect("written");
    // What stands for `/` is followed by hand; a folder of dumps is left to the system.
    fs::create_dir(folder.join("dumps")).expect("made");
    symlink("../jit-8.dump", folder.join("dumps/jit-7.dump")).expect("linked");
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(PID, PID, b"program");
    let files = [
        ("/missing", [1; 20]),
        ("/other", [2; 20]),
        ("/here", own),
        ("/tmp/jit-7.dump", [0; 20]),
    ];
    for (at, (file, id)) in (1..).zip(files) {
        let start = at << 32;
        recording.map_at(&Map {
            length: 0x100_0000,
            build_id: Some(id).filter(|id| *id != [0; 20]),
            ..Map::page(0, PID, start, file.as_bytes())
        });
        let ip = start + 0x1000;
        recording.sample(&Sample {
            ip,
            pid: PID,
            tid: PID,
            time: 10 + at,
            period: 1,
            chain: &[CONTEXT_USER, ip],
            user: None,
        });
    }
    fs::write(folder.join("perf.data"), recording.file()).expect("written");
}

fn run(folder: &Path, options: &[&str]) -> (String, String) {
    let mut command = pjit();
    command.current_dir(folder).args(["fold", "perf.data"]);
    let output = command.args(options).output().expect("it runs");
    assert!(output.status.success());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn places_that_were_tried_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    let (quiet, said) = run(folder.path(), &["--jitdump", "dumps"]);
    assert!(!said.contains("note: looked for"), "{said}");
    let (out, said) = run(folder.path(), &["--jitdump", "dumps", "-v"]);
    assert_eq!(out, quiet);
    let list = |kind: &str| -> Vec<&str> {
        let heading = format!("note: looked for {kind} (");
        let mut lines = said.lines();
        let heading = lines.find(|line| line.starts_with(&heading));
        let heading = heading.unwrap_or_else(|| panic!("no list of {kind}: {said}"));
        let lines = lines.take_while(|line| line.starts_with("note:   "));
        std::iter::once(heading).chain(lines).collect()
    };
    let programs = list("programs and libraries");
    assert!(programs[0].ends_with(": 1 found, 2 not found"), "{said}");
    let missing = "note:   /missing: not there: ./symfs/missing, /missing, ";
    assert!(programs[1].starts_with(missing), "{}", programs[1]);
    let other = "note:   /other: another build: ./symfs/other; not there: /other, ";
    assert!(programs[2].starts_with(other), "{}", programs[2]);
    assert_eq!(programs[3], "note:   /here: taken: ./symfs/here");
    let dumps = list("dumps");
    let refused =
        "a link leads out of the folder in which it was looked for; not opened: dumps/jit-7.dump";
    assert!(dumps.iter().any(|line| line.contains(refused)), "{said}");
    // The one of another process is beside the recording, and no dump.
    assert!(
        dumps
            .iter()
            .any(|line| line.contains("not a jitdump: ./jit-8.dump")),
        "{said}"
    );
    let debug = list("debug files");
    assert!(
        debug
            .iter()
            .any(|line| line.contains("/usr/lib/debug/.build-id/01/0101"))
    );
    let lines = said
        .lines()
        .filter(|line| line.starts_with("note: looked for"));
    let lines: Vec<&str> = lines.collect();
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(lines, sorted, "each kind once");
}

/// A thousand files that are not there are no thousand lines.
#[test]
fn lists_of_places_are_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(PID, PID, b"program");
    for number in 1..1000 {
        let file = format!("/nowhere/{}\x1b[31m/{number}", "x".repeat(1000));
        let start = number << 32;
        recording.map(PID, start, 0x1000, 0, file.as_bytes());
        recording.sample(&Sample {
            ip: start,
            pid: PID,
            tid: PID,
            time: 10 + number,
            period: 1,
            chain: &[CONTEXT_USER, start],
            user: None,
        });
    }
    fs::write(folder.path().join("perf.data"), recording.file()).expect("written");
    let (_, said) = run(folder.path(), &["-v"]);
    let lists = said
        .lines()
        .skip_while(|line| !line.starts_with("note: looked for"));
    let lists: Vec<&str> = lists.collect();
    assert!(
        lists
            .iter()
            .any(|line| line.ends_with("0 found, 999 not found")),
        "{said}"
    );
    assert!(lists.contains(&"note:   and 991 more"), "{said}");
    assert!(lists.len() < 40 && lists.iter().all(|line| line.len() < 5000));
    assert!(!said.contains('\x1b'));
}
