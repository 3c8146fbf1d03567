//! Ids of frames and stacks in the order of the rows.
//!
//! Stacks that stand for the same frames are found before, in parallel. Then one serial pass touches little but numbers; what they
//! stand for is filled in behind it ([`super::fill`]).

use super::places::{FramesOfPcs, PlaceId};
use super::{FrameId, Profile, StackEnd, StackId};
use crate::collect::{AddressStackId, AddressStacks, Collected, PcId};
use crate::ids::{Idx, IndexVec, Part, numbers};
use crate::intern::ItemIndex;
use crate::parallel::in_parallel;

/// By stack of addresses: one that stands for the same frames and ended for the same reason. And how many frames all that
/// differ have.
pub(super) fn equal_stacks(
    stacks: &AddressStacks,
    places: &FramesOfPcs,
    threads: usize,
) -> (IndexVec<AddressStackId, AddressStackId>, usize) {
    const PIECE: usize = 1024;
    let all: IndexVec<AddressStackId, AddressStackId> = stacks.ids().collect();
    let frames_of = |stack: AddressStackId| {
        let addresses = stacks.get(stack).iter();
        addresses.flat_map(|pc| places.chain(*pc)).copied()
    };
    let length = |stack: AddressStackId| -> usize {
        let addresses = stacks.get(stack).iter();
        addresses.map(|pc| places.chain(*pc).len()).sum()
    };
    let hasher = StackHasher::of(places);
    let hash = |stack: &AddressStackId| hasher.hash(stacks.get(*stack), stacks.tag(*stack));
    let hashes = in_parallel(all.raw.chunks(PIECE).collect(), threads, |piece| {
        piece.iter().map(hash).collect::<Vec<_>>()
    });
    let hashes: IndexVec<AddressStackId, u64> = hashes.into_iter().flatten().collect();
    let same_frames = |a: AddressStackId, b: AddressStackId| {
        let (one, other) = (stacks.get(a), stacks.get(b));
        let is = |(left, right): (&PcId, &PcId)| {
            left == right || places.chain(*left) == places.chain(*right)
        };
        // Nearly always address by address; only inlined functions may be shared out in another way.
        one.len() == other.len() && one.iter().zip(other).all(is) || frames_of(a).eq(frames_of(b))
    };
    let is = |a: AddressStackId, b: AddressStackId| {
        hashes[a] == hashes[b] && stacks.tag(a) == stacks.tag(b) && same_frames(a, b)
    };
    // Each thread compares those that its part of the hashes has.
    let parts = threads.clamp(1, 64) as u64;
    let found = in_parallel((0..parts).collect(), threads, |part| {
        let own = |stack: &AddressStackId| (hashes[*stack] >> 32) % parts == part;
        let mut known = ItemIndex::with_capacity(stacks.len() / parts as usize);
        let (mut found, mut frames_of_new) = (Vec::new(), 0);
        for stack in all.iter().copied().filter(own) {
            let hash_of = |each: AddressStackId| hashes[each];
            match known.find_or_add(hash_of(stack), stack, |at| is(at, stack), hash_of) {
                Some(same) => found.push((stack, same)),
                // And what may be put below them.
                None => frames_of_new += length(stack) + 1,
            }
        }
        (found, frames_of_new)
    });
    let frames = found.iter().map(|(_, frames)| frames).sum();
    let mut same_stack = all;
    for (stack, same) in found.into_iter().flat_map(|(found, _)| found) {
        same_stack[stack] = same;
    }
    (same_stack, frames)
}

/// Hashes stacks of addresses by the frames that they stand for, with one step for each address and not for each frame.
///
/// The hash of frames is a polynomial of their numbers, so the frames of one address always do the same to it: they
/// multiply it by [`FACTOR`](Self::FACTOR) for each of them, and add something that is worked out once.
struct StackHasher {
    steps: IndexVec<PcId, Step>,
}

/// What the frames of an address do to a hash.
#[derive(Clone, Copy)]
struct Step {
    multiplied_by: u64,
    added: u64,
}

