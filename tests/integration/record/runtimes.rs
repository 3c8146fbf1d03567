//! Runtimes that are told to name their code, each below what programs of it are started by: npm, make, pytest, a container.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::running::namespaces;
use super::{builds, done, lab, lay, names, record, samples_of, story};
use crate::live::Lab;
use crate::support::{modules, program, skip};

/// What `check` says of a recording, of a hundred.
pub(super) fn quality(lab: &Lab, out: &str) -> (f64, f64) {
    let checked = lab.pjit(&["check", "--format", "json"], out).1;
    let checked: Value = serde_json::from_str(&checked).expect("it is JSON");
    let share = |name: &str| 100.0 * checked[name].as_f64().unwrap_or_default();
    (share("complete"), share("named"))
}

/// The name of the program that a process runs.
pub(super) fn program_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Compiles a class of `tests/programs` into the folder. False without a JDK.
pub(super) fn classes(lab: &Lab, source: &str) -> bool {
    lay(lab, source);
    let made = Command::new("javac")
        .arg(source)
        .current_dir(lab.path("."))
        .output();
    made.is_ok_and(|made| made.status.success())
}

/// The folder's files whose names begin so.
fn made_of(lab: &Lab, out: &str, begins: &str) -> Vec<String> {
    let made = names(&lab.path(out)).into_iter();
    made.filter(|name| name.starts_with(begins)).collect()
}

#[test]
fn dumps_of_node_come_along_and_leave_nothing_behind() {
    let Some(lab) = lab("node") else { return };
    if program("node").is_none() {
        return skip("node", "there is none");
    }
    lay(&lab, "busy.js");
    fs::create_dir(lab.path("project")).expect("made");
    fs::rename(lab.path("busy.js"), lab.path("project/a.js")).expect("moved");
    let script = "cd project && node a.js";
    let words = ["-v", "-o", "out", "--", "sh", "-c", script];
    let (code, out, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().count(), 1, "{out}");
    assert_eq!(names(&lab.path("project")), ["a.js".to_owned()].into());
    assert_eq!(made_of(&lab, "out", "jit-").len(), 1, "{err}");
    assert!(err.contains("moved: jit-"), "{err}");
    assert!(samples_of(&lab, "out", "busy") > 50, "{err}");
    // A file of this name that was there before stays where it is.
    assert_eq!(story(&lab.path("out"))["gathered"][0]["copied"], false);
}

#[test]
fn programs_in_containers_of_their_own_have_names() {
    let Some(lab) = lab("container") else { return };
    if program("node").is_none() {
        return skip("node", "there is none");
    }
    lay(&lab, "busy.js");
    let Some(options) = namespaces() else { return };
    // Nothing of its folder is left when it has ended.
    let script = "mount -t tmpfs t /tmp && cp busy.js /tmp && cd /tmp && node busy.js";
    let inside = [&["unshare"], options, &["sh", "-c", script]].concat();
    let words = [&["-q", "-o", "out", "--"][..], &inside].concat();
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(made_of(&lab, "out", "jit-").len(), 1, "{err}");
    assert!(samples_of(&lab, "out", "busy") > 50);
}

/// Children that npm and a shell start in folders of their own.
#[test]
fn dumps_of_all_that_npm_starts_come_along() {
    let Some(lab) = lab("npm") else { return };
    if program("npm").is_none() {
        return skip("npm", "it is not on PATH");
    }
    fs::create_dir_all(lab.path("project/sub")).expect("made");
    let package = r#"{"name": "p", "version": "1.0.0", "scripts": {"build": "node a.js && cd sub && node b.js"}}"#;
    fs::write(lab.path("project/package.json"), package).expect("written");
    for name in ["a.js", "sub/b.js"] {
        let to = lab.path("project").join(name);
        fs::copy(Lab::program("busy.js"), to).expect("copied");
    }
    let words = [
        "-o", "out", "--", "npm", "--prefix", "project", "run", "build",
    ];
    let (code, _, err) = done(record(&lab, &words).env("HOME", lab.path(".")));
    assert_eq!(code, Some(0), "{err}");
    // npm is one itself.
    assert_eq!(made_of(&lab, "out", "jit-").len(), 3, "{err}");
    let left = ["a.js", "package.json", "sub"].map(str::to_owned);
    assert_eq!(names(&lab.path("project")), left.into());
    assert_eq!(names(&lab.path("project/sub")), ["b.js".to_owned()].into());
    let (complete, named) = quality(&lab, "out");
    // A ring that is small holds few stacks of the largest size: then they are cut, and that is told.
    let least = if err.contains("next: pjit record --again out") {
        85.0
    } else {
        95.0
    };
    assert!(
        complete > least && named > 97.0,
        "{complete} {named}: {err}"
    );
}

/// JDKs that are here: the one on PATH, and those where Debian has them. Each once.
fn javas() -> Vec<PathBuf> {
    let folders = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let others = folders.map(|entry| entry.path().join("bin/java"));
    let found = program("java").into_iter().chain(others);
    let mut real: Vec<PathBuf> = found.filter_map(|java| java.canonicalize().ok()).collect();
    real.sort();
    real.dedup();
    real
}

