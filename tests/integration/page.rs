//! The page of `pjit flamegraph` in a real browser: what it shows, that it answers keys and clicks, and asks nobody for anything.
//!
//! Needs Chromium (Debian: `chromium-headless-shell`), node, and npm's `puppeteer-core` in `target/browser`; skipped
//! without them, but not in CI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{chromium, modules, pjit, program, sample, skip, stdout_of, twice_of};

/// Where the browser and its driver are.
pub(crate) struct Browser {
    chromium: PathBuf,
    modules: PathBuf,
}

impl Browser {
    pub(crate) fn find() -> Option<Self> {
        let chromium = chromium();
        let modules = modules();
        let found = chromium
            .filter(|_| modules.join("puppeteer-core").is_dir() && program("node").is_some())
            .map(|chromium| Self { chromium, modules });
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(found.is_some() || !is_ci, "CI has no browser: see .ci/run");
        if found.is_none() {
            skip(
                "browser",
                "no chromium-headless-shell, node or puppeteer-core",
            );
        }
        found
    }

    /// Does the steps on a page; the answer is what `see` saw.
    pub(crate) fn drive(&self, page: &Path, steps: &[&str]) -> Vec<Value> {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/drive.js");
        let output = Command::new("node")
            .arg(driver)
            .arg(&self.chromium)
            .arg(page)
            .args(steps)
            .env("NODE_PATH", &self.modules)
            .output()
            .expect("node runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{steps:?}: {errors}");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(answer["errors"], Value::Array(Vec::new()), "{steps:?}");
        let file = format!("file://{}", page.display());
        for request in answer["requests"].as_array().expect("a list") {
            let url = request.as_str().expect("text").split('#').next();
            assert!(
                url == Some(&file) || url == Some("about:blank"),
                "{request}"
            );
        }
        answer["seen"].as_array().expect("a list").clone()
    }
}

fn page(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let path = folder.join(format!("{name}.html"));
    let output = pjit()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("flamegraph")
        .args(["--symfs", &format!("samples/{name}/symfs")])
        .arg(format!("samples/{name}/perf.data"))
        .arg("-o")
        .arg(&path)
        .args(options)
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    path
}

/// Shares in hundredths of a per cent with names, the largest first.
fn flat(name: &str) -> Vec<(i64, String)> {
    let options = "report --no-inline --no-children -g none -s sym";
    let words: Vec<&str> = options.split(' ').collect();
    let report = stdout_of(&words, name);
    let rows = report.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| {
        let (share, symbol) = row.trim().split_once('%')?;
        let share: f64 = share.parse().ok()?;
        let symbol = symbol.trim().split_once(' ')?.1;
        Some(((share * 100.0).round() as i64, symbol.to_owned()))
    })
    .collect()
}

fn number(seen: &Value, key: &str) -> f64 {
    let text = seen[key].as_str().unwrap_or_default();
    text.parse()
        .unwrap_or_else(|_| panic!("{key}: {text:?} in {seen}"))
}

#[test]
fn totals_and_hottest_functions_are_those_of_report() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["node", "native", "wasmtime", "minijit"] {
        let page = page(folder.path(), name, &["--no-inline", "--tiers"]);
        let seen = browser.drive(&page, &["see"]);
        let report = stdout_of(&["report", "--no-children", "-g", "none"], name);
        let total = crate::support::event_count(&report);
        assert_eq!(number(&seen[0], "total"), total as f64, "{name}");
        let top: Vec<(String, f64)> =
            serde_json::from_str(seen[0]["top"].as_str().expect("text")).expect("JSON");
        let rows = flat(name);
        assert_eq!(top.len(), rows.len().min(5), "{name}");
        for ((function, weight), (share, _)) in top.iter().zip(&rows) {
            assert_eq!(
                (weight * 10_000.0 / total as f64).round() as i64,
                *share,
                "{name}"
            );
            let same = rows.iter().filter(|row| row.0 == *share);
            let mut names = same.map(|row| &row.1);
            assert!(names.any(|symbol| symbol == function), "{name}: {function}");
        }
    }
}

