//! The page of `pjit flamegraph` in a real browser: what it shows, that it answers keys and clicks, and asks nobody for anything.
//!
//! Needs Chromium (Debian: `chromium-headless-shell`), node, and npm's `puppeteer-core` in `target/browser`; skipped
//! without them, but not in CI.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
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
        let run = || {
            let mut command = Command::new("node");
            command
                .arg(&driver)
                .arg(&self.chromium)
                .arg(page)
                .args(steps);
            let output = command.env("NODE_PATH", &self.modules).output();
            output.expect("node runs")
        };
        let mut output = run();
        // On a busy machine Chromium ended by SIGSEGV at its start, once in some hundred times.
        if String::from_utf8_lossy(&output.stderr).contains("Failed to launch the browser") {
            output = run();
        }
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
fn a_search_that_finds_nothing_leaves_the_other_views_whole() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "node", &[]);
    let around = "click:#tabs button:nth-child(3)";
    let steps = ["key:t", "key:/", "type:zzz", "key:Enter", around, "see"];
    let seen = browser.drive(&page, &steps);
    let text = |key: &str| seen[0][key].as_str().expect("text").to_owned();
    assert!(!text("hash").contains("undefined"), "{}", text("hash"));
    assert!(text("detail").contains("total "), "{}", text("detail"));
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

/// What the page's script reads: the object, and the columns behind it.
fn data_of(page: &Path) -> (Value, Vec<u8>) {
    let page = fs::read_to_string(page).expect("a page");
    let text = page.split("id=\"data\">\"").nth(1).expect("data");
    let text = text.split('"').next().expect("its end");
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut packed, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = digits.iter().position(|digit| *digit == byte);
        bits = bits << 6 | u32::try_from(digit.expect("base64")).expect("small");
        held += 6;
        if held >= 8 {
            held -= 8;
            packed.push((bits >> held & 0xff) as u8);
        }
    }
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .expect("gzip");
    let end = bytes.iter().position(|byte| *byte == 0);
    let columns = end.map_or(Vec::new(), |end| bytes.split_off(end + 1));
    bytes.truncate(end.unwrap_or(bytes.len()));
    (serde_json::from_slice(&bytes).expect("JSON"), columns)
}

fn column(data: &Value, path: &str) -> Vec<u64> {
    let column = data.pointer(path).and_then(Value::as_array);
    let numbers = column.unwrap_or_else(|| panic!("no {path}")).iter();
    numbers
        .map(|value| value.as_u64().expect("a number"))
        .collect()
}

/// A number of seven bits a byte.
fn next_number(bytes: &mut std::slice::Iter<'_, u8>) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *bytes.next().expect("a byte");
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

/// A cell: its node and series, its period and samples.
type Cell = (u64, u64, u64, u64);

/// The cells of a page with a time panel with the sums of its moments, in order.
fn sums_of_moments(data: &Value, columns: &[u8]) -> Vec<Cell> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let (unit, time) = (number(&data["unit"]), &data["time"]);
    let (step, from, to) = (
        number(&time["step"]),
        number(&time["from"]),
        number(&time["to"]),
    );
    let all = time["series"].as_array().expect("series");
    let mut rest = columns.iter();
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    for (series, of) in (0..).zip(all) {
        let mut node = 0;
        let own = (0..number(&of[3])).map(|_| {
            node += next_number(&mut rest);
            (node, series, 0, 0)
        });
        cells.push(own.collect());
    }
    for of in all {
        let rows = (0..number(&of[0])).map(|_| next_number(&mut rest) * step);
        let last = from + rows.sum::<u64>();
        assert!(last < to, "{last} {to}");
    }
    let rows = |of: &Value| vec![0_usize; number(&of[0]) as usize];
    let mut cell_of: Vec<Vec<usize>> = all.iter().map(rows).collect();
    for place in [1, 256, 65536] {
        for (rows, own) in cell_of.iter_mut().zip(&cells) {
            for cell in rows.iter_mut().filter(|_| place < own.len()) {
                *cell += place * usize::from(*rest.next().expect("a byte"));
            }
        }
    }
    let mut periods: Vec<Vec<u64>> = Vec::new();
    for of in all {
        let rows = (0..number(&of[0])).map(|_| of[1].as_u64());
        let rows = rows.map(|each| unit * each.unwrap_or_else(|| next_number(&mut rest)));
        periods.push(rows.collect());
    }
    for (series, of) in all.iter().enumerate() {
        for (cell, period) in cell_of[series].iter().zip(&periods[series]) {
            let are_ones = of[2] == 1;
            let count = if are_ones { 1 } else { next_number(&mut rest) };
            let by = if of[1].is_u64() { count } else { 1 };
            let cell = &mut cells[series][*cell];
            (cell.2, cell.3) = (cell.2 + period * by, cell.3 + count);
        }
    }
    assert!(rest.next().is_none());
    let mut cells = cells.concat();
    cells.sort_unstable();
    cells
}

