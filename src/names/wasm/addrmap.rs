//! wasmtime's map from machine code to WebAssembly: the section `.wasmtime.addrmap` in, positions out.
//!
//! Two formats exist. Up to wasmtime 46 the section holds a count, as many offsets of machine code, and as many
//! positions. From 47 on it holds blocks of 128 entries with differences (`wasmtime_environ::AddressMapSection`).
//! An entry counts up to the next one; a quarter of them say that nobody knows the position.

use std::ops::{Range, RangeInclusive};

use super::leb::Leb;
use crate::ids::{Idx, IndexVec, numbers};

numbers! {
    /// Index into [`AddressMap::entries`].
    struct EntryId(u32);
}

/// Entries of a block in the newer format.
const BLOCK: usize = 128;
/// The first version that writes blocks.
const FIRST_WITH_BLOCKS: u32 = 47;
/// Stands for an unknown position in the older format.
const UNKNOWN: u32 = u32::MAX;

/// Machine code of a module by positions in the file of its WebAssembly.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AddressMap {
    /// Offsets in the machine code with positions, [`UNKNOWN`] for none; by rising offset.
    entries: IndexVec<EntryId, (u32, u32)>,
    /// The entries that have a position.
    known: Vec<EntryId>,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Position in the file of the module, of the instruction itself or of a neighbour that has one.
    pub position: u32,
    /// Where the instruction itself has none: that of the neighbour on its other side.
    pub other: Option<u32>,
    /// Whether the instruction itself has that position.
    pub is_exact: bool,
}

impl AddressMap {
    /// Reads the section as wasmtime of this major version writes it; without a version, in the format that fits.
    /// `None` if it is damaged or of a kind not known.
    #[must_use]
    pub fn parse(section: &[u8], version: Option<u32>) -> Option<Self> {
        let entries = match version {
            Some(version) if version < FIRST_WITH_BLOCKS => plain(section)?,
            Some(_) => blocks(section)?,
            None => plain(section).or_else(|| blocks(section))?,
        };
        if !entries.is_sorted_by_key(|entry| entry.0) {
            return None;
        }
        let entries: IndexVec<EntryId, _> = entries.into();
        let known = entries
            .iter_enumerated()
            .filter(|(_, entry)| entry.1 != UNKNOWN)
            .map(|(number, _)| number)
            .collect();
        Some(Self { entries, known })
    }

    /// Where the code at `offset` comes from, if `function`, the range of the function around it, has any position.
    /// Code without one takes that before it, unless `is_entered` tells that jumps lead to where its own code begins: the code
    /// before may be outside of a loop, or the other half of an `if`.
    #[must_use]
    pub fn origin(
        &self,
        offset: u32,
        function: Range<u32>,
        is_entered: impl FnOnce(RangeInclusive<u32>) -> bool,
    ) -> Option<Origin> {
        let next = self.entries.raw.partition_point(|entry| entry.0 <= offset);
        let next_known = self.known.partition_point(|n| n.index() < next);
        let inside = |at: usize| {
            let (start, position) = self.entries[*self.known.get(at)?];
            function.contains(&start).then_some(position)
        };
        let before = next_known.checked_sub(1).and_then(inside);
        let is_exact = next_known > 0 && self.known[next_known - 1].index() + 1 == next;
        let behind = inside(next_known).filter(|_| before.is_none() || !is_exact);
        let (position, other) = match (before, behind) {
            (Some(before), Some(behind)) if before != behind => {
                let since = self.entries.raw[self.known[next_known - 1].index() + 1].0;
                if is_entered(since..=offset) {
                    (behind, Some(before))
                } else {
                    (before, Some(behind))
                }
            }
            (before, behind) => (before.or(behind)?, None),
        };
        Some(Origin {
            position,
            other,
            is_exact: is_exact && before.is_some(),
        })
    }

    /// The offsets in a range of code from which on another position counts, with the positions that are known.
    pub fn changes(&self, range: Range<u32>) -> impl Iterator<Item = (u32, Option<u32>)> {
        let first = self
            .entries
            .raw
            .partition_point(|entry| entry.0 < range.start);
        let entries = self.entries.raw[first..].iter();
        entries
            .take_while(move |entry| entry.0 < range.end)
            .map(|&(offset, position)| (offset, (position != UNKNOWN).then_some(position)))
    }

    /// Number of entries, and of those with a position.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.known.len())
    }
}

fn u32_at(section: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*section.get(at..)?.first_chunk()?))
}

/// Count, offsets, positions.
fn plain(section: &[u8]) -> Option<Vec<(u32, u32)>> {
    let count = u32_at(section, 0)? as usize;
    let rest = section.get(4..)?;
    if rest.len() != count.checked_mul(8)? {
        return None;
    }
    let (offsets, positions) = rest.split_at(count * 4);
    let number = |at: &[u8]| u32_at(at, 0);
    let pairs = offsets.chunks_exact(4).zip(positions.chunks_exact(4));
    pairs
        .map(|(offset, position)| Some((number(offset)?, number(position)?)))
        .collect()
}

