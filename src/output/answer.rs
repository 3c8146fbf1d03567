//! Answers in all formats, within a budget.

use std::io::{self, Write};

use serde_json::Value;

use super::csv;
use super::json::{self, Common};
use super::markdown;
use super::page::{Page, write_text as page_as_text};
use super::within::within;
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
