//! The page of `pjit summary`: quality, kinds, hot functions, own code, who pays for foreign code.
//!
//! In: a [`Summary`]. Out: a [`Page`] that keeps a budget; rows that are left out are one row that says how much they are.

use std::io::{self, Write};

use super::csv;
use super::page::{Column, Page, Part, Table, cut};
use crate::ids::Idx;
use crate::questions::budget::{self, Budget, Want};
use crate::questions::facts::Facts;
use crate::questions::functions::{FunctionId, UNKNOWN};
use crate::questions::summary::{Share, Summary, worth_showing};
use crate::questions::tally::Count;
use crate::report::percent;
use crate::unit::Unit;

/// Longest name in a table.
const NAME: usize = 72;
/// Troubles of a recording that are shown.
const TROUBLES: usize = 5;

/// How the page is made.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Lines at most.
    pub lines: usize,
    /// Names and paths whole.
    pub full_names: bool,
    /// The line about quality, as reports have it.
    pub quality: String,
    /// One line about filters, if there are any.
    pub filters: Option<String>,
}

/// Makes the page.
#[must_use]
pub fn page(summary: &Summary, options: &PageOptions) -> Page {
    let maker = PageMaker { summary, options };
    let mut page = Page {
        head: maker.head(),
        parts: maker.lines(),
        foot: Vec::new(),
    };
    // The last line is about what has no own frame.
    let fixed = page.head.len() + page.parts.len() + 1;
    let left = options.lines.saturating_sub(fixed);
    let tables = [maker.own(), maker.hot(), maker.foreign()];
    let wants = [0, 1, 2].map(|at| Want {
        lines: tables[at].lines(),
        share: [40, 25, 20][at],
    });
    let given = budget::split(left, &wants);
    let mut hidden = Vec::new();
    let mut shown = Vec::new();
    for ((table, want), lines) in tables.into_iter().zip(wants).zip(given) {
        match budget::rows(lines, want, 1, table.worth) {
            Some(rows) if table.rows > 0 => shown.push(Part::Table(maker.table(&table, rows))),
            _ if table.rows > 0 => hidden.push(format!("{} {}", table.rows, table.what)),
            _ => {}
        }
    }
    // What is hottest comes first, though own code is served first.
    if shown.len() > 1 && matches!(&shown[1], Part::Table(table) if table.name == "self") {
        shown.swap(0, 1);
    }
    page.parts.extend(shown);
    page.foot = vec![maker.foot(&hidden)];
    page
}

/// The lines that tell what was recorded, and how far it can be trusted.
#[must_use]
pub fn head_of(facts: &Facts, verb: &str, total: Count, quality: &str) -> Vec<String> {
    let mut head = vec![
        format!("pjit {verb}: {}  {}", facts.path, measured(facts, total)),
        quality.to_owned(),
    ];
    for trouble in facts.findings.iter().take(TROUBLES) {
        let word = if trouble.is_failure { "FAIL" } else { "warn" };
        head.push(format!("{word} {}: {}", trouble.code, trouble.text));
    }
    if facts.findings.len() > TROUBLES {
        head.push(format!(
            "+{} more: pjit check",
            facts.findings.len() - TROUBLES
        ));
    }
    head
}

