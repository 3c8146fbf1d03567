//! The page of `pjit diff`, and the same as JSON and CSV.

use serde_json::{Value, json};

use super::json;
use super::page::{Column, Page, Part, Table, cut, cut_apart};
use crate::questions::compare::{Comparison, Interval, Row, SameProgram, expected_difference};
use crate::questions::facts::{Facts, Made};
use crate::questions::idle::amount as amount_of;
use crate::questions::runs::{By, Run};
use crate::unit::Unit;

/// Longest name.
const NAME: usize = 72;

/// The answer of `pjit diff`.
pub struct Diff<'r> {
    /// Runs of the base.
    pub base: &'r [Run],
    /// New runs.
    pub new: &'r [Run],
    /// What was compared.
    pub by: By,
    /// The answer.
    pub comparison: &'r Comparison,
    /// Filters as they were given.
    pub filters: Vec<String>,
    /// Names whole.
    pub full_names: bool,
}

impl Diff<'_> {
    fn facts(&self) -> Option<&Facts> {
        self.new.first().or(self.base.first()).map(|run| &run.facts)
    }

    fn is_time(&self) -> bool {
        self.facts().is_some_and(Facts::is_time)
    }

    /// What is said of a row; nothing of most.
    pub(super) fn verdict(&self, row: &Row) -> Option<&'static str> {
        let is_amount = self.facts().is_some_and(Facts::is_amount);
        Some(row.verdict?.word(is_amount))
    }
}

/// `idle: 3.99 s a run of base, 2.01 s of new left out (--idle keeps it)`; nothing where nothing was.
#[must_use]
pub fn idle_line(base: &[Run], new: &[Run]) -> Option<String> {
    let mean = |runs: &[Run]| {
        let weights = runs.iter().map(|run| run.facts.idle.count.period);
        weights.fold(0, u64::saturating_add) / runs.len().max(1) as u64
    };
    let unit = new.first().or(base.first())?.facts.idle.unit;
    let parts = match (mean(base), mean(new)) {
        (0, 0) => return None,
        (_, new) if base.is_empty() => format!("{} a run", amount_of(unit, new)),
        (base, new) => format!(
            "{} a run of base, {} of new",
            amount_of(unit, base),
            amount_of(unit, new)
        ),
    };
    Some(format!("idle: {parts} left out (--idle keeps it)"))
}

/// Makes the page of so many lines at most.
#[must_use]
pub fn page(diff: &Diff<'_>, lines: usize) -> Page {
    let comparison = diff.comparison;
    let mut page = Page {
        head: head(diff),
        foot: foot(diff),
        ..Page::default()
    };
    let fixed = page.head.len() + page.foot.len() + 1;
    let room = lines.saturating_sub(fixed);
    let rows = &comparison.rows;
    let shown = if rows.len() <= room {
        rows.len()
    } else {
        room.saturating_sub(1)
    };
    let names = if diff.full_names {
        rows.iter().map(|row| row.called.full.clone()).collect()
    } else {
        names(rows)
    };
    let named = rows[..shown].iter().zip(names);
    let mut cells: Vec<Vec<String>> = named.map(|(row, name)| cells(diff, row, &name)).collect();
    if shown < rows.len() {
        let rest = &rows[shown..];
        let sum = |part: fn(&Row) -> f64| rest.iter().map(part).sum::<f64>();
        cells.push(vec![
            amount(diff, sum(|row| row.means.0)),
            amount(diff, sum(|row| row.means.1)),
            String::new(),
            String::new(),
            String::new(),
            format!("+{} {}", rest.len(), diff.by.rows()),
            String::new(),
        ]);
    }
    let (row, place) = match diff.by {
        By::Credited | By::Own => ("function", "object"),
        By::Package => ("package", "from"),
        By::Activity => ("activity", ""),
    };
    let (base, new) = if diff.is_time() {
        ("base s", "new s")
    } else {
        ("base", "new")
    };
    page.parts.push(Part::Table(Table {
        name: "rows",
        title: "#".to_owned(),
        columns: vec![
            Column::right(base),
            Column::right(new),
            Column::right("ratio"),
            Column::left("95% interval"),
            Column::left("verdict"),
            Column::left(row),
            Column::left(place),
        ],
        rows: cells,
    }));
    page
}

