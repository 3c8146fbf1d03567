//! Whether new recordings may be merged: growth, budgets, nothing new above.
//!
//! In: [`Rule`]s, the runs, their comparison if there is a base. Out: a line for each rule, and one of three results. A rule of
//! growth fails by its threshold and by significance together, after the common factor or in plain seconds; a budget by the mean
//! share less its uncertainty. What grew from nothing is beyond every limit. What cannot be decided is not passed: a gate is closed
//! by too few runs, too.

use std::collections::BTreeSet;

use super::compare::{Comparison, Interval, Row, Together, Verdict};
use super::facts::Made;
use super::runs::{Run, Weight};
use super::significance::LARGE;
use super::stats::t_95;
use crate::functions::Identity;
use crate::functions::kinds::Kind;
use crate::profile::Ring;
use crate::unit::Unit;

/// What is asked.
#[derive(Debug, Clone)]
pub enum Rule {
    /// Total CPU grows by at most so many per cent.
    TotalGrowth(f64),
    /// Functions that match grow by at most so much together; the text's number in [`Run::groups`].
    Growth(usize, String, f64),
    /// No function grows by more.
    AnyGrowth(f64),
    /// Functions that match have at most so many per cent.
    MaxShare(usize, String, f64),
    /// A kind or library has at most so many per cent by itself.
    MaxPart(String, f64),
    /// No function without a partner has more than so many per cent.
    NoNew(f64),
}

impl Rule {
    /// Why it makes no sense without recordings of the base; `None` if it does.
    #[must_use]
    pub fn needs_base(&self) -> Option<String> {
        let option = match self {
            Self::TotalGrowth(_) | Self::Growth(..) => "--max-growth",
            Self::AnyGrowth(_) => "--any-growth",
            Self::NoNew(_) => "--no-new",
            Self::MaxShare(..) | Self::MaxPart(..) => return None,
        };
        Some(format!(
            "{option} needs recordings of the base: BASE... --to NEW..."
        ))
    }
}

/// How a rule went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Kept.
    Ok,
    /// Worth knowing.
    Note,
    /// It speaks against the answer.
    Warn,
    /// It cannot be told.
    Undecided,
    /// Broken.
    Fail,
}

impl Grade {
    /// As it is printed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Undecided => "undecided",
            Self::Fail => "FAIL",
        }
    }
}

/// How all went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All rules are kept.
    Pass,
    /// One is broken.
    Fail,
    /// None is known to be broken, but not all could be told.
    Undecided,
}

impl Outcome {
    /// By the lines: a warning closes the gate, too, if that was asked for.
    #[must_use]
    pub fn of(lines: &[Line], is_strict: bool) -> Self {
        let has = |grade: Grade| lines.iter().any(|line| line.grade == grade);
        if has(Grade::Fail) || is_strict && has(Grade::Warn) {
            Self::Fail
        } else if has(Grade::Undecided) {
            Self::Undecided
        } else {
            Self::Pass
        }
    }

    /// As it is printed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// How it went.
    pub grade: Grade,
    /// The rule's word.
    pub rule: String,
    /// What was found, in words.
    pub text: String,
    /// The number that was held against the limit.
    pub value: Option<f64>,
    /// The limit, in per cent.
    pub limit: Option<f64>,
}

/// Least number of runs on each side for rules about growth.
const ENOUGH: usize = 3;
/// Least share of the weight of either side in functions of both.
const MATCHED: f64 = 0.1;

/// Judges all rules.
///
/// # Errors
/// When a rule matches nothing, unless that is allowed, or needs a base that is not there.
pub fn judge(
    rules: &[Rule],
    base: &[Run],
    new: &[Run],
    comparison: Option<&Comparison>,
    allow_missing: bool,
) -> Result<Vec<Line>, String> {
    let judge = Judge {
        base,
        new,
        comparison,
        allow_missing,
    };
    let mut lines: Vec<Line> = comparison.and_then(common_factor).into_iter().collect();
    for rule in rules {
        lines.extend(judge.rule(rule)?);
    }
    Ok(lines)
}

