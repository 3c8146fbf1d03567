//! Functions of one side of a comparison that the other side's files know, though no sample hit them there.
//!
//! In: the functions that have samples in one side alone, and every name that the files of the other side tell. Out: those of them
//! that the other side has, too. A function without samples takes no time, one that is not there may have another name.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;

use super::functions::{Identity, JIT};
use crate::runtimes::names::{ANONYMOUS, clean_object};
use crate::runtimes::{CleanName, Producer};

/// Object, name and base name of the file.
type Group = (String, String, String);

/// Functions that are looked for.
pub struct Missing {
    wanted: BTreeMap<Group, Vec<Identity>>,
    objects: BTreeSet<String>,
    /// A word of each name that stands in it however it is written.
    words: Regex,
    /// Lines and columns of the functions that were told of.
    told: BTreeMap<Group, BTreeSet<(u32, u32)>>,
}

impl Missing {
    /// Looks for functions; nothing if there are none to look for.
    #[must_use]
    pub fn new(functions: impl IntoIterator<Item = Identity>) -> Option<Self> {
        let mut wanted: BTreeMap<Group, Vec<Identity>> = BTreeMap::new();
        let mut words = BTreeSet::new();
        for identity in functions {
            words.insert(regex::escape(word(&identity.name)));
            wanted.entry(group(&identity)).or_default().push(identity);
        }
        let objects = wanted.keys().map(|(object, ..)| object.clone()).collect();
        let words: Vec<String> = words.into_iter().collect();
        Some(Self {
            // Too many for one expression: not looked for.
            words: Regex::new(&words.join("|")).ok()?,
            objects,
            told: BTreeMap::new(),
            wanted,
        })
        .filter(|missing| !missing.wanted.is_empty())
    }

    /// Whether some lie in a file.
    #[must_use]
    pub fn are_in_file(&self, path: &str) -> bool {
        self.objects.contains(clean_object(path))
    }

    /// Whether a name, as a file has it, may be one of them.
    #[must_use]
    pub fn may_be(&self, name: &[u8]) -> bool {
        self.words.is_match(name)
    }

    /// A file has a function of this name.
    pub fn in_file(&mut self, path: &str, name: &str) {
        let makers = [None, Producer::of_built_in(name)];
        for maker in &makers[..1 + usize::from(makers[1].is_some())] {
            self.told_of(clean_object(path), CleanName::of(name, *maker));
        }
    }

    /// A dump or a perf map has it.
    pub fn in_dump(&mut self, producer: Producer, name: &str) {
        self.told_of(JIT, CleanName::of(name, Some(producer)));
    }

    fn told_of(&mut self, object: &str, name: CleanName) {
        let place = (name.line, name.column);
        let object = object.to_owned();
        let group = group(&Identity { object, name });
        if self.wanted.contains_key(&group) {
            self.told.entry(group).or_default().insert(place);
        }
    }

    /// Those that were told of: in the same place, or in another if there is but one of the name on both sides.
    #[must_use]
    pub fn known(self) -> BTreeSet<Identity> {
        let mut known = BTreeSet::new();
        for (group, wanted) in self.wanted {
            let Some(told) = self.told.get(&group) else {
                continue;
            };
            let only = wanted.len() == 1 && told.len() == 1 && group.1 != ANONYMOUS;
            let is_told = |one: &Identity| told.contains(&(one.name.line, one.name.column));
            known.extend(wanted.into_iter().filter(|one| only || is_told(one)));
        }
        known
    }
}

fn group(identity: &Identity) -> Group {
    let Identity { object, name } = identity;
    let file = name.file_name().to_owned();
    (object.clone(), name.name.clone(), file)
}

/// The longest word of a name, or of its file where it has none. What compilers write as a sign (`operator()`) is none.
fn word(name: &CleanName) -> &str {
    let text = match name.name.as_str() {
        ANONYMOUS => name.file_name(),
        text => text,
    };
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    let told = words.filter(|word| !["operator", "closure"].contains(word));
    told.max_by_key(|word| word.len()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(object: &str, name: &str, line: u32) -> Identity {
        Identity {
            object: object.to_owned(),
            name: CleanName {
                name: name.to_owned(),
                file: if line > 0 { "x.js" } else { "" }.to_owned(),
                line,
                column: line,
            },
        }
    }

    fn names(known: &BTreeSet<Identity>) -> Vec<&str> {
        known.iter().map(|one| one.name.name.as_str()).collect()
    }

    #[test]
    fn functions_without_samples_are_found_by_name_and_object() {
        let functions = ["a::parse", "a::gone", "<T as Other>::f"];
        let mut missing =
            Missing::new(functions.map(|name| identity("prog", name, 0))).expect("some");
        assert!(missing.are_in_file("/else/where/prog") && !missing.are_in_file("/bin/other"));
        assert!(missing.may_be(b"_ZN1a5parse17h0123456789abcdefE") && !missing.may_be(b"main"));
        missing.in_file("/x/prog", "a::parse");
        missing.in_file("/x/prog", "b::gone");
        missing.in_file("/x/libprog.so", "a::gone");
        assert_eq!(names(&missing.known()), ["a::parse"]);
        assert!(Missing::new([]).is_none());
    }

    #[test]
    fn tiers_are_one_function_and_two_of_a_name_are_told_apart_by_their_lines() {
        let functions = [("f", 3), ("g", 5), ("g", 9), (ANONYMOUS, 7)];
        let functions = functions.map(|(name, line)| identity(JIT, name, line));
        let mut missing = Missing::new(functions).expect("some");
        for name in ["JS:~f /a/x.js:4:4", "JS:*g /a/x.js:5:5", "JS:^ /a/x.js:8:8"] {
            assert!(missing.may_be(name.as_bytes()), "{name}");
            missing.in_dump(Producer::V8, name);
        }
        assert_eq!(names(&missing.known()), ["f", "g"]);
    }
}
