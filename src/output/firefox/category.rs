//! What a frame does and what kind of code it is, as the Firefox Profiler colours it: activities are categories, kinds of code and
//! tiers of compilers are subcategories.
//!
//! The profiler takes what a sample does from its innermost frame, and colours the others too. So a frame has the activity of a stack
//! that would end with it, and one below several stacks is there several times.

use serde_json::{Value, json};

use crate::functions::payers::ActivityId;
use crate::profile::{CpuMode, Frame, Producer, Profile};
use crate::runtimes::Tier;

/// A kind of code: index into the subcategories, which are the same in all categories.
pub(super) type Kind = u8;

/// Of what is no code.
pub(super) const OTHER: Kind = 0;
const USER: Kind = 1;
const KERNEL: Kind = 2;
const INTERPRETER: Kind = 3;
const JIT: Kind = 4;

/// Kinds of code; the first is what the profiler expects there.
const KINDS: [&str; 11] = [
    "Other",
    "User",
    "Kernel",
    "Interpreter",
    "JIT",
    "Baseline",
    "Mid-tier",
    "Optimised",
    "Builtin",
    "RegExp",
    "Wasm",
];

/// Categories that are no activities, with their colours: the grey one is of what is mixed, or no code.
const MADE: [(&str, &str); 2] = [("Other", "grey"), ("Off CPU", "transparent")];

/// What a marker of waiting belongs to: index into the categories.
pub(super) const WAITING: u8 = 1;

/// Colours of activities, the same in all files. The profiler has a dozen, so that what is alike shares one.
const COLOURS: [(&str, &[&str]); 12] = [
    ("yellow", &["code"]),
    (
        "green",
        &[
            "optimised code",
            "baseline code",
            "compiled code",
            "guest code",
        ],
    ),
    (
        "lightgreen",
        &[
            "interpreter",
            "calls and builtins",
            "built-in functions",
            "runtime calls",
            "host calls",
            "runtime, other",
        ],
    ),
    (
        "blue",
        &[
            "JIT compile",
            "compile",
            "deoptimisation",
            "LLVM",
            "code generation",
            "type checking",
            "borrow checking and MIR",
            "queries",
        ],
    ),
    (
        "lightblue",
        &[
            "parsing",
            "parsing and expansion",
            "class loading",
            "importing",
            "dynamic linking",
            "linking",
            "metadata",
            "instantiate",
            "JSON",
            "regex",
            "certificates",
        ],
    ),
    ("red", &["GC"]),
    (
        "lightred",
        &[
            "allocation",
            "page faults",
            "memory mapping",
            "memory growth",
            "stack growth",
        ],
    ),
    (
        "purple",
        &[
            "inline caches",
            "attribute lookup",
            "maps and sets",
            "maps",
            "ETS and maps",
            "dictionaries",
            "hash tables",
            "strings",
            "numbers",
        ],
    ),
    (
        "brown",
        &[
            "memcpy and memset",
            "memcmp and memchr",
            "copying messages",
            "sorting",
            "math",
            "linear algebra",
            "compression and hashes",
            "encryption",
        ],
    ),
    (
        "orange",
        &[
            "kernel, other",
            "kernel threads",
            "system calls, other",
            "file input and output",
            "input and output",
            "network",
            "pipes",
            "terminals",
            "processes and threads",
            "interrupts",
            "time",
            "timers and event loop",
        ],
    ),
    (
        "magenta",
        &[
            "waiting by spinning",
            "waiting",
            "waiting for a processor",
            "waiting for the GIL",
            "locks",
            "locks and channels",
            "kernel lock contention",
            "scheduler",
        ],
    ),
    (
        "darkgrey",
        &["profiling itself", "stack walking", "unwinding", "unknown"],
    ),
];

/// The colour of an activity; idle ones are not seen.
fn colour(activity: &str) -> Option<&'static str> {
    let mut all = COLOURS.iter();
    let found = all.find(|(_, activities)| activities.contains(&activity));
    found
        .map(|(colour, _)| *colour)
        .or((activity == IDLE).then_some("transparent"))
}

/// The activity that the profiler has a name for: it does not count as use of a CPU.
const IDLE: &str = "idle";

/// The list of the file: what is made for it, and activities in their order.
pub(super) fn list<'a>(activities: impl Iterator<Item = &'a str>) -> Value {
    let activities = activities.map(|activity| {
        let name = if activity == IDLE { "Idle" } else { activity };
        (name, colour(activity).unwrap_or("yellow"))
    });
    let category = |(name, color)| json!({ "name": name, "color": color, "subcategories": KINDS });
    MADE.into_iter().chain(activities).map(category).collect()
}