impl StackHasher {
    /// Odd, with bits all over.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn of(places: &FramesOfPcs) -> Self {
        let start = Step {
            multiplied_by: 1,
            added: 0,
        };
        let add = |step: Step, place: &PlaceId| Step {
            multiplied_by: step.multiplied_by.wrapping_mul(Self::FACTOR),
            added: Self::with(step.added, place.index() as u64),
        };
        let of_pc = |pc: PcId| places.chain(pc).iter().fold(start, add);
        Self {
            steps: places.addresses().map(of_pc).collect(),
        }
    }

    const fn with(hash: u64, number: u64) -> u64 {
        hash.wrapping_add(number).wrapping_mul(Self::FACTOR)
    }

    fn hash(&self, stack: &[PcId], end: StackEnd) -> u64 {
        let add = |hash: u64, pc: &PcId| {
            let step = self.steps[*pc];
            hash.wrapping_mul(step.multiplied_by)
                .wrapping_add(step.added)
        };
        // The good bits are the high ones, and all are asked for.
        Self::with(stack.iter().fold(1, add), end as u64).rotate_left(26)
    }
}

numbers! {
    /// A frame that is no function: index into [`Numberer::labels`].
    pub(super) struct LabelId(u32);
}

/// What a frame was first met as.
#[derive(Clone, Copy)]
pub(super) enum Met {
    /// A place, at this address.
    At(PlaceId, PcId),
    /// No function.
    Label(LabelId),
}

impl Met {
    pub(super) fn pc(self) -> Option<PcId> {
        match self {
            Self::At(_, pc) => Some(pc),
            Self::Label(_) => None,
        }
    }
}

/// Gives out ids in the order of the rows.
pub(super) struct Numberer<'b> {
    pub(super) collected: &'b Collected,
    pub(super) marks: bool,
    pub(super) places: &'b FramesOfPcs,
    /// By stack of addresses: one that is equal.
    pub(super) same_stack: IndexVec<AddressStackId, AddressStackId>,
    /// By stack that stands for equal ones: its id.
    pub(super) stacks: IndexVec<AddressStackId, Option<StackId>>,
    /// By place: the id of its frame.
    pub(super) frames: IndexVec<PlaceId, Option<FrameId>>,
    /// Frames of addresses, one behind the other: an address is in many stacks.
    pub(super) pc_frames: Vec<FrameId>,
    /// By address: its frames; nothing before it was met.
    pub(super) of_pcs: IndexVec<PcId, Part<FrameId>>,
    /// Buffer for the stack under construction.
    pub(super) stack_frames: Vec<FrameId>,
    pub(super) order: IndexVec<FrameId, Met>,
    /// Frames that are no functions.
    pub(super) labels: IndexVec<LabelId, (&'static str, FrameId)>,
    pub(super) profile: &'b mut Profile,
}

/// What got a number.
pub(super) struct Numbered {
    /// Leaf and stack of each row.
    pub(super) rows: Vec<(FrameId, StackId)>,
    /// See [`Numberer::order`].
    pub(super) order: IndexVec<FrameId, Met>,
    pub(super) labels: IndexVec<LabelId, (&'static str, FrameId)>,
    /// See [`Numberer::frames`].
    pub(super) frames: IndexVec<PlaceId, Option<FrameId>>,
}

impl Numberer<'_> {
    pub(super) fn rows(mut self) -> Numbered {
        let rows = self.collected.rows.iter();
        let rows = rows.map(|row| {
            let leaf = self.frame(self.places.leaf(row.key.leaf), row.key.leaf);
            for pc in self.collected.facets.places(row.key.facets) {
                self.frame(self.places.leaf(pc), pc);
            }
            (leaf, self.stack(row.key.stack))
        });
        Numbered {
            rows: rows.collect(),
            order: self.order,
            labels: self.labels,
            frames: self.frames,
        }
    }