/// Why rules about growth cannot be decided, if so.
#[must_use]
pub fn undecided(comparison: &Comparison) -> Option<String> {
    let (base, new) = comparison.runs;
    if base.min(new) >= ENOUGH {
        return unmatched(comparison);
    }
    let plural = if base == 1 { "" } else { "s" };
    let runs = if base == new {
        format!("{base} run{plural} of each")
    } else {
        format!("{base} run{plural} of base, {new} of new")
    };
    Some(format!("{runs}; record {ENOUGH} or more"))
}

/// That most functions of one side are not in the other.
fn unmatched(comparison: &Comparison) -> Option<String> {
    let (base, new) = comparison.matched;
    (base.min(new) < MATCHED).then(|| {
        format!(
            "in functions that only one side has: {:.0}% of base and {:.0}% of new; other names, other programs?",
            100.0 * (1.0 - base),
            100.0 * (1.0 - new)
        )
    })
}

/// That all functions grew together by more than runs of one side differ: the program or the machine, nobody can tell.
fn common_factor(comparison: &Comparison) -> Option<Line> {
    let growth = 100.0 * (comparison.factor - 1.0);
    let percent = |factor: f64| 100.0 * (factor - 1.0);
    let (low, high) = comparison.explained;
    (!comparison.is_explained()).then(|| Line {
        grade: Grade::Warn,
        rule: "common-factor".to_owned(),
        text: format!(
            "{growth:+.0}%: the program's or the machine's; runs of one side explain {:+.0}% to {:+.0}%",
            percent(low),
            percent(high)
        ),
        value: Some(growth),
        limit: None,
    })
}

/// Rows of functions that became slower, or are new, with what is said of them.
#[must_use]
pub fn grown(comparison: &Comparison) -> Vec<(usize, String)> {
    let rows = comparison.rows.iter().enumerate();
    let told = |row: &Row| match (row.verdict, row.ratio) {
        (Some(Verdict::Slower), Some(ratio)) => Some(change(ratio)),
        (Some(Verdict::New), _) => Some("new".to_owned()),
        _ => None,
    };
    rows.filter_map(|(at, row)| Some((at, told(row)?)))
        .collect()
}

struct Judge<'r> {
    base: &'r [Run],
    new: &'r [Run],
    comparison: Option<&'r Comparison>,
    allow_missing: bool,
}

