//! Symbols and files of DSOs, on ELF files made for the purpose.

use std::path::Path;
use std::sync::Arc;

use super::build_elf::*;
use super::elf::ElfFile;
use super::*;
use crate::address::{FileOffset, Svma, Timestamp};
use crate::arch::Arch;
use crate::diagnostics::{Diagnostics, Level};
use crate::find::SearchPaths;
use crate::input::{Ledger, Store};

fn name(table: &SymbolTable<'_>, at: u64) -> Option<String> {
    let found = table.find(at)?;
    assert!(found.start <= at && at < found.end);
    Some(String::from_utf8_lossy(found.name).into_owned())
}

/// Where only files below a folder are found.
fn below(folder: &Path) -> SearchPaths {
    SearchPaths {
        symfs: Some(folder.to_owned()),
        ..SearchPaths::default()
    }
}

fn table<'a>(store: &'a Store, elf: ElfBuilder) -> SymbolTable<'a> {
    let elf = ElfFile::parse(store.keep(elf.build()), store).expect("sound");
    super::plt::symbols_of(&elf, &elf, false)
}

#[test]
fn symbols_are_in_file_offsets() {
    let mut elf = ElfBuilder::new(0x100);
    elf.symbols(
        ".symtab",
        &[("a", 0x2000, 0x10, FUNC, 1), ("b", 0x2040, 8, OBJECT, 1)],
    );
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x1000).as_deref(), Some("a"));
    assert_eq!(name(&table, 0x1010), None);
    assert!(table.find(0x1042).expect("inside b").is_data);
    assert_eq!(name(&table, 0x2000), None);
}

#[test]
fn best_alias_wins() {
    let mut elf = ElfBuilder::new(0x100);
    elf.symbols(
        ".symtab",
        &[
            ("empty_with_a_long_name", 0x2000, 0, FUNC, 1),
            ("local_one", 0x2000, 16, LOCAL_FUNC, 1),
            ("__global", 0x2000, 16, FUNC, 1),
            ("global", 0x2000, 16, FUNC, 1),
            ("longer_global", 0x2000, 16, FUNC, 1),
            ("weak_with_the_longest_name", 0x2000, 16, WEAK_FUNC, 1),
            ("_ZN1AC1Ev", 0x2010, 16, FUNC, 1),
            ("_ZN1AC2Ev", 0x2010, 16, FUNC, 1),
            ("sized", 0x2020, 4, LABEL, 1),
            ("typed", 0x2020, 4, LOCAL_FUNC, 1),
        ],
    );
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x1008).as_deref(), Some("longer_global"));
    assert_eq!(name(&table, 0x1010).as_deref(), Some("_ZN1AC1Ev"));
    assert_eq!(name(&table, 0x1020).as_deref(), Some("typed"));
}

#[test]
fn only_symbols_without_size_are_extended() {
    let mut elf = ElfBuilder::new(0x100);
    let data = elf.section_at(".rodata", PROGBITS, 2, 0x2080, 0x1080, vec![0; 16]);
    elf.symbols(
        ".symtab",
        &[
            ("empty", 0x2000, 0, FUNC, 1),
            ("sized", 0x2010, 4, FUNC, 1),
            ("label", 0x2020, 0, LABEL, 1),
            ("absolute", 0x2028, 4, FUNC, 0xfff1),
            ("undefined", 0x202c, 4, FUNC, 0),
            ("last", 0x2080, 0, OBJECT, data),
        ],
    );
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x100f).as_deref(), Some("empty"));
    assert_eq!(name(&table, 0x1013).as_deref(), Some("sized"));
    assert_eq!(name(&table, 0x1014), None);
    assert_eq!(name(&table, 0x1028).as_deref(), Some("label"));
    assert_eq!(name(&table, 0x102c).as_deref(), Some("label"));
    // Up to the next page, and one more.
    assert_eq!(name(&table, 0x2fff).as_deref(), Some("last"));
    assert_eq!(name(&table, 0x3000), None);
}

/// As perf was seen to do: an inner symbol hides the tail of the outer one when the search passes it first.
#[test]
fn nested_symbol_hides_tail_as_in_perf() {
    let mut elf = ElfBuilder::new(0x200);
    elf.symbols(
        ".symtab",
        &[
            ("outer", 0x2000, 0x100, FUNC, 1),
            ("inner", 0x2040, 0x20, FUNC, 1),
            ("behind", 0x2100, 0x20, FUNC, 1),
        ],
    );
    let store = Store::new();
    let nested = table(&store, elf);
    assert_eq!(name(&nested, 0x1010).as_deref(), Some("outer"));
    assert_eq!(name(&nested, 0x1050).as_deref(), Some("inner"));
    // The middle one of three is the root.
    assert_eq!(name(&nested, 0x1070), None);

    let mut elf = ElfBuilder::new(0x200);
    elf.symbols(
        ".symtab",
        &[
            ("outer", 0x2000, 0x100, FUNC, 1),
            ("inner", 0x2040, 0x20, FUNC, 1),
        ],
    );
    let two = table(&store, elf);
    // Here `outer` is the root and covers all.
    assert_eq!(name(&two, 0x1050).as_deref(), Some("outer"));
    assert_eq!(name(&two, 0x1070).as_deref(), Some("outer"));
}

#[test]
fn dynamic_symbols_are_added() {
    let mut elf = ElfBuilder::new(0x100);
    elf.symbols(".symtab", &[("static_only", 0x2000, 8, LOCAL_FUNC, 1)]);
    elf.symbols(".dynsym", &[("exported", 0x2010, 8, FUNC, 1)]);
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x1004).as_deref(), Some("static_only"));
    assert_eq!(name(&table, 0x1014).as_deref(), Some("exported"));
}

/// wasmtime's `.cwasm`: `ET_REL`, no segments, all section addresses 0.
#[test]
fn relocatable_file_without_segments() {
    let mut elf = ElfBuilder::without_text(62, 1);
    elf.section_at(".text", PROGBITS, 6, 0, 0x1000, vec![0x90; 0x100]);
    elf.symbols(".symtab", &[("wasm[0]::function[3]", 0x20, 0x10, FUNC, 1)]);
    let store = Store::new();
    let bytes = store.keep(elf.build());
    let elf = ElfFile::parse(bytes, &store).expect("sound");
    assert_eq!(elf.svma_of(FileOffset(0x1024)), Some(Svma(0x1024)));
    assert_eq!(elf.section(".text").expect("there").svma, Svma(0x1000));
    let table = super::plt::symbols_of(&elf, &elf, false);
    assert_eq!(
        name(&table, 0x1024).as_deref(),
        Some("wasm[0]::function[3]")
    );
}

