//! Questions that people ask of a profile: where the CPU goes, which of *my* functions pays for it, who calls what.
//!
//! In: a profile and its [functions](crate::functions). Out: small tables of plain data; [`crate::output`] prints them. Nothing here
//! knows a record, a file or a terminal.

pub mod aliases;
pub mod budget;
pub mod compare;
#[cfg(test)]
mod compare_tests;
pub mod described;
pub mod facts;
pub mod gate;
pub mod hosts;
pub mod idle;
pub mod known;
pub mod list;
pub mod manglings;
pub mod over_time;
pub mod peek;
#[cfg(test)]
mod random_tests;
pub mod runs;
pub mod scripts;
mod significance;
pub mod stats;
pub mod summary;

use crate::needs::Needs;

/// What all questions look at.
pub const NEEDS: Needs = Needs::CHAINS
    .union(Needs::DEPTHS)
    .union(Needs::SQUARES)
    .union(Needs::KINDS)
    .union(Needs::ALIASES)
    .union(Needs::ORIGINALS);
