//! DWARF sections of any bytes: inlined functions and lines at many addresses.
#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../src/formats/dso/build_elf.rs"]
mod build_elf;

use build_elf::ElfBuilder;
use pjit_fuzz::{custom, resolve_all, write};

/// In the order of the parts of the input.
const SECTIONS: [&str; 10] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_addr",
    ".debug_str_offsets",
    ".debug_aranges",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut elf = ElfBuilder::new(0x1000);
    for (name, data) in SECTIONS.into_iter().zip(custom::parts(bytes)) {
        elf.section(name, 1, data.to_vec());
    }
    elf.symbols(".symtab", &[("function", 0x2000, 0x1000, 0x12, 1)]);
    write("symfs/fuzzed", &elf.build());
    resolve_all();
});
