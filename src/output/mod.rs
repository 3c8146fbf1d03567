//! Writers: a view and its options in, bytes out. One file for each format.

pub mod annotate;
pub mod answer;
pub mod caption;
pub mod check;
mod columns;
pub mod csv;
#[cfg(feature = "dataset")]
pub mod dataset;
pub mod diff;
#[cfg(test)]
mod export_tests;
pub mod firefox;
pub mod folded;
pub mod gate;
pub mod gzip;
pub mod html;
pub mod jitdump;
pub mod json;
pub mod list;
pub mod markdown;
mod names;
pub mod over_time;
pub mod page;
pub mod peek;
pub mod pprof;
pub mod script;
pub mod speedscope;
pub mod stacks_csv;
pub mod stat;
pub mod stdio;
mod stdio_hierarchy;
mod stdio_layout;
#[cfg(test)]
mod stdio_tests;
mod stdio_text;
mod stdio_tree;
mod strings;
pub mod summary;
#[cfg(test)]
mod summary_tests;
pub mod svg;
#[cfg(test)]
mod testing;
pub mod text;
pub mod within;
