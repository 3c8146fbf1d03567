//! Opens a recording: header, attributes, names, features.
//!
//! In: a path or a stream. Out: a [`Recording`]. Every size in the header is checked against the file; a
//! recording that is cut or was never completed is opened with what is there. Layout: `struct perf_file_header`
//! and `struct perf_pipe_file_header` in `tools/perf/util/header.h`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};

use crate::diagnostics::Diagnostics;
use crate::ids::{IndexSlice, IndexVec};
use crate::input::{self, Door, InputError, Opened, Store};

use super::attr::{ATTR_SIZE_VER0, Attr};
use super::bytes::{u32_at, u64_at, until_nul};
use super::chunks::Chunks;
use super::features::{FileFrame, id};
use super::foreign::Foreign;
use super::head::{Layouts, payload_len, record_header};
use super::inflate::{Inflater, is_compressed};
use super::records::kind;
use super::source::Source;
use super::{Event, EventId, Features, RecordPos, Tracepoints, event_name, records};

/// Why a recording could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The stream could not be read.
    #[error("{}: {source}", path.display())]
    Stream {
        /// Name of the stream.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A stream without a byte.
    #[error("{}: empty stream", path.display())]
    Empty {
        /// The stream.
        path: PathBuf,
    },
    /// Samples of some CPUs were asked for, and an event does not tell.
    #[error("{}: -C cannot choose, because {event} was recorded without CPU numbers", path.display())]
    NoCpus {
        /// The recording.
        path: PathBuf,
        /// Name of the event.
        event: String,
    },
    /// An option names an event that was not recorded.
    #[error("{}: {option}: no event '{event}'", path.display())]
    NoEvent {
        /// The recording.
        path: PathBuf,
        /// The option.
        option: &'static str,
        /// What it names.
        event: String,
    },
    /// The magic number is not that of a recording.
    #[error("{}: {}", path.display(), what.problem())]
    NotPerfData {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: Foreign,
    },
    /// Nothing but zeros where the header belongs.
    #[error("{}: the header is missing: perf is still writing it, or was killed", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// Recorded on a big-endian machine.
    #[error("{}: pjit cannot read recordings of big-endian machines", path.display())]
    BigEndian {
        /// The file.
        path: PathBuf,
    },
    /// The format before PERFILE2.
    #[error("{}: pjit cannot read the format of perf before 2009", path.display())]
    OldFormat {
        /// The file.
        path: PathBuf,
    },
    /// A directory without a recording.
    #[error(
        "{}: no recording in this folder",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// One file of a folder that `perf record --threads` wrote; the samples are in the others.
    #[error("{}: only a part of a recording of perf record --threads", path.display())]
    PartOfDirectory {
        /// The file.
        path: PathBuf,
    },
    /// No file of that name.
    #[error("{}: no such file or folder", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file that was named for a purpose and does not serve it.
    #[error("{}: {problem}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The header contradicts itself or the file.
    #[error("{}: damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        problem: String,
    },
}

impl OpenError {
    /// What to do instead, if there is something.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoCpus { .. } => "perf record --sample-cpu records them",
            Self::NoEvent { .. } => "pjit report --header-only lists the events",
            Self::NotPerfData { what, .. } => return what.hint(),
            Self::Unfinished { .. } => "wait for perf, or stop it with SIGINT",
            Self::PartOfDirectory { .. } => "name the folder that it is in",
            Self::Missing { .. } => {
                "pjit record -- ./app makes a recording; -i FILE names another one"
            }
            _ => return None,
        })
    }
}

/// Where the records end, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Where the header says, or wherever the stream ends.
    Declared,
    /// The header was never completed: the recorder was killed.
    Unclosed,
    /// This many bytes are missing.
    Missing(u64),
    /// The records are all there, but so many feature sections are not.
    SectionsMissing(u32),
}

