//! Callers and callees of a function: the question of `pjit peek`.

use serde_json::Value;

use super::problem::require;
use super::{AskError, Asked, Question, Request, forget_large};
use crate::functions::tally::{Count, Tally};
use crate::functions::{FunctionId, Functions};
use crate::ids::Idx;
use crate::load::Library;
use crate::near::{Candidate, near};
use crate::needs::Needs;
use crate::output::answer::Paged;
use crate::output::json::{self, Common};
use crate::output::page::Page;
use crate::output::{peek, stdio};
use crate::profile::Profile;
use crate::questions;
use crate::questions::facts::Facts;
use crate::questions::peek::{Block, block, matches};
use crate::questions::summary::labels;

/// Who calls a function, and whom it calls.
#[derive(Debug, Clone)]
pub struct Peek {
    /// Its name, its id in JSON, or an expression that finds it.
    pub function: String,
    /// Levels of callers and callees.
    pub depth: usize,
    /// Names and paths whole.
    pub full_names: bool,
}

/// Functions that are looked at closer at most.
pub(super) const MOST: usize = 200;

/// Who called it, and whom it called.
pub struct Peeked {
    facts: Facts,
    functions: Functions,
    labels: Vec<String>,
    tally: Tally,
    blocks: Vec<Block>,
    more: (usize, Count),
    quality: String,
    filter: Option<String>,
    full_names: bool,
    common: Common,
}

impl Question for Peek {
    type Answer = Peeked;

    fn needs(&self) -> Needs {
        questions::NEEDS
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Peeked, AskError> {
        let asked = request.read(library)?;
        let view = &request.view;
        let labels = labels(&asked.functions, view.full_names);
        let Asked {
            profile,
            functions,
            tally,
            facts,
            filter,
            ..
        } = asked;
        let found = named(&profile, (&functions, &labels), &tally, &view.function)?;
        let first = found.iter().take(MOST);
        let blocks =
            first.map(|id| block(&profile, (&functions, &labels), &tally, *id, view.depth));
        let blocks = blocks.collect();
        if found.len() > MOST {
            library.diag().warn(format!(
                "{} functions match; the {MOST} heaviest are shown",
                found.len()
            ));
        }
        let more = found.get(MOST..).map_or_else(Default::default, |more| {
            let most = more.first().map(|id| tally.of_function(*id).inclusive);
            (more.len(), most.unwrap_or_default())
        });
        let (quality, of_json) = (
            stdio::quality_line(&profile, Some(tally.event)),
            json::quality(&profile, tally.event),
        );
        forget_large(profile);
        Ok(Peeked {
            facts,
            functions,
            labels,
            tally,
            blocks,
            more,
            quality,
            filter,
            full_names: view.full_names,
            common: Common {
                quality: Some(of_json),
                filters: request.filters.texts(),
                ..Common::default()
            },
        })
    }
}

/// The functions that a word names, the heaviest first: one at least.
pub(super) fn named(
    profile: &Profile,
    (functions, labels): (&Functions, &[String]),
    tally: &Tally,
    word: &str,
) -> Result<Vec<FunctionId>, AskError> {
    let found = matches(profile, functions, tally, labels, word);
    let found = found.map_err(AskError::Request)?;
    require(!found.is_empty(), || {
        let path = &profile.recording.path;
        let near = nearest(word, functions, tally, labels);
        format!("{path}: no function matches '{word}'{near}")
    })?;
    Ok(found)
}

/// Functions with samples whose names are like one that there is not.
fn nearest(name: &str, functions: &Functions, tally: &Tally, labels: &[String]) -> String {
    let names = functions.all.indices().map(|id| Candidate {
        name: &functions.get(id).identity.name.name,
        shown: &labels[id.index()],
        weight: tally.of_function(id).inclusive.period,
    });
    match near(name, names.filter(|one| one.weight > 0)).as_slice() {
        [] => String::new(),
        near => format!("; similar: {}", near.join(", ")),
    }
}

impl Peeked {
    fn shown(&self) -> peek::Peek<'_> {
        peek::Peek {
            facts: &self.facts,
            functions: &self.functions,
            labels: &self.labels,
            tally: &self.tally,
            blocks: &self.blocks,
            more: self.more,
            quality: &self.quality,
            filter: self.filter.clone(),
            full_names: self.full_names,
        }
    }
}

impl Paged for Peeked {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn page(&self, lines: usize) -> Page {
        peek::page(&self.shown(), lines)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        peek::csv_rows(&self.shown())
    }

    fn json(&self, rows: usize) -> Value {
        peek::to_json(&self.shown(), &self.common, rows)
    }
}
