//! Whether recordings keep rules: the question of `pjit gate`.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::comparison::{Comparing, doubt};
use super::runs::{Sides, failed_runs, unfinished_runs};
use super::{AskError, Question, Request};
use crate::load::Library;
use crate::needs::Needs;
use crate::output::answer::Answer;
use crate::output::diff::{self, Diff};
use crate::output::gate::{self, Gate};
use crate::output::json::Common;
use crate::output::within::within;
use crate::questions::budget::Budget;
use crate::questions::compare::{Comparison, compare};
use crate::questions::gate::{Grade, Line, Outcome, Rule, judge};
use crate::runtimes::query::Query;

/// Whether recordings keep rules.
#[derive(Debug, Clone)]
pub struct Gating {
    /// The recordings. Without a base, rules about growth make no sense.
    pub of: Comparing,
    /// The rules.
    pub rules: Vec<Rule>,
    /// What rules refer to: expressions that find functions, or their names as tables print them.
    pub groups: Vec<Query>,
    /// A function that no recording has breaks no rule.
    pub allow_missing: bool,
    /// Warnings close the gate, too.
    pub strict: bool,
}

/// How each rule fared.
pub struct Gated {
    /// How all went.
    pub outcome: Outcome,
    sides: Sides,
    comparison: Option<Comparison>,
    lines: Vec<Line>,
    of: Comparing,
    common: Common,
}

impl Question for Gating {
    type Answer = Gated;

    fn needs(&self) -> Needs {
        self.of.needs()
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Gated, AskError> {
        let view = &request.view;
        let mut without_base = view.rules.iter().filter_map(Rule::needs_base);
        if let Some(problem) = without_base.next().filter(|_| view.of.base.is_empty()) {
            return Err(AskError::Request(problem));
        }
        let sides = view.of.read(request, &view.groups, library)?;
        let has_base = !sides.base.is_empty();
        let comparison = has_base.then(|| compare(&sides.base, &sides.new, view.of.method));
        let mut lines = fitness(&sides);
        let failed = failed_runs(&sides).into_iter();
        lines.extend(failed.map(|text| line("status", Grade::Warn, text)));
        let unfinished = unfinished_runs(&sides).into_iter();
        lines.extend(unfinished.map(|text| line("recordings", Grade::Undecided, text)));
        lines.extend(comparison.as_ref().and_then(program_line));
        let judged = judge(
            &view.rules,
            &sides.base,
            &sides.new,
            comparison.as_ref(),
            view.allow_missing,
        );
        lines.extend(judged.map_err(AskError::Absent)?);
        lines.extend(sides.shared.as_deref().map(shared_line));
        let outcome = Outcome::of(&lines, view.strict);
        if let Some(comparison) = comparison.as_ref().filter(|_| outcome != Outcome::Pass) {
            doubt(&sides, comparison, library.diag());
        }
        Ok(Gated {
            outcome,
            sides,
            comparison,
            lines,
            of: view.of.clone(),
            common: Common {
                filters: request.filters.texts(),
                ..Common::default()
            },
        })
    }
}

/// A line without a number.
fn line(rule: &str, grade: Grade, text: String) -> Line {
    Line {
        grade,
        rule: rule.to_owned(),
        text,
        value: None,
        limit: None,
    }
}

/// A line for each recording that is not fit, or one for all.
fn fitness(sides: &Sides) -> Vec<Line> {
    let all = || sides.base.iter().chain(&sides.new);
    let line = |grade, text| line("check", grade, text);
    let unfit = all().filter(|run| !run.facts.is_fit);
    let lines: Vec<Line> = unfit
        .map(|run| {
            let failed = run
                .facts
                .findings
                .iter()
                .filter(|finding| finding.is_failure);
            let texts: Vec<String> = failed.map(|f| format!("{}: {}", f.code, f.text)).collect();
            line(
                Grade::Fail,
                format!("{}: {}", run.facts.path, texts.join("; ")),
            )
        })
        .collect();
    if lines.is_empty() {
        let text = match all().count() {
            1 => "the recording is fit for conclusions".to_owned(),
            count => format!("{count} recordings are fit for conclusions"),
        };
        return vec![line(Grade::Ok, text)];
    }
    lines
}

/// That a recording is held against itself.
fn shared_line(path: &Path) -> Line {
    let text = format!("{} is on both sides", path.display());
    line("recordings", Grade::Undecided, text)
}

/// That both sides have one program, by two names.
fn program_line(comparison: &Comparison) -> Option<Line> {
    let text = comparison.program.as_ref()?.text();
    Some(line("programs", Grade::Note, text))
}

impl Gated {
    fn shown(&self) -> Gate<'_> {
        let (base, new) = (&self.sides.base, &self.sides.new);
        let facts = base.iter().map(|run| (&run.facts, "base"));
        Gate {
            lines: &self.lines,
            outcome: self.outcome,
            diff: self.comparison.as_ref().map(|comparison| Diff {
                base,
                new,
                by: self.of.method.by,
                comparison,
                filters: self.common.filters.clone(),
                full_names: self.of.full_names,
            }),
            idle: diff::idle_line(base, new),
            filters: &self.common.filters,
            facts: facts
                .chain(new.iter().map(|run| (&run.facts, "new")))
                .collect(),
        }
    }
}

impl Answer for Gated {
    fn warn(&mut self, warnings: Vec<String>) {
        self.common.warnings = warnings;
    }

    fn text(&self, budget: Budget) -> io::Result<Vec<u8>> {
        let gate = self.shown();
        let written = |lines: usize| {
            let mut text = Vec::new();
            gate::write_text(&gate, lines, &mut text).map(|()| text)
        };
        within(&written, budget)
    }

    /// A comment, within the limits of the hosts that show it.
    fn markdown(&self, _: Budget) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        gate::write_markdown(&self.shown(), &mut text).map(|()| text)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        gate::csv_rows(&self.shown())
    }

    fn json(&self, rows: usize) -> Value {
        gate::to_json(&self.shown(), &self.common, rows)
    }
}
