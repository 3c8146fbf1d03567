//! Whether a recording is fit for conclusions: the question of `pjit check`.

use std::io;

use serde_json::Value;

use super::event::no_event;
use super::{AskError, Question, Request};
use crate::check::{self, Verdict};
use crate::load::Library;
use crate::metrics::position;
use crate::needs::Needs;
use crate::output::answer::{self, Answer};
use crate::output::check::{csv_rows, page, to_json, write};
use crate::questions::budget::Budget;

/// Whether a recording is fit, by the limits of the request.
#[derive(Debug, Clone, Default)]
pub struct Check {
    /// Warnings too make it unfit.
    pub strict: bool,
}

/// A verdict, with all that speaks for it.
pub struct Checked {
    /// The verdict.
    pub verdict: Verdict,
    strict: bool,
}

impl Question for Check {
    type Answer = Checked;

    fn needs(&self) -> Needs {
        check::NEEDS
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Checked, AskError> {
        let mut load = request.load_options()?;
        load.weight.tells_pairs = true;
        let (_, evidence) = library.examine(&load)?;
        let names = || evidence.events.iter().map(|event| event.name.as_str());
        let wanted = request.event.as_deref();
        if let Some(wanted) = wanted.filter(|wanted| position(names(), wanted).is_none()) {
            return Err(no_event(&evidence.path, wanted, names()));
        }
        Ok(Checked {
            verdict: check::judge(&evidence, request.limits),
            strict: request.view.strict,
        })
    }
}

impl Checked {
    /// True if conclusions may be drawn.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.verdict.is_fit(self.strict)
    }

    /// Writes all lines as text, with or without colours.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_text(&self, color: bool, out: &mut dyn io::Write) -> io::Result<()> {
        write(&self.verdict, self.strict, color, out)
    }
}

impl Answer for Checked {
    /// The verdict has the warnings already.
    fn warn(&mut self, _: Vec<String>) {}

    /// All lines, whatever the budget: none may be missing.
    fn text(&self, _: Budget) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.write_text(false, &mut text).map(|()| text)
    }

    fn markdown(&self, budget: Budget) -> io::Result<Vec<u8>> {
        answer::markdown(&|lines| page(&self.verdict, self.strict, lines), budget)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        csv_rows(&self.verdict)
    }

    fn json(&self, rows: usize) -> Value {
        to_json(&self.verdict, self.strict, rows)
    }
}
