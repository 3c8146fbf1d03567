//! Reads the recordings of a comparison: several at once where they are small, with the memory of one where they are large.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{AskError, Asked, Question, Request, in_phases};
use crate::check::Limits;
use crate::diagnostics::Diagnostics;
use crate::functions::filter::Filters;
use crate::functions::kinds::OwnRules;
use crate::functions::{Basis, Identity};
use crate::input::{can_be_read_again, expand, recording_size, told_apart};
use crate::load::{Library, Listener, LoadOptions, Source, Teller};
use crate::metrics::plain_name;
use crate::needs::Needs;
use crate::parallel::in_parallel;
use crate::questions::compare::without_partner;
use crate::questions::described::Described;
use crate::questions::facts::Facts;
use crate::questions::known::Missing;
use crate::questions::manglings::Manglings;
use crate::questions::runs::{By, Run, reduce, same_program};
use crate::questions::scripts::Scripts;
use crate::runtimes::Producer;
use crate::runtimes::query::Query;
use crate::symbolize::NameStyle;
use crate::time_spec::TimeSpec;

/// How every recording of a comparison is read.
pub(super) struct Reading<'r, 'l> {
    load: LoadOptions,
    /// What is looked at of new recordings, if that is another time.
    to_time: Option<ToTime>,
    event: Option<&'r str>,
    keeps_idle: bool,
    filters: &'r Filters,
    own: &'r OwnRules,
    limits: Limits,
    groups: &'r [Query],
    by: By,
    library: &'r Library<'l>,
}

/// What is looked at of new recordings, where it is another time than of the base.
#[derive(Debug, Clone, PartialEq)]
pub enum ToTime {
    /// All that is not looked at of the base.
    Rest,
    /// Something else.
    Another(TimeSpec),
}

/// Runs of both sides.
pub(super) struct Sides {
    /// Of the base.
    pub(super) base: Vec<Run>,
    /// New ones.
    pub(super) new: Vec<Run>,
    /// The first recording of each side, where functions are looked up in its files.
    pub(super) firsts: [Option<PathBuf>; 2],
    /// A recording that is on both sides.
    pub(super) shared: Option<PathBuf>,
}

/// What may be in flight at once beside the largest recording.
const SMALL: u64 = 256 << 20;

