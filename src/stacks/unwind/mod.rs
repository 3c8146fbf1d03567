//! Unwinding user stacks from sampled registers and stack bytes.
//!
//! In: one sample's registers and stack copy, and a [`CodeSpace`] that tells what code lies where in the
//! process at that time. Out: return addresses, leaf first, and the reason why the walk ended.
//! Called by the parallel sample pass; knows no records and no symbols.
//!
//! ```text
//! walk ──► trail: the last walk of the thread      two words compared for each frame that is still there
//!   ├────► memo: (file, offset) ─► rule            one hash lookup for nearly every other
//!   │        └─ miss: maker ─► cfi (find the FDE) ─► rows (all of its, as rules, once)
//!   │                     └──► jit (what is known of the code) ─► x86_64 | aarch64: candidates to try
//!   │                                                              └─ flow: what the code itself tells
//!   └─ rare: evaluate, expr (DWARF expressions), registers recovered on demand
//! ```
//!
//! A rule is sixteen bytes and tracks the stack pointer, the frame pointer and the return address
//! only. The few frames that need another register (a CFA in `rbx`, a DWARF expression) search
//! the frames below for the one that saved it. Rules from call frame information are trusted as
//! far as their result is executable; guesses (frame pointers, the top of the stack, the link
//! register) must also return behind a call instruction. A walk never goes on after a failure.
//!
//! Adding an architecture: one file that implements `arch::Architecture`, one line of `architectures!`.

mod aarch64;
mod arch;
mod arm;
mod cfi;
mod discover;
mod evaluate;
mod expr;
mod flow;
mod go;
mod hosted;
mod jit;
mod maker;
mod memo;
mod rows;
mod rules;
mod sizes;
mod stack;
#[cfg(test)]
mod tests;
mod trail;
mod walk;
mod x86;
mod x86_64;

use std::ops::Range;
use std::sync::Arc;

use self::arch::Architecture;
use crate::address::{Avma, FileOffset, Timestamp};
use crate::arch::Arch;
use crate::dso::{DsoId, elf::ElfFile};
use crate::ids::{Spare, ThreadId, numbers};
use crate::jit::{JitCode, JitCodeId};
use crate::perfdata::Registers;
use crate::session::SpaceId;
use crate::stack_end::StackEnd;

pub use cfi::CfiTables;
pub use sizes::{Met, frame_sizes};

/// What the unwinder asks about the recorded process at the sample's time.
pub trait CodeSpace<'a> {
    /// What executable code, if any, lies at an address.
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a>;

    /// [`locate`](Self::locate), and when it would answer the same in the same [`Scene`].
    fn locate_for(&self, at: Avma) -> Lookup<'_, 'a> {
        Lookup {
            place: self.locate(at),
            life: Lifetime::NEVER,
            noted: None,
        }
    }

    /// Takes a note of the place that lies at an address, which [`locate_for`](Self::locate_for) may tell when it is asked for
    /// the address again. What lies there may be something else by then.
    fn note(&self, at: Avma, place: FramePlaceId) {
        let _ = (at, place);
    }

    /// That address will be asked for soon, or another one.
    fn expect(&self, at: Avma) {
        let _ = at;
    }

    /// Whose code it is, and at which time. With `None` every walk stands for itself.
    fn scene(&self) -> Option<Scene> {
        None
    }

    /// The file range of the function around a position, from the symbol table if that costs
    /// little. Asked only for code without call frame information, such as V8's embedded builtins, once
    /// per position; makes function entries and frameless code exact.
    fn function_bounds(&self, dso: DsoId, at: FileOffset) -> Option<Range<FileOffset>> {
        let _ = (dso, at);
        None
    }

    /// Whether a file is the kernel's own, the vdso.
    fn is_vdso(&self, dso: DsoId) -> bool {
        let _ = dso;
        false
    }

    /// Whether a return probe put this address in the place of another.
    fn is_return_probe(&self, at: Avma) -> bool {
        let _ = at;
        false
    }

    /// The address in whose place the `nth` such address from the top of the stack is, if that is known.
    fn behind_return_probe(&self, nth: usize) -> Option<Avma> {
        let _ = nth;
        None
    }

    /// From the stack pointer in calls to the frame pointer, if that is known of a piece of code that keeps frame pointers.
    fn frame_size(&self, code: JitCodeId) -> Option<u64> {
        let _ = code;
        None
    }

    /// The executable mappings of files with `part` in their names (without folder), by address. Asked
    /// rarely: for JIT code that runs in the frame of a function of its host.
    fn mapped_files(&self, part: &[u8]) -> Vec<CodeLocation<'_, 'a>> {
        let _ = part;
        Vec::new()
    }
}

