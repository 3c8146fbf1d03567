//! The page of `pjit list`: source lines of functions with what they weigh, and the same as JSON and CSV.
//!
//! In: lines of functions, and the texts of their files where those are at hand. Out: a page that keeps a budget: where there is
//! no room for all lines with samples, the heaviest are left.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::json;
use super::page::{Column, Page, Part, Table};
use super::summary::Head;
use crate::assembly::Source;
use crate::functions::tally::{Count, Tally};
use crate::functions::{FunctionId, Functions};
use crate::ids::Idx;
use crate::questions::facts::Facts;
use crate::questions::list::{File, Line, Listed};
use crate::report::percent;
use crate::runtimes::{Producer, Tier};

/// Lines without samples between two with some that are shown; more of them are one row.
const GAP: u32 = 6;
/// Per cent of a function in code between two lines from which on it is told.
const NEAR: f64 = 10.0;
/// Characters of a line of source that are shown: a script may be one line.
const LONGEST: usize = 400;
/// Blanks in place of a tab.
const TAB: &str = "    ";

/// The answer of `pjit list`.
pub struct List<'p> {
    /// What the first lines say.
    pub facts: &'p Facts,
    /// All functions.
    pub functions: &'p Functions,
    /// Their names in tables.
    pub labels: &'p [String],
    /// Functions whose code is another one's, too: what both are called.
    pub shared: &'p BTreeMap<FunctionId, (String, String)>,
    /// Their numbers.
    pub tally: &'p Tally,
    /// What was asked for, the heaviest first.
    pub listed: &'p [Listed],
    /// Matches that were not looked at, since there are too many.
    pub more: usize,
    /// Texts of files by their paths.
    pub texts: &'p FxHashMap<String, Source>,
    /// Paths of files that are there, but are not what ran.
    pub others: &'p FxHashSet<String>,
    /// The line about quality.
    pub quality: &'p str,
    /// The line about filters.
    pub filter: Option<String>,
}

/// Makes the page of so many lines at most.
#[must_use]
pub fn page(list: &List<'_>, lines: usize) -> Page {
    let head = Head {
        facts: list.facts,
        verb: "list",
        counts: [list.tally.total, list.tally.unfiltered],
        quality: list.quality,
        filter: list.filter.as_deref(),
        own: None,
    };
    let mut page = Page {
        head: head.lines(lines),
        ..Page::default()
    };
    let mut left = lines.saturating_sub(page.head.len() + 1);
    let mut shown = 0;
    for (number, listed) in list.listed.iter().enumerate() {
        // Earlier functions are heavier; each may take half of what is there.
        let part = if number + 1 == list.listed.len() {
            left
        } else {
            left.div_ceil(2)
        };
        let Some(tables) = within(list, listed, part) else {
            break;
        };
        left -= lines_of(&tables).min(left);
        page.parts.extend(tables.into_iter().map(Part::Table));
        shown += 1;
    }
    let rest = list.listed.len() - shown + list.more;
    if rest > 0 {
        page.foot
            .push(format!("+{rest} functions match (--budget)"));
    }
    page
}

/// The tables of a function in so many lines, if there is room for one of its source lines.
fn within(list: &List<'_>, listed: &Listed, lines: usize) -> Option<Vec<Table>> {
    let sampled = listed.files.iter().map(|file| file.lines.len());
    let mut most = sampled.sum::<usize>();
    loop {
        let tables = tables(list, listed, most);
        let needed = lines_of(&tables);
        if needed <= lines {
            return Some(tables);
        }
        // What is left out takes rows, too, so try with fewer.
        most = most
            .checked_sub((needed - lines).max(1))
            .filter(|most| *most > 0)?;
    }
}

fn lines_of(tables: &[Table]) -> usize {
    let lines = |table: &Table| 1 + table.rows.len();
    tables.iter().map(lines).sum()
}

