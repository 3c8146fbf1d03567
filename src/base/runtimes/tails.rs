//! Ends of paths: as much of them as tells files of one name apart.
//!
//! Packages have many files of one name (`index.js`, `__init__.py`), and checkouts lie in other folders: the beginning of a path
//! says little, the whole of it too much.

use rustc_hash::FxHashMap;

/// The parts of a path from its end: the base name first. What is built into node is one part.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let whole = path.starts_with("node:").then_some(path);
    let split = whole.is_none().then(|| path.rsplit('/'));
    whole.into_iter().chain(split.into_iter().flatten())
}

/// The last parts of a path, so many of them; all of it if it has no more.
#[must_use]
pub fn tail(path: &str, count: usize) -> &str {
    let begins = parts(path).take(count).map(|part| part.len() + 1);
    let length: usize = begins.sum();
    path.get((path.len() + 1).saturating_sub(length)..)
        .unwrap_or(path)
}

/// A part of a path, as a version or a build of it may be told by it.
#[derive(Clone, Copy)]
struct PathPart<'p> {
    text: &'p str,
    /// Whether it is the last one.
    is_file: bool,
}

/// A part without a version or a hash: `foo` of `foo@1.2.3_react@17` and of `foo-1.2`, `libz.so` of `libz.so.1.2`, `python` of
/// `python3.11`, `chunk` of `chunk.4f3a2b1c.js`.
fn stem(part: PathPart<'_>) -> &str {
    if let Some(minor) = part.text.strip_prefix("python3.")
        && minor.bytes().all(|b| b.is_ascii_digit())
    {
        return "python";
    }
    version(part).map_or(part.text, |at| &part.text[..at])
}

/// A part with the first number of its version alone: `foo@1` of `foo@1.2.3_react@17`.
fn major(part: PathPart<'_>) -> &str {
    let text = part.text;
    let Some(at) = version(part) else {
        return text;
    };
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let digits = text.as_bytes()[at + 1..].iter().take_while(|b| is_digit(b));
    let end = at + 1 + digits.count();
    if text[end..].starts_with('.') {
        &text[..end]
    } else {
        text
    }
}

/// Where a version or a hash begins, with the sign in front of it.
fn version(part: PathPart<'_>) -> Option<usize> {
    let PathPart { text, is_file } = part;
    let bytes = text.as_bytes();
    let is_version = |at: &usize| {
        let rest = &text[(at + 1).min(text.len())..];
        let begins = rest.starts_with(|c: char| c.is_ascii_digit());
        // The number of a file is part of its name: `step-1.js` is not `step-2.js`.
        let has_minor = || {
            let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let minor = behind.strip_prefix('.');
            minor.is_some_and(|minor| minor.starts_with(|c: char| c.is_ascii_digit()))
        };
        let is_hashed = || {
            is_hash(rest) || is_file && rest.split_once('.').is_some_and(|(own, _)| is_hash(own))
        };
        match bytes[*at] {
            b'@' => begins,
            b'-' => begins && (!is_file || has_minor()) || is_hashed(),
            b'.' => text[..*at].ends_with(".so") && begins || is_file && is_hashed(),
            _ => false,
        }
    };
    let signs = (1..bytes.len()).filter(|at| matches!(bytes[*at], b'@' | b'-' | b'.'));
    signs.into_iter().find(is_version)
}

/// Whether a text is what bundlers make of a file's content: hexadecimal digits, or eight of 64 characters (rollup, vite) or of 32
/// (esbuild), which no word is written like.
fn is_hash(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if text.len() < 8 || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return false;
    }
    if is_hex {
        return has(u8::is_ascii_digit) || text.len() >= 16;
    }
    let (upper, digit) = (has(u8::is_ascii_uppercase), has(u8::is_ascii_digit));
    text.len() == 8 && upper && (digit || !is_in_words(text))
}

/// Whether capitals stand where words begin, or are all there is.
fn is_in_words(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_upper = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_uppercase);
    let is_lone = |at: usize| !is_upper(at) || !is_upper(at + 1) && at + 1 < bytes.len();
    (0..bytes.len()).all(is_upper) || (0..bytes.len()).all(is_lone)
}

/// Paths of one side, ordered by their ends.
struct Ends<'p> {
    /// The parts of each from its end, and its number.
    sorted: Vec<(Vec<&'p str>, usize)>,
    /// By number: how many parts tell a path from all others.
    telling: Vec<usize>,
}

impl<'p> Ends<'p> {
    fn of(paths: &[&'p str], shown: fn(PathPart<'p>) -> &'p str) -> Self {
        let ends = |path: &&'p str| -> Vec<&'p str> {
            let parts = parts(path).enumerate();
            let parts = parts.map(|(nth, text)| PathPart {
                text,
                is_file: nth == 0,
            });
            parts.map(shown).collect()
        };
        let mut sorted: Vec<_> = paths.iter().map(ends).zip(0..).collect();
        sorted.sort_unstable();
        let mut telling = vec![1; paths.len()];
        for pair in sorted.windows(2) {
            let least = 1 + common(&pair[0].0, &pair[1].0);
            for (_, at) in pair {
                telling[*at] = least.max(telling[*at]);
            }
        }
        Self { sorted, telling }
    }

