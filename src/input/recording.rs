//! Opens what the user named as the recording: a file, a FIFO, or the standard input.

use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use super::{Door, InputError, Store, note_opened, os};

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

/// Opens the recording; at `-` it is the standard input. Other than what the input names, what the user named may be a FIFO,
/// which is waited for.
///
/// # Errors
/// When it cannot be opened, or is neither a regular file nor a FIFO.
pub fn open_recording<'a>(door: &Door, store: &'a Store) -> Result<Opened<'a>, InputError> {
    if door.path() == Path::new("-") {
        return open_stdin(store);
    }
    let judged = store.open(door)?;
    if !judged.meta().is_file() {
        return Ok(Opened::Stream(Box::new(judged.into_file())));
    }
    Ok(Opened::Mapped {
        bytes: store.map_judged(&judged)?,
        modified: judged.meta().modified().ok(),
    })
}

fn open_stdin(store: &Store) -> Result<Opened<'_>, InputError> {
    let path = Path::new("-");
    let io = |e| InputError::io(path, e);
    let file = os::stdin().map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    let kind = meta.file_type();
    if kind.is_file() {
        note_opened(path, &meta);
    }
    if kind.is_file() && meta.len() > 0 {
        Ok(Opened::Mapped {
            bytes: store.at(store.map_whole(path, &file)?),
            modified: meta.modified().ok(),
        })
    } else if kind.is_file() {
        Ok(Opened::Mapped {
            bytes: &[],
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

/// Whether a path is that of a FIFO, which may keep its reader waiting.
#[must_use]
pub fn is_fifo(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| os::is_fifo(meta.file_type()))
}

/// Whether the standard input is a FIFO, so that perf reads the recording from it without `-i`.
#[must_use]
pub fn stdin_is_fifo() -> bool {
    let meta = os::stdin().and_then(|stdin| stdin.metadata());
    meta.is_ok_and(|meta| os::is_fifo(meta.file_type()))
}