/// What weights are called.
struct Words {
    /// Told apart by kind, library and thread.
    titles: [&'static str; 3],
    /// Above numbers.
    column: &'static str,
    /// All of it.
    whole: &'static str,
}

impl Words {
    const fn of(facts: &Facts) -> Self {
        let unit = match facts.weighed {
            None => {
                return Self {
                    titles: ["CPU by kind", "CPU by library", "CPU by thread"],
                    column: if facts.is_clock { "seconds" } else { "count" },
                    whole: "CPU",
                };
            }
            Some((unit, _)) => unit,
        };
        let titles = match unit {
            Unit::Nanoseconds => ["Time by kind", "Time by library", "Time by thread"],
            Unit::Bytes => ["Bytes by kind", "Bytes by library", "Bytes by thread"],
            _ => ["By kind", "By library", "By thread"],
        };
        let (column, whole) = match unit {
            Unit::Nanoseconds => ("seconds", "time"),
            Unit::Bytes => ("bytes", "weight"),
            Unit::ByteSeconds => ("byte-seconds", "weight"),
            Unit::Pages | Unit::Blocks => (unit.word(), "weight"),
            Unit::Count | Unit::Cycles => ("count", "weight"),
        };
        Self {
            titles,
            column,
            whole,
        }
    }
}

/// `node (pid 2700), 343 samples of cpu-clock, 1.72 s CPU in 1.9 s, 7 threads`
fn measured(facts: &Facts, total: Count) -> String {
    let much = match facts.weighed {
        Some((Unit::Nanoseconds, _)) => seconds(total.period),
        Some((unit @ (Unit::Pages | Unit::Blocks), _)) => {
            format!("{} {}", total.period, unit.word())
        }
        Some((unit, _)) => unit.human(total.period),
        None if facts.is_clock => format!("{} CPU", seconds(total.period)),
        None => format!("{} {}", total.period, facts.event),
    };
    let counted = facts.counted();
    let wall = facts
        .wall_ns
        .map(|ns| format!(" in {}", short_seconds(ns)))
        .unwrap_or_default();
    let plural = if facts.threads == 1 { "" } else { "s" };
    let mut text = format!(
        "{}, {} {counted} of {}, {much}{wall}, {} thread{plural}",
        facts.process(),
        total.samples,
        facts.event,
        facts.threads
    );
    if !facts.other_events.is_empty() {
        text.push_str(&format!(
            "; not shown: {} (--event)",
            facts.other_events.join(", ")
        ));
    }
    text
}

/// Seconds with two decimals, or as many as are needed to see anything.
#[must_use]
pub fn seconds(ns: u64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

fn short_seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// A table before it is known how much of it is shown.
struct Draft {
    name: &'static str,
    title: &'static str,
    what: &'static str,
    columns: Vec<Column>,
    /// Rows in all, and those that are worth showing.
    rows: usize,
    worth: usize,
}

impl Draft {
    /// With heading, and a row for what is left out.
    fn lines(&self) -> usize {
        match self.rows {
            0 => 0,
            rows => 1 + self.worth + usize::from(rows > self.worth),
        }
    }
}

struct PageMaker<'s> {
    summary: &'s Summary,
    options: &'s PageOptions,
}

impl PageMaker<'_> {
    fn head(&self) -> Vec<String> {
        let summary = self.summary;
        let mut head = head_of(
            &summary.facts,
            "summary",
            summary.unfiltered,
            &self.options.quality,
        );
        head.extend(self.options.filters.clone());
        head.push(format!("own: {}", summary.own_rule()));
        head
    }

    fn lines(&self) -> Vec<Part> {
        let summary = self.summary;
        let kinds = summary
            .kinds
            .iter()
            .map(|share| format!("{} {}", share.label, self.share(share.count)));
        let titles = self.words().titles;
        let mut parts = vec![Part::Line {
            title: titles[0],
            items: kinds.collect(),
        }];
        parts.push(Part::Line {
            title: titles[1],
            items: self.shares(&summary.objects),
        });
        let is_large =
            |share: &&Share| percent(share.count.period, summary.unfiltered.period) >= 5.0;
        if summary.threads.iter().filter(is_large).count() > 1 {
            parts.push(Part::Line {
                title: titles[2],
                items: self.shares(&summary.threads),
            });
        }
        parts
    }

    /// The largest shares, and what the others are together.
    fn shares(&self, shares: &[Share]) -> Vec<String> {
        const MOST: usize = 6;
        let weights = shares.iter().map(|share| share.count.period);
        let shown = worth_showing(weights, self.summary.unfiltered.period).clamp(1, MOST);
        let mut items: Vec<String> = shares
            .iter()
            .take(shown)
            .map(|share| format!("{} {}", self.share(share.count), cut(&share.label, 40)))
            .collect();
        if shares.len() > shown {
            let rest = sum(shares[shown..].iter().map(|share| share.count));
            items.push(format!("+{} {}", shares.len() - shown, self.share(rest)));
        }
        items
    }

    fn words(&self) -> Words {
        Words::of(&self.summary.facts)
    }

    fn hot(&self) -> Draft {
        let weight = |id: &FunctionId| self.summary.numbers[id.index()].own.period;
        Draft {
            name: "self",
            title: "Self",
            what: "functions by self",
            columns: vec![
                Column::left(""),
                Column::right(self.words().column),
                Column::left("function"),
                Column::left("object"),
            ],
            rows: self.summary.hot.len(),
            worth: self.worth(self.summary.hot.iter().map(weight)),
        }
    }

