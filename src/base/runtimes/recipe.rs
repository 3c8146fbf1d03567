//! How the command of a runtime begins that tells of its code, to be typed. Pages and advice have these words and no others.

/// How a runtime is made to tell of its code by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// Front of the names of its programs' files; none for one that is not known by it.
    pub programs: &'static [&'static str],
    /// How the command begins: variables, the program, its options. What it is to run comes behind.
    pub begins: &'static str,
    /// What else is to be known, if anything.
    pub besides: &'static str,
}

/// Why its switches may have led to nothing, and how it is recorded that names come all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// The reason, behind the runtime's name.
    pub why: &'static str,
    /// The command.
    pub record: &'static str,
}

/// A recipe with nothing else to be known.
const fn plain(programs: &'static [&'static str], begins: &'static str) -> Recipe {
    Recipe {
        programs,
        begins,
        besides: "",
    }
}

pub(super) const V8: &[Recipe] = &[
    plain(
        &["node"],
        "node --perf-prof --interpreted-frames-native-stack",
    ),
    plain(
        &["deno"],
        "env DENO_V8_FLAGS=--perf-prof,--interpreted-frames-native-stack deno",
    ),
];

pub(super) const JSC: &[Recipe] = &[plain(&["bun"], "env BUN_JSC_useJITDump=1 bun")];

/// Its interpreter has symbols: files of this name lack no names of code.
pub(super) const CPYTHON: &[Recipe] = &[plain(&[], "python3 -X perf_jit")];

pub(super) const HOTSPOT: &[Recipe] = &[Recipe {
    programs: &["java"],
    begins: "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
    besides: "17 or newer; older ones: -agentpath:libperf-jvmti.so",
}];

pub(super) const HOTSPOT_IS_SILENT: Silence = Silence {
    why: "wrote no perf map: releases before 17 cannot write one, and a process that is killed does not",
    record: "pjit record --java-agent libperf-jvmti.so -- …",
};

/// Its interpreter calls no function of its own for a script's.
pub(super) const PHP_IS_SILENT: Silence = Silence {
    why: "wrote no dump: functions of scripts have names where its compiler is on",
    record: "pjit record -- php -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=64M …",
};

pub(super) const PHP: &[Recipe] = &[plain(&["php"], "php -d opcache.jit_debug=0x20")];

pub(super) const BEAM: &[Recipe] = &[plain(&["beam", "erl"], "erl +JPperf true")];

pub(super) const MONO: &[Recipe] = &[plain(&["mono"], "mono --jitmap")];

pub(super) const DOTNET: &[Recipe] = &[plain(
    &["dotnet"],
    "env DOTNET_PerfMapEnabled=3 DOTNET_ReadyToRun=0 dotnet",
)];

pub(super) const YJIT: &[Recipe] = &[Recipe {
    programs: &["ruby"],
    begins: "ruby --yjit --yjit-perf",
    besides: "Ruby 3.3 or newer; older ones cannot",
}];

const OF_QEMU: &str = "8 or newer; -perfmap is a map instead";

pub(super) const QEMU: &[Recipe] = &[
    Recipe {
        programs: &["qemu-system"],
        begins: "qemu-system-x86_64 -jitdump",
        besides: OF_QEMU,
    },
    Recipe {
        programs: &["qemu-"],
        begins: "qemu-x86_64 -jitdump",
        besides: OF_QEMU,
    },
];

pub(super) const WASMTIME: &[Recipe] = &[plain(&["wasmtime"], "wasmtime run --profile=jitdump")];
