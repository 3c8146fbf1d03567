//! What a picture of a difference is made of: the recordings of both sides as one tree, and what the test of `pjit diff` says of
//! their functions.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::comparison::doubt_shared;
use super::problem::require;
use super::runs::{Sides as Runs, bare, require_comparable};
use super::{AskError, filter, in_phases, require_samples};
use crate::flame::{self, Finding, Findings, Flame, Paths, Weights};
use crate::functions::Functions;
use crate::functions::filter::Filters;
use crate::functions::kinds::OwnRules;
use crate::functions::tally::Tally;
use crate::ids::{Idx, index_vec};
use crate::input::{MAGIC, open_named, told_apart};
use crate::load::{Library, LoadOptions, Source};
use crate::metrics::{plain_name, position};
use crate::output::caption::{Caption, Left, Worst, plural};
use crate::profile::{EventId, Profile};
use crate::questions::compare::{Comparison, Method, Normalize, compare, names_in_new};
use crate::questions::facts::Facts;
use crate::questions::idle::leave_out;
use crate::questions::runs::{By, Run, reduce};

/// Which recordings are compared, and how they are read.
pub(super) struct Sides<'s> {
    /// Of the base, one at least.
    pub(super) base: &'s [PathBuf],
    /// New ones behind the first.
    pub(super) more: &'s [PathBuf],
    pub(super) load: &'s LoadOptions,
    pub(super) filters: &'s Filters,
    /// Whether weights are compared as they are.
    pub(super) absolute: bool,
}

/// Makes paths of a profile, with its functions told apart or as folded stacks have them.
pub(super) type PathsOf<'f> = &'f dyn Fn(&Profile, EventId, Option<&Functions>) -> Paths;

/// What the recordings of a side have.
#[derive(Default)]
struct Side {
    paths: Vec<Paths>,
    runs: Vec<Run>,
    left: Vec<Left>,
    quality: Worst,
}

impl Side {
    /// Adds a recording: its call paths, and what its functions weigh.
    fn add(&mut self, (profile, event): (&Profile, EventId), of: PathsOf<'_>) {
        self.left.push(Left::of(&profile[event]));
        self.quality.see(profile, event);
        let functions = Functions::of(profile, &OwnRules::default());
        let tally = Tally::of(profile, &functions, event);
        let facts = Facts::of(profile, &tally, None);
        let counted = (&[][..], By::Credited);
        let run = reduce(profile, &functions, &tally, facts, counted, false);
        let mut paths = of(profile, event, Some(&functions));
        flame::clean(&mut paths);
        self.paths.push(paths);
        self.runs.push(run);
    }
}

