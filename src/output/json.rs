//! Answers as JSON: one object, by `docs/schema/pjit-2.schema.json`, in which keys are only ever added.
//!
//! Periods and counts are integers, shares numbers of at most six digits, what has no number is null.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::text::acts;
use super::within::within;
use crate::functions::payers::{Activity, Group, PayerId, Payment, Spending};
use crate::functions::tally::{Count, Numbers};
use crate::functions::{Basis, Function, FunctionId, Functions};
use crate::ids::Idx;
use crate::profile::{EventId, Predictions, Profile};
use crate::questions::budget::Budget;
use crate::questions::facts::Facts;
use crate::questions::hosts::{Hosts, Unlike};
use crate::questions::summary::{PaidLine, Share, Summary};
use crate::report::percent;
use crate::runtimes::Ecosystem;

/// What answers hold besides what they answer.
#[derive(Debug, Default)]
pub struct Common {
    /// See [`quality`].
    pub quality: Option<Value>,
    /// Edges, if they were asked for.
    pub edges: Option<Vec<(FunctionId, FunctionId, Count)>>,
    /// Filters, as they were given.
    pub filters: Vec<String>,
    /// What stderr was told.
    pub warnings: Vec<String>,
}

/// The version of the schema. It goes up when the meaning of a key changes.
pub const SCHEMA: &str = "pjit/2";

/// A number of at most six digits; null for none.
#[must_use]
pub fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let text = format!("{value:.5e}");
    text.parse::<f64>().map_or(Value::Null, Value::from)
}

/// A mean of weights, to a thousandth of the event's unit.
#[must_use]
pub fn mean(weight: f64) -> Value {
    let rounded = (weight * 1000.0).round() / 1000.0;
    // An empty sum of numbers is -0.
    if rounded.is_finite() {
        Value::from(rounded + 0.0)
    } else {
        Value::Null
    }
}

/// Part of a whole, from 0 to 1.
#[must_use]
pub fn share(part: u64, total: u64) -> Value {
    number(percent(part, total) / 100.0)
}

/// Writes what `value` makes for a number of rows, the largest that keeps the budget; all rows without one.
///
/// # Errors
/// When `out` cannot be written, or the smallest answer is larger than the budget.
pub fn write(
    value: &dyn Fn(usize) -> Value,
    budget: Option<Budget>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let written = |rows: usize| {
        let text = serde_json::to_string(&value(rows)).map_err(io::Error::other)?;
        Ok(escaped(&text).into_bytes())
    };
    out.write_all(&within(
        &written,
        budget.unwrap_or(Budget::Lines(Budget::MAX_LINES)),
    )?)
}

/// With a newline behind, and what a terminal would act on as an escape; the C0 characters already are.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if acts(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    text
}

/// The keys that every answer begins with.
#[must_use]
pub fn head(verb: &str, facts: &[(&Facts, Option<&str>)]) -> Value {
    let recordings: Vec<Value> = facts
        .iter()
        .map(|(facts, role)| recording(facts, *role))
        .collect();
    json!({
        "schema": SCHEMA,
        "verb": verb,
        "version": env!("CARGO_PKG_VERSION"),
        "recordings": recordings,
    })
}

fn recording(facts: &Facts, role: Option<&str>) -> Value {
    let mut recording = json!({
        "path": facts.path,
        "role": role,
        "program": facts.program,
        "pid": facts.pid.cast_signed(),
        "command": facts.command,
        "arch": facts.arch,
        "start": facts.start_ns.map(|ns| ns as f64 / 1e9),
        "seconds": facts.wall_ns.map(|ns| number(ns as f64 / 1e9)),
        "idle": facts.idle.count.period,
        "check": if facts.is_fit { "fit" } else { "unfit" },
    });
    if let Some(used) = facts.used_ns {
        recording["cpu_seconds"] = json!(number(used as f64 / 1e9));
    }
    if !facts.parts.is_empty() {
        let parts = facts.parts.iter().map(|part| {
            json!({
                "path": part.path,
                "name": part.name,
                "host": part.host,
                "arch": part.arch,
                "samples": part.samples,
                "whole": part.whole.map(number),
            })
        });
        recording["parts"] = parts.collect();
    }
    recording
}

/// The event that was counted.
#[must_use]
pub fn event(facts: &Facts, total: Count) -> Value {
    json!({
        "name": facts.event,
        "unit": facts.unit(),
        "samples": total.samples,
        "total": total.period,
        "lost": facts.lost,
    })
}

