//! Places of a bundle by its source map: `samples/typescript`, against node's own reader of maps, and what is said of maps that do not
//! fit.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{copy_folder, pjit, sample, skip, stdout_of};

const PROGRAM: &str = "symfs/tmp/pjit-sample/typescript";

/// Standard output and errors of a view of a folder with a recording.
fn view(folder: &Path, options: &[&str]) -> (String, String) {
    let output = pjit()
        .args(options)
        .arg("-i")
        .arg(folder.join("perf.data"))
        .arg("--symfs")
        .arg(folder.join("symfs"))
        .output()
        .expect("it runs");
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
        said.contains("has places that the script has not"),
        "{said}"
    );
    fs::remove_file(&script).expect("removed");
    fs::remove_file(script.with_file_name("app.js.map")).expect("removed");
    assert!(view(folder.path(), &options).0.contains("app.js:1"));
}

/// The place behind a name: file, line, column.
fn place(name: &str) -> Option<(&str, u32, u32)> {
    let (_, place) = name.rsplit_once(' ')?;
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file, line.parse().ok()?, column.parse().ok()?))
}

/// `--source-map` changes the places in names to those that node finds for them, and nothing else.
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
            (Some((file, line, column)), Some(place)) if file.ends_with("/dist/app.js") => {
                pairs.push((line, column, format!("{}:{}:{}", place.0, place.1, place.2)));
            }
            _ => assert_eq!(plain, mapped),
        }
    }
    pairs.sort();
    pairs.dedup();
    assert!(pairs.len() >= 4, "{pairs:?}");
    for (line, column, ours) in pairs {
        let program = format!(
            "const {{SourceMap}} = require('module'), fs = require('fs'); \
             const at = new SourceMap(JSON.parse(fs.readFileSync('{}/app.js.map'))).findEntry({}, {}); \
             console.log(at.originalSource.replace('..', '/tmp/pjit-sample/typescript') + ':' + \
             (at.originalLine + 1) + ':' + (at.originalColumn + 1))",
            maps.display(),
            line - 1,
            column - 1
        );
        match Command::new("node").args(["-e", &program]).output() {
            Ok(output) => {
                assert_eq!(
                    String::from_utf8_lossy(&output.stdout).trim(),
                    ours,
                    "{line}:{column}"
                );
            }
            Err(_) => return skip("browser", "no node here"),
        }
    }
}