    /// The path that has most of its end in common with another one, and how many parts that are.
    fn nearest(&self, end: &[&str]) -> Option<(usize, usize)> {
        let place = self
            .sorted
            .partition_point(|(known, _)| known.as_slice() < end);
        let near = [place.checked_sub(1), Some(place)].into_iter().flatten();
        let near = near.filter_map(|at| self.sorted.get(at));
        near.map(|(known, at)| (common(known, end), *at)).max()
    }
}

/// How many parts two ends have in common.
fn common(a: &[&str], b: &[&str]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// By path: the shortest end of it that none of the others has.
#[must_use]
pub fn telling<'p>(paths: &[&'p str]) -> Vec<&'p str> {
    let ends = Ends::of(paths, |part| part.text);
    let each = paths.iter().zip(ends.telling);
    each.map(|(path, count)| tail(path, count)).collect()
}

/// A file of the other side that is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SameFile {
    /// Its number.
    pub at: usize,
    /// Whether nothing but the base name says so, as no other file has it.
    pub by_name: bool,
}

/// By path of one side: the path of the other side that is the same file, both without repetitions. They are one path; or all
/// that tells each of them from others of its side stands in both, versions of packages aside; or one begins otherwise than the
/// other as such a pair does, as all files of a checkout that lies elsewhere.
#[must_use]
pub fn same_files(base: &[&str], new: &[&str]) -> Vec<Option<SameFile>> {
    let numbers: FxHashMap<&str, usize> = new.iter().copied().zip(0..).collect();
    let same = |at: usize| SameFile { at, by_name: false };
    let exact = base.iter().map(|path| numbers.get(path).copied().map(same));
    let mut found: Vec<Option<SameFile>> = exact.collect();
    let mut taken = vec![false; new.len()];
    for pair in found.iter().flatten() {
        taken[pair.at] = true;
    }
    // Beginnings that stand for each other, by that of the base.
    let mut beginnings: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    let whole: fn(PathPart<'_>) -> &str = |part| part.text;
    for shown in [whole, major, stem] {
        if found.iter().all(Option::is_some) || taken.iter().all(|taken| *taken) {
            return found;
        }
        let (olds, news) = (Ends::of(base, shown), Ends::of(new, shown));
        for (end, at) in &olds.sorted {
            let near = news.nearest(end).filter(|_| found[*at].is_none());
            let Some((shared, other)) = near.filter(|(_, other)| !taken[*other]) else {
                continue;
            };
            if shared < olds.telling[*at] || shared < news.telling[other] {
                continue;
            }
            let by_name = shared == 1;
            (found[*at], taken[other]) = (Some(SameFile { at: other, by_name }), true);
            let known = beginnings.entry(beginning(base[*at], shared)).or_default();
            let instead = beginning(new[other], shared);
            if shared > 1 && known.len() < MOST && !known.contains(&instead) {
                known.push(instead);
            }
        }
    }
    for (path, slot) in base.iter().zip(&mut found).filter(|(_, f)| f.is_none()) {
        let count = parts(path).count();
        for before in (1..=count).rev().map(|count| beginning(path, count)) {
            let known = beginnings.get(before).into_iter().flatten();
            let moved = known.map(|other| format!("{other}{}", &path[before.len()..]));
            let at = moved.filter_map(|moved| numbers.get(moved.as_str()).copied());
            if let Some(at) = at.into_iter().find(|at| !taken[*at]) {
                (*slot, taken[at]) = (Some(same(at)), true);
                break;
            }
        }
    }
    found
}

/// Beginnings that may stand for one.
const MOST: usize = 8;

/// A path without its last parts.
fn beginning(path: &str, count: usize) -> &str {
    &path[..path.len() - tail(path, count).len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_told_as_it_takes() {
        assert_eq!(
            telling(&[
                "/w/a/index.js",
                "/w/b/index.js",
                "/w/main.js",
                "node:fs/index.js"
            ]),
            ["a/index.js", "b/index.js", "main.js", "node:fs/index.js"]
        );
        assert_eq!(
            telling(&["/a/x/i.js", "/b/x/i.js"]),
            ["a/x/i.js", "b/x/i.js"]
        );
        assert_eq!(
            telling(&["i.js", "/i.js", "x/i.js"]),
            ["i.js", "/i.js", "x/i.js"]
        );
        assert_eq!(telling(&["", "/"]), ["", "/"]);
        assert_eq!(
            (tail("/a/b", 9), tail("/a/b", 2), tail("b", 1)),
            ("/a/b", "a/b", "b")
        );
    }

    fn same(base: &[&str], new: &[&str]) -> Vec<Option<usize>> {
        let found = same_files(base, new).into_iter();
        found.map(|same| Some(same?.at)).collect()
    }

    #[test]
    fn checkouts_may_lie_elsewhere() {
        let base = [
            "/home/a/proj/a/index.js",
            "/home/a/proj/b/index.js",
            "/home/a/proj/index.js",
        ];
        let new = ["/tmp/b/index.js", "/tmp/b/b/index.js", "/tmp/b/a/index.js"];
        // The file at the top begins as the others do.
        assert_eq!(same(&base, &new), [Some(2), Some(1), Some(0)]);
        assert_eq!(same(&["/a/x.js"], &["/b/x.js"]), [Some(0)]);
        assert_eq!(same(&["/a/x.js"], &["/b/y.js"]), [None]);
    }

    #[test]
    fn namesakes_are_not_taken_for_each_other() {
        // One of each side has no samples in the other.
        assert_eq!(
            same(
                &["/w/a/index.js", "/w/b/index.js"],
                &["/w/a/index.js", "/w/c/index.js"]
            ),
            [Some(0), None]
        );
        assert_eq!(same(&["/w/a/i.js"], &["/t/b/i.js", "/t/c/i.js"]), [None]);
        let (base, new) = (
            ["/w/p/x/src/i.js", "/w/p/y/src/i.js"],
            ["/w/p/y/src/i.js", "/w/p/z/src/i.js"],
        );
        assert_eq!(same(&base, &new), [None, Some(0)]);
    }

    #[test]
    fn versions_of_packages_are_no_other_files() {
        let at =
            |foo: &str, bar: &str| [format!("/w/{foo}/index.js"), format!("/w/{bar}/index.js")];
        let paths = [at("foo@1.0.0_x@2", "bar-1.2"), at("foo@1.1.0", "bar-1.3.4")];
        let [base, new] = paths.each_ref().map(|of| of.each_ref().map(String::as_str));
        assert_eq!(same(&base, &new), [Some(0), Some(1)]);
        // Two versions of one package: those that are in both are told, the others are not.
        assert_eq!(
            same(
                &["/w/f@1.0/i.js", "/w/f@2.0/i.js"],
                &["/w/f@2.0/i.js", "/w/f@3.0/i.js"]
            ),
            [None, Some(0)]
        );
        // One of two was updated.
        assert_eq!(
            same(
                &["/w/f@1.0.2/i.js", "/w/f@2.0/i.js"],
                &["/w/f@1.3.0/i.js", "/w/f@2.0/i.js"]
            ),
            [Some(0), Some(1)]
        );
        // Libraries have their versions behind their names.
        assert_eq!(
            same(
                &["/l/libn.so.1.2", "/l/libn.so.2.0"],
                &["/l/libn.so.1.3", "/l/libn.so.2.0"]
            ),
            [Some(0), Some(1)]
        );
        let stems = [
            "@babel+core@7.1",
            "libfoo-0123456789abcdef",
            "a-b",
            "python3.11",
        ]
        .map(|text| {
            stem(PathPart {
                text,
                is_file: false,
            })
        });
        assert_eq!(stems, ["@babel+core", "libfoo", "a-b", "python"]);
    }

    #[test]
    fn files_have_hashes_of_their_content() {
        let is = |text: &'static str, expected: &str| {
            let is_file = true;
            assert_eq!(stem(PathPart { text, is_file }), expected, "{text}");
        };
        is("chunk.4f3a2b1c.js", "chunk");
        is("chunk-af3a2b1c.mjs", "chunk");
        is("index-B7xQ9aZk.js", "index");
        is("index-Dk29sLmN.js", "index");
        is("chunk-QWERT2YU.js", "chunk");
        is("main.0123456789abcdef0123.js", "main");
        is("foo-1.2.jar", "foo");
        is("libz.so.1.2", "libz.so");
        for name in [
            "step-1.js",
            "worker-2.ts",
            "use-DataList.js",
            "my-template.js",
            "a.component.ts",
            "Big-REACTION.js",
            "x-decaffed.js",
        ] {
            is(name, name);
        }
        assert_eq!(same(&["/w/a/step-1.js"], &["/w/a/step-2.js"]), [None]);
        let (base, new) = ("/w/a/i-B7xQ9aZk.js", "/w/b/i-Dk29sLmN.js");
        assert_eq!(same(&[base], &[new]), [Some(0)]);
    }

    proptest::proptest! {
        /// Each path has one partner at most, equal ones have each other, and both sides may change places.
        #[test]
        fn partners_are_mutual(
            base in proptest::collection::btree_set("(/[ab]){0,3}/[xy]", 0..8),
            new in proptest::collection::btree_set("(/[ac]){0,3}/[xy]", 0..8),
        ) {
            let (base, new): (Vec<&str>, Vec<&str>) =
                (base.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let found = same(&base, &new);
            let mut partners: Vec<usize> = found.iter().flatten().copied().collect();
            partners.sort_unstable();
            let count = partners.len();
            partners.dedup();
            proptest::prop_assert_eq!(partners.len(), count);
            for (path, at) in base.iter().zip(&found) {
                let is_there = new.contains(path);
                proptest::prop_assert!(!is_there || at.is_some_and(|at| new[at] == *path));
            }
        }
    }
}
