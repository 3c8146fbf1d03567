//! Rows and trees against a model that credits one sample after the other, as the rules are written down.

use std::collections::BTreeMap;

use super::options::{CallGraph, ChainOptions, ChainOrder, ReportOptions, RowOptions};
use super::testing::ProfileBuilder;
use super::{CallTree, TreeMaker, TreeNodeId, build};
use crate::address::FileOffset;
use crate::ids::Idx;
use crate::profile::{ObjectId, Producer, Profile};

/// Weight of every beginning of a chain, by the names of its frames.
type Prefixes = BTreeMap<Vec<String>, (u64, u64)>;

struct Sample {
    comm: &'static str,
    /// Leaf first.
    stack: Vec<&'static str>,
    period: u64,
}

fn random(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize % below
}

fn samples(seed: u64) -> Vec<Sample> {
    const NAMES: [&str; 6] = ["a", "b", "c@lib", "d@lib", "e", "0x70009999"];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut sample = || Sample {
        comm: ["one", "two"][random(&mut state, 2)],
        stack: (0..=random(&mut state, 7))
            .map(|_| NAMES[random(&mut state, NAMES.len())])
            .collect(),
        period: 1 + random(&mut state, 9) as u64,
    };
    (0..60).map(|_| sample()).collect()
}

fn profile(samples: &[Sample]) -> Profile {
    let mut builder = ProfileBuilder::default();
    samples
        .iter()
        .for_each(|s| builder.sample(s.comm, &s.stack.join(";"), s.period));
    builder.finish()
}

fn shown(name: &str) -> String {
    name.trim_end_matches("@lib").to_owned()
}

/// By comm and name of a row: period at or below it, and the tree.
fn model(
    samples: &[Sample],
    order: ChainOrder,
    children: bool,
) -> BTreeMap<(String, String), (u64, Prefixes)> {
    let mut rows: BTreeMap<(String, String), (u64, Prefixes)> = BTreeMap::new();
    for sample in samples {
        let mut chain: Vec<String> = sample.stack.iter().map(|name| shown(name)).collect();
        let leaf = if chain[0].starts_with("0x") {
            "0x0000000000009999".to_owned()
        } else {
            chain[0].clone()
        };
        if order == ChainOrder::Caller {
            chain.reverse();
        }
        let mut credited = vec![leaf.clone()];
        let mut credit = |row: &str, part: &[String]| {
            let (period, tree) = rows
                .entry((sample.comm.to_owned(), row.to_owned()))
                .or_default();
            *period += sample.period;
            for end in 1..=part.len() {
                let weight = tree.entry(part[..end].to_vec()).or_default();
                *weight = (weight.0 + sample.period, weight.1 + 1);
            }
        };
        credit(&leaf, &chain);
        for place in (0..chain.len()).filter(|_| children) {
            let row = if chain[place].starts_with("0x") {
                "0x0000000070009999"
            } else {
                chain[place].as_str()
            };
            if !credited.iter().any(|other| other == row) {
                credited.push(row.to_owned());
                credit(row, &chain[place..]);
            }
        }
    }
    rows
}

fn name(profile: &Profile, frame: crate::profile::FrameId) -> String {
    let text = profile.frame_name(frame);
    if text.is_empty() {
        format!("{:#x}", profile[frame].address)
    } else {
        text.to_owned()
    }
}

fn prefixes(profile: &Profile, tree: &CallTree) -> Prefixes {
    let mut found = Prefixes::new();
    let mut open: Vec<(TreeNodeId, Vec<String>)> =
        tree.top().iter().map(|node| (*node, Vec::new())).collect();
    while let Some((node, mut way)) = open.pop() {
        let at = &tree.nodes[node];
        for frame in tree.run(node) {
            way.push(name(profile, *frame));
            found.insert(way.clone(), (at.period(), at.count()));
        }
        let children = tree.children(node);
        let ends = at.own_count > 0 || children.len() != 1;
        assert!(ends, "a run goes on while all chains do");
        assert!(children.is_sorted_by_key(|c| std::cmp::Reverse(tree.nodes[*c].period())));
        open.extend(children.iter().map(|child| (*child, way.clone())));
    }
    found
}

