//! `--between A..B`: the times of a thread from one event to another one, all of them or the slowest.
//!
//! Pairs are made as for `--weight A..B`. What begins on one thread and ends on another one is no time of one thread: nothing tells
//! which of them worked on it.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::read::Source;
use super::{WeighError, pairs};
use crate::ids::ThreadId;
use crate::session::Samples;
use crate::span_spec::{Slowest, Spans};

/// A span of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    thread: ThreadId,
    from: u64,
    to: u64,
}

impl Span {
    const fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// Times of threads.
#[derive(Debug, Default)]
pub struct Chosen {
    /// By thread, in order, apart from each other; both ends belong to them.
    times: FxHashMap<ThreadId, Vec<(u64, u64)>>,
    /// What headers say of them.
    pub said: String,
}

impl Chosen {
    /// Whether a thread is in a span then.
    #[must_use]
    pub fn has(&self, thread: ThreadId, time: u64) -> bool {
        let Some(times) = self.times.get(&thread) else {
            return false;
        };
        let before = times.partition_point(|(from, _)| *from <= time);
        before > 0 && time <= times[before - 1].1
    }

    fn of(mut spans: Vec<Span>) -> Self {
        spans.sort_by_key(|span| (span.thread, span.from));
        let mut chosen = Self::default();
        for span in spans {
            let times = chosen.times.entry(span.thread).or_default();
            match times.last_mut().filter(|(_, to)| span.from <= *to) {
                Some((_, to)) => *to = span.to.max(*to),
                None => times.push((span.from, span.to)),
            }
        }
        chosen
    }
}

/// Finds the spans.
///
/// # Errors
/// When the recording has no such event, or no span.
pub fn between(
    source: Source<'_, '_>,
    samples: &Samples,
    spans: &Spans,
) -> Result<Chosen, WeighError> {
    let (pairs, lost) = pairs::places(source, samples, &spans.pair)?;
    let (found, of_two): (Vec<_>, Vec<_>) = pairs
        .into_iter()
        .map(|(begin, end)| (&samples.all[begin], &samples.all[end]))
        .partition(|(begin, end)| begin.thread == end.thread);
    let all = found.iter().map(|(begin, end)| Span {
        thread: begin.thread,
        from: begin.time.0,
        to: end.time.0,
    });
    let mut all: Vec<Span> = all.collect();
    all.sort_by_key(|span| (Reverse(span.length()), span.from, span.thread));
    let mut lost = lost;
    if !of_two.is_empty() {
        lost.push_str(&format!(
            ", {} from one thread to another left out",
            of_two.len()
        ));
    }
    let (option, count) = (spans.option(), all.len());
    if let Some((slowest, _)) = spans.slowest {
        all.truncate(chosen(&all, slowest));
    }
    let (Some(longest), Some(shortest)) = (all.first(), all.last()) else {
        return Err(WeighError(format!("{option}: no span of {count}{lost}")));
    };
    let milliseconds = |span: &Span| format!("{:.3} ms", span.length() as f64 * 1e-6);
    let said = format!(
        "Spans: {option}: {} of {count}, {} to {}{lost}",
        all.len(),
        milliseconds(shortest),
        milliseconds(longest)
    );
    let times = Chosen::of(all);
    Ok(Chosen { said, ..times })
}

/// How many of spans, the longest first, are the slowest.
fn chosen(all: &[Span], slowest: Slowest) -> usize {
    match slowest {
        Slowest::Share(share) => ((share * all.len() as f64).ceil() as usize).max(1),
        Slowest::Count(count) => count,
        Slowest::LongerThan(ns) => all.partition_point(|span| span.length() > ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(thread: u32, from: u64, to: u64) -> Span {
        let thread = ThreadId(thread);
        Span { thread, from, to }
    }

    #[test]
    fn spans_within_others_are_part_of_them() {
        let spans = vec![
            span(1, 10, 30),
            span(1, 12, 20),
            span(1, 25, 40),
            span(2, 5, 6),
        ];
        let chosen = Chosen::of(spans);
        let inside = |thread, times: std::ops::Range<u64>| -> Vec<u64> {
            times
                .filter(|time| chosen.has(ThreadId(thread), *time))
                .collect()
        };
        assert_eq!(inside(1, 0..100), (10..=40).collect::<Vec<_>>());
        assert_eq!(inside(2, 0..100), [5, 6]);
        assert!(inside(3, 0..100).is_empty());
    }

    #[test]
    fn of_a_few_spans_one_is_the_slowest() {
        let all = [span(1, 0, 9), span(1, 10, 15), span(1, 20, 22)];
        assert_eq!(chosen(&all, Slowest::Share(0.01)), 1);
        assert_eq!(chosen(&all, Slowest::Share(0.5)), 2);
        assert_eq!(chosen(&all, Slowest::LongerThan(5)), 1);
        assert_eq!(chosen(&all, Slowest::LongerThan(4)), 2);
    }
}
