//! One `perf-PID.map`: bytes in, address ranges with names out, sorted and without overlaps.
//!
//! A line is `START SIZE NAME`, both numbers hexadecimal. There are no times: of entries that share
//! addresses the later line wins, because runtimes append what they generate. What it leaves of an older entry stays:
//! that was there at some time, and nobody says that anything else was.

use std::collections::BTreeMap;

use super::overlap::{is_slight, untouched};
use crate::address::{Avma, AvmaRange};

/// An entry without a size reaches to the next one, but not further than perf lets a symbol reach.
const MAX_GUESSED_SIZE: u64 = 4096;
/// Larger entries are damage.
const MAX_SIZE: u64 = 1 << 32;
/// WAMR's lines end here when the name is longer, without a newline.
const WAMR_LINE: usize = 127;

/// What lies at some addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapEntry<'a> {
    /// First address.
    pub start: Avma,
    /// Length in bytes.
    pub size: u64,
    /// Arbitrary bytes.
    pub name: &'a [u8],
}

/// A whole perf map.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PerfMap<'a> {
    /// Sorted by address, without overlaps.
    pub entries: Vec<MapEntry<'a>>,
    /// Numbers of entries whose code begins so many bytes earlier, in order: a later line has its beginning.
    pub beheaded: Vec<(usize, u64)>,
    /// Where the later line is of another name, in order, not touching: the older function was there for a time, and no line tells
    /// for how long.
    pub reused: Vec<AvmaRange>,
    /// Where a later line tells again, of whatever name, in order, not touching.
    pub retold: Vec<AvmaRange>,
    /// Lines that are no entries.
    pub malformed: u64,
}

/// Reads a whole perf map. A last line that is not ended by a newline is used only if its name is
/// there: the file may still be written.
#[must_use]
pub fn parse(bytes: &[u8]) -> PerfMap<'_> {
    let mut builder = Builder::default();
    for line in bytes.split(|&b| b == b'\n') {
        builder.line(line.strip_suffix(b"\r").unwrap_or(line));
    }
    builder.finish()
}

#[derive(Default)]
struct Builder<'a> {
    /// By start.
    entries: BTreeMap<u64, Part<'a>>,
    /// As in [`PerfMap::reused`], but as they came.
    reused: Vec<AvmaRange>,
    retold: Vec<AvmaRange>,
    malformed: u64,
}

/// An entry, or what is left of one.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// 0 if not told.
    size: u64,
    /// Bytes of its code before.
    missing: u64,
    name: &'a [u8],
}

impl<'a> Builder<'a> {
    fn line(&mut self, line: &'a [u8]) {
        let mut rest = Some(line);
        while let Some(part) = rest.take() {
            match entry(part) {
                Some((entry, glued)) => {
                    self.insert(entry);
                    rest = glued;
                }
                None => self.malformed += u64::from(!part.iter().all(u8::is_ascii_whitespace)),
            }
        }
    }

    /// Takes its addresses from older entries.
    fn insert(&mut self, entry: MapEntry<'a>) {
        let new = AvmaRange::new(entry.start, entry.size.max(1));
        let before = self.entries.range(..new.start.0).next_back();
        if let Some((&at, part)) = before
            && at.saturating_add(part.size) > new.start.0
        {
            self.cut(at, new, entry.name);
        }
        while let Some((&inside, _)) = self.entries.range(new.start.0..new.end.0).next() {
            self.cut(inside, new, entry.name);
        }
        let part = Part {
            size: entry.size,
            missing: 0,
            name: entry.name,
        };
        self.entries.insert(new.start.0, part);
    }

    /// Leaves of the entry at an address what newer code does not touch.
    fn cut(&mut self, at: u64, new: AvmaRange, name: &[u8]) {
        let Some(part) = self.entries.remove(&at) else {
            return;
        };
        let old = AvmaRange::new(Avma(at), part.size);
        // Sizes that are rounded up reach into the next function.
        if old.is_empty() || !is_slight(old, new) {
            let end = if old.is_empty() { new.end } else { old.end };
            let both = AvmaRange {
                start: old.start.max(new.start),
                end: end.min(new.end),
            };
            self.retold.push(both);
            if part.name != name {
                self.reused.push(both);
            }
        }
        for left in untouched(old, new) {
            let left_part = Part {
                size: left.len(),
                missing: part.missing + left.start.since(old.start),
                ..part
            };
            self.entries.insert(left.start.0, left_part);
        }
    }

