//! Symbols in order of their addresses, without their names.
//!
//! In: where symbols lie and which entry of which table they are. Out: the same sorted, with ends, and quickly found by
//! address. [`super::symtab`] decides between several at one address and knows their names.

/// A symbol: where it lies and where its name is to be found. Order is (start, origin), which is
/// the order of perf's tree: equal starts in order of insertion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SymbolEntry {
    pub(crate) start: u64,
    pub(crate) origin: Origin,
    pub(crate) len: u32,
}

impl SymbolEntry {
    pub(crate) fn new(start: u64, origin: Origin, len: u64) -> Self {
        Self {
            start,
            origin,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.len))
    }
}

/// Which table (top two bits) and which place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Origin(u32);

const TABLE_SHIFT: u32 = 30;
/// No table has so many symbols: those of all tables are numbered with 31 bits.
const MOST: u32 = 1 << 29;
/// `.symtab`
pub(crate) const SYMTAB: u32 = 0;
/// `.dynsym`
pub(crate) const DYNSYM: u32 = 1;
/// Made by us: PLT entries, symbols of records.
pub(crate) const MADE: u32 = 2;

impl Origin {
    pub(crate) fn new(table: u32, index: usize) -> Option<Self> {
        let index = u32::try_from(index).ok().filter(|&i| i < MOST)?;
        Some(Self(table << TABLE_SHIFT | index))
    }

    /// For tables of other kinds than ELF: see [`super::symtab::KALLSYMS_DATA`].
    pub(crate) fn raw(value: u32) -> Self {
        Self(value)
    }

    pub(crate) fn value(self) -> u32 {
        self.0
    }

    pub(crate) fn table(self) -> u32 {
        self.0 >> TABLE_SHIFT
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & ((1 << TABLE_SHIFT) - 1)) as usize
    }
}

