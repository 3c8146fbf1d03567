//! What all exports keep of random profiles with hostile names: sums, stacks, and that no name does anything.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::firefox::{self, FirefoxOptions};
use super::pprof::{self, Label, PprofOptions};
use super::testing::{HOSTILE, into_samples, is_inert, rows, samples};
use super::{speedscope, stacks_csv};
use crate::profile::Profile;
use crate::report::testing::ProfileBuilder;

/// Sum of periods and number of samples of an event, or of all.
fn sums(profile: &Profile, event: Option<u16>) -> (u64, u64) {
    let entries = profile
        .entries
        .iter()
        .map(|e| (e.event.0, e.period, e.samples));
    let samples = profile.samples.iter().map(|s| (s.event.0, s.period, 1));
    let wanted = entries
        .chain(samples)
        .filter(|(of, _, _)| event.is_none_or(|event| event == *of));
    wanted.fold((0, 0), |sum, (_, period, samples)| {
        (sum.0 + period, sum.1 + samples)
    })
}

/// A field of a message: a number or bytes.
enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than ten bytes");
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(value),
            2 => {
                let (inner, rest) = bytes.split_at(value as usize);
                bytes = rest;
                Field::Bytes(inner)
            }
            kind => panic!("wire type {kind}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

/// The numbers of a message's field, packed or not.
fn numbers(message: &[u8], wanted: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for (number, field) in fields(message) {
        match field {
            Field::Number(value) if number == wanted => all.push(value),
            Field::Bytes(mut packed) if number == wanted => {
                while !packed.is_empty() {
                    all.push(varint(&mut packed));
                }
            }
            _ => {}
        }
    }
    all
}

fn messages(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let all = fields(message).into_iter();
    let wanted = all.filter(|(number, _)| *number == wanted);
    wanted
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => bytes,
            Field::Number(value) => panic!("{value} is no message"),
        })
        .collect()
}

/// Checks that all references of a pprof file lead somewhere; sums of its columns.
fn assert_sound_pprof(bytes: &[u8]) -> Vec<u64> {
    let strings = messages(bytes, 6);
    assert_eq!(strings[0], b"");
    for string in &strings {
        assert!(std::str::from_utf8(string).is_ok_and(is_inert));
    }
    let ids = |field: u64| -> Vec<u64> {
        messages(bytes, field)
            .iter()
            .flat_map(|m| numbers(m, 1))
            .collect()
    };
    let (mappings, locations, functions) = (ids(3), ids(4), ids(5));
    for all in [&mappings, &locations, &functions] {
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() == all.len() && !sorted.contains(&0));
    }
    let is_text = |id: &u64| (*id as usize) < strings.len();
    for function in messages(bytes, 5) {
        assert!(
            [2, 4]
                .iter()
                .all(|field| numbers(function, *field).iter().all(is_text))
        );
    }
    for location in messages(bytes, 4) {
        assert!(numbers(location, 2).iter().all(|id| mappings.contains(id)));
        let lines = messages(location, 4);
        assert!(!lines.is_empty());
        assert!(
            lines
                .iter()
                .all(|line| numbers(line, 1).iter().all(|id| functions.contains(id)))
        );
    }
    let mut sums = vec![0; messages(bytes, 1).len()];
    for sample in messages(bytes, 2) {
        let stack = numbers(sample, 1);
        assert!(!stack.is_empty() && stack.iter().all(|id| locations.contains(id)));
        let values = numbers(sample, 2);
        assert_eq!(values.len(), sums.len());
        sums.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value);
        for label in messages(sample, 3) {
            assert!(
                [1, 2]
                    .iter()
                    .all(|field| numbers(label, *field).iter().all(is_text))
            );
        }
    }
    sums
}

/// The rows of a CSV file by RFC 4180.
fn parsed(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty());
    rows
}

