//! On which clock a dump was written, and how that becomes the recording's.
//!
//! Runtimes write `CLOCK_MONOTONIC` nanoseconds, a few the processor's counter. With
//! `perf record -k mono` the recording has the same clock. Without, it has the kernel's scheduler
//! clock, which counts nanoseconds too but stands some milliseconds apart; perf refuses such dumps.
//! How far apart follows from events that both sides saw: the runtime maps its dump, and fills memory
//! that it has just made executable.

use super::ClockFit;
use crate::address::Timestamp;
use crate::perfdata::{ClockId, Recording, TimeConv};

/// A header is written this long after the dump was mapped (wasmtime: 16 µs).
const HEADER_DELAY: i64 = 20_000;
/// The first load into fresh memory comes at least this long after its mapping (V8: 84 µs).
const LOAD_DELAY: i64 = 50_000;
/// Clocks that were measured to differ by less are the same.
const AGREE: i64 = 200_000;
/// Nothing that belongs together lies further apart.
const SECOND: i64 = 1_000_000_000;
/// A runtime may take this long from mapping its dump to its first load (V8: 8 to 40 ms).
const START_UP: i64 = 50_000_000;
/// A header timestamp that far from the first record is on another clock (V8, CPython).
const HOUR: u64 = 3_600_000_000_000;

/// The clock of the recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordingClock {
    /// What `-k` asked for; `None` is the kernel's scheduler clock.
    pub clock: Option<ClockId>,
    /// One moment as wall-clock nanoseconds since 1970 and on the recording's clock.
    pub wall: Option<(u64, Timestamp)>,
}

impl RecordingClock {
    /// The clock of a recording.
    #[must_use]
    pub fn of(recording: &Recording<'_>) -> Self {
        let clock = recording
            .events
            .first()
            .and_then(|event| event.attr.clock());
        let wall = recording
            .features
            .clock_data
            .map(|data| (data.wall_ns, Timestamp(data.clock_ns)));
        Self { clock, wall }
    }

    pub(super) fn is_monotonic(&self) -> bool {
        self.clock == Some(ClockId::MONOTONIC)
    }

    /// How far the wall clock is ahead of the recording's, if the recording tells.
    fn wall_ahead(&self) -> Option<i64> {
        let (wall, clock) = self.wall?;
        i64::try_from(i128::from(wall) - i128::from(clock.0)).ok()
    }

    /// A file time on the recording's clock, if the recording tells how.
    pub(super) fn of_wall(&self, wall_ns: u64) -> Option<i128> {
        let (wall, clock) = self.wall?;
        Some(i128::from(clock.0) + i128::from(wall_ns) - i128::from(wall))
    }
}

/// What is known about the time of one dump.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// When the dump was mapped, unless that record was synthesised.
    pub(super) marker: Option<Timestamp>,
    /// Header timestamp, raw.
    pub(super) header: u64,
    /// Whether timestamps are those of the processor's counter.
    pub(super) arch_timestamps: bool,
    /// First and last load in file order, raw; `None` without loads.
    pub(super) loads: Option<(u64, u64)>,
    /// For memory that became executable while it was recorded: when, and the first load in it, raw. Matters only if
    /// the clocks [differ](differs).
    pub(super) fresh: Vec<(Timestamp, u64)>,
    /// The last moment the recording knows.
    pub(super) end: Option<Timestamp>,
}

/// How the times of a dump become the recording's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    /// As they are.
    Same,
    /// Less so many nanoseconds; known to `within` nanoseconds.
    Shifted { by: i64, within: i64 },
    /// Less so many nanoseconds: wall-clock times, which the recording relates to its own clock.
    Wall { by: i64 },
    /// Converted from the processor's counter, then shifted.
    Counter { by: i64 },
    /// Not at all.
    Unknown(Why),
}

/// Why the times of a dump are not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// The processor's counter, and the recording does not tell its rate.
    NoConversion,
    /// Nothing in it happened while it was recorded.
    NoOverlap,
}

/// An estimate of how far a dump's clock is ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offset {
    by: i64,
    within: i64,
}

impl Relation {
    /// A raw time of the dump on the recording's clock; `None` when time is not used.
    pub(super) fn apply(&self, raw: u64, conversion: Option<&TimeConv>) -> Option<Timestamp> {
        match *self {
            Self::Same => Some(Timestamp(raw)),
            Self::Shifted { by, .. } | Self::Wall { by } => Some(shift(raw, by)),
            Self::Counter { by } => Some(shift(from_counter(raw, conversion?), by)),
            Self::Unknown(_) => None,
        }
    }