/// What lies at an address.
#[derive(Clone, Copy)]
pub struct Lookup<'s, 'a> {
    /// The code there.
    pub place: CodeLocation<'s, 'a>,
    /// When it lies there as long as the mappings stay what they are.
    pub life: Lifetime,
    /// What was last [noted](CodeSpace::note) for the address, if it is still known.
    pub noted: Option<FramePlaceId>,
}

/// Whose stack is unwound, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scene {
    /// A process and a state of its mappings.
    pub space: SpaceId,
    /// The thread.
    pub thread: ThreadId,
    /// Time of the sample.
    pub time: Timestamp,
}

/// When something holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// From then on.
    pub from: Timestamp,
    /// Until then; not any more at that time.
    pub to: Timestamp,
}

impl Lifetime {
    /// Nobody knows when.
    pub const NEVER: Self = Self {
        from: Timestamp(0),
        to: Timestamp(0),
    };
    /// As long as the recording lasts.
    pub const ALWAYS: Self = Self {
        from: Timestamp(0),
        to: Timestamp(u64::MAX),
    };

    /// When both hold.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            to: self.to.min(other.to),
        }
    }

    /// Whether it holds at a time.
    #[must_use]
    pub fn contains(&self, time: Timestamp) -> bool {
        self.from <= time && time < self.to
    }
}

/// The code at an address.
#[derive(Clone, Copy)]
pub enum CodeLocation<'s, 'a> {
    /// Nothing executable is mapped there.
    Nothing,
    /// A mapped file. `binary` is the file that was mapped (when found and its build ID fits), `debug`
    /// the one that holds `.debug_frame` (may be the same).
    File {
        /// Identity of the file for memoised rules.
        dso: DsoId,
        /// Position in the file.
        offset: FileOffset,
        /// The mapped file.
        binary: Option<&'s ElfFile<'a>>,
        /// The file with DWARF.
        debug: Option<&'s ElfFile<'a>>,
    },
    /// JIT code from a dump or a perf map.
    Jit {
        /// Identity for memoised rules.
        id: JitCodeId,
        /// The entry: bytes, unwinding record, producer.
        code: JitCode<'s, 'a>,
        /// Offset in the entry.
        offset: u64,
    },
    /// Executable, but nobody said what it is.
    Anonymous,
}

/// [`CodeLocation`] without the borrowed parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum FramePlace {
    /// Nothing executable is mapped there (only a leaf can be that).
    Nothing,
    /// Position in a mapped file.
    File {
        /// The file.
        dso: DsoId,
        /// Of the frame's lookup address.
        offset: FileOffset,
    },
    /// Position in JIT code.
    Jit {
        /// The code.
        id: JitCodeId,
        /// Of the frame's lookup address.
        offset: u64,
    },
    /// Executable memory that nobody described.
    Anonymous,
}

impl CodeLocation<'_, '_> {
    #[inline]
    fn frame_place(&self) -> FramePlace {
        match *self {
            Self::Nothing => FramePlace::Nothing,
            Self::File { dso, offset, .. } => FramePlace::File { dso, offset },
            Self::Jit { id, offset, .. } => FramePlace::Jit { id, offset },
            Self::Anonymous => FramePlace::Anonymous,
        }
    }
}

/// Whose frame the frame pointer leads to within a function. A chain of frame pointers goes on from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FramePointer {
    /// Its own, as far as is known: the next address is in its caller.
    Own,
    /// No frame information describes the function, as is so with much assembly, the C library's `memcpy` for one.
    Unknown,
    /// That of its caller, for the function has not set up one (a leaf may never do so): the next address is in its caller's caller.
    Callers,
    /// The function keeps something else in the register, and what it held on the stack.
    Other,
}

/// How a frame was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FrameOrigin {
    /// The sampled instruction pointer.
    Ip,
    /// Call frame information of a file or of a JIT record.
    Cfi,
    /// The registers that the kernel saved for a signal handler.
    Signal,
    /// The chain of frame pointers.
    FramePointer,
    /// The chain of frame pointers, past frames of code that keeps none.
    PastFrames,
    /// The top of the stack or the link register: code that has not built a frame (yet, any more).
    Frameless,
    /// The stack height at this instruction, decoded from the code's first instructions.
    Prologue,
}

numbers! {
    /// A place in code, the same whenever an unwinder meets it again: an index into whatever its caller keeps by place.
    pub struct FramePlaceId(Spare);
}

/// One frame of a user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserFrame {
    /// The address to look up: the ip of the leaf and of frames that a signal interrupted, the byte
    /// before the return address otherwise.
    pub lookup: Avma,
    /// The place. Nothing in [`CodeLocation::Nothing`] and [`CodeLocation::Anonymous`], and in 32-bit processes on a 64-bit
    /// machine.
    pub id: Option<FramePlaceId>,
    /// How it was found.
    pub origin: FrameOrigin,
}

