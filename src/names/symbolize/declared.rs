//! Where debug information says that a function is defined.

use std::sync::Arc;

/// A place in the sources as debug information has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) path: Arc<str>,
    pub(super) line: u32,
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
