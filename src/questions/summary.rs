//! Where the CPU goes, on one page: by kind, library and thread, by hot function, by own function that pays.
//!
//! In: a profile and its functions. Out: a [`Summary`], whose rows are ordered and whole; how many are shown is the writer's
//! business.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::facts::Facts;
use super::functions::{Basis, FunctionId, Functions};
use super::tally::{Count, Numbers, Tally, of_event};
use crate::ids::Idx;
use crate::profile::Profile;
use crate::runtimes::names::told_apart;

/// A label and its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// A kind, an object, a comm.
    pub label: String,
    /// Its weight.
    pub count: Count,
}

/// Foreign code, and who pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The function of the address.
    pub function: FunctionId,
    /// The innermost own function above it.
    pub payer: FunctionId,
    /// How much.
    pub count: Count,
}

/// The answer.
#[derive(Debug)]
pub struct Summary {
    /// What the first lines say.
    pub facts: Facts,
    /// All functions; the rows below are ids into it.
    pub functions: Functions,
    /// By function: as tables show it.
    pub labels: Vec<String>,
    /// By function: its numbers.
    pub numbers: Vec<Numbers>,
    /// All samples of the event.
    pub unfiltered: Count,
    /// Those that filters left.
    pub total: Count,
    /// By kind of the innermost frame, the heaviest first.
    pub kinds: Vec<Share>,
    /// By object of the address.
    pub objects: Vec<Share>,
    /// By comm.
    pub threads: Vec<Share>,
    /// Functions by self.
    pub hot: Vec<FunctionId>,
    /// Own functions by what is credited to them.
    pub own: Vec<FunctionId>,
    /// In which functions the credited weight of an own one lies, the heaviest first.
    pub mostly: FxHashMap<FunctionId, Vec<(FunctionId, Count)>>,
    /// Foreign code with who pays.
    pub foreign: Vec<Foreign>,
    /// Weight without an own frame.
    pub no_own: Count,
    /// The same by object.
    pub no_own_in: Vec<Share>,
}

impl Summary {
    /// Answers for the event that the tally is of.
    #[must_use]
    pub fn of(
        profile: &Profile,
        functions: Functions,
        tally: Tally,
        facts: Facts,
        full_names: bool,
    ) -> Self {
        let labels = labels(&functions, full_names);
        let numbers = &tally.numbers;
        let by = |part: fn(&Numbers) -> Count, keep: &dyn Fn(FunctionId) -> bool| {
            let ids = functions.all.indices();
            let mut ids: Vec<FunctionId> = ids
                .filter(|id| part(&numbers[id.index()]).samples > 0 && keep(*id))
                .collect();
            let key = |id: &FunctionId| {
                let weight = part(&numbers[id.index()]).period;
                let object = functions.get(*id).identity.object.as_str();
                let inclusive = numbers[id.index()].inclusive.period;
                (
                    std::cmp::Reverse(weight),
                    labels[id.index()].as_str(),
                    object,
                    std::cmp::Reverse(inclusive),
                )
            };
            ids.sort_by(|a, b| key(a).cmp(&key(b)));
            ids
        };
        Self {
            kinds: shares_by(&functions, numbers, |n| n.own, |f| f.kind.word()),
            objects: shares_by(&functions, numbers, |n| n.physical, |f| &f.identity.object),
            threads: threads(profile, tally.event),
            hot: by(|n| n.own, &|_| true),
            own: by(|n| n.credited, &|id| functions.is_own(id)),
            mostly: mostly(&tally, &labels),
            foreign: foreign(&tally, &functions, &labels),
            no_own: tally.no_own,
            no_own_in: shares(
                tally
                    .no_own_in
                    .iter()
                    .map(|(id, count)| (functions.get(*id).identity.object.as_str(), *count)),
            ),
            unfiltered: tally.unfiltered,
            total: tally.total,
            labels,
            numbers: tally.numbers,
            functions,
            facts,
        }
    }

    /// How it was told what is own, in words.
    #[must_use]
    pub fn own_rule(&self) -> String {
        own_rule(&self.functions)
    }
}

