//! Reads recordings for questions, and keeps what they have in common: files, debug information, symbols of kernels.

use std::ffi::OsString;
use std::sync::Arc;

use super::LoadError;
use super::arena::Arena;
use super::assembly::{self, Assembly, Sources};
use super::bundle::{self, Plan};
use super::check::{self, Evidence, Stages};
use super::known::Known;
use super::lacking::{self, Lacking};
use super::options::LoadOptions;
use super::reading::{Look, read_in};
use super::source::Source;
use super::totals::{self, Totals};
use crate::diagnostics::Diagnostics;
use crate::find::SourcePaths;
use crate::input::{Ledger, Origin, Store, data_number};
use crate::perfdata::OpenError;
use crate::profile::Profile;

/// Reads recordings for questions, and keeps what belongs to more than one of them: files, debug information, symbols of kernels.
///
/// A file that was changed between two questions is read anew. What has no file, unpacked sections for instance, is kept up to a
/// limit, after which each question reads for itself.
pub struct Library<'a> {
    arena: &'a Arena,
    diag: &'a Diagnostics,
    known: Option<Known<'a>>,
}

impl<'a> Library<'a> {
    /// Bytes without a file from which on nothing more is kept: what an unpacked program of medium size takes.
    const MOST: usize = 256 << 20;

    /// For any number of questions. Warnings and notes go to `diag`.
    #[must_use]
    pub fn new(arena: &'a Arena, diag: &'a Diagnostics) -> Self {
        Self {
            arena,
            diag,
            known: Some(Known::new()),
        }
    }

    /// For one question: what is not needed any more is given back on the way.
    #[must_use]
    pub const fn of_one_question(arena: &'a Arena, diag: &'a Diagnostics) -> Self {
        Self {
            arena,
            diag,
            known: None,
        }
    }

