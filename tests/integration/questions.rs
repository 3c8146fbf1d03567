//! `summary`, `peek`, `diff`, `gate` and the filters: recomputed from `pjit script` by other means, held against the JSON schema,
//! within their budgets, and with the statuses that scripts rely on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::sync::LazyLock;

use serde_json::Value;

use crate::recording::{Recording, Sample as Recorded, Stacks};
use crate::support::{SAMPLES, copy_folder, folded, pjit, run, sample, stdout_of};

/// A document with all rows.
fn json_of(view: &[&str], name: &str) -> Value {
    let mut view = view.to_vec();
    if !view.contains(&"--budget") {
        view.extend(["--budget", "1000000"]);
    }
    serde_json::from_str(&stdout_of(&view, name)).expect("JSON")
}

/// One sample of `pjit script`: its weight and its frames, (name, object), innermost first.
type Sample = (u64, Vec<(String, String)>);

/// Reads `pjit script`; an inlined frame has the object of the next not inlined one outwards.
fn script(name: &str, filters: &[&str]) -> Vec<Sample> {
    let mut view = vec![
        "script",
        "-F",
        "comm,pid,tid,time,event,period,ip,sym,dso",
        "--ns",
        "--max-stack",
        "100000",
    ];
    view.extend(filters);
    let text = stdout_of(&view, name);
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('\t') {
            None => {
                let mut words = line.split_whitespace().rev().skip(1);
                let period = words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .expect("a period");
                samples.push((period, Vec::new()));
            }
            Some(frame) => {
                let frame = frame.trim_start();
                let (_, frame) = frame.split_once(' ').expect("an address and a name");
                let (name, object) = frame.rsplit_once(" (").expect("an object");
                let object = object.trim_end_matches(')').to_owned();
                samples
                    .last_mut()
                    .expect("a sample")
                    .1
                    .push((clean(name), object));
            }
        }
    }
    for (_, frames) in &mut samples {
        for at in (0..frames.len()).rev() {
            frames[at].1 = match frames[at].1.as_str() {
                "inlined" => frames[at + 1].1.clone(),
                object => label(object),
            };
        }
    }
    samples
}

static CLONES: LazyLock<regex::Regex> = LazyLock::new(|| {
    regex::Regex::new(r"(\.(isra|part|constprop|cold|llvm)(\.\d+)?)+$").expect("an expression")
});

fn clean(name: &str) -> String {
    let versioned = name
        .split_once('@')
        .filter(|(_, version)| *version != "plt");
    let name = versioned.map_or(name, |(name, _)| name);
    let name = CLONES.replace(name, "");
    name.strip_prefix("Builtins_")
        .map_or(name.to_string(), |builtin| format!("Builtin:{builtin}"))
}

fn label(object: &str) -> String {
    let base = object.rsplit('/').next().expect("the last part");
    match base {
        _ if object.starts_with("[kernel") => "[kernel]".to_owned(),
        _ if base.starts_with("jit-") && base.ends_with(".dump") => "[jit]".to_owned(),
        base => base.to_owned(),
    }
}

/// self, inclusive and credited by function.
type Numbers = BTreeMap<(String, String), [u64; 3]>;

fn recomputed(samples: &[Sample], is_own: &dyn Fn(&(String, String)) -> bool) -> (Numbers, u64) {
    let mut numbers = Numbers::new();
    let mut no_own = 0;
    for (period, frames) in samples {
        numbers.entry(frames[0].clone()).or_default()[0] += period;
        for frame in frames.iter().collect::<BTreeSet<_>>() {
            numbers.entry(frame.clone()).or_default()[1] += period;
        }
        match frames.iter().find(|frame| is_own(frame)) {
            Some(payer) => numbers.entry(payer.clone()).or_default()[2] += period,
            None => no_own += period,
        }
    }
    (numbers, no_own)
}

fn functions(answer: &Value) -> impl Iterator<Item = (&Value, (String, String))> {
    let text = |function: &Value, key: &str| function[key].as_str().expect("a text").to_owned();
    let functions = answer["functions"].as_array().expect("functions").iter();
    functions.map(move |function| {
        let name = text(function, "name");
        // Whose code an inlined function without a namespace is, which scripts do not tell.
        let bare = name
            .strip_suffix(" (std)")
            .or(name.strip_suffix(" (dependency)"));
        let key = (bare.unwrap_or(&name).to_owned(), text(function, "object"));
        (function, key)
    })
}

/// JavaScript has its place behind its name in scripts, and tiers in front.
const BY_SCRIPT: [&str; 3] = ["minijit", "native", "wasmtime"];

#[test]
fn a_summary_is_what_the_samples_add_up_to() {
    for name in BY_SCRIPT {
        let samples = script(name, &[]);
        let answer = json_of(&["summary", "--format", "json", "--edges"], name);
        let own: BTreeSet<(String, String)> = functions(&answer)
            .filter(|(f, _)| f["kind"] == "own")
            .map(|(_, key)| key)
            .collect();
        let (numbers, no_own) = recomputed(&samples, &|frame| own.contains(frame));
        let total: u64 = samples.iter().map(|(period, _)| period).sum();
        assert_eq!(answer["event"]["total"], total, "{name}");
        // Functions of one name add up, but where they call each other.
        let mut seen = Numbers::new();
        let mut namesakes: BTreeMap<(String, String), u32> = BTreeMap::new();
        for (function, key) in functions(&answer) {
            let found = ["self", "inclusive", "credited"]
                .map(|part| function[part].as_u64().expect("a weight"));
            if function["kind"] == "own" {
                assert!(
                    found[0] <= found[2] && found[2] <= found[1],
                    "{name}: {key:?}"
                );
            }
            *namesakes.entry(key.clone()).or_default() += 1;
            let sums = seen.entry(key).or_default();
            sums.iter_mut()
                .zip(found)
                .for_each(|(sum, part)| *sum += part);
        }
        for (key, count) in namesakes.iter().filter(|(_, count)| **count > 1) {
            let (ours, theirs) = (
                &mut seen.get_mut(key).expect("it is there")[1],
                numbers[key][1],
            );
            assert!(
                theirs <= *ours && *ours <= theirs * u64::from(*count),
                "{key:?}"
            );
            *ours = theirs;
        }
        assert_eq!(seen, numbers, "{name}");
        let credited: u64 = numbers.values().map(|n| n[2]).sum();
        assert_eq!(credited + no_own, total, "{name}");
        let share = answer["own"]["no_own"].as_f64().expect("a share");
        assert!(
            (share - no_own as f64 / total as f64).abs() < 1e-5,
            "{name}: {share}"
        );
        edges_are_those_of_the_samples(name, &answer, &samples);
    }
}

