//! What somebody typed for a function: one rule for all verbs.
//!
//! In: a text, and the names of functions. Out: how well they fit. Whatever a view prints can be typed: the name with its file
//! and line, also where a table cut it, the runtime's own text, the name alone, a part of it, or an expression. The first kind
//! that anything fits counts, so that `main` is the function and not all that contain the word.

use regex::{Regex, escape};

use super::names::CleanName;
use super::tails::tail;
use crate::unseen::is_unseen;

/// How a name fits, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// As a table prints it.
    Printed,
    /// The same where the text has a gap: `ScavengeOb...<…>`.
    Cut,
    /// As the runtime or the compiler wrote it.
    Raw,
    /// Without file and line.
    Name,
    /// The text stands in it.
    Part,
    /// The expression finds it.
    Pattern,
}

/// A text that was typed for a function.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    /// With characters in place of what stands for them where names are printed.
    name: String,
    cut: Option<Regex>,
    /// What is wrong with it, if it is no expression.
    pattern: Result<Regex, String>,
}

impl Query {
    /// Understands a text. Each text is one: what is no expression is a name.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let pattern = Regex::new(text).map_err(|error| {
            let error = error.to_string();
            error.lines().last().unwrap_or_default().to_owned()
        });
        Self {
            text: text.to_owned(),
            name: with_characters(text),
            cut: cut(text),
            pattern,
        }
    }

    /// As it was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is wrong with it as an expression.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.pattern.as_ref().err().map(String::as_str)
    }

    /// How a function fits, by its name as it is and cleaned, by what else is known of it, and by other names that tables print.
    #[must_use]
    pub fn fit(&self, raw: &str, clean: &CleanName, more: &More<'_>) -> Option<Fit> {
        if let Some(fit) = self.fit_printed(clean, more) {
            return Some(fit);
        }
        let Self {
            name: text,
            pattern,
            ..
        } = self;
        if raw == text {
            return Some(Fit::Raw);
        }
        if clean.name == *text {
            return Some(Fit::Name);
        }
        // A dot alone is an expression.
        let is_word = text.contains(char::is_alphanumeric);
        let is_part = |name: &str| is_word && name.contains(text.as_str());
        if is_part(&clean.name) || is_part(raw) {
            return Some(Fit::Part);
        }
        let pattern = pattern.as_ref().ok()?;
        let is_found = pattern.is_match(&clean.name) || pattern.is_match(raw);
        is_found.then_some(Fit::Pattern)
    }

    /// The same for names as tables print them, whole or cut, and for nothing else.
    #[must_use]
    pub fn fit_printed(&self, clean: &CleanName, more: &More<'_>) -> Option<Fit> {
        let text = self.name.as_str();
        if more.printed.contains(&text) || more.is_printed(clean, text) {
            return Some(Fit::Printed);
        }
        let cut = self.cut.as_ref()?;
        let is_cut = more.printed.iter().any(|name| cut.is_match(name))
            || cut.is_match(&clean.name)
            || more.forms(clean).iter().any(|form| cut.is_match(form));
        is_cut.then_some(Fit::Cut)
    }

    /// Whether it may say more than a name does: a file, parameters, a folder, a hash.
    #[must_use]
    pub fn says_more(&self) -> bool {
        let hash = self.text.rsplit_once("}}::h").map(|(_, hash)| hash);
        let is_hashed = hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        self.text.contains(' ') || self.text.ends_with(')') || is_hashed
    }
}

/// The text with the characters that `\x0a` and `\x202e` stand for where names are printed: those that a terminal does not show.
fn with_characters(text: &str) -> String {
    let mut parts = text.split("\\x");
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = (2..=5).find_map(|digits| {
            let (digits, rest) = part.split_at_checked(digits)?;
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            (c.is_control() || is_unseen(c)).then_some((c, rest))
        });
        match found {
            Some((c, rest)) => name.extend([c.encode_utf8(&mut [0; 4]), rest]),
            None => name.extend(["\\x", part]),
        }
    }
    name
}

/// What is known of a function besides its name, and by which names tables print it.
#[derive(Debug, Clone, Copy, Default)]
pub struct More<'n> {
    /// Parameters.
    pub parameters: Option<&'n str>,
    /// Source file and line, where the name tells none.
    pub place: Option<(&'n str, u32)>,
    /// Which it is of those of its name: ` (2 of 3)`, `::h4c86a0`.
    pub order: Option<&'n str>,
    /// The folder of its object.
    pub folder: Option<&'n str>,
    /// What tables print.
    pub printed: &'n [&'n str],
}

