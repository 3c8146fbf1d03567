//! `--time`, `--phase`, `--time-quantum` and `--cpu`: perf's grammar in, numbers out. On the ground floor, because the range of a recording
//! is known only when it is opened.
//!
//! `START,STOP` in seconds with either left out; several such pairs separated by blanks; shares of the recording
//! as `10%/2` (the second tenth), `10%-20%`, or a list of those. Both ends belong to a range, as in
//! perf (`util/time-utils.c`). Seconds with a plus sign, which perf takes for the same as without, count from the recording's
//! first sample: nobody can type the seconds since the machine was started.

use std::fmt;

/// What `--time` asks for, to be resolved when the recording's first and last sample are known.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSpec {
    ranges: Vec<Range>,
    /// Whether all but the ranges is asked for.
    is_rest: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Range {
    /// Nanoseconds.
    Absolute(u64, u64),
    /// Nanoseconds since the first sample.
    Since(u64, u64),
    /// Shares of the recording, 0 to 1.
    Share(f64, f64),
}

/// A text that is no time range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeError(String);

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--time takes START,STOP in seconds, +1,+2 from the first sample, 10%/2 or 10%-20%, not '{}'",
            self.0
        )
    }
}

impl std::error::Error for TimeError {}

impl TimeSpec {
    /// Parses the argument.
    ///
    /// # Errors
    ///
    /// When it fits no form of the grammar, or a range ends before it begins.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let error = || TimeError(text.to_owned());
        let ranges: Option<Vec<Range>> = if text.contains('%') {
            text.split([',', ' '])
                .filter(|part| !part.is_empty())
                .map(share)
                .collect()
        } else {
            text.split(' ')
                .filter(|part| !part.is_empty())
                .map(absolute)
                .collect()
        };
        let ranges = ranges
            .filter(|ranges| !ranges.is_empty())
            .ok_or_else(error)?;
        Ok(Self {
            ranges,
            is_rest: false,
        })
    }

    /// Ranges in ns, both ends included.
    #[must_use]
    pub fn of(ranges: &[(u64, u64)]) -> Self {
        let absolute = |(from, to): &(u64, u64)| Range::Absolute(*from, *to);
        Self {
            ranges: ranges.iter().map(absolute).collect(),
            is_rest: false,
        }
    }

    /// All that this leaves out.
    #[must_use]
    pub fn rest(&self) -> Self {
        Self {
            is_rest: !self.is_rest,
            ..self.clone()
        }
    }

    /// The ranges in ns when they do not depend on the recording.
    #[must_use]
    pub fn absolute(&self) -> Option<Vec<(u64, u64)>> {
        let is_absolute = self
            .ranges
            .iter()
            .all(|range| matches!(range, Range::Absolute(..)));
        is_absolute.then(|| self.resolve(0, 0))
    }

    /// The ranges in ns, both ends included, for a recording whose samples lie between `first` and `last`.
    #[must_use]
    pub fn resolve(&self, first: u64, last: u64) -> Vec<(u64, u64)> {
        let total = last.saturating_sub(first) as f64;
        let at = |share: f64| first.saturating_add((share * total).round() as u64);
        let resolve = |range: &Range| match *range {
            Range::Absolute(start, end) => (start, end),
            Range::Since(start, end) => (first.saturating_add(start), first.saturating_add(end)),
            Range::Share(start, end) => {
                let (start, end) = (at(start), at(end));
                // The next slice begins where this one ends.
                (
                    start,
                    if end > start && end != last {
                        end - 1
                    } else {
                        end
                    },
                )
            }
        };
        let ranges: Vec<(u64, u64)> = self.ranges.iter().map(resolve).collect();
        if self.is_rest {
            between(ranges)
        } else {
            ranges
        }
    }
}

/// What lies between ranges, before and behind them.
fn between(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut rest = Vec::new();
    let mut from = Some(0);
    for (start, end) in ranges {
        let Some(begin) = from else { break };
        if start > begin {
            rest.push((begin, start - 1));
        }
        from = end.checked_add(1).map(|next| next.max(begin));
    }
    rest.extend(from.map(|begin| (begin, u64::MAX)));
    rest
}

fn share(part: &str) -> Option<Range> {
    let number = |text: &str| {
        text.strip_suffix('%')?
            .parse::<f64>()
            .ok()
            .map(|percent| percent / 100.0)
    };
    let (start, end) = if let Some((share, index)) = part.split_once('/') {
        let (share, index) = (
            number(share)?,
            index.parse::<u32>().ok().filter(|index| *index > 0)?,
        );
        (share * f64::from(index - 1), share * f64::from(index))
    } else if let Some((start, end)) = part.split_once('-') {
        (number(start)?, number(end)?)
    } else {
        (0.0, number(part)?)
    };
    // A third of 100 % three times is a little more than all of it.
    let is_inside = 0.0 <= start && start <= end && end <= 1.0 + 1e-9;
    is_inside.then_some(Range::Share(start, end.min(1.0)))
}

fn absolute(part: &str) -> Option<Range> {
    let (start, end) = part.split_once(',')?;
    // Either both ends are since the first sample, or none is.
    let is_since = start.starts_with('+') || start.is_empty() && end.starts_with('+');
    let number = |text: &str| {
        if is_since {
            nanoseconds(text.strip_prefix('+')?)
        } else {
            nanoseconds(text)
        }
    };
    let start = if start.is_empty() { 0 } else { number(start)? };
    let end = if end.is_empty() {
        u64::MAX
    } else {
        number(end)?
    };
    let range = if is_since {
        Range::Since(start, end)
    } else {
        Range::Absolute(start, end)
    };
    (start <= end).then_some(range)
}

