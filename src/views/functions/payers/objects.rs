//! What files are to those who pay: kernels, C's library, runtimes, packages, programs.

use rustc_hash::FxHashSet;

use crate::ids::IndexVec;
use crate::profile::{Object, ObjectId, Origin, Profile};
use crate::runtimes::crates::{crate_of, crates_of_method, is_rust_std};
use crate::runtimes::dump_names::numbers_of_dump;
use crate::runtimes::package::{npm, pypi};
use crate::runtimes::{Ecosystem, Producer, Scope};

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// No code, or none that is known.
    Nothing,
    /// The kernel and its modules.
    Kernel,
    /// Code that was made at run time.
    Jit,
    /// C's library, allocators, threads: whoever calls them pays.
    C,
    /// A runtime's or compiler's own file.
    Runtime(Scope),
    /// What records.
    Profiler,
    /// A file in a folder of packages.
    Package(Ecosystem, String),
    /// What a process runs.
    Program(String),
    /// A language's library that was compiled ahead, by what it is called.
    Std(&'static str),
    /// Any other library.
    Library(String),
}

/// Libraries of C and of languages that compile to machine code, which pay for nothing, up to where versions begin.
const C_LIBRARIES: [&str; 31] = [
    "libc",
    "libpthread",
    "libm",
    "librt",
    "libdl",
    "ld",
    "libstdc++",
    "libgcc_s",
    "libc++",
    "libc++abi",
    "libunwind",
    "libjemalloc",
    "libmimalloc",
    "libtcmalloc",
    "libtcmalloc_minimal",
    "libgomp",
    "libomp",
    "libiomp5",
    "libgo",
    "libgfortran",
    "libdruntime-ldc",
    "libphobos2",
    "libgdruntime",
    "libgphobos",
    "libquadmath",
    "libatomic",
    "libffi",
    "libasan",
    "libtsan",
    "libubsan",
    "linux-vdso",
];

/// Fronts of names of memory that is no file: what runs there was made at run time, by whomever.
const NO_FILES: [&str; 4] = ["//", "/dev/", "/SYSV", "/anon_hugepage"];
/// The same of files in memory alone, which may hold a library.
const MEMFD: &str = "/memfd:";

/// What all files of a profile are.
pub(super) struct Objects {
    parts: IndexVec<ObjectId, Part>,
    go: IndexVec<ObjectId, bool>,
    rust: IndexVec<ObjectId, bool>,
    compilers: IndexVec<ObjectId, bool>,
    /// Crates that have files of the user's own.
    own_crates: FxHashSet<(ObjectId, String)>,
}

impl Objects {
    pub(super) fn of(profile: &Profile) -> Self {
        let count = profile.objects.len();
        let are_programs = profile.are_programs();
        let mut is_named: IndexVec<ObjectId, bool> = vec![false; count].into();
        let natives = || {
            let symbols = profile.symbols.iter();
            symbols.filter(|symbol| symbol.producer.is_none())
        };
        natives().for_each(|symbol| is_named[symbol.object] = true);
        let homes: Vec<&str> = profile.objects.iter().filter_map(java_home).collect();
        let objects = || profile.objects.iter().zip(are_programs.iter().copied());
        let parts = objects()
            .zip(is_named)
            .map(|((object, is_main), is_named)| {
                // Without names it may be code made at run time.
                if object.long_name.starts_with(MEMFD) && !is_named {
                    Part::Nothing
                } else {
                    part_of(object, is_main, &homes)
                }
            });
        let compilers = objects().map(|(object, is_main)| {
            let name = object.long_name.rsplit('/').next().unwrap_or_default();
            Scope::of_file(name, is_main) == Some(Scope::Compiler)
        });
        let mut found = Self {
            parts: parts.collect(),
            compilers: compilers.collect(),
            own_crates: FxHashSet::default(),
            go: vec![false; count].into(),
            rust: vec![false; count].into(),
        };
        for symbol in natives() {
            let name = symbol.name.as_str();
            found.go[symbol.object] |= name.starts_with("runtime.") && !name.contains("::");
            // Namespaces of C++ may be called as Rust's crates are.
            found.rust[symbol.object] |= !symbol.is_cpp && is_of_rust(name);
            if symbol.origin == Origin::Own
                && !symbol.is_cpp
                && crates_of_method(name).is_empty()
                && let Some(name) = crate_of(name)
                && !is_rust_std(name)
            {
                found.own_crates.insert((symbol.object, name.to_owned()));
            }
        }
        found
    }

