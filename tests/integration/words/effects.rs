//! Options do something: each that a page of help shows changes what its verb prints.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::help::{options, verbs};
use super::root;
use crate::check::{Copy, shorten_stacks};
use crate::recording::{Recording, Sample, Stacks};
use crate::support::{copy_folder, pjit};

/// Verbs whose options act on what is not a recording; their own tests try them.
const OF_OTHERS: [(&str, &str); 2] = [
    ("record", "`record.rs` tries what it does with perf"),
    ("serve", "`serving.rs` asks it"),
];

/// Options that change nothing here, and why they are shown.
const WITHOUT_EFFECT: [(&str, &str); 21] = [
    ("--jobs", "output does not depend on threads: `golden.rs`"),
    ("--no-pager", "a pager is for terminals"),
    ("--stdio", "perf has it; pjit always prints text"),
    (
        "--skip-empty",
        "the default; nothing turns it off, as in perf",
    ),
    ("--deterministic", "the default; --hash is the other way"),
    (
        "--force",
        "needs what is refused or there: `heap.rs`, `paths.rs`",
    ),
    (
        "--modules",
        "needs a module of this kernel: `src/input/find/tests.rs`",
    ),
    (
        "--threads",
        "needs counters of each thread: `surface.rs` records them",
    ),
    (
        "--group-sort-idx",
        "needs a group: `surface.rs` records one",
    ),
    ("--open", "starts a browser: `page.rs`"),
    ("--dry-run", "without it a server is asked: `fetch.rs`"),
    ("--max-size", "needs a server: `fetch.rs` has one"),
    (
        "stat --symfs",
        "needs probes of a file that is gone: `probes.rs`",
    ),
    (
        "fetch --kallsyms",
        "the kernel that runs may have the names: `fetch.rs`",
    ),
    (
        "export --normalize",
        "pprof alone adds up recordings: `several.rs`",
    ),
    (
        "peek --idle",
        "idle tasks have no functions: `questions.rs`",
    ),
    (
        "list --idle",
        "idle tasks have no functions: `questions.rs`",
    ),
    (
        "annotate --merge-versions",
        "needs a function with versions: `listings.rs`",
    ),
    (
        "flamegraph --absolute",
        "needs runs of two lengths: `namesakes.rs`",
    ),
    (
        "gate --strict",
        "needs warnings and no failure: `src/views/questions/gate.rs`",
    ),
    (
        "gate --full-names",
        "needs a rule that a function breaks: `gates.rs`",
    ),
];

/// Two commands that print different things, if the option has an effect.
#[derive(Debug, Clone)]
struct Trial {
    recording: String,
    words: Vec<String>,
    /// Words that both commands have.
    both: Vec<String>,
}

/// The trials of options, by the option and the verb; a verb of no name stands for all others.
fn trials() -> BTreeMap<(String, String), Trial> {
    let text = std::fs::read_to_string(root().join("tests/data/effects.txt")).expect("it is there");
    let mut trials = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let words = |at: usize| cell(at).split_whitespace().map(str::to_owned).collect();
        let trial = Trial {
            recording: cell(2).to_owned(),
            words: words(3),
            both: words(4),
        };
        let verbs: Vec<&str> = cell(1).split_whitespace().collect();
        for verb in if verbs.is_empty() { vec![""] } else { verbs } {
            let before = trials.insert((cell(0).to_owned(), verb.to_owned()), trial.clone());
            assert!(before.is_none(), "{line}");
        }
    }
    trials
}

