//! What each function weighs: self, inclusive, credited, in one pass over the distinct stacks.
//!
//! For a sample of some weight: *self* – the function is the innermost frame, inlined ones count; *inclusive* – it occurs, once
//! however often; *credited* – it is the innermost own frame; *physical* – the symbol of the sample's address. All that is
//! credited and what has no own frame is the total, exactly.

use rustc_hash::FxHashMap;

use super::{FunctionId, Functions};
use crate::ids::Idx;
use crate::profile::{Entry, EventId, EventSummary, FrameId, Profile, StackId};
use crate::run_state::RunState;

/// Weight of some samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
}

impl Count {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.period = self.period.saturating_add(other.period);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// The numbers of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// As the innermost frame.
    pub own: Count,
    /// Anywhere in the stack.
    pub inclusive: Count,
    /// As the innermost own frame.
    pub credited: Count,
    /// As the symbol of the address.
    pub physical: Count,
}

/// A distinct stack with the leaf it has.
#[derive(Debug, Clone, Copy)]
pub struct WeightedStack {
    stack: StackId,
    leaf: FrameId,
    /// Its weight.
    pub count: Count,
    /// Σw² of its samples.
    pub squares: f64,
    /// Its innermost own function.
    pub payer: Option<FunctionId>,
    /// Whether threads could have run there and had no processor.
    pub is_runnable: bool,
}

impl WeightedStack {
    /// Its frames, leaf first; without a chain there is the leaf alone.
    #[must_use]
    pub fn frames<'s>(&'s self, profile: &'s Profile) -> &'s [FrameId] {
        profile.frames_of(self.stack, &self.leaf)
    }

    /// The frame of the samples' own address.
    #[must_use]
    pub const fn leaf(&self) -> FrameId {
        self.leaf
    }

    /// The stack.
    #[must_use]
    pub const fn id(&self) -> StackId {
        self.stack
    }
}

/// What a profile weighs by function.
#[derive(Debug, Default)]
pub struct Tally {
    /// All samples of the event that filters left.
    pub total: Count,
    /// All samples of the event.
    pub unfiltered: Count,
    /// By function.
    pub numbers: Vec<Numbers>,
    /// Without an own frame.
    pub no_own: Count,
    /// The same by the function of the address.
    pub no_own_in: FxHashMap<FunctionId, Count>,
    /// By own function that is credited and the function of the address; itself where it is the innermost frame.
    pub pays: FxHashMap<(FunctionId, FunctionId), Count>,
    /// Distinct stacks.
    pub stacks: Vec<WeightedStack>,
    /// The event that was counted.
    pub event: EventId,
    /// Samples of equal weight that all samples of the event are worth; nothing where each thing was recorded, so that nothing
    /// is left to chance.
    pub worth: Option<f64>,
}

/// Distinct stacks of an event with their weights, in the order of their ids.
fn weighted_stacks(profile: &Profile, event: EventId) -> Vec<WeightedStack> {
    let mut stacks: Vec<WeightedStack> = of_event(profile, event)
        .map(|entry| WeightedStack {
            stack: entry.stack,
            leaf: entry.leaf,
            count: Count {
                period: entry.period,
                samples: entry.samples,
            },
            squares: profile.squares_of(entry),
            payer: None,
            is_runnable: entry.state == RunState::Runnable,
        })
        .collect();
    let key = |of: &WeightedStack| (of.stack, of.leaf, of.is_runnable);
    // Equal ones stay in their order: another one of the sum of squares would be another sum.
    stacks.sort_by_key(key);
    stacks.dedup_by(|next, first| {
        let is_same = key(next) == key(first);
        if is_same {
            first.count.add(next.count);
            first.squares += next.squares;
        }
        is_same
    });
    stacks
}

/// Entries of an event.
pub fn of_event(profile: &Profile, event: EventId) -> impl Iterator<Item = &Entry> {
    profile
        .entries
        .iter()
        .filter(move |entry| entry.event == event)
}

impl Tally {
    /// Counts the samples of an event.
    #[must_use]
    pub fn of(profile: &Profile, functions: &Functions, event: EventId) -> Self {
        let mut walk = Walk {
            profile,
            functions,
            seen: vec![0; functions.all.len()],
            round: 0,
            out: Self {
                numbers: vec![Numbers::default(); functions.all.len()],
                event,
                ..Self::default()
            },
        };
        let summary = profile.events.get(event);
        if let Some(summary) = summary {
            walk.out.unfiltered = Count {
                period: summary.period,
                samples: summary.samples,
            };
        }
        let mut stacks = weighted_stacks(profile, event);
        for stack in &mut stacks {
            stack.payer = walk.add(stack);
        }
        let is_sampled = summary.is_some_and(EventSummary::is_sampled);
        let worth = is_sampled.then(|| walk.out.worth(&stacks));
        Self {
            stacks,
            worth,
            ..walk.out
        }
    }

    /// (Σw)²/Σw² of what filters left, for all samples.
    fn worth(&self, stacks: &[WeightedStack]) -> f64 {
        let squares: f64 = stacks.iter().map(|stack| stack.squares).sum();
        if squares <= 0.0 {
            return 0.0;
        }
        let weight = self.total.period as f64;
        let left = self.unfiltered.samples as f64 / self.total.samples.max(1) as f64;
        weight * weight / squares * left
    }

