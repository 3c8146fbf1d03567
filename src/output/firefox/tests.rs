//! Files of random profiles: all numbers point somewhere, sums are kept, names do nothing.

use proptest::prelude::*;
use serde_json::Value;

use super::{FirefoxOptions, write};
use crate::output::testing::{is_inert, samples};
use crate::profile::{EventId, Profile, Sampling, ThreadId, Wait};
use crate::report::testing::ProfileBuilder;
use crate::run_state::RunState;
use crate::unit::Unit;

fn written(profile: &Profile, event: u16, per_cpu: bool) -> Value {
    let mut json = Vec::new();
    let written = write(
        profile,
        FirefoxOptions {
            event: EventId(event),
            per_cpu,
        },
        None,
        &mut json,
    );
    written.expect("a vector takes everything");
    serde_json::from_slice(&json).expect("JSON")
}

fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    let found = value.pointer(path);
    found
        .and_then(Value::as_array)
        .unwrap_or_else(|| panic!("no list at {path}"))
}

/// The length of a table, of which all columns have that many cells.
fn length(table: &Value) -> usize {
    let length = usize::try_from(table["length"].as_u64().expect("a length")).expect("small");
    for (name, column) in table.as_object().expect("a table") {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len(), length, "{name}");
        }
    }
    length
}

/// All numbers of a column are below `end`; null and -1 are none.
fn assert_below(file: &Value, column: &str, end: usize) {
    for cell in list(file, column) {
        let is_none = cell.is_null() || cell.as_i64() == Some(-1);
        assert!(
            is_none || cell.as_u64().is_some_and(|n| n < end as u64),
            "{column}: {cell}"
        );
    }
}

fn assert_sound(file: &Value) {
    let shared = &file["shared"];
    let names = [
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "nativeSymbols",
        "sources",
    ];
    let [stacks, frames, funcs, resources, natives, sources] =
        names.map(|name| length(&shared[name]));
    let strings = list(shared, "/stringArray").len();
    let libs = list(file, "/libs").len();
    for (column, end) in [
        ("stackTable/frame", frames),
        ("frameTable/func", funcs),
        ("frameTable/nativeSymbol", natives),
        ("funcTable/name", strings),
        ("funcTable/resource", resources),
        ("funcTable/source", sources),
        ("resourceTable/lib", libs),
        ("resourceTable/name", strings),
        ("nativeSymbols/libIndex", libs),
        ("nativeSymbols/name", strings),
        ("sources/filename", strings),
    ] {
        assert_below(shared, &format!("/{column}"), end);
    }
    for (at, offset) in list(shared, "/stackTable/prefixOffset").iter().enumerate() {
        assert!(offset.as_u64().is_some_and(|offset| offset <= at as u64));
    }
    let categories = list(file, "/meta/categories");
    let places = list(shared, "/frameTable/category")
        .iter()
        .zip(list(shared, "/frameTable/subcategory"));
    for (category, subcategory) in places {
        let known = &categories[category.as_u64().expect("a number") as usize]["subcategories"];
        assert!(
            known
                .get(subcategory.as_u64().expect("a number") as usize)
                .is_some()
        );
    }
    for thread in list(file, "/threads") {
        length(&thread["samples"]);
        length(&thread["markers"]);
        assert_below(thread, "/samples/stack", stacks);
        assert_below(thread, "/markers/name", strings);
        for data in list(thread, "/markers/data") {
            let stack = data.pointer("/cause/stack");
            assert!(stack.is_none_or(|stack| stack.as_u64().is_some_and(|n| n < stacks as u64)));
        }
    }
}

fn assert_inert(value: &Value) {
    match value {
        Value::String(text) => assert!(is_inert(text), "{text:?}"),
        Value::Array(items) => items.iter().for_each(assert_inert),
        Value::Object(items) => items.values().for_each(assert_inert),
        _ => {}
    }
}

