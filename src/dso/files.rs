//! Opens the files of a DSO: the mapped one, its separate debug file, embedded and supplementary ones.
//!
//! In: a DSO's name and build ID, and where to look. Out: parsed ELF files of the right build. A file of
//! another build is never used; it is reported when nothing better is found.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lzma_rust2::XzReader;

use super::elf::{ElfFile, Machine, SHT_SYMTAB, string_at};
use super::evidence::{Against, Evidence, MOST_RIVALS, Span, judge};
use super::fit::{Fit, code_of_program, fit, is_mapped_whole};
use super::kin::Kin;
use super::locate::{self, SearchPaths};
use super::symtab::RawTable;
use super::{BuildId, Dso, DsoKind, vdso};
use crate::diagnostics::{Diagnostics, OfFiles};
use crate::input::{Door, InputError, Role, Store, facts_of, os_name};

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

    /// A file beside it, by the rule by which it was opened itself.
    pub(crate) fn beside(&self, name: &OsStr) -> Door {
        self.door.with_path(self.path().with_file_name(name))
    }
}

impl Refused {
    const fn trouble(&self) -> FileTrouble {
        match self {
            Self::Missing | Self::OnlyDebug => FileTrouble::Missing,
            Self::NotElf => FileTrouble::NotElf,
            Self::Pe => FileTrouble::Pe,
            Self::For(Against::Ambiguous) => FileTrouble::Ambiguous,
            Self::For(_) => FileTrouble::Changed,
            Self::Unreadable(_) => FileTrouble::Unreadable,
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
    advice: "Give the other one's folder with --symfs",
};

/// What is said of files of which nothing tells which one they are.
static AMBIGUOUS: OfFiles = OfFiles {
    one: "several files had this path while it was recorded, and nothing tells for which of them this one may be used",
    several: "are the paths of several files each while it was recorded, and nothing tells for which of them those here may \
              be used",
    advice: "Record with perf record --buildid-mmap",
};

/// What is said of debug files that are alone.
static ONLY_DEBUG: OfFiles = OfFiles {
    one: "only this debug file was found, and it does not tell where its functions were in the program; they stay unresolved",
    several: "are debug files without their programs, and do not tell where their functions were; they stay unresolved",
    advice: "Give the folder of the program with --symfs",
};

/// Where a vdso is looked for that somebody saved.
const VDSO: &str = "/[vdso]";
/// What a 32-bit process' vdso is called: another image than that of the 64-bit ones, under the same name in recordings.
pub(crate) const VDSO_32: &[u8] = b"[vdso32]";

/// What opening files needs.
#[derive(Clone, Copy)]
pub(crate) struct Opener<'t, 'a> {
    pub(crate) store: &'a Store,
    pub(crate) search: &'t SearchPaths,
    pub(crate) diag: &'t Diagnostics,
    /// Of the recording.
    pub(crate) machine: Machine,
    /// When it was made, if it is of this machine.
    pub(crate) here: Option<&'t Span>,
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    /// Why.
    pub(crate) trouble: FileTrouble,
    /// Whether a file has the path and is known not to be the one that was mapped: then the build ID that the recording's
    /// table has for the path is that of this other file.
    pub(crate) refutes_id: bool,
}

impl From<FileTrouble> for Missed {
    fn from(trouble: FileTrouble) -> Self {
        Self {
            trouble,
            refutes_id: false,
        }
    }
}

/// Why a candidate was not used.
enum Refused {
    /// Not there, or a program of another kind of machine.
    Missing,
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
        let roots = self.search.roots();
        let recorded = roots.iter().flat_map(|root| {
            // What had no name in any folder can only be given.
            let given = locate::memfd_name(&dso.long_name).filter(|_| !root.as_os_str().is_empty());
            let names = given.into_iter().chain([dso.long_name.as_slice()]);
            names.filter_map(|name| Door::in_root(root, locate::path_of(name)))
        });
        let ids = match dso.build_id.filter(|_| dso.sure_of_id) {
            Some(_) => dso.build_id.as_slice(),
            None => dso.table_ids.as_slice(),
        };
        // A table may have very many for one path, and each DSO of the path would look for all of them.
        let cached = ids
            .iter()
            .take(MOST_RIVALS)
            .flat_map(|id| self.search.in_cache(id, "elf"));
        let (mut refused, mut by_chance) = (Vec::new(), None);
        for door in recorded.chain(cached) {
            match self.open_mapped(&door, dso) {
                Ok((elf, evidence)) if evidence >= Evidence::Table => {
                    return Ok(self.found(dso, elf, &door, evidence));
                }
                Ok((elf, evidence)) => by_chance = by_chance.or(Some((elf, evidence, door))),
                Err(why) => refused.push((door.path().to_owned(), why)),
            }
        }
        if let Some((elf, evidence, door)) = by_chance {
            return Ok(self.found(dso, elf, &door, evidence));
        }
        self.report(&refused);
        let troubles = refused.iter().map(|(_, why)| why.trouble());
        let is_other = |(_, why): &(PathBuf, Refused)| {
            matches!(why, Refused::For(Against::NotMapped | Against::OtherInode))
        };
        Err(Missed {
            trouble: troubles.max().unwrap_or(FileTrouble::Missing),
            refutes_id: refused.iter().any(is_other),
        })
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
        let name = locate::path_of(&dso.long_name);
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
        // Only one of several files can have the path.
        if let Some(id) = elf.build_id().filter(|_| dso.shares_path) {
            let place = Path::new("/.debug").join(in_cache(&id)).join("elf");
            self.store.used(&place, path, Role::Program);
        }
        opened
    }

    /// A file that is the one that was mapped, and what tells so.
    fn open_mapped(&self, door: &Door, dso: &Dso) -> Result<(Arc<ElfFile<'a>>, Evidence), Refused> {
        let elf = self.open(door)?;
        if elf.is_only_debug() {
            return Err(Refused::OnlyDebug);
        }
        let opened = self.here.and_then(|_| door.open().ok());
        let facts = opened.and_then(|opened| facts_of(opened.meta()));
        let is_system = door.path() == locate::path_of(&dso.long_name);
        let evidence = judge(&elf, facts, dso, self.here, is_system);
        Ok((elf, evidence.map_err(Refused::For)?))
    }

    fn report(&self, refused: &[(PathBuf, Refused)]) {
        for (path, why) in refused {
            let shown = path.display();
            match why {
                Refused::For(Against::OtherBuild { found, want }) => self.diag.warn_beside(format!(
                    "{shown}: build ID is {found}, the recording has {want}; the file was changed since and is not used, its \
                     functions stay unresolved. Put the recorded file under a directory and give it with --symfs, or \
                     add it to the build-ID cache (perf buildid-cache --add FILE)"
                )),
                Refused::For(Against::NoBuildId(want)) => self.diag.warn_beside(format!(
                    "{shown}: has no build ID, the recording has {want}; it is another file and not used"
                )),
                Refused::For(Against::NotMapped) => self.diag.warn_of_file(&NOT_MAPPED, shown.to_string()),
                Refused::For(Against::OtherInode) => self.diag.warn_of_file(&OTHER_INODE, shown.to_string()),
                Refused::For(Against::Ambiguous) => self.diag.warn_of_file(&AMBIGUOUS, shown.to_string()),
                Refused::Unreadable(why) => {
                    self.diag.warn_beside(format!("{why}; not used, its functions stay unresolved"));
                }
                Refused::Missing | Refused::NotElf | Refused::Pe | Refused::OnlyDebug => {}
            }
        }
    }

    fn vdso(&self, dso: &Dso) -> Option<Opened<'a>> {
        let beside = self
            .search
            .roots()
            .into_iter()
            .filter(|root| !root.as_os_str().is_empty());
        let beside = beside.filter_map(|root| Door::in_root(&root, Path::new(VDSO)));
        let cached = dso
            .build_id
            .iter()
            .flat_map(|id| self.search.in_cache(id, "vdso"));
        let is_narrow = dso.long_name == VDSO_32;
        for door in beside.chain(cached) {
            if let Some(elf) = self.of_build(&door, dso.build_id)
                && elf.is_64() != is_narrow
            {
                self.store.used(Path::new(VDSO), door.path(), Role::Program);
                return Some(Opened::new(elf, door, PathBuf::from(VDSO)));
            }
        }
        if self.search.bundle.is_some() {
            return None;
        }
        let own = ElfFile::parse(vdso::own(self.store)?, self.store).ok()?;
        let same_build = match (dso.build_id, own.build_id()) {
            (Some(want), Some(found)) => want.matches(&found),
            _ => true,
        };
        let is_it = own.machine() == self.machine && own.is_64() != is_narrow && same_build;
        is_it.then(|| {
            self.store
                .used_bytes(Path::new(VDSO), own.bytes(), Role::Program);
            Opened::new(Arc::new(own), Door::system("[vdso]"), PathBuf::from(VDSO))
        })
    }