/// An opened recording. `'a` is the lifetime of the [`Store`].
pub struct Recording<'a> {
    /// What was counted, in file order; at least one.
    pub events: IndexVec<EventId, Event>,
    /// What the recording says about itself.
    pub features: Features,
    /// Tracepoints that it describes; empty when it has no event of that kind.
    pub tracepoints: Tracepoints,
    path: PathBuf,
    source: Source<'a>,
    /// The first number that no file of the recording's folder has, though a later one is there.
    absent: Option<u32>,
    /// Where the records start in the file.
    region_start: u64,
    end: End,
    layouts: Layouts,
    /// Pass one met compressed records.
    compressed: AtomicBool,
}

impl<'a> Recording<'a> {
    /// Opens the recording at `path`; `-` is the standard input, and a FIFO is read as a stream.
    ///
    /// # Errors
    /// When there is no recording that pjit can read. A cut or uncompleted one is opened.
    pub fn open(path: &Path, store: &'a Store, _diag: &Diagnostics) -> Result<Self, OpenError> {
        if path.is_dir() {
            return Self::open_folder(path, store);
        }
        let opened =
            input::open_recording(&Door::recording(path), store).map_err(|error| match error {
                missing if missing.is_missing() => OpenError::Missing {
                    path: path.to_owned(),
                },
                error => error.into(),
            })?;
        match opened {
            Opened::Mapped { bytes, modified } => {
                let mut recording = open_mapped(path, bytes)?;
                if recording.features.has(id::DIR_FORMAT) {
                    return Err(OpenError::PartOfDirectory {
                        path: path.to_owned(),
                    });
                }
                recording.features.captured = modified;
                Ok(recording)
            }
            Opened::Stream(mut reader) => {
                let header = stream_header(path, &mut reader)?;
                if header_size(path, &header)? == STREAM_HEADER {
                    return Self::from_source(path, Source::stream(reader));
                }
                // A file whose header points to places that a stream cannot go back to.
                open_mapped(path, store.spool(path, header.as_slice().chain(reader))?)
            }
        }
    }

    /// What `perf record --threads` writes: `data` is a recording whose samples are in `data.0`, `data.1`, …, records
    /// without a header (`tools/perf/util/data.c`).
    fn open_folder(path: &Path, store: &'a Store) -> Result<Self, OpenError> {
        let main = path.join("data");
        let Opened::Mapped { bytes, modified } =
            input::open_recording(&Door::beneath(path, "data"), store).map_err(
                |error| match error {
                    missing if missing.is_missing() => OpenError::Directory {
                        path: path.to_owned(),
                    },
                    error => error.into(),
                },
            )?
        else {
            return Err(OpenError::Directory {
                path: path.to_owned(),
            });
        };
        let mut recording = open_mapped(&main, bytes)?;
        recording.features.captured = modified;
        let mut files: Vec<_> = input::files_in(path)
            .into_iter()
            .filter_map(|file| Some((input::data_number(&file)?, file)))
            .collect();
        files.sort_unstable();
        // One for each buffer, numbered from 0 (`perf_data__create_dir` in `tools/perf/util/data.c`).
        let mut numbers = (0..).zip(&files);
        let absent = numbers.find(|(number, (own, _))| number != own);
        recording.absent = absent.map(|(number, _)| number);
        let mut regions = vec![recording.region()];
        for (_, file) in files {
            let name = file.file_name().unwrap_or_default();
            regions.push(store.map(&Door::beneath(path, name))?);
        }
        recording.source = Source::Maps(regions);
        Ok(recording)
    }

    /// Opens the stream that `perf record -o -` writes. `name` is for messages.
    ///
    /// # Errors
    /// When the stream does not begin as one that pjit can read.
    pub fn from_stream(name: &Path, mut reader: impl Read + Send + 'a) -> Result<Self, OpenError> {
        let header = stream_header(name, &mut reader)?;
        if header_size(name, &header)? != STREAM_HEADER {
            return Err(OpenError::NotPerfData {
                path: name.to_owned(),
                what: Foreign::Other,
            });
        }
        Self::from_source(name, Source::stream(reader))
    }

