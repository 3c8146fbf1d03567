//! The runtimes that make code while a program runs, one row of a table for each: how they are recognised, what they do
//! otherwise than the formats say, how their names read, how their code treats the stack, what to tell their users.
//!
//! All of pjit asks the row of a runtime for a property, never which runtime it is. A new one is a variant of [`Producer`] and a
//! file with its row. Knows no dump, no recording: a row answers about names.
//!
//! A name alone decides nothing, for programs give their functions any name: a file's names together tell who wrote it
//! (`Votes`), and in a perf map, to which several runtimes of a process may append, who else takes part (`Guests`).

use std::borrow::Cow;

pub mod activity;
mod beam;
mod cpython;
pub mod crates;
mod dotnet;
pub mod dump_names;
mod hotspot;
pub mod kind;
pub mod languages;
mod library;
mod llvm;
pub mod name_place;
pub mod names;
mod others;
pub mod package;
mod php;
pub mod programs;
pub mod query;
mod recipe;
mod switch;
pub mod tails;
mod v8;
mod votes;
mod wasmtime;

pub use wasmtime::function as wasmtime_function;

pub use activity::{Activity, Scope};
pub use kind::Kind;
pub use library::{is_c_function, is_mangled, is_standard, is_standard_in_cpp};
pub use name_place::{Fileless, NamePlace};
pub use names::CleanName;
pub use package::{Ecosystem, Whose};
pub use recipe::{Recipe, Silence};
pub use switch::{Adds, KEEPS_FRAMES, LAST_OF_HOTSPOT, Lands, Switch};
pub(crate) use votes::{Guests, Votes};

/// The runtime that wrote a dump, as far as its files give it away. Decides which known deviation of
/// the format has to be repaired and what frames its code keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Producer {
    /// Nothing characteristic was seen.
    #[default]
    Unknown,
    /// V8: Node, Chromium, Deno.
    V8,
    /// wasmtime.
    Wasmtime,
    /// LLVM's `PerfJITEventListener` or ORC plugin: PostgreSQL, Julia.
    Llvm,
    /// HotSpot with the JVMTI agent.
    HotSpot,
    /// CPython's perf trampolines.
    CPython,
    /// Mono.
    Mono,
    /// PHP's opcache.
    Php,
    /// Erlang's BEAM.
    Beam,
    /// .NET.
    DotNet,
    /// JavaScriptCore: Bun, WebKit.
    Jsc,
    /// QEMU's translated code.
    Qemu,
    /// Ruby's YJIT.
    Yjit,
}

/// What dumps of some runtimes have that the format does not, or lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lapse {
    /// The header names no machine.
    NoMachine,
    /// The header's padding is not 0.
    Padding,
    /// The header says that it is smaller than it is.
    HeaderSize,
    /// The header's time is not on the clock of the records.
    WallClockHeader,
    /// Loads by a `pthread_t`.
    PthreadIds,
    /// No CLOSE at the end.
    NoClose,
    /// Loads of which only `code_addr` tells where they are.
    NoVma,
    /// Less code than `code_size` says.
    ShortCode,
    /// The same code loaded again at the same place.
    Repeats,
    /// The size of an ELF header on top of every line's address, to please perf before 5.x (V8
    /// `PerfJitLogger::LogWriteDebugInfo`, LLVM `PerfJITEventListener`).
    ShiftedLines,
    /// File names out of freed memory.
    BrokenFileNames,
    /// Lines for addresses before the code.
    LinesBefore,
    /// `.eh_frame_hdr` in front of `.eh_frame`.
    HeaderFirst,
    /// An empty unwinding table, which asks for frame pointers.
    EmptyUnwinding,
}

