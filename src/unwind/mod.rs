//! Unwinding user stacks from sampled registers and stack bytes.
//!
//! In: one sample's registers and stack copy, and a [`CodeSpace`] that tells what code lies where in the
//! process at that time. Out: return addresses, leaf first, and the reason why the walk ended.
//! Called by the parallel sample pass; knows no records and no symbols.

use crate::address::{Avma, FileOffset};
use crate::dso::{DsoId, elf::ElfFile};
use crate::session::jit::{JitCode, JitCodeId};

/// What the unwinder asks about the recorded process at the sample's time.
pub trait CodeSpace<'a> {
    /// What executable code, if any, lies at an address.
    fn locate(&self, at: Avma) -> Place<'_, 'a>;
}

/// The code at an address.
#[derive(Clone, Copy)]
pub enum Place<'s, 'a> {
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
        code: &'s JitCode<'a>,
        /// Offset in the entry.
        offset: u64,
    },
    /// Executable, but nobody said what it is.
    Anonymous,
}
