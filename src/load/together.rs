//! Several recordings in turn: what belongs to more than one of them is opened and read once.

use super::known::Known;
use super::options::LoadOptions;
use super::reading::{read_in, unmap};
use super::{LoadError, NOBODY, look_at_quality};
use crate::check::{Evidence, Stages};
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
fn together<T>(diag: &Diagnostics, work: impl FnOnce(&Together<'_>) -> T) -> T {
    let store = Store::new();
    let made = work(&Together {
        store: &store,
        diag,
        known: Known::new(),
    });
    unmap(store);
    made
}

/// Does something with each in turn, reading recordings that share what belongs to them. Begins anew where that has become large.
///
/// # Errors
/// What `each` says, which ends it.
pub fn in_turn<T, E>(
    all: &[T],
    diag: &Diagnostics,
    mut each: impl FnMut(&T, &Together<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut rest = all.iter().peekable();
    while rest.peek().is_some() {
        together(diag, |together| {
            for one in rest.by_ref() {
                each(one, together)?;
                if together.rest() {
                    break;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

impl Together<'_> {
    /// As [`super::load`], for one recording.
    ///
    /// # Errors
    /// As [`super::load`].
    pub fn load(&self, options: &LoadOptions) -> Result<Profile, LoadError> {
        Ok(self.look(options, NOBODY)?.0)
    }

    /// As [`super::load_examined`], for one recording.
    ///
    /// # Errors
    /// As [`super::load`].
    pub fn load_examined(&self, options: &LoadOptions) -> Result<(Profile, Evidence), LoadError> {
        self.look(options, Some(look_at_quality(options)))
    }

    fn look<T: Default>(
        &self,
        options: &LoadOptions,
        look: Option<impl FnOnce(&Stages<'_, '_>, &mut Profile) -> T>,
    ) -> Result<(Profile, T), LoadError> {
        read_in(self.store, Some(&self.known), options, self.diag, look)
    }

    /// Gives back the memory of all files that are mapped, while none is being read; they are read again when they are needed. Says
    /// whether what has no file, unpacked sections for instance, takes so much by now that the next recordings should begin anew.
    fn rest(&self) -> bool {
        /// What an unpacked program of medium size takes.
        const MOST: usize = 256 << 20;
        self.store.release_all();
        self.store.kept() > MOST
    }
}
