//! A module of WebAssembly and what it was compiled to, of any bytes: maps, names, and the lines of all functions.
#![no_main]

use pjit::input::Store;
use pjit::symbolize::{Query, Site};
use pjit::wasm::WasmCode;
use pjit::wasm::addrmap::AddressMap;
use pjit::wasm::module::{FunctionIndex, WasmFile};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for version in [None, Some(46), Some(47)] {
        if let Some(map) = AddressMap::parse(bytes, version) {
            for offset in (0_u32..1 << 16).step_by(97) {
                let function = offset / 2..offset.saturating_mul(2);
                let _ = map.origin(offset, function, |since| since.start() % 2 == 0);
            }
        }
    }
    if let Some(file) = WasmFile::parse(bytes) {
        for module in &file.modules {
            let _ = (module.indices_by_name().len(), module.source_map_url());
            let _ = (
                module.function_name(FunctionIndex(7)),
                module.body(FunctionIndex(7)),
            );
        }
    }
    lines(bytes);
});

/// The first four bytes say where the compiled file ends and the module begins.
fn lines(bytes: &[u8]) -> Option<()> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (compiled, module) = rest.split_at_checked(length)?;
    let store = Store::new();
    // ELF headers are read where they are.
    let compiled = store.keep(compiled.to_vec());
    let wasm = WasmCode::of_files(&store, compiled, module)?;
    let query = |at: pjit::wasm::WasmPlace| Query {
        place: Site::Wasm(at.part),
        address: at.offset.into(),
        inlines: true,
        lines: true,
    };
    let queries: Vec<_> = wasm.starts().take(4096).map(query).collect();
    pjit_fuzz::resolve_wasm(&queries, &wasm);
    Some(())
}
