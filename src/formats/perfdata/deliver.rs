//! Pass one: walks all records of a recording once and delivers them in order.
//!
//! In: an opened recording. Out: calls of the session builder, statistics, and one warning for whatever is
//! cut or damaged.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::diagnostics::Diagnostics;
use crate::input::Window;

use super::attr::sample_type;
use super::chunks::{FIRST_DECODED, RecordPos};
use super::features::id;
use super::head::{Walk, record_header, walk};
use super::inflate::{Fed, Inflater, is_compressed, payload};
use super::open::{End, Recording};
use super::order::{Damage, DeliverStats, Delivered, Delivery, Lent};

/// `SIMPLE_PERF_RECORD_TYPE_START`: from there on, types of records are its own.
const FIRST_OF_SIMPLEPERF: u32 = 32768;

impl Recording<'_> {
    /// Whether samples have branch stacks that are no call stacks (`perf record -b`).
    #[must_use]
    pub fn has_branches(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| event.attr.has_branches())
    }

    /// Whether samples have branch stacks, of calls or others.
    #[must_use]
    pub fn has_branch_stacks(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| event.attr.has(sample_type::BRANCH_STACK))
    }

    /// Whether perf's report shows branches by default: the header names them, and nothing is to be unwound.
    #[must_use]
    pub fn shows_branches(&self) -> bool {
        let mut events = self.events.iter();
        let unwinds = events.any(|event| event.attr.has(sample_type::STACK_USER));
        let is_named = self.features.has(id::BRANCH_STACK) && !self.features.frame.stream;
        is_named && !unwinds && self.has_branch_stacks()
    }

    /// Whether samples say where the data of accesses came from, if they are of accesses.
    #[must_use]
    pub fn has_data_sources(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| event.attr.has(sample_type::DATA_SRC))
    }

    /// Whether accesses were asked for (`perf mem record`, `perf record -d -W`). Unwinding asks for data sources, too.
    #[must_use]
    pub fn asks_for_accesses(&self) -> bool {
        let mut events = self.events.iter();
        let weight = sample_type::WEIGHT | sample_type::WEIGHT_STRUCT;
        events.any(|event| {
            event.attr.has(sample_type::DATA_SRC) && event.attr.sample_type & weight != 0
        })
    }

    /// Pass one: hands every record to `f`, in perf's order. What is cut, damaged or unknown is
    /// left out and reported to `diag`. `walked` is told every [`Window::STEP`] bytes or so how many have been read.
    pub fn deliver(
        &self,
        diag: &Diagnostics,
        walked: &mut dyn FnMut(usize),
        f: &mut dyn FnMut(Delivered<'_>),
    ) -> DeliverStats {
        let mut pass = Pass {
            delivery: Delivery::new(self.layouts(), self.events.len(), f),
            recording: self,
            walked,
            before: 0,
            tell_at: Window::STEP,
            inflater: None,
            is_lost: false,
            is_end_kept: false,
            problem: None,
        };
        if self.source().is_in_pieces() {
            pass.delivery.hold_all();
        }
        let mut read = 0;
        let mut end = Walk::End;
        for number in 0.. {
            let Some(chunk) = self.source().chunk(number) else {
                break;
            };
            if self.source().is_in_pieces() {
                pass.begin_piece();
            }
            let (len, how) = pass.raw_chunk(number, &chunk);
            self.source().keep(number, chunk);
            read += len as u64;
            pass.before += len;
            pass.tell_at = 0;
            // Of several files one that is cut is enough.
            if how != Walk::End {
                end = how;
            }
            if end == Walk::Damaged {
                pass.problem.get_or_insert("a record has the size 0");
                break;
            }
        }
        pass.end_piece();
        let (problem, is_end_kept) = (pass.problem, pass.is_end_kept);
        let mut stats = pass.delivery.finish();
        stats.bytes_read = read;
        let beside = self.source().traced_bytes();
        if beside > 0 {
            let trace = stats.trace.get_or_insert_default();
            trace.bytes = trace.bytes.saturating_add(beside);
        }
        let end_kept = is_end_kept.then_some(Damage::EndKept);
        stats.damage = self.damage(problem, end).or(end_kept);
        self.report_damage(diag, &stats, problem, end);
        self.report_unread(diag, &stats);
        self.report_skipped(diag, &stats);
        stats
    }

    fn damage(&self, problem: Option<&str>, end: Walk) -> Option<Damage> {
        if problem.is_some() || self.source().problem().is_some() {
            return Some(Damage::Broken);
        }
        if let Some(number) = self.absent() {
            return Some(Damage::FileMissing(number));
        }
        match self.end() {
            End::Unclosed => Some(Damage::Unfinished),
            End::Missing(bytes) => Some(Damage::Cut(bytes)),
            End::SectionsMissing(_) => Some(Damage::SectionsCut),
            End::Declared => (end != Walk::End).then_some(Damage::EndCut),
        }
    }

    /// One line for all that is cut or damaged.
    fn report_damage(
        &self,
        diag: &Diagnostics,
        stats: &DeliverStats,
        problem: Option<&str>,
        end: Walk,
    ) {
        let path = self.path().display();
        let read = format!(
            "{} samples in {} bytes were read",
            stats.samples, stats.bytes_read
        );
        if let Some(problem) = problem {
            let offset = self.region_start().saturating_add(stats.bytes_read);
            diag.warn(format!(
                "{path}: damaged before offset {offset:#x}: {problem}; {read}, the rest is missing"
            ));
        } else if let Some(fault) = self.source().problem() {
            diag.warn(format!("{path}: {fault}; {read}, the rest is missing"));
        } else if let Some(number) = self.absent() {
            diag.warn(format!(
                "{path}: its file data.{number} is missing; {read}, the rest is missing"
            ));
        } else {
            match self.end() {
                End::Unclosed => diag.warn(format!(
                    "{path}: the recording was never completed (was perf record killed?); {read}; \
                     what perf writes last is missing: build IDs, host, event names"
                )),
                End::Missing(missing) => diag.warn(format!(
                    "{path}: cut short; {read}, {missing} bytes of records and what perf writes last \
                     are missing: build IDs, host, event names"
                )),
                End::SectionsMissing(n) => diag.warn(format!(
                    "{path}: cut short behind the records; {read}, {n} sections of what perf writes \
                     last are missing, such as build IDs, host, event names"
                )),
                End::Declared if end != Walk::End => {
                    diag.warn(format!(
                        "{path}: the last record is cut, what followed it is missing; {read}"
                    ));
                }
                End::Declared if stats.damage == Some(Damage::EndKept) => diag.warn(format!(
                    "{path}: the last records are missing; perf record -z kept them when it ended"
                )),
                End::Declared => {}
            }
        }
    }

    /// One line for what was recorded and is not read.
    fn report_unread(&self, diag: &Diagnostics, stats: &DeliverStats) {
        let path = self.path().display();
        if self.features.is_simpleperf() {
            diag.warn(format!(
                "{path}: recorded by simpleperf; its symbols are not read"
            ));
        }
        if let Some(trace) = stats.trace.filter(|_| stats.samples > 0) {
            diag.warn(format!(
                "{path}: {} of {} bytes was recorded too, which pjit does not decode (perf report --itrace does)",
                trace.name(),
                trace.bytes
            ));
        }
    }

    fn report_skipped(&self, diag: &Diagnostics, stats: &DeliverStats) {
        let path = self.path().display();
        if stats.malformed > 0 {
            diag.warn(format!(
                "{path}: {} malformed records were skipped",
                stats.malformed
            ));
        }
        if stats.unknown_ids > 0 {
            let n = stats.unknown_ids;
            diag.warn(format!(
                "{path}: {n} records of events that the recording does not describe were skipped"
            ));
        }
        let features = self.features.unknown();
        let features: Vec<String> = features.map(|n| n.to_string()).collect();
        if !self.features.is_simpleperf() && !features.is_empty() {
            diag.note(format!(
                "{path}: features of a newer perf in the header were skipped: {}",
                features.join(", ")
            ));
        }
        let own = self.features.is_simpleperf();
        let unknown = stats.unknown_types.iter();
        let unknown = unknown.filter(|(type_, _)| !own || **type_ < FIRST_OF_SIMPLEPERF);
        let unknown: BTreeMap<u32, u64> = unknown.map(|(type_, n)| (*type_, *n)).collect();
        if !unknown.is_empty() {
            let n: u64 = unknown.values().sum();
            let types: Vec<String> = unknown.keys().take(8).map(u32::to_string).collect();
            diag.warn(format!(
                "{path}: {n} records of unknown types ({}) were skipped",
                types.join(", ")
            ));
        }
    }
}