impl Judge<'_> {
    fn rule(&self, rule: &Rule) -> Result<Vec<Line>, String> {
        let compared = || {
            self.comparison
                .ok_or_else(|| rule.needs_base().unwrap_or_default())
        };
        match rule {
            Rule::TotalGrowth(limit) => Ok(vec![self.total_growth(*limit, compared()?)]),
            Rule::Growth(group, text, limit) => {
                Ok(vec![self.growth(*group, text, *limit, compared()?)?])
            }
            Rule::AnyGrowth(limit) => Ok(self.any_growth(*limit, compared()?)),
            Rule::NoNew(limit) => Ok(self.no_new(*limit, compared()?)),
            Rule::MaxShare(group, text, limit) => {
                self.require_one("--max-share", text, *group)?;
                let line = self.budget(text, |run| run.groups[*group].weight, *limit);
                Ok(vec![self.doubted(line, *group)])
            }
            Rule::MaxPart(text, limit) => {
                // A kind without a sample has nothing.
                let is_kind = text.starts_with("kind:");
                self.require("--max-share", text, |run| {
                    is_kind || part_weight(run, text).is_some()
                })?;
                let weight = |run: &Run| part_weight(run, text).unwrap_or_default();
                Ok(vec![self.budget(text, weight, *limit)])
            }
        }
    }

    /// A rule about something that is in no recording is a mistake.
    fn require(&self, rule: &str, text: &str, is_in: impl Fn(&Run) -> bool) -> Result<(), String> {
        if self.allow_missing || self.base.iter().chain(self.new).any(is_in) {
            return Ok(());
        }
        Err(format!("{rule} {text}: nothing matches (--allow-missing)"))
    }

    /// The same of a rule about functions; a name with a gap has to be of one, or the sum of several would be judged.
    fn require_one(&self, rule: &str, text: &str, group: usize) -> Result<(), String> {
        self.require(rule, text, |run| run.groups[group].is_there)?;
        let runs = self.base.iter().chain(self.new);
        let may_be: BTreeSet<&Identity> = runs.flat_map(|run| &run.groups[group].may_be).collect();
        match may_be.len() {
            0 | 1 => Ok(()),
            count => Err(format!(
                "{rule} {text}: {count} functions have such a name (pjit peek shows them)"
            )),
        }
    }

    /// What the new runs give to something, against a limit.
    fn budget(&self, text: &str, weight: impl Fn(&Run) -> Weight, limit: f64) -> Line {
        let name = format!("max-share {text}");
        if text == "kind:kernel" && self.new.iter().any(|run| run.facts.ring == Ring::User) {
            let why = "the kernel's part was not recorded (:u)".to_owned();
            return line(Grade::Undecided, name, why, None, limit);
        }
        let mut line = budget(&name, &weight, self.new, limit);
        if let Some(unit) = self.unit() {
            let mean = |measure: &dyn Fn(&Run) -> u64| {
                let weights = self.new.iter().map(|run| measure(run) as f64);
                shown(unit, weights.sum::<f64>() / self.new.len() as f64)
            };
            let of = mean(&|run| weight(run).count.period);
            let all = mean(&|run| run.total.period);
            line.text.push_str(&format!("; {of} of {all}"));
        }
        line
    }

    /// What weights are, where they are no periods: then they are told, and not their shares alone.
    fn unit(&self) -> Option<Unit> {
        Some(self.new.first()?.facts.weighed?.0)
    }

    /// What a growth is of that is not measured by what all have grown by.
    fn plainly(&self) -> &'static str {
        match self.unit() {
            None | Some(Unit::Nanoseconds) => "in seconds",
            Some(_) => "as it is",
        }
    }

    /// `; 1.00 MiB -> 1.20 MiB` behind a growth, for the same runs.
    fn amounts(&self, (base, new): (f64, f64)) -> String {
        let told = |unit| format!("; {} -> {}", shown(unit, base), shown(unit, new));
        self.unit().map_or_else(String::new, told)
    }

    /// What grew from nothing: `new: 0 -> 4.00 s`.
    fn grown_from_nothing(&self, new: f64) -> String {
        let is_time = self.new.first().is_some_and(|run| run.facts.is_time());
        let of_event = if is_time {
            Unit::Nanoseconds
        } else {
            Unit::Count
        };
        format!("new: 0 -> {}", shown(self.unit().unwrap_or(of_event), new))
    }

    fn total_growth(&self, limit: f64, comparison: &Comparison) -> Line {
        let name = "max-growth total".to_owned();
        let ratio = comparison.total_ratio;
        let growth = 100.0 * (ratio.value - 1.0);
        // What the total is does not depend on names.
        let has_few = comparison.runs.0.min(comparison.runs.1) < ENOUGH;
        let (grade, why) = if has_few {
            (Grade::Undecided, FEW)
        } else {
            let is_broken = comparison.total_p <= ONE_SIDED;
            graded(growth, limit, is_broken, undecided(comparison).is_some())
        };
        let amounts = self.amounts(comparison.totals);
        let text = format!("{}, limit +{limit}%{why}{amounts}", change(ratio));
        line(grade, name, text, Some(growth), limit)
    }

    /// Functions that match, as if they were one.
    fn growth(
        &self,
        group: usize,
        text: &str,
        limit: f64,
        comparison: &Comparison,
    ) -> Result<Line, String> {
        self.require_one("--max-growth", text, group)?;
        let name = format!("max-growth {text}");
        let found = comparison.of_named(self.base, self.new, |run| run.groups[group].weight);
        let is_small = |weight: f64, total: f64| weight <= 0.0 || weight < LARGE * total;
        let (weights, totals) = (found.means, comparison.totals);
        if is_small(weights.0, totals.0) && is_small(weights.1, totals.1) {
            let is_anywhere = weights.0 + weights.1 > 0.0;
            let reason = if is_anywhere {
                "too small to be tested"
            } else {
                "nothing matches"
            };
            return Ok(line(Grade::Note, name, reason.to_owned(), None, limit));
        }
        if let Some(why) = undecided(comparison) {
            let told = found
                .after
                .0
                .map_or_else(|| self.grown_from_nothing(found.means.1), change);
            let message = format!("{told}, limit +{limit}%; {why}");
            return Ok(line(Grade::Undecided, name, message, None, limit));
        }
        let line = self.grown(name, &found, limit, comparison);
        Ok(self.doubted(line, group))
    }

    /// A rule that is broken, and is undecided where the time may be another function's.
    fn doubted(&self, mut line: Line, group: usize) -> Line {
        let mut runs = self.base.iter().chain(self.new);
        let folded = runs.find_map(|run| run.groups[group].folded.as_ref());
        if let Some((name, other)) = folded.filter(|_| line.grade == Grade::Fail) {
            line.grade = Grade::Undecided;
            line.text.push_str(&format!("; {name}{}", shared(other)));
        }
        line
    }

    /// A rule about functions that were asked for by name.
    fn grown(&self, name: String, found: &Together, limit: f64, comparison: &Comparison) -> Line {
        let is_significant = |p: f64| p / 2.0 <= ONE_SIDED;
        let (Some(ratio), Some(plain)) = (found.after.0, found.in_seconds.0) else {
            let is_new = is_significant(found.after.1);
            let (grade, why) = graded(f64::INFINITY, limit, is_new, false);
            let new = self.grown_from_nothing(found.means.1);
            return line(
                grade,
                name,
                format!("{new}, limit +{limit}%{why}"),
                None,
                limit,
            );
        };
        let growth = |interval: Interval| 100.0 * (interval.value - 1.0);
        let is_broken = |interval: Interval, p: f64| growth(interval) > limit && is_significant(p);
        let in_seconds = is_broken(plain, found.in_seconds.1);
        let amounts = self.amounts(found.means);
        let plainly = self.plainly();
        if in_seconds && !is_broken(ratio, found.after.1) {
            let plain_text = change(plain);
            let text = format!("{plain_text} {plainly}, limit +{limit}%{amounts}");
            return line(Grade::Fail, name, text, Some(growth(plain)), limit);
        }
        let is_significant = is_significant(found.after.1);
        let (grade, why) = graded(growth(ratio), limit, is_significant, false);
        let seconds = if comparison.is_explained() {
            String::new()
        } else {
            format!("; {} {plainly}", change(plain))
        };
        let text = format!("{}, limit +{limit}%{why}{seconds}{amounts}", change(ratio));
        line(grade, name, text, Some(growth(ratio)), limit)
    }

    fn any_growth(&self, limit: f64, comparison: &Comparison) -> Vec<Line> {
        let name = "any-growth".to_owned();
        let undecided = undecided(comparison);
        let undecided = undecided.or_else(|| {
            (comparison.tested == 0).then(|| "no function is large enough to be tested".to_owned())
        });
        if let Some(why) = undecided {
            return vec![line(Grade::Undecided, name, why, None, limit)];
        }
        let growth = |ratio: Interval| 100.0 * (ratio.value - 1.0);
        let total = comparison.totals.1.max(comparison.totals.0);
        let fail = |row: &Row, text: String, value: Option<f64>| {
            let (grade, text) = broken(row, text);
            line(grade, name.clone(), text, value, limit)
        };
        let mut lines = Vec::new();
        // What takes longer only because all does.
        let mut with_all: Vec<(&Row, Interval)> = Vec::new();
        for row in &comparison.rows {
            let short = &row.called.label;
            let amounts = self.amounts(row.means);
            if row.verdict == Some(Verdict::New) {
                let new = self.grown_from_nothing(row.means.1);
                lines.push(if row.is_unclear {
                    let text = format!("{short} {new}{NAMESAKES}");
                    line(Grade::Undecided, name.clone(), text, None, limit)
                } else {
                    fail(row, format!("{short} {new}, limit +{limit}%"), None)
                });
                continue;
            }
            let is_large = row.means.1 >= LARGE * total;
            if row.is_unsure && is_large {
                let grown = row.ratio.map(change).unwrap_or_default();
                let text = format!("{short} {grown}{NAMESAKES}");
                lines.push(line(Grade::Undecided, name.clone(), text, None, limit));
                continue;
            }
            let slower = row.ratio.filter(|ratio| {
                row.verdict == Some(Verdict::Slower) && growth(*ratio) > limit && is_large
            });
            if let Some(ratio) = slower {
                let text = format!("{short} {}, limit +{limit}%{amounts}", change(ratio));
                lines.push(fail(row, text, Some(growth(ratio))));
                continue;
            }
            if row.is_several && is_large {
                let text = format!("{short}: several functions, which nothing tells apart");
                lines.push(line(Grade::Undecided, name.clone(), text, None, limit));
                continue;
            }
            let plain = row.in_seconds.filter(|plain| {
                row.seconds_q <= 2.0 * ONE_SIDED && growth(*plain) > limit && is_large
            });
            with_all.extend(plain.map(|plain| (row, plain)));
        }
        // Those come first of which it is known whose time it is.
        with_all.sort_by_key(|(row, _)| row.folded.is_some());
        if let [(row, plain), rest @ ..] = with_all.as_slice() {
            let short = &row.called.label;
            let more = match rest.len() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let text = format!(
                "{short} {} {}{more}, with all others; limit +{limit}%",
                change(*plain),
                self.plainly()
            );
            lines.push(fail(row, text, Some(growth(*plain))));
        }
        if lines.is_empty() {
            let is_more = match self.unit() {
                None | Some(Unit::Nanoseconds) => "is slower",
                Some(_) => "has grown",
            };
            let text = format!(
                "no function {is_more} by more than {limit}%, of {} tested",
                comparison.tested
            );
            return vec![line(Grade::Ok, name, text, None, limit)];
        }
        lines
    }

    fn no_new(&self, limit: f64, comparison: &Comparison) -> Vec<Line> {
        let name = "no-new".to_owned();
        if let Some(why) = unmatched(comparison) {
            return vec![line(Grade::Undecided, name, why, None, limit)];
        }
        let is_above = |weight: &u64, run: &Run| {
            100.0 * *weight as f64 / run.total.period.max(1) as f64 > limit
        };
        // Those that are too small to be tested may be above a small limit.
        let tested = comparison.rows.iter();
        let new = tested
            .chain(&comparison.small_new)
            .filter(|row| row.sides == (false, true) && row.is_own);
        let lines: Vec<Line> = new
            .filter(|row| {
                let above = row
                    .new
                    .iter()
                    .zip(self.new)
                    .filter(|(weight, run)| is_above(weight, run))
                    .count();
                2 * above >= self.new.len()
            })
            .map(|row| {
                let share = 100.0 * row.means.1 / comparison.totals.1.max(1.0);
                let told = |unit| format!("; {}", shown(unit, row.means.1));
                let amount = self.unit().map_or_else(String::new, told);
                let renamed = row
                    .renamed
                    .as_ref()
                    .map_or(String::new(), |i| format!("; renamed? {}", i.label));
                let short = &row.called.label;
                if row.is_unclear {
                    let text = format!("{short} {share:.1}%{NAMESAKES}");
                    return line(Grade::Undecided, name.clone(), text, Some(share), limit);
                }
                let text = format!("{short} {share:.1}%, limit {limit}%{amount}{renamed}");
                let (grade, text) = broken(row, text);
                line(grade, name.clone(), text, Some(share), limit)
            })
            .collect();
        if lines.is_empty() {
            let text = format!("no new own function above {limit}%");
            return vec![line(Grade::Ok, name, text, None, limit)];
        }
        lines
    }
}

