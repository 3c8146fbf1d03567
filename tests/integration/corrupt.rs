//! Damage: recordings cut anywhere and files with flipped bits must neither crash pjit, nor hang it, nor make it take all memory;
//! what lies wholly before a cut must be in the output.
//!
//! Every run is a child process with limits on processor time and address space. The damage comes from fixed seeds; set
//! `PJIT_CORRUPT=10` for ten times as much of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memchr::memmem;

use crate::support::{Random, SAMPLES, folded, pjit, sample};

/// Longest that a run may take. Samples take some hundredths of a second; test machines are busy.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Address space in KiB: threads' stacks and mapped files count.
const MEMORY_LIMIT: &str = "1500000";

/// How a limited run ended.
pub(crate) struct Ended {
    /// `None`: by a signal or the time limit.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command under the limits.
pub(crate) fn limited(command: &Command) -> Ended {
    limited_to(command, MEMORY_LIMIT)
}

/// The same with another limit of address space, in KiB.
pub(crate) fn limited_to(command: &Command, memory: &str) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let mut child = Command::new("/bin/sh")
        .args([
            "-c",
            &format!("ulimit -v {memory}; ulimit -t 10; exec \"$@\""),
            "sh",
        ])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).expect("it can be made"))
        .stderr(fs::File::create(&err).expect("it can be made"))
        .spawn()
        .expect("a shell can be run");
    let started = Instant::now();
    let mut pause = Duration::from_millis(2);
    let code = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status.code();
        }
        if started.elapsed() > TIME_LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let text =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Ended {
        code,
        stdout: text(&out),
        stderr: text(&err),
    }
}

/// Where a record lies in a recording.
pub(crate) struct RecordAt {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) is_sample: bool,
}

fn u64_at(data: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(
        data[at..at + 8].try_into().expect("eight bytes"),
    ))
    .expect("a size")
}

/// The records of an undamaged recording in file mode.
pub(crate) fn records(data: &[u8]) -> Vec<RecordAt> {
    let (mut at, end) = (u64_at(data, 40), u64_at(data, 40) + u64_at(data, 48));
    let mut found = Vec::new();
    while at < end {
        let kind = u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"));
        let size = usize::from(u16::from_le_bytes(
            data[at + 6..at + 8].try_into().expect("two bytes"),
        ));
        found.push(RecordAt {
            start: at,
            end: at + size,
            is_sample: kind == 9,
        });
        at += size;
    }
    found
}

/// The recording of a sample, with its dump at a place where none is: where it was recorded, the machine that runs the test
/// may have one.
fn recording(name: &str) -> Vec<u8> {
    let mut data = fs::read(sample(name, "perf.data")).expect("the sample has a recording");
    let recorded = format!("/tmp/pjit-sample/{name}/jit-");
    if let Some(at) = memmem::find(&data, recorded.as_bytes()) {
        data[at..at + 16].copy_from_slice(b"/tmp/pjit-absent");
    }
    data
}

/// A copy of a sample to damage: files are hard links until they are written.
struct Copy {
    folder: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Copy {
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let mut copy = Self {
            folder,
            files: Vec::new(),
        };
        copy.link(&sample(name, ""), Path::new(""));
        let data = copy.path(Path::new("perf.data"));
        fs::remove_file(&data).expect("it is a link");
        fs::write(&data, recording(name)).expect("it can be written");
        copy.files.sort();
        copy
    }

    fn link(&mut self, from: &Path, to: &Path) {
        for entry in fs::read_dir(from).expect("the sample is there") {
            let entry = entry.expect("it can be listed");
            let name = entry.file_name();
            let text = name.to_string_lossy();
            if text.ends_with(".txt")
                || text.ends_with(".folded")
                || text.ends_with(".md")
                || text == "source"
            {
                continue;
            }
            let target = to.join(&name);
            if entry.path().is_dir() {
                fs::create_dir(self.folder.path().join(&target)).expect("it can be made");
                self.link(&entry.path(), &target);
            } else {
                let path = self.folder.path().join(&target);
                if fs::hard_link(entry.path(), &path).is_err() {
                    fs::copy(entry.path(), &path).expect("it can be copied");
                }
                self.files.push(target);
            }
        }
    }

    fn path(&self, file: &Path) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Runs a view with the file replaced by `bytes`, then puts the file back.
    fn run_with(&self, file: &Path, bytes: &[u8], view: &[&str]) -> Ended {
        let path = self.path(file);
        let kept = path.with_extension("kept");
        fs::rename(&path, &kept).expect("it can be renamed");
        fs::write(&path, bytes).expect("it can be written");
        // The files of this machine must not stand in for damaged ones.
        let mut command = pjit();
        command
            .args(view)
            .arg("--symfs")
            .arg(self.path(Path::new("symfs")));
        let ended = limited(command.arg(self.path(Path::new("perf.data"))));
        fs::rename(&kept, &path).expect("it can be renamed");
        ended
    }
}

