//! As much as a budget allows.

use std::io;

use crate::questions::budget::Budget;

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
        let page = written(middle)?;
        if fits(&page) {
            (kept, low) = (page, middle);
        } else {
            high = middle;
        }
    }
    Ok(kept)
}
