//! The samples of an event in order of time, and what each distinct stack has in it.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::functions::tally::Count;
use crate::functions::{FunctionId, Functions};
use crate::ids::{IndexVec, Part, index_vec};
use crate::profile::{
    CpuMode, EventId, EventSummary, Frame, FrameId, Portion, Profile, StackId, ThreadId, Wait,
};
use crate::run_state::RunState;
use crate::stack_end::StackEnd;

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
    /// Its functions in [`Timeline::in_paths`].
    functions: Part<FunctionId>,
    /// Whether own code is in it.
    is_own: bool,
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

impl Whole {
    /// Of a stack with this root. A cut stack tells neither what ran nor what was left by a wait.
    fn of(end: StackEnd, root: impl FnOnce() -> FunctionId) -> Self {
        if end.is_recorded() && !end.is_complete() {
            Self::IfUsual(root())
        } else if end.is_complete() || end == StackEnd::NotRecorded {
            // Without a stack there is nothing to be cut.
            Self::Yes
        } else {
            Self::No
        }
    }
}

/// Which stacks begin where their threads do.
#[derive(Debug)]
pub(super) struct Usual(FxHashMap<ThreadId, FunctionId>);

impl Usual {
    /// Of each thread the function in which most of the recorded stacks of an event begin.
    pub(super) fn of(profile: &Profile, functions: &Functions, event: EventId) -> Self {
        let mut counts: FxHashMap<(ThreadId, FunctionId), u64> = FxHashMap::default();
        for of in profile.portions().filter(|of| of.event == event) {
            if let Whole::IfUsual(root) = whole(profile, functions, &of) {
                *counts.entry((of.thread, root)).or_default() += of.samples;
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        // The last of a thread wins.
        counts.sort_unstable_by_key(|((thread, root), count)| (*thread, *count, *root));
        Self(counts.into_iter().map(|(key, _)| key).collect())
    }

    fn is_whole(&self, thread: ThreadId, stack: Whole) -> bool {
        match stack {
            Whole::Yes => true,
            Whole::No => false,
            Whole::IfUsual(root) => self.0.get(&thread) == Some(&root),
        }
    }

    /// Whether samples have whole stacks.
    pub(super) fn has(&self, profile: &Profile, functions: &Functions, of: &Portion) -> bool {
        self.is_whole(of.thread, whole(profile, functions, of))
    }
}

fn whole(profile: &Profile, functions: &Functions, of: &Portion) -> Whole {
    Whole::of(profile.stacks.end(of.stack), || {
        let frames = profile.frames_of(of.stack, &of.leaf);
        functions.of_frame(frames[frames.len() - 1])
    })
}

/// The samples of an event in order of time.
#[derive(Debug)]
pub(super) struct Timeline<'p> {
    pub(super) functions: &'p Functions,
    pub(super) moments: Vec<Moment>,
    /// Where threads went to sleep, in order of time, if stacks tell that.
    waits: Vec<Moment>,
    pub(super) paths: IndexVec<PathId, Path>,
    /// Functions of all paths, one behind the other.
    in_paths: Vec<FunctionId>,
    /// When threads were on no processor, if that is known.
    all_waits: &'p [Wait],
    /// Threads with own code, or all where none has.
    pub(super) threads: Vec<ThreadId>,
    pub(super) are_own: bool,
    is_looked_at: IndexVec<ThreadId, bool>,
    usual: Usual,
    /// Whether periods are nanoseconds.
    pub(super) is_clock: bool,
}

/// What is known of a thread, each in order of time.
#[derive(Debug)]
pub(super) struct OfThread<'t> {
    pub(super) thread: ThreadId,
    pub(super) moments: Cow<'t, [Moment]>,
    /// Where it went to sleep, if stacks tell that.
    pub(super) waits: Vec<Moment>,
    /// When it was on no processor, if that is known.
    pub(super) away: Vec<Wait>,
}

