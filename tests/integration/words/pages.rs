//! Commands, outputs, links and paths in texts: they run, they are real, they lead somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::{read, root, texts};
use crate::support::{copy_folder, program};

/// A command, and the lines that are shown below it.
#[derive(Debug)]
struct Shown {
    place: String,
    command: String,
    /// Nothing if no output is shown.
    output: Vec<String>,
    /// Whether it is in a line of its own, and not within a sentence, where words stand for others.
    is_whole: bool,
}

/// The commands of a text: in blocks, and in `code` within sentences.
fn commands(path: &Path) -> Vec<Shown> {
    let text = read(path);
    let mut found: Vec<Shown> = Vec::new();
    let (mut fence, mut shows) = (None, false);
    for (number, line) in text.lines().enumerate() {
        let place = format!("{}:{}", path.display(), number + 1);
        let fenced = line.strip_prefix("```");
        if let Some(language) = fenced {
            fence = fence.is_none().then(|| language.to_owned());
            shows = false;
            continue;
        }
        let indented = line.strip_prefix("    ");
        let is_block = fence.is_some() || indented.is_some();
        let bare = if fence.is_some() {
            line
        } else {
            indented.unwrap_or(line)
        };
        if !is_block {
            // A blank line may be within an indented block.
            shows &= line.is_empty();
            for code in line
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|code| code.starts_with("pjit ") && !is_name(code))
            {
                let (command, output) = (code.to_owned(), Vec::new());
                found.push(Shown {
                    place: place.clone(),
                    command,
                    output,
                    is_whole: false,
                });
            }
            continue;
        }
        let command = bare
            .strip_prefix("$ ")
            .or_else(|| bare.starts_with("pjit ").then_some(bare));
        match command {
            Some(command) => {
                shows = bare.starts_with("$ ");
                let command = command
                    .split("  #")
                    .next()
                    .unwrap_or(command)
                    .trim()
                    .to_owned();
                found.push(Shown {
                    place,
                    command,
                    output: Vec::new(),
                    is_whole: true,
                });
            }
            None if shows => {
                let last = found.last_mut().expect("a command before its output");
                last.output.push(bare.to_owned());
            }
            None => {}
        }
    }
    found
}

/// A verb alone is a name in a sentence; these do something without more words.
fn is_name(code: &str) -> bool {
    let more = code.split_whitespace().skip(1);
    let needs_more = [
        "diff",
        "gate",
        "record",
        "--offcpu",
        "--alloc",
        "--live",
        "--metrics",
        "--files",
    ];
    more.clone().all(|word| needs_more.contains(&word))
}

/// A folder in which all files are that the texts speak of.
fn desk(folder: &Path) {
    let sample = root().join("samples/node");
    copy_folder(&root().join("samples"), &make(folder, "samples"));
    copy_folder(&sample, folder);
    for name in ["server", "foreign", "DIR", "roots/web", "roots/db"] {
        copy_folder(&sample, &make(folder, name));
    }
    let recording = sample.join("perf.data");
    let copy = |path: PathBuf| {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::copy(&recording, path).expect("copied");
    };
    std::fs::copy("/bin/true", folder.join("app")).expect("copied");
    for name in ["before", "after", "old", "new", "b1", "b2", "n1", "n2", "a"] {
        copy(folder.join(format!("{name}.data")));
    }
    for name in [
        "base/1",
        "base/2",
        "base/3",
        "new/1",
        "new/2",
        "new/3",
        "runs/web-1/2026-11-20",
        "runs/x",
    ] {
        copy(folder.join(format!("{name}.data")));
    }
}

fn make(folder: &Path, name: &str) -> PathBuf {
    let made = folder.join(name);
    std::fs::create_dir_all(&made).expect("made");
    made
}

