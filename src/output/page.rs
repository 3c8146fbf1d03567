//! Pages of small tables, which each format writes in its way: text, markdown, CSV.
//!
//! In: cells with names as the recording has them. Out: text in which they are harmless. What is in the tables is the business of
//! the views.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::text::harmless;
use crate::flame::without_arguments;

/// A page: comments, tables, comments.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Lines before everything, without the `#`.
    pub head: Vec<String>,
    /// Tables and single lines.
    pub parts: Vec<Part>,
    /// Lines behind everything, without the `#`.
    pub foot: Vec<String>,
}

/// One thing on a page.
#[derive(Debug, Clone)]
pub enum Part {
    /// A title and some items on one line.
    Line {
        /// What the items are.
        title: String,
        /// The items.
        items: Vec<String>,
    },
    /// A table.
    Table(Table),
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// By which `--table` takes it.
    pub name: &'static str,
    /// In front of the first column's heading.
    pub title: String,
    /// What columns are called, and how they stand.
    pub columns: Vec<Column>,
    /// Cells by row.
    pub rows: Vec<Vec<String>>,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Heading; empty for none.
    pub head: &'static str,
    /// Whether cells stand at the right.
    pub right: bool,
}

impl Column {
    /// Cells at the left.
    #[must_use]
    pub const fn left(head: &'static str) -> Self {
        Self { head, right: false }
    }

    /// Cells at the right.
    #[must_use]
    pub const fn right(head: &'static str) -> Self {
        Self { head, right: true }
    }
}

/// Stands for what was cut.
const CUT: &str = "...";

/// Cuts a name: its argument list first, then the middle, so that both ends can be read.
#[must_use]
pub fn cut(name: &str, columns: usize) -> String {
    if name.chars().count() <= columns {
        return name.to_owned();
    }
    cut_in_the_middle(&bare(name), columns)
}

/// A name without its argument list.
fn bare(name: &str) -> Cow<'_, str> {
    // Of a name that was cut before, brackets may have lost their other half.
    if name.contains(CUT) {
        return name.into();
    }
    // The method is in front of the list, and its class in front of that.
    let mut front = without_arguments(name);
    // `  (anonymous) file.js:1`, behind the blanks of a table, begins with a word in brackets.
    if front.trim().is_empty() {
        return name.into();
    }
    let operator = front.len() + "()".len();
    if front.ends_with("operator") && name[front.len()..].starts_with("()") {
        front = &name[..operator];
    }
    let mut depth = 0_i32;
    let end = name[front.len()..].find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ')' && depth == 0
    });
    let end = end.filter(|_| name[front.len()..].starts_with('('));
    let behind = end.map_or("", |at| &name[front.len() + at + 1..]);
    // `Java, interpreted (no names)`
    format!("{front}{behind}").trim_end().to_owned().into()
}

/// The same of the names of a table: those that would read the same keep where they differ.
#[must_use]
pub fn cut_apart(names: &[&str], columns: usize) -> Vec<String> {
    cut_apart_as(names, columns, |name| cut(name, columns))
}

/// Names as `cut` makes them, and those that would read the same otherwise.
pub(super) fn cut_apart_as(
    names: &[&str],
    columns: usize,
    cut: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut texts: Vec<String> = names.iter().map(|name| cut(name)).collect();
    let mut kept: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    // Each place takes some columns.
    for _ in 0..columns / 8 {
        let mut groups: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for (at, text) in texts.iter().enumerate() {
            // `f` is no overload of several.
            for read in [text.as_str(), &bare(text)] {
                groups.entry(read.to_owned()).or_default().insert(at);
            }
        }
        let mut is_done = true;
        for (text, group) in groups {
            let Some(shortened) = group
                .iter()
                .find(|at| texts[**at] == text && names[**at] != text)
            else {
                continue;
            };
            let first = names[*shortened];
            let others = group.iter().map(|at| names[*at]);
            let others = others.filter(|name| *name != first);
            let Some(place) = others.map(|name| same(first, name)).min() else {
                continue;
            };
            is_done = false;
            for at in group {
                kept[at].push(place);
                texts[at] = cut_around(names[at], &kept[at], columns);
            }
        }
        if is_done {
            break;
        }
    }
    texts
}

