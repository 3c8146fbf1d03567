//! Stacks as rows for a database: one for each stack of a recording, or for each sample.
//!
//! In: a profile. Out: CSV (RFC 4180); many recordings go into one file, told apart by the first column. Written row by row.

use std::io::{self, Write};

use super::csv::write_row;
use crate::profile::{CommId, EventId, FrameId, Profile, StackId, ThreadId};
use crate::unit::Unit;

/// The columns.
const HEADING: [&str; 11] = [
    "recording",
    "event",
    "unit",
    "pid",
    "tid",
    "comm",
    "weight",
    "samples",
    "leaf",
    "leaf_object",
    "stack",
];
/// Those that rows of samples have besides.
const OF_SAMPLES: [&str; 2] = ["time_ns", "cpu"];

/// Writes the line of headings.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_heading(samples: bool, out: &mut dyn Write) -> io::Result<()> {
    let more = if samples { &OF_SAMPLES[..] } else { &[] };
    let cells: Vec<&str> = HEADING.iter().chain(more).copied().collect();
    write_row(&cells, out)
}

/// Writes the rows of one recording; how many.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(profile: &Profile, samples: bool, out: &mut dyn Write) -> io::Result<usize> {
    for entry in &profile.entries {
        let place = (entry.event, entry.thread, entry.comm);
        let stack = (entry.stack, entry.leaf);
        let cells = cells(profile, place, stack, (entry.period, entry.samples));
        write_row(&cells, out)?;
    }
    for sample in &profile.samples {
        let place = (sample.event, sample.thread, sample.comm);
        let stack = (sample.stack, sample.leaf);
        let mut cells = cells(profile, place, stack, (sample.period, 1));
        if samples {
            let text = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
            cells.push(text(sample.time));
            cells.push(text(sample.cpu.map(u64::from)));
        }
        write_row(&cells, out)?;
    }
    Ok(profile.entries.len() + profile.samples.len())
}

fn cells(
    profile: &Profile,
    (event, thread, comm): (EventId, ThreadId, CommId),
    (stack, leaf): (StackId, FrameId),
    (weight, samples): (u64, u64),
) -> Vec<String> {
    let summary = &profile[event];
    let unit = match summary.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Cycles => "cycles",
        Unit::ByteSeconds => "KiB·ms",
        Unit::Pages => "pages",
        Unit::Count => "count",
    };
    let own = [leaf];
    let frames = match profile.stacks.get(stack) {
        [] => &own[..],
        frames => frames,
    };
    // Root first; a `;` in a name would be two frames.
    let names: Vec<String> = frames
        .iter()
        .rev()
        .map(|frame| name(profile, *frame).replace(';', "\\;"))
        .collect();
    let object = profile[leaf].object;
    vec![
        profile.recording.path.clone(),
        summary.name.clone(),
        unit.to_owned(),
        profile[thread].pid.cast_signed().to_string(),
        profile[thread].tid.cast_signed().to_string(),
        profile[comm].clone(),
        weight.to_string(),
        samples.to_string(),
        name(profile, leaf),
        object.map_or(String::new(), |object| profile[object].short_name.clone()),
        names.join(";"),
    ]
}

fn name(profile: &Profile, frame: FrameId) -> String {
    let frame = &profile[frame];
    match (frame.symbol, frame.object) {
        (Some(symbol), _) => profile[symbol].name.clone(),
        (None, Some(object)) => {
            format!("[{}]", profile[object].short_name.trim_matches(['[', ']']))
        }
        (None, None) => "[unknown]".to_owned(),
    }
}