impl<'r, 'l> Reading<'r, 'l> {
    /// As a request says; `groups` of functions are counted besides.
    pub(super) fn of<Q: Question>(
        request: &'r Request<Q>,
        (groups, by): (&'r [Query], By),
        library: &'r Library<'l>,
    ) -> Self {
        Self {
            load: request.options(),
            to_time: None,
            event: request.event.as_deref(),
            keeps_idle: request.keeps_idle,
            filters: &request.filters,
            own: &request.own,
            limits: request.limits,
            groups,
            by,
            library,
        }
    }

    /// Of new recordings another time is looked at.
    pub(super) fn new_in_time(mut self, time: Option<ToTime>) -> Self {
        self.to_time = time;
        self
    }

    /// Reads all recordings of both sides.
    ///
    /// # Errors
    /// When one cannot be read, or has no samples of the event, or is there twice.
    pub(super) fn read(&mut self, base: &[PathBuf], new: &[PathBuf]) -> Result<Sides, AskError> {
        let (base, new) = (expand(base)?, expand(new)?);
        // Two times of one recording are two sides.
        let shared = match self.to_time {
            Some(_) => None,
            None => told_apart(&base, &new).map_err(AskError::Request)?,
        };
        let all: Vec<&PathBuf> = base.iter().chain(&new).collect();
        let mut runs = self.all(&all, base.len())?;
        let scripts: Vec<&Scripts> = runs.iter().map(|run| &run.scripts).collect();
        if let Some(script) = Scripts::at_odds(&scripts) {
            self.library.diag().warn(format!(
                "{script} has no source map, and the other side has one: scripts are compared by the names in the recordings"
            ));
            self.load.refused |= Needs::ORIGINALS;
            runs = self.all(&all, base.len())?;
        }
        let bare = bare(runs.split_at(base.len()));
        if !bare.is_empty() {
            self.library.diag().warn(format!(
                "{}: debug information on one side only: compared without it, and so without inlined functions there",
                bare.join(", ")
            ));
            self.load.bare = bare;
            runs = self.all(&all, base.len())?;
        }
        let manglings: Vec<Manglings> = runs.iter().map(|run| run.manglings).collect();
        if self.load.names.names == NameStyle::Short && Manglings::are_at_odds(&manglings) {
            self.library.diag().warn(
                "Rust names of one side are of an older rustc: type arguments and numbers of closures are left out of both",
            );
            self.load.names.names = NameStyle::Plain;
            runs = self.all(&all, base.len())?;
        }
        let of_new = runs.split_off(base.len());
        Ok(Sides {
            base: runs,
            new: of_new,
            firsts: [base.first().cloned(), new.first().cloned()],
            shared,
        })
    }

    /// Reads recordings, so many of the base first.
    fn all(&self, all: &[&PathBuf], bases: usize) -> Result<Vec<Run>, AskError> {
        let mut runs = Vec::with_capacity(all.len());
        let batches = batches(all, self.load.reading.threads);
        self.library.in_turn(&batches, |batch, library| {
            let threads = (self.load.reading.threads / batch.len()).max(1);
            let first = runs.len();
            let sides = (first..).map(|at| at >= bases);
            let read = batch.iter().copied().zip(sides).collect();
            let read = in_parallel(read, batch.len(), |(path, is_new)| {
                self.one((path, is_new), threads, library)
            });
            for run in read {
                runs.push(run?);
            }
            Ok::<(), AskError>(())
        })?;
        Ok(runs)
    }

    /// Looks up functions that only one side has samples of in the files of the other side's first recording, if that can be
    /// read again.
    pub(super) fn look_up(&self, sides: &mut Sides) {
        let by = self.by;
        if !by.is_of_functions() {
            return;
        }
        let (of_new, of_base) = without_partner(&sides.base, &sides.new, by);
        let Sides {
            base, new, firsts, ..
        } = sides;
        let of_sides = [(base, of_new), (new, of_base)].into_iter().zip(firsts);
        for ((runs, wanted), path) in of_sides {
            let others = wanted.iter().flat_map(|lone| {
                let others = lone.aliases.iter();
                others.map(|other| (other.clone(), lone.function.clone()))
            });
            let others: Vec<(Identity, Identity)> = others.collect();
            let wanted = wanted.into_iter().map(|lone| lone.function);
            let missing = Missing::new(wanted.chain(others.iter().map(|(other, _)| other.clone())));
            let (Some(mut missing), Some(run), Some(path)) = (missing, runs.first_mut(), path)
            else {
                continue;
            };
            let mut load = self.load.clone();
            let can_be_read = can_be_read_again(path);
            load.source = Source::File(path.clone());
            if can_be_read && Library::names(&load, &mut missing).is_ok() {
                run.files.clone_from(missing.files());
                let mut known = missing.known();
                let by_others = others
                    .into_iter()
                    .filter(|(other, _)| known.contains(other));
                let by_others: Vec<Identity> = by_others.map(|(_, one)| one).collect();
                known.extend(by_others);
                run.known = Some(known);
            }
        }
    }

    fn one(
        &self,
        (path, is_new): (&Path, bool),
        threads: usize,
        library: &Library<'_>,
    ) -> Result<Run, AskError> {
        let mut load = self.load.clone();
        load.source = Source::File(path.to_owned());
        let to_time = self.to_time.as_ref().filter(|_| is_new);
        if let Some(ToTime::Another(time)) = to_time {
            load.time = Some(time.clone());
        } else {
            in_phases(&mut load, &self.filters.phases, self.own)?;
        }
        if let Some(ToTime::Rest) = to_time {
            load.time = load.time.map(|time| time.rest());
            load.time_said = load.time_said.map(|said| format!("all but {said}"));
        }
        load.reading.threads = threads;
        let (whole, evidence) = library.examine(&load)?;
        let asked = Asked::of(
            (whole, &[evidence]),
            (self.filters, self.own),
            (self.event, self.keeps_idle, self.limits),
        )?;
        let Asked {
            profile,
            functions,
            tally,
            facts,
            ..
        } = asked;
        Ok(reduce(
            &profile,
            &functions,
            &tally,
            facts,
            (self.groups, self.by),
            self.load.names.names == NameStyle::Plain,
        ))
    }
}

impl Listener for Missing {
    fn wants_file(&mut self, path: &str) -> bool {
        self.are_in_file(path)
    }

    fn see(&mut self, producer: Producer, name: &[u8]) {
        self.in_source(producer, name);
    }

    fn wants(&self, name: &[u8]) -> bool {
        self.may_be(name)
    }

