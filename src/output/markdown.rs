//! Pages as markdown, for comments on pull requests and for agents.
//!
//! Whatever a name contains stays text: no table ends by it, no code, no link, no mention, no HTML begins.

use std::io::{self, Write};

use super::page::{Page, Part, Table};
use super::text::harmless;

/// Writes the page.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    for (at, line) in page.head.iter().enumerate() {
        let (before, after) = if at == 0 { ("**", "**") } else { ("", "") };
        writeln!(out, "{before}{}{after}\n", escape(line))?;
    }
    for part in &page.parts {
        match part {
            Part::Line { title, items } => {
                let items: Vec<String> = items.iter().map(|item| escape(item)).collect();
                writeln!(out, "{title}: {}\n", items.join(" · "))?;
            }
            Part::Table(table) => write_table(table, out)?,
        }
    }
    page.foot
        .iter()
        .try_for_each(|line| writeln!(out, "{}\n", escape(line)))
}

/// Writes one table, with its title above.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    // A sign that a line of text is a comment is none here.
    if !matches!(table.title.as_str(), "" | "#") {
        writeln!(out, "{}\n", escape(&table.title))?;
    }
    let heads: Vec<&str> = table.columns.iter().map(|column| column.head).collect();
    writeln!(out, "| {} |", heads.join(" | "))?;
    let bars: Vec<&str> = table
        .columns
        .iter()
        .map(|c| if c.right { "---:" } else { "---" })
        .collect();
    writeln!(out, "| {} |", bars.join(" | "))?;
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escape(cell.trim())).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)
}

/// The text with everything that markdown or HTML would act on behind a backslash or as an entity.
#[must_use]
pub fn escape(text: &str) -> String {
    let safe = harmless(text);
    let mut escaped = String::with_capacity(safe.len() + 8);
    for c in safe.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // A mention of a user or an issue, a link without brackets.
            '@' => escaped.push_str("&#64;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' | '#' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::page::Column;

    #[test]
    fn names_cannot_leave_their_cell() {
        let table = Table {
            name: "self",
            title: "Self".to_owned(),
            columns: vec![Column::right("share"), Column::left("function")],
            rows: vec![vec![" 10%".to_owned(), "a|b`<img>`\n@x".to_owned()]],
        };
        let mut out = Vec::new();
        write_table(&table, &mut out).expect("a vector takes everything");
        let expected = "Self\n\n| share | function |\n| ---: | --- |\n| 10% | a\\|b\\`&lt;img&gt;\\`\\\\x0a&#64;x |\n\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
