//! Ids of what a dataset holds: 64 bits of a hash, which all engines read, join and print alike.

use sha2::{Digest, Sha256};

/// The first 8 bytes of SHA-256, little-endian, of the parts, each behind its length as 4 bytes, little-endian. It is a part of
/// version 1 of the schema: with another rule nothing would be found again.
pub(super) fn hash<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> i64 {
    let mut hash = Sha256::new();
    for part in parts {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        hash.update(length.to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '\1\0\0\0a\2\0\0\0bc' | sha256sum`
    #[test]
    fn ids_never_change() {
        assert_eq!(hash([&b"a"[..], b"bc"]), ID);
        assert_ne!(hash([&b"ab"[..], b"c"]), ID);
        assert_eq!(hash([&b""[..]; 0]), EMPTY);
    }

    const ID: i64 = 4_496_381_730_825_955_911;
    const EMPTY: i64 = 1_449_310_910_991_872_227;
}
