//! `pjit fold`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::diagnostics::Diagnostics;
use crate::load::{self, LoadOptions};
use crate::output::folded::{self, FoldOptions, Weight};
use crate::profile::Profile;
use crate::questions::kinds::OwnRules;

use super::filters::{self, MarkedFilterArgs};
use super::input::{Environment, InputArgs};
use super::target::ReplaceArgs;
use super::terminal::{Output, with_progress};
use super::verb::{leave, require_samples, wrong_usage};
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

    /// Only samples of this event
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
        check_events(&profile, &fold, diag)?;
        filters::filter(&mut profile, &filters, &OwnRules::default())?;
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
        let mut load = self.input.load_options(self.file.as_ref(), environment);
        self.weight.apply(&mut load, self.input.force, true);
        let fold = FoldOptions {
            pid: self.filters.marks_pid(),
            tid: self.filters.marks_tid(),
            annotate_kernel: self.annotate_kernel || self.all,
            annotate_jit: self.annotate_jit || self.all,
            weight: Weight::Period,
            event: self.event.clone(),
            threads: load.needs.threads,
        };
        (load, fold)
    }
}

fn check_events(profile: &Profile, fold: &FoldOptions, diag: &Diagnostics) -> anyhow::Result<()> {
    require_samples(profile)?;
    if let Some(wanted) = &fold.event {
        let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
        anyhow::ensure!(
            names.contains(&wanted.as_str()),
            "no event '{wanted}' in {}; it has {}",
            profile.recording.path,
            names.join(", ")
        );
    }
    let mixed = folded::mixed_events(profile, fold);
    if !mixed.is_empty() {
        diag.warn(format!(
            "adds up samples of several events ({}); --event NAME takes one",
            mixed.join(", ")
        ));
    }
    Ok(())
}
