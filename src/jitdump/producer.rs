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
    /// JavaScriptCore: Bun, WebKit.
    Jsc,
    /// QEMU's translated code.
    Qemu,
}

/// What a name says about how the code treats its stack, whoever wrote it: names of V8 also appear in perf maps, where
/// nothing else tells the producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NameKind {
    /// Nothing.
    #[default]
    Other,
    /// V8's Sparkplug.
    Sparkplug,
    /// V8's bytecode handlers and builtins.
    V8Piece,
    /// Other code of V8.
    V8Function,
    /// CPython's trampolines.
    PyTrampoline,
    /// What an Erlang process returns to from its first function (`beamasm`), also as perf maps have it.
    ErlangBase,
}

impl NameKind {
    /// Looks at the beginning of a name.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let starts = |prefix: &[u8]| name.starts_with(prefix);
        match name.first() {
            Some(b'J') if starts(b"JS:^") => Self::Sparkplug,
            Some(b'B') if starts(b"BytecodeHandler:") || starts(b"Builtin:") => Self::V8Piece,
            Some(b'J') if starts(b"JS:") => Self::V8Function,
            Some(b'R') if starts(b"RegExp:") => Self::V8Function,
            Some(b'S') if starts(b"Script:") => Self::V8Function,
            Some(b'E') if starts(b"Eval:") => Self::V8Function,
            Some(b'p') if starts(b"py::") => Self::PyTrampoline,
            Some(b'e') if starts(b"erts_beamasm:normal_exit/") => Self::ErlangBase,
            Some(b'$') if starts(b"$erts_beamasm:normal_exit/") => Self::ErlangBase,
            _ => Self::Other,
        }
    }
}

/// Beginnings of names that only one runtime writes.
const PREFIXES: &[(&[u8], Producer)] = &[
    (b"JS:", Producer::V8),
    (b"Builtin:", Producer::V8),
    (b"BytecodeHandler:", Producer::V8),
    (b"RegExp:", Producer::V8),
    (b"Script:", Producer::V8),
    (b"Eval:", Producer::V8),
    (b"LazyCompile:", Producer::V8),
    (b"wasm[", Producer::Wasmtime),
    (b"signatures[", Producer::Wasmtime),
    (b"wasmtime_", Producer::Wasmtime),
    (b"component-trampolines[", Producer::Wasmtime),
    (b"module_start[", Producer::Wasmtime),
    (b"py::", Producer::CPython),
    (b"JSC-", Producer::Jsc),
    (b"guest-0x", Producer::Qemu),
    (b"tcg-prologue-buffer", Producer::Qemu),
    (b"JIT$", Producer::Php),
    (b"TRACE-", Producer::Php),
    (b"global::", Producer::Beam),
    (b"I2C/C2I adapters", Producer::HotSpot),
    (b"StubRoutines", Producer::HotSpot),
    (b"MethodHandle", Producer::HotSpot),
];

/// The bytes that [`PREFIXES`] begin with: most names of a module are told by their first.
const BEGINS_PREFIX: [bool; 256] = {
    let mut begins = [false; 256];
    let mut at = 0;
    while at < PREFIXES.len() {
        begins[PREFIXES[at].0[0] as usize] = true;
        at += 1;
    }
    begins
};

/// What .NET puts behind a method to say how it was compiled.
const DOTNET_TIERS: [&[u8]; 8] = [
    b"[Tier0]",
    b"[Tier1]",
    b"[OptimizedTier1]",
    b"[OptimizedTier1OSR]",
    b"[Optimized]",
    b"[QuickJitted]",
    b"[MinOptJitted]",
    b"[PreJIT]",
];

