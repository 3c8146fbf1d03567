//! `pjit check`: recordings that are made bad on purpose, and what it says of each; the samples as they are.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::live::{Lab, total, truth};
use crate::recording::{CONTEXT_KERNEL, CONTEXT_USER, Recording, Sample, Stacks, User};
use crate::support::{SAMPLES, copy_folder, pjit, run, sample};

/// Findings as (level, check), and the whole table.
pub(crate) struct Table {
    status: Option<i32>,
    findings: Vec<(String, String)>,
    text: String,
}

impl Table {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        let lines = text
            .lines()
            .filter(|line| !line.starts_with(['#', ' ']) && !line.contains("fit for conclusions"));
        let findings = lines.map(|line| {
            let mut words = line.split_whitespace();
            let mut word = || words.next().unwrap_or_default().to_owned();
            (word(), word())
        });
        Self {
            status: output.status.code(),
            findings: findings.collect(),
            text,
        }
    }

    fn level(&self, check: &str) -> Option<&str> {
        let found = self.findings.iter().filter(|(_, name)| name == check);
        found.map(|(level, _)| level.as_str()).next_back()
    }

    /// The line of a check.
    pub(crate) fn line(&self, check: &str) -> &str {
        let mut lines = self.text.lines();
        let is_it = |line: &&str| line.split_whitespace().nth(1) == Some(check);
        lines.find(is_it).unwrap_or_default()
    }

    /// What would put a check right.
    fn fixes(&self, check: &str) -> Vec<&str> {
        let is_it = |line: &&str| line.split_whitespace().nth(1) != Some(check);
        let behind = self.text.lines().skip_while(is_it).skip(1);
        behind
            .take_while(|line| line.starts_with(' '))
            .filter_map(|line| line.trim_start().strip_prefix("fix: "))
            .collect()
    }
}

fn check(arguments: &[&str]) -> Output {
    let mut command = pjit();
    command.arg("check").args(arguments);
    command.output().expect("the binary can be run")
}

/// A copy of a sample that can be spoilt.
pub(crate) struct Copy(tempfile::TempDir);

impl Copy {
    pub(crate) fn of(name: &str) -> Self {
        let copy = Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder"));
        copy_folder(&sample(name, ""), copy.0.path());
        copy.edit_recording(|data| hide_dump(data, name));
        copy
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    /// The file whose name begins with `front`.
    fn named(&self, front: &str) -> PathBuf {
        let inside = fs::read_dir(self.0.path()).expect("it can be listed");
        let mut paths = inside.map(|entry| entry.expect("it can be listed").path());
        let fits = |path: &PathBuf| {
            let name = path.file_name().expect("a file").to_string_lossy();
            name.starts_with(front)
        };
        paths.find(fits).expect("the sample has one")
    }

    fn edit(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).expect("it can be read");
        change(&mut bytes);
        // The copy may be a hard link.
        fs::remove_file(path).expect("it can be removed");
        fs::write(path, bytes).expect("it can be written");
    }

    pub(crate) fn edit_recording(&self, change: impl FnOnce(&mut Vec<u8>)) {
        self.edit(&self.path("perf.data"), change);
    }

    /// Kernel symbols, unpacked.
    fn edit_kallsyms(&self, change: impl Fn(&str) -> String) {
        let path = self.path("kallsyms.gz");
        let mut text = String::new();
        let packed = fs::File::open(&path).expect("it is there");
        flate2::read::GzDecoder::new(packed)
            .read_to_string(&mut text)
            .expect("it is text");
        fs::remove_file(path).expect("it can be removed");
        let mut file = fs::File::create(self.path("kallsyms")).expect("it can be made");
        for line in text.lines() {
            writeln!(file, "{}", change(line)).expect("it can be written");
        }
    }

    pub(crate) fn check(&self, options: &[&str]) -> Table {
        let symfs = self.path("symfs");
        let symfs = symfs.to_str().expect("a plain path");
        let recording = self.path("perf.data");
        let mut arguments = vec!["--symfs", symfs, recording.to_str().expect("a plain path")];
        arguments.extend(options);
        Table::of(&check(&arguments))
    }
}

/// Lets the dump be recorded in a folder that no machine has, so that what lies beside the recording counts.
fn hide_dump(data: &mut [u8], name: &str) {
    let recorded = format!("/tmp/pjit-sample/{name}/jit-").into_bytes();
    for at in 0..data.len().saturating_sub(recorded.len()) {
        if data[at..].starts_with(&recorded) {
            data[at..at + 16].copy_from_slice(b"/nonexistent-dir");
        }
    }
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"))
}

