//! What tells that a file is the one that was mapped.
//!
//! A recording names files by path, and several files may have had one path: in containers, and before and after a build.
//! So a file is used for its evidence ([`Evidence`]), and where nothing tells which of several it is, for none of them.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use smallvec::SmallVec;

use super::elf::ElfFile;
use super::fit::{Fit, MappedPart, fit};
use super::{BuildId, Dso};
use crate::address::Timestamp;
use crate::find::marker_name;
use crate::input::FileFacts;

/// Why a file is taken for the one that was mapped; the better ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Evidence {
    /// It has the path, and nothing speaks against it.
    Path,
    /// One of its segments was mapped, neither more nor less.
    Fit,
    /// The recording's table has its build ID for the path, and its segments may be what was mapped.
    Table,
    /// The record of a mapping has its inode, and it was not written since.
    Inode,
    /// The record of a mapping has its build ID.
    Id,
}

impl Evidence {
    /// In a word or two.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Path => "by its path alone",
            Self::Fit => "by the size and place of its code",
            Self::Table => "by the build ID in the recording's table",
            Self::Inode => "by the inode that was mapped",
            Self::Id => "by the build ID that was mapped",
        }
    }

    /// As answers in JSON name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Fit => "fit",
            Self::Table => "table",
            Self::Inode => "inode",
            Self::Id => "id",
        }
    }
}

/// Device and inode of a mapped file: major, minor, inode, generation (MMAP2).
pub type Inode = (u32, u32, u64, u64);

/// Whether two records tell of one file. perf learns of files that were mapped before it began from /proc, which tells no
/// generation.
pub(super) fn is_same_file(a: Inode, b: Inode) -> bool {
    (a.0, a.1, a.2) == (b.0, b.1, b.2) && (a.3 == b.3 || a.3 == 0 || b.3 == 0)
}

/// When a recording of this machine was made, by the clock of files.
pub type Span = Range<SystemTime>;

/// Another file that had the path of a DSO.
#[derive(Debug, Clone)]
pub(super) struct Rival {
    inode: Option<Inode>,
    build_id: Option<BuildId>,
    mapped: SmallVec<[MappedPart; 2]>,
}

/// Whether the recording knows several builds of one path.
fn has_several_builds(dso: &Dso) -> bool {
    let mut ids = dso.table_ids.iter();
    let first = ids.next();
    ids.any(|id| first.is_some_and(|first| !first.matches(id)))
}

/// Of more files with one path none is told from the others by what was mapped of them.
pub(super) const MOST_RIVALS: usize = 64;

impl Rival {
    pub(super) fn of(dso: &Dso) -> Self {
        Self {
            inode: dso.inode,
            build_id: dso.build_id.filter(|_| dso.sure_of_id),
            mapped: dso.mapped.clone(),
        }
    }

    /// Whether it is another file than the DSO's. Of one file there may be several DSOs: a mount has a device of its own. But files of two
    /// devices may have one number, and are two where the path has several builds.
    fn is_other(&self, dso: &Dso) -> bool {
        let [Some(own), Some(of_dso)] = [self.inode, dso.inode] else {
            return true;
        };
        let is_other_mount = (own.0, own.1) != (of_dso.0, of_dso.1);
        let is_same = if is_other_mount {
            own.2 == of_dso.2 && !has_several_builds(dso)
        } else {
            is_same_file(own, of_dso)
        };
        !is_same
    }

    /// Whether an inode does not tell it from the DSO's file: the number was used again for the other one, perhaps on another device than
    /// that of the file that was found.
    fn has_same_number(&self, dso: &Dso, facts: Option<FileFacts>) -> bool {
        let [Some(own), Some(of_dso)] = [self.inode, dso.inode] else {
            return false;
        };
        let is_told = (own.0, own.1) != (of_dso.0, of_dso.1)
            && facts.is_some_and(|facts| facts.device == (of_dso.0, of_dso.1));
        own.2 == of_dso.2 && !is_told
    }

