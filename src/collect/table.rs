//! One worker's table: addresses, stacks and rows, each kept once.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::address::Avma;
use crate::intern::{ItemIndex, SequenceIndex};
use crate::perfdata::CpuMode;
use crate::profile::StackEnd;
use crate::session::SpaceAt;
use crate::unwind::UserFrame;

use super::depth::Depths;
use super::{AddressStacks, Collected, NO_TEXT, Pc, PcId, Row, RowKey};

/// One worker's distinct addresses, with shortcuts that save looking up what lies at an address that
/// was met before.
#[derive(Default)]
pub(super) struct Addresses {
    pcs: Vec<Pc>,
    by_pc: ItemIndex,
    /// Kernel addresses mean the same at all times.
    kernel: FxHashMap<u64, PcId>,
    /// By the unwinder's number for the place: the address it was last met at. The same place
    /// at another address (another process) goes the long way.
    by_place: Vec<(Avma, PcId)>,
}

impl Addresses {
    /// All of them, indexed by [`PcId`].
    pub(super) fn all(&self) -> &[Pc] {
        &self.pcs
    }

    pub(super) fn intern(&mut self, pc: Pc) -> PcId {
        let new = u32::try_from(self.pcs.len()).expect("fewer than 4 G addresses");
        let pcs = &self.pcs;
        let hash = |pc: &Pc| FxBuildHasher.hash_one(pc);
        let is = |id: u32| pcs[id as usize] == pc;
        let known = (self.by_pc).find_or_add(hash(&pc), new, is, |id| hash(&pcs[id as usize]));
        PcId(known.unwrap_or_else(|| {
            self.pcs.push(pc);
            new
        }))
    }

    /// The address `at` of a sample's process, or of the kernel.
    pub(super) fn at(&mut self, space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) -> PcId {
        if mode != CpuMode::Kernel {
            return self.intern(located(space, mode, at));
        }
        if let Some(&id) = self.kernel.get(&at.0) {
            return id;
        }
        let id = self.intern(located(space, mode, at));
        self.kernel.insert(at.0, id);
        id
    }

    /// The address of a frame that was unwound.
    pub(super) fn of_frame(&mut self, space: &SpaceAt<'_, '_>, frame: &UserFrame) -> PcId {
        let place = frame.id as usize;
        if let Some(&(at, id)) = self.by_place.get(place)
            && at == frame.lookup
            && id != NO_PC
        {
            return id;
        }
        let id = self.intern(located(space, CpuMode::User, frame.lookup));
        if frame.id != UserFrame::NO_ID {
            if place >= self.by_place.len() {
                self.by_place.resize(place + 1, (Avma(0), NO_PC));
            }
            self.by_place[place] = (frame.lookup, id);
        }
        id
    }
}

const NO_PC: PcId = PcId(u32::MAX);

fn located(space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) -> Pc {
    let located = space.locate_in(mode, at);
    Pc {
        at,
        target: located.target,
        address: located.address,
        mode,
    }
}

/// One worker's distinct payloads.
#[derive(Default)]
struct Texts {
    all: Vec<Box<str>>,
    index: FxHashMap<Box<str>, u32>,
}

impl Texts {
    fn intern(&mut self, text: String) -> u32 {
        if let Some(&id) = self.index.get(text.as_str()) {
            return id;
        }
        let id = u32::try_from(self.all.len()).expect("fewer than 4 G samples");
        let text = text.into_boxed_str();
        self.all.push(text.clone());
        self.index.insert(text, id);
        id
    }
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) addresses: Addresses,
    stacks: AddressStacks,
    stack_index: SequenceIndex,
    rows: FxHashMap<RowKey, (u64, u64, u64)>,
    every_sample: Vec<Row>,
    texts: Texts,
    pub(super) unreadable: u64,
    pub(super) depths: Depths,
}

impl Table {
    pub(super) fn stack(&mut self, frames: &[PcId], end: StackEnd) -> u32 {
        self.stack_index.intern(&mut self.stacks, frames, end)
    }

    /// The number of a payload's text.
    pub(super) fn text(&mut self, text: Option<String>) -> u32 {
        text.map_or(NO_TEXT, |text| self.texts.intern(text))
    }

