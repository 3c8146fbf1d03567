//! Debug information that was opened for one recording, and what it said, for those behind it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::dwarf::DebugInfo;
use super::memo::Memo;
use super::shown::ShownNames;
use crate::dso::elf::ElfFile;

/// Debug information that was opened, for recordings whose files are the same bytes.
#[derive(Default)]
pub struct DebugStore<'a> {
    opened: Mutex<FxHashMap<(usize, bool), Opening<'a>>>,
    /// Names that were shown before, where more than one recording asks.
    pub(super) shown: Option<ShownNames>,
}

type Opening<'a> = Arc<OnceLock<Option<Opened<'a>>>>;

/// The debug information of a file.
#[derive(Clone)]
pub(super) struct Opened<'a> {
    pub(super) info: Arc<DebugInfo<'a>>,
    /// What its units said before, where more than one recording asks.
    pub(super) memo: Option<Arc<Memo<'a>>>,
}

impl<'a> DebugStore<'a> {
    /// For several recordings: what is found out for one is kept for the others.
    #[must_use]
    pub fn shared() -> Self {
        Self {
            shown: Some(ShownNames::default()),
            ..Self::default()
        }
    }

    /// See [`DebugInfo::new`]. A file's bytes never move, and tell which one it is.
    pub(super) fn get(
        &self,
        elf: &ElfFile<'a>,
        supplementary: Option<&ElfFile<'a>>,
        lines: bool,
    ) -> Option<Opened<'a>> {
        let key = (elf.bytes().as_ptr() as usize, lines);
        let opening = {
            let mut known = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let opened = opening.get_or_init(|| {
            let info = DebugInfo::new(elf, supplementary, lines)?;
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
