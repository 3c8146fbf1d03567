//! Inlined functions and source lines by somebody else's readers of DWARF, the crate `addr2line` and `llvm-symbolizer`, at thousands
//! of addresses of the sample that has debug information.
//!
//! Compared are names as the files have them, since each program has a demangler of its own. Addresses without a symbol are left
//! out: as in perf, they have no inlined functions.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use object::{Object as _, ObjectSection as _};

use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{pjit, sample, skip};

/// Name and `file:line` of each function around an address, innermost first.
type Frames = Vec<(String, String)>;

/// Where the program is mapped.
const BASE: u64 = 0x40_0000;
/// Bytes between the addresses.
const STEP: usize = 16;

#[test]
fn inlined_functions_are_those_of_other_readers() {
    for program in ["hot-cpp", "hot-rust"] {
        let path = format!("/tmp/pjit-sample/native/{program}");
        let file = sample("native", &format!("symfs{path}"));
        let code = code(&fs::read(&file).expect("the sample has it"));
        let ours = read_by_pjit(&path, &code);
        let with_inlined = ours.iter().filter(|frames| frames.len() > 1).count();
        assert!(
            ours.len() == code.len() && with_inlined > 500,
            "{program}: {with_inlined}"
        );
        let addresses = || code.iter().map(|(_, address)| *address);
        let symbolizer = [
            "llvm-symbolizer",
            "--output-style=GNU",
            "--no-demangle",
            "-i",
            "-f",
            "-a",
        ];
        match read_by(&symbolizer, &file, addresses()) {
            // The outermost name is the symbol's, which may be local to a file and then have none in DWARF.
            Some(theirs) => compare(program, &ours, &theirs, 0, |frames| {
                let names = frames.iter().rev().skip(1).map(|f| f.0.clone());
                names.chain(frames.iter().map(|f| f.1.clone())).collect()
            }),
            None => skip("llvm-symbolizer", program),
        }
        // Symbols are not its matter, so the outermost name is that of DWARF.
        let theirs = read_by_crate(&file, addresses());
        compare(program, &ours, &theirs, 0, |frames| {
            let names = frames.iter().rev().skip(1).map(|f| f.0.clone());
            names.chain(frames.iter().map(|f| f.1.clone())).collect()
        });
    }
}

/// Offset in the file and stated address of every sixteenth byte of the program's code.
pub(crate) fn code(elf: &[u8]) -> Vec<(u64, u64)> {
    let (offset, address, size) = code_segment(elf);
    (0..size)
        .step_by(STEP)
        .map(|i| (offset + i, address + i))
        .collect()
}

/// File offset, address and size of a program's code.
fn code_segment(elf: &[u8]) -> (u64, u64, u64) {
    let u64_at = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().expect("eight bytes"));
    let count = usize::from(u16::from_le_bytes([elf[56], elf[57]]));
    let table = usize::try_from(u64_at(32)).expect("it is in the file");
    let header = (0..count)
        .map(|i| table + 56 * i)
        // PT_LOAD, readable and executable.
        .find(|&at| u64_at(at) == 1 | 5 << 32)
        .expect("a program has code");
    (u64_at(header + 8), u64_at(header + 16), u64_at(header + 32))
}

/// A recording with a sample at each of the addresses of a file.
pub(crate) fn recording_of(path: &[u8], code: &[(u64, u64)]) -> Vec<u8> {
    recording_mapped(path, (0, 0x100_0000), code)
}

/// The same of a program whose code was mapped as loaders do it.
pub(crate) fn recording_of_program(path: &[u8], elf: &[u8], code: &[(u64, u64)]) -> Vec<u8> {
    let (offset, _, size) = code_segment(elf);
    let start = offset & !0xfff;
    let end = (offset + size).next_multiple_of(0x1000);
    recording_mapped(path, (start, end - start), code)
}

fn recording_mapped(path: &[u8], (start, len): (u64, u64), code: &[(u64, u64)]) -> Vec<u8> {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"program");
    recording.map(7, BASE + start, len, start, path);
    for (i, (offset, _)) in (0..).zip(code) {
        recording.sample(&Sample {
            ip: BASE + offset,
            pid: 7,
            tid: 7,
            time: 1000 + i,
            period: 1,
            chain: &[CONTEXT_USER, BASE + offset],
            user: None,
        });
    }
    recording.file()
}

/// The same, printed.
fn read_by_pjit(path: &str, code: &[(u64, u64)]) -> Vec<Frames> {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    fs::write(&data, recording_of(path.as_bytes(), code)).expect("it can be written");
    let output = pjit()
        .args(["script", "-F", "ip,sym,srcline", "--full-source-path"])
        .args(["--no-demangle", "--symfs"])
        .arg(sample("native", "symfs"))
        .arg(&data)
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    text.trim_end().split("\n\n").map(frames_of_block).collect()
}

