//! How much of their stacks samples would have needed.
//!
//! In: of each walk, where it began, where it ended and how much was copied. Out: the size of dump that would have
//! sufficed, as far as the recording tells. A stack that was copied too short ends unknown, but other samples of the
//! same thread that are complete have shown where its stack begins. Second best is where its memory ends: behind
//! every copy that the kernel could not make as long as it was asked to, and where a recorded mapping does.

use std::collections::BTreeSet;

use crate::address::Avma;
use crate::ids::ThreadId;

/// The largest dump that perf records (`tools/perf/util/callchain.c`: what fits a 16-bit size, in words).
pub const LARGEST_DUMP: u64 = 65_528;
/// A stack that begins further away belongs to something else; threads have 8 MB as a rule.
const FAR: u64 = 8 << 20;
/// The outermost frame may look at two words above its stack pointer.
const ABOVE: u64 = 16;

/// What samples say about the depth of stacks; only collected for those who ask.
#[derive(Debug, Default)]
pub struct Depths {
    /// Where complete stacks of a thread began: the outermost frame's stack pointer.
    roots: BTreeSet<(ThreadId, Avma)>,
    /// Where the memory of a thread's stack ended.
    ends: BTreeSet<(ThreadId, Avma)>,
    short: Vec<Short>,
}

#[derive(Clone, Copy, Debug)]
struct Short {
    thread: ThreadId,
    sp: Avma,
    copied: u64,
}

/// One walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    /// Whose stack.
    pub(super) thread: ThreadId,
    /// Stack pointers of the leaf and of the outermost frame.
    pub(super) span: (Avma, Avma),
    /// Bytes of the copy.
    pub(super) copied: u64,
    /// Where the stack's memory ends, if that is known.
    pub(super) memory_end: Option<Avma>,
    /// What the walk's end says.
    pub(super) reach: Reach,
}

/// What the end of a walk says about the stack's depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// The outermost frame was reached.
    Root,
    /// The copy was too short.
    Short,
    /// Nothing.
    Unknown,
}

/// How large dumps would have had to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DumpSizes {
    /// Samples whose stack is larger than what was copied of it.
    pub short: u64,
    /// Those of them of which it is known how large.
    pub known: u64,
    /// Those of these that need more than [`LARGEST_DUMP`].
    pub beyond: u64,
    /// Bytes that the largest of the others needs.
    pub needed: u64,
    /// Bytes of the largest copy that was too short.
    pub copied: u64,
}

impl Depths {
    pub(super) fn add(&mut self, walked: &Walked) {
        let (sp, last) = walked.span;
        let end = Avma(sp.0.saturating_add(walked.copied));
        self.ends.extend(
            walked
                .memory_end
                .map(|memory_end| (walked.thread, memory_end)),
        );
        match walked.reach {
            // A stack that was left on the way (a signal's) says nothing about this one.
            Reach::Root if sp <= last && last <= end => {
                self.roots.insert((walked.thread, last));
            }
            Reach::Short => self.short.push(Short {
                thread: walked.thread,
                sp,
                copied: walked.copied,
            }),
            _ => {}
        }
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.roots.extend(other.roots);
        self.ends.extend(other.ends);
        self.short.extend(other.short);
    }

    /// What would have sufficed.
    #[must_use]
    pub fn sizes(&self) -> DumpSizes {
        let mut sizes = DumpSizes {
            short: self.short.len() as u64,
            ..DumpSizes::default()
        };
        for short in &self.short {
            sizes.copied = sizes.copied.max(short.copied);
            if let Some(needed) = self.needed(short) {
                sizes.known += 1;
                if needed > LARGEST_DUMP {
                    sizes.beyond += 1;
                } else {
                    sizes.needed = sizes.needed.max(needed);
                }
            }
        }
        sizes
    }

    fn needed(&self, short: &Short) -> Option<u64> {
        let copied_to = short.sp.0.saturating_add(short.copied);
        let far = copied_to.saturating_add(FAR);
        let next = |set: &BTreeSet<(ThreadId, Avma)>| {
            let from = (short.thread, Avma(copied_to));
            let to = (short.thread, Avma(far));
            set.range(from..=to).next().map(|&(_, at)| at)
        };
        if let Some(root) = next(&self.roots) {
            return Some(root.plus(ABOVE).since(short.sp));
        }
        // Other things may lie between the stack and the end of the memory: it needs no more than that.
        let most = next(&self.ends)?.since(short.sp);
        (most <= LARGEST_DUMP).then_some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(thread: u32, sp: u64, last: u64, copied: u64, reach: Reach) -> Walked {
        Walked {
            thread: ThreadId(thread),
            span: (Avma(sp), Avma(last)),
            copied,
            memory_end: None,
            reach,
        }
    }

    #[test]
    fn complete_stacks_of_the_thread_tell_where_others_end() {
        let mut depths = Depths::default();
        depths.add(&walked(1, 0x9000, 0x9800, 0x1000, Reach::Root));
        depths.add(&walked(1, 0x7000, 0x7100, 0x1000, Reach::Short));
        depths.add(&walked(1, 0x8000, 0x8100, 0x1000, Reach::Short));
        // Of another thread nothing is known.
        depths.add(&walked(2, 0x8000, 0x8100, 0x1000, Reach::Short));
        // Below its own copy a root cannot be what is missing.
        depths.add(&walked(3, 0x5000, 0x5100, 0x1000, Reach::Root));
        depths.add(&walked(3, 0x5000, 0x5100, 0x1000, Reach::Short));
        let expected = DumpSizes {
            short: 4,
            known: 2,
            beyond: 0,
            needed: 0x2810,
            copied: 0x1000,
        };
        assert_eq!(depths.sizes(), expected);
    }

    #[test]
    fn the_end_of_the_memory_is_the_second_best() {
        let mut depths = Depths::default();
        depths.add(&Walked {
            memory_end: Some(Avma(0x9f00)),
            ..walked(1, 0x9000, 0x9100, 0xf00, Reach::Unknown)
        });
        depths.add(&walked(1, 0x8000, 0x8100, 0x1000, Reach::Short));
        assert_eq!(depths.sizes().needed, 0x1f00);
        depths.add(&walked(1, 0x9000, 0x9400, 0xf00, Reach::Root));
        assert_eq!(depths.sizes().needed, 0x1410);
    }

    #[test]
    fn memory_that_reaches_far_tells_nothing() {
        let mut depths = Depths::default();
        depths.add(&Walked {
            memory_end: Some(Avma(0x80_0000)),
            ..walked(1, 0x8000, 0x8100, 0x1000, Reach::Short)
        });
        assert_eq!((depths.sizes().known, depths.sizes().beyond), (0, 0));
        depths.add(&walked(1, 0x4f_0000, 0x4f_0800, 0x1000, Reach::Root));
        assert_eq!((depths.sizes().known, depths.sizes().beyond), (1, 1));
    }

    #[test]
    fn impossible_addresses_do_no_harm() {
        let mut depths = Depths::default();
        for (sp, last) in [(u64::MAX, 0), (0, u64::MAX), (u64::MAX - 8, u64::MAX)] {
            for end in [Reach::Root, Reach::Short, Reach::Unknown] {
                depths.add(&walked(1, sp, last, u64::MAX, end));
            }
        }
        let _ = depths.sizes();
    }
}
