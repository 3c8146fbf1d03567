//! One dump of the run: bytes in, codes with raw times out, and what there is to say about it.

use std::path::Path;

use super::builder::Marker;
use super::clock::{Evidence, Relation};
use super::files::{Found, file_name};
use super::memory::Anonymous;
use super::owners::{Owners, STALE};
use super::{Companions, JitCode, JitObject, JitObjectId, JitObjectKind, JitStats};
use crate::address::Timestamp;
use crate::diagnostics::Diagnostics;
use crate::input::Store;
use crate::jitdump::dump::{Counts, Cut, CutReason, Entry, Header, Load, Move, Reader};
use crate::jitdump::{NameKind, Producer};

/// One dump, read.
pub(super) struct Dump<'a> {
    pub(super) file: Found<'a>,
    pub(super) header: Header,
    pub(super) counts: Counts,
    pub(super) cut: Option<Cut>,
    pub(super) producer: Producer,
    /// Loads in file order; `loaded` is raw until the clocks are related.
    pub(super) codes: Vec<JitCode<'a>>,
    /// `code_index` of every load, if there are moves.
    pub(super) indexes: Vec<u64>,
    /// From which load on which process wrote.
    pub(super) writers: Vec<(u32, u32)>,
    /// The least raw time of a load with code, and the greatest of all.
    pub(super) first: Option<u64>,
    pub(super) last: u64,
    /// In file order; times as those of `codes`.
    pub(super) moves: Vec<Move>,
    pub(super) relation: Relation,
    pub(super) markers: Vec<usize>,
    pub(super) aliases: u64,
    pub(super) replaced: u64,
}

impl<'a> Dump<'a> {
    /// `None` if the file is no dump.
    pub(super) fn read(file: Found<'a>, store: &'a Store) -> Option<Self> {
        let mut reader = Reader::new(file.bytes).ok()?;
        let (mut codes, mut indexes, mut writers, mut moves) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for entry in &mut reader {
            match entry {
                Entry::Load(load) => {
                    if writers.last().is_none_or(|&(_, pid)| pid != load.pid) {
                        writers.push((u32::try_from(codes.len()).unwrap_or(u32::MAX), load.pid));
                    }
                    indexes.push(load.index);
                    codes.push(code_of(&load, store));
                }
                Entry::Move(moved) => moves.push(moved),
            }
        }
        let producer = reader.producer();
        for code in codes
            .iter_mut()
            .filter(|code: &&mut JitCode<'_>| code.producer == Producer::Unknown)
        {
            code.producer = producer;
        }
        if moves.is_empty() {
            indexes = Vec::new();
        }
        let times = |code: &JitCode<'_>| code.loaded.0;
        let first = codes.iter().filter(|code| code.size > 0).map(times).min();
        let last = codes.iter().map(times).max().unwrap_or(0);
        let (header, counts, cut) = (*reader.header(), reader.counts(), reader.cut().cloned());
        Some(Self {
            file,
            header,
            counts,
            cut,
            producer,
            codes,
            indexes,
            writers,
            first,
            last,
            moves,
            relation: Relation::Same,
            markers: Vec::new(),
            aliases: 0,
            replaced: 0,
        })
    }

    /// Whether the process of a marker, or one of its children, may have written this.
    pub(super) fn may_be_of(&self, marker: &Marker) -> bool {
        self.codes.is_empty()
            || self
                .writers
                .iter()
                .any(|&(_, pid)| pid == marker.pid || pid == marker.number)
    }

    /// What is known about its times: when it was mapped, when the recording ends, and the memory of
    /// processes that mapped it.
    pub(super) fn evidence<'m>(
        &self,
        marker: Option<Timestamp>,
        end: Option<Timestamp>,
        memory: impl Iterator<Item = &'m Anonymous>,
    ) -> Evidence {
        let last = self.last;
        // What is older than the recording can be, an earlier process wrote.
        let duration = marker
            .zip(end)
            .map(|(marker, end)| end.0.saturating_sub(marker.0));
        let oldest = duration.map_or(0, |duration| {
            last.saturating_sub(duration.saturating_add(STALE))
        });
        let recent = self
            .codes
            .iter()
            .filter(|code| code.loaded.0 >= oldest && code.size > 0)
            .map(|code| (code.range(), code.loaded.0));
        let first = match self.first {
            Some(first) if first >= oldest => Some(first),
            _ => recent.clone().map(|(_, time)| time).min(),
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
            diag.warn(describe_cut(&self.file.path, cut));
        }
        let odd = self.counts.malformed + self.counts.unknown;
        if odd > 0 {
            diag.warn(format!(
                "{path}: {odd} records of unknown or impossible form skipped"
            ));
        }
        if owners.foreign > 0 {
            diag.warn(format!(
                "{path}: {} of {} functions are of an earlier or unknown process; not used",
                owners.foreign,
                self.codes.len()
            ));
        }
    }

    /// The dump as an object of the index.
    pub(super) fn object(&self, marker: Option<&Marker>, owners: &Owners) -> JitObject {
        let found = || self.file.path.as_os_str().as_encoded_bytes().to_vec();
        let recorded = marker.filter(|marker| !marker.injected);
        let path = recorded.map_or_else(found, |marker| marker.path.clone());
        let functions = owners.of_loads.iter().flatten().count() as u64;
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
            producer: self.producer,
            functions,
            summary,
            stats: JitStats {
                found_at: self.file.path.clone(),
                counts: self.counts.clone(),
                cut: self.cut.clone(),
                foreign: owners.foreign,
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
            .map_or(self.header.pid, |&(_, pid)| pid);
        marker.map_or(writer, |marker| marker.pid)
    }
}

/// The codes of all dumps, in order.
pub(super) fn joined<'a>(dumps: Vec<Dump<'a>>) -> Vec<JitCode<'a>> {
    let mut codes = dumps.into_iter().map(|dump| dump.codes);
    let mut all = codes.next().unwrap_or_default();
    codes.for_each(|more| all.extend(more));
    all.shrink_to_fit();
    all
}

pub(crate) fn code_of<'a>(load: &Load<'a>, store: &'a Store) -> JitCode<'a> {
    let asks_for_frame_pointers = load.unwinding.is_some_and(|unwinding| unwinding.is_empty());
    let unwinding = load
        .unwinding
        .filter(|unwinding| !unwinding.is_empty())
        .map(|unwinding| match unwinding.readable_eh_frame() {
            std::borrow::Cow::Borrowed(_) => unwinding,
            std::borrow::Cow::Owned(fixed) => unwinding.with_eh_frame(store.keep(fixed)),
        });
    let companions = Companions {
        unwinding,
        lines: load.lines,
    };
    JitCode {
        name: load.name,
        start: load.address,
        size: load.size,
        bytes: load.code,
        loaded: Timestamp(load.time),
        object: JitObjectId(0),
        producer: Producer::of_prefix(load.name),
        companions: (unwinding.is_some() || load.lines.is_some()).then(|| Box::new(companions)),
        asks_for_frame_pointers,
        kind: NameKind::of(load.name),
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
