//! The rules of the source tree that the compiler does not check: who may use what, and that every file says what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below `folder`, relative to the project.
fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut todo = vec![root.join(folder)];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path.strip_prefix(root).expect("it is below").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("it can be read")
}

/// The lines of a file that run in production: without comments, and without items that only tests have.
fn code(path: &Path) -> Vec<(usize, String)> {
    without_tests(&read(path))
}

fn without_tests(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    // Inside a test item: braces that are open, and whether one was met.
    let mut skipping: Option<(i64, bool)> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or("");
        if line.trim_start().starts_with("#[cfg(test)]") {
            skipping = Some((0, false));
            continue;
        }
        if let Some((open, met)) = &mut skipping {
            let count = |wanted: char| line.chars().filter(|c| *c == wanted).count() as i64;
            *open += count('{') - count('}');
            *met |= line.contains('{');
            let ends = if *met {
                *open == 0
            } else {
                line.trim_end().ends_with(';')
            };
            if ends {
                skipping = None;
            }
            continue;
        }
        if !line.trim().is_empty() {
            lines.push((number + 1, line.to_owned()));
        }
    }
    assert!(skipping.is_none(), "a test item that does not end");
    lines
}

#[test]
fn test_items_are_skipped_and_nothing_else() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod x {\n  fn f() {}\n}\n\
                #[cfg(test)]\npub(crate) use y::{\n z,\n};\nc // d\n";
    let left: Vec<String> = without_tests(text).into_iter().map(|(_, l)| l).collect();
    assert_eq!(left, ["a", "b", "c "]);
}

/// The stages in the order in which a sample goes through them; each knows those above it alone. The rest of `src` is the
/// ground floor, which knows no stage.
const STAGES: [&str; 29] = [
    "input",
    "find",
    "perfdata",
    "jitdump",
    "dso",
    "jit",
    "session",
    "weigh",
    "unwind",
    "collect",
    "stitch",
    "wasm",
    "symbolize",
    "profile",
    "assembly",
    "totals",
    "check",
    "bundle",
    "load",
    // What makes recordings, and gathers what the stages above look for.
    "record",
    // What asks servers for what a recording lacks.
    "fetch",
    // Views, which share nothing but the profile, its functions, and what is made of them.
    "functions",
    "questions",
    "report",
    "flame",
    "code",
    // Writers, questions as data, and the command line.
    "output",
    "ask",
    "cli",
];

/// Rooms that are no part of names: `src/stacks/unwind` is `crate::unwind`. Of four more, some folders are stages of their own.
const ROOMS: [&str; 5] = ["base", "formats", "stacks", "names", "views"];
const STAGES_OF_OTHERS: [&str; 8] = [
    "input/find",
    "load/assembly",
    "load/bundle",
    "load/check",
    "load/profile",
    "load/totals",
    "record/fetch",
    "session/jit",
];

/// A path below `src` without the room that it is in.
fn without_room(path: &Path) -> &Path {
    let below = path.strip_prefix("src").expect("a file of src");
    let mut parts = below.components();
    let is_room = |room: &&str| below.starts_with(room) && below != Path::new(room).join("mod.rs");
    let is_stage = |stage: &&str| below.starts_with(stage);
    if ROOMS.iter().any(is_room) || STAGES_OF_OTHERS.iter().any(is_stage) {
        parts.next();
    }
    parts.as_path()
}

/// The stage of a file: `session` for `src/session/jit.rs`, `unwind` for `src/stacks/unwind/mod.rs`.
fn module(path: &Path) -> String {
    let first = without_room(path).iter().next().expect("it has a name");
    first.to_string_lossy().trim_end_matches(".rs").to_owned()
}

