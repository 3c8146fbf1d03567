//! The gate for files: every file that is named by input, or by the user, is looked at before it is opened.
//!
//! In: a [`Door`], which is a path with the rule for it: who named it, and which folder it must not leave. Out: a [`Judged`] file:
//! open, regular, with its identity (device, inode). Whoever uses a file uses this descriptor, so that nobody can put another file
//! in its place between the look and the use. SECURITY.md lists which kind of name goes by which rule.
//!
//! To open is to act: a writer waits behind a FIFO, a device rewinds its tape, reading `trace_pipe` empties it. So Linux is first
//! asked for a descriptor that opens nothing (`O_PATH`), and is left to follow links itself (`openat2`). Other systems open first
//! and look then.

use std::fs::{File, Metadata};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use super::{InputError, Refusal, os};

/// Device and inode: tells a file from every other, by whatever path it was reached.
pub type Identity = (u64, u64);

/// A path, and the rule by which it is opened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Door {
    path: PathBuf,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Rule {
    /// The user's word: links lead wherever they lead, and a FIFO that somebody writes to is read to its end.
    Named,
    /// The same for the recording, whose writer is waited for.
    Awaited,
    /// A fixed place of the running system, such as `/proc/kallsyms`.
    System,
    /// A name of the input on this machine: a regular file that is not the kernel's.
    Recorded,
    /// The same where the folder stands for `/`: links are followed as if it were.
    InRoot(PathBuf),
    /// The same below a folder: a link that leads out of it is refused.
    Beneath(PathBuf),
}

impl Door {
    /// A file that the user named.
    #[must_use]
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Rule::Named)
    }

    /// The recording that the user named; behind a FIFO it may yet have to begin.
    #[must_use]
    pub fn recording(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Rule::Awaited)
    }

    /// A file of the running system that pjit itself names.
    #[must_use]
    pub fn system(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Rule::System)
    }

    /// A file of this machine that the input names.
    #[must_use]
    pub fn recorded(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Rule::Recorded)
    }

    /// A file below a folder, by its name there.
    #[must_use]
    pub fn beneath(folder: &Path, name: impl AsRef<Path>) -> Self {
        Self::new(folder.join(name), Rule::Beneath(folder.to_owned()))
    }

    /// `path` (absolute, as recorded) under `root`, with links followed as if `root` were `/`, so that neither `..` nor a link
    /// leads outside. The empty root is the system itself. `None` when it does not exist or links go in circles.
    #[must_use]
    pub fn in_root(root: &Path, path: &Path) -> Option<Self> {
        if root.as_os_str().is_empty() {
            return Some(Self::recorded(path));
        }
        let inside = resolve(root, path)?;
        Some(Self::new(inside, Rule::InRoot(root.to_owned())))
    }

    fn new(path: impl Into<PathBuf>, rule: Rule) -> Self {
        Self {
            path: path.into(),
            rule,
        }
    }

    /// Where it leads, for messages and to tell candidates apart.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the user named the file, or the folder that stands for `/`.
    #[must_use]
    pub fn is_users(&self) -> bool {
        matches!(self.rule, Rule::Named | Rule::Awaited | Rule::InRoot(_))
    }

    /// Another file by the same rule.
    #[must_use]
    pub fn with_path(&self, path: PathBuf) -> Self {
        Self::new(path, self.rule.clone())
    }

    /// Whether there is a file behind it that may be opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.look().is_ok()
    }

    /// Opens the file for reading, if it is what the rule wants.
    ///
    /// # Errors
    /// When it is not there, or not regular, or the rule forbids it.
    pub fn open(&self) -> Result<Judged, InputError> {
        let (seen, meta) = self.look()?;
        let file = self
            .reopened(seen, &meta)
            .map_err(|error| self.trouble(error))?;
        Ok(Judged {
            identity: os::identity(&self.path, &meta),
            file,
            meta,
            door: self.clone(),
        })
    }

    /// The file, perhaps not open for reading yet, and what it is.
    fn look(&self) -> Result<(File, Metadata), InputError> {
        let seen = system::look(self).map_err(|error| self.trouble(error))?;
        let meta = seen.metadata().map_err(|e| InputError::io(&self.path, e))?;
        let kind = meta.file_type();
        let may_be_fifo = matches!(self.rule, Rule::Named | Rule::Awaited);
        if !(kind.is_file() || may_be_fifo && os::is_fifo(kind)) {
            return Err(InputError::NotRegular {
                path: self.path.clone(),
            });
        }
        let is_foreign = !matches!(self.rule, Rule::Named | Rule::Awaited | Rule::System);
        if is_foreign && system::is_the_kernels(&seen) {
            return Err(self.refused(Refusal::Kernel));
        }
        Ok((seen, meta))
    }

    /// The file that was seen, open for reading.
    fn reopened(&self, seen: File, meta: &Metadata) -> std::io::Result<File> {
        match system::reopen(&seen, meta.is_file(), self.rule == Rule::Awaited)? {
            Some(file) => Ok(file),
            None => {
                // Where no /proc is mounted, as in a bare root: the same way once more.
                let file = system::open_again(self)?;
                let again = file.metadata()?;
                let identity = |of| os::identity(&self.path, of);
                if identity(&again) == identity(meta) {
                    Ok(file)
                } else {
                    Err(std::io::Error::other("another file took its place"))
                }
            }
        }
    }

    /// The folder that links must not leave, and the way from there.
    fn bounds(&self) -> Option<(&Path, &Path)> {
        let (Rule::InRoot(folder) | Rule::Beneath(folder)) = &self.rule else {
            return None;
        };
        let inside = self.path.strip_prefix(folder).unwrap_or(&self.path);
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        Some((folder, inside))
    }

    fn trouble(&self, error: std::io::Error) -> InputError {
        let leads_out = error.kind() == std::io::ErrorKind::CrossesDevices;
        match self.rule {
            Rule::Beneath(_) | Rule::InRoot(_) if leads_out => self.refused(Refusal::Outside),
            Rule::Recorded if leads_out => self.refused(Refusal::Kernel),
            // `/proc/self/root/…`: a way that only the kernel knows.
            Rule::Recorded if os::is_loop(&error) && self.path.starts_with("/proc") => {
                self.refused(Refusal::Kernel)
            }
            _ => InputError::io(&self.path, error),
        }
    }

    fn refused(&self, why: Refusal) -> InputError {
        InputError::Refused {
            path: self.path.clone(),
            why,
        }
    }
}

