//! Rates of `--metrics`: for each row, the sum of some events in the sum of others, and how far that can be trusted.
//!
//! In: the profile's entries, one for each sample, and the rows they fell into. Out: [`Rates`]. Events that were
//! sampled apart say of a row what happened in it, with an error by how many samples that is. Members of a group say
//! what happened since the sample before: that is the row's own only where it runs for much longer than that.

use rustc_hash::FxHashMap;

use super::chains::Chains;
use super::classes::{ClassId, Classes};
use super::rows::{ContextId, Row, Rows, SharedContext};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec, numbers};
use crate::metrics::{self, Metric};
use crate::profile::{Entry, EntryId, EventId, Profile, ThreadId};

/// Samples of an event below which nothing is said.
const FEWEST: u64 = 30;
/// How far the next sample has to be in the same row, beyond chance, for a group's counts to be the row's.
const PERSISTENT: f64 = 0.8;
/// How many sampling periods a row has to run at a time for that.
const LONG_STAYS: f64 = 10.0;
/// Two standard errors leave out 5 %.
const CONFIDENCE: f64 = 1.96;
/// Counters that processors have at least.
const FEW_COUNTERS: usize = 4;

/// What a row's cell says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The quotient.
    pub value: f64,
    /// How far the true one may be from it, with 95 %.
    pub error: f64,
    /// Whether it is that of a group which cannot resolve the row.
    pub is_smeared: bool,
}

/// Rates of all rows.
#[derive(Debug, Default)]
pub struct Rates {
    /// The columns.
    pub metrics: Vec<Metric>,
    /// What is to be known of all.
    pub notes: Vec<String>,
    ids: FxHashMap<Identity, SharedRow>,
    identities: IndexVec<ContextId, SharedContext>,
    /// By row and metric.
    cells: Vec<Option<Rate>>,
}

/// What rows of several events share: what their contexts do, and the class.
type Identity = (SharedContext, ClassId);

numbers! {
    /// One of the rows of all events, those with one [`Identity`] counted once.
    struct SharedRow(u32);
}

/// What was counted of one event in one row.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    samples: u64,
    period: f64,
    squares: f64,
}

impl Sum {
    fn add(&mut self, entry: &Entry) {
        let (period, samples) = (entry.period as f64, entry.samples.max(1) as f64);
        self.samples += entry.samples;
        self.period += period;
        // Samples of one instant are alike.
        self.squares += period * period / samples;
    }

    fn and(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            period: self.period + other.period,
            squares: self.squares + other.squares,
        }
    }
}

/// How often a thread's next sample is in the same row.
#[derive(Debug, Clone, Copy, Default)]
struct Stays {
    samples: u64,
    followed: u64,
    again: u64,
}

/// What rates are made of.
pub(super) struct Input<'a> {
    pub(super) profile: &'a Profile,
    pub(super) chains: &'a Chains,
    pub(super) classes: &'a Classes,
    pub(super) rows: &'a Rows,
    pub(super) children: bool,
}

impl Rates {
    /// The rates of all rows.
    ///
    /// # Errors
    /// Names the event that a metric needs and the recording lacks.
    pub(super) fn of(metrics: &[Metric], input: &Input<'_>) -> Result<Self, String> {
        let mut rates = Self {
            metrics: metrics.to_vec(),
            ..Self::default()
        };
        if metrics.is_empty() {
            return Ok(rates);
        }
        let events = &input.profile.events;
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let ids = |places: Vec<usize>| places.into_iter().map(EventId::from_usize).collect();
        let sides = metrics.iter().map(|metric| {
            let (above, below) = metric.events(&names)?;
            Ok((ids(above), ids(below)))
        });
        let sides: Result<Vec<(Events, Events)>, String> = sides.collect();
        let sides = sides?;
        let mut used: IndexVec<EventId, bool> = index_vec![false; events.len()];
        for (above, below) in &sides {
            above
                .iter()
                .chain(below)
                .for_each(|event| used[*event] = true);
        }
        let counted = Counted::of(input, &used);
        for row in counted.rows() {
            for (metric, (above, below)) in metrics.iter().zip(&sides) {
                let rate = counted.rate(row, above, below, input.profile);
                rates.cells.push(rate.map(|rate| Rate {
                    value: rate.value * metric.factor,
                    error: rate.error * metric.factor,
                    ..rate
                }));
            }
        }
        rates.notes = notes(&counted, &rates, input.profile, &used);
        rates.ids = counted.ids;
        rates.identities = counted.identities;
        Ok(rates)
    }

