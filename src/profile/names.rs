//! The names of JIT code that was hit, each once.
//!
//! A function of a dump that was compiled again has its name and is the same function; entries of a perf map are kept
//! apart by address, as perf keeps them. In: addresses and the session. Out: [`JitNames`]. Called by
//! [`super::places`].

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::address::Avma;
use crate::collect::Collected;
use crate::dso::demangle::demangle;
use crate::ids::{IndexVec, Spare, index_vec, numbers};
use crate::intern::ItemIndex;
use crate::needs::Needs;
use crate::parallel::in_parallel;
use crate::session::jit::{JitCode, JitCodeId};
use crate::session::{Session, Target};
use crate::symbolize::{Answers, NameStyle, SourceMaps};

numbers! {
    /// Index into [`JitNames::texts`].
    pub(super) struct NameId(Spare);
}

/// Distinct names.
pub(super) struct JitNames {
    /// By code: its name, if it was hit.
    pub(super) of_code: IndexVec<JitCodeId, Option<NameId>>,
    pub(super) texts: IndexVec<NameId, Box<str>>,
    /// By code, where lines are asked for: whether its name in the dump tells a place in the sources. Asked one address after
    /// the other, to read the names again would be to wait for memory again.
    pub(super) tells_place: IndexVec<JitCodeId, bool>,
}

/// A name as shown, where it is if that keeps it apart from others, and a hash of both.
struct Shown {
    name: Box<str>,
    hash: u64,
    start: Option<Avma>,
    tells_place: bool,
}

impl JitNames {
    /// Names of all code that was hit: made in parallel and in the order of the dump, because to read them is to wait
    /// for memory, and then compared where their hashes are equal.
    pub(super) fn of(
        collected: &Collected,
        session: &Session<'_>,
        answers: Answers<'_>,
        (style, needs): (NameStyle, Needs),
        threads: usize,
    ) -> Self {
        const PIECE: usize = 1024;
        let hit = hit(collected, session);
        let pieces = in_parallel(hit.chunks(PIECE).collect(), threads, |piece| {
            let shown = |id: &JitCodeId| Shown::of(session, answers, *id, (style, needs));
            piece.iter().map(shown).collect::<Vec<_>>()
        });
        let mut numbers = ItemIndex::with_capacity(hit.len());
        let mut of_code = index_vec![None; session.jit.code_count()];
        let mut texts: IndexVec<NameId, Box<str>> = IndexVec::with_capacity(hit.len());
        let mut others: IndexVec<NameId, (u64, Option<Avma>)> = IndexVec::with_capacity(hit.len());
        let mut tells_place = index_vec![false; if needs.contains(Needs::FUNCTION_LINES) { of_code.len() } else { 0 }];
        for (id, shown) in hit.iter().zip(pieces.into_iter().flatten()) {
            if shown.tells_place {
                tells_place[*id] = true;
            }
            let own = (shown.hash, shown.start);
            let is = |at: NameId| others[at] == own && texts[at] == shown.name;
            let new = texts.next_idx();
            let known = numbers.find_or_add(shown.hash, new, is, |at| others[at].0);
            of_code[*id] = Some(known.unwrap_or(new));
            if known.is_none() {
                others.push(own);
                texts.push(shown.name);
            }
        }
        Self {
            of_code,
            texts,
            tells_place,
        }
    }
}

/// The code that was hit, in the order of the dumps.
fn hit(collected: &Collected, session: &Session<'_>) -> Vec<JitCodeId> {
    let mut is_hit: IndexVec<JitCodeId, bool> = index_vec![false; session.jit.code_count()];
    for pc in &collected.pcs {
        if let Target::Jit(id, _) = pc.target {
            is_hit[id] = true;
        }
    }
    is_hit.indices().filter(|id| is_hit[*id]).collect()
}

/// A name with the place in the original source.
fn original_name(maps: &SourceMaps<'_>, code: JitCode<'_, '_>) -> Option<Vec<u8>> {
    if !maps.renames() || !code.producer().row().has_source_maps {
        return None;
    }
    let name = code.name();
    let place = (code.producer().row().place)(name)?;
    let script = String::from_utf8_lossy(&name[place.file]);
    let original = maps.original(&script, place.line, place.column)?;
    let (file, line, column) = (original.file, original.line, original.column);
    let place_text = format!("{file}:{line}:{column}");
    Some(
        [
            &name[..place.all.start],
            place_text.as_bytes(),
            &name[place.all.end..],
        ]
        .concat(),
    )
}

/// The name of a piece of JIT code as reports show it.
pub(crate) fn of_code(
    session: &Session<'_>,
    answers: Answers<'_>,
    id: JitCodeId,
    style: NameStyle,
) -> String {
    let code = session.jit.code(id);
    let known = answers.wasm.name_of(id, code.name());
    let original = original_name(answers.maps, code);
    let name = known.or(original.as_deref()).unwrap_or(code.name());
    if session.jit.object(code.object()).is_perf_map() {
        String::from_utf8_lossy(name).into_owned()
    } else {
        demangle(name, style).into_owned()
    }
}

impl Shown {
    fn of(
        session: &Session<'_>,
        answers: Answers<'_>,
        id: JitCodeId,
        (style, needs): (NameStyle, Needs),
    ) -> Self {
        let code = session.jit.code(id);
        let of_map = session.jit.object(code.object()).is_perf_map();
        let name = of_code(session, answers, id, style);
        let start = of_map.then(|| code.start());
        Self {
            hash: FxBuildHasher.hash_one((&*name, start)),
            name: name.into(),
            start,
            tells_place: needs.contains(Needs::FUNCTION_LINES)
                && (code.producer().row().place)(code.name()).is_some(),
        }
    }
}
