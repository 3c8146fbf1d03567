//! `pjit stat`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::InputArgs;
use super::less::{Less, OfStat};
use super::terminal::Output;
use super::verb::{Context, Verb, answered};
use crate::ask::{Request, Stat};
use crate::totals::Apart;

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
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let view = Stat {
            apart: self.apart(),
        };
        let request = Request {
            keeps_idle: self.idle,
            ..Request::of(load, view)
        };
        let counted = answered(&request, context.diag)?;
        let mut out = Output::open(Some(context.environment.pager.as_str()));
        counted.write(&mut out)?;
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