/// What is known of how code treats its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Habit {
    /// Nothing.
    Unknown,
    /// Whatever calls keeps a frame pointer; where the frame is built, the code tells (wasmtime, V8, BEAM).
    FramePointers,
    /// The same, as a switch of the runtime says; of the innermost function nothing is known, as its code is not (HotSpot).
    CallersKeepFrames,
    /// V8's code that jumps from piece to piece inside one frame of the interpreter: bytecode
    /// handlers, many builtins. A piece builds its own frame only around calls.
    V8Pieces,
    /// V8's Sparkplug: its first call builds the frame.
    Sparkplug,
    /// A blob of many pieces of code (HotSpot's interpreter and stubs): its first bytes say nothing
    /// about the rest.
    Blob,
    /// Pieces that jump on and leave the stack alone: on its top is where whoever called them goes on (HotSpot's vtable and itable
    /// stubs, and the pieces of its inline caches).
    Jumps,
    /// CPython's trampoline without frame pointer: 8 bytes of stack between its two `sub`/`add`.
    PyTrampoline,
    /// The base of an Erlang process: nothing called it.
    ErlangBase,
    /// A function of a file that was found by what leads to it.
    OfFile,
    /// QEMU's translated code: all of it runs in the one frame that the code before it has built.
    Translated,
}

/// Which of a runtime's compilers made a function, or that it is no function of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// Not told.
    Unknown,
    /// Interpreted.
    Interpreted,
    /// The quick compiler.
    Baseline,
    /// One between.
    Middle,
    /// The best.
    Optimised,
    /// A piece of the runtime.
    Builtin,
    /// A regular expression.
    RegExp,
    /// WebAssembly, whichever compiler.
    Wasm,
}

/// The function in whose frame code runs that has none of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostLoop {
    /// What the name of its file has in it.
    pub file: &'static [u8],
    /// The function's name, exported.
    pub function: &'static [u8],
    /// What code is called that puts all registers on the stack.
    pub saves_all: &'static [u8],
}

/// A runtime: a row of the table.
#[derive(Debug)]
pub struct Runtime {
    /// Whose row it is.
    pub producer: Producer,
    /// What people call it.
    pub name: &'static str,
    /// The same in one word.
    pub short_name: &'static str,
    /// What people call the program that runs the code.
    pub engine: &'static str,

