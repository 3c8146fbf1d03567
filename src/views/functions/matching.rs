//! The same functions in two sides of a comparison, though files moved, lines shifted and code was compiled again.
//!
//! In: the functions of both sides by [`Identity`]. Out: pairs. The rule:
//!
//! * Two functions of one recording are two if anything says so: another object's file, other parameters, another source file, also
//!   one of this name in another folder, another line of definition, another address of a symbol of this name in the object.
//! * Between recordings files are told first, objects' and sources' alike ([`same_files`]): by the end of their path that tells them
//!   from others of their name. Addresses never count, nor does the beginning of a path.
//! * In a pair of files, functions are told by name and parameters. Those whose name the file has once first, if they moved no
//!   further than what is above and below; then several of one name: at their old lines where nothing around them moved, as far as
//!   both neighbours where these moved alike, else in the order of the source where both sides have equally many and that agrees
//!   with their neighbours, else by how far the function near them has moved; then functions without a name, by their column and by how far the function
//!   above them has moved.
//! * A function of native code that is the only one of its name on both sides, and in its files, is the same wherever it is defined.
//! * Closures, lambdas and function literals have numbers in the order of the source. Where their lines are known they are told as
//!   functions without a name are, and by their numbers only where no line says that these have changed. Where no line is known
//!   both sides must have the same numbers.
//! * Closures of one function of Rust are told by the compiler's hash, where debug information does not tell their lines and both
//!   sides have equally many.
//! * In two times of one recording nothing moves: functions are the same by all that is known of them.
//! * Functions of one name that only their order in the object tells apart are the same in one build of it, and in no other.
//! * What is left has no partner: it is shown as gone and as new, never added to another function of its name.
//!
//! Nothing goes by what a function does. Lines alone do not tell: forty lines more at the top of a file may put a function where
//! another one of its name was.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::table::JIT;
use super::{Identity, folder};
use crate::build_id::BuildId;
use crate::profile::Mark;
use crate::runtimes::names::ANONYMOUS;
use crate::runtimes::tails::{SameFile, same_files};

/// Indices of a function in both sides; one of them is missing if it has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// In the base.
    pub base: Option<usize>,
    /// In the new side.
    pub new: Option<usize>,
    /// Whether both may be two functions: one more or less on their line gives them other numbers.
    pub is_doubtful: bool,
}

/// What is known of a side.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listed<'s, 'i> {
    /// Its functions, each once.
    pub functions: &'s [&'i Identity],
    /// Functions of the other side that its files have, though no sample hit them.
    pub known: &'s [&'i Identity],
    /// Paths of files that it has, with samples or without.
    pub files: &'s [&'i str],
}

/// Pairs the functions of two sides.
#[must_use]
pub fn pairs(base: Listed<'_, '_>, new: Listed<'_, '_>) -> Vec<Pair> {
    let stems = stems([base, new]);
    let (olds, news) = spots([base, new], &stems);
    let (base, new) = (base.functions, new.functions);
    let mut matcher = Matcher {
        base: &olds,
        new: &news,
        of_base: vec![None; base.len()],
        of_new: vec![None; new.len()],
        doubtful: BTreeSet::new(),
    };
    matcher.without_lines();
    matcher.alone();
    matcher.several();
    matcher.scripts();
    matcher.anonymous();
    matcher.unmoved();
    matcher.numbered();
    matcher.only();
    matcher.pairs()
}

/// Pairs the functions of two times of the same recordings: by all that is known of them, as nothing has moved. `sides` have each
/// function's number by every identity that it has; so many functions there are.
#[must_use]
pub fn pairs_of_times<'i>(sides: [&[(&'i Identity, usize)]; 2], counts: [usize; 2]) -> Vec<Pair> {
    let [base, new] = sides;
    let mut matcher = Matcher {
        base: &[],
        new: &[],
        of_base: vec![None; counts[0]],
        of_new: vec![None; counts[1]],
        doubtful: BTreeSet::new(),
    };
    let by_identity: BTreeMap<&Identity, usize> = new.iter().copied().collect();
    for (one, at) in base {
        if let Some(newer) = by_identity.get(one) {
            matcher.pair_free(*at, *newer);
        }
    }
    // Of inlined copies less is known.
    let left = |side: &[(&'i Identity, usize)], partners: &[Option<usize>]| {
        let mut left: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (one, at) in side.iter().filter(|(_, at)| partners[*at].is_none()) {
            let key = (
                one.object.clone(),
                one.name.clone(),
                one.beside.path.clone(),
            );
            left.entry(key).or_default().push((&one.beside, *at));
        }
        left
    };
    let remaining = left(base, &matcher.of_base);
    let mut news = left(new, &matcher.of_new);
    for (key, olds) in remaining {
        let newer = news.remove(&key);
        if let ([(old, at)], Some([(newer, to)])) = (&olds[..], newer.as_deref())
            && old.may_be(newer)
        {
            matcher.pair_free(*at, *to);
        }
    }
    matcher.pairs()
}

/// Functions of both sides of which nothing but the base name tells that their file is one of the other side.
#[must_use]
pub fn by_base_names(base: &[&Identity], new: &[&Identity]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let ways: [fn(&Identity) -> String; 2] = [|of| source(of).to_owned(), binary];
    let found = ways.map(|way| {
        let paths = [base, new].map(|side| side.iter().map(|of| way(of)).collect::<Vec<_>>());
        let texts = paths.each_ref();
        let texts = texts.map(|side| side.iter().map(String::as_str).collect());
        let numbers = Numbers::of(texts);
        let is_by_name = |path: &&String| numbers.get(0, path, true) != numbers.get(0, path, false);
        let olds: BTreeSet<FileNumber> = paths[0]
            .iter()
            .filter(is_by_name)
            .map(|path| numbers.get(0, path, false))
            .collect();
        [0, 1].map(|side| {
            let all = paths[side].iter().enumerate();
            let all = all.filter(|(_, path)| olds.contains(&numbers.get(side, path, false)));
            all.map(|(at, _)| at).collect::<Vec<_>>()
        })
    });
    let of = |side: usize| {
        found
            .iter()
            .flat_map(|of| of[side].iter().copied())
            .collect()
    };
    (of(0), of(1))
}

/// The functions that runs of one code have, of which files may lie elsewhere in each.
#[derive(Debug, Default)]
pub struct SameCode<'i> {
    binaries: Files,
    sources: Files,
    known: FxHashMap<Spot<'i>, usize>,
}

