//! From dumps on disk and markers in a recording to names at addresses and times.

use super::super::{Absence, JitHit, JitMatch};
use super::*;
use crate::address::Avma;
use crate::arch::Arch;
use crate::ids::IndexSlice;
use crate::jitdump::debug_info::line_at;
use crate::jitdump::testing::{DumpWriter, eh_frame, eh_frame_header};
use crate::perfdata::ClockId;
use crate::runtimes::{Habit, Producer};

const A: u64 = 0x7f00_0000_0000;
const B: u64 = 0x7f00_0010_0000;
const P: ProcessId = ProcessId(0);
const Q: ProcessId = ProcessId(1);
const R: ProcessId = ProcessId(2);
/// The recording begins a while after boot, so that nothing is near time zero.
const T: u64 = 1_000_000_000_000;

/// A folder with a recording, and what was said about it.
struct Case {
    dir: tempfile::TempDir,
    store: Store,
    diag: Diagnostics,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        Self {
            dir,
            store: Store::new(),
            diag: Diagnostics::new(),
        }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("create");
        std::fs::write(&path, bytes).expect("write");
        path
    }

    fn search(&self) -> JitSearch {
        let nowhere = self.dir.path().join("nowhere");
        JitSearch {
            recording_dir: self.dir.path().into(),
            cwd: nowhere.clone(),
            symfs: Some(nowhere),
            ..JitSearch::default()
        }
    }

    /// A builder for a recording made with `-k mono`.
    fn builder(&self) -> JitBuilder<'_> {
        self.builder_with(self.search(), Some(ClockId::MONOTONIC))
    }

    fn builder_with(&self, search: JitSearch, clock: Option<ClockId>) -> JitBuilder<'_> {
        let mut builder =
            JitBuilder::new(&self.store, search, RecordingClock { clock, wall: None });
        builder.seen_until(time(10_000));
        builder
    }

    fn warnings(&self) -> String {
        self.diag
            .take()
            .iter()
            .map(|(_, line)| line.as_str())
            // What was looked for comes last.
            .take_while(|line| !line.starts_with("looked for"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Milliseconds after the begin of the recording.
fn time(ms: u64) -> Timestamp {
    Timestamp(raw(ms))
}

fn raw(ms: u64) -> u64 {
    T + ms * 1_000_000
}

/// The name at an address, if any.
fn name_at(index: &JitIndex<'_>, process: ProcessId, at: u64, ms: u64) -> Option<String> {
    index
        .lookup(process, Avma(at), time(ms))
        .map(|hit| name_of(index, hit))
}

fn name_of(index: &JitIndex<'_>, hit: JitHit) -> String {
    String::from_utf8_lossy(index.code(hit.code).name()).into_owned()
}

fn unmapped(
    index: &JitIndex<'_>,
    process: ProcessId,
    at: u64,
    ms: u64,
) -> Option<(String, JitMatch)> {
    let (hit, _) = index.lookup_unmapped(process, Avma(at), time(ms))?;
    Some((name_of(index, hit), hit.how))
}

const CODE: &[u8] = &[0x90; 16];

#[test]
fn loads_moves_and_reuse_are_told_apart_by_time() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"first", CODE)
        .moved(raw(20), 7, A, B, 16, 0)
        .load(raw(30), 7, A + 8, 1, b"second", CODE)
        .moved(raw(40), 7, A + 8, A, 16, 9)
        .close(raw(50));
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    assert!(builder.marker(P, 7, b"/app/jit-7.dump", time(1)));
    assert!(!builder.marker(P, 7, b"/usr/lib/libc.so.6", time(1)));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    let at = |at, ms| name_at(&index, P, at, ms);
    assert_eq!(
        [at(A, 9), at(A, 10), at(A + 15, 19), at(A + 16, 15)],
        [None, Some("first".into()), Some("first".into()), None]
    );
    assert_eq!(
        [at(A, 20), at(B + 3, 19), at(B + 3, 20)],
        [None, None, Some("first".into())]
    );
    // The move of an index that is not there changes nothing.
    assert_eq!(
        [at(A + 9, 35), at(A + 9, 45)],
        [Some("second".into()), Some("second".into())]
    );
    let hit = index.lookup(P, Avma(B + 3), time(25)).expect("moved");
    assert_eq!((hit.offset, index.code(hit.code).start()), (3, Avma(A)));
    assert_eq!(index.objects()[0].path(), b"/app/jit-7.dump");
    assert_eq!(index.objects()[0].file_name(), b"jit-7.dump");
    assert_eq!(case.warnings(), "");
}

#[test]
fn records_written_late_are_found_ahead() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(100), 7, A, 0, b"late", CODE)
        .load(raw(200), 7, A, 1, b"later", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(name_at(&index, P, A, 99), None);
    assert_eq!(
        unmapped(&index, P, A, 99),
        Some(("late".into(), JitMatch::Late))
    );
    assert_eq!(unmapped(&index, P, A + 16, 99), None);
    assert_eq!(index.latest(), 1_000_000);
}

/// A record that was written late names what ran just before, and not whatever ran there long ago.
#[test]
fn what_ran_long_before_a_load_is_other_code() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(5000), 7, A, 0, b"late", CODE)
        .load(raw(5000), 7, B, 1, b"behind a file", CODE)
        .load(raw(5000), 7, B + 64, 2, b"of the parent", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.exec_file_mapping(P, AvmaRange::new(Avma(B), 32), time(4800));
    builder.fork(P, Q, time(2000));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    let is_named = |process, at, ms| unmapped(&index, process, at, ms).is_some();
    assert_eq!([3999, 4000].map(|ms| is_named(P, A, ms)), [false, true]);
    assert_eq!([4700, 4900].map(|ms| is_named(P, B, ms)), [false, true]);
    assert_eq!(
        [2500, 4900, 6000].map(|ms| is_named(Q, B + 64, ms)),
        [false; 3]
    );
}

#[test]
fn files_end_code_and_anonymous_memory_does_not() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"a", CODE)
        .load(raw(10), 7, B, 1, b"b", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.anonymous((P, 7), AvmaRange::new(Avma(B), 0x1000), 0, time(20));
    builder.exec_file_mapping(P, AvmaRange::new(Avma(A + 4), 0x1000), time(20));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 19), name_at(&index, P, A, 20)],
        [Some("a".into()), None]
    );
    assert_eq!(name_at(&index, P, B, 30), Some("b".into()));
}

