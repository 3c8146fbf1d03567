//! JSON of columns, piece by piece: what has a hundred thousand numbers is not made a tree of values first.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes what there is so far, and goes on with nothing.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn hand_over(json: &mut String, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(json.as_bytes())?;
    json.clear();
    Ok(())
}

/// A list, one item after the other.
pub(super) fn list<T>(
    json: &mut String,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(T, &mut String),
) {
    json.push('[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        push(item, json);
    }
    json.push(']');
}

/// A list that is written bit by bit.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn long_list<T>(
    json: &mut String,
    items: impl IntoIterator<Item = T>,
    out: &mut dyn Write,
    mut push: impl FnMut(T, &mut String),
) -> io::Result<()> {
    const LARGE: usize = 32 << 10;
    json.push('[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        push(item, json);
        if json.len() > LARGE {
            hand_over(json, out)?;
        }
    }
    json.push(']');
    Ok(())
}

/// Most numbers have one digit.
pub(super) fn number(number: u64, json: &mut String) {
    match u32::try_from(number) {
        Ok(digit @ 0..10) => json.push(char::from(b'0' + digit as u8)),
        Ok(short) => json.push_str(itoa::Buffer::new().format(short)),
        Err(_) => json.push_str(itoa::Buffer::new().format(number)),
    }
}

/// A text in quotes.
pub(super) fn text(text: &str, json: &mut String) {
    json.push('"');
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        json.push_str(text);
    } else {
        text.chars().for_each(|c| push_char(c, json));
    }
    json.push('"');
}

fn push_char(c: char, json: &mut String) {
    match c {
        '"' => json.push_str("\\\""),
        '\\' => json.push_str("\\\\"),
        c if u32::from(c) < 0x20 => {
            let _ = write!(json, "\\u{:04x}", u32::from(c));
        }
        c => json.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_those_of_json() {
        let numbers = [0, 9, 10, 99_999_999, 100_000_000, u64::MAX];
        for expected in numbers {
            let mut json = String::new();
            number(expected, &mut json);
            assert_eq!(json, expected.to_string());
        }
        for expected in ["", "größe", "a\"b\\c\n\u{0}\u{1f}", "\u{7f}</script>"] {
            let mut json = String::new();
            text(expected, &mut json);
            let read: String = serde_json::from_str(&json).expect("a text");
            assert_eq!(read, expected);
        }
    }
}
