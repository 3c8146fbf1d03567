//! Tables as CSV (RFC 4180), with a heading, for spreadsheets and scripts.
//!
//! No name becomes a formula: a cell, or a frame of a stack, that begins like one gets a `'` in front, as spreadsheets have it.

use std::borrow::Cow;
use std::io::{self, Write};

use super::text::harmless;
use super::within::within;
use crate::questions::budget::Budget;

/// Writes a line of cells.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_row<S: AsRef<str>>(cells: &[S], out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|cell| cell_text(cell.as_ref())).collect();
    writeln!(out, "{}", cells.join(","))
}

/// Writes a heading and rows, as many as the budget has lines.
///
/// # Errors
/// When `out` cannot be written, or the budget is smaller than the heading.
pub fn write(rows: &[Vec<String>], budget: Option<Budget>, out: &mut dyn Write) -> io::Result<()> {
    let written = |lines: usize| {
        let mut text = Vec::new();
        let mut rows = rows.iter().take(lines.max(1));
        rows.try_for_each(|row| write_row(row, &mut text))
            .map(|()| text)
    };
    let budget = budget.unwrap_or(Budget::Lines(Budget::MAX_LINES));
    out.write_all(&within(&written, budget)?)
}

fn mark(text: &str) -> &'static str {
    if text.starts_with(FORMULA) { "'" } else { "" }
}

/// What formulas begin with.
const FORMULA: [char; 4] = ['=', '+', '-', '@'];

/// The frames of a stack marked each: where lists have semicolons between them, spreadsheets make a cell of each.
fn behind_semicolons(text: Cow<'_, str>) -> Cow<'_, str> {
    let acts = |(at, _): (usize, &str)| text[at + 1..].starts_with(FORMULA);
    if !text.match_indices(';').any(acts) {
        return text;
    }
    let parts = text.split(';').enumerate();
    let marked = parts.map(|(at, part)| match at {
        0 => part.to_owned(),
        _ => format!(";{}{part}", mark(part)),
    });
    Cow::Owned(marked.collect())
}

/// A cell as it stands in the file.
pub(super) fn cell_text(cell: &str) -> String {
    let safe = harmless(cell);
    let is_number = cell.parse::<f64>().is_ok();
    let (mark, safe) = if is_number {
        ("", safe)
    } else {
        (mark(&safe), behind_semicolons(safe))
    };
    if safe.contains([',', '"']) || safe.starts_with(' ') || safe.ends_with(' ') {
        format!("\"{mark}{}\"", safe.replace('"', "\"\""))
    } else {
        format!("{mark}{safe}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        let mut out = Vec::new();
        let cells = ["a,b", "=cmd()", "-1.5", "\"q\"", "x\ny", "@f"];
        write_row(&cells, &mut out).expect("a vector takes everything");
        let expected = "\"a,b\",'=cmd(),-1.5,\"\"\"q\"\"\",x\\x0ay,'@f\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert_eq!(cell_text("main;=f(1)"), "main;'=f(1)");
        assert_eq!(cell_text("-a;b;@c;d, e"), "\"'-a;b;'@c;d, e\"");
    }
}
