//! Source lines of a function and what they weigh: the question of `pjit list`.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::peek::{MOST, named};
use super::{AskError, Asked, Question, Request, forget_large};
use crate::assembly::{Source, Sources};
use crate::check::Evidence;
use crate::diagnostics::Diagnostics;
use crate::find::SourcePaths;
use crate::functions::tally::Tally;
use crate::functions::{FunctionId, Functions};
use crate::load::Library;
use crate::needs::Needs;
use crate::output::answer::Paged;
use crate::output::json::{self, Common};
use crate::output::page::Page;
use crate::output::{list, stdio};
use crate::profile::Profile;
use crate::questions;
use crate::questions::aliases::shared_code;
use crate::questions::facts::Facts;
use crate::questions::list::{Listed, listed};
use crate::questions::summary::labels;

/// What each line of a function weighs.
#[derive(Debug, Clone)]
pub struct List {
    /// Its name, its id in JSON, or an expression that finds it.
    pub function: String,
    /// Where sources are looked for.
    pub sources: SourcePaths,
    /// Names and paths whole.
    pub full_names: bool,
}

/// What its lines weigh.
pub struct Lines {
    facts: Facts,
    functions: Functions,
    labels: Vec<String>,
    shared: BTreeMap<FunctionId, (String, String)>,
    tally: Tally,
    listed: Vec<Listed>,
    more: usize,
    texts: FxHashMap<String, Source>,
    others: FxHashSet<String>,
    quality: String,
    filter: Option<String>,
    common: Common,
}

impl Question for List {
    type Answer = Lines;

    fn needs(&self) -> Needs {
        questions::NEEDS | Needs::LINES | Needs::CLAIMS
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Lines, AskError> {
        let (mut lines, sources) = request.lines(&request.view.sources, library)?;
        lines.texts = sources.texts;
        lines.others = sources.others;
        sources
            .warnings
            .into_iter()
            .for_each(|line| library.diag().warn(line));
        Ok(lines)
    }
}

impl List {
    /// Of a function, with sources where nothing else says where they are.
    pub(super) fn of(function: &str) -> Self {
        Self {
            function: function.to_owned(),
            sources: SourcePaths::default(),
            full_names: false,
        }
    }
}

impl Request<List> {
    /// The answer yet without the texts of sources, and these, looked for below `paths`.
    pub(super) fn lines(
        &self,
        paths: &SourcePaths,
        library: &Library<'_>,
    ) -> Result<(Lines, Sources), AskError> {
        let answer = |profile: Profile, evidence: Evidence| {
            let lines = self.lines_of((profile, &[evidence]), library.diag())?;
            let files = lines.files();
            Ok((lines, files))
        };
        library.load_with_sources(&self.load_options()?, paths, answer)
    }

    fn lines_of(
        &self,
        read: (Profile, &[Evidence]),
        diag: &Diagnostics,
    ) -> Result<Lines, AskError> {
        let about = (self.event.as_deref(), self.keeps_idle, self.limits);
        let asked = Asked::of(read, (&self.filters, &self.own), about)?;
        let Asked {
            profile,
            functions,
            tally,
            facts,
            filter,
            ..
        } = asked;
        let labels = labels(&functions, self.view.full_names);
        let names = (&functions, labels.as_slice());
        let mut found = named(&profile, names, &tally, &self.view.function)?;
        let more = found.len().saturating_sub(MOST);
        if more > 0 {
            let all = found.len();
            diag.warn(format!(
                "{all} functions match; the {MOST} heaviest are shown"
            ));
            found.truncate(MOST);
        }
        let shared = shared_code(&profile, &functions);
        let listed = listed(&profile, &functions, &tally, &found);
        let (quality, of_json) = (
            stdio::quality_line(&profile, Some(tally.event)),
            json::quality(&profile, tally.event),
        );
        forget_large(profile);
        Ok(Lines {
            facts,
            functions,
            labels,
            shared,
            tally,
            listed,
            more,
            texts: FxHashMap::default(),
            others: FxHashSet::default(),
            quality,
            filter,
            common: Common {
                quality: Some(of_json),
                filters: self.filters.texts(),
                ..Common::default()
            },
        })
    }
}

impl Lines {
    /// The paths of all files, each once.
    fn files(&self) -> Vec<String> {
        let files = self.listed.iter().flat_map(|listed| &listed.files);
        let mut paths: Vec<String> = files.map(|file| file.path.clone()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    fn shown(&self) -> list::List<'_> {
        list::List {
            facts: &self.facts,
            functions: &self.functions,
            labels: &self.labels,
            shared: &self.shared,
            tally: &self.tally,
            listed: &self.listed,
            more: self.more,
            texts: &self.texts,
            others: &self.others,
            quality: &self.quality,
            filter: self.filter.clone(),
        }
    }
}

impl Paged for Lines {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn page(&self, lines: usize) -> Page {
        list::page(&self.shown(), lines)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        list::csv_rows(&self.shown())
    }

    fn json(&self, rows: usize) -> Value {
        list::to_json(&self.shown(), &self.common, rows)
    }
}
