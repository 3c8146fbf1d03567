//! Programs that make code at run time, by the names of their files: how each is made to tell of it, or that it cannot.
//!
//! Where there is no dump and no map, there are no names of code to know a runtime by.

use super::{Producer, Recipe, Runtime};

/// How a program is made to tell of the code that it makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// By a switch: how to begin the command.
    By(&'static Recipe),
    /// It has none; what people call it.
    Never(&'static str),
    /// Nobody here knows the program.
    #[default]
    Unknown,
}

/// Programs without a switch: front of the file's name, and what people call them.
const SILENT: [(&str, &str); 7] = [
    ("luajit", "LuaJIT"),
    ("pypy", "PyPy"),
    ("guile", "Guile"),
    ("sbcl", "SBCL"),
    ("memcheck-", "Valgrind"),
    ("callgrind-", "Valgrind"),
    ("cachegrind-", "Valgrind"),
];

/// How the program with this file name is made to tell.
#[must_use]
pub fn told_by(name: &str) -> Told {
    let mut recipes = Producer::all().flat_map(|runtime| runtime.recipes);
    if let Some(recipe) = recipes.find(|recipe| recipe.is_for(name)) {
        return Told::By(recipe);
    }
    let silent = SILENT.iter().find(|(front, _)| is_of(name, front));
    silent.map_or(Told::Unknown, |(_, program)| Told::Never(program))
}

impl Recipe {
    /// Whether it is for the program with this file name.
    fn is_for(&self, name: &str) -> bool {
        self.programs.iter().any(|front| is_of(name, front))
    }
}

impl Runtime {
    /// Whether the program with this file name is one of its.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        self.recipes.iter().any(|recipe| recipe.is_for(name))
    }
}

/// Whether a file is a runtime's program.
#[must_use]
pub fn is_runtime(name: &str) -> bool {
    told_by(name) != Told::Unknown
}

/// Versions may follow, as in `php8.2` and `node20`; other words may not, as in `javac` and `bundle`.
fn is_of(name: &str, front: &str) -> bool {
    let rest = name.strip_prefix(front);
    rest.is_some_and(|rest| {
        front.ends_with('-') || !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_names_and_versions() {
        for name in [
            "php",
            "php8.2",
            "node20",
            "beam.smp",
            "qemu-x86_64",
            "mono-sgen",
        ] {
            assert!(matches!(told_by(name), Told::By(_)), "{name}");
        }
        assert_eq!(told_by("luajit-2.1"), Told::Never("LuaJIT"));
        assert_eq!(told_by("pypy3.9"), Told::Never("PyPy"));
        for name in ["javac", "bundle", "nodejs_helper", "", "python3.11"] {
            assert_eq!(told_by(name), Told::Unknown, "{name}");
        }
    }
}
