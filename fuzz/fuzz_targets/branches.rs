//! Samples with branches and accesses to memory, of any bytes: all rows, keys and columns that there are of them, and a summary.
#![no_main]

use pjit_fuzz::custom::{self, Attributes};
use pjit_fuzz::{FILE_START, PID};

/// IP, TID, TIME, ADDR, BRANCH_STACK, DATA_SRC.
const SAMPLE: u64 = 1 | 2 | 4 | 8 | 1 << 11 | 1 << 15;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let bit = |number: u32| u64::from(kind >> number & 1);
    let attributes = Attributes {
        kind: 4,
        // WEIGHT or WEIGHT_STRUCT.
        sample_type: SAMPLE | if bit(0) == 1 { 1 << 24 } else { 1 << 14 },
        // Branches are calls, have an index, or counters.
        branch_sample_type: bit(1) << 11 | bit(2) << 17 | bit(3) << 19 | 1,
        ..Attributes::default()
    };
    let mut records = custom::mapping();
    for (number, part) in (0_u64..).zip(custom::parts(rest)) {
        let mut body = (FILE_START + number).to_le_bytes().to_vec();
        body.extend([PID.to_le_bytes(), PID.to_le_bytes()].concat());
        body.extend((1_000 + number).to_le_bytes());
        // Address of data, number of branches, branches, weight, source of data.
        body.extend(part);
        records.extend(custom::record(9, 2, &body).unwrap_or_default());
    }
    let recording = custom::file(&attributes, &records, &[]);
    pjit_fuzz::run_report(&recording);
    pjit_fuzz::run_script(&recording);
    pjit_fuzz::run_summary(&recording);
});
