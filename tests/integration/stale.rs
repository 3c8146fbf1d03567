//! Companions that are not those of the recording: changed binaries, files of earlier processes, other kernels, other
//! clocks. They are noticed, said, and not used in silence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::corrupt::limited;
use crate::jitdump::{Dump, HEAD, Head};
use crate::live::Lab;
use crate::recording::{CONTEXT_KERNEL, CONTEXT_USER, Map, Recording, Sample, Stacks};
use crate::support::{pjit, sample, skip};

const PID: u32 = 77;
const JIT: u64 = 0x7f12_0000_4000;
const SECOND: u64 = 1_000_000_000;
/// When the process began.
const NOW: u64 = 9_000 * SECOND;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const MODULE: u64 = 0xffff_ffff_c000_0000;

/// A process born at [`NOW`] that maps its dump and runs JIT code, a kernel function and one of a module.
fn recording(pid: u32) -> Recording {
    recording_of(pid, true)
}

/// The program that perf itself started was forked before the recording began.
fn recording_of(pid: u32, is_forked: bool) -> Recording {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.kernel_map(KERNEL, 0x10_0000, b"[kernel.kallsyms]_text");
    recording.kernel_map(MODULE, 0x1000, b"[extra]");
    if is_forked {
        recording.fork(pid, 1, NOW);
    }
    recording.exec(pid, b"it", NOW + 1);
    let mut map = |start, file: &[u8]| {
        recording.map_at(&Map::page(NOW + 2, pid, start, file));
    };
    map(0x30_0000, format!("/nonexistent/jit-{pid}.dump").as_bytes());
    map(JIT, b"//anon");
    let chain = [
        CONTEXT_KERNEL,
        MODULE + 0x20,
        KERNEL + 0x20,
        CONTEXT_USER,
        JIT + 4,
    ];
    for i in 0..5 {
        recording.sample(&Sample {
            ip: MODULE + 0x20,
            pid,
            tid: pid,
            time: NOW + SECOND + i,
            period: 1,
            chain: &chain,
            user: None,
        });
    }
    recording
}

/// Stacks and what was said of a recording with companions beside it.
fn folded_with(
    recording: &Recording,
    companions: &[(&str, &[u8])],
    options: &[&str],
) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    fs::write(&data, recording.file()).expect("it can be written");
    for (name, bytes) in companions {
        fs::write(folder.path().join(name), bytes).expect("it can be written");
    }
    let here =
        |option: &&str| option.replace("HERE", folder.path().to_str().expect("a plain path"));
    let options: Vec<String> = options.iter().map(here).collect();
    let ended = limited(pjit().arg("fold").args(options).arg(&data));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    (ended.stdout, ended.stderr)
}

/// A program that copies its code to large pages maps memory without a file over it. Where a library was, anything may be.
#[test]
fn code_that_a_program_copied_over_its_own_is_the_programs() {
    const PROGRAM: u64 = 0x5500_0000_0000;
    const LIBRARY: u64 = 0x7f00_0000_0000;
    let mut recording = Recording::new(Stacks::Callchain);
    recording.exec(PID, b"it", NOW);
    let mut map = |start, length, offset, file: &[u8]| {
        recording.map_at(&Map {
            length,
            offset,
            ..Map::page(NOW + 2, PID, start, file)
        });
    };
    map(PROGRAM, 0x60_0000, 0x1000, b"/nonexistent/prog");
    map(LIBRARY, 0x60_0000, 0x1000, b"/nonexistent/lib.so");
    map(PROGRAM + 0x20_0000, 0x20_0000, 0, b"//anon");
    map(LIBRARY + 0x20_0000, 0x20_0000, 0, b"//anon");
    for (i, ip) in (0..).zip([
        PROGRAM + 0x20_0010,
        PROGRAM + 0x20_0010,
        LIBRARY + 0x20_0010,
    ]) {
        recording.sample(&Sample {
            ip,
            pid: PID,
            tid: PID,
            time: NOW + SECOND + i,
            period: 1,
            chain: &[CONTEXT_USER, ip],
            user: None,
        });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    fs::write(&data, recording.file()).expect("it can be written");
    let report = [
        "report",
        "--no-children",
        "-g",
        "none",
        "--sort",
        "dso,sym",
        "-i",
    ];
    let ended = limited(pjit().args(report).arg(&data));
    let rows: Vec<&str> = ended
        .stdout
        .lines()
        .filter(|line| line.contains("%  "))
        .collect();
    let [program, library] = rows[..] else {
        panic!("{}", ended.stdout);
    };
    assert!(
        program.contains("prog") && program.ends_with("[.] 0x0000000000201010"),
        "{program}"
    );
    assert!(library.contains("[JIT] tid 77"), "{library}");
    let check = limited(pjit().arg("check").arg(&data));
    assert!(
        check.stdout.contains("note  symbols.copied"),
        "{}",
        check.stdout
    );
}

/// As perf prints them: where a module lies changes with each boot.
#[test]
fn addresses_in_a_module_without_symbols_count_from_its_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    let mut recording = recording(PID);
    recording.sample_in(
        1,
        &Sample {
            ip: MODULE + 0x30,
            pid: PID,
            tid: PID,
            time: NOW + 2 * SECOND,
            period: 1,
            chain: &[CONTEXT_KERNEL, MODULE + 0x30],
            user: None,
        },
    );
    fs::write(&data, recording.file()).expect("it can be written");
    let report = ["report", "--no-children", "-g", "none", "-i"];
    let ended = limited(pjit().args(report).arg(&data));
    let row = "[k] 0x0000000000000030";
    assert!(ended.stdout.contains(row), "{}", ended.stdout);
}

