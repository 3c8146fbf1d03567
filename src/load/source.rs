//! Where a recording comes from, and how it is opened.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::diagnostics::Diagnostics;
use crate::input::{self, Store};
use crate::perfdata::{OpenError, Recording};

/// What perf reads when no recording is named.
const DEFAULT_FILE: &str = "perf.data";

/// Where the recording comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or a pipe stream that was saved to one.
    File(PathBuf),
    /// A pipe stream on standard input.
    Stdin,
    /// As perf without `-i`: standard input when that is a FIFO, else `perf.data`. A FIFO that is closed
    /// without a byte (a caller that gives its children a pipe and nothing in it) counts as none.
    Default,
}

impl Source {
    /// As messages name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "-".to_owned(),
            Self::Default => DEFAULT_FILE.to_owned(),
        }
    }

    /// The folder in which companions of the recording are looked for.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        match self {
            Self::File(path) => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
            Self::Stdin | Self::Default => PathBuf::from("."),
        }
    }

    /// When its file was written; not known of streams.
    pub(super) fn written(&self) -> Option<SystemTime> {
        let Self::File(path) = self else { return None };
        input::written(path)
    }

    /// Whether it can be read only once.
    pub(crate) fn is_stream(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Stdin => true,
            Self::Default => input::stdin_is_fifo(),
        }
    }

    /// Opens the recording; companions are not looked for.
    pub(super) fn open<'a>(
        &self,
        store: &'a Store,
        diag: &Diagnostics,
    ) -> Result<Recording<'a>, OpenError> {
        let default = Path::new(DEFAULT_FILE);
        match self {
            Self::File(path) => Recording::open(path, store, diag),
            Self::Stdin => Recording::open(Path::new("-"), store, diag),
            Self::Default if input::stdin_is_fifo() => {
                match Recording::open(Path::new("-"), store, diag) {
                    Err(OpenError::Empty { .. }) => Recording::open(default, store, diag),
                    opened => opened,
                }
            }
            Self::Default => Recording::open(default, store, diag),
        }
    }
}
