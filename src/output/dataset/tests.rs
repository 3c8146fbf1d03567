//! What is written comes back, adds up, and knows a function again elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::Field;
use proptest::prelude::*;

use super::*;
use crate::output::testing::{is_inert, rows, samples};
use crate::report::testing::ProfileBuilder;

/// The rows of a file, as text.
fn read_back(bytes: &[u8]) -> Vec<Vec<String>> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    let reader = SerializedFileReader::new(file).expect("a file of Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let text = |field: &Field| match field {
        Field::Int(number) => number.to_string(),
        Field::Long(number) | Field::TimestampMicros(number) => number.to_string(),
        Field::Str(text) => text.clone(),
        other => panic!("no such column: {other:?}"),
    };
    rows.map(|row| {
        let row = row.expect("a row");
        row.get_column_iter()
            .map(|(_, field)| text(field))
            .collect()
    })
    .collect()
}

/// The same of a table in memory.
fn rows_of(table: &Table) -> Vec<Vec<String>> {
    let cell = |column: &Column, at: usize| match &column.values {
        Values::Int32(values) => values[at].to_string(),
        Values::Int64(values) | Values::Micros(values) => values[at].to_string(),
        Values::Text(texts, ids) => texts[ids[at] as usize].clone(),
    };
    let row = |at| {
        table
            .columns
            .iter()
            .map(|column| cell(column, at))
            .collect()
    };
    (0..table.rows()).map(row).collect()
}

fn table<'t>(tables: &'t Tables, name: &str) -> &'t Table {
    let mut all = tables.tables.iter();
    all.find(|table| table.name == name).expect("it is there")
}

/// A column of a table.
fn column(tables: &Tables, name: &str, of: &str) -> Vec<String> {
    let table = table(tables, name);
    let mut columns = table.columns.iter();
    let at = columns.position(|column| column.name == of);
    let at = at.expect("it is there");
    rows_of(table)
        .into_iter()
        .map(|row| row[at].clone())
        .collect()
}

fn sum(numbers: Vec<String>) -> u64 {
    let numbers = numbers.iter().map(|text| text.parse::<u64>());
    numbers.map(|number| number.expect("a number")).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tables_come_back_and_add_up(profile in prop_oneof![rows(), samples()], times in any::<bool>()) {
        let options = DatasetOptions { times, ..DatasetOptions::default() };
        let tables = Tables::of(&profile, &options);
        for table in &tables.tables {
            let all = rows_of(table);
            // Groups of a few rows, and one of all.
            for group in [3, GROUP] {
                let file = table.encode(group).expect("a file");
                prop_assert_eq!(&read_back(&file), &all);
                prop_assert_eq!(file, table.encode(group).expect("a file"));
            }
            prop_assert!(all.iter().flatten().all(|text| is_inert(text)));
        }
        let entries = profile.entries.iter().map(|entry| (entry.period, entry.samples));
        let samples = profile.samples.iter().map(|sample| (sample.period, 1));
        let (weight, count) = entries.chain(samples).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        prop_assert_eq!(sum(column(&tables, "samples", "weight")), weight);
        prop_assert_eq!(sum(column(&tables, "samples", "samples")), count);
        prop_assert_eq!(sum(column(&tables, "recordings", "samples")), count);
        // Each row leads to a stack, each frame to one function.
        let stacks: BTreeSet<String> = column(&tables, "stacks", "stack").into_iter().collect();
        let frames = column(&tables, "frames", "frame");
        let distinct: BTreeSet<String> = frames.iter().cloned().collect();
        prop_assert_eq!(frames.len(), distinct.len());
        prop_assert!(column(&tables, "samples", "stack").iter().all(|id| stacks.contains(id)));
        prop_assert!(column(&tables, "samples", "leaf").iter().all(|id| distinct.contains(id)));
        prop_assert!(column(&tables, "stacks", "frame").iter().all(|id| distinct.contains(id)));
    }
}

