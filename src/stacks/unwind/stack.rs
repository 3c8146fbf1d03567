//! The copy of the stack that a sample carries.

use super::arch::Architecture;
use crate::stack_end::StackEnd;

/// No stack is larger than this; what lies further away is another one.
pub(super) const FAR: u64 = 64 << 20;

/// Bytes from the sampled stack pointer upwards.
#[derive(Clone, Copy)]
pub(super) struct Stack<'b> {
    start: u64,
    bytes: &'b [u8],
}

impl<'b> Stack<'b> {
    /// The copy of what lay at `start`.
    pub(super) const fn new(start: u64, bytes: &'b [u8]) -> Self {
        Self { start, bytes }
    }

    /// The architecture's word at an address, if it was copied.
    #[inline]
    pub(super) fn word<A: Architecture>(&self, at: u64) -> Option<u64> {
        let offset = usize::try_from(at.wrapping_sub(self.start)).ok()?;
        let tail = self.bytes.get(offset..)?;
        if A::WORD == 4 {
            let word = tail.first_chunk()?;
            return Some(u64::from(u32::from_le_bytes(*word)));
        }
        tail.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    /// `size` (1 to 8) bytes as a number.
    pub(super) fn read(&self, at: u64, size: u8) -> Option<u64> {
        let offset = usize::try_from(at.wrapping_sub(self.start)).ok()?;
        let size = usize::from(size);
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        little_endian(bytes)
    }

    /// Why there is no word at an address: it lies behind the copy, or where no stack of this thread goes on.
    #[cold]
    pub(super) fn why_absent(&self, at: u64) -> StackEnd {
        match at.checked_sub(self.start) {
            Some(ahead) if ahead < (self.bytes.len() as u64).saturating_add(FAR) => {
                StackEnd::DumpTooShort
            }
            _ => StackEnd::OtherStack,
        }
    }

    /// The address behind the copy.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Up to eight bytes as a number.
pub(super) fn little_endian(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// Address of a slot, which counts in words from the CFA.
#[inline]
pub(super) fn slot_at<A: Architecture>(cfa: u64, slot: i16) -> u64 {
    cfa.wrapping_add_signed(i64::from(slot) * i64::from(A::WORD))
}
