//! Whether new recordings may be merged: growth, budgets, nothing new above.
//!
//! In: [`Rule`]s, the runs, their comparison if there is a base. Out: a line for each rule. A rule of growth fails by its threshold
//! and by significance together; a budget by the mean share less its uncertainty.

use regex::RegexSet;

use super::compare::{Comparison, Interval, Method, SUM, Verdict, compare};
use super::functions::Identity;
use super::runs::{Part, Run};
use super::stats::t_95;
use crate::runtimes::CleanName;
use crate::unit::Unit;

/// What is asked.
#[derive(Debug, Clone)]
pub enum Rule {
    /// Total CPU grows by at most so many per cent.
    TotalGrowth(f64),
    /// Functions that match grow by at most so much together; the expression's number in [`Run::groups`].
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

/// How a rule went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Kept.
    Ok,
    /// Worth knowing.
    Note,
    /// It could not be told.
    Warn,
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
            Self::Fail => "FAIL",
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

/// Judges all rules.
///
/// # Errors
/// When a rule matches nothing, unless that is allowed, or needs a base that is not there.
pub fn judge(
    rules: &[Rule],
    base: &[Run],
    new: &[Run],
    comparison: Option<&Comparison>,
    method: Method,
    allow_missing: bool,
) -> Result<Vec<Line>, String> {
    let judge = Judge {
        base,
        new,
        comparison,
        method,
        allow_missing,
    };
    let mut lines = Vec::new();
    for rule in rules {
        lines.extend(judge.rule(rule)?);
    }
    Ok(lines)
}

struct Judge<'r> {
    base: &'r [Run],
    new: &'r [Run],
    comparison: Option<&'r Comparison>,
    method: Method,
    allow_missing: bool,
}

