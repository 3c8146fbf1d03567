//! One worker's table: addresses, stacks and rows, each kept once.

use rustc_hash::FxHashMap;

use crate::ids::Idx;
use crate::intern::SequenceIndex;
use crate::needs::Needs;
use crate::perfdata::{CpuMode, EventId};
use crate::session::SampleId;
use crate::stack_end::StackEnd;

use super::addresses::Addresses;
use super::branches::{Branched, Predictions};
use super::depth::Depths;
use super::paths::Paths;
use super::roots::Roots;
use super::{AddressStackId, AddressStacks, Collected, FacetsWriter, PcId, Row, RowKey, Rows};

/// How many calls processors keep.
pub(super) const CALLS_KEPT: [usize; 3] = [8, 16, 32];

#[derive(Default)]
pub(super) struct Table {
    pub(super) addresses: Addresses,
    stacks: AddressStacks,
    stack_index: SequenceIndex<AddressStackId>,
    rows: FxHashMap<RowKey, (u64, u64, u64)>,
    /// Sums of squares of rows with unequal periods, if they are needed.
    unequal: Option<FxHashMap<RowKey, f64>>,
    samples: Vec<Row>,
    /// See [`Collected::row_of`], if that is needed.
    row_of: Option<Vec<(SampleId, SampleId)>>,
    data_addresses: Vec<(u64, EventId, u64)>,
    pub(super) facets: FacetsWriter,
    pub(super) unreadable: u64,
    /// The most entries that a call stack of the processor had.
    pub(super) most_branches: usize,
    pub(super) branches: Branched,
    pub(super) predictions: Predictions,
    pub(super) most_entries: usize,
    pub(super) accesses: u64,
    pub(super) depths: Depths,
    pub(super) roots: Roots,
    pub(super) paths: Paths,
}

impl Table {
    /// An empty one, which keeps what is needed.
    pub(super) fn new(needs: Needs) -> Self {
        let needs_squares = needs.contains(Needs::SQUARES);
        let needs_rows = needs.contains(Needs::TIMES)
            && !needs.intersects(Needs::SAMPLES.union(Needs::BRANCHES));
        Self {
            row_of: needs_rows.then(Vec::new),
            unequal: needs_squares.then(FxHashMap::default),
            facets: FacetsWriter::new(needs),
            ..Self::default()
        }
    }

    pub(super) fn stack(&mut self, frames: &[PcId], end: StackEnd) -> AddressStackId {
        self.stack_index.intern(&mut self.stacks, frames, end)
    }

    /// The same, and how many frames more are kept for it.
    pub(super) fn stack_and_growth(
        &mut self,
        frames: &[PcId],
        end: StackEnd,
    ) -> (AddressStackId, usize) {
        let before = self.stacks.len();
        let stack = self.stack(frames, end);
        let is_new = self.stacks.len() > before;
        (stack, if is_new { frames.len() } else { 0 })
    }

    /// Counts `samples` samples of a row; `rank` is the first one's place in time order.
    pub(super) fn count(&mut self, key: RowKey, period: u64, samples: u64, rank: u64) {
        let (sum, count, first) = self.rows.entry(key).or_insert((0, 0, rank));
        if let Some(unequal) = &mut self.unequal {
            let square = period as f64 * period as f64 / samples.max(1) as f64;
            let is_equal =
                u128::from(period) * u128::from(*count) == u128::from(*sum) * u128::from(samples);
            if is_equal {
                unequal
                    .get_mut(&key)
                    .into_iter()
                    .for_each(|squares| *squares += square);
            } else {
                let equal = *sum as f64 * *sum as f64 / (*count).max(1) as f64;
                *unequal.entry(key).or_insert(equal) += square;
            }
        }
        *sum = sum.wrapping_add(period);
        *count += samples;
        if let Some(row_of) = &mut self.row_of {
            let sample = |number: u64| SampleId::from_usize(number as usize);
            if rank < *first {
                row_of.push((sample(*first), sample(rank)));
            }
            row_of.push((sample(rank), sample(rank.min(*first))));
        }
        *first = rank.min(*first);
    }

