//! One sample's call chain, leaf first: the kernel's part as recorded, then the user's part.

use crate::address::Avma;
use crate::perfdata::{CpuMode, Sample};
use crate::profile::StackEnd;
use crate::session::SpaceAt;
use crate::unwind::{Unwinder, UserFrame, UserState};

use super::Pc;

/// Markers in a recorded chain (`enum perf_callchain_context`, `include/uapi/linux/perf_event.h`).
const CONTEXT_HV: u64 = -32_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;
/// Words from here on are markers, not addresses.
const CONTEXT_MAX: u64 = -4095_i64 as u64;

/// Builds chains; one for each worker, buffers are reused.
pub(super) struct ChainBuilder<'a> {
    unwinder: Unwinder<'a>,
    user: Vec<UserFrame>,
    max_frames: usize,
}

impl<'a> ChainBuilder<'a> {
    pub(super) fn new(unwinder: Unwinder<'a>, max_frames: usize) -> Self {
        Self {
            unwinder,
            user: Vec::new(),
            max_frames,
        }
    }

    /// Puts the chain of a sample into `out` and says why it ended.
    pub(super) fn build(
        &mut self,
        sample: &Sample<'_>,
        lbr: bool,
        space: &SpaceAt<'_, 'a>,
        out: &mut Vec<Pc>,
    ) -> StackEnd {
        out.clear();
        let unwinds = sample.user_regs.is_some() && sample.user_stack.is_some();
        let recorded = recorded_chain(sample, space, unwinds, out);
        if unwinds {
            return self.unwind_user(sample, space, out);
        }
        if lbr && sample.branch_stack.is_some() {
            lbr_chain(sample, space, out);
            return StackEnd::Recorded;
        }
        match recorded {
            Recorded::User => {
                self.insert_leaf_caller(sample, space, out);
                StackEnd::Recorded
            }
            Recorded::KernelOnly => StackEnd::KernelOnly,
            Recorded::Nothing => StackEnd::NotRecorded,
        }
    }

    fn unwind_user(
        &mut self,
        sample: &Sample<'_>,
        space: &SpaceAt<'_, 'a>,
        out: &mut Vec<Pc>,
    ) -> StackEnd {
        let (Some(regs), Some(stack)) = (&sample.user_regs, sample.user_stack) else {
            return StackEnd::NoRegisters;
        };
        if regs.abi == 0 {
            return if out.is_empty() {
                StackEnd::NoRegisters
            } else {
                StackEnd::KernelOnly
            };
        }
        self.user.clear();
        let state = UserState { regs: *regs, stack };
        let end = self
            .unwinder
            .walk(&state, space, self.max_frames, &mut self.user);
        out.extend(
            self.user
                .iter()
                .map(|frame| pc(space, CpuMode::User, frame.lookup)),
        );
        end
    }

    /// On arm64 a leaf function has no frame record, so the kernel's chain lacks its caller; perf
    /// records the link register for that (`util/arm64-frame-pointer-unwind-support.c`). The caller is put
    /// in where the leaf's unwinding rule says that the register still holds the return address.
    fn insert_leaf_caller(
        &mut self,
        sample: &Sample<'_>,
        space: &SpaceAt<'_, 'a>,
        out: &mut Vec<Pc>,
    ) {
        let Some(regs) = sample.user_regs else { return };
        let Some(leaf) = out.iter().position(|pc| pc.mode == CpuMode::User) else {
            return;
        };
        let Some(caller) = self.unwinder.leaf_caller(out[leaf].at, &regs, space) else {
            return;
        };
        let known = out
            .get(leaf + 1)
            .is_some_and(|next| next.at == caller || next.at == caller.plus(1));
        if !known {
            out.insert(leaf + 1, pc(space, CpuMode::User, caller));
        }
    }
}

enum Recorded {
    Nothing,
    KernelOnly,
    User,
}

/// The recorded chain; without its user part where that is unwound instead.
fn recorded_chain(
    sample: &Sample<'_>,
    space: &SpaceAt<'_, '_>,
    kernel_only: bool,
    out: &mut Vec<Pc>,
) -> Recorded {
    let Some(chain) = sample.callchain else {
        return Recorded::Nothing;
    };
    let mut mode = CpuMode::User;
    let mut user = false;
    for word in chain.iter() {
        if word >= CONTEXT_MAX {
            mode = match word {
                CONTEXT_HV => CpuMode::Hypervisor,
                CONTEXT_KERNEL => CpuMode::Kernel,
                CONTEXT_USER => CpuMode::User,
                _ => {
                    // perf gives such a chain up as corrupt.
                    out.clear();
                    return Recorded::Nothing;
                }
            };
            continue;
        }
        if mode == CpuMode::User {
            if kernel_only {
                continue;
            }
            user = true;
        }
        out.push(pc(space, mode, Avma(word)));
    }
    match (user, out.is_empty()) {
        (true, _) => Recorded::User,
        (false, false) => Recorded::KernelOnly,
        (false, true) => Recorded::Nothing,
    }
}

/// The user part from the last-branch record in call-stack mode: where the newest call went, then
/// where each call came from (`util/machine.c`). It replaces the recorded user part.
fn lbr_chain(sample: &Sample<'_>, space: &SpaceAt<'_, '_>, out: &mut Vec<Pc>) {
    out.retain(|pc| pc.mode != CpuMode::User);
    let Some(branches) = sample.branch_stack else {
        return;
    };
    let mut branches = branches.iter();
    if let Some(newest) = branches.next() {
        out.push(pc(space, CpuMode::User, newest.to));
        out.push(pc(space, CpuMode::User, newest.from));
    }
    out.extend(branches.map(|branch| pc(space, CpuMode::User, branch.from)));
}

/// An address with what it belongs to.
pub(super) fn pc(space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) -> Pc {
    let located = space.locate_in(mode, at);
    Pc {
        at,
        target: located.target,
        address: located.address,
        mode,
    }
}