/// A folder with the recordings of the trials.
fn desk(folder: &Path) {
    let samples = root().join("samples");
    std::os::unix::fs::symlink(&samples, folder.join("samples")).expect("a link");
    let copy = |from: &str, to: &str| {
        let to = folder.join(to);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        std::fs::copy(samples.join(from), to).expect("copied");
    };
    copy("native/perf.data", "perf.data");
    copy("waits/perf.data", "bare/perf.data");
    copy("minijit/perf.data", "dumpless/perf.data");
    copy("wasm/perf.data", "wasmbare/perf.data");
    copy("wasm/jit-11250.dump", "wasmbare/jit-11250.dump");
    copy("heap/perf.data", "bareheap/perf.data");
    copy("typescript/perf.data", "mapless/perf.data");
    copy("typescript/jit-13869.dump", "mapless/jit-13869.dump");
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    };
    write("list", b"samples/minijit/perf.data\n");
    write(
        "two",
        b"samples/minijit/perf.data\nsamples/native/perf.data\n",
    );
    write("palette", b"c_middle->rgb(1,2,3)\n");
    write("home/.perfconfig", b"[buildid]\ndir = ~/cache\n");
    write("empty/x.js.map", b"{}");
    // A recording that ends early.
    copy_folder(&samples.join("minijit"), &make(folder, "early"));
    let whole = std::fs::read(folder.join("early/perf.data")).expect("read");
    write("early/perf.data", &whole[..whole.len() * 3 / 5]);
    let hardware = root().join("tests/data/hardware");
    copy_folder(&hardware, &make(folder, "hardware"));
    let packed = std::fs::File::open(root().join("tests/data/weights/ipc.data.gz"));
    let mut rates = Vec::new();
    flate2::read::GzDecoder::new(packed.expect("it is there"))
        .read_to_end(&mut rates)
        .expect("gzip");
    write("ipc/perf.data", &rates);
    let dump = std::fs::read(samples.join("minijit/jit-10624.dump")).expect("read");
    write("damaged.dump", &dump[..dump.len() - 30]);
    write("maps/perf-10624.map", b"7fd4c2b9c000 1000 of_a_map\n");
    let cut = Copy::of("native");
    cut.edit_recording(|data| shorten_stacks(data, 4096, 1024));
    copy_folder(&cut.path(""), &make(folder, "cut"));
    let kernel = std::fs::File::open(samples.join("waits/kallsyms.gz")).expect("it is there");
    let kernel = std::io::read_to_string(flate2::read::GzDecoder::new(kernel)).expect("text");
    let mangled = kernel.replace(
        " _raw_spin_unlock_irqrestore\n",
        " _ZN4core3fmt5write17h0123456789abcdefE\n",
    );
    write("mangled", mangled.as_bytes());
    write("idle/perf.data", &idle(0));
    write("lossy/perf.data", &idle(100));
}

/// A recording in which a processor has nothing to do for a while, and this many samples are lost.
fn idle(lost: u64) -> Vec<u8> {
    let mut recording = Recording::new(Stacks::None);
    recording.comm(7, 7, b"app");
    recording.map(7, 0x1000, 0x1000, 0, b"/app");
    for at in 0..400 {
        let pid = if at % 2 == 0 { 7 } else { 0 };
        recording.sample(&Sample {
            ip: 0x1100,
            pid,
            tid: pid,
            time: 1000 + at,
            period: 1_000_000,
            chain: &[],
            user: None,
        });
    }
    if lost > 0 {
        recording.lost(lost, 1500);
    }
    recording.file()
}

fn make(folder: &Path, name: &str) -> PathBuf {
    let made = folder.join(name);
    std::fs::create_dir_all(&made).expect("made");
    made
}

/// The function that a question on a recording is about.
fn function(recording: &str) -> &'static str {
    match recording {
        "native" | "cut" | "" => "hot::sorter",
        "waits" | "bare" => "spin",
        "wasm" | "wasmbare" => "hot::spin",
        "heap" => "site_big",
        "typescript" | "mapless" => "countPrimes",
        _ => "c_middle",
    }
}

/// Where a recording is, from the desk.
fn path(recording: &str) -> String {
    if root().join("samples").join(recording).is_dir() {
        format!("samples/{recording}/perf.data")
    } else if recording.contains('.') {
        recording.to_owned()
    } else {
        format!("{recording}/perf.data")
    }
}

/// The command of a verb on a recording, with these words. `RECORDING:FUNCTION` names what is asked for, and two words are the
/// two sides of a comparison.
fn command(verb: &str, recording: &str, words: &[String]) -> Vec<String> {
    let has = |word: &str| words.iter().any(|one| one == word);
    let (recording, asked) = recording.split_once(':').unwrap_or((recording, ""));
    let (recording, new) = recording.split_once(' ').unwrap_or((recording, "minijit"));
    let path_of = |name: &str| (!name.is_empty() && !has("-i")).then(|| path(name));
    let mut line = vec![verb.to_owned()];
    match verb {
        "jitdump" if recording.is_empty() => line.push("SELF/jit-10624.dump".to_owned()),
        "jitdump" => line.push(recording.to_owned()),
        "diff" | "gate" => {
            line.extend(path_of(recording));
            line.push(path(new));
        }
        "peek" | "list" if asked.is_empty() => line.push(function(recording).to_owned()),
        "peek" | "list" => line.push(asked.to_owned()),
        _ => {}
    }
    let named = path_of(recording).filter(|_| !["jitdump", "diff", "gate"].contains(&verb));
    line.extend(named.into_iter().flat_map(|path| ["-i".to_owned(), path]));
    let is_text = has("TEXT") || has("--format") || has("--over-time");
    let more: &[&str] = match verb {
        "gate" if !has("--max-share") => &["--max-growth", "5%"],
        "fetch" => &["--dry-run"],
        "bundle" if !has("-o") => &["-o", "-"],
        "export" | "flamegraph" if !has("-o") => &["-o", "-"],
        _ => &[],
    };
    let format: &[&str] = match verb {
        "summary" | "peek" | "list" | "diff" | "gate" if !is_text => &["--format", "json"],
        "flamegraph" if !is_text => &["--format", "svg"],
        "export" if !is_text => &["--format", "firefox"],
        _ => &[],
    };
    line.extend([more, format].concat().into_iter().map(str::to_owned));
    line.extend(words.iter().filter(|word| *word != "TEXT").cloned());
    line
}

