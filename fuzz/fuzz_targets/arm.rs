//! Tables and code of 32-bit ARM of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pjit::unwind::probe_arm(bytes));
