//! .NET and Mono, which run the same programs.

use super::{
    Activity, CleanName, Ecosystem, Habit, Kind, Lapse, Producer, Runtime, Tier, Whose, recipe,
    switch,
};

const OWN: &str = "classes outside System., Mono., Microsoft.";

pub(super) const DOTNET: Runtime = Runtime {
    producer: Producer::DotNet,
    name: ".NET",
    short_name: ".NET",
    engine: ".NET",
    is_name: is_of_dotnet,
    tags_all_names: true,
    lapses: &[Lapse::NoClose],
    keeps_frames: true,
    habit,
    kind,
    tier,
    own: Some(OWN),
    recipes: recipe::DOTNET,
    switches: switch::DOTNET,
    gaps_in_map: Some(
        "short pieces of code between functions, which .NET's map leaves out; there is nothing to record for them",
    ),
    // dotnet/runtime#132935
    gives_up_at_stubs: Some(
        "DOTNET_PerfMapStubGranularity=2: .NET 10 cannot read its first block of stubs while it writes that, and \
         writes no more; or a perf map instead, DOTNET_PerfMapEnabled=3",
    ),
    activities: ACTIVITIES,
    programs: &["dotnet"],
    libraries: &["libcoreclr", "libclrjit", "libclrgc"],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^(SVR::|WKS::|GCToOSInterface|GCHeap|gc_heap|GarbageCollect|sgen_|major_(copy|scan|mark|sweep)|
            simple_nursery|drain_gray|mono_gc_(collect|invoke|finali|run|scan|mark|perform|clear)|gray_|ms_)|sgen_",
    ),
    Activity::new(
        1,
        "JIT compile",
        r"libclrjit|^(Compiler::|CodeGen|LinearScan|Lowering|emitter|GenTree|mini_|mono_(?:jit|method_to_ir|
            arch_|codegen|local|decompose|spill|optimize|peephole|ssa|handle_global|linear|analyze|
            allocate_vars|compile|emit|burg|cprop|abcrem|bblock|create_jump)|UnsafeJitFunction|
            MethodDesc::(?:Jit|Prepare)|PreStub|TieredCompilation|inline_method|emit_)",
    ),
    Activity::new(
        1,
        "class loading",
        r"^(ClassLoader|MethodTable(?:Builder)?|TypeHandle|Assembly|PEImage|Module::|MDInternal|mono_(?:class|
            metadata|image|assembly)|Binder)",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(JIT_New|AllocateObject|Alloc\b|AllocateString|AllocateSzArray|mono_(?:object|array|string)_new|
            mono_gc_(?:alloc|new)|ves_icall_object_new|SlowAllocate)",
    ),
    Activity::new(3, "interpreter", r"^(interp_exec|mono_interp)"),
];

pub(super) const MONO: Runtime = Runtime {
    producer: Producer::Mono,
    // In a perf map, which has no head that tells.
    prefixes: &[b"(wrapper "],
    names_are_of_programs: true,
    name: "Mono",
    short_name: "Mono",
    engine: "Mono",
    told_by: Some(Lapse::HeaderSize),
    lapses: &[Lapse::HeaderSize, Lapse::NoClose],
    kind,
    own: Some(OWN),
    frames: Some("Mono has no switch that keeps frame pointers"),
    activities: ACTIVITIES,
    programs: &["mono", "mono-sgen"],
    libraries: &["libmono", "libmonosgen"],
    package,
    recipes: recipe::MONO,
    switches: switch::MONO,
    ..Runtime::UNKNOWN
};

/// What stands behind a method to say how it was compiled.
const TIERS: [(&str, Tier); 10] = [
    ("[Tier0]", Tier::Baseline),
    ("[QuickJitted]", Tier::Baseline),
    ("[MinOptJitted]", Tier::Baseline),
    ("[InstrumentedTier]", Tier::Baseline),
    ("[InstrumentedTierOptimized]", Tier::Optimised),
    ("[Tier1]", Tier::Optimised),
    ("[OptimizedTier1]", Tier::Optimised),
    ("[OptimizedTier1OSR]", Tier::Optimised),
    ("[Optimized]", Tier::Optimised),
    ("[PreJIT]", Tier::Optimised),
];

fn tier(name: &str) -> Tier {
    let found = TIERS.iter().find(|(word, _)| name.ends_with(word));
    found.map_or(Tier::Unknown, |&(_, tier)| tier)
}

/// The name without its tier, if it has one.
pub(super) fn without_tier(name: &str) -> Option<&str> {
    let name = name.trim_end();
    let mut cut = TIERS.iter().filter_map(|(word, _)| name.strip_suffix(word));
    cut.next().filter(|rest| !rest.is_empty())
}

/// How the names of stubs end that jump to a method: those before a method has code or another one, and of virtual calls. Resolving
/// stubs are no such, for they put a register on the stack.
const JUMPS: [&[u8]; 6] = [
    b"<PRECODE_FIXUP>",
    b"<PRECODE_STUB>",
    b"<GenerateVTableCallStub>",
    b"<GenerateDispatchStub>",
    b"<MethodCallThunk>",
    b"<VSD_DispatchStub>",
];

fn habit(name: &[u8]) -> Habit {
    if name.starts_with(b"stub") && JUMPS.iter().any(|jumps| name.ends_with(jumps)) {
        Habit::Jumps
    } else {
        Habit::Unknown
    }
}

/// A tier of the compiler at the end, the library of all, or a stub.
fn is_of_dotnet(name: &[u8]) -> bool {
    let is_stub =
        (name.starts_with(b"stub ") || name.starts_with(b"stub<")) && name.contains(&b'<');
    let has_tier = || {
        TIERS
            .iter()
            .any(|(tier, _)| name.ends_with(tier.as_bytes()))
    };
    let part = b"[System.Private.CoreLib]";
    is_stub
        || name.ends_with(b"]") && has_tier()
        || name.contains(&b'[') && memchr::memmem::find(name, part).is_some()
}

fn package(name: &str, _: &CleanName, kind: Kind) -> Whose {
    match kind {
        Kind::Runtime => Whose::Nobody,
        Kind::Std => Whose::Std(".NET library"),
        _ => {
            let front = name.split_once("] ").map(|(front, _)| front);
            match front.and_then(|front| front.rsplit_once('[')) {
                Some((_, assembly)) => Whose::Package(Ecosystem::DotNet, assembly.to_owned()),
                None => Whose::Package(Ecosystem::Own, ".NET classes".to_owned()),
            }
        }
    }
}

fn kind(name: &str, _: &CleanName) -> Kind {
    const PACKAGES: [&str; 3] = ["System.", "Mono.", "Microsoft."];
    const STUBS: [&str; 3] = ["(wrapper", "(null)", "delegate_invoke"];
    // `[assembly] Class::f` and return types come in front.
    let begins = |prefix: &str| name.starts_with(prefix) || name.contains(&format!("] {prefix}"));
    if STUBS.iter().any(|stub| name.starts_with(stub)) || name.contains("(wrapper ") {
        Kind::Runtime
    } else if PACKAGES.iter().any(|package| begins(package)) {
        Kind::Std
    } else {
        Kind::Own
    }
}