/// A rule that a row breaks, if it is known whose time that is.
fn broken(row: &Row, text: String) -> (Grade, String) {
    match &row.folded {
        Some(other) => (Grade::Undecided, text + &shared(other)),
        None => (Grade::Fail, text),
    }
}

/// What stands behind a function, or a package, whose time may be another one's.
fn shared(other: &str) -> String {
    format!("; its code is that of {other}, too: nothing tells whose time it is")
}

/// Probability of a growth by chance from which it counts.
const ONE_SIDED: f64 = 0.025;
/// What stands behind a function that may be one of those that the base alone has.
const NAMESAKES: &str = "; nothing tells which of its name it is in the base";
/// What stands behind a growth that nobody can judge.
const FEW: &str = "; fewer than 3 runs of each cannot tell";

/// How a growth does against its limit, and why.
fn graded(growth: f64, limit: f64, is_significant: bool, is_open: bool) -> (Grade, &'static str) {
    if growth > limit && is_significant {
        (Grade::Fail, "")
    } else if is_open {
        (Grade::Undecided, "; too little is in functions of both")
    } else if growth > limit {
        (Grade::Note, "; not significant")
    } else {
        (Grade::Ok, "")
    }
}

fn line(grade: Grade, rule: String, text: String, value: Option<f64>, limit: f64) -> Line {
    Line {
        grade,
        rule,
        text,
        value,
        limit: Some(limit),
    }
}

