//! One dump of the run: bytes in, codes with raw times out, and what there is to say about it.

use std::path::Path;

use super::clock::{Evidence, Relation};
use super::codes::DumpCodes;
use super::found::FoundFile;
use super::load_map::LoadId;
use super::marker::{Marker, MarkerId};
use super::memory::Anonymous;
use super::owners::{MoveId, Owners, STALE};
use super::{JitObject, JitObjectKind, JitStats};
use crate::address::Timestamp;
use crate::diagnostics::Diagnostics;
use crate::find::file_name;
use crate::ids::IndexVec;
use crate::input::Store;
use crate::jitdump::dump::{Content, Counts, Cut, CutReason, Header, Move, Reader};

/// So many processes are asked whether they live.
const MOST_WRITERS: usize = 8;

/// Who wrote a record, as it says itself. Runtimes that ask for their process once only go on to tell that of the parent behind a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// One dump, read.
pub(super) struct Dump<'a> {
    pub(super) file: FoundFile<'a>,
    pub(super) header: Header,
    pub(super) counts: Counts,
    pub(super) cut: Option<Cut>,
    /// Whether it ends where it does because it is still being written.
    pub(super) is_growing: bool,
    /// Loads in file order; times are raw until the clocks are related.
    pub(super) codes: DumpCodes<'a>,
    /// From which load on which thread wrote.
    pub(super) writers: Vec<(LoadId, Writer)>,
    /// The least raw time of a load with code, and the least and the greatest of all.
    pub(super) first: Option<u64>,
    pub(super) earliest: u64,
    pub(super) last: u64,
    /// In file order; times as those of `codes`.
    pub(super) moves: IndexVec<MoveId, Move>,
    pub(super) relation: Relation,
    pub(super) markers: Vec<MarkerId>,
    pub(super) aliases: u64,
    pub(super) replaced: u64,
}

impl<'a> Dump<'a> {
    /// `None` if the file is no dump.
    pub(super) fn read(file: FoundFile<'a>, store: &'a Store) -> Option<Self> {
        let mut reader = Reader::new(file.bytes).ok()?;
        let mut dump = Self {
            codes: DumpCodes::new(file.bytes, reader.order()),
            file,
            header: *reader.header(),
            counts: Counts::default(),
            cut: None,
            is_growing: false,
            writers: Vec::new(),
            first: None,
            earliest: u64::MAX,
            last: 0,
            moves: IndexVec::new(),
            relation: Relation::Same,
            markers: Vec::new(),
            aliases: 0,
            replaced: 0,
        };
        loop {
            while let Some(load) = reader.whole_load() {
                dump.note((load.pid, load.tid), load.time, load.size > 0);
                dump.codes.push(&load, &mut reader, store);
            }
            match reader.step() {
                Some((_, Content::Load(load))) => {
                    dump.note((load.pid, load.tid), load.time, load.size > 0);
                    dump.codes.push_load(&load, store);
                }
                Some((_, Content::Move(moved))) => dump.moves.raw.push(moved),
                Some(_) => {}
                None => break,
            }
        }
        dump.codes.producer = reader.producer();
        if dump.codes.producer.row().tells_part_of_sizes {
            dump.codes.fill_gaps();
        }
        (dump.counts, dump.cut) = (reader.counts().clone(), reader.cut().cloned());
        dump.codes.end(dump.moves.is_empty());
        Some(dump)
    }

    /// Of the load that comes next.
    #[inline]
    fn note(&mut self, (pid, tid): (u32, u32), time: u64, has_code: bool) {
        let writer = Writer { pid, tid };
        if self.writers.last().is_none_or(|&(_, last)| last != writer) {
            self.writers.push((self.codes.next_number(), writer));
        }
        self.earliest = self.earliest.min(time);
        self.last = self.last.max(time);
        if has_code {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
        }
    }

    /// Looks whether a dump that ends within a record is still being written: it has grown since it was read, or a process
    /// that mapped it, as the recording calls it or as it calls itself, has it mapped.
    pub(super) fn look_for_writers(&mut self, pids: impl Iterator<Item = u32>) {
        if self.cut.is_none() {
            return;
        }
        let own = self.writers.iter().map(|(_, writer)| writer.pid);
        let own = own.take(MOST_WRITERS);
        let mut pids = pids.take(MOST_WRITERS).chain(own);
        self.is_growing = self.file.has_grown() || pids.any(|pid| self.file.is_mapped_by(pid));
    }

    /// Whether the process of a marker, or one of its children, may have written this.
    pub(super) fn may_be_of(&self, marker: &Marker) -> bool {
        self.codes.loads.is_empty()
            || self
                .writers
                .iter()
                .any(|(_, writer)| writer.pid == marker.pid || writer.pid == marker.number)
    }

