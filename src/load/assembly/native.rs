//! Listings of functions of files: bytes of an ELF file, targets named by its symbols.

use rustc_hash::FxHashMap;

use super::data::{GAP, Sweep};
use super::decoded::{Decoded, Kind, NOT_KNOWN, push_text};
use super::functions::said_of;
use super::names::{Names, push_name, section_of};
use super::{Code, Listing, MOST_BYTES, MOST_INSTRUCTIONS, Material, Row, SourcePlace};
use crate::address::{FileOffset, Svma};
use crate::arch::Arch;
use crate::disasm::{Disassembler, Syntax, for_arch};
use crate::dso::elf::ElfFile;
use crate::dso::{DsoId, DsoKind, FileTrouble};
use crate::parallel::in_parallel;

/// What a file holds of a function.
pub(super) struct FileCode<'a> {
    dso: DsoId,
    file: String,
    arch: Arch,
    disassembler: Box<dyn Disassembler>,
    start: u64,
    to_query: u64,
    bytes: &'a [u8],
    is_cut: bool,
}

/// The bytes of a symbol. `Err`: what is to blame, and what to do.
pub(super) fn file_code<'a>(
    material: &Material<'_, 'a>,
    syntax: Syntax,
    dso: DsoId,
    start: u64,
    end: u64,
) -> Result<FileCode<'a>, (String, String)> {
    let dsos = &material.session.dsos;
    let known = dsos.get(dso);
    let path = String::from_utf8_lossy(&known.long_name).into_owned();
    let no = |reason: &str| Err((path.clone(), reason.to_owned()));
    let (elf, svma) = match known.kind {
        DsoKind::File | DsoKind::Vdso => {
            let Some(elf) = dsos.binary(dso) else {
                return no(said_of(dsos.trouble(dso).unwrap_or(FileTrouble::Missing)));
            };
            (elf, elf.svma_of(FileOffset(start)).map(|svma| svma.0))
        }
        DsoKind::Kernel => match dsos.vmlinux() {
            Some((elf, bias)) => (elf, Some(start.wrapping_add(bias))),
            None => {
                return no(
                    "has no code at hand: give the recorded kernel's vmlinux with -k FILE (kallsyms has names only)",
                );
            }
        },
        DsoKind::Module => return no("is a kernel module; code of modules is not shown"),
        DsoKind::KernelSymbol => return no("is made by the kernel, its code was not recorded"),
        DsoKind::Anonymous | DsoKind::JitDump | DsoKind::Special => {
            return no("has no code that was recorded");
        }
    };
    let of_arch = |arch| Some((arch, for_arch(arch, syntax)?));
    let Some((arch, disassembler)) = elf.arch().and_then(of_arch) else {
        return no(NOT_KNOWN);
    };
    let offset = svma.and_then(|svma| elf.file_offset_of(Svma(svma)));
    let (Some(svma), Some(offset)) = (svma, offset) else {
        return no("has no bytes for this function: it lies outside of what the file holds");
    };
    let len = end.saturating_sub(start).min(MOST_BYTES);
    let bytes = elf.bytes_from(offset, usize::try_from(len).unwrap_or(0));
    if bytes.is_empty() {
        return no("has no bytes for this function: it lies outside of what the file holds");
    }
    let file = match known.kind {
        DsoKind::Kernel => dsos.vmlinux_path().unwrap_or("vmlinux").to_owned(),
        _ => path,
    };
    Ok(FileCode {
        dso,
        file,
        arch,
        disassembler,
        start: svma,
        to_query: start.wrapping_sub(svma),
        bytes,
        is_cut: bytes.len() as u64 == MOST_BYTES && end.saturating_sub(start) > MOST_BYTES,
    })
}

pub(super) fn decode_file<'a>(
    function: usize,
    mut code: FileCode<'a>,
    hits: &[u64],
) -> Decoded<'a> {
    let sweep = Sweep {
        bytes: code.bytes,
        start: code.start,
        hits,
        arch: code.arch,
        most: MOST_INSTRUCTIONS,
    };
    let pieces = sweep.native(&mut *code.disassembler);
    let bytes = &code.bytes[..pieces.end()];
    Decoded {
        function,
        file: code.file,
        start: code.start,
        bytes,
        is_cut: code.is_cut || bytes.len() < code.bytes.len(),
        arch: code.arch,
        pieces,
        kind: Kind::File {
            dso: code.dso,
            to_query: code.to_query,
        },
    }
}

/// The file whose symbols name addresses of a DSO.
fn file_of<'s, 'a>(material: &Material<'s, 'a>, dso: DsoId) -> Option<&'s ElfFile<'a>> {
    match material.session.dsos.get(dso).kind {
        DsoKind::Kernel => material.session.dsos.vmlinux().map(|(elf, _)| elf),
        _ => material.session.dsos.binary(dso),
    }
}

/// Names of all addresses that the functions of a file mention, by file.
pub(super) fn file_names<'d>(
    material: &Material<'_, '_>,
    all: impl Iterator<Item = &'d Decoded<'d>>,
) -> FxHashMap<DsoId, Names> {
    let mut wanted: FxHashMap<DsoId, Vec<u64>> = FxHashMap::default();
    for decoded in all {
        let Kind::File { dso, .. } = decoded.kind else {
            continue;
        };
        let mentioned = decoded
            .pieces
            .iter()
            .flat_map(|piece| [piece.found.target, piece.found.memory]);
        let wanted = wanted.entry(dso).or_default();
        wanted.push(decoded.start);
        wanted.extend(mentioned.flatten());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let found = in_parallel(wanted, material.threads, |(dso, wanted)| {
        let table = material.session.dsos.symbols(dso);
        let is_file = matches!(material.session.dsos.get(dso).kind, DsoKind::File);
        let debug = material.session.dsos.debug(dso).filter(|_| is_file);
        let names = file_of(material, dso).map(|elf| {
            Names::of(
                elf,
                debug,
                table.filter(|_| is_file),
                wanted,
                material.threads,
            )
        });

        (dso, names.unwrap_or_default())
    });
    found.into_iter().collect()
}

/// The listing of a function of a file.
pub(super) fn finish(
    material: &Material<'_, '_>,
    names: &Names,
    dso: DsoId,
    decoded: Decoded<'_>,
    mut place: impl FnMut(u64) -> Option<SourcePlace>,
) -> Listing {
    let section = file_of(material, dso).and_then(|elf| section_of(elf, decoded.start));
    let mut symbol = String::new();
    if let Some(name) = names.at(decoded.start) {
        push_name(&name, &mut symbol);
    }
    let mut rows = vec![
        Row::Text(format!(
            "Disassembly of section {}:",
            String::from_utf8_lossy(section.unwrap_or_default())
        )),
        Row::Text(format!("{:016x} <{symbol}>:", decoded.start)),
    ];
    let mut texts = String::new();
    for piece in decoded.pieces.iter() {
        let text = decoded.pieces.text(piece);
        if text == GAP {
            rows.push(Row::Text(GAP.to_owned()));
            continue;
        }
        let address = decoded.start.wrapping_add(piece.offset.into());
        let start = texts.len();
        push_text(piece, text, |target| names.at(target), &mut texts);
        rows.push(Row::Code(Code {
            offset: piece.offset,
            len: piece.len,
            text: (start, texts.len()),
            place: place(address),
        }));
    }
    rows.extend(decoded.end());
    Listing {
        function: decoded.function,
        file: decoded.file,
        start: decoded.start,
        bytes: decoded.bytes.to_vec(),
        has_words: decoded.arch.has_words(),
        rows,
        texts,
    }
}