/// How far a profile of an event can be trusted.
#[must_use]
pub fn quality(profile: &Profile, event: EventId) -> Value {
    let quality = &profile.quality;
    let figures = quality.figures(Some(event));
    let stacks = figures.walked();
    // Of stacks as the kernel recorded them nobody knows.
    let is_known = stacks.walked > 0 && stacks.recorded == 0;
    let mut answer = json!({
        "complete": if is_known { share(stacks.complete, stacks.walked) } else { Value::Null },
        "unresolved": share(figures.unresolved_samples, figures.samples),
        "doubtful": share(figures.doubtful_samples, figures.samples),
        "dumps": quality.dumps,
        "kernel": if quality.kernel.is_empty() { Value::Null } else { quality.kernel.clone().into() },
    });
    // Only where that was asked for: it is an inference.
    if figures.stitched() > 0 {
        let stitched = share(figures.stitched(), stacks.walked);
        let error = number(quality.stitch_error);
        extend(
            &mut answer,
            json!({"stitched": stitched, "stitch_error": error}),
        );
    }
    answer
}

/// What was found to be wrong, by `check` and on the way.
#[must_use]
pub fn warnings(facts: &[&Facts], common: &Common) -> Value {
    let checks = facts.iter().flat_map(|facts| &facts.findings);
    let checks = checks.map(|trouble| json!({"code": trouble.code, "text": trouble.text}));
    let others = common
        .warnings
        .iter()
        .map(|text| json!({"code": "warning", "text": text}));
    checks.chain(others).collect()
}

/// Puts the keys of one object behind those of another.
pub fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// How it was told what is own.
#[must_use]
pub const fn own_rule(basis: Basis) -> &'static str {
    match basis {
        Basis::Name => "name",
        Basis::Path => "path",
        Basis::Rules => "regex",
        Basis::Program => "program",
        Basis::Packages => "packages",
    }
}

/// A function with its numbers.
#[must_use]
pub fn function(function: &Function, numbers: &Numbers) -> Value {
    let name = &function.identity.name;
    json!({
        "id": function.id(),
        "name": name.name,
        "full": function.full,
        "object": function.identity.object,
        "apart": function.apart,
        "kind": function.kind.word(),
        "file": (!name.file.is_empty()).then_some(&name.file),
        "line": (name.line > 0).then_some(name.line),
        "self": numbers.own.period,
        "inclusive": numbers.inclusive.period,
        "credited": numbers.credited.period,
        "samples": numbers.inclusive.samples,
    })
}

/// Edges by the ids of functions.
#[must_use]
pub fn edges(functions: &Functions, edges: &[(FunctionId, FunctionId, Count)]) -> Value {
    let id = |function: &FunctionId| functions.get(*function).id();
    let edge = |(caller, callee, count): &(FunctionId, FunctionId, Count)| {
        json!([id(caller), id(callee), count.period])
    };
    edges.iter().map(edge).collect()
}

/// The answer of `pjit summary`, with so many functions.
#[must_use]
pub fn summary(summary: &Summary, common: &Common, rows: usize) -> Value {
    let facts = &summary.facts;
    let total = summary.unfiltered.period;
    let shares = |shares: &[Share], key: &str| -> Value {
        let one = |s: &Share| json!({key: s.label, "self": s.count.period, "share": share(s.count.period, total)});
        shares.iter().map(one).collect()
    };
    let order = order(summary);
    let spending = &summary.spending;
    // Functions have what the smaller tables leave of the rows.
    let parts = Rows::of(summary, rows);
    let (shown, left) = order.split_at(parts.functions.min(order.len()));
    let mut answer = head("summary", &[(facts, None)]);
    extend(
        &mut answer,
        json!({
            "event": event(facts, summary.unfiltered),
            "quality": common.quality,
            "filters": common.filters,
            "own": {"rule": own_rule(summary.functions.basis), "no_own": share(summary.no_own.period, total)},
            "order": "descending by weight",
            "processes": processes(summary, parts.processes, total),
            "packages": packages(spending, parts.packages, total),
            "nobody": nobody(spending, total),
            "activities": activities(spending, total),
            "lines": lines(summary, parts.lines, total),
            "kinds": shares(&summary.kinds, "kind"),
            "objects": shares(&summary.objects, "object"),
            "threads": shares(&summary.threads, "comm"),
            "functions": shown.iter().map(|id| with_mostly(summary, *id)).collect::<Value>(),
        }),
    );
    if let Some(all) = &common.edges {
        let all = edges(&summary.functions, all);
        extend(&mut answer, json!({"edges": all}));
    }
    if let Some(hosts) = &summary.hosts {
        extend(&mut answer, json!({"unlike": unlike(summary, hosts, rows)}));
    }
    if facts.predictions.are_many() {
        let mispredicted = mispredicted(&facts.predictions);
        extend(&mut answer, json!({"mispredicted": mispredicted}));
    }
    let foreign = summary.foreign.iter().take(parts.functions).map(|row| {
        let id = |function: FunctionId| summary.functions.get(function).id();
        json!([id(row.function), id(row.payer), row.count.period])
    });
    let sum = |part: fn(&Numbers) -> Count| {
        left.iter()
            .map(|id| part(&summary.numbers[id.index()]).period)
            .fold(0, u64::saturating_add)
    };
    let left_out = packages_of(spending).skip(parts.packages);
    let left_out: Vec<u64> = left_out.map(|payment| payment.count.period).collect();
    let paid = left_out
        .iter()
        .fold(0, |so_far: u64, paid| so_far.saturating_add(*paid));
    extend(
        &mut answer,
        json!({
            "foreign": foreign.collect::<Value>(),
            "omitted": {"packages": left_out.len(), "paid": paid, "processes": spending.groups.len().saturating_sub(parts.processes), "lines": summary.lines.len().saturating_sub(parts.lines), "functions": left.len(), "self": sum(|n| n.own), "credited": sum(|n| n.credited)},
            "warnings": warnings(&[facts], common),
        }),
    );
    answer
}

