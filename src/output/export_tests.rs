//! What all exports keep of random profiles with hostile names: sums, stacks, and that no name does anything.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::caption::Caption;
use super::firefox::{self, FirefoxOptions};
use super::html::{self, Content, PageOptions};
use super::pprof::{self, Label, PprofOptions};
use super::svg::{self, Drawing, SvgOptions};
use super::testing::{HOSTILE, into_samples, is_inert, rows, samples};
use super::{speedscope, stacks_csv};
use crate::flame::{self, Flame, Limit, Weights, prune};
use crate::ids::Idx;
use crate::profile::{EventId, Profile};
use crate::report::testing::ProfileBuilder;
use crate::unit::Unit;

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

/// Numbers of samples by their labels.
fn by_labels(bytes: &[u8]) -> BTreeMap<Vec<Vec<u8>>, u64> {
    let strings = messages(bytes, 6);
    let mut sums = BTreeMap::new();
    for sample in messages(bytes, 2) {
        let texts = |label: &&[u8]| -> Vec<u8> {
            let ids = [1, 2].into_iter().flat_map(|field| numbers(label, field));
            let texts: Vec<&[u8]> = ids.map(|id| strings[id as usize]).collect();
            texts.join(&b'=')
        };
        let labels = messages(sample, 3);
        let labels: Vec<Vec<u8>> = labels.iter().map(texts).collect();
        let own = labels.into_iter().filter(|label| {
            ["package=", "activity="]
                .iter()
                .all(|part| !label.starts_with(part.as_bytes()))
        });
        *sums.entry(own.collect()).or_default() += numbers(sample, 2)[0];
    }
    sums
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
    let phases = with_time.then(|| vec![(1000, 2000), (3000, 3000)]);
    stacks_csv::write(profile, phases.as_ref(), threads, &mut out)
        .expect("a vector takes everything");
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
    let written = speedscope::write(profile, false, &mut bytes).expect("a vector takes everything");
    (String::from_utf8(bytes).expect("UTF-8"), written)
}

fn labels() -> Vec<Label> {
    Label::NAMES.map(|(_, label)| label).to_vec()
}

/// The weights of one event in a tree.
fn weights(flame: &Flame, event: EventId) -> Weights {
    flame.weights(|cell| {
        if flame.series[cell.series].event == event {
            cell.period
        } else {
            0
        }
    })
}

fn page_of(profile: &Profile) -> String {
    let options = flame::Options {
        naming: flame::Naming::Whole,
        by_thread: true,
        ..flame::Options::default()
    };
    let flame = flame::build(profile, &options);
    let content = Content {
        flame: &flame,
        profile,
        caption: &Caption::of(profile, EventId(0)),
        event: EventId(0),
        weights: &weights(&flame, EventId(0)),
        findings: None,
        code: &[],
        when: None,
    };
    let mut page = Vec::new();
    html::write(&content, &PageOptions::default(), &mut page).expect("a vector takes everything");
    String::from_utf8(page).expect("text")
}

/// What the page's script reads.
fn data_of(page: &str) -> Value {
    let text = page.split("id=\"data\">\"").nth(1).expect("data");
    let text = text.split('"').next().expect("its end");
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let packed: Vec<u8> = text
        .trim_end_matches('=')
        .as_bytes()
        .chunks(4)
        .flat_map(|four| {
            let bits = four
                .iter()
                .fold(0_u32, |bits, byte| bits << 6 | u32::from(digit(*byte)));
            let bits = bits << (6 * (4 - four.len()));
            bits.to_be_bytes()[1..four.len()].to_vec()
        })
        .collect();
    serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).expect("JSON")
}

fn column(data: &Value, path: &str) -> Vec<u64> {
    let column = data
        .pointer(path)
        .and_then(Value::as_array)
        .expect("a column");
    column
        .iter()
        .map(|value| value.as_u64().expect("a number"))
        .collect()
}

/// Checks that a page's tree hangs together; by event its period and samples.
fn assert_sound_page(data: &Value) -> BTreeMap<u64, (u64, u64)> {
    let (up, function) = (column(data, "/up"), column(data, "/fn"));
    let functions = data["fns"]["name"].as_array().expect("names");
    assert!(up.len() == function.len() && function.iter().all(|f| (*f as usize) < functions.len()));
    assert!(
        functions
            .iter()
            .all(|name| name.as_str().is_some_and(is_inert))
    );
    let mut depth = 0;
    for closed in up {
        assert!(closed <= depth);
        depth = depth + 1 - closed;
    }
    let nodes: u64 = column(data, "/cells/node").iter().sum();
    assert!(nodes as usize <= function.len());
    let series = data["series"].as_array().expect("series");
    let cells = column(data, "/cells/series").into_iter();
    let cells = cells
        .zip(column(data, "/cells/period"))
        .zip(column(data, "/cells/samples"));
    let unit = data["unit"].as_u64().expect("a number");
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for ((of, period), samples) in cells {
        let sum = sums
            .entry(series[of as usize][0].as_u64().expect("an event"))
            .or_default();
        *sum = (sum.0 + period * unit, sum.1 + samples);
    }
    sums
}