/// What may have long spells.
pub(super) struct Suspects {
    pub(super) functions: IndexVec<FunctionId, bool>,
    pub(super) threads: IndexVec<ThreadId, bool>,
}

impl Suspects {
    /// Everything, or nothing.
    pub(super) fn new(profile: &Profile, functions: &Functions, are_all: bool) -> Self {
        Self {
            functions: index_vec![are_all; functions.all.len()],
            threads: index_vec![are_all; profile.threads.len()],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.threads.contains(&true)
    }
}

/// Samples of a thread below which nothing is said of it.
pub(super) const FEWEST: usize = 50;

impl<'p> Timeline<'p> {
    pub(super) fn of(
        profile: &'p Profile,
        functions: &'p Functions,
        event: EventId,
    ) -> Option<Self> {
        let all = Suspects::new(profile, functions, true);
        Self::of_suspects(profile, functions, event, &all)
    }

    /// The same with some functions of some threads alone.
    pub(super) fn of_suspects(
        profile: &'p Profile,
        functions: &'p Functions,
        event: EventId,
        suspects: &Suspects,
    ) -> Option<Self> {
        let mut maker = Maker::new(profile, functions, &suspects.functions);
        let is_suspected = |of: &Portion| suspects.threads[of.thread];
        let moments = maker.moments(|of| of.event == event && is_suspected(of));
        if moments.is_empty() {
            return None;
        }
        let usual = Usual::of(profile, functions, event);
        let waits = maker.waits(event);
        let (mut own, mut all) = (none_of(profile), none_of(profile));
        for moment in &moments {
            own[moment.thread] |= maker.paths[moment.path].is_own;
            all[moment.thread] = true;
        }
        // Of the other threads one own stack says all that is asked.
        let mut others = profile.portions();
        let is_of_other = |of: &Portion| of.event == event && !is_suspected(of);
        let mut is_own = |of: &Portion| {
            let path = maker.path(of);
            maker.paths[path].is_own
        };
        let are_own = own.contains(&true) || others.any(|of| is_of_other(&of) && is_own(&of));
        let (paths, in_paths) = (maker.paths, maker.in_paths);
        let mut is_looked_at = if are_own {
            own
        } else {
            // What the idle task does is no phase.
            let threads = profile.threads.iter().zip(&mut all);
            threads.for_each(|(thread, is_there)| *is_there &= thread.tid != 0);
            all
        };
        let suspected = is_looked_at.iter_mut().zip(&suspects.threads);
        suspected.for_each(|(is_there, is_suspect)| *is_there &= is_suspect);
        let threads = is_looked_at.iter_enumerated();
        let threads = threads.filter(|(_, is_there)| **is_there);
        Some(Self {
            functions,
            moments,
            waits,
            paths,
            in_paths,
            all_waits: &profile.waits,
            threads: threads.map(|(thread, _)| thread).collect(),
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

    /// The functions of a path, each once, from the root inwards; of suspects those alone.
    pub(super) fn functions_of(&self, path: PathId) -> &[FunctionId] {
        self.paths[path].functions.of(&self.in_paths)
    }

    pub(super) fn knows_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// The samples of the threads that are looked at.
    pub(super) fn looked_at(&self) -> Cow<'_, [Moment]> {
        only(&self.moments, |moment| self.is_looked_at[moment.thread])
    }

    /// The same by thread, of those that have enough.
    pub(super) fn by_thread(&self) -> Vec<OfThread<'_>> {
        let of = |thread: ThreadId, moments| OfThread {
            thread,
            moments,
            waits: Vec::new(),
            away: Vec::new(),
        };
        let mut place_of = index_vec![None; self.is_looked_at.len()];
        let mut all: Vec<OfThread<'_>> = Vec::new();
        let first = self.moments.first().map(|moment| moment.thread);
        let is_first = |moment: &Moment| Some(moment.thread) == first;
        if let (Some(only), true) = (first, self.moments.iter().all(is_first)) {
            if self.is_looked_at[only] && self.moments.len() >= FEWEST {
                place_of[only] = Some(0);
                all.push(of(only, Cow::Borrowed(&self.moments)));
            }
        } else {
            let mut counts = index_vec![0_usize; self.is_looked_at.len()];
            for moment in &self.moments {
                counts[moment.thread] += usize::from(self.is_looked_at[moment.thread]);
            }
            let mut moments: Vec<(ThreadId, Vec<Moment>)> = Vec::new();
            for (thread, count) in counts.iter_enumerated() {
                if *count >= FEWEST {
                    place_of[thread] = Some(moments.len());
                    moments.push((thread, Vec::with_capacity(*count)));
                }
            }
            for moment in &self.moments {
                if let Some(at) = place_of[moment.thread] {
                    moments[at].1.push(*moment);
                }
            }
            let moments = moments.into_iter();
            all.extend(moments.map(|(thread, moments)| of(thread, Cow::Owned(moments))));
        }
        for wait in &self.waits {
            if let Some(at) = place_of[wait.thread] {
                all[at].waits.push(*wait);
            }
        }
        for wait in self.all_waits.iter().filter(|wait| !wait.is_bound) {
            if let Some(at) = place_of[wait.thread] {
                all[at].away.push(*wait);
            }
        }
        all.iter_mut()
            .for_each(|each| each.away.sort_by_key(|wait| wait.from));
        all
    }

    /// Those of a thread whose stacks begin where it does.
    pub(super) fn whole<'m>(&self, thread: ThreadId, moments: &'m [Moment]) -> Cow<'m, [Moment]> {
        let stack = |moment: &Moment| self.paths[moment.path].is_whole;
        only(moments, |moment| self.usual.is_whole(thread, stack(moment)))
    }
}