/// Views that between them reach every reader.
const VIEWS: [&[&str]; 4] = [
    &["check"],
    &["fold"],
    &["report", "--stdio", "--no-children"],
    &[
        "report",
        "--stdio",
        "--no-children",
        "-g",
        "none",
        "--sort",
        "comm,sym,srcline",
    ],
];

/// Fails unless it ended by itself, with a status that scripts know, and without reaching for the terminal.
fn assert_survived(ended: &Ended, what: &str) {
    let tail = |text: &str| {
        text.chars()
            .rev()
            .take(600)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<String>()
    };
    assert!(
        matches!(ended.code, Some(0 | 1 | 3)) && !ended.stderr.contains("panicked"),
        "{what}: status {:?}\n{}",
        ended.code,
        tail(&ended.stderr)
    );
    for text in [&ended.stdout, &ended.stderr] {
        let bad = text
            .chars()
            .find(|&c| c.is_control() && c != '\n' && c != '\t');
        assert!(
            bad.is_none(),
            "{what}: control character {bad:?} in the output"
        );
    }
}

/// How many times more damage than usual.
fn effort() -> usize {
    std::env::var("PJIT_CORRUPT")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1)
}

/// Evenly spread elements, at most `most`.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.into_iter().step_by(step).collect()
}

#[test]
fn a_cut_recording_keeps_what_is_before_the_cut() {
    for name in SAMPLES {
        let copy = Copy::of(name);
        let data = recording(name);
        let records = records(&data);
        let mut random = Random(1);
        // At a boundary, inside the record's header, and inside the record.
        let cuts: Vec<usize> = spread(records.iter().collect(), 12 * effort())
            .into_iter()
            .flat_map(|r| {
                [
                    r.start,
                    r.start + 5,
                    r.start + random.below(r.end - r.start),
                ]
            })
            .chain([r_end(&records), data.len() - 1])
            .collect();
        for cut in cuts {
            let ended = copy.run_with(
                Path::new("perf.data"),
                &data[..cut],
                &["fold", "--weight", "samples"],
            );
            let what = format!("{name}: perf.data cut at {cut}");
            assert_survived(&ended, &what);
            let wanted = records
                .iter()
                .filter(|r| r.is_sample && r.end <= cut)
                .count() as u64;
            let counted: u64 = folded(&ended.stdout).values().sum();
            assert_eq!(counted, wanted, "{what}: {}", ended.stderr);
            assert!(
                cut >= data.len() || !ended.stderr.is_empty(),
                "{what}: no warning"
            );
        }
    }
}

fn r_end(records: &[RecordAt]) -> usize {
    records.last().map_or(0, |r| r.end)
}

/// `perf record` that was killed leaves a header that says there is no data.
#[test]
fn a_killed_recording_is_read() {
    for name in SAMPLES {
        let copy = Copy::of(name);
        let mut data = recording(name);
        let records = records(&data);
        data.truncate(r_end(&records));
        data[48..56].fill(0);
        data[72..104].fill(0);
        let ended = copy.run_with(
            Path::new("perf.data"),
            &data,
            &["fold", "--weight", "samples"],
        );
        assert_survived(&ended, name);
        let counted: u64 = folded(&ended.stdout).values().sum();
        assert_eq!(
            counted,
            records.iter().filter(|r| r.is_sample).count() as u64,
            "{name}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.is_empty(), "{name}: no warning");
    }
}

/// Damages bytes: single bits, bytes that are extreme, whole integers, runs, or cuts the end off.
fn damage(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.is_empty() {
        return bytes;
    }
    // The front holds the headers, where damage goes deepest.
    let place = |random: &mut Random, length: usize| {
        if random.chance(0.4) {
            random.below(length.min(4096))
        } else {
            random.below(length)
        }
    };
    for _ in 0..=random.below(6) {
        let length = bytes.len();
        let at = place(random, length);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = *random.choose(&[0, 1, 0x7f, 0x80, 0xff]),
            2 => {
                let value = *random.choose(&[
                    0,
                    1,
                    u64::MAX,
                    u64::MAX - 7,
                    1 << 63,
                    1 << 32,
                    0xffff_ffff,
                    1 << 40,
                ]);
                let end = (at + 8).min(length);
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            3 => {
                let end = (at + 1 + random.below(64)).min(length);
                let byte = *random.choose(&[0, 0xff, b'A']);
                bytes[at..end].fill(byte);
            }
            4 => {
                let end = (at + 2).min(length);
                let value = u16::try_from(random.below(65536))
                    .expect("below")
                    .to_le_bytes();
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            _ if random.chance(0.3) => bytes.truncate(at.max(1)),
            _ => bytes.swap(at, length - 1 - at),
        }
    }
    bytes
}

fn damage_files(name: &str, wanted: fn(&Path) -> bool, rounds: usize, seed: u64) {
    let copy = Copy::of(name);
    let files: Vec<_> = copy.files.iter().filter(|f| wanted(f)).cloned().collect();
    assert!(!files.is_empty(), "{name} has such files");
    for round in 0..rounds * effort() {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(round as u64));
        let file = &files[round % files.len()];
        let bytes = damage(
            &fs::read(copy.path(file)).expect("it can be read"),
            &mut random,
        );
        let view = VIEWS[round % VIEWS.len()];
        let ended = copy.run_with(file, &bytes, view);
        assert_survived(
            &ended,
            &format!(
                "{name}: {} damaged, seed {seed} round {round}, {view:?}",
                file.display()
            ),
        );
    }
}

fn is(file: &Path, wanted: &str) -> bool {
    file.file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with(wanted))
}

