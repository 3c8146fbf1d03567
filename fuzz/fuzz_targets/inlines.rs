//! DWARF of any bytes: inlined functions and lines at many addresses.
#![no_main]

use pjit::diagnostics::Diagnostics;
use pjit::dso::{DsoKind, DsoTable};
use pjit::input::Store;
use pjit::symbolize::{self, Query};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pjit_fuzz::write("symfs/fuzzed", bytes);
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, pjit_fuzz::search(), &diag);
    let dso = dsos.intern(b"/fuzzed", DsoKind::File, None, None);
    let queries: Vec<_> = (0..0x4000)
        .step_by(0x80)
        .map(|address| Query {
            dso,
            address,
            inlines: true,
            lines: true,
        })
        .collect();
    let _ = symbolize::resolve(&queries, &dsos, symbolize::Options::default(), 1);
});
