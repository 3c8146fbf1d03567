//! `annotate`: functions with their samples beside instructions and source lines.
//!
//! In: listings ([`Assembly`]) and the events of a profile. Out: [`Block`]s, one for each event (or group of events) and function,
//! in perf's order. Which lines of source stand before which instruction follows objdump (`lines`); what a block is called and how
//! its numbers are made follows perf's `annotate --stdio`, but for line numbers, which are the true ones.

mod choose;
mod lines;
mod versions;

use std::collections::HashMap;

use crate::assembly::{Assembly, Code, Function, Hit, Listing, Missing, Row};
use crate::ids::IndexSlice;
use crate::profile::{EventId, EventSummary};

pub use choose::{NotFound, Selection, choose, unshown};
use lines::Samples;
pub use lines::{Line, Values};
pub use versions::{VersionRow, Versions};

/// What percentages are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PercentType {
    /// The function's period.
    LocalPeriod,
    /// The function's number of samples.
    LocalHits,
    /// The event's period.
    GlobalPeriod,
    /// The event's number of samples.
    GlobalHits,
}

impl PercentType {
    /// perf's names.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("local-period", Self::LocalPeriod),
        ("local-hits", Self::LocalHits),
        ("global-period", Self::GlobalPeriod),
        ("global-hits", Self::GlobalHits),
    ];

    fn label(self) -> String {
        let known = Self::NAMES.iter().find(|(_, kind)| *kind == self);
        known.map_or_else(String::new, |(name, _)| name.replace('-', " "))
    }
}

/// What stands before instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Percentages.
    Percent,
    /// Numbers of samples.
    Samples,
    /// Periods.
    Period,
}

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// What percentages are of.
    pub percent_type: PercentType,
    /// What stands before instructions.
    pub column: Column,
    /// All events side by side.
    pub group: bool,
    /// Whole paths of files.
    pub full_paths: bool,
    /// Source lines before instructions.
    pub source: bool,
    /// A summary by source line, and lines behind instructions.
    pub print_lines: bool,
    /// The bytes of instructions.
    pub raw: bool,
    /// Versions of a function one behind the other, with a table of them in front.
    pub merge_versions: bool,
    /// Functions with less than so many per cent of an event have no block for it; of a group the first event counts.
    pub percent_limit: f64,
}

/// A function and its numbers for one event, or a group of them.
#[derive(Debug)]
pub struct Block<'a> {
    /// All versions of the function, before the first of them.
    pub versions: Option<&'a Versions>,
    /// Rows of the summary by source line: percentage and place.
    pub summary: Option<Summary>,
    /// The file that the code comes from.
    pub file: &'a str,
    /// What was counted.
    pub event: &'a str,
    /// Number of samples (of a group: of its first event).
    pub samples: u64,
    /// What percentages are of, in words.
    pub percent_type: String,
    /// Columns of numbers.
    pub columns: usize,
    /// What is in them.
    pub column: Column,
    /// Digits of the widest address.
    pub address_width: usize,
    /// Everything below the header.
    pub lines: Vec<Line<'a>>,
}

/// Source lines of a function by falling share.
#[derive(Debug)]
pub struct Summary {
    /// The file that the code comes from, in full.
    pub path: String,
    /// Per cent, and the place.
    pub rows: Vec<(f64, String)>,
}

/// Percentages above which lines take part in the summary, and are named behind instructions.
const WORTH_NAMING: f64 = 0.5;

/// What there is besides the blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Functions that were shown, by index.
    pub shown: Vec<usize>,
    /// What could not be shown.
    pub missing: Vec<Missing>,
    /// Functions with samples of other events of a group than its first one: as in perf, that one decides.
    pub of_others: Vec<usize>,
}

/// All blocks in order, none of them made yet: together they may be much text.
pub struct Plan<'a> {
    assembly: &'a Assembly,
    options: &'a Options,
    groups: Vec<Group>,
    blocks: Vec<Planned<'a>>,
}

/// A block to come.
struct Planned<'a> {
    group: usize,
    listing: &'a Listing,
    versions: Option<Versions>,
}

impl<'a> Plan<'a> {
    /// Puts the blocks in order.
    #[must_use]
    pub fn new(
        assembly: &'a Assembly,
        events: &IndexSlice<EventId, [EventSummary]>,
        options: &'a Options,
    ) -> (Self, Outcome) {
        let mut outcome = Outcome::default();
        let groups = groups(events, options);
        let mut blocks = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            plan(
                assembly,
                options,
                (number, group),
                &mut blocks,
                &mut outcome,
            );
        }
        let plan = Self {
            assembly,
            options,
            groups,
            blocks,
        };
        (plan, outcome)
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Makes a block.
    #[must_use]
    pub fn block(&self, number: usize) -> Block<'_> {
        let Planned {
            group,
            listing,
            versions,
        } = &self.blocks[number];
        Block {
            versions: versions.as_ref(),
            ..block(self.assembly, listing, &self.groups[*group], self.options)
        }
    }
}

