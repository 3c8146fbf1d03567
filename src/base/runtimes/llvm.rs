//! LLVM's `PerfJITEventListener` or ORC plugin: PostgreSQL, Julia. Facts of releases 14 and 21.

use super::{CleanName, Lapse, Producer, Runtime, names};

pub(super) const LLVM: Runtime = Runtime {
    producer: Producer::Llvm,
    name: "LLVM (PostgreSQL, Julia)",
    short_name: "LLVM",
    engine: "LLVM",
    is_name: is_of_llvm_user,
    told_by: Some(Lapse::NoVma),
    lapses: &[
        Lapse::NoClose,
        Lapse::NoVma,
        Lapse::ShiftedLines,
        Lapse::HeaderFirst,
    ],
    clean: |name| CleanName::plain(names::native(name)),
    ..Runtime::UNKNOWN
};

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