/// Frames have clean names and the colours that were chosen; what the recording calls them is told below.
#[test]
fn colours_tell_packages_or_activities() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "node", &["--color-by", "package"]);
    let steps = [
        "see",
        "select:#color=activity",
        "see",
        "key:/",
        "type:JS:.matMul",
        "key:Enter",
        "see",
        "hash:c=kind",
        "see",
    ];
    let seen = browser.drive(&page, &steps);
    let legend = |at: usize| -> Vec<&str> {
        let entries = seen[at]["legend"].as_array().expect("a list").iter();
        entries.filter_map(Value::as_str).collect()
    };
    assert_eq!(legend(0), ["hot.js (own)", "no package"]);
    assert!(legend(1).contains(&"optimised code"), "{:?}", legend(1));
    assert!(legend(3).contains(&"JIT"), "{:?}", legend(3));
    assert_eq!(seen[1]["hash"], "#c=activity");
    let detail = seen[2]["detail"].as_str().expect("text");
    assert!(detail.starts_with("matMul hot.js:9 "), "{detail}");
    assert!(
        detail.contains("hot.js (own): optimised code · total "),
        "{detail}"
    );
    assert!(detail.contains("JS:*matMul /"), "{detail}");
}

#[test]
fn keys_clicks_and_the_address_lead_through_the_tree() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "node", &["--inverted", "--with-runtime"]);
    let seen = browser.drive(
        &page,
        &[
            "see",
            "key:Tab",
            "key:f",
            "key:ArrowDown",
            "key:ArrowDown",
            "see",
            "key:Enter",
            "see",
            "key:Escape",
            "see",
            "at:600,30",
            "see",
            "back",
            "see",
            "key:/",
            "type:fibonacci",
            "key:Enter",
            "see",
            "key:n",
            "see",
            "key:i",
            "see",
            "key:?",
            "see",
            "key:Escape",
            "see",
        ],
    );
    let [
        start,
        moved,
        zoomed,
        out,
        clicked,
        back,
        found,
        next,
        flipped,
        help,
        closed,
    ] = &seen[..]
    else {
        panic!("{} answers", seen.len());
    };
    assert_eq!(start["name"], "all");
    assert_eq!(moved["name"], "_start");
    assert!(
        moved["detail"]
            .as_str()
            .is_some_and(|text| text.contains("user, node") && text.contains("total "))
    );
    assert_eq!(
        (&zoomed["zoom"], &zoomed["name"]),
        (&moved["selected"], &moved["name"])
    );
    assert!(
        zoomed["hash"]
            .as_str()
            .is_some_and(|hash| hash.contains("z="))
    );
    assert_eq!(out["zoom"], "0");
    assert_eq!(clicked["name"], "node");
    assert_eq!(back["zoom"], "0");
    assert_eq!(found["matched"], "19.20");
    assert!(
        found["name"]
            .as_str()
            .is_some_and(|name| name.contains("fibonacci"))
    );
    assert_ne!(found["selected"], next["selected"]);
    assert_ne!(flipped["hash"], next["hash"]);
    assert_eq!(
        (&help["dialog"], &closed["dialog"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    // The address alone brings the state back.
    let hash = zoomed["hash"]
        .as_str()
        .expect("text")
        .trim_start_matches('#')
        .to_owned();
    let again = browser.drive(
        &page,
        &[
            &format!("hash:{hash}"),
            "see",
            "hash:z=99999999&f=-7&v=x&m=9z&t=p%22",
            "see",
        ],
    );
    assert_eq!(
        (&again[0]["zoom"], &again[0]["name"]),
        (&zoomed["zoom"], &zoomed["name"])
    );
    assert_eq!(again[1]["zoom"], "0");
}

/// Three digits, or more where they stand before the point, but no powers of ten.
#[test]
fn weights_are_plain_numbers() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "native", &[]);
    let up = "key:ArrowUp";
    let seen = browser.drive(&page, &["see", "key:f", up, up, up, "see"]);
    let detail = |at: usize| seen[at]["detail"].as_str().expect("text");
    assert!(detail(0).contains("total 1.79 s "), "{}", detail(0));
    assert!(
        detail(1).contains("total 1000 ms (55.93 %)"),
        "{}",
        detail(1)
    );
}

