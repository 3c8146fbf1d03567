//! Writes pages within a budget.

use std::io::{self, Write};

use super::markdown;
use super::page::{Page, write_text as page_as_text};
use crate::questions::budget::Budget;

/// Writes the page as text; `page` makes one that keeps a number of lines.
///
/// # Errors
/// When `out` cannot be written, or the smallest page is larger than the budget.
pub fn write_text(
    page: &dyn Fn(usize) -> Page,
    budget: Budget,
    out: &mut dyn Write,
) -> io::Result<()> {
    let written = |lines: usize| {
        let mut text = Vec::new();
        page_as_text(&page(lines), &mut text).map(|()| text)
    };
    out.write_all(&within(&written, budget)?)
}

/// The same as markdown, which needs more lines for the same rows: the budget is kept all the same.
///
/// # Errors
/// As [`write_text`].
pub fn write_markdown(
    page: &dyn Fn(usize) -> Page,
    budget: Budget,
    out: &mut dyn Write,
) -> io::Result<()> {
    let written = |lines: usize| {
        let mut text = Vec::new();
        markdown::write(&page(lines), &mut text).map(|()| text)
    };
    out.write_all(&within(&written, budget)?)
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
