//! What each source line of a function weighs, alone and with what it calls.
//!
//! In: a profile whose frames have lines, and some of its functions. Out: their lines by file. A sample counts once for a line,
//! however often the line recurs in its stack. A frame's line is where it stands itself: in the function around, that of an
//! inlined one is the call's. Tiers, copies and inlined copies are one function and add up.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::build_id::BuildId;
use crate::functions::tally::{Count, Tally};
use crate::functions::{FunctionId, Functions};
use crate::profile::{ObjectId, Profile, SourceLine, StringId};

/// A function with its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The function.
    pub function: FunctionId,
    /// Its files, the heaviest first.
    pub files: Vec<File>,
    /// What has no line.
    pub unplaced: Line,
    /// What is in code that has no position of its own, between two lines.
    pub near: Count,
}

/// The lines of a function in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path, as the recording has it.
    pub path: String,
    /// The build of the program whose lines these are, where several builds had its path: each was made of another text.
    pub build: Option<BuildId>,
    /// Lines with samples, by number.
    pub lines: BTreeMap<u32, Line>,
}

/// What a line weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line {
    /// Where the line is the innermost.
    pub own: Count,
    /// With what it calls.
    pub inclusive: Count,
}

/// Which line of which function, by its place among the wanted ones, and of which build.
type Key = (usize, Option<(StringId, u32)>, Option<BuildId>);

/// The lines of some functions, each of which is there once.
#[must_use]
pub fn listed(
    profile: &Profile,
    functions: &Functions,
    tally: &Tally,
    wanted: &[FunctionId],
) -> Vec<Listed> {
    let places = wanted.iter().enumerate();
    let places: FxHashMap<FunctionId, usize> = places.map(|(at, id)| (*id, at)).collect();
    let builds = builds_apart(profile);
    // With the stack that each line was last met in.
    let mut lines: FxHashMap<Key, (Line, usize)> = FxHashMap::default();
    let mut near = vec![Count::default(); wanted.len()];
    for (round, stack) in (1..).zip(&tally.stacks) {
        for (depth, frame) in stack.frames(profile).iter().enumerate() {
            let Some(at) = places.get(&functions.of_frame(*frame)) else {
                continue;
            };
            let place = profile[*frame].line.and_then(place);
            let object = profile[*frame].object.filter(|_| place.is_some());
            let build = object.and_then(|object| builds.get(&object)).copied();
            let (line, last) = lines.entry((*at, place, build)).or_default();
            if depth == 0 {
                line.own.add(stack.count);
                if profile[*frame].line.is_some_and(|known| known.near) {
                    near[*at].add(stack.count);
                }
            }
            if *last != round {
                *last = round;
                line.inclusive.add(stack.count);
            }
        }
    }
    let mut files_of: Vec<OfFiles<'_>> = vec![BTreeMap::new(); wanted.len()];
    let mut unplaced_of = vec![Line::default(); wanted.len()];
    lines
        .into_iter()
        .for_each(|((at, place, build), (line, _))| match place {
            Some((file, number)) => {
                let of_file = files_of[at].entry((&profile[file], build)).or_default();
                of_file.insert(number, line);
            }
            None => unplaced_of[at] = line,
        });
    let made = wanted.iter().zip(files_of).zip(unplaced_of).zip(near);
    made.map(|(((function, files), unplaced), between)| Listed {
        function: *function,
        files: by_weight(files),
        unplaced,
        near: between,
    })
    .collect()
}

/// Lines by files and builds.
type OfFiles<'p> = BTreeMap<(&'p str, Option<BuildId>), BTreeMap<u32, Line>>;

