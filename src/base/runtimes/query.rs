//! What somebody typed for a function: one rule for all verbs.
//!
//! In: a text, and the names of functions. Out: how well they fit. Whatever a view prints can be typed: the name with its file
//! and line, also where a table cut it, the runtime's own text, the name alone, a part of it, or an expression. The first kind
//! that anything fits counts, so that `main` is the function and not all that contain the word.

use regex::{Regex, escape};

use super::names::CleanName;

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

    /// How a function fits, by its name as it is and cleaned, and by other names that tables print.
    #[must_use]
    pub fn fit(&self, raw: &str, clean: &CleanName, printed: &[&str]) -> Option<Fit> {
        if let Some(fit) = self.fit_printed(clean, printed) {
            return Some(fit);
        }
        let Self { text, pattern, .. } = self;
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
    pub fn fit_printed(&self, clean: &CleanName, printed: &[&str]) -> Option<Fit> {
        if printed.contains(&self.text.as_str()) {
            return Some(Fit::Printed);
        }
        let has_place = !clean.file.is_empty() || clean.line > 0;
        let forms = || {
            let placed = [CleanName::short, CleanName::with_column, CleanName::full];
            placed
                .into_iter()
                .filter(move |_| has_place)
                .map(|form| form(clean))
        };
        if forms().any(|form| form == self.text) {
            return Some(Fit::Printed);
        }
        let cut = self.cut.as_ref()?;
        let is_cut = printed.iter().any(|name| cut.is_match(name))
            || cut.is_match(&clean.name)
            || forms().any(|form| cut.is_match(&form));
        is_cut.then_some(Fit::Cut)
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
        Query::of(query).fit(raw, &CleanName::of(raw, producer), &[])
    }

    #[test]
    fn what_a_table_prints_finds_its_row() {
        let raw = "JS:*next_mangled /w/node_modules/terser/dist/bundle.min.js:13505:9";
        let v8 = Some(Producer::V8);
        for (query, wanted) in [
            ("next_mangled bundle.min.js:13505", Some(Fit::Printed)),
            ("next_mangled bundle.min.js:13505:9", Some(Fit::Printed)),
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
