//! A picture of stacks, or of what changed in them: the question of `pjit flamegraph`.

use std::io::{self, Write};
use std::path::PathBuf;

use super::change::{Sides, weights_of_run};
use super::problem::require;
use super::{AskError, Question, Request, require_samples, shown_event, tell_other};
use crate::assembly::{self, Assembly, Functions};
use crate::code::{self, Column, PercentType, Plan, Selection};
use crate::flame::{
    self, Comparison, Findings, Flame, Limit, Look, Names, Naming, Roots, SeriesId, Shape, Weights,
    prune,
};
use crate::functions::tally::Tally;
use crate::functions::{Basis, Functions as Known};
use crate::ids::IndexVec;
use crate::load::Library;
use crate::needs::Needs;
use crate::output::caption::{Caption, grouped, plural};
use crate::output::html::{self, Content, FunctionCode, PageOptions};
use crate::output::over_time::When;
use crate::output::svg::{self, Drawing, SvgOptions};
use crate::profile::{EventId, Profile};
use crate::questions::facts::Facts;
use crate::questions::idle::leave_out;
use crate::questions::over_time::{self, OverTime};
use crate::questions::summary::labels;
use crate::unit::Unit;

/// A picture of stacks.
#[derive(Debug, Clone, Default)]
pub struct Flamegraph {
    /// All events by thread, as a page shows them; else one event, as a drawing shows it.
    pub is_page: bool,
    /// What stacks begin with.
    pub roots: Roots,
    /// Callers above callees.
    pub reverse: bool,
    /// Recordings, or folded stacks, of what it is compared with.
    pub base: Vec<PathBuf>,
    /// New recordings besides that of the request.
    pub more: Vec<PathBuf>,
    /// How a difference is shown.
    pub comparison: Comparison,
    /// How frames are shown.
    pub look: FrameLook,
    /// Folders with sources, where the code of the hottest functions is wanted too.
    pub code: Option<Vec<PathBuf>>,
    /// No panel of the time in the page.
    pub no_time: bool,
}

/// How frames are shown. Differences have clean names and all frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameLook {
    /// Names as the runtime has them, which tell tiers apart.
    pub tiers: bool,
    /// All frames of runtimes around packages, where code was made at run time.
    pub with_runtime: bool,
    /// Frames that recur are one where what this limit keeps is higher than so many rows.
    pub highest: Option<(usize, Limit)>,
}

/// A picture that can be drawn.
pub struct Picture {
    profile: Profile,
    event: EventId,
    flame: Flame,
    /// Of differences.
    findings: Option<Findings>,
    caption: Caption,
    weights: Weights,
    /// Of the other side of a difference.
    other: Option<Weights>,
    /// By what weights were multiplied.
    fixed: u64,
    code: Option<Vec<FunctionCode>>,
    /// What is known of the time, and names of functions, if the page has them.
    when: Option<(OverTime, Vec<String>)>,
    comparison: Comparison,
    threads: usize,
}

/// Per cent of the samples below which the page has no code of a function.
const CODE_LIMIT: f64 = 0.1;

impl Question for Flamegraph {
    type Answer = Picture;

