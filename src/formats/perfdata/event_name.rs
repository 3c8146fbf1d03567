//! Names for events that the recording does not name, made from their attributes as perf makes them.
//!
//! In: an attribute. Out: `cpu-clock`, `cycles:u`, `L1-dcache-load-misses`. Behaviour of
//! `tools/perf/util/evsel.c`, `evsel__name`, of perf 7.2 (6.1 adds `:HG` in some cases).

use super::attr::{Attr, flag};
use super::tracing::Tracepoints;

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// The name of an event with this attribute.
pub(super) fn of(attr: &Attr, tracepoints: &Tracepoints) -> String {
    let known = |names: &[&str], kind: &str| {
        // The high half selects the PMU of hybrid machines.
        let name = usize::try_from(attr.config & 0xffff_ffff)
            .ok()
            .and_then(|n| names.get(n).copied());
        name.map_or_else(|| format!("unknown-{kind}"), str::to_owned)
    };
    match attr.type_ {
        0 => known(&HARDWARE, "hardware") + &modifiers(attr),
        1 => known(&SOFTWARE, "software") + &modifiers(attr),
        2 => tracepoints
            .name(attr.config)
            .unwrap_or_else(|| format!("unknown:{}", attr.config)),
        3 => cache(attr.config) + &modifiers(attr),
        4 => format!("raw {:#x}", attr.config) + &modifiers(attr),
        5 => breakpoint(attr) + &modifiers(attr),
        other => format!("unknown attr type: {other}"),
    }
}

/// What is not excluded, and how precise.
fn modifiers(attr: &Attr) -> String {
    let mut text = String::new();
    if attr.flag(flag::EXCLUDE_KERNEL | flag::EXCLUDE_USER | flag::EXCLUDE_HV) {
        for (bit, letter) in [
            (flag::EXCLUDE_KERNEL, 'k'),
            (flag::EXCLUDE_USER, 'u'),
            (flag::EXCLUDE_HV, 'h'),
        ] {
            if !attr.flag(bit) {
                text.push(letter);
            }
        }
    }
    text.extend(std::iter::repeat_n('p', usize::from(attr.precise_ip())));
    // Excluding guests is what perf up to 6.12 did unasked; it says nothing.
    if attr.flag(flag::EXCLUDE_HOST) && !attr.flag(flag::EXCLUDE_GUEST) {
        text.push('G');
    }
    if text.is_empty() {
        text
    } else {
        format!(":{text}")
    }
}

/// `L1-dcache-load-misses`: cache, operation and result are one byte each.
fn cache(config: u64) -> String {
    const CACHES: [&str; 7] = [
        "L1-dcache",
        "L1-icache",
        "LLC",
        "dTLB",
        "iTLB",
        "branch",
        "node",
    ];
    const OPERATIONS: [(&str, &str); 3] = [
        ("load", "loads"),
        ("store", "stores"),
        ("prefetch", "prefetches"),
    ];
    let byte = |shift: u32| usize::from((config >> shift) as u8);
    let (Some(cache), Some((single, plural))) = (CACHES.get(byte(0)), OPERATIONS.get(byte(8)))
    else {
        return "unknown-ext-hardware-cache-type".to_owned();
    };
    match byte(16) {
        0 => format!("{cache}-{plural}"),
        1 => format!("{cache}-{single}-misses"),
        _ => "unknown-ext-hardware-cache-result".to_owned(),
    }
}

/// `mem:0x601040:rw`.
fn breakpoint(attr: &Attr) -> String {
    let mut text = format!("mem:{:#x}:", attr.config1);
    for (bit, letter) in [(1, 'r'), (2, 'w'), (4, 'x')] {
        if attr.bp_type & bit != 0 {
            text.push(letter);
        }
    }
    text
}
