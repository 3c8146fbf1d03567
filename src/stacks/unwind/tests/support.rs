//! A process for the walker: ELF images, mappings, registers and a stack.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, DebugFrame, EhFrame, EndianVec,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, Register};

use crate::address::{Avma, AvmaRange, FileOffset, Timestamp};
use crate::dso::{DsoId, elf::ElfFile};
use crate::ids::{Idx, ThreadId};
use crate::input::Store;
use crate::jit::JitCodeId;
use crate::perfdata::Registers;
use crate::session::SpaceId;
use crate::stack_end::StackEnd;
use crate::unwind::{
    Arch, CfiTables, CodeLocation, CodeSpace, FrameOrigin, FramePlaceId, Lifetime, Lookup, Scene,
    Unwinder, UserFrame, UserState,
};

/// Where the text of every image lies in its file, and at which stated address: as lld lays out files,
/// the two differ.
pub(super) const TEXT_OFFSET: u64 = 0x1000;
pub(super) const TEXT_SVMA: u64 = 0x2000;
/// Where the program starts, from the begin of its text.
const ENTRY: u64 = 0x300;

/// A section to put into an image.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) svma: u64,
    pub(super) data: Vec<u8>,
}

/// An ELF file with one executable segment of `text` and further sections.
pub(super) fn image(machine: u16, text: &[u8], parts: &[Part]) -> Vec<u8> {
    let mut file = vec![0; usize::try_from(TEXT_OFFSET).expect("small")];
    file.extend_from_slice(text);
    let mut names = b"\0".to_vec();
    let mut headers = vec![[0u8; 64]];
    for part in parts {
        headers.push(section(
            &mut names,
            part.name,
            part.svma,
            file.len(),
            part.data.len(),
            1,
        ));
        file.extend_from_slice(&part.data);
    }
    let name_at = file.len();
    let with_own_name = names.len() + ".shstrtab\0".len();
    headers.push(section(
        &mut names,
        ".shstrtab",
        0,
        name_at,
        with_own_name,
        3,
    ));
    file.extend_from_slice(&names);
    let header_at = file.len();
    headers.iter().for_each(|h| file.extend_from_slice(h));

    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &3u16.to_le_bytes());
    put(18, &machine.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &(TEXT_SVMA + ENTRY).to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(40, &(header_at as u64).to_le_bytes());
    let small = |n: usize| u16::try_from(n).expect("small").to_le_bytes();
    for (at, value) in [
        (52, 64),
        (54, 56),
        (56, 1),
        (58, 64),
        (60, headers.len()),
        (62, headers.len() - 1),
    ] {
        put(at, &small(value));
    }
    put(64, &1u32.to_le_bytes());
    put(68, &5u32.to_le_bytes());
    let len = text.len() as u64;
    for (at, value) in [
        (72, TEXT_OFFSET),
        (80, TEXT_SVMA),
        (88, TEXT_SVMA),
        (96, len),
        (104, len),
        (112, 0x1000),
    ] {
        put(at, &value.to_le_bytes());
    }
    file
}

fn section(
    names: &mut Vec<u8>,
    name: &str,
    svma: u64,
    at: usize,
    len: usize,
    kind: u32,
) -> [u8; 64] {
    let mut header = [0; 64];
    let name_at = u32::try_from(names.len()).expect("small");
    names.extend_from_slice(name.as_bytes());
    names.push(0);
    header[0..4].copy_from_slice(&name_at.to_le_bytes());
    header[4..8].copy_from_slice(&kind.to_le_bytes());
    header[16..24].copy_from_slice(&svma.to_le_bytes());
    header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
    header[32..40].copy_from_slice(&(len as u64).to_le_bytes());
    header
}

/// A function's frame information.
pub(super) struct Function {
    /// From the start of the text.
    pub(super) start: u64,
    pub(super) len: u32,
    pub(super) rows: Vec<(u32, CallFrameInstruction)>,
    pub(super) signal: bool,
}

impl Function {
    pub(super) fn new(start: u64, len: u32, rows: Vec<(u32, CallFrameInstruction)>) -> Self {
        Self {
            start,
            len,
            rows,
            signal: false,
        }
    }
}

