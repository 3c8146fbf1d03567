//! How a runtime is made to tell of its code without touching the command: variables of the environment.
//!
//! A row says what is added to which variable; what becomes of values that stand there already is not decided here.

/// A variable that makes a runtime tell of its code. None of these turns a compiler on.
#[derive(Debug, Clone, Copy)]
pub struct Switch {
    /// Whose it is, in the word that `--no-switch` takes.
    pub word: &'static str,
    /// The variable.
    pub variable: &'static str,
    /// What it needs to have in it.
    pub adds: Adds,
    /// Where the runtime then writes.
    pub lands: Lands,
}

/// What a variable needs to have in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adds {
    /// Words behind those that are there, each unless it or its opposite is in a variable of the same runtime. Without the first word of
    /// each of those the others make no sense.
    Words {
        /// A word, or one with its value.
        words: &'static [&'static str],
        /// What stands between words.
        between: char,
    },
    /// This, unless one of these variables is set.
    Value(&'static str, &'static [&'static str]),
    /// A folder behind those that are there, with a file of this name and text.
    Folder {
        /// Name of the file.
        file: &'static str,
        /// All of it.
        text: &'static str,
    },
}

/// Where a runtime writes its dump or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lands {
    /// In the folder in which the process stands.
    Here,
    /// In `/tmp`.
    Temporary,
}

/// Options of V8, which Node and Deno take each in a variable of its own.
const OF_V8: &[&str] = &["--perf-prof", "--interpreted-frames-native-stack"];

pub(super) const V8: &[Switch] = &[
    Switch {
        word: "node",
        variable: "NODE_OPTIONS",
        adds: Adds::Words {
            words: OF_V8,
            between: ' ',
        },
        lands: Lands::Here,
    },
    Switch {
        word: "deno",
        variable: "DENO_V8_FLAGS",
        adds: Adds::Words {
            words: OF_V8,
            between: ',',
        },
        lands: Lands::Here,
    },
];

pub(super) const JSC: &[Switch] = &[Switch {
    word: "bun",
    variable: "BUN_JSC_useJITDump",
    adds: Adds::Value("1", &["BUN_JSC_useJITDump"]),
    lands: Lands::Temporary,
}];

/// Either of CPython's variables is an answer of the user's.
const OF_CPYTHON: &[&str] = &["PYTHONPERFSUPPORT", "PYTHON_PERF_JIT_SUPPORT"];

/// Releases before 3.13 know the first alone.
pub(super) const CPYTHON: &[Switch] = &[
    Switch {
        word: "python",
        variable: OF_CPYTHON[0],
        adds: Adds::Value("1", OF_CPYTHON),
        lands: Lands::Temporary,
    },
    Switch {
        word: "python",
        variable: OF_CPYTHON[1],
        adds: Adds::Value("1", OF_CPYTHON),
        lands: Lands::Temporary,
    },
];

/// The first variable makes releases that lack words of the second start all the same. They are two because HotSpot 8 heeds it in what
/// it reads later alone: with all words in the first one it ends.
pub(super) const HOTSPOT: &[Switch] = &[
    Switch {
        word: "java",
        variable: "JAVA_TOOL_OPTIONS",
        adds: Adds::Words {
            words: &["-XX:+IgnoreUnrecognizedVMOptions"],
            between: ' ',
        },
        lands: Lands::Temporary,
    },
    Switch {
        word: "java",
        variable: LAST_OF_HOTSPOT,
        adds: Adds::Words {
            words: &[
                "-XX:+UnlockDiagnosticVMOptions",
                "-XX:+DumpPerfMapAtExit",
                KEEPS_FRAMES,
            ],
            between: ' ',
        },
        lands: Lands::Temporary,
    },
];

/// What HotSpot reads last, behind the options of its command line: this wins.
pub const LAST_OF_HOTSPOT: &str = "_JAVA_OPTIONS";

/// The option by which compiled methods keep frame pointers.
pub const KEEPS_FRAMES: &str = "-XX:+PreserveFramePointer";

pub(super) const PHP: &[Switch] = &[Switch {
    word: "php",
    variable: "PHP_INI_SCAN_DIR",
    adds: Adds::Folder {
        file: "99-pjit.ini",
        text: "opcache.jit_debug=0x20\n",
    },
    lands: Lands::Temporary,
}];

pub(super) const BEAM: &[Switch] = &[Switch {
    word: "erlang",
    variable: "ERL_ZFLAGS",
    adds: Adds::Words {
        words: &["+JPperf true"],
        between: ' ',
    },
    lands: Lands::Temporary,
}];

pub(super) const MONO: &[Switch] = &[Switch {
    word: "mono",
    variable: "MONO_ENV_OPTIONS",
    adds: Adds::Words {
        words: &["--jitmap"],
        between: ' ',
    },
    lands: Lands::Temporary,
}];

/// Either of .NET's variables is an answer of the user's.
const OF_DOTNET: &[&str] = &["DOTNET_PerfMapEnabled", "COMPlus_PerfMapEnabled"];

/// Releases before 6 know the second alone.
pub(super) const DOTNET: &[Switch] = &[
    Switch {
        word: "dotnet",
        variable: OF_DOTNET[0],
        adds: Adds::Value("3", OF_DOTNET),
        lands: Lands::Temporary,
    },
    Switch {
        word: "dotnet",
        variable: OF_DOTNET[1],
        adds: Adds::Value("3", OF_DOTNET),
        lands: Lands::Temporary,
    },
];

pub(super) const QEMU: &[Switch] = &[Switch {
    word: "qemu",
    variable: "QEMU_JITDUMP",
    adds: Adds::Value("1", &["QEMU_JITDUMP", "QEMU_PERFMAP"]),
    lands: Lands::Here,
}];