    /// Beginnings of names that it alone writes, of two bytes or more.
    pub prefixes: &'static [&'static [u8]],
    /// Whether what follows such a beginning is as it writes it; the name may go on behind a NUL.
    pub is_whole: fn(&[u8]) -> bool,
    /// Whether a name without such a beginning looks like its.
    pub is_name: fn(&[u8]) -> bool,
    /// Whether it gives every name of its own a beginning or an end that is its alone.
    pub tags_all_names: bool,
    /// Whether most names in its files are the program's, which may be any: a few of its own tell it.
    pub names_are_of_programs: bool,
    /// The padding in its dumps' headers, where that tells it.
    pub header_padding: Option<u32>,
    /// The lapse that tells it where names do not.
    pub told_by: Option<Lapse>,
    /// The library whose presence tells that executable memory is its, with nothing else to tell.
    pub library: Option<&'static str>,
    /// What its own functions begin with that lie in its program.
    pub built_in: Option<&'static str>,
    /// Functions of its program in which it interprets what it has not compiled.
    pub loops: &'static [&'static str],

    /// What its dumps do.
    pub lapses: &'static [Lapse],
    /// Whether it loads one function again under other names.
    pub renames_repeats: bool,
    /// Whether it maps memory anew for other code, and never changes what it has made executable: who maps its memory again
    /// has other code there.
    pub maps_once: bool,
    /// Whether it may run a copy of the code that it reports, elsewhere (wasmtime's guest debugging).
    pub runs_copies: bool,
    /// Whether code reaches beyond the size that is told, to what comes next.
    pub tells_part_of_sizes: bool,
    /// Whether it changes targets of calls after it has written the code down.
    pub patches_calls: bool,
    /// Whether its code comes out of WebAssembly modules that can be looked at.
    pub compiles_wasm: bool,
    /// Whether compilers or bundlers made its scripts, and source maps may lead to what they made them from.
    pub has_source_maps: bool,

    /// Whether its functions keep frame pointers where they call, without being told to.
    pub keeps_frames: bool,
    /// How code of this name treats the stack.
    pub habit: fn(&[u8]) -> Habit,
    /// Whether it puts the start of code of this name on the stack as a return address, without a call.
    pub is_entered_by_return: fn(&[u8]) -> bool,
    /// The name of an interpreter that is one large piece of code.
    pub interpreter: Option<&'static [u8]>,
    /// Code in whose frames functions of scripts run that have no name there: the caller is another function.
    pub nameless: &'static [&'static str],
    /// Where its code has no frames: whose frame it runs in.
    pub host_loop: Option<HostLoop>,

    /// A name without what changes from run to run, its place apart.
    pub clean: fn(&str) -> CleanName,
    /// The place in the sources that stands in a name.
    pub place: fn(&[u8]) -> Option<NamePlace>,
    /// The same where the file is missing, and records of lines may tell it.
    pub fileless: fn(&[u8]) -> Option<Fileless>,
    /// What a compiler mangled in a name, where the runtime tells it as its input has it.
    pub mangled: fn(&str) -> Option<&str>,
    /// What kind of code a function is, by its name as written and clean.
    pub kind: fn(&str, &CleanName) -> Kind,
    /// What compiled a function, by its name.
    pub tier: fn(&str) -> Tier,
    /// Whether a function of this name is of a script in JavaScript.
    pub is_script: fn(&str) -> bool,
    /// Whose a function is, by its name as written and clean, and its kind.
    pub package: fn(&str, &CleanName, Kind) -> Whose,
    /// What of its code is the user's own, in words.
    pub own: Option<&'static str>,
    /// Its programs, without versions.
    pub programs: &'static [&'static str],
    /// Its libraries, up to where versions begin.
    pub libraries: &'static [&'static str],
    /// What its own functions do, and the code that it makes.
    pub activities: &'static [Activity],
    /// What its code does of which no row tells.
    pub made: &'static str,

    /// How it is made to tell of its code by hand; of several, each for programs of its own.
    pub recipes: &'static [Recipe],
    /// The same without touching the command; of several, each for programs of its own.
    pub switches: &'static [Switch],
    /// How its code gets frames that can be followed, if not as everybody's.
    pub frames: Option<&'static str>,
    /// What its agent is good for where it was told to keep frame pointers, which does not help with everything.
    pub agent: Option<&'static str>,
    /// What of its code is missing in every dump, and that nothing can be done about it.
    pub gaps_in_dump: Option<&'static str>,
    /// The same of perf maps.
    pub gaps_in_map: Option<&'static str>,
    /// What to do about dumps that end at the first stubs.
    pub gives_up_at_stubs: Option<&'static str>,
    /// Its program and the release from which on it tells of its code, where older ones run without a word.
    pub tells_since: Option<(&'static str, (u32, u32))>,
    /// Why its switches may have led to nothing, and how it is recorded that names come all the same.
    pub stays_silent: Option<Silence>,
    /// What to do about programs whose children end before their dumps are written.
    pub loses_dumps: Option<&'static str>,
}

impl Runtime {
    /// What holds where nothing else is known; other rows say only where they differ.
    const UNKNOWN: Self = Self {
        producer: Producer::Unknown,
        name: "unknown",
        short_name: "unknown",
        engine: "unknown",
        prefixes: &[],
        is_whole: |_| true,
        is_name: |_| false,
        tags_all_names: false,
        names_are_of_programs: false,
        header_padding: None,
        told_by: None,
        library: None,
        built_in: None,
        loops: &[],
        lapses: &[],
        renames_repeats: false,
        maps_once: false,
        runs_copies: false,
        tells_part_of_sizes: false,
        patches_calls: false,
        compiles_wasm: false,
        has_source_maps: false,
        keeps_frames: false,
        habit: |_| Habit::Unknown,
        is_entered_by_return: |_| false,
        interpreter: None,
        nameless: &[],
        host_loop: None,
        clean: |name| CleanName::plain(dotnet::without_tier(name).unwrap_or(name.trim_end())),
        place: |_| None,
        fileless: |_| None,
        mangled: |_| None,
        kind: |_, clean| {
            if is_standard(&clean.name) {
                Kind::Std
            } else {
                Kind::Own
            }
        },
        tier: |_| Tier::Unknown,
        is_script: |_| false,
        package: |_, _, kind| Whose::by_kind(kind),
        own: None,
        programs: &[],
        libraries: &[],
        activities: &[],
        made: "compiled code",
        recipes: &[],
        switches: &[],
        frames: None,
        agent: None,
        gaps_in_dump: None,
        gaps_in_map: None,
        gives_up_at_stubs: None,
        tells_since: None,
        stays_silent: None,
        loses_dumps: None,
    };

