//! Call trees of the samples beside those that perf 6.1 printed for them. perf's stacks end early (at JIT code, and before
//! `_start`) and miss frames, so they are not compared line by line: whatever perf shows must be in ours.

use std::collections::BTreeMap;
use std::fs;

use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{SAMPLES, pjit, sample, stdout_of};

/// Names from the root to the leaf.
type Way = Vec<String>;

/// The ways through the tree of each row of `report --no-children -g caller`, by the row's symbol.
fn ways(text: &str) -> BTreeMap<String, Vec<Way>> {
    let mut rows: BTreeMap<String, Vec<Way>> = BTreeMap::new();
    let mut symbol = String::new();
    // (column, names) of the branches that lead to the current line.
    let mut branches: Vec<(usize, Way)> = Vec::new();
    let end = |symbol: &str, branches: &[(usize, Way)], rows: &mut BTreeMap<_, Vec<Way>>| {
        if !branches.is_empty() {
            let way = branches.iter().flat_map(|(_, names)| names.clone());
            rows.entry(symbol.to_owned())
                .or_default()
                .push(way.collect());
        }
    };
    for line in text.lines() {
        if let Some((_, name)) = row(line) {
            end(&symbol, &branches, &mut rows);
            branches.clear();
            symbol = name;
            continue;
        }
        let words = line.trim_start_matches([' ', '|']);
        let column = line.len() - words.len();
        let words = words.trim_end();
        if words.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(branch) = words.strip_prefix("--") else {
            let (_, names) = branches.last_mut().expect("a branch begins a tree");
            names.push(words.to_owned());
            continue;
        };
        let name = branch
            .split_once("%--")
            .map_or(branch.trim_start_matches('-'), |(_, n)| n);
        if branches.iter().any(|(at, _)| *at >= column) {
            end(&symbol, &branches, &mut rows);
        }
        branches.retain(|(at, _)| *at < column);
        branches.push((column, vec![name.to_owned()]));
    }
    end(&symbol, &branches, &mut rows);
    rows
}

/// The percentages and the symbol of a row of a table.
fn row(line: &str) -> Option<(Vec<f64>, String)> {
    let percents: Vec<f64> = line
        .split_whitespace()
        .map_while(|word| word.strip_suffix('%')?.parse().ok())
        .collect();
    let symbol = |w: &[u8]| matches!(w, [b'[', _, b']', b' ']);
    let at = line.as_bytes().windows(4).position(symbol)?;
    let name = line.get(at..)?.trim_end().to_owned();
    (!percents.is_empty()).then_some((percents, name))
}

/// Without what perf 6.1 names in its own way: inlined frames (it takes the names that `addr2line` prints, and draws a
/// function again for each that was inlined into it).
fn plain(way: &Way) -> Way {
    let mut names: Way = way.clone();
    names.retain(|name| !name.ends_with(" (inlined)"));
    names.dedup();
    names
}

/// Whether all of `some` are in `all`, in this order.
fn is_within(some: &Way, all: &Way) -> bool {
    let mut all = all.iter();
    some.iter().all(|name| all.any(|n| n == name))
}

#[test]
fn every_way_that_perf_shows_is_in_our_trees() {
    let mut compared = 0;
    for name in SAMPLES {
        let perf = fs::read_to_string(sample(name, "perf-6.1.report.caller.txt"))
            .expect("the sample has perf's report");
        let graph = "graph,0.5,caller,function,percent";
        let ours = stdout_of(&["report", "--stdio", "--no-children", "-g", graph], name);
        let (perf, ours) = (ways(&perf), ways(&ours));
        assert!(perf.keys().eq(ours.keys()), "{name}: the same rows");
        for (symbol, theirs) in &perf {
            let ours: Vec<Way> = ours[symbol].iter().map(plain).collect();
            for way in theirs.iter().map(plain) {
                compared += 1;
                assert!(
                    ours.iter().any(|our| is_within(&way, our)),
                    "{name}, {symbol}: {way:#?} is not in {ours:#?}"
                );
            }
        }
    }
    assert!(compared > 150, "{compared} ways were compared");
}

/// Rows of `report --children` by symbol: (children, self) of each.
fn shares(text: &str) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut rows: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (percents, symbol) in text.lines().filter_map(row) {
        if let [children, own] = percents[..] {
            rows.entry(symbol).or_default().push((children, own));
        }
    }
    for rows in rows.values_mut() {
        rows.sort_by(|a, b| b.partial_cmp(a).expect("numbers"));
    }
    rows
}

/// What is on a stack that perf cut is on ours as well, so no function has less; and what was sampled is the same.
#[test]
fn no_function_has_less_below_it_than_perf_says() {
    let mut compared = 0;
    for name in SAMPLES {
        let perf = fs::read_to_string(sample(name, "perf-6.1.report.children.txt"))
            .expect("the sample has perf's report");
        let ours = stdout_of(
            &["report", "--stdio", "--children", "--percent-limit", "10"],
            name,
        );
        let (perf, ours) = (shares(&perf), shares(&ours));
        for (symbol, theirs) in &perf {
            if symbol.ends_with(" (inlined)") {
                continue;
            }
            let ours = ours.get(symbol).map_or(&[][..], Vec::as_slice);
            for (i, &(children, own)) in theirs.iter().enumerate() {
                compared += 1;
                assert!(
                    ours.get(i)
                        .is_some_and(|our| our.0 >= children && our.1 == own),
                    "{name}, {symbol}: perf has {children} % and {own} %, we have {ours:?}"
                );
            }
        }
    }
    assert!(compared > 80, "{compared} rows were compared");
}

/// What the limit leaves out is said, where nobody chose it.
#[test]
fn long_chains_are_cut_with_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"app");
    recording.map(7, 0x10_0000, 0x10_0000, 0, b"/bin/app");
    for (time, frames) in [(1000, 3), (2000, 127), (3000, 128), (4000, 200)] {
        let mut chain = vec![CONTEXT_USER];
        chain.extend((0..frames).map(|frame| 0x10_0010 + 0x100 * frame));
        recording.sample(&Sample {
            ip: 0x10_0010,
            pid: 7,
            tid: 7,
            time,
            period: 100,
            chain: &chain,
            user: None,
        });
    }
    fs::write(&data, recording.file()).expect("it can be written");
    let said = |verb: &str, options: &[&str]| {
        let output = pjit().arg(verb).args(options).arg("-i").arg(&data).output();
        let output = output.expect("the binary can be run");
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    let warning = "50.00% of the samples have more than 127 frames, and their outer callers are left out: --max-stack 200";
    for verb in ["report", "script"] {
        let told = said(verb, &[]);
        assert!(told.contains(warning), "{verb}: {told}");
        for most in ["127", "200"] {
            assert!(!said(verb, &["--max-stack", most]).contains("frames"));
        }
    }
    assert!(!said("report", &["--no-children", "-g", "none"]).contains("frames"));
    assert!(!said("script", &["--hide-call-graph"]).contains("frames"));
}