fn dump_at(head: &Head, times: &[(u64, &[u8])]) -> Vec<u8> {
    let mut dump = Dump::new(head);
    for (index, &(time, name)) in (0..).zip(times) {
        dump.load_of(head.pid, time, JIT, index, name, &[0x90; 16]);
    }
    dump.0
}

const HERE: Head = Head {
    pid: PID,
    time: NOW + 5,
    ..HEAD
};

#[test]
fn a_dump_of_this_process_is_used() {
    let dump = dump_at(&HERE, &[(NOW + 10, b"fresh")]);
    let (stacks, said) = folded_with(&recording(PID), &[("jit-77.dump", &dump)], &[]);
    assert!(
        stacks.contains("fresh") && !said.contains("jit-77"),
        "{stacks}{said}"
    );
}

#[test]
fn a_dump_of_an_earlier_process_with_the_same_id_is_not_used() {
    let earlier = NOW - 600 * SECOND;
    let dump = dump_at(
        &Head {
            time: earlier,
            ..HERE
        },
        &[(earlier + 10, b"stale"), (earlier + 20, b"stale")],
    );
    let (stacks, said) = folded_with(&recording(PID), &[("jit-77.dump", &dump)], &[]);
    assert!(!stacks.contains("stale"), "{stacks}");
    assert!(
        said.contains("2 of 2 functions are of an earlier or unknown process; not used"),
        "{said}"
    );
    // Who names it, gets it, with a warning.
    let (stacks, said) = folded_with(
        &recording(PID),
        &[("jit-77.dump", &dump)],
        &["--jitdump", "HERE/jit-77.dump"],
    );
    assert!(
        stacks.contains("stale") && said.contains("none lies within the recording"),
        "{stacks}{said}"
    );
}

#[test]
fn records_in_front_of_those_of_this_process_are_not_used() {
    let earlier = NOW - 600 * SECOND;
    let dump = dump_at(
        &Head {
            time: earlier,
            ..HERE
        },
        &[(NOW + 10, b"fresh")],
    );
    let mut appended = dump_at(
        &Head {
            time: earlier,
            ..HERE
        },
        &[(earlier + 10, b"stale")],
    );
    appended.extend(&dump[40..]);
    let mut recording = recording(PID);
    // Where only the stale function was.
    let chain = [CONTEXT_USER, JIT + 4];
    recording.sample(&Sample {
        ip: JIT + 4,
        pid: PID,
        tid: PID,
        time: NOW + 3,
        period: 1,
        chain: &chain,
        user: None,
    });
    let (stacks, said) = folded_with(&recording, &[("jit-77.dump", &appended)], &[]);
    assert!(
        stacks.contains("fresh") && !stacks.contains("stale"),
        "{stacks}"
    );
    assert!(
        said.contains("1 of 2 functions are of an earlier or unknown process"),
        "{said}"
    );
}