    /// Whether it may be this file.
    fn may_be(&self, elf: &ElfFile<'_>) -> bool {
        match (self.build_id, elf.build_id()) {
            (Some(own), Some(found)) => own.matches(&found),
            (Some(_), None) => false,
            (None, _) => fit(elf, &self.mapped) != Fit::Refuted,
        }
    }
}

/// What speaks against a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// It has no build ID, where the recorded one has this.
    NoBuildId(BuildId),
    /// It is of another build than the recorded one.
    OtherBuild { found: BuildId, want: BuildId },
    /// Its segments are not what was mapped.
    NotMapped,
    /// It was there before the recording ended, and another was mapped.
    OtherInode,
    /// It was written after the recording had ended, and nothing tells that it is the same again.
    WrittenSince,
    /// It was written after it was mapped, while it was recorded: what was mapped is gone.
    Overwritten,
    /// Others with its path may be it as well.
    Ambiguous,
}

impl Against {
    /// In some words.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NoBuildId(_) => "without a build ID, and one was recorded",
            Self::OtherBuild { .. } => "another build",
            Self::NotMapped => "its code lies elsewhere than what was mapped",
            Self::OtherInode => "another inode than what was mapped",
            Self::WrittenSince => "written after the recording ended",
            Self::Overwritten => "written after it was mapped",
            Self::Ambiguous => "one of several that had this path",
        }
    }
}

/// What tells that a file is the one that was mapped, or what speaks against it. `is_system`: it has the recorded path on this
/// machine, and not below some folder. `here` is when it was made, and when that begins by the recording's clock.
pub(super) fn judge(
    elf: &ElfFile<'_>,
    facts: Option<FileFacts>,
    dso: &Dso,
    (here, began): (Option<&Span>, Option<Timestamp>),
    is_system: bool,
) -> Result<Evidence, Against> {
    let found = elf.build_id();
    if let Some(want) = dso.build_id.filter(|_| dso.sure_of_id) {
        return match found {
            Some(found) if want.matches(&found) => Ok(Evidence::Id),
            Some(found) => Err(Against::OtherBuild { found, want }),
            // perf: a DSO with a build ID is only read from files that have it.
            None => Err(Against::NoBuildId(want)),
        };
    }
    let listed = |id: &BuildId| dso.table_ids.iter().any(|other| other.matches(id));
    let in_table = found.as_ref().is_some_and(listed);
    let wrong_build = dso
        .table_ids
        .first()
        .filter(|_| !in_table)
        .map(|&want| match found {
            Some(found) => Against::OtherBuild { found, want },
            None => Against::NoBuildId(want),
        });
    let fits = fit(elf, &dso.mapped);
    let mut rivals = dso.rivals.iter().filter(|rival| rival.is_other(dso));
    let was_used_again = rivals
        .clone()
        .any(|rival| rival.has_same_number(dso, facts));
    let known = facts.zip(here);
    let of_system = known.filter(|_| is_system);
    let is_newer = of_system.is_some_and(|(file, span)| {
        // `cp -p` and `tar` set the time of writing back, and not that of the inode. A link in perf's cache, which files with a build ID
        // may have, changes that as well.
        let may_be_linked = found.is_some() && file.links > 1;
        let is_touched = !may_be_linked && file.changed >= span.end;
        // The number went to a file that was made since.
        let is_born_since = file.born.is_some_and(|born| born >= span.end);
        let is_another = has_inode(file, dso) && (is_touched || is_born_since);
        file.written >= span.end || is_another
    });
    let is_overwritten = of_system
        .zip(began)
        .is_some_and(|((file, span), began)| was_overwritten(file, dso, (span, began)));
    let known = known.filter(|_| !was_used_again);
    let inode = known.and_then(|(file, span)| by_inode(file, dso, span, is_system));
    match inode {
        _ if is_overwritten => return Err(wrong_build.unwrap_or(Against::Overwritten)),
        _ if fits == Fit::Refuted => return Err(wrong_build.unwrap_or(Against::NotMapped)),
        // perf read the table's ID from the file of this path when the recording ended.
        Some(true) if wrong_build.is_none() || !is_system => return Ok(Evidence::Inode),
        // Below a folder may be a copy; the ID tells that it is one.
        Some(false) if is_system || !in_table => {
            return Err(wrong_build.unwrap_or(Against::OtherInode));
        }
        _ => {}
    }
    let is_alone = rivals.clone().next().is_none();
    if !is_alone {
        let of_rival = |rival: &Rival| rival.may_be(elf);
        let is_ambiguous = dso.rivals.len() > MOST_RIVALS || rivals.any(of_rival);
        return match (is_ambiguous, in_table, fits) {
            (true, ..) => Err(wrong_build.unwrap_or(Against::Ambiguous)),
            (false, true, _) => Ok(Evidence::Table),
            (false, false, Fit::Exact) => Ok(Evidence::Fit),
            _ => Err(wrong_build.unwrap_or(Against::Ambiguous)),
        };
    }
    match (wrong_build, in_table, fits) {
        (Some(against), ..) => Err(against),
        (None, true, _) => Ok(Evidence::Table),
        // A program that was built again has the same path, and often segments of the same size.
        _ if is_newer => Err(Against::WrittenSince),
        // It came there later, and its times may be older: `mv` and `cp -p` keep them.
        _ if is_system && known.is_some_and(|(file, _)| is_other_file(file, dso, true)) => {
            Err(Against::OtherInode)
        }
        (None, false, Fit::Exact) => Ok(Evidence::Fit),
        _ => Ok(Evidence::Path),
    }
}