    fn own(&self) -> Draft {
        let weight = |id: &FunctionId| self.summary.numbers[id.index()].credited.period;
        Draft {
            name: "own",
            title: "Own code",
            what: "own functions",
            columns: vec![
                Column::right("credited"),
                Column::right("self"),
                Column::right("inclusive"),
                Column::left("function"),
                Column::left("mostly in"),
            ],
            rows: self.summary.own.len(),
            worth: self.worth(self.summary.own.iter().map(weight)),
        }
    }

    fn foreign(&self) -> Draft {
        Draft {
            name: "foreign",
            title: "Foreign code, by the own caller that pays",
            what: "pairs of foreign code and its payer",
            columns: vec![Column::right(""), Column::left(""), Column::left("")],
            rows: self.summary.foreign.len(),
            worth: self.worth(self.summary.foreign.iter().map(|row| row.count.period)),
        }
    }

    fn worth(&self, weights: impl Iterator<Item = u64> + Clone) -> usize {
        worth_showing(weights, self.summary.unfiltered.period)
    }

    fn table(&self, draft: &Draft, rows: usize) -> Table {
        let mut cells: Vec<Vec<String>> = (0..rows).map(|at| self.row(draft.name, at)).collect();
        if draft.rows > rows {
            cells.push(self.rest(draft.name, rows, draft.rows - rows));
        }
        Table {
            name: draft.name,
            title: draft.title.to_owned(),
            columns: draft.columns.clone(),
            rows: cells,
        }
    }

    fn row(&self, table: &str, at: usize) -> Vec<String> {
        let summary = self.summary;
        match table {
            "self" => {
                let id = summary.hot[at];
                let own = summary.numbers[id.index()].own;
                let object = &summary.functions.get(id).identity.object;
                let share = format!("  {:>5} {}", self.share(own), self.half_width(own));
                vec![share, self.time(own), self.name(id), cut(object, NAME)]
            }
            "own" => {
                let id = summary.own[at];
                let numbers = &summary.numbers[id.index()];
                let parts = [numbers.credited, numbers.own, numbers.inclusive];
                let mut cells: Vec<String> = parts.iter().map(|count| self.share(*count)).collect();
                cells.extend([self.name(id), self.mostly(id, numbers.credited)]);
                cells
            }
            _ => {
                let row = &summary.foreign[at];
                let share = format!("  {}", self.share(row.count));
                vec![
                    share,
                    self.cut_place(row.function, NAME),
                    format!("<- {}", self.name(row.payer)),
                ]
            }
        }
    }

    /// The row that stands for all that are left out.
    fn rest(&self, table: &str, from: usize, count: usize) -> Vec<String> {
        let summary = self.summary;
        let numbers = |id: &FunctionId| &summary.numbers[id.index()];
        match table {
            "self" => {
                let rest = sum(summary.hot[from..].iter().map(|id| numbers(id).own));
                let share = format!("  {:>5}", self.share(rest));
                vec![
                    share,
                    self.time(rest),
                    format!("+{count} functions"),
                    String::new(),
                ]
            }
            "own" => {
                let credited = sum(summary.own[from..].iter().map(|id| numbers(id).credited));
                let own = sum(summary.own[from..].iter().map(|id| numbers(id).own));
                let shares = [credited, own].map(|count| self.share(count));
                let [credited, own] = shares;
                vec![
                    credited,
                    own,
                    String::new(),
                    format!("+{count} functions"),
                    String::new(),
                ]
            }
            _ => {
                let rest = sum(summary.foreign[from..].iter().map(|row| row.count));
                vec![
                    format!("  {}", self.share(rest)),
                    format!("+{count} more"),
                    String::new(),
                ]
            }
        }
    }

    /// Up to two functions that have a tenth of the weight each.
    fn mostly(&self, id: FunctionId, credited: Count) -> String {
        let parts = self.summary.mostly.get(&id).map_or(&[][..], Vec::as_slice);
        let large = parts
            .iter()
            .filter(|(_, count)| percent(count.period, credited.period) >= 10.0);
        let texts: Vec<String> = large
            .take(2)
            .map(|(function, count)| {
                let name = if *function == id {
                    "itself".to_owned()
                } else {
                    self.short_name(*function)
                };
                format!("{name} {:.0}%", percent(count.period, credited.period))
            })
            .collect();
        texts.join(", ")
    }