#[test]
fn packages_and_activities_add_up_to_the_total() {
    for name in SAMPLES {
        let answer = json_of(&["summary", "--format", "json"], name);
        let total = answer["event"]["total"].as_u64().expect("a number");
        let sum = |rows: &str, part: &str| -> u64 {
            let rows = answer[rows].as_array().expect("rows").iter();
            rows.map(|row| row[part].as_u64().expect("a number")).sum()
        };
        let left_out = answer["omitted"]["paid"].as_u64().expect("a number");
        let paid = sum("packages", "weight") + sum("nobody", "weight") + left_out;
        assert_eq!(paid, total, "{name}: payers");
        assert_eq!(sum("activities", "weight"), total, "{name}: activities");
        for (by, table) in [("package", "packages"), ("activity", "activities")] {
            let rows = stdout_of(&["summary", "--format", "csv", "--by", by], name);
            let named = stdout_of(&["summary", "--format", "csv", "--table", table], name);
            assert_eq!(rows, named, "{name}: {by}");
            let weights = rows.lines().skip(1);
            let weights = weights.map(|row| row.split(',').next().unwrap_or_default());
            let of_rows: u64 = weights.map(|w| w.parse::<u64>().expect("a number")).sum();
            assert_eq!(of_rows, total, "{name}: {table} as CSV");
        }
    }
}

#[test]
fn summaries_fit_a_terminal() {
    for name in SAMPLES {
        for options in [&["summary"][..], &["summary", "--by", "own"]] {
            let page = stdout_of(options, name);
            assert!(page.lines().count() <= 45, "{name}: {page}");
            let widest = page.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80), "{name}: {page}");
        }
    }
}

/// Programs, cgroups and source lines are tables of their own, and nothing is lost in them.
#[test]
fn programs_and_lines_add_up() {
    let weights = |by: &str, name: &str| -> u64 {
        let rows = stdout_of(&["summary", "--format", "csv", "--by", by], name);
        let rows = rows.lines().skip(1);
        let weights = rows.map(|row| row.split(',').next().expect("a cell").parse::<u64>());
        weights.map(|weight| weight.expect("a number")).sum()
    };
    for name in SAMPLES {
        let answer = json_of(&["summary", "--format", "json"], name);
        let total = answer["event"]["total"].as_u64().expect("a weight");
        assert_eq!(weights("process", name), total, "{name}");
        assert_eq!(weights("cgroup", name), total, "{name}");
        assert!(weights("line", name) <= total, "{name}");
    }
    let answer = json_of(&["summary", "--format", "json", "--by", "line"], "node");
    let lines = answer["lines"].as_array().expect("lines");
    let of_script = lines.iter().filter(|line| line["package"] == "hot.js");
    let of_script: u64 = of_script.filter_map(|line| line["weight"].as_u64()).sum();
    let packages = answer["packages"].as_array().expect("packages");
    let script = packages.iter().find(|package| package["name"] == "hot.js");
    // Of what is interpreted no lines are known.
    let whole = script.expect("it pays")["weight"]
        .as_u64()
        .expect("a weight");
    assert!(
        of_script <= whole && of_script * 10 >= whole * 9,
        "{of_script} of {whole}"
    );
    // Two programs ran, and stand in front.
    let page = stdout_of(&["summary"], "native");
    let parts = [
        "Processes",
        "\n  hot-rust",
        "  hot-cpp",
        "Who pays",
        "Own functions",
        "What it does",
    ];
    let places = parts.map(|part| page.find(part).expect(part));
    assert!(places.is_sorted(), "{page}");
}

