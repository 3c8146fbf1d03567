//! When: what the time panel of the page knows.
//!
//! In: the moments of the tree, and what a recording says about when. Out: a JSON object of phases, spells and gaps, and columns of
//! all cells and moments as bytes, which are behind the JSON in the same stream. What cells weigh follows from these, and is not
//! written twice. All times are milliseconds since the recording's first sample, as `--time +A,+B` takes them.
//!
//! A column has all series, one behind the other: the nodes of their cells, then the steps of their rows, then the cells of these, a
//! byte of each, and what is not the same for all rows. So numbers of one kind stand together, which packs them better.

use std::fmt::Write;

use crate::flame::{Flame, Moment, shown};
use crate::functions::FunctionId;
use crate::ids::Idx;
use crate::output::columns::{list, text};
use crate::output::over_time::When;
use crate::profile::ThreadId;
use crate::questions::over_time::{OverTime, Spell};

/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;
/// Steps into which the time is divided, at most.
const STEPS: u64 = 16_384;
/// The same where there are many samples, each of which costs bytes.
const FEW_STEPS: u64 = 4096;
/// So many are many.
const MANY: usize = 300_000;
/// Findings of spells that the page has a button for.
const SPELLS: usize = 6;
/// Spells of each, and gaps of each thread: there are not more pixels.
const PLACES: usize = 1000;

/// A recording of so many nanoseconds has a heat map, whatever comes back in it.
const LONG: u64 = 60_000_000_000;

/// Milliseconds of a column of the heat map, where the page has one: the time in which spells come back, else a second.
pub(super) fn period(over: &OverTime) -> Option<f64> {
    let of_spells = over.spells.iter().find_map(exact_period);
    let is_long = over.range.1.saturating_sub(over.range.0) >= LONG;
    of_spells.or(is_long.then_some(1000.0))
}

/// The same of some spells. The usual step is known to a sample only, and what comes back for minutes would be elsewhere in each
/// column: between the first and the last spell are so many whole steps.
fn exact_period(spell: &Spell) -> Option<f64> {
    let every = spell.every? as f64;
    let (first, last) = (spell.at.first()?.0, spell.at.last()?.0);
    let all = last.saturating_sub(first) as f64;
    Some(all / (all / every).round().max(1.0) / MILLISECOND as f64)
}

/// The columns of all moments.
pub(super) struct Columns {
    /// Milliseconds of a step.
    step: u64,
    /// Recordings begin here.
    begin: u64,
    /// From the first step to the one behind the last.
    range: (u64, u64),
    series: Vec<OfSeries>,
    /// By what all periods can be divided.
    pub(super) unit: u64,
    /// Behind the JSON.
    pub(super) bytes: Vec<u8>,
}

/// How the rows of a series are written.
#[derive(Clone, Default)]
struct OfSeries {
    rows: Vec<Row>,
    /// The nodes of its cells, in order.
    nodes: Vec<u64>,
    /// What each sample weighs, if all weigh the same; else each row says it.
    each: Option<u64>,
    /// Each row is one sample; else each says how many.
    are_ones: bool,
}

impl OfSeries {
    fn take(&mut self, rows: Vec<Row>) {
        let each = rows.first().map(|row| row.2 / row.3.max(1));
        self.each = each.filter(|each| {
            rows.iter()
                .all(|row| Some(row.2) == each.checked_mul(row.3))
        });
        self.are_ones = rows.iter().all(|row| row.3 == 1);
        self.rows = rows;
    }
}

/// A row: its step, its cell among those of its series, its weight and number of samples.
type Row = (u64, u64, u64, u64);

