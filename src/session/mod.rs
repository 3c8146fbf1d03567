//! The history: who ran, what was mapped or jitted, when.
//!
//! [`Session::index`] takes the records of a recording in delivery order and keeps, for each sample,
//! a small reference with its thread, comm and address space. Afterwards the session is immutable
//! and shared by all workers. What lay at an address for one sample is asked, and answered, in
//! the stage that unwinds.
//!
//! Address spaces are snapshots: a new one is taken only when a sample follows a change, and
//! snapshots share what did not change ([`maps`]). JIT code is not a mapping; it has an index of its
//! own by address and time ([`jit`]).

pub mod frame_sizes;
pub mod jit;
pub mod kernel_maps;
pub mod listing;
pub mod maps;
pub mod marks;
pub mod records;
pub mod returns;
mod running;
pub mod threads;

mod build;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Avma, Timestamp};
use crate::dso::{DsoId, DsoKind, DsoTable};
use crate::ids::{CommId, IndexVec, ThreadId};
use crate::perfdata::{CpuMode, DeliverStats, EventId, RecordPos};
use crate::run_state::RunState;
use crate::stack_end::StackEnd;

use crate::jit::{JitCodeId, JitIndex, JitObjectId, ProcessId};
use frame_sizes::FrameSizes;
use kernel_maps::KernelMaps;
use maps::{MapTable, Mapping};
use marks::Mark;
use returns::Returns;
use threads::ThreadLife;

pub use build::{Filter, Switch};
pub use running::Parallelism;

crate::ids::numbers! {
    /// A state of a process' mappings.
    pub struct SpaceId(pub u32);
    /// A sample, by its place in time order.
    #[derive(Default)]
    pub struct SampleId(pub u32);
}

/// What pass two needs to know of a sample; some 64 bytes each.
#[derive(Clone, Copy, Debug)]
pub struct SampleRef {
    /// Where its record is.
    pub pos: RecordPos,
    /// When it was taken.
    pub time: Timestamp,
    /// Where it was taken.
    pub ip: Avma,
    /// Its weight.
    pub period: u64,
    /// Whose it is.
    pub thread: ThreadId,
    /// The thread's comm at that time.
    pub comm: CommId,
    /// The process' mappings at that time.
    pub space: SpaceId,
    /// CPU, or -1.
    pub cpu: i32,
    /// What was counted.
    pub event: EventId,
    /// Whose layout its record has: the group's leader for members that share a record.
    pub layout: EventId,
    /// Where `ip` belongs.
    pub mode: CpuMode,
    /// What the thread was doing, where a weight tells.
    pub state: RunState,
    /// A frame in front of the sample's stack.
    pub label: Label,
}

/// A frame that stands for no code: its text is in [`Samples::labels`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(pub u8);

impl Label {
    /// No such frame.
    pub const NONE: Self = Self(u8::MAX);
    /// Stands within a stack where frames of code that keeps no frame pointer are missing.
    pub const SKIPPED: Self = Self(u8::MAX - 1);
    /// Stands within a stack where the caller of its innermost function is missing.
    pub const NO_CALLER: Self = Self(u8::MAX - 2);

    /// The label of a text's number, if there is room for so many.
    #[must_use]
    pub fn of_text(index: usize) -> Self {
        let label = u8::try_from(index).map_or(Self::NONE, Self);
        if label < Self::NO_CALLER {
            label
        } else {
            Self::NONE
        }
    }

    /// Why frames are missing where it stands within a stack; nothing for the others.
    #[must_use]
    pub const fn gap(self) -> Option<StackEnd> {
        match self {
            Self::SKIPPED => Some(StackEnd::Skipped),
            Self::NO_CALLER => Some(StackEnd::CallerMissing),
            _ => None,
        }
    }
}

/// The final count of an event in one task (`perf record -s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCounter {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What was counted.
    pub event: EventId,
    /// How much.
    pub value: u64,
}

/// The mappings of one process between two changes.
#[derive(Debug, Clone)]
pub struct Space {
    /// Whose they are.
    pub process: ProcessId,
    /// What is mapped where.
    pub maps: MapTable,
}

