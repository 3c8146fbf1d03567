//! Names of any bytes: C++, Rust, Java, OCaml, Haskell, Nim, D.
#![no_main]

use pjit::dso::NameStyle;
use pjit::dso::demangle::demangle;
use pjit::dso::{d_names, haskell, nim};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for style in [NameStyle::Short, NameStyle::Full] {
        let _ = demangle(bytes, style).len();
    }
    // Arguments of templates may be any text.
    let _ = d_names::parameters(bytes);
    for decode in [d_names::decode, haskell::decode, nim::decode] {
        if let Some(name) = decode(bytes) {
            assert!(!name.contains(char::is_control));
        }
    }
});
