//! Two runs in one tree: functions are one when their clean names and objects are, whatever the build.
//!
//! Names come from [`crate::runtimes::names`], which also joins functions for `pjit diff`: no process ids, tiers, hashes or
//! numbers of clones.

use rustc_hash::FxHashMap;

use crate::ids::IndexVec;
use crate::intern::{Sequences, byte_ranks};
use crate::profile::Profile;
use crate::questions::functions::object_label;
use crate::runtimes::names::CleanName;

use super::build::{APART, END, Paths, Rows, Tag, number, plant};
use super::{Flame, Function, Kind, Series, shown};

/// Gives functions the names by which they are the same in another recording. Events are told apart by name.
pub fn clean(paths: &mut Paths, profile: &Profile) {
    let label = |function: &Function| {
        let object = function
            .object
            .map(|object| &profile.objects[object as usize]);
        match function.kind {
            Kind::Comm => String::new(),
            kind => shown(&object_label(object, kind == Kind::Kernel)).into_owned(),
        }
    };
    let mut objects: Vec<String> = paths.functions.iter().map(label).collect();
    objects.sort_unstable();
    objects.dedup();
    for function in &mut paths.functions {
        let object = label(function);
        if let Some(symbol) = function.symbol {
            let symbol = &profile[symbol];
            let name = CleanName::of(&symbol.name, symbol.producer).short();
            function.name = shown(&name).into_owned();
        }
        function.object = match function.kind {
            Kind::Comm => None,
            _ => objects.binary_search(&object).ok().map(number),
        };
    }
    paths.objects = objects;
}

/// The tree of both; `events` tells of the second one's events which of the first they are.
#[must_use]
pub fn join(
    after: Paths,
    before: Paths,
    events: impl Fn(u16) -> Option<u16>,
    threads: usize,
) -> Flame {
    let with_objects = !(after.objects.is_empty() || before.objects.is_empty());
    let words: Vec<String> = [&after, &before]
        .iter()
        .flat_map(|paths| paths.functions.iter().map(|f| word(f, paths, with_objects)))
        .collect();
    let texts: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let ranks = byte_ranks(&texts, threads);
    let mut joined = Paths {
        functions: IndexVec::new(),
        objects: after.objects.clone(),
        series: after.series.clone(),
        all: Sequences::default(),
    };
    let of_object = add_objects(&mut joined.objects, &before.objects);
    let last = ranks.iter().max().map_or(0, |last| *last as usize + 1);
    let mut functions: Vec<Option<Function>> = vec![None; last];
    let (first, second) = ranks.split_at(after.functions.len());
    for (rank, function) in first.iter().zip(&after.functions) {
        functions[*rank as usize].get_or_insert_with(|| function.clone());
    }
    for (rank, function) in second.iter().zip(&before.functions) {
        functions[*rank as usize].get_or_insert_with(|| Function {
            object: function.object.map(|object| of_object[object as usize]),
            symbol: None,
            ..function.clone()
        });
    }
    joined.functions = functions.into_iter().flatten().collect();
    add_rows(&mut joined.all, &after.all, first, Some);
    let kept: Vec<Option<u32>> = before
        .series
        .iter()
        .map(|series| {
            let event = events(series.event)?;
            joined.series.push(Series {
                event,
                run: 1,
                ..*series
            });
            Some(number(joined.series.len() - 1))
        })
        .collect();
    add_rows(&mut joined.all, &before.all, second, |series| {
        kept[series as usize]
    });
    plant(joined, threads)
}

fn word(function: &Function, paths: &Paths, with_objects: bool) -> String {
    let object = function.object.filter(|_| with_objects);
    let object = object.map_or("", |object| &paths.objects[object as usize]);
    let name = &function.name;
    // Code that another tier compiled, or that is inlined in one run and not in the other, is the same by name; what is not
    // is still drawn where it was.
    let kind = match function.kind {
        Kind::Comm => '0',
        Kind::Inlined if with_objects => '2',
        _ => '1',
    };
    format!("{name}{END}{APART}{kind}{object}")
}

/// Adds names of objects; the answer tells where each is now.
fn add_objects(objects: &mut Vec<String>, others: &[String]) -> Vec<u32> {
    let mut known: FxHashMap<String, u32> = FxHashMap::default();
    for (at, object) in objects.iter().enumerate().rev() {
        known.insert(object.clone(), number(at));
    }
    let mut place = |name: &String| {
        *known.entry(name.clone()).or_insert_with(|| {
            objects.push(name.clone());
            number(objects.len() - 1)
        })
    };
    others.iter().map(&mut place).collect()
}

fn add_rows(rows: &mut Rows, others: &Rows, ranks: &[u32], series: impl Fn(u32) -> Option<u32>) {
    let mut path = Vec::new();
    for row in 0..number(others.len()) {
        let tag = others.tag(row);
        let Some(series) = series(tag.series) else {
            continue;
        };
        path.clear();
        path.extend(
            others
                .get(row)
                .iter()
                .map(|function| ranks[*function as usize]),
        );
        rows.push(&path, Tag { series, ..tag });
    }
}
