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
    /// Takes the warnings that a document repeats.
    fn warn(&mut self, warnings: Vec<String>);

    /// A page for people.
    ///
    /// # Errors
    /// When the smallest one is larger than the budget.
    fn text(&self, budget: Budget) -> io::Result<Vec<u8>>;

    /// A page for comments on pull requests.
    ///
    /// # Errors
    /// When the smallest one is larger than the budget.
    fn markdown(&self, budget: Budget) -> io::Result<Vec<u8>>;

    /// A heading and the rows of a table.
    fn rows(&self) -> Vec<Vec<String>>;

    /// A document for programs with so many rows at most.
    fn json(&self, rows: usize) -> Value;
}

/// An answer whose text and Markdown are one page.
pub trait Paged {
    /// The page that keeps a number of lines.
    fn page(&self, lines: usize) -> Page;

    /// What a document says besides the answer.
    fn common(&mut self) -> &mut Common;

    /// A heading and the rows of a table.
    fn rows(&self) -> Vec<Vec<String>>;

    /// A document for programs with so many rows at most.
    fn json(&self, rows: usize) -> Value;
}

impl<P: Paged> Answer for P {
    fn warn(&mut self, warnings: Vec<String>) {
        self.common().warnings = warnings;
    }

    fn text(&self, budget: Budget) -> io::Result<Vec<u8>> {
        text(&|lines| self.page(lines), budget)
    }

    fn markdown(&self, budget: Budget) -> io::Result<Vec<u8>> {
        markdown(&|lines| self.page(lines), budget)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        Paged::rows(self)
    }

    fn json(&self, rows: usize) -> Value {
        Paged::json(self, rows)
    }
}

/// Writes an answer. Without a budget pages have 45 lines, documents 60 rows, and tables everything.
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
        Format::Json => {
            let budget = budget.unwrap_or(Budget::Lines(Budget::ROWS));
            json::write(&|rows| answer.json(rows), Some(budget), out)
        }
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
