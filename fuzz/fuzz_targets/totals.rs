//! Records of `perf stat record` with any bodies: counts, rounds, units, threads.
#![no_main]

use pjit_fuzz::custom::{self, Attributes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let attributes = Attributes {
        kind: 1,
        config: 1,
        sample_type: 0,
        read_format: 3,
        branch_sample_type: 0,
        sample_regs_user: 0,
        sample_regs_intr: 0,
    };
    let mut records = Vec::new();
    for part in custom::parts(bytes) {
        let Some((&kind, body)) = part.split_first() else {
            continue;
        };
        // From THREAD_MAP to EVENT_UPDATE.
        let number = 73 + u32::from(kind % 6);
        records.extend(custom::record(number, 0, body).unwrap_or_default());
    }
    pjit_fuzz::run_stat(&custom::file(&attributes, &records, &[]));
});
