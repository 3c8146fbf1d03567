//! The samples of an event in order of time, and what each distinct stack has in it.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids::{IndexVec, index_vec};
use crate::profile::{
    CpuMode, EventId, EventSummary, FrameId, Portion, Profile, StackId, ThreadId, Wait,
};
use crate::questions::functions::{FunctionId, Functions};
use crate::questions::tally::Count;
use crate::run_state::RunState;

crate::ids::numbers! {
    /// A distinct stack.
    pub(super) struct PathId(u32);
}

/// A sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) period: u64,
    pub(super) thread: ThreadId,
    pub(super) path: PathId,
}

/// What a stack has in it, without what an interrupt put on top of it.
#[derive(Debug)]
pub(super) struct Path {
    /// Its functions, each once, from the root inwards.
    pub(super) functions: Box<[FunctionId]>,
    /// The innermost one.
    pub(super) leaf: FunctionId,
    /// Whether it is known to begin where its thread does.
    is_whole: Whole,
}

/// Whether a stack begins where its thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
    /// Recorded as it is: if its root is the usual one of its thread.
    IfUsual(FunctionId),
}

/// The samples of an event in order of time.
#[derive(Debug)]
pub(super) struct Timeline<'p> {
    pub(super) functions: &'p Functions,
    pub(super) moments: Vec<Moment>,
    /// Where threads went to sleep, in order of time, if stacks tell that.
    waits: Vec<Moment>,
    pub(super) paths: IndexVec<PathId, Path>,
    /// When threads were on no processor, if that is known.
    all_waits: &'p [Wait],
    /// Threads with own code, or all where none has.
    pub(super) threads: Vec<ThreadId>,
    pub(super) are_own: bool,
    is_looked_at: IndexVec<ThreadId, bool>,
    /// By thread: where most of its recorded stacks begin.
    usual: FxHashMap<ThreadId, FunctionId>,
    /// Whether periods are nanoseconds.
    pub(super) is_clock: bool,
}

/// What is known of a thread, each in order of time.
#[derive(Debug)]
pub(super) struct OfThread {
    pub(super) thread: ThreadId,
    pub(super) moments: Vec<Moment>,
    /// Where it went to sleep, if stacks tell that.
    pub(super) waits: Vec<Moment>,
    /// When it was on no processor, if that is known.
    pub(super) away: Vec<Wait>,
}

/// Samples of a thread below which nothing is said of it.
pub(super) const FEWEST: usize = 50;

impl<'p> Timeline<'p> {
    pub(super) fn of(
        profile: &'p Profile,
        functions: &'p Functions,
        event: EventId,
    ) -> Option<Self> {
        let mut maker = Maker::new(profile, functions);
        let mut moments: Vec<Moment> = Vec::new();
        for portion in profile.portions().filter(|of| of.event == event) {
            moments.extend(maker.moment(&portion));
        }
        moments.sort_by_key(|moment| moment.time);
        if moments.is_empty() {
            return None;
        }
        let waits = maker.waits(event);
        let mut own: FxHashSet<ThreadId> = FxHashSet::default();
        for moment in &moments {
            let path = &maker.paths[moment.path];
            if !own.contains(&moment.thread)
                && path.functions.iter().any(|of| functions.is_own(*of))
            {
                own.insert(moment.thread);
            }
        }
        let are_own = !own.is_empty();
        let mut threads: Vec<ThreadId> = if are_own {
            own.into_iter().collect()
        } else {
            // What the idle task does is no phase.
            let all: FxHashSet<ThreadId> = moments.iter().map(|moment| moment.thread).collect();
            let all = all.into_iter().filter(|id| profile[*id].tid != 0);
            all.collect()
        };
        threads.sort_unstable();
        let mut is_looked_at = index_vec![false; profile.threads.len()];
        threads
            .iter()
            .for_each(|thread| is_looked_at[*thread] = true);
        let usual = usual(&moments, &maker.paths);
        Some(Self {
            functions,
            moments,
            waits,
            paths: maker.paths,
            all_waits: &profile.waits,
            threads,
            are_own,
            is_looked_at,
            usual,
            is_clock: profile
                .events
                .get(event)
                .is_some_and(EventSummary::is_cpu_time),
        })
    }

    /// Times of the first and the last sample.
    pub(super) fn range(&self) -> (u64, u64) {
        let first = self.moments.first().map_or(0, |moment| moment.time);
        (
            first,
            self.moments.last().map_or(first, |moment| moment.time),
        )
    }

    pub(super) fn total(&self) -> Count {
        let mut total = Count::default();
        for moment in &self.moments {
            total.add(Count {
                period: moment.period,
                samples: 1,
            });
        }
        total
    }

