//! The same functions in two sides of a comparison, though files moved, lines shifted and code was compiled again.
//!
//! In: the functions of both sides by [`Identity`]. Out: pairs. Those whose name a file has once first; then several of one
//! name: at their old lines where nothing around them moved, else in the order of the source where both sides have equally many,
//! else by how far the function near them has moved; then functions without a name, by their column and by how far the
//! function above them has moved. Nothing goes by what a function does. Lines alone do not tell: forty lines more at the top of a
//! file may put a function where another one of its name was.

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
    matcher.without_lines();
    matcher.alone();
    matcher.several();
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

    /// Functions of which no line is known are the same by their names.
    fn without_lines(&mut self) {
        let known: BTreeMap<_, usize> = self
            .new
            .iter()
            .enumerate()
            .filter(|(_, identity)| identity.name.line == 0)
            .map(|(at, identity)| ((group(identity), identity.name.column), at))
            .collect();
        for (at, identity) in self.base.iter().enumerate() {
            let new = known.get(&(group(identity), identity.name.column));
            if let Some(new) = new.filter(|_| identity.name.line == 0) {
                self.pair(at, *new);
            }
        }
    }

    /// Named functions of which both sides have one in a file.
    fn alone(&mut self) {
        let new = grouped(self.new);
        for (group, olds) in grouped(self.base) {
            if let ([old], Some([new])) = (&olds[..], new.get(&group).map(Vec::as_slice)) {
                self.pair(*old, *new);
            }
        }
    }

    /// Named functions that have others of their name in the file.
    fn several(&mut self) {
        let (shifts, moved) = (self.shifts(), self.moved_files());
        let new = grouped(self.new);
        let none = BTreeMap::new();
        for (group, mut olds) in grouped(self.base) {
            let Some(mut news) = new.get(&group).cloned() else {
                continue;
            };
            olds.retain(|at| self.of_base[*at].is_none());
            let file = (group.0, group.2);
            if moved.get(&file) == Some(&false) {
                self.shifted(&mut olds, &mut news, &none);
            }
            if olds.len() != news.len() {
                self.shifted(&mut olds, &mut news, shifts.get(&file).unwrap_or(&none));
            }
            if olds.len() == news.len() {
                for (old, new) in olds.iter().zip(&news) {
                    self.pair(*old, *new);
                }
            }
        }
    }

    /// Pairs those of one name that moved as far as the named function above them, or the first one below; takes them out.
    fn shifted(
        &mut self,
        olds: &mut Vec<usize>,
        news: &mut Vec<usize>,
        shifts: &BTreeMap<u32, i32>,
    ) {
        olds.retain(|old| {
            let name = &self.base[*old].name;
            let above = shifts.range(..=name.line).next_back();
            let near = above.or_else(|| shifts.range(name.line..).next());
            let line = name
                .line
                .checked_add_signed(near.map_or(0, |(_, shift)| *shift));
            let is_there = |new: &usize| {
                let new = &self.new[*new].name;
                Some(new.line) == line && new.column == name.column
            };
            let Some(at) = news.iter().position(is_there) else {
                return true;
            };
            self.pair(*old, news.remove(at));
            false
        });
    }

    /// By object and file in which functions were paired: whether any of them moved.
    fn moved_files(&self) -> BTreeMap<(&'i str, &'i str), bool> {
        let mut files: BTreeMap<_, bool> = BTreeMap::new();
        for (identity, new) in self.base.iter().zip(&self.of_base) {
            if let Some(new) = new.map(|new| &self.new[new].name) {
                if new.line == 0 {
                    continue;
                }
                let (name, file) = (
                    &identity.name,
                    (identity.object.as_str(), identity.name.file_name()),
                );
                *files.entry(file).or_default() |=
                    (name.line, name.column) != (new.line, new.column);
            }
        }
        files
    }

    /// Functions without a name that have moved as far as the named one above them, if there is one.
    fn anonymous(&mut self) {
        let shifts = self.shifts();
        let is_lined =
            |identity: &Identity| identity.name.line > 0 && identity.name.name == ANONYMOUS;
        let mut free: BTreeMap<(Group<'i>, u32, u32), usize> = BTreeMap::new();
        for (at, identity) in self.new.iter().enumerate().filter(|(_, i)| is_lined(i)) {
            let (line, column) = (identity.name.line, identity.name.column);
            free.insert((group(identity), line, column), at);
        }
        for (at, identity) in self.base.iter().enumerate().filter(|(_, i)| is_lined(i)) {
            let name = &identity.name;
            let of_file = shifts.get(&(identity.object.as_str(), name.file_name()));
            let above = of_file.and_then(|shifts| shifts.range(..=name.line).next_back());
            let shift = above.map_or(0, |(_, shift)| *shift);
            let line = name.line.checked_add_signed(shift);
            let key = line.map(|line| (group(identity), line, name.column));
            if let Some(new) = key.and_then(|key| free.remove(&key)) {
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

/// Named functions with a file, by group, in the order of the source.
fn grouped<'i>(identities: &[&'i Identity]) -> BTreeMap<Group<'i>, Vec<usize>> {
    let mut groups: BTreeMap<Group<'i>, Vec<usize>> = BTreeMap::new();
    let mut order: Vec<usize> = (0..identities.len()).collect();
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

    /// A file got forty lines at its top: one function of a name is now where the other one was.
    #[test]
    fn functions_of_one_name_keep_their_order() {
        let told = |base: &[&str], new: &[&str]| -> Vec<String> {
            let pairs = matched(base, new).into_iter();
            let pairs = pairs.filter(|(a, _)| a.starts_with("init"));
            pairs.map(|(a, b)| format!("{a} {b}")).collect()
        };
        let base = ["init a.js 10 3", "init a.js 50 3"];
        let new = ["init a.js 50 3", "init a.js 90 3"];
        let wanted = [
            "init a.js:10:3 init a.js:50:3",
            "init a.js:50:3 init a.js:90:3",
        ];
        assert_eq!(told(&base, &new), wanted);
        let (near, moved) = ("other a.js 500 3", "other a.js 540 3");
        let (base, new) = ([base[0], base[1], near], [new[0], new[1], moved]);
        assert_eq!(told(&base, &new), wanted);
        // Of three, one has no samples any more: those near them tell which.
        let three = [base[0], base[1], "init a.js 70 3", near];
        let gone = "init a.js:70:3 -";
        assert_eq!(told(&three, &new), [wanted[0], wanted[1], gone]);
        // Where nothing moved, lines tell.
        let same = ["init a.js 10 3", "init a.js 90 3", near];
        let (first, second) = (
            ["init a.js 10 3", "init a.js 50 3", near],
            "init a.js:50:3 init a.js:90:3",
        );
        assert_eq!(told(&first, &same), [second]);
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
