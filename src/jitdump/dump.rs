//! One jitdump file: bytes in, code loads and moves out, in file order and without copying.

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
    /// CPython's perf trampolines.
    CPython,
    /// HotSpot with the JVMTI agent.
    HotSpot,
    /// Mono.
    Mono,
    /// PHP's opcache.
    Php,
    /// Erlang's BEAM.
    Beam,
    /// .NET.
    DotNet,
}
