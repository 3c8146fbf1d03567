//! The bytes of a recording, piece by piece, for the second pass.
//!
//! In: an opened recording that was delivered. Out: chunks of whole records in ascending number, each with
//! the number that [`RecordPos`] refers to. Threads share one [`Chunks`]. First come the raw chunks (a mapped
//! file is one, a stream many), then what their compressed records decode to.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::head::{payload_len, record_header};
use super::inflate::{Fed, Inflater, is_compressed, payload};
use super::source::Source;

/// Where a record is: number of its chunk and byte offset in the chunk. Ordered as
/// [`Chunks::next`] hands the chunks out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RecordPos(pub u64);

/// Number of the first chunk of decoded records; those below are raw.
pub(super) const FIRST_DECODED: u32 = 1 << 23;

impl RecordPos {
    /// No record: what was made up has none.
    pub const NONE: Self = Self(u64::MAX);

    const OFFSET_BITS: u32 = 40;

    /// The record at `offset` of chunk number `chunk`.
    #[must_use]
    pub const fn new(chunk: u32, offset: usize) -> Self {
        Self(
            ((chunk as u64) << Self::OFFSET_BITS)
                | (offset as u64 & ((1 << Self::OFFSET_BITS) - 1)),
        )
    }

    /// Number of the chunk.
    #[must_use]
    pub const fn chunk(self) -> u32 {
        (self.0 >> Self::OFFSET_BITS) as u32
    }

    /// Byte offset in the chunk.
    #[must_use]
    pub const fn offset(self) -> usize {
        (self.0 & ((1 << Self::OFFSET_BITS) - 1)) as usize
    }
}

/// The chunks of a recording, in order. Shared by the threads of the second pass.
pub struct Chunks<'r, 'a> {
    source: &'r Source<'a>,
    state: Mutex<State<'a>>,
    /// Chunks will be asked for once more.
    keeps: bool,
}

struct State<'a> {
    /// The next raw chunk to hand out.
    raw: u32,
    /// Decodes behind the raw chunks; `None` when there is nothing (more) to decode.
    decoding: Option<Decoding<'a>>,
}

impl<'r, 'a> Chunks<'r, 'a> {
    /// The chunks of a source; with an inflater there is something to decode.
    pub(super) fn new(source: &'r Source<'a>, inflater: Option<Inflater>) -> Self {
        let decoding = inflater.map(|inflater| Decoding {
            inflater,
            chunk: Cow::Borrowed(&[]),
            number: 0,
            at: 0,
            taken: 0,
        });
        Self {
            source,
            state: Mutex::new(State { raw: 0, decoding }),
            keeps: false,
        }
    }

    pub(super) fn kept(self) -> Self {
        Self {
            keeps: true,
            ..self
        }
    }

    /// The next chunk: its number and its bytes, borrowed from the map or decoded.
    pub fn next(&self) -> Option<(u32, Cow<'a, [u8]>)> {
        // A thread that panicked inside would have left a chunk out; the panic itself is reported.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // What is to be decoded is gone through once more.
        let chunk = match state.decoding {
            Some(_) => self.source.chunk(state.raw),
            None if self.keeps => self.source.kept_chunk(state.raw),
            None => self.source.last_use(state.raw),
        };
        if let Some(chunk) = chunk {
            state.raw += 1;
            return Some((state.raw - 1, chunk));
        }
        let next = state.decoding.as_mut()?.next(self.source);
        if next.is_none() {
            state.decoding = None;
        }
        next
    }
}

/// Runs over the raw chunks again and decodes their compressed records.
struct Decoding<'a> {
    inflater: Inflater,
    chunk: Cow<'a, [u8]>,
    /// Number of the raw chunk behind `chunk`.
    number: u32,
    /// Offset of the record in `chunk` that is being decoded.
    at: usize,
    /// How much of its payload was decoded.
    taken: usize,
}

impl<'a> Decoding<'a> {
    fn next(&mut self, source: &Source<'a>) -> Option<(u32, Cow<'a, [u8]>)> {
        loop {
            let Some((type_, record)) = record_at(&self.chunk, self.at) else {
                match source.chunk(self.number) {
                    Some(chunk) => {
                        if source.is_in_pieces() {
                            self.inflater.restart();
                        }
                        (self.chunk, self.number, self.at) = (chunk, self.number + 1, 0);
                    }
                    None => return self.take(),
                }
                continue;
            };
            if is_compressed(type_) {
                let all = payload(type_, record);
                let mut input = all.get(self.taken..).unwrap_or_default();
                if self.taken == 0 {
                    self.inflater.begin();
                }
                let fed = self.inflater.feed(&mut input, &mut |_, _, _| {});
                self.taken = all.len() - input.len();
                match fed {
                    Ok(Fed::Full) => return self.take(),
                    Ok(Fed::Done) => {}
                    // Pass one stopped here as well and said so.
                    Err(_) if source.is_in_pieces() => {
                        self.chunk = Cow::Borrowed(&[]);
                        self.taken = 0;
                        continue;
                    }
                    Err(_) => {
                        self.chunk = Cow::Borrowed(&[]);
                        self.number = u32::MAX;
                        return self.take();
                    }
                }
            }
            self.taken = 0;
            let skipped = usize::try_from(payload_len(type_, record)).unwrap_or(usize::MAX);
            self.at = self.at.saturating_add(record.len()).saturating_add(skipped);
        }
    }

    fn take(&mut self) -> Option<(u32, Cow<'a, [u8]>)> {
        let number = FIRST_DECODED.saturating_add(self.inflater.number());
        let bytes = self.inflater.chunk().to_vec();
        self.inflater.turn();
        (!bytes.is_empty()).then_some((number, Cow::Owned(bytes)))
    }
}

/// The record at `at`, or the front of one that is cut.
fn record_at(chunk: &[u8], at: usize) -> Option<(u32, &[u8])> {
    let rest = chunk.get(at..)?;
    let (type_, size) = record_header(rest)?;
    Some((type_, rest.get(..size).unwrap_or(rest)))
}
