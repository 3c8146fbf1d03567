//! Any text as a source of JavaScript: what a function is called that begins at any of its bytes.
#![no_main]

use pjit::symbolize::written_name;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for at in 0..=text.len() + 1 {
        if let Some(name) = written_name(&text, at) {
            assert!(!name.is_empty() && !name.chars().any(char::is_whitespace));
        }
    }
});
