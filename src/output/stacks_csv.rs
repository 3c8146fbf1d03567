//! Stacks as rows for a database: one for each stack of a recording, or for each sample.
//!
//! In: a profile. Out: CSV (RFC 4180); many recordings go into one file, told apart by the first column. Written row by row.

use std::io::{self, Write};

use super::csv::{cell_text, write_row};
use super::names::frame_name;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::functions::payers::Paid;
use crate::ids::IndexVec;
use crate::needs::Needs;
use crate::parallel::write_in_parallel;
use crate::profile::{
    CommId, Entry, EventId, EventSummary, FrameId, ObjectId, Profile, Sample, StackId, ThreadId,
};
use crate::run_state::RunState;
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
const OF_SAMPLES: [&str; 3] = ["time_ns", "cpu", "phase"];
/// The last ones: who pays, and what is done.
const PARTS: [&str; 2] = ["package", "activity"];

/// What the rows are made of.
#[must_use]
pub fn needs(samples: bool) -> Needs {
    Needs::CHAINS | Needs::KINDS | Needs::ORIGINALS | Needs::SAMPLES.only_if(samples)
}

/// Writes the line of headings.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_heading(samples: bool, out: &mut dyn Write) -> io::Result<()> {
    let more = if samples { &OF_SAMPLES[..] } else { &[] };
    let cells: Vec<&str> = HEADING.iter().chain(more).chain(&PARTS).copied().collect();
    write_row(&cells, out)
}

/// Writes the rows of one recording; how many. With times of phases there are the columns of samples.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(
    profile: &Profile,
    phases: Option<&Vec<(u64, u64)>>,
    threads: usize,
    out: &mut dyn Write,
) -> io::Result<usize> {
    /// Rows of deep stacks take kilobytes each, and some pieces wait to be written.
    const PIECE: usize = 64;
    let cells = Cells::of(profile);
    let rows = profile.entries.len() + profile.samples.len();
    let push = |(): &mut (), piece: usize, text: &mut Vec<u8>| {
        let end = rows.min((piece + 1) * PIECE);
        (piece * PIECE..end).for_each(|row| match profile.entries.get(row) {
            Some(entry) => cells.push_entry(entry, phases.is_some(), text),
            None => cells.push_sample(&profile.samples[row - profile.entries.len()], phases, text),
        });
        Ok(())
    };
    write_in_parallel(rows.div_ceil(PIECE), threads, || (), push, out)?;
    Ok(rows)
}

/// A name inside the cell of a stack, and as a cell of its own.
struct Name {
    in_stack: String,
    own: String,
}

/// What cells are made of, each text once.
struct Cells<'p> {
    profile: &'p Profile,
    recording: String,
    /// By event: event and unit.
    events: IndexVec<EventId, String>,
    comms: IndexVec<CommId, String>,
    /// By frame.
    frames: IndexVec<FrameId, Name>,
    /// By object.
    objects: IndexVec<ObjectId, String>,
    paid: Paid,
}

impl<'p> Cells<'p> {
    fn of(profile: &'p Profile) -> Self {
        let frames = profile.frames.indices().map(|frame| {
            let name = frame_name(profile, frame);
            Name {
                // A `;` in a name would be two frames.
                in_stack: name.replace(';', "\\;"),
                own: cell_text(&name),
            }
        });
        let objects = profile.objects.iter();
        Self {
            paid: Paid::of(profile, &Functions::of(profile, &OwnRules::default())),
            profile,
            recording: cell_text(&profile.recording.path),
            events: profile.events.iter().map(event_cells).collect(),
            comms: profile.comms.iter().map(|comm| cell_text(comm)).collect(),
            frames: frames.collect(),
            objects: objects
                .map(|object| cell_text(&object.short_name))
                .collect(),
        }
    }