/// A team's words for packages and activities come before all rules, and the sums stay whole.
#[test]
fn teams_have_their_own_words() {
    let all = json_of(&["summary", "--format", "json"], "node");
    let view = [
        "summary",
        "--format",
        "json",
        "--package",
        "numbers=^(fibonacci|matMul)$",
        "--activity",
        "adding=fibonacci",
    ];
    let named = json_of(&view, "node");
    let of = |answer: &Value, table: &str, name: &str| -> u64 {
        let rows = answer[table].as_array().expect("rows").iter();
        let row = rows
            .filter(|row| row["name"] == name)
            .find_map(|row| row["weight"].as_u64());
        row.unwrap_or(0)
    };
    let credited = |name: &str| -> u64 {
        let rows = functions(&all).filter(|(f, _)| f["name"] == name);
        rows.filter_map(|(f, _)| f["credited"].as_u64()).sum()
    };
    let numbers = credited("fibonacci") + credited("matMul");
    assert!(numbers > 0);
    assert_eq!(of(&named, "packages", "numbers"), numbers);
    let left = of(&all, "packages", "hot.js") - numbers;
    assert_eq!(of(&named, "packages", "hot.js"), left);
    assert_eq!(of(&named, "activities", "adding"), credited("fibonacci"));
    // Frames of a package alone fold to what it pays for: each of its stacks has one.
    let shown = stdout_of(&["fold", "--show", "package=^hot.js$"], "node");
    assert_eq!(
        folded(&shown).values().sum::<u64>(),
        of(&all, "packages", "hot.js")
    );
    assert!(
        !shown.contains("Builtin:") && shown.contains("fibonacci"),
        "{shown}"
    );
    let (code, text) = status(&["summary", "--package", "numbers"], "node");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--package takes NAME=REGEX"), "{text}");
    // A recording in the place of a function is a slip.
    for verb in ["peek", "list"] {
        let output = pjit()
            .args([verb, "samples/node/perf.data"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("the binary can be run");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        let told = format!("hint: pjit {verb} FUNCTION samples/node/perf.data");
        assert!(text.contains(&told), "{text}");
    }
}

/// Comparisons by package and by activity have the weights of the summary, and a family of rows of their own.
#[test]
fn packages_and_activities_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    copy_folder(&sample("node", ""), folder.path());
    let copies = ["b1", "b2", "b3", "n1", "n2", "n3"].map(|copy| {
        let path = folder.path().join(format!("{copy}.data"));
        std::fs::copy(sample("node", "perf.data"), &path).expect("copied");
        path.to_str().expect("a plain path").to_owned()
    });
    let [b1, b2, b3, n1, n2, n3] = copies.each_ref().map(String::as_str);
    let alone = json_of(&["summary", "--format", "json"], "node");
    for (by, table) in [("package", "packages"), ("activity", "activities")] {
        let view = [
            "diff", b1, b2, b3, "--to", n1, n2, n3, "--by", by, "--format", "json",
        ];
        let answer = json_of(&view, "node");
        let rows = answer["rows"].as_array().expect("rows");
        assert!(!rows.is_empty() && answer["by"] == by, "{answer}");
        for row in rows {
            let known = alone[table].as_array().expect("rows").iter();
            let known = known.chain(alone["nobody"].as_array().expect("rows"));
            let weight = known
                .filter(|of| of["name"] == row["name"])
                .find_map(|of| of["weight"].as_f64());
            let base = row["base"].as_array().expect("runs");
            assert!(base.iter().all(|run| run.as_f64() == weight), "{row}");
        }
        let gate = [
            "gate",
            b1,
            b2,
            b3,
            "--to",
            n1,
            n2,
            n3,
            "--by",
            by,
            "--any-growth",
            "5%",
        ];
        let (code, text) = status(&gate, "node");
        assert_eq!(code, Some(0), "{text}");
    }
}

/// What a table prints can be typed into every verb, and finds the row that it came from.
#[test]
fn printed_names_can_be_typed() {
    for name in SAMPLES {
        let page = stdout_of(&["summary", "--by", "own"], name);
        let rows = page
            .lines()
            .filter(|line| line.starts_with("  ") && line.contains('%'));
        let labels = rows.filter_map(|row| row.trim().split("  ").next());
        let labels: Vec<&str> = labels.filter(|label| !label.starts_with('+')).collect();
        assert!(labels.len() > 2, "{page}");
        for label in labels.into_iter().take(6) {
            let peeked = stdout_of(&["peek", label], name);
            let (front, back) = label.split_once("...").unwrap_or((label, label));
            let is_row = |line: &str| line.starts_with(front) && line.contains(back);
            assert!(peeked.lines().any(is_row), "{label}: {peeked}");
            for view in [["fold", "--focus", label], ["report", "--focus", label]] {
                let (code, text) = status(&view, name);
                assert_eq!(code, Some(0), "{label}: {text}");
            }
        }
        // What has samples of its own has rows and code, too.
        let answer = json_of(&["summary", "--format", "json"], name);
        let (heaviest, _) = functions(&answer)
            .filter(|(f, _)| f["kind"] == "own")
            .max_by_key(|(f, _)| f["self"].as_u64())
            .expect("functions");
        let place = match (heaviest["file"].as_str(), heaviest["line"].as_u64()) {
            (Some(file), Some(line)) => {
                format!(" {}:{line}", file.rsplit('/').next().expect("a name"))
            }
            _ => String::new(),
        };
        let label = format!("{}{place}", heaviest["name"].as_str().expect("a name"));
        let flat = stdout_of(
            &["report", "-g", "none", "--no-children", "-S", &label],
            name,
        );
        let rows = flat
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        assert!(rows.count() > 0, "{label}: {flat}");
    }
}

/// Lines, filters and rows tell packages and activities apart as the summary does.
#[test]
fn all_views_know_the_same_packages_and_activities() {
    for name in ["node", "native", "waits"] {
        let answer = json_of(&["summary", "--format", "json"], name);
        let rows = |list: &str| -> Vec<(String, Option<String>, u64)> {
            let rows = answer[list].as_array().expect("rows").iter();
            let text = |value: &Value| value.as_str().map(str::to_owned);
            rows.map(|row| {
                let weight = row["weight"].as_u64().expect("a number");
                (
                    text(&row["name"]).expect("a name"),
                    text(&row["ecosystem"]),
                    weight,
                )
            })
            .collect()
        };
        let event = answer["event"]["name"].as_str().expect("a name").to_owned();
        let folded = stdout_of(
            &["fold", "--by", "package,activity", "--event", &event],
            name,
        );
        let (mut packages, mut activities) = (BTreeMap::new(), BTreeMap::new());
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').expect("a weight");
            let weight: u64 = weight.parse().expect("a number");
            let mut words = stack.split(';').skip(1);
            let mut next = || words.next().expect("a word").to_owned();
            *packages.entry(next()).or_insert(0) += weight;
            *activities.entry(next()).or_insert(0) += weight;
        }
        let mut expected = BTreeMap::new();
        for (payer, ecosystem, weight) in rows("packages") {
            let own = if ecosystem.as_deref() == Some("own") {
                " (own)"
            } else {
                ""
            };
            expected.insert(format!("{payer}{own}"), weight);
            let only = format!("package=^{}$", regex::escape(&payer));
            let left = json_of(&["summary", "--format", "json", "--focus", &only], name);
            let left = left["activities"].as_array().expect("rows").iter();
            let left: u64 = left
                .map(|row| row["weight"].as_u64().expect("a number"))
                .sum();
            assert_eq!(left, weight, "{name}: {only}");
        }
        let nobody = rows("nobody").into_iter();
        expected.extend(nobody.map(|(what, _, weight)| (format!("nobody: {what}"), weight)));
        assert_eq!(packages, expected, "{name}");
        let expected: BTreeMap<String, u64> = rows("activities")
            .into_iter()
            .map(|(what, _, weight)| (what, weight))
            .collect();
        assert_eq!(activities, expected, "{name}");
        let options = [
            "-F",
            "period,activity",
            "-s",
            "activity",
            "--no-children",
            "-g",
            "none",
        ];
        let view = [
            &["report", "-q", "-t", "\t", "--percent-limit", "0"],
            &options[..],
        ]
        .concat();
        let report = stdout_of(&view, name);
        for (what, weight) in expected {
            let is = |line: &str| {
                let (period, activity) = line.split_once('\t').unwrap_or_default();
                period.trim().parse() == Ok(weight) && activity.trim() == what
            };
            assert!(
                report.lines().any(is),
                "{name}: {weight} {what} in {report}"
            );
        }
    }
}

