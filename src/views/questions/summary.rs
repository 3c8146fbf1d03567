//! Where the CPU goes, on one page: by kind, library and thread, by hot function, by own function that pays.
//!
//! In: a profile and its functions. Out: a [`Summary`], whose rows are ordered and whole; how many are shown is the writer's
//! business.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::aliases::shared_code;
use super::facts::Facts;
use super::hosts::Hosts;
use crate::functions::payers::{PayerId, Spending};
use crate::functions::tally::{Count, Numbers, Tally, of_event};
use crate::functions::{Basis, Function, FunctionId, Functions};
use crate::ids::Idx;
use crate::profile::{EventId, Profile, StringId};
use crate::runtimes::CleanName;
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

/// A function that belongs to who pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paying {
    /// The function.
    pub function: FunctionId,
    /// Its package.
    pub payer: PayerId,
    /// What it pays for.
    pub credited: Count,
    /// As the innermost frame.
    pub own: Count,
}

/// A source line of who pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidLine {
    /// The file, as the compiler or the runtime named it.
    pub file: String,
    /// The line from 1.
    pub line: u32,
    /// The function that it is in.
    pub function: FunctionId,
    /// Its package.
    pub payer: PayerId,
    /// What it pays for.
    pub count: Count,
}

/// What of a summary is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Names whole.
    pub full_names: bool,
    /// Rows, too, that are too small for any page ([`worth_showing`]).
    pub small: bool,
}

