//! Places of a bundle by its source map: `samples/typescript`, against node's own reader of maps, and what is said of maps that do not
//! fit; what the TypeScript compiler of npm writes, recorded here.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{copy_folder, modules, perf, pjit, sample, skip, stdout_of};

const PROGRAM: &str = "symfs/tmp/pjit-sample/typescript";

/// Standard output and errors of a view of a folder with a recording.
fn view(folder: &Path, options: &[&str]) -> (String, String) {
    let mut command = pjit();
    command
        .args(options)
        .arg("-i")
        .arg(folder.join("perf.data"));
    // What was recorded here has its files where they were.
    if folder.join("symfs").exists() {
        command.arg("--symfs").arg(folder.join("symfs"));
    }
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy_folder(&sample("typescript", ""), folder.path());
    folder
}

/// Lines of the report by samples.
fn lines(folder: &Path) -> Vec<(u32, String)> {
    let options = [
        "report",
        "--stdio",
        "--no-children",
        "-g",
        "none",
        "-n",
        "-s",
        "srcline",
    ];
    let text = view(folder, &options).0;
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, samples, place] = words[..] else {
            return None;
        };
        Some((samples.parse().ok()?, place.to_owned()))
    };
    rows.filter_map(row).collect()
}

#[test]
fn lines_are_those_of_the_original() {
    let folder = sample("typescript", "");
    let found = lines(&folder);
    let of = |file: &str| -> u32 {
        let own = found.iter().filter(|(_, place)| place.starts_with(file));
        own.map(|(samples, _)| samples).sum()
    };
    assert_eq!((of("primes.ts:"), of("app.js:")), (23, 0), "{found:?}");
    // The loops of `countPrimes`.
    for (_, place) in found
        .iter()
        .filter(|(_, place)| place.starts_with("primes.ts:"))
    {
        let line: u32 = place["primes.ts:".len()..].parse().expect("a number");
        assert!((5..=11).contains(&line), "{place}");
    }
}

/// Samples of the innermost frames by file and line in the export for the Firefox Profiler.
fn lines_in_firefox(folder: &Path) -> Vec<(u32, String)> {
    let file = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    let path = file.path().to_str().expect("UTF-8");
    view(folder, &["export", "--force-output", "-o", path]);
    let text = fs::read_to_string(path).expect("it was written");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let shared = &answer["shared"];
    let at = |table: &str, column: &str, row: &serde_json::Value| {
        let row = row.as_u64().map(|row| row as usize);
        row.map_or(serde_json::Value::Null, |row| {
            shared[table][column][row].clone()
        })
    };
    let mut lines = std::collections::BTreeMap::new();
    for stack in answer["threads"][0]["samples"]["stack"]
        .as_array()
        .expect("samples")
    {
        let frame = at("stackTable", "frame", stack);
        let source = at("funcTable", "source", &at("frameTable", "func", &frame));
        let name = at("sources", "filename", &source);
        let name = name
            .as_u64()
            .map(|name| shared["stringArray"][name as usize].clone());
        let line = at("frameTable", "line", &frame);
        if let (Some(name), Some(line)) = (name, line.as_u64()) {
            let name = name
                .as_str()
                .expect("a path")
                .rsplit('/')
                .next()
                .map(str::to_owned);
            *lines
                .entry(format!("{}:{line}", name.unwrap_or_default()))
                .or_insert(0) += 1;
        }
    }
    lines
        .into_iter()
        .map(|(place, samples)| (samples, place))
        .collect()
}

/// The profiler shows the lines that a report shows.
#[test]
fn the_firefox_export_has_the_original_lines() {
    let folder = sample("typescript", "");
    let of_sources = |lines: Vec<(u32, String)>| {
        let mut lines: Vec<_> = lines
            .into_iter()
            .filter(|(_, place)| place.contains(".ts:"))
            .collect();
        lines.sort();
        lines
    };
    let reported = of_sources(lines(&folder));
    assert_eq!(of_sources(lines_in_firefox(&folder)), reported);
    let primes = reported
        .iter()
        .filter(|(_, place)| place.starts_with("primes.ts:"));
    assert_eq!(primes.count(), 4);
}

#[test]
fn annotate_shows_the_original() {
    let folder = copy();
    let sources = folder.path().join(PROGRAM).join("src");
    let source = fs::read_to_string(sources.join("primes.ts")).expect("the source is there");
    let line = source.lines().nth(10).expect("line 11").trim();
    let shown = format!(": 11           {line}");
    let annotate = || view(folder.path(), &["annotate", "-l", "JS:*u"]).0;
    let text = annotate();
    assert!(
        text.contains(&shown) && text.contains("   30.43 primes.ts:11\n"),
        "{text}"
    );
    // The map brings the text along.
    fs::remove_dir_all(&sources).expect("removed");
    assert_eq!(annotate(), text);
}

