//! The same functions in two sides of a comparison, though files moved, lines shifted and code was compiled again.
//!
//! In: the functions of both sides by [`Identity`]. Out: pairs. Equal ones first; then those of one name and file base name, in the
//! order of the source where both sides have equally many; then functions without a name, by their column and by how far the
//! function above them has moved. Nothing goes by what a function does.

use std::collections::BTreeMap;

use super::functions::Identity;
use crate::runtimes::names::ANONYMOUS;

/// Indices of a function in both sides; one of them is missing if it has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// In the base.
    pub base: Option<usize>,
    /// In the new side.
    pub new: Option<usize>,
}

/// Pairs the functions of two sides. Each has every identity once; directories take no part.
#[must_use]
pub fn pairs(base: &[&Identity], new: &[&Identity]) -> Vec<Pair> {
    let mut matcher = Matcher {
        base,
        new,
        of_base: vec![None; base.len()],
        of_new: vec![None; new.len()],
    };
    matcher.equal();
    matcher.moved();
    matcher.anonymous();
    matcher.pairs()
}

/// Object, name and base name of the file.
type Group<'i> = (&'i str, &'i str, &'i str);

struct Matcher<'i> {
    base: &'i [&'i Identity],
    new: &'i [&'i Identity],
    of_base: Vec<Option<usize>>,
    of_new: Vec<Option<usize>>,
}

impl<'i> Matcher<'i> {
    fn pair(&mut self, base: usize, new: usize) {
        self.of_base[base] = Some(new);
        self.of_new[new] = Some(base);
    }

    fn equal(&mut self) {
        let key =
            |identity: &'i Identity| (group(identity), identity.name.line, identity.name.column);
        let known: BTreeMap<_, usize> = self
            .new
            .iter()
            .enumerate()
            .map(|(at, i)| (key(i), at))
            .collect();
        for (at, identity) in self.base.iter().enumerate() {
            if let Some(new) = known.get(&key(identity)) {
                self.pair(at, *new);
            }
        }
    }

    /// Named functions whose lines have shifted.
    fn moved(&mut self) {
        let base = grouped(self.base, &self.of_base);
        let new = grouped(self.new, &self.of_new);
        for (group, olds) in base {
            let news = new.get(&group).filter(|news| news.len() == olds.len());
            for (old, new) in olds.iter().zip(news.into_iter().flatten()) {
                self.pair(*old, *new);
            }
        }
    }

    /// Functions without a name that have moved as far as the named one above them.
    fn anonymous(&mut self) {
        let shifts = self.shifts();
        let mut free: BTreeMap<(Group<'i>, u32, u32), usize> = BTreeMap::new();
        for (at, identity) in self
            .new
            .iter()
            .enumerate()
            .filter(|(at, _)| self.of_new[*at].is_none())
        {
            free.insert(
                (group(identity), identity.name.line, identity.name.column),
                at,
            );
        }
        for (at, identity) in self.base.iter().enumerate() {
            let name = &identity.name;
            if name.name != ANONYMOUS || self.of_base[at].is_some() {
                continue;
            }
            let of_file = shifts.get(&(identity.object.as_str(), name.file_name()));
            let above = of_file.and_then(|shifts| shifts.range(..=name.line).next_back());
            let Some(line) = above.and_then(|(_, shift)| name.line.checked_add_signed(*shift))
            else {
                continue;
            };
            if let Some(new) = free.remove(&(group(identity), line, name.column)) {
                self.pair(at, new);
            }
        }
    }

    /// By object and file: how far each named function has moved, by its line in the base.
    fn shifts(&self) -> BTreeMap<(&'i str, &'i str), BTreeMap<u32, i32>> {
        let mut shifts: BTreeMap<_, BTreeMap<u32, i32>> = BTreeMap::new();
        for (at, identity) in self.base.iter().enumerate() {
            let name = &identity.name;
            let Some(new) = self.of_base[at].filter(|_| name.line > 0 && name.name != ANONYMOUS)
            else {
                continue;
            };
            let shift = i64::from(self.new[new].name.line) - i64::from(name.line);
            let file = (identity.object.as_str(), name.file_name());
            shifts
                .entry(file)
                .or_default()
                .insert(name.line, i32::try_from(shift).unwrap_or(0));
        }
        shifts
    }

    fn pairs(self) -> Vec<Pair> {
        let base = self.of_base.iter().enumerate().map(|(at, new)| Pair {
            base: Some(at),
            new: *new,
        });
        let only_new = self
            .of_new
            .iter()
            .enumerate()
            .filter(|(_, base)| base.is_none());
        base.chain(only_new.map(|(at, _)| Pair {
            base: None,
            new: Some(at),
        }))
        .collect()
    }
}

fn group(identity: &Identity) -> Group<'_> {
    (
        &identity.object,
        &identity.name.name,
        identity.name.file_name(),
    )
}

