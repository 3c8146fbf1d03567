//! What `pjit annotate` says of JIT code and of what it cannot show, on the samples and on copies of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::jitdump::{Dump, HEAD, Head};
use crate::recording::{Map, Recording, Sample, Stacks};
use crate::support::{copy_folder, pjit, sample, skip};

/// Status, standard output and errors of `pjit annotate` on a folder with a recording.
fn annotate(folder: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let output = pjit()
        .args(["annotate", "-i"])
        .arg(folder.join("perf.data"))
        .arg("--symfs")
        .arg(folder.join("symfs"))
        .args(options)
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn copy(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy_folder(&sample(name, ""), folder.path());
    folder
}

/// `reuse_B` of the sample becomes another version of `reuse_A`.
fn with_two_versions() -> tempfile::TempDir {
    let folder = copy("minijit");
    let dump = folder.path().join("jit-10624.dump");
    let mut bytes = fs::read(&dump).expect("the dump is there");
    let at = bytes.windows(7).position(|name| name == b"reuse_B");
    let at = at.expect("a name");
    bytes[at + 6] = b'A';
    fs::write(&dump, bytes).expect("it can be written");
    folder
}

#[test]
fn versions_of_a_function_are_blocks_behind_a_table() {
    let folder = with_two_versions();
    let (status, text, _) = annotate(folder.path(), &["jit::reuse_A", "--merge-versions"]);
    assert_eq!(status, Some(0));
    let mut lines = text.lines().skip_while(|line| line.is_empty());
    let title = "Versions of jit::reuse_A in jit-10624.dump for cpu-clock:pppH (50 samples)";
    assert_eq!(lines.next(), Some(title));
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let table: Vec<Vec<String>> = lines.skip(1).take(3).map(words).collect();
    let head = [
        "version", "share", "samples", "bytes", "address", "first", "last", "tier",
    ];
    assert_eq!(table[0], head);
    let first = [
        "1",
        "50.00%",
        "25",
        "16",
        "0x7fd4c2b9c0c0",
        "2976.553",
        "s",
        "2976.803",
        "s",
    ];
    assert_eq!(table[1], first);
    let second = [
        "2",
        "50.00%",
        "25",
        "17",
        "0x7fd4c2b9c0c0",
        "2976.803",
        "s",
        "the",
        "end",
    ];
    assert_eq!(table[2], second);
    for (number, code) in [(1, "imul   $0x23,%rax,%rax"), (2, "imul   $0x25,%rax,%rax")] {
        let head = text.find(&format!("version {number} of 2 with samples"));
        let code = text.find(code).expect("its code");
        assert!(head.is_some_and(|head| head < code), "{number}: {text}");
    }
    // Without the option the same blocks, without the table.
    let plain = annotate(folder.path(), &["jit::reuse_A"]).1;
    assert!(text.ends_with(&plain) && !plain.contains("Versions of"));
    // Both are the one row of the report.
    let rows = pjit()
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "-n",
            "-i",
        ])
        .arg(folder.path().join("perf.data"))
        .output()
        .expect("it runs");
    let rows = String::from_utf8_lossy(&rows.stdout).into_owned();
    let row = rows
        .lines()
        .find(|line| line.contains("reuse_A"))
        .expect("a row");
    assert!(words(row).contains(&"50".to_owned()), "{row}");
}

#[test]
fn files_without_names_say_why() {
    let whole = copy("native");
    let (status, _, said) = annotate(whole.path(), &["--no-source"]);
    assert_eq!(
        (status, said.contains("no function")),
        (Some(0), false),
        "{said}"
    );
    let program = whole.path().join("symfs/tmp/pjit-sample/native/hot-cpp");
    let about = |why: &str| {
        format!("33.3% of the samples are in no function: /tmp/pjit-sample/native/hot-cpp {why}")
    };

    // Another build: a byte of its build ID.
    let bytes = fs::read(&program).expect("a program");
    let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes.windows(note.len()).position(|bytes| bytes == note);
    let mut other = bytes.clone();
    other[at.expect("a build ID") + note.len()] ^= 1;
    fs::write(&program, &other).expect("written");
    let (status, _, said) = annotate(whole.path(), &["--no-source"]);
    assert_eq!(status, Some(0));
    assert!(
        said.contains(&about("is another build than the recorded one")),
        "{said}"
    );
    let (status, out, said) = annotate(whole.path(), &["main"]);
    assert_eq!((status, out.as_str()), (Some(1), ""));
    assert!(
        said.contains("no function with samples matches 'main'; "),
        "{said}"
    );
    assert!(said.contains(&about("is another build")), "{said}");

    // Gone.
    fs::remove_file(&program).expect("removed");
    let said = annotate(whole.path(), &["--no-source"]).2;
    assert!(
        said.contains(&about("is not at hand; put the recorded file")),
        "{said}"
    );

    fs::write(&program, &bytes).expect("written");
    let strip = Command::new("strip").arg(&program).output();
    if !strip.is_ok_and(|output| output.status.success()) {
        return skip("objdump", "no strip here");
    }
    let said = annotate(whole.path(), &["--no-source"]).2;
    assert!(
        said.contains(&about("is stripped: its debug file")),
        "{said}"
    );
}

