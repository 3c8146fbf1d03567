//! The same steps by `framehop`, over the frame information of this test program.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use crate::address::{Avma, AvmaRange, FileOffset};
use crate::dso::DsoId;
use crate::dso::elf::{ElfFile, Machine, Segment};
use crate::input::Store;
use crate::profile::StackEnd;
use crate::unwind::{Arch, CodeSpace, Place};

use super::support::{Sample, addresses, walk};

const BASE: u64 = 0x5555_0000_0000;
const SP: u64 = 0x7ffe_0000_1000;

/// This program, mapped at `BASE`.
struct This<'a> {
    elf: ElfFile<'a>,
    text: Segment,
}

impl<'a> CodeSpace<'a> for This<'a> {
    fn locate(&self, at: Avma) -> Place<'_, 'a> {
        let start = Avma(BASE + self.text.svma.0);
        if !AvmaRange::new(start, self.text.file_size).contains(at) {
            return Place::Nothing;
        }
        let offset = self.text.file_offset.plus(at.since(start));
        Place::File {
            dso: DsoId(0),
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

/// One step from many addresses: the same caller wherever framehop has a rule of its own.
#[test]
fn agrees_with_framehop_on_this_program() {
    let store = Store::new();
    let path = std::env::current_exe().expect("has a path");
    let elf = ElfFile::parse(store.map(&path).expect("is readable"), &store).expect("is ELF");
    if elf.machine() != Machine::X86_64 {
        return;
    }
    let text = *elf
        .segments()
        .iter()
        .find(|s| s.executable)
        .expect("has code");
    let unwinder = framehop_unwinder(&elf);
    let this = This { elf, text };
    let mut cache = CacheX86_64::<_>::new();

    // Every word of the stack is another code address, so equal callers mean equal rules. The frame
    // pointer lies above whatever fixed frame.
    let code = |n: u64| BASE + text.svma.0 + 0x40 + n * 64;
    let words: Vec<u64> = (0..500).map(code).collect();
    let (mut compared, mut same) = (0u32, 0u32);
    let steps = 4000;
    for n in 0..steps {
        let ip = BASE + text.svma.0 + text.file_size * n / steps;
        let bp = SP + 3000;
        let offset = FileOffset(text.file_offset.0 + text.file_size * n / steps);
        if this.elf.bytes_at(offset, 1) == Some(&[0xcc]) {
            continue; // padding between functions, which nobody executes
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
        let (frames, end) = walk(Arch::X86_64, &this, &Sample::x86(ip, SP, bp, &words));
        let ours = addresses(&frames).get(1).map(|at| at + 1);
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
        compared > 3000 && same * 1000 >= compared * 995,
        "{same} of {compared}"
    );
}
