//! One worker's addresses, each kept once, and shortcuts to those that were met before.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::space::SpaceAt;
use super::{Pc, PcId};
use crate::address::Avma;
use crate::ids::{Idx, IndexSlice, IndexVec};
use crate::intern::ItemIndex;
use crate::perfdata::CpuMode;
use crate::session::{Label, Target};
use crate::unwind::{FramePlaceId, Lifetime, UserFrame};

/// One worker's distinct addresses, with shortcuts that save looking up what lies at an address that
/// was met before.
#[derive(Default)]
pub(super) struct Addresses {
    pcs: IndexVec<PcId, Pc>,
    by_pc: ItemIndex<PcId>,
    /// Kernel addresses mean the same in all processes, as long as the kernel's mappings are in one state.
    kernel: FxHashMap<(u64, bool), PcId>,
    kernel_state: usize,
    /// Ends of branches, of which there are many to a sample and few in all.
    ends: Ends,
    /// Calls in the process by what they return to, likewise.
    calls: Ends,
    /// By place: the address it was last met at. The same place
    /// at another address (another process) goes the long way.
    by_place: IndexVec<FramePlaceId, (Avma, PcId)>,
}

impl Addresses {
    /// All of them, indexed by [`PcId`].
    pub(super) fn all(&self) -> &IndexSlice<PcId, [Pc]> {
        &self.pcs
    }

    /// The same, when no more are to come.
    pub(super) fn into_all(self) -> IndexVec<PcId, Pc> {
        self.pcs
    }

    pub(super) fn intern(&mut self, pc: Pc) -> PcId {
        let (pcs, new) = (&self.pcs, self.pcs.next_idx());
        let hash = |each: &Pc| FxBuildHasher.hash_one(each);
        let is = |id: PcId| pcs[id] == pc;
        let known = (self.by_pc).find_or_add(hash(&pc), new, is, |id| hash(&pcs[id]));
        known.unwrap_or_else(|| self.pcs.push(pc))
    }

    /// The address `at` of a sample's process, or of the kernel.
    pub(super) fn at(&mut self, space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) -> PcId {
        self.known_or(space, mode, (at, false), || located(space, mode, at))
    }

    /// An end of a branch: an address of the process, else of the kernel, else of neither.
    #[inline]
    pub(super) fn branch_end(&mut self, space: &SpaceAt<'_, '_>, at: Avma) -> PcId {
        if let Some(known) = self.ends.at(space, at) {
            return known;
        }
        let (end, life) = self.found_end(space, at);
        self.ends.keep(space, at, end, life);
        end
    }

    /// What lies there, and when that is the same.
    #[inline(never)]
    fn found_end(&mut self, space: &SpaceAt<'_, '_>, at: Avma) -> (PcId, Lifetime) {
        let (user, life) = space.locate_user_for(at);
        let user = Pc::of(user, CpuMode::User, at);
        if user.target != Target::Nowhere {
            return (self.intern(user), life);
        }
        let kernel = self.at(space, CpuMode::Kernel, at);
        if self.pcs[kernel].target != Target::Nowhere {
            return (kernel, life);
        }
        let of_neither = self.intern(Pc {
            mode: CpuMode::Unknown,
            ..user
        });
        (of_neither, life)
    }

    /// The call that returns to `at`, as a recorded chain has it.
    ///
    /// Behind a call may be another line, what is inlined no more, or, if it never returns, another function.
    pub(super) fn call_before(&mut self, space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) -> PcId {
        if mode != CpuMode::User {
            return self.known_or(space, mode, (at, true), || {
                let before = located(space, mode, Avma(at.0.wrapping_sub(1)));
                call(space, before, || located(space, mode, at))
            });
        }
        if let Some(known) = self.calls.at(space, at) {
            return known;
        }
        let last = Avma(at.0.wrapping_sub(1));
        let (before, mut life) = space.locate_user_for(last);
        let before = Pc::of(before, mode, last);
        let made = call(space, before, || {
            let (behind, other) = space.locate_user_for(at);
            life = life.common(other);
            Pc::of(behind, mode, at)
        });
        let made = self.intern(made);
        self.calls.keep(space, at, made, life);
        made
    }