/// A heading, and for each file a table of its lines. Of all lines with samples the heaviest are shown.
fn tables(list: &List<'_>, listed: &Listed, most: usize) -> Vec<Table> {
    let kept = heaviest(listed, most);
    let mut tables = vec![Table {
        name: "function",
        title: heading(list, listed),
        ..Table::default()
    }];
    for (number, file) in listed.files.iter().enumerate() {
        let lines = file.lines.keys().copied();
        let kept: BTreeSet<u32> = lines
            .filter(|line| kept.contains(&(number, *line)))
            .collect();
        if kept.is_empty() {
            continue;
        }
        let text = list.texts.get(&file.path);
        let function = list.functions.get(listed.function);
        // What was mapped from a bundle was in one file.
        let is_of_v8 = file.path.ends_with("js")
            && Producer::of_prefix(function.full.as_bytes()) == Producer::V8;
        let note = match text {
            None if list.others.contains(&file.path) => "  (not shown: another text ran)",
            None => "  (no source at hand: --source-root DIR)",
            // V8 writes the positions that they have in their own files, and the name of this one.
            Some(_) if is_of_v8 => "  (with lines that V8 inlined from other files, if it did)",
            Some(_) => "",
        };
        let of_build = file.build.map(|build| format!(" (build {build})"));
        let of_build = of_build.unwrap_or_default();
        tables.push(Table {
            title: format!("  {}{of_build}{note}", file.path),
            ..Table::default()
        });
        tables.push(Table {
            name: "list",
            title: String::new(),
            columns: vec![
                Column::right("self"),
                Column::right("with callees"),
                Column::right(""),
                Column::right("line"),
                Column::left(""),
            ],
            rows: rows(list, listed, file, &kept, text),
        });
    }
    if listed.unplaced.inclusive.samples > 0 {
        let full = &list.functions.get(listed.function).full;
        let producer = Producer::of_prefix(full.as_bytes());
        let is_wasm = (producer.row().tier)(full) == Tier::Wasm;
        let (what, next) = if producer == Producer::V8 && is_wasm {
            (
                "no line is known (V8 writes none for WebAssembly; wasmtime does)",
                "; pjit peek shows calls",
            )
        } else if listed.files.is_empty() {
            (
                "no line is known (debug information, a dump with lines and source maps have them)",
                "; pjit check says what is missing, pjit peek shows calls",
            )
        } else {
            ("without a line", "")
        };
        tables.push(Table {
            title: format!(
                "  {what}: self {}, with callees {}{next}",
                amount(list.facts, listed.unplaced.own),
                amount(list.facts, listed.unplaced.inclusive)
            ),
            ..Table::default()
        });
    }
    tables
}

/// The lines that weigh most, by file and number.
fn heaviest(listed: &Listed, most: usize) -> BTreeSet<(usize, u32)> {
    let files = listed.files.iter().enumerate();
    let mut all: Vec<(u64, u64, (usize, u32))> = files
        .flat_map(|(at, file)| {
            let of_line = move |(number, line): (&u32, &Line)| {
                (line.inclusive.period, line.own.period, (at, *number))
            };
            file.lines.iter().map(of_line)
        })
        .collect();
    all.sort_unstable_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(a.2.cmp(&b.2)));
    all.truncate(most);
    all.into_iter().map(|(_, _, line)| line).collect()
}

fn heading(list: &List<'_>, listed: &Listed) -> String {
    let function = list.functions.get(listed.function);
    let numbers = list.tally.of_function(listed.function);
    let unfiltered = list.tally.unfiltered;
    let told = |count: Count| {
        let share = percent(count.period, unfiltered.period);
        format!("{} ({share:.1}%)", amount(list.facts, count))
    };
    let shared = list.shared.get(&listed.function);
    let other = shared.map_or_else(String::new, |(_, other)| format!(" (or {other})"));
    let near = percent(listed.near.period, numbers.own.period);
    let near = if near >= NEAR {
        format!("  ({near:.0}% of self may be another line's)")
    } else {
        String::new()
    };
    format!(
        "{}{other}   {}  self {}  with callees {}{near}",
        list.labels[listed.function.index()],
        function.identity.object,
        told(numbers.own),
        told(numbers.inclusive),
    )
}

/// The lines of a file from the function's own, if it is known, to the last with samples.
fn rows(
    list: &List<'_>,
    listed: &Listed,
    file: &File,
    kept: &BTreeSet<u32>,
    text: Option<&Source>,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (first, declared) = (
        file.lines.keys().next().copied(),
        declared(list, listed, file),
    );
    let mut next = declared.or(first).unwrap_or(1);
    if let (Some(text), Some(line)) = (text, declared.filter(|line| !kept.contains(line))) {
        rows.push(row(list, line, None, Some(text)));
        next = line + 1;
    }
    for &number in kept {
        gap(list, file, (next, number), text, &mut rows);
        rows.push(row(list, number, file.lines.get(&number), text));
        next = number.saturating_add(1);
    }
    let behind = file.lines.range(next..);
    left_out(list, behind.map(|(_, line)| line), &mut rows);
    rows
}

/// The line that names the function, if it is in this file and before all that has samples.
fn declared(list: &List<'_>, listed: &Listed, file: &File) -> Option<u32> {
    let name = &list.functions.get(listed.function).identity.name;
    let first = *file.lines.keys().next()?;
    let is_here = name.line > 0 && name.file == file.path && name.line <= first;
    is_here.then_some(name.line)
}

/// What is between two lines that are shown.
fn gap(
    list: &List<'_>,
    file: &File,
    (from, to): (u32, u32),
    text: Option<&Source>,
    rows: &mut Vec<Vec<String>>,
) {
    if from >= to {
        return;
    }
    let hidden = file.lines.range(from..to);
    if hidden.clone().next().is_some() {
        return left_out(list, hidden.map(|(_, line)| line), rows);
    }
    match text {
        Some(text) if to - from <= GAP => {
            rows.extend((from..to).map(|number| row(list, number, None, Some(text))));
        }
        Some(_) => rows.push(folded("…".to_owned())),
        // Numbers tell it.
        None => {}
    }
}

