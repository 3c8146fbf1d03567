//! Threads and comms over time, by perf's rules (`util/machine.c`, `util/thread.c`): a comm holds from its record on, a
//! fork takes the parent's comm of that moment.
//!
//! A tid alone does not tell a thread: numbers are used again, and the records that end one life and begin the next may be
//! lost. So a record that names another process than the one known begins a new life, in that process.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::address::Timestamp;
use crate::ids::{CommId, IndexSlice, IndexVec, ThreadId};
use crate::jit::ProcessId;

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

impl ThreadLife {
    /// Whether it is what processors run when there is nothing to do.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.pid == 0 && self.tid == 0
    }
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

/// All threads of the recording; the newest life of a tid answers, if it is of the process that is asked for.
#[derive(Debug, Default)]
pub struct Threads {
    lives: IndexVec<ThreadId, ThreadLife>,
    by_tid: FxHashMap<u32, ThreadId>,
    /// By pid: tasks on their way out, which have lost their tid (the kernel writes -1) and not their process.
    without_tid: FxHashMap<u32, ThreadId>,
    /// The pid of each process life.
    processes: IndexVec<ProcessId, u32>,
    /// Whether the number of a process' leader went to another process: its threads are gone then, too.
    replaced: IndexVec<ProcessId, bool>,
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
        match self.find(pid, tid) {
            Some(id) => id,
            None => self.make(pid, tid),
        }
    }

    /// The thread `tid` of process `pid`, if it is known.
    #[inline]
    fn find(&mut self, pid: u32, tid: u32) -> Option<ThreadId> {
        let known = if tid == NO_ID {
            self.without_tid.get(&pid)
        } else {
            self.by_tid.get(&tid)
        };
        let id = *known?;
        let life = &self.lives[id];
        if life.pid == pid {
            return (!self.replaced[life.process]).then_some(id);
        }
        if life.pid == NO_ID {
            self.learn_pid(id, pid);
            return Some(id);
        }
        (pid == NO_ID).then_some(id)
    }

    fn make(&mut self, pid: u32, tid: u32) -> ThreadId {
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

    /// An EXIT record. One of an earlier life, whose place another has taken, ends nothing.
    pub fn exit(&mut self, (pid, tid): (u32, u32), time: Timestamp) {
        if let Some(id) = self.find(pid, tid) {
            self.lives[id].end = Some(time);
        }
    }

    /// A FORK record: ends the tid's earlier life, begins a new one. A task that ran already when recording began
    /// has no start. The record itself says whether a thread was made or a process; what is known of the parent may be of
    /// an earlier life.
    pub fn fork(
        &mut self,
        (pid, tid): (u32, u32),
        (parent_pid, parent_tid): (u32, u32),
        start: Option<Timestamp>,
    ) -> Fork {
        let parent = self.find_or_make(parent_pid, parent_tid);
        let parent = self.lives[parent].clone();
        let (process, from) = if parent_pid == pid {
            (parent.process, parent.process)
        } else if pid == tid {
            (self.new_process(pid), parent.process)
        } else {
            // A thread of a process that another one made: nothing that the kernel does.
            let leader = self.find_or_make(pid, pid);
            let process = self.lives[leader].process;
            (process, process)
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
            parent: from,
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

    /// When each process ended of which all threads did that are known, its leader too.
    #[must_use]
    pub fn ended(&self) -> FxHashMap<ProcessId, Timestamp> {
        let mut ended: FxHashMap<ProcessId, Option<Timestamp>> = FxHashMap::default();
        for life in &self.lives {
            let end = ended.entry(life.process).or_insert(life.end);
            *end = end.zip(life.end).map(|(one, other)| one.max(other));
        }
        let ended = ended.into_iter();
        ended
            .filter_map(|(process, end)| Some((process, end?)))
            .collect()
    }

    /// The pid of each process life, indexed by [`ProcessId`].
    #[must_use]
    pub fn processes(&self) -> &IndexSlice<ProcessId, [u32]> {
        &self.processes
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
        self.replaced.push(false);
        self.processes.push(pid)
    }

    fn add(&mut self, life: ThreadLife) -> ThreadId {
        let (pid, tid, process) = (life.pid, life.tid, life.process);
        let id = self.lives.push(life);
        if tid == NO_ID {
            self.without_tid.insert(pid, id);
        } else if let Some(old) = self.by_tid.insert(tid, id) {
            let old = &self.lives[old];
            // The kernel gives a number away again only when no thread of the process that had it is left.
            if old.pid == tid && old.process != process {
                self.replaced[old.process] = true;
            }
        }
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

    #[test]
    fn a_record_that_names_another_process_begins_a_life_in_it() {
        let mut t = Threads::default();
        let leader = t.find_or_make(100, 100);
        t.fork((105, 105), (1, 1), None);
        let old = t.find_or_make(105, 105);
        t.set_comm(old, "old", Timestamp(4));
        // The end of 105 and its next life's beginning, as a thread of 100, are lost.
        let thread = t.find_or_make(100, 105);
        assert_ne!(thread, old);
        assert_eq!(t.get(thread).process, t.get(leader).process);
        assert_eq!(t.comms.names[t.get(thread).comm], ":105");
        // The end of the earlier life, told late.
        t.exit((105, 105), Timestamp(5));
        assert_eq!(t.get(thread).end, None);
        // It makes a thread, not a process.
        let fork = t.fork((100, 106), (100, 105), None);
        assert_eq!(fork.parent, fork.child);
        let made = t.find_or_make(100, 106);
        assert_eq!(t.get(made).process, t.get(leader).process);
        assert_eq!(t.comms.names[t.get(made).comm], ":106");
        // The process is asked by a number that the recording does not have everywhere.
        assert_eq!(t.find_or_make(NO_ID, 106), made);
    }

    #[test]
    fn threads_do_not_outlive_the_number_of_their_process() {
        let mut t = Threads::default();
        let worker = t.find_or_make(10, 11);
        t.fork((10, 10), (1, 1), None);
        let again = t.find_or_make(10, 11);
        assert_ne!(again, worker);
        let leader = t.find_or_make(10, 10);
        assert_eq!(t.get(again).process, t.get(leader).process);
    }

    #[test]
    fn tasks_without_a_tid_are_told_apart_by_their_process() {
        let mut t = Threads::default();
        let [one, two] = [100, 200].map(|pid| t.find_or_make(pid, NO_ID));
        assert_ne!(one, two);
        assert_eq!((t.get(one).pid, t.get(two).pid), (100, 200));
        let leader = t.find_or_make(200, 200);
        assert_eq!(t.get(two).process, t.get(leader).process);
        assert_eq!(t.find_or_make(100, NO_ID), one);
        t.fork((100, 100), (1, 1), None);
        assert_ne!(t.find_or_make(100, NO_ID), one, "of an earlier life");
    }
}