/// lld rounds mappings down to pages, so one file offset lies in two segments.
#[test]
fn executable_segment_goes_first() {
    let mut elf = ElfBuilder::without_text(62, 3);
    elf.segment(0, 0, 0x1800, 4);
    elf.segment(0x1000, 0x2000, 0x1000, 5);
    let store = Store::new();
    let elf = ElfFile::parse(store.keep(elf.build()), &store).expect("sound");
    assert_eq!(elf.svma_of(FileOffset(0x1010)), Some(Svma(0x2010)));
    assert_eq!(elf.svma_of(FileOffset(0x10)), Some(Svma(0x10)));
    assert_eq!(elf.file_offset_of(Svma(0x2010)), Some(FileOffset(0x1010)));
}

fn plt_relocation(slot: u64, symbol: u64, kind: u64, addend: u64) -> Vec<u8> {
    [slot, symbol << 32 | kind, addend]
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect()
}

#[test]
fn plt_entries_are_named() {
    let mut elf = ElfBuilder::new(0x100);
    elf.segment(0x1400, 0x2400, 0x100, 5);
    let plt = elf.section_at(".plt", PROGBITS, 6, 0x2400, 0x1400, vec![0; 0x40]);
    elf.link(plt, 0, 16);
    elf.symbols(
        ".symtab",
        &[
            ("resolver", 0x2020, 8, IFUNC, 1),
            ("init", 0x20f0, 0, FUNC, 1),
        ],
    );
    let dynsym = elf.symbols(
        ".dynsym",
        &[("puts", 0, 0, FUNC, 0), ("_Z3foov", 0, 0, FUNC, 0)],
    );
    let mut relocations = plt_relocation(0x4010, 2, 7, 0);
    // Not in the order of the PLT: slots are.
    relocations.extend(plt_relocation(0x4018, 0, 37, 0x2020));
    relocations.extend(plt_relocation(0x4008, 1, 7, 0));
    let rela = elf.section(".rela.plt", RELA, relocations);
    elf.link(rela, dynsym, 24);
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x1400).as_deref(), Some(".plt"));
    assert_eq!(name(&table, 0x1410).as_deref(), Some("puts@plt"));
    assert_eq!(name(&table, 0x1420).as_deref(), Some("_Z3foov@plt"));
    assert_eq!(name(&table, 0x1430).as_deref(), Some("resolver@plt"));
    // The symbol before it ends where the PLT starts.
    assert_eq!(name(&table, 0x13ff).as_deref(), Some("init"));
}

/// Two entries of 2^63 bytes are 0 bytes only where numbers wrap.
#[test]
fn plt_entries_of_absurd_sizes_are_no_overflow() {
    let mut elf = ElfBuilder::without_text(243, 3);
    elf.segment(0x1000, 0x2000, 0x100, 5);
    let plt = elf.section_at(".plt", PROGBITS, 6, 0x2000, 0x1000, Vec::new());
    elf.link(plt, 0, 1 << 63);
    let dynsym = elf.symbols(".dynsym", &[("puts", 0, 0, FUNC, 0)]);
    let relocations = plt_relocation(0x4010, 1, 7, 0).repeat(2);
    let rela = elf.section(".rela.plt", RELA, relocations);
    elf.link(rela, dynsym, 24);
    assert!(
        table(&Store::new(), elf).find(0x1010).is_some(),
        "the header"
    );
}

#[test]
fn plt_got_entries_are_named_by_their_slots() {
    let mut elf = ElfBuilder::new(0x100);
    elf.segment(0x1400, 0x2400, 0x100, 5);
    let plt = elf.section_at(".plt", PROGBITS, 6, 0x2400, 0x1400, vec![0; 0x10]);
    elf.link(plt, 0, 16);
    // jmp *0x1ff8(%rip), at 0x2420: the slot is 0x2426 + 0x1ff8.
    let mut code = vec![0xff, 0x25, 0xf8, 0x1f, 0, 0, 0x66, 0x90];
    code.extend([0; 8]);
    let got = elf.section_at(".plt.got", PROGBITS, 6, 0x2420, 0x1420, code);
    elf.link(got, 0, 8);
    let dynsym = elf.symbols(".dynsym", &[("__cxa_finalize", 0, 0, FUNC, 0)]);
    let rela = elf.section(".rela.dyn", RELA, plt_relocation(0x441e, 1, 6, 0));
    elf.link(rela, dynsym, 24);
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x1420).as_deref(), Some("__cxa_finalize@plt"));
    assert_eq!(name(&table, 0x1428).as_deref(), Some("offset_0x1428@plt"));
}

