//! Questions as plain data, and their answers: what the command line, a program that uses this library, or a server asks alike.
//!
//! In: a [`Request`], and the [`Library`] that reads recordings for it and for the next one. Out: the answer of its view. Answers of pages know how to be text, Markdown, JSON and CSV
//! ([`crate::output::answer`]); those of reports, pictures and exports have a method that writes them. A view says what it needs
//! of the reading half; nothing else is computed. Nothing here knows the words of a command line, a terminal or an exit status:
//! an answer says *fit* or *not fit*, its door what follows from that.
//!
//! ```no_run
//! use pjit::ask::{Arena, Library, Request, Summary};
//! use pjit::diagnostics::Diagnostics;
//! use pjit::load::{LoadOptions, Source};
//! use pjit::output::answer::{Format, write};
//!
//! let (arena, diag) = (Arena::new(), Diagnostics::new());
//! let library = Library::new(&arena, &diag);
//! let load = LoadOptions::of(Source::File("perf.data".into()));
//! let answer = Request::of(load, Summary::default()).ask(&library)?;
//! write(&answer, Format::Text, None, &mut std::io::stdout())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annotate;
mod bundle;
mod change;
mod check;
mod comparison;
#[cfg(feature = "dataset")]
mod dataset;
mod event;
mod export;
mod fetch;
mod flamegraph;
mod fold;
mod gate;
mod list;
mod narrow;
mod peek;
mod phases;
mod problem;
mod report;
mod runs;
mod script;
mod stat;
mod summary;

pub use annotate::{Annotate, Annotated};
pub use bundle::{Bundle, Bundled};
pub use check::{Check, Checked};
pub use comparison::{Compared, Comparing};
use event::{shown_event, tell_other};
pub use export::{Export, Exported, Written};
pub use fetch::{Fetch, Fetchable};
pub use flamegraph::{Flamegraph, FrameLook, Picture};
pub use fold::{Fold, Folded};
pub use gate::{Gated, Gating};
pub use list::{Lines, List};
pub use peek::{Peek, Peeked};
pub use problem::{AskError, require_samples};
pub use report::{Report, Reported};
pub use runs::ToTime;
pub use script::{Script, Scripted};
pub use stat::{Counted, Stat};
pub use summary::{Summarised, Summary};

use crate::check::{Evidence, Level, Limits, Numbers, Verdict, judge_for};
use crate::functions::Functions;
use crate::functions::filter::Filters;
use crate::functions::kinds::OwnRules;
use crate::functions::tally::Tally;
use crate::ids::IndexVec;
use crate::load::LoadOptions;
pub use crate::load::{Arena, Library};
use crate::needs::Needs;
use crate::profile::{EventId, Profile, counted_by};
use crate::questions::facts::Facts;
use crate::questions::idle::Idle;
use narrow::{filter, narrow};
use phases::in_phases;

/// What somebody wants to know of a recording, or of several. Plain data: it can be printed, compared and kept.
#[derive(Debug, Clone)]
pub struct Request<Q> {
    /// The recording, what belongs to it, and what its samples weigh. Of several recordings, what they have in common.
    pub load: LoadOptions,
    /// Name of the event; without one, the main one ([`Profile::main_event`]).
    pub event: Option<String>,
    /// Samples of the idle task count, too.
    pub keeps_idle: bool,
    /// Samples and frames that are left out.
    pub filters: Filters,
    /// What is own code.
    pub own: OwnRules,
    /// From where on a recording is not fit for conclusions.
    pub limits: Limits,
    /// The question.
    pub view: Q,
}

impl<Q> Request<Q> {
    /// The question, of a whole recording.
    #[must_use]
    pub fn of(load: LoadOptions, view: Q) -> Self {
        Self {
            load,
            event: None,
            keeps_idle: false,
            filters: Filters::default(),
            own: OwnRules::default(),
            limits: Limits::default(),
            view,
        }
    }

    /// Another question of the same samples.
    fn with<R>(&self, view: R) -> Request<R> {
        Request {
            load: self.load.clone(),
            event: self.event.clone(),
            keeps_idle: self.keeps_idle,
            filters: self.filters.clone(),
            own: self.own.clone(),
            limits: self.limits,
            view,
        }
    }
}

/// A question.
pub trait Question: Sized {
    /// Its answer.
    type Answer;

    /// What it looks at.
    fn needs(&self) -> Needs;

    /// Answers it.
    ///
    /// # Errors
    /// When the request makes no sense, or a recording cannot be read or has nothing of what is asked for.
    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Self::Answer, AskError>;
}

/// Asks of one recording after the other, so that there is never more than one in memory; what belongs to several of them is opened
/// once.
///
/// # Errors
/// What `each` says, which ends it.
pub fn ask_each<Q: Question, E>(
    requests: &[Request<Q>],
    library: &Library<'_>,
    mut each: impl FnMut(Result<Q::Answer, AskError>) -> Result<(), E>,
) -> Result<(), E> {
    let done = library.in_turn(requests, |request, library| {
        each(Q::answer(request, library))
    });
    library.rest();
    done
}

