//! The samples of allocations and of waiting, which need neither rights nor perf: line by line, and against sums that are
//! made here, of records that somebody else's reader reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use linux_perf_data::linux_perf_event_reader::ContextSwitchRecord;
use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{PerfFileReader, PerfFileRecord};

use crate::golden::check;
use crate::live::{below, total, truth};
use crate::support::{sample, stdout_of};

#[test]
fn heap_prints_what_it_did() {
    let flat = ["--no-children", "-g", "none", "-s", "sym"];
    let report = |weight| [&["report", "--weight", weight], &flat[..]].concat();
    check(
        "heap",
        &[
            ("pjit.alloc.txt", &report("alloc")),
            ("pjit.live.txt", &report("live")),
            ("pjit.peak.txt", &report("peak")),
            ("pjit.lifetime.folded", &["fold", "--weight", "lifetime"]),
            (
                "pjit.alloc.folded",
                &["fold", "--weight", "alloc", "--no-trim"],
            ),
            ("pjit.summary.txt", &["summary", "--weight", "alloc"]),
            ("pjit.stat.txt", &["stat"]),
        ],
    );
}

#[test]
fn waits_print_what_they_did() {
    let states = ["--no-children", "-g", "none", "-s", "state,sym"];
    let report = |weight| [&["report", "--weight", weight], &states[..]].concat();
    check(
        "waits",
        &[
            ("pjit.wall.txt", &report("wall")),
            ("pjit.blocked.txt", &report("blocked")),
            ("pjit.oncpu.txt", &report("oncpu")),
            ("pjit.offcpu.folded", &["fold", "--weight", "offcpu"]),
            ("pjit.summary.txt", &["summary", "--weight", "wall"]),
            ("pjit.stat.txt", &["stat"]),
        ],
    );
}

/// Allocations and waits are answered in bytes and seconds, though nobody asked for them; the events themselves can be had.
#[test]
fn what_was_recorded_tells_the_weight() {
    let asked = stdout_of(&["summary", "--weight", "alloc"], "heap");
    let told = stdout_of(&["summary"], "heap");
    assert_eq!(asked, told);
    assert!(
        told.contains("20.18 MiB") && !told.contains("CPU"),
        "{told}"
    );
    let events = stdout_of(&["summary", "--weight", "period"], "heap");
    assert!(events.contains("145 heap:free"), "{events}");
}

/// Something that happened to a thread.
enum Moment {
    /// A tracepoint: its name and payload.
    Hit(String, Vec<u8>),
    /// It is back on a processor.
    In,
}

/// What happened, in order of time.
fn story(name: &str) -> Vec<(u64, i32, Moment)> {
    let file = File::open(sample(name, "perf.data")).expect("the sample is there");
    let reader = PerfFileReader::parse_file(BufReader::new(file)).expect("a sound recording");
    let PerfFileReader {
        mut record_iter,
        mut perf_file,
    } = reader;
    let attributes = perf_file.event_attributes().iter();
    let names: Vec<String> = attributes
        .map(|a| a.name().unwrap_or_default().to_owned())
        .collect();
    let mut story = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).expect("sound") {
        let PerfFileRecord::EventRecord { attr_index, record } = record else {
            continue;
        };
        let common = record.common_data().expect("a sound record");
        let (Some(time), Some(tid)) = (common.timestamp, common.tid) else {
            continue;
        };
        let moment = match record.parse().expect("a sound record") {
            EventRecord::Sample(s) => match s.raw {
                Some(raw) => Moment::Hit(names[attr_index].clone(), raw.as_slice().to_vec()),
                None => continue,
            },
            EventRecord::ContextSwitch(ContextSwitchRecord::In { .. }) => Moment::In,
            _ => continue,
        };
        story.push((time, tid, moment));
    }
    story.sort_by_key(|(time, ..)| *time);
    story
}

fn number(payload: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"))
}

