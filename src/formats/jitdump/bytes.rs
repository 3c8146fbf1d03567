//! Reading integers of either byte order out of untrusted bytes.

/// The byte order of a dump's writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ByteOrder {
    /// x86-64, aarch64 and all others that matter today.
    #[default]
    Little,
    /// s390x, old POWER.
    Big,
}

impl ByteOrder {
    /// The four bytes at `at`, if they are there.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let array = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(*array),
            Self::Big => u32::from_be_bytes(*array),
        })
    }

    /// The eight bytes at `at`, if they are there.
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let array = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(*array),
            Self::Big => u64::from_be_bytes(*array),
        })
    }
}

/// The bytes before the first NUL, and the position behind it. `None` when there is no NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let nul = memchr::memchr(0, bytes)?;
    Some((&bytes[..nul], nul + 1))
}
