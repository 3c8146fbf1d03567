//! Where the files of a DSO are looked for.
//!
//! In: the path of a DSO as recorded, its build ID, and the places to look ([`SearchPaths`]). Out:
//! candidates in perf's order (`util/dso.c`, `dso__read_binary_type_filename`). Nothing is opened here.

use std::path::{Path, PathBuf};

use super::BuildId;
use crate::input::{Bundled, Door, os_name, own_root};

/// Places and choices for finding symbols; everything that perf takes from options, configuration
/// and environment. Relative paths are relative to the current directory.
#[derive(Clone, Debug, Default)]
pub struct SearchPaths {
    /// `--symfs DIR`: put in front of every path; nothing outside is used for user files.
    pub symfs: Option<PathBuf>,
    /// The build-ID cache, `~/.debug` or `--buildid-dir`. `None`: not used.
    pub buildid_dir: Option<PathBuf>,
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
    /// What came with the recording from another machine (`pjit bundle`), if that is where `symfs` is.
    pub bundle: Option<Bundled>,
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
            return vec![dir.clone()];
        }
        let beside = self.recording_dir.as_deref().and_then(own_root);
        beside.into_iter().chain([PathBuf::new()]).collect()
    }

    /// The build-ID cache; under `--symfs` the one in there (`symbol__config_symfs`).
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        match &self.symfs {
            Some(dir) => Some(dir.join(".debug")),
            None => self.buildid_dir.clone(),
        }
    }

    /// Candidates inside the build-ID cache for one build: `leaf` is `elf`, `debug`, `vdso`, `kallsyms`, …
    pub(crate) fn in_cache(&self, build_id: &BuildId, leaf: &str) -> Vec<Door> {
        let Some(dir) = self.cache() else {
            return Vec::new();
        };
        let hex = build_id.to_string();
        let Some((head, tail)) = hex.split_at_checked(2) else {
            return Vec::new();
        };
        let link = dir.join(".build-id").join(head).join(tail);
        // Older perf: the link points at the file itself, not at a directory of files.
        let places = if leaf == "elf" {
            vec![link.join(leaf), link]
        } else {
            vec![link.join(leaf)]
        };
        self.inside_symfs(places)
    }

    /// Paths below `--symfs` with their links followed inside it; without that option as they are.
    pub(crate) fn inside_symfs(&self, paths: Vec<PathBuf>) -> Vec<Door> {
        let Some(root) = &self.symfs else {
            return paths.into_iter().map(Door::recorded).collect();
        };
        let inside = |path: PathBuf| Door::in_root(root, path.strip_prefix(root).ok()?);
        paths.into_iter().filter_map(inside).collect()
    }
}

/// The name of a file that lives in memory only (`memfd_create`), without the kernel's addition.
pub(crate) fn memfd_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    name.starts_with(b"/memfd:").then_some(name)
}

/// A recorded name as a path.
pub(crate) fn path_of(name: &[u8]) -> &Path {
    Path::new(os_name(name))
}