/// The samples of a recording.
pub struct Samples {
    /// In time order, without those that the filter dropped.
    pub all: IndexVec<SampleId, SampleRef>,
    /// Number and period of those that count in totals but have no row (guests), by event.
    pub rowless: IndexVec<EventId, (u64, u64)>,
    /// Texts of frames that stand for no code, indexed by [`Label`].
    pub labels: Vec<String>,
}

impl Samples {
    /// Keeps these samples alone; where they were before.
    pub fn only(&mut self, mut is_kept: impl FnMut(&SampleRef) -> bool) -> Vec<SampleId> {
        let samples = self.all.iter_enumerated();
        let kept = samples.filter(|(_, sample)| is_kept(sample));
        let kept: Vec<SampleId> = kept.map(|(number, _)| number).collect();
        let all: Vec<SampleRef> = kept.iter().map(|number| self.all[*number]).collect();
        self.all = all.into();
        self.rowless.iter_mut().for_each(|sums| *sums = (0, 0));
        kept
    }
}

/// The history of a recording, which nothing changes once it was read. Numbers of samples are those that they were recorded
/// with.
pub struct Session<'a> {
    /// All DSOs; their files open on first use.
    pub dsos: DsoTable<'a>,
    /// JIT code of all processes.
    pub jit: JitIndex<'a>,
    /// Comms, indexed by [`CommId`].
    pub comms: IndexVec<CommId, String>,
    /// Threads, indexed by [`ThreadId`].
    pub threads: IndexVec<ThreadId, ThreadLife>,
    /// What was read.
    pub stats: DeliverStats,
    /// Counters of the tasks that ended, as they were read.
    pub counters: Vec<TaskCounter>,
    /// The user's part of chains that have its number in its place.
    pub deferred: FxHashMap<u64, Box<[u64]>>,
    /// Paths of cgroups by the id that samples have, where they were recorded.
    pub cgroups: FxHashMap<u64, String>,
    /// When processes began to run another program, in time order.
    execs: FxHashMap<ProcessId, Vec<Timestamp>>,
    /// Moments in the lives of threads, if they were asked for.
    pub marks: Vec<Mark>,
    /// Whether a program copied its code to memory without a file.
    pub has_copied_code: bool,
    /// Times of the first and the last sample in ns, of those too that the filter dropped.
    pub seen: Option<(u64, u64)>,
    /// When something was lost, in order of the records.
    pub lost_at: Vec<Timestamp>,
    /// Threads that began while it was recorded.
    pub born: Vec<ThreadId>,
    /// Before which samples something was lost, asked for with them.
    pub losses: Vec<SampleId>,
    /// Whether return addresses of some process may have been replaced by a probe.
    pub has_return_probes: bool,
    /// What was in their place, as far as the recording tells.
    pub returns: Returns,
    /// How large frames are in code with frame pointers and no bytes, as far as stacks tell.
    pub frame_sizes: FrameSizes,
    /// Records of switches away from threads.
    pub switches: u64,
    /// How many threads ran at each sample, if it was asked for.
    pub parallelism: Parallelism,
    spaces: IndexVec<SpaceId, Space>,
    /// The pid of each process life, indexed by [`ProcessId`].
    processes: IndexVec<ProcessId, u32>,
    /// Mappings of each process at the end.
    last: FxHashMap<ProcessId, MapTable>,
    kernel: KernelMaps,
    /// The program of each process.
    programs: FxHashMap<ProcessId, DsoId>,
    /// Programs that processes ran before others.
    past_programs: FxHashSet<DsoId>,
    /// The DSO of each jitdump, indexed by `JitObjectId`.
    jit_dsos: IndexVec<JitObjectId, DsoId>,
}

/// What a code address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// Nothing is mapped there.
    Nowhere,
    /// A DSO; its address is a file offset, or the process address for kernel and anonymous memory.
    Dso(DsoId),
    /// An entry of a jitdump or perf map, and the DSO it is shown under; its address is an offset.
    Jit(JitCodeId, DsoId),
    /// No code at all: a label.
    Label(Label),
}

/// A code address and what it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Located {
    /// What it belongs to.
    pub target: Target,
    /// The address in the target's space.
    pub address: u64,
}

