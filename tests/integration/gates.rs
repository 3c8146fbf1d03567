//! Every rule of `pjit gate` in every situation that it can be in: which status, and what is said.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bundle::succeed;
use crate::identity::built;
use crate::inlines::{code, recording_of};
use crate::support::{pjit, program, skip};

/// Recordings of a program with three functions of its own.
struct Recordings {
    folder: tempfile::TempDir,
    program: PathBuf,
    /// Where samples are, and in which function.
    code: Vec<((u64, u64), String)>,
}

impl Recordings {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = built(folder.path(), "prog", "0123456789abcdef");
        let places = code(&fs::read(&program).expect("built"));
        let mut new = Self {
            code: places.into_iter().map(|at| (at, String::new())).collect(),
            program,
            folder,
        };
        let path = new.of("all", |_| 1);
        let view = ["script", "-F", "ip,sym", "--no-inline"];
        let output = succeed(pjit().args(view).arg(path));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let frames = text.split("\n\n").map(str::trim);
        let names = frames.map(|frame| frame.split_once(' ').map_or("", |(_, name)| name));
        for ((_, name), found) in new.code.iter_mut().zip(names) {
            found.clone_into(name);
        }
        let count = new.code.iter().filter(|(_, name)| name == "prog::second");
        assert!(count.count() > 30, "{text}");
        new
    }

    /// A recording in which each place of a function has so many samples.
    fn of(&self, name: &str, times: impl Fn(&str) -> usize) -> PathBuf {
        let samples = self
            .code
            .iter()
            .flat_map(|(at, name)| vec![*at; times(name)]);
        let samples: Vec<(u64, u64)> = samples.collect();
        let path = self.folder.path().join(format!("{name}.data"));
        let program = self.program.to_str().expect("a plain path");
        fs::write(&path, recording_of(program.as_bytes(), &samples)).expect("written");
        path
    }
}

/// Three runs that are equal.
fn copies(path: &Path, side: &str) -> [PathBuf; 3] {
    [0, 1, 2].map(|run| {
        let copy = path.with_extension(format!("{side}-{run}"));
        fs::copy(path, &copy).expect("copied");
        copy
    })
}

/// Status, and what stands on both outputs.
fn gate<P: AsRef<OsStr>>(base: &[P], new: &[P], rule: &[&str]) -> (Option<i32>, String) {
    let mut command = pjit();
    command
        .arg("gate")
        .args(base)
        .arg("--to")
        .args(new)
        .args(rule);
    let output = command.output().expect("the binary can be run");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// A rule with a limit that is kept, and with one that recordings of base and new break.
struct Rule<'r> {
    kept: &'r [&'r str],
    broken: &'r [&'r str],
    line: &'r str,
    by: (&'r Path, &'r Path),
    needs: Needs,
}

/// What a rule wants of the recordings.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    /// Three runs of a base.
    Runs,
    /// A base.
    Base,
    /// New runs.
    New,
}