/// Those of some samples that are wanted, which are often all.
fn only(moments: &[Moment], is_wanted: impl Fn(&Moment) -> bool) -> Cow<'_, [Moment]> {
    let Some(other) = moments.iter().position(|moment| !is_wanted(moment)) else {
        return Cow::Borrowed(moments);
    };
    let mut wanted = Vec::with_capacity(moments.len());
    wanted.extend_from_slice(&moments[..other]);
    for moment in &moments[other + 1..] {
        if is_wanted(moment) {
            wanted.push(*moment);
        }
    }
    Cow::Owned(wanted)
}

fn none_of(profile: &Profile) -> IndexVec<ThreadId, bool> {
    index_vec![false; profile.threads.len()]
}

/// Counts samples by path: of a part of them only what is in it is looked at again.
pub(super) struct PathCounts {
    counts: IndexVec<PathId, u32>,
    met: Vec<PathId>,
}

impl PathCounts {
    /// Of these paths.
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        Self {
            counts: index_vec![0; timeline.paths.len()],
            met: Vec::new(),
        }
    }

    /// The paths of some samples, in no order, with how many these are of each.
    pub(super) fn of<'m>(
        &mut self,
        moments: impl IntoIterator<Item = &'m Moment>,
    ) -> impl Iterator<Item = (PathId, u32)> {
        for moment in moments {
            let count = &mut self.counts[moment.path];
            if *count == 0 {
                self.met.push(moment.path);
            }
            *count += 1;
        }
        let counts = &mut self.counts;
        self.met
            .drain(..)
            .map(|path| (path, std::mem::take(&mut counts[path])))
    }
}

/// Something of each function that was met. Samples are many: finding it takes no more than a look at its place.
pub(super) struct ByFunction<T> {
    place_of: IndexVec<FunctionId, u32>,
    all: Vec<(FunctionId, T)>,
}

impl<T> ByFunction<T> {
    /// Of none.
    pub(super) fn new(functions: &Functions) -> Self {
        Self {
            place_of: index_vec![u32::MAX; functions.all.len()],
            all: Vec::new(),
        }
    }

    pub(super) fn get(&mut self, function: FunctionId) -> Option<&mut T> {
        let known = self.all.get_mut(self.place_of[function] as usize)?;
        Some(&mut known.1)
    }

