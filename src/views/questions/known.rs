//! Functions of one side of a comparison that the other side's files know, though no sample hit them there.
//!
//! In: the functions that have samples in one side alone, and every name that the files of the other side tell. Out: those of them
//! that the other side has, too. A function without samples takes no time, one that is not there may have another name.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;

use crate::functions::matching::file_of_object;
use crate::functions::{Identity, JIT};
use crate::runtimes::names::{ANONYMOUS, clean_object};
use crate::runtimes::tails::same_files;
use crate::runtimes::{CleanName, Producer};

/// Object, name and base name of the file.
type Group = (String, String, String);

/// What a file tells of one function: path of the source, line and column, as far as the name tells them; and parameters.
type Told = ((String, u32, u32), Option<String>);

/// Functions that are looked for.
pub struct Missing {
    /// The sources of all code of dumps, and all objects that were mapped.
    files: BTreeSet<String>,
    wanted: BTreeMap<Group, Vec<Identity>>,
    objects: BTreeSet<String>,
    /// A word of each name that stands in it however it is written.
    words: Regex,
    /// The functions that were told of, and how often.
    told: BTreeMap<Group, BTreeMap<Told, u32>>,
}

impl Missing {
    /// Looks for functions, and for all files; nothing if there are no functions to look for.
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
            files: BTreeSet::new(),
            wanted,
        })
        .filter(|missing| !missing.wanted.is_empty())
    }

    /// Whether some lie in a file that was mapped.
    pub fn are_in_file(&mut self, path: &str) -> bool {
        let object = clean_object(path);
        self.files.insert(file_of_object(path, object));
        self.objects.contains(object)
    }

    /// A dump or a perf map has code of this name.
    pub fn in_source(&mut self, producer: Producer, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let file = CleanName::of(&name, Some(producer)).file;
        if !file.is_empty() && !self.files.contains(&file) {
            self.files.insert(file);
        }
    }

    /// Whether a name, as a file has it, may be one of them.
    #[must_use]
    pub fn may_be(&self, name: &[u8]) -> bool {
        self.words.is_match(name)
    }

    /// A file has a function of this name, and of these parameters where the name tells them.
    pub fn in_file(&mut self, path: &str, name: &str, parameters: Option<&str>) {
        let makers = [None, Producer::of_built_in(name)];
        for maker in &makers[..1 + usize::from(makers[1].is_some())] {
            self.told_of(clean_object(path), CleanName::of(name, *maker), parameters);
        }
    }

    /// A dump or a perf map has it.
    pub fn in_dump(&mut self, producer: Producer, name: &str) {
        self.told_of(JIT, CleanName::of(name, Some(producer)), None);
    }

    fn told_of(&mut self, object: &str, name: CleanName, parameters: Option<&str>) {
        let group = (
            object.to_owned(),
            name.name.clone(),
            name.file_name().to_owned(),
        );
        if self.wanted.contains_key(&group) {
            let place = (name.file, name.line, name.column);
            let told = self.told.entry(group).or_default();
            *told
                .entry((place, parameters.map(str::to_owned)))
                .or_default() += 1;
        }
    }

    /// The files.
    #[must_use]
    pub const fn files(&self) -> &BTreeSet<String> {
        &self.files
    }

    /// Those that were told of: in the same place of the same file, or in another if there is but one of the name on both sides.
    /// Of native functions with one name as many must be there as where they come from.
    #[must_use]
    pub fn known(self) -> BTreeSet<Identity> {
        let mut known = BTreeSet::new();
        for (group, wanted) in self.wanted {
            let Some(told) = self.told.get(&group) else {
                continue;
            };
            let is_name = group.1 != ANONYMOUS && !wanted.iter().any(|one| one.beside.is_word);
            let only = wanted.len() == 1 && told.len() == 1 && is_name;
            let files = |all: &mut dyn Iterator<Item = &'_ str>| -> Vec<String> {
                let all: BTreeSet<&str> = all.collect();
                all.into_iter().map(str::to_owned).collect()
            };
            let olds = files(&mut wanted.iter().map(|one| one.name.file.as_str()));
            let news = files(&mut told.keys().map(|((file, ..), _)| file.as_str()));
            let [bases, others] =
                [&olds, &news].map(|of| of.iter().map(String::as_str).collect::<Vec<_>>());
            let same = same_files(&bases, &others);
            let is_told = |one: &Identity| {
                let (name, beside) = (&one.name, &one.beside);
                let at = olds.binary_search(&name.file).ok().and_then(|at| same[at]);
                let at = at.map(|partner| partner.at);
                let fits = told.iter().filter(|(((file, line, column), parameters), _)| {
                    let differ = matches!((parameters, &beside.parameters), (Some(a), Some(b)) if **a != **b);
                    let is_here = at.is_some_and(|at| news[at] == *file)
                        && (*line, *column) == (name.line, name.column);
                    !differ && (is_here || only)
                });
                let count: u32 = fits.map(|(_, count)| *count).sum();
                let least = beside.place.as_ref().map_or(1, |place| place.of.max(1));
                count >= least
            };
            known.extend(wanted.into_iter().filter(is_told));
        }
        known
    }
}

fn group(identity: &Identity) -> Group {
    let Identity { object, name, .. } = identity;
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
            ..Identity::default()
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
        missing.in_file("/x/prog", "a::parse", None);
        missing.in_file("/x/prog", "b::gone", None);
        missing.in_file("/x/libprog.so", "a::gone", None);
        assert_eq!(names(&missing.known()), ["a::parse"]);
        assert!(Missing::new([]).is_none());
    }

    /// Libraries have the whole version, as the functions of comparisons have it: a bump is no other file beside the same one.
    #[test]
    fn mapped_files_are_named_as_those_of_functions() {
        let mut missing = Missing::new([identity("prog", "f", 0)]).expect("some");
        for path in ["/a/libhot.so.1.2.3", "/a/prog", "[vdso]"] {
            missing.are_in_file(path);
        }
        let files = missing.files().iter().filter(|path| !path.is_empty());
        let files: Vec<&String> = files.collect();
        assert_eq!(files, ["/a/libhot.so.1.2.3", "/a/prog"]);
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
