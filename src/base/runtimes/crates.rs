//! Crates of Rust's functions, by their demangled names.

use smallvec::SmallVec;

/// Crates that come with Rust.
const RUST_STD: [&str; 11] = [
    "__rustc",
    "std",
    "core",
    "alloc",
    "proc_macro",
    "test",
    "compiler_builtins",
    "std_detect",
    "panic_unwind",
    "panic_abort",
    "backtrace_rs",
];

/// Crates that Rust's library has in it, and programs have as well.
const VENDORED: [&str; 10] = [
    "dlmalloc",
    "rustc_demangle",
    "gimli",
    "addr2line",
    "miniz_oxide",
    "memchr",
    "adler2",
    "object",
    "libc",
    "hashbrown",
];

/// Whether a crate is a part of Rust's library.
#[must_use]
pub fn is_rust_std(name: &str) -> bool {
    RUST_STD.contains(&name)
}

/// Whether it may be.
#[must_use]
pub fn may_be_rust_std(name: &str) -> bool {
    VENDORED.contains(&name)
}

/// How deep types in names are looked into.
const DEEPEST: usize = 16;

/// The crate of a Rust function: `a` of `a::b::c` and `<a::T as core::fmt::Debug>::fmt`; that of the trait where the type is the library's
/// or has none.
#[must_use]
pub fn crate_of(name: &str) -> Option<&str> {
    crate_within(name, DEEPEST)
}

fn crate_within(name: &str, depth: usize) -> Option<&str> {
    if !name.starts_with('<') {
        return first_word(name);
    }
    let (of, of_trait) = implemented(name)?;
    let depth = depth.checked_sub(1)?;
    let of = crate_within(of, depth);
    if of.is_some_and(|of| !is_rust_std(of)) {
        return of;
    }
    // For a type of the library nobody but the trait's crate can have it.
    let of_trait = crate_within(of_trait, depth);
    let others = of_trait.filter(|of_trait| !is_rust_std(of_trait));
    others.or(of).or(of_trait).or(Some("core"))
}

/// The crates that may have a method of a trait, if there are several: `a`, `b` and `c` of `<a::T<b::U> as c::Trait>::f`. Rust's own
/// have none of a type or trait that is not theirs.
#[must_use]
pub fn crates_of_method(name: &str) -> SmallVec<[&str; 4]> {
    const MOST: usize = 8;
    let mut crates: SmallVec<[&str; 4]> = SmallVec::new();
    let Some((of, of_trait)) = implemented(name).filter(|(_, of_trait)| !of_trait.is_empty())
    else {
        return crates;
    };
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for part in [of, of_trait] {
        for (at, _) in part.match_indices("::") {
            let (before, word) = part[..at].split_at(part[..at].trim_end_matches(is_of_word).len());
            let is_first = !word.is_empty() && !before.ends_with("::");
            let is_new = !is_rust_std(word) && !crates.contains(&word);
            if is_first && is_new && crates.len() < MOST {
                crates.push(word);
            }
        }
    }
    if crates.len() < 2 {
        crates.clear();
    }
    crates
}

/// The type without what refers to it, and the trait, if there is one, of `<TYPE as TRAIT>::f`.
fn implemented(name: &str) -> Option<(&str, &str)> {
    let inner = name.strip_prefix('<')?;
    let (mut depth, mut cut, mut end) = (0_u32, None, inner.len());
    let bytes = inner.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            // `->` is no bracket.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' if depth == 0 => {
                end = at;
                break;
            }
            b'>' => depth -= 1,
            b' ' if depth == 0 && cut.is_none() && inner[at..].starts_with(" as ") => {
                cut = Some(at)
            }
            _ => {}
        }
    }
    let (of, behind) = match cut {
        Some(at) => (&inner[..at], inner.get(at + 4..end).unwrap_or_default()),
        None => (&inner[..end], ""),
    };
    Some((without_pointers(of), behind))
}

/// The type that a type of pointers or slices is about: `T` of `&mut [T]`.
fn without_pointers(of: &str) -> &str {
    const FRONTS: [&str; 7] = ["&", "*", "[", "(", "mut ", "const ", "dyn "];
    const DEEPEST: usize = 4;
    // A module has thousands of methods, and most types are plain.
    if !of.starts_with(['&', '*', '[', '(', 'm', 'c', 'd']) {
        return of;
    }
    let fronts = FRONTS.iter().cycle().take(DEEPEST * FRONTS.len());
    fronts.fold(of, |of, front| of.strip_prefix(front).unwrap_or(of))
}

/// What stands in front of the first `::`, if it is one word.
pub(super) fn first_word(path: &str) -> Option<&str> {
    let mut colons = memchr::memchr_iter(b':', path.as_bytes());
    let end = colons.find(|at| path[*at..].starts_with("::"))?;
    let first = &path[..end];
    let is_word = first
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_word && !first.is_empty()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_the_first_part_of_names() {
        for (name, of) in [
            ("regex_automata::dfa::find", Some("regex_automata")),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                Some("alloc"),
            ),
            ("<alloc::string::String as app::Trait>::run", Some("app")),
            ("<app::A as other::Trait>::run", Some("app")),
            ("<&mut dyn app::T as core::fmt::Debug>::fmt", Some("app")),
            ("<T as app::Trait>::run", Some("app")),
            ("<<app::A as app::B>::C as core::D>::e", Some("app")),
            ("<fn(usize) -> usize as app::F>::call", Some("app")),
            ("memcpy", None),
            ("operator new", None),
        ] {
            assert_eq!(crate_of(name), of, "{name}");
        }
    }

    #[test]
    fn all_crates_of_a_method_may_have_it() {
        let all = crates_of_method(
            "<app::A<x::Y> as other::Trait<app::W, core::option::Option<z::V>>>::run::<q::Q>",
        );
        assert_eq!(all[..], ["app", "x", "other", "z"]);
        let all = crates_of_method("<alloc::vec::Vec<app::M> as other::Trait>::run");
        assert_eq!(all[..], ["app", "other"]);
        for name in [
            "<app::A as app::B>::c",
            "<app::A as core::fmt::Debug>::fmt",
            "<alloc::string::String as app::B>::c",
            "app::run",
            "<app::A>::run",
        ] {
            assert!(crates_of_method(name).is_empty(), "{name}");
        }
        assert_eq!(crate_of(&"<".repeat(1 << 20)), Some("core"));
    }
}
