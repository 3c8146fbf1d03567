//! Tables of a recording for SQL engines: one set of files for many recordings of many machines.
//!
//! In: a profile and the labels that the user gave. Out: [`Tables`], as plain columns; `parquet` makes files of them. The schema is
//! flat, without nulls, lists or unsigned numbers, for five engines answer one text of SQL alike then. Ids are hashes of what they
//! stand for, so that a function or a stack has one id in the files of all recordings. Schema and hashes are version 1, and stay as
//! they are: a new column is a new version, in a folder of its own.

mod frames;
mod hash;
mod parquet;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use self::frames::Frames;
use self::hash::hash;
use super::pprof::{columns, processes, recording_of, unit_word};
use super::stdio::quality_figures;
use super::strings::{Strings, TextId};
use super::text::harmless;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::functions::payers::{Paid, Payer};
use crate::needs::Needs;
use crate::profile::{EventId, FrameId, Portion, Profile, StackId, ThreadId};
use crate::tags::Tags;

/// The folder of this version of the schema.
pub const VERSION: &str = "v1";
/// The table of single samples, which is written only if it is asked for.
pub const TIMES: &str = "times";

/// How to make them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetOptions {
    /// A row for each sample as well.
    pub times: bool,
    /// What the user says of the recordings.
    pub tags: Tags,
}

impl DatasetOptions {
    /// What the tables are made of.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let samples = Needs::SAMPLES.only_if(self.times);
        Needs::CHAINS | Needs::KINDS | Needs::ORIGINALS | Needs::DIGEST | samples
    }
}

/// The tables of a recording.
#[derive(Debug)]
pub struct Tables {
    /// Of its records and its labels.
    pub recording: i64,
    /// Day of the first sample in UTC, `2026-11-23`; the first of all days if the recording does not tell.
    pub date: String,
    /// Whether the recording tells.
    pub has_date: bool,
    /// That of recordings is the last: what it has is whole.
    pub tables: Vec<Table>,
}

impl Tables {
    /// The name of its file in each table.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{:016x}.parquet", self.recording.cast_unsigned())
    }
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    columns: Vec<Column>,
}

impl Table {
    fn new<const N: usize>(name: &'static str, columns: [(&'static str, Values); N]) -> Self {
        let columns = columns.into_iter();
        Self {
            name,
            columns: columns
                .map(|(heading, values)| Column {
                    name: heading,
                    values,
                })
                .collect(),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

/// A column; all of a table have as many values.
#[derive(Debug)]
struct Column {
    name: &'static str,
    values: Values,
}

/// What is in a column.
#[derive(Debug)]
enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    /// Microseconds since 1970, UTC.
    Micros(Vec<i64>),
    /// Numbers of texts, each of which is there once.
    Text(Vec<String>, Vec<u32>),
}

impl Values {
    const fn len(&self) -> usize {
        match self {
            Self::Int32(values) => values.len(),
            Self::Int64(values) | Self::Micros(values) => values.len(),
            Self::Text(_, values) => values.len(),
        }
    }

    fn text(value: &str) -> Self {
        Self::Text(vec![value.to_owned()], vec![0])
    }

    fn texts<'t>(values: impl IntoIterator<Item = &'t str>) -> Self {
        let mut strings = Strings::default();
        let ids = values.into_iter().map(|text| strings.id(text).0).collect();
        Self::Text(strings.all().map(str::to_owned).collect(), ids)
    }
}

/// Engines have no unsigned numbers.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

const NS_IN_US: u64 = 1000;

/// A row of samples, before it is one: numbers of texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    event: EventId,
    process: TextId,
    thread: TextId,
    payer: TextId,
    activity: TextId,
    leaf: i64,
    stack: i64,
}

struct Maker<'p> {
    profile: &'p Profile,
    options: &'p DatasetOptions,
    recording: i64,
    strings: Strings,
    /// By event.
    events: Vec<String>,
    processes: FxHashMap<(u32, u32), String>,
    paid: Paid,
    frames: Frames<'p>,
    /// By stack, or by leaf of what has none.
    known: FxHashMap<Result<StackId, FrameId>, i64>,
    /// Frames of stacks, root first.
    stacks: FxHashMap<i64, Vec<i64>>,
}