/// The same of a page without one.
fn cells_of(plain: &Value) -> Vec<Cell> {
    let unit = plain["unit"].as_u64().expect("a number");
    let column = |name: &str| column(plain, &format!("/cells/{name}"));
    let (series, periods) = (column("series"), column("period"));
    let mut node = 0;
    let nodes = column("node").into_iter().map(|step| {
        node += step;
        node
    });
    let rest = series.into_iter().zip(periods).zip(column("samples"));
    let cells = nodes.zip(rest);
    cells
        .map(|(node, ((series, period), samples))| (node, series, period * unit, samples))
        .collect()
}

/// The tree is the same, and its weights are the sums of the moments.
#[test]
fn moments_add_up_to_the_page_without_them() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, options) in [
        ("node", &[][..]),
        ("native", &[]),
        ("wasmtime", &["--tid"]),
        ("minijit", &[]),
        ("typescript", &["--weight", "samples"]),
    ] {
        let (data, columns) = data_of(&page(folder.path(), name, options));
        let without = page(folder.path(), name, &[options, &["--no-time"]].concat());
        let (plain, nothing) = data_of(&without);
        assert!(nothing.is_empty() && plain.get("time").is_none());
        for path in ["/up", "/fn", "/fns", "/series", "/threads", "/activity"] {
            assert_eq!(data.pointer(path), plain.pointer(path), "{name}: {path}");
        }
        assert_eq!(sums_of_moments(&data, &columns), cells_of(&plain), "{name}");
        assert!(
            data.get("cells").is_none(),
            "{name}: they are not told twice"
        );
        let text = fs::read_to_string(without).expect("a page");
        assert!(
            !text.contains("id=\"time\"") && !text.contains("timePanel() {"),
            "{name}"
        );
    }
}

/// Several recordings, and two sides, have no time in common.
#[test]
fn only_a_page_of_one_recording_has_a_panel() {
    let folder = tempfile::tempdir().expect("a folder");
    let itself = sample("native", "perf.data");
    let itself = itself.to_str().expect("text");
    let other = sample("wasmtime", "perf.data");
    for options in [&["--diff", itself][..], &[other.to_str().expect("text")]] {
        let (data, columns) = data_of(&page(folder.path(), "native", options));
        assert!(
            columns.is_empty() && data.get("time").is_none(),
            "{options:?}"
        );
    }
    let output = pjit()
        .args(["flamegraph", "--no-time", "-o"])
        .arg(folder.path().join("x.svg"))
        .arg(itself)
        .output()
        .expect("the binary can be run");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && text.contains("--no-time is only for the page"),
        "{text}"
    );
}

/// A table of samples by function and object: what a step `all` saw, by its columns.
fn table_of(seen: &Value, names: &[&str]) -> BTreeMap<(String, String), Vec<u64>> {
    let heads = seen["heads"].as_array().expect("heads");
    let at = |name: &str| {
        let at = heads.iter().position(|head| head == name);
        at.unwrap_or_else(|| panic!("{name} in {heads:?}"))
    };
    let rows = seen["table"].as_array().expect("rows");
    assert_eq!(seen["count"], rows.len(), "all rows are there");
    let samples = |cell: &Value| -> u64 {
        let text = cell.as_str().expect("text").replace(',', "");
        let number = text.strip_suffix(" samples").expect("samples");
        number.parse().expect("a number")
    };
    let text = |cell: &Value| cell.as_str().expect("text").to_owned();
    let row = |row: &Value| {
        let key = (text(&row[at("Function")]), text(&row[at("Object")]));
        (
            key,
            names.iter().map(|name| samples(&row[at(name)])).collect(),
        )
    };
    rows.iter().map(row).collect()
}

