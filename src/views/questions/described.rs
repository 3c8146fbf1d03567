//! Of which functions debug information tells, in one recording.
//!
//! In: a profile, its functions and their tally. Out: [`Described`]. What was inlined is a function of its own where debug information
//! tells it, and a part of its caller where nothing does; a library's function in the program's file is told by its source. Equal code
//! would differ in a comparison of which one side alone has debug information.

use std::collections::{BTreeMap, BTreeSet};

use super::significance::LARGE;
use crate::functions::programs::SameProgram;
use crate::functions::tally::Tally;
use crate::functions::{FunctionId, Functions};
use crate::ids::{IndexVec, index_vec};
use crate::profile::{Origin, Profile};

/// What is known of the functions of a recording's files.
#[derive(Debug, Clone, Default)]
pub struct Described {
    /// By object and name.
    functions: BTreeMap<(String, String), Told>,
}

/// What is known of a function.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// Whether debug information tells of it.
    is_described: bool,
    /// Whether that says something of it which nothing else does.
    is_more: bool,
    /// Its share.
    share: f64,
}

impl Described {
    /// Of a recording.
    #[must_use]
    pub fn of(profile: &Profile, functions: &Functions, tally: &Tally) -> Self {
        let mut told: IndexVec<FunctionId, Option<Told>> = index_vec![None; functions.all.len()];
        let total = tally.total.period.max(1) as f64;
        for stack in &tally.stacks {
            let share = stack.count.period as f64 / total;
            let mut has_inlined = false;
            for frame in stack.frames(profile) {
                let symbol = profile[*frame].symbol.map(|symbol| &profile[symbol]);
                let symbol = symbol.filter(|symbol| symbol.producer.is_none());
                let Some(symbol) = symbol.filter(|symbol| !profile[symbol.object].is_jit) else {
                    has_inlined = false;
                    continue;
                };
                if symbol.inlined {
                    has_inlined = true;
                    continue;
                }
                let of_others = !matches!(symbol.origin, Origin::Unknown | Origin::Own);
                let one = told[functions.of_frame(*frame)].get_or_insert_default();
                one.is_described |= symbol.is_described;
                one.is_more |= has_inlined || of_others;
                one.share += share;
                has_inlined = false;
            }
        }
        let told = told.into_iter().zip(&functions.all);
        let told = told.filter_map(|(told, function)| {
            let identity = &function.identity;
            Some(((identity.object.clone(), identity.name.name.clone()), told?))
        });
        let mut by_name: BTreeMap<(String, String), Told> = BTreeMap::new();
        for (of, part) in told {
            let one = by_name.entry(of).or_default();
            one.is_described |= part.is_described;
            one.is_more |= part.is_more;
            one.share += part.share;
        }
        // Small ones are not compared; another run may have twice as much of one.
        by_name.retain(|_, sum| sum.share >= 0.5 * LARGE);
        Self { functions: by_name }
    }

    /// Objects with a function of some weight of which debug information tells more in one recording, and nothing in another, as both
    /// sides call them.
    #[must_use]
    pub fn at_odds(base: &[&Self], new: &[&Self], program: Option<&SameProgram>) -> Vec<String> {
        #[derive(Default)]
        struct Found {
            is_bare: bool,
            is_more: bool,
            share: f64,
        }
        let mut found: BTreeMap<(&str, &str), Found> = BTreeMap::new();
        let sides = base.iter().map(|of| (of, true));
        for (of, is_base) in sides.chain(new.iter().map(|of| (of, false))) {
            for ((object, name), told) in &of.functions {
                let other = program.filter(|program| is_base && program.base == *object);
                let object = other.map_or(object.as_str(), |renamed| &renamed.new);
                let one = found.entry((object, name)).or_default();
                one.is_bare |= !told.is_described;
                one.is_more |= told.is_described && told.is_more;
                one.share = one.share.max(told.share);
            }
        }
        let odd = found.into_iter();
        let odd = odd.filter(|(_, one)| one.is_bare && one.is_more && one.share >= LARGE);
        let mut objects: BTreeSet<&str> = odd.map(|((object, _), _)| object).collect();
        if let Some(program) = program.filter(|program| objects.contains(program.new.as_str())) {
            objects.insert(&program.base);
        }
        objects.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::kinds::OwnRules;
    use crate::profile::EventId;
    use crate::report::testing::ProfileBuilder;

    fn described(stack: &str, bare: &[&str]) -> Described {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", stack, 100);
        let mut profile = builder.finish();
        for symbol in &mut profile.symbols {
            symbol.is_described = !bare.contains(&symbol.name.as_str());
        }
        let functions = Functions::of(&profile, &OwnRules::default());
        let tally = Tally::of(&profile, &functions, EventId(0));
        Described::of(&profile, &functions, &tally)
    }

    #[test]
    fn debug_information_of_one_side_alone_is_noticed() {
        let with = described("g(inlined)@app;f@app;main@app;puts@libc.so.6", &["puts"]);
        let bare = described("f@app;main@app;puts@libc.so.6", &["f", "main", "puts"]);
        // Nothing was inlined there.
        let plain = described("f@app;main@app;puts@libc.so.6", &["puts"]);
        let odd = |base, new| Described::at_odds(&[base], &[new], None);
        assert_eq!(odd(&bare, &with), ["app"]);
        assert_eq!(odd(&with, &bare), ["app"]);
        for same in [&with, &bare, &plain] {
            assert!(odd(same, same).is_empty());
            assert!(odd(&plain, same).is_empty());
        }
        let other = described("g(inlined)@new;f@new;main@new", &[]);
        assert!(odd(&bare, &other).is_empty());
        let program = SameProgram {
            base: "app".to_owned(),
            new: "new".to_owned(),
        };
        let odd = Described::at_odds(&[&bare], &[&other], Some(&program));
        assert_eq!(odd, ["app", "new"]);
    }
}