    /// What is to be said of a row.
    pub(super) fn cell(&self, row: &Row, metric: usize) -> Option<Rate> {
        let identity = (*self.identities.get(row.context)?, row.class);
        let id = *self.ids.get(&identity)?;
        let cell = self.cells.get(id.index() * self.metrics.len() + metric);
        cell.copied().flatten()
    }
}

type Events = Vec<EventId>;

/// Everything that was counted.
struct Counted {
    events: usize,
    ids: FxHashMap<Identity, SharedRow>,
    identities: IndexVec<ContextId, SharedContext>,
    /// By row and event.
    sums: Vec<Sum>,
    /// By row and event, of leaders of groups.
    stays: Vec<Stays>,
    /// By event: all its samples.
    samples: IndexVec<EventId, u64>,
    /// Times between samples of groups in one thread, ns.
    steps: Vec<u64>,
}

impl Counted {
    fn of(input: &Input<'_>, used: &IndexSlice<EventId, [bool]>) -> Self {
        let events = &input.profile.events;
        let mut counted = Self {
            events: events.len(),
            ids: FxHashMap::default(),
            identities: input.rows.contexts.identities(),
            sums: Vec::new(),
            stays: Vec::new(),
            samples: index_vec![0; events.len()],
            steps: Vec::new(),
        };
        let leads = |leader: EventId| {
            let others = events.indices().filter(|i| *i != leader && used[*i]);
            others.into_iter().any(|i| events[i].leader == leader)
        };
        let leads: IndexVec<EventId, bool> = events.indices().map(leads).collect();
        let mut last: FxHashMap<(ThreadId, EventId), (u64, Vec<SharedRow>)> = FxHashMap::default();
        let mut seen = index_vec![None; input.classes.all.len()];
        let mut rows = Vec::new();
        for (id, entry) in input.profile.entries.iter_enumerated() {
            let event = entry.event;
            if !used[event] && !leads[event] {
                continue;
            }
            counted.rows_of(input, id, entry, &mut seen, &mut rows);
            counted.samples[event] += entry.samples;
            for row in &rows {
                let at = counted.place(*row, event);
                counted.sums[at].add(entry);
            }
            if leads[event] {
                let key = (entry.thread, entry.event);
                let before = last.entry(key).or_default();
                counted.follow(event, entry.time, &rows, before);
                *before = (entry.time, rows.clone());
            }
        }
        counted
    }

    fn rows(&self) -> impl Iterator<Item = SharedRow> + use<> {
        (0..self.ids.len()).map(SharedRow::from_usize)
    }

    /// The rows that a sample counts for, each once.
    fn rows_of(
        &mut self,
        input: &Input<'_>,
        id: EntryId,
        entry: &Entry,
        seen: &mut IndexSlice<ClassId, [Option<EntryId>]>,
        rows: &mut Vec<SharedRow>,
    ) {
        rows.clear();
        let Some(own) = input.rows.of_entry[id] else {
            return;
        };
        let own = &input.rows.rows[own];
        let context = self.identities[own.context];
        let mut add = |class: ClassId| {
            let is_new = seen[class].replace(id) != Some(id);
            if !is_new {
                return;
            }
            let next = SharedRow::from_usize(self.ids.len());
            let row = *self.ids.entry((context, class)).or_insert(next);
            if row == next {
                let len = (next.index() + 1) * self.events;
                self.sums.resize(len, Sum::default());
                self.stays.resize(len, Stays::default());
            }
            rows.push(row);
        };
        add(own.class);
        if input.children {
            for frame in input.chains.of_stack(entry.stack) {
                if let Some(class) = input.classes.caller[*frame] {
                    add(class);
                }
            }
        }
    }