#[test]
fn a_table_alone_has_its_rows_and_no_other_table() {
    let page = stdout_of(&["summary", "--by", "activity"], "node");
    assert!(page.contains("\n  optimised code "), "{page}");
    assert!(
        !page.contains("Own code") && !page.contains("Who pays"),
        "{page}"
    );
    let page = stdout_of(&["summary", "--by", "package"], "node");
    assert!(
        page.contains("\n  hot.js (own) ") && page.contains("nobody: V8"),
        "{page}"
    );
    assert!(
        !page.contains("Own code") && !page.contains("What it does"),
        "{page}"
    );
}

fn edges_are_those_of_the_samples(name: &str, answer: &Value, samples: &[Sample]) {
    let ids: BTreeMap<&str, (String, String)> = functions(answer)
        .map(|(f, key)| (f["id"].as_str().expect("an id"), key))
        .collect();
    let mut wanted: BTreeMap<[&(String, String); 2], u64> = BTreeMap::new();
    for (period, frames) in samples {
        let pairs: BTreeSet<_> = frames.windows(2).map(|pair| [&pair[1], &pair[0]]).collect();
        pairs
            .into_iter()
            .for_each(|pair| *wanted.entry(pair).or_default() += period);
    }
    let edges = answer["edges"].as_array().expect("edges");
    let mut found: BTreeMap<[&(String, String); 2], u64> = BTreeMap::new();
    for edge in edges {
        let of = |at: usize| &ids[edge[at].as_str().expect("an id")];
        *found.entry([of(0), of(1)]).or_default() += edge[2].as_u64().expect("a weight");
    }
    assert_eq!(found, wanted, "{name}: edges");
}

#[test]
fn what_is_credited_is_what_own_frames_alone_fold_to() {
    for name in SAMPLES {
        let own = "spin|fib|Tree|fibonacci|matMul|addmul|weird";
        let answer = json_of(&["summary", "--format", "json", "--own", own], name);
        let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
        for (function, _) in functions(&answer).filter(|(f, _)| f["kind"] == "own") {
            let credited = function["credited"].as_u64().expect("a weight");
            *wanted.entry(function["id"].to_string()).or_default() += credited;
        }
        let shown = stdout_of(&["fold", "--show", own], name);
        let leaves: u64 = folded(&shown).values().sum();
        assert_eq!(wanted.values().sum::<u64>(), leaves, "{name}");
    }
}

#[test]
fn filters_do_the_same_to_every_view() {
    for filters in [
        ["--focus", "fib"],
        ["--ignore", "fib"],
        ["--hide", "hot::|fib"],
        ["--show-from", "main$"],
        ["--tagfocus", "comm=rust"],
    ] {
        let samples = script("native", &filters);
        let total: u64 = samples.iter().map(|(period, _)| period).sum();
        let mut view = vec!["fold"];
        view.extend(filters);
        assert_eq!(
            folded(&stdout_of(&view, "native")).values().sum::<u64>(),
            total,
            "{filters:?}"
        );
        let mut view = vec!["summary", "--format", "json"];
        view.extend(filters);
        let answer = json_of(&view, "native");
        let own: u64 = functions(&answer)
            .map(|(f, _)| f["self"].as_u64().expect("a weight"))
            .sum();
        assert_eq!(own, total, "{filters:?}");
        assert_eq!(answer["filters"][0], filters.join(" "));
        let mut view = vec![
            "report",
            "--no-children",
            "-g",
            "none",
            "-F",
            "period",
            "-t,",
            "-q",
        ];
        view.extend(filters);
        let report = stdout_of(&view, "native");
        let rows: u64 = report
            .lines()
            .filter_map(|line| line.trim().parse::<u64>().ok())
            .sum();
        assert_eq!(rows, total, "{filters:?}");
    }
}

#[test]
fn peek_agrees_with_the_summary() {
    let summary = json_of(&["summary", "--format", "json", "--edges"], "native");
    let of = |key: &str| json_of(&["peek", key, "--format", "json"], "native")["focus"][0].clone();
    for (function, _) in functions(&summary).take(5) {
        let id = function["id"].as_str().expect("an id");
        let peek = of(id);
        assert_eq!(peek["inclusive"], function["inclusive"], "{id}");
        let edges = summary["edges"].as_array().expect("edges");
        for (at, side) in [(1, "callers"), (0, "callees")] {
            let sum = |weights: &mut dyn Iterator<Item = &Value>| {
                weights.map(|w| w.as_u64().expect("a weight")).sum::<u64>()
            };
            let wanted = sum(&mut edges
                .iter()
                .filter(|edge| edge[at] == id)
                .map(|edge| &edge[2]));
            let steps = peek[side].as_array().expect("steps").iter();
            let found = sum(&mut steps
                .filter(|step| !step["id"].is_null())
                .map(|step| &step["weight"]));
            assert_eq!(found, wanted, "{id} {side}");
        }
    }
}

