//! Writers: a view and its options in, bytes out. One file for each format.

pub mod caption;
pub mod check;
pub mod folded;
pub mod jitdump;
pub mod script;
pub mod stdio;
mod stdio_hierarchy;
#[cfg(test)]
mod stdio_tests;
mod stdio_tree;
pub mod svg;
pub mod text;
