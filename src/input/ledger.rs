//! What a run took of this machine's files, for who takes them along (`pjit bundle`).
//!
//! In: each file that a reader settled on, with the place at which the recording expects it; and which bytes of it were
//! looked at. Out: both, in an order that does not depend on threads. A store without a ledger notes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Identity, Judged, Kept};

/// Who wants to know what was read.
#[derive(Default)]
pub struct Ledger {
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    /// By place and path.
    uses: BTreeMap<(PathBuf, PathBuf), Role>,
    bytes: BTreeMap<PathBuf, (Vec<u8>, Role)>,
    /// Places whose files were used and are not to be taken along.
    left_out: BTreeSet<PathBuf>,
    /// Files by the paths at which they were opened.
    opened: BTreeMap<PathBuf, Kept>,
    /// Paths at which another file was later.
    moved: BTreeSet<PathBuf>,
    /// Files in memory, by their first address. A file may be there more than once.
    files: BTreeMap<usize, (usize, Identity)>,
    /// What was looked at: end by start; disjoint.
    reads: BTreeMap<usize, usize>,
}

/// A file that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Where the recording expects it: absolute for what was recorded by path, else a name beside the recording.
    pub place: PathBuf,
    /// Where it comes from.
    pub origin: Origin,
    /// What it is for.
    pub role: Role,
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The file that was read.
    File(Kept),
    /// Another file than that which was read is at this path meanwhile.
    Moved(PathBuf),
    /// No file has them.
    Memory(Vec<u8>),
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// What was mapped.
    Program,
    /// What describes that.
    Debug,
    /// What describes that and is known by a checksum over all of it.
    CheckedDebug,
    /// The kernel's symbols or program.
    Kernel,
    /// What tells of code that was made at run time.
    Jit,
    /// Text that people wrote, or what leads to it.
    Source,
}

impl Ledger {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file was settled on, which was opened at `path` before.
    pub(super) fn used(&self, place: &Path, path: &Path, role: Role) {
        let key = (place.to_owned(), path.to_owned());
        let mut notes = self.notes();
        let known = notes.uses.entry(key).or_insert(role);
        *known = role.min(*known);
    }

    /// A file was used that is not proven to be the recording's.
    pub(super) fn left_out(&self, place: &Path) {
        self.notes().left_out.insert(place.to_owned());
    }

    /// The places of those.
    #[must_use]
    pub fn unproven(&self) -> Vec<PathBuf> {
        self.notes().left_out.iter().cloned().collect()
    }

    /// Bytes were settled on that no file has.
    pub(super) fn used_bytes(&self, place: &Path, bytes: Vec<u8>, role: Role) {
        self.notes().bytes.insert(place.to_owned(), (bytes, role));
    }

    /// A file is in memory from now on.
    pub(super) fn opened(&self, judged: &Judged, bytes: &[u8]) {
        /// A process may have 1024 of them.
        const MOST_DESCRIPTORS: usize = 256;
        let start = bytes.as_ptr().addr();
        let mut notes = self.notes();
        notes.files.insert(start, (bytes.len(), judged.identity()));
        let path = judged.door().path();
        match notes.opened.get(path) {
            Some(known) if known.identity() == judged.identity() => {}
            Some(_) => drop(notes.moved.insert(path.to_owned())),
            None => {
                let kept = Kept::of(judged, notes.opened.len() < MOST_DESCRIPTORS);
                notes.opened.insert(path.to_owned(), kept);
            }
        }
    }

    /// Bytes were looked at.
    pub(super) fn read(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = bytes.as_ptr().addr();
        add(&mut self.notes().reads, start..start + bytes.len());
    }

    /// A string was looked at, and the byte behind it that ends it.
    pub(super) fn read_text(&self, text: &[u8]) {
        let start = text.as_ptr().addr();
        add(&mut self.notes().reads, start..start + text.len() + 1);
    }