    fn hear(&mut self, teller: Teller<'_>, name: &str) {
        match teller {
            Teller::File(path, parameters) => self.in_file(path, name, parameters),
            Teller::Jit(producer) => self.in_dump(producer, name),
        }
    }
}

/// Recordings that are read at the same time: not more than there are threads, and together not larger than the largest, or small.
fn batches<'p>(paths: &'p [&'p PathBuf], threads: usize) -> Vec<&'p [&'p PathBuf]> {
    let most = paths
        .iter()
        .map(|path| recording_size(path))
        .max()
        .unwrap_or(0)
        .max(SMALL);
    let (mut batches, mut start, mut sum) = (Vec::new(), 0, 0);
    for (at, path) in paths.iter().enumerate() {
        let size = recording_size(path);
        if at > start && (sum + size > most || at - start >= threads.max(1)) {
            batches.push(&paths[start..at]);
            (start, sum) = (at, 0);
        }
        sum += size;
    }
    if start < paths.len() {
        batches.push(&paths[start..]);
    }
    batches
}

/// Objects of which one side alone has debug information.
pub(super) fn bare((base, new): (&[Run], &[Run])) -> Vec<String> {
    let program = same_program(base, new);
    let [base, new] =
        [base, new].map(|runs| runs.iter().map(|run| &run.described).collect::<Vec<_>>());
    Described::at_odds(&base, &new, program.as_ref())
}

/// Warns of copies of one recording.
fn tell_copies(sides: &Sides, diag: &Diagnostics) {
    let mut known: BTreeMap<_, &str> = BTreeMap::new();
    for run in sides.base.iter().chain(&sides.new) {
        let facts = &run.facts;
        let (Some(start), Some(wall)) = (facts.start_ns, facts.wall_ns) else {
            continue;
        };
        let key = (start, wall, run.total.samples);
        if let Some(other) = known.insert(key, &facts.path) {
            diag.warn(format!(
                "{} and {other} have the same times and number of samples: one recording, not two runs?",
                facts.path
            ));
        }
    }
}

/// Whether the runs can be compared at all; what makes it doubtful is a warning.
///
/// # Errors
/// When they count different things.
pub(super) fn require_comparable(sides: &Sides, diag: &Diagnostics) -> Result<(), AskError> {
    let all: Vec<&Facts> = sides
        .base
        .iter()
        .chain(&sides.new)
        .map(|run| &run.facts)
        .collect();
    let Some(first) = all.first() else {
        return Ok(());
    };
    tell_copies(sides, diag);
    if let Some(other) = all.iter().find(|facts| plain(facts) != plain(first)) {
        return Err(AskError::Absent(format!(
            "{} counts {}, {} counts {}: nothing to compare (--event)",
            first.path, first.event, other.path, other.event
        )));
    }
    if let Some(other) = all
        .iter()
        .find(|facts| facts.weighed.is_none() && facts.event != first.event)
    {
        diag.warn(format!(
            "{} counts {}, {} counts {}: not the same samples",
            first.path, first.event, other.path, other.event
        ));
    }
    let differs = |what: &str, of: fn(&Facts) -> Option<&String>| {
        let known = all.iter().find_map(|facts| of(facts));
        let other = all
            .iter()
            .find(|facts| of(facts).is_some() && of(facts) != known);
        if let (Some(known), Some(other)) = (known, other) {
            let text = of(other).map_or("", String::as_str);
            diag.warn(format!("{what} differs: {known}, in {} {text}", other.path));
        }
    };
    differs("the processor", |facts| facts.cpu.as_ref());
    differs("the kernel", |facts| facts.kernel.as_ref());
    differs("how callers were recorded", |facts| facts.stacks.as_ref());
    let lost = |runs: &[Run]| {
        let lost: u64 = runs.iter().map(|run| run.facts.lost).sum();
        let samples: u64 = runs.iter().map(|run| run.total.samples).sum();
        100.0 * lost as f64 / (lost + samples).max(1) as f64
    };
    if !sides.base.is_empty() && (lost(&sides.base) - lost(&sides.new)).abs() > 1.0 {
        diag.warn(format!(
            "{:.1}% of the samples of base were lost, {:.1}% of new: figures do not say how much that is",
            lost(&sides.base),
            lost(&sides.new)
        ));
    }
    Ok(())
}

/// Which runs perf did not end: whoever killed it cut off something, and nothing tells how much.
pub(super) fn unfinished_runs(sides: &Sides) -> Vec<String> {
    of_each(sides, |side, runs| {
        let count = runs.iter().filter(|run| run.facts.is_unfinished).count();
        let all = runs.len();
        (count > 0).then(|| {
            format!(
                "perf was killed in {count} of {all} runs of {side}: how much is missing behind that, nothing tells"
            )
        })
    })
}

/// Which runs did not end well: what ends half-way takes less time than what does its work.
pub(super) fn failed_runs(sides: &Sides) -> Vec<String> {
    of_each(sides, |side, runs| {
        let failed = runs.iter().filter_map(|run| run.facts.status);
        let failed: Vec<u8> = failed.filter(|status| *status != 0).collect();
        let last = failed.last()?;
        let (count, all) = (failed.len(), runs.len());
        Some(format!(
            "{count} of {all} runs of {side} failed (status {last})"
        ))
    })
}

/// What there is to say of the base and of the new side.
fn of_each(sides: &Sides, told: impl Fn(&str, &[Run]) -> Option<String>) -> Vec<String> {
    let sides = [("base", &sides.base[..]), ("new", &sides.new[..])];
    let told = sides.into_iter().map(|(side, runs)| told(side, runs));
    told.flatten().collect()
}

/// Requires that own code is the same in all runs: where one has a sample of it and another has not, packages of a runtime are
/// taken for own in one of them, and what is credited to functions is not the same thing.
///
/// # Errors
/// When it is not.
pub(super) fn require_one_rule(sides: &Sides) -> Result<(), AskError> {
    let all = || sides.base.iter().chain(&sides.new);
    let is_program = |run: &&Run| matches!(run.basis, Basis::Program | Basis::Packages);
    match (all().find(is_program), all().find(|run| !is_program(run))) {
        (Some(one), Some(other)) => Err(AskError::Absent(format!(
            "own code is told in two ways: {} has a sample of it, {} has none; --own REGEX says what is mine, --by package and --by self \
             compare without",
            other.facts.path, one.facts.path
        ))),
        _ => Ok(()),
    }
}

/// What an event counts, whatever is said of who runs and how precise it is.
fn plain(facts: &Facts) -> &str {
    if facts.weighed.is_some() {
        // Weights tell in parentheses what they are made of.
        return facts.event.split(" (").next().unwrap_or("");
    }
    if !facts.is_tracepoint {
        return plain_name(&facts.event);
    }
    // System and name; behind a second colon are modifiers.
    let mut colons = facts.event.match_indices(':');
    let end = colons.nth(1).map_or(facts.event.len(), |(at, _)| at);
    &facts.event[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_own_is_told_in_one_way() {
        let run = |basis| Run {
            basis,
            ..Run::default()
        };
        let sides = |base, new| Sides {
            base: vec![run(base)],
            new: vec![run(new)],
            firsts: [None, None],
            shared: None,
        };
        for (base, new, is_one) in [
            (Basis::Path, Basis::Name, true),
            (Basis::Program, Basis::Program, true),
            (Basis::Program, Basis::Path, false),
            (Basis::Packages, Basis::Name, false),
        ] {
            assert_eq!(require_one_rule(&sides(base, new)).is_ok(), is_one);
        }
    }

    #[test]
    fn events_are_the_same_but_for_their_modifiers() {
        let facts = |event: &str, is_tracepoint: bool| Facts {
            event: event.to_owned(),
            is_tracepoint,
            ..Facts::default()
        };
        for (a, b, is_same) in [
            ("sched:sched_wakeup", "sched:sched_stat_runtime", false),
            ("probe_x:malloc", "probe_x:free", false),
            ("sched:sched_wakeup", "sched:sched_wakeup:u", true),
        ] {
            let (a, b) = (facts(a, true), facts(b, true));
            assert_eq!(plain(&a) == plain(&b), is_same, "{} {}", a.event, b.event);
        }
        for (a, b, is_same) in [
            ("cycles:u", "cpu_core/cycles/", true),
            ("cycles", "instructions", false),
            ("cpu-clock:pppH", "cpu-clock", true),
        ] {
            let (a, b) = (facts(a, false), facts(b, false));
            assert_eq!(plain(&a) == plain(&b), is_same, "{} {}", a.event, b.event);
        }
    }

    #[test]
    fn large_recordings_are_read_one_after_the_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let files: Vec<PathBuf> = [3_u64, 1, 1]
            .iter()
            .enumerate()
            .map(|(at, size)| {
                let path = folder.path().join(format!("{at}.data"));
                let file = std::fs::File::create(&path).expect("a file");
                file.set_len(size * SMALL).expect("a sparse file");
                path
            })
            .collect();
        let paths: Vec<&PathBuf> = files.iter().collect();
        let sizes = |threads| {
            batches(&paths, threads)
                .iter()
                .map(|b| b.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(8), [1, 2]);
        assert_eq!(sizes(1), [1, 1, 1]);
    }
}
