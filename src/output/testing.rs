//! Random profiles with hostile names, for the tests of writers.

use proptest::prelude::*;

use crate::profile::{Profile, Sample};
use crate::report::testing::ProfileBuilder;

/// Names as an attacker, or a compiler, would choose them. Bytes that are no UTF-8 are U+FFFD in a profile.
pub(super) const HOSTILE: [&str; 16] = [
    "</script><script>alert(1)</script>",
    "\"double\" 'single' `back`",
    "[u8; 8]::f<a, b>",
    "=cmd|' /C calc'!A0",
    "\u{202e}drawkcab\u{2066}",
    "nul\0nul",
    "\u{7}\u{1b}[31mred\u{9b}m",
    "line\r\nbreak\ttab",
    "\u{2028}\u{2029}\u{feff}",
    "\u{fffd}\u{fffe}\u{ffff}",
    "größe 😀 名前",
    "-1+2",
    "@SUM(A1)",
    "\\\"\\",
    "",
    " 7 ",
];

/// A profile of rows: up to 40 of three comms, two events, stacks of up to six frames out of a dozen.
pub(super) fn rows() -> impl Strategy<Value = Profile> {
    let frame = prop_oneof![
        (0..6_u8, 0..3_u8).prop_map(|(name, object)| format!("f{name}@o{object}")),
        (0..3_u8).prop_map(|name| format!("i{name}(inlined)@o0")),
        Just("k@[kernel.kallsyms]".to_owned()),
        (1..4_u8).prop_map(|at| format!("0x7{at}0@o1")),
        Just("0x99@".to_owned()),
    ];
    let stack = prop::collection::vec(frame, 1..7);
    let row = (0..3_u8, 0..2_u16, stack, 0..1_000_000_u64);
    let names = prop::collection::vec(0..HOSTILE.len(), 16);
    (prop::collection::vec(row, 1..40), names).prop_map(|(rows, names)| {
        let mut builder = ProfileBuilder::default();
        builder.add_event("page-faults");
        for (comm, event, stack, period) in rows {
            builder.event = crate::profile::EventId(event);
            builder.sample(&format!("c{comm}"), &stack.join(";"), period);
        }
        let mut profile = builder.finish();
        rename(&mut profile, &names);
        profile
    })
}

/// The same with samples instead of rows.
pub(super) fn samples() -> impl Strategy<Value = Profile> {
    rows().prop_map(into_samples)
}

/// One sample for each row.
pub(super) fn into_samples(mut profile: Profile) -> Profile {
    let entries = std::mem::take(&mut profile.entries);
    let samples = (0..).zip(entries).map(|(rank, entry)| Sample {
        time: Some(5_000_000 + rank * 1_000_001),
        cpu: Some(u32::from(rank % 3 == 0)),
        event: entry.event,
        state: entry.state,
        comm: entry.comm,
        thread: entry.thread,
        leaf: entry.leaf,
        stack: entry.stack,
        period: entry.period,
        address: None,
        facets: entry.facets,
    });
    profile.samples = samples.collect();
    let times = profile.samples.iter().filter_map(|sample| sample.time);
    profile.recording.time_range = times.clone().min().zip(times.max());
    profile
}

/// Names by their number, one after the other. No two symbols get one name, so that rows of functions can be compared.
fn rename(profile: &mut Profile, names: &[usize]) {
    let mut names = names.iter().cycle().map(|at| HOSTILE[*at]);
    let mut next = move || names.next().unwrap_or_default();
    for (at, symbol) in profile.symbols.iter_mut().enumerate() {
        symbol.name = format!("{}{at}", next());
    }
    for object in &mut profile.objects {
        object.short_name = next().to_owned();
        object.long_name = format!("/usr/{}", object.short_name);
    }
    profile
        .comms
        .iter_mut()
        .for_each(|comm| *comm = next().to_owned());
    profile.recording.path = format!("runs/{}.data", next());
    profile.events[1].name = next().to_owned();
}

/// Whether a text has nothing in it that a terminal or a page acts on.
pub(super) fn is_inert(text: &str) -> bool {
    !text.chars().any(super::text::acts)
}