/// 32-bit code reaches its slots by their address, or through `%ebx`, which points to the global offset table.
#[test]
fn plt_got_entries_of_32_bits_are_named_by_their_slots() {
    const REL: u32 = 9;
    let mut elf = ElfBuilder::without_text(3, 3);
    elf.segment(0x1400, 0x2400, 0x100, 5);
    let plt = elf.section_at(".plt", PROGBITS, 6, 0x2400, 0x1400, vec![0; 0x10]);
    elf.link(plt, 0, 16);
    // jmp *-0xc(%ebx), endbr32; jmp *0x3ff8, jmp *-4(%ebx).
    let code = [
        &[
            0xff, 0xa3, 0xf4, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ][..],
        &[
            0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0x25, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        &[
            0xff, 0xa3, 0xfc, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    ];
    let got = elf.section_at(".plt.got", PROGBITS, 6, 0x2420, 0x1420, code.concat());
    elf.link(got, 0, 16);
    elf.section_at(".got.plt", PROGBITS, 3, 0x4000, 0x1500, vec![0; 16]);
    let names = [("first", 0, 0, FUNC, 0), ("second", 0, 0, FUNC, 0)];
    let dynsym = elf.symbols(".dynsym", &names);
    let relocations: Vec<u8> = [(0x3ff4, 1), (0x3ff8, 2)]
        .iter()
        .flat_map(|(slot, symbol)| plt_relocation(*slot, *symbol, 6, 0)[..16].to_vec())
        .collect();
    let rel = elf.section(".rel.dyn", REL, relocations);
    elf.link(rel, dynsym, 16);
    let store = Store::new();
    let table = table(&store, elf);
    assert_eq!(name(&table, 0x1420).as_deref(), Some("first@plt"));
    assert_eq!(name(&table, 0x1430).as_deref(), Some("second@plt"));
    assert_eq!(name(&table, 0x1440).as_deref(), Some("offset_0x1440@plt"));
}

/// A section without bytes may claim any size; it names as many entries as there are bytes.
#[test]
fn plt_got_entries_are_as_many_as_there_are_bytes() {
    let mut elf = ElfBuilder::new(0x600);
    let plt = elf.section_at(".plt", PROGBITS, 6, 0x2400, 0x1400, vec![0; 0x10]);
    elf.link(plt, 0, 16);
    let got = elf.section_at(".plt.got", 8, 6, 0x2420, 0x1420, vec![0; 0x80]);
    elf.link(got, 0, 1);
    assert_eq!(table(&Store::new(), elf).len(), 1, "the header of .plt");
}

#[test]
fn compressed_sections_are_unpacked_within_bounds() {
    use std::io::Write;
    let compressed = |size: u64, data: &[u8]| {
        let mut out = [
            &1u64.to_le_bytes()[..],
            &size.to_le_bytes(),
            &1u64.to_le_bytes(),
        ]
        .concat();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).expect("to memory");
        out.extend(encoder.finish().expect("to memory"));
        out
    };
    let mut elf = ElfBuilder::new(0x10);
    elf.section_at(
        ".debug_good",
        PROGBITS,
        0x800,
        0,
        0x1100,
        compressed(3000, &[7; 3000]),
    );
    elf.section_at(
        ".debug_bomb",
        PROGBITS,
        0x800,
        0,
        0x1300,
        compressed(1 << 40, b"x"),
    );
    elf.section_at(
        ".debug_short",
        PROGBITS,
        0x800,
        0,
        0x1400,
        compressed(10, b"x"),
    );
    let store = Store::new();
    let elf = ElfFile::parse(store.keep(elf.build()), &store).expect("sound");
    assert_eq!(elf.section(".debug_good").expect("unpacks").data, [7; 3000]);
    assert!(elf.section(".debug_bomb").is_none());
    assert!(elf.section(".debug_short").is_none());
}

/// Every section may claim the same few compressed bytes.
#[test]
fn sections_are_unpacked_within_a_bound_for_all_of_them() {
    let mut section = 1u32.to_le_bytes().to_vec();
    section.extend([0; 4]);
    section.extend((3u64 << 20).to_le_bytes());
    section.extend(1u64.to_le_bytes());
    let mut zlib = flate2::write::ZlibEncoder::new(section, flate2::Compression::best());
    std::io::Write::write_all(&mut zlib, &vec![0; 3 << 20]).expect("to memory");
    let section = zlib.finish().expect("to memory");
    let mut elf = ElfBuilder::new(0x10);
    for name in [".debug_info", ".debug_abbrev", ".debug_line"] {
        elf.section_at(name, PROGBITS, 0x800, 0, 0x2000, section.clone());
    }
    let store = Store::new();
    let elf = ElfFile::parse(store.keep(elf.build()), &store).expect("sound");
    assert_eq!(
        elf.section(".debug_line").map(|s| s.data.len()),
        Some(3 << 20)
    );
    assert!(
        elf.section(".debug_info").is_none(),
        "4 MB and 64 times the file"
    );
    assert!(elf.section(".debug_line").is_some(), "it is kept");
}

#[test]
fn damaged_files_do_no_harm() {
    let mut elf = ElfBuilder::new(0x100);
    elf.symbols(
        ".symtab",
        &[("a", 0x2000, 0x80, FUNC, 1), ("b", 0x2040, 0x10, FUNC, 1)],
    );
    let plt = elf.section_at(".plt", PROGBITS, 6, 0x2400, 0x1400, vec![0; 0x40]);
    elf.link(plt, 0, 16);
    let dynsym = elf.symbols(".dynsym", &[("puts", 0, 0, FUNC, 0)]);
    let rela = elf.section(".rela.plt", RELA, plt_relocation(0x4010, 1, 7, 0));
    elf.link(rela, dynsym, 24);
    elf.build_id(&[1; 20]);
    let good = elf.build();
    let store = Store::new();
    let read = |bytes: Vec<u8>| {
        let Ok(elf) = ElfFile::parse(store.keep(bytes), &store) else {
            return;
        };
        let table = super::plt::symbols_of(&elf, &elf, true);
        for at in (0xfc0..0x1500).step_by(16) {
            let _ = table.find(at);
        }
    };
    for cut in (0..good.len()).step_by(7) {
        read(good[..cut].to_vec());
    }
    let mut state = 12345u64;
    for _ in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Headers and tables lie at both ends; `.text` is not worth flipping.
            let at = usize::try_from(state >> 33).expect("31 bits") % bytes.len();
            let at = if (0x100..0x1400).contains(&at) {
                at % 0x100
            } else {
                at
            };
            bytes[at] = u8::try_from(state >> 20 & 0xff).expect("8 bits");
        }
        read(bytes);
    }
}

/// The program of the tests below.
const PROG: &[u8] = b"/pjit-test/prog";

fn binary(id: u8, function: &str) -> Vec<u8> {
    let mut elf = ElfBuilder::new(0x100);
    elf.build_id(&[id; 20]);
    if !function.is_empty() {
        elf.symbols(".symtab", &[(function, 0x2000, 0x100, FUNC, 1)]);
    }
    elf.build()
}

/// Where the debug file of a build stands.
fn debug_by_id(id: u8) -> String {
    let id = format!("{id:02x}");
    format!("usr/lib/debug/.build-id/{id}/{}.debug", id.repeat(19))
}

/// A DSO with an inode, of whose file one page was mapped.
fn mapped(dsos: &mut DsoTable<'_>, path: &[u8], inode: u64, offset: u64) -> DsoId {
    let dso = dsos.intern(path, DsoKind::File, None, Some((8, 1, inode, 0)));
    let (offset, len) = (FileOffset(offset), 0x1000);
    dsos.note_mapped(dso, MappedPart { offset, len }, Timestamp::START);
    dso
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("has one")).expect("create");
    std::fs::write(path, bytes).expect("write");
}

/// What a DSO of build `id` at `/pjit-test/prog` resolves to.
fn resolve(search: SearchPaths, id: Option<u8>) -> (Option<String>, Vec<String>) {
    resolve_file(PROG, search, id)
}

fn resolve_file(path: &[u8], search: SearchPaths, id: Option<u8>) -> (Option<String>, Vec<String>) {
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, search, &diag);
    let build_id = id.and_then(|id| BuildId::new(&[id; 20]));
    let dso = dsos.intern(path, DsoKind::File, build_id, None);
    let found = dsos.symbols(dso).and_then(|table| name(table, 0x1010));
    dsos.report_missed(|_| false);
    let warnings = diag
        .take()
        .into_iter()
        .filter(|(level, _)| *level == Level::Warning);
    (found, warnings.map(|(_, text)| text).collect())
}

#[test]
fn changed_binary_is_reported_and_not_used() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "pjit-test/prog", &binary(1, "new_code"));
    let symfs = || below(dir.path());
    assert_eq!(resolve(symfs(), None).0.as_deref(), Some("new_code"));
    assert_eq!(resolve(symfs(), Some(1)).0.as_deref(), Some("new_code"));
    let (found, warnings) = resolve(symfs(), Some(2));
    assert_eq!(found, None);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&"01".repeat(20)) && warnings[0].contains(&"02".repeat(20)));
    // The cache has the recorded one: no warning then.
    let cached = format!(".debug/.build-id/02/{}/elf", "02".repeat(19));
    write(dir.path(), &cached, &binary(2, "old_code"));
    assert_eq!(
        resolve(symfs(), Some(2)),
        (Some("old_code".to_owned()), Vec::new())
    );
    let cache_only = SearchPaths {
        buildid_dir: Some(dir.path().join(".debug")),
        ..SearchPaths::default()
    };
    assert_eq!(resolve(cache_only, Some(2)).0.as_deref(), Some("old_code"));
}

