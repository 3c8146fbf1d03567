//! Where the front fields of a sample lie, worked out once for each event.
//!
//! In: the attributes. Out: [`Layout`]s that read a [`SampleHead`] at fixed offsets, touching only the first
//! two cache lines of a record, and the time of any other record at fixed offsets from its end. Also: which
//! event a record belongs to (`util/evlist.c`, `evlist__event2evsel`).

use rustc_hash::FxHashMap;

use crate::address::{Avma, Timestamp};
use crate::ids::{IndexSlice, IndexVec};
use crate::input::prefetch;

use super::attr::{Attr, sample_type as st};
use super::bytes::{Cursor, u16_at, u32_at, u64_at};
use super::records::kind;
use super::sample::ReadValues;
use super::{CpuMode, Event, EventId, RecordPos};

/// Everything of a sample that lies at its front: enough for a flat report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleHead {
    /// Where the record is, for the second pass.
    pub pos: RecordPos,
    /// The event to which the period belongs.
    pub event: EventId,
    /// The event whose attribute describes the record's bytes: the group's leader when a sample
    /// with counter values was split by members, else the same as `event`.
    pub layout: EventId,
    /// Mode of the processor.
    pub cpumode: CpuMode,
    /// Instruction pointer; 0 when absent.
    pub ip: Avma,
    /// Process; `u32::MAX` when absent.
    pub pid: u32,
    /// Thread; `u32::MAX` when absent.
    pub tid: u32,
    /// When; 0 when absent.
    pub time: Timestamp,
    /// Processor.
    pub cpu: Option<u32>,
    /// Weight in event units: the record's period, or `attr.sample_period` when the record has none,
    /// or how far the counter went since the last sample when the record has counter values.
    pub period: u64,
}

/// Byte offsets in a record; 0 (where the header is) means absent.
#[derive(Clone, Copy, Debug, Default)]
struct Front {
    ip: usize,
    tid: usize,
    time: usize,
    cpu: usize,
    period: usize,
    read: usize,
    /// Length of header and fixed fields.
    len: usize,
}

/// The layout of the records of one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    front: Front,
    /// Bytes from the end of a non-sample record to its time; 0: none.
    time_from_end: usize,
    /// The same to its process and thread.
    task_from_end: usize,
    /// `attr.sample_period`.
    period: u64,
    read_format: u64,
    /// Counter values belong to threads, not to whole counters.
    pub(super) read_per_thread: bool,
}

impl Layout {
    fn new(attr: &Attr) -> Self {
        let mut at = 8;
        let mut field = |bit| {
            if !attr.has(bit) {
                return 0;
            }
            at += 8;
            at - 8
        };
        let (_, ip, tid, time) = (
            field(st::IDENTIFIER),
            field(st::IP),
            field(st::TID),
            field(st::TIME),
        );
        let (_, _, _) = (field(st::ADDR), field(st::ID), field(st::STREAM_ID));
        let (cpu, period) = (field(st::CPU), field(st::PERIOD));
        let len = at;
        let read = if attr.has(st::READ) { len } else { 0 };
        Self {
            front: Front {
                ip,
                tid,
                time,
                cpu,
                period,
                read,
                len,
            },
            time_from_end: trailer_place(attr, st::TIME),
            task_from_end: trailer_place(attr, st::TID),
            period: attr.sample_period,
            read_format: attr.read_format,
            read_per_thread: attr.has(st::TID) && attr.flag(super::attr::flag::INHERIT),
        }
    }

    /// The head of a sample record; `None` if the record is too short for its fixed fields.
    pub(super) fn head(&self, record: &[u8], event: EventId, pos: RecordPos) -> Option<SampleHead> {
        let front = &self.front;
        if record.len() < front.len {
            return None;
        }
        let long = |at: usize| if at == 0 { None } else { u64_at(record, at) };
        let tid = long(front.tid).unwrap_or(u64::MAX);
        Some(SampleHead {
            pos,
            event,
            layout: event,
            cpumode: CpuMode::from_misc(u16_at(record, 4)?),
            ip: Avma(long(front.ip).unwrap_or(0)),
            pid: low(tid),
            tid: low(tid >> 32),
            time: Timestamp(long(front.time).unwrap_or(0)),
            cpu: long(front.cpu).map(low),
            period: long(front.period).unwrap_or(self.period),
        })
    }

