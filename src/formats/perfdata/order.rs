//! Puts records in the order in which perf acts on them.
//!
//! In: records as they lie in the recording. Out: each once, through a callback. Called by
//! [`super::Recording::deliver`].
//!
//! The rules are perf's (`util/ordered-events.c`, `util/session.c`): records wait for the round that ends them; a
//! FINISHED_ROUND lets go, sorted by time, everything up to the latest time that had been seen at the
//! round *before*; equal times keep the order of the file; a record with the time 0, all ones or none is
//! delivered at once; one that is late goes with the next flush. So two rounds are held and no more.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::address::Timestamp;
use crate::ids::{IndexVec, index_vec};

use super::bytes::{u32_at, u64_at};
use super::head::{Layouts, SampleHead};
use super::records::{self, Record, kind};
use super::{EventId, RecordPos};

/// One record, in its turn.
#[derive(Debug)]
pub enum Delivered<'b> {
    /// A sample.
    Sample(SampleHead),
    /// Anything else.
    Record {
        /// The record.
        record: Record<'b>,
        /// When; 0 if it says nothing.
        time: Timestamp,
        /// Where it is.
        pos: RecordPos,
    },
}

/// How a recording is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It makes no sense from some point on.
    Broken,
    /// The recorder was killed: all records are there, what it writes last is not.
    Unfinished,
    /// So many bytes of records are not there.
    Cut(u64),
    /// The last record is not all there, and nothing tells how many followed it: of a pipe, or of the file of one processor.
    EndCut,
    /// The file of this number is not in the recording's folder.
    FileMissing(u32),
    /// All records are there, what is written behind them is not.
    SectionsCut,
    /// The recorder kept the end of what it compressed: `perf record -z` writes what did not fit into a record with the next one, and
    /// there was none.
    EndKept,
}

/// What was seen while delivering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliverStats {
    /// All records, perf's own included.
    pub records: u64,
    /// Sample records (a group's sample is one).
    pub samples: u64,
    /// Sum of the LOST records.
    pub lost_events: u64,
    /// Number of LOST records.
    pub lost_chunks: u64,
    /// Sum of the LOST_SAMPLES records without those that a BPF filter dropped, by event.
    pub lost_samples: IndexVec<EventId, u64>,
    /// Sum of the LOST_SAMPLES records that a BPF filter dropped.
    pub lost_samples_bpf: u64,
    /// Number of records of each type that pjit does not know.
    pub unknown_types: BTreeMap<u32, u64>,
    /// Records whose content contradicts their size.
    pub malformed: u64,
    /// Samples and counter values whose id belongs to no event.
    pub unknown_ids: u64,
    /// Records that came later than others of a later time that were already delivered.
    pub out_of_order: u64,
    /// Number of THROTTLE records.
    pub throttled: u64,
    /// What the processor traced beside the samples (AUXTRACE), if anything.
    pub trace: Option<Trace>,
    /// Number of records by type.
    pub by_type: BTreeMap<u32, u64>,
    /// What of the recording is damaged or missing, if anything is.
    pub damage: Option<Damage>,
    /// Bytes of records that were read (compressed ones as they are in the file).
    pub bytes_read: u64,
}

/// What a processor wrote of its own: every branch, or its own kind of samples. It takes a decoder to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// Of which sort, as AUXTRACE_INFO has it; 0 where nothing tells.
    pub sort: u32,
    /// Bytes of it in the recording.
    pub bytes: u64,
}

impl Trace {
    /// What people call it (`enum auxtrace_type` in `tools/perf/util/auxtrace.h`), with an article.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.sort {
            1 => "an Intel PT trace",
            2 => "an Intel BTS trace",
            3 => "a CoreSight ETM trace",
            4 => "an Arm SPE trace",
            5 => "an s390 CPU-MF trace",
            6 => "a HiSilicon PTT trace",
            _ => "a hardware trace",
        }
    }

    /// What no decoder finds in it, behind what is said of it. Intel's needs the bytes of the code, which are in no file if that
    /// was made at run time.
    #[must_use]
    pub const fn limit(&self) -> &'static str {
        match self.sort {
            1 => "; JIT code cannot be decoded from it",
            _ => "",
        }
    }

    /// The command that makes samples of it.
    #[must_use]
    pub fn decoder(path: &str) -> String {
        format!("perf inject -i {path} --itrace=i1000il -o decoded.data")
    }
}

