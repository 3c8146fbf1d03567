//! Answers in all formats, within a budget.

use std::io::{self, Write};

use serde_json::Value;

use super::csv;
use super::json::{self, Common};
use super::markdown;
use super::page::{Page, write_text as page_as_text};
use crate::questions::budget::Budget;

/// Formats of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For comments on pull requests.
    Markdown,
    /// For programs; `docs/schema` describes it.
    Json,
    /// One table, for spreadsheets.
    Csv,
}

/// An answer that can be had in all formats.
pub trait Answer {
    /// What it says besides what it answers.
    fn common(&mut self) -> &mut Common;

    /// A page for people.
    ///
    /// # Errors
    /// When the smallest one is larger than the budget.
    fn text(&self, budget: Budget) -> io::Result<Vec<u8>>;

    /// The same for comments on pull requests.
    ///
    /// # Errors
    /// When the smallest one is larger than the budget.
    fn markdown(&self, budget: Budget) -> io::Result<Vec<u8>>;

    /// A heading and the rows of a table.
    fn rows(&self) -> Vec<Vec<String>>;

    /// A document for programs with so many rows at most.
    fn json(&self, rows: usize) -> Value;
}

/// Writes an answer. Without a budget pages have 60 lines, and tables and documents everything.
///
/// # Errors
/// When `out` cannot be written, or the smallest answer is larger than the budget.
pub fn write(
    answer: &dyn Answer,
    format: Format,
    budget: Option<Budget>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => out.write_all(&answer.text(budget.unwrap_or_default())?),
        Format::Markdown => out.write_all(&answer.markdown(budget.unwrap_or_default())?),
        Format::Csv => csv::write(&answer.rows(), budget, out),
        Format::Json => json::write(&|rows| answer.json(rows), budget, out),
    }
}

/// A page as text; `page` makes one that keeps a number of lines.
///
/// # Errors
/// When the smallest page is larger than the budget.
pub fn text(page: &dyn Fn(usize) -> Page, budget: Budget) -> io::Result<Vec<u8>> {
    let written = |lines: usize| {
        let mut text = Vec::new();
        page_as_text(&page(lines), &mut text).map(|()| text)
    };
    within(&written, budget)
}

/// A page as Markdown, which needs more lines for the same rows: the budget is kept all the same.
///
/// # Errors
/// When the smallest page is larger than the budget.
pub fn markdown(page: &dyn Fn(usize) -> Page, budget: Budget) -> io::Result<Vec<u8>> {
    let written = |lines: usize| {
        let mut text = Vec::new();
        markdown::write(&page(lines), &mut text).map(|()| text)
    };
    within(&written, budget)
}

/// The page of most lines that keeps the budget.
///
/// # Errors
/// When none does.
pub fn within(
    written: &dyn Fn(usize) -> io::Result<Vec<u8>>,
    budget: Budget,
) -> io::Result<Vec<u8>> {
    let fits = |text: &[u8]| match budget {
        Budget::Lines(lines) => memchr::memchr_iter(b'\n', text).count() <= lines,
        Budget::Characters(most) => String::from_utf8_lossy(text).chars().count() <= most,
    };
    let most = match budget {
        Budget::Lines(lines) => lines,
        // A line has a character at least.
        Budget::Characters(characters) => characters.min(Budget::MAX_LINES),
    };
    let text = written(most)?;
    if fits(&text) {
        return Ok(text);
    }
    let smallest = written(0)?;
    if !fits(&smallest) {
        let (lines, characters) = (
            memchr::memchr_iter(b'\n', &smallest).count(),
            String::from_utf8_lossy(&smallest).chars().count(),
        );
        let problem =
            format!("--budget: the smallest page has {lines} lines and {characters} characters");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    // A page with more lines is never smaller.
    let (mut kept, mut low, mut high) = (smallest, 0, most);
    while low + 1 < high {
        let middle = low.midpoint(high);
        let text = written(middle)?;
        if fits(&text) {
            (kept, low) = (text, middle);
        } else {
            high = middle;
        }
    }
    Ok(kept)
}
