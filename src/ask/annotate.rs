//! Code with the samples beside it: the question of `pjit annotate`.

use std::collections::{BTreeMap, BTreeSet};

use super::peek::{Peek, named};
use super::problem::tell_lost;
use super::{AskError, Asked, Question, Request, filter, require_samples};
use crate::assembly::{self, Assembly, Functions};
use crate::check::quoted;
use crate::code::{self, NotFound, Options, Outcome, Plan, Selection};
use crate::diagnostics::Diagnostics;
use crate::functions::FunctionId;
use crate::ids::{Idx, IndexVec};
use crate::load::Library;
use crate::needs::Needs;
use crate::profile::{EventId, FrameId, Profile};
use crate::questions::summary::labels;

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
        if let Some(unknown) = &unknown {
            require_code(request, &unknown.name)?;
        }
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

/// Fails with what is true of a function that samples are in only where it is inlined: its code is that of others.
fn require_code(request: &Request<Annotate>, name: &str) -> Result<(), AskError> {
    /// So many of them are told.
    const MOST: usize = 3;
    if request.load.source.is_stream() {
        return Ok(());
    }
    let again = request.with(Peek {
        function: name.to_owned(),
        depth: 0,
        full_names: false,
    });
    // What else is missing was told when it was read for the answer.
    let Ok(Asked {
        profile,
        functions,
        tally,
        ..
    }) = Library::aside(|library| again.read(library))
    else {
        return Ok(());
    };
    let labels = labels(&functions, false);
    let found = named(&profile, (&functions, &labels), &tally, name).unwrap_or_default();
    let has_code = |id: FunctionId| tally.of_function(id).physical.samples > 0;
    if found.iter().any(|id| has_code(*id)) {
        return Ok(());
    }
    let mut around: BTreeMap<FunctionId, u64> = BTreeMap::new();
    for stack in &tally.stacks {
        let frames = stack.frames(&profile);
        let is_inlined = |frame: &FrameId| profile.is_inlined(*frame);
        let inlined = frames
            .iter()
            .enumerate()
            .filter(|(_, frame)| is_inlined(frame) && found.contains(&functions.of_frame(**frame)));
        let into = inlined.filter_map(|(at, _)| frames[at..].iter().find(|of| !is_inlined(of)));
        let into: BTreeSet<FunctionId> = into.map(|frame| functions.of_frame(*frame)).collect();
        for id in into {
            *around.entry(id).or_default() += stack.count.samples;
        }
    }
    let mut around: Vec<(FunctionId, u64)> = around.into_iter().collect();
    around.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let Some((first, _)) = around.first() else {
        return Ok(());
    };
    let label = |id: FunctionId| labels[id.index()].as_str();
    let shown = around.iter().take(MOST);
    let shown = shown.map(|(id, samples)| format!("{} ({samples} samples)", label(*id)));
    let mut shown: Vec<String> = shown.collect();
    if around.len() > MOST {
        shown.push(format!("+{} more", around.len() - MOST));
    }
    let input = match profile.recording.path.as_str() {
        "perf.data" => String::new(),
        path => format!(" -i {}", quoted(path)),
    };
    let mut hint = format!("pjit list {}{input}", quoted(name));
    if has_code(*first) {
        hint.push_str(&format!(
            ", or pjit annotate {}{input}",
            quoted(label(*first))
        ));
    }
    let text = format!(
        "'{name}' has no code of its own: it is inlined into {}",
        shown.join(", ")
    );
    Err(AskError::Absent(text).with_hint(hint))
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
