//! `pjit gate`.

use std::process::ExitCode;

use clap::Args;
use regex::RegexSet;

use super::check::LimitArgs;
use super::diff::MethodArgs;
use super::filters::regexes;
use super::input::{Environment, InputArgs};
use super::question::PrintArgs;
use super::sides::RunArgs;
use super::verb::{Context, Verb};
use crate::ask::{Comparing, Gated, Gating, Request};
use crate::questions::gate::{Outcome, Rule, is_kind};
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
        let status = |gated: &Gated| match gated.outcome {
            Outcome::Fail => ExitCode::from(CLOSED),
            Outcome::Undecided if !self.rules.allow_undecided => ExitCode::from(UNDECIDED),
            Outcome::Pass | Outcome::Undecided => ExitCode::SUCCESS,
        };
        let request = self.request(context.environment);
        self.print.answer(request, context.diag, status)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.runs.input)
    }

    /// Here `--strict` is about the rules.
    fn strict(&self) -> bool {
        false
    }
}

impl GateArgs {
    fn request(&self, environment: &Environment) -> Result<Request<Gating>, String> {
        let (rules, groups) = self.rules.parse()?;
        let (base, new) = self.runs.paths(false)?;
        let view = Gating {
            of: Comparing {
                base,
                new,
                method: self.method.method(),
                full_names: self.print.full_names,
            },
            rules,
            groups,
            allow_missing: self.rules.allow_missing,
            strict: self.runs.input.strict,
        };
        let request = self.runs.request(environment, view)?;
        Ok(Request {
            limits: self.limits.limits(),
            ..request
        })
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
