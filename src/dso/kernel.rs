//! The kernel's symbols: kallsyms, vmlinux, module files.
//!
//! In: what the recording says of its kernel, and where to look. Out: symbols of the kernel and of its
//! modules at the addresses of the recording. Loaded in a thread of its own, since reading
//! /proc/kallsyms takes longer than anything else at the start.

use super::BuildId;
use crate::address::Avma;

/// What the recording tells about its kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelIdentity {
    /// `os_release` feature: `uname -r`.
    pub os_release: Option<String>,
    /// Build ID of `[kernel.kallsyms]` in the table of build IDs.
    pub build_id: Option<BuildId>,
}

/// Reference symbol of the kernel's map: `_text` or `_stext`, and where it was in the recorded kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReference {
    /// Name behind `[kernel.kallsyms]` in the map's name.
    pub symbol: Vec<u8>,
    /// `pgoff` of the map.
    pub address: Avma,
}