    /// The numbers of a function.
    #[must_use]
    pub fn of_function(&self, id: FunctionId) -> &Numbers {
        &self.numbers[id.index()]
    }
}

struct Walk<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    /// By function: the stack in which it was last met.
    seen: Vec<u32>,
    round: u32,
    out: Tally,
}

impl Walk<'_> {
    /// Counts a stack; says who pays.
    fn add(&mut self, stack: &WeightedStack) -> Option<FunctionId> {
        let count = stack.count;
        self.round += 1;
        self.out.total.add(count);
        let frames = stack.frames(self.profile);
        let physical = self.functions.of_frame(stack.leaf);
        self.out.numbers[physical.index()].physical.add(count);
        if let Some(leaf) = frames.first() {
            let function = self.functions.of_frame(*leaf);
            self.out.numbers[function.index()].own.add(count);
        }
        // Each function counts once. The first own frame is the first one of its function; what runs without a name is not its caller.
        let mut may_pay = true;
        let mut payer = None;
        for (depth, frame) in frames.iter().enumerate() {
            let function = self.functions.of_frame(*frame);
            let seen = &mut self.seen[function.index()];
            if *seen == self.round {
                continue;
            }
            *seen = self.round;
            let numbers = &mut self.out.numbers[function.index()];
            numbers.inclusive.add(count);
            if may_pay {
                let is_nameless = self.functions.get(function).is_nameless;
                let is_payer = !is_nameless && self.functions.is_own(function);
                if is_payer {
                    numbers.credited.add(count);
                    // Who is inlined into a caller does not call it: most of it is in what is inlined into the payer.
                    let is_inlined = |of: &FrameId| self.profile.is_inlined(*of);
                    let is_part = frames[..=depth].iter().all(is_inlined);
                    let within = match depth.checked_sub(1).map(|inner| frames[inner]) {
                        None => function,
                        Some(inner) if is_part => self.functions.of_frame(inner),
                        Some(_) => physical,
                    };
                    payer = Some((function, within));
                }
                may_pay = !is_nameless && !is_payer;
            }
        }
        match payer {
            Some(pair) => self.out.pays.entry(pair).or_default().add(count),
            None => {
                self.out.no_own.add(count);
                self.out.no_own_in.entry(physical).or_default().add(count);
            }
        }
        payer.map(|(function, _)| function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::kinds::OwnRules;
    use crate::report::testing::ProfileBuilder;

    fn tally(stacks: &[(&str, u64)], own: &str) -> (Profile, Functions, Tally) {
        let mut builder = ProfileBuilder::default();
        for (stack, weight) in stacks {
            builder.sample("x", stack, *weight);
        }
        let profile = builder.finish();
        let rules = OwnRules {
            own: Some(regex::RegexSet::new([own]).expect("valid")),
            not_own: None,
            ..OwnRules::default()
        };
        let functions = Functions::of(&profile, &rules);
        let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
        (profile, functions, tally)
    }

    fn numbers(functions: &Functions, tally: &Tally, name: &str) -> (u64, u64, u64) {
        let at = functions
            .all
            .iter()
            .position(|f| f.identity.name.name == name);
        let numbers = &tally.numbers[at.expect("a function of the name")];
        (
            numbers.own.period,
            numbers.credited.period,
            numbers.inclusive.period,
        )
    }

    #[test]
    fn the_innermost_own_frame_pays() {
        let stacks = [
            ("memcpy@libc;b;a;main", 10),
            ("b;b;a;main", 5),
            ("read@libc;_start@libc", 3),
        ];
        let (_, functions, tally) = tally(&stacks, "^[ab]$");
        assert_eq!(
            numbers(&functions, &tally, "b"),
            (5, 15, 15),
            "recursion counts once"
        );
        assert_eq!(numbers(&functions, &tally, "a"), (0, 0, 15));
        assert_eq!(numbers(&functions, &tally, "memcpy"), (10, 0, 10));
        assert_eq!((tally.total.period, tally.no_own.period), (18, 3));
    }

    proptest::proptest! {
        #[test]
        fn what_is_credited_and_what_has_no_own_frame_is_the_total(
            stacks in proptest::collection::vec(("[a-e](;[a-e]){0,6}", 1_u64..1000), 1..40)
        ) {
            let stacks: Vec<(&str, u64)> = stacks.iter().map(|(s, w)| (s.as_str(), *w)).collect();
            let (_, functions, tally) = tally(&stacks, "^[ab]$");
            let sum = |part: fn(&Numbers) -> Count| -> u64 { tally.numbers.iter().map(|n| part(n).period).sum() };
            proptest::prop_assert_eq!(sum(|n| n.own), tally.total.period);
            proptest::prop_assert_eq!(sum(|n| n.physical), tally.total.period);
            proptest::prop_assert_eq!(sum(|n| n.credited) + tally.no_own.period, tally.total.period);
            for (function, n) in functions.all.iter().zip(&tally.numbers) {
                proptest::prop_assert!(n.own.period <= n.inclusive.period && n.inclusive.period <= tally.total.period);
                if function.kind == crate::functions::kinds::Kind::Own {
                    proptest::prop_assert!(n.own.period <= n.credited.period && n.credited.period <= n.inclusive.period);
                }
            }
        }
    }
}
