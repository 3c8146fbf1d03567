//! pjit reads a Linux `perf` recording and everything that belongs to it, and prints profiles.
//!
//! # The way of a sample
//!
//! ```text
//!  cli ─► ask ─┬─► load: input ─► formats ─► session ─► stacks ─► names ─► profile
//!              ├─► views
//!              └─► output
//! ```
//!
//! The folders of `src` are these rooms; `docs/architecture.md` says where is what, `docs/decisions.md` why. A stage knows those
//! before it and none behind it, and below them all is `base`, which knows no stage (`tests/integration/tidy.rs`).
//!
//! 1. `input` is the only door to the file system. Its `input::Store` owns all bytes, the rest borrows. `find` knows where files
//!    may be, in which order, and what proves that one is the right one.
//! 2. `formats`: `perfdata` walks the recording once, touching the front of each record, and delivers records in perf's
//!    order. Files, pipe streams and compressed recordings go the same way. `jitdump` parses dumps and perf maps; `dso` opens ELF
//!    files and kernel symbols when first asked.
//! 3. `jit` is the index of JIT code by address and time, which knows dumps and no history. `session` turns records into an
//!    immutable history, threads, comms, snapshots of address spaces that share what did not change, and into samples.
//! 4. `stacks`: where a weight was asked for, `weigh` makes other samples of these; what comes behind it sees samples with periods
//!    and nothing else. `collect` is the second, parallel pass: each worker takes blocks of samples, builds their chains with
//!    `unwind`, and counts equal stacks in tables of its own. Nothing is locked. A flat view skips it. What is missing of stacks
//!    that the copy was too short for, `stitch` takes from others, as far as they agree.
//! 5. `names`: `symbolize` names each distinct address once, in parallel, inlined functions included; `wasm` finds lines of
//!    WebAssembly.
//! 6. [`profile`] is the product: one table of (event, comm, thread, leaf, stack) → period. Beside it in `load`, [`check`] holds
//!    its quality, and what the stages know about that, against limits; [`mod@bundle`] tells which files all of this took;
//!    `totals` adds up what whole runs counted; `assembly` has the code of functions.
//! 7. `views`, which are [`report`], [`questions`], [`flame`] and [`code`], make tables and trees of it, [`output`] prints; neither
//!    knows where it came from.
//! 8. [`ask`] puts questions and answers around all of this, as plain data: the command line makes a request of words, and
//!    writes the answer. What is read and computed for a view is its set of [`needs`].
//!
//! # As a library
//!
//! [`ask`] answers what the verbs of the command line answer: pages as text, Markdown, JSON or CSV, reports, folded stacks,
//! pictures and files for other tools, each written where you want it. An [`ask::Library`] reads recordings, and keeps what
//! several questions have in common. `examples/summary.rs`, `examples/compare.rs` and `examples/stacks.rs` do it.
//! Below that, [`load::load`] makes a [`profile::Profile`] of a path; [`report`], [`questions`] and [`flame`] make tables of
//! that, and [`output`] writes them. `examples/hottest.rs` prints the ten hottest functions of a recording:
//!
//! ```no_run
//! use pjit::diagnostics::Diagnostics;
//! use pjit::load::{LoadOptions, Source, load};
//!
//! let options = LoadOptions::of(Source::File("perf.data".into()));
//! let profile = load(&options, &Diagnostics::new())?;
//! println!("{} functions", profile.symbols.len());
//! # Ok::<(), pjit::load::LoadError>(())
//! ```
//!
//! The stages before the profile are not part of that front: they are `pub` for the fuzz targets and benchmarks, and hidden
//! in this documentation (`cargo doc --document-private-items` shows them).
//!
//! # What is absent
//!
//! * Nothing is written but what the user asked for, no process is started but a pager, what `record` is asked for, the client of
//!   debuginfod by `fetch` and, with `--open`, a browser; nothing but that client goes to the network.
//! * No stage knows a later one; no view sees a record, an ELF file or a path to open (`tests/integration/tidy.rs`).
//! * No memory and no time out of proportion to the input: what is read once is linear in it, and what a file could make
//!   quadratic has a budget, after which it is left out (units, abbreviations, attributes, line programs, ranges and names of
//!   DWARF: `symbolize`; large frame descriptions: `unwind`). Compressed sections of a file expand to 64 times
//!   the file, recordings to 4096 times and records to 128 times their compressed size, kernel symbols to 64 MB. A stream that
//!   cannot be read twice is kept, compressed.
//! * No panic on input: `unwrap` is denied, and what an `expect` says does not depend on bytes of a file.
//! * `unsafe` stands in three places of `input`, mapping a file, giving pages back, prefetching, and in two of `record`: what perf and
//!   the command do before they become what they are.

#![cfg_attr(
    test,
    allow(
        clippy::shadow_unrelated,
        reason = "a test asks one thing after the other"
    )
)]

mod base;
mod formats;
#[doc(hidden)]
pub mod input;
mod names;
#[doc(hidden)]
pub mod session;
mod stacks;
mod views;

pub mod ask;
#[doc(hidden)]
pub mod cli;
pub mod load;
pub mod output;
#[doc(hidden)]
pub mod record;

// Rooms are folders, and no part of names: `crate::unwind` is in `stacks`.
pub use base::{
    address, diagnostics, ids, metrics, needs, run_state, runtimes, span_spec, stack_end, tags,
    time_spec, unit,
};
#[doc(hidden)]
pub use base::{arch, build_id, disasm, intern, near};
use base::{parallel, rbtree, unseen, zstd};
#[doc(hidden)]
pub use formats::{dso, jitdump, perfdata};
#[doc(hidden)]
pub use input::find;
#[doc(hidden)]
pub use load::assembly;
pub use load::{bundle, check, profile, totals};
#[doc(hidden)]
pub use names::{symbolize, wasm};
#[doc(hidden)]
pub use record::fetch;
#[doc(hidden)]
pub use session::jit;
#[doc(hidden)]
pub use stacks::{collect, stitch, unwind, weigh};
pub use views::{code, flame, functions, questions, report};

#[cfg(test)]
#[path = "../tests/integration/skip.rs"]
mod skip;
