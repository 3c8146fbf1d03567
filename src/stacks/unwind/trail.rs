//! The last walk of each thread, by which the next one goes where it comes to a frame that was there before.
//!
//! In: the frames of a walk, each with the words of the stack that led to it. Out: where a later walk of the same
//! thread joins them. Outer frames stay where they are from sample to sample (a third of all frames in a compiler, three
//! quarters in deep recursions): from a frame with equal registers on, the same words lead to the same frames, and to
//! compare two words costs a tenth of finding out what lies at an address, which rule that has and whether a call
//! goes before it.

use super::rules::SavedSet;
use super::{FrameOrigin, FramePlaceId, Lifetime, Scene};
use crate::ids::{Idx, ThreadId};
use crate::session::SpaceId;

/// Threads whose last walk is kept, a power of two; others take their turns.
const THREADS: usize = 16;

/// A frame of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Its registers, as far as they are tracked.
    pub(super) sp: u64,
    pub(super) fp: Option<u64>,
    pub(super) lookup: u64,
    /// [`super::UserFrame::id`].
    pub(super) id: Option<FramePlaceId>,
    pub(super) origin: FrameOrigin,
    pub(super) sp_exact: bool,
    /// It was interrupted: its registers are not all that counts.
    pub(super) leaf: bool,
    /// When the same lies at `lookup`.
    pub(super) life: Lifetime,
    /// How the frame below led here; `None` where more than that counts.
    pub(super) way: Option<Way>,
}

/// What a simple step took from the stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Where the return address was, and what it was.
    pub(super) ra_at: u64,
    pub(super) ra: u64,
    /// Where the frame pointer was, if it was taken from the stack.
    pub(super) fp_at: Option<u64>,
    /// The other registers that the frame below saved.
    pub(super) saved: SavedSet,
}

/// The last walks of some threads.
pub(super) struct Trails {
    kept: Vec<Trail>,
}

/// The last walk of one thread, leaf first.
#[derive(Debug, Default)]
pub(super) struct Trail {
    of: Option<(SpaceId, ThreadId)>,
    marks: Vec<Mark>,
}

impl Trails {
    pub(super) fn new() -> Self {
        let kept = std::iter::repeat_with(Trail::default);
        Self {
            kept: kept.take(THREADS).collect(),
        }
    }

    /// The last walk in a scene, to be given back with [`keep`](Self::keep).
    pub(super) fn take(&mut self, scene: &Scene) -> Trail {
        let mut trail = std::mem::take(&mut self.kept[slot(scene)]);
        if trail.of != Some((scene.space, scene.thread)) {
            trail.marks.clear();
        }
        trail
    }

    /// The frames of the walk that was kept last in a scene, leaf first.
    pub(super) fn last(&self, scene: &Scene) -> &[Mark] {
        let trail = &self.kept[slot(scene)];
        if trail.of == Some((scene.space, scene.thread)) {
            &trail.marks
        } else {
            &[]
        }
    }

    /// Keeps a walk; returns another one's memory.
    pub(super) fn keep(&mut self, scene: &Scene, marks: Vec<Mark>) {
        self.kept[slot(scene)] = Trail {
            of: Some((scene.space, scene.thread)),
            marks,
        };
    }
}

fn slot(scene: &Scene) -> usize {
    scene.thread.index() % THREADS
}

impl Trail {
    /// The frames.
    pub(super) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Its memory.
    pub(super) fn into_marks(self) -> Vec<Mark> {
        self.marks
    }
}
