//! Sort keys: what there is to know of each, in one place.
//!
//! A [`Key`] is a column, and most divide the samples into rows. All else that the view, the writers and the help know of it stands
//! in its `Descriptor` (`table`): who adds a key adds a variant, a descriptor, and its place among perf's words (`words`)
//! if it is none of them.
//! What makes rows does not know descriptors: it is given keys with their orders ([`super::columns`]). Knows no layout: cells say
//! what stands in them, and how they use their column.

mod cells;
mod ends;
mod table;
mod words;

use std::borrow::Cow;

pub use self::words::{KeyError, known_keys};
use super::apart::Order;
use super::options::ReportOptions;
use super::rows::{Counts, Row};
pub use super::spec::{FieldSpec, Key, SortSpec};
use super::{Report, Table};
use crate::needs::Needs;
use crate::profile::Profile;

impl Key {
    /// Whether the key counts (perf's `hpp` dimensions) and does not divide the samples into rows.
    #[must_use]
    pub fn is_counter(self) -> bool {
        !matches!(self.descriptor().role, Role::Part(_))
    }

    /// Whether it counts what callers are credited with.
    #[must_use]
    pub fn is_credited(self) -> bool {
        matches!(&self.descriptor().role, Role::Counter(counter) if counter.is_credited)
    }

    /// The number that a counter's column shows or compares; nothing for other keys.
    #[must_use]
    pub fn count(self, counts: &Counts) -> u64 {
        match &self.descriptor().role {
            Role::Counter(counter) => (counter.value)(counts),
            Role::Rate | Role::Part(_) => 0,
        }
    }

    /// What tells rows apart by it; nothing of a counter.
    pub(crate) fn order(self) -> Option<Order> {
        match &self.descriptor().role {
            Role::Part(part) => Some(part.order),
            Role::Counter(_) | Role::Rate => None,
        }
    }

    /// Whether a table has a column for it: fields are those of one event.
    pub(crate) fn is_of(self, profile: &Profile, table: &Table) -> bool {
        match self {
            Self::Field(number) => {
                let field = &profile.fields[usize::from(number)];
                field.event == table.events[0]
            }
            _ => true,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.descriptor().name
    }
}

/// All there is to know of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptor {
    /// As `--sort` and `--fields` have it, in full.
    pub(crate) name: &'static str,
    /// What stands over its column.
    pub(crate) heading: Heading,
    /// What has to be read and computed for it.
    pub(crate) needs: Needs,
    /// The filter that, with a single entry, leaves one value of it.
    pub(crate) filter: Option<FilterOf>,
    /// What it does.
    pub(crate) role: Role,
}

impl Descriptor {
    const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    const fn filter(self, filter: FilterOf) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }
}

/// A key that divides samples.
const fn part(
    name: &'static str,
    heading: &'static str,
    order: Order,
    width: Width,
    cell: CellOf,
) -> Descriptor {
    Descriptor {
        name,
        heading: Heading::Is(heading),
        needs: Needs::empty(),
        filter: None,
        role: Role::Part(Part { order, width, cell }),
    }
}

/// What stands over a column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heading {
    /// Always the same.
    Is(&'static str),
    /// It depends on what is counted.
    Of(for<'r> fn(&'r Report<'_>, &Table, Key) -> &'r str),
    /// The same, on the right of its column.
    OnRight(for<'r> fn(&'r Report<'_>, Key) -> &'r str),
}

/// What a key does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// It counts.
    Counter(Counter),
    /// It is a rate of counters, which orders no rows.
    Rate,
    /// It divides the samples into rows.
    Part(Part),
}

/// A key that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    /// What it counts.
    pub(crate) value: fn(&Counts) -> u64,
    /// Whether that is credited to callers.
    pub(crate) is_credited: bool,
    /// How that is shown.
    pub(crate) shown: Shown,
    /// Width of its column at least.
    pub(crate) width: usize,
}

/// How a counter is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// As a share of everything.
    Share,
    /// As a share of everything by latency.
    LatencyShare,
    /// As it is.
    Number,
    /// With the unit of what is counted.
    Human,
}

/// Makes the cell of a row.
pub(crate) type CellOf = for<'r> fn(&'r Report<'_>, &'r Row, Key) -> Cell<'r>;

/// Measures a row.
pub(crate) type RoomOf = for<'r> fn(&'r Report<'_>, &'r Row, Key) -> Measured<'r>;

/// The names that a filter lets through.
pub(crate) type FilterOf = fn(&ReportOptions) -> &Option<Vec<String>>;

/// A key that divides the samples into rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// What tells rows apart, and orders them.
    pub(crate) order: Order,
    /// Width of its column, its heading aside.
    pub(crate) width: Width,
    /// What stands in a row.
    pub(crate) cell: CellOf,
}

/// Width of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    /// Always the same.
    Is(usize),
    /// It depends on the options.
    Of(fn(&ReportOptions) -> usize),
    /// As the longest of the rows, and no less.
    Longest(usize, RoomOf),
}

/// How much room a row takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Measured<'r> {
    /// That of this text, made harmless,
    pub(crate) text: Cow<'r, str>,
    /// which may have tabs,
    pub(crate) is_payload: bool,
    /// and so much more,
    pub(crate) more: usize,
    /// but no less than this.
    pub(crate) least: usize,
}

/// What stands in a cell, not yet made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell<'r> {
    /// Cut or filled up to the width of the column.
    Filled(Cow<'r, str>),
    /// Cut to it.
    Cut(Cow<'r, str>),
    /// The same for a text that may have tabs.
    CutPayload(Cow<'r, str>),
    /// As it is.
    Whole(Cow<'r, str>),
    /// Filled up to the width of the column, not cut.
    Left(Cow<'r, str>),
    /// On the right.
    Right(Cow<'r, str>),
    /// On the right, and cut.
    RightCut(Cow<'r, str>),
    /// Number of a task, and its comm.
    Task(u32, &'r str),
    /// A number, with zeros to the width of the column less three.
    Zeros(i32),
    /// Level, address and name of the row's symbol.
    Symbol,
}