/// Whether other content came into the mapped file while it was recorded, as `cp` does it. In the end perf reads the build ID of that.
fn was_overwritten(facts: FileFacts, dso: &Dso, (here, began): (&Span, Timestamp)) -> bool {
    /// Two clocks differ by less than this part of the time, and files have the time of the last tick.
    const DRIFT: u32 = 5000;
    const TICK: Duration = Duration::from_millis(20);
    // perf writes these afterwards, and says that they were mapped when their code was loaded.
    let is_injected = marker_name(&dso.long_name).is_some_and(|marker| marker.injected);
    let is_it = !is_injected && (dso.inode.is_none() || has_inode(facts, dso));
    let length = here.end.duration_since(here.start).unwrap_or_default();
    let mapped = dso.mapped_at.and_then(|at| {
        let since = Duration::from_nanos(at.0.saturating_sub(began.0));
        here.start.checked_add(since + length / DRIFT + TICK)
    });
    is_it && facts.written < here.end && mapped.is_some_and(|mapped| mapped < facts.written)
}

/// Whether a file has the inode that was mapped.
fn has_inode(facts: FileFacts, dso: &Dso) -> bool {
    dso.inode.is_some_and(|inode| inode.2 == facts.inode)
}

/// Whether inodes tell that the file was mapped, or that it was not; nothing if they do not tell.
fn by_inode(facts: FileFacts, dso: &Dso, here: &Span, is_system: bool) -> Option<bool> {
    let (.., inode, _) = dso.inode?;
    let reaches = dso
        .mapped
        .iter()
        .all(|part| part.offset.0 < facts.size.max(1));
    // Devices have other numbers for the kernel than for programs on layered file systems.
    if facts.inode == inode && facts.changed < here.end {
        return reaches.then_some(true);
    }
    // What came to the path while it was recorded has the ID in the recording's table, too: perf reads that in the end, and makes a
    // link of what it had not seen before, which changes the file's time. Below a folder may be a copy.
    let is_old =
        facts.changed < here.end || is_system && facts.born.is_some_and(|born| born < here.end);
    (is_old && is_other_file(facts, dso, is_system)).then_some(false)
}

/// Whether the mapping was of another file: of another inode, on the same device or, by its path on this machine, on another one than
/// that of a disk, whose number is the same for the kernel and for programs.
fn is_other_file(facts: FileFacts, dso: &Dso, is_system: bool) -> bool {
    dso.inode.is_some_and(|(major, minor, inode, _)| {
        let is_told = facts.device == (major, minor) || is_system && facts.device.0 != 0;
        is_told && facts.inode != inode
    })
}
