//! Folded stacks of a recording that is fit for conclusions: `cargo run --example stacks -- perf.data`.

use anyhow::Context;
use pjit::ask::{Arena, Check, Fold, Library, Request};
use pjit::diagnostics::Diagnostics;
use pjit::load::{LoadOptions, Source};

fn main() -> anyhow::Result<()> {
    let file = std::env::args_os().nth(1).context("usage: stacks FILE")?;
    let load = LoadOptions::of(Source::File(file.into()));
    // Two questions of one recording: its files and symbols are read for the first.
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    let library = Library::new(&arena, &diag);
    let checked = Request::of(load.clone(), Check::default()).ask(&library)?;
    let mut out = std::io::stdout();
    if !checked.is_fit() {
        checked.write_text(false, &mut out)?;
        anyhow::bail!("not fit for conclusions");
    }
    let folded = Request::of(load, Fold::default()).ask(&library)?;
    folded.write(&mut out)?;
    Ok(())
}