/// Most runtimes make their code writable and executable again. wasmtime maps memory anew for each module, and of what another
/// engine compiled no dump may tell.
#[test]
fn memory_that_is_mapped_again_has_other_code_where_runtimes_map_once() {
    let again = |name: &[u8], (backing, other): (u64, u64), at: u64| {
        let case = Case::new();
        let mut dump = DumpWriter::new(7, raw(1));
        dump.load(raw(10), 7, A, 0, name, CODE)
            .load(raw(1_500), 7, A, 1, name, b"other code");
        dump.load(raw(10), 7, B, 2, name, CODE);
        case.file("jit-7.dump", &dump.bytes);
        let mut builder = case.builder();
        builder.marker(P, 7, b"/app/jit-7.dump", time(1));
        let range = AvmaRange::new(Avma(A), 0x1000);
        builder.anonymous((P, 7), range, backing, time(5));
        builder.anonymous((P, 7), AvmaRange::new(Avma(B), 0x1000), 0, time(5));
        builder.anonymous((P, 7), range, other, time(at));
        let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
        let name = Some(String::from_utf8_lossy(name).into_owned());
        assert_eq!(name_at(&index, P, B, 2_000), name, "never mapped again");
        [at - 1, at + 1, 1_600].map(|when| name_at(&index, P, A, when) == name)
    };
    let (wasm, js) = (b"wasm[0]::function[3]", b"JS:*f a.js:1:1");
    assert_eq!(again(wasm, (0, 0), 500), [true, false, true]);
    assert_eq!(again(js, (0, 0), 500), [true; 3]);
    // A module may live for a moment: it was told of when its memory was there.
    assert_eq!(again(wasm, (0, 0), 60), [true, false, true]);
    // Other memory is certain, whoever mapped it.
    for backings in [(0, 12), (12, 0), (12, 13)] {
        assert_eq!(again(js, backings, 500), [true, false, true]);
        assert_eq!(again(js, backings, 60), [true; 3]);
    }
    assert_eq!(again(js, (12, 12), 500), [true; 3]);

    // What is told of just before it can run is not what was there before.
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(200), 7, A, 0, wasm, CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    for at in [5, 230] {
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(at));
    }
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert!(
        [210, 240]
            .map(|when| name_at(&index, P, A, when))
            .iter()
            .all(Option::is_some)
    );

    // Code may run before the dump tells of it, but not before its memory is there.
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, wasm, CODE)
        .load(raw(900), 7, A, 1, wasm, b"other code");
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    for at in [5, 500, 890] {
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(at));
    }
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    let told = [501, 889, 891].map(|when| unmapped(&index, P, A, when).is_some());
    assert_eq!(told, [false, false, true]);
    let told = [499, 501, 901].map(|when| name_at(&index, P, A, when).is_some());
    assert_eq!(told, [true, false, true]);
}

#[test]
fn a_perf_map_of_a_runtime_that_maps_once_tells_nothing_of_memory_that_had_other_code() {
    let names = |name: &str, again: &str| {
        let case = Case::new();
        let lines = format!("{A:x} 100 {name}[1]\n{B:x} 100 {name}[2]\n{again}");
        case.file("perf-7.map", lines.as_bytes());
        let mut builder = case.builder();
        for range in [A, B].map(|start| AvmaRange::new(Avma(start), 0x1000)) {
            builder.anonymous((P, 7), range, 0, time(5));
        }
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(500));
        let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
        [(A, 400), (A, 600), (B, 600)].map(|(at, when)| unmapped(&index, P, at, when).is_some())
    };
    assert_eq!(names("wasm[0]::function", ""), [false, false, true]);
    assert_eq!(names("JS:*f", ""), [true; 3]);
    // Nobody knows which line is of which time.
    let retold = format!("{A:x} 100 wasm[0]::function[3]\n");
    assert_eq!(names("wasm[0]::function", &retold), [true; 3]);
}

#[test]
fn children_have_what_the_parent_had() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"shared", CODE);
    dump.load(raw(30), 7, A, 1, b"parent only", CODE);
    // The child keeps the file open and writes into it.
    dump.load(raw(40), 8, B, 0, b"child only", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.fork(P, Q, time(20));
    builder.exec(Q, time(60));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    assert_eq!(name_at(&index, Q, A, 25), Some("shared".into()));
    assert_eq!(name_at(&index, Q, A, 35), Some("shared".into()));
    assert_eq!(name_at(&index, P, A, 35), Some("parent only".into()));
    assert_eq!(
        [name_at(&index, P, B, 45), name_at(&index, Q, B, 45)],
        [None, Some("child only".into())]
    );
    assert_eq!(
        [name_at(&index, Q, A, 60), name_at(&index, Q, B, 60)],
        [None, None]
    );
    assert_eq!(
        unmapped(&index, Q, A, 60),
        None,
        "another program runs there now"
    );
}

/// Runtimes that ask for their process once tell the parent's behind a fork; the thread tells whose the code is.
#[test]
fn code_is_of_the_process_whose_thread_wrote_it() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"shared", CODE);
    let mut load = |ms, tid: u32, name: &[u8]| {
        let record = dump.bytes.len();
        dump.load(raw(ms), 7, A, 1, name, CODE);
        dump.bytes[record + 20..record + 24].copy_from_slice(&tid.to_le_bytes());
    };
    load(30, 8, b"child's");
    load(40, 7, b"parent's");
    // A thread that leads no process, and a process that is no child.
    load(50, 70, b"of a thread");
    load(60, 9, b"of who knows");
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.fork(P, Q, time(20));
    let index = builder.finish(IndexSlice::new(&[7, 8, 9]), &case.diag);
    let at = |process| [25, 35, 45, 55, 65].map(|ms| name_at(&index, process, A, ms));
    let named = |names: [&str; 5]| names.map(|name| Some(name.to_owned()));
    let parent = [
        "shared",
        "shared",
        "parent's",
        "of a thread",
        "of who knows",
    ];
    assert_eq!(at(P), named(parent));
    let child = ["shared", "child's", "child's", "child's", "child's"];
    assert_eq!(at(Q), named(child));
}

