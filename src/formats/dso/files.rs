//! Opens the files of a DSO: the mapped one, its separate debug file, embedded and supplementary ones.
//!
//! In: a DSO's name and build ID, and where to look. Out: parsed ELF files of the right build. A file of
//! another build is never used; it is reported when nothing better is found.

use std::cell::OnceCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use lzma_rust2::XzReader;
use object::Endianness;
use object::elf::SHT_SYMTAB;
use object::pod::from_bytes;

use super::elf::{ElfFile, string_at};
use super::evidence::{Against, Evidence, MOST_RIVALS, Span, judge};
use super::fit::{Fit, code_of_program, fit, is_mapped_whole};
use super::kin::Kin;
use super::symtab::RawTable;
use super::{BuildId, Dso, DsoKind, vdso};
use crate::address::Timestamp;
use crate::arch::Arch;
use crate::diagnostics::{Diagnostics, OfFiles};
use crate::find::{
    self, DebugOf, DebugPlace, Kind, Look, Outcome, Proof, SearchPaths, VDSO, path_of,
};
use crate::input::{Door, InputError, Role, Store, facts_of};

/// An opened file and where it was found.
pub(crate) struct Opened<'a> {
    pub(crate) elf: Arc<ElfFile<'a>>,
    /// What tells that it is the file that was mapped; nothing for debug files, and for what is no file.
    pub(crate) evidence: Option<Evidence>,
    door: Door,
    /// The path at which the recorded system has it, as far as that is known.
    pub(crate) place: PathBuf,
    /// Whether it holds DWARF or `.debug_frame` itself; asked for every frame.
    pub(crate) has_dwarf: bool,
}

impl<'a> Opened<'a> {
    /// When it was written.
    pub(crate) fn written(&self) -> Option<SystemTime> {
        self.door.open().ok()?.meta().modified().ok()
    }

    fn new(elf: Arc<ElfFile<'a>>, door: Door, place: PathBuf) -> Self {
        let has_dwarf = [".debug_info", ".zdebug_info", ".debug_frame"]
            .iter()
            .any(|name| elf.has_section(name));
        Self {
            elf,
            evidence: None,
            door,
            place,
            has_dwarf,
        }
    }

    /// Where it was found.
    pub(crate) fn path(&self) -> &Path {
        self.door.path()
    }

    /// The way to it.
    pub(super) const fn door(&self) -> &Door {
        &self.door
    }
}

impl Refused {
    const fn trouble(&self) -> FileTrouble {
        match self {
            Self::Missing(_) | Self::OnlyDebug => FileTrouble::Missing,
            Self::NotElf => FileTrouble::NotElf,
            Self::Pe => FileTrouble::Pe,
            Self::For(Against::Ambiguous) => FileTrouble::Ambiguous,
            Self::For(_) => FileTrouble::Changed,
            Self::Unreadable(_) => FileTrouble::Unreadable,
        }
    }
}

impl From<&Refused> for Outcome {
    fn from(refused: &Refused) -> Self {
        match refused {
            Refused::Missing(outcome) => outcome.clone(),
            Refused::OnlyDebug => "a debug file without code".into(),
            Refused::NotElf => "no ELF file".into(),
            Refused::Pe => "in Windows' format".into(),
            Refused::For(against) => against.text().into(),
            Refused::Unreadable(_) => "not readable by this user".into(),
        }
    }
}

/// What is said of files that are not those that were mapped.
static NOT_MAPPED: OfFiles = OfFiles {
    one: "its code lies elsewhere in the file than what was mapped; another file had this path, as in a container, and this \
          one is not used",
    several: "have their code elsewhere than what was mapped; other files had their paths, as in a container, and these \
              are not used",
    advice: "Give the other one's folder with --symfs",
};

