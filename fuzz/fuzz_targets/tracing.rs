//! Descriptions of tracepoints: with an even first byte a format of any text and payloads for it, else a TRACING_DATA section of
//! any bytes. The last 256 bytes are the payload.
#![no_main]

use pjit_fuzz::custom::{self, Attributes, TRACING_DATA};

/// What precedes and follows the format of the one tracepoint.
fn section(format: &[u8]) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0header_page\0\0\0\0\0\0\0\0\0header_event\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend(0u32.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(b"sys\0\x01\0\0\0");
    let format = [b"name: fuzzed\nID: 7\n", format].concat();
    out.extend((format.len() as u64).to_le_bytes());
    out.extend(format);
    out.extend(0u32.to_le_bytes());
    let strings = b"0x1000 : \"string\"\n";
    out.extend((strings.len() as u32).to_le_bytes());
    out.extend(strings);
    out
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let (text, payload) = rest.split_at(rest.len().saturating_sub(256));
    let section = if kind & 1 == 0 {
        section(text)
    } else {
        text.to_vec()
    };
    let mut body = 0x1000u64.to_le_bytes().to_vec();
    body.extend((payload.len() as u32).to_le_bytes());
    body.extend(payload);
    let Some(sample) = custom::record(9, 1, &body) else {
        return;
    };
    // Tracepoint 7; IP and RAW.
    let attributes = Attributes {
        kind: 2,
        config: 7,
        sample_type: 1 | 1 << 10,
        ..Attributes::default()
    };
    pjit_fuzz::run_script(&custom::file(
        &attributes,
        &sample,
        &[(TRACING_DATA, section)],
    ));
});
