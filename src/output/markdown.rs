//! Pages as markdown, for comments on pull requests and for agents.
//!
//! Whatever a name contains stays text: no table ends by it, no link, no mention, no HTML begins.

use std::borrow::Cow;
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
        writeln!(out, "{before}{}{after}\n", self::line(line))?;
    }
    for part in &page.parts {
        match part {
            Part::Line { title, items } => {
                let items: Vec<String> = items.iter().map(|item| line(item)).collect();
                writeln!(out, "{title}: {}\n", items.join(" · "))?;
            }
            Part::Table(table) => write_table(table, out)?,
        }
    }
    page.foot
        .iter()
        .try_for_each(|text| writeln!(out, "{}\n", line(text)))
}

/// Writes one table, with its title above.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    // A sign that a line of text is a comment is none here.
    if !matches!(table.title.as_str(), "" | "#") {
        writeln!(out, "{}\n", line(&table.title))?;
    }
    if table.columns.is_empty() {
        return Ok(());
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
        let columns = table.columns.iter().map(|column| column.right);
        let cells = row.iter().zip(columns.chain(std::iter::repeat(false)));
        let cells: Vec<String> = cells
            .map(|(text, is_right)| match (text.trim(), is_right) {
                ("", _) => String::new(),
                (text, true) => cell(text),
                (text, false) => name(text),
            })
            .collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)
}

/// A line in which every word that markdown, HTML or a forge would act on stands as code. A forge makes links of mentions,
/// references, hashes and addresses after the markdown was read, so that no escape keeps them; in code it leaves them alone.
#[must_use]
pub fn line(text: &str) -> String {
    marked(text, false)
}

/// The same for a cell of a table.
#[must_use]
pub fn cell(text: &str) -> String {
    marked(text, true)
}

/// A cell that holds a name: code as a whole, for one look of all.
fn name(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '%' | '+' | '-' | ' ');
    if text.chars().all(is_number) {
        return cell(text);
    }
    code(&harmless(text), true)
}

fn marked(prose: &str, in_table: bool) -> String {
    let safe = harmless(prose);
    let mut out = String::with_capacity(safe.len() + 8);
    // Words that follow each other are one piece of code.
    let mut open: Option<String> = None;
    for word in safe.split(' ') {
        let looks = Look::of(word);
        if looks == Look::Code {
            match &mut open {
                Some(code) => {
                    code.push(' ');
                    code.push_str(word);
                }
                None => open = Some(word.to_owned()),
            }
            continue;
        }
        if let Some(text) = open.take() {
            push_code(&text, in_table, &mut out);
            out.push(' ');
        }
        match looks {
            Look::Signs => out.push_str(&escaped(word)),
            _ => out.push_str(word),
        }
        out.push(' ');
    }
    match open {
        Some(text) => push_code(&text, in_table, &mut out),
        None => drop(out.pop()),
    }
    out
}

/// Adds words as code, and the comma or colon behind them as text.
fn push_code(words: &str, in_table: bool, out: &mut String) {
    let bare = words.trim_end_matches([',', ':', ';']);
    out.push_str(&code(bare, in_table));
    out.push_str(&words[bare.len()..]);
}

/// What is done with a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Nothing acts on it.
    Plain,
    /// Only signs, which can be escaped.
    Signs,
    Code,
}

impl Look {
    fn of(word: &str) -> Self {
        if word.chars().all(|c| c.is_ascii_punctuation()) && !word.contains(['@', '`']) {
            return Self::Signs;
        }
        let bare = word.trim_start_matches('(');
        let bare = bare.trim_end_matches([')', ',', '.', ':', ';']);
        let is_calm =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '%' | '+' | '-' | '\'');
        let is_hash = bare.len() >= 7
            && bare.chars().all(|c| c.is_ascii_hexdigit())
            && bare.contains(|c: char| c.is_ascii_alphabetic());
        // `GH-1` and the like.
        let is_reference = |(at, _): (usize, &str)| {
            let (before, after) = (&bare[..at], &bare[at + 1..]);
            before.ends_with(|c: char| c.is_ascii_alphabetic())
                && after.starts_with(|c: char| c.is_ascii_digit())
        };
        let has_address = bare
            .get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case("www."));
        let acts = is_hash || has_address || bare.match_indices('-').any(is_reference);
        if bare.chars().all(is_calm) && !acts {
            Self::Plain
        } else {
            Self::Code
        }
    }
}

fn escaped(signs: &str) -> String {
    let mut text = String::with_capacity(2 * signs.len());
    for c in signs.chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '|' | '*' | '_' | '[' | ']' | '\\' | '~' | '#' | '!' | '$' => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text
}

/// A piece of code: its fence is longer than all runs of backticks in it.
fn code(text: &str, in_table: bool) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    let text = if in_table && text.contains('|') {
        // Readers do not agree on what a backslash in front of an escaped bar is.
        Cow::Owned(text.replace("\\|", "\\\\x7c").replace('|', "\\|"))
    } else {
        Cow::Borrowed(text)
    };
    format!("{fence}{blank}{text}{blank}{fence}")
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
        let expected =
            "Self\n\n| share | function |\n| ---: | --- |\n| 10% | ``a\\|b`<img>`\\x0a@x`` |\n\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn what_a_forge_would_link_is_code() {
        for (text, expected) in [
            (
                "total 1.26 -> 1.3 s, ratio 1.00",
                "total 1.26 -&gt; 1.3 s, ratio 1.00",
            ),
            (
                "see https://evil.example/fix now",
                "see `https://evil.example/fix` now",
            ),
            ("www.evil.example", "`www.evil.example`"),
            ("Www.evil.example,", "`Www.evil.example`,"),
            ("by @user and org/repo#1", "by `@user` and `org/repo#1`"),
            ("GH-1 or deadbee", "`GH-1` or `deadbee`"),
            ("+21% (-4, 17), 1234567 of", "+21% (-4, 17), 1234567 of"),
            ("a_b c*d e", "`a_b c*d` e"),
            ("x` y", "`` x` `` y"),
            ("a ``` b", "a ```` ``` ```` b"),
            ("<b> | é", "`<b>` \\| `é`"),
        ] {
            assert_eq!(line(text), expected);
        }
        assert_eq!(cell("operator|| x"), "`operator\\|\\|` x");
        assert_eq!(name("operator\\| x"), "`operator\\\\x7c x`");
        assert_eq!(name("main"), "`main`");
        assert_eq!(name("+0.5%"), "+0.5%");
    }
}
