//! Which process, and which life of it, an entry of a dump belongs to.
//!
//! A file's records need not be of the process that mapped it: children keep writing to it, an
//! earlier process with the same id may have left it behind, and in a pid namespace the runtime knows
//! itself by another number.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ProcessId;
use super::load_map::LoadId;
use super::marker::Marker;
use crate::address::Timestamp;
use crate::ids::{IndexSlice, IndexVec, numbers};

numbers! {
    /// A move among those of its dump, in file order.
    pub(super) struct MoveId(pub(super) u32);
}

/// A load that is this much older than its dump's mapping was written by an earlier process.
pub(super) const STALE: u64 = 1_000_000_000;

/// Which process each entry of a dump belongs to.
pub(super) struct Owners {
    pub(super) of_loads: OwnedLoads,
    pub(super) of_moves: IndexVec<MoveId, Option<ProcessId>>,
}

/// Which process each load belongs to; `None` is no process of this recording.
pub(super) enum OwnedLoads {
    /// All to one.
    All(ProcessId),
    Each(IndexVec<LoadId, Option<ProcessId>>),
}

impl OwnedLoads {
    pub(super) fn of(&self, load: LoadId) -> Option<ProcessId> {
        match self {
            Self::All(process) => Some(*process),
            Self::Each(owners) => owners.get(load).copied().flatten(),
        }
    }

    /// How many of a dump's loads belong to no process.
    pub(super) fn foreign(&self) -> u64 {
        match self {
            Self::All(_) => 0,
            Self::Each(owners) => owners.iter().filter(|owner| owner.is_none()).count() as u64,
        }
    }
}

/// The process lives of each pid.
pub(super) struct Lives {
    by_pid: FxHashMap<u32, Vec<(Timestamp, ProcessId)>>,
    born: FxHashMap<ProcessId, Timestamp>,
    /// Those whose threads have all ended.
    ended: FxHashMap<ProcessId, Timestamp>,
    /// Threads of the kernel, by their process ids.
    kernels: FxHashSet<u32>,
}

impl Lives {
    pub(super) fn new(
        pids: &IndexSlice<ProcessId, [u32]>,
        (born, ended): (
            &FxHashMap<ProcessId, Timestamp>,
            &FxHashMap<ProcessId, Timestamp>,
        ),
        kernels: FxHashSet<u32>,
    ) -> Self {
        let mut by_pid: FxHashMap<u32, Vec<(Timestamp, ProcessId)>> = FxHashMap::default();
        for (number, &pid) in (0_u32..).zip(pids) {
            let process = ProcessId(number);
            let birth = born.get(&process).copied().unwrap_or(Timestamp::START);
            by_pid.entry(pid).or_default().push((birth, process));
        }
        for lives in by_pid.values_mut() {
            lives.sort_unstable();
        }
        Self {
            by_pid,
            born: born.clone(),
            ended: ended.clone(),
            kernels,
        }
    }

    /// Whether this is a thread of the kernel, which writes no dumps.
    pub(super) fn is_kernels(&self, pid: u32) -> bool {
        self.kernels.contains(&pid)
    }

    pub(super) fn knows(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    pub(super) fn born(&self, process: ProcessId) -> Option<Timestamp> {
        self.born.get(&process).copied()
    }

    pub(super) fn ended(&self, process: ProcessId) -> Option<Timestamp> {
        self.ended.get(&process).copied()
    }

    /// The only life of a pid, and when it began.
    fn only(&self, pid: u32) -> Option<(Timestamp, ProcessId)> {
        match self.by_pid.get(&pid)?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The life of a pid at a time; without a time the last.
    pub(super) fn at(&self, pid: u32, time: Option<Timestamp>) -> Option<ProcessId> {
        let lives = self.by_pid.get(&pid)?;
        let Some(time) = time else {
            return Some(lives.last()?.1);
        };
        // Clocks that were shifted may be a little off.
        let latest = time.0.saturating_add(STALE);
        let born_before = |limit: u64| {
            lives
                .partition_point(|&(born, _)| born.0 <= limit)
                .checked_sub(1)
        };
        let at = born_before(time.0).or_else(|| born_before(latest))?;
        Some(lives[at].1)
    }
}

/// Finds the owners of one dump's entries.
pub(super) struct Attribution<'l> {
    lives: &'l Lives,
    /// When each process that mapped the dump did so first, by its id.
    outer: FxHashMap<u32, Timestamp>,
    /// Processes in a pid namespace that mapped it, by the id in the file's name or header and in order of time.
    inner: FxHashMap<u32, Vec<(Timestamp, ProcessId)>>,
    first: FxHashMap<ProcessId, Timestamp>,
}

impl<'l> Attribution<'l> {
    /// `header_pid` is the process that the file's header names.
    pub(super) fn new<'m>(
        markers: impl Iterator<Item = &'m Marker>,
        header_pid: u32,
        lives: &'l Lives,
    ) -> Self {
        let (mut outer, mut first) = (FxHashMap::default(), FxHashMap::default());
        let mut inner: FxHashMap<u32, Vec<_>> = FxHashMap::default();
        for marker in markers {
            let earlier = |time: &mut Timestamp| *time = marker.time.min(*time);
            outer
                .entry(marker.pid)
                .and_modify(earlier)
                .or_insert(marker.time);
            first
                .entry(marker.process)
                .and_modify(earlier)
                .or_insert(marker.time);
            if marker.number == marker.pid {
                continue;
            }
            let in_header = (header_pid != marker.number).then_some(header_pid);
            for number in [marker.number].into_iter().chain(in_header) {
                let processes = inner.entry(number).or_default();
                processes.push((marker.time, marker.process));
            }
        }
        for processes in inner.values_mut() {
            processes.sort_unstable();
        }
        Self {
            lives,
            outer,
            inner,
            first,
        }
    }

    /// The process that an entry with this pid and time belongs to; `None` for those of an earlier
    /// process whose file was appended to, and of processes that were not recorded.
    pub(super) fn owner(&self, pid: u32, time: Option<Timestamp>) -> Option<ProcessId> {
        let limit = time.map_or(u64::MAX, |time| time.0.saturating_add(STALE));
        if let Some(mapped) = self.outer.get(&pid) {
            return self.lives.at(pid, time).filter(|_| mapped.0 <= limit);
        }
        match self.inner.get(&pid) {
            Some(processes) => {
                let next = processes.partition_point(|(mapped, _)| mapped.0 <= limit);
                Some(processes[next.checked_sub(1)?].1)
            }
            None => self.lives.at(pid, time),
        }
    }

    /// The process that all entries with this pid belong to, and from when on at the latest, if that is easily said.
    pub(super) fn only_owner(&self, pid: u32) -> Option<(ProcessId, Timestamp)> {
        let (born, process) = self.lives.only(pid)?;
        let mapped = match self.outer.get(&pid) {
            Some(&mapped) => mapped,
            None if self.inner.contains_key(&pid) => return None,
            None => Timestamp::START,
        };
        let since = born.max(mapped).0.saturating_sub(STALE);
        Some((process, Timestamp(since)))
    }

    /// The time of entries whose own time is not used: they hold from the mapping of their dump on.
    pub(super) fn blind_time(&self, owner: Option<ProcessId>) -> Timestamp {
        owner
            .and_then(|owner| self.first.get(&owner))
            .copied()
            .unwrap_or_default()
    }
}