    /// Keeps a sample as a row of its own.
    pub(super) fn keep(&mut self, row: Row, address: Option<u64>) {
        let address = address.map(|address| (row.first, row.key.event, address));
        self.data_addresses.extend(address);
        if let Some(row_of) = &mut self.row_of {
            let own = SampleId::from_usize(row.first as usize);
            row_of.push((own, own));
        }
        self.samples.push(row);
    }

    /// The table with its rows in order.
    pub(super) fn finish(self) -> Collected {
        let first = |key: &RowKey| (self.rows[key].2, key.event);
        let unequal = self.unequal.as_ref().map(|unequal| {
            let squares = unequal.iter();
            squares
                .map(|(key, squares)| (first(key), *squares))
                .collect()
        });
        let mut rows: Vec<Row> = self
            .rows
            .into_iter()
            .map(|(key, (period, samples, rank))| Row {
                key,
                period,
                samples,
                first: rank,
            })
            .chain(self.samples)
            .collect();
        // A sample, or a branch, makes one row per event at most, and ranks are unique per sample and event.
        rows.sort_unstable_by_key(place);
        Collected {
            pcs: self.addresses.into_all(),
            stacks: self.stacks,
            rows,
            unequal,
            row_of: self.row_of.unwrap_or_default(),
            facets: self.facets.finish(),
            kind: Rows::default(),
            addresses: self.data_addresses,
            unreadable: self.unreadable,
            most_branches: self.most_branches,
            branches: self.branches,
            predictions: self.predictions.finish(),
            most_entries: self.most_entries,
            accesses: self.accesses,
            depths: self.depths,
            roots: self.roots,
            paths: self.paths.finish(),
            gap: None,
        }
    }
}

/// Where a row belongs.
fn place(row: &Row) -> (u64, EventId) {
    (row.first, row.key.event)
}

impl Collected {
    /// The tables of all workers as one. What is equal in two of them stays there twice: who makes frames of
    /// addresses finds that out at no cost, and looking for it here would keep all but one core waiting.
    pub(super) fn of(tables: Vec<Self>) -> Self {
        let mut tables = tables.into_iter();
        let mut all = tables.next().unwrap_or_default();
        for table in tables {
            all.append(table);
        }
        // Stable: it finds the sorted runs that this is made of.
        all.rows.sort_by_key(place);
        all.addresses.sort_unstable();
        if all.most_branches > 0 {
            all.settle_call_stacks();
        }
        all
    }

    /// Stacks with as many calls as a processor may keep are full only if that is how many this one keeps: no other has more.
    fn settle_call_stacks(&mut self) {
        let most = self.most_branches;
        let pcs = &self.pcs;
        let is_user = |pc: &&PcId| pcs[**pc].mode == CpuMode::User;
        let mut settled = FxHashMap::default();
        for row in &mut self.rows {
            let stack = row.key.stack;
            if self.stacks.tag(stack) != StackEnd::BranchesFull {
                continue;
            }
            let stacks = &mut self.stacks;
            row.key.stack = *settled.entry(stack).or_insert_with(|| {
                let frames = stacks.get(stack);
                let user = frames.iter().filter(is_user).count();
                if CALLS_KEPT.contains(&most) && user >= most {
                    return stack;
                }
                let frames = frames.to_vec();
                stacks.push(&frames, StackEnd::Recorded)
            });
        }
    }

