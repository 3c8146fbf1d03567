//! The only door to the file system: opens files, maps them, keeps their bytes alive.
//!
//! Everything pjit reads is foreign: a path out of a recording may name a FIFO, a device or a
//! directory. A [`Door`] looks before it opens, and nothing is ever written but a nameless temporary file
//! ([`Spill`]) for what large streams leave behind.
//!
//! The [`Store`] owns every mapped file and every decompressed buffer for the length of a run and
//! hands out plain slices, so that readers borrow and never copy.

use std::path::{Path, PathBuf};

#[doc(hidden)]
pub mod find;
mod gate;
mod ledger;
pub mod living;
mod local_time;
mod opened;
mod os;
mod prefetch;
mod recording;
mod recordings;
mod source;
mod spill;
mod spool;
mod store;
mod story;
mod window;
pub use gate::{Door, Identity, Judged, Kept};
pub use ledger::{Ledger, Origin, Role, Use};
pub use local_time::local_time;
pub use opened::{Rights, note_opened, open_named, rights_of_opened, was_opened};
#[cfg(target_os = "linux")]
pub use os::born;
pub use os::{FileFacts, facts_of, identity, os_name, this_machine};
pub use prefetch::prefetch;
pub use recording::{Opened, is_fifo, open_recording, stdin_is_fifo};
pub use recordings::{
    FolderError, MAGIC, can_be_read_again, expand, is_recording_at, newest_recorded,
    recording_size, told_apart, written,
};
pub use source::{FoundBy, SourceClaim};
pub use spill::Spill;
pub use store::Store;
pub use story::Story;
pub use window::Window;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The operating system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not a regular file (a directory, FIFO, device or socket).
    #[error("{}: not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// There, but not for the one that named it.
    #[error("{}: {}", path.display(), why.text())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What speaks against it.
        why: Refusal,
    },
}

/// Why a file was not opened that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// A link led out of the folder in which it was looked for.
    Outside,
    /// It is made by the kernel, and to read it may do something.
    Kernel,
    /// It is not the file that was read before.
    Changed,
}

impl Refusal {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Outside => {
                "a link leads out of the folder in which it was looked for; not opened"
            }
            Self::Kernel => "a file that the kernel makes (proc, sysfs, tracefs); not opened",
            Self::Changed => "was changed while it was read",
        }
    }
}

impl InputError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the file simply is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }
}

/// The files of a directory, sorted by name; none when it cannot be read. Bounded, as the directory may
/// be anyone's.
#[must_use]
pub fn files_in(directory: &Path) -> Vec<PathBuf> {
    const MAX_FILES: usize = 100_000;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.take(MAX_FILES).map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// The number of a file of a recording's folder, as `perf record --threads` names them: `data.0`, `data.1`.
#[must_use]
pub fn data_number(file: &Path) -> Option<u32> {
    let name = file.file_name()?.to_str()?.strip_prefix("data.")?;
    name.parse().ok()
}

/// The folder beside a recording that stands for `/`, if there is one. A link is none: it may lead to any folder of this machine.
#[must_use]
pub fn own_root(folder: &Path) -> Option<PathBuf> {
    let root = folder.join(BUNDLE_ROOT);
    let meta = std::fs::symlink_metadata(&root);
    meta.is_ok_and(|meta| meta.is_dir()).then_some(root)
}

/// Whether a path is a link itself.
#[must_use]
pub fn is_link(path: &Path) -> bool {
    path.is_symlink()
}

/// What `pjit bundle` packed together with a recording: nothing of this machine is used instead of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundled {
    /// The folder that stands for `/`.
    pub root: PathBuf,
    /// Where the kernel's symbols came from, or why there are none.
    pub kernel: String,
}

impl Bundled {
    /// What is in the folder of a recording, if it is a bundle's.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        use std::io::Read;
        /// Of the list; the lines that count come first.
        const FRONT: u64 = 4096;
        if is_link(&folder.join(BUNDLE_ROOT)) {
            return None;
        }
        let list = Door::beneath(folder, BUNDLE_LIST).open().ok()?;
        let mut front = Vec::new();
        list.file().take(FRONT).read_to_end(&mut front).ok()?;
        let text = String::from_utf8_lossy(&front);
        let mut lines = text.strip_prefix(BUNDLE_MARK)?.lines();
        let kernel = lines.find_map(|line| line.strip_prefix(BUNDLE_KERNEL));
        Some(Self {
            root: folder.join(BUNDLE_ROOT),
            kernel: kernel.unwrap_or_default().to_owned(),
        })
    }
}

/// The file that tells what is in a bundle.
pub const BUNDLE_LIST: &str = "bundle.txt";
/// How it begins.
pub const BUNDLE_MARK: &str = "pjit bundle 1\n";
/// Its line about the kernel's symbols.
pub const BUNDLE_KERNEL: &str = "kernel symbols: ";
/// The folder in a bundle that stands for `/`.
pub const BUNDLE_ROOT: &str = "symfs";