/// Seconds with up to nine decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.get(..fraction.len().min(9))?;
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(seconds) || !are_digits(fraction) {
        return None;
    }
    let billionths = format!("{digits:0<9}").parse::<u64>().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(billionths)
}

/// Numbers of `--phase`, such as `2` or `1,3`.
///
/// # Errors
///
/// When the text is anything else.
pub fn parse_phases(text: &str) -> Result<Vec<usize>, String> {
    let number = |part: &str| part.parse::<usize>().ok().filter(|number| *number > 0);
    let numbers: Option<Vec<usize>> = text.split(',').map(number).collect();
    numbers.ok_or_else(|| format!("--phase takes numbers of phases such as 2 or 1,3, not '{text}'"))
}

/// Nanoseconds of `--time-quantum`: a number with `s`, `ms`, `us` or `ns`.
///
/// # Errors
///
/// When the text is anything else.
pub fn parse_quantum(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "s" => 1_000_000_000,
        "ms" | "" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => {
            return Err(format!(
                "takes a time in s, ms, us or ns, without the unit '{unit}'"
            ));
        }
    };
    let number = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(scale));
    number
        .filter(|quantum| *quantum > 0)
        .ok_or_else(|| "takes a time such as 10ms".to_owned())
}

/// CPUs of a list such as `0-2,5`.
///
/// # Errors
///
/// When the text is anything else.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (begin, end) = part.split_once('-').unwrap_or((part, part));
        let range = begin
            .trim()
            .parse::<u32>()
            .ok()
            .zip(end.trim().parse::<u32>().ok());
        let (first, last) = range
            .filter(|(first, last)| first <= last && *last < 1 << 20)
            .ok_or_else(|| format!("-C takes numbers of processors such as 0-2,5, not '{part}'"))?;
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_and_the_rest_are_everything() {
        for (text, rest) in [
            ("0.000000002,0.000000005", vec![(0, 1), (6, u64::MAX)]),
            (",0.000000005", vec![(6, u64::MAX)]),
            ("0.000000002,", vec![(0, 1)]),
            (",", vec![]),
            (
                "0.000000004,0.000000009 0.000000002,0.000000005 0.00000002,0.00000003",
                vec![(0, 1), (10, 19), (31, u64::MAX)],
            ),
        ] {
            let time = TimeSpec::parse(text).expect("a range");
            assert_eq!(time.rest().resolve(0, 100), rest, "{text}");
            assert_eq!(time.rest().rest(), time);
        }
        let half = TimeSpec::parse("50%/1").expect("a range").rest();
        assert_eq!(half.resolve(100, 300), [(0, 99), (200, u64::MAX)]);
    }

    fn resolve(text: &str) -> Vec<(u64, u64)> {
        TimeSpec::parse(text)
            .expect("valid range")
            .resolve(1000, 2000)
    }

    #[test]
    fn seconds_may_be_open_at_either_end() {
        assert_eq!(resolve("1.5,2"), [(1_500_000_000, 2_000_000_000)]);
        assert_eq!(resolve(",0.000000001"), [(0, 1)]);
        assert_eq!(resolve("3,"), [(3_000_000_000, u64::MAX)]);
        assert_eq!(resolve("1,2 3,4").len(), 2);
        assert!(
            TimeSpec::parse("2,1").is_err()
                && TimeSpec::parse("abc").is_err()
                && TimeSpec::parse("").is_err()
        );
    }

    #[test]
    fn seconds_with_a_sign_count_from_the_first_sample() {
        assert_eq!(resolve("+0.0000001,+0.0000005"), [(1100, 1500)]);
        assert_eq!(resolve("+0,"), [(1000, u64::MAX)]);
        assert_eq!(resolve(",+0.0000005"), [(1000, 1500)]);
        assert_eq!(resolve("+1,+2 3,4").len(), 2);
        let of = |text| TimeSpec::parse(text).map(|spec| spec.absolute());
        assert_eq!(of("+1,+2"), Ok(None));
        for bad in ["+1,2", "1,+2", "+2,+1", "++1,+2", "+,+1"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_slices_ranges_or_lists() {
        assert_eq!(resolve("10%/2"), [(1100, 1199)]);
        assert_eq!(resolve("90%-100%"), [(1900, 2000)]);
        assert_eq!(resolve("10%"), [(1000, 1099)]);
        assert_eq!(resolve("0%-10%,50%/2"), [(1000, 1099), (1500, 2000)]);
        assert!(TimeSpec::parse("20%-10%").is_err() && TimeSpec::parse("60%/2").is_err());
    }

    #[test]
    fn quanta_and_cpus() {
        assert_eq!(parse_quantum("100us"), Ok(100_000));
        assert!(parse_quantum("0s").is_err() && parse_quantum("1h").is_err());
        assert_eq!(parse_cpus("0-2,5"), Ok(vec![0, 1, 2, 5]));
        assert_eq!(parse_phases("2,1"), Ok(vec![2, 1]));
        assert!(
            ["", "0", "1,", "-1", "x"]
                .iter()
                .all(|text| parse_phases(text).is_err())
        );
        assert!(parse_cpus("2-1").is_err() && parse_cpus("x").is_err());
    }
}
