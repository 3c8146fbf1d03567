//! What files with line tables are asked, and what they answer.

use super::QueryId;
use super::declared::{Body, Declared};
use super::origin::Author;
use crate::ids::{IndexVec, Spare, numbers};

numbers! {
    /// Index into [`Expanded::names`].
    pub(super) struct NameNumber(u32);
    /// Index into [`Expanded::paths`].
    pub(super) struct PathNumber(Spare);
}

/// A query for a unit of DWARF.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) svma: u64,
    pub(super) query: QueryId,
    pub(super) inlines: bool,
    pub(super) lines: bool,
}

/// What a unit says about the addresses of a piece.
#[derive(Default)]
pub(super) struct Expanded<'a> {
    pub(super) answers: Vec<Expansion>,
    /// Inlined calls of all answers, each answer's run innermost first: the function and the place in it.
    pub(super) calls: Vec<(NameNumber, Option<Spot>)>,
    /// Functions that `calls` refer to, as the file names them.
    pub(super) names: IndexVec<NameNumber, &'a [u8]>,
    /// What is known of them, where it was asked whose code they are.
    pub(super) origins: IndexVec<NameNumber, NameOrigin>,
    /// Paths that places refer to.
    pub(super) paths: IndexVec<PathNumber, String>,
    /// Checksums of the texts of those files, where the line table has them; none where there are no line tables.
    pub(super) checksums: IndexVec<PathNumber, Option<[u8; 16]>>,
    /// The folder in which the compiler worked, for the same.
    pub(super) directory: String,
}

/// Whose code a function is, and where it is from.
#[derive(Clone, Default)]
pub(super) struct NameOrigin {
    pub(super) author: Author,
    /// Where it is defined.
    pub(super) declared: Option<Declared>,
    /// Where its code was met, if nothing says where it is defined.
    pub(super) body: Option<Body>,
}

pub(super) struct Expansion {
    pub(super) query: QueryId,
    /// Size of the function around the address: of two units the one with the smaller function is right.
    pub(super) size: u64,
    /// Range in [`Expanded::calls`].
    pub(super) calls: std::ops::Range<usize>,
    pub(super) line: Option<Spot>,
    /// Whose code the function around the address is.
    pub(super) author: Author,
    /// Where it is defined.
    pub(super) declared: Option<Declared>,
}

/// Path, line and column.
pub(super) type Spot = (PathNumber, u32, u32);