/// A row for lines that have samples and are not shown.
fn left_out<'l>(
    list: &List<'_>,
    lines: impl Iterator<Item = &'l Line>,
    rows: &mut Vec<Vec<String>>,
) {
    let (mut own, mut count) = (Count::default(), 0);
    for line in lines {
        own.add(line.own);
        count += 1;
    }
    if count > 0 {
        let mut row = folded(format!("… {count} lines with less"));
        row[0] = cell(list.facts, own);
        rows.push(row);
    }
}

fn folded(text: String) -> Vec<String> {
    let mut row = vec![String::new(); 4];
    row.push(text);
    row
}

fn row(list: &List<'_>, number: u32, line: Option<&Line>, text: Option<&Source>) -> Vec<String> {
    let text = text.and_then(|text| text_of(text, number));
    let line = line.copied().unwrap_or_default();
    let share = percent(line.inclusive.period, list.tally.unfiltered.period);
    let share = if line.inclusive.samples > 0 {
        format!("{share:.1}%")
    } else {
        String::new()
    };
    vec![
        cell(list.facts, line.own),
        cell(list.facts, line.inclusive),
        share,
        number.to_string(),
        text.unwrap_or_default(),
    ]
}

/// A line of a file, as far as somebody reads it.
fn text_of(source: &Source, number: u32) -> Option<String> {
    let line = source.line(number)?;
    let mut text = String::new();
    for (at, c) in line.chars().enumerate() {
        match c {
            _ if at == LONGEST => {
                text.push('…');
                break;
            }
            '\t' => text.push_str(TAB),
            c => text.push(c),
        }
    }
    Some(text)
}

/// A weight, empty where there is none.
fn cell(facts: &Facts, count: Count) -> String {
    if count.samples == 0 {
        return String::new();
    }
    amount(facts, count)
}

fn amount(facts: &Facts, count: Count) -> String {
    match facts.weighed {
        _ if facts.is_time() => format!("{:.3} s", count.period as f64 / 1e9),
        Some((unit, _)) => unit.human(count.period),
        None => count.period.to_string(),
    }
}

/// The same as JSON, with so many lines.
#[must_use]
pub fn to_json(list: &List<'_>, common: &json::Common, rows: usize) -> Value {
    let facts = list.facts;
    let mut left = rows;
    let (mut functions, mut hidden) = (Vec::new(), 0);
    for listed in list.listed {
        let mut value = json::function(
            list.functions.get(listed.function),
            list.tally.of_function(listed.function),
        );
        let sampled: usize = listed.files.iter().map(|file| file.lines.len()).sum();
        let kept = heaviest(listed, left);
        left -= kept.len();
        hidden += sampled - kept.len();
        let files = listed.files.iter().enumerate().map(|(at, file)| {
            let text = list.texts.get(&file.path);
            let lines = file.lines.iter().filter(|(number, _)| kept.contains(&(at, **number)));
            let line = |(number, line): (&u32, &Line)| {
                json!({
                    "line": number,
                    "self": line.own.period,
                    "inclusive": line.inclusive.period,
                    "samples": line.inclusive.samples,
                    "text": text.and_then(|text| text_of(text, *number)),
                })
            };
            json!({"file": file.path, "build_id": file.build.map(|build| build.to_string()), "found": text.is_some(), "lines": lines.map(line).collect::<Value>()})
        });
        let more = json!({
            "files": files.collect::<Value>(),
            "unplaced": {"self": listed.unplaced.own.period, "inclusive": listed.unplaced.inclusive.period},
        });
        json::extend(&mut value, more);
        functions.push(value);
    }
    let mut answer = json::head("list", &[(facts, None)]);
    json::extend(
        &mut answer,
        json!({
            "event": json::event(facts, list.tally.unfiltered),
            "quality": common.quality,
            "filters": common.filters,
            "functions": functions,
            "omitted": {"functions": list.more, "lines": hidden},
            "warnings": json::warnings(&[facts], common),
        }),
    );
    answer
}

/// The lines with samples as rows of CSV.
#[must_use]
pub fn csv_rows(list: &List<'_>) -> Vec<Vec<String>> {
    let head = [
        "function",
        "object",
        "file",
        "line",
        "self",
        "inclusive",
        "samples",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for listed in list.listed {
        let function = list.functions.get(listed.function);
        for file in &listed.files {
            rows.extend(file.lines.iter().map(|(number, line)| {
                vec![
                    function.full_name(),
                    function.identity.object.clone(),
                    file.path.clone(),
                    number.to_string(),
                    line.own.period.to_string(),
                    line.inclusive.period.to_string(),
                    line.inclusive.samples.to_string(),
                ]
            }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_one_line_is_cut() {
        let long = format!("\t{}", "x".repeat(1 << 20));
        let source = Source::of(&long);
        let text = text_of(&source, 1).expect("a line");
        assert!(text.starts_with("    xx") && text.ends_with('…'));
        assert!(text.chars().count() < LONGEST + 8);
        assert_eq!(text_of(&source, 2), None);
    }
}
