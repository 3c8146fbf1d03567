//! Code of any bytes, for each processor: it ends, and every instruction has a length and a text without control characters.
#![no_main]

use pjit::arch::Arch;
use pjit::disasm::{Syntax, for_arch};

const KINDS: [(Arch, Syntax); 4] = [
    (Arch::X86_64, Syntax::Att),
    (Arch::X86_64, Syntax::Intel),
    (Arch::X86, Syntax::Att),
    (Arch::Aarch64, Syntax::Att),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for (architecture, syntax) in KINDS {
        let mut disassembler = for_arch(architecture, syntax).expect("has one");
        let (mut at, mut text) = (0, String::new());
        while at < bytes.len() {
            let found = disassembler.decode(&bytes[at..], at as u64, &mut text);
            assert!(found.len > 0 && !text.is_empty());
            assert!(!text.contains(|c: char| c.is_control() && c != '\t'));
            at += usize::from(found.len);
        }
    }
});