    /// Whether its dumps do that.
    #[must_use]
    pub fn has(&self, lapse: Lapse) -> bool {
        self.lapses.contains(&lapse)
    }
}

/// All rows, in the order of [`Producer`].
static TABLE: [Runtime; Producer::ALL.len() + 1] = [
    Runtime {
        // What agents for perf maps of Java write, too.
        interpreter: Some(b"Interpreter"),
        // Lua's and Ruby's, which report no code.
        loops: &["luaV_execute", "vm_exec_core"],
        tier: tier_of_any,
        is_script: |name| Producer::all().any(|runtime| (runtime.is_script)(name)),
        place: place_of_any,
        ..Runtime::UNKNOWN
    },
    v8::V8,
    wasmtime::WASMTIME,
    llvm::LLVM,
    hotspot::HOTSPOT,
    cpython::CPYTHON,
    dotnet::MONO,
    php::PHP,
    beam::BEAM,
    dotnet::DOTNET,
    others::JSC,
    others::QEMU,
    others::YJIT,
];

/// The name without what tells how it was compiled: what each compiler made are versions of one function.
#[must_use]
pub fn without_tier(name: &str) -> Cow<'_, str> {
    match v8::without_tier(name) {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(dotnet::without_tier(name).unwrap_or(name)),
    }
}

/// Of code that nobody is known to have made: what the first runtime says that knows the name. One whose programs may call
/// functions anything knows those that only it writes.
#[must_use]
pub fn tier_of_any(name: &str) -> Tier {
    let writer = Producer::of_prefix(name.as_bytes());
    let may_be = |runtime: &&Runtime| !runtime.names_are_of_programs || runtime.producer == writer;
    let runtimes = Producer::all().filter(may_be);
    let tiers = runtimes.map(|runtime| (runtime.tier)(name));
    let mut known = tiers.filter(|&tier| tier != Tier::Unknown);
    known.next().unwrap_or(Tier::Unknown)
}

fn place_of_any(name: &[u8]) -> Option<NamePlace> {
    Producer::all().find_map(|runtime| (runtime.place)(name))
}

/// The bytes that prefixes begin with, and their runtimes as bits: most names of a module are told by their first.
static BEGINNINGS: [u16; 256] = {
    let mut beginnings = [0; 256];
    let mut row = 0;
    while row < TABLE.len() {
        let mut at = 0;
        while at < TABLE[row].prefixes.len() {
            beginnings[TABLE[row].prefixes[at][0] as usize] |= 1 << row;
            at += 1;
        }
        row += 1;
    }
    beginnings
};

impl Producer {
    /// All but [`Producer::Unknown`].
    pub const ALL: [Self; 12] = [
        Self::V8,
        Self::Wasmtime,
        Self::Llvm,
        Self::HotSpot,
        Self::CPython,
        Self::Mono,
        Self::Php,
        Self::Beam,
        Self::DotNet,
        Self::Jsc,
        Self::Qemu,
        Self::Yjit,
    ];