fn put(data: &mut [u8], at: usize, value: u64) {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Offset and size of the records.
fn data_section(data: &[u8]) -> (usize, usize) {
    (u64_at(data, 40) as usize, u64_at(data, 48) as usize)
}

/// The sections behind the records are moved by so many bytes.
fn move_features(data: &mut [u8], old_end: usize, new_end: usize) {
    let features: u32 = data[72..104].iter().map(|byte| byte.count_ones()).sum();
    for number in 0..features as usize {
        let at = new_end + 16 * number;
        let offset = u64_at(data, at) as usize;
        put(data, at, (offset - old_end + new_end) as u64);
    }
}

/// Cuts every copy of a stack to `size` bytes. Behind it stand, in the samples, the number of its bytes and DATA_SRC.
pub(crate) fn shorten_stacks(data: &mut Vec<u8>, old: usize, size: usize) {
    let (start, length) = data_section(data);
    let mut out = data[..start].to_vec();
    let mut at = start;
    while at < start + length {
        let end = at + usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
        let record = &data[at..end];
        let stack = record.len().wrapping_sub(16 + old);
        if record[0] == 9 && stack < record.len() && u64_at(record, stack - 8) == old as u64 {
            let copied = u64_at(record, record.len() - 16).min(size as u64);
            let from = out.len();
            out.extend(&record[..stack + size]);
            out.extend(copied.to_le_bytes());
            out.extend(&record[record.len() - 8..]);
            put(&mut out, from + stack - 8, size as u64);
            let new = u16::try_from(out.len() - from).expect("smaller than before");
            out[from + 6..from + 8].copy_from_slice(&new.to_le_bytes());
        } else {
            out.extend(record);
        }
        at = end;
    }
    let new_end = out.len();
    out.extend(&data[start + length..]);
    put(&mut out, 48, (new_end - start) as u64);
    move_features(&mut out, start + length, new_end);
    *data = out;
}

/// Shifts the times of all records of a dump (`tools/perf/util/jitdump.h`: 40 bytes of header, then type, size, time).
fn shift_dump(data: &mut [u8], by: u64) {
    let time = u64_at(data, 24);
    put(data, 24, time.wrapping_add(by));
    let mut at = 40;
    while at + 16 <= data.len() {
        let size = u32::from_le_bytes(data[at + 4..at + 8].try_into().expect("four bytes"));
        let time = u64_at(data, at + 8);
        put(data, at + 8, time.wrapping_add(by));
        at += size as usize;
    }
}

/// Where the flags of the first event's attribute are; the clock stands 52 bytes behind.
fn flags_at(data: &[u8]) -> usize {
    u64_at(data, 24) as usize + 40
}

const USE_CLOCKID: u64 = 1 << 25;

/// Puts another byte into the build ID of an ELF file: behind the owner's name of its note.
fn change_build_id(data: &mut [u8]) {
    let note = b"\x03\0\0\0GNU\0";
    let found = data.windows(note.len()).position(|bytes| bytes == note);
    let at = found.expect("a build ID") + note.len();
    data[at] ^= 0xff;
}

#[test]
fn good_recordings_raise_no_alarm() {
    for name in SAMPLES {
        let output = run(&["check"], name);
        let table = Table::of(&output);
        assert_eq!(table.status, Some(0), "{name}: {}", table.text);
        let alarm = |(level, _): &&(String, String)| level == "warn" || level == "FAIL";
        let alarms: Vec<_> = table.findings.iter().filter(alarm).collect();
        assert!(alarms.is_empty(), "{name}: {alarms:?}\n{}", table.text);
        assert!(output.stderr.is_empty(), "{name}");
        let last = table.text.lines().last();
        assert_eq!(last, Some("fit for conclusions"), "{name}");
        assert_eq!(run(&["check", "--strict"], name).status.code(), Some(0));
    }
}

/// A sample, how it is spoilt, and what is found then.
struct Bad {
    name: &'static str,
    sample: &'static str,
    spoil: fn(&Copy),
    /// (level, check) that must be there.
    found: &'static [(&'static str, &'static str)],
    /// A fix of the first of these contains it.
    fix: &'static str,
    status: i32,
}

const BAD: [Bad; 16] = [
    Bad {
        name: "cut in the middle",
        sample: "native",
        spoil: |copy| copy.edit_recording(|data| data.truncate(data.len() / 2)),
        found: &[("FAIL", "recording")],
        fix: "copy the file again",
        status: 3,
    },
    Bad {
        name: "a few bytes are missing",
        sample: "native",
        spoil: |copy| {
            copy.edit_recording(|data| {
                let (start, length) = data_section(data);
                data.truncate(start + length - 100);
            });
        },
        found: &[("warn", "recording")],
        fix: "copy the file again",
        status: 0,
    },
    Bad {
        name: "perf record was killed",
        sample: "native",
        spoil: |copy| {
            copy.edit_recording(|data| {
                let (start, length) = data_section(data);
                data.truncate(start + length);
                put(data, 48, 0);
            });
        },
        found: &[("warn", "recording")],
        fix: "kill -INT",
        status: 0,
    },
    Bad {
        name: "zeros in the middle",
        sample: "native",
        spoil: |copy| {
            copy.edit_recording(|data| {
                let middle = crate::corrupt::records(data)[100].start;
                data[middle..middle + 64].fill(0);
            });
        },
        found: &[("FAIL", "recording")],
        fix: "record again",
        status: 3,
    },
    Bad {
        name: "dump missing",
        sample: "minijit",
        spoil: |copy| fs::remove_file(copy.named("jit-")).expect("it can be removed"),
        found: &[
            ("warn", "dumps.missing"),
            ("FAIL", "symbols"),
            ("warn", "symbols.jit"),
        ],
        fix: "--jitdump",
        status: 3,
    },
    Bad {
        name: "dump cut within a record",
        sample: "node",
        spoil: |copy| copy.edit(&copy.named("jit-"), |data| data.truncate(data.len() / 8)),
        found: &[
            ("warn", "dumps.cut"),
            ("FAIL", "symbols"),
            ("warn", "symbols.jit"),
        ],
        fix: "let the program end",
        status: 3,
    },
    Bad {
        name: "dump of an earlier process with the same id",
        sample: "minijit",
        spoil: |copy| {
            const HOUR: u64 = 3_600_000_000_000;
            copy.edit(&copy.named("jit-"), |data| {
                shift_dump(data, HOUR.wrapping_neg())
            });
        },
        found: &[
            ("warn", "dumps.stale"),
            ("warn", "symbols.jit"),
            ("FAIL", "symbols"),
        ],
        fix: "--jitdump",
        status: 3,
    },
    Bad {
        name: "dump on another clock than that of -k mono",
        sample: "minijit",
        spoil: |copy| {
            const HOUR: u64 = 3_600_000_000_000;
            copy.edit(&copy.named("jit-"), |data| shift_dump(data, HOUR));
        },
        found: &[
            ("warn", "dumps.stale"),
            ("warn", "symbols.other-run"),
            ("FAIL", "symbols"),
        ],
        fix: "--jitdump",
        status: 3,
    },
    Bad {
        name: "another clock",
        sample: "wasmtime",
        spoil: |copy| {
            copy.edit(&copy.named("jit-"), |data| shift_dump(data, 5_000_000));
            copy.edit_recording(|data| {
                let at = flags_at(data);
                let flags = u64_at(data, at);
                put(data, at, flags & !USE_CLOCKID);
            });
        },
        found: &[("warn", "clock")],
        fix: "pjit record, which takes the clock of dumps (-k mono)",
        status: 0,
    },
    Bad {
        name: "binary changed",
        sample: "native",
        spoil: |copy| {
            let changed = find(&copy.path("symfs"), "hot-rust");
            copy.edit(&changed, |data| change_build_id(data));
        },
        found: &[
            ("warn", "symbols.changed-file"),
            ("warn", "stacks.changed-file"),
            ("FAIL", "symbols"),
            ("FAIL", "stacks"),
        ],
        fix: "--symfs",
        status: 3,
    },
    Bad {
        name: "no files",
        sample: "native",
        spoil: |copy| {
            fs::remove_dir_all(copy.path("symfs")).expect("it can be removed");
            fs::create_dir(copy.path("symfs")).expect("it can be made");
        },
        found: &[
            ("warn", "symbols.missing-file"),
            ("warn", "stacks.missing-file"),
            ("FAIL", "symbols"),
            ("FAIL", "stacks"),
        ],
        fix: "--symfs",
        status: 3,
    },
    Bad {
        name: "kallsyms of another kernel",
        sample: "wasmtime",
        spoil: |copy| {
            copy.edit_kallsyms(|line| match line.split_once(" T _etext") {
                Some((address, _)) => {
                    let end = u64::from_str_radix(address, 16).expect("an address");
                    format!("{:016x} T _etext", end + 0x1234)
                }
                None => line.to_owned(),
            });
        },
        found: &[("warn", "kernel"), ("FAIL", "symbols")],
        fix: "--kallsyms",
        status: 3,
    },
    Bad {
        name: "kallsyms without addresses",
        sample: "wasmtime",
        spoil: |copy| {
            copy.edit_kallsyms(|line| {
                let name = line.split_once(' ').map_or("", |(_, rest)| rest);
                format!("{:016x} {name}", 0)
            });
        },
        found: &[("warn", "kernel"), ("FAIL", "symbols")],
        fix: "kernel.kptr_restrict=0",
        status: 3,
    },
    Bad {
        name: "no kallsyms",
        sample: "wasmtime",
        spoil: |copy| fs::remove_file(copy.path("kallsyms.gz")).expect("it can be removed"),
        found: &[("warn", "kernel")],
        fix: "/proc/kallsyms",
        status: 3,
    },
    Bad {
        name: "small dumps of stacks",
        sample: "native",
        spoil: |copy| copy.edit_recording(|data| shorten_stacks(data, 4096, 512)),
        found: &[("FAIL", "stacks"), ("warn", "stacks.short")],
        fix: "",
        status: 3,
    },
    Bad {
        name: "a kallsyms that is none",
        sample: "wasmtime",
        spoil: |copy| {
            fs::remove_file(copy.path("kallsyms.gz")).expect("it can be removed");
            fs::write(copy.path("kallsyms"), "nonsense\n").expect("it can be written");
        },
        found: &[("warn", "kernel")],
        fix: "--kallsyms",
        status: 3,
    },
];

fn find(folder: &Path, name: &str) -> PathBuf {
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.file_name().is_some_and(|own| own == name) {
                return path;
            }
        }
    }
    panic!("no {name} in the sample");
}