impl<'i> SameCode<'i> {
    /// Adds a run: numbers of its functions with the functions. By function: the number of the same one in an earlier run.
    pub fn add(&mut self, run: &[(usize, &'i Identity)]) -> Vec<Option<usize>> {
        let binaries: Vec<String> = run.iter().map(|(_, of)| binary(of)).collect();
        self.binaries.add(binaries.iter().map(String::as_str));
        self.sources.add(run.iter().map(|(_, of)| source(of)));
        // Of one build numbers tell.
        let spots = run.iter().zip(&binaries).map(|((_, identity), binary)| {
            let object = self.binaries.get(binary, false);
            let source = |is_sure| self.sources.get(source(identity), is_sure);
            Spot::of(identity, None, object, source)
        });
        let spots: Vec<Spot<'i>> = spots.collect();
        let found = spots.iter().map(|spot| self.known.get(spot).copied());
        let found: Vec<Option<usize>> = found.collect();
        for (spot, (number, _)) in spots.into_iter().zip(run) {
            self.known.entry(spot).or_insert(*number);
        }
        found
    }
}

/// The numbers of a file; 0 is none.
#[derive(Debug, Clone, Copy, Default)]
struct Numbered {
    /// Where all that is known is told.
    sure: FileNumber,
    /// Where base names suffice.
    by_name: FileNumber,
}

impl Numbered {
    const fn own(number: FileNumber) -> Self {
        Self {
            sure: number,
            by_name: number,
        }
    }

    /// `is_sure` asks for more than a base name.
    const fn get(self, is_sure: bool) -> FileNumber {
        if is_sure { self.sure } else { self.by_name }
    }
}

/// Files of several runs.
#[derive(Debug, Default)]
struct Files {
    /// The path of each in the first run that has it.
    first: Vec<String>,
    /// By path: its place in `first`, and its numbers.
    known: FxHashMap<String, (usize, Numbered)>,
}

impl Files {
    /// Adds those of a run. They are compared with the first of each alone: the second one's folder would be another file of its name.
    fn add<'p>(&mut self, paths: impl Iterator<Item = &'p str>) {
        let paths: BTreeSet<&str> = paths.filter(|path| !path.is_empty()).collect();
        let as_first = |path: &'p str| match self.known.get(path) {
            Some((at, _)) => self.first[*at].as_str(),
            None => path,
        };
        let run: BTreeSet<&str> = paths.iter().map(|path| as_first(path)).collect();
        let run: Vec<&str> = run.into_iter().collect();
        let first: Vec<&str> = self.first.iter().map(String::as_str).collect();
        let mut partners = same_files(&run, &first);
        // Below a folder of which a file is at its old place no other has moved.
        let stays = run.iter().filter(|path| self.known.contains_key(**path));
        let stays: BTreeSet<&str> = stays.map(|path| folder(path)).collect();
        let is_below = |path: &str| {
            let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
            above.any(|above| stays.contains(above))
        };
        for (path, same) in run.iter().zip(&mut partners) {
            let is_other = |of: &SameFile| of.by_name && is_below(path) && is_below(first[of.at]);
            *same = same.filter(|same| !is_other(same));
        }
        let new = run.into_iter().zip(partners);
        let new: Vec<(String, Option<SameFile>)> = new
            .filter(|(path, _)| !self.known.contains_key(*path))
            .map(|(path, same)| (path.to_owned(), same))
            .collect();
        for (path, same) in new {
            // 0 is no file.
            let own = self.known.len() + 1;
            let (at, numbers) = match same {
                Some(same) => {
                    let mut numbers = self.known[&self.first[same.at]].1;
                    if same.by_name {
                        numbers.sure = own;
                    }
                    (same.at, numbers)
                }
                None => {
                    self.first.push(path.clone());
                    (self.first.len() - 1, Numbered::own(own))
                }
            };
            self.known.insert(path, (at, numbers));
        }
    }

    fn get(&self, path: &str, is_sure: bool) -> FileNumber {
        let known = self.known.get(path);
        known.map_or(0, |(_, numbers)| numbers.get(is_sure))
    }
}

/// What functions are told by. Files have one number on both sides if they are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Spot<'i> {
    group: Group<'i>,
    line: u32,
    /// Or which it is of those of its name, or what a compiler tells it by.
    column: u32,
    /// What debug information tells it by from others on its line.
    mark: Mark,
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
    /// Whether nothing tells which one of the other side it is.
    is_open: bool,
    /// The number in its name, where that alone tells it from others of the function around it; else empty.
    number: &'i str,
    /// Whether the other side's files have it, too, at the place that its name tells.
    is_there: bool,
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

impl<'i> Spot<'i> {
    /// `object` and `source` are numbers of its files; the latter is asked whether more than a base name must say it.
    fn of(
        identity: &'i Identity,
        stem: Option<&'i Stem>,
        object: FileNumber,
        source: impl Fn(bool) -> FileNumber,
    ) -> Self {
        let Identity { name, beside, .. } = identity;
        let place = beside.place.as_deref();
        let is_native = name.line == 0 && name.file.is_empty();
        let place = place.filter(|_| is_native);
        // Where the symbol table has two of one source file's name, that name says nothing.
        let is_sure = place.is_some_and(|place| place.of > 1 && place.like != 1);
        Self {
            group: Group {
                object: (&identity.object, object),
                name: stem.map_or(&name.name, |stem| &stem.name),
                parameters: beside.parameters.as_deref(),
                file: source(is_sure),
            },
            line: place.map_or(name.line, |place| place.line),
            column: place.map_or(name.column, |place| place.nth.max(place.hash)),
            mark: place.map_or(Mark::Nothing, |place| place.mark),
            // A hash tells closures by their order in the function: of another number of them it tells nothing.
            of: place
                .filter(|place| place.nth > 0 || place.hash > 0)
                .map_or(0, |place| place.of),
            build: beside.build,
            is_native,
            namesakes: place.map_or(0, |place| place.of),
            is_shared: place.is_some_and(|place| place.of > 1),
            is_word: beside.is_word || stem.is_some(),
            is_open: false,
            number: stem.map_or("", |stem| &stem.number),
            is_there: false,
        }
    }

    /// Whether nothing says that it is another one of its name on its line. One closure more above gives it another number, and moves
    /// it.
    fn may_be_on_line(&self, new: &Self) -> bool {
        self.line != new.line || !self.mark.differs(new.mark)
    }

    fn is_anonymous(&self) -> bool {
        self.is_word || self.group.name == ANONYMOUS
    }

    /// Whether it is the code of a script outside of functions, which begins where the file does.
    fn is_script(&self) -> bool {
        !self.is_native && self.group.name == ANONYMOUS && (self.line, self.column) == (1, 1)
    }

    /// Line and column.
    const fn position(&self) -> (u32, u32) {
        match self.mark {
            Mark::Column(column) => (self.line, column),
            _ => (self.line, self.column),
        }
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
    file_of_object(&identity.beside.path, &identity.object)
}

/// The same of an object that tables call so; empty where it is no file.
pub(crate) fn file_of_object(path: &str, object: &str) -> String {
    // Tables have but the first number of a library's version, and two versions may be in one process.
    if object.contains(".so.") && path.contains(".so.") {
        return path.to_owned();
    }
    let folder = path.rsplit_once('/');
    folder.map_or_else(String::new, |(folder, _)| format!("{folder}/{object}"))
}

/// The spots of both sides, which have these files besides.
fn spots<'i>(
    sides: [Listed<'_, 'i>; 2],
    stems: &'i [Vec<Known>; 2],
) -> (Vec<Spot<'i>>, Vec<Spot<'i>>) {
    let more = |side: usize| sides[side].files.iter().copied();
    let known = sides.map(|side| side.known.iter().copied().collect::<FxHashSet<_>>());
    let sides = sides.map(|side| side.functions);
    let source_paths = |side: usize| sides[side].iter().map(|of| source(of)).chain(more(side));
    let sources = Numbers::of([0, 1].map(|side| source_paths(side).collect()));
    let binaries = sides.map(|side| side.iter().map(|of| binary(of)).collect::<Vec<_>>());
    let paths = |side: usize| binaries[side].iter().map(String::as_str).chain(more(side));
    let objects = Numbers::of([0, 1].map(|side| paths(side).collect()));
    let spot = |side: usize, at: usize| {
        let identity = sides[side][at];
        let object = objects.get(side, &binaries[side][at], false);
        let source = |is_sure| sources.get(side, source(identity), is_sure);
        let known_by = &stems[side][at];
        let stem = match known_by {
            Known::Lines(stem) => Some(stem),
            _ => None,
        };
        Spot {
            is_open: *known_by == Known::Nothing,
            is_there: identity.name.line > 0 && known[1 - side].contains(identity),
            ..Spot::of(identity, stem, object, source)
        }
    };
    let of = |side: usize| {
        let all = (0..sides[side].len()).map(|at| spot(side, at));
        let mut all: Vec<Spot<'i>> = all.collect();
        in_order_of_marks(&mut all);
        all
    };
    (of(0), of(1))
}

/// Of native functions of one name on one line the column is which it is of them.
fn in_order_of_marks(spots: &mut [Spot<'_>]) {
    let mut lines: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    for (at, spot) in spots.iter().enumerate() {
        if spot.mark != Mark::Nothing {
            lines.entry((spot.group, spot.line)).or_default().push(at);
        }
    }
    for mut all in lines.into_values().filter(|all| all.len() > 1) {
        all.sort_unstable_by_key(|at| spots[*at].mark);
        for (nth, at) in (0..).zip(all) {
            spots[at].column = nth;
        }
    }
}

/// A name without the numbers that compilers give to closures, and to functions of one name, in the order of the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Stem {
    name: String,
    number: String,
    /// Whether all of the name is the author's.
    is_written: bool,
}