fn head(diff: &Diff<'_>) -> Vec<String> {
    let comparison = diff.comparison;
    let (base, new) = comparison.runs;
    let plural = if base == 1 { "" } else { "s" };
    let paired = if comparison.is_paired { ", paired" } else { "" };
    let by = match diff.by {
        By::Credited => "credited to own functions",
        By::Own => "by self",
        By::Package => "by package",
        By::Activity => "by activity",
    };
    let event = diff.facts().map_or("", |facts| facts.event.as_str());
    let unit = if diff.is_time() { " s" } else { "" };
    let mut head = vec![
        format!("pjit diff: {base} run{plural} of base, {new} of new{paired}; {by}; {event}"),
        format!(
            "total: {} -> {}{unit} per run, ratio {}; common factor {:.2}; matched {:.1}% / {:.1}%",
            amount(diff, comparison.totals.0),
            amount(diff, comparison.totals.1),
            with_interval(comparison.total_ratio),
            comparison.factor,
            100.0 * comparison.matched.0,
            100.0 * comparison.matched.1
        ),
    ];
    head.extend(comparison.program.as_ref().map(SameProgram::text));
    let (low, high) = comparison.explained;
    if comparison.are_times {
        head.push("shares of both times are compared".to_owned());
    } else if !comparison.is_explained() {
        head.push(format!(
            "the common factor is the program's growth or the machine's, which of them is not known: runs of one side explain {low:.2} to {high:.2}"
        ));
    } else if (comparison.factor - 1.0).abs() > 0.1 {
        head.push(
            "a uniform change (compiler flags, machine) does not show in the rows".to_owned(),
        );
    }
    if comparison.is_guess {
        head.push(format!(
            "too few {} kept their time: the common factor is what most of them have grown by",
            diff.by.rows()
        ));
    }
    head.extend(idle_line(diff.base, diff.new));
    if !diff.filters.is_empty() {
        head.push(format!("Filter: {}", diff.filters.join(" ")));
    }
    head.extend(chosen(diff.base, diff.new));
    head
}

/// Which times phases of the first recording of each side are.
pub(super) fn chosen(base: &[Run], new: &[Run]) -> Vec<String> {
    let sides = [("base", base), ("new", new)].into_iter();
    let said = |(side, runs): (&str, &[Run])| {
        let chosen = runs.first()?.facts.chosen.as_ref()?;
        let more = if runs.len() > 1 { " (first run)" } else { "" };
        Some(format!("{side}: {chosen}{more}"))
    };
    sides.filter_map(said).collect()
}

fn foot(diff: &Diff<'_>) -> Vec<String> {
    let comparison = diff.comparison;
    let changed = comparison
        .rows
        .iter()
        .filter(|row| row.verdict.is_some_and(|v| v.is_change()))
        .count();
    let single = comparison.runs.0.min(comparison.runs.1) == 1;
    let has_samples = diff.facts().is_none_or(|facts| facts.made == Made::Sampled);
    let limit = if has_samples {
        "below 0.5% or 10 samples"
    } else {
        "below 0.5%"
    };
    let small = match comparison.small {
        0 => String::new(),
        n => {
            let (means, totals) = (comparison.small_means, comparison.totals);
            let [base, new] = [(means.0, totals.0), (means.1, totals.1)].map(|(mean, total)| {
                format!("{:.1}%", 100.0 * mean / total.max(f64::MIN_POSITIVE))
            });
            format!("; +{n} {limit}, {base} -> {new} together")
        }
    };
    let mut foot = vec![if single {
        format!("{} {} compared{small}", comparison.tested, diff.by.rows())
    } else {
        format!(
            "{} {} tested, {changed} changed (q at most 0.05){small}",
            comparison.tested,
            diff.by.rows()
        )
    }];
    if single {
        let largest = comparison
            .rows
            .iter()
            .map(|row| row.samples)
            .fold(0.0, f64::max);
        foot.push(format!(
            "one run each: expect +-{:.0}% in a function of the largest size; record 3 or more of each, alternating",
            expected_difference(largest)
        ));
    }
    foot
}

/// Seconds with three decimals, bytes as people read them, or a count.
fn amount(diff: &Diff<'_>, weight: f64) -> String {
    match diff.facts().and_then(|facts| facts.weighed) {
        _ if diff.is_time() => format!("{:.3}", weight * 1e-9),
        Some((unit @ (Unit::Bytes | Unit::ByteSeconds), _)) => unit.human(weight as u64),
        _ => format!("{weight:.0}"),
    }
}

fn with_interval(interval: Interval) -> String {
    format!("{:.2} {}", interval.value, bounds(interval))
}

fn bounds(interval: Interval) -> String {
    format!("[{:.2}, {:.2}]", interval.low, interval.high)
}

