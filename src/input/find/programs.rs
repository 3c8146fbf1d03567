//! Where programs, their debug files and the kernel's modules may be, in perf's order (`util/dso.c`,
//! `dso__read_binary_type_filename`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::jit::{began_later, root_of};
use super::places::of_build;
use super::{Place, SearchPaths, debuginfod, path_of};
use crate::build_id::BuildId;
use crate::input::{Door, os_name};

/// Where a vdso is looked for that somebody saved.
pub(crate) const VDSO: &str = "/[vdso]";
/// Where distributions put debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// What tells that a debug file is the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// It has this build ID.
    BuildId(BuildId),
    /// All of it has this checksum (CRC-32).
    Checksum(u32),
}

/// A place of a debug file, with what proves that it is the right one.
#[derive(Debug)]
pub(crate) struct DebugPlace {
    pub(crate) place: Place,
    pub(crate) proof: Proof,
    /// The path at which the recorded system has it.
    pub(crate) recorded: PathBuf,
}

/// What is known of a program whose debug file is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DebugOf<'n> {
    /// As recorded.
    pub(crate) name: &'n [u8],
    pub(crate) build_id: Option<BuildId>,
    /// The name in it, and a checksum (`.gnu_debuglink`).
    pub(crate) link: Option<(&'n [u8], u32)>,
    /// Where it was found itself; if it was not, its debug file may be in its place.
    pub(crate) found: Option<&'n Path>,
    /// Whether several files had its path.
    pub(crate) shares_path: bool,
    /// Whether its build ID was recorded with a mapping.
    pub(crate) is_proven: bool,
}

impl SearchPaths {
    /// A file that was mapped: by its path, then by its build IDs in the cache.
    pub(crate) fn programs(
        &self,
        name: &[u8],
        ids: impl Iterator<Item = BuildId> + Clone,
    ) -> impl Iterator<Item = Place> {
        let recorded = self.roots().into_iter().flat_map(move |root| {
            // What had no name in any folder can only be given.
            let given = memfd_name(name).filter(|_| !root.as_os_str().is_empty());
            let names = given.into_iter().chain([name]);
            names.map(move |each| self.in_root(&root, path_of(each)))
        });
        let fetched = ids.clone();
        let fetched = fetched.filter_map(|id| self.fetched(&id, debuginfod::PROGRAM));
        // Where `pjit record` keeps the second of two builds that had one path.
        let own = self.own_root();
        let kept = ids.clone().filter_map(move |id| {
            let root = own.as_ref()?;
            Some(Place::in_root(root, &place_of_build(&id)))
        });
        let cached = ids.flat_map(|id| self.in_cache(&id, "elf"));
        recorded.chain(kept).chain(cached).chain(fetched)
    }

    /// This machine's file of the recorded path, whatever was given in place of its root.
    pub(crate) fn recorded(name: &[u8]) -> Option<Door> {
        let path = Some(path_of(name)).filter(|path| path.is_absolute());
        path.map(Door::recorded)
    }

    /// The same in the roots of processes that had it mapped by then and still live: a container's, which has other files than this
    /// machine at the same paths. One that began later has only the number of a recorded one.
    pub(crate) fn in_processes(
        &self,
        name: &[u8],
        processes: &[(u32, SystemTime)],
    ) -> impl Iterator<Item = Place> {
        let is_here = self.symfs.is_none() && path_of(name).is_absolute();
        let processes = processes.iter().filter(move |_| is_here);
        let living = processes.filter(|(pid, by)| began_later(*pid, *by) == Some(false));
        living.map(move |(pid, _)| Place::in_root(&root_of(*pid), path_of(name)))
    }

    /// A vdso that was saved.
    pub(crate) fn vdso(&self, id: Option<BuildId>) -> impl Iterator<Item = Place> {
        let given = self.given_roots();
        let given = given.map(|root| self.in_root(&root, Path::new(VDSO)));
        given.chain(id.into_iter().flat_map(|id| self.in_cache(&id, "vdso")))
    }

    /// The file of a kernel module by its recorded path.
    pub(crate) fn modules(&self, name: &Path) -> impl Iterator<Item = Place> {
        let is_path = name.is_absolute();
        is_path.then(|| self.in_roots(name)).into_iter().flatten()
    }