/// How a command ended, and all that it wrote.
#[derive(Debug, PartialEq)]
struct Done {
    status: Option<i32>,
    printed: String,
    said: String,
    file: Vec<u8>,
}

/// Runs it with a folder of its own to write to.
fn run(line: &[String], desk: &Path) -> Done {
    let scratch = tempfile::tempdir().expect("a folder");
    let own = scratch.path().join("own");
    let out = scratch.path().join("out");
    if line.iter().any(|word| word.contains("SELF")) {
        copy_folder(
            &root().join("samples/minijit"),
            &make(scratch.path(), "own"),
        );
    }
    let (own_text, out_text) = (own.display().to_string(), out.display().to_string());
    let line = line
        .iter()
        .map(|word| word.replace("SELF", &own_text).replace("OUT", &out_text));
    let mut command: Command = pjit();
    let output = command
        .args(line)
        .env("COLUMNS", "100")
        .env("HOME", desk.join("home"))
        .current_dir(desk)
        .output()
        .expect("the binary can be run");
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        // How long it took is never the same.
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("note: time: "));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        text.replace(&own_text, "SELF").replace(&out_text, "OUT")
    };
    Done {
        status: output.status.code(),
        printed: text(&output.stdout),
        said: text(&output.stderr),
        file: std::fs::read(&out).unwrap_or_default(),
    }
}

/// What commands did that were run before.
type Known = Mutex<BTreeMap<Vec<String>, Arc<Done>>>;

/// What is wrong with an option of a verb.
fn wrong(verb: &str, option: &str, trial: &Trial, desk: &Path, known: &Known) -> Option<String> {
    let with = [&trial.both[..], &trial.words[..]].concat();
    let line = command(verb, &trial.recording, &with);
    let plain = command(verb, &trial.recording, &trial.both);
    let before = known.lock().expect("unharmed").get(&plain).cloned();
    let without = before.unwrap_or_else(|| Arc::new(run(&plain, desk)));
    known
        .lock()
        .expect("unharmed")
        .insert(plain, without.clone());
    let done = run(&line, desk);
    let shown = line.join(" ");
    let is_refused = |done: &Done| done.status == Some(2) && option != "--force-output";
    if is_refused(&done) {
        Some(format!("pjit {shown}: {}", done.said))
    } else if is_refused(&without) {
        Some(format!("pjit {shown}, without it: {}", without.said))
    } else if done == *without {
        let said = done.said.lines().next().unwrap_or_default().to_owned();
        Some(format!(
            "pjit {shown}: the same without {option} ({:?}) {said}",
            done.status
        ))
    } else {
        None
    }
}

#[test]
fn every_option_that_help_shows_does_something() {
    let folder = tempfile::tempdir().expect("a folder");
    desk(folder.path());
    let trials = trials();
    let mut unused: BTreeSet<&(String, String)> = trials.keys().collect();
    let mut pairs: Vec<(String, String, &Trial)> = Vec::new();
    let mut untried = Vec::new();
    let mut used = BTreeSet::new();
    let reasons: BTreeSet<&str> = WITHOUT_EFFECT.iter().map(|(option, _)| *option).collect();
    for verb in verbs() {
        if OF_OTHERS.iter().any(|(other, _)| *other == verb) {
            continue;
        }
        for option in options(&verb).into_iter().filter(|one| one != "--help") {
            let here = format!("{verb} {option}");
            if let Some(reason) = reasons.get(here.as_str()) {
                used.insert(*reason);
                continue;
            }
            let keys = [
                (option.clone(), verb.clone()),
                (option.clone(), String::new()),
            ];
            let found = keys.iter().find_map(|key| trials.get_key_value(key));
            match (found, reasons.get(option.as_str())) {
                (Some((key, trial)), _) => {
                    unused.remove(key);
                    pairs.push((verb.clone(), option, trial));
                }
                (None, Some(reason)) => drop(used.insert(*reason)),
                (None, None) => untried.push(here),
            }
        }
    }
    assert!(untried.is_empty(), "not in effects.txt: {untried:?}");
    assert!(unused.is_empty() && used == reasons, "{unused:?} {used:?}");
    assert!(pairs.len() > 700, "{}", pairs.len());
    let next = Mutex::new(pairs.iter());
    let all = Mutex::new(Vec::new());
    let known = Known::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((verb, option, trial)) = next.lock().expect("unharmed").next() else {
                        return;
                    };
                    let found = wrong(verb, option, trial, folder.path(), &known);
                    all.lock().expect("unharmed").extend(found);
                }
            });
        }
    });
    let all = all.into_inner().expect("unharmed");
    assert!(
        all.is_empty(),
        "{} of {}:\n{}",
        all.len(),
        pairs.len(),
        all.join("\n")
    );
}
