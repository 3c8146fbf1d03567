//! DSOs: what is mapped. Opens ELF files, debug files, the kernel's symbol tables.
//!
//! [`elf::ElfFile`] is one parsed file (segments, sections, build ID); [`DsoTable`] the DSOs of a run, whose
//! files are checked and opened (`files`) when first asked for, where [`crate::find`] says. [`symtab::SymbolTable`] holds the symbols
//! of one DSO by perf's rules (`util/symbol-elf.c`, `util/symbol.c`), with the names of PLT entries (`plt`) and perf's
//! choice among nested symbols (`rbtree`); [`kernel`] finds and reads kallsyms (`kallsyms`), vmlinux and modules; [`demangle`] makes names
//! readable, `originals` those of Haskell, Nim and D for people; [`go`] reads what Go programs say of themselves. Who was mapped where and when is the business of [`crate::session`].

#[cfg(test)]
pub(crate) mod build_elf;

pub mod d_names;
pub mod demangle;
pub mod elf;
mod entries;
mod evidence;
mod files;
mod fit;
pub mod go;
pub mod haskell;
mod kallsyms;
pub mod kernel;
mod kin;
mod misplaced;
pub mod nim;
pub(crate) mod originals;
mod packs;
mod plt;
mod preload;
mod rust_names;
mod same_path;
pub mod symtab;
mod table;
#[cfg(test)]
mod tests;
mod vdso;

pub use crate::build_id::BuildId;
pub use demangle::NameStyle;
pub use evidence::{Evidence, Inode, Span};
pub use files::FileTrouble;
pub(crate) use files::VDSO_32;
pub use fit::MappedPart;
pub use kallsyms::kallsyms_problem;
pub use kernel::{KernelIdentity, KernelReference, KernelState};
pub use kin::Kin;
pub use preload::Preloader;
pub use rust_names::crate_of_mangled;
pub use symtab::{Namesake, SymbolRef, SymbolTable};
pub use table::{Dso, DsoTable, KernelLoader};

crate::ids::numbers! {
    /// A DSO of the run, in the order of first appearance.
    pub struct DsoId(crate::ids::Spare);
}

/// What kind of thing is mapped; decides where its symbols come from and how addresses print.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DsoKind {
    /// `[kernel.kallsyms]`: identity addresses.
    Kernel,
    /// A kernel module, `[name]`: identity addresses.
    Module,
    /// BPF programs and other KSYMBOL ranges; named by their records.
    KernelSymbol,
    /// An ELF file (or any other file that was mapped executable).
    File,
    /// `[vdso]`.
    Vdso,
    /// Executable anonymous memory of one process, `[JIT] tid PID`: identity addresses, perf map.
    Anonymous,
    /// One jitdump; symbols are its code loads.
    JitDump,
    /// `[vsyscall]`, `[heap]`, `[uprobes]`, `[anon:…]` and the like: no symbols.
    Special,
}

impl DsoKind {
    /// Whether addresses in it are process addresses, not file offsets (perf's identity maps).
    #[must_use]
    pub const fn is_identity(self) -> bool {
        !matches!(self, Self::File | Self::Vdso)
    }
}