/// Each rule: kept, broken, with few runs, with unfit recordings, without a base.
#[test]
fn every_rule_has_its_status_in_every_situation() {
    if program("cc").is_none() {
        return skip("c++", "the program cannot be built");
    }
    let recordings = Recordings::new();
    let all = recordings.of("all", |_| 1);
    let twice = recordings.of("twice", |_| 2);
    let second = recordings.of("second", |name| if name == "prog::second" { 3 } else { 1 });
    let less = recordings.of("less", |name| usize::from(name != "prog::third"));
    let total: &[&str] = &["--max-growth", "5%"];
    let growth: &[&str] = &["--max-growth", "second=5%"];
    let any: &[&str] = &["--any-growth", "5"];
    let new: &[&str] = &["--no-new", "5%"];
    let rule = |kept, broken, line, by, needs| Rule {
        kept,
        broken,
        line,
        by,
        needs,
    };
    let (same, less) = (all.as_path(), less.as_path());
    let (twice, second) = (twice.as_path(), second.as_path());
    for rule in [
        rule(total, total, "max-growth total", (same, twice), Needs::Runs),
        rule(
            growth,
            growth,
            "max-growth second",
            (same, second),
            Needs::Runs,
        ),
        rule(any, any, "any-growth", (same, second), Needs::Runs),
        rule(new, new, "no-new", (less, same), Needs::Base),
        rule(
            &["--max-share", "second=90%"],
            &["--max-share", "second=5%"],
            "max-share second",
            (same, same),
            Needs::New,
        ),
        rule(
            &["--max-share", "kind:own=100%"],
            &["--max-share", "kind:own=5%"],
            "max-share kind:own",
            (same, same),
            Needs::New,
        ),
        rule(
            &["--max-share", "lib:prog=100%"],
            &["--max-share", "lib:prog=5%"],
            "max-share lib:prog",
            (same, same),
            Needs::New,
        ),
    ] {
        let holds = |found: (Option<i32>, String), status, says: &str| {
            let (found, text) = found;
            assert_eq!(found, Some(status), "{says}: {text}");
            assert!(text.contains(says), "{says}: {text}");
        };
        let line = |grade: &str| format!("{grade:<6}{}", rule.line);
        let three = |base: &Path, new: &Path, rule: &[&str]| {
            gate(&copies(base, "base"), &copies(new, "new"), rule)
        };
        let (base, broken) = rule.by;
        holds(three(same, same, rule.kept), 0, &line("ok"));
        holds(three(base, broken, rule.broken), 3, &line("FAIL"));
        let few = |rule: &[&str]| {
            gate(
                &copies(base, "base")[..1],
                &copies(broken, "new")[..1],
                rule,
            )
        };
        match rule.needs {
            Needs::Runs => {
                let says = format!("undecided {}", rule.line);
                holds(few(rule.broken), 4, &says);
                holds(
                    few(rule.broken),
                    4,
                    "\nundecided: 1 run of each; record 3 or more\n",
                );
                let allowed = [rule.broken, &["--allow-undecided"]].concat();
                holds(few(&allowed), 0, &says);
            }
            Needs::Base | Needs::New => holds(few(rule.broken), 3, &line("FAIL")),
        }
        // Unfit recordings are never let through, whatever the rule says.
        let unfit = [rule.kept, &["--min-samples", "1000000"]].concat();
        let found = three(same, same, &unfit);
        assert!(found.1.contains(&line("ok")), "{}", found.1);
        holds(found, 3, "FAIL  check");
        let alone = gate(&[], &[same], rule.kept);
        match rule.needs {
            Needs::New => holds(alone, 0, &line("ok")),
            Needs::Runs | Needs::Base => holds(alone, 2, "needs recordings of the base"),
        }
    }
}

/// Rules that name something that is not there.
#[test]
fn rules_that_match_nothing_are_an_error_unless_that_is_allowed() {
    if program("cc").is_none() {
        return skip("c++", "the program cannot be built");
    }
    let recordings = Recordings::new();
    let all = recordings.of("all", |_| 1);
    let (base, new) = (copies(&all, "base"), copies(&all, "new"));
    for (option, word, allowed) in [
        (
            "--max-growth",
            "nothing",
            "note max-growth nothing nothing matches",
        ),
        ("--max-share", "nothing", "ok max-share nothing"),
        ("--max-share", "lib:nothing", "ok max-share lib:nothing"),
    ] {
        let rule = format!("{word}=5%");
        let (status, text) = gate(&base, &new, &[option, &rule]);
        let says = format!("{option} {word}: nothing matches (--allow-missing)");
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(&says), "{text}");
        let (status, text) = gate(&base, &new, &[option, &rule, "--allow-missing"]);
        assert_eq!(status, Some(0), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(allowed), "{text}");
    }
}

/// A kind without samples has nothing; a word that is none is a mistake, and so is one recording that is to be three runs.
#[test]
fn budgets_of_kinds_without_samples_are_kept() {
    if program("cc").is_none() {
        return skip("c++", "the program cannot be built");
    }
    let recordings = Recordings::new();
    let all = recordings.of("all", |_| 1);
    let alone = |rule: &str| gate(&[], &[&all], &["--max-share", rule]);
    let (status, text) = alone("kind:runtime=5%");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("ok    max-share kind:runtime"), "{text}");
    // A sample more would be a share of its own.
    let line = text.lines().find(|line| line.contains(" 0.0% +-0."));
    assert!(line.is_some_and(|line| !line.contains("+-0.0,")), "{text}");
    assert_eq!(alone("kind:nothing=5%").0, Some(2));
    let (status, text) = gate(
        &[&all; 3],
        &copies(&all, "new").each_ref(),
        &["--any-growth", "5%"],
    );
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("the same recording twice"), "{text}");
    // Held against itself, nothing is told.
    let base = [copies(&all, "base").to_vec(), vec![all.clone()]].concat();
    let new = [copies(&all, "new").to_vec(), vec![all]].concat();
    let (status, text) = gate(&base, &new, &["--any-growth", "5%"]);
    assert_eq!(status, Some(4), "{text}");
    assert!(text.contains("is on both sides"), "{text}");
}

