//! The lines of `pjit gate`, a comment for a pull request, and the same as JSON and CSV.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::diff::{self, Diff};
use super::page::Part;
use super::text::harmless;
use super::{json, markdown};
use crate::questions::compare::Row;
use crate::questions::facts::Facts;
use crate::questions::gate::undecided as why_undecided;
use crate::questions::gate::{Grade, Line, Outcome, change, grown as of_grown};

/// The answer of `pjit gate`.
pub struct Gate<'r> {
    /// A line for each rule and each recording that has something against it.
    pub lines: &'r [Line],
    /// How all went.
    pub outcome: Outcome,
    /// The comparison, if there is a base.
    pub diff: Option<Diff<'r>>,
    /// All recordings, with their roles.
    pub facts: Vec<(&'r Facts, &'static str)>,
    /// What was left out because it was the idle task's.
    pub idle: Option<String>,
    /// Filters as they were given.
    pub filters: &'r [String],
}

/// Writes the lines for people.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_text(gate: &Gate<'_>, lines: usize, out: &mut dyn Write) -> io::Result<()> {
    let count = |role| {
        gate.facts
            .iter()
            .filter(|(_, known)| *known == role)
            .count()
    };
    let (base, new) = (count("base"), count("new"));
    let plural = if base == 1 { "" } else { "s" };
    let grown: Vec<String> = (gate.diff.iter().flat_map(grown))
        .map(|text| harmless(&text).into_owned())
        .collect();
    let grown = if grown.is_empty() {
        String::new()
    } else {
        format!("; {}", grown.join("; "))
    };
    writeln!(
        out,
        "# pjit gate: {base} run{plural} of base, {new} of new{grown}"
    )?;
    let said = [gate.idle.clone(), filter(gate)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    for line in &said {
        writeln!(out, "# {}", harmless(line))?;
    }
    // The heading, the last line and the one for what is left out.
    let lines = lines.saturating_sub(said.len());
    let shown = if gate.lines.len() + 2 <= lines {
        gate.lines.len()
    } else {
        lines.saturating_sub(3)
    };
    let mut order: Vec<&Line> = gate.lines.iter().collect();
    if shown < order.len() {
        order = worst_first(gate);
    }
    let words = order[..shown]
        .iter()
        .map(|line| line.grade.word().len() + 1);
    let width = words.max().unwrap_or(0).max(6);
    for line in &order[..shown] {
        writeln!(
            out,
            "{:<width$}{:<27} {}",
            line.grade.word(),
            harmless(&line.rule),
            harmless(&line.text)
        )?;
    }
    if shown < order.len() {
        writeln!(out, "# +{} lines (--budget)", order.len() - shown)?;
    }
    match undecided(gate) {
        Some(why) => writeln!(out, "undecided: {}", harmless(&why)),
        None => writeln!(out, "{}", gate.outcome.word()),
    }
}

/// What the rules were asked of, if not of all samples.
fn filter(gate: &Gate<'_>) -> Option<String> {
    let chosen = gate
        .diff
        .as_ref()
        .map(|diff| diff::chosen(diff.base, diff.new));
    let given = format!("Filter: {}", gate.filters.join(" "));
    let told = [given].into_iter().chain(chosen.unwrap_or_default());
    (!gate.filters.is_empty()).then(|| told.collect::<Vec<_>>().join("; "))
}

/// What failed, then what is undecided, and so on; of equals in the order of the rules.
fn worst_first<'r>(gate: &Gate<'r>) -> Vec<&'r Line> {
    let mut order: Vec<&Line> = gate.lines.iter().collect();
    order.sort_by_key(|line| std::cmp::Reverse(line.grade));
    order
}

/// Why the gate is neither open nor closed, if so.
fn undecided(gate: &Gate<'_>) -> Option<String> {
    if gate.outcome != Outcome::Undecided {
        return None;
    }
    let of_runs = gate
        .diff
        .as_ref()
        .and_then(|diff| why_undecided(diff.comparison));
    of_runs.or_else(|| {
        let mut lines = gate.lines.iter();
        let line = lines.find(|line| line.grade == Grade::Undecided)?;
        Some(line.text.clone())
    })
}

/// Each function that takes more, or is new, whatever the rules ask: a limit of the total does not see it.
fn grown(diff: &Diff<'_>) -> Vec<String> {
    let word = |row: &Row| diff.verdict(row).unwrap_or_default();
    let names = diff::names(&diff.comparison.rows);
    let told = of_grown(diff.comparison).into_iter();
    told.map(|(at, text)| {
        let (row, name) = (&diff.comparison.rows[at], &names[at]);
        match row.ratio {
            Some(_) => format!("{} {name} {text}", word(row)),
            None => format!("{text} {name}"),
        }
    })
    .collect()
}

/// Rows of the comparison that a comment shows at once.
const ROWS: usize = 10;
/// Lines that are kept which a comment shows.
const LINES: usize = 50;
/// Characters of a comment: hosts take 65 536.
const CHARACTERS: usize = 60_000;