const GROUP: usize = 1_000_000;

/// A stack as its functions, root first, by its number.
fn stacks(profile: &Profile) -> BTreeMap<String, Vec<String>> {
    let tables = Tables::of(profile, &DatasetOptions::default());
    let frames = rows_of(table(&tables, "frames"));
    let names: BTreeMap<&str, &str> = frames.iter().map(|row| (&*row[0], &*row[1])).collect();
    let mut stacks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows_of(table(&tables, "stacks")) {
        let stack = stacks.entry(row[0].clone()).or_default();
        assert_eq!(row[1], stack.len().to_string());
        stack.push(names[&*row[2]].to_owned());
    }
    stacks
}

/// A profile of one stack, in a program below a folder.
fn one(stack: &str, folder: &str, pid: u32) -> Profile {
    let mut builder = ProfileBuilder::default();
    builder.sample("app", stack, 5);
    let mut profile = builder.finish();
    for object in &mut profile.objects {
        object.long_name = format!("{folder}/{}", object.short_name);
    }
    for thread in &mut profile.threads {
        (thread.pid, thread.tid) = (pid, pid);
    }
    profile.recording.path = format!("{folder}/perf.data");
    profile
}

#[test]
fn a_stack_is_the_same_elsewhere() {
    let here = stacks(&one("leaf@app;main@app", "/home/a", 7));
    let there = stacks(&one("leaf@app;main@app", "/srv/b", 9));
    assert_eq!(here, there);
    assert_eq!(here.values().next().expect("one"), &["main", "leaf"]);
    for other in [
        "leaf2@app;main@app",
        "leaf@lib.so;main@app",
        "main@app;leaf@app",
        "leaf(inlined)@app;main@app",
    ] {
        let other = stacks(&one(other, "/home/a", 7));
        assert!(other.keys().all(|id| !here.contains_key(id)), "{other:?}");
    }
}

#[test]
fn recordings_are_known_by_their_records_and_labels() {
    let mut profile = one("leaf@app", "/home/a", 7);
    profile.recording.digest = Some([1; 32]);
    let id = |profile: &Profile, tags: &[&str]| {
        let tags = tags.iter().map(|tag| tag.parse().expect("a label"));
        let tags = Tags::of(tags.collect()).expect("labels");
        let options = DatasetOptions { times: false, tags };
        Tables::of(profile, &options).file_name()
    };
    let plain = id(&profile, &[]);
    assert!(plain.ends_with(".parquet") && plain.len() == 24, "{plain}");
    let labelled = id(&profile, &["a=1", "b=2"]);
    assert_ne!(plain, labelled);
    assert_eq!(labelled, id(&profile, &["b=2", "a=1"]));
    assert_ne!(
        labelled,
        id(&profile, &["a=1b", "2=2"].map(|_| "a=1b")[..1])
    );
    profile.recording.path = "elsewhere".to_owned();
    assert_eq!(plain, id(&profile, &[]));
    profile.recording.digest = Some([2; 32]);
    assert_ne!(plain, id(&profile, &[]));
}

#[test]
fn days_are_those_of_utc() {
    let day = |seconds: i64| date(seconds * 1_000_000 + 999_999);
    assert_eq!(day(0), "1970-01-01");
    assert_eq!(day(86_399), "1970-01-01");
    assert_eq!(day(86_400), "1970-01-02");
    assert_eq!(day(1_795_809_600), "2026-11-27");
    // No clock of a recording breaks anything.
    assert_eq!(date(i64::MAX / 1000), "2262-04-11");
    assert_eq!(date(i64::MAX), "294247-01-10");
    let mut profile = one("leaf@app", "/home/a", 7);
    profile.recording.begin = Some(u64::MAX);
    profile.recording.wall_clock = Some((u64::MAX, 0));
    let tables = Tables::of(&profile, &DatasetOptions::default());
    assert_eq!((tables.has_date, &*tables.date), (false, "1970-01-01"));
}