    fn append(&mut self, other: Self) {
        let number = |len: usize| u32::try_from(len).expect("fewer than 4 G of anything");
        let (pcs, stacks) = (number(self.pcs.len()), self.stacks.len());
        let facets = self.facets.append(other.facets, pcs);
        number(self.pcs.len() + other.pcs.len());
        self.pcs.extend(other.pcs);
        self.stacks.append(&other.stacks, |pc| PcId(pc.0 + pcs));
        self.rows.extend(other.rows.into_iter().map(|row| {
            let mut key = row.key;
            key.leaf.0 += pcs;
            key.stack = AddressStackId::from_usize(stacks + key.stack.index());
            key.facets = facets(key.facets);
            Row { key, ..row }
        }));
        self.addresses.extend(other.addresses);
        self.row_of.extend(other.row_of);
        if let Some(unequal) = other.unequal {
            self.unequal.get_or_insert_default().extend(unequal);
        }
        self.unreadable += other.unreadable;
        self.most_branches = self.most_branches.max(other.most_branches);
        self.branches.absorb(&other.branches);
        let predictions = other.predictions.into_iter();
        let predictions = predictions.map(|(pc, missed, all)| (PcId(pc.0 + pcs), missed, all));
        self.predictions.extend(predictions);
        self.most_entries = self.most_entries.max(other.most_entries);
        self.accesses += other.accesses;
        self.depths.absorb(other.depths);
        self.roots.absorb(other.roots, pcs);
        self.paths.absorb(other.paths, pcs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Avma;
    use crate::collect::{FacetsId, Pc};
    use crate::ids::{CommId, ThreadId};
    use crate::run_state::RunState;
    use crate::session::Target;

    fn pc(at: u64) -> Pc {
        Pc {
            at: Avma(at),
            target: Target::Nowhere,
            address: at,
            mode: CpuMode::User,
            returns: false,
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
                event: EventId(0),
                state: RunState::Unknown,
                comm: CommId(0),
                thread: ThreadId(0),
                leaf: frames[0],
                stack,
                facets: FacetsId::NONE,
                time: 0,
            };
            table.count(key, 10, 1, rank);
        }
        table
    }

    /// First sample, number of samples, period and addresses of the rows; those with the same addresses added up.
    fn readable(c: &Collected) -> Vec<(u64, u64, u64, Vec<u64>)> {
        let mut readable: Vec<(u64, u64, u64, Vec<u64>)> = Vec::new();
        for r in &c.rows {
            let address = |pc: &PcId| c.pcs[*pc].at.0;
            let stack: Vec<u64> = c.stacks.get(r.key.stack).iter().map(address).collect();
            assert_eq!(address(&r.key.leaf), stack[0]);
            match readable.iter_mut().find(|known| known.3 == stack) {
                Some(known) => {
                    known.1 += r.samples;
                    known.2 += r.period;
                }
                None => readable.push((r.first, r.samples, r.period, stack)),
            }
        }
        readable
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
        let parts = [filled(&samples[3..]), filled(&samples[..3])];
        let split = Collected::of(parts.map(Table::finish).into());
        assert_eq!(readable(&whole), readable(&split));
        assert_eq!(
            readable(&whole),
            [
                (0, 2, 20, vec![1, 2, 3]),
                (1, 2, 20, vec![4, 2, 3]),
                (3, 1, 10, vec![5])
            ]
        );
    }

    /// Streams are read in the order of their records, and a row may get an earlier sample later.
    #[test]
    fn samples_lead_to_the_first_one_of_their_row() {
        let key = filled(&[(0, &[1])]).finish().rows[0].key;
        let mut table = Table::new(Needs::TIMES);
        for rank in [7, 3, 5, 1] {
            table.count(key, 10, 1, rank);
        }
        let collected = table.finish();
        assert_eq!(collected.rows[0].first, 1);
        let mut row_of = [u32::MAX; 8];
        for (sample, row) in &collected.row_of {
            row_of[sample.index()] = row.0;
        }
        for mut at in [7, 3, 5, 1] {
            while row_of[at] as usize != at {
                assert!(row_of[at] < at as u32, "it leads backwards");
                at = row_of[at] as usize;
            }
            assert_eq!(at, 1);
        }
        assert!(
            filled(&[(0, &[1])]).finish().row_of.is_empty(),
            "nobody asked"
        );
    }

    /// One sample of a second and nineteen of a microsecond at one stack are not twenty equal ones.
    #[test]
    fn unequal_periods_keep_the_sum_of_their_squares() {
        let key = |event: u16| RowKey {
            event: EventId(event),
            ..filled(&[(0, &[1])]).finish().rows[0].key
        };
        let mut table = Table::new(Needs::SQUARES);
        let periods = std::iter::once(1_000_000_000).chain([1000; 19]);
        for (rank, period) in periods.enumerate() {
            table.count(key(0), period, 1, rank as u64);
            table.count(key(1), 1000, 1, rank as u64);
        }
        let unequal = table.finish().unequal.expect("they were asked for");
        let squares = unequal[&(0, EventId(0))];
        assert!((squares / 1e18 - 1.0).abs() < 1e-9, "{squares}");
        assert_eq!(unequal.len(), 1, "equal ones need none");
    }
}
