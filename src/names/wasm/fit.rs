//! Which module a `.cwasm` was compiled from.
//!
//! In: a compiled module with its map, and modules that may be the one. Out: [`Fit`]. Positions count from the start of the
//! module's file, so a module that was stripped, or that got debug information later, has all of them shifted by the same.
//!
//! Two versions of a program of which only constants and comments differ have all functions at the same positions. Which of them
//! was compiled is then known only if somebody says so: the user, or a file's name (`app.cwasm` is made from `app.wasm`).

use std::ops::RangeInclusive;

use super::compiled::{Compiled, wasm_function};
use super::module::CoreModule;

/// A module that may be the one.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'c, 'a> {
    /// The module.
    pub(super) module: &'c CoreModule<'a>,
    /// The user named its file, or its name says that it is the one; the larger, the more is said.
    pub(super) rank: u8,
}

/// What of the candidates is the one that was compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// None of them can be.
    Nothing,
    /// This one.
    One(Fit),
    /// Several that differ; nothing says which.
    Several(Vec<usize>),
}

/// A module that fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fit {
    /// Which of the modules that were offered.
    pub(super) candidate: usize,
    /// What positions of the map are larger by than those in this module's file.
    pub(super) shift: i64,
}

/// The candidate that module `number` of a compiled file was made from: of twins, one with DWARF before others.
pub(super) fn choose(
    compiled: &Compiled<'_>,
    number: u32,
    candidates: &[Candidate<'_, '_>],
) -> Choice {
    let modules: Vec<&CoreModule<'_>> = candidates.iter().map(|c| c.module).collect();
    let all: Vec<_> = modules
        .iter()
        .map(|module| shifts(compiled, number, module))
        .collect();
    let fits = (0..modules.len()).filter_map(|candidate| {
        let shift = shift(candidate, &modules, &all)?;
        Some(Fit { candidate, shift })
    });
    let fits: Vec<Fit> = fits.collect();
    let module = |fit: &Fit| modules[fit.candidate];
    let rank = |fit: &Fit| candidates[fit.candidate].rank;
    let with_code = match ranked(&fits, rank, |a, b| module(a).code == module(b).code) {
        Ok(fits) => fits,
        Err(several) => return Choice::Several(several),
    };
    let (with_dwarf, without): (Vec<Fit>, Vec<Fit>) =
        with_code.iter().partition(|fit| module(fit).has_dwarf());
    let tells_the_same = |a: &Fit, b: &Fit| module(a).tells_the_same(module(b));
    let left = match ranked(&with_dwarf, rank, tells_the_same) {
        Ok(found) if found.is_empty() => without,
        Ok(found) => found,
        Err(several) => return Choice::Several(several),
    };
    let best = left.into_iter().max_by_key(|fit| {
        let has_map = module(fit).source_map_url().is_some();
        (has_map, fit.shift == 0, std::cmp::Reverse(fit.candidate))
    });
    best.map_or(Choice::Nothing, Choice::One)
}

/// Those that are the same as the one of the highest rank; where several of that rank differ, their numbers.
fn ranked(
    fits: &[Fit],
    rank: impl Fn(&Fit) -> u8,
    is_same: impl Fn(&Fit, &Fit) -> bool,
) -> Result<Vec<Fit>, Vec<usize>> {
    let highest = fits.iter().map(&rank).max();
    let of_highest = fits.iter().filter(|fit| Some(rank(fit)) == highest);
    let of_highest: Vec<&Fit> = of_highest.collect();
    let Some(first) = of_highest.first() else {
        return Ok(Vec::new());
    };
    if of_highest.iter().any(|fit| !is_same(first, fit)) {
        return Err(of_highest.iter().map(|fit| fit.candidate).collect());
    }
    let same = fits.iter().filter(|fit| is_same(first, fit));
    Ok(same.copied().collect())
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
