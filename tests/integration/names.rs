//! Names from foreign files, wherever they stand: none reaches the terminal, a folded line or a table as anything but text.

use std::fs;
use std::path::{Path, PathBuf};

use crate::jitdump::{Dump, HEAD, Head};
use crate::live::Lab;
use crate::recording::{CONTEXT_USER, Map, Recording, Sample, Stacks};
use crate::support::{folded, pjit, sample};

const NOW: u64 = 9_000_000_500_000;
const JIT: u64 = 0x7f12_0000_4000;

/// Sets the terminal's title, breaks lines and columns, is markup, turns the direction of text, is no UTF-8; `what` tells
/// where it came from.
fn evil(what: &str) -> Vec<u8> {
    let mut name = what.as_bytes().to_vec();
    name.extend(b"\x1b]0;t\x07\n\r\t;<b>&\"' 7\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\x7f\xff\x9b1m");
    name
}

/// Everything that a recording names, named so.
fn recording() -> Recording {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.text_feature(3, &evil("host"));
    recording.text_feature(4, &evil("release"));
    recording.text_feature(8, &evil("cpu"));
    recording.command_line(&[b"perf", &evil("word")]);
    recording.name_event(&evil("event"));
    let mut map = |pid, start, file: &[u8], build_id| {
        recording.map_at(&Map {
            build_id,
            ..Map::page(NOW, pid, start, file)
        });
    };
    let inside = |folder: &str, name: &str| [folder.as_bytes(), b"/", name.as_bytes()].concat();
    map(
        77,
        0x10_0000,
        &[b"/tmp/".to_vec(), evil("file")].concat(),
        Some([7; 20]),
    );
    map(77, 0x30_0000, &inside("/nonexistent", "jit-77.dump"), None);
    map(
        77,
        0x31_0000,
        &[b"/tmp/".to_vec(), evil("folder"), b"/jit-76.dump".to_vec()].concat(),
        None,
    );
    map(77, JIT, b"//anon", None);
    map(78, JIT, b"//anon", None);
    recording.comm(77, 77, &evil("a"));
    recording.comm(78, 78, &evil("b"));
    for i in 0..10 {
        let chain = [CONTEXT_USER, JIT + 4, 0x10_0020, 0x99_0000];
        let pid = 77 + (i % 2) as u32;
        recording.sample(&Sample {
            ip: JIT + 4,
            pid,
            tid: pid,
            time: NOW + 1_000 + i,
            period: 100,
            chain: &chain,
            user: None,
        });
    }
    recording
}

/// All views, by the arguments in front of the recording.
fn views() -> Vec<Vec<&'static str>> {
    let help = pjit()
        .arg("--help")
        .output()
        .expect("the binary can be run")
        .stdout;
    let has_check = String::from_utf8_lossy(&help).contains("\n  check ");
    let lines = [
        "report --stdio -v",
        "report --stdio --header -I --no-children -g none",
        "report --stdio --header-only -I",
        "report --stdio -g caller --sort comm,dso,sym,srcline,pid",
        "report --stdio --hierarchy --sort comm,dso,sym",
        "report --stdio --no-demangle -F overhead,comm,pid,dso,symbol,trace",
        "report --stats",
        "report --tasks",
        "report --mmaps",
        "report --stdio --color always",
        "fold -v",
        "fold --all --pid",
        "script",
        "script -F +srcline,symoff",
    ];
    let checks: &[&str] = if has_check {
        &["check", "check -v"]
    } else {
        &[]
    };
    let lines = lines.iter().chain(checks);
    lines.map(|line| line.split(' ').collect()).collect()
}

/// Fails if a terminal would do anything with this but show it.
fn assert_plain(bytes: &[u8], colors: bool, what: &str) {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if colors {
        let color = regex::Regex::new("\x1b\\[[0-9;]*m").expect("a valid expression");
        text = color.replace_all(&text, "").into_owned();
    }
    let acts = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some((at, c)) = text.char_indices().find(|&(_, c)| acts(c)) {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        panic!("{what}: {c:?} behind {line:?}");
    }
}