#[test]
fn the_way_of_a_sample_fits_a_listing() {
    let mut rooms = BTreeSet::new();
    let mut stages = BTreeSet::new();
    for path in files("src") {
        let below = path.strip_prefix("src").expect("a file of src");
        if below.iter().count() > 1 {
            rooms.extend(
                below
                    .iter()
                    .next()
                    .map(|room| room.to_string_lossy().into_owned()),
            );
        } else {
            assert!(
                ["lib.rs", "main.rs"]
                    .iter()
                    .any(|file| below == Path::new(file))
            );
        }
        stages.insert(module(&path));
    }
    assert!(rooms.len() <= 12, "{rooms:?}");
    for stage in STAGES {
        assert!(stages.contains(stage), "{stage} is not found any more");
    }
}

/// What a line takes from other modules of the crate: `session` in `use crate::session::threads;`.
fn named_modules(line: &str) -> Vec<&str> {
    let starts = line
        .match_indices("crate::")
        .map(|(at, word)| &line[at + word.len()..]);
    let end = |rest: &str| {
        rest.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len())
    };
    starts.map(|rest| &rest[..end(rest)]).collect()
}

#[test]
fn only_session_changes_the_history() {
    for path in files("src") {
        if path.starts_with("src/session") {
            continue;
        }
        for (number, line) in code(&path) {
            let is_changed = line.contains("&mut Session") || line.contains("mut Session<");
            assert!(!is_changed, "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn topics_are_where_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = read(Path::new("docs/architecture.md"));
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 30, "{} topics", rows.len());
    for row in &rows[1..] {
        let places = row.rsplit(" | ").next().unwrap_or_default();
        let mut places = places.split('`').skip(1).step_by(2).peekable();
        assert!(places.peek().is_some(), "no path: {row}");
        for place in places {
            assert!(root.join(place).exists(), "{place}: {row}");
        }
    }
}

#[test]
fn examples_fit_a_screen() {
    let examples = files("examples");
    assert!(examples.len() > 3, "examples are not found any more");
    for path in examples {
        let lines = read(&path).lines().count();
        assert!(lines <= 40, "{}: {lines} lines", path.display());
    }
}

/// Questions are data: what asks them is another door each. Recordings are read by the library that they are asked with.
#[test]
fn questions_know_no_command_line_and_no_terminal() {
    let words = [
        "clap",
        "ExitCode",
        "stdout",
        "stderr",
        "is_terminal",
        "std::env",
        "Store",
        "Diagnostics::new",
        "load::load",
    ];
    let mut seen = 0;
    for path in files("src/ask") {
        for (number, line) in code(&path) {
            seen += 1;
            let found = words.iter().find(|word| line.contains(*word));
            assert_eq!(found, None, "{}:{number}", path.display());
        }
    }
    assert!(seen > 500, "questions are not found any more: {seen}");
}

#[test]
fn no_stage_knows_a_later_one() {
    let rank = |module: &str| STAGES.iter().position(|stage| *stage == module);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in files("src") {
        let own = module(&path);
        let name = path.to_string_lossy();
        let is_test = name.ends_with("tests.rs") || name.ends_with("testing.rs");
        if own == "main" || own == "lib" || is_test || path.iter().any(|part| part == "tests") {
            continue;
        }
        for (number, line) in code(&path) {
            for other in named_modules(&line) {
                seen += 1;
                let knows_later = match (rank(&own), rank(other)) {
                    (_, None) => false,
                    (None, Some(_)) => true,
                    (Some(own), Some(other)) => other > own,
                };
                if knows_later {
                    wrong.push(format!("{name}:{number}: {}", line.trim()));
                }
            }
        }
    }
    assert!(seen > 200, "imports are not found any more: {seen}");
    none(wrong, "a stage that knows a later one");
}

#[test]
fn one_enum_names_architectures() {
    let mut found = Vec::new();
    for path in files("src") {
        let lines: Vec<_> = code(&path).into_iter().collect();
        for (at, (number, line)) in lines.iter().enumerate() {
            if !line.contains("enum ") {
                continue;
            }
            let body = lines[at..]
                .iter()
                .take_while(|(_, line)| line.trim() != "}");
            let names = |line: &str| {
                ["X86_64", "Aarch64", "Riscv64", "Arm64"]
                    .iter()
                    .any(|name| line.trim().starts_with(name))
            };
            if body.filter(|(_, line)| names(line)).count() > 1 {
                found.push(format!("{}:{number}", path.display()));
            }
        }
    }
    assert_eq!(
        found.len(),
        1,
        "architectures are a row in src/base/arch.rs: {found:?}"
    );
    assert!(found[0].starts_with("src/base/arch.rs"), "{found:?}");
}

/// The path of a file's module: `["session", "jit", "codes"]`.
fn module_path(path: &Path) -> Vec<String> {
    let below = without_room(path).with_extension("");
    let mut parts: Vec<String> = below
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// The paths that begin with `crate`, `super` or `self` in a text; of groups in braces, each with its first word.
fn paths_in(text: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for first in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(first) {
            if text[..at].ends_with(|c: char| is_word(c) || c == ':') {
                continue;
            }
            let mut path = Vec::new();
            let mut rest = &text[at..];
            loop {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                if end == 0 {
                    break;
                }
                path.push(rest[..end].to_owned());
                rest = match rest[end..].strip_prefix("::") {
                    Some(more) => more,
                    None => break,
                };
            }
            let inside = rest.strip_prefix('{').filter(|_| !path.is_empty());
            match inside {
                Some(inside) => found.extend(first_words(inside).into_iter().map(|word| {
                    let mut whole = path.clone();
                    whole.push(word);
                    whole
                })),
                None => found.push(path),
            }
        }
    }
    found
}

/// The first word of each part of a group, up to its closing brace.
fn first_words(group: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                parts.last_mut().expect("one at least").push(c);
            }
        }
    }
    let word = |part: String| {
        let part = part.trim_start();
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
        part[..end.unwrap_or(part.len())].to_owned()
    };
    parts
        .into_iter()
        .map(word)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Which module of a folder imports which other: by the folder, then by the module's name.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn imports(files: &[(Vec<String>, String)]) -> Imports {
    let modules: BTreeSet<&[String]> = files.iter().map(|(module, _)| module.as_slice()).collect();
    let mut imports = Imports::new();
    for (own, text) in files {
        for path in paths_in(text) {
            let up = path.iter().take_while(|part| *part == "super").count();
            let mut target: Vec<String> = match path[0].as_str() {
                "crate" => Vec::new(),
                "self" => own.clone(),
                _ => own[..own.len().saturating_sub(up)].to_vec(),
            };
            target.extend(path.into_iter().skip(up.max(1)));
            while !target.is_empty() && !modules.contains(target.as_slice()) {
                target.pop();
            }
            let common = own.iter().zip(&target).take_while(|(a, b)| a == b).count();
            // A folder and what is in it may know each other; whole stages have an order of their own.
            if common > 0 && common < own.len() && common < target.len() {
                let of_folder = imports.entry(own[..common].join("::")).or_default();
                let of_module = of_folder.entry(own[common].clone()).or_default();
                of_module.insert(target[common].clone());
            }
        }
    }
    imports
}

