//! A pipe stream (saved to a file) of any records, through the whole program.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pjit_fuzz::run(&pjit_fuzz::stream_of(bytes));
});
