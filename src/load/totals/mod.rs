//! Totals: what was counted in a whole run, from recordings of `perf stat` and of `perf record`.
//!
//! In: the records of counts, or a profile. Out: [`Totals`], counts by event, and by what they are told apart. The
//! writer ([`crate::output::stat`]) and metrics ([`crate::metrics`]) know no more than that.

use std::collections::BTreeMap;

use crate::profile::Ring;

mod counted;
mod sampled;

pub use counted::counted;
pub use sampled::{Seen, sampled};

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// The command that recorded, as its words.
    pub command: Vec<String>,
    /// How long, in ns.
    pub elapsed: Option<u64>,
    /// How long what was counted was on a processor, in ns, where no event tells.
    pub on_cpu: Option<u64>,
    /// Whether counts are sums over samples.
    pub is_sampled: bool,
    /// What is said of the idle task.
    pub idle: Option<String>,
    /// By event, in the order of the recording.
    pub events: Vec<Total>,
    /// What counts were told apart by: processors or threads, with their counts.
    pub parts: Vec<(String, Counts)>,
    /// All counts of a part come before those of the next one.
    pub is_by_part: bool,
    /// Counts of intervals: when each ended, and the events that were read.
    pub rounds: Vec<(u64, Vec<(usize, Count)>)>,
}

/// Counts by event, of those that were counted there.
pub type Counts = BTreeMap<usize, Count>;

/// What counts of processors are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// Each processor.
    Cpu,
    /// Cores.
    Core,
    /// Dies.
    Die,
    /// Sockets.
    Socket,
    /// NUMA nodes.
    Node,
}

/// An event and its count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Total {
    /// Its name.
    pub name: String,
    /// What its count is shown in, empty for none.
    pub unit: String,
    /// What it is multiplied by for that.
    pub scale: f64,
    /// All of it.
    pub count: Count,
    /// What of it was the idle task's.
    pub idle: f64,
    /// Which code was counted.
    pub ring: Ring,
    /// Whether no counter told anything: the machine has none of this event (perf says "not supported").
    pub is_missing: bool,
}

/// A count, and how long it was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Count {
    /// As the counter counts, scaled up to all of its time.
    pub value: f64,
    /// ns in which it was to be counted.
    pub enabled: u64,
    /// ns in which it was.
    pub running: u64,
    /// Whether it is an estimate from samples.
    pub is_estimate: bool,
}

impl Count {
    /// Whether there is a number at all.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.running > 0
    }

    /// One that is known without a counter's times.
    pub(crate) fn exact(value: f64) -> Self {
        Self {
            value,
            enabled: 1,
            running: 1,
            is_estimate: false,
        }
    }

    fn add(&mut self, other: Self) {
        self.value += other.value;
        self.enabled = self.enabled.saturating_add(other.enabled);
        self.running = self.running.saturating_add(other.running);
    }
}

impl Totals {
    /// Names of the events.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event.name.as_str())
            .collect()
    }

    /// ns on a processor: of the clock among the events, else what is known otherwise.
    #[must_use]
    pub fn on_cpu(&self, of: impl Fn(usize) -> Option<Count>) -> Option<f64> {
        let clock = (0..self.events.len())
            .find(|index| crate::metrics::is_clock(&self.events[*index].name));
        match clock {
            Some(clock) => of(clock).filter(Count::is_counted).map(|count| count.value),
            None => self.on_cpu.map(|ns| ns as f64),
        }
    }
}
