//! Samples that were not recorded: time without a sample, cut to the chosen times, with what was known of the thread.

use crate::address::{Avma, Timestamp};
use crate::ids::{CommId, ThreadId};
use crate::perfdata::{CpuMode, EventId, RecordPos};
use crate::run_state::RunState;
use crate::session::{Filter, Label, SampleRef, SpaceId};

/// How much of a time is within the chosen times.
pub(super) fn within(filter: &Filter, from: u64, to: u64) -> u64 {
    if filter.times.is_empty() {
        return to.saturating_sub(from);
    }
    let parts = filter.times.iter();
    parts
        .map(|&(start, end)| to.min(end).saturating_sub(from.max(start)))
        .fold(0, u64::saturating_add)
}

/// Makes labels.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) texts: Vec<String>,
}

impl Labels {
    /// The label of a text. There are few of them.
    pub(super) fn of(&mut self, text: &str) -> Label {
        let known = self.texts.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        });
        Label::of_text(index)
    }
}

/// A sample without a record, whose only frame is a label.
pub(super) fn sample(
    (thread, comm): (ThreadId, CommId),
    time: u64,
    period: u64,
    state: RunState,
    label: Label,
) -> SampleRef {
    SampleRef {
        pos: RecordPos::NONE,
        time: Timestamp(time),
        ip: Avma(0),
        period,
        thread,
        comm,
        space: SpaceId(0),
        cpu: -1,
        event: EventId(0),
        layout: EventId(0),
        mode: CpuMode::User,
        state,
        label,
    }
}
