//! Whose a function is: the package that pays for what it takes, or nobody, so that its caller does.

use super::CleanName;
use super::crates::crate_of;
use super::kind::Kind;
use super::library::mangled_package;

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecosystem {
    /// The user's own code, by file, crate or program.
    Own,
    /// npm.
    Npm,
    /// PyPI.
    PyPi,
    /// Java, by the front of the package's name.
    Java,
    /// Go modules.
    Go,
    /// Rust crates.
    Crate,
    /// Modules of WebAssembly.
    Wasm,
    /// PHP, by namespace.
    Php,
    /// Erlang and Elixir.
    Beam,
    /// Assemblies of .NET.
    DotNet,
    /// Files of native code of which no more is known.
    Object,
    /// What the user calls so.
    Named,
}

impl Ecosystem {
    /// As it is printed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Npm => "npm",
            Self::PyPi => "PyPI",
            Self::Java => "java",
            Self::Go => "go",
            Self::Crate => "crate",
            Self::Wasm => "wasm",
            Self::Php => "php",
            Self::Beam => "beam",
            Self::DotNet => ".NET",
            Self::Object => "object",
            Self::Named => "named",
        }
    }
}

/// Who pays for a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Whose {
    /// Whoever called it: kernels, C's library, runtimes, code made by `eval`.
    Nobody,
    /// The same; it is a part of the library of this name, which comes with the language.
    Std(&'static str),
    /// A package.
    Package(Ecosystem, String),
    /// The user's own code in the file of this path.
    File(String),
}

impl Whose {
    /// The package, or the library.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Nobody => "",
            Self::Std(name) => name,
            Self::Package(_, name) | Self::File(name) => name,
        }
    }

    /// What holds for code of which nothing but its kind is known.
    pub(super) fn by_kind(kind: Kind) -> Self {
        match kind {
            Kind::Runtime => Self::Nobody,
            Kind::Std => Self::Std("standard library"),
            _ => Self::Package(Ecosystem::Own, "code made at run time".to_owned()),
        }
    }
}

/// Folders of npm's packages, the last ones where Debian has its own.
const NPM_FOLDERS: [&str; 3] = ["/node_modules/", "/usr/share/nodejs/", "-linux-gnu/nodejs/"];
/// Folders of Python's packages.
const PYTHON_FOLDERS: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// Whether a path leads into the packages of others.
#[must_use]
pub fn is_package(path: &str) -> bool {
    let folders = NPM_FOLDERS.iter().chain(&PYTHON_FOLDERS);
    ends_of_folders(path).any(|to| folders.clone().any(|folder| to.ends_with(folder)))
        || is_pnp(path)
        || in_denos_cache(path).is_some()
}

/// A path as far as each of its folders, the whole one first. Paths are asked for folders so often that to look for each of these by
/// itself takes longer.
fn ends_of_folders(path: &str) -> impl Iterator<Item = &str> {
    memchr::memrchr_iter(b'/', path.as_bytes()).map(|at| &path[..=at])
}

/// What stands before the first folder of that name, `/NAME/`, and what is in it.
fn split_at<'p>(path: &'p str, folder: &str) -> Option<(&'p str, &'p str)> {
    let mut slashes = memchr::memchr_iter(b'/', path.as_bytes());
    let at = slashes.find(|at| path[*at..].starts_with(folder))?;
    Some((&path[..at], &path[at + folder.len()..]))
}

/// What is behind the registry in a path of Deno's cache: `npm/registry.npmjs.org/NAME/VERSION/FILE`.
fn in_denos_cache(path: &str) -> Option<&str> {
    let (_, below) = split_at(path, "/npm/")?.1.split_once('/')?;
    let mut parts = below.split('/');
    let scope = parts.next()?.starts_with('@');
    let version = parts.nth(usize::from(scope))?;
    // Other folders are called npm, too.
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(below)
}

/// What Yarn writes beside `package.json` in place of `node_modules`: its loader, with a list of packages.
const PNP: [&str; 2] = ["/.pnp.cjs", "/.pnp.loader.mjs"];

fn is_pnp(path: &str) -> bool {
    PNP.iter().any(|name| path.ends_with(name))
}

/// The package of a file below `node_modules`, the innermost one; two parts if the first begins with `@`.
#[must_use]
pub fn npm(path: &str) -> Option<String> {
    if is_pnp(path) {
        return Some("@yarnpkg/pnp".to_owned());
    }
    let in_folder = |to: &&str| NPM_FOLDERS.iter().any(|folder| to.ends_with(folder));
    let below = match ends_of_folders(path).find(in_folder) {
        Some(to) => &path[to.len()..],
        None => match path.strip_prefix("node_modules/") {
            Some(below) => below,
            None => in_denos_cache(path)?,
        },
    };
    let mut parts = below.split('/');
    let first = parts.next().filter(|first| !first.is_empty())?;
    // A file in the folder itself is no package.
    let second = parts.next()?;
    if first.starts_with('@') {
        return Some(format!("{first}/{second}"));
    }
    Some(first.to_owned())
}

/// The package of a file below `site-packages` or `dist-packages`.
#[must_use]
pub fn pypi(path: &str) -> Option<String> {
    let below = PYTHON_FOLDERS
        .iter()
        .find_map(|folder| split_at(path, folder))?
        .1;
    let top = below.split('/').next()?;
    // Libraries that wheels bring lie beside the package; a module may be one file.
    let top = top.strip_suffix(".libs").unwrap_or(top);
    let name = top.split('.').next().filter(|name| !name.is_empty())?;
    Some(name.to_owned())
}

