//! The program as scripts see it: exit statuses, pipes, streams, terminals, foreign names.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks, User};
use crate::support::{Random, SAMPLES, folded, pjit, run, sample, stdout_of};

fn status(arguments: &[&str]) -> Option<i32> {
    pjit()
        .args(arguments)
        .output()
        .expect("the binary can be run")
        .status
        .code()
}

#[test]
fn exit_status_tells_what_happened() {
    let recording = sample("minijit", "perf.data");
    let recording = recording.to_str().expect("a plain path");
    assert_eq!(status(&["report", "--stdio", recording]), Some(0));
    assert_eq!(status(&["fold", recording]), Some(0));
    assert_eq!(status(&["--help"]), Some(0));
    assert_eq!(status(&["report", "--help"]), Some(0));
    assert_eq!(status(&["--version"]), Some(0));
    assert_eq!(status(&["report", "/nonexistent/perf.data"]), Some(1));
    assert_eq!(status(&["report", "/"]), Some(1), "a directory");
    assert_eq!(status(&["report", "/dev/null"]), Some(1), "a device");
    assert_eq!(
        status(&["report", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]),
        Some(1),
        "not a recording"
    );
    assert_eq!(status(&["report", "--no-such-option", recording]), Some(2));
    assert_eq!(status(&["no-such-command"]), Some(2));
    assert_eq!(status(&[]), Some(2));
}

#[test]
fn an_error_is_one_clear_line() {
    let output = pjit()
        .args(["report", "/nonexistent/perf.data"])
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.stdout.is_empty());
    assert!(text.contains("/nonexistent/perf.data"), "{text}");
    let levels: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    assert_eq!(levels, ["error", "hint"], "{text}");
}

#[test]
fn input_may_be_named_either_way() {
    // What lies beside the recording is found without options.
    let wanted = stdout_of(&["fold"], "minijit");
    let output = pjit()
        .args(["fold", "-i"])
        .arg(sample("minijit", "perf.data"))
        .output()
        .expect("the binary can be run");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    // perf.data of the current directory by default.
    let output = pjit()
        .arg("fold")
        .current_dir(sample("minijit", ""))
        .output()
        .expect("the binary can be run");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
}

/// Neither all memory nor all threads of a machine.
#[test]
fn absurd_numbers_do_no_harm() {
    for words in [["-w", "99999999999"], ["-j", "100000"]] {
        let view = [&["report", "--no-children", "-g", "none", "-q"][..], &words].concat();
        let rows = stdout_of(&view, "native");
        assert!(rows.lines().count() > 10, "{words:?}");
    }
}

/// What comes of a command on a sample whose output is closed before anything was read.
fn unread(words: &[&str]) -> Output {
    let mut child = pjit()
        .args(words)
        .arg(sample("native", "perf.data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be run");
    drop(child.stdout.take());
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for view in ["report", "fold"] {
        let output = unread(&[view]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{view}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("pipe"),
            "{view}"
        );
    }
}

/// `gate | uploader` is to fail where the gate does, also if the uploader dies.
#[test]
fn a_closed_pipe_is_no_verdict() {
    for words in [
        ["gate", "--max-share", "main=0.01%", "--to"].as_slice(),
        &["check", "--min-samples", "1000000"],
    ] {
        let output = unread(words);
        assert_eq!(output.status.code(), Some(3), "{words:?}");
    }
}

/// A folder of `pjit record` lies here, and another recording is named.
#[test]
fn what_is_read_is_what_was_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let recorded = folder.path().join("pjit-other-20260101-000000");
    std::fs::create_dir(&recorded).expect("a folder can be made");
    std::fs::copy(sample("minijit", "perf.data"), recorded.join("perf.data")).expect("copied");
    for view in ["summary", "fold", "report", "peek"] {
        let mut command = pjit();
        command.current_dir(folder.path()).arg(view);
        if view == "peek" {
            command.arg("main");
        }
        let output = command.arg(sample("native", "perf.data")).output();
        let output = output.expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !said.contains("reading"),
            "{view}: {said}"
        );
    }
}

/// Neither escape sequences nor other control characters, whatever the view.
#[test]
fn no_control_characters_in_a_pipe() {
    for name in SAMPLES {
        for view in [
            &["report", "--stdio"][..],
            &["report", "--stdio", "--no-children"],
            &["fold"],
        ] {
            assert_harmless(&run(view, name).stdout, name);
        }
    }
}

fn assert_harmless(text: &[u8], what: &str) {
    let bad = text
        .iter()
        .position(|&b| (b < 0x20 && b != b'\n' && b != b'\t') || b == 0x7f);
    if let Some(at) = bad {
        panic!(
            "{what}: {:?}",
            String::from_utf8_lossy(&text[at.saturating_sub(40)..(at + 40).min(text.len())])
        );
    }
}