    /// Where what is counted for a row and an event stands.
    fn place(&self, row: SharedRow, event: EventId) -> usize {
        row.index() * self.events + event.index()
    }

    /// A sample of a group comes after another of its thread.
    fn follow(
        &mut self,
        event: EventId,
        time: u64,
        rows: &[SharedRow],
        before: &(u64, Vec<SharedRow>),
    ) {
        for row in rows {
            let at = self.place(*row, event);
            self.stays[at].samples += 1;
        }
        for row in &before.1 {
            let at = self.place(*row, event);
            let stays = &mut self.stays[at];
            stays.followed += 1;
            stays.again += u64::from(rows.contains(row));
        }
        if !before.1.is_empty() {
            self.steps.push(time.saturating_sub(before.0));
        }
    }

    fn rate(
        &self,
        row: SharedRow,
        above: &[EventId],
        below: &[EventId],
        profile: &Profile,
    ) -> Option<Rate> {
        let of = |events: &[EventId]| {
            let sums = events
                .iter()
                .map(|event| self.sums[self.place(row, *event)]);
            sums.fold(Sum::default(), Sum::and)
        };
        let (over, under) = (of(above), of(below));
        if over.samples < FEWEST || under.samples < FEWEST || under.period <= 0.0 {
            return None;
        }
        let value = over.period / under.period;
        let relative = |sum: Sum| {
            if sum.period > 0.0 {
                sum.squares / (sum.period * sum.period)
            } else {
                0.0
            }
        };
        let error = CONFIDENCE * value * (relative(over) + relative(under)).sqrt();
        let leader = |event: &EventId| profile[*event].leader;
        let is_group = above
            .iter()
            .any(|a| below.iter().any(|b| leader(a) == leader(b) && a != b));
        let is_smeared = is_group && !self.is_persistent(row, leader(&above[0]));
        Some(Rate {
            value,
            error,
            is_smeared,
        })
    }

    /// Whether threads stay in a row for much longer than from one sample to the next.
    fn is_persistent(&self, row: SharedRow, leader: EventId) -> bool {
        let stays = self.stays[self.place(row, leader)];
        let share = stays.samples as f64 / self.samples[leader].max(1) as f64;
        if stays.followed == 0 {
            return false;
        }
        let again = stays.again as f64 / stays.followed as f64;
        share >= 1.0 || (again - share) / (1.0 - share) >= PERSISTENT
    }
}

