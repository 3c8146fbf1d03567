//! Functions that have one name, in files of one name or without any: they are rows of their own in each recording, and what
//! comparisons join is the same function, wherever its file lies.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object as _, ObjectSymbol as _};
use serde_json::Value;

use crate::bundle::succeed;
use crate::identity::diff;
use crate::inlines::{code, recording_of, recording_of_program};
use crate::page::Browser;
use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{pjit, program, skip};

/// A recording of code with a perf map, in a folder of its own: names, and how many samples each has.
fn scripted(folder: &Path, functions: &[(&str, u64)]) -> PathBuf {
    const CODE: u64 = 0x40_0000;
    const SIZE: u64 = 0x1000;
    fs::create_dir_all(folder).expect("made");
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"node");
    recording.map(7, CODE, 0x10_0000, 0, b"//anon");
    let mut map = String::new();
    let mut time = 1000;
    for (at, (name, samples)) in (0..).zip(functions) {
        let ip = CODE + SIZE * at;
        map.push_str(&format!("{ip:x} {SIZE:x} {name}\n"));
        for _ in 0..*samples {
            time += 1;
            recording.sample(&Sample {
                ip,
                pid: 7,
                tid: 7,
                time,
                period: 1,
                chain: &[CONTEXT_USER, ip],
                user: None,
            });
        }
    }
    fs::write(folder.join("perf-7.map"), map).expect("written");
    fs::write(folder.join("perf.data"), recording.file()).expect("written");
    folder.join("perf.data")
}

/// Names and weights of the rows of a difference, by name.
fn rows(answer: &Value) -> Vec<(String, u64, u64)> {
    let rows = answer["rows"].as_array().expect("rows");
    let sum = |weights: &Value| -> u64 {
        let weights = weights.as_array().expect("weights").iter();
        weights.filter_map(Value::as_u64).sum()
    };
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let file = row["file"].as_str().map(|file| format!(" {file}"));
            let name = row["name"].as_str().unwrap_or_default().to_owned();
            let name = name + &file.unwrap_or_default();
            (name, sum(&row["base"]), sum(&row["new"]))
        })
        .collect();
    rows.sort();
    rows
}

fn named(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    let rows = rows.iter().copied();
    rows.map(|(name, base, new)| (name.to_owned(), base, new))
        .collect()
}