fn frame_table(machine: u16, functions: &[Function], eh: bool) -> FrameTable {
    let encoding = Encoding {
        format: Format::Dwarf32,
        version: if eh { 1 } else { 4 },
        address_size: 8,
    };
    let mut table = FrameTable::default();
    for function in functions {
        let (align, ra) = if machine == 62 { (1, 16) } else { (4, 30) };
        let mut cie = CommonInformationEntry::new(encoding, align, -8, Register(ra));
        if machine == 62 {
            cie.add_instruction(CallFrameInstruction::Cfa(Register(7), 8));
            cie.add_instruction(CallFrameInstruction::Offset(Register(16), -8));
        } else {
            cie.add_instruction(CallFrameInstruction::Cfa(Register(31), 0));
        }
        if eh {
            cie.fde_address_encoding = gimli::DW_EH_PE_absptr;
        }
        cie.signal_trampoline = function.signal;
        let cie = table.add_cie(cie);
        let mut fde =
            FrameDescriptionEntry::new(Address::Constant(TEXT_SVMA + function.start), function.len);
        for (offset, instruction) in &function.rows {
            fde.add_instruction(*offset, instruction.clone());
        }
        table.add_fde(cie, fde);
    }
    table
}

/// `.eh_frame` without search table.
pub(super) fn eh_frame(machine: u16, functions: &[Function]) -> Part {
    let mut section = EhFrame(EndianVec::new(LittleEndian));
    frame_table(machine, functions, true)
        .write_eh_frame(&mut section)
        .expect("can be written");
    Part {
        name: ".eh_frame",
        svma: 0x10_0000,
        data: section.0.into_vec(),
    }
}

/// `.debug_frame`.
pub(super) fn debug_frame(machine: u16, functions: &[Function]) -> Part {
    let mut section = DebugFrame(EndianVec::new(LittleEndian));
    frame_table(machine, functions, false)
        .write_debug_frame(&mut section)
        .expect("can be written");
    Part {
        name: ".debug_frame",
        svma: 0,
        data: section.0.into_vec(),
    }
}

/// A process: files mapped at addresses.
pub(super) struct Process<'a> {
    pub(super) files: Vec<(AvmaRange, ElfFile<'a>)>,
    pub(super) anonymous: Vec<AvmaRange>,
}

impl<'a> Process<'a> {
    /// One file, its text at `base`.
    pub(super) fn of(store: &'a Store, base: u64, file: Vec<u8>, text_len: u64) -> Self {
        let elf = ElfFile::parse(store.keep(file), store).expect("is an ELF file");
        let range = AvmaRange::new(Avma(base), text_len);
        Self {
            files: vec![(range, elf)],
            anonymous: Vec::new(),
        }
    }
}

impl<'a> CodeSpace<'a> for Process<'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        for (n, (range, elf)) in (0..).zip(&self.files) {
            if range.contains(at) {
                let offset = FileOffset(TEXT_OFFSET + at.since(range.start));
                return CodeLocation::File {
                    dso: DsoId::from_usize(n),
                    offset,
                    binary: Some(elf),
                    debug: Some(elf),
                };
            }
        }
        if self.anonymous.iter().any(|range| range.contains(at)) {
            CodeLocation::Anonymous
        } else {
            CodeLocation::Nothing
        }
    }
}

/// Registers by perf's numbers, and a stack.
pub(super) struct Sample {
    mask: u64,
    values: Vec<u8>,
    pub(super) abi: u64,
    pub(super) stack: Vec<u8>,
}

impl Sample {
    pub(super) fn new(registers: &[(u32, u64)], stack: &[u64]) -> Self {
        let mut registers = registers.to_vec();
        registers.sort_unstable();
        let mask = registers
            .iter()
            .fold(0, |mask, (number, _)| mask | 1 << number);
        let values = registers
            .iter()
            .flat_map(|(_, value)| value.to_le_bytes())
            .collect();
        Self {
            mask,
            values,
            abi: 2,
            stack: stack.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }
    }

    /// x86-64: ip, sp and bp.
    pub(super) fn x86(ip: u64, sp: u64, bp: u64, stack: &[u64]) -> Self {
        Self::new(&[(8, ip), (7, sp), (6, bp)], stack)
    }

    /// aarch64: pc, sp, x29 and x30.
    pub(super) fn arm(pc: u64, sp: u64, fp: u64, lr: u64, stack: &[u64]) -> Self {
        Self::new(&[(32, pc), (31, sp), (29, fp), (30, lr)], stack)
    }

