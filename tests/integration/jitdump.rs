//! `pjit jitdump` on the samples' dumps and on dumps made and damaged here, byte by byte after the specification.

use std::path::Path;

use crate::corrupt::{Ended, limited};
use crate::support::{Random, pjit, sample};

/// Little-endian words, one after the other.
pub(crate) struct Dump(pub(crate) Vec<u8>);

/// What a dump begins with, apart from magic and sizes.
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) size: u32,
    pub(crate) machine: u32,
    pub(crate) padding: u32,
    pub(crate) pid: u32,
    pub(crate) time: u64,
    pub(crate) flags: u64,
}

pub(crate) const HEAD: Head = Head {
    version: 1,
    size: 40,
    machine: 62,
    padding: 0,
    pid: 77,
    time: 9_000_000_000_000,
    flags: 0,
};

/// A time of records.
const NOW: u64 = 9_000_000_500_000;
const CODE: u64 = 0x7f12_0000_4000;

impl Dump {
    pub(crate) fn new(head: &Head) -> Self {
        let mut dump = Self(b"DTiJ".to_vec());
        for word in [
            head.version,
            head.size,
            head.machine,
            head.padding,
            head.pid,
        ] {
            dump.word(word);
        }
        dump.long(head.time).long(head.flags);
        dump.0.resize(dump.0.len().max(head.size as usize), 0);
        dump
    }

    fn word(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn long(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn record(&mut self, kind: u32, time: u64, body: &[u8]) -> &mut Self {
        self.word(kind).word(16 + body.len() as u32).long(time);
        self.0.extend(body);
        self
    }

    fn load(&mut self, time: u64, at: u64, index: u64, name: &[u8], code: &[u8]) -> &mut Self {
        self.load_of(77, time, at, index, name, code)
    }

    pub(crate) fn load_of(
        &mut self,
        pid: u32,
        time: u64,
        at: u64,
        index: u64,
        name: &[u8],
        code: &[u8],
    ) -> &mut Self {
        let body = load_body([pid, pid], [at, at, code.len() as u64, index], name, code);
        self.record(0, time, &body)
    }

    fn debug(&mut self, at: u64, lines: &[(u64, u32, &[u8])]) -> &mut Self {
        let at_column = |&(address, line, file)| (address, [line, 0], file);
        let lines: Vec<_> = lines.iter().map(at_column).collect();
        self.debug_at(at, &lines)
    }

    /// With addresses, lines and columns.
    pub(crate) fn debug_at(&mut self, at: u64, lines: &[(u64, [u32; 2], &[u8])]) -> &mut Self {
        let mut body = Self(Vec::new());
        body.long(at).long(lines.len() as u64);
        for (address, [line, column], file) in lines {
            body.long(*address).word(*line).word(*column);
            body.0.extend(*file);
            body.0.push(0);
        }
        self.record(2, NOW, &body.0)
    }
}

fn load_body(ids: [u32; 2], words: [u64; 4], name: &[u8], code: &[u8]) -> Vec<u8> {
    let mut body = Dump(Vec::new());
    body.word(ids[0]).word(ids[1]);
    for word in words {
        body.long(word);
    }
    body.0.extend(name);
    body.0.push(0);
    body.0.extend(code);
    body.0
}

/// Nothing to complain of.
fn good() -> Dump {
    let mut dump = Dump::new(&HEAD);
    dump.load(NOW, CODE, 0, b"first", &[0x90; 8])
        .load(NOW + 1, CODE + 64, 1, b"second", &[0x90; 8])
        .record(3, NOW + 2, &[]);
    dump
}

fn judged(arguments: &[&str], name: &str, bytes: &[u8]) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("it can be written");
    limited(pjit().arg("jitdump").args(arguments).arg(path))
}

/// The lints of a dump, as printed.
fn lints(dump: &Dump) -> Vec<String> {
    let ended = judged(&[], "jit-77.dump", &dump.0);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.stdout.lines().map(str::trim_start);
    lines
        .filter(|line| {
            ["error: ", "warning: ", "note: "]
                .iter()
                .any(|g| line.starts_with(g))
        })
        .map(str::to_owned)
        .collect()
}

/// Grade and a part of the text of each lint.
type Wanted<'w> = &'w [(&'w str, &'w str)];

/// Fails unless there is exactly this to say: each begins and goes on as told.
fn assert_lints(what: &str, dump: &Dump, wanted: Wanted) {
    let found = lints(dump);
    let fits = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(line, (grade, part))| {
            line.starts_with(&format!("{grade}: ")) && line.contains(part)
        });
    assert!(fits, "{what}: {found:#?}\nwanted {wanted:#?}");
}

