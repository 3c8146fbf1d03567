//! wasmtime. Facts of releases 25 to 48.
//!
//! Most names are those of the modules that it compiles, which may be anything; its own tell it.

use super::library::is_standard;
use super::package::of_module;
use super::{
    Activity, CleanName, Habit, Kind, Lapse, Producer, Runtime, Tier, Whose, names, recipe,
};

pub(super) const WASMTIME: Runtime = Runtime {
    producer: Producer::Wasmtime,
    name: "wasmtime",
    short_name: "wasmtime",
    engine: "wasmtime",
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
    maps_once: true,
    runs_copies: true,
    lapses: &[Lapse::NoClose, Lapse::Repeats],
    habit: |_| Habit::FramePointers,
    clean: |name| CleanName::plain(&names::without_crate_hashes(names::native(name))),
    kind,
    tier,
    own: Some("WebAssembly without its C and Rust library"),
    recipes: recipe::WASMTIME,
    activities: ACTIVITIES,
    made: "guest code",
    programs: &["wasmtime", "wasmer", "iwasm", "wasmedge"],
    libraries: &["libwasmtime", "_libwasmtime"],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        1,
        "compile",
        r"^(cranelift|regalloc2|wasmtime_cranelift|wasmtime_environ|wasmparser|winch|wasmtime::compile|
            wasmtime::engine::serialization|wasmtime::runtime::code_memory|wasmtime_internal_(?:cranelift|
            winch)|singlepass)|::CompiledModule::|compile_(module|function)|
            ^wasmtime::runtime::module::Module::(new|from_binary|deserialize)",
    ),
    Activity::new(
        1,
        "instantiate",
        r"^wasmtime::runtime::(vm::instance|instance::Instance::new|vm::cow|vm::mmap|vm::memory::\w*::new)|
            instantiate",
    ),
    Activity::new(
        2,
        "host calls",
        r"^(wasmtime_wasi|wasi_common|wiggle|cap_std|cap_primitives|system_interface)::|
            wasi_snapshot_preview1|^wasmtime_wasi",
    ),
    Activity::new(
        2,
        "memory growth",
        r"memory_grow|table_grow|::grow_memory|wasmtime_builtin_memory_grow",
    ),
];

/// Takes a function's name apart: `wasm[0]::function[12]`, module and index, and `::name` if the module has names.
#[must_use]
pub fn function(symbol: &[u8]) -> Option<(u32, u32, Option<&[u8]>)> {
    let (module, rest) = bracketed(symbol.strip_prefix(b"wasm[")?)?;
    let (index, rest) = bracketed(rest.strip_prefix(b"::function[")?)?;
    let name = match rest {
        [] => None,
        rest => Some(rest.strip_prefix(b"::")?),
    };
    Some((module, index, name))
}

/// A decimal number up to a bracket, and what follows.
fn bracketed(text: &[u8]) -> Option<(u32, &[u8])> {
    let end = memchr::memchr(b']', text)?;
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end + 1..]))
}

/// All but its own functions came out of a module.
fn tier(name: &str) -> Tier {
    if is_host(name) {
        Tier::Builtin
    } else {
        Tier::Wasm
    }
}

/// What it adds to a module. A guest may call a function `trampoline`, too.
fn is_host(name: &str) -> bool {
    const FRONTS: [&str; 7] = [
        "signatures[",
        "wasmtime_builtin_",
        "wasmtime_patchable_builtin_",
        "module_start[",
        "component-",
        "resource_drop_trampoline",
        "unsafe-intrinsics-",
    ];
    // A module has a hundred thousand names.
    name.starts_with(['s', 'w', 'm', 'c', 'r', 'u'])
        && (FRONTS.iter().any(|front| name.starts_with(front)) || is_entry(name))
}

/// `wasm[0]::array_to_wasm_trampoline[4]`, and `wasm::wasm_to_native_trampolines[1]` of version 9.
fn is_entry(name: &str) -> bool {
    let rest = name.strip_prefix("wasm");
    let rest = rest.filter(|rest| rest.starts_with(['[', ':']));
    let word = rest.and_then(|rest| Some(rest.split_once("::")?.1));
    let Some((from, to)) = word.and_then(|word| word.split_once("_to_")) else {
        return false;
    };
    matches!(from, "array" | "native" | "wasm") && to.contains("_trampoline")
}

fn package(_: &str, clean: &CleanName, kind: Kind) -> Whose {
    of_module(clean, kind, "guest")
}

fn kind(name: &str, clean: &CleanName) -> Kind {
    if is_host(name) {
        Kind::Runtime
    } else if is_standard(&clean.name) {
        Kind::Std
    } else {
        Kind::Own
    }
}