impl Judge<'_> {
    fn rule(&self, rule: &Rule) -> Result<Vec<Line>, String> {
        match rule {
            Rule::TotalGrowth(limit) => Ok(vec![
                self.total_growth(*limit, self.compared("--max-growth")?),
            ]),
            Rule::Growth(group, text, limit) => {
                self.compared("--max-growth")?;
                Ok(vec![self.growth(*group, text, *limit)?])
            }
            Rule::AnyGrowth(limit) => Ok(self.any_growth(*limit, self.compared("--any-growth")?)),
            Rule::NoNew(limit) => Ok(self.no_new(*limit, self.compared("--no-new")?)),
            Rule::MaxShare(group, text, limit) => {
                self.require(
                    "--max-share",
                    text,
                    self.new.iter().any(|run| run.groups[*group].1),
                )?;
                let weight = |run: &Run| run.groups[*group].0.period;
                Ok(vec![self.budget(text, weight, *limit)])
            }
            Rule::MaxPart(text, limit) => {
                let weight = |run: &Run| part_weight(run, text);
                self.require(
                    "--max-share",
                    text,
                    self.new.iter().any(|run| weight(run).is_some()),
                )?;
                let weight = |run: &Run| weight(run).unwrap_or(0);
                Ok(vec![self.budget(text, weight, *limit)])
            }
        }
    }

    fn compared(&self, rule: &str) -> Result<&Comparison, String> {
        self.comparison
            .ok_or_else(|| format!("{rule} needs recordings of the base: BASE... --to NEW..."))
    }

    fn require(&self, rule: &str, text: &str, is_there: bool) -> Result<(), String> {
        if is_there || self.allow_missing {
            return Ok(());
        }
        Err(format!("{rule} {text}: nothing matches (--allow-missing)"))
    }

    /// What the new runs give to something, against a limit.
    fn budget(&self, text: &str, weight: impl Fn(&Run) -> u64, limit: f64) -> Line {
        let share = |run: &Run| 100.0 * weight(run) as f64 / run.total.period.max(1) as f64;
        let shares: Vec<f64> = self.new.iter().map(share).collect();
        let mut line = budget(&format!("max-share {text}"), &shares, self.new, limit);
        if let Some(unit) = self.unit() {
            let mean = |weight: &dyn Fn(&Run) -> u64| {
                let weights = self.new.iter().map(|run| weight(run) as f64);
                shown(unit, weights.sum::<f64>() / self.new.len() as f64)
            };
            let (of, all) = (mean(&weight), mean(&|run| run.total.period));
            line.text.push_str(&format!("; {of} of {all}"));
        }
        line
    }

    /// What weights are, where they are no periods: then they are told, and not their shares alone.
    fn unit(&self) -> Option<Unit> {
        Some(self.new.first()?.facts.weighed?.0)
    }

    /// `; 1.00 MiB -> 1.20 MiB` behind a growth, for the same runs.
    fn amounts(&self, (base, new): (f64, f64)) -> String {
        let told = |unit| format!("; {} -> {}", shown(unit, base), shown(unit, new));
        self.unit().map_or_else(String::new, told)
    }

    fn has_few(&self) -> bool {
        self.base.len().min(self.new.len()) < ENOUGH
    }

    fn total_growth(&self, limit: f64, comparison: &Comparison) -> Line {
        let is_significant = comparison.total_p <= 0.025;
        let ratio = comparison.total_ratio;
        let means = comparison.totals;
        self.grown("max-growth total", (ratio, means), is_significant, limit)
    }

    /// Functions that match, as if they were one.
    fn growth(&self, group: usize, text: &str, limit: f64) -> Result<Line, String> {
        let all = self.base.iter().chain(self.new);
        self.require(
            "--max-growth",
            text,
            all.clone().any(|run| run.groups[group].1),
        )?;
        let side =
            |runs: &[Run]| -> Vec<Run> { runs.iter().map(|run| as_one(run, group)).collect() };
        let found = compare(&side(self.base), &side(self.new), self.method);
        let row = found.rows.iter().find(|row| row.identity.name.name == SUM);
        let name = format!("max-growth {text}");
        let Some((row, ratio)) = row.and_then(|row| Some((row, row.ratio?))) else {
            return Ok(note(
                name,
                limit,
                "too small to be tested, or not in the base",
            ));
        };
        let is_significant = matches!(row.verdict, Some(Verdict::Slower));
        Ok(self.grown(&name, (ratio, row.means), is_significant, limit))
    }

    fn grown(
        &self,
        name: &str,
        (ratio, means): (Interval, (f64, f64)),
        is_significant: bool,
        limit: f64,
    ) -> Line {
        let growth = 100.0 * (ratio.value - 1.0);
        let is_beyond = growth > limit;
        let (grade, why) = if self.has_few() {
            (Grade::Warn, "; fewer than 3 runs of each cannot tell")
        } else if is_beyond && is_significant {
            (Grade::Fail, "")
        } else if is_beyond {
            (Grade::Note, "; not significant")
        } else {
            (Grade::Ok, "")
        };
        Line {
            grade,
            rule: name.to_owned(),
            text: format!(
                "{}, limit +{limit}%{why}{}",
                change(ratio),
                self.amounts(means)
            ),
            value: Some(growth),
            limit: Some(limit),
        }
    }

    fn any_growth(&self, limit: f64, comparison: &Comparison) -> Vec<Line> {
        let name = "any-growth".to_owned();
        if self.has_few() {
            let text = "fewer than 3 runs of each cannot tell".to_owned();
            return vec![Line {
                grade: Grade::Warn,
                rule: name,
                text,
                value: None,
                limit: Some(limit),
            }];
        }
        let total = comparison.totals.1.max(comparison.totals.0);
        let grown = comparison.rows.iter().filter_map(|row| {
            let ratio = row
                .ratio
                .filter(|ratio| 100.0 * (ratio.value - 1.0) > limit)?;
            let is_large = row.means.1 >= 0.005 * total;
            (row.verdict == Some(Verdict::Slower) && is_large).then_some((row, ratio))
        });
        let lines: Vec<Line> = grown
            .map(|(row, ratio)| Line {
                grade: Grade::Fail,
                rule: name.clone(),
                text: format!(
                    "{} {}, limit +{limit}%{}",
                    row.identity.name.short(),
                    change(ratio),
                    self.amounts(row.means)
                ),
                value: Some(100.0 * (ratio.value - 1.0)),
                limit: Some(limit),
            })
            .collect();
        if lines.is_empty() {
            let is_more = match self.unit() {
                None | Some(Unit::Nanoseconds) => "is slower",
                Some(_) => "has grown",
            };
            let text = format!(
                "no function {is_more} by more than {limit}%, of {} tested",
                comparison.tested
            );
            return vec![Line {
                grade: Grade::Ok,
                rule: name,
                text,
                value: None,
                limit: Some(limit),
            }];
        }
        lines
    }

    fn no_new(&self, limit: f64, comparison: &Comparison) -> Vec<Line> {
        let name = "no-new".to_owned();
        let is_above = |weight: &u64, run: &Run| {
            100.0 * *weight as f64 / run.total.period.max(1) as f64 > limit
        };
        let new = comparison
            .rows
            .iter()
            .filter(|row| row.sides == (false, true) && row.is_own);
        let runs: Vec<&Run> = super::compare::in_order(self.new, comparison.is_paired);
        let lines: Vec<Line> = new
            .filter(|row| {
                let above = row
                    .new
                    .iter()
                    .zip(&runs)
                    .filter(|(weight, run)| is_above(weight, run))
                    .count();
                2 * above >= runs.len()
            })
            .map(|row| {
                let share = 100.0 * row.means.1 / comparison.totals.1.max(1.0);
                let told = |unit| format!("; {}", shown(unit, row.means.1));
                let amount = self.unit().map_or_else(String::new, told);
                let renamed = row
                    .renamed
                    .as_ref()
                    .map_or(String::new(), |i| format!("; renamed? {}", i.name.short()));
                Line {
                    grade: Grade::Fail,
                    rule: name.clone(),
                    text: format!(
                        "{} {share:.1}%, limit {limit}%{amount}{renamed}",
                        row.identity.name.short()
                    ),
                    value: Some(share),
                    limit: Some(limit),
                }
            })
            .collect();
        if lines.is_empty() {
            let text = format!("no new own function above {limit}%");
            return vec![Line {
                grade: Grade::Ok,
                rule: name,
                text,
                value: None,
                limit: Some(limit),
            }];
        }
        lines
    }
}