#[test]
fn what_is_bad_is_found_with_what_puts_it_right() {
    let mut wrong = Vec::new();
    for bad in &BAD {
        let copy = Copy::of(bad.sample);
        (bad.spoil)(&copy);
        let table = copy.check(&[]);
        let missing = bad
            .found
            .iter()
            .filter(|(level, check)| table.level(check) != Some(level));
        let missing: Vec<_> = missing.collect();
        let first = bad.found[0].1;
        let is_fixed = table.fixes(first).iter().any(|fix| fix.contains(bad.fix));
        if !missing.is_empty()
            || table.status != Some(bad.status)
            || !(is_fixed || bad.fix.is_empty())
        {
            wrong.push(format!(
                "{}: {missing:?} not found, status {:?}, fix {:?}\n{}",
                bad.name, table.status, bad.fix, table.text
            ));
        }
        // The recording is never fit in the strict sense.
        assert_eq!(copy.check(&["--strict"]).status, Some(3), "{}", bad.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The size that is recommended makes the stacks whole: the sample, which was recorded with more, shows it.
#[test]
fn the_recommended_dump_size_suffices() {
    for (name, old, small) in [
        ("native", 4096, 512),
        ("native", 4096, 1024),
        ("node", 8192, 2048),
    ] {
        let copy = Copy::of(name);
        copy.edit_recording(|data| shorten_stacks(data, old, small));
        let table = copy.check(&[]);
        assert_eq!(
            table.level("stacks"),
            Some("FAIL"),
            "{name} {small}: {}",
            table.text
        );
        let fixes = table.fixes("stacks.short");
        let size = fixes
            .iter()
            .find_map(|fix| {
                fix.rsplit_once("--call-graph dwarf,")?
                    .1
                    .parse::<usize>()
                    .ok()
            })
            .unwrap_or_else(|| panic!("{name} {small}: no size in {fixes:?}"));
        assert!(
            size > small && size <= 2 * old,
            "{name}: {size} for {small}"
        );
        let better = Copy::of(name);
        if size < old {
            better.edit_recording(|data| shorten_stacks(data, old, size));
        }
        let table = better.check(&[]);
        assert_eq!(
            table.level("stacks.short"),
            None,
            "{name} {size}: {}",
            table.text
        );
        assert_eq!(table.status, Some(0), "{name} {size}: {}", table.text);
    }
}

/// Of the copy of every stack only `copied` bytes could be had, as where a page is not in memory.
fn interrupt_copies(data: &mut [u8], size: usize, copied: usize) {
    let (start, length) = data_section(data);
    let mut at = start;
    while at < start + length {
        let end = at + usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
        let stack = end.wrapping_sub(16 + size);
        if data[at] == 9 && stack > at && stack < end && u64_at(data, stack - 8) == size as u64 {
            let had = u64_at(data, end - 16);
            put(data, end - 16, had.min(copied as u64));
        }
        at = end;
    }
}

#[test]
fn a_page_that_could_not_be_copied_is_no_lack_of_size() {
    let copy = Copy::of("native");
    copy.edit_recording(|data| interrupt_copies(data, 4096, 256));
    let table = copy.check(&[]);
    assert_eq!(table.level("stacks.short"), None, "{}", table.text);
    assert!(
        table.level("stacks.absent-page").is_some(),
        "{}",
        table.text
    );
    let fixes = table.fixes("stacks.absent-page").join("\n");
    assert!(!fixes.contains("dwarf,"), "{fixes}");
}

/// One process in anonymous memory, `samples` samples of 100.
fn in_memory(pid: u32, samples: u64, stacks: Stacks) -> Recording {
    let mut recording = Recording::new(stacks);
    recording.comm(pid, pid, b"runtime");
    recording.map(pid, 0x10_0000, 0x1000, 0, b"//anon");
    for number in 0..samples {
        recording.sample(&Sample {
            ip: 0x10_0010,
            pid,
            tid: pid,
            time: 1000 + number,
            period: 100,
            chain: &[CONTEXT_USER, 0x10_0010, 0x10_0020],
            user: None,
        });
    }
    recording
}

fn check_bytes(bytes: &[u8], options: &[&str]) -> Table {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, bytes).expect("it can be written");
    let mut arguments = vec![path.to_str().expect("a plain path")];
    arguments.extend(options);
    Table::of(&check(&arguments))
}

fn script_bytes(bytes: &[u8]) -> String {
    let mut command = pjit();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, bytes).expect("it can be written");
    let output = command.args(["script", "-i"]).arg(&path).output();
    String::from_utf8(output.expect("the binary can be run").stdout).expect("UTF-8")
}

#[test]
fn lost_and_throttled_samples_are_counted() {
    let with_loss = |lost| {
        let mut recording = in_memory(10, 100, Stacks::None);
        recording.lost(lost, 2000);
        recording.file()
    };
    let options = ["--min-resolved", "0"];
    for (lost, level, status) in [(2, "warn", 0), (20, "FAIL", 3)] {
        let table = check_bytes(&with_loss(lost), &options);
        assert_eq!(table.level("samples"), Some(level), "{}", table.text);
        assert_eq!(table.status, Some(status), "{}", table.text);
        assert!(
            table
                .fixes("samples")
                .iter()
                .any(|fix| fix.contains("-m 16M"))
        );
    }
    let looser = check_bytes(&with_loss(20), &["--min-resolved", "0", "--max-lost", "20"]);
    assert_eq!(looser.status, Some(0), "{}", looser.text);

    let mut throttled = in_memory(10, 100, Stacks::None);
    (0..5).for_each(|number| throttled.throttled(2000 + number));
    let table = check_bytes(&throttled.file(), &options);
    assert_eq!(
        table.level("samples.throttled"),
        Some("warn"),
        "{}",
        table.text
    );
    assert!(
        table.line("samples").contains("throttled 5 times"),
        "{}",
        table.text
    );
}

#[test]
fn runtime_code_without_a_dump_asks_for_one() {
    let table = check_bytes(&in_memory(10, 50, Stacks::None).file(), &[]);
    assert_eq!(table.level("symbols.jit"), Some("warn"), "{}", table.text);
    let fixes = table.fixes("symbols.jit").join(" ");
    assert!(
        fixes.contains("pjit guide record") && fixes.contains("--jitdump"),
        "{fixes}"
    );
    assert_eq!(table.status, Some(3));
    assert_eq!(
        table.text.lines().last(),
        Some("not fit for conclusions: symbols")
    );
}

#[test]
fn a_process_that_no_record_tells_of_is_told_from_a_hole_in_its_mappings() {
    // Slices of `--switch-output` do not repeat the mappings of a command's children.
    let mut recording = in_memory(10, 50, Stacks::None);
    for (pid, number) in (0..50).flat_map(|number| [(10, number), (11, number)]) {
        recording.sample(&Sample {
            ip: 0x70_0010,
            pid,
            tid: pid,
            time: 2000 + number,
            period: 100,
            chain: &[],
            user: None,
        });
    }
    let table = check_bytes(&recording.file(), &[]);
    for check in ["symbols.untold-process", "symbols.unmapped"] {
        let line = table.line(check);
        assert!(line.contains("33.33%"), "{}", table.text);
    }
    let fixes = table.fixes("symbols.untold-process").join(" ");
    assert!(fixes.contains("perf record -a"), "{fixes}");
}

#[test]
fn a_stale_perf_map_is_named() {
    // No process has this id: Linux ends at 4194304.
    let pid = 4_190_000 + std::process::id() % 4000;
    let path = format!("/tmp/perf-{pid}.map");
    fs::write(&path, "7f0000001000 100 of_another_process\n").expect("it can be written");
    let table = check_bytes(&in_memory(pid, 50, Stacks::None).file(), &[]);
    fs::remove_file(&path).expect("it can be removed");
    assert_eq!(table.level("dumps.stale"), Some("warn"), "{}", table.text);
    assert!(table.line("dumps.stale").contains(&path), "{}", table.text);
    assert!(table.fixes("dumps.stale")[0].contains("--perf-map"));
}

/// Runtimes drop code and put other code in its place; a map has both lines, and no times.
#[test]
fn addresses_of_several_functions_of_a_map_are_doubtful() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("perf-10.map");
    let bytes = in_memory(10, 50, Stacks::None).file();
    for (text, level) in [
        ("100000 100 one\n100000 80 two\n", Some("FAIL")),
        ("100000 100 one\n100000 100 one\n", None),
        // Elsewhere than the samples.
        ("100000 40 one\n100080 40 two\n100080 40 three\n", None),
    ] {
        fs::write(&map, text).expect("it can be written");
        let table = check_bytes(&bytes, &["--perf-map", map.to_str().expect("UTF-8")]);
        assert_eq!(table.level("dumps.reused"), level, "{text}{}", table.text);
        let is_fit = level.is_none();
        assert_eq!(table.status == Some(0), is_fit, "{text}{}", table.text);
    }
}