/// A recording whose names try to reach the terminal, split folded lines, and break tables.
fn evil() -> Recording {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(10, 10, b"a\x1b[31m;b\nc");
    recording.comm(10, 11, b"\xff\xfe; 7\t\r");
    recording.map(10, 0x10_0000, 0x1000, 0, b"/tmp/\x1b]0;title\x07/lib;\n.so");
    recording.map(10, 0x20_0000, 0x1000, 0, b"/tmp/<script>&\"'.so");
    for i in 0..10 {
        let chain = [CONTEXT_USER, 0x10_0010 + i, 0x20_0020];
        recording.sample(&Sample {
            ip: 0x10_0010 + i,
            pid: 10,
            tid: 10 + (i as u32) % 2,
            time: 1000 + i,
            period: 100,
            chain: &chain,
            user: None,
        });
    }
    recording
}

#[test]
fn foreign_names_are_made_harmless() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    std::fs::write(&path, evil().file()).expect("it can be written");
    for view in [
        &["report", "--stdio"][..],
        &["report", "--stdio", "--no-children", "-g", "none"],
        &["fold"],
    ] {
        let output = pjit()
            .args(view)
            .arg(&path)
            .output()
            .expect("the binary can be run");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{view:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_harmless(&output.stdout, "stdout");
        assert_harmless(&output.stderr, "stderr");
        if view == ["fold"] {
            let stacks = folded(&String::from_utf8_lossy(&output.stdout));
            assert_eq!(stacks.values().sum::<u64>(), 1000);
            assert!(
                stacks.keys().all(|s| s.split(';').count() == 3),
                "comm and two frames: {stacks:#?}"
            );
        }
    }
}

#[test]
fn a_stream_reads_like_the_file() {
    for recording in [evil(), with_stacks()] {
        assert_stream_reads_like_file(&recording);
    }
}

/// Registers and stack bytes that lead nowhere.
fn with_stacks() -> Recording {
    let mut recording = Recording::new(Stacks::Dwarf);
    recording.comm(10, 10, b"a");
    recording.map(10, 0x10_0000, 0x1000, 0, b"/nonexistent/lib.so");
    let mut random = Random(7);
    for i in 0..20 {
        let ip = 0x10_0000 + 0x10 * i;
        let mut registers = [0; 20];
        registers.fill_with(|| 0x7000_0000 + random.next() % 0x1000);
        registers[8] = ip;
        let stack: Vec<u8> = (0..64 * i)
            .map(|_| random.next().to_le_bytes()[0])
            .collect();
        recording.sample(&Sample {
            ip,
            pid: 10,
            tid: 10,
            time: 1000 + i,
            period: 100,
            chain: &[CONTEXT_USER, ip],
            user: Some(User {
                registers: &registers,
                stack: &stack,
            }),
        });
    }
    recording
}

fn assert_stream_reads_like_file(recording: &Recording) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, stream) = (
        folder.path().join("perf.data"),
        folder.path().join("stream.data"),
    );
    std::fs::write(&file, recording.file()).expect("it can be written");
    std::fs::write(&stream, recording.stream()).expect("it can be written");
    let of_file = pjit()
        .arg("fold")
        .arg(&file)
        .output()
        .expect("the binary can be run");
    let saved = pjit()
        .arg("fold")
        .arg(&stream)
        .output()
        .expect("the binary can be run");
    assert_eq!(
        saved.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&saved.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&saved.stdout),
        String::from_utf8_lossy(&of_file.stdout)
    );
    let mut child = pjit()
        .args(["fold", "-i", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary can be run");
    let mut input = child.stdin.take().expect("a pipe");
    // In small pieces, as perf record would.
    for piece in recording.stream().chunks(100) {
        input.write_all(piece).expect("it is read");
    }
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&of_file.stdout)
    );
}

/// Paths out of a recording, and files beside it, may be anything; only regular files are read.
#[test]
fn a_fifo_does_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo.so");
    let made = Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .is_ok_and(|s| s.success());
    assert!(made, "mkfifo");
    let mut recording = Recording::new(Stacks::None);
    recording.comm(10, 10, b"a");
    for file in [
        fifo.to_str().expect("a plain path"),
        "/dev/zero",
        "/dev/tty",
        "/proc/self/mem",
        "/",
    ] {
        recording.map(10, 0x10_0000, 0x1000, 0, file.as_bytes());
        recording.sample(&Sample {
            ip: 0x10_0010,
            pid: 10,
            tid: 10,
            time: 1000 + recording.len() as u64,
            period: 1,
            chain: &[],
            user: None,
        });
    }
    let path = folder.path().join("perf.data");
    std::fs::write(&path, recording.file()).expect("it can be written");
    for name in ["jit-10.dump", "perf-10.map", "kallsyms"] {
        assert!(
            Command::new("mkfifo")
                .arg(folder.path().join(name))
                .status()
                .is_ok_and(|s| s.success())
        );
    }
    let output = crate::corrupt::limited(pjit().arg("fold").arg(&path));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(folded(&output.stdout).values().sum::<u64>(), 5);
}