    fn finish(self) -> PerfMap<'a> {
        let parts = self.entries.iter().enumerate();
        let beheaded = parts.filter(|(_, (_, part))| part.missing > 0);
        let beheaded = beheaded.map(|(number, (_, part))| (number, part.missing));
        let beheaded = beheaded.collect();
        let mut entries: Vec<_> = self
            .entries
            .into_iter()
            .map(|(start, part)| MapEntry {
                start: Avma(start),
                size: part.size,
                name: part.name,
            })
            .collect();
        let mut next = None;
        for entry in entries.iter_mut().rev() {
            if entry.size == 0 {
                let room = next.map_or(1, |next: Avma| next.since(entry.start));
                entry.size = room.min(MAX_GUESSED_SIZE);
            }
            next = Some(entry.start);
        }
        PerfMap {
            entries,
            beheaded,
            reused: joined(self.reused),
            retold: joined(self.retold),
            malformed: self.malformed,
        }
    }
}

/// The same addresses as ranges in order that do not touch.
fn joined(mut ranges: Vec<AvmaRange>) -> Vec<AvmaRange> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<AvmaRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The entry of one line, and what is glued to its end.
fn entry(line: &[u8]) -> Option<(MapEntry<'_>, Option<&[u8]>)> {
    let (start, rest) = number(line.trim_ascii_start())?;
    let (size, rest) = number(blanks(rest)?)?;
    let two_blanks = rest.starts_with(b"  ");
    let name = blanks(rest)?;
    let (name, glued) = match two_blanks.then(|| glued_line(line, name)).flatten() {
        Some(at) => (&name[..at], Some(&name[at..])),
        None => (name, None),
    };
    (size <= MAX_SIZE && !name.is_empty()).then_some((
        MapEntry {
            start: Avma(start),
            size,
            name,
        },
        glued,
    ))
}

/// A hexadecimal number, with or without `0x`, and what follows it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes
        .strip_prefix(b"0x")
        .or_else(|| bytes.strip_prefix(b"0X"))
        .unwrap_or(bytes);
    let length = digits
        .iter()
        .position(|b| !b.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    let text = std::str::from_utf8(&digits[..length]).ok()?;
    Some((u64::from_str_radix(text, 16).ok()?, &digits[length..]))
}

/// What follows at least one blank.
fn blanks(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.trim_ascii_start();
    (rest.len() < bytes.len()).then_some(rest)
}

