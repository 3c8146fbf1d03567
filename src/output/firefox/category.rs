//! What kind of code a frame is, as the Firefox Profiler colours it: categories, and tiers of compilers as subcategories.

use serde_json::{Value, json};

use crate::profile::{CpuMode, Frame, Producer, Profile};
use crate::runtimes::Tier;

/// Index into the file's categories, and into the subcategories of that.
pub(super) type CategoryPair = (u8, u8);

const OTHER: CategoryPair = (0, 0);
const USER: CategoryPair = (1, 0);
const KERNEL: CategoryPair = (2, 0);
const JIT: u8 = 3;
const INTERPRETER: CategoryPair = (4, 0);
/// What a marker of waiting belongs to.
pub(super) const WAITING: u8 = 5;

/// Name, colour, subcategories; the first grey one is the default, and each begins with one for the rest.
const CATEGORIES: [(&str, &str, &[&str]); 6] = [
    ("Other", "grey", &["Other"]),
    ("User", "yellow", &["Other"]),
    ("Kernel", "orange", &["Other"]),
    (
        "JIT",
        "green",
        &[
            "Other",
            "Baseline",
            "Mid-tier",
            "Optimised",
            "Builtin",
            "RegExp",
            "Wasm",
        ],
    ),
    ("Interpreter", "magenta", &["Other"]),
    ("Off CPU", "transparent", &["Other"]),
];

/// Where code made at run time belongs.
const fn of_tier(tier: Tier) -> CategoryPair {
    let subcategory = match tier {
        Tier::Interpreted => return INTERPRETER,
        Tier::Unknown => 0,
        Tier::Baseline => 1,
        Tier::Middle => 2,
        Tier::Optimised => 3,
        Tier::Builtin => 4,
        Tier::RegExp => 5,
        Tier::Wasm => 6,
    };
    (JIT, subcategory)
}

/// The list of the file.
pub(super) fn list() -> Value {
    let category = |(name, color, subcategories): &(&str, &str, &[&str])| json!({ "name": name, "color": color, "subcategories": subcategories });
    CATEGORIES.iter().map(category).collect()
}

/// Where a frame belongs.
pub(super) fn of(profile: &Profile, frame: &Frame) -> CategoryPair {
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
fn of_generated(producer: Producer, name: &str) -> CategoryPair {
    of_tier((producer.row().tier)(name))
}

/// Pieces of runtimes lie in their programs, and so do their interpreters.
fn of_compiled(name: &str) -> CategoryPair {
    match Producer::of_built_in(name) {
        Some(producer) => of_generated(producer, name),
        None if Producer::is_loop(name) => INTERPRETER,
        None => USER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_tiers() {
        for (name, place) in [
            ("JS:*fib a.js:1:1", (JIT, 3)),
            ("JS:^fib a.js:1:1", (JIT, 1)),
            ("JS:~fib a.js:1:1", INTERPRETER),
            ("BytecodeHandler:LdaZero", INTERPRETER),
            ("Builtin:ArrayMap", (JIT, 4)),
            ("void App::Run()[Tier0]", (JIT, 1)),
            ("void App::Run()[OptimizedTier1]", (JIT, 3)),
            ("wasm[0]::function[3]", (JIT, 6)),
            ("JS:spin-0-turbofan", (JIT, 6)),
            ("jit::fib", (JIT, 0)),
        ] {
            assert_eq!(of_generated(Producer::Unknown, name), place, "{name}");
        }
        // Modules call their functions what they want.
        let of_module = |name| of_generated(Producer::Wasmtime, name);
        assert_eq!(of_module("matmul"), (JIT, 6));
        assert_eq!(of_module("wasm[0]::array_to_wasm_trampoline[3]"), (JIT, 4));
        assert_eq!(of_compiled("Builtins_LdaZeroHandler"), INTERPRETER);
        assert_eq!(of_compiled("Builtins_RegExpSplit"), (JIT, 4));
        for interpreter in ["_PyEval_EvalFrameDefault", "luaV_execute"] {
            assert_eq!(of_compiled(interpreter), INTERPRETER);
        }
        assert_eq!(of_compiled("main"), USER);
    }

    #[test]
    fn places_are_in_the_list() {
        let subcategories = CATEGORIES[usize::from(JIT)].2;
        assert_eq!(subcategories[usize::from(of_tier(Tier::Wasm).1)], "Wasm");
        assert_eq!(CATEGORIES[usize::from(WAITING)].0, "Off CPU");
        assert!(CATEGORIES.iter().all(|(_, _, subs)| subs[0] == "Other"));
    }
}
