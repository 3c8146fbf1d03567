//! Holds folders of programs in containers and below other roots open while they live.
//!
//! When a container is gone, its own `/tmp` can still be read by who has it open; by a descriptor of its root it cannot, for that
//! shows the host's then. So a thread looks every tenth of a second for processes of other namespaces or roots. Nothing is stopped or traced.
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

use super::programs::Programs;
use crate::find::{perf_map_name, seen_by, temporary_dump, temporary_folder};
use crate::record::plan::Target;

/// Descriptors that are held at most.
const MOST: usize = 400;

/// A process of another namespace, or with another root.
#[derive(Debug, Clone, Default)]
struct Foreign {
    /// Its number inside.
    inner: u32,
    /// Whether it has other file systems.
    is_elsewhere: bool,
    /// Its folders, those that were seen last at the end.
    folders: Vec<Arc<OwnedFd>>,
    seen: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Held {
    processes: BTreeMap<u32, Foreign>,
    folders: HashMap<(u64, u64), Arc<OwnedFd>>,
    programs: Programs,
}

/// A thread that looks.
pub(super) struct Keeper {
    held: Arc<Mutex<Held>>,
    /// Processes whose programs are held, with those below them.
    roots: Vec<u32>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// What was held.
#[derive(Debug, Default)]
pub(super) struct Kept {
    processes: BTreeMap<u32, Foreign>,
    programs: Programs,
}

impl Keeper {
    /// Begins to look, of this machine's processes at those that are recorded.
    pub(super) fn start(target: &Target) -> Self {
        const EVERY: Duration = Duration::from_millis(100);
        let held = Arc::new(Mutex::new(Held::default()));
        let (stop, stopped) = channel::<()>();
        let shared = Arc::clone(&held);
        let own = Surroundings::of(Path::new("/proc/self"));
        let roots = match target {
            Target::Command(_) => vec![std::process::id()],
            Target::Processes(pids) => pids.clone(),
            Target::Machine => Vec::new(),
        };
        let watched = roots.clone();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let mut locked = shared.lock().unwrap_or_else(PoisonError::into_inner);
                look(&mut locked, own.as_ref(), &watched);
            }
        });
        Self {
            held,
            roots,
            stop,
            thread,
        }
    }

    /// Looks once more, and ends.
    pub(super) fn end(self) -> Kept {
        drop(self.stop);
        // It cannot have panicked, and nothing is lost if it has.
        let _ = self.thread.join();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = Surroundings::of(Path::new("/proc/self"));
        look(&mut held, own.as_ref(), &self.roots);
        Kept {
            processes: std::mem::take(&mut held.processes),
            programs: std::mem::take(&mut held.programs),
        }
    }
}

/// What decides which processes and which files a process sees.
#[derive(PartialEq, Eq)]
struct Surroundings {
    pids: PathBuf,
    mounts: PathBuf,
    /// Device and inode of its root, which `chroot` changes.
    root: (u64, u64),
}

impl Surroundings {
    fn of(process: &Path) -> Option<Self> {
        let link = |name: &str| fs::read_link(process.join("ns").join(name)).ok();
        let root = fs::metadata(seen_by(process, Path::new("/"))).ok()?;
        Some(Self {
            pids: link("pid")?,
            mounts: link("mnt")?,
            root: (root.dev(), root.ino()),
        })
    }

    fn has_same_files(&self, other: &Self) -> bool {
        self.mounts == other.mounts && self.root == other.root
    }
}

/// Opens folders of processes in other surroundings that were not open yet.
fn look(held: &mut Held, own: Option<&Surroundings>, roots: &[u32]) {
    for pid in with_children(roots) {
        held.programs.look(pid, false);
    }
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        let process = entry.path();
        let Some(theirs) = Surroundings::of(&process) else {
            continue;
        };
        if own == Some(&theirs) {
            continue;
        }
        for place in [process.join("cwd"), seen_by(&process, temporary_folder())] {
            keep(held, pid, &process, &place);
        }
        if own.is_some_and(|own| !own.has_same_files(&theirs)) {
            held.programs.look(pid, true);
            if let Some(foreign) = held.processes.get_mut(&pid) {
                foreign.is_elsewhere = true;
            }
        }
    }
}

/// Processes and all that they started, as far as those are not orphans.
fn with_children(roots: &[u32]) -> Vec<u32> {
    const MOST: usize = 1000;
    let mut all = roots.to_vec();
    let mut next = 0;
    while let Some(pid) = all.get(next).filter(|_| all.len() < MOST) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        let tasks = tasks.into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<u32> = lists
            .flat_map(|list| {
                let pids = list.split_whitespace().filter_map(|word| word.parse().ok());
                pids.collect::<Vec<u32>>()
            })
            .collect();
        all.extend(children);
        next += 1;
    }
    all
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
    /// Whether a process was of another namespace, or had another root.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// Whether it saw other files by the same paths.
    pub(super) fn is_elsewhere(&self, pid: u32) -> bool {
        self.processes
            .get(&pid)
            .is_some_and(|process| process.is_elsewhere)
    }

    /// Programs that were held.
    pub(super) const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The files that a process may have left in its folders, under its number inside: the map, the dump, and a dump of that name.
    pub(super) fn map(&self, pid: u32) -> Option<File> {
        let inner = self.processes.get(&pid)?.inner;
        self.file(pid, Path::new(&perf_map_name(inner)))
    }

    /// The same for its dump.
    pub(super) fn dump(&self, pid: u32) -> Option<File> {
        let inner = self.processes.get(&pid)?.inner;
        let dump = temporary_dump(inner);
        self.file(pid, Path::new(dump.file_name()?))
    }

    /// A regular file of this name, which is no path.
    pub(super) fn file(&self, pid: u32, name: &Path) -> Option<File> {
        let foreign = self.processes.get(&pid)?;
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
