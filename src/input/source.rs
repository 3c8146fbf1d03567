//! Which files are sources that may be shown and taken along: the debug information of a program may name any file.
//!
//! In: an open file, its text, and what was recorded of it. Out: whether that is proof enough. A checksum is proof, and so is a
//! folder that the user named. Without either, it takes a file that looks like a source, in a place where people keep sources:
//! what came with the system for all to read, and what belongs to the user and lies below the folder that the compiler worked in.
//! SECURITY.md says the same for users.

use std::ffi::OsStr;
use std::path::{Component, Path};
use std::time::SystemTime;

use super::Judged;
use super::os::{self, Owner};
use crate::build_id::BuildId;

/// What the recording says of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceClaim {
    /// Checksum of its text, from the line table of DWARF 5.
    pub md5: Option<[u8; 16]>,
    /// The folder in which the compiler worked.
    pub directory: Option<String>,
    /// The build of the file whose debug information names it.
    pub build: Option<BuildId>,
    /// When that file was written, if it is at hand; of several the first.
    pub built: Option<SystemTime>,
}

impl SourceClaim {
    /// Whether the checksum says that another text was compiled.
    #[must_use]
    pub fn is_refuted_by(&self, text: &[u8]) -> bool {
        self.md5.is_some_and(|md5| md5 != checksum(text))
    }

    /// Whether the checksum says that this text was compiled.
    #[must_use]
    pub fn is_proven_by(&self, text: &[u8]) -> bool {
        self.md5.is_some_and(|md5| md5 == checksum(text))
    }
}

/// Whether the user named the folder in which a source was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// Below a folder that the user named, or that came with the recording.
    Folder,
    /// Below the folder in which the recording lies.
    Beside,
    /// At the recorded path.
    Path,
    /// In the folder of its build in the cache of debuginfod's client.
    Build,
}

/// Endings of files that people write programs in.
const ENDINGS: &[&str] = &[
    "S", "ada", "adb", "ads", "asm", "c", "c++", "cc", "cjs", "cl", "clj", "coffee", "cpp", "cppm",
    "cr", "cs", "cu", "cuh", "cxx", "d", "dart", "def", "elm", "erl", "ex", "exs", "f", "f03",
    "f08", "f77", "f90", "f95", "for", "fs", "go", "groovy", "h", "h++", "hh", "hip", "hpp", "hrl",
    "hs", "hxx", "inc", "inl", "ipp", "ixx", "java", "jl", "js", "jsx", "kt", "kts", "l", "ll",
    "lua", "m", "mjs", "ml", "mli", "mm", "mts", "nim", "odin", "pas", "php", "pl", "pm", "py",
    "pyx", "r", "rb", "rs", "s", "scala", "svelte", "swift", "tcc", "ts", "tsx", "v", "vala", "vb",
    "vue", "wast", "wat", "y", "zig",
];

/// Folders that hold no sources but secrets and what the system makes.
const CLOSED: [&str; 7] = ["/etc", "/proc", "/sys", "/dev", "/var", "/run", "/boot"];

/// Where the system keeps what everybody may read.
const PUBLIC: [&str; 3] = ["/usr", "/opt", "/nix/store"];

/// Hidden folders in which package managers keep sources, as parts of a path.
const KEPT_HIDDEN: [&[&str]; 5] = [
    &[".cargo", "registry"],
    &[".cargo", "git"],
    &[".rustup", "toolchains"],
    &["node_modules", ".pnpm"],
    &["node_modules", ".bun"],
];

impl Judged {
    /// Whether it is proven to be a source that may be shown. `text` is all of it.
    #[must_use]
    pub fn is_source(&self, text: &[u8], found: FoundBy, claim: &SourceClaim) -> bool {
        if text.contains(&0) || std::str::from_utf8(text).is_err() && found != FoundBy::Folder {
            return false;
        }
        // A server may send anything.
        if found == FoundBy::Build {
            let is_it = match claim.md5 {
                Some(md5) => md5 == checksum(text),
                None => !is_page(text) || has_pages_name(self.door().path()),
            };
            return is_it && !text.is_empty();
        }
        if found == FoundBy::Folder || claim.is_proven_by(text) {
            return true;
        }
        let Some(real) = os::real_path(self.file(), self.door().path()) else {
            return false;
        };
        // Recordings are put anywhere, and what they name is not theirs.
        if found == FoundBy::Beside {
            return has_ending(&real);
        }
        let owner = os::owner(self.meta());
        is_public(&real, owner) || is_own(&real, owner, claim)
    }
}