    pub(super) fn get_or_add(&mut self, function: FunctionId, new: impl FnOnce() -> T) -> &mut T {
        let place = &mut self.place_of[function];
        if *place == u32::MAX {
            *place = self.all.len() as u32;
            self.all.push((function, new()));
        }
        &mut self.all[*place as usize].1
    }

    /// Where it stands among those that were met.
    pub(super) fn place(&self, function: FunctionId) -> Option<u32> {
        let place = self.place_of[function];
        (place != u32::MAX).then_some(place)
    }

    pub(super) fn at(&mut self, place: u32) -> &mut T {
        &mut self.all[place as usize].1
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut().map(|(_, of)| of)
    }

    /// All of them in the order in which they were met, and then none.
    pub(super) fn take(&mut self) -> Vec<(FunctionId, T)> {
        let all = std::mem::take(&mut self.all);
        all.iter()
            .for_each(|(function, _)| self.place_of[*function] = u32::MAX);
        all
    }
}

impl ByFunction<usize> {
    /// Counts samples of paths.
    pub(super) fn count(
        &mut self,
        timeline: &Timeline<'_>,
        paths: impl Iterator<Item = (PathId, u32)>,
    ) {
        for (path, count) in paths {
            for function in timeline.functions_of(path) {
                *self.get_or_add(*function, || 0) += count as usize;
            }
        }
    }
}

/// What a frame is to a path: its function, if it says something, whether that is wanted or own, and whether an interrupt begins there. One word, for there are
/// millions of frames in the stacks of a recording.
#[derive(Clone, Copy)]
struct Seen(u32);

impl Seen {
    /// Code without a name, of which nothing can be said, and marks, which are no code.
    const NOTHING: u32 = u32::MAX >> 3;
    const WANTED: u32 = 1 << 29;
    const OWN: u32 = 1 << 30;
    const INTERRUPT: u32 = 1 << 31;

    fn new(function: Option<FunctionId>, flags: [(bool, u32); 3]) -> Self {
        let function = function.map_or(Self::NOTHING, |function| function.0 & Self::NOTHING);
        let flags = flags.into_iter().filter(|(has_it, _)| *has_it);
        Self(flags.fold(function, |word, (_, flag)| word | flag))
    }

    const fn function(self) -> Option<FunctionId> {
        match self.0 & Self::NOTHING {
            Self::NOTHING => None,
            function => Some(FunctionId(function)),
        }
    }

    const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

/// Makes paths of stacks.
struct Maker<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    paths: IndexVec<PathId, Path>,
    known: FxHashMap<(StackId, Option<FrameId>), PathId>,
    frames: IndexVec<FrameId, Seen>,
    /// By function: the last path that it was met in.
    met_in: IndexVec<FunctionId, PathId>,
    /// Functions of all paths.
    in_paths: Vec<FunctionId>,
}

/// No path: there are not so many.
const NO_PATH: PathId = PathId(u32::MAX);

impl<'p> Maker<'p> {
    fn new(
        profile: &'p Profile,
        functions: &'p Functions,
        is_wanted: &IndexVec<FunctionId, bool>,
    ) -> Self {
        let seen = profile.frames.iter_enumerated().map(|(id, frame)| {
            let function = frame.symbol.map(|_| functions.of_frame(id));
            let flags = [
                (function.is_some_and(|of| is_wanted[of]), Seen::WANTED),
                (function.is_some_and(|of| functions.is_own(of)), Seen::OWN),
                (is_interrupt(profile, frame), Seen::INTERRUPT),
            ];
            Seen::new(function, flags)
        });
        let mut frames: IndexVec<FrameId, Seen> = seen.collect();
        for mark in profile.marks.0.into_iter().flatten() {
            frames[mark] = Seen(Seen::NOTHING);
        }
        Self {
            profile,
            functions,
            paths: IndexVec::new(),
            known: FxHashMap::default(),
            frames,
            met_in: index_vec![NO_PATH; functions.all.len()],
            in_paths: Vec::new(),
        }
    }