/// Where in `name` the next line of WAMR begins: an address of twelve digits, two blanks, a size, two
/// blanks.
fn glued_line(line: &[u8], name: &[u8]) -> Option<usize> {
    const ADDRESS: usize = 12;
    if line.len() <= WAMR_LINE {
        return None;
    }
    (1..name.len().saturating_sub(ADDRESS)).find(|&at| {
        let (address, rest) = name[at..].split_at(ADDRESS);
        let size = rest.strip_prefix(b"  ").and_then(number);
        address.iter().all(u8::is_ascii_hexdigit)
            && size.is_some_and(|(_, behind)| {
                behind.starts_with(b"  ") && behind.len() < rest.len() - 2
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(u64, u64, String)> {
        parse(text.as_bytes())
            .entries
            .iter()
            .map(|e| {
                (
                    e.start.0,
                    e.size,
                    String::from_utf8_lossy(e.name).into_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn very_many_glued_lines_need_no_stack() {
        let line = "7f0000000000  10  f".repeat(200_000);
        let map = parse(line.as_bytes());
        assert_eq!(map.entries.len(), 1);
        assert!(map.reused.len() <= 1);
    }

    #[test]
    fn accepts_every_spelling_of_numbers_and_blanks() {
        let map =
            "1000 10 a\n0x2000 0x10 b c\n0000000000003000 000010 d\n  4000\t10  e\r\nABCD0 F f\n";
        assert_eq!(
            named(map),
            [
                (0x1000, 0x10, "a".into()),
                (0x2000, 0x10, "b c".into()),
                (0x3000, 0x10, "d".into()),
                (0x4000, 0x10, "e".into()),
                (0xabcd0, 0xf, "f".into()),
            ]
        );
    }

    #[test]
    fn later_lines_win() {
        let map = parse(b"1000 100 old\n1010 10 inside\n1080 100 behind\n10f0 20 tail\n");
        let got: Vec<_> = map.entries.iter().map(|e| (e.start.0, e.size)).collect();
        assert_eq!(
            got,
            [
                (0x1000, 0x10),
                (0x1010, 0x10),
                (0x1020, 0x60),
                (0x1080, 0x70),
                (0x10f0, 0x20),
                (0x1110, 0x70)
            ]
        );
        assert_eq!(map.beheaded, [(2, 0x20), (5, 0x90)]);
        let reused: Vec<_> = map.reused.iter().map(|r| (r.start.0, r.end.0)).collect();
        // Few bytes of a large function are the end of its neighbour, as sizes are rounded up.
        assert_eq!(reused, [(0x1080, 0x1100)]);
    }

    /// Sizes that are rounded up reach into the next function, in whatever order they are told.
    #[test]
    fn a_few_bytes_do_not_take_the_whole_name() {
        let lines = |starts: &mut dyn Iterator<Item = u64>| {
            let lines = starts.map(|start| format!("{start:x} 80 f{start:x}\n"));
            lines.collect::<String>()
        };
        let starts = || (0..20).map(|number| 0x1000 + number * 0x78);
        for text in [lines(&mut starts()), lines(&mut starts().rev())] {
            let entries = named(&text);
            for start in starts() {
                let own = |(at, size, _): &&(u64, u64, String)| {
                    *at <= start + 0x20 && start + 0x20 < at + size
                };
                let found = entries.iter().find(own).map(|(_, _, name)| name.clone());
                assert_eq!(found, Some(format!("f{start:x}")));
            }
            assert_eq!(parse(text.as_bytes()).reused, []);
        }
        let map = parse(b"1000 100 old\n1000 10 new\n");
        let tail = map.entries.last().map(|entry| (entry.start.0, entry.name));
        assert_eq!(tail, Some((0x1010, &b"old"[..])));
    }

    #[test]
    fn entries_without_size_reach_to_the_next() {
        assert_eq!(
            named("1000 0 a\n1010 0 b\n9000000 0 c\n"),
            [
                (0x1000, 0x10, "a".into()),
                (0x1010, 4096, "b".into()),
                (0x900_0000, 1, "c".into())
            ]
        );
    }

    #[test]
    fn lines_that_are_no_entries_are_counted() {
        let map = parse(
            b"\nxyz\n1000\n1000 10\n1000 10 \nfffffffffffffffff 1 a\n1 fffffffffff x\n2000 1 ok",
        );
        assert_eq!((map.entries.len(), map.malformed), (1, 6));
    }

    #[test]
    fn splits_wamr_lines_that_were_cut_and_glued() {
        let cut = format!("7f0011110000  40  {}", "n".repeat(WAMR_LINE - 18));
        let glued = format!("{cut}7f0011110040  20  aot_func#2\n");
        assert_eq!(
            named(&glued)[1],
            (0x7f00_1111_0040, 0x20, "aot_func#2".into())
        );
        // The same digits in a short line are a name.
        assert_eq!(named("1000  1  x 7f0011110040  20  y\n").len(), 1);
    }

    #[test]
    fn any_bytes_give_sorted_disjoint_entries() {
        let mut seed = 7_u32;
        let alphabet = b"0123456789abcdefx \t\r\nzJS:\xff";
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..400)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    alphabet[(seed >> 16) as usize % alphabet.len()]
                })
                .collect();
            let map = parse(&bytes);
            for pair in map.entries.windows(2) {
                assert!(
                    pair[0].start.0.saturating_add(pair[0].size) <= pair[1].start.0,
                    "{pair:?}"
                );
            }
        }
    }
}
