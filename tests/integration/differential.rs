//! Against the perf of this machine: random recordings and random options, the same table.
//!
//! Skipped with a message where there is no `perf` or no C compiler. Rows of equal percentage may come in another order,
//! because perf orders such ties by heap addresses. `PJIT_SEEDS=500` for more than the usual few.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::live::Lab;
use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{Random, perf, pjit, skip};

/// What the mapped library consists of: functions of different sizes.
const SOURCE: &str = "
#define F(n, k) __attribute__((noinline)) int n(int x) { volatile int y = x; for (int i = 0; i < x; i++) y += i * k; return y; }
F(leaf1, 0) F(leaf2, 1) F(rec, 2) F(mid, 3)
int main(int c, char **v) { return leaf1(c) + leaf2(c) + rec(c) + mid(c); }
";

/// The library and the addresses of its functions.
struct Library {
    file: PathBuf,
    functions: Vec<u64>,
    /// Makes the order in which perf prints equal branches that in which it made them.
    allocator: PathBuf,
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds the library, or says which oracle is missing. (`nm` comes with `addr2line`.)
fn build(folder: &Path) -> Result<Library, &'static str> {
    output_of(Command::new("perf").arg("--version")).ok_or("perf")?;
    let (source, file) = (folder.join("a.c"), folder.join("a.so"));
    std::fs::write(&source, SOURCE).expect("it can be written");
    output_of(
        Command::new("cc")
            .args(["-O1", "-fcf-protection=none", "-Wl,--build-id", "-o"])
            .arg(&file)
            .arg(&source),
    )
    .ok_or("cc")?;
    let allocator = folder.join("bump.so");
    output_of(
        Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-fno-builtin", "-o"])
            .arg(&allocator)
            .arg(Lab::program("bump.c")),
    )
    .ok_or("cc")?;
    let symbols = output_of(Command::new("nm").arg(&file)).ok_or("addr2line")?;
    let functions = symbols
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let wanted =
                words.len() == 3 && ["leaf1", "leaf2", "rec", "mid", "main"].contains(&words[2]);
            wanted.then(|| u64::from_str_radix(words[0], 16).expect("an address"))
        })
        .collect();
    Ok(Library {
        file,
        functions,
        allocator,
    })
}

/// The recording and the options of one seed.
fn make(seed: u64, folder: &Path, library: &Library, flat: bool) -> (PathBuf, Vec<String>) {
    let mut random = Random(seed);
    let libraries: Vec<PathBuf> = (0..4)
        .map(|i| {
            let path = folder.join(format!(
                "{}{i}lib.so",
                random.choose(&['a', 'b', 'c', 'd', 'x', 'y', 'z'])
            ));
            if !path.exists() {
                std::fs::copy(&library.file, &path).expect("it can be copied");
            }
            path
        })
        .collect();
    let mut recording = Recording::new(if flat {
        Stacks::None
    } else {
        Stacks::Callchain
    });
    let threads = [(10, 10, "aaa"), (10, 11, "bbb"), (20, 20, "aaa")];
    for (pid, tid, comm) in threads {
        recording.comm(pid, tid, comm.as_bytes());
    }
    for pid in [10, 20] {
        let turn = if pid == 20 { random.below(4) } else { 0 };
        for i in 0..4 {
            let i = (i + turn) % 4;
            let name = libraries[i].as_os_str().as_encoded_bytes();
            recording.map(
                pid,
                0x1000_0000 * (i as u64 + 1) + 0x1000,
                0x1000,
                0x1000,
                name,
            );
        }
    }
    let pool: Vec<u64> = (0..8)
        .map(|_| 0x1000_0000 * (1 + random.below(4) as u64) + random.choose(&library.functions))
        .collect();
    let fixed = random.chance(0.5);
    for i in 0..*random.choose(&[20, 60, 200]) {
        let &(pid, tid, _) = random.choose(&threads);
        let mut chain = vec![CONTEXT_USER];
        for _ in 0..1 + random.below(5) {
            chain.push(if random.chance(0.07) {
                *random.choose(&[0x1234, 0x7777_1234])
            } else {
                random.choose(&pool) + random.below(3) as u64
            });
        }
        let period = if fixed {
            1000
        } else {
            1 + random.below(5000) as u64
        };
        recording.sample(&Sample {
            ip: chain[1],
            pid,
            tid,
            time: 1000 + 10 * i,
            period,
            chain: &chain,
            user: None,
        });
    }
    let path = folder.join("random.data");
    std::fs::write(&path, recording.file()).expect("it can be written");
    (path, options(&mut random, flat))
}