    /// What is known about its times: when it was mapped, when the recording ends, and the memory of
    /// processes that mapped it (none if that does not matter). `is_same` tells that its clock is the recording's.
    pub(super) fn evidence<'m>(
        &self,
        marker: Option<Timestamp>,
        end: Option<Timestamp>,
        is_same: bool,
        memory: impl Iterator<Item = &'m Anonymous>,
    ) -> Evidence {
        let last = self.last;
        // What is older than the recording can be, an earlier process wrote. The program may have gone on after the
        // recording; with another clock only its length tells, and the last load is supposed to be within it.
        let oldest = match (marker, end) {
            (Some(marker), _) if is_same => marker.0.saturating_sub(STALE),
            (Some(marker), Some(end)) => {
                let duration = end.0.saturating_sub(marker.0);
                last.saturating_sub(duration.saturating_add(STALE))
            }
            _ => 0,
        };
        let loads = self.codes.loads.iter();
        let recent = loads
            .filter(|load| load.time.0 >= oldest && load.size > 0)
            .map(|load| (load.range(), load.time.0));
        let first = match self.first {
            Some(first) if first >= oldest => Some(first),
            // All of an earlier process: its times do not fit then, which is to be seen.
            first => recent.clone().map(|(_, time)| time).min().or(first),
        };
        let header = self.header.timestamp;
        Evidence {
            marker,
            header: if header >= oldest { header } else { 0 },
            arch_timestamps: self.header.arch_timestamps,
            loads: first.map(|first| (first, last)),
            fresh: memory
                .flat_map(|memory| memory.first_loads(recent.clone()))
                .collect(),
            end,
        }
    }

    /// Says what was wrong with it.
    pub(super) fn report(&self, owners: &Owners, diag: &Diagnostics) {
        let path = self.file.path.display();
        if let Some(cut) = &self.cut {
            if self.is_growing {
                let functions = self.codes.loads.len();
                diag.note(format!(
                    "{path}: still being written, {functions} functions so far"
                ));
            } else {
                diag.warn(describe_cut(&self.file.path, cut));
            }
        }
        let odd = self.counts.malformed + self.counts.unknown;
        if odd > 0 {
            diag.warn(format!(
                "{path}: {odd} records of unknown or impossible form skipped"
            ));
        }
        let (foreign, all) = (owners.of_loads.foreign(), self.codes.loads.len());
        if foreign > 0 {
            diag.warn(format!(
                "{path}: {foreign} of {all} functions are of an earlier or unknown process; not used"
            ));
        }
    }

    /// The dump as an object of the index.
    pub(super) fn object(&self, marker: Option<&Marker>, owners: &Owners) -> JitObject {
        let found = || self.file.path.as_os_str().as_encoded_bytes().to_vec();
        let recorded = marker.filter(|marker| !marker.injected);
        let path = recorded.map_or_else(found, |genuine| genuine.path.clone());
        let foreign = owners.of_loads.foreign();
        let functions = self.codes.loads.len() as u64 - foreign;
        let name = String::from_utf8_lossy(file_name(&path)).into_owned();
        let noun = if functions == 1 {
            "function"
        } else {
            "functions"
        };
        let mut summary = format!("{name}: {functions} {noun}");
        let clock = self.relation.describe();
        if !clock.is_empty() {
            summary.push_str(", ");
            summary.push_str(&clock);
        }
        JitObject {
            path,
            kind: JitObjectKind::Dump,
            pid: self.pid(marker),
            producer: self.codes.producer,
            functions,
            summary,
            stats: JitStats {
                found_at: self.file.path.clone(),
                counts: self.counts.clone(),
                cut: self.cut.clone(),
                is_growing: self.is_growing,
                foreign,
                clock,
                ..JitStats::default()
            },
        }
    }

    /// The process that mapped it, or the one that wrote it.
    pub(super) fn pid(&self, marker: Option<&Marker>) -> u32 {
        let writer = self
            .writers
            .first()
            .map_or(self.header.pid, |(_, writer)| writer.pid);
        marker.map_or(writer, |marker| marker.pid)
    }
}

fn describe_cut(path: &Path, cut: &Cut) -> String {
    let (offset, rest) = (cut.offset, cut.rest);
    let what = match cut.reason {
        CutReason::EndOfFile => "ends beyond the file; was the process killed?",
        CutReason::TooSmall => "says it is smaller than its own head",
    };
    format!(
        "{}: the record at {offset:#x} {what} The last {rest} bytes were not read whole",
        path.display()
    )
}
