//! Sections of debug information that are unpacked into a store of their own, which may be given back before the files are.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use crate::dso::elf::ElfFile;
use crate::input::Store;

/// Sections that were unpacked for debug information alone: megabytes that nobody needs once everything has its name.
pub(super) struct Unpacked<'d> {
    store: &'d Store,
    /// By the file's bytes and the section's name; an empty one is not there.
    sections: Mutex<FxHashMap<(usize, String), Section<'d>>>,
}

type Section<'d> = Arc<OnceLock<&'d [u8]>>;

impl<'d> Unpacked<'d> {
    pub(super) fn new(store: &'d Store) -> Self {
        Self {
            store,
            sections: Mutex::default(),
        }
    }

    pub(super) fn section<'a: 'd>(&self, elf: &ElfFile<'a>, name: &str) -> Option<&'d [u8]> {
        let key = (elf.bytes().as_ptr() as usize, name.to_owned());
        let cell = {
            let mut known = self.sections.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let bytes = *cell.get_or_init(|| match elf.debug_section_apart(name) {
            Some(Cow::Borrowed(bytes)) => bytes,
            Some(Cow::Owned(bytes)) => self.store.keep(bytes),
            None => &[],
        });
        (!bytes.is_empty()).then_some(bytes)
    }
}
