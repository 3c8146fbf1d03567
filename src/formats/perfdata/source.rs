//! Where the records of a recording are: in a mapped file, or in a stream that goes by.
//!
//! In: a map or a reader. Out: *raw chunks* of whole records (compressed records still compressed), which can
//! be asked for again. A file is one chunk; a stream is cut into chunks of some megabytes, which are kept, since a
//! stream cannot be read twice: packed when there are many, in a temporary file when there are very many.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::head::{payload_len, record_header};
use super::inflate::CHUNK;
use super::records::kind;
use crate::input::Spill;

/// Chunks are packed once this many bytes are kept unpacked. Packed, stack dumps have some 7 % of their size;
/// levels that take longer than reading the stream would save a fifth of that.
const KEEP_UNPACKED: usize = 8 << 20;
/// Packed chunks go to a temporary file once those in memory have this many bytes.
const KEEP_IN_MEMORY: usize = 24 << 20;
/// Larger tracepoint formats are not believed (those of a whole kernel have some 5 MB).
const MAX_TRACING_DATA: u64 = 64 << 20;

/// The records of a recording.
pub(super) enum Source<'a> {
    /// All in a map.
    Map(&'a [u8]),
    /// In several, each a chunk of its own (`perf record --threads`).
    Maps(Vec<&'a [u8]>),
    /// Read when they are asked for the first time.
    Stream(Box<Mutex<Stream<'a>>>),
}

impl<'a> Source<'a> {
    pub(super) fn stream(reader: impl Read + Send + 'a) -> Self {
        Self::Stream(Box::new(Mutex::new(Stream::new(Box::new(reader)))))
    }

    /// Raw chunk `number`. The first time, those of a stream are asked for in order, and each is given
    /// back with [`Self::keep`] before the next.
    pub(super) fn chunk(&self, number: u32) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Map(bytes) => (number == 0).then_some(Cow::Borrowed(*bytes)),
            Self::Maps(maps) => {
                let map = maps.get(usize::try_from(number).ok()?)?;
                Some(Cow::Borrowed(*map))
            }
            Self::Stream(stream) => lock(stream).chunk(number).map(Cow::Owned),
        }
    }

    /// Raw chunk `number` if it was read before.
    pub(super) fn kept_chunk(&self, number: u32) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Map(_) | Self::Maps(_) => self.chunk(number),
            Self::Stream(stream) => lock(stream).kept_chunk(number).map(Cow::Owned),
        }
    }

    /// Takes back a chunk that was read the first time, for the second pass.
    pub(super) fn keep(&self, number: u32, chunk: Cow<'a, [u8]>) {
        if let (Self::Stream(stream), Cow::Owned(chunk)) = (self, chunk) {
            lock(stream).keep(number, chunk);
        }
    }

    /// Raw chunk `number` for the last time: a stream keeps it no longer.
    pub(super) fn last_use(&self, number: u32) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Map(_) | Self::Maps(_) => self.chunk(number),
            Self::Stream(stream) => lock(stream).take(number).map(Cow::Owned),
        }
    }

    /// Nobody will ask a second time for what is still to be read of a stream.
    pub(super) fn keep_nothing(&self) {
        if let Self::Stream(stream) = self {
            lock(stream).keeps = false;
        }
    }

    /// Whether the records come in several pieces, each in the order of its own times.
    pub(super) fn is_in_pieces(&self) -> bool {
        matches!(self, Self::Maps(_))
    }

    /// What is wrong with the stream, as far as it was read.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Map(_) | Self::Maps(_) => None,
            Self::Stream(stream) => lock(stream).problem.clone(),
        }
    }

    /// Bytes of a processor's trace that the stream carried, which are not kept.
    pub(super) fn traced_bytes(&self) -> u64 {
        match self {
            Self::Map(_) | Self::Maps(_) => 0,
            Self::Stream(stream) => lock(stream).beside.traced_bytes,
        }
    }

    /// The tracepoint formats that the stream carried.
    pub(super) fn take_tracing_data(&self) -> Option<Vec<u8>> {
        match self {
            Self::Map(_) | Self::Maps(_) => None,
            Self::Stream(stream) => lock(stream).beside.tracing_data.take(),
        }
    }
}