/// Names of rows, cut so that each is that of its function alone.
pub(super) fn names(rows: &[Row]) -> Vec<String> {
    let labels = rows.iter().map(|row| row.called.label.as_str());
    // Without what tells it from others a name is that of them all.
    let namesakes = rows.iter().filter(|row| row.called.apart.is_some());
    let namesakes = namesakes.map(|row| row.identity.name.name.as_str());
    let all: Vec<&str> = labels.chain(namesakes).collect();
    let mut names = cut_apart(&all, NAME);
    names.truncate(rows.len());
    names
}

fn cells(diff: &Diff<'_>, row: &Row, name: &str) -> Vec<String> {
    let doubt = if row.is_doubtful() { " ?" } else { "" };
    let renamed = row
        .renamed
        .as_ref()
        .map(|other| format!("  renamed? {}", cut(&other.label, 40)));
    vec![
        amount(diff, row.means.0),
        amount(diff, row.means.1),
        row.ratio
            .map_or_else(String::new, |ratio| format!("{:.2}", ratio.value)),
        row.ratio.map_or_else(String::new, bounds),
        diff.verdict(row).unwrap_or_default().to_owned(),
        format!("{name}{doubt}{}", renamed.unwrap_or_default()),
        row.identity.object.clone(),
    ]
}

/// The same as JSON, with so many rows.
#[must_use]
pub fn to_json(diff: &Diff<'_>, common: &json::Common, rows: usize) -> Value {
    let comparison = diff.comparison;
    let all: Vec<(&Facts, Option<&str>)> = (diff.base.iter().map(|run| (&run.facts, Some("base"))))
        .chain(diff.new.iter().map(|run| (&run.facts, Some("new"))))
        .collect();
    let facts: Vec<&Facts> = all.iter().map(|(facts, _)| *facts).collect();
    let mut answer = json::head("diff", &all);
    let (shown, left) = comparison.rows.split_at(rows.min(comparison.rows.len()));
    let interval = |i: Interval| json!({"ratio": json::number(i.value), "low": json::number(i.low), "high": json::number(i.high)});
    let mut total = json!({
        "base": json::mean(comparison.totals.0),
        "new": json::mean(comparison.totals.1),
    });
    json::extend(&mut total, interval(comparison.total_ratio));
    json::extend(&mut total, json!({"p": json::number(comparison.total_p)}));
    let sum = |part: fn(&Row) -> f64| json::mean(left.iter().map(part).sum());
    let event = diff.facts();
    json::extend(
        &mut answer,
        json!({
            "event": {
                "name": event.map(|of| &of.event),
                "unit": event.map_or("count", Facts::unit),
            },
            "filters": common.filters,
            "by": diff.by.word(),
            "runs": {"base": comparison.runs.0, "new": comparison.runs.1, "paired": comparison.is_paired},
            "factor": json::number(comparison.factor),
            "factor_explained": comparison.is_explained(),
            "factor_range": {"low": json::number(comparison.explained.0), "high": json::number(comparison.explained.1)},
            "matched": {"base": json::number(comparison.matched.0), "new": json::number(comparison.matched.1)},
            "programs": comparison.program.as_ref().map(|program| json!({"base": program.base, "new": program.new})),
            "total": total,
            "run_totals": {"base": totals(diff.base), "new": totals(diff.new)},
            "rows": shown.iter().map(|row| row_json(diff, row)).collect::<Value>(),
            "omitted": {"functions": left.len(), "base": sum(|row| row.means.0), "new": sum(|row| row.means.1), "small": comparison.small, "small_base": json::mean(comparison.small_means.0), "small_new": json::mean(comparison.small_means.1)},
            "warnings": json::warnings(&facts, common),
        }),
    );
    answer
}

fn totals(runs: &[Run]) -> Vec<u64> {
    runs.iter().map(|run| run.total.period).collect()
}

fn row_json(diff: &Diff<'_>, row: &Row) -> Value {
    let name = &row.identity.name;
    json!({
        "id": row.called.id,
        "name": name.name,
        "object": row.identity.object,
        "apart": row.called.apart,
        "file": (!name.file.is_empty()).then_some(&name.file),
        "line": (name.line > 0).then_some(name.line),
        "own": row.is_own,
        "base": row.base,
        "new": row.new,
        "ratio": row.ratio.map(|ratio| json::number(ratio.value)),
        "low": row.ratio.map(|ratio| json::number(ratio.low)),
        "high": row.ratio.map(|ratio| json::number(ratio.high)),
        "p": row.p.map(json::number),
        "q": row.q.map(json::number),
        "verdict": diff.verdict(row),
        "renamed": row.renamed.as_ref().map(|other| &other.id),
        "doubtful": row.is_doubtful(),
        "matched": row.is_matched,
    })
}