#[test]
fn peek_says_who_was_inlined_into_whom() {
    let edge = |name: &str| {
        let text = stdout_of(&["peek", name], "wasm");
        let ends = |line: &&str| line.ends_with(')') && line.contains("inline");
        text.lines().find(ends).unwrap_or_default().to_owned()
    };
    assert!(edge("^hot::mix$").ends_with("hot::spin (inlines it)"));
    assert!(edge("^hot::spin$").ends_with("hot::mix (inlined)"));
}

/// More functions than are looked up: each is shown or counted.
#[test]
fn peek_counts_what_it_leaves_out() {
    let count = |value: &Value| value.as_array().map_or(0, Vec::len) as u64;
    let all = json_of(&["summary", "--format", "json"], "native");
    let peek = json_of(&["peek", ".", "--format", "json"], "native");
    let left = peek["omitted"]["functions"].as_u64().expect("a number");
    assert!(left > 0 && count(&peek["focus"]) > 0, "{left}");
    assert_eq!(count(&peek["focus"]) + left, count(&all["functions"]));
    let text = stdout_of(&["peek", "."], "native");
    let shown = text
        .lines()
        .filter(|line| line.contains("%  inclusive "))
        .count() as u64;
    let more = count(&all["functions"]) - shown;
    assert!(
        text.contains(&format!("+{more} functions match")),
        "{more}: {text}"
    );
}

#[test]
fn a_recording_and_itself_are_the_same() {
    let path = "samples/node/perf.data";
    let answer = json_of(&["diff", path, "--format", "json", "--by", "self"], "node");
    let rows = answer["rows"].as_array().expect("rows");
    assert!(!rows.is_empty());
    assert!(
        rows.iter()
            .all(|row| row["ratio"] == 1.0 && row["verdict"].is_null()),
        "{rows:?}"
    );
    assert_eq!(
        (&answer["matched"]["base"], &answer["factor"]),
        (&1.0.into(), &1.0.into())
    );
}

/// What was found out about files for one recording is kept for those behind it, and changes nothing of what they count.
#[test]
fn recordings_behind_others_count_the_same() {
    for name in ["minijit", "native", "node", "wasmtime"] {
        // Copies, for one recording is not two runs, beside what belongs to the recording.
        let folder = tempfile::tempdir().expect("a folder");
        copy_folder(&sample(name, ""), folder.path());
        let copies = ["b1", "b2", "b3", "n1", "n2"].map(|copy| {
            let path = folder.path().join(format!("{copy}.data"));
            std::fs::copy(sample(name, "perf.data"), &path).expect("copied");
            path.to_str().expect("a plain path").to_owned()
        });
        let [b1, b2, b3, n1, n2] = copies.each_ref().map(String::as_str);
        let alone = json_of(&["summary", "--format", "json"], name);
        for (by, part) in [("self", "self"), ("credited", "credited")] {
            let view = [
                "diff", b1, b2, b3, "--to", n1, n2, "--by", by, "--format", "json",
            ];
            let answer = json_of(&view, name);
            // Functions of one name are told apart within a recording, and compared together.
            let mut wanted: BTreeMap<&str, f64> = BTreeMap::new();
            for (function, _) in functions(&alone) {
                let id = function["id"].as_str().expect("an id");
                let weight = function[part].as_f64().expect("a weight");
                let first = id.split('.').next().expect("the first part");
                let ids: BTreeSet<&str> = [id, first].into();
                for id in ids {
                    *wanted.entry(id).or_default() += weight;
                }
            }
            let rows = answer["rows"].as_array().expect("rows");
            assert!(!rows.is_empty(), "{name}");
            for row in rows {
                let id = row["id"].as_str().expect("an id");
                let runs = ["base", "new"].map(|side| row[side].as_array().expect("runs"));
                assert_eq!(runs.map(Vec::len), [4, 2], "{name}");
                let mut runs = runs.into_iter().flatten();
                assert!(
                    runs.all(|run| run.as_f64() == wanted.get(id).copied()),
                    "{name}: {row}"
                );
            }
        }
    }
}

fn status(view: &[&str], name: &str) -> (Option<i32>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = run(view, name);
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), text.concat())
}

#[test]
fn statuses_are_those_that_scripts_rely_on() {
    let node = "samples/node/perf.data";
    for (view, code, says) in [
        (&["gate", "--max-share", "kind:own=100%"][..], 0, "pass"),
        (
            &["gate", "--max-share", "kind:own=1%"],
            3,
            "FAIL  max-share kind:own",
        ),
        (
            &["gate", "--max-share", "nothing at all=1%"],
            1,
            "nothing matches",
        ),
        (
            &[
                "gate",
                "--max-share",
                "nothing at all=1%",
                "--allow-missing",
            ],
            0,
            "pass",
        ),
        (
            &["gate", "--max-growth", "5%"],
            2,
            "needs recordings of the base",
        ),
        (
            &["gate", node, "--max-growth", "5%"],
            4,
            "\nundecided: 1 run of each; record 3 or more\n",
        ),
        (
            &["gate", node, "--max-growth", "5%", "--allow-undecided"],
            0,
            "undecided max-growth total",
        ),
        (
            &[
                "gate",
                node,
                "--max-growth",
                "5%",
                "--max-share",
                "kind:own=1%",
            ],
            3,
            "undecided max-growth total",
        ),
        (
            &["gate", "--max-share", "kind:nothing=1%"],
            2,
            "no kind 'nothing'",
        ),
        (
            &["gate", node, node, "--to", node, "--max-growth", "5%"],
            2,
            "the same recording twice",
        ),
        (&["gate", "--max-share", "x"], 2, "WHAT=P%"),
        (&["gate"], 2, "no rule is given"),
        (
            &[
                "gate",
                "--min-samples",
                "100000",
                "--max-share",
                "kind:own=100%",
            ],
            3,
            "FAIL  check",
        ),
        (&["diff"], 2, "both sides with --to"),
        (&["diff", "samples/native/perf.data"], 0, "only "),
        (&["peek", "no such function"], 1, "no function"),
        (&["peek", "(("], 2, "no expression"),
        (
            &["summary", "--focus", "no such function"],
            1,
            "leaves no sample",
        ),
        (&["summary", "--focus", "(("], 1, "leaves no sample"),
        (
            &["summary", "--own", "(("],
            2,
            "--own: not a regular expression",
        ),
        (&["summary", "--tagfocus", "color=red"], 2, "no key 'color'"),
        (&["summary", "--event", "cycles"], 1, "no event 'cycles'"),
        (
            &["summary", "--own", "no such function"],
            0,
            "--own no such function: no function with samples matches",
        ),
        (
            &["summary", "--package", "x=no such function"],
            0,
            "--package x=no such function: no function with samples matches",
        ),
        (&["summary", "--budget", "11"], 2, "12 lines or more"),
        (
            &["report", "--focus", "no such function"],
            1,
            "leaves no sample",
        ),
    ] {
        let (found, text) = status(view, "node");
        assert_eq!(found, Some(code), "{view:?}: {text}");
        assert!(text.contains(says), "{view:?}: {text}");
    }
}