    /// A stream's records say all that a file's header says.
    fn from_source(path: &Path, source: Source<'a>) -> Result<Self, OpenError> {
        let front = source.chunk(0).unwrap_or_default();
        let mut described = described_by_records(&front);
        source.keep(0, front);
        if described.events.is_empty() {
            let problem = "the stream describes no event".to_owned();
            return Err(OpenError::Damaged {
                path: path.to_owned(),
                problem,
            });
        }
        described.features.frame.stream = true;
        let tracing_data = described
            .tracing_data
            .or_else(|| source.take_tracing_data());
        let tracepoints = tracepoints(&described.events, tracing_data.as_deref());
        name_events(
            &mut described.events,
            &described.names,
            &described.features,
            &tracepoints,
        );
        Ok(Self {
            layouts: Layouts::new(&described.events),
            events: described.events,
            features: described.features,
            tracepoints,
            path: path.to_owned(),
            absent: None,
            source,
            region_start: STREAM_HEADER,
            end: End::Declared,
            compressed: AtomicBool::new(false),
        })
    }

    /// There will be no pass two: what is read of a stream need not be kept.
    pub fn read_once(&self) {
        self.source.keep_nothing();
    }

    /// Pass two: all chunks in order, shareable by threads. For a stream, [`Self::deliver`] must have
    /// gone through it; its chunks are there once.
    pub fn chunks(&self) -> Chunks<'_, 'a> {
        Chunks::new(&self.source, self.inflater_for_chunks())
    }

    /// SHA-256 of the records as they are in the file, packed or not; what the header says takes no part. Before pass two.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let chunks = (0..).map_while(|number| self.source.kept_chunk(number));
        chunks.for_each(|chunk| hash.update(&chunk));
        hash.finalize().into()
    }

    /// The same before pass two, which finds all of them again.
    pub fn chunks_to_keep(&self) -> Chunks<'_, 'a> {
        Chunks::new(&self.source, self.inflater_for_chunks()).kept()
    }

    /// The record at a place of its chunk.
    #[must_use]
    pub fn record_in(chunk: &[u8], pos: RecordPos) -> Option<&[u8]> {
        let rest = chunk.get(pos.offset()..)?;
        let (_, size) = record_header(rest)?;
        rest.get(..size)
    }

    /// Whether records can be read at any place: those of a mapped file that is not compressed. Positions that no record
    /// has tell nothing.
    #[must_use]
    pub fn is_read_directly(&self, positions: impl IntoIterator<Item = RecordPos>) -> bool {
        let mut positions = positions.into_iter();
        let first = positions.find(|pos| *pos != RecordPos::NONE);
        matches!(self.source, Source::Map(_))
            && first.is_none_or(|pos| self.record_bytes(pos).is_some())
    }

    /// The bytes of a record directly, when they lie in a mapped file.
    #[must_use]
    pub fn record_bytes(&self, pos: RecordPos) -> Option<&'a [u8]> {
        let Source::Map(region) = &self.source else {
            return None;
        };
        if pos.chunk() != 0 {
            return None;
        }
        let rest = region.get(pos.offset()..)?;
        let (_, size) = record_header(rest)?;
        rest.get(..size)
    }

    /// All records, when they lie in a mapped file; [`RecordPos::offset`] counts from its start.
    #[must_use]
    pub fn region(&self) -> &'a [u8] {
        match &self.source {
            Source::Map(region) => region,
            Source::Maps(_) | Source::Stream(_) => &[],
        }
    }

    /// The file or stream, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn source(&self) -> &Source<'a> {
        &self.source
    }

    pub(super) const fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    pub(super) const fn end(&self) -> End {
        self.end
    }

    pub(super) const fn absent(&self) -> Option<u32> {
        self.absent
    }

    pub(super) const fn region_start(&self) -> u64 {
        self.region_start
    }

    /// The decoder for the second pass, if there is anything to decode.
    fn inflater_for_chunks(&self) -> Option<Inflater> {
        self.is_compressed().then(|| self.new_inflater())
    }

    /// Whether records are compressed, as far as is known by now.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.features.compression.is_some() || self.compressed.load(Ordering::Relaxed)
    }

    pub(super) fn note_compressed(&self) {
        self.compressed.store(true, Ordering::Relaxed);
    }

    pub(super) fn new_inflater(&self) -> Inflater {
        Inflater::new(self.features.compression.map(|c| c.mmap_len))
    }
}

