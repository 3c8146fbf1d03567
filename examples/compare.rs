//! What changed between two sides of recordings, as JSON: `cargo run --example compare -- base/ new/`.

use pjit::ask::{Arena, Comparing, Library, Request};
use pjit::diagnostics::Diagnostics;
use pjit::load::{LoadOptions, Source};
use pjit::output::answer::{Answer, Format, write};
use pjit::questions::compare::Method;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let (Some(base), Some(new), None) = (args.next(), args.next(), args.next()) else {
        anyhow::bail!("usage: compare BASE NEW: recordings, or folders of them");
    };
    let question = Comparing {
        to_time: None,
        base: vec![base.into()],
        new: vec![new.into()],
        method: Method::default(),
        full_names: false,
    };
    // What both sides have in common: time, weight, where files are. Each side names its own recordings.
    let load = LoadOptions::of(Source::Default);
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    let library = Library::new(&arena, &diag);
    let mut answer = Request::of(load, question).ask(&library)?;
    // What makes a comparison doubtful is a part of the document.
    answer.warn(diag.warnings());
    // docs/schema describes it.
    write(&answer, Format::Json, None, &mut std::io::stdout())?;
    Ok(())
}
