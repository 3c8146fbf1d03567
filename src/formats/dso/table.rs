//! The DSOs of a run: identity, names, and their files, opened when first asked for.
//!
//! In: names, build IDs and inodes from the recording, in time order. Out: [`DsoId`]s and, for each, the
//! mapped file, the file with debug information and the symbol table. Filled by the session, then shared
//! by all workers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::elf::{ElfFile, string_at};
use super::evidence::{Evidence, Inode, MOST_RIVALS, Rival, Span};
use super::files::{FileTrouble, Opened, Opener};
use super::fit::MappedPart;
use super::kernel::KernelSymbols;
use super::kin::{KernelCell, Kin};
use super::preload::{Files, Loading, Preloader, Preloads};
use super::same_path::{Identity, SamePath, TableIds};
use super::symtab::SymbolTable;
use super::{BuildId, DsoId, DsoKind, KernelIdentity, KernelReference, KernelState};
use crate::address::{Avma, FileOffset, Timestamp};
use crate::arch::Arch;
use crate::diagnostics::Diagnostics;
use crate::find::{SearchPaths, debug_origin, path_of, pid_of_perf_map};
use crate::ids::IndexVec;
use crate::input::Store;

/// What is known about a DSO by name.
#[derive(Debug, Clone)]
pub struct Dso {
    /// The path or name as recorded.
    pub long_name: Vec<u8>,
    /// What columns show: base name, `[module]`, `[JIT] tid PID`.
    pub short_name: String,
    /// What it is.
    pub kind: DsoKind,
    /// Its build ID, from its records or from the recording's table, which tells it by path; see [`DsoTable::build_id`].
    pub(super) build_id: Option<BuildId>,
    /// All build IDs that the recording's table has for the path.
    pub(super) table_ids: Arc<Vec<BuildId>>,
    pub(super) inode: Option<Inode>,
    module_start: Option<Avma>,
    /// Whether a record of a mapping told the build ID. The recording's table tells only one for each path, and
    /// other files may have had it: in other mount namespaces, or later.
    pub(super) sure_of_id: bool,
    /// Whether several files had this path.
    pub(super) shares_path: bool,
    /// All files of this path if there are several, once all mappings are known.
    pub(super) rivals: Arc<[Rival]>,
    /// Its executable mappings, some of them.
    pub(super) mapped: SmallVec<[MappedPart; 2]>,
    /// When the first of these was made.
    pub(super) mapped_at: Option<Timestamp>,
    /// Processes that had it mapped, some of them, and when that was told first, for recordings of this machine.
    pub(super) mapped_by: SmallVec<[(u32, SystemTime); 1]>,
}

impl Dso {
    /// Its inode, if several files had its path.
    pub(crate) fn inode_among_others(&self) -> Option<u64> {
        let (_, _, number, _) = self.inode.filter(|_| self.shares_path)?;
        Some(number)
    }

    /// What tells it from other files of its path: the inode and the build ID that were recorded with it.
    #[must_use]
    pub fn told_apart_by(&self) -> (Option<u64>, Option<BuildId>) {
        let inode = self.inode_among_others();
        (inode, self.build_id.filter(|_| self.sure_of_id))
    }

    /// Builds that the recording knows of it: the one of its mapping, or those that the table has for the path.
    pub(super) fn builds(&self) -> &[BuildId] {
        if self.sure_of_id {
            self.build_id.as_slice()
        } else {
            &self.table_ids
        }
    }
}

/// Loads the kernel's symbols once; clones share the result. Lookups that come earlier wait for it.
#[derive(Clone)]
pub struct KernelLoader<'a> {
    store: &'a Store,
    diag: &'a Diagnostics,
    search: Arc<SearchPaths>,
    identity: KernelIdentity,
    symbols: KernelCell<'a>,
    /// The same of recordings that are read together with this one, where it is known to be theirs.
    shared: Option<KernelCell<'a>>,
    kin: Arc<Kin<'a>>,
    /// Whether anything asked for them: what is said of them then does not depend on which thread is first.
    is_wanted: Arc<AtomicBool>,
}

