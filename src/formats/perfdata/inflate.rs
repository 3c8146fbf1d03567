//! Compressed records (`perf record -z`) back to plain ones.
//!
//! In: the payloads of COMPRESSED and COMPRESSED2 records, in order. Out: a buffer of plain records that is
//! filled, walked and reused, so that memory stays bounded whatever the payload expands to. All payloads
//! of a file are one zstd stream, and a record may begin in one and end in the next
//! (`util/session.c`, `perf_session__process_compressed_event`).

use super::bytes::u64_at;
use super::head::{Walk, walk};
use super::records::kind;
use crate::zstd::Decoder;

/// Size of a decoded chunk: large enough for a thread to work on, small enough to stay in a cache.
pub(super) const CHUNK: usize = 4 << 20;

/// What one compressed record may expand to if the recording does not say how large the ring
/// buffer was (`-m`), which is the natural bound.
const DEFAULT_LIMIT: u64 = 128 << 20;

/// How many bytes of records one compressed byte may stand for, with no record counted for more than [`COUNTED`] bytes: every
/// record costs memory, and has at least a time of its own, of which some bytes remain. What a record holds beside is decoded
/// and not kept (stacks of 64 KB that hardly change are packed by a factor of thousands), or has a budget where it is kept.
const MAX_RECORD_RATIO: u64 = 128;
/// See [`MAX_RECORD_RATIO`].
const COUNTED: u64 = 1024;
/// Counted bytes that are free of this limit, for short recordings.
const FREE: u64 = 32 << 20;

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
    decoder: Decoder,
    /// Where the current chunk begins in what the decoder holds.
    start: usize,
    /// Up to here records were walked.
    walked: usize,
    /// How many chunks came before.
    number: u32,
    /// Bytes that the current payload expanded to.
    expanded: u64,
    limit: u64,
    /// Counted bytes that are free of the ratio.
    free: u64,
    /// Bytes of all payloads that were decoded, and those of the records in them as far as they count.
    taken: u64,
    counted: u64,
}

impl Inflater {
    /// `mmap_len`: size of the ring buffer as the COMPRESSED feature tells it.
    pub(super) fn new(mmap_len: Option<u32>) -> Self {
        let limit = mmap_len.map_or(DEFAULT_LIMIT, |len| u64::from(len).clamp(1 << 20, 1 << 30));
        Self {
            decoder: Decoder::default(),
            start: 0,
            walked: 0,
            number: 0,
            expanded: 0,
            limit,
            free: FREE,
            taken: 0,
            counted: 0,
        }
    }

    /// Number of the chunk that is being filled.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Another file begins, and with it another stream: `perf record --threads` packs each by itself and ends none of them.
    pub(super) fn restart(&mut self) {
        self.decoder.restart(self.walked);
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
        let (before, had) = (self.decoder.decoded().len(), input.len());
        let fed = self.decoder.feed(input, self.start + CHUNK);
        let written = (self.decoder.decoded().len() - before) as u64;
        self.expanded += written;
        self.taken += (had - input.len()) as u64;
        // What came before the damage counts.
        self.walk(record)?;
        fed.map_err(|_| "compressed data are damaged")?;
        if self.expanded > self.limit {
            return Err("compressed data expand to more than the recorder's buffer");
        }
        let allowed = self.taken.saturating_mul(MAX_RECORD_RATIO);
        if self.counted > allowed.saturating_add(self.free) {
            return Err("compressed data expand to more than any recorder packs into so little");
        }
        let is_full = self.decoder.decoded().len() >= self.start + CHUNK;
        Ok(if is_full { Fed::Full } else { Fed::Done })
    }

    /// Whether what came so far ends within a block or a record: the recorder kept the rest.
    pub(super) fn is_cut(&self) -> bool {
        self.decoder.is_within_block() || self.walked < self.decoder.decoded().len()
    }

    /// The whole records of the current chunk.
    pub(super) fn chunk(&self) -> &[u8] {
        let decoded = self.decoder.decoded();
        decoded.get(self.start..self.walked).unwrap_or_default()
    }

    /// Starts the next chunk with the record that did not fit into this one.
    pub(super) fn turn(&mut self) {
        self.walked -= self.decoder.forget(self.walked);
        self.start = self.walked;
        self.number = self.number.saturating_add(1);
    }

    fn walk(&mut self, record: &mut OnRecord<'_>) -> Result<(), &'static str> {
        let bytes = self.decoder.decoded().get(self.walked..);
        let bytes = bytes.unwrap_or_default();
        let start = self.walked - self.start;
        let mut counted = 0;
        let (len, end) = walk(bytes, &mut |at, type_, content| {
            counted += COUNTED.min(content.len() as u64);
            record(start + at, type_, content)
        });
        self.counted += counted;
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

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;
    use crate::perfdata::testing::over_and_over;

    /// How many records of `size` bytes come out of ten payloads of `count` of them, which differ in `different` bytes.
    fn records(size: usize, count: usize, different: usize) -> (usize, Result<(), &'static str>) {
        let mut noise = 1u64;
        let payload = |_| {
            let mut plain = Vec::new();
            for _ in 0..count {
                let mut record = vec![0; size];
                record[0] = 9;
                record[6..8].copy_from_slice(&u16::try_from(size).expect("small").to_le_bytes());
                for byte in &mut record[8..8 + different] {
                    noise = noise
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    *byte = (noise >> 56) as u8;
                }
                plain.extend(record);
            }
            compress_to_vec(&plain[..], CompressionLevel::Fastest)
        };
        // A tenth of what is free for a recording, so that a tenth of its records shows the ratios.
        let inflater = Inflater {
            free: FREE / 10,
            ..Inflater::new(None)
        };
        expanded(inflater, (0..10).map(payload))
    }

    /// How many records come out of payloads.
    fn expanded(
        mut inflater: Inflater,
        payloads: impl Iterator<Item = Vec<u8>>,
    ) -> (usize, Result<(), &'static str>) {
        let mut records = 0;
        for payload in payloads {
            let mut input = &payload[..];
            inflater.begin();
            loop {
                match inflater.feed(&mut input, &mut |_, _, _| records += 1) {
                    Ok(Fed::Full) => inflater.turn(),
                    Ok(Fed::Done) => break,
                    Err(problem) => return (records, Err(problem)),
                }
            }
        }
        (records, Ok(()))
    }

    #[test]
    fn what_recorders_write_is_expanded() {
        assert_eq!(records(48, 10_000, 4), (100_000, Ok(())));
        assert_eq!(records(8192, 100, 12), (1000, Ok(())));
        assert_eq!(records(65_528, 15, 50), (150, Ok(())));
    }

    #[test]
    fn millions_of_equal_records_are_not() {
        let equal = |size: u16, megabytes: usize| {
            let mut record = vec![0; usize::from(size)];
            record[0] = 9;
            record[6..8].copy_from_slice(&size.to_le_bytes());
            let payload = over_and_over(&record, megabytes * 8);
            expanded(Inflater::new(None), std::iter::repeat_n(payload, 10))
        };
        let (found, problem) = equal(48, 48);
        assert!(problem.is_err() && found < 2 << 20, "{found}");
        // Stacks that do not change at all take no memory: one payload is read whole (the next one begins in a record).
        let (found, _) = equal(65_528, 96);
        assert!(found > 1500, "{found}");
    }
}
