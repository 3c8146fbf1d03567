//! Which functions are shown.

use crate::assembly::{Assembly, Function, Functions};
use crate::near::{Candidate, near};
use crate::needs::Needs;
use crate::profile::{EventId, Place, more};
use crate::runtimes::names::native;
use crate::runtimes::query::{self, Fit, Query};

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names, each with the other spellings that stand for it; all functions if there are none.
    pub symbols: Vec<Vec<String>>,
    /// Only functions whose name contains this.
    pub contains: Option<String>,
    /// Functions below so many per cent of what is left are not shown.
    pub percent_limit: f64,
}

impl Selection {
    /// What tells functions of one name apart.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let mut texts = self.symbols.iter().flatten();
        let says_more = texts.any(|text| Query::of(text).says_more());
        (Needs::KINDS | Needs::INLINED).only_if(says_more)
    }
}

/// A name that no function with samples has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// As it was asked for.
    pub name: String,
    /// Names that are like it.
    pub nearest: Vec<String>,
}

/// Indices of the functions to show, the heaviest first.
///
/// # Errors
/// When a name that was asked for is not there.
pub fn choose(functions: &Functions, selection: &Selection) -> Result<Vec<usize>, NotFound> {
    let contains = |function: &Function| {
        let text = selection.contains.as_deref();
        text.is_none_or(|text| function.name.contains(text) || recorded(function).contains(text))
    };
    let all = functions.all.iter().enumerate();
    let mut left: Vec<usize> = all
        .filter(|(_, function)| contains(function))
        .map(|(number, _)| number)
        .collect();
    if !selection.symbols.is_empty() {
        let mut named = Vec::new();
        for spellings in &selection.symbols {
            named.extend(find(functions, &left, spellings)?);
        }
        left.retain(|number| named.contains(number));
    }
    left.retain(|number| reaches(functions, *number, selection.percent_limit));
    left.sort_by_key(|number| {
        // Weights of different events do not add up: the largest share counts.
        let events = functions.totals.iter_enumerated();
        let shares = events.map(|(event, total)| {
            let weight = functions.all[*number].weight(event).0;
            (u128::from(weight) << 64) / u128::from(total.0.max(1))
        });
        std::cmp::Reverse(shares.max())
    });
    Ok(left)
}

/// The names that were asked for of which nothing was shown.
#[must_use]
pub fn unshown<'s>(assembly: &Assembly, selection: &'s Selection, shown: &[usize]) -> Vec<&'s str> {
    let functions = &assembly.functions;
    let is_missing = |spellings: &&Vec<String>| {
        let all: Vec<usize> = (0..functions.all.len()).collect();
        let own = find(functions, &all, spellings).unwrap_or_default();
        !own.iter().any(|number| shown.contains(number))
    };
    let missing = selection.symbols.iter().filter(is_missing);
    missing
        .filter_map(|spellings| spellings.first())
        .map(String::as_str)
        .collect()
}

/// Whether a function has its share of some event.
fn reaches(functions: &Functions, number: usize, limit: f64) -> bool {
    let share = |(event, total): (EventId, &(u64, u64))| {
        super::share(functions.all[number].weight(event).0, total.0)
    };
    limit <= 0.0
        || functions
            .totals
            .iter_enumerated()
            .map(share)
            .any(|share| share >= limit)
}

/// As the runtime or the compiler wrote the name, where views have another one; else nothing.
fn recorded(function: &Function) -> &str {
    function.recorded.as_deref().unwrap_or_default()
}

/// The functions of a name: those that have it, as reports or tables print it, else those of the only name that begins with it
/// or that it finds.
fn find(
    functions: &Functions,
    among: &[usize],
    spellings: &[String],
) -> Result<Vec<usize>, NotFound> {
    let name_of = |number: &usize| functions.all[*number].name.as_str();
    let has = |number: &&usize| {
        let names = [name_of(number), recorded(&functions.all[**number])];
        spellings
            .iter()
            .any(|spelling| names.contains(&spelling.as_str()))
    };
    let exact: Vec<usize> = among.iter().filter(has).copied().collect();
    if !exact.is_empty() {
        // `work.cold` and `work.constprop.0` are parts and copies of it: what is hot there is hot in it.
        let is_clone = |number: &&usize| {
            let function = &functions.all[**number];
            let origin = function.name.split(" [clone ").next();
            let origin = native(origin.unwrap_or_default());
            origin != function.name
                && exact.iter().any(|exact| {
                    let exact = &functions.all[*exact];
                    exact.name == origin && exact.path == function.path
                })
        };
        let clones = among.iter().filter(is_clone);
        return Ok(exact.iter().chain(clones).copied().collect());
    }
    let queries: Vec<Query> = spellings.iter().map(|text| Query::of(text)).collect();
    let fit_of = |number: usize| {
        let function = &functions.all[number];
        let Function { name, clean, .. } = function;
        let order = function.place.as_deref().map(Place::order);
        let order = order.unwrap_or_default();
        let more = more(
            function.parameters.as_deref(),
            function.place.as_deref(),
            &order,
        );
        let fits = queries.iter().flat_map(|query| {
            let raw = function.recorded.as_deref().unwrap_or(name);
            [name, raw].map(|name| query.fit(name, clean, &more))
        });
        fits.flatten().min()
    };
    let fits: Vec<(usize, Option<Fit>)> = among
        .iter()
        .map(|number| (*number, fit_of(*number)))
        .collect();
    let found = query::best(fits.iter().copied());
    let is_name = fits
        .iter()
        .any(|(_, fit)| fit.is_some_and(|fit| fit <= Fit::Name));
    let is_unique = |numbers: &[usize]| {
        let mut pairs = numbers.windows(2);
        pairs.all(|pair| name_of(&pair[0]) == name_of(&pair[1]))
    };
    if is_name {
        return Ok(found);
    }
    let begins = |number: &&usize| {
        spellings
            .iter()
            .any(|spelling| name_of(number).starts_with(spelling))
    };
    let longer: Vec<usize> = among.iter().filter(begins).copied().collect();
    for choice in [longer, found] {
        if !choice.is_empty() && is_unique(&choice) {
            return Ok(choice);
        }
    }
    let wanted = spellings.first().cloned().unwrap_or_default();
    let shown: Vec<String> = among
        .iter()
        .map(|number| functions.all[*number].clean.short())
        .collect();
    let names = among.iter().zip(&shown).map(|(number, shown)| Candidate {
        name: &functions.all[*number].clean.name,
        shown,
        weight: functions.all[*number].weight(EventId::default()).0,
    });
    Err(NotFound {
        nearest: near(&wanted, names),
        name: wanted,
    })
}
