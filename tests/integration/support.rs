//! What the other tests share: running the binary, the samples, reading reports and folded stacks, random numbers.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The four samples.
pub(crate) const SAMPLES: [&str; 4] = ["minijit", "native", "node", "wasmtime"];

/// A file of a sample.
pub(crate) fn sample(name: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("samples")
        .join(name)
        .join(file)
}

/// The binary, with nothing of this machine's user: no configuration, no build-ID cache, no colours.
pub(crate) fn pjit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pjit"));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// perf, with memory that is zeroed when it is handed out (by glibc): it reads some that it never wrote, and marks `[...]` as
/// inlined by what it finds there. And without the variables of whoever runs the tests: equal branches it orders by addresses
/// of its heap, where the array of variables, made anew to change its `PATH`, decides what fits into which hole.
pub(crate) fn perf() -> Command {
    let mut perf = Command::new("perf");
    perf.env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("MALLOC_PERTURB_", "255")
        .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
    perf
}

pub(crate) use crate::skip::skip;

/// A program on the path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join(name));
    folders.find(|file| file.is_file())
}

/// The browser.
pub(crate) fn chromium() -> Option<PathBuf> {
    let names = ["chromium-headless-shell", "chromium", "chromium-browser"];
    names.into_iter().find_map(program)
}

/// Where npm's programs are that `.ci/run` installs.
pub(crate) fn modules() -> PathBuf {
    std::env::var_os("PJIT_BROWSER_MODULES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/browser/node_modules"),
        PathBuf::from,
    )
}

/// Runs it on a sample: `pjit VIEW OPTIONS… --symfs samples/NAME/symfs samples/NAME/perf.data`, from the project's folder. Without
/// `--symfs` it would find what is in `symfs/` too, but also the debug files of this machine.
pub(crate) fn run<S: AsRef<OsStr>>(view: &[S], name: &str) -> Output {
    pjit()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(view)
        .args([
            "--symfs",
            &format!("samples/{name}/symfs"),
            &format!("samples/{name}/perf.data"),
        ])
        .output()
        .expect("the binary can be run")
}

/// Its standard output; fails the test when it did not end well.
pub(crate) fn stdout_of<S: AsRef<OsStr>>(view: &[S], name: &str) -> String {
    let output = run(view, name);
    let words: Vec<_> = view
        .iter()
        .map(|w| w.as_ref().to_string_lossy().into_owned())
        .collect();
    assert!(
        output.status.success(),
        "pjit {} on {name}: {}\n{}",
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// A flat report of `keys` as rows of cells alone, for `cells` to read: what each weighs, then the keys.
pub(crate) fn bare(weight: &str, keys: &str) -> Vec<String> {
    let options = "report --no-children -g none -q -w 0 -t |";
    let fields = format!("{weight},{keys}");
    let words = options.split(' ').chain(["-s", keys, "-F", &fields]);
    words.map(str::to_owned).collect()
}

/// Rows of such a report: weight, and the cells of `N` keys. Symbols are without the sign of their mode.
pub(crate) fn cells<const N: usize>(report: &str) -> Vec<(u64, [String; N])> {
    let row = |line: &str| {
        let mut cells = line.splitn(N + 1, '|').map(str::trim);
        let weight = cells.next()?.parse().ok()?;
        let keys: Vec<String> = cells
            .map(|cell| {
                let mode = cell.starts_with('[') && cell.get(2..4) == Some("] ");
                cell.get(if mode { 4 } else { 0 }..)
                    .unwrap_or(cell)
                    .trim()
                    .to_owned()
            })
            .collect();
        Some((weight, keys.try_into().ok()?))
    };
    let rows = report.lines().filter(|line| !line.is_empty());
    rows.map(|line| row(line).unwrap_or_else(|| panic!("no row of {N} keys: {line:?}")))
        .collect()
}

/// Folded stacks with their weights.
pub(crate) fn folded(text: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for line in text.lines() {
        let (stack, weight) = line
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("not a folded line: {line:?}"));
        let weight: u64 = weight
            .parse()
            .unwrap_or_else(|_| panic!("no weight: {line:?}"));
        *stacks.entry(stack.to_owned()).or_default() += weight;
    }
    stacks
}

/// Folded stacks with twice the weights.
pub(crate) fn twice_of(folded: &str) -> String {
    let rows = folded.lines().filter_map(|line| line.rsplit_once(' '));
    rows.map(|(stack, weight)| {
        format!("{stack} {}\n", 2 * weight.parse::<u64>().expect("a weight"))
    })
    .collect()
}

/// The rows of a flat report: what stands right of the overhead, blanks squeezed, with its overhead in hundredths of
/// a percent. All JIT objects count as one, `[JIT]`, because perf makes one object of each function.
pub(crate) fn flat_rows(text: &str) -> BTreeMap<String, i64> {
    let jit = regex::Regex::new(r"(^| )(jitted-\d+-\d+\.so|\S*jit\S*\.dump|\[JIT\]( tid \d+)?) \[")
        .expect("a valid expression");
    let mut rows = BTreeMap::new();
    for line in text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.trim().is_empty())
    {
        let mut words = line.split_whitespace();
        let overhead = words
            .next()
            .and_then(|w| w.strip_suffix('%'))
            .and_then(|w| w.parse::<f64>().ok());
        let Some(overhead) = overhead else { continue };
        let key = words.collect::<Vec<_>>().join(" ");
        let key = jit.replace(&key, "$1[JIT] [").into_owned();
        *rows.entry(key).or_default() += (overhead * 100.0).round() as i64;
    }
    rows
}

