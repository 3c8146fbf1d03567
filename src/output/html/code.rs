//! The code of functions in the page: what `pjit annotate` prints, as rows.
//!
//! In: blocks of the code view, and the functions of the tree. Out: rows for those functions, the heaviest first, up to a size that
//! does not make the page slow. Functions are told by name and object, as the tree tells them.

use std::collections::HashMap;
use std::fmt::Write;

use crate::assembly::Functions;
use crate::code::{Block, Line};
use crate::flame::{Flame, Kind, shown};
use crate::output::columns::{list, text};

/// Text that goes into a page.
const MOST_BYTES: usize = 1 << 20;
/// Of one line; compilers' are shorter.
const LONGEST: usize = 400;

/// The code of a function of the tree, or of one of its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCode {
    /// Index into [`Flame::functions`].
    function: usize,
    /// File and samples.
    title: String,
    rows: Vec<Row>,
}

/// A line of source or an instruction.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// Share of the function's own weight.
    percent: f64,
    /// Address, or number of the line.
    place: String,
    text: String,
    is_code: bool,
}

/// The code of the tree's functions; `blocks` are in the order in which they are wanted, each with its number in `functions`.
#[must_use]
pub fn codes(
    flame: &Flame,
    functions: &Functions,
    blocks: &[(usize, Block<'_>)],
) -> Vec<FunctionCode> {
    let numbers: HashMap<(&str, &str), usize> = flame
        .functions
        .iter()
        .enumerate()
        .filter(|(_, function)| !matches!(function.kind, Kind::Comm | Kind::Inlined))
        .filter_map(|(number, function)| {
            let object = flame.objects.get(function.object?)?;
            let names = function.raw.iter().chain([&function.name]);
            Some(names.map(move |name| ((name.as_str(), object.as_str()), number)))
        })
        .flatten()
        .collect();
    let mut left = MOST_BYTES;
    let mut found = Vec::new();
    for (number, block) in blocks {
        let own = &functions.all[*number];
        let (name, object) = (shown(&own.name), shown(&own.object));
        let Some(&function) = numbers.get(&(&*name, &*object)) else {
            continue;
        };
        let code = FunctionCode::of(function, block);
        let Some(rest) = left.checked_sub(code.size()) else {
            continue;
        };
        left = rest;
        found.push(code);
    }
    found
}

impl FunctionCode {
    fn of(function: usize, block: &Block<'_>) -> Self {
        let samples = block.samples;
        let noun = if samples == 1 { "sample" } else { "samples" };
        Self {
            function,
            title: format!(
                "{}, {samples} {noun} of {}",
                shown(block.file),
                shown(block.event)
            ),
            rows: block.lines.iter().filter_map(Row::of).collect(),
        }
    }

    /// Bytes of text, about.
    fn size(&self) -> usize {
        let of = |row: &Row| row.text.len() + row.place.len() + 16;
        self.rows.iter().map(of).sum()
    }

    /// As the page reads it.
    pub(super) fn push(&self, json: &mut String) {
        let _ = write!(json, "{{\"fn\":{},\"title\":", self.function);
        text(&self.title, json);
        json.push_str(",\"lines\":");
        list(json, &self.rows, |row, json| {
            let _ = write!(json, "[{},", (row.percent * 100.0).round() / 100.0);
            text(&row.place, json);
            json.push(',');
            text(&row.text, json);
            json.push_str(if row.is_code { ",1]" } else { ",0]" });
        });
        json.push('}');
    }
}

impl Row {
    fn of(line: &Line<'_>) -> Option<Self> {
        let harmless = |text: &str| {
            let text = text.replace('\t', "    ");
            let end = text
                .char_indices()
                .nth(LONGEST)
                .map_or(text.len(), |at| at.0);
            shown(&text[..end]).into_owned()
        };
        match line {
            Line::Text { text, .. } if text.is_empty() || is_heading(text) => None,
            Line::Text { number, text } => Some(Self {
                percent: 0.0,
                place: number.map_or_else(String::new, |number| number.to_string()),
                text: harmless(text),
                is_code: false,
            }),
            Line::Code {
                values,
                address,
                text,
                ..
            } => Some(Self {
                percent: values.first().map_or(0.0, |value| value.percent),
                place: format!("{address:x}"),
                text: harmless(text),
                is_code: true,
            }),
        }
    }
}

/// Whether it is what objdump puts before a function: the page has its own title.
fn is_heading(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let address = text.split(' ').next().unwrap_or_default();
    text.starts_with("Disassembly of section ")
        || text.ends_with(">:") && address.len() == 16 && address.chars().all(is_digit)
}