impl<'a> KernelLoader<'a> {
    /// Says that the symbols are needed. Whoever asks for their state after that waits for them.
    pub fn want(&self) {
        self.is_wanted.store(true, Ordering::Release);
    }

    /// Finds and parses the kernel's symbols unless that was done already.
    pub fn load(&self) {
        let _ = self.get();
    }

    /// The symbols, if anything asked for them.
    fn wanted(&self) -> Option<&KernelSymbols<'a>> {
        if self.is_wanted.load(Ordering::Acquire) {
            return Some(self.get());
        }
        self.symbols.get().map(|symbols| &**symbols)
    }

    fn get(&self) -> &KernelSymbols<'a> {
        let load = || {
            Arc::new(KernelSymbols::load(
                self.store,
                &self.kin.texts,
                &self.search,
                &self.identity,
                self.diag,
            ))
        };
        self.symbols.get_or_init(|| match &self.shared {
            Some(shared) => Arc::clone(shared.get_or_init(load)),
            None => load(),
        })
    }
}

/// Start, length, name.
type RecordedSymbol = (u64, u64, Box<[u8]>);

/// All DSOs of a run.
pub struct DsoTable<'a> {
    store: &'a Store,
    diag: &'a Diagnostics,
    search: Arc<SearchPaths>,
    dsos: IndexVec<DsoId, Dso>,
    files: IndexVec<DsoId, Arc<Files<'a>>>,
    /// Symbols that records name, by DSO: start, length, name.
    recorded: FxHashMap<DsoId, Vec<RecordedSymbol>>,
    preloads: Preloads<'a>,
    by_name: FxHashMap<Vec<u8>, SamePath>,
    /// The recording's table, by path.
    table_ids: FxHashMap<Vec<u8>, TableIds>,
    no_ids: Arc<Vec<BuildId>>,
    arch: Option<Arch>,
    reference: Option<KernelReference>,
    kernel: KernelLoader<'a>,
    kin: Arc<Kin<'a>>,
    here: Option<Span>,
    /// When that begins, by the recording's clock.
    first: Option<Timestamp>,
}

impl<'a> DsoTable<'a> {
    /// An empty table. Files that cannot be used are reported to `diag`.
    #[must_use]
    pub fn new(store: &'a Store, search: SearchPaths, diag: &'a Diagnostics) -> Self {
        let search = Arc::new(search);
        let kernel = KernelLoader {
            store,
            diag,
            search: Arc::clone(&search),
            identity: KernelIdentity::default(),
            symbols: Arc::default(),
            shared: None,
            kin: Arc::default(),
            is_wanted: Arc::default(),
        };
        Self {
            store,
            diag,
            search,
            dsos: IndexVec::new(),
            files: IndexVec::new(),
            recorded: FxHashMap::default(),
            preloads: Preloads::default(),
            by_name: FxHashMap::default(),
            table_ids: FxHashMap::default(),
            no_ids: Arc::default(),
            arch: Arch::host(),
            reference: None,
            kernel,
            kin: Arc::default(),
            here: None,
            first: None,
        }
    }

    /// The recording is of this machine as it is now, and was made at that time: files here may be the very ones that were
    /// mapped, or be known to be others.
    /// `first` is when that begins by the recording's clock, where it tells.
    pub fn set_made_here(&mut self, when: Span, first: Option<Timestamp>) {
        (self.here, self.first) = (Some(when), first);
    }

    /// Whether files can be judged by the times at which they were mapped, before all of the recording was read.
    #[must_use]
    pub const fn knows_times(&self) -> bool {
        self.here.is_none() || self.first.is_some()
    }