/// The command as it can be run here: nothing is recorded, words stand for what is there, programs that are not are left out.
fn runnable(command: &str) -> String {
    let own = std::process::id().to_string();
    let mut text = command.to_owned();
    for (word, stands_for) in [
        ("BASE... --to NEW...", "base/ --to new/"),
        ("BASE NEW", "before.data after.data"),
        ("--base 'OLD COMMAND' -- NEW COMMAND", "--base true -- true"),
        ("--base 'OLD' -- NEW", "--base true -- true"),
        ("-- SERVER", "-- true"),
        ("'COMMAND'", "true"),
        ("-- COMMAND", "-- true"),
        ("--again DIR", "--dry-run -- true"),
        ("FUNCTION", "fibonacci"),
        ("NAME", "fibonacci"),
        ("4711", &own),
        ("jitdump FILE", "jitdump jit-17065.dump"),
        ("VERB", "summary"),
        ("-o DIR --", "-o made --"),
    ] {
        text = text.replace(word, stands_for);
    }
    let records = text
        .strip_prefix("pjit record")
        .filter(|_| !text.contains("--doctor"));
    if let Some(rest) = records.filter(|rest| !rest.contains("--dry-run")) {
        text = format!("pjit record --dry-run{rest}");
    }
    // No server is there.
    if let Some(rest) = text.strip_prefix("pjit fetch") {
        text = format!("pjit fetch --dry-run{}", rest.replace(" --dry-run", ""));
    }
    // It would not end, and has neither the address nor the token of the text.
    if text.starts_with("pjit serve ") {
        let here = text.split(" --listen ").next().unwrap_or_default();
        text = format!("timeout --preserve-status -s INT 1 {here} --listen 127.0.0.1:0");
    }
    if let Some((before, rest)) = text.split_once(" -- ") {
        let first = rest.split_whitespace().next().unwrap_or_default();
        if !first.contains('/') && program(first).is_none() {
            text = format!("{before} -- true");
        }
    }
    let is_here = |part: &str| {
        let name = part.split_whitespace().next().unwrap_or("");
        name == "pjit" || program(name).is_some()
    };
    for joint in [" && ", "; ", " | "] {
        let parts: Vec<&str> = text.split(joint).collect();
        let here = parts.iter().take_while(|part| is_here(part)).count();
        text = parts[..here].join(joint);
    }
    text
}

/// Runs all commands of the texts, several at a time; says what is wrong with each.
fn wrong_commands(shown: &[Shown], folder: &Path) -> Vec<String> {
    let binaries = Path::new(env!("CARGO_BIN_EXE_pjit"))
        .parent()
        .expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", binaries.display());
    let next = Mutex::new(shown.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(one) = next.lock().expect("unharmed").next() else {
                        return;
                    };
                    let command = runnable(&one.command);
                    let output = Command::new("sh")
                        .args(["-c", &command])
                        .current_dir(folder)
                        .env_clear()
                        .env("PATH", &path)
                        .env("HOME", folder)
                        .env("BROWSER", "true")
                        .stdin(std::process::Stdio::null())
                        .output()
                        .expect("a shell");
                    let out = String::from_utf8_lossy(&output.stdout);
                    let said = String::from_utf8_lossy(&output.stderr);
                    let status = output.status.code().unwrap_or(-1);
                    let decides = ["pjit gate", "pjit check"]
                        .iter()
                        .any(|verb| command.starts_with(verb));
                    let is_right = match status {
                        0 => true,
                        3 | 4 => decides,
                        // Words in a sentence stand for names that are not in every recording.
                        1 => !one.is_whole,
                        // Nothing can be recorded on this machine.
                        125 => program("perf").is_none(),
                        // This pjit has no dataset.
                        2 => {
                            !cfg!(feature = "dataset")
                                && command.contains("--format parquet")
                                && said.contains("--features dataset")
                        }
                        _ => false,
                    };
                    let missing = missing_from(&out, &one.output);
                    if !is_right || missing.is_some() {
                        let missing =
                            missing.map(|lines| format!("it does not print\n{lines}\nbut\n{out}"));
                        wrong.lock().expect("unharmed").push(format!(
                            "{}: {command}: status {status}: {said}{}",
                            one.place,
                            missing.unwrap_or_default()
                        ));
                    }
                }
            });
        }
    });
    wrong.into_inner().expect("unharmed")
}

/// The first lines of `shown` that do not stand one below the other in `out`; `…` stands for any lines.
fn missing_from(out: &str, shown: &[String]) -> Option<String> {
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    let mut begin = 0;
    for part in shown.split(|line| line.trim() == "…") {
        let end = part.iter().rposition(|line| !line.trim().is_empty());
        let part: Vec<&str> = part[..end.map_or(0, |last| last + 1)]
            .iter()
            .map(|line| line.trim_end())
            .collect();
        if part.is_empty() {
            continue;
        }
        let found = lines[begin..]
            .windows(part.len())
            .position(|window| window == part);
        match found {
            Some(at) => begin += at + part.len(),
            None => return Some(part.join("\n")),
        }
    }
    None
}

#[test]
fn lines_that_are_missing_are_told() {
    let shown = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let out = "a\nb\nc\nd\n";
    assert_eq!(missing_from(out, &shown("a\n…\nc\nd")), None);
    assert_eq!(missing_from(out, &shown("…\nb\n…")), None);
    assert_eq!(missing_from(out, &shown("a\nc")), Some("a\nc".to_owned()));
    assert_eq!(missing_from(out, &shown("c\n…\na")), Some("a".to_owned()));
}

