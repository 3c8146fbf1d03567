//! Source lines of given addresses of one unit.
//!
//! In: a unit and the addresses that are asked for, ordered. Out: file and line of each, and paths of files by their
//! index. The line program is run once, and no row is kept.

use gimli::{AttributeValue, constants as dw};

use super::dwarf::{DebugInfo, Reader, Unit};
use super::line_rows::Rows;

/// A unit's line program with what its paths are relative to.
pub(super) struct Lines<'a> {
    program: gimli::IncompleteLineProgram<Reader<'a>>,
    /// `DW_AT_comp_dir`
    directory: &'a [u8],
}

/// A row of a line program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineAt {
    /// Index of the file in the program.
    pub(super) file: u64,
    /// Line, or 0.
    pub(super) line: u32,
    /// Column, or 0.
    pub(super) column: u32,
}

impl<'a> Lines<'a> {
    /// The line program of a unit.
    pub(super) fn of(info: &DebugInfo<'a>, unit: &Unit<'a>) -> Option<Self> {
        let (mut entries, specs) = unit.root()?;
        let (mut offset, mut directory, mut name) = (None, None, None);
        for spec in specs {
            let attribute = entries.read_attribute(*spec).ok()?;
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_stmt_list, AttributeValue::DebugLineRef(at)) => offset = Some(at),
                (dw::DW_AT_comp_dir, value) => directory = info.dwarf.attr_string(unit, value).ok(),
                (dw::DW_AT_name, value) => name = info.dwarf.attr_string(unit, value).ok(),
                _ => {}
            }
        }
        for text in [directory, name].into_iter().flatten() {
            info.note_text(text.slice());
        }
        // A split unit says nothing of the files by which it names its declarations: they are those at the beginning.
        let is_split = info.dwarf.file_type == gimli::DwarfFileType::Dwo;
        let offset = offset.or(is_split.then_some(gimli::DebugLineOffset(0)));
        let offset = offset.filter(|&at| info.may_read_lines(at))?;
        let address_size = unit.header.address_size();
        let program = info
            .dwarf
            .debug_line
            .program(offset, address_size, directory, name)
            .ok()?;
        Some(Self {
            program,
            directory: directory.map_or(&[], |d| d.slice()),
        })
    }

    /// Where the code at each of the addresses (ordered) comes from. Line 0 is code that belongs to no line; with `fills`, what
    /// belongs to none gets that of the code before it in the same function.
    pub(super) fn find(&self, addresses: &[u64], fills: bool) -> Vec<Option<LineAt>> {
        let mut found = vec![None; addresses.len()];
        let mut missing = addresses.len();
        let mut rows = Rows::of(self.program.header());
        let mut previous: Option<LineAt> = None;
        // Within a sequence addresses rise: the first that is not in front of the previous row, and the place of it.
        let (mut wanted, mut next) = (u64::MAX, 0);
        let from = |index: usize| addresses.get(index).copied().unwrap_or(u64::MAX);
        // Rows do not overlap, but a damaged program's may, and then each covers all addresses again.
        let mut left = addresses.len().saturating_mul(64);
        while missing > 0
            && let Some(row) = rows.next()
        {
            match previous {
                // What a linker threw away begins at 0, where no code is.
                None if row.address == 0 => wanted = u64::MAX,
                None => {
                    next = addresses.partition_point(|&at| at < row.address);
                    wanted = from(next);
                }
                Some(line) if wanted < row.address => {
                    let rest = addresses[next..].iter().take(left);
                    let inside = rest.take_while(|&&at| at < row.address).count();
                    left -= inside;
                    for slot in &mut found[next..next + inside] {
                        // The first that is told of an address counts.
                        missing -= usize::from(slot.is_none());
                        slot.get_or_insert(line);
                    }
                    next += inside;
                    wanted = from(next);
                }
                Some(_) => {}
            }
            let line = LineAt {
                file: row.file,
                line: u32::try_from(row.line).unwrap_or(0),
                column: u32::try_from(row.column).unwrap_or(0),
            };
            let line = match previous {
                Some(before) if fills && line.line == 0 => before,
                _ => line,
            };
            previous = (!row.is_end).then_some(line);
        }
        found
    }

    /// The folder in which the compiler worked; empty if that is not told.
    pub(super) fn directory(&self) -> String {
        let directory = &self.directory[..self.directory.len().min(MAX_PART)];
        String::from_utf8_lossy(directory).into_owned()
    }

    /// The checksum of a file's text, if the compiler wrote it down (DWARF 5).
    pub(super) fn checksum(&self, file: u64) -> Option<[u8; 16]> {
        let header = self.program.header();
        let entry = header.file(file).filter(|_| header.file_has_md5())?;
        Some(*entry.md5()).filter(|md5| *md5 != [0; 16])
    }

    /// The path of a file: absolute, as far as the compiler told.
    pub(super) fn path(&self, info: &DebugInfo<'a>, unit: &Unit<'a>, file: u64) -> Option<String> {
        let header = self.program.header();
        let entry = header.file(file)?;
        let text = |value| {
            let text = info.dwarf.attr_string(unit, value).ok()?.slice();
            info.note_text(text);
            Some(text)
        };
        let name = text(entry.path_name())?;
        let mut path = Vec::new();
        let directory = entry.directory(header).and_then(text).unwrap_or_default();
        if !name.starts_with(b"/") {
            if !directory.starts_with(b"/") {
                push_part(&mut path, self.directory);
            }
            push_part(&mut path, directory);
        }
        push_part(&mut path, name);
        Some(String::from_utf8_lossy(&path).into_owned())
    }
}

/// Longest name of a file or a directory (`PATH_MAX`); sections of strings may be megabytes without an end of string.
const MAX_PART: usize = 4096;

fn push_part(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() && !path.ends_with(b"/") && !part.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(&part[..part.len().min(MAX_PART)]);
}
