//! pjit reads a Linux `perf` recording and everything that belongs to it, and prints profiles.
//!
//! # The way of a sample
//!
//! ```text
//!              ┌──────────────────────────────────── load ────────────────────────────────────┐
//! input ─► perfdata ─► session ─► weigh ─► collect ─► stitch ─► symbolize ─► profile ─► views ─► output
//!  files    records     history   periods   stacks   cut ones     names       table     tables     text
//!             ▲            ▲  ▲               ▲                     ▲           │                    ▲
//!          jitdump ────────┘  │             unwind                wasm          └─────► check ───────┘
//!          dso ───────────────┴───────────────┴─────────────────────┘
//! ```
//!
//! Views are `report`, `questions`, `flame` and `code` (which gets instructions from `assembly`). `totals` adds up what
//! whole runs counted, for `pjit stat`.
//!
//! A stage knows those before it and none behind it. Below them all is the ground floor, which knows no stage: addresses
//! ([`address`]), numbers ([`ids`]), why a stack ended ([`stack_end`]), messages ([`diagnostics`]), and what is known of the
//! runtimes that make code ([`runtimes`]), of which all others ask properties. Modules inside a stage know each other in one
//! direction too (`tests/integration/tidy.rs`).
//!
//! [`load::load`] is the reading half as one function; `main` puts a view and a writer behind it.
//!
//! 1. `input` is the only door to the file system. Its `input::Store` owns all bytes, the rest borrows. `find` knows where files
//!    may be, in which order, and what proves that one is the right one.
//! 2. `perfdata` walks the recording once, touching the front of each record, and delivers records in perf's
//!    order. Files, pipe streams and compressed recordings go the same way.
//! 3. `session` turns them into an immutable history: threads, comms, snapshots of address spaces that share
//!    what did not change, and JIT code by address and time. `jitdump` parses dumps and perf maps;
//!    `dso` opens ELF files and kernel symbols when first asked.
//!    Where a weight was asked for, `weigh` then replaces the samples' periods, pairs events, drops or makes up samples;
//!    what comes behind it sees samples with periods and nothing else.
//! 4. `collect` is the second, parallel pass: each worker takes blocks of samples, builds their chains
//!    with `unwind`, and counts equal stacks in tables of its own. Nothing is locked. A flat view skips it.
//!    What is missing of stacks that the copy was too short for, `stitch` takes from others, as far as they agree.
//! 5. `symbolize` names each distinct address once, in parallel, inlined functions included.
//! 6. [`profile`] is the product: one table of (event, comm, thread, leaf, stack) → period.
//!    [`check`] holds its quality, and what the stages before it know about that, against limits;
//!    [`bundle`] tells which files all of this took.
//! 7. [`report`] makes rows and call trees of it, [`output`] prints; neither knows where it came from.
//! 8. [`ask`] puts questions and answers around all of this, as plain data: the command line makes a request of words, and
//!    writes the answer. What is read and computed for a view is its set of [`needs`].
//!
//! # As a library
//!
//! [`ask`] answers what the verbs of the command line answer: pages as text, Markdown, JSON or CSV, reports, folded stacks,
//! pictures and files for other tools, each written where you want it. `examples/summary.rs` and `examples/compare.rs` do it.
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
//! # Decisions
//!
//! * **Own readers of records, samples and dumps.** They borrow from the map, check every size against what is there and
//!   cost no more than `cat`; the readers that exist copy each record and trust counts in the file.
//!   `linux-perf-data` is an oracle in the tests.
//! * **Own decoder of Zstandard**: see the table of libraries.
//! * **Own unwinder** on `gimli`: rules are memoised by (file, offset) for all processes, and JIT frames, PLT stubs,
//!   signal frames and fibers need what a general one does not know. `framehop` is an oracle in the tests.
//! * **Two passes.** The first costs what reading the file costs and gives pass two complete knowledge: a dump may
//!   describe code after its first sample.
//! * **JIT code is no mapping.** A runtime remaps pages all the time, and code replaces code at the same address. A
//!   lookup takes process, address and time; a new load ends what it overlaps.
//! * **Interned in the order of the first sample.** Ids, and with them ties, never depend on hashing or on the number
//!   of threads: the same input gives the same bytes.
//! * **Several recordings are compared, not poured together.** Frames of two recordings have no common numbers, and one of ten
//!   runs that went wrong would hide in a sum. `diff`, `gate` and `flamegraph --diff` read each recording by itself and keep of
//!   it a tally by function, or a tree: all that those views look at, in the memory of one recording. The second word of
//!   `pjit report` is perf's symbol filter, and `pprof` adds up what `pjit export` wrote of each recording.
//! * **perf decides what is right where its versions agree.** Where they differ: C++ names without parameters
//!   (6.1), PLT names and inlined frames in every chain (7.2), kernel ancestors as `[k]` (6.1), addresses in
//!   scripts absolute (7.2). Stacks through JIT code follow the truth, not perf.
//!
//! # Libraries
//!
//! What the libraries of this field do here, and what decided where they do not. Seconds are of CPU, on the same busy machine in
//! one run each; "native" is a recording of 131 MB with 16 255 samples (`scripts/big-recordings/native.sh`).
//!
//! | library | here | why not more |
//! |---|---|---|
//! | `linux-perf-data` 0.13 | oracle in the tests | reads the samples of native in 0.096 s and 44 MB, where the whole flat report takes 0.043 s; 24 panics and 4 aborts in 2 500 damaged files |
//! | `linux-perf-event-reader` 0.10 | oracle for the numbers of records, formats and flags | has no lost counts of READ, counters of branches, deferred chains, nor perf's own records; those would stay beside it |
//! | `object` 0.40 | headers of ELF files, of both classes and byte orders | symbols are read as perf sorts them; its names have no longest length, and sections of a damaged file none they may expand to |
//! | `addr2line` 0.27 | not used; binutils' and LLVM's programs are oracles in the tests | as fast: 0.17 s for the 8 988 addresses of `inline` (`scripts/big-recordings/inline.sh`) and 0.02 s to open, names and lines, in one thread, where ours adds 0.19 s to `fold`, longer stacks included. What decides is a file of 348 KB in which 1 000 units share one line program of 300 000 rows: it takes 51 s and 7.0 GB to look for one address there, and a whole report here 0.03 s and 23 MB, as ours has a budget for units, ranges and rows |
//! | `gimli` | reads DWARF, but for rows of line programs and how entries are laid out | to look up lines takes 470 instructions of the processor for each of its rows, and 180 with rows read here (`inline`, 428 651 rows) |
//! | `cpp_demangle`, `rustc-demangle` | demangle | |
//! | `inferno` | draws SVG | |
//! | `tar` | headers of archives | writes holes only of files that have some on this file system |
//! | `signal-hook` | takes half-made folders away | |
//! | `bitflags` | the set of what a request needs | |
//! | `clap` | the command line, its help, manual and completions | |
//!
//! And beside what is written by hand:
//!
//! | by hand | library | what decided |
//! |---|---|---|
//! | Zstandard | `ruzstd` 0.9, `structured-zstd` 0.2, `zstd` (C) | native at level 1: 0.055 s in C, 0.080 s here, 0.15 s in `ruzstd`, which also gives the last window of a frame only at its end, and `perf record -z` never ends one; `structured-zstd`, 0.09 s, takes 102 s to build; C takes 32 s to build and wants a C compiler for every target. What packs better takes longer here: 544 MB of the same that packs to 30 MB, in 11 million copies, 0.29 s, in C 0.21 s. A flat report of the plain recording takes 0.11 s, so that no decoder gets near to that; stacks need two passes, and decode twice |
//! | packing of streams | `lz4_flex` | taken: 0.075 s and 9.4 % for native, where zstd took 0.125 s and 5.5 % |
//! | temporary file | `tempfile` | taken |
//! | local time | `tz-rs` | taken: no dependencies, no `unsafe`, beside `chrono` and `jiff` small |
//! | numbers by content (`intern::ItemIndex`) | `hashbrown::HashTable` 0.17 | both grown from nothing, with the same hash: 1.4 times the time for 100 000 items looked for a million times, 2.4 times for a million looked for three million times (0.17 s here) |
//! | threads and sorting on them (`parallel`) | `rayon` 1.12 | two million numbers sorted on two threads: 0.04 s here, 0.05 s there |
//! | caches of what was used last | any of LRU | nothing here drops what was used least recently: a worker's map cache is direct mapped, what else is learned is kept |
//! | lists that only their own kind of number may ask | `index_vec` | taken: no dependencies and no `unsafe` to write, as `oxc_index` wants; `typed-index-collections` brings an unmaintained crate into the lock file |
//! | red-black tree | none | perf's choice among overlapping symbols, and its order of rows, depend on the shape of the kernel's tree, which is copied |
//!
//! # What is absent
//!
//! * Nothing is written but what the user asked for, no process is started but a pager, nothing goes to the network.
//! * No stage knows a later one; no view sees a record, an ELF file or a path to open (`tests/integration/tidy.rs`).
//! * No memory and no time out of proportion to the input: what is read once is linear in it, and what a file could make
//!   quadratic has a budget, after which it is left out (units, abbreviations, attributes, line programs, ranges and names of
//!   DWARF: `symbolize`; large frame descriptions: `unwind`). Compressed sections of a file expand to 64 times
//!   the file, recordings to 4096 times and records to 128 times their compressed size, kernel symbols to 64 MB. A stream that
//!   cannot be read twice is kept, compressed.
//! * No panic on input: `unwrap` is denied, and what an `expect` says does not depend on bytes of a file.
//! * `unsafe` stands in three places of `input`: mapping a file, giving pages back, prefetching.

