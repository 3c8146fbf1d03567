//! Reads the recordings of a comparison: several at once where they are small, with the memory of one where they are large.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use regex::RegexSet;

use super::narrow::require;
use super::{AskError, Asked, Question, Request};
use crate::check::Limits;
use crate::diagnostics::Diagnostics;
use crate::input::identity;
use crate::load::{self, Listener, LoadOptions, Teller, Together};
use crate::metrics::plain_name;
use crate::parallel::in_parallel;
use crate::questions::compare::without_partner;
use crate::questions::facts::Facts;
use crate::questions::filter::Filters;
use crate::questions::kinds::OwnRules;
use crate::questions::known::Missing;
use crate::questions::runs::{By, Run, reduce};

/// How every recording of a comparison is read.
pub(super) struct Reading<'r> {
    load: LoadOptions,
    event: Option<&'r str>,
    keeps_idle: bool,
    filters: &'r Filters,
    own: &'r OwnRules,
    limits: Limits,
    groups: &'r [RegexSet],
    diag: &'r Diagnostics,
}

/// Runs of both sides.
pub(super) struct Sides {
    /// Of the base.
    pub(super) base: Vec<Run>,
    /// New ones.
    pub(super) new: Vec<Run>,
    /// A recording that is on both sides.
    pub(super) shared: Option<PathBuf>,
}

/// What recordings, and pipe streams saved to a file, begin with.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

/// What may be in flight at once beside the largest recording.
const SMALL: u64 = 256 << 20;

impl<'r> Reading<'r> {
    /// As a request says; `groups` of functions are counted besides.
    pub(super) fn of<Q: Question>(
        request: &'r Request<Q>,
        groups: &'r [RegexSet],
        diag: &'r Diagnostics,
    ) -> Self {
        Self {
            load: request.load_options(),
            event: request.event.as_deref(),
            keeps_idle: request.keeps_idle,
            filters: &request.filters,
            own: &request.own,
            limits: request.limits,
            groups,
            diag,
        }
    }

    /// Reads all recordings of both sides.
    ///
    /// # Errors
    /// When one cannot be read, or has no samples of the event, or is there twice.
    pub(super) fn read(&self, base: &[PathBuf], new: &[PathBuf]) -> Result<Sides, AskError> {
        let (base, new) = (expand(base)?, expand(new)?);
        let shared = told_apart(&base, &new).map_err(AskError::Request)?;
        let all: Vec<&PathBuf> = base.iter().chain(&new).collect();
        let mut runs = Vec::with_capacity(all.len());
        let mut batches = batches(&all, self.load.reading.threads)
            .into_iter()
            .peekable();
        while batches.peek().is_some() {
            load::together(self.diag, |together| -> Result<(), AskError> {
                for batch in batches.by_ref() {
                    let threads = (self.load.reading.threads / batch.len()).max(1);
                    let read = in_parallel(batch.to_vec(), batch.len(), |path| {
                        self.one(path, threads, together)
                    });
                    for run in read {
                        runs.push(run?);
                    }
                    if together.rest() {
                        break;
                    }
                }
                Ok(())
            })?;
        }
        let new = runs.split_off(base.len());
        Ok(Sides {
            base: runs,
            new,
            shared,
        })
    }

    /// Looks up functions that only one side has samples of in the files of the other side's first recording, if that can be
    /// read again.
    pub(super) fn look_up(&self, sides: &mut Sides, by: By) {
        let (of_new, of_base) = without_partner(&sides.base, &sides.new, by);
        for (runs, wanted) in [(&mut sides.base, of_new), (&mut sides.new, of_base)] {
            let missing = Missing::new(wanted);
            let (Some(mut missing), Some(run)) = (missing, runs.first_mut()) else {
                continue;
            };
            let mut load = self.load.clone();
            let path = PathBuf::from(&run.facts.path);
            let is_stream = !path.is_file() && !path.is_dir();
            load.source = load::Source::File(path);
            if !is_stream && load::names(&load, &mut missing).is_ok() {
                run.known = missing.known();
            }
        }
    }