/// What is said of files that are known by their inodes to be others.
static OTHER_INODE: OfFiles = OfFiles {
    one: "another file was mapped than this one, by its inode: it was replaced while it was recorded, or the other one had this \
          path elsewhere, as in a container; this one is not used",
    several: "are not the files that were mapped, by their inodes: they were replaced while they were recorded, or those had these \
              paths elsewhere, as in a container; these are not used",
    advice: "Give the other one's folder with --symfs, or --buildid-dir ~/.debug if it was only built again",
};

/// What is said of files that are another build than what was mapped, where several builds had their path.
static OTHER_OF_PATH: OfFiles = OfFiles {
    one: "it is one of several builds that had this path while it was recorded, as in containers, and not used for the others",
    several: "are each one of several builds that had their path while it was recorded, as in containers, and not used for the \
              others",
    advice: "Give the folders of the others with --symfs",
};

/// What is said of files that are newer than the recording.
static WRITTEN_SINCE: OfFiles = OfFiles {
    one: "it was written after the recording had ended, and has no build ID that tells whether it is the same; it is not used",
    several: "were written after the recording had ended, and have no build IDs that tell whether they are the same; they are not used",
    advice: "Give the folder of the recorded one with --symfs, or build with -Wl,--build-id",
};

/// What is said of files that are not what they were.
static OVERWRITTEN: OfFiles = OfFiles {
    one: "it was written while it was recorded, after a process had mapped it; what that ran is gone, and this file is not used",
    several: "were written while they were recorded, after processes had mapped them; what those ran is gone, and these files are not used",
    advice: "Record with pjit record, which notes build IDs of what is mapped",
};

/// What is said of files of which nothing tells which one they are.
static AMBIGUOUS: OfFiles = OfFiles {
    one: "several files had this path while it was recorded, and nothing tells for which of them this one may be used",
    several: "are the paths of several files each while it was recorded, and nothing tells for which of them those here may \
              be used",
    advice: "Give the roots of containers with --symfs DIR, each once, or record with pjit record",
};

/// What is said of debug files that are alone.
static ONLY_DEBUG: OfFiles = OfFiles {
    one: "only this debug file was found, and it does not tell where its functions were in the program; they stay unresolved",
    several: "are debug files without their programs, and do not tell where their functions were; they stay unresolved",
    advice: "Give the folder of the program with --symfs",
};

/// What a 32-bit process' vdso is called: another image than that of the 64-bit ones, under the same name in recordings.
pub(crate) const VDSO_32: &[u8] = b"[vdso32]";

/// What opening files needs.
#[derive(Clone, Copy)]
pub(crate) struct Opener<'t, 'a> {
    pub(crate) store: &'a Store,
    pub(crate) search: &'t SearchPaths,
    pub(crate) diag: &'t Diagnostics,
    /// Of the recording.
    pub(crate) arch: Option<Arch>,
    /// When it was made, if it is of this machine.
    pub(crate) here: Option<&'t Span>,
    /// When that begins, by the recording's clock.
    pub(crate) began: Option<Timestamp>,
    /// What other DSOs have opened, of this recording or of others.
    pub(crate) kin: &'t Kin<'a>,
}

/// Why a mapped file is not at hand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FileTrouble {
    /// Nothing is there.
    Missing,
    /// There is a file of another kind: memory that a runtime saved with the code in it, as SBCL's core, or data.
    NotElf,
    /// There is a file of Windows' format, as .NET's libraries are with the code that was compiled before.
    Pe,
    /// There is one, but of another build.
    Changed,
    /// There is one, but several files had its path, and nothing tells which of them it is.
    Ambiguous,
    /// There is one that this user may not read.
    Unreadable,
}

/// That a mapped file is not at hand.
#[derive(Debug)]
pub(crate) struct Missed {
    /// Why.
    pub(crate) trouble: FileTrouble,
    /// Files that were there, and why each was not used.
    refused: Vec<(PathBuf, Refused)>,
    /// Whether a file has the path and is known not to be the one that was mapped: then the build ID that the recording's
    /// table has for the path is that of this other file.
    pub(crate) refutes_id: bool,
}