    /// Times of the first and of the last sample, for a recording whose header does not tell.
    pub fn tell_times(&mut self, (first, last): (u64, u64)) {
        if self.knows_times() || first == 0 {
            return;
        }
        if let Some(here) = &mut self.here {
            let length = Duration::from_nanos(last.saturating_sub(first));
            here.start = here.end.checked_sub(length).unwrap_or(here.start);
            self.first = Some(Timestamp(first));
        }
    }

    /// The architecture that was recorded (from the recording's `arch` feature, e.g. `x86_64`, `aarch64`); decides
    /// whether this process' own vdso can stand for the recorded one.
    pub fn set_arch(&mut self, arch: Option<Arch>) {
        self.arch = arch;
    }

    /// The architecture that was recorded, if it is known.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        self.arch
    }

    /// The recording's table of build IDs. To be called before the first [`intern`](Self::intern):
    /// as in perf the DSOs of that table come first, and maps of the same name take their IDs.
    pub fn set_build_ids(&mut self, entries: impl IntoIterator<Item = (Vec<u8>, BuildId)>) {
        for (name, id) in entries {
            self.table_ids.entry(name).or_default().push(id);
        }
    }

    /// Tells which kernel was recorded. To be called before [`kernel_loader`](Self::kernel_loader).
    pub fn set_kernel_identity(&mut self, identity: KernelIdentity) {
        self.kernel.identity = identity;
    }

    /// Takes what other recordings have opened, and lets them take what this one opens. To be called after
    /// [`set_kernel_identity`](Self::set_kernel_identity).
    pub fn share(&mut self, kin: &Arc<Kin<'a>>) {
        self.kernel.shared = kin.kernel(&self.search, &self.kernel.identity);
        self.kernel.kin = Arc::clone(kin);
        self.kin = Arc::clone(kin);
    }

    /// Tells where the recorded kernel's reference symbol was (from the kernel's MMAP record), for relocation.
    pub fn set_kernel_reference(&mut self, reference: KernelReference) {
        self.reference = Some(reference);
    }

    /// A handle to load the kernel's symbols with, in a thread, while the table is still being filled.
    #[must_use]
    pub fn kernel_loader(&self) -> KernelLoader<'a> {
        self.kernel.clone()
    }

    /// Where kernel symbols came from, for the quality line: a path, or `none: REASON`. `None` when nobody
    /// asked for kernel symbols.
    #[must_use]
    pub fn kernel_source(&self) -> Option<&str> {
        self.kernel.wanted().map(|symbols| symbols.source.as_str())
    }

    /// The build ID of the recorded kernel.
    #[must_use]
    pub fn kernel_build_id(&self) -> Option<BuildId> {
        self.kernel.identity.build_id
    }

    /// Whether the kernel's symbols were found, as far as anybody asked for them.
    #[must_use]
    pub fn kernel_state(&self) -> Option<KernelState> {
        let reference = self.reference.as_ref();
        self.kernel.wanted().map(|symbols| symbols.state(reference))
    }

    /// Tells where the recorded kernel put a module's code (start of its map).
    pub fn set_module_start(&mut self, id: DsoId, start: Avma) {
        self.dsos[id].module_start = Some(start);
    }

    /// Where the recorded kernel put a module's code; nothing for all else.
    #[must_use]
    pub fn module_start(&self, id: DsoId) -> Option<Avma> {
        self.dsos[id].module_start
    }

    /// Gives a DSO of kind [`DsoKind::KernelSymbol`] a symbol (KSYMBOL record: BPF program, trampoline).
    pub fn add_symbol(&mut self, id: DsoId, start: Avma, len: u64, name: &[u8]) {
        let recorded = self.recorded.entry(id).or_default();
        recorded.push((start.0, len, name.into()));
    }

    /// The DSO of this name and identity, a new one if need be. As in perf (`dso_id__cmp`) an inode only
    /// tells DSOs apart when both have one, and so does a build ID.
    pub fn intern(
        &mut self,
        name: &[u8],
        kind: DsoKind,
        build_id: Option<BuildId>,
        inode: Option<Inode>,
    ) -> DsoId {
        let inode = inode.filter(|&(_, _, ino, _)| ino != 0);
        let wanted = Identity { inode, build_id };
        let same = self.by_name.get_mut(name);
        if let Some((id, known)) = same.and_then(|same| same.find(&wanted)) {
            let dso = &mut self.dsos[id];
            dso.sure_of_id |= build_id.is_some();
            (dso.inode, dso.build_id) = (known.inode, known.build_id);
            return id;
        }
        self.add(name, kind, build_id, inode)
    }

    fn add(
        &mut self,
        name: &[u8],
        kind: DsoKind,
        build_id: Option<BuildId>,
        inode: Option<Inode>,
    ) -> DsoId {
        let id = self.dsos.next_idx();
        let sure_of_id = build_id.is_some();
        let (table_ids, build_id) = match self.table_ids.get_mut(name) {
            Some(table) => (Arc::clone(&table.all), table.take(build_id)),
            None => (Arc::clone(&self.no_ids), build_id),
        };
        let same_path = self.by_name.entry(name.to_vec()).or_default();
        let shares_path = same_path.all().len() > 0;
        // All others were told when the second one came.
        if let (1, Some(first)) = (same_path.all().len(), same_path.all().next()) {
            self.dsos[first].shares_path = true;
        }
        same_path.push(id, Identity { inode, build_id });
        self.dsos.push(Dso {
            long_name: name.to_vec(),
            short_name: short_name(name, kind),
            kind,
            build_id,
            table_ids,
            inode,
            module_start: None,
            sure_of_id,
            shares_path,
            rivals: Arc::default(),
            mapped: SmallVec::new(),
            mapped_at: None,
            mapped_by: SmallVec::new(),
        });
        self.files.push(Arc::default());
        id
    }

    /// Whether part of a DSO was mapped executable as a file.
    #[must_use]
    pub fn is_mapped_file(&self, id: DsoId) -> bool {
        !self.get(id).mapped.is_empty()
    }

    /// Part of a DSO's file was mapped executable at a time.
    pub fn note_mapped(&mut self, id: DsoId, part: MappedPart, time: Timestamp) {
        /// More tell nothing new: a file has one or two executable segments.
        const MOST: usize = 8;
        let dso = &mut self.dsos[id];
        dso.mapped_at = Some(dso.mapped_at.map_or(time, |known| known.min(time)));
        let mapped = &mut dso.mapped;
        if mapped.len() < MOST && !mapped.contains(&part) {
            mapped.push(part);
        }
    }

    /// A process had it mapped at a time.
    pub fn note_process(&mut self, id: DsoId, pid: u32, time: Timestamp) {
        /// One that still lives is enough.
        const MOST: usize = 8;
        let at = self.wall_clock(time);
        let by = &mut self.dsos[id].mapped_by;
        if let Some(at) = at.filter(|_| by.len() < MOST && by.iter().all(|(own, _)| *own != pid)) {
            by.push((pid, at));
        }
    }

    /// A time of a recording of this machine, by the clock of files.
    fn wall_clock(&self, time: Timestamp) -> Option<SystemTime> {
        let (here, first) = self.here.as_ref().zip(self.first)?;
        let since = Duration::from_nanos(time.0.saturating_sub(first.0));
        here.start.checked_add(since)
    }

    /// Names and identity of a DSO.
    #[must_use]
    pub fn get(&self, id: DsoId) -> &Dso {
        &self.dsos[id]
    }

    /// Number of DSOs; ids run from 0.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dsos.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dsos.is_empty()
    }

    /// The file whose bytes were mapped (of the right build, when that is known), for code bytes
    /// and `.eh_frame`. Opened at the first call; any thread may ask.
    #[must_use]
    pub fn binary(&self, id: DsoId) -> Option<&ElfFile<'a>> {
        let known = self.files[id].opened();
        let opened = known.or_else(|| self.loading(id).binary());
        opened.map(|opened| &*opened.elf)
    }

    /// The build ID of a DSO, as far as it is proven: one that the recording's table has for the path may be another file's.
    #[must_use]
    pub fn build_id(&self, id: DsoId) -> Option<BuildId> {
        self.loading(id).proven_build_id()
    }

    /// What tells that the mapped file at hand is the one that was mapped.
    #[must_use]
    pub fn evidence(&self, id: DsoId) -> Option<Evidence> {
        self.loading(id).binary()?.evidence
    }

    /// Why a mapped file is not at hand; `None` if it is, and for what is no file.
    #[must_use]
    pub fn trouble(&self, id: DsoId) -> Option<FileTrouble> {
        let is_file = matches!(self.get(id).kind, DsoKind::File | DsoKind::Vdso);
        is_file.then(|| self.loading(id).trouble()).flatten()
    }

    /// Whether a file that was mapped is not at hand, and others are in its place, as for a process that has another root. Says
    /// nothing of files that nobody asked for.
    #[must_use]
    pub fn is_of_other_root(&self, id: DsoId) -> bool {
        let missed = self.files[id].missed();
        missed.is_some_and(|missed| missed.is_of_other_root(self.get(id)))
    }

    /// Warns of the files that were asked for and not used, but for some.
    pub fn report_missed(&self, is_left_out: impl Fn(DsoId) -> bool) {
        let asked = self.files.iter_enumerated();
        let lacking = asked.filter_map(|(id, files)| Some((id, files.missed()?)));
        for (id, missed) in lacking.filter(|(id, _)| !is_left_out(*id)) {
            missed.report(self.get(id), self.diag);
        }
    }

    /// Whether other folders than this machine's stand for `/`.
    #[must_use]
    pub fn is_given_roots(&self) -> bool {
        self.search.symfs.is_some()
    }

    /// Whether it was recorded on this machine.
    #[must_use]
    pub fn is_of_here(&self) -> bool {
        self.here.is_some()
    }

    /// The files that were asked for and are not at hand, and why.
    pub fn missing(&self) -> impl Iterator<Item = (&Dso, FileTrouble)> {
        let asked = self.dsos.iter().zip(&self.files);
        let asked = asked.filter(|(dso, _)| matches!(dso.kind, DsoKind::File | DsoKind::Vdso));
        asked.filter_map(|(dso, files)| Some((dso, files.missed()?.trouble)))
    }

    /// The file with DWARF and `.debug_frame`: the binary itself or its separate debug file. File offsets
    /// mean nothing in a separate one: go through [`binary`](Self::binary) to stated addresses.
    #[must_use]
    pub fn debug(&self, id: DsoId) -> Option<&ElfFile<'a>> {
        let known = self.files[id].opened().filter(|opened| opened.has_dwarf);
        let opened = known.or_else(|| self.loading(id).debug());
        opened.map(|opened| &*opened.elf)
    }

    /// When the file with DWARF was written.
    #[must_use]
    pub fn written(&self, id: DsoId) -> Option<SystemTime> {
        self.loading(id).debug()?.written()
    }

    /// Both: [`binary`](Self::binary) and [`debug`](Self::debug). Quick, as they are asked for with each frame.
    #[must_use]
    #[inline]
    pub(crate) fn code_files(&self, id: DsoId) -> [Option<&ElfFile<'a>>; 2] {
        let files = self.files[id].code.get();
        let files = files.unwrap_or_else(|| self.loading(id).code());
        let [binary, debug] = files;
        // Not with the array's own `map`, which is a call of its own now and then.
        let binary = binary.as_ref().map(|opened| &*opened.elf);
        let debug = debug.as_ref().map(|opened| &*opened.elf);
        [binary, debug]
    }

    /// The file that the DWARF of [`debug`](Self::debug) refers to for what it shares with others (dwz).
    #[must_use]
    pub fn supplementary(&self, id: DsoId) -> Option<&ElfFile<'a>> {
        self.loading(id).supplementary()
    }

    /// The name of that file, if it is not at hand.
    #[must_use]
    pub fn missing_supplementary(&self, id: DsoId) -> Option<PathBuf> {
        let link = self.debug(id)?.section(".gnu_debugaltlink")?.data;
        let is_missing = self.supplementary(id).is_none();
        is_missing.then(|| path_of(string_at(link, 0)).to_owned())
    }

    /// What is found in the `.dwo` file that the DWARF of [`debug`](Self::debug) refers to by `path`: the first that `fits`.
    pub(crate) fn split_file<T>(
        &self,
        id: DsoId,
        path: &Path,
        fits: impl FnMut(&ElfFile<'a>) -> Option<T>,
    ) -> Option<T> {
        self.loading(id).split_file(path, fits)
    }

    /// The same for the `.dwp` file with all of them, beside the DSO.
    pub(crate) fn split_package<T>(
        &self,
        id: DsoId,
        fits: impl FnMut(&ElfFile<'a>) -> Option<T>,
    ) -> Option<T> {
        self.loading(id).split_package(fits)
    }

    /// Says that such a file was not found.
    pub(crate) fn report_missing_split(&self, id: DsoId) {
        self.diag.warn_beside(format!(
            "{}: its debug information is in .dwo files or in a .dwp file, of which at least one was not found; \
             functions that were inlined there are not shown",
            String::from_utf8_lossy(&self.get(id).long_name)
        ));
    }

    /// The symbols of a DSO by perf's rules, in file offsets (addresses for the kernel and its modules).
    #[must_use]
    pub fn symbols(&self, id: DsoId) -> Option<&SymbolTable<'a>> {
        self.loading(id).symbols(|| self.load_symbols(id))
    }

    /// What reads symbols of files while the table is still being filled, if it is run in a thread.
    pub fn preloader(&mut self) -> Preloader<'a> {
        Preloader {
            wanted: self.preloads.begin(),
            store: self.store,
            search: Arc::clone(&self.search),
            diag: self.diag,
            arch: self.arch,
            here: self.here.clone(),
            began: self.first,
            kin: Arc::clone(&self.kin),
        }
    }

    /// A sample hit this place of a file: its symbols will be needed. Of no effect without
    /// [`preloader`](Self::preloader), and where the file is not known for certain yet.
    pub fn preload(&mut self, id: DsoId, at: FileOffset) {
        let dso = &self.dsos[id];
        // A build ID may still come to be known.
        if dso.kind == DsoKind::File && dso.build_id.is_some() {
            let files = &self.files[id];
            self.preloads.ask(id, dso, files, at);
        }
    }

    /// All mappings are known, and nothing more will be asked of the [`preloader`](Self::preloader). What it found for a path
    /// that another file had as well is forgotten, unless its build ID was mapped.
    pub fn settle(&mut self) {
        self.preloads = Preloads::default();
        for id in self.dsos.indices() {
            let dso = &self.dsos[id];
            if dso.kind != DsoKind::File || !dso.shares_path {
                continue;
            }
            let same_path = self.by_name.get(&dso.long_name);
            if let Some(all) = same_path.filter(|same| same.all().next() == Some(id)) {
                let rivals = all.all().take(MOST_RIVALS + 1);
                let rivals: Arc<[Rival]> =
                    rivals.map(|rival| Rival::of(&self.dsos[rival])).collect();
                for other in all.all() {
                    self.dsos[other].rivals = Arc::clone(&rivals);
                }
            }
            // The other end may still be at it.
            if !self.dsos[id].sure_of_id {
                self.files[id] = Arc::default();
            }
        }
    }

    /// Notes where files are kept in a bundle that share their path. When the first of them was opened, the others were not known.
    pub(crate) fn note_builds(&self) {
        for (id, dso) in self.dsos.iter_enumerated() {
            let opened = self.files[id].opened().filter(|_| dso.shares_path);
            if let Some(opened) = opened {
                self.opener().note_build(dso, opened);
            }
        }
    }

    /// The directories that stand for `/` when files are looked for.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        self.search.roots()
    }

    /// perf's letter for where the symbols come from (`util/dso.c:dso__symtab_origin`), `!` for nowhere.
    #[must_use]
    pub fn symbol_origin(&self, id: DsoId) -> char {
        match self.get(id).kind {
            DsoKind::Kernel if self.vmlinux().is_some() => 'v',
            DsoKind::Kernel | DsoKind::Module => 'k',
            DsoKind::KernelSymbol => 'i',
            DsoKind::Anonymous | DsoKind::JitDump => 'j',
            DsoKind::File | DsoKind::Vdso if self.symbols(id).is_some() => self.file_origin(id),
            DsoKind::File | DsoKind::Vdso | DsoKind::Special => '!',
        }
    }

    fn file_origin(&self, id: DsoId) -> char {
        let has_symbols = |opened: &&Opened<'a>| opened.elf.has_section(".symtab");
        let binary = self.loading(id).binary();
        let is_cached = |opened: &Opened<'a>| {
            let cache = self.search.cache();
            cache.is_some_and(|cache| opened.path().starts_with(cache))
        };
        let own = if binary.is_some_and(is_cached) {
            'B'
        } else {
            'd'
        };
        if binary.filter(has_symbols).is_some() {
            return own;
        }
        match self.loading(id).separate().filter(has_symbols) {
            Some(debug) if is_cached(debug) && debug.path().ends_with("debug") => 'D',
            Some(debug) if is_cached(debug) => 'B',
            Some(debug) => debug_origin(debug.path(), &self.get(id).long_name),
            None => own,
        }
    }

    /// The vmlinux file that the kernel's symbols come from, if they do, and what to add to an address of
    /// the recording to get its stated address.
    #[must_use]
    pub fn vmlinux(&self) -> Option<(&ElfFile<'a>, u64)> {
        let kernel = self.kernel.get();
        kernel
            .vmlinux()
            .map(|elf| (elf, kernel.bias(self.reference.as_ref())))
    }

    /// Path of that vmlinux.
    #[must_use]
    pub fn vmlinux_path(&self) -> Option<&str> {
        let kernel = self.kernel.get();
        kernel.vmlinux().map(|_| kernel.source.as_str())
    }

    #[inline]
    fn loading(&self, id: DsoId) -> Loading<'_, 'a> {
        Loading {
            opener: self.opener(),
            dso: self.get(id),
            files: &self.files[id],
        }
    }

    #[inline]
    fn opener(&self) -> Opener<'_, 'a> {
        Opener {
            store: self.store,
            search: &self.search,
            diag: self.diag,
            arch: self.arch,
            here: self.here.as_ref(),
            began: self.first,
            kin: &self.kin,
        }
    }

    fn load_symbols(&self, id: DsoId) -> Option<SymbolTable<'a>> {
        let dso = self.get(id);
        match dso.kind {
            DsoKind::File | DsoKind::Vdso => self.loading(id).load_file_symbols(),
            DsoKind::Kernel => {
                let symbols = self.kernel.get();
                if let Some(problem) = &symbols.problem {
                    self.diag.warn_beside(problem.as_str());
                }
                if symbols.state(self.reference.as_ref()) == KernelState::OtherBuild {
                    self.diag.warn_beside(format!(
                        "{}: not of the recorded kernel, whose code has another size; names of kernel functions may \
                         be wrong (--kallsyms FILE)",
                        symbols.source
                    ));
                }
                symbols.kernel(self.reference.as_ref())
            }
            DsoKind::Module => {
                let kernel = self.kernel.get();
                let reference = self.reference.as_ref();
                if kernel.is_of_another_boot(reference) {
                    self.diag.warn_beside(format!(
                        "{}: of another boot than the recording; modules lay elsewhere, and only their files can name \
                         their functions",
                        kernel.source
                    ));
                }
                let listed = kernel.module(&dso.short_name, reference);
                let from_file = self.search.modules || listed.is_none();
                let file = from_file.then(|| self.opener().module(dso)).flatten();
                let own = file.and_then(|elf| SymbolTable::of_module(&elf, dso.module_start?.0));
                own.or(listed)
            }
            DsoKind::KernelSymbol => Some(SymbolTable::of_records(
                self.recorded.get(&id).into_iter().flatten().cloned(),
            )),
            DsoKind::Anonymous | DsoKind::JitDump | DsoKind::Special => None,
        }
    }
}