#[test]
fn recordings_without_stacks_fail_only_when_stacks_are_asked_for() {
    let none = in_memory(10, 50, Stacks::None).file();
    let table = check_bytes(&none, &["--min-resolved", "0"]);
    assert_eq!(table.level("stacks"), Some("warn"), "{}", table.text);
    assert!(table.fixes("stacks")[0].contains("pjit record"));
    assert_eq!(table.status, Some(0));
    let asked = check_bytes(&none, &["--min-resolved", "0", "--min-complete", "50"]);
    assert_eq!(asked.status, Some(3), "{}", asked.text);

    // Chains that end in the middle of nowhere.
    let chains = in_memory(10, 50, Stacks::Callchain).file();
    let table = check_bytes(&chains, &["--min-resolved", "0"]);
    assert_eq!(table.level("stacks"), Some("warn"), "{}", table.text);
    assert!(table.line("stacks").contains("0.00% reach main"));
    assert!(table.fixes("stacks")[0].contains("-fno-omit-frame-pointer"));
    assert_eq!(table.status, Some(0));
    let asked = check_bytes(&chains, &["--min-resolved", "0", "--min-complete", "50"]);
    assert_eq!(asked.status, Some(3), "{}", asked.text);
}

#[test]
fn a_recording_without_samples_or_with_few_is_not_fit() {
    let few = in_memory(10, 29, Stacks::None).file();
    let table = check_bytes(&few, &["--min-resolved", "0"]);
    assert_eq!(table.level("samples.few"), Some("FAIL"), "{}", table.text);
    let enough = check_bytes(&few, &["--min-resolved", "0", "--min-samples", "29"]);
    assert_eq!(enough.status, Some(0), "{}", enough.text);
    let table = check_bytes(&in_memory(10, 0, Stacks::None).file(), &[]);
    assert_eq!(
        (table.status, table.level("samples")),
        (Some(3), Some("FAIL")),
        "{}",
        table.text
    );
}