/// A mean as people read it.
fn shown(unit: Unit, mean: f64) -> String {
    unit.human(mean.round() as u64)
}

/// Whether it is the word of a kind.
#[must_use]
pub fn is_kind(word: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.word() == word)
}

/// `kind:kernel`, and `lib:libc` for `libc.so.6`, too.
fn part_weight(run: &Run, text: &str) -> Option<Weight> {
    let exact = run.shares.get(text).copied();
    exact.or_else(|| {
        let begins = |label: &str| {
            let rest = label.strip_prefix(text);
            text.starts_with("lib:") && rest.is_some_and(|rest| rest.starts_with(['.', '-']))
        };
        let found = run.shares.iter().filter(|(label, _)| begins(label));
        found
            .map(|(_, weight)| *weight)
            .reduce(|sum, weight| sum.and(weight))
    })
}

/// The mean share against a limit: above it, it is broken where chance would not explain it, and undecided where it would.
/// What was recorded one by one has no uncertainty but from run to run.
fn budget(name: &str, weight: &impl Fn(&Run) -> Weight, runs: &[Run], limit: f64) -> Line {
    let n = runs.len() as f64;
    let total = |run: &Run| run.total.period.max(1) as f64;
    let share = |run: &Run| weight(run).count.period as f64 / total(run);
    let shares: Vec<f64> = runs.iter().map(|run| 100.0 * share(run)).collect();
    let mean = shares.iter().sum::<f64>() / n;
    // The variance of a part of a sum of which either half is a sum of samples.
    let sampled = |run: &Run| {
        let (p, squares) = (share(run).clamp(0.0, 1.0), weight(run).squares);
        let others = run.squares - squares;
        // Where no sample was met, one may be missing: none in 40 is not 0 %.
        let one = run.squares / run.total.samples.max(1) as f64;
        let variance = (1.0 - p).powi(2) * squares.max(one) + p * p * others.max(one);
        match run.facts.made {
            Made::Sampled => 1e4 * variance / total(run).powi(2),
            Made::Each | Made::Whole => 0.0,
        }
    };
    let prior = runs.iter().map(sampled).sum::<f64>() / n;
    let squares: f64 = shares.iter().map(|percent| (percent - mean).powi(2)).sum();
    let degrees = 4.0 + n - 1.0;
    let half = t_95(degrees) * ((4.0 * prior + squares) / degrees / n).sqrt();
    let (grade, why) = match mean {
        mean if mean - half > limit => (Grade::Fail, ""),
        mean if mean > limit => (Grade::Undecided, "; it may be chance"),
        _ => (Grade::Ok, ""),
    };
    let text = format!("{mean:.1}% +-{half:.1}, limit {limit}%{why}");
    line(grade, name.to_owned(), text, Some(mean), limit)
}

