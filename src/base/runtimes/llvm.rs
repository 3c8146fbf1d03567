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
    clean: |name| CleanName::plain(without_number(name).unwrap_or_else(|| names::native(name))),
    ..Runtime::UNKNOWN
};

/// Julia's `julia_fib_42` as `fib`. It numbers what it compiles in that order: one method more, and the next ones have other numbers.
/// What passes arguments on to a function (`jfptr_fib_43`) keeps that in front.
fn without_number(name: &str) -> Option<&str> {
    let is_of_julia = ["julia_", "japi1_", "jlsys_", "jfptr_", "gfptr_"];
    is_of_julia.iter().find(|front| name.starts_with(**front))?;
    let (numbered, number) = name.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let body = ["julia_", "japi1_", "jlsys_"];
    let own = body.iter().find_map(|front| numbered.strip_prefix(front));
    Some(own.unwrap_or(numbered)).filter(|own| is_number && !own.is_empty())
}

/// `evalexpr_0_1` and `deform_0_2` of PostgreSQL, `julia_fib_42` and `jfptr_fib_43` of Julia.
fn is_of_llvm_user(name: &[u8]) -> bool {
    let numbered = |symbol: &[u8]| {
        let underscore = symbol.iter().rposition(|&b| b == b'_');
        underscore.is_some_and(|at| {
            let number = &symbol[at + 1..];
            !number.is_empty() && number.iter().all(u8::is_ascii_digit)
        })
    };
    let prefixes: [&[u8]; 7] = [
        b"evalexpr_",
        b"deform_",
        b"julia_",
        b"japi1_",
        b"jlsys_",
        b"jfptr_",
        b"gfptr_",
    ];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) && numbered(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn julias_numbers_are_no_names() {
        let clean = |name: &str| (LLVM.clean)(name).name;
        assert_eq!(clean("julia_work_231"), "work");
        assert_eq!(clean("julia_#sort!#12_231"), "#sort!#12");
        assert_eq!(clean("jfptr_main_250"), "jfptr_main");
        for name in ["julia__1", "julia_work", "evalexpr_0_1", "work_231"] {
            assert_eq!(clean(name), name);
        }
    }
}