/// Whether a text is a page, as servers send one that asks for a password.
fn is_page(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins = |front: &[u8]| {
        let own = text.get(..front.len());
        own.is_some_and(|own| own.eq_ignore_ascii_case(front))
    };
    begins(b"<!doctype html") || begins(b"<html")
}

fn has_pages_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ending.to_ascii_lowercase().contains("htm"))
}

fn checksum(text: &[u8]) -> [u8; 16] {
    md5::compute(text).0
}

/// Headers and libraries' sources that came with the system.
fn is_public(real: &Path, owner: Owner) -> bool {
    let is_there = PUBLIC.iter().any(|folder| real.starts_with(folder));
    let is_configuration = real.iter().any(|part| part == "etc");
    is_there && !is_configuration && owner.is_root && owner.is_public
}

/// A source that the user compiled.
fn is_own(real: &Path, owner: Owner, claim: &SourceClaim) -> bool {
    let is_closed = CLOSED.iter().any(|folder| real.starts_with(folder));
    // The home of root is anybody's but root's secret.
    let is_closed = is_closed || !owner.is_root && real.starts_with("/root");
    let directory = claim.directory.as_ref().map(Path::new);
    let is_below = directory.is_none_or(|directory| {
        let directory = directory.canonicalize();
        directory.is_ok_and(|directory| real.starts_with(project_of(&directory)))
    });
    let is_packages = KEPT_HIDDEN.iter().any(|kept| {
        let parts: Vec<&OsStr> = real.iter().collect();
        parts.windows(kept.len()).any(|at| at == *kept)
    });
    let looks_like_source = !is_hidden(real) && has_ending(real);
    owner.is_user && !is_closed && looks_like_source && (is_below || is_packages)
}

/// Whether it has the ending of a source.
fn has_ending(real: &Path) -> bool {
    let ending = real.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// What the folder in which a compiler worked is a part of: builds are often made in a folder beside the sources
/// (`project/build`, `project/src`).
fn project_of(directory: &Path) -> &Path {
    /// Folders whose folders are people's, not projects.
    const HOMES: [&str; 3] = ["/", "/home", "/Users"];
    const MARKS: [&str; 3] = [".git", ".hg", ".jj"];
    let is_home = |folder: &Path| {
        let above = folder.parent();
        above.is_none_or(|above| HOMES.iter().any(|home| above == Path::new(home)))
    };
    let mut folders = directory.ancestors().take_while(|folder| !is_home(folder));
    let marked = folders.find(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()));
    let beside = directory.parent().filter(|above| !is_home(above));
    marked.or(beside).unwrap_or(directory)
}