/// An open file that its rule allows.
#[derive(Debug)]
pub struct Judged {
    file: File,
    meta: Metadata,
    identity: Identity,
    door: Door,
}

impl Judged {
    /// The descriptor.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// The descriptor alone.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// What the system says of it.
    #[must_use]
    pub const fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// Device and inode.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The way it was opened.
    #[must_use]
    pub const fn door(&self) -> &Door {
        &self.door
    }

    /// Bytes that may be read of it: its size, or without end where that says nothing (files of /proc, FIFOs).
    #[must_use]
    pub(super) fn limit(&self) -> u64 {
        match self.door.rule {
            Rule::Named | Rule::Awaited | Rule::System => u64::MAX,
            _ => self.meta.len(),
        }
    }
}

/// A file that was judged, to be read once more later.
#[derive(Clone, Debug)]
pub struct Kept {
    door: Door,
    identity: Identity,
    len: u64,
    modified: Option<SystemTime>,
    /// Kept open, as far as descriptors go.
    file: Option<std::sync::Arc<File>>,
}

impl Kept {
    /// Keeps what tells the file from others, and with `descriptor` the open file.
    #[must_use]
    pub fn of(judged: &Judged, descriptor: bool) -> Self {
        let file = descriptor.then(|| judged.file.try_clone().ok()).flatten();
        Self {
            door: judged.door.clone(),
            identity: judged.identity,
            len: judged.meta.len(),
            modified: judged.meta.modified().ok(),
            file: file.map(std::sync::Arc::new),
        }
    }