impl Stem {
    /// What a number stands behind: of closures of Rust, lambdas of C++ by GCC and by clang, function literals of Go, Erlang, C# and F#,
    /// lambdas of D, instances of Zig.
    const MARKS: [&'static str; 14] = [
        "{closure#",
        "{unnamed type#",
        "}#",
        ")#",
        "$_",
        ".func",
        ".gowrap",
        "-fun-",
        ">b__",
        ">d__",
        "@",
        "__lambda",
        "__anon_",
        "__struct_",
    ];
    /// Before the sign `$`, behind which numbers of Java, Kotlin and Scala stand.
    const OF_JAVA: [&'static str; 4] = ["lambda$", "$anonfun$", "access$", "$lambda$"];

    /// `None` where its name has none.
    fn of_function(of: &Identity) -> Option<Self> {
        Self::of(&of.name.name, of.object == JIT)
    }

    /// `None` where a name has none. `is_made`: its code was made at run time.
    fn of(text: &str, is_made: bool) -> Option<Self> {
        if !is_made && let Some(found) = Self::of_file(text) {
            return Some(found);
        }
        let (mut name, mut number) = (String::new(), String::new());
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            // Function literals of Go inside others: `main.func1.2`.
            let is_inner = name.ends_with(['.', '_']) && !number.is_empty();
            let following = &rest[digits..];
            let is_number = digits > 0
                && (is_inner
                    || Self::MARKS.iter().any(|mark| name.ends_with(mark))
                    || Self::is_managed(&name, following));
            let step = if digits > 0 {
                digits
            } else {
                rest.chars().next().map_or(1, char::len_utf8)
            };
            let (step, behind) = rest.split_at(step);
            if is_number {
                number.push_str(step);
                number.push('.');
            } else {
                name.push_str(step);
            }
            rest = behind;
        }
        (!number.is_empty()).then_some(Self {
            name,
            number,
            is_written: false,
        })
    }

    /// Whether a number is one of Java's and Kotlin's classes without a name (`Main$2.run`), of Clojure's functions (`fn__165`,
    /// `inner__150.invoke`), or of functions in functions of C# (`<Main>g__F|0_1`).
    fn is_managed(front: &str, behind: &str) -> bool {
        let is_class = || {
            let ends = behind.starts_with(['.', '$', ';', '(', ':', '/']);
            ends || Self::OF_JAVA.iter().any(|mark| front.contains(mark))
        };
        let is_closure = || front.contains('$') || behind.starts_with(".invoke");
        front.ends_with('$') && is_class()
            || front.ends_with("__") && is_closure()
            || front.ends_with('|') && front.contains(">g__")
    }

    /// The number at the end of functions of one name in a file: functions in functions by GCC, and static ones by LLVM's LTO
    /// (`work.8`), and all of OCaml (`O.go_98`).
    fn of_file(text: &str) -> Option<Self> {
        let front = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = &text[front.len()..];
        let name = front
            .strip_suffix(['.', '_'])
            .filter(|_| !number.is_empty())?;
        let is_plain = |of: &str| of.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_in = |outer: &str, inner: &str| {
            outer.starts_with(|c: char| c.is_ascii_uppercase())
                && inner.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        };
        let is_known = if front.ends_with('.') {
            is_plain(name)
        } else {
            let parts = name.rsplit_once('.');
            parts
                .is_some_and(|(outer, inner)| is_in(outer, inner) && outer.split('.').all(is_plain))
        };
        is_known.then(|| Self {
            name: name.to_owned(),
            number: format!("{number}."),
            is_written: front.ends_with('_'),
        })
    }
}

/// What tells a function from others of its stem.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// Its name.
    Name,
    /// Its line: the number in its name is none of those of this stem.
    Lines(Stem),
    /// Nothing: no line is known, and not all have the same number on both sides. One more gives all below it other numbers.
    Nothing,
}

/// By side: whether lines tell functions better than the numbers in their names. All of a stem have a line then, and those of one
/// line have columns.
fn stems(listed: [Listed<'_, '_>; 2]) -> [Vec<Known>; 2] {
    let sides = listed.map(|side| side.functions);
    let line = |of: &Identity| {
        let place = of.beside.place.as_deref().filter(|place| place.line > 0)?;
        Some((place.file.clone(), place.line, place.mark))
    };
    let stem_of = |of: &&Identity| {
        let is_native = of.name.line == 0 && of.name.file.is_empty();
        Stem::of_function(of).filter(|_| is_native)
    };
    let mut all_stems = sides.map(|side| side.iter().map(stem_of).collect::<Vec<_>>());
    // The first of `work`, `work.3` and `work.8` has no number.
    let numbered = all_stems.iter().flatten().flatten();
    let numbered: FxHashSet<String> = numbered.map(|stem| stem.name.clone()).collect();
    let first = |of: &Identity| {
        let name = &of.name.name;
        let is_first = of.object != JIT && numbered.contains(name);
        is_first.then(|| Stem {
            name: name.clone(),
            number: String::new(),
            is_written: false,
        })
    };
    for (side, stems) in sides.iter().zip(&mut all_stems) {
        for (of, stem) in side.iter().zip(stems.iter_mut()) {
            if stem.is_none() {
                *stem = first(of);
            }
        }
    }
    /// The functions of a stem in an object.
    #[derive(Default)]
    struct Kin {
        /// By side.
        numbers: [BTreeSet<String>; 2],
        has_line: bool,
        /// Some have no line, or that of another one.
        is_unsure: bool,
    }
    let mut kin: FxHashMap<(String, String), Kin> = FxHashMap::default();
    for (number, (side, stems)) in sides.iter().zip(&all_stems).enumerate() {
        let mut known: FxHashSet<(&str, &str, (String, u32, Mark))> = FxHashSet::default();
        for (of, stem) in side.iter().zip(stems) {
            let Some(stem) = stem else { continue };
            let all = kin.entry((of.object.clone(), stem.name.clone()));
            let all = all.or_default();
            all.numbers[number].insert(stem.number.clone());
            let line = line(of);
            all.has_line |= line.is_some();
            all.is_unsure |= !line.is_some_and(|line| known.insert((&of.object, &stem.name, line)));
        }
        for of in listed[number].known {
            if let Some(stem) = stem_of(of).or_else(|| first(of)) {
                let all = kin.entry((of.object.clone(), stem.name)).or_default();
                all.numbers[number].insert(stem.number);
                all.has_line |= line(of).is_some();
            }
        }
    }
    let known = |of: &Identity, stem: Option<Stem>| {
        let Some(stem) = stem else {
            return Known::Name;
        };
        let kin = &kin[&(of.object.clone(), stem.name.clone())];
        let [base, new] = &kin.numbers;
        let are_other = base != new && !base.is_empty() && !new.is_empty();
        // Where lines are known, one side may have been sampled less.
        let are_some = base.is_subset(new) || new.is_subset(base);
        // OCaml's numbers stand behind the name that somebody wrote, which few functions of a module share.
        if stem.is_written && are_other && base.len() == 1 && new.len() == 1 {
            return Known::Lines(stem);
        }
        match (kin.is_unsure, are_other && !(kin.has_line && are_some)) {
            (false, _) => Known::Lines(stem),
            (true, true) => Known::Nothing,
            (true, false) => Known::Name,
        }
    };
    let [base, new] = all_stems;
    [(sides[0], base), (sides[1], new)].map(|(side, stems)| {
        let all = side.iter().zip(stems);
        all.map(|(of, stem)| known(of, stem)).collect()
    })
}

/// Numbers of files, by side and path.
struct Numbers<'p>([FxHashMap<&'p str, Numbered>; 2]);

