//! `pjit gate`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use regex::RegexSet;

use super::check::LimitArgs;
use super::diff::{MethodArgs, warn};
use super::filters::regexes;
use super::input::InputArgs;
use super::question::{Format, PrintArgs};
use super::runs::{Refused, RunArgs, Sides, require_comparable};
use super::terminal::{Output, with_progress};
use super::verb::{Context, Verb, wrong_usage};
use crate::diagnostics::Diagnostics;
use crate::output::diff::{self, Diff};
use crate::output::gate::{self, Gate};
use crate::output::json::{self, Common};
use crate::output::{answer, csv};
use crate::questions::budget::Budget;
use crate::questions::compare::{Comparison, compare};
use crate::questions::gate::{Grade, Line, Outcome, Rule, is_kind, judge};
use crate::questions::kinds::Kind;

/// Arguments of `pjit gate`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("input", |arg| arg.hide(true)),
    mut_arg("strict", |arg| arg.help("Warnings too close the gate (status 3)")),
    override_usage = "pjit gate [OPTIONS] BASE NEW RULES...
       pjit gate [OPTIONS] BASE... --to NEW... RULES...
       pjit gate [OPTIONS] --to NEW... BUDGETS...",
    after_help = "Exit status: 0 all rules kept, 3 one broken or a recording not fit, 4 it cannot be decided, 1 error,
2 wrong usage.

Growth fails when it is beyond the limit and significant, after what all grew by or in plain
seconds, and when something large is new. It is undecided with fewer than three runs of each, or
where less than a tenth of a side is in functions of both. A budget fails when the mean share of
the new runs less its uncertainty is above it. Every recording has to pass pjit check first.

Examples:
  pjit gate base/ --to new/ --max-growth 5% --any-growth 20%
  pjit gate --to new.data --max-share 'kind:kernel=10%' --max-share '^memcpy$=3%'
  pjit gate base/ --to new/ --max-growth '^parse=10%' --no-new 2% --format markdown > comment.md"
)]
pub struct GateArgs {
    #[command(flatten)]
    runs: RunArgs,

    #[command(flatten)]
    rules: RuleArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    method: MethodArgs,

    #[command(flatten)]
    print: PrintArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rules")]
struct RuleArgs {
    /// Total CPU, or matching functions together with what they call, grow by at most so much (repeatable)
    #[arg(long = "max-growth", value_name = "[REGEX=]P%")]
    max_growth: Vec<String>,

    /// No function grows by more
    #[arg(long = "any-growth", value_name = "P%")]
    any_growth: Option<String>,

    /// Matching functions with what they call, a kind (kind:kernel) or a library (lib:libc) by itself have at most this share
    #[arg(long = "max-share", value_name = "WHAT=P%")]
    max_share: Vec<String>,

    /// No own function that has no time in the base is credited with more
    #[arg(long = "no-new", value_name = "P%")]
    no_new: Option<String>,

    /// A rule that matches nothing is kept
    #[arg(long = "allow-missing")]
    allow_missing: bool,

    /// What cannot be decided gives status 0, not 4
    #[arg(long = "allow-undecided")]
    allow_undecided: bool,
}

/// Exit status of a gate that is closed.
const CLOSED: u8 = 3;
/// Exit status of a gate that nobody can open: it is not passed either.
const UNDECIDED: u8 = 4;

impl Verb for GateArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let parsed = self.rules.parse();
        let paths = self.runs.paths(false);
        let ((rules, groups), (base, new)) = match (parsed, paths) {
            (Ok(rules), Ok(paths)) => (rules, paths),
            (Err(text), _) | (_, Err(text)) => return wrong_usage(&text),
        };
        let reading = match self
            .runs
            .reading(context.environment, self.limits.limits(), groups)
        {
            Ok(reading) => reading,
            Err(text) => return wrong_usage(&text),
        };
        let diag = context.diag;
        let mut sides = match with_progress(diag, || reading.read(&base, &new, diag)) {
            Ok(sides) => sides,
            Err(Refused::Usage(text)) => return wrong_usage(&text),
            Err(Refused::Error(error)) => return Err(error),
        };
        let method = self.method.method();
        if method.paired == Some(true) && sides.base.len() != sides.new.len() {
            return wrong_usage("--paired: as many new recordings as of the base");
        }
        require_comparable(&sides, diag)?;
        if !sides.base.is_empty() {
            reading.look_up(&mut sides, method.by);
        }
        let comparison = (!sides.base.is_empty()).then(|| compare(&sides.base, &sides.new, method));
        let mut lines = fitness(&sides);
        lines.extend(comparison.as_ref().and_then(program_line));
        let judged = judge(
            &rules,
            &sides.base,
            &sides.new,
            comparison.as_ref(),
            self.rules.allow_missing,
        );
        lines.extend(judged.map_err(anyhow::Error::msg)?);
        lines.extend(sides.shared.as_deref().map(shared_line));
        let outcome = Outcome::of(&lines, self.runs.input.strict);
        if let Some(comparison) = comparison.as_ref().filter(|_| outcome != Outcome::Pass) {
            warn(&sides, comparison, diag);
        }
        let answer = self.answer(
            &sides,
            comparison.as_ref(),
            &lines,
            outcome,
            reading.filter_texts(),
        );
        self.write(&answer, reading.filter_texts(), diag)?;
        Ok(match outcome {
            Outcome::Fail => ExitCode::from(CLOSED),
            Outcome::Undecided if !self.rules.allow_undecided => ExitCode::from(UNDECIDED),
            Outcome::Pass | Outcome::Undecided => ExitCode::SUCCESS,
        })
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.runs.input)
    }

    /// Here `--strict` is about the rules.
    fn strict(&self) -> bool {
        false
    }
}

