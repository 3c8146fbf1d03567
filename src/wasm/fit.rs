//! Which module a `.cwasm` was compiled from.
//!
//! In: a compiled module with its map, and modules that may be the one. Out: [`Fit`]. Positions count from the start of the
//! module's file, so a module that was stripped, or that got debug information later, has all of them shifted by the same.

use std::ops::RangeInclusive;

use super::compiled::{Compiled, wasm_function};
use super::module::CoreModule;

/// A module that fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fit {
    /// Which of the modules that were offered.
    pub(super) candidate: usize,
    /// What positions of the map are larger by than those in this module's file.
    pub(super) shift: i64,
}

/// The best of the candidates for module `number` of a compiled file: one with DWARF before others.
pub(super) fn best(
    compiled: &Compiled<'_>,
    number: u32,
    candidates: &[&CoreModule<'_>],
) -> Option<Fit> {
    let all: Vec<_> = candidates
        .iter()
        .map(|module| shifts(compiled, number, module))
        .collect();
    let fits = (0..candidates.len()).filter_map(|candidate| {
        let shift = shift(candidate, candidates, &all)?;
        Some(Fit { candidate, shift })
    });
    fits.max_by_key(|fit| {
        let module = candidates[fit.candidate];
        let tells = (module.has_dwarf(), module.source_map_url().is_some());
        (tells, fit.shift == 0, std::cmp::Reverse(fit.candidate))
    })
}

/// Whether module `number` of a compiled file may have been made from this one, wherever it lay in its file.
pub(super) fn may_be(compiled: &Compiled<'_>, number: u32, module: &CoreModule<'_>) -> bool {
    shifts(compiled, number, module).is_some()
}

/// The shift of one candidate, if it is certain.
fn shift(
    candidate: usize,
    candidates: &[&CoreModule<'_>],
    shifts: &[Option<RangeInclusive<i64>>],
) -> Option<i64> {
    let own = shifts[candidate].as_ref()?;
    if own.contains(&0) {
        return Some(0);
    }
    if own.start() == own.end() {
        return Some(*own.start());
    }
    // The module that was compiled tells, if it lies here as well: the code is the same, only elsewhere.
    let code = candidates[candidate];
    let is_twin = |(other, range): (&&CoreModule<'_>, &Option<RangeInclusive<i64>>)| {
        let is_original = range.as_ref().is_some_and(|range| range.contains(&0));
        let by = i64::try_from(other.code_start).ok()? - i64::try_from(code.code_start).ok()?;
        (is_original && other.code == code.code && own.contains(&by)).then_some(by)
    };
    candidates.iter().zip(shifts).find_map(is_twin)
}

/// By what positions may be shifted so that those of every function lie in its body. `None` if it cannot be this module.
fn shifts(
    compiled: &Compiled<'_>,
    number: u32,
    module: &CoreModule<'_>,
) -> Option<RangeInclusive<i64>> {
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for (function, wasm) in compiled.wasm_functions() {
        if wasm.module != number {
            continue;
        }
        let body = module.body(wasm.index)?;
        let (start, end) = (
            i64::try_from(body.start).ok()?,
            i64::try_from(body.end).ok()?,
        );
        let name = wasm_function(function.name).and_then(|(_, name)| name);
        let known = module.function_name(wasm.index);
        if let (Some(name), Some(known)) = (name, known)
            && plain_beginning(name) != plain_beginning(known.as_bytes())
        {
            return None;
        }
        let positions = compiled.map.changes(function.range());
        for position in positions.filter_map(|(_, position)| position) {
            least = least.max(i64::from(position) - (end - 1));
            most = most.min(i64::from(position) - start);
        }
        if least > most {
            return None;
        }
    }
    // Without any position there is nothing to shift.
    (least != i64::MIN).then_some(least..=most)
}

/// wasmtime cuts the names of symbols and replaces what is no letter in them.
fn plain_beginning(name: &[u8]) -> &[u8] {
    const CERTAIN: usize = 64;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let end = name.iter().position(|byte| !is_plain(byte));
    &name[..end.unwrap_or(name.len()).min(CERTAIN)]
}
