//! Listings of functions: bytes, instructions, names and lines put together.
//!
//! Three rounds: all functions are decoded in parallel, then all addresses they name and all their lines are looked up at once, then
//! names go behind the text.

use super::decoded::{Kind, LineTexts, Lines};
use super::functions::{Function, Origin};
use super::{Assembly, Material, Missing, Request, jit, native};
use crate::collect::MapCache;
use crate::parallel::in_parallel;
use crate::symbolize::Site;

/// Makes a listing of each chosen function.
pub(super) fn list(
    material: &Material<'_, '_>,
    request: &Request,
    chosen: &[usize],
    assembly: &mut Assembly,
) {
    let all = &assembly.functions.all;
    let decoded = in_parallel(chosen.to_vec(), material.threads, |number| {
        let function = &all[number];
        let hits: Vec<u64> = offsets(function);
        match function.origin {
            Origin::Jit(id) => jit::decode(material, request.syntax, number, function, id, &hits),
            Origin::Symbol { dso, start, end } => native::file_code(material, dso, start, end)
                .map(|code| native::decode_file(request, number, code, &hits)),
        }
        .map_err(|(blame, reason)| Missing {
            function: number,
            blame,
            reason,
        })
    });
    let names = native::file_names(material, decoded.iter().flatten());
    let lines = request
        .lines
        .then(|| Lines::of(material, decoded.iter().flatten()));
    let mut places = LineTexts::default();
    let cache = MapCache::default();
    let listings: Vec<_> = decoded
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
                    (lines.as_ref(), &mut places),
                ),
                Kind::File { dso, to_query } => {
                    let place = |address: u64| {
                        let lines = lines.as_ref()?;
                        lines.at(
                            Site::Dso(dso),
                            address.wrapping_add(to_query),
                            &function.name,
                            &mut places,
                        )
                    };
                    native::finish(material, &names[&dso], dso, decoded, place)
                }
            })
        })
        .collect();
    assembly.listings = listings;
    assembly.texts = places.texts;
}

/// Offsets of samples, in order: instructions begin there.
fn offsets(function: &Function) -> Vec<u64> {
    let sampled = function.hits.iter().filter(|hit| !hit.is_call);
    let mut offsets: Vec<u64> = sampled.map(|hit| hit.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}