/// What a parent loads after a fork lies in its own memory, however soon.
#[test]
fn what_a_parent_loads_after_a_fork_is_not_the_childs() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(30), 7, A, 0, b"parent's", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.fork(P, Q, time(20));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    assert_eq!([25, 35].map(|ms| unmapped(&index, Q, A, ms)), [None, None]);
    let late = Some(("parent's".to_owned(), JitMatch::Late));
    assert_eq!(unmapped(&index, P, A, 25), late);
}

#[test]
fn appended_files_keep_only_the_records_of_this_process() {
    let case = Case::new();
    let mut dump = DumpWriter::new(99, raw(1) - 500_000_000_000);
    dump.load(raw(1) - 500_000_000_000, 99, A, 0, b"other pid", CODE);
    dump.load(raw(1) - 400_000_000_000, 7, A, 0, b"same pid", CODE);
    dump.load(raw(10), 7, B, 0, b"this run", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 50), name_at(&index, P, B, 50)],
        [None, Some("this run".into())]
    );
    assert!(
        case.warnings().contains("2 of 3 functions"),
        "the user is told"
    );
}

#[test]
fn a_namespaced_process_is_known_by_its_inner_pid() {
    let case = Case::new();
    let mut dump = DumpWriter::new(1, raw(1));
    dump.load(raw(10), 1, A, 0, b"inside", CODE);
    case.file("jit-1.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(Q, 4711, b"/app/jit-1.dump", time(1));
    // The host's pid 1 runs as well.
    let index = builder.finish(IndexSlice::new(&[1, 4711]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 20), name_at(&index, Q, A, 20)],
        [None, Some("inside".into())]
    );
    assert_eq!(index.objects()[0].pid, 4711);
}

/// Who gathers dumps out of containers names them by the ids that the recording has.
#[test]
fn dumps_of_several_namespaces_lie_in_one_folder() {
    let case = Case::new();
    for (pid, name) in [(4711, b"in one"), (4712, b"in two")] {
        let mut dump = DumpWriter::new(1, raw(1));
        dump.load(raw(10), 1, A, 0, name, CODE);
        case.file(&format!("jit-{pid}.dump"), &dump.bytes);
    }
    let mut builder = case.builder();
    builder.marker(P, 4711, b"/tmp/jit-1.dump", time(1));
    builder.marker(Q, 4712, b"/tmp/jit-1.dump", time(2));
    let index = builder.finish(IndexSlice::new(&[4711, 4712]), &case.diag);
    let names = [P, Q].map(|process| name_at(&index, process, A, 20).unwrap_or_default());
    assert_eq!(names, ["in one", "in two"]);
    assert_eq!(case.warnings(), "");
}

/// Of two files under one path, one is at hand.
#[test]
fn a_dump_is_not_given_to_its_namesakes_process() {
    for (inodes, expected) in [
        (None, ["", "second"]),
        (Some(true), ["second", ""]),
        (Some(false), ["", "second"]),
    ] {
        let case = Case::new();
        let mut dump = DumpWriter::new(1, raw(1001));
        dump.load(raw(1010), 1, A, 0, b"second", CODE);
        let path = case.file("jit-1.dump", &dump.bytes);
        let meta = std::fs::metadata(path).expect("it is there");
        let own = std::os::unix::fs::MetadataExt::ino(&meta);
        let (first, second) = match inodes {
            // A copy has another inode than both: its times tell.
            None => (own + 1, own + 2),
            Some(true) => (own, own + 2),
            Some(false) => (own + 1, own),
        };
        let mut builder = case.builder();
        for (process, pid, ms, inode) in [(P, 4711, 1, first), (Q, 4712, 1000, second)] {
            builder.marker(process, pid, b"/tmp/jit-1.dump", time(ms));
            builder.marked_file(process, inode);
        }
        let index = builder.finish(IndexSlice::new(&[4711, 4712]), &case.diag);
        let names = [P, Q].map(|process| name_at(&index, process, A, 1020).unwrap_or_default());
        assert_eq!(names, expected, "{inodes:?}");
        assert_eq!(index.absent().len(), 1, "the other's is missing");
    }
}

/// Bun's, made by mkstemp: found by its recorded name, beside the recording, and under a proper name.
#[test]
fn a_dump_may_have_the_name_of_a_temporary_file() {
    for file in ["jit-42-42-2qVUV1", "jit-42.dump"] {
        let case = Case::new();
        let mut dump = DumpWriter::new(42, raw(1));
        dump.load(raw(10), 42, A, 0, b"JSC-DFG: fib[Call] /a.js:1:1", CODE);
        case.file(file, &dump.bytes);
        let mut builder = case.builder();
        assert!(builder.marker(P, 42, b"/tmp/jit-42-42-2qVUV1", time(1)));
        let index = builder.finish(IndexSlice::new(&[42]), &case.diag);
        assert!(name_at(&index, P, A, 20).is_some(), "{file}");
    }
}

/// Slices of a recording that goes on, or a recording that is ended before its program.
#[test]
fn a_program_may_go_on_after_its_recording() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"first", CODE)
        .load(raw(2000), 7, A, 1, b"second", CODE)
        .load(raw(90_000), 7, A, 2, b"after the end", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    let names = [20, 3000].map(|ms| name_at(&index, P, A, ms).unwrap_or_default());
    assert_eq!(names, ["first", "second"]);
    assert_eq!(case.warnings(), "");
}

#[test]
fn a_dump_that_is_being_written_is_not_damaged() {
    let pid = std::process::id();
    // A small file is read; a large one is mapped, here by the process that the recording tells of.
    for (size, is_growing) in [(20_000, true), (16, false)] {
        let case = Case::new();
        let mut dump = DumpWriter::new(pid, raw(1));
        dump.load(raw(10), pid, A, 0, b"first", &vec![0x90; size])
            .load(raw(20), pid, B, 1, b"half of it", CODE);
        case.file(
            &format!("jit-{pid}.dump"),
            &dump.bytes[..dump.bytes.len() - 4],
        );
        let mut builder = case.builder();
        builder.marker(P, pid, format!("/app/jit-{pid}.dump").as_bytes(), time(1));
        let index = builder.finish(IndexSlice::new(&[pid]), &case.diag);
        let stats = &index.objects()[0].stats;
        assert_eq!((stats.is_growing, stats.cut.is_some()), (is_growing, true));
        assert_eq!(case.diag.warnings().is_empty(), is_growing);
    }
}