    /// The samples of some portions in order of time.
    fn moments(&mut self, mut is_wanted: impl FnMut(&Portion) -> bool) -> Vec<Moment> {
        let profile = self.profile;
        let places = profile.portions();
        let places = places.map(|of| is_wanted(&of).then(|| (of.thread, self.path(&of))));
        let places: Vec<Option<(ThreadId, PathId)>> = places.collect();
        let mut moments: Vec<Moment> = Vec::with_capacity(profile.times.len());
        profile.moments().for_each(|of| {
            if let Some((thread, path)) = places[of.portion] {
                moments.push(Moment {
                    time: of.time,
                    period: of.period,
                    thread,
                    path,
                });
            }
        });
        moments.sort_by_key(|moment| moment.time);
        moments
    }

    fn path(&mut self, entry: &Portion) -> PathId {
        let stored = self.profile.stacks.get(entry.stack);
        let key = (entry.stack, stored.is_empty().then_some(entry.leaf));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let frames = self.profile.frames_of(entry.stack, &entry.leaf);
        let root = self.functions.of_frame(frames[frames.len() - 1]);
        let path = self.paths.next_idx();
        let first = self.in_paths.len();
        // All flags of what was met, and how much of the stack that is.
        let (mut met, mut length) = (Seen(0), frames.len());
        let is_named = |frame: &FrameId| self.frames[*frame].function().is_some();
        for (depth, frame) in frames.iter().rev().enumerate() {
            let seen = self.frames[*frame];
            // Of most frames nothing is asked, and there are a hundred in a stack.
            if seen.has(Seen::WANTED | Seen::INTERRUPT) {
                let outwards = &frames[frames.len() - depth..];
                if seen.has(Seen::INTERRUPT) && outwards.iter().any(is_named) {
                    length = depth;
                    break;
                }
                if let Some(function) = seen.function().filter(|_| seen.has(Seen::WANTED))
                    && std::mem::replace(&mut self.met_in[function], path) != path
                {
                    self.in_paths.push(function);
                }
            }
            met = Seen(met.0 | seen.0);
        }
        let mut inwards = frames[frames.len() - length..].iter();
        let leaf = inwards.find_map(|frame| self.frames[*frame].function());
        self.paths.push(Path {
            functions: Part::new(first..self.in_paths.len()),
            leaf: leaf.unwrap_or(root),
            is_own: met.has(Seen::OWN),
            is_whole: Whole::of(self.profile.stacks.end(entry.stack), || root),
        });
        self.known.insert(key, path);
        path
    }

    /// Where threads went to sleep: samples of switches with stacks at the time of a wait. Who was made to stop did not wait.
    fn waits(&mut self, event: EventId) -> Vec<Moment> {
        let asleep = self
            .profile
            .waits
            .iter()
            .filter(|wait| !wait.is_bound)
            .filter(|wait| matches!(wait.state, RunState::Blocked | RunState::BlockedIo));
        let asleep: FxHashSet<(ThreadId, u64)> =
            asleep.map(|wait| (wait.thread, wait.from)).collect();
        if asleep.is_empty() {
            return Vec::new();
        }
        let stacks = &self.profile.stacks;
        let mut waits = self.moments(|of| of.event != event && !stacks.get(of.stack).is_empty());
        waits.retain(|of| asleep.contains(&(of.thread, of.time)));
        waits
    }
}

/// Whether the kernel was entered here by no wish of the program.
fn is_interrupt(profile: &Profile, frame: &Frame) -> bool {
    const FRONTS: [&str; 6] = [
        "asm_sysvec_",
        "sysvec_",
        "asm_common_interrupt",
        "common_interrupt",
        "irqentry_",
        "asm_exc_nmi",
    ];
    let Some(symbol) = frame.symbol.filter(|_| frame.mode == CpuMode::Kernel) else {
        return false;
    };
    let name = profile[symbol].name.as_str();
    FRONTS.iter().any(|front| name.starts_with(front))
}