/// What `pjit diff` prints in its column of functions.
fn printed(base: &Path, new: &Path) -> Vec<String> {
    let output = succeed(pjit().arg("diff").args([base, new]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let table = text.lines().filter(|line| line.starts_with("  "));
    let mut names: Vec<String> = table
        .map(|line| {
            let (_, name) = line.rsplit_once("   ").map_or((line, ""), |(rest, last)| {
                // The object stands behind the name.
                (rest, last)
            });
            let name = if name.contains("  ") { name } else { line };
            let words: Vec<&str> = name
                .split("  ")
                .filter(|word| !word.trim().is_empty())
                .collect();
            words[words.len() - 2].trim().to_owned()
        })
        .collect();
    names.sort();
    names
}

/// `pjit VIEW NAME`: the samples of what a name finds.
fn found(data: &Path, name: &str) -> [u64; 2] {
    let view = ["--format", "json", "-i"];
    let output = succeed(pjit().args(["peek", name]).args(view).arg(data));
    let peeked: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let blocks = peeked["focus"].as_array().expect("functions").iter();
    let peeked = blocks.filter_map(|block| block["inclusive"].as_u64()).sum();
    let view = ["summary", "--format", "json", "--focus", name];
    let output = succeed(pjit().args(view).arg(data));
    let focused: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let kinds = focused["kinds"].as_array().expect("kinds").iter();
    let focused = kinds.filter_map(|kind| kind["self"].as_u64()).sum();
    [peeked, focused]
}

/// What `pjit flamegraph --diff` says of its frames.
fn drawn(base: &Path, new: &Path) -> Vec<String> {
    let mut command = pjit();
    command.args(["flamegraph", "--absolute", "-f", "-o", "-", "--diff"]);
    let output = succeed(command.args([base, new]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let titles = text.split("<title>").skip(1);
    let titles = titles.filter_map(|rest| rest.split("</title>").next());
    titles.map(str::to_owned).collect()
}

/// Status and text of `pjit gate` with three equal runs of each side.
fn gate(base: &Path, new: &Path) -> (Option<i32>, String) {
    let copies = |path: &Path| {
        [0, 1, 2].map(|run| {
            let name = path.file_name().expect("a name").to_string_lossy();
            let copy = path.with_file_name(format!("{name}-{run}"));
            fs::copy(path, &copy).expect("copied");
            copy
        })
    };
    let mut command = pjit();
    command.arg("gate").args(copies(base)).arg("--to");
    command.args(copies(new)).args(["--any-growth", "5%"]);
    let output = command.output().expect("the binary can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

/// Overloads whose names are longer than a table: what a gate prints of one is a rule about it alone, and a name that others begin
/// with is one, too.
#[test]
fn a_name_that_a_gate_prints_is_one_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let [int, long] = ["int", "long"].map(|of| {
        format!(
            "app::work(std::map<std::string, std::vector<{of}>> const&, unsigned, unsigned long)"
        )
    });
    let side = |name: &str, of_int: u64| {
        let functions = [
            (int.as_str(), of_int),
            (&long, 1000),
            ("app::work", 1000),
            ("app::work_more", 1000),
        ];
        scripted(&folder.path().join(name), &functions)
    };
    let (base, new) = (side("base", 1000), side("new", 3000));
    let copies = |path: &Path| {
        [0, 1, 2].map(|run| {
            let copy = path.with_extension(format!("{run}"));
            fs::copy(path, &copy).expect("copied");
            copy
        })
    };
    let ask = |rule: [&str; 2]| {
        let mut command = pjit();
        command.arg("gate").args(copies(&base)).arg("--to");
        command.args(copies(&new)).args(rule).args(["--by", "self"]);
        let output = command.output().expect("the binary can be run");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = ask(["--any-growth", "5%"]);
    let (_, name) = text.split_once("slower ").expect("a slower function");
    let (name, _) = name.split_once(" +").expect("by how much");
    assert!(
        name.starts_with("app::work(") && name.contains("..."),
        "{name}"
    );
    // A name with a gap that several functions have would add them up.
    let mut command = pjit();
    command.arg("gate").args(copies(&base)).arg("--to");
    command.args(copies(&new));
    command.args(["--max-share", "app::wo...=40%"]);
    let output = command.output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("4 functions have such a name"), "{error}");
    assert_eq!(output.status.code(), Some(1));
    for (name, share) in [
        (name, "50.0%"),
        (&int, "50.0%"),
        (&long, "16.7%"),
        ("app::work", "16.7%"),
        ("work", "100.0%"),
        ("^app::work", "100.0%"),
    ] {
        let text = ask(["--max-share", &format!("{name}=0%")]);
        assert!(text.contains(&format!("max-share {name} ")), "{text}");
        assert!(text.contains(&format!(" {share} +-")), "{name}: {text}");
    }
}

#[test]
fn files_of_one_name_have_rows_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for (language, old, other, shown) in [
        (
            "js",
            ["JS:*run /w/p/a/index.js:1:9", "JS:*run /w/p/b/index.js:1:9"],
            ["JS:~run /t/q/a/index.js:3:9", "JS:*run /t/q/b/index.js:1:9"],
            ["run a/index.js:1", "run b/index.js:1"],
        ),
        (
            "py",
            ["py::run:/w/p/a/__init__.py", "py::run:/w/p/b/__init__.py"],
            ["py::run:/t/q/a/__init__.py", "py::run:/t/q/b/__init__.py"],
            ["run a/__init__.py", "run b/__init__.py"],
        ),
    ] {
        let side = |name: &str, [a, b]: [&str; 2], [of_a, of_b]: [u64; 2]| {
            scripted(&at(&format!("{language}-{name}")), &[(a, of_a), (b, of_b)])
        };
        let base = side("base", old, [1000, 1000]);
        let new = side("new", old, [2000, 500]);
        let paths = old.map(|name| {
            let path = &name[name.find('/').expect("a path")..];
            format!("run {}", path.trim_end_matches(":1:9"))
        });
        let expected = [(&*paths[0], 1000, 2000), (&*paths[1], 1000, 500)];
        assert_eq!(rows(&diff(&base, &new, &[])), named(&expected));
        assert_eq!(printed(&base, &new), shown);
        let (status, text) = gate(&base, &new);
        assert_eq!(status, Some(3), "{text}");
        assert!(
            text.contains(&format!("FAIL  any-growth                  {} ", shown[0])),
            "{text}"
        );
        assert_eq!(shown.map(|name| found(&new, name)), [[2000; 2], [500; 2]]);
        // The checkout lies elsewhere, and one of the files was edited.
        let moved = side("moved", other, [1000, 1000]);
        let answer = diff(&base, &moved, &[]);
        assert_eq!(
            answer["matched"],
            serde_json::json!({"base": 1.0, "new": 1.0})
        );
        let weights = rows(&answer).into_iter().map(|(_, base, new)| (base, new));
        assert_eq!(weights.collect::<Vec<_>>(), [(1000, 1000); 2]);
        let ids = |answer: &Value| -> Vec<Value> {
            let rows = answer["rows"].as_array().expect("rows");
            rows.iter().map(|row| row["id"].clone()).collect()
        };
        let ids = ids(&answer);
        assert_ne!(ids[0], ids[1]);
    }
}

/// Own files are packages of their own, also those of one name.
/// Verdicts are about what is drawn: without the common factor, all of it takes twice as long.
#[test]
fn an_absolute_picture_tests_what_it_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = |side: &str, samples: u64| {
        [0, 1, 2].map(|run: u64| {
            let names = [
                "JS:*a /w/x.js:1:2",
                "JS:*b /w/x.js:3:2",
                "JS:*c /w/x.js:5:2",
            ];
            let of = names.map(|name| (name, samples + run));
            scripted(&folder.path().join(format!("{side}{run}")), &of)
        })
    };
    let (base, new) = (runs("base", 500), runs("new", 1000));
    let drawn = |options: &[&str]| {
        let mut command = pjit();
        command.args(["flamegraph", "-o", "-"]).args(options);
        base.iter().for_each(|path| {
            command.arg("--diff").arg(path);
        });
        let output = succeed(command.arg("--to").args(&new));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let absolute = drawn(&["--absolute"]);
    assert!(absolute.contains("2.00 times, slower"), "{absolute}");
    assert!(!absolute.contains("no change found"));
    assert!(!drawn(&[]).contains("slower"));
}

#[test]
fn own_files_of_one_name_pay_each_for_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let side = |name: &str, root: &str, weights: [u64; 3]| {
        let names = ["a", "b", "c"].map(|at| format!("JS:*{at} {root}/{at}/index.js:1:9"));
        let functions = names.iter().map(String::as_str).zip(weights);
        scripted(&folder.path().join(name), &functions.collect::<Vec<_>>())
    };
    let base = side("base", "/w/p", [1000, 1000, 1000]);
    let new = side("new", "/t/q", [2000, 500, 0]);
    let answer = diff(&base, &new, &["--by", "package"]);
    let expected = [
        ("index.js /t/q/a/index.js", 1000, 2000),
        ("index.js /t/q/b/index.js", 1000, 500),
        ("index.js /w/p/c/index.js", 1000, 0),
    ];
    assert_eq!(rows(&answer), named(&expected));
    let output = succeed(pjit().args(["diff", "--by", "package"]).args([&base, &new]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for name in ["a/index.js", "b/index.js", "c/index.js"] {
        assert_eq!(text.matches(name).count(), 1, "{text}");
    }
    let output = succeed(pjit().args(["summary", "--by", "package"]).arg(&new));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for row in ["a/index.js (own)  80.0%", "b/index.js (own)  20.0%"] {
        assert!(text.contains(row), "{text}");
    }
}

/// Each side has a function that the other has no samples of: nothing says that they are one.
#[test]
fn namesakes_of_either_side_are_not_joined() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["a", "b", "c"].map(|name| format!("JS:*run /w/{name}/index.js:1:9"));
    let side = |name: &str, other: usize| {
        let functions = [(names[0].as_str(), 1000), (names[other].as_str(), 1000)];
        scripted(&folder.path().join(name), &functions)
    };
    let answer = diff(&side("base", 1), &side("new", 2), &[]);
    let expected = [
        ("run /w/a/index.js", 1000, 1000),
        ("run /w/b/index.js", 1000, 0),
        ("run /w/c/index.js", 0, 1000),
    ];
    assert_eq!(rows(&answer), named(&expected));
    assert_eq!(
        answer["matched"],
        serde_json::json!({"base": 0.5, "new": 0.5})
    );
}

/// A C program with a `work` in each of its files, and where each of them lies: by folder and name of the file.
struct Program {
    path: PathBuf,
    /// By file, in the order given.
    works: Vec<Vec<(u64, u64)>>,
}

impl Program {
    fn of(folder: &Path, files: &[&str], above: usize, options: &[&str]) -> Self {
        let body = "sum += n;".repeat(100);
        let mut main = String::new();
        for (number, file) in files.iter().enumerate() {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            let lines = "\n".repeat(above);
            let text = format!(
                "{lines}static __attribute__((noinline)) int work(int n) {{ volatile int sum = n; {body} return sum + {number}; }}\n\
                 int run{number}(int n) {{ return work(n) + 1; }}\n"
            );
            fs::write(path, text).expect("written");
            main.push_str(&format!("int run{number}(int);\n"));
        }
        let calls = (0..files.len()).map(|number| format!("run{number}(n)"));
        let calls = calls.collect::<Vec<_>>().join(" + ");
        main.push_str(&format!(
            "int main(int n, char **v) {{ return {calls}; }}\n"
        ));
        fs::write(folder.join("main.c"), main).expect("written");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-o", "prog", "main.c"]).args(files);
        succeed(cc.args(options).current_dir(folder));
        let path = folder.join("prog");
        let listed = succeed(Command::new("nm").args(["-S", "-n"]).arg(&path));
        let listed = String::from_utf8(listed.stdout).expect("UTF-8");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let works = listed.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words.last() == Some(&"work")).then(|| (number(words[0]), number(words[1])))
        });
        let code = code(&fs::read(&path).expect("built"));
        let inside = |(start, size): (u64, u64)| {
            let is_inside = |at: &&(u64, u64)| (start..start + size).contains(&at.1);
            code.iter().filter(is_inside).copied().collect()
        };
        let works = works.map(inside).collect();
        Self { path, works }
    }

    /// A recording in which each `work` has so many samples.
    fn run(&self, name: &str, samples: &[usize]) -> PathBuf {
        let of_work = self.works.iter().zip(samples);
        let places =
            of_work.flat_map(|(places, count)| places.iter().copied().cycle().take(*count));
        let places: Vec<(u64, u64)> = places.collect();
        let path = self.path.to_str().expect("a plain path");
        let data = self.path.with_file_name(name);
        fs::write(&data, recording_of(path.as_bytes(), &places)).expect("written");
        data
    }
}

/// Whether C can be built and looked into.
fn has_tools() -> bool {
    let has = ["cc", "nm"].iter().all(|name| program(name).is_some());
    if !has {
        skip("c++", "it cannot be built");
    }
    has
}

#[test]
fn static_functions_of_several_files_are_several() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let by_symbols = ["work a.c", "work b.c", "work c.c"];
    let by_lines = ["work a.c:1", "work b.c:1", "work c.c:1"];
    for (options, shown) in [("-g", by_lines), ("-g0", by_symbols)] {
        let files = ["a.c", "b.c", "c.c"];
        let built = Program::of(&at(&format!("old{options}")), &files, 0, &[options]);
        let base = built.run("base", &[1000, 1000, 1000]);
        let new = built.run("new", &[2000, 500, 1000]);
        assert_eq!(printed(&base, &new), shown);
        let (status, text) = gate(&base, &new);
        assert_eq!(status, Some(3), "{text}");
        assert!(text.contains(shown[0]), "{text}");
        let sizes = shown.map(|name| found(&new, name));
        assert_eq!(sizes, [[2000; 2], [500; 2], [1000; 2]]);
        let drawn = drawn(&base, &new);
        for (name, ratio) in [(shown[0], ", 2.00 times"), (shown[1], ", 0.50 times")] {
            let is_drawn = |line: &&String| line.starts_with(name) && line.contains(ratio);
            assert_eq!(drawn.iter().filter(is_drawn).count(), 1, "{drawn:?}");
        }
        // Built again elsewhere, with other lines, in another order.
        let files = ["c.c", "a.c", "b.c"];
        let moved = Program::of(&at(&format!("new{options}/place")), &files, 3, &[options]);
        let moved = moved.run("moved", &[1000, 2000, 500]);
        let answer = diff(&new, &moved, &[]);
        assert_eq!(
            answer["matched"],
            serde_json::json!({"base": 1.0, "new": 1.0})
        );
        let rows = answer["rows"].as_array().expect("rows");
        assert!(
            rows.len() == 3 && rows.iter().all(|row| row["ratio"] == 1.0),
            "{answer}"
        );
    }
}

