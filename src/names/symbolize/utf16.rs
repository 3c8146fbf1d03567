//! Where places in a text are that are told by line and column, as source maps do: columns count units of UTF-16.
//!
//! Texts may be one line of megabytes, and thousands of places are asked for, so no line is counted through.

/// Where the lines of a text begin, and where its units are.
pub(super) struct Lines {
    /// First bytes of the lines.
    starts: Vec<u32>,
    /// Units before each piece of the text; none if each byte is one.
    units: Option<Vec<u32>>,
}

/// Bytes of a piece.
const PIECE: usize = 256;

impl Lines {
    /// Reads through a text, once. Texts of 4 GB have no places.
    pub(super) fn of(text: &str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        let starts = std::iter::once(0).chain(ends.map(|end| end + 1));
        // All fit, as the length does.
        let starts = starts.map(|start| start as u32).collect();
        let mut before = 0;
        let units = (!text.is_ascii()).then(|| {
            let count = |piece: &[u8]| {
                let units = before;
                before += units_of(piece);
                units
            };
            text.as_bytes().chunks(PIECE).map(count).collect()
        });
        Some(Self { starts, units })
    }

    /// The byte of a place, line and column from 0. Nothing where the text has no such place.
    pub(super) fn byte_of(&self, text: &str, (line, column): (u32, u32)) -> Option<usize> {
        let line = line as usize;
        let start = *self.starts.get(line)? as usize;
        let end = self.starts.get(line + 1);
        let end = end.map_or(text.len(), |next| *next as usize - 1);
        let at = match &self.units {
            None => start + column as usize,
            Some(units) => {
                let bytes = text.as_bytes();
                let unit = units_before(bytes, units, start).checked_add(column)?;
                // The last piece with fewer units before it.
                let piece = units
                    .partition_point(|before| *before <= unit)
                    .checked_sub(1)?;
                let mut at = piece * PIECE;
                let mut left = unit - units[piece];
                while left > 0 {
                    left = left.checked_sub(units_of(bytes.get(at..=at)?))?;
                    at += 1;
                }
                // Of the last character there may be bytes behind that count for nothing.
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                at
            }
        };
        (at <= end && text.is_char_boundary(at)).then_some(at)
    }
}

/// Units of UTF-16 that characters have that begin in some bytes; those of four bytes have two.
fn units_of(bytes: &[u8]) -> u32 {
    let begin = bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    let long = bytes.iter().filter(|byte| **byte >= 0xf0).count();
    (begin + long) as u32
}

fn units_before(bytes: &[u8], units: &[u32], at: usize) -> u32 {
    let piece = at / PIECE;
    let before = units.get(piece).copied();
    let last =
        || units.last().copied().unwrap_or(0) + units_of(&bytes[(units.len() - 1) * PIECE..]);
    before.map_or_else(last, |before| before + units_of(&bytes[piece * PIECE..at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Character by character.
    fn counted(text: &str, (line, column): (u32, u32)) -> Option<usize> {
        let mut start = 0;
        for _ in 0..line {
            start += text[start..].find('\n')? + 1;
        }
        let end = text[start..]
            .find('\n')
            .map_or(text.len(), |end| start + end);
        let mut units = 0;
        for (at, c) in text[start..end].char_indices() {
            if units == column {
                return Some(start + at);
            }
            units += c.len_utf16() as u32;
        }
        (units == column).then_some(end)
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(24))]

        #[test]
        fn places_are_those_of_counting(
            parts in proptest::collection::vec(
                proptest::sample::select(vec!["a", "\n", "é", "€", "𝒳", "long words of ASCII that fill pieces "]),
                0..150,
            ),
        ) {
            let text = parts.concat();
            let lines = Lines::of(&text).expect("it is short");
            for line in 0..text.matches('\n').count() as u32 + 2 {
                for column in (0..40).chain([90, 500, 3000, u32::MAX]) {
                    let place = (line, column);
                    proptest::prop_assert_eq!(lines.byte_of(&text, place), counted(&text, place));
                }
            }
        }
    }
}
