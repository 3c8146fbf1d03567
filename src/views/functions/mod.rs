//! Functions of a profile, and whose they are: what *own* means is on this page.
//!
//! In: a profile, and the user's rules. Out: [`Functions`], which all tables count by, with sums ([`tally`]), callers ([`edges`]),
//! payers and activities ([`payers`]), filters, and the rule for which functions of two recordings are one ([`matching`]).
//!
//! A function is *own* if the first of these that applies says so:
//!
//! | asked | answer | place |
//! |---|---|---|
//! | is it kernel code, or in no object? | not own | [`kinds::classify`] |
//! | what does `--own RE` say? | own is what matches, and nothing else | the same |
//! | what does `--not-own RE` say? | what matches is not own, though a row below called it so | the same |
//! | who generated it? | its name: `node:fs` is the runtime's, `node_modules/p/i.js` a package's, `/w/hot.js` own | `kind` of each row in [`crate::runtimes`] |
//! | is its file a runtime or another library? | not own | [`kinds::is_runtime`], [`crate::runtimes::Scope::of_file`] |
//! | which source file is it of, where debug information tells? | a folder of packages or of a standard library is not own | [`crate::symbolize`], `origin` |
//! | what else is in the program's own file? | own, but for names of standard libraries | [`crate::runtimes::is_standard`] |
//! | was nothing own so far? | of a known runtime its packages, else the program whatever it is called | [`Functions::of`] |

pub mod edges;
pub mod filter;
pub mod kinds;
pub mod matching;
pub mod payers;
pub mod programs;
mod table;
pub mod tally;

pub use table::{
    Basis, Beside, Called, Function, FunctionId, Functions, Identity, JIT, UNKNOWN, called, is_dump,
};
pub(crate) use table::{folder, object_label, spelled};
