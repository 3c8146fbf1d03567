//! Runtimes of which little is known but their names.

use super::{CleanName, Habit, Kind, Lapse, Producer, Runtime};

/// JavaScriptCore: Bun, WebKit.
pub(super) const JSC: Runtime = Runtime {
    producer: Producer::Jsc,
    name: "JavaScriptCore (Bun)",
    short_name: "JavaScriptCore",
    prefixes: &[b"JSC-"],
    tags_all_names: true,
    lapses: &[Lapse::NoClose],
    record: Some("BUN_JSC_useJITDump=1 bun"),
    ..Runtime::UNKNOWN
};

/// QEMU's translated code: all of it runs in the one frame that the code before it has built.
pub(super) const QEMU: Runtime = Runtime {
    producer: Producer::Qemu,
    name: "QEMU",
    short_name: "QEMU",
    prefixes: &[b"guest-0x", b"tcg-prologue-buffer"],
    tells_part_of_sizes: true,
    lapses: &[Lapse::NoClose],
    habit: |_| Habit::Translated,
    ..Runtime::UNKNOWN
};

/// What YJIT writes before the name of a method.
const YJIT_NAME: &str = "[JIT] ";

/// Methods of Ruby's core that are written in Ruby (3.3 and 3.4) and call the program's blocks.
const YJIT_CORE: [&str; 7] = [
    "Integer#times",
    "Array#each",
    "Array#map",
    "Array#select",
    "Kernel#loop",
    "Kernel#tap",
    "Kernel#then",
];

/// Ruby's YJIT (3.3): a perf map with an entry for each block of a method, and frame pointers, if it is asked for both.
pub(super) const YJIT: Runtime = Runtime {
    producer: Producer::Yjit,
    name: "Ruby (YJIT)",
    short_name: "YJIT",
    prefixes: &[YJIT_NAME.as_bytes()],
    tags_all_names: true,
    clean: |name| CleanName::plain(name.strip_prefix(YJIT_NAME).unwrap_or(name)),
    kind: |_, clean| {
        if YJIT_CORE.contains(&clean.name.as_str()) {
            Kind::Std
        } else {
            Kind::Own
        }
    },
    own: Some("Ruby methods"),
    record: Some("ruby --yjit --yjit-perf"),
    frames: Some("ruby --yjit --yjit-perf (=map alone leaves frame pointers out)"),
    ..Runtime::UNKNOWN
};