/// Files of one name, of which one recording hit the one and another the other.
#[test]
fn what_was_not_hit_is_no_reason_to_join() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (options, shown) in [
        ("-g", ["work x/w.c:1", "work y/w.c:1"]),
        ("-g0", ["work (1 of 2)", "work (2 of 2)"]),
    ] {
        let files = ["x/w.c", "y/w.c"];
        let built = Program::of(&folder.path().join(options), &files, 0, &[options]);
        let first = built.run("first", &[1000, 0]);
        let second = built.run("second", &[0, 1000]);
        let answer = diff(&first, &second, &[]);
        let rows = answer["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 2, "{answer}");
        assert_eq!(printed(&first, &second), shown);
        let both = built.run("both", &[1000, 500]);
        assert_eq!(shown.map(|name| found(&both, name)), [[1000; 2], [500; 2]]);
        let answer = diff(&first, &both, &[]);
        let same = answer["rows"].as_array().expect("rows").iter();
        let same = same.filter(|row| row["base"][0] == 1000 && row["new"][0] == 1000);
        assert_eq!(same.count(), 1, "{answer}");
    }
}

/// Closures of Rust have one name; what the compiler tells them by stays, wherever they are.
#[test]
fn closures_without_lines_are_told_by_their_hashes() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let hashes = ["3ff27c90b8d26da3", "d6716f8fce648f47", "01a2b3c4d5e6f708"];
    let build = |name: &str, order: &[usize]| {
        let folder = folder.path().join(name);
        fs::create_dir_all(&folder).expect("made");
        let body = "sum += n;".repeat(100);
        let mut text = String::new();
        for at in order {
            let hash = hashes[*at];
            text.push_str(&format!(
                "static int f{at}(int n) __asm__(\"_ZN1w4main28_$u7b$$u7b$closure$u7d$$u7d$17h{hash}E\");\n\
                 static __attribute__((noinline)) int f{at}(int n) {{ volatile int sum = n; {body} return sum + {at}; }}\n"
            ));
        }
        let calls: Vec<String> = order.iter().map(|at| format!("f{at}(n)")).collect();
        let calls = calls.join(" + ");
        text.push_str(&format!(
            "int main(int n, char **v) {{ return {calls}; }}\n"
        ));
        fs::write(folder.join("prog.c"), text).expect("written");
        let mut cc = Command::new("cc");
        // In the order of the source.
        cc.args(["-O1", "-fno-toplevel-reorder", "-o", "prog", "prog.c"]);
        succeed(cc.current_dir(&folder));
        let path = folder.join("prog");
        let listed = succeed(Command::new("nm").args(["-S", "-n"]).arg(&path));
        let listed = String::from_utf8(listed.stdout).expect("UTF-8");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let code = code(&fs::read(&path).expect("built"));
        let of = |at: usize| -> Vec<(u64, u64)> {
            let line = listed.lines().find(|line| line.contains(hashes[at]));
            let words: Vec<&str> = line.expect("a symbol").split(' ').collect();
            let (start, size) = (number(words[0]), number(words[1]));
            let is_inside = |at: &&(u64, u64)| (start..start + size).contains(&at.1);
            code.iter().filter(is_inside).copied().collect()
        };
        let works = (0..hashes.len()).map(|at| {
            if order.contains(&at) {
                of(at)
            } else {
                Vec::new()
            }
        });
        Program {
            path,
            works: works.collect(),
        }
    };
    let base = build("old", &[0, 1]).run("base", &[1000, 1000, 0]);
    let new = build("new", &[1, 0]).run("new", &[2000, 500, 0]);
    let shown = [
        "w::main::{{closure}}::h3ff27c",
        "w::main::{{closure}}::hd6716f",
    ];
    let answer = diff(&base, &new, &[]);
    let rows = answer["rows"].as_array().expect("rows").iter();
    let mut weights: Vec<_> = rows.map(|row| (&row["base"][0], &row["new"][0])).collect();
    weights.sort_by_key(|(_, new)| new.as_u64());
    assert_eq!(
        weights,
        [(&1000.into(), &500.into()), (&1000.into(), &2000.into())]
    );
    let (status, text) = gate(&base, &new);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains(shown[0]), "{text}");
    assert_eq!(shown.map(|name| found(&new, name)), [[2000; 2], [500; 2]]);
    let drawn = drawn(&base, &new);
    for name in shown {
        let is_drawn = |line: &&String| line.starts_with(name);
        assert_eq!(drawn.iter().filter(is_drawn).count(), 1, "{drawn:?}");
    }
    // The hash goes by their order: of one more nothing is known.
    let more = build("more", &[2, 1, 0]).run("more", &[1000, 1000, 1000]);
    let (status, text) = gate(&base, &more);
    assert_eq!(status, Some(4), "{text}");
    let mut annotate = pjit();
    let output = succeed(annotate.args(["annotate", shown[0], "-i"]).arg(&new));
    assert!(!output.stdout.is_empty());
}

