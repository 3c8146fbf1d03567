//! Why there is no answer.

use std::path::PathBuf;

use crate::diagnostics::Diagnostics;
use crate::input::FolderError;
use crate::load::LoadError;
use crate::output::caption::lost_by_event;
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
    /// One of these, and what to type instead.
    #[error("{error}")]
    Advised {
        /// What went wrong.
        error: Box<AskError>,
        /// A command, or a place to look.
        hint: String,
    },
}

impl AskError {
    /// The same with what to type instead.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self::Advised {
            error: Box::new(self),
            hint: hint.into(),
        }
    }

    /// What to type instead, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Advised { hint, .. } => Some(hint),
            Self::Load(error) => error.hint(),
            _ => None,
        }
    }

    /// Whether the request makes no sense, whatever the recording holds.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            Self::Request(_) => true,
            Self::Advised { error, .. } => error.is_request(),
            _ => false,
        }
    }
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
        _ if recording.holds_totals => {
            format!("{path}: totals, not samples: pjit stat prints them")
        }
        Some(trace) => format!(
            "{path}: {} of {} bytes and no samples; pjit decodes no traces{}. Decode it first: {}",
            trace.name(),
            trace.bytes,
            trace.limit(),
            Trace::decoder(path)
        ),
        None if recording.lost > 0 => format!(
            "{path}: no samples: all {} were lost; sample less often, or give the recorder more memory (-m)",
            recording.lost
        ),
        None => format!("{path}: no samples"),
    };
    Err(AskError::Absent(text))
}

/// Says how many samples were lost, where the answer itself has no room for that.
pub(super) fn tell_lost(profile: &Profile, diag: &Diagnostics) {
    /// Per cent from which it is worth a line.
    const WORTH_SAYING: f64 = 1.0;
    let lost = profile.recording.lost;
    let kept: u64 = profile.events.iter().map(|event| event.samples).sum();
    let share = 100.0 * lost as f64 / (lost + kept).max(1) as f64;
    let mut told = lost_by_event(profile);
    let text = if told.is_empty() {
        (share >= WORTH_SAYING).then(|| format!("{lost} samples were lost ({share:.0}%)"))
    } else {
        told.retain(|(part, _)| *part >= WORTH_SAYING);
        let words: Vec<String> = told.into_iter().map(|(_, words)| words).collect();
        (!words.is_empty()).then(|| format!("samples were lost, {}", words.join(", ")))
    };
    if let Some(text) = text {
        diag.warn(format!(
            "{text}: sample less often, or give the recorder more memory (-m)"
        ));
    }
}

/// An error unless the condition holds.
pub(super) fn require(condition: bool, problem: impl FnOnce() -> String) -> Result<(), AskError> {
    if condition {
        Ok(())
    } else {
        Err(AskError::Absent(problem()))
    }
}