#[test]
fn a_dump_of_another_process_is_not_used() {
    let dump = dump_at(&Head { pid: 4242, ..HERE }, &[(NOW + 10, b"foreign")]);
    let (stacks, said) = folded_with(&recording(PID), &[("jit-77.dump", &dump)], &[]);
    assert!(!stacks.contains("foreign"), "{stacks}");
    assert!(
        said.contains("1 of 1 functions are of an earlier or unknown process"),
        "{said}"
    );
}

#[test]
fn a_dump_on_another_clock_is_reported() {
    let wall = 1_795_260_704 * SECOND;
    let dump = dump_at(&Head { time: wall, ..HERE }, &[(wall + 10, b"elsewhen")]);
    let (_, said) = folded_with(&recording(PID), &[("jit-77.dump", &dump)], &[]);
    assert!(
        said.contains("times not used: none lies within the recording"),
        "{said}"
    );
    let counter = dump_at(&Head { flags: 1, ..HERE }, &[(77_000, b"counted")]);
    let (_, said) = folded_with(&recording(PID), &[("jit-77.dump", &counter)], &[]);
    assert!(
        said.contains("counter values, and the recording has no conversion"),
        "{said}"
    );
}

/// A perf map where any process may have left it; removed when dropped.
struct LeftBehind(PathBuf);