#[test]
fn nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let before: Vec<_> = list(&sample("minijit", ""));
    let output = pjit()
        .args(["report", "--stdio"])
        .arg(sample("minijit", "perf.data"))
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .output()
        .expect("the binary can be run");
    assert!(output.status.success());
    assert!(list(folder.path()).is_empty());
    assert_eq!(list(&sample("minijit", "")), before);
}

fn list(folder: &std::path::Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|e| e.expect("listed").file_name())
        .collect();
    names.sort();
    names
}

#[test]
fn help_shows_the_commands() {
    let mut text = String::new();
    let mut child = pjit()
        .arg("--help")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary can be run");
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut text)
        .expect("UTF-8");
    assert!(child.wait().expect("it ends").success());
    for word in ["report", "fold"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_kernel_symbol_file_that_is_not_there_is_an_error() {
    for option in ["--vmlinux", "--kallsyms"] {
        let output = run(&["report", option, "/nonexistent/file"], "minijit");
        assert_eq!(output.status.code(), Some(1), "{option}");
        assert!(output.stdout.is_empty(), "{option}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("/nonexistent/file"), "{message}");
    }
}

/// A dump of process 7 with the function `known` in 0x100000..0x100010.
fn small_dump() -> Vec<u8> {
    let mut dump = Vec::new();
    let words = |dump: &mut Vec<u8>, words: &[u32]| {
        words
            .iter()
            .for_each(|word| dump.extend(word.to_le_bytes()));
    };
    words(&mut dump, &[0x4A69_5444, 1, 40, 62, 0, 7, 1, 0, 0, 0]);
    words(&mut dump, &[0, 56 + 6 + 16, 1, 0, 7, 7]);
    words(&mut dump, &[0x10_0000, 0, 0x10_0000, 0, 16, 0, 0, 0]);
    dump.extend(b"known\0");
    dump.extend([0x90; 16]);
    dump
}

/// `perf inject --jit` drops the anonymous memory that a process maps after its dump, so perf finds no
/// object for what lies there besides the dump's functions.
#[test]
fn memory_behind_a_dump_is_named_as_after_perf_inject() {
    let mut recording = Recording::new(Stacks::None);
    recording.comm(7, 7, b"jit");
    recording.map(7, 0x20_0000, 0x1000, 0, b"//anon");
    recording.map(7, 0x30_0000, 0x1000, 0, b"/app/jit-7.dump");
    recording.map(7, 0x10_0000, 0x1000, 0, b"//anon");
    for ip in [0x10_0004, 0x10_0800, 0x20_0800] {
        recording.sample(&Sample {
            ip,
            pid: 7,
            tid: 7,
            time: 1000,
            period: 100,
            chain: &[],
            user: None,
        });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    std::fs::write(&path, recording.file()).expect("it can be written");
    let objects = || {
        let arguments = ["report", "--stdio", "--no-children", "-g", "none", "-i"];
        let output = pjit().args(arguments).arg(&path).output();
        let output = output.expect("the binary can be run");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let rows = text
            .lines()
            .filter(|line| line.contains('%') && !line.starts_with('#'));
        let mut rows: Vec<_> = rows
            .map(|row| row.split_whitespace().skip(2).collect::<Vec<_>>().join(" "))
            .collect();
        rows.sort();
        rows
    };
    let anonymous = |at: &str| format!("[JIT] tid 7 [.] 0x0000000000{at}");
    let without_dump = ["100004", "100800", "200800"].map(anonymous);
    assert_eq!(objects(), without_dump);
    std::fs::write(folder.path().join("jit-7.dump"), small_dump()).expect("it can be written");
    let unknown = "[unknown] [.] 0x0000000000100800".to_owned();
    let known = "jit-7.dump [.] known".to_owned();
    assert_eq!(objects(), [anonymous("200800"), unknown, known]);
}

/// What can be kept of a stream can be kept of a file that comes through a pipe.
#[test]
fn a_file_may_come_through_a_pipe() {
    let bytes = std::fs::read(sample("node", "perf.data")).expect("the sample is there");
    let mut child = pjit()
        .args(["fold", "-i", "-", "--jitdump"])
        .arg(sample("node", ""))
        .arg("--kallsyms")
        .arg(sample("node", "kallsyms.gz"))
        .arg("--symfs")
        .arg(sample("node", "symfs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary can be run");
    let mut stdin = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("all was read");
    assert_eq!(
        String::from_utf8(output.stdout).expect("UTF-8"),
        stdout_of(&["fold"], "node")
    );
}

#[test]
fn a_folder_stands_for_the_recording_in_it() {
    let output = pjit()
        .args(["fold", "-i"])
        .arg(sample("minijit", ""))
        .output()
        .expect("the binary can be run");
    assert_eq!(
        String::from_utf8(output.stdout).expect("UTF-8"),
        stdout_of(&["fold"], "minijit")
    );
}

#[test]
fn a_kallsyms_that_is_none_is_an_error() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let recording = sample("minijit", "perf.data");
    let recording = recording.to_str().expect("a plain path");
    assert_eq!(
        status(&["report", "--kallsyms", manifest, recording]),
        Some(1)
    );
}
