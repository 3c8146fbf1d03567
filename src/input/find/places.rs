//! The places that options and the recording name, and what stands for `/`.

use std::path::{Path, PathBuf};

use super::debuginfod;
use crate::build_id::BuildId;
use crate::input::{Bundled, Door, os_name, own_root};

/// Places and choices for finding files; everything that options, configuration and environment say.
/// Relative paths are relative to the current directory.
#[derive(Clone, Debug, Default)]
pub struct SearchPaths {
    /// `--symfs DIR`: put in front of every path; nothing outside is used for user files.
    pub symfs: Option<PathBuf>,
    /// The same once more: other roots of processes that ran in containers.
    pub more_symfs: Vec<PathBuf>,
    /// Which of these folders hold all files side by side (`--symfs DIR,flat`): a file is known by the last part of its path.
    pub flat_symfs: Vec<PathBuf>,
    /// The build-ID cache, `~/.debug` or `--buildid-dir`. `None`: not used.
    pub buildid_dir: Option<PathBuf>,
    /// The cache of debuginfod's client. `None`: not used.
    pub debuginfod: Option<PathBuf>,
    /// The folder that holds the recording. A `symfs/` in it is searched before the system, and
    /// `kallsyms` or `kallsyms.gz` in it are the recorded kernel's symbols.
    pub recording_dir: Option<PathBuf>,
    /// `--kallsyms FILE`
    pub kallsyms: Option<PathBuf>,
    /// `-k FILE`, `--vmlinux FILE`
    pub vmlinux: Option<PathBuf>,
    /// `--ignore-vmlinux`: a vmlinux is not looked for (and not used when given).
    pub ignore_vmlinux: bool,
    /// `-m`, `--modules`: module files go before kallsyms for the symbols of modules (else only where
    /// kallsyms has none).
    pub modules: bool,
    /// `--jitdump FILE_OR_DIR`
    pub jitdumps: Vec<PathBuf>,
    /// `--perf-map FILE_OR_DIR`
    pub perf_maps: Vec<PathBuf>,
    /// `--wasm FILE_OR_DIR`
    pub wasm: Vec<PathBuf>,
    /// `--cwasm FILE_OR_DIR`
    pub cwasm: Vec<PathBuf>,
    /// `--source-map DIR`: also asks for original places in names.
    pub source_maps: Vec<PathBuf>,
    /// What came with the recording from another machine (`pjit bundle`), if that is where `symfs` is.
    pub bundle: Option<Bundled>,
}

/// A place where a file may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    path: PathBuf,
    door: Option<Door>,
}

impl Place {
    /// An absolute path below a folder that stands for `/`, or of the system itself if that is empty.
    pub(super) fn in_root(root: &Path, path: &Path) -> Self {
        let door = Door::in_root(root, path);
        let path = match &door {
            Some(door) => door.path().to_owned(),
            None => root.join(path.strip_prefix("/").unwrap_or(path)),
        };
        Self { path, door }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The way there; none where nothing is below a folder that stands for `/`.
    pub(crate) fn into_door(self) -> Option<Door> {
        self.door
    }
}

impl From<Door> for Place {
    fn from(door: Door) -> Self {
        Self {
            path: door.path().to_owned(),
            door: Some(door),
        }
    }
}

impl SearchPaths {
    /// The same for a recording in this folder. In a bundle, `/` is what came with it unless the user says otherwise.
    #[must_use]
    pub fn beside(&self, folder: &Path) -> Self {
        let mut paths = Self {
            recording_dir: Some(folder.to_owned()),
            ..self.clone()
        };
        if paths.symfs.is_none() {
            paths.bundle = Bundled::of(folder);
            paths.symfs = paths.bundle.as_ref().map(|bundle| bundle.root.clone());
        }
        paths
    }

