//! .NET and Mono, which run the same programs.

use super::{CleanName, Kind, Lapse, Producer, Runtime, Tier};

const OWN: &str = "classes outside System., Mono., Microsoft.";

pub(super) const DOTNET: Runtime = Runtime {
    producer: Producer::DotNet,
    name: ".NET",
    short_name: ".NET",
    is_name: is_of_dotnet,
    tags_all_names: true,
    lapses: &[Lapse::NoClose],
    kind,
    tier,
    own: Some(OWN),
    record: Some("DOTNET_PerfMapEnabled=3 dotnet"),
    gaps_in_map: Some(
        "short pieces of code between functions, which .NET's map leaves out; there is nothing to record for them",
    ),
    // dotnet/runtime#132935
    gives_up_at_stubs: Some(
        "DOTNET_PerfMapStubGranularity=2: .NET 10 cannot read its first block of stubs while it writes that, and \
         writes no more; or a perf map instead, DOTNET_PerfMapEnabled=3",
    ),
    ..Runtime::UNKNOWN
};

pub(super) const MONO: Runtime = Runtime {
    producer: Producer::Mono,
    name: "Mono",
    short_name: "Mono",
    told_by: Some(Lapse::HeaderSize),
    lapses: &[Lapse::HeaderSize, Lapse::NoClose],
    kind,
    own: Some(OWN),
    frames: Some("Mono has no switch that keeps frame pointers"),
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
