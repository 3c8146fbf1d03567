//! The place in the sources that some runtimes write into the names of their functions.
//!
//! In: the name of a piece of JIT code. Out: file, line and column, if it has them, and where they stand in the name.

use std::ops::Range;

/// A place out of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamePlace {
    /// Where the function's word stands in the name; empty if it has none.
    pub word: Range<usize>,
    /// Where the file stands in the name.
    pub file: Range<usize>,
    /// Line from 1.
    pub line: u32,
    /// Column from 1; 0 if there is none.
    pub column: u32,
    /// Where all of it stands in the name.
    pub all: Range<usize>,
}

/// Where a name tells line and column and no file: of code that was made of a text without a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fileless {
    /// Where the function's word begins, behind what tells what compiled it.
    pub word: usize,
    /// Where the file would stand.
    pub file: usize,
    /// Line from 1.
    pub line: u32,
    /// Column from 1.
    pub column: u32,
}

/// A number behind the last colon, and what stands before it.
pub(super) fn number(text: &[u8]) -> Option<(&[u8], u32)> {
    let colon = memchr::memrchr(b':', text)?;
    let digits = std::str::from_utf8(&text[colon + 1..]).ok()?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((&text[..colon], digits.parse().ok().filter(|_| all_digits)?))
}

#[cfg(test)]
mod tests {
    use crate::runtimes::Producer;

    fn shown(name: &str) -> Option<(&str, u32, u32)> {
        let place = (Producer::Unknown.row().place)(name.as_bytes())?;
        Some((&name[place.file], place.line, place.column))
    }

    #[test]
    fn names_of_v8_end_with_their_place() {
        assert_eq!(
            shown("JS:*fib /app/hot.js:3:19"),
            Some(("/app/hot.js", 3, 19))
        );
        assert_eq!(
            shown("JS:~ /app/hot.js:11:56"),
            Some(("/app/hot.js", 11, 56))
        );
        assert_eq!(
            shown("JS:^get size /a b/c.js:1:2"),
            Some(("/a b/c.js", 1, 2))
        );
        assert_eq!(
            shown("JS:~x file:///app/m.mjs:7:1"),
            Some(("file:///app/m.mjs", 7, 1))
        );
        assert_eq!(
            shown("JS:~emit node:events:468:44"),
            Some(("node:events", 468, 44))
        );
        assert_eq!(
            shown("Script:~ /app/hot.js:1:1"),
            Some(("/app/hot.js", 1, 1))
        );
        for other in [
            "JS:*fib",
            "JS:*",
            "JS:*f :1:2",
            "Builtin:ArrayMap",
            "JS:~a b:x:1",
            "JS:~ :1",
        ] {
            assert_eq!(shown(other), None, "{other}");
        }
    }

    #[test]
    fn closures_of_php_are_named_by_their_place() {
        let name = "TRACE-3${closure:/app/hot.php:12}$14";
        assert_eq!(shown(name), Some(("/app/hot.php", 12, 0)));
        assert_eq!(shown("JIT$mandel"), None);
        assert_eq!(shown("JIT${closure:/app/hot.php}"), None);
    }
}