/// A stack that was copied to where its memory ends is not too short, whatever it looks like.
#[test]
fn no_larger_dump_is_asked_for_where_the_stack_ends() {
    let recording = |copied: usize| {
        let mut recording = Recording::new(Stacks::Dwarf);
        recording.comm(10, 10, b"runtime");
        recording.map(10, 0x10_0000, 0x1000, 0, b"//anon");
        let mut registers = [0; 20];
        // Stack pointer, instruction pointer, frame pointer; a frame whose caller's frame lies behind the copy.
        registers[7] = 0x7000_0000;
        registers[8] = 0x10_0010;
        registers[6] = 0x7000_0040;
        let mut stack = vec![0x55; copied];
        stack[0x40..0x48].copy_from_slice(&0x7000_0400_u64.to_le_bytes());
        stack[0x48..0x50].copy_from_slice(&0x10_0020_u64.to_le_bytes());
        recording.sample(&Sample {
            ip: 0x10_0010,
            pid: 10,
            tid: 10,
            time: 1000,
            period: 100,
            chain: &[CONTEXT_USER, 0x10_0010],
            user: Some(User {
                registers: &registers,
                stack: &stack,
            }),
        });
        recording.file()
    };
    let table = check_bytes(&recording(256), &[]);
    assert_eq!(table.level("stacks.short"), Some("warn"), "{}", table.text);
    // 252 bytes of 256.
    let table = check_bytes(&recording(252), &[]);
    assert_eq!(table.level("stacks.short"), None, "{}", table.text);
    assert_eq!(table.level("stacks"), Some("FAIL"), "{}", table.text);
}