#[test]
fn damaged_recordings_do_no_harm() {
    for (i, name) in SAMPLES.into_iter().enumerate() {
        damage_files(name, |f| is(f, "perf.data"), 24, i as u64);
    }
}

#[test]
fn damaged_dumps_do_no_harm() {
    for (i, name) in ["minijit", "wasmtime", "node"].into_iter().enumerate() {
        damage_files(name, |f| is(f, "jit-"), 18, 100 + i as u64);
    }
}

#[test]
fn damaged_binaries_do_no_harm() {
    for (i, name) in ["minijit", "native", "wasmtime"].into_iter().enumerate() {
        damage_files(
            name,
            |f| {
                f.starts_with("symfs")
                    && (is(f, "hot") || is(f, "minijit") || is(f, "libc") || is(f, "wasmtime"))
            },
            24,
            200 + i as u64,
        );
    }
}

#[test]
fn damaged_kernel_symbols_do_no_harm() {
    damage_files("native", |f| is(f, "kallsyms"), 12, 300);
}

/// The functions of a dump that are leaves of folded stacks, with their weights.
fn leaves_of(dump: &[u8], text: &str) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for (stack, weight) in folded(text) {
        let leaf = stack.rsplit(';').next().unwrap_or_default();
        if names(dump, leaf) > 0 {
            *leaves.entry(leaf.to_owned()).or_default() += weight;
        }
    }
    leaves
}

/// How often a dump names a function.
fn names(dump: &[u8], function: &str) -> usize {
    let name = [function.as_bytes(), b"\0"].concat();
    memmem::find_iter(dump, &name).count()
}

/// A dump cut in the middle of a record: what was loaded before has its name, what comes behind has none, and no sample is lost.
#[test]
fn a_cut_dump_is_read_up_to_the_cut() {
    for name in ["wasmtime", "minijit", "node"] {
        let copy = Copy::of(name);
        let is_dump = |f: &&PathBuf| is(f, "jit-");
        let dump = copy
            .files
            .iter()
            .find(is_dump)
            .expect("the sample has a dump")
            .clone();
        let bytes = fs::read(copy.path(&dump)).expect("it can be read");
        let view = ["fold", "--no-demangle"];
        let whole = copy.run_with(&dump, &bytes, &view);
        let all: u64 = folded(&whole.stdout).values().sum();
        let known = leaves_of(&bytes, &whole.stdout);
        assert!(!known.is_empty(), "{name}");
        let mut random = Random(2);
        let u32_at = |at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let mut boundaries = vec![u32_at(8)];
        while let Some(&at) = boundaries.last().filter(|&&at| at < bytes.len()) {
            boundaries.push(at + u32_at(at + 4));
        }
        for place in spread(
            boundaries.windows(2).map(|w| (w[0], w[1])).collect(),
            12 * effort(),
        ) {
            let cut = place.0 + 1 + random.below(place.1 - place.0 - 1);
            let what = format!("{name}: dump cut at {cut}, in the record at {}", place.0);
            let ended = copy.run_with(&dump, &bytes[..cut], &view);
            assert_survived(&ended, &what);
            assert_eq!(ended.code, Some(0), "{what}");
            assert_eq!(folded(&ended.stdout).values().sum::<u64>(), all, "{what}");
            assert!(
                ended.stderr.contains("jit-"),
                "{what}: no warning: {}",
                ended.stderr
            );
            let left = leaves_of(&bytes, &ended.stdout);
            for (function, weight) in &known {
                let (before, in_all) =
                    (names(&bytes[..place.0], function), names(&bytes, function));
                let found = left.get(function).copied().unwrap_or(0);
                if name == "minijit" {
                    // It moves code and uses addresses again, so that what is behind the cut counts for others.
                } else if before == in_all {
                    assert_eq!(found, *weight, "{what}: {function}");
                } else if names(&bytes[..cut], function) == 0 {
                    // A load that is cut behind its name counts: only bytes of its code are missing.
                    assert_eq!(found, 0, "{what}: {function}");
                }
            }
        }
    }
}