/// Adds the blocks of a group of events.
fn plan<'a>(
    assembly: &'a Assembly,
    options: &Options,
    (group_number, group): (usize, &Group),
    blocks: &mut Vec<Planned<'a>>,
    outcome: &mut Outcome,
) {
    let mut own = of_group(assembly, options, group, &mut outcome.of_others);
    let mut tables = if options.merge_versions {
        versions::gather(assembly, group, &mut own)
    } else {
        HashMap::new()
    };
    for listing in own {
        let function = number(listing);
        match listing {
            Ok(listing) => {
                outcome.shown.push(function);
                blocks.push(Planned {
                    group: group_number,
                    listing,
                    versions: tables.remove(&function),
                });
            }
            Err(why) if !outcome.missing.contains(why) => outcome.missing.push(why.clone()),
            Err(_) => {}
        }
    }
}

type Listed = Result<Listing, Missing>;

/// The functions that the first event of a group hit, heaviest first; those that only the others hit are put aside.
fn of_group<'a>(
    assembly: &'a Assembly,
    options: &Options,
    group: &Group,
    others: &mut Vec<usize>,
) -> Vec<&'a Listed> {
    let all = &assembly.functions.all;
    let hit = |listing: &Listed, event: EventId| all[number(listing)].weight(event).1 > 0;
    let (mut own, rest): (Vec<_>, Vec<_>) = assembly
        .listings
        .iter()
        .partition(|listing| hit(listing, group.members[0]));
    let of_others = rest.into_iter();
    let of_others =
        of_others.filter(|listing| group.members.iter().any(|&event| hit(listing, event)));
    others.extend(of_others.map(number));
    let leader = group.members[0];
    // Events without samples have none.
    let total = assembly.functions.totals.get(leader).map_or(0, |of| of.0);
    own.retain(|listing| {
        let own_share = share(all[number(listing)].weight(leader).0, total);
        options.percent_limit <= 0.0 || own_share >= options.percent_limit
    });
    // Stable: of equal ones that goes first which goes first in the choice.
    own.sort_by_key(|listing| {
        let function = &all[number(listing)];
        let weights = group.members.iter().map(|event| function.weight(*event).0);
        std::cmp::Reverse(weights.collect::<Vec<_>>())
    });
    own
}

fn number(listing: &Listed) -> usize {
    match listing {
        Ok(listing) => listing.function,
        Err(missing) => missing.function,
    }
}

/// Events that stand side by side.
struct Group {
    members: Vec<EventId>,
    name: String,
}

fn groups(events: &IndexSlice<EventId, [EventSummary]>, options: &Options) -> Vec<Group> {
    let all = events.indices();
    let name_of = |member: &EventId| events[*member].name.clone();
    let names = |members: &[EventId]| members.iter().map(name_of).collect::<Vec<_>>().join(", ");
    if options.group {
        let members: Vec<EventId> = all.collect();
        let name = names(&members);
        return vec![Group { members, name }];
    }
    let mut groups: Vec<Group> = Vec::new();
    let leader = |event: EventId| events[event].leader;
    for event in all {
        match groups
            .iter_mut()
            .find(|group| leader(group.members[0]) == leader(event))
        {
            Some(group) => group.members.push(event),
            None => groups.push(Group {
                members: vec![event],
                name: name_of(&event),
            }),
        }
    }
    for group in groups.iter_mut().filter(|group| group.members.len() > 1) {
        let given = events[group.members[0]].group_name.as_deref();
        let given = given.unwrap_or("anon group");
        group.name = format!("{given} {{ {} }}", names(&group.members));
    }
    groups
}

fn block<'a>(
    assembly: &'a Assembly,
    listing: &'a Listing,
    group: &'a Group,
    options: &Options,
) -> Block<'a> {
    let function = &assembly.functions.all[listing.function];
    let numbers = Numbers::of(assembly, function, listing, group);
    let samples = numbers.values(options);
    let summary = options.print_lines.then(|| Summary {
        path: listing.file.clone(),
        rows: summary(assembly, &numbers, &samples, options),
    });
    let last = listing.rows.iter().rev().find_map(|row| match row {
        Row::Code(code) => Some(listing.start.wrapping_add(code.offset.into())),
        Row::Text(_) => None,
    });
    let highest = last.unwrap_or(0).max(listing.start);
    Block {
        versions: None,
        summary,
        file: shown_path(&listing.file, options.full_paths),
        event: &group.name,
        samples: group
            .members
            .first()
            .map_or(0, |event| function.weight(*event).1),
        percent_type: options.percent_type.label(),
        columns: group.members.len(),
        column: options.column,
        address_width: format!("{highest:x}").len(),
        lines: lines::of(assembly, listing, &samples, options),
    }
}

