//! Where the complete stacks of each thread begin, and which stacks were cut.
//!
//! In: each walk's frames with their stack pointers. Out: [`Roots`], by which `crate::stitch` puts the thread's root under
//! stacks that are larger than what was copied of them. A few hundred bytes for each thread and each cut sample.

use rustc_hash::FxHashMap;

use crate::address::Avma;
use crate::ids::{IndexVec, ThreadId, numbers};
use crate::session::SampleId;
use crate::unwind::Activation;

use super::PcId;

numbers! {
    /// A worker's group of complete stacks with one root.
    pub struct GroupId(u32);
}

/// A frame and the stack pointer when its callee returns to it.
pub type Placed = (PcId, Avma);

/// What complete stacks share, and the stacks that are not complete; only collected for those who ask.
#[derive(Debug, Default)]
pub struct Roots {
    /// Each worker's are distinct.
    pub groups: IndexVec<GroupId, (RootKey, Group)>,
    /// Stacks that the copy was too short for.
    pub cuts: Vec<Cut>,
    index: FxHashMap<RootKey, GroupId>,
}

/// What the complete stacks of a group have in common: nobody else's stack begins there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RootKey {
    /// Whose stacks.
    pub owner: Owner,
    /// The outermost frame.
    pub root: Placed,
}

/// A thread as long as it runs one program: after exec, nothing of what was known holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// The thread.
    pub thread: ThreadId,
    /// Which of its programs.
    pub program: u32,
}

/// Complete stacks with one root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Ranks of the first and the last sample.
    pub first: SampleId,
    /// See `first`.
    pub last: SampleId,
    /// Number of samples.
    pub samples: u64,
    /// The frames that all of them share, outermost first.
    pub common: Vec<Placed>,
    /// Whether what called the root is on another stack.
    pub is_fiber: bool,
}

/// A sample whose stack is larger than the copy; it has a row of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Its place in time order.
    pub rank: SampleId,
    /// Whose stack.
    pub owner: Owner,
    /// The stack pointer of the outermost frame that was reached.
    pub sp: Avma,
    /// Where the stack's memory ends, if a mapping tells.
    pub stack_end: Option<Avma>,
}

/// Frames that are common are not looked for further inwards.
const MOST: usize = 32;

impl Roots {
    /// Notes a complete stack: its frames from the outermost one on.
    pub(super) fn complete<'f>(
        &mut self,
        rank: SampleId,
        owner: Owner,
        is_fiber: bool,
        frames: impl Iterator<Item = (PcId, Activation)> + 'f,
    ) {
        let mut placed = frames
            .take(MOST)
            .take_while(|(_, activation)| activation.is_exact)
            .map(|(pc, activation)| (pc, activation.sp))
            .peekable();
        let Some(&root) = placed.peek() else { return };
        let key = RootKey { owner, root };
        if let Some(&at) = self.index.get(&key) {
            let group = &mut self.groups[at].1;
            group.first = group.first.min(rank);
            group.last = group.last.max(rank);
            group.samples += 1;
            let same = placed.zip(&group.common).take_while(|(a, b)| a == *b);
            let same = same.count();
            group.common.truncate(same);
            return;
        }
        let group = Group {
            first: rank,
            last: rank,
            samples: 1,
            common: placed.collect(),
            is_fiber,
        };
        let new = self.groups.push((key, group));
        self.index.insert(key, new);
    }

    /// Takes another worker's, whose addresses have numbers that are by `pcs` larger here.
    pub(super) fn absorb(&mut self, other: Self, pcs: u32) {
        let moved = |(pc, sp): Placed| (PcId(pc.0 + pcs), sp);
        let groups = other.groups.into_iter().map(|(key, group)| {
            let root = moved(key.root);
            let common = group.common.into_iter().map(moved).collect();
            (RootKey { root, ..key }, Group { common, ..group })
        });
        self.groups.extend(groups);
        self.cuts.extend(other.cuts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(frames: &[(u32, u64)]) -> impl Iterator<Item = (PcId, Activation)> {
        let frames: Vec<_> = frames
            .iter()
            .map(|&(pc, sp)| (PcId(pc), exact(sp)))
            .collect();
        frames.into_iter()
    }

    fn exact(sp: u64) -> Activation {
        Activation {
            sp: Avma(sp),
            fp: None,
            is_exact: true,
        }
    }

    const OWNER: Owner = Owner {
        thread: ThreadId(3),
        program: 0,
    };

    #[test]
    fn what_all_stacks_share_gets_less_and_other_roots_are_apart() {
        let mut roots = Roots::default();
        roots.complete(
            SampleId(5),
            OWNER,
            false,
            frames(&[(1, 90), (2, 80), (3, 70), (4, 60)]),
        );
        roots.complete(
            SampleId(3),
            OWNER,
            false,
            frames(&[(1, 90), (2, 80), (3, 68)]),
        );
        roots.complete(SampleId(9), OWNER, false, frames(&[(1, 98), (2, 80)]));
        roots.complete(
            SampleId(7),
            OWNER,
            false,
            frames(&[(1, 90), (2, 80), (3, 70)]),
        );
        let (key, group) = &roots.groups[0];
        assert_eq!(key.root, (PcId(1), Avma(90)));
        assert_eq!((group.first.0, group.last.0, group.samples), (3, 7, 3));
        assert_eq!(group.common, [(PcId(1), Avma(90)), (PcId(2), Avma(80))]);
        assert_eq!(roots.groups.len(), 2);
    }

    #[test]
    fn frames_that_were_interrupted_are_no_evidence() {
        let mut roots = Roots::default();
        let interrupted = Activation {
            is_exact: false,
            ..exact(70)
        };
        let all = [
            (PcId(1), exact(90)),
            (PcId(2), interrupted),
            (PcId(3), exact(60)),
        ];
        roots.complete(SampleId(0), OWNER, false, all.into_iter());
        roots.complete(
            SampleId(1),
            OWNER,
            false,
            [(PcId(2), interrupted)].into_iter(),
        );
        assert_eq!(roots.groups.len(), 1);
        assert_eq!(roots.groups[0].1.common, [(PcId(1), Avma(90))]);
    }
}
