//! wasmtime. Facts of releases 25 to 48.
//!
//! Most names are those of the modules that it compiles, which may be anything; its own tell it.

use super::library::is_standard;
use super::{CleanName, Habit, Kind, Lapse, Producer, Runtime, Tier, names};

pub(super) const WASMTIME: Runtime = Runtime {
    producer: Producer::Wasmtime,
    name: "wasmtime",
    short_name: "wasmtime",
    prefixes: &[
        b"wasm[",
        b"signatures[",
        b"wasmtime_",
        b"component-trampolines[",
        b"module_start[",
    ],
    names_are_of_programs: true,
    compiles_wasm: true,
    renames_repeats: true,
    runs_copies: true,
    lapses: &[Lapse::NoClose, Lapse::Repeats],
    habit: |_| Habit::FramePointers,
    clean: |name| CleanName::plain(names::native(name)),
    kind,
    tier,
    own: Some("WebAssembly without its C and Rust library"),
    record: Some("wasmtime --profile=jitdump"),
    ..Runtime::UNKNOWN
};

/// All but its own functions came out of a module.
fn tier(name: &str) -> Tier {
    if is_host(name) {
        Tier::Builtin
    } else {
        Tier::Wasm
    }
}

fn is_host(name: &str) -> bool {
    name.contains("trampoline")
        || name.starts_with("signatures[")
        || name.starts_with("wasmtime_builtin_")
        || name.starts_with("module_start[")
        || name.starts_with("component-")
}

fn kind(name: &str, _: &CleanName) -> Kind {
    if is_host(name) {
        Kind::Runtime
    } else if is_standard(name) {
        Kind::Std
    } else {
        Kind::Own
    }
}
