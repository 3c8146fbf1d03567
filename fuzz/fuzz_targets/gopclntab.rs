//! A Go program's table of functions of any bytes, asked for everything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pjit::dso::go::probe(bytes));