/// Of a machine that nobody here can unwind, all that was recorded is shown, and why there is no more.
#[test]
fn chains_of_an_unknown_machine_are_shown_as_recorded() {
    let sample = |recording: &mut Recording, time, chain: &[u64], with_user: bool| {
        let user = User {
            registers: &[0x10_0010; 20],
            stack: &[0x20; 64],
        };
        recording.sample(&Sample {
            ip: *chain.get(1).unwrap_or(&0x10_0010),
            pid: 10,
            tid: 10,
            time,
            period: 100,
            chain,
            user: with_user.then_some(user),
        });
    };
    let machine = |recording: &mut Recording| {
        const ARCH: u32 = 6;
        recording.text_feature(ARCH, b"riscv64");
        recording.comm(10, 10, b"app");
        recording.map(10, 0x10_0000, 0x1000, 0, b"/bin/app");
    };
    let kernel = [CONTEXT_KERNEL, 0xffff_ffff_8000_1000, 0xffff_ffff_8000_2000];
    let mut copied = Recording::new(Stacks::Dwarf);
    machine(&mut copied);
    sample(&mut copied, 1000, &[], true);
    sample(&mut copied, 2000, &kernel, true);
    let table = check_bytes(&copied.file(), &[]);
    let finding = table.line("stacks.registers");
    assert!(
        finding.contains("100.00% were copied to be unwound, which pjit cannot do for riscv64"),
        "{}",
        table.text
    );
    assert_eq!(table.fixes("stacks.registers"), ["pjit record -g"]);
    let printed = script_bytes(&copied.file());
    let addresses = |text: &str| -> Vec<String> {
        let frames = text.lines().filter(|line| line.starts_with('\t'));
        let words = frames.filter_map(|line| line.split_whitespace().next());
        words.map(str::to_owned).collect()
    };
    assert_eq!(
        addresses(&printed),
        ["ffffffff80001000", "ffffffff80002000"],
        "{printed}"
    );
    // Frame pointers need nobody who knows the machine.
    let user = [CONTEXT_USER, 0x10_0010, 0x10_0020];
    let mut followed = Recording::new(Stacks::Callchain);
    machine(&mut followed);
    sample(&mut followed, 1000, &[&kernel[..], &user].concat(), false);
    let printed = script_bytes(&followed.file());
    assert_eq!(
        addresses(&printed),
        ["ffffffff80001000", "ffffffff80002000", "100010", "100020"],
        "{printed}"
    );
}

