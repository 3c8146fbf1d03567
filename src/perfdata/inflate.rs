//! Compressed records (`perf record -z`) back to plain ones.
//!
//! In: the payloads of COMPRESSED and COMPRESSED2 records, in order. Out: a buffer of plain records that is
//! filled, walked and reused, so that memory stays bounded whatever the payload expands to. All payloads
//! of a recording are one zstd stream, and a record may begin in one and end in the next
//! (`util/session.c`, `perf_session__process_compressed_event`).

use zstd::stream::raw::{Decoder, Operation};

use super::bytes::u64_at;
use super::head::{Walk, walk};
use super::records::kind;

/// Size of a decoded chunk: large enough for a thread to work on, small enough to stay in a cache.
pub(super) const CHUNK: usize = 4 << 20;

/// What one compressed record may expand to if the recording does not say how large the ring
/// buffer was (`-m`), which is the natural bound.
const DEFAULT_LIMIT: u64 = 128 << 20;

/// Called with (offset in the chunk, type, bytes) of a record.
pub(super) type OnRecord<'f> = dyn FnMut(usize, u32, &[u8]) + 'f;

/// How far a payload was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fed {
    /// The chunk is full; the payload may hold more.
    Full,
    /// All of it.
    Done,
}

/// Decodes payloads into chunks of whole records.
pub(super) struct Inflater {
    decoder: Decoder<'static>,
    buffer: Vec<u8>,
    filled: usize,
    /// Up to here records were walked.
    walked: usize,
    /// How many chunks came before.
    number: u32,
    /// Bytes that the current payload expanded to.
    expanded: u64,
    limit: u64,
}

impl Inflater {
    /// `mmap_len`: size of the ring buffer as the COMPRESSED feature tells it.
    pub(super) fn new(mmap_len: Option<u32>) -> std::io::Result<Self> {
        let limit = mmap_len.map_or(DEFAULT_LIMIT, |len| u64::from(len).clamp(1 << 20, 1 << 30));
        Ok(Self {
            decoder: Decoder::new()?,
            buffer: vec![0; CHUNK],
            filled: 0,
            walked: 0,
            number: 0,
            expanded: 0,
            limit,
        })
    }

    /// Number of the chunk that is being filled.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// A payload begins.
    pub(super) const fn begin(&mut self) {
        self.expanded = 0;
    }

    /// Decodes from the front of `input` until it is used up or the chunk is full, and hands every
    /// record that is now whole to `record`. When full, call [`Self::turn`] and come again.
    ///
    /// # Errors
    /// What is wrong with the payload; nothing more can be decoded then.
    pub(super) fn feed(
        &mut self,
        input: &mut &[u8],
        record: &mut OnRecord<'_>,
    ) -> Result<Fed, &'static str> {
        loop {
            let space = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let step = self.decoder.run_on_buffers(input, space);
            let step = step.map_err(|_| "compressed data are damaged")?;
            *input = input.get(step.bytes_read..).unwrap_or_default();
            self.filled += step.bytes_written;
            self.expanded += step.bytes_written as u64;
            self.walk(record)?;
            if self.expanded > self.limit {
                return Err("compressed data expand to more than the recorder's buffer");
            }
            if self.filled == self.buffer.len() {
                // There may be more output even when all input is taken.
                return Ok(Fed::Full);
            }
            if input.is_empty() || step.bytes_read + step.bytes_written == 0 {
                return Ok(Fed::Done);
            }
        }
    }

    /// The whole records of the current chunk.
    pub(super) fn chunk(&self) -> &[u8] {
        self.buffer.get(..self.walked).unwrap_or_default()
    }

    /// Starts the next chunk with the record that did not fit into this one.
    pub(super) fn turn(&mut self) {
        self.buffer.copy_within(self.walked..self.filled, 0);
        self.filled -= self.walked;
        self.walked = 0;
        self.number = self.number.saturating_add(1);
    }

    fn walk(&mut self, record: &mut OnRecord<'_>) -> Result<(), &'static str> {
        let start = self.walked;
        let bytes = self.buffer.get(start..self.filled).unwrap_or_default();
        let (len, end) = walk(bytes, &mut |at, type_, bytes| {
            record(start + at, type_, bytes)
        });
        self.walked += len;
        match end {
            Walk::End | Walk::Partial => Ok(()),
            Walk::Damaged => Err("a record inside compressed data has the size 0"),
        }
    }
}

/// Whether a record's payload has to be decoded.
pub(super) const fn is_compressed(type_: u32) -> bool {
    matches!(type_, kind::COMPRESSED | kind::COMPRESSED2)
}

/// The payload of a compressed record, or as much of it as is there.
pub(super) fn payload(type_: u32, record: &[u8]) -> &[u8] {
    if type_ != kind::COMPRESSED2 {
        return record.get(8..).unwrap_or_default();
    }
    // COMPRESSED2 is padded to a multiple of eight and says how long it is.
    let data = record.get(16..).unwrap_or_default();
    let len = u64_at(record, 8)
        .and_then(|len| usize::try_from(len).ok())
        .unwrap_or(0);
    data.get(..len).unwrap_or(data)
}
