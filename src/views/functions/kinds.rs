//! What kind of code a function is, and with it what is the user's own.
//!
//! In: an object, a symbol's name, who generated it. Out: a [`Kind`]. The rules go by names, paths and the program that a process
//! runs; [`OwnRules`] of the user come before them.

use regex::{Regex, RegexSet};

use crate::profile::{Object, Origin, Producer};
pub use crate::runtimes::Kind;
use crate::runtimes::languages::Language;
use crate::runtimes::package::is_package;
use crate::runtimes::{
    CleanName, Scope, is_c_function, is_mangled, is_standard, is_standard_in_cpp,
};

/// What the user calls own. Names and paths of objects are matched.
#[derive(Debug, Clone, Default)]
pub struct OwnRules {
    /// Instead of the rules for all but the kernel and unknown addresses.
    pub own: Option<RegexSet>,
    /// Taken away from what is own.
    pub not_own: Option<RegexSet>,
    /// What the user knows better than the rules.
    pub corrections: Corrections,
}

/// Packages and activities that the user names. Names of functions, their files and their objects are matched, before all rules.
#[derive(Debug, Clone, Default)]
pub struct Corrections {
    /// What belongs to a package.
    pub packages: Vec<(String, Regex)>,
    /// What a function does.
    pub activities: Vec<(&'static str, Regex)>,
}

impl Corrections {
    /// The first whose expression finds one of the names.
    pub fn first<'c, T>(given: &'c [(T, Regex)], names: &[&str]) -> Option<&'c T> {
        let fits = |(_, regex): &&(T, Regex)| names.iter().any(|name| regex.is_match(name));
        given.iter().find(fits).map(|(name, _)| name)
    }
}

impl OwnRules {
    /// Whether the user said anything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.own.is_none() && self.not_own.is_none()
    }
}

/// A function to classify.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'p> {
    /// Where it lies.
    pub object: Option<&'p Object>,
    /// Its symbol's name; nothing where there is none.
    pub name: Option<&'p str>,
    /// As its file has it, where [`Facts::name`] is the author's.
    pub spelled: Option<&'p str>,
    /// The name made clean.
    pub clean: &'p CleanName,
    /// Who generated it.
    pub producer: Option<Producer>,
    /// Whether it ran in the kernel.
    pub is_kernel: bool,
    /// Whether the object is the program of a process.
    pub is_main: bool,
    /// Whether the object is a known runtime ([`is_runtime`]).
    pub is_runtime: bool,
    /// What its source file says.
    pub origin: Origin,
    /// Whether its file spells it as compilers of C++ do.
    pub is_cpp: bool,
    /// The language of the program, if what looks like C in it is of a runtime.
    pub language: Option<Language>,
}

/// The kind of a function: the first rule that fits.
#[must_use]
pub fn classify(facts: &Facts<'_>, rules: &OwnRules) -> Kind {
    if facts.is_kernel || facts.object.is_some_and(|object| object.is_kernel) {
        return Kind::Kernel;
    }
    let Some(object) = facts.object else {
        return Kind::Unknown;
    };
    let matches = |set: &RegexSet| {
        let names = [
            facts.name,
            Some(facts.clean.name.as_str()),
            Some(object.long_name.as_str()),
        ];
        names.into_iter().flatten().any(|name| set.is_match(name))
    };
    if let Some(own) = &rules.own {
        let is_own = matches(own) && !rules.not_own.as_ref().is_some_and(matches);
        return if is_own { Kind::Own } else { Kind::Other };
    }
    match by_rules(facts, object) {
        Kind::Own if rules.not_own.as_ref().is_some_and(matches) => Kind::Other,
        kind => kind,
    }
}

fn by_rules(facts: &Facts<'_>, object: &Object) -> Kind {
    if let (Some(producer), Some(name)) = (facts.producer, facts.name) {
        match facts.origin {
            Origin::Std => return Kind::Std,
            Origin::Dependency => return Kind::Dependency,
            Origin::Own | Origin::Unknown => {}
        }
        return (producer.row().kind)(name, facts.clean);
    }
    if object.is_jit {
        return Kind::Unknown;
    }
    if object.short_name == "[fiber]" || facts.is_runtime {
        return Kind::Runtime;
    }
    if facts.is_main {
        return of_program(facts);
    }
    if is_package(&object.long_name) {
        return Kind::Dependency;
    }
    Kind::Library
}

/// A function of the main executable.
fn of_program(facts: &Facts<'_>) -> Kind {
    /// What Nim makes of the statements of the main module, and says to lie in its own library.
    const NIM_MAIN: &str = "NimMainModule";
    let spelled = facts.spelled.unwrap_or(&facts.clean.name);
    match facts.origin {
        _ if spelled == NIM_MAIN => return Kind::Own,
        Origin::Std => return Kind::Std,
        Origin::Dependency => return Kind::Dependency,
        // What has a namespace and lies in an own file is own, though it be `<alloc::string::String as my::Trait>::f`, and so is a
        // function that is called as one of C's library; what compilers add may have debug information of any folder.
        Origin::Own
            if facts.is_cpp
                || facts.clean.name.contains("::")
                || is_mangled(spelled)
                || is_c_function(spelled) =>
        {
            return Kind::Own;
        }
        Origin::Own | Origin::Unknown => {}
    }
    match facts.name {
        Some(_) if facts.is_cpp => {
            if is_standard_in_cpp(spelled) {
                Kind::Std
            } else {
                Kind::Own
            }
        }
        Some(_) if is_standard(spelled) => Kind::Std,
        Some(name)
            if facts.origin == Origin::Unknown
                && facts.language.is_some_and(|language| {
                    language.has_in_runtime(facts.spelled.unwrap_or(name))
                }) =>
        {
            Kind::Std
        }
        _ => Kind::Own,
    }
}