/// What `gate` prints for a comment on a pull request: the verdict, a table of all rules, the recordings folded away.
#[test]
fn gates_are_comments_in_markdown() {
    let view = [
        "gate",
        "--format",
        "markdown",
        "--max-share",
        "fibonacci|matMul=1%",
        "--max-share",
        "kind:kernel=50%",
    ];
    let output = run(&view, "node");
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.len() <= 60_000);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("**FAIL** max-share `fibonacci|matMul`: "),
        "{text}"
    );
    let rows: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| line.starts_with('|'))
        .collect();
    assert_eq!(rows.len(), 5, "{text}");
    assert!(
        rows.iter()
            .any(|row| row.starts_with("| FAIL | max-share `fibonacci\\|matMul` |"))
    );
    assert!(
        rows.iter()
            .any(|row| row.starts_with("| ok | max-share `kind:kernel` |"))
    );
    // A row has as many cells as the head, whatever the names.
    let cells = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(
        rows.iter().all(|row| cells(row) == cells(rows[0])),
        "{text}"
    );
    let details = text.split_once("<details><summary>1 recordings</summary>\n\n- new: ");
    assert!(
        details.is_some_and(|(_, rest)| rest.contains("</details>")),
        "{text}"
    );
}

#[test]
fn budgets_are_kept_and_cut_no_row_in_two() {
    for name in SAMPLES {
        let mut before = Vec::new();
        for budget in ["12", "20", "40", "60", "200"] {
            for view in [["summary", "--budget"], ["peek", "--budget"]] {
                let mut view = vec![view[0], view[1], budget];
                if view[0] == "peek" {
                    view.extend(["main", "--depth", "4"]);
                }
                // Programs without a function of that name have no block.
                let output = run(&view, name);
                let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
                assert!(
                    lines <= budget.parse().expect("a number"),
                    "{name}: {view:?} {lines}"
                );
            }
            let text = stdout_of(&["summary", "--budget", budget], name);
            // Rows of the first table: those of a smaller budget are the beginning of those of a larger one.
            let rows: Vec<String> = text
                .lines()
                .skip_while(|line| !line.starts_with("Own functions"))
                .skip(1)
                .take_while(|line| line.starts_with(' ') && !line.contains("  +"))
                .map(|line| line.split_whitespace().collect())
                .collect();
            assert!(
                rows.starts_with(&before) || rows.is_empty(),
                "{name} {budget}: {before:#?} {rows:#?}"
            );
            // However small the page is, it answers.
            let own = text.split("Own functions").nth(1).unwrap_or_default();
            let own = own.lines().skip(1).take_while(|line| line.starts_with(' '));
            let is_cut = own.into_iter().any(|line| line.starts_with("  +"));
            assert!(rows.len() >= 6 || !is_cut, "{text}");
            before = rows;
        }
        let text = stdout_of(&["summary", "--budget", "3000c"], name);
        assert!(text.chars().count() <= 3000, "{name}");
        let text = stdout_of(&["summary", "--budget", "4000c", "--format", "json"], name);
        assert!(
            text.chars().count() <= 4000 && text.ends_with('\n'),
            "{name}"
        );
        serde_json::from_str::<Value>(&text).expect("whole JSON");
    }
}

#[test]
fn weights_are_of_what_the_head_says() {
    let page = stdout_of(&["peek", "site_big", "--weight", "alloc"], "heap");
    let head = page.lines().next().expect("a head");
    assert!(head.contains(" blocks of "), "{page}");
    assert!(!page.contains(" samples of "), "{page}");
    assert_eq!(page.matches(" blocks of ").count(), 2, "{page}");
    let path = "samples/heap/perf.data";
    let options = ["flamegraph", "--weight", "alloc", "--diff", path, "-o", "-"];
    let svg = stdout_of(&[&options[..], &["--format", "svg"]].concat(), "heap");
    assert!(svg.contains(" blocks, ") && !svg.contains(" samples, "));
}