impl<'p> Numbers<'p> {
    fn of(sides: [Vec<&'p str>; 2]) -> Self {
        let [base, new] = sides.map(|mut paths| {
            paths.sort_unstable();
            paths.dedup();
            paths.retain(|path| !path.is_empty());
            paths
        });
        let partners = same_files(&base, &new);
        let of_new = new.iter().copied().zip((1..).map(Numbered::own));
        let free_numbers = new.len() + 1..;
        let of_base = base.iter().zip(partners).zip(free_numbers);
        let of_base = of_base.map(|((path, same), alone)| {
            let sure = same.filter(|same| !same.by_name);
            let number = |partner: SameFile| partner.at + 1;
            let numbers = Numbered {
                sure: sure.map_or(alone, number),
                by_name: same.map_or(alone, number),
            };
            (*path, numbers)
        });
        Self([of_base.collect(), of_new.collect()])
    }

    fn get(&self, side: usize, path: &str, is_sure: bool) -> FileNumber {
        let numbers = self.0[side].get(path);
        numbers.map_or(0, |numbers| numbers.get(is_sure))
    }
}

struct Matcher<'i> {
    base: &'i [Spot<'i>],
    new: &'i [Spot<'i>],
    of_base: Vec<Option<usize>>,
    of_new: Vec<Option<usize>>,
    /// Of the base: those of which it is not sure that their partners are the same.
    doubtful: BTreeSet<usize>,
}

impl<'i> Matcher<'i> {
    fn pair(&mut self, base: usize, new: usize) {
        self.of_base[base] = Some(new);
        self.of_new[new] = Some(base);
    }

    fn pair_free(&mut self, base: usize, new: usize) {
        if self.of_base[base].is_none() && self.of_new[new].is_none() {
            self.pair(base, new);
        }
    }

    /// Functions of which no line is known are the same by their names.
    fn without_lines(&mut self) {
        let lineless = |(_, spot): &(usize, &Spot<'i>)| spot.line == 0 && !spot.is_open;
        let key = |spot: &Spot<'i>| (spot.group, spot.column, spot.of, spot.build);
        let new = self.new.iter().enumerate().filter(lineless);
        let known: FxHashMap<_, usize> = new.map(|(at, spot)| (key(spot), at)).collect();
        for (at, spot) in self.base.iter().enumerate().filter(lineless) {
            if let Some(newer) = known.get(&key(spot)) {
                self.pair(at, *newer);
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
                let native = |(_, spot): &(usize, &Spot<'i>)| {
                    spot.is_native && spot.number.is_empty() && !spot.is_open
                };
                for (at, spot) in spots.iter().enumerate().filter(native) {
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
                    // Closures have one name: on one line another number may be that of another one.
                    let is_closure = matches!(one.mark, Mark::Closure(_));
                    if is_closure && !one.may_be_on_line(other) {
                        self.doubtful.insert(*old);
                    }
                }
            }
        }
    }

    /// Named functions of which both sides have one in a file, but for those that would have moved otherwise than what is above and
    /// below: only what was sampled is seen, and that may be another function of the name on each side.
    fn alone(&mut self) {
        let new_groups = grouped(self.new);
        let mut files: BTreeMap<FileOf<'i>, Vec<(usize, usize)>> = BTreeMap::new();
        for (group, olds) in grouped(self.base) {
            if let ([old], Some([new])) = (&olds[..], new_groups.get(&group).map(Vec::as_slice)) {
                files.entry(group.place()).or_default().push((*old, *new));
            }
        }
        for mut pairs in files.into_values() {
            pairs.sort_unstable_by_key(|(old, _)| (self.base[*old].line, self.base[*old].column));
            let shifts: Vec<i32> = pairs.iter().map(|pair| self.shift(*pair)).collect();
            for (at, (old, new)) in pairs.into_iter().enumerate() {
                let above = at.checked_sub(1).map(|above| shifts[above]);
                let around = above.zip(shifts.get(at + 1).copied());
                // Of native code it is known how many of the name there are.
                let is_only = self.base[old].namesakes == 1 && self.new[new].namesakes == 1;
                let is_there = is_only || is_between(shifts[at], around);
                if is_there && self.base[old].may_be_on_line(&self.new[new]) {
                    self.pair(old, new);
                }
            }
        }
    }

    /// How many lines lie between a function of the base and one of the new side; 0 if that is no number.
    fn shift(&self, (old, new): (usize, usize)) -> i32 {
        let shift = i64::from(self.new[new].line) - i64::from(self.base[old].line);
        i32::try_from(shift).unwrap_or(0)
    }

    /// Named functions that have others of their name in the file.
    fn several(&mut self) {
        let (shifts, moved) = (self.shifts(), self.moved_files());
        let new_groups = grouped(self.new);
        let none = BTreeMap::new();
        for (group, mut olds) in grouped(self.base) {
            let Some(mut news) = new_groups.get(&group).cloned() else {
                continue;
            };
            olds.retain(|at| self.of_base[*at].is_none());
            let file = group.place();
            // Of native code it is known how many of a name there are: one more may be at the line of another one.
            let of = |spots: &[Spot<'i>], all: &[usize]| all.first().map(|at| spots[*at].namesakes);
            if of(self.base, &olds) != of(self.new, &news) {
                continue;
            }
            let shifts = shifts.get(&file).unwrap_or(&none);
            if moved.get(&file) == Some(&false) {
                self.shifted(&mut olds, &mut news, &none);
            }
            // Between functions that moved alike, if they did so too.
            self.at_shift(&mut olds, &mut news, |line| {
                let (above, below) = around(shifts, line)?;
                (above == below).then_some(above)
            });
            if olds.len() != news.len() {
                self.shifted(&mut olds, &mut news, shifts);
            }
            // In order, if none would have moved otherwise than what is around it.
            let is_in_place = |(old, new): (&usize, &usize)| {
                let (spot, other) = (&self.base[*old], &self.new[*new]);
                let around = around(shifts, spot.line);
                is_between(self.shift((*old, *new)), around) && spot.may_be_on_line(other)
            };
            if olds.len() == news.len() && olds.iter().zip(&news).all(is_in_place) {
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
            if let Some(new) = new.filter(|new| new.line > 0 && !spot.is_anonymous()) {
                *files.entry(spot.group.place()).or_default() |=
                    (spot.line, spot.column) != (new.line, new.column);
            }
        }
        files
    }

    /// The code of scripts outside of functions, whatever moves.
    fn scripts(&mut self) {
        let scripts = |spots: &'i [Spot<'i>]| {
            let scripts = spots.iter().enumerate();
            let scripts = scripts.filter(|(_, spot)| spot.is_script());
            scripts.map(|(at, spot)| (spot.group, at))
        };
        let news: FxHashMap<Group<'i>, usize> = scripts(self.new).collect();
        for (group, old) in scripts(self.base) {
            if let Some(new) = news.get(&group) {
                self.pair(old, *new);
            }
        }
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
            let is_one = |spot: &Spot<'_>| spot.line > 0 && spot.is_anonymous();
            for (at, spot) in lined.filter(|(_, spot)| is_one(spot) && !spot.is_script()) {
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
            let one = |spots: &[Spot<'i>], all: &[usize]| all.first().map(|at| spots[*at].number);
            let is_told = |shift: &i32| match near {
                _ if olds.len() > 1 => true,
                Some(near) => near == *shift,
                None => {
                    let is_native = group.name != ANONYMOUS;
                    (is_native || *shift == 0) && one(self.base, &olds) == one(self.new, &news)
                }
            };
            let may_stay = near.is_none_or(|shift| shift == 0);
            let have_stayed = || may_stay && self.have_stayed(&olds, &news);
            let common = common.filter(is_told);
            let common = common.or_else(|| have_stayed().then_some(0));
            let around = above.filter(|_| above == below);
            self.at_shift(&mut olds, &mut news, |_| common.or(around));
        }
    }

    /// Whether all of some functions are at their places, of those also that were not sampled on one side.
    fn have_stayed(&self, olds: &[usize], news: &[usize]) -> bool {
        let places = |spots: &'i [Spot<'i>], all: &[usize]| -> BTreeSet<(u32, u32)> {
            all.iter().map(|at| spots[*at].position()).collect()
        };
        let there = |spots: &'i [Spot<'i>], all: &[usize]| -> BTreeSet<(u32, u32)> {
            let all = all.iter().filter(|at| spots[**at].is_there);
            all.map(|at| spots[*at].position()).collect()
        };
        let (old, new) = (places(self.base, olds), places(self.new, news));
        let of_base = old.union(&there(self.new, news)).copied().collect();
        let of_new: BTreeSet<_> = new.union(&there(self.base, olds)).copied().collect();
        of_new == of_base
    }

    /// Functions without a name at their old places, in files in which nothing else has moved. One more on a line, or above it,
    /// would have moved what is behind it: where others are left behind the last one that is at its place, all of them may be
    /// others, as far up as the next function that has a name.
    fn unmoved(&mut self) {
        let (moved, named) = (self.moved_files(), self.named_places());
        for (group, [olds, news]) in self.left_without_a_name() {
            let file = group.place();
            let Some(named) = named
                .get(&file)
                .filter(|_| moved.get(&file) == Some(&false))
            else {
                continue;
            };
            let others = |all: &Places, there: &Places, spots: &[Spot<'i>]| -> Vec<_> {
                let all = all
                    .iter()
                    .filter(|(place, at)| !there.contains_key(place) && !spots[**at].is_there);
                all.map(|(place, _)| *place).collect()
            };
            let mut left = others(&olds, &news, self.base);
            left.extend(others(&news, &olds, self.new));
            let stay = olds.keys().filter(|place| news.contains_key(place));
            let stay: BTreeSet<(u32, u32)> = stay.chain(named).copied().collect();
            // Up to an end: no function is left behind the last one that stays, or a named one is between.
            let is_held = |place: (u32, u32), end: (u32, u32)| {
                let last = stay.range(place..=end).next_back();
                let is_pushed = left.iter().any(|at| Some(at) > last && *at <= end);
                let behind = (place.0, place.1.saturating_add(1));
                !is_pushed || named.range(behind..).next().is_some_and(|at| *at <= end)
            };
            for (place, old) in &olds {
                let ends = [(place.0, u32::MAX), (u32::MAX, u32::MAX)];
                let new = news.get(place);
                if let Some(new) = new.filter(|_| ends.iter().all(|end| is_held(*place, *end))) {
                    self.pair(*old, *new);
                    if self.base[*old].number != self.new[*new].number {
                        self.doubtful.insert(*old);
                    }
                }
            }
        }
    }

    /// By object and file: where in the base functions are that have a name and a partner.
    fn named_places(&self) -> BTreeMap<FileOf<'i>, BTreeSet<(u32, u32)>> {
        let mut named: BTreeMap<_, BTreeSet<(u32, u32)>> = BTreeMap::new();
        for (spot, new) in self.base.iter().zip(&self.of_base) {
            if new.is_some() && spot.line > 0 && !spot.is_anonymous() {
                let file: &mut BTreeSet<_> = named.entry(spot.group.place()).or_default();
                file.insert(spot.position());
            }
        }
        named
    }

