//! The versions of a JIT function, as one table: which compiler made each, when it was there, what share of the samples it has.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::assembly::{Assembly, Function, tier};
use crate::runtimes::without_tier;

use super::{Group, Listed, number, share, shown_path};

/// The versions of a function that samples hit.
#[derive(Debug, PartialEq)]
pub struct Versions {
    /// Its name, without the compiler that made it.
    pub name: String,
    /// The base name of the dump.
    pub file: String,
    /// What was counted.
    pub event: String,
    /// Samples of all versions.
    pub samples: u64,
    /// In the order in which they were loaded.
    pub rows: Vec<VersionRow>,
}

/// A version.
#[derive(Debug, PartialEq)]
pub struct VersionRow {
    /// As its own block calls it.
    pub number: u32,
    /// Per cent of the period of all.
    pub share: f64,
    /// Of the event, or the first of a group.
    pub samples: u64,
    /// Length of the code; none where the code is not at hand.
    pub bytes: Option<usize>,
    /// Where the code was.
    pub address: Option<u64>,
    /// When it was loaded, in ns.
    pub first: u64,
    /// When other code took its place.
    pub last: Option<u64>,
    /// Which compiler made it, where names tell.
    pub tier: &'static str,
}

/// Puts the versions of each function behind each other, the heaviest function and the heaviest version first. Returns the tables of
/// those that have several, by the function whose block is the first.
pub(super) fn gather(
    assembly: &Assembly,
    group: &Group,
    own: &mut Vec<&Listed>,
) -> HashMap<usize, Versions> {
    let mut of: HashMap<(&str, String), Vec<&Listed>> = HashMap::new();
    let mut order = Vec::new();
    for &listing in own.iter() {
        let function = &assembly.functions.all[number(listing)];
        let name = match function.version {
            Some(_) => without_tier(&function.name).into_owned(),
            // Two functions of one name in a file are two functions.
            None => number(listing).to_string(),
        };
        let key = (function.path.as_str(), name);
        let known = of.entry(key.clone()).or_default();
        if known.is_empty() {
            order.push(key);
        }
        known.push(listing);
    }
    let mut sets: Vec<Vec<&Listed>> = order.iter().filter_map(|key| of.remove(key)).collect();
    let weight = |listing: &&Listed| function_of(assembly, listing).weight(group.members[0]).0;
    sets.sort_by_key(|set| Reverse(set.iter().map(weight).fold(0, u64::saturating_add)));
    let mut tables = HashMap::new();
    for set in sets.iter().filter(|set| set.len() > 1) {
        // The table stands before the first that can be shown.
        if let Some(first) = set.iter().find(|listing| listing.is_ok()) {
            tables.insert(number(first), table(assembly, group, set));
        }
    }
    *own = sets.concat();
    tables
}

fn function_of<'a>(assembly: &'a Assembly, listing: &Listed) -> &'a Function {
    &assembly.functions.all[number(listing)]
}

fn table(assembly: &Assembly, group: &Group, set: &[&Listed]) -> Versions {
    let event = group.members[0];
    let weights = set
        .iter()
        .map(|listing| function_of(assembly, listing).weight(event));
    let (period, samples) = weights.fold((0, 0), |sum: (u64, u64), own| {
        (sum.0.saturating_add(own.0), sum.1 + own.1)
    });
    let row_of = |listing: &&Listed| {
        let function = function_of(assembly, listing);
        let version = function.version.unwrap_or_default();
        let own = function.weight(event);
        let code = listing.as_ref().ok();
        VersionRow {
            number: version.number,
            share: share(own.0, period),
            samples: own.1,
            bytes: code.map(|code| code.bytes.len()),
            address: code.map(|code| code.start),
            first: version.loaded,
            last: version.replaced,
            tier: tier(&function.name),
        }
    };
    let mut rows: Vec<VersionRow> = set.iter().map(row_of).collect();
    rows.sort_by_key(|row| row.number);
    let function = function_of(assembly, set[0]);
    Versions {
        name: without_tier(&function.name).into_owned(),
        file: shown_path(&function.path, false).to_owned(),
        event: group.name.clone(),
        samples,
        rows,
    }
}
