//! Tests of the program as users run it: the binary on the recordings of `samples/` and on recordings made here.
//!
//! Nothing in here uses the readers of the library, so a mistake in them cannot cancel out.

#![allow(
    clippy::shadow_unrelated,
    reason = "a test asks one thing after the other"
)]

mod allocations;
mod allocators;
mod annotate;
mod builds;
mod bundle;
mod check;
mod cli;
mod consumers;
mod containers;
mod corrupt;
mod counts;
#[cfg(feature = "dataset")]
mod dataset;
mod differential;
mod disassembly;
mod evaled;
mod example;
mod exports;
mod fetch;
mod fields;
mod filters;
mod finding;
mod flamegraph;
mod flames;
mod gaps;
mod gates;
mod golden;
mod hardware;
mod heap;
mod hostile;
mod identity;
mod inlines;
mod jitdump;
mod latency;
mod libraries;
mod listings;
mod lists;
mod live;
mod metrics;
mod names;
mod namesakes;
mod narrow;
mod oracle;
mod outputs;
mod over_time;
mod own;
mod page;
mod paths;
mod pprof;
mod probes;
mod questions;
mod record;
mod recording;
mod scripts;
mod security;
mod servers;
mod serving;
mod several;
mod several_names;
mod skip;
mod sockets;
mod source_maps;
mod spans;
mod stale;
mod stat;
mod stitching;
mod support;
mod surface;
mod tidy;
mod totals;
mod trees;
mod typing;
mod waits;
mod wasm;
mod weighed;
mod weights;
mod words;
