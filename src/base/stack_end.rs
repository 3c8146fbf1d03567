//! Why a stack ended: told by the unwinder, counted by the profile, judged by `check`.

use std::ops::{Index, IndexMut};

/// Why a stack ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum StackEnd {
    /// The event has no chains, or the view asked for none.
    #[default]
    NotRecorded,
    /// Reached the thread's start.
    Complete,
    /// Reached the base of a fiber (wasmtime): counts as complete.
    FiberBase,
    /// Only kernel frames, and the sample has no user part (kernel thread, exec).
    KernelOnly,
    /// The kernel's frame-pointer chain, as recorded.
    Recorded,
    /// The stack is larger than the recorded dump.
    DumpTooShort,
    /// No unwinding rule for the code.
    NoRule,
    /// A candidate frame failed its plausibility checks.
    CheckFailed,
    /// Registers missing, or of an unsupported ABI.
    NoRegisters,
    /// The limit of frames was reached.
    TooDeep,
    /// The file that holds the code was not found.
    MissingFile,
    /// The file that holds the code is of another build now.
    ChangedFile,
    /// Code that no dump, perf map or file describes.
    UnknownCode,
    /// The unwinding information of the code counts from a register whose value is not known there.
    LostRegister,
    /// As [`Self::DumpTooShort`], but the thread's root is known and stands behind the gap.
    Rooted,
    /// The frame's caller is on another stack, of which nothing is recorded: the runtime switched.
    OtherStack,
    /// The kernel could not copy the stack on, though there is more of it: a page of it had never been touched, or was
    /// not in memory.
    AbsentPage,
    /// As [`Self::DumpTooShort`], and completed from other samples of the thread: an inference.
    Stitched,
    /// The same, to the base of a fiber.
    StitchedFiber,
    /// A return probe has replaced the return address, and the recording does not tell it.
    ReturnProbe,
    /// The thread's start was reached, but frames are missing on the way: code that keeps no frame pointer was left by it.
    Skipped,
    /// As [`Self::Recorded`], but a function had no frame yet or never has one, or was interrupted by a signal, and so a caller
    /// is missing.
    CallerMissing,
    /// As many calls as the processor's record of them holds (`--call-graph lbr`); there may be more.
    BranchesFull,
    /// As many frames as the kernel puts into a chain (`kernel.perf_event_max_stack`, or `--max-stack`).
    ChainFull,
}

/// One item for each reason for which stacks end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByEnd<T>(pub [T; StackEnd::COUNT]);

impl ByEnd<u64> {
    /// The sum over all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }
}

impl<T> Index<StackEnd> for ByEnd<T> {
    type Output = T;

    fn index(&self, end: StackEnd) -> &T {
        &self.0[end as usize]
    }
}

impl<T> IndexMut<StackEnd> for ByEnd<T> {
    fn index_mut(&mut self, end: StackEnd) -> &mut T {
        &mut self.0[end as usize]
    }
}

impl StackEnd {
    /// Number of variants.
    pub const COUNT: usize = 24;

    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::NotRecorded,
        Self::Complete,
        Self::FiberBase,
        Self::KernelOnly,
        Self::Recorded,
        Self::DumpTooShort,
        Self::NoRule,
        Self::CheckFailed,
        Self::NoRegisters,
        Self::TooDeep,
        Self::MissingFile,
        Self::ChangedFile,
        Self::UnknownCode,
        Self::LostRegister,
        Self::Rooted,
        Self::OtherStack,
        Self::AbsentPage,
        Self::Stitched,
        Self::StitchedFiber,
        Self::ReturnProbe,
        Self::Skipped,
        Self::CallerMissing,
        Self::BranchesFull,
        Self::ChainFull,
    ];

    /// The reason in words.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotRecorded => "no stack recorded",
            Self::Complete => "complete",
            Self::FiberBase => "complete to the fiber's base",
            Self::KernelOnly => "kernel only",
            Self::Recorded => "as recorded",
            Self::DumpTooShort => "larger than the recorded stack",
            Self::NoRule => "no unwinding rule",
            Self::CheckFailed => "implausible caller",
            Self::NoRegisters => "no usable registers",
            Self::TooDeep => "too deep",
            Self::MissingFile => "missing file",
            Self::ChangedFile => "changed file",
            Self::UnknownCode => "code that nothing describes",
            Self::LostRegister => "a register that is not known",
            Self::Rooted => "larger than the recorded stack, with the thread's root",
            Self::OtherStack => "another stack",
            Self::AbsentPage => "a stack page that could not be copied",
            Self::Stitched => "completed from other samples",
            Self::StitchedFiber => "completed from other samples to the fiber's base",
            Self::ReturnProbe => "a return probe",
            Self::Skipped => "frames missing on the way",
            Self::CallerMissing => "as recorded, without a caller",
            Self::BranchesFull => "as many calls as the processor keeps",
            Self::ChainFull => "as many frames as the kernel records",
        }
    }

    /// The word that stands where frames are missing; nothing where the stack is whole, or nobody can tell.
    #[must_use]
    pub const fn mark(self) -> Option<&'static str> {
        match self {
            Self::NotRecorded
            | Self::Complete
            | Self::FiberBase
            | Self::KernelOnly
            | Self::Recorded
            // What the processor keeps may just be all there is.
            | Self::BranchesFull
            | Self::Stitched
            | Self::StitchedFiber => None,
            Self::DumpTooShort | Self::Rooted => Some("[cut]"),
            Self::CallerMissing => Some("[caller missing]"),
            Self::AbsentPage => Some("[absent page]"),
            Self::OtherStack => Some("[other stack]"),
            Self::ReturnProbe => Some("[return probe]"),
            Self::TooDeep | Self::ChainFull => Some("[too deep]"),
            Self::MissingFile | Self::ChangedFile => Some("[missing file]"),
            Self::NoRule
            | Self::CheckFailed
            | Self::NoRegisters
            | Self::UnknownCode
            | Self::LostRegister
            | Self::Skipped => Some("[incomplete]"),
        }
    }

    /// Whether the mark stands between frames, and not behind the outermost one.
    #[must_use]
    pub const fn is_marked_inside(self) -> bool {
        matches!(self, Self::Rooted | Self::Skipped | Self::CallerMissing)
    }

    /// Whether the chain is one that the kernel or the processor found, which nobody has walked.
    #[must_use]
    pub const fn is_recorded(self) -> bool {
        matches!(
            self,
            Self::Recorded | Self::CallerMissing | Self::BranchesFull | Self::ChainFull
        )
    }

    /// What the recording alone says of the stack's end.
    #[must_use]
    pub const fn recorded(self) -> Self {
        match self {
            Self::Rooted | Self::Stitched | Self::StitchedFiber => Self::DumpTooShort,
            end => end,
        }
    }

    /// Whether the stack is whole.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Complete | Self::FiberBase | Self::KernelOnly)
    }
}
