//! What systems call differently. Recordings are made on Linux; they are read elsewhere too.
//!
//! Linux is the measure. What others do not have is left out: names that are no UTF-8 are not found on Windows, and
//! nowhere else is there a running kernel, a vdso or a process that a recording could be of.

use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::path::Path;

/// A recorded name as the system takes it.
#[cfg(unix)]
#[must_use]
pub fn os_name(bytes: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// A recorded name as the system takes it; empty if it takes none such.
#[cfg(not(unix))]
#[must_use]
pub fn os_name(bytes: &[u8]) -> &OsStr {
    OsStr::new(str::from_utf8(bytes).unwrap_or_default())
}

/// Keeps a FIFO from blocking the open, and a terminal from becoming ours.
pub(super) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// What tells a file from every other, by whatever path it was reached.
#[cfg(unix)]
#[must_use]
pub fn identity(_: &Path, meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// What tells a file from every other, by whatever path it was reached.
#[cfg(not(unix))]
#[must_use]
pub fn identity(path: &Path, meta: &Metadata) -> (u64, u64) {
    use std::hash::BuildHasher;
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    (meta.len(), rustc_hash::FxBuildHasher.hash_one(real))
}

/// Whether it is a pipe.
pub(super) fn is_fifo(kind: FileType) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(not(unix))]
    return !kind.is_file() && !kind.is_dir() && !kind.is_symlink();
}

/// Whether it can be read once.
pub(super) fn is_stream(kind: FileType) -> bool {
    #[cfg(unix)]
    return is_fifo(kind) || std::os::unix::fs::FileTypeExt::is_socket(&kind);
    #[cfg(not(unix))]
    return is_fifo(kind);
}

/// The standard input as a file.
pub(super) fn stdin() -> std::io::Result<File> {
    #[cfg(unix)]
    let stdin = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned();
    #[cfg(windows)]
    let stdin = std::os::windows::io::AsHandle::as_handle(&std::io::stdin()).try_clone_to_owned();
    stdin.map(File::from)
}
