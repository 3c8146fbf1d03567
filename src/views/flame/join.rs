//! Two runs in one tree: functions are one that are one for `pjit diff`, whatever the build, and though lines have moved.
//!
//! Each function has the [`Identity`] by which it is compared; names are made of these once all sides are known, so that two
//! functions of one tree never have one name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::functions::programs::SameProgram;
use crate::functions::{Identity, called};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec};
use crate::intern::{Sequences, byte_ranks};
use crate::profile::EventId;

use super::build::{APART, END, Paths, Rows, Tag, plant};
use super::{Flame, Function, FunctionId, Kind, ObjectId, Series, SeriesId, shown};

/// Calls the objects of functions as they are called in another recording.
pub fn clean(paths: &mut Paths) {
    let label = |identity: &Identity| shown(&identity.object).into_owned();
    let labels = paths.identities.iter().flatten().map(label);
    let mut objects: IndexVec<ObjectId, String> = labels.collect();
    objects.sort_unstable();
    objects.dedup();
    for (function, identity) in paths.functions.iter_mut().zip(&paths.identities) {
        let object = identity.as_ref().map(label);
        function.object = object.and_then(|object| objects.binary_search(&object).ok());
    }
    paths.objects = objects;
}

/// Calls functions as those of the new side that they are; what else there is keeps its name.
pub fn rename_functions(of: &mut Paths, names: &BTreeMap<Identity, Identity>) {
    for identity in of.identities.iter_mut().flatten() {
        if let Some(name) = names.get(identity) {
            identity.clone_from(name);
        }
    }
}

/// Gives functions names that tell them apart within all of the paths; what has no name keeps that of what it lies in.
fn name(all: &mut [Paths]) {
    let mut known: Vec<Identity> = all
        .iter()
        .flat_map(|paths| paths.identities.iter().flatten().cloned())
        .collect();
    known.sort_unstable();
    known.dedup();
    let names = called(&known.iter().collect::<Vec<_>>());
    for Paths {
        functions,
        identities,
        ..
    } in all
    {
        for (function, identity) in functions.iter_mut().zip(identities) {
            let at = identity
                .as_ref()
                .and_then(|of| known.binary_search(of).ok());
            if let Some(at) = at.filter(|_| function.symbol.is_some()) {
                function.name = shown(&names[at].label).into_owned();
            }
        }
    }
}

/// Calls the program of the first of two runs, and threads that have its name, as the second one does.
pub fn rename_program(before: &mut Paths, program: &SameProgram) {
    let [old, new] = [&program.base, &program.new].map(|name| shown(name).into_owned());
    let objects = before.objects.iter_mut();
    for object in objects.filter(|object| **object == old) {
        object.clone_from(&new);
    }
    for identity in before.identities.iter_mut().flatten() {
        *identity = program.as_new(identity.clone());
    }
    let [old_comm, new_comm] =
        [&program.base, &program.new].map(|name| shown(&comm(name)).into_owned());
    for function in &mut before.functions {
        if function.kind == Kind::Comm && function.name == old_comm {
            function.name.clone_from(&new_comm);
        }
    }
}

/// What the kernel calls a thread after its program: fifteen bytes.
fn comm(program: &str) -> Cow<'_, str> {
    String::from_utf8_lossy(&program.as_bytes()[..program.len().min(15)])
}

/// Two sides in one tree.
#[derive(Debug)]
pub struct Joined {
    /// The tree.
    pub flame: Flame,
    /// By what each of its functions is known in comparisons.
    pub identities: IndexVec<FunctionId, Option<Identity>>,
}

