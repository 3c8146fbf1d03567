//! Where the files of a DSO are looked for.
//!
//! In: the path of a DSO as recorded, its build ID, and the places to look ([`SearchPaths`]). Out:
//! candidate paths in perf's order (`util/dso.c`, `dso__read_binary_type_filename`). Nothing is opened here, only
//! links are read so that no path leaves the directory it was put under.

use std::path::{Component, Path, PathBuf};

use super::BuildId;
use crate::input::{Bundled, os_name};

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
        let beside = self
            .recording_dir
            .as_ref()
            .map(|dir| dir.join("symfs"))
            .filter(|dir| dir.is_dir());
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
    pub(crate) fn in_cache(&self, build_id: &BuildId, leaf: &str) -> Vec<PathBuf> {
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
    pub(crate) fn inside_symfs(&self, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let Some(root) = &self.symfs else {
            return paths;
        };
        let inside = |path: PathBuf| resolve_in(root, path.strip_prefix(root).ok()?);
        paths.into_iter().filter_map(inside).collect()
    }
}

/// `path` (absolute, as recorded) under `root`, with links followed as if `root` were `/`, so that neither
/// `..` nor a link leads outside. For the empty root the path itself. `None` when it does not exist
/// or links go in circles.
pub(crate) fn resolve_in(root: &Path, path: &Path) -> Option<PathBuf> {
    const MAX_LINKS: usize = 40;
    if root.as_os_str().is_empty() {
        return Some(path.to_owned());
    }
    let mut pending: Vec<Vec<u8>> = components(path);
    pending.reverse();
    let mut done = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == b".." {
            done.pop();
            continue;
        }
        let next = done.join(os_name(&part));
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
                    && !pending.iter().any(|part| part == b"..") =>
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

/// The name of a file that lives in memory only (`memfd_create`), without the kernel's addition.
pub(crate) fn memfd_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    name.starts_with(b"/memfd:").then_some(name)
}

/// A recorded name as a path.
pub(crate) fn path_of(name: &[u8]) -> &Path {
    Path::new(os_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_out_of_a_root() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("usr/lib")).expect("create");
        std::fs::write(dir.path().join("secret"), b"x").expect("write");
        std::fs::write(root.join("usr/lib/real.so"), b"x").expect("write");
        let link =
            |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("link");
        link("/usr/lib", "lib");
        link("../../../../../secret", "usr/lib/escape");
        link("real.so", "usr/lib/lib.so.1");
        link("loop", "loop");
        let at = |p: &str| resolve_in(&root, Path::new(p));
        assert_eq!(at("/lib/lib.so.1"), Some(root.join("usr/lib/real.so")));
        assert_eq!(
            at("/../../usr/lib/real.so"),
            Some(root.join("usr/lib/real.so"))
        );
        assert_eq!(at("/../secret"), None);
        assert_eq!(
            at("/gone/too/../../usr/lib/real.so"),
            Some(root.join("usr/lib/real.so"))
        );
        assert_eq!(at("/gone/../../secret"), None);
        assert_eq!(at("/usr/lib/escape"), None);
        assert_eq!(at("/loop"), None);
        assert_eq!(
            resolve_in(Path::new(""), Path::new("/a/../b")),
            Some(PathBuf::from("/a/../b"))
        );
    }
}