/// The place of an activity in that list.
pub(super) fn doing(activity: ActivityId) -> u16 {
    activity.0 + MADE.len() as u16
}

/// What code made at run time is.
const fn of_tier(tier: Tier) -> Kind {
    match tier {
        Tier::Interpreted => INTERPRETER,
        Tier::Unknown => JIT,
        Tier::Baseline => JIT + 1,
        Tier::Middle => JIT + 2,
        Tier::Optimised => JIT + 3,
        Tier::Builtin => JIT + 4,
        Tier::RegExp => JIT + 5,
        Tier::Wasm => JIT + 6,
    }
}

/// The kind of a frame's code.
pub(super) fn kind(profile: &Profile, frame: &Frame) -> Kind {
    let object = frame.object.map(|object| &profile[object]);
    if frame.mode == CpuMode::Kernel || object.is_some_and(|object| object.is_kernel) {
        return KERNEL;
    }
    let Some(object) = object.filter(|object| !object.is_label()) else {
        return OTHER;
    };
    let name = frame.symbol.map(|symbol| profile[symbol].name.as_str());
    let producer = frame.symbol.and_then(|symbol| profile[symbol].producer);
    if object.is_jit || producer.is_some() {
        return of_generated(producer.unwrap_or_default(), name.unwrap_or_default());
    }
    of_compiled(name.unwrap_or_default())
}

/// Names tell tiers, where the runtime says so.
fn of_generated(producer: Producer, name: &str) -> Kind {
    of_tier((producer.row().tier)(name))
}

/// Pieces of runtimes lie in their programs, and so do their interpreters.
fn of_compiled(name: &str) -> Kind {
    match Producer::of_built_in(name) {
        Some(producer) => of_generated(producer, name),
        None if Producer::is_loop(name) => INTERPRETER,
        None => USER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Scope;

    #[test]
    fn names_tell_tiers() {
        for (name, place) in [
            ("JS:*fib a.js:1:1", JIT + 3),
            ("JS:^fib a.js:1:1", JIT + 1),
            ("JS:~fib a.js:1:1", INTERPRETER),
            ("BytecodeHandler:LdaZero", INTERPRETER),
            ("Builtin:ArrayMap", JIT + 4),
            ("void App::Run()[Tier0]", JIT + 1),
            ("void App::Run()[OptimizedTier1]", JIT + 3),
            ("wasm[0]::function[3]", JIT + 6),
            ("JS:spin-0-turbofan", JIT + 6),
            ("jit::fib", JIT),
        ] {
            assert_eq!(of_generated(Producer::Unknown, name), place, "{name}");
        }
        // Modules call their functions what they want.
        let of_module = |name| of_generated(Producer::Wasmtime, name);
        assert_eq!(of_module("matmul"), JIT + 6);
        assert_eq!(of_module("wasm[0]::array_to_wasm_trampoline[3]"), JIT + 4);
        assert_eq!(of_compiled("Builtins_LdaZeroHandler"), INTERPRETER);
        assert_eq!(of_compiled("Builtins_RegExpSplit"), JIT + 4);
        for interpreter in ["_PyEval_EvalFrameDefault", "luaV_execute"] {
            assert_eq!(of_compiled(interpreter), INTERPRETER);
        }
        assert_eq!(of_compiled("main"), USER);
    }

    #[test]
    fn kinds_have_names() {
        for (tier, name) in [
            (Tier::Interpreted, "Interpreter"),
            (Tier::Unknown, "JIT"),
            (Tier::Optimised, "Optimised"),
            (Tier::Wasm, "Wasm"),
        ] {
            assert_eq!(KINDS[usize::from(of_tier(tier))], name);
        }
        assert_eq!(MADE[usize::from(WAITING)].0, "Off CPU");
    }

    #[test]
    fn every_activity_has_one_colour() {
        for scope in Scope::all() {
            for row in scope.rows() {
                assert!(colour(row.name).is_some(), "{}", row.name);
            }
            if let Scope::Runtime(producer) = scope {
                let made = producer.row().made;
                assert!(colour(made).is_some(), "{made}");
            }
        }
        let mut all: Vec<&str> = COLOURS.iter().flat_map(|(_, all)| *all).copied().collect();
        let before = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), before);
        let file = list(["GC", "idle"].into_iter());
        assert_eq!(file[2]["color"], "red");
        assert_eq!(file[3]["name"], "Idle");
    }
}