/// What is to be known of all rates.
fn notes(
    counted: &Counted,
    rates: &Rates,
    profile: &Profile,
    used: &IndexSlice<EventId, [bool]>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if rates.cells.iter().flatten().any(|rate| rate.is_smeared) {
        let mut steps = counted.steps.clone();
        steps.sort_unstable();
        let step = steps.get(steps.len() / 2).copied().unwrap_or(0);
        let ms = step as f64 * LONG_STAYS * 1e-6;
        notes.push(format!(
            "~: group samples cannot resolve functions that run shorter than {ms:.1} ms: record the events separately"
        ));
    }
    let of_hardware = |i: &EventId| profile[*i].is_hardware;
    let all = || profile.events.indices().filter(|i| used[*i]);
    if all().filter(of_hardware).count() > FEW_COUNTERS {
        notes.push("perhaps more events than counters: ratios may be off".to_owned());
    }
    let pmus = all().filter_map(|i| metrics::pmu(&profile[i].name));
    let mut pmus: Vec<&str> = pmus.collect();
    pmus.sort_unstable();
    pmus.dedup();
    if pmus.len() > 1 {
        notes.push(format!("events of {} are summed", pmus.join(" and ")));
    }
    let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
    let is_of_them = |name: &str| {
        let of = all().map(|i| metrics::plain_name(&profile[i].name));
        of.into_iter()
            .any(|plain| plain == metrics::plain_name(name))
    };
    let mut twice = Metric::counted_twice(&names);
    twice.retain(|i| !used[EventId::from_usize(*i)] && is_of_them(names[*i]));
    for index in twice {
        let name = names[index];
        notes.push(format!("{name} is left out: another event counts it, too"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::keys::Key;
    use crate::report::options::{ColumnOptions, ReportOptions, RowOptions};
    use crate::report::testing::ProfileBuilder;

    fn rates(profile: &Profile, metric: &str) -> (Vec<(String, Option<Rate>)>, Vec<String>) {
        let options = ReportOptions {
            columns: ColumnOptions {
                metrics: Metric::parse_list(metric).expect("known"),
                ..ColumnOptions::default()
            },
            rows: RowOptions {
                children: false,
                ..RowOptions::default()
            },
            ..ReportOptions::default()
        };
        let report = crate::report::build(profile, &options).expect("there are samples");
        let rows = report.tables[0].rows.iter();
        let rows = rows.map(|row| {
            let name = profile.frame_name(row.frame).to_owned();
            (name, report.rate(row, Key::Metric(0)))
        });
        (rows.collect(), report.rates.notes.clone())
    }

    #[test]
    fn events_that_were_sampled_apart_have_rates_with_errors_where_samples_suffice() {
        let mut builder = ProfileBuilder::default();
        let instructions = builder.add_event("instructions");
        for i in 0..100 {
            builder.event = EventId(0);
            builder.sample("c", "f", 1000);
            builder.event = instructions;
            builder.sample("c", "f", 1000);
            builder.sample("c", "f", 2000);
            if i < 29 {
                builder.sample("c", "few", 1000);
                builder.event = EventId(0);
                builder.sample("c", "few", 1000);
            }
        }
        let profile = builder.finish();
        let (rows, notes) = rates(&profile, "ipc");
        let f = rows[0].1.expect("enough samples");
        let squares = 100.0 * (1000.0_f64.powi(2) + 2000.0_f64.powi(2));
        let error = CONFIDENCE * 3.0 * (squares / 300_000.0_f64.powi(2) + 0.01).sqrt();
        assert!((f.value - 3.0).abs() < 1e-9 && (f.error - error).abs() < 1e-9);
        assert!(!f.is_smeared);
        assert_eq!(rows[1], ("few".to_owned(), None));
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn a_group_tells_only_of_rows_that_run_for_long() {
        let of_stays = |length: usize| {
            let mut builder = ProfileBuilder::default();
            let faults = builder.add_event("instructions");
            for i in 0..1000 {
                let function = if (i / length).is_multiple_of(2) {
                    "f"
                } else {
                    "g"
                };
                for event in [EventId(0), faults] {
                    builder.event = event;
                    builder.sample("c", function, 1000);
                }
            }
            let mut profile = builder.finish();
            profile.events[faults].leader = EventId(0);
            let (rows, notes) = rates(&profile, "ipc");
            let smeared = rows.iter().map(|row| row.1.expect("enough").is_smeared);
            (smeared.collect::<Vec<_>>(), notes.len())
        };
        assert_eq!(of_stays(1), (vec![true, true], 1));
        assert_eq!(of_stays(20), (vec![false, false], 0));
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut builder = ProfileBuilder::default();
        builder.sample("c", "f", 1);
        let profile = builder.finish();
        let options = ReportOptions {
            columns: ColumnOptions {
                metrics: Metric::parse_list("ipc").expect("known"),
                ..ColumnOptions::default()
            },
            ..ReportOptions::default()
        };
        let error = crate::report::build(&profile, &options).expect_err("no instructions");
        assert_eq!(error.to_string(), "--metrics: IPC: no event instructions");
    }
}
