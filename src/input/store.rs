//! The arena of bytes: mapped files and decompressed buffers, alive as long as the store.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use elsa::sync::FrozenVec;
use memmap2::Mmap;
use rustc_hash::FxHashMap;

use super::ledger::{Ledger, Role};
use super::{Door, Identity, InputError, Judged, Refusal, note_opened};

/// Owns the bytes of every file that a run reads. Append-only, so borrowed slices stay valid.
#[derive(Default)]
pub struct Store {
    maps: FrozenVec<Box<Mmap>>,
    buffers: FrozenVec<Box<[u8]>>,
    /// Under however many names a file is asked for, its bytes are there once.
    known: Mutex<FxHashMap<State, Place>>,
    refused: Mutex<BTreeSet<(Refusal, PathBuf)>>,
    ledger: Option<Arc<Ledger>>,
}

/// A file as it was at a time: its identity and size, and when it was written.
type State = (Identity, u64, Option<SystemTime>);

/// Where the bytes of a file are.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Map(usize),
    Buffer(usize),
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that notes what it is used for.
    #[must_use]
    pub fn with_ledger(ledger: Arc<Ledger>) -> Self {
        Self {
            ledger: Some(ledger),
            ..Self::default()
        }
    }

    /// Notes that the file that was opened at `path` is what the recording expects at `place`.
    pub fn used(&self, place: &Path, path: &Path, role: Role) {
        if let Some(ledger) = &self.ledger {
            ledger.used(place, path, role);
        }
    }

    /// Notes that the file of this name was of use, but not proven to be the recording's.
    pub fn left_out(&self, place: &Path) {
        if let Some(ledger) = &self.ledger {
            ledger.left_out(place);
        }
    }

    /// The same for bytes that no file has.
    pub fn used_bytes(&self, place: &Path, bytes: &[u8], role: Role) {
        if let Some(ledger) = &self.ledger {
            ledger.used_bytes(place, bytes.to_vec(), role);
        }
    }

    /// Notes that bytes of a file were looked at.
    #[inline]
    pub fn read(&self, bytes: &[u8]) {
        if let Some(ledger) = &self.ledger {
            ledger.read(bytes);
        }
    }

    /// Opens a file, and counts it if it is refused.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn open(&self, door: &Door) -> Result<Judged, InputError> {
        let opened = door.open();
        if let Err(InputError::Refused { path, why }) = &opened {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.insert((*why, path.clone()));
        }
        if let Ok(judged) = &opened {
            note_opened(door.path(), judged.meta());
        }
        opened
    }

    /// The files that were there and not opened, in order.
    pub fn take_refused(&self) -> BTreeSet<(Refusal, PathBuf)> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *refused)
    }

    /// The bytes of a file, mapped. Small ones are read instead, and those that the user or pjit itself named and that have no
    /// size (files of /proc, FIFOs), up to `MAX_READ`.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a regular file, or cannot be mapped.
    pub fn map(&self, door: &Door) -> Result<&[u8], InputError> {
        self.map_judged(&self.open(door)?)
    }

    /// The bytes of an open file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn map_judged(&self, judged: &Judged) -> Result<&[u8], InputError> {
        /// `perf inject --jit` leaves one ELF file for each function, and a process may have 65 530 maps.
        const SMALL: u64 = 16 << 10;
        let len = judged.meta().len();
        let key = (judged.identity(), len, judged.meta().modified().ok());
        let known = self.lock_known().get(&key).copied();
        let place = match known {
            Some(place) => place,
            None => {
                let place = if len <= SMALL {
                    Place::Buffer(self.read_judged(judged)?)
                } else {
                    self.map_whole(judged.door().path(), judged.file())?
                };
                self.lock_known().insert(key, place);
                place
            }
        };
        let bytes = self.at(place);
        if let Some(ledger) = &self.ledger {
            ledger.opened(judged, bytes);
        }
        Ok(bytes)
    }

    fn lock_known(&self) -> std::sync::MutexGuard<'_, FxHashMap<State, Place>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn at(&self, place: Place) -> &[u8] {
        let bytes = match place {
            Place::Map(at) => self.maps.get(at).map(|map| -> &[u8] { map }),
            Place::Buffer(at) => self.buffers.get(at),
        };
        bytes.unwrap_or_default()
    }

    /// `path` is for messages.
    pub(super) fn map_whole(&self, path: &Path, file: &File) -> Result<Place, InputError> {
        #[expect(
            unsafe_code,
            reason = "mapping a file is the one thing that cannot be done safely"
        )]
        // SAFETY: the mapping is shared and read-only. Another process that cuts the file while we
        // read it can make us die by SIGBUS, as it can every reader that maps its input; the bytes
        // themselves are only ever treated as untrusted data.
        let map = unsafe { Mmap::map(file) }.map_err(|e| InputError::io(path, e))?;
        Ok(Place::Map(self.maps.push_get_index(Box::new(map))))
    }

    fn read_judged(&self, judged: &Judged) -> Result<usize, InputError> {
        use std::io::Read;
        /// /proc/kallsyms of a kernel with many modules has some 20 MB.
        const MAX_READ: u64 = 256 << 20;
        let mut bytes = Vec::new();
        let mut part = judged.file().take(judged.limit().min(MAX_READ));
        part.read_to_end(&mut bytes)
            .map_err(|e| InputError::io(judged.door().path(), e))?;
        // Nobody wrote to it.
        if bytes.is_empty() && !judged.meta().is_file() {
            return Err(InputError::NotRegular {
                path: judged.door().path().to_owned(),
            });
        }
        Ok(self.buffers.push_get_index(bytes.into_boxed_slice()))
    }

    /// The same for a string and the byte that ends it.
    #[inline]
    pub fn read_text(&self, text: &[u8]) {
        if let Some(ledger) = &self.ledger {
            ledger.read_text(text);
        }
    }

    /// Gives the pages of a part of a mapped file back to the system; reading them again costs a fault
    /// each. Does nothing for bytes that are no map of this store.
    pub fn release(&self, bytes: &[u8]) {
        let start = bytes.as_ptr() as usize;
        let holds = |map: &&Mmap| {
            let base = map.as_ptr() as usize;
            base <= start && start + bytes.len() <= base + map.len()
        };
        let Some(map) = self.maps.iter().find(holds) else {
            return;
        };
        #[cfg(unix)]
        release_of(map, start - map.as_ptr() as usize, bytes.len());
        #[cfg(not(unix))]
        let _ = map;
    }

    /// The same for all mapped files.
    pub fn release_all(&self) {
        #[cfg(unix)]
        for map in self.maps.iter() {
            release_of(map, 0, map.len());
        }
    }

    /// Bytes of all buffers.
    pub fn kept(&self) -> usize {
        self.buffers.iter().map(<[u8]>::len).sum()
    }

    /// Keeps a buffer (decompressed or assembled bytes) for the rest of the run.
    pub fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.buffers.push_get(bytes.into_boxed_slice())
    }
}