fn lock<'m, 'a>(stream: &'m Mutex<Stream<'a>>) -> MutexGuard<'m, Stream<'a>> {
    // A thread that panicked left whole chunks behind.
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A chunk of a stream.
enum Kept {
    Plain(Vec<u8>),
    Packed {
        bytes: Box<[u8]>,
        len: usize,
    },
    /// Packed, in the temporary file.
    Spilled {
        place: Range<u64>,
        len: usize,
    },
    /// Being packed; one at a time, while the next chunk is read and walked.
    Packing(JoinHandle<Kept>),
}

impl Kept {
    fn pack(chunk: Vec<u8>) -> Self {
        let bytes = lz4_flex::block::compress(&chunk).into_boxed_slice();
        let len = chunk.len();
        Self::Packed { bytes, len }
    }

    fn unpack(&self, spill: &mut Spill) -> Option<Vec<u8>> {
        match self {
            Self::Plain(bytes) => Some(bytes.clone()),
            Self::Packed { bytes, len } => lz4_flex::block::decompress(bytes, *len).ok(),
            Self::Spilled { place, len } => {
                lz4_flex::block::decompress(&spill.get(place).ok()?, *len).ok()
            }
            Self::Packing(_) => None,
        }
    }

    /// Waits for the packing to end.
    fn settle(&mut self) {
        if let Self::Packing(_) = self {
            let packing = std::mem::replace(self, Self::Plain(Vec::new()));
            if let Self::Packing(thread) = packing {
                // Packing does not panic; if it did, the chunk would be empty.
                *self = thread.join().unwrap_or(Self::Plain(Vec::new()));
            }
        }
    }
}

/// A stream of records and what was read of it.
pub(super) struct Stream<'a> {
    /// `None` at the end.
    reader: Option<BufReader<Box<dyn Read + Send + 'a>>>,
    kept: Vec<Kept>,
    /// Chunks are kept for a second pass.
    keeps: bool,
    unpacked: usize,
    /// Bytes of the packed chunks in memory.
    packed: usize,
    spill: Spill,
    beside: Beside,
    problem: Option<String>,
}

/// What a stream carries outside of its records.
#[derive(Default)]
struct Beside {
    /// The formats of tracepoints.
    tracing_data: Option<Vec<u8>>,
    /// Bytes of a processor's trace.
    traced_bytes: u64,
}

/// How the attempt to read a record ended.
enum Step {
    Record,
    End,
    Problem(String),
}

impl<'a> Stream<'a> {
    fn new(reader: Box<dyn Read + Send + 'a>) -> Self {
        Self {
            reader: Some(BufReader::with_capacity(1 << 18, reader)),
            kept: Vec::new(),
            keeps: true,
            unpacked: 0,
            packed: 0,
            spill: Spill::default(),
            beside: Beside::default(),
            problem: None,
        }
    }

    fn chunk(&mut self, number: u32) -> Option<Vec<u8>> {
        match self.kept.get_mut(usize::try_from(number).ok()?) {
            Some(kept) => {
                kept.settle();
                Some(kept.unpack(&mut self.spill).unwrap_or_default())
            }
            None => self.read_chunk(),
        }
    }

    fn kept_chunk(&mut self, number: u32) -> Option<Vec<u8>> {
        let kept = self.kept.get_mut(usize::try_from(number).ok()?)?;
        kept.settle();
        Some(kept.unpack(&mut self.spill).unwrap_or_default())
    }

    fn take(&mut self, number: u32) -> Option<Vec<u8>> {
        let kept = self.kept.get_mut(usize::try_from(number).ok()?)?;
        kept.settle();
        // What the disk does not give back counts without a stack.
        Some(match std::mem::replace(kept, Kept::Plain(Vec::new())) {
            Kept::Plain(bytes) => bytes,
            packed => packed.unpack(&mut self.spill).unwrap_or_default(),
        })
    }

    /// The next whole records, some megabytes of them.
    fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let reader = self.reader.as_mut()?;
        let mut chunk = Vec::with_capacity(CHUNK + (1 << 16));
        while chunk.len() < CHUNK {
            match read_record(reader, &mut chunk, &mut self.beside) {
                Step::Record => {}
                Step::End => {
                    self.reader = None;
                    break;
                }
                Step::Problem(problem) => {
                    self.problem = Some(problem);
                    self.reader = None;
                    break;
                }
            }
        }
        (!chunk.is_empty()).then_some(chunk)
    }

    fn keep(&mut self, number: u32, chunk: Vec<u8>) {
        if !self.keeps || usize::try_from(number) != Ok(self.kept.len()) {
            return;
        }
        self.put_last_away();
        if self.unpacked + chunk.len() <= KEEP_UNPACKED {
            self.unpacked += chunk.len();
            self.kept.push(Kept::Plain(chunk));
        } else {
            let packing = std::thread::spawn(|| Kept::pack(chunk));
            self.kept.push(Kept::Packing(packing));
        }
    }

    /// Once the last chunk is packed: leaves it in memory while there is room, or else writes it to the temporary
    /// file. Where that cannot be written, everything stays in memory.
    fn put_last_away(&mut self) {
        let Some(last) = self.kept.last_mut() else {
            return;
        };
        let Kept::Packing(_) = last else { return };
        last.settle();
        let Kept::Packed { bytes, len } = last else {
            return;
        };
        if self.packed + bytes.len() > KEEP_IN_MEMORY
            && let Some(place) = self.spill.put(bytes)
        {
            *last = Kept::Spilled { place, len: *len };
        } else {
            self.packed += bytes.len();
        }
    }
}

