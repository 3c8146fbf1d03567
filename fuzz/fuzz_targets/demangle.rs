//! Names of any bytes: C++, Rust, Java, OCaml.
#![no_main]

use pjit::dso::NameStyle;
use pjit::dso::demangle::demangle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for style in [NameStyle::Short, NameStyle::Full] {
        let _ = demangle(bytes, style).len();
    }
});