/// The registers that calls keep, without the frame pointer (x86-64: rbx, r12 to r15; aarch64: x19 to x28), as far as known.
pub type KeptRegisters = [Option<u64>; 10];

/// Where a frame of a walk lay on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The stack pointer when its callee returns to it.
    pub sp: Avma,
    /// The frame pointer register then, if it is known.
    pub fp: Option<u64>,
    /// Whether `sp` is that stack pointer indeed; of frames that were interrupted it says where they were, not what they are.
    pub is_exact: bool,
}

/// Makes what there is once for each architecture; `$d` is a dollar for the macro in it.
macro_rules! architectures {
    ($d:tt $($name:ident => $type:ty,)+) => {
        /// The stack pointer of a sample.
        #[must_use]
        pub fn stack_pointer(arch: Arch, regs: &Registers<'_>) -> Option<Avma> {
            let sp = match arch {
                $(Arch::$name => <$type>::register(regs, <$type>::SP),)+
            };
            sp.map(Avma)
        }

        // One value per thread: the size of the larger variant is no concern, boxing would cost a hop per call.
        enum Inner<'a> {
            $($name(walk::Walker<'a, $type>),)+
        }

        impl<'a> Inner<'a> {
            fn new(arch: Arch, tables: Arc<CfiTables<'a>>) -> Self {
                match arch {
                    $(Arch::$name => Self::$name(walk::Walker::new(tables)),)+
                }
            }
        }

        /// What the walker of an architecture answers, or what holds without one.
        macro_rules! walker {
            ($d inner:expr, $d walker:ident => $d answer:expr, else $d otherwise:expr) => {
                match $d inner {
                    $(Some(Inner::$name($d walker)) => $d answer,)+
                    None => $d otherwise,
                }
            };
        }
    };
}

architectures! { $
    X86_64 => x86_64::X86_64,
    Aarch64 => aarch64::Aarch64,
    X86 => x86::X86,
    Arm => arm::Arm,
}

/// See [`arm::probe`].
#[doc(hidden)]
pub fn probe_arm(data: &[u8]) {
    arm::probe(data);
}

/// The user state of a sample.
#[derive(Clone, Copy, Debug)]
pub struct UserState<'b> {
    /// User registers as recorded.
    pub regs: Registers<'b>,
    /// The copy of the stack from the stack pointer upwards, cut to the bytes that the kernel wrote.
    pub stack: &'b [u8],
}

/// Unwinds samples; one for each worker thread. Holds the rules met so far, for all processes.
pub struct Unwinder<'a> {
    /// Nothing for a machine whose stacks nobody here can unwind.
    inner: Option<Inner<'a>>,
    arch: Option<Arch>,
    tables: Arc<CfiTables<'a>>,
    /// For the 32-bit processes of a 64-bit machine, once there is one.
    narrow: Option<Inner<'a>>,
    /// Whether the last walk was that one's.
    is_narrow: bool,
}

/// `PERF_SAMPLE_REGS_ABI_32`: the registers of a 32-bit process.
const ABI_32: u64 = 1;

impl<'a> Unwinder<'a> {
    /// An unwinder that shares what it learns about files, not about rules, with others. Without an architecture all its
    /// walks end before they begin.
    #[must_use]
    pub fn new(arch: Option<Arch>, tables: Arc<CfiTables<'a>>) -> Self {
        Self {
            inner: arch.map(|arch| Inner::new(arch, Arc::clone(&tables))),
            arch,
            tables,
            narrow: None,
            is_narrow: false,
        }
    }

