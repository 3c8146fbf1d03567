//! Pass two: samples in, one table of address stacks out.
//!
//! Workers take blocks of samples, build each sample's call chain (the kernel's part as recorded, the
//! user's unwound from registers and stack bytes, or as recorded) and count equal stacks in tables of their
//! own; nothing is locked inside a block. The tables are put together in the end, sorted by the first sample of
//! each row. What is equal in two of them becomes one when frames are made of it ([`crate::profile`]), so the
//! profile does not depend on the number of workers.
//!
//! Here everything is still addresses; [`crate::symbolize`] names them.

mod addresses;
mod again;
mod branches;
mod budget;
mod chain;
#[cfg(test)]
mod chain_tests;
mod depth;
mod facets;
mod map_cache;
mod paths;
mod roots;
mod sizes;
mod space;
mod table;
mod worker;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::address::Avma;
use crate::arch::Arch;
use crate::diagnostics::Diagnostics;
use crate::ids::{CommId, Idx as _, IndexVec, Spare, ThreadId};
use crate::input::Window;
use crate::intern::Sequences;
use crate::jit::JitIndex;
use crate::needs::Needs;
use crate::perfdata::{CpuMode, EventId, FieldKey, Recording};
use crate::run_state::RunState;
use crate::session::{Located, SampleId, Samples, Session, Target};
use crate::stack_end::StackEnd;
use crate::unwind::CfiTables;

use budget::Budget;
pub use map_cache::MapCache;
pub use space::SpaceAt;

pub use again::{Again, Learned};
pub use branches::Branched;
pub use depth::{Depths, DumpSizes, LARGEST_DUMP};
pub use facets::{Facet, FacetRow, Facets, FacetsId, FacetsPool, Of, Show, TextId};
pub(crate) use facets::{FacetsNumberer, FacetsWriter};
pub use paths::{FramePointer, NodeId, PathEnd, PathNode, PathRoot, PathSample, Paths, Spot};
pub use roots::{Cut, Group, Owner, Placed, RootKey, Roots};
pub use sizes::{needs_sizes, sizes};
pub use worker::{collect, reads_records};

/// Limits and formats of pass two.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Worker threads.
    pub threads: usize,
    /// Longest user part of a stack.
    pub max_frames: usize,
    /// Bytes of a copied stack that are used, as if no more had been recorded: for measurements.
    pub dump_limit: Option<usize>,
    /// Steps of [`Needs::TIME`] in ns.
    pub time_step: u64,
    /// Payloads of tracepoints are lists of all fields by their types, not as the events print them.
    pub raw_payloads: bool,
}

impl Default for Options {
    /// Whole stacks, on all processors of this machine.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            max_frames: MOST_FRAMES,
            dump_limit: None,
            time_step: 1,
            raw_payloads: false,
        }
    }
}

/// More frames than fit the largest copy of a stack that perf records.
const MOST_FRAMES: usize = 4096;

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rows {
    /// All samples that are equal in what the view keeps apart.
    #[default]
    Merged,
    /// One sample, with its exact time, CPU and data address.
    Samples,
    /// All branches that are equal in what the view keeps apart.
    Branches,
}

crate::ids::numbers! {
    /// An address of a chain, in this table only.
    pub struct PcId(pub u32);
    /// Index into [`Collected::stacks`].
    pub struct AddressStackId(Spare);
}

/// A distinct code address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pc {
    /// Where it was in the process; of callers the last byte of the call, one less than what it returns to. With
    /// [`Needs::RETURNS`](crate::needs::Needs::RETURNS) callers of recorded chains are what was recorded.
    pub at: Avma,
    /// What it belongs to.
    pub target: Target,
    /// The address in the target's space.
    pub address: u64,
    /// Mode in which it ran.
    pub mode: CpuMode,
    /// Whether it is of a recorded chain, which has one more: what the call returns to, if it is one.
    pub returns: bool,
}

impl Pc {
    /// Where an address was found.
    fn of(located: Located, mode: CpuMode, at: Avma) -> Self {
        Self {
            at,
            target: located.target,
            address: located.address,
            mode,
            returns: false,
        }
    }

    /// Takes it as it was recorded: it is no place that a call returns to.
    pub(crate) fn take_as_recorded(&mut self) {
        if std::mem::take(&mut self.returns) {
            self.at.0 += 1;
            self.address += 1;
        }
    }
}

/// A row: samples that are equal in everything that the view keeps apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// What makes the row.
    pub key: RowKey,
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
    /// Rank in time order of its first sample, or branch: see [`Collected::sample_of`].
    pub first: u64,
}

/// Sums of squares by the first sample of a row and its event.
pub type Squares = FxHashMap<(u64, EventId), f64>;