impl Tables {
    /// The tables of a profile that was read with [`DatasetOptions::needs`].
    #[must_use]
    pub fn of(profile: &Profile, options: &DatasetOptions) -> Self {
        let functions = Functions::of(profile, &OwnRules::default());
        let mut maker = Maker {
            profile,
            options,
            recording: recording_id(profile, &options.tags),
            strings: Strings::default(),
            events: columns(profile).into_iter().collect(),
            processes: processes(profile),
            paid: Paid::of(profile, &functions),
            frames: Frames::new(profile, &functions),
            known: FxHashMap::default(),
            stacks: FxHashMap::default(),
        };
        let start = start(profile);
        let samples = maker.samples();
        let times = options.times.then(|| maker.times());
        let tables = [
            Some(maker.labels()),
            Some(samples),
            times,
            Some(maker.stacks()),
            Some(maker.frames.table()),
            Some(maker.recordings(start.unwrap_or(0))),
        ];
        Self {
            recording: maker.recording,
            date: date(start.unwrap_or(0)),
            has_date: start.is_some(),
            tables: tables.into_iter().flatten().collect(),
        }
    }
}

/// By what the recording is known: the same records with the same labels replace what was made of them before, by whichever pjit.
fn recording_id(profile: &Profile, tags: &Tags) -> i64 {
    let digest = profile.recording.digest.unwrap_or_default();
    let labels = tags.iter().flat_map(|tag| [&tag.key, &tag.value]);
    let labels = labels.map(|text| text.as_bytes());
    hash(std::iter::once(&digest[..]).chain(labels))
}

/// Microseconds since 1970 of a moment on the recording's clock, if it tells what that is.
fn micros(profile: &Profile, time: u64) -> Option<i64> {
    let (wall, clock) = profile.recording.wall_clock?;
    let since_1970 = wall.checked_add(time)?.checked_sub(clock)?;
    Some(signed(since_1970 / NS_IN_US))
}

/// When the first sample was taken.
fn start(profile: &Profile) -> Option<i64> {
    let recording = &profile.recording;
    let first = recording.begin.or(recording.time_range.map(|(at, _)| at));
    micros(profile, first?)
}

/// The day in UTC.
fn date(micros: i64) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let date = tz::UtcDateTime::from_timespec(seconds, 0);
    date.map_or_else(
        |_| "1970-01-01".to_owned(),
        |date| {
            let (year, month, day) = (date.year(), date.month(), date.month_day());
            format!("{year:04}-{month:02}-{day:02}")
        },
    )
}

impl<'p> Maker<'p> {
    /// The id of a stack, and that of the function that ran.
    fn stack(&mut self, stack: StackId, leaf: FrameId) -> (i64, i64) {
        let own = self.frames.id(leaf);
        let chain = self.profile.stacks.get(stack);
        let (key, chain) = match chain {
            [] => (Err(leaf), std::slice::from_ref(&leaf)),
            chain => (Ok(stack), chain),
        };
        if let Some(known) = self.known.get(&key) {
            return (*known, own);
        }
        let frames = &mut self.frames;
        let ids: Vec<i64> = chain.iter().rev().map(|frame| frames.id(*frame)).collect();
        let bytes: Vec<[u8; 8]> = ids.iter().map(|id| id.to_le_bytes()).collect();
        let id = hash(bytes.iter().map(|id| &id[..]));
        self.known.insert(key, id);
        self.stacks.entry(id).or_insert(ids);
        (id, own)
    }