/// Characters with which both begin.
fn same(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Cuts between the ends and these places, and keeps as much around each.
fn cut_around(name: &str, places: &[usize], columns: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= columns {
        return name.to_owned();
    }
    let last = chars.len() - 1;
    let mut is_kept = vec![false; chars.len()];
    let places = places.iter().map(|at| (*at).min(last));
    places.chain([0, last]).for_each(|at| is_kept[at] = true);
    let mut text = without(&chars, &is_kept);
    loop {
        let is_beside = |at: &usize| {
            let (before, after) = (at.checked_sub(1), at + 1);
            let is_next = |neighbour: usize| is_kept.get(neighbour) == Some(&true);
            !is_kept[*at] && (before.is_some_and(is_next) || is_next(after))
        };
        let beside: Vec<usize> = (0..chars.len()).filter(is_beside).collect();
        for at in beside {
            is_kept[at] = true;
            let more = without(&chars, &is_kept);
            if more.chars().count() > columns {
                return text;
            }
            text = more;
        }
    }
}

/// Characters without those that are not kept; gaps that are no longer than their sign stay.
fn without(chars: &[char], is_kept: &[bool]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for run in is_kept.chunk_by(|a, b| a == b) {
        if run[0] || run.len() <= CUT.len() {
            text.extend(&chars[at..at + run.len()]);
        } else {
            text.push_str(CUT);
        }
        at += run.len();
    }
    text
}

fn cut_in_the_middle(name: &str, columns: usize) -> String {
    let count = name.chars().count();
    if count <= columns || columns < 8 {
        return name.to_owned();
    }
    let tail = (columns - 3) / 2;
    let head = columns - 3 - tail;
    let mut text: String = name.chars().take(head).collect();
    text.push_str(CUT);
    text.extend(name.chars().skip(count - tail));
    text
}

/// Columns of a terminal's line that nobody has made wider.
pub const COLUMNS: usize = 80;

/// A line as several of so many columns, cut at blanks; a longer word is cut in its middle.
#[must_use]
pub fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let word = cut_in_the_middle(word, columns - 2);
        let last = lines.last_mut().expect("there is one");
        let used = last.chars().count();
        if used == 0 || used + 1 + word.chars().count() <= columns {
            if used > 0 || !last.is_empty() {
                last.push(' ');
            }
            last.push_str(&word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

impl Table {
    /// Cuts names in these columns, each to `most` and then the longest first, until the table has no more columns than that.
    #[must_use]
    pub fn fitted(mut self, columns: usize, names: &[usize], most: usize) -> Self {
        /// Less of a name says nothing.
        const LEAST: usize = 16;
        let is_titled = self.columns.iter().any(|column| !column.head.is_empty());
        let column = |at: &usize| self.rows.iter().map(|row| row[*at].clone()).collect();
        let uncut: Vec<Vec<String>> = names.iter().map(column).collect();
        let first = |cell: &str| {
            let blanks = cell.len() - cell.trim_start().len();
            cut(cell, most.saturating_add(blanks))
        };
        for row in &mut self.rows {
            names.iter().for_each(|at| row[*at] = first(&row[*at]));
        }
        let head = |at: usize| {
            let title = if at == 0 && is_titled {
                self.title.chars().count() + 2
            } else {
                0
            };
            title + self.columns[at].head.len()
        };
        let rows = &self.rows;
        let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at));
        let longest = |at: usize| {
            cells(at)
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|at| longest(at).max(head(at)))
            .collect();
        let room = columns.saturating_sub(2 * widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let widest = names.iter().copied().max_by_key(|at| widths[*at]);
            let Some(widest) = widest.filter(|at| widths[*at] > LEAST) else {
                break;
            };
            widths[widest] -= 1;
        }
        for (at, whole) in names.iter().zip(&uncut) {
            let width = widths[*at];
            let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
            let texts = cut_apart_as(&whole, width, |name| cut(&first(name), width));
            for (row, text) in self.rows.iter_mut().zip(texts) {
                row[*at] = text;
            }
        }
        self
    }
}

/// Writes the page for people.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_text(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    comments(&page.head, out)?;
    let titles = page.parts.iter().filter_map(|part| match part {
        Part::Line { title, .. } => Some(harmless(title).chars().count()),
        Part::Table(_) => None,
    });
    let width = titles.max().unwrap_or(0);
    for part in &page.parts {
        match part {
            Part::Line { title, items } => {
                let items: Vec<_> = items.iter().map(|item| harmless(item)).collect();
                let title = harmless(title);
                writeln!(out, "{title:width$}  {}", items.join("  "))?;
            }
            Part::Table(table) => text_table(table, out)?,
        }
    }
    comments(&page.foot, out)
}

fn comments(lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "# {}", harmless(line)))
}

fn has_heading(table: &Table) -> bool {
    !table.title.is_empty() || table.columns.iter().any(|column| !column.head.is_empty())
}

fn text_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let is_titled = table.columns.iter().any(|column| !column.head.is_empty());
    let mut heads: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.head.to_owned())
        .collect();
    if let Some(first) = heads
        .first_mut()
        .filter(|_| is_titled && !table.title.is_empty())
    {
        *first = match first.as_str() {
            "" => table.title.clone(),
            head => format!("{}  {head}", table.title),
        };
    }
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| harmless(cell).into_owned()).collect())
        .collect();
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let cells = cells.chain(heads.get(at).filter(|_| is_titled));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    if is_titled {
        text_row(&heads, &table.columns, &widths, out)?;
    } else if has_heading(table) {
        writeln!(out, "{}", harmless(&table.title))?;
    }
    rows.iter()
        .try_for_each(|row| text_row(row, &table.columns, &widths, out))
}