/// How it was told what is own, in words.
#[must_use]
pub fn own_rule(functions: &Functions) -> String {
    let basis = match functions.basis {
        Basis::Name => "by name",
        Basis::Path => "by source path",
        Basis::Rules => return "as --own and --not-own say".to_owned(),
        Basis::Program => return "the program itself, for nothing else is".to_owned(),
    };
    let told = functions
        .producers
        .iter()
        .filter_map(|producer| producer.row().own);
    let told: Vec<&str> = told.collect();
    match told.as_slice() {
        [] => format!("{basis}; the program without its standard library"),
        told => format!("{basis}; {}", told.join("; ")),
    }
}

/// Names for tables, short where that tells them apart ([`told_apart`]).
#[must_use]
pub fn labels(functions: &Functions, full_names: bool) -> Vec<String> {
    let identities = || functions.all.iter().map(|f| &f.identity);
    if full_names {
        return identities().map(|i| i.name.full()).collect();
    }
    told_apart(identities().map(|i| (&i.name, i.object.as_str())))
}

/// Weights by label, the heaviest first, then by label.
fn shares<'l>(counts: impl Iterator<Item = (&'l str, Count)>) -> Vec<Share> {
    let mut sums: BTreeMap<&str, Count> = BTreeMap::new();
    counts.for_each(|(label, count)| sums.entry(label).or_default().add(count));
    let mut shares: Vec<Share> = sums
        .into_iter()
        .map(|(label, count)| Share {
            label: label.to_owned(),
            count,
        })
        .collect();
    shares.retain(|share| share.count.samples > 0);
    shares.sort_by_key(|share| std::cmp::Reverse(share.count.period));
    shares
}

fn shares_by(
    functions: &Functions,
    numbers: &[Numbers],
    part: fn(&Numbers) -> Count,
    label: fn(&super::functions::Function) -> &str,
) -> Vec<Share> {
    let counts = functions.all.iter().zip(numbers).map(|(f, n)| (f, part(n)));
    shares(
        counts
            .filter(|(_, count)| count.samples > 0)
            .map(|(f, count)| (label(f), count)),
    )
}

fn threads(profile: &Profile, event: usize) -> Vec<Share> {
    let counts = of_event(profile, event).map(|entry| {
        let count = Count {
            period: entry.period,
            samples: entry.samples,
        };
        (profile[entry.comm].as_str(), count)
    });
    shares(counts)
}

fn mostly(tally: &Tally, labels: &[String]) -> FxHashMap<FunctionId, Vec<(FunctionId, Count)>> {
    let mut found: FxHashMap<FunctionId, Vec<(FunctionId, Count)>> = FxHashMap::default();
    for ((payer, function), count) in &tally.pays {
        found.entry(*payer).or_default().push((*function, *count));
    }
    for parts in found.values_mut() {
        parts
            .sort_by_key(|(id, count)| (std::cmp::Reverse(count.period), &labels[id.index()], *id));
    }
    found
}

fn foreign(tally: &Tally, functions: &Functions, labels: &[String]) -> Vec<Foreign> {
    let pairs = tally
        .pays
        .iter()
        .filter(|((_, function), _)| !functions.is_own(*function));
    let mut rows: Vec<Foreign> = pairs
        .map(|(&(payer, function), &count)| Foreign {
            function,
            payer,
            count,
        })
        .collect();
    rows.sort_by_key(|row| {
        let names = (&labels[row.function.index()], &labels[row.payer.index()]);
        (
            std::cmp::Reverse(row.count.period),
            names,
            row.function,
            row.payer,
        )
    });
    rows
}

/// How many rows a table shows at most: up to 95 per cent of its weight, and none that is smaller than half a per cent of the
/// total.
#[must_use]
pub fn worth_showing(weights: impl Iterator<Item = u64> + Clone, total: u64) -> usize {
    let all: u64 = weights.clone().fold(0, u64::saturating_add);
    let (mut shown, mut rows) = (0_u64, 0);
    for weight in weights {
        let is_small = u128::from(weight) * 200 < u128::from(total);
        let is_enough = u128::from(shown) * 100 >= u128::from(all) * 95;
        if is_small || is_enough {
            break;
        }
        shown = shown.saturating_add(weight);
        rows += 1;
    }
    rows
}