#[test]
fn the_table_sorts_filters_and_leads_to_callers() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "native", &[]);
    let fold = stdout_of(&["fold", "--pid"], "native");
    let pid = fold
        .split(';')
        .next()
        .and_then(|comm| comm.rsplit_once('-'));
    let pid = pid.expect("a process").1;
    let steps = [
        "key:t",
        "see",
        "click:#heads th:nth-child(3) button",
        "see",
        "key:/",
        "type:hot::",
        "see",
        "key:Enter",
        "key:ArrowDown",
        "see",
        "key:Enter",
        "see",
        &format!("select:#scope=p{pid}"),
        "key:f",
        "see",
    ];
    let seen = browser.drive(&page, &steps);
    assert_eq!(seen[0]["sorted"], "descending,none,none,none,none");
    assert_eq!(seen[0]["focus"], "TR");
    assert_eq!(seen[1]["sorted"], "none,none,ascending,none,none");
    let rows = seen[2]["rows"].as_array().expect("rows");
    assert!(
        !rows.is_empty()
            && rows
                .iter()
                .all(|row| row[2].as_str().is_some_and(|name| name.contains("hot::")))
    );
    assert_eq!(seen[4]["view"], "around");
    let detail = seen[5]["detail"].as_str().expect("text");
    assert!(
        detail.starts_with("all total ") && !detail.contains("1.79 s"),
        "{detail}"
    );
    assert!(
        seen[4]["detail"]
            .as_str()
            .is_some_and(|text| text.contains("hot::"))
    );
}

#[test]
fn it_fits_small_screens_and_follows_the_colours_of_the_system() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "wasmtime", &["--reverse"]);
    let seen = browser.drive(
        &page,
        &[
            "see",
            "dark",
            "see",
            "size:400x700",
            "see",
            "key:t",
            "see",
            "still",
            "key:f",
            "key:Enter",
            "see",
        ],
    );
    assert_eq!(seen[0]["view"], "up");
    assert_ne!(seen[0]["background"], seen[1]["background"]);
    for (at, width) in [(0, 1280), (2, 400), (3, 400), (4, 400)] {
        assert!(
            seen[at]["wide"].as_i64().is_some_and(|wide| wide <= width),
            "{at}: {}",
            seen[at]["wide"]
        );
    }
}

#[test]
fn names_of_others_are_text_and_vanished_paths_are_drawn() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut base = stdout_of(&["fold"], "wasmtime").into_bytes();
    let long = "y".repeat(65_536);
    for name in [
        "</script><img src=x onerror=alert(1)>",
        "\"'><svg onload=alert(2)>\u{202e}\u{7}",
        "nul\0byte",
        "=cmd|' /C calc'!A0",
        &long,
    ] {
        base.extend_from_slice(format!("wasmtime;gone {name} 90000000\n").as_bytes());
    }
    base.extend_from_slice(b"wasmtime;\xff\xfe;vanished_one 400000000\n");
    let folded = folder.path().join("base.folded");
    fs::write(&folded, base).expect("written");
    let page = page(
        folder.path(),
        "wasmtime",
        &["--diff", folded.to_str().expect("text")],
    );
    let seen = browser.drive(
        &page,
        &[
            "see",
            "key:/",
            "type:vanished_one",
            "key:Enter",
            "see",
            "key:/",
            "key:Escape",
            "key:t",
            "see",
            "key:b",
            "see",
        ],
    );
    assert_eq!(
        (&seen[0]["scripts"], &seen[0]["images"]),
        (&Value::from(1), &Value::from(0))
    );
    let detail = seen[1]["detail"].as_str().expect("text");
    assert!(
        detail.starts_with("vanished_one") && detail.contains(" → 0 ms, vanished"),
        "{detail}"
    );
}

#[test]
fn a_difference_has_the_shape_and_the_weights_that_were_asked_for() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let fold = stdout_of(&["fold"], "wasmtime");
    let twice = twice_of(&fold);
    let folded = folder.path().join("base.folded");
    fs::write(&folded, twice + "wasmtime;vanished_one 90000000\n").expect("written");
    let base = ["--diff", folded.to_str().expect("text")];
    let steps = [
        "see",
        "key:t",
        "see",
        "key:f",
        "key:/",
        "type:vanished_one",
        "key:Enter",
        "see",
    ];
    let mut changes = Vec::new();
    for options in [
        &[][..],
        &["--shape", "after"],
        &["--shape", "before", "--absolute", "--negate"],
    ] {
        let page = page(folder.path(), "wasmtime", &[&base, options].concat());
        let seen = browser.drive(&page, &steps);
        // All of a run is all of it, however its shares add up.
        let all = seen[0]["detail"].as_str().expect("text");
        let is_equal = all.contains(", 1.00 times");
        assert_eq!(is_equal, !options.contains(&"--absolute"), "{all}");
        let detail = seen[2]["detail"].as_str().expect("text").to_owned();
        // What has no width cannot be come upon.
        let is_drawn = options != ["--shape", "after"];
        assert_eq!(
            detail.starts_with("vanished_one"),
            is_drawn,
            "{options:?} {detail}"
        );
        changes.push(seen[1]["rows"][0].to_string());
    }
    assert_eq!(changes[0], changes[1]);
    // Half as much is less, and in shares nearly the same.
    assert_ne!(changes[0], changes[2]);
}