/// How many rows of each table there are.
struct Rows {
    processes: usize,
    packages: usize,
    lines: usize,
    functions: usize,
}

impl Rows {
    /// A sixth for processes, a third for packages, what lines there are of another third, and the rest for functions.
    fn of(summary: &Summary, rows: usize) -> Self {
        let spending = &summary.spending;
        let processes = spending.groups.len().min(rows / 6);
        let packages = packages_of(spending).count().min(rows / 3);
        let lines = summary.lines.len().min(rows / 3);
        Self {
            processes,
            packages,
            lines,
            functions: rows - processes - packages - lines,
        }
    }
}

/// The heaviest of those who pay for something.
fn payers(spending: &Spending, all: &[(PayerId, Count)], most: usize) -> Value {
    let one = |(id, count): &(PayerId, Count)| {
        let payer = &spending.payers[*id];
        json!({
            "ecosystem": payer.ecosystem.map(Ecosystem::word),
            "name": payer.name,
            "weight": count.period,
        })
    };
    all.iter().take(most).map(one).collect()
}

/// What hosts are unlike in.
fn unlike(summary: &Summary, hosts: &Hosts, rows: usize) -> Value {
    let one = |row: &Unlike| {
        json!({
            "host": row.host,
            "function": summary.functions.get(row.function).id(),
            "name": summary.functions.get(row.function).full_name(),
            "there": number(row.here),
            "elsewhere": number(row.elsewhere),
            "ratio": row.ratio.map(|ratio| number(ratio.value)),
            "low": row.ratio.map(|ratio| number(ratio.low)),
            "high": row.ratio.map(|ratio| number(ratio.high)),
            "q": number(row.q),
        })
    };
    hosts.unlike.iter().take(rows).map(one).collect()
}

/// Programs, cgroups or hosts, with those who pay most in them.
fn processes(summary: &Summary, rows: usize, total: u64) -> Value {
    /// Payers that are named.
    const MOST: usize = 3;
    let spending = &summary.spending;
    let hosts = summary.hosts.as_ref();
    let one = |group: &Group| {
        let mut one = json!({
            "name": group.name,
            "processes": group.processes,
            "weight": group.count.period,
            "share": share(group.count.period, total),
            "samples": group.count.samples,
            "payers": payers(spending, &group.payers, MOST),
        });
        if let Some(hosts) = hosts {
            one["recordings"] = hosts.recordings_of(group).into();
        }
        one
    };
    spending.groups.iter().take(rows).map(one).collect()
}

/// Source lines of who pays, where they were asked for.
fn lines(summary: &Summary, rows: usize, total: u64) -> Value {
    let one = |line: &PaidLine| {
        json!({
            "file": line.file,
            "line": line.line,
            "function": summary.functions.get(line.function).id(),
            "package": summary.spending.payers[line.payer].name,
            "weight": line.count.period,
            "share": share(line.count.period, total),
            "samples": line.count.samples,
        })
    };
    summary.lines.iter().take(rows).map(one).collect()
}

/// Those who pay and are packages, the heaviest first.
fn packages_of(spending: &Spending) -> impl Iterator<Item = &Payment> {
    let payments = spending.payments.iter();
    payments.filter(|payment| spending.payers[payment.payer].ecosystem.is_some())
}

