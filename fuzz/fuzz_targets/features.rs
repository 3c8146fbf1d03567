//! Header sections of any bytes, each with the number of its feature in front; all are printed.
#![no_main]

use pjit_fuzz::custom::{self, Attributes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let features: Vec<_> = custom::parts(bytes)
        .filter_map(|part| part.split_first())
        .map(|(&id, section)| (u32::from(id & 63), section.to_vec()))
        .collect();
    let sample = custom::record(9, 2, &0x1000u64.to_le_bytes()).expect("it is short");
    let attributes = Attributes {
        sample_type: 1,
        ..Attributes::default()
    };
    pjit_fuzz::run_header(&custom::file(&attributes, &sample, &features));
});