/// A line with address and name for each frame, below it one with the place where that is known.
fn frames_of_block(block: &str) -> Frames {
    let mut frames = Frames::new();
    for line in block.lines().filter(|line| !line.is_empty()) {
        let line = line.strip_suffix(" (inlined)").unwrap_or(line);
        if let Some(frame) = line.strip_prefix('\t') {
            let (_, name) = frame
                .trim_start()
                .split_once(' ')
                .expect("address and name");
            frames.push((name.to_owned(), "??:0".to_owned()));
        } else {
            frames.last_mut().expect("a place has a frame").1 = line.trim().to_owned();
        }
    }
    frames
}

/// What the crate `addr2line` says.
fn read_by_crate(file: &Path, addresses: impl Iterator<Item = u64>) -> Vec<Frames> {
    let bytes = fs::read(file).expect("the sample has it");
    let elf =
        object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).expect("a program");
    let sections = gimli::DwarfSections::load(|id| {
        let packed = elf.section_by_name(id.name()).map(|s| s.compressed_data());
        let packed = packed.transpose().expect("sections are in the file");
        Ok::<_, gimli::Error>(packed.map(unpacked).unwrap_or_default())
    });
    let sections = sections.expect("all are there or empty");
    let dwarf = sections.borrow(|section| gimli::EndianSlice::new(section, gimli::LittleEndian));
    let context = addr2line::Context::from_dwarf(dwarf).expect("units can be read");
    let frames_at = |address| {
        let mut found = context
            .find_frames(address)
            .skip_all_loads()
            .expect("it can be read");
        let mut frames = Frames::new();
        while let Some(frame) = found.next().expect("entries can be read") {
            let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
            let place = frame
                .location
                .and_then(|l| Some((l.file?, l.line.unwrap_or(0))));
            let place = place.map_or("??:0".to_owned(), |(file, line)| format!("{file}:{line}"));
            frames.push((name.map_or("??".to_owned(), Into::into), place));
        }
        if frames.is_empty() {
            frames.push(("??".to_owned(), "??:0".to_owned()));
        }
        frames
    };
    addresses.map(frames_at).collect()
}

/// The bytes of a section.
fn unpacked(packed: object::CompressedData<'_>) -> Vec<u8> {
    let mut data = Vec::new();
    let done = match packed.format {
        object::CompressionFormat::Zlib => {
            flate2::read::ZlibDecoder::new(packed.data).read_to_end(&mut data)
        }
        object::CompressionFormat::None => packed.data.take(u64::MAX).read_to_end(&mut data),
        other => panic!("{other:?}"),
    };
    done.expect("it can be unpacked");
    data
}

/// What a program in the manner of `addr2line` says; `None` when there is no such program.
fn read_by(
    command: &[&str],
    file: &Path,
    addresses: impl Iterator<Item = u64>,
) -> Option<Vec<Frames>> {
    let folder = tempfile::tempdir().expect("a folder");
    let questions = folder.path().join("questions");
    let text: Vec<String> = addresses.map(|address| format!("{address:#x}\n")).collect();
    fs::write(&questions, text.concat()).expect("it can be written");
    let output = Command::new(command[0])
        .args(&command[1..])
        .arg("-e")
        .arg(file)
        .stdin(fs::File::open(&questions).expect("it can be read"))
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).expect("names of the sample are ASCII");
    let mut answers: Vec<Frames> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
        } else {
            let place = lines.next()?.split(" (discriminator").next()?;
            answers.last_mut()?.push((line.to_owned(), known(place)));
        }
    }
    Some(answers)
}

/// One spelling for places that are not known or only half: `??:?`, `file:?`.
fn known(place: &str) -> String {
    match place.rsplit_once(':') {
        Some(("??", _)) | None => "??:0".to_owned(),
        Some((file, "?")) => format!("{file}:0"),
        Some(_) => place.to_owned(),
    }
}

/// Fails when more than `tolerated` answers differ in a part of the frames.
fn compare(
    program: &str,
    ours: &[Frames],
    theirs: &[Frames],
    tolerated: usize,
    part: impl Fn(&Frames) -> Vec<String>,
) {
    assert_eq!(ours.len(), theirs.len(), "each question has an answer");
    let pairs: Vec<_> = ours
        .iter()
        .zip(theirs)
        .filter(|(ours, _)| ours[0].0 != "[unknown]")
        .collect();
    let different: Vec<_> = pairs
        .iter()
        .filter(|(ours, theirs)| part(ours) != part(theirs))
        .collect();
    assert!(pairs.len() > 1000, "{program}: {}", pairs.len());
    assert!(
        different.len() <= tolerated,
        "{program}: {} of {} differ: {:?}",
        different.len(),
        pairs.len(),
        different.first()
    );
}
