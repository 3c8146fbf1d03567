//! The bytes of a recording, piece by piece, for the second pass.
//!
//! In: an opened recording. Out: chunks of whole records in the order of the recording, each with the
//! number that [`RecordPos`] refers to. Threads share one [`Chunks`].

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

use super::open::Recording;

/// Where a record is: number of its chunk and byte offset in the chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RecordPos(pub u64);

impl RecordPos {
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
    recording: &'r Recording<'a>,
    next: AtomicU32,
}

impl<'r, 'a> Chunks<'r, 'a> {
    pub(super) const fn new(recording: &'r Recording<'a>) -> Self {
        Self {
            recording,
            next: AtomicU32::new(0),
        }
    }

    /// The next chunk: its number and its bytes, borrowed from the map or decoded.
    pub fn next(&self) -> Option<(u32, Cow<'a, [u8]>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number == 0).then(|| (0, Cow::Borrowed(self.recording.region())))
    }
}
