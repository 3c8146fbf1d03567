//! The mappings of one process at one time, as a persistent map: taking a snapshot costs nothing,
//! and a change costs logarithmic time however many snapshots share the rest.
//!
//! The rules are perf's (`util/maps.c`): a new mapping replaces whatever it overlaps; what sticks
//! out of it on either side stays, the tail with its file offset moved on.

use imbl::OrdMap;

use crate::address::{Avma, AvmaRange, FileOffset};
use crate::dso::DsoId;

/// A piece of a file (or anonymous memory) in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it lies.
    pub range: AvmaRange,
    /// What its first byte is in the file.
    pub offset: FileOffset,
    /// What is mapped.
    pub dso: DsoId,
    /// Whether it could be executed.
    pub executable: bool,
    /// Anonymous memory, or memory that runtimes use like it (memfd, `/dev/zero`).
    pub anonymous: bool,
    /// Anonymous memory over the code of the program itself, which has been copied there: for large pages, say. It has the file
    /// and the position of that code.
    pub copied: bool,
    /// Anonymous memory that was mapped after the process had mapped its dump: `perf inject --jit` drops
    /// such mappings (`util/jitdump.c`), so perf finds no object where the dump has no code.
    pub behind_dump: bool,
    /// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC`, as recorded.
    pub rights: u8,
    /// `MAP_SHARED`
    pub shared: bool,
    /// Of the mapped file, 0 when not told.
    pub inode: u64,
    /// What to add to `offset` for the offset that was recorded: not 0 only where there is no file.
    pub recorded: u64,
}

impl Mapping {
    /// Position in the file of an address inside.
    #[must_use]
    pub const fn file_offset(&self, at: Avma) -> FileOffset {
        self.offset.plus(at.since(self.range.start))
    }
}

/// All mappings of a process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct MapTable {
    by_start: OrdMap<u64, Mapping>,
}