/// The tree of two sides, the new one and the base, each of one recording or of several. All of it counts as one event.
#[must_use]
pub fn join([after, before]: [Vec<Paths>; 2], event: EventId, threads: usize) -> Joined {
    let new = after.len();
    let mut all: Vec<Paths> = after.into_iter().chain(before).collect();
    name(&mut all);
    let with_objects = all.iter().all(|paths| !paths.objects.is_empty());
    let words: Vec<String> = all
        .iter()
        .flat_map(|paths| paths.functions.iter().map(|f| word(f, paths, with_objects)))
        .collect();
    let texts: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    // Functions are numbered in the order of their names.
    let ranks: Vec<FunctionId> = byte_ranks(&texts, threads);
    let series_of = |run: u8| Series {
        event,
        thread: None,
        run,
    };
    let mut joined = Paths {
        functions: IndexVec::new(),
        objects: IndexVec::new(),
        series: [series_of(0), series_of(1)].into_iter().collect(),
        all: Sequences::default(),
        identities: IndexVec::new(),
        natures: None,
        moments: Vec::new(),
    };
    let last = ranks.iter().max().map_or(0, |last| last.index() + 1);
    let mut functions: IndexVec<FunctionId, Option<Function>> = index_vec![None; last];
    let mut identities: IndexVec<FunctionId, Option<Identity>> = index_vec![None; last];
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
        for (id, identity) in own.iter().zip(&paths.identities) {
            identities[*id].clone_from(identity);
        }
        let series = SeriesId(u32::from(number >= new));
        add_rows(&mut joined.all, &paths.all, IndexSlice::new(own), series);
    }
    joined.functions = functions.into_iter().flatten().collect();
    Joined {
        flame: plant(joined, threads),
        identities,
    }
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
    use crate::flame::{Names, Naming, Options, paths_as};
    use crate::functions::Functions;
    use crate::functions::kinds::OwnRules;
    use crate::functions::tally::Tally;
    use crate::questions::compare::names_in_new;
    use crate::questions::facts::Facts;
    use crate::questions::runs::{By, Run, reduce};
    use crate::report::testing::ProfileBuilder;
    use crate::runtimes::Producer;

    /// Call paths and weights of a recording of functions of JavaScript or C++, each called by main.
    fn side(functions: &[(&str, u64)]) -> (Paths, Run) {
        let mut builder = ProfileBuilder::default();
        for (number, (_, weight)) in functions.iter().enumerate() {
            builder.sample("node", &format!("f{number};main"), *weight);
        }
        let mut profile = builder.finish();
        for (number, (name, _)) in functions.iter().enumerate() {
            let placeholder = format!("f{number}");
            let mut symbols = profile.symbols.iter_mut();
            let symbol = symbols.find(|symbol| symbol.name == placeholder);
            let symbol = symbol.expect("a symbol");
            match name.split_once('(') {
                Some((name, parameters)) if !name.starts_with("JS:") => {
                    name.clone_into(&mut symbol.name);
                    symbol.parameters = Some(format!("({parameters}").into());
                }
                _ => (symbol.name, symbol.producer) = ((*name).to_owned(), Some(Producer::V8)),
            }
        }
        let options = Options {
            naming: Naming::Whole,
            ..Options::default()
        };
        let functions = Functions::of(&profile, &OwnRules::default());
        let tally = Tally::of(&profile, &functions, EventId(0));
        let facts = Facts::of(&profile, &tally, None);
        let mut paths = paths_as(&profile, &options, Names::Apart(&functions));
        clean(&mut paths);
        let run = reduce(
            &profile,
            &functions,
            &tally,
            facts,
            (&[], By::Credited),
            false,
        );
        (paths, run)
    }

    /// The functions of a difference and what they weigh, in the new side and in the base.
    fn joined(base: &[(&str, u64)], new: &[(&str, u64)]) -> Vec<(String, [u64; 2])> {
        let ((mut before, mut old), (after, newer)) = (side(base), side(new));
        // Two times of one recording have nothing that moved.
        old.facts.path.push_str(".old");
        rename_functions(&mut before, &names_in_new(&[old], &[newer])[0]);
        let Joined { flame, identities } = join([vec![after], vec![before]], EventId(0), 1);
        assert_eq!(flame.functions.len(), identities.len());
        let mut weights = vec![[0, 0]; flame.functions.len()];
        for cell in &flame.cells {
            let function = flame.nodes[cell.node].function.index();
            let run = usize::from(flame.series[cell.series].run);
            weights[function][run] += cell.period;
        }
        let all = flame.functions.iter().zip(weights);
        let is_code = |(function, _): &(&Function, _)| function.kind != Kind::Comm;
        all.filter(is_code)
            .map(|(function, weight)| (function.name.clone(), weight))
            .filter(|(name, _)| name != "main")
            .collect()
    }

    fn assert_joined(base: &[(&str, u64)], new: &[(&str, u64)], expected: &[(&str, [u64; 2])]) {
        let joined = joined(base, new);
        let joined: Vec<_> = joined.iter().map(|(name, w)| (name.as_str(), *w)).collect();
        assert_eq!(joined, expected);
    }

    #[test]
    fn functions_that_moved_are_one() {
        let base = [
            ("JS:~init /w/a.js:10:3", 100),
            ("JS:*init /w/a.js:50:3", 300),
            ("JS:*other /w/a.js:500:3", 7),
        ];
        let new = [
            ("JS:*'init /x/a.js:50:3", 101),
            ("JS:^init /x/a.js:90:3", 301),
            ("JS:~other /x/a.js:540:3", 8),
        ];
        let expected = [
            ("init a.js:50", [101, 100]),
            ("init a.js:90", [301, 300]),
            ("other a.js:540", [8, 7]),
        ];
        assert_joined(&base, &new, &expected);
    }

    #[test]
    fn what_is_gone_is_not_what_moved_to_its_place() {
        let base = [
            ("JS:*init /w/a.js:10:3", 100),
            ("JS:*init /w/a.js:50:3", 300),
            ("JS:*init /w/a.js:90:3", 500),
            ("JS:*other /w/a.js:500:3", 7),
        ];
        let new = [
            ("JS:*init /w/a.js:50:3", 101),
            ("JS:*init /w/a.js:90:3", 301),
            ("JS:*other /w/a.js:540:3", 8),
        ];
        let expected = [
            ("init (before) a.js:90", [0, 500]),
            ("init a.js:50", [101, 100]),
            ("init a.js:90", [301, 300]),
            ("other a.js:540", [8, 7]),
        ];
        assert_joined(&base, &new, &expected);
    }

    #[test]
    fn columns_tell_functions_of_one_line_apart() {
        let both = [
            ("JS:* /w/a.js:10:3", 100),
            ("JS:* /w/a.js:10:9", 300),
            ("JS:*f /w/a.js:12:1", 1),
        ];
        let expected = [
            ("(anonymous) a.js:10:3", [100, 100]),
            ("(anonymous) a.js:10:9", [300, 300]),
            ("f a.js:12", [1, 1]),
        ];
        assert_joined(&both, &both, &expected);
    }

    #[test]
    fn overloads_are_functions_of_their_own() {
        let base = [("work(double)", 100), ("work(int)", 300)];
        let new = [("work(int)", 100), ("work(double)", 300)];
        let expected = [("work(double)", [300, 100]), ("work(int)", [100, 300])];
        assert_joined(&base, &new, &expected);
    }

    #[test]
    fn the_program_and_its_threads_are_called_as_in_the_other_run() {
        let function = |name: &str, kind: Kind| Function {
            name: name.to_owned(),
            object: None,
            kind,
            symbol: None,
            raw: Vec::new(),
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
            identities: IndexVec::new(),
            natures: None,
            moments: Vec::new(),
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
