//! The table: an entry, or a sample, of each row.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::{Entry, EntryId, FrameId, Profile, Sample, StackId, Taken};
use crate::collect::{Collected, FacetsNumberer, Row, Squares};
use crate::ids::{Idx, IndexSlice, IndexVec};
use crate::intern::ItemIndex;
use crate::perfdata::attr::sample_type;
use crate::perfdata::{Event, EventId};
use crate::session::{SampleId, Samples};

/// A sample that is in no row.
const NO_ROW: u32 = u32::MAX;

/// Makes entries, or samples, of rows.
pub(super) struct Tabler<'b, 'a> {
    pub(super) collected: &'b Collected,
    pub(super) recorded: &'b Samples,
    /// Leaf and stack of each row.
    pub(super) numbers: &'b [(FrameId, StackId)],
    pub(super) facets: FacetsNumberer<'b, 'a>,
    pub(super) profile: &'b mut Profile,
}

impl Tabler<'_, '_> {
    pub(super) fn entries(&mut self) {
        let collected = self.collected;
        let mut unequal = collected.unequal.clone();
        let mut known = ItemIndex::with_capacity(collected.rows.len());
        let mut entries: IndexVec<EntryId, Entry> = IndexVec::with_capacity(collected.rows.len());
        let mut row_of = self.row_of();
        for (row, numbers) in collected.rows.iter().zip(self.numbers) {
            let entry = self.entry(row, *numbers);
            let is = |at: EntryId| is_same_row(&entries[at], &entry);
            let new = entries.next_idx();
            let hash_of = |at: EntryId| row_hash(&entries[at]);
            match known.find_or_add(row_hash(&entry), new, is, hash_of) {
                Some(at) => {
                    let old = &mut entries[at];
                    if let Some(unequal) = &mut unequal {
                        merge_squares(unequal, old, &entry);
                    }
                    old.period = old.period.wrapping_add(entry.period);
                    old.samples += entry.samples;
                    if let Some(row_of) = row_of.get_mut(row.first as usize) {
                        *row_of = old.first as u32;
                    }
                }
                None => {
                    entries.push(entry);
                }
            }
        }
        self.profile.entries = entries;
        self.profile.times = self.times(row_of);
        self.profile.unequal = unequal.unwrap_or_default();
    }

    /// By sample: one before it of the same row, or itself; empty if nobody asked.
    fn row_of(&self) -> Vec<u32> {
        let told = &self.collected.row_of;
        if told.is_empty() {
            return Vec::new();
        }
        let mut row_of = vec![NO_ROW; self.recorded.all.len()];
        for (sample, row) in told {
            row_of[sample.index()] = row.0;
        }
        row_of
    }

    /// When each sample was taken that is of an entry.
    fn times(&self, mut row_of: Vec<u32>) -> Vec<Taken> {
        let mut times = Vec::with_capacity(row_of.len());
        for (at, sample) in (0..row_of.len()).zip(&self.recorded.all) {
            if row_of[at] == NO_ROW {
                continue;
            }
            // Those before it have their entry by now.
            row_of[at] = row_of[row_of[at] as usize];
            if sample.time.0 > 0 {
                times.push(Taken {
                    time: sample.time.0,
                    period: sample.period,
                    row: row_of[at],
                });
            }
        }
        times
    }

    pub(super) fn samples(&mut self, events: &IndexSlice<EventId, [Event]>) {
        let collected = self.collected;
        let has = |event: EventId, field| events[event].attr.has(field);
        let mut addresses = collected.addresses.iter().peekable();
        self.profile.samples.reserve_exact(collected.rows.len());
        for (row, numbers) in collected.rows.iter().zip(self.numbers) {
            let entry = self.entry(row, *numbers);
            let own = (row.first, row.key.event);
            while addresses.next_if(|a| (a.0, a.1) < own).is_some() {}
            let address = addresses.peek().filter(|a| (a.0, a.1) == own);
            let head = &self.recorded.all[SampleId::from_usize(row.first as usize)];
            self.profile.samples.push(Sample {
                time: has(entry.event, sample_type::TIME).then_some(entry.time),
                cpu: u32::try_from(head.cpu).ok(),
                event: entry.event,
                state: entry.state,
                comm: entry.comm,
                thread: entry.thread,
                leaf: entry.leaf,
                stack: entry.stack,
                period: entry.period,
                address: address.map(|a| a.2),
                facets: entry.facets,
            });
        }
    }

    fn entry(&mut self, row: &Row, (leaf, stack): (FrameId, StackId)) -> Entry {
        Entry {
            event: row.key.event,
            state: row.key.state,
            comm: row.key.comm,
            thread: row.key.thread,
            leaf,
            stack,
            facets: self.facets.number(row.key.facets),
            time: row.key.time,
            period: row.period,
            samples: row.samples,
            first: row.first,
        }
    }
}

/// Takes what is known of the squares of an entry to the one that it is added to.
fn merge_squares(unequal: &mut Squares, old: &Entry, more: &Entry) {
    let of = |entry: &Entry| (entry.first, entry.event);
    let is_equal = u128::from(old.period) * u128::from(more.samples)
        == u128::from(more.period) * u128::from(old.samples);
    let added = unequal.remove(&of(more));
    if added.is_none() && is_equal && !unequal.contains_key(&of(old)) {
        return;
    }
    let added = added.unwrap_or_else(|| more.equal_squares());
    *unequal
        .entry(of(old))
        .or_insert_with(|| old.equal_squares()) += added;
}

/// Whether two entries are equal in all that rows are told apart by.
fn is_same_row(a: &Entry, b: &Entry) -> bool {
    let key = |e: &Entry| {
        let rest = (e.event, e.state, e.comm, e.thread, e.facets, e.time);
        (e.stack, e.leaf, rest)
    };
    key(a) == key(b)
}

fn row_hash(entry: &Entry) -> u64 {
    let ids = (entry.stack, entry.leaf, entry.thread, entry.comm);
    let rest = (entry.event, entry.state, entry.facets, entry.time);
    FxBuildHasher.hash_one((ids, rest))
}