    /// The same for judgement.
    pub(super) fn fit(&self, recording: &RecordingClock) -> ClockFit {
        match *self {
            Self::Same if recording.is_monotonic() => ClockFit::Same,
            Self::Same => ClockFit::Assumed,
            Self::Shifted { .. } => ClockFit::Shifted,
            Self::Wall { .. } | Self::Counter { .. } => ClockFit::Converted,
            Self::Unknown(_) => ClockFit::Unused,
        }
    }

    /// For the quality line; empty when there is nothing to say.
    pub(super) fn describe(&self) -> String {
        match *self {
            Self::Same => String::new(),
            Self::Shifted { by, within } => {
                format!(
                    "clock shifted by {} ms, known to {} ms",
                    millis(by),
                    millis(within)
                )
            }
            Self::Wall { .. } => "times converted from the wall clock".into(),
            Self::Counter { by: 0 } => "times converted from the processor's counter".into(),
            Self::Counter { by } => {
                format!(
                    "times converted from the processor's counter and shifted by {} ms",
                    millis(by)
                )
            }
            Self::Unknown(Why::NoConversion) => {
                "times not used: counter values, and the recording has no conversion".into()
            }
            Self::Unknown(Why::NoOverlap) => {
                "times not used: none lies within the recording".into()
            }
        }
    }
}

/// The relation of every dump. What one dump tells about the clocks of the machine holds for all.
pub(super) fn relate(
    recording: &RecordingClock,
    conversion: Option<&TimeConv>,
    dumps: &[Evidence],
) -> Vec<Relation> {
    let measured = |dump: &Evidence| {
        differs(recording, dump.arch_timestamps)
            .then(|| dump.offset(conversion))
            .flatten()
    };
    let best = dumps
        .iter()
        .filter_map(measured)
        .min_by_key(|offset| offset.within);
    dumps
        .iter()
        .map(|dump| dump.relation(recording, conversion, best))
        .collect()
}

/// Whether the clock of a dump, the processor's counter or not, is another than the recording's.
pub(super) fn differs(recording: &RecordingClock, arch_timestamps: bool) -> bool {
    if arch_timestamps {
        // The counter's conversion yields the scheduler clock.
        recording.clock.is_some()
    } else {
        !recording.is_monotonic()
    }
}

impl Evidence {
    fn relation(
        &self,
        recording: &RecordingClock,
        conversion: Option<&TimeConv>,
        best: Option<Offset>,
    ) -> Relation {
        if self.arch_timestamps && conversion.is_none() {
            return Relation::Unknown(Why::NoConversion);
        }
        if !differs(recording, self.arch_timestamps) {
            let same = if self.arch_timestamps {
                Relation::Counter { by: 0 }
            } else {
                Relation::Same
            };
            return self.checked(same, conversion, recording);
        }
        let own = self
            .offset(conversion)
            .or_else(|| self.loose_offset(conversion));
        // The offset between two clocks belongs to the machine: the closest estimate wins.
        let offset = match (own, best) {
            (Some(own), Some(best)) if best.within < own.within => Some(best),
            (own, best) => own.or(best),
        };
        let Some(offset) = offset else {
            return self.checked(
                if self.arch_timestamps {
                    Relation::Counter { by: 0 }
                } else {
                    Relation::Same
                },
                conversion,
                recording,
            );
        };
        let by = if offset.by.abs() < AGREE && recording.clock.is_none() {
            0
        } else {
            offset.by
        };
        let relation = match (self.arch_timestamps, by) {
            (true, by) => Relation::Counter { by },
            (false, 0) => Relation::Same,
            (false, by) => Relation::Shifted {
                by,
                within: offset.within,
            },
        };
        self.checked(relation, conversion, recording)
    }

    /// The relation, unless it puts every load outside the recording. Counter values without the flag
    /// that says so are told by fitting better when converted, wall-clock times by lying all in the recording then.
    fn checked(
        &self,
        relation: Relation,
        conversion: Option<&TimeConv>,
        recording: &RecordingClock,
    ) -> Relation {
        if self.fits(relation, conversion) {
            return relation;
        }
        let counter = Relation::Counter { by: 0 };
        if conversion.is_some() && self.marker.is_some() && self.fits(counter, conversion) {
            return counter;
        }
        if let Some(by) = recording.wall_ahead()
            && self.lies_within(Relation::Wall { by })
        {
            return Relation::Wall { by };
        }
        Relation::Unknown(Why::NoOverlap)
    }