/// The answer.
#[derive(Debug)]
pub struct Summary {
    /// What the first lines say.
    pub facts: Facts,
    /// All functions; the rows below are ids into it.
    pub functions: Functions,
    /// By function: as tables show it.
    pub labels: Labels,
    /// By function: its numbers.
    pub numbers: Vec<Numbers>,
    /// All samples of the event.
    pub unfiltered: Count,
    /// Those that filters left.
    pub total: Count,
    /// How many equal samples its samples are worth, (Σw)²/Σw².
    pub worth: Option<f64>,
    /// By kind of the innermost frame, the heaviest first.
    pub kinds: Vec<Share>,
    /// Who pays, and what is done.
    pub spending: Spending,
    /// Functions of who pays, by what they pay for, in the same way as [`Summary::hot`].
    pub paying: Vec<Paying>,
    /// Their lines, if they were asked for, in the same way.
    pub lines: Vec<PaidLine>,
    /// What hosts are unlike in, if that was asked for.
    pub hosts: Option<Hosts>,
    /// By object of the address.
    pub objects: Vec<Share>,
    /// By comm.
    pub threads: Vec<Share>,
    /// Functions by self; those that [`Wanted`] leaves out are behind the others, in no order.
    pub hot: Vec<FunctionId>,
    /// Own functions by what is credited to them, in the same way.
    pub own: Vec<FunctionId>,
    /// In which functions the credited weight of an own one lies, the heaviest first; of those that are wanted.
    pub mostly: FxHashMap<FunctionId, Vec<(FunctionId, Count)>>,
    /// Foreign code with who pays, in the same way.
    pub foreign: Vec<Foreign>,
    /// Functions of addresses whose code is another one's, too, the heaviest first: with that one, and what they weigh.
    pub shared: Vec<(FunctionId, String, Count)>,
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
        (tally, spending): (Tally, Spending),
        facts: Facts,
        wanted: Wanted,
    ) -> Self {
        let labels = Labels::of(&functions, wanted.full_names);
        let numbers = &tally.numbers;
        // Rows are large or small among what filters left: of one thread of many none would be worth a row otherwise.
        let total = tally.total.period;
        let is_wanted = |weight: u64| wanted.small || !is_small(weight, total);
        let by = |part: fn(&Numbers) -> Count, keep: &dyn Fn(FunctionId) -> bool| {
            let weight = |id: FunctionId| part(&numbers[id.index()]).period;
            let ids = functions.all.indices();
            let ids = ids.filter(|id| part(&numbers[id.index()]).samples > 0 && keep(*id));
            let key = |id: FunctionId| {
                let object = functions.get(id).identity.object.as_str();
                let inclusive = numbers[id.index()].inclusive.period;
                (
                    std::cmp::Reverse(weight(id)),
                    labels.get(&functions, id),
                    object,
                    std::cmp::Reverse(inclusive),
                )
            };
            in_order(
                ids,
                |id| is_wanted(weight(*id)),
                |a, b| key(*a).cmp(&key(*b)),
            )
        };
        let has_part = |id: FunctionId| is_wanted(numbers[id.index()].credited.period);
        let label = |id: FunctionId| labels.get(&functions, id);
        let paying = paying(&functions, &spending, label, is_wanted);
        let lines = lines(profile, &functions, &spending);
        let shared = shared_code(profile, &functions).into_iter();
        let shared = shared.map(|(id, (_, other))| (id, other, numbers[id.index()].physical));
        let mut shared: Vec<_> = shared.filter(|(.., count)| count.samples > 0).collect();
        shared.sort_by_key(|(.., count)| std::cmp::Reverse(count.period));
        Self {
            spending,
            paying,
            lines,
            hosts: None,
            kinds: shares_by(&functions, numbers, |n| n.own, |f| f.kind.word()),
            objects: shares_by(&functions, numbers, |n| n.physical, |f| &f.identity.object),
            threads: threads(profile, tally.event),
            hot: by(|n| n.own, &|_| true),
            own: by(|n| n.credited, &|id| functions.is_own(id)),
            mostly: mostly(&tally, label, has_part),
            foreign: foreign(&tally, &functions, label, is_wanted),
            shared,
            no_own: tally.no_own,
            no_own_in: shares(
                tally
                    .no_own_in
                    .iter()
                    .map(|(id, count)| (functions.get(*id).identity.object.as_str(), *count)),
            ),
            unfiltered: tally.unfiltered,
            total: tally.total,
            worth: tally.worth,
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

/// The functions of frames that pay, the heaviest first; those that are not wanted are behind the others, in no order.
fn paying<'l>(
    functions: &Functions,
    spending: &Spending,
    label: impl Fn(FunctionId) -> &'l str,
    is_wanted: impl Fn(u64) -> bool,
) -> Vec<Paying> {
    let mut sums: FxHashMap<(FunctionId, PayerId), (Count, Count)> = FxHashMap::default();
    for paid in &spending.frames {
        let key = (functions.of_frame(paid.frame), paid.payer);
        let (credited, own) = sums.entry(key).or_default();
        credited.add(paid.credited);
        own.add(paid.own);
    }
    let all = sums
        .into_iter()
        .map(|((function, payer), (credited, own))| Paying {
            function,
            payer,
            credited,
            own,
        });
    let key = |paying: &Paying| {
        let weight = std::cmp::Reverse(paying.credited.period);
        (
            weight,
            label(paying.function),
            paying.function,
            paying.payer,
        )
    };
    let compare = |a: &Paying, b: &Paying| key(a).cmp(&key(b));
    let is_large = |paying: &Paying| is_wanted(paying.credited.period);
    let mut all = in_order(all, is_large, compare);
    // The first is what to look at next, however small it is.
    if all.first().is_some_and(|first| !is_large(first)) {
        let first = (0..all.len()).min_by(|a, b| compare(&all[*a], &all[*b]));
        all.swap(0, first.unwrap_or(0));
    }
    all
}

/// Those of some rows that are wanted, in order, and behind them the others, in none.
fn in_order<T>(
    rows: impl Iterator<Item = T>,
    is_wanted: impl Fn(&T) -> bool,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let (mut rows, small): (Vec<T>, Vec<T>) = rows.partition(is_wanted);
    rows.sort_by(compare);
    rows.extend(small);
    rows
}

/// The lines of frames that pay, the heaviest first. Only frames that have one, as they do where somebody asked.
fn lines(profile: &Profile, functions: &Functions, spending: &Spending) -> Vec<PaidLine> {
    let mut sums: FxHashMap<(StringId, u32, FunctionId, PayerId), Count> = FxHashMap::default();
    for paid in &spending.frames {
        let place = profile[paid.frame].line.filter(|place| place.line > 0);
        let Some(place) = place else { continue };
        let function = functions.of_frame(paid.frame);
        let key = (place.file, place.line, function, paid.payer);
        sums.entry(key).or_default().add(paid.credited);
    }
    let mut all: Vec<PaidLine> = sums
        .into_iter()
        .map(|((file, line, function, payer), count)| PaidLine {
            file: profile[file].clone(),
            line,
            function,
            payer,
            count,
        })
        .collect();
    all.sort_unstable_by(|a, b| {
        let key = |of: &PaidLine| (std::cmp::Reverse(of.count.period), of.line, of.function);
        (key(a), &a.file).cmp(&(key(b), &b.file))
    });
    all
}

/// How it was told what is own, in words.
#[must_use]
pub fn own_rule(functions: &Functions) -> String {
    let basis = match functions.basis {
        Basis::Name => "by name",
        Basis::Path => "by source path",
        Basis::Rules => return "as --own and --not-own say".to_owned(),
        Basis::Program => return "the program itself, for nothing else is".to_owned(),
        Basis::Packages => return "packages, for nothing else is".to_owned(),
    };
    if !functions.has_own() {
        return "nothing is; --own REGEX says what is mine".to_owned();
    }
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
    let labels = Labels::of(functions, full_names);
    let ids = functions.all.indices();
    ids.map(|id| labels.get(functions, id).to_owned()).collect()
}

/// Names for tables, of functions whose own names do not say all: most of native code and of WebAssembly do.
#[derive(Debug)]
pub struct Labels(Vec<Option<Box<str>>>);

impl Labels {
    fn of(functions: &Functions, full_names: bool) -> Self {
        let has_place = |name: &CleanName| name.line > 0 || !name.file.is_empty();
        let is_plain = |f: &Function| f.apart.is_none() && !has_place(&f.identity.name);
        let others = functions.all.iter_enumerated();
        let others: Vec<(FunctionId, &Function)> = others.filter(|(_, f)| !is_plain(f)).collect();
        let Some((last, _)) = others.last() else {
            return Self(Vec::new());
        };
        let names = others.iter().map(|(_, function)| &function.identity);
        let names: Vec<String> = if full_names {
            names.map(|identity| identity.name.full()).collect()
        } else {
            told_apart(names.map(|identity| (&identity.name, identity.object.as_str())))
        };
        let mut labels = vec![None; last.index() + 1];
        for (name, (id, function)) in names.into_iter().zip(&others) {
            let label = name + function.apart.as_deref().unwrap_or_default();
            labels[id.index()] = Some(label.into_boxed_str());
        }
        Self(labels)
    }

    /// The name of a function of those that these are of.
    #[must_use]
    pub fn get<'l>(&'l self, functions: &'l Functions, id: FunctionId) -> &'l str {
        match self.0.get(id.index()) {
            Some(Some(label)) => label,
            _ => &functions.get(id).identity.name.name,
        }
    }
}

/// Weights by label, the heaviest first, then by label.
fn shares<'l>(counts: impl Iterator<Item = (&'l str, Count)>) -> Vec<Share> {
    let mut sums: FxHashMap<&str, Count> = FxHashMap::default();
    counts.for_each(|(label, count)| sums.entry(label).or_default().add(count));
    let mut shares: Vec<Share> = sums
        .into_iter()
        .map(|(label, count)| Share {
            label: label.to_owned(),
            count,
        })
        .collect();
    shares.retain(|share| share.count.samples > 0);
    let key = |share: &Share| std::cmp::Reverse(share.count.period);
    shares.sort_unstable_by(|a, b| (key(a), &a.label).cmp(&(key(b), &b.label)));
    shares
}