/// Free named functions with a file, by group, in the order of the source.
fn grouped<'i>(
    identities: &[&'i Identity],
    taken: &[Option<usize>],
) -> BTreeMap<Group<'i>, Vec<usize>> {
    let mut groups: BTreeMap<Group<'i>, Vec<usize>> = BTreeMap::new();
    let mut order: Vec<usize> = (0..identities.len())
        .filter(|at| taken[*at].is_none())
        .collect();
    order.sort_by_key(|at| (identities[*at].name.line, identities[*at].name.column));
    for at in order {
        let name = &identities[at].name;
        if name.line > 0 && name.name != ANONYMOUS {
            groups.entry(group(identities[at])).or_default().push(at);
        }
    }
    groups
}

/// Whether a name has a number that an edit elsewhere may change: without a partner it may be the same function.
#[must_use]
pub fn is_numbered(name: &str) -> bool {
    let marks = ["{closure#", "}#", ")#", "function["];
    marks.iter().any(|mark| name.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::CleanName;

    fn identity(text: &str) -> Identity {
        let mut parts = text.split(' ');
        let mut next = || parts.next().unwrap_or("");
        let (name, file, line, column) = (next(), next(), next(), next());
        let name = CleanName {
            name: name.to_owned(),
            file: file.to_owned(),
            line: line.parse().unwrap_or(0),
            column: column.parse().unwrap_or(0),
        };
        Identity {
            object: "[jit]".to_owned(),
            name,
        }
    }

    fn matched(base: &[&str], new: &[&str]) -> Vec<(String, String)> {
        let sides = [base, new].map(|side| side.iter().map(|t| identity(t)).collect::<Vec<_>>());
        let text = |side: usize, at: Option<usize>| {
            at.map_or("-".to_owned(), |at| sides[side][at].name.full())
        };
        let [base, new] = &sides;
        let (base, new): (Vec<_>, Vec<_>) = (base.iter().collect(), new.iter().collect());
        let pairs = pairs(&base, &new);
        pairs
            .iter()
            .map(|p| (text(0, p.base), text(1, p.new)))
            .filter(|(a, b)| a != b)
            .collect()
    }

    #[test]
    fn moved_functions_are_found() {
        let base = [
            "f /a/x.js 3 1",
            "g /a/x.js 5 1",
            "(anonymous) /a/x.js 6 9",
            "plain",
        ];
        assert!(matched(&base, &base).is_empty());
        let new = [
            "f /b/x.js 5 1",
            "g /b/x.js 7 1",
            "(anonymous) /b/x.js 8 9",
            "plain",
        ];
        let expected = [
            ("f /a/x.js:3:1", "f /b/x.js:5:1"),
            ("g /a/x.js:5:1", "g /b/x.js:7:1"),
            ("(anonymous) /a/x.js:6:9", "(anonymous) /b/x.js:8:9"),
        ];
        assert_eq!(
            matched(&base, &new),
            expected.map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
    }

    #[test]
    fn what_is_ambiguous_stays_alone() {
        let found = matched(&["f x.js 3 1", "f x.js 9 1"], &["f x.js 4 1"]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            is_numbered("a::{closure#1}")
                && is_numbered("wasm[0]::function[4]")
                && !is_numbered("f#1")
        );
    }
}