    pub(super) fn state(&self) -> UserState<'_> {
        UserState {
            regs: Registers {
                abi: self.abi,
                mask: self.mask,
                values: &self.values,
            },
            stack: &self.stack,
        }
    }
}

/// Lookup addresses and origins of a walk, and its end. Walks twice: the second time by memoised rules.
pub(super) fn walk<'a>(
    arch: Arch,
    process: &impl CodeSpace<'a>,
    sample: &Sample,
) -> (Vec<(u64, FrameOrigin)>, StackEnd) {
    let mut unwinder = Unwinder::new(Some(arch), Arc::new(CfiTables::new()));
    let mut frames: Vec<UserFrame> = Vec::new();
    let first = unwinder.walk(&sample.state(), process, 64, &mut frames);
    let before = frames.clone();
    let second = unwinder.walk(&sample.state(), process, 64, &mut frames);
    assert_eq!(
        (first, before),
        (second, frames.clone()),
        "the memo changes nothing"
    );
    along_the_last_walk(arch, process, sample);
    (
        frames.iter().map(|f| (f.lookup.0, f.origin)).collect(),
        first,
    )
}

/// A process in which nothing changes, and one thread of it.
struct Still<'p, P> {
    process: &'p P,
    noted: RefCell<BTreeMap<Avma, FramePlaceId>>,
}

impl<'a, P: CodeSpace<'a>> CodeSpace<'a> for Still<'_, P> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        self.process.locate(at)
    }

    fn locate_for(&self, at: Avma) -> Lookup<'_, 'a> {
        Lookup {
            place: self.process.locate(at),
            life: Lifetime::ALWAYS,
            noted: self.noted.borrow().get(&at).copied(),
        }
    }

    fn note(&self, at: Avma, place: FramePlaceId) {
        self.noted.borrow_mut().insert(at, place);
    }

    fn scene(&self) -> Option<Scene> {
        Some(Scene {
            space: SpaceId(0),
            thread: ThreadId(1),
            time: Timestamp(1),
        })
    }

    fn function_bounds(&self, dso: DsoId, at: FileOffset) -> Option<Range<FileOffset>> {
        self.process.function_bounds(dso, at)
    }

    fn is_vdso(&self, dso: DsoId) -> bool {
        self.process.is_vdso(dso)
    }

    fn frame_size(&self, code: JitCodeId) -> Option<u64> {
        self.process.frame_size(code)
    }

    fn mapped_files(&self, part: &[u8]) -> Vec<CodeLocation<'_, 'a>> {
        self.process.mapped_files(part)
    }
}

/// Whatever word of the stack is another one than in the walk before, the walk is the same as without that.
fn along_the_last_walk<'a>(arch: Arch, process: &impl CodeSpace<'a>, sample: &Sample) {
    let still = Still {
        process,
        noted: RefCell::default(),
    };
    let mut with_last = Unwinder::new(Some(arch), Arc::new(CfiTables::new()));
    let mut alone = Unwinder::new(Some(arch), Arc::new(CfiTables::new()));
    let mut check = |stack: Vec<u8>| {
        let sample = Sample {
            mask: sample.mask,
            values: sample.values.clone(),
            abi: sample.abi,
            stack,
        };
        let (mut frames, mut expected) = (Vec::new(), Vec::new());
        let end = alone.walk(&sample.state(), process, 64, &mut expected);
        for _ in 0..2 {
            let by_last = with_last.walk(&sample.state(), &still, 64, &mut frames);
            assert_eq!((by_last, &frames), (end, &expected));
            assert_eq!(with_last.span(), alone.span());
        }
    };
    let words = sample.stack.len() / 8;
    for word in 0..words.min(16) {
        check(sample.stack.clone());
        let mut other = sample.stack.clone();
        other[word * 8..][..8].fill(0);
        check(other.clone());
        other.copy_from_slice(&sample.stack);
        other.copy_within((words - 1 - word) * 8..(words - word) * 8, word * 8);
        check(other);
        check(sample.stack[..word * 8].to_vec());
    }
}

/// Only the addresses.
pub(super) fn addresses(frames: &[(u64, FrameOrigin)]) -> Vec<u64> {
    frames.iter().map(|f| f.0).collect()
}