/// Without an agent: by a map of names, and frame pointers.
#[test]
fn java_below_make_has_names_and_whole_stacks() {
    let Some(lab) = lab("make") else { return };
    if !classes(&lab, "Loops.java") || program("make").is_none() {
        return skip("java", "there is no JDK, or no make");
    }
    fs::write(lab.path("Makefile"), "all:\n\t$(JAVA) -cp . Loops\n").expect("written");
    for (number, java) in javas().iter().enumerate() {
        let name = format!("out{number}");
        let is = format!("JAVA={}", java.display());
        let words = ["-o", &name, "--", "make", &is];
        let (code, out, err) = done(&mut record(&lab, &words));
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("true"), "{out}");
        if err.contains("releases before 17") {
            continue;
        }
        let (complete, named) = quality(&lab, &name);
        // Some stacks end in a page that was not in memory, more of them on a busy machine.
        assert!(
            complete > 85.0 && named > 97.0,
            "{is} {complete} {named}: {err}"
        );
        assert!(samples_of(&lab, &name, "Loops.fib") > 50, "{is} {err}");
    }
}

/// A Python that names its functions, as releases from 3.12 on do that were built with trampolines: on PATH, or what `.ci/run`
/// unpacked of a newer Debian.
fn python() -> Option<String> {
    let asks = "import sys; sys.exit(not sys.is_stack_trampoline_active())";
    let has_trampolines = |python: &String| {
        let asked = Command::new(python)
            .args(["-X", "perf", "-c", asks])
            .stderr(Stdio::null())
            .status();
        asked.is_ok_and(|status| status.success())
    };
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/roots/run/python3.13");
    let names = ["python3", "python3.13", "python3.12"].map(str::to_owned);
    let mut names = [unpacked.display().to_string()].into_iter().chain(names);
    let found = names.find(has_trampolines);
    if found.is_none() {
        skip(
            "python3.12",
            "3.12 and newer name functions, built with trampolines",
        );
    }
    found
}

/// Functions of scripts are in the stacks, below what starts them, and on the page that is printed.
#[test]
fn functions_of_python_are_named() {
    let Some(lab) = lab("python") else { return };
    let Some(python) = python() else { return };
    lay(&lab, "fib.py");
    let plain = format!("{python} -B fib.py");
    let tested = format!("{python} -B -m pytest -q -p no:cacheprovider fib.py");
    let has_pytest = Command::new(&python)
        .args(["-c", "import pytest"])
        .stderr(Stdio::null())
        .status();
    for (out, command) in [("plain", plain), ("tested", tested)] {
        if out == "tested" && !has_pytest.as_ref().is_ok_and(|status| status.success()) {
            return skip("pytest", "that Python has none");
        }
        let words = ["-o", out, "--", "sh", "-c", &command];
        let (code, printed, err) = done(&mut record(&lab, &words));
        assert_eq!(code, Some(0), "{printed}{err}");
        assert!(samples_of(&lab, out, "py::fib:") > 50, "{err}");
        assert!(err.contains("  fib fib.py "), "{err}");
        // The interpreter itself may be without names.
        let (complete, _) = quality(&lab, out);
        assert!(complete > 95.0, "{out} {complete}: {err}");
    }
    assert!(!lab.path("__pycache__").exists());
}

/// With a compiler PHP writes a dump, and without one nothing: none is turned on.
#[test]
fn php_keeps_its_compiler_as_it_was() {
    let Some(lab) = lab("php") else { return };
    lay(&lab, "fib.php");
    let with = [
        "php",
        "-d",
        "opcache.enable_cli=1",
        "-d",
        "opcache.jit=tracing",
        "-d",
        "opcache.jit_buffer_size=64M",
        // Otherwise what was written just now is not compiled.
        "-d",
        "opcache.file_update_protection=0",
        "fib.php",
    ];
    let without = ["php", "fib.php"];
    let is_there = "exit((int) !(function_exists('opcache_get_status') && \
                    (opcache_get_status()['jit']['on'] ?? false)));";
    let compiles = Command::new(with[0])
        .args(&with[1..with.len() - 1])
        .args(["-r", is_there])
        .status();
    if !compiles.is_ok_and(|status| status.success()) {
        return skip("php", "there is none that compiles");
    }
    for (out, command) in [("with", &with[..]), ("without", &without)] {
        let plain = Command::new(command[0])
            .args(&command[1..])
            .current_dir(lab.path("."))
            .output()
            .expect("there is php");
        let words = [&["-o", out, "--"], command].concat();
        let (code, printed, err) = done(&mut record(&lab, &words));
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(printed.as_bytes(), plain.stdout, "{err}");
        let dumps = made_of(&lab, out, "jit-").len();
        assert_eq!(dumps, usize::from(out == "with"), "{err}");
        let is_told = err.contains("note: PHP wrote no dump: ");
        assert_eq!(is_told, out == "without", "{err}");
        if out == "without" {
            assert_eq!(made_of(&lab, out, "perf-"), Vec::<String>::new());
        } else {
            assert!(samples_of(&lab, out, "fib") > 50, "{err}");
        }
        let (complete, _) = quality(&lab, out);
        assert!(complete > 95.0, "{out} {complete}: {err}");
    }
}

