//! The files of one DSO, each opened once by whoever needs it first; and who needs them early.
//!
//! Symbol tables of large programs take as long to read as the recording itself, so a thread of its own reads those of
//! files that samples hit ([`Preloader`]) while the session builder still walks the recording.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::elf::ElfFile;
use super::evidence::{Evidence, Span};
use super::files::{FileTrouble, Missed, Opened, Opener};
use super::go::{self, GoTable};
use super::kin::{Kin, SymbolCell};
use super::plt;
use super::symtab::SymbolTable;
use super::{BuildId, Dso, DsoId, DsoKind};
use crate::address::{FileOffset, Timestamp};
use crate::arch::Arch;
use crate::diagnostics::Diagnostics;
use crate::find::{self, Kind, Look, Place, SearchPaths};
use crate::input::{Role, Store};

/// What was opened for a DSO.
#[derive(Default)]
pub(super) struct Files<'a> {
    pub(super) binary: OnceLock<Result<Arc<Opened<'a>>, Missed>>,
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
    pub(super) fn missed(&self) -> Option<&Missed> {
        self.binary.get()?.as_ref().err()
    }
}

/// A DSO with what it takes to open its files.
#[derive(Clone, Copy)]
pub(super) struct Loading<'t, 'a> {
    pub(super) opener: Opener<'t, 'a>,
    pub(super) dso: &'t Dso,
    pub(super) files: &'t Files<'a>,
}

impl<'t, 'a> Loading<'t, 'a> {
    /// The file that was mapped.
    pub(super) fn binary(self) -> Option<&'t Opened<'a>> {
        self.found().as_deref().ok()
    }

    fn found(self) -> &'t Result<Arc<Opened<'a>>, Missed> {
        let cell = &self.files.binary;
        cell.get_or_init(|| self.opener.binary(self.dso).map(Arc::new))
    }

    /// Whether it is at hand already, as far as the recording has told; says nothing.
    fn is_found(self) -> bool {
        let silent = Diagnostics::brief();
        let opener = Opener {
            diag: &silent,
            ..self.opener
        };
        opener.binary(self.dso).is_ok()
    }

    /// Why that is not at hand.
    pub(super) fn trouble(self) -> Option<FileTrouble> {
        self.found().as_ref().err().map(|missed| missed.trouble)
    }

    /// The build ID by which other files of the DSO are found: that of a mapping, or of the file that was mapped. What the
    /// recording's table has for the path is that of another file where a mapping says so, or where several files had the path.
    pub(super) fn build_id(self) -> Option<BuildId> {
        let dso = self.dso;
        if dso.sure_of_id || dso.kind != DsoKind::File {
            return dso.build_id;
        }
        match self.found() {
            Ok(opened) => opened.elf.build_id(),
            Err(missed) => dso
                .build_id
                .filter(|_| !missed.refutes_id && !dso.shares_path),
        }
    }

    /// The same, if it is proven to be that of the DSO.
    pub(super) fn proven_build_id(self) -> Option<BuildId> {
        let is_guess = self
            .found()
            .as_ref()
            .is_ok_and(|opened| opened.evidence < Some(Evidence::Table));
        self.build_id()
            .filter(|_| !is_guess || self.dso.kind != DsoKind::File)
    }

    /// Its separate debug file.
    pub(super) fn separate(self) -> Option<&'t Opened<'a>> {
        let cell = &self.files.separate;
        cell.get_or_init(|| {
            let debug = self
                .opener
                .debug_file(self.dso, self.binary(), self.build_id());
            debug.map(Arc::new)
        })
        .as_deref()
    }

    /// The file with DWARF, if there is one, else the one that was mapped.
    pub(super) fn debug(self) -> Option<&'t Opened<'a>> {
        let binary = self.binary();
        let own = binary.filter(|opened| opened.has_dwarf);
        own.or_else(|| self.separate()).or(binary)
    }

