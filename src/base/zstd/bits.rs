//! Bits of a zstd block: read from the end to the front (streams), or from the front (table descriptions).
//!
//! In: borrowed bytes of a block. Knows nothing of what the bits mean.

use super::Damaged;

/// A stream that was written forwards and is read backwards. Its last byte ends with a mark bit.
#[derive(Clone, Copy)]
pub(super) struct Backward<'a> {
    data: &'a [u8],
    /// Bits that were not read yet.
    left: usize,
}

impl<'a> Backward<'a> {
    /// Most bits that one [`Self::word`] has.
    pub(super) const WORD: u32 = 57;

    pub(super) fn new(data: &'a [u8]) -> Result<Self, Damaged> {
        let last = *data.last().ok_or(Damaged)?;
        let mark = last.checked_ilog2().ok_or(Damaged)? as usize;
        Ok(Self {
            data,
            left: (data.len() - 1) * 8 + mark,
        })
    }

    /// The next bits, the first one on top. At least [`Self::WORD`] of them, with zeros behind the last of the stream.
    #[inline(always)]
    pub(super) fn word(&self) -> u64 {
        let end = self.left.div_ceil(8);
        let above = (end * 8 - self.left) as u32;
        let bytes = self.data.get(end.wrapping_sub(8)..end);
        match bytes.and_then(|bytes| bytes.first_chunk::<8>()) {
            Some(bytes) => u64::from_le_bytes(*bytes) << above,
            None => self.short_word(end) << above,
        }
    }

    #[cold]
    fn short_word(&self, end: usize) -> u64 {
        let mut bytes = [0; 8];
        if let (Some(front), Some(data)) = (bytes.get_mut(8 - end..), self.data.get(..end)) {
            front.copy_from_slice(data);
        }
        u64::from_le_bytes(bytes)
    }

    /// Goes over bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, bits: u32) -> Result<(), Damaged> {
        self.left = self.left.checked_sub(bits as usize).ok_or(Damaged)?;
        Ok(())
    }

    /// Reads at most [`Self::WORD`] bits.
    #[inline(always)]
    pub(super) fn take(&mut self, bits: u32) -> Result<u64, Damaged> {
        let word = self.word();
        self.skip(bits)?;
        Ok(top(word, bits))
    }

    pub(super) const fn left(&self) -> usize {
        self.left
    }
}

/// The upper `bits` of a word, fewer than 64.
#[inline(always)]
pub(super) const fn top(word: u64, bits: u32) -> u64 {
    // Two shifts, as one by 64 is none.
    (word >> 1) >> (63 - bits)
}

/// A description that is read forwards.
pub(super) struct Forward<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Forward<'a> {
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// The next bits, at most 24, without going over them; zeros behind the end.
    pub(super) fn peek(&self, bits: u32) -> u32 {
        let mut word = [0; 4];
        let rest = self.data.get(self.at / 8..).unwrap_or_default();
        for (to, from) in word.iter_mut().zip(rest) {
            *to = *from;
        }
        (u32::from_le_bytes(word) >> (self.at % 8)) & ((1 << bits) - 1)
    }

    pub(super) const fn skip(&mut self, bits: u32) {
        self.at += bits as usize;
    }

    /// Number of bytes that were begun.
    pub(super) fn bytes(&self) -> Result<usize, Damaged> {
        let bytes = self.at.div_ceil(8);
        (bytes <= self.data.len()).then_some(bytes).ok_or(Damaged)
    }
}