/// A program that npm's package of it has, or the one on PATH.
fn packaged(name: &str, package: &str) -> Option<PathBuf> {
    // Scripts of the package may have moved it.
    let places = [modules().join(package), modules().join(".bin").join(name)];
    let runs = |path: &PathBuf| {
        let asked = Command::new(path).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    };
    let packaged = places.into_iter().find(runs);
    let found = packaged.or_else(|| program(name));
    found.and_then(|path| std::path::absolute(path).ok())
}

/// Each has its dump or map by its number, and the status is make's.
#[test]
fn many_runtimes_below_one_make_have_dumps_of_their_own() {
    let Some(lab) = lab("runtimes") else { return };
    if program("make").is_none() {
        return skip("make", "there is none");
    }
    for file in ["runtimes.mk", "busy.js", "fib.py", "fib.php", "fib.erl"] {
        lay(&lab, file);
    }
    let erlang = Command::new("erlc")
        .arg("fib.erl")
        .current_dir(lab.path("."))
        .status();
    let [bun, deno] = [
        ("bun", "@oven/bun-linux-x64/bin/bun"),
        ("deno", "@deno/linux-x64-glibc/deno"),
    ]
    .map(|(name, package)| packaged(name, package));
    let python = python();
    // Those that write nothing have no dump: what is compiled beforehand.
    let there = [
        ("native", builds(&lab, "rounds", &["-O1", "-g"])),
        ("node", program("node").is_some()),
        (
            "java",
            program("java").is_some() && classes(&lab, "Loops.java"),
        ),
        ("python3.12", python.is_some()),
        ("php", program("php").is_some()),
        ("erlang", erlang.is_ok_and(|status| status.success())),
        ("bun", bun.is_some()),
        ("deno", deno.is_some()),
    ];
    // Of a compiler that is missing the test knows already.
    for (name, _) in there[1..].iter().filter(|(_, is_there)| !is_there) {
        skip(name, "one runtime less below make");
    }
    let there = there.iter().filter(|(_, is_there)| *is_there);
    let there: Vec<&str> = there
        .map(|(name, _)| name.trim_end_matches("3.12"))
        .collect();
    let variable = |name: &str, path: Option<PathBuf>| {
        format!("{name}={}", path.unwrap_or_default().display())
    };
    let variables = [
        format!("RUNTIMES={}", there.join(" ")),
        variable("PYTHON", python.map(Into::into)),
        variable("BUN", bun),
        variable("DENO", deno),
    ];
    let mut words = vec!["-o", "out", "--", "make", "-f", "runtimes.mk"];
    words.extend(variables.iter().map(String::as_str));
    // Deno keeps what it compiled below HOME.
    let mut command = record(&lab, &words);
    let (code, printed, err) = done(command.env("HOME", lab.path(".")));
    // That of a recipe is in its words.
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("Error 7"), "{printed}{err}");
    assert_eq!(story(&lab.path("out"))["status"], 2);
    let ran: BTreeMap<&str, &str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("ran ")?.split_once(' '))
        .collect();
    assert_eq!(ran.len(), there.len(), "{printed}");
    let made = names(&lab.path("out"));
    let has = |pid: &str| {
        let mut files = [format!("jit-{pid}.dump"), format!("perf-{pid}.map")].into_iter();
        files.any(|file| made.contains(&file))
    };
    for (runtime, pid) in ran {
        assert_eq!(has(pid), runtime != "native", "{runtime} {pid}: {made:?}");
    }
    assert!(samples_of(&lab, "out", "busy") > 50, "{err}");
    let (complete, named) = quality(&lab, "out");
    assert!(
        complete > 85.0 && named > 80.0,
        "{complete} {named}: {printed}{err}"
    );
}

#[test]
fn an_agent_is_loaded_and_its_folders_go() {
    let Some(lab) = lab("agent") else { return };
    lay(&lab, "agent.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "agent.so", "agent.c"])
        .current_dir(lab.path("."))
        .status();
    if !built.is_ok_and(|built| built.success()) || program("java").is_none() {
        return skip("java", "there is none, or no compiler");
    }
    let words = [
        "-q",
        "--java-agent",
        "agent.so",
        "-o",
        "out",
        "--",
        "java",
        "-version",
    ];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let made = fs::read_to_string(lab.path("loaded")).expect("it was loaded");
    assert!(made.ends_with("/out/.debug/jit/java-jit-1"), "{made}");
    assert!(!names(&lab.path("out")).contains(".debug"), "{err}");
    let (code, _, err) = done(&mut record(&lab, &["--java-agent", "no.so", "--", "java"]));
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains("no.so: no such file"), "{err}");
}