/// What is inside of a range and what is outside of it is all there is, for each function; and so are two ranges side by side.
#[test]
fn a_range_and_the_rest_are_the_whole() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // In the middle, and in the middle of the longest thread alone.
    for (name, scope) in [("node", "all"), ("native", "all"), ("node", "t0")] {
        let page = page(folder.path(), name, &[]);
        let time = &data_of(&page).0["time"];
        let ms = |key: &str| time[key].as_u64().expect("a time");
        let (from, to) = (ms("from"), ms("to"));
        let (a, b) = (from + (to - from) / 3, from + (to - from) / 2);
        let base = format!("m=0s&v=table&t={scope}");
        let steps = [
            "size:1280x9000".to_owned(),
            format!("hash:{base}"),
            "all".to_owned(),
            format!("hash:{base}&r={a}-{b}&q=rest"),
            "all".to_owned(),
            "see".to_owned(),
            format!("hash:{base}&r={from}-{a}"),
            "all".to_owned(),
            format!("hash:{base}&r={a}-{to}"),
            "all".to_owned(),
            format!("hash:{base}&r={from}-{a}&q={a}-{to}"),
            "all".to_owned(),
        ];
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let seen = browser.drive(&page, &steps);
        let own = ["Self", "Total"];
        let whole = table_of(&seen[0], &own);
        assert!(whole.len() > 20, "{name}");
        let sum = |tables: &[BTreeMap<(String, String), Vec<u64>>]| {
            let mut sum: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
            for (key, row) in tables.iter().flatten() {
                let all = sum.entry(key.clone()).or_insert_with(|| vec![0; row.len()]);
                all.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
            }
            sum
        };
        let totals: BTreeMap<_, u64> = whole
            .iter()
            .map(|(key, row)| (key.clone(), row[1]))
            .collect();
        let both = |seen: &Value, other: &str| -> BTreeMap<_, u64> {
            let rows = table_of(seen, &["Total", other]).into_iter();
            rows.map(|(key, row)| (key, row[0] + row[1])).collect()
        };
        assert_eq!(both(&seen[1], "Rest"), totals, "{name}");
        assert_eq!(both(&seen[5], "Other"), totals, "{name}");
        assert_eq!(
            sum(&[table_of(&seen[3], &own), table_of(&seen[4], &own)]),
            whole,
            "{name}"
        );
        let (inside, rest) = (number(&seen[2], "samples"), number(&seen[2], "others"));
        assert!(inside > 0.0 && rest > 0.0, "{name}: {inside} {rest}");
    }
}

/// A range of the page is that of `--time`.
#[test]
fn a_range_of_the_page_has_the_total_of_other_views() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "node", &[]);
    let seen = browser.drive(&page, &["hash:r=300-900", "see"]);
    let report = stdout_of(
        &[
            "report",
            "--no-children",
            "-g",
            "none",
            "--time",
            "+0.3,+0.9",
        ],
        "node",
    );
    assert_eq!(
        number(&seen[0], "total"),
        crate::support::event_count(&report) as f64
    );
    let chosen = seen[0]["panel"]["chosen"].as_str().expect("text");
    assert!(chosen.starts_with("0.300 to 0.900 s: 600 ms, "), "{chosen}");
}

#[test]
fn spells_phases_and_drags_choose_times() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "typescript", &[]);
    let steps = [
        "see",
        "click:#spells button",
        "see",
        "key:r",
        "see",
        "back",
        "see",
        "key:0",
        "see",
        "drag:0.25,0.5",
        "see",
        "key:]",
        "see",
        "key:R",
        "key:[",
        "see",
        "key:x",
        "see",
        "key:b",
        "drag:0.3,0.95+",
        "see",
        "wait:300",
        "see",
    ];
    let seen = browser.drive(&page, &steps);
    let text = |at: usize, key: &str| seen[at][key].as_str().unwrap_or_default().to_owned();
    let chosen = |at: usize| {
        seen[at]["panel"]["chosen"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let over = stdout_of(
        &["summary", "--over-time", "--format", "json"],
        "typescript",
    );
    let over: Value = serde_json::from_str(&over).expect("JSON");
    let spells = over["over_time"]["spells"].as_array().expect("spells");
    let buttons = seen[0]["panel"]["spells"].as_array().expect("buttons");
    assert_eq!(buttons.len(), spells.len().min(6));
    for (button, spell) in buttons.iter().zip(spells) {
        let words = button.as_str().expect("text");
        let ms = (1000.0 * spell["longest"].as_f64().expect("a number")).round();
        assert!(words.ends_with(&format!(": {ms} ms")), "{words} {spell}");
    }
    // The range is outwards to milliseconds, and the thread is the spell's.
    let longest = &spells[0]["longest_at"];
    let ms = |at: usize| 1000.0 * longest[at].as_f64().expect("a time");
    let range = format!("r={}-{}", ms(0).floor(), ms(1).floor() + 1.0);
    let pid = &spells[0]["thread"]["pid"];
    assert_eq!(text(1, "hash"), format!("#t=p{pid}&{range}"));
    assert_eq!(text(2, "hash"), format!("#t=p{pid}&{range}&q=rest"));
    assert!(chosen(2).ends_with(", against the rest"), "{}", chosen(2));
    let legend = seen[2]["legend"].to_string();
    assert!(legend.contains("what chance would do"), "{legend}");
    assert!(
        text(2, "detail").contains("100.00 %, rest 100.00 %"),
        "{}",
        text(2, "detail")
    );
    assert_eq!(
        number(&seen[2], "samples") + number(&seen[2], "others"),
        number(&seen[0], "samples")
    );
    assert_eq!(text(3, "hash"), text(1, "hash"));
    assert_eq!(
        (text(4, "hash"), chosen(4)),
        (
            format!("#t=p{pid}"),
            "Drag over the lanes to choose a time".to_owned()
        )
    );
    let range_of = |at: usize| -> (f64, f64) {
        let hash = text(at, "hash");
        let range = hash.split("r=").nth(1).expect("a range").split('&').next();
        let (from, to) = range
            .and_then(|range| range.split_once('-'))
            .expect("two times");
        (
            from.parse().expect("a number"),
            to.parse().expect("a number"),
        )
    };
    let (from, to) = range_of(5);
    assert!(from > 0.0 && to > from);
    assert_eq!(range_of(6), (to, 2.0 * to - from));
    assert_eq!(range_of(7), (from, to));
    assert!(chosen(7).contains(", against "), "{}", chosen(7));
    assert_ne!(range_of(8), range_of(7));
    // The tree from the leaves follows when the pointer rests.
    assert_eq!(text(9, "total"), text(8, "total"));
    assert_ne!(text(10, "total"), text(9, "total"));
}

#[test]
fn the_panel_fits_and_ignores_addresses_of_others() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "native", &["--source"]);
    let steps = [
        "hash:r=99999999-999999999&q=7",
        "see",
        "hash:r=5-3&q=rest",
        "see",
        "hash:r=x&q=%22%3E",
        "see",
        "size:400x700",
        "see",
        "size:1280x480",
        "see",
        "hash:r=100-300&v=code",
        "see",
        "key:/",
        "type:fibonacci",
        "dark",
        "see",
    ];
    let seen = browser.drive(&page, &steps);
    for seen in &seen[..3] {
        assert_eq!(
            seen["panel"]["chosen"],
            "Drag over the lanes to choose a time"
        );
        assert_eq!(seen["other"], "0");
    }
    assert_eq!(
        (&seen[3]["wide"], &seen[4]["wide"]),
        (&Value::from(400), &Value::from(1280))
    );
    let names = |at: usize| {
        seen[at]["panel"]["names"]
            .as_array()
            .expect("names")
            .clone()
    };
    assert!(
        names(0)[0][1]
            .as_str()
            .is_some_and(|title| title.starts_with("full = ") && title.ends_with(" % of a CPU"))
    );
    assert_eq!(names(4).len(), 1, "a low window has one lane");
    let high = seen[0]["panel"]["high"].as_i64().expect("a number");
    assert!((40..=160).contains(&high), "{high}");
}