#[test]
fn a_file_that_grew_is_being_written() {
    let case = Case::new();
    let path = case.file("jit-7.dump", b"abc");
    let grown = |bytes: &'static [u8]| {
        let file = super::super::found::FoundFile {
            path: path.clone(),
            ..super::super::found::FoundFile::of_test(bytes)
        };
        file.has_grown()
    };
    assert_eq!([grown(b"ab"), grown(b"abc")], [true, false]);
}

#[test]
fn a_name_of_several_numbers_is_a_dump_of_the_process_that_mapped_it() {
    // JavaScriptCore puts the thread first; whoever puts it last is understood as well, in a namespace too.
    for (name, inner) in [
        ("jit-43-42.dump", 42),
        ("jit-42-43.dump", 42),
        ("jit-2-1.dump", 1),
        ("jit-1-2.dump", 1),
    ] {
        let case = Case::new();
        let mut dump = DumpWriter::new(inner, raw(1));
        dump.load(raw(10), inner, A, 0, b"JSC-DFG: fib[Call] /a.js:1:1", CODE);
        case.file(name, &dump.bytes);
        let mut builder = case.builder();
        assert!(builder.marker(Q, 42, format!("/app/{name}").as_bytes(), time(1)));
        let index = builder.finish(IndexSlice::new(&[7, 42]), &case.diag);
        let expected = Some("JSC-DFG: fib[Call] /a.js:1:1".into());
        assert_eq!(name_at(&index, Q, A, 20), expected, "{name}");
        assert_eq!(case.warnings(), "", "{name}");
    }
}

#[test]
fn a_name_alone_makes_no_function_of_a_wasm_module_pythons() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"py::f", CODE)
        .load(raw(10), 7, A + 64, 1, b"py::ns::f", CODE)
        .load(raw(10), 7, A + 128, 2, b"py::f:/x.py", CODE)
        .load(
            raw(10),
            7,
            B,
            3,
            b"wasm[0]::array_to_wasm_trampoline[3]",
            CODE,
        )
        .load(raw(10), 7, B + 64, 4, b"wasm[0]::function[3]", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    let producer = |at| {
        let hit = index.lookup(P, Avma(at), time(20)).expect("loaded");
        index.code(hit.code).producer()
    };
    // Nobody but wasmtime wrote into the file, whatever the module calls its functions.
    for at in [A, A + 64, A + 128] {
        assert_eq!(producer(at), Producer::Wasmtime, "{at:#x}");
    }
}

#[test]
fn names_in_a_shared_perf_map_are_believed_where_more_than_one_says_so() {
    let of = |map: &str, name: &str| {
        let codes = super::super::codes::map_of(map.as_bytes());
        let mut all = codes.all();
        let code = all.find(|code| code.name() == name.as_bytes());
        code.map(|code| (code.producer(), code.habit()))
            .expect("it is there")
    };
    let plain = |map: &str| of(map, "main").0;
    // What any compiler of WebAssembly writes down: functions by their names in the module.
    let module = "1000 40 main\n1040 30 py::f\n1070 10 py::g:/x.py\n1080 60 JS:*h /a.js:1:1\n";
    assert_eq!(plain(module), Producer::Unknown);
    for name in ["py::f", "py::g:/x.py", "JS:*h /a.js:1:1"] {
        assert_eq!(
            of(module, name),
            (Producer::Unknown, Habit::Unknown),
            "{name}"
        );
    }
    // wasmtime's own names tell the file, and python's trampolines are one like the other.
    let both = format!(
        "{module}2000 50 wasm[0]::array_to_wasm_trampoline[3]\n3000 10 py::work:/w/hot.py\n"
    );
    assert_eq!(plain(&both), Producer::Wasmtime);
    let python = (Producer::CPython, Habit::PyTrampoline);
    assert_eq!(of(&both, "py::work:/w/hot.py"), python);
    let wasm = (Producer::Wasmtime, Habit::FramePointers);
    assert_eq!(of(&both, "py::f"), wasm);
    assert_eq!(of(&both, "JS:*h /a.js:1:1"), wasm);
}

#[test]
fn lives_of_one_pid_are_told_apart() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"first life", CODE)
        .load(raw(3010), 7, A, 0, b"second life", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    let parent = ProcessId(2);
    builder.fork(parent, P, time(0));
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.fork(parent, Q, time(3000));
    builder.marker(Q, 7, b"/app/jit-7.dump", time(3001));
    let index = builder.finish(IndexSlice::new(&[7, 7, 6]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 5000), name_at(&index, Q, A, 5000)],
        [Some("first life".into()), Some("second life".into())]
    );
}

#[test]
fn without_k_mono_the_clock_is_measured() {
    let case = Case::new();
    // 5 ms ahead of the recording's clock.
    let mut dump = DumpWriter::new(7, raw(6));
    dump.load(raw(15), 7, A, 0, b"f", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder_with(case.search(), None);
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 9), name_at(&index, P, A, 11)],
        [None, Some("f".into())]
    );
    assert_eq!(
        index.summary(),
        ["jit-7.dump: 1 function, clock shifted by 4.98 ms, known to 0.04 ms"]
    );
    assert!(case.warnings().contains("record with -k mono"));
}

#[test]
fn without_a_usable_time_the_last_owner_is_shown_at_all_times() {
    let case = Case::new();
    // Of no clock the recording knows: long behind its end.
    let later = raw(1_000_000_000);
    let mut dump = DumpWriter::new(7, 0);
    dump.load(later + 5, 7, A, 0, b"old", CODE)
        .load(later + 6, 7, A, 1, b"new", CODE)
        .load(later + 7, 7, B, 2, b"only", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 2), name_at(&index, P, B, 9000)],
        [Some("new".into()), Some("only".into())]
    );
    assert!(index.summary()[0].contains("times not used"));
    assert!(case.warnings().contains("may be misnamed"));
}

