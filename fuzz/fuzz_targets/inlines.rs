//! An ELF file with DWARF of any bytes: inlined functions and lines at many addresses.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pjit_fuzz::write("symfs/fuzzed", bytes);
    pjit_fuzz::resolve_all();
});