    fn foot(&self, hidden: &[String]) -> String {
        let summary = self.summary;
        let parts: Vec<String> = summary
            .no_own_in
            .iter()
            .take(3)
            .map(|share| {
                format!(
                    "{} {}",
                    cut(&share.label, 40),
                    self.share(share.count).trim()
                )
            })
            .collect();
        let mut text = format!(
            "{} of the {} has no own frame",
            self.share(summary.no_own).trim(),
            self.words().whole
        );
        if !parts.is_empty() {
            text.push_str(&format!(": {}", parts.join(", ")));
        }
        if !hidden.is_empty() {
            text.push_str(&format!("; left out (--budget): {}", hidden.join(", ")));
        }
        text
    }

    fn share(&self, count: Count) -> String {
        format!(
            "{:.1}%",
            percent(count.period, self.summary.unfiltered.period)
        )
    }

    /// Half the width of the 95 % interval within this run.
    fn half_width(&self, count: Count) -> String {
        let n = self.summary.unfiltered.samples.max(1) as f64;
        let p = count.period as f64 / self.summary.unfiltered.period.max(1) as f64;
        format!("+-{:.1}", 196.0 * (p * (1.0 - p).max(0.0) / n).sqrt())
    }

    fn time(&self, count: Count) -> String {
        if self.summary.facts.is_time() {
            let decimals = if self.summary.unfiltered.period < 1_000_000_000 {
                3
            } else {
                2
            };
            format!("{:.decimals$}", count.period as f64 / 1e9)
        } else {
            let weighed = self.summary.facts.weighed;
            let unit = weighed.map_or(Unit::Count, |(unit, _)| unit);
            unit.human(count.period)
        }
    }

    fn name(&self, id: FunctionId) -> String {
        self.cut(id, NAME)
    }

    fn short_name(&self, id: FunctionId) -> String {
        self.cut_place(id, 40)
    }

    /// Where there is no column for objects, code without a name is shown as its object.
    fn cut_place(&self, id: FunctionId, columns: usize) -> String {
        let identity = &self.summary.functions.get(id).identity;
        match identity.name.name.as_str() {
            UNKNOWN if identity.object.starts_with('[') => identity.object.clone(),
            UNKNOWN => format!("[{}]", identity.object),
            _ => self.cut(id, columns),
        }
    }

    fn cut(&self, id: FunctionId, columns: usize) -> String {
        let label = self.summary.labels.get(&self.summary.functions, id);
        if self.options.full_names {
            label.to_owned()
        } else {
            cut(label, columns)
        }
    }
}

fn sum(counts: impl Iterator<Item = Count>) -> Count {
    counts.fold(Count::default(), |mut sum, count| {
        sum.add(count);
        sum
    })
}

/// Writes one table as CSV: exact weights, all rows or as many as the budget has lines.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_csv(
    summary: &Summary,
    table: &str,
    budget: Option<Budget>,
    out: &mut dyn Write,
) -> io::Result<()> {
    csv::write(&csv_rows(summary, table), budget, out)
}

fn csv_rows(summary: &Summary, table: &str) -> Vec<Vec<String>> {
    let share = |count: Count| {
        format!(
            "{:.6}",
            percent(count.period, summary.unfiltered.period) / 100.0
        )
    };
    let head = |words: &[&str]| {
        vec![
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        ]
    };
    if table == "foreign" {
        let mut rows = head(&[
            "weight",
            "samples",
            "share",
            "function",
            "object",
            "payer",
            "payer_object",
        ]);
        rows.extend(summary.foreign.iter().map(|row| {
            let (function, payer) = (
                summary.functions.get(row.function),
                summary.functions.get(row.payer),
            );
            vec![
                row.count.period.to_string(),
                row.count.samples.to_string(),
                share(row.count),
                function.identity.name.full(),
                function.identity.object.clone(),
                payer.identity.name.full(),
                payer.identity.object.clone(),
            ]
        }));
        return rows;
    }
    let mut rows = head(&[
        "credited",
        "self",
        "inclusive",
        "share",
        "kind",
        "function",
        "object",
        "id",
    ]);
    let ids = if table == "self" {
        &summary.hot
    } else {
        &summary.own
    };
    rows.extend(ids.iter().map(|id| {
        let (function, numbers) = (summary.functions.get(*id), &summary.numbers[id.index()]);
        let of = if table == "self" {
            numbers.own
        } else {
            numbers.credited
        };
        vec![
            numbers.credited.period.to_string(),
            numbers.own.period.to_string(),
            numbers.inclusive.period.to_string(),
            share(of),
            function.kind.word().to_owned(),
            function.identity.name.full(),
            function.identity.object.clone(),
            function.identity.id(),
        ]
    }));
    rows
}