#[test]
fn files_beside_the_recording_are_found() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "symfs/pjit-test/prog", &binary(1, "travelled"));
    let search = SearchPaths {
        recording_dir: Some(dir.path().to_owned()),
        ..SearchPaths::default()
    };
    assert_eq!(resolve(search, Some(1)).0.as_deref(), Some("travelled"));
}

#[test]
fn programs_that_were_in_memory_only_can_be_given() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "symfs/memfd:prog", &binary(1, "loaded"));
    let search = SearchPaths {
        recording_dir: Some(dir.path().to_owned()),
        ..SearchPaths::default()
    };
    let found = |path: &[u8]| resolve_file(path, search.clone(), None).0;
    assert_eq!(found(b"/memfd:prog (deleted)").as_deref(), Some("loaded"));
    assert_eq!(found(b"/memfd:other (deleted)"), None);
    assert_eq!(found(b"/prog (deleted)"), None);
}

#[test]
fn debug_files_by_build_id_and_by_link() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "pjit-test/prog", &binary(1, ""));
    let symfs = || below(dir.path());
    assert_eq!(resolve(symfs(), Some(1)).0, None);
    write(dir.path(), &debug_by_id(1), &binary(9, "of_another_build"));
    assert_eq!(resolve(symfs(), Some(1)).0, None);
    write(dir.path(), &debug_by_id(1), &binary(1, "by_build_id"));
    assert_eq!(resolve(symfs(), Some(1)).0.as_deref(), Some("by_build_id"));

    // Without build IDs the checksum decides.
    let debug = |function| {
        let mut elf = ElfBuilder::new(0x100);
        elf.symbols(".symtab", &[(function, 0x2000, 0x100, FUNC, 1)]);
        elf.build()
    };
    let mut crc = flate2::Crc::new();
    crc.update(&debug("by_link"));
    let mut program = ElfBuilder::new(0x100);
    let link = [&b"prog.debug\0\0"[..], &crc.sum().to_le_bytes()].concat();
    program.section(".gnu_debuglink", PROGBITS, link);
    write(dir.path(), "pjit-test/prog", &program.build());
    write(dir.path(), "pjit-test/.debug/prog.debug", &debug("stale"));
    assert_eq!(resolve(symfs(), None).0, None);
    write(dir.path(), "pjit-test/.debug/prog.debug", &debug("by_link"));
    assert_eq!(resolve(symfs(), None).0.as_deref(), Some("by_link"));
}

#[test]
fn the_file_that_debug_files_share_is_missed_by_name() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let shared = "/usr/lib/debug/.dwz/common.debug";
    let mut elf = ElfBuilder::new(0x100);
    elf.section(".debug_info", PROGBITS, vec![0]);
    let link = [shared.as_bytes(), &[0], &[7; 20]].concat();
    elf.section(".gnu_debugaltlink", PROGBITS, link);
    write(dir.path(), "pjit-test/prog", &elf.build());
    let missing = || {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
        let dso = dsos.intern(PROG, DsoKind::File, None, None);
        dsos.missing_supplementary(dso)
    };
    assert_eq!(missing().as_deref(), Some(Path::new(shared)));
    write(dir.path(), &shared[1..], &binary(7, ""));
    assert_eq!(missing(), None);
}

#[test]
fn a_copy_in_the_cache_that_was_not_stripped_is_used() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "pjit-test/prog", &binary(1, ""));
    let cached = |id: &str| format!(".debug/.build-id/{id}/{}/elf", id.repeat(19));
    let resolved = || resolve(below(dir.path()), Some(1)).0;
    // One that is stripped as well is of no use.
    write(dir.path(), &cached("01"), &binary(1, ""));
    assert_eq!(resolved(), None);
    write(dir.path(), &cached("01"), &binary(2, "another_build"));
    assert_eq!(resolved(), None);
    write(dir.path(), &cached("01"), &binary(1, "kept"));
    assert_eq!(resolved().as_deref(), Some("kept"));
}

/// A file whose text is 0x100 bytes at a file offset, with a function there.
fn binary_at(offset: u64, id: u8, function: &str) -> Vec<u8> {
    let mut elf = ElfBuilder::without_text(62, 3);
    elf.segment(offset, 0x2000, 0x100, 5);
    let text = elf.section_at(".text", PROGBITS, 6, 0x2000, offset, vec![0x90; 0x100]);
    elf.build_id(&[id; 20]);
    elf.symbols(".symtab", &[(function, 0x2000, 0x100, FUNC, text)]);
    elf.build()
}

/// Two containers have another program each at one path, and so has each of the folders that stand for `/`.
#[test]
fn of_several_roots_the_one_with_the_best_evidence_is_taken() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let root = |name: &str| dir.path().join(name);
    for (name, id) in [("one", 1), ("two", 2)] {
        write(
            &root(name),
            "pjit-test/prog",
            &binary(id, &format!("of_{name}")),
        );
    }
    let names = |roots: [&str; 2], builds: &[Option<u8>]| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let search = SearchPaths {
            more_symfs: vec![root(roots[1])],
            ..below(&root(roots[0]))
        };
        let mut dsos = DsoTable::new(&store, search, &diag);
        let of_build = |(id, inode): (&Option<u8>, u64)| {
            let build = id.and_then(|id| BuildId::new(&[id; 20]));
            let inode = Some((8, 1, inode, 0));
            let dso = dsos.intern(PROG, DsoKind::File, build, inode);
            let (offset, len) = (FileOffset(0x1000), 0x1000);
            dsos.note_mapped(dso, MappedPart { offset, len }, Timestamp::START);
            dso
        };
        let all: Vec<_> = builds.iter().zip(7..).map(of_build).collect();
        dsos.settle();
        let symbol = |dso: &DsoId| dsos.symbols(*dso).and_then(|table| name(table, 0x1010));
        let names: Vec<_> = all.iter().map(symbol).collect();
        dsos.report_missed(|_| false);
        let said = diag.take().into_iter();
        let said = said.filter(|(level, _)| *level == Level::Warning);
        (names, said.map(|(_, text)| text).collect::<Vec<_>>())
    };
    let some = |name: &str| Some(name.to_owned());
    for roots in [["one", "two"], ["two", "one"]] {
        // Build IDs were mapped.
        let (found, said) = names(roots, &[Some(1), Some(2), Some(3)]);
        assert_eq!(found, [some("of_one"), some("of_two"), None], "{said:?}");
        // Nothing tells which one it was.
        let (found, said) = names(roots, &[None]);
        assert_eq!(found, [None]);
        assert!(said[0].contains("nothing tells for which"), "{said:?}");
        // Both roots have the same build: no matter which.
        assert_eq!(names(["one", "one"], &[None]).0, [some("of_one")]);
    }
}