impl Columns {
    /// Of a tree with moments.
    pub(super) fn of(flame: &Flame, begin: u64) -> Self {
        let times = || flame.moments.iter().map(|moment| moment.time);
        let since = |time: u64| time.saturating_sub(begin);
        let first = since(times().min().unwrap_or(begin));
        let last = since(times().max().unwrap_or(begin));
        let parts = match flame.moments.len() {
            ..=MANY => STEPS,
            _ => FEW_STEPS,
        };
        let step = (last - first).div_ceil(MILLISECOND).div_ceil(parts).max(1);
        let step_of = |time: u64| since(time) / MILLISECOND / step;
        let mut columns = Self {
            step,
            begin,
            range: (step_of(begin + first), step_of(begin + last) + 1),
            series: vec![OfSeries::default(); flame.series.len()],
            unit: flame.moments.iter().fold(0, unit_of).max(1),
            bytes: Vec::with_capacity(flame.moments.len() * 4),
        };
        let numbers = flame.cells.iter().map(|cell| {
            let nodes = &mut columns.series[cell.series.index()].nodes;
            nodes.push(u64::from(cell.node.0));
            nodes.len() as u64 - 1
        });
        let numbers: Vec<u64> = numbers.collect();
        let series_of = |moment: &Moment| flame.cells[moment.cell.index()].series;
        let unit = columns.unit;
        for moments in flame.moments.chunk_by(|a, b| series_of(a) == series_of(b)) {
            let row = |moment: &Moment| {
                let cell = numbers[moment.cell.index()];
                (
                    step_of(moment.time),
                    cell,
                    moment.period / unit,
                    moment.samples,
                )
            };
            let mut rows: Vec<Row> = moments.iter().map(row).collect();
            rows.sort_unstable();
            // What a step has of a cell is one row: a range cannot part it.
            rows.dedup_by(|next, kept| {
                let is_same = (next.0, next.1) == (kept.0, kept.1);
                if is_same {
                    kept.2 = kept.2.saturating_add(next.2);
                    kept.3 = kept.3.saturating_add(next.3);
                }
                is_same
            });
            columns.series[series_of(&moments[0]).index()].take(rows);
        }
        columns.write();
        columns
    }

    fn write(&mut self) {
        let (series, bytes) = (&self.series, &mut self.bytes);
        let mut rising = |first: u64, numbers: &mut dyn Iterator<Item = u64>| {
            let mut last = first;
            for number in numbers {
                leb128(number - last, bytes);
                last = number;
            }
        };
        for of in series {
            rising(0, &mut of.nodes.iter().copied());
        }
        for of in series {
            rising(self.range.0, &mut of.rows.iter().map(|row| row.0));
        }
        // The order of stacks is nearly random, so that differences would take more. Bytes of the same place stand together, as
        // many as the number of cells needs: the high ones can be packed.
        let most = series.iter().map(|of| of.nodes.len()).max();
        let most = most.unwrap_or(0) as u64;
        let places = std::iter::successors(Some(1_u64), |place| place.checked_mul(256));
        for place in places.take_while(|place| *place < most) {
            let has = |of: &&OfSeries| place < of.nodes.len() as u64;
            let rows = series.iter().filter(has).flat_map(|of| &of.rows);
            bytes.extend(rows.map(|row| (row.1 / place) as u8));
        }
        for of in series.iter().filter(|of| of.each.is_none()) {
            of.rows.iter().for_each(|row| leb128(row.2, bytes));
        }
        for of in series.iter().filter(|of| !of.are_ones) {
            of.rows.iter().for_each(|row| leb128(row.3, bytes));
        }
    }

