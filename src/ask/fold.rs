//! Folded stacks: the question of `pjit fold`.

use std::io::{self, Write};

use super::problem::tell_lost;
use super::{AskError, Question, Request, filter, shown_event, tell_other};
use crate::diagnostics::Diagnostics;
use crate::load::Library;
use crate::metrics::{plain_name, pmu};
use crate::needs::Needs;
use crate::output::folded::{self, FoldOptions};
use crate::profile::{EventId, Profile};

/// Folded stacks.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    /// How lines look; the events are those of the request.
    pub options: FoldOptions,
}

/// A recording whose stacks can be written.
pub struct Folded {
    profile: Profile,
    options: FoldOptions,
}

impl Question for Fold {
    type Answer = Folded;

    fn needs(&self) -> Needs {
        let by_thread = self.options.pid || self.options.tid;
        folded::NEEDS
            | Needs::KINDS.only_if(!self.options.by.is_empty())
            | Needs::THREADS.only_if(by_thread)
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Folded, AskError> {
        let diag = library.diag();
        let mut profile = library.load(&request.load_options()?)?;
        tell_lost(&profile, diag);
        let events = events(&profile, request, diag)?;
        filter(&mut profile, &request.filters, &request.own)?;
        let options = FoldOptions {
            events,
            ..request.view.options.clone()
        };
        Ok(Folded { profile, options })
    }
}

impl Folded {
    /// Writes the stacks.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        folded::write(&self.profile, &self.options, out)
    }
}

/// The events to add up: the one that is named, else the main one. What the kinds of cores of one processor count of the same
/// adds up, too.
fn events(
    profile: &Profile,
    request: &Request<Fold>,
    diag: &Diagnostics,
) -> Result<Vec<EventId>, AskError> {
    let wanted = request.event.as_deref();
    let chosen = shown_event(profile, wanted)?;
    tell_other(profile, (chosen, wanted), diag);
    if wanted.is_some() {
        return Ok(vec![chosen]);
    }
    let name = |event: EventId| profile[event].name.as_str();
    let is_same = |event: &EventId| {
        let (one, other) = (name(chosen), name(*event));
        let is_other_core = pmu(one).is_some() && pmu(other).is_some() && pmu(one) != pmu(other);
        *event == chosen || is_other_core && plain_name(one) == plain_name(other)
    };
    let sampled = profile.events.indices();
    let sampled = sampled.filter(|event| profile[*event].samples > 0);
    let (shown, others): (Vec<EventId>, Vec<EventId>) = sampled.partition(is_same);
    if !others.is_empty() {
        let names: Vec<&str> = others.into_iter().map(name).collect();
        diag.warn(format!(
            "shows {}; not shown: {} (--event NAME)",
            name(chosen),
            names.join(", ")
        ));
    }
    Ok(shown)
}
