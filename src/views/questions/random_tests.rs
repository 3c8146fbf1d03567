//! What holds of every profile: random ones, counted again from their stacks as text.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use regex::RegexSet;

use crate::functions::edges::Edges;
use crate::functions::filter::{Filters, Patterns, apply};
use crate::functions::kinds::OwnRules;
use crate::functions::tally::Tally;
use crate::functions::{FunctionId, Functions};
use crate::profile::Profile;
use crate::report::testing::ProfileBuilder;

/// Stacks, leaf first, one letter a function, with their weights.
type Stacks = Vec<(String, u64)>;

fn stacks() -> impl Strategy<Value = Stacks> {
    proptest::collection::vec(("[a-e](;[a-e]){0,7}", 1_u64..1000), 1..30)
}

fn profile_of(stacks: &Stacks) -> Profile {
    let mut builder = ProfileBuilder::default();
    for (stack, weight) in stacks {
        builder.sample("x", stack, *weight);
    }
    builder.finish()
}

fn set(pattern: &str) -> Option<RegexSet> {
    Some(RegexSet::new([pattern]).expect("valid"))
}

fn own(pattern: &str) -> OwnRules {
    OwnRules {
        own: set(pattern),
        not_own: None,
        ..OwnRules::default()
    }
}

fn name(functions: &Functions, id: FunctionId) -> char {
    let name = &functions.get(id).identity.name.name;
    name.chars().next().expect("a letter")
}

fn letters(stack: &str) -> Vec<char> {
    stack.split(';').flat_map(str::chars).collect()
}

/// Letters that an expression matches: `^[ab]$`.
fn pattern(letters: &BTreeSet<char>) -> String {
    let letters: String = letters.iter().collect();
    format!("^[{letters}]$")
}

fn some_letters() -> impl Strategy<Value = BTreeSet<char>> {
    proptest::collection::btree_set(proptest::char::range('a', 'f'), 1..4)
}

/// What the specification says of one stack.
fn reduced(stack: &str, options: &[Option<BTreeSet<char>>; 5]) -> Option<Vec<char>> {
    let [focus, ignore, show_from, hide, show] = options;
    let mut frames = letters(stack);
    let has = |set: &BTreeSet<char>, frames: &[char]| frames.iter().any(|f| set.contains(f));
    if focus.as_ref().is_some_and(|set| !has(set, &frames))
        || ignore.as_ref().is_some_and(|set| has(set, &frames))
    {
        return None;
    }
    if let Some(set) = show_from {
        let outermost = frames.iter().rposition(|frame| set.contains(frame))?;
        frames.truncate(outermost + 1);
    }
    if let Some(set) = hide {
        frames.retain(|frame| !set.contains(frame));
    }
    if let Some(set) = show {
        frames.retain(|frame| set.contains(frame));
    }
    (!frames.is_empty()).then_some(frames)
}

proptest! {
    #[test]
    fn functions_weigh_what_their_samples_do_once_each(stacks in stacks()) {
        let profile = profile_of(&stacks);
        let functions = Functions::of(&profile, &own("^[ab]$"));
        let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
        let sum = |keep: &dyn Fn(&[char]) -> bool| -> u64 {
            let kept = stacks.iter().filter(|(stack, _)| keep(&letters(stack)));
            kept.map(|(_, weight)| weight).sum()
        };
        for (id, numbers) in functions.all.indices().zip(&tally.numbers) {
            let own = name(&functions, id);
            let payer = |frames: &[char]| frames.iter().copied().find(|f| matches!(f, 'a' | 'b'));
            prop_assert_eq!(numbers.own.period, sum(&|frames| frames[0] == own));
            prop_assert_eq!(numbers.inclusive.period, sum(&|frames| frames.contains(&own)));
            prop_assert_eq!(numbers.credited.period, sum(&|frames| payer(frames) == Some(own)));
        }
        let foreign = sum(&|frames| !frames.iter().any(|f| matches!(f, 'a' | 'b')));
        prop_assert_eq!(tally.no_own.period, foreign);
    }

    #[test]
    fn edges_and_functions_agree(stacks in stacks()) {
        let profile = profile_of(&stacks);
        let functions = Functions::of(&profile, &own("^[ab]$"));
        let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
        let edges = Edges::of(&profile, &functions, &tally, None);
        let inclusive = |id: FunctionId| tally.of_function(id).inclusive.period;
        for (caller, callee, count) in &edges.all {
            prop_assert!(count.period <= inclusive(*caller).min(inclusive(*callee)));
        }
        let is_recursive = stacks.iter().any(|(stack, _)| {
            let frames = letters(stack);
            frames.iter().collect::<BTreeSet<_>>().len() < frames.len()
        });
        let mut as_root: BTreeMap<FunctionId, u64> = BTreeMap::new();
        for ((id, _), count) in &edges.roots {
            *as_root.entry(*id).or_default() += count.period;
        }
        for id in functions.all.indices() {
            let callers: u64 = edges.callers(id).map(|(_, count)| count.period).sum();
            let callees: u64 = edges.callees(id).map(|(_, count)| count.period).sum();
            let from_outside = callers + as_root.get(&id).copied().unwrap_or(0);
            let inside = tally.of_function(id).own.period + callees;
            prop_assert!(inclusive(id) <= from_outside && inclusive(id) <= inside);
            if !is_recursive {
                prop_assert_eq!(inclusive(id), from_outside);
                prop_assert_eq!(inclusive(id), inside);
            }
        }
    }

    #[test]
    fn filters_do_what_is_specified_in_that_order(
        stacks in stacks(), options in proptest::array::uniform5(proptest::option::of(some_letters()))
    ) {
        let mut profile = profile_of(&stacks);
        let regexes = options.each_ref().map(|set_of| set_of.as_ref().map(|letters| Patterns::of(&[pattern(letters)])));
        let [focus, ignore, show_from, hide, show] = regexes;
        let filters = Filters { focus, ignore, show_from, hide, show, ..Filters::default() };
        apply(&mut profile, &filters, &OwnRules::default());
        let mut wanted: BTreeMap<Vec<char>, u64> = BTreeMap::new();
        for (stack, weight) in &stacks {
            if let Some(left) = reduced(stack, &options) {
                *wanted.entry(left).or_default() += weight;
            }
        }
        let functions = Functions::of(&profile, &OwnRules::default());
        let mut found: BTreeMap<Vec<char>, u64> = BTreeMap::new();
        for entry in &profile.entries {
            let frames = profile.stacks.get(entry.stack);
            let names: Vec<char> = frames.iter().map(|f| name(&functions, functions.of_frame(*f))).collect();
            // Self goes to the innermost frame that is left.
            prop_assert_eq!(functions.of_frame(entry.leaf), functions.of_frame(frames[0]));
            *found.entry(names).or_default() += entry.period;
        }
        prop_assert_eq!(found, wanted);
    }
}
