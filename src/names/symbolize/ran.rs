//! Whether a text is the script that ran.
//!
//! In: a text, and the functions that the recording has of the script of that name, each with its place and the runtime's word for
//! it. Out: [`Ran`]. A file has the recorded name and may still be another text: it was built again, or what ran was made of it in
//! memory. V8 tells where each function begins, and there the text must have the head of a function, of that name.
//!
//! One rule for scripts, their source maps and originals, of which [`super::source_map`] and the reader of sources ask:
//!
//! - What functions prove is used, whenever it was written; what they refute is not.
//! - What they tell nothing of is used if it was there when the recording ended, or came with it, or was named by the user. But not
//!   where the text that ran was given to `eval`, and only said to be of that file: servers of Vite make other texts of files.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::utf16::Lines;
use super::written_name::{is_head, written_name};
use crate::runtimes::names::script_path;

/// What functions tell of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// It ran.
    Yes,
    /// Another text ran.
    No,
    /// No function is recorded of it.
    Unknown,
}

/// Line and column (from 1) where a function begins, and the runtime's word for it.
type Head = (u32, u32, Box<str>);

/// The functions that a recording has of scripts, by their paths.
#[derive(Default, Debug)]
pub struct RanFunctions {
    of_script: FxHashMap<Box<str>, BTreeSet<Head>>,
    /// Scripts by what texts called themselves that `eval` was given.
    evaled: FxHashSet<Box<str>>,
}

impl RanFunctions {
    /// Adds a script of which `eval` was given a text.
    pub fn add_evaled(&mut self, script: &str) {
        let script = script_path(script);
        if !self.evaled.contains(&*script) {
            self.evaled.insert((*script).into());
        }
    }

    /// Adds a function. What runs a script, and code of classes that has no head, tell nothing.
    pub fn add(&mut self, script: &str, (line, column): (u32, u32), word: &str) {
        if (line, column) == (1, 1) || column == 0 || word.starts_with('<') {
            return;
        }
        let script = script_path(script);
        if !script.starts_with('/') {
            return;
        }
        let head = (line, column, word.into());
        match self.of_script.get_mut(&*script) {
            Some(known) => {
                known.insert(head);
            }
            None => {
                self.of_script
                    .insert((*script).into(), BTreeSet::from([head]));
            }
        }
    }

    /// Whether a text is that of the script of this path.
    #[must_use]
    pub fn judge(&self, script: &str, text: &[u8]) -> Ran {
        /// Functions that are looked at; bundles have tens of thousands.
        const MOST: usize = 1000;
        /// Of ten functions that have to be there.
        const ENOUGH: usize = 9;
        let Some(heads) = self.of_script.get(script) else {
            return if self.evaled.contains(script) {
                Ran::No
            } else {
                Ran::Unknown
            };
        };
        let text = as_v8_reads(text);
        let Some(lines) = Lines::of(&text) else {
            return Ran::Unknown;
        };
        let step = heads.len().div_ceil(MOST);
        let (mut all, mut there) = (0, 0);
        for (line, column, word) in heads.iter().step_by(step) {
            let place = (line - 1, column - 1);
            let at = lines.byte_of(&text, place);
            all += 1;
            there += usize::from(at.is_some_and(|at| has_function(&text, at, word)));
        }
        if there > 0 && there * 10 >= all * ENOUGH {
            Ran::Yes
        } else {
            Ran::No
        }
    }
}

/// Whether a function of that word begins here. Words that runtimes infer have more in front: `exports.work`.
fn has_function(text: &str, at: usize, word: &str) -> bool {
    if !is_head(text, at) {
        return false;
    }
    written_name(text, at).is_none_or(|name| {
        let before = word.strip_suffix(name);
        word.is_empty()
            || before.is_some_and(|before| before.is_empty() || before.ends_with(['.', ' ']))
    })
}