impl Producer {
    /// All but [`Producer::Unknown`].
    pub const ALL: [Self; 11] = [
        Self::V8,
        Self::Wasmtime,
        Self::Llvm,
        Self::CPython,
        Self::HotSpot,
        Self::Mono,
        Self::Php,
        Self::Beam,
        Self::DotNet,
        Self::Jsc,
        Self::Qemu,
    ];

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
        } else if name.ends_with(b"-CodeInfoPrologue") || is_erlang_function(name) {
            Self::Beam
        } else if is_of_dotnet(name) {
            Self::DotNet
        } else if is_of_llvm_user(name) {
            Self::Llvm
        } else {
            Self::Unknown
        }
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
        match name.first() {
            Some(&first) if BEGINS_PREFIX[usize::from(first)] => Self::of_known_prefix(name),
            _ => Self::Unknown,
        }
    }

    /// None of the prefixes is shorter than two bytes.
    fn of_known_prefix(name: &[u8]) -> Self {
        let fits = |prefix: &[u8]| name.get(..2) == prefix.get(..2) && name.starts_with(prefix);
        let found = PREFIXES.iter().find(|(prefix, _)| fits(prefix));
        found.map_or(Self::Unknown, |&(_, producer)| producer)
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::V8 => "V8 (Node.js, Chromium, Deno)",
            Self::Wasmtime => "wasmtime",
            Self::Llvm => "LLVM (PostgreSQL, Julia)",
            Self::CPython => "CPython",
            Self::HotSpot => "HotSpot (Java, libperf-jvmti)",
            Self::Mono => "Mono",
            Self::Php => "PHP",
            Self::Beam => "Erlang (BEAM)",
            Self::DotNet => ".NET",
            Self::Jsc => "JavaScriptCore (Bun)",
            Self::Qemu => "QEMU",
        }
    }

    /// The same in one word.
    #[must_use]
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::V8 => "V8",
            Self::Wasmtime => "wasmtime",
            Self::Llvm => "LLVM",
            Self::CPython => "CPython",
            Self::HotSpot => "Java",
            Self::Mono => "Mono",
            Self::Php => "PHP",
            Self::Beam => "Erlang",
            Self::DotNet => ".NET",
            Self::Jsc => "JavaScriptCore",
            Self::Qemu => "QEMU",
        }
    }

    /// Whether it gives every name of its own a beginning or an end that is its alone.
    const fn tags_all_names(self) -> bool {
        matches!(
            self,
            Self::V8 | Self::CPython | Self::Php | Self::DotNet | Self::Jsc
        )
    }

    /// Whether the writer puts the size of an ELF header on top of every line address, to please
    /// perf before 5.x (V8 `PerfJitLogger::LogWriteDebugInfo`, LLVM `PerfJITEventListener`).
    #[must_use]
    pub const fn shifts_line_addresses(self) -> bool {
        matches!(self, Self::V8 | Self::Llvm)
    }
}

/// So many names are looked at closely, of those behind them one in [`ONE_IN`].
const CLOSELY: u64 = 4096;
const ONE_IN: u64 = 64;

/// Counts whose names a dump has. One name alone decides nothing: a wasm module may call its functions
/// `py::f` or `Lower;(x)`, and wasmtime's own names come behind those of the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Votes {
    of: [u64; Producer::ALL.len()],
    asked: u64,
    names: u64,
}

impl Votes {
    /// Takes one more name into account.
    pub(crate) fn add(&mut self, name: &[u8]) {
        self.add_with(name, |name| name);
    }

    /// The same with bytes that begin with the name; where it ends, `whole` finds out if that matters.
    #[inline]
    pub(crate) fn add_with<'n>(
        &mut self,
        beginning: &'n [u8],
        whole: impl Fn(&'n [u8]) -> &'n [u8],
    ) {
        self.names += 1;
        let closely = self.names <= CLOSELY || self.names.is_multiple_of(ONE_IN);
        let producer = if closely {
            Producer::of_name(whole(beginning))
        } else {
            Producer::of_prefix(beginning)
        };
        // A name that was only glanced at counts where it says something.
        self.asked += u64::from(closely || producer != Producer::Unknown);
        if let Some(at) = place(producer) {
            self.of[at] += 1;
        }
    }

    /// How many of the names looked at are of this runtime.
    pub(crate) fn count(&self, producer: Producer) -> u64 {
        place(producer).map_or(0, |at| self.of[at])
    }

    /// How many names were looked at.
    pub(crate) const fn asked(&self) -> u64 {
        self.asked
    }