    /// By side and place: functions without a name and without a partner. Closures have no place on their line.
    fn left_without_a_name(&self) -> BTreeMap<Group<'i>, [Places; 2]> {
        let mut groups: BTreeMap<Group<'i>, [Places; 2]> = BTreeMap::new();
        let sides = [(self.base, &self.of_base), (self.new, &self.of_new)];
        for (side, (spots, partners)) in sides.into_iter().enumerate() {
            for (at, spot) in spots.iter().enumerate() {
                let is_left = partners[at].is_none() && spot.line > 0 && spot.is_anonymous();
                let has_place = !spot.is_script() && !matches!(spot.mark, Mark::Closure(_));
                if is_left && has_place {
                    groups.entry(spot.group).or_default()[side].insert(spot.position(), at);
                }
            }
        }
        groups
    }

    /// Functions that have but a number, and are near no function whose way is known: by their numbers, where nothing says that
    /// those of the function around them have changed. That does another number at a line that has moved as what is above it, or
    /// below.
    fn numbered(&mut self) {
        let shifts = self.shifts();
        let none = BTreeMap::new();
        let mut groups: BTreeMap<Group<'i>, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, spots) in [self.base, self.new].into_iter().enumerate() {
            let numbered = spots.iter().enumerate();
            for (at, spot) in numbered.filter(|(_, spot)| !spot.number.is_empty()) {
                groups.entry(spot.group).or_default()[side].push(at);
            }
        }
        for (group, [olds, news]) in groups {
            let shifts = shifts.get(&group.place()).unwrap_or(&none);
            let is_other = |old: &usize| {
                let spot = &self.base[*old];
                if let Some(new) = self.of_base[*old] {
                    return self.new[new].number != spot.number;
                }
                let around = [
                    shifts.range(..=spot.line).next_back(),
                    shifts.range(spot.line..).next(),
                ];
                let around = around.iter().flatten();
                let mut lines =
                    around.filter_map(|(_, shift)| spot.line.checked_add_signed(**shift));
                lines.any(|line| {
                    let mut there = news.iter().map(|new| &self.new[*new]);
                    there.any(|new| {
                        let is_there = new.line == line && spot.may_be_on_line(new);
                        is_there && new.number != spot.number
                    })
                })
            };
            if olds.iter().any(is_other) {
                continue;
            }
            for old in olds {
                let is_it = |new: &&usize| {
                    let (spot, other) = (&self.base[old], &self.new[**new]);
                    let is_free = self.of_new[**new].is_none();
                    is_free && other.number == spot.number && spot.may_be_on_line(other)
                };
                let new = news.iter().find(is_it);
                if let Some(new) = new.filter(|_| self.of_base[old].is_none()) {
                    self.pair(old, *new);
                }
            }
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
        let lines = [by_line(self.base, olds), by_line(self.new, news)];
        olds.retain(|old| {
            let line = self.base[*old].line;
            let there = shift(line).and_then(|shift| line.checked_add_signed(shift));
            let Some((there, on_line)) = there.zip(lines[0].get(&line)) else {
                return true;
            };
            let Some(of_new) = lines[1].get(&there) else {
                return true;
            };
            let told = news.iter().enumerate().find_map(|(at, new)| {
                let spots = (&self.base[*old], &self.new[*new]);
                let told = (spots.1.line == there).then(|| told_on_line(spots, (on_line, of_new)));
                Some((at, told.flatten()?))
            });
            let Some((at, is_sure)) = told else {
                return true;
            };
            self.pair(*old, news.remove(at));
            if !is_sure {
                self.doubtful.insert(*old);
            }
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
            let of_file: &mut BTreeMap<_, _> = shifts.entry(spot.group.place()).or_default();
            of_file.insert(spot.line, self.shift((at, new)));
        }
        shifts
    }

    fn pairs(self) -> Vec<Pair> {
        let base = self.of_base.iter().enumerate().map(|(at, new)| Pair {
            base: Some(at),
            new: *new,
            is_doubtful: self.doubtful.contains(&at),
        });
        let only_new = self
            .of_new
            .iter()
            .enumerate()
            .filter(|(_, partner)| partner.is_none());
        base.chain(only_new.map(|(at, _)| Pair {
            base: None,
            new: Some(at),
            is_doubtful: false,
        }))
        .collect()
    }
}

/// Some functions by their lines.
fn by_line<'s, 'i>(spots: &'s [Spot<'i>], all: &[usize]) -> BTreeMap<u32, Vec<&'s Spot<'i>>> {
    let mut lines: BTreeMap<u32, Vec<&Spot<'i>>> = BTreeMap::new();
    for at in all {
        lines.entry(spots[*at].line).or_default().push(&spots[*at]);
    }
    lines
}

/// Whether two functions of a line are the same, which has these in the base and in the new side: nothing if not, else whether
/// that is sure.
fn told_on_line(
    (spot, new): (&Spot<'_>, &Spot<'_>),
    (olds, news): (&[&Spot<'_>], &[&Spot<'_>]),
) -> Option<bool> {
    let has_stayed = spot.line == new.line;
    let is_crowded = olds.len() > 1 || news.len() > 1;
    let is_sure = !has_stayed || !is_crowded || spot.number == new.number;
    let is_same = match (spot.mark, new.mark) {
        (Mark::Closure(a), Mark::Closure(b)) => {
            return told_by_numbers((a, b), (olds, news), has_stayed);
        }
        // By the order on a line that has moved.
        (Mark::Column(a), Mark::Column(b)) if has_stayed || olds.len() != news.len() => a == b,
        _ => spot.column == new.column,
    };
    is_same.then_some(is_sure)
}