    /// The file of a kernel module, unpacked if need be; its path is in the recording.
    pub(crate) fn module(&self, dso: &Dso) -> Option<ElfFile<'a>> {
        let name = locate::path_of(&dso.long_name);
        if !name.is_absolute() {
            return None;
        }
        self.search.roots().iter().find_map(|root| {
            let door = Door::in_root(root, name)?;
            let packed = self.store.map(&door).ok()?;
            let bytes = self.kin.unpacked(packed, || self.unpack_module(packed))?;
            let elf = ElfFile::parse(bytes, self.store).ok()?;
            let same = match (dso.build_id, elf.build_id()) {
                (Some(want), Some(found)) => want.matches(&found),
                (Some(_), None) => false,
                _ => elf.is_relocatable() || door.is_users(),
            };
            same.then(|| {
                self.store.used(name, door.path(), Role::Kernel);
                elf
            })
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

    /// The separate debug file: by debug link, under /usr/lib/debug by path and by build ID, in a `.debug`
    /// directory; then in the build-ID cache, where it may also be the program itself, not stripped.
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
        let link = binary.and_then(|b| debug_link(&b.elf));
        for root in self.search.roots() {
            let own = alone.map(|dso| locate::path_of(&dso.long_name).to_owned());
            let paths = debug_paths(dso, build_id.as_ref(), link.as_ref().map(|l| l.0));
            for path in paths.into_iter().chain(own) {
                let found = Door::in_root(&root, &path)
                    .filter(|found| binary.is_none_or(|b| b.path() != found.path()));
                let Some(found) = found else { continue };
                let own = build_id.as_ref().filter(|_| dso.shares_path);
                let place = own.and_then(by_build_id).unwrap_or(path);
                let opened = self.open_debug(found, place, build_id, link.as_ref());
                if let Some(opened) = opened.and_then(|opened| self.placed(opened, alone)) {
                    return Some(opened);
                }
            }
        }
        let place = build_id.as_ref().and_then(by_build_id).unwrap_or_default();
        // The cache may hold a copy that was not stripped, put there by `perf buildid-cache --add`.
        let leaves = ["debug", "elf"].into_iter();
        let cached = leaves.flat_map(|leaf| {
            let places = build_id.iter();
            places.flat_map(move |id| self.search.in_cache(id, leaf))
        });
        cached
            .filter(|door| binary.is_none_or(|b| b.path() != door.path()))
            .filter_map(|door| self.open_debug(door, place.clone(), build_id, None))
            .find_map(|opened| self.placed(opened, alone))
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

    fn open_debug(
        &self,
        door: Door,
        place: PathBuf,
        build_id: Option<BuildId>,
        link: Option<&(&[u8], u32)>,
    ) -> Option<Opened<'a>> {
        let elf = self.of_build(&door, build_id)?;
        let named = door.path().file_name();
        let named_by_link =
            link.is_some_and(|(name, _)| named == Path::new(os_name(name)).file_name());
        if build_id.is_none()
            && !(named_by_link && link.is_some_and(|&(_, crc)| crc32(elf.bytes()) == crc))
        {
            return None;
        }
        let opened = Opened::new(elf, door, place);
        let is_any = opened.has_dwarf || opened.elf.has_section(".symtab");
        is_any.then(|| {
            let role = match build_id {
                Some(_) => Role::Debug,
                None => Role::CheckedDebug,
            };
            self.store.used(&opened.place, opened.path(), role);
            opened
        })
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
        let mut places = Vec::new();
        if !name.is_empty() {
            let name = locate::path_of(name);
            let beside = debug_path.parent().unwrap_or(Path::new("/")).join(name);
            if self.search.symfs.is_none() || name.is_absolute() {
                places.push(beside.clone());
            }
            let base = name.file_name().unwrap_or_default();
            places.push(Path::new("/usr/lib/debug/.dwz").join(base));
            for root in self.search.roots() {
                // A relative link inside a root: as if the root were `/`.
                places.extend(
                    beside
                        .strip_prefix(&root)
                        .ok()
                        .map(|inside| Path::new("/").join(inside)),
                );
            }
        }
        places.extend(by_build_id(&build_id));
        let found = self.search.roots().iter().find_map(|root| {
            places.iter().find_map(|path| {
                let door = Door::in_root(root, path)?;
                let elf = self.of_build(&door, Some(build_id))?;
                let place = by_build_id(&build_id)?;
                self.store.used(&place, door.path(), Role::Debug);
                Some(elf)
            })
        });
        if found.is_none() {
            self.diag.warn_beside(format!(
                "{}: the file {} that it shares debug information with was not found; inlined functions have no names",
                debug_path.display(),
                locate::path_of(name).display()
            ));
        }
        found
    }

    /// An absolute path in each of the places where files are looked for.
    pub(crate) fn in_roots(&self, path: &Path) -> Vec<Door> {
        let roots = self.search.roots().into_iter();
        roots
            .filter_map(|root| Door::in_root(&root, path))
            .collect()
    }

    /// A file of whatever build.
    pub(crate) fn any(&self, door: &Door) -> Option<Arc<ElfFile<'a>>> {
        self.open(door).ok()
    }