/// Overloads of which each side has its own.
#[test]
fn overloads_are_told_by_their_parameters() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let text = ["i", "d"].map(|kind| {
        let body = "sum += n;".repeat(100);
        format!("__attribute__((noinline)) int _Z4work{kind}(int n) {{ volatile int sum = n; {body} return sum; }}\n")
    });
    let main = "int main(int n, char **v) { return _Z4worki(n) + _Z4workd(n); }\n";
    fs::write(folder.path().join("prog.c"), text.concat() + main).expect("written");
    let mut cc = Command::new("cc");
    succeed(
        cc.args(["-O1", "-o", "prog", "prog.c"])
            .current_dir(folder.path()),
    );
    let path = folder.path().join("prog");
    let code = code(&fs::read(&path).expect("built"));
    let run = |name: &str, half: bool| {
        // The first function is in the first half of the code.
        let middle = code.len() / 2;
        let places = if half {
            &code[..middle]
        } else {
            &code[middle..]
        };
        let data = folder.path().join(name);
        let path = path.to_str().expect("a plain path").as_bytes();
        fs::write(&data, recording_of(path, places)).expect("written");
        data
    };
    let answer = diff(
        &run("first", true),
        &run("second", false),
        &["--by", "self"],
    );
    let names: Vec<(&Value, bool)> = answer["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| row["name"] == "work")
        .map(|row| (&row["id"], row["ratio"].is_null()))
        .collect();
    assert_eq!(names.len(), 2, "{answer}");
    assert_ne!(names[0].0, names[1].0);
}

