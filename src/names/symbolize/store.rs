//! Debug information that was opened for one recording, and what it said, for those behind it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::dwarf::DebugInfo;
use super::memo::Memo;
use super::shown::ShownNames;
use super::unpacked::Unpacked;
use crate::dso::elf::ElfFile;
use crate::input::Store;

/// Debug information that was opened, for recordings whose files are the same bytes.
#[derive(Default)]
pub struct DebugStore<'a> {
    opened: Mutex<FxHashMap<Key, Opening<'a>>>,
    /// Names that were shown before, where more than one recording asks.
    pub(super) shown: Option<ShownNames>,
    unpacked: Option<Unpacked<'a>>,
}

/// All that the answers depend on: the file and the one that it shares entries with, by their bytes, which never move; whether
/// lines are asked for; and where files are looked for, if units have their entries in other files.
type Key = (usize, usize, bool, Option<Vec<PathBuf>>);

type Opening<'a> = Arc<OnceLock<Option<Opened<'a>>>>;

/// The debug information of a file.
#[derive(Clone)]
pub(super) struct Opened<'a> {
    pub(super) info: Arc<DebugInfo<'a>>,
    /// What its units said before, where more than one recording asks.
    pub(super) memo: Option<Arc<Memo<'a>>>,
}

impl<'d> DebugStore<'d> {
    /// Unpacks sections into a store of their own, which need not live as long as the files.
    #[must_use]
    pub fn apart(store: &'d Store) -> Self {
        Self {
            unpacked: Some(Unpacked::new(store)),
            ..Self::default()
        }
    }

    /// For several recordings: what is found out for one is kept for the others.
    #[must_use]
    pub fn shared() -> Self {
        Self {
            shown: Some(ShownNames::default()),
            ..Self::default()
        }
    }

    /// Forgets what depends on files that were looked for, those of split units.
    pub fn forget_places(&self) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|(_, _, _, roots), _| roots.is_none());
    }

    /// See [`DebugInfo::of_files`]. `roots`: where files are looked for.
    pub(super) fn get<'a: 'd>(
        &self,
        elf: &ElfFile<'a>,
        supplementary: Option<&ElfFile<'a>>,
        lines: bool,
        roots: impl FnOnce() -> Vec<PathBuf>,
    ) -> Option<Opened<'d>> {
        let place = |file: &ElfFile<'a>| file.bytes().as_ptr().addr();
        // Skeletons of split units have their addresses in a section of their own.
        let roots = elf.has_section(".debug_addr").then(roots);
        let key = (place(elf), supplementary.map_or(0, place), lines, roots);
        let opening = {
            let mut known = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let opened = opening.get_or_init(|| {
            let unpacked = self.unpacked.as_ref();
            let info = DebugInfo::of_files(elf, supplementary, lines, unpacked)?;
            Some(Opened {
                info: Arc::new(info),
                memo: self.shown.is_some().then(Arc::default),
            })
        });
        // What may be read is so much for each recording.
        opened.iter().for_each(|opened| opened.info.refill());
        opened.clone()
    }
}