#[test]
fn the_mapping_tells_two_files_of_one_path_apart() {
    // A host's program and a container's have one path; the table's build ID is of the host's, and who came first
    // took it.
    let dir = tempfile::tempdir().expect("temporary directory");
    write(
        dir.path(),
        "host/pjit-test/prog",
        &binary_at(0x1000, 1, "of_host"),
    );
    write(
        dir.path(),
        "guest/pjit-test/prog",
        &binary_at(0x3000, 2, "of_guest"),
    );
    let names_in = |root: &str, host_first: bool| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(&dir.path().join(root)), &diag);
        let id = BuildId::new(&[1; 20]).expect("a build ID");
        dsos.set_build_ids([(PROG.to_vec(), id)]);
        let mut mapped = |inode, offset| mapped(&mut dsos, PROG, inode, offset);
        let (host, guest) = if host_first {
            (mapped(7, 0x1000), mapped(8, 0x3000))
        } else {
            let guest = mapped(8, 0x3000);
            (mapped(7, 0x1000), guest)
        };
        dsos.settle();
        let found = |dso, at| dsos.symbols(dso).and_then(|table| name(table, at));
        let names = (found(host, 0x1010), found(guest, 0x3010));
        dsos.report_missed(|_| false);
        let warned = diag
            .take()
            .iter()
            .any(|(level, _)| *level == Level::Warning);
        assert!(warned, "the file of the other is told not to be used");
        names
    };
    for host_first in [true, false] {
        let (of_host, of_guest) = (Some("of_host".to_owned()), Some("of_guest".to_owned()));
        assert_eq!(
            names_in("host", host_first),
            (of_host, None),
            "{host_first}"
        );
        assert_eq!(
            names_in("guest", host_first),
            (None, of_guest),
            "{host_first}"
        );
    }
}

/// SBCL maps its core, in which compiled code lies: the file is there, and tells nothing.
#[test]
fn a_file_of_another_kind_is_not_missing() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let trouble = || {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
        let dso = mapped(&mut dsos, PROG, 7, 0x1000);
        dsos.settle();
        assert!(dsos.symbols(dso).is_none());
        dsos.trouble(dso)
    };
    assert_eq!(trouble(), Some(FileTrouble::Missing));
    write(dir.path(), "pjit-test/prog", b"LCBS and so on, many bytes");
    assert_eq!(trouble(), Some(FileTrouble::NotElf));
    write(dir.path(), "pjit-test/prog", b"MZ and so on, many bytes");
    assert_eq!(trouble(), Some(FileTrouble::Pe));
}

/// The table's build ID is that of one file, and three programs with the same layout had its path.
#[test]
fn a_file_that_may_be_any_of_several_names_none_of_them() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(
        dir.path(),
        "pjit-test/prog",
        &binary_at(0x1000, 1, "last_one"),
    );
    let names_of = |mapped_at: [u64; 3]| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
        let id = BuildId::new(&[1; 20]).expect("a build ID");
        dsos.set_build_ids([(PROG.to_vec(), id)]);
        let all: Vec<DsoId> = (7..)
            .zip(mapped_at)
            .map(|(inode, offset)| mapped(&mut dsos, PROG, inode, offset))
            .collect();
        dsos.settle();
        let name_of = |dso: &DsoId| dsos.symbols(*dso).and_then(|table| name(table, 0x1010));
        let names: Vec<Option<String>> = all.iter().map(name_of).collect();
        let ids: Vec<Option<BuildId>> = all.iter().map(|dso| dsos.build_id(*dso)).collect();
        assert!(
            ids.iter()
                .zip(&names)
                .all(|(id, name)| id.is_some() == name.is_some())
        );
        dsos.report_missed(|_| false);
        (names, diag.warnings())
    };
    let (names, warnings) = names_of([0x1000; 3]);
    assert_eq!(names, [None, None, None]);
    assert!(warnings[0].contains("pjit record"), "{warnings:?}");
    // Where the others were mapped otherwise, it is the one that fits.
    let (names, _) = names_of([0x4000, 0x1000, 0x3000]);
    assert_eq!(names, [None, Some("last_one".to_owned()), None]);
}

/// A program, and what the file system tells of it.
#[cfg(target_os = "linux")]
fn program() -> (tempfile::TempDir, crate::input::FileFacts) {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "prog", &binary_at(0x1000, 1, "last_one"));
    let file = std::fs::File::open(dir.path().join("prog")).expect("it is there");
    let meta = file.metadata().expect("it is there");
    let facts = crate::input::facts_of(&file, &meta).expect("it has an inode");
    (dir, facts)
}

#[cfg(target_os = "linux")]
#[test]
fn the_inode_tells_which_of_several_files_is_at_hand() {
    use std::time::Duration;
    let (dir, facts) = program();
    let path = dir.path().join("prog");
    let long_name = path.to_str().expect("plain").as_bytes();
    let (major, minor) = facts.device;
    let day = Duration::from_secs(86_400);
    let before = facts.changed - day..facts.changed - day / 2;
    let around = facts.changed - day..facts.changed + day;
    let behind = facts.changed + day..facts.changed + 2 * day;
    let names_of = |inodes: &[u64], when: Span| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
        dsos.set_made_here(when, None);
        let id = BuildId::new(&[1; 20]).expect("a build ID");
        dsos.set_build_ids([(long_name.to_vec(), id)]);
        let all: Vec<DsoId> = inodes
            .iter()
            .map(|inode| {
                let inode = Some((major, minor, *inode, 0));
                dsos.intern(long_name, DsoKind::File, None, inode)
            })
            .collect();
        dsos.settle();
        let name_of = |dso: &DsoId| dsos.symbols(*dso).and_then(|table| name(table, 0x1010));
        all.iter().map(name_of).collect::<Vec<_>>()
    };
    let (own, other) = (facts.inode, facts.inode + 1);
    let found = || Some("last_one".to_owned());
    assert_eq!(names_of(&[other, own], around.clone()), [None, found()]);
    // It was written after the recording: the number may have been given again.
    assert_eq!(names_of(&[other, own], before.clone()), [None, None]);
    assert_eq!(names_of(&[own], before), [found()]);
    // It was there before the recording, and another file was mapped: in a container.
    assert_eq!(names_of(&[other], behind), [None]);
    // It came there while the program was recorded, and has the ID that perf found in the end.
    assert_eq!(names_of(&[other], around), [None]);
}