#[test]
fn allocations_are_the_sums_of_what_probes_said() {
    // One thread: calls nest, and only the outermost of them count.
    let mut pending: Vec<(String, u64, u64)> = Vec::new();
    let mut there: BTreeMap<u64, u64> = BTreeMap::new();
    let mut asked: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut peak = 0;
    for (_, _, moment) in story("heap") {
        let Moment::Hit(event, payload) = moment else {
            continue;
        };
        // Behind eight bytes of every event: the function; of returns, where to; then what was recorded.
        let said = |n: usize| number(&payload, 16 + 8 * n);
        let event = event.trim_start_matches("heap:");
        if let Some(function) = event.strip_suffix("_ret__return") {
            let (of, bytes, before) = pending.pop().expect("it was called");
            assert_eq!(of, function);
            if !pending.is_empty() {
                continue;
            }
            let sums = asked.entry(of).or_default();
            *sums = (sums.0 + bytes, sums.1 + 1);
            there.remove(&before);
            if function != "posix_memalign" {
                there.insert(said(1), bytes);
            }
            peak = peak.max(there.values().sum());
        } else if event == "free" {
            there.remove(&said(0));
        } else {
            let (bytes, before) = match event {
                "calloc" => (said(0) * said(1), 0),
                "realloc" => (said(1), said(0)),
                "aligned" | "posix_memalign" => (said(1), 0),
                _ => (said(0), 0),
            };
            pending.push((event.to_owned(), bytes, before));
        }
    }
    let folded = |weight| stdout_of(&["fold", "--weight", weight], "heap");
    let (alloc, count) = (folded("alloc"), folded("alloc-count"));
    for (site, function) in [
        ("site_calloc", "calloc"),
        ("site_realloc", "realloc"),
        ("site_posix", "posix_memalign"),
        ("site_aligned", "aligned"),
    ] {
        let found = (below(&alloc, site), below(&count, site));
        assert_eq!(found, asked[function], "{site}");
    }
    let plain = |folded| below(folded, "site_small") + below(folded, "site_big");
    assert_eq!((plain(&alloc), plain(&count)), asked["malloc"]);
    assert_eq!(
        total(&alloc),
        asked.values().map(|sums| sums.0).sum::<u64>()
    );
    assert_eq!(total(&folded("live")), there.values().sum::<u64>());
    assert_eq!(total(&folded("live-count")), there.len() as u64);
    assert_eq!(total(&folded("peak")), peak);
    // What the program printed when it was recorded: `alloc 50 0 20`.
    assert_eq!((total(&alloc), total(&count)), (21_162_160, 280));
    assert_eq!((total(&folded("live")), there.len()), (5_292_880, 55));
}

#[test]
fn waits_are_the_times_between_switches() {
    let mut away: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
    let mut sums = [0_u64; 2];
    let mut back = |tid, time, away: &mut BTreeMap<i32, (u64, u64)>| {
        if let Some((from, state)) = away.remove(&tid) {
            // 0 is runnable, 0x100 preempted.
            sums[usize::from(state == 0 || state == 0x100)] += time - from;
        }
    };
    for (time, tid, moment) in story("waits") {
        match moment {
            // Behind eight bytes of every event: comm, 16; pid and priority; state, 8. Who comes next has a record of that.
            Moment::Hit(event, payload) if event == "sched:sched_switch" => {
                away.insert(tid, (time, number(&payload, 32)));
            }
            Moment::In => back(tid, time, &mut away),
            _ => {}
        }
    }
    let folded = |weight| stdout_of(&["fold", "--weight", weight], "waits");
    assert_eq!(total(&folded("blocked")), sums[0]);
    let runnable = folded("runnable");
    assert_eq!(total(&runnable) - below(&runnable, "[start]"), sums[1]);
    let wall = total(&folded("wall"));
    let parts = ["blocked", "runnable", "oncpu"].map(|weight| total(&folded(weight)));
    // Between the sample of a switch and its record a thread runs and waits: in the wall that counts once.
    let twice = parts.iter().sum::<u64>() - wall;
    assert!(twice < 87 * 70_000, "{twice}");

    // What the program measured itself, in seconds.
    let notes = std::fs::read_to_string(sample("waits", "NOTES.md")).expect("there are notes");
    let blocked = folded("blocked");
    let mut compared = 0;
    for (site, seconds) in truth(&notes.replace("    ", "")) {
        // Where glibc joins threads it has no frame pointers.
        if site.starts_with("site_") && site != "site_join" {
            let found = below(&blocked, &site) as f64 * 1e-9;
            assert!(
                (found - seconds).abs() <= 0.002,
                "{site}: {found} of {seconds}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 5);
}