    /// Whether samples of this event carry counter values.
    pub(super) const fn has_read(&self) -> bool {
        self.front.read != 0
    }

    /// The counter values of a sample record.
    pub(super) fn read<'b>(&self, record: &'b [u8]) -> Option<ReadValues<'b>> {
        ReadValues::parse(
            self.read_format,
            &mut Cursor::new(record.get(self.front.read..)?),
        )
    }

    /// The time of a record that is not a sample, from its `sample_id` trailer.
    pub(super) fn record_time(&self, record: &[u8]) -> Option<Timestamp> {
        let at = record.len().checked_sub(self.time_from_end)?;
        if self.time_from_end == 0 || at < 8 {
            return None;
        }
        u64_at(record, at).map(Timestamp)
    }

    /// (pid, tid) from the `sample_id` trailer of a record that is not a sample.
    fn record_task(&self, record: &[u8]) -> Option<(u32, u32)> {
        let at = record.len().checked_sub(self.task_from_end)?;
        if self.task_from_end == 0 || at < 8 {
            return None;
        }
        u64_at(record, at).map(|word| (low(word), low(word >> 32)))
    }
}

/// The low half: `u32` fields that share a word.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is wanted"
)]
const fn low(word: u64) -> u32 {
    word as u32
}

/// Bytes from the end of a record to a field in its `sample_id` trailer; 0 without it.
fn trailer_place(attr: &Attr, field: u64) -> usize {
    if !attr.sample_id_all() || !attr.has(field) {
        return 0;
    }
    8 + trailer_words_behind(attr, field) * 8
}

/// Words of the `sample_id` trailer behind the one of `field`: the trailer's order is TID, TIME, ID,
/// STREAM_ID, CPU, IDENTIFIER.
fn trailer_words_behind(attr: &Attr, field: u64) -> usize {
    const ORDER: [u64; 6] = [
        st::TID,
        st::TIME,
        st::ID,
        st::STREAM_ID,
        st::CPU,
        st::IDENTIFIER,
    ];
    ORDER
        .iter()
        .skip_while(|&&bit| bit != field)
        .skip(1)
        .filter(|&&bit| attr.has(bit))
        .count()
}

/// The layouts of all events and the table of ids.
#[derive(Debug)]
pub(super) struct Layouts {
    layouts: IndexVec<EventId, Layout>,
    by_id: FxHashMap<u64, EventId>,
    /// Byte offset of the id in a sample; 0: none.
    id_in_sample: usize,
    /// Bytes from the end of any other record to its id; 0: none.
    id_from_end: usize,
    /// Whether other records have a trailer at all.
    sample_id_all: bool,
}

impl Layouts {
    pub(super) fn new(events: &IndexSlice<EventId, [Event]>) -> Self {
        let first = events.first().map(|e| e.attr).unwrap_or_default();
        let by_id = events
            .iter()
            .zip(0u16..)
            .flat_map(|(e, n)| e.ids.iter().map(move |&id| (id, EventId(n))));
        Self {
            layouts: events.iter().map(|e| Layout::new(&e.attr)).collect(),
            by_id: by_id.collect(),
            id_in_sample: id_in_sample(&first),
            id_from_end: id_from_end(&first),
            sample_id_all: first.sample_id_all(),
        }
    }

    pub(super) fn of(&self, event: EventId) -> Option<&Layout> {
        self.layouts.get(event)
    }

    /// Whether records can be put in order of time at all.
    pub(super) const fn ordered(&self) -> bool {
        self.sample_id_all
    }

    /// The event with a counter of this id.
    pub(super) fn by_id(&self, id: u64) -> Option<EventId> {
        self.by_id.get(&id).copied()
    }