    /// Where it was found.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.door.path
    }

    /// Device and inode.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The very file that was judged.
    ///
    /// # Errors
    /// When it is no longer there, or another or a changed one is in its place.
    pub fn open(&self) -> Result<(File, Metadata), InputError> {
        let io = |error| InputError::io(&self.door.path, error);
        if let Some(file) = &self.file {
            let file = file.try_clone().map_err(io)?;
            let meta = file.metadata().map_err(io)?;
            return Ok((file, meta));
        }
        let judged = self.door.open()?;
        let modified = judged.meta.modified().ok();
        let found = (judged.identity, judged.meta.len(), modified);
        if found != (self.identity, self.len, self.modified) {
            return Err(self.door.refused(Refusal::Changed));
        }
        Ok((judged.file, judged.meta))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for Kept {}

/// Follows links by hand as if `root` were `/`.
fn resolve(root: &Path, path: &Path) -> Option<PathBuf> {
    const MAX_LINKS: usize = 40;
    let mut pending: Vec<Vec<u8>> = components(path);
    pending.reverse();
    let mut done = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == b".." {
            done.pop();
            continue;
        }
        let next = done.join(os::os_name(&part));
        match std::fs::read_link(root.join(&next)) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.is_absolute() {
                    done = PathBuf::new();
                }
                pending.extend(components(&target).into_iter().rev());
            }
            // What is left again need not be there.
            Err(e)
                if e.kind() == std::io::ErrorKind::NotFound
                    && !pending.iter().any(|later| later == b"..") =>
            {
                return None;
            }
            // Not a link (or not readable as one; then opening it will say so).
            Err(_) => done = next,
        }
    }
    Some(root.join(done))
}

fn components(path: &Path) -> Vec<Vec<u8>> {
    path.components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.as_encoded_bytes().to_vec()),
            Component::ParentDir => Some(b"..".to_vec()),
            _ => None,
        })
        .collect()
}