/// A function is named as any table prints it, or by an expression, and what is no expression is a name.
#[test]
fn functions_are_named_as_tables_print_them() {
    let budget = |what: &str| {
        let rule = format!("{what}=5%");
        let samples = [
            "gate",
            "--to",
            "samples/node/perf.data",
            "--max-share",
            &rule,
        ];
        let output = crate::support::pjit()
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(samples)
            .output()
            .expect("the binary can be run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    // Column and parenthesis make these no expressions that find anything, or none at all.
    for printed in [
        "fibonacci hot.js:5",
        "(anonymous) hot.js:59",
        "JS:*fibonacci /tmp/pjit-sample/node/hot.js:5:19",
        "^fibonacci$",
    ] {
        let (status, text) = budget(printed);
        assert_eq!(status, Some(3), "{printed}: {text}");
    }
    assert_eq!(budget("fibonacci hot.js:6").0, Some(1));
    assert_eq!(budget("fibonacci(").0, Some(1));
}

/// A verdict on a part of the samples says of which.
#[test]
fn filters_stand_beside_the_verdict() {
    if program("cc").is_none() {
        return skip("c++", "the program cannot be built");
    }
    let recordings = Recordings::new();
    let all = recordings.of("all", |_| 1);
    let rule = ["--max-share", "second=100%", "--focus", "second"];
    let (_, text) = gate(&[], &[&all], &rule);
    assert!(text.contains("# Filter: --focus second\n"), "{text}");
    let as_comment = [&rule[..], &["--format", "markdown"]].concat();
    let (_, text) = gate(&[], &[&all], &as_comment);
    assert!(text.contains("Filter: --focus second\n"), "{text}");
    let (_, text) = gate(&[], &[&all], &rule[..2]);
    assert!(!text.contains("Filter"), "{text}");
}

/// What is new and large, and what grew with everything else, closes a gate, whatever the rule about growth is.
#[test]
fn growth_from_nothing_and_growth_of_all_close_gates() {
    if program("cc").is_none() {
        return skip("c++", "the program cannot be built");
    }
    let recordings = Recordings::new();
    let all = recordings.of("all", |_| 4);
    let less = recordings.of("less", |name| if name == "prog::third" { 0 } else { 4 });
    let more = recordings.of("more", |_| 7);
    for (base, rule, says) in [
        (
            &less,
            &["--any-growth", "10%"],
            "FAIL  any-growth                  prog::third new: 0 -> ",
        ),
        (
            &less,
            &["--max-growth", "^prog::third$=10%"],
            "FAIL  max-growth ^prog::third$    new: 0 -> ",
        ),
    ] {
        let (status, text) = gate(&copies(base, "base"), &copies(&all, "new"), rule);
        assert_eq!(status, Some(3), "{text}");
        assert!(text.contains(says), "{text}");
    }
    for rule in [
        "--any-growth=10%",
        "--max-growth=second=10%",
        "--max-growth=10%",
    ] {
        let (status, text) = gate(&copies(&all, "base"), &copies(&more, "new"), &[rule]);
        assert_eq!(status, Some(3), "{text}");
        assert!(text.contains("+75%"), "{text}");
    }
    // Whom no rule asks for is named, too.
    let second = recordings.of("second", |name| if name == "prog::second" { 12 } else { 4 });
    let (base, new) = (copies(&all, "base"), copies(&second, "new"));
    let (status, text) = gate(&base, &new, &["--max-growth", "1000%"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("of new; slower prog::second +"), "{text}");
    let markdown = ["--max-growth", "1000%", "--format", "markdown"];
    let (_, text) = gate(&base, &new, &markdown);
    assert!(
        text.starts_with("**pass** slower `prog::second` +"),
        "{text}"
    );
    // A small new function is seen by who asks for a small limit.
    let few = std::cell::Cell::new(0);
    let tiny = recordings.of("tiny", |name| match name {
        "prog::third" if few.replace(1) == 0 => 1,
        "prog::third" => 0,
        _ => 40,
    });
    let (base, new) = (copies(&less, "base"), copies(&tiny, "new"));
    let (status, text) = gate(&base, &new, &["--no-new", "0.001%"]);
    assert_eq!(status, Some(3), "{text}");
    assert!(
        text.contains("FAIL  no-new                      prog::third"),
        "{text}"
    );
}