pub mod address;
pub mod ask;
#[doc(hidden)]
pub mod assembly;
#[doc(hidden)]
pub mod build_id;
pub mod bundle;
pub mod check;
#[doc(hidden)]
pub mod cli;
pub mod code;
#[doc(hidden)]
pub mod collect;
pub mod diagnostics;
#[doc(hidden)]
pub mod disasm;
#[doc(hidden)]
pub mod dso;
#[doc(hidden)]
pub mod find;
pub mod flame;
pub mod ids;
#[doc(hidden)]
pub mod input;
#[doc(hidden)]
pub mod intern;
#[doc(hidden)]
pub mod jitdump;
pub mod load;
pub mod metrics;
pub mod near;
pub mod needs;
pub mod output;
mod parallel;
#[doc(hidden)]
pub mod perfdata;
pub mod profile;
pub mod questions;
mod rbtree;
pub mod report;
pub mod run_state;
pub mod runtimes;
#[doc(hidden)]
pub mod session;
pub mod stack_end;
#[doc(hidden)]
pub mod stitch;
#[doc(hidden)]
pub mod symbolize;
pub mod time_spec;
pub mod totals;
pub mod unit;
mod unseen;
#[doc(hidden)]
pub mod unwind;
#[doc(hidden)]
pub mod wasm;
#[doc(hidden)]
pub mod weigh;
mod zstd;

#[cfg(test)]
#[path = "../tests/integration/skip.rs"]
mod skip;
