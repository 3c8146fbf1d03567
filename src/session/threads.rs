//! Threads and comms over time, by perf's rules (`util/machine.c`, `util/thread.c`): looked up by tid,
//! a comm holds from its record on, a fork takes the parent's comm of that moment.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::jit::ProcessId;
use crate::address::Timestamp;
use crate::ids::{CommId, IndexSlice, IndexVec, ThreadId};

/// "No such id": what the kernel writes for tasks outside its pid namespace, and for absent fields.
pub const NO_ID: u32 = u32::MAX;

/// A namespace: device and inode.
pub type Namespace = (u64, u64);

/// One life of a thread.
#[derive(Clone, Debug)]
pub struct ThreadLife {
    /// Process id, [`NO_ID`] when not told.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Current comm while building, the final one afterwards.
    pub comm: CommId,
    /// Tid of the thread that made it, where that was recorded.
    pub parent: Option<u32>,
    /// Whose mappings it uses.
    pub process: ProcessId,
    /// When it was made, if that was recorded.
    pub start: Option<Timestamp>,
    /// When it ended, if that was recorded.
    pub end: Option<Timestamp>,
    /// Its comms, each with the time from which it had it.
    pub comms: SmallVec<[(Timestamp, CommId); 2]>,
    /// Its cgroup namespaces, each with the time from which it was in it, where that was recorded.
    pub cgroups: Vec<(Timestamp, Namespace)>,
    /// Whether a COMM record named it (`:TID` is handed on to nobody).
    named: bool,
}

/// Comms as numbers.
#[derive(Debug, Default)]
pub struct Comms {
    names: IndexVec<CommId, String>,
    by_name: FxHashMap<String, CommId>,
}

impl Comms {
    /// The number of a comm.
    pub fn intern(&mut self, name: &str) -> CommId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// All names, indexed by [`CommId`].
    #[must_use]
    pub fn into_names(self) -> IndexVec<CommId, String> {
        self.names
    }
}

/// All threads of the recording; the newest life of a tid answers.
#[derive(Debug, Default)]
pub struct Threads {
    lives: IndexVec<ThreadId, ThreadLife>,
    by_tid: FxHashMap<u32, ThreadId>,
    /// The pid of each process life.
    processes: IndexVec<ProcessId, u32>,
    /// Comms seen.
    pub comms: Comms,
}

/// What a FORK record means for the mappings of the child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fork {
    /// The parent's process.
    pub parent: ProcessId,
    /// The child's; equal to the parent's when only a thread was made.
    pub child: ProcessId,
}

impl Threads {
    /// The thread `tid` of process `pid`, made if it is new.
    pub fn find_or_make(&mut self, pid: u32, tid: u32) -> ThreadId {
        if let Some(&id) = self.by_tid.get(&tid) {
            if self.lives[id].pid == NO_ID && pid != NO_ID {
                self.learn_pid(id, pid);
            }
            return id;
        }
        let process = if pid == tid || pid == NO_ID {
            self.new_process(pid)
        } else {
            let leader = self.find_or_make(pid, pid);
            self.lives[leader].process
        };
        let comm = match tid {
            0 => self.comms.intern("swapper"),
            NO_ID => self.comms.intern(":-1"),
            _ => self.comms.intern(&format!(":{tid}")),
        };
        self.add(ThreadLife {
            pid,
            tid,
            comm,
            parent: None,
            process,
            start: None,
            end: None,
            comms: smallvec![(Timestamp::START, comm)],
            cgroups: Vec::new(),
            named: tid == 0,
        })
    }

    /// A COMM record.
    pub fn set_comm(&mut self, id: ThreadId, comm: &str, time: Timestamp) {
        let comm = self.comms.intern(comm);
        let life = &mut self.lives[id];
        life.comm = comm;
        match life.comms.last_mut() {
            // What a thread was called before its first record is a guess.
            Some(last) if !life.named || last.0 == time => *last = (last.0, comm),
            _ => life.comms.push((time, comm)),
        }
        life.named = true;
    }

    /// A NAMESPACES record.
    pub fn set_cgroup(&mut self, id: ThreadId, namespace: Namespace, time: Timestamp) {
        let cgroups = &mut self.lives[id].cgroups;
        if cgroups.last().is_none_or(|(_, last)| *last != namespace) {
            cgroups.push((time, namespace));
        }
    }