/// The package of a script in JavaScript, by its file; nobody's where there is none: `eval`, `new Function`.
pub(super) fn of_script(kind: Kind, file: &str) -> Whose {
    match kind {
        Kind::Std => Whose::Std("node: modules"),
        _ => match npm(file) {
            Some(name) => Whose::Package(Ecosystem::Npm, name),
            None if file.is_empty() => Whose::Nobody,
            None => Whose::File(file.to_owned()),
        },
    }
}

/// Whose a function of a module of WebAssembly is: its crate's, where its name tells that, or the module's.
#[must_use]
pub fn of_module(clean: &CleanName, kind: Kind, module: &str) -> Whose {
    match kind {
        Kind::Runtime => Whose::Nobody,
        Kind::Std => Whose::Std("wasm library"),
        _ => {
            // V8 tells names as compilers mangled them.
            let is_nested = clean.name.starts_with("_ZN");
            let nested = || mangled_package(&clean.name).filter(|_| is_nested);
            let krate = crate_of(&clean.name).or_else(nested);
            let krate = krate.filter(|of| of.starts_with(|c: char| c.is_ascii_lowercase()));
            Whose::Package(Ecosystem::Wasm, krate.unwrap_or(module).to_owned())
        }
    }
}

/// Hosts of modules that have an owner and a name behind them.
const GO_HOSTS: [&str; 5] = [
    "github.com",
    "gitlab.com",
    "bitbucket.org",
    "codeberg.org",
    "golang.org",
];

/// What Go brings along.
pub const GO_LIBRARY: &str = "Go library";

/// Whose a function of Go is, by its import path: what has no dot in its first part is Go's own.
#[must_use]
pub fn of_go(name: &str, program: &str) -> Whose {
    // `type:.eq.github.com/a/b.T` is made for a type of that package.
    let name = name
        .strip_prefix("type:.")
        .and_then(|n| n.split_once('.'))
        .map_or(name, |(_, n)| n);
    let folders = name.rfind('/').map_or(0, |at| at + 1);
    let path = name[folders..]
        .find('.')
        .map_or(name, |dot| &name[..folders + dot]);
    let path = path.replace("%2e", ".");
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["main", ..] => Whose::Package(Ecosystem::Own, program.to_owned()),
        ["runtime", ..] | ["internal", "runtime", ..] => Whose::Std("Go runtime"),
        // Assembly has no path at all.
        [first, ..] if !first.contains('.') && folders == 0 && !name.contains('.') => {
            Whose::Std("Go runtime")
        }
        [first, ..] if !first.contains('.') => Whose::Std(GO_LIBRARY),
        [host, ..] => {
            let take = if GO_HOSTS.contains(host) { 3 } else { 2 };
            let module = parts[..parts.len().min(take)].join("/");
            Whose::Package(Ecosystem::Go, module)
        }
        [] => Whose::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_npm_are_the_innermost() {
        for (path, name) in [
            ("/w/node_modules/terser/dist/bundle.min.js", Some("terser")),
            (
                "/w/node_modules/@babel/traverse/lib/path.js",
                Some("@babel/traverse"),
            ),
            ("/w/node_modules/a/node_modules/b/i.js", Some("b")),
            (
                "/usr/share/nodejs/typescript/lib/tsc.js",
                Some("typescript"),
            ),
            ("/usr/share/nodejs/a/node_modules/b/i.js", Some("b")),
            ("/w/node_modules/.pnpm/a@1.0/node_modules/a/i.js", Some("a")),
            ("/c/x-npm-1.zip/node_modules/x/i.js", Some("x")),
            ("webpack://app/./node_modules/y/z.js", Some("y")),
            ("/c/deno/npm/registry.npmjs.org/q/1.0/i.js", Some("q")),
            (
                "/c/deno/npm/registry.npmjs.org/@s/q/1.0/lib/i.js",
                Some("@s/q"),
            ),
            ("/home/npm/app/src/i.js", None),
            ("/w/.pnp.cjs", Some("@yarnpkg/pnp")),
            (
                "/w/.yarn/cache/x-npm-1.zip/node_modules/x/.pnp.cjs/i.js",
                Some("x"),
            ),
            ("/w/src/index.js", None),
            ("/w/node_modules/x.js", None),
        ] {
            assert_eq!(npm(path).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn packages_of_pypi_are_the_first_folder() {
        for (path, name) in [
            (
                "/v/lib/python3.13/site-packages/pandas/core/x.py",
                Some("pandas"),
            ),
            (
                "/v/site-packages/numpy.libs/libopenblas-1.so",
                Some("numpy"),
            ),
            ("/usr/lib/python3/dist-packages/six.py", Some("six")),
            (
                "/v/site-packages/_x.cpython-313-x86_64-linux-gnu.so",
                Some("_x"),
            ),
            ("/home/me/job.py", None),
        ] {
            assert_eq!(pypi(path).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn modules_of_go_are_the_front_of_import_paths() {
        let package = |name: &str| Whose::Package(Ecosystem::Go, name.to_owned());
        for (name, whose) in [
            (
                "github.com/evanw/esbuild/internal/js_parser.(*parser).visit",
                package("github.com/evanw/esbuild"),
            ),
            ("golang.org/x/sys/unix.Syscall", package("golang.org/x/sys")),
            (
                "gopkg.in/yaml%2ev3.(*parser).parse",
                package("gopkg.in/yaml.v3"),
            ),
            (
                "main.work",
                Whose::Package(Ecosystem::Own, "app".to_owned()),
            ),
            ("runtime.mallocgc", Whose::Std("Go runtime")),
            ("sort.Slice", Whose::Std("Go library")),
            (
                "encoding/json.(*decodeState).object",
                Whose::Std("Go library"),
            ),
            ("memeqbody", Whose::Std("Go runtime")),
        ] {
            assert_eq!(of_go(name, "app"), whose, "{name}");
        }
    }
}
