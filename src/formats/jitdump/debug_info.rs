//! `JIT_CODE_DEBUG_INFO`: one record in, source lines by code offset out.
//!
//! Decoded only when somebody asks for a line. Three things have to be repaired: V8 and LLVM add the
//! size of an ELF header to every address; V8 writes names out of freed memory, NULs included, for
//! files that the user wrote; and names may refer to the entry before.

use super::bytes::{ByteOrder, until_nul};
use crate::address::Avma;
use crate::runtimes::{Lapse, Producer};

/// Fixed part of the record.
const HEAD_SIZE: usize = 32;
/// Address, line, column; the name follows.
const ENTRY_SIZE: usize = 16;
/// `sizeof(Elf64_Ehdr)`, and where perf once put the text.
const ELF_HEADER_SIZE: u64 = 0x40;
/// Stands for the name of the entry before.
const SAME_NAME: &[u8] = b"\xff";
/// `malloc` puts two words of its own into a freed block.
const OVERWRITTEN: usize = 16;

/// The lines of one piece of code, undecoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugInfo<'a> {
    record: &'a [u8],
    order: ByteOrder,
    code_address: Avma,
}

/// From `offset` on, the code belongs to this line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Line<'a> {
    /// Bytes from the start of the code.
    pub offset: u64,
    /// Line from 1; 0 ends the lines before.
    pub line: u32,
    /// Column from 1 as V8 writes it; 0 or a discriminator from others.
    pub column: u32,
    /// File as the runtime wrote it; empty when it could not be made out.
    pub file: &'a [u8],
}

/// What a record's addresses and names are judged by.
#[derive(Clone, Copy, Debug)]
pub struct CodeOfLines<'a> {
    /// Address at which the code was loaded.
    pub address: Avma,
    /// Its length in bytes.
    pub size: u64,
    /// Its name; V8 puts the file into it.
    pub name: &'a [u8],
    /// Who wrote it.
    pub producer: Producer,
}

/// What a record has that the format does not want.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oddities {
    /// Entries that could be read.
    pub entries: u64,
    /// No entry could be made out.
    pub unreadable: bool,
    /// Some names are no names: they have NULs or other control characters in them, or bytes that are
    /// not UTF-8.
    pub broken_names: bool,
    /// The size of an ELF header stands on top of every address.
    pub shifted: bool,
    /// Entries whose address lies before the code.
    pub before: u64,
    /// Entries whose address lies behind the code.
    pub behind: u64,
}

/// An entry with its address as it stands in the record.
struct RawEntry<'a> {
    address: u64,
    line: u32,
    column: u32,
    name: &'a [u8],
}

impl<'a> DebugInfo<'a> {
    /// The whole record, prefix included; `None` if it is too short.
    pub(crate) fn new(record: &'a [u8], order: ByteOrder) -> Option<Self> {
        let code_address = Avma(order.u64(record, 16)?);
        order.u64(record, 24)?;
        Some(Self {
            record,
            order,
            code_address,
        })
    }

    /// The code that the lines belong to.
    #[must_use]
    pub const fn code_address(&self) -> Avma {
        self.code_address
    }

    /// All lines by rising offset; of several at one offset the last counts.
    #[must_use]
    pub fn lines(&self, code: &CodeOfLines<'a>) -> Vec<Line<'a>> {
        let path = file_in_name(code.name);
        let mut entries = self
            .entries()
            .filter(|entries| self.addresses_fit(entries, code.size))
            .or_else(|| self.equally_long_entries(code.size))
            .unwrap_or_default();
        // Most name the file of the entry before.
        let mut before: (&[u8], &[u8]) = (&[], &[]);
        for entry in &mut entries {
            if entry.name != before.0 {
                before = (entry.name, repaired_name(entry.name, path));
            }
            entry.name = before.1;
        }
        let base = self
            .code_address
            .0
            .saturating_add(self.shift(&entries, code));
        let mut lines: Vec<_> = entries.iter().map(|entry| entry.line_from(base)).collect();
        lines.sort_by_key(|line| line.offset);
        lines
    }

    /// Number of entries that the record claims.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.order.u64(self.record, 24).unwrap_or_default()
    }

    /// What is odd about the entries, seen as those of `code`.
    #[must_use]
    pub fn oddities(&self, code: &CodeOfLines<'a>) -> Oddities {
        let strict = self
            .entries()
            .filter(|entries| self.addresses_fit(entries, code.size));
        let mut odd = Oddities {
            broken_names: strict.is_none(),
            ..Oddities::default()
        };
        let Some(entries) = strict.or_else(|| self.equally_long_entries(code.size)) else {
            odd.unreadable = true;
            return odd;
        };
        let shift = self.shift(&entries, code);
        let start = self.code_address.0.saturating_add(shift);
        let end = start.saturating_add(code.size);
        odd.entries = entries.len() as u64;
        odd.shifted = shift != 0;
        let count = |wanted: &dyn Fn(&RawEntry<'_>) -> bool| {
            entries.iter().filter(|entry| wanted(entry)).count() as u64
        };
        odd.before = count(&|entry| entry.address < start);
        odd.behind = count(&|entry| entry.address > end);
        odd.broken_names |= entries.iter().any(|entry| is_garbage(entry.name));
        odd
    }