    /// Where warnings and notes go.
    #[must_use]
    pub const fn diag(&self) -> &'a Diagnostics {
        self.diag
    }

    /// Does something with each in turn, so that there is never more than one recording in memory. What belongs to several of them
    /// is opened once, unless it has become too large to be kept.
    ///
    /// # Errors
    /// What `each` says, which ends it.
    pub fn in_turn<T, E>(
        &self,
        all: &[T],
        mut each: impl FnMut(&T, &Library<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = all;
        while !left.is_empty() {
            left = if self.known.is_some() && !self.is_full() {
                self.as_long_as_it_keeps(left, &mut each)?
            } else {
                let arena = Arena::new();
                Library::new(&arena, self.diag).as_long_as_it_keeps(left, &mut each)?
            };
        }
        Ok(())
    }

    /// Does something with the first, and with more until too much is kept; returns the others.
    fn as_long_as_it_keeps<'t, T, E>(
        &self,
        all: &'t [T],
        each: &mut impl FnMut(&T, &Library<'_>) -> Result<(), E>,
    ) -> Result<&'t [T], E> {
        let mut left = all.iter();
        for one in left.by_ref() {
            each(one, self)?;
            self.arena.store().release_all();
            if self.is_full() {
                break;
            }
        }
        Ok(left.as_slice())
    }

    /// Reads one more recording: together with the others where these are kept, else so that nothing stays of it. To keep what two
    /// recordings of a question have in common would take half as much memory again.
    pub(crate) fn once_more<T>(&self, work: impl FnOnce(&Library<'_>) -> T) -> T {
        if self.known.is_some() {
            return work(self);
        }
        let arena = Arena::new();
        work(&Library::of_one_question(&arena, self.diag))
    }

    /// Reads something besides, about which nothing is told and of which nothing is kept.
    pub(crate) fn aside<T>(work: impl FnOnce(&Library<'_>) -> T) -> T {
        let (arena, quiet) = (Arena::new(), Diagnostics::new());
        work(&Library::of_one_question(&arena, &quiet))
    }

    /// Ends a question: gives the memory of mapped files back, and looks for files anew from now on.
    pub(crate) fn rest(&self) {
        if let Some(known) = &self.known {
            self.arena.store().release_all();
            known.forget_places();
        }
    }

    fn is_full(&self) -> bool {
        self.arena.store().kept() > Self::MOST
    }

    /// One recording, with what it says about its own quality.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub fn examine(&self, options: &LoadOptions) -> Result<(Profile, Evidence), LoadError> {
        let mut evidence = Evidence::default();
        let mut look = |stages: &Stages<'_, '_>, _: &mut Profile| {
            evidence = check::gather(options.source.name(), stages);
        };
        let profile = self.read(options, Some(&mut look))?;
        Ok((profile, evidence))
    }

    /// What a recording lacks that a debuginfod server may have.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub(crate) fn lacking(&self, options: &LoadOptions) -> Result<(Profile, Lacking), LoadError> {
        let mut lacking = Lacking::default();
        let mut look = |stages: &Stages<'_, '_>, _: &mut Profile| {
            lacking = lacking::gather(stages);
        };
        let profile = self.read(options, Some(&mut look))?;
        Ok((profile, lacking))
    }

    /// A recording with the code of the functions that `choose` takes of those with samples. `narrow` filters the profile and
    /// returns true if it did; then only what it left counts.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub(crate) fn annotate(
        &self,
        options: &LoadOptions,
        request: &assembly::Request,
        narrow: &mut dyn FnMut(&mut Profile) -> bool,
        choose: &mut dyn FnMut(&mut assembly::Functions) -> Vec<usize>,
    ) -> Result<(Profile, Assembly), LoadError> {
        let mut assembly = Assembly::default();
        let mut look = |stages: &Stages<'_, '_>, profile: &mut Profile| {
            let filtered = narrow(profile).then_some(&*profile);
            assembly = assembly::list(&material(stages, options), filtered, request, &mut *choose);
        };
        let profile = self.read(options, Some(&mut look))?;
        Ok((profile, assembly))
    }

    /// An answer that `ask` makes of a whole recording and what that says about its own quality, and the texts of the sources that
    /// the answer names.
    ///
    /// # Errors
    /// As [`Library::load`], and what `ask` says.
    ///
    /// # Panics
    /// Never: a recording that was read was looked at.
    pub(crate) fn load_with_sources<T, E: From<LoadError>>(
        &self,
        options: &LoadOptions,
        paths: &SourcePaths,
        ask: impl Fn(Profile, Evidence) -> Result<(T, Vec<String>), E>,
    ) -> Result<(T, Sources), E> {
        let mut answered = None;
        let mut look = |stages: &Stages<'_, '_>, profile: &mut Profile| {
            let evidence = check::gather(options.source.name(), stages);
            let answer = ask(std::mem::take(profile), evidence);
            answered = Some(answer.map(|(answer, names)| {
                let sources = Sources::find(names, paths, stages.answers, self.diag);
                (answer, sources)
            }));
        };
        self.read(options, Some(&mut look))?;
        answered.expect("a recording that was read was looked at")
    }

    /// Everything that a view of a recording could ask for, and the files that it was found in.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub(crate) fn bundle(
        &self,
        options: &LoadOptions,
        request: &assembly::Request,
        wanted: bundle::Wanted,
    ) -> Result<(Profile, Plan), LoadError> {
        // What was used before is of no other recording.
        let ledger = Arc::new(Ledger::default());
        let arena = Arena::from(Store::with_ledger(Arc::clone(&ledger)));
        let mut plan = Plan::default();
        let mut look = |stages: &Stages<'_, '_>, _: &mut Profile| {
            let all = |functions: &mut assembly::Functions| (0..functions.all.len()).collect();
            let assembly = assembly::list(&material(stages, options), None, request, all);
            plan = bundle::plan(stages, &assembly, &ledger, wanted);
            plan.recording = recording_of(&options.source, &ledger);
        };
        let library = Library::of_one_question(&arena, self.diag);
        let profile = library.read(options, Some(&mut look))?;
        Ok((profile, plan))
    }

    /// The counts of `perf stat record`; nothing if the recording has samples instead.
    ///
    /// # Errors
    /// When the recording cannot be opened, or is a stream of samples, which could not be read again.
    pub fn counts(
        &self,
        source: &Source,
        apart: Option<totals::Apart>,
    ) -> Result<Option<Totals>, OpenError> {
        let arena = Arena::new();
        let recording = source.open(arena.store(), self.diag)?;
        let features = &recording.features;
        let is_described = features.present.iter().any(|word| *word != 0);
        if is_described && !features.has_counts() {
            return Ok(None);
        }
        let is_stream = source.is_stream();
        // What trouble there is with samples is told when they are read.
        let quiet = Diagnostics::new();
        let is_certain = features.has_counts() || is_stream;
        let found = totals::counted(
            &recording,
            apart,
            if is_certain { self.diag } else { &quiet },
        );
        let found = found.map_err(|problem| OpenError::Unfit {
            path: source.path().to_owned(),
            problem,
        })?;
        match found {
            None if is_stream => Err(OpenError::Damaged {
                path: source.path().to_owned(),
                problem: "a stream without counts; save it to a file first".to_owned(),
            }),
            found => Ok(found),
        }
    }

    /// Goes through all stages, together with what is known of other recordings.
    pub(super) fn read(&self, options: &LoadOptions, look: Look<'_>) -> Result<Profile, LoadError> {
        if self.known.is_some() && self.is_full() {
            let arena = Arena::new();
            return read_in(arena.store(), None, options, self.diag, look);
        }
        read_in(
            self.arena.store(),
            self.known.as_ref(),
            options,
            self.diag,
            look,
        )
    }
}

/// What listings of code are made of.
fn material<'s, 'a>(stages: &Stages<'s, 'a>, options: &LoadOptions) -> assembly::Material<'s, 'a> {
    assembly::Material {
        session: stages.session,
        samples: stages.samples,
        collected: stages.collected,
        met: stages.met,
        answers: stages.answers,
        wasm: stages.wasm,
        diag: stages.diag,
        names: options.names.names,
        threads: options.reading.threads,
    }
}

/// The files of a recording that were read, by their names in its folder if it is one.
fn recording_of(source: &Source, ledger: &Ledger) -> Vec<(Option<OsString>, Origin)> {
    let path = source.path();
    let whole = ledger.opened_at(path).map(|file| (None, file));
    let parts = ledger.opened_in(path).into_iter().filter_map(|file| {
        let name = file.path().file_name()?.to_owned();
        let is_part = name == "data" || data_number(file.path()).is_some();
        is_part.then_some((Some(name), file))
    });
    let files = whole.into_iter().chain(parts);
    files
        .map(|(name, file)| (name, Origin::File(file)))
        .collect()
}