impl MapTable {
    /// The mapping that contains `at`.
    #[must_use]
    pub fn find(&self, at: Avma) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.get_prev(&at.0)?;
        mapping.range.contains(at).then_some(mapping)
    }

    /// The first mapping that begins behind `at`.
    #[must_use]
    pub fn next_behind(&self, at: Avma) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.get_next(&at.0.checked_add(1)?)?;
        Some(mapping)
    }

    /// Puts a mapping in, cutting what it overlaps. An empty one has no effect.
    pub fn insert(&mut self, new: Mapping) {
        if new.range.is_empty() {
            return;
        }
        while let Some(old) = self.overlapping(&new.range) {
            self.by_start.remove(&old.range.start.0);
            if old.range.start < new.range.start {
                let head = Mapping {
                    range: AvmaRange {
                        start: old.range.start,
                        end: new.range.start,
                    },
                    ..old
                };
                self.by_start.insert(head.range.start.0, head);
            }
            if old.range.end > new.range.end {
                let tail = Mapping {
                    range: AvmaRange {
                        start: new.range.end,
                        end: old.range.end,
                    },
                    offset: old.file_offset(new.range.end),
                    ..old
                };
                self.by_start.insert(tail.range.start.0, tail);
            }
        }
        self.by_start.insert(new.range.start.0, new);
    }

    /// Where in a DSO the code of a range is, if all of it lies in executable mappings of that DSO, one behind the other as they
    /// are in the file.
    #[must_use]
    pub fn code_in(&self, dso: DsoId, range: AvmaRange) -> Option<FileOffset> {
        let first = self.find(range.start)?;
        let (mut at, start) = (range.start, first.file_offset(range.start));
        while at < range.end {
            let mapping = self.find(at)?;
            let is_code = mapping.copied || mapping.executable && !mapping.anonymous;
            let follows = mapping.file_offset(at) == start.plus(at.since(range.start));
            if mapping.dso != dso || !is_code || !follows {
                return None;
            }
            at = mapping.range.end;
        }
        Some(start)
    }

    /// Takes what a DSO has within a range out, and returns it.
    pub(super) fn remove(&mut self, range: AvmaRange, dso: DsoId) -> Vec<Mapping> {
        let inside = self.by_start.range(range.start.0..range.end.0);
        let removed = inside.filter(|(_, mapping)| mapping.dso == dso);
        let removed: Vec<_> = removed.map(|(_, mapping)| *mapping).collect();
        for mapping in &removed {
            self.by_start.remove(&mapping.range.start.0);
        }
        removed
    }

    /// All mappings by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }

    /// Some mapping that shares an address with `range`.
    fn overlapping(&self, range: &AvmaRange) -> Option<Mapping> {
        // The last mapping that starts before the range's end is the only candidate for each round.
        let (_, last) = self.by_start.get_prev(&(range.end.0 - 1))?;
        last.range.overlaps(range).then_some(*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Idx;

    fn map(start: u64, end: u64, offset: u64, dso: u32) -> Mapping {
        Mapping {
            range: AvmaRange {
                start: Avma(start),
                end: Avma(end),
            },
            offset: FileOffset(offset),
            dso: DsoId::from_usize(dso as usize),
            executable: true,
            anonymous: false,
            copied: false,
            behind_dump: false,
            rights: 5,
            shared: false,
            inode: 0,
            recorded: 0,
        }
    }

    #[test]
    fn a_mapping_in_the_middle_leaves_both_ends() {
        let mut t = MapTable::default();
        t.insert(map(0x1000, 0x5000, 0x100, 1));
        let before = t.clone();
        t.insert(map(0x2000, 0x3000, 0, 2));
        let all: Vec<_> = t.iter().copied().collect();
        assert_eq!(
            all,
            [
                map(0x1000, 0x2000, 0x100, 1),
                map(0x2000, 0x3000, 0, 2),
                map(0x3000, 0x5000, 0x2100, 1)
            ]
        );
        assert_eq!(
            before.find(Avma(0x2000)).map(|m| m.dso),
            Some(DsoId::from_usize(1)),
            "a snapshot does not change"
        );
        assert_eq!(
            t.find(Avma(0x4fff)).map(|m| m.file_offset(Avma(0x4fff)).0),
            Some(0x40ff)
        );
        assert_eq!(t.find(Avma(0x5000)), None);
    }

    #[test]
    fn a_mapping_over_several_replaces_them() {
        let mut t = MapTable::default();
        for i in 0..4 {
            t.insert(map(0x1000 * i, 0x1000 * i + 0x800, 0, 1));
        }
        t.insert(map(0x400, 0x2400, 0, 2));
        let all: Vec<_> = t.iter().copied().collect();
        assert_eq!(
            all,
            [
                map(0, 0x400, 0, 1),
                map(0x400, 0x2400, 0, 2),
                map(0x2400, 0x2800, 0x400, 1),
                map(0x3000, 0x3800, 0, 1)
            ]
        );
        t.insert(map(0x10, 0x10, 0, 3));
        assert_eq!(t.iter().count(), 4, "an empty mapping has no effect");
    }

    #[test]
    fn code_of_one_file_is_found_where_it_lies_together() {
        let range = |start, end| AvmaRange {
            start: Avma(start),
            end: Avma(end),
        };
        let (program, other) = (DsoId::from_usize(1), DsoId::from_usize(2));
        let mut t = MapTable::default();
        t.insert(map(0x1000, 0x3000, 0x100, 1));
        t.insert(map(0x3000, 0x5000, 0x2100, 1));
        t.insert(map(0x5000, 0x6000, 0x100, 1));
        t.insert(map(0x7000, 0x8000, 0, 2));
        assert_eq!(
            t.code_in(program, range(0x2000, 0x5000)),
            Some(FileOffset(0x1100))
        );
        assert_eq!(t.code_in(other, range(0x2000, 0x5000)), None);
        assert_eq!(
            t.code_in(program, range(0x4000, 0x5800)),
            None,
            "not as in the file"
        );
        assert_eq!(
            t.code_in(other, range(0x7800, 0x8001)),
            None,
            "more than the file"
        );
        assert_eq!(
            t.code_in(other, range(0x7800, 0x8000)),
            Some(FileOffset(0x800))
        );
    }
}