    /// (pid, tid) of a record that is not a sample, if it says.
    pub(super) fn record_task(&self, record: &[u8]) -> Option<(u32, u32)> {
        let event = self.event_of(u32_at(record, 0)?, record)?;
        self.of(event)?.record_task(record)
    }

    /// The event that a record belongs to. `None`: its id is unknown.
    pub(super) fn event_of(&self, type_: u32, record: &[u8]) -> Option<EventId> {
        if self.layouts.len() == 1 {
            return Some(EventId(0));
        }
        let at = if type_ == kind::SAMPLE {
            self.id_in_sample
        } else {
            match self.id_from_end {
                0 => 0,
                back => record.len().checked_sub(back).filter(|&at| at >= 8)?,
            }
        };
        if at == 0 {
            return Some(EventId(0));
        }
        // Synthesised records have the id 0 and belong to the first event.
        match u64_at(record, at)? {
            0 => Some(EventId(0)),
            id => self.by_id(id),
        }
    }
}

fn id_in_sample(attr: &Attr) -> usize {
    if attr.has(st::IDENTIFIER) {
        return 8;
    }
    if !attr.has(st::ID) {
        return 0;
    }
    let before = st::IP | st::TID | st::TIME | st::ADDR;
    8 + (attr.sample_type & before).count_ones() as usize * 8
}

fn id_from_end(attr: &Attr) -> usize {
    if !attr.sample_id_all() {
        0
    } else if attr.has(st::IDENTIFIER) {
        8
    } else if attr.has(st::ID) {
        8 + trailer_words_behind(attr, st::ID) * 8
    } else {
        0
    }
}

/// Type, size (at least 8) of the record that starts `bytes`; `None` if they are damaged or cut.
pub(super) fn record_header(bytes: &[u8]) -> Option<(u32, usize)> {
    let word = u64_at(bytes, 0)?;
    let size = usize::from(u16::try_from(word >> 48).ok()?);
    (size >= 8).then_some((u32_at(bytes, 0)?, size))
}

/// How a walk over records ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Walk {
    /// Behind the last record.
    End,
    /// In the middle of a record.
    Partial,
    /// At a header that cannot be right.
    Damaged,
}

/// Bytes at the front of a record that a walk reads.
const GLANCE: usize = 64;

/// Calls `f` with (offset, type, bytes) of each whole record. Returns where and why it ended.
pub(super) fn walk<'b>(bytes: &'b [u8], f: &mut dyn FnMut(usize, u32, &'b [u8])) -> (usize, Walk) {
    let mut at = 0;
    loop {
        let rest = match bytes.get(at..) {
            Some([]) => return (at, Walk::End),
            None => return (bytes.len(), Walk::Partial),
            Some(rest) => rest,
        };
        let Some((type_, size)) = record_header(rest) else {
            let end = if rest.len() < 8 {
                Walk::Partial
            } else {
                Walk::Damaged
            };
            return (at, end);
        };
        let Some(record) = rest.get(..size) else {
            return (at, Walk::Partial);
        };
        // Samples of one event are mostly of one size: a guess at where the next ones start. Each record's
        // front is a miss otherwise, and none can begin before the one in front of it has ended.
        for ahead in [2 * size, 4 * size] {
            prefetch(rest.get(ahead..ahead + GLANCE).unwrap_or_default());
        }
        f(at, type_, record);
        at += size;
        if matches!(type_, kind::AUXTRACE | kind::HEADER_TRACING_DATA) {
            let payload = payload_len(type_, record);
            at = at.saturating_add(usize::try_from(payload).unwrap_or(usize::MAX));
        }
    }
}

/// How many bytes follow a record outside of its own size.
pub(super) fn payload_len(type_: u32, record: &[u8]) -> u64 {
    match type_ {
        kind::AUXTRACE => u64_at(record, 8).unwrap_or(0),
        kind::HEADER_TRACING_DATA => {
            let len = u64::from(u32_at(record, 8).unwrap_or(0));
            // simpleperf has them in the record itself.
            if len > 0 && record.len() as u64 >= 12 + len {
                return 0;
            }
            // Padded to a multiple of eight.
            len.next_multiple_of(8)
        }
        _ => 0,
    }
}