fn assert_views_are_plain(folder: &Path, options: &[&str]) {
    for view in views() {
        let output = pjit()
            .args(&view)
            .args(options)
            .arg(folder.join("perf.data"))
            .output()
            .expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{view:?}: {said}"
        );
        assert_plain(
            &output.stdout,
            view.contains(&"always"),
            &format!("{view:?}"),
        );
        assert_plain(&output.stderr, false, &format!("{view:?}, standard error"));
        if view[0] == "fold" {
            let stacks = folded(&String::from_utf8_lossy(&output.stdout));
            assert_eq!(stacks.values().sum::<u64>(), 1000, "{view:?}");
            // Process, three frames.
            let parts: Vec<usize> = stacks.keys().map(|s| s.split(';').count()).collect();
            assert!(parts.iter().all(|&count| count == 4), "{stacks:#?}");
        }
    }
}

#[test]
fn names_of_the_recording_are_only_text() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("perf.data"), recording().file()).expect("it can be written");
    assert_views_are_plain(folder.path(), &[]);
}

#[test]
fn names_of_jit_code_are_only_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("perf.data"), recording().file()).expect("it can be written");
    let mut dump = Dump::new(&Head { time: NOW, ..HEAD });
    dump.load_of(77, NOW + 10, JIT, 0, &evil("loaded"), &[0x90; 16]);
    // Cut, so that there is something to warn of.
    dump.load_of(77, NOW + 11, JIT + 64, 1, &evil("more"), &[0x90; 16]);
    dump.0.truncate(dump.0.len() - 30);
    fs::write(at("jit-77.dump"), &dump.0).expect("it can be written");
    let mut map = format!("{JIT:x} 10 ").into_bytes();
    map.extend(evil("mapped"));
    fs::write(at("perf-78.map"), map).expect("it can be written");
    assert_views_are_plain(folder.path(), &[]);
    let output = pjit()
        .arg("fold")
        .arg(at("perf.data"))
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("loaded?]0") && text.contains("mapped?]0"),
        "{text}"
    );
}

/// Files whose own names are evil, given by options.
#[test]
fn names_of_files_are_only_text() {
    use std::os::unix::ffi::OsStringExt;
    let folder = tempfile::tempdir().expect("a folder");
    let folder_name = std::ffi::OsString::from_vec(evil("folder"));
    let inner = folder.path().join(folder_name);
    fs::create_dir(&inner).expect("it can be made");
    fs::write(inner.join("perf.data"), recording().file()).expect("it can be written");
    fs::write(inner.join("jit-77.dump"), b"no dump").expect("it can be written");
    let run = |arguments: &[&str], path: PathBuf| {
        let output = pjit()
            .args(arguments)
            .arg(path)
            .output()
            .expect("the binary can be run");
        assert_plain(&output.stdout, false, &format!("{arguments:?}"));
        assert_plain(
            &output.stderr,
            false,
            &format!("{arguments:?}, standard error"),
        );
        output.status.code()
    };
    let data = inner.join("perf.data");
    let plain = folder.path().join("perf.data");
    fs::copy(&data, &plain).expect("it can be copied");
    let plain = plain.to_str().expect("a plain path");
    for view in [
        &["fold", "-v"][..],
        &["report", "--stdio", "--header", "-v"],
        &["script"],
    ] {
        assert_eq!(run(view, data.clone()), Some(0), "{view:?}");
        assert_eq!(run(view, inner.join("nothing")), Some(1), "{view:?}");
        assert_eq!(run(view, inner.join("jit-77.dump")), Some(1), "{view:?}");
    }
    for option in ["--jitdump", "--perf-map", "--symfs", "--buildid-dir"] {
        run(&["fold", "-v", plain, option], inner.join("jit-77.dump"));
    }
    for option in ["--kallsyms", "--vmlinux"] {
        assert_eq!(
            run(&["fold", plain, option], inner.join("nothing")),
            Some(1)
        );
        run(&["fold", plain, option], inner.join("jit-77.dump"));
    }
    assert_eq!(run(&["jitdump"], inner.join("jit-77.dump")), Some(1));
}