    /// The file that was mapped, and [`debug`](Self::debug).
    pub(super) fn code(self) -> &'t [Option<Arc<Opened<'a>>>; 2] {
        self.files.code.get_or_init(|| {
            let own = self.binary();
            let has_dwarf = own.is_some_and(|opened| opened.has_dwarf);
            let apart = (!has_dwarf).then(|| self.separate()).flatten();
            let binary = self.files.binary.get().and_then(|file| file.as_ref().ok());
            let apart = apart.and_then(|_| self.files.separate.get()?.as_ref());
            [binary, apart.or(binary)].map(Option::<&Arc<_>>::cloned)
        })
    }

    /// What the DWARF refers to for what it shares with others.
    pub(super) fn supplementary(self) -> Option<&'t ElfFile<'a>> {
        let binary = self.binary();
        let cell = &self.files.supplementary;
        cell.get_or_init(|| {
            let own = binary.filter(|opened| opened.has_dwarf);
            let debug = own.or_else(|| self.separate())?;
            self.opener.supplementary(&debug.elf, debug.path())
        })
        .as_deref()
    }

    /// What is found in the first `.dwo` file that `fits`, of those that the compiler's `path` leads to: a name may be that of any
    /// file, and only an id tells which one it is.
    pub(super) fn split_file<T>(
        self,
        path: &Path,
        fits: impl FnMut(&ElfFile<'a>) -> Option<T>,
    ) -> Option<T> {
        let opened = self.opened();
        let beside = opened.iter().map(|opened| (opened.door(), &*opened.place));
        let places = self.opener.search.split_files(path, beside);
        self.split(path.as_os_str().as_encoded_bytes(), places, fits)
    }

    /// The same for the `.dwp` file beside the file it belongs to.
    pub(super) fn split_package<T>(self, fits: impl FnMut(&ElfFile<'a>) -> Option<T>) -> Option<T> {
        let opened = self.opened();
        let places = opened
            .iter()
            .filter_map(|opened| find::split_package(opened.door(), &opened.place));
        self.split(&self.dso.long_name, places.collect(), fits)
    }

    fn split<T>(
        self,
        what: &[u8],
        places: Vec<(Place, PathBuf)>,
        mut fits: impl FnMut(&ElfFile<'a>) -> Option<T>,
    ) -> Option<T> {
        let look = Look::new(self.opener.diag, Kind::SplitDebug, what);
        places.into_iter().find_map(|(place, recorded)| {
            let door = look.doors([place]).next()?;
            let elf = self.opener.any(&door, &look)?;
            let Some(found) = fits(&elf) else {
                look.missed(door.path(), "has another id");
                return None;
            };
            look.took(door.path());
            let store = self.opener.store;
            store.used(&recorded, door.path(), Role::Debug);
            Some(found)
        })
    }

    /// The mapped file and its debug file, if they are two.
    fn opened(self) -> Vec<&'t Opened<'a>> {
        let mut opened: Vec<_> = self.binary().into_iter().chain(self.debug()).collect();
        opened.dedup_by(|second, first| second.path() == first.path());
        opened
    }

    /// The symbols, loaded by `load` if they were not.
    pub(super) fn symbols(
        self,
        load: impl FnOnce() -> Option<SymbolTable<'a>>,
    ) -> Option<&'t SymbolTable<'a>> {
        let cell = &self.files.symbols;
        cell.get_or_init(|| {
            let load = || load().filter(|table| !table.is_empty()).map(Arc::new);
            match self.shared_symbols() {
                Some(shared) => shared.get_or_init(load).clone(),
                None => load(),
            }
        })
        .as_deref()
    }

    /// Where the symbols of DSOs with the same files are kept.
    fn shared_symbols(self) -> Option<SymbolCell<'a>> {
        let kin = self.opener.kin;
        let binary = self.binary().filter(|_| self.dso.kind == DsoKind::File)?;
        let is_whole = binary.elf.has_section(".symtab");
        let separate = (!is_whole).then(|| self.separate()).flatten();
        Some(kin.symbols(&binary.elf, separate.map(|opened| &*opened.elf)))
    }

    /// The first of these that has a symbol table: the file itself, its debug file, the one embedded in
    /// it; else its dynamic symbols, and the functions that Go knows of. (perf looks for debug files first, but a file that kept its table has none
    /// with a better one.)
    pub(super) fn load_file_symbols(self) -> Option<SymbolTable<'a>> {
        let binary = self.binary().map(|opened| &*opened.elf);
        if let Some(own) = binary.filter(|elf| elf.has_section(".symtab")) {
            return Some(plt::symbols_of(own, own, false));
        }
        let separate = self.separate().map(|opened| &*opened.elf);
        if let Some(debug) = separate.filter(|elf| elf.has_section(".symtab")) {
            return Some(plt::symbols_of(debug, binary.unwrap_or(debug), false));
        }
        let binary = binary?;
        if let Some(embedded) = self.opener.embedded(binary) {
            return Some(plt::symbols_of(&embedded, binary, true));
        }
        let mut table = plt::symbols_of(binary, binary, false);
        if let Some(go) = GoTable::of(binary) {
            go::add_symbols(&mut table, &go, binary);
        }
        Some(table)
    }
}

