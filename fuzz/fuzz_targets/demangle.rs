//! Names of any bytes: C++, Rust, Java, OCaml, Haskell.
#![no_main]

use pjit::dso::NameStyle;
use pjit::dso::demangle::demangle;
use pjit::dso::haskell;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for style in [NameStyle::Short, NameStyle::Full] {
        let _ = demangle(bytes, style).len();
    }
    if let Some(name) = haskell::decode(bytes) {
        assert!(!name.contains(char::is_control));
    }
});
