//! What is known of files and code from other recordings that are read together with one.

use std::sync::{Arc, Mutex, PoisonError};

use crate::arch::Arch;
use crate::dso::{DsoId, Kin};
use crate::ids::Idx;
use crate::session::Session;
use crate::symbolize::DebugStore;
use crate::unwind::Unwinder;

/// What other recordings have opened and found out.
pub(super) struct Known<'a> {
    pub(super) kin: Arc<Kin<'a>>,
    pub(super) debug: DebugStore<'a>,
    learned: Mutex<Vec<Kept<'a>>>,
}

/// The unwinder of a recording that was read, and the files that it knows the rules of.
struct Kept<'a> {
    arch: Option<Arch>,
    /// Whether that recording had code that was made at run time, of which nothing is kept.
    has_code: bool,
    files: Vec<(DsoId, Vec<u8>, Files<'a>)>,
    unwinder: Unwinder<'a>,
}

/// The mapped file of a DSO and the one with debug information: with the same bytes it is the same DSO, as far as unwinding goes.
type Files<'a> = [&'a [u8]; 2];

/// Unwinders that are kept: runs of two programs, two of each at the same time.
const MOST: usize = 4;
/// Places whose rules are kept with an unwinder; with more of them it is not kept.
const MOST_PLACES: usize = 1 << 20;

impl<'a> Known<'a> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            kin: Arc::default(),
            debug: DebugStore::shared(),
            learned: Mutex::default(),
        }
    }

    /// From now on files are looked for anew: what was at a path may be another file by now.
    pub(super) fn forget_places(&self) {
        self.kin.forget_places();
        self.debug.forget_places();
    }

    /// An unwinder that knows files of this recording by the numbers that they have in it, and nothing else.
    pub(super) fn unwinder(&self, session: &Session<'a>) -> Option<Unwinder<'a>> {
        let has_code = session.jit.code_count() > 0;
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |(dso, name, files): &(DsoId, Vec<u8>, Files<'a>)| {
            // What has another name is not opened for this.
            let is_named = name_of(session, *dso) == Some(name);
            let found = || files_of(session, *dso);
            is_named && found().is_some_and(|found| are_same(&found, files))
        };
        let arch = session.dsos.arch();
        let fits = |kept: &Kept<'a>| {
            (kept.arch, kept.has_code) == (arch, has_code) && kept.files.iter().all(is_same)
        };
        let at = learned.iter().position(fits)?;
        Some(learned.remove(at).unwinder)
    }

    /// Keeps what was learned, if it is of files alone that are all at hand.
    pub(super) fn keep(&self, session: &Session<'a>, mut unwinder: Unwinder<'a>) {
        if unwinder.place_count() > MOST_PLACES {
            return;
        }
        let has_code = session.jit.code_count() > 0;
        let files = unwinder.forget_recording(has_code).into_iter();
        let files = files.map(|dso| {
            Some((
                dso,
                name_of(session, dso)?.to_vec(),
                files_of(session, dso)?,
            ))
        });
        let Some(files) = files.collect::<Option<Vec<_>>>() else {
            return;
        };
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.len() == MOST {
            learned.remove(0);
        }
        let arch = session.dsos.arch();
        learned.push(Kept {
            arch,
            has_code,
            files,
            unwinder,
        });
    }
}

fn name_of<'s>(session: &'s Session<'_>, dso: DsoId) -> Option<&'s [u8]> {
    let is_known = dso.index() < session.dsos.len();
    is_known.then(|| &*session.dsos.get(dso).long_name)
}

/// The mapped file and the one with debug information, if they are at hand.
fn files_of<'a>(session: &Session<'a>, dso: DsoId) -> Option<Files<'a>> {
    let files = [session.dsos.binary(dso)?, session.dsos.debug(dso)?];
    Some(files.map(|file| file.bytes()))
}

/// Files of one build are the same memory. The vDSO is copied for each recording, and small.
fn are_same(left: &Files<'_>, right: &Files<'_>) -> bool {
    const SMALL: usize = 1 << 16;
    let mut pairs = left.iter().zip(right);
    pairs.all(|(one, other)| {
        let is_one = one.as_ptr() == other.as_ptr() && one.len() == other.len();
        is_one || one.len() <= SMALL && one == other
    })
}
