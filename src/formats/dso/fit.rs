//! Whether a file is the one that was mapped, by its program headers.
//!
//! In: an ELF file, and which of its bytes a process had mapped executable. Out: whether the file's own idea of its
//! executable segments agrees. The kernel and ld.so map whole pages of segments, so a file whose code lies elsewhere
//! is another one that had the same path: in a container, or before an update.

use super::elf::{ElfFile, Segment};
use crate::address::FileOffset;
use crate::arch::Arch;

/// A part of a file that was mapped executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedPart {
    /// From where on.
    pub offset: FileOffset,
    /// How many bytes.
    pub len: u64,
}

/// How well a file fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fit {
    /// Its segments are elsewhere.
    Refuted,
    /// Nothing speaks against it.
    Possible,
    /// A whole segment was mapped, neither more nor less.
    Exact,
}

/// Whether a whole executable segment was mapped, or the room for all segments, as loaders do first.
pub(super) fn is_mapped_whole(elf: &ElfFile<'_>, mapped: &[MappedPart]) -> bool {
    fit(elf, mapped) == Fit::Exact || mapped.iter().any(|part| is_room(elf, part))
}

fn is_room(elf: &ElfFile<'_>, part: &MappedPart) -> bool {
    let page = |at: u64| at - at % 0x1000;
    let (Some(first), Some(last)) = (elf.segments().first(), elf.segments().last()) else {
        return false;
    };
    let end = last.svma.0.saturating_add(last.mem_size);
    let len = end.saturating_sub(page(first.svma.0));
    first.executable
        && part.offset.0 == page(first.file_offset.0)
        && len.checked_next_multiple_of(0x1000) == Some(part.len)
}

/// The best fit of all that was mapped of the file: other files may have been mapped by the same name.
pub(super) fn fit(elf: &ElfFile<'_>, mapped: &[MappedPart]) -> Fit {
    // Object files (wasmtime's) have no segments; nothing is known of how they are mapped.
    if elf.segments().is_empty() {
        return Fit::Possible;
    }
    let fits = mapped.iter().map(|part| fit_of(elf, part));
    fits.max().unwrap_or(Fit::Possible)
}

/// Where the code of a program lay in its file, by a debug file that was cut from it and by what was mapped: a mapping is as
/// long as the pages of its segment. Nothing if that is not told for certain.
pub(super) fn code_of_program(debug: &ElfFile<'_>, mapped: &[MappedPart]) -> Option<Vec<Segment>> {
    let x86 = debug.arch().is_some_and(Arch::is_x86);
    let pages: &[u64] = if x86 { &[0x1000] } else { &[0x1000, 0x1_0000] };
    pages
        .iter()
        .find_map(|&page| code_in_pages(debug, mapped, page))
}

fn code_in_pages(debug: &ElfFile<'_>, mapped: &[MappedPart], page: u64) -> Option<Vec<Segment>> {
    let first = |s: &Segment| s.svma.0 - s.svma.0 % page;
    let behind = |s: &Segment| {
        let end = s.svma.0.saturating_add(s.mem_size);
        end.checked_next_multiple_of(page).unwrap_or(u64::MAX)
    };
    let loads = debug.segments();
    let end = loads.iter().map(behind).max()?;
    let mut found: Vec<(usize, Segment)> = Vec::new();
    for part in mapped.iter().filter(|part| part.offset.0 % page == 0) {
        for (number, load) in loads.iter().enumerate().filter(|(_, s)| s.executable) {
            let own = behind(load) - first(load);
            // Loaders first map the room for all segments with the rights of the first.
            let room = (number == 0).then(|| end.saturating_sub(first(load)));
            if part.len != own && Some(part.len) != room {
                continue;
            }
            let placed = Segment {
                file_offset: part.offset.plus(load.svma.0 % page),
                file_size: load.mem_size,
                ..*load
            };
            if !found.contains(&(number, placed)) {
                found.push((number, placed));
            }
        }
    }
    let is_alone = |at: usize| {
        let (number, segment) = found[at];
        let others = found.iter().enumerate().filter(|(other, _)| *other != at);
        others.clone().all(|(_, (other, _))| *other != number)
            && others
                .clone()
                .all(|(_, (_, s))| s.file_offset != segment.file_offset)
    };
    let is_certain = !found.is_empty() && (0..found.len()).all(is_alone);
    is_certain.then(|| found.into_iter().map(|(_, segment)| segment).collect())
}

fn fit_of(elf: &ElfFile<'_>, part: &MappedPart) -> Fit {
    // Segments are mapped in whole pages of the machine, which may be larger on others than x86.
    const SMALL: u64 = 0x1000;
    let x86 = elf.arch().is_some_and(Arch::is_x86);
    let page_sizes = [SMALL, if x86 { SMALL } else { 0x1_0000 }];
    let part = part.offset.0..part.offset.0.saturating_add(part.len);
    let whole_file = part.start == 0 && part.end >= elf.bytes().len() as u64;
    // `perf inject` invents mappings that begin in the middle of a page.
    if whole_file || part.start % SMALL != 0 {
        return Fit::Possible;
    }
    let pages = |segment: &Segment, page: u64| {
        let (first, behind) = (
            segment.file_offset.0,
            segment.file_offset.0.saturating_add(segment.file_size),
        );
        first - first % page..behind.checked_next_multiple_of(page).unwrap_or(u64::MAX)
    };
    let fit_of_segment = |(number, segment): (usize, &Segment)| {
        let [small, large] = page_sizes.map(|page| pages(segment, page));
        // Loaders first map the room for all segments with the rights of the first.
        let room = number == 0 && (part.start == small.start || part.start == large.start);
        if part == small || part == large {
            Fit::Exact
        } else if room || (large.start <= part.start && part.end <= large.end) {
            Fit::Possible
        } else {
            Fit::Refuted
        }
    };
    let loads = elf.segments().iter().enumerate();
    let fits = loads.filter(|(_, s)| s.executable).map(fit_of_segment);
    fits.max().unwrap_or(Fit::Possible)
}