/// Each container's volume counts its inodes from the same number. A mount of one file has a device of its own as well.
#[cfg(target_os = "linux")]
#[test]
fn one_number_on_two_devices_may_be_two_files() {
    let (dir, facts) = program();
    let path = dir.path().join("prog");
    let long_name = path.to_str().expect("plain").as_bytes();
    let hour = std::time::Duration::from_secs(3600);
    let names = |devices: [(u32, u32); 2], ids: &[u8]| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
        dsos.set_made_here(facts.changed + hour..facts.changed + 2 * hour, None);
        let ids = ids.iter().map(|id| BuildId::new(&[*id; 20]));
        dsos.set_build_ids(ids.map(|id| (long_name.to_vec(), id.expect("a build ID"))));
        let all = devices.map(|(major, minor)| {
            let inode = Some((major, minor, facts.inode, 0));
            dsos.intern(long_name, DsoKind::File, None, inode)
        });
        dsos.settle();
        all.map(|dso| dsos.symbols(dso).and_then(|table| name(table, 0x1010)))
    };
    let found = || Some("last_one".to_owned());
    let foreign = [(0, 4711), (0, 4712)];
    assert_eq!(names(foreign, &[1]), [found(), found()]);
    assert_eq!(names(foreign, &[1, 2]), [None, None]);
    // The device of the file that is here.
    let with_own = [facts.device, (0, 4712)];
    assert_eq!(names(with_own, &[1, 2]), [found(), None]);
}

/// `mv` and `cp -p` keep times, and nothing tells the build of a program without an ID; of a file with one perf's own link changes
/// the time.
#[cfg(target_os = "linux")]
#[test]
fn another_inode_is_another_file_whatever_its_times() {
    let (dir, facts) = program();
    let path = dir.path().join("prog");
    let long_name = path.to_str().expect("plain").as_bytes();
    let hour = std::time::Duration::from_secs(3600);
    let name_of = |(inode, device): (u64, (u32, u32)), when: Span, has_id: bool| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
        dsos.set_made_here(when, None);
        let id = BuildId::new(&[1; 20]).expect("a build ID");
        dsos.set_build_ids(has_id.then(|| (long_name.to_vec(), id)));
        let inode = Some((device.0, device.1, inode, 0));
        let dso = dsos.intern(long_name, DsoKind::File, None, inode);
        dsos.settle();
        dsos.symbols(dso).and_then(|table| name(table, 0x1010))
    };
    let found = || Some("last_one".to_owned());
    let (own, other) = (facts.inode, facts.inode + 1);
    let behind = facts.changed + hour..facts.changed + 2 * hour;
    // Of an overlay; only numbers of disks are the same for the kernel and for programs.
    let overlay = (0, 4711);
    let is_disk = facts.device.0 != 0;
    let of_overlay = name_of((other, overlay), behind.clone(), true);
    assert_eq!(of_overlay, (!is_disk).then(found).flatten());
    assert_eq!(name_of((own, overlay), behind.clone(), true), found());
    // Where the table tells the build, it may have been installed again since.
    let before = facts.written - 2 * hour..facts.written - hour;
    assert_eq!(name_of((other, facts.device), before, true), found());
    assert_eq!(name_of((other, facts.device), behind, false), None);
}

/// Below a folder may be a copy, also one that was made before the recording. The table's ID tells so, unless the file that perf
/// read the ID from is at hand and is not the one that was mapped.
#[cfg(target_os = "linux")]
#[test]
fn a_copy_below_a_folder_has_an_inode_of_its_own() {
    let (dir, facts) = program();
    let path = dir.path().join("prog");
    let long_name = path.to_str().expect("plain").as_bytes();
    let copy = format!("img{}", path.display());
    write(dir.path(), &copy, &std::fs::read(&path).expect("read"));
    let hour = std::time::Duration::from_secs(3600);
    let names_of = |inodes: &[u64], id: Option<u8>| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(&dir.path().join("img")), &diag);
        dsos.set_made_here(facts.changed + hour..facts.changed + 2 * hour, None);
        let id = id.and_then(|id| BuildId::new(&[id; 20]));
        dsos.set_build_ids(id.map(|id| (long_name.to_vec(), id)));
        let (major, minor) = facts.device;
        let of = |inode: &u64| Some((major, minor, *inode, 0));
        let all: Vec<_> = inodes
            .iter()
            .map(|inode| dsos.intern(long_name, DsoKind::File, None, of(inode)))
            .collect();
        dsos.settle();
        let name_of = |dso: &DsoId| dsos.symbols(*dso).and_then(|table| name(table, 0x1010));
        all.iter().map(name_of).collect::<Vec<_>>()
    };
    let found = || Some("last_one".to_owned());
    let (own, gone) = (facts.inode, u64::MAX);
    assert_eq!(names_of(&[own], Some(1)), [found()]);
    assert_eq!(names_of(&[own], Some(2)), [None]);
    assert_eq!(names_of(&[own], None), [None]);
    assert_eq!(names_of(&[gone], Some(1)), [None]);
    assert_eq!(names_of(&[own, gone], Some(1)), [None, None]);
    // Another build has come to the path since.
    write(dir.path(), "prog", &binary_at(0x1000, 2, "built_again"));
    assert_eq!(names_of(&[own], Some(1)), [found()]);
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(names_of(&[gone], Some(1)), [found()]);
}

/// `cp NEW PROGRAM` keeps the inode.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_was_overwritten_while_it_was_recorded_is_not_used() {
    use std::time::Duration;
    let (dir, facts) = program();
    let path = dir.path().join("prog");
    let injected = dir.path().join("jitted-7-1.so");
    std::fs::hard_link(&path, &injected).expect("linked");
    let second = Duration::from_secs(1);
    let when = facts.written - 60 * second..facts.written + 60 * second;
    let first = Timestamp(1_000);
    let name_at = |path: &std::path::Path, seconds: u64, is_known: bool| {
        let long_name = path.to_str().expect("plain").as_bytes();
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
        dsos.set_made_here(when.clone(), is_known.then_some(first));
        let inode = Some((facts.device.0, facts.device.1, facts.inode, 0));
        let dso = dsos.intern(long_name, DsoKind::File, None, inode);
        let (offset, len) = (FileOffset(0x1000), 0x1000);
        let time = Timestamp(first.0 + seconds * 1_000_000_000);
        dsos.note_mapped(dso, MappedPart { offset, len }, time);
        dsos.settle();
        dsos.symbols(dso).and_then(|table| name(table, 0x1010))
    };
    let name_of = |seconds, is_known| name_at(&path, seconds, is_known);
    let found = || Some("last_one".to_owned());
    assert_eq!(name_of(50, true), None);
    assert_eq!(name_of(61, true), found());
    // perf makes these of a dump afterwards, with the times at which the code was loaded.
    assert_eq!(name_at(&injected, 50, true), found());
    // Nothing tells when it was mapped.
    assert_eq!(name_of(50, false), found());
}