    /// The walker for registers of an ABI.
    fn walker_for(&mut self, abi: u64) -> &mut Option<Inner<'a>> {
        let narrow = self.arch.and_then(Arch::narrow);
        self.is_narrow = abi == ABI_32 && narrow.is_some();
        if !self.is_narrow {
            return &mut self.inner;
        }
        if self.narrow.is_none() {
            let new = |arch| Inner::new(arch, Arc::clone(&self.tables));
            self.narrow = narrow.map(new);
        }
        &mut self.narrow
    }

    /// The walker of the last walk.
    const fn last(&self) -> &Option<Inner<'a>> {
        if self.is_narrow {
            &self.narrow
        } else {
            &self.inner
        }
    }

    /// Whether it can unwind stacks of the machine at all.
    #[must_use]
    pub const fn knows_machine(&self) -> bool {
        self.inner.is_some()
    }

    /// Unwinds one sample: clears `out`, then appends at most `max_frames` frames, leaf first.
    pub fn walk<S: CodeSpace<'a>>(
        &mut self,
        state: &UserState<'_>,
        code: &S,
        max_frames: usize,
        out: &mut Vec<UserFrame>,
    ) -> StackEnd {
        out.clear();
        let inner = self.walker_for(state.regs.abi);
        let end = walker!(inner, walker => walker.walk(state, code, max_frames, out), else StackEnd::NoRegisters);
        if self.is_narrow {
            // Its numbers are not those of the other walker's places.
            out.iter_mut().for_each(|frame| frame.id = None);
        }
        end
    }

    /// The caller of the leaf in a recording with frame-pointer chains and a sampled link register
    /// (`perf record --call-graph fp` on aarch64): the chain of frame records lacks it while the
    /// function has not saved the link register. Call frame information tells; without it the register
    /// must lead behind a call outside the function and not to `recorded`, the next address of the chain.
    /// The result is the return address minus one, as perf inserts it; `None` on machines without
    /// link register.
    pub fn leaf_caller<S: CodeSpace<'a>>(
        &mut self,
        ip: Avma,
        regs: &Registers<'_>,
        recorded: Option<Avma>,
        code: &S,
    ) -> Option<Avma> {
        walker!(&mut self.inner, walker => walker.leaf_caller(ip, regs, recorded, code), else None)
    }

    /// Where a chain of frame pointers goes on from an address, an ip or that of a call, as call frame information says.
    pub fn frame_pointer<S: CodeSpace<'a>>(&mut self, at: Avma, code: &S) -> FramePointer {
        walker!(&mut self.inner, walker => walker.frame_pointer(at, code), else FramePointer::Own)
    }

    /// Whether a return address may be one: code lies there, and no instruction in front of it says that it is no call.
    pub fn is_behind_call<S: CodeSpace<'a>>(&mut self, at: Avma, code: &S) -> bool {
        walker!(&mut self.inner, walker => walker.is_behind_call(at, code), else true)
    }

    /// Whether a return address follows the call of a function that has frame information, as far as the instruction tells what
    /// it calls: the target of a stub or a register is not known.
    pub fn is_described_call<S: CodeSpace<'a>>(&mut self, behind: Avma, code: &S) -> bool {
        walker!(&mut self.inner, walker => walker.is_described_call(behind, code), else false)
    }

    /// Stack pointers of the leaf and of the outermost frame that the last [`walk`](Self::walk) met: between them
    /// lies what it needed of the stack. `None` without a stack pointer to start from.
    #[must_use]
    pub fn span(&self) -> Option<(Avma, Avma)> {
        walker!(self.last(), walker => walker.span(), else None)
    }

    /// What the registers that calls keep held in the frame so many frames outside of the leaf, when its callee returned to it.
    pub fn registers_at<S: CodeSpace<'a>>(
        &mut self,
        state: &UserState<'_>,
        code: &S,
        depth: usize,
    ) -> Option<KeptRegisters> {
        let inner = self.walker_for(state.regs.abi);
        walker!(inner, walker => walker.registers_at(state, code, depth), else None)
    }

    /// What the last [`walk`](Self::walk) in a scene knew of the registers in each of its frames, leaf first.
    pub fn activations(
        &self,
        scene: &Scene,
    ) -> impl DoubleEndedIterator<Item = Activation> + ExactSizeIterator + '_ {
        let marks = walker!(self.last(), walker => walker.marks(scene), else &[]);
        marks.iter().map(|mark| Activation {
            sp: Avma(mark.sp),
            fp: mark.fp,
            is_exact: mark.sp_exact && !mark.leaf,
        })
    }

    /// Whether the last [`walk`](Self::walk) ended at code that no frame information describes.
    #[must_use]
    pub fn ended_by_guess(&self) -> bool {
        walker!(self.last(), walker => walker.ended_by_guess(), else false)
    }

    /// What it knows of files, for other unwinders.
    #[must_use]
    pub fn tables(&self) -> Arc<CfiTables<'a>> {
        Arc::clone(&self.tables)
    }

    /// Keeps what another recording may use, and says of which files that is, ordered. Where code was made at run time, rules go with it.
    pub fn forget_recording(&mut self, has_code: bool) -> Vec<DsoId> {
        if has_code {
            let new = |arch| Inner::new(arch, Arc::clone(&self.tables));
            (self.inner, self.narrow) = (self.arch.map(new), None);
        }
        let of =
            |inner: &Option<Inner<'a>>| walker!(inner, walker => walker.files(), else Vec::new());
        let mut files = of(&self.inner);
        files.extend(of(&self.narrow));
        files.extend(self.tables.forget_code());
        files.sort_unstable();
        files.dedup();
        walker!(&mut self.inner, walker => walker.forget_walks(), else ());
        walker!(&mut self.narrow, walker => walker.forget_walks(), else ());
        files
    }

    /// How many places were met so far.
    #[must_use]
    pub fn place_count(&self) -> usize {
        walker!(&self.inner, walker => walker.place_count(), else 0)
    }
}
