//! Little-endian numbers out of foreign bytes, every access checked.
//!
//! In: any slice of a recording. Out: `Some(value)` or `None` when the bytes are not there. Used by every
//! parser of this folder; knows nothing of the format.

/// The `u16` that starts at byte `at`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

/// The `u32` that starts at byte `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// The `u64` that starts at byte `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// The bytes before the first NUL; `None` when there is no NUL.
pub(super) fn until_nul(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&b| b == 0)?;
    bytes.get(..end)
}

/// Reads one field after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'b> {
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    pub(super) const fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Option<&'b [u8]> {
        let (front, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(front)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (front, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*front))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (front, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*front))
    }

    /// `count` times eight bytes.
    pub(super) fn words(&mut self, count: u64) -> Option<&'b [u8]> {
        self.take(count.checked_mul(8)?)
    }

    /// A string as feature sections hold it: `u32` length of the padded field, then the
    /// NUL-terminated text (`do_write_string`, `tools/perf/util/header.c`).
    pub(super) fn string(&mut self) -> Option<&'b [u8]> {
        let len = self.u32()?;
        let field = self.take(u64::from(len))?;
        Some(until_nul(field).unwrap_or(field))
    }
}
