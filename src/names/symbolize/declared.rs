//! Where debug information says that a function is defined.

use std::sync::Arc;

/// A place in the sources as debug information has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Declared {
    pub(super) path: Arc<str>,
    pub(super) line: u32,
    pub(super) mark: Mark,
}

/// The file and the lines that code of a function was met in, where debug information does not say where it is defined: rustc's and
/// clang's `line-tables-only`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) path: Arc<str>,
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Body {
    /// With one more line, which may be in the file of another function that a macro has it from.
    pub(super) fn meet(known: &mut Option<Self>, path: &Arc<str>, line: u32) {
        match known {
            None => {
                *known = Some(Self {
                    path: Arc::clone(path),
                    first: line,
                    last: line,
                });
            }
            Some(known) if known.path == *path => {
                known.first = known.first.min(line);
                known.last = known.last.max(line);
            }
            Some(_) => {}
        }
    }
}

/// What tells a function from others of its name on its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// Nothing that is known.
    #[default]
    Nothing,
    /// The column of its name, or of the type that a lambda is of.
    Column(u32),
    /// Which closure of Rust it is of those of the function around it, from 0.
    Closure(u32),
}

impl Mark {
    /// Whether it says that two functions of one line are two.
    #[must_use]
    pub fn differs(self, other: Self) -> bool {
        self != other && self != Self::Nothing && other != Self::Nothing
    }

    /// Of a function by its plain name in debug information, and its column.
    pub(super) fn of(plain: Option<&[u8]>, column: u32) -> Self {
        let closure = plain.and_then(|name| name.strip_prefix(b"{closure#"));
        let closure = closure.and_then(|rest| {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
            std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
        });
        match (closure, column) {
            (Some(number), _) => Self::Closure(number),
            (None, 0) => Self::Nothing,
            (None, column) => Self::Column(column),
        }
    }
}

impl std::fmt::Display for Mark {
    /// As it stands behind a line.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Column(column) => write!(out, ":{column}"),
            Self::Closure(number) => write!(out, "#{number}"),
        }
    }
}

/// A path without `.` and `..`, by which units differ that include one header.
pub(super) fn normal(path: &str) -> String {
    if !path.contains("/.") {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts
                .last()
                .is_some_and(|last| !last.is_empty() && *last != "..") =>
            {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_one_file_however_they_are_included() {
        for (path, expected) in [
            ("/w/src/../include/x.h", "/w/include/x.h"),
            ("/w/./x.c", "/w/x.c"),
            ("../x.c", "../x.c"),
            ("/../x.c", "/../x.c"),
            ("/w/.hidden/x..c", "/w/.hidden/x..c"),
        ] {
            assert_eq!(normal(path), expected);
        }
    }
}