fn check(seed: u64, order: ChainOrder, children: bool) {
    let samples = samples(seed);
    let profile = profile(&samples);
    let call_graph = CallGraph {
        order: Some(order),
        threshold: 0.0,
        ..CallGraph::default()
    };
    let options = ReportOptions {
        rows: RowOptions {
            children,
            ..RowOptions::default()
        },
        chains: ChainOptions {
            call_graph,
            ..ChainOptions::default()
        },
        ..ReportOptions::default()
    };
    let report = build(&profile, &options).expect("there are samples and chains");
    let table = &report.tables[0];
    let mut trees = TreeMaker::new(&report);
    let mut got = BTreeMap::new();
    for (index, row) in table.rows.iter().enumerate() {
        let frame = &profile[row.frame];
        let address = if row.is_caller {
            frame.address.0
        } else {
            frame.object_address.0
        };
        let name = match profile.frame_name(row.frame) {
            "" => format!("{address:#018x}"),
            name => name.to_owned(),
        };
        let comm = profile[report.entry(row).comm].clone();
        let value = if children {
            row.counts.children_period
        } else {
            row.counts.self_period
        };
        let tree = prefixes(&profile, &trees.tree(table, index));
        assert!(
            got.insert((comm, name), (value, tree)).is_none(),
            "one row for each key"
        );
    }
    assert_eq!(
        got,
        model(&samples, order, children),
        "seed {seed}, {order:?}, children {children}"
    );
}

#[test]
fn trees_hold_what_samples_credit_one_by_one() {
    for seed in 1..40 {
        for order in [ChainOrder::Caller, ChainOrder::Callee] {
            check(seed, order, true);
            check(seed, order, false);
        }
    }
}

#[test]
fn jit_code_made_later_at_the_same_place_is_another_function() {
    later_code_is_another_function(|profile, jit| profile.objects[jit].is_jit = true);
    // wasmtime loads two modules in turn. Its dump was mapped, and so its object is a file.
    later_code_is_another_function(|profile, jit| {
        let of_dump = profile.symbols.iter_mut().filter(|s| s.object == jit);
        of_dump.for_each(|symbol| symbol.producer = Some(Producer::Wasmtime));
    });
}

fn later_code_is_another_function(tell: impl Fn(&mut Profile, ObjectId)) {
    let mut builder = ProfileBuilder::default();
    builder.sample("one", "old@jit;main", 2);
    builder.sample("one", "new@jit;main", 1);
    let mut profile = builder.finish();
    let is_jit = |name: &str| name == "jit";
    let jit = profile.objects.iter().position(|o| is_jit(&o.short_name));
    let jit = jit.expect("the builder makes an object of each name");
    tell(&mut profile, ObjectId::from_usize(jit));
    for symbol in &mut profile.symbols {
        if symbol.object.index() == jit {
            (symbol.start, symbol.end) = (FileOffset(0x1000), FileOffset(0x1010));
        }
    }
    let options = ReportOptions::default();
    let report = build(&profile, &options).expect("there are samples");
    let table = &report.tables[0];
    let rows = table.rows.iter().map(|row| profile.frame_name(row.frame));
    assert_eq!(rows.collect::<Vec<_>>(), ["main", "old", "new"]);
    let tree = TreeMaker::new(&report).tree(table, 0);
    let frames = tree.frames.iter().map(|frame| profile.frame_name(*frame));
    // In the order in which the branches were looked into.
    assert_eq!(frames.collect::<Vec<_>>(), ["main", "new", "old"]);
}

#[test]
fn builds_of_one_path_have_functions_of_their_own() {
    let mut builder = ProfileBuilder::default();
    for function in ["old@one", "same@one", "new@two", "same@two"] {
        builder.sample("app", function, 1);
    }
    let mut profile = builder.finish();
    for object in &mut profile.objects {
        object.short_name = "app".to_owned();
    }
    for symbol in &mut profile.symbols {
        let start = if symbol.name == "same" {
            0x2000
        } else {
            0x1000
        };
        (symbol.start, symbol.end) = (FileOffset(start), FileOffset(start + 0x10));
    }
    let options = ReportOptions::default();
    let report = build(&profile, &options).expect("there are samples");
    let rows = &report.tables[0].rows;
    let mut rows: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| (profile.frame_name(row.frame), row.counts.self_period))
        .collect();
    rows.sort_unstable();
    // perf gives all of `new` to `old`, for both are in `app` at one place.
    assert_eq!(rows, [("new", 1), ("old", 1), ("same", 2)]);
}
