//! Frames that are missing within stacks: told, counted and left without an edge that does not exist.

use std::fs;

use crate::live::Lab;
use crate::recording::{Recording, Sample, Stacks, User};
use crate::support::{folded, pjit, stdout_of};

/// Assembly that realigns its stack tells nobody how large its frame is, and leaves the frame pointer of its caller in the register. What
/// that leads to calls a function whose address is not told, which may be any.
#[test]
fn a_frame_pointer_of_the_caller_leads_past_it() {
    let Some(lab) = Lab::with("realigned", "realigned", &["-fno-omit-frame-pointer"]) else {
        return;
    };
    let options = [
        "-e",
        "cpu-clock:u",
        "-F",
        "997",
        "--call-graph",
        "dwarf,4096",
    ];
    if lab.record("r.data", &options, &["./realigned"]).is_none() {
        return;
    }
    let folded = lab.show(&["fold", "-i"], "r.data");
    let of = |stack: &str| folded.lines().filter(|line| line.contains(stack)).count();
    // On other machines nothing is guessed by frame pointers here.
    assert_eq!(of(";spends;realigned"), 0, "{folded}");
    if cfg!(target_arch = "x86_64") {
        assert!(of(";main;spends;[incomplete];realigned ") > 0, "{folded}");
    }
}

/// Where the code of a runtime lies that a perf map tells of: `fib`, `middle` and `main`, 0x1000 bytes each.
const JIT: u64 = 0x7f00_0000_0000;
/// Where the program lies.
const PROGRAM: u64 = 0x40_0000;
const SP: u64 = 0x7ffe_0000_1000;

/// A recording of code that keeps no frame pointer, so that rbp is the program's; with the words of the stack below that.
fn without_frame_pointers([a, b, c]: [u64; 3]) -> tempfile::TempDir {
    mapped_code("mono", ["fib", "middle", "main"], [7, a, b, c])
}

/// A recording of functions of which a perf map has names and no code.
fn mapped_code(comm: &str, names: [&str; 3], between: [u64; 4]) -> tempfile::TempDir {
    let mut recording = recording_of(comm, 3);
    let outer = [SP + 48, PROGRAM + 0x100, 0, 0];
    let words = [&between[..], &outer].concat();
    for time in 1..=40 {
        add_sample(&mut recording, time, (JIT + 0x10, SP, SP + 32), &words);
    }
    folder_of(&recording, &names)
}

/// A process with a program and so many functions, without samples.
fn recording_of(comm: &str, functions: u64) -> Recording {
    let mut recording = Recording::new(Stacks::Dwarf);
    recording.comm(77, 77, comm.as_bytes());
    recording.map(77, PROGRAM, 0x1000, 0, b"/nowhere/mono-sgen");
    recording.map(77, JIT, functions * 0x1000, 0, b"//anon");
    recording
}

/// Adds a sample with these registers and words of the stack.
fn add_sample(recording: &mut Recording, time: u64, (ip, sp, fp): (u64, u64, u64), words: &[u64]) {
    let mut registers = [0; 20];
    (registers[6], registers[7], registers[8]) = (fp, sp, ip);
    let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    recording.sample(&Sample {
        ip,
        pid: 77,
        tid: 77,
        time,
        period: 1,
        chain: &[],
        user: Some(User {
            registers: &registers,
            stack: &stack,
        }),
    });
}

/// A folder with a recording and the map of its functions.
fn folder_of(recording: &Recording, names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("perf.data"), recording.file()).expect("it can be written");
    let lines = (0..)
        .zip(names)
        .map(|(n, name)| format!("{:x} 1000 {name}\n", JIT + n * 0x1000));
    let map: String = lines.collect();
    fs::write(at("perf-77.map"), map).expect("it can be written");
    folder
}

