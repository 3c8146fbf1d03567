//! What kind of code a function is, and with it what is the user's own.
//!
//! In: an object, a symbol's name, who generated it. Out: a [`Kind`]. The rules go by names, paths and the program that a process
//! runs; [`OwnRules`] of the user come before them.

use regex::RegexSet;

use super::library::is_standard;
use super::names::CleanName;
use crate::profile::{Object, Origin, Producer};

/// What kind of code a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The user's own.
    Own,
    /// The standard library of the language, where it lies in the program or is compiled at run time.
    Std,
    /// Packages of others.
    Dependency,
    /// Shared libraries of the system.
    Library,
    /// The runtime that executes the program.
    Runtime,
    /// The kernel.
    Kernel,
    /// Neither own nor looked at closer: the user's rules decided.
    Other,
    /// Addresses that nothing is known of.
    Unknown,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 8;

    /// All kinds.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Own,
        Self::Std,
        Self::Dependency,
        Self::Library,
        Self::Runtime,
        Self::Kernel,
        Self::Other,
        Self::Unknown,
    ];

    /// As it is printed and filtered by.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Std => "std",
            Self::Dependency => "dependency",
            Self::Library => "library",
            Self::Runtime => "runtime",
            Self::Kernel => "kernel",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

/// What the user calls own. Names and paths of objects are matched.
#[derive(Debug, Clone, Default)]
pub struct OwnRules {
    /// Instead of the rules for all but the kernel and unknown addresses.
    pub own: Option<RegexSet>,
    /// Taken away from what is own.
    pub not_own: Option<RegexSet>,
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
    /// The name made clean.
    pub clean: &'p CleanName,
    /// Who generated it.
    pub producer: Option<Producer>,
    /// Whether it ran in the kernel.
    pub is_kernel: bool,
    /// Whether the object is the program of a process.
    pub is_main: bool,
    /// What its source file says.
    pub origin: Origin,
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
        return of_generated(producer, name, facts.clean);
    }
    if object.is_jit {
        return Kind::Unknown;
    }
    if object.short_name == "[fiber]" || is_runtime(&object.long_name, facts.is_main) {
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
    match facts.origin {
        Origin::Std => return Kind::Std,
        Origin::Dependency => return Kind::Dependency,
        // What has a namespace and lies in an own file is own, though it be `<alloc::string::String as my::Trait>::f`; C's library
        // may be linked in with debug information of any folder.
        Origin::Own if facts.clean.name.contains("::") => return Kind::Own,
        Origin::Own | Origin::Unknown => {}
    }
    match facts.name {
        Some(_) if is_standard(&facts.clean.name) => Kind::Std,
        _ => Kind::Own,
    }
}

/// Programs that run others, without versions.
const RUNTIMES: [&str; 26] = [
    "node",
    "nodejs",
    "deno",
    "bun",
    "d8",
    "wasmtime",
    "wasmer",
    "iwasm",
    "wasmedge",
    "java",
    "python",
    "pypy",
    "php",
    "php-fpm",
    "php-cgi",
    "beam.smp",
    "mono",
    "mono-sgen",
    "dotnet",
    "ruby",
    "luajit",
    "julia",
    "postgres",
    "lua",
    "perl",
    "erl",
];

/// Their shared libraries.
const RUNTIME_LIBRARIES: [&str; 11] = [
    "libnode",
    "libpython",
    "libjvm",
    "libmono",
    "libcoreclr",
    "libclrjit",
    "libwasmtime",
    "_libwasmtime",
    "libruby",
    "libphp",
    "libjulia",
];

/// Whether an object is a known runtime.
#[must_use]
pub fn is_runtime(path: &str, is_main: bool) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if RUNTIME_LIBRARIES
        .iter()
        .any(|library| starts_with_word(name, library))
    {
        return true;
    }
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    is_main && (RUNTIMES.contains(&plain) || RUNTIMES.contains(&name) || name.starts_with("qemu-"))
}