fn options(random: &mut Random, flat: bool) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| options.extend(words.iter().map(|&w| w.to_owned()));
    if flat {
        add(&["--no-children", "-g", "none"]);
    } else {
        add(&[
            *random.choose(&["--children", "--no-children"]),
            "--no-inline",
        ]);
        add(&["--max-stack", *random.choose(&["127", "127", "3"])]);
        let parts = [
            *random.choose(&["graph", "graph", "fractal", "flat", "folded"]),
            *random.choose(&["0", "0.5", "3", "10"]),
            *random.choose(&["", "", "2"]),
            *random.choose(&["caller", "callee"]),
            "function",
            *random.choose(&["percent", "percent", "period", "count"]),
        ];
        let graph: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        add(&["-g", &graph.join(",")]);
    }
    if random.chance(0.4) {
        add(&["--percent-limit", *random.choose(&["1", "5"])]);
    }
    if random.chance(0.3) {
        add(&[
            "--sort",
            *random.choose(&["sym", "dso", "comm", "dso,sym", "pid,sym", "comm,dso"]),
        ]);
    }
    if random.chance(0.3) {
        add(random.choose::<&[&str]>(&[
            &["-n"][..],
            &["--show-total-period"],
            &["-n", "--show-total-period"],
        ]));
    }
    options
}

/// The table below the header, without comments and blank lines at its end.
fn table(mut command: Command, path: &Path, options: &[String], home: &Path) -> Vec<String> {
    command
        .args(["report", "--stdio", "-i"])
        .arg(path)
        .args(options)
        .env("HOME", home)
        .env("NO_COLOR", "1");
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<String> = text
        .lines()
        .map(|l| l.trim_end().to_owned())
        .skip_while(|l| !l.starts_with("# Overhead") && !l.starts_with("# Children"))
        .collect();
    while lines
        .last()
        .is_some_and(|l| l.is_empty() || l.starts_with('#'))
    {
        lines.pop();
    }
    if lines.is_empty() {
        lines.push(format!(
            "no table, {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    lines
}

fn sorted(lines: &[String]) -> Vec<&String> {
    let mut lines: Vec<_> = lines.iter().collect();
    lines.sort();
    lines
}

fn compare(flat: bool, usual: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let library = match build(folder.path()) {
        Ok(library) => library,
        Err(oracle) => {
            skip(oracle, "it cannot be run");
            return;
        }
    };
    let seeds = std::env::var("PJIT_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(usual);
    let mut different = Vec::new();
    for seed in 1..=seeds {
        let (path, options) = make(seed, folder.path(), &library, flat);
        // perf does not tell where frames are missing.
        let unmarked = [&options[..], &["--no-cut-marks".to_owned()]].concat();
        let got = table(pjit(), &path, &unmarked, folder.path());
        let mut perf = perf();
        perf.env("LD_PRELOAD", &library.allocator);
        let wanted = table(perf, &path, &options, folder.path());
        if sorted(&wanted) != sorted(&got) {
            let line = wanted
                .iter()
                .zip(&got)
                .position(|(a, b)| a != b)
                .unwrap_or(wanted.len().min(got.len()));
            different.push(format!(
                "seed {seed}: {}\n  line {line}\n  perf {:?}\n  pjit {:?}",
                options.join(" "),
                wanted.get(line).map_or("(end)", |l| l),
                got.get(line).map_or("(end)", |l| l)
            ));
        }
    }
    assert!(
        different.is_empty(),
        "{} of {seeds} recordings print differently:\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn flat_reports_of_random_recordings_equal_perfs() {
    compare(true, 20);
}

#[test]
fn call_graphs_of_random_recordings_equal_perfs() {
    compare(false, 40);
}
