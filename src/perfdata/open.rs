//! Opens a recording: header, attributes, names, features; then walks its records.
//!
//! In: a path or a stream. Out: a [`Recording`]. Every size in the header is checked against the file; what is
//! cut off is said once and the rest is used. Layout: `struct perf_file_header` in
//! `tools/perf/util/header.h`.

use std::path::{Path, PathBuf};

use crate::diagnostics::Diagnostics;
use crate::input::{InputError, Store};

use super::attr::{ATTR_SIZE_VER0, Attr};
use super::bytes::u64_at;
use super::chunks::{Chunks, RecordPos};
use super::head::{Layouts, record_header};
use super::order::{DeliverStats, Delivered, Delivery, Lent};
use super::records::kind;
use super::{Event, EventId, Features};

/// Why a recording could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The magic number is not that of a recording.
    #[error("{}: not a perf.data file (it does not start with PERFILE2)", path.display())]
    NotPerfData {
        /// The file.
        path: PathBuf,
    },
    /// Recorded on a big-endian machine.
    #[error("{}: recorded on a big-endian machine, which pjit cannot read", path.display())]
    BigEndian {
        /// The file.
        path: PathBuf,
    },
    /// The format before Linux 2.6.32's PERFILE2.
    #[error("{}: the format of perf before 2009 (PERFFILE), which pjit cannot read", path.display())]
    OldFormat {
        /// The file.
        path: PathBuf,
    },
    /// A directory, as `perf record --threads` and `--dir` write it.
    #[error("{}: a directory (perf record --threads), which pjit cannot read; record without --threads", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The header contradicts itself or the file.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        problem: String,
    },
}

/// Where the data end, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Where the header says.
    Declared,
    /// The header was never completed: the recorder was killed.
    Unclosed,
    /// This many bytes are missing.
    Missing(u64),
}

/// An opened recording. `'a` is the lifetime of the [`Store`].
pub struct Recording<'a> {
    /// What was counted, in file order; at least one.
    pub events: Vec<Event>,
    /// What the recording says about itself.
    pub features: Features,
    path: PathBuf,
    /// The records of the file.
    region: &'a [u8],
    /// Where they start in the file.
    region_start: u64,
    end: End,
    layouts: Layouts,
}

impl<'a> Recording<'a> {
    /// Opens the recording at `path`.
    ///
    /// # Errors
    /// When there is no recording that pjit can read. A cut or unclosed one is opened.
    pub fn open(path: &Path, store: &'a Store, _diag: &Diagnostics) -> Result<Self, OpenError> {
        let bytes = store.map(path)?;
        open_file(path, bytes)
    }

    /// Pass one: hands every record to `f`, in perf's order.
    pub fn deliver(&self, diag: &Diagnostics, f: &mut dyn FnMut(Delivered<'_>)) -> DeliverStats {
        let mut delivery = Delivery::new(&self.layouts, self.events.len(), f);
        let mut at = 0;
        let mut problem = None;
        while let Some(rest) = self.region.get(at..).filter(|rest| !rest.is_empty()) {
            let Some((type_, size)) = record_header(rest) else {
                if rest.len() >= 8 {
                    problem = Some("a record has the size 0");
                }
                break;
            };
            let Some(record) = rest.get(..size) else {
                break;
            };
            delivery.arrive(type_, RecordPos::new(0, at), Lent::Map(record));
            at += size;
            if type_ == kind::AUXTRACE {
                let payload = u64_at(record, 8)
                    .and_then(|n| usize::try_from(n).ok())
                    .unwrap_or(usize::MAX);
                at = at.saturating_add(payload);
            }
        }
        let mut stats = delivery.finish();
        stats.bytes_read = at.min(self.region.len()) as u64;
        self.report(diag, &stats, problem);
        stats
    }

    /// Pass two: all chunks in order, shareable by threads.
    pub const fn chunks(&self) -> Chunks<'_, 'a> {
        Chunks::new(self)
    }

    /// The bytes of a record directly, when they lie in a mapped file.
    #[must_use]
    pub fn record_bytes(&self, pos: RecordPos) -> Option<&'a [u8]> {
        if pos.chunk() != 0 {
            return None;
        }
        let rest = self.region.get(pos.offset()..)?;
        let (_, size) = record_header(rest)?;
        rest.get(..size)
    }

