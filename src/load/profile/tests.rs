//! What views may ask of a profile, on the samples of this project.

use std::path::PathBuf;

use super::{EventSummary, Profile};
use crate::collect;
use crate::diagnostics::Diagnostics;
use crate::ids::Idx as _;
use crate::load::{LoadOptions, Source, load};
use crate::needs::Needs;

fn profile_of(sample: &str, needs: Needs) -> Profile {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples");
    let options = LoadOptions {
        needs,
        reading: collect::Options {
            max_frames: 127,
            threads: 2,
            ..collect::Options::default()
        },
        ..LoadOptions::of(Source::File(root.join(sample).join("perf.data")))
    };
    load(&options, &Diagnostics::new()).expect("the sample can be read")
}

/// All that frames can have, for each sample.
const EVERYTHING: Needs = Needs::CHAINS
    .union(Needs::SAMPLES)
    .union(Needs::ADDRESSES)
    .union(Needs::LINES)
    .union(Needs::RANGES)
    .union(Needs::CODE)
    .union(Needs::WASM_LINES);

#[test]
fn rows_are_samples_or_merged_and_add_up_alike() {
    for sample in ["minijit", "node", "wasmtime", "native"] {
        let merged = profile_of(sample, Needs::STACKS);
        let apart = profile_of(sample, Needs::STACKS | Needs::SAMPLES);
        assert!(merged.samples.is_empty() && apart.entries.is_empty());
        assert_eq!(merged.events[0].samples, apart.samples.len() as u64);
        assert_eq!(merged.events[0].period, apart.events[0].period);
        let sum: u64 = apart.samples.iter().map(|sample| sample.period).sum();
        assert_eq!(sum, merged.events[0].period);
        assert!(apart.samples.is_sorted_by_key(|sample| sample.time));
        assert!(apart.samples.iter().all(|sample| sample.time.is_some()));
    }
}

/// Samples are known one by one where rows are samples. The list of times has to say the same of rows that stay together.
#[test]
fn the_list_of_times_says_what_samples_of_their_own_say() {
    fn told(profile: &Profile) -> Vec<(u64, u64, super::ThreadId, String)> {
        let portions: Vec<_> = profile.portions().collect();
        let stack = |at: usize| {
            let frames = profile.stacks.get(portions[at].stack).iter();
            let names = frames.map(|frame| profile.frame_name(*frame));
            names.collect::<Vec<_>>().join(";")
        };
        let moments = profile.moments();
        let told = moments.map(|of| {
            let thread = portions[of.portion].thread;
            (of.time, of.period, thread, stack(of.portion))
        });
        let mut told: Vec<_> = told.collect();
        told.sort_unstable();
        told
    }
    for sample in [
        "minijit",
        "node",
        "typescript",
        "wasmtime",
        "native",
        "waits",
    ] {
        let listed = profile_of(sample, Needs::CHAINS | Needs::TIMES);
        let apart = profile_of(sample, Needs::CHAINS | Needs::SAMPLES);
        assert!(listed.entries.len() < listed.times.len(), "{sample}");
        assert!(
            listed.times.is_sorted_by_key(|taken| taken.time),
            "{sample}"
        );
        assert_eq!(told(&listed), told(&apart), "{sample}");
        let merged = profile_of(sample, Needs::CHAINS);
        assert_eq!(
            listed.entries, merged.entries,
            "{sample}: rows are not one more"
        );
        assert!(merged.times.is_empty(), "{sample}: nobody asked");
    }
}

/// What filters took away has no times any more.
#[test]
fn times_of_rows_that_are_gone_are_gone() {
    let mut profile = profile_of("native", Needs::CHAINS | Needs::TIMES);
    let all = profile.moments().count();
    let gone = profile.entries.remove(super::EntryId::from_usize(0));
    assert_eq!(profile.moments().count() as u64, all as u64 - gone.samples);
}

#[test]
fn versions_of_code_have_their_bytes_and_their_time() {
    let profile = profile_of("minijit", EVERYTHING);
    assert!(!profile.code.is_empty());
    for version in &profile.code {
        assert_eq!(version.bytes.len() as u64, version.size);
        assert!(version.to.is_none_or(|to| version.from < to));
    }
    // Two functions were made one after the other at one address.
    let named = |name: &str| {
        let found = profile
            .code
            .iter()
            .find(|version| profile[version.symbol].name == name);
        found.expect("it was hit")
    };
    let (first, second) = (named("jit::reuse_A"), named("jit::reuse_B"));
    assert_eq!(first.start, second.start);
    assert_eq!(first.to, Some(second.from));
    // Each sample's code was there at its time.
    let mut hits = 0;
    for sample in &profile.samples {
        let frame = &profile[sample.leaf];
        let Some(version) = frame.code.map(|code| &profile[code]) else {
            continue;
        };
        let time = sample.time.expect("recorded");
        assert!(version.from <= time && version.to.is_none_or(|to| time < to));
        hits += 1;
    }
    assert!(hits > 50, "{hits}");
}

#[test]
fn objects_know_where_they_were_mapped() {
    let profile = profile_of("native", EVERYTHING - Needs::SAMPLES);
    let mut checked = 0;
    for frame in &profile.frames {
        let Some(object) = frame.object.map(|object| &profile[object]) else {
            continue;
        };
        if object.ranges.is_empty() {
            continue;
        }
        let around = object
            .ranges
            .iter()
            .find(|mapped| mapped.range.contains(frame.address));
        let mapped = around.expect("the frame lies in a range");
        let offset = mapped.offset.plus(frame.address.since(mapped.range.start));
        assert!(object.identity || offset == frame.object_address);
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn lines_have_columns_and_threads_have_lives() {
    let profile = profile_of("native", EVERYTHING - Needs::SAMPLES);
    let lines: Vec<_> = profile
        .frames
        .iter()
        .filter_map(|frame| frame.line)
        .collect();
    assert!(lines.iter().any(|line| line.column > 0));
    assert!(lines.iter().all(|line| !profile[line.file].is_empty()));
    let named = profile.threads.iter().filter(|thread| thread.tid != 0);
    for thread in named {
        assert_eq!(
            thread.comms.last().map(|(_, comm)| *comm),
            Some(thread.comm)
        );
        assert!(
            thread
                .start
                .zip(thread.end)
                .is_none_or(|(start, end)| start <= end)
        );
    }
    assert!(profile.threads.iter().any(|thread| thread.end.is_some()));
}

#[test]
fn the_recorded_command_is_not_perfs_own() {
    let mut recording = profile_of("native", Needs::empty()).recording;
    let told = recording.command().expect("perf wrote its own");
    assert!(told.contains("perf record"), "{told}");
    recording.asked = vec!["node".to_owned(), "work.js".to_owned()];
    assert_eq!(recording.command().as_deref(), Some("node work.js"));
}

#[test]
fn a_clock_is_shown_first_also_where_each_sample_weighs_one() {
    let event = |name: &str, samples| EventSummary {
        name: name.to_owned(),
        samples,
        counted: Some("samples"),
        ..EventSummary::default()
    };
    let events = [event("page-faults", 900), event("cpu-clock/freq=99/", 9)];
    let mut profile = Profile {
        events: events.into_iter().collect(),
        ..Profile::default()
    };
    assert_eq!(profile.main_event().index(), 1);
    profile.events[1].name = "sched:sched_switch".to_owned();
    assert_eq!(profile.main_event().index(), 0);
}
