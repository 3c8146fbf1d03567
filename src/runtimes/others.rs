//! Runtimes of which little is known but their names.

use super::{Habit, Lapse, Producer, Runtime};

/// JavaScriptCore: Bun, WebKit.
pub(super) const JSC: Runtime = Runtime {
    producer: Producer::Jsc,
    name: "JavaScriptCore (Bun)",
    short_name: "JavaScriptCore",
    prefixes: &[b"JSC-"],
    tags_all_names: true,
    lapses: &[Lapse::NoClose],
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
