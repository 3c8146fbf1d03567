//! The same functions in two sides of a comparison, though files moved, lines shifted and code was compiled again.
//!
//! In: the functions of both sides by [`Identity`]. Out: pairs. The rule:
//!
//! * Two functions of one recording are two if anything says so: another object's file, other parameters, another source file, also
//!   one of this name in another folder, another line of definition, another address of a symbol of this name in the object.
//! * Between recordings files are told first, objects' and sources' alike ([`same_files`]): by the end of their path that tells them
//!   from others of their name. Addresses never count, nor does the beginning of a path.
//! * In a pair of files, functions are told by name and parameters. Those whose name the file has once first; then several of one
//!   name: at their old lines where nothing around them moved, else in the order of the source where both sides have equally many,
//!   else by how far the function near them has moved; then functions without a name, by their column and by how far the function
//!   above them has moved.
//! * A function of native code that is the only one of its name on both sides, and in its files, is the same wherever it is defined.
//! * Closures of one function of Rust are told by the compiler's hash, where debug information does not tell their lines and both
//!   sides have equally many.
//! * Functions of one name that only their order in the object tells apart are the same in one build of it, and in no other.
//! * What is left has no partner: it is shown as gone and as new, never added to another function of its name.
//!
//! Nothing goes by what a function does. Lines alone do not tell: forty lines more at the top of a file may put a function where
//! another one of its name was.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::functions::Identity;
use crate::build_id::BuildId;
use crate::runtimes::names::ANONYMOUS;
use crate::runtimes::tails::{SameFile, same_files};

/// Indices of a function in both sides; one of them is missing if it has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// In the base.
    pub base: Option<usize>,
    /// In the new side.
    pub new: Option<usize>,
}

/// Pairs the functions of two sides. Each has every identity once.
#[must_use]
pub fn pairs(base: &[&Identity], new: &[&Identity]) -> Vec<Pair> {
    let (olds, news) = spots(base, new);
    let mut matcher = Matcher {
        base: &olds,
        new: &news,
        of_base: vec![None; base.len()],
        of_new: vec![None; new.len()],
    };
    matcher.without_lines();
    matcher.alone();
    matcher.several();
    matcher.anonymous();
    matcher.only();
    matcher.pairs()
}

/// By function of a run: the one of another run of the same code, of which files may lie elsewhere.
#[must_use]
pub fn same_code(known: &[&Identity], run: &[&Identity]) -> Vec<Option<usize>> {
    let (known, run) = spots(known, run);
    let numbers: FxHashMap<&Spot<'_>, usize> = known.iter().zip(0..).collect();
    run.iter().map(|spot| numbers.get(spot).copied()).collect()
}

/// What functions are told by. Files have one number on both sides if they are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Spot<'i> {
    group: Group<'i>,
    line: u32,
    /// Or which it is of those of its name, or what a compiler tells it by.
    column: u32,
    /// How many these are.
    of: u32,
    /// The build in which its order counts.
    build: Option<BuildId>,
    /// Whether its name tells no place.
    is_native: bool,
    /// How many functions of its object have its name, 0 where that was not counted.
    namesakes: u32,
    /// Whether others of its object may have its name.
    is_shared: bool,
    /// Whether its name says nothing of which function it is.
    is_word: bool,
}

/// What functions of one name in a file have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Group<'i> {
    object: (&'i str, FileNumber),
    name: &'i str,
    parameters: Option<&'i str>,
    file: FileNumber,
}

/// Number of a file; 0 is none.
type FileNumber = usize;

impl<'i> Group<'i> {
    /// A source file in an object.
    const fn place(&self) -> FileOf<'i> {
        (self.object.0, self.object.1, self.file)
    }
}

impl Spot<'_> {
    fn is_anonymous(&self) -> bool {
        self.is_word || self.group.name == ANONYMOUS
    }
}

/// Where the source file stands of which a function is.
fn source(identity: &Identity) -> &str {
    match &identity.beside.place {
        Some(place) if identity.name.file.is_empty() => &place.file,
        _ => &identity.name.file,
    }
}

/// An object's file, by the name that it has in tables.
fn binary(identity: &Identity) -> String {
    // Tables have but the first number of a library's version, and two versions may be in one process.
    if identity.object.contains(".so.") && identity.beside.path.contains(".so.") {
        return identity.beside.path.clone();
    }
    let folder = identity.beside.path.rsplit_once('/');
    folder.map_or_else(String::new, |(folder, _)| {
        format!("{folder}/{}", identity.object)
    })
}