/// Common weight of two tables, as a share of the first.
pub(crate) fn agreement<W: Copy + Ord + Default + Into<i128> + PartialEq>(
    reference: &BTreeMap<String, W>,
    candidate: &BTreeMap<String, W>,
) -> f64 {
    let total: i128 = reference.values().map(|&w| w.into()).sum();
    let common: i128 = reference
        .iter()
        .map(|(key, &weight)| {
            weight
                .min(candidate.get(key).copied().unwrap_or_default())
                .into()
        })
        .sum();
    if total == 0 {
        0.0
    } else {
        common as f64 / total as f64
    }
}

/// The number behind `# Event count (approx.): `, added up over all events.
pub(crate) fn event_count(report: &str) -> u64 {
    report
        .lines()
        .filter_map(|l| l.strip_prefix("# Event count (approx.): "))
        .map(|n| n.trim().parse::<u64>().expect("a number"))
        .sum()
}

/// A small generator of random numbers (splitmix64): the same numbers for the same seed, everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// One of them.
    pub(crate) fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// True so often.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < share
    }
}

/// Copies what is in a folder into another one that is there.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            std::fs::create_dir(&target).expect("it can be made");
            copy_folder(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("it can be copied");
        }
    }
}

/// Sends a signal to a process of the test's own.
pub(crate) fn send(signal: rustix::process::Signal, process: u32) {
    let process = i32::try_from(process)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let process = process.expect("a process has a number");
    rustix::process::kill_process(process, signal).expect("it is a child that was not waited for");
}

/// Gives signals to the programs that the test starts as a shell in front gives them. A script that starts the tests in its
/// background has SIGINT ignored, `nohup` SIGHUP, and who is started inherits that.
pub(crate) fn give_interrupts() {
    use signal_hook::consts::{SIGHUP, SIGINT};
    for signal in [SIGINT, SIGHUP] {
        let always = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let given = signal_hook::flag::register_conditional_default(signal, always);
        given.expect("a handler");
    }
}

/// Where the perf map of a process is written.
pub(crate) fn map_of(pid: u32) -> PathBuf {
    Path::new("/tmp").join(format!("perf-{pid}.map"))
}
