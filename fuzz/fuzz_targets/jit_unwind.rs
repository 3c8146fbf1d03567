//! JIT code of a dump of any bytes, found and unwound through the whole program. The last kilobyte is the stack.
#![no_main]

use pjit_fuzz::{JIT_START, PID, adopted, recording_of, registers, run, stack, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (dump, words) = bytes.split_at(bytes.len().saturating_sub(1024));
    write(&format!("jit-{PID}.dump"), &adopted(dump));
    let stack = stack(words);
    let users: Vec<_> = (0..32)
        .map(|i| {
            let ip = JIT_START + i * 0x41;
            (ip, registers(ip, stack.len()), &stack[..])
        })
        .collect();
    run(&recording_of(&users));
});
