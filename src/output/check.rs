//! The table of `pjit check`: a line for each finding, below it what would put it right.
//!
//! ```text
//! # pjit check: perf.data
//! # limits: complete >= 90%, resolved >= 90%, lost <= 5%, samples >= 30
//! ok    recording                  whole, 2866232 bytes of records
//! FAIL  stacks                     60.22% complete (112 of 186)
//! warn  stacks.short               39.78% are larger than the 4096 bytes recorded of them; …
//!                                  fix: pjit record --call-graph dwarf,14336
//! not fit for conclusions: stacks
//! ```
//!
//! The first word is `ok`, `note`, `warn` or `FAIL`, the second one of a fixed list. Lines of fixes begin with a blank, comments with
//! `#`; the last line begins with `fit` or `not fit`.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::check::{Finding, Level, Limits, Verdict};

use super::json::{SCHEMA, number};
use super::page::{Column, Page, Part, Table};
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

/// The same as JSON, with so many findings; those that speak against the recording come first when there are fewer.
#[must_use]
pub fn to_json(verdict: &Verdict, strict: bool, rows: usize) -> Value {
    let Verdict {
        limits, numbers, ..
    } = verdict;
    let share = |percent: f64| number(percent / 100.0);
    let findings = chosen(verdict, rows).into_iter().map(|finding| {
        json!({
            "level": finding.level.word(),
            "check": finding.check,
            "text": finding.text,
            "fixes": finding.fixes,
        })
    });
    let files = verdict.files.iter().take(rows).map(|file| {
        json!({
            "path": file.path,
            "evidence": file.evidence,
            "samples": file.samples,
        })
    });
    json!({
        "schema": SCHEMA,
        "verb": "check",
        "version": env!("CARGO_PKG_VERSION"),
        "path": verdict.path,
        "fit": verdict.is_fit(strict),
        "samples": numbers.samples,
        "lost": numbers.lost,
        "complete": numbers.complete.map(number),
        "named": numbers.named.map(number),
        "advised_stack_size": numbers.advised_stack_size,
        "advised_call_graph": numbers.advises_copies.then_some("dwarf"),
        "advised_no_z": numbers.advises_no_z,
        "limits": {
            "complete": share(limits.min_complete.unwrap_or(Limits::MIN_COMPLETE)),
            "named": share(limits.min_resolved),
            "lost": share(limits.max_lost),
            "samples": limits.min_samples,
        },
        "findings": findings.collect::<Value>(),
        "files": files.collect::<Value>(),
    })
}

fn chosen(verdict: &Verdict, rows: usize) -> Vec<&Finding> {
    let mut findings: Vec<&Finding> = verdict.findings.iter().collect();
    if findings.len() > rows {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        findings.truncate(rows);
    }
    findings
}

/// The table for markdown, in so many lines.
#[must_use]
pub fn page(verdict: &Verdict, strict: bool, lines: usize) -> Page {
    let word = if verdict.is_fit(strict) {
        "fit"
    } else {
        "not fit"
    };
    let findings = chosen(verdict, lines.saturating_sub(3));
    let hidden = verdict.findings.len() - findings.len();
    let mut rows: Vec<Vec<String>> = findings
        .into_iter()
        .map(|finding| {
            let (level, check) = (finding.level.word().to_owned(), finding.check.to_owned());
            vec![level, check, finding.text.clone(), finding.fixes.join("; ")]
        })
        .collect();
    if hidden > 0 {
        let more = format!("+{hidden} findings");
        rows.push(vec![String::new(), String::new(), more, String::new()]);
    }
    Page {
        head: vec![format!(
            "pjit check: {} is {word} for conclusions",
            verdict.path
        )],
        parts: vec![Part::Table(Table {
            name: "findings",
            title: String::new(),
            columns: ["", "check", "found", "fix"].map(Column::left).to_vec(),
            rows,
        })],
        foot: Vec::new(),
    }
}

/// The findings as rows of CSV.
#[must_use]
pub fn csv_rows(verdict: &Verdict) -> Vec<Vec<String>> {
    let mut rows = vec![
        ["level", "check", "text", "fixes"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(verdict.findings.iter().map(|finding| {
        let (level, check) = (finding.level.word().to_owned(), finding.check.to_owned());
        vec![level, check, finding.text.clone(), finding.fixes.join("; ")]
    }));
    rows
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
