//! Where the time of each recording went, as Markdown: `cargo run --example summary -- A.data B.data`.

use std::io::Write;

use anyhow::Context;
use pjit::ask::{Arena, Library, Request, Summary};
use pjit::diagnostics::Diagnostics;
use pjit::load::{LoadOptions, Source};
use pjit::output::answer::{Format, write};
use pjit::output::text::harmless;

fn main() -> anyhow::Result<()> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    anyhow::ensure!(!files.is_empty(), "usage: summary FILE...");
    let mut out = std::io::stdout().lock();
    // What several recordings have in common is opened once.
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    let library = Library::new(&arena, &diag);
    for file in files {
        let load = LoadOptions::of(Source::File(file.clone().into()));
        let answer = Request::of(load, Summary::default())
            .ask(&library)
            .with_context(|| file.display().to_string())?;
        write(&answer, Format::Markdown, None, &mut out)?;
    }
    // What is wrong with recordings is told beside the answers.
    for line in diag.warnings() {
        writeln!(std::io::stderr(), "{}", harmless(&line))?;
    }
    Ok(())
}
