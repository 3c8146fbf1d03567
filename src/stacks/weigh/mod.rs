//! `--weight`: what samples weigh, where it is not what was recorded.
//!
//! In: the samples, what the session knows of them, and the records of those that matter. Out: other samples, whose periods are
//! the weights, and [`Weighed`], what is to be known of them. Called between the session and the parallel
//! pass; later stages and views do not know that there are weights, only that samples have periods.
//!
//! Presets that pair events (`waits`, `pairs`) need all samples in order: filters apply behind them.

pub mod expr;
pub mod heap;
pub mod spec;

mod addresses;
mod alloc;
mod allocators;
mod calls;
mod events;
mod fields;
mod made;
mod oncpu;
mod pairs;
mod read;
mod returns;
mod spans;
mod time;
mod timeline;
mod waits;

use self::events::plain_name;
use crate::perfdata::{Event, Recording};
use crate::session::{Filter, Samples};
use crate::unit::Unit;

pub use allocators::{Kind, is_allocator};
pub use read::Source;
pub use returns::returns;
pub use spans::{Chosen, between};
pub use spec::Spec;
pub use waits::{Evidence, Interval};

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What samples weigh.
    pub spec: Spec,
    /// As it was typed, for names and messages.
    pub text: String,
    /// Where nothing was asked for: the events tell, if all of them are probes or switches.
    pub infers: bool,
    /// Numbers that are known to be wrong are wanted all the same.
    pub force: bool,
    /// Frames that belong to the measurement, not to the program, are left out.
    pub trims: bool,
    /// Stacks say what a thread was doing.
    pub shows_states: bool,
    /// What could be paired is told, whatever samples weigh.
    pub tells_pairs: bool,
}

/// How well calls and returns, or switches away and back, belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// What there is, in words.
    pub text: String,
    /// How many things should have had another.
    pub all: u64,
    /// How many have not.
    pub without: u64,
    /// Whether sums are wrong where many have not; else they are bounds.
    pub harms: bool,
    /// Blocks may be freed in a way that was not recorded.
    pub is_blind: bool,
}

/// What of a recording's events can be paired for weights.
#[must_use]
pub fn found_pairs(source: Source<'_, '_>, samples: &Samples) -> Vec<Pairs> {
    let heap = alloc::pairs(source, samples);
    heap.into_iter()
        .chain(time::pairs(source, samples))
        .collect()
}

/// Why there are no such weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WeighError(pub String);

/// What was made of the samples.
#[derive(Debug, Clone, Default)]
pub struct Weighed {
    /// The event that all samples are of now, if they are not of those that were recorded.
    pub event: Option<Derived>,
    /// What the quality line says about it.
    pub quality: Vec<String>,
    /// The same of samples that were left out, of which a warning tells as well.
    pub left_out: Vec<String>,
    /// Frames in front of stacks that are not to be shown.
    pub trim: Option<Trim>,
}

/// An event that was not recorded but computed.
#[derive(Debug, Clone, Default)]
pub struct Derived {
    /// Its name, with what it counts in parentheses.
    pub name: String,
    /// What its weights are.
    pub unit: Unit,
    /// What its samples are: `blocks`, `intervals`.
    pub counted: &'static str,
    /// Lines for headers.
    pub lines: Vec<String>,
    /// Whether its samples have call chains.
    pub has_callchains: bool,
}

/// Which frames are left out where stacks begin with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// The scheduler's own.
    Scheduler,
    /// Allocators, and what languages put around them.
    Allocators,
}

/// The scheduler's way from a wait to the tracepoint.
const SCHEDULER: [&str; 6] = [
    "__schedule",
    "schedule",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "schedule_preempt_disabled",
];

impl Trim {
    /// Whether a frame of this name is left out in front of a stack.
    #[must_use]
    pub fn leaves_out(self, name: &str) -> bool {
        match self {
            Self::Scheduler => SCHEDULER.contains(&name),
            Self::Allocators => is_allocator(name),
        }
    }
}

/// What samples weigh where nothing was asked for: bytes if all events are probes and some are of allocators, time if all are
/// tracepoints and some are switches. As they were recorded, calls of `malloc` say that `malloc` is all there is.
#[must_use]
pub fn infer(recording: &Recording<'_>) -> Option<(Spec, &'static str)> {
    let is_dummy = |event: &Event| plain_name(event) == "dummy";
    let events = || recording.events.iter().filter(|event| !is_dummy(event));
    let has_return = |name: &str| name.contains("__return");
    let allocates = |event: &Event| {
        let kind = allocators::kind_of_event(&event.name);
        let is_probe = recording
            .tracepoints
            .field(event.attr.config, "__probe_ip")
            .is_some();
        is_probe && !has_return(&event.name) && kind.is_some_and(Kind::allocates)
    };
    if !events().all(|event| event.attr.is_tracepoint()) {
        return None;
    }
    if events().any(allocates) {
        return Some((Spec::Heap(spec::Heap::Alloc), "alloc"));
    }
    let is_switch = |event: &Event| events::is_tracepoint(event, "sched:sched_switch");
    events()
        .any(is_switch)
        .then_some((Spec::Waits(spec::Waits::OffCpu), "offcpu"))
}

/// Makes of the samples what was asked for.
///
/// # Errors
/// When the recording does not have what it takes, or lost too much of it.
pub fn weigh(
    source: Source<'_, '_>,
    mut recorded: Samples,
    options: &Options,
    filter: &Filter,
) -> Result<(Samples, Weighed), WeighError> {
    let samples = &mut recorded;
    let mut weighed = match &options.spec {
        Spec::Period => Ok(Weighed::default()),
        Spec::Samples => {
            count(samples);
            Ok(Weighed::default())
        }
        Spec::Faults => fields::faults(source, samples),
        Spec::Expressions(terms) => fields::expressions(source, samples, terms, options),
        Spec::Duration(pair) => pairs::weigh(source, samples, pair.as_ref(), options, filter),
        Spec::Waits(waits) => time::waits(source, samples, *waits, options, filter),
        Spec::OnCpu => time::oncpu(source, samples, filter),
        Spec::Wall => time::wall(source, samples, options, filter),
        Spec::Heap(heap) => alloc::weigh(source, samples, *heap, options, filter),
    }?;
    weighed.trim = options.spec.trim().filter(|_| options.trims);
    if weighed.event.is_some() {
        let mut weights = recorded.all.iter().map(|sample| sample.period);
        if weights.try_fold(0_u64, u64::checked_add).is_none() {
            return Err(WeighError(format!(
                "--weight {}: it adds up to more than 2^64",
                options.text
            )));
        }
    }
    Ok((recorded, weighed))
}

/// When threads were not on a processor, as far as switches were recorded.
#[must_use]
pub fn waits(source: Source<'_, '_>, samples: &Samples) -> Vec<Interval> {
    time::intervals(source, samples)
}

/// Every sample weighs 1.
fn count(samples: &mut Samples) {
    for sample in &mut samples.all {
        sample.period = 1;
    }
    for (number, period) in &mut samples.rowless {
        *period = *number;
    }
}