impl DeliverStats {
    /// Whether there are counts of `perf stat record` among the records.
    #[must_use]
    pub fn holds_counts(&self) -> bool {
        self.by_type.contains_key(&kind::STAT)
    }

    /// Sum of the LOST_SAMPLES records of all events (without those a BPF filter dropped).
    #[must_use]
    pub fn lost_samples_total(&self) -> u64 {
        self.lost_samples
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Samples that the kernel could not write. Before Linux 6.0 only LOST records tell of them; where both do, it is the same loss.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_samples_total().max(self.lost_events)
    }

    /// The same of some events. LOST records do not tell of which event something was lost: what nothing else tells of may be theirs.
    #[must_use]
    pub fn lost_of(&self, is_wanted: impl Fn(EventId) -> bool) -> u64 {
        let by_event = self.lost_samples.iter_enumerated();
        let wanted = by_event.filter(|(event, _)| is_wanted(*event));
        match wanted.fold(0_u64, |sum, (_, n)| sum.saturating_add(*n)) {
            0 => self.lost_events.saturating_sub(self.lost_samples_total()),
            lost => lost,
        }
    }
}

/// Bytes of a record that has to wait: in a map they stay, in a decoded buffer they do not.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Map(&'a [u8]),
    Own(Box<[u8]>),
}

impl Held<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Map(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

/// A record's bytes as the walker has them: `'a` if they outlive the walk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lent<'b, 'a> {
    Map(&'a [u8]),
    Buffer(&'b [u8]),
}

impl<'b, 'a: 'b> Lent<'b, 'a> {
    pub(super) const fn bytes(self) -> &'b [u8] {
        match self {
            Self::Map(bytes) => bytes,
            Self::Buffer(bytes) => bytes,
        }
    }

    fn hold(self) -> Held<'a> {
        match self {
            Self::Map(bytes) => Held::Map(bytes),
            Self::Buffer(bytes) => Held::Own(bytes.into()),
        }
    }
}

/// (value, id) of the counters of a sample.
type Counters = SmallVec<[(u64, u64); 4]>;

#[derive(Debug)]
enum Item<'a> {
    Sample(SampleHead),
    /// A sample with counter values: its periods are known only when its turn comes.
    Counted(Box<(SampleHead, Counters)>),
    Record {
        pos: RecordPos,
        bytes: Held<'a>,
    },
}

#[derive(Debug)]
struct Waiting<'a> {
    time: u64,
    item: Item<'a>,
}

/// What waits for its round.
#[derive(Debug, Default)]
struct Queue<'a> {
    waiting: Vec<Waiting<'a>>,
    /// Time up to which the next FINISHED_ROUND lets go; 0 before the first.
    next_flush: u64,
    /// Latest time that was queued.
    latest: u64,
    /// Time of the last record that was let go.
    last_flushed: u64,
    out_of_order: u64,
}

impl<'a> Queue<'a> {
    fn push(&mut self, time: u64, item: Item<'a>) {
        self.out_of_order += u64::from(time < self.last_flushed);
        // perf forgets the latest time when nothing waits.
        self.latest = if self.waiting.is_empty() {
            time
        } else {
            self.latest.max(time)
        };
        self.waiting.push(Waiting { time, item });
    }

    /// A round ended: what may be delivered, in order.
    fn round(&mut self) -> Vec<Waiting<'a>> {
        let ready = self.take_until(self.next_flush);
        self.next_flush = self.latest;
        ready
    }

    /// Everything up to `limit`, in order. Runs of one CPU follow another, so that a stable merge
    /// sort has little to do.
    fn take_until(&mut self, limit: u64) -> Vec<Waiting<'a>> {
        if limit == 0 {
            return Vec::new();
        }
        self.waiting.sort_by_key(|w| w.time);
        let count = self.waiting.partition_point(|w| w.time <= limit);
        let rest = self.waiting.split_off(count);
        let ready = std::mem::replace(&mut self.waiting, rest);
        if let Some(last) = ready.last() {
            self.last_flushed = last.time;
        }
        ready
    }
}