    fn stack(&mut self, raw: AddressStackId) -> StackId {
        let same = self.same_stack[raw];
        if let Some(known) = self.stacks[same] {
            return known;
        }
        let collected = self.collected;
        let mut frames = std::mem::take(&mut self.stack_frames);
        frames.clear();
        let end = collected.stacks.tag(raw);
        let mark = self.mark(end);
        for pc in collected.stacks.get(raw) {
            if Some(*pc) == collected.gap {
                frames.extend(mark);
                continue;
            }
            let known = self.of_pcs[*pc].of(&self.pc_frames);
            if known.is_empty() {
                let met = self.meet(*pc);
                frames.extend(met.of(&self.pc_frames).iter().copied());
            } else {
                frames.extend(known.iter().copied());
            }
        }
        if matches!(end, StackEnd::FiberBase | StackEnd::StitchedFiber) {
            frames.push(self.label(FIBER));
        } else if !end.is_marked_inside() && !frames.is_empty() {
            frames.extend(mark);
        }
        let id = self.profile.stacks.push(&frames, end);
        self.stack_frames = frames;
        self.stacks[same] = Some(id);
        id
    }

    /// Numbers the frames of an address when it is met first.
    fn meet(&mut self, pc: PcId) -> Part<FrameId> {
        let (places, start) = (self.places, self.pc_frames.len());
        for &place in places.chain(pc) {
            let frame = match places.gap(place) {
                Some(why) => self.mark(why),
                None => Some(self.frame(place, pc)),
            };
            self.pc_frames.extend(frame);
        }
        let part = Part::new(start..self.pc_frames.len());
        self.of_pcs[pc] = part;
        part
    }

    fn frame(&mut self, place: PlaceId, pc: PcId) -> FrameId {
        let id = &mut self.frames[place];
        *id.get_or_insert_with(|| self.order.push(Met::At(place, pc)))
    }

    /// The frame that stands where frames are missing.
    fn mark(&mut self, end: StackEnd) -> Option<FrameId> {
        let word = end.mark().filter(|_| self.marks)?;
        let mark = self.label(word);
        self.profile.marks[end] = Some(mark);
        Some(mark)
    }

    /// The frame of a label.
    fn label(&mut self, text: &'static str) -> FrameId {
        if let Some((_, frame)) = self.labels.iter().find(|(known, _)| *known == text) {
            return *frame;
        }
        let frame = self.order.push(Met::Label(self.labels.next_idx()));
        self.labels.push((text, frame));
        frame
    }
}

/// The label below the base of a fiber's stack: what called the fiber is on another stack, which the sample does not hold.
pub(super) const FIBER: &str = "[fiber]";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some addresses with up to three frames each, of few different ones.
    fn chains() -> impl Strategy<Value = Vec<Vec<PlaceId>>> {
        let frame = (0..3_usize).prop_map(PlaceId::from_usize);
        prop::collection::vec(prop::collection::vec(frame, 1..4), 1..6)
    }

    fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, bool)>> {
        let addresses = prop::collection::vec(any::<prop::sample::Index>(), 0..5);
        let addresses = addresses.prop_map(|all| all.iter().map(|i| i.index(1 << 16)).collect());
        prop::collection::vec((addresses, any::<bool>()), 1..40)
    }

    proptest! {
        /// Stacks are one if their frames are, however many addresses those are shared out to.
        #[test]
        fn stacks_are_equal_by_their_frames(chains in chains(), stacks in stacks(), threads in 1..4_usize) {
            let places = FramesOfPcs::of_chains(&chains);
            let mut all = AddressStacks::default();
            let mut flat = Vec::new();
            for (stack, is_whole) in &stacks {
                let pcs = stack.iter().map(|at| PcId::from_usize(at % chains.len()));
                let pcs: Vec<PcId> = pcs.collect();
                let end = if *is_whole { StackEnd::Complete } else { StackEnd::NoRule };
                all.push(&pcs, end);
                let frames = pcs.iter().flat_map(|pc| places.chain(*pc)).copied();
                flat.push((frames.collect::<Vec<_>>(), end));
            }
            let (same, _) = equal_stacks(&all, &places, threads);
            for (number, known) in flat.iter().enumerate() {
                let first = flat.iter().position(|other| other == known);
                let same = same[AddressStackId::from_usize(number)];
                prop_assert_eq!(Some(same.index()), first);
            }
        }
    }
}
