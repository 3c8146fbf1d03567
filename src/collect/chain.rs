//! One sample's call chain, leaf first: the kernel's part as recorded, then the user's part.

use crate::address::Avma;
use crate::dso::FileTrouble;
use crate::perfdata::{CpuMode, Sample};
use crate::session::Target;
use crate::stack_end::StackEnd;
use crate::unwind::{Activation, Scene, Unwinder, UserFrame, UserState};

use super::PcId;
use super::space::SpaceAt;
use super::table::Addresses;

/// Markers in a recorded chain (`enum perf_callchain_context`, `include/uapi/linux/perf_event.h`).
const CONTEXT_HV: u64 = -32_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;
/// The user's part comes later, in a record with the number that follows.
const CONTEXT_USER_DEFERRED: u64 = -640_i64 as u64;
/// Words from here on are markers, not addresses.
const CONTEXT_MAX: u64 = -4095_i64 as u64;

/// Builds chains; one for each worker, buffers are reused.
pub(super) struct ChainBuilder<'a> {
    unwinder: Unwinder<'a>,
    user: Vec<UserFrame>,
    max_frames: usize,
    /// Stack pointers of the leaf and the outermost frame of the last chain, if it was walked.
    span: Option<(Avma, Avma)>,
}

/// Where a chain is put: the worker's table of addresses, and the ids of the chain.
pub(super) struct ChainOut<'t> {
    pub(super) addresses: &'t mut Addresses,
    pub(super) ids: &'t mut Vec<PcId>,
}

impl ChainOut<'_> {
    fn push(&mut self, space: &SpaceAt<'_, '_>, mode: CpuMode, at: Avma) {
        self.ids.push(self.addresses.at(space, mode, at));
    }
}

impl<'a> ChainBuilder<'a> {
    pub(super) fn new(unwinder: Unwinder<'a>, max_frames: usize) -> Self {
        Self {
            unwinder,
            user: Vec::new(),
            max_frames,
            span: None,
        }
    }

    /// What walked the chains.
    pub(super) fn into_unwinder(self) -> Unwinder<'a> {
        self.unwinder
    }

    /// Puts the chain of a sample into `out` and says why it ended. `lbr`: branch stacks are call stacks.
    pub(super) fn build(
        &mut self,
        sample: &Sample<'_>,
        lbr: bool,
        space: &SpaceAt<'_, 'a>,
        out: &mut ChainOut<'_>,
    ) -> StackEnd {
        out.ids.clear();
        self.span = None;
        let user = sample.user_stack.and(sample.user_regs);
        let unwinds = user.is_some() && self.unwinder.knows_machine();
        let lbr = lbr && sample.branch_stack.is_some();
        let recorded = recorded_chain(sample, space, unwinds || lbr, out);
        if unwinds {
            return self.unwind_user(sample, space, out);
        }
        match recorded {
            Recorded::User if lbr => {
                lbr_chain(sample, space, out);
                StackEnd::Recorded
            }
            Recorded::User => {
                self.insert_leaf_caller(sample, space, out);
                StackEnd::Recorded
            }
            // What was recorded for unwinding says nothing here.
            Recorded::KernelOnly | Recorded::Nothing
                if user.is_some_and(|registers| registers.abi != 0) =>
            {
                StackEnd::NoRegisters
            }
            Recorded::KernelOnly => StackEnd::KernelOnly,
            Recorded::UserMissing => StackEnd::NotRecorded,
            Recorded::Nothing => StackEnd::NotRecorded,
        }
    }

    fn unwind_user(
        &mut self,
        sample: &Sample<'_>,
        space: &SpaceAt<'_, 'a>,
        out: &mut ChainOut<'_>,
    ) -> StackEnd {
        let (Some(regs), Some(stack)) = (&sample.user_regs, sample.user_stack) else {
            return StackEnd::NoRegisters;
        };
        if regs.abi == 0 {
            return if out.ids.is_empty() {
                StackEnd::NoRegisters
            } else {
                StackEnd::KernelOnly
            };
        }
        let state = UserState { regs: *regs, stack };
        let end = self
            .unwinder
            .walk(&state, space, self.max_frames, &mut self.user);
        self.span = self.unwinder.span();
        for frame in &self.user {
            out.ids.push(out.addresses.of_frame(space, frame));
        }
        match end {
            // There was no more to copy: what looked like a frame behind it was none. Where frame information
            // says that there is one, the kernel could not copy on, and no larger dump would have had it.
            StackEnd::DumpTooShort if sample.user_stack_ends => {
                if self.unwinder.ended_by_guess() {
                    StackEnd::CheckFailed
                } else {
                    StackEnd::AbsentPage
                }
            }
            StackEnd::MissingFile => why_missing(out, space),
            end => end,
        }
    }

    /// What the last chain's walk in a scene knew of the registers in its frames, leaf first; the last ones of the chain.
    pub(super) fn activations(
        &self,
        scene: &Scene,
    ) -> impl DoubleEndedIterator<Item = Activation> + ExactSizeIterator + '_ {
        self.unwinder.activations(scene)
    }

    /// Stack pointers between which the last chain's walk went; see [`Unwinder::span`].
    pub(super) const fn span(&self) -> Option<(Avma, Avma)> {
        self.span
    }

    /// On arm64 a leaf function has no frame record, so the kernel's chain lacks its caller; perf
    /// records the link register for that (`util/arm64-frame-pointer-unwind-support.c`). The caller is put
    /// in where the leaf's unwinding rule says that the register still holds the return address.
    fn insert_leaf_caller(
        &mut self,
        sample: &Sample<'_>,
        space: &SpaceAt<'_, 'a>,
        out: &mut ChainOut<'_>,
    ) {
        let Some(regs) = sample.user_regs else { return };
        let pcs = out.addresses.all();
        let user = |id: &PcId| pcs[*id].mode == CpuMode::User;
        let Some(leaf) = out.ids.iter().position(user) else {
            return;
        };
        let ip = pcs[out.ids[leaf]].at;
        let recorded = out.ids.get(leaf + 1).map(|next| pcs[*next].at);
        let Some(caller) = self.unwinder.leaf_caller(ip, &regs, recorded, space) else {
            return;
        };
        let id = out.addresses.at(space, CpuMode::User, caller);
        out.ids.insert(leaf + 1, id);
    }
}

