//! Stacks that the recorded part was too short for: what stands in their place, against the same samples recorded whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Copy, shorten_stacks};
use crate::support::{SAMPLES, folded, pjit};

/// Output of a view of a sample with copies of stacks cut to `size` bytes.
fn view(copy: &Copy, arguments: &[&str]) -> String {
    let mut command = pjit();
    command.args(arguments);
    command.arg("--symfs").arg(copy.path("symfs"));
    command.arg("-i").arg(copy.path("perf.data"));
    let output = command.output().expect("the binary can be run");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn cut(name: &str, old: usize, size: usize) -> Copy {
    let copy = Copy::of(name);
    copy.edit_recording(|data| shorten_stacks(data, old, size));
    copy
}

const CASES: [(&str, usize, usize); 3] = [
    ("native", 4096, 1024),
    ("native", 4096, 2048),
    ("node", 8192, 4096),
];

/// Without the thread's root and marks.
fn bare(stacks: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut bare = BTreeMap::new();
    for (stack, weight) in stacks {
        let (comm, _) = stack.split_once(';').unwrap_or((stack, ""));
        let inner = stack.rsplit_once(";[cut];").map(|(_, inner)| inner);
        let known = inner.map_or(stack.clone(), |inner| format!("{comm};{inner}"));
        *bare.entry(known).or_default() += weight;
    }
    bare
}

/// The recorded part is what it was, and what is put around it is there in the stacks that were recorded whole.
#[test]
fn cut_stacks_get_a_mark_and_the_true_root() {
    for (name, old, size) in CASES {
        let fold = ["fold", "--no-inline"];
        let whole = folded(&view(&Copy::of(name), &fold));
        let short = cut(name, old, size);
        let marked = folded(&view(&short, &fold));
        let unmarked = folded(&view(&short, &["fold", "--no-inline", "--no-cut-marks"]));
        assert_eq!(bare(&marked), unmarked, "{name} {size}");
        assert!(unmarked.keys().all(|stack| !stack.contains("[cut]")));
        let mut rooted = 0;
        let mut unrooted = 0;
        for (stack, weight) in &marked {
            let Some((outer, inner)) = stack.split_once(";[cut];") else {
                continue;
            };
            let is_known = |known: &&String| {
                known.starts_with(&format!("{outer};")) && known.ends_with(&format!(";{inner}"))
            };
            assert!(
                whole.keys().any(|known| is_known(&known)),
                "{name}: {stack}"
            );
            let grown = if outer.contains(';') {
                &mut rooted
            } else {
                &mut unrooted
            };
            *grown += weight;
        }
        assert!(rooted > 0, "{name} {size}: {unrooted} without a root");
    }
}

#[test]
fn only_whole_stacks_begin_at_the_root() {
    for (name, old, size) in CASES {
        let beginnings = |copy: &Copy| -> BTreeSet<String> {
            let stacks = folded(&view(copy, &["fold", "--no-inline"]));
            let root = |stack: &String| stack.split(';').nth(1).unwrap_or_default().to_owned();
            stacks.keys().map(root).collect()
        };
        let whole = beginnings(&Copy::of(name));
        let short = beginnings(&cut(name, old, size));
        let new: Vec<_> = short.difference(&whole).collect();
        assert!(new.is_empty() || new == ["[cut]"], "{name} {size}: {new:?}");
    }
}

/// In trees a mark is a branch like others; it is no function, so it has no row.
#[test]
fn marks_are_branches_and_no_rows() {
    let short = cut("native", 4096, 1024);
    let tree = ["report", "--stdio", "--children", "-g", "graph,0,caller"];
    let text = view(&short, &tree);
    assert!(text.lines().any(|line| line.ends_with("[cut]")), "{text}");
    assert!(
        !rows(&text).iter().any(|row| row.contains("[cut]")),
        "{text}"
    );
    assert!(text.contains("% cut (rooted)"), "{text}");
    let off = view(&short, &[&tree[..], &["--no-cut-marks"]].concat());
    assert!(!off.contains("[cut]") && !off.contains("% cut"), "{off}");
    // What a function itself costs does not depend on where its stack ends.
    let flat = ["report", "--stdio", "--no-children", "-g", "none"];
    let own = |more: &[&str]| rows(&view(&short, &[&flat[..], more].concat()));
    assert_eq!(own(&[]), own(&["--no-cut-marks"]));
}

fn rows(text: &str) -> Vec<String> {
    let is_row = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    text.lines().filter(is_row).map(str::to_owned).collect()
}

#[test]
fn threads_do_not_show_and_check_says_what_was_done() {
    for (name, old, size) in CASES {
        let short = cut(name, old, size);
        for arguments in [&["fold"][..], &["report", "--stdio"]] {
            let one = view(&short, &[arguments, &["-j1"]].concat());
            assert_eq!(one, view(&short, &[arguments, &["-j5"]].concat()), "{name}");
        }
        let line = short.check(&[]).line("stacks.rooted").to_owned();
        assert!(
            line.starts_with("note") && line.contains("% are cut"),
            "{line}"
        );
        let line = short.check(&["--no-root"]).line("stacks.rooted").to_owned();
        assert_eq!(line, "");
    }
}

/// Other programs read scripts, and know recorded frames only.
#[test]
fn scripts_have_marks_only_where_they_are_wanted() {
    let short = cut("native", 4096, 1024);
    assert!(!view(&short, &["script"]).contains("[cut]"));
    let marked = view(&short, &["script", "--cut-marks"]);
    assert!(
        marked.contains("ffffffffffffffff [cut] ([cut])"),
        "{marked}"
    );
}

/// What is completed from other samples is there in the recording of whole stacks, and does not depend on threads.
#[test]
fn completed_stacks_are_true() {
    let mut completed = 0;
    for (name, old, size) in CASES {
        let fold = ["fold", "--no-inline"];
        let whole = folded(&view(&Copy::of(name), &fold));
        let short = cut(name, old, size);
        let marked = folded(&view(&short, &fold));
        let text = view(&short, &["fold", "--no-inline", "--stitch"]);
        assert_eq!(
            text,
            view(&short, &["fold", "--no-inline", "--stitch", "-j4"])
        );
        let stitched = folded(&text);
        let weight = |stacks: &BTreeMap<String, u64>| -> u64 {
            let is_whole = |stack: &&String| !stack.contains("[cut]");
            stacks
                .keys()
                .filter(is_whole)
                .map(|stack| stacks[stack])
                .sum()
        };
        completed += weight(&stitched) - weight(&marked);
        for stack in stitched.keys().filter(|stack| !stack.contains("[cut]")) {
            assert!(whole.contains_key(stack), "{name} {size}: {stack}");
        }
    }
    assert!(completed > 0, "nothing was completed");
}

/// Who reads a table cannot see which of its stacks are an inference.
#[test]
fn an_inference_is_told() {
    const TOLD: &str = "completed from other samples";
    let told = CASES.into_iter().filter(|(name, old, size)| {
        let short = cut(name, *old, *size);
        let said = |options: &[&str]| {
            let mut command = pjit();
            command.args(options).arg("--stitch");
            command.arg("--symfs").arg(short.path("symfs"));
            command.arg("-i").arg(short.path("perf.data"));
            let ended = command.output().expect("the binary can be run");
            let texts = [ended.stdout, ended.stderr].map(String::from_utf8);
            let [out, said] = texts.map(|text| text.expect("UTF-8"));
            (out, said)
        };
        let (page, warned) = said(&["summary"]);
        let (json, _) = said(&["summary", "--format", "json"]);
        assert_eq!(page.contains(TOLD), warned.contains(TOLD), "{page}{warned}");
        assert_eq!(
            page.contains(TOLD),
            json.contains("\"stitched\":"),
            "{page}"
        );
        assert_eq!(page.contains(TOLD), said(&["fold"]).1.contains(TOLD));
        page.contains(TOLD)
    });
    assert!(told.count() > 0, "nothing was completed");
}

/// Without cut stacks there is nothing to complete.
#[test]
fn whole_recordings_stay_what_they_are() {
    for name in SAMPLES {
        let copy = Copy::of(name);
        for arguments in [&["fold"][..], &["report", "--stdio"], &["script"]] {
            let with = view(&copy, &[arguments, &["--stitch"]].concat());
            assert!(with == view(&copy, arguments), "{name} {arguments:?}");
        }
    }
}
