//! Where the kernel's symbols may be.

use std::path::{Path, PathBuf};

use super::{Place, SearchPaths, debuginfod};
use crate::build_id::BuildId;
use crate::input::Door;

/// What the kernel's symbols are called beside a recording, plain and packed.
pub(crate) const KALLSYMS: &str = "kallsyms";
/// See [`KALLSYMS`].
pub(crate) const KALLSYMS_PACKED: &str = "kallsyms.gz";
/// What the kernel's program is called beside a recording.
pub(crate) const VMLINUX: &str = "vmlinux";

impl SearchPaths {
    /// The list of symbols that the user named.
    pub(crate) fn named_kallsyms(&self) -> Option<Door> {
        self.kallsyms.as_ref().map(Door::named)
    }

    /// The same for the kernel's program.
    pub(crate) fn named_vmlinux(&self) -> Option<Door> {
        self.vmlinux.as_ref().map(Door::named)
    }

    /// Lists of symbols that nobody named: beside the recording, then in the build-ID cache.
    pub(crate) fn all_kallsyms(&self, id: Option<&BuildId>) -> impl Iterator<Item = Place> {
        let beside = self.recording_dir.as_deref().into_iter();
        let beside = beside.flat_map(kallsyms_beside).map(Place::from);
        let cached = id.into_iter().flat_map(|id| {
            let listed = |dir: PathBuf| {
                let folder = dir.join("[kernel.kallsyms]").join(id.to_string());
                folder.join(KALLSYMS)
            };
            let direct = self.cache().map(listed).into_iter().collect();
            let direct = self.inside_symfs(direct).into_iter();
            direct.chain(self.in_cache(id, KALLSYMS))
        });
        beside.chain(cached)
    }

    /// perf's places for a vmlinux (`vmlinux_paths`), less `./vmlinux`, which is used unchecked by perf and breaks
    /// reports that are made in a kernel's source tree. Under `--symfs` only there. What came in a bundle goes before.
    pub(crate) fn all_vmlinux(&self, release: Option<&str>, id: Option<&BuildId>) -> Vec<Place> {
        let mut places = Vec::new();
        if self.ignore_vmlinux {
            return places;
        }
        if let (Some(dir), Some(_)) = (&self.recording_dir, &self.bundle) {
            places.push(Door::beneath(dir, VMLINUX).into());
        }
        if let Some(id) = id {
            places.extend(self.in_cache(id, VMLINUX));
            places.extend(self.in_cache(id, "elf"));
            places.extend(self.fetched(id, debuginfod::DEBUG));
        }
        if let Some(release) = release.filter(|r| !r.contains('/') && *r != "..") {
            let named = [
                format!("boot/vmlinux-{release}"),
                format!("usr/lib/debug/boot/vmlinux-{release}"),
                format!("lib/modules/{release}/build/vmlinux"),
                format!("usr/lib/debug/lib/modules/{release}/vmlinux"),
                format!("usr/lib/debug/boot/vmlinux-{release}.debug"),
            ];
            let root = self.symfs.clone().unwrap_or_else(|| PathBuf::from("/"));
            let named = named.iter().map(|path| root.join(path)).collect();
            places.extend(self.inside_symfs(named));
        }
        places
    }
}

/// Whether a folder holds the symbols of a recorded kernel.
pub(crate) fn has_kallsyms(folder: &Path) -> bool {
    kallsyms_beside(folder).iter().any(Door::is_open)
}

fn kallsyms_beside(folder: &Path) -> [Door; 2] {
    [KALLSYMS, KALLSYMS_PACKED].map(|name| Door::beneath(folder, name))
}

/// The symbols of the kernel that runs here.
pub(crate) fn running_kallsyms() -> Door {
    Door::system("/proc/kallsyms")
}
