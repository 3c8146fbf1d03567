//! Build IDs: what tells two builds of a file apart. Bytes in, lowercase hex out.

use std::fmt;

/// Identity of one build of an ELF file (`NT_GNU_BUILD_ID`), of the kernel, or of a mapped file
/// (MMAP2 with a build ID); at most 20 bytes, as perf keeps them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl BuildId {
    /// The longest build ID that perf records (SHA-1).
    pub const MAX: usize = 20;

    /// The ID made of these bytes. `None` when there are none, when all are zero (perf's "no build
    /// ID"), or more than [`Self::MAX`] are given (perf cuts those; two cut IDs could be equal by
    /// accident only, so the first 20 bytes stand for the whole).
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        let id = &id[..id.len().min(Self::MAX)];
        if id.iter().all(|&b| b == 0) {
            return None;
        }
        let mut bytes = [0; Self::MAX];
        bytes[..id.len()].copy_from_slice(id);
        Some(Self {
            len: u8::try_from(id.len()).expect("cut to 20 bytes above"),
            bytes,
        })
    }

    /// An ID from a fixed field of 20 bytes whose true length is not recorded (header table of
    /// perf before 5.12): trailing zero bytes beyond 16 (MD5, UUID) do not count.
    #[must_use]
    pub fn from_padded(field: &[u8]) -> Option<Self> {
        let field = &field[..field.len().min(Self::MAX)];
        let used = field
            .iter()
            .rposition(|&b| b != 0)
            .map_or(0, |last| last + 1);
        let len = if used > 16 {
            field.len()
        } else if used > 8 {
            16
        } else {
            8
        };
        Self::new(&field[..len.min(field.len())])
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The bytes, and zeroes behind them: equal for two that [`match`](Self::matches).
    #[must_use]
    pub const fn padded(&self) -> [u8; Self::MAX] {
        self.bytes
    }

    /// Whether both name the same build. IDs whose lengths were lost (zero padded to 20 bytes) equal
    /// their short form.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_hex_and_ignores_padding() {
        let short = BuildId::new(&[0xab, 1, 2, 3, 4, 5, 6, 7]).expect("not zero");
        assert_eq!(short.to_string(), "ab01020304050607");
        let mut padded = [0; 20];
        padded[..8].copy_from_slice(short.as_bytes());
        assert!(short.matches(&BuildId::new(&padded).expect("not zero")));
        assert_eq!(BuildId::from_padded(&padded), Some(short));
        assert_eq!(BuildId::new(&[0; 20]), None);
        assert_eq!(BuildId::new(&[]), None);
    }
}