/// `+21% [+12, +31]`
#[must_use]
pub fn change(ratio: Interval) -> String {
    let percent = |value: f64| 100.0 * (value - 1.0);
    format!(
        "{:+.0}% [{:+.0}, {:+.0}]",
        percent(ratio.value),
        percent(ratio.low),
        percent(ratio.high)
    )
}

#[cfg(test)]
mod tests {
    use super::super::runs::Group;
    use super::*;
    use crate::functions::Identity;
    use crate::functions::tally::Count;
    use crate::questions::compare::{Method, compare};
    use crate::questions::runs::Part;
    use crate::runtimes::CleanName;

    fn run(share: u64) -> Run {
        let of = |period| Count {
            period,
            samples: period,
        };
        let weight = Weight {
            count: of(share),
            squares: share as f64,
        };
        let mut run = Run {
            total: of(1000),
            squares: 1000.0,
            groups: vec![Group {
                weight,
                is_there: true,
                ..Group::default()
            }],
            ..Run::default()
        };
        let rest = Part {
            own: of(400),
            inclusive: of(400),
            credited: of(400),
            is_own: true,
            squares: [400.0; 2],
        };
        let name = CleanName {
            name: "rest".to_owned(),
            ..CleanName::default()
        };
        let object = String::new();
        let identity = Identity {
            object,
            name,
            ..Identity::default()
        };
        run.functions.insert(identity, rest);
        run.shares.insert("lib:libc.so.6".to_owned(), weight);
        run.shares.insert("kind:kernel".to_owned(), weight);
        run
    }