    /// Counts `samples` samples of a row; `rank` is the first one's place in time order.
    pub(super) fn count(&mut self, key: RowKey, period: u64, samples: u64, rank: u64) {
        let (sum, count, first) = self.rows.entry(key).or_insert((0, 0, rank));
        *sum = sum.wrapping_add(period);
        *count += samples;
        *first = rank.min(*first);
    }

    /// Keeps a sample as a row of its own.
    pub(super) fn keep(&mut self, row: Row) {
        self.every_sample.push(row);
    }

    /// Adds all of another worker's table to this one.
    pub(super) fn absorb(&mut self, other: Self) {
        let pcs: Vec<PcId> = other
            .addresses
            .pcs
            .iter()
            .map(|&pc| self.addresses.intern(pc))
            .collect();
        let mut frames = Vec::new();
        let stacks: Vec<u32> = (0..other.stacks.len())
            .map(|i| {
                let id = u32::try_from(i).expect("interned as u32");
                frames.clear();
                frames.extend(other.stacks.get(id).iter().map(|pc| pcs[pc.0 as usize]));
                self.stack(&frames, other.stacks.tag(id))
            })
            .collect();
        let texts: Vec<u32> = other
            .texts
            .all
            .into_iter()
            .map(|text| self.texts.intern(text.into_string()))
            .collect();
        let translate = |key: RowKey| RowKey {
            leaf: pcs[key.leaf.0 as usize],
            stack: stacks[key.stack as usize],
            trace: texts.get(key.trace as usize).copied().unwrap_or(NO_TEXT),
            ..key
        };
        for (key, (period, samples, first)) in other.rows {
            self.count(translate(key), period, samples, first);
        }
        self.every_sample
            .extend(other.every_sample.into_iter().map(|row| Row {
                key: translate(row.key),
                ..row
            }));
        self.unreadable += other.unreadable;
        self.depths.absorb(other.depths);
    }

    pub(super) fn finish(self) -> Collected {
        let mut rows: Vec<Row> = self
            .rows
            .into_iter()
            .map(|(key, (period, samples, first))| Row {
                key,
                period,
                samples,
                first,
            })
            .chain(self.every_sample)
            .collect();
        // A sample makes one row per event at most, and ranks are unique per sample and event.
        rows.sort_unstable_by_key(|row| (row.first, row.key.event));
        Collected {
            pcs: self.addresses.pcs,
            stacks: self.stacks,
            rows,
            texts: self.texts.all,
            unreadable: self.unreadable,
            depths: self.depths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CommId, ThreadId};
    use crate::session::Target;

    fn pc(at: u64) -> Pc {
        Pc {
            at: Avma(at),
            target: Target::Nowhere,
            address: at,
            mode: CpuMode::User,
        }
    }

    fn filled(samples: &[(u64, &[u64])]) -> Table {
        let mut table = Table::default();
        for &(rank, addresses) in samples {
            let frames: Vec<PcId> = addresses
                .iter()
                .map(|&a| table.addresses.intern(pc(a)))
                .collect();
            let stack = table.stack(&frames, StackEnd::Complete);
            let key = RowKey {
                event: 0,
                cpu: -1,
                comm: CommId(0),
                thread: ThreadId(0),
                leaf: frames[0],
                stack,
                time: 0,
                cgroup: 0,
                trace: NO_TEXT,
            };
            table.count(key, 10, 1, rank);
        }
        table
    }

    fn readable(c: &Collected) -> Vec<(u64, u64, u64, Vec<u64>)> {
        c.rows
            .iter()
            .map(|r| {
                let stack = c
                    .stacks
                    .get(r.key.stack)
                    .iter()
                    .map(|pc| c.pcs[pc.0 as usize].at.0)
                    .collect();
                (r.first, r.samples, r.period, stack)
            })
            .collect()
    }

    #[test]
    fn the_split_over_workers_does_not_show() {
        let samples: [(u64, &[u64]); 5] = [
            (0, &[1, 2, 3]),
            (1, &[4, 2, 3]),
            (2, &[1, 2, 3]),
            (3, &[5]),
            (4, &[4, 2, 3]),
        ];
        let whole = filled(&samples).finish();
        let mut split = filled(&samples[3..]);
        split.absorb(filled(&samples[..3]));
        assert_eq!(readable(&whole), readable(&split.finish()));
        assert_eq!(
            readable(&whole),
            [
                (0, 2, 20, vec![1, 2, 3]),
                (1, 2, 20, vec![4, 2, 3]),
                (3, 1, 10, vec![5])
            ]
        );
    }
}