#[test]
fn maps_of_other_scripts_are_not_used() {
    let folder = copy();
    let script = folder.path().join(PROGRAM).join("dist/app.js");
    fs::write(&script, "f()\n//# sourceMappingURL=app.js.map\n").expect("written");
    let options = ["report", "--stdio", "-s", "srcline"];
    let (out, said) = view(folder.path(), &options);
    assert!(
        out.contains("app.js:1") && !out.contains("primes.ts"),
        "{out}"
    );
    assert!(
        said.contains("app.js: not the script that ran")
            || said.contains("app.js: not the text that ran"),
        "{said}"
    );
    fs::remove_file(&script).expect("removed");
    fs::remove_file(script.with_file_name("app.js.map")).expect("removed");
    assert!(view(folder.path(), &options).0.contains("app.js:1"));
}

/// Another version at the recorded path says nothing of what ran, nor does its map; the version that ran does, wherever it is.
#[test]
fn scripts_that_were_built_again_give_no_names() {
    let folder = copy();
    let dist = folder.path().join(PROGRAM).join("dist");
    let kept = tempfile::tempdir().expect("a folder");
    copy_folder(&dist, kept.path());
    let script = dist.join("app.js");
    let text = fs::read_to_string(&script).expect("it is there");
    fs::write(&script, format!("function n(e){{return e}}{text}")).expect("written");
    for verb in [
        &["summary"][..],
        &["fold"],
        &["list", "u"],
        &["report", "-s", "sym,srcline"],
    ] {
        let (out, said) = view(folder.path(), verb);
        assert!(
            !out.contains("countPrimes") && !out.contains("primes.ts"),
            "{verb:?}: {out}"
        );
        let is_said = said.contains("app.js: not the");
        assert_eq!(is_said, verb != ["fold"], "{verb:?}: {said}");
    }
    let root = folder.path().join(PROGRAM);
    let list = ["list", "u", "--source-root", root.to_str().expect("UTF-8")];
    let (out, _) = view(folder.path(), &list);
    assert!(
        out.contains("app.js  (not shown: another text ran)"),
        "{out}"
    );
    let kept = kept.path().to_str().expect("UTF-8");
    let (out, said) = view(folder.path(), &["summary", "--source-map", kept]);
    assert!(out.contains("countPrimes primes.ts:2"), "{out}{said}");
    // A script without a map is read for its text only.
    fs::write(&script, "// Typed\nlet a = 1\n").expect("written");
    fs::remove_file(dist.join("app.js.map")).expect("removed");
    let (out, said) = view(folder.path(), &list);
    assert!(
        out.contains("(not shown: another text ran)") && !out.contains("Typed"),
        "{out}"
    );
    assert!(said.contains("app.js: not the"), "{said}");
}

/// The place behind a name: file, line, column.
fn place(name: &str) -> Option<(&str, u32, u32)> {
    let (_, place) = name.rsplit_once(' ')?;
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file, line.parse().ok()?, column.parse().ok()?))
}

/// `--source-map` changes the places in names to those that node finds for them. What runs the script keeps its own.
#[test]
fn names_have_the_places_that_node_finds() {
    let script = ["script", "-F", "ip,sym"];
    let maps = sample("typescript", &format!("{PROGRAM}/dist"));
    let with_maps = [
        &script[..],
        &["--source-map", maps.to_str().expect("a plain path")],
    ]
    .concat();
    let (plain, mapped) = (
        stdout_of(&script, "typescript"),
        stdout_of(&with_maps, "typescript"),
    );
    assert_eq!(plain.lines().count(), mapped.lines().count());
    let mut pairs = Vec::new();
    for (plain, mapped) in plain.lines().zip(mapped.lines()) {
        match (place(plain), place(mapped)) {
            (Some((file, line, column)), Some(place))
                if file.ends_with("/dist/app.js") && (line, column) != (1, 1) =>
            {
                pairs.push((line, column, format!("{}:{}:{}", place.0, place.1, place.2)));
            }
            _ => assert_eq!(plain, mapped),
        }
    }
    pairs.sort();
    pairs.dedup();
    assert!(pairs.len() >= 4, "{pairs:?}");
    for (line, column, ours) in pairs {
        let Some(theirs) = by_node(&maps.join("app.js.map"), line, column) else {
            return skip("browser", "no node here");
        };
        let theirs = theirs.replace("..", "/tmp/pjit-sample/typescript");
        assert_eq!(theirs, ours, "{line}:{column}");
    }
}