#[test]
fn a_good_dump_has_no_lints() {
    assert_lints("good", &good(), &[]);
    let ended = judged(&["--strict"], "jit-77.dump", &good().0);
    assert_eq!(ended.code, Some(0));
    for part in [
        "jitdump version 1, x86-64, little endian, header of 40 bytes",
        "pid 77; code loaded by thread 77",
        "9000.000000000 s, on the clock of the records",
        "2 LOAD, 1 CLOSE",
        "2 functions, 16 bytes (largest 8), at 0x7f1200004000 to 0x7f1200004048",
        "Addresses    none used twice",
        "Lints        none",
    ] {
        assert!(ended.stdout.contains(part), "{part}:\n{}", ended.stdout);
    }
}

#[test]
fn samples_are_told_by_their_runtimes() {
    let summary = |name: &str, file: &str| {
        let output = pjit()
            .args(["jitdump", "--strict"])
            .arg(sample(name, file))
            .output()
            .expect("the binary can be run");
        assert_eq!(output.status.code(), Some(0), "{name}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let has = |text: &str, parts: &[&str]| {
        for part in parts {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    };
    let wasmtime = summary("wasmtime", "jit-10150.dump");
    has(
        &wasmtime,
        &[
            "wasmtime, by 13 of 18 names",
            "on the clock of the records",
            " 18 LOAD\n",
            "1 note\n",
            "note: no CLOSE record at the end (usual for wasmtime)",
        ],
    );
    let node = summary("node", "jit-17065.dump");
    has(
        &node,
        &[
            "V8 (Node.js, Chromium, Deno), by 2391 of 2391 names",
            "microseconds since 1970: 2026-11-21 13:54:34 UTC",
            "2391 LOAD, 57 DEBUG_INFO, 2391 UNWINDING_INFO",
            "21 described, 2370 with an empty table",
            "wall-clock time in microseconds",
            "57 LOADs with line addresses 0x40 too high",
            "0xdeadbeef (usual for V8)",
        ],
    );
    let unusual = node
        .lines()
        .filter(|l| l.starts_with("    ") && !l.contains("(usual for V8)"));
    assert_eq!(unusual.count(), 0, "{node}");
    let by_hand = summary("minijit", "jit-10624.dump");
    has(
        &by_hand,
        &[
            "6 LOAD, 1 MOVE, 1 DEBUG_INFO, 1 UNWINDING_INFO, 1 CLOSE",
            "1 LOAD across earlier functions",
            "4 lines in 1 function of 1 file",
            "1 described, 0 with an empty table; data/header/mapped bytes: 72/20/72 (1)",
            "Lints        none",
        ],
    );
}

#[test]
fn lists_show_what_is_in_the_file() {
    let output = pjit()
        .args(["jitdump", "--all"])
        .arg(sample("minijit", "jit-10624.dump"))
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    for row in [
        // Offset, size, time, kind, contents.
        "0x28 111 2975.553220326 DEBUG_INFO 0x7fd4c2b9c000 4 lines",
        "0x322 64 2977.303342354 MOVE 5 0x7fd4c2b9c100 -> 0x7fd4c2b9c140 +0x15",
        "0x362 16 2977.553383183 CLOSE",
        // Index, address, size, time, thread, what it has, name.
        "0 0x7fd4c2b9c000 21 2975.553220454 10624 L-- jit::spin_fp",
        "2 0x7fd4c2b9c080 24 2975.553223127 10624 -U- jit::spin_nofp <T>; x",
        // Offset in the code, line and column, file.
        "+0xa 12:0 mini.src",
        // Address, size, data, header, mapped, layout, where .eh_frame is, name.
        "0x7fd4c2b9c080 24 72 20 72 last 0x7fd4c2b9c098 jit::spin_nofp <T>; x",
    ] {
        let words: Vec<&str> = row.split(' ').collect();
        assert!(rows.contains(&words), "{row}:\n{text}");
    }
}

#[test]
fn oddities_of_headers_are_named() {
    let with = |head: &Head| {
        let mut dump = Dump::new(head);
        dump.load(NOW, CODE, 0, b"f", &[0x90; 8])
            .record(3, NOW, &[]);
        dump
    };
    assert_lints(
        "version 2",
        &with(&Head { version: 2, ..HEAD }),
        &[("error", "version 2")],
    );
    assert_lints(
        "version 0",
        &with(&Head { version: 0, ..HEAD }),
        &[("warning", "version 0")],
    );
    assert_lints(
        "size 8",
        &with(&Head { size: 8, ..HEAD }),
        &[("warning", "says it has 8 bytes; it has 40")],
    );
    assert_lints(
        "size 64",
        &with(&Head { size: 64, ..HEAD }),
        &[("note", "24 bytes more")],
    );
    let mut lying = good();
    lying.0[8] = 64;
    assert_lints(
        "size that is not",
        &lying,
        &[("error", "says it has 64 bytes, but records begin at 40")],
    );
    assert_lints(
        "no machine",
        &with(&Head { machine: 0, ..HEAD }),
        &[("warning", "names no machine")],
    );
    assert_lints(
        "padding",
        &with(&Head { padding: 3, ..HEAD }),
        &[("note", "padding is not 0")],
    );
    assert_lints(
        "pid",
        &with(&Head { pid: 78, ..HEAD }),
        &[
            ("warning", "named for pid 77, its header is of pid 78"),
            ("warning", "1 record of another process"),
        ],
    );
    assert_lints(
        "flags",
        &with(&Head { flags: 6, ..HEAD }),
        &[("error", "unknown flags 0x6")],
    );
    assert_lints(
        "counter",
        &with(&Head { flags: 1, ..HEAD }),
        &[("note", "processor's counter")],
    );
    assert_lints(
        "wall clock",
        &with(&Head {
            time: 1_795_260_704_418_909,
            ..HEAD
        }),
        &[("warning", "wall-clock time in microseconds")],
    );
    assert_lints(
        "no time",
        &with(&Head { time: 0, ..HEAD }),
        &[("note", "no timestamp")],
    );
    assert_lints(
        "header younger than records",
        &with(&Head {
            time: NOW + 5,
            ..HEAD
        }),
        &[("warning", "older than the header")],
    );
    let mut headless = good();
    headless.0.drain(..40);
    assert_lints("no header", &headless, &[("error", "no file header")]);
}

#[test]
fn oddities_of_records_are_named() {
    let behind_good = |kind, body: &[u8]| {
        let mut dump = good();
        let close = dump.0.split_off(dump.0.len() - 16);
        dump.record(kind, NOW + 1, body);
        dump.0.extend(close);
        dump
    };
    let load =
        |ids, words, name: &[u8], code: &[u8]| behind_good(0, &load_body(ids, words, name, code));
    let at = CODE + 128;
    let cases: Vec<(&str, Dump, Wanted)> = vec![
        (
            "unknown kind",
            behind_good(9, b"12345678"),
            &[("warning", "1 record of the unknown kind 9")],
        ),
        (
            "short load",
            behind_good(0, &[0; 20]),
            &[("error", "too short for their kind")],
        ),
        (
            "impossible size",
            load([77, 77], [at, at, 1 << 40, 2], b"x", b""),
            &[("error", "impossible size")],
        ),
        (
            "tid",
            load([77, 0xb0b0_0000], [at, at, 1, 2], b"x", b"\xc3"),
            &[("warning", "thread id that no thread has")],
        ),
        (
            "no vma",
            load([77, 77], [0, at, 1, 2], b"x", b"\xc3"),
            &[("warning", "vma 0")],
        ),
        (
            "other vma",
            load([77, 77], [at + 1, at, 1, 2], b"x", b"\xc3"),
            &[("warning", "not code_addr")],
        ),
        (
            "no address",
            load([77, 77], [0, 0, 1, 2], b"x", b"\xc3"),
            &[("error", "without an address")],
        ),
        (
            "too high",
            load([77, 77], [u64::MAX, u64::MAX, 9, 2], b"x", &[0x90; 9]),
            &[("error", "beyond the last address")],
        ),
        (
            "short code",
            load([77, 77], [at, at, 9, 2], b"x", b"\xc3"),
            &[("warning", "fewer bytes of code")],
        ),
        (
            "gap",
            load([77, 77], [at, at, 1, 2], b"x\0\0\0", b"\xc3"),
            &[("warning", "bytes between name and code")],
        ),
        (
            "no code",
            load([77, 77], [at, at, 0, 2], b"x", b""),
            &[("warning", "no code at all")],
        ),
        (
            "index again",
            load([77, 77], [at, at, 1, 1], b"x", b"\xc3"),
            &[("warning", "code_index of an earlier one")],
        ),
        (
            "no name",
            load([77, 77], [at, at, 1, 2], b"", b"\xc3"),
            &[("note", "without a name")],
        ),
        (
            "again",
            load([77, 77], [CODE, CODE, 8, 2], b"x", &[0x90; 8]),
            &[("note", "same address, same bytes")],
        ),
        (
            "in place",
            load([77, 77], [CODE, CODE, 8, 2], b"x", &[0xc3; 8]),
            &[],
        ),
        (
            "lost move",
            behind_good(1, &words(&[77, at, at, at + 64, 8, 5])),
            &[("error", "no code is")],
        ),
        (
            "unlike move",
            behind_good(1, &words(&[77, CODE, CODE, at, 8, 5])),
            &[("warning", "another size or code_index")],
        ),
        (
            "move",
            behind_good(1, &words(&[77, CODE, CODE, at, 8, 0])),
            &[],
        ),
        (
            "stray lines",
            behind_good(2, &words(&[at, 0])),
            &[("warning", "1 DEBUG_INFO record with no LOAD")],
        ),
        (
            "late lines",
            behind_good(2, &words(&[CODE, 0])),
            &[("warning", "behind the LOAD they describe")],
        ),
        (
            "stray unwinding",
            behind_good(4, &words(&[0, 0, 0])),
            &[("warning", "1 UNWINDING_INFO record with no LOAD")],
        ),
        (
            "unwinding sizes",
            behind_good(4, &words(&[8, 9, 0])),
            &[("error", "impossible size")],
        ),
    ];
    for (what, dump, wanted) in &cases {
        assert_lints(what, dump, wanted);
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn order_and_ends_are_judged() {
    let mut backwards = Dump::new(&HEAD);
    backwards
        .load(NOW + 2_000_000_000, CODE, 0, b"f", b"\xc3")
        .load(NOW, CODE + 64, 1, b"g", b"\xc3")
        .load(0, CODE + 128, 2, b"h", b"\xc3")
        .record(3, NOW, &[]);
    assert_lints(
        "times",
        &backwards,
        &[
            (
                "warning",
                "1 record earlier than the record before, by up to 2.000000000 s [0x63]",
            ),
            ("warning", "1 record without a timestamp"),
        ],
    );
    let mut after = good();
    after.load(NOW + 9, CODE + 256, 5, b"x", b"\xc3");
    assert_lints("after CLOSE", &after, &[("warning", "behind a CLOSE")]);
    let mut two = good();
    let second = Dump::new(&HEAD).0;
    two.0.extend(second);
    two.load(NOW + 9, CODE + 256, 5, b"x", b"\xc3")
        .record(3, NOW + 9, &[]);
    assert_lints(
        "two writers",
        &two,
        &[("warning", "1 more header among the records")],
    );
    assert_lints(
        "empty",
        &Dump::new(&HEAD),
        &[("warning", "no function in it"), ("note", "no CLOSE")],
    );
    let mut senseless = good();
    senseless.word(0).word(3).long(0);
    assert_lints(
        "size 3",
        &senseless,
        &[("error", "fewer bytes than its own head has")],
    );
    let whole = good().0;
    for (cut, part) in [
        (1, "15 bytes behind the last whole record, too few"),
        (
            16 + 10,
            "61 bytes behind the last whole record, of 71 that the next one claims",
        ),
    ] {
        let dump = Dump(whole[..whole.len() - cut].to_vec());
        assert_lints("cut", &dump, &[("error", part)]);
        let strict = judged(&["--strict"], "jit-77.dump", &dump.0);
        assert_eq!(strict.code, Some(1));
        assert!(strict.stdout.contains(part) && strict.stderr.is_empty());
    }
}

#[test]
fn line_tables_are_judged() {
    let with = |lines: &[(u64, u32, &[u8])]| {
        let mut dump = Dump::new(&HEAD);
        dump.debug(CODE, lines)
            .load(NOW + 5, CODE, 0, b"f", &[0x90; 0x20])
            .record(3, NOW + 6, &[]);
        dump
    };
    assert_lints(
        "lines",
        &with(&[(CODE, 1, b"a"), (CODE + 8, 2, b"\xff")]),
        &[],
    );
    assert_lints(
        "0x40",
        &with(&[(CODE + 0x40, 1, b"a"), (CODE + 0x48, 2, b"a")]),
        &[("warning", "0x40 too high")],
    );
    assert_lints(
        "far away",
        &with(&[(CODE + 0x4000, 1, b"a")]),
        &[("error", "cannot be read")],
    );
    assert_lints(
        "before",
        &with(&[(CODE - 0x32, 1, b"a")]),
        &[("note", "before the code")],
    );
    assert_lints(
        "no text",
        &with(&[(CODE, 1, b"a\x01\x02b")]),
        &[("warning", "not text")],
    );
}

#[test]
fn names_do_not_reach_the_terminal() {
    let evil = b"\x1b]0;t\x07 a\nb\r\x9b\xc2\x9b \xe2\x80\xae <b>;\"'";
    let mut dump = Dump::new(&HEAD);
    dump.debug(CODE, &[(CODE, 1, evil)])
        .load(NOW, CODE, 0, evil, &[0x90; 8]);
    let ended = judged(&["--all"], "jit-77\x1b[31m\u{202e}.dump", &dump.0);
    assert_eq!(ended.code, Some(0));
    let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ended.stdout.contains(acts), "{:?}", ended.stdout);
    let name = r#"\x1b]0;t\x07 a\x0ab\x0d\x9b\x9b \x202e <b>;"'"#;
    assert_eq!(ended.stdout.matches(name).count(), 3, "{}", ended.stdout);
    let ended = judged(&[], "no\x1b[31m\u{202e}dump", b"nothing");
    assert_eq!(ended.code, Some(1));
    assert!(!ended.stderr.contains(acts), "{:?}", ended.stderr);
}

#[test]
fn what_is_no_dump_is_an_error() {
    let status = |path: &Path| {
        let ended = limited(pjit().arg("jitdump").arg(path));
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.code
    };
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("jit-1.dump");
    std::fs::write(&empty, b"").expect("it can be written");
    for path in [
        Path::new("/dev/zero"),
        Path::new("/nonexistent"),
        folder.path(),
        &empty,
        &sample("native", "perf.data"),
    ] {
        assert_eq!(status(path), Some(1), "{}", path.display());
    }
    // The others are still described.
    let dump = sample("wasmtime", "jit-10150.dump");
    let ended = limited(pjit().arg("jitdump").arg(&empty).arg(&dump));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.contains("18 LOAD"));
    assert_eq!(
        pjit().arg("jitdump").output().expect("run").status.code(),
        Some(2)
    );
}

#[test]
fn damaged_dumps_are_described_without_harm() {
    let dumps = [
        ("minijit", "jit-10624.dump"),
        ("wasmtime", "jit-10150.dump"),
        ("node", "jit-17065.dump"),
    ];
    for (name, file) in dumps {
        let whole = std::fs::read(sample(name, file)).expect("the sample has a dump");
        let mut random = Random(whole.len() as u64);
        for round in 0..12 {
            let mut bytes = whole[..whole.len().min(20_000)].to_vec();
            for _ in 0..=random.below(20) {
                let at = random.below(bytes.len());
                bytes[at] = *random.choose(&[0, 1, 0x1b, 0x7f, 0x80, 0xff]);
            }
            bytes.truncate(bytes.len() - random.below(200));
            let ended = judged(&["--all"], "jit-1.dump", &bytes);
            assert!(
                matches!(ended.code, Some(0 | 1)),
                "{name} {round}: {}",
                ended.stderr
            );
            assert!(
                !ended.stderr.contains("panicked"),
                "{name} {round}: {}",
                ended.stderr
            );
            let acts = |c: char| c.is_control() && c != '\n';
            assert!(!ended.stdout.contains(acts), "{name} {round}");
        }
    }
}
