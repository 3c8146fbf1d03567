//! Records of `perf stat record`: counts and what belongs to them.
//!
//! In: the body of one record. Out: plain numbers and names that borrow from it. Layouts: `tools/lib/perf/include/perf/event.h`.

use super::bytes::{u32_at, u64_at, until_nul};

/// A count as it was read (STAT): of one counter on one processor or in one thread, from the beginning on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Counter.
    pub id: u64,
    /// Processor, -1 for all.
    pub cpu: i32,
    /// Index into the threads that were recorded.
    pub thread: u32,
    /// The count.
    pub value: u64,
    /// For how long, in ns, it was to be counted.
    pub enabled: u64,
    /// For how long it was.
    pub running: u64,
}

/// Counts were read, all of them (STAT_ROUND).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatRound {
    /// The last time, not after an interval.
    pub is_last: bool,
    /// ns since counting began.
    pub time: u64,
}

/// How counts were taken (STAT_CONFIG).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatConfig {
    /// `enum aggr_mode`, which is 0 for each processor apart and 1 for all together in every version.
    pub aggregation: u64,
    /// ms between rounds, 0 without.
    pub interval: u64,
    /// Counts of counters that did not always run stand for more.
    pub scales: bool,
}

/// What is to be known of an event (EVENT_UPDATE).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EventUpdate<'b> {
    /// What its counts are.
    Unit(&'b [u8]),
    /// What its counts are multiplied by.
    Scale(f64),
    /// Its name.
    Name(&'b [u8]),
    /// Something else.
    Other,
}

/// A thread of the recording (THREAD_MAP).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedThread<'b> {
    /// Its number.
    pub tid: u64,
    /// Its name.
    pub comm: &'b [u8],
}

pub(super) fn stat(body: &[u8]) -> Option<Stat> {
    Some(Stat {
        id: u64_at(body, 0)?,
        cpu: u32_at(body, 8)?.cast_signed(),
        thread: u32_at(body, 12)?,
        value: u64_at(body, 16)?,
        enabled: u64_at(body, 24)?,
        running: u64_at(body, 32)?,
    })
}

pub(super) fn stat_round(body: &[u8]) -> Option<StatRound> {
    Some(StatRound {
        // `PERF_STAT_ROUND_TYPE__FINAL`
        is_last: u64_at(body, 0)? == 1,
        time: u64_at(body, 8)?,
    })
}

pub(super) fn stat_config(body: &[u8]) -> Option<StatConfig> {
    let mut config = StatConfig {
        aggregation: 1,
        scales: true,
        ..StatConfig::default()
    };
    let terms = body.get(8..)?.chunks_exact(16);
    let count = usize::try_from(u64_at(body, 0)?).ok()?;
    if terms.len() < count {
        return None;
    }
    for term in terms.take(count) {
        let value = u64_at(term, 8)?;
        match u64_at(term, 0)? {
            0 => config.aggregation = value,
            1 => config.interval = value,
            2 => config.scales = value != 0,
            _ => {}
        }
    }
    Some(config)
}

/// The counter and what is told of its event.
pub(super) fn event_update(body: &[u8]) -> Option<(u64, EventUpdate<'_>)> {
    let data = body.get(16..)?;
    let text = || until_nul(data).unwrap_or(data);
    let update = match u64_at(body, 0)? {
        0 => EventUpdate::Unit(text()),
        1 => EventUpdate::Scale(f64::from_bits(u64_at(data, 0)?)),
        2 => EventUpdate::Name(text()),
        _ => EventUpdate::Other,
    };
    Some((u64_at(body, 8)?, update))
}

/// The threads, in order.
#[must_use]
pub fn mapped_threads(body: &[u8]) -> Option<impl Iterator<Item = MappedThread<'_>>> {
    let count = usize::try_from(u64_at(body, 0)?).ok()?;
    let entries = body.get(8..)?.chunks_exact(24);
    if entries.len() < count {
        return None;
    }
    Some(entries.take(count).filter_map(|entry| {
        let comm = entry.get(8..)?;
        Some(MappedThread {
            tid: u64_at(entry, 0)?,
            comm: until_nul(comm).unwrap_or(comm),
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_are_not_there_make_no_configuration() {
        let mut body = 2_u64.to_le_bytes().to_vec();
        for word in [0_u64, 0, 2, 0] {
            body.extend(word.to_le_bytes());
        }
        let config = stat_config(&body).expect("two terms");
        assert_eq!(
            (config.aggregation, config.interval, config.scales),
            (0, 0, false)
        );
        body.truncate(30);
        assert_eq!(stat_config(&body), None);
    }
}