/// A recording as a pipe stream: the attributes as a record, then the records.
fn stream_of(data: &[u8], payload: &[u8]) -> Vec<u8> {
    let (entry, attrs) = (u64_at(data, 16), u64_at(data, 24));
    let attr = &data[attrs..attrs + entry - 16];
    let (ids, length) = (
        u64_at(data, attrs + entry - 16),
        u64_at(data, attrs + entry - 8),
    );
    let size = u16::try_from(8 + attr.len() + length).expect("few ids");
    let mut out = b"PERFILE2\x10\0\0\0\0\0\0\0\x40\0\0\0\0\0".to_vec();
    out.extend(size.to_le_bytes());
    out.extend(attr);
    out.extend(&data[ids..ids + length]);
    out.extend(payload);
    out
}

/// Samples whose records end before the given place, and whether a record is cut there.
fn samples_before(records: &[RecordAt], cut: usize) -> (u64, bool) {
    let samples = records
        .iter()
        .filter(|r| r.is_sample && r.end <= cut)
        .count() as u64;
    (
        samples,
        records.iter().any(|r| r.start < cut && cut < r.end),
    )
}

const COUNT_SAMPLES: [&str; 3] = ["fold", "--weight", "samples"];

#[test]
fn a_cut_stream_keeps_what_is_before_the_cut() {
    for name in SAMPLES {
        let copy = Copy::of(name);
        let data = recording(name);
        let records = records(&data);
        let first = records[0].start;
        let stream = stream_of(&data, &data[first..r_end(&records)]);
        let front = stream.len() - (r_end(&records) - first);
        let mut random = Random(3);
        for record in spread(records.iter().collect(), 10 * effort()) {
            let inside = record.start + 1 + random.below(record.end - record.start - 1);
            for cut in [record.end, inside] {
                let what = format!("{name}: stream cut where the recording has {cut}");
                let bytes = &stream[..front + cut - first];
                let ended = copy.run_with(Path::new("perf.data"), bytes, &COUNT_SAMPLES);
                assert_survived(&ended, &what);
                let (wanted, is_cut) = samples_before(&records, cut);
                assert_eq!(
                    folded(&ended.stdout).values().sum::<u64>(),
                    wanted,
                    "{what}: {}",
                    ended.stderr
                );
                assert!(
                    !is_cut || ended.stderr.contains("cut"),
                    "{what}: {}",
                    ended.stderr
                );
            }
        }
    }
}

/// Records in zstd frames, one for each compressed record. (perf writes one for the whole recording, flushed at the end of
/// each record.)
#[test]
fn a_cut_compressed_recording_keeps_what_is_before_the_cut() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    for name in SAMPLES {
        let copy = Copy::of(name);
        let data = recording(name);
        let records = records(&data);
        // End of each compressed record in the payload, and how much of the recording it completes.
        let (mut payload, mut ends) = (Vec::new(), vec![(0, records[0].start)]);
        for group in records.chunks(3) {
            let (start, end) = (group[0].start, group[group.len() - 1].end);
            let piece = compress_to_vec(&data[start..end], CompressionLevel::Fastest);
            payload.extend(81u32.to_le_bytes());
            payload.extend([0, 0]);
            payload.extend(
                u16::try_from(8 + piece.len())
                    .expect("a small group")
                    .to_le_bytes(),
            );
            payload.extend(piece);
            ends.push((payload.len(), end));
        }
        let stream = stream_of(&data, &payload);
        let front = stream.len() - payload.len();
        let mut random = Random(4);
        for pair in spread(
            ends.windows(2).map(|w| (w[0], w[1])).collect(),
            10 * effort(),
        ) {
            let ((start, whole), (end, next)) = pair;
            for cut in [end, start + 1 + random.below(end - start - 1)] {
                let what = format!("{name}: compressed recording cut at {cut}");
                let ended = copy.run_with(
                    Path::new("perf.data"),
                    &stream[..front + cut],
                    &COUNT_SAMPLES,
                );
                assert_survived(&ended, &what);
                let counted = folded(&ended.stdout).values().sum::<u64>();
                let (least, most) = (
                    samples_before(&records, whole).0,
                    samples_before(&records, next).0,
                );
                let least = if cut == end { most } else { least };
                assert!(
                    (least..=most).contains(&counted),
                    "{what}: {counted}, not {least} to {most}"
                );
                assert!(
                    cut == end || ended.stderr.contains("record is cut"),
                    "{what}: {}",
                    ended.stderr
                );
            }
        }
    }
}