/// Programs that run others and make no code that they tell of, without versions.
const INTERPRETERS: [&str; 5] = ["luajit", "julia", "postgres", "lua", "perl"];

/// Whether an object is a known runtime.
#[must_use]
pub fn is_runtime(path: &str, is_main: bool) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if matches!(Scope::of_file(name, is_main), Some(Scope::Runtime(_))) {
        return true;
    }
    let is_interpreter = || INTERPRETERS.contains(&without_version(name));
    let is_julia = || name.starts_with("libjulia.") || name.starts_with("libjulia-");
    is_julia() || is_main && (is_interpreter() || name.starts_with("qemu-"))
}

/// `node` of `node-22.1`.
#[must_use]
pub fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(producer: Producer, name: &str) -> Kind {
        (producer.row().kind)(name, &CleanName::of(name, Some(producer)))
    }

    #[test]
    fn generated_code_is_told_by_its_names() {
        use Kind::{Dependency, Other, Own, Runtime, Std};
        use Producer::{Beam, CPython, HotSpot, Mono, Php, V8, Wasmtime, Yjit};
        for (producer, name, kind) in [
            (V8, "JS:*fib /w/hot.js:3:19", Own),
            (V8, "JS:~ /w/hot.js:3:19", Own),
            (V8, "JS:*work [eval]:3:19", Own),
            (V8, "JS:*_next38 :6:14", Other),
            (V8, "JS:~ :7:32", Other),
            (V8, "JS:~getOptions node:internal/fs/utils:321:20", Std),
            (V8, "JS:~setUp ext:core/00_infra.js:71:24", Std),
            (V8, "JS:^x /w/node_modules/p/i.js:1:1", Dependency),
            (V8, "Builtin:ArrayMap", Runtime),
            (V8, "RegExp:\\s+", Runtime),
            (Yjit, "[JIT] Object#fib", Own),
            (Yjit, "[JIT] Integer#times", Std),
            (Wasmtime, "fib", Own),
            (Wasmtime, "wasm[0]::function[4]", Own),
            (Wasmtime, "wasm[0]::array_to_wasm_trampoline[9]", Runtime),
            (Wasmtime, "app::trampoline", Own),
            (Wasmtime, "__qsort_r", Std),
            (Wasmtime, "strcspn", Std),
            (CPython, "py::f:/w/a.py", Own),
            (CPython, "py::f:<frozen runpy>", Std),
            (CPython, "py::f:/usr/lib/python3.13/json/x.py", Std),
            (
                CPython,
                "py::f:/usr/lib/python3.13/site-packages/x.py",
                Dependency,
            ),
            (HotSpot, "Hot.fib(int)", Own),
            (HotSpot, "java.util.HashMap.get(java.lang.Object)", Std),
            (HotSpot, "Interpreter", Runtime),
            (HotSpot, "I2C/C2I adapters(0xbb)", Runtime),
            (Php, "JIT$$trace_exit", Runtime),
            (Php, "TRACE-10$mandel$4", Own),
            (Beam, "hot:fib/1", Own),
            (Beam, "$lists:reverse/1", Std),
            (Beam, "global::call_shared", Runtime),
            (Beam, "erts_beamasm:normal_exit/0", Runtime),
            (Mono, "(wrapper managed-to-native) X:f ()", Runtime),
            (Mono, "System.String:Concat (string,string)", Std),
            (Mono, "Circle:Area ()", Own),
        ] {
            assert_eq!(generated(producer, name), kind, "{name}");
        }
    }

    #[test]
    fn statements_of_nims_main_module_are_own() {
        let kind = |name: &str| {
            let facts = Facts {
                object: None,
                name: Some(name),
                spelled: None,
                clean: &CleanName::of(name, None),
                producer: None,
                is_kernel: false,
                is_main: true,
                is_runtime: false,
                origin: Origin::Std,
                is_cpp: false,
                language: None,
            };
            of_program(&facts)
        };
        assert_eq!(kind("NimMainModule"), Kind::Own);
        assert_eq!(kind("mgetOrPut__shop_60"), Kind::Std);
    }

    #[test]
    fn runtimes_are_known_without_their_versions() {
        for name in [
            "/usr/bin/node",
            "/opt/python3.11",
            "php8.4",
            "qemu-aarch64",
            "/usr/lib/erlang/beam.smp",
        ] {
            assert!(is_runtime(name, true), "{name}");
        }
        for name in [
            "libpython3.11.so.1.0",
            "libjvm.so",
            "_libwasmtime.so",
            "libnode.so.108",
        ] {
            assert!(is_runtime(name, false), "{name}");
        }
        for name in [
            "libnodejs_addon.so",
            "mynode",
            "javac",
            "rspack.linux-x64-gnu.node",
        ] {
            assert!(
                !is_runtime(name, false) && !is_runtime(name, true),
                "{name}"
            );
        }
        assert!(!is_runtime("/usr/bin/node", false));
    }
}
