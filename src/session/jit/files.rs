//! Opens dumps and perf maps where [`crate::find`] says, each once.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::dumps::Dump;
use super::found::{FoundFile, open_file};
use crate::find::{JitPlaces, JitSearch};
use crate::input::{Door, Identity, InputError, Role, Store, Story};

/// Opens files by name, each once.
pub(super) struct Finder<'a> {
    store: &'a Store,
    pub(super) places: JitPlaces,
    opened: FxHashMap<Identity, &'a [u8]>,
    /// Dumps that were read already.
    early: FxHashMap<Identity, Dump<'a>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(store: &'a Store, search: JitSearch) -> Self {
        Self {
            store,
            places: JitPlaces::new(search),
            opened: FxHashMap::default(),
            early: FxHashMap::default(),
        }
    }

    /// Takes a dump that was read before anybody knew whether it is the right one.
    pub(super) fn add_early(&mut self, dump: Dump<'a>) {
        let identity = dump.file.identity;
        self.opened.entry(identity).or_insert(dump.file.bytes);
        self.early.insert(identity, dump);
    }

    /// Keeps a dump that was read and is another marker's.
    pub(super) fn put_back(&mut self, dump: Dump<'a>) {
        self.early.insert(dump.file.identity, dump);
    }

    /// Reads a file as a dump.
    pub(super) fn read(&mut self, file: FoundFile<'a>) -> Option<Dump<'a>> {
        match self.early.remove(&file.identity) {
            Some(dump) => Some(Dump { file, ..dump }),
            None => Dump::read(file, self.store),
        }
    }

    /// The bytes of a file.
    pub(super) fn open(&mut self, door: &Door) -> Result<FoundFile<'a>, InputError> {
        let opened = &self.opened;
        let file = open_file(self.store, door, |identity| opened.get(&identity).copied())?;
        self.opened.insert(file.identity, file.bytes);
        Ok(file)
    }

    /// What `pjit record` says of the recording that a map lies beside.
    pub(super) fn story_beside(&self, map: &Path) -> Option<Story> {
        Story::of(map.parent()?, self.store)
    }

    /// Notes that a file is what the recording expects at `place`.
    pub(super) fn note_used(&self, place: &Path, path: &Path) {
        self.store.used(place, path, Role::Jit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_two_names_is_opened_once() {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir(dir.path().join("extra")).expect("create");
        std::fs::write(dir.path().join("jit-5.dump"), b"x").expect("write");
        let store = Store::new();
        let mut finder = Finder::new(&store, JitSearch::default());
        let mut open = |path: &str| finder.open(&Door::named(dir.path().join(path)));
        let first = open("jit-5.dump").expect("it exists");
        let again = open("extra/../jit-5.dump").expect("it exists");
        assert!(first.is(&again) && std::ptr::eq(first.bytes, again.bytes));
        assert!(open("extra").is_err(), "a directory is no file");
    }
}