fn packages(spending: &Spending, rows: usize, total: u64) -> Value {
    let one = |payment: &Payment| {
        let payer = &spending.payers[payment.payer];
        json!({
            "ecosystem": payer.ecosystem.map(Ecosystem::word),
            "name": payer.name,
            "weight": payment.count.period,
            "share": share(payment.count.period, total),
            "samples": payment.count.samples,
            "activities": doings(payment),
        })
    };
    packages_of(spending).take(rows).map(one).collect()
}

/// What is paid for, with shares of the whole of it.
fn doings(payment: &Payment) -> Value {
    let parts = payment.activities.iter();
    let parts = parts.map(|(name, count)| json!([name, share(count.period, payment.count.period)]));
    parts.collect()
}

/// How well branches before samples were predicted.
fn mispredicted(predictions: &Predictions) -> Value {
    let Predictions { missed, all, worst } = predictions;
    let most = worst.as_ref().map(
        |(name, misses, branches)| json!({"function": name, "mispredicted": misses, "branches": branches}),
    );
    json!({"mispredicted": missed, "branches": all, "share": share(*missed, *all), "most": most})
}

/// What nobody pays for: there are few such rows.
fn nobody(spending: &Spending, total: u64) -> Value {
    let payments = spending.payments.iter();
    let rest = payments.filter(|payment| spending.payers[payment.payer].ecosystem.is_none());
    let one = |payment: &Payment| {
        json!({
            "name": spending.payers[payment.payer].name,
            "weight": payment.count.period,
            "share": share(payment.count.period, total),
            "samples": payment.count.samples,
            "activities": doings(payment),
            "compiled_for": compiled_for(spending, payment),
        })
    };
    rest.map(one).collect()
}

/// For whom a runtime's threads compile, by bytes of code: an estimate. Null where nothing tells.
fn compiled_for(spending: &Spending, payment: &Payment) -> Value {
    /// Packages that are named.
    const MOST: usize = 10;
    let made = &spending.compiled_for;
    if spending.payers[payment.payer].name != "V8" || made.is_empty() {
        return Value::Null;
    }
    let one = |(id, part): &(PayerId, f64)| {
        let payer = &spending.payers[*id];
        json!([
            payer.ecosystem.map(Ecosystem::word),
            payer.name,
            number(*part)
        ])
    };
    made.iter().take(MOST).map(one).collect()
}

fn activities(spending: &Spending, total: u64) -> Value {
    /// Payers of an activity that are named.
    const MOST: usize = 10;
    let one = |activity: &Activity| {
        json!({
            "name": activity.name,
            "weight": activity.count.period,
            "share": share(activity.count.period, total),
            "samples": activity.count.samples,
            "payers": payers(spending, &activity.payers, MOST),
        })
    };
    spending.activities.iter().map(one).collect()
}

/// All functions that weigh anything: own ones by what is credited to them, then the others by self and by inclusive weight.
fn order(summary: &Summary) -> Vec<FunctionId> {
    let ids = (0..summary.numbers.len()).map(FunctionId::from_usize);
    let mut ids: Vec<FunctionId> = ids
        .filter(|id| summary.numbers[id.index()].inclusive.samples > 0)
        .collect();
    ids.sort_by_cached_key(|id| {
        let n = &summary.numbers[id.index()];
        let largest = n.credited.period.max(n.own.period);
        let object = summary.functions.get(*id).identity.object.clone();
        (
            std::cmp::Reverse((largest, n.inclusive.period)),
            summary.labels.get(&summary.functions, *id).to_owned(),
            object,
        )
    });
    ids
}

fn with_mostly(summary: &Summary, id: FunctionId) -> Value {
    let numbers = &summary.numbers[id.index()];
    let mut value = function(summary.functions.get(id), numbers);
    let parts = summary.mostly.get(&id).map_or(&[][..], Vec::as_slice);
    let large = parts
        .iter()
        .filter(|(_, count)| percent(count.period, numbers.credited.period) >= 10.0)
        .take(2);
    let mostly = large.map(|(function, count)| {
        let name = summary.functions.get(*function).identity.name.name.clone();
        json!([name, share(count.period, numbers.credited.period)])
    });
    extend(&mut value, json!({"mostly": mostly.collect::<Value>()}));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits_and_none_is_null() {
        let texts = [0.123_456_789, 1.0, 1234567.0, f64::NAN].map(|n| number(n).to_string());
        assert_eq!(texts, ["0.123457", "1.0", "1234570.0", "null"]);
    }

    #[test]
    fn names_reach_no_terminal_as_control_characters() {
        let text = escaped(&json!({"name": "a\u{1b}\u{9b}\u{202e}\u{7f}"}).to_string());
        assert_eq!(text, "{\"name\":\"a\\u001b\\u009b\\u202e\\u007f\"}\n");
    }
}
