//! A perf map of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = pjit::jitdump::perfmap::parse(bytes);
});