/// The spots of both sides.
fn spots<'i>(base: &[&'i Identity], new: &[&'i Identity]) -> (Vec<Spot<'i>>, Vec<Spot<'i>>) {
    let sides = [base, new];
    let sources = Numbers::of(sides.map(|side| side.iter().map(|of| source(of)).collect()));
    let binaries = sides.map(|side| side.iter().map(|of| binary(of)).collect::<Vec<_>>());
    let objects = binaries
        .each_ref()
        .map(|side| side.iter().map(String::as_str).collect());
    let objects = Numbers::of(objects);
    let spot = |side: usize, at: usize| {
        let identity = sides[side][at];
        let Identity {
            object,
            name,
            beside,
        } = identity;
        let place = beside.place.as_deref();
        let is_native = name.line == 0 && name.file.is_empty();
        let place = place.filter(|_| is_native);
        // Where the symbol table has two of one source file's name, that name says nothing.
        let is_sure = place.is_some_and(|place| place.of > 1 && place.like != 1);
        Spot {
            group: Group {
                object: (object, objects.get(side, &binaries[side][at], false)),
                name: &name.name,
                parameters: beside.parameters.as_deref(),
                file: sources.get(side, source(identity), is_sure),
            },
            line: place.map_or(name.line, |place| place.line),
            column: place.map_or(name.column, |place| place.nth.max(place.hash)),
            // A hash tells closures by their order in the function: of another number of them it tells nothing.
            of: place
                .filter(|place| place.nth > 0 || place.hash > 0)
                .map_or(0, |place| place.of),
            build: beside.build,
            is_native,
            namesakes: place.map_or(0, |place| place.of),
            is_shared: place.is_some_and(|place| place.of > 1),
            is_word: beside.is_word,
        }
    };
    let of = |side: usize| (0..sides[side].len()).map(|at| spot(side, at)).collect();
    (of(0), of(1))
}

/// Numbers of files, by side and path: one where all that is known is told, one where base names suffice.
struct Numbers<'p>([FxHashMap<&'p str, (FileNumber, FileNumber)>; 2]);

