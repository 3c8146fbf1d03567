//! Tests of the program as users run it: the binary on the recordings of `samples/` and on recordings made here.
//!
//! Nothing in here uses the readers of the library, so a mistake in them cannot cancel out.

mod allocators;
mod annotate;
mod bundle;
mod check;
mod cli;
mod consumers;
mod corrupt;
mod counts;
mod differential;
mod disassembly;
mod example;
mod exports;
mod fields;
mod filters;
mod flamegraph;
mod flames;
mod golden;
mod heap;
mod inlines;
mod jitdump;
mod listings;
mod live;
mod metrics;
mod names;
mod oracle;
mod page;
mod paths;
mod pprof;
mod probes;
mod questions;
mod recording;
mod scripts;
mod skip;
mod source_maps;
mod stale;
mod stat;
mod stitching;
mod support;
mod surface;
mod tidy;
mod totals;
mod trees;
mod waits;
mod wasm;
