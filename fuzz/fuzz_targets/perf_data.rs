//! A recording of any bytes, through the whole program.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pjit_fuzz::run(bytes);
});
