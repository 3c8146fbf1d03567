//! Totals as `perf stat` prints them, with its metrics behind the counts.
//!
//! In: [`Totals`]. Out: text. Layout after `util/stat-display.c` of perf 6.1; what is estimated from samples has a `~` in
//! front, which perf has no need of.

use std::io::{self, Write};

use super::text::harmless;
use crate::metrics::{Metric, is_clock};
use crate::profile::Ring;
use crate::totals::{Count, Total, Totals};

/// Columns of a name, with the blank in front.
const NAME: usize = 34;
/// Columns of units at least.
const UNIT: usize = 4;
/// Columns of what stands behind them.
const COMMENT: usize = 34;
/// Columns of what counts are told apart by.
const PART: usize = 10;

/// Writes everything.
///
/// # Errors
/// What `out` returns.
pub fn write(totals: &Totals, out: &mut dyn Write) -> io::Result<()> {
    if !totals.rounds.is_empty() {
        write_rounds(totals, out)?;
    }
    let what = if totals.is_sampled {
        "Sampled counts"
    } else {
        "Performance counter stats"
    };
    let command = totals.command.join(" ");
    writeln!(out, "\n {what} for '{}':\n", harmless(&command))?;
    let page = Page::of(totals);
    page.write_parts(out)?;
    let of = |event: usize| totals.events.get(event).map(|total| total.count);
    for (index, total) in totals.events.iter().enumerate() {
        page.write_line(index, total.count, &of, out)?;
    }
    page.write_other_metrics(&of, out)?;
    if let Some(elapsed) = totals.elapsed {
        let seconds = elapsed as f64 * 1e-9;
        let unit = if totals.is_sampled {
            "seconds from the first to the last sample"
        } else {
            "seconds time elapsed"
        };
        writeln!(out, "\n {seconds:>17.9} {unit}")?;
    }
    if let Some(idle) = &totals.idle {
        writeln!(out, "\n {}", harmless(idle))?;
    }
    if totals.events.iter().any(|total| total.count.is_estimate) {
        writeln!(out, "\n~ is estimated from samples")?;
    }
    writeln!(out)
}

/// A line for each event of each interval.
fn write_rounds(totals: &Totals, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "#           time             counts unit events")?;
    let page = Page {
        elapsed: None,
        ..Page::of(totals)
    };
    for (time, counts) in &totals.rounds {
        let of = |event: usize| {
            let found = counts.binary_search_by_key(&event, |(index, _)| *index);
            found.ok().map(|at| counts[at].1)
        };
        for (index, count) in counts {
            write!(
                out,
                "{:>6}.{:09} ",
                time / 1_000_000_000,
                time % 1_000_000_000
            )?;
            page.write_line(*index, *count, &of, out)?;
        }
    }
    Ok(())
}

/// What all lines have in common.
struct Page<'t> {
    totals: &'t Totals,
    unit: usize,
    elapsed: Option<u64>,
    /// Metrics that have a place behind an event, by event.
    beside: Vec<Option<Metric>>,
    /// Those that have none.
    others: Vec<Metric>,
}

impl<'t> Page<'t> {
    fn of(totals: &'t Totals) -> Self {
        let names = totals.names();
        let mut beside = vec![None; names.len()];
        let mut others = Vec::new();
        for metric in Metric::available(&names) {
            let Ok((above, _)) = metric.events(&names) else {
                continue;
            };
            match above[..] {
                [event] if beside[event].is_none() => beside[event] = Some(metric),
                _ => others.push(metric),
            }
        }
        let unit = totals
            .events
            .iter()
            .map(|total| harmless(&total.unit).chars().count());
        Self {
            totals,
            unit: unit.max().unwrap_or(0).max(UNIT),
            elapsed: totals.elapsed,
            beside,
            others,
        }
    }

