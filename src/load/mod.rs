//! The reading half as one function: from the path of a recording to the [`Profile`] that views show.

#[doc(hidden)]
pub mod assembly;
pub mod bundle;
pub mod check;
pub mod profile;
pub mod totals;

mod clock;
mod companions;
mod known;
mod lacking;
mod names;
mod options;
mod reading;
mod roots;
mod several;
mod source;
mod summary;
mod switch;
mod times;
mod together;
mod whereabouts;

use std::ffi::OsString;
use std::sync::Arc;

pub use lacking::{Lacking, LackingBuild};
pub use names::{Listener, Teller, names};
pub use options::{LoadOptions, SwitchNames};
pub use source::Source;
pub use together::{Together, in_turn};
pub use whereabouts::{Mapped, Whereabouts, whereabouts};

use crate::diagnostics::Diagnostics;
use crate::find::SourcePaths;
use crate::input::{Ledger, Origin, Store, data_number};
use crate::perfdata::{NoField, OpenError};
use crate::profile::Profile;
use crate::session::listing::Listing;
use crate::weigh::WeighError;
use assembly::{Assembly, Sources};
use bundle::Plan;
use check::{Evidence, Stages};
use reading::{read, read_from};
use totals::Totals;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The recording, or what was named with it, cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no field of a name that was given.
    #[error(transparent)]
    Field(#[from] NoField),
    /// It does not have what the weights take.
    #[error(transparent)]
    Weight(#[from] WeighError),
}

impl LoadError {
    /// What to do instead, if there is something.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Field(_) | Self::Weight(_) => None,
        }
    }
}

/// For views that look at the profile alone.
const NOBODY: Option<fn(&Stages<'_, '_>, &mut Profile)> = None;

/// Reads a recording and everything that belongs to it.
///
/// # Errors
/// When the recording, or a kernel symbol file that was named, cannot be opened at all; damage and missing companions are warnings in `diag`.
pub fn load(options: &LoadOptions, diag: &Diagnostics) -> Result<Profile, LoadError> {
    if several::are_several(options) {
        let read = |one: &_, together: &Together<'_>| Ok((together.load(one)?, ()));
        return Ok(several::load_several(options, diag, read)?.0);
    }
    let (profile, ()) = read(options, diag, NOBODY)?;
    summary::report_quality(&profile.quality, diag);
    Ok(profile)
}

/// Hands out the lines of a listing of the recording, as they are made. The inner error is what `line` says.
///
/// # Errors
/// As [`load`].
pub fn list(
    listing: Listing,
    options: &LoadOptions,
    diag: &Diagnostics,
    line: &mut impl FnMut(&str) -> std::io::Result<()>,
) -> Result<std::io::Result<()>, LoadError> {
    reading::list(listing, options, diag, line)
}

/// As [`load`] for `pjit check`: what the recording says about its own quality.
///
/// # Errors
/// As [`load`].
pub fn examine(options: &LoadOptions, diag: &Diagnostics) -> Result<Evidence, LoadError> {
    let gather = look_at_quality(options);
    Ok(read(options, diag, Some(gather))?.1)
}

/// What a recording lacks that a debuginfod server may have.
///
/// # Errors
/// As [`load`].
pub fn lacking(options: &LoadOptions, diag: &Diagnostics) -> Result<(Profile, Lacking), LoadError> {
    let look = |stages: &Stages<'_, '_>, _: &mut Profile| lacking::gather(stages);
    read(options, diag, Some(look))
}

/// Both: the profile, and what each recording in it says about its own quality.
///
/// # Errors
/// As [`load`].
pub fn load_examined(
    options: &LoadOptions,
    diag: &Diagnostics,
) -> Result<(Profile, Vec<Evidence>), LoadError> {
    if several::are_several(options) {
        return several::load_several(options, diag, |one, together| together.load_examined(one));
    }
    let (profile, evidence) = read(options, diag, Some(look_at_quality(options)))?;
    Ok((profile, vec![evidence]))
}