/// The same of closures, of which their numbers alone are known: where each side has one that the other has not, these have changed,
/// and the order tells.
fn told_by_numbers(
    (a, b): (u32, u32),
    (olds, news): (&[&Spot<'_>], &[&Spot<'_>]),
    has_stayed: bool,
) -> Option<bool> {
    let numbers = |spots: &[&Spot<'_>]| -> BTreeSet<u32> {
        let numbers = spots.iter().filter_map(|spot| match spot.mark {
            Mark::Closure(number) => Some(number),
            _ => None,
        });
        numbers.collect()
    };
    let (olds, news) = (numbers(olds), numbers(news));
    let are_sampled = olds.is_subset(&news) || news.is_subset(&olds);
    let order = |sampled: &BTreeSet<u32>, one: u32| sampled.range(..one).count();
    // One that is alone on its line, and was not moved by the one more above it, is another one.
    let is_alone = has_stayed && olds.len() == 1;
    let is_same = if are_sampled {
        a == b
    } else {
        olds.len() == news.len() && !is_alone && order(&olds, a) == order(&news, b)
    };
    let is_sure = olds == news || !has_stayed && !are_sampled;
    is_same.then_some(is_sure)
}

/// How far the nearest functions above a line and below have moved, if there are both.
fn around(shifts: &BTreeMap<u32, i32>, line: u32) -> Option<(i32, i32)> {
    let (_, above) = shifts.range(..line).next_back()?;
    let (_, below) = shifts.range(line.checked_add(1)?..).next()?;
    Some((*above, *below))
}

/// Whether a function that moved so many lines may be between two that moved as far as is told.
fn is_between(shift: i32, around: Option<(i32, i32)>) -> bool {
    around.is_none_or(|(above, below)| (above.min(below)..=above.max(below)).contains(&shift))
}

/// Functions by line and column.
type Places = BTreeMap<(u32, u32), usize>;

/// An object and a source file in it.
type FileOf<'i> = (&'i str, FileNumber, FileNumber);

/// Named functions with a line, by group, in the order of the source.
fn grouped<'i>(spots: &[Spot<'i>]) -> BTreeMap<Group<'i>, Vec<usize>> {
    let mut groups: BTreeMap<Group<'i>, Vec<usize>> = BTreeMap::new();
    let mut order: Vec<usize> = (0..spots.len()).collect();
    order.sort_by_key(|at| (spots[*at].line, spots[*at].column));
    for at in order {
        let spot = &spots[at];
        if spot.line > 0 && !spot.is_anonymous() && !spot.is_open {
            groups.entry(spot.group).or_default().push(at);
        }
    }
    groups
}

/// A name without the numbers of closures in it; `None` where it has none.
#[must_use]
pub fn stem(of: &Identity) -> Option<String> {
    Stem::of_function(of).map(|stem| stem.name)
}

/// Whether a name has a number that an edit elsewhere may change: without a partner it may be the same function.
#[must_use]
pub fn is_numbered(of: &Identity) -> bool {
    Stem::of_function(of).is_some() || is_index(of)
}

