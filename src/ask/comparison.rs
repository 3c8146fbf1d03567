//! What changed between two sides of recordings: the question of `pjit diff`.

use std::path::PathBuf;

use serde_json::Value;

use super::problem::require;
use super::runs::{Reading, Sides, ToTime, failed_runs, require_comparable, require_one_rule};
use super::{AskError, Question, Request};
use crate::diagnostics::Diagnostics;
use crate::load::Library;
use crate::needs::Needs;
use crate::output::answer::Paged;
use crate::output::diff::{self, Diff};
use crate::output::json::Common;
use crate::output::page::Page;
use crate::questions;
use crate::questions::compare::{Comparison, Method, compare};
use crate::questions::runs::{By, settle};
use crate::runtimes::query::Query;

/// What changed from base to new. The request's own recording is not read.
#[derive(Debug, Clone)]
pub struct Comparing {
    /// Recordings of the base; a folder stands for the recordings in it.
    pub base: Vec<PathBuf>,
    /// New recordings.
    pub new: Vec<PathBuf>,
    /// What of new recordings is looked at, if that is another time than of the base, and how that is said.
    pub to_time: Option<(ToTime, String)>,
    /// How to compare.
    pub method: Method,
    /// Names and paths whole.
    pub full_names: bool,
}

/// What changed.
pub struct Compared {
    sides: Sides,
    comparison: Comparison,
    by: By,
    full_names: bool,
    common: Common,
}

impl Question for Comparing {
    type Answer = Compared;

    fn needs(&self) -> Needs {
        questions::NEEDS | Needs::PLACES.only_if(self.method.by.is_of_functions())
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Compared, AskError> {
        let (view, diag) = (&request.view, library.diag());
        let sides = view.read(request, &[], library)?;
        let by = view.method.by;
        let method = Method {
            are_times: view.to_time.is_some(),
            ..view.method
        };
        let comparison = compare(&sides.base, &sides.new, method);
        doubt(&sides, &comparison, diag);
        failed_runs(&sides)
            .into_iter()
            .for_each(|line| diag.warn(line));
        let hint = match by {
            By::Credited => "; --by self compares all functions, --own says what is mine",
            By::Own | By::Package | By::Activity => "",
        };
        // An empty table would look like "nothing changed".
        require(comparison.tested > 0, || {
            format!(
                "no {} is large enough to be compared (half a per cent, ten samples a run){hint}",
                if by.is_of_functions() {
                    "function"
                } else {
                    by.word()
                }
            )
        })?;
        Ok(Compared {
            sides,
            comparison,
            by,
            full_names: view.full_names,
            common: Common {
                filters: view.filters(request),
                ..Common::default()
            },
        })
    }
}

impl Comparing {
    /// What was left out, in words.
    fn filters<Q: Question>(&self, request: &Request<Q>) -> Vec<String> {
        let mut filters = request.filters.texts();
        filters.extend(self.to_time.iter().map(|(_, text)| text.clone()));
        filters
    }

    /// Reads both sides, with what can be told of functions that only one of them has.
    pub(super) fn read<Q: Question>(
        &self,
        request: &Request<Q>,
        groups: &[Query],
        library: &Library<'_>,
    ) -> Result<Sides, AskError> {
        let time = self.to_time.as_ref().map(|(time, _)| time.clone());
        let mut reading = Reading::of(request, (groups, self.method.by), library).new_in_time(time);
        let mut sides = reading.read(&self.base, &self.new)?;
        settle(&mut sides.base, &mut sides.new);
        if self.method.paired == Some(true) && sides.base.len() != sides.new.len() {
            let text = "--paired: as many new recordings as of the base";
            return Err(AskError::Request(text.to_owned()));
        }
        require_comparable(&sides, library.diag())?;
        if self.method.by == By::Credited {
            require_one_rule(&sides)?;
        }
        if !sides.base.is_empty() {
            reading.look_up(&mut sides);
        }
        Ok(sides)
    }
}

/// Warns of what makes a comparison doubtful.
pub(super) fn doubt(sides: &Sides, comparison: &Comparison, diag: &Diagnostics) {
    let (base, new) = comparison.matched;
    let low = [("base", base), ("new", new)].map(|(side, share)| {
        (share < 0.9).then(|| format!("{:.0}% of {side}", 100.0 * (1.0 - share)))
    });
    let low: Vec<String> = low.into_iter().flatten().collect();
    if !low.is_empty() {
        diag.warn(format!(
            "in functions that only one side has: {}; other names, other programs?",
            low.join(" and ")
        ));
    }
    doubt_shared(sides, diag);
    let runs = sides.base.iter().chain(&sides.new);
    for run in runs.filter(|run| !run.facts.is_fit) {
        diag.warn(format!(
            "{}: not fit for conclusions (pjit check)",
            run.facts.path
        ));
    }
}

/// Warns of a recording that is on both sides.
pub(super) fn doubt_shared(sides: &Sides, diag: &Diagnostics) {
    if let Some(path) = &sides.shared {
        let path = path.display();
        diag.warn(format!("{path} is on both sides: it says nothing"));
    }
}

impl Compared {
    fn shown(&self) -> Diff<'_> {
        Diff {
            base: &self.sides.base,
            new: &self.sides.new,
            by: self.by,
            comparison: &self.comparison,
            filters: self.common.filters.clone(),
            full_names: self.full_names,
        }
    }
}

impl Paged for Compared {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn page(&self, lines: usize) -> Page {
        diff::page(&self.shown(), lines)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        diff::csv_rows(&self.shown())
    }

    fn json(&self, rows: usize) -> Value {
        diff::to_json(&self.shown(), &self.common, rows)
    }
}
