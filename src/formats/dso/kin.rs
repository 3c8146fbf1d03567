//! What DSOs have in common, those of one recording and of several: files are opened and read once, and so are a kernel's symbols.
//!
//! A recording may name one file by thousands of paths (`/usr/../usr/bin/x`), and each copy of its symbols takes megabytes. Which file belongs to a DSO each recording finds out for itself: that depends on where it may look, and on what it tells of the file.
//! Shared is what follows from the bytes of files alone, and never that something was not found.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::KernelIdentity;
use super::elf::ElfFile;
use super::kallsyms::Texts;
use super::kernel::KernelSymbols;
use super::symtab::SymbolTable;
use crate::find::{SearchPaths, has_kallsyms};
use crate::input::Door;

/// Symbols of a kernel, once somebody has asked for them.
pub(super) type KernelCell<'a> = Arc<OnceLock<Arc<KernelSymbols<'a>>>>;

/// The mapped file and the one with the table of symbols, by their bytes, which never move.
type SymbolFiles = [usize; 2];

/// Symbols of a file, once somebody has asked for them.
pub(super) type SymbolCell<'a> = Arc<OnceLock<Option<Arc<SymbolTable<'a>>>>>;

/// Release and build ID of a kernel, and the folder of its recording if it lies in there.
type Kernel = (Option<String>, Option<String>, Option<PathBuf>);

/// Files by the way to them, and by their bytes.
#[derive(Default)]
struct Opened<'a> {
    by_door: FxHashMap<Door, Arc<ElfFile<'a>>>,
    by_bytes: FxHashMap<usize, Arc<ElfFile<'a>>>,
}

/// Files and kernels that were opened.
#[derive(Default)]
pub struct Kin<'a> {
    files: Mutex<Opened<'a>>,
    /// What packed bytes hold, by where they are; nothing where that is too much.
    unpacked: Mutex<FxHashMap<usize, Option<&'a [u8]>>>,
    symbols: Mutex<FxHashMap<SymbolFiles, SymbolCell<'a>>>,
    kernels: Mutex<FxHashMap<Kernel, KernelCell<'a>>>,
    /// Texts of kernels, and what they say.
    pub(super) texts: Texts<'a>,
}

impl<'a> Kin<'a> {
    /// The file behind a door; `open` opens it if nobody has.
    pub(super) fn file<E>(
        &self,
        door: &Door,
        open: impl FnOnce() -> Result<ElfFile<'a>, E>,
    ) -> Result<Arc<ElfFile<'a>>, E> {
        let files = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files().by_door.get(door) {
            return Ok(Arc::clone(known));
        }
        let opened = open()?;
        let place = opened.bytes().as_ptr().addr();
        let mut files = files();
        let same = files.by_bytes.entry(place);
        let file = Arc::clone(same.or_insert_with(|| Arc::new(opened)));
        files.by_door.insert(door.clone(), Arc::clone(&file));
        Ok(file)
    }

    /// Forgets where files and kernels are, and nothing that follows from their bytes.
    pub fn forget_places(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.by_door.clear();
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.clear();
    }

    /// What packed bytes hold; `unpack` unpacks them if nobody has.
    pub(super) fn unpacked(
        &self,
        packed: &'a [u8],
        unpack: impl FnOnce() -> Option<&'a [u8]>,
    ) -> Option<&'a [u8]> {
        let mut unpacked = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        let known = unpacked.entry(packed.as_ptr().addr());
        *known.or_insert_with(unpack)
    }

    /// The symbols of a mapped file, and of the one that has its table if that is another.
    pub(super) fn symbols(
        &self,
        binary: &ElfFile<'a>,
        separate: Option<&ElfFile<'a>>,
    ) -> SymbolCell<'a> {
        let place = |elf: &ElfFile<'a>| elf.bytes().as_ptr().addr();
        let key = [place(binary), separate.map_or(0, place)];
        let mut symbols = self.symbols.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(symbols.entry(key).or_default())
    }

    /// The symbols of a kernel, if it does not depend on more than this where they are found.
    pub(super) fn kernel(
        &self,
        search: &SearchPaths,
        identity: &KernelIdentity,
    ) -> Option<KernelCell<'a>> {
        if search.bundle.is_some() {
            return None;
        }
        let beside = search.recording_dir.as_ref();
        let beside = beside.filter(|dir| has_kallsyms(dir));
        let key = (
            identity.os_release.clone(),
            identity.build_id.map(|id| id.to_string()),
            beside.cloned(),
        );
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(kernels.entry(key).or_default()))
    }
}