    /// An EXIT record.
    pub fn exit(&mut self, tid: u32, time: Timestamp) {
        if let Some(id) = self.by_tid.get(&tid) {
            self.lives[*id].end = Some(time);
        }
    }

    /// A FORK record: ends the tid's earlier life, begins a new one. A task that ran already when recording began
    /// has no start.
    pub fn fork(
        &mut self,
        (pid, tid): (u32, u32),
        (parent_pid, parent_tid): (u32, u32),
        start: Option<Timestamp>,
    ) -> Fork {
        let parent = self.find_or_make(parent_pid, parent_tid);
        let parent = self.lives[parent].clone();
        let same_process = parent.pid == pid;
        self.by_tid.remove(&tid);
        let process = if same_process {
            parent.process
        } else {
            self.process_of_new_thread(pid, tid)
        };
        let comm = if parent.named {
            parent.comm
        } else {
            self.comms.intern(&format!(":{tid}"))
        };
        self.add(ThreadLife {
            pid,
            tid,
            comm,
            parent: Some(parent.tid),
            process,
            start,
            end: None,
            comms: smallvec![(start.unwrap_or(Timestamp::START), comm)],
            cgroups: Vec::new(),
            named: parent.named,
        });
        Fork {
            parent: parent.process,
            child: process,
        }
    }

    /// The thread's life.
    #[must_use]
    pub fn get(&self, id: ThreadId) -> &ThreadLife {
        &self.lives[id]
    }

    /// All lives, indexed by [`ThreadId`].
    #[must_use]
    pub fn lives(&self) -> &IndexSlice<ThreadId, [ThreadLife]> {
        &self.lives
    }

    /// The pid of each process life, indexed by [`ProcessId`].
    #[must_use]
    pub fn processes(&self) -> &IndexSlice<ProcessId, [u32]> {
        &self.processes
    }

    fn process_of_new_thread(&mut self, pid: u32, tid: u32) -> ProcessId {
        if pid == tid {
            return self.new_process(pid);
        }
        let leader = self.find_or_make(pid, pid);
        self.lives[leader].process
    }

    fn learn_pid(&mut self, id: ThreadId, pid: u32) {
        let tid = self.lives[id].tid;
        if pid != tid {
            let leader = self.find_or_make(pid, pid);
            let process = self.lives[leader].process;
            self.lives[id].process = process;
        } else {
            let process = self.lives[id].process;
            self.processes[process] = pid;
        }
        self.lives[id].pid = pid;
    }

    fn new_process(&mut self, pid: u32) -> ProcessId {
        self.processes.push(pid)
    }

    fn add(&mut self, life: ThreadLife) -> ThreadId {
        let tid = life.tid;
        let id = self.lives.push(life);
        self.by_tid.insert(tid, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_takes_the_comm_of_a_named_parent_only() {
        let mut t = Threads::default();
        let parent = t.find_or_make(10, 10);
        let fork = t.fork((11, 11), (10, 10), None);
        assert_ne!(fork.parent, fork.child);
        let child = t.find_or_make(11, 11);
        let names = |t: &Threads, id: ThreadId| t.comms.names[t.get(id).comm].clone();
        assert_eq!(names(&t, child), ":11");
        t.set_comm(parent, "sh", Timestamp(5));
        t.fork((12, 12), (10, 10), None);
        let second = t.find_or_make(12, 12);
        assert_eq!(names(&t, second), "sh");
    }

    #[test]
    fn threads_share_the_process_of_their_leader_and_a_reused_tid_is_a_new_life() {
        let mut t = Threads::default();
        let worker = t.find_or_make(10, 11);
        let leader = t.find_or_make(10, 10);
        assert_eq!(t.get(worker).process, t.get(leader).process);
        let fork = t.fork((10, 12), (10, 10), None);
        assert_eq!(fork.parent, fork.child);
        t.fork((11, 11), (1, 1), None);
        let again = t.find_or_make(11, 11);
        assert_ne!(again, worker);
        assert_ne!(t.get(again).process, t.get(worker).process);
    }
}
