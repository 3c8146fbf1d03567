//! Why there is no answer.

use std::path::PathBuf;

use crate::input::FolderError;
use crate::load::LoadError;
use crate::profile::{Profile, Trace};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The request makes no sense, whatever the recording holds.
    #[error("{0}")]
    Request(String),
    /// The recording cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The recording does not have what was asked for.
    #[error("{0}")]
    Absent(String),
    /// A file that was named beside the recordings cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A folder has no recordings.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// A recording without samples is an error: whoever reads the output of a success would take it for a result.
///
/// # Errors
/// When it has none; the text says what it has instead.
pub fn require_samples(profile: &Profile) -> Result<(), AskError> {
    if profile.events.iter().any(|event| event.samples > 0) {
        return Ok(());
    }
    let (recording, path) = (&profile.recording, &profile.recording.path);
    let text = match recording.trace {
        _ if recording.holds_totals => format!("{path}: holds totals, not samples: pjit stat"),
        Some(trace) => format!(
            "{path}: {} of {} bytes and no samples; pjit decodes no traces. Decode it first: {}",
            trace.name(),
            trace.bytes,
            Trace::decoder(path)
        ),
        None => format!("{path}: no samples"),
    };
    Err(AskError::Absent(text))
}

/// An error unless the condition holds.
pub(super) fn require(condition: bool, problem: impl FnOnce() -> String) -> Result<(), AskError> {
    if condition {
        Ok(())
    } else {
        Err(AskError::Absent(problem()))
    }
}
