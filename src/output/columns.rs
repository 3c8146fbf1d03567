//! JSON of columns, piece by piece: what has a hundred thousand numbers is not made a tree of values first.

use std::fmt::Write;

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

/// Most numbers have one digit.
pub(super) fn number(number: u64, json: &mut String) {
    match u8::try_from(number) {
        Ok(digit @ 0..10) => json.push(char::from(b'0' + digit)),
        _ => {
            let _ = write!(json, "{number}");
        }
    }
}

/// A text in quotes.
pub(super) fn text(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
}
