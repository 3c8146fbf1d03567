//! `pjit stat`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::InputArgs;
use super::less::{Less, OfStat};
use super::terminal::{Output, with_progress};
use super::verb::{Context, Verb};
use crate::ask::require_samples;
use crate::load::{self, LoadOptions};
use crate::metrics::is_clock;
use crate::needs::Needs;
use crate::output::stat;
use crate::profile::Profile;
use crate::questions::idle::{self, Idle};
use crate::totals::{Apart, Seen, Totals, sampled};
use crate::weigh::{self, Spec};

/// Arguments of `pjit stat`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  perf stat record -e task-clock,cycles,instructions -- PROGRAM; pjit stat
  perf stat record -I 100 -- PROGRAM; pjit stat           intervals, then the total
  perf stat record -a -- PROGRAM; pjit stat --per-core    each core, then the total
  pjit stat samples.data                                  of perf record: sums over samples, marked with ~

Counts of counters that shared the processor's are scaled up to all of the time, with the share in which
they ran behind them. Of a recording by perf record, what tasks counted to their end (perf record -s) and
what was recorded each time is exact.")]
pub struct StatArgs {
    /// Recording of perf stat or perf record (default: perf.data)
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// Counts of each processor apart
    #[arg(short = 'A', long = "no-aggr", group = "apart")]
    no_aggr: bool,

    /// Counts of each core apart
    #[arg(long, group = "apart")]
    per_core: bool,

    /// Counts of each die apart
    #[arg(long, group = "apart")]
    per_die: bool,

    /// Counts of each socket apart
    #[arg(long, group = "apart")]
    per_socket: bool,

    /// Counts of each NUMA node apart
    #[arg(long, group = "apart")]
    per_node: bool,

    /// Count the idle task, too, among CPUs utilized
    #[arg(long)]
    idle: bool,

    /// The recording.
    #[command(flatten)]
    pub input: Less<OfStat>,
}

impl Verb for StatArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let diag = context.diag;
        let mut load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        load.needs = Needs::CHAINS;
        let apart = self.apart();
        let totals = match load::counts(&load.source, apart, diag)? {
            Some(totals) => totals,
            None if apart.is_some() => {
                let name = load.source.name();
                anyhow::bail!("{name}: holds samples; perf stat record counts by processor");
            }
            None => with_progress(diag, || of_samples(&load, self.idle, context))?,
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

impl StatArgs {
    /// What counts are to be told apart by.
    fn apart(&self) -> Option<Apart> {
        let asked = [
            (self.no_aggr, Apart::Cpu),
            (self.per_core, Apart::Core),
            (self.per_die, Apart::Die),
            (self.per_socket, Apart::Socket),
            (self.per_node, Apart::Node),
        ];
        asked
            .into_iter()
            .find(|(is_asked, _)| *is_asked)
            .map(|(_, apart)| apart)
    }
}

/// Sums over the samples of `perf record`, and what weights make of them where there are any.
fn of_samples(
    load: &LoadOptions,
    keeps_idle: bool,
    context: &Context<'_>,
) -> anyhow::Result<Totals> {
    let profile = load::load(load, context.diag)?;
    require_samples(&profile)?;
    let mut seen = Seen::default();
    if !profile.events.iter().any(|event| is_clock(&event.name)) {
        seen.on_cpu = weight(load, Spec::OnCpu).map(|p| total(&p).0);
    }
    if profile.events.iter().any(|event| event.is_tracepoint) {
        let blocks = weight(load, Spec::Heap(weigh::spec::Heap::AllocCount));
        let is_whole = profile.recording.lost == 0;
        seen.allocations = blocks.map(|profile| (total(&profile).1, !is_whole));
    }
    let mut totals = sampled(&profile, seen);
    if !keeps_idle {
        leave_out_idle(&mut totals, &profile);
    }
    Ok(totals)
}

/// A processor that runs the idle task is not utilized.
fn leave_out_idle(totals: &mut Totals, profile: &Profile) {
    let weights = idle::weights(profile);
    for (total, (event, count)) in totals.events.iter_mut().zip(weights.iter_enumerated()) {
        let event = &profile[event];
        // Counters of tasks tell nothing of it.
        let is_of_samples = total.count.value == event.period as f64;
        if event.is_cpu_time() && is_of_samples {
            total.idle = count.period as f64;
            let left = Idle {
                count: *count,
                cpus: profile.recording.idle_cpus,
                unit: event.unit,
            };
            totals.idle = totals.idle.take().or_else(|| left.line());
        }
    }
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
