//! Whether a recording is fit for conclusions: `pjit check`.
//!
//! [`gather()`] takes what the reading stages made of a recording and keeps numbers and names, the [`Evidence`].
//! [`judge`] holds them against [`Limits`] and gives [`Finding`]s, each with what would put it right.
//! [`crate::output::check`] prints them.

mod advice;
mod brief;
mod gather;
mod judge;
mod remedy;
mod stages;
#[cfg(test)]
mod tests;
mod wasm;
mod weights;

use std::time::Duration;

use crate::build_id::BuildId;
use crate::collect::DumpSizes;
use crate::dso::KernelState;
use crate::jit::{ClockFit, JitAbsent, JitObject};
use crate::needs::Needs;
use crate::perfdata::{Damage, Ring, Trace};
use crate::profile::StackEnd;
use crate::runtimes::Producer;
use crate::stitch::Mended;

pub(crate) use advice::quoted;
pub use brief::Brief;
pub use gather::gather;
pub(crate) use gather::{is_named, lacks_debug_information};
pub use judge::{judge, judge_for};
pub use stages::Stages;
pub use wasm::{Trouble, WasmLines};
pub use weights::Weights;

/// What evidence is gathered from.
pub const NEEDS: Needs = Needs::STACKS
    .union(Needs::ALIASES)
    .union(Needs::MARKS)
    .union(Needs::DEPTHS)
    .union(Needs::WASM_LINES);

/// What records once more what `pjit record` recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Again {
    /// This command, with options to follow.
    By(String),
    /// Nothing that is known here: what ran may have ended.
    Anew,
}

/// What a recording says about its own quality. Counts are samples unless they say otherwise: unlike periods these
/// mean the same for all events.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The recording, as it was named.
    pub path: String,
    /// Whether it is whole.
    pub whole: Whole,
    /// How the recorded command ended, where `pjit record` tells.
    pub status: Option<u8>,
    /// Whether runtimes were told to keep frame pointers, as `pjit record` says.
    pub keeps_frames: bool,
    /// What records it once more, of recordings of `pjit record`.
    pub again: Option<Again>,
    /// perf's end, if that was before its time.
    pub early: Option<Early>,
    /// What the kernel could not write.
    pub loss: Loss,
    /// The samples that shares are told of.
    pub judged: Judged,
    /// Samples by event, in the order of the recording, of events that have some.
    pub events: Vec<OfEvent>,
    /// The machine that was recorded, if nobody here can unwind its stacks.
    pub unknown_machine: Option<String>,
    /// How stacks ended.
    pub ends: Vec<EndShare>,
    /// Samples with a chain as the kernel found it, in which main or a thread's start is.
    pub rooted: u64,
    /// Samples within whose stacks frames are missing, whichever way they ended.
    pub skipped: Skipped,
    /// The most calls that the processor kept for a sample, where it is what recorded them.
    pub calls_kept: usize,
    /// How few frames of a chain the recording asked the kernel for, where that is fewer than it gives by itself; else 0.
    pub asked_frames: u16,
    /// Samples whose stacks ended early in Go's code, by the end.
    pub ends_in_go: Vec<(StackEnd, u64)>,
    /// Threads and processes that began and were not recorded, since no event was to follow them.
    pub unfollowed: usize,
    /// Threads that ended before their next sample.
    pub brief: Brief,
    /// What was recorded beside the samples and is not read.
    pub unread: Unread,
    /// Cut stacks that were completed from others.
    pub mended: Mended,
    /// Cut stacks that got the root of their thread.
    pub grafted: u64,
    /// How large dumps of stacks would have had to be.
    pub sizes: DumpSizes,
    /// Samples without a name.
    pub unresolved: Vec<Unresolved>,
    /// The clock of its times.
    pub clock: Clock,
    /// Dumps and perf maps that were used.
    pub dumps: Vec<Dump>,
    /// Those that were not.
    pub absent: Vec<JitAbsent>,
    /// What to do about those that are empty, where their runtime is known for it.
    pub loses_dumps: Option<&'static str>,
    /// Samples in JIT code that was told of only after they were taken.
    pub late: u64,
    /// How long after, at most, in nanoseconds.
    pub latest: u64,
    /// Samples in memory that is taken for the copy of code that a dump tells of.
    pub twins: u64,
    /// Samples in code of perf maps that tell of several functions at their address, and those that were called from it.
    pub doubtful: (u64, u64),
    /// The kernel's symbols.
    pub kernel: KernelSymbols,
    /// Files without information about inlined functions, the heaviest first.
    pub without_dwarf: Vec<Culprit>,
    /// Lines of WebAssembly.
    pub wasm: WasmLines,
    /// Files that were used although the recording has no build ID of them, and nothing as good.
    pub unchecked: Vec<Culprit>,
    /// What tells of each file with samples that it is the one that was mapped.
    pub files: Vec<FileProof>,
    /// Samples in code that programs copied to memory without a file.
    pub copied: Vec<Culprit>,
    /// Samples in code that is one of several functions, the heaviest first.
    pub shared: Vec<SharedCode>,
    /// Programs that run code made at run time that nothing tells of, the heaviest first.
    pub untold: Vec<String>,
    /// Events that weights are made of.
    pub weights: Weights,
}

