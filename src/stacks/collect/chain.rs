//! One sample's call chain, leaf first: the kernel's part as recorded, then the user's part.

use crate::address::Avma;
use crate::dso::FileTrouble;
use crate::ids::{Idx, IndexVec};
use crate::perfdata::attr::{flag, sample_type};
use crate::perfdata::{Attr, BranchStack, CpuMode, Sample};
use crate::session::{Label, Target};
use crate::stack_end::StackEnd;
use crate::unwind::{Activation, FrameOrigin, FramePointer, Scene, Unwinder, UserFrame, UserState};

use super::PcId;
use super::addresses::Addresses;
use super::space::SpaceAt;
use super::table::CALLS_KEPT;

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
    /// Whether frames that are missing within stacks are marked there.
    marks_gaps: bool,
    /// Whether recorded callers are where their calls are, and not where these return to.
    at_calls: bool,
    /// Stack pointers of the leaf and the outermost frame of the last chain, if it was walked.
    span: Option<(Avma, Avma)>,
    /// By address: whether it may be that of a call, where somebody asked.
    calls: IndexVec<PcId, Option<bool>>,
    /// By address: whether it is that of a call of a function with frame information, where somebody asked.
    described: IndexVec<PcId, Option<bool>>,
    /// By address, of ips and of calls: whose frame the frame pointer leads to, where somebody asked.
    pointers: [IndexVec<PcId, Option<FramePointer>>; 2],
    /// The most entries that a call stack of the processor had.
    most_branches: usize,
    /// Whether frames are missing within the last chain.
    skips: bool,
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
    pub(super) fn new(
        unwinder: Unwinder<'a>,
        max_frames: usize,
        (marks_gaps, at_calls): (bool, bool),
    ) -> Self {
        Self {
            unwinder,
            user: Vec::new(),
            max_frames,
            marks_gaps,
            at_calls,
            span: None,
            calls: IndexVec::new(),
            described: IndexVec::new(),
            pointers: Default::default(),
            most_branches: 0,
            skips: false,
        }
    }

    /// Whether frames are missing within the last chain.
    pub(super) const fn skips(&self) -> bool {
        self.skips
    }

    /// The most entries that a call stack of the processor had.
    pub(super) const fn most_branches(&self) -> usize {
        self.most_branches
    }

    /// What walked the chains.
    pub(super) fn into_unwinder(self) -> Unwinder<'a> {
        self.unwinder
    }

    /// Puts the chain of a sample into `out` and says why it ended.
    pub(super) fn build(
        &mut self,
        sample: &Sample<'_>,
        attr: &Attr,
        space: &SpaceAt<'_, 'a>,
        out: &mut ChainOut<'_>,
    ) -> StackEnd {
        out.ids.clear();
        self.span = None;
        let lbr = attr.records_lbr_callstack();
        let user = sample.user_stack.and(sample.user_regs);
        let unwinds = user.is_some() && self.unwinder.knows_machine();
        // A call stack without calls tells less than the chain.
        let calls = sample.branch_stack.filter(|_| lbr);
        let calls = calls.filter(|calls| calls.iter().next().is_some());
        let kernel_only = unwinds || calls.is_some();
        let recorded = recorded_chain(sample, space, (kernel_only, self.at_calls), out);
        let is_without_kernel = attr.flag(flag::EXCLUDE_CALLCHAIN_KERNEL);
        if is_without_kernel && sample.cpumode == CpuMode::Kernel {
            self.insert_kernels(sample, space, out);
        }
        if unwinds {
            return self.unwind_user(sample, space, out);
        }
        match (recorded.how, calls) {
            (Recorded::User, Some(calls)) => {
                let leaf = match sample.cpumode {
                    CpuMode::User => sample.ip,
                    _ => recorded.leaf,
                };
                self.lbr_chain(leaf, calls, space, out)
            }
            (Recorded::User, None) => {
                self.insert_leaf_caller(sample, space, out);
                let gaps = if lbr || !self.marks_gaps {
                    Gaps::None
                } else {
                    self.mark_missing_callers(space, out)
                };
                match gaps {
                    Gaps::None | Gaps::Within if !lbr && recorded.count == attr.max_stack() => {
                        StackEnd::ChainFull
                    }
                    Gaps::Within | Gaps::WithinAndCut => StackEnd::CallerMissing,
                    Gaps::None | Gaps::Cut => StackEnd::Recorded,
                }
            }
            // What was recorded for unwinding says nothing here.
            (Recorded::KernelOnly | Recorded::Nothing, _)
                if user.is_some_and(|registers| registers.abi != 0) =>
            {
                StackEnd::NoRegisters
            }
            (Recorded::KernelOnly, _) if leaves_user_out(attr) && space.has_user() => {
                StackEnd::NotRecorded
            }
            (Recorded::KernelOnly, _) => StackEnd::KernelOnly,
            (Recorded::UserMissing | Recorded::Nothing, _) => StackEnd::NotRecorded,
        }
    }

    /// Where the chain is to be without the kernel's part (`--user-callchains`), the sample still tells where in the kernel it was.
    fn insert_kernels(
        &mut self,
        sample: &Sample<'_>,
        space: &SpaceAt<'_, 'a>,
        out: &mut ChainOut<'_>,
    ) {
        let Some(ip) = sample.ip.filter(|_| !out.ids.is_empty()) else {
            return;
        };
        let id = out.addresses.at(space, CpuMode::Kernel, ip);
        out.ids.insert(0, id);
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
        self.skips = false;
        for frame in &self.user {
            if frame.origin == FrameOrigin::PastFrames {
                if self.marks_gaps {
                    out.ids.push(out.addresses.label(Label::SKIPPED));
                }
                self.skips = true;
            }
            out.ids.push(out.addresses.of_frame(space, frame));
        }
        match end {
            StackEnd::Complete | StackEnd::FiberBase if self.skips => StackEnd::Skipped,
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

    /// On x86 nothing is recorded of the caller of a function that has no frame of its own: the kernel goes on from its caller's
    /// frame, to the caller's caller. GCC leaves the frame out of functions that call nothing, also with
    /// `-fno-omit-frame-pointer`; libraries are built without frames, and a signal interrupts a function in the midst of it. Puts a
    /// mark where a caller is missing, and says where that was. Where a function has no frame and what comes next is no return
    /// address, the chain ends: the register held something else.
    fn mark_missing_callers(&mut self, space: &SpaceAt<'_, 'a>, out: &mut ChainOut<'_>) -> Gaps {
        let pcs = out.addresses.all();
        let user = |id: &PcId| pcs[*id].mode == CpuMode::User;
        let Some(leaf) = out.ids.iter().position(user) else {
            return Gaps::None;
        };
        let mut missing = Vec::new();
        let mut end = out.ids.len();
        for at in leaf..end {
            let pointer = self.pointer(out.ids[at], at == leaf, space, out.addresses);
            let next = out.ids.get(at + 1).copied();
            let is_missing = match (pointer, next) {
                // What was called is another function: one without a frame has called or jumped on to this one.
                (FramePointer::Unknown, Some(next)) if at == leaf => {
                    self.is_described_call(next, space, out.addresses)
                }
                (FramePointer::Own | FramePointer::Unknown, _) => false,
                (_, Some(next)) if !self.is_call(next, space, out.addresses) => {
                    end = at + 1;
                    break;
                }
                (_, None) => at == leaf,
                (FramePointer::Callers, Some(_)) => true,
                // It may have been saved just now.
                (FramePointer::Other, Some(_)) => at > leaf,
            };
            if is_missing {
                missing.push(at + 1);
            }
        }
        let is_cut = end < out.ids.len();
        out.ids.truncate(end);
        let mark = out.addresses.label(Label::NO_CALLER);
        if is_cut {
            out.ids.push(mark);
        }
        for at in missing.iter().rev() {
            out.ids.insert(*at, mark);
        }
        match (missing.is_empty(), is_cut) {
            (true, false) => Gaps::None,
            (true, true) => Gaps::Cut,
            (false, false) => Gaps::Within,
            (false, true) => Gaps::WithinAndCut,
        }
    }

    /// Whether an address of a chain, not the first one, may be that of a call.
    fn is_call(&mut self, id: PcId, space: &SpaceAt<'_, 'a>, addresses: &Addresses) -> bool {
        *known(&mut self.calls, id).get_or_insert_with(|| {
            let behind = behind(addresses.all()[id].at, self.at_calls);
            self.unwinder.is_behind_call(behind, space)
        })
    }

    /// Whether an address of a chain is that of a call of a function with frame information.
    fn is_described_call(
        &mut self,
        id: PcId,
        space: &SpaceAt<'_, 'a>,
        addresses: &Addresses,
    ) -> bool {
        *known(&mut self.described, id).get_or_insert_with(|| {
            let behind = behind(addresses.all()[id].at, self.at_calls);
            self.unwinder.is_described_call(behind, space)
        })
    }

    /// Whose frame the frame pointer leads to at an address of a chain.
    fn pointer(
        &mut self,
        id: PcId,
        is_leaf: bool,
        space: &SpaceAt<'_, 'a>,
        addresses: &Addresses,
    ) -> FramePointer {
        let pointers = &mut self.pointers[usize::from(!is_leaf)];
        *known(pointers, id).get_or_insert_with(|| {
            let at = addresses.all()[id].at;
            let is_return = !is_leaf && !self.at_calls;
            let at = if is_return {
                Avma(at.0.wrapping_sub(1))
            } else {
                at
            };
            self.unwinder.frame_pointer(at, space)
        })
    }

    /// The user part from the last-branch record in call-stack mode: the sampled address, then where each call came from that
    /// has not returned. Where the newest call went is no frame: it is in the sampled function, or in one that has
    /// jumped there (a stub, a tail call) and left no trace.
    fn lbr_chain(
        &mut self,
        leaf: Option<Avma>,
        calls: BranchStack<'_>,
        space: &SpaceAt<'_, '_>,
        out: &mut ChainOut<'_>,
    ) -> StackEnd {
        if let Some(leaf) = leaf {
            out.push(space, CpuMode::User, leaf);
        }
        let mut count = 0;
        for call in calls.iter() {
            // A register that was not filled yet.
            if call.from == Avma(0) && call.to == Avma(0) {
                break;
            }
            count += 1;
            out.push(space, CpuMode::User, call.from);
        }
        self.most_branches = self.most_branches.max(count);
        if CALLS_KEPT.contains(&count) {
            StackEnd::BranchesFull
        } else {
            StackEnd::Recorded
        }
    }
}

/// Whether chains were to be without the user's part, and nothing else was to take its place: stacks to unwind or a record of calls.
fn leaves_user_out(attr: &Attr) -> bool {
    let has_other = attr.has(sample_type::STACK_USER) || attr.records_lbr_callstack();
    attr.flag(flag::EXCLUDE_CALLCHAIN_USER) && !has_other
}

/// Where callers are missing in a recorded chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gaps {
    /// Nowhere.
    None,
    /// Between functions.
    Within,
    /// Behind the last one: what was recorded there is no caller.
    Cut,
    /// Both.
    WithinAndCut,
}

