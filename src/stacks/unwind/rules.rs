//! Unwinding rules in sixteen bytes, the ways to the caller that may be tried, and the pools that lists of both are kept in.
//!
//! Plain data, which knows no architecture: registers are DWARF numbers.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::FrameOrigin;
use crate::ids::{Idx, numbers};

numbers! {
    /// Where frames saved registers other than the three that a [`Rule`] tracks: a list in [`SavedSets`].
    pub(super) struct SavedSet(u32);
    /// Candidates to try: a list in a [`Pool`].
    pub(super) struct CandidateList(u32);
    /// A rule that has to be evaluated.
    pub(super) struct ComplexId(u32);
}

/// How to get from a frame to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    /// DWARF number of the register that the CFA counts from.
    pub(super) cfa_register: u8,
    pub(super) cfa_offset: i32,
    /// Where the return address is saved, in words from the CFA, or [`IN_REGISTER`].
    pub(super) ra_slot: i16,
    /// Where the caller's frame pointer is saved, likewise, or [`IN_REGISTER`] or [`LOST`].
    pub(super) fp_slot: i16,
    /// By kind: see [`saved`](Self::saved), [`candidates`](Self::candidates), [`complex`](Self::complex), [`is_end`](Self::is_end).
    pub(super) extra: Extra,
}

/// A number that means something by kind of rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Extra(u32);

/// What kind of rule it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// Nothing is known.
    None,
    /// The fields say it all, with the saved set.
    Frame,
    /// The same, and the caller was interrupted by a signal.
    SignalFrame,
    /// A frame record (aarch64): the caller's frame pointer and return address, but not where the
    /// caller's stack pointer was.
    Record,
    /// The outermost frame: its return address is undefined.
    End,
    /// It has to be evaluated.
    Complex,
    /// There are candidates to try.
    Guess,
    /// The kernel's signal return code, known by its instructions.
    Sigreturn,
}

/// Slot of a register that still has its value (for the return address: the link register).
pub(super) const IN_REGISTER: i16 = i16::MIN;
/// Slot of a register whose value is gone.
pub(super) const LOST: i16 = i16::MIN + 1;

impl Rule {
    /// No rule.
    pub(super) const NONE: Self = Self {
        kind: Kind::None,
        cfa_register: 0,
        cfa_offset: 0,
        ra_slot: -1,
        fp_slot: LOST,
        extra: Extra(0),
    };

    pub(super) const fn of_kind(kind: Kind) -> Self {
        Self { kind, ..Self::NONE }
    }

    /// Candidates to try.
    pub(super) const fn guess(candidates: CandidateList) -> Self {
        Self {
            extra: Extra(candidates.0),
            ..Self::of_kind(Kind::Guess)
        }
    }

    /// A rule that has to be evaluated.
    pub(super) const fn evaluated(complex: ComplexId) -> Self {
        Self {
            extra: Extra(complex.0),
            ..Self::of_kind(Kind::Complex)
        }
    }

    /// An outermost frame of some sort.
    pub(super) const fn end(sort: u32) -> Self {
        Self {
            extra: Extra(sort),
            ..Self::of_kind(Kind::End)
        }
    }

    /// The same, where other registers are saved there.
    pub(super) const fn with_saved(self, saved: SavedSet) -> Self {
        Self {
            extra: Extra(saved.0),
            ..self
        }
    }

    /// Where a frame of the simple kinds saved other registers.
    #[inline]
    pub(super) const fn saved(&self) -> SavedSet {
        SavedSet(self.extra.0)
    }

    /// What a guess tries.
    pub(super) const fn candidates(&self) -> CandidateList {
        CandidateList(self.extra.0)
    }

    /// What a complex rule evaluates.
    pub(super) const fn complex(&self) -> ComplexId {
        ComplexId(self.extra.0)
    }

    /// Whether it is an outermost frame of that sort.
    pub(super) fn is_end(&self, sort: u32) -> bool {
        self.kind == Kind::End && self.extra.0 == sort
    }