    /// The entries as the format has them; `None` if the record does not end where they do.
    fn entries(&self) -> Option<Vec<RawEntry<'a>>> {
        let mut rest = self.record.get(HEAD_SIZE..)?;
        let mut entries: Vec<RawEntry<'a>> = Vec::new();
        for _ in 0..self.count() {
            let mut entry = self.raw_entry(rest)?;
            let (name, behind) = until_nul(rest.get(ENTRY_SIZE..)?)?;
            entry.name = match entries.last() {
                Some(before) if name == SAME_NAME => before.name,
                _ => name,
            };
            entries.push(entry);
            rest = rest.get(ENTRY_SIZE + behind..)?;
        }
        (rest.len() < 8).then_some(entries)
    }

    /// The entries of a record whose names have NULs in them: V8 writes the same name into each, so
    /// all are of one length, and pads the record to 8 bytes.
    fn equally_long_entries(&self, size: u64) -> Option<Vec<RawEntry<'a>>> {
        let body = self.record.get(HEAD_SIZE..)?;
        let count = usize::try_from(self.count()).ok()?;
        (0..8).find_map(|padding| {
            let used = body.len().checked_sub(padding)?;
            let step = used
                .checked_div(count)
                .filter(|step| step * count == used && *step > ENTRY_SIZE)?;
            let entries = body[..used].chunks_exact(step).map(|chunk| {
                let mut entry = self.raw_entry(chunk)?;
                let (end, name) = chunk.get(ENTRY_SIZE..)?.split_last()?;
                entry.name = name;
                (*end == 0).then_some(entry)
            });
            let entries: Vec<_> = entries.collect::<Option<_>>()?;
            self.addresses_fit(&entries, size).then_some(entries)
        })
    }

    /// Address, line and column at the start of `bytes`.
    fn raw_entry(&self, bytes: &'a [u8]) -> Option<RawEntry<'a>> {
        Some(RawEntry {
            address: self.order.u64(bytes, 0)?,
            line: self.order.u32(bytes, 8)?,
            column: self.order.u32(bytes, 12)?,
            name: &[],
        })
    }

    /// True if the addresses lie where lines of this code can lie; if not, names were split wrongly.
    fn addresses_fit(&self, entries: &[RawEntry<'_>], size: u64) -> bool {
        let lowest = self.code_address.0.saturating_sub(ELF_HEADER_SIZE);
        let highest = self
            .code_address
            .0
            .saturating_add(size)
            .saturating_add(2 * ELF_HEADER_SIZE);
        entries
            .iter()
            .all(|entry| lowest <= entry.address && entry.address <= highest)
    }

    /// What the writer put on top of every address.
    fn shift(&self, entries: &[RawEntry<'_>], code: &CodeOfLines<'_>) -> u64 {
        let start = self.code_address.0;
        let shifted_start = start.saturating_add(ELF_HEADER_SIZE);
        let none_below = entries.iter().all(|entry| entry.address >= shifted_start);
        let end = start.saturating_add(code.size);
        let some_behind = entries
            .iter()
            .any(|entry| entry.address >= end && entry.line != 0);
        if none_below && (code.producer.row().has(Lapse::ShiftedLines) || some_behind) {
            ELF_HEADER_SIZE
        } else {
            0
        }
    }
}

impl<'a> RawEntry<'a> {
    /// BEAM's first entry lies before its code: it counts from the start.
    fn line_from(&self, base: u64) -> Line<'a> {
        let offset = self.address.saturating_sub(base);
        Line {
            offset,
            line: self.line,
            column: self.column,
            file: self.name,
        }
    }
}

/// The line in force at `offset` among sorted lines.
#[must_use]
pub fn line_at<'a>(lines: &[Line<'a>], offset: u64) -> Option<Line<'a>> {
    let next = lines.partition_point(|line| line.offset <= offset);
    lines
        .get(next.checked_sub(1)?)
        .filter(|line| line.line != 0)
        .copied()
}

/// A name out of freed memory still ends like the file that the load is named after.
fn repaired_name<'a>(name: &'a [u8], path: Option<NamedFile<'a>>) -> &'a [u8] {
    if !is_garbage(name) {
        return name;
    }
    path.and_then(|path| path.of_length(name.len()))
        .filter(|path| path.get(OVERWRITTEN..) == name.get(OVERWRITTEN..))
        .unwrap_or_default()
}

/// Bytes that no file name has and that freed memory is full of.
fn is_garbage(name: &[u8]) -> bool {
    let head = &name[..name.len().min(OVERWRITTEN)];
    head.iter().any(|&b| b < 0x20) || std::str::from_utf8(name).is_err()
}

/// The file in a name such as `JS:^fib /abs/my file.js:1:13`, whose beginning is not known since both
/// function names and paths may have spaces.
#[derive(Clone, Copy)]
struct NamedFile<'a> {
    /// Up to the end of the path.
    before: &'a [u8],
}

/// Cuts line and column off a name.
fn file_in_name(name: &[u8]) -> Option<NamedFile<'_>> {
    let without_column = strip_number(name)?;
    Some(NamedFile {
        before: strip_number(without_column)?,
    })
}

fn strip_number(name: &[u8]) -> Option<&[u8]> {
    let colon = name.iter().rposition(|&b| b == b':')?;
    let digits = &name[colon + 1..];
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then(|| &name[..colon])
}

impl<'a> NamedFile<'a> {
    /// The path if it has this many bytes.
    fn of_length(self, length: usize) -> Option<&'a [u8]> {
        let at = self.before.len().checked_sub(length)?;
        let before = self.before.get(at.checked_sub(1)?)?;
        (*before == b' ').then(|| &self.before[at..])
    }
}