    fn one(&self, path: &Path, threads: usize, together: &Together<'_>) -> Result<Run, AskError> {
        let mut load = self.load.clone();
        load.source = load::Source::File(path.to_owned());
        load.reading.threads = threads;
        let (profile, evidence) = together.load_examined(&load)?;
        let asked = Asked::of(
            (profile, &evidence),
            (self.filters, self.own),
            (self.event, self.keeps_idle, self.limits),
        )?;
        let Asked {
            profile,
            functions,
            tally,
            facts,
            ..
        } = asked;
        Ok(reduce(&profile, &functions, &tally, facts, self.groups))
    }
}

impl Listener for Missing {
    fn wants_file(&self, path: &str) -> bool {
        self.are_in_file(path)
    }

    fn wants(&self, name: &[u8]) -> bool {
        self.may_be(name)
    }

    fn hear(&mut self, teller: Teller<'_>, name: &str) {
        match teller {
            Teller::File(path) => self.in_file(path, name),
            Teller::Jit(producer) => self.in_dump(producer, name),
        }
    }
}

/// Recordings that are read at the same time: not more than there are threads, and together not larger than the largest, or small.
fn batches<'p>(paths: &'p [&'p PathBuf], threads: usize) -> Vec<&'p [&'p PathBuf]> {
    let most = paths.iter().map(size).max().unwrap_or(0).max(SMALL);
    let (mut batches, mut start, mut sum) = (Vec::new(), 0, 0);
    for (at, path) in paths.iter().enumerate() {
        let size = size(path);
        if at > start && (sum + size > most || at - start >= threads.max(1)) {
            batches.push(&paths[start..at]);
            (start, sum) = (at, 0);
        }
        sum += size;
    }
    if start < paths.len() {
        batches.push(&paths[start..]);
    }
    batches
}

/// A recording that is named twice would be two runs that agree to the last sample, and any difference certain. Says which one
/// stands on both sides.
fn told_apart(base: &[PathBuf], new: &[PathBuf]) -> Result<Option<PathBuf>, String> {
    let mut known: BTreeMap<(u64, u64), bool> = BTreeMap::new();
    let mut shared = None;
    let base = base.iter().map(|path| (path, false));
    for (path, is_new) in base.chain(new.iter().map(|path| (path, true))) {
        let Ok(data) = std::fs::metadata(path) else {
            continue;
        };
        if !data.is_file() {
            continue;
        }
        match known.insert(identity(path, &data), is_new) {
            Some(before) if before == is_new => {
                return Err(format!("{}: the same recording twice", path.display()));
            }
            Some(_) => shared = Some(path.clone()),
            None => {}
        }
    }
    Ok(shared)
}

/// Warns of copies of one recording.
fn tell_copies(sides: &Sides, diag: &Diagnostics) {
    let mut known: BTreeMap<_, &str> = BTreeMap::new();
    for run in sides.base.iter().chain(&sides.new) {
        let facts = &run.facts;
        let (Some(start), Some(wall)) = (facts.start_ns, facts.wall_ns) else {
            continue;
        };
        let key = (start, wall, run.total.samples);
        if let Some(other) = known.insert(key, &facts.path) {
            diag.warn(format!(
                "{} and {other} have the same times and number of samples: one recording, not two runs?",
                facts.path
            ));
        }
    }
}

/// Bytes of a recording, of all files where it is a folder.
fn size(path: &&PathBuf) -> u64 {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
    if !path.is_dir() {
        return length(path);
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    files.map(|file| length(&file.path())).sum()
}

/// The path without the time that `perf record --switch-output` puts behind it: `perf.data` of
/// `perf.data.2026112315451439`.
fn unsliced(path: &Path) -> Option<PathBuf> {
    let time = path.extension()?.to_str()?;
    let before = path.with_extension("");
    let is_slice = time.bytes().all(|byte| byte.is_ascii_digit())
        && before.extension().is_some_and(|e| e == "data");
    is_slice.then_some(before)
}

/// Folders as the recordings in them: `perf.data`, files that end in `.data`, slices that end in `.data.TIME`, folders of
/// `perf record --threads`, and folders that hold a `perf.data`. A folder of `perf record --threads` is a recording itself,
/// whatever it is called.
fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, AskError> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() || is_recording(path) {
            all.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        let mut unfinished = Vec::new();
        let unread = |error| AskError::Read(path.display().to_string(), error);
        for entry in std::fs::read_dir(path).map_err(unread)? {
            let entry = entry.map_err(unread)?.path();
            let inner = entry.join("perf.data");
            if is_recording(&entry) {
                found.push(entry);
            } else if entry.is_dir() && (inner.is_file() || is_recording(&inner)) {
                found.push(inner);
            } else if entry.is_file() && entry.extension().is_some_and(|e| e == "data") {
                found.push(entry);
            } else if let Some(unsliced) = unsliced(&entry).filter(|_| entry.is_file()) {
                found.push(entry);
                unfinished.push(unsliced);
            }
        }
        // perf is writing the next slice to it, or was when it ended.
        found.retain(|entry| !unfinished.contains(entry));
        require(!found.is_empty(), || {
            format!("{}: no recording in this folder", path.display())
        })?;
        found.sort();
        all.extend(found);
    }
    Ok(all)
}

/// Whether a folder is what `perf record --threads` writes: a file `data` that begins as recordings do, and others beside it.
fn is_recording(folder: &Path) -> bool {
    let mut magic = [0; 8];
    let path = folder.join("data");
    // What is no file may keep its reader waiting.
    if !path.is_file() {
        return false;
    }
    let file = std::fs::File::open(path);
    let read = file.and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *MAGIC
}

/// Whether the runs can be compared at all; what makes it doubtful is a warning.
///
/// # Errors
/// When they count different things.
pub(super) fn require_comparable(sides: &Sides, diag: &Diagnostics) -> Result<(), AskError> {
    let all: Vec<&Facts> = sides
        .base
        .iter()
        .chain(&sides.new)
        .map(|run| &run.facts)
        .collect();
    let Some(first) = all.first() else {
        return Ok(());
    };
    tell_copies(sides, diag);
    if let Some(other) = all.iter().find(|facts| plain(facts) != plain(first)) {
        return Err(AskError::Absent(format!(
            "{} counts {}, {} counts {}: nothing to compare (--event)",
            first.path, first.event, other.path, other.event
        )));
    }
    if let Some(other) = all
        .iter()
        .find(|facts| facts.weighed.is_none() && facts.event != first.event)
    {
        diag.warn(format!(
            "{} counts {}, {} counts {}: not the same samples",
            first.path, first.event, other.path, other.event
        ));
    }
    let differs = |what: &str, of: fn(&Facts) -> Option<&String>| {
        let known = all.iter().find_map(|facts| of(facts));
        let other = all
            .iter()
            .find(|facts| of(facts).is_some() && of(facts) != known);
        if let (Some(known), Some(other)) = (known, other) {
            let text = of(other).map_or("", String::as_str);
            diag.warn(format!("{what} differs: {known}, in {} {text}", other.path));
        }
    };
    differs("the processor", |facts| facts.cpu.as_ref());
    differs("the kernel", |facts| facts.kernel.as_ref());
    let lost = |runs: &[Run]| {
        let lost: u64 = runs.iter().map(|run| run.facts.lost).sum();
        let samples: u64 = runs.iter().map(|run| run.total.samples).sum();
        100.0 * lost as f64 / (lost + samples).max(1) as f64
    };
    if !sides.base.is_empty() && (lost(&sides.base) - lost(&sides.new)).abs() > 1.0 {
        diag.warn(format!(
            "{:.1}% of the samples of base were lost, {:.1}% of new: figures do not say how much that is",
            lost(&sides.base),
            lost(&sides.new)
        ));
    }
    Ok(())
}

/// What an event counts, whatever is said of who runs and how precise it is.
fn plain(facts: &Facts) -> &str {
    if facts.weighed.is_some() {
        // Weights tell in parentheses what they are made of.
        return facts.event.split(" (").next().unwrap_or("");
    }
    if !facts.is_tracepoint {
        return plain_name(&facts.event);
    }
    // System and name; behind a second colon are modifiers.
    let mut colons = facts.event.match_indices(':');
    let end = colons.nth(1).map_or(facts.event.len(), |(at, _)| at);
    &facts.event[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_but_for_their_modifiers() {
        let facts = |event: &str, is_tracepoint: bool| Facts {
            event: event.to_owned(),
            is_tracepoint,
            ..Facts::default()
        };
        for (a, b, is_same) in [
            ("sched:sched_wakeup", "sched:sched_stat_runtime", false),
            ("probe_x:malloc", "probe_x:free", false),
            ("sched:sched_wakeup", "sched:sched_wakeup:u", true),
        ] {
            let (a, b) = (facts(a, true), facts(b, true));
            assert_eq!(plain(&a) == plain(&b), is_same, "{} {}", a.event, b.event);
        }
        for (a, b, is_same) in [
            ("cycles:u", "cpu_core/cycles/", true),
            ("cycles", "instructions", false),
            ("cpu-clock:pppH", "cpu-clock", true),
        ] {
            let (a, b) = (facts(a, false), facts(b, false));
            assert_eq!(plain(&a) == plain(&b), is_same, "{} {}", a.event, b.event);
        }
    }

    #[test]
    fn one_recording_is_not_two_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let [a, b] = ["a.data", "b.data"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).expect("written");
            path
        });
        let link = folder.path().join("link.data");
        std::os::unix::fs::symlink(&a, &link).expect("a link");
        let one = |path: &PathBuf| vec![path.clone()];
        assert_eq!(told_apart(&one(&a), &one(&b)), Ok(None));
        assert_eq!(told_apart(&one(&a), &one(&link)), Ok(Some(link.clone())));
        assert!(told_apart(&[a, link], &one(&b)).is_err());
    }

    #[test]
    fn folders_of_several_threads_are_recordings() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = folder.path().join("a.data");
        let (two, none) = (folder.path().join("b/perf.data"), folder.path().join("c"));
        for (path, begins) in [
            (&one, "PERFILE2 and more"),
            (&two, "PERFILE2"),
            (&none, "text"),
        ] {
            std::fs::create_dir_all(path).expect("a folder");
            std::fs::write(path.join("data"), begins).expect("a file");
        }
        let found = |path: &Path| expand(&[path.to_owned()]).ok();
        assert_eq!(found(&one), Some(vec![one.clone()]));
        assert_eq!(found(&two), Some(vec![two.clone()]));
        assert_eq!(found(folder.path()), Some(vec![one.clone(), two.clone()]));
        assert_eq!(found(&none), None);
    }

    #[test]
    fn large_recordings_are_read_one_after_the_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let files: Vec<PathBuf> = [3_u64, 1, 1]
            .iter()
            .enumerate()
            .map(|(at, size)| {
                let path = folder.path().join(format!("{at}.data"));
                let file = std::fs::File::create(&path).expect("a file");
                file.set_len(size * SMALL).expect("a sparse file");
                path
            })
            .collect();
        let paths: Vec<&PathBuf> = files.iter().collect();
        let sizes = |threads| {
            batches(&paths, threads)
                .iter()
                .map(|b| b.len())
                .collect::<Vec<_>>()
        };
        let slices = tempfile::tempdir().expect("a folder");
        for name in [
            "r.data",
            "r.data.2026112315451439",
            "r.data.2026112315451539",
            "r.data.old",
        ] {
            std::fs::write(slices.path().join(name), "").expect("a file");
        }
        let found = expand(&[slices.path().to_owned()]).expect("recordings");
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(
            names,
            ["r.data.2026112315451439", "r.data.2026112315451539"]
        );
        assert_eq!(sizes(8), [1, 2]);
        assert_eq!(sizes(1), [1, 1, 1]);
        assert_eq!(
            expand(&[folder.path().to_owned()])
                .expect("recordings")
                .len(),
            3
        );
    }
}