    /// All files that were used, by place.
    #[must_use]
    pub fn uses(&self) -> Vec<Use> {
        let notes = self.notes();
        let files = notes.uses.iter().filter_map(|((place, path), role)| {
            let origin = if notes.moved.contains(path) {
                Origin::Moved(path.clone())
            } else {
                Origin::File(notes.opened.get(path)?.clone())
            };
            Some((place, origin, *role))
        });
        let bytes = notes.bytes.iter();
        let bytes =
            bytes.map(|(place, (bytes, role))| (place, Origin::Memory(bytes.clone()), *role));
        let mut all: Vec<Use> = files
            .chain(bytes)
            .map(|(place, origin, role)| Use {
                place: place.clone(),
                origin,
                role,
            })
            .collect();
        all.sort_by(|a, b| a.place.cmp(&b.place));
        all
    }

    /// The file that was opened at a path.
    #[must_use]
    pub fn opened_at(&self, path: &Path) -> Option<Kept> {
        let notes = self.notes();
        let is_moved = notes.moved.contains(path);
        notes.opened.get(path).filter(|_| !is_moved).cloned()
    }

    /// The files that were opened in a folder.
    #[must_use]
    pub fn opened_in(&self, folder: &Path) -> Vec<Kept> {
        let paths: Vec<PathBuf> = self.notes().opened.keys().cloned().collect();
        let inside = paths.iter().filter(|path| path.parent() == Some(folder));
        inside.filter_map(|path| self.opened_at(path)).collect()
    }

    /// Which bytes of a file were looked at; ordered and disjoint.
    #[must_use]
    pub fn reads_of(&self, file: &Kept) -> Vec<Range<usize>> {
        self.reads_in(file.identity())
    }

    fn reads_in(&self, file: Identity) -> Vec<Range<usize>> {
        let notes = self.notes();
        let mut found = BTreeMap::new();
        let copies = notes.files.iter().filter(|(_, (_, own))| *own == file);
        for (&base, &(len, _)) in copies {
            // The range before the first may reach into the file.
            let from = notes.reads.range(..base).next_back().map_or(base, |r| *r.0);
            for (&start, &end) in notes.reads.range(from..base + len) {
                let (start, end) = (start.max(base) - base, end.min(base + len));
                if let Some(end) = end.checked_sub(base).filter(|end| start < *end) {
                    add(&mut found, start..end);
                }
            }
        }
        found.into_iter().map(|(start, end)| start..end).collect()
    }
}

/// Adds a range to those that are there, and joins it with what it touches.
fn add(ranges: &mut BTreeMap<usize, usize>, new: Range<usize>) {
    let Range { mut start, mut end } = new;
    if let Some((&before, &its_end)) = ranges.range(..=start).next_back()
        && its_end >= start
    {
        if its_end >= end {
            return;
        }
        start = before;
    }
    while let Some((&next, &its_end)) = ranges.range(start..=end).next() {
        ranges.remove(&next);
        end = end.max(its_end);
    }
    ranges.insert(start, end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = BTreeMap::new();
        for new in [10..20, 30..40, 50..60, 20..30, 12..14, 58..70, 5..6] {
            add(&mut ranges, new);
        }
        let all: Vec<_> = ranges.into_iter().collect();
        assert_eq!(all, [(5, 6), (10, 40), (50, 70)]);
    }

    #[test]
    fn reads_are_told_by_file() {
        let bytes = vec![0; 300];
        let ledger = Ledger::default();
        for (part, file) in [(0..100, 1), (100..200, 2), (200..300, 1)] {
            let start = bytes[part.clone()].as_ptr().addr();
            let file = (part.len(), (0, file));
            ledger.notes().files.insert(start, file);
        }
        for range in [0..10, 90..110, 205..220] {
            ledger.read(&bytes[range]);
        }
        assert_eq!(ledger.reads_in((0, 1)), [0..20, 90..100]);
        let of_b = ledger.reads_in((0, 2));
        assert_eq!((of_b.len(), of_b[0].clone()), (1, 0..10));
        assert!(ledger.reads_in((0, 3)).is_empty());
    }
}