    /// A file of this build, of any if none is told.
    fn of_build(&self, door: &Door, wanted: Option<BuildId>) -> Option<Arc<ElfFile<'a>>> {
        let elf = self.open(door).ok()?;
        let is_it = |want: BuildId| elf.build_id().is_some_and(|found| want.matches(&found));
        wanted.is_none_or(is_it).then_some(elf)
    }

    fn open(&self, door: &Door) -> Result<Arc<ElfFile<'a>>, Refused> {
        let elf = self.kin.file(door, || self.parse(door))?;
        // Without a build ID in the recording, this machine's file of that name would do for another's.
        if self.machine != Machine::host() && !self.machine.runs(elf.machine()) {
            return Err(Refused::Missing);
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
            _ => Refused::Missing,
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
    let crc = elf
        .reader()
        .with(data)
        .u32((name.len() + 1).next_multiple_of(4))?;
    (!name.is_empty()).then_some((name, crc))
}

/// Candidates in perf's order, as absolute paths.
fn debug_paths(dso: &Dso, build_id: Option<&BuildId>, link: Option<&[u8]>) -> Vec<PathBuf> {
    let path = locate::path_of(&dso.long_name);
    let dir = path.parent().unwrap_or(Path::new("/"));
    let debug_root = Path::new("/usr/lib/debug");
    let inside = |p: &Path| debug_root.join(p.strip_prefix("/").unwrap_or(p));
    let mut out = Vec::new();
    // Where to look is not the file's to say.
    let link = link.and_then(|link| locate::path_of(link).file_name());
    if let Some(link) = link {
        out.extend([
            dir.join(link),
            dir.join(".debug").join(link),
            inside(dir).join(link),
        ]);
    }
    let mut with_suffix = inside(path).into_os_string();
    with_suffix.push(".debug");
    out.push(with_suffix.into());
    out.push(inside(path));
    out.extend(build_id.and_then(by_build_id));
    out.push(
        dir.join(".debug")
            .join(path.file_name().unwrap_or_default()),
    );
    out
}

/// perf's letter for where a debug file was found.
pub(crate) fn debug_origin(path: &Path, name: &[u8]) -> char {
    let text = path.as_os_str().as_encoded_bytes();
    let contains = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    if contains(b"/.build-id/") {
        'b'
    } else if text.ends_with(&[name, b".debug"].concat()) {
        'f'
    } else if text.ends_with(name) {
        'u'
    } else {
        'l'
    }
}

/// Where the files of a build are in a build-ID cache.
fn in_cache(id: &BuildId) -> PathBuf {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2).unwrap_or_default();
    Path::new(".build-id").join(head).join(tail)
}

fn by_build_id(id: &BuildId) -> Option<PathBuf> {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2)?;
    Some(PathBuf::from(format!(
        "/usr/lib/debug/.build-id/{head}/{tail}.debug"
    )))
}

/// The checksum of `.gnu_debuglink`: CRC-32 as in zlib.
fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}
