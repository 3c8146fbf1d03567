//! The files of one DSO, each opened once by whoever needs it first; and who needs them early.
//!
//! Symbol tables of large programs take as long to read as the recording itself, so a thread of its own reads those of
//! files that samples hit ([`Preloader`]) while the session builder still walks the recording.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustc_hash::FxHashMap;

use super::elf::{ElfFile, Machine};
use super::files::{FileTrouble, Opened, Opener};
use super::fit::{Fit, fit};
use super::go::{self, GoTable};
use super::kin::{Files, Kin};
use super::locate::SearchPaths;
use super::plt;
use super::symtab::SymbolTable;
use super::{Dso, DsoId, DsoKind};
use crate::address::FileOffset;
use crate::diagnostics::Diagnostics;
use crate::input::Store;

/// A DSO with what it takes to open its files.
#[derive(Clone, Copy)]
pub(super) struct Loading<'t, 'a> {
    pub(super) opener: Opener<'t, 'a>,
    pub(super) dso: &'t Dso,
    pub(super) files: &'t Files<'a>,
    /// What other recordings have opened.
    pub(super) kin: Option<&'t Kin<'a>>,
}

impl<'t, 'a> Loading<'t, 'a> {
    /// The file that was mapped.
    pub(super) fn binary(self) -> Option<&'t Opened<'a>> {
        let cell = &self.files.binary;
        cell.get_or_init(|| match self.kin() {
            Some(kin) => self.binary_of(kin),
            None => self.opener.binary(self.dso).map(Arc::new),
        })
        .as_deref()
        .ok()
    }

    fn kin(self) -> Option<&'t Files<'a>> {
        let cell = &self.files.kin;
        cell.get_or_init(|| self.kin?.of(self.dso)).as_deref()
    }

    /// The file that another recording has of this build, if it is what was mapped here, too.
    fn binary_of(self, kin: &Files<'a>) -> Result<Arc<Opened<'a>>, FileTrouble> {
        let mut is_first = false;
        let known = kin.binary.get_or_init(|| {
            is_first = true;
            self.opener.binary(self.dso).map(Arc::new)
        });
        match known {
            Err(trouble) if is_first => Err(*trouble),
            Ok(known) if is_first || self.is_fit(known) => Ok(Arc::clone(known)),
            _ => self.opener.binary(self.dso).map(Arc::new),
        }
    }

    fn is_fit(self, opened: &Opened<'a>) -> bool {
        self.dso.sure_of_id || fit(&opened.elf, &self.dso.mapped) != Fit::Refuted
    }

    /// Where everything that follows from the mapped file is kept: with those that have the same, if there are any.
    fn shared(self) -> &'t Files<'a> {
        let own = self.files.binary.get();
        let same = |kin: &&Files<'a>| match (kin.binary.get(), own) {
            (Some(Ok(theirs)), Some(Ok(own))) => Arc::ptr_eq(theirs, own),
            _ => false,
        };
        self.kin().filter(same).unwrap_or(self.files)
    }

    /// Whether the file is the one that was mapped, whatever the recording tells later; says nothing.
    fn is_certain(self) -> bool {
        let silent = Diagnostics::new();
        let opener = Opener {
            diag: &silent,
            ..self.opener
        };
        self.dso.sure_of_id || opener.binary(self.dso).is_ok()
    }

    /// Why that is not at hand.
    pub(super) fn trouble(self) -> Option<FileTrouble> {
        match self.binary() {
            Some(_) => None,
            None => self.files.binary.get()?.as_ref().err().copied(),
        }
    }

