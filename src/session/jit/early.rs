//! Reads dumps in a thread of its own while the recording is still being walked.
//!
//! In: files that may be the dump of a marker, sent by [`super::JitBuilder`] when it meets the first markers. Out: dumps,
//! taken up by [`super::files::Finder`] when it comes to open the same files. Which file is used for which marker is
//! decided there and then; what was read in vain is dropped.

use std::sync::mpsc::{Receiver, Sender};

use super::dumps::Dump;
use super::found::open_file;
use crate::find::Place;
use crate::input::{Door, Store};

/// So many dumps are read early; a recording of thousands of processes may have one for each.
pub(super) const MOST: usize = 4;

/// Reads what it is sent until nobody sends any more.
pub struct EarlyReader<'a> {
    pub(super) store: &'a Store,
    pub(super) wanted: Receiver<Vec<Door>>,
    pub(super) read: Sender<Box<Dump<'a>>>,
}

/// The other end of an [`EarlyReader`].
pub(super) struct EarlyDumps<'a> {
    pub(super) wanted: Sender<Vec<Door>>,
    pub(super) read: Receiver<Box<Dump<'a>>>,
    /// How many were asked for.
    pub(super) asked: usize,
}

impl EarlyReader<'_> {
    /// To be run in a thread; ends when the builder does.
    pub fn run(self) {
        for candidates in self.wanted {
            let dump = candidates.iter().find_map(|door| {
                let file = open_file(self.store, door, |_| None).ok()?;
                Dump::read(file, self.store)
            });
            if let Some(dump) = dump
                && self.read.send(Box::new(dump)).is_err()
            {
                return;
            }
        }
    }
}

impl<'a> EarlyDumps<'a> {
    /// Has the first of the candidates read that is a dump.
    pub(super) fn ask(&mut self, candidates: Vec<Place>) {
        self.asked += 1;
        let doors = candidates.into_iter().filter_map(Place::into_door);
        // Without a reader it is read later.
        let _ = self.wanted.send(doors.collect());
    }

    /// All that were read. Waits for them.
    pub(super) fn finish(self) -> impl Iterator<Item = Dump<'a>> {
        drop(self.wanted);
        self.read.into_iter().map(|dump| *dump)
    }
}