/// `PERFILE2` as a little-endian machine writes it.
const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same from a big-endian machine.
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
const MAGIC_OLD: &[u8; 8] = b"PERFFILE";
/// Size of a stream's header.
const STREAM_HEADER: u64 = 16;

/// The first bytes of a stream.
fn stream_header(name: &Path, reader: &mut impl Read) -> Result<Vec<u8>, OpenError> {
    let mut header = Vec::new();
    let read = reader.by_ref().take(STREAM_HEADER).read_to_end(&mut header);
    read.map_err(|source| OpenError::Stream {
        path: name.to_owned(),
        source,
    })?;
    if header.is_empty() {
        return Err(OpenError::Empty {
            path: name.to_owned(),
        });
    }
    Ok(header)
}

/// Whether there is nothing where the header belongs, and a record, if anything, behind it: perf writes the header last.
fn is_unfinished(bytes: &[u8]) -> bool {
    /// Size of the header alone, and of a record's.
    const LEAST: (usize, u16) = (104, 8);
    let Some(first) = bytes.iter().position(|byte| *byte != 0) else {
        return true;
    };
    // Its type is below 256, and its size comes last.
    let size = bytes.get(first + 6..first + 8);
    let size = size.and_then(<[u8]>::first_chunk).copied();
    let size = size.map_or(0, u16::from_le_bytes);
    first >= LEAST.0 && first % 8 == 0 && size >= LEAST.1 && size % 8 == 0
}

/// Refuses what is no recording that pjit can read; tells the size that the header gives itself.
fn header_size(path: &Path, bytes: &[u8]) -> Result<u64, OpenError> {
    let path = || path.to_owned();
    match bytes.first_chunk::<8>() {
        Some(MAGIC) => u64_at(bytes, 8).ok_or_else(|| OpenError::Damaged {
            path: path(),
            problem: "the header is cut".to_owned(),
        }),
        Some(MAGIC_SWAPPED) => Err(OpenError::BigEndian { path: path() }),
        Some(MAGIC_OLD) => Err(OpenError::OldFormat { path: path() }),
        Some([0, 0, 0, 0, 0, 0, 0, 0]) if is_unfinished(bytes) => {
            Err(OpenError::Unfinished { path: path() })
        }
        _ => Err(OpenError::NotPerfData {
            path: path(),
            what: Foreign::of(bytes),
        }),
    }
}

/// A file, or a stream that was saved to one.
pub(super) fn open_mapped<'a>(path: &Path, bytes: &'a [u8]) -> Result<Recording<'a>, OpenError> {
    if header_size(path, bytes)? == STREAM_HEADER {
        return Recording::from_source(path, Source::Map(bytes.get(16..).unwrap_or_default()));
    }
    let damaged = |problem: &str| OpenError::Damaged {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let word = |n: usize| u64_at(bytes, n * 8).ok_or_else(|| damaged("the header is cut"));
    let (attr_size, attrs_at, attrs_len) = (word(2)?, word(3)?, word(4)?);
    let (data_offset, data_size) = (word(5)?, word(6)?);
    let events = events(bytes, attr_size, attrs_at, attrs_len).map_err(damaged)?;
    let mut events = IndexVec::from(events);
    let start = usize::try_from(data_offset).unwrap_or(usize::MAX);
    let available = bytes
        .get(start..)
        .ok_or_else(|| damaged("the records lie outside the file"))?;
    let (region, end) = match usize::try_from(data_size)
        .ok()
        .and_then(|len| available.get(..len))
    {
        Some([]) => (available, End::Unclosed),
        Some(region) => (region, End::Declared),
        None => (
            available,
            End::Missing(data_size.saturating_sub(available.len() as u64)),
        ),
    };
    let feat_offset = data_offset.saturating_add(data_size);
    let mut features = Features::default();
    let mut sections = Sections::default();
    let mut end = end;
    if end == End::Declared {
        sections = read_features(&mut features, bytes, feat_offset);
        if sections.missing > 0 {
            end = End::SectionsMissing(sections.missing);
        }
    }
    features.frame = FileFrame {
        stream: false,
        data_offset,
        data_size,
        feat_offset,
    };
    let tracepoints = tracepoints(&events, sections.tracing_data);
    name_events(&mut events, &[], &features, &tracepoints);
    Ok(Recording {
        layouts: Layouts::new(&events),
        events,
        features,
        tracepoints,
        path: path.to_owned(),
        source: Source::Map(region),
        absent: None,
        region_start: data_offset,
        end,
        compressed: AtomicBool::new(false),
    })
}

