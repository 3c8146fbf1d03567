//! `pjit fold`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::ask::{self, shown_event};
use crate::diagnostics::Diagnostics;
use crate::load::{self, LoadOptions};
use crate::metrics::{plain_name, pmu};
use crate::output::folded::{self, FoldOptions, Weight};
use crate::profile::{EventId, Profile};
use crate::questions::kinds::OwnRules;
use crate::weigh::Spec;

use super::filters::MarkedFilterArgs;
use super::input::{Environment, InputArgs};
use super::target::ReplaceArgs;
use super::terminal::{Output, with_progress};
use super::verb::{leave, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};

/// Arguments of `pjit fold`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit fold | inferno-flamegraph > flame.svg
  pjit fold -i perf.data --annotate-jit --no-inline > stacks.folded
  perf record -o - -g ./prog | pjit fold -i - | inferno-flamegraph > flame.svg")]
pub struct FoldArgs {
    /// Recording to read (default: perf.data)
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// Mark kernel frames with _[k]
    #[arg(long, visible_alias = "kernel")]
    annotate_kernel: bool,

    /// Mark frames of JIT code with _[j]
    #[arg(long, visible_alias = "jit")]
    annotate_jit: bool,

    /// All annotations
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    weight: WeightArgs,

    /// File to write instead of standard output; it appears when it is whole
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// Only samples of this event (default: the main one, a clock or cycles if there is one)
    #[arg(long, visible_alias = "event-filter", value_name = "NAME")]
    event: Option<String>,

    #[command(flatten)]
    filters: MarkedFilterArgs,
}

impl Verb for FoldArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let diag = context.diag;
        let (mut load, fold) = self.resolve(context.environment);
        let filters = match self.filters.apply(&mut load) {
            Ok(filters) => filters,
            Err(text) => return wrong_usage(&text),
        };
        let mut out =
            Output::to(self.output.as_deref(), self.replace.force_output).context("output")?;
        let mut profile = with_progress(diag, || load::load(&load, diag))?;
        let fold = FoldOptions {
            events: self.events(&profile, load.weight.spec == Spec::Samples, diag)?,
            ..fold
        };
        ask::filter(&mut profile, &filters, &OwnRules::default())?;
        folded::write(&profile, &fold, &mut out)?;
        out.finish().context("output")?;
        leave(profile);
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl FoldArgs {
    /// What to load and how to print it.
    #[must_use]
    pub fn resolve(&self, environment: &Environment) -> (LoadOptions, FoldOptions) {
        let mut load = self
            .input
            .load_options(self.file.as_ref(), environment, folded::NEEDS);
        self.weight.apply(&mut load, self.input.force, true);
        let fold = FoldOptions {
            pid: self.filters.marks_pid(),
            tid: self.filters.marks_tid(),
            annotate_kernel: self.annotate_kernel || self.all,
            annotate_jit: self.annotate_jit || self.all,
            weight: Weight::Period,
            events: Vec::new(),
            threads: load.reading.threads,
        };
        (load, fold)
    }

    /// The events to add up: the one that is named, else the main one; all where each sample weighs one. What the kinds of cores of one processor
    /// count of the same adds up, too.
    fn events(
        &self,
        profile: &Profile,
        weigh_alike: bool,
        diag: &Diagnostics,
    ) -> anyhow::Result<Vec<EventId>> {
        let chosen = shown_event(profile, self.event.as_deref())?;
        if self.event.is_some() {
            return Ok(vec![chosen]);
        }
        let name = |event: EventId| profile[event].name.as_str();
        let is_same = |event: &EventId| {
            let (one, other) = (name(chosen), name(*event));
            let is_other_core =
                pmu(one).is_some() && pmu(other).is_some() && pmu(one) != pmu(other);
            weigh_alike || *event == chosen || is_other_core && plain_name(one) == plain_name(other)
        };
        let sampled = profile.events.indices();
        let sampled = sampled.filter(|event| profile[*event].samples > 0);
        let (shown, others): (Vec<EventId>, Vec<EventId>) = sampled.partition(is_same);
        if !others.is_empty() {
            let names: Vec<&str> = others.into_iter().map(name).collect();
            diag.warn(format!(
                "shows {}; not shown: {} (--event NAME)",
                name(chosen),
                names.join(", ")
            ));
        }
        Ok(shown)
    }
}