impl<'a> Session<'a> {
    /// Whether the recording tells where the kernel itself lay: not where its addresses were hidden from perf.
    #[must_use]
    pub fn knows_kernel(&self) -> bool {
        let mut objects = self.kernel.iter().map(|mapping| self.dsos.get(mapping.dso));
        objects.any(|object| object.kind == DsoKind::Kernel)
    }

    /// How many programs the process of a sample had run before.
    #[must_use]
    pub fn program_of(&self, sample: &SampleRef) -> u32 {
        let process = self.threads[sample.thread].process;
        let execs = self.execs.get(&process).map_or(&[][..], Vec::as_slice);
        execs.partition_point(|at| *at <= sample.time) as u32
    }

    /// The programs that were started while it was recorded: by process, and by the number that [`program_of`](Self::program_of)
    /// gives its samples; with the comm that it began with.
    pub fn programs(&self) -> impl Iterator<Item = (ProcessId, u32, CommId)> + '_ {
        let leaders = self
            .threads
            .iter()
            .filter(|thread| thread.pid == thread.tid);
        leaders.flat_map(|leader| {
            let execs = self.execs.get(&leader.process).into_iter().flatten();
            execs.zip(1..).map(|(at, number)| {
                let mut comms = leader.comms.iter().rev();
                let comm = comms.find(|(from, _)| from <= at);
                let comm = comm.map_or(leader.comm, |(_, comm)| *comm);
                (leader.process, number, comm)
            })
        })
    }

    /// The state of the kernel's mappings at a time.
    #[must_use]
    pub fn kernel_state_at(&self, time: Timestamp) -> usize {
        self.kernel.state_at(time)
    }

    /// The kernel mapping that contains an address, in a [state](Self::kernel_state_at).
    #[must_use]
    pub fn locate_kernel(&self, at: Avma, state: usize) -> Located {
        match self.kernel.find(state, at) {
            Some(mapping) => Located {
                target: Target::Dso(mapping.dso),
                address: at.0,
            },
            None => Located {
                target: Target::Nowhere,
                address: at.0,
            },
        }
    }

    /// Name and start of the kernel's function at an address and a time. Waits for the kernel's symbols.
    #[must_use]
    pub fn kernel_function(&self, at: Avma, time: Timestamp) -> Option<(String, u64)> {
        let located = self.locate_kernel(at, self.kernel_state_at(time));
        let Target::Dso(dso) = located.target else {
            return None;
        };
        let symbol = self.dsos.symbols(dso)?.find(located.address)?;
        let name = String::from_utf8_lossy(symbol.name).into_owned();
        Some((name, symbol.start))
    }

    /// The mappings of a thread's process at the end of the recording, by address.
    pub fn final_mappings(&self, thread: ThreadId) -> impl Iterator<Item = &Mapping> {
        let process = self.threads[thread].process;
        self.last.get(&process).into_iter().flat_map(MapTable::iter)
    }

    /// What a thread's process had at an address at the end of the recording.
    #[must_use]
    pub fn final_mapping(&self, thread: ThreadId, at: Avma) -> Option<&Mapping> {
        self.last.get(&self.threads[thread].process)?.find(at)
    }

    /// Where the kernel, its modules and its programs lie.
    pub fn kernel_mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.kernel.iter()
    }

    /// The pid of a process.
    #[must_use]
    pub fn pid_of(&self, process: ProcessId) -> u32 {
        self.processes[process]
    }

    /// A state of a process' mappings.
    #[must_use]
    pub fn space(&self, id: SpaceId) -> &Space {
        &self.spaces[id]
    }

    /// The DSO under which the code of a dump is shown.
    #[must_use]
    pub fn dso_of_dump(&self, dump: JitObjectId) -> DsoId {
        self.jit_dsos[dump]
    }

    /// The program that a process ran at the end.
    #[must_use]
    pub fn main_program(&self, process: ProcessId) -> Option<DsoId> {
        self.programs.get(&process).copied()
    }

    /// The programs that processes ran before those that they ran at the end.
    pub fn past_programs(&self) -> impl Iterator<Item = DsoId> + '_ {
        self.past_programs.iter().copied()
    }
}
