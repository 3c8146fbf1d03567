//! What systems call differently. Recordings are made on Linux; they are read elsewhere too.
//!
//! Linux is the measure. What others do not have is left out: names that are no UTF-8 are not found on Windows, and
//! nowhere else is there a running kernel, a vdso or a process that a recording could be of.

use std::ffi::OsStr;
#[cfg(not(target_os = "linux"))]
use std::fs::OpenOptions;
use std::fs::{File, FileType, Metadata};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

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

/// Whether links go in circles, or go where none may be.
pub(super) fn is_loop(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::ELOOP);
    #[cfg(not(unix))]
    return error.kind() == std::io::ErrorKind::InvalidInput;
}

/// Keeps a FIFO from blocking the open, and a terminal from becoming ours.
#[cfg(not(target_os = "linux"))]
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

/// What a recording may tell of a file, and when it was changed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
    /// Its size.
    pub size: u64,
    /// How many names it has.
    pub links: u64,
    /// When its content, its name or its rights were changed last.
    pub changed: std::time::SystemTime,
    /// When its content was written last.
    pub written: std::time::SystemTime,
    /// When its inode was made, if the file system tells; links and new names do not change that.
    pub born: Option<std::time::SystemTime>,
}

/// When the file of this name was made, if its file system tells; a link is the file. std does not ask where the C library
/// is musl, as in packages.
#[cfg(target_os = "linux")]
#[must_use]
pub fn born(path: &Path) -> Option<SystemTime> {
    let at = AtFlags::SYMLINK_NOFOLLOW;
    stated(statx(CWD, path, at, StatxFlags::BTIME))
}

/// The same of an open file.
#[cfg(target_os = "linux")]
fn born_of(file: &File) -> Option<SystemTime> {
    let at = AtFlags::EMPTY_PATH;
    stated(statx(file, "", at, StatxFlags::BTIME))
}

#[cfg(target_os = "linux")]
fn stated(found: rustix::io::Result<rustix::fs::Statx>) -> Option<SystemTime> {
    let found = found.ok()?;
    let born = found.stx_btime;
    let is_told = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let since = Duration::new(u64::try_from(born.tv_sec).ok()?, born.tv_nsec);
    is_told.then(|| UNIX_EPOCH.checked_add(since)).flatten()
}

/// The same of an open file; nothing where files have no inodes.
#[cfg(target_os = "linux")]
#[must_use]
pub fn facts_of(file: &File, meta: &Metadata) -> Option<FileFacts> {
    use std::os::unix::fs::MetadataExt;
    let written = (meta.mtime(), meta.mtime_nsec());
    let changed = written.max((meta.ctime(), meta.ctime_nsec()));
    let time = |(seconds, nanoseconds): (i64, i64)| {
        let since = Duration::new(
            u64::try_from(seconds).ok()?,
            u32::try_from(nanoseconds).ok()?,
        );
        UNIX_EPOCH.checked_add(since)
    };
    Some(FileFacts {
        device: (libc::major(meta.dev()), libc::minor(meta.dev())),
        inode: meta.ino(),
        size: meta.len(),
        links: meta.nlink(),
        changed: time(changed)?,
        written: time(written)?,
        born: born_of(file),
    })
}

/// The same of an open file; nothing where files have no inodes.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn facts_of(_: &File, _: &Metadata) -> Option<FileFacts> {
    None
}

/// Name and kernel release of this machine.
#[must_use]
pub fn this_machine() -> Option<(String, String)> {
    let read = |name: &str| std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok();
    let [name, release] = [read("hostname")?, read("osrelease")?];
    Some((name.trim_end().to_owned(), release.trim_end().to_owned()))
}

/// Where an open file lies, without links.
pub(super) fn real_path(file: &File, path: &Path) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        let number = std::os::fd::AsRawFd::as_raw_fd(file);
        let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
        if let Ok(real) = link {
            return Some(real);
        }
    }
    let _ = file;
    path.canonicalize().ok()
}

/// Who may read and change a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) is_user: bool,
    pub(super) is_root: bool,
    /// Whether everybody may read it.
    pub(super) is_public: bool,
}

/// Whose file it is.
pub(super) fn owner(meta: &Metadata) -> Owner {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        Owner {
            is_user: meta.uid() == rustix::process::geteuid().as_raw(),
            is_root: meta.uid() == 0,
            is_public: meta.permissions().mode() & 0o004 != 0,
        }
    }
    #[cfg(not(unix))]
    {
        // Only the user's own files are left to tell by their places.
        let _ = meta;
        Owner {
            is_user: true,
            is_root: false,
            is_public: false,
        }
    }
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

#[cfg(test)]
mod tests {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn a_file_is_born_when_std_says() {
        use super::*;
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        let file = File::create_new(&path).expect("made");
        std::os::unix::fs::symlink("nowhere", &link).expect("made");
        let told = file.metadata().expect("it is there").created().ok();
        assert_eq!((born(&path), born_of(&file)), (told, told));
        assert_eq!(born(&link).is_some(), told.is_some());
        assert_eq!(born(&folder.path().join("none")), None);
    }
}