    /// A line for each event and processor or thread.
    fn write_parts(&self, out: &mut dyn Write) -> io::Result<()> {
        let parts = &self.totals.parts;
        let names: Vec<_> = parts.iter().map(|(name, _)| harmless(name)).collect();
        let width = names.iter().map(|name| name.chars().count()).max();
        let width = width.unwrap_or(0).max(PART);
        let places = (0..parts.len()).flat_map(|part| {
            let events = parts[part].1.keys();
            events.map(move |event| (part, *event))
        });
        let mut places: Vec<(usize, usize)> = places.collect();
        if !self.totals.is_by_part {
            places.sort_unstable_by_key(|(part, event)| (*event, *part));
        }
        for (part, event) in places {
            let counts = &parts[part].1;
            let of = |other: usize| counts.get(&other).copied();
            write!(out, "{:<width$} ", names[part])?;
            self.write_line(event, counts[&event], &of, out)?;
        }
        if !parts.is_empty() {
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_line(
        &self,
        index: usize,
        count: Count,
        of: &dyn Fn(usize) -> Option<Count>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let total = &self.totals.events[index];
        let width = self.unit;
        let mut line = format!("{:>18}", number(total, count));
        line.push_str(&format!(" {:<width$}", harmless(&total.unit)));
        line.push_str(&format!(" {:<w$} ", harmless(&total.name), w = NAME - 2));
        let comment = self.comment(index, count, of);
        let comment = comment.map_or_else(String::new, |text| format!("# {text}"));
        line.push_str(&format!("{comment:<COMMENT$}"));
        if count.is_counted() && count.running != count.enabled {
            let share = 100.0 * count.running as f64 / count.enabled.max(1) as f64;
            line.push_str(&format!("  ({share:.2}%)"));
        }
        writeln!(out, "{}", line.trim_end())
    }

    /// What stands behind a count: a metric, else how many of it there are in a second on a processor.
    fn comment(
        &self,
        index: usize,
        count: Count,
        of: &dyn Fn(usize) -> Option<Count>,
    ) -> Option<String> {
        if !count.is_counted() {
            return None;
        }
        let is_part = self.totals.events[index].ring != Ring::All;
        if is_clock(&self.totals.events[index].name) {
            // A processor that runs the kernel is used, too.
            let elapsed = self.elapsed.filter(|elapsed| *elapsed > 0 && !is_part)?;
            let used = count.value - self.totals.events[index].idle;
            let cpus = used / elapsed as f64;
            return Some(format!("{cpus:>8.3} CPUs utilized"));
        }
        let metric = self.beside[index].as_ref();
        let metric = metric.filter(|metric| !metric.is_rate_in_time());
        metric
            .and_then(|metric| self.metric(metric, of))
            .or_else(|| self.in_a_second(count, of))
    }

    fn in_a_second(&self, count: Count, of: &dyn Fn(usize) -> Option<Count>) -> Option<String> {
        let on_cpu = self.totals.on_cpu(of).filter(|ns| *ns > 0.0)?;
        let rate = count.value / (on_cpu * 1e-9);
        let (rate, unit) = match rate {
            rate if rate >= 1e9 => (rate / 1e9, "G/sec"),
            rate if rate >= 1e6 => (rate / 1e6, "M/sec"),
            rate if rate >= 1e3 => (rate / 1e3, "K/sec"),
            rate => (rate, "/sec"),
        };
        Some(format!("{rate:>8.3} {unit}"))
    }

    fn metric(&self, metric: &Metric, of: &dyn Fn(usize) -> Option<Count>) -> Option<String> {
        let (above, below) = metric.events(&self.totals.names()).ok()?;
        let sum = |events: Vec<usize>| -> Option<f64> {
            let counts = events
                .into_iter()
                .map(|event| of(event).filter(Count::is_counted));
            let counts: Option<Vec<Count>> = counts.collect();
            Some(counts?.iter().map(|count| count.value).sum())
        };
        let (above, below) = (sum(above)?, sum(below)?);
        if below <= 0.0 {
            return None;
        }
        let value = above / below * metric.factor;
        let digits = metric.digits(value);
        let width = 5 + digits;
        Some(if metric.is_percent {
            format!("{value:>width$.digits$}% {}", metric.meaning)
        } else {
            format!("{value:>width$.digits$}  {}", metric.meaning)
        })
    }

    /// Metrics of events that have another already.
    fn write_other_metrics(
        &self,
        of: &dyn Fn(usize) -> Option<Count>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let blanks = 18 + 1 + self.unit + NAME;
        for metric in &self.others {
            if let Some(text) = self.metric(metric, of) {
                writeln!(out, "{:blanks$}# {text}", "")?;
            }
        }
        Ok(())
    }
}

/// The count as it is shown; scaled ones have two digits (`abs_printout`).
fn number(total: &Total, count: Count) -> String {
    if !count.is_counted() {
        let what = if total.is_missing {
            "<not supported>"
        } else {
            "<not counted>"
        };
        return what.to_owned();
    }
    let mark = if count.is_estimate { "~" } else { "" };
    let digits = if total.scale.fract() == 0.0 { 0 } else { 2 };
    format!("{mark}{:.digits$}", count.value * total.scale)
}
