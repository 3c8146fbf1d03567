//! What went wrong without stopping the run: one line per kind on stderr at the end.
//!
//! Every stage gets a `&Diagnostics` and reports into it; `main` prints. Lines are de-duplicated, so
//! a stage may report per file without counting for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Collects warnings and, with `-v`, notes. Shared by all threads.
#[derive(Debug, Default)]
pub struct Diagnostics {
    lines: Mutex<Vec<Line>>,
    /// By what they are of.
    lists: Mutex<BTreeMap<&'static str, Lists>>,
    /// Whether notes are forgotten at once.
    is_brief: bool,
    stage: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
    has_failed: AtomicBool,
}

/// Something to say.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// In a line of its own.
    One(Level, String),
    /// The same, by whichever thread came first.
    Beside(Level, String),
    /// A warning that files have in common.
    OfFiles(&'static OfFiles, Vec<String>),
}

/// What there is to warn of files.
#[derive(Debug, PartialEq, Eq)]
pub struct OfFiles {
    /// Behind the name of one.
    pub one: &'static str,
    /// Between the number of several and their names.
    pub several: &'static str,
    /// Behind those.
    pub advice: &'static str,
}

impl OfFiles {
    /// Names in a line.
    const NAMES: usize = 3;

    fn text(&self, files: &[String]) -> String {
        let Self {
            one,
            several,
            advice,
        } = self;
        if let [file] = files {
            return format!("{file}: {one}. {advice}");
        }
        // Threads look for symbols, in no order.
        let mut sorted = files.to_vec();
        sorted.sort_unstable();
        let shown = &sorted[..files.len().min(Self::NAMES)];
        let more = match files.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = files.len();
        format!(
            "{count} files {several}: {}{more}. {advice}",
            shown.join(", ")
        )
    }
}

impl Line {
    fn text(&self) -> (Level, String) {
        match self {
            Self::One(level, text) | Self::Beside(level, text) => (*level, text.clone()),
            Self::OfFiles(what, files) => (Level::Warning, what.text(files)),
        }
    }
}

/// Files of a kind that were looked for: those that were not found, and those that were.
type Lists = [List; 2];

/// Some of very many lines: those that come first, in whatever order they are told.
#[derive(Debug, Default)]
struct List {
    lines: BTreeSet<String>,
    is_cut: bool,
}

impl List {
    /// Lines that are kept, and that are shown.
    const MOST: usize = 4096;
    const SHOWN: usize = 8;

    fn add(&mut self, line: String) {
        self.lines.insert(line);
        if self.lines.len() > Self::MOST {
            self.lines.pop_last();
            self.is_cut = true;
        }
    }

    fn count(&self) -> String {
        let more = if self.is_cut { "more than " } else { "" };
        format!("{more}{}", self.lines.len())
    }

    fn shown(&self) -> impl Iterator<Item = String> {
        let shown = self.lines.iter().take(Self::SHOWN);
        let more = self.lines.len().saturating_sub(Self::SHOWN);
        let more = (more > 0).then(|| format!("  and {more} more"));
        shown.map(|line| format!("  {line}")).chain(more)
    }
}

/// How serious a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only interesting with `-v`: which files were used.
    Note,
    /// Something is missing or was not used; the output is still right as far as it goes.
    Warning,
}

impl Diagnostics {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for who wants no notes.
    #[must_use]
    pub fn brief() -> Self {
        Self {
            is_brief: true,
            ..Self::default()
        }
    }

    /// Whether anybody wants to know what only matters with `-v`.
    #[must_use]
    pub const fn wants_notes(&self) -> bool {
        !self.is_brief
    }

    /// Says what is missing or damaged, what was done, and what would fix it; one line.
    pub fn warn(&self, line: impl Into<String>) {
        self.add(Line::One(Level::Warning, line.into()));
    }