#[test]
fn the_idle_task_is_left_out_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, busy: u64, idle: u64| {
        let mut recording = Recording::new(Stacks::None);
        recording.comm(7, 7, b"app");
        recording.map(7, 0x1000, 0x1000, 0, b"/app");
        for (tid, count) in [(7, busy), (0, idle)] {
            for at in 0..count {
                recording.sample(&Recorded {
                    ip: 0x1100,
                    pid: tid,
                    tid,
                    time: 1000 + at,
                    period: 1_000_000,
                    chain: &[],
                    user: None,
                });
            }
        }
        std::fs::write(path(name), recording.file()).expect("a file");
    };
    // A second of one processor: what the program takes more the idle task takes less.
    for run in 0..3 {
        write(&format!("base{run}"), 400 + run, 600);
        write(&format!("new{run}"), 800 + run, 200);
    }
    let run = |arguments: &[&str]| {
        let output = pjit()
            .current_dir(folder.path())
            .args(arguments)
            .output()
            .expect("the binary can be run");
        // Lines that were too long are one again.
        String::from_utf8_lossy(&output.stdout).replace("\n#   ", " ")
    };
    let page = run(&["summary", "base0"]);
    assert!(
        page.contains("400 samples of cpu-clock, 0.40 s CPU"),
        "{page}"
    );
    assert!(
        page.contains("# idle: 600.0 ms left out (--idle keeps it)"),
        "{page}"
    );
    let page = run(&["summary", "base0", "--idle"]);
    assert!(
        page.contains("1000 samples of cpu-clock, 1.00 s CPU"),
        "{page}"
    );
    assert!(!page.contains("left out (--idle"), "{page}");
    let json: Value =
        serde_json::from_str(&run(&["summary", "base0", "--format", "json"])).expect("JSON");
    assert_eq!(json["recordings"][0]["idle"], 600_000_000);
    assert_eq!(json["event"]["total"], 400_000_000);
    let sides = ["base0", "base1", "base2", "--to", "new0", "new1", "new2"];
    let page = run(&[&["diff", "--by", "self"], &sides[..]].concat());
    assert!(page.contains("total: 0.401 -> 0.801 s per run"), "{page}");
    assert!(
        page.contains("idle: 600.0 ms a run of base, 200.0 ms of new left out"),
        "{page}"
    );
    let page = run(&[&["gate", "--by", "self", "--max-growth", "10%"], &sides[..]].concat());
    assert!(page.contains("FAIL  max-growth total"), "{page}");
    assert!(run(&["stat", "base0"]).contains("idle: 600.0 ms left out"));
}

/// Of two events, as those of a machine with two kinds of processors, one is shown.
#[test]
fn events_that_are_not_shown_are_named_with_their_samples() {
    let lines = stdout_of(&["script", "-G", "-F", "event"], "waits");
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    let events = lines.lines().map(|line| line.trim().trim_end_matches(':'));
    events.for_each(|event| *samples.entry(event).or_default() += 1);
    assert_eq!(samples.len(), 2, "{samples:?}");
    for event in samples.keys() {
        let (other, count) = samples.iter().find(|(of, _)| *of != event).expect("two");
        let page = stdout_of(&["summary", "--event", event], "waits");
        let head = page.lines().take_while(|line| line.starts_with('#'));
        let head: Vec<&str> = head
            .map(|line| line.trim_start_matches(['#', ' ']))
            .collect();
        let told = format!("not shown: {other} with {count} samples (--event)");
        assert!(head.join(" ").contains(&told), "{told}: {page}");
    }
}

#[test]
fn only_near_names_are_suggested() {
    let said = |arguments: &[&str]| {
        let output = run(arguments, "native");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(
        said(&["peek", "nosuchfunctionanywhere"])
            .ends_with("no function matches 'nosuchfunctionanywhere'\n")
    );
    assert!(
        said(&["peek", "mian"]).contains("; similar: hot::main, main"),
        "{}",
        said(&["peek", "mian"])
    );
    let told = said(&["summary", "--min-x"]);
    assert!(
        told.contains("--min-x") && !told.contains("vmlinux"),
        "{told}"
    );
    assert!(said(&["summary", "--vmlinx"]).contains("--vmlinux"));
}

#[test]
fn answers_follow_the_schema() {
    let mut golden = 0;
    for name in SAMPLES {
        let path = format!("samples/{name}/perf.data");
        for view in [
            &["summary", "--format", "json", "--edges"][..],
            &["summary", "--format", "json", "--budget", "20"],
            &["summary", "--over-time", "--format", "json"],
            &["peek", ".", "--format", "json", "--depth", "3"],
            &["list", ".", "--format", "json", "--budget", "40"],
            &["diff", &path, "--format", "json"],
            &[
                "gate",
                &path,
                "--format",
                "json",
                "--max-growth",
                "5%",
                "--any-growth",
                "5%",
                "--no-new",
                "5%",
                "--max-share",
                "kind:own=1%",
            ],
            &["gate", "--format", "json", "--max-share", "kind:own=1%"],
            &["check", "--format", "json"],
        ] {
            let output = run(view, name);
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
                panic!(
                    "{name} {view:?}: {e} {}",
                    String::from_utf8_lossy(&output.stderr)
                )
            });
            let problems = against_schema(&answer);
            assert!(problems.is_empty(), "{name} {view:?}: {problems:#?}");
        }
    }
    for (name, weight) in [
        ("heap", "alloc"),
        ("heap", "alloc-count"),
        ("heap", "lifetime"),
        ("waits", "offcpu"),
    ] {
        let path = format!("samples/{name}/perf.data");
        for view in [
            &["summary"][..],
            &["peek", "."],
            &["diff", &path],
            &["gate", &path, "--max-growth", "5%"],
        ] {
            let view = [view, &["--format", "json", "--weight", weight]].concat();
            let output = run(&view, name);
            let said = String::from_utf8_lossy(&output.stderr);
            let answer: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|e| panic!("{name} {view:?}: {e} {said}"));
            let problems = against_schema(&answer);
            assert!(problems.is_empty(), "{name} {view:?}: {problems:#?}");
        }
    }
    for name in SAMPLES {
        for entry in std::fs::read_dir(format!("samples/{name}")).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a golden answer");
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            let problems = against_schema(&answer);
            assert!(problems.is_empty(), "{}: {problems:#?}", path.display());
            golden += 1;
        }
    }
    assert!(golden > 3, "{golden} golden answers");
    // The check can fail.
    assert!(!against_schema(&serde_json::json!({"schema": "pjit/2", "verb": "peek"})).is_empty());
}

/// What is wrong with an answer by the schema.
pub(crate) fn against_schema(answer: &Value) -> Vec<String> {
    let text = include_str!("../../docs/schema/pjit-2.schema.json");
    let schema: Value = serde_json::from_str(text).expect("JSON");
    against(answer, &schema, &schema, "")
}