    /// The rows of the table, but for what holds of unknown runtimes.
    pub fn all() -> impl Iterator<Item = &'static Runtime> {
        TABLE[1..].iter()
    }

    /// What is known of it.
    #[must_use]
    pub fn row(self) -> &'static Runtime {
        &TABLE[self as usize]
    }

    /// Whether anything is.
    #[must_use]
    pub fn is_known(self) -> bool {
        self != Self::Unknown
    }

    /// The runtime whose names look like this one, [`Producer::Unknown`] when many might.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Self {
        // BEAM's perf map puts a `$` in front.
        let name = name.strip_prefix(b"$").unwrap_or(name);
        let by_prefix = Self::of_prefix(name);
        if by_prefix.is_known() {
            return by_prefix;
        }
        let by_form = Self::all().find(|runtime| (runtime.is_name)(name));
        by_form.map_or(Self::Unknown, |runtime| runtime.producer)
    }

    /// The runtime that most of the names look like.
    #[must_use]
    pub fn of_names<'n>(names: impl Iterator<Item = &'n [u8]>) -> Self {
        let mut votes = Votes::default();
        names.for_each(|name| votes.add(name));
        votes.producer()
    }

    /// The same by the beginning alone, cheap enough for every name of a dump.
    #[must_use]
    pub fn of_prefix(name: &[u8]) -> Self {
        match name.first().map(|&first| BEGINNINGS[usize::from(first)]) {
            None | Some(0) => Self::Unknown,
            Some(rows) => Self::of_known_prefix(name, rows),
        }
    }

    /// One of those runtimes, if any.
    fn of_known_prefix(name: &[u8], rows: u16) -> Self {
        let mut rest = rows;
        while rest != 0 {
            let runtime = &TABLE[rest.trailing_zeros() as usize];
            let fits =
                |prefix: &&[u8]| name.get(..2) == prefix.get(..2) && name.starts_with(prefix);
            if runtime.prefixes.iter().any(fits) && (runtime.is_whole)(name) {
                return runtime.producer;
            }
            rest &= rest - 1;
        }
        Self::Unknown
    }

    /// The runtime that writes such a padding into headers.
    #[must_use]
    pub fn of_padding(padding: u32) -> Option<Self> {
        let mut all = Self::all();
        let found = all.find(|runtime| runtime.header_padding == Some(padding));
        found.map(|runtime| runtime.producer)
    }

    /// The runtime that one of these lapses tells.
    #[must_use]
    pub fn of_lapses(found: impl Fn(Lapse) -> bool) -> Option<Self> {
        let mut all = Self::all();
        let told = all.find(|runtime| runtime.told_by.is_some_and(&found));
        told.map(|runtime| runtime.producer)
    }

    /// Whether a function of a program is one in which a runtime interprets.
    #[must_use]
    pub fn is_loop(name: &str) -> bool {
        TABLE.iter().any(|runtime| runtime.loops.contains(&name))
    }

    /// The runtime in whose program a function of this name is a piece of it.
    #[must_use]
    pub fn of_built_in(name: &str) -> Option<Self> {
        let mut all = Self::all();
        let begins = |runtime: &&Runtime| runtime.built_in.is_some_and(|b| name.starts_with(b));
        all.find(begins).map(|runtime| runtime.producer)
    }
}

#[cfg(test)]
mod tests {
    use super::{Producer, Tier, tier_of_any, without_tier};

    #[test]
    fn rows_are_in_order() {
        for (row, producer) in Producer::all().zip(Producer::ALL) {
            assert_eq!(row.producer, producer);
            assert_eq!(producer.row().producer, producer);
            assert!(row.prefixes.iter().all(|prefix| prefix.len() >= 2));
        }
        assert_eq!(Producer::Unknown.row().name, "unknown");
    }