    /// Whether any function of a crate lies in a file of the user's own.
    pub(super) fn is_own_crate(&self, id: ObjectId, name: &str) -> bool {
        self.own_crates.contains(&(id, name.to_owned()))
    }

    /// The one crate of a program that is the user's own.
    pub(super) fn only_own_crate(&self, id: ObjectId) -> Option<&str> {
        let mut own = self.own_crates.iter().filter(|(object, _)| *object == id);
        match (own.next(), own.next()) {
            (Some((_, name)), None) => Some(name),
            _ => None,
        }
    }

    pub(super) fn part(&self, id: ObjectId) -> &Part {
        &self.parts[id]
    }

    /// Whether it was made by Go: its runtime is in it.
    pub(super) fn is_go(&self, id: ObjectId) -> bool {
        self.go[id]
    }

    /// Whether it is a compiler.
    pub(super) fn is_compiler(&self, id: ObjectId) -> bool {
        self.compilers[id]
    }

    /// Whether it was made by Rust: a part of its library is in it that C++ has no namespace for.
    pub(super) fn is_rust(&self, id: ObjectId) -> bool {
        self.rust[id]
    }
}

fn is_of_rust(name: &str) -> bool {
    const FRONTS: [&str; 7] = [
        "core::",
        "alloc::",
        "<core::",
        "<alloc::",
        "std::rt::",
        "std::sys::",
        "__rust_",
    ];
    FRONTS.iter().any(|front| name.starts_with(front))
}

/// `/usr/lib/jvm/java-17/lib/` of `/usr/lib/jvm/java-17/lib/server/libjvm.so`: all that lies there is the runtime's.
fn java_home(object: &Object) -> Option<&str> {
    let at = object.long_name.find("/server/libjvm.so")?;
    Some(&object.long_name[..=at])
}

fn part_of(object: &Object, is_main: bool, homes: &[&str]) -> Part {
    let path = object.long_name.as_str();
    let name = path.rsplit('/').next().unwrap_or(path);
    if object.is_kernel {
        return Part::Kernel;
    }
    if object.is_jit || numbers_of_dump(name.as_bytes()).is_some() {
        return Part::Jit;
    }
    if matches!(name, "[vdso]" | "[vdso32]" | "[vsyscall]") {
        return Part::C;
    }
    let is_no_file = NO_FILES.iter().any(|front| path.starts_with(front));
    if object.is_label() || name.starts_with('[') || name.is_empty() || is_no_file {
        return Part::Nothing;
    }
    if matches!(name, "libperf-jvmti.so" | "perf") {
        return Part::Profiler;
    }
    if C_LIBRARIES.iter().any(|word| is_library(name, word)) {
        return Part::C;
    }
    if is_of_dotnet(name) {
        return Part::Std(".NET library");
    }
    match Scope::of_file(name, is_main) {
        // rustc is in a library. It is a program like others, but for what its functions do.
        Some(Scope::Compiler) if name.starts_with("librustc_driver") => {
            return Part::Program(label(path));
        }
        Some(Scope::Compiler) | None => {}
        Some(scope) => return Part::Runtime(scope),
    }
    if homes.iter().any(|home| path.starts_with(home)) {
        return Part::Runtime(Scope::Runtime(Producer::HotSpot));
    }
    if path.contains("/lib-dynload/") {
        return Part::Runtime(Scope::Runtime(Producer::CPython));
    }
    if let Some(package) = pypi(path) {
        return Part::Package(Ecosystem::PyPi, package);
    }
    if is_main {
        return Part::Program(label(path));
    }
    match npm(path) {
        Some(package) => Part::Package(Ecosystem::Npm, package),
        None => Part::Library(label(path)),
    }
}

/// Whether a file is of .NET's own library, compiled ahead: `mscorlib.dll.so` is Mono's, `System.Private.CoreLib.dll` .NET's.
fn is_of_dotnet(name: &str) -> bool {
    let name = name.strip_suffix(".so").unwrap_or(name);
    let assembly = name.strip_suffix(".dll");
    assembly.is_some_and(|bare| {
        let first = bare.split('.').next().unwrap_or(bare);
        matches!(first, "mscorlib" | "System" | "Mono")
    })
}

