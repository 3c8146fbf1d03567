//! Which mangling the names of Rust functions are of.
//!
//! In: a profile. Out: [`Manglings`]. rustc took another one between 1.95 and 1.99: it tells type arguments and numbers closures,
//! where the older one has a hash that is not shown. Where builds of a comparison differ in it, they are compared by what both tell.

use crate::profile::{ObjectId, Profile};

/// What the names of functions with samples are of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manglings {
    older: bool,
    newer: bool,
}

impl Manglings {
    /// Those of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let is_file = |object: ObjectId| !profile[object].is_kernel && !profile[object].is_jit;
        let symbols = profile.symbols.iter();
        let names = symbols.filter(|symbol| is_file(symbol.object));
        names.fold(Self::default(), |told, symbol| told.and(&symbol.name))
    }

    fn and(self, name: &str) -> Self {
        // The older one has `core::slice::<impl [T]>::sort`.
        let mut arguments = name.split("::<").skip(1);
        let has_arguments = arguments.any(|rest| !rest.starts_with("impl "));
        Self {
            older: self.older || name.contains("{{closure}}") || name.contains("{{vtable.shim}}"),
            newer: self.newer || name.contains("{closure#") || has_arguments,
        }
    }

    /// Whether one of these has older names, and another one has newer names alone. The library of rustc 1.95 has newer ones in
    /// programs with older ones.
    #[must_use]
    pub fn are_at_odds(all: &[Self]) -> bool {
        all.iter().any(|of| of.older) && all.iter().any(|of| of.newer && !of.older)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_two_manglings_are_noticed() {
        let of = |names: &[&str]| {
            let names = names.iter();
            names.fold(Manglings::default(), |told, name| told.and(name))
        };
        let older = of(&["core::slice::<impl [T]>::sort", "a::f::{{closure}}"]);
        let newer = of(&["a::f::<u8>", "a::f::{closure#0}"]);
        let both = of(&["a::f::{{closure}}", "core::ptr::read::<u8>"]);
        let none = of(&["main", "std::vector<int>::push_back"]);
        assert!(Manglings::are_at_odds(&[older, older, newer]));
        assert!(Manglings::are_at_odds(&[newer, both]));
        for same in [
            [older, older],
            [newer, newer],
            [both, both],
            [none, newer],
            [none, older],
        ] {
            assert!(!Manglings::are_at_odds(&same));
        }
    }
}