/// What a module leads to by its imports and theirs.
fn reached<'i>(imports: &'i BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'i str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    reached
}

/// The modules of each folder that lead to themselves, those that lead to each other together: they can only be understood
/// together.
fn rings(imports: &Imports) -> BTreeSet<(String, Vec<String>)> {
    let mut rings = BTreeSet::new();
    for (folder, modules) in imports {
        for module in modules.keys() {
            let there = reached(modules, module);
            let back = |other: &&str| reached(modules, other).contains(module.as_str());
            let ring: Vec<String> = there
                .iter()
                .copied()
                .filter(back)
                .map(str::to_owned)
                .collect();
            if there.contains(module.as_str()) {
                rings.insert((folder.clone(), ring));
            }
        }
    }
    rings
}

#[test]
fn no_stage_has_rings_inside() {
    let is_test = |path: &Path| {
        let name = path.to_string_lossy();
        name.ends_with("tests.rs")
            || name.ends_with("testing.rs")
            || path.iter().any(|part| part == "tests")
    };
    let production = files("src").into_iter().filter(|path| !is_test(path));
    let texts: Vec<(Vec<String>, String)> = production
        .map(|path| {
            let lines: Vec<String> = code(&path).into_iter().map(|(_, line)| line).collect();
            (module_path(&path), lines.join("\n"))
        })
        .collect();
    let imports = imports(&texts);
    assert!(imports.len() > 20, "imports are not found any more");
    let rings = rings(&imports).into_iter();
    let told = rings.map(|(folder, ring)| format!("{folder}: {}", ring.join(", ")));
    none(told.collect(), "modules that import each other in a ring");
}