/// perf's short name (`dso__set_basename`, `kmod_path__parse`).
fn short_name(name: &[u8], kind: DsoKind) -> String {
    let text = String::from_utf8_lossy(name);
    match kind {
        DsoKind::Kernel => "[kernel.kallsyms]".to_owned(),
        DsoKind::Module => module_name(&text),
        DsoKind::Vdso => "[vdso]".to_owned(),
        _ => match pid_of_perf_map(&text) {
            Some(pid) => format!("[JIT] tid {pid}"),
            None => text.rsplit('/').next().unwrap_or_default().to_owned(),
        },
    }
}

/// `[foo_bar]` of `/lib/modules/…/foo-bar.ko.xz`; names that are in brackets already stay.
fn module_name(path: &str) -> String {
    if path.starts_with('[') {
        return path.to_owned();
    }
    let base = path.rsplit('/').next().unwrap_or_default();
    let stem = base.split_once(".ko").map_or(base, |(stem, _)| stem);
    format!("[{}]", stem.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_perfs() {
        let of = |name: &str, kind| short_name(name.as_bytes(), kind);
        assert_eq!(
            of("/lib/modules/6.1/kernel/net/foo-bar.ko.xz", DsoKind::Module),
            "[foo_bar]"
        );
        assert_eq!(of("[bpf]", DsoKind::Module), "[bpf]");
        assert_eq!(
            of("[kernel.kallsyms]_text", DsoKind::Kernel),
            "[kernel.kallsyms]"
        );
        assert_eq!(of("/tmp/perf-77.map", DsoKind::Anonymous), "[JIT] tid 77");
        assert_eq!(of("//anon", DsoKind::Special), "anon");
        assert_eq!(of("/memfd:x (deleted)", DsoKind::File), "memfd:x (deleted)");
        assert_eq!(of("/usr/lib/libc.so.6", DsoKind::File), "libc.so.6");
    }

    #[test]
    fn kernel_symbols_that_were_asked_for_are_waited_for() {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let table = DsoTable::new(&store, SearchPaths::default(), &diag);
        assert_eq!((table.kernel_source(), table.kernel_state()), (None, None));
        // Whoever reads them in a thread may not have begun yet.
        table.kernel_loader().want();
        assert!(table.kernel_source().is_some() && table.kernel_state().is_some());
    }

    #[test]
    fn absent_identity_matches_anything() {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut table = DsoTable::new(&store, SearchPaths::default(), &diag);
        let id = BuildId::new(&[7; 20]);
        table.set_build_ids([(b"/a".to_vec(), id.expect("not zero"))]);
        let a = table.intern(b"/a", DsoKind::File, None, Some((8, 1, 42, 0)));
        assert_eq!(table.get(a).build_id, id);
        assert_eq!(table.intern(b"/a", DsoKind::File, None, None), a);
        let other_inode = table.intern(b"/a", DsoKind::File, None, Some((8, 1, 43, 0)));
        assert_ne!(other_inode, a);
        assert_eq!(table.get(other_inode).build_id, None);
        assert_ne!(
            table.intern(
                b"/a",
                DsoKind::File,
                BuildId::new(&[8; 20]),
                Some((8, 1, 42, 0))
            ),
            a
        );
    }
}