/// Appends the next record to `chunk`. What follows a record outside of the record framing
/// (AUX data, tracepoint formats) is taken out.
fn read_record(reader: &mut impl BufRead, chunk: &mut Vec<u8>, beside: &mut Beside) -> Step {
    let start = chunk.len();
    let got = append(reader, 8, chunk);
    let header = match (got, chunk.get(start..).and_then(record_header)) {
        (Ok(0), _) => return Step::End,
        (Ok(8), Some(header)) => header,
        (Ok(8), None) => return give_up(chunk, start, "a record has the size 0"),
        (Ok(_), _) => return give_up(chunk, start, "the stream ends inside a record"),
        (Err(e), _) => return give_up(chunk, start, &e.to_string()),
    };
    let (type_, size) = header;
    match append(reader, size as u64 - 8, chunk) {
        Ok(more) if more + 8 == size => {}
        Ok(_) => return keep_cut(chunk, start, type_),
        Err(e) => return give_up(chunk, start, &e.to_string()),
    }
    match type_ {
        kind::AUXTRACE | kind::HEADER_TRACING_DATA => {
            take_payload(reader, chunk, start, type_, beside)
        }
        _ => Step::Record,
    }
}

fn append(reader: &mut impl BufRead, len: u64, chunk: &mut Vec<u8>) -> std::io::Result<usize> {
    reader.take(len).read_to_end(chunk)
}

fn give_up(chunk: &mut Vec<u8>, start: usize, problem: &str) -> Step {
    chunk.truncate(start);
    Step::Problem(problem.to_owned())
}

/// The front of a cut compressed record still holds whole records: keeps it as a shorter one.
fn keep_cut(chunk: &mut Vec<u8>, start: usize, type_: u32) -> Step {
    let len = chunk.len() - start;
    let front = chunk
        .get_mut(start + 6..start + 8)
        .and_then(|f| f.first_chunk_mut::<2>());
    match (front, u16::try_from(len)) {
        (Some(size), Ok(len)) if matches!(type_, kind::COMPRESSED | kind::COMPRESSED2) => {
            *size = len.to_le_bytes();
        }
        _ => chunk.truncate(start),
    }
    Step::Problem("the stream ends inside a record".to_owned())
}

fn take_payload(
    reader: &mut impl BufRead,
    chunk: &mut Vec<u8>,
    start: usize,
    type_: u32,
    beside: &mut Beside,
) -> Step {
    let len = payload_len(type_, chunk.get(start..).unwrap_or_default());
    chunk.truncate(start);
    let result = if type_ == kind::HEADER_TRACING_DATA && len <= MAX_TRACING_DATA {
        append(reader, len, beside.tracing_data.insert(Vec::new())).map(|n| n as u64)
    } else {
        let copied = std::io::copy(&mut reader.take(len), &mut std::io::sink());
        if type_ == kind::AUXTRACE {
            let copied = copied.as_ref().copied().unwrap_or(0);
            beside.traced_bytes = beside.traced_bytes.saturating_add(copied);
        }
        copied
    };
    match result {
        Ok(got) if got == len => Step::Record,
        Ok(_) => give_up(chunk, start, "the stream ends inside AUX data"),
        Err(e) => give_up(chunk, start, &e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of which each has its number in its bytes, hard to pack.
    fn records(count: u32) -> Vec<u8> {
        let mut noise = 1_u64;
        // Longer than the packer looks back for what it saw before.
        let words = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (noise ^ noise >> 29).to_le_bytes()
        });
        let noise: Vec<u8> = words.take(20_000).flatten().collect();
        let mut all = Vec::new();
        for number in 0..count {
            all.extend([68, 0, 0, 0, 0, 0]);
            all.extend(40_008_u16.to_le_bytes());
            all.extend(u64::from(number).to_le_bytes());
            let from = (number % 4) as usize * 39_992;
            all.extend_from_slice(&noise[from..from + 39_992]);
        }
        all
    }

    #[test]
    fn what_is_too_much_for_memory_comes_back_from_the_disk() {
        let bytes = records(1500);
        let source = Source::stream(&bytes[..]);
        let mut number = 0;
        while let Some(chunk) = source.chunk(number) {
            source.keep(number, chunk);
            number += 1;
        }
        let Source::Stream(stream) = &source else {
            unreachable!("made as a stream");
        };
        let spilled = |kept: &&Kept| matches!(kept, Kept::Spilled { .. });
        assert!(lock(stream).kept.iter().filter(spilled).count() > 3);
        assert!(lock(stream).packed <= KEEP_IN_MEMORY);
        for _ in 0..2 {
            let again: Vec<u8> = (0..number)
                .flat_map(|n| source.chunk(n).expect("was kept").into_owned())
                .collect();
            assert!(again == bytes);
        }
        let last: Vec<u8> = (0..number)
            .flat_map(|n| source.last_use(n).expect("was kept").into_owned())
            .collect();
        assert!(last == bytes);
        assert!(source.last_use(number).is_none());
    }
}
