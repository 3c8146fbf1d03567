//! Holds folders of programs in containers open while they live.
//!
//! When a container is gone, its own `/tmp` can still be read by who has it open; by a descriptor of its root it cannot, for that
//! shows the host's then. So a thread looks every tenth of a second for processes of other namespaces. Nothing is stopped or traced.
//! A process may mount another `/tmp` after it was first seen: each look compares.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open, openat};

use crate::find::{perf_map_name, seen_by, temporary_dump, temporary_folder};

/// Descriptors that are held at most.
const MOST: usize = 400;

/// A process of another namespace.
#[derive(Debug, Clone, Default)]
struct Foreign {
    /// Its number inside.
    inner: u32,
    /// Its folders, those that were seen last at the end.
    folders: Vec<Arc<OwnedFd>>,
    seen: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Held {
    processes: BTreeMap<u32, Foreign>,
    folders: HashMap<(u64, u64), Arc<OwnedFd>>,
}

/// A thread that looks.
pub(super) struct Keeper {
    held: Arc<Mutex<Held>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// What was held.
#[derive(Debug, Default)]
pub(super) struct Kept(BTreeMap<u32, Foreign>);

impl Keeper {
    /// Begins to look.
    pub(super) fn start() -> Self {
        const EVERY: Duration = Duration::from_millis(100);
        let held = Arc::new(Mutex::new(Held::default()));
        let (stop, stopped) = channel::<()>();
        let shared = Arc::clone(&held);
        let own = namespaces(Path::new("/proc/self"));
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let mut held = shared.lock().unwrap_or_else(PoisonError::into_inner);
                look(&mut held, own.as_ref());
            }
        });
        Self { held, stop, thread }
    }

    /// Looks once more, and ends.
    pub(super) fn end(self) -> Kept {
        drop(self.stop);
        // It cannot have panicked, and nothing is lost if it has.
        let _ = self.thread.join();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut held, namespaces(Path::new("/proc/self")).as_ref());
        Kept(std::mem::take(&mut held.processes))
    }
}

/// The mount and the pid namespace of a process.
fn namespaces(process: &Path) -> Option<(PathBuf, PathBuf)> {
    let link = |name: &str| fs::read_link(process.join("ns").join(name)).ok();
    Some((link("mnt")?, link("pid")?))
}

/// Opens folders of processes in other namespaces that were not open yet.
fn look(held: &mut Held, own: Option<&(PathBuf, PathBuf)>) {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        let process = entry.path();
        let Some(theirs) = namespaces(&process) else {
            continue;
        };
        if own == Some(&theirs) {
            continue;
        }
        for place in [process.join("cwd"), seen_by(&process, temporary_folder())] {
            keep(held, pid, &process, &place);
        }
    }
}

fn keep(held: &mut Held, pid: u32, process: &Path, place: &Path) {
    let Ok(meta) = fs::metadata(place) else {
        return;
    };
    let identity = (meta.dev(), meta.ino());
    let known = held.processes.get(&pid);
    if known.is_some_and(|known| known.seen.contains(&identity)) || !meta.is_dir() {
        return;
    }
    let folder = match held.folders.get(&identity) {
        Some(folder) => Arc::clone(folder),
        None if held.folders.len() >= MOST => return,
        None => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(folder) = open(place, flags, Mode::empty()) else {
                return;
            };
            let folder = Arc::new(folder);
            held.folders.insert(identity, Arc::clone(&folder));
            folder
        }
    };
    let foreign = held.processes.entry(pid).or_insert_with(|| Foreign {
        inner: inner_pid(process).unwrap_or(pid),
        ..Foreign::default()
    });
    foreign.folders.push(folder);
    foreign.seen.push(identity);
}

/// The number of a process in its own namespace.
pub(super) fn inner_pid(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}

impl Kept {
    /// Whether a process was of another namespace.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.0.contains_key(&pid)
    }

    /// The files that a process may have left in its folders, under its number inside: the map, the dump, and a dump of that name.
    pub(super) fn map(&self, pid: u32) -> Option<File> {
        let inner = self.0.get(&pid)?.inner;
        self.file(pid, Path::new(&perf_map_name(inner)))
    }

    /// The same for its dump.
    pub(super) fn dump(&self, pid: u32) -> Option<File> {
        let inner = self.0.get(&pid)?.inner;
        let dump = temporary_dump(inner);
        self.file(pid, Path::new(dump.file_name()?))
    }

    /// A regular file of this name, which is no path.
    pub(super) fn file(&self, pid: u32, name: &Path) -> Option<File> {
        let foreign = self.0.get(&pid)?;
        if name.components().count() != 1 || name.file_name().is_none() {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        foreign.folders.iter().rev().find_map(|folder| {
            // Looked at before it is opened: a FIFO would tell its writer that somebody reads.
            let seen = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            let kind = rustix::fs::FileType::from_raw_mode(seen.ok()?.st_mode);
            if kind != rustix::fs::FileType::RegularFile {
                return None;
            }
            let file = File::from(openat(folder, name, flags, Mode::empty()).ok()?);
            file.metadata()
                .is_ok_and(|meta| meta.is_file())
                .then_some(file)
        })
    }
}