#[test]
fn what_was_asked_for_and_has_no_code_is_an_error() {
    let folder = copy("wasmtime");
    // The kernel's functions have no code here, and one of the module's has.
    let (_, all, said) = annotate(folder.path(), &["--no-source"]);
    let kernel = said.lines().find_map(|line| line.strip_suffix(
        ": no code: [kernel.kallsyms] has no code at hand: give the recorded kernel's vmlinux with -k FILE (kallsyms has names only)",
    ));
    let kernel = kernel
        .and_then(|line| line.rsplit_once(' '))
        .expect("a function of the kernel")
        .1;
    assert!(all.contains("<addmul>:"));
    let (status, out, said) = annotate(folder.path(), &["-s", "addmul", "-s", kernel]);
    assert_eq!(status, Some(1), "{said}");
    assert!(out.contains("<addmul>:"), "what can be shown is");
    assert!(said.contains(&format!("not shown: {kernel}")), "{said}");
    let (status, out, said) = annotate(folder.path(), &["-s", kernel]);
    assert_eq!((status, out.as_str()), (Some(1), ""), "{said}");

    // A perf map has no bytes.
    let dump = folder.path().join("jit-10150.dump");
    fs::remove_file(dump).expect("removed");
    let map = folder.path().join("perf-10150.map");
    fs::write(&map, "7fa23b3b1000 1000 whatever\n").expect("written");
    let map = map.to_str().expect("a plain path");
    let (status, _, said) = annotate(folder.path(), &["whatever", "--perf-map", map]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("no bytes: the perf map gives addresses only; record with a dump"),
        "{said}"
    );
}

#[test]
fn lines_of_webassembly_are_marked_where_neighbours_disagree() {
    let folder = sample("wasm", "");
    let source = sample("wasm", "source");
    let source = ["--source-root", source.to_str().expect("a plain path")];
    let (status, text, said) = annotate(&folder, &["-l", "hot::spin", source[0], source[1]]);
    assert_eq!(status, Some(0), "{said}");
    let head = text
        .lines()
        .find(|line| line.contains("JIT code (wasmtime)"));
    let head = head.expect("a head");
    let lines = "lines from hot.wasm: 19% exact, 81% between two lines (~)";
    assert!(head.ends_with(lines), "{head}");
    // 18.3 % of the samples in an instruction with a position of its own, the rest not.
    assert!(
        text.contains("   18.34 hot.rs:22\n") && text.contains("   40.17 ~hot.rs:22\n"),
        "{text}"
    );
    assert!(
        text.contains(" // ~hot.rs:21\n")
            && text.contains("table[k] = table[k].wrapping_add(s / 7);")
    );
    // Constants behind the code are none of it.
    let rows: Vec<&str> = text.lines().rev().take(3).collect();
    assert!(
        rows[0].contains(".quad 0x") && rows[2].ends_with(".byte 0x00"),
        "{rows:?}"
    );
}

#[test]
fn webassembly_without_a_module_has_positions() {
    let folder = copy("wasm");
    fs::remove_file(folder.path().join("hot.wasm")).expect("removed");
    let (_, text, _) = annotate(folder.path(), &["-l", "hot::spin"]);
    assert!(text.contains(" // wasm[0]+0x181\n"), "{text}");
    assert!(
        !text.contains("lines from") && !text.contains("4294967295"),
        "{text}"
    );
}

/// One place with `turn` in turns with `other`, each made anew thrice, then `turn` of the same bytes and another line.
fn reloaded() -> tempfile::TempDir {
    const PID: u32 = 77;
    const NOW: u64 = 9_000_000_000_000;
    const CODE: u64 = 0x7f12_0000_4000;
    let mut dump = Dump::new(&Head {
        pid: PID,
        time: NOW + 3,
        ..HEAD
    });
    let mut recording = Recording::new(Stacks::None);
    recording.fork(PID, 1, NOW);
    recording.exec(PID, b"app", NOW + 1);
    let mut map = |start, file: &[u8]| recording.map_at(&Map::page(NOW + 2, PID, start, file));
    map(0x30_0000, b"/nonexistent/jit-77.dump");
    map(CODE, b"//anon");
    let loads = [("turn", 1), ("other", 5)].repeat(3);
    for (index, (name, line)) in (0..).zip(loads.into_iter().chain([("turn", 9)])) {
        let time = NOW + 1_000_000_000 * (index + 1);
        let lines = [0, 4].map(|at| (CODE + at, [line + at as u32 / 4, 0], &b"a.lang"[..]));
        dump.debug_at(CODE, &lines);
        dump.load_of(PID, time, CODE, index, name.as_bytes(), &[0x90; 16]);
        for (after, offset) in (1..).zip([2, 4, 6]) {
            recording.sample(&Sample {
                ip: CODE + offset,
                pid: PID,
                tid: PID,
                time: time + 1_000_000 * after,
                period: 1,
                chain: &[],
                user: None,
            });
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("symfs")).expect("a folder");
    fs::write(folder.path().join("perf.data"), recording.file()).expect("written");
    fs::write(folder.path().join("jit-77.dump"), dump.0).expect("written");
    folder
}

#[test]
fn code_that_was_loaded_again_is_one_with_the_times_of_all_loads() {
    let folder = reloaded();
    let (status, text, said) = annotate(folder.path(), &["-l", "turn"]);
    assert_eq!(status, Some(0), "{said}");
    let heads = text.lines().filter_map(|line| line.split_once("JIT code"));
    let heads: Vec<&str> = heads.map(|(_, head)| head).collect();
    let place = "16 bytes at 0x7f1200004000";
    let wanted = [
        format!(
            ", version 1 of 2 with samples: {place}, from 9001.000 s to 9006.000 s, loaded 3 times"
        ),
        format!(", version 2 of 2 with samples: {place}, from 9007.000 s to the end"),
    ];
    assert_eq!(heads, wanted);
    // Each has its own lines, though the bytes are the same.
    for line in [
        "66.67 a.lang:2",
        "33.33 a.lang:1",
        "66.67 a.lang:10",
        "33.33 a.lang:9",
    ] {
        assert!(
            text.lines().any(|shown| shown.trim() == line),
            "{line}: {text}"
        );
    }
}