/// Writes a comment for a pull request.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_markdown(gate: &Gate<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    writeln!(text, "{}\n", verdict(gate))?;
    if let Some(filter) = filter(gate) {
        writeln!(text, "{}\n", markdown::line(&filter))?;
    }
    writeln!(text, "| | rule | found |\n| --- | --- | --- |")?;
    let mut left = 0;
    for (at, line) in worst_first(gate).into_iter().enumerate() {
        let [rule, found] = [&line.rule, &line.text].map(|part| markdown::cell(part));
        let row = format!("| {} | {rule} | {found} |\n", line.grade.word());
        // What failed is cut where the host would cut it, and never for what is kept.
        let is_wanted = at < LINES || line.grade >= Grade::Undecided;
        if is_wanted && text.len() + row.len() < CHARACTERS - 1000 {
            text.extend(row.into_bytes());
        } else {
            left += 1;
        }
    }
    if left > 0 {
        writeln!(text, "| | | +{left} lines |")?;
    }
    writeln!(text)?;
    if let Some(diff) = &gate.diff {
        let fixed = diff::page(diff, 0).head.len() + diff::page(diff, 0).foot.len() + 1;
        let mut first = Vec::new();
        table(diff, fixed + ROWS, &mut first)?;
        if text.len() + first.len() < CHARACTERS {
            text.extend(first);
        }
        let mut rows = diff.comparison.rows.len();
        while rows > ROWS {
            let mut all = Vec::new();
            writeln!(all, "<details><summary>all functions</summary>\n")?;
            table(diff, fixed + rows, &mut all)?;
            writeln!(all, "</details>\n")?;
            if text.len() + all.len() + 1000 < CHARACTERS {
                text.extend(all);
                break;
            }
            rows /= 2;
        }
    }
    let runs = gate.facts.iter().map(|(facts, role)| {
        let fit = if facts.is_fit { "fit" } else { "**not fit**" };
        format!("- {role}: {}, {fit}", markdown::line(&facts.path))
    });
    let runs: Vec<String> = runs.take(50).collect();
    let mut details = format!(
        "<details><summary>{} recordings</summary>\n\n{}\n\n</details>\n",
        gate.facts.len(),
        runs.join("\n")
    );
    if text.len() + details.len() > CHARACTERS {
        details.clear();
    }
    text.extend(details.into_bytes());
    out.write_all(&text)
}

/// `**FAIL** table +21% [+12, +31]; total +6% [-4, +17]`
fn verdict(gate: &Gate<'_>) -> String {
    let word = match gate.outcome {
        Outcome::Pass => "**pass**",
        Outcome::Fail => "**FAIL**",
        Outcome::Undecided => "**undecided**",
    };
    let failed = gate
        .lines
        .iter()
        .filter(|line| line.grade == Grade::Fail)
        .take(3);
    let mut parts: Vec<String> = failed
        .map(|line| format!("{}: {}", line.rule, line.text))
        .collect();
    parts.extend(undecided(gate));
    if let Some(diff) = &gate.diff {
        parts.extend(grown(diff));
        parts.push(format!("total {}", change(diff.comparison.total_ratio)));
    }
    format!("{word} {}", markdown::line(&parts.join("; ")))
}

fn table(of: &Diff<'_>, lines: usize, out: &mut dyn Write) -> io::Result<()> {
    for part in diff::page(of, lines).parts {
        if let Part::Table(mut table) = part {
            table.title.clear();
            markdown::write_table(&table, out)?;
        }
    }
    Ok(())
}

/// The same as JSON, with so many rows of the comparison.
#[must_use]
pub fn to_json(gate: &Gate<'_>, common: &json::Common, rows: usize) -> Value {
    let all: Vec<(&Facts, Option<&str>)> = gate
        .facts
        .iter()
        .map(|(facts, role)| (*facts, Some(*role)))
        .collect();
    let facts: Vec<&Facts> = gate.facts.iter().map(|(facts, _)| *facts).collect();
    let mut answer = json::head("gate", &all);
    let rules: Vec<Value> = gate.lines.iter().map(line_json).collect();
    json::extend(
        &mut answer,
        json!({
            "passed": gate.outcome == Outcome::Pass,
            "result": gate.outcome.word(),
            "undecided": undecided(gate),
            "filters": common.filters,
            "rules": rules,
        }),
    );
    if let Some(Value::Object(mut more)) =
        gate.diff.as_ref().map(|of| diff::to_json(of, common, rows))
    {
        for key in [
            "schema",
            "verb",
            "version",
            "recordings",
            "filters",
            "warnings",
        ] {
            more.shift_remove(key);
        }
        json::extend(&mut answer, Value::Object(more));
    }
    json::extend(
        &mut answer,
        json!({"warnings": json::warnings(&facts, common)}),
    );
    answer
}

fn line_json(line: &Line) -> Value {
    json!({
        "rule": line.rule,
        "status": line.grade.word(),
        "text": line.text,
        "value": line.value.map(json::number),
        "limit": line.limit.map(json::number),
    })
}

/// The lines as rows of CSV.
#[must_use]
pub fn csv_rows(gate: &Gate<'_>) -> Vec<Vec<String>> {
    let mut rows = vec![
        ["status", "rule", "value", "limit", "text"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let text = |number: Option<f64>| {
        number
            .map(json::number)
            .map_or_else(String::new, |n| n.to_string())
    };
    rows.extend(gate.lines.iter().map(|line| {
        vec![
            line.grade.word().to_owned(),
            line.rule.clone(),
            text(line.value),
            text(line.limit),
            line.text.clone(),
        ]
    }));
    rows
}
