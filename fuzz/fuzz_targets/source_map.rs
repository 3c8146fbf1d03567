//! A source map of any bytes, alone and with a script: what it says of any place, and the sources that it brings along.
#![no_main]

use pjit::symbolize::SourceMaps;

const SCRIPT: &str = "/app/dist/app.js";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first two bytes say where the map ends and the script begins.
    let whole = SourceMaps::of_map(SCRIPT, None, bytes);
    let split = bytes.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::from(u16::from_le_bytes(*length));
        let (map, text) = rest.split_at_checked(length)?;
        SourceMaps::of_map(SCRIPT, Some(text), map)
    });
    for maps in [whole, split].into_iter().flatten() {
        for line in [0, 1, 2, 17, u32::MAX] {
            for column in [0, 1, 40, u32::MAX] {
                if let Some(place) = maps.original(SCRIPT, line, column) {
                    assert!(place.line > 0 && place.column > 0);
                    let _ = maps.content(&place.file);
                    let function = maps.function(SCRIPT, line, column);
                    assert_eq!(function.map(|of| of.place), Some(place));
                }
            }
        }
    }
});
