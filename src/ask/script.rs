//! Samples one by one: the question of `pjit script`.

use std::io::{self, Write};

use super::problem::require;
use super::problem::tell_lost;
use super::{AskError, Question, Request};
use crate::load::Library;
use crate::needs::Needs;
use crate::output::script::{self, ScriptOptions};
use crate::profile::Profile;

/// Samples one by one.
#[derive(Debug, Clone)]
pub struct Script {
    /// Which columns, and how they look.
    pub options: ScriptOptions,
}

/// A recording whose samples can be written.
pub struct Scripted {
    profile: Profile,
    options: ScriptOptions,
}

impl Question for Script {
    type Answer = Scripted;

    fn needs(&self) -> Needs {
        self.options.needs()
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Scripted, AskError> {
        let (profile, _) = request.profile(library)?;
        tell_lost(&profile, library.diag());
        let options = request.view.options.clone();
        let lacking = options.lacking(&profile);
        require(lacking.is_none(), || {
            let (column, event, what) = lacking.unwrap_or_default();
            format!("-F {column}: the event {event} was recorded without {what}")
        })?;
        Ok(Scripted { profile, options })
    }
}

impl Scripted {
    /// Writes the samples, and returns their number.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<script::Written> {
        script::write(&self.profile, &self.options, out)
    }
}
