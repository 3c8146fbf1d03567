//! What code does while it runs: collects garbage, compiles, waits for a lock. The names of functions tell.
//!
//! Rows of runtimes stand in their files, here are those of everything else. A row knows names and nothing of stacks: which of a
//! stack's frames are asked, and which answer counts, is not decided here.

use super::{Producer, Runtime, languages};

mod compilers;
mod go;
mod kernel;
mod native;

/// Functions of these names do this.
#[derive(Debug)]
pub struct Activity {
    /// 0: whatever is around it. 1: a phase of its own, with all that it calls. 2: a service, as allocation. 3: only what the running
    /// function itself does. A lower rank wins over a higher one.
    pub rank: u8,
    /// What they do, as it is printed.
    pub name: &'static str,
    /// A more general activity, of which this is a kind: `read` of the kernel reads files, and here it is known to be a socket.
    pub kind_of: Option<&'static str>,
    /// A regular expression on names, with blanks that do not count.
    pub pattern: &'static str,
}

impl Activity {
    pub(crate) const fn new(rank: u8, name: &'static str, pattern: &'static str) -> Self {
        Self {
            rank,
            name,
            kind_of: None,
            pattern,
        }
    }

    /// The same of a row that tells more than another one of its rank, which calls it.
    pub(super) const fn kind_of(mut self, general: &'static str) -> Self {
        self.kind_of = Some(general);
        self
    }
}

/// Whose names a row is about: `copy` is one thing in a kernel and another one in a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A runtime, and the code that it makes.
    Runtime(Producer),
    /// Objects with Go's table.
    Go,
    /// Programs that GHC compiled.
    Haskell,
    /// Programs that OCaml's compiler made.
    OCaml,
    /// Compilers.
    Compiler,
    /// Native objects of all kinds.
    Native,
    /// The kernel.
    Kernel,
}

/// Compilers by the front of their files' names.
const COMPILERS: [&str; 5] = ["librustc_driver", "libLLVM", "clang", "cc1", "rustc"];

impl Scope {
    /// How many there are.
    pub const COUNT: usize = Producer::ALL.len() + 7;

    /// All.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let runtimes = Producer::ALL.map(Scope::Runtime);
        let others = [
            Self::Go,
            Self::Haskell,
            Self::OCaml,
            Self::Compiler,
            Self::Native,
            Self::Kernel,
        ];
        runtimes.into_iter().chain(others)
    }

    /// Its place among all.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Go => 0,
            Self::Compiler => 1,
            Self::Native => 2,
            Self::Kernel => 3,
            Self::Haskell => 4,
            Self::OCaml => 5,
            Self::Runtime(producer) => 6 + producer as usize,
        }
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Go => "Go runtime",
            Self::Haskell => "GHC runtime",
            Self::OCaml => "OCaml runtime",
            Self::Compiler => "compiler",
            Self::Native => "C library",
            Self::Kernel => "kernel",
            Self::Runtime(producer) => producer.row().engine,
        }
    }

    /// What is known of its functions.
    #[must_use]
    pub fn rows(self) -> &'static [Activity] {
        match self {
            Self::Go => go::ROWS,
            Self::Haskell => languages::HASKELLS,
            Self::OCaml => languages::OCAMLS,
            Self::Compiler => compilers::ROWS,
            Self::Native => native::ROWS,
            Self::Kernel => kernel::ROWS,
            Self::Runtime(producer) => producer.row().activities,
        }
    }

    /// That of a runtime's or a compiler's own file, by its name without folders.
    #[must_use]
    pub fn of_file(name: &str, is_main: bool) -> Option<Self> {
        let of = |runtime: &&Runtime| {
            runtime.libraries.iter().any(|word| begins(name, word))
                || is_main
                    && runtime
                        .programs
                        .iter()
                        .any(|word| is_version_of(name, word))
        };
        if let Some(runtime) = Producer::all().find(of) {
            return Some(Self::Runtime(runtime.producer));
        }
        let is_compiler = COMPILERS
            .iter()
            .any(|word| begins(name, word) || name == "cc1plus");
        is_compiler.then_some(Self::Compiler)
    }
}

/// Whether a name begins with a word: no letter follows.
fn begins(name: &str, word: &str) -> bool {
    let rest = name.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// `node-22.1` of `node`, `python3.13t` of `python`.
fn is_version_of(name: &str, word: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let rest = name.strip_prefix(word);
    let rest = rest.map(|rest| {
        rest.strip_suffix('t')
            .filter(|r| !r.is_empty())
            .unwrap_or(rest)
    });
    rest.is_some_and(|rest| {
        rest.bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_regular_expressions_of_bytes() {
        let mut rows = 0;
        for scope in Scope::all() {
            assert!(scope.index() < Scope::COUNT);
            for row in scope.rows() {
                rows += 1;
                assert!(row.rank <= 3, "{}", row.name);
                let mut regex = regex::bytes::RegexBuilder::new(row.pattern);
                let regex = regex.unicode(false).ignore_whitespace(true).build();
                assert!(regex.is_ok(), "{}: {regex:?}", row.name);
            }
        }
        assert!(rows > 130, "{rows}");
    }

    #[test]
    fn a_kind_has_the_rank_of_what_it_is_a_kind_of() {
        let mut kinds = 0;
        for scope in Scope::all() {
            for (general, row) in scope
                .rows()
                .iter()
                .filter_map(|row| Some((row.kind_of?, row)))
            {
                kinds += 1;
                let mut others = scope.rows().iter();
                assert!(others.any(|other| other.name == general && other.rank == row.rank));
            }
        }
        assert!(kinds > 0);
    }

    #[test]
    fn files_of_runtimes_and_compilers_are_known_by_name() {
        let runtime = |name, is_main| match Scope::of_file(name, is_main) {
            Some(Scope::Runtime(producer)) => producer,
            _ => Producer::Unknown,
        };
        assert_eq!(runtime("node-22.1", true), Producer::V8);
        assert_eq!(runtime("python3.13t", true), Producer::CPython);
        assert_eq!(runtime("bun.exe", true), Producer::Jsc);
        assert_eq!(runtime("libpython3.11.so.1.0", false), Producer::CPython);
        assert_eq!(runtime("libjvm.so", false), Producer::HotSpot);
        // A library of that name is no program, and other words begin like it.
        assert_eq!(runtime("node", false), Producer::Unknown);
        assert_eq!(runtime("nodemon", true), Producer::Unknown);
        assert_eq!(Scope::of_file("cc1plus", true), Some(Scope::Compiler));
        assert_eq!(
            Scope::of_file("libLLVM.so.20.1", false),
            Some(Scope::Compiler)
        );
        assert_eq!(Scope::of_file("clangd", true), None);
    }
}
