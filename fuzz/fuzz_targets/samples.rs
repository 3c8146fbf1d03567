//! Records of any bytes under attributes of any bytes: what samples hold, branches and their call stacks, groups of counters.
#![no_main]

use pjit_fuzz::custom::{self, Attributes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<24>() else {
        return;
    };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let attributes = Attributes {
        kind: 1,
        config: 0,
        sample_type: u64::from(word(0)),
        read_format: u64::from(word(4)),
        branch_sample_type: u64::from(word(8)),
        sample_regs_user: u64::from(word(12)) << (word(16) & 31),
        sample_regs_intr: u64::from(word(20)),
    };
    let mut records = custom::mapping();
    for part in custom::parts(rest) {
        let Some((&kind, body)) = part.split_first() else {
            continue;
        };
        // Most of them samples.
        let number = if kind >= 0x40 { 9 } else { u32::from(kind) };
        records.extend(custom::record(number, u16::from(kind & 7), body).unwrap_or_default());
    }
    pjit_fuzz::run_script(&custom::file(&attributes, &records, &[]));
});
