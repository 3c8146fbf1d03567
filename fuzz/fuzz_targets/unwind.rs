//! Unwinding with the call frame information of any bytes, over a stack of any words. The last kilobyte is the stack.
#![no_main]

use pjit_fuzz::{FILE_START, recording_of, registers, run, stack, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (file, words) = bytes.split_at(bytes.len().saturating_sub(1024));
    write("symfs/fuzzed", file);
    let stack = stack(words);
    let users: Vec<_> = (0..16)
        .map(|i| {
            let ip = FILE_START + 0x1000 + i * 0x123;
            (ip, registers(ip, stack.len()), &stack[..])
        })
        .collect();
    run(&recording_of(&users));
});
