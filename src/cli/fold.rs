//! `pjit fold`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::ask::{Fold, Request, forget_large};
use crate::functions::payers::PaidPart;
use crate::output::folded::FoldOptions;

use super::filters::MarkedFilterArgs;
use super::input::{Environment, InputArgs, SeveralArgs};
use super::page::Page;
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::verb::{answered, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit fold | inferno-flamegraph > flame.svg", ""),
        ("pjit fold --annotate-jit --no-inline > stacks.folded", ""),
        (
            "perf record -o - -g ./prog | pjit fold -i - | inferno-flamegraph > flame.svg",
            "",
        ),
    ],
    short: &[
        "annotate-kernel",
        "annotate-jit",
        "all",
        "by",
        "event",
        "weight",
        "no-cut-marks",
        "no-inline",
    ],
    notes: "",
};

/// Arguments of `pjit fold`.
#[derive(Debug, Clone, Args)]
pub struct FoldArgs {
    /// Recordings to read, added up [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    several: SeveralArgs,

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

    /// Begin stacks with package or activity
    #[arg(long = "by", value_enum, value_name = "WHAT", value_delimiter = ',')]
    by: Vec<PaidPart>,

    #[command(flatten)]
    weight: WeightArgs,

    /// Write to FILE
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// Only this event [default: a clock or cycles]
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
        let mut out = Output::to(self.output.as_deref(), self.replace.force_output)?;
        let folded = answered(&request, context.diag)?;
        folded.write(&mut out)?;
        out.finish()?;
        forget_large(folded);
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    fn takes_several(&self) -> bool {
        true
    }
}

impl FoldArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// When a filter means nothing.
    pub fn request(&self, environment: &Environment) -> Result<Request<Fold>, String> {
        let mut load = self
            .several
            .load_options(&self.files, &self.input, environment)?;
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
