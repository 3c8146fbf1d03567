//! The arena of bytes: mapped files and decompressed buffers, alive as long as the store.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use elsa::sync::FrozenVec;
use memmap2::Mmap;

use super::ledger::{Ledger, Origin, Role};
use super::{InputError, note_opened, os};

/// Owns the bytes of every file that a run reads. Append-only, so borrowed slices stay valid.
#[derive(Default)]
pub struct Store {
    maps: FrozenVec<Box<Mmap>>,
    buffers: FrozenVec<Box<[u8]>>,
    ledger: Option<Arc<Ledger>>,
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

    /// Notes that the file at `path` is what the recording expects at `place`.
    pub fn used(&self, place: &Path, path: &Path, role: Role) {
        if let Some(ledger) = &self.ledger {
            ledger.used(place, Origin::File(path.to_owned()), role);
        }
    }

    /// The same for bytes that no file has.
    pub fn used_bytes(&self, place: &Path, bytes: &[u8], role: Role) {
        if let Some(ledger) = &self.ledger {
            ledger.used(place, Origin::Memory(bytes.to_vec()), role);
        }
    }

    /// Notes that bytes of a file were looked at.
    #[inline]
    pub fn read(&self, bytes: &[u8]) {
        if let Some(ledger) = &self.ledger {
            ledger.read(bytes);
        }
    }

    /// Opens a regular file for reading. `O_NONBLOCK` keeps a FIFO from blocking the open.
    ///
    /// # Errors
    /// When the file cannot be opened or is not a regular file.
    pub fn open(path: &Path) -> Result<(File, std::fs::Metadata), InputError> {
        let file = os::without_waiting(OpenOptions::new().read(true))
            .open(path)
            .map_err(|e| InputError::io(path, e))?;
        let meta = file.metadata().map_err(|e| InputError::io(path, e))?;
        if !meta.is_file() {
            return Err(InputError::NotRegular {
                path: path.to_owned(),
            });
        }
        note_opened(path, &meta);
        Ok((file, meta))
    }

    /// The bytes of a regular file, mapped. Files that cannot be mapped and have no size
    /// (those under /proc) are read instead, up to `MAX_READ`.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a regular file, or cannot be mapped.
    pub fn map(&self, path: &Path) -> Result<&[u8], InputError> {
        let (file, meta) = Self::open(path)?;
        self.map_file(path, &file, &meta)
    }

    /// The bytes of an open regular file. `path` is for messages.
    pub(super) fn map_file(
        &self,
        path: &Path,
        file: &File,
        meta: &std::fs::Metadata,
    ) -> Result<&[u8], InputError> {
        /// `perf inject --jit` leaves one ELF file for each function, and a process may have 65 530 maps.
        const SMALL: u64 = 16 << 10;
        if meta.len() <= SMALL {
            return self.read_unsized(path, file);
        }
        #[expect(
            unsafe_code,
            reason = "mapping a file is the one thing that cannot be done safely"
        )]
        // SAFETY: the mapping is shared and read-only. Another process that cuts the file while we
        // read it can make us die by SIGBUS, as it can every reader that maps its input; the bytes
        // themselves are only ever treated as untrusted data.
        let map = unsafe { Mmap::map(file) }.map_err(|e| InputError::io(path, e))?;
        let bytes: &[u8] = self.maps.push_get(Box::new(map));
        self.opened(path, bytes);
        Ok(bytes)
    }

    /// The same for a string and the byte that ends it.
    #[inline]
    pub fn read_text(&self, text: &[u8]) {
        if let Some(ledger) = &self.ledger {
            ledger.read_text(text);
        }
    }

    fn opened(&self, path: &Path, bytes: &[u8]) {
        if let Some(ledger) = &self.ledger {
            ledger.opened(path, bytes);
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

    fn read_unsized(&self, path: &Path, file: &File) -> Result<&[u8], InputError> {
        use std::io::Read;
        /// /proc/kallsyms of a kernel with many modules has some 20 MB.
        const MAX_READ: u64 = 256 << 20;
        let mut bytes = Vec::new();
        file.take(MAX_READ)
            .read_to_end(&mut bytes)
            .map_err(|e| InputError::io(path, e))?;
        let bytes = self.keep(bytes);
        self.opened(path, bytes);
        Ok(bytes)
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
        let bytes = store.map(&path).expect("mapped");
        assert_eq!(bytes, content);
        store.release(&bytes[4096..90_000]);
        store.release(&content);
        assert_eq!(bytes, content);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let store = Store::new();
        assert!(matches!(
            store.map(Path::new("/")),
            Err(InputError::NotRegular { .. })
        ));
        assert!(matches!(
            store.map(Path::new("/dev/zero")),
            Err(InputError::NotRegular { .. })
        ));
    }
}