/// Orders the records of a recording and hands them on.
pub(super) struct Delivery<'r, 'a, 'f> {
    layouts: &'r Layouts,
    queue: Queue<'a>,
    /// Rounds end nothing, because what comes later may be earlier.
    holds_all: bool,
    counters: FxHashMap<(u64, u32), u64>,
    pub(super) stats: DeliverStats,
    kinds: Box<[u64; KINDS]>,
    deliver: &'f mut dyn FnMut(Delivered<'_>),
}

/// Types below this are counted in an array, the rest in a map.
const KINDS: usize = 128;

impl<'r, 'a, 'f> Delivery<'r, 'a, 'f> {
    pub(super) fn new(
        layouts: &'r Layouts,
        events: usize,
        deliver: &'f mut dyn FnMut(Delivered<'_>),
    ) -> Self {
        let stats = DeliverStats {
            lost_samples: index_vec![0; events],
            ..DeliverStats::default()
        };
        Self {
            layouts,
            queue: Queue::default(),
            holds_all: false,
            counters: FxHashMap::default(),
            stats,
            kinds: Box::new([0; KINDS]),
            deliver,
        }
    }

    /// Lets nothing go before the end.
    pub(super) fn hold_all(&mut self) {
        self.holds_all = true;
    }

    /// Takes the next record of the recording (not a compressed one).
    pub(super) fn arrive(&mut self, type_: u32, pos: RecordPos, record: Lent<'_, 'a>) {
        self.count(type_);
        if type_ == kind::SAMPLE {
            self.arrive_sample(pos, record.bytes());
        } else if type_ < kind::FIRST_USER {
            self.arrive_record(type_, pos, record);
        } else if type_ == kind::FINISHED_ROUND {
            if self.holds_all {
                return;
            }
            let ready = self.queue.round();
            self.hand_on(ready);
        } else {
            self.note_trace(type_, record.bytes());
            self.hand_on_record(pos, record.bytes(), Timestamp::START);
        }
    }

    fn note_trace(&mut self, type_: u32, record: &[u8]) {
        let trace = &mut self.stats.trace;
        match type_ {
            kind::AUXTRACE_INFO => {
                trace.get_or_insert_default().sort = u32_at(record, 8).unwrap_or(0);
            }
            kind::AUXTRACE => {
                let trace = trace.get_or_insert_default();
                let bytes = u64_at(record, 8).unwrap_or(0);
                trace.bytes = trace.bytes.saturating_add(bytes);
            }
            _ => {}
        }
    }

    /// A compressed record was unpacked: it counts, its content arrives separately.
    pub(super) fn count(&mut self, type_: u32) {
        self.stats.records += 1;
        match usize::try_from(type_)
            .ok()
            .and_then(|t| self.kinds.get_mut(t))
        {
            Some(n) => *n += 1,
            None => *self.stats.by_type.entry(type_).or_default() += 1,
        }
    }

    /// The recording is at its end: delivers what still waits.
    pub(super) fn finish(mut self) -> DeliverStats {
        let ready = self.queue.take_until(u64::MAX);
        self.hand_on(ready);
        self.stats.out_of_order = self.queue.out_of_order;
        let counted = (0u32..).zip(self.kinds.iter()).filter(|(_, n)| **n > 0);
        self.stats
            .by_type
            .extend(counted.map(|(type_, n)| (type_, *n)));
        self.stats.unknown_types = self
            .stats
            .by_type
            .iter()
            .filter(|(t, _)| !records::is_known(**t))
            .map(|(t, n)| (*t, *n))
            .collect();
        self.stats
    }

    fn arrive_sample(&mut self, pos: RecordPos, record: &[u8]) {
        self.stats.samples += 1;
        let Some(event) = self.layouts.event_of(kind::SAMPLE, record) else {
            self.stats.unknown_ids += 1;
            return;
        };
        let Some(layout) = self.layouts.of(event) else {
            return;
        };
        let Some(head) = layout.head(record, event, pos) else {
            self.stats.malformed += 1;
            return;
        };
        let item = if layout.has_read() {
            let Some(values) = layout.read(record) else {
                self.stats.malformed += 1;
                return;
            };
            Item::Counted(Box::new((head, values.iter().collect())))
        } else {
            Item::Sample(head)
        };
        self.queue_or_hand_on(head.time.0, item);
    }

    fn arrive_record(&mut self, type_: u32, pos: RecordPos, record: Lent<'_, 'a>) {
        let event = self
            .layouts
            .event_of(type_, record.bytes())
            .unwrap_or_else(|| {
                self.stats.unknown_ids += 1;
                EventId(0)
            });
        self.count_losses(type_, event, record.bytes());
        let time = self
            .layouts
            .of(event)
            .and_then(|l| l.record_time(record.bytes()));
        let time = time.unwrap_or_default();
        if is_orderable(time.0) && self.layouts.ordered() {
            self.queue.push(
                time.0,
                Item::Record {
                    pos,
                    bytes: record.hold(),
                },
            );
        } else {
            self.hand_on_record(pos, record.bytes(), Timestamp::START);
        }
    }

    fn count_losses(&mut self, type_: u32, event: EventId, record: &[u8]) {
        match type_ {
            kind::THROTTLE => self.stats.throttled += 1,
            kind::LOST | kind::LOST_SAMPLES => match records::parse(record) {
                Some(Record::Lost { lost, .. }) => {
                    self.stats.lost_chunks += 1;
                    self.stats.lost_events = self.stats.lost_events.saturating_add(lost);
                }
                Some(Record::LostSamples { lost, bpf: true }) => {
                    self.stats.lost_samples_bpf = self.stats.lost_samples_bpf.saturating_add(lost);
                }
                Some(Record::LostSamples { lost, bpf: false }) => {
                    if let Some(n) = self.stats.lost_samples.get_mut(event) {
                        *n = n.saturating_add(lost);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn queue_or_hand_on(&mut self, time: u64, item: Item<'a>) {
        if is_orderable(time) && self.layouts.ordered() {
            self.queue.push(time, item);
        } else {
            self.hand_on_item(time, item);
        }
    }

    fn hand_on(&mut self, ready: Vec<Waiting<'a>>) {
        for Waiting { time, item } in ready {
            self.hand_on_item(time, item);
        }
    }

    fn hand_on_item(&mut self, time: u64, item: Item<'_>) {
        match item {
            Item::Sample(head) => (self.deliver)(Delivered::Sample(head)),
            Item::Counted(counted) => self.hand_on_counted(counted.0, &counted.1),
            Item::Record { pos, bytes } => self.hand_on_record(pos, bytes.bytes(), Timestamp(time)),
        }
    }

    /// A sample of counter values: for each counter, its period is how far it went since its last
    /// sample; nothing is said of counters that stood still (`util/session.c`, `deliver_sample_value`).
    fn hand_on_counted(&mut self, head: SampleHead, counters: &[(u64, u64)]) {
        let per_thread = self
            .layouts
            .of(head.layout)
            .is_some_and(|l| l.read_per_thread);
        for &(value, id) in counters {
            let Some(event) = self.layouts.by_id(id) else {
                self.stats.unknown_ids += 1;
                continue;
            };
            let thread = if per_thread { head.tid } else { 0 };
            let before = self.counters.insert((id, thread), value).unwrap_or(0);
            let period = value.wrapping_sub(before);
            if period != 0 {
                (self.deliver)(Delivered::Sample(SampleHead {
                    event,
                    period,
                    ..head
                }));
            }
        }
    }

    fn hand_on_record(&mut self, pos: RecordPos, record: &[u8], time: Timestamp) {
        match records::parse(record) {
            Some(mut parsed) => {
                if let Record::Switch { task, .. } = &mut parsed {
                    *task = self.layouts.record_task(record);
                }
                (self.deliver)(Delivered::Record {
                    record: parsed,
                    time,
                    pos,
                });
            }
            None => self.stats.malformed += 1,
        }
    }
}

/// Whether perf puts a record of this time in order, and not at the front of everything.
const fn is_orderable(time: u64) -> bool {
    time != 0 && time != u64::MAX
}
