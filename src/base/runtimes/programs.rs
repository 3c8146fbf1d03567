//! Programs that make code at run time, by the names of their files: how each is made to tell of it, or that it cannot.
//!
//! Where there is no dump and no map, there are no names of code to know a runtime by.

/// How a program is made to tell of the code that it makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// By a switch: how to begin the command.
    By(&'static str),
    /// It has none; what people call it.
    Never(&'static str),
    /// Nobody here knows the program.
    #[default]
    Unknown,
}

/// Front of the file's name, and what is to be done.
const PROGRAMS: [(&str, Told); 20] = [
    (
        "node",
        Told::By("node --perf-prof --interpreted-frames-native-stack"),
    ),
    (
        "deno",
        Told::By("DENO_V8_FLAGS=--perf-prof,--interpreted-frames-native-stack deno"),
    ),
    ("bun", Told::By("BUN_JSC_useJITDump=1 bun")),
    (
        "java",
        Told::By(
            "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (17 or newer), or -agentpath:libperf-jvmti.so",
        ),
    ),
    ("mono", Told::By("mono --jitmap")),
    ("dotnet", Told::By("DOTNET_PerfMapEnabled=3 dotnet")),
    ("php", Told::By("php -d opcache.jit_debug=0x20")),
    ("beam", Told::By("erl +JPperf true")),
    ("erl", Told::By("erl +JPperf true")),
    (
        "ruby",
        Told::By("ruby --yjit --yjit-perf (Ruby 3.3 or newer; older ones cannot)"),
    ),
    (
        "qemu-system",
        Told::By("qemu-system-… -jitdump (8 or newer)"),
    ),
    ("qemu-", Told::By("qemu-… -jitdump (8 or newer)")),
    ("wasmtime", Told::By("wasmtime run --profile=jitdump")),
    ("luajit", Told::Never("LuaJIT")),
    ("pypy", Told::Never("PyPy")),
    ("guile", Told::Never("Guile")),
    ("sbcl", Told::Never("SBCL")),
    ("memcheck-", Told::Never("Valgrind")),
    ("callgrind-", Told::Never("Valgrind")),
    ("cachegrind-", Told::Never("Valgrind")),
];

/// How the program with this file name is made to tell.
#[must_use]
pub fn told_by(name: &str) -> Told {
    let found = PROGRAMS.iter().find(|(front, _)| is_of(name, front));
    found.map_or(Told::Unknown, |(_, told)| *told)
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
