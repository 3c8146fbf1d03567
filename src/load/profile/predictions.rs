//! In which function the processor mispredicted branches most often.

use std::collections::BTreeMap;

use super::places::{FramesOfPcs, PlaceSymbol};
use crate::collect::Collected;
use crate::symbolize::{Resolution, SymbolIndex};

/// Branches of which the processor told whether it predicted them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predictions {
    /// Those that it did not.
    pub missed: u64,
    /// All of them.
    pub all: u64,
    /// The function with the most that it did not, and its own numbers.
    pub worst: Option<(String, u64, u64)>,
}

impl Predictions {
    /// Of fewer branches no share can be told.
    const FEW: u64 = 1000;

    /// Whether there are enough of them.
    #[must_use]
    pub const fn are_many(&self) -> bool {
        self.all >= Self::FEW
    }
}

/// Adds up the branches of functions; what has no name is none.
pub(super) fn of(
    collected: &Collected,
    places: &FramesOfPcs,
    resolution: &Resolution,
) -> Predictions {
    // Copies of JIT code are one function by their name; functions of files may share theirs.
    let mut by_name: BTreeMap<(&str, Option<SymbolIndex>), (u64, u64)> = BTreeMap::new();
    let mut sums = Predictions::default();
    for &(pc, missed, all) in &collected.predictions {
        sums.missed += missed;
        sums.all += all;
        let symbol = places.all[places.leaf(pc)].symbol;
        let name = match symbol.map(|symbol| places.symbol(symbol)) {
            Some(PlaceSymbol::Jit(name)) => (&*places.names.texts[name], None),
            Some(PlaceSymbol::Function(function)) => {
                (resolution.symbols[function].name.as_str(), Some(function))
            }
            Some(PlaceSymbol::Inlined(..) | PlaceSymbol::InlinedInJit(..)) | None => continue,
        };
        let known = by_name.entry(name).or_default();
        *known = (known.0 + missed, known.1 + all);
    }
    let named = by_name.into_iter();
    let worst = named.max_by_key(|(name, (missed, _))| (*missed, std::cmp::Reverse(*name)));
    let worst = worst.map(|((name, _), numbers)| (name, numbers));
    sums.worst = worst
        .filter(|(_, (missed, _))| *missed > 0)
        .map(|(name, (missed, all))| (name.to_owned(), missed, all));
    sums
}