fn said(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let output = pjit().current_dir(folder).args(arguments).output();
    let output = output.expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn frames_of_code_without_frame_pointers_are_missing_and_marked() {
    let folder = without_frame_pointers([JIT + 0x1010, JIT + 0x20, JIT + 0x2010]);
    let fold = said(&folder, &["fold"]);
    assert_eq!(fold, "mono;[mono-sgen];[incomplete];fib 40\n");
    let unmarked = said(&folder, &["fold", "--no-cut-marks"]);
    assert_eq!(unmarked, "mono;[mono-sgen];fib 40\n");
    let check = said(&folder, &["check"]);
    assert!(
        check.contains("FAIL  stacks                     0.00% complete (0 of 40)"),
        "{check}"
    );
    assert!(
        check.contains("warn  stacks.skipped             100.00% lack frames"),
        "{check}"
    );
    assert!(check.contains("it keeps none"), "{check}");
    let report = said(
        &folder,
        &["report", "--stdio", "--no-children", "-g", "caller"],
    );
    assert!(
        report.contains("Quality: 0.00% in complete stacks"),
        "{report}"
    );
    // What is left over from one call proves nothing.
    let folder = without_frame_pointers([JIT + 0x1010, JIT + 0x1020, 7]);
    assert_eq!(said(&folder, &["fold"]), "mono;[mono-sgen];fib 40\n");
    assert!(said(&folder, &["check"]).contains("100.00% complete (40 of 40)"));
}

/// Says that Java was told to keep frame pointers.
fn keep_frames(folder: &tempfile::TempDir) {
    let story = r#"{"command": ["java", "A"], "began": 1, "ended": 2, "status": 0,
        "environment": {"_JAVA_OPTIONS": "-XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer"}}"#;
    fs::write(folder.path().join("record.json"), story).expect("it can be written");
}

/// Java that was told to keep frame pointers goes past a caller only where its frame is not built yet or not there any more.
#[test]
fn code_that_keeps_frame_pointers_lacks_callers_at_its_ends_alone() {
    let names = ["int A.fib(int)", "void A.middle()", "void A.main()"];
    let of = |between| {
        let folder = mapped_code("java", names, between);
        keep_frames(&folder);
        said(&folder, &["fold"])
    };
    let (middle, main) = (JIT + 0x1010, JIT + 0x2010);
    let marked = "java;[mono-sgen];[incomplete];int A.fib 40\n";
    // The return address is the first word, or behind the register that was saved.
    assert_eq!(of([middle, 7, 7, 7]), marked);
    assert_eq!(of([7, middle, 7, 7]), marked);
    // What earlier calls left within its frame is none, however many those were.
    assert_eq!(of([7, 7, middle, main]), "java;[mono-sgen];int A.fib 40\n");
}

/// In Java the frames of a method have one size, which proves who called one that was interrupted outside of its frame. Other samples
/// of any thread and time tell the size: what is found depends on no order.
#[test]
fn sizes_of_frames_are_learned_from_all_samples_alike() {
    /// More than one thread takes at a time.
    const EACH: u64 = 5000;
    const MAIN: u64 = JIT + 0x2010;
    let [fib, middle, other] = [JIT + 0x10, JIT + 0x1010, JIT + 0x3010];
    let names = [
        "int A.fib(int)",
        "void A.middle()",
        "void A.main()",
        "void A.other()",
    ];
    let mut recording = recording_of("java", names.len() as u64);
    let mut time = 0;
    let mut add = |(sp, fp): (u64, u64), words: &[u64]| {
        time += 1;
        add_sample(&mut recording, time, (fib, sp, fp), words);
    };
    // From the frame of `fib` outwards: `caller`, whose frame has so many words, and `main`.
    let frames = |caller, size: u64| {
        let outer = [SP + 32 + size * 8, caller];
        let words = vec![7; usize::try_from(size).expect("small")];
        [
            &[SP + 16, fib][..],
            &outer,
            &words,
            &[SP + 64 + size * 8, MAIN, 7, 7, 0, 0],
        ]
        .concat()
    };
    for (caller, sizes) in [(middle, [4, 4]), (other, [4, 6])] {
        for size in sizes {
            for _ in 0..EACH {
                add((SP, SP), &frames(caller, size));
            }
        }
        // Before the frame of `fib` is built.
        for _ in 0..10 {
            add((SP + 24, SP + 64), &frames(caller, 4)[3..]);
        }
    }
    let folder = folder_of(&recording, &names);
    keep_frames(&folder);
    let fold = |threads| said(&folder, &["fold", "--threads", threads]);
    let alone = fold("1");
    let outer = "java;void A.main";
    let found = folded(&alone);
    let of = |stack: &str| found.get(&format!("{outer};{stack}int A.fib")).copied();
    assert_eq!(of("void A.middle;"), Some(10), "{alone}");
    assert_eq!(of("[incomplete];"), Some(10), "{alone}");
    assert_eq!(alone, fold("2"));
    assert_eq!(alone, fold("3"));
}

