//! Foreign names made safe: nothing out of a recording reaches a terminal as a control character.
//!
//! Control characters could move the cursor or start escape sequences; marks that change the direction of what
//! follows could show one name as another, and so could characters that nobody sees, which also tell a program that reads along
//! something else than a person.

use std::borrow::Cow;

use crate::unseen::is_unseen;

/// The text with every control character (C0, C1, DEL), direction mark and invisible character as `\xNN` or `\xNNNN`, other
/// text untouched.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) {
            safe.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// The same for bytes; those that are not UTF-8 become `\xNN` each.
#[must_use]
pub fn harmless_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return harmless(text);
    }
    let mut safe = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        safe.push_str(&harmless(chunk.valid()));
        for byte in chunk.invalid() {
            safe.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(safe)
}

/// The same for payloads of tracepoints, whose formats have tabs between columns.
#[must_use]
pub fn harmless_payload(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return harmless(text);
    }
    let parts: Vec<Cow<'_, str>> = text.split('\t').map(harmless).collect();
    Cow::Owned(parts.join("\t"))
}

/// The text as SVG and HTML have it, between tags and in attributes with double quotes.
#[must_use]
pub fn markup(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"']) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Whether it is ASCII that a terminal shows, as most names are: one pass over the bytes tells, without a branch for each.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = |so_far: bool, byte: u8| so_far & (0x20..0x7f).contains(&byte);
    text.bytes().fold(true, plain)
}

/// Whether a terminal does something else with the character than show it.
pub(super) fn acts(c: char) -> bool {
    c.is_control() || is_unseen(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(harmless("a\x1b[31m\n\u{9b}b"), "a\\x1b[31m\\x0a\\x9bb");
        assert_eq!(harmless_bytes(b"\xffJS:\x1b\xc3\xa4"), "\\xffJS:\\x1bä");
        assert_eq!(harmless_payload("a\t\x1b\n"), "a\t\\x1b\\x0a");
        assert_eq!(harmless("wasm[0]::fib"), "wasm[0]::fib");
        assert_eq!(harmless("größe\u{202e}x"), "größe\\x202ex");
        assert_eq!(harmless("ma\u{200b}in\u{e0041}"), "ma\\x200bin\\xe0041");
        assert_eq!(harmless("日本語 ✓ é"), "日本語 ✓ é");
    }
}