/// Linux: look without opening, let the kernel keep links inside.
#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fcntl_setfl, fstatfs, open, openat2};
    use rustix::io::Errno;

    use super::{Door, Rule, other};

    const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
    /// Keeps a FIFO from blocking the open, and a terminal from becoming ours.
    const QUIET: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

    /// A descriptor of the file that opens nothing.
    pub(super) fn look(door: &Door) -> io::Result<File> {
        walk(door, OFlags::PATH | OFlags::CLOEXEC)
    }

    /// The same file, open for reading; `None` where there is no /proc to do it with.
    pub(super) fn reopen(seen: &File, is_regular: bool, waits: bool) -> io::Result<Option<File>> {
        let path = format!("/proc/self/fd/{}", seen.as_raw_fd());
        let flags = if waits { READ } else { READ | QUIET };
        match open(path, flags, Mode::empty()) {
            Ok(file) => {
                // Once it is open, reading waits for who writes, and ends at once if nobody does.
                if !is_regular {
                    fcntl_setfl(&file, OFlags::empty())?;
                }
                Ok(Some(file.into()))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// By its path once more.
    pub(super) fn open_again(door: &Door) -> io::Result<File> {
        walk(door, READ | QUIET)
    }

    fn walk(door: &Door, flags: OFlags) -> io::Result<File> {
        let (from, path, resolve) = match &door.rule {
            Rule::Named | Rule::Awaited | Rule::System => {
                return Ok(open(&door.path, flags, Mode::empty())?.into());
            }
            Rule::Recorded => (None, door.path.as_path(), ResolveFlags::NO_MAGICLINKS),
            Rule::InRoot(_) | Rule::Beneath(_) => {
                let (folder, inside) = door.bounds().ok_or(io::ErrorKind::InvalidInput)?;
                let stay = match door.rule {
                    Rule::InRoot(_) => ResolveFlags::IN_ROOT,
                    _ => ResolveFlags::BENEATH,
                };
                (Some(folder), inside, stay | ResolveFlags::NO_MAGICLINKS)
            }
        };
        let folder = match from {
            Some(folder) => {
                let folder_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                Some(open(folder, folder_flags, Mode::empty())?)
            }
            None => None,
        };
        // The kernel asks for another try where folders are being renamed meanwhile.
        const TRIES: usize = 8;
        let mut found = Err(Errno::AGAIN);
        for _ in 0..TRIES {
            found = match &folder {
                Some(folder) => openat2(folder, path, flags, Mode::empty(), resolve),
                None => openat2(CWD, path, flags, Mode::empty(), resolve),
            };
            if !matches!(found, Err(Errno::AGAIN)) {
                break;
            }
        }
        match found {
            Ok(file) => Ok(file.into()),
            // Kernels before 5.6, and filters of system calls that do not know it.
            Err(Errno::NOSYS | Errno::PERM) => {
                let resolved = other::inside(door)?;
                Ok(open(resolved, flags | OFlags::NOFOLLOW, Mode::empty())?.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the file is made by the kernel when it is read, and reading it may do something: proc, sysfs, tracefs and
    /// the like (`include/uapi/linux/magic.h`).
    pub(super) fn is_the_kernels(seen: &File) -> bool {
        const MADE: [u64; 17] = [
            0x9fa0,      // proc
            0x6265_6572, // sysfs
            0x7472_6163, // tracefs
            0x6462_6720, // debugfs
            0x7363_6673, // securityfs
            0x0027_e0eb, // cgroup
            0x6367_7270, // cgroup2
            0xcafe_4a11, // bpf
            0x6165_676c, // pstore
            0x6265_6570, // configfs
            0xde5e_81e4, // efivarfs
            0xf97c_ff8c, // selinux
            0x4341_5d53, // smack
            0x4249_4e4d, // binfmt_misc
            0x6e73_6673, // nsfs
            0x6573_5543, // fusectl
            0x6e66_7364, // nfsd
        ];
        let kind = fstatfs(seen).map(|facts| facts.f_type as u64 & u64::from(u32::MAX));
        // A system that does not tell is no reason to open nothing.
        kind.is_ok_and(|kind| MADE.contains(&kind))
    }
}

/// Elsewhere: open, then look.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;

    use super::{Door, Rule, other};
    use crate::input::os;

    pub(super) fn look(door: &Door) -> io::Result<File> {
        match door.rule {
            Rule::Named | Rule::Awaited | Rule::System => File::open(&door.path),
            _ => {
                let path = other::inside(door)?;
                os::without_waiting(OpenOptions::new().read(true)).open(path)
            }
        }
    }

    pub(super) fn reopen(seen: &File, _is_regular: bool, _waits: bool) -> io::Result<Option<File>> {
        seen.try_clone().map(Some)
    }

    pub(super) fn open_again(door: &Door) -> io::Result<File> {
        look(door)
    }

    /// There is no such system of files.
    pub(super) fn is_the_kernels(_seen: &File) -> bool {
        false
    }
}

/// What the kernel does elsewhere, done by hand: links are resolved, and what they led to is compared with where it must be.
mod other {
    use std::io;
    use std::path::PathBuf;

    use super::{Door, Rule};

    /// The file that a path of the input leads to, without links.
    pub(super) fn inside(door: &Door) -> io::Result<PathBuf> {
        let outside = || io::ErrorKind::CrossesDevices.into();
        let real = door.path.canonicalize()?;
        let folder = match (&door.rule, door.bounds()) {
            (Rule::Recorded, _) | (_, None) => {
                let kernels = ["/proc", "/sys", "/dev/fd"];
                let is_kernels = kernels.iter().any(|folder| real.starts_with(folder));
                return if is_kernels { Err(outside()) } else { Ok(real) };
            }
            (_, Some((folder, _))) => folder.canonicalize()?,
        };
        if real.starts_with(folder) {
            Ok(real)
        } else {
            Err(outside())
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn why(door: &Door) -> Option<Refusal> {
        match door.open() {
            Err(InputError::Refused { why, .. }) => Some(why),
            Err(_) => None,
            Ok(_) => panic!("{door:?} was opened"),
        }
    }

    #[test]
    fn no_way_out_of_a_root() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("usr/lib")).expect("create");
        std::fs::write(dir.path().join("secret"), b"x").expect("write");
        std::fs::write(root.join("usr/lib/real.so"), b"x").expect("write");
        let link = |to: &str, at: &str| symlink(to, root.join(at)).expect("link");
        link("/usr/lib", "lib");
        link("../../../../../secret", "usr/lib/escape");
        link("real.so", "usr/lib/lib.so.1");
        link("loop", "loop");
        let at = |p: &str| Door::in_root(&root, Path::new(p));
        let real = || Some(root.join("usr/lib/real.so"));
        let path = |p: &str| at(p).map(|door| door.path);
        assert_eq!(path("/lib/lib.so.1"), real());
        assert_eq!(path("/../../usr/lib/real.so"), real());
        assert_eq!(path("/gone/too/../../usr/lib/real.so"), real());
        for nowhere in [
            "/../secret",
            "/gone/../../secret",
            "/usr/lib/escape",
            "/loop",
        ] {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
        let door = at("/lib/lib.so.1").expect("it is there");
        assert!(door.open().is_ok());
        // Another file takes its place: its link is followed inside, where there is none.
        std::fs::remove_file(root.join("usr/lib/real.so")).expect("removed");
        symlink(dir.path().join("secret"), root.join("usr/lib/real.so")).expect("link");
        assert!(door.open().is_err());
        let system = Door::in_root(Path::new(""), Path::new("/a/../b")).expect("a door");
        assert_eq!(system, Door::recorded("/a/../b"));
    }

    #[test]
    fn links_do_not_lead_out_of_a_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("folder");
        std::fs::create_dir_all(folder.join("inside")).expect("made");
        std::fs::write(dir.path().join("secret"), "x").expect("written");
        std::fs::write(folder.join("inside/file"), "x").expect("written");
        symlink("../secret", folder.join("out")).expect("link");
        symlink("..", folder.join("up")).expect("link");
        symlink("inside/file", folder.join("in")).expect("link");
        for name in ["in", "inside/file"] {
            assert!(Door::beneath(&folder, name).open().is_ok(), "{name}");
        }
        for name in ["out", "up/secret", "../secret", "/etc/passwd"] {
            let door = Door::beneath(&folder, name);
            assert_eq!(why(&door), Some(Refusal::Outside), "{name}");
        }
        // What the user names is the user's affair.
        assert!(Door::named(folder.join("out")).open().is_ok());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn files_of_the_kernel_are_not_the_inputs_to_open() {
        for name in ["/proc/self/pagemap", "/proc/self/root/etc/passwd"] {
            assert_eq!(why(&Door::recorded(name)), Some(Refusal::Kernel), "{name}");
        }
        assert!(Door::system("/proc/self/maps").open().is_ok());
        assert!(Door::named("/proc/self/maps").open().is_ok());
    }

    /// Whoever writes to a FIFO waits until somebody opens it, and dies when that one leaves.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_fifo_is_seen_and_not_opened() {
        use rustix::fs::{CWD, FileType, Mode, inotify, mknodat};
        let dir = tempfile::tempdir().expect("a folder");
        let fifo = dir.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("watching");
        inotify::add_watch(&watch, &fifo, inotify::WatchFlags::OPEN).expect("watched");
        let was_opened = || rustix::io::read(&watch, &mut [0; 4096]).is_ok();
        let doors = [
            Door::recorded(&fifo),
            Door::beneath(dir.path(), "fifo"),
            Door::in_root(dir.path(), Path::new("/fifo")).expect("it is there"),
        ];
        for door in doors {
            let opened = door.open();
            assert!(matches!(opened, Err(InputError::NotRegular { .. })));
        }
        assert!(!was_opened(), "somebody could have died of it");
        let named = std::thread::spawn(move || Door::recording(fifo).open());
        let path = dir.path().join("fifo");
        let writer = std::fs::File::options().write(true).open(path);
        let writer = writer.expect("somebody reads");
        let judged = named.join().expect("it ends").expect("it was named");
        assert_eq!(judged.limit(), u64::MAX);
        drop(writer);
        assert!(was_opened(), "it would have been noticed");
    }

    #[test]
    fn what_is_kept_is_the_file_that_was_judged() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        std::fs::write(&path, "judged").expect("written");
        let judged = Door::recorded(&path).open().expect("opened");
        let (with, without) = (Kept::of(&judged, true), Kept::of(&judged, false));
        assert!(without.open().is_ok());
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(dir.path().join("other"), "a secret").expect("written");
        symlink(dir.path().join("other"), &path).expect("link");
        let (file, _) = with.open().expect("still open");
        assert_eq!(std::io::read_to_string(file).expect("read"), "judged");
        let again = without.open();
        let is_changed = |e: &InputError| matches!(e, InputError::Refused { why, .. } if *why == Refusal::Changed);
        assert!(again.is_err_and(|e| is_changed(&e)));
    }
}