    fn row(&mut self, place: &Portion) -> Row {
        let profile = self.profile;
        let (stack, leaf) = self.stack(place.stack, place.leaf);
        let thread = &profile[place.thread];
        let process = self.processes.get(&(recording_of(thread), thread.pid));
        let process = process.unwrap_or(&profile[thread.comm]);
        let process = self.strings.id(&harmless(process));
        let payer = self.paid.payer(place.stack, place.leaf);
        let payer = payer.map(Payer::label).unwrap_or_default();
        let activity = self.paid.activity(place.stack, place.leaf, place.state);
        Row {
            event: place.event,
            process,
            thread: self.strings.id(&harmless(&profile[place.comm])),
            payer: self.strings.id(&harmless(&payer)),
            activity: self.strings.id(activity.unwrap_or_default()),
            leaf,
            stack,
        }
    }

    /// Rows with weight and number, in the order of the file.
    fn rows(&mut self) -> Vec<(Row, u64, u64)> {
        let profile = self.profile;
        let mut numbers: FxHashMap<Row, usize> = FxHashMap::default();
        let mut rows: Vec<(Row, u64, u64)> = Vec::new();
        for portion in profile.portions() {
            let row = self.row(&portion);
            let at = *numbers.entry(row).or_insert(rows.len());
            let (weight, samples) = (portion.period, portion.samples);
            match rows.get_mut(at) {
                Some((_, sum, count)) => {
                    *sum = sum.saturating_add(weight);
                    *count = count.saturating_add(samples);
                }
                None => rows.push((row, weight, samples)),
            }
        }
        rows.sort_by(|(a, ..), (b, ..)| self.key(a).cmp(&self.key(b)));
        rows
    }

    /// By what rows are in order.
    fn key(&self, row: &Row) -> impl Ord + use<'_, 'p> {
        let text = |id| self.strings.get(id);
        let event = self.events.get(usize::from(row.event.0));
        let place = (event, text(row.process), text(row.thread));
        let parts = (text(row.payer), text(row.activity));
        (place, row.stack, row.leaf, parts)
    }

    fn samples(&mut self) -> Table {
        let rows = self.rows();
        let all: Vec<String> = self.strings.all().map(str::to_owned).collect();
        let text = |of: fn(&Row) -> TextId| {
            Values::Text(
                all.clone(),
                rows.iter().map(|(row, ..)| of(row).0).collect(),
            )
        };
        let number = |of: fn(&(Row, u64, u64)) -> i64| Values::Int64(rows.iter().map(of).collect());
        let events = &self.profile.events;
        let event = |row: &Row| self.events.get(usize::from(row.event.0));
        let units = rows
            .iter()
            .map(|(row, ..)| unit_word(events[row.event].unit));
        let units: Vec<Cow<'_, str>> = units.collect();
        Table::new(
            "samples",
            [
                ("recording", Values::Int64(vec![self.recording; rows.len()])),
                (
                    "event",
                    Values::texts(
                        rows.iter()
                            .map(|(row, ..)| event(row).map_or("", |name| name)),
                    ),
                ),
                ("unit", Values::texts(units.iter().map(AsRef::as_ref))),
                ("process", text(|row| row.process)),
                ("thread", text(|row| row.thread)),
                ("payer", text(|row| row.payer)),
                ("activity", text(|row| row.activity)),
                ("leaf", number(|(row, ..)| row.leaf)),
                ("stack", number(|(row, ..)| row.stack)),
                ("weight", number(|(_, weight, _)| signed(*weight))),
                ("samples", number(|(.., samples)| signed(*samples))),
            ],
        )
    }