/// `perf record -z` writes a packet of at most 65535 bytes and keeps what does not fit until the next one. At its end there is none.
#[test]
fn what_the_recorder_kept_is_told() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let data = recording("native");
    let records = records(&data);
    let all = &data[records[0].start..records[2].end];
    let piece = compress_to_vec(all, CompressionLevel::Fastest);
    for kept in [0, 5] {
        let piece = &piece[..piece.len() - kept];
        let mut payload = Vec::from(81u32.to_le_bytes());
        payload.extend([0, 0]);
        let size = u16::try_from(8 + piece.len()).expect("a small packet");
        payload.extend(size.to_le_bytes());
        payload.extend(piece);
        let copy = Copy::of("native");
        let stream = stream_of(&data, &payload);
        let ended = copy.run_with(Path::new("perf.data"), &stream, &["check"]);
        let is_told = ended.stderr.contains("the last records are missing");
        assert_eq!(is_told, kept > 0, "{}", ended.stderr);
        let is_warned = ended.stdout.contains("warn  recording ");
        assert_eq!(is_warned, kept > 0, "{}", ended.stdout);
    }
}

/// What a full disk or a crash of the machine leaves: zeros from some place on, in a file that was completed or was not.
#[test]
fn zeros_at_the_end_of_a_recording_cost_only_what_they_replace() {
    for name in SAMPLES {
        let copy = Copy::of(name);
        let good = recording(name);
        let records = records(&good);
        for (i, record) in spread(records.iter().collect(), 10 * effort())
            .into_iter()
            .enumerate()
        {
            let mut data = good.clone();
            let at = if i % 2 == 0 {
                record.end
            } else {
                record.start + 8
            };
            data[at..].fill(0);
            if i % 3 == 0 {
                data[48..56].fill(0);
                data[72..104].fill(0);
            }
            let what = format!("{name}: zeros from {at} on");
            let ended = copy.run_with(Path::new("perf.data"), &data, &COUNT_SAMPLES);
            assert_survived(&ended, &what);
            let counted = folded(&ended.stdout).values().sum::<u64>();
            let (whole, _) = samples_before(&records, at);
            // The record that is zeros but for its header may count as a sample.
            assert!(
                (whole..=whole + 1).contains(&counted),
                "{what}: {counted} of {whole}: {}",
                ended.stderr
            );
            assert!(
                at >= r_end(&records) || !ended.stderr.is_empty(),
                "{what}: no warning"
            );
        }
    }
}

/// Perf maps: good lines beside nonsense.
#[test]
fn damaged_perf_maps_do_no_harm() {
    let copy = Copy::of("minijit");
    let dump = copy
        .files
        .iter()
        .find(|f| is(f, "jit-"))
        .expect("the sample has a dump")
        .clone();
    let pid: String = dump
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    fs::remove_file(copy.path(&dump)).expect("it can be removed");
    let map = PathBuf::from(format!("perf-{pid}.map"));
    let mut text = String::new();
    let data = recording("minijit");
    for record in records(&data).iter().filter(|r| r.is_sample) {
        let ip = u64_at(&data, record.start + 8) as u64 & !0xff;
        text.push_str(&format!("{ip:x} 100 function at {ip:x}\n"));
    }
    fs::write(copy.path(&map), &text).expect("it can be written");
    for round in 0..12 * effort() {
        let bytes = damage(text.as_bytes(), &mut Random(400 + round as u64));
        let ended = copy.run_with(&map, &bytes, VIEWS[round % VIEWS.len()]);
        assert_survived(&ended, &format!("perf map damaged, round {round}"));
    }
    for nonsense in [
        "",
        "\n\n",
        "0 ffffffffffffffff everything\n",
        "ffffffffffffffff ffffffffffffffff x\n",
        "zz zz zz\n",
        "1 2\n",
        "\0\0\0\0",
    ] {
        let ended = copy.run_with(&map, nonsense.as_bytes(), &["fold"]);
        assert_survived(&ended, nonsense);
    }
}
