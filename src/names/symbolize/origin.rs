//! Whose code a function is, by the file in which its debug information says it is declared.

use std::sync::Arc;

use smallvec::SmallVec;

use super::declared::normal;
use crate::dso::crate_of_mangled;
use crate::runtimes::crates::{crate_of, crates_of_method};

/// Whose code a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Origin {
    /// There is no debug information, it names no file, or nobody asked.
    #[default]
    Unknown,
    /// None of the others.
    Own,
    /// The standard library of the language, headers of the system.
    Std,
    /// Packages of others.
    Dependency,
}

/// Whose code a function is, by its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Author {
    /// Whose the file is.
    pub origin: Origin,
    /// The crate or module that has it, where its name leaves that open.
    pub package: Option<Arc<str>>,
}

/// A source file: its path without detours, and whose it is.
#[derive(Clone)]
pub(super) struct SourceFile {
    pub(super) path: Arc<str>,
    pub(super) author: Author,
}

impl SourceFile {
    /// By a path as the compiler knew it, such as clang's
    /// `/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/stl_algo.h`.
    pub(super) fn of(path: &str) -> Self {
        let path: Arc<str> = normal(path).into();
        let author = Author::of_path(&path);
        Self { path, author }
    }
}

impl Author {
    /// By a path without detours.
    pub(super) fn of_path(path: &str) -> Self {
        let (origin, package) = author(path);
        Self {
            origin,
            package: package.map(Arc::from),
        }
    }

    /// What something else tells, where this does not.
    pub(super) fn or_else(self, other: impl FnOnce() -> Option<Self>) -> Self {
        match self.origin {
            Origin::Unknown => other().unwrap_or_default(),
            _ => self,
        }
    }
}

/// What a name tells of the crate of its function.
pub(super) struct Spelled<'n> {
    name: &'n str,
    /// The crates that it leaves open: a method of a trait may be of several.
    open: SmallVec<[&'n str; 4]>,
}

impl<'n> Spelled<'n> {
    pub(super) fn of(name: &'n str) -> Self {
        let open = crates_of_method(name);
        Self { name, open }
    }

    /// The crate or module of a function, where the name leaves that open. Of functions without namespaces in debug information (rustc's
    /// `line-tables-only`, C in a crate or in a module of Go) it is what the folder of its source says.
    pub(super) fn package(
        &self,
        raw: &[u8],
        path: Option<&str>,
        by_folder: Option<&Arc<str>>,
    ) -> Option<Arc<str>> {
        if self.open.is_empty() {
            return by_folder.filter(|_| crate_of(self.name).is_none()).cloned();
        }
        crate_among(raw, path, &self.open).map(Arc::from)
    }
}

/// Which of some crates has a function, by what the file calls it, or by the folders of its source; nothing if neither tells.
fn crate_among<'c>(name: &[u8], path: Option<&str>, crates: &[&'c str]) -> Option<&'c str> {
    let only = |has: &dyn Fn(&str) -> bool| {
        let mut all = crates.iter().copied().filter(|krate| has(krate));
        all.next().filter(|_| all.next().is_none())
    };
    match crate_of_mangled(name) {
        Some(known) => only(&|krate| krate == known),
        None => {
            let folders = path?.split('/');
            only(&|krate| folders.clone().any(|folder| is_crate(folder, krate)))
        }
    }
}

/// Whose a file is, and the crate or module where the folders of a package manager tell that: `sha2` of
/// `/.cargo/registry/src/INDEX/sha2-0.10.9/src/x.rs`, `github.com/a/b` of `/go/pkg/mod/github.com/a/b@v1.0.0/b.c`; `std` for all of
/// Rust's library.
fn author(path: &str) -> (Origin, Option<String>) {
    let is_in = |folders: &[&str]| folders.iter().any(|folder| path.contains(folder));
    // A crate of the registry may bring a `library/core/src` along.
    if let Some((from, rest)) = in_cargo(path) {
        (Origin::Dependency, from.package(rest))
    } else if let Some(rest) = behind(path, "/go/pkg/mod/") {
        (Origin::Dependency, module_of_go(rest))
    } else if is_go_module(path) {
        (Origin::Dependency, None)
    } else if is_rust_library(path) {
        (Origin::Std, Some("std".to_owned()))
    } else if is_in(&STD) {
        (Origin::Std, None)
    } else {
        (Origin::Own, None)
    }
}

/// What stands behind a folder in a path.
fn behind<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    // Most have none of them, which is found faster than where.
    let is_there = path.contains(folder);
    is_there
        .then(|| path.split_once(folder))
        .flatten()
        .map(|(_, rest)| rest)
}

/// `github.com/BurntSushi/toml` of `github.com/!burnt!sushi/toml@v1.0.0/decode.c`: capital letters have a mark in folders.
fn module_of_go(path: &str) -> Option<String> {
    let (module, _) = path.split_once("@v")?;
    let mut name = String::with_capacity(module.len());
    let mut is_capital = false;
    for c in module.chars() {
        match c {
            '!' => is_capital = true,
            c => {
                name.push(if is_capital {
                    c.to_ascii_uppercase()
                } else {
                    c
                });
                is_capital = false;
            }
        }
    }
    Some(name)
}