    fn needs(&self) -> Needs {
        let is_compared = !self.base.is_empty();
        flame::NEEDS
            | Needs::CODE.only_if(self.code.is_some())
            | (Needs::PLACES | Needs::ALIASES).only_if(is_compared)
            | Needs::THREADS.only_if(self.roots != Roots::Comm)
            | over_time::NEEDS.only_if(self.may_have_time())
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Picture, AskError> {
        let (view, diag) = (&request.view, library.diag());
        let (mut profile, assembly) = match &view.code {
            Some(folders) => {
                let (profile, assembly) = with_code(request, folders, library)?;
                (profile, Some(assembly))
            }
            None => (request.profile(library)?.0, None),
        };
        if !view.base.is_empty() {
            leave_out(&mut profile);
            require_samples(&profile)?;
        }
        let wanted = request.event.as_deref();
        let event = shown_event(&profile, wanted)?;
        tell_other(&profile, (event, wanted), diag);
        let mut caption = Caption::of(&profile, event);
        let (flame, findings) = flame(request, (&profile, event), &mut caption, library)?;
        let when = when(request, (&profile, event), &flame);
        let fixed = fixed(&profile, event, findings.as_ref().filter(|_| !view.is_page));
        let (mut weights, mut other) = match &findings {
            Some(findings) if !view.is_page => {
                let of = |run| weights_of_run(&flame, findings, run, fixed);
                (of(0), Some(of(1)))
            }
            _ => (run_weights(&flame, event, 0), None),
        };
        if let Some(other) = &mut other
            && view.comparison.shape == Shape::Before
        {
            std::mem::swap(&mut weights, other);
        }
        require(weights.total.first().is_some_and(|all| *all > 0), || {
            "nothing to draw: all periods are 0; --weight samples counts samples".to_owned()
        })?;
        let code = assembly.map(|assembly| code_of(&profile, event, &flame, &assembly));
        Ok(Picture {
            profile,
            event,
            flame,
            findings,
            caption,
            weights,
            other,
            fixed,
            code,
            when,
            comparison: view.comparison,
            threads: request.load.reading.threads,
        })
    }
}

/// The filtered profile, and the code of its hottest functions.
fn with_code(
    request: &Request<Flamegraph>,
    folders: &[PathBuf],
    library: &Library<'_>,
) -> Result<(Profile, Assembly), AskError> {
    if !request.load.more.is_empty() {
        let text = "--source is for one recording";
        return Err(AskError::Request(text.to_owned()));
    }
    let selection = Selection {
        percent_limit: CODE_LIMIT,
        ..Selection::default()
    };
    let wanted = assembly::Request {
        lines: true,
        sources: true,
        keeps_sources: true,
        paths: request.load.sources(folders),
        ..assembly::Request::default()
    };
    let mut choose = |functions: &mut Functions| {
        let chosen = code::choose(functions, &selection);
        chosen.unwrap_or_default()
    };
    let (profile, mut assembly, _) = request.code(&wanted, &mut choose, library)?;
    let warnings = assembly.warnings.drain(..);
    warnings.for_each(|line| library.diag().warn(line));
    Ok((profile, assembly))
}

/// The tree: of one event for drawings and for differences, of all for the page.
fn flame(
    request: &Request<Flamegraph>,
    (profile, event): (&Profile, EventId),
    caption: &mut Caption,
    library: &Library<'_>,
) -> Result<(Flame, Option<Findings>), AskError> {
    let view = &request.view;
    let threads = request.load.reading.threads;
    if view.base.is_empty() {
        caption.of_program(&program(profile, event));
        return Ok((readable(request, (profile, event)), None));
    }
    let sides = Sides {
        base: &view.base,
        more: &view.more,
        load: &request.options(),
        filters: &request.filters,
        absolute: view.comparison.absolute,
    };
    let of = |other: &Profile, found: EventId, functions: Option<&Known>| match functions {
        Some(functions) => {
            let options = view.options(Some(found), Naming::Whole, threads);
            flame::paths_as(other, &options, Names::Apart(functions))
        }
        None => flame::paths(other, &view.options(Some(found), Naming::Folded, threads)),
    };
    let (flame, findings) = sides.join((profile, event), &of, caption, library)?;
    for line in &caption.differences {
        library.diag().warn(line.clone());
    }
    Ok((flame, Some(findings)))
}

/// The process of most weight.
fn program(profile: &Profile, event: EventId) -> String {
    let tally = Tally {
        event,
        ..Tally::default()
    };
    Facts::of(profile, &tally, None).process()
}

/// The tree of one recording, as the request wants its frames shown.
fn readable(request: &Request<Flamegraph>, (profile, event): (&Profile, EventId)) -> Flame {
    let view = &request.view;
    let naming = if view.is_page {
        Naming::Whole
    } else {
        Naming::Folded
    };
    let only = (!view.is_page).then_some(event);
    let threads = request.load.reading.threads;
    let options = view.options(only, naming, threads);
    let functions = Known::of(profile, &request.own);
    let labels = (!view.look.tiers).then(|| {
        let mut labels = labels(&functions, false);
        if naming == Naming::Folded {
            flame::shorten(&mut labels);
        }
        labels
    });
    // Runtimes are told by the code that they made, or by the packages that they execute.
    let has_runtime =
        functions.basis == Basis::Packages || functions.producers.iter().any(|of| of.is_known());
    let look = Look {
        functions: &functions,
        labels: labels.as_deref(),
        folds_runtime: has_runtime && !view.look.with_runtime,
        folds_runs: false,
    };
    let tree = |how| {
        flame::plant(
            flame::paths_as(profile, &options, Names::Readable(how)),
            threads,
        )
    };
    let flame = tree(look);
    let is_too_high = |(rows, limit)| {
        let weights = run_weights(&flame, event, 0);
        flame.depth(&weights, prune(&flame, &weights, limit).least) > rows
    };
    if view.look.highest.is_some_and(is_too_high) {
        return tree(Look {
            folds_runs: true,
            ..look
        });
    }
    flame
}

/// What the samples of the event say about when, and the names of functions.
fn when(
    request: &Request<Flamegraph>,
    (profile, event): (&Profile, EventId),
    flame: &Flame,
) -> Option<(OverTime, Vec<String>)> {
    if flame.moments.is_empty() {
        return None;
    }
    let functions = Known::of(profile, &request.own);
    let over = OverTime::of(profile, &functions, event)?;
    Some((over, labels(&functions, false)))
}

impl Flamegraph {
    /// Whether the page says when: several recordings have no time in common.
    fn may_have_time(&self) -> bool {
        self.is_page && !self.no_time && self.base.is_empty() && self.more.is_empty()
    }