fn shares_by(
    functions: &Functions,
    numbers: &[Numbers],
    part: fn(&Numbers) -> Count,
    label: fn(&crate::functions::Function) -> &str,
) -> Vec<Share> {
    let counts = functions.all.iter().zip(numbers).map(|(f, n)| (f, part(n)));
    shares(
        counts
            .filter(|(_, count)| count.samples > 0)
            .map(|(f, count)| (label(f), count)),
    )
}

fn threads(profile: &Profile, event: EventId) -> Vec<Share> {
    let counts = of_event(profile, event).map(|entry| {
        let count = Count {
            period: entry.period,
            samples: entry.samples,
        };
        (profile[entry.comm].as_str(), count)
    });
    shares(counts)
}

fn mostly<'l>(
    tally: &Tally,
    label: impl Fn(FunctionId) -> &'l str,
    is_wanted: impl Fn(FunctionId) -> bool,
) -> FxHashMap<FunctionId, Vec<(FunctionId, Count)>> {
    let mut found: FxHashMap<FunctionId, Vec<(FunctionId, Count)>> = FxHashMap::default();
    let parts = tally
        .pays
        .iter()
        .filter(|((payer, _), _)| is_wanted(*payer));
    for ((payer, function), count) in parts {
        found.entry(*payer).or_default().push((*function, *count));
    }
    for functions in found.values_mut() {
        functions.sort_by_key(|(id, count)| (std::cmp::Reverse(count.period), label(*id), *id));
    }
    found
}

fn foreign<'l>(
    tally: &Tally,
    functions: &Functions,
    label: impl Fn(FunctionId) -> &'l str,
    is_wanted: impl Fn(u64) -> bool,
) -> Vec<Foreign> {
    let pairs = tally.pays.iter();
    let pairs = pairs.filter(|((_, function), _)| !functions.is_own(*function));
    let rows = pairs.map(|(&(payer, function), &count)| Foreign {
        function,
        payer,
        count,
    });
    let key = |row: &Foreign| {
        let names = (label(row.function), label(row.payer));
        (
            std::cmp::Reverse(row.count.period),
            names,
            row.function,
            row.payer,
        )
    };
    let is_large = |row: &Foreign| is_wanted(row.count.period);
    in_order(rows, is_large, |a, b| key(a).cmp(&key(b)))
}

/// How many rows a table shows at most: up to 95 per cent of its weight, and none that is smaller than half a per cent of the
/// total.
#[must_use]
pub fn worth_showing(weights: impl Iterator<Item = u64> + Clone, total: u64) -> usize {
    let all: u64 = weights.clone().fold(0, u64::saturating_add);
    let (mut shown, mut rows) = (0_u64, 0);
    for weight in weights {
        let is_enough = u128::from(shown) * 100 >= u128::from(all) * 95;
        if is_small(weight, total) || is_enough {
            break;
        }
        shown = shown.saturating_add(weight);
        rows += 1;
    }
    rows
}

fn is_small(weight: u64, total: u64) -> bool {
    u128::from(weight) * 200 < u128::from(total)
}
