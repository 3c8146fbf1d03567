//! `pjit script`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::ask::{Request, Script, forget_large};
use crate::needs::Needs;
use crate::output::script::{Clock, Field, ScriptOptions};

use super::filters::{FilterArgs, SwitchArgs};
use super::input::{Environment, InputArgs};
use super::page::Page;
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::verb::{answered, left_out, write_header, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};

/// Frames that are printed of a chain if nobody says how many, as by perf.
const MOST_FRAMES: usize = 127;

pub(super) const PAGE: Page = Page {
    examples: &[
        (
            "pjit script | inferno-collapse-perf | inferno-flamegraph > flame.svg",
            "",
        ),
        (
            "pjit script -F comm,tid,time,event,ip,sym,dso > firefox.perf",
            "",
        ),
    ],
    short: &[
        "fields",
        "hide-call-graph",
        "max-stack",
        "ns",
        "header",
        "cut-marks",
        "weight",
    ],
    notes: "Columns of --fields: pjit help fields.",
};

/// Arguments of `pjit script`.
#[derive(Debug, Clone, Args)]
pub struct ScriptArgs {
    /// Recording to read [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    weight: WeightArgs,

    /// Columns, such as comm,ip,sym; +x adds, -x removes (pjit help fields)
    #[arg(short = 'F', long = "fields", value_name = "LIST", value_parser = parse_fields, allow_hyphen_values = true)]
    fields: Option<Fields>,

    /// Print no call chains
    #[arg(short = 'G', long = "hide-call-graph")]
    hide_call_graph: bool,

    /// Print at most N frames of a chain, without inlined ones [default: 127]
    #[arg(long = "max-stack", value_name = "N")]
    max_stack: Option<usize>,

    /// Write to FILE
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// Print times in nanoseconds
    #[arg(long = "ns")]
    ns: bool,

    /// Print times since the first sample
    #[arg(long = "reltime", conflicts_with = "deltatime")]
    reltime: bool,

    /// Print times since the sample before
    #[arg(long = "deltatime")]
    deltatime: bool,

    /// Print whole paths of source files
    #[arg(long = "full-source-path")]
    full_source_path: bool,

    /// Print the header before the samples
    #[arg(long = "header")]
    header: bool,

    /// Print the header and no samples
    #[arg(long = "header-only")]
    header_only: bool,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    switch: SwitchArgs,
}

impl Verb for ScriptArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let request = self.request(context.environment).map_err(wrong_usage)?;
        let mut out = Output::to(self.output.as_deref(), self.replace.force_output)?;
        if self.header_only {
            return write_header(&request.load, out, context.diag);
        }
        let samples = answered(&request, context.diag)?;
        let written = samples.write(&mut out)?;
        if self.max_stack.is_none() && written.shortened > 0 {
            let share = 100.0 * written.shortened as f64 / written.samples as f64;
            context
                .diag
                .warn(left_out(share, MOST_FRAMES, written.longest));
        }
        out.finish()?;
        forget_large(samples);
        anyhow::ensure!(
            written.samples > 0,
            "no sample is left: the filters drop all of them"
        );
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl ScriptArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// When an argument means nothing, or a field needs another.
    pub fn request(&self, environment: &Environment) -> Result<Request<Script>, String> {
        let Fields {
            fields,
            is_default,
            names_period,
            named,
        } = self.fields.clone().unwrap_or_default();
        check(&fields)?;
        let options = ScriptOptions {
            required: named,
            fields,
            is_default,
            all_periods: names_period,
            nanoseconds: self.ns,
            clock: match (self.reltime, self.deltatime) {
                (true, _) => Clock::SinceFirst,
                (_, true) => Clock::SincePrevious,
                (false, false) => Clock::Recorded,
            },
            chains: !self.hide_call_graph,
            max_stack: self.max_stack.unwrap_or(MOST_FRAMES),
            full_source_path: self.full_source_path,
            header: self.header,
        };
        let mut load = self.input.load_options(self.file.as_ref(), environment);
        self.weight.apply(&mut load, self.input.force, false);
        if !self.input.cuts.cut_marks {
            // Other programs read this, and know frames that were recorded only.
            load.refused |= Needs::MARKS;
            load.mending.graft = false;
        }
        self.switch.apply(&mut load, false);
        let filters = self.filters.apply(&mut load)?;
        Ok(Request {
            filters,
            ..Request::of(load, Script { options })
        })
    }
}

/// As in perf, some fields are refused without the field that they add to.
fn check(fields: &BTreeSet<Field>) -> Result<(), String> {
    let needs = [
        (Field::Srcline, Field::Ip, "srcline needs ip"),
        (Field::Symoff, Field::Sym, "symoff needs sym"),
    ];
    let missing = needs
        .iter()
        .find(|(field, needed, _)| fields.contains(field) && !fields.contains(needed));
    missing.map_or(Ok(()), |(_, _, text)| Err(format!("-F {text}")))
}

/// The argument of `-F`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    fields: BTreeSet<Field>,
    /// perf's default, or a change of it.
    is_default: bool,
    /// `period` was asked for by name.
    names_period: bool,
    /// What was asked for by name.
    named: BTreeSet<Field>,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            fields: Field::DEFAULT.into_iter().collect(),
            is_default: true,
            names_period: false,
            named: BTreeSet::new(),
        }
    }
}

/// perf's grammar: names with commas, or changes of the default with `+name` and `-name`.
fn parse_fields(list: &str) -> Result<Fields, String> {
    let is_default = list.starts_with(['+', '-']);
    let mut fields = if is_default {
        Fields::default().fields
    } else {
        BTreeSet::new()
    };
    let (mut names_period, mut named) = (false, BTreeSet::new());
    for word in list.split(',') {
        let name = word.trim_start_matches(['+', '-']);
        let Some(&(_, field)) = Field::NAMES.iter().find(|(known, _)| *known == name) else {
            return Err(format!("has no column '{name}'\nhint: pjit help fields"));
        };
        names_period |= field == Field::Period && !word.starts_with('-');
        if word.starts_with('-') {
            fields.remove(&field);
            named.remove(&field);
        } else {
            fields.insert(field);
            named.insert(field);
        }
    }
    Ok(Fields {
        fields,
        is_default,
        names_period,
        named,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_replace_or_change_the_default() {
        let list = parse_fields("comm,ip,sym").expect("known names");
        assert_eq!(
            list.fields,
            BTreeSet::from([Field::Comm, Field::Ip, Field::Sym])
        );
        let changed = parse_fields("+srcline,-period")
            .expect("known names")
            .fields;
        assert!(changed.contains(&Field::Srcline) && !changed.contains(&Field::Period));
        assert!(parse_fields("comm,nonsense").is_err());
    }

    #[test]
    fn fields_that_need_others_are_refused_without_them() {
        let ok = |list: &str| check(&parse_fields(list).expect("known names").fields).is_ok();
        assert!(ok("ip,sym,symoff,dso,srcline") && ok("comm,time"));
        assert!(!ok("ip,symoff") && !ok("srcline"));
    }
}
