//! Listings of functions: bytes, instructions, names and lines put together.
//!
//! Three rounds for each megabyte of code: functions are decoded in parallel, then all addresses they name and all their lines are
//! looked up at once, then names go behind the text.

use rustc_hash::FxHashMap;

use super::decoded::{Kind, LineTexts, Lines, site_of};
use super::functions::{Function, Origin};
use super::{Assembly, Listing, MOST_BYTES, Material, Missing, Request, jit, native};
use crate::collect::MapCache;
use crate::input::SourceClaim;
use crate::parallel::in_parallel;

/// Code of all functions that is shown at most, the heaviest first: an instruction takes some 100 bytes here, and a file of 16 kB
/// may have functions of many megabytes.
const MOST_CODE: u64 = 8 << 20;
/// Instructions of all functions that are shown at most: those of x86-64 take four bytes on average, but may take one.
const MOST_INSTRUCTIONS: usize = 2 << 20;
/// Code that is decoded at once, if it is more than one function.
const AT_ONCE: u64 = 1 << 20;

/// Makes a listing of each chosen function; with it what is recorded of the sources of their lines.
pub(super) fn list(
    material: &Material<'_, '_>,
    request: &Request,
    chosen: &[usize],
    assembly: &mut Assembly,
) -> FxHashMap<String, SourceClaim> {
    let all = &assembly.functions.all;
    let sizes: Vec<u64> = chosen
        .iter()
        .map(|number| size(material, &all[*number]))
        .collect();
    let is_shown = if request.only_files {
        vec![true; chosen.len()]
    } else {
        within(&sizes, |at| samples(&all[chosen[at]]), MOST_CODE)
    };
    let (mut places, mut claims) = (LineTexts::default(), FxHashMap::default());
    let mut listings = Vec::with_capacity(chosen.len());
    let (mut begin, mut left) = (0, MOST_INSTRUCTIONS);
    while begin < chosen.len() {
        let end = begin + batch(&sizes[begin..]);
        let work: Vec<(usize, bool)> = (begin..end).map(|at| (chosen[at], is_shown[at])).collect();
        let mut made = list_batch(
            material,
            request,
            work,
            all,
            &mut left,
            (&mut places, &mut claims),
        );
        if request.only_files {
            made.iter_mut().flatten().for_each(Listing::keep_files);
        }
        listings.append(&mut made);
        begin = end;
    }
    assembly.listings = listings;
    assembly.texts = places.texts;
    claims
}

/// How many of the next functions are decoded at once: one at least.
fn batch(sizes: &[u64]) -> usize {
    let mut sum = 0;
    let fits = |size: &&u64| {
        sum += **size;
        sum <= AT_ONCE
    };
    sizes.iter().take_while(fits).count().max(1)
}

/// Which of these sizes are within the budget, if those with most samples go first.
fn within(sizes: &[u64], samples: impl Fn(usize) -> u64, mut budget: u64) -> Vec<bool> {
    let mut is_within = vec![true; sizes.len()];
    if sizes.iter().sum::<u64>() <= budget {
        return is_within;
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(samples(*at)));
    for at in order {
        is_within[at] = sizes[at] <= budget;
        if is_within[at] {
            budget -= sizes[at];
        }
    }
    is_within
}

fn samples(function: &Function) -> u64 {
    function.hits.iter().map(|hit| hit.samples).sum()
}

/// Bytes of code that are decoded of a function.
fn size(material: &Material<'_, '_>, function: &Function) -> u64 {
    let len = match function.origin {
        Origin::Jit(id) => material.session.jit.code(id).bytes().len() as u64,
        Origin::Symbol { start, end, .. } => end.saturating_sub(start),
    };
    len.min(MOST_BYTES)
}

/// Makes listings of functions, of those that are not shown nothing but why.
fn list_batch(
    material: &Material<'_, '_>,
    request: &Request,
    work: Vec<(usize, bool)>,
    all: &[Function],
    left: &mut usize,
    (places, claims): (&mut LineTexts, &mut FxHashMap<String, SourceClaim>),
) -> Vec<Result<Listing, Missing>> {
    let mut results = in_parallel(work, material.threads, |(number, is_shown)| {
        let function = &all[number];
        if !is_shown {
            return Err(too_much(number));
        }
        let hits: Vec<u64> = offsets(function);
        match function.origin {
            Origin::Jit(id) => jit::decode(material, request.syntax, number, function, id, &hits),
            Origin::Symbol { dso, start, end } => {
                native::file_code(material, request.syntax, dso, start, end)
                    .map(|code| native::decode_file(number, code, &hits))
            }
        }
        .map_err(|(blame, reason)| Missing {
            function: number,
            blame,
            reason,
        })
    });
    if !request.only_files {
        for one in &mut results {
            let count = one.as_ref().map_or(0, |decoded| decoded.pieces.len());
            match (&one, left.checked_sub(count)) {
                (Ok(decoded), None) => *one = Err(too_much(decoded.function)),
                (_, rest) => *left = rest.unwrap_or(*left),
            }
        }
    }
    let names = native::file_names(material, results.iter().flatten());
    let lines = request
        .lines
        .then(|| Lines::of(material, results.iter().flatten()));
    places.begin();
    let cache = MapCache::default();
    let listings = results
        .into_iter()
        .map(|decoded| {
            let decoded = decoded?;
            let function = &all[decoded.function];
            Ok(match decoded.kind {
                Kind::Jit(_) => jit::finish(
                    material,
                    request,
                    function,
                    decoded,
                    &cache,
                    (lines.as_ref(), &mut *places),
                ),
                Kind::File { dso, to_query } => {
                    let place = |address: u64| {
                        let lines = lines.as_ref()?;
                        let (site, address) =
                            site_of(material, dso, address.wrapping_add(to_query));
                        lines.at(site, address, &function.name, places)
                    };
                    native::finish(material, &names[&dso], dso, decoded, place)
                }
            })
        })
        .collect();
    claims.extend(lines.into_iter().flat_map(Lines::into_claims));
    listings
}

/// Why a function is not shown for which there is no room behind the others.
fn too_much(function: usize) -> Missing {
    Missing {
        function,
        blame: "code".to_owned(),
        reason: format!(
            "more than {} MB of code, or {} million instructions, in all functions; name some to see them",
            MOST_CODE >> 20,
            MOST_INSTRUCTIONS >> 20
        ),
    }
}

/// Offsets of samples, in order: instructions begin there.
fn offsets(function: &Function) -> Vec<u64> {
    let sampled = function.hits.iter().filter(|hit| !hit.is_call);
    let mut offsets: Vec<u64> = sampled.map(|hit| hit.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_over_all_functions() {
        let samples = |at: usize| [1, 5, 3, 2][at];
        assert_eq!(within(&[4, 4, 4, 4], samples, 16), [true; 4]);
        assert_eq!(
            within(&[4, 4, 4, 4], samples, 8),
            [false, true, true, false]
        );
        assert_eq!(
            within(&[4, 9, 4, 4], samples, 8),
            [false, false, true, true]
        );
        assert_eq!(batch(&[AT_ONCE - 1, 1, 1]), 2);
        assert_eq!(batch(&[AT_ONCE + 1, 1]), 1);
    }
}