    pub(super) fn knows_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// The samples of the threads that are looked at.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = &Moment> {
        self.moments
            .iter()
            .filter(|moment| self.is_looked_at[moment.thread])
    }

    /// The same by thread, of those that have enough.
    pub(super) fn by_thread(&self) -> Vec<OfThread> {
        let mut of: BTreeMap<ThreadId, OfThread> = BTreeMap::new();
        for moment in self.looked_at() {
            let of = of.entry(moment.thread).or_insert_with(|| OfThread {
                thread: moment.thread,
                moments: Vec::new(),
                waits: Vec::new(),
                away: Vec::new(),
            });
            of.moments.push(*moment);
        }
        of.retain(|_, of| of.moments.len() >= FEWEST);
        for wait in &self.waits {
            if let Some(of) = of.get_mut(&wait.thread) {
                of.waits.push(*wait);
            }
        }
        for wait in self.all_waits {
            if let Some(of) = of.get_mut(&wait.thread) {
                of.away.push(*wait);
            }
        }
        let mut of: Vec<OfThread> = of.into_values().collect();
        of.iter_mut()
            .for_each(|of| of.away.sort_by_key(|wait| wait.from));
        of
    }

    /// Whether a stack begins where its thread does.
    pub(super) fn is_whole(&self, moment: &Moment) -> bool {
        match self.paths[moment.path].is_whole {
            Whole::Yes => true,
            Whole::No => false,
            Whole::IfUsual(root) => self.usual.get(&moment.thread) == Some(&root),
        }
    }
}

/// By thread: where most of its recorded stacks begin.
fn usual(moments: &[Moment], paths: &IndexVec<PathId, Path>) -> FxHashMap<ThreadId, FunctionId> {
    let mut counts: FxHashMap<(ThreadId, FunctionId), u64> = FxHashMap::default();
    for moment in moments {
        if let Whole::IfUsual(root) = paths[moment.path].is_whole {
            *counts.entry((moment.thread, root)).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    // The last of a thread wins.
    counts.sort_unstable_by_key(|((thread, root), count)| (*thread, *count, *root));
    counts.into_iter().map(|(key, _)| key).collect()
}

/// Makes paths of stacks.
struct Maker<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    paths: IndexVec<PathId, Path>,
    known: FxHashMap<(StackId, Option<FrameId>), PathId>,
    marks: FxHashSet<FrameId>,
}

impl<'p> Maker<'p> {
    fn new(profile: &'p Profile, functions: &'p Functions) -> Self {
        Self {
            profile,
            functions,
            paths: IndexVec::new(),
            known: FxHashMap::default(),
            marks: profile.marks.0.iter().flatten().copied().collect(),
        }
    }

    fn moment(&mut self, of: &Portion) -> Option<Moment> {
        (of.time > 0).then(|| Moment {
            time: of.time,
            period: of.period,
            thread: of.thread,
            path: self.path(of),
        })
    }

    fn path(&mut self, entry: &Portion) -> PathId {
        let frames = self.profile.stacks.get(entry.stack);
        let key = (entry.stack, frames.is_empty().then_some(entry.leaf));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let frames = if frames.is_empty() {
            std::slice::from_ref(&entry.leaf)
        } else {
            frames
        };
        let end = self.profile.stacks.end(entry.stack);
        let root = self.functions.of_frame(frames[frames.len() - 1]);
        let mut functions: Vec<FunctionId> = Vec::new();
        let mut leaf = root;
        for frame in frames.iter().rev() {
            if !functions.is_empty() && self.is_interrupt(*frame) {
                break;
            }
            // Of code without a name nothing can be said, and a mark is no code.
            let is_mark = self.marks.contains(frame);
            if self.profile[*frame].symbol.is_none() || is_mark {
                continue;
            }
            leaf = self.functions.of_frame(*frame);
            if !functions.contains(&leaf) {
                functions.push(leaf);
            }
        }
        let is_whole = if end.is_complete() {
            Whole::Yes
        } else if end.is_recorded() {
            Whole::IfUsual(root)
        } else if end == crate::stack_end::StackEnd::NotRecorded {
            // There is nothing to be cut.
            Whole::Yes
        } else {
            Whole::No
        };
        let path = self.paths.push(Path {
            functions: functions.into(),
            leaf,
            is_whole,
        });
        self.known.insert(key, path);
        path
    }

    /// Whether the kernel was entered here by no wish of the program.
    fn is_interrupt(&self, frame: FrameId) -> bool {
        const FRONTS: [&str; 6] = [
            "asm_sysvec_",
            "sysvec_",
            "asm_common_interrupt",
            "common_interrupt",
            "irqentry_",
            "asm_exc_nmi",
        ];
        let frame = &self.profile[frame];
        let name = frame
            .symbol
            .map(|symbol| self.profile[symbol].name.as_str());
        frame.mode == CpuMode::Kernel
            && name.is_some_and(|name| FRONTS.iter().any(|front| name.starts_with(front)))
    }

    /// Where threads went to sleep: samples of switches with stacks at the time of a wait. Who was made to stop did not wait.
    fn waits(&mut self, event: EventId) -> Vec<Moment> {
        let asleep = self
            .profile
            .waits
            .iter()
            .filter(|wait| matches!(wait.state, RunState::Blocked | RunState::BlockedIo));
        let asleep: FxHashSet<(ThreadId, u64)> =
            asleep.map(|wait| (wait.thread, wait.from)).collect();
        if asleep.is_empty() {
            return Vec::new();
        }
        let mut waits = Vec::new();
        for of in self.profile.portions().filter(|of| of.event != event) {
            let is_wait = asleep.contains(&(of.thread, of.time));
            if !is_wait || self.profile.stacks.get(of.stack).is_empty() {
                continue;
            }
            waits.extend(self.moment(&Portion { period: 0, ..of }));
        }
        waits.sort_by_key(|wait| wait.time);
        waits
    }
}
