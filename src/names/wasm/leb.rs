//! LEB128 integers out of untrusted bytes. Knows nothing else.

/// Reads one integer after the other; `None` at the end and where one does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leb<'a> {
    rest: &'a [u8],
}

impl<'a> Leb<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// An unsigned integer of at most 64 bits.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        self.read().map(|(value, _, _)| value)
    }

    /// A signed one.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let (value, bits, last) = self.read()?;
        let extended = if last & 0x40 != 0 && bits < 64 {
            value | u64::MAX << bits
        } else {
            value
        };
        Some(extended.cast_signed())
    }

    /// The value, how many bits it has, and its last byte.
    fn read(&mut self) -> Option<(u64, u32, u8)> {
        let (mut value, mut bits) = (0u64, 0u32);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let part = u64::from(byte & 0x7f);
            if bits > 63 || part.checked_shl(bits)? >> bits != part && byte & 0x40 == 0 {
                return None;
            }
            value |= part << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((value, bits, byte));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_length() {
        let mut leb = Leb::new(&[0x05, 0x80, 0x01, 0xe5, 0x8e, 0x26]);
        assert_eq!(leb.unsigned(), Some(5));
        assert_eq!(leb.unsigned(), Some(128));
        assert_eq!(leb.unsigned(), Some(624_485));
        assert_eq!(leb.unsigned(), None);
        let mut leb = Leb::new(&[0x7f, 0x02, 0x80, 0x7f, 0xc0, 0xbb, 0x78]);
        assert_eq!(leb.signed(), Some(-1));
        assert_eq!(leb.signed(), Some(2));
        assert_eq!(leb.signed(), Some(-128));
        assert_eq!(leb.signed(), Some(-123_456));
    }

    #[test]
    fn what_never_ends_is_no_integer() {
        assert_eq!(Leb::new(&[0x80; 100]).unsigned(), None);
        assert_eq!(Leb::new(&[0xff; 100]).signed(), None);
        assert_eq!(Leb::new(&[0xff, 0xff]).signed(), None);
    }
}