/// Loads symbols of files; made by [`super::DsoTable::preloader`].
pub struct Preloader<'a> {
    pub(super) wanted: Receiver<Wanted<'a>>,
    pub(super) store: &'a Store,
    pub(super) search: Arc<SearchPaths>,
    pub(super) diag: &'a Diagnostics,
    pub(super) arch: Option<Arch>,
    pub(super) here: Option<Span>,
    pub(super) began: Option<Timestamp>,
    pub(super) kin: Arc<Kin<'a>>,
}

/// A place in a file, whose symbol will be asked for.
pub(super) struct Wanted<'a> {
    dso: Option<Box<Dso>>,
    files: Arc<Files<'a>>,
    at: FileOffset,
}

impl Preloader<'_> {
    /// To be run in a thread; ends when the table is filled.
    pub fn run(self) {
        for wanted in self.wanted {
            if let Some(dso) = wanted.dso {
                let opener = Opener {
                    store: self.store,
                    search: &self.search,
                    diag: self.diag,
                    arch: self.arch,
                    here: self.here.as_ref(),
                    began: self.began,
                    kin: &self.kin,
                };
                let loading = Loading {
                    opener,
                    dso: &dso,
                    files: &wanted.files,
                };
                // What is found missing now may be found when all mappings are known.
                if loading.is_found() {
                    loading.symbols(|| loading.load_file_symbols());
                }
            }
            let symbols = wanted.files.symbols.get().and_then(Option::as_deref);
            // Where symbols overlap, the first lookup has more to do.
            if let Some(symbols) = symbols {
                let _ = symbols.find(wanted.at.0);
            }
        }
    }
}

/// The other end of a [`Preloader`], if there is one.
#[derive(Default)]
pub(super) struct Preloads<'a> {
    wanted: Option<Sender<Wanted<'a>>>,
    /// How often each DSO was asked for.
    asked: FxHashMap<DsoId, u32>,
}

impl<'a> Preloads<'a> {
    /// Places of one file that are looked up early.
    const MOST_PLACES: u32 = 8192;

    /// The end that asks.
    pub(super) fn begin(&mut self) -> Receiver<Wanted<'a>> {
        let (sender, wanted) = channel();
        self.wanted = Some(sender);
        wanted
    }

    pub(super) fn ask(&mut self, id: DsoId, dso: &Dso, files: &Arc<Files<'a>>, at: FileOffset) {
        let Some(wanted) = &self.wanted else { return };
        let asked = self.asked.entry(id).or_default();
        if *asked < Self::MOST_PLACES {
            let dso = (*asked == 0).then(|| Box::new(dso.clone()));
            *asked += 1;
            let files = Arc::clone(files);
            // Without a thread it is done later.
            let _ = wanted.send(Wanted { dso, files, at });
        }
    }
}
