//! Recordings that weigh the same, however long they are.

use super::{EventId, EventSummary, Profile};
use crate::collect::Squares;
use crate::ids::IndexVec;
use crate::unit::Unit;

/// What all samples of an event of one recording weigh then: 1, in billionths.
const ONE: u64 = 1_000_000_000;

/// Rounds parts of a whole so that they add up to all of it.
#[derive(Debug, Clone, Copy)]
struct Shares {
    whole: u128,
    met: u128,
}

impl Shares {
    /// What the next part is of [`ONE`].
    fn next(&mut self, part: u64) -> u64 {
        let before = self.of(self.met);
        self.met += u128::from(part);
        self.of(self.met) - before
    }

    fn of(&self, part: u128) -> u64 {
        let share = part * u128::from(ONE) / self.whole.max(1);
        u64::try_from(share).unwrap_or(ONE)
    }
}

impl Profile {
    /// Gives the samples of each event the weight 1 together, those among them that filters took away.
    pub(super) fn normalize(&mut self) {
        let sums = self.sums();
        let all = (self.events.iter().zip(&sums.raw)).map(|(event, sum)| Shares {
            // What wrapped is less than its parts.
            whole: u128::from(event.period).max(*sum),
            met: 0,
        });
        let mut of_entries: IndexVec<EventId, Shares> = all.collect();
        let mut of_samples = of_entries.clone();
        let mut unequal = Squares::default();
        for entry in &mut self.entries {
            let place = (entry.first, entry.event);
            let shares = &mut of_entries[entry.event];
            if let Some(squares) = self.unequal.get(&place) {
                let factor = ONE as f64 / shares.whole.max(1) as f64;
                unequal.insert(place, squares * factor * factor);
            }
            entry.period = shares.next(entry.period);
        }
        self.unequal = unequal;
        for sample in &mut self.samples {
            sample.period = of_samples[sample.event].next(sample.period);
        }
        let qualities = self.quality.events.raw.iter_mut();
        for (quality, shares) in qualities.zip(&of_entries.raw) {
            for period in &mut quality.periods.0 {
                *period = shares.of(u128::from(*period));
            }
        }
        for (event, shares) in self.events.iter_mut().zip(&of_entries.raw) {
            normalize_event(event, *shares);
        }
        let said = "each recording weighs 1, in billionths";
        self.quality.weights.push(said.to_owned());
    }

    /// What the rows of each event weigh.
    fn sums(&self) -> IndexVec<EventId, u128> {
        let mut sums = IndexVec::from_vec(vec![0; self.events.len()]);
        let entries = self.entries.iter().map(|entry| (entry.event, entry.period));
        let samples = self.samples.iter();
        for (event, period) in entries.chain(samples.map(|sample| (sample.event, sample.period))) {
            sums[event] += u128::from(period);
        }
        sums
    }
}

/// What an event weighs is no time any more, and no count.
fn normalize_event(event: &mut EventSummary, shares: Shares) {
    let whole = shares.of(shares.whole);
    event.filtered_period = shares.of(event.filtered_period.into());
    event.period = whole;
    event.unit = Unit::Count;
}