    fn push_entry(&self, entry: &Entry, with_time: bool, text: &mut Vec<u8>) {
        let place = (entry.event, entry.thread, entry.comm);
        let stack = (entry.stack, entry.leaf);
        self.push(place, stack, (entry.period, entry.samples), text);
        if with_time {
            text.extend_from_slice(b",,,");
        }
        self.push_parts(stack, entry.state, text);
    }

    fn push_sample(&self, sample: &Sample, phases: Option<&Vec<(u64, u64)>>, text: &mut Vec<u8>) {
        let place = (sample.event, sample.thread, sample.comm);
        let stack = (sample.stack, sample.leaf);
        self.push(place, stack, (sample.period, 1), text);
        if let Some(phases) = phases {
            let phase = sample.time.and_then(|time| number_of(phases, time));
            for number in [sample.time, sample.cpu.map(u64::from), phase] {
                let number = number.map_or_else(String::new, |number| number.to_string());
                text.push(b',');
                text.extend_from_slice(number.as_bytes());
            }
        }
        self.push_parts(stack, sample.state, text);
    }

    /// Who pays, what is done, and the end of the row.
    fn push_parts(&self, (stack, leaf): (StackId, FrameId), state: RunState, text: &mut Vec<u8>) {
        let payer = self.paid.payer(stack, leaf);
        let payer = payer.map_or_else(String::new, |payer| cell_text(&payer.label()));
        let activity = cell_text(self.paid.activity(stack, leaf, state).unwrap_or_default());
        text.extend_from_slice(format!(",{payer},{activity}\n").as_bytes());
    }

    fn push(
        &self,
        (event, thread, comm): (EventId, ThreadId, CommId),
        (stack, leaf): (StackId, FrameId),
        (weight, samples): (u64, u64),
        text: &mut Vec<u8>,
    ) {
        let thread = &self.profile[thread];
        let (pid, tid) = (thread.pid.cast_signed(), thread.tid.cast_signed());
        let comm = &self.comms[comm];
        let event = &self.events[event];
        let object = self.profile[leaf].object;
        let object = object.map_or("", |object| &self.objects[object]);
        let own = &self.frames[leaf].own;
        let head = format!(
            "{},{event},{pid},{tid},{comm},{weight},{samples},{own},{object},",
            self.recording
        );
        text.extend_from_slice(head.as_bytes());
        let start = text.len();
        self.push_stack(stack, leaf, text);
        // Nearly no stack has something to quote.
        let is_plain = !matches!(text.get(start), Some(b'=' | b'+' | b'-' | b'@' | b' '))
            && text.last() != Some(&b' ')
            && memchr::memchr2(b',', b'"', &text[start..]).is_none();
        if !is_plain {
            let cell = cell_text(&String::from_utf8_lossy(&text[start..]));
            text.truncate(start);
            text.extend_from_slice(cell.as_bytes());
        }
    }

    /// Root first.
    fn push_stack(&self, stack: StackId, leaf: FrameId, text: &mut Vec<u8>) {
        let own = [leaf];
        let frames = match self.profile.stacks.get(stack) {
            [] => &own[..],
            frames => frames,
        };
        for (at, frame) in frames.iter().rev().enumerate() {
            if at > 0 {
                text.push(b';');
            }
            text.extend_from_slice(self.frames[*frame].in_stack.as_bytes());
        }
    }
}

/// The number of the phase at a time.
fn number_of(phases: &[(u64, u64)], time: u64) -> Option<u64> {
    let number = phases.partition_point(|(from, _)| *from <= time);
    let (_, to) = phases.get(number.checked_sub(1)?)?;
    (time <= *to).then_some(number as u64)
}

fn event_cells(event: &EventSummary) -> String {
    let unit = match event.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Cycles => "cycles",
        Unit::ByteSeconds => "KiB·ms",
        Unit::Pages => "pages",
        Unit::Blocks => "blocks",
        Unit::Count => "count",
    };
    format!("{},{unit}", cell_text(&event.name))
}
