//! What went wrong without stopping the run: one line per kind on stderr at the end.
//!
//! Every stage gets a `&Diagnostics` and reports into it; `main` prints. Lines are de-duplicated, so
//! a stage may report per file without counting for itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Collects warnings and, with `-v`, notes. Shared by all threads.
#[derive(Debug, Default)]
pub struct Diagnostics {
    lines: Mutex<Vec<(Level, String)>>,
    stage: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
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

    /// Says what is missing or damaged, what was done, and what would fix it; one line.
    pub fn warn(&self, line: impl Into<String>) {
        self.push(Level::Warning, line.into());
    }

    /// Says something that only matters with `-v`.
    pub fn note(&self, line: impl Into<String>) {
        self.push(Level::Note, line.into());
    }

    /// All lines in the order they were reported, each once.
    #[must_use]
    pub fn take(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut *self.lock())
    }

    /// The warnings so far, for answers that hold them; they stay to be printed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let lines = self.lock();
        let warnings = lines.iter().filter(|(level, _)| *level == Level::Warning);
        warnings.map(|(_, line)| line.clone()).collect()
    }

    /// Whether any warning was reported.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.lock()
            .iter()
            .any(|(level, _)| *level == Level::Warning)
    }

    /// A stage begins that has `total` steps (bytes, samples).
    pub fn begin(&self, stage: &'static str, total: u64) {
        *self
            .stage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = stage;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// So many more steps of the stage are done; cheap enough for once a block.
    pub fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// The stage under way, and how far it is in per cent.
    pub fn progress(&self) -> (&'static str, u64) {
        let stage = *self
            .stage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (done, total) = (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        );
        (stage, (done.saturating_mul(100) / total.max(1)).min(100))
    }

    fn push(&self, level: Level, line: String) {
        let mut lines = self.lock();
        if !lines.iter().any(|(l, text)| *l == level && *text == line) {
            lines.push((level, line));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Level, String)>> {
        // A thread that panicked while holding the lock left a whole list behind.
        self.lines
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