/// Lambdas of a function that is in one file alone are all `operator()`, and g++ gives their functions no place: their types have it.
const LAMBDAS: &str = "\
template <class F> static inline void run(unsigned long *sum, F f) { for (int i = 0; i < 9; i++) *sum += f(*sum); }
int main(int count, char **) {
  unsigned long sum = count;
  auto first = [](unsigned long x) {
    for (int i = 0; i < 2000; i++) x = x * 6364136223846793005ul + 1442695040888963407ul; return x; };
  run(&sum, first);
  run(&sum, [=](unsigned long x) {
    for (int i = 0; i < 1000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << count; } return x; });
  return sum & 1;
}
";

#[test]
fn inlined_lambdas_of_one_function_are_several() {
    let names = ["operator() a.cc:4", "operator() a.cc:7"];
    lambdas_are(LAMBDAS, names);
    // On one line, which a body of another line tells apart here.
    let first = LAMBDAS.replace(
        "  auto first = [](unsigned long x) {\n",
        "#line 4\n  auto first = [](unsigned long x) {\n#line 5\n",
    );
    let both = first.replace(
        "  run(&sum, [=](unsigned long x) {\n",
        "#line 4\n  run(&sum, [=](unsigned long x) {\n#line 8\n",
    );
    lambdas_are(&both, ["operator() a.cc:4:17", "operator() a.cc:4:15"]);
}

