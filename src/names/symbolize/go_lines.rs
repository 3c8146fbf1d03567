//! Lines and inlined functions of Go programs that have no DWARF: from the table of functions that they carry.
//!
//! In: the table and the addresses that are asked for. Out: the same as a unit of DWARF gives.

use rustc_hash::FxHashMap;

use super::declared::{Declared, Mark, normal};
use super::expanded::{Expanded, Expansion, NameNumber, NameOrigin, PathNumber, Spot, Wanted};
use super::origin::Author;
use crate::address::Svma;
use crate::dso::go::{GoFrame, GoFunction, GoTable};

/// `places`: whether it is told where functions are defined.
pub(super) fn expand<'a>(go: &GoTable<'a>, all: &[Wanted], places: bool) -> Expanded<'a> {
    let mut out = Expanded::default();
    let mut numbers = Numbers::default();
    let mut known: FxHashMap<Svma, Option<Declared>> = FxHashMap::default();
    for wanted in all {
        let Some(function) = go.find(Svma(wanted.svma)) else {
            continue;
        };
        let frames = go.frames(&function, Svma(wanted.svma));
        let Some((own, inlined)) = frames.split_last() else {
            continue;
        };
        let start = out.calls.len();
        if wanted.inlines {
            for frame in inlined {
                let name = numbers.name(&mut out, frame, places);
                let place = numbers.place(&mut out, frame, wanted.lines);
                out.calls.push((name, place));
            }
        }
        // Without the inlined functions, the address itself is the place.
        let shown = if wanted.inlines { own } else { &frames[0] };
        let line = numbers.place(&mut out, shown, wanted.lines);
        let definition = places.then(|| {
            let known = known.entry(function.start);
            known.or_insert_with(|| declared(go, &function)).clone()
        });
        let declared = definition.flatten();
        let path = declared.as_ref().map(|declared| &declared.path);
        out.answers.push(Expansion {
            query: wanted.query,
            size: function.end.0 - function.start.0,
            calls: start..out.calls.len(),
            line,
            author: path.map_or_else(Author::default, |path| Author::of_path(path)),
            declared,
        });
    }
    out
}

/// Where a function is defined: its first instruction is of the line that begins it.
fn declared(go: &GoTable<'_>, function: &GoFunction<'_>) -> Option<Declared> {
    let frames = go.frames(function, function.start);
    let own = frames.last().filter(|own| own.line > 0)?;
    let path = String::from_utf8_lossy(own.file);
    Some(Declared {
        path: normal(&path).into(),
        line: own.line,
        mark: Mark::Nothing,
    })
}

/// Names and paths, each once.
#[derive(Default)]
struct Numbers<'a> {
    names: FxHashMap<&'a [u8], NameNumber>,
    paths: FxHashMap<&'a [u8], PathNumber>,
}

impl<'a> Numbers<'a> {
    fn name(&mut self, out: &mut Expanded<'a>, frame: &GoFrame<'a>, places: bool) -> NameNumber {
        *self.names.entry(frame.name).or_insert_with(|| {
            if places {
                let path = String::from_utf8_lossy(frame.file);
                let known = (!path.is_empty()).then(|| Author::of_path(&path));
                out.origins.push(NameOrigin {
                    author: known.unwrap_or_default(),
                    ..NameOrigin::default()
                });
            }
            out.names.push(frame.name)
        })
    }

    fn place(&mut self, out: &mut Expanded<'a>, frame: &GoFrame<'a>, wanted: bool) -> Option<Spot> {
        if !wanted || frame.file.is_empty() {
            return None;
        }
        let path = *self.paths.entry(frame.file).or_insert_with(|| {
            out.paths
                .push(String::from_utf8_lossy(frame.file).into_owned())
        });
        Some((path, frame.line, 0))
    }
}