#[test]
fn dumps_are_found_without_a_marker_and_asked_for_files_win() {
    let case = Case::new();
    let dump = |name: &[u8]| {
        let mut dump = DumpWriter::new(7, raw(1));
        dump.load(raw(10), 7, A, 0, name, CODE);
        dump.bytes
    };
    case.file("jit-7.dump", &dump(b"beside"));
    let index = case.builder().finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(name_at(&index, P, A, 20), Some("beside".into()));
    let foreign = case.builder().finish(IndexSlice::new(&[8]), &case.diag);
    assert_eq!(name_at(&foreign, P, A, 20), None);
    let asked = case.file("elsewhere/jit-7.dump", &dump(b"asked for"));
    for jitdumps in [
        vec![asked.clone()],
        vec![asked.parent().expect("a folder").into()],
    ] {
        let mut builder = case.builder_with(
            JitSearch {
                jitdumps,
                ..case.search()
            },
            Some(ClockId::MONOTONIC),
        );
        builder.marker(P, 7, b"/app/jit-7.dump", time(1));
        let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
        assert_eq!(name_at(&index, P, A, 20), Some("asked for".into()));
    }
    assert_eq!(case.warnings(), "");
    let nonsense = case.file("notes.txt", b"no dump at all");
    let search = JitSearch {
        jitdumps: vec![nonsense],
        ..case.search()
    };
    let _ = case
        .builder_with(search, None)
        .finish(IndexSlice::new(&[7]), &case.diag);
    assert!(case.warnings().contains("not a jitdump"));
}

/// One that a program left in the working folder whose number in a container is that of a thread of the kernel.
#[test]
fn threads_of_the_kernel_have_no_dumps() {
    let case = Case::new();
    let mut dump = DumpWriter::new(2, raw(1));
    dump.load(raw(10), 2, A, 0, b"left", CODE);
    case.file("jit-2.dump", &dump.bytes);
    for has_code in [false, true] {
        let mut builder = case.builder();
        builder.may_be_kernels(P);
        if has_code {
            builder.exec_file_mapping(P, AvmaRange::new(Avma(B), 0x1000), time(1));
        }
        let index = builder.finish(IndexSlice::new(&[2]), &case.diag);
        assert_eq!(name_at(&index, P, A, 20).is_some(), has_code);
    }
    assert_eq!(case.warnings(), "");
}

/// A process that ends by `_exit` has made its dump and written nothing of it.
#[test]
fn an_empty_dump_is_no_missing_one() {
    let case = Case::new();
    case.file("jit-7.dump", b"");
    let mut builder = case.builder();
    builder.marker(P, 7, b"/tmp/jit-7.dump", time(1));
    builder.marker(Q, 8, b"/tmp/jit-8.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    let found: Vec<_> = index
        .absent()
        .iter()
        .map(|absent| (absent.pid, absent.why))
        .collect();
    assert_eq!(found, [(7, Absence::Empty), (8, Absence::Missing)]);
    let warnings = case.warnings();
    assert!(
        warnings.contains("jit-7.dump: empty: process 7 ended without writing"),
        "{warnings}"
    );
}

#[test]
fn a_file_of_another_process_under_the_recorded_name_is_passed_over() {
    let case = Case::new();
    let (mut right, mut wrong) = (DumpWriter::new(7, raw(1)), DumpWriter::new(6, raw(1)));
    right.load(raw(10), 7, A, 0, b"right", CODE);
    wrong.load(raw(10), 6, A, 0, b"wrong", CODE);
    case.file("root/app/jit-7.dump", &wrong.bytes);
    case.file("jit-7.dump", &right.bytes);
    let search = JitSearch {
        symfs: Some(case.dir.path().join("root")),
        ..case.search()
    };
    let mut builder = case.builder_with(search, Some(ClockId::MONOTONIC));
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(name_at(&index, P, A, 20), Some("right".into()));
}

#[test]
fn a_missing_dump_is_reported_once() {
    let case = Case::new();
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.marker(P, 7, b"/app/jit-7.dump", time(2));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert!(index.objects().is_empty());
    assert_eq!(case.warnings().lines().count(), 1);
}

#[test]
fn injected_recordings_lead_back_to_the_dump() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"f", CODE)
        .load(raw(20), 7, B, 1, b"g", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    assert!(builder.marker(P, 7, b"/app/jitted-7-0.so", time(10)));
    assert!(builder.marker(P, 7, b"/app/jitted-7-1.so", time(20)));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 10), name_at(&index, P, B, 20)],
        [Some("f".into()), Some("g".into())]
    );
}

#[test]
fn names_of_one_function_of_a_component_are_one() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"wasm[0]::function[24]::_ZN3fibE", CODE);
    dump.load(raw(11), 7, A, 1, b"fib::fib", CODE);
    dump.load(raw(12), 7, A, 2, b"wasm[2]::function[24]::_ZN3fibE", CODE);
    case.file("jit-7.dump", &dump.bytes);
    // V8's trampolines are alike and mean different functions.
    let mut other = DumpWriter::new(8, raw(1));
    other.load(raw(10), 8, B, 0, b"JS:~f a.js:1:1", CODE).load(
        raw(20),
        8,
        B,
        1,
        b"JS:~g a.js:2:1",
        CODE,
    );
    case.file("jit-8.dump", &other.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.marker(Q, 8, b"/app/jit-8.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 10), name_at(&index, P, A, 50)],
        [Some("fib::fib".into()), Some("fib::fib".into())]
    );
    assert_eq!(
        [name_at(&index, Q, B, 15), name_at(&index, Q, B, 20)],
        [Some("JS:~f a.js:1:1".into()), Some("JS:~g a.js:2:1".into())]
    );
    let stats = &index.objects()[0].stats;
    assert_eq!((stats.repeated, stats.counts.loads), (2, 3));
}

