//! A jitdump of any bytes: records, line tables, unwinding records.
#![no_main]

use pjit::jitdump::debug_info::CodeOfLines;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(dump) = pjit::jitdump::dump::parse(bytes) else {
        return;
    };
    for load in &dump.loads {
        let code = CodeOfLines {
            address: load.address,
            size: load.size,
            name: load.name,
            producer: dump.producer,
        };
        let _ = load.lines.as_ref().map(|lines| lines.lines(&code).len());
        let _ = load.unwinding.as_ref().map(|u| {
            (
                u.resolve(load.address, load.size).is_some(),
                u.readable_eh_frame().len(),
            )
        });
    }
});
