//! Two oracles over this test program itself: `framehop` for steps by frame information, and the frame
//! information for what the code alone tells.

use std::ops::Range;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, LittleEndian, UnwindContext, UnwindSection,
    UnwindTableRow,
};

use crate::address::{Avma, AvmaRange, Svma};
use crate::dso::DsoId;
use crate::dso::elf::{ElfFile, Segment};
use crate::ids::Idx;
use crate::input::{Door, Store};
use crate::stack_end::StackEnd;
use crate::unwind::discover::Functions;
use crate::unwind::flow::Flow;
use crate::unwind::x86_64::flow;
use crate::unwind::{Arch, CfiTables, CodeLocation, CodeSpace, Unwinder};

use super::support::Sample;

const BASE: u64 = 0x5555_0000_0000;
const SP: u64 = 0x7ffe_0000_1000;

/// This program, mapped at `BASE`.
struct This<'a> {
    elf: ElfFile<'a>,
    text: Segment,
}

impl<'a> CodeSpace<'a> for This<'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        let start = Avma(BASE + self.text.svma.0);
        if !AvmaRange::new(start, self.text.file_size).contains(at) {
            return CodeLocation::Nothing;
        }
        let offset = self.text.file_offset.plus(at.since(start));
        CodeLocation::File {
            dso: DsoId::from_usize(0),
            offset,
            binary: Some(&self.elf),
            debug: None,
        }
    }
}

fn framehop_unwinder<'a>(elf: &ElfFile<'a>) -> UnwinderX86_64<&'a [u8]> {
    let range = |name: &str| {
        elf.section(name)
            .map(|s| s.svma.0..s.svma.0 + s.data.len() as u64)
    };
    let data = |name: &str| elf.section(name).map(|s| s.data);
    let end = elf
        .segments()
        .iter()
        .map(|s| s.svma.0 + s.mem_size)
        .max()
        .unwrap_or(0);
    let mut unwinder = UnwinderX86_64::new();
    unwinder.add_module(Module::new(
        "this".into(),
        BASE..BASE + end,
        BASE,
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            text: data(".text"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..Default::default()
        },
    ));
    unwinder
}

/// Stated addresses of all code that has frame information, sorted.
fn described_code(elf: &ElfFile<'_>) -> Vec<Range<u64>> {
    let section = elf.section(".eh_frame").expect("has frame information");
    let eh_frame = EhFrame::new(section.data, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.svma.0);
    let mut entries = eh_frame.entries(&bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry {
            let fde = partial.parse(|section, bases, at| section.cie_from_offset(bases, at));
            let fde = fde.expect("can be parsed");
            found.push(fde.initial_address()..fde.end_address());
        }
    }
    found.sort_unstable_by_key(|range| range.start);
    found
}

/// One step from many addresses: the same caller wherever framehop has a rule of its own.
#[test]
fn agrees_with_framehop_on_this_program() {
    let store = Store::new();
    let path = std::env::current_exe().expect("has a path");
    let elf = ElfFile::parse(store.map(&Door::named(&path)).expect("is readable"), &store)
        .expect("is ELF");
    if elf.arch() != Some(Arch::X86_64) {
        return;
    }
    let text = *elf
        .segments()
        .iter()
        .find(|s| s.executable)
        .expect("has code");
    let unwinder = framehop_unwinder(&elf);
    let described = described_code(&elf);
    let this = This { elf, text };
    let mut cache = CacheX86_64::<_>::new();

    // Every word of the stack is another code address, so equal callers mean equal rules. The frame
    // pointer lies above whatever fixed frame.
    let code = |n: u64| BASE + text.svma.0 + 0x40 + n * 64;
    let words: Vec<u64> = (0..500).map(code).collect();
    let mut walker = Unwinder::new(Some(Arch::X86_64), Arc::new(CfiTables::new()));
    let (mut compared, mut same) = (0u32, 0u32);
    let steps = 4000;
    for n in 0..steps {
        let ip = BASE + text.svma.0 + text.file_size * n / steps;
        let bp = SP + 3000;
        // Both guess where there is none, framehop without looking.
        let behind = described.partition_point(|range| range.start <= ip - BASE);
        if !behind
            .checked_sub(1)
            .is_some_and(|i| described[i].contains(&(ip - BASE)))
        {
            continue;
        }
        let mut regs = UnwindRegsX86_64::new(ip, SP, bp);
        let mut read = |at: u64| {
            let word = at
                .checked_sub(SP)
                .filter(|o| o % 8 == 0)
                .and_then(|o| usize::try_from(o / 8).ok());
            word.and_then(|i| words.get(i)).copied().ok_or(())
        };
        let frame = FrameAddress::from_instruction_pointer(ip);
        let theirs = unwinder.unwind_frame(frame, &mut regs, &mut cache, &mut read);
        let sample = Sample::x86(ip, SP, bp, &words);
        let mut frames = Vec::new();
        let end = walker.walk(&sample.state(), &this, 64, &mut frames);
        let ours = frames.get(1).map(|frame| frame.lookup.0 + 1);
        match theirs {
            Ok(Some(address)) => {
                compared += 1;
                same += u32::from(ours == Some(address));
            }
            Ok(None) => assert!(ours.is_none() && end == StackEnd::Complete, "{ip:#x}"),
            Err(_) => {}
        }
    }
    // What differs: framehop reads instructions of leaf frames, and guesses where there is no FDE.
    assert!(
        compared > 3000 && same * 1000 >= compared * 999,
        "{same} of {compared}"
    );
}