impl Sides<'_> {
    /// The tree, and what is known of its functions.
    pub(super) fn join(
        &self,
        (profile, event): (&Profile, EventId),
        of: PathsOf<'_>,
        caption: &mut Caption,
        library: &Library<'_>,
    ) -> Result<(Flame, Findings), AskError> {
        let diag = library.diag();
        let threads = self.load.reading.threads;
        let and_more = |first: &str, more: usize| match more {
            0 => first.to_owned(),
            more => format!("{first} and {more} more"),
        };
        let first = self.base.first().map(|path| path.display().to_string());
        let base_named = and_more(
            &first.unwrap_or_default(),
            self.base.len().saturating_sub(1),
        );
        let named = and_more(&profile.recording.path, self.more.len());
        caption.compare(&named, &base_named);
        let new_paths = [&[self.load.source.path().to_owned()], self.more].concat();
        let shared = told_apart(self.base, &new_paths).map_err(AskError::Request)?;
        let name = &profile[event].name;
        let (mut base, mut folded) = (Side::default(), None);
        for path in self.base {
            match self.read(path, library)? {
                Base::Recording(mut other) => {
                    let found = self.prepare(&mut other, name)?;
                    if base.runs.is_empty() {
                        caption.tell_differences(profile, &other);
                    }
                    base.add((&other, found), of);
                }
                Base::Folded(paths) => folded = Some(paths),
            }
        }
        if let Some(paths) = folded {
            require(self.base.len() == 1 && self.more.is_empty(), || {
                format!("{base_named}: folded stacks are compared with one recording")
            })?;
            let after = of(profile, event, None);
            let flame = flame::join([vec![after], vec![paths]], event, threads).flame;
            let findings = self.of_folded(&flame);
            return Ok((flame, findings));
        }
        let mut new = Side::default();
        new.add((profile, event), of);
        for path in self.more {
            let Base::Recording(mut other) = self.read(path, library)? else {
                let path = path.display();
                return Err(AskError::Absent(format!("{path}: no recording")));
            };
            let found = self.prepare(&mut other, name)?;
            new.add((&other, found), of);
        }
        caption.tell_sides(&profile[event], &new.left, &base.left);
        caption.tell_quality(&new.quality, &base.quality);
        let runs = Runs {
            base: base.runs,
            new: new.runs,
            firsts: [None, None],
            shared,
        };
        require_comparable(&runs, diag)?;
        doubt_shared(&runs, diag);
        let odd = bare((&runs.base, &runs.new));
        if !odd.is_empty() {
            diag.warn(format!(
                "{}: debug information on one side only: functions that are inlined there are new or gone (--no-inline)",
                odd.join(", ")
            ));
        }
        let (base_runs, new_runs) = (runs.base, runs.new);
        let (mut base, mut new) = (base.paths, new.paths);
        // Verdicts are about the figures that are shown.
        let method = Method {
            normalize: self.absolute.then_some(Normalize::None),
            ..Method::default()
        };
        let comparison = compare(&base_runs, &new_runs, method);
        if let Some(program) = &comparison.program {
            base.iter_mut()
                .for_each(|paths| flame::rename_program(paths, program));
            caption.say(&program.text());
        }
        let counts = [new.len(), base.len()];
        let [names, of_new] = names_in_new(&base_runs, &new_runs);
        base.iter_mut()
            .for_each(|paths| flame::rename_functions(paths, &names));
        new.iter_mut()
            .for_each(|paths| flame::rename_functions(paths, &of_new));
        let both = flame::join([new, base], event, threads);
        let is_amount = new_runs[0].facts.is_amount();
        let factor = match comparison.factor {
            factor if factor.is_normal() && factor > 0.0 => factor,
            _ => 1.0,
        };
        let findings = Findings {
            of: Findings::of(&both.identities, &comparison, &names, is_amount),
            scale: [1.0 / counts[0] as f64, factor / counts[1] as f64],
            note: joined(note(&comparison), scaled(factor)),
        };
        Ok((both.flame, findings))
    }

    /// Reads what a difference is taken from: a recording read as the other one is, or folded stacks.
    fn read(&self, path: &Path, library: &Library<'_>) -> Result<Base, AskError> {
        let unreadable = |error| AskError::File {
            path: path.to_owned(),
            error,
        };
        let mut beginning = Vec::new();
        let mut file = open_named(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        (&mut file)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut beginning)
            .map_err(unreadable)?;
        if beginning != MAGIC {
            return read_folded(path, (file, size), beginning).map(Base::Folded);
        }
        let mut options = self.load.clone();
        options.source = Source::File(path.to_owned());
        in_phases(&mut options, &self.filters.phases, &OwnRules::default())?;
        let profile = library.once_more(|library| library.load(&options))?;
        require_samples(&profile)?;
        Ok(Base::Recording(Box::new(profile)))
    }

    /// The event of another recording, with what is not looked at left out.
    fn prepare(&self, profile: &mut Profile, name: &str) -> Result<EventId, AskError> {
        let path = profile.recording.path.clone();
        leave_out(profile);
        filter(profile, self.filters, &OwnRules::default())?;
        let names = |wanted: &str| {
            let names = profile.events.iter().map(|event| event.name.as_str());
            position(names, wanted).map(EventId::from_usize)
        };
        let found = names(name).or_else(|| names(plain_name(name)));
        let problem = || AskError::Absent(format!("{path}: no samples of event '{name}'"));
        let found = found.filter(|event| profile[*event].samples > 0);
        found.ok_or_else(problem)
    }

    /// Nobody knows how folded stacks came about: shares are compared, and nothing is tested.
    fn of_folded(&self, flame: &Flame) -> Findings {
        let of_run = |run: u8| -> u64 {
            let cells = flame.cells.iter();
            let cells = cells.filter(|cell| flame.series[cell.series].run == run);
            cells.map(|cell| cell.period).fold(0, u64::saturating_add)
        };
        let (new, base) = (of_run(0) as f64, of_run(1) as f64);
        let is_share = !self.absolute && new > 0.0 && base > 0.0;
        let factor = if is_share { new / base } else { 1.0 };
        Findings {
            of: index_vec![Finding::NONE; flame.functions.len()],
            scale: [1.0, factor],
            note: joined(Some("not tested: folded stacks".to_owned()), scaled(factor)),
        }
    }
}

/// What a difference is taken from.
enum Base {
    Recording(Box<Profile>),
    Folded(Paths),
}

/// Reads folded stacks, of which the beginning was read.
fn read_folded(
    path: &Path,
    (file, size): (impl Read, u64),
    mut bytes: Vec<u8>,
) -> Result<Paths, AskError> {
    /// Positions in them are numbers of 32 bits.
    const MOST: u64 = 1 << 32;
    let is_small = |length: u64| {
        let problem = || format!("{}: more than 4 GB of folded stacks", path.display());
        require(length < MOST, problem)
    };
    is_small(size)?;
    let read = file.take(MOST).read_to_end(&mut bytes);
    read.map_err(|error| AskError::File {
        path: path.to_owned(),
        error,
    })?;
    is_small(bytes.len() as u64)?;
    flame::read_folded(&bytes).map_err(|error| {
        let path = path.display();
        AskError::Absent(format!(
            "{path}: neither a recording nor folded stacks: {error}"
        ))
    })
}

/// Why little is coloured.
fn note(comparison: &Comparison) -> Option<String> {
    let (base, new) = comparison.runs;
    let each = |runs: usize| {
        if base == new {
            format!("{} each", plural(runs, "run"))
        } else {
            format!(
                "{} of base, {} of new",
                plural(base, "run"),
                plural(new, "run")
            )
        }
    };
    match base.min(new) {
        1 => Some(format!("not tested: {}", each(1))),
        2 => Some(format!("nothing is certain: {}", each(2))),
        _ if comparison.tested == 0 => Some("not tested: no function is large enough".to_owned()),
        _ => None,
    }
}

/// That weights of the base are not what was measured: a picture of a program that became slower as a whole looked as if nothing had changed.
fn scaled(factor: f64) -> Option<String> {
    let is_seen = (factor - 1.0).abs() >= 0.005;
    is_seen.then(|| format!("what was before is times {factor:.2}, the common factor"))
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    let parts: Vec<String> = first.into_iter().chain(second).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Weights of a side for a picture that takes whole numbers: those of one run, times `fixed`.
pub(super) fn weights_of_run(flame: &Flame, findings: &Findings, run: u8, fixed: u64) -> Weights {
    let scale = findings.scale[usize::from(run)] * fixed as f64;
    flame.weights(|cell| {
        if flame.series[cell.series].run == run {
            (cell.period as f64 * scale).round() as u64
        } else {
            0
        }
    })
}