/// The build ID that the table has for a path is that of this machine's file, which is not the one that was mapped.
#[test]
fn a_build_id_that_the_mapping_refutes_finds_no_debug_file() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "pjit-test/prog", &binary(1, ""));
    write(dir.path(), &debug_by_id(1), &binary(1, "of_the_host"));
    let found = |offset: u64| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
        let id = BuildId::new(&[1; 20]).expect("a build ID");
        dsos.set_build_ids([(PROG.to_vec(), id)]);
        let dso = mapped(&mut dsos, PROG, 7, offset);
        dsos.settle();
        let name = dsos
            .symbols(dso)
            .and_then(|table| name(table, offset + 0x10));
        (name, dsos.build_id(dso))
    };
    let id = BuildId::new(&[1; 20]);
    assert_eq!(found(0x1000), (Some("of_the_host".to_owned()), id));
    assert_eq!(found(0x5000), (None, None));
}

/// `objcopy --only-keep-debug` leaves out the code and moves its segment to another position.
#[test]
fn a_debug_file_alone_is_placed_by_what_was_mapped() {
    const NOBITS: u32 = 8;
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut elf = ElfBuilder::without_text(62, 3);
    elf.without_bytes();
    elf.segment(0, 0, 0x800, 4);
    elf.segment(0, 0x2000, 0x100, 5);
    elf.segment(0x200, 0x4000, 0x2000, 6);
    let text = elf.section_at(".text", NOBITS, 6, 0x2000, 0x300, vec![0; 0x100]);
    let data = elf.section_at(".data", NOBITS, 3, 0x4000, 0x300, vec![0; 0x100]);
    elf.build_id(&[1; 20]);
    let symbols = [
        ("hot", 0x2000, 0x100, FUNC, text),
        ("table", 0x4000, 0x100, OBJECT, data),
    ];
    elf.symbols(".symtab", &symbols);
    write(dir.path(), &debug_by_id(1), &elf.build());
    let found = |parts: &[(u64, u64)], at: u64| {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
        let dso = dsos.intern(PROG, DsoKind::File, BuildId::new(&[1; 20]), None);
        for &(offset, len) in parts {
            let offset = FileOffset(offset);
            dsos.note_mapped(dso, MappedPart { offset, len }, Timestamp::START);
        }
        dsos.settle();
        let count = dsos.symbols(dso).map_or(0, SymbolTable::len);
        let name = dsos.symbols(dso).and_then(|table| name(table, at));
        let debug = dsos.debug(dso);
        let stated = debug.and_then(|elf| elf.svma_of(FileOffset(at)));
        let code = debug.and_then(|elf| elf.bytes_at(FileOffset(at), 1));
        assert!(code.is_none(), "it has no code");
        (name, stated, count, !diag.warnings().is_empty())
    };
    let hot = Some("hot".to_owned());
    assert_eq!(
        found(&[(0x1000, 0x1000)], 0x1010),
        (hot.clone(), Some(Svma(0x2010)), 1, false)
    );
    assert_eq!(
        found(&[(0x7000, 0x1000)], 0x7010),
        (hot, Some(Svma(0x2010)), 1, false)
    );
    // Nothing of this size was mapped, or it was twice.
    assert_eq!(found(&[(0x1000, 0x3000)], 0x1010), (None, None, 0, true));
    let twice = [(0x1000, 0x1000), (0x7000, 0x1000)];
    assert_eq!(found(&twice, 0x1010), (None, None, 0, true));
}

/// Recordings that are read together may look for files in different folders.
#[test]
fn what_one_recording_finds_another_does_not() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for folder in ["with", "without"] {
        write(
            dir.path(),
            &format!("{folder}/pjit-test/prog"),
            &binary(1, ""),
        );
    }
    let by_id = format!("with/{}", debug_by_id(1));
    write(dir.path(), &by_id, &binary(1, "told"));
    for order in [["with", "without"], ["without", "with"]] {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let kin = std::sync::Arc::new(Kin::default());
        for folder in order {
            let mut dsos = DsoTable::new(&store, below(&dir.path().join(folder)), &diag);
            dsos.share(&kin);
            let dso = dsos.intern(PROG, DsoKind::File, BuildId::new(&[1; 20]), None);
            let found = dsos.symbols(dso).and_then(|table| name(table, 0x1010));
            let expected = (folder == "with").then(|| "told".to_owned());
            assert_eq!(found, expected, "{order:?}");
        }
    }
}

/// perf reads the mappings of running processes from /proc, which tells no generation of an inode.
#[test]
fn one_file_with_and_without_generation_is_one_dso() {
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
    let mut of =
        |inode, generation| dsos.intern(PROG, DsoKind::File, None, Some((8, 1, inode, generation)));
    let first = of(7, 0);
    assert_eq!(of(7, 99), first);
    assert_eq!(of(7, 0), first);
    assert_ne!(of(7, 100), first);
    assert_ne!(of(8, 99), first);
}

#[test]
fn all_blocks_of_a_packed_file_count() {
    let table = |padding: &[&[u8]]| {
        let mut inner = ElfBuilder::new(0x100);
        inner.symbols(".symtab", &[("hidden_inside", 0x2000, 0x20, LOCAL_FUNC, 1)]);
        let mut elf = inner.build();
        elf.resize(1 << 16, 0);
        let blocks: Vec<&[u8]> = [&[&elf[..]], padding].concat();
        let mut outer = ElfBuilder::new(0x100);
        outer.symbols(".dynsym", &[("exported", 0x2040, 0x20, FUNC, 1)]);
        outer.section(".gnu_debugdata", PROGBITS, xz(&blocks));
        let dir = tempfile::tempdir().expect("temporary directory");
        write(dir.path(), "pjit-test/prog", &outer.build());
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
        let dso = dsos.intern(PROG, DsoKind::File, None, None);
        let table = dsos.symbols(dso).expect("has symbols");
        name(table, 0x1010)
    };
    let zeros = vec![0; 1 << 16];
    assert_eq!(table(&[&zeros]).as_deref(), Some("hidden_inside"));
    // 6 MB of some kB.
    assert_eq!(table(&[&zeros[..]; 100]), None);
}

#[test]
fn embedded_debug_data_is_read() {
    let mut inner = ElfBuilder::new(0x100);
    inner.symbols(".symtab", &[("hidden_inside", 0x2000, 0x20, LOCAL_FUNC, 1)]);
    let packed = xz(&[&inner.build()]);
    let mut outer = ElfBuilder::new(0x100);
    outer.symbols(".dynsym", &[("exported", 0x2040, 0x20, FUNC, 1)]);
    outer.section(".gnu_debugdata", PROGBITS, packed);
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "pjit-test/prog", &outer.build());
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
    let dso = dsos.intern(PROG, DsoKind::File, None, None);
    let table = dsos.symbols(dso).expect("has symbols");
    assert_eq!(name(table, 0x1010).as_deref(), Some("hidden_inside"));
    assert_eq!(name(table, 0x1050).as_deref(), Some("exported"));
}

