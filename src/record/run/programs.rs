//! Programs and libraries held open while they are mapped, for what is gone when a recording ends: deleted ones, those in folders for
//! temporary files, those of containers.
//!
//! Names are those of the input. What is handed out is a regular ELF file that was mapped, by the kernel's word or by its build ID.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::build_id::BuildId;
use crate::dso::elf::ElfFile;
use crate::find::{left_behind, program_to_run, root_of, seen_by, temporary_folder};
use crate::input::{Judged, Store};

/// Files that are held at most.
const MOST: usize = 200;
/// What the kernel puts behind the name of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// A file that is held.
#[derive(Debug)]
struct Held {
    file: OwnedFd,
    identity: (u64, u64),
    /// Whether the kernel itself led to it, not a path.
    is_exact: bool,
}

/// Files that are held, by the paths at which processes have them.
#[derive(Debug, Default)]
pub(super) struct Programs {
    files: BTreeMap<Vec<u8>, Vec<Held>>,
    count: usize,
    /// How often a process was looked at since it became a program, and which.
    looks: HashMap<u32, (u32, PathBuf)>,
}

impl Programs {
    /// Looks at what a process has mapped: seldom, if it stays what it is.
    pub(super) fn look(&mut self, pid: u32, is_foreign: bool) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Ok(exe) = fs::read_link(process.join("exe")) else {
            return;
        };
        let (count, known) = self.looks.entry(pid).or_default();
        if *known != exe {
            (*count, *known) = (0, exe.clone());
        }
        *count = count.saturating_add(1);
        if !count.is_power_of_two() || self.count >= MOST {
            return;
        }
        let maps = fs::read(process.join("maps")).unwrap_or_default();
        let root = fs::read_link(root_of(pid)).unwrap_or_default();
        let root = root.as_os_str().as_bytes();
        let mut seen = BTreeSet::new();
        for line in maps.split(|&b| b == b'\n') {
            let Some((range, path)) = code_in_line(line) else {
                continue;
            };
            if !seen.insert(path) || !(is_foreign || is_fleeting(path)) {
                continue;
            }
            let own_path = below_root(path, root);
            let is_program = exe.as_os_str().as_bytes() == path;
            if let Some(held) = hold(&process, range, own_path, is_program) {
                // It was recorded with its name if it had that then.
                let plain_path = own_path.strip_suffix(DELETED).unwrap_or(own_path);
                let files = self.files.entry(plain_path.to_vec()).or_default();
                if self.count < MOST && files.iter().all(|other| other.identity != held.identity) {
                    files.push(held);
                    self.count += 1;
                }
            }
        }
    }

    /// The files that had this path, of these builds: each build once.
    pub(super) fn files(&self, path: &[u8], builds: &BTreeSet<BuildId>) -> Vec<(Judged, Build)> {
        let candidates = self.files.get(path.strip_suffix(DELETED).unwrap_or(path));
        let mut found: Vec<(Judged, Build)> = Vec::new();
        for held in candidates.into_iter().flatten() {
            let link = format!("/proc/self/fd/{}", held.file.as_raw_fd());
            let judged = program_to_run(Path::new(&link)).open().ok();
            let known = judged.and_then(|judged| {
                let build = build_of(&judged, builds, held.is_exact)?;
                Some((judged, build))
            });
            found.extend(known.filter(|(_, build)| found.iter().all(|(_, other)| other != build)));
        }
        found
    }
}

/// What a file's build is known by, if it has that.
pub(super) type Build = Option<BuildId>;

/// The range of addresses and the path of a line of `/proc/PID/maps`, if a file's code is there.
pub(super) fn code_in_line(line: &[u8]) -> Option<(&str, &[u8])> {
    let at = memchr::memchr(b'/', line)?;
    let front = std::str::from_utf8(&line[..at]).ok()?;
    let mut fields = front.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    rights.contains('x').then_some((range, &line[at..]))
}

