//! Telling from a dump's contents which runtime wrote it.

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

/// Beginnings of names that only one runtime writes.
const PREFIXES: &[(&[u8], Producer)] = &[
    (b"JS:", Producer::V8),
    (b"Builtin:", Producer::V8),
    (b"BytecodeHandler:", Producer::V8),
    (b"RegExp:", Producer::V8),
    (b"LazyCompile:", Producer::V8),
    (b"wasm[", Producer::Wasmtime),
    (b"signatures[", Producer::Wasmtime),
    (b"wasmtime_", Producer::Wasmtime),
    (b"component-trampolines[", Producer::Wasmtime),
    (b"module_start[", Producer::Wasmtime),
    (b"py::", Producer::CPython),
    (b"JIT$", Producer::Php),
    (b"TRACE-", Producer::Php),
    (b"global::", Producer::Beam),
    (b"I2C/C2I adapters", Producer::HotSpot),
    (b"StubRoutines", Producer::HotSpot),
    (b"MethodHandle", Producer::HotSpot),
];

impl Producer {
    /// The runtime whose names look like this one, [`Producer::Unknown`] when many might.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Self {
        // BEAM's perf map puts a `$` in front.
        let name = name.strip_prefix(b"$").unwrap_or(name);
        let by_prefix = Self::of_prefix(name);
        if by_prefix != Self::Unknown {
            by_prefix
        } else if is_java_method(name) {
            Self::HotSpot
        } else if name.ends_with(b"-CodeInfoPrologue") {
            Self::Beam
        } else if contains(name, b"[System.Private.CoreLib]") || contains(name, b"[PreJIT]") {
            Self::DotNet
        } else {
            Self::Unknown
        }
    }

    /// The same by the beginning alone, cheap enough for every name of a dump.
    #[must_use]
    pub fn of_prefix(name: &[u8]) -> Self {
        let fits = |prefix: &[u8]| name.first() == prefix.first() && name.starts_with(prefix);
        let found = PREFIXES.iter().find(|(prefix, _)| fits(prefix));
        found.map_or(Self::Unknown, |&(_, producer)| producer)
    }

    /// Whether the writer puts the size of an ELF header on top of every line address, to please
    /// perf before 5.x (V8 `PerfJitLogger::LogWriteDebugInfo`, LLVM `PerfJITEventListener`).
    #[must_use]
    pub const fn shifts_line_addresses(self) -> bool {
        matches!(self, Self::V8 | Self::Llvm)
    }
}

/// `Lpkg/Class;method(Lsig;)V`, as libperf-jvmti writes methods.
fn is_java_method(name: &[u8]) -> bool {
    name.first() == Some(&b'L')
        && name
            .iter()
            .position(|&b| b == b';')
            .is_some_and(|semicolon| {
                let rest = &name[semicolon..];
                rest.contains(&b'(') && rest.contains(&b')')
            })
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|w| w == part)
}

#[cfg(test)]
mod tests {
    use super::Producer;

    #[test]
    fn names_give_their_runtime_away() {
        for (name, producer) in [
            (&b"JS:*fib /a.js:1:1"[..], Producer::V8),
            (b"wasm[0]::function[3]", Producer::Wasmtime),
            (b"py::f:/x.py", Producer::CPython),
            (b"$global::call_light_bif_shared", Producer::Beam),
            (b"LHot;fib(I)I", Producer::HotSpot),
            (b"TRACE-4$fib$3", Producer::Php),
            (
                b"void [System.Private.CoreLib] System.Foo::Bar()[Tier0]",
                Producer::DotNet,
            ),
            (b"Lower(x);", Producer::Unknown),
            (b"fib", Producer::Unknown),
            (b"", Producer::Unknown),
        ] {
            assert_eq!(Producer::of_name(name), producer, "{}", name.escape_ascii());
        }
    }
}