/// Whether a name begins with a word: no letter follows.
fn starts_with_word(name: &str, word: &str) -> bool {
    let rest = name.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn is_package(path: &str) -> bool {
    let folders = ["/node_modules/", "/site-packages/", "/dist-packages/"];
    folders.iter().any(|folder| path.contains(folder))
}

/// A function that a runtime made, by who made it.
fn of_generated(producer: Producer, name: &str, clean: &CleanName) -> Kind {
    match producer {
        Producer::V8 => of_v8(name, &clean.file),
        Producer::Wasmtime => of_wasmtime(name),
        Producer::CPython => of_python(&clean.file),
        Producer::HotSpot => of_java(name),
        Producer::Php if name.starts_with("JIT$$") => Kind::Runtime,
        Producer::Beam => of_erlang(&clean.name),
        Producer::Mono | Producer::DotNet => of_dotnet(name),
        Producer::Php => Kind::Own,
        _ if is_standard(&clean.name) => Kind::Std,
        _ => Kind::Own,
    }
}

fn of_v8(name: &str, file: &str) -> Kind {
    let kinds = ["JS:", "Function:", "LazyCompile:", "Script:", "Eval:"];
    if !kinds.iter().any(|kind| name.starts_with(kind)) {
        Kind::Runtime
    } else if file.starts_with("node:")
        || file.starts_with("internal/")
        || file.starts_with("native ")
    {
        Kind::Std
    } else if is_package(file) {
        Kind::Dependency
    } else {
        Kind::Own
    }
}

fn of_wasmtime(name: &str) -> Kind {
    let is_host = name.contains("trampoline")
        || name.starts_with("signatures[")
        || name.starts_with("wasmtime_builtin_")
        || name.starts_with("module_start[")
        || name.starts_with("component-");
    if is_host {
        Kind::Runtime
    } else if is_standard(name) {
        Kind::Std
    } else {
        Kind::Own
    }
}

fn of_python(file: &str) -> Kind {
    let in_library = file
        .find("/lib/python3.")
        .is_some_and(|_| !is_package(file));
    if file.starts_with("<frozen") || in_library {
        Kind::Std
    } else if is_package(file) {
        Kind::Dependency
    } else {
        Kind::Own
    }
}

fn of_java(name: &str) -> Kind {
    const PACKAGES: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
    let is_stub = !name.contains('(')
        || name.starts_with("I2C/C2I adapters")
        || name.starts_with("Interpreter");
    // What a symbol of the file format looks like: `Ljava/util/HashMap;get(Ljava/lang/Object;)…`.
    let path = name
        .strip_prefix('L')
        .filter(|_| name.contains(';'))
        .unwrap_or(name);
    let is_library = PACKAGES.iter().any(|package| {
        let folder = package.replace('.', "/");
        name.starts_with(package) || path.starts_with(&folder)
    });
    if is_stub {
        Kind::Runtime
    } else if is_library {
        Kind::Std
    } else {
        Kind::Own
    }
}

/// Modules of Erlang's and Elixir's libraries.
const ERLANG_MODULES: [&str; 88] = [
    "Elixir.Access",
    "Elixir.Agent",
    "Elixir.Enum",
    "Elixir.File",
    "Elixir.GenServer",
    "Elixir.IO",
    "Elixir.Integer",
    "Elixir.Kernel",
    "Elixir.Keyword",
    "Elixir.List",
    "Elixir.Map",
    "Elixir.MapSet",
    "Elixir.Process",
    "Elixir.Range",
    "Elixir.Regex",
    "Elixir.Registry",
    "Elixir.Stream",
    "Elixir.String",
    "Elixir.Supervisor",
    "Elixir.Task",
    "application",
    "application_controller",
    "application_master",
    "array",
    "base64",
    "binary",
    "calendar",
    "code",
    "code_server",
    "crypto",
    "dets",
    "dict",
    "disk_log",
    "edlin",
    "erl_eval",
    "erl_init",
    "erl_internal",
    "erl_lint",
    "erl_parse",
    "erl_prim_loader",
    "erl_scan",
    "erl_tracer",
    "erlang",
    "error_handler",
    "error_logger",
    "erts_code_purger",
    "erts_internal",
    "ets",
    "file",
    "file_server",
    "filelib",
    "filename",
    "gb_sets",
    "gb_trees",
    "gen",
    "gen_event",
    "gen_server",
    "gen_statem",
    "gen_tcp",
    "gen_udp",
    "group",
    "heart",
    "inet",
    "init",
    "io",
    "io_lib",
    "io_lib_format",
    "kernel",
    "lists",
    "logger",
    "maps",
    "math",
    "orddict",
    "ordsets",
    "os",
    "persistent_term",
    "prim_file",
    "prim_inet",
    "proc_lib",
    "proplists",
    "queue",
    "rand",
    "re",
    "sets",
    "string",
    "supervisor",
    "timer",
    "unicode",
];

/// Modules that only their beginning tells.
const ERLANG_FAMILIES: [&str; 10] = [
    "logger_",
    "erts_",
    "prim_",
    "inet_",
    "user_",
    "ssl_",
    "unicode_",
    "io_lib_",
    "otp_",
    "raw_file_",
];

fn of_erlang(name: &str) -> Kind {
    let module = name.split(':').next().unwrap_or(name).trim_matches('\'');
    if name.starts_with("global::") || module == "erts_beamasm" || !name.contains(':') {
        Kind::Runtime
    } else if ERLANG_MODULES.binary_search(&module).is_ok()
        || ERLANG_FAMILIES
            .iter()
            .any(|family| module.starts_with(family))
    {
        Kind::Std
    } else {
        Kind::Own
    }
}

fn of_dotnet(name: &str) -> Kind {
    const PACKAGES: [&str; 3] = ["System.", "Mono.", "Microsoft."];
    const STUBS: [&str; 3] = ["(wrapper", "(null)", "delegate_invoke"];
    // `[assembly] Class::f` and return types come in front.
    let begins = |prefix: &str| name.starts_with(prefix) || name.contains(&format!("] {prefix}"));
    if STUBS.iter().any(|stub| name.starts_with(stub)) || name.contains("(wrapper ") {
        Kind::Runtime
    } else if PACKAGES.iter().any(|package| begins(package)) {
        Kind::Std
    } else {
        Kind::Own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(producer: Producer, name: &str) -> Kind {
        of_generated(producer, name, &CleanName::of(name, Some(producer)))
    }

    #[test]
    fn generated_code_is_told_by_its_names() {
        use Kind::{Dependency, Own, Runtime, Std};
        use Producer::{Beam, CPython, HotSpot, Mono, Php, V8, Wasmtime};
        for (producer, name, kind) in [
            (V8, "JS:*fib /w/hot.js:3:19", Own),
            (V8, "JS:~ /w/hot.js:3:19", Own),
            (V8, "JS:~getOptions node:internal/fs/utils:321:20", Std),
            (V8, "JS:^x /w/node_modules/p/i.js:1:1", Dependency),
            (V8, "Builtin:ArrayMap", Runtime),
            (V8, "RegExp:\\s+", Runtime),
            (Wasmtime, "fib", Own),
            (Wasmtime, "wasm[0]::function[4]", Own),
            (Wasmtime, "wasm[0]::array_to_wasm_trampoline[9]", Runtime),
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

    #[test]
    fn modules_are_sorted() {
        assert!(ERLANG_MODULES.is_sorted());
    }
}
