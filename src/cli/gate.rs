//! `pjit gate`.

use std::process::ExitCode;

use clap::Args;

use super::check::LimitArgs;
use super::diff::MethodArgs;
use super::input::{Environment, InputArgs};
use super::page::Page;
use super::question::PrintArgs;
use super::sides::RunArgs;
use super::verb::{Context, Verb};
use crate::ask::{Comparing, Gated, Gating, Request};
use crate::functions::kinds::Kind;
use crate::questions::gate::{Outcome, Rule, is_kind};
use crate::runtimes::query::Query;

pub(super) const PAGE: Page = Page {
    examples: &[
        (
            "pjit gate base/ --to new/ --max-growth 5% --any-growth 20%",
            "",
        ),
        (
            "pjit gate --to new.data --max-share 'kind:kernel=10%'",
            "a budget, without a base",
        ),
        (
            "pjit gate base/ --to new/ --no-new 2% --format markdown > comment.md",
            "",
        ),
    ],
    short: &[
        "to",
        "max-growth",
        "any-growth",
        "max-share",
        "no-new",
        "allow-missing",
        "allow-undecided",
        "by",
        "strict",
        "format",
    ],
    notes: "Growth fails if it is significant and beyond the limit, after the common factor or in plain seconds. A large new function fails too. Growth is undecided with fewer than three runs of each, or if less than a tenth of a side is in functions of both.\n\nA budget fails if the mean share of the new runs, less its uncertainty, is above it. If that may be chance, it is undecided. Every recording has to pass pjit check first.\n\nExit status: 0 all rules kept, 3 one broken or a recording not fit, 4 undecided, 1 error, 2 wrong arguments.",
};

/// Arguments of `pjit gate`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("input", |arg| arg.hide(true)),
    mut_arg("strict", |arg| arg.help("Fail on warnings too (status 3)")),
    override_usage = "pjit gate [OPTIONS] BASE NEW RULES...
       pjit gate [OPTIONS] BASE... --to NEW... RULES...
       pjit gate [OPTIONS] --to NEW... BUDGETS...")]
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
    /// Limit growth of the total, or of matching functions
    #[arg(long = "max-growth", value_name = "[REGEX=]P%")]
    max_growth: Vec<String>,

    /// Limit growth of every function
    #[arg(long = "any-growth", value_name = "P%")]
    any_growth: Option<String>,

    /// Limit the share of functions, kind:kernel or lib:libc
    #[arg(long = "max-share", value_name = "WHAT=P%")]
    max_share: Vec<String>,

    /// Limit the share of own functions that are new
    #[arg(long = "no-new", value_name = "P%")]
    no_new: Option<String>,

    /// Pass rules that match nothing
    #[arg(long = "allow-missing")]
    allow_missing: bool,

    /// Exit with 0 instead of 4 if undecided
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
        let (base, new) = self.runs.paths(false, false)?;
        let view = Gating {
            of: Comparing {
                to_time: None,
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
    /// The rules, and the texts for functions that they refer to.
    fn parse(&self) -> Result<(Vec<Rule>, Vec<Query>), String> {
        let (mut rules, mut groups) = (Vec::new(), Vec::new());
        let mut group = |text: &str| {
            groups.push(Query::of(text));
            groups.len() - 1
        };
        for word in &self.max_growth {
            match word.rsplit_once('=') {
                None => rules.push(Rule::TotalGrowth(percent("--max-growth", word)?)),
                Some((text, limit)) => {
                    let limit = percent("--max-growth", limit)?;
                    rules.push(Rule::Growth(group(text), text.to_owned(), limit));
                }
            }
        }
        if let Some(word) = &self.any_growth {
            rules.push(Rule::AnyGrowth(percent("--any-growth", word)?));
        }
        for word in &self.max_share {
            let split = word.rsplit_once('=');
            let (text, limit) = split.ok_or_else(|| {
                format!("--max-share takes WHAT=P%, such as '^memcpy$=3%', not '{word}'")
            })?;
            let limit = percent("--max-share", limit)?;
            let kind = text.strip_prefix("kind:");
            if let Some(unknown) = kind.filter(|name| !is_kind(name)) {
                let known: Vec<&str> = Kind::ALL.iter().map(|each| each.word()).collect();
                let known = known.join(", ");
                return Err(format!(
                    "--max-share has no kind '{unknown}': one of {known}"
                ));
            }
            rules.push(if text.starts_with("kind:") || text.starts_with("lib:") {
                Rule::MaxPart(text.to_owned(), limit)
            } else {
                Rule::MaxShare(group(text), text.to_owned(), limit)
            });
        }
        if let Some(word) = &self.no_new {
            rules.push(Rule::NoNew(percent("--no-new", word)?));
        }
        if rules.is_empty() {
            return Err(
                "no rule is given\nhint: pjit gate base/ --to new/ --max-growth 5%".to_owned(),
            );
        }
        Ok((rules, groups))
    }
}

fn percent(option: &str, word: &str) -> Result<f64, String> {
    let number = word.strip_suffix('%').unwrap_or(word).parse::<f64>();
    match number {
        Ok(number) if (0.0..=10_000.0).contains(&number) => Ok(number),
        _ => Err(format!(
            "{option} takes a percentage such as 5%, not '{word}'"
        )),
    }
}
