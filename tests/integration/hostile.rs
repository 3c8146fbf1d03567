//! Names that would act where they are shown, from a perf map to every format, each read by what it is for.
//!
//! The recording is made here: functions by name of a perf map, whose bytes are anything but line ends.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::consumers::{Profiler, duckdb, speedscope_of};
use crate::page::Browser;
use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{copy_folder, pjit, sample};

const NAMES: [&[u8]; 14] = [
    b"</script><img src=x onerror=alert(1)>",
    b"\"'><svg onload=alert(2)>",
    b"<!--</title></style></noscript>",
    b"]]>&amp;&#0;${alert(3)}`",
    "\u{202e}gnp.\u{2066}exe\u{200f}".as_bytes(),
    b"nul\0byte",
    b"=cmd|' /C calc'!A0",
    b"@SUM(1+1)*cmd",
    b"-2+3,\"quoted\";a\tb",
    b"\xff\xfe\xc3(\x80\xed\xa0\x80",
    b"\x1b]0;title\x07\x1b[31m\x9b2J\x7f\r",
    b"a;b;c_[k] 12",
    b"\xe2\x80\xa8line\xe2\x80\xa9end \\u0022\\",
    // 64 KB, put in below.
    b"",
];
const PERIOD: u64 = 1000;
const START: u64 = 0x10_0000;

/// A folder with the recording and its perf map.
struct Case {
    folder: tempfile::TempDir,
    total: u64,
}

impl Case {
    fn new() -> Self {
        // Short: sockets have paths of 107 bytes at most.
        let folder = tempfile::tempdir_in("/tmp").expect("a folder");
        let mut map = Vec::new();
        let mut recording = Recording::new(Stacks::Callchain);
        recording.comm(7, 7, b"</b>\xff\x1b;=x\" ");
        recording.map(7, START, 0x10_0000, 0, b"//anon");
        recording.map(
            7,
            0x40_0000,
            0x1000,
            0,
            b"/tmp/</script>\xff\x1b[m\xe2\x80\xae.so",
        );
        let at = |name: usize| START + 0x100 * name as u64;
        let long = vec![b'x'; 64 << 10];
        for (number, name) in NAMES.iter().enumerate() {
            let name = if name.is_empty() { &long } else { *name };
            map.extend(format!("{:x} 100 ", at(number)).into_bytes());
            map.extend([name, b"\n"].concat());
        }
        let count = NAMES.len();
        for number in 0..=count {
            let ip = if number == count {
                0x40_0010
            } else {
                at(number) + 4
            };
            let chain = [
                CONTEXT_USER,
                ip,
                at((number + 1) % count) + 8,
                at((number + 5) % count) + 12,
            ];
            recording.sample(&Sample {
                ip,
                pid: 7,
                tid: 7,
                time: 1_000_000 * (number as u64 + 1),
                period: PERIOD,
                chain: &chain,
                user: None,
            });
        }
        recording.name_event(b"cycles\x1b[31m</title>\xe2\x80\xae\"x");
        fs::write(folder.path().join("perf.data"), recording.file()).expect("written");
        fs::write(folder.path().join("perf-7.map"), map).expect("written");
        Self {
            folder,
            total: PERIOD * (count as u64 + 1),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs pjit on the recording; what it wrote to standard output.
    fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = pjit()
            .current_dir(self.folder.path())
            .args(arguments)
            .args(["--perf-map", "perf-7.map", "perf.data"])
            .output()
            .expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert_inert(&output.stderr, arguments);
        output.stdout
    }

    /// The same into a file.
    fn write(&self, verb: &str, file: &str) -> PathBuf {
        self.run(&[verb, "-o", file]);
        self.path(file)
    }
}

/// Nothing in it moves a cursor, and it is text.
fn assert_inert(bytes: &[u8], what: &[&str]) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let acts = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found = text
        .find(acts)
        .map(|at| text[at..].chars().take(20).collect::<String>());
    assert_eq!(found, None, "{what:?}");
}