/// Whether a folder is one of a crate: `my-crate` and `my-crate-1.2.3` of `my_crate`.
fn is_crate(folder: &str, krate: &str) -> bool {
    let plain = |byte: u8| if byte == b'-' { b'_' } else { byte };
    let name = without_version(folder);
    name.bytes().map(plain).eq(krate.bytes())
}

/// `my-crate` of `my-crate-1.2.3`.
fn without_version(folder: &str) -> &str {
    let mut dashes = folder.match_indices('-').map(|(at, _)| at);
    let is_version = |at: &usize| {
        folder
            .as_bytes()
            .get(at + 1)
            .is_some_and(u8::is_ascii_digit)
    };
    &folder[..dashes.find(is_version).unwrap_or(folder.len())]
}

/// Folders of Rust's library, as it is built and as it is installed.
const RUST: [&str; 5] = [
    "/rust/deps/",
    "/rustlib/src/",
    "/library/core/src/",
    "/library/std/src/",
    "/library/alloc/src/",
];

/// Folders of other standard libraries: the system's headers, compilers' own, D's, Nim's, OCaml's, and what Go has in C.
const STD: [&str; 14] = [
    "/include/c++/",
    "/src/runtime/cgo/",
    "/usr/include/",
    "/usr/lib/gcc/",
    "/usr/lib/llvm-",
    "/usr/lib/clang/",
    "/include/d/std/",
    "/include/d/core/",
    "/include/d/object.d",
    "/dmd/phobos/",
    "/dmd/druntime/",
    "/usr/lib/nim/",
    "/nim/lib/",
    "/usr/lib/ocaml/",
];

/// Where cargo has a source from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cargo {
    /// A registry: `sha2-0.10.9/src/x.rs`.
    Registry,
    /// A repository: `REPOSITORY-HASH/REVISION/…`.
    Git,
}

impl Cargo {
    /// The crate of a source.
    fn package(self, rest: &str) -> Option<String> {
        let plain = |name: &str| name.replace('-', "_");
        let mut folders = rest.split('/');
        if self == Self::Registry {
            return folders.next().map(|of| plain(without_version(of)));
        }
        // A repository may have several crates, each with its sources in `src`.
        let repository = folders.next()?.rsplit_once('-')?.0;
        let inside: Vec<&str> = folders.skip(1).collect();
        let src = inside.iter().position(|folder| *folder == "src");
        let of = src.and_then(|at| inside.get(at.checked_sub(1)?));
        Some(plain(of.unwrap_or(&repository)))
    }
}