/// Weights of an SVG's frames by row, the lowest first, where it can be drawn.
fn rows_of_picture(profile: &Profile, frames: Option<usize>) -> Option<Vec<(f64, u64)>> {
    let options = flame::Options {
        event: Some(EventId(0)),
        ..flame::Options::default()
    };
    let flame = flame::build(profile, &options);
    let weights = weights(&flame, EventId(0));
    weights.total.first().filter(|all| **all > 0)?;
    let drawing = Drawing {
        flame: &flame,
        weights: &weights,
        other: None,
        fixed: 1,
        pruned: prune(
            &flame,
            &weights,
            Limit {
                percent: 0.0,
                frames,
            },
        ),
        caption: &Caption::of(profile, EventId(0)),
        is_time: false,
        unit: "cycles",
    };
    let mut svg = Vec::new();
    svg::write(&drawing, &SvgOptions::default(), &mut svg).expect("it draws");
    let svg = String::from_utf8(svg).expect("text");
    let mut reader = quick_xml::Reader::from_str(&svg);
    let mut rows: BTreeMap<i64, u64> = BTreeMap::new();
    loop {
        let element = match reader.read_event().expect("well-formed") {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(e) | quick_xml::events::Event::Empty(e) => e,
            _ => continue,
        };
        let word = |name: &str| {
            let found = element.try_get_attribute(name).expect("attributes")?;
            String::from_utf8(found.value.into_owned()).ok()
        };
        if let (Some(y), Some(weight)) = (word("y"), word("fg:w")) {
            let y: f64 = y.parse().expect("a place");
            *rows.entry(-(y * 10.0) as i64).or_default() +=
                weight.parse::<u64>().expect("a weight");
        }
    }
    Some(
        rows.into_iter()
            .map(|(y, weight)| (y as f64, weight))
            .collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_keep_sums(profile in rows()) {
        let page = page_of(&profile);
        prop_assert_eq!(page.matches("<script").count(), 2);
        prop_assert!(page.lines().all(is_inert));
        let found = assert_sound_page(&data_of(&page));
        let all = (0..2).map(|event| sums(&profile, Some(event)));
        prop_assert_eq!(found.into_values().collect::<Vec<_>>(), all.filter(|sum| sum.1 > 0).collect::<Vec<_>>());
    }

    #[test]
    fn pictures_keep_sums(profile in rows(), frames in proptest::option::of(1..40_usize)) {
        let total = sums(&profile, Some(0)).0;
        if let Some(rows) = rows_of_picture(&profile, frames) {
            // All of it, and what was left out drawn as that.
            prop_assert_eq!((rows[0].1, rows[1].1), (total, total));
            prop_assert!(rows.iter().all(|row| row.1 <= total));
        }
    }

    #[test]
    fn pprof_keeps_sums(profile in rows(), max_stacks in proptest::option::of(0..30_usize)) {
        let options = PprofOptions { labels: labels(), max_stacks, ..PprofOptions::default() };
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
        let width = rows[0].len();
        let (mut weight, mut samples) = (0, 0);
        for row in &rows[1..] {
            prop_assert_eq!(row.len(), width);
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
fn what_pprof_leaves_out_keeps_the_names_that_its_thread_had() {
    let mut builder = ProfileBuilder::default();
    for (thread, stack, period) in [
        ("a", "x;main", 30),
        ("a", "y;main", 20),
        ("b", "y;main", 10),
        ("b", "z;main", 5),
    ] {
        builder.sample(thread, stack, period);
    }
    let mut profile = builder.finish();
    // One thread, which has another name in the end.
    let thread = profile.entries[0].thread;
    for entry in &mut profile.entries {
        entry.thread = thread;
    }
    let of = |max_stacks| {
        let options = PprofOptions {
            labels: labels(),
            max_stacks,
            ..PprofOptions::default()
        };
        by_labels(&pprof_of(&profile, &options).0)
    };
    assert_eq!(of(None).len(), 2);
    for most in 0..4 {
        assert_eq!(of(Some(most)), of(None), "{most}");
    }
}

/// All lanes begin with the first sample of the recording and end with the last.
#[test]
fn lanes_on_the_wall_begin_and_end_together() {
    let mut builder = ProfileBuilder::default();
    for (thread, stack) in [
        ("a", "x;main"),
        ("b", "y;main"),
        ("a", "x;main"),
        ("a", "x;main"),
    ] {
        builder.sample(thread, stack, 10);
    }
    let mut profile = builder.finish();
    profile.events[EventId(0)].unit = Unit::Nanoseconds;
    let times = [100, 130, 104, 150];
    let mut profile = into_samples(profile);
    for (sample, time) in profile.samples.iter_mut().zip(times) {
        sample.time = Some(time);
    }
    profile.samples.sort_by_key(|sample| sample.time);
    assert!(speedscope::knows_wall(&profile, EventId(0)));
    let mut bytes = Vec::new();
    speedscope::write(&profile, true, &mut bytes).expect("a vector takes everything");
    let file: Value = serde_json::from_slice(&bytes).expect("JSON");
    let lanes = ["weights", "endValue"]
        .map(|part| [&file["profiles"][0][part], &file["profiles"][1][part]]);
    // What ran: 4 of 10 ns, since the sample before was then, and 10 before the last; of the other thread 10.
    assert_eq!(
        lanes,
        [
            [&json!([4, 36, 10]), &json!([20, 10, 20])],
            [&json!(50), &json!(50)]
        ]
    );
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
        ..PprofOptions::default()
    };
    let (bytes, _) = pprof_of(&profile, &options);
    assert_sound_pprof(&bytes);
    has_it(&String::from_utf8_lossy(&bytes));
    let profile = into_samples(profile);
    has_it(&speedscope_of(&profile).0);
    let options = FirefoxOptions {
        event: EventId(0),
        per_cpu: false,
    };
    let mut json = Vec::new();
    firefox::write(&profile, options, None, &mut json).expect("a vector takes everything");
    has_it(&String::from_utf8_lossy(&json));
}

#[test]
fn exports_of_several_events_name_what_each_lost() {
    let mut builder = ProfileBuilder::default();
    builder.sample("c", "main", 1);
    let mut profile = builder.finish();
    let clock = &mut profile.events[EventId(0)];
    (clock.samples, clock.lost) = (3413, 8);
    let mut faults = clock.clone();
    faults.name = "page-faults".to_owned();
    (faults.samples, faults.lost) = (736, 906);
    profile.events.push(faults);
    let texts = |profile: &Profile| {
        let options = FirefoxOptions {
            event: EventId(0),
            per_cpu: false,
        };
        let mut json = Vec::new();
        firefox::write(profile, options, None, &mut json).expect("a vector takes everything");
        let pprof = pprof_of(profile, &PprofOptions::default()).0;
        [pprof, json].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    profile.recording.lost = 914;
    for text in texts(&profile) {
        assert!(text.contains("906 of page-faults (55.2%)"), "{text}");
    }
    // Old kernels do not tell of which event something was lost.
    profile.recording.lost = 906;
    for text in texts(&profile) {
        assert!(!text.contains("906 of"), "{text}");
    }
}

#[test]
fn functions_of_one_name_and_file_are_apart_in_speedscope() {
    let mut builder = ProfileBuilder::default();
    builder.sample("c", "f;main", 1);
    builder.sample("c", "g;main", 2);
    let mut profile = builder.finish();
    profile.strings.push("/w/a.cc".to_owned());
    for frame in &mut profile.frames {
        frame.line = Some(crate::profile::SourceLine {
            file: crate::profile::StringId::from_usize(0),
            line: 99,
            column: 0,
            near: false,
        });
    }
    for (line, symbol) in (6..).zip(profile.symbols.iter_mut().filter(|of| of.name != "main")) {
        symbol.name = "operator()".to_owned();
        symbol.place = Some(Box::new(crate::profile::Place {
            file: "a.cc".to_owned(),
            line,
            ..crate::profile::Place::default()
        }));
    }
    let file: Value = serde_json::from_str(&speedscope_of(&profile).0).expect("JSON");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    let of = |line: u32| json!({ "name": "operator()", "file": "/w/a.cc", "line": line });
    assert!(
        frames.contains(&of(6)) && frames.contains(&of(7)),
        "{frames:?}"
    );
    assert!(frames.contains(&json!({ "name": "main", "file": "/w/a.cc" })));
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
            file: crate::profile::StringId::from_usize(0),
            line,
            column: 0,
            near: false,
        });
    }
    // The same function at another line.
    let mut again = profile.frames[0].clone();
    again.line.as_mut().expect("a line").line = 9;
    profile.frames.push(again);
    let frame = crate::profile::FrameId::from_usize(2);
    let stack = profile.stacks.push(
        &[frame, crate::profile::FrameId::from_usize(1)],
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