impl From<FileTrouble> for Missed {
    fn from(trouble: FileTrouble) -> Self {
        Self {
            trouble,
            refused: Vec::new(),
            refutes_id: false,
        }
    }
}

impl Missed {
    /// Whether other files are there than the one that was mapped, as for a process that has another root. A program that was built
    /// again is another build, too: that counts only where several files had its path.
    pub(super) fn is_of_other_root(&self, dso: &Dso) -> bool {
        self.refused.iter().any(|(_, why)| match why {
            Refused::For(Against::NotMapped | Against::OtherInode) => true,
            Refused::For(Against::OtherBuild { .. } | Against::Ambiguous) => dso.shares_path,
            _ => false,
        })
    }

    /// Says why each file that was there was not used.
    pub(super) fn report(&self, dso: &Dso, diag: &Diagnostics) {
        for (path, why) in &self.refused {
            let shown = path.display();
            match why {
                Refused::For(Against::OtherBuild { .. }) if dso.shares_path => {
                    diag.warn_of_file(&OTHER_OF_PATH, shown.to_string());
                }
                Refused::For(Against::OtherBuild { found, want }) => diag.warn_beside(format!(
                    "{shown}: build ID is {found}, the recording has {want}; the file was changed since and is not used, its \
                     functions stay unresolved. Put the recorded file under a directory and give it with --symfs, or \
                     add it to the build-ID cache (perf buildid-cache --add FILE)"
                )),
                Refused::For(Against::NoBuildId(want)) => diag.warn_beside(format!(
                    "{shown}: has no build ID, the recording has {want}; it is another file and not used"
                )),
                Refused::For(Against::NotMapped) => diag.warn_of_file(&NOT_MAPPED, shown.to_string()),
                Refused::For(Against::OtherInode) => diag.warn_of_file(&OTHER_INODE, shown.to_string()),
                Refused::For(Against::WrittenSince) => {
                    diag.warn_of_file(&WRITTEN_SINCE, shown.to_string());
                }
                Refused::For(Against::Overwritten) => diag.warn_of_file(&OVERWRITTEN, shown.to_string()),
                Refused::For(Against::Ambiguous) => diag.warn_of_file(&AMBIGUOUS, shown.to_string()),
                Refused::Unreadable(why) => {
                    diag.warn_beside(format!("{why}; not used, its functions stay unresolved"));
                }
                Refused::Missing(_) | Refused::NotElf | Refused::Pe | Refused::OnlyDebug => {}
            }
        }
    }
}

/// A file that may be the one that was mapped, what tells so, and where it is.
type Candidate<'a> = (Arc<ElfFile<'a>>, Evidence, Door);

/// The file of the recorded path, where that is another one than what was mapped.
struct Refuted<'a> {
    elf: Arc<ElfFile<'a>>,
    why: Against,
}

impl Refuted<'_> {
    /// Whether what tells of a candidate tells of this file. perf read the table's ID in the end from this path, and so did who copied
    /// the file.
    fn speaks_against(&self, elf: &ElfFile<'_>, evidence: Evidence) -> bool {
        evidence == Evidence::Table
            || self.why == Against::Overwritten && self.elf.bytes() == elf.bytes()
    }
}

/// Why a candidate was not used.
#[derive(Debug)]
enum Refused {
    /// Not there, not to be opened, or a program of another kind of machine.
    Missing(Outcome),
    /// There, but no ELF file that can be mapped as code.
    NotElf,
    /// In Windows' format.
    Pe,
    /// A debug file, which has no code.
    OnlyDebug,
    /// Something speaks against it.
    For(Against),
    /// There, but not readable.
    Unreadable(String),
}