#[test]
fn a_run_compared_with_itself_has_not_changed() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["node", "native"] {
        let itself = sample(name, "perf.data");
        let page = page(
            folder.path(),
            name,
            &["--diff", itself.to_str().expect("text")],
        );
        let seen = browser.drive(
            &page,
            &[
                "see",
                "key:f",
                "key:ArrowUp",
                "key:ArrowUp",
                "see",
                "key:t",
                "see",
            ],
        );
        for at in [0, 1] {
            let detail = seen[at]["detail"].as_str().expect("text");
            assert!(detail.contains(", 1.00 times"), "{detail}");
        }
        let rows = seen[2]["rows"].as_array().expect("rows");
        assert!(
            rows.len() > 4 && rows.iter().all(|row| row[2] == "±0.00"),
            "{rows:?}"
        );
    }
}

/// One page is in the repository, to be looked at without building anything.
#[test]
fn the_page_among_the_samples_is_what_is_written_now() {
    let kept = sample("wasmtime", "pjit.flamegraph.html");
    let now = stdout_of(&["flamegraph", "--format", "html"], "wasmtime");
    if std::env::var_os("PJIT_BLESS").is_some() {
        fs::write(&kept, &now).expect("samples can be written");
    }
    let before = fs::read_to_string(&kept).unwrap_or_default();
    assert!(
        before == now,
        "{} differs; PJIT_BLESS=1 renews it",
        kept.display()
    );
    for threads in ["1", "3"] {
        let again = stdout_of(
            &["flamegraph", "--format", "html", "-j", threads],
            "wasmtime",
        );
        assert!(again == now, "-j {threads}");
    }
    assert!(now.contains("default-src 'none'") && now.len() < 60_000);
}

/// Percentages and texts of instructions with samples, of what `annotate` prints of a function.
fn hot_instructions(name: &str, function: &str) -> Vec<(String, String)> {
    let output = pjit()
        .args(["annotate", function, "--symfs"])
        .arg(sample(name, "symfs"))
        .arg("-i")
        .arg(sample(name, "perf.data"))
        .output()
        .expect("the binary can be run");
    let report = String::from_utf8(output.stdout).expect("text");
    let rows = report.lines().filter_map(|line| {
        let (percent, code) = line.split_once(" : ")?;
        let (_, text) = code.split_once(":  ")?;
        let percent: f64 = percent.trim().parse().ok()?;
        let text = text.split("    // ").next()?.split_whitespace();
        (percent > 0.0).then(|| (format!("{percent:.2}"), text.collect::<Vec<_>>().join(" ")))
    });
    rows.collect()
}

#[test]
fn code_is_shown_with_its_weights() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let with = page(folder.path(), "native", &["--source"]);
    // The second row of the table, then the first: a function, and one that was inlined.
    let steps = [
        "key:t",
        "key:ArrowDown",
        "key:s",
        "see",
        "key:t",
        "key:ArrowUp",
        "key:s",
        "see",
    ];
    let seen = browser.drive(&with, &[&["key:Tab"], &steps[..]].concat());
    let rows: Vec<Vec<String>> =
        serde_json::from_value(seen[0]["code"].clone()).expect("rows of cells");
    let squeezed = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hot = rows.iter().filter(|row| !row[0].is_empty());
    let hot: Vec<_> = hot.map(|row| (row[0].clone(), squeezed(&row[2]))).collect();
    let expected = hot_instructions("native", "hot::fibonacci");
    assert!(expected.len() > 2, "{expected:?}");
    assert_eq!(hot, expected);
    let lines = rows.iter().filter(|row| row[0].is_empty());
    let mut lines = lines.map(|row| (row[1].as_str(), row[2].as_str()));
    assert!(lines.any(|line| line == ("20", "hot::fibonacci:")));
    assert!(
        seen[1]["detail"]
            .as_str()
            .is_some_and(|text| text.contains("inlined"))
    );
    assert!(
        seen[1]["code"]
            .as_array()
            .is_some_and(|rows| rows.len() > 20)
    );
    assert_eq!(seen[1]["wide"], 1280);

    let without = page(folder.path(), "native", &[]);
    let seen = browser.drive(&without, &["key:Tab", "key:s", "see"]);
    assert_eq!(seen[0]["view"], "down");
    assert_eq!(seen[0]["tabs"].as_array().map(Vec::len), Some(4));
}