    pub(super) const fn region(&self) -> &'a [u8] {
        self.region
    }

    /// One line for all damage.
    fn report(&self, diag: &Diagnostics, stats: &DeliverStats, problem: Option<&str>) {
        let path = self.path.display();
        let read = stats.bytes_read;
        let samples = stats.samples;
        if let Some(problem) = problem {
            let offset = self.region_start + read;
            let all = self.region.len();
            diag.warn(format!(
                "{path}: damaged at offset {offset:#x}: {problem}; {samples} samples in {read} of {all} bytes were read, the rest is missing"
            ));
        } else {
            match self.end {
                End::Declared if read < self.region.len() as u64 => diag.warn(format!(
                    "{path}: the last record is cut; {samples} samples in {read} bytes were read"
                )),
                End::Declared => {}
                End::Unclosed => diag.warn(format!(
                    "{path}: the recording was never completed (was perf record killed?); {samples} samples in {read} bytes were read, header sections such as the host and build IDs are missing"
                )),
                End::Missing(missing) => diag.warn(format!(
                    "{path}: cut short: {samples} samples in {read} bytes were read, {missing} bytes of records and the header sections such as the host and build IDs are missing"
                )),
            }
        }
        if stats.malformed > 0 {
            diag.warn(format!(
                "{path}: {} malformed records were skipped",
                stats.malformed
            ));
        }
        if !stats.unknown_types.is_empty() {
            let total: u64 = stats.unknown_types.values().sum();
            let types: Vec<String> = stats
                .unknown_types
                .keys()
                .take(8)
                .map(u32::to_string)
                .collect();
            diag.warn(format!(
                "{path}: {total} records of unknown types ({}) were skipped",
                types.join(", ")
            ));
        }
    }
}

/// `PERFILE2` as a little-endian machine writes it.
const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same from a big-endian machine.
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
const MAGIC_OLD: &[u8; 8] = b"PERFFILE";

/// Refuses what is no recording that pjit can read.
fn check_magic(path: &Path, bytes: &[u8]) -> Result<(), OpenError> {
    let path = || path.to_owned();
    match bytes.first_chunk::<8>() {
        Some(MAGIC) => Ok(()),
        Some(MAGIC_SWAPPED) => Err(OpenError::BigEndian { path: path() }),
        Some(MAGIC_OLD) => Err(OpenError::OldFormat { path: path() }),
        _ => Err(OpenError::NotPerfData { path: path() }),
    }
}

fn open_file<'a>(path: &Path, bytes: &'a [u8]) -> Result<Recording<'a>, OpenError> {
    check_magic(path, bytes)?;
    let damaged = |problem: &str| OpenError::Damaged {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let word = |n: usize| u64_at(bytes, n * 8).ok_or_else(|| damaged("the header is cut"));
    let (attr_size, attrs_at, attrs_len) = (word(2)?, word(3)?, word(4)?);
    let (data_at, data_len) = (word(5)?, word(6)?);
    let attrs = section(bytes, attrs_at, attrs_len)
        .ok_or_else(|| damaged("the attributes lie outside the file"))?;
    let attr_size = usize::try_from(attr_size).unwrap_or(usize::MAX);
    if attr_size < ATTR_SIZE_VER0 + 16 {
        return Err(damaged("the header gives attributes an impossible size"));
    }
    let events: Vec<Event> = attrs
        .chunks_exact(attr_size)
        .zip(0u16..)
        .filter_map(|(entry, n)| event(bytes, entry, attr_size, n))
        .collect();
    if events.is_empty() {
        return Err(damaged("no event is described"));
    }
    let start = usize::try_from(data_at).unwrap_or(usize::MAX);
    let available = bytes
        .get(start..)
        .ok_or_else(|| damaged("the records lie outside the file"))?;
    let (region, end) = match usize::try_from(data_len)
        .ok()
        .and_then(|len| available.get(..len))
    {
        Some([]) => (available, End::Unclosed),
        Some(region) => (region, End::Declared),
        None => (available, End::Missing(data_len - available.len() as u64)),
    };
    Ok(Recording {
        layouts: Layouts::new(&events),
        events,
        features: Features::default(),
        path: path.to_owned(),
        region,
        region_start: data_at,
        end,
    })
}

fn section(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    bytes
        .get(usize::try_from(at).ok()?..)?
        .get(..usize::try_from(len).ok()?)
}

fn event(bytes: &[u8], entry: &[u8], attr_size: usize, n: u16) -> Option<Event> {
    let (attr, ids) = entry.split_at_checked(attr_size - 16)?;
    let attr = Attr::parse(attr)?;
    let ids = section(bytes, u64_at(ids, 0)?, u64_at(ids, 8)?).unwrap_or_default();
    let ids = ids
        .as_chunks::<8>()
        .0
        .iter()
        .map(|id| u64::from_le_bytes(*id))
        .collect();
    Some(Event {
        name: format!("event {n}"),
        attr,
        ids,
        leader: EventId(n),
        group_name: None,
    })
}
