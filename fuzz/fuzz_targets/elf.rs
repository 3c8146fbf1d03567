//! An ELF file of any bytes: sections, segments, symbols, PLT, embedded and separate debug files.
#![no_main]

use pjit::address::{FileOffset, Svma};
use pjit::diagnostics::Diagnostics;
use pjit::dso::{DsoKind, DsoTable};
use pjit::input::Store;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pjit_fuzz::write("symfs/fuzzed", bytes);
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, pjit_fuzz::search(), &diag);
    let id = dsos.intern(b"/fuzzed", DsoKind::File, None, None);
    if let Some(elf) = dsos.binary(id) {
        for section in [
            ".eh_frame",
            ".symtab",
            ".gnu_debugdata",
            ".text",
            ".debug_info",
            ".note.gnu.build-id",
        ] {
            let _ = elf.section(section);
        }
        for at in [0, 0x1000, 0x1234, u64::MAX] {
            let _ = (
                elf.svma_of(FileOffset(at)),
                elf.file_offset_of(Svma(at)),
                elf.bytes_at(FileOffset(at), 16),
            );
        }
        let _ = elf.build_id();
    }
    let _ = (dsos.debug(id).is_some(), dsos.supplementary(id).is_some());
    if let Some(symbols) = dsos.symbols(id) {
        for at in (0..0x4000).step_by(0x100) {
            let _ = symbols.find(at);
        }
    }
});