/// Whether a part of a path is hidden that no package manager made.
pub(super) fn is_hidden(real: &Path) -> bool {
    let parts: Vec<&str> = real
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_str().unwrap_or(".")),
            _ => None,
        })
        .collect();
    (0..parts.len()).any(|at| {
        let is_kept = |kept: &&[&str]| {
            let place = kept.iter().position(|part| *part == parts[at]);
            let start = place.and_then(|place| at.checked_sub(place));
            start.is_some_and(|start| parts[start..].starts_with(kept))
        };
        parts[at].starts_with('.') && !KEPT_HIDDEN.iter().any(is_kept)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: Owner = Owner {
        is_user: true,
        is_root: false,
        is_public: true,
    };
    const SYSTEMS: Owner = Owner {
        is_user: false,
        is_root: true,
        is_public: true,
    };

    /// A folder whose name does not begin with a dot.
    fn visible() -> tempfile::TempDir {
        let folder = tempfile::Builder::new().prefix("pjit").tempdir();
        folder.expect("a folder")
    }

    fn own(path: &str) -> bool {
        is_own(Path::new(path), USERS, &SourceClaim::default())
    }

    #[test]
    fn a_checksum_tells_another_text() {
        let of = |md5| SourceClaim {
            md5,
            ..SourceClaim::default()
        };
        let claim = of(Some(checksum(b"int main;\n")));
        assert!(!claim.is_refuted_by(b"int main;\n"));
        assert!(claim.is_refuted_by(b"// new\nint main;\n"));
        assert!(!of(None).is_refuted_by(b"anything"));
    }

    #[test]
    fn sources_of_the_user_look_like_some() {
        for source in [
            "/home/u/project/a.c",
            "/w/x.rs",
            "/home/u/.cargo/registry/src/index/serde-1.0/src/lib.rs",
            "/home/u/app/node_modules/.pnpm/x@1/node_modules/x/i.js",
        ] {
            assert!(own(source), "{source}");
        }
        for other in [
            "/home/u/.ssh/id_rsa",
            "/home/u/.ssh/config.c",
            "/home/u/notes.txt",
            "/home/u/passwords",
            "/etc/x.c",
            "/var/lib/x.c",
            "/root/x.c",
            "/home/u/.cargo/credentials.rs",
            "/home/u/.config/registry/x.c",
        ] {
            assert!(!own(other), "{other}");
        }
        let others = is_own(Path::new("/home/o/a.c"), SYSTEMS, &SourceClaim::default());
        assert!(!others, "a file of another user");
    }

    #[test]
    fn what_the_system_brought_is_for_all() {
        let is = |path: &str, owner| is_public(Path::new(path), owner);
        assert!(is("/usr/include/c++/12/vector", SYSTEMS));
        assert!(!is("/usr/include/c++/12/vector", USERS));
        assert!(!is("/usr/local/etc/secret.conf", SYSTEMS));
        assert!(!is("/etc/passwd", SYSTEMS));
        let secret = Owner {
            is_public: false,
            ..SYSTEMS
        };
        assert!(!is("/usr/share/x/key.h", secret));
    }

    #[test]
    fn the_compilers_folder_is_a_bound() {
        let dir = visible();
        let real = dir.path().canonicalize().expect("there").join("a/x.c");
        for folder in ["a", "b/build", "c/.git", "c/d/e"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
        for (folder, is) in [("a", true), ("b/build", false), ("", true), ("gone", false)] {
            let directory = dir.path().join(folder).to_str().map(str::to_owned);
            let claim = SourceClaim {
                directory,
                ..SourceClaim::default()
            };
            // Below /var on some systems.
            assert_eq!(is_own(&real, USERS, &claim), is, "{folder}");
        }
        let project = |folder: &str| project_of(&dir.path().join(folder)).to_owned();
        assert_eq!(project("b/build"), dir.path().join("b"));
        assert_eq!(project("c/d/e"), dir.path().join("c"));
        assert_eq!(project_of(Path::new("/home/u")), Path::new("/home/u"));
        let own = Path::new("/home/u/project");
        assert_eq!(project_of(own), own, "not all of a home");
    }

    /// A recording that was saved in a home names files of that home.
    #[test]
    fn what_lies_beside_a_recording_is_shown_if_it_looks_like_a_source() {
        let dir = tempfile::tempdir().expect("a folder");
        let is = |name: &str, found| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, "text").expect("written");
            let judged = super::super::Door::recorded(&path).open().expect("opened");
            judged.is_source(b"text", found, &SourceClaim::default())
        };
        for (name, looks) in [
            ("src/hot.js", true),
            ("id_rsa", false),
            ("key.pem", false),
            ("project/.env", false),
        ] {
            assert_eq!(is(name, FoundBy::Beside), looks, "{name}");
            assert!(is(name, FoundBy::Folder), "{name}");
        }
    }

    #[test]
    fn a_checksum_is_proof() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(".notes");
        std::fs::write(&path, "text").expect("written");
        let judged = super::super::Door::recorded(&path).open().expect("opened");
        let claim = |md5: [u8; 16]| SourceClaim {
            md5: Some(md5),
            ..SourceClaim::default()
        };
        let is = |text: &[u8], md5| judged.is_source(text, FoundBy::Path, &claim(md5));
        assert!(is(b"text", checksum(b"text")));
        assert!(!is(b"text", [0; 16]));
        assert!(!is(b"te\0t", checksum(b"te\0t")));
        assert!(judged.is_source(b"text", FoundBy::Folder, &claim([0; 16])));
        assert!(!judged.is_source(b"\x7fELF\0", FoundBy::Folder, &claim([0; 16])));
    }
}