/// A line for each recording that is not fit, or one for all.
fn fitness(sides: &Sides) -> Vec<Line> {
    let all = || sides.base.iter().chain(&sides.new);
    let line = |grade, text| Line {
        grade,
        rule: "check".to_owned(),
        text,
        value: None,
        limit: None,
    };
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
        return vec![line(
            Grade::Ok,
            format!("{} recordings are fit for conclusions", all().count()),
        )];
    }
    lines
}

/// That a recording is held against itself.
fn shared_line(path: &Path) -> Line {
    Line {
        grade: Grade::Undecided,
        rule: "recordings".to_owned(),
        text: format!("{} is on both sides", path.display()),
        value: None,
        limit: None,
    }
}

/// That both sides have one program, by two names.
fn program_line(comparison: &Comparison) -> Option<Line> {
    Some(Line {
        grade: Grade::Note,
        rule: "programs".to_owned(),
        text: comparison.program.as_ref()?.text(),
        value: None,
        limit: None,
    })
}

impl GateArgs {
    fn answer<'r>(
        &self,
        sides: &'r Sides,
        comparison: Option<&'r Comparison>,
        lines: &'r [Line],
        outcome: Outcome,
        filters: Vec<String>,
    ) -> Gate<'r> {
        let by = self.method.method().by;
        let base = sides.base.iter().map(|run| (&run.facts, "base"));
        Gate {
            lines,
            outcome,
            diff: comparison.map(|comparison| Diff {
                base: &sides.base,
                new: &sides.new,
                by,
                comparison,
                filters,
                full_names: self.print.full_names,
            }),
            idle: diff::idle_line(&sides.base, &sides.new),
            facts: base
                .chain(sides.new.iter().map(|run| (&run.facts, "new")))
                .collect(),
        }
    }

    fn write(
        &self,
        gate: &Gate<'_>,
        filters: Vec<String>,
        diag: &Diagnostics,
    ) -> anyhow::Result<()> {
        let mut out = Output::to(
            self.print.output.as_deref(),
            self.print.replace.force_output,
        )
        .context("output")?;
        let text = |lines: usize| {
            let mut text = Vec::new();
            gate::write_text(gate, lines, &mut text).map(|()| text)
        };
        match self.print.format {
            Format::Text => {
                let text = answer::within(&text, self.print.budget.unwrap_or_default())?;
                std::io::Write::write_all(&mut out, &text)?;
            }
            Format::Markdown => gate::write_markdown(gate, &mut out)?,
            Format::Csv => csv::write(&gate::csv_rows(gate), self.print.budget, &mut out)?,
            Format::Json => {
                let common = Common {
                    filters,
                    warnings: diag.warnings(),
                    ..Common::default()
                };
                let all = Some(
                    self.print
                        .budget
                        .unwrap_or(Budget::Lines(Budget::MAX_LINES)),
                );
                json::write(&|rows| gate::to_json(gate, &common, rows), all, &mut out)?;
            }
        }
        out.finish().context("output")
    }
}

impl RuleArgs {
    /// The rules, and the expressions that they refer to.
    fn parse(&self) -> Result<(Vec<Rule>, Vec<RegexSet>), String> {
        let (mut rules, mut groups) = (Vec::new(), Vec::new());
        let mut group = |option: &str, text: &str| -> Result<usize, String> {
            groups.extend(regexes(option, &[text.to_owned()])?);
            Ok(groups.len() - 1)
        };
        for word in &self.max_growth {
            match word.rsplit_once('=') {
                None => rules.push(Rule::TotalGrowth(percent("--max-growth", word)?)),
                Some((text, limit)) => {
                    let limit = percent("--max-growth", limit)?;
                    rules.push(Rule::Growth(
                        group("--max-growth", text)?,
                        text.to_owned(),
                        limit,
                    ));
                }
            }
        }
        if let Some(word) = &self.any_growth {
            rules.push(Rule::AnyGrowth(percent("--any-growth", word)?));
        }
        for word in &self.max_share {
            let split = word.rsplit_once('=');
            let (text, limit) =
                split.ok_or_else(|| format!("--max-share: WHAT=P%, not '{word}'"))?;
            let limit = percent("--max-share", limit)?;
            let kind = text.strip_prefix("kind:");
            if let Some(word) = kind.filter(|word| !is_kind(word)) {
                let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
                let known = known.join(", ");
                return Err(format!("--max-share: no kind '{word}'; there are {known}"));
            }
            rules.push(if text.starts_with("kind:") || text.starts_with("lib:") {
                Rule::MaxPart(text.to_owned(), limit)
            } else {
                Rule::MaxShare(group("--max-share", text)?, text.to_owned(), limit)
            });
        }
        if let Some(word) = &self.no_new {
            rules.push(Rule::NoNew(percent("--no-new", word)?));
        }
        if rules.is_empty() {
            return Err("no rules: --max-growth, --any-growth, --max-share, --no-new".to_owned());
        }
        Ok((rules, groups))
    }
}

fn percent(option: &str, word: &str) -> Result<f64, String> {
    let number = word.strip_suffix('%').unwrap_or(word).parse::<f64>();
    match number {
        Ok(number) if (0.0..=10_000.0).contains(&number) => Ok(number),
        _ => Err(format!("{option}: per cent, not '{word}'")),
    }
}