/// Samples within whose stacks frames are missing.
#[derive(Debug, Clone, Default)]
pub struct Skipped {
    /// How many.
    pub samples: u64,
    /// Behind whose code the frames are missing, the heaviest first.
    pub culprits: Vec<Culprit>,
    /// Those of the culprits that were left in this way in most of their samples.
    pub habitual: Vec<String>,
}

/// What was recorded beside the samples and is not read.
#[derive(Debug, Clone, Default)]
pub struct Unread {
    /// What the processor traced.
    pub trace: Option<Trace>,
    /// Branch stacks that are no call stacks.
    pub branches: Option<BranchStacks>,
    /// Accesses to memory were to be recorded, and no sample says where the data came from.
    pub lacks_accesses: bool,
    /// Android's simpleperf recorded it, with symbols in a form of its own.
    pub is_simpleperf: bool,
}

/// Branch stacks beside the samples, which only some views read.
#[derive(Debug, Clone, Copy)]
pub struct BranchStacks {
    /// The most entries that one has.
    pub entries: usize,
    /// Whether the report shows branches by default.
    pub are_shown: bool,
}

/// Whether the recording is whole.
#[derive(Debug, Clone, Default)]
pub struct Whole {
    /// What is damaged or missing.
    pub damage: Option<Damage>,
    /// Bytes of records that were read.
    pub bytes: u64,
    /// Records that make no sense.
    pub skipped: u64,
    /// Samples per second that were asked for.
    pub frequency: Option<u64>,
    /// Whether its rings were as large as those of `pjit record`.
    pub has_large_rings: bool,
}

/// Samples of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfEvent {
    /// Its name.
    pub name: String,
    /// How many.
    pub samples: u64,
    /// Whether they stand for what was not recorded; of tracepoints each is there.
    pub is_sampled: bool,
    /// Whether it is a clock that was asked for more often than it ticks.
    pub is_too_often: bool,
}

/// The samples that shares are told of: those of the event that is shown.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// Its name, where there are others.
    pub event: Option<String>,
    /// How many.
    pub samples: u64,
    /// Those of the idle task.
    pub idle: u64,
    /// Which code they are of.
    pub ring: Ring,
}

/// An end of perf before that of what it recorded.
#[derive(Debug, Clone, Copy)]
pub struct Early {
    /// How long after its beginning.
    pub after: Duration,
    /// How long the command ran, if one was recorded.
    pub ran: Option<Duration>,
}

/// What the kernel could not write.
#[derive(Debug, Clone, Default)]
pub struct Loss {
    /// Samples that are there.
    pub samples: u64,
    /// Samples, or events of unknown kind, that are not.
    pub lost: u64,
    /// Those of the event that is judged, of several.
    pub lost_of_judged: Option<u64>,
    /// How often the buffer was full.
    pub chunks: u64,
    /// How often the kernel stopped sampling for a while.
    pub throttled: u64,
    /// Samples of guests, which have no rows and are not among those that are there.
    pub guests: u64,
}