    /// The separate debug file: by debug link, under /usr/lib/debug by path and by build ID, in a `.debug`
    /// directory; then in the build-ID cache, where it may also be the program itself, not stripped. Without anything that proves
    /// a file there is no place.
    pub(crate) fn debug_files(&self, of: DebugOf<'_>) -> impl Iterator<Item = DebugPlace> {
        let by_id = of.build_id.and_then(|id| below_debug_root(&id));
        let paths = debug_paths(&of, by_id.as_ref());
        let shared = by_id.clone().filter(|_| of.shares_path);
        let in_roots = self.roots().into_iter().flat_map(move |root| {
            let of_path = |path: &PathBuf| {
                let recorded = shared.clone().unwrap_or_else(|| path.clone());
                (self.in_root(&root, path), recorded)
            };
            paths.iter().map(of_path).collect::<Vec<_>>()
        });
        // The cache may hold a copy that was not stripped, put there by `perf buildid-cache --add`.
        let cached = of.build_id.into_iter().flat_map(move |id| {
            let leaves = ["debug", "elf"].into_iter();
            let cached = leaves.flat_map(move |leaf| {
                let system = of.is_proven.then(|| self.systems_cache(&id, leaf));
                let cached = self.in_cache(&id, leaf).into_iter();
                cached.chain(system.into_iter().flatten())
            });
            let is_apart = self.symfs.is_some() && self.bundle.is_none() && of.is_proven;
            let system = below_debug_root(&id).filter(|_| is_apart);
            let system = system.map(|path| Place::in_root(Path::new(""), &path));
            let fetched = self.fetched(&id, debuginfod::DEBUG);
            system.into_iter().chain(cached).chain(fetched)
        });
        let cached = cached.map(move |place| (place, by_id.clone().unwrap_or_default()));
        let found = of.found.map(Path::to_owned);
        let link = of
            .link
            .map(|(name, sum)| (path_of(name).file_name().map(OsStr::to_owned), sum));
        in_roots.chain(cached).filter_map(move |(place, recorded)| {
            let path = place.path();
            if Some(path) == found.as_deref() {
                return None;
            }
            let linked = || {
                let (name, sum) = link.as_ref()?;
                (path.file_name() == name.as_deref()).then_some(Proof::Checksum(*sum))
            };
            let proof = of.build_id.map(Proof::BuildId).or_else(linked)?;
            Some(DebugPlace {
                place,
                proof,
                recorded,
            })
        })
    }

    /// The file that debug files share (`.gnu_debugaltlink`): by the name in the one at `debug`, then by build ID.
    pub(crate) fn shared_debug(&self, name: &[u8], id: &BuildId, debug: &Path) -> Vec<Place> {
        let mut paths = Vec::new();
        let roots = self.roots();
        if !name.is_empty() {
            let name = path_of(name);
            let beside = debug.parent().unwrap_or(Path::new("/")).join(name);
            if self.symfs.is_none() || name.is_absolute() {
                paths.push(beside.clone());
            }
            let base = name.file_name().unwrap_or_default();
            paths.push(Path::new(DEBUG_ROOT).join(".dwz").join(base));
            // A relative link inside a root: as if the root were `/`.
            let inside = roots
                .iter()
                .filter_map(|root| beside.strip_prefix(root).ok());
            paths.extend(inside.map(|inside| Path::new("/").join(inside)));
        }
        paths.extend(below_debug_root(id));
        let of_root = |root: &PathBuf| -> Vec<Place> {
            paths.iter().map(|path| self.in_root(root, path)).collect()
        };
        roots.iter().flat_map(of_root).collect()
    }

    /// A `.dwo` file by the path that the compiler was told, and of that name beside the files that it may belong to. With
    /// each place the path at which the recorded system has it.
    pub(crate) fn split_files<'o>(
        &self,
        path: &Path,
        of: impl Iterator<Item = (&'o Door, &'o Path)>,
    ) -> Vec<(Place, PathBuf)> {
        let is_path = path.is_absolute();
        let recorded = is_path.then(|| self.in_roots(path)).into_iter().flatten();
        let recorded = recorded.map(|place| (place, path.to_owned()));
        let beside = of.filter_map(|(door, place)| {
            let name = path.file_name()?;
            Some((beside(door, name), place.with_file_name(name)))
        });
        recorded.chain(beside).collect()
    }
}