    #[test]
    fn versions_of_a_function_have_one_name() {
        for (name, tier, of_all) in [
            ("JS:*f /x.js:1:2", Tier::Optimised, "JS:f /x.js:1:2"),
            ("JS:~f /x.js:1:2", Tier::Interpreted, "JS:f /x.js:1:2"),
            ("JS:*'f /x.js:1:2", Tier::Optimised, "JS:f /x.js:1:2"),
            ("JS:+' /x.js:1:2", Tier::Middle, "JS: /x.js:1:2"),
            ("JS:o*f /x.js:1:2", Tier::Optimised, "JS:f /x.js:1:2"),
            ("JS:o+ /x.js:1:2", Tier::Middle, "JS: /x.js:1:2"),
            ("JS:~o /x.js:1:2", Tier::Interpreted, "JS:o /x.js:1:2"),
            ("JS:~'q' /x.js:1:2", Tier::Interpreted, "JS:q' /x.js:1:2"),
            ("JS:a-b-3-turbofan", Tier::Wasm, "JS:a-b-3"),
            ("JS:a-b-3-liftoff", Tier::Wasm, "JS:a-b-3"),
            ("void A::F()[Tier0]", Tier::Baseline, "void A::F()"),
            (
                "void A::F()[OptimizedTier1]",
                Tier::Optimised,
                "void A::F()",
            ),
            ("int[] f(int[])", Tier::Unknown, "int[] f(int[])"),
            ("py::f:/x.py", Tier::Unknown, "py::f:/x.py"),
        ] {
            assert_eq!((tier_of_any(name), &*without_tier(name)), (tier, of_all));
        }
    }

    fn guess<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Producer {
        Producer::of_names(names.into_iter())
    }

    #[test]
    fn one_name_does_not_decide() {
        let java = [&b"py::lambda:/x.py"[..], b"LHot;fib(I)I", b"LHot;main(I)V"];
        assert_eq!(guess(java), Producer::HotSpot);
        // A wasm module with a namespace `py`: wasmtime's own names come last.
        let module = std::iter::repeat_n(&b"py::f"[..], 100_000);
        let own = [
            &b"wasm[0]::array_to_wasm_trampoline[3]"[..],
            b"wasmtime_builtin_memory_grow",
        ];
        assert_eq!(guess(module.chain(own)), Producer::Wasmtime);
        let plain = std::iter::repeat_n(&b"alloc::vec::Vec"[..], 100_000);
        assert_eq!(guess(plain.clone().chain(own)), Producer::Wasmtime);
        assert_eq!(guess(plain.chain([&b"py::f"[..]])), Producer::Unknown);
        assert_eq!(guess([&b"py::f:/x.py"[..]]), Producer::CPython);
        assert_eq!(guess([]), Producer::Unknown);
    }

    #[test]
    fn names_give_their_runtime_away() {
        for (name, producer) in [
            (&b"JS:*fib /a.js:1:1"[..], Producer::V8),
            (b"wasm[0]::function[3]", Producer::Wasmtime),
            (b"py::f:/x.py", Producer::CPython),
            (b"JSC-DFG: fib[Call] /a.js:1:14", Producer::Jsc),
            (b"$global::call_light_bif_shared", Producer::Beam),
            (b"LHot;fib(I)I", Producer::HotSpot),
            (b"TRACE-4$fib$3", Producer::Php),
            (
                b"void [System.Private.CoreLib] System.Foo::Bar()[Tier0]",
                Producer::DotNet,
            ),
            (b"stub ReportStubBlock<MethodCallThunk>", Producer::DotNet),
            (
                b"stub<248> AllocateTemporaryEntryPoints<PRECODE_FIXUP>",
                Producer::DotNet,
            ),
            (
                b"(wrapper managed-to-native) string:FastAllocateString (int)",
                Producer::Mono,
            ),
            (b"guest-0xfe05b", Producer::Qemu),
            (b"[JIT] Object#block in words", Producer::Yjit),
            (b"hot:fib/1", Producer::Beam),
            (b"evalexpr_0_1", Producer::Llvm),
            (b"Program::Main()[OptimizedTier1]", Producer::DotNet),
            (b"Lower(x);", Producer::Unknown),
            (b"Lower;f(x)", Producer::Unknown),
            (b"std::path/1", Producer::Unknown),
            (b"/usr/lib/1", Producer::Unknown),
            (b"py::f", Producer::Unknown),
            (b"fib", Producer::Unknown),
            (b"", Producer::Unknown),
        ] {
            assert_eq!(Producer::of_name(name), producer, "{}", name.escape_ascii());
        }
    }
}