/// Sorts by start; those with one start stay in their order. By digits of the distance from the lowest, three
/// times as fast as by comparisons.
pub(crate) fn sort_by_start(entries: &mut Vec<SymbolEntry>) {
    /// Fewer are sorted by comparisons.
    const FEW: usize = 1 << 10;
    /// Bits of a digit: 512 places that are written to stay in the innermost cache.
    const DIGIT: u32 = 9;
    /// So many digits have distances in files of 64 GiB.
    const MOST_DIGITS: u32 = 4;
    let (least, most) = entries.iter().fold((u64::MAX, 0), |(least, most), e| {
        (e.start.min(least), e.start.max(most))
    });
    let bits = 64 - most.saturating_sub(least).leading_zeros();
    let digits = bits.div_ceil(DIGIT);
    if entries.len() < FEW || digits > MOST_DIGITS {
        entries.sort_by_key(|entry| entry.start);
        return;
    }
    let mut sorted = entries.clone();
    for shift in (0..digits).map(|digit| digit * DIGIT) {
        let digit = |entry: &SymbolEntry| ((entry.start - least) >> shift) as usize % (1 << DIGIT);
        let mut places = [0u32; 1 << DIGIT];
        for entry in &*entries {
            places[digit(entry)] += 1;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for entry in &*entries {
            let place = &mut places[digit(entry)];
            sorted[*place as usize] = *entry;
            *place += 1;
        }
        std::mem::swap(entries, &mut sorted);
    }
}

/// Brings the last `count` entries to where they belong in the others, which are sorted; behind those of their start.
pub(crate) fn merge_last(entries: &mut [SymbolEntry], count: usize) {
    let mut left = entries.len() - count;
    let mut last = entries[left..].to_vec();
    last.sort_by_key(|entry| entry.start);
    let mut free = entries.len();
    while let Some(entry) = last.pop() {
        while left > 0 && entries[left - 1].start > entry.start {
            (left, free) = (left - 1, free - 1);
            entries[free] = entries[left];
        }
        free -= 1;
        entries[free] = entry;
    }
}

/// Gives symbols without a size the room up to the next one (`symbols__fixup_end`): only the last of several at one
/// address gets it; the very last symbol ends behind the next page. perf does so once for each table that it reads,
/// so those of the first do not see the others.
pub(crate) fn extend(entries: &mut [SymbolEntry]) {
    let room = |start: u64, next: Option<u64>| {
        let end = next.unwrap_or_else(|| end_of_last(start));
        u32::try_from(end - start).unwrap_or(u32::MAX)
    };
    let (mut next, mut next_of_first) = (None, None);
    for entry in entries.iter_mut().rev() {
        let start = entry.start;
        if entry.origin.table() == SYMTAB {
            if entry.len == 0 {
                entry.len = room(start, next_of_first);
            }
            next_of_first = Some(start);
        }
        if entry.len == 0 {
            entry.len = room(start, next);
        }
        next = Some(start);
    }
}

/// Where the last symbol without a size ends: rounded up to 4 KiB, and one page more.
pub(crate) fn end_of_last(start: u64) -> u64 {
    start
        .checked_next_multiple_of(4096)
        .and_then(|end| end.checked_add(4096))
        .unwrap_or(u64::MAX)
}

/// The first entry of each start that lower starts reach over, and how far they do.
pub(crate) fn mark_overlapped(entries: &[SymbolEntry]) -> Vec<(u32, u64)> {
    let mut marks = Vec::new();
    // The highest end so far.
    let (mut reach, mut start) = (0, None);
    for (i, entry) in (0..).zip(entries) {
        if start != Some(entry.start) {
            start = Some(entry.start);
            if reach > entry.start {
                marks.push((i, reach));
            }
        }
        reach = reach.max(entry.end());
    }
    marks
}

/// Where in a sorted list to look for an address: a search in all of 200 000 symbols costs more than everything else that
/// is done for an address.
#[derive(Default)]
pub(crate) struct PartIndex {
    least: u64,
    /// An address belongs to the part `(address - least) >> shift`.
    shift: u32,
    /// How many entries lie before each part, and behind the last.
    before: Vec<u32>,
}

impl PartIndex {
    /// Of entries sorted by start.
    pub(crate) fn of(entries: &[SymbolEntry]) -> Self {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Self::default();
        };
        let spread = last.start - first.start;
        // One part for two to four entries.
        let parts = (entries.len() / 2).next_power_of_two().trailing_zeros();
        let bits = 64 - spread.leading_zeros();
        let shift = bits.saturating_sub(parts).min(63);
        let mut before = Vec::with_capacity((spread >> shift) as usize + 2);
        for (i, entry) in (0..).zip(entries) {
            let part = ((entry.start - first.start) >> shift) as usize;
            while before.len() <= part {
                before.push(i);
            }
        }
        before.push(u32::try_from(entries.len()).expect("entries are numbered by u32"));
        Self {
            least: first.start,
            shift,
            before,
        }
    }

    /// How many of the entries, the same as before, start at an address or below.
    pub(crate) fn behind(&self, entries: &[SymbolEntry], at: u64) -> usize {
        let Some(distance) = at.checked_sub(self.least) else {
            return 0;
        };
        let part = usize::try_from(distance >> self.shift).unwrap_or(usize::MAX);
        let range = match self.before.get(part..).unwrap_or_default() {
            [first, behind, ..] => *first as usize..*behind as usize,
            _ => entries.len()..entries.len(),
        };
        range.start + entries[range].partition_point(|entry| entry.start <= at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(starts: &[u64]) -> Vec<SymbolEntry> {
        let entry = |(i, &start): (usize, &u64)| {
            SymbolEntry::new(start, Origin::new(SYMTAB, i).expect("a small number"), 1)
        };
        starts.iter().enumerate().map(entry).collect()
    }

    /// Starts of all sizes, many of them equal; few lists are long enough to be sorted by digits.
    fn starts() -> impl Strategy<Value = Vec<u64>> {
        let list = |len: std::ops::Range<usize>| {
            (0..64_u32, any::<u64>()).prop_flat_map(move |(bits, least)| {
                let most = (u64::MAX >> bits).min(u64::MAX - least);
                proptest::collection::vec(least..=least + most, len.clone())
            })
        };
        prop_oneof![list(0..40), list(1000..1100)]
    }

    proptest! {
        #[test]
        fn sorts_as_comparisons_do(starts in starts()) {
            let mut sorted = entries(&starts);
            sort_by_start(&mut sorted);
            let mut expected = entries(&starts);
            expected.sort();
            prop_assert_eq!(sorted, expected);
        }

        #[test]
        fn merging_is_sorting(starts in starts(), count in 0..50_usize) {
            let mut merged = entries(&starts);
            let before = merged.len().saturating_sub(count);
            merged[..before].sort();
            let count = merged.len() - before;
            merge_last(&mut merged, count);
            let mut expected = entries(&starts);
            expected.sort();
            prop_assert_eq!(merged, expected);
        }

        /// Table by table, and every symbol by the next one.
        #[test]
        fn symbols_end_where_they_end_step_by_step(
            drawn in proptest::collection::vec((0..2_u32, 0..30_u64, 0..3_u64), 0..40)
        ) {
            let entry = |(i, &(table, start, len)): (usize, &(u32, u64, u64))| {
                SymbolEntry::new(start, Origin::new(table, i).expect("a small number"), len)
            };
            let mut all: Vec<SymbolEntry> = drawn.iter().enumerate().map(entry).collect();
            all.sort();
            let mut expected: Vec<SymbolEntry> = Vec::new();
            for table in [SYMTAB, DYNSYM] {
                let new = all.iter().filter(|e| e.origin.table() == table);
                let before = expected.len();
                expected.extend(new);
                if expected.len() == before {
                    continue;
                }
                expected.sort();
                for i in 0..expected.len() {
                    let next = expected.get(i + 1).map(|next| next.start);
                    let SymbolEntry { start, len, .. } = expected[i];
                    if len == 0 {
                        let end = next.unwrap_or_else(|| end_of_last(start));
                        expected[i] = SymbolEntry::new(start, expected[i].origin, end - start);
                    }
                }
            }
            extend(&mut all);
            prop_assert_eq!(all, expected);
        }

        #[test]
        fn places_are_where_a_search_finds_them(starts in starts(), more in starts()) {
            let mut entries = entries(&starts);
            entries.sort();
            let places = PartIndex::of(&entries);
            let near = starts.iter().flat_map(|&s| [s.saturating_sub(1), s, s.saturating_add(1)]);
            for at in near.chain(more).chain([0, u64::MAX]) {
                let expected = entries.partition_point(|entry| entry.start <= at);
                prop_assert_eq!(places.behind(&entries, at), expected);
            }
        }
    }

    #[test]
    fn no_entries_have_no_places() {
        assert_eq!(PartIndex::of(&[]).behind(&[], 7), 0);
    }
}