#[test]
fn names_reach_neither_the_terminal_nor_the_shell() {
    let mut recording = Recording::new(Stacks::None);
    recording.comm(10, 10, b"a");
    recording.map(
        10,
        0x10_0000,
        0x1000,
        0,
        b"/usr/lib/\x1b]0;x\x07$(touch x)';'.so",
    );
    recording.sample(&Sample {
        ip: 0x10_0010,
        pid: 10,
        tid: 10,
        time: 1000,
        period: 100,
        chain: &[],
        user: None,
    });
    let table = check_bytes(&recording.file(), &[]);
    let harmless = |text: &str| text.chars().all(|c| c == '\n' || !c.is_control());
    assert!(harmless(&table.text), "{:?}", table.text);
    let fix = table.fixes("symbols.missing-file").join("\n");
    assert!(
        fix.contains(r"'symfs/usr/lib/\x1b]0;x\x07$(touch x)'\'';'\''.so'"),
        "{fix}"
    );
}

#[test]
fn usage_and_errors_have_their_own_status() {
    let recording = sample("minijit", "perf.data");
    let recording = recording.to_str().expect("a plain path");
    let status = |arguments: &[&str]| check(arguments).status.code();
    assert_eq!(status(&["/nonexistent/perf.data"]), Some(1));
    assert_eq!(status(&["--min-complete", "101", recording]), Some(2));
    assert_eq!(status(&["--max-lost", "x", recording]), Some(2));
    assert_eq!(status(&["--no-such-option", recording]), Some(2));
    assert_eq!(status(&["-i", recording]), Some(0));
    // Colours where they are asked for, and nowhere else.
    let colored = check(&["--color", "always", recording]).stdout;
    let plain = check(&["--color", "never", recording]).stdout;
    assert!(colored.contains(&0x1b) && !plain.contains(&0x1b));
    assert_eq!(check(&[recording]).stdout, plain);
}

