//! Pages of random profiles: within every budget, beginnings of one another, and nothing lost.

use proptest::prelude::*;
use serde_json::Value;

use super::answer;
use super::json::{self, Common};
use super::summary::{FOOT, PageOptions, page};
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::functions::payers::{Grouping, Payers, Spending};
use crate::functions::tally::Tally;
use crate::profile::Profile;
use crate::questions::budget::Budget;
use crate::questions::facts::{Facts, Trouble};
use crate::questions::summary::{Summary, Wanted};
use crate::report::testing::ProfileBuilder;

/// With functions `a` to `z`, of which some letters are own.
fn summary(stacks: &[(String, u64)], small: bool) -> Summary {
    let mut builder = ProfileBuilder::default();
    for (stack, weight) in stacks {
        builder.sample("x", stack, *weight);
    }
    let profile = builder.finish();
    let rules = OwnRules {
        own: Some(regex::RegexSet::new(["^[a-m]$"]).expect("valid")),
        not_own: None,
        ..OwnRules::default()
    };
    let functions = Functions::of(&profile, &rules);
    let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
    let facts = Facts::of(&profile, &tally, None);
    let wanted = Wanted {
        full_names: false,
        small,
    };
    let payers = Payers::new(&profile, &functions);
    let spending = Spending::of(&profile, &tally, payers, Grouping::Programs);
    Summary::of(&profile, functions, (tally, spending), facts, wanted)
}

/// 100 samples in two functions of an event, with the rest of the profile as `change` leaves it.
fn page_of(event: &str, budget: Budget, change: impl FnOnce(&mut Profile)) -> String {
    let mut builder = ProfileBuilder::default();
    let other = builder.add_event(event);
    builder.event = other;
    for _ in 0..50 {
        builder.sample("x", "a;m", 1000);
        builder.sample("x", "b;m", 1000);
    }
    let mut profile = builder.finish();
    change(&mut profile);
    let functions = Functions::of(&profile, &OwnRules::default());
    let tally = Tally::of(&profile, &functions, other);
    let facts = Facts {
        findings: (0..5)
            .map(|at| Trouble {
                is_failure: at < 2,
                code: ["stacks", "symbols", "clock", "dumps", "kernel"][at],
                text: "bad".to_owned(),
            })
            .collect(),
        ..Facts::of(&profile, &tally, None)
    };
    let counted = (tally, Spending::default());
    let summary = Summary::of(&profile, functions, counted, facts, Wanted::default());
    let page = text(&summary, budget).expect("a page");
    assert!(
        page.lines()
            .all(|line| budget == Budget::Lines(12) || line.chars().count() <= 80)
    );
    // Lines that were too long are one again.
    page.replace("\n#   ", " ")
}

#[test]
fn what_is_no_cpu_is_not_called_so() {
    let large = Budget::Lines(60);
    for (event, words) in [
        ("page-faults", "100000 page-faults"),
        ("context-switches", "100000 context-switches"),
    ] {
        let page = page_of(event, large, |_| {});
        assert!(page.contains(words) && !page.contains("CPU"), "{page}");
    }
    // Time off the processors is time, and never the answer where something else was sampled.
    let page = page_of("offcpu-time", large, |_| {});
    assert!(
        page.contains("s off CPU") && page.contains("seconds"),
        "{page}"
    );
    let mut builder = ProfileBuilder::default();
    builder.sample("x", "a", 1);
    builder.event = builder.add_event("offcpu-time");
    builder.sample("x", "a", 1);
    builder.sample("x", "b", 1);
    let profile = builder.finish();
    assert_eq!(profile.main_event(), crate::profile::EventId(0));
}

#[test]
fn only_samples_have_a_margin() {
    let large = Budget::Lines(60);
    assert!(page_of("cycles", large, |_| {}).contains("50.0% +-9.8"));
    // One sample is worth half of them all: so many are no evidence.
    let uneven = page_of("cycles", large, |profile| {
        profile.entries[0].period = 100_000;
        profile.events[crate::profile::EventId(1)].period += 99_000;
    });
    assert!(
        !uneven.contains("+-9.8") && uneven.contains("+-"),
        "{uneven}"
    );
    let whole = page_of("page-faults", large, |profile| {
        profile.events[crate::profile::EventId(1)].is_whole = true;
    });
    assert!(!whole.contains("+-"), "{whole}");
}