/// Sum of weights and number of samples and markers of all threads.
fn sums(file: &Value) -> (u64, usize, usize) {
    let (mut weight, mut samples, mut markers) = (0, 0, 0);
    for thread in list(file, "/threads") {
        samples += length(&thread["samples"]);
        markers += length(&thread["markers"]);
        if let Some(weights) = thread["samples"]["weight"].as_array() {
            weight += weights.iter().filter_map(Value::as_u64).sum::<u64>();
        }
    }
    (weight, samples, markers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn files_are_sound_and_keep_sums(profile in samples(), event in 0..2_u16, per_cpu: bool) {
        let file = written(&profile, event, per_cpu);
        assert_sound(&file);
        assert_inert(&file);
        let own = || profile.samples.iter().filter(|sample| sample.event.0 == event);
        let (weight, samples, markers) = sums(&file);
        prop_assert_eq!(samples, own().count());
        prop_assert_eq!(markers, profile.samples.len() - samples);
        let periods: Vec<u64> = own().map(|sample| sample.period).collect();
        let is_equal = periods.windows(2).all(|pair| pair[0] == pair[1]) && periods.first() != Some(&0);
        prop_assert_eq!(weight, if is_equal { 0 } else { periods.iter().sum() });
        let names: Vec<&str> = list(&file, "/threads").iter().filter_map(|t| t["name"].as_str()).collect();
        prop_assert_eq!(names.iter().all(|name| name.starts_with("CPU ")), per_cpu);
    }
}

/// Two threads of one process; the second has a sample with an inlined function.
fn small() -> Profile {
    let mut builder = ProfileBuilder::default();
    builder.add_event("sched:sched_switch");
    builder.sample("a", "i(inlined);f;main", 1_000_000);
    builder.sample("a", "f;main", 1_000_000);
    builder.event = EventId(1);
    builder.sample("a", "s@[kernel.kallsyms];main", 1);
    let mut profile = crate::output::testing::into_samples(builder.finish());
    profile.events[0].unit = Unit::Nanoseconds;
    profile.events[0].sampling = Sampling::PerSecond(1000);
    profile.events[1].is_tracepoint = true;
    profile
}

/// Blocks of one size are bytes all the same; equal periods of what was recorded are samples.
#[test]
fn weights_that_were_asked_for_are_never_left_out() {
    let mut profile = small();
    let samples = |profile: &Profile| written(profile, 0, false)["threads"][0]["samples"].clone();
    assert!(samples(&profile)["weight"].is_null());
    profile.events[0].unit = Unit::Bytes;
    profile.events[0].counted = Some("blocks");
    let bytes = samples(&profile);
    assert_eq!(bytes["weightType"], "bytes");
    assert_eq!(bytes["weight"], serde_json::json!([1_000_000, 1_000_000]));
}

#[test]
fn inlined_functions_share_address_and_symbol() {
    let file = written(&small(), 0, false);
    let frames = &file["shared"]["frameTable"];
    // By symbol and address, which here is lower in the inlined function.
    assert_eq!(frames["inlineDepth"], serde_json::json!([1, 0, 0, 0]));
    assert_eq!(frames["nativeSymbol"][0], frames["nativeSymbol"][1]);
    assert_ne!(frames["func"][0], frames["func"][1]);
    // Two samples upon main and f: four paths, the switch's among them.
    assert_eq!(
        file["shared"]["stackTable"]["prefixOffset"],
        serde_json::json!([0, 1, 1, 3])
    );
}

#[test]
fn clocks_tell_how_long_the_cpu_was_used() {
    let mut profile = small();
    let file = written(&profile, 0, false);
    let samples = &file["threads"][0]["samples"];
    assert_eq!(samples["weight"], Value::Null);
    assert_eq!(
        samples["threadCPUDelta"],
        serde_json::json!([1_000_000, 1_000_000])
    );
    assert_eq!(samples["timeDeltas"], serde_json::json!([0, 1.000_001]));
    assert_eq!(file["meta"]["interval"], 1.0);
    profile.samples[1].period = 500_000;
    let samples = &written(&profile, 0, false)["threads"][0]["samples"];
    assert_eq!(samples["weight"], serde_json::json!([1, 0.5]));
    assert_eq!(samples["weightType"], "tracing-ms");
    // Switches are no time.
    let samples = &written(&profile, 1, false)["threads"][0]["samples"];
    assert!(samples.get("threadCPUDelta").is_none());
}

#[test]
fn a_switch_begins_a_time_off_the_cpu() {
    let mut profile = small();
    let from = profile.samples[2].time.expect("recorded");
    let (thread, state) = (ThreadId(0), RunState::Blocked);
    let wait = Wait {
        thread,
        from,
        to: Some(from + 2_500_000),
        is_bound: false,
        state,
    };
    profile.waits = vec![
        wait,
        Wait {
            from: from + 3_000_000,
            to: Some(from + 4_000_000),
            is_bound: true,
            ..wait
        },
        Wait {
            from: from + 4_000_000,
            to: None,
            ..wait
        },
    ];
    let markers = &written(&profile, 0, false)["threads"][0]["markers"];
    assert_eq!(length(markers), 3);
    let (first, second) = (&markers["data"][0], &markers["data"][1]);
    assert_eq!(first["state"], "blocked");
    assert!(first["cause"]["stack"].is_u64() && second.get("cause").is_none());
    assert_eq!(markers["endTime"][0], 2.000_002 + 2.5);
    assert!(first.get("note").is_none());
    assert_eq!(second["note"], "at most until its next switch");
    let third = &markers["data"][2];
    assert_eq!(third["note"], "until the end of the recording");
    // On a CPU nobody waits: the switch is one moment.
    let cpus = &written(&profile, 0, true)["threads"];
    let ends = |at: usize| {
        cpus[at]["markers"]["endTime"]
            .as_array()
            .expect("a column")
            .clone()
    };
    assert_eq!([ends(0), ends(1)].concat(), [Value::Null]);
}

#[test]
fn lives_of_one_number_are_told_apart() {
    let mut builder = ProfileBuilder::default();
    for comm in ["a", "b", "c"] {
        builder.sample(comm, "main", 1);
    }
    let mut profile = builder.finish();
    for (at, (tid, start)) in [(100, None), (100, Some(6_000_000)), (101, Some(6_500_000))]
        .into_iter()
        .enumerate()
    {
        profile.threads[at].pid = 100;
        profile.threads[at].tid = tid;
        profile.threads[at].start = start;
    }
    let file = written(&crate::output::testing::into_samples(profile), 0, false);
    let threads = list(&file, "/threads");
    let shown: Vec<_> = threads
        .iter()
        .map(|t| {
            (
                t["pid"].as_str(),
                t["tid"].clone(),
                t["processName"].as_str(),
            )
        })
        .collect();
    let second = (Some("100.2"), Value::from("100.2"), Some("b"));
    let third = (Some("100.2"), Value::from(101), Some("b"));
    assert_eq!(
        shown,
        [(Some("100"), Value::from(100), Some("a")), second, third]
    );
}