/// What is wrong with a value by a schema; the few words of JSON Schema that ours uses.
fn against(value: &Value, schema: &Value, root: &Value, at: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (word, of) in schema.as_object().expect("a schema") {
        match word.as_str() {
            "$ref" => {
                let path = of.as_str().expect("a path").trim_start_matches('#');
                wrong.extend(against(
                    value,
                    root.pointer(path).expect("a definition"),
                    root,
                    at,
                ));
            }
            "oneOf" => {
                let tried: Vec<_> = of
                    .as_array()
                    .expect("schemas")
                    .iter()
                    .map(|s| against(value, s, root, at))
                    .collect();
                if tried.iter().filter(|problems| problems.is_empty()).count() != 1 {
                    wrong.extend(tried.into_iter().min_by_key(Vec::len).unwrap_or_default());
                    wrong.push(format!("{at}: not exactly one"));
                }
            }
            "type" => {
                let names: Vec<&str> = of
                    .as_array()
                    .map_or_else(|| vec![of], |a| a.iter().collect())
                    .iter()
                    .filter_map(|n| n.as_str())
                    .collect();
                let is = |name: &&str| match *name {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "null" => value.is_null(),
                    other => panic!("type {other}"),
                };
                if !names.iter().any(is) {
                    wrong.push(format!("{at}: {value} is no {names:?}"));
                }
            }
            "const" if value != of => wrong.push(format!("{at}: {value} is not {of}")),
            "enum" if !of.as_array().expect("values").contains(value) => {
                wrong.push(format!("{at}: {value} is not of {of}"))
            }
            "minimum" if value.as_f64() < of.as_f64() => {
                wrong.push(format!("{at}: {value} is below {of}"))
            }
            "required" if value.is_object() => {
                let missing = of
                    .as_array()
                    .expect("names")
                    .iter()
                    .filter_map(|n| n.as_str())
                    .filter(|n| value.get(n).is_none());
                wrong.extend(missing.map(|name| format!("{at}: no {name}")));
            }
            "properties" => {
                for (name, schema) in of.as_object().expect("properties") {
                    if let Some(value) = value.get(name) {
                        wrong.extend(against(value, schema, root, &format!("{at}/{name}")));
                    }
                }
                // Every key is in the schema, so that it is told what it means.
                let known = of.as_object().expect("properties");
                let unknown = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(name, _)| !known.contains_key(*name));
                wrong.extend(unknown.map(|(name, _)| format!("{at}: {name} is not in the schema")));
            }
            "items" => {
                for (number, value) in value.as_array().into_iter().flatten().enumerate() {
                    wrong.extend(against(value, of, root, &format!("{at}/{number}")));
                }
            }
            "minItems" if value.as_array().map(Vec::len) < of.as_u64().map(|n| n as usize) => {
                wrong.push(format!("{at}: too short"))
            }
            "maxItems" if value.as_array().map(Vec::len) > of.as_u64().map(|n| n as usize) => {
                wrong.push(format!("{at}: too long"))
            }
            _ => {}
        }
    }
    wrong
}

#[test]
fn the_guide_is_its_pages() {
    let printed = |part: &[&str]| {
        let output = pjit().arg("guide").args(part).output();
        let output = output.expect("the binary can be run");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let whole = printed(&[]);
    for (part, text) in [
        ("record", include_str!("../../docs/guide/record.md")),
        ("read", include_str!("../../docs/guide/read.md")),
        ("compare", include_str!("../../docs/guide/compare.md")),
        ("assistants", include_str!("../../docs/guide/assistants.md")),
    ] {
        assert!(whole.contains(text), "{part}");
        assert_eq!(printed(&[part]), text);
    }
}

/// Recordings, what is none, what is not there and what is no file, in any number and order: an answer with something in it, or
/// words about it.
#[test]
fn any_list_of_files_has_an_answer_or_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let whole = std::fs::read(sample("native", "perf.data")).expect("a recording");
    std::fs::write(path("empty"), b"").expect("a file");
    std::fs::write(path("half"), &whole[..20_000]).expect("a file");
    std::fs::write(path("noise"), [b"PERFILE2", &whole[4000..9000]].concat()).expect("a file");
    std::fs::create_dir(path("folder")).expect("a folder");
    std::os::unix::fs::symlink("loop", path("loop")).expect("a link");
    let mut known: Vec<String> = ["empty", "half", "noise", "folder", "loop", "*.data"]
        .iter()
        .map(|name| path(name))
        .collect();
    for name in ["minijit", "wasmtime"] {
        known.push(sample(name, "perf.data").display().to_string());
        known.push(sample(name, "").display().to_string());
    }
    known.extend(["", "/", "/dev/null", "nosuch", "-", "--to"].map(str::to_owned));
    let verbs = [
        &["diff"][..],
        &["gate", "--max-growth", "5%"],
        &["gate", "--no-new", "5%"],
        &["export", "--format", "csv", "-o", "-"],
    ];
    let mut number = 12_u64;
    let mut random = |below: usize| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (number >> 33) as usize % below
    };
    let mut statuses = BTreeSet::new();
    for _ in 0..60 {
        let verb = verbs[random(verbs.len())];
        let files: Vec<&str> = (0..random(6))
            .map(|_| known[random(known.len())].as_str())
            .collect();
        let output = pjit()
            .current_dir(folder.path())
            .args(verb)
            .args(&files)
            .stdin(std::process::Stdio::null())
            .output()
            .expect("it can be run");
        let status = output.status.code();
        assert!(
            matches!(status, Some(0..=4)),
            "{verb:?} {files:?}: {status:?}"
        );
        let said = if status == Some(0) {
            &output.stdout
        } else {
            &output.stderr
        };
        let is_judged = matches!(status, Some(3 | 4));
        let has_words = !said.is_empty() || is_judged && !output.stdout.is_empty();
        assert!(has_words, "{verb:?} {files:?}: {status:?}");
        statuses.insert(status);
    }
    assert!(statuses.len() >= 3, "{statuses:?}");
}