/// Samples whose stacks ended for one reason.
#[derive(Debug, Clone)]
pub struct EndShare {
    /// The reason.
    pub end: StackEnd,
    /// How many.
    pub samples: u64,
    /// In whose code, the heaviest first.
    pub culprits: Vec<Culprit>,
}

/// Something with a name that samples lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// As reports show it.
    pub name: String,
    /// As it was recorded.
    pub path: String,
    /// How many.
    pub samples: u64,
    /// Whether it is code made at run time, and by whom, if that is known.
    pub runtime: Option<Producer>,
    /// The build ID of the file, if it is proven.
    pub build_id: Option<BuildId>,
    /// The inode of the file, if several had its path.
    pub inode: Option<u64>,
    /// The file that its debug information goes on in, if that is what is missing.
    pub rest: Option<String>,
}

/// Code of which the linker or the compiler made one for several functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCode {
    /// As reports show it.
    pub name: String,
    /// Another one of the functions.
    pub other: String,
    /// How many samples.
    pub samples: u64,
}

/// What tells that a file is the one that was mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProof {
    /// As it was recorded.
    pub path: String,
    /// The best evidence, in a word.
    pub evidence: &'static str,
    /// Samples in it.
    pub samples: u64,
}

/// Samples without a name for one reason.
#[derive(Debug, Clone)]
pub struct Unresolved {
    /// The reason.
    pub reason: Reason,
    /// How many.
    pub samples: u64,
    /// In what, the heaviest first.
    pub culprits: Vec<Culprit>,
}

/// Why an address has no name, or none that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The file was not found.
    MissingFile,
    /// What was found is of another build.
    ChangedFile,
    /// Several files had the path, and nothing tells which of them is the one that was found.
    AmbiguousFile,
    /// What was found is no ELF file: memory that a runtime saved, or data.
    NotElf,
    /// A file of Windows' format: .NET's code that was compiled before.
    PeFile,
    /// The file may not be read.
    UnreadableFile,
    /// The file has no symbol there.
    NoSymbols,
    /// Code made at run time that no dump or perf map tells of.
    JitWithoutDump,
    /// Code of a dump that may be another run's: there are names, but perhaps wrong ones.
    OtherRun,
    /// The kernel's addresses were or are hidden.
    RestrictedKernel,
    /// Code in the kernel's memory that no record and no symbol tells of.
    UntoldKernel,
    /// The kernel's symbols were not found.
    NoKernelSymbols,
    /// The kernel's symbols are those of another kernel: there are names, but wrong ones.
    OtherKernel,
    /// No record tells what its process mapped: the process began in an earlier slice.
    UntoldProcess,
    /// Nothing was mapped there.
    Unmapped,
    /// Guests, hypervisors, named memory.
    Other,
}

/// The clock of a recording's times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Clock {
    /// The kernel's scheduler clock: no `-k`.
    #[default]
    Scheduler,
    /// `-k mono`, the clock of dumps.
    Monotonic,
    /// Another that was asked for.
    Other(String),
    /// None: no times were recorded (`--no-timestamp`).
    Absent {
        /// Whether what several processors recorded stands one behind the other.
        is_apart: bool,
    },
}

/// A dump or perf map.
#[derive(Debug, Clone, Default)]
pub struct Dump {
    /// Its file's name.
    pub name: String,
    /// Whether it is a perf map.
    pub is_perf_map: bool,
    /// Who wrote it.
    pub producer: Producer,
    /// Functions that were used.
    pub functions: u64,
    /// Bytes at its end that are no whole record.
    pub cut: Option<u64>,
    /// Whether that is because it is still being written.
    pub is_growing: bool,
    /// Records that make no sense.
    pub malformed: u64,
    /// Functions of earlier or unknown processes.
    pub foreign: u64,
    /// Functions that took the place of others.
    pub replaced: u64,
    /// How its times became the recording's.
    pub clock_fit: ClockFit,
    /// The same in words.
    pub clock: String,
}

/// Whether a dump may be of another run: both sides have the same clock, and no time of one lies within the other.
fn is_doubtful(fit: ClockFit, clock: &Clock) -> bool {
    fit == ClockFit::Unused && *clock == Clock::Monotonic
}