/// What lies in cargo's folders, wherever `CARGO_HOME` is, or in Debian's: behind `/registry/src/index.crates.io-HASH/`, or
/// `/git/checkouts/`. Hashes have 16 digits.
fn in_cargo(path: &str) -> Option<(Cargo, &str)> {
    let hashed = |folder: &str| {
        let hash = folder.rsplit_once('-').map(|(_, hash)| hash);
        hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let is_home = || path.contains("/.cargo/");
    if let Some(rest) = behind(path, "/registry/src/") {
        let (index, rest) = rest.split_once('/')?;
        return (hashed(index) || is_home()).then_some((Cargo::Registry, rest));
    }
    if let Some(rest) = behind(path, "/git/checkouts/") {
        let (repository, _) = rest.split_once('/')?;
        return (hashed(repository) || is_home()).then_some((Cargo::Git, rest));
    }
    behind(path, "/usr/share/cargo/registry/").map(|rest| (Cargo::Registry, rest))
}

/// Whether a file is of Rust's library. Others may have a folder called `rustc` or `library/core/src`.
fn is_rust_library(path: &str) -> bool {
    let built = behind(path, "/rustc/").and_then(|rest| rest.split_once('/'));
    let is_commit = |of: &str| of.len() >= 7 && of.bytes().all(|b| b.is_ascii_hexdigit());
    built.is_some_and(|(commit, _)| is_commit(commit) || commit.starts_with("1."))
        || path.ends_with(".rs") && RUST.iter().any(|folder| path.contains(folder))
}

/// Whether a file of Go is one of a module with a version, or of one that was copied into `vendor`: with `-trimpath`, or a cache
/// elsewhere, nothing else tells.
fn is_go_module(path: &str) -> bool {
    if !path.ends_with(".go") && !path.ends_with(".s") {
        return false;
    }
    let is_version = |(at, _): (usize, &str)| {
        let rest = &path.as_bytes()[at + 2..];
        rest.first().is_some_and(u8::is_ascii_digit)
    };
    let vendored = path.split_once("/vendor/").map(|(_, rest)| rest);
    let host = vendored.and_then(|rest| rest.split_once('/'));
    path.match_indices("@v").any(is_version) || host.is_some_and(|(host, _)| host.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_crates_the_name_in_the_file_decides_or_the_folder() {
        let crates = ["types_t", "algo_a", "app"];
        let path =
            "/h/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/algo-a-1.0.0/src/lib.rs";
        let among = |name: &str, path| crate_among(name.as_bytes(), path, &crates);
        assert_eq!(among("_ZN1aE", Some(path)), Some("algo_a"));
        assert_eq!(among("_ZN1aE", Some("/w/src/lib.rs")), None);
        assert_eq!(among("_ZN1aE", Some("/app/algo_a/x.rs")), None);
        assert_eq!(among("_ZN1aE", None), None);
        let mangled = "_RNvXCs1_3appNtCs2_7types_t1TNtCs3_6algo_a4Algo3run";
        assert_eq!(among(mangled, None), Some("app"));
        assert!(is_crate("serde-json-1.0.1", "serde_json") && !is_crate("serde", "serde_json"));
    }

    #[test]
    fn of_a_name_without_a_crate_the_folder_tells_it() {
        let of = |path: &str, shown: &str| {
            let author = Author::of_path(path);
            let found = Spelled::of(shown).package(b"f", Some(path), author.package.as_ref());
            found.map(|name| name.to_string())
        };
        let registry = "/h/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        for (path, name) in [
            ("sha2-0.10.9/src/sha256/x86.rs", "sha2"),
            ("serde-json-1.0.1/src/de.rs", "serde_json"),
            ("zstd-sys-2.0.1+zstd.1/zstd/lib/a.c", "zstd_sys"),
        ] {
            let path = format!("{registry}/{path}");
            assert_eq!(of(&path, "schedule").as_deref(), Some(name), "{path}");
            assert_eq!(of(&path, "sha3::schedule"), None, "{path}");
        }
        let git = "/h/.cargo/git/checkouts/tokio-util-0123456789abcdef/01234567";
        for (path, name) in [
            (format!("{git}/tokio/src/a.rs"), "tokio"),
            (format!("{git}/src/a.rs"), "tokio_util"),
            (
                "/rustc/0123456789/library/core/src/num/mod.rs".to_owned(),
                "std",
            ),
            (
                "/root/go/pkg/mod/github.com/!burnt!sushi/toml@v1.0.0/d/x.c".to_owned(),
                "github.com/BurntSushi/toml",
            ),
        ] {
            assert_eq!(of(&path, "f").as_deref(), Some(name), "{path}");
        }
        assert_eq!(of("/home/me/app/src/main.rs", "f"), None);
        for path in [
            "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/stl_algo.h",
            "/opt/conda/x86_64-conda-linux-gnu/include/c++/12/bits/stl_algo.h",
        ] {
            assert_eq!(SourceFile::of(path).author.origin, Origin::Std, "{path}");
        }
    }

    #[test]
    fn folders_tell_whose_code_it_is() {
        for (path, expected) in [
            ("/home/me/app/src/main.rs", Origin::Own),
            ("src/main.c", Origin::Own),
            (
                "/rustc/0123456789/library/core/src/iter/range.rs",
                Origin::Std,
            ),
            (
                "/root/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/rt.rs",
                Origin::Std,
            ),
            ("/usr/include/c++/12/bits/stl_algo.h", Origin::Std),
            (
                "/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h",
                Origin::Std,
            ),
            (
                "/usr/lib/ldc/x86_64-linux-gnu/include/d/std/algorithm/sorting.d",
                Origin::Std,
            ),
            (
                "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rayon-core-1.12.1/src/job.rs",
                Origin::Dependency,
            ),
            (
                "/root/.cargo/git/checkouts/x-0123456789abcdef/2/src/lib.rs",
                Origin::Dependency,
            ),
            ("github.com/foo/bar/v2@v2.0.0/sub/s.go", Origin::Dependency),
            ("/cache/gopkg.in/yaml.v3@v3.0.1/a.s", Origin::Dependency),
            (
                "/w/app/vendor/github.com/foo/bar/sub/s.go",
                Origin::Dependency,
            ),
            (
                "/usr/local/cargo/registry/src/index.crates.io-1949cf8c6b5b557f/sha2-0.10.9/src/a.rs",
                Origin::Dependency,
            ),
            (
                "/usr/share/cargo/registry/sha2-0.10.9/src/a.rs",
                Origin::Dependency,
            ),
            ("/home/me/rustc/proj/main.c", Origin::Own),
            ("/w/library/core/src/main/java/A.java", Origin::Own),
            ("/w/registry/src/me/a.rs", Origin::Own),
            ("/rustc/1.63.0/library/std/src/rt.rs", Origin::Std),
            ("example.com/acme/app/inner/i.go", Origin::Own),
            ("/w/app@v2/main.c", Origin::Own),
            ("/w/vendor/own/x.go", Origin::Own),
        ] {
            assert_eq!(Author::of_path(path).origin, expected, "{path}");
        }
    }
}