impl<'a> Opener<'_, 'a> {
    /// The file that was mapped.
    pub(crate) fn binary(&self, dso: &Dso) -> Result<Opened<'a>, Missed> {
        let missing = FileTrouble::Missing.into();
        match dso.kind {
            DsoKind::File => self.mapped_file(dso),
            DsoKind::Vdso => self.vdso(dso).ok_or(missing),
            _ => Err(missing),
        }
    }

    fn mapped_file(&self, dso: &Dso) -> Result<Opened<'a>, Missed> {
        // A table may have very many for one path, and each DSO of the path would look for all of them.
        let ids = dso.builds().iter().take(MOST_RIVALS).copied();
        let (mut refused, mut found) = (Vec::new(), Vec::new());
        // Where several folders stand for `/`, each may have another file with this path.
        let is_sure = |evidence: Evidence| {
            evidence >= Evidence::Table && self.search.more_symfs.is_empty()
                || evidence == Evidence::Id
        };
        let look = Look::new(self.diag, Kind::Program, &dso.long_name);
        let refuted = OnceCell::new();
        for door in look.doors(self.search.programs(&dso.long_name, ids)) {
            let opened = self.open_mapped(&door, dso).and_then(|(elf, evidence)| {
                let is_path = door.path() == path_of(&dso.long_name);
                let is_open = !is_path && evidence < Evidence::Inode;
                let of_path = is_open.then(|| refuted.get_or_init(|| self.refuted(dso)));
                let of_path = of_path.and_then(Option::as_ref);
                match of_path.filter(|file| file.speaks_against(&elf, evidence)) {
                    Some(file) => Err(Refused::For(file.why)),
                    None => Ok((elf, evidence)),
                }
            });
            match opened {
                Ok((elf, evidence)) if is_sure(evidence) => {
                    look.took(door.path());
                    return Ok(self.found(dso, elf, &door, evidence));
                }
                Ok((elf, evidence)) => {
                    look.missed(door.path(), evidence.text());
                    found.push((elf, evidence, door));
                }
                Err(why) => {
                    look.missed(door.path(), &why);
                    refused.push((door.path().to_owned(), why));
                }
            }
        }
        let best = match self.best(found) {
            Ok(Some(best)) => Some(best),
            Ok(None) => self.in_processes(dso, &look),
            Err(equal) => {
                refused.extend(equal);
                None
            }
        };
        if let Some((elf, evidence, door)) = best {
            look.took(door.path());
            return Ok(self.found(dso, elf, &door, evidence));
        }
        let troubles = refused.iter().map(|(_, why)| why.trouble());
        let is_other = |(_, why): &(PathBuf, Refused)| {
            matches!(
                why,
                Refused::For(Against::NotMapped | Against::OtherInode | Against::Overwritten)
            )
        };
        Err(Missed {
            trouble: troubles.max().unwrap_or(FileTrouble::Missing),
            refutes_id: refused.iter().any(is_other),
            refused,
        })
    }

    /// This machine's file of the recorded path, if it is there and known to be another one than what was mapped. Also where a
    /// folder was given in place of the machine's root: perf read the table's ID from it.
    fn refuted(&self, dso: &Dso) -> Option<Refuted<'a>> {
        self.here?;
        let door = SearchPaths::recorded(&dso.long_name)?;
        let elf = self.open(&door).ok()?;
        match self.open_mapped(&door, dso) {
            Err(Refused::For(why @ (Against::OtherInode | Against::Overwritten))) => {
                Some(Refuted { elf, why })
            }
            _ => None,
        }
    }

    /// The file where a process that had it mapped still sees it, if more than its path tells that it is that.
    fn in_processes(&self, dso: &Dso, look: &Look<'_>) -> Option<Candidate<'a>> {
        let places = self.search.in_processes(&dso.long_name, &dso.mapped_by);
        look.doors(places).find_map(|door| {
            let opened = self.open_mapped(&door, dso);
            let opened = opened.map_err(|why| look.missed(door.path(), &why)).ok();
            let (elf, evidence) = opened?;
            if evidence > Evidence::Path {
                return Some((elf, evidence, door));
            }
            look.missed(door.path(), evidence.text());
            None
        })
    }

    /// The first of several files that may be the one that was mapped; where they are in several folders that stand for `/`, the
    /// one with the best evidence. `Err`: there are others with as much.
    fn best(
        &self,
        found: Vec<Candidate<'a>>,
    ) -> Result<Option<Candidate<'a>>, Vec<(PathBuf, Refused)>> {
        if self.search.more_symfs.is_empty() {
            return Ok(found.into_iter().next());
        }
        let Some(most) = found.iter().map(|(_, evidence, _)| *evidence).max() else {
            return Ok(None);
        };
        let is_best = |(_, evidence, _): &Candidate<'a>| *evidence == most;
        let best: Vec<_> = found.into_iter().filter(is_best).collect();
        let is_same = |other: &ElfFile<'_>| {
            let first = &best[0].0;
            let ids = first.build_id().zip(other.build_id());
            ids.map_or_else(
                || first.bytes() == other.bytes(),
                |(one, other)| one == other,
            )
        };
        if best.iter().all(|(elf, ..)| is_same(elf)) {
            return Ok(best.into_iter().next());
        }
        let refused = |(_, _, door): Candidate<'a>| {
            let path = door.path().to_owned();
            (path, Refused::For(Against::Ambiguous))
        };
        Err(best.into_iter().map(refused).collect())
    }

    /// Says where a file was found.
    fn found(
        &self,
        dso: &Dso,
        elf: Arc<ElfFile<'a>>,
        door: &Door,
        evidence: Evidence,
    ) -> Opened<'a> {
        let path = door.path();
        let name = path_of(&dso.long_name);
        let (shown, found) = (name.display(), path.display());
        self.diag.note_beside(format!(
            "{shown}: read from {found}, known {}",
            evidence.text()
        ));
        let opened = Opened {
            evidence: Some(evidence),
            ..Opened::new(Arc::clone(&elf), door.clone(), name.to_owned())
        };
        if !is_proven(dso, &elf, door, evidence) {
            self.store.left_out(name);
            return opened;
        }
        self.store.used(name, path, Role::Program);
        opened
    }

    /// Notes where a file is kept in a bundle whose path others have, too: only one of them can have the path. It is the one whose build
    /// the recording does not know, for it is looked for by path alone.
    pub(super) fn note_build(&self, dso: &Dso, opened: &Opened<'a>) {
        let Opened { elf, evidence, .. } = opened;
        let is_proven =
            evidence.is_some_and(|evidence| is_proven(dso, elf, &opened.door, evidence));
        let is_known = |id: &BuildId| dso.builds().iter().any(|known| known.matches(id));
        if let Some(id) = elf.build_id().filter(|id| is_proven && is_known(id)) {
            let place = find::place_of_build(&id);
            self.store.used(&place, opened.path(), Role::Program);
        }
    }

    /// A file that is the one that was mapped, and what tells so.
    fn open_mapped(&self, door: &Door, dso: &Dso) -> Result<(Arc<ElfFile<'a>>, Evidence), Refused> {
        let elf = self.open(door)?;
        if elf.is_only_debug() {
            return Err(Refused::OnlyDebug);
        }
        let opened = self.here.and_then(|_| door.open().ok());
        let facts = opened.and_then(|opened| facts_of(opened.file(), opened.meta()));
        let is_system = door.path() == path_of(&dso.long_name);
        let evidence = judge(&elf, facts, dso, (self.here, self.began), is_system);
        Ok((elf, evidence.map_err(Refused::For)?))
    }

    fn vdso(&self, dso: &Dso) -> Option<Opened<'a>> {
        let is_narrow = dso.long_name == VDSO_32;
        let look = Look::new(self.diag, Kind::Vdso, &dso.long_name);
        for door in look.doors(self.search.vdso(dso.build_id)) {
            match self.of_build(&door, dso.build_id) {
                Ok(elf) if elf.is_64() != is_narrow => {
                    look.took(door.path());
                    self.store.used(Path::new(VDSO), door.path(), Role::Program);
                    return Some(Opened::new(elf, door, PathBuf::from(VDSO)));
                }
                Ok(_) => look.missed(door.path(), OTHER_MACHINE),
                Err(why) => look.missed(door.path(), &why),
            }
        }
        if self.search.bundle.is_some() {
            return None;
        }
        let own = ElfFile::parse(vdso::own(self.store)?, self.store).ok()?;
        let same_build = match (dso.build_id, own.build_id()) {
            (Some(want), Some(found)) => want.matches(&found),
            // Nothing proves it, but that the recording is of this kernel.
            _ => self.here.is_some(),
        };
        let same_arch = self.arch.is_some() && own.arch() == self.arch;
        let is_it = same_arch && own.is_64() != is_narrow && same_build;
        let door = find::own_vdso();
        if !is_it {
            look.missed(door.path(), "another build or kind of machine");
            return None;
        }
        look.took(door.path());
        self.store
            .used_bytes(Path::new(VDSO), own.bytes(), Role::Program);
        Some(Opened::new(Arc::new(own), door, PathBuf::from(VDSO)))
    }

    /// The file of a kernel module, unpacked if need be; its path is in the recording.
    pub(crate) fn module(&self, dso: &Dso) -> Option<ElfFile<'a>> {
        let name = path_of(&dso.long_name);
        let look = Look::new(self.diag, Kind::Module, &dso.long_name);
        look.doors(self.search.modules(name)).find_map(|door| {
            let packed = self.store.map(&door);
            let packed = packed.map_err(|error| look.missed(door.path(), &error));
            let packed = packed.ok()?;
            let bytes = self.kin.unpacked(packed, || self.unpack_module(packed));
            let elf = bytes.and_then(|bytes| ElfFile::parse(bytes, self.store).ok());
            let same = |file: &ElfFile<'_>| match (dso.build_id, file.build_id()) {
                (Some(want), Some(found)) => want.matches(&found),
                (Some(_), None) => false,
                _ => file.is_relocatable() || door.is_users(),
            };
            let Some(elf) = elf.filter(same) else {
                look.missed(door.path(), "not that module");
                return None;
            };
            look.took(door.path());
            self.store.used(name, door.path(), Role::Kernel);
            Some(elf)
        })
    }

    /// Modules are kept as they are, or packed by gzip, xz or zstd.
    fn unpack_module(&self, packed: &'a [u8]) -> Option<&'a [u8]> {
        /// The largest modules have some 30 MB with their debug information.
        const MAX_MODULE: u64 = 256 << 20;
        let most = (packed.len() as u64).saturating_mul(64).min(MAX_MODULE);
        let most = most.min(MOST_UNPACKED.saturating_sub(self.store.kept()) as u64);
        let mut out = Vec::new();
        match packed {
            [0x1f, 0x8b, ..] => {
                let unpacker = flate2::bufread::GzDecoder::new(packed);
                unpacker.take(most).read_to_end(&mut out).ok()?;
            }
            [0xfd, b'7', b'z', b'X', b'Z', ..] => out = unpack_xz(packed, self.store.kept())?,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                out = crate::zstd::decode_all(packed, usize::try_from(most).ok()?)?;
            }
            _ => return Some(packed),
        }
        Some(self.store.keep(out))
    }

    /// The separate debug file.
    pub(crate) fn debug_file(
        &self,
        dso: &Dso,
        binary: Option<&Opened<'a>>,
        build_id: Option<BuildId>,
    ) -> Option<Opened<'a>> {
        if dso.kind != DsoKind::File {
            return None;
        }
        let alone = binary.is_none().then_some(dso);
        let places = self.search.debug_files(DebugOf {
            name: &dso.long_name,
            build_id,
            link: binary.and_then(|b| debug_link(&b.elf)),
            found: binary.map(Opened::path),
            shares_path: dso.shares_path,
            is_proven: dso.sure_of_id,
        });
        let look = Look::new(self.diag, Kind::Debug, &dso.long_name);
        places.into_iter().find_map(|debug| {
            let door = look.doors([debug.place.clone()]).next()?;
            let path = door.path().to_owned();
            let opened = self.open_debug(door, &debug);
            let opened = opened.map_err(|why| look.missed(&path, why)).ok()?;
            let placed = self.placed(opened, alone);
            match &placed {
                Some(_) => look.took(&path),
                None => look.missed(&path, "does not tell where its functions were"),
            }
            placed
        })
    }

    /// A debug file of which it is known where its functions were in the file that was mapped. Without that file what was
    /// mapped tells it.
    fn placed(&self, opened: Opened<'a>, alone: Option<&Dso>) -> Option<Opened<'a>> {
        let Some(dso) = alone else {
            return Some(opened);
        };
        if !opened.elf.is_only_debug() {
            let is_it = dso.sure_of_id || fit(&opened.elf, &dso.mapped) != Fit::Refuted;
            return is_it.then_some(opened);
        }
        let placed = || {
            let segments = code_of_program(&opened.elf, &dso.mapped)?;
            let elf = ElfFile::parse(opened.elf.bytes(), self.store).ok()?;
            Some(elf.placed(segments))
        };
        match placed() {
            Some(elf) => Some(Opened {
                elf: Arc::new(elf),
                ..opened
            }),
            None => {
                self.diag
                    .warn_of_file(&ONLY_DEBUG, opened.path().display().to_string());
                None
            }
        }
    }

    fn open_debug(&self, door: Door, debug: &DebugPlace) -> Result<Opened<'a>, Outcome> {
        let (id, role) = match debug.proof {
            Proof::BuildId(id) => (Some(id), Role::Debug),
            Proof::Checksum(_) => (None, Role::CheckedDebug),
        };
        let elf = self
            .of_build(&door, id)
            .map_err(|why| Outcome::from(&why))?;
        if let Proof::Checksum(wanted) = debug.proof
            && crc32(elf.bytes()) != wanted
        {
            return Err("another checksum than in the link".into());
        }
        let opened = Opened::new(elf, door, debug.recorded.clone());
        if !opened.has_dwarf && !opened.elf.has_section(".symtab") {
            return Err("no symbols and no DWARF".into());
        }
        self.store.used(&opened.place, opened.path(), role);
        Ok(opened)
    }

    /// The ELF file inside `.gnu_debugdata`: symbols that the distribution left in (xz).
    pub(crate) fn embedded(&self, binary: &ElfFile<'a>) -> Option<ElfFile<'a>> {
        let packed = binary.section(".gnu_debugdata")?.data;
        let unpacked = unpack_xz(packed, self.store.kept())?;
        let elf = ElfFile::parse(self.store.keep(unpacked), self.store).ok()?;
        RawTable::of(&elf, ".symtab", SHT_SYMTAB)
            .is_some()
            .then_some(elf)
    }

    /// The file with shared DWARF (`.gnu_debugaltlink`, made by dwz).
    pub(crate) fn supplementary(
        &self,
        debug: &ElfFile<'a>,
        debug_path: &Path,
    ) -> Option<Arc<ElfFile<'a>>> {
        let link = debug.section(".gnu_debugaltlink")?.data;
        let name = string_at(link, 0);
        let build_id = BuildId::new(link.get(name.len() + 1..)?)?;
        let look = Look::new(self.diag, Kind::SharedDebug, name);
        let places = self.search.shared_debug(name, &build_id, debug_path);
        let found = look.doors(places).find_map(|door| {
            let elf = self.of_build(&door, Some(build_id));
            let elf = elf.map_err(|why| look.missed(door.path(), &why)).ok()?;
            look.took(door.path());
            let place = find::below_debug_root(&build_id)?;
            self.store.used(&place, door.path(), Role::Debug);
            Some(elf)
        });
        if found.is_none() {
            self.diag.warn_beside(format!(
                "{}: the file {} that it shares debug information with was not found; inlined functions have no names",
                debug_path.display(),
                path_of(name).display()
            ));
        }
        found
    }

    /// A file of whatever build.
    pub(super) fn any(&self, door: &Door, look: &Look<'_>) -> Option<Arc<ElfFile<'a>>> {
        let opened = self.open(door);
        opened.map_err(|why| look.missed(door.path(), &why)).ok()
    }

    /// A file of this build, of any if none is told.
    fn of_build(&self, door: &Door, wanted: Option<BuildId>) -> Result<Arc<ElfFile<'a>>, Refused> {
        let elf = self.open(door)?;
        match (wanted, elf.build_id()) {
            (Some(want), None) => Err(Refused::For(Against::NoBuildId(want))),
            (Some(want), Some(found)) if !want.matches(&found) => {
                Err(Refused::For(Against::OtherBuild { found, want }))
            }
            _ => Ok(elf),
        }
    }

    fn open(&self, door: &Door) -> Result<Arc<ElfFile<'a>>, Refused> {
        let elf = self.kin.file(door, || self.parse(door))?;
        // Without a build ID in the recording, this machine's file of that name would do for another's.
        let runs = self.arch.is_none_or(|arch| arch.runs(elf.arch()));
        if self.arch != Arch::host() && !runs {
            return Err(Refused::Missing(OTHER_MACHINE.into()));
        }
        Ok(elf)
    }

    fn parse(&self, door: &Door) -> Result<ElfFile<'a>, Refused> {
        let bytes = self.store.map(door).map_err(|e| match &e {
            InputError::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Refused::Unreadable(e.to_string())
            }
            _ => Refused::Missing((&e).into()),
        })?;
        let no_elf = if bytes.starts_with(b"MZ") {
            Refused::Pe
        } else {
            Refused::NotElf
        };
        let elf = ElfFile::parse(bytes, self.store).map_err(|_| no_elf)?;
        if elf.is_core_dump() {
            return Err(Refused::NotElf);
        }
        Ok(elf)
    }
}