fn look_at_quality(
    options: &LoadOptions,
) -> impl FnOnce(&Stages<'_, '_>, &mut Profile) -> Evidence {
    let name = options.source.name();
    move |stages, _| check::gather(name, stages)
}

/// The same for `pjit annotate`: the code of the functions that `choose` takes of those with samples. `narrow` filters the
/// profile and says whether it did; then only what it left counts.
///
/// # Errors
/// As [`load`].
pub fn annotate(
    options: &LoadOptions,
    request: &assembly::Request,
    diag: &Diagnostics,
    narrow: impl FnOnce(&mut Profile) -> bool,
    choose: impl FnOnce(&mut assembly::Functions) -> Vec<usize>,
) -> Result<(Profile, Assembly), LoadError> {
    let look = |stages: &Stages<'_, '_>, profile: &mut Profile| {
        let filtered = narrow(profile).then_some(&*profile);
        assembly::list(&material(stages, options), filtered, request, choose)
    };
    read(options, diag, Some(look))
}

/// The same for `pjit list`: an answer that is made of the whole recording and what it says about its own quality, and the texts
/// of the sources that the answer names.
///
/// # Errors
/// As [`load`].
///
/// # Panics
/// Never: who looks is asked once.
pub fn load_with_sources<T>(
    options: &LoadOptions,
    paths: &SourcePaths,
    diag: &Diagnostics,
    ask: impl FnOnce(Profile, &Evidence) -> (T, Vec<String>),
) -> Result<(T, Sources), LoadError> {
    let gather = look_at_quality(options);
    let look = |stages: &Stages<'_, '_>, profile: &mut Profile| {
        let evidence = gather(stages, profile);
        let (answer, names) = ask(std::mem::take(profile), &evidence);
        let sources = Sources::find(names, paths, stages.answers, diag);
        Some((answer, sources))
    };
    let (_, seen) = read(options, diag, Some(look))?;
    Ok(seen.expect("who looks is asked once"))
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

/// The same for `pjit bundle`: everything that a view of the recording could ask for, and the files that it was found in.
///
/// # Errors
/// As [`load`].
pub fn bundle(
    options: &LoadOptions,
    request: &assembly::Request,
    wanted: bundle::Wanted,
    diag: &Diagnostics,
) -> Result<(Profile, Plan), LoadError> {
    let ledger = Arc::new(Ledger::default());
    let store = Store::with_ledger(Arc::clone(&ledger));
    let look = |stages: &Stages<'_, '_>, _: &mut Profile| {
        let assembly = assembly::list(&material(stages, options), None, request, |functions| {
            (0..functions.all.len()).collect()
        });
        let mut plan = bundle::plan(stages, &assembly, &ledger, wanted);
        plan.recording = recording_of(&options.source, &ledger);
        plan
    };
    read_from(store, options, diag, Some(look))
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

/// The lines of `--header-only`, in full with `-I`; no record is read for them.
///
/// # Errors
/// When the recording cannot be opened.
pub fn header(source: &Source, full: bool, diag: &Diagnostics) -> Result<Vec<String>, OpenError> {
    let store = Store::new();
    Ok(source.open(&store, diag)?.header_lines(full))
}

/// The counts of `perf stat record`; nothing if the recording has samples instead.
///
/// # Errors
/// When the recording cannot be opened, or is a stream of samples, which could not be read again.
pub fn counts(
    source: &Source,
    apart: Option<totals::Apart>,
    diag: &Diagnostics,
) -> Result<Option<Totals>, OpenError> {
    let store = Store::new();
    let recording = source.open(&store, diag)?;
    let features = &recording.features;
    let is_described = features.present.iter().any(|word| *word != 0);
    if is_described && !features.has_counts() {
        return Ok(None);
    }
    let is_stream = source.is_stream();
    // What trouble there is with samples is told when they are read.
    let quiet = Diagnostics::new();
    let is_certain = features.has_counts() || is_stream;
    let found = totals::counted(&recording, apart, if is_certain { diag } else { &quiet });
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