fn section(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    bytes
        .get(usize::try_from(at).ok()?..)?
        .get(..usize::try_from(len).ok()?)
}

/// The events of a file's attribute section: attributes, each followed by where its ids are.
fn events(bytes: &[u8], attr_size: u64, at: u64, len: u64) -> Result<Vec<Event>, &'static str> {
    let section = section(bytes, at, len).ok_or("the attributes lie outside the file")?;
    let attr_size = usize::try_from(attr_size).unwrap_or(usize::MAX);
    if attr_size < ATTR_SIZE_VER0 + 16 {
        return Err("the header gives attributes an impossible size");
    }
    let entries = section.chunks_exact(attr_size).zip(0u16..);
    let events: Option<Vec<Event>> = entries.map(|(entry, n)| event(bytes, entry, n)).collect();
    match events {
        Some(events) if events.is_empty() => Err("no event is described"),
        Some(events) => Ok(events),
        None => Err("an attribute is damaged"),
    }
}

fn event(bytes: &[u8], entry: &[u8], n: u16) -> Option<Event> {
    let (attr, ids) = entry.split_at_checked(entry.len().checked_sub(16)?)?;
    let attr = Attr::parse(attr)?;
    let ids = section(bytes, u64_at(ids, 0)?, u64_at(ids, 8)?).unwrap_or_default();
    Some(new_event(attr, ids, n))
}

fn new_event(attr: Attr, ids: &[u8], n: u16) -> Event {
    let ids = ids
        .as_chunks::<8>()
        .0
        .iter()
        .map(|id| u64::from_le_bytes(*id))
        .collect();
    Event {
        name: String::new(),
        attr,
        ids,
        leader: EventId(n),
        group_name: None,
    }
}

/// The feature sections of a file.
#[derive(Default)]
struct Sections<'b> {
    /// Tracepoint formats.
    tracing_data: Option<&'b [u8]>,
    /// How many lie outside the file.
    missing: u32,
}

/// Reads all feature sections of a file. The table has an entry for each feature bit, in order.
fn read_features<'b>(features: &mut Features, bytes: &'b [u8], table: u64) -> Sections<'b> {
    let mut sections = Sections::default();
    let mut entry = usize::try_from(table).unwrap_or(usize::MAX);
    for feature in 0..256u32 {
        let word = u64_at(bytes, 72 + (feature / 64) as usize * 8).unwrap_or(0);
        if word & (1 << (feature % 64)) == 0 {
            continue;
        }
        features.mark(feature);
        let place = u64_at(bytes, entry).zip(u64_at(bytes, entry.saturating_add(8)));
        entry = entry.saturating_add(16);
        match place.and_then(|(at, len)| section(bytes, at, len)) {
            Some(section) if feature == id::TRACING_DATA => sections.tracing_data = Some(section),
            Some(section) => features.read(feature, section),
            None => sections.missing += 1,
        }
    }
    sections
}

/// What the first records of a stream say.
#[derive(Default)]
struct Described {
    events: IndexVec<EventId, Event>,
    features: Features,
    /// (id, name) from EVENT_UPDATE.
    names: Vec<(u64, String)>,
    tracing_data: Option<Vec<u8>>,
}

