//! Two runs in one tree: functions are one when their clean names and objects are, whatever the build.
//!
//! Names come from [`crate::runtimes::names`], which also joins functions for `pjit diff`: no process ids, tiers, hashes or
//! numbers of clones.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::ids::{Idx, IndexSlice, IndexVec, index_vec};
use crate::intern::{Sequences, byte_ranks};
use crate::profile::{EventId, Profile};
use crate::questions::functions::object_label;
use crate::questions::programs::SameProgram;
use crate::runtimes::names::CleanName;

use super::build::{APART, END, Paths, Rows, Tag, plant};
use super::{Flame, Function, FunctionId, Kind, ObjectId, Series, SeriesId, shown};

/// Gives functions the names by which they are the same in another recording. Events are told apart by name.
pub fn clean(paths: &mut Paths, profile: &Profile) {
    let label = |function: &Function| {
        // Paths have the objects of the profile.
        let object = function.object.map(Idx::index);
        let object = object.map(|object| &profile.objects[object]);
        match function.kind {
            Kind::Comm => String::new(),
            kind => shown(&object_label(object, kind == Kind::Kernel)).into_owned(),
        }
    };
    let mut objects: IndexVec<ObjectId, String> = paths.functions.iter().map(label).collect();
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
            _ => objects.binary_search(&object).ok(),
        };
    }
    paths.objects = objects;
}

/// Calls the program of the first of two runs, and threads that have its name, as the second one does.
pub fn rename_program(before: &mut Paths, program: &SameProgram) {
    let [old, new] = [&program.base, &program.new].map(|name| shown(name).into_owned());
    let objects = before.objects.iter_mut();
    for object in objects.filter(|object| **object == old) {
        object.clone_from(&new);
    }
    let [old, new] = [&program.base, &program.new].map(|name| shown(&comm(name)).into_owned());
    for function in &mut before.functions {
        if function.kind == Kind::Comm && function.name == old {
            function.name.clone_from(&new);
        }
    }
}

/// What the kernel calls a thread after its program: fifteen bytes.
fn comm(program: &str) -> Cow<'_, str> {
    String::from_utf8_lossy(&program.as_bytes()[..program.len().min(15)])
}

/// The tree of two sides, the new one and the base, each of one recording or of several. All of it counts as one event.
#[must_use]
pub fn join([after, before]: [Vec<Paths>; 2], event: EventId, threads: usize) -> Flame {
    let new = after.len();
    let all: Vec<Paths> = after.into_iter().chain(before).collect();
    let with_objects = all.iter().all(|paths| !paths.objects.is_empty());
    let words: Vec<String> = all
        .iter()
        .flat_map(|paths| paths.functions.iter().map(|f| word(f, paths, with_objects)))
        .collect();
    let texts: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    // Functions are numbered in the order of their names.
    let ranks: Vec<FunctionId> = byte_ranks(&texts, threads);
    let series = |run: u8| Series {
        event,
        thread: None,
        run,
    };
    let mut joined = Paths {
        functions: IndexVec::new(),
        objects: IndexVec::new(),
        series: [series(0), series(1)].into_iter().collect(),
        all: Sequences::default(),
    };
    let last = ranks.iter().max().map_or(0, |last| last.index() + 1);
    let mut functions: IndexVec<FunctionId, Option<Function>> = index_vec![None; last];
    let mut rest = ranks.as_slice();
    for (number, paths) in all.iter().enumerate() {
        let (own, others) = rest.split_at(paths.functions.len());
        rest = others;
        let of_object = add_objects(&mut joined.objects, &paths.objects);
        for (id, function) in own.iter().zip(&paths.functions) {
            functions[*id].get_or_insert_with(|| Function {
                object: function.object.map(|object| of_object[object]),
                // Symbols are those of the first recording.
                symbol: function.symbol.filter(|_| number == 0),
                ..function.clone()
            });
        }
        let series = SeriesId(u32::from(number >= new));
        add_rows(&mut joined.all, &paths.all, IndexSlice::new(own), series);
    }
    joined.functions = functions.into_iter().flatten().collect();
    plant(joined, threads)
}

fn word(function: &Function, paths: &Paths, with_objects: bool) -> String {
    let object = function.object.filter(|_| with_objects);
    let object = object.map_or("", |object| &paths.objects[object]);
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
fn add_objects(
    objects: &mut IndexVec<ObjectId, String>,
    others: &IndexSlice<ObjectId, [String]>,
) -> IndexVec<ObjectId, ObjectId> {
    let mut known: FxHashMap<String, ObjectId> = FxHashMap::default();
    for (id, object) in objects.iter_enumerated().rev() {
        known.insert(object.clone(), id);
    }
    let mut place = |name: &String| {
        let known = known.entry(name.clone());
        *known.or_insert_with(|| objects.push(name.clone()))
    };
    others.iter().map(&mut place).collect()
}

fn add_rows(
    rows: &mut Rows,
    others: &Rows,
    ids: &IndexSlice<FunctionId, [FunctionId]>,
    series: SeriesId,
) {
    let mut path = Vec::new();
    for row in others.ids() {
        path.clear();
        path.extend(others.get(row).iter().map(|function| ids[*function]));
        rows.push(
            &path,
            Tag {
                series,
                ..others.tag(row)
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_its_threads_are_called_as_in_the_other_run() {
        let function = |name: &str, kind: Kind| Function {
            name: name.to_owned(),
            object: None,
            kind,
            symbol: None,
        };
        let mut before = Paths {
            functions: [
                function("measure-the-old", Kind::Comm),
                function("worker", Kind::Comm),
                function("measure-the-old", Kind::User),
            ]
            .into_iter()
            .collect(),
            objects: ["libc.so.6", "measure-the-old-one"]
                .map(str::to_owned)
                .into_iter()
                .collect(),
            series: IndexVec::new(),
            all: Sequences::default(),
        };
        let program = SameProgram {
            base: "measure-the-old-one".to_owned(),
            new: "new".to_owned(),
        };
        rename_program(&mut before, &program);
        let names: Vec<&str> = before.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["new", "worker", "measure-the-old"]);
        assert_eq!(before.objects.raw, ["libc.so.6", "new"]);
    }
}