/// Symbols of an ELF file: the same file with some names overwritten by others of the same length.
#[test]
fn names_of_symbols_are_only_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::copy(sample("minijit", "perf.data"), at("perf.data")).expect("it can be copied");
    let name = "tmp/pjit-sample/minijit/minijit-static";
    let mut elf = fs::read(sample("minijit", "symfs").join(name)).expect("the sample has it");
    let replaced = [
        (&b"\0c_middle\0"[..], &b"\0\x1b]0;\x07\n;\xff\0"[..]),
        (b"\0main\0", b"\0\xc2\x9b;\n\0"),
    ];
    for (old, new) in replaced {
        assert_eq!(old.len(), new.len());
        let found: Vec<usize> = elf
            .windows(old.len())
            .enumerate()
            .filter(|(_, w)| *w == old)
            .map(|(i, _)| i)
            .collect();
        assert!(!found.is_empty());
        found
            .into_iter()
            .for_each(|i| elf[i..i + new.len()].copy_from_slice(new));
    }
    let path = at("symfs").join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    fs::write(path, elf).expect("it can be written");
    for view in views() {
        let output = pjit()
            .args(&view)
            .arg(at("perf.data"))
            .output()
            .expect("the binary can be run");
        assert_plain(
            &output.stdout,
            view.contains(&"always"),
            &format!("{view:?}"),
        );
        assert_plain(&output.stderr, false, &format!("{view:?}, standard error"));
    }
    let output = pjit()
        .arg("fold")
        .arg(at("perf.data"))
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let stacks = folded(&text);
    assert!(text.contains(";?]0:??:\u{fffd};"), "{text}");
    let whole = pjit()
        .arg("fold")
        .arg(sample("minijit", "perf.data"))
        .output()
        .expect("the binary can be run");
    let whole = folded(&String::from_utf8_lossy(&whole.stdout));
    assert_eq!(stacks.values().sum::<u64>(), whole.values().sum::<u64>());
}

/// Names of Haskell, Nim and D are read back for people, and those that may be C's only where the language's runtime is; report
/// prints what perf prints. Functions stay the program's own.
#[test]
fn names_that_compilers_spell_are_read_back() {
    let haskell = "Main_zdwzlzpzvzg_info";
    let nim = "pluspercentpercent___n_43";
    let d = "_D1d__T3VecTmVii3ZQl3sumMxFNaNbNiNfmZm";
    for (test, name, runtime, shown) in [
        ("haskell", haskell, "stg_upd_frame_info", "Main.$w<+%>"),
        ("haskell-c", haskell, "other", haskell),
        ("nim", nim, "NimMain", "n.+%%"),
        ("nim-c", nim, "other", nim),
        ("d", d, "other", "d.Vec!(…).sum"),
    ] {
        let flags = [format!("-DFUNCTION={name}"), format!("-DRUNTIME={runtime}")];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let Some(lab) = Lab::with(test, "spelled", &flags) else {
            return;
        };
        let options = ["-e", "cpu-clock", "-g"];
        if lab.record("x.data", &options, &["./spelled"]).is_none() {
            return;
        }
        let of_people: [&[&str]; 4] = [
            &["summary", "--format", "csv", "--table", "self"],
            &["flamegraph", "-o", "-"],
            &["peek", shown],
            &["peek", name],
        ];
        for view in of_people {
            let text = lab.show(view, "x.data");
            let text = text.replace("&lt;", "<").replace("&gt;", ">");
            assert!(text.contains(shown), "{view:?}: {text}");
        }
        let text = lab.show(&["summary", "--format", "text"], "x.data");
        let own = text
            .split("Own functions")
            .nth(1)
            .and_then(|own| own.split("What it does").next());
        assert!(own.is_some_and(|own| own.contains(shown)), "{text}");
        for view in [&["report", "--stdio"][..], &["fold"], &["script"]] {
            let text = lab.show(view, "x.data");
            assert!(text.contains(name), "{view:?}: {text}");
            assert!(name == shown || !text.contains(shown), "{view:?}: {text}");
        }
        let raw = lab.show(&["summary", "--no-demangle"], "x.data");
        assert!(raw.contains(name), "{raw}");
    }
}
