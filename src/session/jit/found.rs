//! A file that may be a dump or a perf map: opened, and told from others.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::input::{Door, Identity, InputError, Store, living};

/// A file that was found.
pub(super) struct FoundFile<'a> {
    pub(super) path: PathBuf,
    pub(super) bytes: &'a [u8],
    /// Last change, nanoseconds since 1970.
    pub(super) modified: Option<u64>,
    /// Device and inode: the same file under two names is one.
    pub(super) identity: Identity,
}

/// Opens a regular file; `known` has the bytes of those that were opened before.
pub(super) fn open_file<'a>(
    store: &'a Store,
    door: &Door,
    known: impl Fn(Identity) -> Option<&'a [u8]>,
) -> Result<FoundFile<'a>, InputError> {
    let judged = store.open(door)?;
    let identity = judged.identity();
    let bytes = match known(identity) {
        Some(bytes) => bytes,
        None => store.map_judged(&judged)?,
    };
    let modified = judged.meta().modified().ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.and_then(|since| u64::try_from(since.as_nanos()).ok());
    Ok(FoundFile {
        path: door.path().to_owned(),
        bytes,
        modified,
        identity,
    })
}

#[cfg(test)]
impl<'a> FoundFile<'a> {
    /// A file that is nowhere.
    pub(super) fn of_test(bytes: &'a [u8]) -> Self {
        Self {
            path: PathBuf::new(),
            bytes,
            modified: None,
            identity: (0, 0),
        }
    }
}

impl FoundFile<'_> {
    /// Whether it is longer now than it was.
    pub(super) fn has_grown(&self) -> bool {
        living::has_grown(&self.path, self.bytes.len() as u64)
    }

    /// Whether a process that lives has it mapped, as runtimes have their dumps.
    pub(super) fn is_mapped_by(&self, pid: u32) -> bool {
        living::is_mapped_by(&self.path, self.identity, pid)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}