/// Reads the records that stand before the first sample.
fn described_by_records(front: &[u8]) -> Described {
    let mut described = Described::default();
    let mut at = 0;
    while let Some(rest) = front.get(at..) {
        let Some((type_, size)) = record_header(rest) else {
            break;
        };
        let Some(record) = rest.get(..size) else {
            break;
        };
        if type_ == kind::SAMPLE || is_compressed(type_) {
            break;
        }
        described.record(front, at, type_, record);
        let payload = usize::try_from(payload_len(type_, record)).unwrap_or(usize::MAX);
        at = at.saturating_add(size).saturating_add(payload);
    }
    described
}

impl Described {
    fn record(&mut self, front: &[u8], at: usize, type_: u32, record: &[u8]) {
        match type_ {
            kind::HEADER_ATTR => self.attr(record),
            kind::HEADER_FEATURE => {
                if let (Some(feature), Some(section)) = (u64_at(record, 8), record.get(16..)) {
                    let feature = u32::try_from(feature).unwrap_or(u32::MAX);
                    self.features.mark(feature);
                    self.features.read(feature, section);
                }
            }
            kind::HEADER_BUILD_ID => {
                if let Some(records::Record::BuildId(entry)) = records::parse(record) {
                    self.features.build_ids.push(entry);
                }
            }
            kind::EVENT_UPDATE => self.names.extend(updated_name(record)),
            kind::HEADER_TRACING_DATA => {
                let len = payload_len(type_, record);
                let start = at.saturating_add(record.len());
                self.tracing_data = section(front, start as u64, len).map(<[u8]>::to_vec);
            }
            _ => {}
        }
    }

    /// HEADER_ATTR: an attribute of the size it gives itself, then its ids.
    fn attr(&mut self, record: &[u8]) {
        let Some(body) = record.get(8..) else { return };
        let own = u32_at(body, 4)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(0);
        let own = if own == 0 { ATTR_SIZE_VER0 } else { own };
        let (Some(attr), Ok(n)) = (
            body.get(..own).and_then(Attr::parse),
            u16::try_from(self.events.len()),
        ) else {
            return;
        };
        self.events
            .push(new_event(attr, body.get(own..).unwrap_or_default(), n));
    }
}

/// EVENT_UPDATE with a name: (id of the event, name).
fn updated_name(record: &[u8]) -> Option<(u64, String)> {
    const NAME: u64 = 2;
    if u64_at(record, 8)? != NAME {
        return None;
    }
    let name = record.get(24..)?;
    let name = String::from_utf8_lossy(until_nul(name)?).into_owned();
    Some((u64_at(record, 16)?, name))
}

/// The formats of tracepoints, read when there is use for them.
fn tracepoints(events: &IndexSlice<EventId, [Event]>, section: Option<&[u8]>) -> Tracepoints {
    let section = section.filter(|_| events.iter().any(|event| event.attr.is_tracepoint()));
    section.map(Tracepoints::parse).unwrap_or_default()
}

/// Gives every event its name, from the best source there is, and its group.
fn name_events(
    events: &mut IndexSlice<EventId, [Event]>,
    updates: &[(u64, String)],
    features: &Features,
    tracepoints: &Tracepoints,
) {
    for (n, event) in events.iter_mut().enumerate() {
        let described = features.event_desc.get(n).map(|d| d.name.clone());
        let updated = || {
            updates
                .iter()
                .find(|(id, _)| event.ids.contains(id))
                .map(|(_, name)| name.clone())
        };
        let name = described.filter(|name| !name.is_empty()).or_else(updated);
        event.name = name.unwrap_or_else(|| event_name::of(&event.attr, tracepoints));
    }
    for group in &features.groups {
        let Some(leader) = group.leader else {
            continue;
        };
        let places = group.places(events.len());
        for event in &mut events.raw[places] {
            event.leader = leader;
        }
        if let Some(event) = events.get_mut(leader) {
            event.group_name = Some(group.name.clone()).filter(|name| name != "{anon_group}");
        }
    }
}