/// The scripts and styles in `made` are what esbuild makes of the sources today.
#[test]
fn what_was_made_small_is_up_to_date() {
    let esbuild = modules().join("esbuild/bin/esbuild");
    if !esbuild.exists() || program("node").is_none() {
        return skip("esbuild", "npm's esbuild is not installed, or node is not");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/page");
    let output = Command::new(script)
        .arg("--check")
        .env("ESBUILD", esbuild)
        .output()
        .expect("the script runs");
    assert!(output.status.success(), "{output:?}");
}

/// What differs by more than chance explains is told, and nothing else; and what is at the end of a range is outside of it.
#[test]
fn chance_has_no_colour() {
    if program("node").is_none() {
        return skip("node", "no node");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/output/html");
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("a script");
    // Shares of functions in 400 samples and in 10 000 others: 5 spreads of a half are 12.7 points, of a tenth 7.6.
    let script = r"
        const sums = (own, rest) => [{total: own}, {total: rest}], at = (n, rest) => ({samples: [n, rest]});
        const own = [.5, .64, .36, .1, .19, 0, 1, .004], rest = [.5, .5, .5, .1, .1, 0, 1, 0];
        const m = {at: [0, 5, 5, 9], cell: [0, 1, 0, 1], period: [1, 10, 100, 1000], first: [0, 3, 4]};
        console.log(JSON.stringify([
            [...unlikely(at(400, 10000), sums(own, rest))],
            [...unlikely(at(7, 10000), sums(own, rest))],
            [...within(m, 2, 'period', [0, 0], [0, 9])],
            [...within(m, 2, 'period', [0, 0], [5, 10])],
            [...within(m, 2, 'period', [0, -1], [5, 10])],
            [...within(m, 2, 'period', [0, 0], [6, 9])],
        ]));";
    let output = Command::new("node")
        .args(["-e", &[&text("tree.js"), &text("time.js"), script].concat()])
        .output()
        .expect("node runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let answer: Vec<Vec<i64>> = serde_json::from_slice(&output.stdout).expect("JSON");
    let expected: [&[i64]; 6] = [
        &[0, 1, -1, 0, 1, 0, 0, 0],
        &[0; 8],
        &[101, 10],
        &[100, 1010],
        &[100, 10],
        &[0, 0],
    ];
    assert_eq!(answer, expected);
}