    /// Reports that a part of what was asked for is missing: there is an answer, and it is not all of it.
    pub fn fail(&self, line: impl Into<String>) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.warn(line);
    }

    /// The same of recordings that were left out of so many: why each was, and how many that are.
    pub fn leave_out(&self, whys: &[String], all: usize) {
        for why in whys {
            self.fail(format!("left out: {why}"));
        }
        if !whys.is_empty() {
            self.fail(format!("{all} recordings, {} failed", whys.len()));
        }
    }

    /// Whether a part of what was asked for is missing.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// A warning of what several threads look at, of which any may be the first: files of symbols. Such lines are sorted and stand
    /// behind the others, so that two runs say the same.
    pub fn warn_beside(&self, line: impl Into<String>) {
        self.add(Line::Beside(Level::Warning, line.into()));
    }

    /// The same of a file; those that have it in common share a line, which stands there, too.
    pub fn warn_of_file(&self, what: &'static OfFiles, file: String) {
        let mut lines = self.lock();
        let known = lines.iter_mut().find_map(|line| match line {
            Line::OfFiles(known, files) if *known == what => Some(files),
            _ => None,
        });
        match known {
            Some(files) if files.contains(&file) => {}
            Some(files) => files.push(file),
            None => lines.push(Line::OfFiles(what, vec![file])),
        }
    }

    /// Says something that only matters with `-v`.
    pub fn note(&self, line: impl Into<String>) {
        self.add(Line::One(Level::Note, line.into()));
    }

    /// The same of what several threads look at.
    pub fn note_beside(&self, line: impl Into<String>) {
        self.add(Line::Beside(Level::Note, line.into()));
    }

    /// Notes with what became of something that was looked for; `kind` is what it is one of.
    pub fn list(&self, kind: &'static str, is_found: bool, line: String) {
        if self.wants_notes() {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            lists.entry(kind).or_default()[usize::from(is_found)].add(line);
        }
    }

    /// All lines, each once: those that were reported in order, then those that were not, then what was looked for.
    #[must_use]
    pub fn take(&self) -> Vec<(Level, String)> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = std::mem::take(&mut *lists).into_iter();
        let lists = lists.flat_map(|(kind, [missing, found])| {
            let [not, yes] = [&missing, &found].map(List::count);
            let heading = format!("looked for {kind}: {yes} found, {not} not found");
            let lines: Vec<String> = missing.shown().chain(found.shown()).collect();
            std::iter::once(heading).chain(lines)
        });
        let lines = in_order(&std::mem::take(&mut *self.lock()));
        let lists = lists.map(|line| (Level::Note, line));
        lines.into_iter().chain(lists).collect()
    }

    /// The warnings so far, for answers that hold them; they stay to be printed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let lines = in_order(&self.lock()).into_iter();
        let warnings = lines.filter(|(level, _)| *level == Level::Warning);
        warnings.map(|(_, line)| line).collect()
    }

    /// Whether any warning was reported.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.lock()
            .iter()
            .any(|line| line.text().0 == Level::Warning)
    }

    /// A stage begins that has `total` steps (bytes, samples).
    pub fn begin(&self, stage: &'static str, total: u64) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// So many more steps of the stage are done; cheap enough for once a block.
    pub fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// The stage under way, and how far it is in per cent.
    pub fn progress(&self) -> (&'static str, u64) {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, total) = (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        );
        (stage, (done.saturating_mul(100) / total.max(1)).min(100))
    }

    fn add(&self, line: Line) {
        let is_note = matches!(
            line,
            Line::One(Level::Note, _) | Line::Beside(Level::Note, _)
        );
        if self.is_brief && is_note {
            return;
        }
        let mut lines = self.lock();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        // A thread that panicked while holding the lock left a whole list behind.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_order(lines: &[Line]) -> Vec<(Level, String)> {
    let (ordered, beside): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| matches!(line, Line::One(..)));
    let [ordered, mut beside] =
        [ordered, beside].map(|part| -> Vec<_> { part.into_iter().map(Line::text).collect() });
    beside.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
    ordered.into_iter().chain(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_threads_stand_in_one_order() {
        static WHAT: OfFiles = OfFiles {
            one: "is damaged",
            several: "are damaged",
            advice: "Mend it",
        };
        let said = |files: [&str; 2]| {
            let diag = Diagnostics::new();
            for file in files {
                diag.warn_beside(format!("{file}: not used"));
                diag.note_beside(format!("{file}: looked at"));
                diag.warn_of_file(&WHAT, file.to_owned());
            }
            diag.warn("z: cut");
            diag.warn("first: missing");
            assert_eq!(diag.warnings().len(), 5);
            let lines = diag.take().into_iter();
            lines.map(|(_, text)| text).collect::<Vec<_>>()
        };
        let lines = said(["b", "a"]);
        assert_eq!(lines, said(["a", "b"]));
        assert_eq!(lines[..2], ["z: cut", "first: missing"]);
    }

    #[test]
    fn files_with_the_same_trouble_share_a_line() {
        static WHAT: OfFiles = OfFiles {
            one: "is damaged",
            several: "are damaged",
            advice: "Mend them",
        };
        let said = |files: &[&str]| {
            let diag = Diagnostics::new();
            files
                .iter()
                .for_each(|file| diag.warn_of_file(&WHAT, (*file).to_owned()));
            assert!(diag.has_warnings());
            let lines = diag.take();
            assert_eq!(lines.len(), 1);
            lines[0].1.clone()
        };
        assert_eq!(said(&["a", "a"]), "a: is damaged. Mend them");
        assert_eq!(said(&["b", "a"]), "2 files are damaged: a, b. Mend them");
        let many = "4 files are damaged: a, b, c and 1 more. Mend them";
        assert_eq!(said(&["b", "a", "d", "c"]), many);
    }
}
