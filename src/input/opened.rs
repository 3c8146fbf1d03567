//! Which files this run has read, and who else may read them.
//!
//! In: every regular file that is opened for its content. Out: whether a file is one of them, and the rights that what is made
//! of them may have. For the whole process, because outputs must know all that was read, by whatever thread or recording:
//! `pjit fold -o jit-7.dump` once replaced the dump that it had just read.

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;

use super::identity;

#[derive(Default)]
struct Opened {
    files: FxHashSet<(u64, u64)>,
    rights: FxHashSet<Rights>,
}

static OPENED: Mutex<Option<Opened>> = Mutex::new(None);

fn opened() -> MutexGuard<'static, Option<Opened>> {
    // A thread that panicked left whole entries behind.
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a file was opened to be read.
pub fn note_opened(path: &Path, meta: &Metadata) {
    let mut opened = opened();
    let opened = opened.get_or_insert_default();
    opened.files.insert(identity(path, meta));
    opened.rights.insert(Rights::of(meta));
}

/// Opens a file that the user named as something to read beside the recording.
///
/// # Errors
/// What the system says.
pub fn open_named(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    note_opened(path, &file.metadata()?);
    Ok(file)
}

/// Whether the file was opened to be read, by whatever name.
#[must_use]
pub fn was_opened(path: &Path, meta: &Metadata) -> bool {
    let opened = opened();
    let files = opened.as_ref().map(|opened| &opened.files);
    files.is_some_and(|files| files.contains(&identity(path, meta)))
}

/// The rights that a file of this group may have which is made of all that was read.
#[must_use]
pub fn rights_of_opened(group: Option<u32>) -> u32 {
    let opened = opened();
    let rights = opened.iter().flat_map(|opened| &opened.rights);
    rights.fold(0o777, |all, one| all & one.for_copy(group)) | 0o600
}

/// Who may do what with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights {
    mode: u32,
    group: u32,
}

impl Rights {
    /// For nobody but the owner.
    pub const PRIVATE: Self = Self {
        mode: 0o600,
        group: 0,
    };

    /// For everybody to read: what is the same on all machines.
    pub const PUBLIC: Self = Self {
        mode: 0o644,
        group: 0,
    };

    /// Those of a file.
    #[cfg(unix)]
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            mode: meta.mode() & 0o777,
            group: meta.gid(),
        }
    }

    /// Those of a file; here there are none to tell.
    #[cfg(not(unix))]
    #[must_use]
    pub fn of(_: &Metadata) -> Self {
        Self {
            mode: 0o777,
            group: 0,
        }
    }

    /// The rights of a copy that belongs to this group, if that is known: another group than the file's may do what all others
    /// may do.
    #[must_use]
    pub fn for_copy(self, group: Option<u32>) -> u32 {
        if group == Some(self.group) {
            return self.mode;
        }
        self.mode & 0o707 | (self.mode & self.mode << 3 & 0o070)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shows_its_file_to_nobody_else() {
        let rights = |mode| Rights { mode, group: 5 };
        assert_eq!(rights(0o640).for_copy(Some(5)), 0o640);
        assert_eq!(rights(0o640).for_copy(Some(6)), 0o600);
        assert_eq!(rights(0o640).for_copy(None), 0o600);
        assert_eq!(rights(0o644).for_copy(Some(6)), 0o644);
        assert_eq!(rights(0o604).for_copy(Some(6)), 0o604);
    }
}
