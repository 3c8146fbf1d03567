//! Call frame information of any bytes for x86-64 and aarch64. The first byte chooses the machine and the section, the last kilobyte
//! is the stack.
#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../src/formats/dso/build_elf.rs"]
mod build_elf;

use build_elf::ElfBuilder;
use pjit_fuzz::{FILE_START, custom, recording_of, registers, run, stack, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let (tables, words) = rest.split_at(rest.len().saturating_sub(1024));
    let stack = stack(words);
    let arm = kind & 1 != 0;
    let mut elf = ElfBuilder::without_text(if arm { 183 } else { 62 }, 3);
    elf.segment(0, 0, 0x20_0000, 5);
    elf.section_at(".text", 1, 6, 0x1000, 0x1000, words.repeat(4));
    let mut tables = custom::parts(tables);
    let mut next = || tables.next().unwrap_or_default().to_vec();
    match kind >> 1 & 3 {
        0 => _ = elf.section_at(".debug_frame", 1, 0, 0, 0x3000, next()),
        1 => {
            elf.section_at(".eh_frame", 1, 2, 0x13000, 0x3000, next());
            elf.section_at(".eh_frame_hdr", 1, 2, 0x33000, 0x23000, next());
        }
        _ => _ = elf.section_at(".eh_frame", 1, 2, 0x3000, 0x3000, next()),
    }
    write("symfs/fuzzed", &elf.build());
    let ips = (0..16).map(|i| FILE_START + 0x1000 + i * 0x123);
    if arm {
        run(&custom::aarch64(ips, &stack));
    } else {
        let users: Vec<_> = ips
            .map(|ip| (ip, registers(ip, stack.len()), &stack[..]))
            .collect();
        run(&recording_of(&users));
    }
});