impl More<'_> {
    /// Whether it is the name with a part of what is known, in the order in which tables have it: `f(int) a/x.c:12 in /opt`. Of a
    /// path the end will do.
    fn is_printed(&self, clean: &CleanName, text: &str) -> bool {
        let Some(rest) = text
            .strip_prefix(clean.name.as_str())
            .filter(|rest| !rest.is_empty())
        else {
            return false;
        };
        let without = |left: &mut &str, begins: bool, part: Option<&str>| {
            let part = part.filter(|part| !part.is_empty());
            let cut = part.and_then(|part| {
                if begins {
                    left.strip_prefix(part)
                } else {
                    left.strip_suffix(part)
                }
            });
            *left = cut.unwrap_or(left);
            cut.is_some()
        };
        let mut rest = rest;
        without(&mut rest, true, self.parameters);
        let mut shorter = rest;
        if without(&mut shorter, false, self.folder) && without(&mut shorter, false, Some(" in ")) {
            rest = shorter;
        }
        without(&mut rest, false, self.order);
        let (file, line) = match clean {
            CleanName { file, line: 0, .. } if file.is_empty() => self.place.unwrap_or_default(),
            CleanName { file, line, .. } => (file.as_str(), *line),
        };
        if line > 0 && !rest.is_empty() {
            let column = format!(":{}", clean.column);
            let lined = format!(":{line}");
            let mut end = rest;
            let has_column = without(&mut end, false, Some(&column));
            if has_column && without(&mut end, false, Some(&lined)) {
                rest = end;
            } else if !without(&mut rest, false, Some(&lined)) {
                return false;
            }
        }
        if rest.is_empty() {
            // The line stands behind the file.
            return line == 0 || file.is_empty() || !text.ends_with(&format!(":{line}"));
        }
        let Some(end) = rest.strip_prefix(' ').filter(|end| !end.is_empty()) else {
            return false;
        };
        let before = file.strip_suffix(end);
        before.is_some_and(|before| {
            before.is_empty() || before.ends_with('/') || end.starts_with('/')
        })
    }

    /// How tables may print it, with as much of the path as may be.
    fn forms(&self, clean: &CleanName) -> Vec<String> {
        /// So many folders.
        const MOST: usize = 32;
        let (file, place) = match clean {
            CleanName { file, line: 0, .. } if file.is_empty() => {
                let (given, line) = self.place.unwrap_or_default();
                let text = if line > 0 {
                    format!(":{line}")
                } else {
                    String::new()
                };
                (given, text)
            }
            clean => {
                let full = clean.full();
                let at = clean.name.len() + usize::from(!clean.file.is_empty()) + clean.file.len();
                (clean.file.as_str(), full[at..].to_owned())
            }
        };
        let without_column = match clean.column {
            0 => None,
            _ => place.rsplit_once(':').map(|(line, _)| line.to_owned()),
        };
        let order = self.order.unwrap_or_default();
        let places: Vec<String> = [Some(place), without_column]
            .into_iter()
            .flatten()
            .collect();
        let mut names = vec![clean.name.clone()];
        names.extend(self.parameters.map(|of| format!("{}{of}", clean.name)));
        let mut forms = Vec::new();
        for name in names {
            forms.push(format!("{name}{order}"));
            for position in &places {
                if file.is_empty() {
                    forms.push(format!("{name}{position}{order}"));
                    continue;
                }
                let mut shown = "";
                for count in 1..=MOST {
                    let end = tail(file, count);
                    if end == shown {
                        break;
                    }
                    shown = end;
                    forms.push(format!("{name} {end}{position}{order}"));
                }
            }
            forms.push(name);
        }
        forms
    }
}

/// The places at which the best fit is, and it; nothing where nothing fits.
#[must_use]
pub fn best<T: Copy>(fits: impl Iterator<Item = (T, Option<Fit>)>) -> Vec<T> {
    let mut found = Vec::new();
    let mut best = None;
    for (at, fit) in fits {
        let Some(fit) = fit else { continue };
        if best.is_none_or(|best| fit < best) {
            best = Some(fit);
            found.clear();
        }
        if best == Some(fit) {
            found.push(at);
        }
    }
    found
}

