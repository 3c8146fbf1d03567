//! The table of `pjit check`: a line for each finding, below it what would put it right.
//!
//! ```text
//! # pjit check: perf.data
//! # limits: complete >= 90%, resolved >= 90%, lost <= 5%, samples >= 30
//! ok    recording                  whole, 2866232 bytes of records
//! FAIL  stacks                     60.22% complete (112 of 186)
//! warn  stacks.short               39.78% are larger than the 4096 bytes recorded of them; …
//!                                  fix: perf record --call-graph dwarf,14336
//! not fit for conclusions: stacks
//! ```
//!
//! The first word is `ok`, `note`, `warn` or `FAIL`, the second one of a fixed list. Lines of fixes begin with a blank, comments with
//! `#`; the last line begins with `fit` or `not fit`.

use std::io::{self, Write};

use crate::check::{Level, Limits, Verdict};

use super::text::harmless;

/// Width of the first column and the blanks behind it.
const LEVELS: usize = 6;
/// Width of the second.
const CHECKS: usize = 27;

/// Writes the table. With `strict` warnings count against the recording.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(verdict: &Verdict, strict: bool, color: bool, out: &mut dyn Write) -> io::Result<()> {
    let limits = &verdict.limits;
    writeln!(out, "# pjit check: {}", harmless(&verdict.path))?;
    writeln!(
        out,
        "# limits: complete >= {}%, resolved >= {}%, lost <= {}%, samples >= {}",
        limits.min_complete.unwrap_or(Limits::MIN_COMPLETE),
        limits.min_resolved,
        limits.max_lost,
        limits.min_samples
    )?;
    for finding in &verdict.findings {
        let word = format!("{:<LEVELS$}", finding.level.word());
        let (on, off) = paint(finding.level, color);
        let (check, text) = (finding.check, harmless(&finding.text));
        writeln!(out, "{on}{word}{off}{check:<CHECKS$}{text}")?;
        for fix in &finding.fixes {
            writeln!(out, "{:1$}fix: {2}", "", LEVELS + CHECKS, harmless(fix))?;
        }
    }
    if verdict.is_fit(strict) {
        return writeln!(out, "fit for conclusions");
    }
    let mut failed: Vec<&str> = verdict.failed(strict).collect();
    failed.dedup();
    writeln!(out, "not fit for conclusions: {}", failed.join(", "))
}

/// Escape sequences before and behind the level.
const fn paint(level: Level, color: bool) -> (&'static str, &'static str) {
    match level {
        _ if !color => ("", ""),
        Level::Ok => ("\x1b[32m", "\x1b[m"),
        Level::Note => ("", ""),
        Level::Warn => ("\x1b[33m", "\x1b[m"),
        Level::Fail => ("\x1b[31m", "\x1b[m"),
    }
}