    /// The object, with times of phases, spells and gaps outwards to steps.
    pub(super) fn push_json(
        &self,
        when: &When<'_>,
        threads: &[Option<ThreadId>],
        json: &mut String,
    ) {
        let (from, to) = (self.range.0 * self.step, self.range.1 * self.step);
        let rows: usize = self.series.iter().map(|of| of.rows.len()).sum();
        let step = self.step;
        let _ = write!(
            json,
            ",\"time\":{{\"step\":{step},\"from\":{from},\"to\":{to},\"rows\":{rows},\"cpu\":{},\"series\":",
            when.over.is_cpu
        );
        list(json, &self.series, |of, json| {
            let (count, cells) = (of.rows.len(), of.nodes.len());
            let are_ones = u8::from(of.are_ones);
            let _ = match of.each {
                Some(each) => write!(json, "[{count},{each},{are_ones},{cells}]"),
                None => write!(json, "[{count},-1,{are_ones},{cells}]"),
            };
        });
        if let Some(period) = period(when.over) {
            let _ = write!(json, ",\"period\":{period:.3}");
        }
        let name = |function: FunctionId| {
            let label = when.labels.get(function.index());
            label.map_or_else(String::new, |label| shown(label).into_owned())
        };
        json.push_str(",\"phases\":");
        list(json, &when.over.phases, |phase, json| {
            let (begin, end) = self.outwards((phase.from, phase.to));
            let _ = write!(json, "[{begin},{end},");
            let function = phase.functions.first().map(|(function, _)| *function);
            text(&function.map_or_else(String::new, name), json);
            json.push(']');
        });
        let number = |thread: ThreadId| threads.binary_search(&Some(thread)).ok();
        let spells = when.over.spells.iter();
        let spells = spells.filter_map(|spell| Some((number(spell.thread)?, spell)));
        json.push_str(",\"spells\":");
        list(json, spells.take(SPELLS), |(thread, spell), json| {
            json.push('[');
            text(&words(&name(spell.function), spell), json);
            let longest = self.outwards(spell.at[spell.longest]);
            let _ = write!(json, ",{thread},[{},{}],", longest.0, longest.1);
            self.push_places(&spell.at, json);
            json.push_str(if spell.every.is_some() { ",1]" } else { "]" });
        });
        let gaps = when.over.gaps.iter();
        let gaps = gaps.filter_map(|gaps| Some((number(gaps.thread)?, gaps)));
        json.push_str(",\"gaps\":");
        list(json, gaps, |(thread, gaps), json| {
            let _ = write!(json, "[{thread},");
            let all: Vec<(u64, u64)> = gaps.all.iter().map(|gap| (gap.from, gap.to)).collect();
            self.push_places(&all, json);
            json.push(']');
        });
        json.push('}');
    }

    /// The longest of these, in order of time.
    fn push_places(&self, places: &[(u64, u64)], json: &mut String) {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(places[*at].1 - places[*at].0));
        order.truncate(PLACES);
        order.sort_unstable();
        list(json, order, |at, json| {
            let (from, to) = self.outwards(places[at]);
            let _ = write!(json, "[{from},{to}]");
        });
    }

    /// From the beginning of a step to the end of one.
    const fn outwards(&self, (from, to): (u64, u64)) -> (u64, u64) {
        let step = self.step * MILLISECOND;
        let (from, to) = (
            from.saturating_sub(self.begin) / step,
            to.saturating_sub(self.begin) / step + 1,
        );
        (from * self.step, to * self.step)
    }
}

/// What a button says.
fn words(name: &str, spell: &Spell) -> String {
    let ms = |ns: u64| ns.saturating_add(MILLISECOND / 2) / MILLISECOND;
    let (median, longest) = (ms(spell.median), ms(spell.lengths[spell.longest]));
    let mut words = match spell.at.len() {
        1 => format!("{name}: {longest} ms"),
        many => format!("{name}: {many} × {median} ms, longest {longest}"),
    };
    if let Some(every) = spell.every {
        let _ = write!(words, ", every {:.2} s", every as f64 * 1e-9);
    }
    words
}

/// By what the weight of a row, and of each of its samples, can be divided.
fn unit_of(unit: u64, moment: &Moment) -> u64 {
    let unit = gcd(unit, moment.period);
    match moment.period.checked_rem(moment.samples) {
        Some(0) if moment.samples > 1 => gcd(unit, moment.period / moment.samples),
        _ => unit,
    }
}

/// Seven bits a byte, the low ones first.
fn leb128(mut number: u64, bytes: &mut Vec<u8>) {
    while number > 0x7f {
        bytes.push(number as u8 & 0x7f | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