/// The builds of objects whose paths others have, too.
fn builds_apart(profile: &Profile) -> FxHashMap<ObjectId, BuildId> {
    let mut by_path: FxHashMap<&str, BTreeMap<BuildId, Vec<ObjectId>>> = FxHashMap::default();
    for (id, object) in profile.objects.iter_enumerated() {
        if let Some(build) = object.build_id {
            let of_path = by_path.entry(&object.long_name).or_default();
            of_path.entry(build).or_default().push(id);
        }
    }
    let several = by_path.into_values().filter(|builds| builds.len() > 1);
    let objects = several.flatten();
    objects
        .flat_map(|(build, objects)| objects.into_iter().map(move |object| (object, build)))
        .collect()
}

/// The place of a frame, if it is a line and not a position alone.
fn place(line: SourceLine) -> Option<(StringId, u32)> {
    (line.line > 0 && line.line != SourceLine::NO_LINE).then_some((line.file, line.line))
}

/// The heaviest file first, by the heaviest of its lines: those of one stack would count several times in a sum.
fn by_weight(files: OfFiles<'_>) -> Vec<File> {
    let file_of = |((path, build), lines): ((&str, _), _)| File {
        path: path.to_owned(),
        build,
        lines,
    };
    let mut files: Vec<File> = files.into_iter().map(file_of).collect();
    let weight = |file: &File| file.lines.values().map(|line| line.inclusive.period).max();
    files.sort_by_key(|file| std::cmp::Reverse(weight(file)));
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::kinds::OwnRules;
    use crate::profile::EventId;
    use crate::report::testing::ProfileBuilder;

    /// `f;f;g` with `f` twice on line 3, `g` inlined into `f` and `f` called by itself.
    #[test]
    fn a_line_counts_once_for_each_sample() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "f;f;main", 10);
        builder.sample("x", "g(inlined);f;main", 5);
        builder.sample("x", "g;main", 2);
        let mut profile = builder.finish();
        let (a, b) = (
            profile.strings.push("a.c".to_owned()),
            profile.strings.push("b.h".to_owned()),
        );
        for frame in profile.frames.indices() {
            let place = match profile.frame_name(frame) {
                "f" => Some((a, 3)),
                "g" => Some((b, 7)),
                _ => None,
            };
            profile.frames[frame].line = place.map(|(file, line)| SourceLine {
                file,
                line,
                column: 0,
                near: false,
            });
        }
        let functions = Functions::of(&profile, &OwnRules::default());
        let tally = Tally::of(&profile, &functions, EventId(0));
        let wanted: Vec<FunctionId> = functions.all.indices().collect();
        let told = listed(&profile, &functions, &tally, &wanted);
        let of = |name: &str| {
            let is = |one: &&Listed| functions.get(one.function).identity.name.name == name;
            told.iter().find(is).expect("a function of the name")
        };
        let lines = |name: &str| -> Vec<(String, u32, u64, u64)> {
            let files = of(name).files.iter();
            files
                .flat_map(|file| {
                    file.lines.iter().map(|(number, line)| {
                        (
                            file.path.clone(),
                            *number,
                            line.own.period,
                            line.inclusive.period,
                        )
                    })
                })
                .collect()
        };
        assert_eq!(lines("f"), [("a.c".to_owned(), 3, 10, 15)]);
        assert_eq!(lines("g"), [("b.h".to_owned(), 7, 7, 7)]);
        assert_eq!(lines("main"), []);
        // The heavier file first.
        let mut lines = BTreeMap::from([
            (("a.js", None), BTreeMap::new()),
            (("b.ts", None), BTreeMap::new()),
        ]);
        let weighs = |period| Line {
            inclusive: Count { period, samples: 1 },
            ..Line::default()
        };
        lines
            .entry(("a.js", None))
            .or_default()
            .insert(1, weighs(2));
        lines
            .entry(("b.ts", None))
            .or_default()
            .insert(9, weighs(3));
        let files: Vec<String> = by_weight(lines).into_iter().map(|file| file.path).collect();
        assert_eq!(files, ["b.ts", "a.js"]);
        assert_eq!(of("main").unplaced.inclusive.period, 17);
    }
}