#[test]
fn the_caller_of_a_function_without_a_frame_is_missing_and_marked() {
    // Probes at the first instruction of each function, so that the caller is never there.
    let of_event = ["fold", "--weight", "samples", "--event", "heap:calloc"];
    let marked = folded(&stdout_of(&of_event, "heap"));
    let calloc = "alloc;__libc_start_call_main;main;[caller missing];__libc_calloc";
    assert_eq!(marked.get(calloc), Some(&100), "{marked:?}");
    let unmarked = folded(&stdout_of(
        &[&of_event[..], &["--no-cut-marks"]].concat(),
        "heap",
    ));
    assert_eq!(
        unmarked.get(&calloc.replace(";[caller missing]", "")),
        Some(&100)
    );
    assert_eq!(marked.values().sum::<u64>(), unmarked.values().sum::<u64>());
    let check = stdout_of(&["check"], "heap");
    assert!(check.contains("warn  stacks.caller-missing"), "{check}");
}

/// What a register that holds something else led to is no caller.
#[test]
fn no_caller_is_missing_without_a_mark_and_none_is_made_up() {
    for flags in [&[][..], &["-static"]] {
        let Some(lab) = Lab::with("missing", "missing", flags) else {
            return;
        };
        let options = ["-F", "999", "-e", "cpu-clock:u", "-g"];
        if lab.record("p.data", &options, &["./missing"]).is_none() {
            return;
        }
        let stacks = lab.show(&["fold", "-i"], "p.data");
        let mut told = [0; 4];
        for line in stacks.lines() {
            let (stack, _) = line.rsplit_once(' ').expect("a weight");
            let frames: Vec<&str> = stack.split(';').skip(1).collect();
            // Whatever stands around main is its caller, or a mark in front of it.
            if let Some(main) = frames.iter().position(|frame| *frame == "main") {
                let outer = &frames[..main];
                let of_library = outer.iter().all(|f| f.starts_with("__libc_start"));
                let is_marked = outer.first() == Some(&"[caller missing]")
                    && outer[1..].iter().all(|f| f.starts_with("__libc_start"));
                assert!(of_library || is_marked, "{line}");
            }
            let callers = |of: &str| {
                let at = frames.iter().position(|frame| frame.starts_with(of));
                at.map(|at| &frames[..at])
            };
            if let Some(outer) = callers("handler") {
                // At its first instructions it has no frame yet.
                let inner = outer.len() - 1;
                let begins = outer[inner] == "[caller missing]";
                let is_marked = inner > 0 && outer[inner - 1] == "[caller missing]";
                assert!(
                    begins || outer[inner].contains("restore_rt") && is_marked,
                    "{line}"
                );
                told[0] += 1;
            }
            if let Some(outer) = callers("interrupted") {
                assert_eq!(outer.last(), Some(&"starter"), "{line}");
                told[1] += 1;
            }
            // qsort keeps no frame: who called it is not known.
            if let Some(outer) = callers("compare") {
                assert!(
                    !outer.contains(&"main") || outer.contains(&"[caller missing]"),
                    "{line}"
                );
                told[2] += 1;
            }
            if let Some(outer) = callers("bare") {
                assert_eq!(
                    outer[outer.len() - 2..],
                    ["main", "[caller missing]"],
                    "{line}"
                );
                told[3] += 1;
            }
        }
        assert!(told.iter().all(|count| *count > 0), "{told:?} of {stacks}");
    }
}

#[test]
fn a_function_is_found_by_each_of_the_names_that_are_printed() {
    let stacks = stdout_of(&["fold"], "node");
    let names = stacks.lines().filter_map(|line| line.rsplit_once(' '));
    let names = names.flat_map(|(stack, _)| stack.split(';'));
    let mut names: Vec<&str> = names.filter(|name| name.starts_with("JS:")).collect();
    names.sort_unstable();
    names.dedup();
    assert!(
        names.iter().any(|name| name.starts_with("JS:*")),
        "{names:?}"
    );
    for name in names {
        let page = stdout_of(&["peek", name], "node");
        assert!(!page.is_empty(), "{name}");
    }
}

#[test]
fn a_table_of_which_a_limit_leaves_nothing_is_a_table() {
    // stdout_of() asserts the status.
    let limit = [
        "report",
        "--no-children",
        "-g",
        "none",
        "--percent-limit",
        "99",
    ];
    let table = stdout_of(&limit, "native");
    assert!(table.contains("# Overhead  Command"), "{table}");
    let branches = [&limit[..4], &["--no-branch-stack"]].concat();
    assert!(stdout_of(&branches, "native").contains("# Overhead  Command"));
}
