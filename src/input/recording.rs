//! Opens what the user named as the recording: a file, a FIFO, or the standard input.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use super::{InputError, Store, note_opened, os};

/// The bytes of a recording.
pub enum Opened<'a> {
    /// A regular file, mapped.
    Mapped {
        /// All of it.
        bytes: &'a [u8],
        /// Its last modification.
        modified: Option<SystemTime>,
    },
    /// Something that can be read once.
    Stream(Box<dyn Read + Send>),
}

/// Opens the recording at `path`; `-` is the standard input. Other than paths that come out of
/// a recording, this one was given by the user and may be a FIFO, which is waited for.
///
/// # Errors
/// When it cannot be opened, or is neither a regular file nor a FIFO.
pub fn open_recording<'a>(path: &Path, store: &'a Store) -> Result<Opened<'a>, InputError> {
    let io = |e| InputError::io(path, e);
    let file = if path == Path::new("-") {
        os::stdin().map_err(io)?
    } else {
        File::open(path).map_err(io)?
    };
    let meta = file.metadata().map_err(io)?;
    let kind = meta.file_type();
    if kind.is_file() {
        note_opened(path, &meta);
        let bytes = store.map_file(path, &file, &meta)?;
        Ok(Opened::Mapped {
            bytes,
            modified: meta.modified().ok(),
        })
    } else if os::is_stream(kind) {
        Ok(Opened::Stream(Box::new(file)))
    } else {
        Err(InputError::NotRegular {
            path: path.to_owned(),
        })
    }
}

/// Whether the standard input is a FIFO, so that perf reads the recording from it without `-i`.
#[must_use]
pub fn stdin_is_fifo() -> bool {
    let meta = os::stdin().and_then(|stdin| stdin.metadata());
    meta.is_ok_and(|meta| os::is_fifo(meta.file_type()))
}
