//! Foreign names made safe: nothing out of a recording reaches a terminal as a control character.

use std::borrow::Cow;

/// The text with every control character (C0, C1, DEL) as `\xNN` or `\u{NN}`, other text untouched.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            safe.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(harmless("a\x1b[31m\n\u{9b}b"), "a\\x1b[31m\\x0a\\x9bb");
        assert_eq!(harmless("wasm[0]::fib"), "wasm[0]::fib");
    }
}