/// Each byte of a program's code: its offset in the file and its address.
fn bytes_of_code(elf: &[u8]) -> Vec<(u64, u64)> {
    let bytes = |&(offset, address): &(u64, u64)| (0..16).map(move |i| (offset + i, address + i));
    code(elf).iter().flat_map(bytes).collect()
}

/// The rows of two lambdas, of which line 5 is of the first and line 8 of the second.
fn lambdas_are(source: &str, names: [&str; 2]) {
    let tools = ["c++", "addr2line"];
    if let Some(missing) = tools.iter().find(|name| program(name).is_none()) {
        return skip(missing, "inlined lambdas");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.cc"), source).expect("written");
    let mut build = Command::new("c++");
    build.args(["-std=c++17", "-O2", "-g", "-o", "a", "a.cc"]);
    succeed(build.current_dir(&folder));
    let path = folder.path().join("a");
    let elf = fs::read(&path).expect("built");
    let code = bytes_of_code(&elf);
    let addresses = code.iter().map(|(_, address)| format!("{address:#x}"));
    let lines = succeed(
        Command::new("addr2line")
            .arg("-e")
            .arg(&path)
            .args(addresses),
    );
    let lines = String::from_utf8(lines.stdout).expect("UTF-8");
    let mut expected = [(names[0], 5), (names[1], 8)].map(|(name, line)| {
        let is_there = |text: &&str| {
            let at = text.rsplit_once(':').map_or("", |(_, at)| at);
            at.split(' ').next() == Some(line.to_string().as_str())
        };
        let samples = lines.lines().filter(is_there).count();
        assert!(samples > 10, "{name}: {lines}");
        (name.to_owned(), samples as u64)
    });
    let data = folder.path().join("perf.data");
    let path = path.to_str().expect("a plain path");
    fs::write(&data, recording_of(path.as_bytes(), &code)).expect("written");
    let answer = diff(&data, &data, &["--by", "self"]);
    let rows = answer["rows"].as_array().expect("rows").iter();
    let lambdas = rows.filter(|row| row["name"] == "operator()");
    let mut found: Vec<(String, u64)> = lambdas
        .map(|row| {
            let apart = row["apart"].as_str().unwrap_or_default();
            let samples = row["base"][0].as_u64().expect("samples");
            (format!("operator(){apart}"), samples)
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // By their file, too, which debug information alone tells.
    let focused = |file: &str| {
        let view = ["summary", "--format", "json", "--focus", file];
        let output = succeed(pjit().args(view).arg(&data));
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let kinds = answer["kinds"].as_array().expect("kinds").iter();
        kinds.filter_map(|kind| kind["self"].as_u64()).sum::<u64>()
    };
    let all: u64 = expected.iter().map(|(_, samples)| samples).sum();
    assert!(focused(r"/a\.cc$") >= all);
}

/// Two functions of one name, of which compilers write no linkage names.
const SCOPES: &str = "
namespace {
namespace alpha { __attribute__((always_inline)) inline unsigned long go(unsigned long x) {
  for (int i = 0; i < 1000; i++) { x = x * 35 + (x >> 9); } return x; } }
namespace beta { __attribute__((always_inline)) inline unsigned long go(unsigned long x) {
  for (int i = 0; i < 1000; i++) { x = x * 37 + (x >> 11); } return x; } }
}
int main(int n, char **) { return (alpha::go(n) + beta::go(n + 1)) & 1; }
";

#[test]
fn names_of_exports_do_not_depend_on_format_or_labels() {
    if program("c++").is_none() {
        return skip("c++", "names of exports");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.cc"), SCOPES).expect("written");
    let mut build = Command::new("c++");
    build.args(["-O2", "-g", "-o", "a", "a.cc"]);
    succeed(build.current_dir(&folder));
    let path = folder.path().join("a");
    let elf = fs::read(&path).expect("built");
    let code = bytes_of_code(&elf);
    let data = folder.path().join("perf.data");
    let path = path.to_str().expect("a plain path");
    fs::write(&data, recording_of(path.as_bytes(), &code)).expect("written");
    for view in [
        &["speedscope"][..],
        &["firefox"],
        &["csv"],
        &["pprof", "--labels", "none"],
        &["pprof", "--labels", "process,thread"],
        &["pprof"],
    ] {
        let out = folder.path().join("out");
        let mut export = pjit();
        export.args(["export", "--force", "-o"]).arg(&out);
        succeed(export.arg("--format").args(view).arg(&data));
        let mut text = Vec::new();
        let written = fs::File::open(&out).expect("written");
        flate2::read::MultiGzDecoder::new(written)
            .read_to_end(&mut text)
            .or_else(|_| fs::File::open(&out)?.read_to_end(&mut text))
            .expect("read");
        let text = String::from_utf8_lossy(&text);
        for scope in ["alpha::go", "beta::go"] {
            let name = format!("(anonymous namespace)::{scope}");
            assert!(text.contains(&name), "{view:?}: no {name}");
        }
    }
}

/// Two functions that no other unit sees, each inlined into the caller that says so.
const INLINED: &str = "
volatile unsigned long sum;
namespace app {
namespace {
unsigned long hidden(unsigned long n) { BODY return sum; }
}
CALLER unsigned long first(unsigned long n) { return hidden(n) + 1; }
__attribute__((noinline)) unsigned long second(unsigned long n) { return hidden(n) + 2; }
}
static unsigned long local(unsigned long n) { BODY return sum + 1; }
CALLER unsigned long third(unsigned long n) { return local(n) + 3; }
__attribute__((noinline)) unsigned long fourth(unsigned long n) { return local(n) + 4; }
int main(int n, char **) { return app::first(n) + app::second(n) + third(n) + fourth(n); }
";

#[test]
fn a_function_is_one_whether_it_is_inlined_or_not() {
    if program("c++").is_none() {
        return skip("c++", "inlined functions");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = |name: &str, caller: &str| {
        let lab = folder.path().join(name);
        fs::create_dir(&lab).expect("made");
        let source = INLINED
            .replace("BODY", &"sum += n;".repeat(100))
            .replace("CALLER", caller);
        fs::write(lab.join("a.cc"), source).expect("written");
        let mut build = Command::new("c++");
        build.args(["-O1", "-g", "-o", "a", "a.cc"]);
        succeed(build.current_dir(&lab));
        let path = lab.join("a");
        let elf = fs::read(&path).expect("built");
        let words = ["hidden", "local", "first", "second", "third", "fourth"];
        let code: Vec<_> = words.iter().flat_map(|word| own_code(&elf, word)).collect();
        let data = lab.join("perf.data");
        let path = path.to_str().expect("a plain path");
        fs::write(&data, recording_of(path.as_bytes(), &code)).expect("written");
        data
    };
    let apart = recorded("apart", "__attribute__((noinline))");
    let inlined = recorded("inlined", "__attribute__((noinline, flatten))");
    let names = ["app::(anonymous namespace)::hidden", "local"];
    for (base, new) in [(&apart, &inlined), (&inlined, &apart), (&inlined, &inlined)] {
        let answer = diff(base, new, &["--by", "self"]);
        let rows = answer["rows"].as_array().expect("rows");
        for name in names {
            let mut found = rows.iter().filter(|row| row["name"] == name);
            let row = found.next().expect("a row");
            assert!(row["base"][0].as_u64() > Some(20), "{answer}");
            assert!(row["new"][0].as_u64() > Some(20), "{answer}");
            assert!(found.next().is_none(), "{answer}");
        }
        assert!(rows.iter().all(|row| row["name"] != "hidden"), "{answer}");
    }
    // Lists of a page have it once, too.
    let page = folder.path().join("page.html");
    let mut draw = pjit();
    draw.args(["flamegraph", "-o"]).arg(&page).arg(&inlined);
    succeed(&mut draw);
    let plain = fs::read_to_string(&page).expect("a page");
    assert_eq!(plain.matches("<td>local</td>").count(), 1);
    if let Some(browser) = Browser::find() {
        let seen = browser.drive(&page, &["key:t", "all"]);
        let rows = seen[0]["table"].as_array().expect("rows").iter();
        assert_eq!(rows.filter(|row| row[2] == "local").count(), 1);
    }
    // It is there twice.
    let samples = |data: &Path| names.map(|name| found(data, name)[0]);
    let (one, both) = (samples(&apart), samples(&inlined));
    assert!(
        (0..2).all(|at| both[at] > one[at] * 3 / 2),
        "{one:?} {both:?}"
    );
}

/// Places in functions of which the mangled names have this word.
fn own_code(elf: &[u8], word: &str) -> Vec<(u64, u64)> {
    let file = object::File::parse(elf).expect("an ELF file");
    let is_own =
        |symbol: &object::Symbol<'_, '_>| symbol.name().is_ok_and(|name| name.contains(word));
    let own: Vec<_> = file.symbols().filter(is_own).collect();
    let is_in = |address: u64| {
        let mut own = own.iter();
        own.any(|symbol| (symbol.address()..symbol.address() + symbol.size()).contains(&address))
    };
    let all = code(elf).into_iter();
    all.filter(|(_, address)| is_in(*address)).collect()
}

/// Line tables alone do not say where functions are defined; the lines of their code do.
#[test]
fn closures_of_which_only_lines_are_known_are_several() {
    // The bodies are on lines 2 and 4.
    let body = |by: u64| format!("n = n.rotate_left(7) ^ n.wrapping_mul({by}); ").repeat(60);
    let (body, another) = (body(3), body(5));
    let source = format!(
        "#[inline(never)] pub fn first(mut n: u64) -> u64 {{\n let mut run = || {{ {body} n }}; run() }}\n\
         #[inline(never)] pub fn other(mut n: u64) -> u64 {{\n let mut run = || {{ {another} n }}; run() }}\n\
         fn main() {{ let n = std::env::args().count() as u64; println!(\"{{}}\", first(n) ^ other(n)); }}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("two.rs"), source).expect("written");
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "-C", "debuginfo=line-tables-only", "two.rs"]);
    let built = rustc.current_dir(&folder).status();
    if !built.is_ok_and(|status| status.success()) {
        return skip("rustc", "it cannot be run");
    }
    let path = folder.path().join("two");
    let elf = fs::read(&path).expect("built");
    let data = folder.path().join("perf.data");
    let path = path.to_str().expect("a plain path");
    let code = [own_code(&elf, "first"), own_code(&elf, "other").repeat(2)].concat();
    fs::write(&data, recording_of_program(path.as_bytes(), &elf, &code)).expect("written");
    let [one, two] = ["{closure#0} two.rs:2", "{closure#0} two.rs:4"].map(|of| found(&data, of)[0]);
    assert!(one > 20 && two.abs_diff(2 * one) <= one / 2, "{one} {two}");
}

/// Rust's older mangling tells no arguments of types and gives closures no numbers.
#[test]
fn builds_of_two_manglings_have_the_same_functions() {
    const SOURCE: &str = r#"
        use std::hash::{DefaultHasher, Hash, Hasher};
        trait Shape { fn area(&self, of: u64) -> u64; }
        struct Square(u64);
        impl Shape for Square {
            #[inline(never)] fn area(&self, of: u64) -> u64 { (0..of).map(|n| self.0 ^ n.rotate_left(3)).sum() }
        }
        struct Set<T>(Vec<T>);
        impl<T: Hash> Set<T> {
            #[inline(never)] fn sum(&self) -> u64 {
                let mut hasher = DefaultHasher::new();
                self.0.iter().for_each(|one| one.hash(&mut hasher));
                hasher.finish()
            }
        }
        #[inline(never)] fn twice(run: &dyn Fn(u64) -> u64) -> u64 { run(1) ^ run(2) }
        fn main() {
            let more = std::env::args().count() as u64;
            let first = twice(&|n| Set(vec![n, more]).sum());
            let second = twice(&|n| Set(vec![n.to_string()]).sum() ^ Square(more).area(n));
            println!("{}", first ^ second);
        }"#;
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("shapes.rs");
    fs::write(&source, SOURCE).expect("written");
    let build = |mangling: &str| {
        let built = folder.path().join(mangling);
        fs::create_dir_all(&built).expect("made");
        let file = built.join("shapes");
        let mut rustc = Command::new("rustc");
        rustc.args(["-O", "-C", "debuginfo=1", "-Z", "unstable-options"]);
        rustc.arg(format!("-Csymbol-mangling-version={mangling}"));
        // The older one is no choice of stable compilers that have the newer one.
        rustc.env("RUSTC_BOOTSTRAP", "1");
        let built_it = rustc.arg("-o").args([&file, &source]).status();
        if !built_it.is_ok_and(|status| status.success()) {
            return None;
        }
        let elf = fs::read(&file).expect("it was built");
        let own = own_code(&elf, "shapes").repeat(20);
        let path = file.to_str().expect("a plain path");
        let data = built.join("perf.data");
        let recording = recording_of_program(path.as_bytes(), &elf, &own);
        fs::write(&data, recording).expect("written");
        Some(data)
    };
    let (Some(older), Some(newer)) = (build("legacy"), build("v0")) else {
        return skip("rustc", "it cannot be run");
    };
    let names = |all: &[(String, u64, u64)]| -> Vec<String> {
        let own = all.iter().filter(|(name, ..)| name.contains("shapes::"));
        own.map(|(name, ..)| name.clone()).collect()
    };
    let rows = rows(&diff(&older, &newer, &["--own", "shapes"]));
    let (both, alone): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.1 > 0 && row.2 > 0);
    let both = names(&both);
    for part in [
        "shapes::main",
        "shapes::twice",
        "shapes::Set::sum",
        "<shapes::Square as shapes::Shape>::area",
    ] {
        assert!(both.iter().any(|name| name == part), "{part}: {both:?}");
    }
    assert_eq!(names(&alone), [""; 0], "{both:?}");
}