#[test]
fn text_is_only_text() {
    let case = Case::new();
    for view in [
        &["report", "--stdio"][..],
        &["report", "--no-children", "-g", "none"],
        &["script"],
        &["fold"],
        &["export", "-o", "-", "--format", "csv"],
        &["export", "-o", "-", "--format", "csv", "--samples"],
        &["export", "-o", "-", "--format", "firefox"],
        &["export", "-o", "-", "--format", "speedscope"],
        &[
            "flamegraph",
            "-o",
            "-",
            "--format",
            "svg",
            "--percent-limit",
            "0",
        ],
        &["flamegraph", "-o", "-", "--format", "html"],
    ] {
        assert_inert(&case.run(view), view);
    }
    let folded = String::from_utf8(case.run(&["fold"])).expect("UTF-8");
    let weights = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let sum: u64 = weights
        .filter_map(|(_, weight)| weight.parse::<u64>().ok())
        .sum();
    assert_eq!((folded.lines().count(), sum), (NAMES.len() + 1, case.total));
    // No name is two frames: comm, and three of each stack.
    for line in folded.lines() {
        assert_eq!(line.matches(';').count(), 3, "{line}");
    }
}

/// Names of events, functions and files, and the text of sources, beside code.
#[test]
fn annotated_code_is_only_text() {
    let folder = tempfile::tempdir().expect("a folder");
    copy_folder(&sample("typescript", ""), folder.path());
    let replace = |file: &str, old: &[u8], new: &[u8]| {
        let path = folder.path().join(file);
        let bytes = fs::read(&path).expect("it is there");
        let (mut out, mut rest, mut found) = (Vec::new(), &bytes[..], 0);
        while let Some(&first) = rest.first() {
            let is_old = rest.starts_with(old);
            out.extend_from_slice(if is_old {
                new
            } else {
                std::slice::from_ref(&first)
            });
            rest = &rest[if is_old { old.len() } else { 1 }..];
            found += usize::from(is_old);
        }
        assert!(found > 0, "{file}");
        fs::write(path, out).expect("written");
    };
    let program = "symfs/tmp/pjit-sample/typescript";
    let map = format!("{program}/dist/app.js.map");
    replace("perf.data", b"cpu-clock:u", b"cpu\x1b[31mk:u");
    // Where the script names no function, any word may be its own, so that the script is still the one that ran.
    replace("jit-13869.dump", b"JS:* /tmp", b"JS:\x1b /tmp");
    replace(&map, b"src/primes.ts", b"src/\\u001b[mprimes.ts");
    replace(
        &map,
        b"isComposite[m] = 1;",
        b"isComposite[m] = 1;\\u001b]0;x\\u0007",
    );
    fs::remove_dir_all(folder.path().join(program).join("src")).expect("removed");
    let dist = format!("{program}/dist");
    for view in [
        &["annotate", "--symbol-filter", "app.js"][..],
        &["annotate", "-l", "-P", "-n", "--merge-versions"],
        &["report", "--no-children", "-g", "none", "-s", "sym,srcline"],
        &["script", "-F", "ip,sym,srcline", "--source-map", &dist],
    ] {
        let output = pjit()
            .current_dir(folder.path())
            .args(view)
            .args(["-i", "perf.data", "--symfs", "symfs"])
            .output()
            .expect("the binary can be run");
        assert!(output.status.success(), "{view:?}");
        assert_inert(&output.stdout, view);
        assert_inert(&output.stderr, view);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("\\x1b"), "{view:?}: {text}");
        if view[0] == "annotate" {
            for shown in ["for cpu\\x1b[31mk:u (", "isComposite[m] = 1;\\x1b]0;x\\x07"] {
                assert!(text.contains(shown), "{view:?}: {text}");
            }
        }
    }
}

