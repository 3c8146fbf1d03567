//! Whose code a function is, by the file in which its debug information says it is declared.

use crate::dso::crate_of_mangled;

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

/// Whose code a function is, and of which crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Author {
    /// By its file.
    pub origin: Origin,
    /// Which of the crates that may have a method of a trait has it, from 1; 0 if that is not told ([`crate::runtimes::crates::crates_of_method`]).
    pub nth_crate: u8,
}

/// Which of some crates has a function, from 1, by what the file calls it, or by the folders of its source; 0 if neither tells.
pub(super) fn nth_crate(name: &[u8], path: Option<&str>, crates: &[&str]) -> u8 {
    if crates.is_empty() {
        return 0;
    }
    let nth = |has: &dyn Fn(&str) -> bool| {
        let mut all = crates.iter().zip(1_u8..).filter(|(krate, _)| has(krate));
        all.next().filter(|_| all.next().is_none())
    };
    let found = match crate_of_mangled(name) {
        Some(known) => nth(&|krate| krate == known),
        None => path.and_then(|path| {
            let folders = path.split('/');
            nth(&|krate| folders.clone().any(|folder| is_crate(folder, krate)))
        }),
    };
    found.map_or(0, |(_, nth)| nth)
}

/// Whether a folder is one of a crate: `my-crate` and `my-crate-1.2.3` of `my_crate`.
fn is_crate(folder: &str, krate: &str) -> bool {
    let mut dashes = folder.match_indices('-').map(|(at, _)| at);
    let is_version = |at: &usize| {
        folder
            .as_bytes()
            .get(at + 1)
            .is_some_and(u8::is_ascii_digit)
    };
    let name = &folder[..dashes.find(is_version).unwrap_or(folder.len())];
    let plain = |byte: u8| if byte == b'-' { b'_' } else { byte };
    name.bytes().map(plain).eq(krate.bytes())
}

/// Folders of standard libraries: Rust's as it is built and as it is installed, the system's headers, compilers' own, D's, Nim's, OCaml's.
const STD: [&str; 18] = [
    "/rustc/",
    "/rust/deps/",
    "/rustlib/src/",
    "/library/core/src/",
    "/library/std/src/",
    "/library/alloc/src/",
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

/// Folders into which package managers unpack.
const DEPENDENCIES: [&str; 3] = ["/.cargo/registry/", "/.cargo/git/", "/go/pkg/mod/"];

impl Origin {
    /// What something else tells, where this does not.
    pub(super) fn or_else(self, other: impl FnOnce() -> Option<Self>) -> Self {
        match self {
            Self::Unknown => other().unwrap_or_default(),
            known => known,
        }
    }

    /// By a path as the compiler knew it.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        let is_in = |folders: &[&str]| folders.iter().any(|folder| path.contains(folder));
        // A crate of the registry may bring a `library/core/src` along.
        if is_in(&DEPENDENCIES) || is_go_module(path) {
            Self::Dependency
        } else if is_in(&STD) {
            Self::Std
        } else {
            Self::Own
        }
    }
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
        assert_eq!(nth_crate(b"_ZN1aE", Some(path), &crates), 2);
        assert_eq!(nth_crate(b"_ZN1aE", Some("/w/src/lib.rs"), &crates), 0);
        assert_eq!(nth_crate(b"_ZN1aE", Some("/app/algo_a/x.rs"), &crates), 0);
        assert_eq!(nth_crate(b"_ZN1aE", None, &crates), 0);
        let mangled = b"_RNvXCs1_3appNtCs2_7types_t1TNtCs3_6algo_a4Algo3run";
        assert_eq!(nth_crate(mangled, None, &crates), 3);
        assert!(is_crate("serde-json-1.0.1", "serde_json") && !is_crate("serde", "serde_json"));
    }

    #[test]
    fn folders_tell_whose_code_it_is() {
        for (path, expected) in [
            ("/home/me/app/src/main.rs", Origin::Own),
            ("src/main.c", Origin::Own),
            ("/rustc/0123/library/core/src/iter/range.rs", Origin::Std),
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
                "/root/.cargo/registry/src/index.crates.io-19/rayon-core-1.12.1/src/job.rs",
                Origin::Dependency,
            ),
            (
                "/root/.cargo/git/checkouts/x-1/2/src/lib.rs",
                Origin::Dependency,
            ),
            ("github.com/foo/bar/v2@v2.0.0/sub/s.go", Origin::Dependency),
            ("/cache/gopkg.in/yaml.v3@v3.0.1/a.s", Origin::Dependency),
            (
                "/w/app/vendor/github.com/foo/bar/sub/s.go",
                Origin::Dependency,
            ),
            ("example.com/acme/app/inner/i.go", Origin::Own),
            ("/w/app@v2/main.c", Origin::Own),
            ("/w/vendor/own/x.go", Origin::Own),
        ] {
            assert_eq!(Origin::of_path(path), expected, "{path}");
        }
    }
}