/// A text with gaps as an expression for what stood there.
fn cut(text: &str) -> Option<Regex> {
    let parts: Vec<String> = text.replace('…', "...").split("...").map(escape).collect();
    let letters: usize = parts.iter().map(String::len).sum();
    if parts.len() < 2 || letters == 0 {
        return None;
    }
    Regex::new(&format!("^(?s:{})$", parts.join(".+"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Producer;

    fn fit(query: &str, raw: &str, producer: Option<Producer>) -> Option<Fit> {
        Query::of(query).fit(raw, &CleanName::of(raw, producer), &More::default())
    }

    #[test]
    fn what_a_table_prints_finds_its_row() {
        let raw = "JS:*next_mangled /w/node_modules/terser/dist/bundle.min.js:13505:9";
        let v8 = Some(Producer::V8);
        for (query, wanted) in [
            ("next_mangled bundle.min.js:13505", Some(Fit::Printed)),
            ("next_mangled bundle.min.js:13505:9", Some(Fit::Printed)),
            ("next_mangled dist/bundle.min.js:13505", Some(Fit::Printed)),
            ("next_mangled ist/bundle.min.js:13505", None),
            (
                "next_mangled /w/node_modules/terser/dist/bundle.min.js:13505:9",
                Some(Fit::Printed),
            ),
            ("next_mangled bundle.min.js", None),
            ("next_mangled:13505", None),
            ("next_mangled terser/...n.js:13505", Some(Fit::Cut)),
            ("next_mangled...n.js:13505", Some(Fit::Cut)),
            ("next_mangled…13505", Some(Fit::Cut)),
            (raw, Some(Fit::Raw)),
            ("next_mangled", Some(Fit::Name)),
            ("mangled", Some(Fit::Part)),
            ("^next_.*d$", Some(Fit::Pattern)),
            ("next_mangled bundle.min.js:1350", None),
            ("...", Some(Fit::Pattern)),
        ] {
            assert_eq!(fit(query, raw, v8), wanted, "{query}");
        }
    }

    #[test]
    fn what_tells_namesakes_apart_can_be_typed() {
        let more = More {
            parameters: Some("(int)"),
            place: Some(("/w/a/x.c", 12)),
            folder: Some("/opt/old"),
            ..More::default()
        };
        let fit = |query: &str| Query::of(query).fit("work", &CleanName::plain("work"), &more);
        for query in [
            "work(int)",
            "work x.c:12",
            "work(int) a/x.c:12",
            "work /w/a/x.c:12 in /opt/old",
            "work(int) in /opt/old",
        ] {
            assert_eq!(fit(query), Some(Fit::Printed), "{query}");
        }
        for query in [
            "work(long)",
            "work x.c:13",
            "work x.c",
            "work b/x.c:12",
            "work in /opt",
        ] {
            assert_eq!(fit(query), None, "{query}");
        }
        assert_eq!(fit("work a...c:12"), Some(Fit::Cut));
        assert_eq!(fit("work"), Some(Fit::Raw));
        let second = More {
            order: Some(" (2 of 3)"),
            ..More::default()
        };
        let query = Query::of("work (2 of 3)");
        let clean = CleanName::plain("work");
        assert_eq!(query.fit("work", &clean, &second), Some(Fit::Printed));
    }

    #[test]
    fn characters_that_no_terminal_shows_are_typed_as_they_are_printed() {
        let raw = "new\nline{a,b}\u{202e}\\x41";
        let printed = "new\\x0aline{a,b}\\x202e\\x41";
        assert_eq!(fit(printed, raw, None), Some(Fit::Raw));
        assert_eq!(fit("new\\x0aline", raw, None), Some(Fit::Part));
        assert_eq!(fit("e\\x0", raw, None), None);
    }

    #[test]
    fn what_is_no_expression_is_a_name() {
        let raw = "github.com/x/y.(*ChunkBuilder).append";
        assert_eq!(
            fit("x/y.(*ChunkBuilder).append", raw, None),
            Some(Fit::Part)
        );
        assert_eq!(fit(raw, raw, None), Some(Fit::Raw));
        assert!(Query::of("x(*").problem().is_some());
        assert_eq!(fit("x(*", raw, None), None);
        let (one, other) = ((1, Some(Fit::Part)), (2, Some(Fit::Name)));
        assert_eq!(
            best([one, other, (3, None), (4, Some(Fit::Name))].into_iter()),
            [2, 4]
        );
    }
}
