//! Code with the samples beside it: the question of `pjit annotate`.

use std::collections::BTreeSet;

use super::problem::tell_lost;
use super::{AskError, Question, Request, filter, require_samples};
use crate::assembly::{self, Assembly, Functions};
use crate::code::{self, NotFound, Options, Outcome, Plan, Selection};
use crate::diagnostics::Diagnostics;
use crate::ids::IndexVec;
use crate::load::Library;
use crate::needs::Needs;
use crate::profile::{EventId, Profile};

/// Code with the samples beside it.
#[derive(Debug, Clone)]
pub struct Annotate {
    /// Which functions.
    pub selection: Selection,
    /// Only functions of these objects, if any are named.
    pub objects: Vec<String>,
    /// What of their code is looked for.
    pub code: assembly::Request,
    /// How it looks.
    pub options: Options,
}

/// The code of some functions.
pub struct Annotated {
    /// The code, and what has none.
    pub assembly: Assembly,
    /// The name that was asked for and no function has.
    pub unknown: Option<NotFound>,
    profile: Profile,
    filters: IndexVec<EventId, String>,
    options: Options,
}

impl Question for Annotate {
    type Answer = Annotated;

    fn needs(&self) -> Needs {
        assembly::NEEDS | self.selection.needs()
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Annotated, AskError> {
        let view = &request.view;
        let mut unknown = None;
        let mut shown = BTreeSet::new();
        let mut choose = |functions: &mut Functions| {
            if !view.objects.is_empty() {
                functions.keep_objects(&view.objects);
            }
            let chosen = code::choose(functions, &view.selection).unwrap_or_else(|name| {
                unknown = Some(name);
                Vec::new()
            });
            shown.extend(chosen.iter().map(|at| functions.all[*at].name.clone()));
            chosen
        };
        let (profile, assembly, filters) = request.code(&view.code, &mut choose, library)?;
        tell_lost(&profile, library.diag());
        tell_shared(&profile, &shown, library.diag());
        Ok(Annotated {
            assembly,
            unknown,
            profile,
            filters,
            options: view.options.clone(),
        })
    }
}

impl<Q: Question> Request<Q> {
    /// The filtered recording with the code of chosen functions, and by event the line about filters.
    pub(super) fn code(
        &self,
        wanted: &assembly::Request,
        choose: &mut dyn FnMut(&mut Functions) -> Vec<usize>,
        library: &Library<'_>,
    ) -> Result<(Profile, Assembly, IndexVec<EventId, String>), AskError> {
        let mut load = self.load_options()?;
        load.needs |= Needs::ADDRESSES.only_if(!self.filters.is_empty());
        let mut filtered = Ok(IndexVec::new());
        let mut narrow = |profile: &mut Profile| {
            filtered = filter(profile, &self.filters, &self.own);
            !self.filters.is_empty()
        };
        let (profile, assembly) = library.annotate(&load, wanted, &mut narrow, choose)?;
        require_samples(&profile)?;
        Ok((profile, assembly, filtered?))
    }
}

impl Annotated {
    /// Settles what is printed, and what cannot be.
    #[must_use]
    pub fn plan(&self) -> (Plan<'_>, Outcome) {
        Plan::new(&self.assembly, &self.profile.events, &self.options)
    }

    /// Lines about filters: of each event with samples, with its name where there are several.
    #[must_use]
    pub fn filters(&self) -> Vec<String> {
        let lines = self.filters.iter_enumerated();
        let lines: Vec<_> = lines
            .filter(|(event, _)| self.profile[*event].samples > 0)
            .collect();
        let is_one = lines.len() == 1;
        let named = |(event, line): (EventId, &String)| {
            if is_one {
                line.clone()
            } else {
                format!("{}: {line}", self.profile[event].name)
            }
        };
        lines.into_iter().map(named).collect()
    }
}

/// Says of which functions that are shown the code is another one's, too.
fn tell_shared(profile: &Profile, shown: &BTreeSet<String>, diag: &Diagnostics) {
    /// So many are told.
    const MOST: usize = 3;
    let symbols = profile.symbols.iter();
    let shown = symbols.filter(|symbol| shown.contains(&symbol.name));
    let shared = shown.filter_map(|symbol| {
        let other = symbol.folded_with()?;
        Some(format!("{} (or {other})", symbol.name))
    });
    let shared: BTreeSet<String> = shared.collect();
    if shared.is_empty() {
        return;
    }
    let first: Vec<String> = shared.iter().take(MOST).cloned().collect();
    let more = match shared.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", +{more} more"),
    };
    diag.warn(format!(
        "one code of several functions: {}{more}",
        first.join(", ")
    ));
}