    /// What stands in front of `_dl_runtime_resolve` pushes two words, one of them the return address, and glibc's call frame information
    /// for aarch64 does not count them: the address lies in front of its CFA. Moves the CFA to where the caller's stack pointer was,
    /// and says by how many words.
    pub(super) fn count_from_callers_stack(&mut self) -> i16 {
        const PUSHED: i16 = 2;
        self.cfa_offset = self.cfa_offset.saturating_add(i32::from(PUSHED) * 8);
        self.ra_slot -= PUSHED;
        if self.fp_slot > LOST {
            self.fp_slot = self.fp_slot.saturating_sub(PUSHED).max(LOST + 1);
        }
        PUSHED
    }

    /// V8 for aarch64 calls the address of the frame record the CFA (x29 + 0, with the saved pair at +0
    /// and +8), also before there is one: puts that in the terms used here.
    pub(super) fn record_at_cfa(&mut self, sp: u8, fp: u8) {
        if (self.cfa_register, self.cfa_offset) != (fp, 0) {
            return;
        }
        match (self.ra_slot, self.fp_slot) {
            (1, 0) => {
                (self.kind, self.cfa_offset, self.ra_slot, self.fp_slot) =
                    (Kind::Record, 16, -1, -2);
            }
            (IN_REGISTER, _) => (self.cfa_register, self.fp_slot) = (sp, IN_REGISTER),
            _ => {}
        }
    }

    /// A frame record at the frame pointer.
    pub(super) const fn record(fp: u8) -> Self {
        Self {
            kind: Kind::Record,
            ..Self::frame(fp, 16, -1, -2)
        }
    }

    /// A frame whose other saved registers are not known.
    pub(super) const fn frame(
        cfa_register: u8,
        cfa_offset: i32,
        ra_slot: i16,
        fp_slot: i16,
    ) -> Self {
        Self {
            kind: Kind::Frame,
            cfa_register,
            cfa_offset,
            ra_slot,
            fp_slot,
            extra: Extra(SavedSets::NONE.0),
        }
    }
}

/// A possible way to the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Candidate {
    /// Of kind [`Kind::Frame`] or [`Kind::Record`].
    pub(super) rule: Rule,
    pub(super) origin: FrameOrigin,
    pub(super) check: Check,
    /// Reject return addresses into the function itself: a link register that was
    /// overwritten by the function's own calls.
    pub(super) not_self: bool,
    /// How far the function reaches before and behind the place, as far as known and needed.
    pub(super) reach: (u32, u32),
    /// The register that holds the return address while the stack below it is rearranged.
    pub(super) link: Option<u8>,
    /// The frame pointer is taken though nothing tells that the code keeps one: it may be that of any frame further out.
    pub(super) blind: Option<Blind>,
}

/// Where a frame pointer may be that of a frame further out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Blind {
    /// The code may keep none.
    Everywhere,
    /// The code keeps one, and where its frame is built and taken down is not known.
    AtItsEnds,
    /// What runs before the place in the function leaves the register alone: it is a caller's.
    Callers,
}

/// What a candidate's return address must satisfy, apart from being executable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Check {
    /// Nothing: it comes from call frame information.
    Executable,
    /// Not known to follow something other than a call.
    NotRefuted,
    /// Known to follow a call.
    Call,
    /// Known to follow a direct call that leads into this function (before the place).
    CallsHere,
    /// Known to follow a call, and if that is direct, one of this function's first instruction or of another that
    /// jumps there.
    Proven,
}

impl Candidate {
    pub(super) const fn new(rule: Rule, origin: FrameOrigin, check: Check) -> Self {
        Self {
            rule,
            origin,
            check,
            not_self: false,
            reach: (0, 0),
            link: None,
            blind: None,
        }
    }

    /// Tells how far the function reaches if that is asked: candidates of all places in code of one kind are then
    /// equal, and stored once.
    pub(super) fn set_reach(&mut self, reach: (u32, u32)) {
        if self.not_self || matches!(self.check, Check::CallsHere | Check::Proven) {
            self.reach = reach;
        }
    }
}

/// Candidates of one place, best first.
pub(super) type Candidates = SmallVec<[Candidate; 4]>;

/// Slices that are stored once and named by a number (start << 4 | length).
#[derive(Debug)]
pub(super) struct Pool<I, T> {
    items: Vec<T>,
    known: FxHashMap<SmallVec<[T; 6]>, I>,
}

