//! Prints the instructions of a file of raw code, for `scripts/compare-disassembly`.

use std::io::{BufWriter, Write};

use anyhow::Context;
use pjit::arch::Arch;
use pjit::disasm::{Syntax, for_arch};

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, architecture, syntax, base, path] = args.as_slice() else {
        anyhow::bail!("usage: disassemble x86-64|aarch64 att|intel BASE_IN_HEX FILE");
    };
    let arch = match architecture.as_str() {
        "x86-64" => Arch::X86_64,
        "aarch64" => Arch::Aarch64,
        other => anyhow::bail!("unknown architecture {other}"),
    };
    let syntax = if syntax == "intel" {
        Syntax::Intel
    } else {
        Syntax::Att
    };
    let base = u64::from_str_radix(base, 16).context("BASE_IN_HEX")?;
    let code = std::fs::read(path)?;
    let mut disassembler = for_arch(arch, syntax).context("no disassembler")?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (mut at, mut text) = (0, String::new());
    while at < code.len() {
        let address = base + at as u64;
        let found = disassembler.decode(&code[at..], address, &mut text);
        writeln!(out, "{address:x}:\t{text}{}", found.comment)?;
        at += usize::from(found.len);
    }
    out.flush()?;
    Ok(())
}
