//! Ids of frames and stacks in the order of the rows.
//!
//! Stacks that stand for the same frames are found before, in parallel. Then one serial pass touches little but numbers; what they
//! stand for is filled in behind it ([`super::fill`]).

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::FxBuildHasher;

use super::places::{FramesOfPcs, PlaceId};
use super::{FrameId, Profile, StackEnd, StackId};
use crate::collect::{AddressStackId, AddressStacks, Collected, PcId};
use crate::ids::{IndexVec, numbers};
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
    let frames = |stack: AddressStackId| {
        let addresses = stacks.get(stack).iter();
        addresses.flat_map(|pc| places.chain(*pc)).copied()
    };
    let length = |stack: AddressStackId| -> usize {
        let addresses = stacks.get(stack).iter();
        addresses.map(|pc| places.chain(*pc).len()).sum()
    };
    let hash = |stack: &AddressStackId| {
        let mut state = FxBuildHasher.build_hasher();
        frames(*stack).for_each(|frame| frame.hash(&mut state));
        state.write_u8(stacks.tag(*stack) as u8);
        state.finish()
    };
    let hashes = in_parallel(all.raw.chunks(PIECE).collect(), threads, |piece| {
        piece.iter().map(hash).collect::<Vec<_>>()
    });
    let hashes: IndexVec<AddressStackId, u64> = hashes.into_iter().flatten().collect();
    let is = |a: AddressStackId, b: AddressStackId| {
        hashes[a] == hashes[b] && stacks.tag(a) == stacks.tag(b) && frames(a).eq(frames(b))
    };
    // Each thread compares those that its part of the hashes has.
    let parts = threads.clamp(1, 64) as u64;
    let found = in_parallel((0..parts).collect(), threads, |part| {
        let own = |stack: &AddressStackId| (hashes[*stack] >> 32) % parts == part;
        let mut known = ItemIndex::with_capacity(stacks.len() / parts as usize);
        let (mut found, mut frames_of_new) = (Vec::new(), 0);
        for stack in all.iter().copied().filter(own) {
            let hash_of = |stack: AddressStackId| hashes[stack];
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
}

impl Numberer<'_> {
    pub(super) fn rows(mut self) -> Numbered {
        let rows = self.collected.rows.iter();
        let rows = rows.map(|row| {
            let leaf = self.frame(self.places.leaf(row.key.leaf), row.key.leaf);
            (leaf, self.stack(row.key.stack))
        });
        Numbered {
            rows: rows.collect(),
            order: self.order,
            labels: self.labels,
        }
    }

    fn stack(&mut self, raw: AddressStackId) -> StackId {
        let same = self.same_stack[raw];
        if let Some(known) = self.stacks[same] {
            return known;
        }
        let (collected, places) = (self.collected, self.places);
        let mut frames = std::mem::take(&mut self.stack_frames);
        frames.clear();
        let end = collected.stacks.tag(raw);
        let mark = self.mark(end);
        for pc in collected.stacks.get(raw) {
            if Some(*pc) == collected.gap {
                frames.extend(mark);
                continue;
            }
            for &place in places.chain(*pc) {
                frames.push(self.frame(place, *pc));
            }
        }
        if matches!(end, StackEnd::FiberBase | StackEnd::StitchedFiber) {
            frames.push(self.label(FIBER));
        } else if end != StackEnd::Rooted && !frames.is_empty() {
            frames.extend(mark);
        }
        let id = self.profile.stacks.push(&frames, end);
        self.stack_frames = frames;
        self.stacks[same] = Some(id);
        id
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