/// Why files for other processors are not used.
const OTHER_MACHINE: &str = "for another kind of machine";

/// Whether a file is proven to be the one that was mapped, so that it may be taken along: a recording may name any file of this
/// machine. What lies in a folder that the user named, or that came with the recording, is theirs.
fn is_proven(dso: &Dso, elf: &ElfFile<'_>, door: &Door, evidence: Evidence) -> bool {
    let is_known = evidence >= Evidence::Table;
    door.is_users() || is_known || elf.is_compiled_wasm() || is_mapped_whole(elf, &dso.mapped)
}

/// What modules and embedded files may take, unpacked, over all files of a run.
const MOST_UNPACKED: usize = 1 << 30;

/// Unpacks what xz packed, if it is no more than such files have; what comes out is counted, not what headers promise.
fn unpack_xz(packed: &[u8], kept: usize) -> Option<Vec<u8>> {
    /// Of the dictionary: `xz -9` takes 64 MB.
    const MEMORY_KB: u32 = 66 << 10;
    let most = packed.len().saturating_mul(64).saturating_add(1 << 20);
    let most = most.min(MOST_UNPACKED.saturating_sub(kept));
    let mut unpacked = Vec::new();
    let reader = XzReader::new_mem_limit(packed, true, MEMORY_KB);
    let read = reader.take(most as u64 + 1).read_to_end(&mut unpacked);
    read.is_ok_and(|len| len <= most).then_some(unpacked)
}

/// File name and checksum in `.gnu_debuglink`: a string, padded to four bytes, and a CRC-32.
fn debug_link<'a>(elf: &ElfFile<'a>) -> Option<(&'a [u8], u32)> {
    let data = elf.section(".gnu_debuglink")?.data;
    let name = string_at(data, 0);
    let crc = data.get((name.len() + 1).next_multiple_of(4)..)?;
    let (crc, _) = from_bytes::<object::U32<Endianness>>(crc).ok()?;
    (!name.is_empty()).then(|| (name, crc.get(elf.layout().endian)))
}

/// The checksum of `.gnu_debuglink`: CRC-32 as in zlib.
fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}