/// One walk over everything.
struct Pass<'r, 'a, 'f> {
    delivery: Delivery<'r, 'a, 'f>,
    recording: &'r Recording<'a>,
    walked: &'f mut dyn FnMut(usize),
    /// Bytes in front of the chunk at hand.
    before: usize,
    /// Offset in the chunk from which `walked` is to be told again.
    tell_at: usize,
    inflater: Option<Inflater>,
    /// Compressed records can no longer be decoded in this file.
    is_lost: bool,
    /// Whether a piece ended within what was compressed.
    is_end_kept: bool,
    /// The first reason for that.
    problem: Option<&'static str>,
}

impl<'a> Pass<'_, 'a, '_> {
    #[expect(
        clippy::ptr_arg,
        reason = "what is borrowed from the map outlives the walk"
    )]
    fn raw_chunk(&mut self, number: u32, chunk: &Cow<'a, [u8]>) -> (usize, Walk) {
        let (len, end) = match chunk {
            Cow::Borrowed(bytes) => walk(bytes, &mut |at, type_, record| {
                self.record(type_, RecordPos::new(number, at), Lent::Map(record));
            }),
            Cow::Owned(bytes) => walk(bytes, &mut |at, type_, record| {
                self.record(type_, RecordPos::new(number, at), Lent::Buffer(record));
            }),
        };
        if end == Walk::Partial {
            self.cut_record(chunk.get(len..).unwrap_or_default());
        }
        (len, end)
    }

    fn record(&mut self, type_: u32, pos: RecordPos, record: Lent<'_, 'a>) {
        if pos.offset() >= self.tell_at {
            (self.walked)(self.before + pos.offset());
            self.tell_at = pos.offset() + Window::STEP;
        }
        if is_compressed(type_) {
            self.delivery.count(type_);
            self.inflate(payload(type_, record.bytes()));
        } else {
            self.delivery.arrive(type_, pos, record);
        }
    }

    /// The next file is packed by itself.
    fn begin_piece(&mut self) {
        self.end_piece();
        self.is_lost = false;
        if let Some(inflater) = &mut self.inflater {
            inflater.restart();
        }
    }

    fn end_piece(&mut self) {
        let is_cut = |inflater: &Inflater| !self.is_lost && inflater.is_cut();
        self.is_end_kept |= self.inflater.as_ref().is_some_and(is_cut);
    }

    /// The front of a compressed record still holds whole records.
    fn cut_record(&mut self, front: &[u8]) {
        if let Some((type_, _)) = record_header(front).filter(|(type_, _)| is_compressed(*type_)) {
            self.inflate(payload(type_, front));
        }
    }

    fn inflate(&mut self, payload: &[u8]) {
        if self.is_lost {
            return;
        }
        if let Err(problem) = self.try_inflate(payload) {
            self.is_lost = true;
            self.problem.get_or_insert(problem);
        }
    }

    fn try_inflate(&mut self, payload: &[u8]) -> Result<(), &'static str> {
        let inflater = match &mut self.inflater {
            Some(inflater) => inflater,
            none => {
                self.recording.note_compressed();
                none.insert(self.recording.new_inflater())
            }
        };
        let delivery = &mut self.delivery;
        let mut input = payload;
        inflater.begin();
        loop {
            let chunk = FIRST_DECODED.saturating_add(inflater.number());
            let fed = inflater.feed(&mut input, &mut |at, type_, record| {
                delivery.arrive(type_, RecordPos::new(chunk, at), Lent::Buffer(record));
            })?;
            match fed {
                Fed::Full => inflater.turn(),
                Fed::Done => return Ok(()),
            }
        }
    }
}
