//! Names in a bundle: what a recording calls its files, as relative paths of plain parts.
//!
//! A recording may call a file anything. What reads a bundle follows a path as if the bundle's root were `/`
//! ([`crate::dso`]), so `..` at the top leads nowhere, here as there.

use std::path::{Component, Path, PathBuf};

use crate::find::{CACHE, KALLSYMS, KALLSYMS_PACKED, VMLINUX};
use crate::input::{BUNDLE_LIST, BUNDLE_ROOT, Role, Use};

/// Names beside the recording that are taken.
const TAKEN: [&str; 5] = [RECORDING, BUNDLE_LIST, BUNDLE_ROOT, KALLSYMS, VMLINUX];
/// The recording in a bundle.
pub(super) const RECORDING: &str = "perf.data";

/// Where a file goes; `None` if its name has no parts, or is needed for another.
pub(super) fn inside(used: &Use) -> Option<PathBuf> {
    let is_kernel = used.place == Path::new(VMLINUX) || used.role == Role::Kernel;
    if used.place.is_relative() && is_kernel {
        return match used.place.to_str()? {
            // The longer one is looked for second, and so is what others left.
            KALLSYMS => Some(PathBuf::from(KALLSYMS_PACKED)),
            VMLINUX => Some(used.place.clone()),
            _ => None,
        };
    }
    let plain = plain(&used.place)?;
    let is_beside = used.place.is_relative() && plain.components().count() == 1;
    if is_beside && used.role == Role::Jit {
        let is_taken = TAKEN.iter().any(|taken| plain == Path::new(taken));
        return (!is_taken && !plain.ends_with(KALLSYMS_PACKED)).then_some(plain);
    }
    Some(Path::new(BUNDLE_ROOT).join(plain))
}

/// Whether a place in a bundle is that of a build, and not of a path.
pub(super) fn is_of_build(place: &Path) -> bool {
    place.starts_with(Path::new(BUNDLE_ROOT).join(CACHE))
}

/// A path without parts that lead elsewhere; `None` if nothing is left.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    let has_nul = plain.as_os_str().as_encoded_bytes().contains(&0);
    (!plain.as_os_str().is_empty() && !has_nul).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Origin;

    fn at(place: &str, role: Role) -> Option<String> {
        let used = Use {
            place: PathBuf::from(place),
            origin: Origin::Memory(Vec::new()),
            role,
        };
        inside(&used).map(|path| path.to_str().expect("text").to_owned())
    }

    #[test]
    fn no_name_leads_out() {
        let program = |place| at(place, Role::Program);
        let is = |place: &str| Some(place.to_owned());
        assert_eq!(program("/usr/bin/app"), is("symfs/usr/bin/app"));
        assert_eq!(program("/../../etc/./cron.d//x"), is("symfs/etc/cron.d/x"));
        assert_eq!(program("/a/../../b"), is("symfs/b"));
        assert_eq!(program("app"), is("symfs/app"));
        assert_eq!(program("../perf.data"), is("symfs/perf.data"));
        assert_eq!(program("/[vdso]"), is("symfs/[vdso]"));
        assert_eq!(program("/memfd:x (deleted)"), is("symfs/memfd:x (deleted)"));
        for nowhere in ["", "/", "..", "/..", ".", "/a/..", "/a\0b"] {
            assert_eq!(program(nowhere), None, "{nowhere:?}");
        }
    }

    #[test]
    fn what_the_recording_has_no_path_for_lies_beside_it() {
        let is = |place: &str| Some(place.to_owned());
        assert_eq!(at("jit-1.dump", Role::Jit), is("jit-1.dump"));
        assert_eq!(at("w/jit-1.dump", Role::Jit), is("symfs/w/jit-1.dump"));
        assert_eq!(at("../jit-1.dump", Role::Jit), is("jit-1.dump"));
        assert_eq!(at("kallsyms", Role::Kernel), is("kallsyms.gz"));
        assert_eq!(at("vmlinux", Role::Program), is("vmlinux"));
        for taken in [
            "perf.data",
            "bundle.txt",
            "symfs",
            "kallsyms",
            "kallsyms.gz",
        ] {
            assert_eq!(at(taken, Role::Jit), None, "{taken}");
        }
    }
}