/// Functions that a minifier gave other names have their own again in what people read, and the recording's where perf's text is
/// promised.
#[test]
fn functions_have_the_names_of_the_original() {
    let summary = stdout_of(&["summary"], "typescript");
    for name in ["countPrimes primes.ts:2", "repeat app.ts:5"] {
        assert!(summary.contains(name), "{summary}");
    }
    let names = |verb: &[&str]| stdout_of(verb, "typescript");
    for verb in [
        &["peek", "countPrimes"][..],
        &["list", "countPrimes"],
        &["peek", "JS:*u"],
        &["export", "--format", "csv", "-o", "-"],
    ] {
        let text = names(verb);
        assert!(text.contains("countPrimes"), "{verb:?}: {text}");
    }
    for name in ["countPrimes", "JS:*u"] {
        let folder = sample("typescript", "");
        let (text, said) = view(&folder, &["annotate", name]);
        assert!(text.contains("JS:*countPrimes"), "{text}{said}");
    }
    for verb in [
        &["report", "--stdio", "-s", "sym"][..],
        &["fold"],
        &["script"],
    ] {
        let text = names(verb);
        assert!(!text.contains("countPrimes"), "{verb:?}");
        assert!(text.contains("JS:*u /tmp/pjit-sample"), "{verb:?}");
    }
    let maps = sample("typescript", &format!("{PROGRAM}/dist"));
    let maps = maps.to_str().expect("a plain path");
    let text = names(&["report", "--stdio", "-s", "sym", "--source-map", maps]);
    let name = "JS:*countPrimes /tmp/pjit-sample/typescript/src/primes.ts:2:17";
    assert!(text.contains(name), "{text}");
    let json = names(&["summary", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = answer["functions"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "countPrimes");
    let full = row.expect("it is there")["full"].as_str().expect("a text");
    assert!(full.starts_with("JS:*u /tmp"), "{full}");
}

/// One side without its map: names of the original and words of a minifier have nothing to say to each other.
#[test]
fn sides_are_compared_by_words_where_one_has_no_map() {
    let (with, without) = (copy(), copy());
    let map = |folder: &Path| folder.join(PROGRAM).join("dist/app.js.map");
    fs::remove_file(map(without.path())).expect("removed");
    let data = |folder: &tempfile::TempDir| folder.path().join("perf.data").display().to_string();
    let diff = |base: &tempfile::TempDir, new: &tempfile::TempDir| {
        let output = pjit()
            .args(["diff", "--by", "self", &data(base), &data(new)])
            .output()
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    for (base, new) in [(&with, &without), (&without, &with)] {
        let (out, said) = diff(base, new);
        assert!(out.contains(" u app.js:1"), "{out}");
        assert!(!out.contains("countPrimes"), "{out}");
        assert!(said.contains("dist/app.js has no source map"), "{said}");
    }
    let (out, said) = diff(&with, &with_other(&with));
    assert!(out.contains("countPrimes primes.ts:2"), "{out}");
    assert!(!said.contains("no source map"), "{said}");
}

/// The same recording in another folder, so that it counts as another one.
fn with_other(folder: &tempfile::TempDir) -> tempfile::TempDir {
    let other = tempfile::tempdir().expect("a folder");
    copy_folder(folder.path(), other.path());
    other
}

/// Where node finds a place of a script, by a map; the file as the map has it. Nothing without node.
fn by_node(map: &Path, line: u32, column: u32) -> Option<String> {
    let program = format!(
        "const {{SourceMap}} = require('module'), fs = require('fs'); \
         const at = new SourceMap(JSON.parse(fs.readFileSync('{}'))).findEntry({}, {}); \
         console.log(at.originalSource + ':' + (at.originalLine + 1) + ':' + (at.originalColumn + 1))",
        map.display(),
        line - 1,
        column - 1
    );
    let output = Command::new("node").args(["-e", &program]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What the compiler leaves out or writes otherwise moves lines: types, an enumeration, a class, a loop over values.
const PROGRAM_OF_TSC: &str = "interface Sized {
    size(): number;
}

enum Kind { Odd = 1, Even }

type Known = { [kind in Kind]?: number };

class Sums implements Sized {
    private known: Known = {};

    constructor(private readonly numbers: number[]) {}

    size(): number {
        return this.numbers.length;
    }

    count(factor: number): number {
        let sum = 0;
        for (const number of this.numbers) {
            sum = (sum * factor + number) % 1000003;
            sum += number % 2 ? Kind.Odd : Kind.Even;
        }
        this.known[Kind.Odd] = sum;
        return sum;
    }
}

const sums = new Sums(Array.from({ length: 1000 }, (_, n: number) => n * 7));
let all = 0;
for (let round = 0; round < 80000; round++)
    all += sums.count(round % 100) + sums.size();
console.log(all > 0);
";

/// The lines of `count`.
const COUNT: std::ops::RangeInclusive<u32> = 18..=26;

/// Compiles `src/app.ts` to `dist/app.js` with the map that `options` ask for. `false`: there is no compiler.
fn compile(folder: &Path, options: &[&str]) -> bool {
    let compiler = modules().join("typescript/bin/tsc");
    if !compiler.exists() {
        return false;
    }
    let common = ["--target", "es5", "--lib", "es2017,dom", "--outDir", "dist"];
    let output = Command::new("node")
        .current_dir(folder)
        .arg(compiler)
        .args(common)
        .args(options)
        .arg("src/app.ts")
        .output();
    output.is_ok_and(|output| output.status.success())
}

/// What the TypeScript compiler writes, as it is recorded: with a map beside the script, and with one inside of it.
#[test]
fn lines_of_what_tsc_compiled_are_those_of_the_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("src")).expect("made");
    fs::write(path("src/app.ts"), PROGRAM_OF_TSC).expect("written");
    if !compile(folder.path(), &["--sourceMap"]) {
        return skip(
            "typescript",
            "no node with npm's typescript in target/browser",
        );
    }
    // V8 writes names of files out of freed memory: that must not be filled here.
    let recorded = perf()
        .env_remove("MALLOC_PERTURB_")
        .env_remove("GLIBC_TUNABLES")
        .current_dir(folder.path())
        .args(
            "record -q -k mono -F 499 -e cpu-clock:u -o perf.data node --perf-prof dist/app.js"
                .split(' '),
        )
        .output();
    if !recorded.is_ok_and(|output| output.status.success()) {
        return skip("perf", "recording is not allowed here");
    }
    let beside = lines(folder.path());
    let is_ours = |place: &str| place.starts_with("app.ts:") || place.starts_with("app.js:");
    let number = |place: &str| place["app.ts:".len()..].parse::<u32>().expect("a number");
    let own: Vec<_> = beside.iter().filter(|row| is_ours(&row.1)).collect();
    let of = |rows: &[&(u32, String)]| rows.iter().map(|row| row.0).sum::<u32>();
    let is_in_count = |place: &str| place.starts_with("app.ts:") && COUNT.contains(&number(place));
    let in_count: Vec<_> = own
        .iter()
        .copied()
        .filter(|row| is_in_count(&row.1))
        .collect();
    assert!(of(&own) >= 50, "{beside:?}");
    assert!(of(&in_count) * 10 >= of(&own) * 9, "{beside:?}");
    names_are_those_of_node(folder.path());
    // The same code with the map inside of it, and no source but that in the map.
    fs::remove_file(path("dist/app.js.map")).expect("removed");
    assert!(compile(
        folder.path(),
        &["--inlineSourceMap", "--inlineSources"]
    ));
    assert!(!path("dist/app.js.map").exists());
    fs::remove_file(path("src/app.ts")).expect("removed");
    assert_eq!(lines(folder.path()), beside);
    let annotate = ["annotate", "--symbol-filter", "/dist/app.js", "--no-pager"];
    let (text, said) = view(folder.path(), &annotate);
    let line = "sum = (sum * factor + number) % 1000003;";
    assert!(text.contains(line), "{said}{text}");
}

/// `--source-map` shows functions of `dist/app.js` where node finds them.
fn names_are_those_of_node(folder: &Path) {
    let script = ["script", "-F", "ip,sym"];
    let maps = folder.join("dist");
    let with_maps = ["--source-map", maps.to_str().expect("a plain path")];
    let plain_text = view(folder, &script).0;
    let mapped_text = view(folder, &[&script[..], &with_maps].concat()).0;
    let mut pairs: Vec<_> = plain_text.lines().zip(mapped_text.lines()).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut compared = 0;
    for (plain, mapped) in pairs {
        let is_function =
            |at: &(&str, u32, u32)| at.0.ends_with("/dist/app.js") && (at.1, at.2) != (1, 1);
        let Some((_, line, column)) = place(plain).filter(is_function) else {
            continue;
        };
        let theirs = by_node(&folder.join("dist/app.js.map"), line, column).expect("node runs");
        let ours = place(mapped).expect("a place");
        let end = format!("src/app.ts:{}:{}", ours.1, ours.2);
        assert!(theirs.ends_with(&end), "{plain}: {mapped}, node {theirs}");
        compared += 1;
    }
    assert!(compared > 0, "{plain_text}");
}