/// The return address of a call in a chain, whose addresses are those of calls or behind them.
const fn behind(at: Avma, at_calls: bool) -> Avma {
    Avma(at.0.wrapping_add(at_calls as u64))
}

/// What is known of an address, yet nothing where nobody asked.
fn known<T: Clone>(all: &mut IndexVec<PcId, Option<T>>, id: PcId) -> &mut Option<T> {
    if id.index() >= all.len() {
        all.resize(id.index() + 1, None);
    }
    &mut all[id]
}

/// Whether the file of the outermost frame is not there, or another one, or one that describes no code: what a runtime saved.
fn why_missing(out: &ChainOut<'_>, space: &SpaceAt<'_, '_>) -> StackEnd {
    let last = out.ids.last().map(|id| out.addresses.all()[*id]);
    let trouble = match last.map(|pc| pc.target) {
        Some(Target::Dso(dso)) => space.trouble(dso),
        _ => None,
    };
    match trouble {
        Some(FileTrouble::Changed | FileTrouble::Ambiguous) => StackEnd::ChangedFile,
        Some(FileTrouble::NotElf | FileTrouble::Pe) => StackEnd::UnknownCode,
        _ => StackEnd::MissingFile,
    }
}

/// What a recorded chain has.
struct RecordedChain {
    how: Recorded,
    /// The first address of its user part.
    leaf: Option<Avma>,
    /// How many addresses.
    count: usize,
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
    (kernel_only, at_calls): (bool, bool),
    out: &mut ChainOut<'_>,
) -> RecordedChain {
    let none = RecordedChain {
        how: Recorded::Nothing,
        leaf: None,
        count: 0,
    };
    let Some(chain) = sample.callchain else {
        return none;
    };
    let mut reading = ChainReading {
        space,
        kernel_only,
        at_calls,
        is_first: true,
        mode: CpuMode::User,
        user: false,
        leaf: None,
        count: 0,
    };
    let mut words = chain.iter();
    let mut missing = false;
    while let Some(word) = words.next() {
        if word == CONTEXT_USER_DEFERRED {
            let part = words.next().and_then(|cookie| space.deferred(cookie));
            missing = part.is_none() && !kernel_only;
            let part = part.unwrap_or_default();
            reading.mode = CpuMode::User;
            reading.is_first = true;
            if !part.iter().all(|deferred| reading.word(*deferred, out)) {
                out.ids.clear();
                return none;
            }
            break;
        }
        if !reading.word(word, out) {
            // perf gives such a chain up as corrupt.
            out.ids.clear();
            return none;
        }
    }
    let how = match (reading.user, out.ids.is_empty()) {
        _ if missing => Recorded::UserMissing,
        (true, _) => Recorded::User,
        (false, false) => Recorded::KernelOnly,
        (false, true) => Recorded::Nothing,
    };
    RecordedChain {
        how,
        leaf: reading.leaf,
        count: reading.count,
    }
}

/// A recorded chain while its words are gone through.
struct ChainReading<'s, 'p, 'a> {
    space: &'s SpaceAt<'p, 'a>,
    kernel_only: bool,
    at_calls: bool,
    /// Whether no address of this mode was met: the first is where it ran, the others are where calls return to.
    is_first: bool,
    mode: CpuMode,
    /// Whether there was a word of the user's part.
    user: bool,
    /// The first address of it.
    leaf: Option<Avma>,
    /// Addresses that were met.
    count: usize,
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
            self.is_first = true;
            return true;
        }
        self.count += 1;
        self.user |= self.mode == CpuMode::User;
        if self.mode == CpuMode::User {
            self.leaf.get_or_insert(Avma(word));
        }
        if self.mode != CpuMode::User || !self.kernel_only {
            let (space, mode, at) = (self.space, self.mode, Avma(word));
            let id = if self.is_first || !self.at_calls {
                out.addresses.at(space, mode, at)
            } else {
                out.addresses.call_before(space, mode, at)
            };
            out.ids.push(id);
        }
        self.is_first = false;
        true
    }
}