fn shown_path(path: &str, full: bool) -> &str {
    if full {
        return path;
    }
    path.rsplit('/').next().unwrap_or(path)
}

/// The instruction that samples count for. Between two it is the one before; what a call returns to stands for the call.
fn row_of(code: &[&Code], listing: &Listing, hit: &Hit) -> usize {
    let next = code.partition_point(|code| u64::from(code.offset) <= hit.offset);
    let row = next.saturating_sub(1);
    let is_start = (code.get(row)).is_some_and(|code| u64::from(code.offset) == hit.offset);
    match row.checked_sub(1) {
        Some(before) if hit.is_call && is_start && is_call(listing.text(code[before])) => before,
        _ => row,
    }
}

/// Whether an instruction is one that other code returns behind of.
fn is_call(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let name = words.find(|word| !matches!(*word, "notrack" | "bnd" | "data16"));
    let name = name.unwrap_or("");
    matches!(
        name,
        "call" | "callq" | "lcall" | "syscall" | "sysenter" | "int" | "bl" | "blr" | "svc"
    ) || name.starts_with("blra")
}

/// The samples of each instruction.
struct Numbers<'n> {
    /// By row that is code, then by event of the group: period and samples. Rows without samples are not there.
    rows: HashMap<usize, Vec<(u64, u64)>>,
    /// Of the function, by event of the group.
    own: Vec<(u64, u64)>,
    /// Of the event.
    totals: Vec<(u64, u64)>,
    code: Vec<&'n Code>,
}

impl<'n> Numbers<'n> {
    fn of(assembly: &Assembly, function: &Function, listing: &'n Listing, group: &Group) -> Self {
        let code: Vec<&Code> = listing
            .rows
            .iter()
            .filter_map(|row| match row {
                Row::Code(code) => Some(code),
                Row::Text(_) => None,
            })
            .collect();
        let mut rows: HashMap<usize, Vec<(u64, u64)>> = HashMap::new();
        for hit in &function.hits {
            let Some(column) = group.members.iter().position(|event| *event == hit.event) else {
                continue;
            };
            let row = row_of(&code, listing, hit);
            if row < code.len() {
                let none = || vec![(0, 0); group.members.len()];
                let own = &mut rows.entry(row).or_insert_with(none)[column];
                own.0 = own.0.saturating_add(hit.period);
                own.1 += hit.samples;
            }
        }
        let of_event = |event: &EventId| assembly.functions.totals.get(*event);
        Self {
            rows,
            own: group
                .members
                .iter()
                .map(|event| function.weight(*event))
                .collect(),
            totals: group
                .members
                .iter()
                .map(|event| of_event(event).copied().unwrap_or_default())
                .collect(),
            code,
        }
    }

    /// What is printed before a row.
    fn values(&self, options: &Options) -> Samples {
        let value = |column: usize, (period, samples): (u64, u64)| {
            let ((own_period, own_samples), (all_period, all_samples)) =
                (self.own[column], self.totals[column]);
            let (part, whole) = match options.percent_type {
                PercentType::LocalPeriod => (period, own_period),
                PercentType::LocalHits => (samples, own_samples),
                PercentType::GlobalPeriod => (period, all_period),
                PercentType::GlobalHits => (samples, all_samples),
            };
            Value {
                percent: share(part, whole),
                number: match options.column {
                    Column::Period => period,
                    _ => samples,
                },
            }
        };
        let row = |(number, row): (&usize, &Vec<(u64, u64)>)| {
            let shares = row.iter().zip(&self.own);
            let shares = shares.map(|(part, own)| share(part.0, own.0));
            let parts = row.iter().enumerate();
            let values: Values = parts.map(|(at, part)| value(at, *part)).collect();
            (*number, (values, shares.fold(0.0, f64::max)))
        };
        let none = (0..self.own.len()).map(|at| value(at, (0, 0)));
        Samples {
            rows: self.rows.iter().map(row).collect(),
            none: none.collect(),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    100.0 * part as f64 / whole as f64
}

/// A number before an instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Per cent.
    pub percent: f64,
    /// Samples or period.
    pub number: u64,
}

/// Shares by source line, of instructions that have more than half a per cent.
fn summary(
    assembly: &Assembly,
    numbers: &Numbers<'_>,
    samples: &Samples,
    options: &Options,
) -> Vec<(f64, String)> {
    let mut sums: HashMap<String, f64> = HashMap::new();
    for (row, code) in numbers.code.iter().enumerate() {
        let share = samples.at(row).1;
        if share > WORTH_NAMING
            && let Some(place) = lines::named_place(assembly, code, options)
        {
            *sums.entry(place).or_default() += share;
        }
    }
    #[expect(clippy::iter_over_hash_type, reason = "sorted by everything in it")]
    let mut rows: Vec<(f64, String)> = {
        let mut rows = Vec::with_capacity(sums.len());
        for (place, share) in sums {
            rows.push((share, place));
        }
        rows
    };
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rows
}