impl Dump {
    /// What to do where a runtime stopped to write at a block of stubs of which not all memory was there: it has written of
    /// stubs only, a handful.
    fn given_up(&self) -> Option<&'static str> {
        const STUBS: u64 = 8;
        let fix = self.producer.row().gives_up_at_stubs?;
        (self.cut.is_some() && self.functions <= STUBS).then_some(fix)
    }

    fn of(object: &JitObject) -> Self {
        let stats = &object.stats;
        Self {
            name: String::from_utf8_lossy(object.file_name()).into_owned(),
            is_perf_map: object.is_perf_map(),
            producer: object.producer,
            functions: object.functions,
            cut: stats.cut.as_ref().map(|cut| cut.rest),
            is_growing: stats.is_growing,
            malformed: stats.counts.malformed + stats.counts.unknown,
            foreign: stats.foreign,
            replaced: stats.replaced,
            clock_fit: stats.clock_fit,
            clock: stats.clock.clone(),
        }
    }
}

/// The kernel's symbols.
#[derive(Debug, Clone, Default)]
pub struct KernelSymbols {
    /// Samples in the kernel.
    pub samples: u64,
    /// Its build, by which a server may have its symbols.
    pub build_id: Option<BuildId>,
    /// What became of the search; `None` if nobody asked.
    pub state: Option<KernelState>,
    /// Where they came from, or why there are none.
    pub source: String,
}

/// From where on a recording is not fit for conclusions. Shares are in per cent of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Least share of complete stacks among those that were recorded to be walked; of chains that the kernel found,
    /// the share that reach main or a thread's start. These, and recordings without stacks, only fail by it if it
    /// was asked for.
    pub min_complete: Option<f64>,
    /// Least share of samples with a name.
    pub min_resolved: f64,
    /// Largest share of lost samples, or of missing bytes.
    pub max_lost: f64,
    /// Least number of samples.
    pub min_samples: u64,
}

impl Limits {
    /// What `min_complete` is where nothing was asked for.
    pub const MIN_COMPLETE: f64 = 90.0;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min_complete: None,
            min_resolved: 90.0,
            max_lost: 5.0,
            min_samples: 30,
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, harms no conclusion.
    Note,
    /// Harms some conclusions.
    Warn,
    /// The recording is not fit for conclusions.
    Fail,
}

impl Level {
    /// As it is printed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was looked at: one word, with a dot and another for a part of it. The words never change.
    pub check: &'static str,
    /// What was found.
    pub text: String,
    /// What would put it right, each a command or an option with a few words.
    pub fixes: Vec<String>,
}

/// All findings.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The recording.
    pub path: String,
    /// What it was held against.
    pub limits: Limits,
    /// In a fixed order.
    pub findings: Vec<Finding>,
    /// What tells of files that they are those that were mapped, the heaviest first.
    pub files: Vec<FileProof>,
    /// The same as far as it is numbers.
    pub numbers: Numbers,
}

/// What programs ask a verdict for. Shares are parts of one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Numbers {
    /// Samples of all events.
    pub samples: u64,
    /// Samples that the kernel could not write.
    pub lost: u64,
    /// Share of complete stacks among those that were recorded to be walked; of chains that the kernel found, the share that
    /// reaches main or a thread's start. Nothing without stacks.
    pub complete: Option<f64>,
    /// Share of samples with a name.
    pub named: Option<f64>,
    /// Bytes of stack to record, where more would help.
    pub advised_stack_size: Option<u64>,
    /// Whether copies of stacks would do better than the frame pointers that were followed.
    pub advises_copies: bool,
    /// Whether its end is missing, as `-z` has it.
    pub advises_no_z: bool,
}

impl Verdict {
    /// Whether the recording is fit for conclusions; with `strict` a warning is enough against it.
    #[must_use]
    pub fn is_fit(&self, strict: bool) -> bool {
        let limit = if strict { Level::Warn } else { Level::Fail };
        self.findings.iter().all(|finding| finding.level < limit)
    }

    /// What speaks against it.
    pub fn failed(&self, strict: bool) -> impl Iterator<Item = &'static str> + '_ {
        let limit = if strict { Level::Warn } else { Level::Fail };
        let failed = self.findings.iter();
        failed.filter(move |f| f.level >= limit).map(|f| f.check)
    }
}

/// 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}