/// A mean as people read it.
fn shown(unit: Unit, mean: f64) -> String {
    unit.human(mean.round() as u64)
}

/// A run with a function more: those that match, as one.
fn as_one(run: &Run, group: usize) -> Run {
    let weight = run.groups[group].0;
    let mut one = run.clone();
    let worth = |count: u64| count as f64 / run.total.period.max(1) as f64 * run.effective;
    let part = Part {
        own: weight,
        inclusive: weight,
        credited: weight,
        is_own: true,
        effective: [worth(weight.period); 2],
    };
    let name = CleanName {
        name: SUM.to_owned(),
        ..CleanName::default()
    };
    one.functions.insert(
        Identity {
            object: String::new(),
            name,
        },
        part,
    );
    one
}

/// `kind:kernel`, and `lib:libc` for `libc.so.6`, too.
fn part_weight(run: &Run, text: &str) -> Option<u64> {
    let exact = run.shares.get(text).map(|count| count.period);
    exact.or_else(|| {
        let begins = |label: &str| {
            let rest = label.strip_prefix(text);
            text.starts_with("lib:") && rest.is_some_and(|rest| rest.starts_with(['.', '-']))
        };
        let found = run.shares.iter().filter(|(label, _)| begins(label));
        let weights: Vec<u64> = found.map(|(_, count)| count.period).collect();
        (!weights.is_empty()).then(|| {
            weights
                .iter()
                .fold(0_u64, |sum, weight| sum.saturating_add(*weight))
        })
    })
}

/// The mean share, less its uncertainty, against a limit.
fn budget(name: &str, shares: &[f64], runs: &[Run], limit: f64) -> Line {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let samples = runs.iter().map(|run| run.effective).sum::<f64>() / n;
    let p = (mean / 100.0).clamp(0.0, 1.0);
    let prior = 1e4 * p * (1.0 - p) / samples.max(1.0);
    let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    let degrees = 4.0 + n - 1.0;
    let half = t_95(degrees) * ((4.0 * prior + squares) / degrees / n).sqrt();
    let (grade, why) = match mean {
        mean if mean - half > limit => (Grade::Fail, ""),
        mean if mean > limit => (Grade::Note, "; not certain"),
        _ => (Grade::Ok, ""),
    };
    Line {
        grade,
        rule: name.to_owned(),
        text: format!("{mean:.1}% +-{half:.1}, limit {limit}%{why}"),
        value: Some(mean),
        limit: Some(limit),
    }
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

fn note(rule: String, limit: f64, text: &str) -> Line {
    Line {
        grade: Grade::Note,
        rule,
        text: text.to_owned(),
        value: None,
        limit: Some(limit),
    }
}

/// The expressions of the rules, by their numbers.
#[must_use]
pub fn groups(texts: &[String]) -> Vec<RegexSet> {
    texts
        .iter()
        .filter_map(|text| RegexSet::new([text]).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::tally::Count;

    fn run(share: u64) -> Run {
        let of = |period| Count {
            period,
            samples: period,
        };
        let mut run = Run {
            total: of(1000),
            effective: 1000.0,
            groups: vec![(of(share), true)],
            ..Run::default()
        };
        run.shares.insert("lib:libc.so.6".to_owned(), of(share));
        run.shares.insert("kind:kernel".to_owned(), of(share));
        run
    }

    fn grade(rule: Rule, base: &[Run], new: &[Run]) -> Result<Grade, String> {
        let comparison = (!base.is_empty()).then(|| compare(base, new, Method::default()));
        let lines = judge(
            &[rule],
            base,
            new,
            comparison.as_ref(),
            Method::default(),
            false,
        )?;
        Ok(lines.iter().map(|line| line.grade).max().expect("a line"))
    }

    #[test]
    fn budgets_fail_beyond_their_uncertainty() {
        let new = [run(300), run(310), run(290)];
        for (limit, wanted) in [(40.0, Grade::Ok), (29.9, Grade::Note), (20.0, Grade::Fail)] {
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
            let lines = judge(&[rule], base, new, Some(&found), Method::default(), false);
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
        assert_eq!(grade(growth(), &of(300, 2), &of(600, 2)), Ok(Grade::Warn));
        assert_eq!(grade(growth(), &of(300, 3), &of(600, 3)), Ok(Grade::Fail));
        assert_eq!(grade(growth(), &of(300, 3), &of(301, 3)), Ok(Grade::Ok));
        assert_eq!(
            grade(Rule::TotalGrowth(5.0), &of(300, 3), &of(300, 3)),
            Ok(Grade::Ok)
        );
        assert_eq!(
            grade(Rule::AnyGrowth(5.0), &of(300, 1), &of(300, 3)),
            Ok(Grade::Warn)
        );
    }
}