/// What keeps rows apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RowKey {
    /// The event.
    pub event: EventId,
    /// What the thread was doing, where a weight tells.
    pub state: RunState,
    /// Comm at that time.
    pub comm: CommId,
    /// Thread.
    pub thread: ThreadId,
    /// The sample's own address.
    pub leaf: PcId,
    /// Its stack.
    pub stack: AddressStackId,
    /// The facets that were asked for.
    pub facets: FacetsId,
    /// Quantised time, 0 when not needed. It is no facet: of exact times each sample has another, and would have a list of its own.
    pub time: u64,
}

/// All rows with the addresses and stacks they refer to.
#[derive(Debug, Default)]
pub struct Collected {
    /// Addresses; each worker's are distinct.
    pub pcs: IndexVec<PcId, Pc>,
    /// Stacks, leaf first; each worker's are distinct.
    pub stacks: AddressStacks,
    /// Rows by first sample. What several workers met has a row of each of them.
    pub rows: Vec<Row>,
    /// With [`Needs::TIMES`] for each sample its rank and, at that time, the `first` of its row. Of a rank that is there twice the
    /// last word counts: a row that gets an earlier sample leads from its first one to that.
    pub row_of: Vec<(SampleId, SampleId)>,
    /// Sum of the squares of periods, by [`Row::first`] and event, of rows whose samples have unequal periods, if that is needed.
    pub unequal: Option<Squares>,
    /// What tells rows apart besides; each worker's lists are distinct.
    pub facets: Facets,
    /// What each row stands for.
    pub kind: Rows,
    /// With [`Rows::Samples`], the data addresses that were recorded, by `first` and event of the row.
    pub addresses: Vec<(u64, EventId, u64)>,
    /// Samples whose record could not be read in pass two.
    pub unreadable: u64,
    /// The most entries that a call stack of the processor had (`--call-graph lbr`).
    pub most_branches: usize,
    /// What was counted of branches, if rows are those.
    pub branches: Branched,
    /// Branches by their address, if that was asked for: those that were mispredicted, and all of which that is known. An address
    /// that several workers met is there several times.
    pub predictions: Vec<(PcId, u64, u64)>,
    /// The most entries that a branch stack had.
    pub most_entries: usize,
    /// Samples that say where the data of their access came from, if that was asked for.
    pub accesses: u64,
    /// How large stacks are, if that was asked for.
    pub depths: Depths,
    /// Where complete stacks begin and which ones were cut, if that was asked for.
    pub roots: Roots,
    /// Where the frames of stacks lie, if that was asked for.
    pub paths: Paths,
    /// The address that stands for frames that are missing within a stack, once there is one.
    pub gap: Option<PcId>,
}

/// Bits for the place of a branch in its sample, behind the rank of that: a record has no room for more.
const BITS_OF_BRANCH: u32 = 12;

impl Collected {
    /// The first sample of a row.
    #[must_use]
    pub fn sample_of(&self, row: &Row) -> SampleId {
        let rank = match self.kind {
            Rows::Branches => row.first >> BITS_OF_BRANCH,
            Rows::Merged | Rows::Samples => row.first,
        };
        SampleId::from_usize(usize::try_from(rank).unwrap_or(usize::MAX))
    }

    /// Hands out the rows in code of perf maps that tell of several functions at their address, and those that were called from it:
    /// for the latter `is_own` is false.
    pub fn doubtful(&self, jit: &JitIndex<'_>, mut found: impl FnMut(&Row, bool)) {
        let is_doubtful = |pc: &Pc| matches!(pc.target, Target::Jit(code, _) if jit.code(code).is_doubtful(pc.address));
        let pcs: IndexVec<PcId, bool> = self.pcs.iter().map(is_doubtful).collect();
        if !pcs.raw.contains(&true) {
            return;
        }
        for row in &self.rows {
            let mut callers = self.stacks.get(row.key.stack).iter();
            if pcs[row.key.leaf] {
                found(row, true);
            } else if callers.any(|pc| pcs[*pc]) {
                found(row, false);
            }
        }
    }
}

/// Stacks of addresses, leaf first, with the reason why it ended.
pub type AddressStacks = Sequences<AddressStackId, PcId, StackEnd>;

/// What a worker reads and never changes.
#[derive(Clone, Copy)]
struct Shared<'s, 'a> {
    recording: &'s Recording<'a>,
    session: &'s Session<'a>,
    samples: &'s Samples,
    tables: &'s Arc<CfiTables<'a>>,
    learned: &'s Learned<'a>,
    arch: Option<Arch>,
    window: &'s Window<'s>,
    needs: Needs,
    options: Options,
    fields: &'s [FieldKey],
    budget: &'s Budget,
    diag: &'s Diagnostics,
}
