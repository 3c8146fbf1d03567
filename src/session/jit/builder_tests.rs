//! From dumps on disk and markers in a recording to names at addresses and times.

use super::super::{JitHit, JitMatch};
use super::*;
use crate::address::Avma;
use crate::ids::IndexSlice;
use crate::jitdump::debug_info::line_at;
use crate::jitdump::testing::{DumpWriter, eh_frame, eh_frame_header};
use crate::perfdata::ClockId;
use crate::runtimes::{Habit, Producer};

const A: u64 = 0x7f00_0000_0000;
const B: u64 = 0x7f00_0010_0000;
const P: ProcessId = ProcessId(0);
const Q: ProcessId = ProcessId(1);
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
    let hit = index.lookup_unmapped(process, Avma(at), time(ms))?;
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
    builder.anonymous(P, 7, AvmaRange::new(Avma(B), 0x1000), time(20));
    builder.exec_file_mapping(P, AvmaRange::new(Avma(A + 4), 0x1000), time(20));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(
        [name_at(&index, P, A, 19), name_at(&index, P, A, 20)],
        [Some("a".into()), None]
    );
    assert_eq!(name_at(&index, P, B, 30), Some("b".into()));
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

#[test]
fn a_copied_module_is_read_from_its_original() {
    let case = Case::new();
    let mut dump = DumpWriter::new(7, raw(1));
    dump.load(raw(10), 7, A + 0x100, 0, b"wasm[0]::function[1]", CODE);
    case.file("jit-7.dump", &dump.bytes);
    let mut builder = case.builder();
    builder.marker(P, 7, b"/app/jit-7.dump", time(1));
    for start in [A, B] {
        builder.anonymous(P, 7, AvmaRange::new(Avma(start), 0x3000), time(5));
    }
    builder.anonymous(P, 7, AvmaRange::new(Avma(B + 0x10_0000), 0x4000), time(5));
    let index = builder.finish(IndexSlice::new(&[7]), &case.diag);
    assert_eq!(name_at(&index, P, B + 0x104, 20), None);
    assert_eq!(
        unmapped(&index, P, B + 0x104, 20),
        Some(("wasm[0]::function[1]".into(), JitMatch::Twin))
    );
    assert_eq!(unmapped(&index, P, B + 0x10_0104, 20), None);
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
        builder.anonymous(P, 7, AvmaRange::new(Avma(A), 0x1000), time(5));
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
    builder.anonymous(P, 7, AvmaRange::new(Avma(A), 0x1000), time(5));
    builder.fork(P, Q, time(50));
    let index = builder.finish(IndexSlice::new(&[7, 8]), &case.diag);
    assert_eq!(name_at(&index, P, A, 15), Some("dumped".into()));
    // The first half of a load that ended belongs to nobody.
    assert_eq!(unmapped(&index, P, A, 25), None);
    assert_eq!(
        unmapped(&index, P, A + 0x40, 25),
        Some(("mapped".into(), JitMatch::PerfMap))
    );
    let hit = index
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
                let hit = index
                    .lookup(P, Avma(at), time(ms))
                    .or_else(|| index.lookup_unmapped(P, Avma(at), time(ms)));
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
