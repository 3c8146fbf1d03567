//! Several recordings in turn: what belongs to more than one of them is opened and read once.

use super::known::Known;
use super::options::LoadOptions;
use super::reading::{read_in, unmap};
use super::{LoadError, look_at_quality};
use crate::check::Evidence;
use crate::diagnostics::Diagnostics;
use crate::input::Store;
use crate::profile::Profile;

/// Files, debug information and kernel symbols that were opened for recordings before.
pub struct Together<'a> {
    store: &'a Store,
    diag: &'a Diagnostics,
    known: Known<'a>,
}

/// Lets `work` read recordings that share what belongs to them; what is wrong with any is told to `diag`.
pub fn together<T>(diag: &Diagnostics, work: impl FnOnce(&Together<'_>) -> T) -> T {
    let store = Store::new();
    let made = work(&Together {
        store: &store,
        diag,
        known: Known::new(),
    });
    unmap(store);
    made
}

impl Together<'_> {
    /// As [`super::load_examined`].
    ///
    /// # Errors
    /// As [`super::load`].
    pub fn load_examined(&self, options: &LoadOptions) -> Result<(Profile, Evidence), LoadError> {
        let look = look_at_quality(options);
        read_in(
            self.store,
            Some(&self.known),
            options,
            self.diag,
            Some(look),
        )
    }

    /// Gives back the memory of all files that are mapped, while none is being read; they are read again when they are needed. Says
    /// whether what has no file, unpacked sections for instance, takes so much by now that the next recordings should begin anew.
    #[must_use]
    pub fn rest(&self) -> bool {
        /// What an unpacked program of medium size takes.
        const MOST: usize = 256 << 20;
        self.store.release_all();
        self.store.kept() > MOST
    }
}
