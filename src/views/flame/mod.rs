//! The flame view: a profile in, one tree of calls out, with what each thread and event weighs at each node.
//!
//! Pictures, pages and exports of trees read this and nothing else. It knows nothing of SVG, HTML or files.

mod build;
mod findings;
mod folded;
mod join;
mod look;
mod names;
mod prune;

pub use build::{Names, Options, Paths, Roots, build, paths, paths_as, plant};
pub use findings::{Finding, Findings};
pub use folded::FoldedError;
pub use folded::read as read_folded;
pub use join::{Joined, clean, join, rename_functions, rename_program};
pub use look::{ColorBy, Look, MORE, NO_PACKAGE, Nature, RUNTIME};
pub use names::{Naming, shorten, shown, without_arguments};
pub use prune::{Limit, Pruned, prune};

use rustc_hash::FxHashMap;

use crate::ids::{Idx, IndexVec, index_vec};
use crate::needs::Needs;
use crate::profile::{EventId, SymbolId, ThreadId};

/// What pictures are made of.
pub const NEEDS: Needs = Needs::CHAINS.union(Needs::KINDS).union(Needs::ORIGINALS);

crate::ids::numbers! {
    /// Index into [`Flame::functions`].
    pub struct FunctionId(pub u32);
    /// Index into [`Flame::nodes`].
    pub struct NodeId(pub u32);
    /// Index into [`Flame::objects`].
    pub struct ObjectId(crate::ids::Spare);
    /// Index into [`Flame::series`].
    pub struct SeriesId(pub u32);
    /// Index into [`Flame::cells`].
    pub struct CellId(pub u32);
}

/// What kind of code a function is: pictures show it by colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// No function but the comm below it all.
    Comm,
    /// Compiled ahead of time.
    User,
    /// Inlined into its caller.
    Inlined,
    /// Made at run time.
    Jit,
    /// Of the kernel or a module.
    Kernel,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Comm,
        Self::User,
        Self::Inlined,
        Self::Jit,
        Self::Kernel,
    ];

    /// In a word.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Comm => "thread",
            Self::User => "user",
            Self::Inlined => "inlined",
            Self::Jit => "JIT",
            Self::Kernel => "kernel",
        }
    }
}

/// What nodes stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Harmless text.
    pub name: String,
    /// Index into [`Flame::objects`]; none for comms, and when functions are told apart by name alone.
    pub object: Option<ObjectId>,
    /// What kind of code it is.
    pub kind: Kind,
    /// A symbol of this name, for what else is known of it.
    pub symbol: Option<SymbolId>,
    /// What the recording calls it, where that is something else: each tier has a name of its own. Harmless text.
    pub raw: Vec<String>,
}

/// A call path: the function, called by its parent's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The caller's node; the root is its own.
    pub parent: NodeId,
    /// What is called; of no meaning for the root.
    pub function: FunctionId,
}

/// How two runs in one tree are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// What widths are.
    pub shape: Shape,
    /// Weights are compared, and not shares of the runs.
    pub absolute: bool,
    /// What grew has the colour of what shrank, and the other way round.
    pub negate: bool,
}

/// What widths of frames are where two runs are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    /// The larger of both runs, so that nothing is missing.
    #[default]
    Both,
    /// The run that is shown.
    After,
    /// The run that it is compared with.
    Before,
}

impl Shape {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::After => "after",
            Self::Before => "before",
        }
    }
}

/// Samples of which weights are told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Series {
    /// The event.
    pub event: EventId,
    /// The thread, if threads are told apart.
    pub thread: Option<ThreadId>,
    /// Which run: 0 for what is shown, 1 for what it is compared with.
    pub run: u8,
}

/// What one series weighs at one node itself, without its callees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Where.
    pub node: NodeId,
    /// Index into [`Flame::series`].
    pub series: SeriesId,
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
}

/// When a part of a cell was: a row of the profile, most often one sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// In ns.
    pub time: u64,
    /// Index into [`Flame::cells`].
    pub cell: CellId,
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
}

/// The tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flame {
    /// In the order of siblings.
    pub functions: IndexVec<FunctionId, Function>,
    /// Short names of objects.
    pub objects: IndexVec<ObjectId, String>,
    /// Depth first, callers before callees, siblings in the order of their names; the first one stands for everything.
    pub nodes: IndexVec<NodeId, Node>,
    /// In the order of events and threads.
    pub series: IndexVec<SeriesId, Series>,
    /// In the order of nodes, then series.
    pub cells: Vec<Cell>,
    /// In the order of series, times, then cells: what the cells are the sums of. Empty where nobody asked for it, or not all
    /// samples have a time.
    pub moments: Vec<Moment>,
    /// By node: whose it is and what runs there. Empty where nobody asked for it.
    pub natures: IndexVec<NodeId, Nature>,
    /// Who pays, the heaviest first; what belongs to no package last.
    pub packages: Vec<String>,
    /// What is done, in the same order.
    pub activities: Vec<String>,
}

/// Weights of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Of each node itself.
    pub own: IndexVec<NodeId, u64>,
    /// With what it calls.
    pub total: IndexVec<NodeId, u64>,
}

impl Flame {
    /// The root.
    pub const ROOT: NodeId = NodeId(0);

    /// The function of a node, none for the root.
    #[must_use]
    pub fn function(&self, node: NodeId) -> Option<&Function> {
        let function = self.nodes[node].function;
        self.functions.get(function)
    }

    /// What functions are in lists: one that is inlined here and stands by itself there is one, though it is drawn in two colours.
    #[must_use]
    pub fn united(&self) -> IndexVec<FunctionId, FunctionId> {
        fn key(of: &Function) -> (&str, Option<ObjectId>) {
            (&of.name, of.object)
        }
        let mut by_itself = FxHashMap::default();
        for (id, of) in self.functions.iter_enumerated() {
            if !matches!(of.kind, Kind::Comm | Kind::Inlined) {
                by_itself.entry(key(of)).or_insert(id);
            }
        }
        let all = self.functions.iter_enumerated();
        let united = all.map(|(id, of)| {
            let other = (of.kind == Kind::Inlined).then(|| by_itself.get(&key(of)));
            other.flatten().copied().unwrap_or(id)
        });
        united.collect()
    }

    /// What the nodes weigh by what is picked of each cell.
    #[must_use]
    pub fn weights(&self, pick: impl Fn(&Cell) -> u64) -> Weights {
        let mut own: IndexVec<NodeId, u64> = index_vec![0_u64; self.nodes.len()];
        for cell in &self.cells {
            let sum = &mut own[cell.node];
            *sum = sum.saturating_add(pick(cell));
        }
        let mut total = own.clone();
        for node in (1..self.nodes.len()).rev() {
            let (weight, parent) = (total[node], self.nodes[node].parent.index());
            total[parent] = total[parent].saturating_add(weight);
        }
        Weights { own, total }
    }
}