    /// The directories that stand for `/` when a recorded path is opened, in order of preference.
    /// An empty path is the system itself.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        if let Some(dir) = &self.symfs {
            let more = self.more_symfs.iter();
            return std::iter::once(dir).chain(more).cloned().collect();
        }
        self.own_root()
            .into_iter()
            .chain([PathBuf::new()])
            .collect()
    }

    /// The folder beside the recording that stands for `/`, unless the user says what does.
    pub(super) fn own_root(&self) -> Option<PathBuf> {
        let folder = self.recording_dir.as_deref();
        folder.filter(|_| self.symfs.is_none()).and_then(own_root)
    }

    /// The same without the system: what was given, or came along.
    pub(super) fn given_roots(&self) -> impl Iterator<Item = PathBuf> {
        let roots = self.roots().into_iter();
        roots.filter(|root| !root.as_os_str().is_empty())
    }

    /// An absolute path in each of them.
    pub(super) fn in_roots(&self, path: &Path) -> impl Iterator<Item = Place> {
        let roots = self.roots().into_iter();
        roots.map(move |root| self.in_root(&root, path))
    }

    /// An absolute path below a folder that stands for `/`.
    pub(super) fn in_root(&self, root: &Path, path: &Path) -> Place {
        match path.file_name() {
            Some(name) if self.flat_symfs.iter().any(|flat| flat == root) => {
                Place::in_root(root, Path::new(name))
            }
            _ => Place::in_root(root, path),
        }
    }

    /// The build-ID cache; under `--symfs` the one in there (`symbol__config_symfs`).
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        match &self.symfs {
            Some(dir) => Some(dir.join(CACHE)),
            None => self.buildid_dir.clone(),
        }
    }

    /// The same without `--symfs`, for files whose build ID is proven: an ID is as true there as it is below a folder. What came
    /// with a recording is all that there is of it.
    pub(super) fn systems_cache(&self, build_id: &BuildId, leaf: &str) -> Vec<Place> {
        let is_apart = self.symfs.is_some() && self.bundle.is_none();
        let system = is_apart.then(|| Self {
            buildid_dir: self.buildid_dir.clone(),
            ..Self::default()
        });
        system.map_or_else(Vec::new, |system| system.in_cache(build_id, leaf))
    }

    /// Places inside the build-ID cache for one build: `leaf` is `elf`, `debug`, `vdso`, `kallsyms`, …
    pub(super) fn in_cache(&self, build_id: &BuildId, leaf: &str) -> Vec<Place> {
        let (Some(dir), Some(build)) = (self.cache(), of_build(build_id)) else {
            return Vec::new();
        };
        let link = dir.join(build);
        // Older perf: the link points at the file itself, not at a directory of files.
        let places = if leaf == "elf" {
            vec![link.join(leaf), link]
        } else {
            vec![link.join(leaf)]
        };
        self.inside_symfs(places)
    }

    /// A file of a build in the cache of debuginfod's client.
    pub(super) fn fetched(&self, id: &BuildId, name: &str) -> Option<Place> {
        let cache = self.debuginfod.as_deref()?;
        Some(debuginfod::of_build(cache, id, name))
    }

    /// Paths below `--symfs` with their links followed inside it; without that option as they are.
    pub(super) fn inside_symfs(&self, paths: Vec<PathBuf>) -> Vec<Place> {
        let place = |path: PathBuf| match &self.symfs {
            Some(root) => Some(Place::in_root(root, path.strip_prefix(root).ok()?)),
            None => Some(Door::recorded(path).into()),
        };
        paths.into_iter().filter_map(place).collect()
    }
}

/// The build-ID cache in the home folder, and below `--symfs`.
pub(crate) const CACHE: &str = ".debug";

/// Where the files of a build are in a build-ID cache, and below `/usr/lib/debug`.
pub(super) fn of_build(id: &BuildId) -> Option<PathBuf> {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2)?;
    Some(Path::new(".build-id").join(head).join(tail))
}

/// A recorded name as a path.
pub(crate) fn path_of(name: &[u8]) -> &Path {
    Path::new(os_name(name))
}