#[cfg(unix)]
fn release_of(map: &Mmap, offset: usize, len: usize) {
    use memmap2::UncheckedAdvice::DontNeed;
    #[expect(
        unsafe_code,
        reason = "memmap2 cannot know that the mapping is of a file"
    )]
    // SAFETY: the mapping is a shared, read-only one of a file, so pages that are dropped come back
    // with the same bytes at the next access.
    let released = unsafe { map.unchecked_advise_range(DontNeed, offset, len) };
    // A system that will not release pages only costs memory.
    drop(released);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_bytes_can_be_read_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("data");
        let content: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).expect("written");
        let store = Store::new();
        let bytes = store.map(&Door::named(path)).expect("mapped");
        assert_eq!(bytes, content);
        store.release(&bytes[4096..90_000]);
        store.release(&content);
        assert_eq!(bytes, content);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let store = Store::new();
        for path in ["/", "/dev/zero"] {
            for door in [Door::named(path), Door::recorded(path)] {
                let found = store.map(&door);
                assert!(
                    matches!(found, Err(InputError::NotRegular { .. })),
                    "{door:?}"
                );
            }
        }
        assert!(store.take_refused().is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn a_file_of_many_names_is_read_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let names = ["a", "b"].map(|name| dir.path().join(name));
        for size in [100, 100_000] {
            std::fs::write(&names[0], vec![b'x'; size]).expect("written");
            let _ = std::fs::remove_file(&names[1]);
            std::os::unix::fs::symlink(&names[0], &names[1]).expect("linked");
            let store = Store::new();
            let bytes = names
                .clone()
                .map(|name| store.map(&Door::recorded(name)).expect("read"));
            assert!(bytes[0].len() == size && std::ptr::eq(bytes[0], bytes[1]));
        }
    }
}