impl<'p> Numbers<'p> {
    fn of(sides: [Vec<&'p str>; 2]) -> Self {
        let [base, new] = sides.map(|mut paths| {
            paths.sort_unstable();
            paths.dedup();
            paths.retain(|path| !path.is_empty());
            paths
        });
        let same = same_files(&base, &new);
        let of_new = new
            .iter()
            .copied()
            .zip((1..).map(|number| (number, number)));
        let alone = new.len() + 1..;
        let of_base = base.iter().zip(same).zip(alone);
        let of_base = of_base.map(|((path, same), alone)| {
            let sure = same.filter(|same| !same.by_name);
            let number = |same: SameFile| same.at + 1;
            (
                *path,
                (sure.map_or(alone, number), same.map_or(alone, number)),
            )
        });
        Self([of_base.collect(), of_new.collect()])
    }

    /// `is_sure` asks for more than a base name.
    fn get(&self, side: usize, path: &str, is_sure: bool) -> FileNumber {
        let (sure, by_name) = self.0[side].get(path).copied().unwrap_or_default();
        if is_sure { sure } else { by_name }
    }
}

struct Matcher<'i> {
    base: &'i [Spot<'i>],
    new: &'i [Spot<'i>],
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
        let lineless = |(_, spot): &(usize, &Spot<'i>)| spot.line == 0;
        let key = |spot: &Spot<'i>| (spot.group, spot.column, spot.of, spot.build);
        let new = self.new.iter().enumerate().filter(lineless);
        let known: FxHashMap<_, usize> = new.map(|(at, spot)| (key(spot), at)).collect();
        for (at, spot) in self.base.iter().enumerate().filter(lineless) {
            if let Some(new) = known.get(&key(spot)) {
                self.pair(at, *new);
            }
        }
    }

    /// Native functions that are the only ones of their name on both sides, with these parameters or where one side does not tell
    /// them: wherever they are defined, unless their files have others of the name.
    fn only(&mut self) {
        for (with_file, with_parameters) in [(true, true), (false, true), (false, false)] {
            let key = |group: Group<'i>| Group {
                file: if with_file { group.file } else { 0 },
                parameters: group.parameters.filter(|_| with_parameters),
                ..group
            };
            let groups = |spots: &[Spot<'i>]| {
                let mut groups: FxHashMap<Group<'i>, Vec<usize>> = FxHashMap::default();
                for (at, spot) in spots.iter().enumerate().filter(|(_, spot)| spot.is_native) {
                    groups.entry(key(spot.group)).or_default().push(at);
                }
                groups
            };
            let news = groups(self.new);
            for (group, olds) in groups(self.base) {
                let ([old], Some([new])) = (&olds[..], news.get(&group).map(Vec::as_slice)) else {
                    continue;
                };
                if self.of_base[*old].is_some() || self.of_new[*new].is_some() {
                    continue;
                }
                let (one, other) = (&self.base[*old], &self.new[*new]);
                let parameters = (one.group.parameters, other.group.parameters);
                let are_other = matches!(parameters, (Some(a), Some(b)) if a != b);
                // By debug information on one side and by the symbol table on the other.
                let is_in_one_file = group.file > 0 && (one.of == 0 || other.of == 0);
                if !are_other && (is_in_one_file || !one.is_shared && !other.is_shared) {
                    self.pair(*old, *new);
                }
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
            let file = group.place();
            // Of native code it is known how many of a name there are: one more may be at the line of another one.
            let of = |spots: &[Spot<'i>], all: &[usize]| all.first().map(|at| spots[*at].namesakes);
            if of(self.base, &olds) != of(self.new, &news) {
                continue;
            }
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
        self.at_shift(olds, news, |line| {
            let above = shifts.range(..=line).next_back();
            let near = above.or_else(|| shifts.range(line..).next());
            Some(near.map_or(0, |(_, shift)| *shift))
        });
    }

    /// By object and file in which functions were paired: whether any of them moved.
    fn moved_files(&self) -> BTreeMap<FileOf<'i>, bool> {
        let mut files: BTreeMap<_, bool> = BTreeMap::new();
        for (spot, new) in self.base.iter().zip(&self.of_base) {
            let new = new.map(|new| &self.new[new]);
            if let Some(new) = new.filter(|new| new.line > 0) {
                *files.entry(spot.group.place()).or_default() |=
                    (spot.line, spot.column) != (new.line, new.column);
            }
        }
        files
    }

    /// Functions without a name, between those named ones that both sides have. Where both sides have equally many there, at the
    /// same distances, they are the same. Else they are those that moved as far as the named ones above and below: one line more
    /// puts a function where another one was.
    fn anonymous(&mut self) {
        let shifts = self.shifts();
        let none = BTreeMap::new();
        let mut parts: BTreeMap<(Group<'i>, Option<u32>), [Vec<usize>; 2]> = BTreeMap::new();
        for (side, spots) in [self.base, self.new].into_iter().enumerate() {
            let lined = spots.iter().enumerate();
            for (at, spot) in lined.filter(|(_, spot)| spot.line > 0 && spot.is_anonymous()) {
                let shifts = shifts.get(&spot.group.place()).unwrap_or(&none);
                // By the line in the base of the named one above.
                let lines = shifts.iter().filter_map(|(line, shift)| {
                    let there = if side == 0 {
                        Some(*line)
                    } else {
                        line.checked_add_signed(*shift)
                    };
                    Some((there?, *line))
                });
                let above = lines.filter(|(there, _)| *there <= spot.line).max();
                let part = parts.entry((spot.group, above.map(|(_, line)| line)));
                part.or_default()[side].push(at);
            }
        }
        for ((group, above), [mut olds, mut news]) in parts {
            let shifts = shifts.get(&group.place()).unwrap_or(&none);
            let above = above.map(|line| (line, shifts[&line]));
            let behind = above.map_or(0, |(line, _)| line + 1);
            let below = shifts.range(behind..).next().map(|(_, shift)| *shift);
            let above = above.map(|(_, shift)| shift);
            // One function alone is at any distance: what is next to it tells.
            let near = above.or(below);
            let common = self.common_shift(&olds, &news);
            let common =
                common.filter(|shift| olds.len() > 1 || near.is_none_or(|of| of == *shift));
            let around = above.filter(|_| above == below);
            self.at_shift(&mut olds, &mut news, |_| common.or(around));
        }
    }

    /// How far all of some functions have moved, if both sides have them at the same distances.
    fn common_shift(&self, olds: &[usize], news: &[usize]) -> Option<i32> {
        let places = |spots: &[Spot<'i>], all: &[usize]| {
            let places = all.iter().map(|at| (spots[*at].line, spots[*at].column));
            let mut places: Vec<(u32, u32)> = places.collect();
            places.sort_unstable();
            places
        };
        let (olds, news) = (places(self.base, olds), places(self.new, news));
        let shift = i32::try_from(i64::from(news.first()?.0) - i64::from(olds.first()?.0)).ok()?;
        let is_there = |((line, column), new): (&(u32, u32), &(u32, u32))| {
            line.checked_add_signed(shift) == Some(new.0) && *column == new.1
        };
        let is_common = olds.len() == news.len() && olds.iter().zip(&news).all(is_there);
        is_common.then_some(shift)
    }

    /// Pairs those that are as far from their old lines as is said of them.
    fn at_shift(
        &mut self,
        olds: &mut Vec<usize>,
        news: &mut Vec<usize>,
        shift: impl Fn(u32) -> Option<i32>,
    ) {
        olds.retain(|old| {
            let spot = &self.base[*old];
            let line = shift(spot.line).and_then(|shift| spot.line.checked_add_signed(shift));
            let is_there = |new: &usize| {
                let new = &self.new[*new];
                Some(new.line) == line && new.column == spot.column
            };
            let Some(at) = news.iter().position(is_there) else {
                return true;
            };
            self.pair(*old, news.remove(at));
            false
        });
    }

    /// By object and file: how far each named function has moved, by its line in the base.
    fn shifts(&self) -> BTreeMap<FileOf<'i>, BTreeMap<u32, i32>> {
        let mut shifts: BTreeMap<_, BTreeMap<u32, i32>> = BTreeMap::new();
        for (at, spot) in self.base.iter().enumerate() {
            let Some(new) = self.of_base[at].filter(|_| spot.line > 0 && !spot.is_anonymous())
            else {
                continue;
            };
            let shift = i64::from(self.new[new].line) - i64::from(spot.line);
            shifts
                .entry(spot.group.place())
                .or_default()
                .insert(spot.line, i32::try_from(shift).unwrap_or(0));
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

/// An object and a source file in it.
type FileOf<'i> = (&'i str, FileNumber, FileNumber);

/// Named functions with a line, by group, in the order of the source.
fn grouped<'i>(spots: &[Spot<'i>]) -> BTreeMap<Group<'i>, Vec<usize>> {
    let mut groups: BTreeMap<Group<'i>, Vec<usize>> = BTreeMap::new();
    let mut order: Vec<usize> = (0..spots.len()).collect();
    order.sort_by_key(|at| (spots[*at].line, spots[*at].column));
    for at in order {
        let spot = &spots[at];
        if spot.line > 0 && !spot.is_anonymous() {
            groups.entry(spot.group).or_default().push(at);
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
    use super::super::functions::Beside;
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
            ..Identity::default()
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
    fn functions_without_a_name_are_not_those_that_were_at_their_lines() {
        // One line more above both; one more function above both.
        let at = |line: u32| format!("(anonymous) /a/x.js {line} 9");
        let base = [at(2), at(3)];
        let (moved, more) = ([at(3), at(4)], [at(2), at(3), at(4)]);
        let texts = |of: &[String]| of.to_vec();
        let of = |new: &[String]| {
            let (base, new) = (texts(&base), texts(new));
            let base: Vec<&str> = base.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            matched(&base, &new)
        };
        let shown = |line: u32| format!("(anonymous) /a/x.js:{line}:9");
        assert_eq!(of(&moved), [(shown(2), shown(3)), (shown(3), shown(4))]);
        assert!(of(&more).iter().all(|(old, new)| old == "-" || new == "-"));
        assert_eq!(of(&base), []);
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

    /// The word of a minifier is that of another function in the next build.
    #[test]
    fn words_of_minifiers_are_no_names() {
        let word = |text: &str| Identity {
            beside: Beside {
                is_word: true,
                ..Beside::default()
            },
            ..identity(text)
        };
        let base = [
            word("a x.js 3 1"),
            identity("f x.js 5 1"),
            word("b x.js 9 1"),
        ];
        let new = [
            word("a x.js 7 1"),
            identity("f x.js 8 1"),
            word("b x.js 12 1"),
        ];
        let found = pairs(&base.each_ref(), &new.each_ref());
        let of_base: Vec<_> = found
            .iter()
            .filter_map(|pair| Some((pair.base?, pair.new)))
            .collect();
        assert_eq!(of_base, [(0, None), (1, Some(1)), (2, Some(2))]);
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