    /// Its separate debug file.
    pub(super) fn separate(self) -> Option<&'t Opened<'a>> {
        let binary = self.binary();
        let cell = &self.shared().separate;
        cell.get_or_init(|| {
            let debug = self.opener.debug_file(self.dso, binary);
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
            let binary = self.binary();
            let has_dwarf = binary.is_some_and(|opened| opened.has_dwarf);
            let apart = (!has_dwarf).then(|| self.separate()).flatten();
            let binary = self.files.binary.get().and_then(|file| file.as_ref().ok());
            let apart = apart.and_then(|_| self.shared().separate.get()?.as_ref());
            [binary, apart.or(binary)].map(Option::<&Arc<_>>::cloned)
        })
    }

    /// What the DWARF refers to for what it shares with others.
    pub(super) fn supplementary(self) -> Option<&'t ElfFile<'a>> {
        let binary = self.binary();
        let cell = &self.shared().supplementary;
        cell.get_or_init(|| {
            let own = binary.filter(|opened| opened.has_dwarf);
            let debug = own.or_else(|| self.separate())?;
            let found = self.opener.supplementary(&debug.elf, &debug.path);
            found.map(Arc::new)
        })
        .as_deref()
    }

    /// A `.dwo` file by the path that the compiler was told, or of that name beside the file it belongs to.
    pub(super) fn split_file(self, path: &Path) -> Option<ElfFile<'a>> {
        let name = path.file_name();
        let beside = self.opened().into_iter().filter_map(|opened| {
            let [path, place] = [&opened.path, &opened.place];
            Some((path.with_file_name(name?), place.with_file_name(name?)))
        });
        let recorded = path.is_absolute().then(|| self.opener.in_roots(path));
        let recorded = recorded.into_iter().flatten();
        recorded
            .map(|found| (found, path.to_owned()))
            .chain(beside)
            .find_map(|(found, place)| self.opener.any(&found, &place))
    }

    /// The `.dwp` file beside the file it belongs to.
    pub(super) fn split_package(self) -> Option<ElfFile<'a>> {
        self.opened().into_iter().find_map(|opened| {
            let [path, place] = [&opened.path, &opened.place].map(|file| {
                let mut file = file.clone();
                file.as_mut_os_string().push(".dwp");
                file
            });
            self.opener.any(&path, &place)
        })
    }

    /// The mapped file and its debug file, if they are two.
    fn opened(self) -> Vec<&'t Opened<'a>> {
        let mut opened: Vec<_> = self.binary().into_iter().chain(self.debug()).collect();
        opened.dedup_by(|second, first| second.path == first.path);
        opened
    }

    /// The symbols, loaded by `load` if they were not.
    pub(super) fn symbols(
        self,
        load: impl FnOnce() -> Option<SymbolTable<'a>>,
    ) -> Option<&'t SymbolTable<'a>> {
        let is_file = self.dso.kind == DsoKind::File;
        let files = match is_file && self.binary().is_some() {
            true => self.shared(),
            false => self.files,
        };
        let symbols = || load().filter(|table| !table.is_empty()).map(Arc::new);
        let known = files.symbols.get_or_init(symbols);
        let cell = &self.files.symbols;
        cell.get_or_init(|| known.clone()).as_deref()
    }

    /// The first of these that has a symbol table: the file itself, its debug file, the one embedded in
    /// it; else its dynamic symbols, and the functions that Go knows of. (perf looks for debug files first, but a file that kept its table has none
    /// with a better one.)
    pub(super) fn load_file_symbols(self) -> Option<SymbolTable<'a>> {
        let binary = self.binary().map(|opened| &opened.elf);
        if let Some(own) = binary.filter(|elf| elf.has_section(".symtab")) {
            return Some(plt::symbols_of(own, own, false));
        }
        let separate = self.separate().map(|opened| &opened.elf);
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
    pub(super) machine: Machine,
    pub(super) kin: Option<Arc<Kin<'a>>>,
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
                    machine: self.machine,
                };
                let loading = Loading {
                    opener,
                    dso: &dso,
                    files: &wanted.files,
                    kin: self.kin.as_deref(),
                };
                // What is found missing now may be found when all mappings are known.
                if loading.is_certain() {
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