impl LeftBehind {
    fn new(pid: u32, text: &str, modified: Duration) -> Self {
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        fs::write(&path, text).expect("it can be written");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("it is there");
        file.set_modified(UNIX_EPOCH + modified)
            .expect("its times can be set");
        Self(path)
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_perf_map_of_an_earlier_process_is_not_used() {
    // Above every id that Linux hands out, and of this run.
    let pid = (1 << 30) + std::process::id();
    let born = Duration::from_secs(1_795_260_704);
    let recordings = [true, false].map(|is_forked| {
        let mut recording = recording_of(pid, is_forked);
        recording.clock_data(u64::try_from(born.as_nanos()).expect("small"), NOW);
        recording
    });
    let fitting = format!("{JIT:x} 10 of_the_map\n");
    let elsewhere = "500000 10 of_the_map\n";
    let hour = Duration::from_secs(3600);
    for (text, modified, wanted) in [
        (fitting.as_str(), born + hour, None),
        (&fitting, born - hour, Some("older than the process")),
        (
            elsewhere,
            born + hour,
            Some("nothing in it lies in executable memory of the process"),
        ),
    ] {
        let _map = LeftBehind::new(pid, text, modified);
        for recording in &recordings {
            let (stacks, said) = folded_with(recording, &[], &[]);
            assert_eq!(
                stacks.contains("of_the_map"),
                wanted.is_none(),
                "{stacks}{said}"
            );
            assert!(
                wanted.is_none_or(|wanted| said.contains(wanted)),
                "{wanted:?}: {said}"
            );
        }
    }
}

/// The number of a process that has ended may be given again.
#[test]
fn a_perf_map_of_a_later_process_is_not_used() {
    let pid = (1 << 29) + std::process::id();
    let born = Duration::from_secs(1_795_260_704);
    let text = format!("{JIT:x} 10 of_the_map\n");
    for (seconds, ends, is_used) in [(1, true, true), (60, true, false), (60, false, true)] {
        let mut recording = recording_of(pid, true);
        recording.clock_data(u64::try_from(born.as_nanos()).expect("small"), NOW);
        if ends {
            recording.exit(pid, 1, NOW + 2 * SECOND);
        }
        let _map = LeftBehind::new(pid, &text, born + Duration::from_secs(seconds));
        let (stacks, said) = folded_with(&recording, &[], &[]);
        assert_eq!(stacks.contains("of_the_map"), is_used, "{seconds} {ends}");
        let is_told = said.contains("written after the process had ended");
        assert_eq!(is_told, !is_used, "{said}");
    }
}

/// Programs that had one number, one after the other: the last one got the time of all.
#[test]
fn a_number_that_is_given_again_is_of_another_process() {
    let mut recording = Recording::new(Stacks::Callchain);
    for (nth, name) in [&b"first"[..], b"second", b"third"].into_iter().enumerate() {
        let begin = NOW + nth as u64 * SECOND;
        recording.fork(PID, 1, begin);
        recording.exec(PID, name, begin + 1);
        for i in 0..=nth as u64 {
            recording.sample(&Sample {
                ip: JIT,
                pid: PID,
                tid: PID,
                time: begin + 10 + i,
                period: 1,
                chain: &[CONTEXT_USER, JIT],
                user: None,
            });
        }
        recording.exit(PID, 1, begin + SECOND / 2);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    fs::write(&data, recording.file()).expect("written");
    let view = ["summary", "--by", "process", "--format", "json", "-i"];
    let ended = limited(pjit().args(view).arg(&data));
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let processes = answer["processes"].as_array().expect("processes").iter();
    let processes = processes.map(|process| (process["name"].clone(), process["samples"].clone()));
    let expected = [("third", 3), ("second", 2), ("first", 1)];
    let expected = expected.map(|(name, samples)| (name.into(), samples.into()));
    assert_eq!(processes.collect::<Vec<_>>(), expected, "{}", ended.stdout);
}

/// In a container a process has a number that the recording does not know, and its map is called so.
#[test]
fn a_named_perf_map_is_used_or_is_said_not_to_be() {
    let fitting = format!("{JIT:x} 10 of_the_map\n");
    for (name, text, wanted) in [
        ("perf-1.map", fitting.as_str(), None),
        ("other.txt", &fitting, None),
        (
            "perf-1.map",
            "500000 10 of_the_map\n",
            Some("of no process of this recording"),
        ),
        ("perf-1.map", "no map\n", Some("not a perf map")),
        ("perf-77.map", "no map\n", Some("not a perf map")),
    ] {
        let option = format!("HERE/{name}");
        let files: [(&str, &[u8]); 1] = [(name, text.as_bytes())];
        let (stacks, said) = folded_with(&recording(PID), &files, &["--perf-map", &option]);
        assert_eq!(stacks.contains("of_the_map"), wanted.is_none(), "{said}");
        assert_eq!(said.contains("; not used"), wanted.is_some(), "{said}");
        assert!(wanted.is_none_or(|wanted| said.contains(wanted)), "{said}");
    }
}

#[test]
fn a_changed_binary_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "tmp/pjit-sample/native/hot-rust";
    let whole = fs::read(sample("native", "symfs").join(name)).expect("the sample has it");
    let head = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let id_at = whole
        .windows(head.len())
        .position(|w| w == head)
        .expect("a build ID")
        + head.len();
    let mut other = whole.clone();
    other[id_at] ^= 1;
    let mut without = whole.clone();
    without[id_at - 8] = 9;
    let run = |elf: &[u8], root: &Path| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, elf).expect("it can be written");
        limited(
            pjit()
                .arg("fold")
                .arg("--symfs")
                .arg(root)
                .arg(sample("native", "perf.data")),
        )
    };
    assert!(
        run(&whole, folder.path())
            .stdout
            .contains("lang_start_internal")
    );
    let ended = run(&other, folder.path());
    assert!(!ended.stdout.contains("lang_start_internal"));
    assert!(
        ended.stderr.contains("build ID is") && ended.stderr.contains("not used"),
        "{}",
        ended.stderr
    );
    let strict = limited(
        pjit()
            .args(["fold", "--strict", "--symfs"])
            .arg(folder.path())
            .arg(sample("native", "perf.data")),
    );
    assert_eq!(strict.code, Some(1), "{}", strict.stderr);
    let ended = run(&without, folder.path());
    assert!(!ended.stdout.contains("lang_start_internal"));
}

/// `_text` to `_etext` is what the recording's kernel has.
fn kallsyms(slide: u64, size: u64) -> String {
    let line = |at: u64, rest: &str| format!("{at:x} {rest}\n");
    let base = KERNEL + slide;
    line(base, "T _text")
        + &line(base, "T _stext")
        + &line(base + 0x10, "T of_the_kernel")
        + &line(base + 0x100, "T behind")
        + &line(base + size, "T _etext")
        + &line(MODULE, "t of_the_module\t[extra]")
        + &line(MODULE + 0x100, "t behind_it\t[extra]")
}

#[test]
fn symbols_of_another_boot_are_moved_and_its_modules_not_used() {
    let with = |text: &str| folded_with(&recording(PID), &[("kallsyms", text.as_bytes())], &[]);
    let (stacks, said) = with(&kallsyms(0, 0x10_0000));
    assert!(
        stacks.contains("of_the_kernel;of_the_module") && !said.contains("boot"),
        "{stacks}{said}"
    );
    let (stacks, said) = with(&kallsyms(0x1a00_0000, 0x10_0000));
    assert!(stacks.contains("of_the_kernel"), "{stacks}");
    assert!(!stacks.contains("of_the_module"), "{stacks}");
    assert!(said.contains("of another boot"), "{said}");
}