    /// Whether all loads came between the marker, which is recorded, and the end.
    fn lies_within(&self, relation: Relation) -> bool {
        let (Some((first, last)), Some(marker), Some(end)) = (self.loads, self.marker, self.end)
        else {
            return false;
        };
        let within = |raw| {
            let time = relation.apply(raw, None);
            let from = marker.0.saturating_sub(AGREE.unsigned_abs());
            time.is_some_and(|time| (from..=end.0).contains(&time.0))
        };
        within(first) && within(last)
    }

    /// Whether some load may have come between the marker and the end.
    fn fits(&self, relation: Relation, conversion: Option<&TimeConv>) -> bool {
        let Some((first, last)) = self.loads else {
            return true;
        };
        let (Some(first), Some(last)) = (
            relation.apply(first, conversion),
            relation.apply(last, conversion),
        ) else {
            return false;
        };
        let after_marker = self
            .marker
            .is_none_or(|marker| difference(last.0, marker.0) > -SECOND);
        let before_end = self
            .end
            .is_none_or(|end| difference(first.0, end.0) < SECOND);
        after_marker && before_end
    }

    /// How far the dump's clock is ahead, from what both sides saw almost at once.
    fn offset(&self, conversion: Option<&TimeConv>) -> Option<Offset> {
        let ahead = |raw, at: Timestamp| {
            self.nanoseconds(raw, conversion)
                .map(|time| difference(time, at.0))
        };
        let by_header = self
            .marker
            .filter(|_| self.has_usable_header())
            .and_then(|marker| ahead(self.header, marker))
            .map(|d| Offset {
                by: d - HEADER_DELAY,
                within: 2 * HEADER_DELAY,
            });
        // A load comes after its memory: every pair is an upper bound.
        let by_memory = self
            .fresh
            .iter()
            .filter_map(|&(at, raw)| ahead(raw, at))
            .min();
        let by_memory = by_memory.map(|d| Offset {
            by: d - LOAD_DELAY,
            within: 2 * LOAD_DELAY,
        });
        match (by_header, by_memory) {
            (Some(header), Some(memory)) if memory.by + LOAD_DELAY < header.by => Some(memory),
            (header, memory) => header.or(memory),
        }
    }

    /// From mapping to first load alone; the runtime's start-up lies between.
    fn loose_offset(&self, conversion: Option<&TimeConv>) -> Option<Offset> {
        let first = self.nanoseconds(self.loads?.0, conversion)?;
        let d = difference(first, self.marker?.0);
        let by = if (0..=START_UP).contains(&d) { 0 } else { d };
        Some(Offset {
            by,
            within: d.abs().clamp(AGREE, SECOND),
        })
    }

    fn has_usable_header(&self) -> bool {
        self.header != 0
            && self
                .loads
                .is_some_and(|(first, _)| first.abs_diff(self.header) < HOUR)
    }

    fn nanoseconds(&self, raw: u64, conversion: Option<&TimeConv>) -> Option<u64> {
        if self.arch_timestamps {
            Some(from_counter(raw, conversion?))
        } else {
            Some(raw)
        }
    }
}

/// Counter value to nanoseconds of the scheduler clock (`util/tsc.c`, `tsc_to_perf_time`; the two
/// halves keep the product from overflowing).
fn from_counter(raw: u64, conversion: &TimeConv) -> u64 {
    let cycles = if conversion.cap_user_time_short {
        conversion
            .cycles
            .wrapping_add(raw.wrapping_sub(conversion.cycles) & conversion.mask)
    } else {
        raw
    };
    let shift = u32::try_from(conversion.shift).unwrap_or(u32::MAX);
    let high = cycles.checked_shr(shift).unwrap_or(0);
    let low = cycles & 1_u64.checked_shl(shift).map_or(u64::MAX, |unit| unit - 1);
    let fraction = low
        .wrapping_mul(conversion.mult)
        .checked_shr(shift)
        .unwrap_or(0);
    conversion
        .zero
        .wrapping_add(high.wrapping_mul(conversion.mult))
        .wrapping_add(fraction)
}