/// Count, number of blocks; of each the offset its entries count from and where they are; the entries.
fn blocks(section: &[u8]) -> Option<Vec<(u32, u32)>> {
    let (count, blocks) = (u32_at(section, 0)? as usize, u32_at(section, 4)? as usize);
    if blocks != count.div_ceil(BLOCK) {
        return None;
    }
    let heads = section.get(8..)?;
    let body = heads.get(blocks.checked_mul(8)?..)?;
    // Each entry has a byte at least.
    if count > body.len() {
        return None;
    }
    let mut entries = Vec::with_capacity(count);
    for head in heads.chunks_exact(8).take(blocks) {
        let (start, at) = (u32_at(head, 0)?, u32_at(head, 4)? as usize);
        let left = (count - entries.len()).min(BLOCK);
        block(start, left, Leb::new(body.get(at..)?), &mut entries)?;
    }
    Some(entries)
}

/// For each entry the distance to the one before, doubled, odd without a position; then the first position, or the
/// difference to the one before.
fn block(start: u32, count: usize, mut leb: Leb<'_>, entries: &mut Vec<(u32, u32)>) -> Option<()> {
    let mut offset = u64::from(start);
    let mut position: Option<i64> = None;
    for _ in 0..count {
        let step = leb.unsigned()?;
        offset = offset.checked_add(step >> 1)?;
        let at = if step & 1 != 0 {
            UNKNOWN
        } else {
            let next = match position {
                None => i64::try_from(leb.unsigned()?).ok()?,
                Some(before) => before.checked_add(leb.signed()?)?,
            };
            position = Some(next);
            u32::try_from(next).ok().filter(|&at| at != UNKNOWN)?
        };
        entries.push((u32::try_from(offset).ok()?, at));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Entries as both formats may hold them: 0 unknown, 5 at 100, 9 unknown, 12 at 90, 20 at 110.
    const ENTRIES: [(u32, u32); 5] = [(0, UNKNOWN), (5, 100), (9, UNKNOWN), (12, 90), (20, 110)];

    fn plain_section() -> Vec<u8> {
        words(&[5, 0, 5, 9, 12, 20, UNKNOWN, 100, UNKNOWN, 90, 110])
    }

    fn block_section() -> Vec<u8> {
        let mut section = words(&[5, 1, 0, 0]);
        // 0, none; +5 at 100; +4, none; +3 at -10; +8 at +20.
        section.extend([0x01, 0x0a, 100, 0x09, 0x06, 0x76, 0x10, 20]);
        section
    }

    #[test]
    fn both_formats_say_the_same() {
        for (section, version) in [(plain_section(), 46), (block_section(), 47)] {
            let map = AddressMap::parse(&section, Some(version)).expect("a map");
            assert_eq!(map.entries, ENTRIES);
            assert_eq!(map.counts(), (5, 3));
            assert_eq!(AddressMap::parse(&section, None), Some(map));
        }
        assert_eq!(AddressMap::parse(&plain_section(), Some(47)), None);
        assert_eq!(AddressMap::parse(&block_section(), Some(46)), None);
    }

    #[test]
    fn the_chain_of_offsets_starts_anew_in_each_block() {
        let mut section = words(&[129, 2, 0, 0, 7, 128]);
        section.extend([0x01; 128]);
        section.extend([0x06, 33]);
        let map = AddressMap::parse(&section, Some(50)).expect("a map");
        assert_eq!(map.entries.raw[127..], [(0, UNKNOWN), (10, 33)]);
    }

    #[test]
    fn code_without_a_position_takes_that_of_a_neighbour() {
        let map = AddressMap::parse(&plain_section(), Some(46)).expect("a map");
        let exact = |position| Origin {
            position,
            other: None,
            is_exact: true,
        };
        let near = |position, other| Origin {
            position,
            other,
            is_exact: false,
        };
        let origin = |offset, function| map.origin(offset, function, |_| false);
        assert_eq!(origin(5, 0..30), Some(exact(100)));
        assert_eq!(origin(8, 0..30), Some(exact(100)));
        assert_eq!(origin(10, 0..30), Some(near(100, Some(90))));
        // At the front of a function there is only what comes behind.
        assert_eq!(origin(2, 0..30), Some(near(100, None)));
        assert_eq!(origin(10, 9..30), Some(near(90, None)));
        // Entries of the next function do not count, and those before only in this one.
        assert_eq!(origin(10, 0..12), Some(near(100, None)));
        assert_eq!(origin(2, 0..5), None);
        assert_eq!(origin(40, 30..50), None);
        // Where a jump leads to between the code before and this, the code behind is nearer.
        let entered = |offset, at: u32| map.origin(offset, 0..30, |range| range.contains(&at));
        assert_eq!(entered(10, 9), Some(near(90, Some(100))));
        assert_eq!(entered(10, 10), Some(near(90, Some(100))));
        for at in [8, 11] {
            assert_eq!(entered(10, at), Some(near(100, Some(90))));
        }
        assert_eq!(entered(6, 5), Some(exact(100)));
        let changes: Vec<_> = map.changes(5..13).collect();
        assert_eq!(changes, [(5, Some(100)), (9, None), (12, Some(90))]);
    }

    #[test]
    fn damaged_sections_are_no_map() {
        for section in [plain_section(), block_section()] {
            for cut in 0..section.len() {
                let map = AddressMap::parse(&section[..cut], None);
                assert!(map.is_none(), "{cut} of {} bytes", section.len());
            }
        }
        // Counts beyond all bytes, and a distance that overflows.
        assert_eq!(AddressMap::parse(&words(&[u32::MAX, 1 << 25]), None), None);
        let mut section = words(&[1, 1, u32::MAX, 0]);
        section.extend([0x03]);
        assert_eq!(AddressMap::parse(&section, Some(47)), None);
    }
}