    fn times(&mut self) -> Table {
        let profile = self.profile;
        let mut stacks = Vec::with_capacity(profile.samples.len());
        for sample in &profile.samples {
            stacks.push(self.stack(sample.stack, sample.leaf).0);
        }
        let samples = || profile.samples.iter();
        // On a clock of which it is not known what it shows, times count from when that began.
        let time = |time: Option<u64>| {
            let time = time.unwrap_or_default();
            micros(profile, time).unwrap_or_else(|| signed(time / NS_IN_US))
        };
        let cpu = |cpu: Option<u32>| cpu.and_then(|cpu| i32::try_from(cpu).ok()).unwrap_or(-1);
        let tid = |thread: ThreadId| i64::from(profile[thread].tid.cast_signed());
        let name = |event: EventId| self.events.get(usize::from(event.0));
        let event = samples().map(|s| name(s.event).map_or("", |name| name));
        let units: Vec<Cow<'_, str>> = samples()
            .map(|s| unit_word(profile.events[s.event].unit))
            .collect();
        Table::new(
            TIMES,
            [
                (
                    "recording",
                    Values::Int64(vec![self.recording; stacks.len()]),
                ),
                ("event", Values::texts(event)),
                ("unit", Values::texts(units.iter().map(AsRef::as_ref))),
                (
                    "time",
                    Values::Micros(samples().map(|s| time(s.time)).collect()),
                ),
                (
                    "cpu",
                    Values::Int32(samples().map(|s| cpu(s.cpu)).collect()),
                ),
                (
                    "tid",
                    Values::Int64(samples().map(|s| tid(s.thread)).collect()),
                ),
                ("stack", Values::Int64(stacks)),
                (
                    "weight",
                    Values::Int64(samples().map(|s| signed(s.period)).collect()),
                ),
            ],
        )
    }

    /// A row a frame. Stacks are in the order of their frames: neighbours begin alike, and take fewer bytes.
    fn stacks(&self) -> Table {
        let mut stacks: Vec<(&Vec<i64>, i64)> = Vec::with_capacity(self.stacks.len());
        stacks.extend(self.stacks.iter().map(|(id, frames)| (frames, *id)));
        stacks.sort_unstable();
        let mut columns = (Vec::new(), Vec::new(), Vec::new());
        for (frames, id) in stacks {
            for (depth, frame) in (0..).zip(frames) {
                columns.0.push(id);
                columns.1.push(depth);
                columns.2.push(*frame);
            }
        }
        Table::new(
            "stacks",
            [
                ("stack", Values::Int64(columns.0)),
                ("depth", Values::Int32(columns.1)),
                ("frame", Values::Int64(columns.2)),
            ],
        )
    }

    fn labels(&self) -> Table {
        let tags = || self.options.tags.iter();
        let values: Vec<Cow<'_, str>> = tags().map(|tag| harmless(&tag.value)).collect();
        Table::new(
            "labels",
            [
                (
                    "recording",
                    Values::Int64(vec![self.recording; values.len()]),
                ),
                ("key", Values::texts(tags().map(|tag| tag.key.as_str()))),
                ("value", Values::texts(values.iter().map(AsRef::as_ref))),
            ],
        )
    }

    fn recordings(&self, start: i64) -> Table {
        let profile = self.profile;
        let recording = &profile.recording;
        let tag = |key| harmless(self.options.tags.get(key).unwrap_or_default());
        let told = |field| harmless(profile.recording.told(field).unwrap_or_default());
        let host = match self.options.tags.get("host") {
            Some(_) => tag("host"),
            None => told("hostname"),
        };
        let (first, last) = recording.time_range.unwrap_or_default();
        let first = recording.begin.unwrap_or(first);
        let entries = profile.entries.iter().map(|entry| entry.samples);
        let samples = entries.sum::<u64>() + profile.samples.len() as u64;
        let number = |number| Values::Int64(vec![number]);
        Table::new(
            "recordings",
            [
                ("recording", number(self.recording)),
                ("start", Values::Micros(vec![start])),
                (
                    "duration_us",
                    number(signed(last.saturating_sub(first) / NS_IN_US)),
                ),
                ("host", Values::text(&host)),
                ("service", Values::text(&tag("service"))),
                ("version", Values::text(&tag("version"))),
                ("arch", Values::text(&told("arch"))),
                (
                    "command",
                    Values::text(&harmless(&recording.command().unwrap_or_default())),
                ),
                (
                    "quality",
                    Values::text(&harmless(&quality_figures(profile, None))),
                ),
                ("pjit", Values::text(env!("CARGO_PKG_VERSION"))),
                ("samples", number(signed(samples))),
                ("lost", number(signed(recording.lost))),
            ],
        )
    }
}

#[cfg(test)]
mod tests;