/// Threads that run shorter than the time between two samples, against the CPU time that the program prints.
#[test]
fn what_short_threads_ran_is_missed() {
    let Some(lab) = Lab::with("brief", "brief", &["-pthread"]) else {
        return;
    };
    let options = ["-e", "cpu-clock", "-F", "997", "-g"];
    let Some(printed) = lab.record("short.data", &options, &["./brief", "2000", "300000"]) else {
        return;
    };
    let ran = truth(&printed)["cpu"];
    // Without any sample there is none to weigh.
    let (status, folded, _) = lab.pjit(&["fold"], "short.data");
    let seen = if status == 0 {
        total(&folded) as f64 / 1e9
    } else {
        0.0
    };
    assert!(seen < 0.7 * ran, "{seen} of {ran} s");
    let (_, text, _) = lab.pjit(&["check"], "short.data");
    let line = text.lines().find(|line| line.contains(" samples.brief "));
    let line = line.unwrap_or_else(|| panic!("{seen} of {ran} s in\n{text}"));
    // On a busy machine some live longer than others.
    let threads = line.split(' ').skip_while(|word| *word != "of").nth(1);
    let threads: Option<u32> = threads.and_then(|count| count.parse().ok());
    assert!(
        threads.is_some_and(|count| (1000..=2000).contains(&count)),
        "{line}"
    );
    let words: Vec<&str> = line
        .split(" about ")
        .nth(1)
        .expect("how much")
        .split(' ')
        .collect();
    let seconds = |number: &str, unit: &str| {
        let number: f64 = number.parse().expect("a number");
        if unit == "ms" { number / 1e3 } else { number }
    };
    let (missing, all) = (seconds(words[0], words[1]), seconds(words[3], words[4]));
    assert!(
        missing > 0.6 * (ran - seen) && all > 0.6 * ran,
        "{seen} of {ran}: {line}"
    );
    // Few that run long lose nothing worth a word.
    if lab
        .record("long.data", &options, &["./brief", "4", "50000000"])
        .is_some()
    {
        let (_, text, _) = lab.pjit(&["check"], "long.data");
        assert!(!text.contains("samples.brief"), "{text}");
    }
    // Counters of processors go on, whichever thread ends.
    let machine = [&options[..], &["-a"]].concat();
    if lab
        .record("machine.data", &machine, &["./brief", "2000", "300000"])
        .is_some()
    {
        let (_, text, _) = lab.pjit(&["check"], "machine.data");
        assert!(!text.contains("samples.brief"), "{text}");
    }
}

/// Code that the kernel makes of filters lies behind its own, and nothing tells of it; its addresses are not hidden.
#[test]
fn kernel_code_without_a_record_is_not_hidden() {
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const FILTER: u64 = 0xffff_ffff_c002_5000;
    let folder = tempfile::tempdir().expect("a folder");
    let symbols = format!("{KERNEL:x} T _text\n{:x} T do_work\n", KERNEL + 0x1000);
    fs::write(folder.path().join("kallsyms"), symbols).expect("it can be written");
    let check = |has_map: bool| {
        let mut recording = Recording::new(Stacks::Callchain);
        if has_map {
            recording.kernel_map(KERNEL, 0x10_0000, b"[kernel.kallsyms]_text");
        }
        recording.comm(10, 10, b"app");
        for (time, ip) in (1000..).zip([KERNEL + 0x1010, FILTER + 0x10].repeat(50)) {
            let sample = Sample {
                ip,
                pid: 10,
                tid: 10,
                time,
                period: 1,
                chain: &[CONTEXT_KERNEL, ip],
                user: None,
            };
            recording.sample_in(1, &sample);
        }
        let path = folder.path().join("perf.data");
        fs::write(&path, recording.file()).expect("it can be written");
        let kallsyms = folder.path().join("kallsyms");
        let output = pjit()
            .arg("check")
            .arg("--kallsyms")
            .arg(kallsyms)
            .arg(path)
            .output();
        Table::of(&output.expect("the binary can be run"))
    };
    let told = check(true);
    let line = told.line("symbols.kernel-untold");
    assert!(
        line.contains(" 50.00% in code that the kernel made"),
        "{}",
        told.text
    );
    assert!(
        told.fixes("symbols.kernel-untold").is_empty(),
        "{}",
        told.text
    );
    let hidden = check(false);
    assert!(
        hidden.level("symbols.kernel-untold").is_none(),
        "{}",
        hidden.text
    );
}