/// A path of `/proc/PID/maps`, which is as we see it, as the process sees it whose root that is: so it is recorded.
fn below_root<'p>(path: &'p [u8], root: &[u8]) -> &'p [u8] {
    let below = path.strip_prefix(root);
    below.filter(|rest| rest.starts_with(b"/")).unwrap_or(path)
}

/// Whether a file of this machine will be gone soon, by its path.
pub(super) fn is_fleeting(path: &[u8]) -> bool {
    let folders = [
        Path::new("/var/tmp"),
        Path::new("/dev/shm"),
        temporary_folder(),
    ];
    let is_below = |folder: &Path| Path::new(OsStr::from_bytes(path)).starts_with(folder);
    path.ends_with(DELETED) || folders.into_iter().any(is_below)
}

/// Opens what a process has mapped there: the very file where the kernel lets us, else what has its path.
fn hold(process: &Path, range: &str, path: &[u8], is_program: bool) -> Option<Held> {
    let opened = |place: PathBuf, flags| {
        let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
        open(place, flags, Mode::empty()).ok()
    };
    let mapped = opened(process.join("map_files").join(range), OFlags::empty());
    let own = || is_program.then(|| opened(process.join("exe"), OFlags::empty()))?;
    let exact = mapped.or_else(own);
    let is_exact = exact.is_some();
    let file = exact.or_else(|| {
        let path = seen_by(process, Path::new(OsStr::from_bytes(path)));
        opened(path, OFlags::NOFOLLOW)
    })?;
    let file = File::from(file);
    let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
    Some(Held {
        identity: (meta.dev(), meta.ino()),
        file: file.into(),
        is_exact,
    })
}

/// The file that has this path on this machine, if it is of one of these builds.
pub(super) fn still_there(path: &Path, builds: &BTreeSet<BuildId>) -> Option<(Judged, Build)> {
    let judged = left_behind(path).open().ok()?;
    let build = build_of(&judged, builds, false)?;
    Some((judged, build))
}

/// The build of a file, if that is a program and one of these builds. One without a build ID only where the kernel led to it.
fn build_of(judged: &Judged, builds: &BTreeSet<BuildId>, is_exact: bool) -> Option<Build> {
    let store = Store::new();
    let bytes = store.map_judged(judged).ok()?;
    let build = ElfFile::parse(bytes, &store).ok()?.build_id();
    let is_it = match &build {
        Some(build) => builds.contains(build) || builds.is_empty() && is_exact,
        None => is_exact,
    };
    is_it.then_some(build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = b"7f00-7f10 r-xp 00000000 fe:00 12  /usr/lib/a b.so";
        assert_eq!(
            code_in_line(line),
            Some(("7f00-7f10", &b"/usr/lib/a b.so"[..]))
        );
        for none in [
            &b"7f00-7f10 rw-p 00000000 fe:00 12 /usr/lib/x.so"[..],
            b"7f00-7f10 r-xp 00000000 00:00 0 [vdso]",
            b"/",
            b"",
        ] {
            assert_eq!(code_in_line(none), None);
        }
    }

    #[test]
    fn paths_below_another_root() {
        let below = |path: &str, root: &str| {
            let path = below_root(path.as_bytes(), root.as_bytes());
            String::from_utf8(path.to_vec()).expect("text")
        };
        assert_eq!(below("/srv/j/app (deleted)", "/srv/j"), "/app (deleted)");
        // What was mapped before the root was changed.
        assert_eq!(below("/srv/jj/app", "/srv/j"), "/srv/jj/app");
        assert_eq!(below("/usr/lib/x.so", "/"), "/usr/lib/x.so");
        assert_eq!(below("/usr/lib/x.so", ""), "/usr/lib/x.so");
    }

    #[test]
    fn what_goes_soon() {
        for path in [
            "/tmp/go-build1/x",
            "/dev/shm/x",
            "/home/x (deleted)",
            "/memfd:a (deleted)",
        ] {
            assert!(is_fleeting(path.as_bytes()), "{path}");
        }
        for path in ["/usr/bin/x", "/tmpx/y", "/home/deleted"] {
            assert!(!is_fleeting(path.as_bytes()), "{path}");
        }
    }
}