#[test]
fn rings_are_found() {
    let module = |path: &str, text: &str| {
        let path = path.split('/').map(str::to_owned).collect();
        (path, text.to_owned())
    };
    let files = [
        module("a", "use self::b::x; mod b;"),
        module("a/b", "use super::{T, c::{self, d}, e};"),
        module("a/c", "fn f() { crate::a::e::g() }"),
        module("a/c/d", "use super::super::b;"),
        module("a/e", "use super::T;"),
    ];
    let expected = ("a".to_owned(), vec!["b".to_owned(), "c".to_owned()]);
    assert_eq!(rings(&imports(&files)), BTreeSet::from([expected]));
}

/// Lines of files that are not below one of `allowed` and contain one of `words`.
fn offenders(words: &[&str], allowed: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files("src") {
        let is_test =
            path.to_string_lossy().ends_with("tests.rs") || path.iter().any(|part| part == "tests");
        if is_test || allowed.iter().any(|a| path.starts_with(a)) {
            continue;
        }
        for (number, line) in code(&path) {
            if words.iter().any(|w| line.contains(w)) {
                found.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    found
}

/// The same of files below a folder.
fn offenders_in(folder: &str, words: &[&str]) -> Vec<String> {
    let found = offenders(words, &[]).into_iter();
    found.filter(|line| line.starts_with(folder)).collect()
}

fn none(found: Vec<String>, rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = ["src", "tests", "benches"]
        .into_iter()
        .filter(|f| Path::new(env!("CARGO_MANIFEST_DIR")).join(f).is_dir())
        .flat_map(files)
        .filter(|p| !read(p).starts_with("//!"))
        .map(|p| p.display().to_string())
        .collect();
    none(silent, "these do not begin with //!");
}

#[test]
fn only_the_command_line_knows_clap() {
    none(
        offenders(
            &["clap::", "clap_complete::", "clap_mangen::"],
            &["src/cli", "src/main.rs"],
        ),
        "clap outside src/cli",
    );
}

/// What a recording or a user names is opened by `src/input` alone. The rest are fixed places of the running system.
#[test]
fn only_input_touches_the_file_system() {
    let words = [
        "std::fs",
        "File::open",
        "File::create",
        "OpenOptions",
        "read_dir(",
        ".is_file()",
        ".exists()",
        ".canonicalize(",
    ];
    let system = [
        // The running kernel's identity.
        "/sys/kernel/notes",
        "/proc/sys/kernel/osrelease",
        // Its vdso.
        "/proc/self/maps",
        "/proc/self/mem",
        // Whether a stream waits.
        "/dev/stdin",
        // Only asked whether it is there; opened by src/input.
        "Path::new(\"perf.data\").exists()",
    ];
    // The last ones write what they record and are told by the system what runs, and put away what a client left in its cache.
    let rooms = [
        "src/input",
        "src/cli",
        "src/main.rs",
        "src/record/run",
        "src/record/fetch/cache.rs",
    ];
    let mut found = offenders(&words, &rooms);
    found.extend(offenders_in("src/input/find", &words));
    let found = found
        .into_iter()
        .filter(|l| !system.iter().any(|s| l.contains(s)));
    none(found.collect(), "file system outside src/input");
    // std does not ask for it where the C library is musl, as in packages: `input::born` does.
    none(offenders(&[".created()"], &[]), "when a file was made");
}

/// Where files may be is known in one room. Whoever opens a file needs a door for it, so no door is made elsewhere; and names of
/// places in strings are not put together elsewhere.
#[test]
fn only_find_knows_where_files_may_be() {
    // The recording and its parts, and files that are the question itself.
    let questions = [
        "src/formats/perfdata/open.rs",
        "src/cli/jitdump.rs",
        "src/cli/perfconfig.rs",
    ];
    let doors = offenders(
        &["Door::", ".with_path("],
        &[&["src/input"], &questions[..]].concat(),
    );
    none(doors, "a door made outside src/input/find");
    let made = offenders_in("src/input/find", &["Door::"]);
    assert!(made.len() > 10);
    let names = [
        "\".build-id",
        "/.build-id",
        "usr/lib/debug",
        "\".debug\"",
        ".dwz",
        ".dwp\"",
        "\"jit-",
        ".dump\"",
        "\"perf-",
        "/perf-",
        ".map\"",
        "\"/tmp",
        "\"kallsyms",
        "/vmlinux",
        "vmlinux-",
        "\"root\"",
    ];
    let of_find = offenders_in("src/input/find", &names);
    for name in names {
        let is_known = of_find.iter().any(|line| line.contains(name));
        assert!(is_known, "not known to src/input/find: {name}");
    }
    // Names of options, advice, text, and what runtimes call their dumps.
    let words = [
        "src/cli",
        "src/load/check",
        "src/output",
        "src/base/runtimes/dump_names.rs",
    ];
    let found = offenders(&names, &[&["src/input"], &words[..]].concat());
    none(found, "a place of a file named outside src/input/find");
}

/// What a recording says is never a reason to run something.
#[test]
fn programs_are_started_in_one_room() {
    let words = [
        "process::Command",
        "Command::new(",
        ".spawn()",
        "pre_exec",
        "posix_spawn",
        "libc::fork",
    ];
    // What `record` is asked for, the one program that asks servers, the pager, and the browser of `--open`.
    let rooms = [
        "src/record/run",
        "src/record/fetch/client.rs",
        "src/cli/terminal.rs",
        "src/cli/browser.rs",
    ];
    let found = offenders(&words, &rooms).into_iter();
    // Threads.
    let found = found.filter(|line| !line.contains("thread"));
    none(
        found.collect(),
        "a program started outside src/record/run and src/record/fetch",
    );
    let plan = ["std::fs", "std::env", "std::process", "SystemTime::now"];
    none(
        offenders_in("src/record/plan", &plan),
        "a plan that looks at the machine",
    );
}

#[test]
fn nothing_but_main_prints_or_exits() {
    let words = [
        "println!",
        "eprintln!",
        "process::exit",
        "std::io::stdout",
        "std::io::stderr",
    ];
    none(
        offenders(&words, &["src/main.rs", "src/cli"]),
        "printing outside main",
    );
}

/// Views and writers.
const VIEWS: [&str; 2] = ["src/views/", "src/output/"];

#[test]
fn views_see_only_the_profile() {
    let words = [
        "crate::perfdata",
        "crate::collect",
        "crate::load",
        "crate::jitdump",
        "crate::dso::",
        "crate::session",
        "crate::unwind",
        "crate::symbolize",
        "crate::input",
        "crate::find",
        "object::",
        "gimli::",
        "addr2line::",
    ];
    let found = offenders(&words, &[]);
    let views: Vec<_> = found
        .into_iter()
        .filter(|l| VIEWS.iter().any(|view| l.starts_with(view)))
        // Prints no profile but a dump.
        .filter(|l| !l.starts_with("src/output/jitdump.rs"))
        .collect();
    none(views, "a view that reads");
}

#[test]
fn each_format_has_one_home() {
    none(
        offenders(&["memmap2::"], &["src/input"]),
        "mapping files outside src/input",
    );
    none(
        offenders(
            &["linux_perf_data::", "linux_perf_event_reader::"],
            &["src/formats/perfdata"],
        ),
        "perf.data crates outside src/formats/perfdata",
    );
    none(
        offenders(
            &["rustc_demangle::", "cpp_demangle::"],
            &["src/names/symbolize", "src/formats/dso"],
        ),
        "demangling outside src/names/symbolize",
    );
}