    /// The runtime that the names are of. wasmtime is told by a few of its own among those that the
    /// module brought; of all others, most names must be theirs.
    pub(crate) fn producer(&self) -> Producer {
        let Some((&most, producer)) = self
            .of
            .iter()
            .zip(Producer::ALL)
            .max_by_key(|&(&votes, producer)| (votes, std::cmp::Reverse(producer)))
        else {
            return Producer::Unknown;
        };
        let has_wasmtime = self.count(Producer::Wasmtime) > 0;
        let share = |percent: u64| most.saturating_mul(100) >= self.asked.saturating_mul(percent);
        let enough = match (producer.tags_all_names(), has_wasmtime) {
            (true, true) => share(100),
            (true, false) => share(80),
            (false, true) => share(90),
            (false, false) => share(25),
        };
        if most > 0 && enough {
            producer
        } else if has_wasmtime {
            Producer::Wasmtime
        } else {
            Producer::Unknown
        }
    }
}

fn place(producer: Producer) -> Option<usize> {
    Producer::ALL.iter().position(|&known| known == producer)
}

/// `Lpkg/Class;method(Lsig;)V`, as libperf-jvmti writes methods.
fn is_java_method(name: &[u8]) -> bool {
    if name.first() != Some(&b'L') {
        return false;
    }
    let Some(semicolon) = name.iter().position(|&b| b == b';') else {
        return false;
    };
    let rest = &name[semicolon..];
    let open = rest.iter().position(|&b| b == b'(');
    let close = rest.iter().rposition(|&b| b == b')');
    // A descriptor of the result follows, which is never empty.
    open.zip(close)
        .is_some_and(|(open, close)| open < close && close + 1 < rest.len())
}

/// `mod:fun/arity`.
fn is_erlang_function(name: &[u8]) -> bool {
    let Some(slash) = name.iter().rposition(|&b| b == b'/') else {
        return false;
    };
    let (before, arity) = (&name[..slash], &name[slash + 1..]);
    let colon = before.iter().position(|&b| b == b':');
    (1..=3).contains(&arity.len())
        && arity.iter().all(u8::is_ascii_digit)
        && colon.is_some_and(|at| at > 0 && before.get(at + 1).is_some_and(|&b| b != b':'))
}

/// `evalexpr_0_1` and `deform_0_2` of PostgreSQL, `julia_fib_42` and `jfptr_fib_43` of Julia.
fn is_of_llvm_user(name: &[u8]) -> bool {
    let numbered = |name: &[u8]| {
        let underscore = name.iter().rposition(|&b| b == b'_');
        underscore.is_some_and(|at| {
            let number = &name[at + 1..];
            !number.is_empty() && number.iter().all(u8::is_ascii_digit)
        })
    };
    let prefixes: [&[u8]; 5] = [b"evalexpr_", b"deform_", b"julia_", b"jfptr_", b"jlsys_"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) && numbered(name)
}

/// A tier of the compiler at the end, the library of all, or a stub.
fn is_of_dotnet(name: &[u8]) -> bool {
    let is_stub =
        (name.starts_with(b"stub ") || name.starts_with(b"stub<")) && name.contains(&b'<');
    let has_tier = || DOTNET_TIERS.iter().any(|tier| name.ends_with(tier));
    let part = b"[System.Private.CoreLib]";
    is_stub
        || name.ends_with(b"]") && has_tier()
        || name.contains(&b'[') && memchr::memmem::find(name, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::Producer;

    fn guess<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Producer {
        Producer::of_names(names.into_iter())
    }

    #[test]
    fn one_name_does_not_decide() {
        let java = [&b"py::lambda"[..], b"LHot;fib(I)I", b"LHot;main(I)V"];
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
            (b"guest-0xfe05b", Producer::Qemu),
            (b"hot:fib/1", Producer::Beam),
            (b"evalexpr_0_1", Producer::Llvm),
            (b"Program::Main()[OptimizedTier1]", Producer::DotNet),
            (b"Lower(x);", Producer::Unknown),
            (b"Lower;f(x)", Producer::Unknown),
            (b"std::path/1", Producer::Unknown),
            (b"/usr/lib/1", Producer::Unknown),
            (b"fib", Producer::Unknown),
            (b"", Producer::Unknown),
        ] {
            assert_eq!(Producer::of_name(name), producer, "{}", name.escape_ascii());
        }
    }
}