#[test]
fn commands_of_all_texts_run_and_print_what_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    desk(folder.path());
    let mut all: Vec<Shown> = Vec::new();
    for path in texts() {
        if path == Path::new("CHANGELOG.md") {
            continue;
        }
        all.extend(commands(&path));
    }
    let whole = all.iter().filter(|one| one.is_whole).count();
    let with_output = all.iter().filter(|one| !one.output.is_empty()).count();
    assert!(whole > 50 && with_output > 8, "{whole} {with_output}");
    let mut seen = BTreeSet::new();
    // One at a place is enough, if no output is shown.
    all.retain(|one| !one.output.is_empty() || seen.insert(one.command.clone()));
    let wrong = wrong_commands(&all, folder.path());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Links within the project, with their headings.
#[test]
fn links_lead_to_files_and_headings() {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").expect("valid");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in texts() {
        let text = read(&path);
        for target in link
            .captures_iter(&text)
            .map(|found| found.get(1).expect("a target").as_str())
        {
            if target.starts_with("http") {
                continue;
            }
            seen += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().expect("a folder");
            let file = if file.is_empty() {
                path.clone()
            } else {
                folder.join(file)
            };
            let is_there = root().join(&file).exists();
            let anchors = || -> Vec<String> {
                let text = read(&file);
                let headings = text.lines().filter(|line| line.starts_with('#'));
                headings.map(anchor).collect()
            };
            if !is_there || !heading.is_empty() && !anchors().contains(&heading.to_owned()) {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(seen > 50, "links are not found any more: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As forges make it of a heading.
fn anchor(heading: &str) -> String {
    let bare = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = bare
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().replace(' ', "-")
}

/// Folders whose files texts name.
const FOLDERS: [&str; 9] = [
    "src/",
    "docs/",
    "tests/",
    "scripts/",
    "samples/",
    "benches/",
    "examples/",
    "fuzz/",
    ".ci/",
];

/// What `cargo package` packs, with its folders.
fn packaged() -> Option<BTreeSet<PathBuf>> {
    let output = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).expect("UTF-8");
    let files = list.lines().map(Path::new);
    Some(
        files
            .flat_map(Path::ancestors)
            .map(Path::to_owned)
            .collect(),
    )
}

/// Words of a text that name files of the project.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "`\"'()[],;<>".contains(c);
    let words = text
        .split(ends)
        .map(|word| word.trim_end_matches(['.', ':']));
    words.filter(|word| {
        let is_path = FOLDERS.iter().any(|folder| word.starts_with(folder));
        is_path && !word.contains(['*', '…', '{'])
    })
}

/// README, pages, help, man pages and messages name files that the package has.
#[test]
fn paths_in_texts_are_in_the_package() {
    let Some(packaged) = packaged() else {
        return crate::support::skip("rustc", "cargo cannot list the package");
    };
    let mut all: Vec<(String, String)> = Vec::new();
    for path in texts() {
        if path != Path::new("CHANGELOG.md") {
            all.push((path.display().to_string(), read(&path)));
        }
    }
    all.extend(super::help::pages());
    all.push((
        "messages".to_owned(),
        read(Path::new("tests/data/messages.txt")),
    ));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (place, text) in &all {
        // A file of the reader's, or one that a command writes.
        let is_other = |word: &str| word == "src/app.ts" || text.contains(&format!("-o {word}"));
        for word in named(text) {
            seen += 1;
            if !packaged.contains(Path::new(word)) && !is_other(word) {
                wrong.push(format!("{place}: {word}"));
            }
        }
    }
    assert!(seen > 80, "paths are not found any more: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A package for a system has none of these files: what it prints names none.
#[test]
fn help_names_no_files_of_the_project() {
    for (place, text) in super::help::pages() {
        let found: Vec<&str> = named(&text).collect();
        assert!(found.is_empty(), "{place}: {found:?}");
    }
}

/// Five recipes, each with a commit of this history.
#[test]
fn recipes_name_files_and_a_commit() {
    let text = read(Path::new("CONTRIBUTING.md"));
    assert!(text.lines().count() <= 150);
    let (_, recipes) = text.split_once("## Recipes").expect("recipes");
    let recipes = recipes.split("\n## ").next().unwrap_or_default();
    for what in [
        "A sort key",
        "A runtime",
        "An export format",
        "A verb",
        "A line of `check`",
    ] {
        let (_, recipe) = recipes
            .split_once(&format!("**{what}**"))
            .unwrap_or_else(|| panic!("{what}"));
        let recipe = recipe.split("\n**").next().unwrap_or_default();
        assert!(recipe.trim_start().starts_with("(\""), "{what}: no commit");
        assert!(recipe.matches("`src/").count() >= 3, "{what}: {recipe}");
    }
}

/// The version that is built has a heading, or is not released yet.
#[test]
fn the_changelog_knows_the_version() {
    let text = read(Path::new("CHANGELOG.md"));
    let headings: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    let first = headings.first().copied().unwrap_or_default();
    assert!(
        first == "Unreleased" || first.starts_with(version),
        "{headings:?}"
    );
}
