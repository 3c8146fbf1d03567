//! `pjit stat`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::InputArgs;
use super::terminal::{Output, with_progress};
use super::verb::{Context, Verb, require_samples};
use crate::load::{self, LoadOptions};
use crate::metrics::is_clock;
use crate::output::stat;
use crate::profile::Profile;
use crate::totals::{Seen, Totals, sampled};
use crate::weigh::{self, Spec};

/// Arguments of `pjit stat`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  perf stat record -e task-clock,cycles,instructions -- PROGRAM; pjit stat
  perf stat record -I 100 -- PROGRAM; pjit stat           intervals, then the total
  pjit stat samples.data                                  of perf record: sums over samples, marked with ~

Counts of counters that shared the processor's are scaled up to all of the time, with the share in which
they ran behind them. Of a recording by perf record, what tasks counted to their end (perf record -s) and
what was recorded each time is exact.")]
pub struct StatArgs {
    /// Recording of perf stat or perf record (default: perf.data)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The recording.
    #[command(flatten)]
    pub input: InputArgs,
}

impl Verb for StatArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let diag = context.diag;
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let totals = match load::counts(&load.source, diag)? {
            Some(totals) => totals,
            None => with_progress(diag, || of_samples(&load, context))?,
        };
        let mut out = Output::open(Some(context.environment.pager.as_str()));
        stat::write(&totals, &mut out)?;
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

/// Sums over the samples of `perf record`, and what weights make of them where there are any.
fn of_samples(load: &LoadOptions, context: &Context<'_>) -> anyhow::Result<Totals> {
    let profile = load::load(load, context.diag)?;
    require_samples(&profile)?;
    let mut seen = Seen::default();
    if !profile.events.iter().any(|event| is_clock(&event.name)) {
        seen.on_cpu = weight(load, Spec::OnCpu).map(|p| total(&p).0);
    }
    if profile.events.iter().any(|event| event.is_tracepoint) {
        let blocks = weight(load, Spec::Heap(weigh::spec::Heap::AllocCount));
        let is_whole = profile.recording.lost_samples == 0;
        seen.allocations = blocks.map(|profile| (total(&profile).1, !is_whole));
    }
    Ok(sampled(&profile, seen))
}

/// The same recording by a weight, if it has what that takes. What it warns of concerns its views.
fn weight(load: &LoadOptions, spec: Spec) -> Option<Profile> {
    let load = LoadOptions {
        weight: weigh::Options {
            spec,
            ..weigh::Options::default()
        },
        ..load.clone()
    };
    load::load(&load, &crate::diagnostics::Diagnostics::new()).ok()
}

/// Weight and number of all samples.
fn total(profile: &Profile) -> (u64, u64) {
    let events = profile.events.iter();
    events.fold((0, 0), |(period, samples), event| {
        (period + event.period, samples + event.samples)
    })
}