/// A module in one mapping, and another of its length that came `pause` ms later; samples at these addresses. What the
/// other is called, and what was said.
fn copied(code: &[u8], pause: u64, ran: &[u64], ran_in: &[u64]) -> (Option<String>, String) {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A + 0x100, 0, b"wasm[0]::function[1]", code);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x3000), 0, time(5));
    builder.anonymous((P, 7), AvmaRange::new(Avma(B), 0x3000), 0, time(5 + pause));
    builder.anonymous(
        (P, 7),
        AvmaRange::new(Avma(B + 0x10_0000), 0x4000),
        0,
        time(5),
    );
    let mut index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    let ran = ran.iter().map(|&at| (P, Avma(at)));
    let ran_in = ran_in.iter();
    let ran_in = ran_in.map(|&at| (P, AvmaRange::new(Avma(at), 0x1000)));
    index.prove_twins(Some(Arch::X86_64), ran, ran_in, &case.diag);
    assert_eq!(name_at(&index, P, B + 0x104, 20), None);
    assert_eq!(unmapped(&index, P, B + 0x10_0104, 20), None);
    let found = unmapped(&index, P, B + 0x104, 20);
    let name = found.map(|(name, how)| {
        assert_eq!(how, JitMatch::Twin);
        name
    });
    let notes = case.diag.take();
    let notes: Vec<_> = notes.iter().map(|(_, line)| line.as_str()).collect();
    (name, notes.join("\n"))
}

#[test]
fn a_copied_module_is_read_from_its_original() {
    // `mov $0, %eax`, eight times: instructions begin at every fifth byte.
    let code = [0xb8, 0, 0, 0, 0].repeat(8);
    let at = |offsets: [u64; 3]| offsets.map(|offset| B + 0x100 + offset);
    let (name, notes) = copied(&code, 2, &at([0, 5, 20]), &[]);
    assert_eq!(name, Some("wasm[0]::function[1]".into()));
    assert!(notes.contains("3 addresses of samples fit"), "{notes}");
}

/// Another module that happens to be as large.
#[test]
fn equal_lengths_alone_make_no_copy() {
    let code = [0xb8, 0, 0, 0, 0].repeat(8);
    let at = |offsets: [u64; 3]| offsets.map(|offset| B + 0x100 + offset);
    let fitting = at([0, 5, 20]);
    let with = |more: u64| [&fitting[..], &[more]].concat();
    for (what, pause, ran, ran_in) in [
        ("nothing ran", 2, vec![], vec![]),
        ("other instructions", 2, at([0, 6, 21]).to_vec(), vec![]),
        ("the original ran", 2, with(A + 0x105), vec![]),
        ("it ran outside of what is asked for", 2, with(B), vec![A]),
        ("mapped a second later", 1000, fitting.to_vec(), vec![]),
    ] {
        assert_eq!(copied(&code, pause, &ran, &ran_in).0, None, "{what}");
    }
}

/// A host that loads modules in turn, to the same place and with the same code.
#[test]
fn a_module_that_was_loaded_later_has_its_own_names() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"alpha", CODE)
        .load(raw(10), 7, B, 1, b"wasm[0]::function[1]::f", CODE)
        .load(raw(10), 7, B + 64, 2, b"wasm[0]::function[2]", CODE)
        .load(raw(500), 7, A, 3, b"beta", CODE)
        .load(raw(500), 7, B, 4, b"wasm[0]::function[1]::g", CODE)
        .load(raw(500), 7, B + 64, 5, b"gamma", CODE)
        .load(raw(500), 7, B + 128, 6, b"wasmtime_builtin_x", CODE)
        // The same once more is the same.
        .load(raw(900), 7, A, 7, b"beta", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(index.objects()[0].producer, Producer::Wasmtime);
    let both = |at| [100, 600].map(|ms| name_at(&index, P, at, ms).unwrap_or_default());
    assert_eq!(both(A), ["alpha", "beta"]);
    assert_eq!(
        both(B),
        ["wasm[0]::function[1]::f", "wasm[0]::function[1]::g"]
    );
    assert_eq!(both(B + 64), ["wasm[0]::function[2]", "gamma"]);
    assert_eq!(index.objects()[0].stats.repeated, 1);
}

/// Neither a warning nor a finding of `check`: nothing lacks a name.
#[test]
fn a_missing_dump_is_no_loss_where_a_perf_map_names_the_code() {
    for has_map in [false, true] {
        let case = Case::new();
        if has_map {
            case.file("perf-7.map", format!("{A:x} 100 mapped\n").as_bytes());
        }
        let mut builder = case.builder();
        builder.marker(P, 7, b"/app/jit-7.dump", time(1));
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
        let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
        let warnings = case.diag.warnings();
        assert_eq!(warnings.is_empty(), has_map, "{warnings:?}");
        assert_eq!(index.absent().is_empty(), has_map);
    }
}

#[test]
fn perf_maps_name_what_no_load_ever_covered() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A, 0, b"dumped", CODE)
        .load(raw(20), 7, A + 8, 1, b"half over it", CODE);
    case.file("jit-7.dump", &dump.bytes);
    case.file(
        "perf-7.map",
        format!("{A:x} 100 mapped\n{B:x} 10 only mapped\n").as_bytes(),
    );
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
    builder.fork(P, Q, time(50));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    assert_eq!(name_at(&index, P, A, 15), Some("dumped".into()));
    // The first half of a load that ended belongs to nobody.
    assert_eq!(unmapped(&index, P, A, 25), None);
    assert_eq!(
        unmapped(&index, P, A + 0x40, 25),
        Some(("mapped".into(), JitMatch::PerfMap))
    );
    let (hit, _) = index
        .lookup_unmapped(P, Avma(B + 3), time(1))
        .expect("in the map");
    assert_eq!(
        (
            hit.offset,
            index.object(index.code(hit.code).object()).is_perf_map()
        ),
        (3, true)
    );
    // A child runs the same code.
    assert_eq!(
        unmapped(&index, Q, B, 60),
        Some(("only mapped".into(), JitMatch::PerfMap))
    );
    assert_eq!(unmapped(&index, P, B + 0x10, 60), None);
}

/// A map tells of one program of a process: the last that made code before the file was written.
#[test]
fn a_perf_map_names_no_code_of_the_program_before() {
    // When the file was written is not known, or while the first or the second program ran.
    for (written, expected) in [
        (None, [false, true]),
        (Some(50), [true, false]),
        (Some(120), [false, true]),
    ] {
        let case = Case::new();
        let path = case.file("perf-7.map", format!("{A:x} 100 f\n").as_bytes());
        let modified = std::fs::metadata(path).and_then(|meta| meta.modified());
        let modified = modified
            .expect("it has one")
            .duration_since(std::time::UNIX_EPOCH);
        let wall = u64::try_from(modified.expect("after 1970").as_nanos()).expect("fits");
        let mut builder = case.builder();
        builder.clock.wall = written.map(|ms| (wall, time(ms)));
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
        builder.exec(P, time(100));
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(105));
        let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
        let named = [50, 150].map(|ms| unmapped(&index, P, A, ms).is_some());
        assert_eq!(named, expected, "{written:?}");
    }
}