fn text_row(
    cells: &[String],
    columns: &[Column],
    widths: &[usize],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = String::new();
    for (at, (cell, column)) in cells.iter().zip(columns).enumerate() {
        if at > 0 {
            line.push_str("  ");
        }
        let blanks = " ".repeat(widths[at].saturating_sub(cell.chars().count()));
        if column.right {
            line.push_str(&blanks);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            line.push_str(&blanks);
        }
    }
    writeln!(out, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_and_names_harmless() {
        let page = Page {
            head: vec!["pjit".to_owned()],
            parts: vec![
                Part::Line {
                    title: "CPU".to_owned(),
                    items: vec!["own 1%".to_owned(), "b 2%".to_owned()],
                },
                Part::Table(Table {
                    name: "self",
                    title: "Self".to_owned(),
                    columns: vec![
                        Column::right("share"),
                        Column::left("function"),
                        Column::left("in"),
                    ],
                    rows: vec![
                        vec!["10.0%".to_owned(), "a\x1b[m".to_owned(), "x".to_owned()],
                        vec!["5.0%".to_owned(), "+1 functions".to_owned(), String::new()],
                    ],
                }),
            ],
            foot: Vec::new(),
        };
        let mut out = Vec::new();
        write_text(&page, &mut out).expect("a vector takes everything");
        let expected = "# pjit\nCPU  own 1%  b 2%\nSelf  share  function      in\n      10.0%  a\\x1b[m       x\n       5.0%  +1 functions\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn long_names_keep_what_tells_them_apart() {
        let closure = |at: u8| {
            format!(
                "<serde_json::de::Deserializer>::parse::{{closure#{at}}}::{{closure#0}} as core::FnOnce>::call_once"
            )
        };
        let overload =
            |of: &str| format!("app::tables::Table::insert_all({of}, std::string const&)");
        let names = [
            closure(0),
            closure(1),
            overload("int"),
            overload("long"),
            "app::tables::Table::insert_all".to_owned(),
            "a::name::that::is::as::long::as::they::are::and::is::alone".to_owned(),
        ];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for columns in [16, 30, 44, 52] {
            let texts = cut_apart(&names, columns);
            assert!(
                texts.iter().all(|text| text.chars().count() <= columns),
                "{texts:?}"
            );
            let told: BTreeSet<&String> = texts.iter().collect();
            assert_eq!(told.len(), names.len(), "{texts:?}");
            assert_eq!(texts[5], cut(names[5], columns));
            // What is printed finds its row, and no other one.
            for (text, name) in texts.iter().zip(&names) {
                let query = crate::runtimes::query::Query::of(text);
                let has = |name: &&&str| {
                    let clean = crate::runtimes::CleanName::plain(name);
                    query.fit_printed(&clean, &Default::default()).is_some() || *text == **name
                };
                assert!(names.iter().filter(has).eq([name]), "{text}");
            }
        }
        assert_eq!(
            cut_apart(&names[..2], 40),
            [
                "<serde_js...closure#0}::{clos...all_once",
                "<serde_js...closure#1}::{clos...all_once"
            ]
        );
        // Two places of one name.
        let of = |a: char, b: char| {
            format!(
                "{}{a}{}{b}{}",
                "x".repeat(30),
                "y".repeat(30),
                "z".repeat(30)
            )
        };
        let names = [of('1', 'a'), of('1', 'b'), of('2', 'a'), of('2', 'b')];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut texts = cut_apart(&names, 40);
        texts.dedup();
        assert_eq!(texts.len(), 4, "{texts:?}");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut("abcdefghijklmnop", 11), "abcd...mnop");
        assert_eq!(cut("äbc", 8), "äbc");
        assert_eq!(cut("void a.b.Cd.run(a.b.Ef, a.b.G)", 15), "void a.b.Cd.run");
        assert_eq!(
            cut("f::g(a, (b)) const 57%, h 3%", 22),
            "f::g const 57%, h 3%"
        );
        assert_eq!(cut("f((((((((((((", 10), "f");
        assert_eq!(cut("Java, interpreted (no names)", 20), "Java, interpreted");
        assert_eq!(cut("(anonymous) abcdefgh.js:1", 20), "(anonymou...fgh.js:1");
        assert_eq!(
            cut("  (anonymous) abcdefgh.js:1", 20),
            "  (anonym...fgh.js:1"
        );
        assert_eq!(
            cut("Abcdef::operator()(int, long)", 20),
            "Abcdef::operator()"
        );
        assert_eq!(cut("Abcdefghijkl::operator()", 20), "Abcdefghi...erator()");
        let lambda = "Tmpl<unsigned>::run(unsigned)::{lambda(unsigned)#1}::operator()";
        for (once, twice) in [(60, 30), (44, 36), (50, 26)] {
            let cut_twice = cut(&cut(lambda, once), twice);
            assert!(
                cut_twice.contains(CUT) && cut_twice.ends_with("operator()"),
                "{cut_twice}"
            );
        }
    }
}
