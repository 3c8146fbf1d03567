//! What the DSOs of several recordings have in common: files of one build are opened and read once, and so are a kernel's symbols.
//!
//! A table of DSOs that is given a [`Kin`] takes from it what was opened for another recording's DSO of the same path and build ID,
//! if it would have opened the same. What has no build ID is opened for each recording.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::elf::ElfFile;
use super::files::{FileTrouble, Opened};
use super::kernel::{KernelSymbols, has_symbols};
use super::locate::SearchPaths;
use super::symtab::SymbolTable;
use super::{Dso, DsoKind, KernelIdentity};

/// What was opened for a DSO.
#[derive(Default)]
pub(super) struct Files<'a> {
    /// Those of the same build that other recordings opened, if any is read together with this one.
    pub(super) kin: OnceLock<Option<Arc<Files<'a>>>>,
    pub(super) binary: OnceLock<Result<Arc<Opened<'a>>, FileTrouble>>,
    pub(super) separate: OnceLock<Option<Arc<Opened<'a>>>>,
    /// The mapped file, and the one with DWARF, once somebody has asked for both.
    pub(super) code: OnceLock<[Option<Arc<Opened<'a>>>; 2]>,
    pub(super) supplementary: OnceLock<Option<Arc<ElfFile<'a>>>>,
    pub(super) symbols: OnceLock<Option<Arc<SymbolTable<'a>>>>,
}

impl<'a> Files<'a> {
    /// The mapped file, if it was opened.
    #[inline]
    pub(super) fn opened(&self) -> Option<&Opened<'a>> {
        self.binary.get()?.as_deref().ok()
    }

    /// Why the mapped file is not at hand, if somebody asked for it.
    pub(super) fn asked_in_vain(&self) -> Option<FileTrouble> {
        self.binary.get()?.as_ref().err().copied()
    }
}

/// Symbols of a kernel, once somebody has asked for them.
pub(super) type KernelCell<'a> = Arc<OnceLock<Arc<KernelSymbols<'a>>>>;

/// A path with a build ID.
type Build = (Vec<u8>, String);

/// Release and build ID of a kernel, and the folder of its recording if it lies in there.
type Kernel = (Option<String>, Option<String>, Option<PathBuf>);

/// Files and kernels that were opened.
#[derive(Default)]
pub struct Kin<'a> {
    files: Mutex<FxHashMap<Build, Arc<Files<'a>>>>,
    kernels: Mutex<FxHashMap<Kernel, KernelCell<'a>>>,
}

impl<'a> Kin<'a> {
    /// The files of all DSOs of this path and build.
    pub(super) fn of(&self, dso: &Dso) -> Option<Arc<Files<'a>>> {
        let id = dso.build_id.filter(|_| dso.kind == DsoKind::File)?;
        let key = (dso.long_name.clone(), id.to_string());
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(files.entry(key).or_default()))
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