#[test]
fn a_childs_own_perf_map_hides_its_parents_only_where_it_tells_something() {
    let case = Case::new();
    let c = B + 0x10_0000;
    case.file(
        "perf-7.map",
        format!("{A:x} 100 parents\n{B:x} 100 later\n").as_bytes(),
    );
    case.file("perf-8.map", format!("{c:x} 100 childs\n").as_bytes());
    let mut builder = case.builder();
    builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
    builder.fork(P, Q, time(50));
    builder.anonymous((P, 7), AvmaRange::new(Avma(B), 0x1000), 0, time(60));
    builder.anonymous((Q, 8), AvmaRange::new(Avma(c), 0x1000), 0, time(60));
    builder.exec(Q, time(500));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    let named = |at, ms| unmapped(&index, Q, at, ms).map(|(name, _)| name);
    assert_eq!(named(A, 100), Some("parents".into()));
    assert_eq!(named(c, 100), Some("childs".into()));
    assert_eq!(named(B, 100), None, "mapped after the fork");
    assert_eq!(named(A, 600), None, "another program");
}

/// A server maps an area for code and forks workers, which compile into it: each has a map of its own (YJIT under puma).
#[test]
fn workers_have_their_own_maps_for_memory_that_they_inherited() {
    for has_parents in [true, false] {
        let case = Case::new();
        if has_parents {
            case.file("perf-7.map", format!("{A:x} 100 parents\n").as_bytes());
        }
        case.file("perf-8.map", format!("{A:x} 100 workers\n").as_bytes());
        case.file("perf-9.map", format!("{B:x} 100 elsewhere\n").as_bytes());
        let mut builder = case.builder();
        builder.anonymous((P, 7), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
        builder.fork(P, Q, time(50));
        builder.fork(Q, R, time(60));
        builder.anonymous((P, 7), AvmaRange::new(Avma(B), 0x1000), 0, time(70));
        builder.exec(Q, time(500));
        let index = builder.finish(IndexSlice::new(&[7, 8, 9]), &case.diag);
        let named = |process, at, ms| unmapped(&index, process, at, ms).map(|(name, _)| name);
        let parents = has_parents.then(|| "parents".to_owned());
        assert_eq!(named(P, A, 100), parents);
        assert_eq!(named(Q, A, 100), Some("workers".into()));
        assert_eq!(named(Q, A, 600), None, "another program");
        // Its own map tells of memory that came after the fork; what it was handed on is its parent's.
        assert_eq!(named(R, B, 100), None);
        assert_eq!(named(R, A, 100), Some("workers".into()));
    }
}

/// A process of a pid namespace writes its map under an id that the recording does not have.
#[test]
fn a_perf_map_under_an_unknown_id_is_of_the_process_in_whose_memory_it_lies() {
    let lines = |count: u64, from: u64| {
        let lines = (0..count).map(|n| format!("{:x} 10 f{n}\n", from + 16 * n));
        lines.collect::<String>()
    };
    let stale = lines(10, 0x1000);
    for (map, others, expected) in [
        (lines(10, A) + &stale, B, true),
        (lines(3, A) + &stale, B, false),
        (lines(10, A), A, false),
    ] {
        let case = Case::new();
        case.file("perf-1.map", map.as_bytes());
        let mut builder = case.builder();
        builder.anonymous((P, 4711), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
        builder.anonymous((Q, 4712), AvmaRange::new(Avma(others), 0x1000), 0, time(5));
        let index = builder.finish(IndexSlice::new(&[4711, 4712]), &case.diag);
        let named = [P, Q].map(|process| unmapped(&index, process, A, 20).is_some());
        assert_eq!(named, [expected, false]);
    }
}

/// CPython leaves a map behind as well as a dump, and processes of containers share its name.
#[test]
fn a_stale_perf_map_is_no_warning_where_a_dump_is_used() {
    for has_dump in [false, true] {
        let case = Case::new();
        case.file("tmp/perf-1.map", b"1000 100 of another\n");
        let mut dump = DumpWriter::new(1, raw(1));
        dump.load(raw(10), 1, A, 0, b"dumped", CODE);
        if has_dump {
            case.file("jit-1.dump", &dump.bytes);
        }
        let mut search = case.search();
        search.symfs = Some(case.dir.path().into());
        let mut builder = case.builder_with(search, Some(ClockId::MONOTONIC));
        builder.marker(P, 4711, b"/app/jit-1.dump", time(1));
        builder.anonymous((P, 4711), AvmaRange::new(Avma(A), 0x1000), 0, time(5));
        let index = builder.finish(IndexSlice::new(&[4711]), &case.diag);
        let stale = index
            .absent()
            .iter()
            .filter(|absent| absent.why != Absence::Missing);
        assert_eq!(stale.count(), usize::from(!has_dump));
        assert_eq!(case.diag.warnings().is_empty(), has_dump);
    }
}

#[test]
fn companions_come_with_the_code() {
    let case = Case::new();
    let mut dump = DumpWriter::with_header(false, 40, 0xDEAD_BEEF, 7, raw(1), 0);
    dump.debug_info(A, &[(A + 0x40, 3, 5, b"/a.js")], 0);
    dump.unwinding(20, 0, &[eh_frame(16, 16), eh_frame_header(1)].concat())
        .load(raw(10), 7, A, 0, b"JS:*f /a.js:3:5", CODE);
    dump.unwinding(20, 0, &eh_frame_header(0))
        .load(raw(10), 7, B, 1, b"odd name", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    let code = |at| index.code(index.lookup(P, Avma(at), time(20)).expect("loaded").code);
    let lines = code(A).lines();
    let line = line_at(&lines, 2).map(|line| (line.file, line.line, line.column));
    assert_eq!(line, Some((&b"/a.js"[..], 3, 5)));
    assert_eq!(code(A).lines().len(), 1);
    let Some(super::super::JitUnwinding::EhFrame { base, .. }) = code(A).unwinding() else {
        panic!("it has frames")
    };
    assert_eq!(base, Avma(A + 16));
    assert_eq!(
        code(B).unwinding(),
        Some(super::super::JitUnwinding::FramePointer)
    );
    assert_eq!(
        (code(B).producer(), code(B).has_lines()),
        (Producer::V8, false)
    );
    assert_eq!((code(A).bytes(), code(A).loaded()), (CODE, time(10)));
}

/// As node 20 writes them: what is interpreted has no lines, and what is inlined may have those of another file.
#[test]
fn code_that_eval_made_is_of_the_file_that_its_lines_tell() {
    type Lines<'l> = &'l [(u32, u32, &'l [u8])];
    let lodash: &[u8] = b"webpack:///../node_modules/lodash/lodash.js?";
    let all: &[(&str, Lines<'_>, &str)] = &[
        ("JS:~clone :8:13", &[], "JS:~clone LODASH:8:13"),
        (
            "JS:^clone :8:13",
            &[(9, 1, lodash)],
            "JS:^clone LODASH:8:13",
        ),
        (
            "JS:*clone :8:13",
            &[(3, 1, b"/w/other.js"), (8, 13, lodash)],
            "JS:*clone LODASH:8:13",
        ),
        // Two functions: which of them is interpreted is not known.
        ("JS:~hot :2:10", &[], "JS:~hot :2:10"),
        ("JS:~hot :2:10", &[], "JS:~hot :2:10"),
        (
            "JS:^hot :2:10",
            &[(2, 10, b"/w/a.ts?t=1")],
            "JS:^hot /w/a.ts:2:10",
        ),
        ("JS:^f :5:1", &[(5, 1, b"/w/a.ts")], "JS:^f /w/a.ts:5:1"),
        ("JS:*f :5:1", &[(5, 1, b"/w/b.ts")], "JS:*f /w/b.ts:5:1"),
        ("JS:~f :5:1", &[], "JS:~f :5:1"),
        // Nothing tells that this is not of what was inlined.
        ("JS:*g :6:1", &[(7, 1, b"/w/a.ts")], "JS:*g :6:1"),
        // No file.
        (
            "JS:^t :1:1",
            &[(1, 1, b"lodash.templateSources[0]")],
            "JS:^t :1:1",
        ),
        ("JS:^u :1:2", &[(1, 2, b"<unknown>")], "JS:^u :1:2"),
        (
            "JS:^v /w/v.js:1:2",
            &[(1, 2, b"/w/x.js")],
            "JS:^v /w/v.js:1:2",
        ),
    ];
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    for (number, (name, lines, _)) in (0..).zip(all) {
        let at = A + 16 * number;
        let lines: Vec<_> = (0..)
            .zip(*lines)
            .map(|(offset, (line, column, file))| (at + 0x40 + offset, *line, *column, *file))
            .collect();
        if !lines.is_empty() {
            dump.debug_info(at, &lines, 0);
        }
        dump.load(raw(10), 7, at, number, name.as_bytes(), CODE);
    }
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    for (number, (name, _, full)) in (0..).zip(all) {
        let hit = index.lookup(P, Avma(A + 16 * number), time(20));
        let found = index.name_with_file(hit.expect("loaded").code);
        let full = full.replace("LODASH", "webpack:///../node_modules/lodash/lodash.js");
        assert_eq!(String::from_utf8_lossy(&found), full, "{name}");
    }
}

#[test]
fn damaged_dumps_give_an_index_all_the_same() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.debug_info(A, &[(A, 3, 5, b"/a.js")], 0);
    dump.unwinding(20, 0, &[eh_frame(16, 16), eh_frame_header(1)].concat());
    dump.load(raw(10), 7, A, 0, b"f", CODE)
        .moved(raw(20), 7, A, B, 16, 0)
        .load(raw(30), 7, A, 1, b"g", CODE);
    let mut seed = 1_u64;
    for round in 0..600 {
        let mut bytes = dump.bytes.clone();
        for _ in 0..1 + round % 4 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] = (seed >> 24) as u8;
        }
        case.file("jit-7.dump", &bytes);
        let case = Case {
            store: Store::new(),
            diag: Diagnostics::new(),
            dir: tempfile::tempdir().expect("temporary directory"),
        };
        let path = case.file("jit-7.dump", &bytes);
        let mut builder = case.builder_with(
            JitSearch {
                jitdumps: vec![path],
                ..case.search()
            },
            None,
        );
        builder.marker(P, 7, b"/app/jit-7.dump", time(1));
        let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
        assert!(index.code_count() <= 2 + bytes.len() / 16);
        for at in [A, A + 15, B, 0, u64::MAX] {
            for ms in [0, 15, 25, 35] {
                let unmapped = || index.lookup_unmapped(P, Avma(at), time(ms));
                let hit = index.lookup(P, Avma(at), time(ms));
                let hit = hit.or_else(|| Some(unmapped()?.0));
                if let Some(hit) = hit {
                    let code = index.code(hit.code);
                    let _ = (line_at(&code.lines(), hit.offset), code.unwinding());
                }
            }
        }
    }
}

#[test]
fn very_many_markers_and_loads_do_not_multiply() {
    let case = Case::new();
    let mut dump = DumpWriter::new(1, raw(1));
    for i in 0..5_000 {
        dump.load(raw(10) + i, 1, A + 16 * i, i, b"f", CODE);
    }
    case.file("jit-1.dump", &dump.bytes);
    let mut builder = case.builder();
    let processes = 5_000;
    for process in 0..processes {
        builder.fork(ProcessId(process + 1), ProcessId(process), time(0));
        builder.marker(
            ProcessId(process),
            100 + process,
            b"/app/jit-1.dump",
            time(1),
        );
        builder.marker(
            ProcessId(process),
            100 + process,
            b"/app/jit-1.dump",
            time(2),
        );
        builder.marker(
            ProcessId(process),
            100 + process,
            b"/app/jit-2.dump",
            time(2),
        );
    }
    let pids: Vec<_> = (100..=100 + processes).collect();
    let index = builder.finish(IndexSlice::new(&pids), &case.diag);
    assert_eq!(index.objects().len(), 1);
    assert_eq!(
        case.warnings().lines().count(),
        21,
        "missing dumps are not named without end"
    );
}
