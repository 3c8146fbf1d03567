//! The reading half as one function: from the path of a recording to the [`Profile`] that views show.

#[doc(hidden)]
pub mod assembly;
pub mod bundle;
pub mod check;
pub mod profile;
pub mod totals;

mod arena;
mod clock;
mod companions;
mod known;
mod lacking;
mod library;
mod names;
mod options;
mod reading;
mod roots;
mod several;
mod source;
mod summary;
mod switch;
mod times;
mod whereabouts;

pub use arena::Arena;
pub(crate) use lacking::{Lacking, LackingBuild};
pub use library::Library;
pub(crate) use names::{Listener, Teller};
pub use options::{LoadOptions, SwitchNames};
pub use source::Source;
pub use whereabouts::{Mapped, Whereabouts, whereabouts};

use crate::diagnostics::Diagnostics;
use crate::input::Store;
use crate::perfdata::{NoField, OpenError};
use crate::profile::Profile;
use crate::session::listing::Listing;
use crate::weigh::WeighError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The recording, or what was named with it, cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no field of a name that was given.
    #[error(transparent)]
    Field(#[from] NoField),
    /// It does not have what the weights take.
    #[error(transparent)]
    Weight(#[from] WeighError),
}

impl LoadError {
    /// What to do instead, if there is something.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Field(_) | Self::Weight(_) => None,
        }
    }
}

/// Reads a recording, or several as one, and everything that belongs to it.
///
/// # Errors
/// As [`Library::load`].
pub fn load(options: &LoadOptions, diag: &Diagnostics) -> Result<Profile, LoadError> {
    let arena = Arena::new();
    Library::of_one_question(&arena, diag).load(options)
}

/// Hands out the lines of a listing of the recording, as they are made. The inner error is what `line` says.
///
/// # Errors
/// As [`load`].
pub fn list(
    listing: Listing,
    options: &LoadOptions,
    diag: &Diagnostics,
    line: &mut impl FnMut(&str) -> std::io::Result<()>,
) -> Result<std::io::Result<()>, LoadError> {
    reading::list(listing, options, diag, line)
}

/// The lines of `--header-only`, in full with `-I`; no record is read for them.
///
/// # Errors
/// When the recording cannot be opened.
pub fn header(source: &Source, full: bool, diag: &Diagnostics) -> Result<Vec<String>, OpenError> {
    let store = Store::new();
    Ok(source.open(&store, diag)?.header_lines(full))
}