/// Rows of CSV: means, ratio, interval, p, q and verdict.
#[must_use]
pub fn csv_rows(diff: &Diff<'_>) -> Vec<Vec<String>> {
    let head = [
        "base", "new", "ratio", "low", "high", "p", "q", "verdict", "function", "object", "id",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let text = |number: Option<f64>| {
        number
            .map(json::number)
            .map_or_else(String::new, |n| n.to_string())
    };
    rows.extend(diff.comparison.rows.iter().map(|row| {
        vec![
            text(Some(row.means.0)),
            text(Some(row.means.1)),
            text(row.ratio.map(|r| r.value)),
            text(row.ratio.map(|r| r.low)),
            text(row.ratio.map(|r| r.high)),
            text(row.p),
            text(row.q),
            diff.verdict(row).unwrap_or_default().to_owned(),
            row.called.full.clone(),
            row.identity.object.clone(),
            row.called.id.clone(),
        ]
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Identity;
    use crate::functions::tally::Count;
    use crate::questions::compare::{Method, compare};
    use crate::questions::runs::Part;
    use crate::runtimes::CleanName;

    const TIME: Option<(Unit, &str)> = Some((Unit::Nanoseconds, "waits"));

    /// Three runs of two functions, the second of which weighs so much.
    fn side(weight: u64, weighed: Option<(Unit, &'static str)>) -> Vec<Run> {
        let mut run = Run::default();
        run.facts.weighed = weighed;
        for (name, period) in [("same", 1_000_000), ("other", weight)] {
            let count = Count {
                period,
                samples: 1000,
            };
            let name = CleanName {
                name: name.to_owned(),
                ..CleanName::default()
            };
            let identity = Identity {
                object: "x".to_owned(),
                name,
                ..Identity::default()
            };
            let part = Part {
                own: count,
                inclusive: count,
                credited: count,
                is_own: true,
                squares: [period as f64 * period as f64 / 1000.0; 2],
            };
            run.functions.insert(identity, part);
            run.total.add(count);
        }
        vec![run; 3]
    }

    #[test]
    fn all_figures_of_a_document_have_one_unit() {
        let (base, new) = (side(500_000, TIME), side(1_500_000, TIME));
        let comparison = compare(&base, &new, Method::default());
        let diff = Diff {
            base: &base,
            new: &new,
            by: By::Credited,
            comparison: &comparison,
            filters: Vec::new(),
            full_names: false,
        };
        for rows in 0..=2 {
            let answer = to_json(&diff, &json::Common::default(), rows);
            assert_eq!(answer["event"]["unit"], "ns");
            for (role, other) in [("base", 500_000.0), ("new", 1_500_000.0)] {
                let mean = |value: &Value| {
                    let runs = value.as_array().expect("runs").iter();
                    runs.filter_map(Value::as_f64).sum::<f64>() / 3.0
                };
                let total = answer["total"][role].as_f64().expect("a number");
                assert_eq!(total, mean(&answer["run_totals"][role]), "{answer}");
                let shown = answer["rows"].as_array().expect("rows").iter();
                let shown: f64 = shown.map(|row| mean(&row[role])).sum();
                let omitted = answer["omitted"][role].as_f64().expect("a number");
                assert_eq!((shown + omitted) / total, 1.0, "{answer}");
                assert_eq!(total, 1_000_000.0 + other);
            }
        }
    }

    #[test]
    fn bytes_grow_and_time_slows() {
        for (weighed, words) in [
            (Some((Unit::Bytes, "blocks")), ["more", "less"]),
            (TIME, ["slower", "faster"]),
            (None, ["slower", "faster"]),
        ] {
            let (few, many) = (side(500_000, weighed), side(1_500_000, weighed));
            for ((base, new), word) in [(&few, &many), (&many, &few)].into_iter().zip(words) {
                let comparison = compare(base, new, Method::default());
                let diff = Diff {
                    base,
                    new,
                    by: By::Credited,
                    comparison: &comparison,
                    filters: Vec::new(),
                    full_names: false,
                };
                let rows = csv_rows(&diff);
                let row = rows.iter().find(|row| row[8] == "other");
                assert_eq!(row.map(|row| row[7].as_str()), Some(word), "{weighed:?}");
            }
        }
    }
}