    fn known_or(
        &mut self,
        space: &SpaceAt<'_, '_>,
        mode: CpuMode,
        (at, returns): (Avma, bool),
        make: impl FnOnce() -> Pc,
    ) -> PcId {
        if mode != CpuMode::Kernel {
            return self.intern(make());
        }
        if space.kernel_state() != self.kernel_state {
            self.kernel_state = space.kernel_state();
            self.kernel.clear();
        }
        if let Some(&id) = self.kernel.get(&(at.0, returns)) {
            return id;
        }
        let id = self.intern(make());
        self.kernel.insert((at.0, returns), id);
        id
    }

    /// The frame of a label.
    pub(super) fn label(&mut self, label: Label) -> PcId {
        self.intern(Pc {
            at: Avma(0),
            target: Target::Label(label),
            address: u64::from(label.0),
            mode: CpuMode::User,
            returns: false,
        })
    }

    /// The address of a frame that was unwound.
    #[inline]
    pub(super) fn of_frame(&mut self, space: &SpaceAt<'_, '_>, frame: &UserFrame) -> PcId {
        let known = frame.id.and_then(|place| self.by_place.get(place));
        if let Some(&(at, id)) = known
            && at == frame.lookup
            && id != NO_PC
        {
            return id;
        }
        let id = self.intern(located(space, CpuMode::User, frame.lookup));
        if let Some(place) = frame.id {
            if place.index() >= self.by_place.len() {
                self.by_place.resize(place.index() + 1, (Avma(0), NO_PC));
            }
            self.by_place[place] = (frame.lookup, id);
        }
        id
    }
}

const NO_PC: PcId = PcId(u32::MAX);

/// The call that `before` is the last byte of, or what lies where it returns to, if that is no call.
fn call(space: &SpaceAt<'_, '_>, before: Pc, behind: impl FnOnce() -> Pc) -> Pc {
    match before.target {
        Target::Dso(dso) if space.is_of_file(dso) => {}
        Target::Nowhere => return behind(),
        _ => {
            let behind = behind();
            // Runtimes push the beginning of code that nobody calls: Erlang's end of a process.
            if matches!(behind.target, Target::Jit(..)) && behind.address == 0 {
                return behind;
            }
        }
    }
    Pc {
        returns: true,
        ..before
    }
}

fn located(space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) -> Pc {
    Pc::of(space.locate_in(mode, at), mode, at)
}

/// Where branches begin and end, or calls are, of those that were met last. Direct mapped; a clash only costs the lookup.
#[derive(Default)]
pub(super) struct Ends(Vec<End>);

#[derive(Clone, Copy)]
struct End {
    at: Avma,
    /// See [`SpaceAt::state`].
    state: u64,
    life: Lifetime,
    place: PcId,
}

impl Ends {
    const BITS: u32 = 12;

    /// What was kept for an address.
    #[inline]
    pub(super) fn at(&self, space: &SpaceAt<'_, '_>, at: Avma) -> Option<PcId> {
        let end = self.0.get(slot(at, Self::BITS))?;
        let is_it = end.at == at && end.state == space.state() && end.life.contains(space.time());
        is_it.then_some(end.place)
    }

    /// Keeps it in place of another, if it holds for some time.
    pub(super) fn keep(&mut self, space: &SpaceAt<'_, '_>, at: Avma, place: PcId, life: Lifetime) {
        if !life.contains(space.time()) {
            return;
        }
        let end = End {
            at,
            state: space.state(),
            life,
            place,
        };
        if self.0.is_empty() {
            // No address was met yet.
            let never = Lifetime::NEVER;
            self.0 = vec![End { life: never, ..end }; 1 << Self::BITS];
        }
        self.0[slot(at, Self::BITS)] = end;
    }
}

/// Where an address is kept in a table of `1 << bits` of them.
pub(super) const fn slot(at: Avma, bits: u32) -> usize {
    (at.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - bits)) as usize
}