    fn options(&self, event: Option<EventId>, naming: Naming, threads: usize) -> flame::Options {
        let is_whole = self.base.is_empty();
        flame::Options {
            roots: self.roots,
            event,
            reverse: self.reverse && is_whole && naming == Naming::Folded,
            naming,
            by_thread: is_whole && self.is_page,
            by_moment: self.may_have_time(),
            threads,
        }
    }
}

impl Picture {
    /// Draws it with the frames that are wide enough. Returns what is in it, in words.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn draw(
        &self,
        options: &SvgOptions,
        limit: Limit,
        out: &mut dyn Write,
    ) -> io::Result<String> {
        let summary = &self.profile[self.event];
        let drawing = Drawing {
            flame: &self.flame,
            weights: &self.weights,
            other: self.other.as_ref().zip(self.findings.as_ref()),
            fixed: self.fixed,
            pruned: prune(&self.flame, &self.weights, limit),
            caption: &self.caption,
            is_time: summary.unit == Unit::Nanoseconds,
            unit: &summary.name,
        };
        let options = SvgOptions {
            comparison: self.comparison,
            ..options.clone()
        };
        svg::write(&drawing, &options, out)?;
        Ok(format!(
            "{}, {} of {} frames drawn; {}",
            self.caption.whole(),
            grouped(drawing.pruned.kept as u64),
            grouped(self.flame.nodes.len() as u64 - 1),
            self.caption.quality
        ))
    }

    /// Writes the page. Returns what is in it, in words.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn page(&self, options: &PageOptions, out: &mut dyn Write) -> io::Result<String> {
        let content = Content {
            flame: &self.flame,
            profile: &self.profile,
            caption: &self.caption,
            event: self.event,
            weights: &self.weights,
            findings: self.findings.as_ref(),
            code: self.code.as_deref().unwrap_or_default(),
            when: self
                .when
                .as_ref()
                .map(|(over, labels)| When { over, labels }),
        };
        let options = PageOptions {
            comparison: self.comparison,
            threads: self.threads,
            ..options.clone()
        };
        html::write(&content, &options, out)?;
        let frames = grouped(self.flame.nodes.len() as u64 - 1);
        let code = match &self.code {
            None => String::new(),
            Some(code) => format!(", code of {}", plural(code.len(), "function")),
        };
        Ok(format!(
            "{}, {frames} frames{code}; {}",
            self.caption.whole(),
            self.caption.quality
        ))
    }
}

/// By what weights of a drawing are multiplied. Thousandths of a sample are worth something where several runs have a mean; of a
/// nanosecond they are not.
fn fixed(profile: &Profile, event: EventId, findings: Option<&Findings>) -> u64 {
    let summary = &profile[event];
    let is_time = summary.unit == Unit::Nanoseconds;
    match findings {
        Some(_) if !is_time && summary.period < u64::MAX >> 24 => 1000,
        _ => 1,
    }
}

/// The code that the page is to hold.
fn code_of(
    profile: &Profile,
    event: EventId,
    flame: &Flame,
    assembly: &Assembly,
) -> Vec<FunctionCode> {
    let options = code::Options {
        percent_type: PercentType::LocalPeriod,
        column: Column::Percent,
        group: false,
        full_paths: true,
        source: true,
        print_lines: false,
        raw: false,
        merge_versions: false,
        percent_limit: 0.0,
    };
    let (plan, outcome) = Plan::new(assembly, &profile.events, &options);
    let blocks = (0..plan.len()).map(|number| plan.block(number));
    let name = &profile[event].name;
    let blocks = outcome.shown.into_iter().zip(blocks);
    let blocks: Vec<_> = blocks
        .filter(|(_, block)| block.event.contains(name.as_str()))
        .collect();
    html::codes(flame, &assembly.functions, &blocks)
}

/// Weights of one run.
fn run_weights(flame: &Flame, event: EventId, run: u8) -> Weights {
    let is_wanted: IndexVec<SeriesId, bool> = flame
        .series
        .iter()
        .map(|series| series.event == event && series.run == run)
        .collect();
    flame.weights(|cell| {
        if is_wanted[cell.series] {
            cell.period
        } else {
            0
        }
    })
}