/// The ranges and rows of some functions that have frame information: a fifth is enough.
fn each_function(elf: &ElfFile<'_>, mut look: impl FnMut(Range<u64>, &[UnwindTableRow<usize>])) {
    let section = elf.section(".eh_frame").expect("has frame information");
    let eh_frame = EhFrame::new(section.data, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.svma.0);
    let mut context = UnwindContext::new();
    let mut entries = eh_frame.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let fde = partial.parse(|section, bases, at| section.cie_from_offset(bases, at));
        let fde = fde.expect("can be parsed");
        if fde.offset() % 5 != 0 || fde.is_signal_trampoline() {
            continue;
        }
        let mut table = fde.rows(&eh_frame, &bases, &mut context).expect("has rows");
        let mut rows = Vec::new();
        while let Ok(Some(row)) = table.next_row() {
            rows.push(row.clone());
        }
        look(fde.initial_address()..fde.end_address(), &rows);
    }
}

/// Every function of this program, followed by its code alone: wherever that tells the height of the
/// stack, it is what the compiler wrote into the call frame information.
#[test]
fn code_agrees_with_call_frame_information() {
    let store = Store::new();
    let path = std::env::current_exe().expect("has a path");
    let elf = ElfFile::parse(store.map(&Door::named(&path)).expect("is readable"), &store)
        .expect("is ELF");
    if elf.arch() != Some(Arch::X86_64) {
        return;
    }
    let mut tally = Tally::default();
    each_function(&elf, |range, rows| {
        let start = elf.file_offset_of(Svma(range.start));
        let len = usize::try_from(range.end - range.start).expect("is short");
        let code = elf.bytes_at(start.expect("is in the file"), len);
        let flow = flow::follow(code.expect("is in the file"), false);
        for row in rows {
            tally.add(&flow, range.start, row);
        }
    });
    // What differs are functions that never return: behind the call the compiler continues with
    // another function's state, or there is nothing that would have to be right.
    assert!(
        tally.rows > 2000 && tally.known * 10 > tally.rows * 8 && tally.wrong * 200 < tally.known,
        "{tally:?}"
    );
}

/// The same where nothing is said of functions: they are found by what leads to them, and followed through jump tables. That
/// a frame is right is still to be proven by the call; so many would go to the wrong place to look for one.
#[test]
fn found_functions_agree_with_call_frame_information() {
    let store = Store::new();
    let path = std::env::current_exe().expect("has a path");
    let elf = ElfFile::parse(store.map(&Door::named(&path)).expect("is readable"), &store)
        .expect("is ELF");
    if elf.arch() != Some(Arch::X86_64) {
        return;
    }
    let functions = Functions::of(&elf).expect("has functions");
    let mut tally = Tally::default();
    each_function(&elf, |range, rows| {
        let Some(around) = functions.around(Svma(range.start)) else {
            return;
        };
        let start = elf.file_offset_of(Svma(around.start));
        let len = usize::try_from(around.end - around.start).expect("is short");
        let flow = flow::follow_found(elf.bytes_from(start.expect("is in the file"), len));
        for row in rows {
            if around.contains(&row.start_address()) {
                tally.add(&flow, around.start, row);
            }
        }
    });
    // Of this program 0.18 % without optimisation, 0.1 % with some: most follow a jump through a table.
    assert!(
        tally.rows > 2000 && tally.known * 10 > tally.rows * 9 && tally.wrong * 400 < tally.known,
        "{tally:?}"
    );
}

#[derive(Debug, Default)]
struct Tally {
    rows: u32,
    known: u32,
    wrong: u32,
}

impl Tally {
    /// Compares the state at the start of a row. A row that begins behind an epilogue describes code that a jump
    /// leads to, which both must know.
    fn add(&mut self, flow: &Flow, base: u64, row: &UnwindTableRow<usize>) {
        let at = usize::try_from(row.start_address() - base).expect("is short");
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
            return;
        };
        self.rows += 1;
        let Some(found) = flow.candidate(
            at,
            <crate::unwind::x86_64::X86_64 as crate::unwind::arch::Architecture>::POINTERS,
        ) else {
            return;
        };
        self.known += 1;
        // With a frame pointer both registers may be used.
        let same_register = u16::from(found.rule.cfa_register) == register.0;
        let same = same_register && i64::from(found.rule.cfa_offset) == offset;
        if same_register && !same {
            self.wrong += 1;
        }
    }
}
