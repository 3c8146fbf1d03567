//! The memory of the files that were opened for recordings.

use crate::input::Store;

/// The memory of all files that a [`Library`](super::Library) opens, which lives longer than it.
#[derive(Default)]
pub struct Arena(Store);

impl Arena {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes.
    pub(super) const fn store(&self) -> &Store {
        &self.0
    }
}

impl Drop for Arena {
    /// Gives mapped files back while the caller goes on: that takes a tenth of the time a view needs. If there is no thread to be
    /// had, it is done at once.
    fn drop(&mut self) {
        let store = std::mem::take(&mut self.0);
        let _ = std::thread::Builder::new().spawn(move || drop(store));
    }
}

impl From<Store> for Arena {
    fn from(store: Store) -> Self {
        Self(store)
    }
}