/// Whether the file of the outermost frame is not there, or another one.
fn why_missing(out: &ChainOut<'_>, space: &SpaceAt<'_, '_>) -> StackEnd {
    let last = out.ids.last().map(|id| out.addresses.all()[*id]);
    match last.map(|pc| pc.target) {
        Some(Target::Dso(dso))
            if matches!(
                space.trouble(dso),
                Some(FileTrouble::Changed | FileTrouble::Ambiguous)
            ) =>
        {
            StackEnd::ChangedFile
        }
        _ => StackEnd::MissingFile,
    }
}

enum Recorded {
    Nothing,
    KernelOnly,
    User,
    /// The user's part was to come later and never did.
    UserMissing,
}

/// The recorded chain; without its user part where another takes its place.
fn recorded_chain(
    sample: &Sample<'_>,
    space: &SpaceAt<'_, '_>,
    kernel_only: bool,
    out: &mut ChainOut<'_>,
) -> Recorded {
    let Some(chain) = sample.callchain else {
        return Recorded::Nothing;
    };
    let mut reading = ChainReading {
        space,
        kernel_only,
        mode: CpuMode::User,
        user: false,
    };
    let mut words = chain.iter();
    let mut missing = false;
    while let Some(word) = words.next() {
        if word == CONTEXT_USER_DEFERRED {
            let part = words.next().and_then(|cookie| space.deferred(cookie));
            missing = part.is_none() && !kernel_only;
            let part = part.unwrap_or_default();
            reading.mode = CpuMode::User;
            if !part.iter().all(|word| reading.word(*word, out)) {
                out.ids.clear();
                return Recorded::Nothing;
            }
            break;
        }
        if !reading.word(word, out) {
            // perf gives such a chain up as corrupt.
            out.ids.clear();
            return Recorded::Nothing;
        }
    }
    match (reading.user, out.ids.is_empty()) {
        _ if missing => Recorded::UserMissing,
        (true, _) => Recorded::User,
        (false, false) => Recorded::KernelOnly,
        (false, true) => Recorded::Nothing,
    }
}

/// A recorded chain while its words are gone through.
struct ChainReading<'s, 'p, 'a> {
    space: &'s SpaceAt<'p, 'a>,
    kernel_only: bool,
    mode: CpuMode,
    /// Whether there was a word of the user's part.
    user: bool,
}

impl ChainReading<'_, '_, '_> {
    /// Takes a marker or an address; `false` for markers that nobody knows.
    fn word(&mut self, word: u64, out: &mut ChainOut<'_>) -> bool {
        if word >= CONTEXT_MAX {
            self.mode = match word {
                CONTEXT_HV => CpuMode::Hypervisor,
                CONTEXT_KERNEL => CpuMode::Kernel,
                CONTEXT_USER => CpuMode::User,
                _ => return false,
            };
            self.user |= self.mode == CpuMode::User;
            return true;
        }
        self.user |= self.mode == CpuMode::User;
        if self.mode != CpuMode::User || !self.kernel_only {
            out.push(self.space, self.mode, Avma(word));
        }
        true
    }
}

/// The user part from the last-branch record in call-stack mode: where the newest call went, then
/// where each call came from (`util/machine.c`).
fn lbr_chain(sample: &Sample<'_>, space: &SpaceAt<'_, '_>, out: &mut ChainOut<'_>) {
    let Some(branches) = sample.branch_stack else {
        return;
    };
    for (i, branch) in branches.iter().enumerate() {
        if i == 0 {
            out.push(space, CpuMode::User, branch.to);
        }
        out.push(space, CpuMode::User, branch.from);
    }
}