/// A text with ends of lines where V8 has them, and units of UTF-16 that it counts.
fn as_v8_reads(text: &[u8]) -> String {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let text = String::from_utf8_lossy(text).into_owned();
    if !text.contains(['\r', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let plain = text.replace(['\u{2028}', '\u{2029}'], "\n");
    let mut next = plain.chars().skip(1).chain([' ']);
    let line_end = |c: char| match (c, next.next()) {
        ('\r', Some('\n')) => ' ',
        ('\r', _) => '\n',
        _ => c,
    };
    plain.chars().map(line_end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str, functions: &[(u32, u32, &str)]) -> Ran {
        let mut ran = RanFunctions::default();
        for (line, column, word) in functions {
            ran.add("file:///app/a.js", (*line, *column), word);
        }
        ran.judge("/app/a.js", text.as_bytes())
    }

    /// Places as node 20 told them.
    #[test]
    fn functions_of_all_kinds_have_heads() {
        let text = "\
class A { x = 1; get size() { return 1; } #p(a) { return a; } run(a) { return this.#p(a); } static s(a){return a} }
class B extends A { }
class C { constructor(a) { this.a = a; } async go(x) { return x; } *gen() { yield 1; } ['comp' + 1](q) { return q; } }
const arrow = a => a + 1;
const as = async (a) => a;
const as2 = async a => a;
const o = { f: function (a) { return a; }, g: (a) => a };
Array.prototype.zz = function (a) { return a; };
(function (a) { return a; })(1);
";
        let functions = [
            (1, 26, "get size"),
            (1, 45, "#p"),
            (1, 66, "run"),
            (1, 101, "s"),
            (1, 1, "A"),
            (1, 1, "<instance_members_initializer>"),
            (2, 1, "B"),
            (3, 22, "C"),
            (3, 50, "go"),
            (3, 72, "gen"),
            (3, 100, ""),
            (4, 15, "arrow"),
            (5, 12, "as"),
            (6, 13, "as2"),
            (7, 25, "f"),
            (7, 47, "g"),
            (8, 31, "Array.zz"),
            (9, 11, ""),
        ];
        for function in functions {
            let told = function.0 != 1 || function.1 != 1;
            let want = if told { Ran::Yes } else { Ran::Unknown };
            assert_eq!(judge(text, &[function]), want, "{function:?}");
        }
        assert_eq!(judge(text, &functions), Ran::Yes);
    }

    #[test]
    fn another_text_has_other_functions_there() {
        let (old, new) = (
            "function betaLoop(n){return n}\n",
            "function deltaLoop(n){return n}\n",
        );
        assert_eq!(judge(old, &[(1, 18, "betaLoop")]), Ran::Yes);
        assert_eq!(judge(new, &[(1, 19, "betaLoop")]), Ran::No);
        assert_eq!(judge(new, &[(1, 18, "betaLoop")]), Ran::No);
        assert_eq!(judge("if (a) { b(c) }", &[(1, 11, "f")]), Ran::No);
        assert_eq!(judge("short", &[(1, 392, "f")]), Ran::No);
        assert_eq!(judge(old, &[]), Ran::Unknown);
        // What was added behind all that ran changes nothing.
        let more = format!("{old}{new}");
        assert_eq!(judge(&more, &[(1, 18, "betaLoop")]), Ran::Yes);
        // One of two is not enough.
        let both = [(1, 18, "betaLoop"), (2, 18, "gammaLoop")];
        assert_eq!(judge(&more, &both), Ran::No);
    }

    /// What stands around the text that a server made has a place where nothing can be told.
    #[test]
    fn texts_that_eval_was_given_need_a_proof() {
        let text = "function f(n) {return n}\n";
        let mut ran = RanFunctions::default();
        ran.add_evaled("file:///app/a.js");
        ran.add("/app/a.js", (1, 1), "");
        assert_eq!(ran.judge("/app/a.js", text.as_bytes()), Ran::No);
        assert_eq!(ran.judge("/app/b.js", text.as_bytes()), Ran::Unknown);
        ran.add("/app/a.js", (1, 11), "f");
        assert_eq!(ran.judge("/app/a.js", text.as_bytes()), Ran::Yes);
        let lines_in_front = format!("// made by a server\n{text}");
        let judged = ran.judge("/app/a.js", lines_in_front.as_bytes());
        assert_eq!(judged, Ran::No);
    }

    #[test]
    fn lines_end_where_v8_has_their_ends() {
        let head = (2, 11, "f");
        for end in ["\n", "\r\n", "\r", "\u{2028}", "\u{2029}"] {
            let text = format!("\u{feff}var é = '𝒳';{end}function f(a) {{ }}\n");
            assert_eq!(judge(&text, &[head]), Ran::Yes, "{end:?}");
        }
    }
}