#[test]
fn restricted_kernel_symbols_are_not_used() {
    let zeros = "0000000000000000 T _text\n0000000000000000 T of_the_kernel\n";
    let (stacks, said) = folded_with(
        &recording(PID),
        &[("zeros", zeros.as_bytes())],
        &["--kallsyms", "HERE/zeros"],
    );
    assert!(!stacks.contains("of_the_kernel"), "{stacks}");
    assert!(said.contains("restricted"), "{said}");
}

/// One build's code has one size, wherever it was loaded.
#[test]
fn symbols_of_another_kernel_are_reported() {
    for (size, wanted) in [(0x10_0000, false), (0x15_0000, true)] {
        let text = kallsyms(0, size);
        let (_, said) = folded_with(&recording(PID), &[("kallsyms", text.as_bytes())], &[]);
        assert_eq!(
            said.contains("not of the recorded kernel"),
            wanted,
            "{size:#x}: {said}"
        );
    }
}

/// The kernel gives the addresses of a BPF program away again.
#[test]
fn a_bpf_program_has_its_name_while_it_is_there() {
    const AT: u64 = 0xffff_ffff_c010_0000;
    let mut recording = Recording::new(Stacks::Callchain);
    recording.exec(PID, b"it", NOW);
    recording.kernel_symbol(AT, b"bpf_prog_first", true, NOW + 20);
    recording.kernel_symbol(AT, b"bpf_prog_first", false, NOW + 40);
    recording.kernel_symbol(AT, b"bpf_prog_second", true, NOW + 50);
    // Two samples are in the first, one before it is there, two between, three in the second.
    for (count, time) in [(1, 10), (2, 30), (2, 45), (3, 60)] {
        for more in 0..count {
            recording.sample(&Sample {
                ip: AT + 0x10,
                pid: PID,
                tid: PID,
                time: NOW + time + more,
                period: 1,
                chain: &[CONTEXT_KERNEL, AT + 0x10],
                user: None,
            });
        }
    }
    let (stacks, _) = folded_with(&recording, &[], &[]);
    let mut lines: Vec<&str> = stacks.lines().collect();
    lines.sort_unstable();
    let ends = lines.iter().map(|line| line.rsplit(';').next());
    let ends: Vec<_> = ends.flatten().collect();
    assert_eq!(
        ends,
        ["[unknown] 3", "bpf_prog_first 2", "bpf_prog_second 3"]
    );
}

/// A program without build ID that was built again where it lay: its segments may be as large as before.
#[test]
fn a_program_that_was_built_since_is_not_used_without_proof() {
    let lab = Lab::empty("built-since");
    let source = |first: &str, second: &str| {
        let function = |name: &str| {
            format!(
                "__attribute__((noinline)) void {name}(void) {{ for (int i = 0; i < 30000000; i++) sink += i; }}\n"
            )
        };
        format!(
            "static volatile unsigned sink;\n{}{}int main(void) {{ alpha(); alpha(); beta(); return 0; }}\n",
            function(first),
            function(second)
        )
    };
    let build = |text: String| {
        fs::write(lab.path("app.c"), text).expect("written");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-fno-omit-frame-pointer", "-fno-ipa-icf"]);
        cc.args(["-Wl,--build-id=none", "-o", "app", "app.c"]);
        cc.current_dir(lab.path(".")).status()
    };
    if build(source("alpha", "beta")).is_err() {
        return skip("cc", "it cannot be run");
    }
    let options = ["-F", "999", "-e", "cpu-clock:u"];
    if lab.record("p.data", &options, &["./app"]).is_none() {
        return;
    }
    let before = lab.show(&["fold", "-i"], "p.data");
    assert!(before.contains("app;alpha "), "{before}");
    // What was read is not written over, be it a source.
    let output = lab.path("app.c");
    let output = output.to_str().expect("a plain path");
    let (status, _, said) = lab.pjit(&["list", "alpha", "-o", output, "-i"], "p.data");
    assert_ne!(status, 0, "{said}");
    assert!(said.contains("is a file that was read"), "{said}");
    let kept = fs::read_to_string(lab.path("app.c")).expect("a source");
    assert!(kept.starts_with("static volatile"), "{kept}");
    // The clock of files may be coarse.
    std::thread::sleep(Duration::from_millis(1500));
    let (app, kept) = (lab.path("app"), lab.path("kept"));
    let written = fs::metadata(&app).and_then(|meta| meta.modified());
    fs::rename(&app, &kept).expect("renamed");
    build(source("beta", "alpha")).expect("it was built before");
    let is_refused = || {
        let (status, stacks, said) = lab.pjit(&["fold", "-i"], "p.data");
        assert_eq!(status, 0, "{said}");
        assert!(
            !stacks.contains("alpha") && !stacks.contains("beta"),
            "{stacks}"
        );
        assert!(
            said.contains("written after the recording had ended"),
            "{said}"
        );
    };
    is_refused();
    // `cp -p` writes into the file that is there, and sets its time back.
    fs::copy(&app, &kept).expect("copied");
    fs::rename(&kept, &app).expect("renamed");
    let file = fs::File::options().write(true).open(&app);
    let set = file.and_then(|file| file.set_modified(written?));
    set.expect("a time");
    is_refused();
}

