//! Programs of `tests/programs`, compiled and recorded where that is possible: what tests need to know the truth of.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{pjit, skip};

/// Runs perf, and again if it aborts: where another recording asks for build IDs at the same time, perf 6.1 takes some that are none.
pub(crate) fn unaborted<E>(mut run: impl FnMut() -> Result<Output, E>) -> Result<Output, E> {
    let mut recorded = run()?;
    for attempt in 0..5 {
        if recorded.status.code().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(200 * attempt));
            recorded = run()?;
        }
    }
    Ok(recorded)
}

/// A folder of a test, gone when the test is.
pub(crate) struct Lab {
    folder: PathBuf,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Lab {
    /// An empty folder.
    pub(crate) fn empty(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{test}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        Self { folder }
    }

    /// Where a program's source is.
    pub(crate) fn program(file: &str) -> PathBuf {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        manifest.join("tests/programs").join(file)
    }

    /// A folder with a program in it; `None`, and why, when there is no compiler.
    pub(crate) fn with(test: &str, program: &str, flags: &[&str]) -> Option<Self> {
        let lab = Self::empty(test);
        let source = Self::program(&format!("{program}.c"));
        let built = Command::new("cc")
            .args([
                "-O1",
                "-g",
                "-fno-omit-frame-pointer",
                "-fno-optimize-sibling-calls",
                "-pthread",
            ])
            .args(flags)
            .arg("-o")
            .arg(lab.path(program))
            .arg(source)
            .output();
        match built {
            Ok(output) if output.status.success() => Some(lab),
            Ok(output) => panic!("{program}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => {
                skip("cc", "it cannot be run");
                None
            }
        }
    }

    /// A file of the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `perf record OPTIONS -o NAME -- ./PROGRAM…`; what the program printed. `None`, and why, where events or rights are
    /// missing.
    pub(crate) fn record(&self, name: &str, options: &[&str], command: &[&str]) -> Option<String> {
        let recorded = self.try_record(name, options, command);
        recorded.map_err(|why| skip("perf", &why)).ok()
    }

    /// The same: what the program printed, or what perf said.
    pub(crate) fn try_record(
        &self,
        name: &str,
        options: &[&str],
        command: &[&str],
    ) -> Result<String, String> {
        let run = || {
            let mut perf = Command::new("perf");
            perf.current_dir(&self.folder)
                .args(["record", "-q", "-N", "-o", name])
                .args(options)
                .arg("--")
                .args(command);
            perf.output().map_err(|_| "it cannot be run".to_owned())
        };
        let recorded = unaborted(run)?;
        if !recorded.status.success() {
            return Err(String::from_utf8_lossy(&recorded.stderr).into_owned());
        }
        Ok(String::from_utf8(recorded.stdout).expect("the program prints text"))
    }

    /// Runs pjit on a recording of the folder: status, standard output, standard error.
    pub(crate) fn pjit(&self, options: &[&str], name: &str) -> (i32, String, String) {
        let output = pjit()
            .current_dir(&self.folder)
            .args(options)
            .arg(name)
            .output()
            .expect("the binary can be run");
        let text = |bytes| String::from_utf8(bytes).expect("output is text");
        let status = output.status.code().expect("no signal");
        (status, text(output.stdout), text(output.stderr))
    }

    /// The same when it has to go well.
    pub(crate) fn show(&self, options: &[&str], name: &str) -> String {
        let (status, out, err) = self.pjit(options, name);
        assert_eq!(status, 0, "pjit {}: {err}{out}", options.join(" "));
        out
    }
}

/// Tries a recording until what is found in it agrees with what the program measured itself: three times at most. A machine
/// that does other work as well, or that is a guest, stops programs for milliseconds wherever they are, also between their
/// clocks and the kernel's records.
pub(crate) fn undisturbed(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut found = Vec::new();
    while let Err(why) = attempt() {
        found.push(why);
        assert!(found.len() < 3, "{}", found.join("\n"));
    }
}

/// Lines `NAME NUMBER` that a program printed.
pub(crate) fn truth(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines();
    lines
        .filter_map(|line| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.trim().parse().ok()?))
        })
        .collect()
}

/// What all folded stacks weigh.
pub(crate) fn total(folded: &str) -> u64 {
    let weights = folded.lines().filter_map(|line| line.rsplit_once(' '));
    weights
        .map(|(_, weight)| weight.parse::<u64>().expect("a weight"))
        .sum()
}

/// What folded stacks weigh that have a frame.
pub(crate) fn below(folded: &str, frame: &str) -> u64 {
    let with = folded
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter(|(stack, _)| stack.split(';').any(|word| word == frame));
    with.map(|(_, weight)| weight.parse::<u64>().expect("a weight"))
        .sum()
}