    fn grade(rule: Rule, base: &[Run], new: &[Run]) -> Result<Grade, String> {
        let comparison = (!base.is_empty()).then(|| compare(base, new, Method::default()));
        let lines = judge(&[rule], base, new, comparison.as_ref(), false)?;
        Ok(lines.iter().map(|line| line.grade).max().expect("a line"))
    }

    #[test]
    fn budgets_fail_beyond_their_uncertainty() {
        let new = [run(300), run(310), run(290)];
        for (limit, wanted) in [
            (40.0, Grade::Ok),
            (29.9, Grade::Undecided),
            (20.0, Grade::Fail),
        ] {
            let rules = [
                Rule::MaxShare(0, "f".to_owned(), limit),
                Rule::MaxPart("lib:libc".to_owned(), limit),
                Rule::MaxPart("kind:kernel".to_owned(), limit),
            ];
            for rule in rules {
                assert_eq!(grade(rule.clone(), &[], &new), Ok(wanted), "{rule:?}");
            }
        }
        assert!(grade(Rule::MaxPart("lib:x".to_owned(), 1.0), &[], &new).is_err());
        // What was not met may be there.
        let rule = Rule::MaxPart("kind:kernel".to_owned(), 0.1);
        let lines = judge(&[rule], &[], &[run(0)], None, false).expect("a line");
        assert!(
            lines[0].text.starts_with("0.0% +-0.3, limit 0.1%"),
            "{}",
            lines[0].text
        );
        assert!(grade(Rule::NoNew(1.0), &[], &new).is_err());
    }

    /// Runs of weights tell what they weigh beside their shares.
    #[test]
    fn weights_are_told_with_their_unit() {
        let side = |weight: u64| -> Vec<Run> {
            let mut run = run(weight);
            run.facts.weighed = Some((Unit::Bytes, "blocks"));
            vec![run; 3]
        };
        let text = |rule: Rule, base: &[Run], new: &[Run]| {
            let found = compare(base, new, Method::default());
            let lines = judge(&[rule], base, new, Some(&found), false);
            lines.expect("the rule fits").swap_remove(0).text
        };
        let (base, new) = (side(300), side(600));
        let share = text(Rule::MaxShare(0, "f".to_owned(), 70.0), &base, &new);
        assert!(share.ends_with(", limit 70%; 600 B of 1000 B"), "{share}");
        let growth = text(Rule::Growth(0, "f".to_owned(), 5.0), &base, &new);
        assert!(growth.ends_with(", limit +5%; 300 B -> 600 B"), "{growth}");
        let total = text(Rule::TotalGrowth(5.0), &base, &new);
        assert!(total.ends_with(", limit +5%; 1000 B -> 1000 B"), "{total}");
        let any = text(Rule::AnyGrowth(5.0), &base, &new);
        assert!(any.starts_with("no function has grown by more"), "{any}");
        let plain = text(
            Rule::MaxShare(0, "f".to_owned(), 70.0),
            &[run(300)],
            &[run(600)],
        );
        assert!(plain.ends_with(", limit 70%"), "{plain}");
    }

    #[test]
    fn growth_needs_three_runs_and_significance() {
        let of = |share, runs| vec![run(share); runs];
        let growth = || Rule::Growth(0, "f".to_owned(), 5.0);
        assert_eq!(
            grade(growth(), &of(300, 2), &of(600, 2)),
            Ok(Grade::Undecided)
        );
        assert_eq!(grade(growth(), &of(300, 3), &of(600, 3)), Ok(Grade::Fail));
        assert_eq!(grade(growth(), &of(300, 3), &of(301, 3)), Ok(Grade::Ok));
        assert_eq!(
            grade(Rule::TotalGrowth(5.0), &of(300, 3), &of(300, 3)),
            Ok(Grade::Ok)
        );
        assert_eq!(
            grade(Rule::AnyGrowth(5.0), &of(300, 1), &of(300, 3)),
            Ok(Grade::Undecided)
        );
    }
}