fn csv_of(profile: &Profile, with_time: bool, threads: usize) -> String {
    let mut out = Vec::new();
    stacks_csv::write_heading(with_time, &mut out).expect("a vector takes everything");
    stacks_csv::write(profile, with_time, threads, &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("UTF-8")
}

fn assert_sound_speedscope(file: &Value) -> u64 {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let frames = list(&file["shared"]["frames"]);
    for frame in &frames {
        let texts = [&frame["name"], &frame["file"]].map(|text| text.as_str().unwrap_or_default());
        assert!(texts.into_iter().all(is_inert));
    }
    let mut sum = 0;
    for lane in list(&file["profiles"]) {
        assert!(is_inert(lane["name"].as_str().expect("a name")));
        let (samples, weights) = (list(&lane["samples"]), list(&lane["weights"]));
        assert_eq!(samples.len(), weights.len());
        for stack in samples {
            let stack = list(&stack);
            assert!(!stack.is_empty());
            assert!(
                stack
                    .iter()
                    .all(|at| at.as_u64().is_some_and(|at| (at as usize) < frames.len()))
            );
        }
        let own: u64 = weights.iter().filter_map(Value::as_u64).sum();
        assert_eq!(lane["endValue"], own);
        sum += own;
    }
    sum
}

fn pprof_of(profile: &Profile, options: &PprofOptions) -> (Vec<u8>, pprof::Written) {
    let mut bytes = Vec::new();
    let written = pprof::write(profile, options, &mut bytes);
    (bytes, written.expect("a vector takes everything"))
}

fn speedscope_of(profile: &Profile) -> (String, speedscope::Written) {
    let mut bytes = Vec::new();
    let written = speedscope::write(profile, &mut bytes).expect("a vector takes everything");
    (String::from_utf8(bytes).expect("UTF-8"), written)
}

fn labels() -> Vec<Label> {
    Label::NAMES.map(|(_, label)| label).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pprof_keeps_sums(profile in rows(), max_stacks in proptest::option::of(0..30_usize)) {
        let options = PprofOptions { labels: labels(), max_stacks };
        let (bytes, written) = pprof_of(&profile, &options);
        let columns = assert_sound_pprof(&bytes);
        prop_assert_eq!(written.stacks + written.left_out, profile.entries.len());
        prop_assert_eq!(columns[0], sums(&profile, None).1);
        for event in 0..2 {
            prop_assert_eq!(columns[usize::from(event) + 1], sums(&profile, Some(event)).0);
        }
    }

    #[test]
    fn speedscope_keeps_sums(profile in prop_oneof![rows(), samples()]) {
        let (text, written) = speedscope_of(&profile);
        prop_assert!(written.is_whole);
        let file: Value = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(assert_sound_speedscope(&file), sums(&profile, None).0);
    }

    #[test]
    fn csv_keeps_sums_and_has_no_formulas(profile in prop_oneof![rows(), samples()], with_time: bool) {
        let text = csv_of(&profile, with_time, 1);
        prop_assert_eq!(&text, &csv_of(&profile, with_time, 5));
        let rows = parsed(&text);
        let width = if with_time && !profile.samples.is_empty() { 13 } else { rows[0].len() };
        let (mut weight, mut samples) = (0, 0);
        for row in &rows[1..] {
            prop_assert!(row.len() == width || profile.samples.is_empty());
            weight += row[6].parse::<u64>().expect("a weight");
            samples += row[7].parse::<u64>().expect("a number");
            for cell in row {
                prop_assert!(is_inert(cell));
                let acts = cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
                prop_assert!(!acts, "{}", cell);
            }
        }
        prop_assert_eq!((weight, samples), sums(&profile, None));
    }
}

#[test]
fn csv_stacks_can_be_taken_apart() {
    let mut builder = ProfileBuilder::default();
    builder.sample("c", "leaf;middle;root", 7);
    let mut profile = builder.finish();
    for (symbol, name) in profile
        .symbols
        .iter_mut()
        .zip(["[u8; 8]", "a\"b,c", "=root"])
    {
        symbol.name = name.to_owned();
    }
    let rows = parsed(&csv_of(&profile, false, 1));
    assert_eq!(rows[1][8], "[u8; 8]");
    assert_eq!(rows[1][10], "'=root;a\"b,c;[u8\\; 8]");
}

/// One name of 64 KB, all others hostile: everything is there, in every format.
#[test]
fn long_and_hostile_names_are_kept_whole() {
    let mut builder = ProfileBuilder::default();
    for at in 0..HOSTILE.len() {
        builder.sample("c", &format!("f{at};main"), 1);
    }
    let mut profile = builder.finish();
    let long = "x".repeat(64 << 10);
    for (at, symbol) in profile.symbols.iter_mut().enumerate() {
        symbol.name = HOSTILE
            .get(at)
            .map_or(long.as_str(), |name| *name)
            .to_owned();
    }
    profile.symbols[0].name.clone_from(&long);
    let has_it = |text: &str| assert!(text.contains(&long));
    has_it(&csv_of(&profile, false, 1));
    has_it(&speedscope_of(&profile).0);
    let options = PprofOptions {
        labels: labels(),
        max_stacks: None,
    };
    let (bytes, _) = pprof_of(&profile, &options);
    assert_sound_pprof(&bytes);
    has_it(&String::from_utf8_lossy(&bytes));
    let profile = into_samples(profile);
    has_it(&speedscope_of(&profile).0);
    let options = FirefoxOptions {
        event: 0,
        per_cpu: false,
    };
    let mut json = Vec::new();
    firefox::write(&profile, options, &mut json).expect("a vector takes everything");
    has_it(&String::from_utf8_lossy(&json));
}

#[test]
fn a_function_is_one_frame_of_speedscope_whatever_its_lines() {
    let mut builder = ProfileBuilder::default();
    builder.sample("c", "f;main", 1);
    builder.sample("c", "f;main", 2);
    let mut profile = builder.finish();
    let file = "a.c".to_owned();
    profile.strings.push(file);
    for (line, frame) in (1..).zip(&mut profile.frames) {
        frame.line = Some(crate::profile::SourceLine {
            file: crate::profile::StringId(0),
            line,
            column: 0,
            near: false,
        });
    }
    // The same function at another line.
    let mut again = profile.frames[0].clone();
    again.line.as_mut().expect("a line").line = 9;
    profile.frames.push(again);
    let frame = crate::profile::FrameId(2);
    let stack = profile.stacks.push(
        &[frame, crate::profile::FrameId(1)],
        crate::profile::StackEnd::Recorded,
    );
    profile.entries[1].stack = stack;
    let file: Value = serde_json::from_str(&speedscope_of(&profile).0).expect("JSON");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    let names: BTreeMap<&str, &Value> = frames
        .iter()
        .map(|f| (f["name"].as_str().expect("a name"), &f["line"]))
        .collect();
    assert_eq!((frames.len(), names.len()), (2, 2));
    assert!(names.values().all(|line| line.is_null()));
    assert_eq!(file["profiles"][0]["weights"], serde_json::json!([3]));
}
