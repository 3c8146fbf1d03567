//! Texts of instructions, against objdump: this program's own code, the JIT code of the samples, and aarch64 code of a Rust program.
//!
//! Skipped with a message where there is no objdump (of aarch64: binutils-aarch64-linux-gnu). `scripts/compare-disassembly` does
//! the same for whole libraries.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use pjit::arch::Arch;
use pjit::disasm::{Syntax, for_arch};

use crate::support::{sample, skip};

const BASE: u64 = 0x100_0000;

/// Address to text, of all lines of objdump's output that are instructions.
fn by_objdump(program: &str, args: &[&str], code: &[u8]) -> Option<HashMap<u64, String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("code");
    fs::write(&file, code).expect("it can be written");
    let output = Command::new(program)
        .args(["-D", "-b", "binary", "-w", "--no-show-raw-insn"])
        .args(args)
        .arg(format!("--adjust-vma={BASE:#x}"))
        .arg(&file)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let instruction = |line: &str| {
        let (address, text) = line.trim_start().split_once(":\t")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        Some((address, bare(text)))
    };
    Some(text.lines().filter_map(instruction).collect())
}

/// Without what a jump leads to in a comment, and targets of jumps without `0x`, as in files with symbols.
fn bare(text: &str) -> String {
    let text = text.split("        # ").next().unwrap_or(text);
    let (text, comment) = text.split_once("  // ").unwrap_or((text, ""));
    let text = text.trim_end();
    let mnemonic = text
        .trim_start_matches("notrack ")
        .trim_start_matches("bnd ");
    let mnemonic = mnemonic.split([' ', '\t']).next().unwrap_or_default();
    let is_jump = mnemonic.starts_with(['j', 'b'])
        || matches!(
            mnemonic,
            "call" | "adr" | "adrp" | "cbz" | "cbnz" | "tbz" | "tbnz" | "ldr" | "ldrsw"
        )
        || mnemonic.starts_with("loop")
        || mnemonic == "xbegin";
    let mut bare = match text.rfind([' ', '\t']).map(|at| text.split_at(at + 1)) {
        Some((front, target)) if is_jump && target.starts_with("0x") => {
            format!("{front}{}", &target[2..])
        }
        _ => text.to_owned(),
    };
    if !comment.is_empty() {
        bare.push_str("  // ");
        bare.push_str(comment);
    }
    bare
}

fn by_pjit(arch: Arch, syntax: Syntax, code: &[u8]) -> HashMap<u64, String> {
    let mut disassembler = for_arch(arch, syntax).expect("has one");
    let (mut at, mut text) = (0, String::new());
    let mut found = HashMap::new();
    while at < code.len() {
        let address = BASE + at as u64;
        let instruction = disassembler.decode(&code[at..], address, &mut text);
        found.insert(address, format!("{text}{}", instruction.comment));
        at += usize::from(instruction.len);
    }
    found
}

/// Share of objdump's texts that are pjit's, and some of the others.
fn share(theirs: &HashMap<u64, String>, ours: &HashMap<u64, String>) -> (f64, Vec<String>) {
    let differs = |(address, text): &(&u64, &String)| ours.get(address) != Some(text);
    let others: Vec<_> = theirs.iter().filter(differs).collect();
    let share = 1.0 - others.len() as f64 / theirs.len() as f64;
    let text = |(address, text): &(&u64, &String)| {
        format!("{address:x}: {text} | {:?}", ours.get(address))
    };
    (share, others.iter().take(5).map(text).collect())
}

fn compare_x86(name: &str, syntax: Syntax, code: &[u8], wanted: f64) {
    let option = if syntax == Syntax::Intel {
        "intel"
    } else {
        "att"
    };
    let args = ["-m", "i386:x86-64", "-M", option];
    let Some(theirs) = by_objdump("objdump", &args, code) else {
        return skip("objdump", "it cannot be run");
    };
    let (share, others) = share(&theirs, &by_pjit(Arch::X86_64, syntax, code));
    assert!(
        theirs.len() > 100,
        "{name}: objdump prints {} lines",
        theirs.len()
    );
    assert!(share >= wanted, "{name}: {share}: {others:#?}");
}

/// A quarter of a megabyte from the beginning of a section of a file, found without the library's readers.
fn text_section(file: &Path) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().ok()?;
    let raw = folder.path().join("raw");
    let copied = Command::new("objcopy")
        .args(["-O", "binary", "--only-section=.text"])
        .args([file, &raw])
        .status()
        .ok()?;
    let mut code = fs::read(raw).ok().filter(|_| copied.success())?;
    code.truncate(1 << 18);
    Some(code)
}

/// The code of all loads of a dump, without its file's header and the records around it.
fn jit_code(dump: &Path) -> Vec<u8> {
    let data = fs::read(dump).expect("the sample is there");
    let number = |at: usize, size: usize| {
        let bytes = &data[at..at + size];
        bytes
            .iter()
            .rev()
            .fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let (mut at, mut code) = (number(8, 4), Vec::new());
    while at + 16 <= data.len() {
        let (kind, size) = (number(at, 4), number(at + 4, 4));
        if size < 16 || at + size > data.len() {
            break;
        }
        if kind == 0 {
            let length = number(at + 40, 8);
            code.extend_from_slice(&data[at + size - length..at + size]);
            // So that what follows is decoded from its start.
            code.extend_from_slice(&[0x90; 16]);
        }
        at += size;
    }
    code
}

#[cfg(target_arch = "x86_64")]
#[test]
fn this_programs_own_code() {
    let own = std::env::current_exe().expect("it has a path");
    match text_section(&own) {
        Some(code) => {
            compare_x86("own code", Syntax::Att, &code, 0.9995);
            compare_x86("own code", Syntax::Intel, &code, 0.9995);
        }
        None => skip("objdump", "there is no objcopy"),
    }
}

#[test]
fn the_jit_code_of_the_samples() {
    for (name, dump) in [("node", "jit-17065.dump"), ("wasmtime", "jit-10150.dump")] {
        let code = jit_code(&sample(name, dump));
        compare_x86(name, Syntax::Att, &code, 0.9995);
        compare_x86(name, Syntax::Intel, &code, 0.9995);
    }
}

#[test]
fn aarch64_code_of_a_rust_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/aarch64.text");
    let code = fs::read(file).expect("it is there");
    let Some(theirs) = by_objdump("aarch64-linux-gnu-objdump", &["-m", "aarch64"], &code) else {
        return skip("objdump-aarch64", "it cannot be run");
    };
    let ours = by_pjit(Arch::Aarch64, Syntax::Att, &code);
    let (share, others) = share(&theirs, &ours);
    assert!(share >= 0.995, "{share}: {others:#?}");
}
