//! `pjit fold`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::ask::{Fold, Request};
use crate::output::folded::FoldOptions;
use crate::questions::payers::PaidPart;

use super::filters::MarkedFilterArgs;
use super::input::{Environment, InputArgs};
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::verb::{answered, leave, wrong_usage};
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

    /// First frames that say who pays for the stack and what it does: package, activity
    #[arg(long = "by", value_enum, value_name = "WHAT", value_delimiter = ',')]
    by: Vec<PaidPart>,

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

impl ValueEnum for PaidPart {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Package, Self::Activity]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl Verb for FoldArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let request = self.request(context.environment).map_err(wrong_usage)?;
        let mut out =
            Output::to(self.output.as_deref(), self.replace.force_output).context("output")?;
        let folded = answered(&request, context.diag)?;
        folded.write(&mut out)?;
        out.finish().context("output")?;
        leave(folded);
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl FoldArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// When a filter means nothing.
    pub fn request(&self, environment: &Environment) -> Result<Request<Fold>, String> {
        let mut load = self.input.load_options(self.file.as_ref(), environment);
        self.weight.apply(&mut load, self.input.force, true);
        let options = FoldOptions {
            pid: self.filters.marks_pid(),
            tid: self.filters.marks_tid(),
            annotate_kernel: self.annotate_kernel || self.all,
            annotate_jit: self.annotate_jit || self.all,
            by: self.by.clone(),
            threads: load.reading.threads,
            ..FoldOptions::default()
        };
        let filters = self.filters.apply(&mut load)?;
        Ok(Request {
            event: self.event.clone(),
            filters,
            ..Request::of(load, Fold { options })
        })
    }
}