impl<Q: Question> Request<Q> {
    /// Asks. Warnings and notes go to the diagnostics of the library.
    ///
    /// # Errors
    /// When the request makes no sense, or a recording cannot be read or has nothing of what is asked for.
    pub fn ask(&self, library: &Library<'_>) -> Result<Q::Answer, AskError> {
        let answer = Q::answer(self, library);
        library.rest();
        answer
    }

    /// What is read and computed for it.
    fn load_options(&self) -> Result<LoadOptions, AskError> {
        let mut load = self.options();
        in_phases(&mut load, &self.filters.phases, &self.own)?;
        Ok(load)
    }

    /// The same for any recording, whose phases are not known yet.
    fn options(&self) -> LoadOptions {
        LoadOptions {
            event: self.event.clone(),
            needs: self.view.needs() | self.filters.needs(),
            spans: self.filters.spans.clone(),
            ..self.load.clone()
        }
    }

    /// Reads the recording, and leaves out what filters do; by event, the line about that.
    fn profile(
        &self,
        library: &Library<'_>,
    ) -> Result<(Profile, IndexVec<EventId, String>), AskError> {
        self.profile_of(&self.load_options()?, library)
    }

    /// Reads the recording with other options.
    fn profile_of(
        &self,
        load: &LoadOptions,
        library: &Library<'_>,
    ) -> Result<(Profile, IndexVec<EventId, String>), AskError> {
        let mut profile = library.load(load)?;
        require_samples(&profile)?;
        let lines = filter(&mut profile, &self.filters, &self.own)?;
        Ok((profile, lines))
    }

    /// Reads the recording with what all answers about one event share.
    fn read(&self, library: &Library<'_>) -> Result<Asked, AskError> {
        let (profile, evidence) = library.load_examined(&self.load_options()?)?;
        let about = (self.event.as_deref(), self.keeps_idle, self.limits);
        let asked = Asked::of((profile, &evidence), (&self.filters, &self.own), about)?;
        let shown = (asked.tally.event, self.event.as_deref());
        tell_other(&asked.profile, shown, library.diag());
        Ok(asked)
    }
}

/// A recording that was read, with what all answers about it share.
struct Asked {
    /// What is left of it.
    profile: Profile,
    functions: Functions,
    tally: Tally,
    /// What the first lines say.
    facts: Facts,
    /// What the verdict counted.
    numbers: Numbers,
    /// The line about filters, if there are any.
    filter: Option<String>,
}

impl Asked {
    fn of(
        (mut profile, evidence): (Profile, &[Evidence]),
        (filters, own): (&Filters, &OwnRules),
        (asked, keeps_idle, limits): (Option<&str>, bool, Limits),
    ) -> Result<Self, AskError> {
        let narrowed = narrow(&mut profile, (asked, keeps_idle), (filters, own))?;
        let event = narrowed.event;
        let functions = Functions::of(&profile, own);
        let tally = Tally::of(&profile, &functions, event);
        let (facts, numbers) = facts((&profile, event), &tally, evidence, limits, narrowed.idle);
        Ok(Self {
            profile,
            functions,
            tally,
            facts,
            numbers,
            filter: narrowed.filter,
        })
    }
}

/// What the first lines say, with what `check` says of the recording for an answer about one event.
fn facts(
    (profile, event): (&Profile, EventId),
    tally: &Tally,
    evidence: &[Evidence],
    limits: Limits,
    idle: Idle,
) -> (Facts, Numbers) {
    let summary = &profile[event];
    let about = summary
        .is_sampled()
        .then(|| (summary.name.clone(), summary.samples));
    // Of several recordings the worst one of those that are shown speaks for all, under its name.
    let counted = counted_by(&summary.name);
    let has_it = |of: &&Evidence| {
        let mut names = of.events.iter().map(|each| counted_by(&each.name));
        names.any(|name| name == counted)
    };
    let are_shown = evidence.iter().any(|of| has_it(&of));
    let verdicts = evidence.iter().filter(|of| !are_shown || has_it(of));
    let verdicts = verdicts.map(|one| judge_for(one, about.clone(), limits));
    let badness = |verdict: &Verdict| {
        let levels = [Level::Fail, Level::Warn];
        let count = |level| {
            let findings = verdict.findings.iter();
            findings.filter(|finding| finding.level == level).count()
        };
        levels.map(count)
    };
    let verdict = verdicts.rev().max_by_key(badness);
    let mut facts = Facts {
        idle,
        ..Facts::of(profile, tally, verdict.as_ref())
    };
    let parts = &profile.recording.parts;
    if parts.len() > 1
        && let Some(verdict) = &verdict
    {
        let part = parts.iter().find(|part| part.path == verdict.path);
        let name = part.map_or(&verdict.path, |part| &part.name);
        for finding in &mut facts.findings {
            finding.text = format!("{name}: {}", finding.text);
        }
    }
    (
        facts,
        verdict.map(|verdict| verdict.numbers).unwrap_or_default(),
    )
}

/// Leaves large things to the end of the process, which is near, and frees their hundred thousand pieces at once.
pub(crate) fn forget_large<T>(large: T) {
    std::mem::forget(large);
}
