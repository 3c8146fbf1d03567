//! `pjit stat`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::InputArgs;
use super::less::{Less, OfStat};
use super::page::Page;
use super::terminal::Output;
use super::verb::{Context, Verb, answered};
use crate::ask::{Request, Stat};
use crate::totals::Apart;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit stat", "perf.data of perf stat record"),
        (
            "pjit stat samples.data",
            "of perf record: sums, marked with ~",
        ),
        (
            "perf stat record -e cycles,instructions -- ./app; pjit stat",
            "",
        ),
        (
            "perf stat record -I 100 -- ./app; pjit stat",
            "intervals, then the total",
        ),
        (
            "perf stat record -a -- ./app; pjit stat --per-core",
            "each core, then the total",
        ),
    ],
    short: &[],
    notes: "Counters that shared the processor's are scaled up to the whole time, and the share in which they ran is after them. In recordings of perf record, counts of every event (-c 1) are exact. So are counts of tasks (perf record -s), if all tasks have one. ~ marks estimates.",
};

/// Arguments of `pjit stat`.
#[derive(Debug, Clone, Args)]
pub struct StatArgs {
    /// Recording of perf stat or perf record [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// Show counts of each processor
    #[arg(short = 'A', long = "no-aggr", group = "apart")]
    no_aggr: bool,

    /// Show counts of each core
    #[arg(long, group = "apart")]
    per_core: bool,

    /// Show counts of each die
    #[arg(long, group = "apart")]
    per_die: bool,

    /// Show counts of each socket
    #[arg(long, group = "apart")]
    per_socket: bool,

    /// Show counts of each NUMA node
    #[arg(long, group = "apart")]
    per_node: bool,

    /// Count idle processors among CPUs utilized
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