#[test]
fn lost_samples_are_told_where_the_answer_has_no_room_for_them() {
    let mut recording = recording(PID);
    recording.lost(5, NOW + 2 * SECOND);
    for view in [&["fold"][..], &["script"], &["stat"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("perf.data");
        fs::write(&data, recording.file()).expect("written");
        let ended = limited(pjit().args(view).arg("-i").arg(&data));
        assert!(
            ended.stderr.contains("5 samples were lost (50%)"),
            "{view:?}: {}",
            ended.stderr
        );
    }
}

/// A process that ends with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program in a container that still runs: its file is found in its root, by its inode, and nothing else of that name.
#[test]
fn a_process_that_lives_shows_the_file_of_its_root() {
    let Some(lab) = Lab::with("living", "load", &["-static"]) else {
        return;
    };
    let root = lab.path("root");
    fs::create_dir_all(root.join("opt/app")).expect("made");
    let inside = root.join("opt/app/living-load");
    fs::copy(lab.path("load"), &inside).expect("copied");
    let in_root = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-Umr", "chroot"]).arg(&root);
        command.arg("/opt/app/living-load").args(words);
        command
    };
    if !in_root(&["1"])
        .status()
        .is_ok_and(|status| status.success())
    {
        return skip("unshare", "no namespace can be made");
    }
    let recording = Command::new("perf")
        .current_dir(lab.path(""))
        .args([
            "record",
            "-q",
            "-N",
            "-a",
            "-e",
            "cpu-clock",
            "-o",
            "perf.data",
        ])
        .args(["--", "sleep", "2"])
        .stderr(std::process::Stdio::null())
        .spawn();
    let Ok(mut recording) = recording else {
        return skip("perf", "it cannot be run");
    };
    std::thread::sleep(std::time::Duration::from_millis(700));
    let running = Running(in_root(&["0"]).spawn().expect("it ran before"));
    if !recording.wait().is_ok_and(|status| status.success()) {
        return skip("perf", "it cannot record all processes");
    }
    let names = || {
        lab.show(
            &["report", "--stdio", "--comm", "living-load", "-s", "sym"],
            "perf.data",
        )
    };
    let named = "[.] work";
    assert!(names().contains(named), "{}", names());
    let (_, _, said) = lab.pjit(&["report", "--stdio", "-v"], "perf.data");
    let pid = running.0.id();
    let found = format!(
        "/opt/app/living-load: read from /proc/{pid}/root/opt/app/living-load, known by the inode"
    );
    assert!(said.contains(&found), "{said}");
    // A link that leads out of the root, to the same program, and a file that is another one.
    let outside = lab.path("outside");
    fs::rename(&inside, &outside).expect("moved");
    std::os::unix::fs::symlink(&outside, &inside).expect("linked");
    assert!(!names().contains(named), "{}", names());
    fs::remove_file(&inside).expect("removed");
    fs::copy("/bin/true", &inside).expect("copied");
    assert!(!names().contains(named), "{}", names());
    fs::rename(&outside, &inside).expect("moved");
    assert!(names().contains(named), "{}", names());
    drop(running);
    assert!(!names().contains(named), "{}", names());
}
