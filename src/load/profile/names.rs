//! The names of JIT code that was hit, each once.
//!
//! A function of a dump that was compiled again has its name and is the same function; entries of a perf map are kept
//! apart by address, as perf keeps them. In: addresses and the session. Out: [`JitNames`]. Called by
//! [`super::places`].

use std::borrow::Cow;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::Recorded;
use crate::address::Avma;
use crate::collect::Collected;
use crate::dso::demangle::demangle;
use crate::ids::{IndexVec, Spare, index_vec, numbers};
use crate::intern::ItemIndex;
use crate::jit::JitCodeId;
use crate::needs::Needs;
use crate::parallel::in_parallel;
use crate::runtimes::Producer;
use crate::session::{Session, Target};
use crate::symbolize::{Answers, NameStyle, Original, OriginalName, SourceMaps};

numbers! {
    /// Index into [`JitNames::texts`].
    pub(super) struct NameId(Spare);
}

/// Distinct names.
pub(super) struct JitNames {
    /// By code: its name, if it was hit.
    pub(super) of_code: IndexVec<JitCodeId, Option<NameId>>,
    pub(super) texts: IndexVec<NameId, Box<str>>,
    /// By name: what the runtime called the function, where its script has a source map; empty where no script has.
    pub(super) recorded: IndexVec<NameId, Option<Box<Recorded>>>,
    /// By code, where lines are asked for: whether its name in the dump tells a place in the sources. Asked one address after
    /// the other, to read the names again would be to wait for memory again.
    pub(super) tells_place: IndexVec<JitCodeId, bool>,
}

/// A name as shown, where it is if that keeps it apart from others, and a hash of both.
struct Shown {
    name: Box<str>,
    recorded: Option<Box<Recorded>>,
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
        let mut recorded: IndexVec<NameId, Option<Box<Recorded>>> = IndexVec::new();
        let renames = answers.maps.renames();
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
                if renames {
                    recorded.push(shown.recorded);
                }
            }
        }
        Self {
            of_code,
            texts,
            recorded,
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

/// A name with the function's name and place in the original source, and whether its word is still the runtime's. Nothing where
/// the script has no source map, or is run by what has this name.
pub(crate) fn original_name(
    maps: &SourceMaps<'_>,
    producer: Producer,
    name: &[u8],
) -> Option<(Vec<u8>, bool)> {
    let row = producer.row();
    if !maps.renames() {
        return None;
    }
    if let Some(name) = demangled(producer, name) {
        return Some((name, false));
    }
    if !row.has_source_maps {
        return None;
    }
    let place = (row.place)(name)?;
    let script = String::from_utf8_lossy(&name[place.file]);
    // What runs a script begins where that does.
    if (place.line, place.column) == (1, 1) || !maps.has_map(&script) {
        return None;
    }
    let Some(function) = maps.function(&script, place.line, place.column) else {
        // What a bundler added.
        return Some((name.to_owned(), true));
    };
    let word = &name[place.word.clone()];
    let given = function.name.filter(|_| !word.starts_with(b"<"));
    let is_word = given.is_none();
    let word = given.map_or_else(
        || Cow::Borrowed(word),
        |given| Cow::Owned(word_of(&given, word).into_bytes()),
    );
    let Original { file, line, column } = function.place;
    let text = format!("{file}:{line}:{column}");
    let parts = [
        &name[..place.word.start],
        &word,
        &name[place.word.end..place.all.start],
        text.as_bytes(),
        &name[place.all.end..],
    ];
    Some((parts.concat(), is_word))
}

/// A name in which the runtime told a function as its compiler had mangled it: V8 does of WebAssembly, whose hash is another in each
/// build.
fn demangled(producer: Producer, name: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(name).ok()?;
    let word = (producer.row().mangled)(name)?;
    let shown = demangle(word.as_bytes(), NameStyle::Short);
    (shown != word).then(|| name.replacen(word, &shown, 1).into_bytes())
}

/// A name of the original as the runtime would write it, by its word for the function: `get size`, and `Shape.area` where the
/// original's text has that object as well.
fn word_of(given: &OriginalName, word: &[u8]) -> String {
    let name = &given.name;
    let accessor = ["get ", "set "]
        .into_iter()
        .find(|kind| word.starts_with(kind.as_bytes()));
    let accessor = accessor.unwrap_or_default();
    let owner = word[accessor.len()..].strip_suffix(name.as_bytes());
    let owner = owner.and_then(|owner| std::str::from_utf8(owner).ok());
    let owner = owner.filter(|owner| given.owner.replace("prototype.", "") == **owner);
    format!("{accessor}{}{name}", owner.unwrap_or_default())
}

/// Whether names get the file of what `eval` made.
const fn tells_files(needs: Needs) -> bool {
    let by_file = Needs::KINDS.union(Needs::ORIGINALS);
    needs.intersects(by_file.union(Needs::EVALED))
}

/// The name of a piece of JIT code as views show it, and that in the recording where the script has a source map.
pub(crate) fn of_code(
    session: &Session<'_>,
    answers: Answers<'_>,
    id: JitCodeId,
    (style, needs): (NameStyle, Needs),
) -> (String, Option<Recorded>) {
    let code = session.jit.code(id);
    let written = if tells_files(needs) {
        session.jit.name_with_file(id)
    } else {
        Cow::Borrowed(code.name())
    };
    let written = &*written;
    let known = answers.wasm.name_of(id, written);
    let original = original_name(answers.maps, code.producer(), written);
    let of_original = original.as_ref().map(|(name, _)| name.as_slice());
    let name = known.or(of_original).unwrap_or(written);
    let shown = |bytes| {
        if session.jit.object(code.object()).is_perf_map() {
            String::from_utf8_lossy(bytes).into_owned()
        } else {
            demangle(bytes, style).into_owned()
        }
    };
    let recorded = original.as_ref().map(|(_, is_word)| Recorded {
        name: shown(written),
        is_word: *is_word,
    });
    (shown(name), recorded)
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
        let (name, recorded) = of_code(session, answers, id, (style, needs));
        let start = of_map.then(|| code.start());
        Self {
            hash: FxBuildHasher.hash_one((&*name, start)),
            name: name.into(),
            recorded: recorded.map(Box::new),
            start,
            tells_place: needs.contains(Needs::FUNCTION_LINES)
                && (code.producer().row().place)(&session.jit.name_with_file(id)).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webassembly_in_v8_has_the_names_of_its_authors() {
        let shown = |name: &str| {
            let name = demangled(Producer::V8, name.as_bytes())?;
            String::from_utf8(name).ok()
        };
        for (name, expected) in [
            (
                "JS:_ZN1w5alpha17h57af44c9fc7673d3E-1-turbofan",
                Some("JS:w::alpha-1-turbofan"),
            ),
            ("JS:_Z3mixii-12-liftoff", Some("JS:mix-12-liftoff")),
            ("JS:_Zinvalid-1-turbofan", None),
            ("JS:main-1-turbofan", None),
            ("JS:*_ZN1w5alphaE /w/x.js:1:2", None),
        ] {
            assert_eq!(shown(name).as_deref(), expected, "{name}");
        }
        assert_eq!(
            demangled(Producer::Wasmtime, b"JS:_Z3mixii-12-liftoff"),
            None
        );
    }
}