impl<I: Idx, T: Copy + Eq + std::hash::Hash> Pool<I, T> {
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// The number of a slice; at most its first 15 items are kept.
    pub(super) fn intern(&mut self, slice: &[T]) -> I {
        let slice = &slice[..slice.len().min(15)];
        if let Some(&known) = self.known.get(slice) {
            return known;
        }
        let start = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        let id = start
            .saturating_mul(16)
            .saturating_add(u32::try_from(slice.len()).unwrap_or(0));
        let id = I::from_usize(id as usize);
        self.items.extend_from_slice(slice);
        self.known.insert(SmallVec::from_slice(slice), id);
        id
    }

    #[inline]
    pub(super) fn get(&self, id: I) -> &[T] {
        let (start, len) = (id.index() >> 4, id.index() & 15);
        self.items.get(start..start + len).unwrap_or_default()
    }
}

/// Where a frame saved one register of its caller: the register's number in the high 8 bits, the
/// offset from the CFA in the low 24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Saved(pub(super) u32);

impl Saved {
    /// Offset that stands for "undefined".
    const GONE: i32 = -(1 << 23);

    pub(super) fn new(register: u8, offset: Option<i64>) -> Self {
        let offset = offset
            .and_then(|o| i32::try_from(o).ok())
            .filter(|o| o.abs() < 1 << 23)
            .unwrap_or(Self::GONE);
        Self(u32::from(register) << 24 | offset.cast_unsigned() & 0x00ff_ffff)
    }

    pub(super) const fn register(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Bytes from the CFA; `None` when the value is gone.
    pub(super) fn offset(self) -> Option<i64> {
        let signed = (self.0 << 8).cast_signed() >> 8;
        (signed != Self::GONE).then_some(i64::from(signed))
    }
}

/// The registers other than the three that a [`Rule`] tracks.
#[derive(Debug)]
pub(super) struct SavedSets(pub(super) Pool<SavedSet, Saved>);

impl SavedSets {
    /// Set of frames that may have changed any register.
    pub(super) const NONE: SavedSet = SavedSet(u32::MAX);

    pub(super) fn new() -> Self {
        Self(Pool::new())
    }

    /// Where frames with this set saved `register`: `Some(None)` if its value is gone, `None` if they left it.
    pub(super) fn find(&self, set: SavedSet, register: u8) -> Option<Option<i64>> {
        if set == Self::NONE {
            return Some(None);
        }
        self.0
            .get(set)
            .iter()
            .find(|s| s.register() == register)
            .map(|s| s.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pushed_return_address_is_below_the_callers_stack() {
        let mut rule = Rule::frame(31, 208, 1, -2);
        assert_eq!(rule.count_from_callers_stack(), 2);
        assert_eq!((rule.cfa_offset, rule.ra_slot, rule.fp_slot), (224, -1, -4));
        let mut entry = Rule::frame(31, 0, 1, IN_REGISTER);
        entry.count_from_callers_stack();
        assert_eq!(
            (entry.cfa_offset, entry.ra_slot, entry.fp_slot),
            (16, -1, IN_REGISTER)
        );
    }

    #[test]
    fn rule_stays_small() {
        assert_eq!(size_of::<Rule>(), 16);
    }

    #[test]
    fn saved_offsets_keep_their_sign() {
        for offset in [-8, 8, -(1 << 23) + 8, (1 << 23) - 8, 0] {
            let saved = Saved::new(3, Some(offset));
            assert_eq!((saved.register(), saved.offset()), (3, Some(offset)));
        }
        assert_eq!(Saved::new(15, None).offset(), None);
        assert_eq!(Saved::new(15, Some(1 << 40)).offset(), None);
    }

    #[test]
    fn pool_names_equal_slices_alike() {
        let mut pool: Pool<SavedSet, i32> = Pool::new();
        let (a, b) = (pool.intern(&[1, 2, 3]), pool.intern(&[4]));
        assert_eq!(pool.intern(&[1, 2, 3]), a);
        assert_eq!((pool.get(a), pool.get(b)), (&[1, 2, 3][..], &[4][..]));
        assert!(pool.get(SavedSets::NONE).is_empty());
    }
}