#[test]
fn modules_without_kallsyms_are_read_from_their_files() {
    use std::io::Write;
    let mut elf = ElfBuilder::without_text(62, 1);
    let init = elf.section_at(".init.text", PROGBITS, 6, 0, 0x100, vec![0x90; 0x40]);
    let text = elf.section_at(".text", PROGBITS, 6, 0, 0x200, vec![0x90; 0x40]);
    elf.symbols(
        ".symtab",
        &[
            ("init_module", 0, 0x20, FUNC, init),
            ("ext_read", 0x10, 0x20, FUNC, text),
        ],
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&elf.build()).expect("to memory");
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = "lib/modules/6.1/kernel/ext.ko.gz";
    write(dir.path(), path, &gzip.finish().expect("to memory"));
    let (store, diag) = (Store::new(), Diagnostics::new());
    let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
    let dso = dsos.intern(format!("/{path}").as_bytes(), DsoKind::Module, None, None);
    dsos.set_module_start(dso, crate::address::Avma(0xffff_ffff_c000_0000));
    let table = dsos.symbols(dso).expect("has symbols");
    let found = table.find(0xffff_ffff_c000_0018).expect("inside");
    assert_eq!(
        (found.name, found.start),
        (&b"ext_read"[..], 0xffff_ffff_c000_0010)
    );
    assert!(table.find(0xffff_ffff_c000_0000).is_none());
}

/// Names of one file lead to one table and to one copy of what was packed: each takes megabytes.
#[test]
fn a_file_of_many_names_is_read_once() {
    use std::io::Write;
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), "pjit-test/prog", &binary(1, "hot"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&[0; 100_000]).expect("to memory");
    write(dir.path(), "m/m.ko.gz", &gzip.finish().expect("to memory"));
    let (store, diag) = (Store::new(), Diagnostics::new());
    let search = SearchPaths {
        symfs: Some(dir.path().to_owned()),
        ..SearchPaths::default()
    };
    let mut dsos = DsoTable::new(&store, search, &diag);
    let names = [PROG, b"/pjit-test/../pjit-test/prog", b"//pjit-test/./prog"];
    let files = names.map(|name| dsos.intern(name, DsoKind::File, None, None));
    let tables = files.map(|dso| dsos.symbols(dso).expect("has symbols"));
    assert!(std::ptr::eq(tables[0], tables[1]) && std::ptr::eq(tables[0], tables[2]));
    let names: [&[u8]; 2] = [b"/m/m.ko.gz", b"/m/../m/m.ko.gz"];
    let mut kept = Vec::new();
    for name in names {
        let dso = dsos.intern(name, DsoKind::Module, None, None);
        dsos.set_module_start(dso, crate::address::Avma(0xffff_ffff_c000_0000));
        assert!(dsos.symbols(dso).is_none(), "zeros are no module");
        kept.push(store.kept());
    }
    assert_eq!(kept[0], kept[1], "unpacked once");
}

#[test]
fn machine_numbers() {
    let store = Store::new();
    let elf = |machine| ElfBuilder::without_text(machine, 3).build();
    let machine = |number| {
        ElfFile::parse(store.keep(elf(number)), &store)
            .expect("sound")
            .arch()
    };
    assert_eq!(machine(183), Some(Arch::Aarch64));
    assert_eq!(machine(3), Some(Arch::X86));
    assert_eq!(machine(243), None);
}

/// The first of two builds of a path was opened before the second was known, as it is where reading goes on beside.
#[test]
fn builds_that_share_a_path_are_kept_apart_in_a_bundle() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let cached = |id: &str| format!(".debug/.build-id/{id}/{}/elf", id.repeat(19));
    write(dir.path(), &cached("01"), &binary(1, "old"));
    write(dir.path(), &cached("02"), &binary(2, "new"));
    write(dir.path(), "pjit-test/prog", &binary(3, "unknown"));
    let ledger = Arc::new(Ledger::default());
    let store = Store::with_ledger(Arc::clone(&ledger));
    let diag = Diagnostics::new();
    let mut dsos = DsoTable::new(&store, below(dir.path()), &diag);
    // A container's file has no entry in the table, and is looked for by path alone.
    for (build, inode) in [(Some(1), 1), (Some(2), 2), (None, 3)] {
        let build = build.and_then(|build| BuildId::new(&[build; 20]));
        let dso = dsos.intern(PROG, DsoKind::File, build, Some((8, 1, inode, 0)));
        let (offset, len) = (FileOffset(0x1000), 0x1000);
        dsos.note_mapped(dso, MappedPart { offset, len }, Timestamp::START);
        assert!(dsos.binary(dso).is_some());
    }
    dsos.note_builds();
    let places = ledger.uses().into_iter().map(|used| used.place);
    let places: Vec<_> = places
        .filter(|place| place.starts_with("/.debug"))
        .collect();
    let of = |id: &str| std::path::PathBuf::from("/").join(cached(id));
    assert_eq!(places, [of("01"), of("02")]);
}

/// `rm`, then `cp -p`: the number of the inode is used again, and the time of writing is the old one. Names of the new build were shown.
#[test]
fn a_file_that_was_made_since_is_another_whatever_its_number() {
    use super::evidence::{Against, Evidence, judge};
    use crate::input::FileFacts;
    use std::time::{Duration, SystemTime};

    let (store, diag) = (Store::new(), Diagnostics::new());
    let elf = ElfFile::parse(store.keep(binary(1, "f")), &store).expect("sound");
    let mut dsos = DsoTable::new(&store, SearchPaths::default(), &diag);
    let dso = dsos.intern(PROG, DsoKind::File, None, Some((8, 1, 77, 0)));
    let (offset, len) = (FileOffset(0x1000), 0x1000);
    dsos.note_mapped(dso, MappedPart { offset, len }, Timestamp::START);
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
    let here = began..began + Duration::from_secs(10);
    let of = |born: SystemTime, links: u64| {
        let facts = FileFacts {
            links,
            device: (8, 1),
            inode: 77,
            size: 1 << 20,
            changed: here.end + Duration::from_secs(5),
            written: began - Duration::from_secs(1000),
            born: Some(born),
        };
        judge(&elf, Some(facts), dsos.get(dso), (Some(&here), None), true)
    };
    let before = began - Duration::from_secs(1000);
    for (born, links) in [(here.end + Duration::from_secs(5), 2), (before, 1)] {
        assert!(matches!(of(born, links), Err(Against::WrittenSince)));
    }
    // perf's cache has a link to it, which changes the file's time.
    let linked = of(before, 2);
    assert!(
        matches!(linked, Ok(Evidence::Fit | Evidence::Path)),
        "{linked:?}"
    );
}