/// Whether a file is a library, of any version: `libc.so.6` and `libc-2.31.so` are `libc`.
fn is_library(name: &str, word: &str) -> bool {
    let rest = name.strip_prefix(word);
    rest.is_some_and(|rest| {
        rest.starts_with(".so") || rest.starts_with('-') || rest.starts_with('.')
    })
}

/// The name of a file without version and hash: `libLLVM.so` of `libLLVM.so.20.1`. One that is a hash alone is called by the folder of
/// what it was copied from: `swc-native-0` of `swc-native-0/v1/072bb3….node`.
pub(super) fn label(path: &str) -> String {
    let name = crate::runtimes::names::clean_object(path);
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let is_digit = |c: char| c.is_ascii_hexdigit();
    if name.find(|c| !is_digit(c)).unwrap_or(name.len()) >= 32 {
        let is_telling = |folder: &&str| !folder.trim_start_matches('v').chars().all(is_digit);
        let folder = path.rsplit('/').skip(1).find(is_telling);
        return folder.unwrap_or(name).to_owned();
    }
    let name = match name.find(".so.") {
        Some(at) => &name[..at + 3],
        None => name,
    };
    // Wheels of Python bring libraries along, with a hash of each: `libopenblas-32a4b2a6.so`.
    let hashed = name
        .strip_suffix(".so")
        .and_then(|stem| stem.rsplit_once('-'));
    let is_hash = |hash: &str| hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    match hashed.filter(|(_, hash)| is_hash(hash)) {
        Some((stem, _)) => format!("{}.so", stem.trim_end_matches(['_', '-'])),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_c_are_known_in_all_versions() {
        let is_c = |name: &str| C_LIBRARIES.iter().any(|word| is_library(name, word));
        for name in [
            "libc.so.6",
            "libc-2.31.so",
            "ld-linux-x86-64.so.2",
            "ld-musl-x86_64.so.1",
            "libstdc++.so.6",
            "libdruntime-ldc-shared.so.100",
            "libphobos2-ldc-shared.so.100",
        ] {
            assert!(is_c(name), "{name}");
        }
        for name in ["libcrypto.so.3", "libmagic.so.1", "libgomatic.so", "ldap"] {
            assert!(!is_c(name), "{name}");
        }
    }

    #[test]
    fn dotnets_own_library_is_known_where_it_was_compiled_ahead() {
        for name in [
            "mscorlib.dll.so",
            "System.Core.dll.so",
            "System.Private.CoreLib.dll",
        ] {
            assert!(is_of_dotnet(name), "{name}");
        }
        for name in ["App.dll.so", "Systematic.dll", "System.so", "kernel32.dll"] {
            assert!(!is_of_dotnet(name), "{name}");
        }
    }

    #[test]
    fn libraries_are_called_without_versions_and_hashes() {
        for (path, name) in [
            (
                "/x/numpy.libs/libscipy_openblas64_-32a4b2a6.so",
                "libscipy_openblas64.so",
            ),
            ("/lib/libz.so.1.2.13", "libz.so"),
            ("/lib/libfoo-1.2.so", "libfoo-1.2.so"),
            (
                "/h/.cache/swc-native-0/v1/072bb3b281a77d086a53984a212b23047a706eaa.node",
                "swc-native-0",
            ),
        ] {
            assert_eq!(label(path), name);
        }
    }

    #[test]
    fn what_compiled_code_of_php_calls_is_its_runtime() {
        let php = Some(Scope::Runtime(Producer::Php));
        assert_eq!(Scope::of_file("opcache.so", false), php);
        assert_eq!(Scope::of_file("mbstring.so", false), None);
    }

    #[test]
    fn versions_and_hashes_are_no_part_of_names() {
        assert_eq!(label("/usr/lib/libLLVM.so.20.1"), "libLLVM.so");
        assert_eq!(
            label("/lib/librustc_driver-0123456789abcdef.so"),
            "librustc_driver"
        );
        assert_eq!(label("/usr/bin/app"), "app");
        assert_eq!(label("/memfd:plug (deleted)"), "memfd:plug");
    }
}