#[test]
fn pictures_are_well_formed_and_pages_inert() {
    let case = Case::new();
    let svg = fs::read_to_string(case.write("flamegraph", "x.svg")).expect("UTF-8");
    let mut reader = quick_xml::Reader::from_str(&svg);
    let mut titles = 0;
    loop {
        match reader.read_event().expect("well-formed") {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(start) => {
                titles += usize::from(start.name().as_ref() == b"title")
            }
            _ => {}
        }
    }
    assert!(titles > 2 * NAMES.len(), "{titles} frames");
    assert!(!svg.contains("<img") && !svg.contains("<svg onload"));
    let page = case.write("flamegraph", "x.html");
    let Some(browser) = Browser::find() else {
        return;
    };
    let seen = browser.drive(&page, &["see", "key:t", "see", "key:b", "see"]);
    let first = &seen[0];
    assert_eq!(
        (&first["scripts"], &first["images"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        first["total"].as_str(),
        Some(case.total.to_string().as_str())
    );
}

#[test]
fn the_firefox_profiler_takes_any_name() {
    let case = Case::new();
    let file = case.write("export", "x.json.gz");
    let Some(profiler) = Profiler::with(case.folder.path(), &file) else {
        return;
    };
    let functions = profiler.functions();
    assert_eq!(functions.values().sum::<u64>(), NAMES.len() as u64 + 1);
    assert_eq!(functions.len(), NAMES.len() + 1);
}

#[test]
fn go_takes_any_name() {
    let case = Case::new();
    let file = case.write("export", "x.pb.gz");
    let output = Command::new("go")
        .args([
            "tool",
            "pprof",
            "-top",
            "-nodefraction=0",
            "-unit=ns",
            "-sample_index=1",
        ])
        .arg(&file)
        .env("PPROF_TMPDIR", case.folder.path())
        .env("HOME", case.folder.path())
        .output();
    let Ok(output) = output else {
        crate::support::skip("go", "it cannot be run");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_inert(&output.stdout, &["go tool pprof -top"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("cmd|' /C calc'!A0") && text.contains(&"x".repeat(64 << 10)),
        "{text:.2000}"
    );
}

#[test]
fn speedscope_takes_any_name() {
    let case = Case::new();
    let file = case.write("export", "x.speedscope.json");
    let parsed: Value =
        serde_json::from_slice(&fs::read(&file).expect("it was written")).expect("JSON");
    assert_eq!(
        parsed["shared"]["frames"].as_array().map(Vec::len),
        Some(NAMES.len() + 1)
    );
    let Some(answer) = speedscope_of(&file) else {
        return;
    };
    let rows = answer["rows"].to_string();
    assert!(
        rows.contains("calc'!A0") || rows.contains("</script>"),
        "{rows:.2000}"
    );
}

/// One name of 60 kB does not fill every other row with blanks.
#[test]
fn a_long_name_does_not_make_all_rows_long() {
    let case = Case::new();
    let view = ["report", "--no-children", "-g", "none", "--sort", "sym,pid"];
    let table = String::from_utf8(case.run(&view)).expect("UTF-8");
    let rows = table
        .lines()
        .filter(|line| line.ends_with("7:program") || line.contains('%'));
    let long = rows.filter(|line| line.chars().count() > 5000).count();
    assert!(table.contains('%') && long <= 1, "{long}");
}

/// An export has the mappings that samples lay in: a shell that forks hands all of its own on each time.
#[test]
fn mappings_without_samples_are_not_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording = Recording::new(Stacks::Callchain);
    for number in 0..40 {
        let name = format!("/nowhere/lib{number}.so");
        recording.map(7, START + number * 0x1000, 0x1000, 0, name.as_bytes());
    }
    for child in 8..20 {
        recording.fork(child, 7, u64::from(child));
        let ip = START + 0x3010;
        recording.sample(&Sample {
            ip,
            pid: child,
            tid: child,
            time: 100 + u64::from(child),
            period: PERIOD,
            chain: &[CONTEXT_USER, ip],
            user: None,
        });
    }
    fs::write(folder.path().join("perf.data"), recording.file()).expect("written");
    for format in ["firefox", "pprof"] {
        let output = pjit()
            .current_dir(folder.path())
            .args(["export", "-o", "-", "--format", format, "perf.data"])
            .output()
            .expect("the binary can be run");
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(&output.stdout[..]).read_to_end(&mut text);
        let text = if unpacked.is_ok() {
            text
        } else {
            output.stdout
        };
        let named = |number| memchr::memmem::find(&text, format!("lib{number}.so").as_bytes());
        assert!(named(3).is_some(), "{format}");
        assert_eq!(named(4), None, "{format}");
    }
}

#[test]
fn tables_have_no_formulas() {
    let case = Case::new();
    let file = case.write("export", "x.csv.gz");
    let mut text = String::new();
    let bytes = fs::read(&file).expect("it was written");
    std::io::Read::read_to_string(&mut GzDecoder::new(&bytes[..]), &mut text).expect("UTF-8");
    for start in ["=cmd", "@SUM", "-2+3"] {
        assert!(
            !text.contains(&format!(",{start}")) && !text.contains(&format!(",\"{start}")),
            "{start}"
        );
        assert!(text.contains(&format!("'{start}")), "{start}");
    }
    let query = "select sum(weight)::bigint, count(*), count(distinct leaf) from 'x.csv.gz'";
    let Some(answers) = duckdb(folder(&file), &[query]) else {
        return;
    };
    let rows = NAMES.len() as u64 + 1;
    assert_eq!(
        answers[0][0],
        [case.total.into(), rows.into(), Value::from(rows)]
    );
}

fn folder(file: &Path) -> &Path {
    file.parent().expect("it is in a folder")
}
