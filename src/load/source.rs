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
    /// As it was named. Paths are any bytes.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Stdin => Path::new("-"),
            Self::Default => Path::new(DEFAULT_FILE),
        }
    }

    /// The same as text, which no other path has: bytes that are no text are written as `\xff`.
    #[must_use]
    pub fn name(&self) -> String {
        let chunks = self.path().as_os_str().as_encoded_bytes().utf8_chunks();
        let mut name = String::new();
        for chunk in chunks {
            name.push_str(chunk.valid());
            name.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
        }
        name
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn names_tell_paths_apart() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let name = |path: &[u8]| Source::File(PathBuf::from(OsStr::from_bytes(path))).name();
        assert_eq!(name("größe/perf.data".as_bytes()), "größe/perf.data");
        assert_eq!(name(b"a\xff/perf.data"), "a\\xff/perf.data");
        assert_eq!(name(b"a\xfe"), "a\\xfe");
        assert_eq!(Source::Default.name(), "perf.data");
    }
}
