//! Questions that people ask of a profile: where the CPU goes, which of *my* functions pays for it, who calls what.
//!
//! In: a profile. Out: small tables of plain data; [`crate::output`] prints them. [`crate::runtimes::names`] makes names clean, [`kinds`] says what
//! is the user's own, [`functions`] puts both together, [`tally`] counts. Nothing here knows a record, a file or a terminal.

pub mod budget;
pub mod compare;
#[cfg(test)]
mod compare_tests;
pub mod edges;
pub mod facts;
pub mod filter;
pub mod functions;
pub mod gate;
pub mod hosts;
pub mod idle;
pub mod kinds;
pub mod known;
pub mod list;
pub mod manglings;
pub mod matching;
pub mod over_time;
pub mod payers;
pub mod peek;
pub mod programs;
#[cfg(test)]
mod random_tests;
pub mod runs;
pub mod scripts;
mod significance;
pub mod stats;
pub mod summary;
pub mod tally;

use crate::needs::Needs;

/// What all questions look at.
pub const NEEDS: Needs = Needs::CHAINS
    .union(Needs::DEPTHS)
    .union(Needs::SQUARES)
    .union(Needs::KINDS)
    .union(Needs::ORIGINALS);