/// What lies beyond is nonsense and kept far enough from the limits for sums and negations.
fn difference(a: u64, b: u64) -> i64 {
    const FAR: i128 = 1 << 61;
    let difference = (i128::from(a) - i128::from(b)).clamp(-FAR, FAR);
    i64::try_from(difference).expect("was clamped")
}

/// Never before the recording's own start of time.
fn shift(raw: u64, by: i64) -> Timestamp {
    let shifted = i128::from(raw) - i128::from(by);
    Timestamp(u64::try_from(shifted).unwrap_or(if shifted < 0 { 0 } else { u64::MAX }))
}

/// With two digits.
fn millis(nanoseconds: i64) -> String {
    let hundredths = (i128::from(nanoseconds) + 5_000 * i128::from(nanoseconds.signum())) / 10_000;
    let sign = if hundredths < 0 { "-" } else { "" };
    format!(
        "{sign}{}.{:02}",
        hundredths.abs() / 100,
        hundredths.abs() % 100
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: u64 = 3_997_652_522_000;

    fn dump(header: u64, first: u64) -> Evidence {
        Evidence {
            marker: Some(Timestamp(MARKER)),
            header,
            loads: Some((first, first + 5_000_000)),
            end: Some(Timestamp(MARKER + 2_000_000_000)),
            ..Evidence::default()
        }
    }

    fn with_clock(clock: Option<i32>) -> RecordingClock {
        RecordingClock {
            clock: clock.map(ClockId),
            wall: None,
        }
    }

    #[test]
    fn wall_clock_times_are_converted_where_the_recording_tells_how() {
        let wall = 1_790_000_000_000_000_000;
        let recording = RecordingClock {
            clock: Some(ClockId::MONOTONIC),
            wall: Some((wall, Timestamp(MARKER - 1_000_000_000))),
        };
        let by = i64::try_from(wall - (MARKER - 1_000_000_000)).expect("fits");
        let ahead = by.unsigned_abs();
        let one = |dump: Evidence| relate(&recording, None, &[dump])[0];
        let inside = dump(0, MARKER + ahead + 10_000_000);
        assert_eq!(one(inside.clone()), Relation::Wall { by });
        assert_eq!(
            Relation::Wall { by }.apply(MARKER + ahead + 5, None),
            Some(Timestamp(MARKER + 5))
        );
        // Of another run on the same day, or with nothing that tells when it was mapped.
        let unknown = Relation::Unknown(Why::NoOverlap);
        assert_eq!(one(dump(0, MARKER + ahead + 1_999_000_000)), unknown);
        assert_eq!(one(dump(0, MARKER + ahead - 10_000_000)), unknown);
        let unmarked = Evidence {
            marker: None,
            ..inside.clone()
        };
        assert_eq!(one(unmarked), unknown);
        assert_eq!(one(dump(0, MARKER + 10_000_000)), Relation::Same);
        let untold = with_clock(Some(1));
        assert_eq!(relate(&untold, None, &[inside])[0], unknown);
    }

    #[test]
    fn times_at_the_ends_of_the_range_do_no_harm() {
        let ends = [0, 1, MARKER, u64::MAX - 1, u64::MAX];
        for clock in [None, Some(1), Some(7)] {
            for (marker, header) in ends.into_iter().flat_map(|m| ends.map(|h| (m, h))) {
                for (first, fresh) in ends.into_iter().flat_map(|f| ends.map(|r| (f, r))) {
                    let evidence = Evidence {
                        marker: Some(Timestamp(marker)),
                        header,
                        loads: Some((first, u64::MAX)),
                        fresh: vec![(Timestamp(fresh), first)],
                        end: Some(Timestamp(u64::MAX)),
                        ..Evidence::default()
                    };
                    for relation in relate(&with_clock(clock), None, &[evidence]) {
                        let _ = relation.apply(first, None);
                    }
                }
            }
        }
    }

    #[test]
    fn one_clock_needs_no_shift() {
        // However late the first load comes.
        for first in [MARKER, MARKER + 900_000_000] {
            assert_eq!(
                relate(&with_clock(Some(1)), None, &[dump(0, first)]),
                [Relation::Same]
            );
        }
    }

    #[test]
    fn a_header_on_the_clock_of_records_measures_the_offset() {
        let wasmtime = dump(MARKER + 4_040_000, MARKER + 12_000_000);
        let relation = relate(&with_clock(None), None, std::slice::from_ref(&wasmtime))[0];
        assert_eq!(
            relation,
            Relation::Shifted {
                by: 4_020_000,
                within: 40_000
            }
        );
        assert_eq!(
            relation.describe(),
            "clock shifted by 4.02 ms, known to 0.04 ms"
        );
        assert_eq!(
            relation.apply(MARKER + 4_020_000, None),
            Some(Timestamp(MARKER))
        );
        let near = dump(MARKER + 60_000, MARKER + 12_000_000);
        assert_eq!(relate(&with_clock(None), None, &[near]), [Relation::Same]);
    }

    #[test]
    fn fresh_memory_measures_where_the_header_is_wall_clock() {
        let wall = 1_795_260_704_418_909;
        let mut node = dump(wall, MARKER + 31_000_000);
        node.fresh = vec![
            (Timestamp(MARKER + 58_000_000), MARKER + 62_240_000),
            (Timestamp(MARKER + 776_000_000), MARKER + 780_175_000),
        ];
        let other = dump(wall, MARKER + 31_000_000);
        let relations = relate(&with_clock(None), None, &[node, other]);
        assert_eq!(
            relations[0],
            Relation::Shifted {
                by: 4_125_000,
                within: 100_000
            }
        );
        // The dump that tells nothing itself takes the machine's offset.
        assert_eq!(relations[1], relations[0]);
        // On its own it stays as it is: a start-up of 31 ms is likelier than an offset.
        assert_eq!(
            relate(&with_clock(None), None, &[dump(wall, MARKER + 31_000_000)]),
            [Relation::Same]
        );
    }

    #[test]
    fn other_clocks_of_the_recording_are_measured_too() {
        // -k realtime: half a century apart.
        let apart = 1_700_000_000_000_000_000;
        let mut node = dump(0, MARKER - apart.min(MARKER));
        node.marker = Some(Timestamp(MARKER + apart));
        node.loads = Some((MARKER + 100, MARKER + 1_000));
        node.end = None;
        let relation = relate(&with_clock(Some(0)), None, &[node])[0];
        assert_eq!(
            relation.apply(MARKER + 100, None),
            Some(Timestamp(MARKER + apart))
        );
    }

    #[test]
    fn times_that_cannot_be_right_are_not_used() {
        let far = dump(0, MARKER + 10_000_000_000);
        assert_eq!(
            relate(&with_clock(Some(1)), None, &[far]),
            [Relation::Unknown(Why::NoOverlap)]
        );
        let old = dump(0, 5_000);
        assert_eq!(
            relate(&with_clock(Some(1)), None, &[old]),
            [Relation::Unknown(Why::NoOverlap)]
        );
        // Attached to a running process: its loads may be as old as they like.
        let attached = Evidence {
            marker: None,
            ..dump(0, 5_000)
        };
        assert_eq!(
            relate(&with_clock(Some(1)), None, &[attached]),
            [Relation::Same]
        );
    }

    #[test]
    fn counter_values_are_converted() {
        // 2 ns per tick of a counter that began 1000 ns late.
        let conversion = TimeConv {
            shift: 10,
            mult: 2048,
            zero: 1000,
            cap_user_time_zero: true,
            ..TimeConv::default()
        };
        assert_eq!(from_counter(1_000_003, &conversion), 2_001_006);
        let raw = (MARKER - 1000) / 2;
        let flagged = Evidence {
            arch_timestamps: true,
            ..dump(0, raw)
        };
        assert_eq!(
            relate(&with_clock(None), None, std::slice::from_ref(&flagged)),
            [Relation::Unknown(Why::NoConversion)]
        );
        let relation = relate(&with_clock(None), Some(&conversion), &[flagged])[0];
        assert_eq!(relation, Relation::Counter { by: 0 });
        assert_eq!(
            relation.apply(raw, Some(&conversion)),
            Some(Timestamp(MARKER))
        );
        // The flag is missing, but only converted values lie in the recording.
        let unflagged = relate(&with_clock(Some(1)), Some(&conversion), &[dump(0, raw)]);
        assert_eq!(unflagged, [Relation::Counter { by: 0 }]);
        for shift in [0, 63, 64, 1 << 40] {
            let _ = from_counter(
                u64::MAX,
                &TimeConv {
                    shift,
                    mult: u64::MAX,
                    ..conversion
                },
            );
        }
    }

    #[test]
    fn milliseconds_are_rounded() {
        assert_eq!(
            [millis(4_004_999), millis(-15_000), millis(0)],
            ["4.00", "-0.02", "0.00"]
        );
    }
}
