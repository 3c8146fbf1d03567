//! Compressed records in a pipe stream: any bytes in sound frames, or, with an odd first byte, any bytes as frames.
#![no_main]

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// `PERF_RECORD_COMPRESSED`
const COMPRESSED: u32 = 81;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let mut stream = pjit_fuzz::stream_head();
    for piece in rest.chunks(usize::from(kind) * 64 + 64) {
        let payload = if kind & 1 == 0 {
            compress_to_vec(piece, CompressionLevel::Fastest)
        } else {
            piece.to_vec()
        };
        let Ok(size) = u16::try_from(payload.len() + 8) else {
            return;
        };
        stream.extend(COMPRESSED.to_le_bytes());
        stream.extend([0, 0]);
        stream.extend(size.to_le_bytes());
        stream.extend(payload);
    }
    pjit_fuzz::run(&stream);
});