#[test]
fn the_smallest_page_has_a_function() {
    let page = page_of("cycles", Budget::Lines(12), |_| {});
    let head = page.lines().take_while(|line| line.starts_with('#'));
    assert!(head.clone().count() <= 4, "{page}");
    assert!(
        head.clone()
            .any(|line| line == "# FAIL stacks, symbols: pjit check"),
        "{page}"
    );
    let rows = page
        .lines()
        .filter(|line| line.contains("50.0%") && line.contains("b"));
    assert!(rows.count() > 0, "{page}");
    let page = page_of("cycles", Budget::Lines(60), |_| {});
    assert!(page.contains("# warn kernel: bad"), "{page}");
}

#[test]
fn of_what_filters_left_both_numbers_are_told() {
    let page = page_of("page-faults", Budget::Lines(60), |profile| {
        profile.entries.truncate(1);
    });
    assert!(
        page.contains(", 1 of 100 samples of page-faults, 1000 of 100000 page-faults"),
        "{page}"
    );
    // Rows are large or small among what is left.
    assert!(page.contains("1.0%") && page.contains("  a"), "{page}");
}

fn text(summary: &Summary, budget: Budget) -> Option<String> {
    let page = |lines: usize| {
        let options = PageOptions {
            lines,
            ..PageOptions::default()
        };
        page(summary, &options)
    };
    let out = answer::text(&page, budget).ok()?;
    if let Ok(marked) = answer::markdown(&page, budget) {
        assert!(keeps(&String::from_utf8_lossy(&marked), budget));
    }
    Some(String::from_utf8(out).expect("UTF-8"))
}

fn keeps(text: &str, budget: Budget) -> bool {
    match budget {
        Budget::Lines(lines) => text.lines().count() <= lines,
        Budget::Characters(most) => text.chars().count() <= most,
    }
}

/// Rows of each table: those that stand for others left out.
fn rows(page: &str) -> [Vec<String>; 3] {
    ["Self", "Own code", "Foreign code"].map(|title| {
        let behind = page.lines().skip_while(|line| !line.starts_with(title));
        let rows = behind.skip(1).take_while(|line| line.starts_with(' '));
        let rows = rows.filter(|line| !line.contains("  +"));
        rows.map(|line| line.split_whitespace().collect()).collect()
    })
}

fn sum(answer: &Value, part: &str) -> u64 {
    let functions = answer["functions"].as_array().expect("functions").iter();
    let shown: u64 = functions.map(|f| f[part].as_u64().expect("a weight")).sum();
    shown + answer["omitted"][part].as_u64().expect("a weight")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn pages_keep_their_budget_and_grow_by_rows(
        stacks in proptest::collection::vec(("[a-z](;[a-z]){0,4}", 1_u64..1000), 1..60),
        lines in 12_usize..60, characters in 500_usize..5000
    ) {
        let whole = summary(&stacks, true);
        let shown = summary(&stacks, false);
        let less = text(&shown, Budget::Lines(lines)).expect("twelve lines are enough");
        let more = text(&shown, Budget::Lines(lines + 1)).expect("twelve lines are enough");
        prop_assert!(keeps(&less, Budget::Lines(lines)), "{}", less);
        // The first page that says what to type next may have a row less.
        let grows = lines + 1 != FOOT;
        for (less, more) in rows(&less).iter().zip(&rows(&more)).filter(|_| grows) {
            prop_assert!(more.starts_with(less), "{:?} {:?}", less, more);
        }
        // Rows too small for a page need no order.
        prop_assert_eq!(Some(less), text(&whole, Budget::Lines(lines)));
        if let Some(page) = text(&shown, Budget::Characters(characters)) {
            prop_assert!(keeps(&page, Budget::Characters(characters)));
        }
    }

    #[test]
    fn what_is_left_out_of_json_is_told(
        stacks in proptest::collection::vec(("[a-z](;[a-z]){0,4}", 1_u64..1000), 1..60), rows in 0_usize..30
    ) {
        let summary = summary(&stacks, true);
        let answer = json::summary(&summary, &Common::default(), rows);
        let total: u64 = stacks.iter().map(|(_, weight)| weight).sum();
        prop_assert!(answer["functions"].as_array().expect("functions").len() <= rows);
        prop_assert_eq!(sum(&answer, "self"), total);
        prop_assert_eq!(sum(&answer, "credited") + summary.no_own.period, total);
    }
}
