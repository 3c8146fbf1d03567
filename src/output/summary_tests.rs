//! Pages of random profiles: within every budget, beginnings of one another, and nothing lost.

use proptest::prelude::*;
use serde_json::Value;

use super::answer::{write_markdown, write_text};
use super::json::{self, Common};
use super::summary::{PageOptions, page};
use crate::questions::budget::Budget;
use crate::questions::facts::Facts;
use crate::questions::functions::Functions;
use crate::questions::kinds::OwnRules;
use crate::questions::summary::{Summary, Wanted};
use crate::questions::tally::Tally;
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
    };
    let functions = Functions::of(&profile, &rules);
    let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
    let facts = Facts::of(&profile, &tally, None);
    let wanted = Wanted {
        full_names: false,
        small,
    };
    Summary::of(&profile, functions, tally, facts, wanted)
}

fn text(summary: &Summary, budget: Budget) -> Option<String> {
    let page = |lines: usize| {
        let options = PageOptions {
            lines,
            ..PageOptions::default()
        };
        page(summary, &options)
    };
    let mut out = Vec::new();
    let mut marked = Vec::new();
    write_text(&page, budget, &mut out).ok()?;
    if write_markdown(&page, budget, &mut marked).is_ok() {
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
        for (less, more) in rows(&less).iter().zip(&rows(&more)) {
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