/// Whether a name is the number of a function in a module of WebAssembly: of wasmtime, V8 and WAMR.
#[must_use]
pub fn is_index(of: &Identity) -> bool {
    let name = &of.name.name;
    ["function[", "aot_func#"]
        .iter()
        .any(|mark| name.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::super::Beside;
    use super::*;
    use crate::runtimes::CleanName;
    use crate::runtimes::names::clean_object;
    use crate::symbolize::Place;

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

    fn listed<'s, 'i>(functions: &'s [&'i Identity]) -> Listed<'s, 'i> {
        Listed {
            functions,
            ..Listed::default()
        }
    }

    fn matched(base: &[&str], new: &[&str]) -> Vec<(String, String)> {
        let sides = [base, new].map(|side| side.iter().map(|t| identity(t)).collect::<Vec<_>>());
        let text = |side: usize, at: Option<usize>| {
            at.map_or("-".to_owned(), |at| sides[side][at].name.full())
        };
        let [base, new] = &sides;
        let (base, new): (Vec<_>, Vec<_>) = (base.iter().collect(), new.iter().collect());
        let pairs = pairs(listed(&base), listed(&new));
        pairs
            .iter()
            .map(|p| (text(0, p.base), text(1, p.new)))
            .filter(|(a, b)| a != b)
            .collect()
    }

    /// Of functions that have not been hit nothing is seen: one of a name on each side may be two.
    #[test]
    fn functions_move_as_what_is_around_them() {
        let around = |lines: [u32; 3]| {
            let [above, run, below] = lines;
            [
                format!("above /a/x.js {above} 1"),
                format!("run /a/x.js {run} 1"),
                format!("below /a/x.js {below} 1"),
            ]
        };
        let of = |base: [u32; 3], new: [u32; 3]| {
            let sides = [around(base), around(new)];
            let [base, new] = sides
                .each_ref()
                .map(|side| side.each_ref().map(String::as_str));
            let left = matched(&base, &new).into_iter();
            left.filter(|(old, new)| old == "-" || new == "-").count()
        };
        // Lines more below, above, and within what is above.
        assert_eq!(of([2, 7, 12], [2, 7, 15]), 0);
        assert_eq!(of([2, 7, 12], [5, 10, 15]), 0);
        assert_eq!(of([2, 7, 12], [2, 10, 15]), 0);
        // Another one of three classes.
        assert_eq!(of([2, 4, 12], [2, 7, 12]), 2);
        assert_eq!(of([2, 4, 12], [3, 8, 13]), 2);
        // The first two of three were hit, then the last two, below one line more.
        let base = [
            "spin /a/x.js 2 1",
            "run /a/x.js 4 1",
            "run /a/x.js 7 1",
            "last /a/x.js 12 1",
        ];
        let new = [
            "spin /a/x.js 3 1",
            "run /a/x.js 8 1",
            "run /a/x.js 11 1",
            "last /a/x.js 13 1",
        ];
        let found = matched(&base, &new);
        let one = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert!(
            found.contains(&one("run /a/x.js:7:1", "run /a/x.js:8:1")),
            "{found:?}"
        );
        assert!(found.contains(&one("run /a/x.js:4:1", "-")), "{found:?}");
        assert!(found.contains(&one("-", "run /a/x.js:11:1")), "{found:?}");
    }

    /// Both sides have both files, and one of them was hit in each.
    #[test]
    fn files_without_samples_tell_files_apart() {
        let (base, new) = (
            identity("handle /a/x/index.js 1 1"),
            identity("handle /a/y/index.js 1 1"),
        );
        let files = ["/a/x/index.js", "/a/y/index.js"];
        let count = |files: &[&str]| {
            let side = |functions| Listed {
                functions,
                known: &[],
                files,
            };
            pairs(side(&[&base]), side(&[&new])).len()
        };
        assert_eq!((count(&[]), count(&files)), (1, 2));
        assert_eq!(by_base_names(&[&base], &[&new]), ([0].into(), [0].into()));
        assert_eq!(by_base_names(&[&base], &[&base]), (none_of(), none_of()));
    }

    /// The names that both sides' objects have are those that a recording's mappings are listed by.
    #[test]
    fn a_library_of_another_version_is_the_same() {
        let paths = ["/a/libhot.so.1.2.3", "/b/libhot.so.1.3.0"];
        let one = |path: &str| Identity {
            object: clean_object(path).to_owned(),
            beside: Beside {
                path: path.to_owned(),
                ..Beside::default()
            },
            ..identity("hot")
        };
        let sides = paths.map(one);
        let files = paths.map(|path| file_of_object(path, clean_object(path)));
        let side = |at: usize| [&sides[at]];
        let (base, new) = (side(0), side(1));
        let files = files.each_ref().map(|file| [file.as_str()]);
        let of = |functions, at: usize| Listed {
            functions,
            known: &[],
            files: &files[at],
        };
        assert_eq!(pairs(of(&base, 0), of(&new, 1)).len(), 1);
    }

    fn none_of() -> BTreeSet<usize> {
        BTreeSet::new()
    }

    /// A program in a folder of each run, and a function in the second run that the first has not.
    #[test]
    fn runs_of_one_build_may_lie_anywhere() {
        let of = |run: &str, name: &str| Identity {
            object: "prog".to_owned(),
            beside: Beside {
                path: format!("/runs/{run}/prog"),
                ..Beside::default()
            },
            ..identity(name)
        };
        let runs = [
            vec![of("1", "f")],
            vec![of("2", "f"), of("2", "g")],
            vec![of("3", "f"), of("3", "g")],
        ];
        let mut code = SameCode::default();
        let mut number = 0..;
        let found = runs.iter().map(|run| {
            let run: Vec<(usize, &Identity)> = number.by_ref().zip(run).collect();
            code.add(&run)
        });
        let found: Vec<_> = found.collect();
        assert_eq!(
            found,
            [vec![None], vec![Some(0), None], vec![Some(0), Some(2)],]
        );
        // Two files of one name in one run are two.
        let both = [of("4/a", "f"), of("4/b", "f")];
        let both: Vec<(usize, &Identity)> = (9..).zip(&both).collect();
        let found = code.add(&both);
        assert!(found.iter().flatten().count() < 2, "{found:?}");
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

    /// A script begins where its file does: it does not move with what is in it.
    #[test]
    fn scripts_do_not_say_how_far_functions_moved() {
        let at = |lines: [u32; 3]| {
            let lines = [1].into_iter().chain(lines);
            lines.map(|line| {
                format!(
                    "(anonymous) /a/x.js {line} {}",
                    if line == 1 { 1 } else { 10 }
                )
            })
        };
        let (base, new) = (at([2, 3, 4]), at([3, 4, 5]));
        let (base, new): (Vec<String>, Vec<String>) = (base.collect(), new.collect());
        fn texts(all: &[String]) -> Vec<&str> {
            all.iter().map(String::as_str).collect()
        }
        let found = matched(&texts(&base), &texts(&new));
        let shown = |line: u32| format!("(anonymous) /a/x.js:{line}:10");
        let expected = [2, 3, 4].map(|line| (shown(line), shown(line + 1)));
        assert_eq!(found, expected);
        // One alone says nothing: the script was all that stood beside it.
        let found = matched(&texts(&base[..2]), &texts(&new[..1]));
        assert_eq!(found, [(shown(2), "-".to_owned())]);
        let script = &base[0];
        let found = matched(&[script, &base[1]], &[script, &new[3]]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    /// One function more on one side, below or on the line of those that are at their places.
    #[test]
    fn functions_without_a_name_stay_where_nothing_has_moved() {
        type Position = (u32, u32);
        let identities = |all: &[Position], named: Option<u32>| -> Vec<Identity> {
            let at = |(line, column)| identity(&format!("(anonymous) /a/x.js {line} {column}"));
            let named = named.map(|line| identity(&format!("other /a/x.js {line} 1")));
            all.iter().copied().map(at).chain(named).collect()
        };
        let left = |sides: [&[Position]; 2], named: [u32; 2], known: &[Position]| {
            let base = identities(sides[0], Some(named[0]));
            let new = identities(sides[1], Some(named[1]));
            let known = identities(known, None);
            let [base, new, known] =
                [&base, &new, &known].map(|all| all.iter().collect::<Vec<_>>());
            let base = Listed {
                known: &known,
                ..listed(&base)
            };
            let pairs = pairs(base, listed(&new)).into_iter();
            let alone = pairs.filter(|pair| pair.base.is_none() || pair.new.is_none());
            alone.count()
        };
        let of = |base: &[Position], new: &[Position]| left([base, new], [30, 30], &[]);
        let (one, right, two, three) = ((5, 9), (5, 40), (9, 9), (13, 9));
        // Another one, on another line: what is below has not moved.
        assert_eq!(of(&[one], &[one, two]), 1);
        assert_eq!(of(&[one, two, three], &[one, three]), 1);
        // On its line, left of it and right of it: the old one would be there if the new one stood at its place.
        assert_eq!(of(&[right], &[one, right]), 1);
        assert_eq!(of(&[one], &[one, right]), 3);
        // The base's file has the other one at its place, without samples.
        assert_eq!(left([&[one], &[one, right]], [30, 30], &[right]), 1);
        // Nothing is below, or that has moved.
        assert_eq!(left([&[one], &[one, two]], [2, 2], &[]), 3);
        assert_eq!(left([&[one], &[one, two]], [30, 34], &[]), 3);
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
        let found = pairs(listed(&base.each_ref()), listed(&new.each_ref()));
        let of_base: Vec<_> = found
            .iter()
            .filter_map(|pair| Some((pair.base?, pair.new)))
            .collect();
        assert_eq!(of_base, [(0, None), (1, Some(1)), (2, Some(2))]);
    }

    /// `main.func1` and others of `main` by their lines in one file of native code, `main` itself in line 5 and another function
    /// far below, as far moved as is said.
    fn literals(names: [&[(&str, u32)]; 2], moved: [u32; 2]) -> Vec<(String, String)> {
        let native = |name: &str, line: u32| Identity {
            object: "prog".to_owned(),
            name: CleanName {
                name: name.to_owned(),
                ..CleanName::default()
            },
            beside: Beside {
                place: Some(Box::new(Place {
                    file: "/w/main.go".to_owned(),
                    line,
                    ..Place::default()
                })),
                ..Beside::default()
            },
        };
        let mut sides = names.map(|side| {
            let functions = side.iter().map(|(name, line)| native(name, *line));
            functions.collect::<Vec<_>>()
        });
        for (side, [above, below]) in sides.iter_mut().zip([[0, 0], moved]) {
            side.extend([native("main", 5 + above), native("end", 90 + below)]);
        }
        let [base, new] = &sides;
        let (base, new): (Vec<_>, Vec<_>) = (base.iter().collect(), new.iter().collect());
        let name = |of: Option<&&Identity>| of.map_or("-".to_owned(), |of| of.name.name.clone());
        let pairs = pairs(listed(&base), listed(&new)).into_iter().map(|pair| {
            let new = pair.new.and_then(|at| new.get(at));
            (name(pair.base.and_then(|at| base.get(at))), name(new))
        });
        let is_literal = |pair: &(String, String)| format!("{pair:?}").contains("func");
        pairs.filter(is_literal).collect()
    }

    #[test]
    fn numbers_of_closures_are_not_their_names() {
        let texts = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            pairs.collect::<Vec<_>>()
        };
        let base: &[(&str, u32)] = &[("main.func1", 10), ("main.func2", 20)];
        // Nothing has changed, or all are five lines lower.
        let same = [("main.func1", "main.func1"), ("main.func2", "main.func2")];
        assert_eq!(literals([base, base], [0, 0]), texts(&same));
        let lower: &[(&str, u32)] = &[("main.func1", 15), ("main.func2", 25)];
        assert_eq!(literals([base, lower], [5, 5]), texts(&same));
        // Lines of each have changed, and their number has not.
        let apart: &[(&str, u32)] = &[("main.func1", 12), ("main.func2", 25)];
        assert_eq!(literals([base, apart], [0, 5]), texts(&same));
        // One more above both, in a line that was empty: it has no samples, or has some.
        let renumbered = [("main.func1", "main.func2"), ("main.func2", "main.func3")];
        let silent: &[(&str, u32)] = &[("main.func2", 10), ("main.func3", 20)];
        assert_eq!(literals([base, silent], [0, 0]), texts(&renumbered));
        let loud: &[(&str, u32)] = &[("main.func1", 7), ("main.func2", 10), ("main.func3", 20)];
        let all = [&renumbered[..], &[("-", "main.func1")]].concat();
        assert_eq!(literals([base, loud], [0, 0]), texts(&all));
        // One more, and all lines have changed: nothing tells.
        let unsure: &[(&str, u32)] = &[("main.func1", 10), ("main.func2", 13), ("main.func3", 25)];
        let found = literals([base, unsure], [0, 5]);
        assert!(!found.contains(&texts(&same)[1]), "{found:?}");
        // Of one line numbers tell them.
        let one_line: &[(&str, u32)] = &[("main.func1", 10), ("main.func2", 10)];
        assert_eq!(literals([one_line, one_line], [0, 0]), texts(&same));
    }

    /// Lambdas or closures of `main` by line and mark, with what is below: which are pairs, and whether that is sure.
    fn marked(names: [&[(&str, u32, Mark)]; 2]) -> Vec<(String, String, bool)> {
        let native = |(name, line, mark): &(&str, u32, Mark)| Identity {
            object: "prog".to_owned(),
            name: CleanName::plain(name),
            beside: Beside {
                place: Some(Box::new(Place {
                    file: "/w/main.cc".to_owned(),
                    line: *line,
                    mark: *mark,
                    ..Place::default()
                })),
                ..Beside::default()
            },
        };
        let sides = names.map(|side| {
            let main = [("main", 5, Mark::Column(5))];
            side.iter().chain(&main).map(native).collect::<Vec<_>>()
        });
        let [base, new] = &sides;
        let (base, new): (Vec<_>, Vec<_>) = (base.iter().collect(), new.iter().collect());
        let name = |of: Option<&&Identity>| of.map_or("-".to_owned(), |of| of.name.name.clone());
        let pairs = pairs(listed(&base), listed(&new)).into_iter().map(|pair| {
            let old = pair.base.and_then(|at| base.get(at));
            let newer = pair.new.and_then(|at| new.get(at));
            (name(old), name(newer), !pair.is_doubtful)
        });
        pairs.filter(|pair| pair.0 != "main").collect()
    }

    /// One more in front, as in another line: those of one line are told by their columns, and by their order where none is known.
    #[test]
    fn columns_tell_lambdas_of_one_line() {
        let lambda = |number: u32| format!("main::{{lambda(long)#{number}}}::operator()");
        let names: Vec<String> = (0..4).map(lambda).collect();
        let at = |number: usize, line: u32, column: u32| {
            (names[number].as_str(), line, Mark::Column(column))
        };
        let pair = |old: usize, new: usize, is_sure: bool| {
            (names[old].clone(), names[new].clone(), is_sure)
        };
        let base = [at(1, 8, 12), at(2, 8, 86)];
        // The one more has samples, or has none.
        let silent = [at(2, 8, 12), at(3, 8, 86)];
        let loud = [at(1, 7, 3), silent[0], silent[1]];
        assert_eq!(
            marked([&base, &silent]),
            [pair(1, 2, false), pair(2, 3, false)]
        );
        let found = marked([&base, &loud]);
        assert_eq!(found[..2], [pair(1, 2, false), pair(2, 3, false)]);
        assert_eq!(found[2].0, "-");
        // Nothing has changed; one has no samples.
        assert_eq!(marked([&base, &base]), [pair(1, 1, true), pair(2, 2, true)]);
        let found = marked([&base, &base[..1]]);
        assert_eq!(found[0], pair(1, 1, true));
        assert_eq!(found[1].1, "-");
        // A number at another one's place is none of them.
        let found = marked([&base, &[at(2, 8, 12)]]);
        assert!(
            found.iter().all(|(old, new, _)| old == "-" || new == "-"),
            "{found:?}"
        );
    }

    #[test]
    fn numbers_of_closures_on_a_line_are_an_order() {
        let name = "cl::main::{{closure}}";
        let found = |base: &[u32], new: &[u32]| {
            let of = |numbers: &[u32]| -> Vec<_> {
                let numbers = numbers.iter();
                numbers
                    .map(|number| (name, 5, Mark::Closure(*number)))
                    .collect()
            };
            let found = marked([&of(base), &of(new)]);
            let pairs = found.iter().filter(|(old, new, _)| old == new);
            let pairs: Vec<bool> = pairs.map(|(_, _, is_sure)| *is_sure).collect();
            pairs
        };
        assert_eq!(found(&[0, 1], &[0, 1]), [true, true]);
        assert_eq!(found(&[0, 1], &[1, 2]), [false, false]);
        assert_eq!(found(&[0, 1], &[1]), [false]);
        assert!(found(&[0, 1, 2], &[1, 3]).is_empty());
        assert_eq!(found(&[0], &[1]), [false]);
        assert_eq!(found(&[0], &[0]), [true]);
    }

    /// Templates with lambdas have one place: where numbers of both sides differ, nothing tells them.
    #[test]
    fn numbers_in_templates_are_no_names() {
        let run = |number: u32| format!("run<main::{{lambda(long)#{number}}}>");
        let names: Vec<String> = (0..4).map(run).collect();
        let at = |number: usize| (names[number].as_str(), 5, Mark::Column(50));
        let count = |base: &[usize], new: &[usize]| {
            let of = |all: &[usize]| all.iter().map(|number| at(*number)).collect::<Vec<_>>();
            let found = marked([&of(base), &of(new)]);
            found.iter().filter(|(old, new, _)| old == new).count()
        };
        assert_eq!(count(&[1, 2], &[1, 2]), 2);
        assert_eq!(count(&[1, 2], &[2]), 1);
        assert_eq!(count(&[1, 2], &[2, 3]), 0);
    }

    #[test]
    fn numbers_stand_behind_marks() {
        for (name, expected) in [
            ("main.main.func12.3", Some("main.main.func.")),
            ("a::{closure#1}", Some("a::{closure#}")),
            (
                "f(int)::{lambda(int)#2}::operator()",
                Some("f(int)::{lambda(int)#}::operator()"),
            ),
            ("main::$_0::operator()", Some("main::$_::operator()")),
            (
                "f()::{unnamed type#2}::get",
                Some("f()::{unnamed type#}::get"),
            ),
            ("L.lambda$main$0", Some("L.lambda$main$")),
            ("'-spin/1-fun-2-'/3", Some("'-spin/1-fun--'/3")),
            ("Program.<Main>b__0_1(int)", Some("Program.<Main>b___(int)")),
            ("$_0::operator()", Some("$_::operator()")),
            ("app.Main$2.run", Some("app.Main$.run")),
            ("kapp.KKt$main$12.invoke", Some("kapp.KKt$main$.invoke")),
            ("inner__150.invoke", Some("inner__.invoke")),
            (
                "Program.<Main>d__0::MoveNext",
                Some("Program.<Main>d__::MoveNext"),
            ),
            ("Program+f@12::Invoke", Some("Program+f@::Invoke")),
            ("d.main.__lambda3", Some("d.main.__lambda")),
            ("work.8", Some("work")),
            ("g__spin.6", Some("g__spin")),
            ("O.go_98", Some("O.go")),
            ("Stdlib.Map.bal_170", Some("Stdlib.Map.bal")),
            ("work_8", None),
            ("main.go_98", None),
            ("Foo.Bar_3", None),
            ("a$1", None),
            ("main.func", None),
            ("f1.cold.2", None),
            ("f#1", None),
        ] {
            assert_eq!(stem(&in_file(name)).as_deref(), expected, "{name}");
        }
        // Java's methods may be called so.
        let made = Identity {
            object: JIT.to_owned(),
            ..in_file("Main.step_93")
        };
        assert_eq!(stem(&made), None);
    }

    fn in_file(name: &str) -> Identity {
        Identity {
            object: "app".to_owned(),
            name: CleanName::plain(name),
            ..Identity::default()
        }
    }

    #[test]
    fn what_is_ambiguous_stays_alone() {
        let found = matched(&["f x.js 3 1", "f x.js 9 1"], &["f x.js 4 1"]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            is_numbered(&in_file("a::{closure#1}"))
                && is_numbered(&in_file("wasm[0]::function[4]"))
                && !is_numbered(&in_file("f#1"))
        );
    }
}
