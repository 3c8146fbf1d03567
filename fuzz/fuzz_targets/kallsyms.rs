//! Kernel symbols of any bytes, gzip or not.
#![no_main]

use pjit::diagnostics::Diagnostics;
use pjit::dso::{DsoKind, DsoTable};
use pjit::find::SearchPaths;
use pjit::input::Store;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (store, diag) = (Store::new(), Diagnostics::new());
    let search = SearchPaths {
        kallsyms: Some(pjit_fuzz::write("kallsyms", bytes)),
        ..pjit_fuzz::search()
    };
    let mut dsos = DsoTable::new(&store, search, &diag);
    for (name, kind) in [
        (&b"[kernel.kallsyms]"[..], DsoKind::Kernel),
        (b"[nf_tables]", DsoKind::Module),
    ] {
        let id = dsos.intern(name, kind, None, None);
        if let Some(symbols) = dsos.symbols(id) {
            for at in [
                0,
                0xffff_ffff_8100_0000,
                0xffff_ffff_8100_1234,
                0xffff_ffff_c020_1000,
                u64::MAX,
            ] {
                let _ = symbols.find(at);
            }
        }
    }
});
