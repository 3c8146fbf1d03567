//! What the DSOs of several recordings have in common: files are opened and read once, and so are a kernel's symbols.
//!
//! Which file belongs to a DSO each recording finds out for itself: that depends on where it may look, and on what it tells of the file.
//! Shared is what follows from the bytes of files alone, and never that something was not found.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::KernelIdentity;
use super::elf::ElfFile;
use super::kernel::{KernelSymbols, has_symbols};
use super::locate::SearchPaths;
use super::symtab::SymbolTable;
use crate::input::Door;

/// Symbols of a kernel, once somebody has asked for them.
pub(super) type KernelCell<'a> = Arc<OnceLock<Arc<KernelSymbols<'a>>>>;

/// The mapped file and the one with the table of symbols, by their bytes, which never move.
type SymbolFiles = [usize; 2];

/// Symbols of a file, once somebody has asked for them.
pub(super) type SymbolCell<'a> = Arc<OnceLock<Option<Arc<SymbolTable<'a>>>>>;

/// Release and build ID of a kernel, and the folder of its recording if it lies in there.
type Kernel = (Option<String>, Option<String>, Option<PathBuf>);

/// Files and kernels that were opened.
#[derive(Default)]
pub struct Kin<'a> {
    files: Mutex<FxHashMap<Door, Arc<ElfFile<'a>>>>,
    symbols: Mutex<FxHashMap<SymbolFiles, SymbolCell<'a>>>,
    kernels: Mutex<FxHashMap<Kernel, KernelCell<'a>>>,
}

impl<'a> Kin<'a> {
    /// The file behind a door; `open` opens it if nobody has.
    pub(super) fn file<E>(
        &self,
        door: &Door,
        open: impl FnOnce() -> Result<ElfFile<'a>, E>,
    ) -> Result<Arc<ElfFile<'a>>, E> {
        let files = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files().get(door) {
            return Ok(Arc::clone(known));
        }
        let opened = Arc::new(open()?);
        Ok(Arc::clone(files().entry(door.clone()).or_insert(opened)))
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
        let beside = beside.filter(|dir| has_symbols(dir));
        let key = (
            identity.os_release.clone(),
            identity.build_id.map(|id| id.to_string()),
            beside.cloned(),
        );
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(kernels.entry(key).or_default()))
    }
}