/// The `.dwp` file beside the file that it belongs to, and where the recorded system has it.
pub(crate) fn split_package(door: &Door, recorded: &Path) -> Option<(Place, PathBuf)> {
    let [name, recorded] = [Path::new(door.path().file_name()?), recorded].map(|path| {
        let mut path = path.to_owned();
        path.as_mut_os_string().push(".dwp");
        path
    });
    Some((beside(door, name.as_os_str()), recorded))
}

/// A file beside another, by the rule by which that was opened.
fn beside(door: &Door, name: &OsStr) -> Place {
    door.with_path(door.path().with_file_name(name)).into()
}

/// A program of this machine that the user has run, or what it takes.
pub(crate) fn program_to_run(path: &Path) -> Door {
    Door::named(path)
}

/// The vdso of this process, which no file holds.
pub(crate) fn own_vdso() -> Door {
    Door::system("[vdso]")
}

/// Where a build that shares its path with others is kept in a bundle.
pub(crate) fn place_of_build(id: &BuildId) -> PathBuf {
    let cache = Path::new("/").join(super::places::CACHE);
    cache.join(of_build(id).unwrap_or_default()).join("elf")
}

/// The name of a file that lives in memory only (`memfd_create`), without the kernel's addition.
fn memfd_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    name.starts_with(b"/memfd:").then_some(name)
}

/// Where a debug file may be, as absolute paths.
fn debug_paths(of: &DebugOf<'_>, by_id: Option<&PathBuf>) -> Vec<PathBuf> {
    let path = path_of(of.name);
    let dir = path.parent().unwrap_or(Path::new("/"));
    let inside = |p: &Path| Path::new(DEBUG_ROOT).join(p.strip_prefix("/").unwrap_or(p));
    let mut out = Vec::new();
    // Where to look is not the file's to say.
    let link = of
        .link
        .and_then(|(link, _)| Path::new(os_name(link)).file_name());
    if let Some(link) = link {
        out.extend([
            dir.join(link),
            dir.join(".debug").join(link),
            inside(dir).join(link),
        ]);
    }
    let mut with_suffix = inside(path).into_os_string();
    with_suffix.push(".debug");
    out.push(with_suffix.into());
    out.push(inside(path));
    out.extend(by_id.cloned());
    out.push(
        dir.join(".debug")
            .join(path.file_name().unwrap_or_default()),
    );
    out.extend(of.found.is_none().then(|| path.to_owned()));
    out
}

/// perf's letter for where a debug file was found.
pub(crate) fn debug_origin(path: &Path, name: &[u8]) -> char {
    let text = path.as_os_str().as_encoded_bytes();
    let contains = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    if contains(b"/.build-id/") {
        'b'
    } else if text.ends_with(&[name, b".debug"].concat()) {
        'f'
    } else if text.ends_with(name) {
        'u'
    } else {
        'l'
    }
}

/// Where distributions put the debug file of a build.
pub(crate) fn below_debug_root(id: &BuildId) -> Option<PathBuf> {
    let mut path = Path::new(DEBUG_ROOT).join(of_build(id)?);
    path.as_mut_os_string().push(".debug");
    Some(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::input::living;

    #[test]
    fn a_process_that_began_later_is_another() {
        let pid = std::process::id();
        let began = living::began(pid).expect("the system tells it");
        let hour = Duration::from_secs(3600);
        let path = std::env::current_exe().expect("it has a path");
        let name = path.as_os_str().as_encoded_bytes();
        let looks = |search: &SearchPaths, processes: &[(u32, SystemTime)]| {
            search.in_processes(name, processes).count()
        };
        let here = SearchPaths::default();
        assert_eq!(looks(&here, &[(pid, began + hour)]), 1);
        assert_eq!(looks(&here, &[(pid, began - hour)]), 0);
        assert_eq!(looks(&here, &[(u32::MAX, began + hour)]), 0, "it has ended");
        let elsewhere = SearchPaths {
            symfs: Some("/nowhere".into()),
            ..SearchPaths::default()
        };
        assert_eq!(looks(&elsewhere, &[(pid, began + hour)]), 0);
    }
}
